"""Rectangles of complex numbers in NumPy: for every pair of numbers in two rectangles the result
lies in the resulting rectangle.

They bound analytic functions on ellipses around a cell, where a factor of two costs one more Gauss
point: so every operation is widened by a few units in the last place of its bounds, and no more is
done about rounding. Where a function is not analytic in a rectangle the result is the whole plane.
"""

import functools
from collections.abc import Callable
from typing import Any, final

import numpy as np

Array = np.ndarray
# Four units in the last place.
WIDENING = 9e-16
HALF_TURN = np.pi


def widened(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Widened bounds; what is not a number becomes infinite."""
    low, high = np.abs(lower), np.abs(upper)
    # In place: most of the time of an enclosure goes into memory.
    low *= -WIDENING
    low += lower
    high *= WIDENING
    high += upper
    return np.fmax(low, -np.inf), np.fmin(high, np.inf)


def times(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    """The product of real intervals; zero times infinity is zero."""
    # Points, such as constants, have one bound.
    ends = [each[:1] if each[0] is each[1] else each for each in (a, b)]
    products = [x * y for x in ends[0] for y in ends[1]]
    low = functools.reduce(np.minimum, products)
    if low.size and np.isnan(np.min(low)):
        products = [np.where(np.isnan(each), 0.0, each) for each in products]
        low = functools.reduce(np.minimum, products)
    return widened(low, functools.reduce(np.maximum, products))


def plus(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return widened(a[0] + b[0], a[1] + b[1])


def minus(a: tuple[Array, Array]) -> tuple[Array, Array]:
    return -a[1], -a[0]


def squared(a: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = a[0] * a[0], a[1] * a[1]
    smallest = np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(low, high))
    return widened(smallest, np.maximum(low, high))


def size_of(a: tuple[Array, Array]) -> Array:
    return np.maximum(np.abs(a[0]), np.abs(a[1]))


def sine(x: tuple[Array, Array]) -> tuple[Array, Array]:
    """The sine of a real interval; in doubt a crest or trough is inside."""
    low, high = np.sin(x[0]), np.sin(x[1])
    turns = [(each / HALF_TURN - 0.5) for each in x]
    slack = [1e-12 * (1 + np.abs(each)) for each in turns]
    ends = np.ceil(turns[0] - slack[0]), np.floor(turns[1] + slack[1])
    inside = ~(ends[0] > ends[1])
    # Crests are at even multiples, troughs at odd ones.
    several = ~(ends[1] - ends[0] < 1)
    even = np.mod(ends[0], 2) == 0
    crest, trough = inside & (several | even), inside & (several | ~even)
    lower = np.fmax(np.minimum(low, high) - 1e-15, -1.0)
    upper = np.fmin(np.maximum(low, high) + 1e-15, 1.0)
    return np.where(trough, -1.0, lower), np.where(crest, 1.0, upper)


def cosine(x: tuple[Array, Array]) -> tuple[Array, Array]:
    return sine(
        (x[0] + HALF_TURN / 2 - 1e-15 * np.abs(x[0]), x[1] + HALF_TURN / 2 + 1e-15 * np.abs(x[1]))
    )


def increasing(function: Callable, x: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = widened(function(x[0]), function(x[1]))
    return widened(low, high)


@final
class Rectangle:
    """lower ≤ Re z ≤ upper and below ≤ Im z ≤ above, arrays of one shape. Where both parts of the
    imaginary part are zero the number is real: it does not depend on the complex variable."""

    __slots__ = ("above", "below", "lower", "upper")

    def __init__(self, lower: Any, upper: Any, below: Any = None, above: Any = None):
        self.lower = np.asarray(lower, float)
        same = upper is lower
        self.upper = (
            self.lower if same else np.broadcast_to(np.asarray(upper, float), self.lower.shape)
        )
        zero = np.zeros_like(self.lower)
        self.below = zero if below is None else np.asarray(below, float)
        self.above = zero if above is None else np.asarray(above, float)

    def __repr__(self) -> str:
        return f"Rectangle({self.lower!r}, {self.upper!r}, {self.below!r}, {self.above!r})"

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any) -> "Rectangle":
        """NumPy's functions, so that formulas written for numbers serve for rectangles too."""
        if method != "__call__" or ufunc not in UFUNCS:
            return NotImplemented
        return UFUNCS[ufunc](*(as_rectangle(each) for each in operands))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def real(self) -> tuple[Array, Array]:
        return self.lower, self.upper

    @property
    def imaginary(self) -> tuple[Array, Array]:
        return self.below, self.above

    @property
    def moves(self) -> bool:
        """Whether any of the numbers depends on the complex variable."""
        return bool(np.any(self.below) or np.any(self.above))

    @property
    def still(self) -> Array:
        """Where the number is real for all values of the complex variable."""
        return (self.below == 0) & (self.above == 0)

    def map(self, move: Callable[[Array], Array]) -> "Rectangle":
        """The rectangle with its elements moved: `move` must not compute."""
        return Rectangle(*(move(part) for part in (*self.real, *self.imaginary)))

    def __getitem__(self, index: Any) -> "Rectangle":
        return self.map(lambda part: part[index])

    @np.errstate(over="ignore")
    def size(self) -> Array:
        """An upper bound of |z|."""
        return np.hypot(size_of(self.real), size_of(self.imaginary)) * (1 + WIDENING)

    def __neg__(self) -> "Rectangle":
        return Rectangle(*minus(self.real), *minus(self.imaginary))

    @np.errstate(all="ignore")
    def __add__(self, other: Any) -> "Rectangle":
        other = as_rectangle(other)
        return Rectangle(*plus(self.real, other.real), *plus(self.imaginary, other.imaginary))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Rectangle":
        return self + (-as_rectangle(other))

    def __rsub__(self, other: Any) -> "Rectangle":
        return as_rectangle(other) - self

    @np.errstate(all="ignore")
    def __mul__(self, other: Any) -> "Rectangle":
        other = as_rectangle(other)
        if other is self:
            return self.square()
        real = times(self.real, other.real)
        one, two = self.moves, other.moves
        if not one:
            return Rectangle(*real, *(times(self.real, other.imaginary) if two else ()))
        if not two:
            return Rectangle(*real, *times(self.imaginary, other.real))
        real = plus(real, minus(times(self.imaginary, other.imaginary)))
        crossed = times(self.real, other.imaginary), times(self.imaginary, other.real)
        return Rectangle(*real, *plus(*crossed))

    __rmul__ = __mul__

    @np.errstate(all="ignore")
    def square(self) -> "Rectangle":
        real = plus(squared(self.real), minus(squared(self.imaginary)))
        below, above = times(self.real, self.imaginary)
        return Rectangle(*real, 2 * below, 2 * above)

    @np.errstate(all="ignore")
    def inverse(self) -> "Rectangle":
        """1/z, where zero is outside; |1/z| ≤ 1/|z| bounds both parts once more."""
        squares = plus(squared(self.real), squared(self.imaginary))
        pole = ~(squares[0] > 0)
        over = 1 / squares[1], 1 / np.where(pole, 1.0, squares[0])
        limit = np.sqrt(over[1]) * (1 + WIDENING)

        def part(values: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = times(values, over)
            return np.maximum(low, -limit), np.minimum(high, limit)

        turned = Rectangle(*part(self.real), *part(minus(self.imaginary)))
        return turned.nowhere_analytic(pole)

    def __truediv__(self, other: Any) -> "Rectangle":
        return self * as_rectangle(other).inverse()

    def __rtruediv__(self, other: Any) -> "Rectangle":
        return as_rectangle(other) * self.inverse()

    def __pow__(self, exponent: float) -> "Rectangle":
        return self.power(exponent)

    def power(self, exponent: float) -> "Rectangle":
        """A whole power by squaring; another one where Re z > 0."""
        if exponent != int(exponent):
            return self._root(exponent)
        if exponent < 0:
            return self.power(-exponent).inverse()
        result, factor, rest = None, self, int(exponent)
        while rest:
            if rest & 1:
                result = factor if result is None else result * factor
            rest >>= 1
            factor = factor.square() if rest else factor
        return as_rectangle(np.ones(self.shape)) if result is None else result

    @np.errstate(all="ignore")
    def _root(self, exponent: float) -> "Rectangle":
        right = self.right_half()
        squares = plus(squared(right.real), squared(self.imaginary))
        ends = squares[0] ** (exponent / 2), squares[1] ** (exponent / 2)
        size = widened(np.minimum(*ends), np.maximum(*ends))
        angle = tuple(exponent * each for each in right.angle())
        angle = np.minimum(*angle) - WIDENING, np.maximum(*angle) + WIDENING
        turned = Rectangle(*times(size, cosine(angle)), *times(size, sine(angle)))
        # The root of a real number that reaches zero is real; of a complex one nothing is known.
        at_zero = Rectangle(np.zeros(self.shape), np.inf if exponent < 0 else size[1])
        zero = self.still & (self.lower <= 0)
        return turned.where(zero, at_zero).nowhere_analytic(~self.still & ~(self.lower > 0))

    def sqrt(self) -> "Rectangle":
        return self._root(0.5)

    def right_half(self) -> "Rectangle":
        """The rectangle, cut off at Re z = 0; a right one where nothing is left."""
        lower = np.where(self.lower > 0, self.lower, np.where(self.still, 0.0, 1.0))
        return Rectangle(lower, np.maximum(self.upper, lower), *self.imaginary)

    def angle(self) -> tuple[Array, Array]:
        """The argument, Re z > 0."""
        low = np.arctan2(self.below, np.where(self.below < 0, self.lower, self.upper))
        high = np.arctan2(self.above, np.where(self.above > 0, self.lower, self.upper))
        return low - WIDENING, high + WIDENING

    def where(self, mask: Array, other: "Rectangle") -> "Rectangle":
        """The other rectangle where the mask holds."""
        parts = zip((*other.real, *other.imaginary), (*self.real, *self.imaginary), strict=True)
        return Rectangle(*(np.where(mask, new, old) for new, old in parts))

    def nowhere_analytic(self, mask: Array) -> "Rectangle":
        """The whole plane where the mask holds."""
        if not np.any(mask):
            return self
        lower, below = (np.where(mask, -np.inf, part) for part in (self.lower, self.below))
        upper, above = (np.where(mask, np.inf, part) for part in (self.upper, self.above))
        return Rectangle(lower, upper, below, above)

    def hull(self, other: "Rectangle") -> "Rectangle":
        lower, below = (
            np.minimum(*parts) for parts in ((self.lower, other.lower), (self.below, other.below))
        )
        upper, above = (
            np.maximum(*parts) for parts in ((self.upper, other.upper), (self.above, other.above))
        )
        return Rectangle(lower, upper, below, above)

    @np.errstate(all="ignore")
    def sum(self, axis: int | tuple[int, ...]) -> "Rectangle":
        """The sum over axes, widened by the rounding of all its terms."""
        total = self.map(lambda part: np.sum(part, axis=axis))
        slack = [
            4 * WIDENING * np.sum(size_of(part), axis=axis) for part in (self.real, self.imaginary)
        ]
        cleaned = [
            np.fmax(total.lower - slack[0], -np.inf),
            np.fmin(total.upper + slack[0], np.inf),
        ]
        cleaned += [
            np.fmax(total.below - slack[1], -np.inf),
            np.fmin(total.above + slack[1], np.inf),
        ]
        return Rectangle(*cleaned)


def as_rectangle(value: Any) -> Rectangle:
    """Of a constant; of one that is no number nothing is known, and no product may make it zero."""
    if isinstance(value, Rectangle):
        return value
    unknown = np.isnan(value)
    if np.any(unknown):
        return Rectangle(np.where(unknown, -np.inf, value), np.where(unknown, np.inf, value))
    return Rectangle(value, value)


def _at_least(z: Rectangle, least: Rectangle) -> Rectangle:
    """max(z, constant): z itself where it stays above."""
    clipped = Rectangle(np.maximum(z.lower, least.lower), np.maximum(z.upper, least.upper))
    above = z.lower >= least.upper
    return z.where(~above, clipped).nowhere_analytic(~above & ~z.still)


UFUNCS: dict[Any, Callable[..., Rectangle]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.divide: lambda a, b: a / b,
    np.negative: lambda a: -a,
    np.sqrt: Rectangle.sqrt,
    np.maximum: _at_least,
}
