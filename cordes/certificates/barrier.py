"""The barrier network: two functions made for one residual, whose maxima bound the largest error.

Let w vanish on the boundary and e = (r⁻-side: -r + Lw)⁺ be what -Lw lacks to dominate -r, r = f - Lu_θ. The error v = u - u_θ has Lv = r, so that
-L(v - w) ≤ e, and by the maximum principle v ≤ w + C ‖e/det A^{1/d}‖ in L^d with the constant C of Alexandrov, Bakelman and Pucci. The same with r in place
of -r bounds -v by a second function. This is true of any w that is C^{1,1}, also of one that is negative somewhere: the training has nothing to guarantee. What it
minimises is the bound itself. w is linear in its coefficients (see `barrier_features`), so that the bound is a convex function of
them, and a damped Newton method finds the minimum in a few dozen steps.

One function for both signs, -Lw ≥ |r|, sees no cancellation of an oscillating residual. Two functions see it as far as the network can follow r.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from cordes.certificates.barrier_features import MOST_SPOTS, SPOTS, BarrierFeatures
from cordes.certificates.candidate import Candidate, Evaluated
from cordes.certificates.cells import Mesh, adaptive_nodes
from cordes.certificates.maximum import Barrier, Maximum, MaximumPrinciple
from cordes.certificates.norms import Norm, Quadrature
from cordes.domains.unit_ball import ball_volume
from cordes.errors import OptionError
from cordes.solvers.progress import Progress
from cordes.threads import share_cores

# Training points beside the points of the measure, and graded towards the boundary (gap u^GRADING); points where the maximum of w is felt.
NEAR, GRADED, GRADING, FELT = {1: 4000, 2: 16_000, 3: 24_000}, 8000, 6.0, 1000
SPOT_POINTS, SPOT_GRADING = 1600, 2.0
# Directions in which the rows are smaller than this share of the largest are left out: they would need huge coefficients.
RANK_TOLERANCE = 3e-7
# The maximum is replaced by a soft one, first with this sharpness, then with the other. Newton's method ends when a step gains less than this share.
SHARPNESS, GAIN = (30.0, 200.0), 1e-3
# The training does not see a larger constant of the ABP estimate than this many diameters: it would have no room left to move.
LARGEST_FACTOR = 100.0
# Relative margin of the maximum of w, and how it is refined.
PEAK_MARGIN, PEAK_POINTS, PEAK_STARTS, PEAK_ROUNDS = 1e-3, 4096, 8, 6
STRICT, CAUTION = 0.5, {1: 1.5, 2: 1.5, 3: 2.5}
# Points after which the refinement for the violation ends.
BUDGETS = {1: 20_000, 2: 60_000, 3: 100_000}


class Trained(NamedTuple):
    """Coefficients (count, k) of k functions, with the features that they belong to."""

    features: BarrierFeatures
    coefficients: np.ndarray


def network_bound(
    problem: Any,
    candidate: Candidate,
    principle: MaximumPrinciple,
    singular: np.ndarray | None = None,
    seed: int = 0,
    steps: int = 40,
    progress: Progress | None = None,
) -> Maximum:
    """The bound of the largest error by two barriers, one for each sign of the error.

    `singular` (K, d) are points around which the residual may be large, `steps` bounds the Newton steps at each sharpness. No point of the measure of `principle`
    serves the training, and the violations are measured by a quadrature of their own. The suprema of the two functions are the largest values found on
    many points and by a local search, plus a margin of 1e-3: numerically converged, not proved, like the norms of the level `quadrature`.
    """
    _check(principle)
    singular = np.zeros((0, principle.dimension)) if singular is None else np.asarray(singular, float)
    with share_cores():
        trained = _train(problem, candidate, principle, singular, _sides, seed, steps, progress)
        if trained is None:
            return principle.estimate()
        barriers = _barriers(trained, principle, seed)
        norms = _violations(problem, candidate, principle, singular, trained, barriers)
    rests = [principle.factor * norm.upper if norm.upper > 0 else 0.0 for norm in norms]
    bound = max(barrier.peak + rest for barrier, rest in zip(barriers, rests, strict=True))
    # What two rules make of a small violation matters only as far as it changes the whole bound.
    doubts = tuple(Norm(0.0, bound, norm.spread * rest / bound if rest > 0 else 0.0) for norm, rest in zip(norms, rests, strict=True))
    drift = (principle.drift_norm,) if principle.drift_norm is not None and max(rests) > 0 else ()
    pointwise = np.max([barrier.value + rest for barrier, rest in zip(barriers, rests, strict=True)], axis=0)
    return Maximum(bound, "barrier (network)", pointwise, (*doubts, *drift))


def network_barrier(
    problem: Any,
    candidate: Candidate,
    principle: MaximumPrinciple,
    singular: np.ndarray | None = None,
    seed: int = 0,
    steps: int = 40,
    progress: Progress | None = None,
) -> Barrier:
    """One barrier for both signs, -Lw ≥ |r|, of the right size: the multiple 1 is nearly the best one. See `network_bound`, which is sharper."""
    _check(principle)
    singular = np.zeros((0, principle.dimension)) if singular is None else np.asarray(singular, float)
    with share_cores():
        trained = _train(problem, candidate, principle, singular, lambda evaluated: evaluated.size[:, None], seed, steps, progress)
        if trained is None:
            nothing = np.zeros(len(principle.measure.points))
            return Barrier("network", nothing, nothing, 0.0)
        return _barriers(trained, principle, seed)[0]


def _check(principle: MaximumPrinciple) -> None:
    if not isinstance(principle.measure, Quadrature):
        raise OptionError("barrier=True needs quadrature, which there is in up to three dimensions and without residual_bound: leave it out here.")


def _sides(evaluated: Evaluated) -> np.ndarray:
    """What -Lw has to dominate, for v and for -v, (N, 2)."""
    return np.stack([evaluated.rounding - evaluated.residual, evaluated.rounding + evaluated.residual], axis=1)


def _barriers(trained: Trained, principle: MaximumPrinciple, seed: int) -> list[Barrier]:
    """The functions at the points of the measure, with their suprema."""
    (features, coefficients), points = trained, principle.measure.points
    values, minus_operators = features.value(points, coefficients), features.applied(points, principle.evaluated.local, coefficients)
    columns = zip(values.T, minus_operators.T, coefficients.T, strict=True)
    return [Barrier("network", value, minus, _peak(features, each, points, value, seed)) for value, minus, each in columns]


def _violations(
    problem: Any, candidate: Candidate, principle: MaximumPrinciple, singular: np.ndarray, trained: Trained, barriers: list[Barrier]
) -> list[Norm]:
    """Limits of ‖e/det A^{1/d}‖ in L^d for both signs, from a mesh that is refined for e.

    The accuracy that is wanted is relative to the whole bound: with V = η B, where C·B is the bound, an error of .01 B in V is one of .01 (Vᵈ + Bᵈ(dη^{d-1} - ηᵈ))
    in Vᵈ to first order; so this constant is added to what the refinement sees. The points of the residual have a say as well, with their lower limit.
    """
    d, sides = principle.dimension, _sides(principle.evaluated)
    first = [principle.norm(np.maximum(sides[:, k] - barrier.minus_operator, 0.0)) for k, barrier in enumerate(barriers)]
    scale = max(barrier.peak / principle.factor + norm.upper for barrier, norm in zip(barriers, first, strict=True))
    if not 0 < scale < math.inf or not principle.factor < math.inf:
        return first
    share = np.array([norm.upper / scale for norm in first])
    floor = STRICT * (d * share ** (d - 1) - share**d) / principle.domain.volume

    def lack(x: np.ndarray) -> np.ndarray:
        evaluated = candidate.evaluate(x)
        root = np.linalg.det(evaluated.local.A) ** (1 / d)
        return np.maximum(_sides(evaluated) - trained.features.applied(x, evaluated.local, trained.coefficients), 0.0) / root[:, None] / scale

    mesh = Mesh(principle.domain, problem.interfaces, singular)
    nodes, values = adaptive_nodes(mesh, lack, lambda values: values**d + floor, BUDGETS[d])
    found = [Quadrature(nodes).norm(scale * values[:, k], d) for k in range(2)]
    return [norm._replace(upper=max(norm.upper, other.lower)) for norm, other in zip(found, first, strict=True)]


# Training -----------------------------------------------------------------------------------------------------------------------------------------------


def training_points(principle: MaximumPrinciple, singular: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, d) and their shares of the volume, none of them a point of the measure.

    One half of the weight lies beside points of the measure, which are dense where the residual is large. The other half is graded towards the boundary. A little more
    is graded towards the singular points. Without the graded ones the narrow windows ran wild between the points of large cells.
    """
    generator = np.random.default_rng([seed, 15485863])
    halves = [_beside(principle, generator), _towards_boundary(principle, generator, seed)]
    parts = [(x, 0.5 * principle.domain.volume * weight / np.sum(weight)) for x, weight in halves]
    parts += [_towards_point(principle, point, generator) for point in singular[:MOST_SPOTS]]
    return np.concatenate([x for x, _ in parts]), np.concatenate([weight for _, weight in parts])


def _beside(principle: MaximumPrinciple, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A step from points of the measure towards or away from one of their neighbours."""
    assert isinstance(principle.measure, Quadrature)
    nodes, neighbours = principle.measure.nodes, 2 * principle.dimension
    chosen = np.resize(generator.permutation(len(nodes.x)), NEAR[principle.dimension])
    x = nodes.x[chosen]
    _, near = KDTree(nodes.x).query(x, k=neighbours + 1)
    step = nodes.x[near[np.arange(len(x)), generator.integers(1, neighbours + 1, len(x))]] - x
    length = generator.uniform(0.1, 0.6, (len(x), 1))
    away = x - length * step
    # The neighbour lies in the convex domain, and so does every step towards it.
    back = (generator.random(len(x)) < 0.5) & principle.domain.contains(away)
    return np.where(back[:, None], away, x + length * step), (nodes.coarse + nodes.fine)[chosen]


def _towards_boundary(principle: MaximumPrinciple, generator: np.random.Generator, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points center + s·ray, on rays to the boundary; their volume element is s^{d-1} (normal·ray) ds on each piece of it."""
    boundary, normal = principle.domain.boundary_points(GRADED, seed + 1)
    center, u = np.asarray(principle.domain.center), (generator.permutation(GRADED) + 0.5) / GRADED
    ray, s = boundary - center, 1 - u**GRADING
    return center + s[:, None] * ray, s ** (principle.dimension - 1) * np.sum(normal * ray, axis=1) * u ** (GRADING - 1)


def _towards_point(principle: MaximumPrinciple, point: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points around a singular point at distances R u^SPOT_GRADING, with half their volume element."""
    domain, d = principle.domain, principle.dimension
    lower, upper = domain.bounding_box
    reach = SPOTS[0] * float(np.max(upper - lower))
    u, direction = generator.random(SPOT_POINTS), generator.standard_normal((SPOT_POINTS, d))
    radius = reach * u**SPOT_GRADING
    x = point + radius[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    weight = 0.5 * d * ball_volume(d) * radius ** (d - 1) * SPOT_GRADING * reach * u ** (SPOT_GRADING - 1) / SPOT_POINTS
    inside = domain.contains(x)
    return x[inside], weight[inside]


def _train(problem, candidate, principle, singular, wanted, seed, steps, progress) -> Trained | None:
    """One function for each column of wanted(evaluated); None where there is nothing to dominate, or nothing that could be."""
    domain, d = principle.domain, principle.dimension
    x, weight = training_points(principle, singular, seed)
    evaluated = candidate.evaluate(x)
    right, root = wanted(evaluated), np.linalg.det(evaluated.local.A) ** (1 / d)
    scale = math.sqrt(float(np.max(weight @ right**2)) / domain.volume)
    if not 0 < scale < math.inf:
        return None
    features = BarrierFeatures(problem, singular, principle.measure.points, seed)
    rows = features.rows(x, evaluated.local) / root[:, None]
    basis = _orthonormal(rows * np.sqrt(weight)[:, None])
    # w vanishes on the boundary: one more row of zeros.
    felt = domain.interior_points(FELT, seed + 2, "sobol")
    heights = np.concatenate([features.values(felt) @ basis, np.zeros((1, basis.shape[1]))])
    lower, upper = domain.bounding_box
    factor = CAUTION[d] * min(principle.factor, LARGEST_FACTOR * float(np.linalg.norm(upper - lower)))
    # For d = 1 the norm would have no second derivatives: ‖e‖₁ ≤ |Ω|^{1/2} ‖e‖₂.
    power = max(d, 2)
    task = Task(rows @ basis, np.zeros(0), weight, heights, factor * domain.volume ** (1 / d - 1 / power), power)
    found = [minimise(task._replace(right=column / root / scale), steps, progress) for column in right.T]
    return Trained(features, scale * (basis @ np.stack(found, axis=1)))


def _orthonormal(rows: np.ndarray) -> np.ndarray:
    """A basis of coefficients in which the rows are orthonormal, without the directions that the rows hardly see."""
    square, directions = np.linalg.eigh(rows.T @ rows)
    kept = square > RANK_TOLERANCE**2 * square[-1]
    return directions[:, kept] / np.sqrt(square[kept])


class Task(NamedTuple):
    """The bound as a function of coefficients c: max(heights c) + factor (Σ weight ((right - rows c)⁺)ᵖ)^{1/p}, p = power; both terms are convex."""

    rows: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    heights: np.ndarray
    factor: float
    power: int

    def value(self, c: np.ndarray, sharpness: float) -> float:
        """With the soft maximum log(Σ exp(sharpness·w))/sharpness."""
        lack = np.maximum(self.right - self.rows @ c, 0.0)
        w = self.heights @ c
        top = float(np.max(w))
        soft = top + math.log(float(np.sum(np.exp(sharpness * (w - top))))) / sharpness
        return soft + self.factor * float(self.weight @ lack**self.power) ** (1 / self.power)

    def derivatives(self, c: np.ndarray, sharpness: float) -> tuple[np.ndarray, np.ndarray]:
        """The gradient, and the Hessian of a majorant that touches the function at c.

        With T = Σ weight lackᵖ the norm is T^{1/p} = min over s of (T s^{1-p} + (p - 1) s)/p, which is attained at s = T^{1/p}. With this s kept, the Hessian is
        (p - 1) s^{1-p} Σ weight lackᵖ⁻² row rowᵀ. Newton's method with the Hessian of the norm itself, smaller by a term of rank one, was stuck early.
        """
        p, lack = self.power, self.right - self.rows @ c
        active = lack > 0
        rows, lack, weight = self.rows[active], lack[active], self.weight[active]
        w = self.heights @ c
        share = np.exp(sharpness * (w - np.max(w)))
        felt = share > 1e-12
        heights, share = self.heights[felt], share[felt] / np.sum(share)
        gradient = heights.T @ share
        hessian = sharpness * (_square(heights, share) - np.outer(gradient, gradient))
        total = float(weight @ lack**p)
        if total > 0:
            slope = self.factor * total ** (1 / p - 1)
            gradient = gradient - slope * (rows.T @ (weight * lack ** (p - 1)))
            hessian += (p - 1) * slope * _square(rows, weight * lack ** (p - 2))
        return gradient, hessian


def _square(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Σ weight row rowᵀ, as the product of a matrix with its own transpose, which costs half."""
    scaled = rows * np.sqrt(weight)[:, None]
    return scaled.T @ scaled


def minimise(task: Task, steps: int, progress: Progress | None = None) -> np.ndarray:
    """Newton's method with Levenberg's damping, from the best multiple of the least-squares solution of rows c = right (the rows are orthonormal)."""
    start = (task.rows.T * task.weight) @ task.right
    size = max(float(np.max(np.abs(task.heights @ start))), 1e-300)
    c = start * min((0.0, 0.5, 1.0, 1.5, 2.0, 3.0), key=lambda multiple: task.value(multiple * start, SHARPNESS[0] / size))
    for sharpness in SHARPNESS:
        # A maximum of zero, of a function that is negative inside, leaves no scale of its own.
        top = max(float(np.max(task.heights @ c)), 0.01 * size)
        c = _newton(task, c, sharpness / top, steps, progress)
    return c


def _newton(task: Task, c: np.ndarray, sharpness: float, steps: int, progress: Progress | None) -> np.ndarray:
    """Until three steps in a row have gained little."""
    damping, value, small = 1e-3, task.value(c, sharpness), 0
    for step in range(steps):
        gradient, hessian = task.derivatives(c, sharpness)
        size = float(np.trace(hessian)) / len(c)
        if not size > 0:
            return c
        while True:
            shift = np.linalg.solve(hessian + damping * size * np.eye(len(c)), -gradient)
            after = task.value(c + shift, sharpness)
            if after < value:
                break
            damping *= 5
            if damping > 1e6:
                return c
        expected = -float(gradient @ shift + shift @ hessian @ shift / 2)
        damping = max(damping * (0.2 if value - after > 0.5 * expected else 1.0 if value - after > 0.15 * expected else 3.0), 1e-12)
        small = small + 1 if value - after < GAIN * value else 0
        c, value = c + shift, after
        if progress is not None:
            progress.update(step=step, total=steps, bound=value)
        if small == 3:
            break
    return c


def _peak(features: BarrierFeatures, coefficients: np.ndarray, points: np.ndarray, value: np.ndarray, seed: int) -> float:
    """The supremum of w over the domain: the best of many points, then of ever smaller clouds around the best ones, and a margin."""
    domain, generator = features.domain, np.random.default_rng([seed, 32452843])
    fresh = domain.interior_points(PEAK_POINTS, seed + 3, "sobol")
    x, value = np.concatenate([points, fresh]), np.concatenate([value, features.value(fresh, coefficients)])
    radius = 2 * float(np.max(features.inputs.scale)) * PEAK_POINTS ** (-1 / domain.dimension)
    for _ in range(PEAK_ROUNDS):
        best = np.argsort(-value)[:PEAK_STARTS]
        cloud = np.repeat(x[best], 1024 // PEAK_STARTS, axis=0)
        cloud += radius * generator.uniform(-1, 1, cloud.shape)
        cloud = cloud[domain.contains(cloud)]
        x, value = np.concatenate([x[best], cloud]), np.concatenate([value[best], features.value(cloud, coefficients)])
        radius /= 3
    # w vanishes on the boundary, so that its supremum is not negative.
    return max(float(np.max(value)), 0.0) * (1 + PEAK_MARGIN)
