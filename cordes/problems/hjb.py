"""Hamilton–Jacobi–Bellman equations, sup_a (L^a u - f^a) = 0 with L^a u = A^a:D²u + b^a·∇u - c^a u,
or the same with inf.

Frozen at a state, the equation is the linear one of the control that is best there: policy
iteration, which is Newton's method for the supremum. The best control is that of γ^a (L^a u - f^a)
with the Cordès multiplier γ^a = tr A^a/|A^a|²; both equations have the same solutions, but only the
scaled one is a contraction away from them. The paper takes the unscaled one, which `scaled=False`
gives.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError, OptionError
from cordes.jet import Jet, jet_of
from cordes.problems.checks import CHECK_POINTS, CHECKED_NUMBERS, warn_about_jumps
from cordes.problems.coefficients import (
    at_points,
    check_elliptic,
    check_finite,
    check_shape,
    coefficient_functions,
)
from cordes.problems.condition import best_lambda, cordes_multiplier, epsilon_at
from cordes.problems.conditions import refuse_free
from cordes.problems.evolution import refuse_times
from cordes.problems.kinks.initial_kinks import InitialKink, sharpened
from cordes.problems.problem import AbstractProblem, Coefficients, at_states
from cordes.runtime.blocks import BLOCK
from cordes.runtime.plain import show

# Numbers that may be held at once while controls are compared: blocks of controls are made small
# enough.
HELD = 1 << 22
# Controls whose coefficients are searched for jumps.
SEARCHED = 16
# How far a maximiser may go beyond the box of the sampled controls, as a share of its width: no
# more than rounding. The sizes of the states it is tried with.
MARGIN, PROBED_SIZES = 1e-9, 10.0 ** np.arange(-3, 7)
# Controls that are written out.
FEW = 8
# Pairs of points and controls that are looked at.
CHECK_PAIRS = 400_000
# Points and controls of the sample from which λ, ε and parameters of theorems are chosen.
FAMILY_POINTS, FAMILY_CONTROLS = 256, 64


class HJB(AbstractProblem):
    """sup_a (A(x, a):D²u + b(x, a)·∇u - c(x, a)u - f(x, a)) = 0 in `domain`, u = g on its boundary;
    `sense="inf"` takes the infimum.

    `controls` has shape (m, …): its leading axis runs over the (discretised) control set.
    Coefficients are functions of (x, a) written with jax.numpy, `a` of shape controls.shape[1:], or
    constants. `maximiser(x, jet)` gives the control that is best for L^a u - f^a (without the
    multiplier) in closed form, where the control set is a continuum and `controls` a sample of it;
    jet has value, gradient and hessian.

    With a `horizon` the equation is u_t = sup_a (L^a u - f^a) for 0 < t < horizon with `initial`
    values, or u_t + sup_a (L^a u - f^a) = 0 with `terminal` ones: coefficients are functions of (x,
    t, a), g, interfaces and exact of (x, t), the maximiser of (x, t, jet).

    Checked when made, at sampled points for every control: shapes, traceability, NaN, symmetry and
    ellipticity of A; that no sampled control beats the maximiser, and that its controls lie in the
    box of the sampled ones, which must contain the ends of the set. Jumps are looked for with at
    most 16 of the controls. Assumed: as for `Linear`, uniformly in the controls; the maximiser
    gives controls of the set.
    """

    contracting = True
    follows_kinks = True
    outer_options = frozenset({"outer", "outer_steps", "argmax"})
    paper_options: ClassVar = {"warm_up": 0}
    controls: np.ndarray
    b: Callable[..., Array]
    c: Callable[..., Array]
    f: Callable[..., Array]

    def __init__(
        self,
        domain: AbstractDomain,
        controls: Any,
        A: Any,
        f: Any,
        b: Any = None,
        c: Any = None,
        g: Any = 0.0,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        sense: str = "sup",
        maximiser: Callable[[Array, Jet], Array] | None = None,
        exact: Callable[..., Array] | None = None,
        horizon: float | None = None,
        initial: Any = None,
        terminal: Any = None,
        boundary: Any = None,
        *,
        name: str | None = None,
    ):
        place = interfaces, exact, name or "hjb"
        if horizon is None:
            refuse_times(initial, terminal)
            self._place(domain, g, *place, boundary)
        else:
            self._place_in_time(domain, horizon, (g, initial, terminal), *place, boundary)
        if sense in ("max", "min"):
            sense = "sup" if sense == "max" else "inf"
        if sense not in ("sup", "inf"):
            raise OptionError(f"sense = {sense!r}: 'sup' or 'inf'.")
        self.sense, self.sign = sense, 1.0 if sense == "sup" else -1.0
        self.controls = checked_controls(controls)
        given = (
            coefficient_functions(domain.dimension, A, b, c, f, "(x, a)")
            if self.clock is None
            else self.clock.operator(A, b, c, f, "(x, t, a)")
        )
        (self.A, _), (self.b, constant_b), (self.c, constant_c), (self.f, _) = given
        center = np.asarray(self.domain.center)
        self.has_drift = not constant_b or bool(np.any(self.of_space(self.b(center)) != 0))
        self.has_reaction = not constant_c or bool(self.c(center) != 0)
        refuse_free(self.domain, self.has_reaction)
        if maximiser is not None and not callable(maximiser):
            raise CoefficientError(
                f"maximiser is {maximiser!r}: it must be a function of (x, jet) that returns a "
                "control."
            )
        self.maximiser = maximiser
        if maximiser is not None and self.clock is not None:
            self.maximiser = self.clock.turned_maximiser(maximiser)
        # The equations of controls (N, …) at points (N, d), one pair at a time.
        self.pairs = at_points(self.at)
        self._frozen, self._best = (
            {scaled: at_states(functools.partial(of, scaled=scaled)) for scaled in (True, False)}
            for of in (self.linearise, self.control)
        )
        self._fixed_point = at_states(self._right_side)
        d = self.domain.dimension
        self._block = max(1, min(len(self.controls), HELD // (BLOCK * d * d)))
        self._check()

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

    def best_index(self, x: Array, jet: Jet, scaled: bool = True) -> Array:
        """The number of the best control of the sampled ones; they are compared in blocks, so that
        memory does not grow with their number."""
        count, size = len(self.controls), self._block
        blocks = -(-count // size)
        order = np.minimum(np.arange(blocks * size), count - 1).reshape(blocks, size)

        def compare(best: tuple[Array, Array], block: Array) -> tuple[tuple[Array, Array], None]:
            controls = jnp.asarray(self.controls)[block]
            values = self.sign * jax.vmap(lambda a: self.defect(x, jet, a, scaled))(controls)
            k = jnp.argmax(values)
            # A NaN wins, so that it is seen and not hidden by the other controls.
            better = ~(values[k] <= best[0]) & ~jnp.isnan(best[0])
            found = (values[k], block[k])
            return jax.tree.map(functools.partial(jnp.where, better), found, best), None

        start = (jnp.asarray(-jnp.inf), jnp.asarray(0))
        return jax.lax.scan(compare, start, jnp.asarray(order))[0][1]

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
        best = self.sign * jnp.max(self.sign * values)
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

    def __repr__(self) -> str:
        # So that (0, 1) is seen to be two controls, and no interval.
        few = self.controls.ndim == 1 and len(self.controls) <= FEW
        values = ": " + ", ".join(f"{a:.6g}" for a in self.controls) if few else ""
        return f"HJB({self.name!r}, {self.domain!r}, {len(self.controls)} controls{values})"


def checked_controls(controls: Any) -> np.ndarray:
    try:
        array = np.asarray(controls, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CoefficientError(
            f"controls is ragged or holds something that is no number ({error}): all controls "
            "must have the same shape. Number those that have names: controls=range(3), and a "
            "table of their numbers indexed with a.astype(int)."
        ) from error
    if array.ndim == 0:
        raise CoefficientError(
            f"controls = {controls!r}: pass an array of shape (m, …) whose leading axis runs "
            "over the controls."
        )
    if array.size == 0:
        raise CoefficientError(
            f"controls is empty (shape {array.shape}): at least one control is needed."
        )
    bad = np.flatnonzero(~np.all(np.isfinite(array.reshape(len(array), -1)), axis=1))
    if len(bad):
        raise CoefficientError(f"control {bad[0]} is not finite: a = {show(array[bad[0]])}.")
    return array


def check_controls(problem: HJB, points: np.ndarray) -> None:
    """Finite and elliptic for each control; the first one that is not is named."""
    n, several = len(points), max(1, CHECK_PAIRS // (4 * len(points)))
    for first in range(0, len(problem.controls), several):
        chosen = problem.controls[first : first + several]
        local = problem.pairs(np.tile(points, (len(chosen), 1)), np.repeat(chosen, n, axis=0))
        parts = [np.asarray(part).reshape(len(chosen), n, *np.shape(part)[1:]) for part in local]
        for k, a in enumerate(chosen):
            which = f"control {first + k}, a = {show(a)}"
            for name, values in zip(("A", "b", "c", "f"), parts, strict=True):
                check_finite(name, values[k], points, which=which)
            check_elliptic("A", problem.of_space(parts[0][k]), points, which=which)


def check_maximiser(problem: HJB, points: np.ndarray) -> None:
    """For random states no sampled control may be better than the one that the maximiser
    gives."""
    maximiser = problem.maximiser
    if maximiser is None:
        return
    n, d = points.shape
    generator = np.random.default_rng(16)
    hessian = generator.standard_normal((n, d, d))
    value, gradient = generator.standard_normal(n), generator.standard_normal((n, d))
    jet = Jet(*map(jnp.asarray, (value, gradient, hessian + np.swapaxes(hessian, 1, 2))))
    one = Jet(*(part[0] for part in jet))
    check_shape("maximiser", maximiser, problem.controls.shape[1:], jnp.asarray(points[0]), one)

    def compare(x: Array, state: Jet) -> tuple[Array, ...]:
        index = problem.best_index(x, state, scaled=False)
        mine, rival = jnp.asarray(maximiser(x, state), float), jnp.asarray(problem.controls)[index]
        return problem.defect(x, state, mine), problem.defect(x, state, rival), mine, index

    mine, rival, control, index = at_states(compare)(points, jet)
    worse = problem.sign * (rival - mine)
    scale = 1 + np.abs(rival)
    i = int(np.argmax(np.where(np.isfinite(worse), worse / scale, np.inf)))
    if not worse[i] <= 1e-8 * scale[i]:
        raise CoefficientError(
            f"maximiser is not the best: at x = {show(points[i])} it gives a = "
            f"{show(control[i])} with L^a u - f^a = {mine[i]:.6g}, but control {index[i]}, a "
            f"= {show(problem.controls[index[i]])}, gives {rival[i]:.6g}. It must give the "
            f"{problem.sense} of L^a u - f^a over all controls."
        )
    _check_range(problem, points, jet)


def _check_range(problem: HJB, points: np.ndarray, jet: Jet) -> None:
    """No state, however small or large, may ask for a control outside of the box of the sampled
    ones: certificates hold for the controls of this box."""
    for size in PROBED_SIZES:
        control = problem.policy(points, Jet(*(size * np.asarray(part) for part in jet)))
        outside = problem.outside(control)
        if np.any(outside):
            i = int(np.argmax(outside))
            lower, upper = np.min(problem.controls, axis=0), np.max(problem.controls, axis=0)
            raise CoefficientError(
                f"maximiser leaves the control set: at x = {show(points[i])} it gives a = "
                f"{show(control[i])} for second derivatives of size {size:.0e}, but the "
                f"controls lie between {show(lower)} and {show(upper)}. Include the ends of "
                "the set in controls, or clip the maximiser to it."
            )
