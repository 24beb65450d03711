"""Certificates of the Monge–Ampère equation det D²u = f, u convex: from a problem and an answer w
to a bound of |u - w| at every point.

The theorem (T4): let w be convex with w = g on the boundary, C¹ with bounded second derivatives,
and f_w = det D²w. Then for every x

    u(x) - w(x) ≤ ‖(f_w^{1/d} - f^{1/d})⁺‖ / |(Ω - x)°|^{1/d},    w(x) - u(x) ≤ ‖(f^{1/d} -
    f_w^{1/d})⁺‖ / |(Ω - x)°|^{1/d},

norms in L^d: Minkowski's inequality for determinants, comparison, and Aleksandrov's estimate.
Without convexity this is false: on the unit disk w = (1 - |x|²)/2 has the determinant of u = -w. So
the smallest eigenvalue of D²w is looked for first (`convexity`), and where it is as low as -δ the
theorem is applied to the convex function w + δ|x - c|²/2 instead, whose boundary values lie between
g and g + δR²/2 if the ball of radius R around c holds the domain:

    -(δ/2)(R² - |x - c|²) - … ≤ u(x) - w(x) ≤ (δ/2)|x - c|² + …

with the terms of the theorem for D²w + δI. In one dimension the equation is linear, and the theorem
needs no convexity. The sharper bound from the convex envelope of w is left out: an envelope of
samples bounds nothing between them.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.certificate import Certificate, NoBoundError, Picture
from cordes.certificates.residual.candidate import Candidate, FunctionCandidate
from cordes.certificates.residual.convexity import (
    Convexity,
    cofactors_of,
    descend,
    edge_points,
    eigenvalues,
    inside,
    polished,
    proved,
    smallest_eigenvalue,
)
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.norms import (
    AGREEMENT,
    Measure,
    Norm,
    Quadrature,
    Sample,
    refined_quadrature,
)
from cordes.domains.constants import circumscribed, largest_polar_factor, polar_factor
from cordes.problems.monge_ampere import MongeAmpere
from cordes.runtime.plain import show

# Points of the search for convexity: functions are cheaper than networks, whose quadrature points
# are looked at too.
SEARCH_POINTS, FUNCTION_POINTS, SEARCH_SEED = 1024, 8192, 5_550_203
# Points after which refinement ends, by dimension; points of a sample, and the norms that one
# sample serves.
BUDGETS = {1: 20_000, 2: 120_000, 3: 200_000}
SAMPLE_POINTS, SAMPLE_SEED, NORMS_OF_A_SAMPLE = 1 << 15, 5_550_202, 4
EPSILON = float(np.finfo(np.float64).eps)
# A positive eigenvalue that falls to this share of what it was is no reason for another search.
STILL = 0.9
# The lower limit of a determinant's root is trusted up to this relative rounding; beyond it is
# zero.
TRUSTED = 0.25
# An eigenvalue of D²w below zero by this share of the mean of f^(1/d) is no rounding and no ripple:
# the answer is not convex.
LOST = 0.05
# A bound that exceeds the range of w is useless; the loss of convexity is to blame where the shift
# has at least this share of it.
BLAME = 0.1
# A pole of f is suspected where f exceeds its mean so much; of an integrable one the largest values
# have less than this share of those before.
SUSPECT, POLE_SHARE, POLE_ROUNDS = 1e3, 0.5, 120
# The sets of the largest values: points in each, their number, each a tenth of the last one, random
# steps, and how far apart those compared are.
TAIL_POINTS, TAIL_LEVELS, TAIL_MOVES, TAIL_SPAN = 2048, 12, 12, 5
NO_ENERGY = (
    "no bounds of ∇v and D²v: the linear equations behind Monge–Ampère have no common Cordès "
    "constant"
)


class Densities(NamedTuple):
    """At points: f, D²w, and a bound of the rounding error of det(D²w + δI) for the shift δ in
    use."""

    f: np.ndarray
    hessian: np.ndarray
    rounding: np.ndarray


class Sides(NamedTuple):
    """Norms of the two sides; `shift` is δ, and `center` and `radius` belong to a ball around the
    domain."""

    upper: Norm
    lower: Norm
    shift: float
    center: np.ndarray
    radius: float
    gap: float

    def pointwise(self, domain: Any, x: np.ndarray) -> np.ndarray:
        """The bound of |u - w| at points."""
        factor, square = (
            domain.dimension * polar_factor(domain, x),
            np.sum((x - self.center) ** 2, axis=1),
        )
        above = self.shift / 2 * square + factor * self.upper.upper
        below = (
            self.shift / 2 * np.maximum(self.radius**2 - square, 0.0) + factor * self.lower.upper
        )
        return np.maximum(above, below) * (1 + 4 * EPSILON) + self.gap

    def largest(self, domain: Any) -> float:
        """The bound of the largest error."""
        theorem = (
            domain.dimension
            * largest_polar_factor(domain)
            * max(self.upper.upper, self.lower.upper)
        )
        return float((self.raised + theorem) * (1 + 4 * EPSILON) + self.gap)

    @property
    def raised(self) -> float:
        """What the shift costs."""
        return self.shift * self.radius**2 / 2


def certify_monge_ampere(
    problem: MongeAmpere, candidate: Candidate, singular: np.ndarray, confidence: float = 0.99
) -> Certificate:
    """The bounds that the theorem gives, or the reason why there are none. `singular` (K, d) are
    points around which the residual may be large."""
    reason = refusal(problem, candidate)
    if reason is not None:
        return Certificate(reason=_Attempt(problem, candidate).with_convexity(reason))
    return bounds(
        problem, candidate, singular, confidence, boundary_gap(problem, candidate).addition
    )


def bounds(
    problem: MongeAmpere,
    candidate: Candidate,
    singular: np.ndarray,
    confidence: float = 0.99,
    gap: float = 0.0,
) -> Certificate:
    """The theorem applied to an answer that is known to be smooth and to miss g by at most `gap` on
    the boundary, rounding of its values included."""
    try:
        return _Attempt(problem, candidate).certificate(singular, confidence, gap)
    except NoBoundError as why:
        return Certificate(reason=str(why))


class _Attempt:
    """One problem with one answer."""

    def __init__(self, problem: MongeAmpere, candidate: Candidate):
        self.problem, self.candidate, self.domain = problem, candidate, problem.domain
        self.dimension = problem.domain.dimension

    def certificate(self, singular: np.ndarray, confidence: float, gap: float) -> Certificate:
        convexity = self._search()
        shift = self._shift(convexity)
        measure, local = self._measured(singular, confidence, shift)
        unseen = not_seen(self.problem, self.candidate, measure.points)
        if unseen is not None:
            raise NoBoundError(unseen)
        convexity, shift, local = self._seen_again(convexity, shift, measure, local)
        self._check_density(measure, local.f)
        sides = self._norms(measure, local, shift, gap)
        largest = sides.largest(self.domain)
        if convexity is not None:
            # Before the norms are blamed: where convexity is lost they rarely converge.
            self._check_use(convexity, sides, largest)
        self._check_convergence(sides, largest)
        return self._assemble(measure, sides, largest, convexity)

    # Convexity

    def with_convexity(self, reason: str) -> str:
        """Another reason, behind the loss of convexity where there is one: an answer that went
        astray misses its boundary values, too."""
        convexity = self._search()
        if convexity is None or not convexity.smallest < -LOST * self.problem.curvature:
            return reason
        lost = (
            f"convexity lost: D²w has the eigenvalue {convexity.smallest:.4g} at x = "
            f"{show(convexity.point)}"
        )
        return "; ".join(
            [lost, *([self.problem.rough.why] if self.problem.rough is not None else []), reason]
        )

    def _smallest(self, x: np.ndarray) -> np.ndarray:
        return eigenvalues(np.asarray(self.candidate.jet(x).hessian))[:, 0]

    def _search(self) -> Convexity | None:
        """The smallest eigenvalue of D²w, None in one dimension, where it does not matter."""
        if self.dimension == 1:
            return None
        function = self.candidate.plain if isinstance(self.candidate, FunctionCandidate) else None
        points = self.domain.interior_points(
            SEARCH_POINTS if function is None else FUNCTION_POINTS, SEARCH_SEED, "sobol"
        )
        found = smallest_eigenvalue(
            self.domain, lambda x: np.asarray(self.candidate.jet(x).hessian), points
        )
        return found if function is None else proved(self.domain, function, self._smallest, found)

    def _shift(self, convexity: Convexity | None) -> float:
        """δ ≥ 0 with D²w + δI ≥ 0: nothing where the smallest eigenvalue exceeds twice its
        rounding."""
        if convexity is None:
            return 0.0
        if not np.isfinite(convexity.smallest):
            raise NoBoundError(
                "the second derivatives of the answer are not finite numbers near x = "
                f"{show(convexity.point)}"
            )
        rounding = 2 * self._eigenvalue_rounding(convexity.point)
        return (
            max(rounding - convexity.lower, 0.0)
            if convexity.lower < rounding or convexity.lower < 0
            else 0.0
        )

    def _eigenvalue_rounding(self, point: np.ndarray) -> float:
        """More than the rounding error of an eigenvalue at a point, by Weyl's inequality from those
        of the entries."""
        d, x, total = self.dimension, point[None], 0.0
        for i in range(d):
            for j in range(i + 1):
                unit = np.zeros((1, d, d))
                unit[0, i, j] = unit[0, j, i] = 1.0
                total += (
                    float(self.candidate.applied(x, unit, np.zeros((1, d)), np.zeros(1))[1][0]) ** 2
                )
        return math.sqrt(total)

    def _seen_again(
        self, convexity: Convexity | None, shift: float, measure: Measure, local: Densities
    ) -> tuple[Convexity | None, float, Densities]:
        """The points of the norms may show smaller eigenvalues than the search has found: then the
        search goes on from there."""
        if convexity is None:
            return None, shift, local
        x, values = measure.points, eigenvalues(local.hessian)[:, 0]
        least = int(np.argmin(values))
        if values[least] >= convexity.smallest:
            return convexity, shift, local
        if values[least] >= STILL * convexity.smallest > 0:
            return (
                convexity._replace(
                    smallest=float(values[least]),
                    point=x[least],
                    lower=min(convexity.lower, float(values[least])),
                ),
                shift,
                local,
            )
        if convexity.source == "sampled":
            found = polished(self.domain, self._smallest, x, values)
            convexity = found._replace(lower=min(found.lower, convexity.lower))
        # A proof stands, but rounding at a point may still need a larger shift than it asks for.
        larger = max(shift, self._shift(convexity), -float(values[least]))
        if larger == shift:
            return convexity, shift, local
        return (
            convexity,
            larger,
            local._replace(rounding=self._determinant_rounding(x, local.hessian, larger)),
        )

    # Densities and norms

    def _evaluate(self, x: np.ndarray, shift: float) -> Densities:
        f = np.asarray(self.problem.source_density(x), dtype=np.float64)
        if not np.all(np.isfinite(f)):
            bad = int(np.argmax(~np.isfinite(f)))
            raise NoBoundError(
                f"f is not a density: f = {f[bad]} at x = {show(x[bad])}; the bound needs an f "
                "that is finite at almost every point"
            )
        if np.min(f) < 0:
            bad = int(np.argmin(f))
            raise NoBoundError(
                f"f is negative: f = {f[bad]:.6g} at x = {show(x[bad])}; no convex function "
                "solves this. Use jnp.maximum(f, 0) if rounding is the cause."
            )
        hessian = np.asarray(self.candidate.jet(x).hessian, dtype=np.float64)
        finite = np.all(np.isfinite(hessian), axis=(1, 2))
        rounding = self._determinant_rounding(
            x, np.where(finite[:, None, None], hessian, 0.0), shift
        )
        finite &= np.isfinite(rounding)
        if not np.all(finite):
            raise NoBoundError(
                "the answer or its second derivatives are not finite numbers at x = "
                f"{show(x[int(np.argmin(finite))])}"
            )
        return Densities(f, hessian, rounding)

    def _determinant_rounding(self, x: np.ndarray, hessian: np.ndarray, shift: float) -> np.ndarray:
        """The determinant changes by cof(D²w + δI):E to first order if E is the rounding error of
        D²w; the candidate bounds such sums."""
        n, d = x.shape
        moved = hessian + shift * np.eye(d)
        cofactors = cofactors_of(moved)
        _, rounding = self.candidate.applied(x, cofactors, np.zeros((n, d)), np.zeros(n))
        # The second part is the rounding of the eigenvalues and of the cofactors themselves.
        return rounding + 8 * d * EPSILON * np.linalg.norm(moved, axis=(1, 2)) * np.linalg.norm(
            cofactors, axis=(1, 2)
        )

    def _measured(
        self, singular: np.ndarray, confidence: float, shift: float
    ) -> tuple[Measure, Densities]:
        domain, d = self.domain, self.dimension

        def evaluate(x: np.ndarray) -> Densities:
            return self._evaluate(x, shift)

        def indicator(local: Densities) -> np.ndarray:
            return np.stack([np.maximum(*_sides(local, shift)) ** d, local.f], axis=1)

        refined = refined_quadrature(
            domain, self.problem.interfaces, singular, evaluate, indicator, BUDGETS
        )
        if refined is not None:
            return refined
        points = domain.interior_points(SAMPLE_POINTS, SAMPLE_SEED)
        return Sample(points, domain.volume, confidence, NORMS_OF_A_SAMPLE), evaluate(points)

    def _norms(self, measure: Measure, local: Densities, shift: float, gap: float) -> Sides:
        upper, lower = _sides(local, shift)
        both = measure.norm(np.maximum(upper, lower), self.dimension)
        # One side alone has kinks where the difference changes its sign; the cells are refined for
        # both together.
        above, below = (
            norm if norm.converged else both
            for norm in (measure.norm(values, self.dimension) for values in (upper, lower))
        )
        center, radius = circumscribed(self.domain)
        return Sides(above, below, shift, np.asarray(center), radius, gap)

    # What can go wrong

    def _check_density(self, measure: Measure, f: np.ndarray) -> None:
        """f must have a finite integral: looked at through n and 2n points, and through its largest
        values, since a logarithm grows too slowly for them."""
        norm = measure.norm(f, 1.0)
        if not norm.converged:
            raise NoBoundError(
                "f may not be a density: n and 2n points per direction give integrals of f that "
                f"differ by {100 * norm.spread:.2g} %; declare the interface if f jumps. A pole "
                "whose integral is infinite has no bound."
            )
        mean = norm.upper / self.domain.volume
        top, (start, end) = np.argsort(-f)[:4], self.domain.bounding_box

        def negative(x: np.ndarray) -> np.ndarray:
            return -np.nan_to_num(self.problem.source_density(x), nan=0.0, posinf=np.inf)

        pole, value = descend(
            self.domain,
            negative,
            measure.points[top],
            -f[top],
            0.1 * float(np.max(end - start)),
            POLE_ROUNDS,
        )
        best = int(np.argmin(value))
        if -value[best] > SUSPECT * mean and self._infinite_tail(mean):
            raise NoBoundError(
                "f is not a density: its integral over any neighbourhood of x = "
                f"{show(pole[best])} is infinite, as far as its largest values show; the theorem "
                "needs an integrable f"
            )

    def _infinite_tail(self, mean: float) -> bool:
        """Whether the largest values of f keep their share of the integral: around poles, lines and
        surfaces alike.

        Points are moved into the sets f > t whose volumes are a tenth of one another, t being the
        quantile: those above it are copied and walk at random within the set, in steps of all
        lengths and along differences of two of them, which have the shape of the set. t times the
        volume is the share of values near t in the integral, which falls with the volume where the
        integral is finite.
        """
        rng = np.random.default_rng(SEARCH_SEED)
        lower, upper = self.domain.bounding_box
        size = float(np.max(upper - lower))

        def density(points: np.ndarray) -> np.ndarray:
            return np.nan_to_num(
                np.asarray(self.problem.source_density(points), dtype=np.float64),
                nan=0.0,
                posinf=np.finfo(np.float64).max,
            )

        x = self.domain.interior_points(TAIL_POINTS, SEARCH_SEED)
        f, levels = density(x), []
        for _ in range(TAIL_LEVELS):
            order = np.argsort(-f, kind="stable")[: len(x) // 10]
            levels.append(float(f[order[-1]]))
            x, f = np.tile(x[order], (10, 1)), np.tile(f[order], 10)
            for move in range(TAIL_MOVES):
                if move % 2:
                    length = 10.0 ** rng.uniform(-2.0, 0.0, (len(x), 1))
                    tries = x + length * (x[rng.permutation(len(x))] - x[rng.permutation(len(x))])
                else:
                    length = size * 10.0 ** rng.uniform(-1.0 - TAIL_LEVELS, 0.0, (len(x), 1))
                    tries = x + length * rng.standard_normal(x.shape)
                f_tries = np.where(
                    self.domain.contains(tries), density(inside(self.domain, tries)), -1.0
                )
                better = f_tries >= levels[-1]
                x, f = np.where(better[:, None], tries, x), np.where(better, f_tries, f)
        shares = np.array(levels) * 10.0 ** -np.arange(1.0, TAIL_LEVELS + 1)
        return levels[-1] > SUSPECT * mean and shares[-1] > POLE_SHARE * shares[-1 - TAIL_SPAN]

    def _check_convergence(self, sides: Sides, largest: float) -> None:
        """What n and 2n points make of the norms matters as far as it changes the whole bound."""
        if not 0 < largest < math.inf:
            spread = 0.0 if largest == 0 else math.inf
        else:
            share = self.dimension * largest_polar_factor(self.domain) / largest
            spread = max(share * norm.upper * norm.spread for norm in (sides.upper, sides.lower))
        if not spread <= AGREEMENT:
            raise NoBoundError(
                "the norm of the residual did not converge: n and 2n points per direction differ "
                f"by {100 * spread:.2g} %; a jump or a peak may be unresolved: declare the "
                "interface, or solve more accurately"
            )

    def _check_use(self, convexity: Convexity, sides: Sides, largest: float) -> None:
        x = np.concatenate(
            [self.domain.interior_points(SEARCH_POINTS, SEARCH_SEED), edge_points(self.domain)]
        )
        reach = float(np.ptp(self.candidate.value(x)[0]))
        if (
            sides.shift > 0
            and largest > reach
            and (sides.raised > BLAME * largest or sides.raised > reach)
        ):
            rough = getattr(self.problem, "rough", None)
            remedy = (
                "start from a convex function, or solve with more features"
                if rough is None
                else f"{rough.why}, so that D²u is not bounded there"
            )
            raise NoBoundError(
                f"convexity lost: D²w has the eigenvalue {convexity.smallest:.4g} at x = "
                f"{show(convexity.point)}. Made convex, the answer would be known to "
                f"{largest:.2g} only, more than its own range {reach:.2g}: {remedy}"
            )

    # The result

    def _assemble(
        self, measure: Measure, sides: Sides, largest: float, convexity: Convexity | None
    ) -> Certificate:
        domain, candidate, problem = self.domain, self.candidate, self.problem
        theorem = "T4 with shift" if sides.shift > 0 else "T4"
        L2 = largest * math.sqrt(domain.volume)
        if isinstance(measure, Quadrature):
            norm = measure.norm(sides.pointwise(domain, measure.points))
            L2 = min(L2, norm.upper) if norm.converged else L2
        reasons = [NO_ENERGY]
        if convexity is not None and sides.shift > 0:
            reasons.append(
                f"D²w has the eigenvalue {convexity.smallest:.3g} at x = "
                f"{show(convexity.point)}; making it positive costs {sides.raised:.2g} of the "
                "bound"
            )

        def residual(x: np.ndarray) -> np.ndarray:
            return np.linalg.det(np.asarray(candidate.jet(x).hessian)) - problem.source_density(x)

        return Certificate(
            L2=L2,
            rms=L2 / math.sqrt(domain.volume),
            Linf=largest,
            theorem=theorem,
            maximum_theorem=theorem,
            level=measure.level,
            confidence=measure.confidence,
            epsilon_source=convexity.source if convexity is not None else "analytic",
            reason="; ".join(reasons),
            points=len(measure.points),
            spread=max(sides.upper, sides.lower, key=lambda norm: norm.upper).spread,
            theorems={"L2": theorem, "Linf": theorem},
            alternatives={theorem: largest},
            picture=Picture(
                problem,
                residual,
                lambda x: np.minimum(sides.pointwise(domain, x), largest),
                measure.points,
            ),
        )


def _sides(local: Densities, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """(f_w^{1/d} - f^{1/d})⁺ and (f^{1/d} - f_w^{1/d})⁺ at points, rounded up.

    The root of the determinant is a concave function of positive matrices: its tangent bounds it
    from above, so that a rounding error ρ of the determinant raises the root by ρ/(d root^{d-1}) at
    most. From below the tangent is taken twice, which holds for relative errors up to 1/4. A
    determinant is never clipped: the shift makes all eigenvalues non-negative, and those below zero
    by rounding alone belong to the lower limit zero.
    """
    d = local.hessian.shape[1]
    if d == 1:
        high, low = local.hessian[:, 0, 0] + local.rounding, local.hessian[:, 0, 0] - local.rounding
    else:
        # Before the last word on the shift is spoken a point may show a negative eigenvalue: it
        # counts as far from any solution.
        values = np.abs(np.linalg.eigvalsh(local.hessian) + shift)
        root = np.exp(np.mean(np.log(np.maximum(values, 1e-300)), axis=1)) * np.all(
            values > 0, axis=1
        )
        relative = local.rounding / np.maximum(root**d, 1e-300)
        # |a^{1/d} - b^{1/d}| ≤ |a - b|^{1/d} where there is no tangent.
        high = np.where(root > 0, root * (1 + relative / d), local.rounding ** (1 / d))
        low = np.where(relative <= TRUSTED, root * (1 - 2 * relative / d), 0.0)
    source = local.f ** (1 / d)
    return np.maximum(high - source * (1 - 4 * EPSILON), 0.0), np.maximum(
        source * (1 + 4 * EPSILON) - low, 0.0
    )
