"""What each operation of a jaxpr does to intervals: tables by the names of JAX's primitives, and
how instructions apply them.

Truth values are intervals within [0, 1] with integer bounds: 0 and 1 are decided, [0, 1] is not.
"""

import operator
from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from cordes.formulas.elementary import ELEMENTARY, INFINITE
from cordes.formulas.intervals import functions
from cordes.formulas.intervals.arithmetic import (
    ANYTHING,
    Array,
    Interval,
    cleaned,
    maximum,
    minimum,
    point,
    where,
)
from cordes.formulas.intervals.switches import IntervalPass
from cordes.formulas.movement import Move

Evaluate = Callable[..., list[Interval]]


def finite(x: Interval) -> Interval:
    known = np.isfinite(x.lower) & np.isfinite(x.upper)
    return Interval(known, np.ones_like(x.lower))


def _differ(a: Interval, b: Interval) -> Interval:
    """Exclusive or."""
    decided = (a.lower == a.upper) & (b.lower == b.upper)
    return Interval(decided & (a.lower != b.lower), ~decided | (a.lower != b.lower))


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{"add": operator.add, "add_any": operator.add, "sub": operator.sub},
    **{"mul": operator.mul, "div": operator.truediv, "rem": functions.remainder},
    **{"neg": operator.neg, "abs": operator.abs, "max": maximum, "min": minimum},
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
    if name == "rem" and dtype.kind in "iu":
        # Of integers a remainder by zero is a number.
        return lambda a, b: functions.remainder(a, b).unknown_where((b.lower <= 0) & (b.upper >= 0))
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
                possible = index.contains(number).reshape(len(index.lower), -1)
                found[number + 1] = gap & np.any(possible, axis=1)
    if name in UNDEFINED:
        found.append(_somewhere(UNDEFINED[name](*operands)))
    found += [_somewhere(~(np.isfinite(x.lower) & np.isfinite(x.upper))) for x in results]
    known = [gap for gap in found if gap is not None]
    return reduce(np.logical_or, known) if known else None


def _somewhere(mask: Array) -> Array | None:
    return np.any(mask.reshape(len(mask), -1), axis=1) if np.any(mask) else None


REDUCTIONS: dict[str, Callable[[Interval, tuple[int, ...]], Interval]] = {
    "reduce_sum": lambda x, axes: x.sum(axes),
    "reduce_prod": lambda x, axes: x.prod(axes),
    "reduce_max": lambda x, axes: x.map(lambda bound: np.max(bound, axis=axes)),
    "reduce_min": lambda x, axes: x.map(lambda bound: np.min(bound, axis=axes)),
    "reduce_or": lambda x, axes: x.map(lambda bound: np.max(bound, axis=axes, initial=0.0)),
    "reduce_and": lambda x, axes: x.map(lambda bound: np.min(bound, axis=axes, initial=1.0)),
}

_STEPS = {"cumsum": operator.add, "cumprod": operator.mul, "cummax": maximum, "cummin": minimum}


def cumulate(name: str, x: Interval, axis: int, reverse: bool) -> Interval:
    """Running sums, products and extremes along an axis (which counts the cells)."""
    count = x.shape[axis]
    parts = [
        x.map(lambda bound, i=i: np.take(bound, i, axis=axis))
        for i in (range(count - 1, -1, -1) if reverse else range(count))
    ]
    parts = list(accumulate(parts, _STEPS[name]))[:: -1 if reverse else 1]
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
    return where(same, a.square(), a * b) if np.any(same) else a * b


# What instructions need around the rules.


def aligned(rank: int, *intervals: Interval) -> list[Interval]:
    """Numbers (rank 0) beside arrays get axes of length one."""
    return [
        x
        if x.lower.ndim == rank + 1
        else x.map(lambda bound: bound.reshape((len(bound),) + (1,) * rank))
        for x in intervals
    ]


def combined(
    rule: Callable[..., Interval],
    rank: int,
    options: dict[str, Any],
    state: IntervalPass,
    *intervals: Interval,
) -> list[Interval]:
    result = rule(*aligned(rank, *intervals), **options)
    # What is made of no number by these need not be one of the values that numbers give.
    vague = rule in (functions.clamp, functions.trunc, finite)
    return [state.vague(result, ANYTHING) if vague else result]


def moved(move: Move, state: IntervalPass, *intervals: Interval) -> list[Interval]:
    cells = len(state.undecided)

    def spread(bound: Array) -> Array:
        return np.broadcast_to(bound, (cells, *bound.shape[1:]))

    lower = move(*(spread(x.lower) for x in intervals))
    upper = move(*(spread(x.upper) for x in intervals))
    return list(map(Interval, lower, upper))


def whole(
    evaluate: Evaluate, dtype: np.dtype, state: IntervalPass, *intervals: Interval
) -> list[Interval]:
    """Integers and truth values: bounds that rounding has moved outwards are moved back to the
    integers inside. An integer that leaves the range of its type wraps around, or is cut off, and
    may be any number of the type."""
    results = [cleaned(np.ceil(x.lower), np.floor(x.upper)) for x in evaluate(state, *intervals)]
    if dtype.kind == "b":
        return [result.clip(0.0, 1.0) for result in results]
    low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    leaving = [(x.lower < low) | (x.upper > high) for x in results]
    return [
        where(outside, Interval(low, high), x) if np.any(outside) else x
        for outside, x in zip(leaving, results, strict=True)
    ]


def fixed(constant: Array) -> Interval:
    """A constant as an interval; what is not a number may be any number."""
    exact = point(constant)
    return exact.unknown_where(np.isnan(exact.lower))
