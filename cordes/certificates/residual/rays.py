"""Whether the gradient of an answer jumps across the rays of its singular functions."""

from typing import Any

import numpy as np

from cordes.solutions.solution import Solution

# Distances from a singular point, in units of the domain, at which its rays are crossed, and the
# step across relative to them.
RAY_RADII, RAY_STEP = np.array([1e-3, 1e-2, 0.1, 0.3]), 1e-5
EPSILON = float(np.finfo(np.float64).eps)


def kink_across_rays(solution: Solution) -> float:
    """The largest jump of the gradient across the rays of the singular functions, beyond rounding:
    zero by construction, measured all the same, because large amplitudes magnify the smallest fault
    of an angle.

    Differences at distances h and 2h are combined so that a smooth function leaves a term of the
    second order in h.
    """
    singular, amplitudes = solution.singular_functions
    lower, upper = solution.problem.domain.bounding_box
    size = float(np.max(upper - lower))
    largest = 0.0
    for family in singular.families:
        point = family.point
        rays = point.rays[1:-1] if point.on_boundary else point.rays[1:]
        if point.sectors == 1:
            continue
        angles, radii = np.repeat(rays, len(RAY_RADII)), size * np.tile(RAY_RADII, len(rays))
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        x = point.location + radii[:, None] * along
        inside = solution.problem.domain.contains(x)
        x, across, step = x[inside], across[inside], RAY_STEP * radii[inside, None]
        if not len(x):
            continue
        change, rounding = np.zeros(x.shape), np.zeros(x.shape)
        for weight, distance in ((2, 1), (-2, -1), (-1, 2), (1, -2)):
            gradient, terms = _singular_gradient(singular, amplitudes, x + distance * step * across)
            change = change + weight * gradient
            rounding = rounding + abs(weight) * 8 * EPSILON * terms
        largest = max(largest, float(np.max(np.abs(change) - rounding)))
    return max(largest, 0.0)


def _singular_gradient(
    singular: Any, amplitudes: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    n, nothing = len(x), np.zeros((len(x), 2, 2))
    columns = [
        singular.rows(x, np.zeros(n), np.tile(direction, (n, 1)), nothing)
        for direction in np.eye(2)
    ]
    values = np.stack([column @ amplitudes for column in columns], axis=1)
    return values, np.stack([np.abs(column) @ np.abs(amplitudes) for column in columns], axis=1)
