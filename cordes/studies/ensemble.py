"""Many seeds of one training method at once: the paper's recipe, vmapped over seeds, in one
compiled loop.

Each seed has its own initial weights and its own points, the same for every method, so that methods
differ in nothing but the loss. The parameters of a network are one vector: the optimiser and the
diagnostics are then a few operations instead of a few for each layer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.flatten_util import ravel_pytree

from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.networks.activations import activation_jet
from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.ansatz.points import Points
from cordes.jet import Jet, contract, jet_of
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem
from cordes.runtime.memory import largest_that_fits, require_memory
from cordes.solutions.errors import error_points
from cordes.solvers.adam import PAPER
from cordes.solvers.rows.system import FRESH, System
from cordes.solvers.train import cast

# The error is looked at after so many epochs, as in the paper.
EVERY = 10
# Outer steps of the nonlinear problems: every row of the paper's tables fits these.
INNER_EPOCHS = 1000


def choices_of(problem: AbstractProblem) -> dict[str, Any]:
    """The paper's own choices where the library has better ones: the best control is that of the
    unscaled equation, cofactors are taken as they are."""
    if problem.linear:
        return {}
    return {"form": "plain"} if problem.convex else {"scaled": False}


def warm_up_of(problem: AbstractProblem) -> int:
    """Epochs before a nonlinear equation is first frozen at the network: Monge–Ampère problems
    begin with Δu = d f^(1/d)."""
    return INNER_EPOCHS if problem.convex else 0


class Method(NamedTuple):
    """A loss: with or without the multiplier; `frozen` says that a nonlinear equation is linearised
    again and again, not trained on directly."""

    name: str
    multiplier: bool
    frozen: bool = True


def methods_of(problem: AbstractProblem) -> tuple[Method, ...]:
    """What is compared. The paper's PINN trains on a nonlinear residual directly; the PINN inside
    the Newton loop is promised there, and missing."""
    ours, plain = Method("C-PINN", True), Method("PINN", False, frozen=problem.linear)
    return (ours, plain) if problem.linear else (ours, plain, Method("PINN-Newton", False))


class Training(NamedTuple):
    """The state of one seed (of all seeds, with a leading axis): parameters, the optimiser's
    memory, the last gradient, and the latest diagnostics."""

    parameters: Array
    memory: Any
    gradient: Array
    moved: Array
    loss: Array
    sharpness: Array


class Measured(NamedTuple):
    """What is recorded every EVERY epochs, for each seed."""

    l2: Any
    linf: Any
    loss: Any
    gradient: Any
    sharpness: Any


class Ensemble:
    """A problem, a method and seeds; `advance` trains all of them for some epochs, `linearise`
    freezes a nonlinear equation at the present states."""

    def __init__(
        self,
        problem: AbstractProblem,
        method: Method,
        seeds: Sequence[int],
        truth: np.ndarray,
        preset: dict[str, Any] = PAPER,
    ):
        """`truth` holds the values to compare with at `error_points(problem.domain)`; they are used
        to measure errors and for nothing else."""
        self.problem, self.method, self.seeds, self.preset = problem, method, tuple(seeds), preset
        self.dtype = jnp.dtype(preset["precision"])
        self.system = System(problem, method.multiplier, singular=False, inputs="coordinates")
        self.optimiser = optax.adam(preset["learning_rate"])
        self._require(len(self.seeds))
        networks = [self._network(seed) for seed in self.seeds]
        self.template = networks[0]
        self._unravel = ravel_pytree(self.template.parameters)[1]
        self._start = jnp.stack([ravel_pytree(network.parameters)[0] for network in networks])
        self.points = [self._points(seed) for seed in self.seeds]
        self.choices = choices_of(problem)
        self._evaluation = self._evaluated(truth)
        self._fresh = jnp.asarray(problem.domain.interior_points(FRESH, 1_000_003))
        self._advance = jax.jit(self._advance_lanes, static_argnames="records")
        self._freeze = jax.jit(
            lambda *lanes: jax.lax.map(lambda one: self._frozen_rows(*one), lanes)
        )
        self._contraction = jax.jit(lambda lanes: jax.lax.map(self._contraction_of, lanes))

    def _require(self, count: int) -> None:
        """Refuse more seeds than there is memory for: their states and their rows are all held."""
        d, width, depth = self.problem.domain.dimension, self.preset["width"], self.preset["depth"]
        parameters = width * (d + 2) + (depth - 1) * width * (width + 1)
        rows = self.preset["points"] * (2 + d) * (1 + d + d * d)
        one = self.dtype.itemsize * (6.0 * parameters + 2.0 * rows)
        most = largest_that_fits(lambda seeds: one * seeds, count)
        require_memory(one * count, f"seeds = {count}", f"seeds = {most} would fit.")

    def _network(self, seed: int) -> MLP:
        inputs = self.system.ansatz.inputs
        width, depth, sigma = (self.preset[name] for name in ("width", "depth", "activation"))
        return MLP(inputs, width, depth, sigma, seed, "uniform", self.dtype)

    def _points(self, seed: int) -> Points:
        count = self.preset["points"]
        return Points(self.problem.domain.interior_points(count, seed), np.full(count, count**-0.5))

    def _evaluated(self, truth: np.ndarray) -> tuple[Array, Array, Array]:
        """Inputs of the network, distance, and what distance times network should be: in single
        precision this loses less than u itself would."""
        ansatz = self.system.ansatz

        def parts(x: Array) -> tuple[Array, ...]:
            scalars = (jnp.asarray(part(x)) for part in (ansatz.distance, ansatz.lift))
            return ansatz.inputs.jet(x).value, *scalars

        points = error_points(self.problem.domain)
        inputs, distance, lift = jax.jit(jax.vmap(parts))(points)
        return cast((inputs, distance, jnp.asarray(truth) - lift), self.dtype)

    # States ---------------------------------------------------------------------------------------

    def start(self) -> Training:
        """All seeds before the first epoch."""
        memory = jax.vmap(self.optimiser.init)(self._start)
        none = jnp.zeros(len(self.seeds), self.dtype)
        return Training(self._start, memory, jnp.zeros_like(self._start), none, none, none)

    def network(self, parameters: Array, dtype: Any = None) -> AbstractNetwork:
        network = self.template.with_parameters(self._unravel(parameters))
        return network if dtype is None else cast(network, dtype)

    # Data -----------------------------------------------------------------------------------------

    def data(self) -> Any:
        """What the loss needs at the start: rows of the linear equation (of the warm-up), or jets
        of lift and distance for a direct loss."""
        ansatz = self.system.ansatz
        lift, distance = (
            jax.jit(jax.vmap(jet_of(part))) for part in (ansatz.lift, ansatz.distance)
        )

        def lane(points: Points) -> tuple[Any, ...]:
            if not self.method.frozen:
                return points.x, lift(points.x), distance(points.x)
            rows = self.system.rows(points)
            return rows.frozen, rows.target

        lanes = [lane(points) for points in self.points]
        return cast(jax.tree.map(lambda *leaves: np.stack(leaves), *lanes), self.dtype)

    def linearised(self, state: Training) -> Any:
        """Rows of the equation that is frozen at the present states: one outer step."""
        return self._freeze(state.parameters, jnp.stack([points.x for points in self.points]))

    def _frozen_rows(self, parameters: Array, x: Array) -> Any:
        A, b, c, f = self._equation_at(parameters, x)
        factor = jnp.full(len(x), len(x) ** -0.5)
        if self.method.multiplier:
            factor *= cordes_multiplier(A)
        weighted = factor[:, None, None] * A, factor[:, None] * b, factor * c, factor * f
        return cast(self.system.ansatz.freeze_block(x, *weighted), self.dtype)

    def _equation_at(self, parameters: Array, x: Array) -> Any:
        """A, b, c and f of the equation frozen at the network."""
        frozen = jax.vmap(lambda x, *jet: self.problem.linearise(x, Jet(*jet), **self.choices))
        return frozen(x, *self._jet(parameters, x))

    def _jet(self, parameters: Array, x: Array, with_lift: bool = True) -> Jet:
        """The jet of u (or of u without its lift) in double precision."""
        ansatz = self.system.ansatz
        distance, lift = jax.vmap(jet_of(ansatz.distance))(x), jax.vmap(jet_of(ansatz.lift))(x)
        lift = lift if with_lift else jax.tree.map(jnp.zeros_like, lift)
        return Ansatz.combine(lift, distance, self.network(parameters, jnp.float64).jet(x))

    # Training -------------------------------------------------------------------------------------

    def compiled(self, state: Training, data: Any, records: int) -> Any:
        """EVERY·records epochs of all seeds as a compiled function of state and data."""
        return self._advance.lower(state, data, self._evaluation, records=records).compile()

    def advance(self, function: Any, state: Training, data: Any) -> tuple[Training, Measured]:
        """The states after a compiled run, and (records, seeds) arrays of what was measured."""
        return jax.block_until_ready(function(state, data, self._evaluation))

    def _advance_lanes(
        self, state: Training, data: Any, evaluation: Any, records: int
    ) -> tuple[Training, Measured]:
        def one(lane: tuple[Training, Any]) -> tuple[Training, Measured]:
            return self._advance_lane(*lane, evaluation, records)

        if jax.default_backend() == "cpu":
            # Batched products are several times slower there than one after the other.
            state, measured = jax.lax.map(one, (state, data))
            return state, jax.tree.map(jnp.transpose, measured)
        return jax.vmap(one, out_axes=(0, 1))((state, data))

    def _advance_lane(
        self, state: Training, data: Any, evaluation: Any, records: int
    ) -> tuple[Training, Measured]:
        def record(state: Training, _: None) -> tuple[Training, Measured]:
            state = jax.lax.scan(
                lambda state, _: (self._epoch(state, data), None), state, None, length=EVERY
            )[0]
            return state, self._measured(state, evaluation)

        return jax.lax.scan(record, state, None, length=records)

    def _epoch(self, state: Training, data: Any) -> Training:
        loss, gradient = jax.value_and_grad(self._loss)(state.parameters, data)
        update, memory = self.optimiser.update(gradient, state.memory)
        # The paper's proxy of the largest curvature: how much the gradient changed over how far the
        # parameters moved.
        way = jnp.maximum(state.moved, jnp.finfo(self.dtype).tiny)
        sharpness = jnp.linalg.norm(gradient - state.gradient) / way
        parameters = jnp.asarray(optax.apply_updates(state.parameters, update))
        moved = jnp.linalg.norm(update)  # pyright: ignore[reportArgumentType]
        return Training(parameters, memory, gradient, moved, loss, sharpness)

    def _loss(self, parameters: Array, data: Any) -> Array:
        network = self.network(parameters)
        if self.method.frozen:
            frozen, target = data
            return jnp.sum((network.rows(frozen) - target) ** 2)
        x, lift, distance = data
        jet = Ansatz.combine(lift, distance, network.jet(x))
        residual = jax.vmap(lambda x, *jet: self.problem.residual(x, Jet(*jet)))(x, *jet)
        return jnp.mean(residual**2).astype(self.dtype)

    def settled(self, state: Training, data: Any, lane: int, epochs: int) -> Array:
        """The parameters of one seed after further epochs at a learning rate that falls to zero:
        Adam at a constant rate never comes to rest, and whoever looks at a minimum must not look at
        one of its swings."""
        alone, rows = (
            jax.tree.map(lambda leaf: jnp.asarray(leaf)[lane], tree) for tree in (state, data)
        )

        def epoch(carry: tuple[Array, Any], share: Array) -> tuple[tuple[Array, Any], None]:
            parameters, memory = carry
            update, memory = self.optimiser.update(jax.grad(self._loss)(parameters, rows), memory)
            return (parameters + (1 - share).astype(self.dtype) * jnp.asarray(update), memory), None

        shares = jnp.linspace(0, 1, epochs)
        run = jax.jit(lambda *carry: jax.lax.scan(epoch, carry, shares)[0][0])
        return run(alone.parameters, alone.memory)

    def _measured(self, state: Training, evaluation: Any) -> Measured:
        inputs, distance, wanted = evaluation
        network, sigma = self.network(state.parameters), activation_jet(self.template.activation)
        hidden = inputs
        for weight, bias in network.layers:
            hidden = sigma(hidden @ weight + bias)[0]
        error = distance * (hidden @ network.coefficients) - wanted
        l2, linf = jnp.sqrt(jnp.mean(error**2)), jnp.max(jnp.abs(error))
        return Measured(l2, linf, state.loss, jnp.linalg.norm(state.gradient), state.sharpness)

    # The theorem ----------------------------------------------------------------------------------

    def contraction(self, state: Training) -> tuple[np.ndarray, np.ndarray]:
        """‖Δw - γA:D²w‖ / ‖Δw‖ on fresh points for w = u without its lift, which has zero boundary
        values, and √(1-ε), each for all seeds. The theorem says that the first is at most the
        second, on convex domains; where A violates the Cordès condition the second is not a
        number."""
        ratio, bound = self._contraction(state.parameters)
        return np.asarray(ratio), np.asarray(bound)

    def _contraction_of(self, parameters: Array) -> tuple[Array, Array]:
        x, d = self._fresh, self.problem.domain.dimension
        w = self._jet(parameters, x, with_lift=False)
        A = self._equation_at(parameters, x).A
        laplacian = jnp.trace(w.hessian, axis1=1, axis2=2)
        difference = laplacian - cordes_multiplier(A) * contract(A, w.hessian)
        anisotropy = jnp.trace(A, axis1=1, axis2=2) ** 2 / jnp.sum(A**2, axis=(1, 2))
        epsilon = jnp.min(anisotropy) - (d - 1)
        bound = jnp.where(epsilon > 0, jnp.sqrt(1 - jnp.minimum(epsilon, 1.0)), jnp.nan)
        return jnp.linalg.norm(difference) / jnp.linalg.norm(laplacian), bound
