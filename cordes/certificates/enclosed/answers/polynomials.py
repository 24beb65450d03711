"""Global polynomials: bounds on complex neighbourhoods and over small boxes.

In Legendre polynomials, whose size on an ellipse with the foci ±1 and the sum ρ of its semi-axes is
at most ρⁿ, the bound is the sum of the sizes of all terms; coefficients are those of a piece, and
cells that reach across a line are told to be cut there.
"""

import itertools

import numpy as np
from numpy.polynomial import legendre

from cordes.ansatz.cells.axis import Axis
from cordes.ansatz.cells.jets import all_orders
from cordes.ansatz.cells.pieces import Pieces
from cordes.certificates.enclosed.answers.features import AbstractFeatures, Operator, under
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# Rounding of coefficients, in units of the sum of their sizes.
ROUNDING = 1e-13
# A cell that ends so near to a line, in its own width, ends there.
SLACK = 1e-9


class EnclosedPolynomials(AbstractFeatures):
    """Those of an answer, as functions of its scaled coordinates z."""

    nodes = 1

    def __init__(self, network: Pieces):
        center, scale = network.inputs.center, network.inputs.scale
        # Lines in the coordinates that networks see.
        self.lines = [
            (np.array(axis.lines) - middle) / half
            for axis, middle, half in zip(network.axes, center, scale, strict=True)
        ]
        self.inputs = len(self.lines)
        tables = [_pieces_of(axis) for axis in network.axes]
        shape = [len(each) for each in tables]
        tensors = []
        for piece in itertools.product(*map(range, shape)):
            tensor = network.tensor
            for axis, k in enumerate(piece):
                moved = np.moveaxis(tensor, axis, -1) @ tables[axis][k].T
                tensor = np.moveaxis(moved, -1, axis)
            tensors.append(tensor)
        self.tensors, self.shape = np.array(tensors), shape
        self.size = self.tensors[0].size
        self._known: dict[tuple[int, ...], list[Array]] = {}

    def on_ellipses(self, sizes: Operator, z: Rectangle, over: Rectangle) -> Array:
        piece, whole = self._piece(over.lower, over.upper)
        powers = self._sizes(z, piece)
        jets = [self._derived(orders) for orders in all_orders(self.inputs)]
        values = np.zeros((len(piece), len(jets)))
        for number in np.unique(piece[whole]):
            here = np.flatnonzero(whole & (piece == number))
            rows = [each[here] for each in powers]
            for k, jet in enumerate(jets):
                values[here, k] = _summed(np.abs(jet[number]), rows)
        values = values * (1 + ROUNDING)
        bound = under(sizes, values)
        return np.where(whole & ~np.isnan(bound), bound, np.inf)

    def _sizes(self, z: Rectangle, piece: Array) -> list[Array]:
        """Bounds of P_0, P_1, … at z along each axis."""
        found = []
        for axis, (lower, half) in enumerate(self._scales(piece)):
            low = (z.lower[:, axis] - lower) / half - 1
            high = (z.upper[:, axis] - lower) / half - 1
            far = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-300)
            up = np.maximum(np.abs(z.below[:, axis]), np.abs(z.above[:, axis])) / half
            semi = (np.hypot(far - 1, up) + np.hypot(far + 1, up)) / 2
            semi = np.maximum(semi * (1 + 1e-15), 1.0)
            rho = semi + np.sqrt(semi**2 - 1)
            degrees = np.arange(self.tensors.shape[1 + axis])
            with np.errstate(over="ignore"):
                found.append(rho[:, None] ** degrees)
        return found

    def _scales(self, piece: Array) -> list[tuple[Array, Array]]:
        """The lower end and half the width of a piece along each axis."""
        numbers = np.unravel_index(piece, self.shape)
        return [
            (lines[k], (lines[k + 1] - lines[k]) / 2)
            for lines, k in zip(self.lines, numbers, strict=True)
        ]

    def _piece(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The piece of each box, and whether it lies in one."""
        numbers, whole = [], np.ones(len(lower), bool)
        for axis, lines in enumerate(self.lines):
            low, high = lower[:, axis], upper[:, axis]
            slack = SLACK * (high - low)
            first = np.searchsorted(lines[1:-1], low + slack, side="right")
            last = np.searchsorted(lines[1:-1], high - slack, side="left")
            numbers.append(first)
            whole &= first == last
        return np.asarray(np.ravel_multi_index(numbers, self.shape)), whole

    def over(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Middle and radius (C, 1 + m + m²) of value and derivatives over boxes of z: first-order
        steps from the middle."""
        m, piece = self.inputs, self._piece(lower, upper)
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        found = np.zeros((2, len(lower), 1 + m + m * m))
        for column, orders in enumerate(_every_entry(m)):
            value = self._at(middle, piece[0], orders)
            radius = ROUNDING * self._largest(orders)[piece[0]]
            for axis in range(m):
                more = tuple(n + int(k == axis) for k, n in enumerate(orders))
                radius = radius + half[:, axis] * self._largest(more)[piece[0]]
            found[0, :, column], found[1, :, column] = value, radius
        found[1][~piece[1]] = np.inf
        return found[0], found[1]

    def _derived(self, orders: tuple[int, ...]) -> list[Array]:
        """Coefficients of a derivative by z on each piece."""
        if orders not in self._known:
            found = self._known[orders] = []
            for number, piece in enumerate(itertools.product(*map(range, self.shape))):
                tensor = self.tensors[number]
                for axis, order in enumerate(orders):
                    width = self.lines[axis][piece[axis] + 1] - self.lines[axis][piece[axis]]
                    if order:
                        tensor = (2 / width) ** order * legendre.legder(tensor, order, axis=axis)
                found.append(tensor)
        return self._known[orders]

    def _largest(self, orders: tuple[int, ...]) -> Array:
        """Bounds of a derivative on each piece."""
        return np.array([np.sum(np.abs(tensor)) for tensor in self._derived(orders)])

    def _at(self, z: Array, piece: Array, orders: tuple[int, ...]) -> Array:
        found, derived = np.zeros(len(z)), self._derived(orders)
        scaled = [
            (z[:, axis] - lower) / half - 1
            for axis, (lower, half) in enumerate(self._scales(piece))
        ]
        for number in np.unique(piece):
            here, tensor = np.flatnonzero(piece == number), derived[number]
            tables = [
                legendre.legvander(s[here], n - 1)
                for s, n in zip(scaled, tensor.shape, strict=True)
            ]
            found[here] = _summed(tensor, tables)
        return found


def _summed(tensor: Array, tables: list[Array]) -> Array:
    """Σ tensor · products of one entry of each table, row by row."""
    tables = [table[:, :n] for table, n in zip(tables, tensor.shape, strict=True)]
    total = np.tensordot(tables[0], tensor, axes=(1, 0))
    for table in tables[1:]:
        total = np.einsum("nj,nj...->n...", table, total)
    return total


def _every_entry(m: int) -> list[tuple[int, ...]]:
    """Orders of the value, the gradient and all entries of the Hessian."""
    unit = np.eye(m, dtype=int)
    each = [np.zeros(m, int), *unit]
    each += [unit[i] + unit[j] for i, j in itertools.product(range(m), repeat=2)]
    return [tuple(int(n) for n in orders) for orders in each]


def _pieces_of(axis: Axis) -> list[Array]:
    """Legendre coefficients (degree + 1, functions) of all functions on each piece."""
    nodes, weights = legendre.leggauss(axis.degree + 1)
    project = (legendre.legvander(nodes, axis.degree) * weights[:, None]).T
    project *= (np.arange(axis.degree + 1) + 0.5)[:, None]
    found = []
    for low, high in zip(axis.lines[:-1], axis.lines[1:], strict=True):
        x = (low + high) / 2 + (high - low) / 2 * nodes
        found.append(project @ axis.tables(x)[0])
    return found
