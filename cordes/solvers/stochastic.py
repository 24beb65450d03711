"""Adam with a stochastic estimate of A:D²u: a few random directions instead of all d, for hundreds
of dimensions and more.

With random v, E vvᵀ = A, the second derivative along v is an unbiased estimate of A:D²u
(Hutchinson; Shi et al. 2024 for networks). Its square is not one of the squared residual: the
variance of the estimate would be minimised along. So each row is estimated twice with independent
directions, and the loss is the mean of the products r₁r₂, whose gradient is unbiased. Points and
directions are fresh in every step.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.networks.directional import Directional, directional_rows, expression
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.errors import OptionError
from cordes.problems.structured import DiagonalPlusRank
from cordes.results import Result
from cordes.runtime.progress import Progress
from cordes.solvers.answer import Answer
from cordes.solvers.dual import PointEquation, equation_of, judge
from cordes.solvers.system import Clock, System
from cordes.solvers.training import State, early_end, initial_state, late_end

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
        v = jnp.sqrt(diagonal)[:, None] * signs + columns @ jax.random.rademacher(
            two, (columns.shape[1], probes), A.dtype
        )
    else:
        v = jnp.linalg.cholesky(A) @ signs
    return v / probes**0.5


def estimated_rows(
    equation: PointEquation, x: Array, weight: Array, key: Array, probes: int
) -> tuple[Directional, Array]:
    """Rows at points (N, d) as `PointEquation.freeze` gives them, with random directions in the
    place of all."""

    def one(x: Array, weight: Array, key: Array) -> tuple[Directional, Array]:
        A, b, c, f = equation.problem.linearise(x)
        factor = weight * equation.scale(A)
        directions = jnp.sqrt(factor) * random_directions(equation, x, A, key, probes)
        return expression(
            equation.ansatz,
            x,
            factor * A,
            factor * b,
            factor * c,
            factor * f,
            directions=directions,
        )

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


@functools.partial(
    jax.jit, static_argnames=("equation", "points", "probes", "steps", "learning_rate")
)
def _advance(
    carry: PyTree,
    keys: Array,
    template: AbstractNetwork,
    equation: PointEquation,
    points: int,
    probes: int,
    steps: int,
    learning_rate: float,
) -> PyTree:
    optimiser = _optimiser(learning_rate, steps)

    def step(carry: PyTree, key: Array) -> tuple[PyTree, None]:
        parameters, memory = carry
        gradient = jax.grad(
            lambda p: unbiased_loss(template.with_parameters(p), equation, key, points, probes)
        )(parameters)
        update, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(parameters, update), memory), None

    return jax.lax.scan(step, carry, keys)[0]


def _optimiser(learning_rate: float, steps: int) -> optax.GradientTransformation:
    """The noise does not vanish at the solution: the steps must."""
    return optax.adam(optax.cosine_decay_schedule(learning_rate, steps))


def solve_stochastic(
    system: System,
    tol: float | None,
    seed: int,
    clock: Clock,
    progress: Progress,
    start: State | None = None,
    width: int | None = None,
    depth: int | None = None,
    activation: str | None = None,
    points: int | None = None,
    steps: int | None = None,
    probes: int = 16,
    learning_rate: float = 1e-2,
    watch: Callable[[State, int], bool] | None = None,
) -> Answer:
    """Adam on the unbiased loss; the state with the smallest exact residual at fresh points is
    returned."""
    equation = equation_of(system)
    if not system.problem.linear or not equation.on_device:
        raise OptionError(
            "estimator = 'stochastic' is for linear problems on a Box, Ball or Ellipsoid: the "
            "supremum of estimates would be biased."
        )
    if probes < 1:
        raise OptionError(f"probes = {probes!r}: at least one random direction is needed.")
    points, steps = points or 500, steps or 5000
    state = initial_state(
        system, start, width or 128, depth or 2, activation or "tanh", seed, "glorot"
    )
    template = state.network
    fresh = equation.sources(seed + 1_000_003, 0, 1, FRESH)[0]
    best, best_residual = template, float(judge(template, fresh, equation, FRESH))
    scale = float(
        judge(template.with_coefficients(0 * template.coefficients), fresh, equation, FRESH)
    )
    carry = (template.parameters, _optimiser(learning_rate, steps).init(template.parameters))
    history = [{"step": 0, "residual": best_residual, "seconds": clock.seconds}]
    result = None
    try:
        for chunk in range(-(-steps // CHUNK)):
            carry = _advance(
                carry,
                equation.sources(seed, chunk, CHUNK, points),
                template,
                equation,
                points,
                probes,
                steps,
                learning_rate,
            )
            current, done = template.with_parameters(carry[0]), (chunk + 1) * CHUNK
            value = float(judge(current, fresh, equation, FRESH))
            history.append({"step": done, "residual": value, "seconds": clock.seconds})
            progress.update(step=done, total=steps, residual=min(value, best_residual))
            if value < best_residual:
                best, best_residual = current, value
            result = early_end(value, best_residual, tol, clock)
            if result is not None or (
                watch is not None and watch(state._replace(network=current), done)
            ):
                break
    except KeyboardInterrupt:
        result = Result.interrupted
    return Answer(
        best,
        state.amplitudes,
        result or late_end(best_residual, tol, 0.1 * scale),
        best_residual,
        points,
        history,
    )
