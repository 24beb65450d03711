"""Polynomials on cells, each by itself: bounds on complex neighbourhoods and over small boxes.

P_n is at most ρⁿ on the ellipse with the foci ±1 and the sum ρ of its semi-axes, so that a bound is
the sum of the sizes of all terms. A box that reaches across sides of cells is told to be cut.
"""

import numpy as np
from numpy.polynomial import legendre

from cordes.ansatz.cells.jets import all_orders
from cordes.ansatz.cells.network import CellPolynomials
from cordes.ansatz.cells.reference import differentiation
from cordes.ansatz.cells.tree import locate
from cordes.certificates.enclosed.answers.features import AbstractFeatures, Operator, under
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# Rounding of coefficients, in units of the sum of their sizes.
ROUNDING = 1e-13
# What is nearer to a side than this share of its cell lies at it.
SLACK = 1e-9
# Numbers that are held at once.
NUMBERS = 4_000_000


class CellBoxes(AbstractFeatures):
    """Those of plain cells, as functions of the scaled coordinates z."""

    nodes = 1

    def __init__(self, network: CellPolynomials):
        if len(network.rich.numbers) or np.any(network.hidden):
            raise UnsupportedOperation("cells with singular functions, interfaces or boundaries")
        self.network, self.tensors = network, network.squares
        self.center, self.scale = network.inputs.center, network.inputs.scale
        self.inputs = len(self.center)
        self.lower, self.upper = self.boxes = network.tree.boxes
        # One axis after the other is summed over.
        self.size = self.tensors[0].size // 8 + 1
        half = (self.upper - self.lower) / 2 / self.scale
        self.derived = {
            orders: derived(self.tensors, half, orders) for orders in _orders(self.inputs, 3)
        }

    def on_ellipses(self, sizes: Operator, z: Rectangle, over: Rectangle) -> Array:
        cell, whole = self._cell(over.lower, over.upper)
        step = max(NUMBERS // self.tensors[0].size, 1)
        found = np.full(len(cell), np.inf)
        for k in range(0, len(cell), step):
            rows = k + np.flatnonzero(whole[k : k + step])
            powers = self._powers(z[rows], cell[rows])
            each = [
                summed(np.abs(self.derived[orders][cell[rows]]), powers)
                for orders in all_orders(self.inputs)
            ]
            values = np.stack(each, axis=1) * (1 + ROUNDING)
            found[rows] = under(Operator(*(part[rows] for part in sizes)), values)
        return np.where(np.isnan(found), np.inf, found)

    def over(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """First-order steps from the middle."""
        m, (cell, whole) = self.inputs, self._cell(lower, upper)
        middle, half = self._scaled(cell)
        local, steps = ((lower + upper) / 2 - middle) / half, (upper - lower) / 2
        degree = self.tensors.shape[1] - 1
        none = [np.ones((len(cell), degree + 1))] * m
        tables = [legendre.legvander(s, degree) for s in local.T]
        found, unit = np.zeros((2, len(lower), 1 + m + m * m)), np.eye(m, dtype=int)
        every = [np.zeros(m, int), *unit, *(i + j for i in unit for j in unit)]
        for column, orders in enumerate(every):
            radius = ROUNDING * summed(np.abs(self._at(orders)[cell]), none)
            for axis in range(m):
                more = self._at(orders + unit[axis])[cell]
                radius = radius + steps[:, axis] * summed(np.abs(more), none)
            found[0, :, column] = summed(self._at(orders)[cell], tables)
            found[1, :, column] = radius
        found[1][~whole] = np.inf
        return found[0], found[1]

    def _at(self, orders: Array) -> Array:
        return self.derived[tuple(int(n) for n in orders)]

    def _cell(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The cell of each box of z, and whether it lies in one."""
        low, high = self.center + self.scale * lower, self.center + self.scale * upper
        cell = locate(self.network.path, (low + high) / 2)
        slack = SLACK * (self.upper - self.lower)[cell]
        whole = (low >= self.lower[cell] - slack) & (high <= self.upper[cell] + slack)
        return cell, np.all(whole, axis=1)

    def _scaled(self, cell: Array) -> tuple[Array, Array]:
        """Middle and half the width of cells, in z."""
        lower, upper = self.lower[cell], self.upper[cell]
        return ((lower + upper) / 2 - self.center) / self.scale, (upper - lower) / 2 / self.scale

    def _powers(self, z: Rectangle, cell: Array) -> list[Array]:
        """Bounds of P_0, P_1, … at z along each axis."""
        middle, half = self._scaled(cell)
        low, high = ((end - middle) / half for end in (z.lower, z.upper))
        far = np.maximum(np.abs(low), np.abs(high))
        up = np.maximum(np.abs(z.below), np.abs(z.above)) / half
        semi = (np.hypot(far - 1, up) + np.hypot(far + 1, up)) / 2
        semi = np.maximum(semi * (1 + 1e-15), 1.0)
        rho = semi + np.sqrt(semi**2 - 1)
        with np.errstate(over="ignore"):
            return [each[:, None] ** np.arange(self.tensors.shape[1]) for each in rho.T]


def derived(tensors: Array, half: Array, orders: tuple[int, ...]) -> Array:
    """Coefficients of a derivative of polynomials on boxes of these half widths (n, d)."""
    found = tensors
    slope = differentiation(tensors.shape[1] - 1)
    for axis, order in enumerate(orders):
        for _ in range(order):
            found = np.moveaxis(np.moveaxis(found, 1 + axis, -1) @ slope.T, -1, 1 + axis)
            found = found / half[:, axis].reshape(-1, *(1,) * len(orders))
    return found


def summed(tensor: Array, tables: list[Array]) -> Array:
    """Σ tensor · products of one entry of each table, row by row."""
    for table in reversed(tables):
        flat = tensor.reshape(len(tensor), -1, tensor.shape[-1])
        tensor = np.matmul(flat, table[:, :, None]).reshape(tensor.shape[:-1])
    return tensor


def _orders(d: int, most: int) -> list[tuple[int, ...]]:
    """All orders of derivatives up to a total."""
    grid = np.indices((most + 1,) * d).reshape(d, -1).T
    return [tuple(int(n) for n in row) for row in grid if sum(row) <= most]
