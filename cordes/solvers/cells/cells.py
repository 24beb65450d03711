"""Cells: local polynomials on a tree of cells that follow the solution, for whatever has small
scales. It is no neural network: networks are for solutions that are smooth and global, and for
many dimensions."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from cordes.ansatz.cells.network import CellPolynomials
from cordes.arguments import Rule, whole
from cordes.domains.box import Box
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.cells.first import Polynomials
from cordes.solvers.cells.growth import Growth, first_tree
from cordes.solvers.cells.look import Looked
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights, late_end

# Degrees of the polynomials, and how often the box is halved along both axes before the first
# solve.
DEGREE, LEAST_DEGREE, LARGEST_DEGREE = 10, 4, 24
HALVINGS = 2
# Cells beyond which nothing is split any more.
USUAL, DEMANDING = 1500, 4000
# Unknowns of the sparse system beyond which nothing is split, and levels without a smaller residual
# that are put up with: a layer is resolved late.
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
EVEN, HIGH = 0.6, 14
# Not where more than this share of the cells is rich: their cost grows with the sixth power.
MOST_RICH = 0.1
# Cells are split whose indicator is this share of the largest.
FRACTION = 0.02
# The next level is expected to last so many times longer than this one.
LONGER = 3.0
MOST_LEVELS, MOST_DIMENSIONS = 40, 3


class Cells(AbstractSolver):
    """Polynomials of a `degree` (None: 10, and 14 where the solution asks for small cells all over
    the domain) on cells, which are split where the residual asks for it until it is at most the
    tolerance, or the answer does not change any more; at most so many `cells` (None: 1500, with a
    tolerance 4000; 500 of a nonlinear equation). For boxes in the plane."""

    degree: int | None = None
    cells: int | None = None

    method: ClassVar[str] = "cells"
    trains: ClassVar[bool] = False
    outer_steps: ClassVar[int | None] = 60
    small: ClassVar[float] = 1e-3
    rules: ClassVar[Mapping[str, Rule]] = {
        "degree": whole(LEAST_DEGREE, LARGEST_DEGREE),
        "cells": whole(1),
    }

    @staticmethod
    def serves(problem: AbstractProblem) -> bool:
        """Whether a problem is one for cells."""
        return problem.domain.dimension <= MOST_DIMENSIONS and problem.takes_boundary_values

    @staticmethod
    def splits(problem: AbstractProblem) -> bool:
        """Whether the domain of a problem can be cut into cells."""
        return isinstance(problem.domain, Box) and problem.domain.dimension == 2

    def begins_with_polynomials(self, system: AbstractSystem) -> bool:
        """Unless a degree, or a size, is asked for."""
        return system.hard and not self.degree and not self.cells

    def refuse(self, problem: AbstractProblem, others: frozenset[str]) -> None:
        if not self.serves(problem):
            raise OptionError(
                f"method = 'cells' is for up to three dimensions and given boundary values, not for "
                f"{type(problem).__name__} on {problem.domain!r}: leave the method out."
            )

    def growth(self, system: AbstractSystem, start: Weights | None) -> Growth:
        """The cells to begin with: those of an earlier answer, or the first ones."""
        if not system.hard:
            raise OptionError(
                "boundary = 'soft' is a loss for networks: method='cells' has exact boundary "
                "values. Leave one of them out."
            )
        system.place = system.place._replace(ansatz=system.ansatz.without_distance())
        earlier = None if start is None else start.network
        if isinstance(earlier, CellPolynomials):
            return Growth(system, earlier.degree, earlier.tree)
        return Growth(system, self.degree or DEGREE, first_tree(system, HALVINGS))

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        """Polynomials first, where no degree is asked for and nothing was split yet."""
        earlier: list[dict[str, Any]] = []
        split = start is not None and isinstance(start.network, CellPolynomials)
        if self.begins_with_polynomials(system) and not split:
            first = Polynomials(system, budget, start)
            if first.run() or first.late or not self.splits(system.problem):
                return first.answer(self.small)
            first.give_up()
            earlier = first.history
        growth, search = self.growth(system, start), CellLevels(self, budget)
        search.history += earlier
        interrupted = False
        try:
            for _ in range(MOST_LEVELS):
                search.level(growth)
                if not search.refine(growth):
                    break
        except KeyboardInterrupt:
            if search.best is None:
                raise
            interrupted = True
        return search.answer(system, interrupted)


class CellLevels:
    """Level after level; the answer with the smallest residual is kept."""

    def __init__(self, solver: Cells, budget: Budget):
        self.solver, self.budget = solver, budget
        self.best: CellPolynomials | None = None
        self.last: CellPolynomials | None = None
        self.looked: Looked | None = None
        self.residual, self.points, self.late = math.inf, 0, False
        # The smallest indicator, the error that is expected, and how many levels were no better.
        self.smallest, self.expected, self.lasted, self.idle = math.inf, math.inf, 0.0, 0
        self.history: list[dict[str, Any]] = []

    def level(self, growth: Growth) -> Looked:
        """Solve on the cells as they are now, and look at what is left."""
        began = self.budget.clock.seconds
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

    def refine(self, growth: Growth) -> bool:
        """Split the cells that ask for it; False where none does, or may."""
        looked, clock = self.looked, self.budget.clock
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
        if uniform and few and not self.solver.degree and growth.degree < HIGH:
            growth.raise_degree(HIGH)
        growth.split(marked, looked.tails)
        return True

    def _expect(self, looked: Looked, network: CellPolynomials) -> None:
        """The error: what has changed since the last level is the error of that, and this one has
        as much less as its indicator is smaller."""
        if self.last is None or self.looked is None:
            return
        x = probes(network)
        change = float(np.max(np.abs(network.jet_at(x).value - self.last.jet_at(x).value)))
        before, now = (float(np.max(each.indicator)) for each in (self.looked, looked))
        self.expected = change * min(now / max(before, 1e-300), 1.0)

    def _done(self, looked: Looked) -> bool:
        if self.budget.tol is not None:
            return not looked.residual > self.budget.tol
        settled = self.expected <= SETTLED * looked.largest
        return settled or not looked.residual > ROUNDING * looked.scale

    def _marked(self, looked: Looked) -> np.ndarray:
        """Where the error is made; with a tolerance also where most of the residual is, which is
        what a certificate sees."""
        marked = looked.indicator > FRACTION * np.max(looked.indicator)
        if self.budget.tol is not None:
            order = np.argsort(-looked.squares)
            share = np.cumsum(looked.squares[order])
            marked[order[: 1 + int(np.searchsorted(share, BULK * share[-1]))]] = True
        return marked

    def answer(self, system: AbstractSystem, interrupted: bool = False) -> Answer:
        assert self.best is not None
        assert self.looked is not None
        result = late_end(self.residual, self.budget.tol, self.solver.small * self.looked.scale)
        if not np.isfinite(self.residual):
            result = Result.nonfinite
        elif self.late and result is not Result.converged:
            result = Result.time_out
        if interrupted:
            result = Result.interrupted
        amplitudes = np.zeros(system.ansatz.singular.count)
        return Answer(self.best, amplitudes, result, self.residual, self.points, self.history)


def probes(network: CellPolynomials) -> np.ndarray:
    """A point of each cell at which two levels are compared."""
    lower, upper = (corner[~network.hidden] for corner in network.tree.boxes)
    return lower + (upper - lower) * PROBE


def _largest(marked: np.ndarray, looked: Looked, count: int) -> np.ndarray:
    """Only so many of the cells that are marked."""
    order = np.argsort(np.where(marked, -looked.indicator, 0.0))
    few = np.zeros_like(marked)
    few[order[: max(count, 0)]] = True
    return few & marked
