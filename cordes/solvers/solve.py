"""`solve`: one verb over all problems and methods."""

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.build import NOTHING, Earlier, prepared
from cordes.arguments import check_arguments
from cordes.errors import CoefficientError
from cordes.gallery.names import as_problem
from cordes.problems.checks import check_unchanged
from cordes.problems.condition import warn_if_violated
from cordes.problems.features import features_of
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.runtime.clock import Clock
from cordes.runtime.compilation import Laps
from cordes.runtime.plain import plain_number, show
from cordes.runtime.progress import Progress
from cordes.runtime.signals import heeded_by_solves
from cordes.runtime.threads import share_cores
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.solution import Solution
from cordes.solvers.certified import Finish
from cordes.solvers.contest import Contest
from cordes.solvers.least_squares import LeastSquares, still_helps
from cordes.solvers.options import OPTIONAL, SOLVE_RULES, Choices, choose
from cordes.solvers.outer.early_exercise import potential_run
from cordes.solvers.outer.nonlinear import nonlinear_run
from cordes.solvers.rows.kinds import make_system
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.tolerance import reach, residual_target
from cordes.solvers.train import Budget, or_interrupted

# Below it the multiplier of A is no number.
SMALLEST_SOLVED = 1e-150


def solve(
    problem: AbstractProblem | str | Path,
    method: str | AbstractSolver = "auto",
    tol: float | None = None,
    seed: int = 0,
    multiplier: bool = True,
    start: Solution | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    certify: bool = True,
    **options: Any,
) -> Solution:
    """Solve a problem: one of `cordes.Linear`, `HJB`, `MongeAmpere`, `Transport`, a name of the
    gallery, or the path of a file. `method` is a name or a solver with its options
    (`cordes.LeastSquares`, `GaussNewton`, `Cells`, `Adam`); `auto` tries cells where features
    have found nothing that is good enough.

    `tol` bounds the certified root mean square error: features, points or training grow until
    `certificate.rms` ≤ tol; the result says if that could not be reached, or that no theorem gives
    a bound. Without it the solve ends near rounding level, or where nothing improves.
    `multiplier=False` leaves the Cordès multiplier out (the plain PINN loss). `start` continues
    from an earlier solution of the same problem. `progress=None` shows a bar where standard error
    is a terminal. The answer is certified before it is handed back; `certify=False` leaves that to
    `solution.certified` (a `tol` then only says how small the residual should be), and the result
    is `converged_uncertified` at most. `max_seconds` and Ctrl-C end the solve and its certificate:
    the best answer so far is returned, without a certificate where that was not complete.

    Options for every method: `boundary_rows="soft"` with `boundary_weight` (the paper's composite
    loss), `singular=False` (no singular functions), `inputs` (`coordinates`, `interfaces`,
    `powers`: what networks see of the interfaces), `delta` (the paper's δ). Least squares:
    `features`, `frequency`, `activation`, `oversampling` (collocation points for each feature; more
    where data are rough). Gauss–Newton: `width`, `depth`, `activation`, `points`, `steps`,
    `resample`, `momentum`. Cells (boxes in the plane): `degree`, `cells`. Adam: `width`, `depth`,
    `activation`, `learning_rate`, `points`, `epochs`, `precision`, `preset="paper"`;
    `estimator="stochastic"` takes `probes` random directions instead of all second derivatives, for
    linear problems in hundreds of dimensions.

    Nonlinear problems are solved by an outer loop over the method, of `outer_steps` at most in all:
    over all sizes of the network and all tolerances on the way to `tol`; a rival that is tried
    beside it (other inputs, another form of the equation) has as many of its own. Its `start` may
    be a solution of another problem on the same domain. `HJB`: `argmax="unscaled"` chooses controls
    without the multiplier; `outer="fixed-point"` takes the contracting fixed point instead of
    Newton's method, which otherwise takes over where Newton stalls. `MongeAmpere`: `form="convex"`
    (two dimensions), `damping=False`; `tol` bounds the certified maximum. Adam: `warm_up` epochs on
    the start, then `inner_epochs` for each outer step until `epochs` are used up; `outer="direct"`
    trains on the nonlinear residual itself.
    """
    laps, problem = Laps(), as_problem(problem)
    own: dict[str, Any] = {
        "tol": tol,
        "seed": seed,
        "multiplier": multiplier,
        "max_seconds": max_seconds,
    }
    own = {name: plain_number(value) for name, value in own.items()}
    check_arguments(SOLVE_RULES, own | {"progress": progress, "certify": certify}, OPTIONAL)
    tol, seed, multiplier, max_seconds = own.values()
    options = {name: plain_number(value) for name, value in options.items()}
    choices = choose(problem, method, start, options)
    clock = Clock(max_seconds)
    with laps, heeded_by_solves():
        with share_cores():
            _refuse_tiny(problem)
            check_unchanged(problem)
            system = make_system(problem, multiplier, choices.ansatz, _earlier(problem, start))
            warn_if_violated(problem)
            problem.warn()
            facts = _facts(choices, problem, seed=seed, multiplier=bool(multiplier), tol=tol)
            finish = Finish(problem, system, facts, clock, laps)
            # Points of the solver and cells of the certificate ask for them.
            features_of(problem)
            laps.lap("prepare")
            with Progress(f"{problem.name}: {choices.solver.method}", progress) as bar:
                budget = Budget(None, clock, seed, bar)
                run, weights = _contest(choices, system, budget, tol is not None)
                if run is None:
                    run, weights = _run(choices, system, budget, start, tol is not None)
                target = None if tol is None else residual_target(problem, multiplier, tol)
                if tol is not None and target is not None and certify:
                    ways = (run.extend, run.switch) if choices.rival else (run.extend,)
                    found = reach(tol, target, run, finish.certified, weights, *ways)
                    return finish.timed(finish.judged(found))
                answer = run(target, weights)
                if answer.result is Result.tolerance_not_reached and run.extend():
                    answer = or_interrupted(answer, functools.partial(run, target, answer.weights))
        # With all cores again, which the solver shares with the linear algebra.
        found = finish.certified(answer) if certify else finish.judged(finish.solution(answer))
        if certify and isinstance(run, Contest):
            found = run.better(found, finish.certified)
        return finish.timed(found)


def _facts(choices: Choices, problem: AbstractProblem, **asked: Any) -> dict[str, Any]:
    """What a solution says of how it was made; from the options of the ansatz a saved one is built
    again."""
    solver, outer = choices.solver, dataclasses.asdict(choices.outer)
    return {
        "method": solver.method,
        **asked,
        **dataclasses.asdict(choices.ansatz),
        "solver": solver.data(),
        **({} if problem.linear else {"outer": outer}),
    }


def _earlier(problem: AbstractProblem, start: Solution | None) -> Earlier:
    """What a linear solve takes from the ansatz of its start."""
    if start is None or not problem.linear:
        return NOTHING
    return Earlier(start.facts["richness"], fit=next(iter(start.fits), None))


def _run(
    choices: Choices,
    system: AbstractSystem,
    budget: Budget,
    start: Solution | None,
    demanding: bool,
) -> tuple[Any, Weights | None]:
    """The way to solve the problem, and the weights from which it starts. `demanding`: an error is
    asked for that must be certified."""
    if start is None and isinstance(choices.solver, LeastSquares):
        closed = potential_run(system, budget)
        if closed is not None:
            return closed, None
    if not system.problem.linear:
        run = nonlinear_run(choices.solver, system, choices.outer, budget, start, demanding)
        return run, None
    weights = None if start is None else Weights(start.network, jnp.asarray(start.amplitudes))
    return LinearRun(choices.solver, system, budget, demanding and start is None), weights


def _contest(
    choices: Choices, system: AbstractSystem, budget: Budget, demanding: bool
) -> tuple[Contest | None, None]:
    """Where `auto` may choose between cells and features."""
    if choices.rival is None:
        return None, None

    def make(solver: AbstractSolver) -> Any:
        return _run(choices._replace(solver=solver), system, budget, None, demanding)[0]

    assert isinstance(choices.solver, LeastSquares)
    return Contest(system, budget, choices.rival, choices.solver, make), None


class LinearRun:
    """One solve of a linear problem; called again with the weights that it left it goes on.
    `staged` keeps the solver to its usual size until `extend`."""

    def __init__(
        self, solver: AbstractSolver, system: AbstractSystem, budget: Budget, staged: bool
    ):
        self.solver, self.system, self.budget, self.staged = solver, system, budget, staged
        self.last: Answer | None = None

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        earlier = self.last.history if start is not None and self.last is not None else []
        usual = self.solver.confined(self.system.domain.dimension, start)
        self.staged = self.staged and usual is not self.solver
        solver = usual if self.staged else self.solver
        answer = solver.run(self.system, self.budget._replace(tol=tol), start)
        self.last = answer._replace(history=[*earlier, *answer.history])
        return self.last

    def extend(self) -> bool:
        """Allow a larger size than usual, where the last steps up helped."""
        staged, self.staged = self.staged, False
        return staged and self.last is not None and still_helps(self.last.history)


def _refuse_tiny(problem: AbstractProblem) -> None:
    """Certificates have no squares of A, but the multiplier and singular functions do."""
    if problem.linear:
        center = problem.domain.center
        # Nothing but A is compiled; operations one by one, those of f too, take half a second.
        place = jnp.asarray(center)
        A = prepared(problem, "A", lambda: np.asarray(jax.jit(lambda x: problem.at(x).A)(place)))
        if np.max(np.abs(A)) < SMALLEST_SOLVED:
            raise CoefficientError(
                f"A({show(center)}) = {show(A)} is so small that its square is zero: multiply the "
                "whole equation by a number."
            )
