"""Switches: operations with finitely many outcomes, which an enclosure can take one at a time.

A comparison or sign that is undecided in a cell makes the function jump there. Its hull would
forget that all entries of a matrix jump together; instead the outcome is forced, once to each of
its values. Each element of a comparison or sign is one switch with one column in the table of
outcomes; x > 0, x < 0, x ≥ 0 and sign(x) share a column where x is analytic.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cordes.formulas.intervals.arithmetic import Array, Interval, point, where
from cordes.formulas.numbering import Numbering


@dataclass
class IntervalPass:
    """One pass through a program: `undecided` (cells, columns) is filled in; `forced` holds
    outcomes, NaN where the hull is wanted; `gaps` tells, for each operand of the instruction at
    work, in which cells it may not be a number somewhere (None: in none). `outcomes` (cells,
    columns), if wanted, are the least ones that are possible."""

    undecided: Array
    forced: Array | None
    gaps: list[Array | None]
    outcomes: Array | None = None

    def vague(self, interval: Interval, outcomes: Interval) -> Interval:
        """The interval, but all `outcomes` in cells where an operand may not be a number: there a
        comparison is false, whatever the bounds say."""
        for gap in self.gaps:
            if gap is not None:
                cells = gap.reshape((-1,) + (1,) * (interval.lower.ndim - 1))
                interval = where(cells, outcomes, interval)
        return interval


class IntervalSwitch(NamedTuple):
    """For each element of an operation: its column, and its outcome as an affine function of the
    outcome of the column."""

    columns: Array
    scale: Array
    shift: Array

    def settle(self, state: IntervalPass, natural: Interval) -> Interval:
        """Note what is undecided and put the forced outcomes in its place; what is decided
        stays."""
        cells = len(natural.lower)
        columns = self.columns.ravel()
        state.undecided[:, columns] |= (natural.lower < natural.upper).reshape(cells, -1)
        if state.outcomes is not None:
            least = (natural.lower - self.shift) / self.scale
            state.outcomes[:, columns] = least.reshape(cells, -1)
        if state.forced is None:
            return natural
        outcome = state.forced[:, columns].reshape(natural.shape) * self.scale + self.shift
        outcome = np.clip(outcome, natural.lower, natural.upper)
        return where(np.isnan(outcome), natural, point(outcome))


class Switchboard:
    """The columns of all switches of a program, by the number of the element that is switched."""

    def __init__(self, numbering: Numbering):
        self.outcomes: list[tuple[int, ...]] = []
        self._numbering = numbering
        self._columns: dict[int, int] = {}

    def _column(self, number: int, outcomes: tuple[int, ...]) -> int:
        if number not in self._columns:
            self._columns[number] = len(self.outcomes)
            self.outcomes.append(outcomes)
        return self._columns[number]

    def comparison(self, name: str, first: Array, second: Array) -> IntervalSwitch:
        """The switch of a comparison."""
        rows = []
        for pair in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True):
            number, opposite = self._numbering.compared(name, *pair)
            rows.append((self._column(number, (0, 1)), -1 if opposite else 1, int(opposite)))
        return _switch(rows, first.shape)

    def sign(self, operand: Array, result: Array) -> IntervalSwitch:
        """The switch of a sign: ±1 where the operand is analytic, and then it is that of the
        comparison with zero; else -1, 0 or 1."""
        zero = self._numbering.constant(0.0)
        rows = []
        for number, own in zip(operand.ravel().tolist(), result.ravel().tolist(), strict=True):
            if self._numbering.analytic(number):
                above, turned = self._numbering.above(number, zero)
                rows.append((self._column(above, (0, 1)), *((-2, 1) if turned else (2, -1))))
            else:
                rows.append((self._column(own, (-1, 0, 1)), 1, 0))
        return _switch(rows, operand.shape)


def _switch(rows: list[tuple[int, int, int]], shape: tuple[int, ...]) -> IntervalSwitch:
    """Column, scale and shift of each element as arrays."""
    return IntervalSwitch(*np.array(rows, dtype=np.int64).reshape(-1, 3).T.reshape(3, *shape))


def compare(name: str, a: Interval, b: Interval, analytic: Any, same: Any) -> Interval:
    """A comparison as an interval of truth values. Elements that are `same` on both sides are
    equal; of those that are `analytic` on both sides equality is a set of measure zero, unless both
    are one number."""
    if name in ("gt", "ge"):
        return compare({"gt": "lt", "ge": "le"}[name], b, a, analytic, same)
    if name == "ne":
        equal = compare("eq", a, b, analytic, same)
        return Interval(1.0 - equal.upper, 1.0 - equal.lower)
    if name == "lt":
        false = same | (a.lower >= b.upper)
        true = ~false & ((a.upper < b.lower) | (analytic & (a.upper <= b.lower)))
    elif name == "le":
        true = same | (a.upper <= b.lower)
        false = ~true & ((a.lower > b.upper) | (analytic & (a.lower >= b.upper)))
    else:
        true = same | ((a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower))
        false = ~true & (analytic | (a.upper < b.lower) | (a.lower > b.upper))
    return Interval(true, ~false)


NARROWED = ("lt", "le", "gt", "ge")


def narrow(name: str, a: Interval, b: Interval, outcome: Interval) -> tuple[Interval, Interval]:
    """The operands of a comparison where its outcome is known: of s < 1 it follows that s is at
    most one in all that is made of s afterwards, such as exp(-1/(1 - s))."""
    if name in ("gt", "ge"):
        second, first = narrow({"gt": "lt", "ge": "le"}[name], b, a, outcome)
        return first, second
    true, false = outcome.lower == 1, outcome.upper == 0
    first = _cut(a, np.where(false, b.lower, -np.inf), np.where(true, b.upper, np.inf))
    return first, _cut(b, np.where(true, a.lower, -np.inf), np.where(false, a.upper, np.inf))


def _cut(x: Interval, lowest: Array, highest: Array) -> Interval:
    """An interval cut off at both ends; one of which nothing would be left stays."""
    if x.shape != lowest.shape:
        return x
    lower, upper = np.maximum(x.lower, lowest), np.minimum(x.upper, highest)
    kept = lower <= upper
    return Interval(np.where(kept, lower, x.lower), np.where(kept, upper, x.upper))


def sign_of(x: Interval, analytic: Array) -> Interval:
    """The sign; of an analytic operand it is ±1 almost everywhere, unless the operand is the number
    zero."""
    nonzero = analytic & (x.lower < x.upper)
    lower = np.where(nonzero, np.where(x.lower >= 0, 1.0, -1.0), np.sign(x.lower))
    return Interval(lower, np.where(nonzero, np.where(x.upper <= 0, -1.0, 1.0), np.sign(x.upper)))
