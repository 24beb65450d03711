"""A computed transport map T = ∇φ at points: bounds of its Hessians, on which the smoothness of the
conjugate rests, the density of its image, the measures over which norms of these are taken, and
what duality says about its cost."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    FunctionCandidate,
    not_finite,
)
from cordes.certificates.residual.cells import CellNodes
from cordes.certificates.residual.convexity import (
    CELLS,
    Convexity,
    Hessians,
    cofactor_rounding,
    cofactors_of,
    eigenvalues,
    least_eigenvalue,
    smallest_eigenvalue,
)
from cordes.certificates.residual.measured import Sampling, Watched, measured
from cordes.certificates.residual.norms import Measure, Quadrature
from cordes.domains.domain import AbstractDomain
from cordes.errors import DomainError
from cordes.formulas.resolution import resolved_boxes
from cordes.problems.features import features_of
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
# Interval bounds may be so much away from what is attained, and are used up to the second share.
TOLERANCE, USED = 0.02, 0.15


class Curvature(NamedTuple):
    """αI ≤ D²φ ≤ βI, the point of the smallest eigenvalue seen, and how they are known."""

    alpha: float
    beta: float
    point: np.ndarray
    source: str


class Unreached(NamedTuple):
    """The part of the target that the map does not reach: its mass at most, its thickness at most,
    and half the largest |x - y|² at most."""

    mass: float
    thickness: float
    half_square: float


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

    @property
    def smallest_root(self) -> np.ndarray:
        """√G, rounded down."""
        return np.sqrt(np.maximum(self.G - self.rounding, 0.5 * self.G))


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
        count = SEARCH_POINTS["answer" if self.function is None else "function"]
        points = self.domain.interior_points(count, SEARCH_SEED, "sobol")
        found = curvature_of(
            self.domain, lambda x: self.candidate.jet(x).hessian, self.function, points
        )
        if not np.isfinite(found.alpha) or not np.isfinite(found.beta):
            sentence = "the second derivatives of the potential are not finite numbers everywhere"
            sentence += ": it must be twice differentiable up to the boundary"
            raise NoBoundError(Why.not_finite, sentence)
        _check_convex(found.alpha, found.point)
        return found

    def evaluate(self, x: np.ndarray, shrink: float) -> MapValues:
        """All that the bounds need at points, with its rounding."""
        n, d = x.shape
        value, gradient, hessian = self.candidate.jet(x)
        for bad in not_finite(value, gradient, hessian):
            sentence = "the potential or its derivatives are not finite numbers at x = "
            raise NoBoundError(Why.not_finite, f"{sentence}{show(x[bad])}", point=x[bad])
        spectrum = np.linalg.eigvalsh(hessian)
        if np.min(spectrum) <= 0:
            worst = int(np.argmin(spectrum[:, 0]))
            _check_convex(float(spectrum[worst, 0]), x[worst])
        T = self.center + (1 - shrink) * (gradient - self.center)
        mu = _positive("source", self.problem.source_density, x, x)
        nu = _positive("target", self.problem.target_density, T, x)
        determinant, cofactors = np.prod(spectrum, axis=1), cofactors_of(hessian)
        slope = (1 - shrink) * determinant[:, None] * self._slope(T, nu)
        _, rounding = self.candidate.applied(x, nu[:, None, None] * cofactors, slope, np.zeros(n))
        rounding = rounding + nu * cofactor_rounding(hessian, cofactors)
        scale, linear = (1 - shrink) ** d, x @ self.center
        G = scale * nu * determinant
        # The second part is the rounding of the densities.
        rounding = scale * rounding + 16 * EPSILON * (G + mu)
        offset = x - T
        direction = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
        _, small = self.candidate.applied(x, np.zeros_like(hessian), direction, -np.ones(n))
        lengths = np.linalg.norm(x, axis=1) + np.linalg.norm(T, axis=1)
        small = small + 16 * EPSILON * (lengths + np.sum(x**2, axis=1))
        value = linear + (1 - shrink) * (value - linear)
        DT, least, greatest = (1 - shrink) * hessian, spectrum[:, 0], spectrum[:, -1]
        return MapValues(mu, G, rounding, T, value, small, DT, least, greatest)

    def _slope(self, T: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """∇ν by differences, towards the centre of the target: good enough for rounding errors."""
        if self.problem.uniform:
            return np.zeros_like(T)
        lower, upper = self.target.bounding_box
        step = STEP * np.where(self.center < T, -1.0, 1.0) * (upper - lower)
        moved = [self.problem.target_density(T + step * unit) for unit in np.eye(self.dimension)]
        return (np.stack(moved, axis=1) - nu[:, None]) / step

    def measured(self, shrink: float) -> tuple[Measure, MapValues]:
        """The points of the norms and what is known there: quadrature refined where the densities
        differ, or a sample."""

        def indicator(local: MapValues) -> np.ndarray:
            return np.stack([excess(local) ** 2 / local.G, local.mu, local.G], axis=1)

        formulas = self.candidate.formulas
        watched = Watched(lambda x: self.evaluate(x, shrink), indicator, formulas)
        sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, self.confidence)
        return measured(self.problem, watched, sampling)

    def smooth_rule(self, shrink: float) -> list[tuple[Measure, MapValues]]:
        """One Gauss rule over the whole domain with n points per direction and one with 2n: for
        smooth integrands far more accurate than many cells. None where something is so small that
        both may miss it."""
        rules = _rules(self.domain, GLOBAL_POINTS)
        if not rules or self._has_features():
            return []
        (x, coarse), (finer, fine) = rules
        points, first = np.concatenate([x, finer]), np.arange(len(x) + len(finer)) < len(x)
        weights = np.concatenate([coarse, fine])
        rule = np.where(first, weights, 0.0), np.where(first, 0.0, weights)
        nodes = CellNodes(points, *rule, np.zeros(len(points), int), np.zeros_like(points))
        return [(Quadrature(nodes), self.evaluate(points, shrink))]

    def _has_features(self) -> bool:
        """Whether something in the densities or the potential is smaller than the distance of the
        points of the coarse rule."""
        found = resolved_boxes(self.candidate.formulas, self.domain), features_of(self.problem)
        sides = np.concatenate([each.features().upper - each.features().lower for each in found])
        low, high = (np.asarray(corner) for corner in self.domain.bounding_box)
        return bool(np.any(sides < (high - low) / GLOBAL_POINTS[self.dimension][0]))


def _check_convex(smallest: float, point: np.ndarray) -> None:
    if not smallest > 0:
        sentence = f"the potential is not convex: D²φ has the eigenvalue {smallest:.4g} at x ="
        sentence += f" {show(point)}. The map of such a potential is not optimal and need not be"
        sentence += " injective; solve more accurately, or start from a convex potential."
        raise NoBoundError(Why.convexity_lost, sentence, eigenvalue=smallest, point=point)


def _positive(name: str, density: Any, points: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The values of a density, which must be positive numbers; `x` are the points of the source."""
    values = np.asarray(density(points), dtype=np.float64)
    for bad in np.flatnonzero(~(np.isfinite(values) & (values > 0))):
        value, point = float(values[bad]), x[bad]
        image = "" if name == "source" else f"T(x) = {show(points[bad])}, "
        sentence = f"the density {name} is {value:.6g} at {image}x = {show(point)}: it must be a"
        sentence += " positive number on its whole domain"
        raise NoBoundError(Why.not_a_density, sentence, value=value, point=point)
    return values


def _rules(domain: Any, points: Mapping[int, tuple[int, int]]) -> list:
    """Two Gauss rules with so many points per direction; none where the domain has none."""
    try:
        return [domain.quadrature(count) for count in points.get(domain.dimension, ())]
    except DomainError:
        return []


def mass_doubt(density: Any, domain: Any) -> float:
    """How far from one the mass of a density may be: the problem has divided by a computed mass."""
    if rules := _rules(domain, MASS_POINTS):
        coarse, fine = (float(weights @ density(points)) for points, weights in rules)
        return abs(fine - coarse) + abs(fine - 1) + 64 * EPSILON
    values = domain.volume * density(domain.interior_points(MASS_SAMPLE // 4, SAMPLE_SEED))
    return MASS_DEVIATIONS * float(np.std(values)) / math.sqrt(MASS_SAMPLE) + 64 * EPSILON


def curvature_of(
    domain: AbstractDomain, hessian_at: Hessians, function: Callable | None, points: np.ndarray
) -> Curvature:
    """Bounds of D²φ: proved for a function where interval arithmetic comes close to what is
    attained, else searched."""

    def negative(x: np.ndarray) -> np.ndarray:
        return -hessian_at(x)

    low = smallest_eigenvalue(domain, hessian_at, points)
    high = smallest_eigenvalue(domain, negative, points)
    if not (low.smallest > 0 and np.isfinite(high.smallest)):
        return Curvature(low.smallest, -high.smallest, low.point, "sampled")
    if function is None:
        return Curvature(low.lower, -high.lower, low.point, "sampled")
    alpha = _proved(domain, hessian_at, function, low, 1.0)
    beta = _proved(domain, negative, function, high, -1.0)
    source = "sampled" if "sampled" in (alpha.source, beta.source) else "interval"
    return Curvature(alpha.lower, -beta.lower, low.point, source)


def _proved(
    domain: AbstractDomain, hessian_at: Hessians, function: Callable, known: Convexity, sign: float
) -> Convexity:
    """What is known of the smallest eigenvalue of ±D²φ, with a bound by interval arithmetic unless
    that is too far from what is attained."""
    if domain.dimension not in CELLS:
        return known

    def values(x: np.ndarray) -> np.ndarray:
        return eigenvalues(hessian_at(x))[:, 0]

    size = abs(known.smallest)
    found = least_eigenvalue(domain, function, values, known, TOLERANCE * size, sign)
    if found is None or not found.lower >= known.smallest - USED * size:
        return known
    return known._replace(source="interval", lower=found.lower)


def integral(measure: Measure, values: np.ndarray, volume: float) -> tuple[float, float]:
    """Limits of the integral of values of any sign. A constant is integrated exactly, so the values
    are raised until none is negative."""
    least = float(np.min(values))
    norm = measure.norm(values - least, 1.0)
    return norm.lower + least * volume, norm.upper + least * volume


def dual_value(
    measure: Measure,
    volume: float,
    half_cost: np.ndarray,
    potential: np.ndarray,
    excess: np.ndarray,
    density: np.ndarray,
    alpha: float,
    rest: Unreached,
) -> tuple[float, float]:
    """Limits of the dual value D = ½∫|x|²μ + ½∫|y|²ν - ∫φμ - ∫φ*ν, which is at most ½W₂², for T(X)
    ⊂ Y. `half_cost` is ½|x - T|², `potential` is p = ½|x|² - φ, `excess` μ - G and `density` G =
    ν(T) det D²φ at the points.

    Where y = T(x) the conjugate is x·y - φ(x); so the part of ∫(½|y|² - φ*)ν over T(X) is ∫(½|x -
    T|² - p)G, and with ∫pμ

        D = ∫½|x - T|²G + ∫p(μ - G) + ∫_{Y∖T(X)} (½|y|² - φ*)ν.

    In the last part take x with T(x) within the thickness θ of y: p(x) + ½|y|² - φ*(y) lies between
    ½|y - x|² - θ²/2α and ½|y - x|², by strong convexity and by the definition of φ*. With a
    constant c ≥ p this makes D ≥ ∫½|x - T|²G + ∫(p - c)(μ - G) - mass θ²/2α, since ∫(μ - G) is the
    mass of the last part; and D is at most the same with c ≤ p and mass ½ sup|x - y|² in place of
    the last term.
    """
    least, largest = float(np.min(potential)), float(np.max(potential))

    def without_slice(c: float) -> tuple[float, float]:
        return integral(measure, half_cost * density + (potential - c) * excess, volume)

    if rest.mass == 0:
        return without_slice((largest + least) / 2)
    # Between the points p may be a little larger or smaller than at them.
    slack = 0.05 * float(np.ptp(potential))
    low, high = without_slice(largest + slack)[0], without_slice(least - slack)[1]
    return low - rest.mass * rest.thickness**2 / (2 * alpha), high + rest.mass * rest.half_square
