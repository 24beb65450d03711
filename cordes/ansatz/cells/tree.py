"""Dyadic cells of a box: each cell is a part between lines along the axes, or a half of another
cell. So the sides of two cells that meet along a line are nested in the plane, whatever their
shapes; in three dimensions that is seen to when cells are split.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np

# What lies between two lines has so many units along each axis: a cell can be halved 44 times.
UNITS = 1 << 44


class Path(NamedTuple):
    """The way from the whole box to each cell: at a node the axis (-1 at a cell) and where it is
    cut, the nodes below and above, and the number of the cell."""

    axis: np.ndarray
    cut: np.ndarray
    below: np.ndarray
    above: np.ndarray
    leaf: np.ndarray
    depth: int


class Tree(eqx.Module):
    """Cells (n, d, 2): the lower and the upper end along each axis, in units. `lines` are those
    along each axis at which cells end from the start, the ends of the box included."""

    lines: tuple[np.ndarray, ...]
    cells: np.ndarray

    @property
    def count(self) -> int:
        return len(self.cells)

    @property
    def dimension(self) -> int:
        return len(self.lines)

    @property
    def lower(self) -> np.ndarray:
        return np.array([lines[0] for lines in self.lines])

    @property
    def upper(self) -> np.ndarray:
        return np.array([lines[-1] for lines in self.lines])

    @property
    def extent(self) -> np.ndarray:
        """Units along each axis."""
        return np.array([len(lines) - 1 for lines in self.lines], dtype=np.int64) * UNITS

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners (n, d)."""
        ends = [self.place(axis, self.cells[:, axis]) for axis in range(self.dimension)]
        found = np.stack(ends, axis=1)
        return found[:, :, 0], found[:, :, 1]

    def place(self, axis: int, units: np.ndarray) -> np.ndarray:
        """Coordinates; those of lines without rounding."""
        lines = self.lines[axis]
        number = np.minimum(units // UNITS, len(lines) - 2)
        share = (units - number * UNITS) / UNITS
        below, above = lines[number], lines[number + 1]
        return np.where(share == 1, above, below + (above - below) * share)

    @property
    def outer(self) -> np.ndarray:
        """Which sides (n, 2d) lie on the boundary of the box."""
        ends = np.stack([np.zeros_like(self.extent), self.extent], axis=1)
        return (self.cells == ends).reshape(self.count, -1)

    @property
    def at_lines(self) -> np.ndarray:
        """Which sides (n, 2d) lie at one of the lines, the ends of the box included."""
        return (self.cells % UNITS == 0).reshape(self.count, -1)

    def split(self, marks: np.ndarray) -> tuple["Tree", np.ndarray]:
        """The cells halved along the axes that are marked (n, d), and whose child each one is."""
        cells, parents = self.cells, np.arange(self.count)
        for axis in range(self.dimension):
            here = marks[parents, axis]
            middle = cells[:, axis].sum(axis=1) // 2
            below, above = cells[here].copy(), cells[here].copy()
            below[:, axis, 1], above[:, axis, 0] = middle[here], middle[here]
            cells = np.concatenate([cells[~here], below, above])
            parents = np.concatenate([parents[~here], parents[here], parents[here]])
        order = np.argsort(parents, kind="stable")
        return Tree(self.lines, cells[order]), parents[order]

    def path(self) -> Path:
        """How to find the cell of a point."""
        nodes: list[list] = []

        def visit(box: np.ndarray, inside: np.ndarray, depth: int) -> tuple[int, int]:
            here, deepest = len(nodes), depth
            if len(inside) == 1:
                nodes.append([-1, 0, 0, 0, int(inside[0])])
                return here, depth
            nodes.append([0, 0, 0, 0, -1])
            axis, cut, low, high = cut_of(self.cells, box, inside)
            ends = box.copy(), box.copy()
            ends[0][axis, 1] = ends[1][axis, 0] = cut
            below, down = visit(ends[0], low, depth + 1)
            above, up = visit(ends[1], high, depth + 1)
            nodes[here] = [axis, cut, below, above, -1]
            return here, max(deepest, down, up)

        _, depth = visit(self.whole, np.arange(self.count), 0)
        axis, cut, below, above, leaf = (np.array(each) for each in zip(*nodes, strict=True))
        place = np.zeros(len(axis))
        for k in range(self.dimension):
            place[axis == k] = self.place(k, cut[axis == k])
        return Path(axis, place, below, above, leaf, depth)

    @property
    def whole(self) -> np.ndarray:
        """The box in units, (d, 2)."""
        return np.stack([np.zeros_like(self.extent), self.extent], axis=1)


class NoTreeError(AssertionError):
    """Cells that are no halves of each other, or do not cover their box."""


def cut_of(
    cells: np.ndarray, box: np.ndarray, inside: np.ndarray
) -> tuple[int, int, np.ndarray, np.ndarray]:
    """An axis and a place along it at which no cell inside of a box is cut, and the cells below and
    above: the middle line where there are lines, else the middle."""
    for axis in range(cells.shape[1]):
        start, end = box[axis]
        lines = (end - start) // UNITS
        middle = start + lines // 2 * UNITS if lines > 1 else (start + end) // 2
        ends = cells[inside, axis]
        below, above = ends[:, 1] <= middle, ends[:, 0] >= middle
        if np.all(below | above) and np.any(below) and np.any(above):
            return axis, int(middle), inside[below], inside[above]
    raise NoTreeError("cells that are no halves of each other")


def start_tree(lines: Sequence[np.ndarray], halvings: int) -> Tree:
    """Equal cells between lines, so many times halved along all axes."""
    lines = tuple(np.asarray(each, float) for each in lines)
    step, ends = UNITS >> halvings, []
    for each in lines:
        start = np.arange((len(each) - 1) << halvings, dtype=np.int64) * step
        ends.append(np.stack([start, start + step], axis=1))
    grid = np.meshgrid(*(np.arange(len(each)) for each in ends), indexing="ij")
    cells = np.stack([each[n.ravel()] for each, n in zip(ends, grid, strict=True)], axis=1)
    return Tree(lines, cells)


def valid(lines: Sequence[np.ndarray], cells: np.ndarray) -> bool:
    """Whether these are the cells of a tree: they tile the box by halving alone."""
    d = len(lines)
    if cells.ndim != 3 or cells.shape[1:] != (d, 2) or not len(cells):
        return False
    tree = Tree(tuple(lines), cells)
    if np.any(cells < 0) or np.any(cells > tree.extent[:, None]):
        return False
    if np.any(cells[:, :, 0] >= cells[:, :, 1]):
        return False
    sides = (cells[:, :, 1] - cells[:, :, 0]) / tree.extent
    if abs(float(np.sum(np.prod(sides, axis=1))) - 1.0) > 1e-9:
        return False
    try:
        tree.path()
    except (NoTreeError, IndexError, RecursionError):
        return False
    return True


def locate(path: Path, x: np.ndarray) -> np.ndarray:
    """The numbers of the cells of points (N, d); a point between two belongs to the upper one."""
    node = np.zeros(len(x), dtype=np.int64)
    rows = np.arange(len(x))
    for _ in range(path.depth):
        axis = path.axis[node]
        inner = axis >= 0
        above = x[rows, np.maximum(axis, 0)] >= path.cut[node]
        node = np.where(inner, np.where(above, path.above[node], path.below[node]), node)
    return path.leaf[node]
