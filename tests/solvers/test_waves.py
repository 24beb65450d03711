"""Oscillating data: frequencies come from the data, growth goes on while nothing is found, and what
the user asks for is done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.networks import Inputs, RandomFeatures
from cordes.solutions.answer import Weights
from cordes.solvers.candidates import CandidateKind, data_frequencies
from cordes.solvers.least_squares import LARGEST, _continued
from cordes.solvers.rows.system import System

UNIT = cordes.Box([0, 0], [1, 1])


def poisson(u, domain=UNIT):
    return cordes.Linear(domain, A=1.0, f=lambda x: jnp.trace(jax.hessian(u)(x)), g=u, exact=u)


def solve(problem, **options):
    return cordes.solve(problem, certify=False, progress=False, **options)


@pytest.mark.quick
def test_a_wave_is_found_by_features_alone():
    """The residual used to stay where it was, and growth ended at 500 features and 400 % error."""
    problem = poisson(lambda x: jnp.sin(40 * x[0]) * jnp.cos(30 * x[1]))
    solution = solve(problem, method="least-squares")
    assert solution.error().linf < 1e-5
    assert solution.history[-1]["features"] <= 1000


@pytest.mark.long
@pytest.mark.parametrize(
    ("domain", "k"),
    [(UNIT, (20 * np.pi, np.pi)), (cordes.Box([0, 0], [100, 1]), (0.4 * np.pi, 2 * np.pi))],
    ids=["square", "1:100"],
)
def test_waves_along_one_axis_need_few_features(domain, k):
    """Twenty half waves, and twenty waves in a long box: each axis has a frequency of its own."""
    problem = poisson(lambda x: jnp.sin(k[0] * x[0]) * jnp.sin(k[1] * x[1]), domain)
    solution = solve(problem, method="least-squares")
    assert solution.error().linf < 1e-5
    assert solution.history[-1]["features"] <= 1000


@pytest.mark.long
def test_waves_get_more_features_than_usual_where_that_is_enough():
    """f oscillates on a disk, whose boundary turns waves: 2000 features, found by no more than the
    residual; a solve with other features and another frequency agrees."""
    problem = cordes.Linear(cordes.Ball([0, 0], 1), A=1.0, f=lambda x: jnp.sin(50 * x[0]))
    solution = solve(problem, method="least-squares")
    assert 1000 < solution.history[-1]["features"] <= LARGEST
    other = solve(problem, features=2500, frequency=30.0, seed=1)
    x = problem.domain.interior_points(500, 3)
    assert np.max(np.abs(solution(x) - other(x))) < 1e-2 * np.max(np.abs(other(x)))


@pytest.mark.long
def test_a_wave_of_a_control_problem():
    def exact(x):
        return jnp.sin(20 * x[0]) * jnp.cos(15 * x[1])

    def matrix(x, a):
        return jnp.diag(jnp.array([1 + 0.3 * a, 1 - 0.3 * a]))

    def right(x, a):
        applied = [jnp.sum(matrix(x, b) * jax.hessian(exact)(x)) for b in (-1.0, 0.0, 1.0)]
        return jnp.max(jnp.stack(applied))

    controls = np.array([-1.0, 0.0, 1.0])
    problem = cordes.HJB(UNIT, controls=controls, A=matrix, f=right, g=exact, exact=exact)
    assert solve(problem).error().linf < 1e-6


@pytest.mark.long
def test_growth_goes_on_to_the_size_that_was_asked_for():
    """With a frequency that finds nothing, which is kept to as well."""
    problem = poisson(lambda x: jnp.sin(80 * x[0]) * jnp.cos(60 * x[1]))
    solution = solve(problem, features=700, frequency=3.0)
    assert [stage["features"] for stage in solution.history] == [250, 500, 700]
    assert {stage["frequency"] for stage in solution.history} == {3.0}
    assert solution.result is cordes.Result.stagnated


def test_frequencies_of_data():
    """k for sin(kx) on an interval of half the length one; a jump has no more than its height."""

    def found(f):
        return data_frequencies(System(cordes.Linear(UNIT, A=1.0, f=f)))

    wave = found(lambda x: jnp.sin(40 * x[0]) * jnp.cos(30 * x[1]))
    np.testing.assert_allclose(wave, (20, 15), rtol=0.05)
    jump = found(lambda x: jnp.where(x[0] > 0.4, 1.0, -1.0))
    np.testing.assert_allclose(jump, 2.0)


@pytest.mark.long
def test_a_lift_that_solves_the_equation_leaves_nothing_to_do():
    """sin(80x) is its own lift; what is left is rounding, and no size to compare with."""
    solution = solve(poisson(lambda x: jnp.sin(80 * x[0])), method="least-squares")
    assert [stage["features"] for stage in solution.history] == [250]
    assert solution.error().linf < 1e-12


def test_the_kind_of_an_answer_is_read_off_its_weights():
    """So that a solve that goes on keeps its frequencies."""
    inputs = Inputs(UNIT)
    for axes in ((), (1.0, 0.3)):
        kind = CandidateKind(12.0, "coordinates", axes)
        active = np.array(axes or (1.0, 1.0))
        network = RandomFeatures(inputs, 400, kind.frequency, 0, active)
        found = _continued(Weights(network, np.zeros(0)))[2]
        assert found.frequency == pytest.approx(12, rel=0.1)
        np.testing.assert_allclose(found.axes, axes, rtol=0.2)
