"""Looking for discontinuities: along a path, bisect towards the largest difference and see whether
it survives.

A jump keeps its size when the interval shrinks; a steep or Hölder function does not: over eight
more decades even |t|^(1/4) loses a factor of 100. Rounding keeps its size too, so a jump must also
be large against the values on all paths: a function that is zero on one path up to rounding is no
jump.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Below this share of the largest value on any path, or below this size, a difference is rounding.
ROUNDING, FLOOR = 1e-9, 1e-12


class Jump(NamedTuple):
    """Where a function jumps and its values on the two sides."""

    point: np.ndarray
    before: np.ndarray
    after: np.ndarray


def find_jumps(
    values_at: Callable[[np.ndarray], ArrayLike],
    starts: np.ndarray,
    ends: np.ndarray,
    samples: int = 65,
) -> list[Jump]:
    """At most one jump for each straight path from starts[i] to ends[i]; `values_at` maps points
    (n, d) to (n, ...)."""
    paths = len(starts)

    def path(s: np.ndarray) -> np.ndarray:
        return starts + s[:, None] * (ends - starts)

    def evaluate(s: np.ndarray) -> np.ndarray:
        return np.asarray(values_at(path(s)), dtype=np.float64).reshape(paths, -1)

    table = np.stack([evaluate(np.full(paths, s)) for s in np.linspace(0, 1, samples)])
    scale = np.maximum(np.max(np.abs(table - table[:1]), axis=(0, 2)), 1e-300)
    step = np.max(np.abs(np.diff(table, axis=0)), axis=2)
    worst = np.argmax(step, axis=0)
    low, high = worst / (samples - 1), (worst + 1) / (samples - 1)
    rows = np.arange(paths)
    at_low, at_high = table[worst, rows], table[worst + 1, rows]
    sizes = []
    for halvings in (13, 27):
        for _ in range(halvings):
            middle = (low + high) / 2
            at_middle = evaluate(middle)
            left = _size(at_middle - at_low) >= _size(at_high - at_middle)
            high, low = np.where(left, middle, high), np.where(left, low, middle)
            at_high = np.where(left[:, None], at_middle, at_high)
            at_low = np.where(left[:, None], at_low, at_middle)
        sizes.append(_size(at_high - at_low))
    coarse, fine = sizes
    survives = (
        (fine > 0.5 * coarse)
        & (fine > 1e-6 * scale)
        & (fine > ROUNDING * np.max(np.abs(table)) + FLOOR)
    )
    where = path((low + high) / 2)
    return [Jump(where[i], at_low[i], at_high[i]) for i in np.flatnonzero(survives)]


def _size(differences: np.ndarray) -> np.ndarray:
    return np.max(np.abs(differences), axis=1)
