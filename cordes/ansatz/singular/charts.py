"""Coordinates in which a smooth boundary and the interface that meets it are straight.

Where an interface φ = 0 meets a smooth boundary D = 0 in a point p, the solution has the
singularities of the tangent half-plane, bent as the boundary and the interface are. In the
coordinates y(x) with

    n·(y - p) = D(x)/|∇D(p)|        m·(y - p) = φ(x)/|∇φ(p)|        n, m the unit normals of
    boundary and interface at p

both are straight: D = 0 is the tangent, φ = 0 a ray. There dy/dx = 1 at p, so exponents and angular
functions are those of the half-plane with A frozen at p, and what the curvature adds are terms of
higher order. A function of y that vanishes on the tangent vanishes on the whole boundary. A linear
map after it makes the mean of the sectors' matrices a multiple of the identity: where A does not
jump, r and θ are those of the Laplacian.

The other points where D and φ are both zero go to p as well. There the functions of y would be
singular too, in a wrong way: the guard is zero there.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from cordes.ansatz.singular.points import SingularPoint
from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, jet_of
from cordes.runtime.blocks import in_blocks

# The guard vanishes to twice this order, so that nothing is felt there of functions with two
# derivatives.
GUARD = 3

# Jets of D and of φ at points.
Curves = Callable[[np.ndarray], tuple[Jet, Jet]]


def curves(domain: AbstractDomain, interfaces: Sequence[Callable]) -> list[Curves]:
    """For each interface the jets from which charts are made; compiled when they are first used."""

    def pair(phi: Callable) -> Curves:
        compiled = jax.jit(jax.vmap(lambda x: (jet_of(domain.distance)(x), jet_of(phi)(x))))
        return lambda x: in_blocks(compiled, (x,))

    return [pair(phi) for phi in interfaces]


class ChartPlace(NamedTuple):
    """Points in a chart: y (N, 2), the Jacobian matrices dy/dx (N, 2, 2) and the second derivatives
    (N, 2, 2, 2), coordinate first."""

    y: np.ndarray
    jacobian: np.ndarray
    bend: np.ndarray

    def forms(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients in y of first·∇F + second:D²F."""
        along = np.einsum("nki,ni->nk", self.jacobian, first) + np.einsum(
            "nij,nkij->nk", second, self.bend
        )
        return along, self.jacobian @ second @ np.swapaxes(self.jacobian, 1, 2)

    def pulled_back(self, jet: Jet) -> Jet:
        """The jet in x of a function whose jet in y is known."""
        gradient = np.einsum("nki,nk->ni", self.jacobian, jet.gradient)
        hessian = np.swapaxes(self.jacobian, 1, 2) @ jet.hessian @ self.jacobian + np.einsum(
            "nk,nkij->nij", jet.gradient, self.bend
        )
        return Jet(jet.value, gradient, hessian)


class Chart:
    """The coordinates around one point."""

    def __init__(self, point: SingularPoint, both: Curves):
        self.location, self.others, self._both = (
            np.asarray(point.location),
            np.asarray(point.others),
            both,
        )
        inverse = np.linalg.inv(np.concatenate([jet.gradient for jet in both(self.location[None])]))
        mean = np.mean(point.matrices, axis=0)
        linear = np.linalg.det(mean) ** 0.25 * np.linalg.inv(np.linalg.cholesky(mean))
        self._to_plane = linear @ inverse
        self.local = self._seen(point, linear)

    def _seen(self, point: SingularPoint, linear: np.ndarray) -> SingularPoint:
        """The point in the chart. The middle ray is where φ = 0 < D, the others are where D = 0."""
        ray, tangent = self._to_plane.T
        if tangent[0] * ray[1] - tangent[1] * ray[0] < 0:
            tangent = -tangent
        start = np.arctan2(tangent[1], tangent[0])
        offset = (np.arctan2(ray[1], ray[0]) - start) % (2 * np.pi)
        return point._replace(
            rays=start + np.array([0.0, offset, np.pi]), matrices=linear @ point.matrices @ linear.T
        )

    def seen(self, x: np.ndarray) -> tuple[Jet, Jet]:
        """The jets of D and φ from which `place` is made."""
        return self._both(x)

    def place(self, jets: Sequence[Jet]) -> ChartPlace:
        value, gradient, hessian = (np.stack(parts, axis=1) for parts in zip(*jets, strict=True))
        y = self.location + value @ self._to_plane.T
        return ChartPlace(
            y, self._to_plane @ gradient, np.einsum("kl,nlij->nkij", self._to_plane, hessian)
        )

    def guard(self, x: np.ndarray) -> Jet:
        """Π Pᵏ over the other points q where the interface meets the boundary, P = |x - q|²/(|x -
        q|² + |x - p|²): one at p, zero at q, smooth."""
        total = Jet(np.ones(len(x)), np.zeros((len(x), 2)), np.zeros((len(x), 2, 2)))
        for other in self.others:
            far, near = x - other, x - self.location
            below = np.sum(far**2 + near**2, axis=1)
            P, down = np.sum(far**2, axis=1) / below, 2 * (far + near)
            slope = (2 * far - P[:, None] * down) / below[:, None]
            cross = slope[:, :, None] * down[:, None]
            bend = (
                (2 - 4 * P)[:, None, None] * np.eye(2) - cross - np.swapaxes(cross, 1, 2)
            ) / below[:, None, None]
            outer = slope[:, :, None] * slope[:, None]
            first, second = GUARD * P ** (GUARD - 1), GUARD * (GUARD - 1) * P ** (GUARD - 2)
            power = (
                P**GUARD,
                first[:, None] * slope,
                first[:, None, None] * bend + second[:, None, None] * outer,
            )
            total = product(total, Jet(*power))
        return total


def product(left: Jet, right: Jet) -> Jet:
    """The jet of a product of functions at points."""
    a, b = np.asarray(left.value), np.asarray(right.value)
    cross = left.gradient[:, :, None] * right.gradient[:, None]
    gradient = b[:, None] * left.gradient + a[:, None] * right.gradient
    hessian = (
        b[:, None, None] * left.hessian
        + a[:, None, None] * right.hessian
        + cross
        + np.swapaxes(cross, 1, 2)
    )
    return Jet(a * b, gradient, hessian)
