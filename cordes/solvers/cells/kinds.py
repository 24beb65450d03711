"""Which cells are plain, which are rich and why, and which lie outside of the domain."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.tree import Tree
from cordes.ansatz.cells.windows import REACH
from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.runtime.blocks import in_blocks
from cordes.solvers.cells.equation import in_cells

# Samples along each axis in which an interface, or the boundary, is looked for in a cell; a cell of
# which no more than this share lies in the domain is left to its neighbours.
LATTICE, LEAST_SHARE = 17, 0.01
# A cell has singular functions once it is so small a share of the box along an axis, and so many
# times worse than cells that are at no singular point: where the solution is smooth, polynomials
# do. What is nearer to a singular point than a share of its size counts as being at it, and has its
# functions.
SINGULAR_FROM, WORST, NEAR, FELT = 1 / 8, 3.0, 0.5, 0.3


class CellKind(NamedTuple):
    """What is near a cell: pieces of the boundary, interfaces and singular points; whether it lies
    outside of the domain."""

    outer: np.ndarray
    interfaces: np.ndarray
    points: np.ndarray
    outside: bool


class Kinds:
    """Looks at cells, each once. `locations` are those of singular points."""

    def __init__(
        self, domain: AbstractDomain, columns: RichColumns, active: np.ndarray | None = None
    ):
        self.domain, self.columns = domain, columns
        families = columns.singular.families
        self.locations = np.array([each.point.location for each in families])
        self.locations = self.locations.reshape(-1, domain.dimension)
        # Which of them have shown that they are singular.
        none = np.zeros(len(self.locations), bool)
        self.active = none if active is None else active
        self.known: dict[bytes, CellKind] = {}

    def activate(self, tree: Tree, indicator: np.ndarray) -> np.ndarray:
        """Singular points whose cells are the worst of all get their functions: these cells."""
        lower, upper = tree.boxes
        around = NEAR * (upper - lower)
        low, high = (lower - around)[:, None], (upper + around)[:, None]
        at = np.all((low <= self.locations) & (self.locations <= high), axis=2)
        others = float(np.max(indicator[~np.any(at, axis=1)], initial=0.0))
        worst = np.max(np.where(at, indicator[:, None], 0.0), axis=0, initial=0.0)
        small = np.all(~at | self._small(tree)[:, None], axis=0)
        new = ~self.active & small & (worst > WORST * others)
        self.active |= new
        if np.any(new):
            self.known.clear()
        return np.any(at & new, axis=1)

    def _small(self, tree: Tree) -> np.ndarray:
        lower, upper = tree.boxes
        size = tree.upper - tree.lower
        return np.any(upper - lower <= SINGULAR_FROM * size * (1 + 1e-12), axis=1)

    def of(self, tree: Tree) -> list[CellKind]:
        keys = [cell.tobytes() for cell in tree.cells]
        new = [n for n, key in enumerate(keys) if key not in self.known]
        if new:
            for n, kind in zip(new, self._look(tree, new), strict=True):
                self.known[keys[n]] = kind
        return [self.known[key] for key in keys]

    def _look(self, tree: Tree, new: list[int]) -> list[CellKind]:
        lower, upper = (corner[new] for corner in tree.boxes)
        count, none = len(new), np.zeros((len(new), 0), bool)
        box = isinstance(self.domain, Box)
        if box and not self.columns.heights and not np.any(self.active):
            outer = tree.outer[new]
            points = np.zeros((count, len(self.locations)), bool)
            return [CellKind(*each, False) for each in zip(outer, none, points, strict=True)]
        reach = REACH * (upper - lower)
        low, high = lower - reach, upper + reach
        lattice = in_cells(low, high, np.linspace(-1, 1, LATTICE))
        crossed = crossings(self.columns.heights, lattice)
        felt = FELT * (upper - lower)
        first, last = (lower - felt)[:, None], (upper + felt)[:, None]
        near = np.all((first <= self.locations) & (self.locations <= last), axis=2)
        near &= self._small(tree)[new][:, None] & self.active
        outer, outside = tree.outer[new], np.zeros(count, bool)
        if not box:
            flat = lattice.reshape(-1, lattice.shape[2])
            each = [level.rows(flat)[0].reshape(count, -1) for level in self.columns.levels]
            outer = np.stack([np.min(values, axis=1) <= 0 for values in each], axis=1)
            own = in_cells(lower, upper, np.linspace(-1, 1, LATTICE)).reshape(flat.shape)
            inside = self.domain.contains(own).reshape(count, -1)
            outside = np.mean(inside, axis=1) <= LEAST_SHARE
        return [
            CellKind(*each) for each in zip(outer, crossed, near, outside.tolist(), strict=True)
        ]

    def places(self, tree: Tree, kinds: list[CellKind]) -> dict[int, Place]:
        """The rich cells."""
        lower, upper = tree.boxes
        cut = not isinstance(self.domain, Box)
        found = {}
        for n, kind in enumerate(kinds):
            more = np.any(kind.interfaces) or np.any(kind.points) or (cut and np.any(kind.outer))
            if more and not kind.outside:
                found[n] = Place(lower[n], upper[n], kind.outer, kind.interfaces, kind.points)
        return found


def crossings(heights: list[Callable], x: np.ndarray) -> np.ndarray:
    """Which functions (n, count) change their sign over the points (n, m, d) of each cell."""
    found = np.zeros((len(x), len(heights)), bool)
    for k, height in enumerate(heights if len(x) else ()):
        values = np.asarray(in_blocks(height, (x.reshape(-1, x.shape[2]),)).value)
        values = values.reshape(x.shape[:2])
        found[:, k] = (np.min(values, axis=1) < 0) & (np.max(values, axis=1) > 0)
    return found
