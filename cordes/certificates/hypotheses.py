"""What must hold before any bound is given, and why it does not: float64, exact boundary values, an ansatz without kinks, no jump that nobody declared.

Assumed, because it cannot be checked: the domain is convex (our own domains are), and coefficients mean what their formulas say between the points looked at.
"""

from typing import Any

import jax
import numpy as np

from cordes.certificates.candidate import AnswerCandidate, Candidate, FunctionCandidate, formula
from cordes.certificates.regularity import jump
from cordes.jet import jet_of
from cordes.problems.coefficients import show
from cordes.problems.jumps import find_jumps, straight

BOUNDARY_SEED, JUMP_SEED = 5_550_003, 5_550_004
BOUNDARY_POINTS = 2000
# Largest difference to g on the boundary that rounding explains, relative to the size of the answer.
MISMATCH = 1e-10
CHORDS = 256
# Distances from a singular point, in units of the domain, at which its rays are crossed, and the step across relative to them.
RAY_RADII, RAY_STEP = np.array([1e-3, 1e-2, 0.1, 0.3]), 1e-5
EPSILON = float(np.finfo(np.float64).eps)


def refusal(problem: Any, candidate: Candidate) -> str | None:
    """The first hypothesis that fails, as a sentence, or None."""
    if not jax.config.read("jax_enable_x64"):
        return "double precision is off (jax_enable_x64): second derivatives in single precision certify nothing. Leave JAX_ENABLE_X64 unset or set it to 1."
    if isinstance(candidate, AnswerCandidate) and not candidate.solution.exact_boundary:
        return 'the boundary values are only penalised (boundary="soft"), not exact: solve with boundary="hard".'
    for check in (_mismatch, _kink, _false_derivatives, _undeclared_jump):
        found = check(problem, candidate)
        if found is not None:
            return found
    return None


def _mismatch(problem: Any, candidate: Candidate) -> str | None:
    """Boundary values that differ from g: the energy bounds need exact ones."""
    return boundary_gap(problem, candidate)[1]


def boundary_gap(problem: Any, candidate: Candidate) -> tuple[float, str | None]:
    """The largest difference to g beyond rounding, and a sentence if it is no rounding at all."""
    domain = problem.domain
    points, _ = domain.boundary_points(BOUNDARY_POINTS, BOUNDARY_SEED)
    if domain.vertices is not None:
        points = np.concatenate([points, domain.vertices])
    wanted = np.asarray(jax.jit(jax.vmap(problem.g))(points), dtype=np.float64)
    values, rounding = candidate.value(points)
    inside, _ = candidate.value(domain.interior_points(256, BOUNDARY_SEED))
    gap = np.maximum(np.abs(values - wanted) - rounding, 0.0)
    scale = max(float(np.max(np.abs(wanted))), float(np.max(np.abs(inside))), 1e-300)
    worst = int(np.argmax(np.where(np.isfinite(gap), gap, np.inf)))
    if gap[worst] <= MISMATCH * scale:
        return float(gap[worst]), None
    return float(gap[worst]), (
        f"the boundary values are not exact: u_θ = {values[worst]:.6g} but g = {wanted[worst]:.6g} at x = {show(points[worst])}; "
        "the bounds hold for answers that equal g on the whole boundary."
    )


def _kink(problem: Any, candidate: Candidate) -> str | None:
    found = candidate.kink()
    if found is None:
        return None
    return (
        f"the answer may have a kink, where second derivatives hide a jump of the gradient ({found}); "
        "a residual of zero would prove nothing. Use smooth functions, x|x| or max(x, 0)² in place of |x| and max(x, 0)."
    )


def _false_derivatives(problem: Any, candidate: Candidate) -> str | None:
    """Derivatives that are not those of the formula, by stop_gradient or by a rule of the user's own: then the residual is that of another function."""
    if not isinstance(candidate, FunctionCandidate):
        return None
    points = problem.domain.interior_points(256, BOUNDARY_SEED)
    given, true = (jax.jit(jax.vmap(jet_of(function)))(points) for function in (candidate.function, formula(candidate.function)))
    for name, one, other in zip(("gradient", "Hessian"), given[1:], true[1:], strict=True):
        size = float(np.nanmax(np.abs(other)))
        gap = np.abs(np.asarray(one) - np.asarray(other)).reshape(len(points), -1).max(axis=1)
        # Where the formula itself cannot be differentiated (a guarded division) there is nothing to compare with.
        worst = int(np.argmax(np.nan_to_num(gap, nan=0.0)))
        if gap[worst] > 1e-8 * size:
            return (
                f"the {name} of the answer is not the derivative of its formula at x = {show(points[worst])} (stop_gradient, or a rule of your own)"
            )
    return None


def _undeclared_jump(problem: Any, candidate: Candidate) -> str | None:
    """Jumps of the coefficients away from the declared interfaces: n and 2n points would disagree, or agree by accident."""
    domain = problem.domain
    suspects = {}
    for name, function in problem.data().items():
        if jump(function, domain, problem.interfaces) is not None:
            suspects[name] = jax.jit(jax.vmap(function))
    if not suspects:
        return None
    points = domain.interior_points(2 * CHORDS, JUMP_SEED, "sobol")
    sides = [np.zeros(len(points)), *(np.asarray(jax.jit(jax.vmap(phi))(points)) > 0 for phi in problem.interfaces)]
    points = points[np.lexsort(sides)]
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    for name, values in suspects.items():
        for found in find_jumps(lambda x, values=values: np.asarray(values(x)), points[0::2], points[1::2], straight, samples=129):
            if not any(_near(phi, found.point, size) for phi in problem.interfaces):
                return (
                    f"{name} jumps near x = {show(found.point)} and no interface is declared there: the norm of the residual cannot be trusted across it, "
                    "n and 2n points need not agree. Pass interfaces=[phi] with phi = 0 on the jump."
                )
    return None


def _near(phi: Any, point: np.ndarray, size: float) -> bool:
    slope = float(np.linalg.norm(jax.grad(phi)(point)))
    return abs(float(phi(point))) <= 1e-6 * size * (1e-9 + slope)


def maximum_principle_fails(problem: Any, cordes: bool) -> str | None:
    """Hypothesis (H): two dimensions, or the Cordès condition, or a continuous A. Else the maximum principle may fail for functions in H²."""
    if problem.domain.dimension <= 2 or cordes or problem.constant_A:
        return None
    found = jump(problem.A, problem.domain)
    if found is None:
        return None
    return f"no bound of the largest error: in three and more dimensions it needs the Cordès condition or a continuous A ({found})"


def kink_across_rays(solution: Any) -> float:
    """The largest jump of the gradient across the rays of the singular functions, beyond rounding: zero by construction, measured all the same, because
    large amplitudes magnify the smallest fault of an angle.

    Differences at distances h and 2h are combined so that a smooth function leaves a term of the second order in h.
    """
    singular, amplitudes = solution.singular_functions
    lower, upper = solution.problem.domain.bounding_box
    size = float(np.max(upper - lower))
    largest = 0.0
    for family in singular.families:
        point = family.point
        rays = point.rays[1:-1] if point.on_boundary else point.rays[1:]
        if point.sectors == 1:
            continue
        angles, radii = np.repeat(rays, len(RAY_RADII)), size * np.tile(RAY_RADII, len(rays))
        along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        x = point.location + radii[:, None] * along
        inside = solution.problem.domain.contains(x)
        x, across, step = x[inside], across[inside], RAY_STEP * radii[inside, None]
        if not len(x):
            continue
        change, rounding = np.zeros(x.shape), np.zeros(x.shape)
        for weight, distance in ((2, 1), (-2, -1), (-1, 2), (1, -2)):
            gradient, terms = _singular_gradient(singular, amplitudes, x + distance * step * across)
            change, rounding = change + weight * gradient, rounding + abs(weight) * 8 * EPSILON * terms
        largest = max(largest, float(np.max(np.abs(change) - rounding)))
    return max(largest, 0.0)


def _singular_gradient(singular: Any, amplitudes: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, nothing = len(x), np.zeros((len(x), 2, 2))
    columns = [singular.rows(x, np.zeros(n), np.tile(direction, (n, 1)), nothing) for direction in np.eye(2)]
    values = np.stack([column @ amplitudes for column in columns], axis=1)
    return values, np.stack([np.abs(column) @ np.abs(amplitudes) for column in columns], axis=1)
