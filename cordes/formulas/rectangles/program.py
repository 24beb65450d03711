"""The steps of a trace on complex neighbourhoods of cells.

Of d variables one at a time is complex: it lies in the rectangle around a Bernstein ellipse of its
side of the cell, the others in theirs. Choices (signs, comparisons, max, floor) are made on the
real cell: there the function is one branch, and on the ellipse it is the continuation of that
branch, so that an ellipse may reach across a kink on the side of the cell. Where a choice is
undecided on the cell and depends on the complex variable, the function is not analytic; where it
does not depend on it the hull of both branches serves.
"""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from cordes.formulas.intervals.arithmetic import Interval
from cordes.formulas.intervals.program import Program
from cordes.formulas.intervals.rules import fixed
from cordes.formulas.intervals.switches import IntervalPass, IntervalSwitch
from cordes.formulas.movement import contraction
from cordes.formulas.rectangles.arithmetic import Array, Rectangle, as_rectangle
from cordes.formulas.rectangles.functions import FUNCTIONS
from cordes.formulas.steps import Step

WHOLE = ("floor", "ceil", "round", "convert_element_type", "is_finite", "rem", "clamp")


class Neighbourhoods(NamedTuple):
    """Cells (C, d) and the parameters ρ (R,) of the ellipses around their sides. Values on
    neighbourhoods have d·R·C rows, in this order."""

    lower: Array
    upper: Array
    rho: Array

    @property
    def count(self) -> int:
        """Neighbourhoods of one cell."""
        return self.lower.shape[1] * len(self.rho)

    def rectangles(self) -> Rectangle:
        """Semi-axes (ρ ± 1/ρ)/2 of half a side, rounded up."""
        cells, d = self.lower.shape
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2 * (1 + 1e-14)
        shape = (d, len(self.rho), cells, d)
        lower, upper = (np.array(np.broadcast_to(x, shape)) for x in (self.lower, self.upper))
        height = np.zeros(shape)
        rho = self.rho[:, None]
        for axis in range(d):
            reach = (rho + 1 / rho) / 2 * half[:, axis]
            lower[axis, ..., axis] = middle[:, axis] - reach
            upper[axis, ..., axis] = middle[:, axis] + reach
            height[axis, ..., axis] = (rho - 1 / rho) / 2 * half[:, axis]
        rows = [part.reshape(-1, d) for part in (lower, upper, -height, height)]
        return Rectangle(*rows)

    def repeated(self, values: Array) -> Array:
        """Something about the cells for all their neighbourhoods."""
        return np.concatenate([values] * self.count)

    def by_cell(self, values: Array) -> Array:
        """Values (d·R·C, …) on the neighbourhoods as (C, d·R, …)."""
        shape = (self.count, len(self.lower), *values.shape[1:])
        return (
            np.broadcast_to(values, (shape[0] * shape[1], *shape[2:])).reshape(shape).swapaxes(0, 1)
        )

    def sorted(self, values: Array) -> Array:
        """Numbers on the neighbourhoods by cell, axis and ρ: (C, d, R)."""
        return self.by_cell(values).reshape(*self.lower.shape, len(self.rho))


class Enclosed(NamedTuple):
    """The outputs over the cells and on their neighbourhoods, in the structure of the function's
    result flattened, and which switches were undecided in which cells; of those that were decided
    the outcomes."""

    real: list[Interval]
    complex: list[Rectangle]
    undecided: Array
    outcomes: Array


class RectangleProgram:
    """One function of one point, over cells and their complex neighbourhoods at once."""

    def __init__(self, function: Callable, dimension: int):
        self.intervals = Program(function, dimension)
        self.trace = self.intervals.trace
        self.rules = [_rule(step) for step in self.trace.steps]
        self.switches = [self._switch(step) for step in self.trace.steps]

    def _switch(self, step: Step) -> IntervalSwitch | None:
        """|a|, max and min choose between two formulas, as comparisons do."""
        if step.kind != "elementwise" or step.name not in ("abs", "max", "min"):
            return None
        zero = np.full(step.numbers.shape, self.trace.numbering.constant(0.0))
        first, *second = [value.numbers for value in step.inputs]
        other = second[0] if second else zero
        return self.intervals.switchboard.comparison("ge", *np.broadcast_arrays(first, other))

    def run(
        self,
        around: Neighbourhoods,
        forced: Array | None = None,
        placed: tuple[Interval, Rectangle] | None = None,
    ) -> Enclosed:
        """`forced` (C, switches) holds outcomes of switches, NaN where the cell decides. `placed`
        are the images of cells and neighbourhoods where these are boxes of other coordinates."""
        cells = len(around.lower)
        switches = len(self.intervals.switchboard.outcomes)
        state = IntervalPass(
            np.zeros((cells, switches), dtype=bool), forced, [], np.zeros((cells, switches))
        )
        real: list[Any] = [None] * self.trace.slots
        turned: list[Any] = [None] * self.trace.slots
        gaps: list[Any] = [None] * (self.trace.slots + 1)
        real[0], turned[0] = placed or (Interval(around.lower, around.upper), around.rectangles())
        with np.errstate(all="ignore"):
            for instruction, rule, switch, step in zip(
                self.intervals.instructions,
                self.rules,
                self.switches,
                self.trace.steps,
                strict=True,
            ):
                operands = [
                    fixed(value.constant[None]) if value.constant is not None else real[value.slot]
                    for value in step.inputs
                ]
                results, gap = self.intervals.step(instruction, state, gaps, operands)
                rectangles = [
                    as_rectangle(np.asarray(value.constant, float)[None])
                    if value.constant is not None
                    else turned[value.slot]
                    for value in step.inputs
                ]
                choice = Choice(operands, results, around.count, state, switch)
                images = rule(choice, *rectangles)
                for slot, result, image in zip(step.outputs, results, images, strict=True):
                    if slot >= 0:
                        real[slot], turned[slot], gaps[slot] = result, image, gap
        outputs = [
            (_repeated(value.constant, cells), _repeated(value.constant, cells * around.count))
            if value.constant is not None
            else (real[value.slot], turned[value.slot])
            for value in self.trace.outputs
        ]
        return Enclosed(
            [_interval(a) for a, _ in outputs],
            [as_rectangle(b) for _, b in outputs],
            state.undecided,
            np.zeros(0) if state.outcomes is None else state.outcomes,
        )


def _repeated(constant: Array, rows: int) -> Array:
    return np.broadcast_to(np.asarray(constant, float), (rows, *np.shape(constant)))


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else fixed(value)


class Choice(NamedTuple):
    """What is known on the real cells about a step: its operands and results. `count` is the
    number of neighbourhoods of each cell."""

    operands: list[Interval]
    results: list[Interval]
    count: int
    state: IntervalPass
    switch: IntervalSwitch | None

    def above(self, a: Interval, b: Interval) -> tuple[Array, Array]:
        """Where a ≥ b and where a ≤ b on the cell, or by force."""
        assert self.switch is not None
        outcome = Interval(a.lower >= b.upper, ~(a.upper <= b.lower))
        shape = (len(self.state.undecided), *self.switch.columns.shape)
        natural = outcome.map(lambda part: np.broadcast_to(part, shape))
        settled = self.switch.settle(self.state, natural)
        return settled.lower == 1, settled.upper == 0

    def spread(self, mask: Array) -> Array:
        """Something about the cells for all their neighbourhoods."""
        return np.concatenate([mask] * self.count) if len(mask) > 1 or self.count == 1 else mask

    def branch(
        self, first: Array, second: Array, a: Rectangle, b: Rectangle, moves: Array
    ) -> Rectangle:
        """a where `first` holds on the cell, b where `second` does, else both: their hull where
        the choice does not move with the complex variable."""
        first, second = self.spread(first), self.spread(second)
        chosen = b.where(first, a)
        open_ = ~(first | second)
        if not np.any(open_):
            return chosen
        return chosen.where(open_, a.hull(b)).nowhere_analytic(open_ & moves)

    def constant(self, moves: Array) -> Rectangle:
        """The result on the cell, where it is one number or does not move."""
        result = self.results[0]
        lower, upper = self.spread(result.lower), self.spread(result.upper)
        return Rectangle(lower, upper).nowhere_analytic((lower != upper) & moves)


Rule = Callable[..., list[Rectangle]]


def _moves(*rectangles: Rectangle) -> Array:
    """Where an operand depends on the complex variable."""
    moves = [~each.still for each in rectangles]
    return np.logical_or.reduce(np.broadcast_arrays(*moves)) if len(moves) > 1 else moves[0]


def _rule(step: Step) -> Rule:
    """How the rectangles of a step are computed."""
    rank, name = step.numbers.ndim, step.name
    if step.dtype.kind != "f" and step.kind in ("elementwise", "contraction", "reduction"):
        # Integers and truth values do not move but by steps; integers wrap around as on the cell.
        return lambda choice, *z: [choice.constant(_somewhere(rank, z))]
    match step.kind:
        case "move":
            return lambda choice, *z: _moved(step, choice, z)
        case "comparison" | "sign":
            return lambda choice, *z: [choice.constant(_moves(*_aligned(rank, z)))]
        case "argmax" | "argmin" | "lookup" | "search":
            # One entry where the index is decided, or where the entries that are possible are one
            # number; elsewhere the table has no continuation.
            return lambda choice, *z: [choice.constant(_somewhere(rank, z))]
        case "smooth":
            return lambda choice, value, *_: [value]
        case "choice":
            return lambda choice, *z: [_selected(choice, rank, z)]
        case "contraction":
            return _contraction(step)
        case "reduction":
            axes = tuple(axis + 1 for axis in step.equation.params["axes"])
            return lambda choice, z: [_reduced(name, z, axes, choice)]
        case "elementwise":
            return lambda choice, *z: [_elementwise(step, choice, rank, z)]
    return lambda choice, *z: [_unknown(choice, z)]


def _aligned(rank: int, rectangles: Any) -> list[Rectangle]:
    """Numbers (rank 0) beside arrays get axes of length one."""
    return [
        z
        if len(z.shape) == rank + 1
        else z.map(lambda part: part.reshape((len(part),) + (1,) * rank))
        for z in rectangles
    ]


def _somewhere(rank: int, rectangles: Any) -> Array:
    """Where one of the elements moves."""
    moving = [np.any(_moves(z).reshape(len(z.lower), -1), axis=1) for z in rectangles]
    return np.logical_or.reduce(np.broadcast_arrays(*moving)).reshape((-1,) + (1,) * rank)


def _moved(step: Step, choice: Choice, rectangles: tuple[Rectangle, ...]) -> list[Rectangle]:
    assert step.move is not None
    rows = max(len(z.lower) for z in rectangles)

    def spread(part: Array) -> Array:
        return np.broadcast_to(part, (rows, *part.shape[1:]))

    names = ("lower", "upper", "below", "above")
    parts = [step.move(*(spread(getattr(z, name)) for z in rectangles)) for name in names]
    return [Rectangle(*each) for each in zip(*parts, strict=True)]


def _selected(choice: Choice, rank: int, rectangles: Any) -> Rectangle:
    """One of several cases, by an index that is known on the cell."""
    index, *cases = _aligned(rank, rectangles)
    real = choice.operands[0]
    lower, upper = (
        part.reshape(part.shape + (1,) * (rank + 1 - part.ndim))
        for part in (real.lower, real.upper)
    )
    result = cases[0]
    for number, case in enumerate(cases[1:], 1):
        result = choice.branch(upper < number, lower >= number, result, case, _moves(index))
    return result


def _contraction(step: Step) -> Rule:
    dimension_numbers = step.equation.params["dimension_numbers"]
    left, right = contraction(dimension_numbers, *(value.numbers.ndim for value in step.inputs))
    axes = tuple(range(-len(dimension_numbers[0][0]), 0))
    first, second = left(step.inputs[0].numbers[None]), right(step.inputs[1].numbers[None])
    same = np.equal(*np.broadcast_arrays(first, second))

    def rule(choice: Choice, a: Rectangle, b: Rectangle) -> list[Rectangle]:
        a, b = a.map(left), b.map(right)
        product = a * b
        if np.any(same):
            product = product.where(same, a.square())
        return [product.sum(axes) if axes else product]

    return rule


def _reduced(name: str, z: Rectangle, axes: tuple[int, ...], choice: Choice) -> Rectangle:
    if name == "reduce_sum":
        return z.sum(axes)
    if name != "reduce_prod":
        sign = {"reduce_max": 1.0, "reduce_min": -1.0}.get(name)
        return _extreme(choice, z, axes, sign) if sign else _unknown(choice, [z])
    for axis in sorted(axes, reverse=True):
        z = reduce(operator.mul, (z[(slice(None),) * axis + (i,)] for i in range(z.shape[axis])))
    return z


def _extreme(choice: Choice, z: Rectangle, axes: tuple[int, ...], sign: float) -> Rectangle:
    """The largest entry, or the smallest (sign -1): the one that is known to be it on the cell."""
    real = choice.operands[0] if sign > 0 else -choice.operands[0]
    for axis in sorted(axes, reverse=True):
        entries = [(slice(None),) * axis + (i,) for i in range(z.shape[axis])]
        most, found = real.map(lambda part, at=entries[0]: part[at]), z[entries[0]]
        for entry in entries[1:]:
            other = real.map(lambda part, at=entry: part[at])
            known = most.lower >= other.upper, most.upper <= other.lower
            found = choice.branch(*known, found, z[entry], _moves(found, z[entry]))
            most = Interval(*map(np.maximum, (most.lower, most.upper), (other.lower, other.upper)))
        real, z = most, found
    return z


def _elementwise(step: Step, choice: Choice, rank: int, rectangles: Any) -> Rectangle:
    name, z = step.name, _aligned(rank, rectangles)
    real = [_rank(each, rank) for each in choice.operands]
    if name == "mul":
        same = np.equal(*np.broadcast_arrays(*(value.numbers for value in step.inputs)))
        product = z[0] * z[1]
        return product.where(same, z[0].square()) if np.any(same) else product
    if name == "integer_pow":
        return z[0].power(int(step.equation.params["y"]))
    if name == "pow":
        known = np.all(np.isfinite(z[1].lower) & np.isfinite(z[1].upper))
        return _power(z, real) if known else _unknown(choice, rectangles)
    if name == "abs":
        moves = _moves(z[0])
        turned = choice.branch(*choice.above(real[0], fixed(np.zeros(1))), z[0], -z[0], moves)
        # |x| of a real number that changes its sign starts at zero.
        smallest = np.where(~moves & (z[0].lower < 0) & (z[0].upper > 0), 0.0, turned.lower)
        return Rectangle(smallest, turned.upper, *turned.imaginary)
    if name == "cbrt":
        right, left = z[0].power(1 / 3), -((-z[0]).power(1 / 3))
        return choice.branch(real[0].lower >= 0, real[0].upper <= 0, right, left, _moves(z[0]))
    if name in ("max", "min"):
        first, second = choice.above(*real)
        first, second = (first, second) if name == "max" else (second, first)
        return choice.branch(first, second, z[0], z[1], _moves(*z))
    if name == "select_n":
        return _selected(choice, rank, rectangles)
    if name in WHOLE and not _passes(step):
        return choice.constant(_moves(*z))
    if name == "convert_element_type":
        return z[0]
    return FUNCTIONS[name](*z) if name in FUNCTIONS else _unknown(choice, rectangles)


def _rank(interval: Interval, rank: int) -> Interval:
    return (
        interval
        if interval.lower.ndim == rank + 1
        else interval.map(lambda part: part.reshape((len(part),) + (1,) * rank))
    )


def _passes(step: Step) -> bool:
    """A conversion that does not round."""
    rounds = step.inputs[0].dtype.kind == "f" and step.dtype.kind in "iu"
    return step.name == "convert_element_type" and not rounds


def _power(z: list[Rectangle], real: list[Interval]) -> Rectangle:
    """x^p: p constant, else exp(p log x)."""
    base, exponent = z
    powers = np.unique(exponent.lower)
    if (
        len(powers) == 1
        and np.all(exponent.still)
        and np.array_equal(exponent.lower, exponent.upper)
    ):
        return base.power(float(powers[0]))
    return FUNCTIONS["exp"](exponent * FUNCTIONS["log"](base))


def _unknown(choice: Choice, rectangles: Any) -> Rectangle:
    """An operation without a rule: known on the cell, and nowhere else, unless nothing moves."""
    rows = len(choice.results[0].lower) * choice.count
    somewhere = np.broadcast_to(_somewhere(0, rectangles), rows)
    result = choice.results[0]
    spread = Rectangle(choice.spread(result.lower), choice.spread(result.upper))
    return spread.nowhere_analytic(somewhere.reshape((-1,) + (1,) * (result.lower.ndim - 1)))
