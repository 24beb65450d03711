"""Gauss–Newton in many dimensions: fresh points in every step, the dual form, momentum, and damping
that is chosen on points of its own.

With N points and P ≫ N parameters a step is δ = ζ - Jᵀ(JJᵀ + μI)⁻¹(r + Jζ), where ζ is the last
step shrunk by `momentum` (SPRING: Goldshlager, Abrahamsen, Lin 2024; for equations Guzmán-Cordero
et al. 2025). A step fits its own N points as well as one likes, whatever it does elsewhere: so μ
and the length are those that are best on other fresh points. Everything happens in one compiled
function, the drawing of points included.

A Hamilton–Jacobi–Bellman equation with finitely many controls needs no outer loop here: the control
that is best at the current state is frozen in each step, which is policy iteration with one
Gauss–Newton step for each policy.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.networks.directional import (
    Directional,
    Factored,
    directional_features,
    directional_rows,
    expression,
    hidden_columns,
)
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.errors import OptionError
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.problems.condition import cordes_multiplier
from cordes.problems.controls.controlled import played, played_index
from cordes.runtime import distribution
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.sampling import device_sampler
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Patience

# Dampings relative to the last one, and lengths of the step, that are tried in each step.
PROBES, LENGTHS = (1.0,), (1.0, 0.5, 0.2, 0.1, 0.05)
# The first damping, relative to the mean of the squared rows. In 5 and 10 dimensions the smaller
# one is four times faster, in 100 the larger one twice.
FEW, FEW_DAMPING, MANY_DAMPING, LIMITS = 20, 4e-6, 4e-4, (1e-13, 1e2)
# A step that makes the loss this much larger is refused.
REFUSED = 1.5
# The damping grows by this factor after a refused step and comes back by the other one after each
# that is taken.
CAUTIOUS, RELAXED = 10.0, 1.5
# The last layer is solved for after this many steps, and again whenever their number has grown by
# the factor: fresh points leave noise in the weights of which that takes a factor of three to five
# away, for as much time as ten steps.
POLISH, GROWTH = 20, 1.25
# A first chunk, and a first solve for the last layer, take about so many times as long as a first
# look at the residual: nearly all of it is compilation.
FIRST, FIRST_POLISH = 15.0, 3.0
# Matrices that the compiled step holds at each point: in 1000 dimensions 49 GB of 1024 points.
MATRICES = 6
# When a run without a time limit gives up.
PATIENCE = Patience(0.99, 120, 0.4)
# Points that judge.
FRESH = 1024
# Numbers in one matrix at each point of a step, and how few points there may be.
NUMBERS, FEWEST = 12_000_000, 256


def fewer(count: int, dimension: int) -> int:
    """So many points, or less in more than a hundred dimensions; where too few would be left, the
    memory there is decides."""
    most = NUMBERS // dimension**2
    return min(count, most) if most >= FEWEST else count


class PointEquation:
    """A problem, linear or with finitely many controls, as rows of a network at points on the
    device."""

    def __init__(self, system: AbstractSystem):
        self.problem = problem = system.problem
        self.ansatz, self.multiplier = system.ansatz, system.multiplier
        self.delta = system.options.delta
        self.controls = None if problem.controls is None else jnp.asarray(problem.controls)
        self.sign = problem.sign
        self._sampler = device_sampler(problem.domain)

    @property
    def on_device(self) -> bool:
        return self._sampler is not None

    def draw(self, source: Array, count: int) -> tuple[Array, Array]:
        """Points and weights, from a key, or the points themselves where the host makes them.
        Inside a compiled function all devices share what is done with them; every one draws the
        same."""
        return (source, jnp.ones(count)) if self._sampler is None else self._sampler(source, count)

    def sources(self, seed: int, chunk: int, steps: int, count: int) -> Array:
        """What `draw` takes, for each of several steps."""
        if self._sampler is not None:
            return jax.random.split(jax.random.fold_in(jax.random.key(seed), chunk), steps)
        points = self.problem.domain.interior_points(steps * count, seed + 7919 * (chunk + 1))
        return jnp.asarray(points.reshape(steps, count, -1))

    def scale(self, A: Array) -> Array:
        """The Cordès multiplier, or one."""
        if not self.multiplier:
            return jnp.ones(())
        return cordes_multiplier(self.problem.measured_matrix(A), self.delta)

    def _expression(self, x: Array, weight: Array, *control: Array) -> tuple[Directional, Array]:
        """The row of one point, for a control if there are any."""
        problem = self.problem
        A, b, c, f = problem.at(x, *control)
        factor = weight * self.scale(A)
        parts = None
        if isinstance(problem.A, DiagonalPlusRank):
            diagonal, columns = problem.A.parts(x, *control)
            parts = Factored(factor * diagonal, jnp.sqrt(factor) * columns)
        return expression(self.ansatz, x, factor * A, factor * b, factor * c, factor * f, parts)

    def _defects(self, network: AbstractNetwork, x: Array, weight: Array) -> Array:
        """The rows of all controls at one point."""

        def one(a: Array) -> Array:
            columns, target = self._expression(x, weight, a)
            return hidden_columns(network, columns) @ network.coefficients - target

        assert self.controls is not None
        return jax.vmap(one)(self.controls)

    def freeze(
        self, network: AbstractNetwork, x: Array, weight: Array
    ) -> tuple[Directional, Array]:
        """Linear rows at points (N, d): those of the best control at the state `network`."""

        def one(x: Array, weight: Array) -> tuple[Directional, Array]:
            if self.controls is None:
                return self._expression(x, weight)
            values = self.sign * self._defects(network, x, weight)
            best = played_index(values, self.problem.rivals)
            return self._expression(x, weight, self.controls[best])

        return jax.vmap(one)(*distribution.spread((x, weight)))

    def measure(self, x: Array, weight: Array) -> Callable[[AbstractNetwork], Array]:
        """The root mean square of the residual at points, as a function of the network: what does
        not depend on it is done once."""
        if self.controls is None:
            columns, target = self.freeze(None, x, weight)  # pyright: ignore[reportArgumentType]
            rows = lambda network: directional_rows(network, columns) - target  # noqa: E731
        else:
            shared = distribution.spread((x, weight))
            rows = lambda network: jax.vmap(  # noqa: E731
                lambda x, w: played(self.sign * self._defects(network, x, w), self.problem.rivals)
            )(*shared)

        def loss(network: AbstractNetwork) -> Array:
            value = jnp.sqrt(jnp.mean(rows(network) ** 2))
            return jnp.where(jnp.isfinite(value), value, jnp.inf)

        return loss


@functools.lru_cache(maxsize=8)
def equation_of(system: AbstractSystem) -> PointEquation:
    """One for each system, so that what is compiled for it is compiled once."""
    return PointEquation(system)


class DualCarry(NamedTuple):
    """Parameters, the last step, the residual at the start, by which the damping is scaled, and a
    factor that refused steps make larger."""

    parameters: PyTree
    step: PyTree
    first: Array
    caution: Array

    @classmethod
    def of(cls, network: AbstractNetwork, scale: float) -> "DualCarry":
        """That of the first step."""
        still = jax.tree.map(jnp.zeros_like, network.parameters)
        return cls(network.parameters, still, jnp.asarray(scale), jnp.ones(()))


class DualPlan(NamedTuple):
    """What a compiled step depends on."""

    points: int
    trial: int
    momentum: float
    damping: float


def _add(one: PyTree, two: PyTree, factor: Array | float = 1.0) -> PyTree:
    return jax.tree.map(lambda a, b: a + factor * b, one, two)


def _times(J: PyTree, vector: PyTree) -> Array:
    """J·vector for a tree of Jacobians (N, …)."""
    parts = jax.tree.map(lambda block, v: block.reshape(len(block), -1) @ v.reshape(-1), J, vector)
    return sum(jax.tree.leaves(parts))  # pyright: ignore[reportReturnType]


def _transposed(J: PyTree, y: Array) -> PyTree:
    return jax.tree.map(
        lambda block: (y @ block.reshape(len(block), -1)).reshape(block.shape[1:]), J
    )


def _gram(J: PyTree) -> Array:
    return sum(
        block.reshape(len(block), -1) @ block.reshape(len(block), -1).T
        for block in jax.tree.leaves(J)
    )  # pyright: ignore[reportReturnType]


def dual_step(
    carry: DualCarry,
    source: Array,
    equation: PointEquation,
    template: AbstractNetwork,
    plan: DualPlan,
) -> tuple[DualCarry, Array]:
    """One step on fresh points; returns the residual after it on others."""
    x, weight = equation.draw(source, plan.points + plan.trial)
    n = plan.points
    network = template.with_parameters(carry.parameters)
    columns, target = equation.freeze(network, x[:n], weight[:n])

    def row(parameters: PyTree, column: Directional) -> Array:
        state = template.with_parameters(parameters)
        return hidden_columns(state, column) @ state.coefficients

    values, J = jax.vmap(jax.value_and_grad(row), (None, 0))(carry.parameters, columns)
    loss = equation.measure(x[n:], weight[n:])
    before = jnp.sqrt(jnp.mean((values - target) ** 2))
    kept = jax.tree.map(lambda part: plan.momentum * part, carry.step)
    right = values - target + _times(J, kept)
    gram = _gram(J)
    scale = jnp.trace(gram) / n
    dampings = jnp.clip(
        carry.caution * plan.damping * jnp.minimum(1.0, before / carry.first) * jnp.asarray(PROBES),
        *LIMITS,
    )

    def attempt(damping: Array) -> tuple[PyTree, Array, Array]:
        factor = jax.scipy.linalg.cho_factor(gram + damping * scale * jnp.eye(n))
        full = _add(kept, _transposed(J, jax.scipy.linalg.cho_solve(factor, right)), -1.0)
        lengths = jnp.asarray(LENGTHS)
        losses = jax.lax.map(
            lambda length: loss(template.with_parameters(_add(carry.parameters, full, length))),
            lengths,
        )
        best = jnp.argmin(losses)
        return full, lengths[best], losses[best]

    steps, lengths, losses = jax.lax.map(attempt, dampings)
    best = jnp.argmin(losses)
    accepted = losses[best] < REFUSED * loss(network)
    step = jax.tree.map(lambda part: jnp.where(accepted, part[best], 0.0), steps)
    # Remembered as it was, a step of which only a part was taken misleads the next ones; shortened
    # as much, it is soon forgotten.
    kept = jax.tree.map(lambda part: jnp.sqrt(lengths[best]) * part, step)
    relaxed = jnp.maximum(carry.caution / RELAXED, 1.0)
    caution = jnp.where(accepted, relaxed, CAUTIOUS * carry.caution)
    parameters = _add(carry.parameters, step, lengths[best])
    return DualCarry(parameters, kept, carry.first, caution), losses[best]


@functools.partial(jax.jit, static_argnames=("equation", "plan"))
def advance(
    carry: DualCarry,
    sources: Array,
    template: AbstractNetwork,
    equation: PointEquation,
    plan: DualPlan,
) -> tuple[DualCarry, Array]:
    return jax.lax.scan(
        lambda c, source: dual_step(c, source, equation, template, plan), carry, sources
    )


@functools.partial(jax.jit, static_argnames=("equation", "count"))
def judge(network: AbstractNetwork, source: Array, equation: PointEquation, count: int) -> Array:
    """The root mean square of the residual at fresh points."""
    return equation.measure(*equation.draw(source, count))(network)


@functools.partial(jax.jit, static_argnames=("equation", "count"))
def _last_layer(
    network: AbstractNetwork, source: Array, equation: PointEquation, count: int
) -> tuple[Array, Array]:
    """The least-squares matrix and the target of the last layer."""
    columns, target = equation.freeze(network, *equation.draw(source, count))
    return distribution.everywhere((directional_features(network, columns), target))


def solve_last_layer(
    network: AbstractNetwork, equation: PointEquation, seed: int, count: int, blocks: int = 4
) -> AbstractNetwork:
    """The best coefficients for the hidden weights as they are."""
    parts = [
        _last_layer(network, source, equation, count)
        for source in equation.sources(seed, 1_000_003, blocks, count)
    ]
    matrix, target = (np.concatenate([np.asarray(part[k]) for part in parts]) for k in range(2))
    solution = distribution.agreed(solve_rank_revealing(matrix, target, 1e-12))
    return network.with_coefficients(jnp.asarray(solution))


def check_problem(system: AbstractSystem) -> None:
    """What the solver cannot do is said before it starts."""
    problem = system.problem
    if not problem.linear and (problem.controls is None or problem.maximiser is not None):
        raise OptionError(
            f"{problem.name}: Gauss–Newton without an outer loop is for linear problems and "
            "for HJB and Isaacs problems with a finite set of controls."
        )
    if system.columns:
        raise OptionError(
            f"{problem.name}: singular functions belong to two dimensions: pass singular=False."
        )
