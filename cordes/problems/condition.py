"""The Cordès condition at points: ε, the best λ, the multiplier, and where c < 0.

Without lower-order terms ε(x) = (tr A)²/|A|² - (d - 1). With them, for a parameter λ > 0,
ε(x) = (tr A + c/λ)² / (|A|² + |b|²/2λ + c²/λ²) - d. `cordes.check` looks at a whole domain.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from cordes.domains.constants import first_eigenvalue
from cordes.domains.domain import AbstractDomain
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import with_matrices
from cordes.runtime.plain import show


class CordesConditionWarning(UserWarning):
    """The Cordès condition is violated: the problem is solved, but the paper's theory promises
    nothing."""


class NegativeReaction(NamedTuple):
    """The smallest c < 0 at the sampled points, where it is, and a lower bound of the first
    eigenvalue of -Δ in the domain."""

    value: float
    point: np.ndarray
    eigenvalue: float

    def __str__(self) -> str:
        return (
            f"c is negative: c = {self.value:.4g} at x = {show(self.point)}. The equation is "
            "A:D²u + b·∇u - cu = f, and its theory wants c ≥ 0: with c < 0 the maximum principle "
            "fails, and a solution may not exist or not be the only one. A bound of the error is "
            "then to be had only where -c is small (with A = I: below the first eigenvalue of "
            f"the domain, which is at least {self.eigenvalue:.4g}). If your equation has + cu, "
            "change the sign of c."
        )


def cordes_multiplier(A: Any, delta: float = 0.0) -> Any:
    """γ = tr A / |A|² of matrices (..., d, d) of NumPy or JAX: it brings γA as near to the identity
    as a scalar can. The paper adds a small δ to the denominator."""
    return A.trace(axis1=-2, axis2=-1) / ((A**2).sum(axis=(-2, -1)) + delta)


def epsilon_at(A: np.ndarray, b: np.ndarray, c: np.ndarray, lambda_: float | None) -> np.ndarray:
    """ε at each point; `lambda_=None` is the case b = c = 0."""
    d = A.shape[-1]
    trace, square = np.trace(A, axis1=-2, axis2=-1), np.sum(A**2, axis=(-2, -1))
    if lambda_ is None:
        return trace**2 / square - (d - 1)
    with np.errstate(over="ignore"):
        # Infinite where lambda is large enough, and then c does not count.
        weight = np.square(np.float64(lambda_))
    whole = square + np.sum(b**2, axis=-1) / (2 * lambda_) + c**2 / weight
    return (trace + c / lambda_) ** 2 / whole - d


def best_lambda(A: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """The λ with the largest ε over all points: a scan over 16 decades around the natural scale,
    then a bounded search."""
    lower_order = np.median(np.abs(c)) + np.median(np.linalg.norm(b, axis=-1)) ** 2 + 1e-3
    scale = float(lower_order) / float(np.median(np.trace(A, axis1=-2, axis2=-1)))

    def worst(logarithm: float) -> float:
        return -float(np.min(epsilon_at(A, b, c, scale * np.exp(logarithm))))

    grid = np.linspace(-18, 18, 145)
    start = grid[int(np.argmin([worst(value) for value in grid]))]
    found = minimize_scalar(
        worst, bounds=(start - 0.3, start + 0.3), method="bounded", options={"xatol": 1e-10}
    )
    return scale * float(np.exp(found.x if found.fun <= worst(start) else start))


def negative_reaction(
    domain: AbstractDomain, points: np.ndarray, c: np.ndarray
) -> NegativeReaction | None:
    """Where c, at points that may be repeated for several controls, is smallest, if that is below
    zero."""
    least = int(np.argmin(c))
    if c[least] >= 0:
        return None
    point = points[least % len(points)]
    return NegativeReaction(float(c[least]), point, float(first_eigenvalue(domain)))


def warn_if_violated(problem: AbstractProblem, count: int = 1024) -> None:
    """A quick look at sampled points before a solve; `check` looks more closely. On domains that
    are not convex no bound rests on the condition."""
    if not problem.domain.convex:
        return
    count = with_matrices(count, problem.domain.dimension)
    points = problem.domain.interior_points(count, seed=33)
    A, b, c, _ = problem.measured(problem.family(points))
    lambda_ = best_lambda(A, b, c) if problem.measures_lower_order else None
    epsilon = epsilon_at(A, b, c, lambda_)
    worst = int(np.argmin(epsilon))
    if epsilon[worst] <= 0:
        best = ", whatever λ" if lambda_ is not None else ""
        negative = negative_reaction(problem.domain, points, c)
        why = f"The reason: {negative} " if negative is not None else ""
        warnings.warn(
            f"The Cordès condition is violated: ε = {epsilon[worst]:.4g} at x = "
            f"{show(points[worst % count])}{best}. {why}The problem is solved all the same.",
            CordesConditionWarning,
            stacklevel=3,
        )
