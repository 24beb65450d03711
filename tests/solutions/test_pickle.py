"""Problems, conditions, certificates and solutions go through Python's own pickle, so that a pool
of processes can take and hand back any of them; or they say what cannot, and what to do instead."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CordesError, NotPickledError

SMALL = {"features": 30, "progress": False}
SQUARE = cordes.Box([0, 0], [1, 1])


def source(x):
    return -jnp.exp(x[0])


def by_name():
    return cordes.Linear(SQUARE, 1.0, source, name="by name")


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.fixture(scope="module")
def answer():
    return cordes.solve(by_name(), **SMALL)


def test_a_solution_comes_back_with_its_certificate(answer):
    other, x = again(answer), SQUARE.interior_points(20, seed=1)
    assert type(other) is type(answer)
    np.testing.assert_array_equal(other(x), answer(x))
    np.testing.assert_array_equal(other.hessian(x), answer.hessian(x))
    np.testing.assert_array_equal(other.residual(x), answer.residual(x))
    assert other.certificate.facts() == answer.certificate.facts()
    for name in ("result", "residual_rms", "points", "parameters", "seconds", "facts", "history"):
        assert getattr(other, name) == getattr(answer, name)
    assert other.problem.name == "by name"
    # It can be certified and solved on as before.
    assert other.certify().rms == answer.certificate.rms
    assert again(answer.replace(certificate=None)).certificate is None


def test_gallery_problems_and_conditions(answer):
    problem = again(cordes.gallery["ex4.2-discontinuous"])
    assert problem.source == {"gallery": "ex4.2-discontinuous"}
    condition = cordes.check(answer.problem)
    assert str(again(condition)) == str(condition)
    np.testing.assert_array_equal(again(condition).worst_point, condition.worst_point)


def test_a_function_without_a_name_is_refused_in_words(answer):
    problem = cordes.Linear(SQUARE, 1.0, lambda x: source(x), name="mine")
    assert np.isfinite(cordes.check(again(answer).problem).epsilon)
    for value in (problem, cordes.solve(problem, certify=False, **SMALL)):
        with pytest.raises(NotPickledError, match=r"f is a function without a name.* TOML"):
            pickle.dumps(value)
        with pytest.raises(CordesError):
            pickle.dumps([value])
    # A certificate holds numbers, and always can.
    assert again(cordes.certify(problem, answer)).rms is not None


def refined(solution):
    x = solution.problem.domain.interior_points(5, seed=2)
    return solution(x), solution.certified(), cordes.check(solution.problem)


@pytest.mark.long
def test_a_pool_of_processes(answer):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        values, certified, condition = pool.submit(refined, answer).result(timeout=300)
    np.testing.assert_array_equal(values, answer(SQUARE.interior_points(5, seed=2)))
    assert certified.certificate.rms == pytest.approx(answer.certificate.rms, rel=1e-9)
    assert condition.epsilon == 1.0
