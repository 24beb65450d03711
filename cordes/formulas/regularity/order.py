"""What is known of the singularities of one element of a function, and how it passes on to sums and
products; `orders.py` explains the two numbers σ and ν."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from cordes.formulas.regularity.expressions import Source

# The order where continuity is all that is concluded.
CONTINUOUS = 0.25


class Order(NamedTuple):
    """What is known of an element; see the module `orders`. Absent sources have σ = ∞ and ν = 0;
    `zero` is the constant."""

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


REGULAR = Order({}, {})


def singular_sum(parts: Sequence[Order]) -> dict[Source, float]:
    """The singular orders of a sum: the lowest of all."""
    lowest: dict[Source, float] = {}
    for part in parts:
        for source, sigma in part.singular.items():
            lowest[source] = min(sigma, lowest.get(source, math.inf))
    return lowest


def vanishing_sum(parts: Sequence[Order]) -> dict[Source, float]:
    """A sum vanishes where all parts do, to the lowest order."""
    first, *others = [part.vanishing for part in parts if not part.zero] or [{}]
    for other in others:
        first = {source: min(nu, other[source]) for source, nu in first.items() if source in other}
    return first


def limited(orders: dict[Source, float], *parts: Order) -> dict[Source, float]:
    """With several sources and a part that is not Lipschitz nothing better than continuity
    follows."""
    if len(orders) > 1 and min(part.lowest for part in parts) < 1:
        return {a: min(order, CONTINUOUS) for a, order in orders.items()}
    return {a: order for a, order in orders.items() if order < 2}


def product(u: Order, v: Order, same: bool = False) -> Order:
    """The product of two elements, or the square of one."""
    nonnegative = same or (u.nonnegative and v.nonnegative)
    sources = {**u.singular, **v.singular}
    singular = {
        a: min(u.sigma(a) + v.nu(a), v.sigma(a) + u.nu(a), u.sigma(a) + v.sigma(a)) for a in sources
    }
    vanishing = {a: u.nu(a) + v.nu(a) for a in {**u.vanishing, **v.vanishing}}
    return Order(
        limited(singular, u, v), vanishing, u.root if u.root == v.root else None, nonnegative
    )
