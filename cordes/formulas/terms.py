"""Formulas as a person writes them: terms made of numbers, symbols, the four operations, powers,
functions, and cases.

Equal terms are one object. Simplified is what no reader would write (0·x, 1·x, x + 0, a + (-b),
x·x) and nothing that changes values by more than rounding.
"""

import math
from fractions import Fraction
from functools import reduce
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from cordes.formulas.elementary import ARITHMETIC, COMPARED, WRITTEN


class Unwritable(Exception):  # noqa: N818
    """There is no formula for this; the source is shown instead."""


class FormulaTerm:
    """`head` says what it is: number, symbol, length (of the point), neg, add, sub, mul, div, pow,
    call, cases (condition, value, condition, value, …, value otherwise), series (what a sum over
    the coordinates has in common, then its terms), and for what holds or does not hold compare,
    and, or. `value` is the number, the name of a symbol or function, or the sign of a
    comparison."""

    __slots__ = ("__weakref__", "arguments", "head", "size", "value")

    def __init__(self, head: str, value: Any, arguments: tuple["FormulaTerm", ...]):
        self.head, self.value, self.arguments = head, value, arguments
        # Symbols and operations, each occurrence counted.
        self.size = 1 + sum(argument.size for argument in arguments)

    @property
    def number(self) -> float | None:
        return self.value if self.head == "number" else None

    @property
    def truth(self) -> bool:
        return self.head in ("compare", "and", "or")


_TERMS: WeakValueDictionary[tuple, FormulaTerm] = WeakValueDictionary()


def term(head: str, *arguments: FormulaTerm, value: Any = None) -> FormulaTerm:
    """The one term that is made so."""
    key = (head, value, *map(id, arguments))
    found = _TERMS.get(key)
    if found is None:
        found = _TERMS[key] = FormulaTerm(head, value, arguments)
    return found


def number(value: float) -> FormulaTerm:
    if not math.isfinite(value):
        raise Unwritable("a number that is not finite")
    # Adding zero turns -0 into 0.
    return term("number", value=float(value) + 0.0)


def symbol(name: str) -> FormulaTerm:
    return term("symbol", value=name)


def negative(one: FormulaTerm) -> FormulaTerm:
    if one.number is not None:
        return number(-one.number)
    return one.arguments[0] if one.head == "neg" else term("neg", one)


def _has_minus(one: FormulaTerm) -> bool:
    return one.head == "neg" or (one.number or 0) < 0


def add(one: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    return _sum("add", one, two)


def subtract(one: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    return _sum("sub", one, two)


def _sum(head: str, one: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    """No sign stands after another: a + (-b + c) is a - b + c."""
    if two.number == 0:
        return one
    if one.number == 0:
        return two if head == "add" else negative(two)
    turned = "sub" if head == "add" else "add"
    if _has_minus(two):
        return _sum(turned, one, negative(two))
    first = two
    while first.head in ("add", "sub"):
        first = first.arguments[0]
        if _has_minus(first):
            left, right = two.arguments
            return _sum(head if two.head == "add" else turned, _sum(head, one, left), right)
    return term(head, one, two)


def multiply(one: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    if 0 in (one.number, two.number):
        return number(0)
    for first, second in ((one, two), (two, one)):
        if first.number == 1:
            return second
        if _has_minus(first):
            rest = negative(first)
            return negative(multiply(rest, two) if first is one else multiply(one, rest))
    if two.number is not None:
        # 0.5x, not x·0.5.
        one, two = two, one
    if one.number is not None:
        return _scaled(one, two)
    for first in (one, two):
        if first.head == "mul" and first.arguments[0].number is not None:
            # The number of x·(2y) and of (2x)·y goes to the front.
            scale, rest = first.arguments
            return multiply(scale, multiply(rest, two) if first is one else multiply(one, rest))
    base, exponent = _power_of(one)
    other, another = _power_of(two)
    if base is other:
        return power(base, number(exponent + another))
    if one.head == "mul" and _power_of(one.arguments[1])[0] is other:
        return multiply(one.arguments[0], multiply(one.arguments[1], two))
    return term("mul", one, two)


def _scaled(scale: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    """A number times a term, which may begin with a number: they are joined where the product is
    exact and short (2·0.5, not 3π), and decimals come before π."""
    if two.head != "mul" or two.arguments[0].number is None:
        return term("mul", scale, two)
    other, rest = two.arguments
    assert scale.number is not None
    assert other.number is not None
    product = scale.number * other.number
    if Fraction(scale.number) * Fraction(other.number) == Fraction(product) and _short(product):
        return multiply(number(product), rest)
    if _short(other.number) and not _short(scale.number):
        return term("mul", other, term("mul", scale, rest))
    return term("mul", scale, two)


def _short(value: float) -> bool:
    return len(f"{value!r}") <= 8


def _power_of(one: FormulaTerm) -> tuple[FormulaTerm, float]:
    """t³ as t and 3; other terms are their own first power."""
    if one.head == "pow":
        exponent = one.arguments[1].number
        if exponent is not None and exponent > 0 and exponent.is_integer():
            return one.arguments[0], exponent
    return one, 1.0


def divide(one: FormulaTerm, two: FormulaTerm) -> FormulaTerm:
    if two.number == 1 or one.number == 0:
        return one
    if _has_minus(one):
        return negative(divide(negative(one), two))
    if _has_minus(two):
        return negative(divide(one, negative(two)))
    return term("div", one, two)


def power(base: FormulaTerm, exponent: FormulaTerm) -> FormulaTerm:
    if exponent.number == 1:
        return base
    if exponent.number == 0:
        return number(1)
    if exponent.number == 2 and (base.head, base.value) == ("call", "sqrt"):
        return base.arguments[0]
    if exponent.number is not None and base.head == "pow" and base.arguments[1].number == 2:
        inner = base.arguments[0]
        if inner.head == "length" or (inner.head, inner.value) == ("call", "abs"):
            # (|x|²)^p is |x|^(2p): what is squared is not negative.
            return power(inner, number(2 * exponent.number))
    return term("pow", base, exponent)


def call(name: str, *arguments: FormulaTerm) -> FormulaTerm:
    """A function by its name; the largest of several numbers and of another one is that of all."""
    if name in ("max", "min"):
        parts = [
            part
            for each in arguments
            for part in (each.arguments if (each.head, each.value) == ("call", name) else (each,))
        ]
        return term("call", *dict.fromkeys(parts), value=name)
    if name == "abs" and arguments[0].head == "neg":
        return call("abs", arguments[0].arguments[0])
    return term("call", *arguments, value=name)


def cases(condition: FormulaTerm, yes: FormulaTerm, no: FormulaTerm) -> FormulaTerm:
    """One value where a condition holds, else the other, which may be cases itself."""
    if yes is no or _always(condition) is True:
        return yes
    if _always(condition) is False:
        return no
    rest = no.arguments if no.head == "cases" else (no,)
    return term("cases", condition, yes, *rest)


def _always(condition: FormulaTerm) -> bool | None:
    """Whether a comparison of a number with itself holds; None for others."""
    if condition.head == "compare" and len(set(condition.arguments)) == 1:
        return condition.value in ("≤", "≥", "=")
    return None


def indicator(condition: FormulaTerm) -> FormulaTerm:
    """A truth value as a number."""
    return cases(condition, number(1), number(0))


def opposite(condition: FormulaTerm) -> FormulaTerm:
    if condition.head == "compare":
        return term("compare", *condition.arguments, value=COMPARED[condition.value].opposite)
    parts = (opposite(part) for part in condition.arguments)
    return term("or" if condition.head == "and" else "and", *parts)


def replaced(
    one: FormulaTerm,
    old: FormulaTerm,
    new: FormulaTerm,
    known: dict[FormulaTerm, FormulaTerm] | None = None,
) -> FormulaTerm:
    """The term with one part in place of another; `known` keeps what is done."""
    known = {old: new} if known is None else known
    if one not in known:
        parts = [replaced(argument, old, new, known) for argument in one.arguments]
        known[one] = term(one.head, *parts, value=one.value)
    return known[one]


def symbols_of(
    one: FormulaTerm, known: dict[FormulaTerm, frozenset[FormulaTerm]]
) -> frozenset[FormulaTerm]:
    """The symbols in a term; `known` keeps those of its parts."""
    if one not in known:
        inner = frozenset().union(*(symbols_of(argument, known) for argument in one.arguments))
        known[one] = frozenset({one}) if one.head == "symbol" else inner
    return known[one]


# Values -------------------------------------------------------------------------------------------

# By heads, and by the names of functions of several numbers.
_OPERATIONS = ARITHMETIC | {
    **{"div": np.divide, "pow": np.power, "arctan2": np.arctan2},
    **{"and": np.logical_and, "or": np.logical_or},
}


def values(one: FormulaTerm, symbols: dict[str, Any], known: dict[FormulaTerm, Any]) -> Any:
    """The values of a term for arrays of values of its symbols; `known` keeps those of its
    parts."""
    if one not in known:
        if one.head == "number":
            known[one] = np.float64(one.value)
        elif one.head == "symbol":
            known[one] = symbols[one.value]
        else:
            given = one.arguments[1:] if one.head == "series" else one.arguments
            parts = [values(argument, symbols, known) for argument in given]
            known[one] = _applied(one, parts)
    return known[one]


def _applied(one: FormulaTerm, parts: list[Any]) -> Any:
    match one.head:
        case "length":
            return np.sqrt(sum(part * part for part in parts))
        case "series":
            return sum(parts)
        case "compare":
            return COMPARED[one.value].values(*parts)
        case "cases":
            *pairs, value = parts
            for condition, yes in zip(pairs[-2::-2], pairs[-1::-2], strict=True):
                value = np.where(condition, yes, value)
            return value
        case "call" if one.value in WRITTEN:
            return WRITTEN[one.value].values(*parts)
    function = _OPERATIONS[one.value if one.head == "call" else one.head]
    return reduce(function, parts) if len(parts) > 1 else function(parts[0])
