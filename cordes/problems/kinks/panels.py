"""Polynomials on panels of a piece of boundary: what lies between nodes, slopes at the ends, and
the one that follows values from one side."""

import numpy as np
from numpy.polynomial import Chebyshev

NODES = (1 - np.cos(np.pi * np.arange(33) / 32)) / 2

DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)

EPSILON = float(np.finfo(np.float64).eps)


def one_sided(s: np.ndarray, values: np.ndarray, scale: float) -> Chebyshev:
    """The polynomial of the lowest degree that follows values to rounding, or the best one."""
    best, smallest = None, np.inf
    for degree in (degree for degree in DEGREES if 2 * degree < len(s)):
        fit = Chebyshev.fit(s, values, degree)
        error = float(np.max(np.abs(fit(s) - values)))
        if error < 0.1 * smallest or best is None:
            best, smallest = fit, error
        if smallest <= 64 * EPSILON * scale:
            break
    assert best is not None
    return best


def _interpolation() -> tuple[np.ndarray, np.ndarray]:
    """From values at every second node to those between them, and to the slopes at both ends."""
    t = 2 * NODES - 1
    coarse, fine = (np.polynomial.chebyshev.chebvander(part, 16) for part in (t[::2], t[1::2]))
    slopes = np.array([Chebyshev(row).deriv()(np.array([-1.0, 1.0])) * 2 for row in np.eye(17)]).T
    inverse = np.linalg.inv(coarse)
    return fine @ inverse, slopes @ inverse


BETWEEN, AT_ENDS = _interpolation()


def error_of(table: np.ndarray) -> np.ndarray:
    return np.max(np.abs(table[:, ::2] @ BETWEEN.T - table[:, 1::2]), axis=1)


def slopes_of(table: np.ndarray, widths: np.ndarray) -> np.ndarray:
    return table[:, ::2] @ AT_ENDS.T / widths[:, None]
