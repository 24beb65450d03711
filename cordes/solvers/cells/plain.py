"""Plain cells: the inner unknowns of a polynomial leave by least squares of the rows of their own
cell, and what stays are its four traces.

With the bubbles Z and the lift B of traces t the rows are M Z y + M B t = F: y = y₀ + Y t by a QR
of M Z. So the conditioning of second derivatives, (degree/size)⁴, ends inside of a cell, and the
other cells see how the slopes on its sides depend on its traces.
"""

from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.reference import of_degree
from cordes.solvers.cells.equation import Equation, in_cells, scales

# Cells that are eliminated at once.
BATCH = 64


class Eliminated(NamedTuple):
    """A polynomial as it depends on its traces, (k², 1 + 4k): what it is without them, and the
    share of each entry; its slopes on the four sides in the same way, (4, k, 1 + 4k)."""

    response: np.ndarray
    slopes: np.ndarray


def eliminate(
    equation: Equation, lower: np.ndarray, upper: np.ndarray, degree: int
) -> list[Eliminated]:
    found: list[Eliminated] = []
    for k in range(0, len(lower), BATCH):
        found += _batch(equation, lower[k : k + BATCH], upper[k : k + BATCH], degree)
    return found


def _batch(
    equation: Equation, lower: np.ndarray, upper: np.ndarray, degree: int
) -> list[Eliminated]:
    reference, n = of_degree(degree), len(lower)
    x = in_cells(lower, upper, reference.points)
    rows = equation(x.reshape(-1, 2))
    # Rows of all cells are of one size, however small the cell.
    weight = np.min(upper - lower, axis=1)[:, None] ** 2 * reference.root_weights
    factors = rows.factors.reshape(n, -1, 6) * scales(lower, upper)[:, None] * weight[..., None]
    target = rows.target.reshape(n, -1) * weight
    inner = _applied(factors, reference.bubble_rows)
    outer = _applied(factors, reference.lift_rows)
    size = np.sqrt(np.sum(inner**2, axis=1))
    Q, R = np.linalg.qr(inner / size[:, None])
    right = np.concatenate([target[:, :, None], -outer], axis=2)
    y = np.linalg.solve(R, Q.transpose(0, 2, 1) @ right) / size[:, :, None]
    response = reference.bubbles @ y
    response[:, :, 1:] += reference.lift
    slopes = np.einsum("skn,enj->eskj", reference.fluxes, response, optimize=True)
    slopes *= (2 / (upper - lower))[:, (0, 0, 1, 1), None, None]
    return [Eliminated(*each) for each in zip(response, slopes, strict=True)]


def _applied(factors: np.ndarray, derivatives: np.ndarray) -> np.ndarray:
    """Rows (n, points, columns) of the differential expression for all columns."""
    present = [j for j in range(6) if np.any(factors[:, :, j])]
    total = np.zeros((*factors.shape[:2], derivatives.shape[2]))
    for j in present:
        total += factors[:, :, j, None] * derivatives[j]
    return total
