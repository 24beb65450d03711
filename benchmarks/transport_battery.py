"""Random attacks on the bounds of optimal transport: convex potentials u with known maps, computed
potentials φ = u + t e.

    python benchmarks/transport_battery.py [cases] [seed]

The target is an affine image of the source, ∇u maps the one onto the other, and the source density
is that which ∇u carries to the target density. The error e keeps the boundary, or moves it so that
the map leaves the target or does not fill it; its size t runs from tiny to where φ is no longer
convex. For each case the bound of the map and the bracket of W₂ are compared with the truth. Prints
a table and exits with status 1 if any bound is below the truth. All is NumPy: nothing is compiled.
"""

import sys
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from certificate_battery import distance_jet, draw_domain
from monge_ampere_battery import Waves, breaking_size, end

from cordes.certificates.certificate import Certificate
from cordes.certificates.residual.candidate import ROUNDING_OF_TERMS
from cordes.certificates.transport.certify import bounds
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.formulas.intervals import UnsupportedOperation
from cordes.jet import Jet

CASES, SEED = 100, 20_265
DIMENSIONS = (2, 3, 2, 2, 1)
KINDS = {1: ("box",), 2: ("box", "disk", "ellipse", "polygon"), 3: ("box", "ball")}
ERRORS = ("flat", "flat", "normal", "free")
LARGEST = {1: 12.0, 2: 8.0, 3: 4.0}
TRUTH_POINTS = {1: 80, 2: 40, 3: 16}
# The bounds hold up to the rounding and the quadrature of the truth.
ROUNDING = 1e-7


def _without_formula(y: Any) -> Any:
    """The density of a case is known at points only."""
    raise UnsupportedOperation("the density has no formula")


class Flattened(NamedTuple):
    """distanceᵏ · waves: for k = 2 its gradient vanishes on the boundary, for k = 1 it is normal to
    it."""

    domain: Any
    waves: Waves
    power: int

    def jet(self, x: np.ndarray) -> Jet:
        D, D1, D2 = distance_jet(self.domain, x)
        if self.power == 2:
            D, D1, D2 = (
                D**2,
                2 * D[:, None] * D1,
                2 * (D1[:, :, None] * D1[:, None] + D[:, None, None] * D2),
            )
        value, gradient, hessian = (np.asarray(part) for part in self.waves.jet(x))
        cross = D1[:, :, None] * gradient[:, None]
        curvature = (
            D[:, None, None] * hessian
            + value[:, None, None] * D2
            + cross
            + np.swapaxes(cross, 1, 2)
        )
        return Jet(D * value, D[:, None] * gradient + value[:, None] * D1, curvature)  # pyright: ignore


class Quadratic(NamedTuple):
    """½x·Bx + b·x."""

    matrix: np.ndarray
    shift: np.ndarray

    def jet(self, x: np.ndarray) -> Jet:
        slope = x @ self.matrix
        hessian = np.broadcast_to(self.matrix, (len(x), *self.matrix.shape))
        return Jet(np.sum(slope * x, axis=1) / 2 + x @ self.shift, slope + self.shift, hessian)  # pyright: ignore


class Combination(NamedTuple):
    """one + size · other."""

    one: Any
    size: float
    other: Any

    def jet(self, x: np.ndarray) -> Jet:
        return Jet(
            *(a + self.size * b for a, b in zip(self.one.jet(x), self.other.jet(x), strict=True))
        )


class Density:
    """A positive function of mass one on a domain; one where there are no waves."""

    def __init__(self, domain: Any, waves: Waves | None):
        self.waves, self.total = waves, domain.volume
        if waves is not None:
            x, weight = domain.quadrature(max(40, TRUTH_POINTS[domain.dimension]))
            self.total = 1.0
            self.total = float(weight @ self(x))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return (
            np.ones(len(y)) / self.total
            if self.waves is None
            else np.exp(np.asarray(self.waves.jet(y).value)) / self.total
        )


class Case:
    """A potential u and a computed one φ, as a problem and a candidate."""

    # Nothing is known of the computed potential but its values.
    formulas, scales = (), None

    def __init__(
        self, domain: Any, target: Any, kind: str, solution: Any, answer: Any, density: Density
    ):
        self.domain, self.kind, self.solution, self.answer, self.density = (
            domain,
            kind,
            solution,
            answer,
            density,
        )
        self.problem = SimpleNamespace(
            domain=domain,
            target_domain=target,
            uniform=density.waves is None,
            source_density=self.source_density,
            target_density=density,
            nu=_without_formula,
            interfaces=(),
            data=dict,
            name=kind,
        )

    def source_density(self, x: np.ndarray) -> np.ndarray:
        jet = self.solution.jet(x)
        return self.density(np.asarray(jet.gradient)) * np.linalg.det(np.asarray(jet.hessian))

    def jet(self, x: np.ndarray) -> Jet:
        return self.answer.jet(x)

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient, hessian = self.jet(x)
        terms = np.concatenate(
            [(A * hessian).reshape(len(x), -1), b * gradient, -(c * value)[:, None]], axis=1
        )
        return np.sum(terms, axis=1), ROUNDING_OF_TERMS * np.sum(np.abs(terms), axis=1)

    def value(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = np.asarray(self.jet(x).value)
        return value, ROUNDING_OF_TERMS * np.abs(value)

    def truth(self) -> tuple[float, float]:
        """‖∇φ - ∇u‖ in L²(μ) and W₂(μ, ν)."""
        x, weight = self.domain.quadrature(TRUTH_POINTS[self.domain.dimension])
        mu, exact, answer = (
            self.source_density(x),
            np.asarray(self.solution.jet(x).gradient),
            np.asarray(self.answer.jet(x).gradient),
        )
        return tuple(
            float(np.sqrt(weight @ (mu * np.sum(gap**2, axis=1))))
            for gap in (answer - exact, x - exact)
        )  # pyright: ignore[reportReturnType]


def affine_image(domain: Any, matrix: np.ndarray, shift: np.ndarray) -> Any:
    """The image of a domain under x ↦ Bx + b; B is diagonal for a box."""
    if isinstance(domain, Box):
        return Box(domain.lower @ matrix + shift, domain.upper @ matrix + shift)
    center = np.asarray(domain.center) @ matrix + shift
    if isinstance(domain, Polygon):
        return Polygon(domain.vertices @ matrix + shift)
    if isinstance(domain, Ball):
        return (
            Ball(center, domain.radius * matrix[0, 0])
            if np.allclose(matrix, matrix[0, 0] * np.eye(len(matrix)))
            else Ellipsoid(center, domain.radius * matrix)
        )
    return Ellipsoid(center, matrix @ domain.matrix)


def draw_waves(rng: np.random.Generator, domain: Any, largest: float) -> Waves:
    d = domain.dimension
    lower, upper = domain.bounding_box
    waves = rng.standard_normal((3, d)) / (upper - lower) * rng.uniform(0.1, largest)
    return Waves(np.zeros((d, d)), waves, rng.uniform(0, 2 * np.pi, 3), rng.standard_normal(3))


def draw(number: int, seed: int = SEED) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([seed, number])
    d = DIMENSIONS[number % len(DIMENSIONS)]
    kind = str(rng.choice(KINDS[d]))
    if d == 1:
        start = rng.uniform(-1, 0, 1)
        domain: Any = Box(start, start + rng.uniform(0.5, 2, 1))
    else:
        domain = draw_domain(rng, d, kind)[0]
    if isinstance(domain, Box):
        matrix = np.diag(rng.uniform(0.5, 2, d))
    elif isinstance(domain, Ball) and rng.random() < 0.5:
        matrix = rng.uniform(0.5, 2) * np.eye(d)
    else:
        root = rng.standard_normal((d, d)) * 0.3 + np.eye(d)
        matrix = root @ root.T + 0.2 * np.eye(d)
    shift = rng.uniform(-1, 1, d)
    target = affine_image(domain, matrix, shift)
    quadratic, rough = (
        Quadratic(matrix, shift),
        Flattened(domain, draw_waves(rng, domain, LARGEST[d] / 2), 2),
    )
    solution = Combination(
        quadratic, rng.uniform(0, 0.6) * breaking_size(domain, quadratic, rough), rough
    )
    error_kind = str(rng.choice(ERRORS))
    waves = draw_waves(rng, domain, LARGEST[d])
    error: Any = (
        waves
        if error_kind == "free"
        else Flattened(domain, waves, 2 if error_kind == "flat" else 1)
    )
    share = 10 ** rng.uniform(-6, -0.3) if rng.random() < 0.8 else rng.uniform(0.5, 1.2)
    answer = Combination(solution, share * breaking_size(domain, solution, error), error)
    calm = draw_waves(rng, target, 3.0)
    density = Density(target, None if rng.random() < 0.6 else calm._replace(sizes=0.3 * calm.sizes))
    return Case(domain, target, f"{d}-D {kind}, {error_kind}", solution, answer, density)


def run(cases: int, seed: int = SEED) -> list[tuple[int, Case, Certificate, dict[str, float]]]:
    """Every case with its certificate and bound/truth of the map, and of both sides of W₂ so that a
    number below 1 is a violation."""
    results = []
    for number in range(cases):
        case = draw(number, seed)
        certificate = bounds(case.problem, case)  # pyright: ignore[reportArgumentType]
        found = {}
        if certificate.map_L2 is not None and certificate.W2 is not None:
            error, distance = case.truth()
            low, high = certificate.W2
            found = {
                "map": certificate.map_L2 / error,
                "W2 lower": distance / max(low, 1e-300),
                "W2 upper": high / distance,
            }
        results.append((number, case, certificate, found))
    return results


def violations(results) -> list[str]:
    return [
        f"case {number} ({case.kind}): {name} {ratio:.9f} by {certificate.theorem}"
        for number, case, certificate, found in results
        for name, ratio in found.items()
        if not ratio >= 1 - ROUNDING
    ]


def main() -> None:
    cases, seed = (
        int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, CASES), (2, SEED))
    )
    start = time.perf_counter()
    results = run(cases, seed)
    groups: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _, case, _, found in results:
        groups[case.kind].append(found)
    print(
        f"{'domain, error':<22} {'cases':>5} {'refused':>7} {'median':>9} {'largest':>9} "
        f"{'smallest':>9} {'W₂ width':>9}   (bound / truth of the map)"
    )
    for kind, entries in [*sorted(groups.items()), ("all", [found for *_, found in results])]:
        held = [found for found in entries if found]
        ratios = [found["map"] for found in held]
        numbers = [np.median(ratios), np.max(ratios), np.min(ratios)] if held else []
        numbers += (
            [np.median([found["W2 upper"] - 1 / found["W2 lower"] for found in held])]
            if held
            else []
        )
        print(
            f"{kind:<22} {len(entries):>5} {len(entries) - len(held):>7} "
            + " ".join(f"{number:9.3g}" for number in numbers)
        )
    end(results, violations(results), start)


if __name__ == "__main__":
    main()
