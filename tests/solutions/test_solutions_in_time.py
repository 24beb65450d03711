"""Answers in time: how they are called, their derivatives, and the intervals in which they lie."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.reports.facts import solution_facts

HORIZON = 0.3
PLACES = np.array([[0.2], [0.5], [0.9]])


def exact(x, t):
    """Of u_t + u_xx = 0, backwards from the horizon."""
    return jnp.exp(-(jnp.pi**2) * (HORIZON - t)) * jnp.sin(jnp.pi * x[0]) + x[0]


@pytest.fixture(scope="module")
def answer():
    problem = cordes.Parabolic(
        cordes.Box([0], [1]),
        HORIZON,
        A=1.0,
        f=0.0,
        g=exact,
        terminal=lambda x: exact(x, HORIZON),
        exact=exact,
    )
    return cordes.solve(problem, certify=True)


def truth(t):
    return np.exp(-(np.pi**2) * (HORIZON - t)) * np.sin(np.pi * PLACES[:, 0]) + PLACES[:, 0]


def test_values_and_derivatives_at_the_users_time(answer):
    assert answer.result is cordes.Result.converged
    for t in (0.0, 0.1, HORIZON):
        wave = truth(t) - PLACES[:, 0]
        np.testing.assert_allclose(answer(PLACES, t), truth(t), atol=1e-9)
        np.testing.assert_allclose(answer.at(t)(PLACES), answer(PLACES, t))
        np.testing.assert_allclose(answer.time_derivative(PLACES, t), np.pi**2 * wave, atol=1e-6)
        curved = -(np.pi**2) * wave[:, None, None]
        np.testing.assert_allclose(answer.hessian(PLACES, t), curved, atol=1e-6)
    slope = answer.gradient(PLACES, HORIZON)
    np.testing.assert_allclose(slope[:, 0], 1 + np.pi * np.cos(np.pi * PLACES[:, 0]), atol=1e-7)


def test_one_time_for_all_points_or_one_for_each(answer):
    times = np.array([0.0, 0.1, 0.3])
    each = [float(answer(x, t)) for x, t in zip(PLACES, times, strict=True)]
    np.testing.assert_allclose(answer(PLACES, times), each)
    assert answer(PLACES[:, None], times).shape == (3, 3)
    with pytest.raises(cordes.OptionError, match="one time for all"):
        answer(PLACES, times[:2])
    with pytest.raises(cordes.OptionError, match="time is missing"):
        answer(PLACES)


def test_the_error_against_a_function_of_x_and_t(answer):
    def reference(x, t):
        return np.exp(-(np.pi**2) * (HORIZON - t)) * np.sin(np.pi * x[:, 0]) + x[:, 0]

    assert answer.error(reference).linf == pytest.approx(answer.error().linf, abs=1e-13)
    moved = answer.error(lambda x, t: reference(x, t) + 0.5 * t)
    assert moved.linf == pytest.approx(0.15, rel=1e-6)


def test_intervals_hold_the_truth_and_are_narrow_at_the_end_of_time(answer):
    for t in (0.0, 0.1, 0.29):
        lower, upper = answer.interval(PLACES, t)
        assert np.all((lower <= truth(t)) & (truth(t) <= upper))
        assert np.max(upper - lower) <= 2.001 * answer.certificate.Linf
    # The given values are known.
    lower, upper = answer.interval(PLACES, HORIZON)
    assert np.max(upper - lower) < 1e-12


def test_a_table_of_values(answer):
    found = answer.table(PLACES, 0.1, scale=100.0, labels=[20, 50, 90])
    np.testing.assert_allclose(found.values, 100 * truth(0.1), rtol=1e-8)
    lower, upper = answer.interval(PLACES, 0.1)
    np.testing.assert_allclose((found.lower, found.upper), (100 * lower, 100 * upper))
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["20", "50", "90"]
    assert float(lines[2].split()[1]) == pytest.approx(100 * truth(0.1)[1], rel=1e-6)
    assert lines[-1].endswith(found.level)
    with pytest.raises(cordes.OptionError, match="one for each"):
        answer.table(PLACES, 0.1, labels=[1])


def test_intervals_need_a_certificate(answer):
    with pytest.raises(cordes.OptionError, match="no certificate"):
        answer.replace(certificate=None).interval(PLACES, 0.1)


def test_bounds_at_times_are_data(answer):
    facts = solution_facts(answer, cordes.check(answer.problem))["times"]
    assert [each["t"] for each in facts] == pytest.approx(np.linspace(0, HORIZON, 11))
    largest = [each["Linf"] for each in facts]
    assert largest == sorted(largest, reverse=True)
    assert max(largest) <= answer.certificate.Linf * (1 + 1e-9)
