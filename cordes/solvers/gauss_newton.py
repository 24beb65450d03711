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
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from cordes.ansatz.ansatz import Rows
from cordes.ansatz.networks.activations import ACTIVATIONS
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.arguments import Rule, flag, number, one_of, whole
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.runtime import distribution
from cordes.runtime.signals import held
from cordes.solutions.answer import Answer
from cordes.solvers import dual
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import (
    Budget,
    Pace,
    Patience,
    Weights,
    initial_weights,
    require_training,
    residual,
    residual_norm,
    solve_last_layer,
    train,
)

PROBES = np.array([0.3, 1.0, 3.0])
LENGTHS = np.array([1.0, 0.5, 0.2, 0.05])
DAMPING = 4e-3
SMALLEST_DAMPING = 1e-14
CHUNK = 10
PATIENCE = Patience(0.98, 40)
# From this dimension on linear problems are solved in the dual form. Its many cheap steps suit a
# GPU; on a CPU, where the Jacobian costs most, one with several dampings goes further (ex4.3-cube5,
# layers of 40, 1000 points: 4e-4 after 63 s of processor time, against 7e-4 after 75 s).
DUAL = {"cpu": 6, "gpu": 4, "tpu": 4}


class StepCarry(NamedTuple):
    """Parameters, the last step and the loss at the start, by which the damping is scaled."""

    vector: Array
    step: Array
    first_loss: Array


def _jacobian(vector: Array, unravel, template: Weights, rows: Rows) -> Array:
    """One gradient for each row, by a vmapped reverse pass."""

    def one(row: Rows) -> Array:
        single = jax.tree.map(lambda leaf: leaf[None], row)
        return jax.grad(lambda v: residual(template.with_parameters(unravel(v)), single)[0])(vector)

    return jax.vmap(one)(rows)


def _step(
    carry: StepCarry, rows: Rows, unravel, template: Weights, momentum: float
) -> tuple[StepCarry, Array]:
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
    loss = jnp.where(accept, losses[best], before)
    return StepCarry(carry.vector + step, step, carry.first_loss), loss


@functools.partial(jax.jit, static_argnames="momentum")
def _advance(
    carry: StepCarry, chunk: Rows, template: Weights, momentum: float
) -> tuple[StepCarry, Array]:
    """One step for each set of rows in the chunk; compiled once for all of one shape."""
    unravel = ravel_pytree(template.parameters)[1]
    return jax.lax.scan(lambda c, rows: _step(c, rows, unravel, template, momentum), carry, chunk)


class Sizes(NamedTuple):
    """What takes the place of options that are not given."""

    width: int
    depth: int
    points: int
    steps: int
    activation: str = "sine"


# In few dimensions one wide layer of sines, whose last-layer solve is nearly the answer; in many, a
# deep and narrow network learns its features.
SHALLOW, DEEP, DUAL_SIZES = Sizes(250, 1, 800, 40), Sizes(40, 3, 1000, 400), Sizes(64, 3, 1000, 600)


class GaussNewton(AbstractSolver):
    """Train until the residual on fresh points is at most the tolerance, the steps are used up, or
    nothing improves; a last-layer solve ends it. In many dimensions the dual form does the work
    (`cordes.solvers.dual`), which draws fresh points on the device and needs no rows."""

    width: int | None = None
    depth: int | None = None
    activation: str | None = None
    points: int | None = None
    steps: int | None = None
    resample: bool | None = None
    momentum: float | None = None

    method: ClassVar[str] = "gauss-newton"
    outer_steps: ClassVar[int | None] = 8
    small: ClassVar[float] = 1e-2

    rules: ClassVar[Mapping[str, Rule]] = {
        **{name: whole(1) for name in ("width", "depth", "points", "steps")},
        "activation": one_of("activation", ACTIVATIONS),
        "resample": flag,
        "momentum": number(0.0, below=1.0),
    }

    def sized(self, usual: Sizes) -> Sizes:
        """The sizes of a run: those given, else the usual ones."""
        return Sizes(*(getattr(self, name) or getattr(usual, name) for name in Sizes._fields))

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        if (
            system.domain.dimension >= DUAL.get(jax.default_backend(), 4)
            and system.problem.linear
            and self.resample is not False
            and system.hard
            and not system.columns
        ):
            return self.run_dual(system, budget, start)
        shallow = system.domain.dimension <= 3 if self.depth is None else self.depth == 1
        sizes = self.sized(SHALLOW if shallow else DEEP)
        shape = sizes.points, sizes.width, sizes.depth
        require_training(system, shape, system.domain.dimension, matrices=2, jacobian=True)
        resample = True if self.resample is None else self.resample
        momentum = (0.9 if resample else 0.0) if self.momentum is None else self.momentum
        initial = "fourier" if shallow and sizes.activation == "sine" else "glorot"
        seed = budget.seed
        weights = initial_weights(
            system, start, sizes.width, sizes.depth, sizes.activation, seed, initial
        )

        def rows_at(count: int, seed: int) -> Rows:
            return system.loss_rows(system.points(count, seed), budget.seed)

        rows = rows_at(sizes.points, seed)
        if start is None and shallow:
            weights = solve_last_layer(weights, rows)
        vector, unravel = ravel_pytree(weights.parameters)
        fresh = system.loss_rows(system.fresh_points(seed), seed)

        def advance(carry: StepCarry, done: int) -> tuple[StepCarry, float]:
            several = [
                rows_at(sizes.points, seed + 17 + done + k) if resample else rows
                for k in range(CHUNK)
            ]
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *several)
            carry, losses = _advance(carry, stacked, weights, momentum)
            return carry, float(losses[-1])

        def look(carry: StepCarry, done: int) -> tuple[Weights, float]:
            current = weights.with_parameters(unravel(carry.vector))
            return current, float(residual_norm(current, fresh))

        first = {
            "loss": float(residual_norm(weights, rows)),
            "residual": float(residual_norm(weights, fresh)),
        }
        carry = StepCarry(vector, jnp.zeros_like(vector), jnp.asarray(np.linalg.norm(rows.target)))
        course = train(weights, first, carry, advance, look, _pace(sizes, PATIENCE), budget)
        # No signal costs an answer that is there.
        with held():
            polished = solve_last_layer(course.best, rows_at(4 * sizes.points, seed + 7))
            if (value := float(residual_norm(polished, fresh))) < course.residual:
                course = course._replace(best=polished, residual=value)
        return course.answer(rows.count, budget, self.small * float(np.linalg.norm(fresh.target)))

    def _plan(self, points: int, dimension: int) -> dual.DualPlan:
        momentum = 0.9 if self.momentum is None else self.momentum
        damping = dual.FEW_DAMPING if dimension <= dual.FEW else dual.MANY_DAMPING
        return dual.DualPlan(points, max(points // 2, 1), momentum, damping)

    def run_dual(
        self, system: AbstractSystem, budget: Budget, start: Weights | None = None
    ) -> Answer:
        """Fresh points in every step, the dual form, and the last layer solved for now and then."""
        dual.check_problem(system)
        equation, seed, dimension = dual.equation_of(system), budget.seed, system.domain.dimension
        sizes = self.sized(DUAL_SIZES._replace(points=dual.fewer(DUAL_SIZES.points, dimension)))
        shape = sizes.points, sizes.width, sizes.depth
        # One direction at least where A is given by few.
        directions = 1 if isinstance(system.problem.A, DiagonalPlusRank) else dimension
        require_training(system, shape, directions, matrices=dual.MATRICES, jacobian=False)
        weights = initial_weights(
            system, start, sizes.width, sizes.depth, sizes.activation, seed, "glorot"
        )
        template = weights.network
        plan = self._plan(sizes.points, dimension)
        # The points that judge are the same all along, and no step sees them.
        judges = dual.fewer(dual.FRESH, dimension)
        fresh = equation.sources(seed + 1_000_003, 0, 1, judges)[0]

        def judged(network: AbstractNetwork) -> float:
            return float(dual.judge(network, fresh, equation, judges))

        def polished(network: AbstractNetwork, before: float) -> tuple[AbstractNetwork, float]:
            nonlocal polishing
            began = budget.clock.seconds
            better = dual.solve_last_layer(network, equation, seed + 7, sizes.points)
            after = judged(better)
            polishing = budget.clock.seconds - began
            return (better, after) if after < before else (network, before)

        def advance(carry: Any, done: int) -> tuple[Any, float]:
            sources = equation.sources(seed, done // CHUNK, CHUNK, plan.points + plan.trial)
            carry, losses = dual.advance(carry, sources, template, equation, plan)
            return carry, float(losses[-1])

        due, polishing = float(dual.POLISH), 0.0

        def look(carry: Any, done: int) -> tuple[Weights, float]:
            nonlocal due
            current = template.with_parameters(distribution.local(carry.parameters))
            value = judged(current)
            if done >= due:
                due = dual.GROWTH * done
                # Steps go on from the weights as they were: going on from the better ones gains
                # nothing.
                current, value = polished(current, value)
            return weights._replace(network=current), value

        began = budget.clock.seconds
        start_residual = judged(template)
        looked = budget.clock.seconds - began
        expected, polishing = dual.FIRST * looked, dual.FIRST_POLISH * looked
        scale = judged(template.with_coefficients(0 * template.coefficients))
        patience = dual.PATIENCE if budget.clock.limit is None else None
        first = {"loss": start_residual, "residual": start_residual}
        carry, pace = dual.DualCarry.of(template, scale), _pace(sizes, patience)
        course = train(weights, first, carry, advance, look, pace, budget, expected)
        if budget.clock.allows(polishing):
            with held():
                best, smallest = polished(course.best.network, course.residual)
            course = course._replace(best=weights._replace(network=best), residual=smallest)
        return course.answer(sizes.points, budget, self.small * scale)


def _pace(sizes: Sizes, patience: Patience | None) -> Pace:
    return Pace(-(-sizes.steps // CHUNK) * CHUNK, CHUNK, CHUNK, patience=patience)
