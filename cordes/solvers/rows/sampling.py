"""Points drawn on the device, inside a compiled step, with the weights that make sums of squares a
mean square over the domain."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import AbstractDomain, Box
from cordes.domains.round import AbstractRound

Draw = Callable[[Array, int], tuple[Array, Array]]
# From this dimension on the points of a box are drawn from the density Π(1 - y²)² instead of a
# constant one.
PEAKED = 6


def device_sampler(domain: AbstractDomain) -> Draw | None:
    """A function of a key and a number that gives points (N, d) and row weights (N,),
    Σ(weight·r)²/N an estimate of the mean square of r; None for domains whose points are made on
    the host."""
    if isinstance(domain, Box):
        return _box(domain)
    return _round(domain) if isinstance(domain, AbstractRound) else None


def golden_ratios(d: int) -> np.ndarray:
    """φ^-1, …, φ^-d with φ^(d+1) = φ + 1."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (d + 1))
    return ratio ** -np.arange(1.0, d + 1)


def _box(domain: Box) -> Draw:
    """Uniform points in few dimensions. In many, D = Π(1 - y²) spans so many orders that nearly all
    of the norm of D·N sits on a few of them: points of the density (15/16)(1 - y²)² in each
    coordinate, which is that of the median of five uniform ones, see it evenly."""
    center, half, d = jnp.asarray(domain.center), jnp.asarray(domain.widths / 2), domain.dimension

    def uniform(key: Array, count: int) -> tuple[Array, Array]:
        # The numbers nα of generalised golden ratios, shifted at random: even in few dimensions,
        # where fits on independent points have gaps.
        shift, ratios = jax.random.uniform(key, (d,)), jnp.asarray(golden_ratios(d))
        turns = shift + jnp.arange(count)[:, None] * ratios
        return center + half * (2 * (turns - jnp.floor(turns)) - 1), jnp.ones(count)

    def peaked(key: Array, count: int) -> tuple[Array, Array]:
        y = jnp.sort(jax.random.uniform(key, (5, count, d), jnp.float64, -1.0, 1.0), axis=0)[2]
        # 1/√(density·volume)
        weight = jnp.exp(-jnp.sum(jnp.log1p(-(y**2)), axis=1) - d / 2 * math.log(15 / 8))
        return center + half * y, weight

    return uniform if d < PEAKED else peaked


def _round(domain: AbstractRound) -> Draw:
    center, matrix, d = jnp.asarray(domain.center), jnp.asarray(domain.matrix), domain.dimension

    def draw(key: Array, count: int) -> tuple[Array, Array]:
        one, two = jax.random.split(key)
        direction = jax.random.normal(one, (count, d))
        radius = jax.random.uniform(two, (count, 1)) ** (1 / d)
        y = radius * direction / jnp.linalg.norm(direction, axis=1, keepdims=True)
        return center + y @ matrix.T, jnp.ones(count)

    return draw
