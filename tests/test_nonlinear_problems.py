"""Control problems and Monge–Ampère equations: the gallery against formulas by hand, frozen equations against derivatives, and bad input."""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import cordes
from cordes.blocks import BLOCK
from cordes.condition import epsilon_at
from cordes.errors import CoefficientError, OptionError
from cordes.jet import Jet, jet_of

NONLINEAR = ["ex4.5-hjb", "ex4.6-monge-ampere", "smears-suli-2014", "switching-control", "froese-oberman-c1", "monge-ampere-3d"]
SQUARE, CUBE = cordes.Box([0, 0], [1, 1]), cordes.Box([0] * 3, [1] * 3)
IDENTITY = np.eye(2)


def jets(problem, points):
    return Jet(*(np.asarray(part) for part in jax.jit(jax.vmap(jet_of(problem.exact)))(points)))


def random_jets(count, d, seed=0, scale=1.0):
    generator = np.random.default_rng(seed)
    hessian = scale * generator.standard_normal((count, d, d))
    return Jet(generator.standard_normal(count), generator.standard_normal((count, d)), hessian + np.swapaxes(hessian, 1, 2))


def residuals(problem, points, jet):
    return np.asarray(jax.jit(jax.vmap(lambda x, *parts: problem.residual(x, Jet(*parts))))(points, *jet))


def source(problem, points, *control):
    return np.asarray(jax.jit(jax.vmap(lambda x: problem.f(x, *control)))(points))


# The gallery ----------------------------------------------------------------------------------------------------------------------------------------


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
    value = np.sum(frozen.A * jet.hessian, axis=(1, 2)) + np.sum(frozen.b * jet.gradient, axis=1) - frozen.c * jet.value
    # Where f = 0 the determinant is raised to keep the step elliptic, and its right-hand side is raised with it.
    regular = np.linalg.eigvalsh(jet.hessian)[:, 0] > 0.05 if name == "froese-oberman-c1" else np.full(200, True)
    np.testing.assert_allclose(value[regular], frozen.f[regular], rtol=0, atol=1e-10)


def test_the_paper_example_is_degenerate():
    problem = cordes.gallery["ex4.5-hjb"]
    points = problem.domain.interior_points(300, seed=23)
    x, y = points.T
    sign = np.sign(x * y)
    matrices = {
        1: np.array([[2, 0.5], [0.5, 1.5]]) + sign[:, None, None] * np.array([[1, 0.5], [0.5, 0.5]]),
        2: np.array([[1.5, 0.5], [0.5, 2]]) + sign[:, None, None] * np.array([[0.5, 0.5], [0.5, 1]]),
    }
    np.testing.assert_array_equal(problem.controls, [1, 2])
    for a, A in matrices.items():
        local = problem.pairs(points, np.full(300, float(a)))
        np.testing.assert_allclose(local.A, A, atol=1e-15)
        np.testing.assert_array_equal(local.A[sign < 0], np.broadcast_to(IDENTITY, (np.sum(sign < 0), 2, 2)))
        np.testing.assert_array_equal(local.b, np.tile([1.0, 0.0], (300, 1)))
        np.testing.assert_array_equal(local.c, np.ones(300))
        product = np.sin(x) * np.sin(y)
        expected = -(A[:, 0, 0] + A[:, 1, 1] + 1) * product + 2 * A[:, 0, 1] * np.cos(x) * np.cos(y) + np.cos(x) * np.sin(y)
        np.testing.assert_allclose(local.f, expected, atol=1e-13)
        # Each control alone has the solution u.
        jet = jets(problem, points)
        alone = np.sum(local.A * jet.hessian, axis=(1, 2)) + jet.gradient[:, 0] - jet.value - local.f
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

    grid = [(theta, phi) for theta in np.linspace(0, np.pi / 3, 13) for phi in np.linspace(0, np.pi, 24, endpoint=False)]
    start = min(grid, key=loss)
    found = minimize(loss, start, method="L-BFGS-B", bounds=[(0, np.pi / 3), (-np.pi, 2 * np.pi)], options={"ftol": 1e-15, "gtol": 1e-11})
    return -min(found.fun, loss(start))


def test_rotated_diffusions():
    problem = cordes.gallery["smears-suli-2014"]
    points = problem.domain.interior_points(12, seed=24)
    for theta, phi in problem.controls[::17]:
        np.testing.assert_allclose(problem.A(points[0], jnp.array([theta, phi])), rotated(theta, phi), atol=1e-15)
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
        assert f == pytest.approx(3**0.5 * np.sin(0.4) ** 2 / np.pi**2 + largest(hessian) - np.pi**2 * u, abs=1e-8)


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
        mine = np.sum(rotated(*best[i]) * jet.hessian[i]) - 3**0.5 * np.sin(theta[i]) ** 2 / np.pi**2
        assert mine == pytest.approx(largest(jet.hessian[i]), abs=1e-8)
        sampled = [np.sum(rotated(*a) * jet.hessian[i]) - 3**0.5 * np.sin(a[0]) ** 2 / np.pi**2 for a in problem.controls]
        assert mine >= max(sampled) - 1e-13


def test_the_maximiser_where_all_directions_are_alike():
    problem = cordes.gallery["smears-suli-2014"]
    x, zero = jnp.array([0.3, 0.4]), jnp.zeros(2)
    for hessian in (np.zeros((2, 2)), 3 * IDENTITY):
        jet = Jet(jnp.asarray(0.0), zero, jnp.asarray(hessian))
        control = problem.maximiser(x, jet)
        assert float(control[0]) == 0.0
        derivative = jax.jacfwd(lambda H, jet=jet: problem.residual(x, jet._replace(hessian=H)))(jet.hessian)
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
        np.testing.assert_array_equal(problem.policy(points[clear], jets(problem, points[clear]), scaled), psi[clear] > 0)
    assert 0.3 < np.mean(psi > 0) < 0.7


def test_the_policy_of_the_first_iterate_is_not_the_last():
    problem = cordes.gallery["switching-control"]

    def mean(x):
        parts = [problem.at(x, jnp.asarray(a)) for a in (0.0, 1.0)]
        weights = [jnp.trace(part.A) / jnp.sum(part.A**2) / 2 for part in parts]
        return [sum(weight * entry for weight, entry in zip(weights, entries, strict=True)) for entries in zip(*parts, strict=True)]

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
        defect = jax.jit(jax.vmap(lambda x, a=a: problem.defect(x, jet_of(problem.exact)(x), a)))(points)
        np.testing.assert_allclose(defect, np.maximum(side * curve(points), 0), atol=1e-12)


def test_determinants():
    points = SQUARE.interior_points(200, seed=29)
    square = np.sum(points**2, axis=1)
    hessian = np.exp(square / 2)[:, None, None] * (IDENTITY + points[:, :, None] * points[:, None, :])
    np.testing.assert_allclose(source(cordes.gallery["ex4.6-monge-ampere"], points), np.linalg.det(hessian), rtol=1e-13)
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
    assert epsilon[0] == pytest.approx(0, abs=1e-14)  # The origin, where the factor is exactly four.
    assert np.all(epsilon[1:] < -1e-3)


def test_degenerate_disk():
    problem = cordes.gallery["froese-oberman-c1"]
    points = SQUARE.interior_points(500, seed=31)
    distance = np.linalg.norm(points - 0.5, axis=1)
    np.testing.assert_allclose(source(problem, points), np.maximum(1 - 0.2 / distance, 0), atol=1e-14)
    np.testing.assert_allclose(jets(problem, points).value, 0.5 * np.maximum(distance - 0.2, 0) ** 2, atol=1e-15)
    assert 0 < np.mean(distance < 0.2) < 0.2
    center = np.array([[0.5, 0.5]])
    assert all(np.all(part == 0) for part in jets(problem, center))
    assert source(problem, center) == 0
    (interface,) = problem.interfaces
    assert float(interface(jnp.array([0.5, 0.7]))) == pytest.approx(0, abs=1e-16)


# Frozen equations -----------------------------------------------------------------------------------------------------------------------------------


def random_controls(sense, count=2500, d=2):
    """More controls than one block holds, with random coefficients: a few numbers each, looked up by the control itself."""
    generator = np.random.default_rng(32)
    roots, drifts = generator.standard_normal((count, d, d)), generator.standard_normal((count, d))
    numbers = generator.uniform(0.1, 1, (count, 2))
    A = roots @ np.swapaxes(roots, 1, 2) + 0.2 * np.eye(d)
    controls = np.concatenate([A.reshape(count, -1), drifts, numbers], axis=1)
    problem = cordes.HJB(
        cordes.Box([0] * d, [1] * d),
        controls,
        lambda x, a: a[: d * d].reshape(d, d) * (1 + x[0]),
        lambda x, a: a[-1] * x[1],
        b=lambda x, a: a[d * d : d * d + d],
        c=lambda x, a: a[-2],
        sense=sense,
    )
    return problem, A, drifts, numbers


@pytest.mark.parametrize("sense", ["sup", "inf"])
@pytest.mark.parametrize("scaled", [True, False])
def test_the_best_control_by_brute_force(sense, scaled):
    problem, A, drifts, numbers = random_controls(sense)
    points, jet = problem.domain.interior_points(100, seed=33), random_jets(100, 2, 34)
    compare = jax.jit(jax.vmap(lambda x, *parts: problem.best_index(x, Jet(*parts), scaled)))
    index, policy = np.asarray(compare(points, *jet)), problem.policy(points, jet, scaled)
    signed = np.zeros(100)
    for i, x in enumerate(points):
        matrices = A * (1 + x[0])
        values = np.sum(matrices * jet.hessian[i], axis=(1, 2)) + drifts @ jet.gradient[i] - numbers[:, 0] * jet.value[i] - numbers[:, 1] * x[1]
        weights = np.trace(matrices, axis1=1, axis2=2) / np.sum(matrices**2, axis=(1, 2)) if scaled else 1.0
        signed[i] = np.max(values) if sense == "sup" else np.min(values)
        assert index[i] == (np.argmax if sense == "sup" else np.argmin)(weights * values)
        np.testing.assert_array_equal(policy[i], problem.controls[index[i]])
    assert len(np.unique(index)) > 20
    assert index.max() >= 2048  # Beyond the second block.
    np.testing.assert_allclose(residuals(problem, points, jet), signed, rtol=1e-12)


def test_the_multiplier_changes_the_best_control():
    problem, *_ = random_controls("sup")
    points, jet = problem.domain.interior_points(100, seed=33), random_jets(100, 2, 34)
    assert np.mean(np.any(problem.policy(points, jet, True) != problem.policy(points, jet, False), axis=1)) > 0.5


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_frozen_control_equation_is_the_derivative(sense):
    problem, *_ = random_controls(sense)
    points, jet, change = problem.domain.interior_points(50, seed=35), random_jets(50, 2, 36), random_jets(50, 2, 37)
    A, b, c, f = problem.coefficients(points, jet, scaled=False)

    def apply(state):
        return np.sum(A * state.hessian, axis=(1, 2)) + np.sum(b * state.gradient, axis=1) - c * state.value

    np.testing.assert_allclose(apply(jet) - f, residuals(problem, points, jet), rtol=1e-12, atol=1e-12)
    moved = [residuals(problem, points, Jet(*(part + step * other for part, other in zip(jet, change, strict=True)))) for step in (1e-6, -1e-6)]
    # With 2500 controls the best one may change within the step, at a few points only.
    close = np.abs((moved[0] - moved[1]) / 2e-6 - apply(change)) < 1e-6
    assert np.mean(close) > 0.9
    # A supremum lies above its tangents and an infimum below.
    far = residuals(problem, points, Jet(*(part + other for part, other in zip(jet, change, strict=True))))
    excess = far - (apply(jet) - f + apply(change))
    assert np.all(problem.sign * excess > -1e-10)
    assert np.median(np.abs(excess)) > 1e-3


def test_the_mean_start_of_a_control_problem():
    controls = np.linspace(0, 1, 5)
    problem = cordes.HJB(SQUARE, controls, lambda x, a: (1 + a) * jnp.eye(2), lambda x, a: a + x[0], b=lambda x, a: a * x, c=lambda x, a: a)
    points = SQUARE.interior_points(30, seed=38)
    frozen = problem.coefficients(points)
    weights = 1 / (1 + controls)  # tr A/|A|² of (1 + a)I.
    np.testing.assert_allclose(frozen.A, np.tile(IDENTITY, (30, 1, 1)), rtol=1e-14)
    np.testing.assert_allclose(frozen.b, np.mean(weights * controls) * points, rtol=1e-14)
    np.testing.assert_allclose(frozen.c, np.full(30, np.mean(weights * controls)), rtol=1e-14)
    np.testing.assert_allclose(frozen.f, np.mean(weights * (controls + points[:, :1]), axis=1), rtol=1e-14)


def determinant_problem(d):
    return cordes.MongeAmpere(cordes.Box([0] * d, [1] * d), lambda x: 0.5 + x[0])


def by_eigenvalues(values, d, seed):
    """Symmetric matrices with given eigenvalues (n, d) in random directions."""
    frames = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), d, d)))[0]
    return (frames * values[:, None, :]) @ np.swapaxes(frames, 1, 2)


def state(hessian):
    n, d = hessian.shape[:2]
    return Jet(np.zeros(n), np.zeros((n, d)), hessian)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("damping", [1.0, 0.25])
def test_the_frozen_determinant_is_newtons(d, damping):
    problem = determinant_problem(d)
    points = problem.domain.interior_points(40, seed=39)
    hessian = by_eigenvalues(np.random.default_rng(40).uniform(0.3, 3, (40, d)), d, 41)
    change = random_jets(40, d, 42).hessian
    frozen = problem.coefficients(points, state(hessian), damping=damping)
    determinant, derivative = jax.jvp(jnp.linalg.det, (hessian,), (change,))
    np.testing.assert_allclose(np.sum(frozen.A * change, axis=(1, 2)), derivative, atol=1e-10)
    f = 0.5 + points[:, 0]
    own = np.sum(frozen.A * hessian, axis=(1, 2)) - frozen.f
    np.testing.assert_allclose(own, damping * (np.asarray(determinant) - f), atol=1e-10)
    np.testing.assert_allclose(residuals(problem, points, state(hessian)), np.asarray(determinant) - f, atol=1e-12)
    assert not np.any(frozen.b)
    assert not np.any(frozen.c)


@pytest.mark.parametrize("d", [2, 3])
def test_the_frozen_determinant_is_elliptic_everywhere(d):
    problem = determinant_problem(d)
    points = problem.domain.interior_points(200, seed=43)
    hessian = random_jets(200, d, 44).hessian
    eigenvalues = np.linalg.eigvalsh(hessian)
    assert np.any(eigenvalues[:, -1] < 0)  # Concave states are among them.
    frozen = problem.coefficients(points, state(hessian))
    assert np.all(np.linalg.eigvalsh(frozen.A) > 0)
    # With a single negative eigenvalue the tangent has the value det H at H, so a fixed point is a solution.
    single = (eigenvalues[:, 0] < 0) & (eigenvalues[:, 1] > 0.1)
    assert np.sum(single) > 20
    own = np.sum(frozen.A * hessian, axis=(1, 2)) - frozen.f
    np.testing.assert_allclose(own[single], np.linalg.det(hessian[single]) - 0.5 - points[single, 0], atol=1e-10)


def test_the_start_of_a_determinant():
    points = CUBE.interior_points(20, seed=45)
    frozen = determinant_problem(3).coefficients(points)
    np.testing.assert_array_equal(frozen.A, np.tile(np.eye(3), (20, 1, 1)))
    np.testing.assert_allclose(frozen.f, 3 * np.cbrt(0.5 + points[:, 0]), rtol=1e-14)


@pytest.mark.parametrize("damping", [1.0, 0.5])
def test_the_convex_form(damping):
    problem = determinant_problem(2)
    points = SQUARE.interior_points(60, seed=46)
    hessian = random_jets(60, 2, 47).hessian
    f = 0.5 + points[:, 0]
    # The first third solves det = f and is convex, the second solves it and is concave.
    ratio = np.random.default_rng(48).uniform(0.5, 2, 40)
    roots = np.sqrt(f[:40])[:, None] * np.stack([ratio, 1 / ratio], axis=1)
    roots[20:] *= -1
    hessian[:40] = by_eigenvalues(roots, 2, 49)
    A, b, c, right = problem.coefficients(points, state(hessian), "convex", damping)
    np.testing.assert_allclose(np.trace(A, axis1=1, axis2=2), 1, rtol=1e-14)
    assert np.all(np.linalg.eigvalsh(A) > 0)
    own = np.sum(A * hessian, axis=(1, 2)) - right
    assert np.max(np.abs(own[:20])) < 1e-12
    assert np.min(np.abs(own[20:])) > 1e-3
    assert np.max(np.abs(residuals(problem, points, state(hessian))[20:40])) < 1e-12  # The determinant alone cannot tell.
    # The infimum over A ≥ 0, tr A = 1, on a fine grid of eigenvalues and directions.
    share, angle = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, np.pi, 401)))
    cosine, sine = (2 * share - 1) * np.cos(2 * angle), (2 * share - 1) * np.sin(2 * angle)
    values = [
        0.5 * ((1 + cosine) * H[0, 0] + 2 * sine * H[0, 1] + (1 - cosine) * H[1, 1]) - 2 * np.sqrt(source * share * (1 - share))
        for H, source in zip(hessian, f, strict=True)
    ]
    np.testing.assert_allclose(own, damping * np.min(values, axis=1), atol=2e-3)
    assert np.all(own <= damping * np.min(values, axis=1) + 1e-12)
    assert not np.any(b)
    assert not np.any(c)


def test_the_convex_form_where_everything_vanishes():
    problem = cordes.MongeAmpere(SQUARE, 0.0)
    frozen = problem.coefficients(np.full((1, 2), 0.5), state(np.zeros((1, 2, 2))), "convex")
    np.testing.assert_array_equal(frozen.A[0], IDENTITY / 2)
    assert frozen.f == 0


def test_forms_that_do_not_exist():
    flat = state(np.tile(IDENTITY, (1, 1, 1)))
    with pytest.raises(OptionError, match="'concave'"):
        determinant_problem(2).coefficients(np.full((1, 2), 0.5), flat, "concave")
    with pytest.raises(OptionError, match="two dimensions"):
        determinant_problem(3).coefficients(np.full((1, 3), 0.5), state(np.tile(np.eye(3), (1, 1, 1))), "convex")


def test_many_controls_need_little_memory():
    d = 10
    problem = cordes.HJB(
        cordes.Box([0] * d, [1] * d), np.linspace(0, 1, 2000), lambda x, a: jnp.eye(d) + 0.05 * a * jnp.outer(x, x), lambda x, a: a * x[0]
    )
    arguments = [jnp.zeros((BLOCK, *shape)) for shape in ((d,), (), (d,), (d, d))]
    for scaled in (True, False):
        compiled = jax.jit(jax.vmap(lambda x, *jet, scaled=scaled: problem.best_index(x, Jet(*jet), scaled))).lower(*arguments).compile()
        analysis = compiled.memory_analysis()
        assert analysis is not None
        # All pairs at once would hold 2000·1024 matrices of 100 numbers: 1.6 GB.
        assert analysis.temp_size_in_bytes < 300e6


def test_thousands_of_controls_are_checked_and_compared():
    problem = cordes.HJB(SQUARE, np.linspace(0, 1, 5000), IDENTITY, lambda x, a: (a - x[0]) ** 2)
    points = SQUARE.interior_points(50, seed=50)
    best = problem.policy(points, random_jets(50, 2, 51))
    assert np.max(np.abs(best - points[:, 0])) <= 0.5 / 4999 + 1e-12
    assert len(problem.sampled_controls(16)) == 16
    assert "5000 controls" in repr(problem)


def test_representations():
    assert repr(cordes.gallery["ex4.5-hjb"]).startswith("HJB('ex4.5-hjb', Box(")
    assert repr(cordes.gallery["ex4.5-hjb"]).endswith("2 controls)")
    assert repr(cordes.MongeAmpere(SQUARE, 1.0)) == "MongeAmpere('monge-ampere', Box(lower=[0.0, 0.0], upper=[1.0, 1.0]))"


# Bad input ------------------------------------------------------------------------------------------------------------------------------------------


def control_problem(**changes):
    return cordes.HJB(**({"domain": SQUARE, "controls": [0.0, 1.0], "A": IDENTITY, "f": 1.0} | changes))


def matrix(off, other=None):
    return lambda x, a: jnp.array([[1.0, off(x, a)], [(other or off)(x, a), 1.0]])


BAD_CONTROL_PROBLEMS = {
    "empty": ({"controls": []}, r"controls is empty \(shape \(0,\)\)"),
    "controls without components": ({"controls": np.zeros((3, 0))}, r"controls is empty \(shape \(3, 0\)\)"),
    "ragged": ({"controls": [[1], [1, 2]]}, "controls is ragged.*same shape"),
    "texts": ({"controls": ["a", "b"]}, "could not convert.*'a'"),
    "scalar": ({"controls": 1.0}, r"controls = 1.0: pass an array of shape \(m, …\)"),
    "none": ({"controls": None}, "controls = None"),
    "NaN control": ({"controls": [[0, 1], [np.nan, 1]]}, r"control 1 is not finite: a = \[nan,  1.\]"),
    "infinite control": ({"controls": [0, 1, np.inf]}, "control 2 is not finite"),
    "indefinite": ({"A": matrix(lambda x, a: 2 * a)}, r"A is not positive definite: A\(\[0\..*control 1, a = 1.* has the eigenvalue -1"),
    "vanishing": ({"A": lambda x, a: (1 - a) * jnp.eye(2)}, "A is not positive definite.*control 1, a = 1.* eigenvalue 0"),
    "skew": ({"A": matrix(lambda x, a: a / 9, lambda x, a: 0)}, r"A is not symmetric: A\(\[0\..*control 1, a = 1.*pass \(A \+ Aᵀ\)/2"),
    "NaN of one control": ({"f": lambda x, a: jnp.log(1 - a - x[0] / 2 + 1e-9)}, r"f is not finite at \d+ of 2000.*nan for control 1, a = 1"),
    "NaN in A": ({"A": lambda x, a: jnp.eye(2) / (1 - a)}, "A is not finite.*control 1"),
    "infinite b": ({"b": lambda x, a: x / a}, "b is not finite.*control 0, a = 0"),
    "NaN c": ({"c": lambda x, a: jnp.sqrt(-a)}, "c is not finite.*control 1"),
    "shape of A": ({"A": lambda x, a: jnp.ones((2, 3))}, r"A\(x\) has shape \(2, 3\), but shape \(2, 2\)"),
    "constant for each control": ({"A": np.stack([IDENTITY, IDENTITY])}, r"A has shape \(2, 2, 2\), but shape \(2, 2\)"),
    "shape of b": ({"b": lambda x, a: a}, r"b\(x\) has shape \(\), but shape \(2,\)"),
    "constant b": ({"b": [1, 2, 3]}, r"b has shape \(3,\)"),
    "shape of c": ({"c": lambda x, a: x}, r"c\(x\) has shape \(2,\)"),
    "shape of f with vector controls": ({"controls": [[0, 1]], "f": lambda x, a: a}, r"f\(x\) has shape \(2,\), but shape \(\)"),
    "without a": ({"f": lambda x: x[0]}, "f failed.*takes 1 positional argument but 2"),
    "complex": ({"f": lambda x, a: 1j * a}, "complex"),
    "text": ({"f": "x"}, r"f is 'x': it must be a number.*function of \(x, a\)"),
    "float of a": ({"f": lambda x, a: float(a)}, "f cannot be traced by JAX: write it with jax.numpy"),
    "if on a": ({"A": lambda x, a: jnp.eye(2) if a > 0 else 2 * jnp.eye(2)}, "A cannot be traced.*jnp.where instead of if"),
    "numpy": ({"f": lambda x, a: np.sin(x[0])}, "f cannot be traced"),
    "maximiser of another shape": ({"maximiser": lambda x, jet: jnp.zeros(2)}, r"maximiser.*has shape \(2,\), but shape \(\)"),
    "maximiser is a number": ({"maximiser": 3}, "maximiser is 3: it must be a function"),
    "maximiser of x alone": ({"maximiser": lambda x: 0.0}, "maximiser failed"),
    "maximiser with if": ({"maximiser": lambda x, jet: 0.0 if jet.value > 0 else 1.0}, "maximiser cannot be traced"),
    "maximiser is NaN": ({"f": lambda x, a: a, "maximiser": lambda x, jet: jnp.nan}, "maximiser is not the best"),
    "discontinuous g": ({"g": lambda x: jnp.where(x[0] > 0.5, 1.0, 0.0)}, r"g is not continuous on the boundary: near \[0.5"),
    "interfaces": ({"interfaces": lambda x: x[0]}, "pass a list of functions"),
    "exact": ({"exact": lambda x: x}, r"exact\(x\) has shape \(2,\)"),
    "domain": ({"domain": "square"}, "domain is 'square'"),
}


@pytest.mark.parametrize("name", BAD_CONTROL_PROBLEMS)
def test_bad_control_problems(name):
    changes, message = BAD_CONTROL_PROBLEMS[name]
    with pytest.raises(CoefficientError, match=f"(?s){message}"):
        control_problem(**changes)


@pytest.mark.parametrize("sense", ["max", "SUP", None, 1, ["sup"]])
def test_senses_that_do_not_exist(sense):
    with pytest.raises(OptionError, match=re.escape(f"sense = {sense!r}: 'sup' or 'inf'.")):
        control_problem(sense=sense)


def test_a_late_control_is_named():
    def A(x, a):
        return (1 - 2.0 * (a == 4321) * (x[0] > 0.1)) * jnp.eye(2)

    with pytest.raises(CoefficientError, match=r"A is not positive definite: A\(\[0\..*control 4321, a = 4321"):
        control_problem(controls=np.arange(5000), A=A)


def test_a_maximiser_that_is_not_the_best_is_named():
    def problem(maximiser, sense="sup"):
        return control_problem(controls=np.linspace(-1, 1, 21), f=lambda x, a: -a * x[0], maximiser=maximiser, sense=sense)

    with pytest.raises(
        CoefficientError, match=r"maximiser is not the best: at x = \[0\..*it gives a = -1.*but control 20, a = 1.*It must give the sup"
    ):
        problem(lambda x, jet: -1.0)
    # Good at most points is not good enough: here it fails in a corner.
    with pytest.raises(CoefficientError, match=r"at x = \[0\.9\d*, 0\.[89]"):
        problem(lambda x, jet: jnp.where((x[0] > 0.9) & (x[1] > 0.8), -1.0, 1.0))
    assert problem(lambda x, jet: 1.0).maximiser is not None
    # The same for the infimum, of which the lower end is the best.
    assert problem(lambda x, jet: -1.0, "inf").maximiser is not None
    with pytest.raises(CoefficientError, match="It must give the inf"):
        problem(lambda x, jet: 1.0, "inf")


def test_an_undeclared_jump_of_one_control_is_warned_about():
    def f(x, a):
        return jnp.where(a == 2, jnp.where(x[0] > 0.3, 1.0, 0.0), x[1])

    with pytest.warns(cordes.UndeclaredJumpWarning, match=r"f jumps near x = \[0.3"):
        control_problem(controls=np.arange(4.0), f=f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        control_problem(controls=np.arange(4.0), f=f, interfaces=[lambda x: x[0] - 0.3])
        control_problem(controls=np.arange(4.0), f=lambda x, a: jnp.maximum(x[0] - 0.3, 0.0) * a)


BAD_DETERMINANTS = {
    "negative": ({"f": lambda x: x[0] - 0.5}, r"f is negative: f\(\[0\.0.* = -0\.4"),
    "negative constant": ({"f": -1.0}, "f is negative"),
    "NaN": ({"f": lambda x: jnp.sqrt(x[0] - 0.5)}, r"f is not finite at \d+ of 2000 sampled points: f\(\[0.*nan"),
    "infinite": ({"f": np.inf}, "f = inf is not finite"),
    "shape": ({"f": lambda x: x}, r"f\(x\) has shape \(2,\)"),
    "untraceable": ({"f": lambda x: float(x[0])}, "f cannot be traced by JAX"),
    "text": ({"f": "x"}, "f is 'x': it must be a number"),
    "discontinuous g": ({"f": 1.0, "g": lambda x: jnp.where(x[1] > 0.5, 1.0, 0.0)}, "g is not continuous on the boundary"),
    "NaN g": ({"f": 1.0, "g": lambda x: jnp.log(x[0] - 0.5)}, "g is not finite.*of the boundary"),
    "exact": ({"f": 1.0, "exact": lambda x: x}, r"exact\(x\) has shape"),
    "interface": ({"f": 1.0, "interfaces": [lambda x: x[0] + 1]}, r"interfaces\[0\] does not change sign"),
}


@pytest.mark.parametrize("name", BAD_DETERMINANTS)
def test_bad_determinants(name):
    changes, message = BAD_DETERMINANTS[name]
    with pytest.raises(CoefficientError, match=f"(?s){message}"):
        cordes.MongeAmpere(SQUARE, **changes)


def test_a_jump_of_the_determinant_is_warned_about():
    with pytest.warns(cordes.UndeclaredJumpWarning, match=r"f jumps near x = \[0.5"):
        cordes.MongeAmpere(SQUARE, lambda x: jnp.where(x[0] > 0.5, 1.0, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cordes.MongeAmpere(SQUARE, lambda x: jnp.where(x[0] > 0.5, 1.0, 2.0), interfaces=[lambda x: x[0] - 0.5])
        cordes.MongeAmpere(SQUARE, 0.0)
