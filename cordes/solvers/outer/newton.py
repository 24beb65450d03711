"""The outer loop for nonlinear equations: freeze the equation at the state, solve the linear
equation that is left with any inner solver, repeat.

Each step is solved for the new iterate and never for the increment: what an early iterate lost to
rounding is forgotten. For Hamilton–Jacobi–Bellman equations this is policy iteration; for
Monge–Ampère it is Newton's method with cofactors, damped so that a convex iterate is followed by a
convex one. The loop knows neither the equation nor the solver: it sees a problem that can be
frozen, and a solver that takes frozen rows to zero and may be able to refine.
"""

import contextlib
from typing import Any, NamedTuple, Protocol

import numpy as np

from cordes.results import Result
from cordes.runtime.signals import held
from cordes.solutions.answer import Answer
from cordes.solvers.rows.system import AbstractSystem, JetAt
from cordes.solvers.train import Budget, Weights, late_end

# Lengths of a step that are tried when the full one loses convexity or makes things worse.
LENGTHS = (1.0, 0.5, 0.25, 0.125)
# An outer residual within this factor of what the linear solve left is due to the network, not to
# the linearisation.
LIMITED = 2.0
# A step must reduce the residual by this factor, or it counts as stalled.
STALLED, PATIENCE = 0.9, 2
# A larger network is not asked for while steps reduce the residual by this factor.
PROGRESS = 0.5
# A control that moves by less than this share of the range of all controls has not changed.
UNCHANGED = 1e-6


class Inner(Protocol):
    """A solver of frozen linear equations. Without a tolerance a residual of the share `rounding`
    of the right-hand side is nothing but rounding to it."""

    @property
    def rounding(self) -> float: ...

    def solve(self, system: AbstractSystem, start: Weights | None) -> Answer: ...
    def refine(self, system: AbstractSystem) -> bool:
        """Be more accurate from now on; False when there is nothing left to try."""
        ...


class Outer(NamedTuple):
    """How the loop goes on: the largest number of steps, whether steps are damped, what the problem
    is told when it is frozen, and whether the contracting fixed point takes the place of Newton's
    method from the start (`fixed_point`), which it always does where that stalls."""

    steps: int = 30
    damped: bool = True
    choices: dict[str, Any] = {}  # noqa: RUF012
    fixed_point: bool = False
    # A residual below this share of the right-hand side is a success where no tolerance was asked
    # for.
    small: float = 1e-3


class Iterate(NamedTuple):
    """A state with its residual on fresh points, the size of the right-hand side there, its policy,
    and its smallest eigenvalue (Monge–Ampère)."""

    answer: Answer | None
    jet: JetAt
    place: Any
    residual: float
    scale: float
    policy: np.ndarray | None
    convexity: float | None
    epsilon: float | None = None

    @property
    def state(self) -> Weights | None:
        return None if self.answer is None else self.answer.weights


class NewtonLoop:
    """See the module."""

    def __init__(
        self,
        system: AbstractSystem,
        inner: Inner,
        outer: Outer,
        budget: Budget,
        history: list[dict] | None = None,
    ):
        """`history` is that of a loop that is continued."""
        self.system, self.inner, self.outer, self.budget = system, inner, outer, budget
        self.problem = system.problem
        self.fresh = system.fresh_points(budget.seed)
        self.history = history if history is not None else []
        self.contracting = outer.fixed_point

    def run(self, start: JetAt | None, continued: Weights | None = None) -> Answer:
        """From a state given by its jet, or from the problem's own start, until the residual meets
        the tolerance, is at rounding level, or nothing helps."""
        best: Iterate | None = None
        result: Result | None = None
        try:
            current = best = self._start(start, continued)
            stalled = 0
            for _ in range(self.outer.steps):
                if self._done(best):
                    break
                began = self.budget.clock.seconds
                found = self._step(current)
                lasted = self.budget.clock.seconds - began
                self._record(current, found)
                best = found if found.residual < best.residual or best.answer is None else best
                result = self._ended(found, lasted)
                if result is not None:
                    break
                stalled = stalled + 1 if found.residual > STALLED * current.residual else 0
                limited = self._limited(current, found)
                current = found
                if not (limited or stalled >= PATIENCE) or self._done(best):
                    continue
                if (not limited and self._fall_back()) or self.inner.refine(self.system):
                    stalled, current = 0, best
                elif stalled >= PATIENCE or (
                    limited and stalled and self.history[-1].get("changed") == 0
                ):
                    # The same controls give the same linear equation, and the same network the same
                    # answer.
                    break
        except KeyboardInterrupt:
            if best is None or best.answer is None:
                raise
            result = Result.interrupted
        return self._answer(best, result)

    def _ended(self, found: Iterate, lasted: float) -> Result | None:
        """Why the loop should stop now, if it should: also where there is no time for another step
        like the last."""
        assert found.answer is not None
        if found.answer.result in (Result.interrupted, Result.nonfinite):
            return found.answer.result
        clock = self.budget.clock
        late = not self._done(found) and not clock.allows(lasted)
        return Result.time_out if clock.over or late else None

    def _limited(self, current: Iterate, found: Iterate) -> bool:
        """Whether the network limits the residual and not the linearisation. One that limits a step
        may still do for the next, as long as steps help: early iterates are rougher than the
        solution."""
        assert found.answer is not None
        return PROGRESS * current.residual < found.residual <= LIMITED * found.answer.residual

    # Steps ----------------------------------------------------------------------------------------

    def _start(self, start: JetAt | None, continued: Weights | None) -> Iterate:
        if start is not None:
            # Weights to continue from are an answer, which no signal may cost.
            with held() if continued is not None else contextlib.nullcontext():
                current = self._iterate(None, start)
            if continued is not None:
                answer = Answer(*continued, Result.converged, current.residual, 0, [])
                current = current._replace(answer=answer)
        else:
            self.system.freeze(None)
            answer = self.inner.solve(self.system, None)
            current = self._iterate(answer, self.system.jet_of(answer))
        if not self.history:
            self._record(None, current)
        return current

    def _step(self, current: Iterate) -> Iterate:
        """One linear solve, or a few with shorter steps; if none is acceptable, the one with the
        smallest residual."""
        trials: list[Iterate] = []
        damped = self.outer.damped and current.convexity is not None
        for length in LENGTHS if damped else LENGTHS[:1]:
            self._freeze(current.jet, length)
            answer = self.inner.solve(self.system, current.state)
            found = self._iterate(answer, self.system.jet_of(answer))
            trials.append(found)
            if (
                self._acceptable(current, found, answer)
                or self.budget.clock.over
                or answer.result is Result.interrupted
            ):
                return found
        return min(
            trials, key=lambda trial: trial.residual if np.isfinite(trial.residual) else np.inf
        )

    def _acceptable(self, current: Iterate, found: Iterate, answer: Answer) -> bool:
        if not np.isfinite(found.residual):
            return False
        if current.convexity is None or found.convexity is None:
            return True
        limited = found.residual <= LIMITED * answer.residual
        return limited or (
            found.residual < current.residual and found.convexity >= min(0.0, current.convexity)
        )

    def _freeze(self, jet: JetAt, length: float = 1.0) -> None:
        choices = dict(self.outer.choices)
        if self.contracting:
            choices["contracting"] = True
        if length != 1.0:
            choices["damping"] = length
        self.system.freeze(jet, **choices)

    def _fall_back(self) -> bool:
        """Newton's method stalls: the contracting fixed point, where the problem has one, converges
        from anywhere."""
        if self.contracting or not self.problem.contracting:
            return False
        self.contracting = self.problem.contraction() < 1
        return self.contracting

    # Measures -------------------------------------------------------------------------------------

    def _iterate(self, answer: Answer | None, jet: JetAt) -> Iterate:
        """The residual of the nonlinear equation, scaled as the rows are, on fresh points."""
        x = self.fresh.x
        at = jet(x)
        residual, scale = self.system.measure(self.fresh, jet, at, self.outer.choices)
        policy = self.problem.policy(x, at)
        convexity = epsilon = None
        if self.problem.convex and np.all(np.isfinite(at.hessian)):
            eigenvalues = np.linalg.eigvalsh(at.hessian)
            convexity = float(np.min(eigenvalues))
            epsilon = cofactor_epsilon(eigenvalues) if convexity > 0 else None
        return Iterate(answer, jet, self.system.place, residual, scale, policy, convexity, epsilon)

    def _done(self, best: Iterate) -> bool:
        target = self.inner.rounding * best.scale if self.budget.tol is None else self.budget.tol
        return best.answer is not None and best.residual <= target

    def _record(self, before: Iterate | None, found: Iterate) -> None:
        facts: dict[str, Any] = {"outer": len(self.history), "residual": found.residual}
        facts["seconds"] = self.budget.clock.seconds
        if found.answer is not None:
            facts |= {"linear": found.answer.residual, "size": found.answer.parameters}
        controls = self.problem.controls
        if controls is not None and before is not None and before.policy is not None:
            # Controls of a continuum always move a little.
            moved = np.abs(found.policy - before.policy) > UNCHANGED * np.ptp(controls, axis=0)
            facts["changed"] = float(np.mean(np.any(moved.reshape(len(moved), -1), axis=1)))
        if found.convexity is not None:
            facts["convexity"] = found.convexity
        if found.epsilon is not None:
            facts["epsilon"] = found.epsilon
        if self.contracting:
            facts["contracting"] = True
        self.history.append(facts)
        self.budget.progress.update(step=len(self.history) - 1, residual=found.residual)

    def _answer(self, best: Iterate, result: Result | None) -> Answer:
        assert best.answer is not None
        self.system.place = best.place
        result = result or late_end(best.residual, self.budget.tol, self.outer.small * best.scale)
        return best.answer._replace(result=result, residual=best.residual, history=self.history)


def cofactor_epsilon(eigenvalues: np.ndarray) -> float:
    """The smallest Cordès ε of cof(D²u) over points, from the eigenvalues (N, d) of D²u: those of
    the cofactors are in the ratios of 1/λ."""
    inverse = 1 / eigenvalues
    ratios = np.sum(inverse, axis=1) ** 2 / np.sum(inverse**2, axis=1)
    return float(np.min(ratios)) - (eigenvalues.shape[1] - 1)
