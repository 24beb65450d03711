"""Elementary functions of intervals.

NumPy and SciPy evaluate them with an error of a few units in the last place; every bound is moved
outwards by eight, and never beyond the range of the function or across one of its known zeros.
Where a function is not real in a part of an interval that part is left out (√, log, powers,
arcsine); where it is real nowhere, nothing is known and the result is (-∞, ∞). The bounds therefore
hold at every point where the function is a number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from cordes.formulas.intervals.arithmetic import (
    Array,
    Interval,
    cleaned,
    hull,
    maximum,
    minimum,
    point,
    where,
)

# Eight units in the last place are at most 2⁻⁴⁹ of a number; twice that covers the rounding of the
# subtraction, and the last term the subnormal numbers.
MARGIN, SMALLEST = 2.0**-48, 8 * 5e-324


def widened(lower: Array, upper: Array) -> Interval:
    """Bounds moved outwards by eight units in the last place; an infinite bound that came from
    overflow on the inner side becomes finite."""
    low = np.minimum(lower, np.finfo(float).max)
    high = np.maximum(upper, -np.finfo(float).max)
    return cleaned(
        low - (MARGIN * np.abs(low) + SMALLEST), high + (MARGIN * np.abs(high) + SMALLEST)
    )


def increasing(
    function: Callable[[Array], Array],
    lowest: float = -np.inf,
    highest: float = np.inf,
    signed: bool = False,
) -> Callable[[Interval], Interval]:
    """The enclosure of an increasing function with values in [lowest, highest]; a `signed` one has
    the sign of its argument."""

    @np.errstate(all="ignore")
    def enclosure(x: Interval) -> Interval:
        low = function(x.lower)
        result = widened(low, low if x.exact else function(x.upper)).clip(lowest, highest)
        if not signed:
            return result
        lower = np.where(x.lower >= 0, np.maximum(result.lower, 0.0), result.lower)
        return Interval(lower, np.where(x.upper <= 0, np.minimum(result.upper, 0.0), result.upper))

    return enclosure


exp = increasing(np.exp, lowest=0.0)
exp2 = increasing(np.exp2, lowest=0.0)
expm1 = increasing(np.expm1, lowest=-1.0, signed=True)
sinh = increasing(np.sinh, signed=True)
tanh = increasing(np.tanh, -1.0, 1.0, signed=True)
atan = increasing(np.arctan, signed=True)
asinh = increasing(np.arcsinh, signed=True)
cbrt = increasing(np.cbrt, signed=True)
erf = increasing(special.erf, -1.0, 1.0, signed=True)


def erfc(x: Interval) -> Interval:
    """Its error grows with exp(-x²), whose exponent is rounded: x² units in the last place."""
    found = increasing(lambda t: special.erfc(-t), 0.0, 2.0)(-x)
    share = MARGIN * np.minimum(np.maximum(x.lower**2, x.upper**2), 1e3)
    return Interval(found.lower * (1 - share), np.minimum(found.upper * (1 + share), 2.0))


def _restricted(
    function: Callable[[Array], Array], lowest: float, highest: float = np.inf, signed: bool = False
) -> Callable[[Interval], Interval]:
    """The enclosure of an increasing function that is real on [lowest, highest] only."""
    inside = increasing(function, signed=signed)
    return lambda x: inside(x.clip(lowest, highest)).unknown_where(
        (x.upper < lowest) | (x.lower > highest)
    )


log = _restricted(np.log, 0.0)
log1p = _restricted(np.log1p, -1.0, signed=True)
asin = _restricted(np.arcsin, -1.0, 1.0, signed=True)
acosh = _restricted(np.arccosh, 1.0)
atanh = _restricted(np.arctanh, -1.0, 1.0, signed=True)


def acos(x: Interval) -> Interval:
    inside = (-x).clip(-1.0, 1.0)
    decreasing = increasing(lambda t: np.arccos(-t), lowest=0.0)
    return decreasing(inside).unknown_where((x.upper < -1) | (x.lower > 1))


def cosh(x: Interval) -> Interval:
    return increasing(np.cosh, lowest=1.0)(abs(x))


def rsqrt(x: Interval) -> Interval:
    return point(1.0).divide(x.sqrt(), True)


def logistic(x: Interval) -> Interval:
    return (1.0 / (exp(-x) + 1.0)).clip(0.0, 1.0)


def _reaches(x: Interval, offset: float, period: float) -> Array:
    """Whether an interval may contain a point of offset + period·ℤ; in doubt it does."""
    slack = 16 * np.finfo(float).eps
    low, high = (x.lower - offset) / period, (x.upper - offset) / period
    return ~(np.floor(high + slack * (np.abs(high) + 1)) < np.ceil(low - slack * (np.abs(low) + 1)))


@np.errstate(all="ignore")
def _wave(function: Callable[[Array], Array], x: Interval, crest: float, trough: float) -> Interval:
    """Sine or cosine: the values at the bounds, and ±1 where a crest or trough lies between."""
    low, high = function(x.lower), function(x.upper)
    ends = widened(np.minimum(low, high), np.maximum(low, high))
    period = 2 * np.pi
    # A bound that is infinite gives no number here, and then every value is possible.
    lower = np.where(_reaches(x, trough, period), -1.0, np.fmax(ends.lower, -1.0))
    upper = np.where(_reaches(x, crest, period), 1.0, np.fmin(ends.upper, 1.0))
    return Interval(lower, upper)


def sin(x: Interval) -> Interval:
    return _wave(np.sin, x, np.pi / 2, -np.pi / 2)


def cos(x: Interval) -> Interval:
    return _wave(np.cos, x, 0.0, np.pi)


@np.errstate(all="ignore")
def tan(x: Interval) -> Interval:
    return increasing(np.tan)(x).unknown_where(_reaches(x, np.pi / 2, np.pi))


@np.errstate(all="ignore")
def atan2(y: Interval, x: Interval, one_sided: Any = False) -> Interval:
    """The angle: its extremes are at the corners, except on rectangles that meet the cut y = 0, x ≤
    0, where it is any angle. Where `one_sided` is true y is zero at almost no point, and then a
    rectangle may touch the cut."""
    # A zero of y is that of the side from which y comes to it, a zero of x has no sign.
    below = (y.upper == 0) & (y.lower < 0)
    ends = (np.where(y.lower == 0, 0.0, y.lower), np.where(below, -0.0, y.upper + 0.0))
    corners = [np.arctan2(s, t + 0.0) for s in ends for t in (x.lower, x.upper)]
    crossing = (y.lower < 0) & (y.upper > 0)
    touching = (y.lower <= 0) & (y.upper >= 0) & ~(np.asarray(one_sided) & (y.lower < y.upper))
    cut = (x.lower <= 0) & (crossing | touching)
    return widened(
        np.where(cut, -np.pi, np.minimum.reduce(corners)),
        np.where(cut, np.pi, np.maximum.reduce(corners)),
    )


@np.errstate(all="ignore")
def power(x: Interval, y: Interval) -> Interval:
    """x to the power y. Integer exponents that are constant are powers of any base; with others the
    base is not negative.

    On x ≥ 0 the power is monotone in each argument, so the extremes are at the corners. A base that
    may be negative with an exponent that is not constant gives (-∞, ∞).
    """
    if y.exact and np.all(y.lower == np.round(y.lower)) and np.all(np.abs(y.lower) <= 64):
        exponents = np.unique(y.lower)
        if len(exponents) == 1:
            return x.power(int(exponents[0]))
    base = x.clip(0.0, np.inf)
    corners = [np.power(s, t) for s in (base.lower, base.upper) for t in (y.lower, y.upper)]
    result = widened(np.minimum.reduce(corners), np.maximum.reduce(corners)).clip(0.0, np.inf)
    whole = y.lower == np.round(y.lower)
    unknown = x.upper < 0
    if not y.exact or np.any(whole):
        unknown = unknown | ((x.lower < 0) & (whole | (y.lower != y.upper)))
    return result.unknown_where(unknown)


@np.errstate(all="ignore")
def remainder(a: Interval, b: Interval) -> Interval:
    """a - b·trunc(a/b): exact where the quotient has one integer part, else between zero and the
    divisor with the sign of a."""
    quotient = a / b
    whole = np.trunc(quotient.lower)
    one = (whole == np.trunc(quotient.upper)) & np.isfinite(whole)
    size = np.minimum(abs(a).upper, abs(b).upper)
    loose = Interval(np.where(a.lower < 0, -size, 0.0), np.where(a.upper > 0, size, 0.0))
    exact = a - b * point(np.where(one, whole, 0.0))
    # Rounding must not push the remainder out of its range.
    tight = Interval(np.maximum(exact.lower, loose.lower), np.minimum(exact.upper, loose.upper))
    return where(one, tight, loose)


def stepwise(function: Callable[[Array], Array]) -> Callable[[Interval], Interval]:
    """Floor, ceiling, rounding: exact at the bounds and increasing, so the hull of the two."""
    return lambda x: x.map(function)


@np.errstate(all="ignore")
def _away(bound: Array) -> Array:
    """The nearest integer, halves away from zero."""
    whole = np.trunc(bound)
    return np.where(np.abs(bound - whole) >= 0.5, whole + np.sign(bound), whole)


floor, ceil, trunc = stepwise(np.floor), stepwise(np.ceil), stepwise(np.trunc)
round_even, round_away = stepwise(np.round), stepwise(_away)


def clamp(lower: Interval, x: Interval, upper: Interval) -> Interval:
    return minimum(maximum(lower, x), upper)


def choose(index: Interval, *cases: Interval) -> Interval:
    """cases[index], where the index is an interval: the hull of all cases it may be."""
    nothing = Interval(np.inf, -np.inf)
    return hull(*(where(index.contains(k), case, nothing) for k, case in enumerate(cases)))
