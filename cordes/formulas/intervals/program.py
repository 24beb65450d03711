"""Enclosures of functions written with jax.numpy over boxes: rigorous bounds of their values at all
points of a box at once.

The function is traced once for one point; each step of the trace becomes an instruction, which is
run with interval arithmetic for many boxes ("cells") at a time.

What is assumed: the function is the mathematical function that its jaxpr describes, with constants
as float64 numbers; the rounding errors that JAX makes are not part of it. Bounds hold almost
everywhere: on sets of measure zero (where x₀, and therefore sign(x₀), is zero) they may fail. At
points where the function is not a number nothing is claimed; where only an intermediate result is
not a number, comparisons with it count as undecided.
"""

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import Any, final

import jax
import numpy as np

from cordes.formulas.intervals import functions, rules, tables
from cordes.formulas.intervals.arithmetic import ANYTHING, Array, Interval
from cordes.formulas.intervals.rules import Evaluate, combined, product
from cordes.formulas.intervals.switches import (
    NARROWED,
    IntervalPass,
    Switchboard,
    compare,
    narrow,
    sign_of,
)
from cordes.formulas.lookups import Lookup
from cordes.formulas.movement import contraction
from cordes.formulas.steps import Step
from cordes.formulas.trace import Trace

UNDECIDED = Interval(0.0, 1.0)
# More combinations of undecided switches than this in one cell are not taken one by one.
COMBINATIONS = 64
# What gives the intervals of a step's outputs.
Instruction = tuple[Step, Evaluate]
Observer = Callable[[Step, list[Interval], list[Interval]], None]


class Program:
    """The instructions of one function of one point x of shape (dimension,): steps of its trace,
    each with what gives the intervals of its outputs."""

    def __init__(self, function: Callable, dimension: int):
        self.trace = Trace(function, dimension)
        self.switchboard = Switchboard(self.trace.numbering)
        self.instructions = [(step, self._evaluation(step)) for step in self.trace.steps]

    def run(
        self,
        lower: Array,
        upper: Array,
        forced: Array | None = None,
        observer: Observer | None = None,
    ) -> tuple[list[Interval], Array]:
        """The enclosures of all outputs over the cells, and which switches were undecided where.

        `observer(step, operands, results)` is called for each step, also those of nested functions.
        Equal equations are computed once and seen once.
        """
        cells = len(lower)
        state = IntervalPass(
            np.zeros((cells, len(self.switchboard.outcomes)), dtype=bool), forced, []
        )
        slots: list[Any] = [None] * self.trace.slots
        gaps: list[Any] = [None] * (self.trace.slots + 1)  # The last for constants.
        slots[0] = Interval(lower, upper)
        with np.errstate(all="ignore"):
            for instruction in self.instructions:
                step, _ = instruction
                operands = [
                    slots[value.slot]
                    if value.constant is None
                    else rules.fixed(value.constant[None])
                    for value in step.inputs
                ]
                results, gap = self.step(instruction, state, gaps, operands)
                if forced is not None and step.name in NARROWED:
                    narrowed = narrow(step.name, operands[0], operands[1], results[0])
                    for value, operand in zip(step.inputs, narrowed, strict=True):
                        if value.constant is None:
                            slots[value.slot] = operand
                for slot, result in zip(step.outputs, results, strict=True):
                    if slot >= 0:
                        slots[slot], gaps[slot] = result, gap
                if observer is not None:
                    observer(step, operands, results)
        return [
            slots[value.slot]
            if value.constant is None
            else rules.fixed(np.broadcast_to(value.constant, (cells, *value.shape)))
            for value in self.trace.outputs
        ], state.undecided

    @staticmethod
    def step(
        instruction: Instruction, state: IntervalPass, gaps: list, operands: list[Interval]
    ) -> tuple[list[Interval], Array | None]:
        """The results of one instruction, and in which cells they may not be numbers; integers and
        truth values always are. `gaps` are those of all slots, the last one for constants."""
        step, evaluate = instruction
        state.gaps = [gaps[value.slot] for value in step.inputs]
        results = evaluate(state, *operands)
        if step.dtype.kind != "f":
            return results, None
        name = step.equation.primitive.name
        return results, rules.gap_after(name, state.gaps, operands, results)

    def _evaluation(self, step: Step) -> Evaluate:
        kind, evaluate = step.dtype.kind, self._rule(step)
        return evaluate if kind == "f" else partial(rules.whole, evaluate, step.dtype)

    def _rule(self, step: Step) -> Evaluate:
        """How the intervals of a step are computed."""
        name, parameters = step.equation.primitive.name, step.equation.params
        match step.kind:
            case "move":
                assert step.move is not None
                return partial(rules.moved, step.move)
            case "lookup":
                assert step.table is not None
                return partial(tables.looked_up, Lookup(step.equation, step.table))
            case "pick":
                geometry = Lookup(step.equation, np.zeros(step.inputs[0].shape))
                return partial(tables.picked, geometry)
            case "search":
                assert step.table is not None
                rarely = self._analytic(step.inputs[0].numbers)
                return partial(tables.searched, step.table, parameters["side"], rarely)
            case "smooth":
                return partial(tables.smoothed, parameters["between"])
            case "choice":
                return partial(combined, functions.choose, step.numbers.ndim, {})
            case "comparison":
                return self._comparison(step)
            case "sign":
                return self._sign(step)
            case "elementwise":
                return self._elementwise(step)
            case "contraction":
                return _contraction(step)
            case "reduction":
                axes = tuple(axis + 1 for axis in parameters["axes"])
                return lambda state, x: [rules.REDUCTIONS[name](x, axes)]
            case "cumulative":
                axis, reverse = parameters["axis"] + 1, parameters["reverse"]
                return lambda state, x: [rules.cumulate(name, x, axis, reverse)]
            case "sort":
                axis = parameters["dimension"] + 1
                return lambda state, x: [
                    state.vague(x.map(lambda bound: np.sort(bound, axis=axis)), ANYTHING)
                ]
            case "argmax" | "argmin":
                axis = parameters["axes"][0]
                any_index = Interval(0.0, float(step.inputs[0].shape[axis] - 1))
                return lambda state, x: [
                    state.vague(rules.index_of_extreme(x, axis + 1, name == "argmax"), any_index)
                ]
        raise AssertionError(f"no rule for steps of the kind {step.kind}")

    def _analytic(self, numbers: Array) -> Array:
        analytic = self.trace.numbering.analytic
        return np.array([analytic(number) for number in numbers.ravel().tolist()], bool).reshape(
            numbers.shape
        )

    def _seldom_zero(self, numbers: Array) -> Array:
        """Analytic elements, and choices between such: where one of these is zero in a whole part
        of the domain, a quotient by it is no number."""
        numbering = self.trace.numbering

        def cases(number: int) -> tuple[int, ...]:
            operation = numbering.operations[number]
            return operation.operands[1:] if operation.name == "select_n" else (number,)

        found = [numbering.analytic(*cases(number)) for number in numbers.ravel().tolist()]
        return np.array(found, bool).reshape(numbers.shape)

    def _comparison(self, step: Step) -> Evaluate:
        name = step.name
        first, second = np.broadcast_arrays(*(value.numbers for value in step.inputs))
        switch = self.switchboard.comparison(name, first, second)
        analytic, same = self._analytic(first) & self._analytic(second), first == second

        def evaluate(state: IntervalPass, a: Interval, b: Interval) -> list[Interval]:
            a, b = rules.aligned(first.ndim, a, b)
            outcome = compare(name, a, b, analytic, same)
            return [switch.settle(state, state.vague(outcome, UNDECIDED))]

        return evaluate

    def _sign(self, step: Step) -> Evaluate:
        operand = step.inputs[0].numbers
        switch, analytic = self.switchboard.sign(operand, step.numbers), self._analytic(operand)
        return lambda state, x: [switch.settle(state, sign_of(x, analytic))]

    def _elementwise(self, step: Step) -> Evaluate:
        name, operands = step.equation.primitive.name, [value.numbers for value in step.inputs]
        rule, options = rules.elementwise(step.equation), {}
        if name == "mul" and np.any(same := np.equal(*np.broadcast_arrays(*operands))):
            rule, options = product, {"same": same}
        elif name == "div" and step.inputs[1].dtype.kind == "f":
            rule, options = Interval.divide, {"one_sided": self._seldom_zero(operands[1])}
        elif name == "sub" and np.any(part := self._fractional(*operands)):
            rule, options = tables.difference, {"fractional": part}
        elif name == "atan2":
            options = {"one_sided": self._analytic(operands[0])}
        return partial(combined, rule, step.numbers.ndim, options)

    def _fractional(self, first: Array, second: Array) -> Array:
        """Where a difference is x - floor(x)."""
        first, second = np.broadcast_arrays(first, second)
        made = self.trace.numbering.operations
        found = [
            made[other].name == "floor" and made[other].operands == (number,)
            for number, other in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
        ]
        return np.array(found, bool).reshape(first.shape)


def _contraction(step: Step) -> Evaluate:
    dimension_numbers = step.equation.params["dimension_numbers"]
    left, right = contraction(dimension_numbers, *(value.numbers.ndim for value in step.inputs))
    first, second = left(step.inputs[0].numbers[None]), right(step.inputs[1].numbers[None])
    axes = tuple(range(-len(dimension_numbers[0][0]), 0))
    same = np.equal(*np.broadcast_arrays(first, second))
    return lambda state, a, b: [product(a.map(left), b.map(right), same).sum(axes)]


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
        table = np.array([*zip_longest(*outcomes, fillvalue=np.nan)])
        pieces = []
        base = outputs
        for combination in range(int(np.max(counts))):
            rows = np.flatnonzero(counts > max(combination, 1))
            if len(rows) == 0:
                return [outputs]
            digits = combination // strides[rows] % choices[rows]
            forced = np.where(undecided[rows], table[digits, np.arange(len(outcomes))], np.nan)
            found, _ = program.run(lower[rows], upper[rows], forced)
            pieces.append([_replaced(old, rows, new) for old, new in zip(base, found, strict=True)])
            base = pieces[0]
        return pieces


def _replaced(old: Interval, rows: Array, new: Interval) -> Interval:
    lower, upper = np.array(old.lower), np.array(old.upper)
    lower[rows], upper[rows] = new.lower, new.upper
    return Interval(lower, upper)


enclose = Enclosure
