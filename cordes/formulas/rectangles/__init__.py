"""Bounds on complex neighbourhoods of a box: what the remainder of a Gauss rule is made of."""

from cordes.formulas.rectangles.arithmetic import Rectangle
from cordes.formulas.rectangles.program import Neighbourhoods, RectangleProgram

__all__ = ["Neighbourhoods", "Rectangle", "RectangleProgram"]
