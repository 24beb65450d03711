"""The sparse least squares that joins the cells: slopes agree where cells meet, values too where a
cell is rich, and traces agree in the corners of each cell.

Traces are polynomials on the longer of two sides, so that values agree by themselves between plain
cells. The normal equations see only how slopes depend on traces, whose condition is that of a
first-order operator; a few steps of refinement with the rows themselves give what was lost.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.polynomial import legendre
from scipy.sparse.linalg import splu

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.reference import Reference
from cordes.ansatz.cells.tree import UNITS, Tree
from cordes.solvers.cells.plain import Eliminated
from cordes.solvers.cells.rich import KeptCell, side_points
from cordes.solvers.cells.skeleton import Part, Segment, Skeleton

REFINEMENTS = 3
# Added to the diagonal of columns of size one.
RIDGE = 1e-15


class Parts(NamedTuple):
    """The cells: all of them, those that are eliminated and those that are kept, by number."""

    tree: Tree
    plain: dict[int, Eliminated]
    kept: dict[int, KeptCell]
    places: dict[int, Place]
    columns: RichColumns


class Joined(NamedTuple):
    """The polynomials of plain cells (n, k²), zero elsewhere, the coefficients of rich ones, the
    jump of slopes at each cell, and how many unknowns there were."""

    squares: np.ndarray
    rich: dict[int, np.ndarray]
    jumps: np.ndarray
    unknowns: int


class Assembly:
    """Rows of the sparse system, block by block. Rows of one rich cell alone are many and dense:
    their normal equations are formed apart."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.target: list[np.ndarray] = []
        self.dense: list[tuple[slice, np.ndarray, np.ndarray]] = []
        self.count = 0

    def add(self, block: np.ndarray, first: int, below: int = 0) -> None:
        """A dense block at a column, so many rows below the ones that come next."""
        height, width = block.shape
        self.rows.append(np.repeat(np.arange(height) + self.count + below, width))
        self.columns.append(np.tile(np.arange(first, first + width), height))
        self.values.append(block.ravel())

    def close(self, target: np.ndarray) -> slice:
        """The rows that were added last, with their target."""
        self.target.append(target)
        rows = slice(self.count, self.count + len(target))
        self.count = rows.stop
        return rows

    def own(self, block: np.ndarray, target: np.ndarray, first: int) -> None:
        """Rows of one rich cell, which say the same as the triangle of their QR."""
        triangle = np.asarray(np.linalg.qr(np.column_stack([block, target]), mode="r"))
        size = block.shape[1]
        block, target = triangle[:size, :size], triangle[:size, size]
        self.dense.append((slice(first, first + size), block, target))

    def solved(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """The least-squares solution, and what is left of the target of the sparse rows."""
        if not width:
            return np.zeros(0), np.concatenate(self.target)
        parts = (np.concatenate(each) for each in (self.values, self.rows, self.columns))
        values, rows, columns = parts
        matrix = sparse.csr_array((values, (rows, columns)), shape=(self.count, width))
        target = np.concatenate(self.target)
        squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
        for where, block, _ in self.dense:
            squares[where] += np.sum(block**2, axis=0)
        size = np.sqrt(np.where(squares > 0, squares, 1.0))
        matrix = sparse.csr_array(matrix @ sparse.diags_array(1 / size))
        dense = [(where, block / size[where], right) for where, block, right in self.dense]
        factors = _factorised(matrix, dense)
        solution = np.zeros(width)
        for _ in range(1 + REFINEMENTS):
            step = matrix.T @ (target - matrix @ solution)
            for where, block, right in dense:
                step[where] += block.T @ (right - block @ solution[where])
            solution += factors.solve(step)
        return solution / size, target - matrix @ solution


def _factorised(matrix: Any, dense: list) -> Any:
    """The normal equations."""
    width = matrix.shape[1]
    normal = matrix.T @ matrix + RIDGE * sparse.eye_array(width)
    if dense:
        grams = [(where, block.T @ block) for where, block, _ in dense]
        numbers = [np.arange(where.start, where.stop) for where, _ in grams]
        rows = np.concatenate([np.repeat(each, len(each)) for each in numbers])
        columns = np.concatenate([np.tile(each, len(each)) for each in numbers])
        values = np.concatenate([gram.ravel() for _, gram in grams])
        normal = normal + sparse.csr_array((values, (rows, columns)), shape=(width, width))
    return splu(
        sparse.csc_array(normal),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def join(parts: Parts, skeleton: Skeleton, reference: Reference) -> Joined:
    return _Join(parts, skeleton, reference).solved()


class _Join:
    def __init__(self, parts: Parts, skeleton: Skeleton, reference: Reference):
        self.parts, self.skeleton, self.reference = parts, skeleton, reference
        self.width = parts.tree.upper - parts.tree.lower
        self.lower, self.upper = parts.tree.boxes
        first = len(skeleton.traces) * reference.size
        self.first: dict[int, int] = {}
        for number, kept in parts.kept.items():
            self.first[number], first = first, first + kept.basis.shape[1]
        self.unknowns = first
        self.of_cell = {number: self._traces(number) for number in parts.plain}

    def _traces(self, number: int) -> list[tuple[int, int, np.ndarray | None]]:
        """The unknown sides of a plain cell: first column, side, restriction."""
        found = []
        for side in range(4):
            entry = self.skeleton.sides.get((number, side))
            if entry is not None:
                part = None if entry.part is None else self.reference.restricted(*entry.part)
                found.append((entry.trace * self.reference.size, side, part))
        return found

    def solved(self) -> Joined:
        assembly = Assembly()
        segments = [(each, self._meet(assembly, each)) for each in self.skeleton.segments]
        for number in self.parts.plain:
            self._corners(assembly, number)
        for number, kept in self.parts.kept.items():
            assembly.own(kept.rows, kept.target, self.first[number])
        solution, left = assembly.solved(self.unknowns)
        jumps = np.zeros(self.parts.tree.count)
        for segment, rows in segments:
            size = float(np.sqrt(np.sum(left[rows] ** 2) / self._length(segment)))
            for cell in (segment.cell, segment.other):
                jumps[cell] = max(jumps[cell], size)
        return Joined(*self._functions(solution), jumps, self.unknowns)

    def _functions(self, solution: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        k = self.reference.size
        self._end_at_zero(solution[: len(self.skeleton.traces) * k].reshape(-1, k))
        squares = np.zeros((self.parts.tree.count, k * k))
        for number, cell in self.parts.plain.items():
            traces = np.zeros(4 * k)
            for first, side, part in self.of_cell[number]:
                trace = solution[first : first + k]
                traces[side * k : (side + 1) * k] = trace if part is None else part @ trace
            squares[number] = cell.response[:, 0] + cell.response[:, 1:] @ traces
        rich = {
            number: kept.basis @ solution[self.first[number] :][: kept.basis.shape[1]]
            for number, kept in self.parts.kept.items()
        }
        return squares, rich

    def _end_at_zero(self, traces: np.ndarray) -> None:
        """Traces that end on the boundary are zero there, as the rows of the corners have it up to
        what they leave: then boundary values are exact."""
        ends = np.array(self.skeleton.traces).reshape(-1, 2) == (0, UNITS)
        signs = np.array([(-1.0) ** np.arange(traces.shape[1]), np.ones(traces.shape[1])])
        for sign, here, slope in zip(signs, ends.T, (-0.5, 0.5), strict=True):
            value = np.where(here, traces @ sign, 0.0)
            traces[:, 0] -= value / 2
            traces[:, 1] -= value * slope

    def _length(self, segment: Segment) -> float:
        return segment.length / UNITS * float(self.width[1 - segment.axis])

    def _meet(self, assembly: Assembly, segment: Segment) -> slice:
        """Slopes of two cells agree, and values where one of them is rich."""
        kept = self.parts.kept
        mixed = segment.cell in kept or segment.other in kept
        t, weights = self.reference.points, self.reference.weights
        if mixed:
            t, weights = legendre.leggauss(2 * self.reference.degree + 4)
        root = np.sqrt(weights / 2 * self._length(segment))
        pair = (
            (self._side(segment.cell, segment.side, None, t, mixed), 1.0),
            (self._side(segment.other, segment.other_side, segment.part, t, mixed), -1.0),
        )
        h = float(np.min(self.upper[segment.cell] - self.lower[segment.cell]))
        strong = self.reference.degree / h
        target = np.zeros((1 + mixed) * len(t))
        for (blocks, value, slope), sign in pair:
            for first, values, slopes in blocks:
                assembly.add(sign * slopes * root[:, None], first)
                if mixed:
                    assembly.add(sign * strong * values * root[:, None], first, len(t))
            target[: len(t)] -= sign * slope * root
            if mixed:
                target[len(t) :] -= sign * strong * value * root
        return assembly.close(target)

    def _side(
        self, number: int, side: int, part: Part, t: np.ndarray, values: bool
    ) -> tuple[list, np.ndarray | float, np.ndarray | float]:
        """Values and slopes at points of a side as they depend on the unknowns: first column and
        matrices; and what they are without unknowns."""
        if part is not None:
            t = (part[0] + part[1]) / 2 + (part[1] - part[0]) / 2 * t
        if number in self.parts.kept:
            place, basis = self.parts.places[number], self.parts.kept[number].basis
            found = self.parts.columns.at(place, side_points(place, side, t))
            block = self.first[number], found[5] @ basis, found[3 + side // 2] @ basis
            return [block], 0.0, 0.0
        k = self.reference.size
        along = legendre.legvander(t, self.reference.degree)
        slopes = along @ self.parts.plain[number].slopes[side]
        blocks = []
        for first, other, restriction in self.of_cell[number]:
            slope = slopes[:, 1 + other * k : 1 + (other + 1) * k]
            value = along if other == side else np.zeros((len(t), k))
            if restriction is not None:
                slope = slope @ restriction
                value = value @ restriction if values else value
            blocks.append((first, value, slope))
        return blocks, 0.0, slopes[:, 0]

    def _corners(self, assembly: Assembly, number: int) -> None:
        """The traces of a cell agree in its corners; on the boundary they are zero."""
        k, h = self.reference.size, float(np.min(self.upper[number] - self.lower[number]))
        mismatch = self.reference.mismatch * (self.reference.degree / np.sqrt(h))
        for first, side, part in self.of_cell[number]:
            block = mismatch[:, side * k : (side + 1) * k]
            assembly.add(block if part is None else block @ part, first)
        assembly.close(np.zeros(4))
