"""Formulas as MathML. `Node` is a scalar expression that can be computed with: arrays of nodes are
NumPy arrays of objects, so that broadcasting, slices, matrix products and sums of what a user wrote
come out entry by entry.

Simplified is what no reader would write: 0·x, 1·x, x + 0, and sums and products of two plain
numbers. Everything else stays as it was given.
"""

import html
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

# How tightly the outermost operation binds: what is looser than its surroundings gets brackets.
SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4
POWERED = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
TIMES = "<mo>&#x2062;</mo>"
APPLY = "<mo>&#x2061;</mo>"
GAP = '<mspace width="0.17em"/>'
# Significant digits of numbers that are shown in full; the attribute of those that are not.
DIGITS, ROUNDED = 10, "data-value"
BEGINS_WITH_DIGITS = re.compile(r"(<m(row|sup)>)*<(mn|mfrac)\b")
ENDS_IN_DIGITS = re.compile(r"</mn>(</mrow>)*$")
WORD_FIRST = re.compile(r"(<m(row|sup|sub|over)[^>]*>)*<mi>\w\w")
# A word, or the bracket that closes the arguments of a function.
WORD_LAST = re.compile(r"(\w\w</mi>|<mo>\)</mo></mrow>)(</m(row|sub)>)*$")
# The Greek alphabet in the order of its letters; the empty name is the second form of sigma.
GREEK_NAMES = "alpha,beta,gamma,delta,epsilon,zeta,eta,theta,iota,kappa,lambda,mu,nu,xi,omicron,pi,rho,,sigma,tau,upsilon,phi,chi,psi,omega"
GREEK = {name: chr(0x3B1 + k) for k, name in enumerate(GREEK_NAMES.split(",")) if name}


class Untypeset(Exception):  # noqa: N818
    """What is written cannot be set as a formula; the source is shown instead."""


@dataclass(frozen=True, eq=False)
class Node:
    """A scalar expression. `number` is its value if it is a plain number, `negated` what it is the
    negative of, `call` the name of a function and its arguments."""

    mathml: str
    rank: int = ATOM
    number: float | None = None
    negated: "Node | None" = None
    call: tuple[str, str] | None = None

    def within(self, rank: int) -> str:
        """As a part of an operation that binds with `rank`: in brackets if it is looser."""
        return self.mathml if self.rank >= rank else brackets(self.mathml)

    def __add__(self, other: Any) -> "Node":
        if _is_array(other):
            return NotImplemented
        other = node(other)
        if self.number is not None and other.number is not None:
            return constant(self.number + other.number)
        if other.number == 0:
            return self
        if self.number == 0:
            return other
        if other.negated is not None:
            return self - other.negated
        if other.number is not None and other.number < 0:
            return self - constant(-other.number)
        return Node(f"{self.within(SUM)}<mo>+</mo>{other.within(SUM)}", SUM)

    def __sub__(self, other: Any) -> "Node":
        if _is_array(other):
            return NotImplemented
        other = node(other)
        if self.number is not None and other.number is not None:
            return constant(self.number - other.number)
        if other.number == 0:
            return self
        if self.number == 0:
            return -other
        if other.negated is not None:
            return self + other.negated
        return Node(f"{self.within(SUM)}<mo>−</mo>{other.within(PRODUCT)}", SUM)

    def __mul__(self, other: Any) -> "Node":
        if _is_array(other):
            return NotImplemented
        other = node(other)
        if self.number is not None and other.number is not None:
            return constant(self.number * other.number)
        if 0 in (self.number, other.number):
            return constant(0)
        for one, two in ((self, other), (other, self)):
            if one.number == 1:
                return two
            if one.number is not None and one.number < 0:
                return -(constant(-one.number) * two)
        if self.negated is not None:
            return -(self.negated * other)
        if other.negated is not None:
            return -(self * other.negated)
        if other.number is not None:
            # 0.5x, not x·0.5.
            return other * self
        if self.rank == ATOM and self.mathml == other.mathml:
            return self**2
        return Node(_beside(self.within(PRODUCT), other.within(PRODUCT)), PRODUCT)

    def __truediv__(self, other: Any) -> "Node":
        if _is_array(other):
            return NotImplemented
        other = node(other)
        if other.number == 1:
            return self
        if self.number == 0:
            return self
        if self.negated is not None:
            return -(self.negated / other)
        return Node(f"<mfrac>{row(self.mathml)}{row(other.mathml)}</mfrac>", PRODUCT)

    def __pow__(self, other: Any) -> "Node":
        if _is_array(other):
            return NotImplemented
        other = node(other)
        if other.number == 1:
            return self
        if (
            self.call is not None
            and other.number is not None
            and other.number > 1
            and float(other.number).is_integer()
        ):
            # Whole powers alone: sin⁻¹ is another function.
            name, arguments = self.call
            return Node(f"<msup>{name}{row(other.mathml)}</msup>{APPLY}{arguments}", POWER)
        return Node(f"<msup>{row(self.within(ATOM))}{row(other.mathml)}</msup>", POWER)

    def __neg__(self) -> "Node":
        if self.number is not None:
            return constant(-self.number)
        if self.negated is not None:
            return self.negated
        return Node(f"<mrow><mo>−</mo>{self.within(PRODUCT)}</mrow>", SUM, negated=self)

    def __pos__(self) -> "Node":
        return self

    def __radd__(self, other: Any) -> "Node":
        return node(other) + self

    def __rsub__(self, other: Any) -> "Node":
        return node(other) - self

    def __rmul__(self, other: Any) -> "Node":
        return node(other) * self

    def __rtruediv__(self, other: Any) -> "Node":
        return node(other) / self

    def __rpow__(self, other: Any) -> "Node":
        return node(other) ** self

    def __abs__(self) -> "Node":
        return Node(
            f'<mrow><mo stretchy="true">|</mo>{self.mathml}<mo stretchy="true">|</mo></mrow>'
        )

    def __index__(self) -> int:
        """Plain whole numbers serve as indices."""
        if self.number is None or not float(self.number).is_integer():
            raise Untypeset("an index that is no number")
        return int(self.number)


def _beside(left: str, right: str) -> str:
    """A product: a point between what would read as one number, a gap beside words and functions,
    else nothing."""
    if BEGINS_WITH_DIGITS.match(right) and (
        ENDS_IN_DIGITS.search(left) or not right.startswith("<mfrac>")
    ):
        return f"{left}<mo>·</mo>{right}"
    return f"{left}{TIMES}{GAP if WORD_LAST.search(left) or WORD_FIRST.match(right) else ''}{right}"


@dataclass(frozen=True, eq=False)
class Condition:
    """What holds or does not hold: no number, so that nothing can be computed with it."""

    mathml: str
    compound: bool = False


def node(value: Any) -> Node:
    """A node of anything that stands for a scalar."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.ndarray) and value.shape == ():
        return node(value.item())
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return constant(float(value))
    raise Untypeset(f"{type(value).__name__} is no scalar")


def _is_array(value: Any) -> bool:
    """Arrays take the operation over, entry by entry."""
    return isinstance(value, np.ndarray) and value.ndim > 0


def row(mathml: str) -> str:
    """One element for what may be several."""
    return f"<mrow>{mathml}</mrow>"


def brackets(mathml: str) -> str:
    return f"<mrow><mo>(</mo>{mathml}<mo>)</mo></mrow>"


def constant(value: float) -> Node:
    """A number as a person writes it."""
    if not math.isfinite(value):
        raise Untypeset("a number that is not finite")
    if value < 0:
        positive = constant(-value)
        # In a row of its own, so that the sign is that of the number and no operation.
        return Node(f"<mrow><mo>−</mo>{positive.mathml}</mrow>", SUM, value)
    if value == math.pi:
        return symbol("pi")
    # The second zero has a sign.
    digits = f"{value + 0.0:.{DIGITS}g}"
    if abs(float(digits) - value) <= 1e-15 * value:
        return _digits(digits, value)
    rounded = f"{value:.6g}"
    if float(rounded) == float(f"{value:.4g}"):
        # 1.0000000001 must not become 1.
        return _simple(value) or _digits(repr(value), value)
    # The whole number stands in the mark, and `relation` sees that digits were left out.
    return _simple(value) or _digits(rounded, value, f' {ROUNDED}="{value!r}"')


def _digits(digits: str, value: float, mark: str = "") -> Node:
    if "e" in digits:
        mantissa, exponent = digits.split("e")
        power = f"<msup><mn>10</mn>{row(constant(int(exponent)).mathml)}</msup>"
        # The mark then holds the mantissa.
        mark = mark and f' {ROUNDED}="{value / 10.0 ** int(exponent)!r}"'
        return Node(
            power
            if mantissa == "1" and not mark
            else f"<mn{mark}>{mantissa}</mn><mo>·</mo>{power}",
            PRODUCT,
            value,
        )
    return Node(f"<mn{mark}>{digits}</mn>", ATOM, value)


def _simple(value: float) -> Node | None:
    """A fraction of small numbers, times π or π², that has this very value; None where there is
    none."""
    for power in range(3):
        part = Fraction(value / math.pi**power).limit_denominator(99)
        if (
            not 0 < part.numerator <= 999
            or abs(float(part) * math.pi**power - value) > 4e-16 * value
        ):
            continue
        above = "" if part.numerator == 1 and power else f"<mn>{part.numerator}</mn>"
        if power:
            above += (TIMES if above else "") + (
                "<mi>π</mi>" if power == 1 else "<msup><mi>π</mi><mn>2</mn></msup>"
            )
        if part.denominator == 1:
            return Node(above, PRODUCT if part.numerator > 1 else POWER, value)
        return Node(f"<mfrac>{row(above)}<mn>{part.denominator}</mn></mfrac>", PRODUCT, value)
    return None


def relation(mathml: str) -> str:
    """The sign between a name and its value: ≈ where digits were left out."""
    return "<mo>≈</mo>" if ROUNDED in mathml else "<mo>=</mo>"


def symbol(name: str, subscript: str | int | None = None, accent: bool = False) -> Node:
    """A letter or a word; Greek names become letters, and digits at the end become a subscript. The
    accent tells apart what would look the same."""
    stem = name.rstrip("0123456789").rstrip("_")
    if subscript is None and stem and stem != name:
        name, subscript = stem, name[len(name.rstrip("0123456789")) :]
    letters = GREEK.get(name.rstrip("_"), name.strip("_").replace("_", " ") or name)
    shown = f"<mi>{html.escape(letters)}</mi>"
    if accent:
        shown = f'<mover accent="true">{shown}<mo>~</mo></mover>'
    if subscript is None:
        return Node(shown)
    below = (
        f"<mn>{subscript}</mn>"
        if str(subscript).isdigit()
        else f"<mi>{html.escape(str(subscript))}</mi>"
    )
    return Node(f"<msub>{shown}{below}</msub>")


def components(name: str, count: int) -> np.ndarray:
    """A vector with named components, x₁, x₂, …"""
    return array([symbol(name, i + 1) for i in range(count)])


def array(entries: Any) -> np.ndarray:
    """An array of nodes from nested lists, or from numbers."""
    if isinstance(entries, Node):
        made = np.empty((), dtype=object)
        made[()] = entries
        return made
    if isinstance(entries, np.ndarray) and entries.dtype != object:
        made = np.empty(entries.shape, dtype=object)
        for place in np.ndindex(entries.shape):
            made[place] = constant(float(entries[place]))
        return made
    if isinstance(entries, np.ndarray):
        return entries
    rows = [
        array(entry if isinstance(entry, list | tuple | np.ndarray) else node(entry))
        for entry in entries
    ]
    if len({part.shape for part in rows}) != 1:
        raise Untypeset("rows of different lengths")
    return np.stack(rows)


def applied(name: str, *arguments: Node) -> Node:
    """A function by its name: sin(x), max(x, y)."""
    inside = "<mo>,</mo>".join(each.mathml for each in arguments)
    shown = f"<mi>{html.escape(name)}</mi>"
    # sin²(x), but (max(x, y))².
    return Node(
        f"{shown}{APPLY}{brackets(inside)}",
        POWER,
        call=(shown, brackets(inside)) if name in POWERED else None,
    )


def cases(condition: Condition, yes: Node, no: Node) -> Node:
    """One value where a condition holds, else the other; in brackets beside anything else."""
    if not isinstance(condition, Condition):
        raise Untypeset("a condition that is a number")
    above = f"<mtr><mtd>{yes.mathml}</mtd><mtd>{words('if ')}{condition.mathml}</mtd></mtr>"
    below = f"<mtr><mtd>{no.mathml}</mtd><mtd>{words('otherwise')}</mtd></mtr>"
    return Node(f'<mtable class="cases">{above}{below}</mtable>', 0)


def typeset(value: Any) -> str:
    """MathML of a scalar, of a vector as a column, or of a matrix."""
    if isinstance(value, Node):
        return value.mathml
    if not isinstance(value, np.ndarray):
        return node(value).mathml
    if value.ndim == 0:
        return node(value.item()).mathml
    if value.size == 1:
        return node(value.ravel()[0]).mathml
    if value.ndim > 2:
        raise Untypeset("more than two axes")
    if (
        value.ndim == 2
        and value.shape[0] == value.shape[1]
        and (factor := _multiple_of_identity(value)) is not None
    ):
        return (factor * Node("<mi>I</mi>")).mathml
    rows = value[:, None] if value.ndim == 1 else value
    lines = "".join(
        "<mtr>" + "".join(f"<mtd>{node(entry).mathml}</mtd>" for entry in line) + "</mtr>"
        for line in rows
    )
    # The brackets are drawn by the style: few systems have a font in which they grow.
    return f'<mtable class="matrix">{lines}</mtable>'


def _multiple_of_identity(value: np.ndarray) -> Node | None:
    """The factor t of a matrix tI, else None."""
    size = len(value)
    outside = [value[i, j].number for i in range(size) for j in range(size) if i != j]
    if (
        any(number != 0 for number in outside)
        or len({value[i, i].mathml for i in range(size)}) != 1
    ):
        return None
    return value[0, 0] if value[0, 0].number != 0 else None


def words(text: str) -> str:
    """Words inside a formula; the spaces around them are kept."""
    return f"<mtext>{html.escape(text).replace(' ', chr(0xA0))}</mtext>"


def formula(mathml: str) -> str:
    """A whole formula."""
    return f'<math displaystyle="true">{row(mathml)}</math>'
