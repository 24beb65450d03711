"""Rules of arguments: what they take, what they refuse, and in which words."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cordes
from cordes.arguments import as_path, check_arguments, flag, number, one_of, positive, whole
from cordes.errors import OptionError, UnknownNameError, shown

NAME = "ex4.2-continuous"


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (whole(1), (1, 10**30, np.int64(3), np.uint8(3))),
        (whole(0, 5), (0, 5)),
        (number(0.0), (0, 0.5, np.float32(0.5), Fraction(1, 2), 10**300)),
        (number(0.0, below=1.0), (0.0, 0.999)),
        (positive, (1e-300, 3, np.float64(0.1))),
        (flag, (True, False)),
        (one_of("word", ("a", "b")), ("a", "b")),
    ],
)
def test_what_is_right_is_taken(rule, values):
    for value in values:
        check_arguments({"name": rule}, {"name": value})
    check_arguments({"name": rule}, {"name": None}, ("name",))
    check_arguments({"name": rule}, {})
    with pytest.raises(OptionError):
        check_arguments({"name": rule}, {"name": None})


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (whole(1), 0, "name = 0: a whole number of at least 1 is needed."),
        (whole(1), 1.0, "name = 1.0: a whole number of at least 1 is needed."),
        (whole(1), True, "name = True: a whole number of at least 1 is needed."),
        (whole(0, 5), 6, "name = 6: a whole number from 0 to 5 is needed."),
        (number(0.0), math.nan, "name = nan: a finite number of at least 0 is needed."),
        (number(0.0), math.inf, "name = inf: a finite number of at least 0 is needed."),
        (number(0.0, below=1.0), 1.0, "name = 1.0: a finite number of at least 0, below 1 is"),
        (positive, math.inf, "name = inf: it must be a positive number and finite."),
        (positive, "a", "name = 'a': it must be a positive number."),
        (positive, [1.0], "name = [1.0]: it must be a positive number."),
        (positive, np.ones(2), "name = array([1., 1.]): it must be a positive number."),
        (flag, 1, "name = 1: True or False is needed."),
        (one_of("word", ("left", "right")), "lefd", "There is no word 'lefd'. Did you mean left?"),
        (one_of("word", ("left", "right")), ["left"], "There is no word '['left']'."),
    ],
)
def test_what_is_wrong_is_refused(rule, value, message):
    with pytest.raises(OptionError) as refused:
        check_arguments({"name": rule}, {"name": value})
    assert str(refused.value).startswith(message)


def test_long_values_are_cut():
    assert shown(-(10**5000)) == "a number of about 4983 digits"
    assert shown("x" * 1000) == "'" + "x" * 56 + "..."
    with pytest.raises(UnknownNameError) as refused:
        cordes.gallery["n" * 10**6]
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("given", [None, 3, "", "a\0b", b"x", ["x"]])
def test_a_path_is_a_text(given):
    with pytest.raises(OptionError, match="the path of a file is needed"):
        as_path(given)
    for call in (cordes.load, cordes.problem):
        with pytest.raises(OptionError):
            call(given)


def test_a_name_that_is_too_long_is_no_path():
    for name in ("n" * 300, "n" * 300 + ".toml", "n" * 253):
        with pytest.raises(OptionError, match=r"the name is too long|There is no"):
            cordes.problem(name)


def test_a_number_that_cannot_be_computed_with_is_none():
    for rule in (positive, number(0), number(0, 1)):
        with pytest.raises(OptionError, match="tol = 1000"):
            rule("tol", 10**400)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 0}, "features = 0: a whole number of at least 1"),
        ({"features": math.nan}, "features = nan"),
        ({"frequency": -1.0}, "frequency = -1.0: it must be a positive number"),
        ({"delta": math.nan}, "delta = nan: a finite number of at least 0"),
        ({"boundary": "soft", "boundary_weight": math.nan}, "boundary_weight = nan"),
        ({"method": "adam", "learning_rate": -1}, "learning_rate = -1: it must be a positive"),
        ({"method": "adam", "precision": "half"}, "There is no precision 'half'. Known: float32"),
        ({"method": "gauss-newton", "width": 0}, "width = 0: a whole number of at least 1"),
        ({"method": "gauss-newton", "momentum": 1.0}, "momentum = 1.0: a finite number of at le"),
        ({"seed": -1}, "seed = -1: a whole number of at least 0"),
        ({"seed": 1.5}, "seed = 1.5"),
        ({"tol": math.inf}, "tol = inf: it must be a positive number and finite"),
        ({"start": "file"}, "start = 'file': a solution is needed"),
        ({"multiplier": "no"}, "multiplier = 'no': True or False is needed"),
        ({"method": None}, "There is no method 'None'"),
        ({"method": cordes.Adam}, "method = Adam is a class: write Adam()"),
        ({"seed": None}, "seed = None: a whole number of at least 0"),
        ({"certify": None}, "certify = None: True or False"),
        ({"oversampling": None}, "oversampling = None"),
        ({"delta": None}, "delta = None"),
    ],
)
def test_nonsense_is_refused_before_any_work(options, message):
    with pytest.raises(OptionError) as refused:
        cordes.solve(NAME, **options)
    assert str(refused.value).startswith(message)


def test_every_error_is_public():
    def family(kind):
        return {kind, *(each for below in kind.__subclasses__() for each in family(below))}

    ours = {each for each in family(cordes.CordesError) if each.__module__.startswith("cordes")}
    assert {each.__name__ for each in ours} <= set(cordes.__all__)


SQUARE = cordes.Box([0, 0], [1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: cordes.Linear(SQUARE, 1.0, 1.0, interfaces=None), "interfaces is None"),
        (lambda _: cordes.Linear(SQUARE, 1.0, 1.0, epsilon="a"), "epsilon = 'a'"),
        (lambda _: cordes.Linear(SQUARE, 1.0, 1.0, name=3), "name = 3: a text"),
        (lambda _: cordes.Box([-1e308], [1e308]), "inf wide along axis 0.*another unit"),
        (lambda answer: answer("abc"), r"x = 'abc': points of shape \(..., 2\) are needed"),
        (lambda answer: answer(np.zeros((0, 2))), "there must be one at least"),
        (lambda answer: answer.gradient([[1, "b"]]), "points of shape"),
        (lambda answer: answer.save(None), "path = None: the path of a file is needed"),
        (lambda answer: answer.save("a\0b"), "the path of a file is needed"),
        (lambda answer: answer.error("x"), "reference = 'x': a function of points"),
        (lambda answer: answer.error(lambda x: x), r"shape \(40000, 2\).*\(40000,\) are needed"),
        (lambda answer: answer.error(lambda x: "a"), "reference gives"),
        (lambda _: cordes.Transport(SQUARE, 1.0, normalise="no"), "normalise = 'no': True or"),
    ],
)
def test_nonsense_elsewhere_is_refused(call, message, solved):
    with pytest.raises(cordes.CordesError, match=message):
        call(solved(NAME))


def test_coefficients_whose_squares_are_zero_are_refused_by_solve():
    """Certificates need no multiplier, and have bounds."""
    problem = cordes.Linear(cordes.Box([0], [1]), 1e-199, 1e-199)
    with pytest.raises(cordes.CoefficientError, match="so small that its square is zero"):
        cordes.solve(problem)
