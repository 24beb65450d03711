"""What all problems have in common: they do not change, know what they were made of, and go through
a pickle or say why not."""

import copy
import pickle
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import FrozenError, NotPickledError
from cordes.problems.checks import fingerprints
from cordes.problems.problem import AbstractProblem

SQUARE = cordes.Box([-1, -1], [1, 1])
TOML = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[equation]
A = 1
f = "sin(x1)"
"""


def source(x):
    return 1.0 + x[0]


def kinds() -> list[AbstractProblem]:
    disk = cordes.Ball([0, 0], 1)
    return [
        cordes.Linear(SQUARE, 1.0, source),
        cordes.HJB(SQUARE, [0.0, 1.0], lambda x, a: (1 + a) * jnp.eye(2), 1.0),
        cordes.MongeAmpere(disk, 1.0, g=0.5),
        cordes.Transport(disk, 1.0),
    ]


@pytest.mark.parametrize("problem", kinds(), ids=lambda problem: type(problem).__name__)
def test_a_problem_cannot_be_changed(problem):
    for name in ("f", "domain", "anything"):
        with pytest.raises(FrozenError, match=rf"{name} of .* problem\.replace\({name}=…\)"):
            setattr(problem, name, 1.0)
    with pytest.raises(AttributeError):
        problem.name = "other"
    assert copy.copy(problem).domain is problem.domain


def test_replacing_an_argument_checks_it_and_leaves_the_problem_as_it_was():
    problem = cordes.Linear(SQUARE, 1.0, source, c=2.0, name="mine")
    other = problem.replace(f=3.0)
    x = jnp.array([0.5, 0.0])
    assert (float(problem.f(x)), float(other.f(x))) == (1.5, 3.0)
    assert other.has_reaction
    assert other.name == "mine"
    with pytest.raises(cordes.CordesError, match="f has shape"):
        problem.replace(f=np.zeros(3))
    assert cordes.gallery["ex4.2-continuous"].replace(c=1.0).source is None


def test_a_problem_of_functions_with_names_goes_through_a_pickle():
    problem = pickle.loads(pickle.dumps(cordes.Linear(SQUARE, 1.0, source, name="mine")))
    assert problem.name == "mine"
    assert float(problem.f(jnp.array([0.5, 0.0]))) == 1.5


def test_problems_of_the_gallery_and_of_toml_go_by_their_source():
    assert pickle.loads(pickle.dumps(cordes.gallery["ex4.5-hjb"])) is cordes.gallery["ex4.5-hjb"]
    from cordes.problems.written.toml_file import problem_from_toml

    again = pickle.loads(pickle.dumps(problem_from_toml(TOML, "mine")))
    assert again.source == {"toml": TOML}
    assert float(again.f(jnp.array([0.5, 0.0]))) == pytest.approx(np.sin(0.5), abs=1e-15)


def test_a_function_without_a_name_is_refused_with_a_remedy():
    problem = cordes.Linear(SQUARE, 1.0, lambda x: x[0])
    with pytest.raises(NotPickledError, match=r"f is a function without a name .* TOML file"):
        pickle.dumps(problem)


def test_data_that_were_changed_in_place_are_refused():
    table = np.zeros((8, 8))

    def f(x):
        place = jnp.clip((8 * x).astype(int), 0, 7)
        return jnp.asarray(table)[place[0], place[1]] - 2 * jnp.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), np.eye(2), f)
    assert problem.marks == fingerprints(problem)
    table[3, 5] = 1.0
    for use in (
        lambda: cordes.certify(problem, lambda x: 0.0 * x[0]),
        lambda: cordes.solve(problem),
    ):
        with pytest.raises(
            FrozenError, match=r"f of .* is not what it was .* problem\.replace\(\)"
        ):
            use()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = problem.replace()
    assert other.marks["f"] != problem.marks["f"]
    assert other.marks["A"] == problem.marks["A"]
    assert float(np.max(other.coefficients(np.array([[0.45, 0.7]])).f)) == pytest.approx(1 - 2.3)
