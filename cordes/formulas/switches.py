"""The functions at whose zeros a formula changes: the operands of comparisons, signs, sizes, maxima
and minima, read from its operations. A product is taken apart: sign(x y) changes where x does, and
where y does."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.formulas.trace import CALLS

COMPARED = frozenset({"lt", "le", "gt", "ge", "max", "min"})
SIGNED = frozenset({"sign", "abs"})
# More than a person writes; a table has as many.
MOST = 24


class Known(NamedTuple):
    """An operand that does not depend on the point."""

    value: Any


# An operand: the number of a result, or something known.
Operand = int | Known


class SwitchedOperation(NamedTuple):
    """One operation, with the numbers of its results."""

    primitive: Any
    params: dict[str, Any]
    inputs: list[Operand]
    outputs: list[int]


def switches(function: Callable, dimension: int) -> list[Callable]:
    """Functions of one point of shape (dimension,) with a number each. What happens in the bodies
    of loops is not looked at; none where there are too many."""
    closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((dimension,), np.float64))
    flat = _Flat(closed)
    found = [
        Switch(flat.needed(operands), operands, index)
        for operands, size in flat.switches
        for index in range(size)
    ]
    return list(found) if len(found) <= MOST else []


class Switch:
    """One operand, or the difference of two, as a function of a point: what it needs of the whole
    formula and no more."""

    def __init__(
        self, operations: list[SwitchedOperation], operands: tuple[Operand, ...], index: int
    ):
        self.operations, self.operands, self.index = operations, operands, index

    def __call__(self, x: Any) -> Any:
        # The formula was read in float64; training may ask in float32.
        given = jnp.asarray(x)
        values: dict[int, Any] = {0: given.astype(np.float64)}

        def read(operand: Operand) -> Any:
            return operand.value if isinstance(operand, Known) else values[operand]

        for primitive, params, inputs, outputs in self.operations:
            results = primitive.bind(*map(read, inputs), **params)
            results = results if primitive.multiple_results else [results]
            values.update(zip(outputs, results, strict=True))
        first, *others = map(read, self.operands)
        total = first - others[0] if others else first
        return jnp.ravel(total)[self.index].astype(given.dtype)


class _Flat:
    """The operations of a formula without calls, and its switches: operands with how many numbers
    they have."""

    def __init__(self, closed: Any):
        self.operations: list[SwitchedOperation] = []
        self.switches: list[tuple[tuple[Operand, ...], int]] = []
        self.made: dict[int, SwitchedOperation] = {}
        self.count = 1
        self._walk(closed.jaxpr, [Known(each) for each in closed.consts], [0])

    def _walk(self, jaxpr: Any, constants: list[Known], arguments: list[Operand]) -> list[Operand]:
        names = (*jaxpr.constvars, *jaxpr.invars)
        values: dict[Any, Operand] = dict(zip(names, (*constants, *arguments), strict=True))

        def read(variable: Any) -> Operand:
            return Known(variable.val) if hasattr(variable, "val") else values[variable]

        for equation in jaxpr.eqns:
            inputs = [read(each) for each in equation.invars]
            params, name = equation.params, equation.primitive.name
            inner = [params[key] for key in ("call_jaxpr", "jaxpr") if key in params]
            if name in CALLS and inner:
                closed = hasattr(inner[0], "consts")
                body, held = (inner[0].jaxpr, inner[0].consts) if closed else (inner[0], ())
                results = self._walk(body, [Known(each) for each in held], inputs)
            elif all(isinstance(each, Known) for each in inputs):
                known = [each.value for each in inputs if isinstance(each, Known)]
                found = equation.primitive.bind(*known, **params)  # pyright: ignore
                found = found if equation.primitive.multiple_results else [found]
                results = [Known(each) for each in found]
            else:
                self._note(name, equation, inputs)
                numbers = list(range(self.count, self.count + len(equation.outvars)))
                self.count += len(numbers)
                operation = SwitchedOperation(equation.primitive, params, inputs, numbers)
                self.operations.append(operation)
                self.made.update(dict.fromkeys(numbers, operation))
                results = list(numbers)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def _note(self, name: str, equation: Any, inputs: list[Operand]) -> None:
        """The switches of an operation."""
        shape = equation.outvars[0].aval
        if name not in SIGNED | COMPARED or not jnp.issubdtype(
            equation.invars[0].aval.dtype, jnp.floating
        ):
            return
        size = int(np.prod(shape.shape))
        zero = [
            isinstance(each, Known) and bool(np.all(np.asarray(each.value) == 0)) for each in inputs
        ]
        if name in SIGNED:
            parts = [(each,) for each in self._factors(inputs[0])]
        elif any(zero):
            parts = [(each,) for each in self._factors(inputs[zero.index(True) - 1])]
        else:
            parts = [(inputs[0], inputs[1])]
        known = {_told(*switch) for switch in self.switches}
        self.switches += [(part, size) for part in parts if _told(part, size) not in known]

    def _factors(self, operand: Operand) -> list[Operand]:
        """What is multiplied, where something is a product of things that depend on the point."""
        operation = self.made.get(operand) if isinstance(operand, int) else None
        if operation is not None and operation.primitive.name == "mul":
            each = [other for other in operation.inputs if isinstance(other, int)]
            if len(each) == 2:
                return [factor for other in each for factor in self._factors(other)]
        return [operand]

    def needed(self, operands: tuple[Operand, ...]) -> list[SwitchedOperation]:
        """The operations that some results depend on, in their order."""
        wanted = {each for each in operands if isinstance(each, int)}
        found = []
        for operation in reversed(self.operations):
            if wanted.intersection(operation.outputs):
                wanted.update(each for each in operation.inputs if isinstance(each, int))
                found.append(operation)
        return found[::-1]


def _told(operands: tuple[Operand, ...], size: int) -> tuple:
    """What two switches have in common that are the same: arrays are compared as bytes."""
    told = [
        (np.shape(each.value), np.asarray(each.value).tobytes())
        if isinstance(each, Known)
        else each
        for each in operands
    ]
    return (*told, size)
