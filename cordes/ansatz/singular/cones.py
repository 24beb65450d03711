"""Isolated points where a coefficient has the tip of a cone, such as |x| in A: u is then rough
there (r³Φ(θ)) although nothing jumps."""

from collections.abc import Callable

import numpy as np

from cordes.domains.domain import AbstractDomain

DIRECTIONS = np.stack([np.cos(np.arange(4) * np.pi / 4), np.sin(np.arange(4) * np.pi / 4)], axis=1)


def _bend(values: Callable, points: np.ndarray, step: float) -> np.ndarray:
    """Largest second difference over the step: of the order of the step where the coefficients are
    smooth, of order one across a kink."""
    n = len(points)
    around = np.concatenate(
        [points] + [points + sign * step * e for e in DIRECTIONS for sign in (-1, 1)]
    )
    table = np.nan_to_num(values(around)).reshape(1 + 2 * len(DIRECTIONS), n, -1)
    second = table[1::2] + table[2::2] - 2 * table[0]
    return np.max(np.abs(second), axis=(0, 2)) / step


def find_cones(
    domain: AbstractDomain,
    values: Callable[[np.ndarray], np.ndarray],
    avoid: Callable[[np.ndarray], np.ndarray],
) -> list[np.ndarray]:
    """Tips of cones of the coefficients `values` (n, 2) -> (n, k), away from the points where
    `avoid` is true (interfaces)."""
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    ticks = [np.linspace(a, b, 34)[1:-1] for a, b in zip(lower, upper, strict=True)]
    step = size / 66
    grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
    grid = grid[domain.contains(grid, tolerance=-2 * step) & ~avoid(grid)]
    if not len(grid):
        return []
    bend = _bend(values, grid, step)
    points = grid[np.argsort(-bend)[:8]]
    offsets = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(-1, 2)
    first = None
    for _ in range(26):
        candidates = points[:, None] + 0.75 * step * offsets
        table = _bend(values, candidates.reshape(-1, 2), step).reshape(len(points), -1)
        points = candidates[np.arange(len(points)), np.argmax(table, axis=1)]
        bend = np.max(table, axis=1)
        first = bend if first is None else first
        step /= 2
    assert first is not None
    angles = np.arange(256) * np.pi / 128 + 0.1
    reach = 1e-2 * size
    ring = reach * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tips: list[np.ndarray] = []
    for point, before, after in zip(points, first, bend, strict=True):
        if (
            after <= 0.3 * before
            or after <= 1e-6
            or any(np.linalg.norm(point - tip) <= 1e-3 * size for tip in tips)
        ):
            continue
        # A kink along a curve persists on the ring too; a tip does not. Steps longer than the
        # ring's gaps, so that no curve slips through.
        at_point, around = (
            _bend(values, where, 0.03 * reach) for where in (point[None], point + ring)
        )
        if np.max(around) < 0.1 * at_point[0]:
            tips.append(point)
    return tips
