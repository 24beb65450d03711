"""The numbers of the checker beside those of mpmath in 50 digits and of another integration."""

import contextlib
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from cordes_check.answers import BoxAnswer, Features
from cordes_check.cells import read_cells
from cordes_check.equations import Equation
from cordes_check.quadrature import find_rules, integrals
from cordes_check.theorems import THEOREMS

PROOFS = Path(__file__).parents[1] / "data" / "proofs"
each = pytest.mark.parametrize("base", ["linear", "jumps", "control", "determinant", "length"])
# In each answer.
POINTS = 16


@pytest.fixture(autouse=True)
def _precision():
    kept = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = kept


def data_of(base):
    return json.loads((PROOFS / f"{base}.proof").read_bytes().partition(b"\n")[2])


# Another reading of the file: u_θ, the equation and its residual in 50 digits of mpmath.


class Exact:
    """u_θ and the equation of a proof, by mpmath; formulas are differentiated numerically."""

    def __init__(self, data, equation):
        self.table, network = equation.table, data["network"]
        number = lambda text: mpmath.mpf(float.fromhex(text))  # noqa: E731
        self.rows = [[number(w) for w in row] for row in network["weights"]]
        self.biases = [number(b) for b in network["biases"]]
        self.coefficients = [number(c) for c in network["coefficients"]]
        self.center = [number(c) for c in network["center"]]
        self.scale = [number(s) for s in network["scale"]]
        self.kinks = [(k, p, number(s)) for k, p, s in network["kinks"]]
        self.lower = [mpmath.mpf(int(c.p)) / int(c.q) for c in equation.domain.lower]
        self.upper = [mpmath.mpf(int(c.p)) / int(c.q) for c in equation.domain.upper]
        self.definitions = equation.definitions
        assert network["activation"] == "sine"

    def formula(self, text, x, **names):
        space = {k: getattr(mpmath, k) for k in ("sin", "cos", "exp", "log", "sqrt", "sign")}
        space |= {"abs": abs, "pi": mpmath.pi, "x1": x[0], "x2": x[1], "r": mpmath.hypot(*x)}
        space |= names
        exact = lambda text: re.sub(r"(?<![\w.])(\d+\.?\d*(?:e-?\d+)?)", r"mpf('\1')", str(text))  # noqa: E731
        space["mpf"] = mpmath.mpf
        for name, definition in self.definitions.items():
            with contextlib.suppress(NameError):  # Of a control that is not meant here.
                space[name] = eval(exact(definition), {"__builtins__": {}}, space)
        return eval(exact(text), {"__builtins__": {}}, space)

    def u(self, *x):
        inputs = [(c - m) / s for c, m, s in zip(x, self.center, self.scale, strict=True)]
        for k, power, scale in self.kinks:
            phi = self.formula(self.table["interfaces"][k], x) / scale
            inputs.append(phi * abs(phi) if power is None else abs(phi) ** power)
        total = mpmath.mpf(0)
        for j, (c, b) in enumerate(zip(self.coefficients, self.biases, strict=True)):
            total += c * mpmath.sin(
                b + sum(row[j] * z for row, z in zip(self.rows, inputs, strict=True))
            )
        for l, u, c in zip(self.lower, self.upper, x, strict=True):
            total *= (u - c) * (c - l)
        return total + self.lift(x)

    def lift(self, x):
        """The blend of Coons."""
        g = lambda *x: self.formula(self.table.get("g", 0), x)  # noqa: E731
        (l, m), (u, v), (x, y) = self.lower, self.upper, x
        s, t = (x - l) / (u - l), (y - m) / (v - m)
        sides = (1 - s) * g(l, y) + s * g(u, y) + (1 - t) * g(x, m) + t * g(x, v)
        low = (1 - s) * (1 - t) * g(l, m) + s * (1 - t) * g(u, m)
        return sides - low - (1 - s) * t * g(l, v) - s * t * g(u, v)

    def second(self, function, x):
        """u, ∇u, D²u by central differences whose error is far below that of the balls."""
        h, (a, b) = mpmath.mpf(10) ** -14, x
        f = {(i, j): function(a + i * h, b + j * h) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        mixed = (f[1, 1] - f[1, -1] - f[-1, 1] + f[-1, -1]) / (4 * h * h)
        return (
            f[0, 0],
            (f[1, 0] - f[-1, 0]) / (2 * h),
            (f[0, 1] - f[0, -1]) / (2 * h),
            (f[1, 0] - 2 * f[0, 0] + f[-1, 0]) / h**2,
            mixed,
            (f[0, 1] - 2 * f[0, 0] + f[0, -1]) / h**2,
        )

    def operator(self, x, values, a):
        u, ux, uy, uxx, uxy, uyy = values
        at = lambda text: self.formula(text, x, **({} if a is None else {"a": a}))  # noqa: E731
        A, b = self.table["A"], self.table.get("b", [0, 0])
        total = at(A[0][0]) * uxx + (at(A[0][1]) + at(A[1][0])) * uxy + at(A[1][1]) * uyy
        return total + at(b[0]) * ux + at(b[1]) * uy - at(self.table.get("c", 0)) * u

    def residuals(self, x):
        """Those of all controls, or (det D²u - f)/√f."""
        values = self.second(self.u, x)
        if "A" not in self.table:
            f = self.formula(self.table["f"], x)
            return [(values[3] * values[5] - values[4] ** 2 - f) / mpmath.sqrt(f)]
        found = []
        for a in self.table.get("controls", [None]):
            if self.table["f"] == "L(exact)":
                exact = lambda *x: self.formula(self.table["exact"], x)  # noqa: E731
                f = self.operator(x, self.second(exact, x), a)
            else:
                f = self.formula(self.table["f"], x)
            found.append(self.operator(x, values, a) - f)
        return found


class Setting:
    def __init__(self, data):
        ctx.prec, ctx.cap = data["precision"], 3
        self.data, self.equation = data, Equation(data["problem"])
        equation = self.equation
        self.network = Features(data["network"], equation.formulas, equation.interfaces)
        self.answer = BoxAnswer(equation.domain, equation.formulas, equation.g, [])
        self.cells = read_cells(data["cells"], equation.domain.lower, equation.domain.upper)
        self.theorem = THEOREMS[data["theorem"]["name"]](equation, data["theorem"])
        self.precise = arb(data["precise"])

    def on(self, cell):
        return self.network.on(cell, self.precise), self.theorem.on(cell, self.answer.on(cell))


@each
def test_residuals_are_those_of_mpmath(base):
    setting = Setting(data_of(base))
    exact, rng = Exact(setting.data, setting.equation), np.random.default_rng(1)
    largest = 0.0
    with mpmath.workdps(50):
        for cell in setting.cells:
            N, integrand = setting.on(cell)
            for point in rng.uniform(size=(-(-POINTS // len(setting.cells)), 2)):
                ((s, _, network),) = N.on_grid([[(arb(float(c)), 1)] for c in point])
                place = cell.place(s)
                found = integrand(place, network, True)
                # What the error of the polynomial may add belongs to the enclosure.
                room = integrand.moved(place, network, N.error)
                true = expected(integrand, exact, place)
                for value, more, wanted in zip(found, room, true, strict=True):
                    allowed = mpmath.mpf(float(value.rad())) + mpmath.mpf(float(more.abs_upper()))
                    assert abs(middle(value) - wanted) <= allowed + mpmath.mpf(10) ** -17
                    largest = max(largest, float(abs(wanted)))
    # Something that is nothing would compare with everything.
    assert largest > 1e-10


def middle(ball):
    return mpmath.mpf(ball.mid().str(60, radius=False))


def expected(integrand, exact, place):
    """What the checker integrates, from the residuals of mpmath: over t/d, and with the multiplier;
    for several controls the mean and what is left of each."""
    residuals = exact.residuals([middle(c) for c in place.x])
    if "A" not in exact.table:
        return residuals
    theorem, weighted, plain = integrand.theorem, [], 0
    for operator, r in zip(integrand.operators, residuals, strict=True):
        moved = theorem.transform.at(place.x) if theorem.transform else ()
        t, *others = theorem.invariants(operator.at(place), place.x, *moved)
        factor = theorem.multiplier(t, *others) * ((moved[0] / 2).exp() if moved else 1)
        weighted.append(middle(factor) * r)
        plain = r / middle(t)
    if len(weighted) == 1:
        return [plain, *weighted]
    mean = sum(weighted) / len(weighted)
    return [0, mean, *(each - mean for each in weighted)]


def test_the_norm_is_that_of_another_integration():
    """Of r over t/d, for coefficients that jump: JAX differentiates u_θ, and NumPy has the nodes of
    a rule with 44 points on each quadrant."""
    data = data_of("jumps")
    setting, network = Setting(data), data["network"]
    total = arb(0)
    for cell in setting.cells:
        N, integrand = setting.on(cell)
        rules = find_rules(cell, N, integrand, float(data["tolerance"]))
        total += integrals(cell, N, integrand, rules)[0]
    weights = jnp.array([[float.fromhex(w) for w in row] for row in network["weights"]])
    numbers = {k: jnp.array([float.fromhex(v) for v in network[k]]) for k in ("biases", "scale")}
    coefficients = jnp.array([float.fromhex(v) for v in network["coefficients"]])
    scales = jnp.array([float.fromhex(s) for _, _, s in network["kinks"]])
    assert [row[:2] for row in network["kinks"]] == [[0, None], [1, None]]

    def u(x):
        z = jnp.concatenate([x / numbers["scale"], (x / scales) * jnp.abs(x / scales)])
        return jnp.prod(1 - x**2) * (jnp.sin(z @ weights + numbers["biases"]) @ coefficients)

    def exact(x):
        return jnp.prod(x * jnp.exp(1 - jnp.abs(x)) - x)

    def residual(x):
        s = jnp.sign(x[0] * x[1])
        A = jnp.array([[2.0, s], [s, 2.0]])
        return jnp.sum(A * (jax.hessian(u)(x) - jax.hessian(exact)(x))) / trace(A)

    inverse = np.linalg.inv(np.array(data["theorem"]["M"], float))
    trace = lambda A: jnp.trace(inverse @ A) / 2  # noqa: E731
    t, w = np.polynomial.legendre.leggauss(44)
    t, w = np.concatenate([(t - 1) / 2, (t + 1) / 2]), np.concatenate([w, w]) / 2
    x = jnp.array(np.stack(np.meshgrid(t, t), -1).reshape(-1, 2))
    square = float(np.outer(w, w).ravel() @ np.asarray(jax.jit(jax.vmap(residual))(x)) ** 2)
    assert float(total) == pytest.approx(square, rel=2e-3)
    assert float(total) >= square * (1 - 1e-9)
