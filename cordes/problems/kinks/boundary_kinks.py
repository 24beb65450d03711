"""Kinks of boundary values: where the slope of g jumps along the boundary of a plane domain.

|x|, max and payoffs are legitimate boundary values, but no function in H² takes them: at a kink
inside of an edge D²u grows like 1/r. Whoever extends g into the domain has to know where its kinks
are (`cordes.ansatz.singular.kinks`). They are looked for on pieces of the boundary, edges or one
closed curve: panels on which a polynomial of degree 16 does not follow g are halved, and what is
left at the end is a kink if g is smooth on both sides of it. A panel is smooth for certain only if
the enclosure of g on it is not much wider than the values in it: a bump between the samples is dug
for until it is seen.

What is found and cannot be handled (bumps that are too narrow, roots, kinks that are too close to
each other or to a corner, kinks in three and more dimensions) is warned about when a problem is
made, and its answer never counts as converged.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Chebyshev

from cordes.domains import Ball, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.arcs import Arc
from cordes.domains.plane.region import Region
from cordes.errors import CoefficientError
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.problems.kinks.jumps import kink_in_space
from cordes.problems.kinks.panels import EPSILON, NODES, error_of, one_sided, slopes_of
from cordes.runtime.blocks import in_blocks
from cordes.runtime.plain import show

# Panels of a piece to begin with, where the first one ends (no kink that a user writes lies on a
# bound of panels), the halvings after which a panel is a point, and the most panels of a round.
PANELS, OFFSET, DEPTH, MOST = 32, 0.381966, 16, 4096
# Panels beyond this depth away from kinks are features too narrow for any network.
NARROW = 5
# Largest error of the polynomial on a panel, relative to the variation of g there, and of slopes
# that meet; how much wider an enclosure may be than the values, and by which share of all values.
RESOLVED, SAME_SLOPE, WIDER, UNSEEN = 1e-6, 1e-4, 8.0, 1e-3
# A change of slope within one panel, relative to the largest slope, that is a feature.
BENT = 0.05
# One-sided polynomials must be as good as this to be called smooth; values that meet.
SMOOTH, SAME_VALUE = 1e-9, 1e-7
# Kinks closer to each other or to a corner than this share of the domain are too close.
CLOSE = 0.01
# Suspects that are closer than this share of a piece are one.
JOINED = 2.0**-9 / PANELS
# How far from a kink a curved boundary is used: farther, its tangent is no good coordinate.
CURVED = 0.08
FIRST_ANGLE = 0.0917
# Differences below this are rounding, as for jumps.
FLOOR = 1e-12


class KinkWarning(UserWarning):
    """Boundary values are rough in a way that the answer cannot follow."""


class BoundaryKink(NamedTuple):
    """A point of the boundary, the unit tangent there with the domain on its left, points of the
    boundary before and after it, up to where g is smooth (2, n, 2)."""

    location: np.ndarray
    tangent: np.ndarray
    sides: np.ndarray


class BoundaryShape(NamedTuple):
    """The kinks of g that an answer can follow, the stretches of the boundary between these and the
    corners as functions of one number in [0, 1], and what it cannot follow."""

    kinks: tuple[BoundaryKink, ...] = ()
    stretches: tuple[Callable[..., Any], ...] = ()
    rough: str | None = None


class BoundaryPiece(NamedTuple):
    """A smooth part of the boundary: points (n, 2) at parameters in [0, 1], the same for one
    parameter in a trace (None where no formula is known), the unit tangent at a point of it, and
    whether it closes."""

    curve: Callable[[np.ndarray], np.ndarray]
    traced: Callable[[Any], Any] | None
    tangent: Callable[[np.ndarray], np.ndarray]
    closed: bool


class _Found(NamedTuple):
    """Parameters of suspected kinks on a piece, and of narrow features."""

    suspects: list[float]
    narrow: list[tuple[float, float]]


def boundary_shape(g: Callable[..., Any], domain: AbstractDomain) -> BoundaryShape:
    """What g does along the boundary; a jump of g is refused."""
    if domain.dimension == 1:
        return BoundaryShape()
    compiled = jax.jit(jax.vmap(g))

    def values(points: np.ndarray) -> np.ndarray:
        return np.asarray(in_blocks(compiled, (points,)), dtype=np.float64)

    if domain.dimension > 2:
        return BoundaryShape(rough=kink_in_space(g, domain))
    pieces = list(_pieces(domain))
    scale = np.concatenate([values(piece.curve(NODES)) for piece in pieces])
    if np.ptp(scale) <= FLOOR and not _depends(g, domain):
        return BoundaryShape()
    search = _KinkSearch(g, values, domain, float(np.max(np.abs(scale))))
    found = [search.run(piece) for piece in pieces]
    return search.shape(pieces, found)


def _corners(domain: AbstractDomain) -> list[np.ndarray]:
    if isinstance(domain, Region):
        return [corner.point for corner in domain.corners]
    return [] if domain.vertices is None else list(domain.vertices)


def _depends(g: Callable[..., Any], domain: AbstractDomain) -> bool:
    jaxpr = jax.make_jaxpr(g)(jnp.asarray(domain.center)).jaxpr
    return any(variable in equation.invars for equation in jaxpr.eqns for variable in jaxpr.invars)


def _pieces(domain: AbstractDomain) -> Iterator[BoundaryPiece]:
    if domain.vertices is not None:
        # Coordinates that do not change along an edge are not rounded.
        for start, ahead in zip(
            domain.vertices, np.roll(domain.vertices, -1, axis=0) - domain.vertices, strict=True
        ):
            yield BoundaryPiece(
                lambda s, start=start, ahead=ahead: start + s[:, None] * ahead,
                lambda s, start=start, ahead=ahead: start + s[0] * ahead,
                lambda _, ahead=ahead: ahead / np.linalg.norm(ahead),
                False,
            )
        return
    if isinstance(domain, Region):
        yield from map(_of_arc, domain.arcs)
        return
    matrix = (
        domain.radius * np.eye(2)
        if isinstance(domain, Ball)
        else getattr(domain, "matrix", None)
        if isinstance(domain, Ellipsoid)
        else None
    )

    def curve(s: np.ndarray) -> np.ndarray:
        angles = 2 * np.pi * (s + FIRST_ANGLE)
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return domain.boundary_at(circle if matrix is None else circle @ matrix.T)

    def traced(s: Any) -> Any:
        angle = 2 * np.pi * (s[0] + FIRST_ANGLE)
        return domain.center + np.asarray(matrix) @ jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    def tangent(x: np.ndarray) -> np.ndarray:
        inwards = np.asarray(jax.grad(domain.distance)(jnp.asarray(x)))
        return np.array([inwards[1], -inwards[0]]) / np.linalg.norm(inwards)

    yield BoundaryPiece(curve, None if matrix is None else traced, tangent, True)


def _of_arc(arc: Arc) -> BoundaryPiece:
    def tangent(x: np.ndarray) -> np.ndarray:
        direction = arc.direction(np.clip(arc.share_of(x[None])[0], 0, 1))[0]
        return direction / np.linalg.norm(direction)

    return BoundaryPiece(arc.at, lambda s: arc.traced(s[0], jnp), tangent, False)


class _KinkSearch:
    """The search along one boundary."""

    def __init__(self, g: Callable, values: Callable, domain: AbstractDomain, scale: float):
        self.g, self.values, self.domain, self.scale = g, values, domain, scale
        self.noise = 64 * EPSILON * scale + FLOOR
        lower, upper = domain.bounding_box
        self.size = float(np.max(upper - lower))

    def run(self, piece: BoundaryPiece) -> _Found:
        """Halve panels until g is a polynomial on each of them, or they are points."""
        low = np.append(0.0, (np.arange(PANELS) + OFFSET) / PANELS)
        high = np.append(low[1:], 1.0)
        enclosure = None if piece.traced is None else _along(self.g, piece.traced)
        kept: list[np.ndarray] = []
        cut = np.zeros(len(low), bool)
        for depth in range(DEPTH + 1):
            table = self.values(piece.curve((low[:, None] + (high - low)[:, None] * NODES).ravel()))
            table = table.reshape(len(low), -1)
            variation = np.ptp(table, axis=1)
            seen = error_of(table) <= RESOLVED * variation + self.noise
            proved = self._enclosed(enclosure, low, high, variation)
            enclosure = enclosure if proved is not None else None
            smooth = seen if proved is None or depth == DEPTH else seen & proved
            kept.append(
                np.column_stack(
                    [low, high, slopes_of(table, high - low), variation, cut & (depth >= NARROW)]
                )[smooth]
            )
            low, high, cut = low[~smooth], high[~smooth], np.tile(~seen[~smooth], 2)
            if not len(low) or depth == DEPTH or 2 * len(low) > MOST:
                break
            middle = (low + high) / 2
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        panels = np.concatenate(kept)
        panels = panels[np.argsort(panels[:, 0])]
        # A smooth kink has little variation, and a slope that changes all the same.
        bend = BENT * np.max(np.abs(panels[:, 2:4]), initial=1e3 * self.noise / BENT)
        narrow = [
            (panel[0], panel[1] - panel[0])
            for panel in panels
            if panel[5]
            and (panel[4] > UNSEEN * self.scale + self.noise or abs(panel[3] - panel[2]) > bend)
        ]
        if len(low) > 64:
            return _Found([], [*narrow, (float(low[0]), float(np.min(high - low)))])
        return _Found(_joined([*((low + high) / 2), *self._bends(panels)]), narrow)

    def _bends(self, panels: np.ndarray) -> Iterator[float]:
        """Bounds of smooth panels at which their slopes do not meet."""
        before, after = panels[:-1], panels[1:]
        widths = [panel[:, 1] - panel[:, 0] for panel in (before, after)]
        noise = [
            (1e3 * self.noise + 1e3 * RESOLVED * panel[:, 4]) / width
            for panel, width in zip((before, after), widths, strict=True)
        ]
        bend = np.abs(after[:, 2] - before[:, 3]) > sum(noise)
        yield from before[bend & (before[:, 1] == after[:, 0]), 1]

    def _enclosed(
        self, enclosure: Any, low: np.ndarray, high: np.ndarray, variation: np.ndarray
    ) -> np.ndarray | None:
        """Whether the enclosure of g on panels leaves no room for more than what is seen; None
        where the formula has none."""
        if enclosure is None:
            return None
        try:
            with np.errstate(all="ignore"):
                ranges = enclosure(low[:, None], high[:, None])
        except UnsupportedOperation:
            return None
        upper = np.max([np.broadcast_to(each.upper, len(low)) for each in ranges], axis=0)
        lower = np.min([np.broadcast_to(each.lower, len(low)) for each in ranges], axis=0)
        found = upper - lower <= WIDER * variation + UNSEEN * self.scale + self.noise
        # A formula that cancels is enclosed by nothing useful: then samples have to do.
        return found if np.sum(~found) * 2 <= MOST // 2 else None

    # What the suspects are.

    def shape(self, pieces: list[BoundaryPiece], found: list[_Found]) -> BoundaryShape:
        kinks: list[BoundaryKink] = []
        stretches: list[Callable[..., Any]] = []
        for piece, (suspects, narrow) in zip(pieces, found, strict=True):
            for place, width in narrow:
                if min((abs(place - other) for other in suspects), default=1.0) > 64 * width:
                    return BoundaryShape(rough=self._too_narrow(piece, place, width))
            places = sorted(suspects)
            for k, place in enumerate(places):
                gaps = self._gaps(places, k, piece.closed)
                one = self._kink(piece, place, gaps)
                if isinstance(one, str):
                    return BoundaryShape(rough=one)
                places[k], kink = one
                kinks.append(kink)
            stretches += _stretches(piece, places)
        corners = _corners(self.domain)
        for k, kink in enumerate(kinks):
            for other in [*corners, *(kink.location for kink in kinks[:k])]:
                if np.linalg.norm(kink.location - other) < CLOSE * self.size:
                    return BoundaryShape(
                        rough=f"g has a kink at x = {show(kink.location)}, too close to "
                        f"{show(other)} for singular functions of its own"
                    )
        return BoundaryShape(tuple(kinks), tuple(stretches))

    def _gaps(self, places: list[float], k: int, closed: bool) -> tuple[float, float]:
        """How far g may be smooth before and after a suspect."""
        if closed:
            others = [place + turn for place in places for turn in (-1, 0, 1)]
            before = [places[k] - other for other in others if other < places[k] - 1e-9]
            after = [other - places[k] for other in others if other > places[k] + 1e-9]
            return min(CURVED, *before), min(CURVED, *after)
        before = places[k] - (places[k - 1] if k else 0.0)
        after = (places[k + 1] if k + 1 < len(places) else 1.0) - places[k]
        return before, after

    def _kink(
        self, piece: BoundaryPiece, place: float, gaps: tuple[float, float]
    ) -> tuple[float, BoundaryKink] | str:
        """The kink near a parameter, exactly there where the two sides meet; or why it is none that
        can be handled."""
        width = JOINED / 4
        here = piece.curve(np.array([place]))[0]
        lengths = [self._reach(piece, place, -1, gaps[0]), self._reach(piece, place, 1, gaps[1])]
        if min(lengths) < 16 * width:
            return (
                f"g is not smooth on both sides of x = {show(here)}: a root, a pole of a "
                "derivative, or a feature narrower than can be seen"
            )
        for margin in (width, width, 0.0):
            before, after = (
                self._side(piece, place, sign * margin, sign * length)
                for sign, length in zip((-1, 1), lengths, strict=True)
            )
            slopes = before.deriv()(place), after.deriv()(place)
            gap, change = before(place) - after(place), slopes[1] - slopes[0]
            if abs(gap) > SAME_VALUE * self.scale + self.noise + 4 * width * abs(change):
                raise CoefficientError(
                    f"g is not continuous on the boundary: near {show(here)} it jumps from "
                    f"{show(before(place))} to {show(after(place))}. No continuous function has "
                    "such boundary values: smooth g there, or split the problem."
                )
            if abs(change) <= SAME_SLOPE * max(abs(slopes[0]), abs(slopes[1])):
                return f"g is rough at x = {show(here)}, in a way that is no kink"
            place += gap / change if margin else 0.0
        sides = np.stack(
            [
                piece.curve(place + sign * length * NODES)
                for sign, length in zip((-1, 1), lengths, strict=True)
            ]
        )
        location = piece.curve(np.array([place]))[0]
        return place, BoundaryKink(location, piece.tangent(location), sides)

    def _reach(self, piece: BoundaryPiece, place: float, sign: int, length: float) -> float:
        """How far from a suspect g is a polynomial of moderate degree on one side."""
        margin = JOINED / 4
        length *= 0.999
        while length > 16 * margin:
            s = place + sign * (margin + (length - margin) * NODES)
            table = self.values(piece.curve(s))[None]
            if error_of(table)[0] <= SMOOTH * np.ptp(table) + self.noise:
                return length
            length /= 2
        return 0.0

    def _side(self, piece: BoundaryPiece, place: float, margin: float, length: float) -> Chebyshev:
        """g on one side of a suspect as a polynomial of the parameter."""
        s = place + margin + (length - margin) * NODES
        return one_sided(s, self.values(piece.curve(s)), self.scale)

    def _too_narrow(self, piece: BoundaryPiece, place: float, width: float) -> str:
        here, there = piece.curve(np.array([place, place + width]))
        return (
            f"g changes near x = {show(here)} within a length of about "
            f"{np.linalg.norm(there - here):.1g}, which is too narrow for the features"
        )


def _joined(places: list[float]) -> list[float]:
    """The middles of clusters of suspects."""
    clusters: list[list[float]] = []
    for place in sorted(places):
        if clusters and place - clusters[-1][-1] <= JOINED:
            clusters[-1].append(place)
        else:
            clusters.append([place])
    return [(cluster[0] + cluster[-1]) / 2 for cluster in clusters]


def _along(g: Callable[..., Any], traced: Callable[..., Any]) -> Any:
    return enclose(lambda s: g(traced(s)))


def _stretches(piece: BoundaryPiece, places: list[float]) -> list[Callable[..., Any]]:
    """The parts of a piece between kinks, a hair away from them."""
    traced = piece.traced
    if traced is None:
        return []
    places = sorted(places)
    bounds = [*places, places[0] + 1] if piece.closed and places else [0.0, *places, 1.0]
    hair = 1e-9
    return [
        lambda s, low=low + hair, high=high - hair, at=traced: at(low + s * (high - low))
        for low, high in pairwise(bounds)
    ]
