"""Solvers as values: their options and defaults, what is refused, where the time of a solve goes,
and certificates that are cut short."""

import time

import numpy as np
import pytest

import cordes
from cordes.errors import OptionError
from cordes.runtime import clock as clock_module
from cordes.runtime.clock import Clock, OutOfTimeError, check_deadline, deadline
from cordes.solvers import certified
from cordes.solvers.options import SOLVERS

SQUARE = cordes.Box([-1, -1], [1, 1])
TINY = {"width": 8, "depth": 1, "points": 50, "epochs": 10}


@pytest.fixture(scope="module")
def problem():
    return cordes.Linear(SQUARE, 1.0, -1.0)


@pytest.mark.parametrize("kind", list(SOLVERS.values()))
def test_a_solver_prints_its_options_with_their_defaults(kind):
    """What is printed makes the same solver again."""
    solver = kind()
    assert kind(**solver.data()).data() == solver.data()
    for name, value in solver.data().items():
        assert f"{name}={value!r}" in repr(solver)


def test_a_solver_is_the_same_as_its_name_with_options(problem):
    x = SQUARE.interior_points(10, seed=1)
    solver = cordes.LeastSquares(features=40, frequency=2.0)
    one = cordes.solve(problem, solver, certify=False)
    two = cordes.solve(problem, "least-squares", certify=False, features=40, frequency=2.0)
    assert np.array_equal(one(x), two(x))
    assert one.facts["solver"] == two.facts["solver"] == solver.data()
    trained = cordes.solve(problem, cordes.Adam(**TINY), certify=False)
    assert trained.method == "adam"
    assert trained.facts["solver"]["learning_rate"] == 3e-4


def test_what_is_not_given_to_adam_follows_from_its_estimator():
    assert (cordes.Adam().width, cordes.Adam().probes) == (64, None)
    stochastic = cordes.Adam(estimator="stochastic", depth=3)
    assert (stochastic.width, stochastic.depth, stochastic.probes) == (128, 3, 16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cordes.Adam(epochs=5), "epochs = 5: a whole number of at least 10"),
        (lambda: cordes.Adam(activation="tahn"), "Did you mean tanh"),
        (lambda: cordes.GaussNewton(activation="sin"), "Did you mean sine"),
        (lambda: cordes.LeastSquares(oversampling=1.0), "oversampling = 1.0: .* at least 1.2"),
        (lambda: cordes.Adam(probes=4), "pass that too"),
        (lambda: cordes.Cells(degree=3), "degree = 3: a whole number from 4 to 24"),
        (lambda: cordes.Cells(cells=0), "cells = 0: a whole number of at least 1"),
        (lambda: cordes.Adam(estimator="stochastic", probes=0), "probes = 0"),
    ],
)
def test_a_solver_that_makes_no_sense_cannot_be_made(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_options_of_a_solver_that_was_given_are_refused(problem):
    with pytest.raises(OptionError, match=r"width is an option of the solver that was given"):
        cordes.solve(problem, cordes.Adam(width=8), width=16)
    with pytest.raises(OptionError, match="epochs is an option of adam, not of least-squares"):
        cordes.solve(problem, cordes.LeastSquares(), epochs=100)
    with pytest.raises(OptionError, match=r"preset is an option of the solver that was given"):
        cordes.solve(problem, cordes.Adam(width=8), preset="paper")


def test_a_name_of_the_gallery_is_a_problem():
    solution = cordes.solve("ex4.2-continuous", features=20, certify=False)
    assert solution.problem.name == "ex4.2-continuous"
    assert solution.certificate is None


def test_the_parts_of_the_time_add_up(problem):
    begun = time.perf_counter()
    solution = cordes.solve(problem, features=40)
    passed = time.perf_counter() - begun
    parts = {name: solution.seconds[name] for name in ("prepare", "compile", "solve", "certify")}
    assert all(seconds >= 0 for seconds in parts.values())
    assert parts["certify"] > 0
    assert sum(parts.values()) == pytest.approx(solution.seconds["total"], rel=1e-9)
    assert 0.9 * passed <= solution.seconds["total"] <= passed


# Certificates on the clock ------------------------------------------------------------------------


def test_a_deadline_holds_inside_its_context_only():
    check_deadline()
    with deadline(Clock(1000)):
        check_deadline()
    late = Clock(1e-9)
    with pytest.raises(OutOfTimeError), deadline(late):
        pass
    check_deadline()
    assert clock_module._DEADLINE.get() is None


@pytest.mark.parametrize(
    ("raised", "result", "words"),
    [
        (OutOfTimeError, cordes.Result.time_out, "max_seconds passed"),
        (KeyboardInterrupt, cordes.Result.interrupted, "interrupted"),
    ],
)
@pytest.mark.parametrize("tol", [None, 1e-3])
def test_the_answer_outlives_its_certificate(problem, monkeypatch, raised, result, words, tol):
    """A certificate that is cut short gives no bound; the answer is kept, and says why."""

    def cut(*arguments, **options):
        raise raised

    monkeypatch.setattr(certified, "certify", cut)
    solution = cordes.solve(problem, features=40, tol=tol)
    assert solution.result is result
    assert solution.certificate is None
    assert words in solution.facts["uncertified"]
    assert np.isfinite(solution([0.3, 0.2]))


def test_max_seconds_bounds_the_certificate(problem, monkeypatch):
    """The time is up as soon as the answer is there: the certificate stops at its first check."""
    original = certified.certify

    def late(*arguments, **options):
        clock_module._DEADLINE.get().limit = 1e-9
        return original(*arguments, **options)

    monkeypatch.setattr(certified, "certify", late)
    solution = cordes.solve(problem, features=40, max_seconds=1000)
    assert solution.result is cordes.Result.time_out
    assert solution.certificate is None
