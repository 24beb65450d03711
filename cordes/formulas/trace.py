"""One reading of a formula: a function of one point, traced by JAX, as a graph of operations on
numbers and a list of steps on arrays. Calls are inlined, loops of fixed length unrolled, constants
evaluated as JAX does, equal expressions joined and what nobody needs left out.

Intervals, orders of vanishing, formulas of pages and the text of problem files are all made of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from cordes.formulas.elementary import COMPARISONS, ELEMENTARY, evaluate_constants
from cordes.formulas.lookups.calls import replacement
from cordes.formulas.lookups.numbers import NUMBERED, lookup_kind
from cordes.formulas.movement import (
    MOVES,
    Array,
    Move,
    UnsupportedOperation,
    contraction,
    scattered,
)
from cordes.formulas.numbering import Numbering
from cordes.formulas.steps import Step, Value

CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}
    | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
)
LOGICAL = frozenset({"and", "or", "xor", "not"})
ELEMENTWISE = (
    LOGICAL
    | set(ELEMENTARY)
    | {
        *("add", "add_any", "sub", "mul", "div", "rem", "neg", "max", "min", "clamp", "square"),
        *("pow", "integer_pow", "atan2", "round", "is_finite", "select_n", "convert_element_type"),
    }
)
REDUCTIONS = frozenset(f"reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or"))
CUMULATIVE = {f"cum{name}": f"reduce_{name}" for name in ("sum", "prod", "max", "min")}
LONGEST_LOOP = 4096
# Constants with more elements than this are numbered when somebody asks.
TABLE = 1024


class Trace:
    """The steps of one function of one point x of shape (dimension,); `outputs` are the arrays of
    its result, which has the given tree `structure`."""

    def __init__(self, function: Callable, dimension: int):
        self.numbering = Numbering()
        self.steps: list[Step] = []
        self.slots = 1
        self._known: dict[Any, Value] = {}
        numbers = [self.numbering.number("x", i, (), True) for i in range(dimension)]
        x = self._remember(Value(np.array(numbers, dtype=np.int64), np.dtype(np.float64), None, 0))
        jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(
            jax.ShapeDtypeStruct((dimension,), np.float64)
        )
        if jaxpr.in_avals[0].dtype != np.float64:
            raise UnsupportedOperation("functions in float32: set jax_enable_x64")
        self.structure = jax.tree.structure(shapes)
        self.outputs = self._inline(jaxpr, [x])
        self._leave_out_unused()

    def _leave_out_unused(self) -> None:
        needed = {value.slot for value in self.outputs}
        kept = []
        for step in reversed(self.steps):
            if needed.intersection(step.outputs) - {-1}:
                needed.update(value.slot for value in step.inputs)
                kept.append(step)
        self.steps = kept[::-1]

    # Values and steps.

    def _constant(self, array: Any) -> Value:
        array = np.asarray(array)
        if array.dtype.kind not in "fiub":
            raise UnsupportedOperation(f"constants of type {array.dtype}")

        def numbers() -> Array:
            values = array.astype(np.float64).ravel().tolist()
            found = [self.numbering.constant(value) for value in values]
            return np.array(found, dtype=np.int64).reshape(array.shape)

        return Value(numbers if array.size > TABLE else numbers(), array.dtype, array, -1)

    def _remember(self, value: Value) -> Value:
        return self._known.setdefault((value.dtype, value.shape, value.numbers.tobytes()), value)

    def _emit(
        self,
        kind: str,
        equation: Any,
        inputs: Sequence[Value],
        numbers: Sequence[Array],
        dtypes: Sequence[Any] | None = None,
        move: Move | None = None,
        name: str | None = None,
        table: Array | None = None,
    ) -> list[Value]:
        """The values of a step: constants and earlier values where all elements are known, else new
        slots."""
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
            numbers_and_type = results[0].numbers, results[0].dtype
            made = (name or equation.primitive.name, equation, tuple(inputs), tuple(slots))
            self.steps.append(Step(kind, *made, *numbers_and_type, move, table))
        return results

    def _move(
        self,
        equation: Any,
        move: Move,
        inputs: Sequence[Value],
        dtypes: Sequence[Any] | None = None,
    ) -> list[Value]:
        if all(value.constant is not None for value in inputs):
            moved = move(*(np.asarray(value.constant)[None] for value in inputs))
            return [self._constant(array[0]) for array in moved]
        numbers = [array[0] for array in move(*(value.numbers[None] for value in inputs))]
        if dtypes is None and all(value.dtype == np.float64 for value in inputs):
            dtypes = [np.float64] * len(numbers)  # Moved numbers of a table in single precision.
        return self._emit("move", equation, inputs, numbers, dtypes, move)

    # Equations.

    def _inline(self, jaxpr: Any, inputs: Sequence[Value]) -> list[Value]:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        values: dict[Any, Value] = dict(zip(inner.invars, inputs, strict=True))
        for variable, constant in zip(inner.constvars, getattr(jaxpr, "consts", ()), strict=True):
            values[variable] = self._constant(constant)

        def read(atom: Any) -> Value:
            if hasattr(atom, "val"):
                return self._constant(np.asarray(atom.val, dtype=atom.aval.dtype))
            return values[atom]

        for equation in inner.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in inner.outvars]

    def _equation(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name, parameters = equation.primitive.name, equation.params
        constants = [value.constant for value in inputs]
        if name in CALLS:
            known = replacement(equation, constants)
            if known is not None:
                return self._inline(known, inputs)
            bodies = (parameters.get(key) for key in ("call_jaxpr", "fun_jaxpr", "jaxpr"))
            return self._inline(next(body for body in bodies if body is not None), inputs)
        if name == "cond":
            return self._condition(equation, inputs)
        if name == "scan":
            return self._loop(equation, inputs)
        if name == "platform_index":
            # The first branch that is meant for a processor, or for any machine.
            places = enumerate(parameters["platforms"])
            fitting = (i for i, names in places if names is None or "cpu" in names)
            return [self._constant(np.int32(next(fitting)))]
        if all(constant is not None for constant in constants) and name not in MOVES:
            return [self._constant(array) for array in evaluate_constants(equation, constants)]
        kind = lookup_kind(equation, constants)
        if kind is not None:
            numbers, table = [NUMBERED[name](self.numbering, equation, inputs)], inputs[0].constant
            if kind in ("smooth", "pick"):
                return self._emit(kind, equation, inputs, numbers)
            # Numbers in single precision are numbers; only arithmetic with them is another.
            dtypes = [np.float64] if table is not None and table.dtype.kind == "f" else None
            dtypes = None if kind == "search" else dtypes
            return self._emit(kind, equation, inputs[1:], numbers, dtypes, table=table)
        move = MOVES[name](equation, constants) if name in MOVES else None
        if move is not None:
            return self._move(equation, move, inputs)
        if name == "scatter-add" and constants[1] is not None:
            return self._scattered(equation, inputs, constants[1])
        if name.removesuffix("_to") in COMPARISONS:
            # In the total order of all floats, which differs where something is not a number.
            return self._comparison(name.removesuffix("_to"), equation, inputs)
        if name == "convert_element_type" and parameters["new_dtype"] == np.dtype(bool):
            # A conversion to truth values asks whether a number differs from zero.
            zero = self._constant(np.zeros((), inputs[0].dtype))
            return self._comparison("ne", equation, [inputs[0], zero])
        if name == "dot_general":
            return self._contraction(equation, inputs)
        if name in REDUCTIONS or name in CUMULATIVE:
            return self._reduction(equation, inputs)
        if name in ("argmax", "argmin") or (name == "sort" and len(inputs) == 1):
            parameter = parameters["axes"][0] if name != "sort" else parameters["dimension"]
            numbers = self.numbering.opaque(
                name, parameter, inputs[0].numbers, equation.outvars[0].aval.shape
            )
            return self._emit(name, equation, inputs, [numbers])
        return self._elementwise(equation, inputs)

    def _comparison(self, name: str, equation: Any, inputs: list[Value]) -> list[Value]:
        if name == "eq":
            for a, b in (inputs, inputs[::-1]):
                other = self._beaten(a, b)
                if other is not None:
                    name, value = other
                    return self._comparison(name, equation, [a, value])
        first, second = np.broadcast_arrays(inputs[0].numbers, inputs[1].numbers)
        numbers = self.numbering.comparison(name, first, second)
        return self._emit("comparison", equation, inputs, [numbers], name=name)

    def _beaten(self, a: Value, extreme: Value) -> tuple[str, Value] | None:
        """a = max(a, b) is a ≥ b, which intervals can decide; derivatives of max and min ask for
        the former."""
        operations = [self.numbering.operations[n] for n in extreme.numbers.ravel().tolist()]
        names = {operation.name for operation in operations}
        if a.shape not in ((), extreme.shape):
            return None
        mine = np.broadcast_to(a.numbers, extreme.shape).ravel().tolist()
        if names not in ({"max"}, {"min"}) or any(
            number not in operation.operands
            for number, operation in zip(mine, operations, strict=True)
        ):
            return None
        others = [
            operation.operands[1 - operation.operands.index(number)]
            for number, operation in zip(mine, operations, strict=True)
        ]
        numbers = np.array(others, dtype=np.int64).reshape(extreme.shape)
        constants = [self.numbering.constants.get(number) for number in others]
        if all(constant is not None for constant in constants):
            other = self._constant(np.array(constants, dtype=np.float64).reshape(extreme.shape))
        else:
            other = self._known.get((extreme.dtype, extreme.shape, numbers.tobytes()))
        return None if other is None else ("ge" if names == {"max"} else "le", other)

    def _elementwise(self, equation: Any, inputs: list[Value]) -> list[Value]:
        name, operands = equation.primitive.name, [value.numbers for value in inputs]
        target = equation.params.get("new_dtype")
        if name == "convert_element_type" and (
            np.dtype(target).kind == "f" or np.can_cast(inputs[0].dtype, target)
        ):
            return self._emit("elementwise", equation, inputs, [operands[0]])
        if name not in ELEMENTWISE:
            raise UnsupportedOperation(name)
        if name in LOGICAL and equation.outvars[0].aval.dtype.kind != "b":
            raise UnsupportedOperation(f"{name} of bits")
        parameter = equation.params.get("y", equation.params.get("rounding_method"))
        integers, label = _integers(equation), name
        if integers and (name == "div" or (name == "integer_pow" and parameter != 2)):
            label = f"whole_{name}"  # The integer quotient is not the quotient.
        numbers = self.numbering.elementwise(label, parameter, operands, integers)
        kind = "sign" if name == "sign" else "elementwise"
        return self._emit(kind, equation, inputs, [numbers])

    def _scattered(self, equation: Any, inputs: list[Value], index: Array) -> list[Value]:
        """What is added to some elements, one layer after another."""
        total, result = inputs[0], equation.outvars[0].aval
        (add,) = jax.make_jaxpr(lambda a, b: a + b)(result, result).eqns
        for move in scattered(equation, index):
            layer = self._move(equation, move, [self._constant(np.zeros(())), inputs[2]])
            (total,) = self._elementwise(add, [total, *layer])
        return [total]

    def _reduction(self, equation: Any, inputs: list[Value]) -> list[Value]:
        """Sums, products and extremes over axes, at the end or at every place of an axis."""
        name, parameters, numbers = equation.primitive.name, equation.params, inputs[0].numbers
        if name in REDUCTIONS:
            reduced = self._along(numbers, tuple(parameters["axes"]), name, _integers(equation))
            return self._emit("reduction", equation, inputs, [reduced])
        axis, reverse = parameters["axis"], parameters["reverse"]
        rows = np.moveaxis(numbers[..., None], axis, 0)
        rows = rows[::-1] if reverse else rows
        running = [
            self._along(
                np.moveaxis(rows[: i + 1], 0, -1), (-1,), CUMULATIVE[name], _integers(equation)
            )[..., 0]
            for i in range(len(rows))
        ]
        stacked = np.stack(running[::-1] if reverse else running, axis)
        return self._emit("cumulative", equation, inputs, [stacked])

    def _along(
        self, numbers: Array, axes: tuple[int, ...], name: str, integers: str | None
    ) -> Array:
        """The numbers of a reduction over axes."""
        axes = tuple(axis % numbers.ndim for axis in axes)
        kept = tuple(axis for axis in range(numbers.ndim) if axis not in axes)
        shape = tuple(numbers.shape[axis] for axis in kept)
        rows = numbers.transpose(kept + axes).reshape(int(np.prod(shape)), -1).tolist()
        reduced = [self.numbering.reduced(name, row, integers) for row in rows]
        return np.array(reduced, dtype=np.int64).reshape(shape)

    def _contraction(self, equation: Any, inputs: list[Value]) -> list[Value]:
        dimension_numbers = equation.params["dimension_numbers"]
        layouts = contraction(dimension_numbers, *(value.numbers.ndim for value in inputs))
        first, second = (
            layout(value.numbers[None])[0] for layout, value in zip(layouts, inputs, strict=True)
        )
        axes = tuple(range(-len(dimension_numbers[0][0]), 0))
        integers = _integers(equation)
        products = self.numbering.elementwise("mul", None, [first, second], integers)
        sums = self._along(products, axes, "reduce_sum", integers)
        return self._emit("contraction", equation, inputs, [sums])

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
            results += self._emit(
                "choice", equation, [index, *case], [numbers], [variable.aval.dtype]
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
        fixed, state = inputs[:constants], inputs[constants : constants + carried]
        rows = inputs[constants + carried :]
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


def _integers(equation: Any) -> str | None:
    """The name of the type of the result if it is one of integers."""
    dtype = np.dtype(equation.outvars[0].aval.dtype)
    return dtype.name if dtype.kind in "iu" else None


def asks_for_equality(function: Callable, dimension: int, first: int) -> bool:
    """Whether something that depends on the coordinates from number `first` on is compared by ==
    or !=."""
    numbering = Trace(function, dimension).numbering
    operations = numbering.operations
    starts = [k for k, (name, at, _) in enumerate(operations) if name == "x" and at >= first]
    return any(operations[number].name == "eq" for number in numbering.dependent(starts))
