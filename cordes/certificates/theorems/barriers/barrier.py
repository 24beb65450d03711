"""The barrier network: two functions made for one residual, whose maxima bound the largest error.

Let w vanish on the boundary and e = (-r + Lw)⁺ be what -Lw lacks to dominate -r, r = f - Lu_θ. The
error v = u - u_θ has Lv = r, so that -L(v - w) ≤ e, and by the maximum principle v ≤ w + C ‖e/det
A^{1/d}‖ in L^d with the constant C of Alexandrov, Bakelman and Pucci. The same with r in place of
-r bounds -v by a second function. This is true of any w that is C^{1,1}, also of one that is
negative somewhere (c ≥ 0 and w = 0 on the boundary are enough): the training has nothing to
guarantee. What it minimises is the bound itself. w is linear in its coefficients
(`barrier_features`), so that the bound is a convex function of them, and a damped Newton method
finds the minimum in a few dozen steps.

One function for both signs, -Lw ≥ |r|, sees no cancellation of an oscillating residual. Two
functions see it as far as the network can follow r.
"""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.residual.candidate import AbstractCandidate, Evaluated
from cordes.certificates.residual.cells import CellMesh
from cordes.certificates.residual.norms import Norm, Quadrature
from cordes.certificates.residual.refined import adaptive_nodes
from cordes.certificates.theorems.barriers.barrier_features import BarrierFeatures
from cordes.certificates.theorems.barriers.barrier_training import (
    Task,
    minimise,
    orthonormal,
    training_points,
)
from cordes.certificates.theorems.maximum import Barrier, Maximum, MaximumPrinciple
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.runtime.threads import share_cores

# The seed of all that is random, and points at which the maximum of w is felt in training.
SEED, FELT = 0, 1000
# The training exaggerates the constant of the ABP estimate, by dimension: on other points the
# violation is larger, and hard to measure. It does not see more than this many diameters either,
# which would leave no room to move.
CAUTION, LARGEST_FACTOR = {1: 1.5, 2: 1.5, 3: 2.5}, 100.0
# Relative margin of the maximum of w, and how it is refined.
PEAK_MARGIN, PEAK_POINTS, PEAK_STARTS, PEAK_ROUNDS = 1e-3, 4096, 8, 6
# Points after which the refinement for the violation ends; its aim relative to what is needed.
BUDGETS, STRICTNESS = {1: 20_000, 2: 90_000, 3: 120_000}, 0.2


NO_QUADRATURE = (
    "barrier=True needs quadrature, which there is in up to three dimensions and without "
    "residual_bound: leave it out here."
)


class Setting(NamedTuple):
    """What is bounded, and with what."""

    problem: AbstractProblem
    candidate: AbstractCandidate
    principle: MaximumPrinciple
    singular: np.ndarray


class Trained(NamedTuple):
    """Coefficients (count, 2) of the functions for v and for -v, with the features that they belong
    to."""

    features: BarrierFeatures
    coefficients: np.ndarray


def network_bound(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    principle: MaximumPrinciple,
    singular: np.ndarray | None = None,
    steps: int = 60,
) -> Maximum:
    """The bound of the largest error by two barriers, one for each sign of the error.

    `singular` (K, d) are points around which the residual may be large, `steps` bounds the Newton
    steps at each sharpness. No point of the measure of `principle` serves the training, and the
    violations are measured by a quadrature of their own. The suprema of the two functions are the
    largest values found on many points and by a local search, plus a margin of 1e-3: numerically
    converged, not proved, like the norms of the level `quadrature`.
    """
    if not isinstance(principle.measure, Quadrature):
        raise OptionError(NO_QUADRATURE)
    singular = np.zeros((0, principle.dimension)) if singular is None else singular
    setting = Setting(problem, candidate, principle, singular)
    with share_cores():
        trained = _train(setting, steps)
        if trained is None:
            return principle.estimate()
        barriers = _barriers(setting, trained)
        norms = _violations(setting, trained, barriers)
    rests = [principle.factor * norm.upper if norm.upper > 0 else 0.0 for norm in norms]
    raised = list(zip(barriers, rests, strict=True))
    bound = max(barrier.peak + rest for barrier, rest in raised)
    # What two rules make of a small violation matters only as far as it changes the whole bound.
    doubts = [
        Norm(0.0, bound, norm.spread * rest / bound if 0 < rest < math.inf else 0.0)
        for norm, rest in zip(norms, rests, strict=True)
    ]
    drift = (principle.drift_norm,) if principle.drift_norm is not None and max(rests) > 0 else ()
    pointwise = np.max([barrier.value + rest for barrier, rest in raised], axis=0)
    return Maximum(bound, barriers[0].theorem, pointwise, (*doubts, *drift))


def _sides(evaluated: Evaluated) -> np.ndarray:
    """What -Lw has to dominate, for v and for -v, (N, 2)."""
    _, residual, rounding = evaluated
    return np.stack([rounding - residual, rounding + residual], axis=1)


def _train(setting: Setting, steps: int) -> Trained | None:
    """A function for each sign; None where there is nothing to dominate, or nothing that could
    be."""
    problem, candidate, principle, singular = setting
    domain, d = principle.domain, principle.dimension
    x, weight = training_points(principle, singular, SEED)
    evaluated = candidate.evaluate(x)
    right, root = _sides(evaluated), np.linalg.det(evaluated.local.A) ** (1 / d)
    scale = math.sqrt(float(np.max(weight @ right**2)) / domain.volume)
    if not 0 < scale < math.inf:
        return None
    features = BarrierFeatures(problem, singular, principle.measure.points, SEED)
    rows = features.rows(x, evaluated.local) / root[:, None]
    basis = orthonormal(rows * np.sqrt(weight)[:, None])
    # w vanishes on the boundary: one more row of zeros.
    heights = features.values(domain.interior_points(FELT, SEED + 2, "sobol")) @ basis
    heights = np.concatenate([heights, np.zeros((1, basis.shape[1]))])
    lower, upper = domain.bounding_box
    largest = LARGEST_FACTOR * float(np.linalg.norm(upper - lower))
    # For d = 1 the norm would have no second derivatives: ‖e‖₁ ≤ |Ω|^{1/2} ‖e‖₂.
    power = max(d, 2)
    factor = CAUTION[d] * min(principle.factor, largest) * domain.volume ** (1 / d - 1 / power)
    task = Task(rows @ basis, np.zeros(0), weight, heights, factor, power)
    tasks = [task._replace(right=column / root / scale) for column in right.T]
    found = [minimise(task, steps) for task in tasks]
    return Trained(features, scale * (basis @ np.stack(found, axis=1)))


def _barriers(setting: Setting, trained: Trained) -> list[Barrier]:
    """The functions at the points of the measure, rounded to the safe side, with their suprema."""
    (features, coefficients), principle = trained, setting.principle
    points = principle.measure.points
    values = features.value(points, coefficients)
    minus_operators = features.applied(points, principle.evaluated.local, coefficients)
    columns = zip(values.T, minus_operators.T, coefficients.T, strict=True)
    return [
        Barrier("network", value, minus, _peak(features, each, points, value))
        for value, minus, each in columns
    ]


def _peak(
    features: BarrierFeatures, coefficients: np.ndarray, points: np.ndarray, value: np.ndarray
) -> float:
    """The supremum of w over the domain: the best of many points, then of ever smaller clouds
    around the best ones, and a margin."""
    domain, generator = features.domain, np.random.default_rng([SEED, 32452843])
    fresh = domain.interior_points(PEAK_POINTS, SEED + 3, "sobol")
    x = np.concatenate([points, fresh])
    value = np.concatenate([value, features.value(fresh, coefficients)])
    radius = 2 * float(np.max(features.inputs.scale)) * PEAK_POINTS ** (-1 / domain.dimension)
    for _ in range(PEAK_ROUNDS):
        best = np.argsort(-value)[:PEAK_STARTS]
        cloud = np.repeat(x[best], 1024 // PEAK_STARTS, axis=0)
        cloud += radius * generator.uniform(-1, 1, cloud.shape)
        cloud = np.concatenate([x[best], cloud[domain.contains(cloud)]])
        x, value = cloud, features.value(cloud, coefficients)
        radius /= 3
    # w vanishes on the boundary, so that its supremum is not negative.
    return max(float(np.max(value)), 0.0) * (1 + PEAK_MARGIN)


def _violations(setting: Setting, trained: Trained, barriers: list[Barrier]) -> list[Norm]:
    """Limits of ‖e/det A^{1/d}‖ in L^d for both signs, from a mesh that is refined for e.

    The accuracy that is needed is relative to the whole bound. Let it be C·B, and V = ηB the norm
    of e: an error of .01 B in V is to first order one of .01 (Vᵈ + Bᵈ(dη^{d-1} - ηᵈ)) in Vᵈ. So
    this constant, or a share of it, is added to the integral that the refinement makes accurate to
    one per cent. The points of the residual, which are dense where that is large, have a say as
    well: their lower limit.
    """
    problem, candidate, principle, singular = setting
    d, sides = principle.dimension, _sides(principle.evaluated)
    lacks = [side - barrier.minus_operator for side, barrier in zip(sides.T, barriers, strict=True)]
    first = [principle.norm(np.maximum(each, 0.0)) for each in lacks]
    pairs = zip(barriers, first, strict=True)
    scale = max(barrier.peak / principle.factor + norm.upper for barrier, norm in pairs)
    if not (0 < scale < math.inf and principle.factor < math.inf):
        return first
    share = np.array([norm.upper / scale for norm in first])
    floor = STRICTNESS * (d * share ** (d - 1) - share**d) / principle.domain.volume

    def lack(x: np.ndarray) -> np.ndarray:
        evaluated = candidate.evaluate(x)
        root = np.linalg.det(evaluated.local.A) ** (1 / d)
        minus = trained.features.applied(x, evaluated.local, trained.coefficients)
        return np.maximum(_sides(evaluated) - minus, 0.0) / root[:, None] / scale

    mesh = CellMesh(principle.domain, problem.interfaces, singular)
    nodes, values = adaptive_nodes(mesh, lack, lambda values: values**d + floor, BUDGETS[d])
    found = [Quadrature(nodes).norm(scale * column, d) for column in values.T]
    limits = zip(found, first, strict=True)
    return [norm._replace(upper=max(norm.upper, other.lower)) for norm, other in limits]
