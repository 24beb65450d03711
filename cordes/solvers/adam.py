"""Adam on the mean square of the rows: what the paper does. The loop runs inside one compiled scan,
ten epochs at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from cordes.ansatz.ansatz import Rows
from cordes.errors import OptionError
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.progress import Progress
from cordes.solvers.answer import Answer
from cordes.solvers.system import Clock, System
from cordes.solvers.training import (
    State,
    cast,
    early_end,
    initial_state,
    late_end,
    residual,
    residual_norm,
    stack,
)

# The paper states the learning rate and the points; the network's size is our choice, as is
# float32.
PAPER = {
    "width": 64, "depth": 4, "activation": "silu", "learning_rate": 3e-4, "points": 10_000, "epochs": 40_000, "precision": "float32", "interface_inputs": False
}  # fmt: skip
CHUNK, REPORT = 10, 50


@jax.jit
def _advance(carry, state: State, rows: Rows, learning_rate: float):
    """CHUNK epochs; compiled once for all rows of one shape, so that an outer loop can call it
    again and again."""
    optimiser = optax.adam(learning_rate)

    def epoch(carry, _):
        parameters, memory = carry
        loss, gradient = jax.value_and_grad(
            lambda p: jnp.sum(residual(state.with_parameters(p), rows) ** 2)
        )(parameters)
        update, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(parameters, update), memory), loss

    return jax.lax.scan(epoch, carry, None, length=CHUNK)


def solve_adam(
    system: System,
    tol: float | None,
    seed: int,
    clock: Clock,
    progress: Progress,
    start: State | None = None,
    width: int = 64,
    depth: int = 4,
    activation: str = "silu",
    learning_rate: float = 3e-4,
    points: int = 10_000,
    epochs: int = 5_000,
    precision: str = "float32",
    extra_rows: Rows | None = None,
) -> Answer:
    """Full-batch Adam on points drawn once, `epochs` rounded down to a multiple of ten. The best
    state by the residual on fresh points is returned."""
    if epochs < CHUNK:
        raise OptionError(
            f"epochs = {epochs}: at least {CHUNK} are needed, which is one compiled run."
        )
    dtype = jnp.dtype(precision)
    state = initial_state(system, start, width, depth, activation, seed, "uniform", dtype)
    collocation = system.points(points, seed)
    rows = cast(stack(system.rows(collocation), extra_rows), dtype)
    fresh = cast(stack(system.rows(system.fresh_points(seed)), extra_rows), dtype)
    count, scale = rows.count, float(np.linalg.norm(fresh.target))
    rows, fresh = distribution.place(rows), distribution.place(fresh)
    first = float(residual_norm(state, fresh))
    history = [
        {
            "epoch": 0,
            "loss": float(residual_norm(state, rows)) ** 2,
            "residual": first,
            "seconds": clock.seconds,
        }
    ]

    def advance(carry):
        return _advance(carry, state, rows, learning_rate)

    def measure(current: State) -> Array:
        return residual_norm(current, fresh)

    memory = optax.adam(learning_rate).init(state.parameters)
    best, best_residual, result = run_epochs(
        state, memory, advance, measure, epochs, tol, 0.1 * scale, clock, progress, history
    )
    best = distribution.local(cast(best, jnp.float64))
    return Answer(best.network, best.amplitudes, result, best_residual, count, history)


def run_epochs(
    state: State,
    memory: Any,
    advance: Callable[[Any], tuple[Any, Array]],
    measure: Callable[[State], Array],
    epochs: int,
    tol: float | None,
    small: float,
    clock: Clock,
    progress: Progress,
    history: list[dict],
) -> tuple[State, float, Result]:
    """The best state by the residual on fresh points that `measure` gives, this residual, and how
    it ended; the history, which has the start, grows. `advance` does CHUNK epochs on parameters and
    the memory of the optimiser, and gives their losses."""
    carry, best, best_residual, result = (
        (state.parameters, memory),
        state,
        history[0]["residual"],
        None,
    )
    try:
        for done in range(CHUNK, epochs + 1, CHUNK):
            carry, losses = advance(carry)
            loss = float(losses[-1])
            if done % REPORT and done + CHUNK <= epochs and not clock.over:
                continue
            current = state.with_parameters(carry[0])
            value = float(measure(current))
            history.append(
                {"epoch": done, "loss": loss, "residual": value, "seconds": clock.seconds}
            )
            progress.update(step=done, total=epochs, loss=loss, residual=min(value, best_residual))
            if value < best_residual:
                best, best_residual = current, value
            result = early_end(value, best_residual, tol, clock)
            if result is not None:
                break
    except KeyboardInterrupt:
        result = Result.interrupted
    return best, best_residual, result or late_end(best_residual, tol, small)
