"""The smallest and the largest entry in rectangular parts of a table, at a cost that does not
depend on the size of the part."""

import itertools

import numpy as np

Array = np.ndarray


class RangeExtremes:
    """A sparse table: at level (k₁, k₂, …) stand the extremes of all blocks of 2^k₁ × 2^k₂ × …
    entries, and a part of the table is covered by two such blocks in each direction. Levels are
    made when they are asked for. An entry that is not a number may be any number."""

    def __init__(self, table: Array):
        table = np.asarray(table, dtype=np.float64)
        missing = np.isnan(table)
        self._levels = {
            (0,) * table.ndim: (
                np.where(missing, -np.inf, table),
                np.where(missing, np.inf, table),
            )
        }

    def __call__(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The extremes over lower ≤ index ≤ upper, integers of shape (axes, parts) inside of the
        table with lower ≤ upper."""
        smallest, largest = np.empty(lower.shape[1]), np.empty(lower.shape[1])
        levels = np.frexp(upper - lower + 1)[1] - 1
        kinds, kind = np.unique(levels, axis=1, return_inverse=True)
        for number, level in enumerate(kinds.T.tolist()):
            here = np.flatnonzero(kind.ravel() == number)
            low, high = self._level(tuple(level))
            ends = [
                (start,) if k == 0 and np.array_equal(start, end) else (start, end)
                for k, start, end in zip(
                    level,
                    lower[:, here],
                    upper[:, here] + 1 - (1 << np.array(level))[:, None],
                    strict=True,
                )
            ]
            corners = list(itertools.product(*ends))
            smallest[here] = np.min([low[corner] for corner in corners], axis=0)
            largest[here] = np.max([high[corner] for corner in corners], axis=0)
        return smallest, largest

    def _level(self, level: tuple[int, ...]) -> tuple[Array, Array]:
        if level not in self._levels:
            axis = int(np.argmax(level))
            below = self._level(tuple(k - (a == axis) for a, k in enumerate(level)))
            half = 1 << (level[axis] - 1)
            low, high = (np.moveaxis(part, axis, 0) for part in below)
            self._levels[level] = (
                np.moveaxis(np.minimum(low[:-half], low[half:]), 0, axis),
                np.moveaxis(np.maximum(high[:-half], high[half:]), 0, axis),
            )
        return self._levels[level]
