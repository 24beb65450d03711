"""A jaxpr turned into a list of instructions for intervals, once for each function: calls are
inlined, loops of fixed length unrolled, constants evaluated as JAX does, equal expressions joined
and what nobody needs left out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.formulas.intervals.arithmetic import Array, Interval
from cordes.formulas.intervals.constants import evaluate_constants
from cordes.formulas.intervals.evaluation import (
    ANYTHING,
    UNDECIDED,
    Evaluate,
    aligned,
    along,
    chosen,
    combined,
    fixed,
    moved,
    over_cells,
    whole,
)
from cordes.formulas.intervals.movement import MOVES, Move, UnsupportedOperation
from cordes.formulas.intervals.numbering import Numbering
from cordes.formulas.intervals.rules import (
    CUMULATIVE,
    REDUCTIONS,
    contraction,
    cumulate,
    elementwise,
    gap_after,
    index_of_extreme,
    product,
)
from cordes.formulas.intervals.switches import COMPARISONS, Pass, Switchboard, compare, sign_of

CALLS = frozenset(
    {
        "jit",
        "pjit",
        "closed_call",
        "core_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "remat",
        "remat2",
        "checkpoint",
    }
)
LONGEST_LOOP = 4096


class Value(NamedTuple):
    """An array of the program: the numbers of its elements, and its constant value or the slot that
    holds its interval."""

    numbers: Array
    dtype: np.dtype
    constant: Array | None
    slot: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape


class Instruction(NamedTuple):
    """`evaluate(state, *intervals)` gives the intervals of the slots in `outputs`; those in slot -1
    are known from earlier instructions. `real` tells floating-point results from integers and truth
    values, which are always numbers."""

    equation: Any
    evaluate: Evaluate
    inputs: tuple[Value, ...]
    outputs: tuple[int, ...]
    real: bool


class Program:
    """The instructions of one function of one point x of shape (dimension,)."""

    def __init__(self, function: Callable, dimension: int):
        self.numbering = Numbering()
        self.switchboard = Switchboard(self.numbering)
        self.instructions: list[Instruction] = []
        self.slots = 1
        self._known: dict[Any, Value] = {}
        numbers = np.array(
            [self.numbering.number(("x", i), True) for i in range(dimension)], dtype=np.int64
        )
        x = self._remember(Value(numbers, np.dtype(np.float64), None, 0))
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(
            jax.ShapeDtypeStruct((dimension,), np.float64)
        )
        if jaxpr.in_avals[0].dtype != np.float64:
            raise UnsupportedOperation("functions in float32: set jax_enable_x64")
        self.structure = jax.tree.structure(shapes)
        self.outputs = self._inline(jaxpr, [x])
        self._leave_out_unused()

    def run(
        self, lower: Array, upper: Array, forced: Array | None, observer: Callable | None
    ) -> tuple[list[Interval], Array]:
        """The enclosures of all outputs over the cells, and which switches were undecided where."""
        cells = len(lower)
        state = Pass(np.zeros((cells, len(self.switchboard.outcomes)), dtype=bool), forced, [])
        slots: list[Any] = [None] * self.slots
        gaps: list[Any] = [None] * (self.slots + 1)  # The last for constants.
        slots[0] = Interval(lower, upper)
        with np.errstate(all="ignore"):
            for equation, evaluate, inputs, outputs, real in self.instructions:
                operands = [
                    slots[value.slot] if value.constant is None else fixed(value.constant[None])
                    for value in inputs
                ]
                state.gaps = [gaps[value.slot] for value in inputs]
                results = evaluate(state, *operands)
                gap = (
                    gap_after(equation.primitive.name, state.gaps, operands, results)
                    if real
                    else None
                )
                for slot, result in zip(outputs, results, strict=True):
                    if slot >= 0:
                        slots[slot], gaps[slot] = result, gap
                if observer is not None:
                    seen = [
                        slots[value.slot] if value.constant is None else value.constant
                        for value in inputs
                    ]
                    observer(equation, seen, results)
        return [
            over_cells(value.constant, cells) if value.constant is not None else slots[value.slot]
            for value in self.outputs
        ], state.undecided

    def _leave_out_unused(self) -> None:
        needed = {value.slot for value in self.outputs}
        kept = []
        for instruction in reversed(self.instructions):
            if needed.intersection(instruction.outputs) - {-1}:
                needed.update(value.slot for value in instruction.inputs)
                kept.append(instruction)
        self.instructions = kept[::-1]

    # Values and instructions.

    def _constant(self, array: Any) -> Value:
        array = np.asarray(array)
        if array.dtype.kind not in "fiub":
            raise UnsupportedOperation(f"constants of type {array.dtype}")
        numbers = np.array(
            [self.numbering.constant(value) for value in array.astype(np.float64).ravel().tolist()],
            dtype=np.int64,
        )
        return Value(numbers.reshape(array.shape), array.dtype, array, -1)

    def _remember(self, value: Value) -> Value:
        return self._known.setdefault((value.dtype, value.shape, value.numbers.tobytes()), value)

    def _emit(
        self,
        equation: Any,
        evaluate: Evaluate,
        inputs: Sequence[Value],
        numbers: Sequence[Array],
        dtypes: Sequence[Any] | None = None,
    ) -> list[Value]:
        """The values of an instruction: constants and earlier values where all elements are known,
        else new slots."""
        results, slots = [], []
        dtypes = dtypes or [variable.aval.dtype for variable in equation.outvars]
        for array, dtype in zip(numbers, map(np.dtype, dtypes), strict=True):
            array = np.array(array, dtype=np.int64, order="C")
            known = self._known.get((dtype, array.shape, array.tobytes()))
            if known is None and all(
                number in self.numbering.constants for number in array.ravel().tolist()
            ):
                values = [self.numbering.constants[number] for number in array.ravel().tolist()]
                known = Value(array, dtype, np.array(values).astype(dtype).reshape(array.shape), -1)
            if known is None and dtype != np.float64 and dtype.kind not in "iub":
                raise UnsupportedOperation(f"{equation.primitive.name} in {dtype}")
            if known is None:
                results.append(self._remember(Value(array, dtype, None, self.slots)))
                slots.append(self.slots)
                self.slots += 1
            else:
                results.append(known)
                slots.append(-1)
        if any(slot >= 0 for slot in slots):
            kind = results[0].dtype.kind
            evaluate = evaluate if kind == "f" else partial(whole, evaluate, kind == "b")
            self.instructions.append(
                Instruction(equation, evaluate, tuple(inputs), tuple(slots), kind == "f")
            )
        return results

    def _move(
        self,
        equation: Any,
        move: Move,
        inputs: Sequence[Value],
        dtypes: Sequence[Any] | None = None,
    ) -> list[Value]:
        if all(value.constant is not None for value in inputs):
            return [
                self._constant(array[0])
                for array in move(
                    *(value.constant[None] for value in inputs if value.constant is not None)
                )
            ]
        numbers = [array[0] for array in move(*(value.numbers[None] for value in inputs))]
        return self._emit(equation, partial(moved, move), inputs, numbers, dtypes)

    # Equations.

    def _inline(self, jaxpr: Any, inputs: Sequence[Value]) -> list[Value]:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        values: dict[Any, Value] = dict(zip(inner.invars, inputs, strict=True))
        for variable, constant in zip(inner.constvars, getattr(jaxpr, "consts", ()), strict=True):
            values[variable] = self._constant(constant)

        def read(atom: Any) -> Value:
            return (
                self._constant(np.asarray(atom.val, dtype=atom.aval.dtype))
                if hasattr(atom, "val")
                else values[atom]
            )

        for equation in inner.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in inner.outvars]

    def _equation(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name, parameters = equation.primitive.name, equation.params
        if name in CALLS:
            return self._inline(
                next(
                    parameters[key]
                    for key in ("call_jaxpr", "fun_jaxpr", "jaxpr")
                    if key in parameters
                ),
                inputs,
            )
        if name == "cond":
            return self._condition(equation, inputs)
        if name == "scan":
            return self._loop(equation, inputs)
        if name == "platform_index":
            platforms = parameters["platforms"]
            return [
                self._constant(
                    np.int32(
                        next(
                            i
                            for i, names in enumerate(platforms)
                            if names is None or "cpu" in names
                        )
                    )
                )
            ]
        constants = [value.constant for value in inputs]
        if all(constant is not None for constant in constants) and name not in MOVES:
            return [self._constant(array) for array in evaluate_constants(equation, constants)]
        move = MOVES[name](equation, constants) if name in MOVES else None
        if move is not None:
            return self._move(equation, move, inputs)
        if name in COMPARISONS or (
            name == "convert_element_type" and parameters["new_dtype"] == np.dtype(bool)
        ):
            return self._comparison(equation, inputs)
        if name == "sign":
            return self._sign(equation, inputs)
        rule = elementwise(equation)
        return (
            self._elementwise(equation, rule, inputs)
            if rule is not None
            else self._array_operation(equation, inputs)
        )

    def _comparison(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name = equation.primitive.name
        if (
            name not in COMPARISONS
        ):  # A conversion to truth values asks whether a number differs from zero.
            name, inputs = "ne", [inputs[0], self._constant(np.zeros((), inputs[0].dtype))]
        first, second = np.broadcast_arrays(inputs[0].numbers, inputs[1].numbers)
        switch, numbers = self.switchboard.comparison(name, first, second)
        analytic, same = self._analytic(first) & self._analytic(second), first == second

        def evaluate(state: Pass, a: Interval, b: Interval) -> list[Interval]:
            a, b = aligned(first.ndim, a, b)
            return [
                switch.settle(state, state.vague(compare(name, a, b, analytic, same), UNDECIDED))
            ]

        return self._emit(equation, evaluate, inputs, [numbers])

    def _analytic(self, numbers: Array) -> Array:
        return np.array(
            [self.numbering.analytic(number) for number in numbers.ravel().tolist()], dtype=bool
        ).reshape(numbers.shape)

    def _sign(self, equation: Any, inputs: list[Value]) -> list[Value]:
        switch, numbers = self.switchboard.sign(inputs[0].numbers)
        analytic = self._analytic(inputs[0].numbers)
        return self._emit(
            equation,
            lambda state, x: [switch.settle(state, sign_of(x, analytic))],
            inputs,
            [numbers],
        )

    def _elementwise(
        self, equation: Any, rule: Callable[..., Interval], inputs: list[Value]
    ) -> list[Value]:
        name, operands = equation.primitive.name, [value.numbers for value in inputs]
        if name == "convert_element_type" and not (
            inputs[0].dtype.kind == "f" and np.dtype(equation.params["new_dtype"]).kind in "iu"
        ):
            numbers = operands[0]
        else:
            parameter = equation.params.get("y", equation.params.get("rounding_method"))
            # The integer quotient is not the quotient.
            label = "integer_div" if name == "div" and inputs[0].dtype.kind in "iu" else name
            numbers = self.numbering.elementwise(label, parameter, operands)
        options: dict[str, Any] = {}
        if name == "mul" and np.any(same := np.equal(*np.broadcast_arrays(*operands))):
            rule, options = product, {"same": same}
        elif name == "div" and inputs[1].dtype.kind == "f":
            rule, options = Interval.divide, {"one_sided": self._analytic(operands[1])}
        elif name == "atan2":
            options = {"one_sided": self._analytic(operands[0])}
        return self._emit(
            equation, partial(combined, rule, numbers.ndim, options), inputs, [numbers]
        )

    def _array_operation(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """Operations that combine the elements of an array."""
        name, parameters, numbers = (
            equation.primitive.name,
            equation.params,
            inputs[0].numbers if inputs else np.zeros(0),
        )
        if name == "dot_general":
            return self._contraction(equation, inputs)
        if name in REDUCTIONS:
            axes = tuple(parameters["axes"])
            reduced = along(numbers, axes, lambda row: self.numbering.reduced(name, row))
            shifted = tuple(axis + 1 for axis in axes)
            return self._emit(
                equation, lambda state, x: [REDUCTIONS[name](x, shifted)], inputs, [reduced]
            )
        if name in CUMULATIVE:
            axis, reverse = parameters["axis"], parameters["reverse"]
            rows = np.moveaxis(numbers[..., None], axis, 0)
            rows = rows[::-1] if reverse else rows
            running = [
                along(
                    np.moveaxis(rows[: i + 1], 0, -1),
                    (-1,),
                    lambda row: self.numbering.reduced(CUMULATIVE[name], row),
                )
                for i in range(len(rows))
            ]
            stacked = np.stack(
                [array[..., 0] for array in (running[::-1] if reverse else running)], axis
            )
            return self._emit(
                equation, lambda state, x: [cumulate(name, x, axis + 1, reverse)], inputs, [stacked]
            )
        if name in ("argmax", "argmin"):
            (axis,) = parameters["axes"]
            opaque = self.numbering.opaque(name, axis, [numbers], equation.outvars[0].aval.shape)
            any_index = Interval(0.0, float(numbers.shape[axis] - 1))
            return self._emit(
                equation,
                lambda state, x: [
                    state.vague(index_of_extreme(x, axis + 1, name == "argmax"), any_index)
                ],
                inputs,
                [opaque],
            )
        if name == "sort" and len(inputs) == 1:
            axis = parameters["dimension"]
            opaque = self.numbering.opaque(name, axis, [numbers], numbers.shape)
            return self._emit(
                equation,
                lambda state, x: [
                    state.vague(x.map(lambda bound: np.sort(bound, axis=axis + 1)), ANYTHING)
                ],
                inputs,
                [opaque],
            )
        raise UnsupportedOperation(name)

    def _contraction(self, equation: Any, inputs: list[Value]) -> list[Value]:
        left, right = contraction(
            equation.params["dimension_numbers"], *(value.numbers.ndim for value in inputs)
        )
        first, second = left(inputs[0].numbers[None]), right(inputs[1].numbers[None])
        count = len(equation.params["dimension_numbers"][0][0])
        axes = tuple(range(-count, 0))
        products = self.numbering.elementwise("mul", None, [first[0], second[0]])
        same = np.equal(*np.broadcast_arrays(first, second))

        def evaluate(state: Pass, a: Interval, b: Interval) -> list[Interval]:
            return [product(a.map(left), b.map(right), same).sum(axes)]

        return self._emit(
            equation,
            evaluate,
            inputs,
            [along(products, axes, lambda row: self.numbering.reduced("reduce_sum", row))],
        )

    def _condition(self, equation: Any, inputs: list[Value]) -> list[Value]:
        index, *operands = inputs
        branches = equation.params["branches"]
        if index.constant is not None:
            return self._inline(
                branches[int(np.clip(index.constant, 0, len(branches) - 1))], operands
            )
        cases = [self._inline(branch, operands) for branch in branches]
        results = []
        for variable, case in zip(equation.outvars, zip(*cases, strict=True), strict=True):
            numbers = self.numbering.elementwise(
                "select_n", None, [index.numbers, *(value.numbers for value in case)]
            )
            evaluate = partial(chosen, len(variable.aval.shape))
            results += self._emit(
                equation, evaluate, [index, *case], [numbers], [variable.aval.dtype]
            )
        return results

    def _loop(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """A loop of fixed length, unrolled."""
        parameters, length = equation.params, equation.params["length"]
        if length > LONGEST_LOOP:
            raise UnsupportedOperation(f"scan of length {length}")
        if "ft_in" in parameters:
            constants, carried = (len(group) for group in parameters["ft_in"].unpack()[:2])
        else:
            constants, carried = parameters["num_consts"], parameters["num_carry"]
        fixed, state, rows = (
            inputs[:constants],
            inputs[constants : constants + carried],
            inputs[constants + carried :],
        )
        order = range(length - 1, -1, -1) if parameters["reverse"] else range(length)
        collected: list[list[Value]] = [[] for _ in equation.outvars[carried:]]
        for step in order:
            row = [
                self._move(equation, lambda a, step=step: [a[:, step]], [value], [value.dtype])[0]
                for value in rows
            ]
            results = self._inline(parameters["jaxpr"], [*fixed, *state, *row])
            state = results[:carried]
            for column, value in zip(collected, results[carried:], strict=True):
                column.append(value)
        columns = [column[::-1] if parameters["reverse"] else column for column in collected]
        return state + [
            self._move(equation, lambda *a: [np.stack(a, 1)], column, [column[0].dtype])[0]
            for column in columns
        ]
