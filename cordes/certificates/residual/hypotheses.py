"""What must hold before any bound is given, and why it does not: float64, exact boundary values, an
ansatz without kinks, no jump that nobody declared.

Assumed, because it cannot be checked: the domain is convex (our own domains are), and coefficients
mean what their formulas say between the points looked at.
"""

from collections.abc import Callable

import jax
import numpy as np

from cordes.certificates.enclosed.supremum import Largest, largest_on_boundary
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    FunctionCandidate,
)
from cordes.certificates.residual.gap import Gap, conditions_gap
from cordes.certificates.residual.jumps import undeclared_jump
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import walled_part
from cordes.errors import DomainError
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.jet import jet_of
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

BOUNDARY_SEED = 5_550_003
BOUNDARY_POINTS, INSIDE_POINTS, COMPARED_POINTS = 2000, 1024, 1 << 14
# Entries of A that are looked at on the boundary.
BOUNDARY_NUMBERS = 100_000
# Boundary values are compared with g at points only: what is found there counts twice.
BOUNDARY_SAFETY = 2.0
# Rounding of the data in units of ε times their sizes.
ROUNDING_OF_DATA = 4.0
# Boundary values are exact up to this many units in the last place of the answer's largest value.
LAST_PLACES = 16.0
# Second derivatives may exceed those at the points of the norms by this factor. Cells of the search
# for larger ones: per direction at the start by dimension, those that are halved, and how often in
# each direction.
STEEP, START_CELLS, DUG_CELLS, DEPTH = 10.0, {1: 256, 2: 16, 3: 8}, 32, 40
# An eigenvalue of A that is this share of the largest one vanishes.
VANISHING = 1e-13
# Largest difference to g on the boundary that rounding explains, relative to the size of the
# answer.
MISMATCH = 1e-10
EPSILON = float(np.finfo(np.float64).eps)
SINGLE_PRECISION = Reason(
    Why.precision,
    "double precision is off (jax_enable_x64): second derivatives in single precision certify "
    "nothing. Leave JAX_ENABLE_X64 unset or set it to 1.",
)


def refusal(problem: AbstractProblem, candidate: AbstractCandidate) -> Reason | None:
    """The first hypothesis that fails, or None."""
    if not jax.config.read("jax_enable_x64"):
        return SINGLE_PRECISION
    if isinstance(candidate, AnswerCandidate) and not candidate.solution.exact_boundary:
        sentence = 'the boundary values are only penalised (boundary_rows="soft"), not exact'
        return Reason(Why.soft_boundary, f'{sentence}: solve with boundary_rows="hard".')
    rough = problem.boundary_shape.rough
    # In time whatever starts with a jump is in no space of the theorems, whoever found it.
    ours = isinstance(candidate, AnswerCandidate)
    if rough is not None and (ours or problem.clock is not None):
        return Reason(Why.kink, f"{rough}: no extension of g into the domain is known")
    if reason := degenerate_side(problem):
        return reason
    # The energy bounds need exact boundary values.
    gap = boundary_gap(problem, candidate)
    return gap.reason or roughness(problem, candidate) or undeclared_jump(problem)


def degenerate_side(problem: AbstractProblem) -> Reason | None:
    """A side on which A has the eigenvalue zero, which is not seen from the inside."""
    if problem.convex or problem.constant_A:
        return None
    count = min(BOUNDARY_POINTS, BOUNDARY_NUMBERS // problem.domain.dimension**2)
    points, _ = problem.domain.boundary_points(max(count, 1), BOUNDARY_SEED)
    A = np.asarray(problem.of_space(problem.family(points).A))
    ends = np.linalg.eigvalsh(A)[:, [0, -1]]
    worst = int(np.argmin(ends[:, 0] - VANISHING * ends[:, 1]))
    if not ends[worst, 0] <= VANISHING * ends[worst, 1]:
        return None
    x = points[worst % len(points)]
    return Reason(
        Why.not_elliptic,
        f"A degenerates on the boundary: its smallest eigenvalue is {ends[worst, 0]:.3g} at x = "
        f"{show(x)}; the bounds need an equation that is elliptic up to the boundary",
        {"point": x},
    )


def boundary_gap(problem: AbstractProblem, candidate: AbstractCandidate) -> Gap:
    """The boundary values of an answer compared with g, and the rounding of its values."""
    domain = problem.domain
    ours = isinstance(candidate, AnswerCandidate) and candidate.solution.problem is problem
    if walled_part(domain) is not None:
        return conditions_gap(problem, candidate, ours)
    points, _ = domain.boundary_points(BOUNDARY_POINTS, BOUNDARY_SEED)
    if domain.vertices is not None:
        points = np.concatenate([points, domain.vertices])
    wanted = np.asarray(jax.jit(jax.vmap(problem.g))(points), dtype=np.float64)
    values, rounding = candidate.value(points)
    inside, inside_rounding = candidate.value(domain.interior_points(INSIDE_POINTS, BOUNDARY_SEED))
    # g is a formula with a few operations of its own.
    rounding = rounding + ROUNDING_OF_DATA * EPSILON * np.abs(wanted)
    difference = np.abs(values - wanted)
    excess = np.maximum(difference - rounding, 0.0)
    scale = max(float(np.max(np.abs(wanted))), float(np.max(np.abs(inside))), 1e-300)
    worst = int(np.argmax(np.where(np.isfinite(excess), excess, np.inf)))
    made, built = ours, ours and excess[worst] == 0
    exact = built or bool(np.max(difference) <= LAST_PLACES * EPSILON * scale)
    between = _enclosed_difference(problem, candidate, EPSILON * scale)
    # An answer of ours has the values of g by construction.
    proved, reason = made or between.bound <= MISMATCH * scale, None
    if between.seen > MISMATCH * scale:
        exact, reason = False, _hidden_difference(between.seen)
    if not excess[worst] <= MISMATCH * scale:
        value, g, x = float(values[worst]), float(wanted[worst]), points[worst]
        reason = Reason(
            Why.boundary_values,
            f"the boundary values are not exact: u_θ = {value:.6g} but g = {g:.6g} at x = "
            f"{show(x)}; the bounds hold for answers that equal g on the whole boundary.",
            {"value": value, "wanted": g, "point": x},
        )
    largest = max(float(np.max(rounding)), float(np.max(inside_rounding)))
    size = float(np.max(difference + rounding))
    if between.bound <= MISMATCH * scale:
        size = max(size, between.bound)
    return Gap(size, largest, exact, proved, reason)


def _enclosed_difference(
    problem: AbstractProblem, candidate: AbstractCandidate, negligible: float
) -> Largest:
    """|u_θ - g| on the whole boundary for a function that somebody brings; the bound is infinite
    where the formulas have none."""
    if not isinstance(candidate, FunctionCandidate) or problem.domain.dimension > 3:
        return Largest(0.0, np.inf)
    try:
        return largest_on_boundary(
            problem.domain, lambda x: candidate.plain(x) - problem.g(x), negligible
        )
    except (UnsupportedOperation, DomainError):
        return Largest(0.0, np.inf)


def _hidden_difference(size: float) -> Reason:
    sentence = "the boundary values are not exact: between the points looked at"
    sentence += f" u_θ and g may differ by {size:.3g}"
    needed = "the bounds hold for answers that equal g on the whole boundary"
    return Reason(Why.boundary_values, f"{sentence}; {needed}.", {"difference": size})


def roughness(problem: AbstractProblem, candidate: AbstractCandidate) -> Reason | None:
    """A kink of an answer, or derivatives that are not its own."""
    found = candidate.kink()
    if found is not None:
        return Reason(
            Why.kink,
            "the answer may have a kink, where second derivatives hide a jump of the gradient "
            f"({found}); a residual of zero would prove nothing. Use smooth functions, x|x| or "
            "max(x, 0)² in place of |x| and max(x, 0), and interfaces that are smooth in the whole "
            "domain, x·x - r² in place of |x| - r.",
        )
    points = problem.domain.interior_points(COMPARED_POINTS, BOUNDARY_SEED, "sobol")
    return false_derivatives(candidate, points)


def false_derivatives(candidate: AbstractCandidate, points: np.ndarray) -> Reason | None:
    """Derivatives that are not those of the formula, by stop_gradient or by a rule of the user's
    own: then the residual is that of another function. Looked at where the norms are taken too,
    since such a rule may hold in a small part of the domain."""
    if not isinstance(candidate, FunctionCandidate) or not candidate.has_rules:
        return None
    given, true = candidate.jet(points), candidate.plain_jet(points)
    for name, one, other in zip(("gradient", "Hessian"), given[1:], true[1:], strict=True):
        size = float(np.nanmax(np.abs(other)))
        gap = np.abs(np.asarray(one) - np.asarray(other)).reshape(len(points), -1).max(axis=1)
        # Where the formula itself cannot be differentiated (a guarded division) there is nothing to
        # compare with.
        worst = int(np.argmax(np.nan_to_num(gap, nan=0.0)))
        if gap[worst] > 1e-8 * size:
            return Reason(
                Why.false_derivatives,
                f"the {name} of the answer is not the derivative of its formula at x = "
                f"{show(points[worst])} (stop_gradient, or a rule of your own)",
                {"point": points[worst], "difference": float(gap[worst])},
            )
    return None


def not_seen(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    points: np.ndarray,
    enclosed: bool = False,
) -> Reason | None:
    """What the points of the norms show of an answer, and what lies between them; nothing does
    where norms are enclosed."""
    reason = false_derivatives(candidate, points)
    return reason if enclosed else reason or _steep(problem.domain, candidate, points)


def _steep(
    domain: AbstractDomain, candidate: AbstractCandidate, points: np.ndarray
) -> Reason | None:
    """A ridge such as x tanh(10⁴x) that all points miss: on both sides of it the gradient differs,
    and D²u_θ vanishes at all of them. Intervals lead to the largest second derivatives; where these
    are no larger than those at the points by a factor, or no formula is known, nothing is said."""
    if not isinstance(candidate, FunctionCandidate) or domain.dimension > 3:
        return None

    def size(x: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.asarray(candidate.jet(x).hessian), axis=(1, 2))

    enclosure = enclose(lambda x: jet_of(candidate.plain)(x).hessian)

    def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            ends = [(np.abs(each.lower), np.abs(each.upper)) for each in enclosure(lower, upper)]
            squares = [np.sum(np.maximum(*both) ** 2, axis=(1, 2)) for both in ends]
            return np.max(np.sqrt(squares), axis=0)

    seen = float(np.max(size(points)))
    limit = STEEP * seen
    try:
        largest, place = _dig(domain, bound, size, limit)
    except UnsupportedOperation:
        return None
    if largest <= limit:
        return None
    return Reason(
        Why.unseen,
        f"the second derivatives of the answer reach {largest:.3g} at x = {show(place)}, but only "
        f"{seen:.3g} at the {len(points):,} points of the norms: a ridge or a layer lies "
        "between them, and its residual is not seen",
        {"size": largest, "point": place, "seen": seen},
    )


def _dig(
    domain: AbstractDomain, bound: Callable, values: Callable, limit: float
) -> tuple[float, np.ndarray]:
    """The largest value found, and its place, by halving again and again the cells with the largest
    bounds: of two halves the one with the larger bound stays, as long as it exceeds the limit. So a
    ridge is found however narrow it is."""
    low, high = (np.asarray(corner, dtype=np.float64) for corner in domain.bounding_box)
    d, largest, place = domain.dimension, -np.inf, low
    index = np.indices([START_CELLS[d]] * d).reshape(d, -1).T
    lower, upper = (low + (index + k) / START_CELLS[d] * (high - low) for k in (0, 1))
    bounds = np.nan_to_num(bound(lower, upper), nan=np.inf)
    worst = np.argsort(-bounds, kind="stable")[:DUG_CELLS]
    lower, upper, bounds = lower[worst], upper[worst], bounds[worst]
    for step in range(DEPTH * d):
        kept = bounds > limit
        lower, upper = lower[kept], upper[kept]
        middle = (lower + upper) / 2
        inside = middle[domain.contains(middle)]
        if len(inside):
            found = np.nan_to_num(values(inside), nan=-np.inf)
            if np.max(found) > largest:
                largest, place = float(np.max(found)), inside[int(np.argmax(found))]
        if not np.any(kept) or largest > limit:
            break
        axis = np.arange(d) == step % d
        halves = [(lower, np.where(axis, middle, upper)), (np.where(axis, middle, lower), upper)]
        both = [np.nan_to_num(bound(*half), nan=np.inf) for half in halves]
        second = both[1] > both[0]
        lower, upper = (np.where(second[:, None], halves[1][k], halves[0][k]) for k in (0, 1))
        bounds = np.maximum(*both)
    return largest, place
