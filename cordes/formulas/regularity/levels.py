"""Zero sets of elements as those of polynomials: x·x < ¼, |x| < ½ and 1 - 2|x| > 0 change on one
circle, however they are written."""

import math
from collections.abc import Iterable

from cordes.formulas.numbering import Numbering

# Products of elements, sorted, with their coefficients.
Polynomial = dict[tuple[int, ...], float]
EXTREMES = ("max", "min", "reduce_max", "reduce_min")
# A polynomial with more terms is an element of its own.
MOST_TERMS = 64
# Coefficients that differ by less are equal up to their rounding.
ROUNDING = 1e-14


class Levels:
    """Polynomials in elements that are not polynomials themselves."""

    def __init__(self, numbering: Numbering):
        self.operations, self.constants = numbering.operations, numbering.constants
        self.analytic = numbering.analytic
        self._known: dict[int, Polynomial] = {}

    def squares(self, number: int) -> list[int]:
        """The elements whose squares an element is the sum of; empty where it is none."""
        name, _, operands = self.operations[number]
        if name in ("add", "reduce_sum"):
            parts = [self.squares(n) for n in operands]
            return [n for part in parts for n in part] if all(parts) else []
        return [operands[0]] if name == "mul" and len(set(operands)) == 1 else []

    def mostly(self, number: int) -> bool | None:
        """The truth value that a comparison with zero has but on a set of measure zero: a sum of
        squares of analytic elements is positive."""
        name, _, operands = self.operations[number]
        if name == "not":
            inner = self.mostly(operands[0])
            return None if inner is None else not inner
        if name == "gt":
            for value, other, answer in ((*operands, True), (*operands[::-1], False)):
                known = self.constants.get(other, 1.0) <= 0 and self.analytic(value)
                if known and value not in self.constants and self.squares(value):
                    return answer
        return None

    def polynomial(self, number: int) -> Polynomial:
        if number not in self._known:
            found = self._made(number)
            self._known[number] = found if len(found) <= MOST_TERMS else {(number,): 1.0}
        return self._known[number]

    def _made(self, number: int) -> Polynomial:
        if number in self.constants:
            return _cleaned({(): self.constants[number]})
        name, parameter, operands = self.operations[number]
        parts = [self.polynomial(n) for n in operands] if name in _POLYNOMIAL else []
        if name in ("add", "reduce_sum", "sub", "neg"):
            signs = {"sub": [1.0, -1.0], "neg": [-1.0]}.get(name, [1.0] * len(parts))
            return _sum(zip(signs, parts, strict=True))
        if name in ("mul", "reduce_prod"):
            return _product(parts)
        if name == "div" and operands[1] in self.constants and self.constants[operands[1]]:
            return _sum([(1 / self.constants[operands[1]], parts[0])])
        if name == "integer_pow" and isinstance(parameter, int) and 0 < parameter <= 4:
            return _product(parts * parameter)
        if name == "select_n" and (chosen := self.mostly(operands[0])) is not None:
            return self.polynomial(operands[1 + chosen])
        return {(number,): 1.0}

    def difference(self, first: int, second: int) -> Polynomial:
        return _sum([(1.0, self.polynomial(first)), (-1.0, self.polynomial(second))])

    def _parts(self, level: Polynomial) -> list[Polynomial]:
        """Sets that make up the zero set: of √q = c it is q = c², of |w| = c, w² = c² and of a
        square in one element w = w₁ and w = w₂, of a product those of its factors; the set itself
        where nothing is known."""
        products = [each for each in level if each]
        constant = level.get((), 0.0)
        if len(products) == 1 and not constant:
            return [self.polynomial(n) for n in {*products[0]}]
        if len(products) == 1 and len(products[0]) == 1:
            ((number,),) = products
            name, _, operands = self.operations[number]
            value = -constant / level[(number,)]
            inner = [_sum([(1.0, self.polynomial(n)), (-value, {(): 1.0})]) for n in operands]
            if name in EXTREMES:
                return [each for each in inner if {*each} - {()}]
            if name in ("sqrt", "abs") and value > 0:
                square = self.polynomial(operands[0])
                square = square if name == "sqrt" else _product([square, square])
                return [_sum([(1.0, square), (-value * value, {(): 1.0})])]
        atoms = {n for each in products for n in each}
        if len(atoms) == 1 and max(map(len, products), default=0) == 2:
            (w,) = atoms
            a, b = level[(w, w)], level.get((w,), 0.0)
            root = b * b - 4 * a * constant
            if root >= 0:
                # Without cancellation: one root from the sum, the other from the product.
                q = -(b + math.copysign(math.sqrt(root), b)) / 2
                roots = [q / a, constant / q] if q else [0.0]
                return [_cleaned({(w,): 1.0, (): -r}) for r in roots]
        return [level]

    def lies_on(self, level: Polynomial, surfaces: list[Polynomial]) -> bool:
        """Whether a zero set, or all of its parts, are among those of the surfaces."""
        if not {*level} - {()}:
            return False
        if any(_same(level, other) for other in surfaces):
            return True
        parts = self._parts(level)
        return parts != [level] and all(self.lies_on(each, surfaces) for each in parts)

    def of_surfaces(self, surfaces: Iterable[int]) -> list[Polynomial]:
        """The zero sets of elements, and their parts."""
        found, waiting = [], [self.polynomial(number) for number in surfaces]
        while waiting and len(found) < MOST_TERMS:
            level = waiting.pop()
            found.append(level)
            waiting += [each for each in self._parts(level) if each != level]
        return found


_POLYNOMIAL = ("add", "reduce_sum", "sub", "neg", "mul", "reduce_prod", "div", "integer_pow")


def _cleaned(polynomial: Polynomial) -> Polynomial:
    return {product: c for product, c in polynomial.items() if c}


def _sum(parts: Iterable[tuple[float, Polynomial]]) -> Polynomial:
    total: Polynomial = {}
    for factor, part in parts:
        for product, c in part.items():
            total[product] = total.get(product, 0.0) + factor * c
    return _cleaned(total)


def _product(parts: list[Polynomial]) -> Polynomial:
    result: Polynomial = {(): 1.0}
    for part in parts:
        pairs = [(a, b) for a in result.items() for b in part.items()]
        if len(pairs) > MOST_TERMS**2:
            return dict.fromkeys([(k,) for k in range(MOST_TERMS + 1)], 1.0)  # Too many.
        result = _sum((x * y, {tuple(sorted(a + b)): 1.0}) for (a, x), (b, y) in pairs)
    return result


def _same(one: Polynomial, other: Polynomial) -> bool:
    """Whether two polynomials are multiples of each other, up to rounding."""
    if one.keys() != other.keys():
        return False
    lead = max(one, key=lambda product: abs(one[product]))
    factor = other[lead] / one[lead]
    return all(
        abs(other[each] - factor * c) <= ROUNDING * abs(other[lead]) for each, c in one.items()
    )
