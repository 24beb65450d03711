"""Level after level: the cells are split where the error is made, until it is small enough or
nothing gets better."""

import math
from typing import Any

import numpy as np

from cordes.ansatz.cells.network import CellPolynomials
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.cells.growth import Growth
from cordes.solvers.cells.look import LookedCells
from cordes.solvers.train import Budget, late_end

# Cells beyond which nothing is split any more.
USUAL, DEMANDING = 1500, 4000
# Numbers on faces beyond which nothing is split, and levels without a smaller residual that are put
# up with: a layer is resolved late.
UNKNOWNS, MOST_UNKNOWNS, PATIENCE = 25_000, 60_000, 3
# Of a nonlinear equation, which is solved several times on the same cells.
NONLINEAR = 500
# Without a tolerance an answer whose error is expected to be below this share of its size is good
# enough, and so is a residual at rounding level.
SETTLED, ROUNDING = 1e-10, 1e-11
# A level must leave so much less of the residual or of the indicator; once so much is resolved, one
# that does not is the last.
BETTER, RESOLVED = 0.7, 1e-4
# Where in a cell two levels are compared: no middle of anything.
PROBE = 0.4142
# With a tolerance the cells that hold this share of the squared residual are split as well.
BULK = 0.8
# Where more than this share of the domain asks for smaller cells, polynomials get this degree.
EVEN, HIGH = 0.6, {1: 14, 2: 14, 3: 6}
# Not where more than this share of the cells is rich: their cost grows with the sixth power.
MOST_RICH = 0.1
# Cells are split whose indicator is this share of the largest.
FRACTION = 0.02
# The next level is expected to last so many times longer than this one.
LONGER = 3.0


class CellLevels:
    """Level after level; the answer with the smallest residual is kept."""

    def __init__(self, solver: Any, budget: Budget, growth: Growth):
        """`solver` is one by cells, with its options."""
        self.solver, self.budget, self.growth = solver, budget, growth
        self.best: CellPolynomials | None = None
        self.last: CellPolynomials | None = None
        self.looked: LookedCells | None = None
        self.residual, self.points, self.late = math.inf, 0, False
        # The smallest indicator, the error that is expected, and how many levels were no better.
        self.smallest, self.expected, self.lasted, self.idle = math.inf, math.inf, 0.0, 0
        self.history: list[dict[str, Any]] = []

    def level(self) -> LookedCells:
        """Solve on the cells as they are now, and look at what is left."""
        growth, began = self.growth, self.budget.clock.seconds
        growth.solve()
        looked = growth.look()
        assert growth.network is not None
        self._expect(looked, growth.network)
        self.looked, self.lasted = looked, self.budget.clock.seconds - began
        worst = float(np.max(looked.indicator))
        better = looked.residual < BETTER * self.residual or worst < BETTER * self.smallest
        self.idle = 0 if better else self.idle + 1
        self.smallest = min(self.smallest, worst)
        if self.best is None or looked.residual < self.residual:
            self.best, self.residual = growth.network, looked.residual
            self.points = growth.tree.count * (growth.degree + 1) ** growth.tree.dimension
        self.last = growth.network
        self.history.append(
            {
                "cells": growth.tree.count,
                "degree": growth.degree,
                "residual": looked.residual,
                "seconds": self.budget.clock.seconds,
            }
        )
        self.budget.progress.update(cells=growth.tree.count, residual=looked.residual)
        return looked

    def refine(self) -> bool:
        """Split the cells that ask for it; False where none does, or may."""
        growth, looked, clock = self.growth, self.looked, self.budget.clock
        assert looked is not None
        largest = UNKNOWNS if self.budget.tol is None else MOST_UNKNOWNS
        # Steps of a nonlinear equation are judged by the outer loop.
        patience = PATIENCE if looked.residual > RESOLVED * looked.scale else 1
        idle = growth.system.problem.linear and self.idle >= patience
        if self._done(looked) or idle or growth.unknowns > largest:
            return False
        # Singular functions take the place of a level.
        enriched = growth.kinds.activate(growth.tree, looked.indicator)
        marked = self._marked(looked) & ~enriched
        usual = USUAL if growth.system.problem.linear else NONLINEAR
        most = self.solver.cells or (usual if self.budget.tol is None else DEMANDING)
        if growth.tree.count + 3 * int(np.sum(marked)) > most:
            marked = _largest(marked, looked, (most - growth.tree.count) // 3)
        if not np.any(marked | enriched):
            return False
        self.late = clock.over or not clock.allows(LONGER * self.lasted)
        if self.late:
            return False
        uniform = np.sum(looked.volumes[marked]) > EVEN * growth.volume
        few = len(growth.rich) < MOST_RICH * growth.tree.count
        high = HIGH[growth.tree.dimension]
        if uniform and few and not self.solver.degree and growth.degree < high:
            growth.raise_degree(high)
        growth.split(marked, looked.tails)
        return True

    def _expect(self, looked: LookedCells, network: CellPolynomials) -> None:
        """The error: what has changed since the last level is the error of that, and this one has
        as much less as its indicator is smaller."""
        if self.last is None or self.looked is None:
            return
        x = probes(network)
        change = float(np.max(np.abs(network.jet_at(x).value - self.last.jet_at(x).value)))
        before, now = (float(np.max(each.indicator)) for each in (self.looked, looked))
        self.expected = change * min(now / max(before, 1e-300), 1.0)

    def _done(self, looked: LookedCells) -> bool:
        if self.budget.tol is not None:
            return not looked.residual > self.budget.tol
        settled = self.expected <= SETTLED * looked.largest
        return settled or not looked.residual > ROUNDING * looked.scale

    def _marked(self, looked: LookedCells) -> np.ndarray:
        """Where the error is made; with a tolerance also where most of the residual is, which is
        what a certificate sees."""
        marked = looked.indicator > FRACTION * np.max(looked.indicator)
        if self.budget.tol is not None:
            order = np.argsort(-looked.squares)
            share = np.cumsum(looked.squares[order])
            marked[order[: 1 + int(np.searchsorted(share, BULK * share[-1]))]] = True
        return marked

    def answer(self) -> Answer:
        assert self.best is not None
        assert self.looked is not None
        result = late_end(self.residual, self.budget.tol, self.solver.small * self.looked.scale)
        if not np.isfinite(self.residual):
            result = Result.nonfinite
        elif self.late and result is not Result.converged:
            result = Result.time_out
        amplitudes = np.zeros(self.growth.system.ansatz.singular.count)
        return Answer(self.best, amplitudes, result, self.residual, self.points, self.history)


def probes(network: CellPolynomials) -> np.ndarray:
    """A point of each cell at which two levels are compared."""
    lower, upper = (corner[~network.hidden] for corner in network.tree.boxes)
    return lower + (upper - lower) * PROBE


def _largest(marked: np.ndarray, looked: LookedCells, count: int) -> np.ndarray:
    """Only so many of the cells that are marked."""
    order = np.argsort(np.where(marked, -looked.indicator, 0.0))
    few = np.zeros_like(marked)
    few[order[: max(count, 0)]] = True
    return few & marked
