"""What each operation of a jaxpr does to intervals: tables by the names of JAX's primitives.

Truth values are intervals within [0, 1] with integer bounds: 0 and 1 are decided, [0, 1] is not.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from cordes.formulas.intervals import functions
from cordes.formulas.intervals.arithmetic import Array, Interval, cleaned, maximum, minimum
from cordes.formulas.intervals.movement import UnsupportedOperation


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
    **{
        name: getattr(functions, name)
        for name in (
            *(
                "exp",
                "exp2",
                "expm1",
                "log",
                "log1p",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "atan2",
            ),
            *(
                "sinh",
                "cosh",
                "tanh",
                "asinh",
                "acosh",
                "atanh",
                "logistic",
                "rsqrt",
                "cbrt",
                "erf",
                "floor",
                "ceil",
            ),
        )
    },
}

# Functions that are analytic on the whole line: what is made of x with them alone is zero
# everywhere or almost nowhere.
ANALYTIC = frozenset(
    {"add", "add_any", "sub", "mul", "neg", "square", "exp", "exp2", "expm1", "sin", "cos"}
) | {
    *(
        "sinh",
        "cosh",
        "tanh",
        "atan",
        "asinh",
        "logistic",
        "erf",
        "reduce_sum",
        "reduce_prod",
        "dot_general",
        "cumsum",
        "cumprod",
    )
}
COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or", "xor"})
LOGICAL = frozenset({"and", "or", "xor", "not"})


def elementwise(equation: Any) -> Callable[..., Interval] | None:
    """The rule of an elementwise operation; None where it is not one."""
    name, dtype = equation.primitive.name, np.dtype(equation.outvars[0].aval.dtype)
    if name in LOGICAL and dtype.kind != "b":
        raise UnsupportedOperation(f"{name} of bits")
    if name == "integer_pow":
        exponent = int(equation.params["y"])
        return lambda a: a.power(exponent)
    if name == "round":
        return (
            functions.round_even
            if int(equation.params["rounding_method"]) == 1
            else functions.round_away
        )
    rule = ELEMENTWISE.get(name)
    if name == "div" and dtype.kind in "iu":
        return lambda a, b: functions.trunc(a / b)
    if name == "convert_element_type":
        whole = dtype.kind in "iu" and equation.invars[0].aval.dtype.kind == "f"
        return functions.trunc if whole else lambda a: a
    return rule


# Where an operation may give no number although its operands are numbers.
UNDEFINED: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("sqrt", "rsqrt", "log"), lambda x: x.lower < 0),
    **dict.fromkeys(("asin", "acos", "atanh"), lambda x: (x.lower < -1) | (x.upper > 1)),
    **dict.fromkeys(("div", "rem"), lambda a, b: (b.lower <= 0) & (b.upper >= 0)),
    "log1p": lambda x: x.lower < -1,
    "acosh": lambda x: x.lower < 1,
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

CUMULATIVE: dict[str, str] = {
    "cumsum": "reduce_sum",
    "cumprod": "reduce_prod",
    "cummax": "reduce_max",
    "cummin": "reduce_min",
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


def contraction(
    dimension_numbers: Any, rank_left: int, rank_right: int
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """dot_general as a product that broadcasts, then a sum over the last axes: how the two operands
    (with the axis of the cells) are laid out."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    left_free = [a for a in range(rank_left) if a not in (*left_sum, *left_batch)]
    right_free = [a for a in range(rank_right) if a not in (*right_sum, *right_batch)]

    def layout(
        batch: Any, before: int, free: list[int], after: int, summed: Any
    ) -> Callable[[Array], Array]:
        axes = tuple(axis + 1 for axis in (*batch, *free, *summed))

        def move(a: Array) -> Array:
            shape = [a.shape[axis] for axis in axes]
            middle, end = len(batch), len(batch) + len(free)
            spread = (
                *shape[:middle],
                *[1] * before,
                *shape[middle:end],
                *[1] * after,
                *shape[end:],
            )
            return a.transpose((0, *axes)).reshape((len(a), *spread))

        return move

    left = layout(left_batch, 0, left_free, len(right_free), left_sum)
    return left, layout(right_batch, len(left_free), right_free, 0, right_sum)
