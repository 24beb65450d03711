"""Faults that `hidden_battery` must notice, and the check of what Gauss rules leave out.

Cells are refined until the remainders are a small share of a norm, and the bounds behind them are
generous: a remainder ten times too small moves no norm by more than the error of a grid. So
remainders are compared with closed forms, too, for functions for which the estimate is nearly
attained.
"""

from typing import Any

import numpy as np

from cordes.certificates.enclosed import measure, refinement
from cordes.certificates.residual.cells import CellMesh
from cordes.domains.unit_cube import gauss_rule

FAULT = 0.1
RULES = 200


def plant(fault: str) -> None:
    {"remainder": _remainder, "cell": _cell}[fault]()


def _remainder() -> None:
    left_out, orders = measure.left_out, refinement._orders
    measure.left_out = refinement.left_out = lambda *args: FAULT * left_out(*args)
    refinement._orders = lambda bound, *rest: orders(FAULT * bound, *rest)


def _cell() -> None:
    """Of each batch of accepted cells the one that may hold most is lost, and of the cells that
    follow features one of the finest."""
    accept, follow = refinement.Refinement._accept, CellMesh.follow

    def fewer(self: Any, cells: Any, orders: Any, around: Any, bounds: Any, allowed: Any) -> None:
        most = np.prod(cells.upper - cells.lower, axis=1) * np.min(bounds[0], axis=(1, 2))
        keep = np.arange(len(orders)) != np.argmax(most)
        if np.any(keep):
            kept = [bound[keep] for bound in bounds]
            known = cells.take(keep), orders[keep], around.take(keep)
            accept(self, *known, kept, allowed[keep])

    def followed(self: CellMesh, lower: np.ndarray, upper: np.ndarray) -> bool:
        done = follow(self, lower, upper)
        size = np.prod(self.cells.upper - self.cells.lower, axis=1)
        self.cells = self.cells.take(np.arange(len(size)) != np.argmin(size))
        return done

    refinement.Refinement._accept, CellMesh.follow = fewer, followed


def largest_share_left_out(seed: int) -> float:
    """The error of Gauss rules for T_2n, whose largest values on ellipses are known, over what
    `left_out` allows; for random cells."""
    rng, shares = np.random.default_rng(seed), []
    for n in rng.choice([2, 3, 4, 5, 6, 8], RULES):
        half, height = 10 ** rng.uniform(-3, 3), 10 ** rng.uniform(-3, 3)
        y, weight = gauss_rule(int(n))
        rule = 2 * half * height * weight @ np.cos(2 * n * np.arccos(2 * np.ravel(y) - 1))
        missed = abs(2 * half * height / (1 - 4.0 * n**2) - rule)
        largest = height * (measure.RHO ** (2.0 * n) + measure.RHO ** (-2.0 * n)) / 2
        allowed = measure.left_out(largest[None, None], np.array([[n]]), np.array([2 * half]))
        shares.append(missed / float(allowed[0]))
    return float(max(shares))
