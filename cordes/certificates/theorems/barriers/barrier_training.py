"""How a barrier network is trained: points that are none of the certificate's, and the minimum of a
convex function.

The function is the bound that the barrier will give, with the maximum replaced by a soft one and
the integral by a sum over the training points.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from cordes.certificates.residual.norms import Quadrature
from cordes.certificates.theorems.barriers.barrier_features import MOST_SPOTS, SPOTS
from cordes.certificates.theorems.maximum import MaximumPrinciple
from cordes.domains.unit_ball import ball_volume

# Training points beside points of the measure, by dimension; towards the boundary, at relative
# distances u^GRADING; around singular points, of which there are so many in all, at distances R
# u^SPOT_GRADING.
BESIDE = {1: 4000, 2: 12_000, 3: 24_000}
UNIFORM, GRADED, GRADING = 8192, 8000, 6.0
SPOT_POINTS, SPOT_GRADING = 16_000, 4.0
# Directions in which the rows are smaller than this share of the largest are left out: they would
# need huge coefficients.
RANK_TOLERANCE = 3e-7
# Sharpness of the smooth functions, first and last, relative to the size of the maximum. Steps that
# gain less than this share are small ones.
SHARPNESS, GAIN = (30.0, 200.0), 1e-3
START, SMALL_STEPS, LARGEST_DAMPING = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0), 3, 1e6


def training_points(
    principle: MaximumPrinciple, singular: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, d) and their shares of the volume, none of them a point of the measure.

    One third of the weight lies beside points of the measure, which are dense where the residual is
    large, one third is uniform, and one third graded towards the boundary. A little more is graded
    towards the singular points. Where one of them was missing, w ran wild in the gaps that the
    others leave.
    """
    domain, generator = principle.domain, np.random.default_rng([seed, 15485863])
    uniform = domain.interior_points(UNIFORM, seed + 4, "sobol")
    thirds = [
        _beside(principle, generator),
        (uniform, np.ones(UNIFORM)),
        _towards_boundary(principle, generator, seed),
    ]
    parts = [(x, domain.volume / len(thirds) * weight / np.sum(weight)) for x, weight in thirds]
    parts += [
        _towards_point(principle, point, SPOT_POINTS // max(len(singular), 4), generator)
        for point in singular[:MOST_SPOTS]
    ]
    return np.concatenate([x for x, _ in parts]), np.concatenate([weight for _, weight in parts])


def _beside(
    principle: MaximumPrinciple, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A step from points of the measure towards or away from one of their neighbours."""
    assert isinstance(principle.measure, Quadrature)
    nodes, neighbours = principle.measure.nodes, 2 * principle.dimension
    chosen = np.resize(generator.permutation(len(nodes.x)), BESIDE[principle.dimension])
    x = nodes.x[chosen]
    near = np.asarray(KDTree(nodes.x).query(x, k=neighbours + 1)[1])
    step = nodes.x[near[np.arange(len(x)), generator.integers(1, neighbours + 1, len(x))]] - x
    length = generator.uniform(0.1, 0.6, (len(x), 1))
    away = x - length * step
    # The neighbour lies in the convex domain, and so does every step towards it.
    back = (generator.random(len(x)) < 0.5) & principle.domain.contains(away)
    return np.where(back[:, None], away, x + length * step), (nodes.coarse + nodes.fine)[chosen]


def _towards_boundary(
    principle: MaximumPrinciple, generator: np.random.Generator, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points center + s·ray, on rays to the boundary; their volume element is s^{d-1} (normal·ray)
    ds on each piece of it."""
    boundary, normal = principle.domain.boundary_points(GRADED, seed + 1)
    center, u = np.asarray(principle.domain.center), (generator.permutation(GRADED) + 0.5) / GRADED
    ray, s = boundary - center, 1 - u**GRADING
    volume = s ** (principle.dimension - 1) * np.sum(normal * ray, axis=1)
    return center + s[:, None] * ray, volume * u ** (GRADING - 1)


def _towards_point(
    principle: MaximumPrinciple, point: np.ndarray, count: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Points around a singular point at distances R u^SPOT_GRADING, with a third of their volume
    element."""
    domain, d = principle.domain, principle.dimension
    lower, upper = domain.bounding_box
    reach = SPOTS[0] * float(np.max(upper - lower))
    u, direction = generator.random(count), generator.standard_normal((count, d))
    radius = reach * u**SPOT_GRADING
    x = point + radius[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    weight = d / 3 * ball_volume(d) * radius ** (d - 1) * SPOT_GRADING * reach
    weight = weight * u ** (SPOT_GRADING - 1) / count
    inside = domain.contains(x)
    return x[inside], weight[inside]


def orthonormal(rows: np.ndarray) -> np.ndarray:
    """A basis of coefficients in which the rows are orthonormal, without the directions that the
    rows hardly see."""
    square, directions = np.linalg.eigh(rows.T @ rows)
    kept = square > RANK_TOLERANCE**2 * square[-1]
    return directions[:, kept] / np.sqrt(square[kept])


class Task(NamedTuple):
    """The bound as a function of coefficients c: max(heights c) + factor (Σ weight ((right - rows
    c)⁺)ᵖ)^{1/p}, p = power ≥ 2. Both terms are convex.

    They are replaced by smooth ones: the maximum by log(Σ exp(sharpness·w))/sharpness, the norm n
    by (floorᵖ + nᵖ)^{1/p}.
    """

    rows: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    heights: np.ndarray
    factor: float
    power: int
    sharpness: float = 1.0
    floor: float = 0.0

    def value(self, c: np.ndarray) -> float:
        lack = np.maximum(self.right - self.rows @ c, 0.0)
        w = self.heights @ c
        top = float(np.max(w))
        soft = top + math.log(float(np.sum(np.exp(self.sharpness * (w - top))))) / self.sharpness
        total = float(self.floor**self.power + self.weight @ lack**self.power)
        return soft + self.factor * total ** (1 / self.power)

    def derivatives(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient, and the Hessian of a function that is not smaller and touches this one at
        c.

        With T = floorᵖ + Σ weight lackᵖ the norm is T^{1/p} = min over s of (T s^{1-p} + (p - 1)
        s)/p, which is attained at s = T^{1/p}. With this s kept, the Hessian is (p - 1) s^{1-p} Σ
        weight lackᵖ⁻² row rowᵀ. Newton's method with the Hessian of the norm itself, smaller by a
        term of rank one, was stuck early.
        """
        p, lack = self.power, self.right - self.rows @ c
        active = lack > 0
        rows, lack, weight = self.rows[active], lack[active], self.weight[active]
        w = self.heights @ c
        share = np.exp(self.sharpness * (w - np.max(w)))
        share /= np.sum(share)
        felt = share > 1e-12
        heights, share = self.heights[felt], share[felt]
        gradient = heights.T @ share
        hessian = self.sharpness * (_square(heights, share) - np.outer(gradient, gradient))
        total = float(self.floor**p + weight @ lack**p)
        if total > 0:
            slope = self.factor * total ** (1 / p - 1)
            gradient = gradient - slope * (rows.T @ (weight * lack ** (p - 1)))
            hessian += (p - 1) * slope * _square(rows, weight * lack ** (p - 2))
        return gradient, hessian


def _square(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Σ weight row rowᵀ, as the product of a matrix with its own transpose, which costs half."""
    scaled = rows * np.sqrt(weight)[:, None]
    return scaled.T @ scaled


def minimise(task: Task, steps: int) -> np.ndarray:
    """Newton's method with Levenberg's damping, from the best multiple of the least-squares
    solution of rows c = right (the rows are orthonormal)."""
    start = (task.rows.T * task.weight) @ task.right
    size = max(float(np.max(np.abs(task.heights @ start))), 1e-300)
    first = task._replace(sharpness=SHARPNESS[0] / size)
    c = start * min(START, key=lambda multiple: first.value(multiple * start))
    for sharpness in SHARPNESS:
        # A maximum of zero, of a function that is negative inside, leaves no scale of its own.
        top = max(float(np.max(task.heights @ c)), 0.01 * size)
        sharper = task._replace(sharpness=sharpness / top, floor=top / sharpness / task.factor)
        c = _newton(sharper, c, steps)
    return c


def _newton(task: Task, c: np.ndarray, steps: int) -> np.ndarray:
    """Until a few steps in a row have gained little."""
    damping, value, small = 1e-3, task.value(c), 0
    for _ in range(steps):
        gradient, hessian = task.derivatives(c)
        # Where one height alone is felt and nothing is lacking, the function is linear.
        size = max(float(np.trace(hessian)), task.sharpness * float(gradient @ gradient)) / len(c)
        if not size > 0:
            break
        while True:
            shift = np.linalg.solve(hessian + damping * size * np.eye(len(c)), -gradient)
            after = task.value(c + shift)
            if after < value:
                break
            damping *= 5
            if damping > LARGEST_DAMPING:
                return c
        gain, expected = value - after, -float(gradient @ shift + shift @ hessian @ shift / 2)
        change = 0.2 if gain > 0.5 * expected else 1.0 if gain > 0.15 * expected else 3.0
        damping = max(damping * change, 1e-12)
        small = small + 1 if gain < GAIN * value else 0
        c, value = c + shift, after
        if small == SMALL_STEPS:
            break
    return c
