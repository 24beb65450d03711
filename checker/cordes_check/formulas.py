"""Formulas: read by Python's parser into a tree, of which nothing is ever executed.

On a region where every sign that is asked for is proved to be one almost everywhere, sign, abs,
max, min and where are choices, made once; what is left is analytic. So a formula becomes a function
of a place, whose coordinates are balls, complex balls, or series.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from cordes_check.balls import ELEMENTARY, NotAProof, Refused, need, over, power, rational, root
from cordes_check.cells import Place, Region, along

LONGEST, KEPT, MOST_BITS = 100_000, 100_000, 20_000
Made = Callable[[Place], Any]
_SIDES = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: over,
}
_SIGNS = {ast.Gt: 1, ast.GtE: 1, ast.Lt: -1, ast.LtE: -1}
# Functions that are short for others.
_SHORT = {
    ("sqrt", 1): "a**(1/2)",
    ("cbrt", 1): "sign(a)*abs(a)**(1/3)",
    ("abs", 1): "sign(a)*a",
    ("max", 2): "where(a > b, a, b)",
    ("min", 2): "where(a > b, b, a)",
}
FUNCTIONS = {*ELEMENTARY, *(name for name, _ in _SHORT), "where", "sign", "norm"}


class _Put(ast.NodeTransformer):
    """Trees in the place of names; an unknown name is no formula."""

    def __init__(self, parts: dict[str, ast.expr]):
        self.parts = parts

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(part) for part in node.args], node.keywords)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.parts:
            raise NotAProof(f"there is no {node.id}")
        return self.parts[node.id]


class Formulas:
    """The names that formulas may use: x1, x2, …, pi, e, r = |x|, and definitions."""

    def __init__(self, d: int, definitions: dict[str, object]):
        self.d, self.x = d, [f"x{i + 1}" for i in range(d)]
        self.names: dict[str, ast.expr] = {name: ast.Name(name) for name in (*self.x, "pi")}
        known = {"e": "exp(1)", "r": f"norm({','.join(self.x)})"}
        for name, text in [*known.items(), *definitions.items()]:
            need(re.fullmatch(r"\w{1,60}", name, re.A) is not None, "a definition without a name")
            need(name not in (*self.names, *FUNCTIONS), f"{name} is defined twice")
            self.names[name] = self.read(text)

    def read(self, text: object, names: dict[str, ast.expr] | None = None) -> ast.expr:
        """The tree of a formula. Numbers are what their digits say."""
        need(len(str(text)) <= LONGEST, "a formula is too long")
        line = re.sub(r"\bnorm\(x\)", "r", " ".join(str(text).split()))
        need(line.isascii() and line.isprintable() and "#" not in line, "strange characters")
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(line, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise NotAProof(f"{line[:80]!r} is no formula") from None
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                node.value = rational(line[node.col_offset : node.end_col_offset])
        return _Put(names or self.names).visit(tree)

    @lru_cache(KEPT)  # noqa: B019
    def affine(self, node: ast.expr) -> list[fmpq] | None:
        """c0, c1, … where a formula is c0 + c1 x1 + … with rational numbers."""
        match node:
            case ast.Constant(value=value):
                return [value, *[fmpq(0)] * self.d]
            case ast.Name(id=name) if name != "pi":
                return [fmpq(int(name == each)) for each in ("", *self.x)]
            case ast.UnaryOp(op=ast.USub(), operand=part) if a := self.affine(part):
                return [-c for c in a]
            case ast.BinOp(op=op) if type(op) in _SIDES:
                a, b, join = self.affine(node.left), self.affine(node.right), _SIDES[type(op)]
                need(
                    max((c.height_bits() for c in (a or []) + (b or [])), default=0) < MOST_BITS,
                    "a number in a formula is too large",
                )
                if a and b and isinstance(op, ast.Add | ast.Sub):
                    return [join(u, v) for u, v in zip(a, b, strict=True)]
                if a and not any(a[1:]) and isinstance(op, ast.Mult):
                    a, b = b, a
                if a and b and not any(b[1:]) and (b[0] != 0 or isinstance(op, ast.Mult)):
                    return [join(c, b[0]) for c in a]
        return None

    def constant(self, node: ast.expr) -> fmpq | None:
        found = self.affine(node)
        return found[0] if found and not any(found[1:]) else None

    @lru_cache(KEPT)  # noqa: B019
    def sign(self, node: ast.expr, region: Region) -> int:
        """1 or -1, where a formula has this sign almost everywhere on a region; 0 if that is not
        seen."""
        affine = self.affine(node)
        if affine:
            ends = [affine[0] + along(affine, vertex) for vertex in region.vertices]
            return int(min(ends) >= 0 < max(ends)) - int(min(ends) < 0 >= max(ends))
        value = arb(0)
        match node:
            case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
                value = arb(self.sign(left, region) * self.sign(right, region))
            case ast.BinOp(left=base, op=ast.Pow(), right=n) if (
                n := self.constant(n)
            ) and n.q == 1:
                value = abs(arb(self.sign(base, region))) if n.p % 2 == 0 else value
        value = self.on(node, region)(region.whole()) if value == 0 else value
        return int(value > 0) - int(value < 0)

    def known_sign(self, node: ast.expr, region: Region) -> int:
        sign = self.sign(node, region)
        need(sign != 0, f"{region.name}: the sign of a part of a formula is not seen")
        return sign

    @lru_cache(KEPT)  # noqa: B019
    def _holds(self, node: ast.expr, region: Region) -> bool:
        """Whether a condition holds almost everywhere on the region, or almost nowhere."""
        match node:
            case ast.BoolOp(op=op, values=values):
                join = all if isinstance(op, ast.And) else any
                return join(self._holds(value, region) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return not self._holds(part, region)
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _SIGNS:
                difference = ast.BinOp(a, ast.Sub(), b)
                return self.known_sign(difference, region) == _SIGNS[type(op)]
        raise Refused("the checker does not know a condition of a formula")

    @lru_cache(KEPT)  # noqa: B019
    def on(self, node: ast.expr, region: Region) -> Made:
        """The formula as a function of a place of the region."""
        made = self._made(node, region)
        shared = not isinstance(node, ast.Constant | ast.Name) and node in self.names.values()
        return (lambda place: place.once(node, made)) if shared else made

    def _made(self, node: ast.expr, region: Region) -> Made:
        match node:
            case ast.Constant() | ast.Name(id="pi"):
                number = arb.pi() if isinstance(node, ast.Name) else arb(node.value)
                return lambda _: number
            case ast.Name(id=name):
                i = self.x.index(name)
                return lambda place: place.x[i]
            case ast.UnaryOp(op=ast.USub(), operand=part):
                inner = self.on(part, region)
                return lambda place: -inner(place)
            case ast.UnaryOp(op=ast.UAdd(), operand=part):
                return self.on(part, region)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(left, right, region)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIDES:
                a, b, join = self.on(left, region), self.on(right, region), _SIDES[type(op)]
                return lambda place: join(a(place), b(place))
            case ast.Call(func=ast.Name(id=name), args=[_, *_], keywords=[]):
                return self._called(name, node.args, region)
        raise Refused(f"the checker does not know a {type(node).__name__} in a formula")

    def _power(self, base: ast.expr, exponent: ast.expr, region: Region) -> Made:
        n, inner = self.constant(exponent), self.on(base, region)
        if n is None:
            other, exp, log = self.on(exponent, region), ELEMENTARY["exp"], ELEMENTARY["log"]
            return lambda place: exp(other(place) * log(inner(place)))
        need(abs(n) <= 1000 and n.q <= 1000, "an exponent is too large")
        match base:
            case ast.Call(func=ast.Name(id="norm"), args=args) if n.q == 1 and n.p % 2 == 0:
                # |x|² is analytic everywhere.
                inner, n = self._squares(args, region), n / 2
        return lambda place: power(inner(place), n)

    def _called(self, name: str, args: list[ast.expr], region: Region) -> Made:
        if (name, len(args)) in _SHORT:
            tree = self.read(_SHORT[name, len(args)], dict(zip("ab", args, strict=False)))
            return self.on(tree, region)
        if name in ("max", "min") and len(args) > 2:
            first = ast.Call(ast.Name(name), args[:2], [])
            return self._called(name, [first, *args[2:]], region)
        if name == "where" and len(args) == 3:
            return self.on(args[1] if self._holds(args[0], region) else args[2], region)
        if name == "sign" and len(args) == 1:
            sign = arb(self.known_sign(args[0], region))
            return lambda _: sign
        if name == "norm":
            return self._norm(args, region)
        need(name in ELEMENTARY and len(args) == 1, f"the checker knows no {name} of {len(args)}")
        inner, function = self.on(args[0], region), ELEMENTARY[name]
        return lambda place: function(inner(place))

    def _squares(self, args: list[ast.expr], region: Region) -> Made:
        parts = [self.on(a, region) for a in args]
        return lambda place: sum((v * v for v in (part(place) for part in parts)), arb(0))

    def _norm(self, args: list[ast.expr], region: Region) -> Made:
        """√Σa². Where all a vanish in the apex of a triangle it is p1 times an analytic
        function."""
        rests = [region.rest_at_apex(self.affine(a)) for a in args]
        if None in rests:
            squares = self._squares(args, region)
            return lambda place: root(squares(place))
        return lambda place: place.p1 * root(sum((rest(place) ** 2 for rest in rests), arb(0)))
