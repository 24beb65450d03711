"""The barrier network: its features against automatic differentiation, its training against
differences, its bounds against the truth."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import cordes
from cordes.certificates.residual.candidate import (
    EPSILON,
    ROUNDING_OF_SUMS,
    AnswerCandidate,
    FunctionCandidate,
)
from cordes.certificates.residual.cells import CellMesh
from cordes.certificates.residual.norms import Quadrature, Sample
from cordes.certificates.residual.refined import adaptive_nodes
from cordes.certificates.theorems.barriers import barrier as module
from cordes.certificates.theorems.barriers import barrier_training
from cordes.certificates.theorems.barriers.barrier import Trained, network_bound
from cordes.certificates.theorems.barriers.barrier_features import TILE, BarrierFeatures, Window
from cordes.certificates.theorems.barriers.barrier_training import (
    Task,
    minimise,
    orthonormal,
    training_points,
)
from cordes.certificates.theorems.maximum import MaximumPrinciple, maxima
from cordes.domains import Ball, Box
from cordes.errors import OptionError
from cordes.jet import jet_of

TORSION = 0.0736713532  # Largest value of the solution of -Δu = 1 in the unit square.
SQUARE = Box([-1, -1], [1, 1])


def densities(evaluated):
    A = evaluated.local.A
    return np.stack([evaluated.size**2, (evaluated.size / np.sqrt(np.linalg.det(A))) ** 2], axis=1)


def principle_of(problem, candidate, singular=None, budget=20_000):
    """As `cordes.certificates.linear` makes it."""
    nodes, evaluated = adaptive_nodes(
        CellMesh(problem.domain, problem.interfaces, singular),
        candidate.evaluate,
        densities,
        budget,
    )
    return MaximumPrinciple(problem.domain, Quadrature(nodes), evaluated, problem.has_drift)


def planted(domain, A, error, b=None, c=None, interfaces=()):
    """A problem whose answer u_θ = 0 has the given error: u = error, zero on the boundary."""
    make = cordes.Linear(domain, A, 0.0, b=b, c=c, interfaces=interfaces)

    def f(x):
        coefficients = make.linearise(x)
        value, gradient, hessian = jet_of(error)(x)
        return (
            jnp.sum(coefficients[0] * hessian)
            + coefficients[1] @ gradient
            - coefficients[2] * value
        )

    problem = cordes.Linear(domain, A, f, b=b, c=c, interfaces=interfaces)
    return problem, FunctionCandidate(problem, lambda x: 0.0 * x[0])


def largest(error, domain):
    points = domain.interior_points(20_000, 5, "sobol")
    return float(np.max(np.abs(jax.jit(jax.vmap(error))(points))))


@pytest.fixture(scope="module")
def torsion():
    problem = cordes.Linear(Box([0, 0], [1, 1]), np.eye(2), 1.0)
    candidate = FunctionCandidate(problem, lambda x: 0.0 * x[0])
    return problem, candidate, principle_of(problem, candidate)


# Features -----------------------------------------------------------------------------------------


def explicit(features, coefficients):
    """w written out, a function of one point."""
    tiles, inputs = features.tiles, features.inputs

    def w(x):
        z = jnp.concatenate(
            [
                (x - inputs.center) / inputs.scale,
                *(
                    jnp.array([phi(x) * jnp.abs(phi(x)) / s**2])
                    for phi, s in zip(inputs.interfaces, inputs.interface_scale, strict=True)
                ),
            ]
        )
        D = features.domain.distance(x) / features.height
        total = 0.0
        for k in range(len(tiles.bias)):
            window = Window(*(part[k] for part in tiles.window))
            exponent = window.layer * D + window.spot * jnp.sum((x - window.center) ** 2)
            exponent += sum(
                strip * phi(x) ** 2
                for strip, phi in zip(window.strip, inputs.interfaces, strict=True)
            )
            total += (
                D
                * jnp.exp(-exponent)
                * jnp.sin(z @ tiles.weight[k] + tiles.bias[k])
                @ coefficients[k * TILE : (k + 1) * TILE]
            )
        return total

    return w


def test_features_are_what_they_say():
    """-Lw and w by the rows are those of the formula by automatic differentiation, to the rounding
    that is allowed for, and rounded to the safe side."""
    A = lambda x: jnp.array([[2.0 + x[0] ** 2, 0.3], [0.3, 1.0 + jnp.where(x[0] > 0, 1.0, 0.0)]])  # noqa: E731
    problem = cordes.Linear(
        SQUARE, A, 1.0, b=lambda x: jnp.array([x[1], 2.0]), c=3.0, interfaces=[lambda x: x[0]]
    )
    points = SQUARE.interior_points(2000, 3)
    features = BarrierFeatures(problem, np.array([[1.0, 1.0]]), points, 0)
    assert np.any(features.tiles.window.spot > 0)
    assert np.any(features.tiles.window.strip > 0)
    coefficients = np.random.default_rng(0).standard_normal(features.count)
    x = points[:40]
    A, b, c, _ = problem.coefficients(x)
    w = jax.jit(jax.vmap(jet_of(explicit(features, coefficients))))(x)
    expected = -(np.sum(A * w.hessian, axis=(1, 2)) + np.sum(b * w.gradient, axis=1) - c * w.value)
    allowed = (
        ROUNDING_OF_SUMS * EPSILON * (np.abs(features.rows(x, (A, b, c))) @ np.abs(coefficients))
    )
    found = features.applied(x, (A, b, c), coefficients)
    np.testing.assert_array_less(np.abs(found + allowed - expected), allowed)
    assert np.all(found <= expected)
    value = features.value(x, coefficients)
    np.testing.assert_allclose(value, w.value, rtol=0, atol=1e-11)
    assert np.all(value >= w.value)


def test_interfaces_with_a_kink_are_not_used():
    problem = cordes.Linear(
        SQUARE, np.eye(2), 1.0, interfaces=[lambda x: jnp.maximum(x[0], x[1]) - 0.5, lambda x: x[1]]
    )
    features = BarrierFeatures(problem, np.zeros((0, 2)), SQUARE.interior_points(2000, 3), 0)
    assert len(features.inputs.interfaces) == 1


# Training -----------------------------------------------------------------------------------------


def random_task(power, seed=0, points=400, count=12):
    generator = np.random.default_rng(seed)
    weight = generator.random(points) / points
    rows = generator.standard_normal((points, count))
    rows = rows @ orthonormal(rows * np.sqrt(weight)[:, None])
    heights = np.concatenate([generator.standard_normal((50, count)), np.zeros((1, count))])
    return Task(rows, generator.standard_normal(points) + 1, weight, heights, 0.7, power)


@pytest.mark.parametrize("power", [2, 3])
def test_derivatives_of_the_bound(power):
    """The gradient is that of differences; the second derivatives are not larger than the Hessian
    of the majorant, and not much smaller."""
    task, step = random_task(power)._replace(sharpness=5.0, floor=0.1), 1e-4
    generator = np.random.default_rng(1)
    for _ in range(5):
        c, direction = 0.3 * generator.standard_normal((2, 12))
        gradient, hessian = task.derivatives(c)
        values = [task.value(c + t * direction) for t in (-step, 0.0, step)]
        assert (values[2] - values[0]) / (2 * step) == pytest.approx(
            gradient @ direction, rel=1e-5, abs=1e-7
        )
        curvature = (values[2] - 2 * values[1] + values[0]) / step**2
        assert 0 < curvature <= direction @ hessian @ direction * (1 + 1e-4)


def test_newton_finds_the_minimum():
    """A linear program agrees: for a huge factor the violation vanishes, and the maximum is the
    smallest possible."""
    task = random_task(2)._replace(factor=200.0)
    task = task._replace(right=task.rows[:, 0] - 0.5 + 0.1 * np.sin(np.arange(400)))
    c = minimise(task, 100)
    # Variables c and t: t ≥ heights c, rows c ≥ right.
    count = task.rows.shape[1]
    upper = np.block([[task.heights, -np.ones((51, 1))], [-task.rows, np.zeros((400, 1))]])
    program = linprog(
        np.eye(count + 1)[-1],
        upper,
        np.concatenate([np.zeros(51), -task.right]),
        bounds=(None, None),
    )
    assert program.status == 0
    assert np.max(task.heights @ c) + 200 * np.sqrt(
        task.weight @ np.maximum(task.right - task.rows @ c, 0) ** 2
    ) == pytest.approx(program.fun, rel=0.05)


def test_training_points(torsion):
    """They lie in the domain, none is a point of the measure, and their weights integrate over the
    domain, with a little more at a singular point."""
    principle = torsion[2]
    x, weight = training_points(principle, np.zeros((0, 2)), 0)
    assert np.all(principle.domain.contains(x))
    assert np.all(weight > 0)
    assert not set(map(tuple, x)) & set(map(tuple, principle.measure.points))
    for power in itertools.product((0, 2), repeat=2):
        assert weight @ np.prod(x ** np.array(power), axis=1) == pytest.approx(
            1 / np.prod(np.array(power) + 1), rel=0.02
        )
    more, weights = training_points(principle, np.array([[1.0, 1.0]]), 0)
    assert np.all(principle.domain.contains(more))
    # A third of the quarter of a disk of radius .3.
    assert np.sum(weights) - np.sum(weight) == pytest.approx(np.pi * 0.3**2 / 12, rel=0.05)


# Bounds -------------------------------------------------------------------------------------------


def test_constant_residual_in_the_square(torsion):
    """-Δv = 1: the error is the torsion function. Green gives .1125, ABP .1768, a parabola .131."""
    problem, candidate, principle = torsion
    found = network_bound(problem, candidate, principle)
    assert TORSION <= found.bound <= 0.0765
    assert found.converged
    exact = jax.jit(jax.vmap(_torsion))(principle.measure.points)
    assert np.all(np.asarray(exact) <= found.pointwise + 1e-9)


def _torsion(x):
    """The Fourier series of the solution of -Δu = 1 in the unit square."""
    k = jnp.arange(1, 60, 2)
    return x[0] * (1 - x[0]) / 2 - jnp.sum(
        4
        / (jnp.pi * k) ** 3
        * jnp.sin(jnp.pi * k * x[0])
        * jnp.cosh(jnp.pi * k * (x[1] - 0.5))
        / jnp.cosh(jnp.pi * k / 2)
    )


@pytest.mark.parametrize("size", [0.0, 0.02, 1.0])
def test_a_bad_barrier_gives_a_valid_bound(torsion, monkeypatch, size):
    """Random functions in place of trained ones: what they lack is measured, and the bound stays
    true."""
    problem, candidate, principle = torsion

    def random(setting, steps):
        features = BarrierFeatures(
            setting.problem, setting.singular, setting.principle.measure.points, 0
        )
        return Trained(
            features, size * np.random.default_rng(4).standard_normal((features.count, 2))
        )

    monkeypatch.setattr(module, "_train", random)
    monkeypatch.setitem(module.BUDGETS, 2, 15_000)
    found = network_bound(problem, candidate, principle)
    assert found.bound >= TORSION
    assert np.all(
        np.asarray(jax.jit(jax.vmap(_torsion))(principle.measure.points)) <= found.pointwise + 1e-9
    )
    if size == 0:
        assert found.bound == pytest.approx(principle.estimate().bound, rel=1e-9)


def bump(x):
    return (1 - x[0] ** 2) * (1 - x[1] ** 2)


ERRORS = {
    # A jumps on x₁ = 0, and so does D² of the error and the residual.
    "jump": (
        {
            "A": lambda x: jnp.where(
                x[0] > 0, jnp.array([[3.0, 0.5], [0.5, 1.0]]), jnp.array([[1.0, -0.5], [-0.5, 1.0]])
            ),
            "interfaces": [lambda x: x[0]],
        },
        lambda x: bump(x) * (0.5 + x[0] * jnp.abs(x[0])),
        1.25,
    ),
    "drift": (
        {"A": np.array([[2.0, 0.5], [0.5, 1.0]]), "b": np.array([3.0, -1.0]), "c": 2.0},
        lambda x: bump(x) * jnp.exp(x[0]),
        1.2,
    ),
    # The residual changes its sign many times; a bound by its absolute value would be several times
    # larger.
    "oscillating": (
        {"A": np.eye(2)},
        lambda x: jnp.sin(3 * jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1]),
        1.05,
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_planted_errors(name):
    """Known errors of both signs: the bound is true, at every point, and sharp."""
    options, error, most = ERRORS[name]
    problem, candidate = planted(
        SQUARE,
        options["A"],
        error,
        options.get("b"),
        options.get("c"),
        options.get("interfaces", ()),
    )
    principle = principle_of(problem, candidate, budget=10_000)
    found = network_bound(problem, candidate, principle)
    truth = largest(error, SQUARE)
    assert truth <= found.bound <= most * truth
    assert found.converged
    values = np.abs(jax.jit(jax.vmap(error))(principle.measure.points))
    assert np.all(values <= found.pointwise + 1e-9)
    assert found.bound < 0.6 * min(each.bound for each in maxima(principle))


@pytest.mark.parametrize(("domain", "truth"), [(Box([0], [1]), 1 / 8), (Ball([0, 0, 0], 1), 1 / 6)])
def test_other_dimensions(domain, truth, monkeypatch):
    """-Δv = 1 on the interval and in the ball: polynomials."""
    monkeypatch.setitem(barrier_training.BESIDE, 3, 4000)
    problem = cordes.Linear(domain, np.eye(domain.dimension), 1.0)
    candidate = FunctionCandidate(problem, lambda x: 0.0 * x[0])
    found = network_bound(
        problem, candidate, principle_of(problem, candidate, budget=5000), steps=10
    )
    assert truth <= found.bound <= 1.02 * truth


def test_answer_of_a_solve(solved):
    """Close to rounding level the residual is noise in layers; the bound is still several times
    sharper than the others."""
    solution = solved("ex4.2-continuous")
    candidate = AnswerCandidate(solution.problem, solution)
    principle = principle_of(solution.problem, candidate, solution.singular_locations)
    found = network_bound(solution.problem, candidate, principle, solution.singular_locations)
    assert (
        solution.error().linf <= found.bound <= 0.5 * min(each.bound for each in maxima(principle))
    )
    assert found.converged


def test_nothing_to_dominate():
    problem = cordes.Linear(SQUARE, np.eye(2), 0.0)
    candidate = FunctionCandidate(problem, lambda x: 0.0 * x[0])
    assert network_bound(problem, candidate, principle_of(problem, candidate)).bound == 0


def test_a_drift_beyond_all_bounds():
    """The constant of ABP is infinite: no bound, and no warning."""
    problem, candidate = planted(SQUARE, np.eye(2), bump, b=np.array([500.0, 0.0]))
    principle = principle_of(problem, candidate)
    assert np.isinf(principle.factor)
    assert np.isinf(network_bound(problem, candidate, principle, steps=3).bound)


def test_needs_quadrature(torsion):
    problem, candidate, _ = torsion
    points = problem.domain.interior_points(100, 0)
    principle = MaximumPrinciple(
        problem.domain, Sample(points, 1.0, 0.99, 4), candidate.evaluate(points), False
    )
    with pytest.raises(OptionError, match="quadrature"):
        network_bound(problem, candidate, principle)
