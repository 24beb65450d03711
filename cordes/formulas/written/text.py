"""Terms as text that `formulas/toml.py` reads again: exact decimals, π as pi, and definitions for
what is long or occurs several times."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cordes.formulas.elementary import COMPARED, WRITTEN
from cordes.formulas.naming import shared
from cordes.formulas.terms import FormulaTerm, Unwritable
from cordes.formulas.written.writing import Written

# How tightly operations bind, and the signs of those with two sides.
ANY, SUM, PRODUCT, SIGN, POWER, ATOM = 0, 1, 2, 3, 4, 5
_RANKS = {"add": (SUM, " + "), "sub": (SUM, " - "), "mul": (PRODUCT, "*"), "div": (PRODUCT, "/")}
# What has more characters than this, or is nested deeper, gets a name; readers allow twice that.
LONGEST, DEEPEST = 1000, 24
SAVING = 24
_PIS = {math.pi * k / n: (k, n) for n in range(12, 0, -1) for k in range(12, 0, -1)}


class FormulaText(NamedTuple):
    """A text, or nested lists of texts for a vector or a matrix, and the definitions that they use
    in the order in which they are read."""

    value: Any
    definitions: dict[str, str]


def as_text(written: Written, names: Mapping[FormulaTerm, str] | None = None) -> FormulaText:
    """The text of a function. `names` are those of terms that keep a name of their author."""
    writer = _TextWriter(dict(names or {}))
    for part in shared(written.entries.ravel().tolist(), SAVING):
        writer.define(part.term)
    text = np.vectorize(lambda one: writer.text(one, ANY), otypes=[object])
    return FormulaText(text(written.entries).tolist(), writer.definitions)


def exact(value: float) -> str:
    """A number that is read as itself; simple multiples of π by their name."""
    if value in _PIS:
        above, below = _PIS[value]
        text = ("" if above == 1 else f"{above}*") + "pi" + ("" if below == 1 else f"/{below}")
        # What is read must be this very number, to the last digit.
        if above * math.pi / below == value:
            return text
    whole = float(value).is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value))


class _TextWriter:
    def __init__(self, names: dict[FormulaTerm, str]):
        self.names: dict[FormulaTerm, str] = {}
        self.definitions: dict[str, str] = {}
        self._depths: dict[FormulaTerm, int] = {}
        for one, name in names.items():
            self.define(one, name)

    def define(self, one: FormulaTerm, name: str | None = None) -> str:
        """The name of a term, which is defined where it is not yet."""
        if one not in self.names:
            text = self._text(one)[0]
            name = name or f"s{len(self.definitions) + 1}"
            self.definitions[name], self.names[one] = text, name
        return self.names[one]

    def depth(self, one: FormulaTerm) -> int:
        """How deeply a term is nested, names counting as one step."""
        if one in self.names or not one.arguments:
            return 1
        if one not in self._depths:
            self._depths[one] = 1 + max(self.depth(argument) for argument in one.arguments)
        return self._depths[one]

    def text(self, one: FormulaTerm, rank: int) -> str:
        """As a part of an operation that binds with `rank`."""
        if one in self.names:
            return self.names[one]
        text, own = self._text(one)
        if (len(text) > LONGEST or self.depth(one) > DEEPEST) and not one.truth:
            self._depths.clear()
            return self.define(one)
        return text if own >= rank else f"({text})"

    def _text(self, one: FormulaTerm) -> tuple[str, int]:
        parts = one.arguments
        match one.head:
            case "number":
                text = exact(abs(one.value))
                rank = ATOM if text.replace(".", "").isalnum() else PRODUCT
                return (f"-{text}", SIGN) if one.value < 0 else (text, rank)
            case "symbol":
                return one.value, ATOM
            case "length":
                return f"norm({', '.join(part.value for part in parts)})", ATOM
            case "neg":
                return f"-{self.text(parts[0], POWER)}", SIGN
            case "add" | "sub" | "mul" | "div":
                rank, sign = _RANKS[one.head]
                tight = rank + (one.head in ("sub", "mul", "div"))
                return f"{self.text(parts[0], rank)}{sign}{self.text(parts[1], tight)}", rank
            case "pow":
                return f"{self.text(parts[0], ATOM)}**{self.text(parts[1], ATOM)}", POWER
            case "series":
                return " + ".join(self.text(part, PRODUCT) for part in parts[1:]), SUM
            case "cases":
                return self._cases(parts), ATOM
            case "compare":
                left, right = (self.text(part, SUM) for part in parts)
                return f"{left} {COMPARED[one.value].file} {right}", PRODUCT
            case "and" | "or":
                return f" {one.head} ".join(f"({self.text(part, ANY)})" for part in parts), SUM
        if one.value not in ("max", "min", "arctan2") and not WRITTEN[one.value].file:
            raise Unwritable(f"{one.value}, which problem files do not know")
        return f"{one.value}({', '.join(self.text(part, ANY) for part in parts)})", ATOM

    def _cases(self, parts: Sequence[FormulaTerm]) -> str:
        condition, yes, *rest = parts
        no = self._cases(rest) if len(rest) > 1 else self.text(rest[0], ANY)
        return f"where({self.text(condition, ANY)}, {self.text(yes, ANY)}, {no})"
