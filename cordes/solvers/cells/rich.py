"""Rich cells: any columns, kept as they are. A singular value decomposition of their own rows, of
their values and slopes on the sides makes them orthonormal and drops what says nothing."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.windows import REACH
from cordes.solvers.cells.equation import Equation, in_cells

# RichColumns below this share of the largest singular value are dropped.
CUT = 1e-12


class KeptCell(NamedTuple):
    """Combinations of columns (columns, m), their rows (N, m) and the target (N,)."""

    basis: np.ndarray
    rows: np.ndarray
    target: np.ndarray


def side_points(place: Place, side: int, t: np.ndarray) -> np.ndarray:
    """Points of [-1, 1] on a side."""
    axis = side // 2
    along = (place.lower + place.upper) / 2 + np.outer(t, (place.upper - place.lower) / 2)
    along[:, axis] = (place.lower, place.upper)[side % 2][axis]
    return along


def keep(equation: Equation, columns: RichColumns, place: Place) -> KeptCell:
    """The rows reach as far as the window of the cell does, so that what lies behind an interface
    next to a side is determined as well."""
    order = 2 * columns.degree + 4
    t, weights = legendre.leggauss(order)
    size = place.upper - place.lower
    reach = REACH * size
    lower = np.where(place.outer[::2], place.lower, place.lower - reach)
    upper = np.where(place.outer[1::2], place.upper, place.upper + reach)
    x = in_cells(lower[None], upper[None], t)[0]
    h = float(np.min(size))
    weight = np.sqrt(np.kron(weights, weights) / 4 * np.prod(upper - lower) * h)
    found = equation(x)
    factors = found.factors * weight[:, None]
    matrix = np.einsum("nj,jnm->nm", factors, columns.at(place, x))
    target = found.target * weight
    parts = [matrix]
    for side in range(4):
        values = columns.at(place, side_points(place, side, t))
        root = np.sqrt(weights / 2 * size[1 - side // 2])[:, None]
        parts += [values[5] * root * columns.degree / h, values[3 + side // 2] * root]
    whole = np.concatenate(parts)
    # RichColumns of one size first: what is small is not what is superfluous.
    norms = np.linalg.norm(whole, axis=0)
    norms[norms == 0] = 1.0
    _, singular, right = np.linalg.svd(whole / norms, full_matrices=False)
    used = singular > CUT * singular[0]
    basis = (right[used].T / singular[used]) / norms[:, None]
    return KeptCell(basis, matrix @ basis, target)
