"""Enclosures of functions written with jax.numpy over boxes: rigorous bounds of their values at all
points of a box at once.

The function is traced once for one point; its jaxpr is interpreted with interval arithmetic, for
many boxes ("cells") at a time.

What is assumed: the function is the mathematical function that its jaxpr describes, with constants
as float64 numbers; the rounding errors that JAX makes are not part of it. Bounds hold almost
everywhere: on sets of measure zero (where x₀, and therefore sign(x₀), is zero) they may fail. At
points where the function is not a number nothing is claimed; where only an intermediate result is
not a number, comparisons with it count as undecided.
"""

from collections.abc import Callable
from typing import Any, final

import jax
import numpy as np

from cordes.formulas.intervals.arithmetic import Array, Interval
from cordes.formulas.intervals.program import Program

# More combinations of undecided switches than this in one cell are not taken one by one.
COMBINATIONS = 64


@final
class Enclosure:
    """The enclosure of a function of one point x of shape (d,), traced at the first call. Called
    with cells lower, upper of shape (n, d), it gives a list of pytrees of `Interval` in the
    structure of the function's result.

    The list has one entry where the function does not jump. Where comparisons or signs are
    undecided in a cell the entries are the enclosures for each combination of their outcomes: every
    point of the cell (but a set of measure zero) has its value in one of the entries, all parts of
    the result in the same one. Cells with fewer combinations repeat their first entry; those with
    more than 64 have the hull in every entry.
    """

    def __init__(self, function: Callable):
        self._function = function
        self._programs: dict[int, Program] = {}

    def __call__(self, lower: Any, upper: Any) -> list[Any]:
        lower, upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if lower.ndim != 2 or lower.shape != upper.shape:
            raise ValueError(
                f"Cells have lower and upper corners of one shape (n, d), not {lower.shape} "
                f"and {upper.shape}."
            )
        if not np.all(lower <= upper):
            raise ValueError("A cell is empty: its lower corner must not be above its upper one.")
        program = self.program(lower.shape[1])
        outputs, undecided = program.run(lower, upper)
        pieces = [outputs]
        if np.any(undecided):
            pieces = self._pieces(program, lower, upper, undecided, outputs)
        return [jax.tree.unflatten(program.trace.structure, piece) for piece in pieces]

    def program(self, dimension: int) -> Program:
        """The traced function, made at the first call. An operation without enclosure raises
        `UnsupportedOperation` here."""
        if dimension not in self._programs:
            self._programs[dimension] = Program(self._function, dimension)
        return self._programs[dimension]

    def _pieces(
        self,
        program: Program,
        lower: Array,
        upper: Array,
        undecided: Array,
        outputs: list[Interval],
    ) -> list[list[Interval]]:
        outcomes = program.switchboard.outcomes
        choices = np.where(undecided, [len(values) for values in outcomes], 1)
        # Combination k of a cell has, in mixed radix, one digit for each of its undecided switches.
        # Beyond the limit the product may overflow.
        exact = np.cumsum(np.log2(choices), axis=1)
        strides = np.cumprod(
            np.where(exact[:, -1:] <= np.log2(COMBINATIONS) + 1e-9, choices, 1), axis=1
        )
        counts = strides[:, -1]
        strides = np.concatenate([np.ones((len(strides), 1), dtype=int), strides[:, :-1]], axis=1)
        table = np.full((len(outcomes), max(len(values) for values in outcomes)), np.nan)
        for row, values in zip(table, outcomes, strict=True):
            row[: len(values)] = values
        pieces = []
        base = outputs
        for combination in range(int(np.max(counts))):
            rows = np.flatnonzero(counts > max(combination, 1))
            if len(rows) == 0:
                return [outputs]
            digits = combination // strides[rows] % choices[rows]
            forced = np.where(
                undecided[rows],
                np.take_along_axis(table[None], digits[:, :, None], axis=2)[..., 0],
                np.nan,
            )
            found, _ = program.run(lower[rows], upper[rows], forced)
            pieces.append([_replaced(old, rows, new) for old, new in zip(base, found, strict=True)])
            base = pieces[0]
        return pieces


def _replaced(old: Interval, rows: Array, new: Interval) -> Interval:
    lower, upper = np.array(old.lower), np.array(old.upper)
    lower[rows], upper[rows] = new.lower, new.upper
    return Interval(lower, upper)


enclose = Enclosure
