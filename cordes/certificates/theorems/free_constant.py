"""No value is given anywhere and c = 0: constants fulfil the homogeneous conditions, and Lu = f + C
has a solution for one number C alone, which is unknown as u is.

Let φ = d/tr A (with M: d/tr(M⁻¹A)), v = u - w, r = f + C_w - Lw and Lv = r + C', C' = C - C_w. The
mean of M:D²v is zero under the conditions, and e = φLv - M:D²v has ‖e‖ ≤ S ‖M:D²v‖ with S = sup ρ'
+ sup|φ M^{-1/2}b|/√μ₂, μ₂ the first eigenvalue above zero. The means of φr + φC' = M:D²v + e give
C', and

    M:D²v = Pφr - Pe,   Px = x - φ mean(x)/mean(φ).

P is a projection along φ: ‖P‖ = k = rms(φ)/mean(φ) ≤ (m + M)/2√(mM) for m ≤ φ ≤ M. So ‖M:D²v‖ ≤
k‖φr‖/(1 - kS) whatever constant r contains. ‖v - mean v‖, ‖∇v‖ and sup|v - mean v| follow with μ₂,
and |C'| ≤ (S ‖M:D²v‖ + ‖φr‖)/(mean φ √|Ω|).
"""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.cell_bounds import CoefficientBall, cell_bound
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Invariants, TraceSplit, Triangle


class FreeConstant(NamedTuple):
    """The multiplier kφ, and the contraction kS."""

    stretch: float
    eigenvalue: float
    theorem: Citation = Citation(Theorem.free)
    lambda_: float = 0.0

    @property
    def _inner(self) -> Triangle:
        return Triangle(0.0, self.eigenvalue)

    def multiplier(self, at: Invariants) -> np.ndarray:
        return self.stretch * TraceSplit().multiplier(at)

    def defects(self, at: Invariants) -> np.ndarray:
        return self.stretch * self._inner.defects(at)[:, :2]


@cell_bound.register
def _free_constant_cells(scheme: FreeConstant, ball: CoefficientBall, column: int) -> np.ndarray:
    return scheme.stretch * cell_bound(scheme._inner, ball, column)


def free_constant(
    coverage: AbstractCoverage, matrix: np.ndarray, eigenvalue: float
) -> FreeConstant | None:
    """None where the limits of φ are not known over the whole domain."""
    if coverage.constant:
        return FreeConstant(1.0, eigenvalue)
    largest, traces = coverage.largest_multiplier(matrix), coverage.largest_trace(matrix)
    if "sampled" in (largest.source, traces.source):
        return None
    ratio = largest.value * traces.value / len(matrix)
    root = math.sqrt(max(ratio, 1.0))
    return FreeConstant((root + 1 / root) / 2 * (1 + 1e-12), eigenvalue)
