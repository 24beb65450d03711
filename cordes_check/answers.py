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
    series,
    to_lines,
)
from cordes_check.cells import Cell, Place, along
from cordes_check.formulas import Formulas

# The error of N is bounded where |X_k| <= WIDER for complex X; Cauchy's formula then bounds those
# of its derivatives where |X_k| <= 1. Taylor's coefficients come from circles of these radii.
WIDER, RADII = fmpq(5, 4), (2, 3, 4, 6, 8, 12, 16, 24)
DEGREES, MOST_FEATURES = range(8, 97, 8), 20_000


class Polynomial:
    """N on a cell: its Taylor polynomial in the frame, with derivatives, and a bound of the error.
    A polynomial of several variables is a list, for the powers of the last one, of polynomials of
    the others."""

    def __init__(self, cell: Cell, table: list, error: arb):
        self.cell, d = cell, cell.d
        first = [derived(table, k, d) for k in range(d)]
        self.tables = [table, *first, *(derived(first[i], j, d) for i, j in PAIRS[d])]
        self.sizes = [mapped(each, _sizes) for each in self.tables]
        e = [*zip(*cell.inverse, strict=True)]
        sums = {(i, j): [a + b for a, b in zip(e[i], e[j], strict=True)] for i, j in PAIRS[d]}
        self.moves = [e[i] if i == j else sums[i, j] for i, j in PAIRS[d]]
        room = arb(WIDER - 1)
        errors = [
            error,
            *[error / room] * d,
            *(error * (1 + (i == j)) / room**2 for i, j in PAIRS[d]),
        ]
        self.error = to_lines([around(each) for each in errors], self.moves)

    def around(self, s: list) -> list:
        """The series on lines, without their error, anywhere at (complex) parameters."""
        values = self.sizes
        for X in self.cell.frame(s):
            values = [fixed(value, largest(X)) for value in values]
        return to_lines([around(value, s[0]) for value in values], self.moves)

    def on_grid(self, rules: list, s: tuple = (), weight: object = 1, tables: list | None = None):
        """Parameters, weights and the series on lines, without errors, at all nodes of a product of
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
    """By the variable with number k."""
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


def _sizes(p: arb_poly) -> arb_poly:
    return arb_poly([c.abs_upper() for c in p.coeffs()])


class Features:
    """Σ c_j σ(w_j·z + b_j): σ a sine or tanh, z the scaled coordinates and, for interfaces φ = 0,
    inputs φ|φ|/s² or |φ|^p/s^p, p > 2 whole, which are C^{1,1} and polynomials on each side."""

    def __init__(self, data: dict, formulas: Formulas, interfaces: list[ast.expr]):
        self.formulas, d = formulas, formulas.d
        self.sine = data["activation"] == "sine"
        need(self.sine or data["activation"] == "tanh", "the checker knows sines and tanh alone")
        self.weights = [[binary(w) for w in row] for row in data["weights"]]
        keys = "biases", "coefficients", "center", "scale"
        rows = [[binary(v) for v in data[key]] for key in keys]
        self.biases, self.coefficients, self.center, self.scale = rows
        self.kinks = []
        for number, power, scale in data["kinks"]:
            affine = formulas.affine(interfaces[number])
            self.kinks.append((interfaces[number], affine, power, binary(scale)))
        counts = {len(self.coefficients), *map(len, [*self.weights, self.biases])}
        fits = len(self.weights) == d + len(self.kinks) and len(counts) == 1 and max(counts) > 0
        fits = fits and len(self.center) == len(self.scale) == d and max(counts) <= MOST_FEATURES
        if not fits or not all(v > 0 for v in (*self.scale, *(kink[3] for kink in self.kinks))):
            raise NotAProof("the weights of the answer do not belong together")

    def rounding(self) -> arb:
        """About what values of N lose in float64."""
        rows = zip(self.coefficients, self.biases, *self.weights, strict=True)
        terms = (abs(c) * (2 + sum(map(abs, others), arb(0))) for c, *others in rows)
        return sum(terms, arb(0)) * arb(2) ** -53

    def on(self, cell: Cell, precision: arb) -> Polynomial:
        """N on a cell, by the first degree whose error is so small."""
        theta, curves = self._phases(cell)
        make, bound = (_sines, _sine_error) if self.sine else (_tanh, _tanh_error)
        for n in DEGREES:
            error = bound(self.coefficients, curves, n)
            if error < precision:
                table = make(self.coefficients, theta, curves, n)
                ctx.cap = 3
                return Polynomial(cell, table, error)
        raise Refused(f"{cell.name}: too large for the frequencies of the answer")

    def _phases(self, cell: Cell) -> tuple[list[arb], list[list[list[arb]]]]:
        """θ_j and, at [k][j], the coefficients P_1, P_2, …: the phases are θ_j + Σ_k P_kj(X_k)."""
        inputs = []  # Of each its value in the middle, and pairs of an axis and coefficients along it.
        for i, (center, scale) in enumerate(zip(self.center, self.scale, strict=True)):
            slopes = [(k, [arb(v[i]) / (2 * scale)]) for k, v in enumerate(cell.directions) if v[i]]
            inputs.append(((arb(cell.middle[i]) - center) / scale, slopes))
        for (phi, affine, power, scale), row in zip(
            self.kinks, self.weights[cell.d :], strict=True
        ):
            if all(w.is_zero() for w in row):
                inputs.append((arb(0), []))
                continue
            need(power is None or power in range(3, 9), "an input that is not C^{1,1}, or no power")
            need(affine is not None, "an interface is not affine with rational coefficients")
            sign, n, moves = (
                self.formulas.sign(phi, cell),
                power or 2,
                [along(affine, v) / 2 for v in cell.directions],
            )
            axes = [k for k, move in enumerate(moves) if move]
            need(
                sign != 0 and len(axes) == 1,
                f"{cell.name}: an interface crosses it, or none of its sides is parallel to it",
            )
            start, factor = (
                affine[0] + along(affine, cell.middle),
                (sign if power is None else sign**n) / scale**n,
            )
            terms = [
                arb(comb(n, m) * start ** (n - m) * moves[axes[0]] ** m) * factor
                for m in range(n + 1)
            ]
            inputs.append((terms[0], [(axes[0], terms[1:])]))
        theta, curves = self.biases, [[[arb(0)] for _ in self.biases] for _ in range(cell.d)]
        for (value, slopes), row in zip(inputs, self.weights, strict=True):
            theta = [t + w * value for t, w in zip(theta, row, strict=True)]
            for k, terms in slopes:
                for curve, w in zip(curves[k], row, strict=True):
                    curve += [arb(0)] * (len(terms) - len(curve))
                    curve[: len(terms)] = [a + w * b for a, b in zip(curve, terms, strict=False)]
        return theta, curves


def _sines(coefficients: list, theta: list, curves: list, n: int) -> list:
    """c sin(θ + Σ P_k(X_k)) = Im c e^{iθ} Π e^{iP_k}: one product of matrices for all features."""
    i, ctx.cap = acb(0, 1), n + 1

    def taylor(curve: list) -> list[acb]:
        found = acb_series([acb(0), *(i * c for c in curve)]).exp().coeffs()
        return found + [acb(0)] * (n + 1 - len(found))

    first, *others = [[taylor(curve) for curve in row] for row in curves]
    starts = [acb(t.cos(), t.sin()) * c for t, c in zip(theta, coefficients, strict=True)]
    first = [[z * start for z in row] for row, start in zip(first, starts, strict=True)]
    left = [[z.real for z in row] + [z.imag for z in row] for row in zip(*first, strict=True)]
    right = []
    for orders in product(range(n + 1), repeat=len(others)):
        column = [others[0][j][orders[0]] for j in range(len(theta))]
        for row, m in zip(others[1:], orders[1:], strict=True):
            column = [z * row[j][m] for j, z in enumerate(column)]
        right.append([z.imag for z in column] + [z.real for z in column])
    columns = (arb_mat(right) * arb_mat(left).transpose()).tolist()
    return _nested([arb_poly(column) for column in columns], n + 1, len(others))


def _nested(polynomials: list, n: int, depth: int) -> list:
    if depth == 1:
        return polynomials
    return [_nested(polynomials[k::n], n, depth - 1) for k in range(n)]


def _sine_error(coefficients: list, curves: list, n: int) -> arb:
    """|e^{iP}| <= e^{|P|(R)} where |X| <= R, |P| with the sizes of the coefficients. By Cauchy what
    is cut off is, for |X| <= WIDER, at most e^{|P|(R)} q^(n + 1)/(1 - q), q = WIDER/R."""
    best, near = arb("inf"), [[_majorant(curve, WIDER) for curve in row] for row in curves]
    for radius in RADII:
        q, total = arb(WIDER / radius), arb(0)
        for row, small in zip(curves, near, strict=True):
            for j, c in enumerate(coefficients):
                others = sum((each[j] for each in near if each is not small), arb(0))
                total += abs(c) * (others + _majorant(row[j], fmpq(radius))).exp()
        best = min(best, (total * q ** (n + 1) / (1 - q)).abs_upper())
    return best


def _tanh(coefficients: list, theta: list, curves: list, n: int) -> list:
    """Taylor's series at θ of tanh z = 1 - 2/(e^{2z} + 1), and (Σ p_k X_k)^m by the multinomials."""
    ctx.cap, columns = n + 1, []
    terms = [((2 * arb_series([t, 1])).exp() + 1) for t in theta]
    terms = [(c * (1 - 2 / term)).coeffs() for c, term in zip(coefficients, terms, strict=True)]
    slopes = [[[curve[0] ** m for m in range(n + 1)] for curve in row] for row in curves]
    for others in product(range(n + 1), repeat=len(curves) - 1):
        column = []
        for orders in ((m, *others) for m in range(n + 1 - sum(others))):
            ways = [comb(sum(orders[: k + 1]), order) for k, order in enumerate(orders)]
            total = arb(0)
            for j, term in enumerate(terms):
                parts = [slopes[k][j][order] * ways[k] for k, order in enumerate(orders)]
                total += reduce(mul, parts, term[sum(orders)])
            column.append(total)
        columns.append(arb_poly(column))
    return _nested(columns, n + 1, len(curves) - 1)


def _tanh_error(coefficients: list, curves: list, n: int) -> arb:
    """The poles of tanh are π/2 or more from a real θ; |tanh z| <= tan 3/2 where |z - θ| <= 3/2."""
    need(all(len(curve) == 1 for row in curves for curve in row), "no tanh of interfaces")
    total = arb(0)
    for j, c in enumerate(coefficients):
        q = sum((_majorant(row[j], WIDER) for row in curves), arb(0)) / 1.5
        total += abs(c) * arb(1.5).tan() * q ** (n + 1) / (1 - q) if q < 1 else arb("inf")
    return total.abs_upper()


def _majorant(curve: list[arb], radius: fmpq) -> arb:
    """Σ |P_m| radius^m, m = 1, 2, …"""
    return sum((abs(c) * arb(radius ** (m + 1)) for m, c in enumerate(curve)), arb(0))


class BoxAnswer:
    """G + D·N on a box: D = Π (upper - x)(x - lower), and G the blend of the boundary values g:
    I - Π (I - P_i) with P_i linear between the two faces normal to axis i. On a face of axis i,
    I - P_i is zero, so that G = g there, whatever g is."""

    def __init__(self, domain, formulas: Formulas, g: ast.expr):
        self.lower, self.upper, self.formulas, self.g = domain.lower, domain.upper, formulas, g
        check_smooth(formulas, g)
        codes = [*product((None, 0, 1), repeat=domain.d)][1:]
        faces = [{i: c for i, c in enumerate(code) if c is not None} for code in codes]
        self.faces = [] if formulas.constant(g) == 0 else faces

    def size(self) -> arb:
        """The largest value of D."""
        return reduce(
            mul, (arb(u - l) ** 2 / 4 for l, u in zip(self.lower, self.upper, strict=True))
        )

    def on(self, cell: Cell) -> Callable:
        """The series of u on lines from the coordinates there and the series of N; that of D·N
        alone without `whole`."""
        ends = [[arb(v) for v in side] for side in (self.lower, self.upper)]
        lifts = []
        for face in self.faces:
            at = {i: (self.lower, self.upper)[c][i] for i, c in face.items()}
            lifts.append((face, at, self.formulas.on(self.g, cell.projected(at))))

        def answer(x: list, N, whole: bool):
            total = N
            for low, high, c in zip(*ends, x, strict=True):
                total = total * ((high - c) * (c - low))
            for face, at, g in lifts if whole else ():
                term = g(Place([series([arb(at[i])]) if i in at else c for i, c in enumerate(x)]))
                for i, side in face.items():
                    rise = (x[i] - ends[0][i]) / (ends[1][i] - ends[0][i])
                    term = term * (rise if side else 1 - rise)
                total = total + term if len(face) % 2 else total - term
            return total

        return answer


def check_smooth(formulas: Formulas, node: ast.AST) -> None:
    """g must be C^{1,1}, or the answer is not in H²: |t| only in |t|^p, p >= 2, or t|t|, and no
    other choice by a sign. (Roots and quotients give no number where they are not smooth.)"""
    match node:
        case ast.Name(id=name) if name in formulas.names:
            check_smooth(formulas, formulas.names[name])
        case ast.BinOp(left=ast.Call(func=ast.Name(id="abs"), args=[t]), op=ast.Pow(), right=n):
            need((formulas.constant(n) or 0) >= 2, "|t|^p with p < 2 in the boundary values")
            check_smooth(formulas, t)
        case ast.BinOp(left=t, op=ast.Mult(), right=ast.Call(func=ast.Name(id="abs"), args=[s])):
            need(ast.dump(s) == ast.dump(t), "t|s| in the boundary values, where t is not s")
            check_smooth(formulas, t)
        case ast.Call(func=ast.Name(id=name), args=args):
            need(
                name in (*ELEMENTARY, "sqrt", "norm"),
                f"{name} in the boundary values: they must be C^{{1,1}}",
            )
            for part in args:
                check_smooth(formulas, part)
        case _:
            for part in ast.iter_child_nodes(node):
                check_smooth(formulas, part)
