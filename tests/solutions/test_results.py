"""What a result says of the error: `converged` is a word of the certificate, at a level that is
enough; and residuals are relative to the data."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates import level
from cordes.certificates.certificate import Certificate
from cordes.certificates.theorem import Citation, Theorem
from cordes.results import Result
from cordes.solutions.sizes import data_size
from cordes.solutions.verdict import SHARE

SQUARE = cordes.Box([0, 0], [1, 1])
SMALL = {"features": 60, "progress": False}


def wave(**data):
    return cordes.Linear(
        SQUARE,
        1.0,
        lambda x: -2 * jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]),
        **data,
    )


@pytest.fixture(scope="module")
def solution():
    return cordes.solve(wave(), **SMALL)


def bounded(solution, bounds, **facts):
    """The solution with another certificate, and perhaps with a tolerance."""
    known = {"level": level.ENOUGH} | bounds
    known = {name: value for name, value in known.items() if name != "tol"}
    changed = {**solution.facts, "tol": bounds.get("tol")}
    certificate = Certificate(**known)
    return solution.replace(
        certificate=certificate, facts=changed, result=facts.get("result", Result.converged)
    ).judged()


def test_levels_have_an_order_and_one_rule():
    assert level.LEVELS == ("sampled", "statistical", "quadrature", "enclosed", "proved")
    assert level.ENOUGH in level.LEVELS
    first = level.LEVELS.index(level.ENOUGH)
    for k, name in enumerate(level.LEVELS):
        assert level.enough(name, 2) == level.enough(name, 3) == (k >= first)
        assert level.enough(name, 4) == (k >= 1)
    assert level.enough("statistical (asymptotic)", 7)


def test_the_word_is_that_of_the_certificate(solution):
    """Without a tolerance: the largest error, or where it has no bound the root mean square, at
    most 1e-3 of the largest |u|, which is 1."""
    assert solution.converged
    assert solution.result is Result.converged
    assert solution.certificate.Linf < SHARE * solution.size
    assert solution.size == pytest.approx(1, rel=1e-3)
    for bounds, converged, said in (
        ({"Linf": 0.9e-3, "rms": 1e-5}, True, "largest error is within 0.001 of the largest |u|"),
        ({"Linf": 1.1e-3, "rms": 1e-5}, False, "largest error 1.10e-03 is more than 0.001 of"),
        ({"rms": 0.9e-3}, True, "root mean square error is within"),
        ({"rms": 1.1e-3}, False, "root mean square error 1.10e-03 is more"),
        ({"level": None}, False, "nothing bounds the error"),
    ):
        found = bounded(solution, bounds)
        assert found.converged == converged
        assert found.result is (Result.converged if converged else Result.converged_uncertified), (
            bounds
        )
        assert said in found.verdict


def test_a_tolerance_decides_alone(solution):
    for bounds, result in (
        ({"rms": 0.4, "Linf": 9.0, "tol": 0.5}, Result.converged),
        ({"rms": 0.6, "Linf": 1e-9, "tol": 0.5}, Result.tolerance_not_reached),
        ({"level": None, "tol": 0.5}, Result.converged_uncertified),
    ):
        assert bounded(solution, bounds).result is result
    # What stopped a solve is not undone by a bound.
    kept = bounded(solution, {"rms": 1e-9, "Linf": 1e-9}, result=Result.stagnated)
    assert kept.result is Result.stagnated
    assert kept.verdict == Result.stagnated.sentence
    # A better certificate may still meet the tolerance.
    later = bounded(solution, {"rms": 0.4, "tol": 0.5}, result=Result.tolerance_not_reached)
    assert later.converged


def test_a_level_that_is_too_low_is_said(solution, monkeypatch):
    sampled = bounded(solution, {"rms": 1e-9, "level": "sampled"})
    assert sampled.result is Result.converged_uncertified
    assert f"its level is sampled, where {level.ENOUGH} is asked for" in sampled.verdict
    monkeypatch.setattr(level, "ENOUGH", "enclosed")
    for tol in ({}, {"tol": 0.5}):
        found = bounded(solution, {"rms": 1e-9, "level": "quadrature", **tol})
        assert found.result is Result.converged_uncertified
        assert "its level is quadrature, where enclosed is asked for" in found.verdict
        assert bounded(solution, {"rms": 1e-9, "level": "enclosed", **tol}).converged


def test_the_level_is_that_of_the_weakest_ingredient():
    """A contraction that was only sampled, but for norms by the maximum principle alone."""
    energy, principle = Citation(Theorem.T1b), Citation(Theorem.ABP)
    certificate = Certificate(
        H1=1.0,
        rms=1.0,
        L2=1.0,
        Linf=1.0,
        level="quadrature",
        epsilon_source="sampled",
        citation=energy,
        citations={"H1": energy, "L2": energy, "Linf": principle},
    )
    assert certificate.levels == {
        "H1": "sampled",
        "rms": "sampled",
        "L2": "sampled",
        "Linf": "quadrature",
    }
    analytic = dataclasses.replace(certificate, epsilon_source="analytic", known={"L2": "enclosed"})
    assert set(analytic.levels.values()) == {"quadrature", "enclosed"}
    assert analytic.levels["L2"] == "enclosed"
    assert analytic.facts()["levels"] == analytic.levels
    assert Certificate().levels == {}
    assert "; sampled for H1, L2, rms" in str(certificate)
    assert "; enclosed for L2" in str(analytic)


@pytest.mark.parametrize("tol", [None, 0.5])
def test_without_a_certificate_nothing_is_certified(tol):
    found = cordes.solve(wave(), certify=False, tol=tol, **SMALL)
    assert found.certificate is None
    assert found.result is Result.converged_uncertified
    assert "no certificate was made" in found.verdict
    assert "converged_uncertified" in repr(found)
    later = found.certified()
    assert later.converged
    assert found.result is Result.converged_uncertified


def test_a_training_of_given_length_is_finished():
    options = {"width": 8, "depth": 1, "points": 60, "epochs": 20, "progress": False}
    trained = cordes.solve(wave(), "adam", **options)
    assert trained.result is Result.finished
    assert not trained.converged
    assert trained.certificate is not None
    assert trained.certified().result is Result.finished
    assert cordes.solve(wave(), "adam", tol=1e-3, **options).result is Result.tolerance_not_reached


def test_what_ended_as_asked():
    for tol in (None, 1e-3):
        done = {result for result in Result if result.as_asked(tol)}
        plain = {Result.converged, Result.finished}
        assert done == plain | ({Result.converged_uncertified} if tol is None else set())


def test_a_notebook_and_a_page_say_the_same(solution, tmp_path):
    low = bounded(solution, {"rms": 1e-9, "level": "sampled"})
    shown = low._repr_html_()
    assert "least-squares: converged_uncertified (The bound of the root mean square" in shown
    assert f"relative residual {low.relative_residual:.3g}"[:20] in shown


# Residuals ----------------------------------------------------------------------------------------


def problem_in(length=1.0, value=1.0, factor=1.0):
    """One problem in other units of x, u, and A with f."""

    def f(x):
        y = x / length
        return factor * value / length**2 * (jnp.exp(y[0]) - 20 * jnp.sin(3 * y[0] * y[1]))

    return cordes.Linear(
        cordes.Box([0, 0], [length, length]),
        factor * np.array([[2, 0.5], [0.5, 1]]),
        f,
        b=lambda x: factor / length * jnp.array([1.0, x[0] / length]),
        c=3 * factor / length**2,
        g=lambda x: value * jnp.sin((x[0] + 2 * x[1]) / length),
    )


UNITS = [
    {"length": 1000.0},
    {"value": 1e-6},
    {"factor": 1e5},
    {"length": 1e3, "value": 1e-6, "factor": 1e5},
]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("multiplier", [True, False])
def test_the_size_of_the_data_changes_with_units_as_the_residual(units, multiplier):
    # The penalty on amplitudes of singular functions has units of its own.
    options = {"multiplier": multiplier, "singular": False, "certify": False, **SMALL}
    plain = cordes.solve(problem_in(), **options)
    other = cordes.solve(problem_in(**units), **options)
    length, value, factor = (units.get(name, 1.0) for name in ("length", "value", "factor"))
    expected = value / length**2 * (1.0 if multiplier else factor)
    assert data_size(other) == pytest.approx(expected * data_size(plain), rel=1e-9)
    # The solver itself may take another way: the frequencies of its features compete.
    assert other.relative_residual == pytest.approx(plain.relative_residual, rel=0.2)
    assert f"relative residual {other.relative_residual:.2e}" in repr(other)


def test_an_answer_that_its_boundary_values_give_has_no_residual():
    """f = 0 and g = x₁ leave nothing but rounding, which is not called stagnation."""
    found = cordes.solve(cordes.Linear(cordes.Ball([0, 0], 1), 1.0, 0.0, g=lambda x: x[0]), **SMALL)
    assert found.relative_residual < 1e-12
    assert found.converged


# The command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("tol", "status"), [(None, 0), ("0.5", 1)])
def test_the_exit_status_follows_the_word(tol, status, invoke, tmp_path, monkeypatch):
    file = tmp_path / "plain.toml"
    file.write_text(
        'schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = [0, 0]\nupper = [1, 1]\n'
        "[equation]\nA = [[1, 0], [0, 1]]\nf = 2\n"
    )
    asked = [] if tol is None else ["--tol", tol]
    command = ("solve", file, "--features", 40, "--json", *asked)
    found, shown, _ = invoke(*command)
    facts = json.loads(shown)
    assert (found, facts["result"]) == (0, "converged")
    reached = facts["certificate"]["levels"]["rms"]
    assert level.enough(reached, 2)
    assert facts["relative_residual"] < facts["residual"] * 10
    monkeypatch.setattr(level, "ENOUGH", "proved")
    found, shown, _ = invoke(*command)
    facts = json.loads(shown)
    assert (found, facts["result"]) == (status, "converged_uncertified")
    assert f"its level is {reached}" in facts["verdict"]
