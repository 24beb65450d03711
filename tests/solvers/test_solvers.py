"""The three methods: accuracy, stopping, continuing, honesty, and options that are refused."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import cordes
from cordes.ansatz.ansatz import Rows
from cordes.ansatz.networks import MLP
from cordes.errors import OptionError
from cordes.runtime.progress import Progress
from cordes.solutions.answer import Weights
from cordes.solvers.gauss_newton import DAMPING, LENGTHS, PROBES, StepCarry, _step
from cordes.solvers.rows import system as system_module
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import System
from cordes.solvers.train import residual

SQUARE = cordes.Box([-1, -1], [1, 1])
SMOOTH = "ex4.2-continuous"
SMALL = {
    "least-squares": {"features": 60},
    "gauss-newton": {"width": 10, "depth": 2, "activation": "tanh", "points": 60, "steps": 10},
    "adam": {"width": 12, "depth": 2, "points": 200, "epochs": 50},
}
each_method = pytest.mark.parametrize("method", list(SMALL))


def simple(**data):
    """-Δu + u with u = sin(πx1)sin(πx2)."""

    def exact(x):
        return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    arguments = {
        "A": 1.0,
        "f": lambda x: -(2 * jnp.pi**2 + 1) * exact(x),
        "c": 1.0,
        "exact": exact,
    } | data
    return cordes.Linear(SQUARE, **arguments)


@pytest.fixture(scope="module")
def problem():
    return simple()


def solve(problem, method="auto", **options):
    return cordes.solve(problem, method, progress=False, certify=False, **options)


# Least squares ------------------------------------------------------------------------------------


def test_error_falls_fast_with_the_number_of_features(solved):
    features = np.array([100, 400])
    errors = np.array([solved(SMOOTH, features=int(count)).error().l2 for count in features])
    # At least a hundredfold over a factor of four in the fit of log error against log features.
    assert np.polyfit(np.log(features), np.log(errors), 1)[0] <= -np.log(100) / np.log(4)


def test_the_plain_residual_works_too(solved):
    plain = solved(SMOOTH, multiplier=False)
    assert plain.error().l2 <= 1e-9
    assert plain.facts["multiplier"] is False


def test_the_same_seed_gives_the_same_answer_and_another_one_does_not(problem):
    first, second, third = (solve(problem, features=60, seed=seed) for seed in (3, 3, 4))
    points = SQUARE.interior_points(20, seed=1)
    assert np.array_equal(first(points), second(points))
    assert first.residual_rms == second.residual_rms
    assert not np.array_equal(first(points), third(points))


def test_a_tolerance_stops_early(solved):
    """Where it is met, with fewer features than without."""
    quick, full = solved.certified(SMOOTH, tol=1e-1), solved(SMOOTH)
    assert quick.result == cordes.Result.converged
    assert quick.error().l2 <= quick.certificate.rms <= 1e-1
    assert quick.parameters < full.parameters


@each_method
def test_a_tolerance_out_of_reach(problem, method):
    solution = solve(problem, method, tol=1e-30, **SMALL[method])
    assert solution.result == cordes.Result.tolerance_not_reached
    assert solution.residual_rms > 1e-30
    assert solution.result.remedy


def test_dependent_columns_are_left_out():
    generator = np.random.default_rng(1)
    basis = generator.standard_normal((60, 10))
    matrix = np.concatenate(
        [basis, 1e6 * basis @ generator.standard_normal((10, 15)), np.zeros((60, 1))], axis=1
    )
    target = basis @ generator.standard_normal(10)
    solution = solve_rank_revealing(matrix, target)
    np.testing.assert_allclose(matrix @ solution, target, atol=1e-10)
    assert np.max(np.abs(solution)) < 1e4


# Training -----------------------------------------------------------------------------------------


def test_adam_with_the_preset_of_the_paper():
    solution = solve(simple(), "adam", preset="paper", epochs=50, points=500)
    assert solution.points == 500
    assert (solution.network.layers[1][0].shape, len(solution.network.layers)) == ((64, 64), 4)
    assert solution.history[-1]["epoch"] == 50
    assert solution.history[-1]["residual"] < solution.history[0]["residual"]


def losses(name, multiplier):
    options = {"width": 8, "depth": 2, "points": 300, "epochs": 10, "precision": "float64"}
    return solve(cordes.gallery[name], "adam", multiplier=multiplier, **options).history


def test_the_multiplier_scales_the_loss():
    """γ = 0.4 everywhere in ex4.2-discontinuous: the first mean squares are proportional; in
    ex4.1-smooth γ varies."""
    scaled, plain = losses("ex4.2-discontinuous", True), losses("ex4.2-discontinuous", False)
    assert scaled[0]["loss"] / plain[0]["loss"] == pytest.approx(0.16, rel=1e-12)
    assert scaled[0]["residual"] / plain[0]["residual"] == pytest.approx(0.4, rel=1e-12)
    scaled, plain = losses("ex4.1-smooth", True), losses("ex4.1-smooth", False)
    assert scaled[-1]["loss"] != plain[-1]["loss"]
    ratio = [a["residual"] / b["residual"] for a, b in zip(scaled, plain, strict=True)]
    assert abs(ratio[0] - ratio[1]) > 1e-6 * ratio[0]


def test_gauss_newton_improves_on_its_start(problem):
    solution = solve(problem, "gauss-newton", **SMALL["gauss-newton"] | {"steps": 60})
    assert solution.residual_rms < 0.1 * solution.history[0]["residual"]
    assert solution.error().l2 < 0.1


def step_data(count):
    """A small network with P = 31 parameters and `count` rows, the rest filled with rows of
    zeros."""
    system = System(simple())
    network = MLP(system.ansatz.inputs, 6, 1, "tanh", seed=1)
    state = Weights(network, jnp.zeros(0))
    rows = system.rows(system.points(10, seed=2))
    rows = Rows(rows.frozen, np.zeros((rows.count, 0)), rows.target)
    template = jax.tree.map(lambda leaf: jnp.asarray(leaf[:10]), rows)
    return state, jax.tree.map(
        lambda leaf: jnp.concatenate([leaf, jnp.zeros((count - 10, *leaf.shape[1:]))]), template
    )


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_primal_and_dual_steps_agree_with_the_formula(momentum):
    """Rows of zeros change neither residual nor step, but turn 10 rows < P (dual) into 40 > P
    (primal)."""
    state, few = step_data(10)
    _, many = step_data(40)
    vector, unravel = ravel_pytree(state.parameters)
    last = 0.01 * jnp.asarray(np.random.default_rng(3).standard_normal(len(vector)))
    function = jax.jit(lambda v: residual(state.with_parameters(unravel(v)), few))
    r, J = np.asarray(function(vector)), np.asarray(jax.jit(jax.jacobian(function))(vector))
    P, N = len(vector), 10
    assert N < P < 40
    # The damping is relative to the mean of the diagonal, tr/N or tr/P; the first loss makes up for
    # that.
    first = 10 * np.linalg.norm(r)
    step = jax.jit(lambda carry, rows: _step(carry, rows, unravel, state, momentum))
    dual, dual_loss = step(StepCarry(vector, last, jnp.asarray(first)), few)
    primal, primal_loss = step(StepCarry(vector, last, jnp.asarray(first * N / P)), many)
    np.testing.assert_allclose(
        dual.step, primal.step, rtol=1e-5, atol=1e-7 * float(jnp.max(jnp.abs(dual.step)))
    )
    assert float(dual_loss) == pytest.approx(float(primal_loss), rel=1e-6)
    kept, candidates = momentum * np.asarray(last), []
    for probe, length in itertools.product(PROBES, LENGTHS):
        mu = probe * DAMPING * np.linalg.norm(r) / first * np.sum(J**2) / N
        delta = length * (kept - np.linalg.solve(J.T @ J + mu * np.eye(P), J.T @ (r + J @ kept)))
        candidates.append((float(np.linalg.norm(function(vector + delta))), delta))
    loss, best = min(candidates, key=lambda pair: pair[0])
    np.testing.assert_allclose(dual.step, best, rtol=1e-5, atol=1e-7 * np.max(np.abs(best)))
    assert float(dual_loss) == pytest.approx(loss, rel=1e-6)


# Soft boundary values -----------------------------------------------------------------------------


def test_soft_boundary_values_with_least_squares(solved):
    solution = solved(SMOOTH, boundary="soft", features=500)
    assert solution.error().l2 < 1e-4
    boundary, _ = solution.problem.domain.boundary_points(100, seed=5)
    # Nearly zero, but not by construction.
    assert 0 < np.max(np.abs(solution(boundary))) < 1e-3


def test_soft_boundary_values_with_adam():
    problem = simple(f=1.0, exact=None, g=lambda x: 1 + x[0] * x[1])
    soft = solve(
        problem,
        "adam",
        boundary="soft",
        boundary_weight=50.0,
        width=20,
        depth=2,
        points=300,
        epochs=500,
        learning_rate=1e-2,
    )
    hard = solve(problem, features=200)
    points = SQUARE.interior_points(100, seed=6)
    assert np.sqrt(np.mean((soft(points) - hard(points)) ** 2)) < 0.1
    assert soft.history[-1]["residual"] < 0.1 * soft.history[0]["residual"]


# Ending and continuing ----------------------------------------------------------------------------


@each_method
def test_time_out_gives_an_answer(problem, method):
    longer = {
        "least-squares": {"features": 200, "frequency": 0.3},
        "gauss-newton": {"steps": 400},
        "adam": {"epochs": 5000},
    }[method]
    solution = solve(problem, method, max_seconds=0.01, **SMALL[method] | longer)
    assert solution.result == cordes.Result.time_out
    assert np.isfinite(solution([0.3, 0.2]))
    assert len(solution.history) <= 2


@each_method
def test_interruption_gives_an_answer(problem, method, monkeypatch):
    calls = []

    def update(self, **facts):
        calls.append(facts)
        if len(calls) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", update)
    longer = {"least-squares": {}, "gauss-newton": {"steps": 100}, "adam": {"epochs": 500}}[method]
    solution = solve(problem, method, **SMALL[method] | longer)
    assert solution.result == cordes.Result.interrupted
    assert len(calls) == 2
    assert np.isfinite(solution([0.3, 0.2]))


def test_least_squares_continues_with_more_features(problem):
    first = solve(problem, features=60)
    second = solve(problem, start=first)
    assert second.method == "least-squares"
    assert second.network.coefficients.shape[0] == 120
    assert second.residual_rms < first.residual_rms
    assert second.error().l2 < first.error().l2


@pytest.mark.parametrize("method", ["adam", "gauss-newton"])
def test_training_continues(problem, method):
    first = solve(problem, method, **SMALL[method])
    second = solve(
        problem,
        start=first,
        **{
            key: value
            for key, value in SMALL[method].items()
            if key in ("points", "epochs", "steps")
        },
    )
    assert second.method == method
    assert second.history[0]["residual"] == pytest.approx(first.residual_rms, rel=1e-4)
    assert second.residual_rms < first.residual_rms


# Options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "least-square"},
            "There is no method 'least-square'. Did you mean least-squares",
        ),
        ({"featurs": 100}, "no option for least-squares 'featurs'. Did you mean features"),
        ({"epochs": 100}, "epochs is an option of adam, not of least-squares: pass method='adam'"),
        (
            {"features": 100, "method": "adam"},
            "features is an option of least-squares, not of adam",
        ),
        ({"tol": -1.0}, "tol = -1.0: it must be a positive number"),
        ({"tol": "small"}, "tol = 'small'"),
        ({"max_seconds": 0}, "max_seconds = 0"),
        ({"boundary": "neumann"}, "What holds on the boundary is said by the problem"),
        ({"method": "adam", "preset": "papr"}, "no preset 'papr'. Did you mean paper"),
        ({"inputs": "power"}, "no inputs 'power'. Did you mean powers"),
        ({"activation": "tahn"}, "no activation 'tahn'. Did you mean tanh"),
        ({"tolerance": 1e-3}, "no option for .* 'tolerance'. Did you mean tol"),
        (
            {"method": "adam", "epochs": 5, "width": 4, "depth": 1, "points": 20},
            "epochs = 5: a whole number of at least 10",
        ),
    ],
)
def test_options_that_make_no_sense(problem, options, message):
    with pytest.raises(OptionError, match=message):
        solve(problem, **options)


def test_a_start_by_another_method_is_refused(problem):
    start = solve(problem, features=20)
    with pytest.raises(
        OptionError, match="start was made by least-squares and cannot be continued by adam"
    ):
        solve(problem, "adam", start=start)


def test_points_of_another_dimension_are_refused(solved):
    with pytest.raises(OptionError, match=r"Points have shape \(4, 3\)"):
        solved(SMOOTH)(np.zeros((4, 3)))
    assert solved(SMOOTH)(np.zeros((4, 3, 2))).shape == (4, 3)
    assert solved(SMOOTH).hessian(np.zeros((4, 2))).shape == (4, 2, 2)


# Honesty ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["box", "disk"])
def test_boundary_values_are_asked_for_on_the_boundary_only(name):
    domain = SQUARE if name == "box" else cordes.Ball([0.1, 0.2], 1.3)

    def harmonic(x):
        return jnp.exp(x[0]) * jnp.cos(x[1])

    def g(x):
        gap = (
            jnp.max(jnp.abs(x)) - 1
            if name == "box"
            else jnp.linalg.norm(x - jnp.array([0.1, 0.2])) - 1.3
        )
        return jnp.where(jnp.abs(gap) < 1e-9, harmonic(x), jnp.nan)

    solution = solve(cordes.Linear(domain, 1.0, 0.0, g=g), features=250)
    points = domain.interior_points(100, seed=8)
    np.testing.assert_allclose(solution(points), jax.vmap(harmonic)(points), atol=1e-7)


def test_the_exact_solution_is_never_asked_for():
    asked = []

    def exact(x):
        asked.append(x)
        return jnp.sin(x[0])

    problem = simple(exact=exact)
    asked.clear()
    for method, options in SMALL.items():
        solution = solve(problem, method, **options)
        assert not asked, method
    solution.error()
    assert asked


@pytest.mark.parametrize("method", ["least-squares", "gauss-newton"])
def test_fresh_points_are_never_fitted(problem, method, monkeypatch):
    made = []
    original = system_module.collocation_points

    def record(*arguments, **options):
        made.append((arguments[2], original(*arguments, **options)))
        return made[-1][1]

    monkeypatch.setattr(system_module, "collocation_points", record)
    assert System(problem).singular_points
    solve(problem, method, **SMALL[method])
    fresh = {tuple(x) for seed, points in made if seed >= 1_000_000 for x in points.x}
    fitted = {tuple(x) for seed, points in made if seed < 1_000_000 for x in points.x}
    assert len(fresh) > 2000
    assert len(fitted) > 50
    assert not fresh & fitted


def test_weights_of_graded_points_keep_the_mean_square():
    """Σ (weight · h)² is the mean of h² over the domain, whatever the grading."""
    system = System(cordes.gallery["ex4.4-discontinuous"])
    points = system.fresh_points(0, count=20_000)
    h = np.exp(points.x[:, 0]) * points.x[:, 1]
    assert np.sum((points.weight * h) ** 2) == pytest.approx(np.sinh(2) / 2 / 3, rel=1e-2)
    assert np.sum(points.weight**2) == pytest.approx(1, rel=1e-2)


def test_residual_of_the_solution_is_the_equation(solved):
    solution = solved(SMOOTH)
    x = solution.problem.domain.interior_points(7, seed=9)
    jet = solution.jet(x)
    A, b, c, f = (np.asarray(part) for part in jax.vmap(solution.problem.linearise)(x))
    expected = (
        np.sum(A * jet.hessian, axis=(1, 2)) + np.sum(b * jet.gradient, axis=1) - c * jet.value - f
    )
    np.testing.assert_allclose(solution.residual(x), expected, atol=1e-11)
    assert np.max(np.abs(expected)) < 1e-5
    assert "converged" in repr(solution)


def test_a_second_solve_prepares_nothing_again():
    """Lift, singular points and compiled functions belong to the problem; the answer is the same to
    the last bit."""
    problem = cordes.Linear(
        cordes.Ball([0, 0], 1),
        1.0,
        1.0,
        g=lambda x: jnp.abs(x[0]) ** 3,
        interfaces=[lambda x: x[0]],
    )
    first, second = (
        cordes.solve(problem, features=60, progress=False, certify=False) for _ in range(2)
    )
    # Nothing is compiled again; the data are traced to see that they are what they were.
    assert second.seconds["compile"] < 0.05 * first.seconds["compile"]
    points = problem.domain.interior_points(50, seed=1)
    assert np.array_equal(first(points), second(points))


def test_a_copy_with_other_data_is_prepared_anew():
    problem = cordes.Linear(SQUARE, 1.0, 1.0, g=lambda x: x[0])
    cordes.solve(problem, features=40, progress=False, certify=False)
    other = problem.replace(g=lambda x: 2 * x[0])
    edge = np.array([[0.5, -1.0], [1.0, 0.25]])
    np.testing.assert_allclose(
        cordes.solve(other, features=40, progress=False, certify=False)(edge),
        2 * edge[:, 0],
        atol=1e-13,
    )
    np.testing.assert_allclose(
        cordes.solve(problem, features=40, progress=False, certify=False)(edge),
        edge[:, 0],
        atol=1e-13,
    )
