"""Attacks on the bounds on domains of the plane that are not convex: random polygons, half of them
with a round hole, on half of these a flux, equations whose solution is known, answers that are
deliberately coarse. Every bound must lie above the true error.

    python benchmarks/plane_battery.py [COUNT] [SEED] [SECONDS]

No case is begun after so many seconds.
"""

import sys
import time
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cordes

MATRICES = (np.eye(2), np.array([[1.5, 0.4], [0.4, 0.8]]))


class Case(NamedTuple):
    """Bounds over true errors of one answer; infinite where there is no bound."""

    seed: int
    kind: str
    largest: float
    mean: float


def random_polygon(generator: np.random.Generator, count: int) -> np.ndarray:
    """The corners of a polygon around the origin, hardly ever convex."""
    gaps = generator.uniform(0.5, 1.5, count)
    angles = 2 * np.pi * np.cumsum(gaps) / np.sum(gaps)
    radii = generator.uniform(0.35, 1.0, count)
    return radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def random_domain(generator: np.random.Generator) -> Any:
    """Not convex."""
    domain: Any = cordes.Polygon(random_polygon(generator, int(generator.integers(5, 10))))
    while domain.convex:
        domain = cordes.Polygon(random_polygon(generator, int(generator.integers(5, 10))))
    if generator.random() < 0.5:
        room = float(domain.gap(domain.center[None])[0])
        domain = domain - cordes.Ball(domain.center, generator.uniform(0.2, 0.7) * room)
    return domain


def random_problem(generator: np.random.Generator) -> tuple[str, cordes.Linear]:
    """An equation whose solution is a wave and a logarithm."""
    domain = random_domain(generator)
    wave, phase = generator.uniform(-3, 3, 2), generator.uniform(0, 2 * np.pi)
    angle, share = generator.uniform(0, 2 * np.pi), generator.uniform(-1, 1)
    pole = generator.uniform(1.4, 3) * np.array([np.cos(angle), np.sin(angle)])

    def exact(x):
        return jnp.sin(wave @ x + phase) + share * jnp.log(jnp.sum((x - pole) ** 2))

    kind = ("Laplace", "reaction", "constant", "varying")[int(generator.integers(4))]
    M = jnp.asarray(MATRICES[kind in ("constant", "varying")])
    reaction = generator.uniform(0, 5) if kind == "reaction" else 0.0

    def A(x):
        return M * (1 + 0.3 * jnp.sin(2 * x[0] + phase)) if kind == "varying" else M

    def f(x):
        return jnp.sum(A(x) * jax.hessian(exact)(x)) - reaction * exact(x)

    given = A if kind == "varying" else np.asarray(M)
    if "hole 1" not in domain.pieces or generator.random() < 0.5:
        return kind, cordes.Linear(domain, given, f, c=reaction, g=exact, exact=exact)
    middle = np.array(next(arc.a for arc in domain.arcs if arc.piece == "hole 1"))
    kappa = float(generator.choice([0.0, 1.0, 5.0]))
    sides = {"outer": cordes.Dirichlet(exact), "hole 1": flux(exact, middle, kappa)}
    flowing = cordes.Linear(domain, given, f, c=reaction, boundary=sides, exact=exact)
    return f"{kind}, flux", flowing


def flux(exact: Any, middle: np.ndarray, kappa: float) -> cordes.Robin:
    """That of a solution into a round hole."""

    def h(x):
        inwards = (middle - x) / jnp.linalg.norm(middle - x)
        return jax.grad(exact)(x) @ inwards + kappa * exact(x)

    return cordes.Robin(kappa, h)


def attack(seed: int) -> Case:
    generator = np.random.default_rng(seed)
    kind, problem = random_problem(generator)
    solution = cordes.solve(problem, levels=int(generator.integers(1, 3)), progress=False)
    error, certificate = solution.error(), solution.certificate
    assert error is not None
    assert certificate is not None
    if certificate.Linf is None or certificate.rms is None:
        return Case(seed, kind, np.inf, np.inf)
    return Case(seed, kind, certificate.Linf / error.linf, certificate.rms / error.l2)


def main(count: int, seed: int, seconds: int) -> None:
    warnings.simplefilter("ignore")
    begun, cases = time.monotonic(), []
    while len(cases) < count and time.monotonic() - begun < seconds:
        cases.append(attack(seed + len(cases)))
    ratios = np.array([min(case.largest, case.mean) for case in cases])
    for case in cases:
        if min(case.largest, case.mean) < 1:
            print(f"violated: {case}")
    bounded = np.isfinite(ratios)
    print(
        f"{len(cases)} cases, {sum('flux' in case.kind for case in cases)} with a flux, "
        f"{np.sum(~bounded)} without a bound, {np.sum(ratios < 1)} violations; "
        f"bound over error: {np.min(ratios):.3g} at least, {np.median(ratios[bounded]):.3g} in "
        "the median"
    )


if __name__ == "__main__":
    defaults = ["500", "0", "86400"]
    main(*(int(argument) for argument in sys.argv[1:] + defaults[len(sys.argv) - 1 :]))
