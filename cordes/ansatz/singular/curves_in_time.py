"""Curves x = s(t) across which derivatives of an answer jump, in one dimension: where another
control becomes the best one, and where stopping begins.

They are found from an iterate: at each of several times the frozen equation changes from one point
to the next. What is found becomes a function (x - s(t))₊ᵖ, times a network of its own: with p = 3
for controls, whose D²u is continuous, with p = 2 where D²u jumps.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.cylinder import Cylinder
from cordes.problems.coefficients import Coefficients

# Times, and points at each of them; halvings of what lies between two points.
TIMES, PLACES, HALVINGS = 33, 801, 45
# The degree of a curve in √t; how far it may miss what was found, as a share of the width.
DEGREE, MISSED = 7, 2e-2
# How far from a curve the equations of both sides are compared, as a share of the width, and which
# share of the largest difference is one.
BESIDE, DIFFERENT = 0.02, 0.02
MOST = 6
# How far a curve moves from one time to the next at most, as a share of the width, and at how many
# times it may be missing.
CLOSE, LOST = 0.05, 2


class Curve(NamedTuple):
    """s as a polynomial of Chebyshev's in the share of √t that has passed, for a cylinder that
    begins at `start` and is `length` long; `power` is p."""

    coefficients: tuple[float, ...]
    start: float
    length: float
    power: int

    @property
    def parameters(self) -> np.ndarray:
        """Numbers for `bent`."""
        return np.array(self.coefficients)

    def at(self, t: np.ndarray) -> np.ndarray:
        share = np.sqrt(np.maximum(t - self.start, 0.0) / self.length)
        return np.polynomial.chebyshev.chebval(2 * share - 1, self.coefficients)


def place(coefficients: Array, domain: Cylinder, t: Array) -> Array:
    """s(t) inside of a trace."""
    share = jnp.sqrt(jnp.maximum(t - domain.start, 1e-30) / domain.length)
    y, table = 2 * share - 1, [jnp.ones_like(share), 2 * share - 1]
    for _ in range(len(coefficients) - 2):
        table.append(2 * y * table[-1] - table[-2])
    return jnp.dot(coefficients, jnp.stack(table[: len(coefficients)]))


def bent(domain: Cylinder, power: int) -> Callable[[Array, Array], Array]:
    """t D(x) (x - s(t))₊ᵖ in units of the domain, a function of the coefficients of s and of one
    point."""
    lower, upper = domain.base.bounding_box
    size = float(upper[0] - lower[0])

    def modulation(coefficients: Array, z: Array) -> Array:
        height = jnp.maximum((z[0] - place(coefficients, domain, z[-1])) / size, 0.0)
        return domain.distance(z) * height**power

    return modulation


def switches(
    domain: Cylinder,
    coefficients: Callable[[np.ndarray], Coefficients],
    gap: Callable[[np.ndarray], np.ndarray],
    power: int = 3,
) -> list[Curve]:
    """The curves across which the frozen equation jumps. `gap` at points says how much is lost by
    the other equation: where that is next to nothing on both sides, a change means nothing."""
    (low, *_), (high, *_) = domain.base.bounding_box
    x = np.linspace(low, high, PLACES)
    share = (1 - np.cos(np.pi * (np.arange(TIMES) + 0.5) / TIMES)) / 2
    times = domain.start + domain.length * share**2
    at, places = _changes(coefficients, gap, x, times, float(high - low))
    width = float(high - low)
    found = [_followed(at, places, start, width) for start in np.sort(places[at == TIMES - 2])]
    curves = [
        _fitted(domain, times[known], line[known], power, width)
        for line in found[:MOST]
        if np.count_nonzero(known := np.isfinite(line)) >= 2 * DEGREE
    ]
    return [curve for curve in curves if curve is not None]


def _followed(at: np.ndarray, places: np.ndarray, start: float, width: float) -> np.ndarray:
    """The change that is next to `start` at the last time but one, from time to time backwards: its
    place at each, NaN where there is none."""
    line, last, gone = np.full(TIMES, np.nan), start, 0
    for k in range(TIMES - 1, -1, -1):
        here = places[at == k]
        near = here[np.abs(here - last) < CLOSE * width]
        if len(near):
            line[k] = near[np.argmin(np.abs(near - last))]
            last = line[k] if k < TIMES - 1 else last
            gone = 0
        else:
            gone += 1
        if gone > LOST:
            break
    return line


def _changes(
    coefficients: Callable, gap: Callable, x: np.ndarray, times: np.ndarray, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the times, and places, of all changes that mean something."""

    def points(x: np.ndarray, k: np.ndarray) -> np.ndarray:
        return np.column_stack([x, times[k]])

    def seen(x: np.ndarray, k: np.ndarray) -> np.ndarray:
        A, b, c, _ = coefficients(points(x, k))
        return np.column_stack([A[:, 0, 0], b[:, 0], c])

    every = np.repeat(np.arange(len(times)), len(x))
    grid = np.tile(x, len(times))
    values = seen(grid, every).reshape(len(times), len(x), -1)
    step = np.max(np.abs(np.diff(values, axis=1)), axis=2)
    scale = float(np.max(np.abs(values))) + 1e-300
    at, place = np.nonzero(step > 1e-3 * scale)
    if not len(at):
        return at, np.zeros(0)
    low, high = x[place], x[place + 1]
    at_low, at_high = values[at, place], values[at, place + 1]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        value = seen(middle, at)
        nearer = np.max(np.abs(value - at_low), axis=1) <= np.max(np.abs(value - at_high), axis=1)
        low, high = np.where(nearer, middle, low), np.where(nearer, high, middle)
        at_low = np.where(nearer[:, None], value, at_low)
        at_high = np.where(nearer[:, None], at_high, value)
    # A jump stays as large however near its points are.
    jumps = np.max(np.abs(at_high - at_low), axis=1) > 1e-3 * scale
    at, places = at[jumps], (low + high)[jumps] / 2
    largest = np.max(gap(points(grid, every)).reshape(len(times), -1), axis=1)
    sides = [
        gap(points(np.clip(places + side, x[0], x[-1]), at))
        for side in (-BESIDE * width, BESIDE * width)
    ]
    meant = np.minimum(*sides) > DIFFERENT * largest[at]
    return at[meant], places[meant]


def _fitted(
    domain: Cylinder, times: np.ndarray, places: np.ndarray, power: int, width: float
) -> Curve | None:
    share = np.sqrt((times - domain.start) / domain.length)
    degree = DEGREE
    # Early places are less certain, and a polynomial beyond them is free: high degrees are dear.
    table = np.polynomial.chebyshev.chebvander(2 * share - 1, degree)
    dear = 1e-6 * width * np.diag(np.arange(degree + 1.0) ** 2)
    matrix, target = np.concatenate([table, dear]), np.append(places, np.zeros(degree + 1))
    coefficients = np.linalg.lstsq(matrix, target, rcond=None)[0]
    missed = float(np.max(np.abs(table @ coefficients - places)))
    if missed > MISSED * width:
        return None
    return Curve(tuple(coefficients.tolist()), domain.start, domain.length, power)


def moved(one: Sequence[Curve], other: Sequence[Curve], domain: Cylinder) -> float:
    """By how much curves differ at most over the later half of the time, as a share of the width;
    infinite where their numbers do."""
    if len(one) != len(other):
        return np.inf
    (low, *_), (high, *_) = domain.base.bounding_box
    times = domain.start + domain.length * np.linspace(0.1, 1, 50)
    gaps = [np.max(np.abs(a.at(times) - b.at(times))) for a, b in zip(one, other, strict=True)]
    return float(max(gaps, default=0.0)) / float(high - low)
