"""What a trace is made of: arrays, and operations on them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cordes.formulas.movement import Array, Move


class Value:
    """An array: the numbers of its elements, and its constant value or the slot that holds what is
    computed of it. Numbers may be given by a function: those of a large table are never needed."""

    def __init__(
        self,
        numbers: Array | Callable[[], Array],
        dtype: np.dtype,
        constant: Array | None,
        slot: int,
    ):
        self._numbers, self.dtype, self.constant, self.slot = numbers, dtype, constant, slot

    @property
    def numbers(self) -> Array:
        if callable(self._numbers):
            self._numbers = self._numbers()
        return self._numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.numbers if self.constant is None else self.constant).shape


class Step(NamedTuple):
    """An operation on arrays: its kind and name, the equation it comes from, its operands, the
    slots of its results (-1: known from earlier steps), the numbers of the first result, whether
    results are floating-point numbers, how elements are moved if the step does no more, and the
    constants of a lookup or a search, whose operands are the index or the number sought."""

    kind: str
    name: str
    equation: Any
    inputs: tuple[Value, ...]
    outputs: tuple[int, ...]
    numbers: Array
    dtype: np.dtype
    move: Move | None
    table: Array | None = None
