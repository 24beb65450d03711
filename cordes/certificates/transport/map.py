"""A computed transport map T = ∇φ at points: bounds of its Hessians, the density of its image, and
the measures over which norms of these are taken."""

import math
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.candidate import AbstractCandidate, FunctionCandidate
from cordes.certificates.residual.cells import CellNodes
from cordes.certificates.residual.convexity import cofactors_of
from cordes.certificates.residual.measured import Sampling, Watched, measured
from cordes.certificates.residual.norms import Measure, Quadrature
from cordes.certificates.transport.conjugate import Curvature, curvature_of
from cordes.errors import DomainError
from cordes.problems.transport import Transport
from cordes.runtime.plain import show

SEARCH_POINTS, SEARCH_SEED = {"function": 4096, "answer": 1024}, 5_550_311
# The norms that one sample serves.
SAMPLE_SEED, NORMS_OF_A_SAMPLE = 5_550_312, 10
# Points per direction of two rules for the masses; points of a sample beyond three dimensions, and
# the multiple of its deviation that is believed.
MASS_POINTS, MASS_SAMPLE, MASS_DEVIATIONS = {1: (100, 200), 2: (40, 80), 3: (16, 32)}, 1 << 16, 4.0
# Points per direction of the two rules for smooth integrands.
GLOBAL_POINTS = {1: (60, 120), 2: (36, 72), 3: (12, 24)}
# Step of the differences that give ∇ν for the rounding, relative to the target.
STEP = 1e-5
EPSILON = float(np.finfo(np.float64).eps)


class MapValues(NamedTuple):
    """At points: μ, G and its rounding, T_η, the potential of T_η, its rounding and that of |x -
    T_η|, DT_η, the extreme eigenvalues of D²φ."""

    mu: np.ndarray
    G: np.ndarray
    rounding: np.ndarray
    T: np.ndarray
    value: np.ndarray
    small: np.ndarray
    hessian: np.ndarray
    least: np.ndarray
    greatest: np.ndarray


def excess(local: MapValues) -> np.ndarray:
    """|μ - G|, rounded up."""
    return np.abs(local.mu - local.G) + local.rounding


class ComputedMap:
    """The map of one potential for one problem. It may be shrunk to y₀ + (1 - η)(T - y₀), where y₀
    is the centre of the target: `shrink` is η."""

    def __init__(self, problem: Transport, candidate: AbstractCandidate, confidence: float):
        self.problem, self.candidate, self.confidence = problem, candidate, confidence
        self.domain, self.target = problem.domain, problem.target_domain
        self.dimension = problem.domain.dimension
        self.center = np.asarray(problem.target_domain.center)
        self.function = candidate.function if isinstance(candidate, FunctionCandidate) else None

    def curvature(self) -> Curvature:
        """Bounds of D²φ, which must be positive definite."""
        points = self.domain.interior_points(
            SEARCH_POINTS["answer" if self.function is None else "function"], SEARCH_SEED, "sobol"
        )
        found = curvature_of(
            self.domain,
            lambda x: np.asarray(self.candidate.jet(x).hessian, dtype=np.float64),
            self.function,
            points,
        )
        if not np.isfinite(found.alpha) or not np.isfinite(found.beta):
            raise NoBoundError(
                Why.not_finite,
                "the second derivatives of the potential are not finite numbers everywhere: it "
                "must be twice differentiable up to the boundary",
            )
        _check_convex(found.alpha, found.point)
        return found

    def evaluate(self, x: np.ndarray, shrink: float) -> MapValues:
        """All that the bounds need at points, with its rounding."""
        n, d = x.shape
        value, gradient, hessian = (
            np.asarray(part, dtype=np.float64) for part in self.candidate.jet(x)
        )
        finite = (
            np.isfinite(value)
            & np.all(np.isfinite(gradient), axis=1)
            & np.all(np.isfinite(hessian), axis=(1, 2))
        )
        if not np.all(finite):
            raise NoBoundError(
                Why.not_finite,
                "the potential or its derivatives are not finite numbers at x = "
                f"{show(x[int(np.argmin(finite))])}",
                point=x[int(np.argmin(finite))],
            )
        spectrum = np.linalg.eigvalsh(hessian)
        if np.min(spectrum) <= 0:
            worst = int(np.argmin(spectrum[:, 0]))
            _check_convex(float(spectrum[worst, 0]), x[worst])
        T = self.center + (1 - shrink) * (gradient - self.center)
        mu = _positive("source", self.problem.source_density, x, x)
        nu = _positive("target", self.problem.target_density, T, x)
        determinant = np.prod(spectrum, axis=1)
        cofactors = cofactors_of(hessian)
        scale = (1 - shrink) ** d
        _, rounding = self.candidate.applied(
            x,
            nu[:, None, None] * cofactors,
            (1 - shrink) * determinant[:, None] * self._slope(T, nu),
            np.zeros(n),
        )
        # The second part is the rounding of eigenvalues and cofactors, the third that of the
        # densities.
        rounding = rounding + 8 * d * EPSILON * nu * np.linalg.norm(
            hessian, axis=(1, 2)
        ) * np.linalg.norm(cofactors, axis=(1, 2))
        G, linear = scale * nu * determinant, x @ self.center
        rounding = scale * rounding + 16 * EPSILON * (G + mu)
        offset = x - T
        direction = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
        _, small = self.candidate.applied(x, np.zeros_like(hessian), direction, -np.ones(n))
        small = small + 16 * EPSILON * (
            np.linalg.norm(x, axis=1) + np.linalg.norm(T, axis=1) + np.sum(x**2, axis=1)
        )
        return MapValues(
            mu,
            G,
            rounding,
            T,
            linear + (1 - shrink) * (value - linear),
            small,
            (1 - shrink) * hessian,
            spectrum[:, 0],
            spectrum[:, -1],
        )

    def _slope(self, T: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """∇ν by differences, towards the centre of the target: good enough for rounding errors."""
        if self.problem.uniform:
            return np.zeros_like(T)
        lower, upper = self.target.bounding_box
        step = STEP * np.where(self.center < T, -1.0, 1.0) * (upper - lower)
        unit = np.eye(self.dimension)
        return np.stack(
            [
                (self.problem.target_density(T + step * unit[i]) - nu) / step[:, i]
                for i in range(self.dimension)
            ],
            axis=1,
        )

    def measured(self, shrink: float) -> tuple[Measure, MapValues]:
        """The points of the norms and what is known there: quadrature refined where the densities
        differ, or a sample."""

        def evaluate(x: np.ndarray) -> MapValues:
            return self.evaluate(x, shrink)

        def indicator(local: MapValues) -> np.ndarray:
            return np.stack([excess(local) ** 2 / local.G, local.mu, local.G], axis=1)

        sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, self.confidence)
        return measured(self.problem, Watched(evaluate, indicator), sampling)

    def smooth_rule(self, shrink: float) -> list[tuple[Measure, MapValues]]:
        """One Gauss rule over the whole domain with n points per direction and one with 2n: for
        smooth integrands far more accurate than many cells."""
        if self.dimension > 3:
            return []
        try:
            rules = [self.domain.quadrature(count) for count in GLOBAL_POINTS[self.dimension]]
        except DomainError:
            return []
        (x, coarse), (finer, fine) = rules
        points = np.concatenate([x, finer])
        none = np.zeros(len(coarse))
        nothing = np.zeros(len(fine))
        nodes = CellNodes(
            points,
            np.concatenate([coarse, nothing]),
            np.concatenate([none, fine]),
            np.zeros(len(points), int),
            np.zeros_like(points),
        )
        return [(Quadrature(nodes), self.evaluate(points, shrink))]


def _check_convex(smallest: float, point: np.ndarray) -> None:
    if not smallest > 0:
        raise NoBoundError(
            Why.convexity_lost,
            f"the potential is not convex: D²φ has the eigenvalue {smallest:.4g} at x = "
            f"{show(point)}. The map of such a potential is not optimal and need not be "
            "injective; solve more accurately, or start from a convex potential.",
            eigenvalue=smallest,
            point=point,
        )


def _positive(name: str, density: Any, points: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The values of a density, which must be positive numbers; `x` are the points of the source."""
    values = np.asarray(density(points), dtype=np.float64)
    good = np.isfinite(values) & (values > 0)
    if not np.all(good):
        bad = int(np.argmin(good))
        where = (
            f"at x = {show(x[bad])}"
            if name == "source"
            else f"at T(x) = {show(points[bad])}, x = {show(x[bad])}"
        )
        raise NoBoundError(
            Why.not_a_density,
            f"the density {name} is {values[bad]:.6g} {where}: it must be a positive number on "
            "its whole domain",
            value=float(values[bad]),
            point=x[bad],
        )
    return values


def mass_doubt(density: Any, domain: Any) -> float:
    """How far from one the mass of a density may be: the problem has divided by a computed mass."""
    if domain.dimension <= 3:
        try:
            rules = [domain.quadrature(count) for count in MASS_POINTS[domain.dimension]]
            coarse, fine = (float(weights @ density(points)) for points, weights in rules)
            return abs(fine - coarse) + abs(fine - 1) + 64 * EPSILON
        except DomainError:
            pass
    values = domain.volume * density(domain.interior_points(MASS_SAMPLE // 4, SAMPLE_SEED))
    return MASS_DEVIATIONS * float(np.std(values)) / math.sqrt(MASS_SAMPLE) + 64 * EPSILON
