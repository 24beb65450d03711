"""What the maximum principle says about Hamilton–Jacobi–Bellman equations.

With ϱ = F[u_θ], L^a v ≤ -ϱ for the control a that is best for u_θ, and L^{a'} v ≥ -ϱ for the
control a' that is best for u and that nobody knows. So ϱ⁻ with the equation of a bounds sup(u_θ -
u), and ϱ⁺ with the worst of all equations sup(u - u_θ). For an infimum the sides change places.
"""

from typing import final

import jax.numpy as jnp
import numpy as np

from cordes.certificates.assemble import Maxima, chosen, no_maxima
from cordes.certificates.hjb.coverage import ContinuumCoverage, ControlCoverage
from cordes.certificates.hjb.energy import Extremes
from cordes.certificates.hjb.equation import AbstractControlEquation, local_of
from cordes.certificates.linear import UNBOUNDED_DRIFT
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import Evaluated
from cordes.certificates.residual.hypotheses import needs_cordes_or_continuity
from cordes.certificates.theorems.energy import TraceSplit
from cordes.certificates.theorems.maximum import (
    AbstractMaximumPrinciple,
    Limits,
    Maximum,
    Profile,
    best_of,
    determinant_root,
    limits_of,
    maxima,
    minus_operator_of,
)
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.formulas.regularity import jump

# Controls whose matrices are searched for jumps.
LOOKED_AT = 64
AnyCoverage = ControlCoverage | ContinuumCoverage


@final
class Side(AbstractMaximumPrinciple):
    """One sign of the error: `right` (N,) bounds what drives it. With `extremes` the equation is
    not known, and the worst one of all controls counts."""

    def __init__(
        self,
        equation: AbstractControlEquation,
        evaluated: Evaluated,
        right: np.ndarray,
        extremes: Extremes | None,
    ):
        self.right, self.extremes, self.pairs = right, extremes, equation.pairs
        worst = (None, None) if extremes is None else (extremes.root, extremes.ratio)
        super().__init__(
            equation.domain, equation.measure, evaluated, equation.problem.has_drift, *worst
        )

    def sides(self) -> list[np.ndarray]:
        return [self.right]

    def size(self) -> np.ndarray:
        return self.right

    def minus_operator(self, profile: Profile) -> np.ndarray:
        return (
            minus_operator_of(self.evaluated.local, profile)
            if self.extremes is None
            else self.pairs.lowest_operator(self.measure.points, profile)
        )

    def limits(self) -> Limits:
        if self.extremes is None:
            return limits_of(self.evaluated.local)
        each = self.extremes
        return Limits(
            np.min(each.diagonal, axis=0), np.max(each.drift, axis=0), float(np.min(each.reaction))
        )


def maximum_of(equation: AbstractControlEquation, coverage: AnyCoverage, cordes: bool) -> Maxima:
    """The best bound from the maximum principle and those that have it on both sides, or why there
    is none; `cordes`: the Cordès condition is known to hold for all controls."""
    why = no_maximum_principle(equation, coverage, cordes)
    if why is not None:
        return Maxima(None, [], why)
    best, points = equation.evaluated.plain, equation.measure.points
    local = local_of(equation.problem, points, equation.evaluated.control)
    evaluated = Evaluated(local, (best.lower + best.upper) / 2, (best.upper - best.lower) / 2)
    extremes = equation.pairs.extremes(points)
    if np.min(extremes.reaction) < 0:
        return Maxima(None, [], _negative_reaction(float(np.min(extremes.reaction))))
    below, above = np.maximum(-best.lower, 0.0), np.maximum(best.upper, 0.0)
    if isinstance(coverage, ContinuumCoverage):
        root = coverage.smallest_root()
        if root is None or equation.problem.has_drift:
            return no_maxima(
                Why.unknown_constants,
                "no bound of the largest error by the maximum principle: its constants are not "
                "known for all controls of the continuum",
            )
        worst = np.minimum(root / coverage.scale(points), determinant_root(local.A))
        # Barriers need min -L^a w over the continuum: only ABP is left.
        first = [Side(equation, evaluated, below, None).estimate()]
        second = [Side(equation, evaluated, above, extremes._replace(root=worst)).estimate()]
    else:
        first = maxima(Side(equation, evaluated, below, None))
        second = maxima(Side(equation, evaluated, above, extremes))
    found = [_both(one, two) for one in first for two in second if one.theorem == two.theorem]
    return chosen(equation, _both(best_of(first), best_of(second)), found, best.size)


def _both(one: Maximum, two: Maximum) -> Maximum:
    """|v| is bounded by the larger one of the bounds of v and of -v."""
    first, second = sorted((one, two), key=lambda each: -each.bound)
    same = first.theorem == second.theorem
    cited = first.theorem if same else first.theorem._replace(behind=second.theorem)
    return Maximum(
        first.bound, cited, np.maximum(one.pointwise, two.pointwise), (*first.norms, *second.norms)
    )


def _negative_reaction(smallest: float) -> Reason:
    return Reason(
        Why.negative_reaction,
        f"c is negative for some control ({smallest:.4g}): the maximum principle does not apply",
        {"smallest": smallest},
    )


def no_maximum_principle(
    equation: AbstractControlEquation, coverage: AnyCoverage, cordes: bool
) -> Reason | None:
    """c ≥ 0 and hypothesis (H): two dimensions, or the Cordès condition for all controls, or
    coefficients that are continuous."""
    problem = equation.problem
    if not coverage.nonnegative_reaction()[0]:
        return _negative_reaction(float(np.min(coverage.local.c)))
    if problem.domain.dimension > 2 and not cordes:
        matrix = preconditioners(coverage.local)[-1]
        if not coverage.contraction(TraceSplit(), matrix).value < 1:
            everywhere = jnp.asarray(problem.controls)
            found = jump(
                lambda x: jnp.stack([problem.A(x, a) for a in everywhere[:LOOKED_AT]]),
                problem.domain,
            )
            if found is not None or len(everywhere) > LOOKED_AT or problem.maximiser is not None:
                return needs_cordes_or_continuity(
                    found or f"{len(everywhere)} controls are too many to tell"
                )
    if problem.has_drift and not coverage.bounded_drift():
        return UNBOUNDED_DRIFT
    return None
