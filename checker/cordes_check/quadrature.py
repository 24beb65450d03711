"""Upper bounds of integrals of squares over cells, by Gauss's rule in balls with its remainder.

If |F| <= M on the ellipse with foci -1, 1 and semi-axes (ρ ± 1/ρ)/2, the Chebyshev coefficients of
F are at most 2Mρ^-k. A rule with n >= 2 points is exact below degree 2n, odd degrees give zero by
symmetry, and beyond |∫T_k| <= 2/15, |Q(T_k)| <= 2. So |∫F - Q(F)| <= (64/15) M ρ^-2n/(1 - ρ^-2).
With several variables one of them is complex at a time: I - Q = (I1 - Q1) I2 + Q1 (I2 - Q2).
"""

import math
from collections.abc import Callable
from functools import cache

from flint import acb, arb, ctx

from cordes_check.answers import Polynomial
from cordes_check.balls import Refused, around
from cordes_check.cells import Cell, sup

RHOS = (1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 13.0, 16.0, 24.0)
MOST_POINTS, START = 100, 4


@cache
def gauss(n: int, precision: int) -> list[tuple[arb, arb]]:
    """Nodes and weights on [0, 1], as balls of this precision."""
    assert precision == ctx.prec
    pairs = (arb.legendre_p_root(n, k, weight=True) for k in range(n))
    return [((node + 1) / 2, weight / 2) for node, weight in pairs]


def find_rules(cell: Cell, N: Polynomial, integrand: Callable, tolerance: float) -> list[tuple]:
    """For each variable the number of points whose remainder is below a tolerance, with its ρ and a
    bound M of the squares, times the Jacobian, on the ellipse."""

    def squares(s: list) -> list:
        place = cell.place(s)
        return [value * value * place.jacobian for value in integrand(place, N.around(s), True)]

    @cache
    def rule(k: int, rho: float) -> tuple[float, float, arb]:
        """The points, ρ and M for variable k."""
        s, r = [acb(each) for each in cell.unit], arb(rho)
        # A rectangle around the ellipse over [0, 1].
        s[k] = acb(arb(1) / 2 + around((r + 1 / r) / 4), around((r - 1 / r) / 4))
        M = max(sup(squares, s, integrand.cuts))
        if not M.is_finite():
            return math.inf, rho, M
        size = float((M + arb(2) ** -1000).log()) + math.log(3 / (1 - rho**-2) / tolerance)
        return max(2, math.ceil(size / (2 * math.log(rho)))), rho, M

    found = []
    for k in range(cell.d):
        # Down to where there is a bound, then up or down to where most is gained.
        at = START
        while at > 0 and rule(k, RHOS[at])[0] == math.inf:
            at -= 1
        step = 1 if at + 1 < len(RHOS) and rule(k, RHOS[at + 1]) < rule(k, RHOS[at]) else -1
        while 0 <= at + step < len(RHOS) and rule(k, RHOS[at + step]) < rule(k, RHOS[at]):
            at += step
        found.append(rule(k, RHOS[at]))
        if found[-1][0] > MOST_POINTS:
            raise Refused(f"{cell.name}: the data are not seen to be analytic around it")
    return found


def integrals(cell: Cell, N: Polynomial, integrand: Callable, rules: list[tuple]) -> list[arb]:
    """Upper bounds of the integrals of the squares of some functions, without the error of N."""
    totals, rest = None, arb(0)
    for n, rho, M in rules:
        # On [0, 1], half as long as [-1, 1].
        rest += arb(32) / 15 * M * arb(rho) ** (-2 * n) / (1 - arb(rho) ** -2)
    for s, weight, network in N.on_grid([gauss(n, ctx.prec) for n, _, _ in rules]):
        place = cell.place(s)
        weight = weight * place.jacobian
        terms = [weight * value * value for value in integrand(place, network, True)]
        totals = terms if totals is None else [a + b for a, b in zip(totals, terms, strict=True)]
    return [(total + rest).upper() for total in totals]
