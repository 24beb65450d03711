"""Equations in time and stopping from control and finance, each against something of another kind:
closed formulas, a binomial tree, finite differences, published numbers."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_banded
from scipy.special import ndtr

import cordes

LINE = cordes.Box([0.0], [1.0])


def test_two_diffusions_with_a_horizon():
    """u_t = sup_a a u_xx - f, whose control switches where u_xx changes its sign."""

    def exact(x, t):
        return jnp.sin(2 * jnp.pi * (x[0] + t * x[0] * (1 - x[0]) / 10)) * jnp.exp(-t)

    def f(x, t, a):
        second = jax.hessian(exact)(x, t)[0, 0]
        return jnp.maximum(0.5 * second, 2 * second) - jax.grad(exact, argnums=1)(x, t)

    problem = cordes.HJB(
        LINE,
        [0.5, 2.0],
        A=lambda x, t, a: a * jnp.eye(1),
        f=f,
        horizon=1.0,
        initial=lambda x: exact(x, 0.0),
        exact=exact,
    )
    solution = cordes.solve(problem, certify=True)
    error = solution.error().linf
    assert solution.result is cordes.Result.converged
    assert error <= 1e-10
    assert error <= solution.certificate.Linf <= 1e-8
    assert solution.policy([0.25], 0.0) == 0.5
    assert solution.policy([0.75], 0.0) == 2.0


# Options ------------------------------------------------------------------------------------------


def european(spot, strike, rate, dividends, volatility, years, sign):
    """Black and Scholes: a call (1) or a put (-1)."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate - dividends) * years) / spread + spread / 2
    stock = spot * np.exp(-dividends * years) * ndtr(sign * d1)
    return sign * (stock - strike * np.exp(-rate * years) * ndtr(sign * (d1 - spread)))


def put(rate, dividends=0.05, volatility=0.25, years=1.0):
    """The American put in units of its strike and log(S/K)."""

    def payoff(x):
        return jnp.maximum(1 - jnp.exp(x[0]), 0.0)

    return cordes.Obstacle(
        cordes.Parabolic(
            cordes.Box([-math.log(5)], [math.log(8)]),
            years,
            A=volatility**2 / 2,
            b=np.array([rate - dividends - volatility**2 / 2]),
            c=rate,
            f=0.0,
            g=lambda x, t: payoff(x),
            terminal=payoff,
        ),
        below=payoff,
    )


def tree(steps, rate, dividends=0.05, volatility=0.25, years=1.0):
    """The American put with S = K = 1 on a binomial tree whose last step is a European put."""
    dt = years / steps
    up = math.exp(volatility * math.sqrt(dt))
    p = (math.exp((rate - dividends) * dt) - 1 / up) / (up - 1 / up)
    spots = up ** np.arange(-steps + 1.0, steps, 2.0)
    last = european(spots, 1.0, rate, dividends, volatility, dt, -1)
    values = np.maximum(last, 1 - spots)
    for _ in range(steps - 1):
        spots = spots[1:] / up
        values = math.exp(-rate * dt) * (p * values[1:] + (1 - p) * values[:-1])
        values = np.maximum(values, 1 - spots)
    return float(values[0])


@pytest.fixture(scope="module", params=[0.05, 0.075], ids=["5%", "7.5%"])
def american(request):
    return request.param, cordes.solve(put(request.param), certify=True)


def test_the_american_put_against_two_published_schemes(american):
    """The premium over the European put for K = 100. The two schemes differ by 2.5e-8 and 1e-7; the
    interval is narrow enough to lie within 2e-8 of one of them and to leave out the other."""
    rate, solution = american
    one, other = {0.05: (0.1069527028, 0.1069526780), 0.075: (0.3671111268, 0.3671112309)}[rate]
    (lower,), (upper,) = solution.interval([[0.0]], 0.0)
    flat = european(1.0, 1.0, rate, 0.05, 0.25, 1.0, -1)
    premium = 100 * (np.array([lower, upper]) - flat)
    assert premium[1] - premium[0] < 1e-9
    assert np.all(np.abs(premium - one) < 2e-8)
    assert np.all(np.abs(premium - other) > 2e-8)


def test_the_american_put_against_a_tree(american):
    """Extrapolated in 1/steps: six digits."""
    rate, solution = american
    extrapolated = 2 * tree(4000, rate) - tree(2000, rate)
    assert solution([0.0], 0.0) == pytest.approx(extrapolated, abs=3e-6)


def test_where_the_american_put_is_exercised(american):
    """In an interval from the left that grows towards the end, and never above the strike."""
    _, solution = american
    x = np.linspace(-math.log(5) + 0.01, 0.5, 400)[:, None]
    curves = []
    for t in (0.0, 0.5, 0.9, 0.99):
        stops = solution.exercise(x, t)
        assert np.all(np.diff(stops.astype(int)) <= 0)
        curves.append(float(x[stops][-1, 0]))
        np.testing.assert_allclose(solution(x[stops], t), 1 - np.exp(x[stops][:, 0]), atol=1e-12)
    assert curves == sorted(curves)
    assert curves[-1] < 0
    # Nothing is claimed of derivatives.
    assert solution.certificate.H1 is None
    assert solution.certificate.energy is None


def test_a_european_call_on_a_grid():
    """The relative error in L² on 256 spots and 201 times, the value 0 below the truncation."""
    strike, rate, volatility = 50.0, 0.05, 0.2
    low = math.log(1 / 1500)
    problem = cordes.Parabolic(
        cordes.Box([low], [math.log(3)]),
        1.0,
        A=volatility**2 / 2,
        b=np.array([rate - volatility**2 / 2]),
        c=rate,
        f=0.0,
        g=lambda x, t: jnp.where(x[0] > 0, jnp.exp(x[0]) - jnp.exp(-rate * (1 - t)), 0.0),
        terminal=lambda x: jnp.maximum(jnp.exp(x[0]) - 1, 0.0),
    )
    solution = cordes.solve(problem, certify=True)
    spots, times = np.linspace(0, 150, 256), np.linspace(0, 1, 201)
    inside = spots > strike * math.exp(low)
    x = np.log(spots[inside] / strike)
    values = np.zeros((256, 201))
    values[inside] = strike * solution(np.broadcast_to(x[:, None, None], (len(x), 201, 1)), times)
    with np.errstate(all="ignore"):
        truth = european(spots[:, None], strike, rate, 0.0, volatility, 1 - times, 1)
    truth[:, -1], truth[0] = np.maximum(spots - strike, 0.0), 0.0
    assert np.linalg.norm(values - truth) <= 1e-9 * np.linalg.norm(truth)
    # What the ends of the domain do not know is a put at S = 150.
    cut = european(150.0, strike, rate, 0.0, volatility, 1.0, -1)
    largest = float(np.max(np.abs(values - truth)))
    assert largest <= strike * solution.certificate.Linf + cut <= 1e-5


def test_stopping_without_time_against_a_closed_formula():
    """u'' = 2 where u > ψ = 0 on (0, 1) with u(0) = 0.16, u(1) = 0.04: parabolas that touch zero at
    0.4 and at 0.8."""
    problem = cordes.Obstacle(
        cordes.Linear(LINE, 1.0, 2.0, g=lambda x: 0.16 - 0.12 * x[0]), below=0.0
    )
    solution = cordes.solve(problem, certify=True)
    x = np.linspace(0, 1, 501)
    truth = np.maximum(0.4 - x, 0.0) ** 2 + np.maximum(x - 0.8, 0.0) ** 2
    error = float(np.max(np.abs(solution(x[:, None]) - truth)))
    assert error <= 2e-3
    assert error <= solution.certificate.Linf * (1 + 1e-9)
    assert solution.exercise([[0.6]])[0]
    assert not np.any(solution.exercise([[0.2], [0.95]]))


def test_a_parabolic_obstacle_against_finite_differences():
    """Variable coefficients, a moving obstacle from above and below by projected implicit steps."""

    def psi(x, t):
        return 0.25 - (x[0] - 0.5) ** 2 - 0.1 * t

    problem = cordes.Obstacle(
        cordes.Parabolic(
            LINE,
            0.5,
            A=lambda x, t: jnp.array([[0.3 + 0.2 * x[0]]]),
            f=0.5,
            g=0.0,
            initial=lambda x: x[0] * (1 - x[0]),
        ),
        below=lambda x, t: psi(x, t),
    )
    solution = cordes.solve(problem, certify=True)
    truth, x = differences(400, 800)
    values = solution(x[:, None], 0.5)
    bound = solution.certificate.Linf
    assert np.max(np.abs(values - truth)) <= bound + 2e-4
    assert np.max(np.abs(values - truth)) <= 5e-3


def differences(places, steps):
    """The same by implicit Euler and policy iteration on a grid, first order in time."""
    x, dt = np.linspace(0, 1, places + 1), 0.5 / steps
    h, A = x[1], 0.3 + 0.2 * x
    u = x * (1 - x)
    side = dt * A / h**2
    for step in range(1, steps + 1):
        psi, before = 0.25 - (x - 0.5) ** 2 - 0.1 * dt * step, u
        for _ in range(20):
            off = np.where(u <= psi + 1e-13, 0.0, side)
            off[[0, -1]] = 0.0
            held = off == 0.0
            right = np.where(held, psi, before - 0.5 * dt)
            right[[0, -1]] = 0.0
            bands = np.array([np.append(0, -off[:-1]), 1 + 2 * off, np.append(-off[1:], 0)])
            found = np.maximum(solve_banded((1, 1), bands, right), np.where(held, psi, -np.inf))
            found[[0, -1]] = 0.0
            residual = before - 0.5 * dt - found
            residual[1:-1] += side[1:-1] * (found[2:] - 2 * found[1:-1] + found[:-2])
            new = np.where(held & (residual > 0), psi + 1e-9, np.maximum(found, psi))
            if np.max(np.abs(new - u)) < 1e-12:
                break
            u = new
        u = np.where(np.abs(u - psi) < 2e-9, psi, u)
        u[[0, -1]] = 0.0
    return u, x
