"""Which functions an expansion has, by the level of its size."""

from typing import NamedTuple

import numpy as np

from cordes.ansatz.plane.centers import (
    Smoothness,
    corner_center,
    corner_powers,
    hole_powers,
    inverse_root,
)
from cordes.ansatz.plane.network import Functions
from cordes.ansatz.plane.polynomials import PlanePolynomials
from cordes.ansatz.plane.powers import Center, Powers
from cordes.domains.plane.loops import Corner
from cordes.domains.plane.region import Region
from cordes.solvers.rows.system import AbstractSystem


class BasisSizes(NamedTuple):
    """The degrees of polynomials, of harmonic polynomials, of functions of corners, and the number
    of poles in a hole."""

    polynomial: int
    harmonic: int
    corner: int
    pole: int

    @staticmethod
    def of(level: int, smooth: Smoothness, homogeneous: bool) -> "BasisSizes":
        """Where the frozen equation is the equation, harmonic functions solve it, and polynomials
        are needed for the right-hand side alone."""
        if smooth.varying or smooth.reaction:
            return BasisSizes(10 + 5 * level, 0, 2 + level, 4 + 4 * level)
        plain = 2 if homogeneous else 6 + 4 * level
        return BasisSizes(plain, 20 + 15 * level, 4 + 2 * level, 8 + 6 * level)


class PlaneBasis(NamedTuple):
    """A domain with what of the equation decides about functions: the matrices at the corners, at
    the center and in the holes."""

    domain: Region
    corners: list[Corner]
    matrices: np.ndarray
    smooth: Smoothness
    homogeneous: bool

    @staticmethod
    def of(system: AbstractSystem, domain: Region, homogeneous: bool) -> "PlaneBasis":
        problem = system.problem
        kinks = [
            Corner(kink.location, kink.tangent, -kink.tangent, np.pi)
            for kink in problem.boundary_shape.kinks
        ]
        corners = [*domain.corners, *kinks]
        points = [*(corner.point for corner in corners), domain.center, *domain.holes]
        A = np.asarray(system.coefficients(np.array(points)).A)
        constant = problem.constant_A and problem.linear
        # What κu adds to a flux is one degree higher, as what a bent side does.
        bent = any(not arc.straight or arc.kappa for arc in domain.arcs)
        smooth = Smoothness(not constant or problem.has_drift, problem.has_reaction, bent)
        return PlaneBasis(domain, corners, A, smooth, homogeneous)

    def functions(self, level: int) -> Functions:
        sizes = BasisSizes.of(level, self.smooth, self.homogeneous)
        lower, upper = self.domain.bounding_box
        size = float(np.max(upper - lower))
        families: list[Powers] = []
        count = len(self.corners)
        for corner, A in zip(self.corners, self.matrices, strict=False):
            center, exponents = corner_center(self.domain, corner, A, size)
            families.append(corner_powers(center, exponents, sizes.corner, self.smooth))
        if sizes.harmonic:
            families.append(
                self._harmonic((lower + upper) / 2, self.matrices[count], sizes.harmonic)
            )
        for hole, A in zip(self.domain.holes, self.matrices[count + 1 :], strict=True):
            root = inverse_root(A)
            radius = float(self.domain.gap(hole[None])[0]) * np.linalg.norm(root, 2)
            families.append(
                hole_powers(Center(hole, root / radius, 0.0, A), sizes.pole, self.smooth)
            )
        return Functions(PlanePolynomials(lower, upper, sizes.polynomial), families)

    def flux_weights(self, x: np.ndarray) -> np.ndarray:
        """Derivatives of functions that grow like r^α, α < 1, times r^{1−α} stay bounded."""
        lower, upper = self.domain.bounding_box
        size, weights = float(np.max(upper - lower)), np.ones(len(x))
        for corner, A in zip(self.corners, self.matrices, strict=False):
            exponents = corner_center(self.domain, corner, A, size)[1]
            distance = np.linalg.norm(x - corner.point, axis=1)
            share = np.minimum(4 * distance / size, 1.0)
            weights *= share ** max(1 - exponents.first, 0.0)
        return weights

    def _harmonic(self, middle: np.ndarray, A: np.ndarray, degree: int) -> Powers:
        """Powers of ζ around the middle, at most one in size on the domain."""
        root = inverse_root(A)
        corners = (self.domain.hull.vertices - middle) @ root.T
        center = Center(middle, root / float(np.max(np.linalg.norm(corners, axis=1))), 0.0, A)
        p = np.arange(1.0, degree + 1)
        return Powers(center, p, 0 * p, np.zeros(degree, int))
