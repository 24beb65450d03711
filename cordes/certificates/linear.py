"""Certificates of linear equations: from a problem and an answer to bounds of the error, or the
reason why there are none.

The way: hypotheses (`hypotheses`), the residual at points that served neither to fit nor to choose
(`cells`, `norms`), the energy theorems (`theorems`, with `energy`, `contraction`, `preconditioner`,
`exponential`), the bounds of the maximum (`maximum`), and the best of each.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.residual.candidate import Candidate, Evaluated
from cordes.certificates.residual.hypotheses import (
    Gap,
    boundary_gap,
    maximum_principle_fails,
    not_seen,
    refusal,
)
from cordes.certificates.residual.layers import Layer, refusal_of, unseen_layers
from cordes.certificates.residual.norms import (
    Measure,
    Quadrature,
    Sample,
    bounded,
    refined_quadrature,
    unresolved,
)
from cordes.certificates.theorems.barrier import network_bound
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local, TraceSplit
from cordes.certificates.theorems.energy_bounds import (
    EnergyBound,
    Equation,
    about_laplacian,
    energy_bounds,
    failure,
)
from cordes.certificates.theorems.maximum import (
    LIKE_A_POLE,
    Maximum,
    MaximumPrinciple,
    best_of,
    maxima,
)
from cordes.certificates.theorems.preconditioner import anisotropy, preconditioners
from cordes.domains.constants import polar_factor
from cordes.domains.domain import AbstractDomain
from cordes.problems.condition import epsilon_at
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

PILOT_SEED, SAMPLE_SEED = 5_550_001, 5_550_002
PILOT_POINTS = 512
# Points after which refinement ends; most answers need a quarter of them.
BUDGETS = {1: 20_000, 2: 120_000, 3: 200_000}
SAMPLE_POINTS = 1 << 15
# Numbers in the matrices of all points of a sample, and the least number of its points: in many
# dimensions fewer points are used.
SAMPLE_NUMBERS, LEAST_SAMPLE = 1 << 25, 2048
# A bound whose contraction is only sampled must be this much smaller to be preferred.
PREFERENCE = 1.5
# Norms for which one sample serves at most: energy, the two signs of ABP, drift.
NORMS_OF_A_SAMPLE = 4


def certify_linear(
    problem: AbstractProblem,
    candidate: Candidate,
    singular: np.ndarray,
    confidence: float = 0.99,
    residual_bound: float | None = None,
    barrier: bool = False,
) -> Certificate:
    """The best bounds that the theorems give. `singular` (K, d) are points around which the
    residual may be large; `barrier` trains a barrier network."""
    reason = refusal(problem, candidate)
    if reason is not None:
        return Certificate(reason=reason)
    pilot_points = pilot_points_of(problem.domain)
    pilot = candidate.evaluate(pilot_points)
    reason = _not_finite(pilot, pilot_points)
    if reason is not None:
        return Certificate(reason=reason)
    hopeless = _hopeless(problem, pilot_points, pilot)
    if hopeless is not None:
        return Certificate(reason=hopeless)
    equation, layers = _measured(
        problem, candidate, singular, confidence, residual_bound, pilot_points, pilot
    )
    reason = _not_finite(equation.evaluated, equation.measure.points) or _contradicted(equation)
    if reason is not None:
        return Certificate(reason=reason)
    reason = not_seen(problem, candidate, equation.measure.points) or refusal_of(layers)
    if reason is not None:
        return Certificate(reason=reason)
    extra = (
        (lambda principle: network_bound(problem, candidate, principle, singular))
        if barrier
        else None
    )
    coverage = _coverage(problem, equation)
    return with_gap(
        boundary_gap(problem, candidate),
        bounds(equation, coverage, extra),
        lambda: _no_maximum_principle(equation, coverage),
    )


def with_gap(
    gap: Gap, certificate: Certificate, no_maximum_principle: Callable[[], str | None]
) -> Certificate:
    """The bounds of u minus the values that a computer gives for the answer, whose boundary values
    differ from g by a little.

    Let u₁ solve the equation with the boundary values of the answer: the theorems bound u₁ - u_θ,
    and |u - u₁| is no more than the gap by the maximum principle. It says nothing about
    derivatives: their bounds stay where the difference is rounding, and the exact answer has the
    right boundary values.
    """
    if certificate.rms is None or certificate.L2 is None:
        return certificate
    why = None if gap.exact else no_maximum_principle()
    if why is not None:
        return Certificate(
            reason=(
                f"the boundary values miss g by {gap.size:.2g}, and what follows from it is not "
                f"known: {why}"
            )
        )
    more, picture = gap.addition, certificate.picture
    shape = (
        certificate.L2 / certificate.rms
        if certificate.rms > 0
        else math.sqrt(picture.problem.domain.volume)
        if picture is not None
        else 1.0
    )
    certificate = replace(
        certificate,
        L2=certificate.L2 + more * shape,
        rms=certificate.rms + more,
        Linf=None if certificate.Linf is None else certificate.Linf + more,
        alternatives={name: value + more for name, value in certificate.alternatives.items()},
        picture=None if picture is None else picture._replace(bound=_raised(picture.bound, more)),
    )
    if gap.exact:
        return certificate
    reason = f"no bounds of ∇v and D²v: the boundary values miss g by {gap.size:.2g}"
    return replace(
        certificate,
        H2=None,
        H1=None,
        energy=None,
        lambda_=None,
        reason=f"{certificate.reason}; {reason}" if certificate.reason else reason,
    )


def _raised(
    bound: Callable[[np.ndarray], np.ndarray] | None, more: float
) -> Callable[[np.ndarray], np.ndarray] | None:
    return None if bound is None else lambda points: bound(points) + more


def _no_maximum_principle(equation: Equation, coverage: Coverage) -> str | None:
    """Why the maximum principle may fail: c < 0, an unbounded drift, or no hypothesis (H)."""
    problem = equation.problem
    if not coverage.nonnegative_reaction()[0]:
        return (
            f"c is negative somewhere ({float(np.min(coverage.local.c)):.4g}): the maximum "
            "principle does not apply"
        )
    if problem.has_drift and not coverage.bounded_drift():
        return "no bound of the largest error: b could not be bounded over the whole domain"
    cordes = (
        problem.domain.dimension > 2
        and coverage.contraction(TraceSplit(), preconditioners(equation.pilot.local)[-1]).value < 1
    )
    return maximum_principle_fails(problem, cordes)


def _not_finite(evaluated: Evaluated, points: np.ndarray) -> str | None:
    bad = evaluated.not_finite()
    return (
        f"the equation or the residual is not a finite number at x = {show(points[bad[0]])}"
        if len(bad)
        else None
    )


def _contradicted(equation: Equation) -> str | None:
    """What the user vouches for, seen to be wrong."""
    problem, bound = equation.problem, equation.residual_bound
    largest = max(
        float(np.max(evaluated.least)) for evaluated in (equation.pilot, equation.evaluated)
    )
    if bound is not None and largest > bound:
        return (
            f"residual_bound = {bound:.6g}, but the residual reaches {largest:.6g}: correct it or "
            "leave it out"
        )
    if problem.epsilon is not None and not (problem.has_drift or problem.has_reaction):
        epsilon = epsilon_at(*equation.evaluated.local, None)
        problem.check_claimed_epsilon(
            float(np.min(epsilon)), equation.measure.points[int(np.argmin(epsilon))]
        )
    return None


def _hopeless(problem: AbstractProblem, points: np.ndarray, pilot: Evaluated) -> str | None:
    """Why no theorem can hold, seen from a few points before any long work; None where one may."""
    if problem.has_drift or problem.has_reaction:
        return None
    anisotropies = [anisotropy(pilot.local, matrix) for matrix in preconditioners(pilot.local)]
    why = maximum_principle_fails(problem, False) if min(anisotropies) >= 1 else None
    if why is None:
        return None
    worst = int(np.argmax(TraceSplit().defects(pilot.local.invariants())))
    first = failure(TraceSplit(), np.eye(len(points[0])), anisotropies[0], points[worst])
    return f"{first}, with the best constant preconditioner {min(anisotropies):.4g}; {why}"


def bounds(
    equation: Equation,
    coverage: Coverage,
    extra: Callable[[MaximumPrinciple], Maximum] | None = None,
) -> Certificate:
    """All theorems applied to one equation whose residual is known on a measure, and one more bound
    of the maximum if it is wanted."""
    degenerate = coverage.degenerate_point()
    if degenerate is not None:
        return Certificate(
            reason=(
                f"A is not positive definite near x = {show(degenerate)}: the equation is not "
                "elliptic there"
            )
        )
    energies, failures = energy_bounds(equation, coverage)
    disagreement = disagreement_of(equation.measure, energies)
    energies = [energy for energy in energies if energy.norm.converged]
    maximum, others, why = _maximum(equation, coverage, energies, extra)
    reasons = [*failures, *disagreement, *([why] if why else [])]
    return assemble(equation, energies, maximum, others, reasons)


def _measured(
    problem: AbstractProblem,
    candidate: Candidate,
    singular: np.ndarray,
    confidence: float,
    residual_bound: float | None,
    pilot_points: np.ndarray,
    pilot: Evaluated,
) -> tuple[Equation, list[Layer]]:
    """The residual on the points of the norms, and what they do not see; the pilot points serve to
    choose parameters."""

    def scaled(evaluated: Evaluated, size: np.ndarray) -> np.ndarray:
        return problem.domain.dimension / np.trace(evaluated.local.A, axis1=1, axis2=2) * size

    def least(x: np.ndarray) -> np.ndarray:
        evaluated = candidate.evaluate(x)
        return scaled(evaluated, evaluated.least)

    how = (problem, singular, confidence, candidate.evaluate, _densities, NORMS_OF_A_SAMPLE)
    if residual_bound is not None:
        # What the user vouches for is no pole.
        (measure, evaluated), layers = measure_of(*how, proved=True), []
    else:
        measure, evaluated, layers = measured_closely(
            *how, least, lambda evaluated: scaled(evaluated, evaluated.size)
        )
    return Equation(
        problem, candidate, measure, evaluated, pilot, pilot_points, residual_bound
    ), layers


def measured_closely(
    problem: AbstractProblem,
    singular: np.ndarray,
    confidence: float,
    evaluate: Callable,
    densities: Callable,
    norms: int,
    least: Callable,
    size: Callable,
) -> tuple[Measure, Any, list[Layer]]:
    """`measure_of`, and once more with small cells at the corners and singular points around which
    it sees too little; the layers that stay unseen. `least` bounds the residual at points from
    below, `size` gives its upper bound from what is evaluated."""
    how = (problem, singular, confidence, evaluate, densities, norms)

    def looked_at(measure: Measure, evaluated: Any) -> tuple[Measure, Any, list[Layer]]:
        values = size(evaluated)
        layers = (
            unseen_layers(problem.domain, singular, least, measure.norm(values).upper)
            if np.all(np.isfinite(values))
            else []
        )
        return measure, evaluated, layers

    measure, evaluated, layers = looked_at(*measure_of(*how))
    corners = [layer.corner for layer in layers if layer.corner is not None]
    if not corners or len(corners) < len(layers) or isinstance(measure, Sample):
        return measure, evaluated, layers
    return looked_at(*measure_of(*how, corners=corners))


def measure_of(
    problem: AbstractProblem,
    singular: np.ndarray,
    confidence: float,
    evaluate: Callable,
    densities: Callable,
    norms: int,
    proved: bool = False,
    corners: Sequence[np.ndarray] = (),
) -> tuple[Measure, Any]:
    """The points of the norms and what `evaluate` gives there: quadrature refined for the
    `densities` in up to three dimensions, where the domain has a mesh and no proof is asked for,
    with small cells around `corners`; else a sample that serves for a number of `norms`."""
    domain, d = problem.domain, problem.domain.dimension
    refined = (
        None
        if proved
        else refined_quadrature(
            domain, problem.interfaces, singular, evaluate, densities, BUDGETS, corners
        )
    )
    if refined is not None:
        return refined
    points = domain.interior_points(
        int(np.clip(SAMPLE_NUMBERS // d**2, LEAST_SAMPLE, SAMPLE_POINTS)), SAMPLE_SEED
    )
    return Sample(points, domain.volume, confidence, norms, proved), evaluate(points)


def pilot_points_of(domain: AbstractDomain) -> np.ndarray:
    """Interior points, and points a hair inside the boundary and the corners, where coefficients
    are often worst."""
    center = np.asarray(domain.center)
    boundary, _ = domain.boundary_points(PILOT_POINTS // 4, PILOT_SEED)
    parts = [
        domain.interior_points(PILOT_POINTS, PILOT_SEED, "sobol"),
        center + (1 - 1e-9) * (boundary - center),
    ]
    if domain.vertices is not None:
        parts.append(center + (1 - 1e-9) * (domain.vertices - center))
    return np.concatenate(parts)


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


def _coverage(problem: AbstractProblem, equation: Equation) -> Coverage:
    points = np.concatenate([equation.pilot_points, equation.measure.points])
    local = Local(
        *(
            np.concatenate(pair)
            for pair in zip(equation.pilot.local, equation.evaluated.local, strict=True)
        )
    )
    lower_order = problem.has_drift or problem.has_reaction
    return Coverage(
        problem.domain,
        lambda x: problem.linearise(x)[:3],
        lambda x: Local(*problem.coefficients(x)[:3]),
        points,
        local,
        problem.constant_coefficients,
        None if lower_order else problem.epsilon,
    )


def disagreement_of(measure: Measure, energies: list[EnergyBound]) -> list[str]:
    """Why the energy bounds are not given, where their norms did not converge."""
    spreads = [energy.norm.spread for energy in energies]
    if not energies or min(spreads) <= 0.01:
        return []
    remedy = (
        "; a jump or a peak may be unresolved: declare the interface, or solve more accurately"
        if min(spreads) < math.inf
        else ""
    )
    return [
        f"the norm of the residual did not converge: {unresolved(measure, min(spreads))}{remedy}"
    ]


def _maximum(
    equation: Equation,
    coverage: Coverage,
    energies: list[EnergyBound],
    extra: Callable[[MaximumPrinciple], Maximum] | None,
) -> tuple[Maximum | None, list[Maximum], str | None]:
    """The best bound from the maximum principle, all of them, and why there is none."""
    problem = equation.problem
    if equation.residual_bound is not None:
        return (
            None,
            [],
            "the guaranteed statistical bound covers the energy norms, not the largest error",
        )
    nonnegative, _ = coverage.nonnegative_reaction()
    if not nonnegative:
        return (
            None,
            [],
            (
                f"c is negative somewhere ({float(np.min(coverage.local.c)):.4g}): the maximum "
                "principle does not apply"
            ),
        )
    cordes = any(energy.transform is None for energy in energies)
    if not cordes and (problem.has_drift or problem.has_reaction):
        matrix = preconditioners(equation.pilot.local)[-1]
        cordes = coverage.contraction(TraceSplit(), matrix).value < 1
    why = maximum_principle_fails(problem, cordes)
    if why is None and problem.has_drift and not coverage.bounded_drift():
        why = "no bound of the largest error: b could not be bounded over the whole domain"
    if why is not None:
        return None, [], why
    principle = MaximumPrinciple(
        equation.domain, equation.measure, equation.evaluated, problem.has_drift
    )
    found = maxima(principle)
    if extra is not None:
        found.append(extra(principle))
    best = best_of(found)
    if not best.converged:
        return (
            None,
            [],
            (
                "the ABP norm did not converge: "
                f"{unresolved(equation.measure, max(norm.spread for norm in best.norms))}"
            ),
        )
    return (
        (best, found, None)
        if math.isfinite(best.bound)
        else (None, [], no_maximum(principle.size()))
    )


def no_maximum(size: np.ndarray) -> str:
    """Why the bounds of the maximum are infinite."""
    if bounded(size, LIKE_A_POLE):
        return "the drift is too large for the ABP bound"
    return (
        f"no bound of the largest error: the residual has a pole, it reaches {np.max(size):.3g} "
        "at the points of the norms"
    )


def assemble(
    equation: Equation,
    energies: list[EnergyBound],
    maximum: Maximum | None,
    others: list[Maximum],
    reasons: list[str],
) -> Certificate:
    """The smallest bound of each norm."""
    domain, volume = equation.domain, equation.domain.volume
    best = min(energies, key=_preference, default=None)
    if best is not None and best.contraction.source != "sampled":
        # One word says how the contraction is known: it must hold for all bounds.
        energies = [energy for energy in energies if energy.contraction.source != "sampled"]
    greens = [(energy.Linf(domain), f"Green, {energy.theorem}") for energy in energies]
    tops = [(value, name) for value, name in greens if value is not None] + (
        [(maximum.bound, maximum.theorem)] if maximum is not None else []
    )
    Linf, maximum_theorem = min(tops, default=(None, None))
    squares = [(best.L2, best.theorem)] if best is not None else []
    if Linf is not None:
        squares.append((Linf * math.sqrt(volume), str(maximum_theorem)))
    if maximum is not None and isinstance(equation.measure, Quadrature):
        pointwise = equation.measure.norm(maximum.pointwise)
        squares += [(pointwise.upper, maximum.theorem)] if pointwise.converged else []
    L2, theorem = min(squares, default=(None, None))
    if L2 is None:
        return Certificate(
            reason="; ".join(reasons) or "no theorem applies",
            points=len(equation.measure.points),
            picture=_picture(equation, [], None),
        )
    curvature = min(
        (energy for energy in energies if energy.H2 is not None),
        key=lambda energy: energy.H2 or 0.0,
        default=None,
    )
    slope = min(energies, key=lambda energy: energy.H1, default=None)
    energy, lambda_ = _energy(energies)
    theorems = {
        "energy": best and best.theorem,
        "L2": theorem,
        "H1": slope and slope.theorem,
        "H2": curvature and curvature.theorem,
        "Linf": maximum_theorem,
    }
    norms = (
        best.norm
        if best is not None
        else max(maximum.norms, key=lambda norm: norm.spread)
        if maximum is not None and maximum.norms
        else None
    )
    return Certificate(
        H2=curvature and curvature.H2,
        H1=slope and slope.H1,
        L2=L2,
        rms=L2 / math.sqrt(volume),
        Linf=Linf,
        energy=energy,
        lambda_=lambda_,
        theorem=theorem,
        maximum_theorem=maximum_theorem,
        contraction=best.contraction.value if best is not None else None,
        constant=best.constant if best is not None else None,
        level=equation.measure.level,
        confidence=equation.measure.confidence,
        epsilon_source=best.contraction.source if best is not None else None,
        reason="; ".join(reasons) or None,
        points=len(equation.measure.points),
        spread=norms.spread if norms is not None else None,
        theorems={name: by for name, by in theorems.items() if by},
        alternatives={name: value for value, name in tops}
        | {each.theorem: each.bound for each in others},
        picture=_picture(equation, others, Linf),
    )


def _preference(energy: EnergyBound) -> float:
    return energy.L2 * (PREFERENCE if energy.contraction.source == "sampled" else 1.0)


def _energy(energies: list[EnergyBound]) -> tuple[tuple[float, float] | None, float | None]:
    """The bracket of ‖Δv - λv‖: from M = I where such a theorem holds, else from ‖M:D²v‖ ≤ |M| ‖Δv‖
    and ‖Δv‖ ≤ √d ‖D²v‖ with λ = 0."""
    plain = [energy for energy in energies if energy.transform is None]
    identity = [energy for energy in plain if about_laplacian(energy)]
    if identity:
        best = min(identity, key=lambda energy: energy.upper / max(energy.lower, 1e-300))
        same = [energy for energy in identity if energy.scheme.lambda_ == best.scheme.lambda_]
        return (
            max(energy.lower for energy in same),
            min(energy.upper for energy in same),
        ), best.scheme.lambda_
    free = [energy for energy in plain if energy.scheme.lambda_ == 0]
    if not free:
        return None, None
    lower = max(energy.lower / float(np.linalg.norm(energy.matrix)) for energy in free)
    upper = min(
        math.sqrt(len(energy.matrix)) * energy.upper / np.linalg.eigvalsh(energy.matrix)[0]
        for energy in free
    )
    return (lower, float(upper)), 0.0


def _picture(equation: Equation, others: list[Maximum], largest: float | None) -> Picture:
    """The pointwise bound is that of ABP, cut at the best bound of the maximum."""
    size = next(
        (each.norms[0].upper for each in others if each.theorem == "ABP" and each.converged), None
    )

    def bound(points: np.ndarray) -> np.ndarray:
        return np.minimum(
            polar_factor(equation.domain, points) * size, math.inf if largest is None else largest
        )

    return Picture(
        equation.problem,
        equation.residual_at,
        bound if size is not None else None,
        equation.measure.points,
    )
