"""The polynomials of a plain cell, and what all cells of one degree share.

A face of a cell has low modes, of degree at most p - 2 along each of its axes: these are what two
cells agree about, in values and in slopes. A polynomial of degree p along each axis has no mode
that is high, of degree p - 1 or p, along two axes. So it is made of low modes, one for each of
(p - 1)^d Gauss points in the cell, with a high mode along each axis that takes their values on the
faces away, and of the values on the faces, which high modes carry inside.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from cordes.ansatz.cells.jets import all_orders
from cordes.ansatz.cells.reference import differentiation, gauss, projection, tables

# Modes at the end that show how rough a function is.
LAST = 2


class Wide(NamedTuple):
    """Gauss points along an axis, roots of the weights of all points, the polynomials without low
    modes on the faces, and the derivatives of these and of the lift in the points."""

    points: np.ndarray
    root_weights: np.ndarray
    bubbles: np.ndarray
    bubble_rows: np.ndarray
    lift_rows: np.ndarray


class Element:
    """Polynomials are arrays of (p + 1)^d Legendre coefficients, flattened; faces come in pairs
    along each axis, lower and upper ones by turns, with `modes` numbers each."""

    def __init__(self, degree: int, dimension: int):
        self.degree, self.dimension, self.size = degree, dimension, degree + 1
        self.low = low = degree - 1
        self.modes, self.faces = low ** (dimension - 1), 2 * dimension
        self.points, self.weights = gauss(low)
        one_axis = tables(self.points, degree)
        self.rows = np.stack(
            [_kron([one_axis[n] for n in orders]) for orders in all_orders(dimension)]
        )
        self.bubbles, self.lift = self._bubbles(), self._lift()
        self.bubble_rows, self.lift_rows = self.rows @ self.bubbles, self.rows @ self.lift
        ends = np.array([(-1.0) ** np.arange(self.size), np.ones(self.size)])
        self.values = self._at_ends(ends, self._low_modes())
        self.slopes = self._at_ends(ends @ differentiation(degree), self._low_modes())
        # What the values on a face have beside their low modes.
        self.more = self._at_ends(ends, self._high_modes())
        self.extra = self.more.shape[1]

    @property
    def grid(self) -> np.ndarray:
        """The Gauss points in [-1, 1]^d, (low^d, d)."""
        each = np.meshgrid(*[self.points] * self.dimension, indexing="ij")
        return np.stack([part.ravel() for part in each], axis=1)

    def _high(self) -> np.ndarray:
        """The high mode of the parity of each low one."""
        n = np.arange(self.low)
        return np.where((n - self.degree) % 2 == 0, self.degree, self.degree - 1)

    def _bubbles(self) -> np.ndarray:
        """Low modes without values on the faces, (size^d, low^d)."""
        low, d, high = self.low, self.dimension, self._high()
        matrix = np.zeros((self.size,) * d + (low,) * d)
        for index in itertools.product(range(low), repeat=d):
            matrix[index + index] = 1.0
            for axis in range(d):
                other = list(index)
                other[axis] = high[index[axis]]
                matrix[tuple(other) + index] = -1.0
        return matrix.reshape(self.size**d, low**d)

    def _lift(self) -> np.ndarray:
        """High modes with the values of one low mode of a face, (size^d, faces · modes)."""
        low, d = self.low, self.dimension
        even, odd = sorted((self.degree - 1, self.degree), key=lambda n: n % 2)
        matrix = np.zeros((self.size,) * d + (self.faces, self.modes))
        for face in range(self.faces):
            axis, sign = face // 2, (-1.0, 1.0)[face % 2]
            for mode, index in enumerate(itertools.product(range(low), repeat=d - 1)):
                for high, part in ((even, 0.5), (odd, sign / 2)):
                    place = (*index[:axis], high, *index[axis:])
                    matrix[(*place, face, mode)] = part
        return matrix.reshape(self.size**d, self.faces * self.modes)

    def _face_indices(self) -> list[tuple[int, ...]]:
        return list(itertools.product(range(self.size), repeat=self.dimension - 1))

    def _low_modes(self) -> list[int]:
        """Among all modes of a face."""
        each = enumerate(self._face_indices())
        return [n for n, index in each if all(i < self.low for i in index)]

    def _high_modes(self) -> list[int]:
        """Those with one high index; there are none with two."""
        each = enumerate(self._face_indices())
        return [n for n, index in each if sum(i >= self.low for i in index) == 1]

    @functools.cached_property
    def wide(self) -> "Wide":
        """For equations that are rough in a cell: all modes, and more points than these."""
        high = [
            n
            for n, index in enumerate(itertools.product(range(self.size), repeat=self.dimension))
            if sum(i >= self.low for i in index) > 1
        ]
        bubbles = np.concatenate([self.bubbles, np.eye(self.size**self.dimension)[:, high]], axis=1)
        points, weights = gauss(self.size)
        rows = self.over(points)
        root = np.sqrt(_kron([weights / 2] * self.dimension))
        return Wide(points, root, bubbles, rows @ bubbles, rows @ self.lift)

    def roughness(self, values: np.ndarray) -> np.ndarray:
        """Of functions with values (n, points, m) at the Gauss points: how much of their modes are
        the last ones along an axis, the largest share."""
        n, m = len(values), values.shape[2]
        modes = values.reshape(n, *(self.low,) * self.dimension, m)
        for axis in range(self.dimension):
            moved = np.moveaxis(modes, 1 + axis, -1) @ projection(self.low - 1).T
            modes = np.moveaxis(moved, -1, 1 + axis)
        inner = tuple(range(1, 1 + self.dimension))
        size = np.maximum(np.sqrt(np.sum(modes**2, axis=inner)), 1e-300)
        found = np.zeros((n, m))
        for axis in range(self.dimension):
            last = np.moveaxis(modes, 1 + axis, 1)[:, -LAST:]
            found = np.maximum(found, np.sqrt(np.sum(last**2, axis=inner)) / size)
        return np.max(found, axis=1)

    def _at_ends(self, ends: np.ndarray, modes: list[int]) -> np.ndarray:
        """Modes of values, or of slopes along the axis, on each face, (faces, modes, size^d)."""
        unit, found = np.eye(self.size), []
        for face in range(self.faces):
            each = [unit] * self.dimension
            each[face // 2] = ends[face % 2][None]
            found.append(_kron(each)[modes])
        return np.stack(found)

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def restricted(self, *ends: float) -> np.ndarray:
        """From all modes on a face, low ones first, to the low ones on a part of it, [low, high]
        along each axis."""
        parts = []
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            inside = (low + high) / 2 + (high - low) / 2 * gauss(self.size)[0]
            whole = legendre.legvander(inside, self.degree)
            parts.append(projection(self.degree)[: self.low] @ whole)
        total = _kron([np.ones((1, 1)), *parts])
        return total[:, self._low_modes() + self._high_modes()]

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def gathered(self, *ends: float) -> np.ndarray:
        """From low modes of something on a part of a face to those that it has on the whole, where
        it is nothing elsewhere."""
        mass = 1 / (2 * np.arange(self.low) + 1.0)
        mass = _kron([np.ones(1), *[mass] * (self.dimension - 1)])
        share = np.prod(np.diff(np.reshape(ends, (-1, 2)), axis=1) / 2)
        return (self.restricted(*ends)[:, : self.modes].T * mass) / mass[:, None] * share

    def over(self, points: np.ndarray) -> np.ndarray:
        """All polynomials with derivatives at the tensor product of points of [-1, 1], (rows, n^d,
        size^d)."""
        one_axis = tables(points, self.degree)
        return np.stack([_kron([one_axis[n] for n in o]) for o in all_orders(self.dimension)])


def _kron(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = np.kron(total, part)
    return total


@functools.cache
def element_of(degree: int, dimension: int) -> Element:
    return Element(degree, dimension)
