"""Closed chains of arcs: put together, looked at for crossings, and where their corners are."""

import math
from typing import NamedTuple

import numpy as np

from cordes.domains.plane.arcs import Arc, boxes_of, meetings, near_boxes
from cordes.errors import DomainError
from cordes.runtime.plain import show

Loop = tuple[Arc, ...]
# Points nearer than this share of the size of the domain are one.
NEAR = 1e-10
# An angle nearer to 180 degrees is none, and one nearer to 0 or 360 a cusp: circles that touch are
# found to overlap by 1e-8, the root of what is rounded.
FLAT, CUSP = 1e-8, 1e-5
# All pairs of sides are looked at, by time and memory alike.
MOST_SIDES = 150


class Corner(NamedTuple):
    """A corner of the boundary: the unit vectors along the side that begins there and back along
    the one that ends there, the angle of the domain between them, and whether u is given on the one
    and on the other (else a flux)."""

    point: np.ndarray
    ahead: np.ndarray
    back: np.ndarray
    angle: float
    given: tuple[bool, bool] = (True, True)

    @property
    def straightens(self) -> bool:
        """Whether u has bounded second derivatives there at most: at angles below 180° between two
        fluxes or two values, and up to 90° between a value and a flux."""
        mixed = self.given[0] != self.given[1]
        return self.angle <= (math.pi / 2 + FLAT if mixed else math.pi - FLAT)


def area_of(loop: Loop) -> float:
    return sum(arc.swept for arc in loop)


def reversed_loop(loop: Loop) -> Loop:
    return tuple(arc.reversed() for arc in reversed(loop))


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def corners_of(loops: tuple[Loop, ...]) -> list[Corner]:
    """Those of all loops; a point where the boundary and its condition go on smoothly is none."""
    found = []
    for loop in loops:
        for before, after in zip((loop[-1], *loop[:-1]), loop, strict=True):
            ahead = _unit(after.direction(np.array(0.0)))
            back = -_unit(before.direction(np.array(1.0)))
            angle = math.atan2(back[1], back[0]) - math.atan2(ahead[1], ahead[0])
            angle %= 2 * math.pi
            if abs(angle - math.pi) > FLAT or before.kappa != after.kappa:
                given = after.kappa is None, before.kappa is None
                found.append(Corner(np.array(after.start), ahead, back, angle, given))
    return found


def check_sides(sides: int) -> None:
    """To be asked before anything is done for so many sides."""
    if sides > MOST_SIDES:
        raise DomainError(
            f"The boundary has {sides} sides, and a domain that is no convex polygon may have "
            f"{MOST_SIDES}: leave vertices out where it is nearly straight, or take balls and "
            "ellipsoids, which have two."
        )


def check_loops(loops: tuple[Loop, ...], size: float) -> None:
    """Refuse boundaries that touch or cross themselves, slits and cusps."""
    for corner in corners_of(loops):
        if min(corner.angle, 2 * math.pi - corner.angle) > CUSP:
            continue
        kind = "a cusp" if corner.angle < math.pi else "a slit, or a cusp into it,"
        raise DomainError(
            f"The domain has {kind} at x = {show(corner.point)}, where two sides of its boundary "
            "meet without an angle: no theorem holds there. Open it by a small angle."
        )
    arcs = [(k, j, arc) for k, loop in enumerate(loops) for j, arc in enumerate(loop)]
    boxes = boxes_of([arc for _, _, arc in arcs])
    near = np.triu(near_boxes(boxes, boxes, 10 * NEAR * size), 1)
    for n, (k, j, one) in enumerate(arcs):
        for m, i, other in (arcs[each] for each in np.flatnonzero(near[n])):
            count = len(loops[k])
            joined = (m == k and (j + 1) % count == i, m == k and (i + 1) % count == j)
            _check_apart(one, other, joined, size)


def _check_apart(one: Arc, other: Arc, joined: tuple[bool, bool], size: float) -> None:
    """Arcs may meet where one ends and the next one begins, and nowhere else; `joined` says whether
    the second follows the first, and the other way round."""
    points = [*meetings(one, other), *map(np.array, (one.start, one.end, other.start, other.end))]
    for point in points:
        gap, distance = (arc.share_of(point[None])[1][0] for arc in (one, other))
        if max(gap, distance) > NEAR * size:
            continue
        ends = [
            np.linalg.norm(point - np.array(end)) <= NEAR * size
            for end in (one.start, one.end, other.start, other.end)
        ]
        if (joined[1] and ends[0] and ends[3]) or (joined[0] and ends[1] and ends[2]):
            continue
        raise DomainError(
            f"The boundary of the domain touches or crosses itself at x = {show(point)}: holes and "
            "parts must be apart. Move them apart, or let them overlap and take their union."
        )


def chained(arcs: list[Arc], size: float) -> tuple[Loop, ...]:
    """Arcs in any order as closed chains; where one ends, one other begins, unless parts of the
    domain touch."""
    left, loops = list(arcs), []
    while left:
        loop = [left.pop(0)]
        while np.hypot(*np.subtract(loop[-1].end, loop[0].start)) > NEAR * size:
            gaps = [np.hypot(*np.subtract(loop[-1].end, arc.start)) for arc in left]
            if not gaps or min(gaps) > NEAR * size:
                raise DomainError(
                    f"The boundary of the domain does not close at x = {show(loop[-1].end)}: its "
                    "parts nearly touch there. Move them apart, or let them overlap."
                )
            if sum(gap <= NEAR * size for gap in gaps) > 1:
                raise DomainError(
                    f"Parts of the domain touch in one point, x = {show(loop[-1].end)}: the "
                    "theorems need each part for itself. Move them apart, or let them overlap."
                )
            loop.append(left.pop(int(np.argmin(gaps))))
        loops.append(tuple(_closed(loop)))
    return tuple(loops)


def _closed(loop: list[Arc]) -> list[Arc]:
    """Each arc begins exactly where the one before ends, and sides that go straight on are one."""
    joined: list[Arc] = []
    for arc in loop:
        if joined and _goes_on(joined[-1], arc):
            joined[-1] = joined[-1]._replace(last=arc.last, end=arc.end)
        else:
            joined.append(arc)
    if len(joined) > 2 and _goes_on(joined[-1], joined[0]):
        first = joined.pop(0)
        joined[-1] = joined[-1]._replace(last=first.last, end=first.end)
    whole = [arc._replace(u=_step(arc)) if arc.straight else arc for arc in joined]
    following = whole[1:] + whole[:1]
    return [arc._replace(end=after.start) for arc, after in zip(whole, following, strict=True)]


def _step(arc: Arc) -> tuple[float, float]:
    return arc.end[0] - arc.start[0], arc.end[1] - arc.start[1]


def _goes_on(one: Arc, two: Arc) -> bool:
    if not (one.straight and two.straight and one.piece == two.piece):
        return False
    (a, b), (c, d) = _step(one), _step(two)
    flat = abs(a * d - b * c) <= 1e-12 * math.hypot(a, b) * math.hypot(c, d)
    return flat and a * c + b * d > 0
