"""Intervals of numbers that are looked up in tables."""

from collections.abc import Sequence

import numpy as np

from cordes.formulas.intervals.arithmetic import Array, Interval
from cordes.formulas.intervals.switches import IntervalPass
from cordes.formulas.lookups import Lookup, found_places


def looked_up(lookup: Lookup, state: IntervalPass, *index: Interval) -> list[Interval]:
    """The extremes of a table over all indices that are possible."""
    return [Interval(*lookup.range(*_flat(state, index)))]


def picked(
    lookup: Lookup, state: IntervalPass, table: Interval, *index: Interval
) -> list[Interval]:
    """The extremes of all entries that are possible, which depend on x themselves."""
    return [Interval(*lookup.picked(*_flat(state, [table]), *_flat(state, index)))]


def _flat(state: IntervalPass, intervals: Sequence[Interval]) -> tuple[Array, Array]:
    """The bounds of intervals beside each other, (cells, elements)."""
    cells = len(state.undecided)

    def row(bound: Array) -> Array:
        return np.broadcast_to(bound, (cells, *bound.shape[1:])).reshape(cells, -1)

    lower, upper = ([row(getattr(i, end)) for i in intervals] for end in ("lower", "upper"))
    return np.concatenate(lower, axis=1), np.concatenate(upper, axis=1)


def searched(
    knots: Array, side: str, rarely: Array, state: IntervalPass, query: Interval
) -> list[Interval]:
    """The places among ascending knots; any place where the number may be none."""
    places = Interval(*found_places(knots, query.lower, query.upper, side, rarely))
    return [state.vague(places, Interval(0.0, float(len(knots))))]


def smoothed(
    between: bool, state: IntervalPass, value: Interval, *others: Interval
) -> list[Interval]:
    """A value that lies between numbers of a window, where there is one."""
    if not between:
        return [value]
    low, high = np.min(others[0].lower, axis=1), np.max(others[0].upper, axis=1)
    return [Interval(np.maximum(value.lower, low), np.minimum(value.upper, high))]


def difference(a: Interval, b: Interval, fractional: Array) -> Interval:
    """a - b, which lies in [0, 1] where it is a number minus its floor."""
    result = a - b
    return Interval(
        np.where(fractional, np.maximum(result.lower, 0.0), result.lower),
        np.where(fractional, np.minimum(result.upper, 1.0), result.upper),
    )
