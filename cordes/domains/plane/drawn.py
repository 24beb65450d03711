"""Domains of the plane from what other programs draw: GeoJSON polygons, and paths of SVG."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.arcs import Arc, segment
from cordes.domains.plane.boolean import named
from cordes.domains.plane.loops import Loop, area_of
from cordes.domains.plane.region import Region
from cordes.domains.polygon import Polygon
from cordes.errors import DomainError, shown

TOKENS = re.compile(r"([A-Za-z])|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([\s,]+)|(.)")
# How many numbers each command of a path takes.
TAKES = {"M": 2, "L": 2, "H": 1, "V": 1, "A": 7, "Z": 0}
GEOJSON = (
    "a GeoJSON polygon is needed, {'type': 'Polygon', 'coordinates': [outline, hole, …]}, a "
    "Feature with one, or the coordinates alone: lists of [x, y]"
)


def from_geojson(given: Any) -> AbstractDomain:
    """The polygon of a GeoJSON geometry or feature, or of its coordinates: the outline, then the
    holes. The point that closes a ring may be there or not; further coordinates of points are left
    out."""
    if isinstance(given, Mapping) and given.get("type") == "Feature":
        given = given.get("geometry")
    if isinstance(given, Mapping):
        if given.get("type") == "MultiPolygon" and len(given.get("coordinates", ())) == 1:
            given = {"type": "Polygon", "coordinates": given["coordinates"][0]}
        if given.get("type") != "Polygon":
            raise DomainError(f"type = {shown(given.get('type'))}: {GEOJSON}.")
        given = given.get("coordinates")
    try:
        rings = [_ring(ring) for ring in given]
    except (TypeError, ValueError, IndexError) as error:
        raise DomainError(f"{shown(given)}: {GEOJSON}.") from error
    if not rings:
        raise DomainError(f"There is no outline: {GEOJSON}.")
    return Polygon(rings[0], holes=rings[1:])


def _ring(points: Any) -> np.ndarray:
    array = np.array([[float(point[0]), float(point[1])] for point in points])
    closed = len(array) > 1 and np.array_equal(array[0], array[-1])
    return array[:-1] if closed else array


def from_svg(path: str) -> AbstractDomain:
    """The domain inside of a path of SVG, the text of its attribute d: lines (M, L, H, V, Z) and
    arcs of ellipses (A), in absolute or relative coordinates. Paths inside of others are holes. The
    second coordinate grows as in the file, which draws it downwards."""
    loops = [loop for loop in _loops(path) if loop]
    if not loops:
        raise DomainError(f"The path {shown(path)} draws nothing.")
    if any(not arc.straight for loop in loops for arc in loop):
        return Region(named(Region(loops).loops), f"from_svg({path!r})")
    loops.sort(key=lambda loop: -abs(area_of(loop)))
    outer, *holes = (np.array([arc.start for arc in loop]) for loop in loops)
    return Polygon(outer, holes=holes)


def _commands(path: str) -> Iterator[tuple[str, list[float]]]:
    """Each command with its numbers; what follows M without a command are lines."""
    command, numbers = "", []
    for letter, number, _, other in TOKENS.findall(path):
        if other or (number and not command):
            raise DomainError(f"The path {shown(path)} of SVG has {other or number!r} in it.")
        if letter:
            if numbers:
                raise DomainError(f"The command {command} of the path has too few numbers.")
            if letter.upper() not in TAKES:
                raise DomainError(
                    f"The path has the command {letter}: lines and arcs of ellipses (M, L, H, V, "
                    "A, Z) are known, Bézier curves are not. Draw it with these, or with many "
                    "short lines."
                )
            command = letter
        if number:
            numbers.append(float(number))
        if (letter or number) and len(numbers) == TAKES[command.upper()]:
            if not numbers and not letter:
                raise DomainError("Numbers stand behind a Z of the path.")
            yield command, numbers
            numbers = []
            command = {"M": "L", "m": "l"}.get(command, command)
    if numbers:
        raise DomainError(f"The command {command} of the path has too few numbers.")


def _loops(path: str) -> Iterator[Loop]:
    """The closed chains of a path; one that is left open is closed by a line."""
    here = start = np.zeros(2)
    loop: list[Arc] = []
    for command, numbers in _commands(path):
        kind, base = command.upper(), here if command.islower() else np.zeros(2)
        if kind in "MZ":
            yield _closed(loop, start)
            loop = []
            here = start = start if kind == "Z" else base + numbers
            continue
        end = _end(kind, numbers, base, here)
        if not np.array_equal(end, here):
            loop.append(_arc(here, end, numbers) if kind == "A" else segment(here, end))
        here = end
    yield _closed(loop, start)


def _end(kind: str, numbers: list[float], base: np.ndarray, here: np.ndarray) -> np.ndarray:
    if kind == "H":
        return np.array([base[0] + numbers[0], here[1]])
    if kind == "V":
        return np.array([here[0], base[1] + numbers[0]])
    return base + np.array(numbers[-2:])


def _closed(loop: list[Arc], start: np.ndarray) -> Loop:
    if loop and loop[-1].end != tuple(start):
        loop = [*loop, segment(np.array(loop[-1].end), start)]
    return tuple(loop)


def _arc(start: np.ndarray, end: np.ndarray, numbers: list[float]) -> Arc:
    """From the radii, the rotation in degrees and the two flags of SVG (its appendix F.6.5)."""
    radii, turn = np.abs(numbers[:2]), math.radians(numbers[2])
    large, positive = bool(numbers[3]), bool(numbers[4])
    if np.any(radii == 0):
        return segment(start, end)
    axes = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]]) * radii
    # On the unit circle: half of the chord, and the way from its middle to the center.
    half = np.linalg.solve(axes, (end - start) / 2)
    length = float(np.linalg.norm(half))
    if length > 1:
        axes, half, length = axes * length, half / length, 1.0
    away = math.sqrt(max(1 / length**2 - 1, 0.0)) * np.array([-half[1], half[0]])
    local = away if large != positive else -away
    center = (start + end) / 2 + axes @ local
    first, last = (math.atan2(*(point - local)[::-1]) for point in (-half, half))
    while positive and last <= first:
        last += 2 * math.pi
    while not positive and last >= first:
        last -= 2 * math.pi
    a, u, v, one, two = (
        (float(part[0]), float(part[1])) for part in (center, axes[:, 0], axes[:, 1], start, end)
    )
    return Arc(a, u, v, first, last, one, two)
