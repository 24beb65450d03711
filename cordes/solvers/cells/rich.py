"""Rich cells: any columns. Their coefficients fulfil the equation by least squares, under the
condition that they have given values on the faces of the cell; so the cell, too, is known by how
the slopes on its faces depend on the values there.

A singular value decomposition of its rows, of its values and slopes makes the columns orthonormal
and drops what says nothing; another one of the values on the faces alone separates what these
determine from what the equation does.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.reference import gauss, projection
from cordes.solvers.cells.equation import Equation, in_cells
from cordes.solvers.cells.plain import Reduced

# Columns below this share of the largest singular value are dropped; singular functions are known
# with fewer digits.
CUT, CUT_SINGULAR = 1e-12, 1e-9
# Values on faces that columns have only with such a share are not asked for.
OUT_OF_REACH = 1e-9


# Weight of rows beyond the cell, which must not matter but where nothing else is said: polynomials
# are larger there.
BEYOND = 1e-3
# Modes of values on a side beside those that are asked for.
EXTRA = 2


class InterfaceSide(NamedTuple):
    """A part of a side of a cell: the axis across, lower or upper, its ends, and how many modes are
    asked for."""

    axis: int
    upper: bool
    start: float
    end: float
    modes: int


class RichCell(NamedTuple):
    """Where a cell is, its sides, and which points of the domain its rows may have (None: all)."""

    place: Place
    sides: tuple[InterfaceSide, ...]
    contains: Callable[[np.ndarray], np.ndarray] | None = None


def reduce_rich(
    equation: Equation,
    columns: RichColumns,
    cells: list[RichCell],
    known: list[Reduced | None] | None = None,
) -> list[Reduced]:
    """Many cells; those that are `known` only where the equation is not what it was. What JAX
    computes is asked for once for all of them."""
    if not cells:
        return []
    points = [_points(columns, cell) for cell in cells]
    rows = equation(np.concatenate([x for x, _ in points]))
    ends = np.cumsum([len(x) for x, _ in points])[:-1]
    factors, targets = np.split(rows.factors, ends), np.split(rows.target, ends)
    marks = [hash((a.tobytes(), b.tobytes())) for a, b in zip(factors, targets, strict=True)]
    found: list[Reduced | None] = list(known) if known is not None else [None] * len(cells)
    new = [
        k
        for k, (old, mark) in enumerate(zip(found, marks, strict=True))
        if old is None or old.rows != mark
    ]
    t, _ = gauss(2 * columns.degree + 4)
    sides = [[side_points(cells[k].place, side, t) for side in cells[k].sides] for k in new]
    where = [np.concatenate([points[k][0], *own]) for k, own in zip(new, sides, strict=True)]
    heights = _heights(columns, [cells[k] for k in new], where)
    for k, own, height in zip(new, sides, heights, strict=True):
        local = LocalRows(points[k][0], points[k][1], factors[k], targets[k])
        found[k] = _reduced(columns, cells[k], local, own, height, marks[k])
    return found  # pyright: ignore[reportReturnType]


class LocalRows(NamedTuple):
    """Points of a cell with their weights, and the equation there."""

    x: np.ndarray
    weight: np.ndarray
    factors: np.ndarray
    target: np.ndarray


def _heights(
    columns: RichColumns, cells: list[RichCell], where: list[np.ndarray]
) -> list[dict[int, np.ndarray]]:
    """The derivatives of interfaces at points of cells that they cut."""
    found: list[dict[int, np.ndarray]] = [{} for _ in cells]
    for k in range(len(columns.heights)):
        cut = [n for n, cell in enumerate(cells) if cell.place.interfaces[k]]
        if cut:
            one = np.arange(len(columns.heights)) == k
            rows = columns.heights_at(np.concatenate([where[n] for n in cut]), one)[k]
            ends = np.cumsum([len(where[n]) for n in cut])[:-1]
            for n, part in zip(cut, np.split(rows, ends, axis=1), strict=True):
                found[n][k] = part
    return found


def _reduced(
    columns: RichColumns,
    cell: RichCell,
    local: LocalRows,
    sides: list[np.ndarray],
    heights: dict[int, np.ndarray],
    mark: int,
) -> Reduced:
    """Where there is an interface rows reach as far as the window of the cell does, so that what
    lies behind one next to a side is determined as well."""
    place, count = cell.place, len(local.x)
    whole = columns.at(place, np.concatenate([local.x, *sides]), heights)
    matrix = np.einsum("nj,jnm->nm", local.factors * local.weight[:, None], whole[:, :count])
    target = local.target * local.weight
    values, slopes, more, edges = _on_sides(columns, cell, whole[:, count:])
    cut = CUT_SINGULAR if np.any(place.points) else CUT
    basis = _orthonormal(np.concatenate([matrix, edges]), cut)
    matrix, values = matrix @ basis, values @ basis
    # What the values determine, and what they leave free.
    left, singular, right = np.linalg.svd(values)
    rank = int(np.sum(singular > OUT_OF_REACH * singular[0])) if len(singular) else 0
    from_values = right[:rank].T @ (left[:, :rank] / singular[:rank]).T
    free = right[rank:].T
    wanted = np.concatenate([target[:, None], -(matrix @ from_values)], axis=1)
    response = free @ _least_squares(matrix @ free, wanted)
    response[:, 1:] += from_values
    response = basis @ response
    return Reduced(response, slopes @ response, more @ response, mark)


def _points(columns: RichColumns, cell: RichCell) -> tuple[np.ndarray, np.ndarray]:
    """Points of the cell with their weights, more of them on the smaller side of an interface, and
    some around the cell, which its window reaches."""
    place, size = cell.place, cell.place.upper - cell.place.lower
    frame = columns.frame(place)
    lower, upper = np.maximum(place.lower, frame.lower), np.minimum(place.upper, frame.upper)
    parts = [_box_points(lower, upper, 2 * frame.degree + 4)]
    for k in np.flatnonzero(place.interfaces).tolist():
        frame = columns.frame(place, k)
        x, weight = _box_points(frame.lower, frame.upper, 2 * frame.degree + 4)
        lower, upper = columns.box
        here = np.all((x > lower) & (x < upper), axis=1)
        beyond = np.any((x < place.lower) | (x > place.upper), axis=1)
        parts.append((x[here], np.where(beyond, BEYOND, 1.0)[here] * weight[here]))
    x, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    weight = weight * np.sqrt(np.min(size))
    if cell.contains is not None:
        inside = cell.contains(x)
        x, weight = x[inside], weight[inside]
    return x, weight


def _box_points(lower: np.ndarray, upper: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    t, weights = gauss(order)
    x = in_cells(lower[None], upper[None], t)[0]
    return x, np.sqrt(np.kron(weights, weights) / 4 * np.prod(upper - lower))


def _on_sides(
    columns: RichColumns, cell: RichCell, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Modes of values and of slopes outwards on all sides, two further modes of values, and both at
    points with weights that make them comparable with rows; `whole` are the columns at the points
    of all sides."""
    place, order = cell.place, 2 * columns.degree + 4
    _, weights = gauss(order)
    h = float(np.min(place.upper - place.lower))
    values, slopes, more, edges = [], [], [], []
    none = np.zeros((0, columns.count(place)))
    for k, side in enumerate(cell.sides):
        found = whole[:, k * order : (k + 1) * order]
        sign = 1.0 if side.upper else -1.0
        modes = projection(order - 1)[: side.modes]
        more.append(projection(order - 1)[side.modes : side.modes + EXTRA] @ found[0])
        values.append(modes @ found[0])
        slopes.append(sign * modes @ found[1 + side.axis])
        root = np.sqrt(weights / 2 * (side.end - side.start))[:, None]
        edges += [found[0] * root * columns.degree / h, found[1 + side.axis] * root]
    lists = values, slopes, more, edges
    return tuple(np.concatenate([none, *each]) for each in lists)  # pyright: ignore


def side_points(place: Place, side: InterfaceSide, t: np.ndarray) -> np.ndarray:
    """Points of [-1, 1] on a side."""
    x = np.empty((len(t), 2))
    x[:, side.axis] = (place.upper if side.upper else place.lower)[side.axis]
    x[:, 1 - side.axis] = (side.start + side.end) / 2 + (side.end - side.start) / 2 * t
    return x


def _orthonormal(rows: np.ndarray, cut: float) -> np.ndarray:
    """Combinations of columns, (columns, m). Columns of one size first: what is small is not what
    is superfluous."""
    norms = np.linalg.norm(rows, axis=0)
    norms[norms == 0] = 1.0
    triangle = np.asarray(np.linalg.qr(rows / norms, mode="r"))
    _, singular, right = np.linalg.svd(triangle)
    used = singular > cut * singular[0]
    return (right[: len(used)][used].T / singular[used]) / norms[:, None]


def _least_squares(matrix: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if not matrix.shape[1]:
        return np.zeros((0, wanted.shape[1]))
    found = scipy.linalg.lstsq(matrix, wanted, cond=CUT, lapack_driver="gelsy", check_finite=False)
    return np.asarray(found[0])  # pyright: ignore[reportOptionalSubscript]
