"""Control problems and Monge–Ampère equations of the gallery against formulas by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nonlinear_jets import CUBE, IDENTITY, SQUARE, jets, random_jets, residuals, source
from scipy.optimize import minimize

import cordes
from cordes.jet import Jet, jet_of
from cordes.problems.condition import epsilon_at

NONLINEAR = [
    "ex4.5-hjb",
    "ex4.6-monge-ampere",
    "smears-suli-2014",
    "switching-control",
    "froese-oberman-c1",
    "monge-ampere-3d",
]


@pytest.mark.parametrize("name", NONLINEAR)
def test_exact_solutions_solve_their_equations(name):
    problem = cordes.gallery[name]
    assert problem.name == name
    assert not problem.linear
    points = problem.domain.interior_points(400, seed=21)
    jet = jets(problem, points)
    assert np.max(np.abs(residuals(problem, points, jet))) < 1e-10
    # A perturbed solution does not pass.
    wrong = jet._replace(hessian=jet.hessian + 1e-6 * np.eye(points.shape[1]))
    assert np.median(np.abs(residuals(problem, points, wrong))) > 1e-8


@pytest.mark.parametrize("name", NONLINEAR)
def test_frozen_at_the_solution_the_linear_equation_has_it_as_solution(name):
    problem = cordes.gallery[name]
    points = problem.domain.interior_points(200, seed=22)
    jet = jets(problem, points)
    frozen = problem.coefficients(points, jet)
    value = (
        np.sum(frozen.A * jet.hessian, axis=(1, 2))
        + np.sum(frozen.b * jet.gradient, axis=1)
        - frozen.c * jet.value
    )
    # Where f = 0 the determinant is raised to keep the step elliptic, and its right-hand side is
    # raised with it.
    regular = (
        np.linalg.eigvalsh(jet.hessian)[:, 0] > 0.05
        if name == "froese-oberman-c1"
        else np.full(200, True)
    )
    np.testing.assert_allclose(value[regular], frozen.f[regular], rtol=0, atol=1e-10)


def test_the_paper_example_is_degenerate():
    problem = cordes.gallery["ex4.5-hjb"]
    points = problem.domain.interior_points(300, seed=23)
    x, y = points.T
    sign = np.sign(x * y)
    matrices = {
        1: np.array([[2, 0.5], [0.5, 1.5]])
        + sign[:, None, None] * np.array([[1, 0.5], [0.5, 0.5]]),
        2: np.array([[1.5, 0.5], [0.5, 2]])
        + sign[:, None, None] * np.array([[0.5, 0.5], [0.5, 1]]),
    }
    np.testing.assert_array_equal(problem.controls, [1, 2])
    for a, A in matrices.items():
        local = problem.pairs(points, np.full(300, float(a)))
        np.testing.assert_allclose(local.A, A, atol=1e-15)
        np.testing.assert_array_equal(
            local.A[sign < 0], np.broadcast_to(IDENTITY, (np.sum(sign < 0), 2, 2))
        )
        np.testing.assert_array_equal(local.b, np.tile([1.0, 0.0], (300, 1)))
        np.testing.assert_array_equal(local.c, np.ones(300))
        product = np.sin(x) * np.sin(y)
        expected = (
            -(A[:, 0, 0] + A[:, 1, 1] + 1) * product
            + 2 * A[:, 0, 1] * np.cos(x) * np.cos(y)
            + np.cos(x) * np.sin(y)
        )
        np.testing.assert_allclose(local.f, expected, atol=1e-13)
        # Each control alone has the solution u.
        jet = jets(problem, points)
        alone = (
            np.sum(local.A * jet.hessian, axis=(1, 2)) + jet.gradient[:, 0] - jet.value - local.f
        )
        assert np.max(np.abs(alone)) < 1e-12


def rotated(theta, phi):
    """½RᵀσσᵀR, multiplied out."""
    sigma = np.array([[1, np.sin(theta)], [0, np.cos(theta)]])
    R = np.array([[np.cos(phi), -np.sin(phi)], [np.sin(phi), np.cos(phi)]])
    return 0.5 * R.T @ sigma @ sigma.T @ R


def largest(hessian):
    """sup (A:H - √3 sin²θ/π²) by a grid and a local search, nothing of it from the closed form."""

    def loss(a):
        return -np.sum(rotated(*a) * hessian) + 3**0.5 * np.sin(a[0]) ** 2 / np.pi**2

    grid = [
        (theta, phi)
        for theta in np.linspace(0, np.pi / 3, 13)
        for phi in np.linspace(0, np.pi, 24, endpoint=False)
    ]
    start = min(grid, key=loss)
    found = minimize(
        loss,
        start,
        method="L-BFGS-B",
        bounds=[(0, np.pi / 3), (-np.pi, 2 * np.pi)],
        options={"ftol": 1e-15, "gtol": 1e-11},
    )
    return -min(found.fun, loss(start))


def test_rotated_diffusions():
    problem = cordes.gallery["smears-suli-2014"]
    points = problem.domain.interior_points(12, seed=24)
    for theta, phi in problem.controls[::17]:
        np.testing.assert_allclose(
            problem.A(points[0], jnp.array([theta, phi])), rotated(theta, phi), atol=1e-15
        )
    assert problem.controls[:, 0].min() == 0
    assert problem.controls[:, 0].max() == pytest.approx(np.pi / 3, rel=1e-15)
    for x, f in zip(points, source(problem, points, jnp.array([0.4, 1.0])), strict=True):
        (s, t), (k, m) = np.sin(np.pi * x), np.pi * np.cos(np.pi * x)
        e, u = np.exp(x[0] * x[1]), np.exp(x[0] * x[1]) * s * t
        first = x[1] * s + k
        mixed = e * (x[0] * first * t + s * t + first * m)
        hessian = np.array(
            [
                [e * t * (x[1] ** 2 * s + 2 * x[1] * k - np.pi**2 * s), mixed],
                [mixed, e * s * (x[0] ** 2 * t + 2 * x[0] * m - np.pi**2 * t)],
            ]
        )
        assert f == pytest.approx(
            3**0.5 * np.sin(0.4) ** 2 / np.pi**2 + largest(hessian) - np.pi**2 * u, abs=1e-8
        )


@pytest.mark.parametrize("scale", [0.05, 0.2, 1.0])
def test_the_maximiser_of_the_rotated_diffusions(scale):
    problem = cordes.gallery["smears-suli-2014"]
    points, jet = problem.domain.interior_points(40, seed=25), random_jets(40, 2, 26, scale)
    best = problem.policy(points, jet)
    theta, phi = best.T
    assert np.all((theta >= 0) & (theta <= np.pi / 3 + 1e-15) & (phi >= 0) & (phi <= np.pi))
    # Both the free maximum and the bound of θ occur among the scales.
    assert np.any(theta < 1.0) if scale < 1 else np.any(theta > 1.047)
    for i in range(40):
        mine = (
            np.sum(rotated(*best[i]) * jet.hessian[i]) - 3**0.5 * np.sin(theta[i]) ** 2 / np.pi**2
        )
        assert mine == pytest.approx(largest(jet.hessian[i]), abs=1e-8)
        sampled = [
            np.sum(rotated(*a) * jet.hessian[i]) - 3**0.5 * np.sin(a[0]) ** 2 / np.pi**2
            for a in problem.controls
        ]
        assert mine >= max(sampled) - 1e-13


def test_the_maximiser_where_all_directions_are_alike():
    problem = cordes.gallery["smears-suli-2014"]
    x, zero = jnp.array([0.3, 0.4]), jnp.zeros(2)
    for hessian in (np.zeros((2, 2)), 3 * IDENTITY):
        jet = Jet(jnp.asarray(0.0), zero, jnp.asarray(hessian))
        control = problem.maximiser(x, jet)
        assert float(control[0]) == 0.0
        derivative = jax.jacfwd(lambda H, jet=jet: problem.residual(x, jet._replace(hessian=H)))(
            jet.hessian
        )
        np.testing.assert_allclose(derivative, IDENTITY / 2, atol=1e-15)


def curve(points):
    return 2 * (points[:, 1] + points[:, 0] ** 2) - 0.5


def test_switching_control():
    problem = cordes.gallery["switching-control"]
    points = problem.domain.interior_points(4000, seed=27)
    x, y = points.T
    psi = curve(points)
    p, q, e = 1 - x**2, 1 - y**2, np.exp(x / 2)
    u, uy = p * q * e, -2 * y * p * e
    uxx, uyy = e * q * (p / 4 - 2 * x - 2), -2 * p * e
    first = uxx + 3 * uyy + uy - u - 8 * np.maximum(psi, 0)
    second = 3 * uxx + uyy - uy - u - np.maximum(-psi, 0)
    np.testing.assert_allclose(source(problem, points, 0.0), first, atol=1e-12)
    np.testing.assert_allclose(source(problem, points, 1.0), second, atol=1e-12)
    assert max(first.max(), second.max()) < 0  # Running costs are positive.
    # At the solution the policy switches on the parabola, whether the multiplier is there or not.
    clear = np.abs(psi) > 1e-9
    for scaled in (True, False):
        np.testing.assert_array_equal(
            problem.policy(points[clear], jets(problem, points[clear]), scaled), psi[clear] > 0
        )
    assert 0.3 < np.mean(psi > 0) < 0.7


def test_the_policy_of_the_first_iterate_is_not_the_last():
    problem = cordes.gallery["switching-control"]

    def mean(x):
        parts = [problem.at(x, jnp.asarray(a)) for a in (0.0, 1.0)]
        weights = [jnp.trace(part.A) / jnp.sum(part.A**2) / 2 for part in parts]
        return [
            sum(weight * entry for weight, entry in zip(weights, entries, strict=True))
            for entries in zip(*parts, strict=True)
        ]

    start = cordes.Linear(problem.domain, *(lambda x, i=i: mean(x)[i] for i in (0, 3, 1, 2)))
    points = problem.domain.interior_points(1000, seed=28)
    frozen = problem.coefficients(points)
    for ours, theirs in zip(start.coefficients(points), frozen, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
    solution = cordes.solve(start, features=200, progress=False)
    changed = problem.policy(points, solution.jet(points)) != (curve(points) > 0)
    assert np.mean(changed) == pytest.approx(1 / 6, abs=0.05)
    # The linear equation of either control alone has another solution.
    for a, side in ((0.0, 8), (1.0, -1)):
        defect = jax.jit(jax.vmap(lambda x, a=a: problem.defect(x, jet_of(problem.exact)(x), a)))(
            points
        )
        np.testing.assert_allclose(defect, np.maximum(side * curve(points), 0), atol=1e-12)


def test_determinants():
    points = SQUARE.interior_points(200, seed=29)
    square = np.sum(points**2, axis=1)
    hessian = np.exp(square / 2)[:, None, None] * (
        IDENTITY + points[:, :, None] * points[:, None, :]
    )
    np.testing.assert_allclose(
        source(cordes.gallery["ex4.6-monge-ampere"], points), np.linalg.det(hessian), rtol=1e-13
    )
    points = CUBE.interior_points(200, seed=30)
    share = np.exp(points) / (1 + np.sum(np.exp(points), axis=1, keepdims=True))
    hessian = np.eye(3) * share[:, :, None] - share[:, :, None] * share[:, None, :]
    problem = cordes.gallery["monge-ampere-3d"]
    np.testing.assert_allclose(source(problem, points), np.linalg.det(hessian), rtol=1e-12)
    np.testing.assert_allclose(jets(problem, points).hessian, hessian, atol=1e-15)


def test_the_cofactors_in_three_dimensions_are_nowhere_cordes():
    problem = cordes.gallery["monge-ampere-3d"]
    axis = np.linspace(0, 1, 11)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    jet = jets(problem, points)
    A = problem.coefficients(points, jet).A
    small, middle, large = np.linalg.eigvalsh(A[-1])
    assert large / small == pytest.approx(1 + 3 * np.e, rel=1e-10)
    assert middle == pytest.approx(small, rel=1e-10)
    epsilon = epsilon_at(A, np.zeros(A.shape[:-1]), np.zeros(len(A)), None)
    assert epsilon[0] == pytest.approx(
        0, abs=1e-14
    )  # The origin, where the factor is exactly four.
    assert np.all(epsilon[1:] < -1e-3)


def test_degenerate_disk():
    problem = cordes.gallery["froese-oberman-c1"]
    points = SQUARE.interior_points(500, seed=31)
    distance = np.linalg.norm(points - 0.5, axis=1)
    np.testing.assert_allclose(
        source(problem, points), np.maximum(1 - 0.2 / distance, 0), atol=1e-14
    )
    np.testing.assert_allclose(
        jets(problem, points).value, 0.5 * np.maximum(distance - 0.2, 0) ** 2, atol=1e-15
    )
    assert 0 < np.mean(distance < 0.2) < 0.2
    center = np.array([[0.5, 0.5]])
    assert all(np.all(part == 0) for part in jets(problem, center))
    assert source(problem, center) == 0
    (interface,) = problem.interfaces
    assert float(interface(jnp.array([0.5, 0.7]))) == pytest.approx(0, abs=1e-16)
