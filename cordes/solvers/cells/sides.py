"""The sides of rich cells in parts: an interface that crosses a side has another polynomial on
either part, and behind the boundary there is nothing."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.columns import RichColumns, fewer
from cordes.ansatz.cells.tree import Tree
from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.runtime.blocks import in_blocks
from cordes.solvers.cells.element import Element
from cordes.solvers.cells.kinds import CellKind
from cordes.solvers.cells.merge import CellFace
from cordes.solvers.cells.rich import InterfaceSide

# Points of a side between which a sign may change once, and steps to the place where it does.
SAMPLES, STEPS = 33, 14
# Crossings that are no further apart than this share of a side are the same one; a part of a side
# that is shorter is none.
SAME, SHORTEST = 1e-6, 1e-3


class CellSides:
    """Finds the crossings of lines of the tree with interfaces and the boundary; what was found on
    a line stays."""

    def __init__(self, domain: AbstractDomain, columns: RichColumns, element: Element):
        self.domain, self.columns, self.element = domain, columns, element
        self.found: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._looked: set[tuple[int, int, int, int]] = set()

    def of(
        self, tree: Tree, kinds: list[CellKind], rich: list[int]
    ) -> dict[int, tuple[tuple[CellFace, ...], tuple[InterfaceSide, ...]]]:
        """The faces of rich cells, as the tree has them and as the cells do."""
        outer, segments = tree.outer, []
        for n in rich:
            for axis in range(2):
                for upper in (False, True):
                    if not (self.box and outer[n, 2 * axis + upper]):
                        place, ends = tree.cells[n, axis, int(upper)], tree.cells[n, 1 - axis]
                        segments.append((n, axis, upper, int(place), int(ends[0]), int(ends[1])))
        self._cross(tree, segments)
        gone = self._gone(tree, kinds)
        parts: dict[int, list[tuple[CellFace, InterfaceSide]]] = {n: [] for n in rich}
        for n, axis, upper, place, start, end in segments:
            for low, high in self._parts(axis, place, start, end):
                if self._open(tree, axis, place, low, high, gone):
                    parts[n].append(self._part(tree, axis, upper, place, (start, end), low, high))
        return {
            n: (tuple(face for face, _ in own), tuple(side for _, side in own))
            for n, own in parts.items()
        }

    @property
    def box(self) -> bool:
        return isinstance(self.domain, Box)

    def _part(
        self,
        tree: Tree,
        axis: int,
        upper: bool,
        place: int,
        whole: tuple[int, int],
        low: int,
        high: int,
    ) -> tuple[CellFace, InterfaceSide]:
        share = (high - low) / (whole[1] - whole[0])
        modes = fewer(self.element.modes, share)
        ends = tree.place(1 - axis, np.array([low, high]))
        side = InterfaceSide(axis, upper, float(ends[0]), float(ends[1]), modes)
        return CellFace(axis, place, (low, high), modes), side

    def _parts(self, axis: int, place: int, start: int, end: int) -> list[tuple[int, int]]:
        inside = [u for u in self.found[axis, place] if start < u < end]
        least = SHORTEST * (end - start)
        lines = [start, *sorted(inside), end]
        return [(low, high) for low, high in itertools.pairwise(lines) if high - low > least]

    def _open(self, tree: Tree, axis: int, place: int, low: int, high: int, gone: dict) -> bool:
        """Whether a part lies in the domain, and there is a cell on the other side."""
        middle = (low + high) // 2
        if any(start < middle < end for start, end in gone.get((axis, place), ())):
            return False
        if self.box:
            return True
        x = np.empty((1, 2))
        x[0, axis] = tree.place(axis, np.array([place]))[0]
        x[0, 1 - axis] = tree.place(1 - axis, np.array([middle]))[0]
        return bool(self.domain.contains(x)[0])

    def _gone(self, tree: Tree, kinds: list[CellKind]) -> dict:
        """Sides of cells that are outside, by line."""
        found = defaultdict(list)
        for n, kind in enumerate(kinds):
            if kind.outside:
                for axis in range(2):
                    ends = tuple(int(end) for end in tree.cells[n, 1 - axis])
                    for place in tree.cells[n, axis]:
                        found[axis, int(place)].append(ends)
        return found

    # Crossings ------------------------------------------------------------------------------------

    def _cross(self, tree: Tree, segments: list[tuple]) -> None:
        new = sorted({each[1:2] + each[3:] for each in segments} - self._looked)
        self._looked |= set(new)
        if not new:
            return
        table = np.array(new, dtype=np.int64)
        for function in self._functions():
            line = _SideLines(tree, table, function)
            for row, share in line.roots():
                axis, place, start, end = new[row]
                self._note(axis, place, start + int(share * (end - start)), end - start)

    def _functions(self) -> list[Callable]:
        heights = self.columns.heights
        found = [
            lambda x, height=height: np.asarray(in_blocks(height, (x,)).value) for height in heights
        ]
        if not self.box:
            found += [lambda x, level=level: level.rows(x)[0] for level in self.columns.levels]
        return found

    def _note(self, axis: int, place: int, unit: int, length: int) -> None:
        known = self.found[axis, place]
        if all(abs(unit - other) > SAME * length for other in known):
            known.append(unit)


class _SideLines(NamedTuple):
    """Segments (axis, place, start, end) in units, and a function on them."""

    tree: Tree
    table: np.ndarray
    function: Callable

    def at(self, row: np.ndarray, share: np.ndarray) -> np.ndarray:
        x = np.empty((len(row), 2))
        for axis in range(2):
            here = self.table[row, 0] == axis
            rows = row[here]
            x[here, axis] = self.tree.place(axis, self.table[rows, 1])
            ends = [self.tree.place(1 - axis, self.table[rows, k]) for k in (2, 3)]
            x[here, 1 - axis] = ends[0] + share[here] * (ends[1] - ends[0])
        return self.function(x)

    def roots(self) -> list[tuple[int, float]]:
        """The segment and the place in it of each change of sign."""
        count, share = len(self.table), np.linspace(0, 1, SAMPLES)
        flat = np.repeat(np.arange(count), SAMPLES)
        values = self.at(flat, np.tile(share, count)).reshape(count, SAMPLES)
        row, k = np.nonzero(np.sign(values[:, :-1]) * np.sign(values[:, 1:]) < 0)
        exact = [(int(r), float(share[j])) for r, j in zip(*np.nonzero(values == 0), strict=True)]
        if not len(row):
            return exact
        low, high = share[k], share[k + 1]
        at_low, at_high = values[row, k], values[row, k + 1]
        for step in range(STEPS):
            # The false position, and now and then the middle, which never fails.
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            middle = (low + high) / 2 if step % 4 == 3 else middle
            here = self.at(row, middle)
            below = np.sign(here) == np.sign(at_low)
            stay_low, stay_high = ~below, below
            # Halve the value of an end that stays (Illinois).
            at_low = np.where(below, here, np.where(stay_low, at_low / 2, at_low))
            at_high = np.where(below, np.where(stay_high, at_high / 2, at_high), here)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        best = np.where(np.abs(high - low) < 1e-9, (low + high) / 2, middle)
        return exact + [(int(r), float(b)) for r, b in zip(row, best, strict=True)]
