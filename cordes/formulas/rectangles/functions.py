"""Elementary functions of rectangles."""

from collections.abc import Callable

import numpy as np
from scipy import special

from cordes.formulas.rectangles.arithmetic import (
    HALF_TURN,
    UFUNCS,
    Array,
    Rectangle,
    cosine,
    increasing,
    minus,
    plus,
    sine,
    size_of,
    squared,
    times,
)


def _hyperbolic_cosine(x: tuple[Array, Array]) -> tuple[Array, Array]:
    low = np.where((x[0] <= 0) & (x[1] >= 0), 0.0, np.minimum(np.abs(x[0]), np.abs(x[1])))
    return increasing(np.cosh, (low, size_of(x)))


@np.errstate(all="ignore")
def exp(z: Rectangle) -> Rectangle:
    size = increasing(np.exp, z.real)
    real, imaginary = times(size, cosine(z.imaginary)), times(size, sine(z.imaginary))
    return Rectangle(*real, *imaginary).where(z.still, Rectangle(*size))


@np.errstate(all="ignore")
def sin(z: Rectangle) -> Rectangle:
    growth, slope = _hyperbolic_cosine(z.imaginary), increasing(np.sinh, z.imaginary)
    return Rectangle(*times(sine(z.real), growth), *times(cosine(z.real), slope))


@np.errstate(all="ignore")
def cos(z: Rectangle) -> Rectangle:
    growth, slope = _hyperbolic_cosine(z.imaginary), increasing(np.sinh, z.imaginary)
    return Rectangle(*times(cosine(z.real), growth), *minus(times(sine(z.real), slope)))


def sinh(z: Rectangle) -> Rectangle:
    return (exp(z) - exp(-z)) * 0.5


def cosh(z: Rectangle) -> Rectangle:
    return (exp(z) + exp(-z)) * 0.5


def logistic(z: Rectangle) -> Rectangle:
    # Of the two forms that one whose exponential is small.
    negative = 1.0 / (exp(-z) + 1.0)
    other = exp(z)
    return negative.where(z.upper < 0, other * (1.0 / (other + 1.0)))


def tanh(z: Rectangle) -> Rectangle:
    return 2.0 * logistic(z + z) - 1.0


def tan(z: Rectangle) -> Rectangle:
    return sin(z) / cos(z)


@np.errstate(all="ignore")
def log(z: Rectangle) -> Rectangle:
    right = z.right_half()
    squares = plus(squared(right.real), squared(z.imaginary))
    low, high = increasing(np.log, squares)
    angle = right.angle()
    zero = np.zeros(z.shape)
    below, above = (np.where(z.still, zero, each) for each in angle)
    logarithm = Rectangle(low / 2 - 1e-16, high / 2 + 1e-16, below, above)
    return logarithm.nowhere_analytic(~z.still & ~(z.lower > 0))


def _along(function: Callable, slope: Callable[[Rectangle], Array]) -> Callable:
    """A function by its real values and a bound of its derivative in the rectangle: the way from
    the real axis is vertical."""

    @np.errstate(all="ignore")
    def rule(z: Rectangle) -> Rectangle:
        low, high = increasing(function, z.real)
        height = size_of(z.imaginary)
        reach = np.where(height == 0, 0.0, height * slope(z)) * (1 + 1e-14)
        near = Rectangle(low - reach, high + reach, -reach, reach)
        return near.nowhere_analytic(~np.isfinite(reach))

    return rule


def _least_square(z: Rectangle) -> Array:
    return squared(z.real)[0]


def _slope_of_atan(z: Rectangle) -> Array:
    """1/|1 + z²|, away from the cuts on the imaginary axis."""
    height, square = size_of(z.imaginary), _least_square(z)
    slope = 1 / (square + np.maximum(1 - height, 0.0) ** 2)
    return np.where((height < 1) | (square > 0), slope, np.inf)


def _slope_of_erf(z: Rectangle) -> Array:
    return 2 / np.sqrt(np.pi) * np.exp(size_of(z.imaginary) ** 2 - _least_square(z))


atan = _along(np.arctan, _slope_of_atan)
erf = _along(special.erf, _slope_of_erf)


@np.errstate(all="ignore")
def atan2(y: Rectangle, x: Rectangle) -> Rectangle:
    """Away from the cut, by the real values and the derivative (x dy - y dx)/(x² + y²)."""
    squares = squared(x.real)[0] + squared(y.real)[0]
    heights = size_of(x.imaginary), size_of(y.imaginary)
    least = squares - heights[0] ** 2 - heights[1] ** 2
    corners = [np.arctan2(b, a) for a in x.real for b in y.real]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    cut = (x.lower <= 0) & (y.lower <= 0) & (y.upper >= 0)
    reach = (x.size() * heights[1] + y.size() * heights[0]) / np.where(least > 0, least, np.nan)
    moves = (heights[0] > 0) | (heights[1] > 0)
    reach = np.where(moves, reach, 0.0) + 1e-15
    imaginary = np.where(moves, reach, 0.0)
    near = Rectangle(low - reach, high + reach, -imaginary, imaginary)
    around = Rectangle(
        np.full(low.shape, -HALF_TURN - 1e-15), np.full(low.shape, HALF_TURN + 1e-15)
    )
    return near.where(cut & ~moves, around).nowhere_analytic(moves & (cut | ~(least > 0)))


FUNCTIONS: dict[str, Callable[..., Rectangle]] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "square": Rectangle.square,
    "sqrt": Rectangle.sqrt,
    "rsqrt": lambda z: z.power(-0.5),
    "exp2": lambda z: exp(z * np.log(2.0)),
    "expm1": lambda z: exp(z) - 1.0,
    "log1p": lambda z: log(z + 1.0),
    "asinh": lambda z: log(z + (z.square() + 1.0).sqrt()),
    **{each.__name__: each for each in (exp, sin, cos, sinh, cosh, tanh, tan, logistic, log)},
    "atan": atan,
    "erf": erf,
    "erfc": lambda z: -erf(z) + 1.0,
    "atan2": atan2,
}

UFUNCS |= {np.exp: exp, np.sin: sin, np.cos: cos}
