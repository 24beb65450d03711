"""Terms as MathML."""

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cordes.formulas.terms import FormulaTerm, Unwritable, multiply, symbol

# How tightly the outermost operation binds: what is looser than its surroundings gets brackets.
LOOSE, SUM, PRODUCT, POWER, ATOM = 0, 1, 2, 3, 4
# Functions of which sin²(x) is written, not (sin(x))².
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
GREEK_NAMES = (
    "alpha,beta,gamma,delta,epsilon,zeta,eta,theta,iota,kappa,lambda,mu,nu,xi,omicron,pi,rho,,"
    "sigma,tau,upsilon,phi,chi,psi,omega"
)
GREEK = {name: chr(0x3B1 + k) for k, name in enumerate(GREEK_NAMES.split(",")) if name}


class Fragment(NamedTuple):
    """The MathML of a term, how tightly it binds, and of sin(x) the name and the argument."""

    mathml: str
    rank: int = ATOM
    parts: tuple[str, str] | None = None

    def within(self, rank: int) -> str:
        """As a part of an operation that binds with `rank`: in brackets if it is looser."""
        return self.mathml if self.rank >= rank else brackets(self.mathml)


def mathml(one: FormulaTerm, looks: Mapping[FormulaTerm, str] | None = None) -> str:
    """The formula of a term. `looks` are the MathML of terms that have a name."""
    return _piece(one, looks or {}).mathml


def _piece(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    if one in looks:
        return Fragment(looks[one])
    if one.head in _WHOLE:
        return _WHOLE[one.head](one, looks)
    return _OPERATIONS[one.head](*(_piece(argument, looks) for argument in one.arguments))


def _product(one: Fragment, two: Fragment) -> Fragment:
    """A point between what would read as one number, a gap beside words and functions, else
    nothing."""
    left, right = one.within(PRODUCT), two.within(PRODUCT)
    if BEGINS_WITH_DIGITS.match(right) and (
        ENDS_IN_DIGITS.search(left) or not right.startswith("<mfrac>")
    ):
        return Fragment(f"{left}<mo>·</mo>{right}", PRODUCT)
    gap = GAP if WORD_LAST.search(left) or WORD_FIRST.match(right) else ""
    return Fragment(f"{left}{TIMES}{gap}{right}", PRODUCT)


def _listed(word: str, parts: Sequence[Fragment]) -> str:
    return words(word).join(part.within(PRODUCT) for part in parts)


_OPERATIONS: dict[str, Callable[..., Fragment]] = {
    "add": lambda one, two: Fragment(f"{one.within(SUM)}<mo>+</mo>{two.within(SUM)}", SUM),
    "sub": lambda one, two: Fragment(f"{one.within(SUM)}<mo>−</mo>{two.within(PRODUCT)}", SUM),
    "neg": lambda one: Fragment(f"<mrow><mo>−</mo>{one.within(PRODUCT)}</mrow>", SUM),
    "mul": _product,
    "div": lambda one, two: Fragment(f"<mfrac>{row(one.mathml)}{row(two.mathml)}</mfrac>", PRODUCT),
    "and": lambda *parts: Fragment(_listed(" and ", parts), PRODUCT),
    "or": lambda *parts: Fragment(_listed(" or ", parts), SUM),
}


def _power(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    base, exponent = (_piece(argument, looks) for argument in one.arguments)
    value = one.arguments[1].number
    if base.parts is not None and value is not None and value > 1 and value.is_integer():
        # Whole powers alone: sin⁻¹ is another function.
        name, inside = base.parts
        return Fragment(f"<msup>{name}{row(exponent.mathml)}</msup>{APPLY}{inside}", POWER)
    return Fragment(f"<msup>{row(base.within(ATOM))}{row(exponent.mathml)}</msup>", POWER)


def _call(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    parts = [_piece(argument, looks).mathml for argument in one.arguments]
    match one.value:
        case "abs":
            return Fragment(absolute(parts[0]))
        case "sqrt":
            return Fragment(f"<msqrt>{parts[0]}</msqrt>")
        case "cbrt":
            return Fragment(f"<mroot>{row(parts[0])}<mn>3</mn></mroot>")
        case "exp":
            return Fragment(f"<msup><mi>e</mi>{row(parts[0])}</msup>", POWER)
    name, inside = f"<mi>{one.value}</mi>", brackets("<mo>,</mo>".join(parts))
    return Fragment(
        f"{name}{APPLY}{inside}", POWER, (name, inside) if one.value in POWERED else None
    )


def _compare(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    left, right = (_piece(argument, looks).within(SUM) for argument in one.arguments)
    return Fragment(f"{left}<mo>{html.escape(one.value)}</mo>{right}", POWER)


def _cases(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    """Alone or in brackets: beside other terms nobody knows what belongs to the last line."""
    *pairs, last = (_piece(argument, looks).mathml for argument in one.arguments)
    given = zip(pairs[::2], pairs[1::2], strict=True)
    lines = [(value, words("if ") + condition) for condition, value in given]
    return Fragment(_table("cases", [*lines, (last, words("otherwise"))]), LOOSE)


def _series(one: FormulaTerm, looks: Mapping[FormulaTerm, str]) -> Fragment:
    below, count = row("<mi>i</mi><mo>=</mo><mn>1</mn>"), len(one.arguments) - 1
    inside = _piece(one.arguments[0], looks).within(PRODUCT)
    return Fragment(f"<munderover><mo>∑</mo>{below}<mn>{count}</mn></munderover>{inside}", SUM)


_WHOLE: dict[str, Callable[[FormulaTerm, Mapping[FormulaTerm, str]], Fragment]] = {
    "number": lambda one, looks: constant(one.value),
    "symbol": lambda one, looks: Fragment(letter(one.value)),
    "length": lambda one, looks: Fragment(absolute("<mi>x</mi>")),
    "pow": _power,
    "call": _call,
    "compare": _compare,
    "cases": _cases,
    "series": _series,
}


# Numbers ------------------------------------------------------------------------------------------


def constant(value: float) -> Fragment:
    """A number as a person writes it."""
    if not math.isfinite(value):
        raise Unwritable("a number that is not finite")
    if value < 0:
        # In a row of its own, so that the sign is that of the number and no operation.
        return Fragment(f"<mrow><mo>−</mo>{constant(-value).mathml}</mrow>", SUM)
    # The second zero has a sign.
    digits = f"{value + 0.0:.{DIGITS}g}"
    if abs(float(digits) - value) <= 1e-15 * value:
        return _digits(digits, value)
    rounded = f"{value:.6g}"
    if float(rounded) == float(f"{value:.4g}"):
        # 1.0000000001 must not become 1.
        rounded = digits if float(digits) != float(rounded) else repr(value)
    # The whole number stands in the mark, and `relation` sees that digits were left out.
    mark = f' {ROUNDED}="{value!r}"' if float(rounded) != value else ""
    return _simple(value) or _digits(rounded, value, mark)


def _digits(digits: str, value: float, mark: str = "") -> Fragment:
    if "e" not in digits:
        return Fragment(f"<mn{mark}>{digits}</mn>")
    mantissa, exponent = digits.split("e")
    power = f"<msup><mn>10</mn>{row(constant(int(exponent)).mathml)}</msup>"
    # The mark then holds the mantissa.
    mark = mark and f' {ROUNDED}="{value / 10.0 ** int(exponent)!r}"'
    plain = mantissa == "1" and not mark
    return Fragment(power if plain else f"<mn{mark}>{mantissa}</mn><mo>·</mo>{power}", PRODUCT)


def _letters(power: int) -> str:
    """A power of π, or nothing."""
    if power < 2:
        return "<mi>π</mi>" * power
    return f"<msup><mi>π</mi><mn>{power}</mn></msup>"


# Factors of simple numbers, with how they look above and below the line.
_FACTORS: dict[float, tuple[str, str]] = {
    math.pi**power: (_letters(max(power, 0)), _letters(max(-power, 0)))
    for power in (0, 1, 2, -1, -2, -3)
} | {math.sqrt(n): (f"<msqrt><mn>{n}</mn></msqrt>", "") for n in (2, 3, 5, 6, 7, 10)}


def _simple(value: float) -> Fragment | None:
    """A fraction of small numbers, times a power of π or a root, that has this very value; None
    where there is none."""
    for factor, (above, below) in _FACTORS.items():
        part = Fraction(value / factor).limit_denominator(999)
        if not 0 < part.numerator <= 999 or abs(float(part) * factor - value) > 4e-16 * value:
            continue
        if part.denominator > 99 and part.numerator > 9:
            continue
        top, bottom = _joined(part.numerator, above), _joined(part.denominator, below)
        if bottom != "<mn>1</mn>":
            return Fragment(f"<mfrac>{row(top)}{row(bottom)}</mfrac>", PRODUCT)
        return Fragment(top, PRODUCT if part.numerator > 1 else POWER if "msup" in above else ATOM)
    return None


def _joined(number: int, letters: str) -> str:
    return (
        letters if letters and number == 1 else f"<mn>{number}</mn>" + (letters and TIMES + letters)
    )


def relation(mathml: str) -> str:
    """The sign between a name and its value: ≈ where digits were left out."""
    return "<mo>≈</mo>" if ROUNDED in mathml else "<mo>=</mo>"


# Letters, arrays and what surrounds them ----------------------------------------------------------


def letter(name: str, subscript: str | int | None = None, accent: bool = False) -> str:
    """A letter or a word; Greek names become letters, and digits at the end become a subscript. The
    accent tells apart what would look the same."""
    stem = name.rstrip("0123456789").rstrip("_")
    if subscript is None and name == "x_i":
        name, subscript = "x", "i"
    elif subscript is None and stem and stem != name:
        name, subscript = stem, name[len(name.rstrip("0123456789")) :]
    letters = GREEK.get(name.rstrip("_"), name.strip("_").replace("_", " ") or name)
    shown = f"<mi>{html.escape(letters)}</mi>"
    if accent:
        shown = f'<mover accent="true">{shown}<mo>~</mo></mover>'
    if subscript is None:
        return shown
    tag = "mn" if str(subscript).isdigit() else "mi"
    return f"<msub>{shown}<{tag}>{html.escape(str(subscript))}</{tag}></msub>"


def typeset(entries: np.ndarray, looks: Mapping[FormulaTerm, str] | None = None) -> str:
    """MathML of a scalar, of a vector as a column, or of a matrix: an array of terms."""
    if entries.size == 1:
        return mathml(entries.item(), looks)
    if entries.ndim > 2:
        raise Unwritable("more than two axes")
    factor = multiple_of_identity(entries)
    if factor is not None:
        return mathml(multiply(factor, symbol("I")), looks)
    # The brackets are drawn by the style: few systems have a font in which they grow.
    return _table("matrix", [[mathml(one, looks) for one in np.ravel(line)] for line in entries])


def _table(kind: str, lines: Sequence[Sequence[str]]) -> str:
    cells = ("".join(f"<mtd>{cell}</mtd>" for cell in line) for line in lines)
    return f'<mtable class="{kind}">{"".join(f"<mtr>{line}</mtr>" for line in cells)}</mtable>'


def multiple_of_identity(entries: np.ndarray) -> FormulaTerm | None:
    """The factor t of a matrix tI, else None."""
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1]:
        return None
    factor = entries[0, 0]
    fits = all(
        entry is factor if i == j else entry.number == 0
        for (i, j), entry in np.ndenumerate(entries)
    )
    return factor if fits and factor.number != 0 else None


def row(mathml: str) -> str:
    """One element for what may be several."""
    return f"<mrow>{mathml}</mrow>"


def brackets(mathml: str) -> str:
    return f"<mrow><mo>(</mo>{mathml}<mo>)</mo></mrow>"


def absolute(mathml: str) -> str:
    return f'<mrow><mo stretchy="true">|</mo>{mathml}<mo stretchy="true">|</mo></mrow>'


def words(text: str) -> str:
    """Words inside a formula; the spaces around them are kept."""
    return f"<mtext>{html.escape(text).replace(' ', chr(0xA0))}</mtext>"


def formula(mathml: str) -> str:
    """A whole formula."""
    return f'<math displaystyle="true">{row(mathml)}</math>'
