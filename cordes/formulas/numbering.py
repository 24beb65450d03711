"""A formula as a graph of operations on numbers: two elements have one number if they are the same
operation of the same elements.

So x·x is known to be a square wherever it comes from (an outer product, a norm, a scalar product),
equal expressions are computed once, and sign(x₀) written twice is one switch.

Elements made of x by functions that are analytic on the whole line are marked. Such an element is
zero everywhere or almost nowhere, which decides comparisons and signs that meet zero only on the
boundary of a cell. (√, division and the like are left out: √(x²) - x is zero on a half-line.)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cordes.formulas.elementary import names

# What is made of x with these alone is zero everywhere or almost nowhere.
ANALYTIC = names(lambda each: each.entire) | {
    *("add", "add_any", "sub", "mul", "neg", "square", "reduce_sum", "reduce_prod")
}
COMMUTATIVE = frozenset(
    {"add", "mul", "max", "min", "and", "or", "xor", "eq", "reduce_sum", "reduce_prod"}
    | {"reduce_max", "reduce_min", "reduce_and", "reduce_or"}
)

_TURNED = {"gt": "lt", "ge": "le"}


class Operation(NamedTuple):
    """How an element is made: the name of the operation, its parameter (the index of a coordinate,
    the value of a constant, a whole exponent, …) and the numbers of its operands."""

    name: str
    parameter: Any
    operands: tuple[int, ...]


class Numbering:
    """Numbers are given in the order of first appearance, so operands have smaller numbers than
    results. `operations` says how each element is made, with the operands of a sum in one order;
    `written` has them in the order of the author where that is another one. `constants` holds the
    value of those that are constant. `comparisons` are the forms in which a truth value was asked
    for, with < or ≤ and as they were written: x > 0 and x ≥ 0 have one number where x is analytic,
    for they differ on a set of measure zero, which counts where the formula is shown."""

    def __init__(self):
        self.constants: dict[int, float] = {}
        self.operations: list[Operation] = []
        self.written: dict[int, tuple[int, ...]] = {}
        self.comparisons: dict[int, dict[tuple[str, int, int], tuple[str, int, int]]] = {}
        self._numbers: dict[Operation, int] = {}
        self._analytic: list[bool] = []

    def number(
        self, name: str, parameter: Any, operands: Sequence[int] = (), analytic: bool = False
    ) -> int:
        given = tuple(operands)
        key = Operation(name, parameter, self._ordered(name, given))
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.operations)
            self.operations.append(key)
            self._analytic.append(analytic)
            if key.operands != given:
                self.written[found] = given
        return found

    def reached(
        self, starts: Iterable[int], operands: Callable[[int], Iterable[int]] | None = None
    ) -> set[int]:
        """Elements and all that they are made of, by all their operands or by these."""
        seen, waiting = set(starts), list(starts)
        while waiting:
            number = waiting.pop()
            following = set(operands(number) if operands else self.operations[number].operands)
            waiting.extend(following - seen)
            seen |= following
        return seen

    def dependent(self, starts: Iterable[int]) -> set[int]:
        """Elements and all that is made of them."""
        found = set(starts)
        for number, operation in enumerate(self.operations):
            if not found.isdisjoint(operation.operands):
                found.add(number)
        return found

    def find(self, name: str, *operands: int) -> int | None:
        """The number of an operation without parameter, if there is such an element."""
        return self._numbers.get(Operation(name, None, self._ordered(name, operands)))

    @staticmethod
    def _ordered(name: str, operands: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(operands)) if name in COMMUTATIVE else operands

    def constant(self, value: float) -> int:
        found = self.number("constant", value, (), True)
        self.constants[found] = value
        return found

    def analytic(self, *numbers: int) -> bool:
        return all(self._analytic[number] for number in numbers)

    def elementwise(
        self,
        name: str,
        parameter: Any,
        operands: Sequence[np.ndarray],
        integers: str | None = None,
    ) -> np.ndarray:
        """The numbers of the result of an elementwise operation, whose operands broadcast. The name
        of the type of `integers` belongs to it: each type wraps around at its own ends."""
        arrays = np.broadcast_arrays(*operands)
        numbers = [
            self._combined(name, parameter, each, integers)
            for each in zip(*(a.ravel().tolist() for a in arrays), strict=True)
        ]
        return np.array(numbers, dtype=np.int64).reshape(arrays[0].shape)

    def _combined(
        self, name: str, parameter: Any, numbers: tuple[int, ...], integers: str | None
    ) -> int:
        """The number of one element of an elementwise operation; what is the same by simple algebra
        gets one number."""
        constants = [self.constants.get(number) for number in numbers]
        if (
            name == "square"
            or (name == "integer_pow" and parameter == 2)
            or (name == "pow" and constants[1] == 2)
        ):
            name, parameter, numbers, constants = "mul", None, (numbers[0],) * 2, [constants[0]] * 2
        name = "add" if name == "add_any" else name
        if len(numbers) == 2:
            known = self._algebra(name, numbers, constants)
            if known is not None:
                return known
        analytic = name in ANALYTIC
        if name == "div":
            analytic = constants[1] not in (None, 0.0)
        elif name == "integer_pow":
            analytic = parameter >= 0
        parameter = parameter if integers is None else (integers, parameter)
        return self.number(name, parameter, numbers, analytic and self.analytic(*numbers))

    def _algebra(
        self, name: str, numbers: tuple[int, ...], constants: list[float | None]
    ) -> int | None:
        """x + 0, x - 0, 1·x, x/1, max(x, x) are x; x - x and 0·x are 0 where x is a number, which
        analytic elements are."""
        first, second = numbers
        neutral = {"add": 0.0, "sub": 0.0, "mul": 1.0, "div": 1.0}.get(name)
        if neutral is not None and constants[1] == neutral:
            return first
        if name in ("add", "mul") and constants[0] == neutral:
            return second
        if name in ("max", "min") and first == second:
            return first
        if self.analytic(*numbers) and (
            (name == "sub" and first == second) or (name == "mul" and 0.0 in constants)
        ):
            return self.constant(0.0)
        return None

    def reduced(self, name: str, numbers: Iterable[int], integers: str | None = None) -> int:
        """The number of a sum, product, largest or smallest element."""
        neutral = {"reduce_sum": 0.0, "reduce_prod": 1.0}.get(name)
        kept = [
            number for number in numbers if neutral is None or self.constants.get(number) != neutral
        ]
        if not kept and neutral is not None:
            return self.constant(neutral)
        if len(kept) == 1:
            return kept[0]
        return self.number(name, integers, kept, name in ANALYTIC and self.analytic(*kept))

    # Comparisons have one form: first > second, or first = second, or the opposite of one.

    def above(self, first: int, second: int) -> tuple[int, bool]:
        """The number of the truth value first > second, and whether that number stands for its
        opposite."""
        turned = first > second and self.analytic(first, second)
        return self.number("gt", None, (second, first) if turned else (first, second)), turned

    def compared(self, name: str, first: int, second: int) -> tuple[int, bool]:
        """The number of a comparison, and whether that number stands for its opposite."""
        if name in ("eq", "ne"):
            return self.number("eq", None, (first, second)), name == "ne"
        if name in ("lt", "ge"):
            first, second = second, first
        number, turned = self.above(first, second)
        return number, turned != (name in ("le", "ge"))

    def comparison(self, name: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        numbers = []
        for pair in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True):
            number, opposite = self.compared(name, *pair)
            number = self.number("not", None, (number,)) if opposite else number
            numbers.append(number)
            form = (_TURNED[name], *pair[::-1]) if name in _TURNED else (name, *pair)
            self.comparisons.setdefault(number, {}).setdefault(form, (name, *pair))
        return np.array(numbers, dtype=np.int64).reshape(first.shape)

    def opaque(self, name: str, parameter: Any, operands: np.ndarray, shape: Sequence[int]) -> Any:
        """Numbers for an operation of which nothing is known but that equal operands give equal
        results."""
        numbers = tuple(operands.ravel().tolist())
        size = int(np.prod(shape))
        return np.array(
            [self.number(name, (parameter, operands.shape, i), numbers) for i in range(size)],
            dtype=np.int64,
        ).reshape(shape)
