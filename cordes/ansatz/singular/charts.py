"""Coordinates in which a smooth boundary and the interface that meets it are straight, and the
factor by which singular functions vanish on edges that do not touch their point.

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
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.singular.points import SingularPoint, edges_away
from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, composed, jet_of, product
from cordes.runtime.blocks import in_blocks

# The guard vanishes to twice this order, so that nothing is felt there of functions with two
# derivatives.
GUARD = 3

# Jets of D and of φ at points.
Curves = Callable[[np.ndarray], tuple[Jet, Jet]]


def curves(domain: AbstractDomain, interfaces: Sequence[Callable]) -> list[Curves]:
    """For each interface the jets from which charts are made; compiled when they are first used."""
    return [curves_of(domain.distance, phi) for phi in interfaces]


def curves_of(distance: Callable, phi: Callable) -> Curves:
    compiled = jax.jit(jax.vmap(lambda x: (jet_of(distance)(x), jet_of(phi)(x))))
    return lambda x: in_blocks(compiled, (x,))


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
        self.location, self.others = np.asarray(point.location), np.asarray(point.others)
        self.seen = both
        inverse = np.linalg.inv(np.concatenate([jet.gradient for jet in both(self.location[None])]))
        mean = np.mean(point.matrices, axis=0)
        linear = np.linalg.det(mean) ** 0.25 * np.linalg.inv(np.linalg.cholesky(mean))
        self._to_plane = linear @ inverse
        self.local = self._seen(point, linear)

    def _seen(self, point: SingularPoint, linear: np.ndarray) -> SingularPoint:
        """The point in the chart. The middle ray is where φ = 0 < D, the others are where D = 0."""
        if point.kink:
            x, y = linear @ np.stack([np.cos(point.rays), np.sin(point.rays)])
            turns = np.unwrap(np.arctan2(y, x))
            turns[-1] = turns[0] + np.pi
            return point._replace(rays=turns, matrices=linear @ point.matrices @ linear.T)
        ray, tangent = self._to_plane.T
        if tangent[0] * ray[1] - tangent[1] * ray[0] < 0:
            tangent = -tangent
        start = np.arctan2(tangent[1], tangent[0])
        offset = (np.arctan2(ray[1], ray[0]) - start) % (2 * np.pi)
        return point._replace(
            rays=start + np.array([0.0, offset, np.pi]), matrices=linear @ point.matrices @ linear.T
        )

    def place(self, jets: Sequence[Jet]) -> ChartPlace:
        """Points at which `seen` gives these jets of D and φ."""
        value, gradient, hessian = (np.stack(parts, axis=1) for parts in zip(*jets, strict=True))
        y = self.location + value @ self._to_plane.T
        return ChartPlace(
            y, self._to_plane @ gradient, np.einsum("kl,nlij->nkij", self._to_plane, hessian)
        )

    def guard(self, x: np.ndarray) -> Jet:
        """Π Pᵏ over the other points q where the interface meets the boundary, P = |x - q|²/(|x -
        q|² + |x - p|²): one at p, zero at q, smooth."""
        total = _one(len(x))
        for other in self.others:
            far, near = x - other, x - self.location
            below = np.sum(far**2 + near**2, axis=1)
            P, down = np.sum(far**2, axis=1) / below, 2 * (far + near)
            slope = (2 * far - P[:, None] * down) / below[:, None]
            cross = slope[:, :, None] * down[:, None]
            bend = (
                (2 - 4 * P)[:, None, None] * np.eye(2) - cross - np.swapaxes(cross, 1, 2)
            ) / below[:, None, None]
            first, second = GUARD * P ** (GUARD - 1), GUARD * (GUARD - 1) * P ** (GUARD - 2)
            total = product(total, composed((P**GUARD, first, second), Jet(P, slope, bend)))
        return total


class BoundaryFactor:
    """B = 1 - (1 - P)^4 with P the product of the distances to the edges that do not touch the
    point (D where edges are curved), P = 1 at the point.

    B vanishes where P does and is 1 up to fourth order at the point, so that B·r^β Θ is still the
    leading term and spoils none of the next ones. On a smooth boundary r^β Θ itself vanishes
    everywhere on it, and B is the guard of the chart.
    """

    def __init__(self, domain: AbstractDomain, point: SingularPoint, chart: Chart | None = None):
        self.curved, self.chart = None, chart
        self.guarded = chart is not None and domain.vertices is None
        if self.guarded:
            return
        if domain.vertices is None:
            at_point = float(domain.distance(jnp.asarray(point.location)))
            self.curved = jax.jit(jax.vmap(jet_of(lambda x: domain.distance(x) / at_point)))
            return
        self.starts, normals, heights = edges_away(domain.vertices, point.location)
        self.slopes = normals / heights[:, None]

    def seen(self, x: np.ndarray) -> tuple[Jet, ...]:
        """The jets of curves at points, as far as there are any."""
        if self.chart is not None:
            return self.chart.seen(x)
        return () if self.curved is None else (self.curved(x),)

    def jet(self, x: np.ndarray, seen: tuple[Jet, ...]) -> Jet:
        if self.guarded and self.chart is not None:
            return self.chart.guard(x)
        if self.curved is not None:
            P = Jet(*map(np.asarray, seen[0]))
        else:
            P = _one(len(x))
            for slope, start in zip(self.slopes, self.starts, strict=True):
                P = product(P, Jet((x - start) @ slope, slope, np.zeros((2, 2))))
        rest = 1 - P.value
        return composed((1 - rest**4, 4 * rest**3, -12 * rest**2), P)


def _one(count: int) -> Jet:
    """The function one at points of the plane."""
    return Jet(np.ones(count), np.zeros((count, 2)), np.zeros((count, 2, 2)))
