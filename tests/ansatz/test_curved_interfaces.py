"""Where an interface meets a smooth boundary: the points are found, their functions are C¹ and
vanish on the boundary, and answers have all their digits."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.singular import SingularPoint, find_singular_points
from cordes.solvers.rows.system import System

DISC = cordes.Ball([0, 0], 1)


def jump(phi, domain: Any = DISC, A: Any = 1.0, **data):
    """f = ±1 on the two sides of an interface."""
    return cordes.Linear(domain, A, lambda x: jnp.sign(phi(x)), interfaces=[phi], **data)


def line(x):
    return x[0] - 0.3


def arc(x):
    return (x[0] - 1) ** 2 + x[1] ** 2 - 0.64


def matrices(x):
    return jnp.where(
        line(x) > 0, jnp.array([[2.0, 0.8], [0.8, 1.5]]), jnp.array([[1.0, -0.5], [-0.5, 2.0]])
    )


def exact_on_the_disc(x, a):
    """Δu = sign(x₁ - a) in the unit disc, u = 0 on the circle, away from the centre: w = (x₁ -
    a)|x₁ - a|/2 solves the equation, and what is left is harmonic with the boundary values -w. Its
    Schwarz integral over the arc x₁ > a, P = (cos θ - a)² a Laurent polynomial in ζ, is
    elementary."""
    z = x[:, 0] + 1j * x[:, 1]
    end, start = np.exp(1j * np.arccos(a)), np.exp(-1j * np.arccos(a))
    P = {2: 0.25, 1: -a, 0: 0.5 + a * a, -1: -a, -2: 0.25}

    def power(k):
        """∫ ζ^k dζ over the arc."""
        return 2j * np.arccos(a) if k == -1 else (end ** (k + 1) - start ** (k + 1)) / (k + 1)

    def divided(k):
        """∫ (ζ^k - z^k)/(ζ - z) dζ over the arc."""
        if k >= 0:
            return sum((z ** (k - 1 - j) * power(j) for j in range(k)), 0 * z)
        return -sum(z ** (k + j) * power(-1 - j) for j in range(-k))

    logarithm = np.log(np.abs(end - z) / np.abs(start - z)) + 1j * np.mod(
        np.angle((end - z) / (start - z)), 2 * np.pi
    )
    cauchy = sum(c * z**k for k, c in P.items()) * logarithm + sum(
        c * divided(k) for k, c in P.items()
    )
    arc_part = (2 * cauchy - sum(c * power(k - 1) for k, c in P.items())) / (2j * np.pi)
    harmonic = (P[0] + 2 * P[1] * z + 2 * P[2] * z**2) / 2 - arc_part
    return (x[:, 0] - a) * np.abs(x[:, 0] - a) / 2 + np.real(harmonic)


def test_the_reference_solves_the_equation():
    x = DISC.interior_points(200, seed=1)
    x = x[
        (np.linalg.norm(x, axis=1) > 0.3)
        & (np.linalg.norm(x, axis=1) < 0.99)
        & (np.abs(line(x.T)) > 0.01)
    ]
    h = 1e-3
    around = sum(
        exact_on_the_disc(x + h * e, 0.3) for e in np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    ) - 4 * exact_on_the_disc(x, 0.3)
    np.testing.assert_allclose(around / h**2, np.sign(x[:, 0] - 0.3), atol=2e-3)
    circle, _ = DISC.boundary_points(50, seed=2)
    np.testing.assert_allclose(exact_on_the_disc(circle, 0.3), 0, atol=1e-12)


@pytest.mark.parametrize("a", [0.0, 0.3])
def test_a_jump_of_f_on_the_disc(a):
    problem = jump(lambda x: x[0] - a)
    solution = cordes.solve(problem, features=500, progress=False)
    x = DISC.interior_points(2000, seed=3)
    x = x[np.linalg.norm(x, axis=1) > 0.1]
    error = np.abs(solution(x) - exact_on_the_disc(x, a))
    assert np.max(error) <= 2e-8
    # Nothing cancels: points 1e-7 apart differ by the slope, which is below 1.
    assert np.max(np.abs(solution(x * (1 - 1e-7)) - solution(x))) <= 1e-7
    if a > 0:
        largest = solution.certificate.Linf
        assert largest is not None
        assert np.max(error) <= largest <= 3e-6


def test_a_jump_of_f_on_an_ellipse_at_an_oblique_angle():
    """x = My turns A = MMᵀ into the Laplacian and the ellipse into the disc."""
    M = np.array([[1.3, 0.3], [0.1, 0.9]])
    inverse = np.linalg.inv(M)
    problem = jump(
        lambda x: jnp.asarray(inverse[0]) @ x - 0.3, cordes.Ellipsoid([0, 0], M), M @ M.T
    )
    solution = cordes.solve(problem, features=500, progress=False)
    y = DISC.interior_points(2000, seed=3)
    y = y[np.linalg.norm(y, axis=1) > 0.1]
    assert np.max(np.abs(solution(y @ M.T) - exact_on_the_disc(y, 0.3))) <= 5e-8


@pytest.mark.parametrize(
    "problem",
    [cordes.Linear(DISC, matrices, 1.0, interfaces=[line]), jump(arc)],
    ids=["matrix", "arc"],
)
def test_jumps_without_a_known_solution_are_certified(problem):
    solution = cordes.solve(problem, features=500, progress=False)
    largest = solution.certificate.Linf
    assert largest is not None
    assert largest <= 2e-5
    other = cordes.solve(problem, seed=1, features=500, progress=False)
    x = DISC.interior_points(500, seed=4)
    assert np.max(np.abs(solution(x) - other(x))) <= 2 * largest


def test_points_are_found_where_a_coefficient_jumps():
    problem = jump(line)
    points = find_singular_points(DISC, problem.interfaces, problem.coefficients)
    locations = np.array(sorted(point.location.tolist() for point in points))
    np.testing.assert_allclose(locations, [[0.3, -np.sqrt(0.91)], [0.3, np.sqrt(0.91)]], atol=1e-14)
    for point in points:
        np.testing.assert_allclose(
            np.sort(np.diff(point.rays)), [np.arccos(0.3), np.pi - np.arccos(0.3)], atol=1e-12
        )
        np.testing.assert_allclose(point.others, [-point.location * [-1, 1]], atol=1e-14)
    smooth = cordes.Linear(DISC, 1.0, 1.0, interfaces=[line])
    assert not find_singular_points(DISC, smooth.interfaces, smooth.coefficients)


@pytest.mark.parametrize(
    "problem",
    [jump(line), jump(arc), cordes.Linear(DISC, matrices, 1.0, interfaces=[line])],
    ids=["line", "arc", "matrix"],
)
def test_functions_vanish_on_the_boundary_and_are_smooth_enough(problem):
    functions = System(problem).ansatz.singular
    circle, _ = DISC.boundary_points(300, seed=4)
    assert np.max(np.abs(functions.values(circle))) < 1e-12
    phi = problem.interfaces[0]
    for t in (0.2, 0.5, 0.8):
        # On the interface, by bisection along a chord.
        low, high = np.array([-0.5, t - 0.5]), np.array([0.8, t - 0.5])
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.sign(phi(middle)) == np.sign(phi(low)) else (low, middle)
            )
        near = low + np.array([[1e-9, 0], [-1e-9, 0]])
        gradients = [
            functions.rows(near, np.zeros(2), np.tile(e, (2, 1)), np.zeros((2, 2, 2)))
            for e in np.eye(2)
        ]
        bends = [
            functions.rows(near, np.zeros(2), np.zeros((2, 2)), np.tile(np.outer(e, e), (2, 1, 1)))
            for e in np.eye(2)
        ]
        slack = 4e-9 * (1 + np.max(np.abs(bends)))
        assert max(np.max(np.abs(gradient[0] - gradient[1])) for gradient in gradients) < slack


def test_rows_and_jets_are_derivatives_of_the_values():
    functions = System(jump(arc)).ansatz.singular
    amplitudes = np.random.default_rng(0).standard_normal(functions.count)
    x = DISC.interior_points(40, seed=6) * 0.9
    x = x[np.abs(arc(x.T)) > 0.02]
    h, jet = 1e-5, functions.combined_jet(x, amplitudes)
    for k, e in enumerate(np.eye(2)):
        ahead, behind = (functions.combined_jet(x + sign * h * e, amplitudes) for sign in (1, -1))
        size = 1 + np.max(np.abs(jet.hessian))
        np.testing.assert_allclose(
            (ahead.value - behind.value) / (2 * h), jet.gradient[:, k], atol=1e-7 * size
        )
        np.testing.assert_allclose(
            (ahead.gradient - behind.gradient) / (2 * h), jet.hessian[:, k], atol=1e-6 * size
        )
    second = np.tile([[1.0, 0.2], [0.2, 0.7]], (len(x), 1, 1))
    rows = (
        functions.rows(x, np.full(len(x), 0.5), np.tile([0.3, -0.1], (len(x), 1)), second)
        @ amplitudes
    )
    expected = (
        0.5 * jet.value
        + np.asarray(jet.gradient) @ np.array([0.3, -0.1])
        + np.sum(second * jet.hessian, axis=(1, 2))
    )
    np.testing.assert_allclose(rows, expected, atol=1e-10 * np.max(np.abs(expected)))


def test_points_and_answers_are_kept(tmp_path):
    problem = jump(line)
    point = System(problem).singular_points[0]
    again = SingularPoint.from_data(point.as_data())
    assert again.interface == 0
    np.testing.assert_array_equal(again.others, point.others)
    solution = cordes.solve(problem, features=250, progress=False)
    x = DISC.interior_points(50, seed=1)
    np.testing.assert_allclose(
        cordes.load(solution.save(tmp_path / "a.cordes"), problem)(x), solution(x), atol=1e-13
    )
