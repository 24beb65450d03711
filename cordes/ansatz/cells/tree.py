"""Dyadic cells of a box in the plane: each cell is the whole box or a half of another one, along
either axis. So on a line between cells the intervals of both sides are nested, whatever the
shapes, and of two cells that meet the one with the longer side knows a trace for both.
"""

from typing import NamedTuple

import equinox as eqx
import numpy as np

# The box has so many units along each axis: a cell can be halved 44 times.
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
    """Cells (n, 2, 2): the lower and the upper end along each axis, in units of the box."""

    lower: np.ndarray
    upper: np.ndarray
    cells: np.ndarray

    @property
    def count(self) -> int:
        return len(self.cells)

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners (n, 2)."""
        share = self.cells / UNITS
        width = self.upper - self.lower
        # Both ends of the box without rounding.
        ends = self.lower[:, None] + width[:, None] * share
        ends = np.where(self.cells == UNITS, self.upper[:, None], ends)
        return ends[:, :, 0], ends[:, :, 1]

    @property
    def outer(self) -> np.ndarray:
        """Which sides (n, 4) lie on the boundary of the box."""
        ends = self.cells == np.array([0, UNITS])
        return ends.reshape(self.count, 4)

    def split(self, marks: np.ndarray) -> tuple["Tree", np.ndarray]:
        """The cells halved along the axes that are marked (n, 2), and whose child each one is."""
        cells, parents = self.cells, np.arange(self.count)
        for axis in range(2):
            here = marks[parents, axis]
            middle = cells[:, axis].sum(axis=1) // 2
            below, above = cells[here].copy(), cells[here].copy()
            below[:, axis, 1], above[:, axis, 0] = middle[here], middle[here]
            cells = np.concatenate([cells[~here], below, above])
            parents = np.concatenate([parents[~here], parents[here], parents[here]])
        order = np.argsort(parents, kind="stable")
        return Tree(self.lower, self.upper, cells[order]), parents[order]

    def path(self) -> Path:
        """How to find the cell of a point."""
        nodes: list[list] = []

        def visit(box: np.ndarray, inside: np.ndarray, depth: int) -> tuple[int, int]:
            here, deepest = len(nodes), depth
            if len(inside) == 0:
                raise AssertionError("a part of the box that no cell covers")
            if len(inside) == 1:
                nodes.append([-1, 0, 0, 0, int(inside[0])])
                return here, depth
            nodes.append([0, 0, 0, 0, -1])
            for axis in range(2):
                middle = int(box[axis].sum() // 2)
                ends = self.cells[inside, axis]
                if np.any((ends[:, 0] < middle) & (middle < ends[:, 1])):
                    continue
                low, high = box.copy(), box.copy()
                low[axis, 1] = high[axis, 0] = middle
                below, down = visit(low, inside[ends[:, 1] <= middle], depth + 1)
                above, up = visit(high, inside[ends[:, 0] >= middle], depth + 1)
                nodes[here] = [axis, middle, below, above, -1]
                return here, max(deepest, down, up)
            raise AssertionError("cells that are no halves of each other")

        whole = np.array([[0, UNITS], [0, UNITS]], dtype=np.int64)
        _, depth = visit(whole, np.arange(self.count), 0)
        axis, cut, below, above, leaf = (np.array(each) for each in zip(*nodes, strict=True))
        place = self.lower[axis] + (self.upper - self.lower)[axis] * (cut / UNITS)
        return Path(axis, place, below, above, leaf, depth)


def start_tree(lower: np.ndarray, upper: np.ndarray, halvings: int) -> Tree:
    """Equal cells, so many times halved along both axes."""
    count, step = 1 << halvings, UNITS >> halvings
    ends = np.stack([np.arange(count), np.arange(count) + 1], axis=1) * step
    cells = np.array([[x, y] for x in ends for y in ends], dtype=np.int64)
    return Tree(np.asarray(lower, float), np.asarray(upper, float), cells)


def valid(cells: np.ndarray) -> bool:
    """Whether these are the cells of a tree: they tile the box by halving alone."""
    tree = Tree(np.zeros(2), np.ones(2), cells)
    shape = cells.ndim == 3 and cells.shape[1:] == (2, 2) and len(cells) > 0
    if not shape or np.any(cells < 0) or np.any(cells > UNITS):
        return False
    if np.any(cells[:, :, 0] >= cells[:, :, 1]):
        return False
    sides = (cells[:, :, 1] - cells[:, :, 0]) / UNITS
    if abs(float(np.sum(np.prod(sides, axis=1))) - 1.0) > 1e-9:
        return False
    try:
        tree.path()
    except (AssertionError, IndexError, RecursionError):
        return False
    return True


def locate(path: Path, x: np.ndarray) -> np.ndarray:
    """The numbers of the cells of points (N, 2); a point between two belongs to the upper one."""
    node = np.zeros(len(x), dtype=np.int64)
    rows = np.arange(len(x))
    for _ in range(path.depth):
        axis = path.axis[node]
        inner = axis >= 0
        above = x[rows, np.maximum(axis, 0)] >= path.cut[node]
        node = np.where(inner, np.where(above, path.above[node], path.below[node]), node)
    return path.leaf[node]
