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

# Below this share of the largest value on any path, or below this size, a difference is rounding.
ROUNDING, FLOOR = 1e-9, 1e-12


class Jump(NamedTuple):
    """Where a function jumps and its values on the two sides."""

    point: np.ndarray
    before: np.ndarray
    after: np.ndarray


def find_jumps(
    values_at: Callable[[np.ndarray], np.ndarray],
    starts: np.ndarray,
    ends: np.ndarray,
    path: Callable,
    samples: int = 65,
) -> list[Jump]:
    """At most one jump for each path from starts[i] to ends[i].

    `path(starts, ends, s)` gives points for parameters s in [0, 1], all of shape (paths,) at a
    time; `values_at` maps points (n, d) to (n, ...).
    """
    paths = len(starts)

    def evaluate(s: np.ndarray) -> np.ndarray:
        return values_at(path(starts, ends, s)).reshape(paths, -1)

    table = np.stack([evaluate(np.full(paths, s)) for s in np.linspace(0, 1, samples)])
    scale = np.maximum(np.max(np.abs(table - table[:1]), axis=(0, 2)), 1e-300)
    step = np.max(np.abs(np.diff(table, axis=0)), axis=2)
    worst = np.argmax(step, axis=0)
    low, high = worst / (samples - 1), (worst + 1) / (samples - 1)
    rows = np.arange(paths)
    at_low, at_high = table[worst, rows], table[worst + 1, rows]
    coarse = None
    for iteration in range(40):
        middle = (low + high) / 2
        at_middle = evaluate(middle)
        left = np.max(np.abs(at_middle - at_low), axis=1) >= np.max(
            np.abs(at_high - at_middle), axis=1
        )
        high, at_high = np.where(left, middle, high), np.where(left[:, None], at_middle, at_high)
        low, at_low = np.where(left, low, middle), np.where(left[:, None], at_low, at_middle)
        if iteration == 12:
            coarse = np.max(np.abs(at_high - at_low), axis=1)
    fine = np.max(np.abs(at_high - at_low), axis=1)
    assert coarse is not None
    survives = (
        (fine > 0.5 * coarse)
        & (fine > 1e-6 * scale)
        & (fine > ROUNDING * np.max(np.abs(table)) + FLOOR)
    )
    where = path(starts, ends, (low + high) / 2)
    return [Jump(where[i], at_low[i], at_high[i]) for i in np.flatnonzero(survives)]


def straight(starts: np.ndarray, ends: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The straight path."""
    return starts + s[:, None] * (ends - starts)
