"""Domains as sets, typeset."""

import html
from typing import Any

import numpy as np

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.reports.pages.mathml import Untypeset, array, brackets, constant, symbol, typeset, words

# Coordinates that are written out one by one.
WRITTEN_OUT = 6
# Rows of a matrix that is part of a formula, and unit vectors of a centre.
FEW = 4
LONGEST = 600


def domain_formula(domain: Any) -> str:
    """A domain as a set."""
    try:
        if isinstance(domain, Box):
            return _box(*domain.bounding_box)
        if isinstance(domain, Ball):
            return f"<mo>{{</mo>{_length(_shifted(np.asarray(domain.center)))}<mo>&lt;</mo>{constant(float(domain.radius)).mathml}<mo>}}</mo>"
        if isinstance(domain, Ellipsoid):
            return _ellipsoid(np.asarray(domain.center), domain.axes)
        if isinstance(domain, Polygon) and len(domain.vertices) <= 8:
            return f"{words('polygon with the corners ')}" + "<mo>,</mo>".join(
                _tuple(corner) for corner in domain.vertices
            )
    except (Untypeset, AttributeError):
        pass
    text = repr(domain)
    return f"<mtext>{html.escape(text if len(text) <= LONGEST else text[:LONGEST] + '…, all of it in the source')}</mtext>"


def _ellipsoid(center: np.ndarray, axes: np.ndarray) -> str:
    """By its equation: with its semi-axes where they are those of the coordinates, else with the
    matrix that makes it of the unit ball."""
    if len(center) > FEW:
        raise Untypeset("a large matrix")
    if axes.ndim == 2:
        inside = f"<msup>{typeset(array(axes))}<mrow><mo>−</mo><mn>1</mn></mrow></msup>"
        shifted = _shifted(center)
        return f"<mo>{{</mo>{_length(inside + (brackets(shifted) if np.any(center) else shifted))}<mo>&lt;</mo><mn>1</mn><mo>}}</mo>"
    parts = (
        ((symbol("x", k + 1) - constant(float(m))) / constant(float(axis))) ** 2
        for k, (m, axis) in enumerate(zip(center, axes, strict=True))
    )
    return f"<mo>{{</mo>{sum(parts, constant(0)).mathml}<mo>&lt;</mo><mn>1</mn><mo>}}</mo>"


def _length(mathml: str) -> str:
    return f"<mrow><mo>|</mo>{mathml}<mo>|</mo></mrow>"


def _shifted(center: np.ndarray) -> str:
    """x − m, as a tuple or, in many dimensions, by the unit vectors of the few coordinates that are
    not zero."""
    places = np.flatnonzero(center)
    if len(places) == 0:
        return "<mi>x</mi>"
    if len(center) <= WRITTEN_OUT:
        return f"<mi>x</mi><mo>−</mo>{_tuple(center)}"
    if len(places) > FEW:
        raise Untypeset("a long centre")
    shifted = symbol("x")
    for k in places:
        shifted = shifted - constant(float(center[k])) * symbol("e", int(k) + 1)
    return shifted.mathml


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
        raise Untypeset("many coordinates")
    return brackets("<mo>,</mo>".join(constant(float(value)).mathml for value in values))
