"""How large an answer is, and how large its data are: what errors and residuals are relative to."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.points import collocation_points
from cordes.problems.condition import cordes_multiplier
from cordes.problems.features import hidden_features

if TYPE_CHECKING:
    from cordes.problems.problem import AbstractProblem
    from cordes.solutions.solution import AbstractSolution

# Points at which the data are looked at, fewer where matrices are large, and as many more where
# something small is as a solver has.
POINTS, NUMBERS, SEED = 1024, 4_000_000, 5_550_401


def data_size(solution: "AbstractSolution") -> float:
    """The root mean square of γ(|f| + (tr A/R² + |b|/R + |c|) max |g|), R half the diagonal of the
    bounding box: it changes with units as the residual does. Nonlinear equations are frozen at the
    answer; without the multiplier γ = 1."""
    problem, domain = solution.problem, solution.problem.domain
    count = int(np.clip(NUMBERS // domain.dimension**2, 16, POINTS))
    hidden = hidden_features(problem, count)
    x, weight = collocation_points(domain, count, SEED, hidden=hidden)
    A, b, c, f = problem.coefficients(x, None if problem.linear else solution.jet(x))
    radius = np.linalg.norm(np.ptp(domain.bounding_box, axis=0)) / 2
    slope = np.trace(A, axis1=1, axis2=2) / radius**2 + np.linalg.norm(b, axis=1) / radius
    size: Any = np.abs(f) + (slope + np.abs(c)) * _largest_boundary_value(problem)
    if solution.facts.get("multiplier", True):
        A = problem.measured_matrix(A)
        size = size * cordes_multiplier(A, solution.facts.get("delta", 0.0))
    return float(np.linalg.norm(weight * size))


def _largest_boundary_value(problem: "AbstractProblem") -> float:
    if problem.zero_g or not problem.takes_boundary_values:
        return 0.0
    x, _ = problem.domain.boundary_points(POINTS, SEED)
    return float(np.max(np.abs(jax.vmap(problem.g)(jnp.asarray(x)))))
