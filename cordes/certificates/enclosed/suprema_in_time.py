"""How large max_a p_a can be from above and from below in each stretch of time, from the cells of a
cylinder: by interpolation at the Gauss points where all p_a are analytic around the cell, by what
intervals say on the rest. Whoever sums these suprema over time has a bound from which nothing
hides."""

import numpy as np

from cordes.certificates.enclosed.answers.interpolation import limits_between
from cordes.certificates.enclosed.controls import ControlMeasure, OnCells
from cordes.certificates.enclosed.weights import UNIT
from cordes.certificates.theorems.comparison import ProfileInTime
from cordes.problems.controls.controlled import played

Array = np.ndarray


@np.errstate(all="ignore")
def limits_on_cells(measure: ControlMeasure) -> tuple[Array, Array, Array, Array]:
    """Lower and upper limits of F = max_a p_a over all cells, and when each begins and ends."""
    nodes, smooth = measure.points, measure.smooth
    known = measure.integrand.weighted(nodes.x, nodes.evaluated, UNIT)
    cells = OnCells(smooth, nodes, *known, UNIT, measure.integrand.problem.rivals)
    low, high = [], []
    for k in range(cells.count):
        value, rounding = known[0][:, k][cells.order], known[1][:, k][cells.order]
        most = np.maximum.reduceat(rounding, cells.starts)
        ends = limits_between(value, cells.starts, smooth.orders, cells.sizes[k], most)
        low.append(ends[0])
        high.append(ends[1])
    rivals = cells.rivals
    lower, upper = ([played(np.stack(each, axis=1), rivals)] for each in (low, high))
    begins, stops = [smooth.cells.lower[:, -1]], [smooth.cells.upper[:, -1]]
    if measure.rough is not None:
        residual = measure.rough.residual
        lower.append(np.min(played(residual[..., 0], rivals), axis=1))
        upper.append(np.max(played(residual[..., 1], rivals), axis=1))
        begins.append(measure.rough.cells.lower[:, -1])
        stops.append(measure.rough.cells.upper[:, -1])
    found = [np.concatenate(each) for each in (lower, upper, begins, stops)]
    found[0] = np.where(np.isnan(found[0]), -np.inf, found[0])
    found[1] = np.where(np.isnan(found[1]), np.inf, found[1])
    return found[0], found[1], found[2], found[3]


def profile_of(lower: Array, upper: Array, begins: Array, stops: Array) -> ProfileInTime:
    """The largest of what is known of the cells at each time."""
    times = np.unique(np.concatenate([begins, stops]))
    first, last = np.searchsorted(times, begins), np.searchsorted(times, stops)
    above, below = np.zeros(len(times) - 1), np.zeros(len(times) - 1)
    for low, high, one, other in zip(lower, upper, first, last, strict=True):
        np.maximum(above[one:other], high, out=above[one:other])
        np.maximum(below[one:other], -low, out=below[one:other])
    return ProfileInTime(times, above, below)
