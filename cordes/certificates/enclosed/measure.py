"""Integrals over a domain that nothing can hide from: Gauss rules on cells where the integrand is
analytic, with what they leave out proved, and volume times supremum on the rest."""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.enclosed.abstract import RHO, Smooth, Undecided, Weight
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import Norm

Array = np.ndarray


def left_out(bound: Array, orders: Array, volume: Array) -> Array:
    """What Gauss rules leave out of an integral, summed over the axes, for an integrand with the
    given bound (K, d, R) on the ellipses: with n ≥ 2 points 64/15 M ρ^(-2n)/(1 - ρ^-2) on (-1, 1),
    since the error is Σ a_k (I - I_n)(T_k) over even k ≥ 2n, |a_k| ≤ 2M ρ^-k, and the difference
    for T_k is at most 2 + 2/(k² - 1)."""
    with np.errstate(all="ignore"):
        each = 64 / 15 * bound * RHO ** (-2.0 * orders[..., None]) / (1 - RHO**-2)
    least = np.min(np.where(np.isnan(each), np.inf, each), axis=2)
    return volume / 2 * np.sum(least, axis=1)


class EnclosedMeasure(NamedTuple):
    """The points of the Gauss rules with their weights in the domain, what is known at them, and
    the cells."""

    points: Array
    weights: Array
    evaluated: Evaluated
    smooth: Smooth
    rough: Undecided | None

    @np.errstate(all="ignore")
    def norm_of(self, weight: Weight, power: int = 2, residual: bool = True) -> Norm:
        """Limits of the Lᵖ norm of weight · r (or of the weight alone); odd powers through those
        next to them."""
        if power % 2:
            return self._odd(weight, power, residual)
        at = weight.at(self.points, self.evaluated.local)
        sizes = [at * self.evaluated.size, at * self.evaluated.least] if residual else [at, at]
        high, low = (self._gauss(each, power) for each in sizes)
        surplus = self._left_out(weight, power, residual)
        total = high + surplus + self._rough(weight, power, residual)
        lower, upper = (max(value, 0.0) ** (1 / power) for value in (low - surplus, total))
        return Norm(lower, upper, enclosed=math.isfinite(upper))

    def excess(self, weight: Weight) -> float:
        """How many times what the points show the norm of weight · r may be."""
        at = weight.at(self.points, self.evaluated.local) * self.evaluated.size
        shown = math.sqrt(self._gauss(at, 2))
        return self.norm_of(weight).upper / shown if shown > 0 else math.inf

    def _odd(self, weight: Weight, power: int, residual: bool) -> Norm:
        """∫|h| ≤ (|Ω| ∫h²)^½ and ∫|h|³ ≤ (∫h² ∫h⁴)^½."""
        square = self.norm_of(weight, 2, residual)
        if power == 1:
            rough = 0.0 if self.rough is None else float(np.sum(self.rough.volume))
            volume = float(np.sum(self.weights)) + rough
            return square._replace(lower=0.0, upper=square.upper * math.sqrt(volume * (1 + 1e-9)))
        fourth = self.norm_of(weight, power + 1, residual)
        upper = (square.upper * fourth.upper**2) ** (1 / 3)
        return Norm(0.0, upper, enclosed=math.isfinite(upper))

    def _gauss(self, values: Array, power: int) -> float:
        # Scaled first: high powers of small residuals underflow.
        scale = float(np.max(np.abs(values), initial=0.0))
        if scale == 0 or not math.isfinite(scale):
            return scale
        return scale**power * float(np.sum(self.weights * (np.abs(values) / scale) ** power))

    def _left_out(self, weight: Weight, power: int, residual: bool) -> float:
        cells = self.smooth
        with np.errstate(all="ignore"):
            size = weight.squared(cells.equation).size().reshape(cells.residual.shape)
            bound = size ** (power / 2) * cells.jacobian
            bound = bound * cells.residual**power if residual else bound
        return float(np.sum(left_out(bound, cells.orders, cells.volume)))

    def _rough(self, weight: Weight, power: int, residual: bool) -> float:
        cells = self.rough
        if cells is None:
            return 0.0
        with np.errstate(all="ignore"):
            size = np.sqrt(weight.squared(cells.equation).size())
            each = (size * (cells.residual if residual else 1.0)) ** power
            total = cells.volume * np.max(np.where(np.isnan(each), np.inf, each), axis=1)
        return float(np.sum(total))
