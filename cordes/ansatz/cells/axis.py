"""Piecewise polynomials of one variable that are C¹ by construction.

Between two lines a function is a factor times a Jacobi polynomial: the factor vanishes once at an
end of the domain where u does, and twice at a line inside, so that value and slope are zero there
in exact arithmetic. Two cubic pieces for each line inside carry its value and its slope. The
weights of the Jacobi polynomials are the factors, which keeps the functions nearly independent.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class AxisInterval(NamedTuple):
    """A piece: its ends, and how often functions vanish there."""

    lower: float
    upper: float
    zeros: tuple[int, int]

    def scaled(self, x: Any) -> Any:
        """From -1 to 1; exactly so at the ends."""
        return ((x - self.lower) - (self.upper - x)) / (self.upper - self.lower)


class EndFunction(NamedTuple):
    """A function of an end of the domain: combinations a·(value) + b·(slope) of the two cubics of
    the first and of the last piece, (a, b) each."""

    first: tuple[float, float]
    last: tuple[float, float]


class Axis(NamedTuple):
    """The functions of one variable: lines, ends of the domain included, whether functions vanish
    at those ends, and the degree of the polynomials. `natural` are κ ≥ 0 at ends where functions
    fulfil ∂ₙu + κu = 0 instead, or `periodic` where both are the same place: there pieces vanish
    twice, and functions of the ends are added."""

    lines: tuple[float, ...]
    vanishing: bool
    degree: int
    natural: tuple[float | None, float | None] = (None, None)
    periodic: bool = False

    @property
    def intervals(self) -> list[AxisInterval]:
        last, plain = len(self.lines) - 2, int(self.vanishing)
        first_end, last_end = (
            2 if self.periodic or kappa is not None else plain for kappa in self.natural
        )
        return [
            AxisInterval(low, high, (first_end if k == 0 else 2, last_end if k == last else 2))
            for k, (low, high) in enumerate(zip(self.lines[:-1], self.lines[1:], strict=True))
        ]

    @property
    def ends(self) -> list[EndFunction]:
        """Of the ends; of size one, however large κ is."""
        none, found = (0.0, 0.0), []
        if self.periodic:
            return [EndFunction((1.0, 0.0), (1.0, 0.0)), EndFunction((0.0, 1.0), (0.0, 1.0))]
        for end, kappa in enumerate(self.natural):
            if kappa is not None:
                low, high = self.lines[-2:] if end else self.lines[:2]
                size = 1 + kappa * (high - low)
                own = (1 / size, (-kappa if end else kappa) / size)
                found.append(EndFunction(none, own) if end else EndFunction(own, none))
        return found

    @property
    def ranks(self) -> np.ndarray:
        """How rough each function is: those of the lines inside, those of the ends, then those of
        each piece."""
        inside = [0, 1] * (len(self.lines) - 2)
        own = [range(self._count(each)) for each in self.intervals]
        return np.array([*inside, *range(len(self.ends)), *(n for each in own for n in each)], int)

    def _count(self, interval: AxisInterval) -> int:
        return max(self.degree + 1 - sum(interval.zeros), 0)

    def tables(self, x: np.ndarray) -> list[np.ndarray]:
        """All functions and two derivatives at points (N,), three arrays (N, count)."""
        found = [np.zeros((len(x), len(self.ranks))) for _ in range(3)]
        piece = np.clip(np.searchsorted(self.lines, x, side="right") - 1, 0, len(self.lines) - 2)
        inside = 2 * (len(self.lines) - 2)
        first = inside + len(self.ends)
        for k, interval in enumerate(self.intervals):
            here, count = np.flatnonzero(piece == k), self._count(interval)
            s, scale = interval.scaled(x[here]), 2 / (interval.upper - interval.lower)
            for n, own in enumerate(bubbles(s, interval.zeros, count)):
                found[n][here, first : first + count] = own * scale**n
            for line, end in ((k - 1, -1.0), (k, 1.0)):
                if 0 <= line < len(self.lines) - 2:
                    for n, pair in enumerate(hermite(s, end)):
                        found[n][here, 2 * line] = pair[0] * scale**n
                        found[n][here, 2 * line + 1] = pair[1] * scale ** (n - 1)
            for column, (end, (a, b)) in self._end_parts(k):
                for n, pair in enumerate(hermite(s, end)):
                    found[n][here, inside + column] += a * pair[0] * scale**n + b * pair[
                        1
                    ] * scale ** (n - 1)
            first += count
        return found

    def _end_parts(self, piece: int) -> list[tuple[int, tuple[float, tuple[float, float]]]]:
        """The parts of functions of the ends on a piece: the number of the function, the end of
        the piece and the two factors."""
        last, found = len(self.lines) - 2, []
        for column, each in enumerate(self.ends):
            if piece == 0 and any(each.first):
                found.append((column, (-1.0, each.first)))
            if piece == last and any(each.last):
                found.append((column, (1.0, each.last)))
        return found

    def values(self, x: Any, numbers: Any) -> Any:
        """All functions at one number of JAX, (count,)."""
        parts = [[numbers.zeros(())] * 2 for _ in range(len(self.lines) - 2)]
        ends = [numbers.zeros(()) for _ in self.ends]
        own = []
        for k, interval in enumerate(self.intervals):
            first, last = k == 0, k == len(self.lines) - 2
            inside = (first | (x >= interval.lower)) & (last | (x < interval.upper))
            # Outside of it polynomials may be huge, and their derivatives no numbers.
            s = numbers.where(inside, interval.scaled(x), 0.0)
            scale = 2 / (interval.upper - interval.lower)
            for line, end in ((k - 1, -1.0), (k, 1.0)):
                if 0 <= line < len(parts):
                    value, slope = hermite(s, end)[0]
                    parts[line][0] = parts[line][0] + numbers.where(inside, value, 0.0)
                    parts[line][1] = parts[line][1] + numbers.where(inside, slope / scale, 0.0)
            for column, (end, (a, b)) in self._end_parts(k):
                value, slope = hermite(s, end)[0]
                part = a * value + b / scale * slope
                ends[column] = ends[column] + numbers.where(inside, part, 0.0)
            column = _one(s, interval.zeros, self._count(interval))
            own += [numbers.where(inside, each, 0.0) for each in column]
        return numbers.stack([*(each for pair in parts for each in pair), *ends, *own])


def hermite(s: Any, end: float) -> list[tuple[Any, Any]]:
    """The two functions of a line at the end of a piece, with two derivatives; the slope in units
    of s."""
    t = end * s
    value = (1 + t) ** 2 * (2 - t) / 4, 3 * (1 + t) * (1 - t) / 4, -1.5 * t
    slope = (1 + t) ** 2 * (t - 1) / 4, (1 + t) * (3 * t - 1) / 4, (3 * t + 1) / 2
    return [
        (value[0], end * slope[0]),
        (end * value[1], slope[1]),
        (value[2], end * slope[2]),
    ]


@functools.lru_cache(maxsize=256)
def recurrence(zeros: tuple[int, int], count: int) -> np.ndarray:
    """P_n = (u_n s + v_n) P_{n-1} - w_n P_{n-2} for Jacobi polynomials of length one, whose weight
    is that of the factor squared; rows (u, v, w), the first one P_0 alone."""
    b, a = zeros[0], zeros[1]
    alpha, beta = float(2 * a), float(2 * b)
    rows = []
    before = np.sqrt(_mass(alpha, beta))
    rows.append((0.0, 1 / before, 0.0))
    off_before = 0.0
    for n in range(1, count):
        m = n - 1
        middle = 2 * m + alpha + beta
        if m == 0:
            center = (beta - alpha) / (alpha + beta + 2)
            off = 4 * (1 + alpha) * (1 + beta) / ((alpha + beta + 2) ** 2 * (alpha + beta + 3))
        else:
            center = (beta**2 - alpha**2) / (middle * (middle + 2))
            k = m + 1
            total = 2 * k + alpha + beta
            off = 4 * k * (k + alpha) * (k + beta) * (k + alpha + beta)
            off /= total**2 * (total + 1) * (total - 1)
        root = np.sqrt(off)
        rows.append((1 / root, -center / root, off_before / root))
        off_before = root
    return np.array(rows)


def _mass(alpha: float, beta: float) -> float:
    """∫ (1-s)^α (1+s)^β."""
    product = math.gamma(alpha + 1) * math.gamma(beta + 1)
    return 2 ** (alpha + beta + 1) * product / math.gamma(alpha + beta + 2)


def bubbles(s: np.ndarray, zeros: tuple[int, int], count: int) -> list[np.ndarray]:
    """The functions of one piece with two derivatives, three arrays (N, count)."""
    value, first, second = jacobi(s, zeros, count)
    factor = [part[:, None] for part in _factor(s, zeros)]
    return [
        factor[0] * value,
        factor[0] * first + factor[1] * value,
        factor[0] * second + 2 * factor[1] * first + factor[2] * value,
    ]


def jacobi(s: np.ndarray, zeros: tuple[int, int], count: int) -> list[np.ndarray]:
    found = np.zeros((3, count, len(s)))
    for n, (u, v, w) in enumerate(recurrence(zeros, count) if count else ()):
        if n == 0:
            found[0, 0] = v
            continue
        line = u * s + v
        found[:, n] = line * found[:, n - 1]
        found[1, n] += u * found[0, n - 1]
        found[2, n] += 2 * u * found[1, n - 1]
        if n > 1:
            found[:, n] -= w * found[:, n - 2]
    return [part.T for part in found]


def _factor(s: Any, zeros: tuple[int, int]) -> tuple[Any, Any, Any]:
    """(1+s)^a (1-s)^b with two derivatives, in the order of the ends."""
    one, other = ([(1 + sign * s) ** n for n in range(3)] for sign in (1.0, -1.0))
    a, b = zeros

    def power(line: list, exponent: int, order: int, sign: float) -> Any:
        steps = np.prod([exponent - j for j in range(order)]) if order else 1.0
        return sign**order * steps * line[exponent - order] if exponent >= order else 0.0 * s

    left = [power(one, a, n, 1.0) for n in range(3)]
    right = [power(other, b, n, -1.0) for n in range(3)]
    return (
        left[0] * right[0],
        left[1] * right[0] + left[0] * right[1],
        left[2] * right[0] + 2 * left[1] * right[1] + left[0] * right[2],
    )


def _one(s: Any, zeros: tuple[int, int], count: int) -> list[Any]:
    """The functions of one piece at one number of JAX."""
    factor, found = _factor(s, zeros)[0], []
    for n, (u, v, w) in enumerate(recurrence(zeros, count) if count else ()):
        if n == 0:
            found.append(v + 0.0 * s)
            continue
        rest = w * found[n - 2] if n > 1 else 0.0
        found.append((u * s + v) * found[n - 1] - rest)
    return [factor * each for each in found]


def axes_of(
    lines: Sequence[Sequence[float]],
    vanishing: bool,
    degrees: Sequence[int],
    directions: Sequence[Any] | None = None,
) -> tuple[Axis, ...]:
    """`directions` of a box with conditions on its faces say what holds at the ends."""
    found = [
        Axis(tuple(map(float, each)), vanishing, int(degree))
        for each, degree in zip(lines, degrees, strict=True)
    ]
    if directions is None:
        return tuple(found)
    return tuple(
        axis._replace(natural=(own.first, own.last), periodic=own.periodic)
        for axis, own in zip(found, directions, strict=True)
    )
