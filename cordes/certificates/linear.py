"""Certificates of linear equations: from a problem and an answer to bounds of the error, or the
reason why there are none.

The way: hypotheses (`hypotheses`), the residual at points that served neither to fit nor to choose
(`measured`, `norms`), the energy theorems (`energy_bounds`, with `energy`, `contraction`,
`preconditioner`, `exponential`), the bounds of the maximum (`maximum`), and the best of each
(`assemble`).
"""

from collections.abc import Callable

import numpy as np

from cordes.certificates.assemble import Maxima, best_bounds, chosen, no_maxima, with_gap
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why, contraction_too_large
from cordes.certificates.residual.candidate import AbstractCandidate, Evaluated
from cordes.certificates.residual.hypotheses import (
    boundary_gap,
    maximum_principle_fails,
    not_seen,
    refusal,
)
from cordes.certificates.residual.layers import Layer, refusal_of
from cordes.certificates.residual.measured import (
    Sampling,
    Watched,
    measured,
    measured_closely,
    pilot_points_of,
)
from cordes.certificates.theorems.barrier import network_bound
from cordes.certificates.theorems.contraction import AbstractCoverage, Coverage
from cordes.certificates.theorems.energy import Local, TraceSplit
from cordes.certificates.theorems.energy_bounds import EnergyBound
from cordes.certificates.theorems.equation import LinearEquation
from cordes.certificates.theorems.maximum import (
    Maximum,
    MaximumPrinciple,
    best_of,
    maxima,
)
from cordes.certificates.theorems.preconditioner import anisotropy, preconditioners
from cordes.problems.condition import epsilon_at
from cordes.problems.linear import Linear
from cordes.runtime.plain import show

# Norms for which one sample serves at most: energy, the two signs of ABP, drift.
SAMPLE_SEED, NORMS_OF_A_SAMPLE = 5_550_002, 4
Extra = Callable[[MaximumPrinciple], Maximum]
UNBOUNDED_DRIFT = Reason(
    Why.unbounded_drift,
    "no bound of the largest error: b could not be bounded over the whole domain",
)


def certify_linear(
    problem: Linear,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float = 0.99,
    residual_bound: float | None = None,
    barrier: bool = False,
) -> Certificate:
    """The best bounds that the theorems give. `singular` (K, d) are points around which the
    residual may be large; `barrier` trains a barrier network."""
    reason = refusal(problem, candidate)
    if reason is not None:
        return Certificate(reasons=(reason,))
    pilot_points = pilot_points_of(problem.domain)
    pilot = candidate.evaluate(pilot_points)
    reason = _not_finite(pilot, pilot_points)
    if reason is not None:
        return Certificate(reasons=(reason,))
    hopeless = _hopeless(problem, pilot_points, pilot)
    if hopeless:
        return Certificate(reasons=hopeless)
    sampling = Sampling(
        SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence, proved=residual_bound is not None
    ).with_matrices(problem.domain.dimension)
    measure, evaluated, layers = _measured(problem, candidate, singular, sampling)
    equation = LinearEquation(
        problem, candidate, measure, evaluated, pilot, pilot_points, residual_bound
    )
    reason = (
        _not_finite(evaluated, measure.points)
        or _contradicted(equation)
        or not_seen(problem, candidate, measure.points)
        or refusal_of(layers)
    )
    if reason is not None:
        return Certificate(reasons=(reason,))
    extra = (
        (lambda principle: network_bound(problem, candidate, principle, singular))
        if barrier
        else None
    )
    coverage = _coverage(equation)
    return with_gap(
        boundary_gap(problem, candidate),
        bounds(equation, coverage, extra),
        lambda: _no_maximum_principle(equation, coverage),
    )


def bounds(
    equation: LinearEquation, coverage: AbstractCoverage, extra: Extra | None = None
) -> Certificate:
    """All theorems applied to one equation whose residual is known on a measure, and one more bound
    of the maximum if it is wanted."""
    degenerate = coverage.degenerate_point()
    if degenerate is not None:
        sentence = (
            f"A is not positive definite near x = {show(degenerate)}: the equation is not "
            "elliptic there"
        )
        return Certificate(reasons=(Reason(Why.not_elliptic, sentence, {"point": degenerate}),))
    return best_bounds(
        equation, coverage, lambda energies: _maximum(equation, coverage, energies, extra)
    )


def _measured(
    problem: Linear, candidate: AbstractCandidate, singular: np.ndarray, sampling: Sampling
) -> tuple:
    """The points of the norms, the residual there, and the layers that they do not see."""
    d = problem.domain.dimension

    def limits(evaluated: Evaluated) -> tuple[np.ndarray, np.ndarray]:
        multiplier = d / np.trace(evaluated.local.A, axis1=1, axis2=2)
        return multiplier * evaluated.least, multiplier * evaluated.size

    watched = Watched(candidate.evaluate, _densities)
    if not sampling.proved:
        return measured_closely(problem, watched, sampling, singular, limits)
    # What the user vouches for is no pole.
    none: list[Layer] = []
    return *measured(problem, watched, sampling, singular), none


def _densities(evaluated: Evaluated) -> np.ndarray:
    """What the cells are refined for: the energy norm and the ABP norm of the residual."""
    A, d = evaluated.local.A, evaluated.local.A.shape[-1]
    size = evaluated.size
    scale = np.max(np.abs(A), axis=(1, 2))
    root = scale * np.maximum(np.linalg.det(A / scale[:, None, None]), 1e-300) ** (1 / d)
    with np.errstate(over="ignore"):
        return np.stack(
            [(d / np.trace(A, axis1=1, axis2=2) * size) ** 2, (size / root) ** d], axis=1
        )


def _coverage(equation: LinearEquation) -> Coverage:
    problem = equation.problem
    points = np.concatenate([equation.pilot_points, equation.measure.points])
    pairs = zip(equation.pilot.local, equation.evaluated.local, strict=True)
    lower_order = problem.has_drift or problem.has_reaction
    return Coverage(
        problem.domain,
        lambda x: problem.linearise(x)[:3],
        lambda x: Local(*problem.coefficients(x)[:3]),
        points,
        Local(*(np.concatenate(pair) for pair in pairs)),
        problem.constant_coefficients,
        None if lower_order else problem.epsilon,
    )


# Why there is no bound ----------------------------------------------------------------------------


def _not_finite(evaluated: Evaluated, points: np.ndarray) -> Reason | None:
    bad = evaluated.not_finite()
    if not len(bad):
        return None
    point = points[bad[0]]
    return Reason(
        Why.not_finite,
        f"the equation or the residual is not a finite number at x = {show(point)}",
        {"point": point},
    )


def _contradicted(equation: LinearEquation) -> Reason | None:
    """What the user vouches for, seen to be wrong."""
    problem, bound = equation.problem, equation.residual_bound
    largest = max(
        float(np.max(evaluated.least)) for evaluated in (equation.pilot, equation.evaluated)
    )
    if bound is not None and largest > bound:
        return Reason(
            Why.contradicted,
            f"residual_bound = {bound:.6g}, but the residual reaches {largest:.6g}: correct it or "
            "leave it out",
            {"residual_bound": bound, "largest": largest},
        )
    if problem.epsilon is not None and not (problem.has_drift or problem.has_reaction):
        epsilon = epsilon_at(*equation.evaluated.local, None)
        problem.check_claimed_epsilon(
            float(np.min(epsilon)), equation.measure.points[int(np.argmin(epsilon))]
        )
    return None


def _hopeless(problem: Linear, points: np.ndarray, pilot: Evaluated) -> tuple[Reason, ...]:
    """Why no theorem can hold, seen from a few points before any long work; nothing where one
    may."""
    if problem.has_drift or problem.has_reaction:
        return ()
    anisotropies = [anisotropy(pilot.local, matrix) for matrix in preconditioners(pilot.local)]
    why = maximum_principle_fails(problem, False) if min(anisotropies) >= 1 else None
    if why is None:
        return ()
    scheme = TraceSplit()
    worst = int(np.argmax(scheme.defects(pilot.local.invariants())))
    first = contraction_too_large(
        scheme.theorem, np.eye(len(points[0])), anisotropies[0], points[worst]
    )
    return first.and_(f", with the best constant preconditioner {min(anisotropies):.4g}"), why


# The maximum principle ----------------------------------------------------------------------------


def _negative_reaction(coverage: AbstractCoverage) -> Reason | None:
    if coverage.nonnegative_reaction()[0]:
        return None
    smallest = float(np.min(coverage.local.c))
    return Reason(
        Why.negative_reaction,
        f"c is negative somewhere ({smallest:.4g}): the maximum principle does not apply",
        {"smallest": smallest},
    )


def _unbounded_drift(problem: Linear, coverage: AbstractCoverage) -> Reason | None:
    if not problem.has_drift or coverage.bounded_drift():
        return None
    return UNBOUNDED_DRIFT


def _no_maximum_principle(equation: LinearEquation, coverage: AbstractCoverage) -> Reason | None:
    """Why the maximum principle may fail: c < 0, an unbounded drift, or no hypothesis (H)."""
    problem = equation.problem
    why = _negative_reaction(coverage) or _unbounded_drift(problem, coverage)
    if why is not None:
        return why
    return maximum_principle_fails(
        problem, problem.domain.dimension > 2 and _cordes(equation, coverage)
    )


def _cordes(equation: LinearEquation, coverage: AbstractCoverage) -> bool:
    """Whether A satisfies the Cordès condition with the best preconditioner."""
    matrix = preconditioners(equation.pilot.local)[-1]
    return coverage.contraction(TraceSplit(), matrix).value < 1


def _maximum(
    equation: LinearEquation,
    coverage: AbstractCoverage,
    energies: list[EnergyBound],
    extra: Extra | None,
) -> Maxima:
    """The best bound from the maximum principle, or why there is none."""
    problem = equation.problem
    if equation.residual_bound is not None:
        return no_maxima(
            Why.not_covered,
            "the guaranteed statistical bound covers the energy norms, not the largest error",
        )
    why = _negative_reaction(coverage)
    if why is None:
        cordes = any(energy.transform is None for energy in energies)
        if not cordes and (problem.has_drift or problem.has_reaction):
            cordes = _cordes(equation, coverage)
        why = maximum_principle_fails(problem, cordes) or _unbounded_drift(problem, coverage)
    if why is not None:
        return Maxima(None, [], why)
    principle = MaximumPrinciple(
        equation.domain, equation.measure, equation.evaluated, problem.has_drift
    )
    found = maxima(principle)
    if extra is not None:
        found.append(extra(principle))
    return chosen(equation, best_of(found), found, principle.size())
