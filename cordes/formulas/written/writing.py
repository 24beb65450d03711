"""What a function computes, as terms: its trace, written as a person would.

Operations that no formula has (guards against division by zero, log1p, loops) are written by what
they mean; what has no meaning on paper is `Unwritable`. `verify` compares the terms with the
function itself at points: what has other values must not be shown.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.formulas.elementary import COMPARISONS, ELEMENTARY
from cordes.formulas.numbering import Numbering
from cordes.formulas.terms import (
    FormulaTerm,
    Unwritable,
    add,
    call,
    cases,
    divide,
    indicator,
    multiply,
    negative,
    number,
    opposite,
    power,
    replaced,
    subtract,
    symbol,
    symbols_of,
    term,
    values,
)
from cordes.formulas.trace import Trace, UnsupportedOperation

# Elements of a trace beyond which nobody wants to see a formula.
MOST_ELEMENTS = 20_000
# In more dimensions than this a sum over the coordinates is written with Σ, if its terms are short.
WRITTEN_OUT, LONG_SUMMAND = 6, 200
# How far values may lie from those of the function, as a share of the largest.
EXACT = 1e-9
# Operations by what they make of terms; some functions are written by others.
_WRITTEN: dict[str, Callable[..., FormulaTerm]] = {
    **{name: partial(call, each.written) for name, each in ELEMENTARY.items()},
    **{"neg": negative, "add": add, "sub": subtract, "mul": multiply, "div": divide, "pow": power},
    **{name: partial(call, name[-3:]) for name in ("max", "min", "reduce_max", "reduce_min")},
    "reduce_prod": lambda *parts: reduce(multiply, parts),
    "clamp": lambda low, t, high: call("min", call("max", t, low), high),
    "atan2": partial(call, "arctan2"),
    "exp2": lambda t: power(number(2), t),
    "expm1": lambda t: subtract(call("exp", t), number(1)),
    "log1p": lambda t: call("log", add(number(1), t)),
    "logistic": lambda t: divide(number(1), add(number(1), call("exp", negative(t)))),
    "rsqrt": lambda t: divide(number(1), call("sqrt", t)),
}


class Written(NamedTuple):
    """The terms of a function's result, an array of its shape, and those of the definitions."""

    entries: np.ndarray
    definitions: dict[str, FormulaTerm]


def write(
    function: Callable,
    names: Sequence[str],
    point: int | None = None,
    definitions: Mapping[str, Callable] | None = None,
) -> Written:
    """A function of one array, whose components have `names`; the first `point` of them are the
    point x. `definitions` are functions of the same array that have names."""
    given = dict(definitions or {})

    def everything(z: Any) -> Any:
        return [jnp.asarray(function(z)), *(each(z) for each in given.values())]

    try:
        trace = Trace(everything, len(names))
    except UnsupportedOperation as unsupported:
        raise Unwritable(f"the operation {unsupported.name}") from None
    coordinates = [symbol(name) for name in names]
    writer = _Writer(trace.numbering, coordinates, len(names) if point is None else point)
    made = [writer.write(value.numbers) for value in trace.outputs]
    return Written(made[0], {name: each.item() for name, each in zip(given, made[1:], strict=True)})


class _Writer:
    """Terms of the elements of a trace by their numbers, made when they are asked for."""

    def __init__(self, numbering: Numbering, coordinates: list[FormulaTerm], point: int):
        self.numbering, self.coordinates = numbering, coordinates
        self.point = coordinates[:point]
        self.squares = {power(each, number(2)) for each in self.point}
        self.made: dict[int, FormulaTerm] = {}

    def write(self, numbers: np.ndarray) -> np.ndarray:
        # Operands, which have smaller numbers, come before results.
        for at in sorted(self.numbering.reached(numbers.ravel().tolist(), self._operands)):
            if at not in self.made:
                self.made[at] = self._term(at)
            if len(self.made) > MOST_ELEMENTS:
                raise Unwritable("too many operations")
        return np.vectorize(self._value, otypes=[object])(numbers)

    def _form(self, at: int) -> tuple[str, int, int] | None:
        """How a comparison was written."""
        forms = self.numbering.comparisons.get(at)
        if forms is not None and len(forms) > 1:
            raise Unwritable("< and ≤ of the same numbers")
        return next(iter(forms.values())) if forms else None

    def _operands(self, at: int) -> tuple[int, ...]:
        form = self._form(at)
        if form is not None:
            return form[1:]
        return self.numbering.written.get(at, self.numbering.operations[at].operands)

    def _value(self, at: int) -> FormulaTerm:
        """The term of an element that counts as a number."""
        found = self.made[at]
        return indicator(found) if found.truth else found

    def _truth(self, at: int) -> FormulaTerm:
        if not self.made[at].truth:
            raise Unwritable("a condition that is a number")
        return self.made[at]

    def _term(self, at: int) -> FormulaTerm:
        name, parameter, _ = self.numbering.operations[at]
        operands, form = self._operands(at), self._form(at)
        if form is not None:
            pair = (self._value(operand) for operand in operands)
            return term("compare", *pair, value=COMPARISONS[form[0]].sign)
        if name in ("and", "or", "not", "reduce_and", "reduce_or"):
            truths = [self._truth(operand) for operand in operands]
            if name == "not":
                return opposite(truths[0])
            return term(name.removeprefix("reduce_"), *truths)
        if name == "select_n":
            return self._selected(*operands)
        parts = [self._value(operand) for operand in operands]
        match name:
            case "x":
                return self.coordinates[parameter]
            case "constant":
                return number(parameter)
            case "integer_pow":
                return power(parts[0], number(parameter))
            case "reduce_sum":
                return self._sum(parts)
            case "sqrt":
                return self._root(parts[0])
        if name not in _WRITTEN:
            raise Unwritable(f"the operation {name}")
        return _WRITTEN[name](*parts)

    def _selected(self, condition: int, *choices: int) -> FormulaTerm:
        holds = self._truth(condition)
        if len(choices) != 2:
            raise Unwritable("a choice between more than two")
        no, yes = (
            _assuming(self._value(choice), holds, chosen)
            for choice, chosen in zip(choices, (False, True), strict=True)
        )
        tested = holds.arguments[0]
        if (
            (holds.value, no.number, holds.arguments[1].number) == (">", 0, 0)
            and self._is_sum_of_squares(tested)
            and yes in (call("sqrt", tested), self._root(tested))
        ):
            # √s where s > 0, else 0: how lengths are computed.
            return self._root(tested)
        return cases(holds, yes, no)

    def _sum(self, parts: list[FormulaTerm]) -> FormulaTerm:
        """|x|² where it is that; in many dimensions Σ over what differs in the coordinate only."""
        if len(parts) > 1 and set(parts) == self.squares and len(parts) == len(self.squares):
            return power(term("length", *self.point), number(2))
        if len(parts) == len(self.point) > WRITTEN_OUT and parts[0].size < LONG_SUMMAND:
            patterns = {
                replaced(part, x, symbol("x_i")) for part, x in zip(parts, self.point, strict=True)
            }
            if len(patterns) == 1 and symbols_of(pattern := patterns.pop(), {}).isdisjoint(
                self.point
            ):
                return term("series", pattern, *parts)
        return reduce(add, parts)

    def _root(self, inside: FormulaTerm) -> FormulaTerm:
        parts = _summands(inside)
        if len(parts) > 1 and set(parts) == self.squares and len(parts) == len(self.squares):
            return term("length", *self.point)
        if inside.head == "pow" and inside.arguments[1].number == 2:
            base = inside.arguments[0]
            return base if base.head == "length" else call("abs", base)
        return call("sqrt", inside)

    def _is_sum_of_squares(self, one: FormulaTerm) -> bool:
        return all(part.head == "pow" and part.arguments[1].number == 2 for part in _summands(one))


def _summands(one: FormulaTerm) -> list[FormulaTerm]:
    return (
        [part for each in one.arguments for part in _summands(each)] if one.head == "add" else [one]
    )


def _assuming(one: FormulaTerm, condition: FormulaTerm, holds: bool) -> FormulaTerm:
    """A term where a condition is known to hold, or not to: choices by it are made."""
    if one.head == "cases" and one.arguments[0] is condition:
        rest = one.arguments[2:]
        if holds:
            return _assuming(one.arguments[1], condition, holds)
        return rest[0] if len(rest) == 1 else term("cases", *rest)
    if one.size > MOST_ELEMENTS or not one.arguments:
        return one
    parts = [_assuming(argument, condition, holds) for argument in one.arguments]
    if all(new is old for new, old in zip(parts, one.arguments, strict=True)):
        return one
    if one.head == "call":
        return call(one.value, *parts)
    return term(one.head, *parts, value=one.value)


def verify(written: Written, names: Sequence[str], samples: np.ndarray, function: Callable) -> None:
    """`Unwritable` unless the terms give the values of the function at the samples (N, number of
    names)."""
    try:
        expected = np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(samples)), dtype=float)
    except Exception as error:
        raise Unwritable("a function that cannot be evaluated") from error
    if expected.shape[1:] != written.entries.shape:
        raise Unwritable("a formula of another shape")
    symbols, known = dict(zip(names, samples.T, strict=True)), {}
    finite = np.isfinite(expected)
    if not finite.any():
        raise Unwritable("a function without a value")
    with np.errstate(all="ignore"):
        for place, entry in np.ndenumerate(written.entries):
            right, good = expected[(slice(None), *place)], finite[(slice(None), *place)]
            found = np.broadcast_to(values(entry, symbols, known), good.shape)
            scale = np.max(np.abs(right[good]), initial=1e-300)
            if not np.allclose(found[good], right[good], rtol=0, atol=EXACT * scale + 1e-14):
                raise Unwritable("a formula with other values than the function")
