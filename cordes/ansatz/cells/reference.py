"""Products of Legendre polynomials on the square [-1, 1]², and what every cell needs of them.

A polynomial is U (k, k) with u = Σ U_ij P_i(X) P_j(Y), k = degree + 1, or its k² entries in a row.
The derivatives come in the order xx, xy, yy, x, y, value, the sides in the order west, east, south,
north. A polynomial is a combination of bubbles, which vanish on all sides, and of a Coons lift of
four traces; where two traces differ in a corner, the lift takes the middle.
"""

import functools

import numpy as np
from numpy.polynomial import legendre

# The derivatives of a tensor product as (order along x, order along y).
ORDERS = ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0))
WEST, EAST, SOUTH, NORTH = range(4)


def differentiation(degree: int) -> np.ndarray:
    """From the coefficients of a polynomial to those of its derivative."""
    k = degree + 1
    matrix = np.zeros((k, k))
    for i in range(1, k):
        slope = legendre.legder(np.eye(k)[i])
        matrix[: len(slope), i] = slope
    return matrix


def tables(s: np.ndarray, degree: int) -> list[np.ndarray]:
    """P_i, P_i' and P_i'' at points (N,), each (N, degree + 1)."""
    values, slope = legendre.legvander(s, degree), differentiation(degree)
    return [values, values @ slope, values @ slope @ slope]


def bubbles(degree: int) -> np.ndarray:
    """P_i - P_{i+2}, scaled so that their second derivatives are orthonormal."""
    matrix = np.zeros((degree + 1, degree - 1))
    for i in range(degree - 1):
        matrix[i, i], matrix[i + 2, i] = 1.0, -1.0
        matrix[:, i] /= np.sqrt(2.0) * (2 * i + 3)
    return matrix


class Reference:
    """The matrices of one degree; `of_degree` keeps them."""

    def __init__(self, degree: int):
        self.degree, self.size = degree, degree + 1
        # As many Gauss points in each direction as there are coefficients.
        self.points, self.weights = legendre.leggauss(self.size)
        one_axis = tables(self.points, degree)
        self.values = one_axis[0]
        self.derivatives = np.stack([np.kron(one_axis[i], one_axis[j]) for i, j in ORDERS])
        self.root_weights = np.sqrt(np.kron(self.weights, self.weights)) / 2
        ends = np.array([(-1.0) ** np.arange(self.size), np.ones(self.size)])
        self.lift, self.mismatch = coons(self.size, ends)
        self.bubbles = np.kron(bubbles(degree), bubbles(degree))
        self.bubble_rows = self.derivatives @ self.bubbles
        self.lift_rows = self.derivatives @ self.lift
        slopes, unit = ends @ differentiation(degree), np.eye(self.size)
        # The derivative along the axis on each side, as a polynomial along the side.
        self.fluxes = np.stack(
            [np.kron(slope, unit) for slope in slopes] + [np.kron(unit, slope) for slope in slopes]
        )

    @functools.cached_property
    def fit_points(self) -> np.ndarray:
        return np.cos(np.pi * np.arange(2 * self.size + 1) / (2 * self.size))

    @functools.cached_property
    def projection(self) -> np.ndarray:
        """From values at the Gauss points to coefficients."""
        return (self.values * self.weights[:, None]).T * (np.arange(self.size) + 0.5)[:, None]

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def restricted(self, low: float, high: float) -> np.ndarray:
        """From the coefficients on [-1, 1] to those on [low, high], seen as [-1, 1]."""
        inside = (low + high) / 2 + (high - low) / 2 * self.points
        return self.projection @ legendre.legvander(inside, self.degree)


@functools.cache
def of_degree(degree: int) -> Reference:
    return Reference(degree)


def coons(size: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lift (k², 4k) of four traces, and the mismatch (4, 4k) of two traces in each corner."""
    unit = np.eye(size)
    low, high = np.zeros(size), np.zeros(size)
    low[:2], high[:2] = (0.5, -0.5), (0.5, 0.5)
    near, far = ends
    corners = [
        (WEST, near, SOUTH, near, low, low),
        (WEST, far, NORTH, near, low, high),
        (EAST, near, SOUTH, far, high, low),
        (EAST, far, NORTH, far, high, high),
    ]
    traces = np.zeros((4, size, 4, size))
    for side in range(4):
        traces[side, :, side, :] = unit
    mismatch, middle = np.zeros((4, 4, size)), np.zeros((4, 4, size))
    for n, (one, one_end, other, other_end, across, along) in enumerate(corners):
        mismatch[n, one] += one_end
        mismatch[n, other] -= other_end
        middle[n, one] += one_end / 2
        middle[n, other] += other_end / 2
        # Each trace is changed by a linear function to end in the middle of the two.
        traces[one] -= 0.5 * along[:, None, None] * mismatch[n]
        traces[other] += 0.5 * across[:, None, None] * mismatch[n]
    lift = low[:, None, None, None] * traces[WEST] + high[:, None, None, None] * traces[EAST]
    lift = lift + low[None, :, None, None] * traces[SOUTH][:, None]
    lift = lift + high[None, :, None, None] * traces[NORTH][:, None]
    for n, (*_, across, along) in enumerate(corners):
        lift = lift - np.multiply.outer(np.outer(across, along), middle[n])
    return lift.reshape(size**2, 4 * size), mismatch.reshape(4, 4 * size)
