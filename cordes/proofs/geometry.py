"""Cells for a proof: on each of them every part of the equation is analytic, and the answer is a
polynomial up to an error that is small enough.

Lines where a sign changes become sides of cells, points where a length vanishes become corners, at
which cells are triangles. How small cells are follows from the frequencies of the answer.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from flint import fmpq

from cordes.proofs.needed import NotProvedError
from cordes_check.balls import rational
from cordes_check.equations import Box, Equation
from cordes_check.formulas import Formulas

# Frequency times half of the side of a cell: the degree of its polynomial is several times this.
LARGEST_PHASE = 6.0
MOST_CELLS, DEEPEST = 5000, 8
# Around a singular point each ring is so many times narrower than the one outside of it.
NARROWER = fmpq(1, 16)
Affine = list[fmpq]


class Switches:
    """What formulas ask for: affine functions, by their sign, and lists of those whose length they
    take."""

    def __init__(self, equation: Equation):
        self.lines: list[Affine] = []
        self.lengths: list[list[Affine | None]] = []
        self._seen: set[ast.AST] = set()
        for phi in equation.interfaces:
            self.lines += factors(equation.formulas, phi)
        for formulas, trees in equation.operators:
            for tree in trees:
                self._visit(formulas, tree)
        for tree in (equation.g, *([] if equation.f is None else [equation.f])):
            self._visit(equation.formulas, tree)

    def _visit(self, formulas: Formulas, node: ast.AST) -> None:
        if node in self._seen:
            return
        self._seen.add(node)
        for part in asked(node):
            self.lines += factors(formulas, part)
        if isinstance(node, ast.Name) and node.id in formulas.names:
            self._visit(formulas, formulas.names[node.id])
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "norm":
            self.lengths.append([formulas.affine(part) for part in node.args])
        square = (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _even(formulas, node)
        )
        for part in [] if square else ast.iter_child_nodes(node):
            self._visit(formulas, part)


def _even(formulas: Formulas, node: ast.BinOp) -> bool:
    """Whether this is an even power of a length, which is smooth."""
    n, base = formulas.constant(node.right), node.left
    base = formulas.names.get(base.id, base) if isinstance(base, ast.Name) else base
    length = isinstance(base, ast.Call) and getattr(base.func, "id", "") == "norm"
    return length and n is not None and n.q == 1 and n.p % 2 == 0


def asked(node: ast.AST) -> list[ast.expr]:
    """What a sign is asked of."""
    match node:
        case ast.Call(func=ast.Name(id="sign" | "abs" | "cbrt"), args=[part]):
            return [part]
        case ast.Call(func=ast.Name(id="max" | "min"), args=args):
            return [ast.BinOp(a, ast.Sub(), b) for k, a in enumerate(args) for b in args[:k]]
        case ast.Compare(left=left, comparators=others):
            return [
                ast.BinOp(a, ast.Sub(), b) for a, b in zip([left, *others], others, strict=False)
            ]
    return []


def factors(formulas: Formulas, node: ast.expr) -> Iterator[Affine]:
    """The affine functions, not constant, of which a formula is a product."""
    affine = formulas.affine(node)
    if affine is not None:
        if any(affine[1:]):
            yield affine
        return
    match node:
        case ast.Name(id=name) if name in formulas.names:
            yield from factors(formulas, formulas.names[name])
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            yield from factors(formulas, left)
            yield from factors(formulas, right)
        case ast.BinOp(left=base, op=ast.Pow()):
            yield from factors(formulas, base)
        case ast.UnaryOp(operand=part) | ast.Call(func=ast.Name(id="abs" | "sign"), args=[part]):
            yield from factors(formulas, part)


class Singular(NamedTuple):
    """A point with singular functions, and how many rings of trapezoids lie around it."""

    at: tuple
    rings: int


def box_cells(equation: Equation, frequencies: np.ndarray, singular: list[Singular]) -> list[list]:
    """Cells of a box, as a proof has them; `frequencies` (d,) are the largest along each axis. Only
    in the plane there are points where a length vanishes or functions are singular."""
    domain, found = equation.domain, Switches(equation)
    cuts: list[set[fmpq]] = [{l, u} for l, u in zip(domain.lower, domain.upper, strict=True)]
    for affine in found.lines:
        axes = [k for k, slope in enumerate(affine[1:]) if slope]
        if not crosses(domain, affine):
            continue
        if len(axes) != 1:
            raise NotProvedError(
                "a line where a coefficient jumps is not parallel to the sides of the box"
            )
        cuts[axes[0]].add(-affine[0] / affine[1 + axes[0]])
    lengths = (zero(pair) for pair in found.lengths if domain.d == 2)
    tips = [tip for tip in lengths if tip is not None and inside(domain, tip)]
    rings = {point.at: point.rings for point in singular}
    for point in (*tips, *rings):
        for side, c in zip(cuts, point, strict=True):
            side.add(c)
    # No cell has two special corners, and what is singular is not too near for its neighbours.
    least = 3 if rings else 2 if len(tips) > 1 else 1
    grid = [
        subdivided(sorted(side), 2 * LARGEST_PHASE / f, least)
        for side, f in zip(cuts, frequencies, strict=True)
    ]
    if np.prod([len(side) - 1 for side in grid]) > MOST_CELLS:
        raise NotProvedError(
            "the answer has so high frequencies that a proof would take too many cells"
        )
    cells = []
    for sides in product(*map(pairwise, grid)):
        if domain.d > 2:
            cells.append(box(sides))
            continue
        (l, u), (m, v) = sides
        corners = [(l, m), (u, m), (u, v), (l, v)]
        at = next((k for k, corner in enumerate(corners) if corner in (*tips, *rings)), None)
        if at is None:
            cells.append(box(sides))
        elif corners[at] in rings:
            cells += [
                ring for t in triangles(corners, at) for ring in graded(*t, rings[corners[at]])
            ]
        else:
            cells += [["triangle", *rows(*t)] for t in triangles(corners, at)]
    return cells


def box(sides: Sequence[tuple]) -> list:
    """A cell along the axes."""
    widths = [high - low for low, high in sides]
    moves = [[w * (i == k) for i in range(len(sides))] for k, w in enumerate(widths)]
    return ["box", *rows([low for low, _ in sides], *moves)]


def triangles(corners: list[tuple], at: int) -> list[tuple[tuple, tuple, tuple]]:
    """The two triangles of a rectangle with their apex in one of its corners, in frames that are
    parallel to the axes."""
    tip, a, b, c = corners[at:] + corners[:at]
    return [(tip, minus(p, tip), minus(b, p)) for p in (a, c)]


def graded(apex: tuple, d: tuple, e: tuple, rings: int) -> list[list]:
    """A triangle as trapezoids, each NARROWER than the one outside, and a tip."""
    found = []
    for k in range(rings):
        scaled = [tuple(c * NARROWER**k for c in v) for v in (d, e)]
        found.append(["trapezoid", *rows(apex, *scaled), [str(NARROWER)]])
    return [*found, ["tip", *rows(apex, *(tuple(c * NARROWER**rings for c in v) for v in (d, e)))]]


def minus(a: Sequence, b: Sequence) -> tuple:
    return tuple(p - q for p, q in zip(a, b, strict=True))


def rows(*vectors: Sequence) -> list[list[str]]:
    return [[str(c) for c in vector] for vector in vectors]


def crosses(domain: Box, affine: Affine) -> bool:
    values = [
        affine[0] + sum(c * v for c, v in zip(affine[1:], corner, strict=True))
        for corner in product(*zip(domain.lower, domain.upper, strict=True))
    ]
    return min(values) < 0 < max(values)


def inside(domain: Box, point: tuple) -> bool:
    return all(l <= c <= u for l, c, u in zip(domain.lower, point, domain.upper, strict=True))


def zero(pair: list[Affine | None]) -> tuple | None:
    """The point where two affine functions vanish."""
    given = [affine for affine in pair if affine is not None]
    if len(given) != 2:
        return None
    (p, a, b), (q, c, d) = given
    determinant = a * d - b * c
    return (
        None if determinant == 0 else ((b * q - d * p) / determinant, (c * p - a * q) / determinant)
    )


def subdivided(cuts: list[fmpq], size: float, least: int) -> list[fmpq]:
    """The same cuts, and others between them, so that no part is longer than a size."""
    found = cuts[:1]
    for low, high in pairwise(cuts):
        count = max(int(np.ceil(float(high - low) / size - 1e-9)), least)
        found += [low + (high - low) * fmpq(k, count) for k in range(1, count + 1)]
    return found


def refined(cells: list[list], works: Callable[[list], bool]) -> list[list]:
    """Cells for which something works: those for which it does not are cut in four."""
    found, todo, deepest = [], [(cell, 0) for cell in cells], 0
    while todo:
        cell, depth = todo.pop()
        if works(cell):
            found.append(cell)
            continue
        deepest = max(deepest, depth + 1)
        if deepest > DEEPEST or len(todo) + len(found) > MOST_CELLS:
            raise NotProvedError("the data are not seen to be analytic on cells of any size")
        todo += [(part, depth + 1) for part in quarters(cell)]
    return found


def halved(origin: list, moves: list[list]) -> list[list]:
    """All boxes with half of the sides."""
    found = []
    for at in product((0, 1), repeat=len(moves)):
        steps = [v for k, v in zip(at, moves, strict=True) if k]
        found.append(
            ["box", *rows([sum(each, c) for c, *each in zip(origin, *steps, strict=True)], *moves)]
        )
    return found


def quarters(cell: list) -> list[list]:
    """A cell in parts; of a triangle one keeps the apex."""
    kind, *given = cell
    vectors = [[rational(c) for c in row] for row in given]
    if kind == "box":
        return halved(vectors[0], [[c / 2 for c in v] for v in vectors[1:]])
    o, d, e = vectors[:3]

    def at(p: fmpq, q: fmpq) -> tuple:
        return tuple(a + p * b + q * c for a, b, c in zip(o, d, e, strict=True))

    m, one, none = fmpq(1, 2), fmpq(1), fmpq(0)
    if kind == "trapezoid":
        (low,) = vectors[3]
        middle = fmpq(round(2**20 * float(low) ** 0.5), 2**20)
        inner = [tuple(c * middle for c in v) for v in (d, e)]
        return [
            ["trapezoid", *rows(o, d, e), [str(middle)]],
            ["trapezoid", *rows(o, *inner), [str(low / middle)]],
        ]
    if kind == "tip":
        raise NotProvedError("the data are not bounded at a singular point")
    parts = [
        ((none, none), (m, none), (m, m)),
        ((m, none), (one, none), (one, m)),
        ((m, none), (one, m), (m, m)),
        ((m, m), (one, m), (one, one)),
    ]
    corners = [[at(*each) for each in part] for part in parts]
    return [["triangle", *rows(a, minus(b, a), minus(c, b))] for a, b, c in corners]
