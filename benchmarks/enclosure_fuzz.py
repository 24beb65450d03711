"""Random formulas: is a value outside of its enclosure?

    python benchmarks/enclosure_fuzz.py [COUNT] [SEED] [--fault NAME]

Each formula is a random tree of the operations that have rules. Over boxes its values, as JAX
computes them, are compared with the enclosure by intervals; on ellipses around boxes the values of
the branch that holds on the box, continued to complex points, with the one by rectangles. The
continuation is computed here with NumPy's long doubles, by a way of its own: a real point of the
box decides each choice, and the complex one follows it.

A value outside counts where it is outside by more than rounding, which is what two precisions
differ by, and where that holds on a set of positive measure: for a tenth of new points around it.
Formulas without a rule are skipped with the reason. `--fault NAME` makes the enclosures of one
operation (sin, mul, …) a tenth narrower, which must be noticed.
"""

import argparse
import collections
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from formula_operations import OPERATIONS, VANISHING

import cordes  # noqa: F401
from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose, rules
from cordes.formulas.rectangles import Neighbourhoods, Rectangle, RectangleProgram, functions

SEED = 20_262
BOXES, POINTS, AROUND = 24, 40, 400
CELLS, RHO, ON_ELLIPSE = 8, np.array([1.3, 2.0, 5.0, 15.0]), 6
# Beyond this share of a value, and this multiple of what two precisions differ by.
TOLERANCE, ROUNDING = 1e-9, 100.0
Array = Any


class Formula(NamedTuple):
    """A coordinate, a number, an operation of formulas, or a derivative of one."""

    name: str
    parts: tuple["Formula", ...] = ()
    value: float = 0.0

    def __str__(self) -> str:
        if self.name == "x":
            return f"x{int(self.value) + 1}"
        inner = ", ".join(map(str, self.parts))
        return f"{self.value:.6g}" if self.name == "number" else f"{self.name}({inner})"

    def names(self) -> set[str]:
        return {self.name}.union(*(part.names() for part in self.parts))

    @property
    def continued(self) -> bool:
        """Whether its values at complex points are computed here."""
        return "slope" not in self.names()

    def underflows(self, x: Array) -> Array:
        """Where an operation that gives zero for no number gave it, or came near it."""
        inner = [part.underflows(x) for part in self.parts]
        found = np.any(inner, axis=0) if inner else np.zeros(len(x), bool)
        if self.name not in VANISHING:
            return found
        value, *parts = (np.abs(jax.vmap(each)(x)) for each in (self, *self.parts))
        if self.name == "slope":
            return found | (value < 1e-290)
        return found | ((value < 1e-290) & np.all([part > 0 for part in parts], axis=0))

    def __call__(self, x: Array) -> Array:
        if self.name == "x":
            return x[int(self.value)]
        if self.name == "number":
            return jnp.asarray(self.value)
        if self.name == "slope":
            return jax.jvp(self.parts[0], (x,), (jnp.arange(1.0, len(x) + 1),))[1]
        return OPERATIONS[self.name].real(*(part(x) for part in self.parts))

    def branch(self, r: Array, z: Array) -> tuple[Array, Array]:
        """Values at real points (N, d), and continued to complex ones."""
        if self.name == "x":
            return r[:, int(self.value)], z[:, int(self.value)]
        if self.name == "number":
            constant = np.full(len(r), self.value, r.dtype)
            return constant, constant
        if self.name == "slope":
            # A step of this length in the imaginary direction has an error of its square.
            step = 1e-100j * np.arange(1.0, r.shape[1] + 1)
            held, turned = self.parts[0].branch(r, r + step)
            slope = np.imag(turned) / np.longdouble(1e-100)
            return np.where(np.isnan(held), np.nan, slope), np.full(len(r), np.nan)
        reals, values = zip(*(part.branch(r, z) for part in self.parts), strict=True)
        follow = OPERATIONS[self.name].branch
        return follow(reals, reals), follow(reals, values)


def draw(rng: np.random.Generator, d: int, depth: int) -> Formula:
    if depth == 0:
        if rng.random() < 0.7:
            return Formula("x", value=float(rng.integers(d)))
        return Formula("number", value=float(rng.choice([0.0, 0.5, 1.0, 2.0, -1.0, rng.normal()])))
    name = str(rng.choice(list(OPERATIONS)))
    below = [max(depth - 1 - int(rng.integers(2)), 0) for _ in range(OPERATIONS[name].count)]
    below[int(rng.integers(len(below)))] = depth - 1
    return Formula(name, tuple(draw(rng, d, each) for each in below))


def boxes(rng: np.random.Generator, d: int, count: int, far: bool) -> tuple[Array, Array]:
    """Boxes around the origin; some of them far away, or tiny."""
    lower = rng.uniform(-2, 1.5, (count, d))
    width = 10 ** rng.uniform(-6, 0.3, (count, d))
    if far:
        size = 10 ** rng.uniform(-30, 30, (count // 4, d))
        lower[: count // 4] = rng.choice([-1, 0, 1], (count // 4, d)) * size
        width[: count // 4] = size * 10 ** rng.uniform(-8, 1, (count // 4, d))
    return lower, lower + width


class Outcome(NamedTuple):
    boxes: int
    values: int
    bad: str | None


def outside(interval: tuple[Array, Array], value: Array, doubt: Array) -> Array:
    slack = TOLERANCE * np.abs(value) + ROUNDING * doubt
    return (value < interval[0] - slack) | (value > interval[1] + slack)


def rounding(formula: Formula, x: Array, value: Array) -> Array:
    """What two precisions differ by at points."""
    real = x.astype(np.longdouble)
    exact, near = (formula.branch(at, at)[0] for at in (real, np.nextafter(real, np.inf)))
    doubt = np.abs(value - exact) + np.abs(near - exact)
    return np.nan_to_num(np.asarray(doubt, float), nan=np.inf)


def check_real(formula: Formula, d: int, rng: np.random.Generator, by_jax: bool = True) -> Outcome:
    lower, upper = boxes(rng, d, BOXES, far=True)
    pieces = enclose(formula)(lower, upper)

    def missed(cell: Array, x: Array) -> Array:
        values = jax.vmap(formula) if by_jax else lambda x: formula.branch(x, x)[0]
        value = np.asarray(values(x), float)
        doubt = rounding(formula, x, value)
        out = [outside((each.lower[cell], each.upper[cell]), value, doubt) for each in pieces]
        found = np.all(out, axis=0) & np.isfinite(value)
        # The machine's zero for a small positive number is not the formula's.
        return found & ~formula.underflows(x) if np.any(found) else found

    cell = np.repeat(np.arange(BOXES), POINTS)
    x = lower[cell] + (upper - lower)[cell] * rng.random((len(cell), d))
    for k in np.flatnonzero(missed(cell, x))[:3]:
        box = cell[k]
        near = x[k] + 1e-3 * (upper - lower)[box] * rng.uniform(-1, 1, (AROUND, d))
        near = np.clip(near, lower[box], upper[box])
        if np.mean(missed(np.full(AROUND, box), near)) > 0.1:
            bad = f"{formula} at {x[k]} in {lower[box]}, {upper[box]}"
            return Outcome(BOXES, len(cell), bad)
    return Outcome(BOXES, len(cell), None)


def check_complex(formula: Formula, d: int, rng: np.random.Generator) -> Outcome:
    lower, upper = boxes(rng, d, CELLS, far=False)
    around = Neighbourhoods(lower, upper, RHO)
    (found,) = RectangleProgram(formula, d).run(around).complex
    found = found.map(lambda part: np.broadcast_to(part, (d * len(RHO) * CELLS,)))

    def missed(row: Array, real: Array, z: Array) -> Array:
        (held, value), (_, near) = (formula.branch(real, at) for at in (z, z * (1 + 1e-17)))
        value = value + 0j
        with np.errstate(all="ignore"):
            doubt = np.abs(near - value) + 1e-15 * np.abs(value)
        out = outside((found.lower[row], found.upper[row]), value.real, doubt)
        out |= outside((found.below[row], found.above[row]), value.imag, doubt)
        # Where the formula is no number on the box nothing is claimed.
        return out & np.isfinite(held) & np.isfinite(value) & np.isfinite(found.size()[row])

    row = np.repeat(np.arange(d * len(RHO) * CELLS), ON_ELLIPSE)
    real, z = on_ellipses(around, row, rng)
    for k in np.flatnonzero(missed(row, real, z))[:3]:
        again = np.full(AROUND, row[k])
        if np.mean(missed(again, *on_ellipses(around, again, rng))) > 0.01:
            return Outcome(CELLS, len(row), f"{formula} (complex) at {z[k]} around {real[k]}")
    return Outcome(CELLS, len(row), None)


def on_ellipses(around: Neighbourhoods, row: Array, rng: np.random.Generator) -> tuple:
    """Real points of the cells, and the same with one coordinate in the ellipse: on it, or near
    its middle line."""
    cells, d = around.lower.shape
    axis, k, cell = np.unravel_index(row, (d, len(around.rho), cells))
    lower, upper = around.lower[cell], around.upper[cell]
    real = (lower + (upper - lower) * rng.random(lower.shape)).astype(np.longdouble)
    rho = 1 + (around.rho[k] - 1) * np.where(rng.random(len(row)) < 0.7, 1, rng.random(len(row)))
    turn = rho * np.exp(2j * np.pi * rng.random(len(row)))
    z, rows = real.astype(np.clongdouble), np.arange(len(row))
    half = (upper - lower)[rows, axis] / 2
    z[rows, axis] = (lower + upper)[rows, axis] / 2 + half * (turn + 1 / turn) / 2
    return real, z


def narrowed(rule: Callable) -> Callable:
    """A rule whose enclosures are a tenth too narrow."""

    def wrong(*operands: Any, **options: Any) -> Any:
        found = rule(*operands, **options)
        rectangle = isinstance(found, Rectangle)
        pairs = [found.real, found.imaginary] if rectangle else [(found.lower, found.upper)]
        with np.errstate(all="ignore"):
            ends = [(a + 0.05 * (b - a), b - 0.05 * (b - a)) for a, b in pairs]
        flat = [np.where(np.isnan(end), 0.0, end) for pair in ends for end in pair]
        return Rectangle(*flat) if rectangle else Interval(*flat)

    return wrong


def run(count: int, seed: int = SEED, by_jax: bool = True) -> dict[str, Any]:
    """The counts, and the formulas with values outside. JAX compiles every operation once, which
    takes longer than a few formulas: without it the values are NumPy's."""
    warnings.simplefilter("ignore")
    start, totals = time.perf_counter(), collections.Counter()
    skipped, bad = collections.Counter(), []
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        d = int(rng.integers(1, 4))
        formula = draw(rng, d, int(rng.integers(1, 5)))
        formula = Formula("slope", (formula,)) if rng.random() < 0.15 else formula
        real = functools.partial(check_real, by_jax=by_jax)
        checks = [real, check_complex] if formula.continued else [real]
        for check in checks:
            kind = "complex" if check is check_complex else "real"
            try:
                with np.errstate(all="ignore"):
                    outcome = check(formula, d, rng)
            except UnsupportedOperation as error:
                skipped[f"{kind}: no rule for {error.name}"] += 1
                continue
            except Exception as error:  # Whatever it is, it is a fault.
                bad.append(f"formula {k}: {formula} ({kind}): {type(error).__name__}: {error}")
                continue
            totals.update({f"{kind} formulas": 1, f"{kind} boxes": outcome.boxes})
            totals[f"{kind} values"] += outcome.values
            bad += [f"formula {k}: {outcome.bad}"] if outcome.bad else []
    seconds = time.perf_counter() - start
    return {"counts": dict(totals), "skipped": dict(skipped), "bad": bad, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=5000)
    parser.add_argument("seed", nargs="?", type=int, default=SEED)
    parser.add_argument("--fault")
    given = parser.parse_args()
    if given.fault:
        plant(given.fault)
    found = run(given.count, given.seed)
    print(f"{given.count} formulas, seed {given.seed}, {found['seconds']:.0f} s")
    for name, number in sorted(found["counts"].items()):
        print(f"  {name:18} {number:>12,}")
    for reason, number in found["skipped"].items():
        print(f"  skipped, {reason}: {number}")
    print(f"  values outside of an enclosure: {len(found['bad'])} formulas")
    for each in found["bad"][:40]:
        print(f"    {each}")


def plant(name: str) -> None:
    """A fault in the rules of one operation, for intervals and for rectangles."""
    for table in (rules.ELEMENTWISE, functions.FUNCTIONS):
        if name in table:
            table[name] = narrowed(table[name])


if __name__ == "__main__":
    main()
