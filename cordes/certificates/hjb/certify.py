"""Certificates of Hamilton–Jacobi–Bellman equations: bounds of v = u - u_θ from the equation at u_θ
alone.

Energy: the theorems of the linear equation with a supremum over the controls, multiplier inside
(`energy`); without a maximiser for the finite set `controls`, exactly; with one, for the continuum
that it stands for, with a multiplier common to all controls (`coverage`).

Maximum: with ϱ = F[u_θ], L^a v ≤ -ϱ for the control a that is best for u_θ, and L^{a'} v ≥ -ϱ for
the control a' that is best for u and that nobody knows. So ϱ⁻ with the equation of a bounds sup(u_θ
- u), and ϱ⁺ with the worst of all equations sup(u - u_θ). For an infimum the sides change places.

In a game all pairs of a control and an opponent have equations, and |inf sup x - inf sup y| ≤ sup
|x - y|: the energy theorems are those of all pairs. ϱ⁻ goes with the worst of them, since neither
the opponent of u nor the control against whom is known; so does ϱ⁺, for which those of the opponent
of u_θ would do.
"""

from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.certificates.assemble import Maxima, best_bounds, chosen, no_maxima, with_gap
from cordes.certificates.certificate import Certificate
from cordes.certificates.enclosed.controls import ControlMeasure, controlled_measure
from cordes.certificates.enclosed.refinement import CHEAP, TIGHT, CellBudget
from cordes.certificates.enclosed.weights import multiplier
from cordes.certificates.hjb.coverage import ContinuumCoverage, ControlCoverage, local_of
from cordes.certificates.hjb.equation import (
    AbstractControlEquation,
    ComparedControls,
    ContinuumEquation,
    ControlledEquation,
    ControlState,
    unusable,
)
from cordes.certificates.linear import SAMPLE_SEED
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    Evaluated,
)
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.measured import (
    Sampling,
    Watched,
    measured_closely,
    pilot_points_of,
    refusal_of,
)
from cordes.certificates.theorems.drift import interpolated, local_abp
from cordes.certificates.theorems.energy import TraceSplit
from cordes.certificates.theorems.maximum import (
    Limits,
    Maximum,
    MaximumPrinciple,
    Operators,
    best_of,
    determinant_root,
    maxima,
    needs_cordes_or_continuity,
    negative_reaction,
    unbounded_drift,
)
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.errors import DomainError
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.regularity import jump
from cordes.problems.controls.controlled import AbstractControlled

# Norms for which one sample serves at most: energy, the two sides of ABP, the drift of each.
NORMS_OF_A_SAMPLE = 5
# Controls whose matrices are searched for jumps.
LOOKED_AT = 64
AnyCoverage = ControlCoverage | ContinuumCoverage


def certify_hjb(
    problem: AbstractControlled,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float = 0.99,
) -> Certificate:
    """The best bounds that the theorems give. `singular` (K, d) are points around which the
    residual may be large."""
    if reason := refusal(problem, candidate):
        return Certificate(reasons=(reason,))
    pilot_points = pilot_points_of(problem.domain)
    compared = ComparedControls(problem, candidate, pilot_points)
    pilot = compared.evaluate(pilot_points)
    if reason := unusable(problem, pilot, pilot_points):
        return Certificate(reasons=(reason,))
    enclosed = _enclosed(problem, candidate)
    # What nothing can hide from needs no search for what may hide.
    own = () if enclosed is not None else candidate.formulas, candidate.exact, candidate.scales
    watched = Watched(compared.evaluate, compared.densities, *own)
    sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence)
    sampling = sampling.with_matrices(problem.domain.dimension)
    measure, state, layers = measured_closely(problem, watched, sampling, singular, _limits)
    if reason := (
        unusable(problem, state, measure.points)
        or not_seen(problem, candidate, measure.points, enclosed is not None)
        or refusal_of(layers)
    ):
        return Certificate(reasons=(reason,))
    kind = ControlledEquation if problem.maximiser is None else ContinuumEquation
    known = compared, measure, state, pilot, pilot_points
    equation = kind(problem, *known, enclosed=enclosed)
    coverage = equation.coverage()
    certificate = controlled_bounds(equation, coverage)
    gap = boundary_gap(problem, candidate)
    if not gap.proved:
        certificate = replace(certificate, known={}, level=certificate.level and measure.level)
    return with_gap(
        gap,
        certificate,
        lambda: no_maximum_principle(equation, coverage, certificate.contraction is not None),
    )


def _enclosed(problem: AbstractControlled, candidate: AbstractCandidate) -> ControlMeasure | None:
    """Cells from which nothing can hide, where the controls are few, the formulas have enclosures
    and cells do not run out."""
    if problem.domain.dimension > 3:
        return None
    plain = multiplier(TraceSplit(), np.eye(problem.domain.dimension))
    budget = CellBudget() if isinstance(candidate, AnswerCandidate) else CHEAP
    try:
        found = controlled_measure(problem, candidate, [plain], budget)
    except (UnsupportedOperation, DomainError):
        return None
    return found if found.excess(plain) <= TIGHT else None


def _limits(state: ControlState) -> tuple[np.ndarray, np.ndarray]:
    return state.scaled.least, state.scaled.size


def controlled_bounds(equation: AbstractControlEquation, coverage: AnyCoverage) -> Certificate:
    """All theorems applied to one equation that is known on a measure."""
    return best_bounds(
        equation, coverage, lambda energies: maximum_of(equation, coverage, bool(energies))
    )


# The maximum principle ----------------------------------------------------------------------------


def maximum_of(equation: AbstractControlEquation, coverage: AnyCoverage, cordes: bool) -> Maxima:
    """The best bound from the maximum principle and those that have it on both sides, or why there
    is none; `cordes`: the Cordès condition is known to hold for all controls."""
    if why := no_maximum_principle(equation, coverage, cordes):
        return Maxima(None, [], why)
    if equation.missed:
        sentence = "no bound of the largest error: the points of the norms miss a part of r"
        return no_maxima(Why.unseen, sentence)
    best, points = equation.evaluated.plain, equation.measure.points
    local = local_of(equation.problem, points, equation.evaluated.control)
    evaluated = Evaluated(local, (best.lower + best.upper) / 2, (best.upper - best.lower) / 2)
    extremes = equation.pairs.extremes(points)
    if np.min(extremes.reaction) < 0:
        smallest = float(np.min(extremes.reaction))
        return Maxima(None, [], negative_reaction("for some control", smallest))
    below, above = np.maximum(-best.lower, 0.0), np.maximum(best.upper, 0.0)
    root, ratio, diagonal, drift, reaction = extremes
    continuum = isinstance(coverage, ContinuumCoverage)
    if continuum:
        smallest = coverage.smallest_root()
        if smallest is None or equation.problem.has_drift:
            sentence = "no bound of the largest error by the maximum principle: its constants"
            sentence += " are not known for all controls of the continuum"
            return no_maxima(Why.unknown_constants, sentence)
        root = np.minimum(smallest / coverage.scale(points), determinant_root(local.A))
    limits = Limits(np.min(diagonal, axis=0), np.max(drift, axis=0), float(np.min(reaction)))
    worst = Operators(root, ratio, limits, partial(equation.pairs.lowest_operator, points))
    given = equation.domain, equation.measure, evaluated, equation.problem.has_drift
    # For one sign the equation is known; for the other the worst one of all controls counts, and
    # for both in a game, where nobody knows the opponent of the solution.
    known = worst if equation.problem.rivals > 1 else None
    sides = (
        MaximumPrinciple(*given, below, known, coverage),
        MaximumPrinciple(*given, above, worst, coverage),
    )
    # Barriers need min -L^a w over the controls: of a continuum only ABP is left.
    first, second = (
        [side.estimate()] if continuum and np.isfinite(side.factor) else _maxima(side, continuum)
        for side in sides
    )
    if not (first and second):
        return no_maxima(Why.no_theorem, "the maximum principle gives no bound")
    found = [_both(one, two) for one in first for two in second if one.theorem == two.theorem]
    return chosen(equation, _both(best_of(first), best_of(second)), found, best.size)


def _maxima(side: MaximumPrinciple, continuum: bool) -> list[Maximum]:
    found = [] if continuum else maxima(side)
    return [*found, interpolated(side, local_abp(side))] if side.traversals else found


def _both(one: Maximum, two: Maximum) -> Maximum:
    """|v| is bounded by the larger one of the bounds of v and of -v."""
    first, second = sorted((one, two), key=lambda each: -each.bound)
    same = first.theorem == second.theorem
    cited = first.theorem if same else first.theorem._replace(behind=second.theorem)
    pointwise = np.maximum(one.pointwise, two.pointwise)
    return Maximum(first.bound, cited, pointwise, (*first.norms, *second.norms))


def no_maximum_principle(
    equation: AbstractControlEquation, coverage: AnyCoverage, cordes: bool
) -> Reason | None:
    """c ≥ 0 and hypothesis (H): two dimensions, or the Cordès condition for all controls, or
    coefficients that are continuous."""
    problem = equation.problem
    if not coverage.nonnegative_reaction()[0]:
        return negative_reaction("for some control", float(np.min(coverage.local.c)))
    if problem.domain.dimension > 2 and not cordes:
        matrix = preconditioners(coverage.local, problem.domain)[-1]
        if not coverage.contraction(TraceSplit(), matrix).value < 1:
            everywhere = jnp.asarray(problem.controls)

            def matrices(x: Array) -> Array:
                return jnp.stack([problem.A(x, a) for a in everywhere[:LOOKED_AT]])

            found = jump(matrices, problem.domain)
            if found is not None or len(everywhere) > LOOKED_AT or problem.maximiser is not None:
                return needs_cordes_or_continuity(
                    found or f"{len(everywhere)} controls are too many to tell"
                )
    return unbounded_drift(problem, coverage)
