"""Equations with finitely many controls: what one equation for each of them has in common,
whatever is done with their values, a supremum (`HJB`) or a game (`Isaacs`).

Frozen at a state, the equation is the linear one of the control that is chosen there: policy
iteration, which is Newton's method. It is chosen for γ^a (L^a u - f^a) with the Cordès multiplier
γ^a = tr A^a/|A^a|²; both equations have the same solutions, but only the scaled one is a
contraction away from them. The paper takes the unscaled one, which `scaled=False` gives.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.jet import Jet, jet_of
from cordes.problems.boundary_conditions import refuse_free
from cordes.problems.checks import CHECK_POINTS, CHECKED_NUMBERS, warn_about_jumps
from cordes.problems.coefficients import (
    Coefficients,
    at_points,
    at_states,
    check_shape,
    coefficient_functions,
)
from cordes.problems.condition import best_lambda, cordes_multiplier, epsilon_at
from cordes.problems.controls.checked import (
    CHECK_PAIRS,
    MARGIN,
    check_controls,
    check_maximiser,
    checked_controls,
)
from cordes.problems.kinks.initial_kinks import InitialKink, sharpened
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import BLOCK

# Numbers that may be held at once while controls are compared: blocks of controls are made small
# enough.
HELD = 1 << 22
# Controls whose coefficients are searched for jumps.
SEARCHED = 16
# Points and controls of the sample from which λ, ε and parameters of theorems are chosen.
FAMILY_POINTS, FAMILY_CONTROLS = 256, 64


class AbstractControlled(AbstractProblem):
    """An equation made of the linear ones of finitely many controls.

    In a game `controls` are all pairs, one opponent after the other with all controls against it;
    `rivals` is the number of opponents, one where nobody plays against the controls.
    """

    contracting = True
    follows_kinks = True
    outer_options = frozenset({"outer", "outer_steps", "argmax"})
    paper_options: ClassVar = {"warm_up": 0}
    controls: np.ndarray
    # What is done with the values: a supremum, an infimum, or a game.
    sense: str = "sup"
    b: Callable[..., Array]
    c: Callable[..., Array]
    f: Callable[..., Array]

    def _set(self, controls: Any, A: Any, b: Any, c: Any, f: Any) -> None:
        """The equations of `controls`."""
        self.controls = checked_controls(controls)
        functions = (
            coefficient_functions(self.domain.dimension, A, b, c, f, "(x, a)")
            if self.clock is None
            else self.clock.operator(A, b, c, f, "(x, t, a)")
        )
        (self.A, _), (self.b, constant_b), (self.c, constant_c), (self.f, _) = functions
        center = np.asarray(self.domain.center)
        self.has_drift = not constant_b or bool(np.any(self.of_space(self.b(center)) != 0))
        self.has_reaction = not constant_c or bool(self.c(center) != 0)
        refuse_free(self.domain, self.has_reaction)

    def _compile(self) -> None:
        """Functions of many points, once all facts are known."""
        # The equations of controls (N, …) at points (N, d), one pair at a time.
        self.pairs = at_points(self.at)
        self._frozen, self._best = (
            {scaled: at_states(functools.partial(of, scaled=scaled)) for scaled in (True, False)}
            for of in (self.linearise, self.control)
        )
        self._fixed_point = at_states(self._right_side)
        d = self.domain.dimension
        self._block = max(1, min(len(self.controls), HELD // (BLOCK * d * d)))

    @abc.abstractmethod
    def best_index(self, x: Array, jet: Jet, scaled: bool = True) -> Array:
        """The number of the control that is chosen at one point and a state there, for the values
        with the multiplier if `scaled`."""

    def chosen_value(self, values: Any) -> Any:
        """What becomes of the values (K,) of all controls."""
        return self.sign * played(self.sign * values, self.rivals)

    # One point ------------------------------------------------------------------------------------

    def at(self, x: Array, a: Array) -> Coefficients:
        return Coefficients(
            self.A(x, a), self.b(x, a), jnp.asarray(self.c(x, a)), jnp.asarray(self.f(x, a))
        )

    def defect(self, x: Array, jet: Jet, a: Array, scaled: bool = False) -> Array:
        """L^a u - f^a, with the multiplier if `scaled`."""
        equation = self.at(x, a)
        value = equation.defect(jet)
        return value * cordes_multiplier(self.measured_matrix(equation.A)) if scaled else value

    def control(self, x: Array, jet: Jet, scaled: bool = True) -> Array:
        """The best control at one point, by the maximiser if there is one."""
        if self.maximiser is not None:
            return jnp.asarray(self.maximiser(x, jet), float)
        return jnp.asarray(self.controls)[self.best_index(x, jet, scaled)]

    def linearise(self, x: Array, jet: Jet, scaled: bool = True) -> Coefficients:
        """The equation frozen at one point: that of the best control."""
        return self.at(x, self.control(x, jet, scaled))

    def residual(self, x: Array, jet: Jet) -> Array:
        """F[u] = sup_a (L^a u - f^a) at one point, without the multiplier."""
        return self.defect(x, jet, self.control(x, jet, scaled=False))

    # Many points ----------------------------------------------------------------------------------

    def coefficients(
        self,
        points: np.ndarray,
        jet: Jet | None = None,
        scaled: bool = True,
        contracting: bool = False,
    ) -> Coefficients:
        """The equation frozen at points (N, d); without a state, the mean of all controls, which is
        elliptic. `contracting` gives the fixed point Δu - λu = Δu₀ - λu₀ - F_γ[u₀] instead of
        Newton's method: with the Cordès condition it converges from any state, a constant factor a
        step."""
        if jet is None:
            return self._mean(points)
        if not contracting:
            return self._frozen[scaled](points, jet)
        n, d = points.shape
        lambda_ = self.condition[0]
        right = self._fixed_point(points, jet, np.full(n, lambda_))
        identity, drift = np.eye(d), np.zeros(d)
        if self.clock is not None:
            identity[-1, -1], drift[-1] = 0.0, -1 / self.rate
        tiled = np.tile(identity, (n, 1, 1)), np.tile(drift, (n, 1))
        return Coefficients(*tiled, np.full(n, lambda_), right)

    @functools.cached_property
    def condition(self) -> tuple[float, float]:
        """λ and the Cordès ε over all controls at sampled points."""
        family = self.family(self.domain.interior_points(FAMILY_POINTS, seed=17))
        A, b, c, _ = self.measured(family)
        lambda_ = best_lambda(A, b, c) if self.measures_lower_order else None
        return lambda_ or 0.0, float(np.min(epsilon_at(A, b, c, lambda_)))

    def contraction(self) -> float:
        """The factor of the contracting fixed point, seen at sampled points; one or more where the
        Cordès condition fails."""
        epsilon = self.condition[1]
        return float(np.sqrt(1 - epsilon)) if epsilon > 0 else 1.0

    def family(self, points: np.ndarray) -> Coefficients:
        """The equations of (a sample of) all controls at points, one after the other."""
        chosen = self.sampled_controls(FAMILY_CONTROLS)
        return self.pairs(np.tile(points, (len(chosen), 1)), np.repeat(chosen, len(points), axis=0))

    def _right_side(self, x: Array, jet: Jet, lambda_: Array) -> Array:
        """Δu - λu - F_γ[u], with the multiplier that belongs to λ inside the supremum."""
        over = jnp.where(lambda_ > 0, 1 / jnp.where(lambda_ > 0, lambda_, 1.0), 0.0)

        def scaled(a: Array) -> Array:
            A, b, c, _ = self.measured(self.at(x, a))
            whole = jnp.sum(A**2) + jnp.sum(b**2) * over / 2 + (c * over) ** 2
            gamma = (jnp.trace(A) + c * over) / whole
            return gamma * self.defect(x, jet, a)

        values = jax.lax.map(scaled, jnp.asarray(self.controls), batch_size=self._block)
        best = self.chosen_value(values)
        second = jnp.trace(self.of_space(jet.hessian)) - lambda_ * jet.value - best
        return second if self.clock is None else second - jet.gradient[-1] / self.rate

    def policy(self, points: np.ndarray, jet: Jet, scaled: bool = True) -> np.ndarray:
        return self._best[scaled](points, jet)

    def margin(self, points: np.ndarray, jet: Jet) -> np.ndarray:
        chosen = self.sampled_controls(SEARCHED)
        found = []
        for a in chosen:
            local = self.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
            found.append(Coefficients(*map(np.asarray, local)).defect(jet))
        return np.max(found, axis=0) - np.min(found, axis=0)

    def _mean(self, points: np.ndarray) -> Coefficients:
        """Each control's equation scaled by its multiplier, averaged over at most SEARCHED of
        them."""
        chosen = self.sampled_controls(SEARCHED)

        def share(a: np.ndarray) -> Coefficients:
            local = self.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
            scale = cordes_multiplier(self.measured_matrix(local.A)) / len(chosen)
            return jax.tree.map(lambda entry: (entry.T * scale).T, local)

        return functools.reduce(
            lambda one, two: jax.tree.map(np.add, one, two), (share(a) for a in chosen)
        )

    def sampled_controls(self, count: int) -> np.ndarray:
        """At most `count` of the controls, spread over the array."""
        spread = np.linspace(0, len(self.controls) - 1, count)
        return self.controls[np.unique(spread.round().astype(int))]

    def smoothing(self, kink: InitialKink) -> Callable[[Array], Array]:
        start = self.values.start
        if kink.normal is None or not kink.active:
            a = self.controls[0]
        else:
            places = np.column_stack([kink.places, np.full(len(kink.places), start)])
            count = len(self.controls)
            pairs = np.repeat(places, count, axis=0), np.tile(self.controls.T, len(places)).T
            A = self.of_space(np.asarray(self.pairs(*pairs).A))
            a = self.controls[sharpened(kink, A.reshape(-1, count, *A.shape[1:]), self.sign)]
        return lambda x: self.of_space(self.A(jnp.append(x, start), jnp.asarray(a)))

    def matrix_at_start(self, face: Any) -> Callable[[Array], Array]:
        """That of the control which is best for the initial values in the middle of the face."""
        start, initial = self.values.start, self.values.initial
        x = jnp.asarray(np.mean(face.points, axis=0))
        value, gradient, hessian = jet_of(lambda y: jnp.asarray(initial(y), float) + 0 * y[0])(x)
        whole = jnp.zeros((len(x) + 1,) * 2).at[:-1, :-1].set(hessian)
        a = self.control(jnp.append(x, start), Jet(value, jnp.append(gradient, 0.0), whole))
        return lambda x: self.of_space(self.A(jnp.append(x, start), a))

    # Checks ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        d, m = self.domain.dimension, len(self.controls)
        count = np.clip(min(CHECK_PAIRS, CHECKED_NUMBERS // d**2) // m, 16, CHECK_POINTS)
        points = self.domain.interior_points(int(count), seed=11)
        x, a = jnp.asarray(points[0]), jnp.asarray(self.controls[0])
        for name, shape in (("A", (d, d)), ("b", (d,)), ("c", ()), ("f", ())):
            check_shape(name, getattr(self, name), shape, x, a)
        check_controls(self, points)
        if self.clock is not None:
            self._set_rate()
        check_maximiser(self, points[:200])
        if self.clock is None:
            self._check_place()
            self._find_interfaces()
        warn_about_jumps(self.data(), self.domain, self.interfaces)

    def data(self, controls: np.ndarray | None = None) -> dict[str, Callable[[Array], Array]]:
        """Everything the user gave about the interior, as functions of one point, for given
        controls at once, or for a sample of them."""
        chosen = jnp.asarray(self.sampled_controls(SEARCHED) if controls is None else controls)
        functions = {"A": self.A, "b": self.b, "c": self.c, "f": self.f}
        return {
            name: lambda x, function=function: jax.vmap(lambda a: function(x, a))(chosen)
            for name, function in functions.items()
        }

    def outside(self, control: np.ndarray) -> np.ndarray:
        """Which of the controls (N, …) lie outside of the box of the sampled ones."""
        lower, upper = np.min(self.controls, axis=0), np.max(self.controls, axis=0)
        slack = MARGIN * np.maximum(upper - lower, np.abs(lower) + np.abs(upper))
        beyond = (control < lower - slack) | (control > upper + slack)
        return np.any(beyond.reshape(len(control), -1), axis=1)


def played(values: Any, rivals: int) -> Any:
    """inf over opponents of sup over controls, of values (…, K) for all pairs, one opponent after
    the other; with one opponent the supremum."""
    shape = *values.shape[:-1], rivals, values.shape[-1] // rivals
    return values.reshape(shape).max(axis=-1).min(axis=-1)


def played_index(values: Array, rivals: int) -> Array:
    """The number of the pair that attains it, for values (K,): the first of them."""
    table = values.reshape(rivals, -1)
    opponent = jnp.argmin(jnp.max(table, axis=1))
    return opponent * table.shape[1] + jnp.argmax(table[opponent])
