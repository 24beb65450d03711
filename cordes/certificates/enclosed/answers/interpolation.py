"""What a function that is analytic around a cell can be between the points of a Gauss rule.

In one variable, with n points: it differs from the polynomial that interpolates it there by no more
than 1 + Λ times the error 2Mρ^(1-n)/(ρ - 1) of the best polynomial, Λ the Lebesgue constant of the
points and M a bound on an ellipse. A polynomial of degree m is at most 1/cos(mπ/2N) times as large
as its largest value at N > m Chebyshev points (Ehlich and Zeller 1964); so is its difference from
any constant, such as the middle of these values. In several variables this holds for one axis after
the other.
"""

import functools

import numpy as np

from cordes.certificates.enclosed.abstract import RHO
from cordes.domains.unit_cube import gauss_rule

Array = np.ndarray
# Places at which a sum of Lagrange's polynomials is looked at, and what is added to the largest.
PLACES, MORE = 4001, 1.01
# Chebyshev points for each Gauss point, by dimension, and numbers that are held at once.
FINER, NUMBERS = {1: 3, 2: 3, 3: 2}, 4_000_000


def _lagrange(n: int, x: Array) -> Array:
    """Lagrange's polynomials of the Gauss points in (0, 1) at places, (X, n)."""
    nodes = np.ravel(gauss_rule(n)[0])
    others = [np.delete(nodes, k) for k in range(n)]
    return np.stack(
        [
            np.prod((x[:, None] - rest) / (node - rest), axis=1)
            for node, rest in zip(nodes, others, strict=True)
        ],
        axis=1,
    )


@functools.cache
def lebesgue(n: int) -> float:
    """The largest sum of the sizes of Lagrange's polynomials: for Gauss points it is that at the
    ends."""
    total = np.sum(np.abs(_lagrange(n, np.linspace(0.0, 1.0, PLACES))), axis=1)
    return MORE * float(np.max(total))


@functools.cache
def _finer(n: int, count: int) -> Array:
    """From values at n Gauss points to those of the polynomial at Chebyshev points."""
    return _lagrange(n, (1 - np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))) / 2)


def limits_between(
    values: Array, starts: Array, orders: Array, bound: Array, rounding: Array
) -> tuple[Array, Array]:
    """Lower and upper limits over cells (C,) of functions with the given values at the points of
    their rules, those of a cell one after another from `starts`, bounds (C, d, R) on ellipses, and
    the largest rounding of a value of each cell."""
    low, high = np.zeros((2, len(orders)))
    for order in np.unique(orders, axis=0).astype(int):
        cells = np.flatnonzero(np.all(orders == order, axis=1))
        rows = max(NUMBERS // int(np.prod(FINER[len(order)] * order)), 1)
        for k in range(0, len(cells), rows):
            some = cells[k : k + rows]
            own = values[starts[some, None] + np.arange(np.prod(order))]
            low[some], high[some] = _of_polynomials(own, order)
    constants = np.array([[lebesgue(int(n)) for n in row] for row in orders])
    rest = _left_out(bound, orders, constants) + np.prod(constants, axis=1) * rounding
    return low - rest, high + rest


def _of_polynomials(values: Array, order: Array) -> tuple[Array, Array]:
    """The limits of interpolating polynomials over their cells."""
    d, factor = len(order), 1.0
    grid = values.reshape(-1, *order)
    for axis, n in enumerate(order):
        count = FINER[d] * int(n)
        grid = np.moveaxis(np.moveaxis(grid, axis + 1, -1) @ _finer(int(n), count).T, -1, axis + 1)
        factor /= np.cos((n - 1) * np.pi / (2 * count))
    flat = grid.reshape(len(values), -1)
    most, least = np.max(flat, axis=1), np.min(flat, axis=1)
    middle, reach = (most + least) / 2, factor * (most - least) / 2
    return middle - reach, middle + reach


def _left_out(bound: Array, orders: Array, constants: Array) -> Array:
    with np.errstate(all="ignore"):
        each = 2 * bound * RHO ** (1.0 - orders[..., None]) / (RHO - 1)
    best = np.min(np.where(np.isnan(each), np.inf, each), axis=2)
    before = np.cumprod(np.concatenate([np.ones((len(orders), 1)), constants], axis=1), axis=1)
    return np.sum(before[:, :-1] * (1 + constants) * best, axis=1)
