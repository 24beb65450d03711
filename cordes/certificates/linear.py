"""Certificates of linear equations: from a problem and an answer to bounds of the error, or the
reason why there are none.

The way: hypotheses (`hypotheses`), the residual at points that served neither to fit nor to choose
(`measured`, `norms`), the energy theorems (`energy_bounds`, with `energy`, `contraction`,
`preconditioner`, `exponential`), the bounds of the maximum (`maximum`), and the best of each
(`assemble`).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cordes.certificates.assemble import Maxima, best_bounds, chosen, no_maxima, with_gap
from cordes.certificates.certificate import Certificate
from cordes.certificates.enclosed.blended.measure import BlendedMeasure
from cordes.certificates.enclosed.measure import EnclosedMeasure
from cordes.certificates.enclosed.refinement import (
    CHEAP,
    TIGHT,
    CellBudget,
)
from cordes.certificates.enclosed.residual import enclosed_measure
from cordes.certificates.enclosed.weights import multiplier, over_root
from cordes.certificates.equation import EnergyBound, LinearEquation
from cordes.certificates.reason import Reason, Why, contraction_too_large
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    Evaluated,
    not_finite,
)
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.measured import (
    Sampling,
    Watched,
    measured_closely,
    pilot_points_of,
    refusal_of,
)
from cordes.certificates.residual.norms import Quadrature
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.barriers.barrier import network_bound
from cordes.certificates.theorems.contraction import AbstractCoverage, Coverage
from cordes.certificates.theorems.derivatives import derivatives
from cordes.certificates.theorems.drift import drift_bounds
from cordes.certificates.theorems.energy import Local, TraceSplit
from cordes.certificates.theorems.maximum import (
    Maximum,
    MaximumPrinciple,
    best_of,
    determinant_root,
    maxima,
    maximum_principle_fails,
    negative_reaction,
    unbounded_drift,
)
from cordes.certificates.theorems.preconditioner import anisotropy, preconditioners
from cordes.domains.walls import Walled
from cordes.errors import DomainError
from cordes.formulas.intervals import UnsupportedOperation
from cordes.problems.condition import epsilon_at
from cordes.problems.linear import Linear
from cordes.runtime.plain import show

# Norms for which one sample serves at most: energy, the two signs of ABP, drift.
SAMPLE_SEED, NORMS_OF_A_SAMPLE = 5_550_002, 4
LARGEST = 1e60
Extra = Callable[[MaximumPrinciple], Maximum]


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
    if reason := refusal(problem, candidate):
        return Certificate(reasons=(reason,))
    pilot_points = pilot_points_of(problem.domain)
    pilot = candidate.evaluate(pilot_points)
    if reason := _not_finite(pilot, pilot_points):
        return Certificate(reasons=(reason,))
    if hopeless := _hopeless(problem, pilot_points, pilot):
        return Certificate(reasons=hopeless)
    sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence)
    sampling = sampling.with_matrices(problem.domain.dimension)
    sampling = sampling._replace(proved=residual_bound is not None)
    enclosed = None if residual_bound is not None else _enclosed(problem, candidate, pilot)
    # What nothing can hide from needs no search for what may hide.
    formulas = () if enclosed is not None else candidate.formulas
    own = formulas, candidate.exact, candidate.scales
    watched = Watched(candidate.evaluate, densities, *own)
    measure, evaluated, layers = measured_closely(problem, watched, sampling, singular, limits)
    seen = measure, evaluated, pilot, pilot_points
    equation = LinearEquation(problem, candidate, *seen, residual_bound, enclosed)
    if reason := (
        _not_finite(evaluated, measure.points)
        or _contradicted(equation)
        or not_seen(problem, candidate, measure.points, enclosed is not None)
        or refusal_of(layers)
    ):
        return Certificate(reasons=(reason,))

    def network(principle: MaximumPrinciple) -> Maximum:
        return network_bound(problem, candidate, principle, singular)

    coverage = _coverage(equation)
    found = bounds(equation, coverage, network if barrier else None)
    gap = boundary_gap(problem, candidate)
    if not gap.proved:
        found = replace(found, known={}, level=found.level and measure.level)
    return with_gap(gap, found, lambda: _no_maximum_principle(equation, coverage))


def _enclosed(
    problem: Linear, candidate: AbstractCandidate, pilot: Evaluated
) -> EnclosedMeasure | BlendedMeasure | None:
    """Cells from which nothing can hide, where the formulas have such and they do not run out;
    squares of very large and very small coefficients are no numbers."""
    size = float(np.max(np.abs(pilot.local.A)))
    if problem.domain.dimension > 3 or not 1 / LARGEST < size < LARGEST:
        return None
    plain = multiplier(TraceSplit(), np.eye(problem.domain.dimension))
    budget = CellBudget() if isinstance(candidate, AnswerCandidate) else CHEAP
    try:
        found = enclosed_measure(problem, candidate, [plain, over_root(determinant_root)], budget)
    except (UnsupportedOperation, DomainError):
        return None
    return found if found.excess(plain) <= TIGHT else None


def bounds(
    equation: LinearEquation, coverage: AbstractCoverage, extra: Extra | None = None
) -> Certificate:
    """All theorems applied to one equation whose residual is known on a measure, and one more bound
    of the maximum if it is wanted."""
    found = best_bounds(
        equation, coverage, lambda energies: _maximum(equation, coverage, energies, extra)
    )
    quadrature = equation.problem.has_drift and isinstance(equation.measure, Quadrature)
    return _with_derivatives(equation, coverage, found) if quadrature else found


def _with_derivatives(
    equation: LinearEquation, coverage: AbstractCoverage, certificate: Certificate
) -> Certificate:
    """What follows from the bound of ‖v‖ alone, where that is better."""
    L2, citation = certificate.L2, certificate.citation
    found = None if L2 is None else derivatives(equation, coverage, L2)
    if found is None:
        return certificate
    for norm, bound in (("H1", found.H1), ("H2", found.H2)):
        given, known = getattr(certificate, norm), dict(certificate.known)
        if given is None or bound < given:
            cited = {norm: Citation(Theorem.interpolation, behind=citation)}
            known.pop(norm, None)
            if found.enclosed and "L2" in known:
                known[norm] = known["L2"]
            certificate = replace(
                certificate,
                citations=certificate.citations | cited,
                known=known,
                **{norm: bound},
            )
    return certificate


def limits(evaluated: Evaluated) -> tuple[np.ndarray, np.ndarray]:
    A = evaluated.local.A
    multiplier = A.shape[-1] / np.trace(A, axis1=1, axis2=2)
    return multiplier * evaluated.least, multiplier * evaluated.size


def densities(evaluated: Evaluated) -> np.ndarray:
    """What the cells are refined for: the energy norm and the ABP norm of the residual."""
    A, d, size = evaluated.local.A, evaluated.local.A.shape[-1], evaluated.size
    scale = np.max(np.abs(A), axis=(1, 2))
    root = scale * np.maximum(np.linalg.det(A / scale[:, None, None]), 1e-300) ** (1 / d)
    multiplier = d / np.trace(A, axis1=1, axis2=2)
    with np.errstate(over="ignore"):
        return np.stack([(multiplier * size) ** 2, (size / root) ** d], axis=1)


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
    bad = not_finite(*evaluated.local, evaluated.residual, evaluated.rounding)
    if not len(bad):
        return None
    point = points[bad[0]]
    sentence = f"the equation or the residual is not a finite number at x = {show(point)}"
    return Reason(Why.not_finite, sentence, {"point": point})


def _contradicted(equation: LinearEquation) -> Reason | None:
    """What the user vouches for, seen to be wrong."""
    problem, bound = equation.problem, equation.residual_bound
    largest = max(float(np.max(each.least)) for each in (equation.pilot, equation.evaluated))
    if bound is not None and largest > bound:
        sentence = f"residual_bound = {bound:.6g}, but the residual reaches {largest:.6g}"
        values = {"residual_bound": bound, "largest": largest}
        return Reason(Why.contradicted, f"{sentence}: correct it or leave it out", values)
    if problem.epsilon is not None and not (problem.has_drift or problem.has_reaction):
        epsilon = epsilon_at(*equation.evaluated.local, None)
        worst = int(np.argmin(epsilon))
        problem.check_claimed_epsilon(float(epsilon[worst]), equation.measure.points[worst])
    return None


def _hopeless(problem: Linear, points: np.ndarray, pilot: Evaluated) -> tuple[Reason, ...]:
    """Why no theorem can hold, seen from a few points before any long work; nothing where one
    may."""
    if problem.has_drift or problem.has_reaction:
        return ()
    anisotropies = [
        anisotropy(pilot.local, matrix) for matrix in preconditioners(pilot.local, problem.domain)
    ]
    why = maximum_principle_fails(problem, False) if min(anisotropies) >= 1 else None
    if why is None:
        return ()
    scheme, identity = TraceSplit(), np.eye(len(points[0]))
    worst = points[int(np.argmax(scheme.defects(pilot.local.invariants())))]
    first = contraction_too_large(scheme.theorem, identity, anisotropies[0], worst)
    return first.and_(f", with the best constant preconditioner {min(anisotropies):.4g}"), why


# The maximum principle ----------------------------------------------------------------------------


def _negative_reaction(coverage: AbstractCoverage) -> Reason | None:
    if coverage.nonnegative_reaction()[0]:
        return None
    return negative_reaction("somewhere", float(np.min(coverage.local.c)))


def _no_maximum_principle(equation: LinearEquation, coverage: AbstractCoverage) -> Reason | None:
    """Why the maximum principle may fail: c < 0, an unbounded drift, or no hypothesis (H)."""
    problem = equation.problem
    if why := _negative_reaction(coverage) or unbounded_drift(problem, coverage):
        return why
    cordes = problem.domain.dimension > 2 and _cordes(equation, coverage)
    return maximum_principle_fails(problem, cordes)


def _cordes(equation: LinearEquation, coverage: AbstractCoverage) -> bool:
    """Whether A satisfies the Cordès condition with the best preconditioner."""
    matrix = preconditioners(equation.pilot.local, equation.domain)[-1]
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
        sentence = "the guaranteed statistical bound covers the energy norms, not the largest error"
        return no_maxima(Why.not_covered, sentence)
    why = _negative_reaction(coverage)
    if why is None:
        cordes = any(energy.transform is None for energy in energies)
        if not cordes and (problem.has_drift or problem.has_reaction):
            cordes = _cordes(equation, coverage)
        why = maximum_principle_fails(problem, cordes) or unbounded_drift(problem, coverage)
    if why is not None:
        return Maxima(None, [], why)
    known = equation.measure, equation.evaluated, problem.has_drift
    principle = MaximumPrinciple(problem.domain, *known, coverage=coverage)
    principle.enclosed = equation.enclosed_norm
    found = maxima(principle)
    walled = isinstance(problem.domain, Walled)
    if not walled:
        found += drift_bounds(problem, principle, coverage)
    if not problem.has_drift and np.isfinite(principle.factor):
        found += _enclosed_estimate(equation, principle, found[0])
    if extra is not None and not walled:
        found.append(extra(principle))
    if equation.missed:
        found = [each for each in found if each.enclosed]
    if not found and not equation.missed:
        sentence = "no bound of the largest error by the maximum principle: it needs given values "
        return no_maxima(Why.no_theorem, f"{sentence}at one end of a direction, or c ≥ c₀ > 0")
    if not found:
        sentence = "no bound of the largest error: the points of the norms miss a part of r"
        return no_maxima(Why.unseen, sentence)
    return chosen(equation, best_of(found), found, principle.size)


def _enclosed_estimate(
    equation: LinearEquation, principle: MaximumPrinciple, estimate: Maximum
) -> list[Maximum]:
    """The ABP estimate with the norm of both signs together, which is enclosed."""
    weight, dimension = over_root(determinant_root), equation.domain.dimension
    norm = equation.enclosed_norm(weight, dimension, estimate.norms[0])
    return [] if norm is None else [principle.estimate(norm)]
