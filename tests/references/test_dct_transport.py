"""The cosine-transform baseline of optimal transport, against maps in closed form."""

import numpy as np
import pytest
import scipy.ndimage

from cordes.errors import CoefficientError, OptionError
from cordes.references.dct_transport import solve_dct


def centers(count, lower=0.0, upper=1.0):
    return lower + (np.arange(count) + 0.5) * (upper - lower) / count


def grid(lower, upper, count=60):
    axes = [np.linspace(low, high, count) for low, high in zip(lower, upper, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def profile(z):
    """q, q' and q'' of the square benchmark."""
    s, c, w = np.sin(8 * np.pi * z), np.cos(8 * np.pi * z), z**2 - 0.25
    q = (-(z**2) / (8 * np.pi) + 1 / (256 * np.pi**3) + 1 / (32 * np.pi)) * c + z / (
        32 * np.pi**2
    ) * s
    return q, w * s, 2 * z * s + 8 * np.pi * w * c


def square_density(x, y):
    (qx, dx, ddx), (qy, dy, ddy) = profile(x), profile(y)
    return 1 + 4 * (ddx * qy + qx * ddy) + 16 * (qx * qy * ddx * ddy - dx**2 * dy**2)


def square_map(points):
    (qx, dx, _), (qy, dy, _) = profile(points[:, 0]), profile(points[:, 1])
    return points + 4 * np.stack([dx * qy, qx * dy], axis=1)


def square_error(count, density=square_density):
    x, y = np.meshgrid(centers(count, -0.5, 0.5), centers(count, -0.5, 0.5), indexing="ij")
    answer = solve_dct(density(x, y), (-0.5, -0.5), (0.5, 0.5))
    assert answer.converged
    assert answer.residual <= 1e-9
    points = grid((-0.5, -0.5), (0.5, 0.5), 200)
    return float(np.max(np.linalg.norm(answer.map(points) - square_map(points), axis=1)))


def test_square_benchmark_converges():
    counts = np.array([64, 128, 256])
    errors = [square_error(count) for count in counts]
    assert errors[-1] < 2e-6
    rate = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert rate > 1.8


def test_square_benchmark_notices_a_wrong_density():
    # A density with its factor 16 replaced by 15 is off by less than two per cent, and the error
    # shows it.
    def wrong(x, y):
        (qx, dx, ddx), (qy, dy, ddy) = profile(x), profile(y)
        return 1 + 4 * (ddx * qy + qx * ddy) + 15 * (qx * qy * ddx * ddy - dx**2 * dy**2)

    assert square_error(128, wrong) > 5 * square_error(128)


def test_potential_of_the_square_benchmark():
    x = centers(128, -0.5, 0.5)
    x, y = np.meshgrid(x, x, indexing="ij")
    answer = solve_dct(square_density(x, y), (-0.5, -0.5), (0.5, 0.5))
    difference = answer.potential - (x**2 + y**2) / 2 - 4 * profile(x)[0] * profile(y)[0]
    # The potential of the map is x²/2 + y²/2 + 4 q(x) q(y) up to a constant.
    assert np.ptp(difference) < 1e-6


@pytest.mark.parametrize("depth", [0.5, 0.98, 0.998])
def test_product_density_on_rectangles(depth):
    """f = Π (1 + a cos πtᵢ) has the map of its distribution functions; with a = 0.998 it spans six
    orders of magnitude."""
    lower, upper, target = (
        np.array([-1.0, 2.0]),
        np.array([2.0, 3.0]),
        (np.array([0.0, 0.0]), np.array([1.0, 2.0])),
    )
    one = 1 + depth * np.cos(np.pi * centers(256))
    answer = solve_dct(np.outer(one, one), lower, upper, tolerance=1e-8, target=target)
    assert answer.converged
    assert answer.smallest_determinant > 0
    points = grid(lower, upper)
    share = (points - lower) / (upper - lower)
    exact = target[0] + (target[1] - target[0]) * (share + depth * np.sin(np.pi * share) / np.pi)
    assert np.max(np.abs(answer.map(points) - exact)) < 1e-6


def test_random_densities_of_three_orders():
    rng = np.random.default_rng(7)
    for _ in range(3):
        noise = scipy.ndimage.gaussian_filter(rng.normal(size=(96, 128)), 8, mode="reflect")
        density = np.exp(7 * (noise - noise.min()) / np.ptp(noise))
        answer = solve_dct(density, (0, 0), (1.5, 2.0), tolerance=1e-7)
        assert answer.converged
        # Mass is balanced on the grid, and the potential is convex.
        assert answer.multiplier == pytest.approx(1.0, abs=1e-3)
        assert answer.smallest_determinant > 0
        # A cell's image has the area of its mass: the images of a coarse partition, measured by
        # their corners.
        lines = [np.linspace(0, 1.5, 97), np.linspace(0, 2.0, 129)]
        images = answer.map(
            np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
        ).reshape(97, 129, 2)
        first, second = images[1:, 1:] - images[:-1, :-1], images[:-1, 1:] - images[1:, :-1]
        area = (first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]) / 2
        coarse = area.reshape(12, 8, 16, 8).sum(axis=(1, 3)) / 3.0
        mass = density.reshape(12, 8, 16, 8).sum(axis=(1, 3)) / density.sum()
        assert np.max(np.abs(coarse / mass - 1)) < 0.02


def test_sides_go_to_sides():
    one = 1 + 0.9 * np.cos(np.pi * centers(64))
    answer = solve_dct(np.outer(one, one**2), (0, 0), (1, 2))
    edge = np.linspace(0, 1, 50)
    assert np.all(answer.map(np.stack([np.zeros(50), 2 * edge], axis=1))[:, 0] == 0)
    assert np.all(answer.map(np.stack([edge, np.full(50, 2.0)], axis=1))[:, 1] == 2)
    assert np.array_equal(answer.map(np.array([[0.0, 0.0], [1.0, 2.0]])), [[0, 0], [1, 2]])


def test_unfinished_is_said():
    one = 1 + 0.99 * np.cos(np.pi * centers(64))
    answer = solve_dct(np.outer(one, one), (0, 0), (1, 1), steps=3)
    assert not answer.converged
    assert answer.iterations == 3
    assert answer.residual > 1e-9


def test_bad_input():
    density = np.ones((32, 32))
    density[3, 5] = 0.0
    with pytest.raises(CoefficientError, match=r"0\.0 at \(0\.109375, 0\.171875\)"):
        solve_dct(density, (0, 0), (1, 1))
    with pytest.raises(OptionError, match="shape"):
        solve_dct(np.ones(32), (0, 0), (1, 1))
    with pytest.raises(OptionError, match="empty"):
        solve_dct(np.ones((32, 32)), (0, 0), (1, -1))
    with pytest.raises(OptionError, match="outside"):
        solve_dct(np.ones((32, 32)), (0, 0), (1, 1)).map(np.array([[0.5, 1.5]]))
