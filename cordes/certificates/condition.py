"""The Cordès condition: how near A is to a multiple of the identity, in both cases of the paper's
definition.

Without lower-order terms ε(x) = (tr A)²/|A|² - (d - 1). With them, for a parameter λ > 0 that is
chosen here, ε(x) = (tr A + c/λ)² / (|A|² + |b|²/2λ + c²/λ²) - d. The condition holds if ε is
positive everywhere. In two dimensions without lower-order terms every elliptic A satisfies it; in
three and more it can fail.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cordes.certificates.residual.measured import with_edge
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local, TraceSplit, Weighted
from cordes.domains.domain import AbstractDomain
from cordes.errors import OptionError
from cordes.gallery.names import as_problem
from cordes.problems.coefficients import Coefficients
from cordes.problems.condition import (
    NegativeReaction,
    best_lambda,
    cordes_multiplier,
    epsilon_at,
    negative_reaction,
)
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.runtime.blocks import with_matrices
from cordes.solutions.solution import Solution

SAMPLES = 8192
# How close interval arithmetic must come to the worst sample, relative to the distance of the
# contraction from one.
TOLERANCE = 1e-4
PAIRS = 1 << 16
# Up to so many controls of a control problem are covered one by one.
ENCLOSED = 8


@dataclass(frozen=True)
class Condition:
    """What `check` found. `source` is `analytic` (constant coefficients, or the user's own bound)
    `interval` (a lower bound over the whole domain, by interval arithmetic) or `sampled`: true at
    the sampled points only. `negative` says where c < 0, if it is anywhere."""

    epsilon: float
    satisfied: bool
    lambda_: float | None
    worst_point: np.ndarray
    multiplier_range: tuple[float, float]
    source: str
    negative: NegativeReaction | None = None

    def _repr_html_(self) -> str:
        # Pages are made of these.
        from cordes.reports.pages.notebook import notebook_html

        return notebook_html(self)

    def __str__(self) -> str:
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        best = ""
        if self.lambda_ is not None:
            best = f", best λ = {self.lambda_:.4g}" if self.satisfied else ", whatever λ"
        low, high = self.multiplier_range
        point = ", ".join(f"{value:.4g}" for value in self.worst_point)
        negative = f". {self.negative}" if self.negative is not None else ""
        return (
            f"Cordès condition {verdict}: ε = {self.epsilon:.4g} ({self.source}){best}, worst at "
            f"({point}); multiplier in [{low:.4g}, {high:.4g}]{negative}"
        )


class Worst(NamedTuple):
    """The smallest ε, how it is known, and where it is."""

    epsilon: float
    source: str
    point: np.ndarray


class Sampled(NamedTuple):
    """The equations of a problem at points, perhaps several at each, with the λ that is best for
    all, and ε."""

    points: np.ndarray
    local: Local
    lambda_: float | None
    epsilon: np.ndarray

    @property
    def worst(self) -> Worst:
        least = int(np.argmin(self.epsilon))
        return Worst(float(self.epsilon[least]), "sampled", self.points[least % len(self.points)])

    def condition(self, domain: AbstractDomain, worst: Worst) -> Condition:
        (epsilon, source, point), multiplier = worst, cordes_multiplier(self.local.A)
        reach = float(multiplier.min()), float(multiplier.max())
        negative = negative_reaction(domain, self.points, self.local.c)
        return Condition(epsilon, epsilon > 0, self.lambda_, point, reach, source, negative)


def check(given: AbstractProblem | Solution | str | Path) -> Condition:
    """Measure the Cordès condition of a problem at interior and boundary points that no solver
    uses.

    The problem may be a name of the gallery or a path. For an `HJB` problem ε is the smallest over
    all controls, with one λ for all. The linear equation behind a `MongeAmpere` problem depends on
    the answer: pass a `Solution`, and the condition is that of the cofactors of its Hessian.
    """
    if isinstance(given, Solution):
        return checked(given.problem) if given.problem.linear else _check_solution(given)
    return checked(as_problem(given))


@functools.singledispatch
def checked(problem: AbstractProblem) -> Condition:
    """The condition of one kind of problem."""
    raise OptionError(
        f"The Cordès condition is not known for problems of type {type(problem).__name__}: "
        "register it, with cordes.certificates.condition.checked.register."
    )


@checked.register(Linear)
@checked.register(Parabolic)
def _linear(problem: Linear | Parabolic) -> Condition:
    points = _points(problem.domain)
    seen = _sampled(problem, points, problem.family(points))
    worst = _claimed(problem, seen.worst)
    if worst is None and problem.constant_coefficients:
        worst = seen.worst._replace(source="analytic")
    elif worst is None:

        def linearise(x: Any) -> Coefficients:
            return problem.measured(problem.linearise(x))

        def coefficients(x: np.ndarray) -> Coefficients:
            return problem.measured(problem.coefficients(x))

        worst = _covered(problem.domain, linearise, coefficients, seen)
    return seen.condition(problem.domain, worst)


@checked.register
def _hjb(problem: AbstractControlled) -> Condition:
    points = _points(problem.domain)
    # Many controls are seen at fewer points each.
    points = points[:: -(-len(points) * min(len(problem.controls), 64) // PAIRS)]
    seen = _sampled(problem, points, problem.family(points))
    worst = _claimed(problem, seen.worst) or seen.worst
    if problem.epsilon is None and problem.maximiser is None and len(problem.controls) <= ENCLOSED:
        worst = _covered_controls(problem, points, seen.lambda_)
    return seen.condition(problem.domain, worst)


@checked.register
def _obstacle(problem: Obstacle) -> Condition:
    return checked(problem.base_problem)


@checked.register(MongeAmpere)
@checked.register(Transport)
def _depends_on_the_answer(problem: AbstractProblem) -> Condition:
    raise OptionError(
        "The condition is that of the cofactors of D²u, so it depends on the answer: use "
        "cordes.check(solution)."
    )


def _check_solution(solution: Solution) -> Condition:
    """The condition of the linear equation that a nonlinear one is, frozen at its answer."""
    problem, points = solution.problem, _points(solution.problem.domain)
    seen = _sampled(problem, points, problem.coefficients(points, solution.jet(points)))
    return replace(seen.condition(problem.domain, seen.worst), negative=None)


def _points(domain: AbstractDomain) -> np.ndarray:
    count = with_matrices(SAMPLES, domain.dimension)
    interior = domain.interior_points(count, seed=31, kind="sobol")
    return with_edge(domain, interior, domain.boundary_points(max(1, count // 4), seed=32)[0])


def _sampled(problem: AbstractProblem, points: np.ndarray, equations: Coefficients) -> Sampled:
    local = Local(*problem.measured(equations)[:3])
    lambda_ = best_lambda(*local) if problem.measures_lower_order else None
    return Sampled(points, local, lambda_, epsilon_at(*local, lambda_))


def _claimed(problem: AbstractProblem, worst: Worst) -> Worst | None:
    """The bound that the user vouches for, if there is one and no point contradicts it."""
    if problem.epsilon is None:
        return None
    problem.check_claimed_epsilon(worst.epsilon, worst.point)
    return Worst(problem.epsilon, "analytic", worst.point)


def _covered_controls(
    problem: AbstractControlled, points: np.ndarray, lambda_: float | None
) -> Worst:
    """The worst of the controls, each over the whole domain."""
    found = []
    for a in problem.controls:

        def coefficients(x: np.ndarray, a: np.ndarray = a) -> Coefficients:
            return problem.measured(problem.pairs(x, np.broadcast_to(a, (len(x), *a.shape))))

        local = Local(*coefficients(points)[:3])
        linearise = functools.partial(
            lambda a, x: problem.measured(problem.at(x, jnp.asarray(a))), a
        )
        seen = Sampled(points, local, lambda_, epsilon_at(*local, lambda_))
        found.append(_covered(problem.domain, linearise, coefficients, seen))
    sources = {each.source for each in found}
    smallest = min(found, key=lambda each: each.epsilon)
    return smallest._replace(source="interval" if sources == {"interval"} else "sampled")


def _covered(
    domain: AbstractDomain, linearise: Callable, coefficients: Callable, seen: Sampled
) -> Worst:
    """ε over the whole domain by interval arithmetic, where that comes close enough: a lower bound
    that no point between the samples can undercut.

    ε is a function of the contraction of the classical theorems: ε = 1 - s² with lower-order terms,
    and ε = d/(1 + ρ'²/(d - 1)) - (d - 1) without.
    """
    d, lambda_, worst = domain.dimension, seen.lambda_, seen.worst
    if d == 1 and lambda_ is None:
        return Worst(1.0, "analytic", worst.point)

    def values(x: np.ndarray) -> Local:
        return Local(*coefficients(x)[:3])

    coverage = Coverage(domain, lambda x: linearise(x)[:3], values, seen.points, seen.local, False)
    if lambda_ is None:
        found = coverage.contraction(TraceSplit(), np.eye(d), TOLERANCE)
        epsilon = d / (1 + found.value**2 / (d - 1)) - (d - 1)
    else:
        scheme = Weighted(lambda_, (1 / d, 1.0, 2 * lambda_, lambda_**2))
        found = coverage.contraction(scheme, np.eye(d), TOLERANCE)
        epsilon = 1 - found.value**2
    # A violation between the samples is reported even where the search did not finish; rounding
    # must not make the sampled value look better.
    if found.source == "interval" or epsilon < worst.epsilon:
        return Worst(min(epsilon, worst.epsilon), found.source, found.point)
    return worst
