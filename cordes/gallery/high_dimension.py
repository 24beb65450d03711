"""Coupled problems in 10 to 100 dimensions: no sum or product of functions of one variable solves
them, and A depends on x and is not diagonal.

The solutions are u = D·w, D the distance function of the domain and w = Σ cᵢ sin(xᵢ + cos xᵢ₊₁ +
xᵢ₊₁ cos xᵢ)/√d, the two-body function of the paper on stochastic Taylor derivatives (Shi et al.
2024), with normal cᵢ of a fixed seed. The Hessian of w is tridiagonal and D² is known by hand, so
that f = A:D²u costs no d×d derivatives of a program. Whoever solves the problems sees A and f
alone.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Ball, Box
from cordes.jet import jet_of
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.problems.hjb import HJB
from cordes.problems.linear import Linear

# Seed of the coefficients cᵢ, together with the dimension.
SEED = 20_240


def amplitudes(d: int) -> np.ndarray:
    """The normal coefficients of the d - 1 pairs, over √d."""
    return np.random.default_rng([SEED, d]).standard_normal(d - 1) / np.sqrt(d)


def _pair(z: Array) -> Array:
    """The two-body term of (s, t)."""
    s, t = z
    return jnp.sin(s + jnp.cos(t) + t * jnp.cos(s))


def coupled(x: Array) -> Array:
    """w at one point."""
    pairs = jnp.stack([x[:-1], x[1:]], axis=1)
    return jnp.dot(jnp.asarray(amplitudes(len(x))), jax.vmap(_pair)(pairs))


def _coupled_parts(x: Array, A: Array) -> tuple[Array, Array, Array]:
    """w, ∇w and A:D²w, from the jets of the pairs: two variables each."""
    sizes = jnp.asarray(amplitudes(len(x)))
    value, gradient, hessian = jax.vmap(jet_of(_pair))(jnp.stack([x[:-1], x[1:]], axis=1))
    slope = jnp.zeros_like(x).at[:-1].add(sizes * gradient[:, 0]).at[1:].add(sizes * gradient[:, 1])
    diagonal, beside = jnp.diagonal(A), jnp.diagonal(A, 1)
    second = (
        diagonal[:-1] * hessian[:, 0, 0]
        + diagonal[1:] * hessian[:, 1, 1]
        + 2 * beside * hessian[:, 0, 1]
    )
    return jnp.dot(sizes, value), slope, jnp.dot(sizes, second)


def _ball(x: Array) -> Array:
    return 1 - jnp.dot(x, x)


def _ball_parts(x: Array, A: Array) -> tuple[Array, Array, Array]:
    """D = 1 - |x|², ∇D and A:D²D."""
    return _ball(x), -2 * x, -2 * jnp.trace(A)


def _cube(x: Array) -> Array:
    return jnp.prod(1 - x**2)


def _cube_parts(x: Array, A: Array) -> tuple[Array, Array, Array]:
    """D = Π(1 - xᵢ²), ∇D and A:D²D, inside the cube."""
    factor, value = 1 - x**2, _cube(x)
    slope = -2 * x / factor
    second = slope @ A @ slope - jnp.dot(jnp.diagonal(A), slope**2 + 2 / factor)
    return value, value * slope, value * second


def source(A: Array, x: Array, distance_parts: Callable[..., Any]) -> Array:
    """A:D²(Dw) = D A:D²w + 2∇D·A∇w + w A:D²D."""
    D, D_slope, D_second = distance_parts(x, A)
    w, w_slope, w_second = _coupled_parts(x, A)
    return D * w_second + 2 * D_slope @ A @ w_slope + w * D_second


# 2I + xxᵀ + 0.3 diag(sin 3x).
_ball_matrix = DiagonalPlusRank(lambda x: 2 + 0.3 * jnp.sin(3 * x), lambda x: x[:, None])
# 2I + xxᵀ/d + diag(sin 3x)/(2√d): with xxᵀ itself, whose eigenvalue is about d/3 in the cube, no
# multiplier brings A near the identity.
_cube_matrix = DiagonalPlusRank(
    lambda x: 2 + 0.5 * len(x) ** -0.5 * jnp.sin(3 * x), lambda x: x[:, None] / len(x) ** 0.5
)
# Two controls: 2I + xxᵀ and 2I + ½ diag(sin 3x).
_controlled_matrix = DiagonalPlusRank(
    lambda x, a: 2 + jnp.where(a > 0.5, 0.5 * jnp.sin(3 * x), 0.0),
    lambda x, a: jnp.where(a > 0.5, 0.0, x)[:, None],
)


def ball_epsilon(d: int) -> float:
    """A lower bound of the Cordès ε of the matrix on the ball. 1 - ε = d|A₀|²/|A|² with the
    trace-free part A₀, and with |sin 3t| ≤ min(1, 3|t|), |x| ≤ 1:
    |A₀|² ≤ |x|⁴ + 0.09 Σ sin² 3xᵢ + 0.6 Σ xᵢ² |sin 3xᵢ| ≤ 1 + 0.81 + 0.6 and |A|² ≥ (tr A)²/d ≥ d(2
      - 0.9/√d)²."""
    return 1 - 2.41 / (2 - 0.9 / d**0.5) ** 2


def cube_epsilon(d: int) -> float:
    """The same on the cube, where |x|² ≤ d: |A₀|² ≤ 1 + 1/4 + 1/√d and |A|² ≥ d(2 - 1/(2√d))²."""
    return 1 - (1.25 + d**-0.5) / (2 - 0.5 / d**0.5) ** 2


def _times_coupled(distance: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: distance(x) * coupled(x)


def coupled_ball(d: int) -> Linear:
    """unit ball, coupled solution, dense A(x)"""

    def f(x):
        return source(_ball_matrix(x), x, _ball_parts)

    epsilon, exact = ball_epsilon(d), _times_coupled(_ball)
    name = f"coupled-ball-{d}"
    return Linear(Ball([0] * d, 1), _ball_matrix, f, epsilon=epsilon, exact=exact, name=name)


def coupled_cube(d: int) -> Linear:
    """cube, coupled solution, dense A(x)"""

    def f(x):
        return source(_cube_matrix(x), x, _cube_parts)

    epsilon, exact = cube_epsilon(d), _times_coupled(_cube)
    name = f"coupled-cube-{d}"
    domain = Box([-1] * d, [1] * d)
    return Linear(domain, _cube_matrix, f, epsilon=epsilon, exact=exact, name=name)


def coupled_hjb(d: int) -> HJB:
    """unit ball, two controls that switch on ψ = x1 - x2²

    Two controls: A¹ = 2I + xxᵀ, A² = 2I + ½diag(sin 3x); the first is best where ψ = x₁ - x₂² <
    0, the second where ψ > 0, by |ψ|."""

    def f(x, a):
        psi = x[0] - x[1] ** 2
        excess = jnp.maximum(jnp.where(a > 0.5, -psi, psi), 0.0)
        return source(_controlled_matrix(x, a), x, _ball_parts) + excess

    exact, name = _times_coupled(_ball), f"coupled-hjb-{d}"
    return HJB(Ball([0] * d, 1), [0.0, 1.0], _controlled_matrix, f, exact=exact, name=name)
