"""An equation in time as its theorems see it: finitely many operators L^a with right-hand sides,
one for a linear equation, at points of space and time and over all of them.

What a theorem is told of the operators speaks of space alone; what they give of an answer, ±(L^a w
- f^a - w_t), is calculated with the time.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast, final

import jax.numpy as jnp
import numpy as np

from cordes.certificates.hjb.coverage import depends_on_place
from cordes.certificates.hjb.energy import rounding_of
from cordes.certificates.residual.candidate import CHUNK, EPSILON, AbstractCandidate
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Local
from cordes.jet import Jet
from cordes.problems.coefficients import Coefficients, at_points
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.problem import AbstractProblem

# Up to this number of controls each is applied to the answer on its own, with the rounding of its
# own terms; its derivatives cost about as much as three of them.
DIRECT = 3
# Up to this number of controls each gets an enclosure.
ENCLOSED = 32
FULL_BUDGET = 4
ROUNDING_OF_EQUATIONS = 8.0


class SeenInTime(NamedTuple):
    """At points: the operators without the time, with axes (N, K, …), and what they give of the
    answer with a bound of its rounding, (N, K)."""

    local: Local
    defect: np.ndarray
    rounding: np.ndarray


@final
class OperatorsInTime:
    """The operators of a problem in time. For those who know controls it is a problem with K
    controls: K = 1 for one without."""

    def __init__(self, problem: AbstractProblem):
        self.problem, self.domain = problem, problem.domain
        self.interfaces, self.data = problem.interfaces, problem.data
        self.maximiser, self.sign = problem.maximiser, problem.sign
        self.rivals = problem.rivals
        given = problem.controls
        self.controls = np.zeros((1, 0)) if given is None else given
        self._single = given is None
        self.pairs = at_points(self.at)

    def at(self, x: Any, a: Any) -> Coefficients:
        return self.problem.at(x) if self._single else self.problem.at(x, a)

    @property
    def count(self) -> int:
        return len(self.controls)

    def of_control(self, x: np.ndarray, k: int) -> Coefficients:
        a = self.controls[k]
        found = self.pairs(x, np.broadcast_to(a, (len(x), *a.shape)))
        return Coefficients(*(np.asarray(part) for part in found))

    def local(self, x: np.ndarray) -> Local:
        """In space, for all points and all controls: one control after the other."""
        parts = [self.of_control(x, k) for k in range(self.count)]
        return self.in_space(
            Coefficients(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        )

    def in_space(self, equation: Coefficients) -> Local:
        of_space = self.problem.of_space
        return Local(of_space(equation.A), of_space(equation.b), equation.c)

    def linearise(self, k: int) -> Callable[[Any], tuple]:
        """A, b, c of one control in space, as a function of one point."""

        def coefficients(x: Any) -> tuple:
            found = self.at(x, jnp.asarray(self.controls[k]))
            return self.problem.of_space(found.A), self.problem.of_space(found.b), found.c

        return coefficients

    @functools.cached_property
    def constant(self) -> bool:
        """Whether no coefficient depends on the point."""
        if self._single:
            return self.problem.constant_coefficients
        controlled = cast(AbstractControlled, self.problem)
        given = controlled.A, controlled.b, controlled.c
        return not depends_on_place(given, self.domain.dimension, self.controls.shape[1:])


class LookedInTime:
    """An answer under the operators of a problem, at any points."""

    def __init__(self, operators: OperatorsInTime, candidate: AbstractCandidate, pilot: np.ndarray):
        self.operators, self.candidate = operators, candidate
        direct = operators.count <= DIRECT
        self.rounding = None if direct else rounding_of(candidate, pilot)

    def at(self, x: np.ndarray) -> SeenInTime:
        parts = [self._chunk(x[k : k + CHUNK]) for k in range(0, len(x), CHUNK)]
        local = Local(
            *(np.concatenate(each) for each in zip(*(p.local for p in parts), strict=True))
        )
        return SeenInTime(local, *(np.concatenate([part[k] for part in parts]) for k in (1, 2)))

    def _chunk(self, x: np.ndarray) -> SeenInTime:
        operators, found = self.operators, []
        jet = None if self.rounding is None else Jet(*map(np.asarray, self.candidate.jet(x)))
        error = None if jet is None or self.rounding is None else self.rounding.at(jet)
        for k in range(operators.count):
            equation = operators.of_control(x, k)
            A, b, c, f = equation
            if jet is None or error is None:
                value, rounding = self.candidate.applied(x, A, b, c)
            else:
                value, rounding = (
                    equation._replace(f=0.0).defect(jet),
                    _inherited(equation, jet, error),
                )
            defect = operators.sign * (value - f)
            local = operators.in_space(equation)
            found.append((*local, defect, rounding + 4 * EPSILON * np.abs(f)))
        A, b, c, defect, rounding = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return SeenInTime(Local(A, b, c), defect, rounding)


def _inherited(equation: Coefficients, jet: Jet, error: Jet) -> np.ndarray:
    """What the rounding of the derivatives makes of an operator, and its own."""
    A, b, c, _ = (np.abs(part) for part in equation)
    sizes = np.sum(A * np.abs(jet.hessian), axis=(1, 2)) + np.sum(b * np.abs(jet.gradient), axis=1)
    own = sizes + c * np.abs(jet.value)
    inherited = np.sum(A * error.hessian, axis=(1, 2)) + np.sum(b * error.gradient, axis=1)
    return inherited + c * error.value + ROUNDING_OF_EQUATIONS * EPSILON * own


@final
class CoverageInTime(AbstractCoverage):
    """The operators over all of space and time."""

    def __init__(self, operators: OperatorsInTime, points: np.ndarray):
        self.operators = operators
        self.always = " for every control" if operators.count > 1 else ""
        few = operators.count <= ENCLOSED
        functions: Sequence[Callable] = [
            operators.linearise(k) for k in range(operators.count if few else 0)
        ]
        local = operators.local(points)
        super().__init__(
            operators.domain,
            functions,
            operators.local,
            np.tile(points, (operators.count, 1)),
            local,
            operators.constant,
        )
        self.share = min(1.0, FULL_BUDGET / operators.count)

    def smallest_reaction(self) -> tuple[float, str]:
        """A lower bound of c over all points and controls, and how it is known."""
        return self._least(lambda local: local.c, lambda ball: ball.middle.c - ball.radius.c)

    def smallest_determinant(self) -> tuple[float, str]:
        """A lower bound of det A, positive or useless."""
        d = self.local.A.shape[-1]
        if d == 1:
            return self._least(
                lambda local: local.A[:, 0, 0],
                lambda ball: ball.middle.A[:, 0, 0] - ball.radius.A[:, 0, 0],
            )

        def least(local: Local) -> np.ndarray:
            return np.linalg.eigvalsh(local.A)[:, 0]

        # Weyl's inequality moves each eigenvalue by the size of the change at most.
        def product(ball: Any) -> np.ndarray:
            values = np.linalg.eigvalsh(ball.middle.A)
            reach = np.linalg.norm(ball.radius.A, axis=(1, 2))[:, None]
            lower = np.maximum(values - reach, 0.0)
            return np.prod(lower, axis=1)

        return self._least(lambda local: np.prod(np.linalg.eigvalsh(local.A), axis=1), product)

    def _least(
        self, of_local: Callable[[Local], np.ndarray], of_ball: Callable[[Any], np.ndarray]
    ) -> tuple[float, str]:
        values = of_local(self.local)
        worst = int(np.argmin(values))
        least = float(values[worst])
        spread = max(float(np.max(values)) - least, 1e-3 * abs(least), 1e-300)
        if self.constant:
            return least - 1e-12 * abs(least), "analytic"
        if not self.enclosed:
            return least, "sampled"
        found = self._supremum(
            lambda ball: -of_ball(ball),
            lambda local: -of_local(local),
            (-least, self.points[worst]),
            0.05 * spread,
            8000,
        )
        if np.isfinite(found.upper):
            return -found.upper - 1e-12 * abs(found.upper), "interval"
        return -found.attained, "sampled"
