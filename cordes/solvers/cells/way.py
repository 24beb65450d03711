"""One solve of a linear equation by polynomials and cells, which can be stopped and gone on
with."""

from typing import Any

from cordes.ansatz.cells.network import CellPolynomials
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.cells.first import FirstPolynomials
from cordes.solvers.cells.levels import CellLevels
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget, Weights

MOST_LEVELS = 40
# A pilot ends after so many levels, or once a level leaves this share of the right-hand side and
# so much less than the last one.
PILOT_LEVELS, DECISIVE, FALLS = 6, 1e-2, 0.3


class CellsWay:
    """Polynomials first, where no degree or size is asked for and nothing was split yet; then cells
    on the boxes that can be cut."""

    def __init__(self, solver: Any, system: AbstractSystem, budget: Budget, start: Weights | None):
        self.solver, self.system, self.budget = solver, system, budget
        self.first: FirstPolynomials | None = None
        self.levels: CellLevels | None = None
        self.start, self.ended, self.interrupted = start, False, False
        split = start is not None and isinstance(start.network, CellPolynomials)
        if solver.begins_with_polynomials(system) and not split:
            self.first = FirstPolynomials(system, budget, start)
            # Where there are too many lines, those of a table, polynomials are given up at once.
            if solver.splits(system.problem) and not self.first.ladder.fits():
                self.first.give_up()
                self.first = None

    def polynomials(self) -> bool:
        """Whether polynomials are good enough, or all that there is."""
        if self.first is None:
            return False
        good = self.first.run() or self.first.late
        if good or not self.solver.splits(self.system.problem):
            self.ended = True
            return good
        self.first.give_up()
        return False

    def pilot(self) -> bool:
        """The first levels; whether they show that cells get there."""
        for _ in range(PILOT_LEVELS):
            if self.ended or not self._level():
                return True
            history = [each["residual"] for each in self.levels.history[-2:]]  # pyright: ignore
            scale = self.levels.looked.scale  # pyright: ignore[reportOptionalMemberAccess]
            if history[-1] < DECISIVE * scale and history[-1] < FALLS * history[0]:
                return True
        return False

    def go_on(self) -> Answer:
        """To the end."""
        for _ in range(MOST_LEVELS):
            if self.ended or not self._level():
                break
        return self.answer()

    def _level(self) -> bool:
        """One more level; False where there is none."""
        try:
            if self.levels is None:
                growth = self.solver.growth(self.system, self.start)
                self.levels = CellLevels(self.solver, self.budget, growth)
                if self.first is not None:
                    self.levels.history += self.first.history
            elif not self.levels.refine():
                self.ended = True
                return False
            self.levels.level()
        except KeyboardInterrupt:
            if self.levels is None or self.levels.best is None:
                raise
            self.interrupted = self.ended = True
        return not self.ended

    def answer(self) -> Answer:
        if self.levels is None:
            assert self.first is not None
            return self.first.answer(self.solver.small)
        answer = self.levels.answer()
        return answer._replace(result=Result.interrupted) if self.interrupted else answer

    @property
    def left(self) -> float:
        """The residual over the right-hand side."""
        if self.levels is None:
            assert self.first is not None
            return self.first.best.residual / self.first.ladder.scale
        assert self.levels.looked is not None
        return self.levels.residual / max(self.levels.looked.scale, 1e-300)
