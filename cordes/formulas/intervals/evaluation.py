"""How instructions are evaluated: what the rules for intervals need around them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cordes.formulas.intervals import functions
from cordes.formulas.intervals.arithmetic import Array, Interval, point
from cordes.formulas.intervals.rules import finite, whole_numbers
from cordes.formulas.intervals.switches import IntervalPass
from cordes.formulas.movement import Move

Evaluate = Callable[..., list[Interval]]
UNDECIDED, ANYTHING = Interval(0.0, 1.0), Interval(-np.inf, np.inf)


def aligned(rank: int, *intervals: Interval) -> list[Interval]:
    """Numbers (rank 0) beside arrays get axes of length one."""
    return [
        x
        if x.lower.ndim == rank + 1
        else x.map(lambda bound: bound.reshape((len(bound),) + (1,) * rank))
        for x in intervals
    ]


def combined(
    rule: Callable[..., Interval],
    rank: int,
    options: dict[str, Any],
    state: IntervalPass,
    *intervals: Interval,
) -> list[Interval]:
    result = rule(*aligned(rank, *intervals), **options)
    # What is made of no number by these need not be one of the values that numbers give.
    return [
        state.vague(result, ANYTHING)
        if rule in (functions.clamp, functions.trunc, finite)
        else result
    ]


def moved(move: Move, state: IntervalPass, *intervals: Interval) -> list[Interval]:
    cells = len(state.undecided)

    def spread(bound: Array) -> Array:
        return np.broadcast_to(bound, (cells, *bound.shape[1:]))

    lower, upper = (
        move(*(spread(x.lower) for x in intervals)),
        move(*(spread(x.upper) for x in intervals)),
    )
    return [Interval(*pair) for pair in zip(lower, upper, strict=True)]


def chosen(rank: int, state: IntervalPass, index: Interval, *cases: Interval) -> list[Interval]:
    return [functions.choose(*aligned(rank, index, *cases))]


def whole(
    evaluate: Evaluate, truth: bool, state: IntervalPass, *intervals: Interval
) -> list[Interval]:
    results = [whole_numbers(result) for result in evaluate(state, *intervals)]
    return [result.clip(0.0, 1.0) for result in results] if truth else results


def fixed(constant: Array) -> Interval:
    """A constant as an interval; what is not a number may be any number."""
    exact = point(constant)
    missing = np.isnan(exact.lower)
    return exact.unknown_where(missing)


def over_cells(constant: Array, cells: int) -> Interval:
    """A constant output, the same in all cells."""
    return fixed(np.broadcast_to(constant, (cells, *constant.shape)))
