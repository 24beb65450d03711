"""Training: a network with amplitudes as one tree of parameters, its residual, the start by a
last-layer solve, and the one loop that all training methods run through."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.ansatz import Rows, feature_matrix
from cordes.ansatz.networks.mlp import MLP
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.clock import Clock
from cordes.runtime.memory import require_points
from cordes.runtime.progress import Progress
from cordes.solutions.answer import Answer, Weights
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import AbstractSystem

# Arrays for each layer that a gradient keeps.
PASSES = 3


def residual(weights: Weights, rows: Rows) -> Array:
    """Network expression + singular·amplitudes - target, one entry for each row."""
    # A single row is one of many in a map over rows, which the devices share already.
    rows = distribution.spread(rows) if rows.count > 1 else rows
    return weights.network.rows(rows.frozen) + rows.singular @ weights.amplitudes - rows.target


@jax.jit
def residual_norm(weights: Weights, rows: Rows) -> Array:
    return jnp.linalg.norm(residual(weights, rows))


def cast(tree: PyTree, dtype: Any) -> PyTree:
    """All floating arrays of a tree in another precision."""

    def one(leaf):
        floating = jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)
        return jnp.asarray(leaf, dtype) if floating else leaf

    return jax.tree.map(one, tree)


def initial_weights(
    system: AbstractSystem,
    start: Weights | None,
    width: int,
    depth: int,
    activation: str,
    seed: int,
    initial: str,
    dtype: Any = jnp.float64,
) -> Weights:
    """A fresh network, or the one to continue from."""
    if start is not None:
        # Not the inputs: their scale is not kept in a file, but made again from the domain, and
        # must not be rounded.
        return start.with_parameters(cast(start.parameters, dtype))
    network = MLP(system.ansatz.inputs, width, depth, activation, seed, initial, dtype)
    return Weights(network, jnp.zeros(system.columns, dtype))


def require_training(
    system: AbstractSystem,
    shape: tuple[int, int, int],
    directions: int,
    matrices: int,
    jacobian: bool,
) -> None:
    """Refuse a training of (points, width, depth) that would not fit: what the reverse pass keeps
    of all layers and their derivatives in so many directions, so many d × d matrices at each point
    (A, and second derivatives of the distance) and, for steps of second order, the Jacobian and the
    smaller of its two products. A device of its own says itself what it has."""
    if jax.default_backend() != "cpu":
        return
    points, width, depth = shape
    parameters = width * (system.ansatz.inputs.count + 2) + (depth - 1) * width * (width + 1)
    held = matrices * system.domain.dimension**2

    def estimate(count: int) -> float:
        numbers = count * (PASSES * width * depth * (directions + 2) + held) + 4 * parameters
        if jacobian:
            numbers += 2 * count * parameters + 3 * min(count, parameters) ** 2
        return 8.0 * numbers

    require_points(points, estimate, f"width = {width} and depth = {depth}")


def solve_last_layer(weights: Weights, rows: Rows, tolerance: float = 1e-12) -> Weights:
    """The best coefficients and amplitudes for the hidden weights as they are."""
    network, damped = weights.network, rows.singular.shape[1]
    matrix, target = feature_matrix(network, rows), np.asarray(rows.target)
    solution = jnp.asarray(solve_rank_revealing(matrix, target, tolerance, damped))
    width = network.coefficients.shape[0]
    return Weights(network.with_coefficients(solution[:width]), solution[width:])


def epochs(
    loss: Callable[[PyTree, Any], Array],
    optimiser: optax.GradientTransformation,
    carry: PyTree,
    data: PyTree = None,
    length: int | None = None,
) -> tuple[PyTree, Array]:
    """Steps of an optimiser, one for each row of `data`, and the losses before them."""

    def epoch(carry: PyTree, row: Any) -> tuple[PyTree, Array]:
        parameters, memory = carry
        value, gradient = jax.value_and_grad(loss)(parameters, row)
        update, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(parameters, update), memory), value

    return jax.lax.scan(epoch, carry, data, length=length)


def early_end(value: float, best_residual: float, tol: float | None, clock: Clock) -> Result | None:
    """Why a training run should stop now, if it should."""
    if not np.isfinite(value):
        return Result.nonfinite
    if tol is not None and best_residual <= tol:
        return Result.converged
    return Result.time_out if clock.over else None


def late_end(best_residual: float, tol: float | None, small: float) -> Result:
    """What to call a run that used up its steps."""
    if tol is not None:
        return Result.converged if best_residual <= tol else Result.tolerance_not_reached
    return Result.converged if best_residual <= small else Result.stagnated


def or_interrupted(answer: Answer, work: Callable[[], Answer]) -> Answer:
    """What work makes of an answer; the answer itself if somebody interrupts."""
    try:
        return work()
    except KeyboardInterrupt:
        return answer._replace(result=Result.interrupted)


class Budget(NamedTuple):
    """What a run may use and must keep to: the residual that is small enough (None: near rounding
    level, or where nothing improves), the time, the seed, where progress is shown. `watch` sees the
    weights after every chunk of training and may end it."""

    tol: float | None
    clock: Clock
    seed: int
    progress: Progress
    watch: Callable[[Weights, int], bool] | None = None


class Patience(NamedTuple):
    """Ends a run without progress: after `least` steps since the residual last fell below `share`
    of the best, and `fraction` of all steps."""

    share: float
    least: int
    fraction: float = 0.0


class Pace(NamedTuple):
    """How a run goes on: all steps, those of one compiled chunk, after how many the residual is
    looked at, what the history calls them, and when it gives up."""

    steps: int
    chunk: int
    every: int
    unit: str = "step"
    patience: Patience | None = None


class TrainingCourse(NamedTuple):
    """Where a run ended: the best weights by the residual on fresh points, this residual, and why
    it stopped before its steps were used up, if it did."""

    best: Weights
    residual: float
    result: Result | None
    history: list[dict[str, Any]]

    def answer(self, points: int, budget: Budget, small: float) -> Answer:
        """What the solver hands back; a residual of at most `small` is a success where no tolerance
        was asked for."""
        result = self.result or late_end(self.residual, budget.tol, small)
        return Answer(*self.best, result, self.residual, points, self.history)


def train(
    start: Weights,
    first: dict[str, float],
    carry: Any,
    advance: Callable[[Any, int], tuple[Any, float | None]],
    look: Callable[[Any, int], tuple[Weights, float]],
    pace: Pace,
    budget: Budget,
    expected: float = 0.0,
) -> TrainingCourse:
    """Advance chunk by chunk until the residual meets the tolerance, the time or the patience is
    used up, or somebody interrupts; the best weights are kept.

    `first` are facts of the start, its residual among them. `advance` takes what the optimiser
    carries and the number of steps done to the next chunk, and gives the last loss; `look` gives
    the weights after so many steps and their residual on fresh points. The first chunk, with its
    compilation, should take the `expected` seconds: where there is no time for that, or later for
    another chunk like the last, it is not begun.
    """
    clock, best, smallest, result = budget.clock, start, first["residual"], None
    history, progressed = [{pace.unit: 0, **first, "seconds": clock.seconds}], 0
    began, lasted = clock.seconds, expected
    try:
        for done in range(pace.chunk, pace.steps + 1, pace.chunk):
            if not clock.allows(lasted):
                result = Result.time_out
                break
            carry, loss = advance(carry, done - pace.chunk)
            began, lasted = clock.seconds, clock.seconds - began
            if done % pace.every and done + pace.chunk <= pace.steps and not clock.over:
                continue
            current, value = look(carry, done)
            facts = ({} if loss is None else {"loss": loss}) | {"residual": value}
            history.append({pace.unit: done, **facts, "seconds": clock.seconds})
            shown = facts | {"residual": min(value, smallest)}
            budget.progress.update(step=done, total=pace.steps, **shown)
            if pace.patience is not None and value < pace.patience.share * smallest:
                progressed = done
            if value < smallest:
                best, smallest = current, value
            result = early_end(value, smallest, budget.tol, clock)
            ended = budget.watch is not None and budget.watch(current, done)
            if result is not None or ended or _stagnates(pace.patience, done, progressed):
                break
    except KeyboardInterrupt:
        result = Result.interrupted
    return TrainingCourse(best, smallest, result, history)


def _stagnates(patience: Patience | None, done: int, progressed: int) -> bool:
    return patience is not None and done - progressed >= max(
        patience.least, patience.fraction * done
    )
