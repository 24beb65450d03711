"""Numbers: rationals, balls of FLINT, and short power series of balls for derivatives.

A ball is a set that holds the number that is meant; every operation keeps this true. What is not
known to be finite compares as False with everything: whatever is needed must be *shown*.
"""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import combinations_with_replacement

from flint import acb, acb_series, arb, arb_series, fmpq


class Refused(Exception):  # noqa: N818
    """The first step of a proof that fails."""


class NotAProof(Exception):  # noqa: N818
    """A file that is no proof at all."""


def need(shown: bool, sentence: str) -> None:
    if shown is not True:
        raise Refused(sentence)


_NUMBER = re.compile(r"(-?)(\d{0,60})\.?(\d{0,60})(?:[eE]([+-]?\d{1,3}))?(?:/(\d{1,60}))?", re.A)


def rational(text: object) -> fmpq:
    """A decimal number, or a quotient of one and a whole number, exactly."""
    found = _NUMBER.fullmatch(str(text)[:200])
    if found is None or not (found[2] or found[3]) or not int(found[5] or 1):
        raise NotAProof(f"{str(text)[:60]!r} is no rational number")
    sign, whole, digits, power, below = (part or "" for part in found.groups())
    shift = int(power or 0) - len(digits)
    value = fmpq(int(sign + whole + digits) * 10 ** max(shift, 0), 10 ** max(-shift, 0))
    return value / int(below or 1)


def binary(text: object) -> fmpq:
    """A number of the answer: a double in hexadecimal, exactly."""
    value = float.fromhex(str(text)) if len(str(text)) <= 40 else math.nan
    if not abs(value) < 1e200:
        raise NotAProof(f"{str(text)[:60]!r} is no finite number of an answer")
    return fmpq(*value.as_integer_ratio())


def rounded(ball: arb, up: bool) -> str:
    """Six digits, not below a ball, or not above it."""
    exact = (ball.upper() if up else ball.lower()).fmpq()
    rule = Context(6, ROUND_CEILING if up else ROUND_FLOOR)
    return str(rule.divide(Decimal(int(exact.p)), Decimal(int(exact.q))))


def around(radius: arb, like: object = None) -> arb | acb:
    """All numbers of at most this size: complex ones where `like` is complex."""
    ball = arb(0, 1) * radius
    return acb(ball, ball) if isinstance(like, acb) else ball


def between(low: object, high: object) -> arb:
    """A ball of all numbers between two."""
    return (arb(high) + low) / 2 + around((arb(high) - low) / 2)


def largest(z: arb | acb) -> arb:
    """An upper bound of |z|, infinite where nothing is known."""
    bound = z.abs_upper()
    return bound if bound.is_finite() else arb("inf")


def dot(a: list, b: list):
    return sum((p * q for p, q in zip(a, b, strict=True)), arb(0))


# The series t -> u(x + tv) up to t², for v = e_i and v = e_i + e_j, have all second derivatives of
# u; FLINT computes with them. Series and second derivatives stand in this order.
PAIRS = {d: list(combinations_with_replacement(range(d), 2)) for d in (2, 3)}


def series(coefficients: list) -> arb_series | acb_series:
    is_complex = any(isinstance(c, acb) for c in coefficients)
    return (acb_series if is_complex else arb_series)(coefficients)


def on_lines(x: list) -> list[list]:
    """The coordinates on the lines through a point, as series."""
    return [[series([c, int(k in pair)]) for k, c in enumerate(x)] for pair in PAIRS[len(x)]]


def derivatives(lines: list, d: int) -> list:
    """u, its first and its second derivatives, from its series on the lines."""
    at, value = dict(zip(PAIRS[d], lines, strict=True)), lines[0][0]
    second = [at[i, j][2] - at[i, i][2] - at[j, j][2] if i < j else 2 * at[i, i][2] for i, j in at]
    # Where u is no number its derivatives are none.
    return [value, *(v + 0 * value for v in (*(at[i, i][1] for i in range(d)), *second))]


def to_lines(parts: list, moves: list[list[arb]]) -> list:
    """The series on lines with these directions, from derivatives by other coordinates."""
    d, found = len(moves[0]), []
    for v in moves:
        products = [v[i] * v[j] / (2 if i == j else 1) for i, j in PAIRS[d]]
        found.append(series([parts[0], dot(v, parts[1 : d + 1]), dot(products, parts[d + 1 :])]))
    return found


def over(a, b):
    """a/b; no number where b may vanish."""
    try:
        return a / b
    except (ValueError, ZeroDivisionError):
        return a * arb("nan")


def _seen(z, cut):
    """z, but no number where a complex z may meet the cut of a function: FLINT's logarithms say so
    if they are asked, its series do not."""
    value = z if isinstance(z, arb | acb) else z[0]
    return z + 0 * cut(value) if isinstance(value, acb) else z


def _log(z):
    return _seen(z, lambda v: v.log(analytic=True)).log()


def _arctan(z):
    return _seen(
        z, lambda v: sum((1 + s * acb(0, 1) * v).log(analytic=True) for s in (1, -1))
    ).atan()


# Of balls and of series; where they are not analytic there is no number.
ELEMENTARY = {
    "exp": lambda z: z.exp(),
    "log": _log,
    "sin": lambda z: z.sin(),
    "cos": lambda z: z.cos(),
    "tan": lambda z: z.tan(),
    "arctan": _arctan,
    "sinh": lambda z: (z.exp() - (-z).exp()) / 2,
    "cosh": lambda z: (z.exp() + (-z).exp()) / 2,
    "tanh": lambda z: 1 - over(arb(2), (2 * z).exp() + 1),
}


def power(z, n: fmpq):
    """z to a rational power: whole powers of all numbers, others where they are analytic."""
    if n.q == 1:
        return z ** int(n.p) if n >= 0 else over(arb(1), z ** -int(n.p))
    z = _seen(z, lambda v: v.log(analytic=True))
    return z.sqrt() if n == fmpq(1, 2) else z ** arb(n)


def root(z):
    return power(z, fmpq(1, 2))
