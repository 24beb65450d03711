"""Certificates of the Monge–Ampère equation det D²u = f, u convex: from a problem and an answer w
to a bound of |u - w| at every point.

The theorem (T4): let w be convex with w = g on the boundary, C¹ with bounded second derivatives,
and f_w = det D²w. Then for every x

    u(x) - w(x) ≤ ‖(f_w^{1/d} - f^{1/d})⁺‖ / |(Ω - x)°|^{1/d},    w(x) - u(x) ≤ ‖(f^{1/d} -
    f_w^{1/d})⁺‖ / |(Ω - x)°|^{1/d},

norms in L^d: Minkowski's inequality for determinants, comparison, and Aleksandrov's estimate.
Without convexity this is false: on the unit disk w = (1 - |x|²)/2 has the determinant of u = -w. So
the smallest eigenvalue of D²w is looked for first (`convexity`), unless it is proved to be positive
by way of the determinant (`enclosed/determinant`). Where it is as low as -δ the theorem is applied
to the convex function w + δ|x - c|²/2 instead, whose boundary values lie between g and g + δR²/2 if
the ball of radius R around c holds the domain:

    -(δ/2)(R² - |x - c|²) - … ≤ u(x) - w(x) ≤ (δ/2)|x - c|² + …

with the terms of the theorem for D²w + δI. In one dimension the equation is linear, and the theorem
needs no convexity. The sharper bound from the convex envelope of w is left out: an envelope of
samples bounds nothing between them.
"""

import itertools
import math
from dataclasses import replace

import numpy as np

from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.enclosed.determinant import ConvexMeasure, convex_measure
from cordes.certificates.enclosed.refinement import CHEAP, TIGHT, CellBudget
from cordes.certificates.equation import SEEN
from cordes.certificates.monge_ampere.sides import (
    SEARCH_SEED,
    Densities,
    DeterminantSides,
    check_density,
    root_differences,
)
from cordes.certificates.reason import NoBoundError, Reason, Why
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    FunctionCandidate,
)
from cordes.certificates.residual.convexity import (
    Convexity,
    cofactor_rounding,
    cofactors_of,
    edge_points,
    eigenvalues,
    polished,
    proved,
    smallest_eigenvalue,
)
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.measured import Sampling, Watched, measured
from cordes.certificates.residual.norms import (
    AGREEMENT,
    UNENCLOSED,
    UNRESOLVED_REMEDY,
    Measure,
    Quadrature,
)
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.domains.constants import circumscribed
from cordes.domains.polar import largest_polar_factor
from cordes.errors import DomainError
from cordes.formulas.intervals import UnsupportedOperation
from cordes.problems.monge_ampere import MongeAmpere
from cordes.runtime.plain import show

# Points of the search for convexity: functions are cheaper than networks, whose quadrature points
# are looked at too.
SEARCH_POINTS, FUNCTION_POINTS = 1024, 8192
# The norms that one sample serves.
SAMPLE_SEED, NORMS_OF_A_SAMPLE = 5_550_202, 4
# A positive eigenvalue that falls to this share of what it was is no reason for another search.
STILL = 0.9
# An eigenvalue of D²w below zero by this share of the mean of f^(1/d) is no rounding and no ripple:
# the answer is not convex.
LOST = 0.05
# A bound that exceeds the range of w is useless; the loss of convexity is to blame where the shift
# has at least this share of it.
BLAME = 0.1
NO_ENERGY = Reason(
    Why.not_covered,
    "no bounds of ∇v and D²v: the linear equations behind Monge–Ampère have no common Cordès "
    "constant",
)


def certify_monge_ampere(
    problem: MongeAmpere,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float = 0.99,
) -> Certificate:
    """The bounds that the theorem gives, or the reason why there are none. `singular` (K, d) are
    points around which the residual may be large."""
    if reason := refusal(problem, candidate):
        return Certificate(reasons=_Attempt(problem, candidate).with_convexity(reason))
    gap = boundary_gap(problem, candidate)
    found = bounds(problem, candidate, singular, confidence, gap.addition)
    if found.known and not gap.proved:
        return replace(found, known={}, level="quadrature")
    return found


def bounds(
    problem: MongeAmpere,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float = 0.99,
    gap: float = 0.0,
) -> Certificate:
    """The theorem applied to an answer that is known to be smooth and to miss g by at most `gap` on
    the boundary, rounding of its values included."""
    try:
        return _Attempt(problem, candidate).certificate(singular, confidence, gap)
    except NoBoundError as why:
        return Certificate(reasons=(why.reason,))


def _proved(enclosed: ConvexMeasure, sides: DeterminantSides) -> DeterminantSides:
    """With norms that are enclosed, unless points show much less; if they miss a part of it they
    count for nothing."""
    larger, smaller = enclosed.norms()
    shown = max(sides.upper.upper, sides.lower.upper)
    largest = max(larger.upper, smaller.upper)
    good = largest <= UNENCLOSED * shown or math.hypot(shown, shown) < SEEN * enclosed.norm().lower
    sure = good and larger.enclosed and smaller.enclosed
    return sides._replace(upper=larger, lower=smaller) if sure else sides


class _Attempt:
    """One problem with one answer."""

    def __init__(self, problem: MongeAmpere, candidate: AbstractCandidate):
        self.problem, self.candidate, self.domain = problem, candidate, problem.domain
        self.dimension = problem.domain.dimension

    def certificate(self, singular: np.ndarray, confidence: float, gap: float) -> Certificate:
        enclosed = self._enclosed()
        sure = enclosed is not None
        convexity = None if sure else self._search()
        shift = self._shift(convexity)
        measure, local = self._measured(singular, confidence, shift)
        if unseen := not_seen(self.problem, self.candidate, measure.points, sure):
            return Certificate(reasons=(unseen,))
        convexity, shift, local = self._seen_again(convexity, shift, measure, local)
        check_density(self.problem, measure, local.f)
        sides = self._norms(measure, local, shift, gap)
        if enclosed is not None:
            sides = _proved(enclosed, sides)
        largest = sides.largest(self.domain)
        if convexity is not None:
            # Before the norms are blamed: where convexity is lost they rarely converge.
            self._check_use(convexity, sides, largest)
        self._check_convergence(sides, largest)
        found = self._assemble(measure, sides, largest, convexity)
        source = "interval" if sure else found.epsilon_source
        return replace(found, epsilon_source=source)

    def _enclosed(self) -> ConvexMeasure | None:
        """Cells from which nothing can hide, where the answer is proved to be convex and they do
        not run out."""
        if self.dimension > 3:
            return None
        budget = CellBudget() if isinstance(self.candidate, AnswerCandidate) else CHEAP
        try:
            found = convex_measure(self.problem, self.candidate, budget)
        except (UnsupportedOperation, DomainError):
            return None
        return found if found is not None and found.excess() <= TIGHT else None

    # Convexity

    def with_convexity(self, reason: Reason) -> tuple[Reason, ...]:
        """Another reason, behind the loss of convexity where there is one: an answer that went
        astray misses its boundary values, too."""
        convexity = self._search()
        if convexity is None or not convexity.smallest < -LOST * self.problem.curvature:
            return (reason,)
        smallest, point, *_ = convexity
        sentence = f"convexity lost: D²w has the eigenvalue {smallest:.4g} at x = {show(point)}"
        lost = Reason(Why.convexity_lost, sentence, {"eigenvalue": smallest, "point": point})
        rough = self.problem.rough
        data = () if rough is None else (Reason(Why.rough_data, rough.why),)
        return lost, *data, reason

    def _hessian(self, x: np.ndarray) -> np.ndarray:
        return self.candidate.jet(x).hessian

    def _smallest(self, x: np.ndarray) -> np.ndarray:
        return eigenvalues(self._hessian(x))[:, 0]

    def _search(self) -> Convexity | None:
        """The smallest eigenvalue of D²w, None in one dimension, where it does not matter."""
        if self.dimension == 1:
            return None
        function = self.candidate.plain if isinstance(self.candidate, FunctionCandidate) else None
        count = SEARCH_POINTS if function is None else FUNCTION_POINTS
        points = self.domain.interior_points(count, SEARCH_SEED, "sobol")
        found = smallest_eigenvalue(self.domain, self._hessian, points)
        return found if function is None else proved(self.domain, function, self._smallest, found)

    def _shift(self, convexity: Convexity | None) -> float:
        """δ ≥ 0 with D²w + δI ≥ 0: nothing where the smallest eigenvalue exceeds twice its
        rounding."""
        if convexity is None:
            return 0.0
        if not np.isfinite(convexity.smallest):
            sentence = "the second derivatives of the answer are not finite numbers near x = "
            point = convexity.point
            raise NoBoundError(Why.not_finite, f"{sentence}{show(point)}", point=point)
        lower, rounding = convexity.lower, 2 * self._eigenvalue_rounding(convexity.point)
        return max(rounding - lower, 0.0) if lower < rounding or lower < 0 else 0.0

    def _eigenvalue_rounding(self, point: np.ndarray) -> float:
        """More than the rounding error of an eigenvalue at a point, by Weyl's inequality from those
        of the entries."""
        d, total = self.dimension, 0.0
        for i, j in itertools.combinations_with_replacement(range(d), 2):
            unit = np.zeros((1, d, d))
            unit[0, i, j] = unit[0, j, i] = 1.0
            rounding = self.candidate.applied(point[None], unit, np.zeros((1, d)), np.zeros(1))[1]
            total += float(rounding[0]) ** 2
        return math.sqrt(total)

    def _seen_again(
        self, convexity: Convexity | None, shift: float, measure: Measure, local: Densities
    ) -> tuple[Convexity | None, float, Densities]:
        """The points of the norms may show smaller eigenvalues than the search has found: then the
        search goes on from there."""
        if convexity is None:
            return None, shift, local
        x, values = measure.points, eigenvalues(local.hessian)[:, 0]
        least, point = float(np.min(values)), x[int(np.argmin(values))]
        if least >= convexity.smallest:
            return convexity, shift, local
        if least >= STILL * convexity.smallest > 0:
            lower = min(convexity.lower, least)
            return convexity._replace(smallest=least, point=point, lower=lower), shift, local
        if convexity.source == "sampled":
            found = polished(self.domain, self._smallest, x, values)
            convexity = found._replace(lower=min(found.lower, convexity.lower))
        # A proof stands, but rounding at a point may still need a larger shift than it asks for.
        larger = max(shift, self._shift(convexity), -least)
        if larger != shift:
            rounding = self._determinant_rounding(x, local.hessian, larger)
            local = local._replace(rounding=rounding)
        return convexity, larger, local

    # Densities and norms

    def _evaluate(self, x: np.ndarray, shift: float) -> Densities:
        f = np.asarray(self.problem.source_density(x), dtype=np.float64)
        if not np.all(np.isfinite(f)):
            bad = int(np.argmax(~np.isfinite(f)))
            sentence = f"f is not a density: f = {f[bad]} at x = {show(x[bad])}; the bound needs"
            sentence += " an f that is finite at almost every point"
            raise NoBoundError(Why.not_a_density, sentence, point=x[bad])
        if np.min(f) < 0:
            value, point = float(np.min(f)), x[int(np.argmin(f))]
            sentence = f"f is negative: f = {value:.6g} at x = {show(point)}; no convex function"
            sentence += " solves this. Use jnp.maximum(f, 0) if rounding is the cause."
            raise NoBoundError(Why.not_a_density, sentence, point=point, value=value)
        hessian = self._hessian(x)
        finite = np.all(np.isfinite(hessian), axis=(1, 2))
        known = np.where(finite[:, None, None], hessian, 0.0)
        rounding = self._determinant_rounding(x, known, shift)
        finite &= np.isfinite(rounding)
        if not np.all(finite):
            point = x[int(np.argmin(finite))]
            sentence = "the answer or its second derivatives are not finite numbers at x = "
            raise NoBoundError(Why.not_finite, f"{sentence}{show(point)}", point=point)
        return Densities(f, hessian, rounding)

    def _determinant_rounding(self, x: np.ndarray, hessian: np.ndarray, shift: float) -> np.ndarray:
        """The determinant changes by cof(D²w + δI):E to first order if E is the rounding error of
        D²w; the candidate bounds such sums."""
        moved = hessian + shift * np.eye(self.dimension)
        cofactors = cofactors_of(moved)
        _, rounding = self.candidate.applied(x, cofactors, np.zeros_like(x), np.zeros(len(x)))
        return rounding + cofactor_rounding(moved, cofactors)

    def _measured(
        self, singular: np.ndarray, confidence: float, shift: float
    ) -> tuple[Measure, Densities]:
        d = self.dimension

        def evaluate(x: np.ndarray) -> Densities:
            return self._evaluate(x, shift)

        def indicator(local: Densities) -> np.ndarray:
            return np.stack([np.maximum(*root_differences(local, shift)) ** d, local.f], axis=1)

        sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence)
        candidate = self.candidate
        own = candidate.formulas, lambda: candidate.exact(), candidate.scales
        watched = Watched(evaluate, indicator, *own)
        return measured(self.problem, watched, sampling, singular)

    def _norms(
        self, measure: Measure, local: Densities, shift: float, gap: float
    ) -> DeterminantSides:
        upper, lower = root_differences(local, shift)
        both = measure.norm(np.maximum(upper, lower), self.dimension)
        # One side alone has kinks where the difference changes its sign; the cells are refined for
        # both together.
        above, below = (
            norm if norm.converged else both
            for norm in (measure.norm(values, self.dimension) for values in (upper, lower))
        )
        return DeterminantSides(above, below, shift, *circumscribed(self.domain), gap)

    # What can go wrong

    def _check_convergence(self, sides: DeterminantSides, largest: float) -> None:
        """What n and 2n points make of the norms matters as far as it changes the whole bound."""
        spread = 0.0 if largest == 0 else math.inf
        if 0 < largest < math.inf:
            share = self.dimension * largest_polar_factor(self.domain) / largest
            spread = max(share * norm.upper * norm.spread for norm in (sides.upper, sides.lower))
        if not spread <= AGREEMENT:
            sentence = "the norm of the residual did not converge: n and 2n points per direction"
            sentence += f" differ by {100 * spread:.2g} %; {UNRESOLVED_REMEDY}"
            raise NoBoundError(Why.not_converged, sentence, spread=spread)

    def _check_use(self, convexity: Convexity, sides: DeterminantSides, largest: float) -> None:
        interior = self.domain.interior_points(SEARCH_POINTS, SEARCH_SEED)
        x = np.concatenate([interior, edge_points(self.domain)])
        reach = float(np.ptp(self.candidate.value(x)[0]))
        to_blame = sides.raised > BLAME * largest or sides.raised > reach
        if sides.shift > 0 and largest > reach and to_blame:
            rough, (smallest, point, *_) = self.problem.rough, convexity
            remedy = "start from a convex function, or solve with more features"
            if rough is not None:
                remedy = f"{rough.why}, so that D²u is not bounded there"
            raise NoBoundError(
                Why.convexity_lost,
                f"convexity lost: D²w has the eigenvalue {smallest:.4g} at x = {show(point)}. Made "
                f"convex, the answer would be known to {largest:.2g} only, more than its own range "
                f"{reach:.2g}: {remedy}",
                eigenvalue=smallest,
                point=point,
            )

    # The result

    def _assemble(
        self, measure: Measure, sides: DeterminantSides, largest: float, convexity: Convexity | None
    ) -> Certificate:
        domain = self.domain
        theorem = Citation(Theorem.T4)
        if sides.shift > 0:
            theorem = theorem.with_(Modifier.shifted)
        if self.dimension == 1:
            theorem = theorem.with_(Modifier.one_dimensional)
        enclosed = sides.upper.enclosed
        L2, norms = largest * math.sqrt(domain.volume), ["Linf", "L2", "rms"]
        known: dict[str, str] = {name: "enclosed" for name in norms} if enclosed else {}
        if isinstance(measure, Quadrature):
            norm = measure.norm(sides.pointwise(domain, measure.points))
            if norm.converged and norm.upper * (UNENCLOSED if enclosed else 1.0) < L2:
                L2, known = norm.upper, {name: known[name] for name in known if name == "Linf"}
        reasons = [NO_ENERGY]
        if convexity is not None and sides.shift > 0:
            values = {"eigenvalue": convexity.smallest, "point": convexity.point}
            sentence = f"D²w has the eigenvalue {convexity.smallest:.3g} at x ="
            sentence += f" {show(convexity.point)}; making it positive costs {sides.raised:.2g}"
            reasons.append(Reason(Why.negative_eigenvalue, f"{sentence} of the bound", values))

        def residual(x: np.ndarray) -> np.ndarray:
            return np.linalg.det(self._hessian(x)) - self.problem.source_density(x)

        def pointwise(x: np.ndarray) -> np.ndarray:
            return np.minimum(sides.pointwise(domain, x), largest)

        return Certificate(
            L2=L2,
            rms=L2 / math.sqrt(domain.volume),
            Linf=largest,
            citation=theorem,
            maximum_citation=theorem,
            level="enclosed" if "L2" in known else measure.level,
            known=known,
            confidence=measure.confidence,
            epsilon_source=convexity.source if convexity is not None else "analytic",
            reasons=tuple(reasons),
            points=len(measure.points),
            spread=max(sides.upper, sides.lower, key=lambda norm: norm.upper).spread,
            citations={"L2": theorem, "Linf": theorem},
            alternatives={str(theorem): largest},
            picture=Picture(self.problem, residual, pointwise, measure.points),
        )
