"""Adam with a stochastic estimate of A:D²u: a few random directions instead of all d, for hundreds
of dimensions and more.

With random v, E vvᵀ = A, the second derivative along v is an unbiased estimate of A:D²u
(Hutchinson; Shi et al. 2024 for networks). Its square is not one of the squared residual: the
variance of the estimate would be minimised along. So each row is estimated twice with independent
directions, and the loss is the mean of the products r₁r₂, whose gradient is unbiased. Points and
directions are fresh in every step.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.networks.directional import Directional, directional_rows, expression
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.solutions.answer import Weights
from cordes.solvers.dual import PointEquation
from cordes.solvers.train import epochs

CHUNK, FRESH = 50, 512


def random_directions(
    equation: PointEquation, x: Array, A: Array, key: Array, probes: int
) -> Array:
    """Directions (d, probes) with E vvᵀ = A for each column, over √probes; A in factors needs no
    decomposition."""
    matrix, (one, two) = equation.problem.A, jax.random.split(key)
    signs = jax.random.rademacher(one, (len(x), probes), A.dtype)
    if isinstance(matrix, DiagonalPlusRank):
        diagonal, columns = matrix.parts(x)
        others = jax.random.rademacher(two, (columns.shape[1], probes), A.dtype)
        v = jnp.sqrt(diagonal)[:, None] * signs + columns @ others
    else:
        v = jnp.linalg.cholesky(A) @ signs
    return v / probes**0.5


def estimated_rows(
    equation: PointEquation, x: Array, weight: Array, key: Array, probes: int
) -> tuple[Directional, Array]:
    """Rows at points (N, d) as `PointEquation.freeze` gives them, with random directions in the
    place of all."""

    def one(x: Array, weight: Array, key: Array) -> tuple[Directional, Array]:
        A, b, c, f = equation.problem.at(x)
        factor = weight * equation.scale(A)
        directions = jnp.sqrt(factor) * random_directions(equation, x, A, key, probes)
        scaled = (factor * part for part in (A, b, c, f))
        return expression(equation.ansatz, x, *scaled, directions=directions)

    return jax.vmap(one)(x, weight, jax.random.split(key, len(x)))


def unbiased_loss(
    network: AbstractNetwork, equation: PointEquation, key: Array, points: int, probes: int
) -> Array:
    """The mean of r₁r₂ at fresh points: its expectation is the mean square of the residual."""
    draw, one, two = jax.random.split(key, 3)
    x, weight = equation.draw(draw, points)
    first, second = (estimated_rows(equation, x, weight, key, probes) for key in (one, two))
    return jnp.mean(
        (directional_rows(network, first[0]) - first[1])
        * (directional_rows(network, second[0]) - second[1])
    )


class EstimatePlan(NamedTuple):
    """What a compiled chunk depends on."""

    points: int
    probes: int
    steps: int
    learning_rate: float

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """The noise does not vanish at the solution: the steps must."""
        return optax.adam(optax.cosine_decay_schedule(self.learning_rate, self.steps))


@functools.partial(jax.jit, static_argnames=("equation", "plan"))
def advance(
    carry: PyTree, keys: Array, template: Weights, equation: PointEquation, plan: EstimatePlan
) -> tuple[PyTree, Array]:
    """One step of Adam for each key."""

    def loss(parameters: PyTree, key: Array) -> Array:
        network = template.with_parameters(parameters).network
        return unbiased_loss(network, equation, key, plan.points, plan.probes)

    return epochs(loss, plan.optimiser, carry, keys)
