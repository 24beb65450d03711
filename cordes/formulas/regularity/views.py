"""The cells on which a search for singularities looks at a domain, and what they show of an
operation that may be singular."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Interval
from cordes.formulas.regularity.expressions import Site

# Cells along each axis at the start, by dimension; in higher dimensions the first axes are halved.
START = {1: 64, 2: 12, 3: 6, 4: 4, 5: 3}
HALVED_AXES = 6
# A denominator that comes as near to zero as this share of its largest value is a guard such as
# max(|x|², 1e-300), not a bound.
GUARD = 1e-12


class SearchCells(NamedTuple):
    lower: np.ndarray
    upper: np.ndarray

    def take(self, index: np.ndarray) -> "SearchCells":
        return SearchCells(self.lower[index], self.upper[index])

    def children(self) -> "SearchCells":
        """Each cell cut in the middle of every axis."""
        middle = (self.lower + self.upper) / 2
        corners = np.array(list(itertools.product((False, True), repeat=self.lower.shape[1])))
        lower = np.where(corners, middle[:, None], self.lower[:, None])
        upper = np.where(corners, self.upper[:, None], middle[:, None])
        return SearchCells(lower.reshape(-1, corners.shape[1]), upper.reshape(-1, corners.shape[1]))


def first_cells(domain: AbstractDomain) -> SearchCells:
    """Cells that cover the bounding box of a domain."""
    lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
    d = len(lower)
    counts = [START[d]] * d if d in START else [2 if axis < HALVED_AXES else 1 for axis in range(d)]
    index = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, d)
    starts, ends = (
        lower + place / np.array(counts) * (upper - lower) for place in (index, index + 1)
    )
    return SearchCells(starts, np.where(index + 1 == counts, upper, ends))


class SiteView:
    """What the cells show of a site: where in the last round it is undecided, which signs its
    operand has in cells, and which surely in the domain."""

    def __init__(self):
        self.undecided = np.zeros(0, bool)
        self.seen: set[int] = set()
        self.sure: set[int] = set()

    @property
    def certain(self) -> bool:
        """A continuous operand that takes both signs in a convex domain vanishes in it."""
        return len(self.sure) == 2

    def examine(self, site: Site, ranges: dict[int, Interval], middles: np.ndarray) -> None:
        """Look at a site on cells: the intervals of its operands, and whether the middle of a cell
        lies in the domain."""
        operands = [ranges[number] for number in site.operands]
        first = operands[0]
        if site.test in ("zero", "crossing"):
            value = first if len(operands) == 1 else first - operands[1]
            guard, sizes = 0.0, np.maximum(np.abs(value.lower), np.abs(value.upper))
            if site.name not in ("abs", "max", "min", "sign", "comparison"):
                guard = GUARD * float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))
            signs = {1: value.lower > guard, -1: value.upper < -guard}
            self.seen |= {sign for sign, cells in signs.items() if np.any(cells)}
            self.sure |= {sign for sign, cells in signs.items() if np.any(cells & middles)}
            self.undecided = ~(signs[1] | signs[-1])
            # |w| is smooth where w touches zero without crossing it, as on the boundary of the
            # domain.
            for sign, touching in ((1, value.lower >= 0), (-1, value.upper <= 0)):
                if site.test == "crossing" and np.all(touching) and self.seen <= {sign}:
                    self.undecided, self.seen = np.zeros(len(middles), bool), {sign}
        elif site.test == "inside":
            self.undecided = ~((first.lower > site.bounds[0]) & (first.upper < site.bounds[1]))
        elif site.test == "step":
            whole = np.floor(first.lower)
            self.undecided = ~((whole == np.floor(first.upper)) & (whole < first.lower))
        elif site.test == "cut":
            self.undecided = ~((first.lower > 0) | (first.upper < 0) | (operands[1].lower > 0))
        elif site.test == "meeting":
            self.undecided = _undecided_extreme(operands, site.name == "reduce_max")
        else:
            self.undecided = np.ones(len(middles), bool)


def _undecided_extreme(operands: Sequence[Interval], largest: bool) -> np.ndarray:
    """Where no operand is surely larger (smaller) than all others."""
    lower = np.stack([x.lower if largest else -x.upper for x in operands])
    upper = np.stack([x.upper if largest else -x.lower for x in operands])
    best = np.argmax(lower, axis=0)
    rivals = np.where(np.arange(len(operands))[:, None] == best, -np.inf, upper)
    return ~(np.max(lower, axis=0) > np.max(rivals, axis=0))
