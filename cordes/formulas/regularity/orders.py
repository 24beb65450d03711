"""How singular each element of a function can be where an operation is not smooth, read from its
operations.

An operation such as |w| or √w is singular where its operand vanishes. The zero set of such an
operand is a *source* a, and of every element v made from it two numbers are kept for each source:

* the vanishing order ν: |v| ≤ C|a|^ν near a = 0;
* the singular order σ: v is a function of class C^{1,1} plus one with |Dᵏ| ≤ C|a|^(σ-k), k = 0, 1,
  2. So σ > 0 is continuous, σ ≥ 1 Lipschitz, σ ≥ 2 of class C^{1,1}.

|a| and max(a, 0) have ν = σ = 1, sign(a) has 0, |a|^p has p; a itself has ν = 1 and no singular
part. For a product Leibniz' rule gives σ(uv) = min(σ(u) + ν(v), σ(v) + ν(u), σ(u) + σ(v)): so a|a|,
max(a, 0)² and a² sign(a) are C^{1,1}. This holds for one source, and for several if u and v are
Lipschitz; otherwise only continuity is concluded. A smooth function of v keeps σ. If q ≥ 0 is
C^{1,1}, then |∇q|² ≤ Cq, so √q is Lipschitz with σ = 1 and q is of second order in the source √q:
|x|^p has the order p. An element that is ±|a|^ν (or that where a > 0 and zero elsewhere) has the
*root* a, and singular operations on it multiply orders. What fits nowhere is *opaque*: a source of
its own on which nothing vanishes, so that nothing smooths it again.

Assumed: operands vanish on tame sets, not on Cantor sets.
"""

import math
from collections.abc import Callable, Sequence

from cordes.formulas.elementary import ELEMENTARY
from cordes.formulas.regularity.expressions import (
    CONTINUOUS,
    REGULAR,
    SMALLEST,
    Expressions,
    Order,
    Site,
    Source,
    limited,
    product,
    singular_sum,
    vanishing_sum,
)

# An element with more singular sources than this becomes opaque: a network of many kinks needs no
# account of each.
MOST_SOURCES = 32
# What is known of a site: its operand is positive, negative, or does not matter; 0 if it may be
# singular.
HARMLESS = 2
# Where operations that are neither smooth nor powers may be singular; see `Site`.
TESTS = {
    **{"reduce_max": "meeting", "reduce_min": "meeting"},
    **{"atan2": "cut", "floor": "step", "ceil": "step"},
}


# The order that stands for that of a logarithm.
LOGARITHM = -0.05
# Operations of which it is known what they make of a pole.
OF_POLES = frozenset(
    {"add", "sub", "reduce_sum", "mul", "reduce_prod", "neg", "abs", "select_n", "max", "min"}
    | {"div", "integer_pow"}
)


class Orders:
    """The orders of all elements that the outputs need.

    `decide(site)` says what is known of a site: 1 if its operand is positive, -1 if it is negative,
    `HARMLESS`, or 0 if it may be singular. `sites` collects for each source the sites that are
    singular on it.
    """

    def __init__(self, expressions: Expressions, decide: Callable[[Site], int]):
        self.expressions, self.decide = expressions, decide
        self.sites: dict[Source, list[Site]] = {}
        self._orders: dict[int, Order] = {}
        self._truth: dict[int, bool] = {}
        self._rules: dict[str, Callable[[int, tuple[int, ...], list[Order]], Order]] = {
            **dict.fromkeys(("add", "sub", "reduce_sum"), self._sum),
            **dict.fromkeys(("mul", "reduce_prod"), self._multiply),
            **dict.fromkeys(
                ("abs", "sign", "sqrt", "rsqrt", "cbrt", "integer_pow", "pow"), self._power_like
            ),
            **dict.fromkeys(("max", "min"), self._extreme),
            **dict.fromkeys(("gt", "eq"), self._comparison),
            **dict.fromkeys(
                ("and", "or", "xor", "not", "reduce_and", "reduce_or", "is_finite"), self._logical
            ),
            "neg": lambda number, numbers, parts: self._scale(parts[0], -1.0),
            **{"div": self._divide, "select_n": self._select, "smooth": self._marked},
        }
        for number in expressions.needed:
            self._orders[number] = self._with_sources(number, self._order(number))

    def worst(self) -> dict[Source, float]:
        """The singular orders of the outputs."""
        return singular_sum([self._orders[number] for number in self.expressions.outputs])

    def _order(self, number: int) -> Order:
        value = self.expressions.constants.get(number)
        if value is not None:
            self._truth[number] = bool(value)
            return Order({}, {}, None, value >= 0, value == 0)
        name, _, numbers = self.expressions.operations[number]
        if name == "x":
            return REGULAR
        parts = [self._orders[n] for n in numbers]
        if name not in OF_POLES and any(part.unbounded for part in parts):
            poles = dict.fromkeys(singular_sum(parts), -math.inf)
            return Order(poles, poles)
        if name in self._rules:
            return self._rules[name](number, numbers, parts)
        if name in ELEMENTARY and ELEMENTARY[name].entire:
            return self._smooth(name, parts[0])
        return self._elsewhere(number, numbers, parts)

    def _with_sources(self, number: int, order: Order) -> Order:
        """An element that is a source vanishes there to first order, or, if it is never negative,
        to second order in its root."""
        base = self.expressions.base(number)
        if (
            base in self.expressions.sources
            and order.root is None
            and not order.singular
            and number not in self.expressions.constants
        ):
            second = order.nonnegative or (base < number and self._orders[base].nonnegative)
            order = order._replace(
                root=base, vanishing={**order.vanishing, base: 2.0 if second else 1.0}
            )
        for source in self.expressions.companions.get(number, ()):
            order = order._replace(vanishing={source: 1.0, **order.vanishing})
        if len(order.singular) > MOST_SOURCES:
            ranked = sorted(order.singular, key=order.sigma)
            self.sites["opaque", number] = list(
                dict.fromkeys(site for source in ranked for site in self.sites[source])
            )
            order = Order({("opaque", number): order.lowest}, {}, None, order.nonnegative)
        return order

    # Singular operations.

    def _opaque(self, site: Site, parts: Sequence[Order], order: float) -> Order:
        source = ("opaque", site.number)
        self.sites.setdefault(source, []).append(site)
        lowest = min(part.lowest for part in parts)
        own = min(order, 0.0 if lowest <= 0 else CONTINUOUS if lowest < 1 else order)
        poles = {a: nu for part in parts for a, nu in part.vanishing.items() if nu < 0}
        return Order({**singular_sum(parts), source: own}, poles)

    def _singular(self, site: Site, operand: Order, exponent: float) -> Order:
        """|w|^exponent, with or without the sign of w, where w may vanish."""
        if operand.root is None:
            return self._opaque(site, [operand], min(exponent, 1.0))
        self.sites.setdefault(operand.root, []).append(site)
        if exponent == 0:
            return Order({operand.root: 0.0}, {})
        order = exponent * operand.nu(operand.root)
        vanishing = {a: exponent * nu for a, nu in operand.vanishing.items()}
        return Order({operand.root: order} if order < 2 else {}, vanishing, operand.root)

    def _power_like(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        name, parameter, _ = self.expressions.operations[number]
        part = parts[0]
        if name == "sign":
            site = Site(number, name, "zero", numbers)
            return REGULAR if self.decide(site) else self._singular(site, part, 0.0)
        if name == "abs":
            site = Site(number, name, "crossing", numbers)
            # Positive in the domain is not yet positive around it, which second order at the root
            # needs: `nonnegative` stays as it is.
            if part.nonnegative or self.decide(site):
                return part
            return self._singular(site, part, 1.0)._replace(nonnegative=True)
        exponent = {"sqrt": 0.5, "rsqrt": -0.5, "cbrt": 1 / 3, "integer_pow": parameter}.get(name)
        if name == "pow":
            exponent = self.expressions.constants.get(numbers[1])
        if exponent is None:
            site = Site(number, "power", "inside", numbers[:1], (0.0, math.inf))
            if self.decide(site):
                return Order(singular_sum(parts), {})
            return self._opaque(site, parts, 0.0)
        even = name != "cbrt" and (exponent % 2 == 0 or exponent % 1 != 0)
        site = Site(number, "power" if "pow" in name else name, "zero", numbers[:1])
        power = self._power(site, part, exponent)
        return power._replace(nonnegative=part.nonnegative or even)

    def _power(self, site: Site, part: Order, exponent: float) -> Order:
        if exponent in (0, 1):
            return part if exponent else REGULAR
        if exponent >= 2:
            # The derivative of the power vanishes to the order (p - 1)ν where w does, whether or
            # not w has a root.
            singular = {
                a: sigma + (exponent - 1) * part.nu(a) for a, sigma in part.singular.items()
            }
            vanishing = {a: exponent * nu for a, nu in part.vanishing.items()}
            return Order(limited(singular, part), vanishing, part.root)
        if self.decide(site):
            return Order(part.singular, {})
        if exponent > 0:
            return self._singular(site, part, exponent)
        if part.root is None:
            return self._pole(site, [part])
        self.sites.setdefault(part.root, []).append(site)
        pole = {part.root: exponent * part.nu(part.root)}
        return Order({**part.singular, **pole}, pole, part.root)

    def _pole(self, site: Site, parts: Sequence[Order]) -> Order:
        """A pole of which nothing is known."""
        order = self._opaque(site, parts, -math.inf)
        return order._replace(vanishing={**order.vanishing, ("opaque", site.number): -math.inf})

    def _meeting(self, first: int, second: int) -> tuple[Source | None, float]:
        """The source on which two elements meet and the order of their difference; None where the
        difference has no root."""
        met = self.expressions.difference(first, second)
        known = self._orders.get(met) if isinstance(met, int) else None
        if known is not None:
            return known.root, known.nu(known.root) if known.root is not None else 0.0
        return (None if self._orders[first].singular or self._orders[second].singular else met), 1.0

    def _extreme(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        """max(a, b) is smooth but where a = b, and there as regular as |a - b|."""
        largest = self.expressions.operations[number].name == "max"
        site = Site(number, "max" if largest else "min", "crossing", numbers)
        nonnegative = (any if largest else all)(part.nonnegative for part in parts)
        decision = self.decide(site)
        for part, other in zip(parts, numbers[::-1], strict=True):
            below = self.expressions.constants.get(other, 1.0) <= 0
            # A guard such as max(q, 1e-300) is none.
            below = below or self.expressions.constants.get(other, 1.0) < SMALLEST
            if part.nonnegative and largest and below:
                return part
        if decision in (1, -1):
            return parts[0 if (decision > 0) == largest else 1]
        if decision == HARMLESS:
            return Order(singular_sum(parts), vanishing_sum(parts), None, nonnegative)
        source, order = self._meeting(*numbers)
        if source is None:
            return self._opaque(site, parts, 1.0)._replace(nonnegative=nonnegative)
        self.sites.setdefault(source, []).append(site)
        singular = singular_sum(parts)
        singular[source] = min(order, singular.get(source, math.inf))
        # With the constant zero it is the part of a on one side, a function of the same root.
        root = source if any(part.zero for part in parts) else None
        return Order(limited(singular, *parts), vanishing_sum(parts), root, nonnegative)

    def _elsewhere(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        """Functions that are smooth in places, steps, and what is not known."""
        name = self.expressions.operations[number].name
        known = ELEMENTARY.get(name)
        if known is not None and known.smooth is not None:
            site = Site(number, name, "inside", numbers, known.smooth)
            if self.decide(site):
                return self._smooth(name, parts[0])
            if name == "log" and parts[0].root is not None:
                # Less than any power.
                self.sites.setdefault(parts[0].root, []).append(site)
                return Order({parts[0].root: LOGARITHM}, {parts[0].root: LOGARITHM})
            return self._opaque(site, parts, known.order)
        site = Site(number, name, TESTS.get(name, "unknown"), numbers)
        if self.decide(site):
            return Order(singular_sum(parts), {})
        return self._opaque(
            site, parts, 1.0 if name in ("reduce_max", "reduce_min", "sort", "clamp") else 0.0
        )

    def _marked(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        """A table that is interpolated: its order says what is known."""
        if self.expressions.operations[number].parameter[0] >= 1:
            return Order(singular_sum(parts), {})
        return self._opaque(Site(number, "table", "unknown", numbers), parts, 1.0)

    # Comparisons and selections.

    def _comparison(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        equality = self.expressions.operations[number].name == "eq"
        site = Site(number, "comparison", "zero", numbers)
        if numbers[0] == numbers[1]:
            self._truth[number] = equality
            return REGULAR
        if (mostly := self.expressions.levels.mostly(number)) is not None:
            self._truth[number] = mostly
            return REGULAR
        decision = self.decide(site)
        if equality and self.expressions.rarely_equal(*numbers):
            # True on a set of measure zero only, as in where(t == 0, 1, t): such a guard changes no
            # integral and no weak derivative.
            self._truth[number] = False
            return REGULAR
        if decision in (1, -1):
            self._truth[number] = decision > 0 and not equality
        if decision:
            return REGULAR
        source, _ = self._meeting(*numbers)
        if source is None:
            return self._opaque(site, parts, 0.0)
        self.sites.setdefault(source, []).append(site)
        return Order({source: 0.0}, {})

    def _logical(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        name = self.expressions.operations[number].name
        known = [self._truth.get(n) for n in numbers]
        if name == "is_finite":
            self._truth[number] = True
            return REGULAR
        if name == "not" and known[0] is not None:
            self._truth[number] = not known[0]
        deciding = {"and": False, "reduce_and": False, "or": True, "reduce_or": True}.get(name)
        if deciding is not None and (deciding in known or None not in known):
            self._truth[number] = deciding if deciding in known else not deciding
        return REGULAR if number in self._truth else Order(singular_sum(parts), {})

    def _select(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        """A selection jumps by the difference of its cases where its condition changes, which may
        vanish there."""
        condition, cases, chosen = parts[0], parts[1:], self._truth.get(numbers[0])
        if chosen is not None and len(cases) == 2:
            return cases[int(chosen)]
        singular, nonnegative = singular_sum(cases), all(case.nonnegative for case in cases)
        if len(set(numbers[1:])) == 1:
            return cases[0]
        for source in condition.singular:
            met, order = self._meeting(*numbers[1:3]) if len(cases) == 2 else (None, 0.0)
            touching = met is not None and met == source
            gap = order if touching else min(case.nu(source) for case in cases)
            singular[source] = min(gap, singular.get(source, math.inf))
        roots = {case.root for case in cases if not case.zero}
        root = next(iter(roots)) if len(roots) == 1 and set(condition.singular) <= roots else None
        return Order(limited(singular, *cases), vanishing_sum(cases), root, nonnegative)

    # Smooth operations.

    def _smooth(self, name: str, part: Order) -> Order:
        known = ELEMENTARY[name]
        return Order(part.singular, part.vanishing if known.vanishing else {}, None, known.positive)

    def _sum(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        name = self.expressions.operations[number].name
        smooth = self.expressions.is_log_of_sum(*numbers) if name == "add" else ()
        if smooth:
            return Order(singular_sum([self._orders[n] for n in smooth]), {})
        nonnegative = name != "sub" and all(part.nonnegative for part in parts)
        return Order(singular_sum(parts), vanishing_sum(parts), None, nonnegative)

    def _multiply(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        constants = [self.expressions.constants.get(n) for n in numbers]
        if len(numbers) == 2 and any(constants):
            which = 0 if constants[0] else 1
            return self._scale(parts[1 - which], constants[which])
        result, previous = parts[0], numbers[0]
        for n, part in zip(numbers[1:], parts[1:], strict=True):
            result = product(result, part, previous == n)
            previous = -1
        return result

    def _removable(self, above: int, below: int) -> bool:
        """sin(w)/w and its like."""
        name, _, operands = self.expressions.operations[above]
        known = ELEMENTARY.get(name)
        base = self.expressions.base
        return bool(known and known.vanishing and known.entire and base(operands[0]) == base(below))

    def _scale(self, part: Order, constant: float | None) -> Order:
        return part._replace(nonnegative=part.nonnegative and constant is not None and constant > 0)

    def _divide(self, number: int, numbers: tuple[int, ...], parts: list[Order]) -> Order:
        constant = self.expressions.constants.get(numbers[1])
        if constant:
            return self._scale(parts[0], constant)
        site = Site(number, "division", "zero", numbers[1:])
        if self._removable(*numbers):
            return Order(singular_sum(parts), {})
        if parts[1].unbounded:
            poles = dict.fromkeys(singular_sum(parts), -math.inf)
            return Order(poles, poles)
        if not self.decide(site):
            if parts[1].root is None:
                return self._pole(site, parts)
            self.sites.setdefault(parts[1].root, []).append(site)
            return product(parts[0], parts[1].inverse())
        return product(parts[0], Order(parts[1].singular, {}, None, parts[1].nonnegative))
