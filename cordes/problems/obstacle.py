"""Optimal stopping: an equation that holds where its solution lies above an obstacle, max(F[u], ψ -
u) = 0, and with an obstacle above too min(max(F[u], ψ - u), Ψ - u) = 0.

Stopping is one more control, whose equation is u = ψ. Frozen at a state, the equation of each point
is that of the base problem or u = ψ, whichever is the larger there: policy iteration with the set
on which stopping is best.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from cordes.domains.walls import walled_part
from cordes.errors import CoefficientError, shown
from cordes.jet import Jet
from cordes.problems.checks import CHECK_POINTS, check_domain
from cordes.problems.coefficients import (
    Coefficients,
    as_function,
    at_states,
    check_finite,
    check_shape,
    sample,
)
from cordes.problems.condition import cordes_multiplier
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.linear import Linear
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

# How much a unit of u - ψ counts beside the scaled equation, in units of the time that diffusion
# takes across the domain.
WEIGHT = 100.0
# By how much g may lie below ψ, relative to their size.
MISSES = 1e-9


class Obstacle(AbstractProblem):
    """max(F[u], ψ - u) = 0 with the lower obstacle ψ = `below`, for `problem` a `Linear`,
    `Parabolic`, `HJB` or `Isaacs` problem, whose F[u] = 0 is the equation without stopping; `above`
    is an upper obstacle. At least one of the two: a constant, or a function of x (of (x, t), or of
    x alone, over a problem in time).

    Checked when made, at sampled points: shapes, traceability, NaN, that g and the initial values
    respect the obstacles, and that these respect each other. Assumed: they are continuous.
    """

    follows_kinks = True
    tolerance_norm = "Linf"
    bending = 2
    outer_options = frozenset({"outer_steps"})
    # The obstacles as functions of one point of the domain.
    lower: Callable[[Array], Array] | None
    upper: Callable[[Array], Array] | None
    base_problem: Linear | Parabolic | AbstractControlled

    def __init__(
        self,
        problem: Linear | Parabolic | AbstractControlled,
        below: Any = None,
        above: Any = None,
        *,
        name: str | None = None,
    ):
        if not isinstance(problem, (Linear, Parabolic, AbstractControlled)):
            raise CoefficientError(
                f"problem = {shown(problem)}: the equation without stopping is a Linear, "
                "Parabolic, HJB or Isaacs problem."
            )
        check_domain(problem.domain)
        if below is None and above is None:
            raise CoefficientError("below and above: neither is given. Pass at least one obstacle.")
        if walled_part(problem.domain) is not None:
            raise CoefficientError(
                "problem has boundary conditions other than given values: stopping is bounded by "
                "comparison with barriers that vanish on the boundary. Give u there, with g."
            )
        self.base_problem = problem
        for fact in SHARED:
            setattr(self, fact, getattr(problem, fact))
        self.name = name or f"{problem.name}-obstacle"
        self.lower = None if below is None else self._obstacle("below", below)
        self.upper = None if above is None else self._obstacle("above", above)
        lower, upper = self.space.bounding_box
        self.weight = WEIGHT / float(np.min(upper - lower)) ** 2
        self._frozen = {
            scaled: at_states(lambda x, jet, scaled=scaled: self.linearise(x, jet, scaled))
            for scaled in (True, False)
        }
        self._margin = at_states(self._choices)
        self._check()

    # What is made of a user's function ----------------------------------------------------------

    def _obstacle(self, name: str, given: Any) -> Callable[[Array], Array]:
        clock = self.clock
        center = jnp.asarray(self.domain.center)
        if clock is None:
            function, constant = as_function(name, given, ())
            if not constant:
                check_shape(name, function, (), center)
            return function
        function, constant = as_function(name, given, (), "x or (x, t)")
        if constant:
            return function
        if arguments(given) == 1:
            check_shape(name, function, (), center[:-1])
            return lambda z: function(z[:-1])
        turned = clock.turned(function)
        check_shape(name, turned, (), center)
        return turned

    def _check(self) -> None:
        points = self.domain.interior_points(CHECK_POINTS, seed=11)
        boundary, _ = self.domain.boundary_points(CHECK_POINTS, seed=13)
        g = np.asarray(jax.jit(jax.vmap(self.g))(jnp.asarray(boundary)), float)
        for name, obstacle, sign in (("below", self.lower, 1.0), ("above", self.upper, -1.0)):
            if obstacle is None:
                continue
            check_finite(name, sample(obstacle, points), points)
            values = sample(obstacle, boundary)
            gap = sign * (values - g)
            worst = int(np.argmax(gap))
            if gap[worst] > MISSES * max(float(np.max(np.abs(values))), float(np.max(np.abs(g)))):
                side = "below" if sign > 0 else "above"
                raise CoefficientError(
                    f"The given values lie {side} the obstacle `{name}`: at "
                    f"{show(boundary[worst])} of the boundary they are {g[worst]:.6g} and the "
                    f"obstacle is {values[worst]:.6g}. No solution has such values: change one of "
                    "the two."
                )
        if self.lower is not None and self.upper is not None:
            below, above = sample(self.lower, points), sample(self.upper, points)
            worst = int(np.argmax(below - above))
            if below[worst] > above[worst]:
                raise CoefficientError(
                    f"The obstacle `below` is {below[worst]:.6g} at {show(points[worst])}, above "
                    f"the obstacle `above`, which is {above[worst]:.6g} there."
                )

    # One point ----------------------------------------------------------------------------------

    def _choices(self, x: Array, jet: Jet) -> tuple[Array, Array, Array]:
        """What the equation, the lower and the upper obstacle say, in one unit."""
        equation = self.base_problem.linearise(x, jet)
        gamma = cordes_multiplier(self.base_problem.measured_matrix(equation.A))
        go_on = gamma * equation.defect(jet)
        below = -jnp.inf if self.lower is None else self.weight * (self.lower(x) - jet.value)
        above = jnp.inf if self.upper is None else self.weight * (self.upper(x) - jet.value)
        return go_on, jnp.asarray(below), jnp.asarray(above)

    def linearise(self, x: Array, jet: Jet, scaled: bool = True) -> Coefficients:
        base = self.base_problem
        equation = base.linearise(x, jet)
        if isinstance(base, AbstractControlled):
            equation = base.linearise(x, jet, scaled)
        go_on, below, above = self._choices(x, jet)
        stop, cap = below > go_on, above < jnp.maximum(go_on, below)
        there = jnp.zeros(())
        if self.lower is not None:
            there = self.lower(x)
        if self.upper is not None:
            there = jnp.where(cap, self.upper(x), there)
        stopped = stop | cap
        # What the multiplier makes of an equation without derivatives.
        weight = self.weight / cordes_multiplier(self.measured_matrix(jnp.zeros_like(equation.A)))
        values = (0.0 * equation.A, 0.0 * equation.b, weight, -weight * there)
        return Coefficients(
            *(jnp.where(stopped, new, old) for new, old in zip(values, equation, strict=True))
        )

    def measured_matrix(self, A: Any) -> Any:
        """That of the base problem; where there are no derivatives the identity has its place."""
        if self.clock is not None:
            return super().measured_matrix(A)
        nothing = (abs(A).sum(axis=(-2, -1), keepdims=True) == 0).astype(float)
        return A + nothing * np.eye(A.shape[-1])

    def residual(self, x: Array, jet: Jet) -> Array:
        """max(F[u], ψ - u) at one point, without the multiplier."""
        value = self.base_problem.residual(x, jet)
        if self.lower is not None:
            value = jnp.maximum(value, self.lower(x) - jet.value)
        return value if self.upper is None else jnp.minimum(value, self.upper(x) - jet.value)

    # Many points --------------------------------------------------------------------------------

    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, scaled: bool = True, **choices: Any
    ) -> Coefficients:
        """Without a state, the equation without stopping."""
        if jet is None:
            return self.base_problem.coefficients(points)
        return self._frozen[scaled](points, jet)

    def family(self, points: np.ndarray) -> Coefficients:
        return self.base_problem.family(points)

    def data(self) -> dict[str, Callable[[Array], Array]]:
        return self.base_problem.data()

    def policy(self, points: np.ndarray, jet: Jet, scaled: bool = True) -> np.ndarray | None:
        return self.base_problem.policy(points, jet, scaled)

    def stops(self, points: np.ndarray, jet: Jet) -> np.ndarray:
        """Where stopping is best, at either obstacle."""
        go_on, below, above = self._margin(points, jet)
        return (below > go_on) | (above < np.maximum(go_on, below))

    def margin(self, points: np.ndarray, jet: Jet) -> np.ndarray:
        go_on, below, above = (np.asarray(part) for part in self._margin(points, jet))
        nearest = np.minimum(np.abs(go_on - below), np.abs(above - go_on))
        return np.where(np.isfinite(nearest), nearest, 0.0)

    def smoothing(self, kink: Any) -> Callable[[Array], Array]:
        return self.base_problem.smoothing(kink)

    def matrix_at_start(self, face: Any) -> Callable[[Array], Array]:
        return self.base_problem.matrix_at_start(face)

    def answered(self, points: Any, values: Any) -> Any:
        """max(w, ψ), and no more than Ψ."""
        module = jnp if isinstance(values, Tracer) else np
        if self.lower is not None:
            values = module.maximum(values, jax.vmap(self.lower)(points))
        if self.upper is not None:
            values = module.minimum(values, jax.vmap(self.upper)(points))
        return values


# Facts of the base problem that stay as they are.
SHARED = (
    "domain",
    "clock",
    "start",
    "rate",
    "g",
    "zero_g",
    "interfaces",
    "boundary_shape",
    "exact",
    "A",
    "has_drift",
    "has_reaction",
    "constant_A",
    "constant_coefficients",
    "controls",
    "maximiser",
    "rivals",
    "split",
    "sign",
)


def arguments(function: Any) -> int:
    """How many arguments a function takes without defaults."""
    code = getattr(function, "__code__", None)
    if code is None:
        return 2
    return code.co_argcount - len(function.__defaults__ or ())
