"""Certificates of Hamilton–Jacobi–Bellman equations: bounds of v = u - u_θ from the equation at u_θ
alone.

Energy: the theorems of the linear equation with a supremum over the controls, multiplier inside
(`energy`); without a maximiser for the finite set `controls`, exactly; with one, for the continuum
that it stands for, with a multiplier common to all controls (`coverage`). Maximum: `maximum`.
"""

import numpy as np

from cordes.certificates.assemble import best_bounds, with_gap
from cordes.certificates.certificate import Certificate
from cordes.certificates.hjb.compared import Compared, ControlState, unusable
from cordes.certificates.hjb.coverage import ControlCoverage
from cordes.certificates.hjb.equation import (
    AbstractControlEquation,
    ContinuumEquation,
    ControlledEquation,
)
from cordes.certificates.hjb.maximum import AnyCoverage, maximum_of, no_maximum_principle
from cordes.certificates.linear import SAMPLE_SEED
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.layers import refusal_of
from cordes.certificates.residual.measured import (
    Sampling,
    Watched,
    measured_closely,
    pilot_points_of,
)
from cordes.problems.hjb import HJB
from cordes.runtime.plain import show

# Norms for which one sample serves at most: energy, the two sides of ABP, the drift of each.
NORMS_OF_A_SAMPLE = 5


def certify_hjb(
    problem: HJB, candidate: AbstractCandidate, singular: np.ndarray, confidence: float = 0.99
) -> Certificate:
    """The best bounds that the theorems give. `singular` (K, d) are points around which the
    residual may be large."""
    reason = refusal(problem, candidate)
    if reason is not None:
        return Certificate(reasons=(reason,))
    pilot_points = pilot_points_of(problem.domain)
    compared = Compared(problem, candidate, pilot_points)
    pilot = compared.evaluate(pilot_points)
    reason = unusable(problem, pilot, pilot_points)
    if reason is not None:
        return Certificate(reasons=(reason,))
    measure, state, layers = measured_closely(
        problem,
        Watched(compared.evaluate, compared.densities),
        Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence).with_matrices(
            problem.domain.dimension
        ),
        singular,
        _limits,
    )
    reason = (
        unusable(problem, state, measure.points)
        or not_seen(problem, candidate, measure.points)
        or refusal_of(layers)
    )
    if reason is not None:
        return Certificate(reasons=(reason,))
    kind = ControlledEquation if problem.maximiser is None else ContinuumEquation
    equation = kind(problem, compared, measure, state, pilot, pilot_points)
    coverage = equation.coverage()
    certificate = controlled_bounds(equation, coverage)
    return with_gap(
        boundary_gap(problem, candidate),
        certificate,
        lambda: no_maximum_principle(equation, coverage, certificate.contraction is not None),
    )


def _limits(state: ControlState) -> tuple[np.ndarray, np.ndarray]:
    return state.scaled.least, state.scaled.size


def controlled_bounds(equation: AbstractControlEquation, coverage: AnyCoverage) -> Certificate:
    """All theorems applied to one equation that is known on a measure."""
    degenerate = coverage.degenerate_point() if isinstance(coverage, ControlCoverage) else None
    if degenerate is not None:
        sentence = (
            f"A is not positive definite for every control near x = {show(degenerate)}: the "
            "equation is not elliptic there"
        )
        return Certificate(reasons=(Reason(Why.not_elliptic, sentence, {"point": degenerate}),))
    return best_bounds(
        equation, coverage, lambda energies: maximum_of(equation, coverage, bool(energies))
    )
