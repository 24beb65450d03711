"""Numbers for the elements of all arrays of a program: two elements have one number if they are the
same operation of the same elements.

So x·x is known to be a square wherever it comes from (an outer product, a norm, a scalar product),
equal expressions are computed once, and sign(x₀) written twice is one switch.

Elements made of x by functions that are analytic on the whole line are marked. Such an element is
zero everywhere or almost nowhere, which decides comparisons and signs that meet zero only on the
boundary of a cell. (√, division and the like are left out: √(x²) - x is zero on a half-line.)
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cordes.formulas.intervals.rules import ANALYTIC, COMMUTATIVE


class Numbering:
    """Numbers are given in the order of first appearance; `constants` holds the value of those that
    are constant."""

    def __init__(self):
        self.constants: dict[int, float] = {}
        self._numbers: dict[Any, int] = {}
        self._analytic: list[bool] = []

    def number(self, key: Any, analytic: bool = False) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._analytic)
            self._analytic.append(analytic)
        return found

    def constant(self, value: float) -> int:
        found = self.number(("constant", value), True)
        self.constants[found] = value
        return found

    def analytic(self, *numbers: int) -> bool:
        return all(self._analytic[number] for number in numbers)

    def elementwise(self, name: str, parameter: Any, operands: Sequence[np.ndarray]) -> np.ndarray:
        """The numbers of the result of an elementwise operation, whose operands broadcast."""
        arrays = np.broadcast_arrays(*operands)
        numbers = [
            self._combined(name, parameter, each)
            for each in zip(*(a.ravel().tolist() for a in arrays), strict=True)
        ]
        return np.array(numbers, dtype=np.int64).reshape(arrays[0].shape)

    def _combined(self, name: str, parameter: Any, numbers: tuple[int, ...]) -> int:
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
        numbers = tuple(sorted(numbers)) if name in COMMUTATIVE else numbers
        analytic = name in ANALYTIC
        if name == "div":
            analytic = constants[1] not in (None, 0.0)
        elif name == "integer_pow":
            analytic = parameter >= 0
        return self.number((name, parameter, *numbers), analytic and self.analytic(*numbers))

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

    def reduced(self, name: str, numbers: Iterable[int]) -> int:
        """The number of a sum, product, largest or smallest element."""
        neutral = {"reduce_sum": 0.0, "reduce_prod": 1.0}.get(name)
        kept = sorted(
            number for number in numbers if neutral is None or self.constants.get(number) != neutral
        )
        if not kept and neutral is not None:
            return self.constant(neutral)
        return (
            kept[0]
            if len(kept) == 1
            else self.number((name, *kept), name in ANALYTIC and self.analytic(*kept))
        )

    def opaque(
        self, name: str, parameter: Any, operands: Sequence[np.ndarray], shape: tuple[int, ...]
    ) -> np.ndarray:
        """Numbers for an operation of which nothing is known but that equal operands give equal
        results."""
        key = (name, parameter, *(a.shape for a in operands), *(a.tobytes() for a in operands))
        size = int(np.prod(shape))
        return np.array([self.number((*key, i)) for i in range(size)], dtype=np.int64).reshape(
            shape
        )
