"""Plain cells: a polynomial that fulfils the equation in its Gauss points, as it depends on its
values on the faces of the cell; and how the slopes on the faces depend on these. So the
conditioning of second derivatives, (degree/size)⁴, ends inside of a cell."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cordes.solvers.cells.element import Element
from cordes.solvers.cells.equation import Equation, in_cells, scales

# Numbers of the matrices that are solved at once.
HELD = 1 << 22
# An equation is rough in a cell if the last modes have this share of one of its coefficients.
ROUGH = 0.02


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
    known: Sequence[Reduced | None] | None = None,
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
    known: Sequence[Reduced | None],
) -> list[Reduced]:
    factors, target = _rows(equation, lower, upper, element.points)
    marks = [hash((a.tobytes(), b.tobytes())) for a, b in zip(factors, target, strict=True)]
    new = np.array(
        [
            k
            for k, (old, mark) in enumerate(zip(known, marks, strict=True))
            if old is None or old.rows != mark
        ],
        int,
    )
    rough = element.roughness(np.concatenate([factors, target[..., None]], axis=2)[new]) > ROUGH
    smooth = new[~rough]
    found: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    if len(smooth):
        each = factors[smooth] * scales(lower[smooth], upper[smooth])[:, None]
        matrix, outer = _applied(each, element.bubble_rows), _applied(each, element.lift_rows)
        inner = solved_each(matrix, np.concatenate([target[smooth, :, None], -outer], axis=2))
        parts = _parts(element, element.bubbles @ inner, lower[smooth], upper[smooth])
        found |= dict(zip(smooth.tolist(), parts, strict=True))
    if np.any(rough):
        cells = new[rough]
        parts = _by_least_squares(equation, lower[cells], upper[cells], element)
        found |= dict(zip(cells.tolist(), parts, strict=True))
    return [
        Reduced(*found[k], mark) if k in found else old
        for k, (old, mark) in enumerate(zip(known, marks, strict=True))
    ]  # pyright: ignore[reportReturnType]


def _rows(
    equation: Equation, lower: np.ndarray, upper: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (n, q, rows) and target (n, q) at points of cells."""
    n, x = len(lower), in_cells(lower, upper, points)
    rows = equation(x.reshape(-1, x.shape[2]))
    factors = rows.factors.reshape(n, -1, rows.factors.shape[1])
    return factors, rows.target.reshape(n, -1)


def _by_least_squares(
    equation: Equation, lower: np.ndarray, upper: np.ndarray, element: Element
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Where a polynomial cannot fulfil the equation, whatever it does in single points."""
    wide = element.wide
    factors, target = _rows(equation, lower, upper, wide.points)
    weight = wide.root_weights * np.min(upper - lower, axis=1)[:, None] ** 2
    factors = factors * scales(lower, upper)[:, None] * weight[..., None]
    matrix, outer = _applied(factors, wide.bubble_rows), _applied(factors, wide.lift_rows)
    size = np.sqrt(np.sum(matrix**2, axis=1))
    size[size == 0] = 1.0
    count = matrix.shape[2]
    right = (target * weight)[:, :, None], -outer
    whole = np.concatenate([matrix / size[:, None], *right], axis=2)
    triangle = np.asarray(np.linalg.qr(whole, mode="r"))
    inner = solved_each(triangle[:, :count, :count], triangle[:, :count, count:])
    response = wide.bubbles @ (inner / size[:, :, None])
    return _parts(element, response, lower, upper)


def _parts(
    element: Element, response: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Coefficients, slopes out of the cells and what values have beside low modes, from the
    coefficients without the lift."""
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
