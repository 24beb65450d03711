"""Nonlinear problems: the outer loop with the inner solver of each method, and the direct rival."""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from cordes.ansatz.networks.network import MANY
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.runtime.signals import held, rearm
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.solution import Solution
from cordes.solvers.adam import Adam, train_directly
from cordes.solvers.candidates import input_choices
from cordes.solvers.cells.cells import Cells
from cordes.solvers.gauss_newton import GaussNewton
from cordes.solvers.least_squares import LeastSquares
from cordes.solvers.options import OuterOptions
from cordes.solvers.outer.inner import Demands, FeatureSteps, inner_of, outer_steps
from cordes.solvers.outer.newton import Inner, NewtonLoop, Outer
from cordes.solvers.rows.system import AbstractSystem, JetAt
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget

# Ends after which another form of the equation is worth a try.
FAILURES = (Result.stagnated, Result.convexity_lost, Result.tolerance_not_reached)
# Source densities of transport problems that span more than this are reached in stages, each with
# at most so many steps.
WIDE, SHARES, STAGE_STEPS = 30.0, (0.25, 0.5, 0.75), 6
# The smallest eigenvalue of D²u may be below zero by this share of the mean of f^(1/d) before
# convexity counts as lost.
LOST = 0.05


def nonlinear_run(
    solver: AbstractSolver,
    system: AbstractSystem,
    options: OuterOptions,
    budget: Budget,
    start: Solution | None,
    demanding: bool,
) -> "TrainedRun | NonlinearRun":
    """The way to solve a nonlinear problem: without an outer loop where Adam is told so, or where
    policies and Gauss–Newton steps alternate on fresh points, which finitely many controls in many
    dimensions allow. `demanding`: an error is asked for that must be certified."""
    continued = _continued(solver, system, start)
    if options.outer == "direct":
        assert isinstance(solver, Adam)
        directly = functools.partial(train_directly, solver, system, choices=options.choices)
        return TrainedRun(directly, budget, continued)
    problem = system.problem
    if (
        isinstance(solver, GaussNewton)
        and solver.resample is not False
        and system.hard
        and options.outer == "newton"
        and problem.domain.dimension >= MANY
        and problem.controls is not None
        and problem.maximiser is None
    ):
        return TrainedRun(functools.partial(solver.run_dual, system), budget, continued)
    return NonlinearRun(solver, system, options, budget, start, demanding)


class TrainedRun:
    """One solve without an outer loop: `train` takes a budget and weights to start from."""

    def __init__(
        self,
        train: Callable[[Budget, Weights | None], Answer],
        budget: Budget,
        continued: Weights | None,
    ):
        self.train, self.budget, self.continued = train, budget, continued

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        return self.train(self.budget._replace(tol=tol), start or self.continued)

    def extend(self) -> bool:
        return False


class NonlinearRun:
    """One solve of a nonlinear problem; called again with a smaller tolerance it goes on where it
    was."""

    def __init__(
        self,
        solver: AbstractSolver,
        system: AbstractSystem,
        options: OuterOptions,
        budget: Budget,
        start: Solution | None,
        demanding: bool,
    ):
        problem = system.problem
        self.solver, self.system, self.budget, self.start = solver, system, budget, start
        self.points = start.points if start is not None else 0
        self.stages = _stages(problem, options.continuation)
        self.choices = dict(options.choices)
        if isinstance(solver, Cells) and problem.has_convex_form:
            # It converges from anywhere, also where D²u is not bounded.
            self.choices = {"form": "convex"} | self.choices
        # Networks beyond the usual size wait until a certificate has shown that they are needed. A
        # map, whose boundary condition is part of the loss, has no usual size.
        self.staged = demanding and problem.takes_boundary_values
        large = demanding or not problem.takes_boundary_values
        self.demands = Demands(system.options.singular, large, self.staged)
        self.options = options
        self.inner = self._fresh_inner()
        self.record: list[dict] = []
        self.outer = Outer(
            # No convex function takes impossible boundary values: a short run shows it.
            2 if problem.impossible else outer_steps(solver, options),
            options.damping,
            self.choices,
            options.outer == "fixed-point",
            small=solver.small,
        )

    def _fresh_inner(self) -> Inner:
        dimension = self.system.domain.dimension
        return inner_of(self.solver, dimension, self.budget, self.demands, self.options)

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        self.budget = self.budget._replace(tol=tol)
        if start is not None:
            jet, continued = self.system.jet_of(start), start
        else:
            jet = None if self.start is None else self.start.jet
            continued = _continued(self.solver, self.system, self.start)
        history = self.record if start is not None else []
        answer = self._with_rival(self._solve(jet, continued, history), jet)
        self.record = answer.history
        return answer

    def extend(self) -> bool:
        """Allow larger networks than usual, where there are any and steps are left."""
        staged, self.staged = self.staged, False
        if (
            not staged
            or not isinstance(self.inner, FeatureSteps)
            or self._steps_left(self.record) < 1
        ):
            return False
        return self.inner.extend(self.system)

    def _steps_left(self, history: list[dict]) -> int:
        """Of the steps that the user allows in all; the first entry is the start, and the stages on
        the way to a wide density are not counted."""
        taken = sum("share" not in step for step in history)
        return self.outer.steps - max(taken - (len(history) == taken), 0)

    def _solve(self, jet: JetAt | None, continued: Weights | None, history: list[dict]) -> Answer:
        history = list(history)
        if jet is None and self.stages:
            jet, history = self._continuation()
        if jet is None and isinstance(self.solver, LeastSquares):
            jet, continued, history = self._tournament(self.solver)
        loop = self._loop(self.inner, history)
        answer = loop.run(jet, continued)
        answer = answer._replace(points=answer.points or self.points)
        # No signal costs an answer that is there.
        with held():
            return self._judged(self.system.finished(answer), loop.fresh.x)

    def _continuation(self) -> tuple[JetAt | None, list[dict]]:
        """Easier densities first, each with a small network, from the last one's answer."""
        history, jet = [], None
        for share in self.stages:
            inner = self.inner if self.solver.trains else self._fresh_inner()
            if isinstance(inner, FeatureSteps):
                inner.confined = True
            system = self.system.with_problem(self.system.problem.blended(share))
            outer, budget = self.outer._replace(steps=STAGE_STEPS), self.budget._replace(tol=None)
            loop = NewtonLoop(system, inner, outer, budget, history)
            jet = system.jet_of(loop.run(jet))
            history = [{**step, "share": step.get("share", share)} for step in loop.history]
        return jet, history

    def _with_rival(self, answer: Answer, jet: JetAt | None) -> Answer:
        """Where the cofactors of a Monge–Ampère equation in the plane lead nowhere, its convex form
        is tried, and the better answer kept."""
        problem = self.system.problem
        # Cells have begun with it.
        open_form = problem.has_convex_form and "form" not in self.choices
        if (
            not open_form
            or self.solver.trains
            or answer.result not in FAILURES
            or self.budget.clock.over
            or problem.impossible
            or self.staged
        ):
            return answer
        place = self.system.place
        self.choices["form"] = "convex"
        self.inner = self._fresh_inner()
        try:
            rival = self._solve(jet, None, [])
        except KeyboardInterrupt:
            rival, answer = None, answer._replace(result=Result.interrupted)
        if rival is not None and _rank(rival) < _rank(answer):
            steps = [{**step, "form": "convex"} for step in rival.history]
            return rival._replace(history=[*answer.history, *steps])
        del self.choices["form"]
        self.system.place = place
        return answer

    def _loop(self, inner: Inner, history: list[dict] | None = None) -> NewtonLoop:
        outer = self.outer._replace(steps=self._steps_left(history or []))
        return NewtonLoop(self.system, inner, outer, self.budget, history)

    def _tournament(self, solver: LeastSquares) -> tuple[JetAt | None, Weights | None, list[dict]]:
        """Which inputs suit the solution is seen at the end of the loop only, since early iterates
        are rougher: with interfaces, a small network of each kind runs through it, and the one with
        the smallest residual goes on."""
        choices, dimension = input_choices(self.system), self.system.domain.dimension
        if len(choices) == 1:
            return None, None, []
        trials: list[tuple[Answer, FeatureSteps]] = []
        for inputs in choices:
            inner = FeatureSteps(solver, dimension, self.budget, self.demands, [inputs])
            inner.confined = True
            try:
                trials.append((self._loop(inner).run(None), inner))
            except KeyboardInterrupt:
                if not trials:
                    raise
                rearm()
                break
            if trials[-1][0].result is Result.interrupted:
                # Whoever goes on from the winner must stop as well.
                rearm()
                break
            if self.budget.clock.over:
                break
        answer, inner = min(
            trials,
            key=lambda trial: trial[0].residual if np.isfinite(trial[0].residual) else np.inf,
        )
        inner.confined = False
        self.inner, self.points = inner, answer.points
        return self.system.jet_of(answer), answer.weights, answer.history

    def _judged(self, answer: Answer, points: np.ndarray) -> Answer:
        """An answer that should be convex and is not has lost its way, whatever its residual."""
        problem = self.system.problem
        if not problem.convex or answer.result not in (Result.converged, *FAILURES):
            return answer
        if problem.impossible:
            return answer._replace(result=Result.convexity_lost)
        hessian = self.system.jet_of(answer)(points).hessian
        if not float(np.min(np.linalg.eigvalsh(np.asarray(hessian)))) < -LOST * problem.curvature:
            return answer
        return answer._replace(result=Result.convexity_lost)


def _rank(answer: Answer) -> tuple[bool, bool, float]:
    """The smaller the better."""
    lost = answer.result is Result.convexity_lost
    return answer.result in FAILURES, lost, answer.residual


def _stages(problem: AbstractProblem, wanted: bool | None) -> tuple[float, ...]:
    """Shares of the way to data that span many orders."""
    return SHARES if wanted or (wanted is None and problem.spread >= WIDE) else ()


def _continued(
    solver: AbstractSolver, system: AbstractSystem, start: Solution | None
) -> Weights | None:
    """The weights of the start, where the same method can train them further; of any other start
    only the jet is used."""
    if start is None or not solver.trains or start.facts["method"] != solver.method:
        return None
    if (
        len(start.problem.interfaces) != len(system.problem.interfaces)
        or len(start.amplitudes) != system.ansatz.singular.count
    ):
        return None
    return Weights(start.network, jnp.asarray(start.amplitudes))
