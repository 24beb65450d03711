"""The equation: a problem file of cordes, read anew. Decimals are exact, pi is π."""

import ast
import tomllib
from functools import reduce
from operator import mul

from flint import arb, fmpq

from cordes_check.balls import PAIRS, NotAProof, derivatives, need, on_lines, rational
from cordes_check.cells import Cell, Place, Region
from cordes_check.formulas import Formulas

MOST_CONTROLS, MOST_TEXT = 64, 200_000
# What f may be: the operator applied to the formula `exact`, where that is smooth.
MANUFACTURED = "L(exact)"


class Box:
    """lower < x < upper."""

    def __init__(self, lower: list[fmpq], upper: list[fmpq]):
        need(len(lower) == len(upper) and len(lower) in (2, 3), "only two and three dimensions")
        need(all(l < u for l, u in zip(lower, upper, strict=True)), "the box is empty")
        self.d, self.lower, self.upper = len(lower), lower, upper
        (l, m, *_), (u, v, *_) = lower, upper
        self.outline = [(l, m), (u, m), (u, v), (l, v)]
        self.widths = [arb(u - l) for l, u in zip(lower, upper, strict=True)]
        self.volume = reduce(mul, self.widths)


class Equation:
    """The problem that a TOML text describes. For each control (one, where there are none) there are
    formulas of A, b, c and f in the order of derivatives: -c, b_i, A_ii and A_ij + A_ji, then f."""

    def __init__(self, text: object):
        try:
            table = tomllib.loads(str(text)[:MOST_TEXT], parse_float=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise NotAProof(f"the problem is no TOML text: {error}") from None
        self.text, self.kind = text, table.get("kind", "linear")
        self.table, domain, self.definitions = (
            table.get(key, {}) for key in ("equation", "domain", "definitions")
        )
        need(
            table.get("schema") == 1 and domain.get("type") == "box",
            "the checker knows boxes alone, and schema 1",
        )
        self.domain = Box(*([rational(c) for c in domain[key]] for key in ("lower", "upper")))
        self.d = self.domain.d
        self.formulas = Formulas(self.d, {} if self.kind == "hjb" else self.definitions)
        self.g = self.formulas.read(self.table.get("g", 0))
        self.interfaces = [self.formulas.read(each) for each in self.table.get("interfaces", [])]
        need(
            self.kind in ("linear", "hjb", "monge-ampere"),
            "the checker does not know this kind of problem",
        )
        self.operators = []
        if self.kind == "monge-ampere":
            self.f = self.formulas.read(self.table["f"])
        else:
            self.operators = [self._operator(names) for names in self._controls()]

    def _controls(self) -> list[dict]:
        """Each control, as definitions of its components."""
        if self.kind == "linear":
            return [self.definitions]
        controls = self.table["controls"]
        need(0 < len(controls) <= MOST_CONTROLS, "there are no controls, or too many")
        named = (
            {f"a{i + 1}": v for i, v in enumerate(c)} if isinstance(c, list) else {"a": c}
            for c in controls
        )
        return [each | self.definitions for each in named]

    def _operator(self, definitions: dict) -> tuple[Formulas, list[ast.expr]]:
        formulas, A, d = Formulas(self.d, definitions), self.table["A"], self.d
        rows = (
            A if isinstance(A, list) else [[A if i == j else 0 for j in range(d)] for i in range(d)]
        )
        b = self.table.get("b", [0] * d)
        if len(rows) != d or any(len(row) != d for row in rows) or len(b) != d:
            raise NotAProof("A or b has another size than the domain")
        second = [rows[i][i] if i == j else f"({rows[i][j]}) + ({rows[j][i]})" for i, j in PAIRS[d]]
        texts = [f"-({self.table.get('c', 0)})", *b, *second]
        f = self.table["exact" if self.table["f"] == MANUFACTURED else "f"]
        return formulas, [formulas.read(each) for each in (*texts, f)]

    def on(self, cell: Cell) -> "list[Operator]":
        return [Operator(*each, cell, self.table["f"] == MANUFACTURED) for each in self.operators]


class Operator:
    """L and f on a cell, where all signs are known; terms that are zero are left out."""

    def __init__(self, formulas: Formulas, parts: list[ast.expr], cell: Cell, manufactured: bool):
        *terms, f = parts
        self.terms = [
            (k, formulas.on(each, cell))
            for k, each in enumerate(terms)
            if formulas.constant(each) != 0
        ]
        # Along lines a triangle has no apex.
        self.f = formulas.on(f, Region(cell.vertices, cell.name) if manufactured else cell)
        self.manufactured, self.d = manufactured, cell.d

    def at(self, place: Place) -> dict[int, object]:
        return {k: term(place) for k, term in self.terms}

    def source(self, place: Place, values: dict[int, object]):
        """f at a place, where the operator has these values."""
        if not self.manufactured:
            return self.f(place)
        return applied(values, derivatives([self.f(Place(x)) for x in on_lines(place.x)], self.d))


def applied(values: dict[int, object], parts: list):
    """Lu from the values of L and the derivatives of u."""
    return sum((value * parts[k] for k, value in values.items()), arb(0))
