"""An answer by cells as a network: its parameters are the coefficients of local polynomials and of
the further columns of rich cells, its value the blend of them. It vanishes on the boundary.

Numbers are evaluated by NumPy, point by point in its own cell; inside of a trace of JAX every
window that may reach a point is evaluated.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.cells.columns import Place, RichColumns, polynomial
from cordes.ansatz.cells.reference import ORDERS, tables
from cordes.ansatz.cells.tree import UNITS, Path, Tree, locate, valid
from cordes.ansatz.cells.windows import Windows, along, make_windows
from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.errors import OptionError
from cordes.jet import Jet, contract, jet_of

# Points that are evaluated at once.
CHUNK = 8192
# The degree of the polynomials beside one-sided powers, below that of the others.
EXTRA_BELOW = 2
# Coefficients along an axis that a file may have.
LEAST, LARGEST = 3, 33
# What stands for an activation, and the arrays of a saved answer with their axes.
POLYNOMIAL = "polynomial"
ARRAYS = {"cells": 3, "squares": 3, "rich": 1, "cut": 2, "near": 2, "beside": 2}


class Rich(eqx.Module):
    """The cells that have more than a polynomial: their numbers (r,), which interfaces (r, i) and
    singular points (r, s) have columns in them, and the coefficients, padded by zeros."""

    numbers: np.ndarray
    interfaces: np.ndarray
    points: np.ndarray
    coefficients: np.ndarray


class CellPolynomials(AbstractHostNetwork):
    """See the module; `squares` (n, k, k) are the coefficients of the polynomials, zero in rich
    cells."""

    inputs: Inputs
    singular: SingularFunctions = eqx.field(static=True)
    tree: Tree
    squares: np.ndarray
    rich: Rich
    layers: tuple
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)
    path: Path
    windows: Windows

    def __init__(
        self,
        inputs: Inputs,
        singular: SingularFunctions,
        tree: Tree,
        squares: np.ndarray,
        rich: Rich,
    ):
        self.inputs, self.singular, self.tree = inputs, singular, tree
        self.squares, self.rich = squares, rich
        self.layers, self.coefficients, self.activation = (), np.zeros(0), POLYNOMIAL
        # Both follow from the tree.
        self.path, self.windows = tree.path(), make_windows(tree)

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.tree.boxes

    @property
    def degree(self) -> int:
        return self.squares.shape[1] - 1

    @property
    def parameters(self) -> Any:
        return self.squares, self.rich.coefficients

    @property
    def columns(self) -> RichColumns:
        return columns_of(self.inputs, self.singular, self.degree)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file keeps; whole numbers of this size are exact."""
        rich = self.rich
        kept = (self.tree.cells, self.squares, *vars(rich).values())
        return {name: np.asarray(each, float) for name, each in zip(ARRAYS, kept, strict=True)}

    @property
    def places(self) -> list[Place]:
        lower, upper = self.tree.boxes
        outer, rich = self.tree.outer, self.rich
        return [
            Place(lower[n], upper[n], outer[n], rich.interfaces[row], rich.points[row])
            for row, n in enumerate(rich.numbers)
        ]

    # Numbers --------------------------------------------------------------------------------------

    def jet_at(self, x: np.ndarray) -> Jet:
        """N, ∇N, D²N at points (N, 2), by NumPy."""
        return self._blended(np.asarray(x, float), False)

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient, hessian = self.jet_at(x)
        total = contract(A, hessian) + np.sum(b * gradient, axis=1) - c * value
        value, gradient, hessian = self._blended(np.asarray(x, float), True)
        sizes = contract(np.abs(A), hessian) + np.sum(np.abs(b) * gradient, axis=1)
        return total, sizes + np.abs(c) * value

    def _blended(self, x: np.ndarray, sizes: bool) -> Jet:
        columns, places = self.columns, self.places
        parts = [
            self._chunk(x[k : k + CHUNK], columns, places, sizes) for k in range(0, len(x), CHUNK)
        ]
        rows = np.concatenate(parts, axis=1)
        hessian = rows[[[0, 1], [1, 2]]].transpose(2, 0, 1)
        return Jet(rows[5], rows[3:5].T, hessian)

    def _chunk(
        self, x: np.ndarray, columns: RichColumns, places: list[Place], sizes: bool
    ) -> np.ndarray:
        """The derivatives (6, N)."""
        point, cell, window = self._weights(x)
        local = self._local(x[point], cell, columns, places, sizes)
        size = np.abs if sizes else (lambda part: part)
        above = _summed(point, _multiplied(size(window), local), len(x))
        below = _summed(point, window, len(x))
        return _quotient(above, below, size)

    def _weights(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of points and cells whose windows are not zero there, and the windows with their
        derivatives (6, pairs)."""
        lower, upper = self.tree.boxes
        cells = self.windows.members[locate(self.path, x)]
        point, column = np.nonzero(cells >= 0)
        cell = cells[point, column]
        reach = self.windows.reach[cell]
        inside = np.ones(len(point), bool)
        for axis in range(2):
            place, (below, above) = x[point, axis], reach[:, 2 * axis : 2 * axis + 2].T
            inside &= (place > lower[cell, axis] - below) & (place < upper[cell, axis] + above)
        # The cell of the point itself, even where rounding puts the point outside of it.
        inside |= column == 0
        point, cell, reach = point[inside], cell[inside], reach[inside]
        factors = [
            along(x[point, a], lower[cell, a], upper[cell, a], *reach[:, 2 * a : 2 * a + 2].T)
            for a in range(2)
        ]
        return point, cell, np.stack([factors[0][i] * factors[1][j] for i, j in ORDERS])

    def _local(
        self,
        x: np.ndarray,
        cell: np.ndarray,
        columns: RichColumns,
        places: list[Place],
        sizes: bool,
    ) -> np.ndarray:
        """The derivatives of the function of each cell at its point, (6, pairs)."""
        lower, upper = self.tree.boxes
        scale = 2 / (upper - lower)[cell]
        s = scale * (x - (lower + upper)[cell] / 2)
        squares = self.squares[cell]
        one, other = (
            [
                part * scale[:, axis, None] ** n
                for n, part in enumerate(tables(s[:, axis], self.degree))
            ]
            for axis in range(2)
        )
        if sizes:
            squares = np.abs(squares)
            one, other = ([np.abs(part) for part in each] for each in (one, other))
        halves = [np.einsum("ni,nij->nj", part, squares) for part in one]
        found = np.stack([np.einsum("nj,nj->n", halves[i], other[j]) for i, j in ORDERS])
        for row, (number, place) in enumerate(zip(self.rich.numbers, places, strict=True)):
            here = np.flatnonzero(cell == number)
            if len(here):
                matrix = columns.at(place, x[here])
                used = self.rich.coefficients[row, : matrix.shape[2]]
                matrix, used = (np.abs(matrix), np.abs(used)) if sizes else (matrix, used)
                found[:, here] = matrix @ used
        return found

    # Traces ---------------------------------------------------------------------------------------

    def value(self, x: Array) -> Array:
        """N at points (N, 2) of JAX."""
        return jax.vmap(self._traced)(x)

    def jet(self, x: Array) -> Jet:
        return jax.vmap(jet_of(self._traced))(x)

    def _traced(self, x: Array) -> Array:
        lower, upper = (jnp.asarray(corner) for corner in self.tree.boxes)
        path, node = jax.tree.map(jnp.asarray, self.path), jnp.zeros((), int)
        for _ in range(self.path.depth):
            axis = path.axis[node]
            above = x[jnp.maximum(axis, 0)] >= path.cut[node]
            node = jnp.where(axis >= 0, jnp.where(above, path.above[node], path.below[node]), node)
        members = jnp.asarray(self.windows.members)[path.leaf[node]]
        cell, there = jnp.maximum(members, 0), members >= 0
        low, high, reach = lower[cell], upper[cell], jnp.asarray(self.windows.reach)[cell]
        weight = jnp.where(there, 1.0, 0.0)
        for axis in range(2):
            ends = reach[:, 2 * axis], reach[:, 2 * axis + 1]
            weight = weight * along(x[axis], low[:, axis], high[:, axis], *ends, jnp).value
        s = [
            (2 * x[axis] - low[:, axis] - high[:, axis]) / (high - low)[:, axis]
            for axis in range(2)
        ]
        local = polynomial(s, jnp.asarray(self.squares)[cell])
        columns = self.columns
        for row, place in enumerate(self.places):
            used = self.rich.coefficients[row, : columns.count(place)]
            mine = columns.traced(place, used, x)
            local = jnp.where(cell == self.rich.numbers[row], mine, local)
        return jnp.sum(weight * local) / jnp.sum(weight)


def from_arrays(
    arrays: dict[str, np.ndarray],
    box: tuple[np.ndarray, np.ndarray],
    inputs: Inputs,
    singular: SingularFunctions,
) -> CellPolynomials:
    """The answer that a file keeps; what does not fit together is refused."""
    cells, squares, rich, cut, near, beside = (arrays[name] for name in ARRAYS)
    count, rows = len(cells), len(rich)
    fits = (
        np.all(cells == np.round(cells))
        and np.all(np.abs(cells) <= UNITS)
        and valid(cells.astype(np.int64))
        and squares.shape[0] == count
        and LEAST <= squares.shape[1] == squares.shape[2] <= LARGEST
        and np.array_equal(rich, np.unique(rich))
        and np.all((rich == np.round(rich)) & (rich >= 0) & (rich < count))
        and cut.shape == (rows, len(inputs.interfaces))
        and near.shape == (rows, len(singular.counts))
        and len(beside) == rows
    )
    if not fits:
        raise OptionError("its cells and their polynomials do not belong together")
    lower, upper = (np.asarray(corner, float) for corner in box)
    tree = Tree(lower, upper, cells.astype(np.int64))
    parts = Rich(rich.astype(int), cut != 0, near != 0, beside)
    network = CellPolynomials(inputs, singular, tree, squares, parts)
    if any(network.columns.count(place) > beside.shape[1] for place in network.places):
        raise OptionError("its cells have other columns than the problem gives them")
    return network


def columns_of(inputs: Inputs, singular: SingularFunctions, degree: int) -> RichColumns:
    return RichColumns(inputs.interfaces, singular, degree, max(degree - EXTRA_BELOW, 0))


def _summed(point: np.ndarray, parts: np.ndarray, count: int) -> np.ndarray:
    return np.stack([np.bincount(point, part, count) for part in parts])


def _multiplied(window: np.ndarray, local: np.ndarray) -> np.ndarray:
    """The derivatives of ψp from those of both."""
    xx, xy, yy, x, y, v = window
    return np.stack(
        [
            v * local[0] + 2 * x * local[3] + xx * local[5],
            v * local[1] + x * local[4] + y * local[3] + xy * local[5],
            v * local[2] + 2 * y * local[4] + yy * local[5],
            v * local[3] + x * local[5],
            v * local[4] + y * local[5],
            v * local[5],
        ]
    )


def _quotient(above: np.ndarray, below: np.ndarray, size: Any) -> np.ndarray:
    """The derivatives of a quotient; with `size` = np.abs the sum of the sizes of its terms."""
    sign = -1.0 if size is not np.abs else 1.0
    xx, xy, yy, x, y, v = below[0], below[1], below[2], below[3], below[4], below[5]
    xx, xy, yy, x, y = (size(part) / v for part in (xx, xy, yy, x, y))
    n = above / v
    value = n[5]
    first = [n[3] + sign * value * x, n[4] + sign * value * y]
    return np.stack(
        [
            n[0] + sign * (2 * first[0] * x + value * xx),
            n[1] + sign * (first[0] * y + first[1] * x + value * xy),
            n[2] + sign * (2 * first[1] * y + value * yy),
            *first,
            value,
        ]
    )
