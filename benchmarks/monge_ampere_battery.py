"""Random attacks on the bound of the Monge–Ampère equation: convex functions u with known
determinants, answers w = u + t v with v = 0 on the boundary.

    python benchmarks/monge_ampere_battery.py [cases] [seed]

The size t runs from tiny to where w is no longer convex. For each case the bounds of the largest
error, of the mean square and at single points are compared with v. Prints a table by dimension and
domain and exits with status 1 if any bound is below the truth. All is NumPy: nothing is compiled.
"""

import sys
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from certificate_battery import distance_jet, draw_domain

from cordes.certificates.certificate import Certificate
from cordes.certificates.monge_ampere.certify import bounds
from cordes.certificates.residual.candidate import ROUNDING_OF_TERMS
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.formulas.intervals import UnsupportedOperation
from cordes.jet import Jet

CASES, SEED = 240, 20_260
DIMENSIONS = (2, 3, 2, 1, 2, 3, 2, 4)
KINDS = {
    1: ("box",),
    2: ("box", "disk", "ellipse", "polygon"),
    3: ("box", "ball", "ellipsoid"),
    4: ("box", "ball"),
}
# Highest frequency of the waves in v.
LARGEST = {1: 20.0, 2: 10.0, 3: 4.0, 4: 2.0}
TRUTH_POINTS = 4000
ROUNDING = 1e-12


def _without_formula(x: Any) -> Any:
    """The density of a case is known at points only."""
    raise UnsupportedOperation("the density has no formula")


class Exponential(NamedTuple):
    """u = exp(½ (x - c)·Q(x - c))."""

    center: np.ndarray
    matrix: np.ndarray

    def jet(self, x: np.ndarray) -> Jet:
        slope = (x - self.center) @ self.matrix
        value = np.exp(np.sum(slope * (x - self.center), axis=1) / 2)
        hessian = self.matrix + slope[:, :, None] * slope[:, None]
        return Jet(value, value[:, None] * slope, value[:, None, None] * hessian)  # pyright: ignore


class SoftMaximum(NamedTuple):
    """u = log Σ exp(pₖ·x + bₖ) + ½ μ|x|², flat where one term dominates."""

    slopes: np.ndarray
    offsets: np.ndarray
    curvature: float

    def jet(self, x: np.ndarray) -> Jet:
        terms = x @ self.slopes.T + self.offsets
        top = np.max(terms, axis=1, keepdims=True)
        weights = np.exp(terms - top)
        total = np.sum(weights, axis=1, keepdims=True)
        weights, mean = weights / total, (weights / total) @ self.slopes
        spread = (
            np.einsum("nk,ki,kj->nij", weights, self.slopes, self.slopes)
            - mean[:, :, None] * mean[:, None]
        )
        value = (top + np.log(total))[:, 0] + self.curvature * np.sum(x**2, axis=1) / 2
        return Jet(value, mean + self.curvature * x, spread + self.curvature * np.eye(x.shape[1]))  # pyright: ignore


class Waves(NamedTuple):
    """½ x·Qx + Σ sₖ cos(kₖ·x + φₖ)."""

    matrix: np.ndarray
    waves: np.ndarray
    phases: np.ndarray
    sizes: np.ndarray

    def jet(self, x: np.ndarray) -> Jet:
        argument = x @ self.waves.T + self.phases
        value = np.sum((x @ self.matrix) * x, axis=1) / 2 + np.cos(argument) @ self.sizes
        hessian = self.matrix - np.einsum(
            "nk,ki,kj->nij", np.cos(argument) * self.sizes, self.waves, self.waves
        )
        return Jet(value, x @ self.matrix - (np.sin(argument) * self.sizes) @ self.waves, hessian)  # pyright: ignore


class Cone(NamedTuple):
    """v = √(|y|² + ε²) - √(1 + ε²), |y|² = (x - c)·M(x - c), which vanishes where |y| = 1:
    Aleksandrov's estimate is sharp for cones."""

    center: np.ndarray
    metric: np.ndarray
    blunt: float

    def jet(self, x: np.ndarray) -> Jet:
        slope = (x - self.center) @ self.metric
        height = np.sqrt(np.sum(slope * (x - self.center), axis=1) + self.blunt**2)
        hessian = (
            self.metric / height[:, None, None]
            - slope[:, :, None] * slope[:, None] / height[:, None, None] ** 3
        )
        return Jet(height - np.sqrt(1 + self.blunt**2), slope / height[:, None], hessian)  # pyright: ignore


class Vanishing(NamedTuple):
    """v = distance · waves."""

    domain: Any
    waves: Waves

    def jet(self, x: np.ndarray) -> Jet:
        D, D1, D2 = distance_jet(self.domain, x)
        value, gradient, hessian = (np.asarray(part) for part in self.waves.jet(x))
        cross = D1[:, :, None] * gradient[:, None]
        curvature = (
            D[:, None, None] * hessian
            + value[:, None, None] * D2
            + cross
            + np.swapaxes(cross, 1, 2)
        )
        return Jet(D * value, D[:, None] * gradient + value[:, None] * D1, curvature)  # pyright: ignore


class Case:
    """A solution u and an answer w = u + t v, as a problem and a candidate."""

    formulas, scales = (), None

    def __init__(self, domain, kind: str, solution, error, size: float):
        self.domain, self.kind, self.solution, self.error, self.size = (
            domain,
            kind,
            solution,
            error,
            size,
        )
        self.problem = SimpleNamespace(
            domain=domain,
            interfaces=(),
            source_density=self.source_density,
            f=_without_formula,
            name=kind,
            data=dict,
        )

    def source_density(self, x: np.ndarray) -> np.ndarray:
        return np.linalg.det(self.solution.jet(x).hessian)

    def jet(self, x: np.ndarray) -> Jet:
        return Jet(
            *(
                one + self.size * other
                for one, other in zip(self.solution.jet(x), self.error.jet(x), strict=True)
            )
        )

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


def breaking_size(domain, solution, error) -> float:
    """The t at which u + t v loses its convexity at one of many points: the largest generalised
    eigenvalue of -D²v with respect to D²u is 1/t."""
    x = domain.interior_points(TRUTH_POINTS, 3)
    root = np.linalg.inv(np.linalg.cholesky(solution.jet(x).hessian))
    carried = root @ np.asarray(error.jet(x).hessian) @ np.swapaxes(root, 1, 2)
    return 1 / float(np.max(-np.linalg.eigvalsh(carried)[:, 0]))


def draw_solution(rng: np.random.Generator, domain):
    """A smooth, strictly convex function."""
    d = domain.dimension
    lower, upper = domain.bounding_box
    scale = 1 / np.max(upper - lower)
    root = scale * (rng.standard_normal((d, d)) + 1.5 * np.eye(d))
    matrix, family = root @ root.T / d + 0.1 * scale**2 * np.eye(d), rng.integers(3)
    if family == 0:
        return Exponential(rng.uniform(lower, upper), matrix * rng.uniform(0.5, 4))
    if family == 1:
        count = int(rng.integers(3, 7))
        return SoftMaximum(
            rng.standard_normal((count, d)) * scale * rng.uniform(1, 6),
            rng.standard_normal(count),
            10 ** rng.uniform(-3, 0) * scale**2,
        )
    waves = scale * rng.standard_normal((3, d)) * 3
    smallest = np.linalg.eigvalsh(matrix)[0]
    return Waves(
        matrix,
        waves,
        rng.uniform(0, 6, 3),
        rng.uniform(-1, 1, 3) * 0.3 * smallest / np.sum(waves**2, axis=1),
    )


def draw(number: int, seed: int = SEED) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([seed, number])
    d = DIMENSIONS[number % len(DIMENSIONS)]
    kind = str(rng.choice(KINDS[d]))
    if d in (2, 3):
        domain = draw_domain(rng, d, kind)[0]
    elif kind == "box":
        start = rng.uniform(-1, 0, d)
        domain = Box(start, start + rng.uniform(0.5, 2, d))
    else:
        domain = Ball(rng.uniform(-1, 1, d), rng.uniform(0.5, 2))
    lower, upper = domain.bounding_box
    solution = draw_solution(rng, domain)
    if rng.random() < 0.3 and (d == 1 or not isinstance(domain, Box | Polygon)):
        # A convex v keeps w convex whatever its size.
        root = np.linalg.inv(
            domain.matrix
            if isinstance(domain, Ellipsoid)
            else np.eye(d) * np.min(upper - lower) / 2
        )
        # In four dimensions the norms are sampled: a sharp tip, which hardly any point meets, is
        # beyond what such a bound claims.
        cone = Cone(
            np.asarray(domain.center), root.T @ root, 10 ** rng.uniform(-1.5 if d <= 3 else -0.5, 0)
        )
        return Case(domain, f"{d}-D {kind}, cone", solution, cone, 10 ** rng.uniform(-4, 3))
    waves = rng.standard_normal((4, d)) / (upper - lower) * rng.uniform(0.1, LARGEST[d])
    error = Vanishing(
        domain, Waves(np.zeros((d, d)), waves, rng.uniform(0, 2 * np.pi, 4), rng.standard_normal(4))
    )
    share = 10 ** rng.uniform(-6, 0) if rng.random() < 0.75 else rng.uniform(0.9, 1.3)
    return Case(
        domain, f"{d}-D {kind}", solution, error, share * breaking_size(domain, solution, error)
    )


def ratios(case: Case, certificate: Certificate) -> dict[str, float]:
    """bound/truth for the norms, and the smallest one over single points."""
    x = case.domain.interior_points(TRUTH_POINTS, 5)
    size = np.abs(case.size * np.asarray(case.error.jet(x).value))
    assert certificate.picture is not None
    assert certificate.picture.bound is not None
    found = {
        "Linf": certificate.Linf / np.max(size),
        "pointwise": float(np.min(certificate.picture.bound(x) / np.maximum(size, 1e-300))),
    }
    if case.domain.dimension <= 3:
        x, weight = case.domain.quadrature({1: 40, 2: 24, 3: 12}[case.domain.dimension])
        found["L2"] = certificate.L2 / np.sqrt(
            weight @ (case.size * np.asarray(case.error.jet(x).value)) ** 2
        )
    return found


def run(cases: int, seed: int = SEED) -> list[tuple[int, Case, Certificate, dict[str, float]]]:
    results = []
    for number in range(cases):
        case = draw(number, seed)
        certificate = bounds(case.problem, case, np.zeros((0, case.domain.dimension)))  # pyright: ignore
        results.append(
            (
                number,
                case,
                certificate,
                ratios(case, certificate) if certificate.Linf is not None else {},
            )
        )
    return results


def violations(results) -> list[str]:
    return [
        f"case {number} ({case.kind}): {name} {ratio:.9f} by {certificate.theorem}"
        for number, case, certificate, found in results
        for name, ratio in found.items()
        if not ratio >= 1 - ROUNDING
    ]


def end(results, failed: list[str], start: float) -> NoReturn:
    """What was refused, and which bounds are wrong: exit status 1 if one is."""
    refusals = [certificate.reason or "" for _, _, certificate, found in results if not found]
    for reason in sorted({refusal.split(":")[0] for refusal in refusals}):
        print(f"refused: {sum(each.startswith(reason) for each in refusals)} times, {reason}")
    print(
        f"{len(results)} cases in {time.perf_counter() - start:.0f} s; "
        + ("every bound held" if not failed else f"{len(failed)} bounds are wrong")
    )
    print("\n".join(failed))
    sys.exit(bool(failed))


def main() -> None:
    cases, seed = (
        int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, CASES), (2, SEED))
    )
    start = time.perf_counter()
    results = run(cases, seed)
    groups: dict[tuple[str, str], list[tuple[Certificate, dict[str, float]]]] = defaultdict(list)
    for _, case, certificate, found in results:
        groups[(case.kind, certificate.theorem or "refused")].append((certificate, found))
    print(
        f"{'domain':<20} {'theorem':<14} {'cases':>5} {'median':>9} {'largest':>9} "
        f"{'smallest':>9} {'at points':>9}   (bound / truth of the largest error)"
    )
    for (kind, theorem), entries in sorted(groups.items()):
        effectivity = [found["Linf"] for _, found in entries if found]
        at_points = min((found["pointwise"] for _, found in entries if found), default=np.nan)
        numbers = (
            [np.median(effectivity), np.max(effectivity), np.min(effectivity), at_points]
            if effectivity
            else []
        )
        print(
            f"{kind:<20} {theorem:<14} {len(entries):>5} "
            + " ".join(f"{number:9.3g}" for number in numbers)
        )
    end(results, violations(results), start)


if __name__ == "__main__":
    main()
