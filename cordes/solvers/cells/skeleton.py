"""Where cells meet: which side knows the trace, and the segments on which slopes (and where a cell
is rich, values) must agree."""

from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.tree import UNITS, Tree

# A part of a side as the interval of [-1, 1] that it is; None for the whole side.
Part = tuple[float, float] | None


class Side(NamedTuple):
    """The trace that a plain cell has on a side, and which part of it."""

    trace: int
    part: Part


class Segment(NamedTuple):
    """Two cells along one line: the finer one with its whole side, and which part of its own side
    the other one gives; the axis across, and the length in units."""

    cell: int
    side: int
    other: int
    other_side: int
    part: Part
    axis: int
    length: int


class Skeleton(NamedTuple):
    """The traces that are unknown, each with its interval in units; those of plain cells by (cell,
    side), sides on the boundary left out; all segments."""

    traces: list[tuple[int, int]]
    sides: dict[tuple[int, int], Side]
    segments: list[Segment]


def skeleton_of(tree: Tree, rich: np.ndarray) -> Skeleton:
    sides: dict[tuple[int, int], Side] = {}
    segments: list[Segment] = []
    traces: list[tuple[int, int]] = []
    for (axis, place), (below, above) in _lines(tree).items():
        if place in (0, UNITS):
            continue
        for group, others in _groups(sorted(below), sorted(above)):
            fine, (low, high, other, other_side) = group, others
            trace = None if rich[other] else len(traces)
            if trace is not None:
                sides[other, other_side] = Side(trace, None)
                traces.append((low, high))
            for start, end, cell, side in fine:
                part = _part(start, end, low, high)
                if not rich[cell] and trace is None:
                    sides[cell, side] = Side(len(traces), None)
                    traces.append((start, end))
                elif trace is not None and not rich[cell]:
                    sides[cell, side] = Side(trace, part)
                segments.append(Segment(cell, side, other, other_side, part, axis, end - start))
    return Skeleton(traces, sides, segments)


Interval = tuple[int, int, int, int]


def _lines(tree: Tree) -> dict[tuple[int, int], tuple[list[Interval], list[Interval]]]:
    """Sides along each line: of the cells below it, and above."""
    lines: dict[tuple[int, int], tuple[list[Interval], list[Interval]]] = {}
    for number, cell in enumerate(tree.cells.tolist()):
        for axis in range(2):
            start, end = cell[1 - axis]
            for which, place in enumerate(cell[axis]):
                pair = lines.setdefault((axis, place), ([], []))
                pair[1 - which].append((start, end, number, 2 * axis + which))
    return lines


def _groups(below: list[Interval], above: list[Interval]):
    """The finer intervals of each stretch with the one that they are parts of."""
    i = j = 0
    while i < len(below):
        end = max(below[i][1], above[j][1])
        first, second = i, j
        while i < len(below) and below[i][1] <= end:
            i += 1
        while j < len(above) and above[j][1] <= end:
            j += 1
        lower, upper = below[first:i], above[second:j]
        yield (upper, lower[0]) if len(lower) == 1 else (lower, upper[0])


def _part(start: int, end: int, low: int, high: int) -> Part:
    if (start, end) == (low, high):
        return None
    return 2 * (start - low) / (high - low) - 1, 2 * (end - low) / (high - low) - 1
