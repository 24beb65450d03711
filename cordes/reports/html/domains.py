"""Domains as sets, typeset."""

import html
from typing import Any

import numpy as np

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.reports.html.mathml import Untypeset, brackets, constant, symbol, words

# Coordinates that are written out one by one.
WRITTEN_OUT = 6


def domain_formula(domain: Any) -> str:
    """A domain as a set."""
    try:
        if isinstance(domain, Box):
            return _box(*domain.bounding_box)
        if isinstance(domain, Ball):
            center = np.asarray(domain.center)
            inside = "<mi>x</mi>" if not np.any(center) else f"<mi>x</mi><mo>−</mo>{_tuple(center)}"
            return f"<mo>{{</mo><mo>|</mo>{inside}<mo>|</mo><mo>&lt;</mo>{constant(float(domain.radius)).mathml}<mo>}}</mo>"
        if isinstance(domain, Ellipsoid):
            return _ellipsoid(np.asarray(domain.center), domain.axes)
        if isinstance(domain, Polygon) and len(domain.vertices) <= 8:
            return f"{words('polygon with the corners ')}" + "<mo>,</mo>".join(_tuple(corner) for corner in domain.vertices)
    except (Untypeset, AttributeError):
        pass
    return f"<mtext>{html.escape(repr(domain)[:200])}</mtext>"


def _ellipsoid(center: np.ndarray, axes: np.ndarray) -> str:
    """By its equation where the axes are those of the coordinates and there are few."""
    if axes.ndim == 2 or np.any(center) or len(center) > 4:
        return f"{words('ellipsoid around ')}{_tuple(center)}"
    parts = ((symbol("x", k + 1) / constant(float(axis))) ** 2 for k, axis in enumerate(axes))
    return f"<mo>{{</mo>{sum(parts, constant(0)).mathml}<mo>&lt;</mo><mn>1</mn><mo>}}</mo>"


def _box(lower: np.ndarray, upper: np.ndarray) -> str:
    sides = [
        f"<mrow><mo>(</mo>{constant(float(a)).mathml}<mo>,</mo>{constant(float(b)).mathml}<mo>)</mo></mrow>"
        for a, b in zip(lower, upper, strict=True)
    ]
    if len(set(sides)) == 1:
        return sides[0] if len(sides) == 1 else f"<msup>{sides[0]}<mn>{len(sides)}</mn></msup>"
    if len(sides) > WRITTEN_OUT:
        raise Untypeset("a long product")
    return "<mo>×</mo>".join(sides)


def _tuple(values: np.ndarray) -> str:
    if len(values) > WRITTEN_OUT:
        return "<mn>0</mn>" if not np.any(values) else "<mi>m</mi>"
    return brackets("<mo>,</mo>".join(constant(float(value)).mathml for value in values))
