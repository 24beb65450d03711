"""The Cordès condition: how near A is to a multiple of the identity, in both cases of the paper's
definition.

Without lower-order terms ε(x) = (tr A)²/|A|² - (d - 1). With them, for a parameter λ > 0 that is
chosen here, ε(x) = (tr A + c/λ)² / (|A|² + |b|²/2λ + c²/λ²) - d. The condition holds if ε is
positive everywhere. In two dimensions without lower-order terms every elliptic A satisfies it; in
three and more it can fail.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from cordes.errors import OptionError
from cordes.problems.condition import (
    NegativeReaction,
    best_lambda,
    cordes_multiplier,
    epsilon_at,
    negative_reaction,
)
from cordes.problems.problem import AbstractProblem

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

    def __str__(self) -> str:
        verdict = "satisfied" if self.satisfied else "VIOLATED"
        best = f", best λ = {self.lambda_:.4g}" if self.lambda_ is not None else ""
        low, high = self.multiplier_range
        point = ", ".join(f"{value:.4g}" for value in self.worst_point)
        negative = f". {self.negative}" if self.negative is not None else ""
        return (
            f"Cordès condition {verdict}: ε = {self.epsilon:.4g} ({self.source}){best}, worst at "
            f"({point}); multiplier in [{low:.4g}, {high:.4g}]{negative}"
        )


def check(problem: AbstractProblem) -> Condition:
    """Measure the Cordès condition of a problem at interior and boundary points that no solver
    uses.

    For an `HJB` problem ε is the smallest over all controls, with one λ for all. The linear
    equation behind a `MongeAmpere` problem depends on the answer: pass a `Solution`, and the
    condition is that of the cofactors of its Hessian.
    """
    from cordes.solutions.solution import Solution

    if isinstance(problem, Solution):
        return _check_solution(problem) if not problem.problem.linear else check(problem.problem)
    if not problem.linear and problem.convex:
        raise OptionError(
            "The condition is that of the cofactors of D²u, so it depends on the answer: use "
            "cordes.check(solution)."
        )
    points = _points(problem.domain)
    if not problem.linear:
        # Many controls are seen at fewer points each.
        points = points[:: -(-len(points) * min(len(problem.controls), 64) // PAIRS)]
    A, b, c, _ = problem.family(points)
    lambda_ = best_lambda(A, b, c) if problem.has_drift or problem.has_reaction else None
    epsilon = epsilon_at(A, b, c, lambda_)
    worst = int(np.argmin(epsilon))
    multiplier = cordes_multiplier(A)
    smallest, source, place = float(epsilon[worst]), "sampled", points[worst % len(points)]
    if problem.epsilon is not None:
        problem.check_claimed_epsilon(smallest, place)
        smallest, source = problem.epsilon, "analytic"
    elif problem.linear and problem.constant_coefficients:
        source = "analytic"
    elif problem.linear:
        smallest, source, place = _covered(
            problem,
            problem.linearise,
            problem.coefficients,
            points,
            (A, b, c),
            lambda_,
            smallest,
            place,
        )
    elif problem.maximiser is None and len(problem.controls) <= ENCLOSED:
        smallest, source, place = _covered_controls(problem, points, lambda_)
    negative = negative_reaction(problem.domain, points, c)
    return Condition(
        smallest,
        smallest > 0,
        lambda_,
        place,
        (float(multiplier.min()), float(multiplier.max())),
        source,
        negative,
    )


def _points(domain: Any) -> np.ndarray:
    """Interior points, and points on the boundary and the corners, a hair inside, so that a
    coefficient need not be defined on the boundary itself."""
    interior = domain.interior_points(SAMPLES, seed=31, kind="sobol")
    center = np.asarray(domain.center)
    boundary, _ = domain.boundary_points(SAMPLES // 4, seed=32)
    points = np.concatenate([interior, center + (1 - 1e-9) * (boundary - center)])
    if domain.vertices is not None:
        points = np.concatenate([points, center + (1 - 1e-9) * (domain.vertices - center)])
    return points


def _check_solution(solution: Any) -> Condition:
    """The condition of the linear equation that a nonlinear one is, frozen at its answer."""
    problem, points = solution.problem, _points(solution.problem.domain)
    A, b, c, _ = problem.coefficients(points, solution.jet(points))
    lambda_ = best_lambda(A, b, c) if problem.has_drift or problem.has_reaction else None
    epsilon = epsilon_at(A, b, c, lambda_)
    worst, multiplier = int(np.argmin(epsilon)), cordes_multiplier(A)
    smallest = float(epsilon[worst])
    return Condition(
        smallest,
        smallest > 0,
        lambda_,
        points[worst],
        (float(multiplier.min()), float(multiplier.max())),
        "sampled",
    )


def _covered_controls(
    problem: AbstractProblem, points: np.ndarray, lambda_: float | None
) -> tuple[float, str, np.ndarray]:
    """The worst of the controls, each over the whole domain."""
    found = []
    for a in problem.controls:

        def local(x: np.ndarray, a: np.ndarray = a) -> Any:
            return problem.pairs(x, np.broadcast_to(a, (len(x), *a.shape)))

        A, b, c, _ = local(points)
        epsilon = epsilon_at(A, b, c, lambda_)
        worst = int(np.argmin(epsilon))
        linearise = functools.partial(lambda a, x: problem.at(x, jnp.asarray(a)), a)
        found.append(
            _covered(
                problem,
                linearise,
                local,
                points,
                (A, b, c),
                lambda_,
                float(epsilon[worst]),
                points[worst],
            )
        )
    sources = {source for _, source, _ in found}
    smallest, _, place = min(found, key=lambda each: each[0])
    return smallest, "interval" if sources == {"interval"} else "sampled", place


def _covered(
    problem: AbstractProblem,
    linearise: Callable,
    coefficients: Callable,
    points: np.ndarray,
    local: tuple,
    lambda_: float | None,
    sampled: float,
    place: np.ndarray,
) -> tuple[float, str, np.ndarray]:
    """ε over the whole domain by interval arithmetic, where that comes close enough: a lower bound
    that no point between the samples can undercut.

    ε is a function of the contraction of the classical theorems: ε = 1 - s² with lower-order terms,
    and ε = d/(1 + ρ'²/(d - 1)) - (d - 1) without.
    """
    # Imported here, because the certificates need the best λ from this module.
    from cordes.certificates.theorems.contraction import Coverage
    from cordes.certificates.theorems.energy import Local, TraceSplit, Weighted

    d = problem.domain.dimension
    if d == 1 and lambda_ is None:
        return 1.0, "analytic", place
    coverage = Coverage(
        problem.domain,
        lambda x: linearise(x)[:3],
        lambda x: Local(*coefficients(x)[:3]),
        points,
        Local(*local),
        False,
    )
    scheme = (
        TraceSplit()
        if lambda_ is None
        else Weighted(lambda_, (1 / d, 1.0, 2 * lambda_, lambda_**2))
    )
    found = coverage.contraction(scheme, np.eye(d), TOLERANCE)
    epsilon = (
        d / (1 + found.value**2 / (d - 1)) - (d - 1) if lambda_ is None else 1 - found.value**2
    )
    # A violation between the samples is reported even where the search did not finish; rounding
    # must not make the sampled value look better.
    return (
        (min(epsilon, sampled), found.source, found.point)
        if found.source == "interval" or epsilon < sampled
        else (sampled, "sampled", place)
    )
