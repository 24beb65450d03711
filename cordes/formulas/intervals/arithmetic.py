"""Interval arithmetic in NumPy, rounded outwards: for every pair of numbers in two intervals the
exact result lies in the resulting interval.

NumPy rounds to nearest, so a bound is moved one unit in the last place outwards after each
operation; sums are moved only where they are inexact, which the error of the sum shows. A bound
that would not be a number (∞ - ∞, the square root of a negative number) becomes ∓∞. Zero times
infinity is zero: an infinite bound stands for finite values of any size, never for the value
infinity.
"""

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, final

import numpy as np

Array = np.ndarray


def down(x: Array) -> Array:
    """The next number below. An infinite lower bound that came from overflow becomes the largest
    finite number."""
    return np.nextafter(x, -np.inf)


def up(x: Array) -> Array:
    return np.nextafter(x, np.inf)


def _sum_and_error(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error (Knuth): a + b = sum + error exactly, unless the sum overflows,
    where the error is not a number."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add_down(a: Array, b: Array) -> Array:
    total, error = _sum_and_error(a, b)
    return np.where(error >= 0, total, down(total))


def add_up(a: Array, b: Array) -> Array:
    total, error = _sum_and_error(a, b)
    return np.where(error <= 0, total, up(total))


@final
class Interval:
    """Arrays `lower` and `upper` of equal shape (cells, ...), float64. Constants in operators
    broadcast from the right, as in NumPy."""

    __slots__ = ("lower", "upper")
    # NumPy arrays on the left of an operator leave the operation to this class.
    __array_ufunc__ = None

    def __init__(self, lower: Any, upper: Any):
        self.lower = np.asarray(lower, dtype=np.float64)
        # Equal bounds are one array, by which products recognise constants.
        self.upper = self.lower if upper is lower else np.asarray(upper, dtype=np.float64)

    def __repr__(self) -> str:
        return f"Interval({self.lower!r}, {self.upper!r})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def exact(self) -> bool:
        """Whether the interval is known to be a single number everywhere."""
        return self.upper is self.lower

    def __getitem__(self, index: Any) -> "Interval":
        return self.map(lambda bound: bound[index])

    def map(self, move: Callable[[Array], Array]) -> "Interval":
        """The interval with its elements moved: `move` must not compute."""
        lower = move(self.lower)
        return Interval(lower, lower if self.exact else move(self.upper))

    def contains(self, values: Any) -> Array:
        return (self.lower <= values) & (values <= self.upper)

    def __neg__(self) -> "Interval":
        lower = -self.upper
        return Interval(lower, lower if self.exact else -self.lower)

    @np.errstate(all="ignore")
    def __add__(self, other: Any) -> "Interval":
        other = as_interval(other)
        return cleaned(add_down(self.lower, other.lower), add_up(self.upper, other.upper))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Interval":
        return self + (-as_interval(other))

    def __rsub__(self, other: Any) -> "Interval":
        return as_interval(other) - self

    @np.errstate(all="ignore")
    def __mul__(self, other: Any) -> "Interval":
        other = as_interval(other)
        return self.square() if other is self else _extremes(operator.mul, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Interval":
        """The quotient; where the divisor may be zero nothing is known."""
        return self.divide(other, False)

    @np.errstate(all="ignore")
    def divide(self, other: Any, one_sided: Any) -> "Interval":
        """The quotient. Where `one_sided` is true and zero is the lower or upper bound of the
        divisor the quotient is a half-line: the divisor must be zero at almost no point there, or
        be a zero without sign. Elsewhere nothing is known of quotients whose divisor may be
        zero."""
        other = as_interval(other)
        # The sign of a zero says from which side the divisor comes to it.
        divisor = other
        if not other.exact:
            lower = np.where(other.lower == 0, 0.0, other.lower)
            divisor = Interval(lower, np.where(other.upper == 0, -0.0, other.upper))
        quotient = _extremes(operator.truediv, self, divisor)
        inside = (other.lower < 0) & (other.upper > 0)
        touching = (other.lower == 0) | (other.upper == 0)
        nothing = (other.lower == 0) & (other.upper == 0)
        return quotient.unknown_where(inside | nothing | (touching & ~np.asarray(one_sided)))

    def __rtruediv__(self, other: Any) -> "Interval":
        return as_interval(other) / self

    def __pow__(self, exponent: int) -> "Interval":
        return self.power(exponent)

    def __abs__(self) -> "Interval":
        if self.exact:
            return self.map(np.abs)
        smallest = np.maximum(np.maximum(self.lower, -self.upper), 0.0)
        return Interval(smallest, np.maximum(-self.lower, self.upper))

    def square(self) -> "Interval":
        return self.power(2)

    @np.errstate(all="ignore")
    def power(self, exponent: int) -> "Interval":
        """An integer power; even powers are never negative."""
        if exponent < 0:
            return point(1.0).divide(self.power(-exponent), exponent % 2 == 0)
        if exponent == 0:
            return point(np.ones_like(self.lower))
        if exponent % 2 == 0:
            size = abs(self)
            return Interval(_power(size.lower, exponent, down), _power(size.upper, exponent, up))

        def odd(x: Array, outwards: Callable, inwards: Callable) -> Array:
            # Of a negative number the size is rounded the other way.
            size = np.abs(x)
            return np.where(
                x < 0, -_power(size, exponent, inwards), _power(size, exponent, outwards)
            )

        return Interval(odd(self.lower, down, up), odd(self.upper, up, down))

    @np.errstate(all="ignore")
    def sqrt(self) -> "Interval":
        """The square root where it is real: the negative part of an interval is left out, and of a
        negative interval nothing is known."""
        root = np.sqrt(np.maximum(self.lower, 0.0)), np.sqrt(np.maximum(self.upper, 0.0))
        rounded = Interval(np.maximum(down(root[0]), 0.0), np.where(root[1] == 0, 0.0, up(root[1])))
        return rounded.unknown_where(self.upper < 0)

    def unknown_where(self, unknown: Array) -> "Interval":
        return where(unknown, ANYTHING, self) if np.any(unknown) else self

    def clip(self, lower: float, upper: float) -> "Interval":
        """The interval cut to a range in which the values are known to lie."""
        return self.map(lambda bound: np.clip(bound, lower, upper))

    def sum(self, axis: int | tuple[int, ...] | None = None) -> "Interval":
        """The sum over axes, by default over all but the first (the cells)."""
        return self._reduce(operator.add, 0.0, axis)

    def prod(self, axis: int | tuple[int, ...] | None = None) -> "Interval":
        return self._reduce(operator.mul, 1.0, axis)

    def _reduce(
        self, combine: Callable, start: float, axis: int | tuple[int, ...] | None
    ) -> "Interval":
        rank = self.lower.ndim
        axes = (
            tuple(range(1, rank))
            if axis is None
            else tuple(a % rank for a in (axis if isinstance(axis, tuple) else (axis,)))
        )
        kept = tuple(a for a in range(rank) if a not in axes)
        shape = tuple(self.shape[a] for a in kept)
        # Counted here: -1 means nothing where there are no boxes.
        count = math.prod(self.shape[a] for a in axes)
        flat = self.map(lambda bound: bound.transpose(axes + kept).reshape((count, *shape)))
        if count == 0:
            return point(np.full(shape, start))
        return reduce(combine, [flat[i] for i in range(len(flat.lower))])


def point(values: Any) -> Interval:
    """An interval of single numbers."""
    values = np.asarray(values, dtype=np.float64)
    return Interval(values, values)


ANYTHING = Interval(-np.inf, np.inf)


def where(condition: Array, one: Interval, other: Interval) -> Interval:
    """One interval where a condition holds, elsewhere the other."""
    return Interval(
        np.where(condition, one.lower, other.lower), np.where(condition, one.upper, other.upper)
    )


def as_interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else point(value)


def cleaned(lower: Array, upper: Array) -> Interval:
    """Bounds that are not a number become infinite."""
    return Interval(np.fmax(lower, -np.inf), np.fmin(upper, np.inf))


def hull(first: Interval, *others: Interval) -> Interval:
    """The smallest interval around all."""
    intervals = (first, *others)
    return Interval(
        reduce(np.minimum, [i.lower for i in intervals]),
        reduce(np.maximum, [i.upper for i in intervals]),
    )


def _increasing(function: Callable) -> Callable[[Any, Any], Interval]:
    """A function of two numbers that is exact and increasing in both."""

    def enclosure(a: Any, b: Any) -> Interval:
        a, b = as_interval(a), as_interval(b)
        return Interval(function(a.lower, b.lower), function(a.upper, b.upper))

    return enclosure


maximum, minimum = _increasing(np.maximum), _increasing(np.minimum)


def _bounds(interval: Interval) -> tuple[Array, ...]:
    return (interval.lower,) if interval.exact else (interval.lower, interval.upper)


def _extremes(operation: Callable, a: Interval, b: Interval) -> Interval:
    """Products or quotients of intervals: the extremes are among those of the bounds. 0·∞, 0/0 and
    ∞/∞ are replaced by 0: the quotients of the other bounds already cover what they can be. Where
    an extreme is exactly zero or has underflown, the sign decides: values of one sign are not moved
    across zero."""
    results = [operation(x, y) for x in _bounds(a) for y in _bounds(b)]
    results = [np.where(np.isnan(result), 0.0, result) for result in results]
    low, high = reduce(np.minimum, results), reduce(np.maximum, results)
    lower, upper = down(low), up(high)
    zero_low, zero_high = low == 0, high == 0
    if np.any(zero_low) or np.any(zero_high):
        nothing = ((a.lower == 0) & (a.upper == 0)) | ((b.lower == 0) & (b.upper == 0))
        same = ((a.lower >= 0) & (b.lower >= 0)) | ((a.upper <= 0) & (b.upper <= 0))
        opposite = ((a.lower >= 0) & (b.upper <= 0)) | ((a.upper <= 0) & (b.lower >= 0))
        lower = np.where(zero_low & (same | nothing), 0.0, lower)
        upper = np.where(zero_high & (opposite | nothing), 0.0, upper)
    return Interval(lower, upper)


def _power(size: Array, exponent: int, rounded: Callable[[Array], Array]) -> Array:
    """A positive power of numbers that are not negative, by repeated squaring with every product
    rounded the same way; zero stays zero."""
    result, factor = np.ones_like(size), size
    while exponent:
        if exponent & 1:
            # One times a number is exact.
            result = np.where(result == 1, factor, np.maximum(rounded(result * factor), 0.0))
        exponent >>= 1
        if exponent:
            factor = np.maximum(rounded(factor * factor), 0.0)
    return np.where(size == 0, 0.0, result)
