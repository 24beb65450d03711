"""The largest value of a formula on a boundary, from which no peak can hide: interpolation on cells
where the formula is analytic, with the remainder proved, and intervals on the rest."""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.certificates.enclosed.abstract import RHO
from cordes.certificates.enclosed.charts import AbstractAtlas, ChartCells, Identity, atlas
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Interval, UnsupportedOperation
from cordes.formulas.rectangles import Neighbourhoods, Rectangle, RectangleProgram
from cordes.problems.coefficients import at_points

Array = np.ndarray
# Chebyshev points per direction, and what interpolation in them multiplies errors with.
POINTS = 12
CONSTANT = 1 + 2 / math.pi * math.log(POINTS)
LARGEST_FORMULA, LARGEST_CELLS, ROUNDS = 5_000, 4_000, 40
# A bound so many times the largest value that was seen is good enough.
ENOUGH = 8.0


class Largest(NamedTuple):
    """The largest value that was seen, and a bound of all values."""

    seen: float
    bound: float


def largest_on_boundary(domain: AbstractDomain, h: Callable, negligible: float) -> Largest:
    """|h| on the whole boundary: the bound is the largest value up to a factor, or up to what is
    negligible, and more where cells run out. An operation without enclosure raises
    `UnsupportedOperation`, a domain without charts `DomainError`."""
    program, values, charts = RectangleProgram(h, domain.dimension), at_points(h), atlas(domain)
    if len(program.trace.steps) > LARGEST_FORMULA:
        raise UnsupportedOperation("a formula of so many steps")
    cells, seen, settled = _faces(domain, charts), 0.0, 0.0
    nodes = np.cos((2 * np.arange(POINTS) + 1) * np.pi / (2 * POINTS)) / 2 + 0.5
    grid = np.array(list(itertools.product(nodes, repeat=domain.dimension - 1)))
    for _ in range(ROUNDS):
        x = charts.place(np.repeat(cells.chart, len(grid)), _nodes(cells, grid))
        found = np.abs(np.asarray(values(x)).reshape(len(cells.chart), -1))
        seen = max(seen, float(np.nanmax(found)))
        bound = _bounds(program, charts, cells, np.max(found, axis=1))
        wide = ~(bound <= max(ENOUGH * seen, negligible))
        settled = max(settled, float(np.max(bound[~wide], initial=0.0)))
        if not np.any(wide):
            return Largest(seen, settled)
        if np.count_nonzero(wide) << (domain.dimension - 1) > LARGEST_CELLS:
            break
        cells = _halved(cells.take(wide))
    return Largest(seen, max(settled, float(np.max(bound[wide]))))


def _faces(domain: AbstractDomain, charts: AbstractAtlas) -> ChartCells:
    """The boundary as boxes without width in one direction; of a cylinder the bottom and the sides,
    since nothing is given on the top."""
    whole = charts.start()
    lower, upper = np.min(whole.lower, axis=0), np.max(whole.upper, axis=0)
    # A domain that is no box ends where its first coordinate does: the radius.
    axes = range(whole.lower.shape[1]) if isinstance(charts, Identity) else ()
    ends = [(axis, end) for axis in axes for end in (lower[axis], upper[axis])]
    ends = ends or [(0, upper[0])]
    if isinstance(domain, Cylinder):
        ends = [(axis, end) for axis, end in ends if axis < domain.dimension - 1]
        ends.append((domain.dimension - 1, lower[-1]))
    faces = [_face(whole, axis, end) for axis, end in ends]
    return ChartCells(*(np.concatenate(each) for each in zip(*faces, strict=True)))


def _face(whole: ChartCells, axis: int, end: float) -> ChartCells:
    touching = (whole.lower[:, axis] == end) | (whole.upper[:, axis] == end)
    face = whole.take(touching)
    lower, upper = face.lower.copy(), face.upper.copy()
    lower[:, axis] = upper[:, axis] = end
    return ChartCells(face.chart, lower, upper)


def _nodes(cells: ChartCells, grid: Array) -> Array:
    """Points of the cells, (C · N, d): the grid along the directions in which they have a width."""
    width = cells.upper - cells.lower
    share = np.zeros((len(width), len(grid), width.shape[1]))
    share[np.broadcast_to((width > 0)[:, None], share.shape)] = np.broadcast_to(
        grid, (len(width), *grid.shape)
    ).ravel()
    return (cells.lower[:, None] + width[:, None] * share).reshape(-1, width.shape[1])


@np.errstate(all="ignore")
def _bounds(
    program: RectangleProgram, charts: AbstractAtlas, cells: ChartCells, seen: Array
) -> Array:
    near = Neighbourhoods(cells.lower, cells.upper, RHO)
    place = charts.place(cells.chart, Rectangle(cells.lower, cells.upper))
    turned = charts.place(near.repeated(cells.chart), near.rectangles())
    found = program.run(near, placed=(Interval(place.lower, place.upper), turned))
    real = np.maximum(np.abs(found.real[0].lower), np.abs(found.real[0].upper))
    remainders = near.sorted(found.complex[0].size()) * 4 * RHO ** (1.0 - POINTS) / (RHO - 1)
    wide = cells.upper > cells.lower
    each = np.where(wide, np.min(np.nan_to_num(remainders, nan=np.inf), axis=2), 0.0)
    remainder = np.sum(CONSTANT ** (np.cumsum(wide, axis=1) - 1) * each, axis=1)
    smooth = CONSTANT ** np.sum(wide, axis=1) * seen + remainder
    return np.fmin(np.where(np.isnan(real), np.inf, real), smooth) * (1 + 1e-12)


def _halved(cells: ChartCells) -> ChartCells:
    """Cells halved along all directions in which they have a width."""
    chart, lower, upper = cells
    for axis in range(lower.shape[1]):
        wide = upper[:, axis] > lower[:, axis]
        middle = (lower[wide, axis] + upper[wide, axis]) / 2
        first, second = upper.copy(), lower[wide].copy()
        first[wide, axis] = second[:, axis] = middle
        chart = np.concatenate([chart, chart[wide]])
        lower, upper = np.concatenate([lower, second]), np.concatenate([first, upper[wide]])
    return ChartCells(chart, lower, upper)
