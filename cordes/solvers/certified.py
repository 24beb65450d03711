"""From what a solver hands back to a solution with its certificate, on the clock."""

import dataclasses
from typing import Any

from cordes.certificates.certify import certify
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.clock import Clock, OutOfTimeError, deadline
from cordes.runtime.compilation import Laps
from cordes.runtime.signals import held, taken
from cordes.solutions.answer import Answer
from cordes.solutions.kinds import make_solution
from cordes.solutions.solution import Solution
from cordes.solvers.adam import Adam
from cordes.solvers.rows.system import AbstractSystem

# A residual that is rounding, relative to the data.
ROUNDING = 1e-12
PARTS = ("prepare", "compile", "solve", "certify")
# Why there is no certificate, by how the solve ended.
CUT = {
    Result.time_out: "max_seconds passed before the certificate was complete, which gives no bound "
    "unless it is: allow more time, or call solution.certify().",
    Result.interrupted: "the solve was interrupted before the certificate was complete, which "
    "gives no bound unless it is: call solution.certify().",
}


@dataclasses.dataclass(frozen=True)
class Finish:
    """Makes solutions of answers and certifies them; `laps` say where the time went."""

    problem: AbstractProblem
    system: AbstractSystem
    facts: dict[str, Any]
    clock: Clock
    laps: Laps

    def solution(self, answer: Answer) -> Solution:
        """Without a certificate, with all arrays on this process. No signal costs the answer."""
        with held():
            return self._solution(answer)

    def _solution(self, answer: Answer) -> Solution:
        self.laps.lap("solve")
        answer = answer._replace(
            network=distribution.local(answer.network),
            amplitudes=distribution.local(answer.amplitudes),
        )
        if self.problem.boundary_shape.rough is not None and answer.result is Result.converged:
            # Warned about when the problem was made: a small residual says nothing.
            answer = answer._replace(result=Result.not_certifiable)
        if self.problem.free_constant:
            answer = self.system.finished(answer)
        given = self.facts["method"] == Adam.method and self.facts["tol"] is None
        if given and answer.result in (Result.converged, Result.stagnated):
            # A training of given length ends where it was told to.
            answer = answer._replace(result=Result.finished)
        facts = {**self.facts, **answer.facts, "richness": self.system.richness}
        solution = make_solution(self.problem, self.system.ansatz, answer, {}, facts)
        if answer.result is Result.stagnated and solution.relative_residual <= ROUNDING:
            # Where the lift solves the equation, nothing is left but rounding.
            return solution.replace(result=Result.converged)
        return solution

    def certified(self, answer: Answer) -> Solution:
        """With its certificate and the result that this allows; without one, and with a fact that
        says why (`uncertified`), where the time was up or somebody interrupted: then the answer is
        kept as it is."""
        solution = self.solution(answer)
        if answer.result is Result.interrupted:
            return self._cut(solution, answer.result)
        try:
            with deadline(self.clock):
                certificate = certify(self.problem, solution)
        except OutOfTimeError:
            return self._cut(solution, Result.time_out)
        except KeyboardInterrupt:
            return self._cut(solution, Result.interrupted)
        solution = self.judged(solution.replace(certificate=certificate))
        self.laps.lap("certify")
        return solution

    def judged(self, solution: Solution) -> Solution:
        """With the result that its certificate, or its lack, allows."""
        with held():
            return solution.judged()

    def timed(self, solution: Solution) -> Solution:
        """With the seconds of the whole solve up to now. An interrupt that came too late for any
        pause is still told of."""
        self.laps.lap("solve")
        if taken():
            solution = solution.replace(result=Result.interrupted)
        return solution.replace(seconds=self.laps.seconds(*PARTS))

    def _cut(self, solution: Solution, result: Result) -> Solution:
        self.laps.lap("certify")
        return cut_short(solution, result)


def cut_short(solution: Solution, result: Result) -> Solution:
    """An answer whose certificate was not completed, and why."""
    return solution.replace(result=result, facts={**solution.facts, "uncertified": CUT[result]})
