"""Bounds of the largest error: Alexandrov–Bakelman–Pucci with the polar body, the same with drift,
and barriers.

All of them rest on the maximum principle: c ≥ 0 and hypothesis (H) of the theory (two dimensions,
or A Cordès, or A continuous). A barrier w ≥ 0 need not dominate the residual everywhere: with the
violation e = (|r| + Lw)⁺ the error is at most w plus the ABP bound for e, whatever w is.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.enclosed.weights import Weight
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import UNENCLOSED, Measure, Norm, Quadrature, bounded
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.certificates.theorems.barriers.traversal import Traversal, local_factor, traversals
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.pointwise import drift_factor, exponential_barrier
from cordes.domains.constants import circumscribed
from cordes.domains.domain import AbstractDomain
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.domains.walls import Walled
from cordes.formulas.regularity import jump
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import slices_with_matrices

# Shares of the points at which a barrier dominates the residual: all, or all but the worst, whose
# violation the ABP term takes.
SHARES = (1.0, 0.999, 0.99, 0.9, 0.5)
# The size of a barrier is chosen on some of the points; a little more keeps the violation elsewhere
# at zero.
MARGIN = 1.05
# Residuals of which the largest is so many times the smallest get no barrier: its multiple, chosen
# where cells were refined to a pole, would cover the pole at the points there are and nowhere
# between.
LIKE_A_POLE = 1e40
NETWORK = Citation(Theorem.barrier, "network")
ABP = Citation(Theorem.ABP)


class Maximum(NamedTuple):
    """A bound of sup|v|, its name, a pointwise version at the points of the measure, and the norms
    that it used."""

    bound: float
    theorem: Citation
    pointwise: np.ndarray
    norms: tuple[Norm, ...]

    @property
    def converged(self) -> bool:
        return all(norm.converged for norm in self.norms)

    @property
    def enclosed(self) -> bool:
        return len(self.norms) > 0 and all(norm.enclosed for norm in self.norms)

    @property
    def handicap(self) -> float:
        """What is not enclosed must be smaller by this factor; not a barrier that was asked for."""
        return 1.0 if self.enclosed or self.theorem == NETWORK else UNENCLOSED


# A weight, the power, and what points say of the norm.
Enclosed = Callable[[Weight, int, Norm], Norm | None]


class Barrier(NamedTuple):
    """w and -Lw at the points, for unit size, and the maximum of w over the domain."""

    name: str
    value: np.ndarray
    minus_operator: np.ndarray
    peak: float

    @property
    def theorem(self) -> Citation:
        return Citation(Theorem.barrier, self.name)


class Profile(NamedTuple):
    """A function w ≥ 0 of unit size with its gradient and its Hessian (n, d, d), and its maximum
    over the domain."""

    name: str
    value: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    peak: float


class Limits(NamedTuple):
    """The smallest a_ii and the largest |b_i| over the points, (d,) each, and the smallest c."""

    diagonal: np.ndarray
    drift: np.ndarray
    reaction: float


def determinant_root(A: np.ndarray) -> np.ndarray:
    """det A^{1/d}, scaled first: determinants of tiny matrices underflow."""

    def of(A: np.ndarray) -> np.ndarray:
        size = np.max(np.abs(A), axis=(1, 2))
        return size * np.linalg.det(A / size[:, None, None]) ** (1 / A.shape[-1])

    return np.concatenate([of(A[part]) for part in slices_with_matrices(*A.shape[:2])])


class Operators(NamedTuple):
    """One equation at the points of a measure, or the worst of several: det A^{1/d}, |b|/det
    A^{1/d}, limits of the coefficients, and -Lw for a profile, or less."""

    root: np.ndarray
    ratio: np.ndarray
    limits: Limits
    minus_operator: Callable[[Profile], np.ndarray]

    @staticmethod
    def of(local: Local) -> "Operators":
        """Where the coefficients are known."""
        A, b, c = local
        root, diagonal = determinant_root(A), np.einsum("nii->ni", A)
        drift = np.max(np.abs(b), axis=0)

        def minus_operator(profile: Profile) -> np.ndarray:
            second = np.einsum("nij,nij->n", A, profile.curvature)
            return c * profile.value - second - np.sum(b * profile.gradient, axis=1)

        limits = Limits(np.min(diagonal, axis=0), drift, float(np.min(c)))
        return Operators(root, np.linalg.norm(b, axis=1) / root, limits, minus_operator)


@final
class MaximumPrinciple:
    """The ABP estimate of one equation, or of one that is among several, on one measure; `norm(e)`
    is what turns a right-hand side into a bound of the function."""

    def __init__(
        self,
        domain: AbstractDomain,
        measure: Measure,
        evaluated: Evaluated,
        drift: bool,
        right: np.ndarray | None = None,
        worst: Operators | None = None,
        coverage: AbstractCoverage | None = None,
    ):
        """Both signs of the residual bound both signs of the error; `right` is what drives one sign
        alone, rounded up. `worst` stands for the equation where it is not known; `coverage` knows
        it over the whole domain."""
        self.domain, self.measure, self.evaluated = domain, measure, evaluated
        self.dimension, self.operators = domain.dimension, worst or Operators.of(evaluated.local)
        # What a barrier must dominate.
        self.size = evaluated.size if right is None else right
        _, r, rounding = evaluated
        both = [np.maximum(sign * r + rounding, 0.0) for sign in (1.0, -1.0)]
        self.sides = both if right is None else [right]
        self.drift_norm, self.field = None, None
        # How norms of weight · r are enclosed, where they are.
        self.enclosed: Enclosed | None = None
        self.traversals: list[Traversal] = []
        if drift:
            self.drift_norm = measure.norm(self.operators.ratio, self.dimension)
            self.factor = self._drifting(coverage)
        else:
            self.factor = largest_polar_factor(domain)

    def _drifting(self, coverage: AbstractCoverage | None) -> float:
        """The factor with drift; where a normal derivative is given there is none."""
        assert self.drift_norm is not None
        if isinstance(self.domain, Walled):
            return np.inf
        radius = circumscribed(self.domain)[1]
        self.factor = radius * drift_factor(self.dimension, self.drift_norm.upper)
        self._localise(coverage)
        return self.factor

    def _localise(self, coverage: AbstractCoverage | None) -> None:
        """Functions that fall along the drift, and the estimate on small balls where it is
        better."""
        if coverage is None or not isinstance(self.measure, Quadrature):
            return
        self.traversals, self.field = traversals(coverage)
        if self.traversals and self.field is not None:
            factor = local_factor(self.domain, self.field, self.traversals[0].peak)
            self.factor = min(self.factor, factor)

    def norm(self, right: np.ndarray) -> Norm:
        return self.measure.norm(right / self.operators.root, self.dimension)

    def estimate(self, largest: Norm | None = None) -> Maximum:
        """The polar body without drift, the enclosing ball with it; `largest` is the norm of both
        signs together, where that of one alone is not asked for."""
        if largest is None:
            largest = max((self.norm(side) for side in self.sides), key=lambda norm: norm.upper)
        if not largest.converged:
            # One sign alone has kinks where the residual changes its sign; the cells are refined
            # for both together.
            largest = self.norm(self.evaluated.size)
        bound, points = self.factor * largest.upper, self.measure.points
        if self.drift_norm is not None:
            everywhere, norms = np.full(len(points), bound), (largest, self.drift_norm)
            return Maximum(bound, ABP.with_(Modifier.drift), everywhere, norms)
        return Maximum(bound, ABP, polar_factor(self.domain, points) * largest.upper, (largest,))

    def with_barrier(self, barrier: Barrier) -> Maximum:
        """The best multiple of a barrier, with its violation. The multiple is chosen on the coarse
        points, the violation measured on the others too."""
        size, chosen = self.size, self._choosing_points() & (barrier.minus_operator > 0)
        if not bounded(size, LIKE_A_POLE):
            chosen = np.zeros_like(chosen)
        ratio = np.sort(size[chosen] / barrier.minus_operator[chosen])
        found = []
        for share in SHARES if len(ratio) else ():
            K = MARGIN * float(ratio[max(int(np.ceil(share * len(ratio))) - 1, 0)])
            violation = self.norm(np.maximum(size - K * barrier.minus_operator, 0.0))
            rest = self.factor * violation.upper if violation.upper > 0 else 0.0
            bound = K * barrier.peak + rest
            # What the two rules make of a small violation matters only as far as it changes the
            # whole bound.
            spread = 0.0
            if 0 < rest < np.inf:
                spread = rest * (1 - violation.lower / violation.upper) / (2 * bound)
            doubt = Norm(0.0, bound, spread)
            norms = (doubt,) if self.drift_norm is None or rest == 0 else (doubt, self.drift_norm)
            found.append(Maximum(bound, barrier.theorem, K * barrier.value + rest, norms))
        found = [each for each in found if np.isfinite(each.bound)]
        if not found:
            return Maximum(np.inf, barrier.theorem, np.full(len(size), np.inf), ())
        return best_of(found)

    def _choosing_points(self) -> np.ndarray:
        if isinstance(self.measure, Quadrature):
            return self.measure.nodes.coarse > 0
        return np.ones(len(self.measure.points), bool)


def profiles(
    domain: AbstractDomain, points: np.ndarray, limits: Limits, drift: bool
) -> Iterator[Profile]:
    """Ready-made barriers; those with drift take parameters from the points, and are valid for
    any."""
    (n, d), (lower, upper) = points.shape, domain.bounding_box

    def everywhere(matrix: np.ndarray) -> np.ndarray:
        return np.broadcast_to(matrix, (n, d, d))

    if isinstance(domain, Walled):
        # Between the two ends of a direction, of which the one without a value is the middle of
        # the doubled box: there the barrier has no slope, as across all other faces.
        lower, upper = domain.doubled.bounding_box
        axes = [i for i, each in enumerate(domain.directions) if each.given]
    else:
        axes = list(range(d))
        center, radius = circumscribed(domain)
        offset = points - center
        w = (radius**2 - np.sum(offset**2, axis=1)) / 2
        yield Profile("paraboloid", w, -offset, everywhere(-np.eye(d)), radius**2 / 2)
    for i in axes:
        unit = np.eye(d)[i]
        width, s = upper[i] - lower[i], points[:, i] - (upper[i] + lower[i]) / 2
        w, twice = (width**2 / 4 - s**2) / 2, np.outer(unit, unit)
        yield Profile(f"parabola x{i + 1}", w, -s[:, None] * unit, everywhere(-twice), width**2 / 8)
        if drift:
            barrier = exponential_barrier(width, float(limits.diagonal[i]), float(limits.drift[i]))
            w, slope, curvature = (part[:, None] for part in barrier(s))
            if np.all(np.isfinite(w)):
                peak = float(barrier(np.zeros(1))[0][0])
                name = f"exponential x{i + 1}"
                yield Profile(name, w[:, 0], slope * unit, curvature[..., None] * twice, peak)
    if limits.reaction > 0:
        yield Profile("constant", np.ones(n), np.zeros((n, d)), everywhere(np.zeros((d, d))), 1.0)


def best_of(found: Sequence[Maximum]) -> Maximum:
    """The smallest bound among those that converged; one that is not enclosed must be that much
    smaller."""

    return min(found, key=lambda each: (not each.converged, each.bound * each.handicap))


def maxima(principle: MaximumPrinciple) -> list[Maximum]:
    """ABP and the ready-made barriers. Barriers are tried with quadrature only: their sizes are
    chosen on its points."""
    found, points = [], principle.measure.points
    if np.isfinite(principle.factor):
        found.append(principle.estimate())
    if isinstance(principle.measure, Quadrature):
        drift = principle.drift_norm is not None
        ready = profiles(principle.domain, points, principle.operators.limits, drift)
        moving = (
            Profile(each.coordinate.name, *each.at(points), each.peak)
            for each in principle.traversals
        )
        for profile in itertools.chain(ready, moving):
            minus = principle.operators.minus_operator(profile)
            barrier = Barrier(profile.name, profile.value, minus, profile.peak)
            found.append(principle.with_barrier(barrier))
    return found


# What they rest on


def maximum_principle_fails(problem: AbstractProblem, cordes: bool) -> Reason | None:
    """Hypothesis (H): two dimensions, or the Cordès condition, or a continuous A. Else the maximum
    principle may fail for functions in H²."""
    if problem.domain.dimension <= 2 or cordes or problem.constant_A:
        return None
    found = jump(problem.A, problem.domain)
    return None if found is None else needs_cordes_or_continuity(found)


def needs_cordes_or_continuity(found: object) -> Reason:
    sentence = "in three and more dimensions it needs the Cordès condition or a continuous A"
    return Reason(Why.hypothesis, f"no bound of the largest error: {sentence} ({found})")


def negative_reaction(where: str, smallest: float) -> Reason:
    sentence = f"c is negative {where} ({smallest:.4g}): the maximum principle does not apply"
    return Reason(Why.negative_reaction, sentence, {"smallest": smallest})


def unbounded_drift(problem: AbstractProblem, coverage: AbstractCoverage) -> Reason | None:
    if not problem.has_drift or coverage.bounded_drift():
        return None
    sentence = "no bound of the largest error: b could not be bounded over the whole domain"
    return Reason(Why.unbounded_drift, sentence)
