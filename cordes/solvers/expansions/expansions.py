"""Expansions: sums of polynomials, functions of corners, and poles and logarithms in holes, for
domains of the plane without a distance function. Boundary values are met by rows."""

from collections.abc import Mapping
from typing import ClassVar

from cordes.arguments import Rule, whole
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.expansions.ladder import ExpansionLadder
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights

# BasisSizes of the basis that are tried one after the other.
LEVELS, MOST_LEVELS = 8, 20
# A size that leaves more than this share of the error is the last but so many.
HELPS, PATIENCE = 0.7, 2


class Expansions(AbstractSolver):
    """Bases of so many `levels` (None: 8), each larger than the one before, until the error that
    residual and boundary values leave is at most the tolerance, or nothing improves. For linear
    equations in the plane on domains that are not convex."""

    levels: int | None = None

    method: ClassVar[str] = "expansions"
    trains: ClassVar[bool] = False
    singular: ClassVar[bool] = True
    inputs: ClassVar[str] = "coordinates"
    outer_steps: ClassVar[int | None] = 40
    small: ClassVar[float] = 1e-3
    rules: ClassVar[Mapping[str, Rule]] = {"levels": whole(1, MOST_LEVELS)}

    @staticmethod
    def serves(problem: AbstractProblem) -> bool:
        """Whether a problem is one for expansions."""
        return not problem.domain.convex

    def refuse(self, problem: AbstractProblem, others: frozenset[str]) -> None:
        if not self.serves(problem):
            raise OptionError(
                "method = 'expansions' is for domains of the plane that are not convex: on "
                f"{problem.domain!r} boundary values are exact with the other methods. Leave the "
                "method out."
            )
        if problem.interfaces:
            raise OptionError(
                "On domains that are not convex answers are smooth inside: coefficients that jump "
                "or bend across an interface are not solved there yet. Smooth them, or take a "
                "convex domain."
            )

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        ladder = ExpansionLadder(system, budget)
        late, failures = False, 0
        try:
            for level in range(self.levels or LEVELS):
                if late := not budget.clock.allows(ladder.expected(level)):
                    break
                before = ladder.error
                ladder.step(level)
                failures = 0 if ladder.error < HELPS * before else failures + 1
                late = budget.clock.over
                if late or ladder.good or failures >= PATIENCE or ladder.full(level + 1):
                    break
        except KeyboardInterrupt:
            if ladder.best is None:
                raise
            return ladder.answer(Result.interrupted)
        if late and not ladder.good:
            return ladder.answer(Result.time_out)
        if ladder.good or (budget.tol is None and ladder.relative <= self.small):
            return ladder.answer(Result.converged)
        missed = Result.stagnated if ladder.relative > self.small else Result.tolerance_not_reached
        return ladder.answer(missed)
