"""Equations in time, stopping and a game, each with something of another kind to compare with:
closed formulas of finance, manufactured solutions, finite differences."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Ball, Box
from cordes.problems.hjb import HJB
from cordes.problems.isaacs import Isaacs
from cordes.problems.linear import Linear
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic

LINE = Box([0], [1])


def heat(d: int) -> Parabolic:
    """heat equation on the unit cube, u is no eigenfunction"""

    def exact(x: Array, t: Array) -> Array:
        wave = jnp.prod(jnp.sin(1.3 * x + 0.4)) * jnp.cos(t + jnp.sum(x))
        return jnp.exp(-t) * wave + t * jnp.sum(x**2)

    def f(x: Array, t: Array) -> Array:
        return jnp.trace(jax.hessian(exact)(x, t)) - jax.grad(exact, argnums=1)(x, t)

    known = {"g": exact, "initial": lambda x: exact(x, jnp.zeros(())), "exact": exact}
    return Parabolic(Box([0] * d, [1] * d), 0.5, 1.0, f, **known, name=f"heat-{d}d")


def two_diffusions() -> HJB:
    """control with a horizon, two diffusions that take turns where u_xx changes its sign"""

    def exact(x: Array, t: Array) -> Array:
        return jnp.sin(2 * jnp.pi * (x[0] + t * x[0] * (1 - x[0]) / 10)) * jnp.exp(-t)

    def f(x: Array, t: Array, _: Array) -> Array:
        second = jax.hessian(exact)(x, t)[0, 0]
        return jnp.maximum(0.5 * second, 2 * second) - jax.grad(exact, argnums=1)(x, t)

    return HJB(
        LINE,
        [0.5, 2.0],
        lambda _, t, a: (a + 0 * t) * jnp.eye(1),
        f,
        horizon=1.0,
        initial=lambda x: exact(x, jnp.zeros(())),
        exact=exact,
        name="two-diffusions",
    )


# Finance, in units of the strike and x = log(price/strike) ----------------------------------------

STRIKE, INTEREST, VOLATILITY = 50.0, 0.05, 0.2


def call() -> Parabolic:
    """European call of Black and Scholes, strike 50, for spots from 50/30 to 150

    At the upper end it is given the price of the stock less the discounted strike, which is wrong
    by a put at that price, 1e-9 of the strike.
    """
    variance = VOLATILITY**2

    def ends(x: Array, t: Array) -> Array:
        return jnp.where(x[0] > 0, jnp.exp(x[0]) - jnp.exp(-INTEREST * (1 - t)), 0.0)

    return Parabolic(
        Box([-math.log(30)], [math.log(3)]),
        1.0,
        variance / 2,
        0.0,
        np.array([INTEREST - variance / 2]),
        INTEREST,
        ends,
        terminal=lambda x: jnp.maximum(jnp.exp(x[0]) - 1, 0.0),
        name="black-scholes-call",
    )


def american_put() -> Obstacle:
    """American put, volatility 25 %, interest and dividends 5 %, one year"""
    interest, variance = 0.05, 0.25**2

    def payoff(x: Array) -> Array:
        return jnp.maximum(1 - jnp.exp(x[0]), 0.0)

    european = Parabolic(
        Box([-math.log(5)], [math.log(8)]),
        1.0,
        variance / 2,
        0.0,
        np.array([-variance / 2]),
        interest,
        lambda x, _: payoff(x),
        terminal=payoff,
    )
    return Obstacle(european, payoff, name="american-put")


def merton() -> HJB:
    """Merton's portfolio: the share of a stock that makes most of wealth^γ/γ, closed form

    In the logarithm y of wealth, V_t + sup_π (½π²σ²V_yy + (r + π(μ - r) - ½π²σ²)V_y) = 0; V =
    e^{γy + k(1 - t)}/γ with k = γ(r + ½π(μ - r)) at π = (μ - r)/(σ²(1 - γ)), the fourth control.
    """
    power, rate, drift, variance = 0.5, 0.02, 0.06, 0.2**2
    best = (drift - rate) / (variance * (1 - power))
    growth = power * (rate + best * (drift - rate) / 2)

    def exact(y: Array, t: Array) -> Array:
        return jnp.exp(power * y[0] + growth * (1 - t)) / power

    return HJB(
        Box([-1], [1]),
        best * np.array([0.25, 0.5, 0.75, 1.0, 1.25]),
        lambda _, t, a: (a**2 * variance / 2 + 0 * t) * jnp.eye(1),
        0.0,
        lambda _, t, a: jnp.array([rate + a * (drift - rate) - a**2 * variance / 2 + 0 * t]),
        g=exact,
        horizon=1.0,
        terminal=lambda y: exact(y, jnp.ones(())),
        exact=exact,
        name="merton",
    )


# Without time -------------------------------------------------------------------------------------

# The radius within which one stops, and the strength of the source.
STOPS, SOURCE = 0.4, 4.0


def stopping_disk() -> Obstacle:
    """optimal stopping of a diffusion on the disk, closed form

    max(Δu - 4, -u) = 0: u = r² - ρ² - 2ρ² log(r/ρ) outside of the radius ρ = 0.4, where one goes
    on, and zero inside.
    """

    def exact(x: Array) -> Array:
        square = jnp.maximum(jnp.sum(x**2) / STOPS**2, 1.0)
        return SOURCE / 4 * STOPS**2 * (square - 1 - jnp.log(square))

    base = Linear(Ball([0, 0], 1), 1.0, SOURCE, g=exact, exact=exact)
    return Obstacle(base, 0.0, name="stopping-disk")


def pursuit() -> Isaacs:
    """pursuit with noise: the evader stays in the square as long as it can, the pursuer is faster

    Δu + inf_o sup_a (a + 1.5o)·∇u - 2u + 1 = 0, where both move along the axes and time counts
    less the later it is.
    """
    ways = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    return Isaacs(
        Box([-1, -1], [1, 1]),
        ways,
        ways,
        1.0,
        -1.0,
        lambda _, a, o: a + 1.5 * o,
        2.0,
        name="pursuit",
    )
