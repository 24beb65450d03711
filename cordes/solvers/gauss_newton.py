"""Gauss–Newton for trained networks: Levenberg–Marquardt steps, primal or dual by size, damping by
trial, momentum for fresh points.

With N rows and P parameters a step solves (JᵀJ + μI)δ = -Jᵀr (P ≤ N) or δ = -Jᵀ(JJᵀ + μI)⁻¹r (P >
N), the same δ. The damping μ follows the loss down; several values around that and several lengths
of the step are tried, and the one with the smallest loss is kept. With fresh points in every step
(`resample`) the last step, shrunk by `momentum`, is kept in the directions that the new points do
not see (SPRING: Goldshlager, Abrahamsen, Lin 2024). On ex4.2-continuous three tanh layers of 24
with fresh points and momentum reached a residual of 4e-3 in 50 steps; a fixed set of points without
momentum and with greedy damping (layers of 20) was at 2e-2 after 60.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from cordes.ansatz.ansatz import Rows
from cordes.results import Result
from cordes.runtime.progress import Progress
from cordes.solvers.answer import Answer
from cordes.solvers.dual import solve_dual
from cordes.solvers.system import Clock, System
from cordes.solvers.training import (
    State,
    early_end,
    initial_state,
    late_end,
    residual,
    residual_norm,
    solve_last_layer,
    stack,
)

PROBES = np.array([0.3, 1.0, 3.0])
LENGTHS = np.array([1.0, 0.5, 0.2, 0.05])
DAMPING = 4e-3
SMALLEST_DAMPING = 1e-14
CHUNK = 10
# From this dimension on linear problems go to `solve_dual`. Its many cheap steps suit a GPU; on a
# CPU, where the Jacobian costs most, one with several dampings goes further (ex4.3-cube5, layers of
# 40, 1000 points: 4e-4 after 63 s of processor time, against 7e-4 after 75 s).
DUAL = {"cpu": 6, "gpu": 4, "tpu": 4}


class Carry(NamedTuple):
    """Parameters, the last step and the loss at the start, by which the damping is scaled."""

    vector: Array
    step: Array
    first_loss: Array


def _jacobian(vector: Array, unravel, template: State, rows: Rows) -> Array:
    """One gradient for each row, by a vmapped reverse pass."""

    def one(row: Rows) -> Array:
        single = jax.tree.map(lambda leaf: leaf[None], row)
        return jax.grad(lambda v: residual(template.with_parameters(unravel(v)), single)[0])(vector)

    return jax.vmap(one)(rows)


def _step(
    carry: Carry, rows: Rows, unravel, template: State, momentum: float
) -> tuple[Carry, Array]:
    """One damped step on one set of rows; returns the loss after it."""

    def loss_at(vector: Array) -> Array:
        loss = jnp.linalg.norm(residual(template.with_parameters(unravel(vector)), rows))
        return jnp.where(jnp.isfinite(loss), loss, jnp.inf)

    r = residual(template.with_parameters(unravel(carry.vector)), rows)
    before = jnp.linalg.norm(r)
    J = _jacobian(carry.vector, unravel, template, rows)
    kept = momentum * carry.step
    right = r + J @ kept
    primal = J.shape[1] <= J.shape[0]
    gram = J.T @ J if primal else J @ J.T
    scale = jnp.trace(gram) / gram.shape[0]

    def attempt(damping: Array) -> tuple[Array, Array]:
        factor = jax.scipy.linalg.cho_factor(gram + damping * scale * jnp.eye(gram.shape[0]))
        solve = functools.partial(jax.scipy.linalg.cho_solve, factor)
        full = kept - (solve(J.T @ right) if primal else J.T @ solve(right))
        losses = jax.lax.map(
            lambda length: loss_at(carry.vector + length * full), jnp.asarray(LENGTHS)
        )
        best = jnp.argmin(losses)
        return jnp.asarray(LENGTHS)[best] * full, losses[best]

    damping = DAMPING * jnp.minimum(1.0, before / carry.first_loss)
    steps, losses = jax.lax.map(attempt, jnp.maximum(damping * PROBES, SMALLEST_DAMPING))
    best = jnp.argmin(losses)
    # On fixed points a step must help. On fresh ones noise is expected, and only nonsense is
    # refused.
    accept = losses[best] < (2.0 if momentum else 1.0) * before
    step = jnp.where(accept, steps[best], 0.0)
    return Carry(carry.vector + step, step, carry.first_loss), jnp.where(
        accept, losses[best], before
    )


@functools.partial(jax.jit, static_argnames="momentum")
def _advance(carry: Carry, chunk: Rows, template: State, momentum: float) -> tuple[Carry, Array]:
    """One step for each set of rows in the chunk; compiled once for all of one shape."""
    unravel = ravel_pytree(template.parameters)[1]
    return jax.lax.scan(lambda c, rows: _step(c, rows, unravel, template, momentum), carry, chunk)


def solve_gauss_newton(
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
    resample: bool | None = None,
    momentum: float | None = None,
    extra_rows: Rows | None = None,
) -> Answer:
    """Train until the residual on fresh points is at most `tol`, the steps are used up, or nothing
    improves; a last-layer solve ends it. In many dimensions `solve_dual` does the work, which draws
    fresh points on the device and needs no rows."""
    if (
        system.domain.dimension >= DUAL.get(jax.default_backend(), 4)
        and system.problem.linear
        and resample is not False
        and extra_rows is None
        and not system.columns
    ):
        return solve_dual(
            system,
            tol,
            seed,
            clock,
            progress,
            start,
            width,
            depth,
            activation,
            points,
            steps,
            momentum,
        )
    # In few dimensions one wide layer of sines, whose last-layer solve is nearly the answer; in
    # many, a deep and narrow network learns its features.
    shallow = system.domain.dimension <= 3 if depth is None else depth == 1
    depth = depth or (1 if shallow else 3)
    width = width or (250 if shallow else 40)
    activation = activation or "sine"
    points = points or (800 if shallow else 1000)
    steps = steps or (40 if shallow else 400)
    resample = True if resample is None else resample
    momentum = (0.9 if resample else 0.0) if momentum is None else momentum
    state = initial_state(
        system,
        start,
        width,
        depth,
        activation,
        seed,
        "fourier" if shallow and activation == "sine" else "glorot",
    )
    rows = stack(system.rows(system.points(points, seed)), extra_rows)
    if start is None and shallow:
        state = solve_last_layer(state, rows)
    vector, unravel = ravel_pytree(state.parameters)
    carry = Carry(vector, jnp.zeros_like(vector), jnp.asarray(np.linalg.norm(rows.target)))
    fresh = stack(system.rows(system.fresh_points(seed)), extra_rows)
    best, best_residual = state, float(residual_norm(state, fresh))
    scale = float(np.linalg.norm(fresh.target))
    history = [
        {
            "step": 0,
            "loss": float(residual_norm(state, rows)),
            "residual": best_residual,
            "seconds": clock.seconds,
        }
    ]
    result, patience = None, 0
    try:
        for chunk in range(-(-steps // CHUNK)):
            seeds = (
                [seed + 17 + chunk * CHUNK + k for k in range(CHUNK)]
                if resample
                else [None] * CHUNK
            )
            several = [
                rows if s is None else stack(system.rows(system.points(points, s)), extra_rows)
                for s in seeds
            ]
            carry, losses = _advance(
                carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *several), state, momentum
            )
            current = state.with_parameters(unravel(carry.vector))
            value = float(residual_norm(current, fresh))
            history.append(
                {
                    "step": (chunk + 1) * CHUNK,
                    "loss": float(losses[-1]),
                    "residual": value,
                    "seconds": clock.seconds,
                }
            )
            progress.update(
                step=(chunk + 1) * CHUNK,
                total=steps,
                loss=float(losses[-1]),
                residual=min(value, best_residual),
            )
            patience = 0 if value < 0.98 * best_residual else patience + 1
            if value < best_residual:
                best, best_residual = current, value
            result = early_end(value, best_residual, tol, clock)
            if result is not None or patience >= 4:
                break
    except KeyboardInterrupt:
        result = Result.interrupted
    polished = solve_last_layer(
        best, stack(system.rows(system.points(4 * points, seed + 7)), extra_rows)
    )
    if (value := float(residual_norm(polished, fresh))) < best_residual:
        best, best_residual = polished, value
    if result is None:
        result = late_end(best_residual, tol, 1e-2 * scale)
    return Answer(best.network, best.amplitudes, result, best_residual, rows.count, history)
