"""`auto` goes by evidence: where features have found nothing that is good enough, cells are tried,
and the better answer goes on."""

import math
from collections.abc import Callable
from typing import Any, Protocol

from cordes.ansatz.build import BuiltAnsatz
from cordes.results import Result
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.solution import Solution
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver

# Ends after which another method is worth its time.
MISSED = (Result.stagnated, Result.convexity_lost)


class Way(Protocol):
    """One solve, which goes on when it is called again."""

    def __call__(self, tol: float | None, start: Weights | None) -> Answer: ...

    def extend(self) -> bool: ...


class WithRival:
    """A run, and another one by `rival` that `make` begins where the first has ended without
    success. The history says what was tried."""

    def __init__(
        self,
        run: Way,
        system: AbstractSystem,
        rival: AbstractSolver,
        make: Callable[[AbstractSolver], Way],
    ):
        self.run, self.system, self.rival, self.make = run, system, rival, make
        self.switched = self.fresh = False
        # Singular functions that were found at another answer, which was no good, do not help.
        self.origin = None if system.problem.linear else system.place
        # The answer that was not kept, and its ansatz.
        self.beaten: tuple[Answer, BuiltAnsatz] | None = None

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        answer = self._marked(self.run(tol, None if self.fresh else start))
        if tol is not None or self.switched or answer.result not in MISSED:
            return answer
        place, own = self.system.place, self.run
        self.switch()
        try:
            found = self._marked(self.run(None, None))
        except KeyboardInterrupt:
            found = answer._replace(result=Result.interrupted)
        self.beaten = answer, place
        if not _rank(found) < _rank(answer):
            self.beaten = None
            self.system.place, self.run, self.switched = place, own, False
            late = Result.interrupted if found.result is Result.interrupted else answer.result
            return answer._replace(result=late)
        return found._replace(history=[*answer.history, *found.history])

    def extend(self) -> bool:
        """A larger size of the same method, then the other one."""
        return self.run.extend() or self.switch()

    def better(self, found: Solution, certified: Callable[[Answer], Solution]) -> Solution:
        """What has the smaller bound: a smaller residual need not have it."""
        if self.beaten is None or found.converged or found.certificate is None:
            return found
        answer, self.system.place = self.beaten
        return min(found, certified(answer), key=_bound)

    def switch(self) -> bool:
        """On to the other method, once; its first solve begins anew."""
        if self.switched:
            return False
        self.system.place = self.origin or self.system.place
        self.run, self.switched, self.fresh = self.make(self.rival), True, True
        return True

    def _marked(self, answer: Answer) -> Answer:
        """With the method that found it."""
        self.fresh = False
        if not self.switched:
            return answer
        facts: dict[str, Any] = {"method": self.rival.method, "solver": self.rival.data()}
        return answer._replace(facts={**answer.facts, **facts})


def _bound(solution: Solution) -> float:
    """Of the largest error, or else of the root mean square."""
    certificate = solution.certificate
    bounds = () if certificate is None else (certificate.Linf, certificate.rms)
    return next((float(bound) for bound in bounds if bound is not None), math.inf)


def _rank(answer: Answer) -> tuple[bool, float]:
    """The smaller the better."""
    return answer.result in (*MISSED, Result.nonfinite), answer.residual
