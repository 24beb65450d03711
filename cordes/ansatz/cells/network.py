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
from cordes.ansatz.cells.jets import all_orders, as_jet, quotient, tensor, times
from cordes.ansatz.cells.levels import Level
from cordes.ansatz.cells.reference import tables
from cordes.ansatz.cells.tree import UNITS, Path, Tree, locate, valid
from cordes.ansatz.cells.windows import Windows, along, make_windows
from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.errors import OptionError
from cordes.jet import Jet, contract, jet_of

# Numbers of polynomials that are held at once.
HELD = 1 << 21
# The degree of the polynomials beside one-sided powers, below that of the others.
EXTRA_BELOW = 2
# Coefficients along an axis that a file may have.
LEAST, LARGEST = 3, 33
# What stands for an activation, and the arrays of a saved answer with their axes.
POLYNOMIAL = "polynomial"
ARRAYS = {"lines": 2, "cells": 3, "squares": 2, "rich": 1, "near": 2, "beside": 2, "hidden": 1}


class Rich(eqx.Module):
    """The cells that have more than a polynomial: their numbers (r,), which pieces of the boundary,
    interfaces and singular points (r, …) have a part in them, and the coefficients, padded by
    zeros."""

    numbers: np.ndarray
    outer: np.ndarray
    interfaces: np.ndarray
    points: np.ndarray
    coefficients: np.ndarray

    @property
    def flags(self) -> np.ndarray:
        return np.concatenate([self.outer, self.interfaces, self.points], axis=1)


class CellPolynomials(AbstractHostNetwork):
    """See the module; `squares` (n, k, …, k) are the coefficients of the polynomials, zero in rich
    cells; `hidden` are the cells (n,) that lie outside of the domain, but for what is left to their
    neighbours."""

    inputs: Inputs
    singular: SingularFunctions = eqx.field(static=True)
    levels: tuple[Level, ...] = eqx.field(static=True)
    tree: Tree
    squares: np.ndarray
    rich: Rich
    hidden: np.ndarray
    layers: tuple
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)
    path: Path
    windows: Windows

    def __init__(
        self,
        inputs: Inputs,
        singular: SingularFunctions,
        levels: tuple[Level, ...],
        tree: Tree,
        squares: np.ndarray,
        rich: Rich,
        hidden: np.ndarray,
    ):
        self.inputs, self.singular, self.levels, self.tree = inputs, singular, levels, tree
        self.squares, self.rich, self.hidden = squares, rich, hidden
        self.layers, self.coefficients, self.activation = (), np.zeros(0), POLYNOMIAL
        # Both follow from the tree.
        self.path, self.windows = tree.path(), make_windows(tree, hidden)

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.tree.boxes

    @property
    def degree(self) -> int:
        return self.squares.shape[1] - 1

    def alone(self) -> "CellPolynomials":
        """Each polynomial in its own cell, nothing blended."""
        count, d = self.tree.count, self.tree.dimension
        alone = Windows(np.full((count, 2 * d), np.inf), np.arange(count)[:, None])
        return eqx.tree_at(lambda network: network.windows, self, alone)

    @property
    def is_alone(self) -> bool:
        return self.windows.members.shape[1] == 1

    @property
    def parameters(self) -> Any:
        return self.squares, self.rich.coefficients

    @property
    def columns(self) -> RichColumns:
        return columns_of(self.levels, self.inputs, self.singular, self.degree)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file keeps; whole numbers of this size are exact."""
        lines, rich = self.tree.lines, self.rich
        longest = max(map(len, lines))
        # The last line stands for those that there are not.
        kept = (
            np.array([[*own, *own[-1:].repeat(longest - len(own))] for own in lines]),
            self.tree.cells,
            self.squares.reshape(len(self.squares), -1),
            rich.numbers,
            rich.flags,
            rich.coefficients,
            self.hidden,
        )
        return {name: np.asarray(each, float) for name, each in zip(ARRAYS, kept, strict=True)}

    @property
    def places(self) -> list[Place]:
        lower, upper = self.tree.boxes
        rich = self.rich
        return [
            Place(lower[n], upper[n], rich.outer[row], rich.interfaces[row], rich.points[row])
            for row, n in enumerate(rich.numbers)
        ]

    # Numbers --------------------------------------------------------------------------------------

    def jet_at(self, x: np.ndarray) -> Jet:
        """N, ∇N, D²N at points (N, d), by NumPy."""
        return as_jet(self._blended(np.asarray(x, float), False))

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient, hessian = self.jet_at(x)
        total = contract(A, hessian) + np.sum(b * gradient, axis=1) - c * value
        value, gradient, hessian = as_jet(self._blended(np.asarray(x, float), True))
        sizes = contract(np.abs(A), hessian) + np.sum(np.abs(b) * gradient, axis=1)
        return total, sizes + np.abs(c) * value

    def _blended(self, x: np.ndarray, sizes: bool) -> np.ndarray:
        step = max(HELD // self.squares[0].size, 256)
        local = LocalPolynomials(self, sizes)
        parts = [self._chunk(x[k : k + step], local) for k in range(0, len(x), step)]
        return np.concatenate(parts, axis=1)

    def _chunk(self, x: np.ndarray, local: "LocalPolynomials") -> np.ndarray:
        """The derivatives (rows, N)."""
        home = locate(self.path, x)
        point, cell, window = self._weights(x, home)
        own = local.at(x[point], cell)
        total = times(np.abs(window) if local.sizes else window, own)
        alone = np.bincount(point, minlength=len(x)) == 1
        if np.all(alone):
            return own
        above = np.stack([np.bincount(point, part, len(x)) for part in total])
        below = np.stack([np.bincount(point, part, len(x)) for part in window])
        return quotient(above, below, local.sizes)

    def _weights(
        self, x: np.ndarray, home: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of points and cells whose windows are not zero there, and the windows with their
        derivatives (rows, pairs). `home` are the cells of the points."""
        lower, upper = self.tree.boxes
        cells = self.windows.members[home]
        point, column = np.nonzero(cells >= 0)
        cell = cells[point, column]
        inside = np.ones(len(point), bool)
        for axis in range(x.shape[1]):
            place, low, high = x[point, axis], lower[cell, axis], upper[cell, axis]
            below, above = self.windows.reach[cell, 2 * axis : 2 * axis + 2].T
            inside &= (place > low - below) & (place < high + above)
        # The cell of the point itself, even where rounding puts the point outside of it.
        inside |= column == 0
        point, cell = point[inside], cell[inside]
        factors = []
        for axis in range(x.shape[1]):
            reach = self.windows.reach[cell, 2 * axis : 2 * axis + 2].T
            place = x[point, axis]
            factors.append(list(along(place, lower[cell, axis], upper[cell, axis], *reach)))
        return point, cell, tensor(factors)

    # Traces ---------------------------------------------------------------------------------------

    def value(self, x: Array) -> Array:
        """N at points (N, d) of JAX."""
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
        for axis in range(len(x)):
            ends = reach[:, 2 * axis], reach[:, 2 * axis + 1]
            weight = weight * along(x[axis], low[:, axis], high[:, axis], *ends, jnp).value
        s = [
            (2 * x[axis] - low[:, axis] - high[:, axis]) / (high - low)[:, axis]
            for axis in range(len(x))
        ]
        local = polynomial(s, jnp.asarray(self.squares)[cell])
        columns = self.columns
        for row, place in enumerate(self.places):
            used = self.rich.coefficients[row, : columns.count(place)]
            mine = columns.traced(place, used, x)
            local = jnp.where(cell == self.rich.numbers[row], mine, local)
        return jnp.sum(weight * local) / jnp.sum(weight)


class LocalPolynomials:
    """The functions of single cells; `sizes`: the sums of the sizes of their terms."""

    def __init__(self, network: CellPolynomials, sizes: bool = False):
        self.network, self.sizes = network, sizes
        self.lower, self.upper = network.tree.boxes
        self.squares = np.abs(network.squares) if sizes else network.squares
        rich = network.rich
        self.row = np.full(network.tree.count, -1)
        self.row[rich.numbers] = np.arange(len(rich.numbers))
        self.columns, self.places = network.columns, network.places

    def at(self, x: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """The derivatives (rows, N) of the function of a cell at each point."""
        found = self._polynomials(x, cell)
        row = self.row[cell]
        if not np.any(row >= 0):
            return found
        order = np.argsort(row, kind="stable")
        numbers, starts = np.unique(row[order], return_index=True)
        for number, here in zip(numbers, np.split(order, starts[1:]), strict=True):
            if number >= 0:
                matrix = self.columns.at(self.places[number], x[here])
                used = self.network.rich.coefficients[number, : matrix.shape[2]]
                if self.sizes:
                    matrix, used = np.abs(matrix), np.abs(used)
                found[:, here] = matrix @ used
        return found

    def _polynomials(self, x: np.ndarray, cell: np.ndarray) -> np.ndarray:
        d, degree = x.shape[1], self.network.degree
        known: dict[tuple[int, ...], np.ndarray] = {(): self.squares[cell]}
        parts = []
        for axis in range(d):
            low, high = self.lower[cell, axis], self.upper[cell, axis]
            scale = 2 / (high - low)
            own = tables(scale * (x[:, axis] - (low + high) / 2), degree)
            own = [part * scale[:, None] ** n for n, part in enumerate(own)]
            parts.append([np.abs(part) for part in own] if self.sizes else own)

        def contracted(orders: tuple[int, ...]) -> np.ndarray:
            """Summed over the last axes."""
            if orders not in known:
                rest, axis = contracted(orders[1:]), d - len(orders)
                flat = rest.reshape(len(x), -1, rest.shape[-1])
                summed = np.matmul(flat, parts[axis][orders[0]][:, :, None])
                known[orders] = summed.reshape(rest.shape[:-1])
            return known[orders]

        return np.stack([contracted(orders) for orders in all_orders(d)])


def from_arrays(
    arrays: dict[str, np.ndarray],
    levels: tuple[Level, ...],
    inputs: Inputs,
    singular: SingularFunctions,
) -> CellPolynomials:
    """The answer that a file keeps; what does not fit together is refused."""
    lines, cells, squares, rich, near, beside, hidden = (arrays[name] for name in ARRAYS)
    count, rows, d = len(cells), len(rich), len(inputs.center)
    kinds = np.cumsum([len(levels), len(inputs.interfaces), len(singular.counts)])
    size = round(squares.shape[1] ** (1 / d))
    own = [np.unique(each) for each in lines]
    fits = (
        len(own) == d
        and all(len(each) > 1 for each in own)
        and np.all(cells == np.round(cells))
        and np.all(np.abs(cells) <= UNITS * lines.shape[1])
        and valid(own, cells.astype(np.int64))
        and len(squares) == count
        and size**d == squares.shape[1]
        and LEAST <= size <= LARGEST
        and np.array_equal(rich, np.unique(rich))
        and np.all((rich == np.round(rich)) & (rich >= 0) & (rich < count))
        and near.shape == (rows, kinds[-1])
        and len(beside) == rows
        and len(hidden) == count
        and not np.all(hidden != 0)
    )
    if not fits:
        raise OptionError("its cells and their polynomials do not belong together")
    tree = Tree(tuple(own), cells.astype(np.int64))
    outer, interfaces, points = np.split(near != 0, kinds[:-1], axis=1)
    parts = Rich(rich.astype(int), outer, interfaces, points, beside)
    squares = squares.reshape(count, *(size,) * d)
    network = CellPolynomials(inputs, singular, levels, tree, squares, parts, hidden != 0)
    if any(network.columns.count(place) > beside.shape[1] for place in network.places):
        raise OptionError("its cells have other columns than the problem gives them")
    return network


def columns_of(
    levels: tuple[Level, ...], inputs: Inputs, singular: SingularFunctions, degree: int
) -> RichColumns:
    """Those of the plane; elsewhere cells are split at interfaces until these do not matter."""
    box = inputs.center - inputs.scale, inputs.center + inputs.scale
    extra = max(degree - EXTRA_BELOW, 0)
    interfaces = inputs.interfaces if len(inputs.center) == 2 else ()
    return RichColumns(levels, interfaces, singular, degree, extra, box)
