"""Plain cells: a polynomial that fulfils the equation in its Gauss points, as it depends on its
values on the faces of the cell; and how the slopes on the faces depend on these. So the
conditioning of second derivatives, (degree/size)⁴, ends inside of a cell."""

from typing import NamedTuple

import numpy as np

from cordes.solvers.cells.element import Element
from cordes.solvers.cells.equation import Equation, in_cells, scales

# Numbers of the matrices that are solved at once.
HELD = 1 << 22


class Reduced(NamedTuple):
    """A cell as it depends on the values on its faces: coefficients of its columns, (K, 1 + m),
    what they are without these values and the share of each; slopes out of the cell in the same
    way, (m, 1 + m), and what values on faces have beside those that are given, (e, 1 + m). `rows`
    tell whether the equation is still the same."""

    response: np.ndarray
    slopes: np.ndarray
    more: np.ndarray
    rows: int


def reduce_plain(
    equation: Equation,
    lower: np.ndarray,
    upper: np.ndarray,
    element: Element,
    known: list[Reduced | None] | None = None,
) -> list[Reduced]:
    """Many cells; those that are `known` only where the equation is not what it was."""
    step = max(HELD // element.bubbles.size, 1)
    found: list[Reduced] = []
    for k in range(0, len(lower), step):
        part = slice(k, k + step)
        own = [None] * len(lower[part]) if known is None else known[part]
        found += _batch(equation, lower[part], upper[part], element, own)
    return found


def _batch(
    equation: Equation,
    lower: np.ndarray,
    upper: np.ndarray,
    element: Element,
    known: list[Reduced | None],
) -> list[Reduced]:
    n, x = len(lower), in_cells(lower, upper, element.points)
    rows = equation(x.reshape(-1, x.shape[2]))
    factors = rows.factors.reshape(n, -1, rows.factors.shape[1])
    target = rows.target.reshape(n, -1)
    marks = [hash((a.tobytes(), b.tobytes())) for a, b in zip(factors, target, strict=True)]
    new = [k for k in range(n) if known[k] is None or known[k].rows != marks[k]]
    if new:
        solved = _solved(factors[new], target[new], lower[new], upper[new], element)
        for k, parts in zip(new, solved, strict=True):
            known[k] = Reduced(*parts, marks[k])
    return known  # pyright: ignore[reportReturnType]


def _solved(
    factors: np.ndarray,
    target: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    element: Element,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    factors = factors * scales(lower, upper)[:, None]
    matrix, outer = _applied(factors, element.bubble_rows), _applied(factors, element.lift_rows)
    right = np.concatenate([target[:, :, None], -outer], axis=2)
    inner = solved_each(matrix, right)
    response = element.bubbles @ inner
    response[:, :, 1:] += element.lift
    width = element.size**element.dimension
    slopes = element.slopes.reshape(-1, width) @ response
    more = element.more.reshape(-1, width) @ response
    outwards = np.tile([-1.0, 1.0], element.dimension) * np.repeat(2 / (upper - lower), 2, axis=1)
    slopes *= np.repeat(outwards, element.modes, axis=1)[:, :, None]
    return list(zip(response, slopes, more, strict=True))


def solved_each(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Square systems; by least squares where one of them is singular."""
    try:
        with np.errstate(all="ignore"):
            found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        found = np.full(right.shape, np.nan)
    wrong = np.flatnonzero(~np.all(np.isfinite(found), axis=(1, 2)))
    for k in wrong:
        if np.all(np.isfinite(matrix[k])) and np.all(np.isfinite(right[k])):
            found[k] = np.linalg.lstsq(matrix[k], right[k], rcond=None)[0]
    return found


def _applied(factors: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """Rows (n, points, columns) of the differential expression for all columns."""
    present = [j for j in range(factors.shape[2]) if np.any(factors[:, :, j])]
    total = np.zeros((*factors.shape[:2], derivatives.shape[2]))
    for j in present:
        total += factors[:, :, j, None] * derivatives[j]
    return total
