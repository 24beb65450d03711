"""Frozen equations against derivatives and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nonlinear_jets import CUBE, IDENTITY, SQUARE, random_jets, residuals

import cordes
from cordes.errors import OptionError
from cordes.jet import Jet
from cordes.runtime.blocks import BLOCK


def random_controls(sense, count=2500, d=2):
    """More controls than one block holds, with random coefficients: a few numbers each, looked up
    by the control itself."""
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
        values = (
            np.sum(matrices * jet.hessian[i], axis=(1, 2))
            + drifts @ jet.gradient[i]
            - numbers[:, 0] * jet.value[i]
            - numbers[:, 1] * x[1]
        )
        weights = (
            np.trace(matrices, axis1=1, axis2=2) / np.sum(matrices**2, axis=(1, 2))
            if scaled
            else 1.0
        )
        signed[i] = np.max(values) if sense == "sup" else np.min(values)
        assert index[i] == (np.argmax if sense == "sup" else np.argmin)(weights * values)
        np.testing.assert_array_equal(policy[i], problem.controls[index[i]])
    assert len(np.unique(index)) > 20
    assert index.max() >= 2048  # Beyond the second block.
    np.testing.assert_allclose(residuals(problem, points, jet), signed, rtol=1e-12)


def test_the_multiplier_changes_the_best_control():
    problem, *_ = random_controls("sup")
    points, jet = problem.domain.interior_points(100, seed=33), random_jets(100, 2, 34)
    assert (
        np.mean(
            np.any(problem.policy(points, jet, True) != problem.policy(points, jet, False), axis=1)
        )
        > 0.5
    )


@pytest.mark.parametrize("sense", ["sup", "inf"])
def test_the_frozen_control_equation_is_the_derivative(sense):
    problem, *_ = random_controls(sense)
    points, jet, change = (
        problem.domain.interior_points(50, seed=35),
        random_jets(50, 2, 36),
        random_jets(50, 2, 37),
    )
    A, b, c, f = problem.coefficients(points, jet, scaled=False)

    def apply(state):
        return (
            np.sum(A * state.hessian, axis=(1, 2))
            + np.sum(b * state.gradient, axis=1)
            - c * state.value
        )

    np.testing.assert_allclose(
        apply(jet) - f, residuals(problem, points, jet), rtol=1e-12, atol=1e-12
    )
    moved = [
        residuals(
            problem,
            points,
            Jet(*(part + step * other for part, other in zip(jet, change, strict=True))),
        )
        for step in (1e-6, -1e-6)
    ]
    # With 2500 controls the best one may change within the step, at a few points only.
    close = np.abs((moved[0] - moved[1]) / 2e-6 - apply(change)) < 1e-6
    assert np.mean(close) > 0.9
    # A supremum lies above its tangents and an infimum below.
    far = residuals(
        problem, points, Jet(*(part + other for part, other in zip(jet, change, strict=True)))
    )
    excess = far - (apply(jet) - f + apply(change))
    assert np.all(problem.sign * excess > -1e-10)
    assert np.median(np.abs(excess)) > 1e-3


def test_the_mean_start_of_a_control_problem():
    controls = np.linspace(0, 1, 5)
    problem = cordes.HJB(
        SQUARE,
        controls,
        lambda x, a: (1 + a) * jnp.eye(2),
        lambda x, a: a + x[0],
        b=lambda x, a: a * x,
        c=lambda x, a: a,
    )
    points = SQUARE.interior_points(30, seed=38)
    frozen = problem.coefficients(points)
    weights = 1 / (1 + controls)  # tr A/|A|² of (1 + a)I.
    np.testing.assert_allclose(frozen.A, np.tile(IDENTITY, (30, 1, 1)), rtol=1e-14)
    np.testing.assert_allclose(frozen.b, np.mean(weights * controls) * points, rtol=1e-14)
    np.testing.assert_allclose(frozen.c, np.full(30, np.mean(weights * controls)), rtol=1e-14)
    np.testing.assert_allclose(
        frozen.f, np.mean(weights * (controls + points[:, :1]), axis=1), rtol=1e-14
    )


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
    np.testing.assert_allclose(
        residuals(problem, points, state(hessian)), np.asarray(determinant) - f, atol=1e-12
    )
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
    # With a single negative eigenvalue the tangent has the value det H at H, so a fixed point is a
    # solution.
    single = (eigenvalues[:, 0] < 0) & (eigenvalues[:, 1] > 0.1)
    assert np.sum(single) > 20
    own = np.sum(frozen.A * hessian, axis=(1, 2)) - frozen.f
    np.testing.assert_allclose(
        own[single], np.linalg.det(hessian[single]) - 0.5 - points[single, 0], atol=1e-10
    )


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
    assert (
        np.max(np.abs(residuals(problem, points, state(hessian))[20:40])) < 1e-12
    )  # The determinant alone cannot tell.
    # The infimum over A ≥ 0, tr A = 1, on a fine grid of eigenvalues and directions.
    share, angle = (
        part.ravel() for part in np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, np.pi, 401))
    )
    cosine, sine = (2 * share - 1) * np.cos(2 * angle), (2 * share - 1) * np.sin(2 * angle)
    values = [
        0.5 * ((1 + cosine) * H[0, 0] + 2 * sine * H[0, 1] + (1 - cosine) * H[1, 1])
        - 2 * np.sqrt(source * share * (1 - share))
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
        determinant_problem(3).coefficients(
            np.full((1, 3), 0.5), state(np.tile(np.eye(3), (1, 1, 1))), "convex"
        )


def test_many_controls_need_little_memory():
    d = 10
    problem = cordes.HJB(
        cordes.Box([0] * d, [1] * d),
        np.linspace(0, 1, 2000),
        lambda x, a: jnp.eye(d) + 0.05 * a * jnp.outer(x, x),
        lambda x, a: a * x[0],
    )
    arguments = [jnp.zeros((BLOCK, *shape)) for shape in ((d,), (), (d,), (d, d))]
    for scaled in (True, False):
        compiled = (
            jax.jit(
                jax.vmap(lambda x, *jet, scaled=scaled: problem.best_index(x, Jet(*jet), scaled))
            )
            .lower(*arguments)
            .compile()
        )
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
    assert repr(cordes.gallery["ex4.5-hjb"]).endswith("2 controls: 1, 2)")
    assert (
        repr(cordes.MongeAmpere(SQUARE, 1.0))
        == "MongeAmpere('monge-ampere', Box(lower=[0.0, 0.0], upper=[1.0, 1.0]))"
    )
