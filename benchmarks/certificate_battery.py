"""Random attacks on the error bounds of linear equations, and how far the bounds are from the
truth.

Each case draws a domain in d = 2, 3 or 5, an error v that vanishes on its boundary, and
coefficients A, b, c, some of them aligned with D²v so that the equation hides the error as well as
it can. The residual is r = Lv; all norms are integrals on one Gauss rule. Every bound must be at
least the truth, every lower bound at most the truth. `python benchmarks/certificate_battery.py
[cases]` prints the distribution of bound/truth; the tests run the same cases.
"""

import sys
import time
from collections import defaultdict
from types import SimpleNamespace
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import roots_gegenbauer, roots_jacobi

from cordes.certificates.certificate import Certificate
from cordes.certificates.equation import LinearEquation
from cordes.certificates.linear import bounds
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.norms import fixed_rule
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.constants import first_eigenvalue

SEED = 20_250
KINDS = {
    2: ("unit square", "box", "disk", "ellipse", "polygon"),
    3: ("box", "ball", "ellipsoid"),
    5: ("box", "ball"),
}
# A bound may be attained: the truth and the bound are integrals of the same rule, exact up to
# rounding and its resolution of smooth functions.
ROUNDING = 1e-9


class Case(NamedTuple):
    """One drawn error with its equation, at the points of a rule."""

    domain: object
    kind: str
    family: str
    x: np.ndarray
    weight: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    local: Local

    @property
    def residual(self) -> np.ndarray:
        A, b, c = self.local
        return (
            np.sum(A * self.hessian, axis=(1, 2))
            + np.sum(b * self.gradient, axis=1)
            - c * self.value
        )

    def norm(self, values: np.ndarray) -> float:
        return float(np.sqrt(self.weight @ np.sum(values.reshape(len(values), -1) ** 2, axis=1)))


def draw_domain(rng: np.random.Generator, d: int, kind: str):
    """A domain and a rule on it."""
    if kind == "unit square":
        domain = Box([0, 0], [1, 1])
    elif kind == "box":
        lower = rng.uniform(-1, 0, d)
        domain = Box(lower, lower + rng.uniform(0.5, 2, d))
    elif kind in ("disk", "ball"):
        domain = Ball(rng.uniform(-1, 1, d), rng.uniform(0.5, 2))
    elif kind == "polygon":
        angle = (
            np.sort(rng.uniform(0, 2 * np.pi, 3) * 0.3 + np.array([0, 2, 4]))
            if rng.random() < 0.5
            else np.linspace(0, 2 * np.pi, 6)[:5]
        )
        domain = Polygon(np.stack([rng.uniform(0.5, 2) * np.cos(angle), np.sin(angle)], axis=1))
    else:
        axes = (
            rng.standard_normal((d, d)) + 2 * np.eye(d)
            if rng.random() < 0.5
            else rng.uniform(0.4, 2, d)
        )
        domain = Ellipsoid(rng.uniform(-1, 1, d), axes)
    if d == 5 and kind == "ball":
        return domain, *_ball_rule(domain)
    x, weight = domain.quadrature({2: 24, 3: 10, 5: 6}[d])
    return domain, x, weight


def _ball_rule(domain: Ball, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """A product rule of the ball in five dimensions in hyperspherical coordinates."""
    radius, radius_weight = roots_jacobi(n, 0, 4)
    rules = [((1 + radius) / 2, radius_weight / 32)]
    rules += [roots_gegenbauer(n, alpha) for alpha in (1.5, 1.0, 0.5)]
    angle = 2 * np.pi * (np.arange(2 * n) + 0.5) / (2 * n)
    grids = np.meshgrid(*(rule[0] for rule in rules), angle, indexing="ij")
    weights = np.meshgrid(*(rule[1] for rule in rules), np.full(2 * n, np.pi / n), indexing="ij")
    r, *cosines, turn = (grid.ravel() for grid in grids)
    rest, coordinates = r, []
    for cosine in cosines:
        coordinates.append(rest * cosine)
        rest = rest * np.sqrt(1 - cosine**2)
    coordinates += [rest * np.cos(turn), rest * np.sin(turn)]
    x = np.asarray(domain.center) + domain.radius * np.stack(coordinates, axis=1)
    return x, np.prod([weight.ravel() for weight in weights], axis=0) * domain.radius**5


def distance_jet(domain, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A function that vanishes on the boundary, with two derivatives."""
    n, d = x.shape
    if isinstance(domain, Ball | Ellipsoid):
        inverse = (
            np.eye(d) / domain.radius if isinstance(domain, Ball) else np.linalg.inv(domain.matrix)
        )
        metric = inverse.T @ inverse
        y = x - np.asarray(domain.center)
        return (
            1 - np.einsum("ni,ij,nj->n", y, metric, y),
            -2 * y @ metric,
            np.tile(-2 * metric, (n, 1, 1)),
        )
    if isinstance(domain, Box):
        rows = np.eye(d) / domain.widths[:, None]
        affine = [
            *((row, -row @ domain.lower) for row in rows),
            *((-row, row @ domain.upper) for row in rows),
        ]
    else:
        size = np.sqrt(domain.volume)
        affine = [
            (-normal / size, normal @ vertex / size)
            for normal, vertex in zip(domain.normals, domain.vertices, strict=True)
        ]
    value, gradient, hessian = np.ones(n), np.zeros((n, d)), np.zeros((n, d, d))
    for row, offset in affine:
        height = x @ row + offset
        cross = gradient[:, :, None] * row
        hessian = hessian * height[:, None, None] + cross + np.swapaxes(cross, 1, 2)
        gradient = gradient * height[:, None] + value[:, None] * row
        value = value * height
    return value, gradient, hessian


def draw_error(
    rng: np.random.Generator, domain, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v = distance · waves, smooth to rough, with two derivatives."""
    d = x.shape[1]
    lower, upper = domain.bounding_box
    largest = {2: 14.0, 3: 5.0, 5: 2.5}[d]
    waves = rng.standard_normal((4, d)) / (upper - lower) * rng.uniform(0.1, largest)
    phases, sizes = rng.uniform(0, 2 * np.pi, 4), rng.standard_normal(4)
    argument = (x - np.asarray(domain.center)) @ waves.T + phases
    value = np.cos(argument) @ sizes
    gradient = -(np.sin(argument) * sizes) @ waves
    hessian = -np.einsum("nk,ki,kj->nij", np.cos(argument) * sizes, waves, waves)
    D, D1, D2 = distance_jet(domain, x)
    cross = D1[:, :, None] * gradient[:, None]
    return (
        D * value,
        D[:, None] * gradient + value[:, None] * D1,
        D[:, None, None] * hessian + value[:, None, None] * D2 + cross + np.swapaxes(cross, 1, 2),
    )


def draw_field(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """A smooth scalar field between -1 and 1."""
    wave = rng.standard_normal(x.shape[1]) * rng.uniform(0.5, 3)
    return np.sin(x @ wave + rng.uniform(0, 6))


def draw_matrix(
    rng: np.random.Generator, family: str, x: np.ndarray, hessian: np.ndarray
) -> np.ndarray:
    """A = (t/d)(I + ρ √(d/(d-1)) U) with a unit trace-free field U, so that ρ' = ρ ≤ 0.95; or
    constant; or such a field seen through a constant M."""
    n, d = x.shape
    trace = d * np.exp(rng.uniform(0, 1.5) * draw_field(rng, x))
    largest = rng.uniform(0.05, 0.95)
    if family == "constant":
        root = rng.standard_normal((d, d)) + 1.5 * np.eye(d)
        return np.tile(root @ root.T / d + 0.1 * np.eye(d), (n, 1, 1))
    if family == "aligned":
        laplacian = np.trace(hessian, axis1=1, axis2=2)
        deviator = hessian - laplacian[:, None, None] / d * np.eye(d)
        size = np.maximum(np.sqrt(np.sum(deviator**2, axis=(1, 2))), 1e-12)
        U = -np.sign(laplacian)[:, None, None] * deviator / size[:, None, None]
        rho = (
            np.minimum(largest, np.abs(laplacian) * np.sqrt((d - 1) / d) / size)
            if rng.random() < 0.5
            else np.full(n, largest)
        )
    else:
        directions = [(lambda m: (m + m.T) / 2)(rng.standard_normal((d, d))) for _ in range(2)]
        U = sum(
            np.cos(x @ rng.standard_normal(d) + rng.uniform(0, 6))[:, None, None] * matrix
            for matrix in directions
        ) + 1e-3 * np.diag(np.arange(d))
        U = U - np.trace(U, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
        U = U / np.sqrt(np.sum(U**2, axis=(1, 2)))[:, None, None]
        if family == "jumping":
            U, trace = (
                U * np.sign(x @ rng.standard_normal(d))[:, None, None],
                np.where(x[:, 0] > np.mean(x[:, 0]), trace, 2.0),
            )
        rho = largest * (0.5 + 0.5 * draw_field(rng, x))
    A = trace[:, None, None] / d * (np.eye(d) + (rho * np.sqrt(d / (d - 1)))[:, None, None] * U)
    if family == "stretched":
        root = np.diag(np.exp(rng.uniform(-0.8, 0.8, d)))
        A = root @ A @ root
    return A


def draw(number: int) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([SEED, number])
    d = (2, 2, 3, 2, 5)[number % 5]
    kind = (
        str(rng.choice(KINDS[d], p=[0.4, 0.15, 0.15, 0.15, 0.15]))
        if d == 2
        else str(rng.choice(KINDS[d]))
    )
    family = str(rng.choice(["constant", "smooth", "jumping", "stretched", "aligned", "aligned"]))
    domain, x, weight = draw_domain(rng, d, kind)
    value, gradient, hessian = draw_error(rng, domain, x)
    A = draw_matrix(rng, family, x, hessian)
    b, c = np.zeros_like(x), np.zeros(len(x))
    terms = rng.choice(
        ["none", "drift", "reaction", "both", "negative"], p=[0.5, 0.15, 0.12, 0.18, 0.05]
    )
    scale = np.mean(np.trace(A, axis1=1, axis2=2)) / d
    eigenvalue = first_eigenvalue(domain)
    if terms in ("drift", "both"):
        direction = rng.standard_normal(d)
        field = direction + rng.uniform(0, 1) * np.stack(
            [draw_field(rng, x) for _ in range(d)], axis=1
        )
        if rng.random() < 0.3:
            # Against the gradient of the error, where it hides best.
            field = (
                -gradient
                / np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-12)
                * np.sign(np.trace(hessian, axis1=1, axis2=2))[:, None]
            )
        b = (
            rng.uniform(0.02, 1.2)
            * scale
            * np.sqrt(eigenvalue)
            * field
            / np.max(np.linalg.norm(field, axis=1))
        )
    if terms in ("reaction", "both"):
        c = (
            rng.uniform(0.05, 3)
            * scale
            * eigenvalue
            * (1 + rng.uniform(0, 1) * draw_field(rng, x))
            / 2
            + 1e-6
        )
    if terms == "negative":
        c = np.full(len(x), -rng.uniform(0.02, 0.3) * scale * eigenvalue)
    return Case(
        domain,
        f"{d}-D {kind}",
        f"{family}, {terms}",
        x,
        weight,
        value,
        gradient,
        hessian,
        Local(A, b, c),
    )


def certify_case(case: Case) -> Certificate:
    """The certificate from the residual at the points of the rule; suprema are those over these
    points, where the case lives."""
    drift, reaction = bool(np.any(case.local.b)), bool(np.any(case.local.c))
    # As far as anyone knows A is rough: in three dimensions the maximum principle must come from
    # the Cordès condition.
    problem = SimpleNamespace(
        domain=case.domain,
        has_drift=drift,
        has_reaction=reaction,
        constant_A=False,
        free_constant=False,
        A=lambda x: jnp.sign(x[0] - x[1]),
        interfaces=(),
        data=dict,
    )
    evaluated = Evaluated(case.local, case.residual, np.zeros(len(case.x)))
    thinned = np.arange(0, len(case.x), max(len(case.x) // 200, 1))
    pilot = Evaluated(
        case.local.take(thinned), evaluated.residual[thinned], evaluated.rounding[thinned]
    )
    points = np.concatenate([case.x[thinned], case.x])
    local = Local(*(np.concatenate(pair) for pair in zip(pilot.local, case.local, strict=True)))
    equation = LinearEquation(
        problem, None, fixed_rule(case.x, case.weight), evaluated, pilot, case.x[thinned]
    )  # pyright: ignore[reportArgumentType]
    return bounds(equation, Coverage(case.domain, None, None, points, local, False))  # pyright: ignore


def ratios(case: Case, certificate: Certificate) -> dict[str, float]:
    """bound/truth for each norm that has a bound, and truth/lower bound."""
    truth = {
        "H2": case.norm(case.hessian),
        "H1": case.norm(case.gradient),
        "L2": case.norm(case.value),
        "Linf": float(np.max(np.abs(case.value))),
    }
    found = {
        name: getattr(certificate, name) / value
        for name, value in truth.items()
        if getattr(certificate, name) is not None
    }
    if certificate.energy is not None:
        laplacian = np.trace(case.hessian, axis1=1, axis2=2)
        energy = case.norm(laplacian - certificate.lambda_ * case.value)
        found["energy"] = certificate.energy[1] / energy
        found["lower"] = energy / certificate.energy[0] if certificate.energy[0] > 0 else np.inf
    return found


def run(numbers) -> list[tuple[int, Case, Certificate, dict[str, float]]]:
    results = []
    for number in numbers:
        case = draw(number)
        certificate = certify_case(case)
        results.append((number, case, certificate, ratios(case, certificate)))
    return results


def violations(results) -> list[str]:
    return [
        f"case {number} ({case.kind}, {case.family}): {name} {ratio:.9f} by {certificate.theorem}"
        for number, case, certificate, found in results
        for name, ratio in found.items()
        if not ratio >= 1 - ROUNDING
    ]


def medians(results, kind: str = "2-D unit square") -> dict[str, float]:
    """Median bound/truth of ‖Δv‖ and of the largest error on the unit square without lower-order
    terms."""
    chosen = [
        found for _, case, _, found in results if case.kind == kind and case.family.endswith("none")
    ]
    return {
        name: float(np.median([found[name] for found in chosen if name in found]))
        for name in ("energy", "Linf")
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    start = time.perf_counter()
    results = run(range(count))
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for _, case, certificate, found in results:
        for name, ratio in found.items():
            label = certificate.theorems[{"lower": "energy"}.get(name, name)]
            groups[(case.kind, name, label.split(",")[0])].append(ratio)
    print(
        f"{'domain':<16} {'norm':<7} {'theorem':<45} {'cases':>5} {'min':>8} {'25 %':>8} "
        f"{'median':>8} {'75 %':>8} {'max':>9}"
    )
    for (kind, name, label), values in sorted(groups.items()):
        print(
            f"{kind:<16} {name:<7} {label:<45} {len(values):>5} "
            + " ".join(f"{value:8.3g}" for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
        )
    without = sum(certificate.L2 is None for _, _, certificate, _ in results)
    print(
        f"{count} cases in {time.perf_counter() - start:.0f} s, {without} without any bound; "
        f"unit square, b = c = 0: medians {medians(results)}"
    )
    failed = violations(results)
    print("\n".join(failed) if failed else "every bound held")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
