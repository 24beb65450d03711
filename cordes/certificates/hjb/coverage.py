"""The contraction over the whole domain and all controls, and schemes for a continuum of controls.

A finite set of controls is covered exactly: `analytic` where the coefficients do not depend on x,
`interval` by one enclosure for each control, `sampled` where there are too many for that. A
continuum, of which the controls are a sample and the maximiser knows the best one, is covered by
intervals over the box that the sampled controls span, `sampled` where that does not decide.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.hjb.energy import Pairs
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.cell_bounds import CoefficientBall, cell_bound
from cordes.certificates.theorems.contraction import (
    AbstractCoverage,
    Contraction,
)
from cordes.certificates.theorems.energy import (
    Invariants,
    Local,
    Pilot,
    Scheme,
    TraceSplit,
    bounded_exponential,
    gradient_factor,
)
from cordes.domains import Box
from cordes.problems.coefficients import at_points
from cordes.problems.controls.controlled import AbstractControlled
from cordes.runtime.blocks import in_blocks

# Up to this number of controls each gets an enclosure; the searches over cells get less of a budget
# the more there are.
ENCLOSED = 32
FULL_BUDGET = 4
# Controls whose mean trace scales the equations of a continuum.
AVERAGED = 16
# Cells that are bounded together have this many middles, or a few more.
CELLS = 512


def depends_on(function: Callable, arguments: tuple, number: int) -> bool:
    """Whether a result of the function can depend on one of its arguments: followed through its
    operations, each taken to mix all that enters."""
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    reached = {jaxpr.invars[number]}
    for equation in jaxpr.eqns:
        if any(variable in reached for variable in equation.invars if not hasattr(variable, "val")):
            reached.update(equation.outvars)
    return any(variable in reached for variable in jaxpr.outvars if not hasattr(variable, "val"))


@functools.lru_cache(maxsize=64)
def depends_on_place(
    functions: tuple[Callable, ...], dimension: int, shape: tuple[int, ...]
) -> bool:
    """Whether functions of (x, a) depend on x."""
    places = jnp.zeros(dimension), jnp.zeros(shape)
    return depends_on(lambda x, a: [function(x, a) for function in functions], places, 0)


def varies_in_space(problem: AbstractControlled, *functions: Callable) -> bool:
    """Whether the functions, all coefficients if none is named, depend on x."""
    given = functions or (problem.A, problem.b, problem.c)
    return depends_on_place(given, problem.domain.dimension, problem.controls.shape[1:])


def _coefficients(problem: AbstractControlled, a: Any, x: Any) -> tuple:
    """A, b, c without the right-hand side, which may be long."""
    return problem.A(x, a), problem.b(x, a), problem.c(x, a)


def local_of(problem: AbstractControlled, points: np.ndarray, controls: np.ndarray) -> Local:
    """The equations of pairs of points and controls."""
    return Local(*(np.asarray(part) for part in problem.pairs(points, controls)[:3]))


@final
class ControlCoverage(AbstractCoverage):
    """A finite set of controls; `points` and `local` are pairs. The largest defects at the points
    of the measure count where nothing better is known."""

    always = " for every control"

    def __init__(
        self,
        problem: AbstractControlled,
        points: np.ndarray,
        local: Local,
        pairs: Pairs,
        measured: np.ndarray,
        enclosed: int = ENCLOSED,
    ):
        """`enclosed` is the largest number of controls that get enclosures."""
        self.problem, self.pairs, self.measured = problem, pairs, measured
        self._few, constant = len(problem.controls) <= enclosed, not varies_in_space(problem)
        controls = jnp.asarray(problem.controls) if self._few else ()
        linearise = [functools.partial(_coefficients, problem, a) for a in controls]
        super().__init__(problem.domain, linearise, self._values, points, local, constant)
        self.share = min(1.0, FULL_BUDGET / len(problem.controls))

    def _values(self, x: np.ndarray) -> Local:
        """The equations of all controls at points, one control after the other."""
        controls = self.problem.controls
        return local_of(
            self.problem, np.tile(x, (len(controls), 1)), np.repeat(controls, len(x), axis=0)
        )

    def drift_bounded_without_cells(self) -> bool:
        """Nothing is known of the drift of more controls than get enclosures, unless it does not
        depend on x."""
        return self._few or not varies_in_space(self.problem, self.problem.b)

    def seen_elsewhere(self, found: Contraction, scheme: Scheme, matrix: np.ndarray) -> Contraction:
        """The points of the measure, with all controls."""
        columns, _ = self.pairs.defects(scheme, self.measured, matrix)
        value = float(np.sum(np.max(columns, axis=0)))
        if found.value >= value:
            return found
        worst = int(np.argmax(np.sum(columns, axis=1)))
        return Contraction(value, "sampled", self.measured[worst])


@final
class ContinuumCoverage(AbstractCoverage):
    """The equations h(x)(A^a, b^a, c^a) over the domain and the box of the controls, with h =
    d/mean tr A^a, as functions of z = (x, a).

    Coordinates on which nothing depends and controls that do not vary are left out of z. Cells
    reach beyond a domain that is no box, which makes the suprema larger, never smaller.
    """

    def __init__(
        self,
        problem: AbstractControlled,
        points: np.ndarray,
        controls: np.ndarray,
        pairs: Pairs,
        measured: np.ndarray,
        chosen_controls: np.ndarray,
    ):
        """The box is that of the sampled controls, which hold the ends of the set;
        `chosen_controls` are those of the maximiser at the points of the measure, which leave it by
        rounding at most."""
        self.problem, self.pairs, self.measured = problem, pairs, measured
        d = problem.domain.dimension
        flat = np.concatenate(
            [each.reshape(len(each), -1) for each in (problem.controls, controls, chosen_controls)]
        )
        low, high = np.min(flat, axis=0), np.max(flat, axis=0)
        self._free, self._fixed = np.flatnonzero(high > low), low
        self.inside = d if varies_in_space(problem) else 0
        self._shape = problem.controls.shape[1:]
        chosen = jnp.asarray(problem.sampled_controls(AVERAGED))

        def scale(x: Any) -> Any:
            return d / jnp.mean(jax.vmap(lambda a: jnp.trace(problem.A(x, a)))(chosen))

        def linearise(z: Any) -> tuple:
            x, a = self._parts(z)
            return tuple(scale(x) * part for part in _coefficients(problem, a, x))

        self._center = jnp.asarray(problem.domain.center)
        # h at points.
        self.scale, scaled = at_points(scale), jax.jit(jax.vmap(linearise))
        ends = zip(problem.domain.bounding_box, (low, high), strict=True)
        rows = [points[:, : self.inside], controls.reshape(len(points), -1)[:, self._free]]
        h, local = self.scale(points), local_of(problem, points, controls)
        super().__init__(
            Box(*(np.concatenate([x[: self.inside], a[self._free]]) for x, a in ends)),
            linearise,
            lambda z: Local(*in_blocks(scaled, (z,), CELLS)),
            np.concatenate(rows, axis=1),
            Local(local.A * h[:, None, None], local.b * h[:, None], local.c * h),
            not len(self._free) and not self.inside,
        )

    @staticmethod
    def split(problem: AbstractControlled, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and the varying entries of the control of one z, for messages; the centre of the domain
        where z holds no x."""
        inside = problem.domain.dimension if varies_in_space(problem) else 0
        return (z[:inside] if inside else np.asarray(problem.domain.center)), z[inside:]

    def not_elliptic(self) -> None:
        """Not looked for: the points are pairs."""

    def _parts(self, z: Any) -> tuple:
        """x and the control."""
        x = z[: self.inside] if self.inside else self._center
        place = {int(k): self.inside + number for number, k in enumerate(self._free)}
        entries = enumerate(self._fixed)
        a = [z[place[k]] if k in place else jnp.asarray(value) for k, value in entries]
        return x, jnp.stack(a).reshape(self._shape)

    def seen_elsewhere(self, found: Contraction, scheme: Scheme, matrix: np.ndarray) -> Contraction:
        """The points of the measure, with the sampled controls."""
        columns, _ = self.pairs.defects(scheme, self.measured, matrix, self.scale(self.measured))
        return found._replace(value=max(found.value, float(np.sum(np.max(columns, axis=0)))))

    def smallest_root(self) -> float | None:
        """A lower bound of h det(A^a)^{1/d} over the domain and all controls; None where none is
        known for certain.

        The eigenvalues of A are t/d times 1 + β_i with Σβ_i = 0 and Σβ_i² = d ρ'²/(d - 1). The
        product of the 1 + β_i is smallest where they take two values, k of them the lower one, and
        falls with ρ'.
        """
        d = self.local.A.shape[-1]
        largest = self.over_domain(TraceSplit(), np.eye(d))
        multiplier = self.largest_multiplier(np.eye(d))
        if "sampled" in (largest.source, multiplier.source) or not largest.value < 1:
            return None
        products = []
        for k in range(1, d):
            low = largest.value * math.sqrt((d - k) / (k * (d - 1)))
            products.append(k * math.log1p(-low) + (d - k) * math.log1p(low * k / (d - k)))
        return math.exp(min(products, default=0.0) / d) / multiplier.value * (1 - 1e-12)


class CommonTriangle(NamedTuple):
    """T2 by the triangle inequality with one multiplier G for all controls of a continuum:

    s = sup|Gt/d - 1| + √(1 - 1/d) sup G|A₀| + k sup G|b| + sup|Gc - λ|/(λ₁ + λ), since ‖Δv‖ ≤ ‖L_λ
    v‖.
    """

    lambda_: float
    eigenvalue: float
    factor: float
    theorem: Citation = Citation(Theorem.T2, "common multiplier")

    def multiplier(self, at: Invariants) -> np.ndarray:
        return np.full(len(at.trace), self.factor)

    def defects(self, at: Invariants) -> np.ndarray:
        d, G = at.dimension, self.factor
        trace, deviation = np.abs(G * at.trace / d - 1), math.sqrt(1 - 1 / d) * G * at.deviation
        drift = gradient_factor(self.eigenvalue, self.lambda_) * G * at.drift
        reaction = np.abs(G * at.reaction - self.lambda_) / (self.eigenvalue + self.lambda_)
        return np.stack([trace, deviation, drift, reaction], axis=1)


@cell_bound.register
def _common_triangle_cells(
    scheme: CommonTriangle, ball: CoefficientBall, column: int
) -> np.ndarray:
    d, G, (trace, reach) = ball.middle.A.shape[-1], scheme.factor, ball.traces
    middle = Invariants(d, trace, ball.largest_deviation, ball.largest_drift, ball.middle.c)
    reaction = G * ball.radius.c / (scheme.eigenvalue + scheme.lambda_)
    slack = (G * reach / d, 0.0, 0.0, reaction)[column]
    return scheme.defects(middle)[:, column] + slack


class CommonWeighted(NamedTuple):
    """T2 with the weights of `Weighted` and one multiplier G for all controls of a continuum."""

    lambda_: float
    weights: tuple[float, float, float, float]
    factor: float
    theorem: Citation = Citation(Theorem.T2, "common multiplier")

    def multiplier(self, at: Invariants) -> np.ndarray:
        return np.full(len(at.trace), self.factor)

    def defects(self, at: Invariants) -> np.ndarray:
        return self.root(
            np.abs(self.factor * at.trace / at.dimension - 1),
            at.deviation,
            at.drift,
            np.abs(self.factor * at.reaction - self.lambda_),
        )

    def root(
        self, trace: np.ndarray, deviation: np.ndarray, drift: np.ndarray, reaction: np.ndarray
    ) -> np.ndarray:
        parts = (trace, self.factor * deviation, self.factor * drift, reaction)
        # A weight of zero needs a numerator of zero.
        terms = [
            part**2 / weight if weight > 0 else np.where(part == 0, 0.0, np.inf)
            for part, weight in zip(parts, self.weights, strict=True)
        ]
        return np.sqrt(sum(terms))[:, None]


@cell_bound.register
def _common_weighted_cells(
    scheme: CommonWeighted, ball: CoefficientBall, column: int
) -> np.ndarray:
    d, G, (trace, reach) = ball.middle.A.shape[-1], scheme.factor, ball.traces
    reaction = np.abs(G * ball.middle.c - scheme.lambda_) + G * ball.radius.c
    return scheme.root(
        np.abs(G * trace / d - 1) + G * reach / d,
        ball.largest_deviation,
        ball.largest_drift,
        reaction,
    )[:, column]


def choose_common(pilot: Pilot, evaluations: int = 400) -> Sequence[Scheme]:
    """The triangle inequality with G and λ in the middle of what is seen, and weights, λ and G
    found by Nelder–Mead."""
    at, d = pilot.at, pilot.at.dimension
    factor = 2 * d / float(np.max(at.trace) + np.min(at.trace))
    middle = max(factor * float(np.max(at.reaction) + np.min(at.reaction)) / 2, 0.0)
    found: list[Scheme] = [
        CommonTriangle(value, pilot.eigenvalue, factor)
        for value in dict.fromkeys((middle, 0.0))
        if value + pilot.eigenvalue > 0
    ]

    def scheme_of(theta: np.ndarray) -> CommonWeighted:
        return CommonWeighted(*pilot.weights_of(theta[:5]), bounded_exponential(theta[5]))

    start = np.append(pilot.neutral_start(middle), math.log(factor))
    found.append(pilot.thinned().searched(scheme_of, start, 0.5, evaluations, 1e6))
    return sorted(found, key=pilot.size)
