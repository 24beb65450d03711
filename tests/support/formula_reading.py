"""Formulas read back: the MathML that a page shows is evaluated as a reader would, and compared
with the function that it is said to be.

What a person cannot see does not count here either: groups without brackets are opened, 5 beside 2
is no product, and sin⁻¹ is refused.
"""

import math
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np

from cordes.formulas.written.mathml import ROUNDED

STEP = 1e-3
# The names are those that stand on pages, the functions NumPy's own.
NAMES = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "log", "sign")
FUNCTIONS: dict[str, Callable] = {name: getattr(np, name) for name in (*NAMES, "floor")}
SEVERAL: dict[str, Callable] = {"max": np.maximum, "min": np.minimum, "arctan2": np.arctan2}
COMPARISONS = {
    "<": np.less,
    "≤": np.less_equal,
    ">": np.greater,
    "≥": np.greater_equal,
    "=": np.equal,
    "≠": np.not_equal,
}
TIMES, APPLY, PRIME = "\u2062", "\u2061", "′"


class MisreadError(Exception):
    """A formula that a reader cannot read, or may read in two ways."""


class Reading:
    """What symbols and functions stand for; both are known by how they look."""

    def __init__(self) -> None:
        self.symbols: dict[str, Any] = {
            _key(_tokens("<mi>π</mi>")[0]): math.pi,
            _key(_tokens("<mi>e</mi>")[0]): math.e,
        }
        self.functions: dict[str, Callable] = {
            _key(_tokens(f"<mi>{name}</mi>")[0]): function for name, function in FUNCTIONS.items()
        }

    def meaning(self, look: str, value: Any) -> None:
        """What a symbol stands for."""
        self.symbols[_key(_tokens(look)[0])] = value

    def define(self, left: str, right: str) -> None:
        """s = … or q(t) = …; what has a meaning already gets no other."""
        tokens = _tokens(left)
        key = _key(tokens[0])
        if key in self.symbols or key in self.functions:
            raise MisreadError(f"two meanings of {key}")
        if len(tokens) == 1:
            self.symbols[key] = self.value(right)
            return
        variable = _key(tokens[3])

        def function(argument: Any) -> Any:
            inner = Reading()
            inner.symbols, inner.functions = (
                {**self.symbols, variable: argument},
                dict(self.functions),
            )
            return inner.value(right)

        if variable in self.symbols:
            raise MisreadError(f"two meanings of {variable}")
        self.functions[key] = function

    def value(self, mathml: str) -> Any:
        return self.of(_tokens(mathml))

    def of(self, tokens: list[ElementTree.Element]) -> Any:
        parser = FormulaParser(self, tokens)
        value = parser.expression()
        parser.finish()
        return value


class FormulaParser:
    """Sums of products of factors, from left to right."""

    def __init__(self, reading: Reading, tokens: list[ElementTree.Element]):
        self.reading, self.tokens, self.at = reading, tokens, 0

    def sign(self) -> str | None:
        """The operator or the words that come next, if any do."""
        if self.at < len(self.tokens) and self.tokens[self.at].tag in ("mo", "mtext"):
            return (self.tokens[self.at].text or "").replace("\xa0", " ").strip()
        return None

    def take(self, *signs: str) -> str | None:
        found = self.sign()
        if found in signs:
            self.at += 1
            return found
        return None

    def need(self, sign: str) -> None:
        if self.take(sign) is None:
            raise MisreadError(f"no {sign} where one belongs")

    def finish(self) -> None:
        if self.at != len(self.tokens):
            raise MisreadError("a formula with a rest")

    def expression(self) -> Any:
        if self.at < len(self.tokens) and self.tokens[self.at].tag == "mtable":
            # Two cases stand alone or in brackets: beside other terms nobody knows what belongs to
            # the last line.
            self.at += 1
            if self.at < len(self.tokens) and self.sign() not in (")", ",", "|"):
                raise MisreadError("cases without brackets")
            return self.cases(self.tokens[self.at - 1])
        total = -self.term() if self.take("−") else self.term()
        while sign := self.take("+", "−"):
            total = total + self.term() if sign == "+" else total - self.term()
        return total

    def term(self) -> Any:
        if self.at < len(self.tokens) and self.tokens[self.at].tag == "munderover":
            return self.series()
        product = self.factor()
        while sign := self.take(TIMES, "·"):
            if (
                sign == TIMES
                and _ends_in_digits(self.tokens[self.at - 2])
                and self.at < len(self.tokens)
                and _begins_with_digits(self.tokens[self.at])
            ):
                raise MisreadError("two numbers that read as one")
            product = product * self.factor()
        return product

    def series(self) -> Any:
        """A sum over the coordinates: what follows, with each of them for x_i."""
        count = int(list(self.tokens[self.at])[2].text or "")
        start, total = self.at + 1, 0.0
        for k in range(1, count + 1):
            self.at = start
            look = "<msub><mi>x</mi><{0}>{1}</{0}></msub>"
            coordinate = self.reading.symbols[_key(_tokens(look.format("mn", k))[0])]
            self.reading.symbols[_key(_tokens(look.format("mi", "i"))[0])] = coordinate
            total = total + self.term()
        return total

    def factor(self) -> Any:
        if self.take("("):
            value = self.expression()
            self.need(")")
            return value
        if self.take("|"):
            value = np.abs(self.expression())
            self.need("|")
            return value
        if self.at == len(self.tokens):
            raise MisreadError("a formula that ends too early")
        token, self.at = self.tokens[self.at], self.at + 1
        parts = [_opened([part]) for part in token]
        match token.tag:
            case "mn":
                return np.float64(token.get(ROUNDED) or token.text or "")
            case "mfrac":
                return self.reading.of(parts[0]) / self.reading.of(parts[1])
            case "msqrt":
                return np.sqrt(self.reading.of(_opened(list(token))))
            case "mroot":
                if self.reading.of(parts[1]) != 3:
                    raise MisreadError("a root of another order")
                return np.cbrt(self.reading.of(parts[0]))
            case "msup" if self.sign() == APPLY:
                return self.powered(*parts)
            case "msup":
                base = FormulaParser(self.reading, parts[0])
                if parts[0][0].tag in ("msup", "mfrac", "mtable"):
                    raise MisreadError("a base without brackets")
                value = base.factor()
                base.finish()
                return np.power(np.asarray(value, dtype=float), self.reading.of(parts[1]))
        key = _key(token)
        if self.sign() == APPLY:
            return self.applied(key)
        if key not in self.reading.symbols:
            raise MisreadError(f"{key} without a meaning")
        return self.reading.symbols[key]

    def powered(self, head: list, above: list) -> Any:
        """sin²(x), or q′(x)."""
        key = _key(head[0])
        if len(above) == 1 and set(above[0].text or "") == {PRIME}:
            return _derivative(
                self.reading.functions[key], self.arguments()[0], len(above[0].text or "")
            )
        power = self.reading.of(above)
        if not (np.ndim(power) == 0 and power > 0):
            raise MisreadError("a power that reads as an inverse")
        return self.applied(key) ** power

    def applied(self, key: str) -> Any:
        name, arguments = key.removeprefix("mi:"), self.arguments()
        if name in SEVERAL and key not in self.reading.functions:
            value = arguments[0]
            for each in arguments[1:]:
                value = SEVERAL[name](value, each)
            return value
        if key not in self.reading.functions or len(arguments) != 1:
            raise MisreadError(f"the function {name}")
        return self.reading.functions[key](arguments[0])

    def arguments(self) -> list:
        self.need(APPLY)
        self.need("(")
        found = [self.expression()]
        while self.take(","):
            found.append(self.expression())
        self.need(")")
        return found

    def cases(self, table: ElementTree.Element) -> Any:
        *rows, (last, _) = ([_opened(list(cell)) for cell in line] for line in table)
        value = self.reading.of(last)
        for yes, condition in reversed(rows):
            inner = FormulaParser(self.reading, condition)
            inner.need("if")
            holds = inner.either()
            inner.finish()
            value = np.where(holds, self.reading.of(yes), value)
        return value

    def either(self) -> Any:
        value = self.both()
        while self.take("or"):
            value = value | self.both()
        return value

    def both(self) -> Any:
        value = self.comparison()
        while self.take("and"):
            value = value & self.comparison()
        return value

    def comparison(self) -> Any:
        start = self.at
        if self.take("("):
            try:
                value = self.either()
                self.need(")")
                if self.sign() in (None, "and", "or", ")"):
                    return value
            except MisreadError:
                pass
            self.at = start
        left, holds, compared = self.expression(), True, False
        while sign := self.take(*COMPARISONS):
            right = self.expression()
            left, holds, compared = (
                right,
                np.logical_and(holds, COMPARISONS[sign](left, right)),
                True,
            )
        if not compared:
            raise MisreadError("a condition that compares nothing")
        return holds


def _derivative(function: Callable, at: Any, order: int) -> Any:
    """By differences of fourth order."""
    if order == 0:
        return function(at)

    def lower(shift: float) -> Any:
        return _derivative(function, at + shift, order - 1)

    return (8 * (lower(STEP) - lower(-STEP)) - (lower(2 * STEP) - lower(-2 * STEP))) / (12 * STEP)


def _tokens(mathml: str) -> list[ElementTree.Element]:
    return _opened(list(ElementTree.fromstring(f"<math>{mathml}</math>")))


def _opened(parts: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Groups without brackets are not seen, and neither are spaces."""
    return [
        token
        for part in parts
        if part.tag != "mspace"
        for token in (_opened(list(part)) if part.tag == "mrow" else [part])
    ]


def _key(token: ElementTree.Element) -> str:
    """How a symbol looks."""
    return f"{token.tag}:{token.text or ''}" + "".join(f"[{_key(part)}]" for part in token)


def _begins_with_digits(token: ElementTree.Element) -> bool:
    inside = _opened(list(token))
    return token.tag in ("mn", "mfrac") or (
        token.tag == "msup" and bool(inside) and _begins_with_digits(inside[0])
    )


def _ends_in_digits(token: ElementTree.Element) -> bool:
    return token.tag == "mn"
