"""Bounds of the largest error: Alexandrov–Bakelman–Pucci with the polar body, the same with drift,
and barriers.

All of them rest on the maximum principle: c ≥ 0 and hypothesis (H) of the theory (two dimensions,
or A Cordès, or A continuous). A barrier w ≥ 0 need not dominate the residual everywhere: with the
violation e = (|r| + Lw)⁺ the error is at most w plus the ABP bound for e, whatever w is.
"""

import abc
from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import Measure, Norm, Quadrature, bounded
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.pointwise import drift_factor, exponential_barrier
from cordes.domains.constants import circumscribed, largest_polar_factor, polar_factor
from cordes.domains.domain import AbstractDomain

# Shares of the points at which a barrier dominates the residual: all, or all but the worst, whose
# violation the ABP term takes.
SHARES = (1.0, 0.999, 0.99)
# The size of a barrier is chosen on some of the points; a little more keeps the violation elsewhere
# at zero.
MARGIN = 1.05
# Residuals of which the largest is so many times the smallest get no barrier: its multiple, chosen
# where cells were refined to a pole, would cover the pole at the points there are and nowhere
# between.
LIKE_A_POLE = 1e40
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
    """A function w ≥ 0 of unit size with its gradient and the diagonal of its Hessian, which has no
    other entries, and its maximum over the domain."""

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
    size = np.max(np.abs(A), axis=(1, 2))
    return size * np.linalg.det(A / size[:, None, None]) ** (1 / A.shape[-1])


class AbstractMaximumPrinciple(abc.ABC):
    """The ABP estimate of one equation, or of one that is among several, on one measure; `norm(e)`
    is what turns a right-hand side into a bound of the function."""

    def __init__(
        self,
        domain: AbstractDomain,
        measure: Measure,
        evaluated: Evaluated,
        drift: bool,
        root: np.ndarray | None = None,
        ratio: np.ndarray | None = None,
    ):
        """`root` is det A^{1/d} and `ratio` |b|/det A^{1/d} at the points, or their worst values
        where the equation is one of several."""
        self.domain, self.measure, self.evaluated = domain, measure, evaluated
        self.dimension = domain.dimension
        self.root = determinant_root(evaluated.local.A) if root is None else root
        self.drift_norm = None
        if drift:
            self.center, self.radius = circumscribed(domain)
            sizes = (
                np.linalg.norm(evaluated.local.b, axis=1) / self.root if ratio is None else ratio
            )
            self.drift_norm = measure.norm(sizes, self.dimension)
            self.factor = self.radius * drift_factor(self.dimension, self.drift_norm.upper)
        else:
            self.factor = largest_polar_factor(domain)

    def norm(self, right: np.ndarray) -> Norm:
        return self.measure.norm(right / self.root, self.dimension)

    @abc.abstractmethod
    def sides(self) -> list[np.ndarray]:
        """What drives the signs of the error that are bounded, rounded up."""

    @abc.abstractmethod
    def size(self) -> np.ndarray:
        """What a barrier must dominate."""

    @abc.abstractmethod
    def minus_operator(self, profile: Profile) -> np.ndarray:
        """-Lw at the points, or less."""

    @abc.abstractmethod
    def limits(self) -> Limits:
        """Limits of the coefficients over the points."""

    def estimate(self) -> Maximum:
        """The polar body without drift, the enclosing ball with it."""
        count = len(self.measure.points)
        largest = max((self.norm(side) for side in self.sides()), key=lambda norm: norm.upper)
        if not largest.converged:
            # One sign alone has kinks where the residual changes its sign; the cells are refined
            # for both together.
            largest = self.norm(self.evaluated.size)
        if self.drift_norm is not None:
            bound = self.factor * largest.upper
            return Maximum(
                bound,
                ABP.with_(Modifier.drift),
                np.full(count, bound),
                (largest, self.drift_norm),
            )
        return Maximum(
            self.factor * largest.upper,
            ABP,
            polar_factor(self.domain, self.measure.points) * largest.upper,
            (largest,),
        )

    def with_barrier(self, barrier: Barrier) -> Maximum:
        """The best multiple of a barrier, with its violation. The multiple is chosen on the coarse
        points, the violation measured on the others too."""
        size, chosen = self.size(), self._choosing_points() & (barrier.minus_operator > 0)
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
            doubt = Norm(
                0.0,
                bound,
                rest * (1 - violation.lower / violation.upper) / (2 * bound)
                if 0 < rest < np.inf
                else 0.0,
            )
            norms = (doubt,) if self.drift_norm is None or rest == 0 else (doubt, self.drift_norm)
            found.append(Maximum(bound, barrier.theorem, K * barrier.value + rest, norms))
        found = [each for each in found if np.isfinite(each.bound)]
        if not found:
            return Maximum(np.inf, barrier.theorem, np.full(len(size), np.inf), ())
        return best_of(found)

    def _choosing_points(self) -> np.ndarray:
        return (
            self.measure.nodes.coarse > 0
            if isinstance(self.measure, Quadrature)
            else np.ones(len(self.measure.points), bool)
        )


@final
class MaximumPrinciple(AbstractMaximumPrinciple):
    """One linear equation: both signs of its residual bound both signs of the error."""

    def sides(self) -> list[np.ndarray]:
        r, rounding = self.evaluated.residual, self.evaluated.rounding
        return [np.maximum(sign * r + rounding, 0.0) for sign in (1.0, -1.0)]

    def size(self) -> np.ndarray:
        return self.evaluated.size

    def minus_operator(self, profile: Profile) -> np.ndarray:
        return minus_operator_of(self.evaluated.local, profile)

    def limits(self) -> Limits:
        return limits_of(self.evaluated.local)


def minus_operator_of(local: Local, profile: Profile) -> np.ndarray:
    """-Lw at points where the coefficients are known."""
    A, b, c = local
    second = np.einsum("nii,ni->n", A, profile.curvature)
    return c * profile.value - second - np.sum(b * profile.gradient, axis=1)


def limits_of(local: Local) -> Limits:
    A, b, c = local
    return Limits(
        np.min(np.einsum("nii->ni", A), axis=0), np.max(np.abs(b), axis=0), float(np.min(c))
    )


def profiles(
    domain: AbstractDomain, points: np.ndarray, limits: Limits, drift: bool
) -> Iterator[Profile]:
    """Ready-made barriers; those with drift take parameters from the points, and are valid for
    any."""
    (n, d), (lower, upper) = points.shape, domain.bounding_box
    center, radius = circumscribed(domain)
    offset = points - center
    yield Profile(
        "paraboloid",
        (radius**2 - np.sum(offset**2, axis=1)) / 2,
        -offset,
        -np.ones((n, d)),
        radius**2 / 2,
    )
    for i in range(d):
        width, s = upper[i] - lower[i], points[:, i] - (upper[i] + lower[i]) / 2

        def along(values: np.ndarray, i: int = i) -> np.ndarray:
            return values[:, None] * np.eye(d)[i]

        yield Profile(
            f"parabola x{i + 1}",
            (width**2 / 4 - s**2) / 2,
            along(-s),
            along(-np.ones(n)),
            width**2 / 8,
        )
        if drift:
            barrier = exponential_barrier(width, float(limits.diagonal[i]), float(limits.drift[i]))
            w, slope, curvature = barrier(s)
            if np.all(np.isfinite(w)):
                yield Profile(
                    f"exponential x{i + 1}",
                    w,
                    along(slope),
                    along(curvature),
                    float(barrier(np.zeros(1))[0][0]),
                )
    if limits.reaction > 0:
        yield Profile("constant", np.ones(n), np.zeros((n, d)), np.zeros((n, d)), 1.0)


def best_of(found: Sequence[Maximum]) -> Maximum:
    """The smallest bound among those that converged."""
    return min(found, key=lambda each: (not each.converged, each.bound))


def maxima(principle: AbstractMaximumPrinciple) -> list[Maximum]:
    """ABP and the ready-made barriers. Barriers are tried with quadrature only: their sizes are
    chosen on its points."""
    found = [principle.estimate()]
    if isinstance(principle.measure, Quadrature):
        for profile in profiles(
            principle.domain,
            principle.measure.points,
            principle.limits(),
            principle.drift_norm is not None,
        ):
            barrier = Barrier(
                profile.name, profile.value, principle.minus_operator(profile), profile.peak
            )
            found.append(principle.with_barrier(barrier))
    return found
