"""Many dimensions: the coupled problems, derivatives kept in one array, the solver on fresh points,
the stochastic estimator and the certificate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.networks import MLP, Frozen, Inputs
from cordes.ansatz.networks.directional import (
    Factored,
    apply_operator,
    directional_rows,
    expression,
    quadratic,
)
from cordes.errors import OptionError
from cordes.gallery import LISTED
from cordes.gallery.high_dimension import coupled, coupled_ball, coupled_cube, coupled_hjb
from cordes.jet import jet_of
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.problems.condition import epsilon_at
from cordes.runtime.clock import Clock
from cordes.runtime.progress import Progress
from cordes.solutions.kinds import make_solution
from cordes.solvers.dual import PointEquation
from cordes.solvers.rows.sampling import device_sampler
from cordes.solvers.rows.system import System
from cordes.solvers.stochastic import estimated_rows
from cordes.solvers.train import Budget

DIMENSION = 12


@pytest.fixture(scope="module")
def ball():
    return coupled_ball(6)


@pytest.fixture(scope="module")
def cube():
    return coupled_cube(6)


@pytest.fixture(scope="module")
def controlled():
    return coupled_hjb(6)


def second_difference(function, x, A, step=1e-4):
    """A:D²u by central differences along the eigenvectors of A, in NumPy."""
    values, vectors = np.linalg.eigh(A)
    total = 0.0
    for value, vector in zip(values, vectors.T, strict=True):
        total += (
            value
            * (function(x + step * vector) - 2 * function(x) + function(x - step * vector))
            / step**2
        )
    return total


@pytest.mark.parametrize("name", ["ball", "cube"])
def test_the_source_term_is_that_of_the_exact_solution(name, request):
    problem = request.getfixturevalue(name)
    exact, hessian = jax.jit(problem.exact), jax.jit(jax.hessian(problem.exact))
    points = problem.domain.interior_points(3, seed=1)
    for x, A, f in zip(
        points, problem.coefficients(points).A, problem.coefficients(points).f, strict=True
    ):
        assert f == pytest.approx(
            second_difference(lambda y: float(exact(y)), x, A), rel=1e-5, abs=1e-6
        )
        assert f == pytest.approx(float(np.sum(A * hessian(x))), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", ["ball", "cube"])
def test_the_matrix_is_dense_and_its_claimed_epsilon_holds(name, request):
    """The bound is proved; where it is tightest, points with |sin 3x| large must not break it."""
    problem = request.getfixturevalue(name)
    d = problem.domain.dimension
    x = np.concatenate(
        [
            problem.domain.interior_points(500, seed=2),
            problem.domain.boundary_points(500, seed=2)[0],
        ]
    )
    x = np.concatenate(
        [x, np.where(x > 0, 1, -1) * (0.52 if name == "cube" else min(0.52, d**-0.5))]
    )
    A = np.asarray(jax.jit(jax.vmap(problem.A))(x))
    assert np.min(np.abs(A[:500])) > 0
    epsilon = np.min(epsilon_at(A, np.zeros_like(x), np.zeros(len(x)), None))
    assert 0 < problem.epsilon <= epsilon < 1


def test_the_solution_couples_neighbours():
    """Mixed derivatives of neighbours do not vanish, those of others do: it is no sum of functions
    of one variable."""
    hessian = np.asarray(jax.jit(jax.hessian(coupled))(np.linspace(-0.5, 0.5, 7)))
    assert np.min(np.abs(np.diag(hessian, 1))) > 1e-3
    assert np.max(np.abs(np.triu(hessian, 2))) < 1e-14


def test_the_best_control_is_told_by_psi(controlled):
    """At the exact solution the supremum is zero, attained by the first control where ψ < 0 and by
    the second where ψ > 0."""
    x = controlled.domain.interior_points(200, seed=3)
    jets = jax.jit(jax.vmap(jet_of(controlled.exact)))(x)
    residual = np.asarray(jax.jit(jax.vmap(controlled.residual))(x, jets))
    psi = x[:, 0] - x[:, 1] ** 2
    np.testing.assert_allclose(residual, 0.0, atol=1e-12)
    np.testing.assert_array_equal(controlled.policy(x, jets), np.where(psi > 0, 1.0, 0.0))
    assert 0.2 < np.mean(psi > 0) < 0.8


def test_the_gallery_has_the_problems():
    assert {f"coupled-{kind}-{d}" for kind in ("ball", "cube") for d in (10, 20, 50, 100)} | {
        "coupled-hjb-10",
        "coupled-hjb-100",
    } == set(LISTED["high_dimension"])
    assert all(name in cordes.gallery for name in LISTED["high_dimension"])


# Derivatives --------------------------------------------------------------------------------------


def tall_system(interfaces=()):
    """A made-up equation in 12 dimensions with a drift and a reaction."""
    domain = cordes.Ball([0.1] * DIMENSION, 1.5)
    matrix = DiagonalPlusRank(
        lambda x: 2 + jnp.sin(x), lambda x: jnp.stack([x, jnp.cos(x)], axis=1) / 3
    )
    problem = cordes.Linear(
        domain,
        matrix,
        lambda x: jnp.sum(x),
        b=lambda x: x[::-1],
        c=0.7,
        g=lambda x: x[0] * x[1],
        interfaces=interfaces,
    )
    return System(problem, singular=False, inputs="interfaces")


@pytest.mark.parametrize("interfaces", [(), (lambda x: x[0] - 0.1 * x[1] ** 2,)])
def test_expressions_are_those_of_nested_differentiation(interfaces):
    system = tall_system(interfaces)
    problem, ansatz = system.problem, system.ansatz
    network = MLP(ansatz.inputs, 7, 2, "tanh", seed=3)
    x = jnp.asarray(problem.domain.interior_points(5, seed=4))

    def answer(point):
        return ansatz.lift(point) + ansatz.distance(point) * network.value(point[None])[0]

    def truth(point):
        value, gradient, hessian = jet_of(answer)(point)
        A, b, c, f = problem.linearise(point)
        return jnp.sum(A * hessian) + jnp.dot(b, gradient) - c * value - f

    wanted = np.asarray(jax.jit(jax.vmap(truth))(x))
    for factored in (False, True):
        parts = (
            (lambda point: Factored(*problem.A.parts(point))) if factored else (lambda point: None)
        )

        def rows(x, parts=parts):
            columns, target = jax.vmap(
                lambda point: expression(ansatz, point, *problem.linearise(point), parts(point))
            )(x)
            return directional_rows(network, columns) - target

        np.testing.assert_allclose(jax.jit(rows)(x), wanted, rtol=1e-11, atol=1e-11)
    A, b, c, f = (np.asarray(part) for part in problem.coefficients(np.asarray(x)))
    value, size = apply_operator(ansatz, network, np.asarray(x), A, b, c)
    np.testing.assert_allclose(value - f, wanted, rtol=1e-11, atol=1e-11)
    assert np.all(size >= np.abs(value) * (1 - 1e-12))
    assert np.max(np.abs(wanted)) > 0.1


def test_rows_of_frozen_equations_agree_with_them():
    """The two ways through a network: column by column from a frozen equation, and in one array."""
    domain = cordes.Ball([0.0] * DIMENSION, 1.0)
    network = MLP(Inputs(domain), 6, 3, "silu", seed=5)
    x = jnp.asarray(domain.interior_points(4, seed=6))
    generator = np.random.default_rng(7)
    first, second = (
        generator.standard_normal((4, DIMENSION)),
        generator.standard_normal((4, DIMENSION, DIMENSION)),
    )
    second = second + np.swapaxes(second, 1, 2)
    rows = jax.jit(
        lambda x: network.rows(
            Frozen(
                jax.vmap(network.inputs.jet)(x),
                jnp.ones(4),
                jnp.asarray(first),
                jnp.asarray(second),
            )
        )
    )(x)
    value, gradient, hessian = jax.jit(
        jax.vmap(jet_of(lambda point: network.value(point[None])[0]))
    )(x)
    np.testing.assert_allclose(
        rows,
        value + jnp.sum(first * gradient, axis=1) + jnp.sum(second * hessian, axis=(1, 2)),
        rtol=1e-11,
        atol=1e-11,
    )


def test_the_rule_for_derivatives_by_the_weights():
    """`quadratic` has a rule of its own: against differentiation of the plain formula."""
    generator = np.random.default_rng(8)
    s, diagonal, columns = (
        generator.standard_normal((5, 3)),
        generator.random(5) + 1,
        generator.standard_normal((5, 2)),
    )
    A = np.diag(diagonal) + columns @ columns.T
    plain = jax.grad(lambda s: jnp.sum(jnp.sin(jnp.einsum("kw,kl,lw->w", s, A, s))))(s)
    for metric in (jnp.asarray(A), Factored(jnp.asarray(diagonal), jnp.asarray(columns))):
        np.testing.assert_allclose(
            jax.grad(lambda s, metric=metric: jnp.sum(jnp.sin(quadratic(metric, s))))(s),
            plain,
            rtol=1e-12,
        )


# Points -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "moment"),
    [
        (cordes.Ball([0.5] * 8, 2.0), 4 * 8 / 10),
        (cordes.Ellipsoid([0.0] * 3, [1.0, 2.0, 3.0]), 14 / 5),
        (cordes.Box([-1.0] * 3, [1.0] * 3), 1.0),
    ],
)
def test_points_on_the_device_are_uniform_with_their_weights(domain, moment):
    """E|x - center|² over the domain in closed form: R²d/(d + 2), Σaᵢ²/5, d·w²/12."""
    draw = device_sampler(domain)
    x, weight = draw(jax.random.key(0), 40_000)
    assert np.all(domain.contains(np.asarray(x)))
    square = np.sum((np.asarray(x) - domain.center) ** 2, axis=1)
    assert np.mean(weight**2) == pytest.approx(1, rel=0.05)
    assert np.mean(weight**2 * square) == pytest.approx(moment, rel=0.05)


def test_points_of_a_box_in_many_dimensions_are_where_its_distance_function_is():
    """The mean of D²|y|² over the cube is d(8/15)^(d-1)·8/105: independent points see it to a few
    per cent, uniform ones would need thousands of times more."""
    d = 30
    x, weight = device_sampler(cordes.Box([0.0] * d, [2.0] * d))(jax.random.key(0), 4000)
    y = np.asarray(x) - 1
    assert np.all(np.abs(y) < 1)
    values = np.asarray(weight) ** 2 * np.prod(1 - y**2, axis=1) ** 2 * np.sum(y**2, axis=1)
    assert np.mean(values) == pytest.approx(d * (8 / 15) ** (d - 1) * 8 / 105, rel=0.03)


def test_other_domains_take_points_of_the_host():
    triangle = cordes.Polygon([[0, 0], [1, 0], [0, 1]])
    assert device_sampler(triangle) is None
    equation = PointEquation(System(cordes.Linear(triangle, 1.0, 1.0), singular=False))
    x, _ = equation.draw(equation.sources(0, 0, 2, 16)[1], 16)
    assert np.all(triangle.contains(np.asarray(x)))


# Solvers ------------------------------------------------------------------------------------------


def solution_of(problem, **options):
    system = System(problem, singular=False)
    solver = cordes.GaussNewton(width=24, depth=2, **options)
    answer = solver.run_dual(system, Budget(None, Clock(), 0, Progress("test", False)))
    return make_solution(
        problem, system.ansatz, answer, {"certify": 0.0}, {"method": "gauss-newton"}
    )


@pytest.fixture(scope="module")
def solved_ball(ball):
    return cordes.solve(ball, width=24, depth=2, points=150, steps=60, progress=False)


def test_a_linear_problem_is_solved_on_fresh_points(ball, solved_ball):
    assert solved_ball.method == "gauss-newton"
    assert solved_ball.points == 150
    assert solved_ball.error().relative < 1e-2
    # The residual that the solver reports is the rms of γ(Lu - f) over the domain: by another way,
    # at other points.
    x = ball.domain.interior_points(1000, seed=77)
    A = np.asarray(ball.coefficients(x).A)
    scaled = np.trace(A, axis1=1, axis2=2) / np.sum(A**2, axis=(1, 2)) * solved_ball.residual(x)
    assert np.sqrt(np.mean(scaled**2)) == pytest.approx(solved_ball.residual_rms, rel=0.2)


def test_controls_need_no_outer_loop(controlled):
    solution = cordes.solve(
        controlled, width=24, depth=2, points=120, steps=60, progress=False, certify=False
    )
    assert solution.error().relative < 2e-2
    assert "step" in solution.history[-1]
    x = controlled.domain.interior_points(500, seed=3)
    psi = x[:, 0] - x[:, 1] ** 2
    clear = np.abs(psi) > 0.2
    expected = np.where(psi > 0, 1.0, 0.0)
    assert np.mean(solution.policy(x)[clear] == expected[clear]) > 0.95


def test_a_continuum_of_controls_is_refused():
    problem = cordes.HJB(
        cordes.Ball([0.0] * 6, 1.0),
        np.linspace(-1, 1, 5),
        1.0,
        lambda x, a: 1.0 + a**2,
        b=lambda x, a: a * x,
        maximiser=lambda x, jet: jnp.clip(jnp.dot(x, jet.gradient) / 2, -1, 1),
    )
    with pytest.raises(OptionError, match="finite set of controls"):
        solution_of(problem, points=50, steps=10)


def test_certificates_hold_with_the_stated_confidence(solved_ball):
    """Independent points, a claimed ε: the bound is above the truth and within two orders of it."""
    certificate, error = solved_ball.certificate, solved_ball.error()
    assert certificate.level == "statistical (asymptotic)"
    assert error.l2 < certificate.rms < 100 * error.l2


def test_estimates_are_unbiased(ball):
    """The mean over many random directions is the exact row, and the mean of products of two
    independent ones its square."""
    equation = PointEquation(System(ball, singular=False))
    network = MLP(equation.ansatz.inputs, 8, 1, "tanh", seed=9)
    network = network.with_coefficients(10 * network.coefficients)
    x, weight = equation.draw(jax.random.key(1), 3)

    def row(columns, target):
        return directional_rows(network, columns) - target

    exact = np.asarray(
        jax.jit(lambda x, weight: row(*equation.freeze(network, x, weight)))(x, weight)
    )
    rows = jax.jit(jax.vmap(lambda key: row(*estimated_rows(equation, x, weight, key, 1))))
    one, two = (np.asarray(rows(jax.random.split(jax.random.key(seed), 20_000))) for seed in (2, 3))
    spread = np.std(one, axis=0) / np.sqrt(len(one))
    assert np.all(spread > 0)
    assert np.all(np.abs(np.mean(one, axis=0) - exact) < 4.5 * spread)
    product = one * two
    assert np.all(
        np.abs(np.mean(product, axis=0) - exact**2)
        < 4.5 * np.std(product, axis=0) / np.sqrt(len(product))
    )


def test_random_directions_train_a_network(ball):
    """Four directions of six: the exact residual and the error fall although no exact A:D²u was
    ever seen in training."""
    solution = cordes.solve(
        ball,
        "adam",
        estimator="stochastic",
        probes=4,
        epochs=400,
        points=150,
        width=32,
        depth=2,
        progress=False,
        certify=False,
    )
    assert solution.residual_rms < 0.15 * solution.history[0]["residual"]
    assert solution.error().relative < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "stochastik"}, "Did you mean stochastic"),
        ({"probes": 4}, "pass that too"),
        ({"estimator": "stochastic", "precision": "float32"}, "precision cannot be had"),
    ],
)
def test_estimators_that_make_no_sense_are_refused(options, message, ball):
    with pytest.raises(OptionError, match=message):
        cordes.solve(ball, "adam", **options)


def test_bad_options_of_the_estimator_are_refused(ball):
    with pytest.raises(OptionError, match="probes = 0"):
        cordes.solve(ball, "adam", estimator="stochastic", probes=0)
