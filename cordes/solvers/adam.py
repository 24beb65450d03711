"""Adam on the mean square of the rows: what the paper does. The loop runs inside one compiled scan,
ten epochs at a time. In hundreds of dimensions A:D²u is estimated from random directions instead
(`cordes.solvers.stochastic`)."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.ansatz import Ansatz, Rows
from cordes.ansatz.networks.activations import ACTIVATIONS
from cordes.ansatz.points import Points
from cordes.arguments import Rule, one_of, positive, whole
from cordes.errors import OptionError, unknown
from cordes.jet import Jet, jet_of
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem
from cordes.runtime import distribution
from cordes.solutions.answer import Answer
from cordes.solvers import stochastic
from cordes.solvers.dual import equation_of, judge
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import (
    Budget,
    Pace,
    TrainingCourse,
    Weights,
    cast,
    epochs,
    initial_weights,
    require_training,
    residual,
    residual_norm,
    train,
)

# What each estimate of A:D²u trains best with.
EXACT = {
    "width": 64,
    "depth": 4,
    "activation": "silu",
    "learning_rate": 3e-4,
    "points": 10_000,
    "epochs": 5_000,
    "precision": "float32",
}
STOCHASTIC = {
    "width": 128,
    "depth": 2,
    "activation": "tanh",
    "learning_rate": 1e-2,
    "points": 500,
    "epochs": 5_000,
    "precision": "float64",
    "probes": 16,
}
DEFAULTS = {"exact": EXACT, "stochastic": STOCHASTIC}
# The paper states the learning rate and the points; the network's size is our choice, as is
# float32. Its networks see nothing of the interfaces.
PAPER = {**EXACT, "epochs": 40_000, "interface_inputs": False}
CHUNK, REPORT = 10, 50
# Follows from the estimator.
CHOSEN: Any = None


class Adam(AbstractSolver):
    """Full-batch Adam on points drawn once, `epochs` rounded down to a multiple of ten; the best
    weights by the residual on fresh points are returned. `estimator="stochastic"` takes `probes`
    random directions instead of all second derivatives and fresh points in every step, for linear
    problems in hundreds of dimensions; what is not given follows from the estimator."""

    width: int = CHOSEN
    depth: int = CHOSEN
    activation: str = CHOSEN
    learning_rate: float = CHOSEN
    points: int = CHOSEN
    epochs: int = CHOSEN
    precision: str = CHOSEN
    estimator: str = "exact"
    probes: int | None = None

    method: ClassVar[str] = "adam"
    singular: ClassVar[bool] = False
    outer_steps: ClassVar[int | None] = None
    small: ClassVar[float] = 0.1
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER}

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, str) or self.estimator not in DEFAULTS:
            raise unknown("estimator", self.estimator, DEFAULTS)
        for name, value in DEFAULTS[self.estimator].items():
            if getattr(self, name) is None:
                setattr(self, name, value)

    rules: ClassVar[Mapping[str, Rule]] = {
        **{name: whole(1) for name in ("width", "depth", "points", "probes")},
        "activation": one_of("activation", ACTIVATIONS),
        "learning_rate": positive,
        # One compiled run.
        "epochs": whole(CHUNK),
        "precision": one_of("precision", ("float32", "float64")),
    }

    def __check_init__(self) -> None:
        if self.estimator == "exact" and self.probes is not None:
            raise OptionError(
                "probes are the random directions of estimator='stochastic': pass that too, or "
                "leave them out."
            )
        if self.estimator != "exact" and self.precision != STOCHASTIC["precision"]:
            raise OptionError("precision cannot be had with estimator='stochastic': leave it out.")

    def refuse(self, problem: AbstractProblem, others: frozenset[str]) -> None:
        if self.estimator == "exact":
            return
        if not problem.linear:
            raise OptionError(
                "estimator = 'stochastic' is for linear problems: the supremum of estimates, or "
                "their determinant, would be biased."
            )
        if named := sorted(others & {"boundary", "boundary_weight", "preset"}):
            raise OptionError(
                f"{', '.join(named)} cannot be had with estimator='stochastic': leave it out."
            )

    def weights(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Weights:
        """A fresh network in the precision of the training, or the one to continue from."""
        exact, sizes = self.estimator == "exact", (self.points, self.width, self.depth)
        directions = system.domain.dimension if exact else self.probes or 1
        require_training(system, sizes, directions, matrices=2 * exact, jacobian=False)
        shape = self.width, self.depth, self.activation
        initial = "uniform" if exact else "glorot"
        dtype = jnp.dtype(self.precision)
        return initial_weights(system, start, *shape, budget.seed, initial, dtype)

    @property
    def pace(self) -> Pace:
        if self.estimator == "exact":
            return Pace(self.epochs // CHUNK * CHUNK, CHUNK, REPORT, "epoch")
        chunk = stochastic.CHUNK
        return Pace(-(-self.epochs // chunk) * chunk, chunk, chunk)

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        if self.estimator == "stochastic":
            return self._estimated(system, budget, start)
        weights, dtype = self.weights(system, budget, start), jnp.dtype(self.precision)
        seed = budget.seed
        places = system.points(self.points, seed), system.fresh_points(seed)
        rows, fresh = (cast(system.loss_rows(points, seed), dtype) for points in places)
        count, scale = rows.count, float(np.linalg.norm(fresh.target))
        rows, fresh = distribution.place(rows), distribution.place(fresh)
        first = {
            "loss": float(residual_norm(weights, rows)) ** 2,
            "residual": float(residual_norm(weights, fresh)),
        }
        course = self.trained(
            lambda carry, done: _advance(carry, weights, rows, self.learning_rate),
            lambda current: residual_norm(current, fresh),
            weights,
            optax.adam(self.learning_rate),
            first,
            budget,
        )
        course = course._replace(best=distribution.local(cast(course.best, jnp.float64)))
        return course.answer(count, budget, self.small * scale)

    def trained(
        self,
        advance: Callable[[Any, int], tuple[Any, Array | None]],
        measure: Callable[[Weights], Array],
        weights: Weights,
        optimiser: optax.GradientTransformation,
        first: dict[str, float],
        budget: Budget,
    ) -> TrainingCourse:
        """The course of a run whose compiled `advance` takes parameters and the optimiser's memory
        through a chunk of epochs, with their losses if they are known; `measure` is the residual on
        fresh points."""

        def step(carry: Any, done: int) -> tuple[Any, float | None]:
            carry, losses = advance(carry, done)
            return carry, None if losses is None else float(losses[-1])

        def look(carry: Any, done: int) -> tuple[Weights, float]:
            current = weights.with_parameters(carry[0])
            return current, float(measure(current))

        carry = (weights.parameters, optimiser.init(weights.parameters))
        return train(weights, first, carry, step, look, self.pace, budget)

    def _estimated(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        """On the unbiased loss; the residual that judges is exact."""
        equation, seed = equation_of(system), budget.seed
        if not equation.on_device:
            raise OptionError(
                "estimator = 'stochastic' is for linear problems on a Box, Ball or Ellipsoid: the "
                "supremum of estimates would be biased."
            )
        weights, chunk = self.weights(system, budget, start), stochastic.CHUNK
        fresh = equation.sources(seed + 1_000_003, 0, 1, stochastic.FRESH)[0]
        plan = stochastic.EstimatePlan(
            self.points, self.probes or 0, self.epochs, self.learning_rate
        )

        def judged(current: Weights) -> Array:
            return judge(current.network, fresh, equation, stochastic.FRESH)

        def advance(carry: Any, done: int) -> tuple[Any, None]:
            keys = equation.sources(seed, done // chunk, chunk, self.points)
            return stochastic.advance(carry, keys, weights, equation, plan)[0], None

        none = weights.network.with_coefficients(0 * weights.network.coefficients)
        scale = float(judged(weights._replace(network=none)))
        first = {"residual": float(judged(weights))}
        course = self.trained(advance, judged, weights, plan.optimiser, first, budget)
        return course.answer(self.points, budget, self.small * scale)


@jax.jit
def _advance(carry, weights: Weights, rows: Rows, learning_rate: float):
    """CHUNK epochs; compiled once for all rows of one shape, so that an outer loop can call it
    again and again."""

    def loss(parameters: PyTree, _: None) -> Array:
        return jnp.sum(residual(weights.with_parameters(parameters), rows) ** 2)

    return epochs(loss, optax.adam(learning_rate), carry, length=CHUNK)


def train_directly(
    solver: Adam,
    system: AbstractSystem,
    budget: Budget,
    start: Weights | None,
    choices: dict[str, Any],
) -> Answer:
    """The rival of the outer loop: Adam on the nonlinear residual itself, as a plain PINN does it.
    Nothing is frozen; the loss is not quadratic in u. Points are drawn once, and the best weights
    by the residual on fresh points are returned.

    For Hamilton–Jacobi–Bellman equations the best control is chosen anew in every epoch, and its
    choice is not differentiated (its derivative is zero almost everywhere). The multiplier, if
    wanted, is that of the frozen matrix, not differentiated either.
    """
    dtype, seed = jnp.dtype(solver.precision), budget.seed
    weights = solver.weights(system, budget, start)

    def prepared(collocation: Points) -> tuple:
        """Points, weights, and what is fixed about the ansatz there: the jets of the lift and of
        the distance."""
        x = jnp.asarray(collocation.x)
        ansatz = system.ansatz
        lift, distance = (jax.vmap(jet_of(part)) for part in (ansatz.lift, ansatz.distance))
        fixed = jax.jit(lambda x: (lift(x), distance(x)))(x)
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

    def factor(x: Array, jet: Jet) -> Array:
        A = problem.measured_matrix(problem.linearise(x, jet, **choices).A)
        return cordes_multiplier(A, system.options.delta)

    gamma = jax.lax.stop_gradient(jax.vmap(factor)(x, frozen)) if system.multiplier else 1.0
    return jnp.sum((gamma * weight * jax.vmap(problem.residual)(x, jet)) ** 2)
