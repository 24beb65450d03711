"""Norms over the domain with an upper and a lower limit each, and the level at which these limits
hold.

`quadrature`: composite Gauss rules with n and 2n points per direction agree to one per cent; the
sum of their differences in single cells is added to the integral. Numerically converged, not
proved. `statistical`: independent uniform points; the limits hold with the stated confidence, by
the empirical Bernstein inequality where a bound of the integrand is known, else by the normal
approximation, which is labelled `asymptotic` and refused where too few of the points carry the
integral, as they do for high powers.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from cordes.certificates.residual.cells import CellNodes

# n and 2n points must agree to this share of the norm.
AGREEMENT = 0.01
# The integral may be off by the difference of the rules and by this multiple of the root of the sum
# of its squares over the cells.
SAFETY = 3.0
# The normal approximation needs (Σ|v|ᵖ)²/Σ|v|²ᵖ to be this large. With 40 the fifth to tenth powers
# of normal values miss their mean thirty times too often.
FEWEST = 500
# A largest value that is so many times the smallest belongs to a pole, to which cells were refined
# without end: no number of points sees how large it is.
HUGE = 1e120
# A bound whose norms are not enclosed must be so many times smaller than one whose norms are.
UNENCLOSED = 1.5
UNRESOLVED_REMEDY = (
    "a jump or a peak may be unresolved: declare the interface, or solve more accurately"
)


class Norm(NamedTuple):
    """Limits of a norm. `spread` is the relative difference of n and 2n points, zero where there is
    none; `enclosed` says that nothing can hide from them (`certificates/enclosed`)."""

    lower: float
    upper: float
    spread: float = 0.0
    enclosed: bool = False

    @property
    def converged(self) -> bool:
        return self.spread <= AGREEMENT


def bounded(values: np.ndarray, ratio: float = HUGE) -> bool:
    """Whether the largest value is a finite number, and not so many times the smallest that it is
    one of a pole."""
    size = np.abs(values)
    largest = float(np.max(size, initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest == 0
    return largest / ratio < float(np.min(size[size > 0]))


class Quadrature(NamedTuple):
    """A rule with n points per direction (`coarse`) and one with 2n (`fine`), on the same cells."""

    nodes: CellNodes
    level: str = "quadrature"
    confidence: float | None = None

    @property
    def points(self) -> np.ndarray:
        return self.nodes.x

    def norm(self, values: np.ndarray, power: float = 2.0, bound: float | None = None) -> Norm:
        """The Lᵖ norm of values at the points."""
        scale = float(np.max(np.abs(values), initial=0.0))
        if scale == 0 or not bounded(values):
            return Norm(0.0, 0.0) if scale == 0 else Norm(0.0, math.inf, math.inf)
        # Scaled first: high powers of small residuals underflow.
        density, cell = (np.abs(values) / scale) ** power, self.nodes.cell
        weights = self.nodes.coarse, self.nodes.fine
        coarse, fine = (np.bincount(cell, weight * density) for weight in weights)
        # Differences in many cells cancel by accident, as independent errors do; few large ones, at
        # a peak or a pole, need not, and miss more than they show.
        doubt = abs(float(np.sum(fine - coarse))) + SAFETY * float(np.linalg.norm(fine - coarse))
        total = float(np.sum(fine))

        def norm(integral: float) -> float:
            return scale * max(integral, 0.0) ** (1 / power)

        value = norm(total)
        difference = abs(value - norm(float(np.sum(coarse))))
        lower = max(min(norm(total - doubt), value - difference), 0.0)
        upper = max(norm(total + doubt), value + difference)
        return Norm(lower, upper, difference / value if value > 0 else math.inf)


class Sample(NamedTuple):
    """Independent uniform points of a domain of the given volume; the limits of `count` norms hold
    together with the given confidence."""

    points: np.ndarray
    volume: float
    confidence: float
    count: int
    proved: bool = False

    @property
    def level(self) -> str:
        return "statistical" if self.proved else "statistical (asymptotic)"

    def norm(self, values: np.ndarray, power: float = 2.0, bound: float | None = None) -> Norm:
        """Limits of the Lᵖ norm; `bound` is a proved bound of |values| over the whole domain."""
        size, failure = len(values), (1 - self.confidence) / (2 * self.count)
        scale = float(np.max(np.abs(values), initial=0.0))
        if not bounded(values):
            return Norm(0.0, math.inf, math.inf)
        if scale == 0 and bound is None:
            return Norm(0.0, 0.0)
        scale = scale or 1.0
        density = (np.abs(values) / scale) ** power
        mean, deviation = float(np.mean(density)), float(np.std(density, ddof=1))
        if self.proved:
            assert bound is not None
            # Maurer and Pontil 2009, theorem 4, for values in [0, (bound/scale)^power]; the same
            # inequality for 1 - X gives the lower limit.
            logarithm, largest = math.log(2 / failure), (bound / scale) ** power
            reach = math.sqrt(2 * deviation**2 * logarithm / size)
            reach += 7 * largest * logarithm / (3 * (size - 1))
        else:
            if float(np.sum(density)) ** 2 < FEWEST * float(np.sum(density**2)):
                return Norm(0.0, math.inf, math.inf)
            quantile = float(-ndtri(failure))
            skewness = float(np.mean(((density - mean) / deviation) ** 3)) if deviation > 0 else 0.0
            # Johnson 1978: skewed values pull the mean and the deviation of a sample down together.
            correction = max(skewness, 0.0) * deviation / (6 * size) * (2 * quantile**2 + 1)
            reach = quantile * deviation / math.sqrt(size) + correction
        ends = (mean - reach, mean + reach)
        return Norm(*(scale * (self.volume * max(end, 0.0)) ** (1 / power) for end in ends))


Measure = Quadrature | Sample


def unresolved(measure: Measure, spread: float) -> str:
    """Why a norm is not given."""
    if spread == math.inf and isinstance(measure, Quadrature):
        pole = "it has a pole, to which the points were refined without end"
        return f"{pole}; f must be square integrable"
    if isinstance(measure, Sample):
        few = f"too few of the {len(measure.points):,} independent points"
        return f"{few} carry it for the normal approximation"
    return f"n and 2n points per direction differ by {100 * spread:.2g} %"


def fixed_rule(x: np.ndarray, weight: np.ndarray) -> Quadrature:
    """One rule that is trusted as it is, for integrands it integrates exactly."""
    return Quadrature(CellNodes(x, weight, weight, np.zeros(len(x), int), np.zeros_like(x)))
