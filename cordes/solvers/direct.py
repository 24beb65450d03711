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
import optax

from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.points import Points
from cordes.jet import Jet, jet_of
from cordes.solutions.answer import Answer
from cordes.solvers.adam import CHUNK, Adam
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget, Weights, cast, epochs


def train_directly(
    solver: Adam,
    system: AbstractSystem,
    budget: Budget,
    start: Weights | None,
    choices: dict[str, Any],
) -> Answer:
    """Full-batch Adam on points drawn once; the best weights by the residual on fresh points are
    returned."""
    dtype, seed = jnp.dtype(solver.precision), budget.seed
    weights = solver.weights(system, budget, start)

    def prepared(collocation: Points) -> tuple:
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

    rows, fresh = prepared(system.points(solver.points, seed)), prepared(system.fresh_points(seed))
    loss_of = functools.partial(nonlinear_loss, system=system, template=weights, choices=choices)
    optimiser = optax.adam(solver.learning_rate)
    several = jax.jit(
        lambda carry: epochs(lambda p, _: loss_of(p, rows), optimiser, carry, length=CHUNK)
    )
    measure = jax.jit(lambda current: jnp.sqrt(loss_of(current.parameters, fresh)))
    first = {"residual": float(measure(weights))}
    course = solver.trained(
        lambda carry, done: several(carry), measure, weights, optimiser, first, budget
    )
    course = course._replace(best=cast(course.best, jnp.float64))
    return course.answer(len(rows[0]), budget, solver.small * first["residual"])


def nonlinear_loss(
    parameters: Any, data: tuple, system: AbstractSystem, template: Weights, choices: dict[str, Any]
) -> jax.Array:
    """The sum of the squares of the weighted nonlinear residual."""
    x, weight, lift, distance = data
    weights, problem = template.with_parameters(parameters), system.problem
    jet = Ansatz.combine(lift, distance, weights.network.jet(x))
    frozen = jax.tree.map(jax.lax.stop_gradient, jet)

    def factor(x, *parts):
        A = problem.linearise(x, Jet(*parts), **choices).A
        return jnp.trace(A) / (jnp.sum(A**2) + system.options.delta)

    gamma = jax.lax.stop_gradient(jax.vmap(factor)(x, *frozen)) if system.multiplier else 1.0
    defect = jax.vmap(lambda x, *parts: problem.residual(x, Jet(*parts)))(x, *jet)
    return jnp.sum((gamma * weight * defect) ** 2)
