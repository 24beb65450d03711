"""The kinds of answers, and which belongs to a problem by what that says about itself."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from cordes.ansatz.ansatz import Ansatz
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.problem import AbstractProblem
from cordes.solutions.answer import Answer
from cordes.solutions.in_time import SolutionInTime
from cordes.solutions.solution import AbstractSolution
from cordes.solutions.transport import TransportSolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
class PlainSolution(AbstractSolution):
    """The answer of an equation without controls, for a function with given boundary values."""


@final
class PolicySolution(AbstractSolution):
    """The answer of an equation with controls: it knows the best one at each point."""

    problem: AbstractControlled

    def policy(self, x: Any) -> Any:
        """The best control at points (..., d), shape (..., *control)."""
        flat, shape = self._asked(x)
        return self.player_at(flat, shape, 0)

    def opponent(self, x: Any) -> Any:
        """The best opponent at points (..., d), shape (..., *opponent), of a game."""
        flat, shape = self._asked(x)
        return self.player_at(flat, shape, 1)

    def plot_policy(self, path: str | Path | None = None) -> "Figure":
        """Which control is best where."""
        from cordes.reports.plots import plot_policy

        return plot_policy(self, path)


def make_solution(
    problem: AbstractProblem,
    ansatz: Ansatz,
    answer: Answer,
    seconds: dict[str, float],
    facts: dict[str, Any],
) -> AbstractSolution:
    """The solution of a problem from what a solver hands back."""
    class_ = PlainSolution if problem.controls is None else PolicySolution
    if problem.clock is not None:
        class_ = SolutionInTime
    if not problem.takes_boundary_values:
        class_ = TransportSolution
    if problem.free_constant and (mean := facts.get("mean")):
        ansatz = ansatz.lowered(mean)
    return class_(
        problem=problem,
        ansatz=ansatz,
        network=answer.network,
        amplitudes=np.asarray(answer.amplitudes),
        result=answer.result,
        residual_rms=answer.residual,
        points=answer.points,
        history=answer.history,
        seconds=seconds,
        facts=facts,
    )
