"""Domains as sets, typeset."""

import html
from functools import reduce
from typing import Any

import numpy as np

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.walls import Walled
from cordes.formulas.terms import Unwritable, add, divide, multiply, number, power, subtract, symbol
from cordes.formulas.written.mathml import absolute, brackets, constant, mathml, typeset, words

# Coordinates that are written out one by one.
WRITTEN_OUT = 6
# Rows of a matrix that is part of a formula, and unit vectors of a centre.
FEW = 4
LONGEST = 600


def domain_formula(domain: Any) -> str:
    """A domain as a set."""
    try:
        if isinstance(domain, Box | Walled):
            return _box(*domain.bounding_box)
        if isinstance(domain, Ball):
            inside = absolute(_shifted(np.asarray(domain.center)))
            return f"<mo>{{</mo>{inside}<mo>&lt;</mo>{_number(domain.radius)}<mo>}}</mo>"
        if isinstance(domain, Ellipsoid):
            return _ellipsoid(np.asarray(domain.center), domain.axes)
        if isinstance(domain, Polygon) and len(domain.vertices) <= 8:
            return f"{words('polygon with the corners ')}" + "<mo>,</mo>".join(
                _tuple(corner) for corner in domain.vertices
            )
    except (Unwritable, AttributeError):
        pass
    text = repr(domain)
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…, all of it in the source"
    return f"<mtext>{html.escape(shown)}</mtext>"


def _ellipsoid(center: np.ndarray, axes: np.ndarray) -> str:
    """By its equation: with its semi-axes where they are those of the coordinates, else with the
    matrix that makes it of the unit ball."""
    if len(center) > FEW:
        raise Unwritable("a large matrix")
    if axes.ndim == 2:
        matrix = typeset(np.vectorize(number, otypes=[object])(axes))
        inverse = f"<msup>{matrix}<mrow><mo>−</mo><mn>1</mn></mrow></msup>"
        shifted = _shifted(center)
        inside = absolute(inverse + (brackets(shifted) if np.any(center) else shifted))
    else:
        parts = [
            power(divide(subtract(symbol(f"x{k + 1}"), number(m)), number(axis)), number(2))
            for k, (m, axis) in enumerate(zip(center, axes, strict=True))
        ]
        inside = mathml(reduce(add, parts))
    return f"<mo>{{</mo>{inside}<mo>&lt;</mo><mn>1</mn><mo>}}</mo>"


def _number(value: float) -> str:
    return constant(float(value)).mathml


def _shifted(center: np.ndarray) -> str:
    """x − m, as a tuple or, in many dimensions, by unit vectors of what is not zero."""
    places = np.flatnonzero(center)
    if len(places) == 0:
        return "<mi>x</mi>"
    if len(center) <= WRITTEN_OUT:
        return f"<mi>x</mi><mo>−</mo>{_tuple(center)}"
    if len(places) > FEW:
        raise Unwritable("a long centre")
    parts = [multiply(number(center[k]), symbol(f"e{k + 1}")) for k in places]
    return mathml(reduce(subtract, parts, symbol("x")))


def _box(lower: np.ndarray, upper: np.ndarray) -> str:
    sides = [
        brackets(f"{_number(a)}<mo>,</mo>{_number(b)}") for a, b in zip(lower, upper, strict=True)
    ]
    if len(set(sides)) == 1:
        return sides[0] if len(sides) == 1 else f"<msup>{sides[0]}<mn>{len(sides)}</mn></msup>"
    if len(sides) > WRITTEN_OUT:
        raise Unwritable("a long product")
    return "<mo>×</mo>".join(sides)


def _tuple(values: np.ndarray) -> str:
    if len(values) > WRITTEN_OUT:
        raise Unwritable("many coordinates")
    return brackets("<mo>,</mo>".join(map(_number, values)))
