"""The domain of the plane whose boundary is made of segments and arcs of ellipses: non-convex
polygons, domains with holes, and what unions, intersections and differences of others are."""

import functools
from collections.abc import Sequence
from typing import final

import equinox as eqx
import numpy as np
from jax import Array

from cordes.domains.checks import check_count, check_size
from cordes.domains.domain import AbstractDomain, Fit, Lift, PointFunction, Scalar
from cordes.domains.plane.arcs import Arc, turned
from cordes.domains.plane.loops import (
    Corner,
    Loop,
    area_of,
    check_loops,
    check_sides,
    corners_of,
    reversed_loop,
)
from cordes.domains.plane.slabs import Graph, Strip, graphs_of, inside, strips_of
from cordes.domains.polygon import Polygon
from cordes.domains.unit_cube import cube_points, gauss_rule, tensor_rule
from cordes.errors import DomainError

# Points of an arc whose convex hull, with the tangents there, holds the arc.
TANGENTS = 64
# Halvings towards a corner.
CLOSEST = 44
NO_DISTANCE = (
    "{domain!r} is not convex, and has no smooth distance function and no lift: its boundary "
    "values are met by rows (method='expansions')."
)


@final
class Region(AbstractDomain):
    """A bounded open set of the plane by the closed chains of arcs (`loops`) around it and around
    its holes. Made by `cordes.Polygon` where that is not convex or has holes, and by `a | b`, `a &
    b` and `a - b`.

    Checked when made: the boundary neither touches nor crosses itself and has no cusps, and the
    domain is in one piece or in several that do not touch.
    """

    loops: tuple[Loop, ...] = eqx.field(static=True)
    said: str = eqx.field(static=True)

    def __init__(self, loops: Sequence[Loop], said: str = ""):
        """`said` is how the domain was written."""
        if not loops:
            raise DomainError("The domain is empty: nothing is left of it.")
        check_sides(sum(map(len, loops)))
        lower, upper = _box([arc for loop in loops for arc in loop])
        check_size("The domain", lower, upper)
        self.loops = _oriented(tuple(tuple(loop) for loop in loops))
        self.said = said or f"Region({len(loops)} loops)"
        check_loops(self.loops, float(np.max(upper - lower)))

    def __repr__(self) -> str:
        return self.said

    @property
    def convex(self) -> bool:
        return False

    @property
    def dimension(self) -> int:
        return 2

    @property
    def arcs(self) -> list[Arc]:
        return [arc for loop in self.loops for arc in loop]

    @property
    def pieces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(arc.piece for arc in self.arcs))

    @property
    def volume(self) -> float:
        return sum(area_of(loop) for loop in self.loops)

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        shape = _shape(self)
        return shape.lower.copy(), shape.upper.copy()

    @property
    def center(self) -> np.ndarray:
        return _shape(self).center.copy()

    @property
    def hull(self) -> Polygon:
        """A convex polygon that holds the domain."""
        return _shape(self).hull

    @property
    def corners(self) -> list[Corner]:
        return _shape(self).corners

    @property
    def holes(self) -> np.ndarray:
        """A point in each hole, (n, 2)."""
        return _shape(self).holes

    @property
    def strips(self) -> list[Strip]:
        return _shape(self).strips

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        points = np.asarray(points, float)
        flat = points.reshape(-1, 2)
        shape = _shape(self)
        found = inside(shape.graphs, flat)
        # The boundary belongs to the closed domain, as far as numbers show where it is.
        reach = max(tolerance, 1e-14 * shape.size)
        for arc in self.arcs:
            unsure = np.flatnonzero(~found)
            found[unsure] = arc.share_of(flat[unsure])[1] <= reach
        return found.reshape(points.shape[:-1])

    def gap(self, points: np.ndarray) -> np.ndarray:
        """The distances of points (n, 2) to the boundary."""
        return np.min([arc.share_of(points)[1] for arc in self.arcs], axis=0)

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        """Points of the bounding box, of which those outside are left out."""
        lower, upper = self.bounding_box
        share = max(self.volume / float(np.prod(upper - lower)), 1e-4)
        asked = int(count / share * 1.3) + 64
        while True:
            points = lower + cube_points(asked, 2, seed, kind) * (upper - lower)
            points = points[inside(_shape(self).graphs, points)]
            if len(points) >= count:
                return points[:count]
            asked *= 2

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gauss points of each strip."""
        square, weights = tensor_rule([gauss_rule(check_count(count)), gauss_rule(count)])
        parts = [(strip.at(*square.T), weights) for strip in self.strips]
        points = np.concatenate([x for (x, _), _ in parts])
        return points, np.concatenate([w * jacobian for (_, jacobian), w in parts])

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(seed)
        lengths = np.array([arc.length for arc in self.arcs])
        chosen = generator.choice(len(lengths), size=check_count(count), p=lengths / lengths.sum())
        shares, points, normals = (
            generator.random(count),
            np.zeros((count, 2)),
            np.zeros((count, 2)),
        )
        for k, arc in enumerate(self.arcs):
            here = chosen == k
            points[here] = arc.at(shares[here])
            outward = turned(arc.direction(shares[here]))
            normals[here] = outward / np.linalg.norm(outward, axis=1, keepdims=True)
        return points, normals

    def graded_points(self, count: int) -> np.ndarray:
        """Points of the boundary, about so many of each arc, closer and closer towards corners."""
        shares = self.graded_shares(count)
        return np.concatenate([arc.at(own) for arc, own in zip(self.arcs, shares, strict=True)])

    def graded_shares(self, count: int) -> list[np.ndarray]:
        """Where on each arc they are."""
        shares = (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) / 2
        near = 2.0 ** -np.arange(4, CLOSEST)
        graded = np.unique(np.concatenate([[0.0], near, shares, 1 - near]))
        sharp = {tuple(corner.point.tolist()) for corner in self.corners}
        return [graded if {arc.start, arc.end} & sharp else shares for arc in self.arcs]

    # What only convex domains have.

    def distance(self, x: Array) -> Scalar:
        raise DomainError(NO_DISTANCE.format(domain=self))

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        raise DomainError(
            f"{self!r} is not convex: a ray from its center may meet the boundary several times."
        )

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        raise DomainError(NO_DISTANCE.format(domain=self))


class _Shape:
    """What is computed once of a domain."""

    def __init__(self, loops: tuple[Loop, ...]):
        arcs = [arc for loop in loops for arc in loop]
        self.lower, self.upper = _box(arcs)
        self.size = float(np.max(self.upper - self.lower))
        self.graphs: list[Graph] = graphs_of(loops)
        self.strips = strips_of(self.graphs)
        self.corners = corners_of(loops)
        self.hull = _hull(arcs)
        self.holes = np.array(
            [_well_inside([reversed_loop(loop)]) for loop in loops if area_of(loop) < 0]
        ).reshape(-1, 2)
        self.center = _well_inside(loops)


def _box(arcs: list[Arc]) -> tuple[np.ndarray, np.ndarray]:
    parts = [part for arc in arcs for part in arc.cut([*arc.turns(0), *arc.turns(1)])]
    ends = np.array([end for part in parts for end in (part.start, part.end)])
    return np.min(ends, axis=0), np.max(ends, axis=0)


@functools.lru_cache(maxsize=256)
def _shape_of(loops: tuple[Loop, ...]) -> _Shape:
    return _Shape(loops)


def _shape(domain: Region) -> _Shape:
    return _shape_of(domain.loops)


def _well_inside(loops: Sequence[Loop]) -> np.ndarray:
    """About the point inside that is farthest from the boundary: the best of many, then of those
    around it."""
    arcs = [arc for loop in loops for arc in loop]
    graphs = graphs_of(tuple(loops))
    square, _ = tensor_rule([gauss_rule(12), gauss_rule(12)])
    points = np.concatenate([strip.at(*square.T)[0] for strip in strips_of(graphs)])
    reach, best = float(np.max(np.ptp(points, axis=0))) / 8, points[0]
    for _ in range(24):
        gap = np.min([arc.share_of(points)[1] for arc in arcs], axis=0)
        best = points[int(np.argmax(gap))]
        around = best + reach * (2 * square - 1)
        points = np.concatenate([best[None], around[inside(graphs, around)]])
        reach /= 2
    return best


def _oriented(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The domain on the left: loops inside an odd number of others run the other way round."""
    found = []
    for k, loop in enumerate(loops):
        others = [other for j, other in enumerate(loops) if j != k]
        point = loop[0].at(np.array([0.5]))
        around = sum(bool(inside(graphs_of((other,)), point)[0]) for other in others)
        positive = area_of(loop) > 0
        found.append(loop if positive == (around % 2 == 0) else reversed_loop(loop))
    return tuple(found)


def _hull(arcs: list[Arc]) -> Polygon:
    """Of all vertices, and of the meeting points of tangents along curved arcs."""
    points = [np.array(arc.start) for arc in arcs]
    for arc in arcs:
        if arc.v is not None:
            half = abs(arc.last - arc.first) / TANGENTS / 2
            middles = arc.first + (np.arange(TANGENTS) + 0.5) * (arc.last - arc.first) / TANGENTS
            spoke = np.stack([np.cos(middles), np.sin(middles)], axis=1) / np.cos(half)
            points += list(np.array(arc.a) + spoke @ np.array([arc.u, arc.v]))
    return Polygon(convex_hull(np.array(points)))


def convex_hull(points: np.ndarray) -> np.ndarray:
    """The vertices of the convex hull, counter-clockwise, without those where it hardly turns."""
    ordered = sorted(set(map(tuple, points.tolist())))
    size = float(np.max(np.ptp(points, axis=0)))

    def half(given: list) -> list:
        chain: list = []
        for point in given:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    hull = np.array(half(ordered) + half(ordered[::-1]))
    return _thinned(hull, size)


def _turn(a: tuple, b: tuple, c: tuple) -> float:
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])


def _thinned(hull: np.ndarray, size: float) -> np.ndarray:
    """Vertices at which the hull turns by rounding alone are left out; the rest is moved outwards
    by more than that."""
    kept = list(map(tuple, hull.tolist()))
    changed = True
    while changed and len(kept) > 3:
        changed = False
        for k in range(len(kept)):
            a, b, c = kept[k - 1], kept[k], kept[(k + 1) % len(kept)]
            lengths = np.hypot(*np.subtract(b, a)) * np.hypot(*np.subtract(c, b))
            if _turn(a, b, c) <= 1e-9 * lengths or np.hypot(*np.subtract(b, a)) <= 1e-9 * size:
                kept.pop(k)
                changed = True
                break
    array = np.array(kept)
    middle = np.mean(array, axis=0)
    return middle + (1 + 1e-8) * (array - middle)
