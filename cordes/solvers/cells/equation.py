"""The equation that cells solve: γ(A:D²w + b·∇w - cw) = γ(f - L(lift)) at any points, w with zero
boundary values."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cordes.ansatz.cells.jets import all_orders, second_orders
from cordes.solvers.rows.system import AbstractSystem


class CellRows(NamedTuple):
    """Factors (N, rows) of the value, the first and the second derivatives, and the target (N,)."""

    factors: np.ndarray
    target: np.ndarray


Equation = Callable[[np.ndarray], CellRows]


def equation_of(system: AbstractSystem) -> Equation:
    """That of a system as it is frozen now; the ansatz gives the lift."""

    def rows(x: np.ndarray) -> CellRows:
        coefficients = system.coefficients(x)
        factor = system.factors(coefficients)
        frozen = system.ansatz.freeze(x, *coefficients[:4], factor=factor)
        return CellRows(factors_of(*frozen.frozen[1:]), np.asarray(frozen.target))

    return rows


def factors_of(zeroth: ArrayLike, first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """What each derivative is multiplied with, (N, rows)."""
    zeroth, first, second = (np.asarray(part) for part in (zeroth, first, second))
    d = first.shape[1]
    columns = [zeroth, *first.T]
    for i, j in second_orders(d):
        columns.append(second[:, i, j] + (second[:, j, i] if i != j else 0.0))
    return np.stack(columns, axis=1)


def in_cells(lower: np.ndarray, upper: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The tensor product of points (q,) of [-1, 1] in each cell, (n, q^d, d)."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    axes = middle[:, None] + half[:, None] * s[:, None]
    d = lower.shape[1]
    found = []
    for axis in range(d):
        own = np.repeat(axes[:, :, axis], len(s) ** (d - 1 - axis), axis=1)
        found.append(np.tile(own, len(s) ** axis))
    return np.stack(found, axis=2)


def scales(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """What the derivatives of a polynomial on [-1, 1]^d are multiplied with in a cell, (n,
    rows)."""
    each = 2 / (upper - lower)
    return np.stack(
        [np.prod(each**orders, axis=1) for orders in all_orders(lower.shape[1])], axis=1
    )
