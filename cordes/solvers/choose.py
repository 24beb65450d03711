"""`solve`: one verb over all problems and methods."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from cordes.domains.boundary_fit import Fit
from cordes.errors import unknown
from cordes.problems.condition import warn_if_violated
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.compilation import CompileTimer
from cordes.runtime.plain import plain_number
from cordes.runtime.progress import Progress
from cordes.runtime.threads import share_cores
from cordes.solutions.kinds import make_solution
from cordes.solutions.solution import Solution
from cordes.solvers.adam import PAPER, solve_adam
from cordes.solvers.answer import Answer
from cordes.solvers.gauss_newton import solve_gauss_newton
from cordes.solvers.least_squares import solve_least_squares, still_helps, usual_size
from cordes.solvers.nonlinear import NonlinearRun
from cordes.solvers.options import METHODS, check_arguments, choose_method
from cordes.solvers.stochastic import solve_stochastic
from cordes.solvers.system import Clock, System
from cordes.solvers.tolerance import reach, residual_target
from cordes.solvers.training import State
from cordes.solvers.transport import TransportSystem


def solve(
    problem: AbstractProblem,
    method: str = "auto",
    tol: float | None = None,
    seed: int = 0,
    multiplier: bool = True,
    start: Solution | None = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    certify: bool = True,
    **options: Any,
) -> Solution:
    """Solve a problem.

    `tol` bounds the certified root mean square error: features, points or training grow until
    `certificate.rms` ≤ tol; the result says if that could not be reached, or that no theorem gives
    a bound. Without it the solve ends near rounding level, or where nothing improves.
    `multiplier=False` leaves the Cordès multiplier out (the plain PINN loss). `start` continues
    from an earlier solution of the same problem. `max_seconds` and Ctrl-C return the best answer so
    far. `progress=None` shows a bar where standard error is a terminal. The answer is certified
    before it is handed back; `certify=False` leaves that to `solution.certify` (a `tol` needs
    certificates all the same).

    Options for every method: `boundary="soft"` with `boundary_weight` (the paper's composite loss),
    `singular=False` (no singular functions), `inputs` (`coordinates`, `interfaces`, `powers`: what
    networks see of the interfaces), `delta` (the paper's δ). Least squares: `features`,
    `frequency`, `activation`, `oversampling` (collocation points for each feature; more where data
    are rough). Gauss–Newton: `width`, `depth`, `activation`, `points`, `steps`, `resample`,
    `momentum`. Adam: `width`, `depth`, `activation`, `learning_rate`, `points`, `epochs`,
    `precision`, `preset="paper"`; `estimator="stochastic"` takes `probes` random directions instead
    of all second derivatives, for linear problems in hundreds of dimensions.

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
    tol, seed, max_seconds = (plain_number(value) for value in (tol, seed, max_seconds))
    options = {name: plain_number(value) for name, value in options.items()}
    chosen = choose_method(problem, method, start)
    check_arguments(problem, chosen, tol, max_seconds, start, options)
    if chosen == "adam" and options.pop("preset", None) == "paper":
        warm_up = {"HJB": {"warm_up": 0}, "MongeAmpere": {"warm_up": 1000}}
        options = {**PAPER, **warm_up.get(type(problem).__name__, {}), **options}
    clock = Clock(max_seconds)
    with CompileTimer() as timer, share_cores():
        system, settings = _system(problem, chosen, multiplier, start, options)
        warn_if_violated(problem)
        if hasattr(problem, "warn"):
            problem.warn()
        state = (
            State(start.network, jnp.asarray(start.amplitudes))
            if start is not None and problem.linear
            else None
        )
        facts = {
            "method": chosen,
            "seed": seed,
            "multiplier": bool(multiplier),
            "tol": tol,
            **settings,
        }

        def finish(answer: Answer) -> Solution:
            answer = answer._replace(
                network=distribution.local(answer.network),
                amplitudes=distribution.local(answer.amplitudes),
            )
            return make_solution(
                problem,
                system.ansatz,
                answer,
                {"certify": 0.0},
                {**facts, **answer.facts, "richness": system.richness},
            )

        with Progress(f"{problem.name}: {chosen}", progress) as bar:
            if problem.linear:
                run = LinearRun(
                    chosen,
                    system,
                    seed,
                    clock,
                    bar,
                    settings,
                    options,
                    tol is not None and start is None,
                )
            else:
                run = NonlinearRun(
                    chosen, system, seed, clock, bar, start, settings, options, tol is not None
                )
            solution = (
                finish(run(None, state))
                if tol is None
                else reach(
                    tol,
                    residual_target(problem, multiplier, tol),
                    run,
                    lambda answer: finish(answer).certified(),
                    state,
                    run.extend,
                )
            )
    if certify and solution.certificate is None:
        solution = solution.certified()
    total, certifying = clock.seconds, solution.seconds["certify"]
    return solution.replace(
        seconds={
            "total": total,
            "compile": timer.seconds,
            "solve": max(total - timer.seconds - certifying, 0.0),
            "certify": certifying,
        }
    )


def _system(
    problem: AbstractProblem, method: str, multiplier: bool, start: Solution | None, options: dict
) -> tuple[System, dict]:
    """The system, and the settings from which a saved answer rebuilds it."""
    interface_inputs = options.pop("interface_inputs", True)
    if start is not None and problem.linear:
        settings = {
            key: start.facts[key]
            for key in ("boundary", "boundary_weight", "singular", "inputs", "delta")
        }
    else:
        plain = "powers" if method == "least-squares" else "interfaces"
        if not interface_inputs:
            plain = "coordinates"
        settings = {
            "boundary": "hard",
            "boundary_weight": 100.0,
            "singular": method != "adam",
            "inputs": plain,
            "delta": 0.0,
        }
    settings |= {key: options.pop(key) for key in list(options) if key in settings}
    if settings["inputs"] not in ("coordinates", "interfaces", "powers"):
        raise unknown("inputs", str(settings["inputs"]), ["coordinates", "interfaces", "powers"])
    if start is None or not problem.linear:
        return make_system(problem, multiplier, settings, None), settings
    return make_system(
        problem, multiplier, settings, start.facts["richness"], fits=start.fits
    ), settings


def make_system(
    problem: AbstractProblem,
    multiplier: bool,
    settings: dict,
    richness: int | None,
    singular_points: list | None = None,
    fits: Sequence[Fit] = (),
) -> System:
    if isinstance(problem, Transport):
        return TransportSystem(problem, multiplier, settings["delta"])
    hard = settings["boundary"] == "hard"
    return System(
        problem,
        multiplier,
        settings["delta"],
        hard,
        settings["singular"],
        settings["inputs"],
        richness,
        singular_points,
        fits,
    )


class LinearRun:
    """One solve of a linear problem; called again with the state that it left it goes on. `staged`
    keeps the features to their usual number until `extend`."""

    def __init__(
        self,
        method: str,
        system: System,
        seed: int,
        clock: Clock,
        bar: Progress,
        settings: dict,
        options: dict,
        staged: bool,
    ):
        self.method, self.system, self.arguments, self.settings, self.options = (
            method,
            system,
            (seed, clock, bar),
            settings,
            options,
        )
        usual = usual_size(system.domain.dimension)
        self.usual = (
            usual
            if staged
            and method == "least-squares"
            and (options.get("features") or 2 * usual) > usual
            else None
        )
        self.last: Answer | None = None

    def __call__(self, tol: float | None, start: State | None) -> Answer:
        earlier = self.last.history if start is not None and self.last is not None else []
        if (
            start is not None
            and self.usual is not None
            and start.network.coefficients.shape[0] >= self.usual
        ):
            self.usual = None
        answer = self._run(tol, start)
        self.last = answer._replace(history=[*earlier, *answer.history])
        return self.last

    def extend(self) -> bool:
        """Allow more features than usual, where the last ones helped."""
        usual, self.usual = self.usual, None
        return usual is not None and self.last is not None and still_helps(self.last.history)

    def _run(self, tol: float | None, start: State | None) -> Answer:
        seed, clock, bar = self.arguments
        options = self.options if self.usual is None else {**self.options, "features": self.usual}
        soft = self.settings["boundary"] == "soft"
        extra = (
            self.system.boundary_rows(1000, seed, self.settings["boundary_weight"])
            if soft
            else None
        )
        if self.method == "least-squares":
            return solve_least_squares(
                self.system, tol, seed, clock, bar, start, extra_rows=extra, **options
            )
        if options.get("estimator") == "stochastic":
            settings = {
                "steps" if name == "epochs" else name: value
                for name, value in options.items()
                if name != "estimator"
            }
            return solve_stochastic(self.system, tol, seed, clock, bar, start, **settings)
        options = {name: value for name, value in options.items() if name != "estimator"}
        solver = solve_gauss_newton if self.method == "gauss-newton" else solve_adam
        return solver(self.system, tol, seed, clock, bar, start, extra_rows=extra, **options)


__all__ = ["METHODS", "Result", "choose_method", "make_system", "solve"]
