"""Domains from TOML."""

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.domain import AbstractDomain
from cordes.errors import FileError, shown, unknown
from cordes.problems.written.toml_values import MAX_DIMENSION, TomlReader, check_keys, located

# Domains made of several others, and how many these may be.
COMBINED = {"union": operator.or_, "intersection": operator.and_, "difference": operator.sub}

MOST_PARTS = 50


def domain_of(table: dict[str, Any], label: str) -> AbstractDomain:
    """The domain; its numbers may be constant expressions such as "sqrt(2)"."""
    makers: dict[str, tuple[Callable[..., AbstractDomain], tuple[str, ...], tuple[str, ...]]] = {
        "box": (Box, ("lower", "upper"), ()),
        "ball": (Ball, ("center", "radius"), ()),
        "ellipsoid": (Ellipsoid, ("center", "axes"), ()),
        "polygon": (Polygon, ("vertices",), ("holes",)),
        "regular-polygon": (_regular_polygon, ("sides", "radius"), ("center", "angle")),
    }
    kind = table.get("type")
    if isinstance(kind, str) and kind in COMBINED:
        return _combined(table, kind, label)
    if kind is None:
        raise FileError(f"{label}: type is missing. Allowed: {', '.join([*makers, *COMBINED])}.")
    if not isinstance(kind, str) or kind not in makers:
        raise FileError(
            f"{label}: {unknown('type of domain', kind, [*makers, *COMBINED])} Allowed: "
            f"{', '.join([*makers, *COMBINED])}."
        )
    maker, required, optional = makers[kind]
    check_keys(table, label, ("type", *required, *optional), required)
    reader = TomlReader()
    values: dict[str, Any] = {}
    # The first list of a box, a ball or an ellipsoid sets the dimension of the others.
    dimension = 2 if "polygon" in kind else None
    for key in (*required, *optional):
        if key not in table:
            continue
        place = f"{label}.{key}"
        if key in ("radius", "sides", "angle"):
            values[key] = reader.scalar(table[key], place)
        elif key == "holes":
            values[key] = _holes(table[key], reader, place)
        elif key == "vertices" or (
            key == "axes"
            and isinstance(table[key], list)
            and any(isinstance(row, list) for row in table[key])
        ):
            assert dimension is not None
            values[key] = np.array(reader.matrix(table[key], place, dimension))
            if key == "axes" and len(table[key]) != dimension:
                raise FileError(f"{place} has {len(table[key])} rows, but {dimension} are needed.")
        else:
            if isinstance(table[key], list) and len(table[key]) > MAX_DIMENSION:
                raise FileError(
                    f"{place} has {len(table[key])} entries: files are for up to {MAX_DIMENSION} "
                    "dimensions. Write the problem in Python, where A may have a structure."
                )
            values[key] = np.array(reader.vector(table[key], place, dimension))
            dimension = len(values[key])
    with located(label):
        return maker(**values)


def _combined(table: dict[str, Any], kind: str, label: str) -> AbstractDomain:
    """The union or the intersection of several domains, or the first one without the others."""
    check_keys(table, label, ("type", "of"), ("of",))
    parts = table["of"]
    if not isinstance(parts, list) or not 2 <= len(parts) <= MOST_PARTS:
        raise FileError(f"{label}.of must be a list of 2 to {MOST_PARTS} domains.")
    made = []
    for k, part in enumerate(parts):
        place = f"{label}.of[{k + 1}]"
        if not isinstance(part, dict) or part.get("type") in tuple(COMBINED):
            raise FileError(f"{place} must be a table with the type of a single domain.")
        made.append(domain_of(part, place))
    with located(label):
        return functools.reduce(COMBINED[kind], made)


def _holes(value: Any, reader: TomlReader, label: str) -> list[np.ndarray]:
    """Lists of vertices."""
    if not isinstance(value, list):
        raise FileError(f"{label} must be a list of lists of vertices, not {shown(value)}.")
    return [np.array(reader.matrix(hole, f"{label}[{k + 1}]", 2)) for k, hole in enumerate(value)]


def _regular_polygon(
    sides: float, radius: float, center: np.ndarray | None = None, angle: float = math.pi / 2
) -> Polygon:
    """The polygon with equal sides whose corners have distance `radius` from the center, the first
    of them in the direction `angle`."""
    if not (sides.is_integer() and 3 <= sides <= 1000):
        raise FileError(f"sides = {sides:g} must be a whole number from 3 to 1000.")
    if radius <= 0:
        raise FileError(f"radius = {radius:g} must be positive.")
    angles = angle + 2 * math.pi * np.arange(int(sides)) / sides
    corners = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Polygon(corners if center is None else corners + center)
