"""Right-hand sides with poles: those that are square integrable have a bound, the others a reason
that says so."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.residual.measured import unseen_layers
from cordes.certificates.residual.norms import bounded

SQUARE = cordes.Box([0, 0], [1, 1])
NOWHERE = np.zeros((0, 2))


def certificate(f, problem=cordes.Linear, **data):
    return cordes.solve(problem(SQUARE, 1.0, f, **data), features=60, progress=False).certificate


@pytest.mark.parametrize("power", [0.6, 1.0, 3.0])
def test_a_pole_along_a_side_has_no_bound(power):
    found = certificate(lambda x: x[0] ** -power)
    assert found.Linf is None
    assert found.L2 is None
    assert "pole" in found.reason


def test_a_pole_at_a_corner_has_no_bound():
    found = certificate(lambda x: 1 / (x[0] ** 2 + x[1] ** 2))
    assert found.L2 is None
    assert "pole" in found.reason


def test_a_pole_of_a_control_has_no_bound():
    problem = cordes.HJB(
        SQUARE, [0.0, 0.5], lambda x, a: (1.0 + a) * jnp.eye(2), lambda x, a: x[0] ** -3.0
    )
    found = cordes.solve(problem, features=60, progress=False).certificate
    assert found.L2 is None
    assert "pole" in found.reason or "did not converge" in found.reason


@pytest.mark.parametrize("power", [0.2, 0.4])
def test_a_weak_pole_has_a_true_bound(power):
    """u = x1^(2-p) (1 - x1) x2 (1 - x2): its Laplacian has the pole x1^-p along a side."""
    p = 2 - power

    def exact(x):
        return (x[0] ** p - x[0] ** (p + 1)) * x[1] * (1 - x[1])

    def f(x):
        second = p * (p - 1) * x[0] ** (p - 2) - (p + 1) * p * x[0] ** (p - 1)
        return second * x[1] * (1 - x[1]) - 2 * (x[0] ** p - x[0] ** (p + 1))

    answer = cordes.solve(cordes.Linear(SQUARE, 1.0, f), features=200, progress=False)
    points = np.random.default_rng(3).uniform(0.001, 0.999, (2000, 2))
    truth = np.max(np.abs(answer(points) - exact(points.T)))
    assert truth < answer.certificate.Linf < 0.1


@pytest.mark.parametrize(
    ("power", "refused"), [(0.3, False), (0.45, False), (0.8, True), (2.0, True)]
)
def test_layers_next_to_a_side(power, refused):
    norm = 1 / np.sqrt(max(1 - 2 * power, 0.01))
    assert bool(unseen_layers(SQUARE, NOWHERE, lambda x: x[:, 0] ** -power, norm)) == refused


@pytest.mark.parametrize(
    ("power", "refused"), [(0.5, False), (0.9, False), (1.3, True), (2.0, True)]
)
def test_layers_next_to_a_corner(power, refused):
    # ∫r^-2p over the quarter of the disc, which the square contains.
    norm = np.sqrt(np.pi / 2 / max(2 - 2 * power, 0.02))
    assert (
        bool(unseen_layers(SQUARE, NOWHERE, lambda x: np.linalg.norm(x, axis=1) ** -power, norm))
        == refused
    )


@pytest.mark.parametrize(
    "domain",
    [
        cordes.Ball([1.0, 2.0], 0.5),
        cordes.Box([0, 0, 0], [1, 2, 1]),
        cordes.Polygon([[0, 0], [2, 0], [1, 1]]),
    ],
)
def test_a_constant_is_no_pole(domain):
    assert (
        unseen_layers(
            domain,
            np.asarray(domain.center)[None],
            lambda x: np.ones(len(x)),
            np.sqrt(domain.volume),
        )
        == []
    )


def test_bounded():
    assert bounded(np.array([0.0, 1e-30, 1.0]))
    assert bounded(np.zeros(3))
    assert not bounded(np.array([1.0, np.inf]))
    assert not bounded(np.array([1.0, 1e130]))
    assert not bounded(np.array([1.0, 1e50]), 1e40)


def test_the_residual_next_to_a_corner_is_in_the_bound():
    """D²u grows like a logarithm towards the corners. Within 10⁻⁵ of them the other control is the
    best, and the residual of an answer that is accurate to 10⁻⁸ everywhere else is of the size of
    f: a mesh that ends at 10⁻⁴ sees nothing of it."""
    matrices = jnp.array([[[1.0, 0.3], [0.3, 2.0]], [[2.0, -0.4], [-0.4, 1.0]]])
    square = cordes.Box([-1, -1], [1, 1])
    problem = cordes.HJB(
        square,
        [0.0, 1.0],
        lambda x, a: jnp.where(a == 0, matrices[0], matrices[1]),
        lambda x, a: 1.0 + 20 * a,
    )
    answer = cordes.solve(problem, features=250, progress=False)
    # ∫r² over a quarter of a disc around each corner, in polar coordinates with a logarithmic
    # radius.
    radius, angle = np.geomspace(1e-9, 1e-3, 121), (np.arange(24) + 0.5) / 24 * np.pi / 2
    square_norm = 0.0
    for sign in ([1, 1], [1, -1], [-1, 1], [-1, -1]):
        offset = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        residual = answer.residual(np.array(sign) * (1 - offset))
        square_norm += (
            np.pi / 2 * np.trapezoid(np.mean(residual**2, axis=1) * radius**2, np.log(radius))
        )
    # ‖Δv‖ is between ‖residual‖/(1+κ) and ‖residual‖/(1-κ), κ < 1, and the scaling 2/tr A of the
    # residual is at least 2/3.
    corners = np.sqrt(square_norm)
    assert corners > 1e-6
    found = answer.certificate
    assert found.energy[1] >= 2 / 3 * corners / 2
    assert found.Linf < 0.01
