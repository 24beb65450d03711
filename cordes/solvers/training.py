"""What the two training methods share: a network with amplitudes as one tree of parameters, its
residual, and the start by a last-layer solve."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.ansatz import Rows, feature_matrix
from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.results import Result
from cordes.runtime import distribution
from cordes.solvers.rank_revealing import solve_rank_revealing
from cordes.solvers.system import Clock, System


class State(NamedTuple):
    """A network and the amplitudes of the singular functions."""

    network: AbstractNetwork
    amplitudes: Array

    def with_parameters(self, parameters) -> "State":
        return State(self.network.with_parameters(parameters[0]), parameters[1])

    @property
    def parameters(self):
        return self.network.parameters, self.amplitudes


def residual(state: State, rows: Rows) -> Array:
    """Network expression + singular·amplitudes - target, one entry for each row."""
    # A single row is one of many in a map over rows, which the devices share already.
    rows = distribution.spread(rows) if rows.count > 1 else rows
    return state.network.rows(rows.frozen) + rows.singular @ state.amplitudes - rows.target


@jax.jit
def residual_norm(state: State, rows: Rows) -> Array:
    return jnp.linalg.norm(residual(state, rows))


def cast(tree, dtype):
    """All floating arrays of a tree in another precision."""
    return jax.tree.map(
        lambda leaf: (
            jnp.asarray(leaf, dtype)
            if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)
            else leaf
        ),
        tree,
    )


def initial_state(
    system: System,
    start: State | None,
    width: int,
    depth: int,
    activation: str,
    seed: int,
    initial: str,
    dtype=jnp.float64,
) -> State:
    """A fresh network, or the one to continue from."""
    if start is not None:
        # Not the inputs: their scale is not kept in a file, but made again from the domain, and
        # must not be rounded.
        return start.with_parameters(cast(start.parameters, dtype))
    network = MLP(system.ansatz.inputs, width, depth, activation, seed, initial, dtype)
    return State(network, jnp.zeros(system.columns, dtype))


def solve_last_layer(state: State, rows: Rows, tolerance: float = 1e-12) -> State:
    """The best coefficients and amplitudes for the hidden weights as they are."""
    solution = solve_rank_revealing(
        feature_matrix(state.network, rows),
        np.asarray(rows.target),
        tolerance,
        damped=rows.singular.shape[1],
    )
    width = state.network.coefficients.shape[0]
    return State(
        state.network.with_coefficients(jnp.asarray(solution[:width])),
        jnp.asarray(solution[width:]),
    )


def stack(rows: Rows, extra: Rows | None) -> Rows:
    """Interior rows followed by extra ones (soft boundary values)."""
    return (
        rows if extra is None else jax.tree.map(lambda a, b: jnp.concatenate([a, b]), rows, extra)
    )


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
