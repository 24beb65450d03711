"""Inner solvers of the outer loop: what each method does with one frozen linear equation after the
other."""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.network import CellPolynomials
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.adam import Adam
from cordes.solvers.candidates import GROWTH, CandidateKind, first_candidates, waves
from cordes.solvers.cells.cells import Cells
from cordes.solvers.cells.first import FirstPolynomials
from cordes.solvers.cells.levels import CellLevels
from cordes.solvers.cells.smooth import ROUNDING as LEAST
from cordes.solvers.gauss_newton import GaussNewton
from cordes.solvers.least_squares import (
    ROUNDING,
    LeastSquares,
    Search,
    stage_widths,
    usual_size,
)
from cordes.solvers.options import OuterOptions
from cordes.solvers.outer.newton import Inner
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights

# Features of a higher frequency than this share of their number per direction are not resolved; a
# frequency is raised further if that helps so much.
RESOLVED, HELPS = 0.8, 0.7
# Gauss–Newton steps within one outer step, after the first.
INNER_STEPS = 10
# How often curves at which the equation changes are followed.
FOLLOWS = 12


class Demands(NamedTuple):
    """What a run asks of its inner solver: whether singular functions may be added, whether a
    tolerance or the equation may take twice the usual size, and whether sizes beyond the usual one
    wait until `extend` is called."""

    singular: bool
    demanding: bool
    staged: bool


class FeatureSteps:
    """Least squares. One kind of random features serves all steps of one size; the network grows
    when it, and not the linearisation, limits the residual: most steps are taken with small
    networks. When it cannot grow any more, singular functions are tried (two dimensions).
    `confined` forbids to grow."""

    def __init__(
        self,
        solver: LeastSquares,
        dimension: int,
        budget: Budget,
        demands: Demands,
        inputs: list[str] | None = None,
    ):
        """`inputs` are those that compete at the start."""
        self.solver, self.budget = solver, budget
        self.widths = stage_widths(dimension, solver.features, None, demands.demanding)
        self.width = self.widths.pop(0)
        usual = usual_size(dimension)
        self.reserve = [width for width in self.widths if demands.staged and width > usual]
        self.widths = [width for width in self.widths if width not in self.reserve]
        self.kind: CandidateKind | None = None
        self.grown, self.stages = False, 0
        self.singular, self.inputs, self.confined = demands.singular, inputs, False
        self.followed = 0

    @property
    def rounding(self) -> float:
        return ROUNDING

    def solve(self, system: AbstractSystem, start: Weights | None) -> Answer:
        search = Search(self.solver, system, None, self.budget.seed)
        rows = search.rows(self.width)
        for kind in self._choices(search):
            search.attempt(rows, self.width, kind)
            if search.done or self.budget.clock.over:
                break
        assert search.best is not None
        self.kind, self.grown = search.kind, False
        return search.answer(Result.converged, [])

    def _choices(self, search: Search) -> Iterator[CandidateKind]:
        """Frequencies and inputs that compete now; each choice sees what the last one gave."""
        given = self.solver.frequency
        if self.kind is None:
            yield from first_candidates(search, given, self.inputs)
            # Later on what is rough may be the state alone, which waves would follow for ever.
            yield from waves(search, given)
        elif self.grown and given is None:
            yield self.kind.raised()
            yield self.kind
            if self.stages == 1 and search.kind == self.kind:
                # The start may have been rougher than the solution, so that the frequency may fall
                # once; later it can only rise.
                yield self.kind.raised(1 / GROWTH)
        else:
            yield self.kind
            return
        # Oscillating solutions need more than one stage can guess: on as long as it helps, up to
        # what so many features can resolve.
        limit, residual = RESOLVED * self.width ** (1 / search.system.domain.dimension), np.inf
        while (
            given is None
            and search.kind.frequency >= search.highest
            and search.residual < HELPS * residual
        ):
            kind, residual = search.kind.raised(), search.residual
            if kind.frequency > limit:
                break
            yield kind

    def refine(self, system: AbstractSystem) -> bool:
        if self.confined:
            return False
        if self.followed < FOLLOWS and system.follow():
            self.followed += 1
            return True
        if self.widths:
            self.width, self.grown, self.stages = self.widths.pop(0), True, self.stages + 1
            return True
        if self.singular and system.find_singular():
            self.singular = False
            return True
        return False

    def extend(self, system: AbstractSystem) -> bool:
        """On to the sizes that were kept back, if there are any."""
        self.widths, self.reserve = [*self.widths, *self.reserve], []
        return bool(self.widths) and self.refine(system)


class CellSteps:
    """Polynomials, whose degree rises as long as that is worth it; then cells: the tree of one step
    serves the next, and is refined where the last one left most."""

    def __init__(self, solver: Cells, budget: Budget, singular: bool):
        """`singular`: corners may have singular functions, once the equation there is known."""
        self.solver, self.budget, self.singular = solver, budget, singular
        self.first: FirstPolynomials | None = None
        self.levels: CellLevels | None = None

    @property
    def rounding(self) -> float:
        """A larger degree costs hardly anything."""
        return ROUNDING if self.levels is not None else LEAST

    def solve(self, system: AbstractSystem, start: Weights | None) -> Answer:
        if self.levels is None and self.first is None:
            self._begin(system, start)
        if self.levels is None:
            return self._polynomials(system)
        self.levels.growth.system = system
        looked = self.levels.level()
        network, points = self.levels.growth.network, self.levels.points
        assert network is not None
        none = np.zeros(system.ansatz.singular.count)
        return Answer(network, none, Result.converged, looked.residual, points, [])

    def _begin(self, system: AbstractSystem, start: Weights | None) -> None:
        split = start is not None and isinstance(start.network, CellPolynomials)
        if self.solver.begins_with_polynomials(system) and not split:
            self.first = FirstPolynomials(system, self.budget, start)
        else:
            self._split(system, start)

    def _split(self, system: AbstractSystem, start: Weights | None) -> None:
        growth = self.solver.growth(system, start)
        self.levels = CellLevels(self.solver, self.budget, growth)

    def _polynomials(self, system: AbstractSystem) -> Answer:
        assert self.first is not None
        self.first.ladder.renew()
        fitted = self.first.step()
        facts = {"singular": False}
        none = np.asarray(fitted.amplitudes)
        network, residual, points = fitted.network, fitted.residual, fitted.points
        return Answer(network, none, Result.converged, residual, points, [], facts)

    def refine(self, system: AbstractSystem) -> bool:
        if self.levels is None and self.first is not None:
            ladder, target = self.first.ladder, self.budget.tol or 0.0
            if ladder.promising(target) and ladder.rise():
                return True
            if ladder.good or not self.solver.splits(system.problem):
                return False
            self.first.give_up()
            self._split(system, None)
            return True
        if self.levels is None:
            return False
        growth = self.levels.growth
        # Where a determinant is given the frozen matrices degenerate at corners.
        corners = self.singular and not system.problem.convex and growth.at_corners()
        if corners and not np.any(growth.kinds.active) and system.find_singular():
            growth.use(system)
        return self.levels.refine()


class TrainedSteps:
    """Gauss–Newton or Adam: the network that one step leaves is where the next one starts. There is
    always more to train."""

    def __init__(self, first: AbstractSolver | None, later: AbstractSolver, budget: Budget):
        """`first` is the solver of the start; without one, the start is a fresh network as `later`
        makes it."""
        self.first, self.later, self.budget = first, later, budget._replace(tol=None)

    @property
    def rounding(self) -> float:
        return ROUNDING

    def solve(self, system: AbstractSystem, start: Weights | None) -> Answer:
        solver = self.first if start is None else self.later
        if solver is not None:
            return solver.run(system, self.budget, start)
        assert isinstance(self.later, Adam)
        plain = dataclasses.replace(self.later, precision="float64")
        weights = plain.weights(system, self.budget, None)
        return Answer(*weights, Result.converged, math.inf, 0, [])

    def refine(self, system: AbstractSystem) -> bool:
        return True


def inner_of(
    solver: AbstractSolver, dimension: int, budget: Budget, demands: Demands, options: OuterOptions
) -> Inner:
    """What a method does with one frozen equation after the other."""
    match solver:
        case LeastSquares():
            return FeatureSteps(solver, dimension, budget, demands)
        case Cells():
            return CellSteps(solver, budget, demands.singular)
        case GaussNewton():
            steps = min(solver.steps or INNER_STEPS, INNER_STEPS)
            first, later = solver, dataclasses.replace(solver, steps=steps)
        case Adam():
            warm_up = min(options.warm_up, solver.epochs)
            first = dataclasses.replace(solver, epochs=warm_up) if warm_up else None
            later = dataclasses.replace(solver, epochs=min(options.inner_epochs, solver.epochs))
        case _:
            raise NotImplementedError(f"{type(solver).__name__} has no steps of an outer loop.")
    return TrainedSteps(first, later, budget)


def outer_steps(solver: AbstractSolver, options: OuterOptions) -> int:
    """How many steps the loop takes at most: what the user says, else what is usual for the method;
    Adam takes as many as its epochs allow."""
    if options.outer_steps is not None:
        return options.outer_steps
    if isinstance(solver, Adam):
        rest = solver.epochs - min(options.warm_up, solver.epochs)
        return max(rest // options.inner_epochs, 1)
    assert solver.outer_steps is not None
    return solver.outer_steps
