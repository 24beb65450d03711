"""Rich cells: any columns. Their coefficients fulfil the equation by least squares, under the
condition that they have given values on the faces of the cell; so the cell, too, is known by how
the slopes on its faces depend on the values there.

A singular value decomposition of its rows, of its values and slopes makes the columns orthonormal
and drops what says nothing; another one of the values on the faces alone separates what these
determine from what the equation does.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.reference import gauss, projection
from cordes.ansatz.cells.windows import REACH
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


class Side(NamedTuple):
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
    sides: tuple[Side, ...]
    contains: object = None


def reduce_rich(
    equation: Equation, columns: RichColumns, cell: RichCell, known: Reduced | None = None
) -> Reduced:
    """Where there is an interface rows reach as far as the window of the cell does, so that what
    lies behind one next to a side is determined as well."""
    place = cell.place
    x, weight = _points(columns, cell)
    found = equation(x)
    mark = hash((found.factors.tobytes(), found.target.tobytes()))
    if known is not None and known.rows == mark:
        return known
    matrix = np.einsum("nj,jnm->nm", found.factors * weight[:, None], columns.at(place, x))
    target = found.target * weight
    values, slopes, more, edges = _on_sides(columns, cell)
    cut = CUT_SINGULAR if np.any(place.points) else CUT
    basis = _orthonormal(np.concatenate([matrix, edges]), cut)
    matrix, values = matrix @ basis, values @ basis
    # What the values determine, and what they leave free.
    left, singular, right = np.linalg.svd(values)
    rank = int(np.sum(singular > OUT_OF_REACH * singular[0])) if len(singular) else 0
    from_values = right[:rank].T @ (left[:, :rank] / singular[:rank]).T
    free = right[rank:].T
    wanted = np.concatenate([target[:, None], -(matrix @ from_values)], axis=1)
    inner = _least_squares(matrix @ free, wanted)
    response = free @ inner
    response[:, 1:] += from_values
    response = basis @ response
    return Reduced(response, slopes @ response, more @ response, mark)


def _points(columns: RichColumns, cell: RichCell) -> tuple[np.ndarray, np.ndarray]:
    place, order = cell.place, 2 * columns.degree + 4
    t, weights = gauss(order)
    size = place.upper - place.lower
    x = in_cells(place.lower[None], place.upper[None], t)[0]
    weight = np.sqrt(np.kron(weights, weights) / 4 * np.prod(size) * np.min(size))
    if np.any(place.interfaces):
        reach = REACH * size
        lower, upper = columns.box
        lower = np.maximum(place.lower - reach, lower)
        upper = np.minimum(place.upper + reach, upper)
        around = in_cells(lower[None], upper[None], t)[0]
        beyond = np.any((around < place.lower) | (around > place.upper), axis=1)
        x = np.concatenate([x, around[beyond]])
        weight = np.concatenate([weight, BEYOND * weight[beyond]])
    if cell.contains is not None:
        inside = cell.contains(x)  # pyright: ignore[reportCallIssue]
        x, weight = x[inside], weight[inside]
    return x, weight


def _on_sides(
    columns: RichColumns, cell: RichCell
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Modes of values and of slopes outwards on all sides, two further modes of values, and both at
    points with weights that make them comparable with rows."""
    place, order = cell.place, 2 * columns.degree + 4
    t, weights = gauss(order)
    h = float(np.min(place.upper - place.lower))
    values, slopes, more, edges = [], [], [], []
    none = np.zeros((0, columns.count(place)))
    for side in cell.sides:
        found = columns.at(place, side_points(place, side, t))
        sign = 1.0 if side.upper else -1.0
        modes = projection(order - 1)[: side.modes]
        more.append(projection(order - 1)[side.modes : side.modes + EXTRA] @ found[0])
        values.append(modes @ found[0])
        slopes.append(sign * modes @ found[1 + side.axis])
        root = np.sqrt(weights / 2 * (side.end - side.start))[:, None]
        edges += [found[0] * root * columns.degree / h, found[1 + side.axis] * root]
    return tuple(np.concatenate([none, *each]) for each in (values, slopes, more, edges))  # pyright: ignore


def side_points(place: Place, side: Side, t: np.ndarray) -> np.ndarray:
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
    triangle = np.linalg.qr(rows / norms, mode="r")
    _, singular, right = np.linalg.svd(triangle)
    used = singular > cut * singular[0]
    return (right[: len(used)][used].T / singular[used]) / norms[:, None]


def _least_squares(matrix: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if not matrix.shape[1]:
        return np.zeros((0, wanted.shape[1]))
    found = scipy.linalg.lstsq(matrix, wanted, cond=CUT, lapack_driver="gelsy", check_finite=False)
    return np.asarray(found[0])
