"""`auto` goes by evidence: polynomials first, which show within hundredths of a second whether they
are enough; then the first levels of cells, and where these are not decisive the first features
beside them. What has come further goes on; where it ends without success the other one is tried,
and the better answer kept. The history says what was tried."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

from cordes.ansatz.ansatz import COLUMNS
from cordes.ansatz.build import BuiltAnsatz
from cordes.results import Result
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.solution import Solution
from cordes.solvers.cells.cells import Cells
from cordes.solvers.cells.way import CellsWay
from cordes.solvers.least_squares import LeastSquares
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget

# Ends after which another method is worth its time.
MISSED = (Result.stagnated, Result.convexity_lost)
# Features go on where the first ones leave so much less than the first levels of cells.
AHEAD = 0.1


class Way(Protocol):
    """One solve, which goes on when it is called again."""

    def __call__(self, tol: float | None, start: Weights | None) -> Answer: ...

    def extend(self) -> bool: ...


class Contest:
    """A run by cells, and another one by features: `make` begins a solve by a solver. The first
    call decides which of them is the run; `switch` goes on to the other one."""

    def __init__(
        self,
        system: AbstractSystem,
        budget: Budget,
        cells: Cells,
        features: LeastSquares,
        make: Callable[[AbstractSolver], Way],
    ):
        self.system, self.budget, self.make = system, budget, make
        self.cells, self.features = cells, features
        self.place = system.place
        self.current: AbstractSolver = cells
        self.run: Way | None = None
        self.switched = self.fresh = False
        self.tried: list[dict[str, Any]] = []
        # Polynomials that were not good enough, and their ansatz.
        self.polynomials: tuple[Answer, BuiltAnsatz] | None = None
        # The answer that was not kept, and its ansatz.
        self.beaten: tuple[Answer, BuiltAnsatz] | None = None

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        answer = self._first(tol) if self.run is None else None
        if answer is None:
            assert self.run is not None
            answer = self._marked(self.run(tol, None if self.fresh else start))
            answer = self._or_polynomials(answer)
        if tol is not None or self.switched or answer.result not in MISSED or self._alone:
            return answer
        place, own, current = self.system.place, self.run, self.current
        self.switch()
        assert self.run is not None
        try:
            found = self._marked(self.run(None, None))
        except KeyboardInterrupt:
            found = answer._replace(result=Result.interrupted)
        self.beaten = answer, place
        if not _rank(found) < _rank(answer):
            self.beaten = None
            self.system.place, self.run, self.current = place, own, current
            late = Result.interrupted if found.result is Result.interrupted else answer.result
            return answer._replace(result=late, history=[*answer.history, *found.history])
        return found

    def _first(self, tol: float | None) -> Answer | None:
        """The answer of a linear equation by cells, where the pilots say so."""
        if not self.system.problem.linear:
            self.run = self.make(self.cells)
            return None
        way = CellsWay(self.cells, self.system, self.budget._replace(tol=tol), None)
        # Features that know the interfaces may be far ahead of cells that are on a good way.
        alone = not self.system.problem.interfaces
        if way.polynomials() or (not way.ended and way.pilot() and (alone or way.ended)):
            self.run = self.make(self.cells)
            return self._marked(way.go_on())
        pilot, place = way.answer(), self.system.place
        self.tried = pilot.history
        self.system.place, self.current = self.place, self.features
        if not way.ended:
            few = dataclasses.replace(self.features, features=COLUMNS)
            found = few.run(self.system, self.budget._replace(tol=tol), None)
            self.tried = [*self.tried, *found.history]
            if not found.residual < AHEAD * pilot.residual:
                self.system.place, self.current = place, self.cells
                self.run = self.make(self.cells)
                answer = way.go_on()
                rest = answer.history[len(pilot.history) :]
                return self._marked(answer._replace(history=rest))
        elif self.system.problem.clock is not None:
            self.polynomials = pilot, place
        self.run, self.fresh = self.make(self.features), True
        return None

    def _or_polynomials(self, answer: Answer) -> Answer:
        """Polynomials that leave so much less than features, though not little enough: what comes
        and goes many times in a long time is nothing for features."""
        if self.polynomials is None:
            return answer
        (pilot, place), self.polynomials = self.polynomials, None
        if not pilot.residual < AHEAD * answer.residual:
            return answer
        self.system.place, self.current = place, self.cells
        self.run = self.make(self.cells)
        history = [*answer.history, pilot.history[-1]]
        return self._marked(pilot._replace(history=history))

    @property
    def _alone(self) -> bool:
        """Whether cells are nothing but the polynomials that were tried."""
        splits = self.cells.splits(self.system.problem)
        return self.current is self.features and not splits

    def extend(self) -> bool:
        """A larger size of the same method, then the other one."""
        return (self.run is not None and self.run.extend()) or self.switch()

    def better(self, found: Solution, certified: Callable[[Answer], Solution]) -> Solution:
        """What has the smaller bound: a smaller residual need not have it."""
        if self.beaten is None or found.converged or found.certificate is None:
            return found
        answer, self.system.place = self.beaten
        return min(found, certified(answer), key=_bound)

    def switch(self) -> bool:
        """On to the other method, once; its first solve begins anew."""
        if self.switched or self._alone:
            return False
        other = self.features if self.current is self.cells else self.cells
        self.system.place, self.current = self.place, other
        self.run, self.switched, self.fresh = self.make(other), True, True
        return True

    def _marked(self, answer: Answer) -> Answer:
        """With the method that found it, and what was tried before."""
        self.fresh = False
        facts: dict[str, Any] = {"method": self.current.method, "solver": self.current.data()}
        history, self.tried = [*self.tried, *answer.history], []
        return answer._replace(facts={**answer.facts, **facts}, history=history)


def _bound(solution: Solution) -> float:
    """Of the largest error, or else of the root mean square."""
    certificate = solution.certificate
    bounds = () if certificate is None else (certificate.Linf, certificate.rms)
    return next((float(bound) for bound in bounds if bound is not None), math.inf)


def _rank(answer: Answer) -> tuple[bool, float]:
    """The smaller the better."""
    return answer.result in (*MISSED, Result.nonfinite), answer.residual
