"""The rival of the outer loop: Adam on the nonlinear residual itself, as a plain PINN does it.
Nothing is frozen; the loss is not quadratic in u.

For Hamilton–Jacobi–Bellman equations the best control is chosen anew in every epoch, and its choice
is not differentiated (its derivative is zero almost everywhere). The multiplier, if wanted, is that
of the frozen matrix, not differentiated either.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cordes.ansatz.ansatz import Ansatz
from cordes.errors import OptionError
from cordes.jet import Jet, jet_of
from cordes.runtime.progress import Progress
from cordes.solvers.adam import CHUNK, run_epochs
from cordes.solvers.answer import Answer
from cordes.solvers.system import Clock, System
from cordes.solvers.training import State, cast, initial_state


def solve_direct(
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
    choices: dict[str, Any] | None = None,
) -> Answer:
    """Full-batch Adam on points drawn once; the best state by the residual on fresh points is
    returned."""
    if epochs < CHUNK:
        raise OptionError(
            f"epochs = {epochs}: at least {CHUNK} are needed, which is one compiled run."
        )
    dtype = jnp.dtype(precision)
    state = initial_state(system, start, width, depth, activation, seed, "uniform", dtype)
    choices = choices or {}

    def prepared(collocation) -> tuple:
        """Points, weights, and what is fixed about the ansatz there: the jets of the lift and of
        the distance."""
        x = jnp.asarray(collocation.x)
        fixed = jax.jit(
            lambda x: (
                jax.vmap(jet_of(system.ansatz.lift))(x),
                jax.vmap(jet_of(system.ansatz.distance))(x),
            )
        )(x)
        return cast((x, collocation.weight, *fixed), dtype)

    rows, fresh = prepared(system.points(points, seed)), prepared(system.fresh_points(seed))
    loss_of = functools.partial(nonlinear_loss, system=system, template=state, choices=choices)
    optimiser = optax.adam(learning_rate)

    def epoch(carry, _):
        parameters, memory = carry
        loss, gradient = jax.value_and_grad(lambda p: loss_of(p, rows))(parameters)
        update, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(parameters, update), memory), loss

    advance = jax.jit(lambda carry: jax.lax.scan(epoch, carry, None, length=CHUNK))
    measure = jax.jit(lambda current: jnp.sqrt(loss_of(current.parameters, fresh)))
    first = float(measure(state))
    history = [{"epoch": 0, "residual": first, "seconds": clock.seconds}]
    memory = optimiser.init(state.parameters)
    best, best_residual, result = run_epochs(
        state, memory, advance, measure, epochs, tol, 0.1 * first, clock, progress, history
    )
    best = cast(best, jnp.float64)
    return Answer(
        best.network, best.amplitudes, result, best_residual, len(np.asarray(rows[0])), history
    )


def nonlinear_loss(
    parameters: Any, data: tuple, system: System, template: State, choices: dict[str, Any]
) -> jax.Array:
    """The sum of the squares of the weighted nonlinear residual."""
    x, weight, lift, distance = data
    state, problem = template.with_parameters(parameters), system.problem
    jet = Ansatz.combine(lift, distance, state.network.jet(x))
    frozen = jax.tree.map(jax.lax.stop_gradient, jet)

    def factor(x, *parts):
        A = problem.linearise(x, Jet(*parts), **choices).A
        return jnp.trace(A) / (jnp.sum(A**2) + system.delta)

    gamma = jax.lax.stop_gradient(jax.vmap(factor)(x, *frozen)) if system.multiplier else 1.0
    defect = jax.vmap(lambda x, *parts: problem.residual(x, Jet(*parts)))(x, *jet)
    return jnp.sum((gamma * weight * defect) ** 2)
