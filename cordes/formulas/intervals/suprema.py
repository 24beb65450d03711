"""Certified suprema and infima over a domain by branch and bound: no value between the sampled
points can be missed.

Cells cover the bounding box of the domain. Those with the largest bounds are halved until the
bounds of all cells come close to a value that is attained. Cells that lie outside the domain for
certain are dropped; the others may reach beyond it, which makes the bound larger, never smaller.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cordes.domains import Box
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.domains.walls import Walled
from cordes.formulas.intervals.arithmetic import Interval
from cordes.formulas.intervals.arithmetic import point as exactly
from cordes.formulas.intervals.program import enclose
from cordes.formulas.movement import UnsupportedOperation
from cordes.runtime.clock import check_deadline

# Cells that are halved at a time, and halvings of the bounding box to begin with.
BATCH, FIRST = 256, 8

CellBound = Callable[[np.ndarray, np.ndarray], np.ndarray]
Values = Callable[[np.ndarray], np.ndarray]


class Supremum(NamedTuple):
    """`upper` bounds the supremum from above in any case, possibly by infinity; `attained` is the
    largest value seen, at `point`. `decided` tells whether the two are within the tolerance."""

    upper: float
    attained: float
    point: np.ndarray
    decided: bool


class Infimum(NamedTuple):
    """As `Supremum`, with the lower bound of the infimum."""

    lower: float
    attained: float
    point: np.ndarray
    decided: bool


class _Cells(NamedTuple):
    lower: np.ndarray
    upper: np.ndarray
    bounds: np.ndarray

    def take(self, index: np.ndarray) -> "_Cells":
        return _Cells(self.lower[index], self.upper[index], self.bounds[index])


def supremum(
    bound: CellBound,
    evaluate: Values,
    domain: AbstractDomain,
    attained: float,
    point: np.ndarray,
    tolerance: float,
    budget: int = 20_000,
    smallest: float = 1e-7,
) -> Supremum:
    """The supremum over the domain of a function of which `bound(lower, upper)` gives an upper
    bound on each cell (n, d), infinity allowed.

    `evaluate` gives values at points (n, d) of the domain, the middles of cells, to raise
    `attained`, the largest value known so far, taken at `point`; NaN counts as no value. The search
    ends when the upper bound is at most attained + tolerance (decided), when more than `budget`
    cells have been bounded, or when the cell with the largest bound is smaller than `smallest`
    times the box on all sides (undecided).

    Assumed: `bound` is right on every cell, and the domain lies in its bounding box.
    """
    low, high = (np.asarray(corner, dtype=np.float64) for corner in domain.bounding_box)
    outside, box = outside_of(domain), high - low
    best, where, settled = float(attained), np.asarray(point, dtype=np.float64), -np.inf
    children = _Cells(low[None], high[None], np.array([np.inf]))
    for _ in range(FIRST):
        children = _halved(children, box)
    cells, spent = children.take(np.zeros(0, dtype=int)), 0
    while True:
        check_deadline()
        children = children.take(~outside(children.lower, children.upper))
        spent += len(children.bounds)
        if len(children.bounds):
            found = bound(children.lower, children.upper)
            children = children._replace(
                bounds=np.minimum(children.bounds, np.where(np.isnan(found), np.inf, found))
            )
            best, where = _best(evaluate, domain, children, best, where)
        cells = _Cells(*(np.concatenate(pair) for pair in zip(cells, children, strict=True)))
        enough = cells.bounds <= best + tolerance
        settled = np.max(cells.bounds[enough], initial=settled)
        cells = cells.take(np.flatnonzero(~enough))
        if len(cells.bounds) == 0:
            return Supremum(float(max(settled, best)), best, where, True)
        count = min(BATCH, len(cells.bounds))
        order = np.argpartition(-cells.bounds, count - 1)
        worst = cells.take(order[:count])
        divisible = np.max((worst.upper - worst.lower) / box, axis=1) >= smallest
        if spent > budget or not divisible[np.argmax(worst.bounds)]:
            return Supremum(float(max(settled, np.max(worst.bounds))), best, where, False)
        children = _halved(worst.take(np.flatnonzero(divisible)), box)
        cells = cells.take(np.concatenate([order[count:], order[:count][~divisible]]))


def infimum(
    bound: CellBound,
    evaluate: Values,
    domain: AbstractDomain,
    attained: float,
    *rest: Any,
    **options: Any,
) -> Infimum:
    """The infimum over the domain of a function of which `bound(lower, upper)` gives a lower bound
    on each cell; see `supremum`, also for what else is given."""
    found = supremum(
        lambda lower, upper: -bound(lower, upper),
        lambda points: -evaluate(points),
        domain,
        -attained,
        *rest,
        **options,
    )
    return Infimum(-found.upper, -found.attained, found.point, found.decided)


def _halved(cells: _Cells, box: np.ndarray) -> _Cells:
    """Each cell cut in two across its longest side, in units of the box. A half inherits the bound
    of the whole."""
    rows = np.arange(len(cells.bounds))
    axis = np.argmax((cells.upper - cells.lower) / box, axis=1)
    middle = (cells.lower[rows, axis] + cells.upper[rows, axis]) / 2
    lower, upper = cells.lower.copy(), cells.upper.copy()
    lower[rows, axis] = upper[rows, axis] = middle
    return _Cells(
        np.concatenate([cells.lower, lower]),
        np.concatenate([upper, cells.upper]),
        np.tile(cells.bounds, 2),
    )


def _best(
    evaluate: Values, domain: AbstractDomain, cells: _Cells, best: float, where: np.ndarray
) -> tuple[float, np.ndarray]:
    """The largest value known, with those in the middles of cells."""
    middles = (cells.lower + cells.upper) / 2
    middles = middles[domain.contains(middles)]
    if len(middles) == 0:
        return best, where
    values = np.asarray(evaluate(middles), dtype=np.float64)
    values = np.where(np.isfinite(values), values, -np.inf)
    largest = int(np.argmax(values))
    return (float(values[largest]), middles[largest]) if values[largest] > best else (best, where)


def outside_of(domain: AbstractDomain) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Whether cells lie outside the domain for certain.

    Of a polygon, and of the convex hull of a domain that is not convex: beyond one of its edges.
    (The product of the distances to its edges is no help, it is positive again beyond a corner.) Of
    other domains: where their distance function, which is not negative inside, is negative.
    """
    if isinstance(domain, Box | Walled):
        return lambda lower, upper: np.zeros(len(lower), dtype=bool)
    if isinstance(domain, Cylinder):
        base = outside_of(domain.base)
        return lambda lower, upper: base(lower[:, :-1], upper[:, :-1])
    if domain.vertices is not None:
        return _beyond_an_edge(np.asarray(domain.vertices))
    if isinstance(domain, Region):
        return _beyond_an_edge(domain.hull.vertices)
    distance = enclose(domain.distance)

    def negative(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.all([piece.upper < 0 for piece in distance(lower, upper)], axis=0)

    try:
        distance.program(domain.dimension)
    except UnsupportedOperation:
        return lambda lower, upper: np.zeros(len(lower), dtype=bool)
    return negative


def _beyond_an_edge(vertices: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The vertices run counter-clockwise, so that the inside lies on the left of each edge."""
    start = exactly(vertices)
    edge = exactly(np.roll(vertices, -1, axis=0)) - start

    def outside(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        offset = Interval(lower[:, None], upper[:, None]) - start
        left = edge[:, 0] * offset[..., 1] - edge[:, 1] * offset[..., 0]
        return np.any(left.upper < 0, axis=1)

    return outside
