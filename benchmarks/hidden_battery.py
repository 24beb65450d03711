"""Small features: are certified bounds below the truth?

    python benchmarks/hidden_battery.py [COUNT] [SEED]

Each case plants an error v in the answer u_θ = u + v of Poisson's equation, or of one with another
A, on a box of some size and shape; v has a feature of width 0.001 to 0.3 of the shortest side: a
compact bump, a Gaussian, a needle 1:10, a shell, a ridge, or an inclusion of A. The truth is ‖Δv‖
by the midpoint rule on a fine grid around the feature, which no certificate sees. Printed: cases,
bounds given, bounds below the truth beyond the error of the grid, by width; and the seconds.
"""

import itertools
import sys
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cordes

SEED = 20_261
KINDS = ("bump", "gaussian", "needle", "shell", "ridge", "inclusion")
WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
# The grid of the truth: points per direction around the feature, and its own error.
GRID, DOUBT = {2: 400, 3: 90}, 0.01


class Case(NamedTuple):
    kind: str
    width: float
    problem: cordes.Linear
    answer: object
    truth: float


def shape_of(kind: str, place: np.ndarray, width: float, rng: np.random.Generator):
    """A feature of height one, and how far it reaches in widths."""
    stretch = np.ones(len(place))
    if kind == "needle":
        stretch[rng.integers(len(place))] = 10.0

    def distance(x):
        return jnp.sum(((x - place) / (width * stretch)) ** 2)

    if kind in ("bump", "needle"):
        return lambda x: jnp.maximum(1 - distance(x), 0.0) ** 4, stretch
    if kind == "shell":
        # A bump around the sphere of one width and a half.
        return lambda x: jnp.maximum(1 - (distance(x) - 2.25) ** 2, 0.0) ** 4, 1.9 * stretch
    if kind == "ridge":
        return lambda x: jnp.exp(-(((x[0] - place[0]) / width) ** 2)), np.array([6.0, np.inf])
    return lambda x: jnp.exp(-distance(x)), 6 * stretch


def draw(rng: np.random.Generator, d: int = 2) -> Case:
    kind = KINDS[rng.integers(len(KINDS) if d == 2 else 2)]
    sides = 10 ** rng.uniform(-1, 1) * np.ones(d)
    sides[0] *= 10 ** rng.uniform(0, 1.5)
    lower = rng.normal(size=d)
    domain = cordes.Box(lower, lower + sides)
    share = 10 ** rng.uniform(-3, np.log10(0.3) if d == 2 else -1)
    width = share * float(np.min(sides))
    place = lower + rng.uniform(0.15, 0.85, d) * sides
    background = 10 ** rng.uniform(-8, -2)
    feature, reach = shape_of(kind, place, width, rng)

    def error(x):
        inside = jnp.prod(jnp.sin(jnp.pi * (x - lower) / sides))
        planted = 0.0 if kind == "inclusion" else feature(x) * inside
        return planted + background * inside

    def ratio(x):
        if kind != "inclusion":
            return 1.0
        return jnp.where(jnp.sum(((x - place) / width) ** 2) < 1, 3.0, 1.0)

    def laplacian(function):
        return lambda x: jnp.trace(jax.hessian(function)(x))

    def u(x):
        return jnp.sum((x - lower) * (lower + sides - x)) / jnp.sum(jnp.asarray(sides) ** 2)

    source = laplacian(u)
    interfaces = []
    if kind == "inclusion":
        # The answer solves the equation without the inclusion.
        interfaces = [lambda x: jnp.sum((x - place) ** 2) - width**2]
    problem = cordes.Linear(
        domain, lambda x: ratio(x) * jnp.eye(d), source, g=u, interfaces=interfaces
    )

    def answer(x):
        return u(x) + error(x)

    def residual(x):
        # Times d/tr A: for A = ratio · I it is Δv.
        return (source(x) - ratio(x) * laplacian(answer)(x)) / ratio(x)

    half = np.minimum(1.02 * width * (np.ones(d) if kind == "inclusion" else reach), 1e9)
    return Case(kind, share, problem, answer, norm(residual, domain, place, half))


def norm(function, domain, place: np.ndarray, half: np.ndarray) -> float:
    """‖·‖ over the part of the box around a place, by the midpoint rule: less than the whole."""
    low, high = (np.asarray(corner) for corner in domain.bounding_box)
    low, high = np.maximum(low, place - half), np.minimum(high, place + half)
    n = GRID[len(place)]
    axes = [(np.arange(n) + 0.5) / n * (b - a) + a for a, b in zip(low, high, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(place))
    values = np.concatenate([np.asarray(jax.vmap(function)(part)) for part in np.array_split(x, 8)])
    return float(np.sqrt(np.sum(values**2) * np.prod((high - low) / n)))


class Outcome(NamedTuple):
    case: Case
    bound: float | None
    seconds: float

    @property
    def violated(self) -> bool:
        return self.bound is not None and self.bound < (1 - DOUBT) * self.case.truth


def judged(case: Case) -> Outcome:
    start = time.perf_counter()
    certificate = cordes.certify(case.problem, case.answer)
    energy = None if certificate.energy is None else certificate.energy[1]
    return Outcome(case, energy, time.perf_counter() - start)


def run(count: int, seed: int, d: int = 2) -> list[Outcome]:
    rng = np.random.default_rng(seed)
    return [judged(draw(rng, d)) for _ in range(count)]


def main() -> None:
    count, seed = (int(text) for text in (*sys.argv[1:], "300", str(SEED))[:2])
    found = run(count - count // 10, seed) + run(count // 10, seed + 1, 3)
    print(
        "widths (share of the shortest side)  cases  bounds  below the truth  largest truth/bound"
    )
    for low, high in itertools.pairwise(WIDTHS):
        part = [each for each in found if low <= each.case.width < high]
        given = [each for each in part if each.bound is not None]
        worst = max((each.case.truth / max(each.bound or 0, 1e-300) for each in given), default=0)
        below = sum(each.violated for each in part)
        print(f"{low:g} to {high:g}: {len(part):6} {len(given):6} {below:6} {worst:12.4g}")
    for each in found:
        if each.violated:
            print("below:", each.case.kind, each.case.width, each.bound, each.case.truth)
    seconds = [each.seconds for each in found]
    print(f"{sum(seconds):.0f} s, median {np.median(seconds):.2f} s")
    sys.exit(any(each.violated for each in found))


if __name__ == "__main__":
    main()
