"""Random problems in time and stopping with wrong answers, given to `cordes.certify` as any user
would: linear equations and control with coefficients that depend on place and time, terminal
problems, obstacles. The solution u and the error v are known; every bound must be at least the
truth, in all norms and at times.

`python benchmarks/time_cases.py [cases] [first]` prints the smallest bound/truth of each norm and
kind, and what was violated.
"""

import sys
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cordes

SEED = 90_017
KINDS = ("parabolic", "terminal", "hjb", "obstacle")
GAUSS, GRID = {1: 40, 2: 16}, {1: 161, 2: 33}
ROUNDING = 1e-9


class Case(NamedTuple):
    kind: str
    problem: Any
    answer: Any
    error: Any
    horizon: float


def draw_dimension(number: int, seed: int = SEED) -> int:
    """One draw of a generator of its own."""
    return 2 if np.random.default_rng([seed, number, 1]).random() < 0.25 else 1


def draw(number: int, seed: int = SEED) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([seed, number])
    kind, d = KINDS[number % len(KINDS)], draw_dimension(number, seed)
    sides, horizon = np.exp(rng.uniform(-0.5, 0.5, d)), float(np.exp(rng.uniform(-1.5, 0.7)))
    k, m = rng.uniform(-2, 2, (2, d))
    q, phase, decay, s = rng.uniform(-1, 2, 4)
    size = 10.0 ** rng.uniform(-6, 0)

    def exact(x, t):
        return jnp.sin(jnp.dot(k, x) + phase + q * t) * jnp.exp(-decay * t) + 0.3 * x[0]

    def since(t):
        return horizon - t if kind == "terminal" else t

    def error(x, t):
        inside = jnp.prod(x * (sides - x))
        return size * since(t) * inside * jnp.cos(jnp.dot(m, x) + s * t)

    def answer(x, t):
        return exact(x, t) - error(x, t)

    return Case(kind, _problem(kind, rng, d, sides, horizon, exact), answer, error, horizon)


def _problem(kind: str, rng: Any, d: int, sides: Any, horizon: float, exact: Any) -> Any:
    controls = np.arange(int(rng.integers(2, 4)) if kind == "hjb" else 1, dtype=float)
    spread, way = rng.uniform(0, 0.3), rng.standard_normal((3, d))
    drift, reaction = rng.uniform(-0.3, 0.3, 2) * (rng.random() < 0.6)
    gap, free = rng.uniform(0.1, 2, 2)
    speed = rng.uniform(-0.3, 0.3) * sides[0] / horizon
    turning = np.ones((d, d)) / d

    def A(x, t, a=0.0):
        return jnp.eye(d) * (1 + 0.2 * a) + spread * jnp.sin(way[0] @ x + t + a) * turning

    def b(x, t, a=0.0):
        return drift * jnp.cos(way[1] * x + a)

    def c(x, t, a=0.0):
        return reaction * (1 + 0.5 * jnp.sin(way[2] @ x + a))

    def operator(x, t, a):
        value, gradient = exact(x, t), jax.grad(exact)(x, t)
        hessian = jax.hessian(exact)(x, t)
        slope = jax.grad(exact, argnums=1)(x, t)
        found = jnp.sum(A(x, t, a) * hessian) + b(x, t, a) @ gradient - c(x, t, a) * value
        return found + slope if kind == "terminal" else found - slope

    def beyond(x, t):
        return x[0] - sides[0] / 2 - speed * t

    def excess(x, t, a):
        if kind == "obstacle":
            return free * jnp.maximum(-beyond(x, t), 0.0)
        own = jnp.stack([jnp.cos(3 * x[0] + 2 * t + each) for each in controls])
        return free * (jnp.cos(3 * x[0] + 2 * t + a) - jnp.min(own))

    def f(x, t, a=0.0):
        more = excess(x, t, a) if kind in ("hjb", "obstacle") else 0.0
        return operator(x, t, a) + more

    box = cordes.Box(np.zeros(d), sides)
    if kind == "hjb":
        start = {"initial": lambda x: exact(x, 0.0), "horizon": horizon}
        return cordes.HJB(box, controls, A, f, b=b, c=c, g=exact, **start)
    when = "terminal" if kind == "terminal" else "initial"
    place = horizon if kind == "terminal" else 0.0
    values = {when: lambda x: exact(x, place)}
    base = cordes.Parabolic(
        box,
        horizon,
        lambda x, t: A(x, t),
        lambda x, t: f(x, t),
        b=lambda x, t: b(x, t),
        c=lambda x, t: c(x, t),
        g=exact,
        **values,
    )
    if kind != "obstacle":
        return base
    return cordes.Obstacle(
        base, below=lambda x, t: exact(x, t) - gap * jnp.maximum(beyond(x, t), 0.0) ** 2
    )


def results_of(number: int, seed: int = SEED) -> dict[str, tuple[float, float]]:
    """Bounds and truths by name; empty where nothing is certified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cordes.UndeclaredJumpWarning)
        case = draw(number, seed)
        found = cordes.certify(case.problem, case.answer)
    d, horizon = case.problem.space.dimension, case.horizon
    sides = case.problem.space.bounding_box[1]
    value = jax.jit(jax.vmap(case.error))
    slope = jax.jit(jax.vmap(jax.grad(case.error)))
    hessian = jax.jit(jax.vmap(jax.hessian(case.error)))
    x, t, w = gauss(d, sides, horizon)

    def norm(part: Any) -> float:
        return float(np.sqrt(w @ np.sum(np.asarray(part).reshape(len(w), -1) ** 2, axis=1)))

    axes = [np.linspace(0, side, GRID[d]) for side in sides] + [np.linspace(0, horizon, 21)]
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d + 1)
    top = float(np.max(np.abs(value(z[:, :d], z[:, d]))))
    truth = {"L2": norm(value(x, t)), "H1": norm(slope(x, t)), "H2": norm(hessian(x, t))}
    truth |= {"Linf": top, "rms": truth["L2"] / np.sqrt(horizon * np.prod(sides))}
    results = {
        name: (bound, true)
        for name, true in truth.items()
        if (bound := getattr(found, name)) is not None
    }
    if found.in_time is not None:
        results |= _at_times(found, (value, slope), (x, w / horizon, d), horizon)
    return {f"{case.kind} {name}": pair for name, pair in results.items()}


def _at_times(found: Any, parts: Any, rule: Any, horizon: float) -> dict[str, tuple[float, float]]:
    """At three times; the rule of space is that of space and time, whose times do not matter."""
    x, w, _ = rule
    results = {}
    for share in (0.15, 0.6, 0.97):
        time = np.full(len(x), share * horizon)
        bounds = found.at(share * horizon)
        value, slope = (np.asarray(part(x, time)).reshape(len(x), -1) for part in parts)
        truths = {
            "L2": float(np.sqrt(w @ np.sum(value**2, axis=1))),
            "H1": float(np.sqrt(w @ np.sum(slope**2, axis=1))),
            "Linf": float(np.max(np.abs(value))),
        }
        for name, truth in truths.items():
            bound = getattr(bounds, name)
            if bound is not None:
                results[f"{name} at {share}T"] = (bound, truth)
    return results


def gauss(d: int, sides: Any, horizon: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS[d])
    nodes, weights = (nodes + 1) / 2, weights / 2
    z = np.stack(np.meshgrid(*[nodes] * (d + 1), indexing="ij"), axis=-1).reshape(-1, d + 1)
    w = np.prod(np.meshgrid(*[weights] * (d + 1), indexing="ij"), axis=0).ravel()
    return z[:, :d] * sides, z[:, d] * horizon, w * horizon * np.prod(sides)


def run(numbers: Iterable[int], seed: int = SEED) -> list[tuple[int, dict]]:
    return [(number, results_of(number, seed)) for number in numbers]


def violations(results: list[tuple[int, dict]]) -> list[tuple[int, str, float, float]]:
    return [
        (number, name, bound, truth)
        for number, found in results
        for name, (bound, truth) in found.items()
        if not bound >= truth * (1 - ROUNDING)
    ]


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    results = run(range(first, first + cases))
    ratios: dict[str, list[float]] = {}
    for _, found in results:
        for name, (bound, truth) in found.items():
            ratios.setdefault(name, []).append(bound / truth)
    for name, each in sorted(ratios.items()):
        print(f"{name:24} {len(each):4d} least {min(each):.5g} median {np.median(each):.4g}")
    print(f"{sum(not found for _, found in results)} of {cases} without any bound")
    print(f"violations: {violations(results)}")


if __name__ == "__main__":
    main()
