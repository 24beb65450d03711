"""What each operation of a jaxpr does to intervals: tables by the names of JAX's primitives.

Truth values are intervals within [0, 1] with integer bounds: 0 and 1 are decided, [0, 1] is not.
"""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from cordes.formulas.elementary import ELEMENTARY, INFINITE
from cordes.formulas.intervals import functions
from cordes.formulas.intervals.arithmetic import Array, Interval, cleaned, maximum, minimum


def finite(x: Interval) -> Interval:
    known = np.isfinite(x.lower) & np.isfinite(x.upper)
    return Interval(known, np.ones_like(x.lower))


def _differ(a: Interval, b: Interval) -> Interval:
    """Exclusive or."""
    surely = np.where((a.lower == a.upper) & (b.lower == b.upper), a.lower != b.lower, False)
    perhaps = np.where((a.lower == a.upper) & (b.lower == b.upper), a.lower != b.lower, True)
    return Interval(surely, perhaps)


ELEMENTWISE: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: a + b,
    "add_any": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rem": functions.remainder,
    "neg": lambda a: -a,
    "abs": lambda a: abs(a),
    "max": maximum,
    "min": minimum,
    "clamp": functions.clamp,
    "square": Interval.square,
    "sqrt": Interval.sqrt,
    "pow": functions.power,
    "is_finite": finite,
    "and": minimum,
    "or": maximum,
    "xor": _differ,
    "not": lambda a: Interval(1.0 - a.upper, 1.0 - a.lower),
    "select_n": functions.choose,
    "atan2": functions.atan2,
    **{
        name: getattr(functions, name)
        for name in ELEMENTARY
        if name not in ("abs", "sqrt", "sign")  # Above, and among the switches.
    },
}


def elementwise(equation: Any) -> Callable[..., Interval]:
    """The rule of an elementwise operation."""
    name, dtype = equation.primitive.name, np.dtype(equation.outvars[0].aval.dtype)
    if name == "integer_pow":
        exponent = int(equation.params["y"])
        return lambda a: a.power(exponent)
    if name == "round":
        even = int(equation.params["rounding_method"]) == 1
        return functions.round_even if even else functions.round_away
    if name == "div" and dtype.kind in "iu":
        return lambda a, b: functions.trunc(a / b)
    if name == "convert_element_type":
        whole = dtype.kind in "iu" and equation.invars[0].aval.dtype.kind == "f"
        return functions.trunc if whole else lambda a: a
    return ELEMENTWISE[name]


def _leaves(low: float, high: float, x: Interval) -> Array:
    return (x.lower < low) | (x.upper > high)


# Where an operation may give no number although its operands are numbers.
UNDEFINED: dict[str, Callable[..., Array]] = {
    **{
        name: partial(_leaves, *each.domain)
        for name, each in ELEMENTARY.items()
        if each.domain != INFINITE
    },
    **dict.fromkeys(("div", "rem"), lambda a, b: (b.lower <= 0) & (b.upper >= 0)),
    "pow": lambda x, y: (x.lower < 0) & (not (y.exact and np.all(y.lower == np.round(y.lower)))),
}


def gap_after(
    name: str, gaps: list[Array | None], operands: list[Interval], results: list[Interval]
) -> Array | None:
    """In which cells the result of an operation may not be a number: where an operand may not be,
    where the operation is undefined, and where a bound is infinite, so that a later ∞ - ∞ cannot
    pass unnoticed. A selection has the gaps of what it may select."""
    found = list(gaps)
    if name in ("select_n", "cond"):
        index = operands[0]
        for number, gap in enumerate(gaps[1:]):
            if gap is not None:
                possible = (index.lower <= number) & (index.upper >= number)
                found[number + 1] = gap & np.any(possible.reshape(len(possible), -1), axis=1)
    if name in UNDEFINED:
        found.append(_somewhere(UNDEFINED[name](*operands)))
    found += [
        _somewhere(~np.isfinite(bound))
        for result in results
        for bound in (result.lower, result.upper)
    ]
    known = [gap for gap in found if gap is not None]
    return reduce(np.logical_or, known) if known else None


def _somewhere(mask: Array) -> Array | None:
    return np.any(mask.reshape(len(mask), -1), axis=1) if np.any(mask) else None


def whole_numbers(x: Interval) -> Interval:
    """Integers and truth values: bounds that rounding has moved outwards are moved back to the
    integers inside."""
    return cleaned(np.ceil(x.lower), np.floor(x.upper))


REDUCTIONS: dict[str, Callable[[Interval, tuple[int, ...]], Interval]] = {
    "reduce_sum": lambda x, axes: x.sum(axes),
    "reduce_prod": lambda x, axes: x.prod(axes),
    "reduce_max": lambda x, axes: x.map(lambda bound: np.max(bound, axis=axes)),
    "reduce_min": lambda x, axes: x.map(lambda bound: np.min(bound, axis=axes)),
    "reduce_or": lambda x, axes: x.map(lambda bound: np.max(bound, axis=axes, initial=0.0)),
    "reduce_and": lambda x, axes: x.map(lambda bound: np.min(bound, axis=axes, initial=1.0)),
}

_STEPS: dict[str, Callable[[Interval, Interval], Interval]] = {
    "cumsum": lambda a, b: a + b,
    "cumprod": lambda a, b: a * b,
    "cummax": maximum,
    "cummin": minimum,
}


def cumulate(name: str, x: Interval, axis: int, reverse: bool) -> Interval:
    """Running sums, products and extremes along an axis (which counts the cells)."""
    count = x.shape[axis]
    parts = [
        x.map(lambda bound, i=i: np.take(bound, i, axis=axis))
        for i in (range(count - 1, -1, -1) if reverse else range(count))
    ]
    for i in range(1, count):
        parts[i] = _STEPS[name](parts[i - 1], parts[i])
    parts = parts[::-1] if reverse else parts
    return Interval(
        np.stack([p.lower for p in parts], axis), np.stack([p.upper for p in parts], axis)
    )


def index_of_extreme(x: Interval, axis: int, largest: bool) -> Interval:
    """The index of the first largest (or smallest) element: element i is out of question if one
    before it is surely as large, or one after it larger."""
    x = x if largest else -x
    lower, upper = np.moveaxis(x.lower, axis, 0), np.moveaxis(x.upper, axis, 0)
    possible = []
    for i in range(len(lower)):
        beaten = [lower[j] >= upper[i] for j in range(i)] + [
            lower[j] > upper[i] for j in range(i + 1, len(lower))
        ]
        possible.append(~reduce(np.logical_or, beaten, np.zeros(lower.shape[1:], dtype=bool)))
    table = np.stack(possible)
    return Interval(np.argmax(table, axis=0), len(table) - 1 - np.argmax(table[::-1], axis=0))


def product(a: Interval, b: Interval, same: Array) -> Interval:
    """a·b, where elements marked `same` are one number in both factors: their product is a
    square."""
    if np.all(same):
        return a.square()
    result = a * b
    if not np.any(same):
        return result
    square = a.square()
    return Interval(
        np.where(same, square.lower, result.lower), np.where(same, square.upper, result.upper)
    )
