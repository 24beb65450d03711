"""The equation that cells solve: γ(A:D²w + b·∇w - cw) = γ(f - L(lift)) at any points, w with zero
boundary values."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.solvers.rows.system import AbstractSystem


class CellRows(NamedTuple):
    """Factors (N, 6) of the derivatives xx, xy, yy, x, y and of the value, and the target (N,)."""

    factors: np.ndarray
    target: np.ndarray


Equation = Callable[[np.ndarray], CellRows]


def equation_of(system: AbstractSystem) -> Equation:
    """That of a system as it is frozen now; the ansatz gives the lift."""

    def rows(x: np.ndarray) -> CellRows:
        coefficients = system.coefficients(x)
        factor = system.factors(coefficients)
        frozen = system.ansatz.freeze(x, *coefficients[:4], factor=factor)
        A, b, c = frozen.frozen.second, frozen.frozen.first, frozen.frozen.zeroth
        mixed = A[:, 0, 1] + A[:, 1, 0]
        columns = [A[:, 0, 0], mixed, A[:, 1, 1], b[:, 0], b[:, 1], c]
        return CellRows(np.stack(columns, axis=1), np.asarray(frozen.target))

    return rows


def in_cells(lower: np.ndarray, upper: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The tensor product of points (q,) of [-1, 1] in each cell, (n, q², 2)."""
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    axes = middle[:, None] + half[:, None] * s[:, None]
    x = np.repeat(axes[:, :, 0], len(s), axis=1)
    return np.stack([x, np.tile(axes[:, :, 1], len(s))], axis=2)


def scales(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """What the derivatives of a polynomial on [-1, 1]² are multiplied with in a cell, (n, 6)."""
    x, y = (2 / (upper - lower)).T
    return np.stack([x**2, x * y, y**2, x, y, np.ones_like(x)], axis=1)
