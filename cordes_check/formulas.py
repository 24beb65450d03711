"""Formulas: read by Python's parser into a tree, of which nothing is ever executed.

On a region where every sign that is asked for is proved to be the same almost everywhere, sign, abs,
max, min and where are choices that are made once; what is left is analytic. So a formula becomes a
function of a place, whose coordinates are balls, complex balls, or jets.
"""

import ast
import operator
import re
import warnings
from ast import (
    Add,
    And,
    BinOp,
    BoolOp,
    Call,
    Compare,
    Constant,
    Div,
    Mult,
    Name,
    Not,
    Pow,
    Sub,
    UAdd,
    UnaryOp,
    USub,
)
from collections.abc import Callable

from flint import arb, fmpq

from cordes_check.balls import ELEMENTARY, NotAProof, Refused, need, power, rational, root
from cordes_check.cells import Place, Region

LONGEST = 100_000
Made = Callable[[Place], object]
_SIDES = {Add: operator.add, Sub: operator.sub, Mult: operator.mul, Div: operator.truediv}
_SIGNS = {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}


def _call(name: str, *args: ast.expr) -> Call:
    return Call(Name(name), [*args], [])


# Functions that are short for others.
_SHORT = {
    ("sqrt", 1): lambda a: BinOp(a, Pow(), Constant(fmpq(1, 2))),
    ("cbrt", 1): lambda a: BinOp(
        _call("sign", a), Mult(), BinOp(_call("abs", a), Pow(), Constant(fmpq(1, 3)))
    ),
    ("abs", 1): lambda a: BinOp(_call("sign", a), Mult(), a),
    ("max", 2): lambda a, b: _call("where", Compare(a, [ast.Gt()], [b]), a, b),
    ("min", 2): lambda a, b: _call("where", Compare(a, [ast.Gt()], [b]), b, a),
}


class Formulas:
    """The names that formulas may use: x1, x2, …, r = |x|, pi, e, and definitions."""

    def __init__(self, d: int, definitions: dict[str, object]):
        self.d, self.coordinates = d, [f"x{i + 1}" for i in range(d)]
        given = {"e": "exp(1)", "r": f"norm({','.join(self.coordinates)})"}
        need(not {"pi", *given, *self.coordinates} & set(definitions), "a name is defined twice")
        need(
            all(re.fullmatch(r"\w{1,60}", name, re.A) for name in definitions),
            "no name of a formula",
        )
        self.names: dict[str, ast.expr] = {}
        for name, text in (given | definitions).items():
            self.names[name] = self.read(text)
        self._affine: dict[ast.expr, list | None] = {}

    def read(self, text: object) -> ast.expr:
        """The tree of a formula. Numbers are what their digits say, and names are those above."""
        line = " ".join(str(text)[:LONGEST].split()).replace("norm(x)", "r")
        if not line.isascii() or not line.isprintable() or "#" in line:
            raise NotAProof(f"{line[:80]!r} has characters that no formula has")
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise NotAProof(f"{line[:80]!r} is no formula") from None
        called = [id(node.func) for node in ast.walk(tree) if isinstance(node, Call)]
        for node in ast.walk(tree):
            if isinstance(node, Constant):
                node.value = rational(ast.get_source_segment(line, node))
            known = {"pi", *self.names, *self.coordinates}
            if isinstance(node, Name) and id(node) not in called and node.id not in known:
                raise NotAProof(f"there is no {node.id} in {line[:80]!r}")
        return tree

    def affine(self, node: ast.expr) -> list[fmpq] | None:
        """c0, c1, … where a formula is c0 + c1 x1 + … with rational numbers."""
        if node not in self._affine:
            self._affine[node] = self._seen_affine(node)
        return self._affine[node]

    def _seen_affine(self, node: ast.expr) -> list[fmpq] | None:
        match node:
            case Constant(value=value):
                return [value, *[fmpq(0)] * self.d]
            case Name(id=name) if name in self.names:
                return self.affine(self.names[name])
            case Name(id=name) if name != "pi":
                return [fmpq(int(name == each)) for each in ("", *self.coordinates)]
            case UnaryOp(op=USub(), operand=part) if (a := self.affine(part)) is not None:
                return [-c for c in a]
            case BinOp(left=left, op=op, right=right) if type(op) in _SIDES:
                a, b, join = self.affine(left), self.affine(right), _SIDES[type(op)]
                if a is None or b is None:
                    return None
                if isinstance(op, Add | Sub):
                    return [join(u, v) for u, v in zip(a, b, strict=True)]
                if isinstance(op, Mult) and not any(a[1:]):
                    a, b = b, a
                divisible = b[0] != 0 or isinstance(op, Mult)
                return [join(c, b[0]) for c in a] if divisible and not any(b[1:]) else None
        return None

    def constant(self, node: ast.expr) -> fmpq | None:
        found = self.affine(node)
        return None if found is None or any(found[1:]) else found[0]

    def sign(self, node: ast.expr, region: Region) -> int:
        """1 or -1, where a formula has this sign almost everywhere on a region; 0 if this is not
        seen."""
        if node not in region.signs:
            region.signs[node] = self._seen_sign(node, region)
        return region.signs[node]

    def _seen_sign(self, node: ast.expr, region: Region) -> int:
        affine = self.affine(node)
        if affine is not None:
            ends = [affine[0] + sum(map(operator.mul, affine[1:], v)) for v in region.vertices]
            return int(min(ends) >= 0 < max(ends)) - int(min(ends) < 0 >= max(ends))
        match node:
            case Name(id=name) if name in self.names:
                return self.sign(self.names[name], region)
            case BinOp(left=left, op=Mult() | Div(), right=right):
                if both := self.sign(left, region) * self.sign(right, region):
                    return both
            case BinOp(left=base, op=Pow(), right=n) if (n := self.constant(n)) is not None:
                if sign := self.sign(base, region):
                    return int(sign > 0) if n.q > 1 else sign ** int(n.p % 2)
        value = self.on(node, region)(region.whole())
        return int(value > 0) - int(value < 0)

    def _known_sign(self, node: ast.expr, region: Region) -> int:
        sign = self.sign(node, region)
        need(sign != 0, f"{region.name}: the sign of a part of a formula is not seen")
        return sign

    def _holds(self, node: ast.expr, region: Region) -> bool:
        """Whether a condition holds almost everywhere on the region, or almost nowhere."""
        match node:
            case BoolOp(op=op, values=values):
                return (all if isinstance(op, And) else any)(self._holds(v, region) for v in values)
            case UnaryOp(op=Not(), operand=part):
                return not self._holds(part, region)
            case Compare(left=left, ops=ops, comparators=rest) if all(
                type(op) in _SIGNS for op in ops
            ):
                differences = [
                    BinOp(a, Sub(), b) for a, b in zip([left, *rest], rest, strict=False)
                ]
                signs = [self._known_sign(each, region) for each in differences]
                return signs == [_SIGNS[type(op)] for op in ops]
        raise Refused("the checker does not know a condition of a formula")

    def on(self, node: ast.expr, region: Region) -> Made:
        """The formula as a function of a place of the region."""
        if node not in region.made:
            region.made[node] = self._made(node, region)
        return region.made[node]

    def _made(self, node: ast.expr, region: Region) -> Made:
        match node:
            case Constant(value=value):
                return lambda _, number=arb(value): number
            case Name(id="pi"):
                return lambda _, number=arb.pi(): number
            case Name(id=name) if name in self.names:
                inner, known = self.on(self.names[name], region), self.names[name]
                return lambda place: place.once(known, inner)
            case Name(id=name):
                i = self.coordinates.index(name)
                return lambda place: place.x[i]
            case UnaryOp(op=USub() | UAdd() as op, operand=part):
                inner = self.on(part, region)
                return inner if isinstance(op, UAdd) else lambda place: -inner(place)
            case BinOp(left=left, op=Pow(), right=right):
                return self._power(left, right, region)
            case BinOp(left=left, op=op, right=right) if type(op) in _SIDES:
                a, b, join = self.on(left, region), self.on(right, region), _SIDES[type(op)]
                return lambda place: join(a(place), b(place))
            case Call(func=Name(id=name), args=[one, *others] as args, keywords=[]):
                return self._called(name, args, region)
        raise Refused(f"the checker does not know a {type(node).__name__} in a formula")

    def _power(self, base: ast.expr, exponent: ast.expr, region: Region) -> Made:
        inner, n = self.on(base, region), self.constant(exponent)
        if n is None:
            other, exp, log = self.on(exponent, region), ELEMENTARY["exp"], ELEMENTARY["log"]
            return lambda place: exp(other(place) * log(inner(place)))
        need(abs(n) <= 1000 and n.q <= 1000, "an exponent is too large")
        base = self.names.get(base.id, base) if isinstance(base, Name) else base
        match base:
            case Call(func=Name(id="norm"), args=args) if n.q == 1 and n.p % 2 == 0:
                # |x|² is analytic everywhere.
                inner, n = self._squares(args, region), n / 2
        return lambda place: power(inner(place), n)

    def _called(self, name: str, args: list[ast.expr], region: Region) -> Made:
        if (name, len(args)) in _SHORT:
            return self.on(_SHORT[name, len(args)](*args), region)
        if name in ("max", "min") and len(args) > 2:
            return self.on(_call(name, _call(name, *args[:2]), *args[2:]), region)
        if name == "where" and len(args) == 3:
            return self.on(args[1] if self._holds(args[0], region) else args[2], region)
        if name == "sign" and len(args) == 1:
            return lambda _, sign=arb(self._known_sign(args[0], region)): sign
        if name == "norm":
            return self._norm(args, region)
        need(
            name in ELEMENTARY and len(args) == 1,
            f"the checker knows no {name} of {len(args)} numbers",
        )
        inner = self.on(args[0], region)
        return lambda place: ELEMENTARY[name](inner(place))

    def _squares(self, args: list[ast.expr], region: Region) -> Made:
        parts = [self.on(a, region) for a in args]

        def squares(place: Place):
            values = [part(place) for part in parts]
            return sum((v * v for v in values[1:]), values[0] * values[0])

        return squares

    def _norm(self, args: list[ast.expr], region: Region) -> Made:
        """√Σa². Where all a vanish in the apex of a triangle, it is s1 times an analytic function."""
        affine = [self.affine(a) for a in args]
        rests = [region.rest_at_apex(a) if a is not None else None for a in affine]
        if None in rests:
            squares = self._squares(args, region)
            return lambda place: power(squares(place), fmpq(1, 2))
        return lambda place: place.s[0] * root(sum((rest(place) ** 2 for rest in rests), arb(0)))
