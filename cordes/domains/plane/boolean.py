"""Unions, intersections and differences of domains of the plane. The boundary of the result is made
of parts of both boundaries; which ones, a point in the middle of each part says."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.arcs import Arc, boxes_of, full_ellipse, meetings, near_boxes, segment
from cordes.domains.plane.loops import NEAR, Loop, area_of, chained, check_sides
from cordes.domains.plane.region import Region
from cordes.domains.plane.slabs import graphs_of, inside
from cordes.domains.polygon import Polygon
from cordes.domains.round import Ball, Ellipsoid
from cordes.errors import DomainError


@functools.singledispatch
def loops_of(domain: Any) -> tuple[Loop, ...]:
    """The boundary of a domain of the plane as arcs."""
    what = "in the plane" if isinstance(domain, AbstractDomain) else "of this kind"
    raise DomainError(
        f"{domain!r} cannot be combined with |, & or -: boxes, balls, ellipsoids and polygons of "
        f"the plane can be, {what} nothing else."
    )


def _polygonal(vertices: np.ndarray) -> tuple[Loop, ...]:
    following = np.roll(vertices, -1, axis=0)
    return (tuple(map(segment, vertices, following)),)


@loops_of.register
def _(domain: Box) -> tuple[Loop, ...]:
    if domain.vertices is None:
        raise DomainError(
            f"{domain!r} has {domain.dimension} dimensions: |, & and - are for the plane."
        )
    return _polygonal(domain.vertices)


@loops_of.register
def _(domain: Polygon) -> tuple[Loop, ...]:
    return _polygonal(domain.vertices)


@loops_of.register(Ball)
@loops_of.register(Ellipsoid)
def _(domain: Ball | Ellipsoid) -> tuple[Loop, ...]:
    if domain.dimension != 2:
        raise DomainError(
            f"{domain!r} has {domain.dimension} dimensions: |, & and - are for the plane."
        )
    return (tuple(full_ellipse(domain.center, domain.matrix)),)


@loops_of.register
def _(domain: Region) -> tuple[Loop, ...]:
    return domain.loops


def union(one: AbstractDomain, two: AbstractDomain) -> Region:
    return _combined(one, two, "|", lambda a, b: a | b)


def intersection(one: AbstractDomain, two: AbstractDomain) -> Region:
    return _combined(one, two, "&", lambda a, b: a & b)


def difference(one: AbstractDomain, two: AbstractDomain) -> Region:
    return _combined(one, two, "-", lambda a, b: a & ~b)


def _combined(one: AbstractDomain, two: AbstractDomain, sign: str, rule: Callable) -> Region:
    first, second = loops_of(one), loops_of(two)
    check_sides(sum(map(len, (*first, *second))))
    said = f"({one!r} {sign} {two!r})"
    # Not their bounding boxes: of a part of a large union nothing else is computed.
    around = boxes_of([arc for loop in (*first, *second) for arc in loop]).reshape(-1, 2)
    size = float(np.max(np.ptp(around, axis=0)))
    cuts = [arc for loop in first for arc in loop], [arc for loop in second for arc in loop]
    both = [_split(own, other, size) for own, other in (cuts, cuts[::-1])]
    graphs = graphs_of(first), graphs_of(second)
    kept: list[Arc] = []
    for which, parts in enumerate(both):
        others = both[1 - which]
        boxes = boxes_of(others)
        for part in parts:
            found = _kept(part, which, others, boxes, graphs, rule, size)
            kept += [] if found is None else [found]
    if not kept:
        raise DomainError(f"{said} is empty: nothing is left of it.")
    loops = chained(kept, size)
    return Region(named(loops), said)


def _split(own: list[Arc], others: list[Arc], size: float) -> list[Arc]:
    """Arcs cut where the other boundary meets them."""
    found: list[Arc] = []
    close = near_boxes(boxes_of(own), boxes_of(others), 10 * NEAR * size)
    for arc, row in zip(own, close, strict=True):
        shares: list[float] = []
        for other in (others[k] for k in np.flatnonzero(row)):
            ends = np.array([other.start, other.end])
            points = np.concatenate([meetings(arc, other), ends])
            share, gap = arc.share_of(points)
            on_other = other.share_of(points)[1]
            near = (gap <= NEAR * size) & (on_other <= NEAR * size)
            shares += share[near].tolist()
        found += arc.cut(_apart(shares, NEAR * size / max(arc.length, 1e-300)))
    return found


def _apart(shares: list[float], near: float) -> list[float]:
    """Shares inside the arc, each one once."""
    found: list[float] = []
    for share in sorted(shares):
        if near < share < 1 - near and (not found or share - found[-1] > near):
            found.append(share)
    return found


def _kept(
    part: Arc,
    which: int,
    others: list[Arc],
    boxes: np.ndarray,
    graphs: tuple,
    rule: Callable,
    size: float,
) -> Arc | None:
    """A part of a boundary as one of the result, with the domain on its left, or None."""
    middle = part.at(np.array([0.5]))
    direction = part.direction(np.array(0.5))
    shared = None
    place = np.stack([middle, middle], axis=1)
    for k in np.flatnonzero(near_boxes(place, boxes, 100 * NEAR * size)[0]):
        other = others[k]
        (share,), (gap,) = other.share_of(middle)
        if gap <= 10 * NEAR * size and 0 <= share <= 1:
            ahead = other.direction(share)
            cosine = abs(ahead @ direction) / np.linalg.norm(ahead) / np.linalg.norm(direction)
            shared = bool(ahead @ direction > 0) if cosine > 1 - 1e-6 else None
    if shared is None:
        there = bool(inside(graphs[1 - which], middle)[0])
        left, right = (True, there), (False, there)
    elif which == 1:
        return None  # It comes with the first boundary.
    else:
        left, right = (True, shared), (False, not shared)
    if which == 1:
        left, right = left[::-1], right[::-1]
    on_left, on_right = rule(*map(np.bool_, left)), rule(*map(np.bool_, right))
    if on_left == on_right:
        return None
    return part if on_left else part.reversed()


def named(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """`outer` around the domain, `hole 1`, `hole 2`, … around holes."""
    found, holes = [], 0
    for loop in loops:
        holes += area_of(loop) < 0
        piece = f"hole {holes}" if area_of(loop) < 0 else "outer"
        found.append(tuple(arc._replace(piece=piece) for arc in loop))
    return tuple(found)
