"""Intervals of numbers that are looked up in tables."""

import numpy as np

from cordes.formulas.intervals.arithmetic import Array, Interval
from cordes.formulas.intervals.switches import IntervalPass
from cordes.formulas.lookups import Lookup, found_places


def looked_up(lookup: Lookup, state: IntervalPass, *index: Interval) -> list[Interval]:
    """The extremes of a table over all indices that are possible."""
    cells = len(state.undecided)

    def flat(bounds: list[Array]) -> Array:
        rows = [np.broadcast_to(b, (cells, *b.shape[1:])).reshape(cells, -1) for b in bounds]
        return np.concatenate(rows, axis=1)

    return [Interval(*lookup.range(flat([i.lower for i in index]), flat([i.upper for i in index])))]


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
