"""Nonlinear problems: the outer loop with the inner solver of each method, and the direct rival."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cordes.ansatz.networks.network import MANY
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.results import Result
from cordes.runtime.progress import Progress
from cordes.solutions.solution import Solution
from cordes.solvers.adam import solve_adam
from cordes.solvers.answer import Answer
from cordes.solvers.direct import solve_direct
from cordes.solvers.dual import solve_dual
from cordes.solvers.gauss_newton import solve_gauss_newton
from cordes.solvers.inner import FeatureSteps, TrainedSteps
from cordes.solvers.least_squares import input_choices
from cordes.solvers.newton import Inner, JetAt, NewtonLoop, Outer
from cordes.solvers.system import Clock, System
from cordes.solvers.training import State

# Outer steps, by method; Adam takes as many as its epochs allow.
STEPS = {"least-squares": 40, "gauss-newton": 8}
INNER_EPOCHS = 1000
# Residuals, relative to the right-hand side, that count as a success: those of the methods for
# linear equations.
SMALL = {"least-squares": 1e-3, "gauss-newton": 1e-2, "adam": 0.1}
# Gauss–Newton steps within one outer step, after the first.
INNER_STEPS = 10
# Ends after which another form of the equation is worth a try.
FAILURES = (Result.stagnated, Result.convexity_lost, Result.tolerance_not_reached)
# Source densities of transport problems that span more than this are reached in stages, each with
# at most so many steps.
WIDE, SHARES, STAGE_STEPS = 30.0, (0.25, 0.5, 0.75), 6
# The smallest eigenvalue of D²u may be below zero by this share of the mean of f^(1/d) before
# convexity counts as lost.
LOST = 0.05


class NonlinearRun:
    """One solve of a nonlinear problem; called again with a smaller tolerance it goes on where it
    was."""

    def __init__(
        self,
        method: str,
        system: System,
        seed: int,
        clock: Clock,
        bar: Progress,
        start: Solution | None,
        settings: dict,
        options: dict,
        demanding: bool,
    ):
        self.method, self.system, self.seed, self.clock, self.bar = method, system, seed, clock, bar
        self.stages = self._stages(system.problem, options.pop("continuation", None))
        self.start, self.points = start, start.points if start is not None else 0
        # Networks beyond the usual size wait until a certificate has shown that they are needed.
        self.staged = demanding and not isinstance(system.problem, Transport)
        self.record: list[dict] = []
        self.kind = options.pop("outer", "newton")
        self.choices: dict[str, Any] = {"form": options.pop("form")} if "form" in options else {}
        if options.pop("argmax", "scaled") == "unscaled":
            self.choices["scaled"] = False
        damped, steps = options.pop("damping", True), options.pop("outer_steps", None)
        extra = (
            system.boundary_rows(1000, seed, settings["boundary_weight"])
            if settings["boundary"] == "soft"
            else None
        )
        self.options = options
        if self.kind == "direct":
            for name in ("warm_up", "inner_epochs"):
                options.pop(name, None)
            return
        if method == "gauss-newton" and self._many_dimensions(extra):
            self.kind = "dual"
            return
        self.inner: Inner
        if method == "least-squares":
            self.features = lambda inputs: FeatureSteps(
                system,
                seed,
                clock,
                extra,
                settings["singular"],
                demanding=demanding or isinstance(system.problem, Transport),
                inputs=inputs,
                staged=self.staged,
                **options,
            )
            self.inner = self.features(None)
        elif method == "gauss-newton":
            later = {
                **options,
                "steps": min(options.get("steps") or INNER_STEPS, INNER_STEPS),
                "extra_rows": extra,
            }
            self.inner = TrainedSteps(
                solve_gauss_newton, seed, clock, bar, {**options, "extra_rows": extra}, later
            )
        else:
            epochs, inner = options.pop("epochs", 5000), options.pop("inner_epochs", INNER_EPOCHS)
            warm_up = min(options.pop("warm_up", INNER_EPOCHS), epochs)
            shared = {**options, "extra_rows": extra}
            self.inner = TrainedSteps(
                solve_adam,
                seed,
                clock,
                bar,
                {**shared, "epochs": warm_up},
                {**shared, "epochs": min(inner, epochs)},
            )
            steps = steps or max((epochs - warm_up) // inner, 1)
        if system.problem.impossible:
            # No convex function takes the boundary values: a short run shows it.
            steps = 2
        self.outer = Outer(
            steps or STEPS[method],
            damped,
            self.choices,
            self.kind == "fixed-point",
            small=SMALL[method],
        )

    def _many_dimensions(self, extra: Any) -> bool:
        """Whether policies and Gauss–Newton steps alternate on fresh points, without an outer loop:
        finitely many controls in many dimensions."""
        problem, wanted = (
            self.system.problem,
            self.options.get("resample") is not False and extra is None and self.kind == "newton",
        )
        if (
            not wanted
            or problem.domain.dimension < MANY
            or getattr(problem, "controls", None) is None
            or problem.maximiser is not None
        ):
            return False
        self.options.pop("resample", None)
        return True

    @staticmethod
    def _stages(problem: AbstractProblem, wanted: bool | None) -> tuple[float, ...]:
        """Shares of the way to a source density that spans many orders."""
        if (
            not isinstance(problem, Transport)
            or wanted is False
            or (wanted is None and problem.spread < WIDE)
        ):
            return ()
        return SHARES

    def __call__(self, tol: float | None, state: State | None) -> Answer:
        if self.kind == "direct":
            continued = state or self._continued()
            return solve_direct(
                self.system,
                tol,
                self.seed,
                self.clock,
                self.bar,
                continued,
                choices=self.choices,
                **self.options,
            )
        if self.kind == "dual":
            return solve_dual(
                self.system,
                tol,
                self.seed,
                self.clock,
                self.bar,
                state or self._continued(),
                **self.options,
            )
        jet: JetAt | None = None
        if state is not None:
            ansatz = self.system.ansatz
            jet, continued = lambda x: ansatz.jet(state.network, state.amplitudes, x), state  # pyright: ignore
        else:
            jet, continued = None if self.start is None else self.start.jet, self._continued()
        answer = self._with_rival(
            self._solve(tol, jet, continued, self.record if state is not None else []), tol, jet
        )
        self.record = answer.history
        return answer

    def extend(self) -> bool:
        """Allow larger networks than usual, where there are any and steps are left."""
        staged, self.staged = self.staged, False
        if (
            not staged
            or self.kind in ("direct", "dual")
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

    def _solve(
        self, tol: float | None, jet: JetAt | None, continued: State | None, history: list[dict]
    ) -> Answer:
        history = list(history)
        if jet is None and self.stages:
            jet, history = self._continuation()
        if jet is None and self.method == "least-squares":
            jet, continued, history = self._tournament(tol)
        loop = self._loop(self.inner, history)
        answer = loop.run(tol, jet, continued)
        return self._judged(
            self.system.finished(answer._replace(points=answer.points or self.points)), loop.fresh.x
        )

    def _continuation(self) -> tuple[JetAt, list[dict]]:
        """Easier densities first, each with a small network, from the last one's answer."""
        problem, history, jet = self.system.problem, [], None
        for share in self.stages:
            inner = self.features(None) if self.method == "least-squares" else self.inner
            if isinstance(inner, FeatureSteps):
                inner.confined = True
            self.system.problem = problem.blended(share)
            try:
                loop = NewtonLoop(
                    self.system,
                    inner,
                    self.outer._replace(steps=STAGE_STEPS),
                    self.seed,
                    self.clock,
                    self.bar,
                    history,
                )
                answer = loop.run(None, jet)
            finally:
                self.system.problem = problem
            history = [{**step, "share": step.get("share", share)} for step in loop.history]
            jet = loop.jet_of(answer)
        return jet, history  # pyright: ignore[reportReturnType]

    def _with_rival(self, answer: Answer, tol: float | None, jet: JetAt | None) -> Answer:
        """Where the cofactors of a Monge–Ampère equation in the plane lead nowhere, its convex form
        is tried, and the better answer kept."""
        open_form = (
            self.system.problem.has_convex_form
            and "form" not in self.choices
            and self.method == "least-squares"
        )
        if (
            not open_form
            or answer.result not in FAILURES
            or self.clock.over
            or self.system.problem.impossible
            or self.staged
        ):
            return answer
        place = self.system.place
        self.choices["form"] = "convex"
        self.inner = self.features(None)
        rival = self._solve(tol, jet, None, [])
        if (rival.result in FAILURES, rival.result is Result.convexity_lost, rival.residual) < (
            True,
            answer.result is Result.convexity_lost,
            answer.residual,
        ):
            return rival._replace(
                history=[*answer.history, *({**step, "form": "convex"} for step in rival.history)]
            )
        del self.choices["form"]
        self.system.place = place
        return answer

    def _loop(self, inner: Inner, history: list[dict] | None = None) -> NewtonLoop:
        outer = self.outer._replace(steps=self._steps_left(history or []))
        return NewtonLoop(self.system, inner, outer, self.seed, self.clock, self.bar, history)

    def _tournament(self, tol: float | None) -> tuple[JetAt | None, State | None, list[dict]]:
        """Which inputs suit the solution is seen at the end of the loop only, since early iterates
        are rougher: with interfaces, a small network of each kind runs through it, and the one with
        the smallest residual goes on."""
        choices = input_choices(self.system)
        if len(choices) == 1:
            return None, None, []
        trials: list[tuple[Answer, FeatureSteps]] = []
        for inputs in choices:
            inner = self.features([inputs])
            inner.confined = True
            trials.append((self._loop(inner).run(tol, None), inner))
            if self.clock.over or trials[-1][0].result is Result.interrupted:
                break
        answer, inner = min(
            trials,
            key=lambda trial: trial[0].residual if np.isfinite(trial[0].residual) else np.inf,
        )
        inner.confined = False
        self.inner, ansatz = inner, self.system.ansatz
        self.points = answer.points
        return (
            lambda x: ansatz.jet(answer.network, answer.amplitudes, x),
            State(answer.network, jnp.asarray(answer.amplitudes)),
            answer.history,
        )

    def _continued(self) -> State | None:
        """The weights of the start, where the same method can train them further; of any other
        start only the jet is used."""
        start = self.start
        if start is None or self.method == "least-squares" or start.facts["method"] != self.method:
            return None
        if (
            len(start.problem.interfaces) != len(self.system.problem.interfaces)
            or len(start.amplitudes) != self.system.ansatz.singular.count
        ):
            return None
        return State(start.network, jnp.asarray(start.amplitudes))

    def _judged(self, answer: Answer, points: np.ndarray) -> Answer:
        """A Monge–Ampère answer that is not convex has lost its way, whatever its residual."""
        problem = self.system.problem
        if not problem.convex or answer.result not in (Result.converged, *FAILURES):
            return answer
        if problem.impossible:
            return answer._replace(result=Result.convexity_lost)
        hessian = self.system.ansatz.jet(answer.network, answer.amplitudes, points).hessian
        if not float(np.min(np.linalg.eigvalsh(np.asarray(hessian)))) < -LOST * problem.curvature:
            return answer
        return answer._replace(result=Result.convexity_lost)
