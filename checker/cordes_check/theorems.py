"""The theorems: what they need everywhere, what is integrated for them, and what follows.

T2, for linear equations and control problems. Let M be a constant symmetric positive definite
matrix, λ >= 0, and β, α2, α1, α0 >= 0 weights with

    (β + α2 (1 - 1/d)) μ² + α1 μ + α0 <= (μ + λ)²   for all μ >= λ1,

where ∫ M∇v·∇v >= λ1 ∫ v² on H¹0. In the metric of M, with t = tr M⁻¹A and A0 = A - (t/d) M, let

    Q = (g t/d - 1)²/β + g²|A0|²/α2 + g²|b|²/α1 + (g c - λ)²/α0 <= s² < 1   a.e.  (0/0 = 0)

for every control, with a multiplier g > 0 that is bounded from both sides. On a bounded convex Ω
there is then exactly one u in H² with sup (Lu - f) = 0 and u = g on the boundary, and v = u - u_θ
has ‖M:D²v - λv‖ <= ‖sup g (L u_θ - f)‖ / (1 - s). An exponential transform v = e^{-φ/2} z replaces
b by b - A∇φ, c by c + b·∇φ/2 - A∇φ·∇φ/4 + A:D²φ/2 and the residual r by e^{φ/2} r, and bounds z.
An infimum is minus the supremum of minus.
"""

from collections.abc import Callable

from flint import arb, arb_mat, fmpq

from cordes_check.balls import (
    PAIRS,
    derivatives,
    dot,
    largest,
    need,
    power,
    rational,
    root,
    rounded,
)
from cordes_check.cells import Cell, Place, everywhere
from cordes_check.equations import Equation, applied

Bounds = dict[str, arb]


def matrix(rows: list) -> arb_mat:
    return arb_mat([[arb(rational(c)) for c in row] for row in rows])


def symmetric(rows: list) -> arb_mat:
    need([*map(list, zip(*rows, strict=True))] == rows, "a matrix is not symmetric")
    return matrix(rows)


def positive(form: arb_mat) -> bool:
    """Whether a symmetric matrix is seen to be positive definite, by its leading minors."""
    rows = form.tolist()
    return all(arb_mat([row[:k] for row in rows[:k]]).det() > 0 for k in range(1, len(rows) + 1))


class Transform:
    """φ = constant + p·y + y·Sy/2, y = x - center, and its bounds, which are found on the way."""

    def __init__(self, data: dict):
        self.center, self.p = ([arb(rational(c)) for c in data[key]] for key in ("center", "p"))
        self.constant, self.S = arb(rational(data["constant"])), symmetric(data["S"]).tolist()
        self.lowest, self.steepest = arb("inf"), arb(0)

    def at(self, x: list) -> tuple:
        """φ and ∇φ."""
        y = [c - m for c, m in zip(x, self.center, strict=True)]
        slope = [p + dot(row, y) for p, row in zip(self.p, self.S, strict=True)]
        return self.constant + (dot(self.p, y) + dot(slope, y)) / 2, slope

    def see(self, place: Place) -> None:
        phi, slope = self.at(place.x)
        self.lowest = min(self.lowest, phi.lower())
        self.steepest = max(self.steepest, dot(slope, slope).upper())


class Contraction:
    """T2 with its parameters, of which nothing is trusted."""

    space = "in H²(Ω)"

    def __init__(self, equation: Equation, data: dict):
        self.equation, self.d, self.M = equation, equation.d, symmetric(data["M"])
        need(bool(equation.operators), "T2 is about linear equations and control")
        keys, V = ("least", "lambda", "s"), matrix(data["V"])
        self.least, self.lambda_, self.s = (arb(rational(data[key])) for key in keys)
        unit = matrix([[int(i == j) for j in range(self.d)] for i in range(self.d)])
        need(self.least > 0 and positive(self.M - self.least * unit), "M is less than claimed")
        need(positive(self.M - V * V.transpose()), "M - V Vᵀ is not positive definite")
        need(self.lambda_ >= 0 and 0 < self.s < 1, "λ < 0, or s is not between 0 and 1")
        # λ1: along a column v of V a chord has a length of at most |v| / max (v_i / width_i), and
        # (v·∇)² sees one dimension only.
        total, widths = arb(0), equation.domain.widths
        for v in V.transpose().tolist():
            total += max(((c / w) ** 2).lower() for c, w in zip(v, widths, strict=True))
        self.eigenvalue = (arb.pi() ** 2 * total).lower()
        self.weights = self._normalised([arb(rational(w)) for w in data["weights"]])
        self.inverse = self.M.inv().tolist()
        self.transform = Transform(data["transform"]) if data["transform"] else None
        # Suprema of (ρ')², of |b|² and |c| times the square of d/t or d/t, without the transform.
        self.suprema = [arb(0)] * 3

    def _normalised(self, weights: list[arb]) -> list[arb]:
        """Divided by the largest value of (κμ² + α1 μ + α0)/(μ + λ)², κ = β + α2 (1 - 1/d), over
        μ >= λ1: with y = 1/(μ + λ) it is κ + q1 y + q2 y² on [0, Y]."""
        beta, second, first, zeroth = weights
        l, kappa = self.lambda_, beta + second * (self.d - 1) / self.d
        q1, q2, Y = (
            first - 2 * kappa * l,
            kappa * l**2 - first * l + zeroth,
            1 / (self.eigenvalue + l),
        )
        values = [kappa, kappa + q1 * Y + q2 * Y * Y]
        if not (q2 >= 0 or q1 <= 0 or -q1 / (2 * q2) >= Y):
            values.append(kappa - q1 * q1 / (4 * q2))
        fit = all(w >= 0 for w in weights) and second > 0 and all(v.is_finite() for v in values)
        need(fit, "weights out of range")
        return [w / max(value.upper() for value in values) for w in weights]

    def invariants(
        self, parts: dict, x: list, phi: object = None, slope: list | None = None
    ) -> tuple:
        """t/d, |A0|², |b|² and c in the metric of M; after the transform, where ∇φ is given."""
        d, zero, A = self.d, arb(0), {}
        for k, (i, j) in enumerate(PAIRS[d], start=d + 1):
            A[i, j] = A[j, i] = parts.get(k, zero) / (1 if i == j else 2)
        A = [[A[i, j] for j in range(d)] for i in range(d)]
        b, c = [parts.get(1 + i, zero) for i in range(d)], -parts.get(0, zero)
        if slope:
            image = [dot(row, slope) for row in A]
            bend = sum(map(dot, A, self.transform.S), zero)
            c = c + (dot(b, slope) + bend) / 2 - dot(image, slope) / 4
            b = [p - q for p, q in zip(b, image, strict=True)]
        B = [[dot(row, column) for column in A] for row in self.inverse]
        t = sum((B[i][i] for i in range(d)), zero) / d
        C = [[B[i][j] - (t if i == j else 0) for j in range(d)] for i in range(d)]
        square = sum((C[i][j] * C[j][i] for i in range(d) for j in range(d)), zero)
        return t, square, dot(b, [dot(row, b) for row in self.inverse]), c

    def multiplier(self, t, square, drift, c):
        """d/tr M⁻¹A where β = 0, else what makes Q smallest."""
        if self.weights[0] == 0:
            return 1 / t
        inverse = [1 / w if w > 0 else arb(0) for w in self.weights]
        above = t * inverse[0] + self.lambda_ * c * inverse[3]
        return above / dot([t * t, square, drift, c * c], inverse)

    def check(self, cells: list[Cell]) -> str:
        """Q <= s² with bounded coefficients everywhere, for all controls."""
        count, lowest = everywhere(cells, self._test_on, "Q <= s² < 1"), self.eigenvalue
        return f"Q <= {rounded(self.s, True)}² on {count} pieces, λ1 >= {rounded(lowest, False)}"

    def _test_on(self, cell: Cell) -> Callable[[Place], bool]:
        operators, switch = self.equation.on(cell), self.equation.switch
        # A loss must be a bounded function.
        loss = switch and self.equation.formulas.on(switch, cell)

        def test(place: Place) -> bool:
            every = [operator.at(place) for operator in operators]
            moved = self.transform.at(place.x) if self.transform else ()
            fits = all(self._below(*self.invariants(parts, place.x, *moved)) for parts in every)
            fits = fits and (loss is None or loss(place).is_finite())
            if fits and self.transform:
                self.transform.see(place)
            for t, square, drift, c in (self.invariants(parts, place.x) for parts in every if fits):
                found = square / t**2 * (self.d - 1) / self.d, drift / t**2, c / t
                self.suprema = [
                    max(a, largest(b)) for a, b in zip(self.suprema, found, strict=True)
                ]
            return fits

        return test

    def _below(self, t, square, drift, c) -> bool:
        """Whether t > 0 and Q <= s²."""
        g, total = self.multiplier(t, square, drift, c), arb(0)
        parts = [
            (g * t - 1) ** 2,
            g**2 * abs(square),
            g**2 * abs(drift),
            (g * c - self.lambda_) ** 2,
        ]
        for k, (part, weight) in enumerate(zip(parts, self.weights, strict=True)):
            if weight > 0:
                total += part / weight
            elif k > 0 and not part.is_zero():  # With β = 0 the first part is zero: g t/d = 1.
                return False
        return t > 0 and g > 0 and g.is_finite() and total <= self.s**2

    def on(self, cell: Cell, answer: Callable) -> "Residual":
        return Residual(self, cell, answer)

    def look(self, integrand: "Residual", N, values: list, moved: list, rules: list) -> None:
        """Nothing more is needed of a cell."""

    def bounds(self, norms: list[arb]) -> Bounds:
        """What follows from the norms of the functions of `Residual`."""
        plain, mean, *others = norms
        m, l, mu, det = len(others), self.lambda_, self.eigenvalue, self.M.det()
        spread = root(sum((n * n for n in others), arb(0)) * (m - 1) / m) if m else arb(0)
        energy = (mean + spread) / (1 - self.s)
        # Green's function has its largest norm at the centre of a ball of the same volume
        # (Talenti), and at most that of the whole space where λ > 0.
        pi, volume = arb.pi(), self.equation.domain.volume
        green = [root(volume / det / 8) / pi, root(1 / (4 * pi * l * root(det)))]
        if self.d == 3:
            radius = power(3 * volume / (4 * pi), fmpq(1, 3))
            green = [
                root(radius / (12 * pi)) / power(det, fmpq(1, 3)),
                root(1 / (8 * pi * root(l * det))),
            ]
        slope = root(mu) / (mu + l) if l <= mu else 1 / (2 * root(l))
        shrink, steep = arb(1), arb(0)
        if self.transform:
            shrink, steep = (-self.transform.lowest / 2).exp(), root(self.transform.steepest)
        found = {
            "L2": shrink * energy / (mu + l),
            "Linf": shrink * energy * min(map(largest, green)),
            "H1": shrink * energy * (slope / root(self.least) + steep / (2 * (mu + l))),
            "H2": arb("inf") if self.transform else energy / self.least,
        }
        return self._interpolated(found, plain) if not others else found

    def _interpolated(self, found: Bounds, norm: arb) -> Bounds:
        """With V >= ‖v‖, τ = d/t, ρ the supremum of ρ' = |A0| √(d (d - 1))/t, B that of τ|b| and Γ
        that of τ|c|, E = ‖M:D²v‖ has (1 - ρ)E <= ‖τr‖ + B‖M^{1/2}∇v‖ + ΓV and ‖M^{1/2}∇v‖² <= VE:
        a quadratic inequality for √E."""
        rho, B, gamma = (root(self.suprema[0]), root(self.suprema[1]), self.suprema[2])
        room, V = 1 - rho, found["L2"]
        if not room > 0:
            return found
        top = B * root(V) + root(B * B * V + 4 * room * (norm + gamma * V))
        energy = (top / (2 * room)) ** 2
        slope = min(found["H1"].upper(), root(V * energy / self.least).upper())
        return found | {"H1": slope, "H2": min(found["H2"].upper(), (energy / self.least).upper())}


class Residual:
    """On a cell r = L u_θ - f over t/d, without the transform, and g e^{φ/2} r, for one control;
    for m controls the mean of these and what is left of each, since
    |max_a r_a| <= |mean| + √((m - 1)/m Σ (r_a - mean)²)."""

    def __init__(self, theorem: Contraction, cell: Cell, answer: Callable):
        self.theorem, self.answer, self.operators = theorem, answer, theorem.equation.on(cell)
        self.cuts = answer.cuts

    def __call__(self, place: Place, network: list, whole: bool) -> list:
        """From the series of N on lines; without `whole` what is linear in N alone."""
        theorem, found, plain = self.theorem, [], arb(0)
        u = derivatives(self.answer(place, network, whole), theorem.d)
        moved = theorem.transform.at(place.x) if theorem.transform else ()
        for operator in self.operators:
            parts = operator.at(place)
            t, *others = theorem.invariants(parts, place.x, *moved)
            r = applied(parts, u) - (operator.source(place, parts) if whole else 0)
            weight, plain = theorem.multiplier(t, *others), r / t
            found.append(weight * r * (moved[0] / 2).exp() if moved else weight * r)
        if len(found) == 1:
            return [plain, *found]
        mean = sum(found[1:], found[0]) / len(found)
        return [arb(0), mean, *(each - mean for each in found)]

    def moved(self, place: Place, network: list, error: list) -> list:
        """What the error of N adds."""
        return self(place, error, False)

    def reach(self, place: Place) -> list:
        """How much of a function, whose derivatives are at most one, is in each."""
        theorem, found = self.theorem, []
        moved = theorem.transform.at(place.x) if theorem.transform else ()
        for operator in self.operators:
            parts = operator.at(place)
            t, *others = theorem.invariants(parts, place.x, *moved)
            size = sum(map(abs, parts.values()), arb(0))
            weight = abs(theorem.multiplier(t, *others)) * ((moved[0] / 2).exp() if moved else 1)
            found += [size / t, weight * size]
        return found if len(found) == 2 else [2 * sum(found, arb(0))] * (2 + len(self.operators))


class Determinants:
    """T4, det D²u = f > 0 with u convex. Let w = u_θ be convex, w = g on the boundary. Then
    |u - w| <= C ‖√f - √det D²w‖, C = √(2|Ω|)/4 on a box, by Minkowski's inequality for determinants
    and Aleksandrov's maximum principle. Where |det D²w - f| <= δf, δ < 1,
    |√f - √det D²w| <= |det D²w - f| / (√f (1 + √(1 - δ))).

    δ comes from the integral: on [-1, 1]² a polynomial p of degrees below m and n is at most
    mn/2 ‖p‖. It interpolates F = (det D²w - f)/√f at Gauss's points, where the rule is exact for
    p²; the interpolation operator is bounded by its number of points along an axis, and the best
    polynomial misses F by at most 2Mρ^-(n - 1)/(ρ - 1).

    w is convex: det D²w > 0 on a cell, and w_11 > 0 at one point of it, so that no eigenvalue of
    D²w changes its sign there; and w is C^{1,1}. So w + φ with det D²φ = sup f, φ = 0 on the
    boundary, is a subsolution with the boundary values g, and Perron's method gives u."""

    space = "convex on Ω and continuous on its closure (a solution in the sense of Aleksandrov)"

    def __init__(self, equation: Equation, data: dict):
        need(equation.d == 2 and equation.f is not None, "T4 is about determinants in the plane")
        self.equation, self.least, self.delta = equation, arb(rational(data["least"])), arb(0)
        need(self.least > 0, "f must be positive")

    def check(self, cells: list[Cell]) -> str:
        def test_on(cell: Cell) -> Callable[[Place], bool]:
            f = self.equation.formulas.on(self.equation.f, cell)
            return lambda place: f(place) >= self.least

        count = everywhere(cells, test_on, "f >= least > 0")
        return f"f >= {rounded(self.least, False)} on {count} pieces"

    def on(self, cell: Cell, answer: Callable) -> "Defect":
        return Defect(self.equation, cell, answer)

    def look(self, integrand: "Defect", N, values: list, moved: list, rules: list) -> None:
        """δ and the convexity on a cell."""
        cell, ((n, _, _), (m, _, _)) = integrand.cell, rules
        need(cell.kind == "box", "triangles are not for determinants")
        best = [
            2 * root(B / cell.determinant) * arb(q) ** (1 - k) / (arb(q) - 1) for k, q, B in rules
        ]
        top = n * m * root(values[0] / cell.determinant) + (1 + n) * best[0] + n * (1 + m) * best[1]
        self.delta = max(self.delta, largest((top + moved[0]) / root(self.least)))
        need(self.delta < 1, f"{cell.name}: det D²w > 0 is not seen there")
        ((s, _, network),) = N.on_grid([[(arb(0.5), 1)]] * 2)
        parts = (
            integrand.hessian(cell.place(s), *each) for each in ((network, True), (N.error, False))
        )
        need(sum(part[0] for part in parts) > 0, f"{cell.name}: not convex in its middle")

    def bounds(self, norms: list[arb]) -> Bounds:
        volume = self.equation.domain.volume
        error = root(2 * volume) / 4 * norms[0] / (1 + root(1 - self.delta))
        return {"Linf": error, "L2": error * root(volume)}


class Defect:
    """(det D²w - f)/√f on a cell."""

    def __init__(self, equation: Equation, cell: Cell, answer: Callable):
        self.answer, self.cell, self.f = answer, cell, equation.formulas.on(equation.f, cell)
        self.cuts = answer.cuts

    def hessian(self, place: Place, network: list, whole: bool) -> list:
        return derivatives(self.answer(place, network, whole), 2)[3:]

    def __call__(self, place: Place, network: list, whole: bool) -> list:
        (p, q, r), f = self.hessian(place, network, True), self.f(place)
        return [(p * r - q * q - f) / root(f)]

    def moved(self, place: Place, network: list, error: list) -> list:
        """(det(D²w + E) - det D²w)/√f."""
        (p, q, r), (a, b, c) = self.hessian(place, network, True), self.hessian(place, error, False)
        return [(p * c + r * a - 2 * q * b + a * c - b * b) / root(self.f(place))]


THEOREMS = {"T2": Contraction, "T4": Determinants}
