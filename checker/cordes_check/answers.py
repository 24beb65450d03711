"""The answer u = G + D·N: N on a cell is a polynomial and a proved error, D and G are formulas."""

import ast
from collections.abc import Callable
from functools import reduce
from itertools import product
from math import comb
from operator import mul

from flint import acb, acb_series, arb, arb_mat, arb_poly, arb_series, ctx, fmpq

from cordes_check.balls import (
    ELEMENTARY,
    PAIRS,
    NotAProof,
    Refused,
    around,
    binary,
    largest,
    need,
    on_lines,
    series,
    to_lines,
)
from cordes_check.cells import Cell, Place, along
from cordes_check.corners import Corner
from cordes_check.formulas import Formulas

# The error of N is bounded where |X_k| <= NEAR for complex X; Cauchy's formula then bounds those of
# its derivatives where |X_k| <= 1. Taylor's coefficients come from circles with these radii.
NEAR, RADII = fmpq(5, 4), (3, 4, 6, 8, 12, 16, 24)
DEGREES, MOST_FEATURES = range(8, 97, 8), 20_000


class Polynomial:
    """N on a cell: its Taylor polynomial in the frame, with derivatives, and a bound of the error.
    A polynomial of several variables is a list, for the powers of the last one, of polynomials of
    the others."""

    def __init__(self, cell: Cell, table: list, error: arb):
        self.cell, d = cell, cell.d
        first = [derived(table, k, d) for k in range(d)]
        self.tables = [table, *first, *(derived(first[i], j, d) for i, j in PAIRS[d])]
        sizes = lambda p: arb_poly([c.abs_upper() for c in p.coeffs()])  # noqa: E731
        self.sizes = [mapped(each, sizes) for each in self.tables]
        e = [*zip(*cell.inverse, strict=True)]
        sums = [[a + b for a, b in zip(e[i], e[j], strict=True)] for i, j in PAIRS[d]]
        self.moves = [e[i] if i == j else s for (i, j), s in zip(PAIRS[d], sums, strict=True)]
        room = arb(NEAR - 1)
        second = [error * (1 + (i == j)) / room**2 for i, j in PAIRS[d]]
        errors = [around(each) for each in (error, *[error / room] * d, *second)]
        self.error = to_lines(errors, self.moves)

    def around(self, s: list) -> list:
        """The series on lines, without their error, anywhere at (complex) parameters."""
        values = self.sizes
        for X in self.cell.frame(s):
            values = [fixed(value, largest(X)) for value in values]
        return to_lines([around(value, s[0]) for value in values], self.moves)

    def on_grid(self, rules: list, s: tuple = (), weight: object = 1, tables: list | None = None):
        """Parameters, weights and series on lines, without errors, at all nodes of a product of
        rules."""
        tables, k = tables or self.tables, len(s)
        if k == self.cell.d:
            yield s, weight, to_lines(tables, self.moves)
            return
        for node, share in rules[k]:
            X = self.cell.frame([*s, node, *[arb(0)] * self.cell.d])[k]
            part = [fixed(table, X) for table in tables]
            yield from self.on_grid(rules, (*s, node), weight * share, part)


def mapped(table, function: Callable):
    return function(table) if isinstance(table, arb_poly) else [mapped(t, function) for t in table]


def derived(table, k: int, d: int):
    """By the variable with number k of d."""
    if k == 0:
        return mapped(table, arb_poly.derivative)
    if k < d - 1:
        return [derived(t, k, d - 1) for t in table]
    return [mapped(t, lambda p, m=m: p * m) for m, t in enumerate(table) if m]


def fixed(table, value: arb):
    """With a value for the first variable."""
    if isinstance(table, arb_poly):
        return table(value)
    inner = [fixed(t, value) for t in table]
    return arb_poly(inner) if isinstance(inner[0], arb) else inner


class Features:
    """Σ c_j σ(w_j·z + b_j): σ a sine or tanh, z the scaled coordinates and, for interfaces φ = 0,
    inputs φ|φ|/s² or |φ|^p/s^p, p > 2 whole, which are C^{1,1} and polynomials on each side."""

    def __init__(self, data: dict, formulas: Formulas, interfaces: list[ast.expr]):
        self.formulas, self.sine = formulas, data["activation"] == "sine"
        need(self.sine or data["activation"] == "tanh", "the checker knows sines and tanh alone")
        self.weights = [[arb(binary(w)) for w in row] for row in data["weights"]]
        self.biases, self.coefficients = (
            [arb(binary(v)) for v in data[key]] for key in ("biases", "coefficients")
        )
        # Of each input an affine function φ, what is divided by, and the power, None for φ|φ|.
        self.inputs = []
        for i, (center, scale) in enumerate(zip(data["center"], data["scale"], strict=True)):
            slopes = [fmpq(int(i == k)) for k in range(formulas.d)]
            self.inputs.append(([-binary(center), *slopes], binary(scale), 1))
        for (number, power, scale), row in zip(
            data["kinks"], self.weights[formulas.d :], strict=True
        ):
            plain = power is None or power in range(3, 9) or all(w.is_zero() for w in row)
            need(plain, "an input that is not C^{1,1}, or no whole power")
            self.inputs.append((formulas.affine(interfaces[number]), binary(scale), power))
        counts = {len(self.coefficients), *map(len, [*self.weights, self.biases])}
        fits = len(self.weights) == len(self.inputs) >= formulas.d and len(counts) == 1
        if (
            not fits
            or not 0 < max(counts) <= MOST_FEATURES
            or any(s <= 0 for _, s, _ in self.inputs)
        ):
            raise NotAProof("the weights of the answer do not belong together")

    def rounding(self) -> arb:
        """About what values of N lose in float64."""
        rows = zip(self.coefficients, self.biases, *self.weights, strict=True)
        return (
            sum((abs(c) * (2 + sum(map(abs, row), arb(0))) for c, *row in rows), arb(0))
            * arb(2) ** -53
        )

    def on(self, cell: Cell, precision: arb) -> Polynomial:
        """N on a cell, by the first degree whose error is so small."""
        theta, curves = self._phases(cell)
        sizes = self._sizes(curves)
        for n in DEGREES:
            error = min((M * q ** (n + 1) / (1 - q)).abs_upper() for q, M in sizes)
            if error < precision:
                table = (_sines if self.sine else _tanh)(self.coefficients, theta, curves, n)
                ctx.cap = 3
                return Polynomial(cell, table, error)
        raise Refused(f"{cell.name}: too large for the frequencies of the answer")

    def _phases(self, cell: Cell) -> tuple[list[arb], list[list[list[arb]]]]:
        """θ_j and, at [k][j], the coefficients P_1, P_2, …: the phases are θ_j + Σ_k P_kj(X_k)."""
        theta, curves = self.biases, [[[arb(0)] for _ in self.biases] for _ in range(cell.d)]
        for (phi, scale, power), row in zip(self.inputs, self.weights, strict=True):
            if all(w.is_zero() for w in row):
                continue
            need(phi is not None, "an interface is not affine with rational coefficients")
            moves, n = [along(phi, v) / 2 for v in cell.directions], power or 2
            ends = [phi[0] + along(phi, vertex) for vertex in cell.vertices]
            axes, sign = [k for k in range(cell.d) if moves[k]], 1 if min(ends) >= 0 else -1
            if power != 1:
                need(min(ends) * max(ends) >= 0, f"{cell.name}: an interface crosses it")
                need(len(axes) == 1, f"{cell.name}: no side is parallel to an interface")
            start, scale = (
                phi[0] + along(phi, cell.middle),
                scale**n * sign ** ((power or 1) - (power == 1)),
            )
            theta = [t + w * arb(start**n / scale) for t, w in zip(theta, row, strict=True)]
            for k in axes:
                terms = [
                    arb(comb(n, m) * start ** (n - m) * moves[k] ** m / scale)
                    for m in range(1, n + 1)
                ]
                for curve, w in zip(curves[k], row, strict=True):
                    curve += [arb(0)] * (n - len(curve))
                    curve[:n] = [a + w * b for a, b in zip(curve, terms, strict=False)]
        return theta, curves

    def _sizes(self, curves: list) -> list[tuple[arb, arb]]:
        """Pairs q, M: |N - T_1 T_2 … N| <= M q^(n + 1)/(1 - q) where |X_k| <= NEAR, T_k cutting the
        series in X_k off at degree n. It is the sum of T_1 … T_(k - 1) (N - T_k N). By Cauchy's
        estimates N - T_k N is bounded so, q = NEAR/R, where |N| is on |X_k| <= R, and each T before
        at most doubles what holds where the other |X| <= 2 NEAR. If h bounds the imaginary part of
        a phase, |sin| <= cosh h, and |tanh| <= 1/cos h, h < π/2."""
        found, wide = [], [[_majorant(curve, 2 * NEAR) for curve in row] for row in curves]
        need(self.sine or all(len(curve) == 1 for row in curves for curve in row), "tanh of φ|φ|")
        for radius in RADII:
            total = arb(0)
            for row, own in zip(curves, wide, strict=True):
                for j, c in enumerate(self.coefficients):
                    rest = sum((each[j] for each in wide if each is not own), arb(0))
                    h = rest + _majorant(row[j], fmpq(radius))
                    total += abs(c) * (
                        h.cosh() if self.sine else 1 / h.cos() if h < 1.5 else arb("inf")
                    )
            found.append((arb(NEAR / radius), total * 2 ** (len(curves) - 1)))
        return found


def _majorant(curve: list[arb], radius: fmpq) -> arb:
    """Σ |P_m| radius^m, m = 1, 2, …"""
    return sum((abs(c) * arb(radius ** (m + 1)) for m, c in enumerate(curve)), arb(0))


def _nested(polynomials: list, n: int, depth: int) -> list:
    if depth == 1:
        return polynomials
    return [_nested(polynomials[k::n], n, depth - 1) for k in range(n)]


def _sines(coefficients: list, theta: list, curves: list, n: int) -> list:
    """c sin(θ + Σ P_k(X_k)) = Im c e^{iθ} Π e^{iP_k}: one product of matrices for all features."""
    i, ctx.cap = acb(0, 1), n + 1

    def taylor(curve: list, start: acb) -> list[acb]:
        found = (acb_series([acb(0), *(i * c for c in curve)]).exp() * start).coeffs()
        return found + [acb(0)] * (n + 1 - len(found))

    starts = [acb(t.cos(), t.sin()) * c for t, c in zip(theta, coefficients, strict=True)]
    first = [taylor(*each) for each in zip(curves[0], starts, strict=True)]
    others = [[taylor(curve, acb(1)) for curve in row] for row in curves[1:]]
    left = [[z.real for z in row] + [z.imag for z in row] for row in zip(*first, strict=True)]
    right = []
    for orders in product(range(n + 1), repeat=len(others)):
        parts = [
            [row[j][m] for row, m in zip(others, orders, strict=True)] for j in range(len(theta))
        ]
        column = [reduce(mul, each) for each in parts]
        right.append([z.imag for z in column] + [z.real for z in column])
    columns = (arb_mat(right) * arb_mat(left).transpose()).tolist()
    return _nested([arb_poly(column) for column in columns], n + 1, len(others))


def _tanh(coefficients: list, theta: list, curves: list, n: int) -> list:
    """Taylor's series at θ of tanh z = 1 - 2/(e^{2z} + 1), and (Σ p_k X_k)^m by the
    multinomials."""
    ctx.cap, columns = n * len(curves) + 1, []
    terms = [(1 - 2 / ((2 * arb_series([t, 1])).exp() + 1)).coeffs() for t in theta]
    slopes = [[[curve[0] ** m for m in range(n + 1)] for curve in row] for row in curves]
    for others in product(range(n + 1), repeat=len(curves) - 1):
        column = []
        for orders in ((m, *others) for m in range(n + 1)):
            ways = reduce(mul, (comb(sum(orders[: k + 1]), m) for k, m in enumerate(orders)))
            total = arb(0)
            for j, c in enumerate(coefficients):
                parts = [slopes[k][j][m] for k, m in enumerate(orders)]
                total += reduce(mul, parts, c * ways * terms[j][sum(orders)])
            column.append(total)
        columns.append(arb_poly(column))
    return _nested(columns, n + 1, len(curves) - 1)


class BoxAnswer:
    """G + D·N + Σ S on a box: D = Π (upper - x)(x - lower), S singular functions, and G the blend
    of the boundary values g: I - Π (I - P_i) with P_i linear between the two faces normal to axis
    i. On a face of axis i, I - P_i is zero, so that G = g there, whatever g is."""

    def __init__(self, domain, formulas: Formulas, g: ast.expr, corners: list[Corner]):
        self.lower, self.upper, self.formulas, self.g = domain.lower, domain.upper, formulas, g
        self.corners = corners
        check_smooth(formulas, g)
        codes = [*product((None, 0, 1), repeat=domain.d)][1:]
        faces = [{i: c for i, c in enumerate(code) if c is not None} for code in codes]
        self.faces = [] if formulas.constant(g) == 0 else faces

    def size(self) -> arb:
        """The largest value of D."""
        widths = (u - l for l, u in zip(self.lower, self.upper, strict=True))
        return reduce(mul, (arb(width) ** 2 / 4 for width in widths))

    def on(self, cell: Cell) -> Callable:
        """The series of u on the lines through a place, from those of N; those of D·N alone without
        `whole`. On the tip of a corner they do without its own singular functions."""
        ends = [[arb(v) for v in side] for side in (self.lower, self.upper)]
        fixed = [
            {i: (self.lower, self.upper)[c][i] for i, c in face.items()} for face in self.faces
        ]
        made = [self.formulas.on(self.g, cell.projected(at)) for at in fixed]
        others = [c for c in self.corners if cell.kind != "tip" or c.at != cell.origin]
        singular = [corner.on(cell) for corner in others]

        def lift(x: list):
            total = arb(0)
            for face, g in zip(self.faces, made, strict=True):
                at = [series([ends[face[i]][i]]) if i in face else c for i, c in enumerate(x)]
                term = g(Place(at))
                for i, side in face.items():
                    rise = (x[i] - ends[0][i]) / (ends[1][i] - ends[0][i])
                    term = term * (rise if side else 1 - rise)
                total = total + term if len(face) % 2 else total - term
            return total

        def answer(place: Place, networks: list, whole: bool) -> list:
            lines, found = on_lines(place.x), []
            for x, N in zip(lines, networks, strict=True):
                factors = (
                    f for low, high, c in zip(*ends, x, strict=True) for f in (high - c, c - low)
                )
                found.append(reduce(mul, factors, N) + (lift(x) if whole else 0))
            for S in [each(place) for each in singular] if whole else []:
                found = [u + s for u, s in zip(found, S, strict=True)]
            return found

        # Singular functions are bounded in parts of a ball.
        answer.cuts = 4 if singular else 0
        return answer

    def tip(self, cell: Cell) -> arb:
        """A bound of the norms, on a tip, of the singular functions that were left out."""
        return sum((c.tip(cell) for c in self.corners if c.at == cell.origin), arb(0))


def check_smooth(formulas: Formulas, tree: ast.AST) -> None:
    """g must be C^{1,1}, or the answer is not in H²: |t| only in |t|^p, p >= 2, or t|t|, and no
    other choice by a sign. (Roots and quotients give no number where they are not smooth.)"""
    todo, seen = [tree], set()
    while todo:
        node = todo.pop()
        parts, good = [*ast.iter_child_nodes(node)], True
        match node:
            case ast.BinOp(left=ast.Call(func=ast.Name(id="abs"), args=[t]), op=ast.Pow(), right=n):
                parts, good = [t], (formulas.constant(n) or 0) >= 2
            case ast.BinOp(left=t, op=ast.Mult(), right=ast.Call(func=ast.Name("abs"), args=[s])):
                parts, good = [t], s is t or None is not formulas.affine(s) == formulas.affine(t)
            case ast.Call(func=ast.Name(id=name), args=args):
                parts, good = args, name in (*ELEMENTARY, "sqrt", "norm")
        need(good, "g is not seen to be C^{1,1}: |t| only as t|t|, |t|^p, p >= 2")
        todo += [part for part in parts if part not in seen]
        seen.update(parts)
