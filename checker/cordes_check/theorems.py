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
"""

from collections.abc import Callable

from flint import arb, arb_mat, fmpq

from cordes_check.balls import (
    PAIRS,
    derivatives,
    dot,
    largest,
    need,
    on_lines,
    power,
    rational,
    root,
)
from cordes_check.cells import Cell, Place, everywhere
from cordes_check.equations import Equation, applied


def symmetric(rows: list) -> arb_mat:
    """A symmetric matrix of rational numbers."""
    found = arb_mat([[arb(rational(c)) for c in row] for row in rows])
    need([*map(list, zip(*rows, strict=True))] == rows, "a matrix is not symmetric")
    return found


def positive(matrix: arb_mat) -> bool:
    """Whether a symmetric matrix is seen to be positive definite, by its leading minors."""
    rows = matrix.tolist()
    return all(arb_mat([row[:k] for row in rows[:k]]).det() > 0 for k in range(1, len(rows) + 1))


class Transform:
    """φ = constant + p·y + y·Sy/2, y = x - center, and its bounds, which are found on the way."""

    def __init__(self, data: dict):
        self.center, self.p = ([arb(rational(c)) for c in data[key]] for key in ("center", "p"))
        self.constant, self.S = arb(rational(data["constant"])), symmetric(data["S"])
        self.lowest, self.steepest = arb("inf"), arb(0)

    def at(self, x: list) -> tuple:
        """φ and ∇φ."""
        y = [c - m for c, m in zip(x, self.center, strict=True)]
        Sy = [dot(row, y) for row in self.S.tolist()]
        slope = [p + s for p, s in zip(self.p, Sy, strict=True)]
        return self.constant + dot(self.p, y) + dot(y, Sy) / 2, slope


class Contraction:
    """T2 with its parameters, of which nothing is trusted."""

    space = "in H²(Ω)"

    def __init__(self, equation: Equation, data: dict):
        self.equation, self.d, self.M = equation, equation.d, symmetric(data["M"])
        V = arb_mat([[arb(rational(c)) for c in row] for row in data["V"]])
        self.least, self.lambda_, self.s = (
            arb(rational(data[k])) for k in ("least", "lambda", "s")
        )
        unit = arb_mat([[arb(int(i == j)) for j in range(self.d)] for i in range(self.d)])
        need(
            self.least > 0 and positive(self.M - self.least * unit), "M is not as large as claimed"
        )
        need(positive(self.M - V * V.transpose()), "M - V Vᵀ is not positive definite")
        need(self.lambda_ >= 0 and 0 < self.s < 1, "λ < 0, or s is not between 0 and 1")
        # λ1: along a column v_k of V a chord has a length of at most |v_k| / max (V_ik / width_i),
        # and (v_k·∇)² sees one dimension only.
        columns = V.transpose().tolist()
        slopes = (
            [(v / w) ** 2 for v, w in zip(column, equation.domain.widths, strict=True)]
            for column in columns
        )
        self.eigenvalue = (
            arb.pi() ** 2 * sum(max(each.lower() for each in s) for s in slopes)
        ).lower()
        self.weights = self._normalised([arb(rational(w)) for w in data["weights"]])
        self.inverse, self.transform = (
            self.M.inv(),
            Transform(data["transform"]) if data["transform"] else None,
        )

    def _normalised(self, weights: list[arb]) -> list[arb]:
        """Divided by the largest value of (κμ² + α1 μ + α0)/(μ + λ)², κ = β + α2 (1 - 1/d), over
        μ >= λ1: with y = 1/(μ + λ) it is κ + q1 y + q2 y² on [0, Y]."""
        beta, second, first, zeroth = weights
        kappa, Y, l = (
            beta + second * (self.d - 1) / self.d,
            1 / (self.eigenvalue + self.lambda_),
            self.lambda_,
        )
        q1, q2 = first - 2 * kappa * l, kappa * l**2 - first * l + zeroth
        values = [kappa, kappa + q1 * Y + q2 * Y * Y]
        if not (q2 >= 0 or q1 <= 0 or -q1 / (2 * q2) >= Y):
            values.append(kappa - q1 * q1 / (4 * q2))
        fit = all(w >= 0 for w in weights) and second > 0 and all(v.is_finite() for v in values)
        need(fit, "weights out of range")
        return [w / max(value.upper() for value in values) for w in weights]

    def invariants(self, values: dict, x: list) -> tuple:
        """t/d, |A0|², |b|² and c in the metric of M, after the transform; and φ."""
        d, zero, A = self.d, arb(0), {}
        for k, (i, j) in enumerate(PAIRS[d], start=d + 1):
            A[i, j] = A[j, i] = values.get(k, zero) / (1 if i == j else 2)
        A = [[A[i, j] for j in range(d)] for i in range(d)]
        b, c, phi = [values.get(1 + i, zero) for i in range(d)], -values.get(0, zero), None
        if self.transform:
            phi, slope = self.transform.at(x)
            image = [dot(row, slope) for row in A]
            c = c + dot(b, slope) / 2 - dot(image, slope) / 4
            c += (
                sum((dot(*rows) for rows in zip(A, self.transform.S.tolist(), strict=True)), zero)
                / 2
            )
            b = [p - q for p, q in zip(b, image, strict=True)]
        B = [[dot(row, column) for column in A] for row in self.inverse.tolist()]
        t = sum((B[i][i] for i in range(d)), zero) / d
        C = [[B[i][j] - (t if i == j else 0) for j in range(d)] for i in range(d)]
        square = sum((C[i][j] * C[j][i] for i in range(d) for j in range(d)), zero)
        return t, square, dot(b, [dot(row, b) for row in self.inverse.tolist()]), c, phi

    def multiplier(self, t, square, drift, c):
        """d/tr M⁻¹A where β = 0, else what makes Q smallest."""
        beta, second, first, zeroth = self.weights
        if beta == 0:
            return 1 / t
        inverse = [1 / w if w > 0 else arb(0) for w in self.weights]
        above = t * inverse[0] + self.lambda_ * c * inverse[3]
        return above / dot([t * t, square, drift, c * c], inverse)

    def check(self, cells: list[Cell]) -> str:
        """Q <= s² with bounded coefficients everywhere, for all controls."""
        count = everywhere(cells, self._test_on, "Q <= s² < 1")
        return f"Q <= {self.s.str(6, radius=False)}² on {count} pieces, λ1 >= {self.eigenvalue.str(6, radius=False)}"

    def _test_on(self, cell: Cell) -> Callable[[Place], bool]:
        operators, transform = self.equation.on(cell), self.transform

        def test(place: Place) -> bool:
            fits = all(self._below(*self.invariants(each.at(place), place.x)) for each in operators)
            if transform and fits:
                phi, slope = transform.at(place.x)
                transform.lowest = min(transform.lowest, phi.lower())
                transform.steepest = max(transform.steepest, dot(slope, slope).upper())
            return fits

        return test

    def _below(self, t, square, drift, c, phi) -> bool:
        if not t > 0:
            return False
        g, total = self.multiplier(t, square, drift, c), arb(0)
        parts = [
            (g * t - 1) ** 2,
            g * g * abs(square),
            g * g * abs(drift),
            (g * c - self.lambda_) ** 2,
        ]
        for k, (part, weight) in enumerate(zip(parts, self.weights, strict=True)):
            if weight > 0:
                total += part / weight
            elif k > 0 and not part.is_zero():  # With β = 0 the first part is zero: g t = 1.
                return False
        return g > 0 and g.is_finite() and total <= self.s**2

    def on(self, cell: Cell, answer: Callable) -> "Residual":
        return Residual(self, cell, answer)

    def look(
        self, cell: Cell, N, integrand: "Residual", values: list, moved: list, rules: list
    ) -> None:
        """Nothing more is needed of a cell."""

    def bounds(self, norms: list[arb]) -> dict[str, arb]:
        """What follows from the norms of the functions of `Residual`: of the largest residual the
        first is the mean, the others the deviations from it."""
        m, l, mu, volume = (
            len(norms) - 1,
            self.lambda_,
            self.eigenvalue,
            self.equation.domain.volume,
        )
        spread = root(sum((n * n for n in norms[1:]), arb(0)) * (m - 1) / m) if m else arb(0)
        energy, det = (norms[0] + spread) / (1 - self.s), self.M.det()
        # Green's function has its largest norm at the centre of a ball of the same volume
        # (Talenti), and at most that of the whole space where λ > 0.
        if self.d == 2:
            green = [root(volume / det / 8) / arb.pi(), root(1 / (4 * arb.pi() * l * root(det)))]
        else:
            radius = power(3 * volume / (4 * arb.pi()), fmpq(1, 3))
            green = [
                root(radius / (12 * arb.pi())) / power(det, fmpq(1, 3)),
                root(1 / (8 * arb.pi() * root(l * det))),
            ]
        slope = root(mu) / (mu + l) if l <= mu else 1 / (2 * root(l))
        steep, shrink = arb(0), arb(1)
        if self.transform:
            steep, shrink = root(self.transform.steepest), (-self.transform.lowest / 2).exp()
        return {
            "L2": shrink * energy / (mu + l),
            "Linf": shrink * energy * min(largest(each) for each in green),
            "H1": shrink * energy * (slope / root(self.least) + steep / (2 * (mu + l))),
            "H2": energy / self.least if self.transform is None else arb("inf"),
        }


class Residual:
    """g e^{φ/2} (L u_θ - f) on a cell, for one control; for m controls the mean of these and what is
    left of each, since |max_a r_a| <= |mean| + √((m - 1)/m Σ (r_a - mean)²)."""

    def __init__(self, theorem: Contraction, cell: Cell, answer: Callable):
        self.theorem, self.answer, self.operators = theorem, answer, theorem.equation.on(cell)

    def __call__(self, place: Place, network: list, whole: bool) -> list:
        """From the series of N on lines; without `whole` what is linear in N alone."""
        u = [self.answer(x, N, whole) for x, N in zip(on_lines(place.x), network, strict=True)]
        parts, found = derivatives(u, self.theorem.d), []
        for operator in self.operators:
            values = operator.at(place)
            *invariants, phi = self.theorem.invariants(values, place.x)
            weight, r = self.theorem.multiplier(*invariants), applied(values, parts)
            r = r - operator.source(place, values) if whole else r
            found.append(weight * r if phi is None else weight * (phi / 2).exp() * r)
        mean = sum(found[1:], found[0]) / len(found)
        return found if len(found) == 1 else [mean, *(each - mean for each in found)]

    def moved(self, place: Place, network: list, error: list) -> list:
        """What the error of N adds."""
        return self(place, error, False)


class Determinants:
    """T4, det D²u = f > 0 with u convex. Let w = u_θ be convex, w = g on the boundary. Then
    |u - w| <= C ‖√f - √det D²w‖, C = √(2|Ω|)/4 on a box, by Minkowski's inequality for determinants
    and Aleksandrov's maximum principle. Where |det D²w - f| <= δf, δ < 1,
    |√f - √det D²w| <= |det D²w - f| / (√f (1 + √(1 - δ))).

    δ comes from the integral: on [-1, 1]² a polynomial p of degrees below m and n is at most
    mn/2 ‖p‖. It interpolates F = (det D²w - f)/√f at Gauss's points, where the rule is exact for p²;
    the interpolation operator is bounded by its number of points along an axis, and the best
    polynomial misses F by at most 2Mρ^-(n - 1)/(ρ - 1).

    w is convex: det D²w > 0 on a cell, and w_11 > 0 at one point of it, so that no eigenvalue of D²w
    changes its sign there; and w is C^{1,1}. So w + φ with det D²φ = sup f, φ = 0 on the boundary,
    is a subsolution with the boundary values g, and Perron's method gives u."""

    space = "convex and continuous on the closure of Ω (a solution in the sense of Aleksandrov)"

    def __init__(self, equation: Equation, data: dict):
        need(equation.d == 2, "determinants in the plane alone")
        self.equation, self.least, self.delta = equation, arb(rational(data["least"])), arb(0)
        need(self.least > 0, "f must be positive")

    def check(self, cells: list[Cell]) -> str:
        formulas, f = self.equation.formulas, self.equation.f
        count = everywhere(
            cells,
            lambda cell: lambda place: formulas.on(f, cell)(place) >= self.least,
            "f >= least",
        )
        return f"f >= {self.least.str(6, radius=False)} on {count} pieces"

    def on(self, cell: Cell, answer: Callable) -> "Defect":
        return Defect(self, cell, answer)

    def look(
        self, cell: Cell, N, integrand: "Defect", values: list, moved: list, rules: list
    ) -> None:
        """δ and the convexity on a cell."""
        need(cell.kind == "box", "triangles are not for determinants")
        (n, r, M), (m, s, K) = rules
        best = [
            2 * root(B / cell.determinant) * arb(q) ** (1 - k) / (arb(q) - 1)
            for k, q, B in ((n, r, M), (m, s, K))
        ]
        top = n * m * root(values[0] / cell.determinant) + (1 + n) * best[0] + n * (1 + m) * best[1]
        self.delta = max(self.delta, ((top + moved[0]) / root(self.least)).upper())
        need(self.delta < 1, f"{cell.name}: det D²w > 0 is not seen there")
        ((s, _, network),) = N.on_grid([[(arb(0.5), 1)]] * 2)
        first, shift = (
            integrand.hessian(cell.place(s), *each)[0]
            for each in ((network, True), (N.error, False))
        )
        need(first + shift > 0, f"{cell.name}: the answer is not convex in its middle")

    def bounds(self, norms: list[arb]) -> dict[str, arb]:
        volume = self.equation.domain.volume
        largest = root(2 * volume) / 4 * norms[0] / (1 + root(1 - self.delta))
        return {"Linf": largest, "L2": largest * root(volume)}


class Defect:
    """(det D²w - f)/√f on a cell."""

    def __init__(self, theorem: Determinants, cell: Cell, answer: Callable):
        self.answer, self.f = answer, theorem.equation.formulas.on(theorem.equation.f, cell)

    def hessian(self, place: Place, network: list, whole: bool) -> list:
        lines = zip(on_lines(place.x), network, strict=True)
        return derivatives([self.answer(x, N, whole) for x, N in lines], 2)[3:]

    def __call__(self, place: Place, network: list, whole: bool) -> list:
        p, q, r = self.hessian(place, network, True)
        f = self.f(place)
        return [(p * r - q * q - f) / root(f)]

    def moved(self, place: Place, network: list, error: list) -> list:
        """det(D²w + E) - det D²w, over √f."""
        (p, q, r), (a, b, c) = self.hessian(place, network, True), self.hessian(place, error, False)
        return [(p * c + r * a - 2 * q * b + a * c - b * b) / root(self.f(place))]


THEOREMS = {"T2": Contraction, "T4": Determinants}
