"""The elements of a function as a graph of scalar operations, where the zero sets lie on which
operations are singular, and what is known of the singularities of one element and passes on to sums
and products (`orders.py` explains the two numbers σ and ν).

The graph is that of the interval program: every element has a number, equal expressions have one
number, operands have smaller numbers than results.
"""

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from cordes.formulas.elementary import names
from cordes.formulas.numbering import Numbering
from cordes.formulas.regularity.levels import Levels

Source = Hashable
# The order where continuity is all that is concluded.
CONTINUOUS = 0.25
# Constants below this are guards of divisions.
SMALLEST = 1e-100
# Functions that vanish where their argument does and nowhere else.
ZERO_AT_ZERO = names(lambda each: each.only)
_LOG_OF_SUM = ["log1p", "exp", "neg", "abs"]


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


class Expressions:
    """The elements of a trace by number, with what is known of their zeros. `constants` are the
    values of those that are constant, `needed` the numbers that the outputs depend on."""

    def __init__(self, numbering: Numbering, outputs: Sequence[int]):
        self.numbering = numbering
        self.operations, self.constants = numbering.operations, numbering.constants
        self.outputs = outputs
        self.needed = sorted(numbering.reached(outputs))
        self.levels = Levels(numbering)
        self.sources = self._find_sources()
        self.companions = self._find_companions()

    def base(self, number: int) -> int:
        """The element of which this one is a constant multiple; a - b and b - a have one base."""
        while True:
            name, _, operands = self.operations[number]
            first, second = operands[0] if operands else -1, operands[-1] if operands else -1
            if name == "neg":
                number = first
            elif name == "mul" and any(self.constants.get(n) for n in operands):
                number = second if self.constants.get(first) else first
            elif name == "div" and self.constants.get(second):
                number = first
            elif name == "sub":
                # Of a - b and b - a the one that was there first.
                opposite = self.numbering.find("sub", second, first)
                return number if opposite is None else min(number, opposite)
            else:
                return number

    def difference(self, first: int, second: int) -> Source:
        """The source on which two elements meet: the number of their difference where there is
        one."""
        known = self._differences(first, second)
        return self.base(known[0]) if known else ("difference", *sorted((first, second)))

    def rarely_equal(self, first: int, second: int) -> bool:
        """Whether two different elements are equal on a set of measure zero only: both are analytic
        functions of x (and not constants)."""
        return (
            first != second
            and self.numbering.analytic(first, second)
            and not (first in self.constants and second in self.constants)
        )

    def _find_sources(self) -> set[int]:
        """Elements on whose zero set some operation is singular."""
        sources: set[int] = set()
        for number in self.needed:
            name, parameter, operands = self.operations[number]
            inverse = name == "integer_pow" and parameter < 0
            if inverse or name in ("abs", "sign", "sqrt", "rsqrt", "cbrt", "pow", "log"):
                sources.add(self.base(operands[0]))
            elif name == "div" and operands[1] not in self.constants:
                sources.add(self.base(operands[1]))
            elif name in ("max", "min", "gt", "eq"):
                met = self.difference(*operands)
                if isinstance(met, int):
                    sources.add(met)
                if name == "max" and self.constants.get(operands[1], 1.0) < SMALLEST:
                    sources.add(self.base(operands[0]))
        return sources

    def _find_companions(self) -> dict[int, list[int]]:
        """For each t the sources q = t² + …, sums of squares: t vanishes where q does, and |t| ≤
        √q."""
        companions: dict[int, list[int]] = {}
        for source in self.sources:
            name, _, operands = self.operations[source]
            terms = [self.operations[n] for n in operands] if name in ("reduce_sum", "add") else []
            if all(term.name == "mul" and len(set(term.operands)) == 1 for term in terms):
                for term in terms:
                    companions.setdefault(term.operands[0], []).append(source)
        return companions

    def is_log_of_sum(self, first: int, second: int) -> tuple[int, ...]:
        """max(a, b) + log1p(exp(-|a - b|)) = log(eᵃ + eᵇ) is smooth, and is how softplus and
        logaddexp are computed: gives (a, b), or nothing."""
        for largest, rest in ((first, second), (second, first)):
            operation = self.operations[largest]
            names, number = [], rest
            while self.operations[number].name in _LOG_OF_SUM and len(names) < 4:
                names.append(self.operations[number].name)
                number = self.operations[number].operands[0]
            if (
                operation.name == "max"
                and names == _LOG_OF_SUM
                and number in self._differences(*operation.operands)
            ):
                return operation.operands
        return ()

    def _differences(self, first: int, second: int) -> list[int]:
        """The numbers of a - b and b - a themselves, not of multiples."""
        found = []
        for number, other in ((first, second), (second, first)):
            found.append(number if self.constants.get(other) == 0.0 else None)
            found.append(self.numbering.find("sub", number, other))
        return [number for number in found if number is not None]

    def is_spot(self, source: Source, dimension: int) -> bool:
        """Whether the zero set of a source is one point: it is a sum of squares of all coordinates,
        each with a constant of its own."""
        squares = self.levels.squares(source) if isinstance(source, int) else []
        return {self._coordinate(n) for n in squares} >= {*range(dimension)}

    def _coordinate(self, number: int) -> int | None:
        """i for an element xᵢ + constant, or a multiple of it."""
        name, parameter, operands = self.operations[self.base(number)]
        if name in ("add", "sub") and any(n in self.constants for n in operands):
            return self._coordinate(operands[0 if operands[1] in self.constants else 1])
        return parameter if name == "x" else None

    def vanishes_only_on(self, source: Source, surfaces: set[int]) -> bool:
        """Whether the zero set of a source lies in the zero sets of given elements: it is a
        multiple of one, or a product or power of such."""
        if isinstance(source, tuple) and source[0] == "difference":
            difference = self.levels.difference(source[1], source[2])
            return self.levels.lies_on(difference, self.levels.of_surfaces(surfaces))
        if not isinstance(source, int):
            return False
        base = self.base(source)
        known = self.levels.of_surfaces(surfaces)
        if base in surfaces or self.levels.lies_on(self.levels.polynomial(base), known):
            return True
        name, parameter, operands = self.operations[base]
        if name in ("mul", "reduce_prod"):
            return all(n in self.constants or self.vanishes_only_on(n, surfaces) for n in operands)
        if name in ZERO_AT_ZERO or (name == "integer_pow" and parameter > 0):
            return self.vanishes_only_on(operands[0], surfaces)
        return False


class Order(NamedTuple):
    """What is known of an element. Absent sources have σ = ∞ and ν = 0; `zero` is the constant."""

    singular: dict[Source, float]
    vanishing: dict[Source, float]
    root: Source | None = None
    nonnegative: bool = False
    zero: bool = False

    def sigma(self, source: Source) -> float:
        return self.singular.get(source, math.inf)

    def nu(self, source: Source) -> float:
        return math.inf if self.zero else self.vanishing.get(source, 0.0)

    @property
    def lowest(self) -> float:
        return min(self.singular.values(), default=math.inf)

    @property
    def unbounded(self) -> bool:
        return min(self.vanishing.values(), default=0.0) < 0

    def inverse(self) -> "Order":
        """A pole where an element with a root vanishes."""
        assert self.root is not None
        pole = {self.root: -self.nu(self.root)}
        return Order(pole, pole, self.root, self.nonnegative)


REGULAR = Order({}, {})


def singular_sum(parts: Sequence[Order]) -> dict[Source, float]:
    """The singular orders of a sum: the lowest of all."""
    lowest: dict[Source, float] = {}
    for part in parts:
        for source, sigma in part.singular.items():
            lowest[source] = min(sigma, lowest.get(source, math.inf))
    return lowest


def vanishing_sum(parts: Sequence[Order]) -> dict[Source, float]:
    """A sum vanishes where all parts do, to the lowest order, and has the poles of all."""
    first, *others = [part.vanishing for part in parts if not part.zero] or [{}]
    for other in others:
        least = {a: min(first.get(a, 0.0), other.get(a, 0.0)) for a in {**first, **other}}
        first = {source: nu for source, nu in least.items() if nu}
    return first


def limited(orders: dict[Source, float], *parts: Order) -> dict[Source, float]:
    """With several sources and a part that is not Lipschitz nothing better than continuity
    follows."""
    if len(orders) > 1 and min(part.lowest for part in parts) < 1:
        return {a: min(order, CONTINUOUS) for a, order in orders.items()}
    return {a: order for a, order in orders.items() if order < 2}


def product(u: Order, v: Order, same: bool = False) -> Order:
    """The product of two elements, or the square of one."""
    if u.zero or v.zero:
        return u if u.zero else v
    nonnegative = same or (u.nonnegative and v.nonnegative)
    sources = {**u.singular, **v.singular}
    singular = {
        a: min(u.sigma(a) + v.nu(a), v.sigma(a) + u.nu(a), u.sigma(a) + v.sigma(a)) for a in sources
    }
    vanishing = {a: u.nu(a) + v.nu(a) for a in {**u.vanishing, **v.vanishing}}
    return Order(
        limited(singular, u, v), vanishing, u.root if u.root == v.root else None, nonnegative
    )
