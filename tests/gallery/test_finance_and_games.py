"""The gallery in time, with stopping and with opponents, against closed formulas, published numbers
and differences."""

import numpy as np
import pytest
from graded_differences import GradedGrid, value_of_game
from scipy.special import ndtr

import cordes


@pytest.mark.parametrize(
    ("name", "largest"),
    [("heat-1d", 1e-9), ("two-diffusions", 1e-10), ("merton", 1e-9)],
)
def test_errors_against_exact_solutions_in_time(solved, name, largest):
    solution = solved.certified(name)
    error = solution.error()
    assert error.linf <= largest
    assert error.linf <= solution.certificate.Linf <= 1e4 * largest
    assert solution.result is cordes.Result.converged


def test_the_share_of_merton(solved):
    """(μ - r)/(σ²(1 - γ)) = 2, at any wealth and time."""
    shares = solved.certified("merton").policy([[-0.5], [0.0], [0.7]], [0.1, 0.5, 0.9])
    np.testing.assert_allclose(shares, 2.0, rtol=1e-14)


def european(spot, strike, rate, dividends, volatility, years, sign):
    """Black and Scholes: a call (1) or a put (-1)."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate - dividends) * years) / spread + spread / 2
    stock = spot * np.exp(-dividends * years) * ndtr(sign * d1)
    return sign * (stock - strike * np.exp(-rate * years) * ndtr(sign * (d1 - spread)))


def test_the_call(solved):
    solution = solved.certified("black-scholes-call")
    spots = np.array([30.0, 45.0, 50.0, 55.0, 80.0])
    values = 50 * solution(np.log(spots / 50)[:, None], 0.25)
    np.testing.assert_allclose(values, european(spots, 50.0, 0.05, 0.0, 0.2, 0.75, 1), atol=1e-7)


def test_the_put(solved):
    """The premium over the European put that two schemes have published, which differ by 2.5e-8."""
    (value,) = solved.certified("american-put")([[0.0]], 0.0)
    premium = 100 * (value - european(1.0, 1.0, 0.05, 0.05, 0.25, 1.0, -1))
    assert premium == pytest.approx(0.1069527028, abs=1e-8)


def test_stopping_on_the_disk(solved):
    """Least squares knows the circle at which one stops to the width of a feature."""
    solution = solved.certified("stopping-disk")
    error = solution.error()
    assert error.linf <= min(5e-3, solution.certificate.Linf)
    assert np.all(solution.exercise([[0.0, 0.0], [0.2, 0.1]]))
    assert not np.any(solution.exercise([[0.6, 0.0], [0.5, 0.7]]))


def chased(nodes):
    """The pursuit by central differences."""
    ways, line = [(1, 0), (-1, 0), (0, 1), (0, -1)], np.linspace(-1, 1, nodes)
    grid, shape = GradedGrid(line, line), (nodes - 2, nodes - 2)
    inner = np.zeros(grid.shape, bool)
    inner[1:-1, 1:-1] = True
    A, operators = np.broadcast_to(np.eye(2), (*shape, 2, 2)), []
    for o in ways:
        for a in ways:
            drift = np.broadcast_to(np.array(a) + 1.5 * np.array(o), (*shape, 2))
            operators.append(grid.operator(A, drift, np.full(shape, 2.0))[:, inner.ravel()])
    return value_of_game(operators, -np.ones((16, (nodes - 2) ** 2)), 4).reshape(shape)


def test_the_pursuit_against_differences(solved):
    solution = solved.certified("pursuit")
    coarse, fine = (chased(nodes)[nodes // 2 - 1, nodes // 2 - 1] for nodes in (33, 65))
    truth = fine + (fine - coarse) / 3
    assert solution([0.0, 0.0]) == pytest.approx(truth, rel=2e-3)
    assert abs(solution([0.0, 0.0]) - truth) <= solution.certificate.Linf + 1e-3
    # To the right the pursuer drives on, and the evader runs back.
    assert tuple(solution.opponent([0.6, 0.1])) == (1, 0)
    assert tuple(solution.policy([0.6, 0.1])) == (-1, 0)
