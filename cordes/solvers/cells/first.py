"""A linear equation by polynomials, before anything else is tried."""

import math
from typing import Any

import numpy as np

from cordes.ansatz.cells.pieces import Pieces
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.cells.smooth import FittedPolynomials, Ladder, plain_place
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget, Weights, late_end


class FirstPolynomials:
    """Larger and larger degrees, as long as it is worth it. While they are tried, the ansatz of the
    system is theirs; `give_up` takes it back."""

    def __init__(self, system: AbstractSystem, budget: Budget, start: Weights | None = None):
        self.system, self.budget, self.before = system, budget, system.place
        system.place = plain_place(system)
        self.ladder = Ladder(system, budget.seed)
        if start is not None and isinstance(start.network, Pieces):
            self.ladder.go_on_from(start.network)
        self.history: list[dict[str, Any]] = []
        self.late = self.interrupted = False
        self._lasted = 0.0

    def run(self) -> bool:
        """Whether they are good enough."""
        target = self.budget.tol or 0.0
        try:
            while self.step().residual > target:
                if not (self.ladder.promising(target) and self._has_time() and self.ladder.rise()):
                    break
        except KeyboardInterrupt:
            if self.ladder.best is None:
                raise
            self.interrupted = True
        return self.ladder.good or self.best.residual <= target or self.interrupted

    def step(self) -> FittedPolynomials:
        """One fit."""
        clock = self.budget.clock
        began = clock.seconds
        fitted = self.ladder.fit()
        self._lasted = clock.seconds - began
        degree = max(fitted.network.degrees)
        facts = {"cells": len(fitted.network.boxes[0]), "degree": degree}
        facts |= {"residual": fitted.residual, "seconds": clock.seconds}
        self.history.append(facts)
        self.budget.progress.update(degree=degree, residual=fitted.residual)
        return fitted

    def _has_time(self) -> bool:
        # A degree that is a third higher takes about six times as long.
        self.late = self.budget.clock.over or not self.budget.clock.allows(6 * self._lasted)
        return not self.late

    @property
    def best(self) -> FittedPolynomials:
        assert self.ladder.best is not None
        return self.ladder.best

    def give_up(self) -> None:
        self.system.place = self.before

    def answer(self, small: float) -> Answer:
        best, tol = self.best, self.budget.tol
        result = late_end(best.residual, tol, small * self.ladder.scale)
        if not math.isfinite(best.residual):
            result = Result.nonfinite
        elif self.late and result is not Result.converged:
            result = Result.time_out
        if self.interrupted:
            result = Result.interrupted
        facts = {"singular": False}
        given = np.asarray(best.amplitudes), result, best.residual, best.points, self.history
        return Answer(best.network, *given, facts)
