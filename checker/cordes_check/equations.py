"""The equation: a problem file of cordes, read anew. Decimals are exact, pi is π."""

import re
import tomllib
from ast import Add, BinOp, UnaryOp, USub, expr
from functools import reduce
from operator import mul
from typing import Any

from flint import arb, fmpq

from cordes_check.balls import PAIRS, NotAProof, derivatives, need, on_lines, rational
from cordes_check.cells import Cell, Place, Region
from cordes_check.formulas import Formulas

MOST_CONTROLS, MOST_TEXT = 64, 200_000
# A quoted text, and a key of more parts than any table here has: Python's reader takes memory by
# the square of their number.
_QUOTED = re.compile(r"""\"(?:[^"\\\n]|\\.)*+\"?|'[^'\n]*+'?""")
_LONG_KEY = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){20}")
TABLES = {"schema", "kind", "name", "domain", "definitions", "equation"}
# The parts of an equation, which no definition may be mistaken for. `exact`, unless f = L(exact),
# `interfaces` and `epsilon` say nothing about u.
PARTS = {"monge-ampere": {"f", "g", "exact", "interfaces"}}
PARTS["linear"] = PARTS["monge-ampere"] | {"A", "b", "c", "epsilon"}
PARTS["hjb"] = PARTS["linear"] | {"controls", "sense", "switch", "above", "below"}
KINDS = {
    "linear": "A:D²u + b·∇u - c u = f almost everywhere",
    "sup": "sup (A:D²u + b·∇u - c u - f) = 0 over all controls a, almost everywhere",
    "inf": "inf (A:D²u + b·∇u - c u - f) = 0 over all controls a, almost everywhere",
    "monge-ampere": "det D²u = f, u convex",
}
# A loss e_a >= 0 that f may have for each control, zero for one of them at every point. With
# r_a = L^a u_θ - f without the loss, sup (r_a - e_a) is at most sup r_a, and at least r_a of the
# control without a loss: in size at most max |r_a|. The same for inf (r_a + e_a).
LOSS = [f"is this {s} (above·max(switch, 0) + below·max(-switch, 0))" for s in ("minus", "plus")]
# What f may be: the operator applied to the formula `exact`, wherever that is smooth.
MANUFACTURED = "L(exact)"


def listed(value: object) -> list:
    """A list; characters of a text, and keys of a table, would be printed as something else."""
    if not isinstance(value, list):
        raise NotAProof(f"{str(value)[:60]!r} is no list")
    return value


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
    """The problem that a TOML text describes. For each control (one, where there are none) there
    are formulas of the parts of L in the order of derivatives, -c, b_i, A_ii or A_ij + A_ji, then
    f."""

    def __init__(self, text: object):
        toml = str(text)
        if len(toml) > MOST_TEXT or _LONG_KEY.search(_QUOTED.sub("q", toml)):
            raise NotAProof("the text of the problem, or one of its keys, is too long")
        try:
            table = tomllib.loads(toml, parse_float=str)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise NotAProof(f"the problem is no TOML text: {error}") from None
        self.kind, self.table, self.place = table["kind"], table["equation"], table["domain"]
        need({*table} <= TABLES, "a table that is not known here")
        self.definitions = table.get("definitions", {})
        need(
            (PARTS["hjb"] | {"u"}).isdisjoint(self.definitions), "a definition is named like a part"
        )
        known = self.kind in ("linear", "hjb", "monge-ampere") and table["schema"] == 1
        need(known, "a kind of problem that is not known here")
        need({*self.table} <= PARTS[self.kind], "a part of the equation is not known here")
        self.sense = self.table.get("sense", "sup") if self.kind == "hjb" else self.kind
        senses = ("sup", "inf") if self.kind == "hjb" else (self.kind,)
        need(self.sense in senses, "neither a supremum nor an infimum")
        sides = ("lower", "upper")
        known = self.place["type"] == "box" and {*self.place} == {"type", *sides}
        need(known, "a domain that is not known here")
        self.domain = Box(*([rational(c) for c in listed(self.place[key])] for key in sides))
        self.d, self.manufactured = self.domain.d, self.table["f"] == MANUFACTURED
        self.formulas = Formulas(self.d, {} if self.kind == "hjb" else self.definitions)
        self.g = self.formulas.read(self.table.get("g", 0))
        self.interfaces = [
            self.formulas.read(each) for each in listed(self.table.get("interfaces", []))
        ]
        self.f, self.operators, self.switch = None, [], None
        if self.kind == "monge-ampere":
            self.f = self.formulas.read(self.table["f"])
        else:
            self.operators = [self._operator(names) for names in self._controls()]

    def _controls(self) -> list[dict]:
        """Each control, as definitions of its components."""
        if self.kind == "linear":
            return [self.definitions]
        controls, found = listed(self.table["controls"]), []
        need(0 < len(controls) <= MOST_CONTROLS, "there are no controls, or too many")
        for each in controls:
            parts = each if isinstance(each, list) else [each]
            names = [f"a{i + 1}" for i in range(len(parts))] if isinstance(each, list) else ["a"]
            need(not {*names} & {*self.definitions}, "a definition has the name of a control")
            found.append(dict(zip(names, parts, strict=True)) | self.definitions)
        if "switch" in self.table:
            self.switch = self.formulas.read(self.table["switch"])
            for losses in (
                [rational(v) for v in listed(self.table[key])] for key in ("above", "below")
            ):
                need(len(losses) == len(controls) and min(losses) == 0, "no loss for controls")
        return found

    def _operator(self, definitions: dict) -> tuple[Formulas, list[expr]]:
        formulas, A, d = Formulas(self.d, definitions), self.table["A"], self.d
        A = A if isinstance(A, list) else [[A if i == j else 0 for j in range(d)] for i in range(d)]
        rows = [[formulas.read(entry) for entry in listed(row)] for row in A]
        b = [formulas.read(entry) for entry in listed(self.table.get("b", [0] * d))]
        if len(rows) != d or any(len(row) != d for row in rows) or len(b) != d:
            raise NotAProof("A or b has another size than the domain")
        c = UnaryOp(USub(), formulas.read(self.table.get("c", 0)))
        second = [
            rows[i][i] if i == j else BinOp(rows[i][j], Add(), rows[j][i]) for i, j in PAIRS[d]
        ]
        f = formulas.read(self.table["exact" if self.manufactured else "f"])
        return formulas, [c, *b, *second, f]

    def on(self, cell: Cell) -> "list[Operator]":
        return [Operator(*each, cell, self.manufactured) for each in self.operators]

    def words(self) -> list[str]:
        """The problem, line by line."""
        keys = ("controls", "A", "b", "c", "f", "exact", "switch", "above", "below", "g")
        keys = [key for key in keys if key in self.table and (key != "exact" or self.manufactured)]
        sides = [
            f"({l}, {u})" for l, u in zip(self.place["lower"], self.place["upper"], strict=True)
        ]
        lines = [f"Ω = {' × '.join(sides)}", *(f"{k} = {v}" for k, v in self.definitions.items())]
        lines += [f"{key} = {str(self.table[key]).replace(chr(39), '')}" for key in keys]
        if "A" in keys and not isinstance(self.table["A"], list):
            lines = [f"{line} times I" if line.startswith("A = ") else line for line in lines]
        lines += [f"{key} = 0" for key in ("b", "c") if self.operators and key not in self.table]
        loss = ["f " + LOSS[self.sense == "sup"]] if "switch" in self.table else []
        lines += [*([] if "g" in self.table else ["g = 0"]), *loss]
        lines += ["f is L(exact) where exact is smooth"] if self.manufactured else []
        return [" ".join(line.split()) for line in lines]


class Operator:
    """L and f on a cell, where all signs are known; parts that are zero are left out."""

    def __init__(self, formulas: Formulas, parts: list[expr], cell: Cell, manufactured: bool):
        *terms, f = parts
        used = [k for k, term in enumerate(terms) if formulas.constant(term) != 0]
        self.terms = [(k, formulas.on(terms[k], cell)) for k in used]
        # On lines a triangle has no apex.
        self.f = formulas.on(f, Region(cell.vertices, cell.name) if manufactured else cell)
        self.manufactured, self.d = manufactured, cell.d

    def at(self, place: Place) -> dict[int, Any]:
        """The parts of L."""
        return {k: term(place) for k, term in self.terms}

    def source(self, place: Place, parts: dict[int, Any]):
        """f, where L has these parts."""
        if not self.manufactured:
            return self.f(place)
        lines = [self.f(Place(x)) for x in on_lines(place.x)]
        return applied(parts, derivatives(lines, self.d))


def applied(parts: dict[int, Any], values: list):
    """Lu from the parts of L and the derivatives of u."""
    return sum((part * values[k] for k, part in parts.items()), arb(0))
