"""The elements of a function as a graph of scalar operations, and where the zero sets lie on which
operations are singular.

The graph is that of the interval program: every element has a number, equal expressions have one
number, operands have smaller numbers than results.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

Source = Hashable


class Site(NamedTuple):
    """An operation that may be singular: the number of its result, its name, its operands and the
    test that says where.

    `crossing`: the operand (or the first minus the second) takes both signs. `zero`: it vanishes.
    `inside`: it leaves the open interval `bounds`. `step`: it meets an integer. `cut`: the operands
    (y, x) meet the half-line y = 0, x ≤ 0. `meeting`: two operands may both be the largest
    (smallest) of all. `unknown`: nothing can be said.
    """

    number: int
    name: str
    test: str
    operands: tuple[int, ...]
    bounds: tuple[float, float] = (-math.inf, math.inf)


def operands_of(key: tuple) -> tuple[int, ...]:
    """The numbers of the elements that an element is made of, from its key in the numbering of a
    program."""
    if key[0] in ("x", "constant"):
        return ()
    if key[0] in ("gt", "eq") or key[0].startswith("reduce_"):
        return key[1:]
    if key[0] in ("argmax", "argmin", "sort"):
        return tuple(np.frombuffer(key[3], dtype=np.int64).tolist())
    return tuple(number for number in key[2:] if isinstance(number, int))


class Expressions:
    """`keys` are the expressions by number, `constants` the values of those that are constant,
    `needed` the numbers that the outputs depend on."""

    def __init__(self, numbering: Any, outputs: Sequence[int]):
        self.numbers: dict[tuple, int] = numbering._numbers
        self.keys: list[tuple] = list(self.numbers)
        self.constants: dict[int, float] = numbering.constants
        self._analytic = numbering.analytic
        self.outputs = outputs
        self.needed = self._needed(outputs)
        self.sources = self._find_sources()
        self.companions = self._find_companions()

    def _needed(self, outputs: Sequence[int]) -> list[int]:
        seen, waiting = set(outputs), list(outputs)
        while waiting:
            for operand in operands_of(self.keys[waiting.pop()]):
                if operand not in seen:
                    seen.add(operand)
                    waiting.append(operand)
        return sorted(seen)

    def base(self, number: int) -> int:
        """The element of which this one is a constant multiple; a - b and b - a have one base."""
        while True:
            key = self.keys[number]
            if key[0] == "neg":
                number = key[2]
            elif key[0] == "mul" and any(self.constants.get(n) for n in key[2:]):
                number = key[3] if self.constants.get(key[2]) else key[2]
            elif key[0] == "div" and self.constants.get(key[3]):
                number = key[2]
            elif (
                key[0] == "sub" and self.numbers.get(("sub", None, key[3], key[2]), number) < number
            ):
                number = self.numbers["sub", None, key[3], key[2]]
            else:
                return number

    def difference(self, first: int, second: int) -> Source:
        """The source on which two elements meet: the number of their difference where there is
        one."""
        for number, other in ((first, second), (second, first)):
            if self.constants.get(other) == 0.0:
                return self.base(number)
            found = self.numbers.get(("sub", None, number, other))
            if found is not None:
                return self.base(found)
        return ("difference", *sorted((first, second)))

    def rarely_equal(self, first: int, second: int) -> bool:
        """Whether two different elements are equal on a set of measure zero only: both are analytic
        functions of x (and not constants)."""
        return (
            first != second
            and self._analytic(first, second)
            and not (first in self.constants and second in self.constants)
        )

    def _find_sources(self) -> set[int]:
        """Elements on whose zero set some operation is singular."""
        sources: set[int] = set()
        for number in self.needed:
            key = self.keys[number]
            if key[0] in ("abs", "sign", "sqrt", "rsqrt", "cbrt", "pow"):
                sources.add(self.base(key[2]))
            elif key[0] in ("max", "min", "gt", "eq"):
                met = self.difference(*key[-2:])
                if isinstance(met, int):
                    sources.add(met)
        return sources

    def _find_companions(self) -> dict[int, list[int]]:
        """For each t the sources q = t² + …, sums of squares: t vanishes where q does, and |t| ≤
        √q."""
        companions: dict[int, list[int]] = {}
        for source in self.sources:
            key = self.keys[source]
            terms = (
                [self.keys[term] for term in operands_of(key)]
                if key[0] in ("reduce_sum", "add")
                else []
            )
            if all(term[0] == "mul" and term[2] == term[3] for term in terms):
                for term in terms:
                    companions.setdefault(term[2], []).append(source)
        return companions

    def is_log_of_sum(self, first: int, second: int) -> tuple[int, ...]:
        """max(a, b) + log1p(exp(-|a - b|)) = log(eᵃ + eᵇ) is smooth, and is how softplus and
        logaddexp are computed: gives (a, b), or nothing."""
        for largest, rest in ((first, second), (second, first)):
            key = self.keys[largest]
            names, number = [], rest
            while self.keys[number][0] in ("log1p", "exp", "neg", "abs") and len(names) < 4:
                names.append(self.keys[number][0])
                number = self.keys[number][2]
            if (
                key[0] == "max"
                and names == ["log1p", "exp", "neg", "abs"]
                and number in self._differences(*key[2:])
            ):
                return key[2:]
        return ()

    def _differences(self, first: int, second: int) -> list[int]:
        """The numbers of a - b and b - a themselves, not of multiples."""
        found = [
            self.numbers.get(("sub", None, *pair)) for pair in ((first, second), (second, first))
        ]
        found += [
            number
            for number, other in ((first, second), (second, first))
            if self.constants.get(other) == 0.0
        ]
        return [number for number in found if number is not None]

    def vanishes_only_on(self, source: Source, surfaces: set[int]) -> bool:
        """Whether the zero set of a source lies in the zero sets of given elements: it is a
        multiple of one, or a product or power of such."""
        if not isinstance(source, int):
            return False
        base = self.base(source)
        if base in surfaces:
            return True
        key = self.keys[base]
        if key[0] in ("mul", "reduce_prod"):
            return all(
                n in self.constants or self.vanishes_only_on(n, surfaces) for n in operands_of(key)
            )
        if key[0] in ("abs", "sqrt", "cbrt", "sign", "tanh", "atan", "sinh", "asinh", "expm1") or (
            key[0] == "integer_pow" and key[1] > 0
        ):
            return self.vanishes_only_on(key[2], surfaces)
        return False
