"""The two sides of theorem T4: what f_w^{1/d} - f^{1/d} is at points, rounded up, and what its
norms say about u - w."""

from typing import NamedTuple

import numpy as np

from cordes.certificates.residual.norms import Norm
from cordes.domains.constants import largest_polar_factor, polar_factor
from cordes.domains.domain import AbstractDomain

EPSILON = float(np.finfo(np.float64).eps)
# The lower limit of a determinant's root is trusted up to this relative rounding; beyond it is
# zero.
TRUSTED = 0.25


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

    def pointwise(self, domain: AbstractDomain, x: np.ndarray) -> np.ndarray:
        """The bound of |u - w| at points."""
        factor = domain.dimension * polar_factor(domain, x)
        square = np.sum((x - self.center) ** 2, axis=1)
        above = self.shift / 2 * square + factor * self.upper.upper
        below = (
            self.shift / 2 * np.maximum(self.radius**2 - square, 0.0) + factor * self.lower.upper
        )
        return np.maximum(above, below) * (1 + 4 * EPSILON) + self.gap

    def largest(self, domain: AbstractDomain) -> float:
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


def root_differences(local: Densities, shift: float) -> tuple[np.ndarray, np.ndarray]:
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
