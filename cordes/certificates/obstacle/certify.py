"""Certificates of problems with obstacles: bounds of the largest error by comparison (O1), from the
equation where it counts and from where the answer lies below the obstacle.

The suprema are those of points over the domain, denser at the start of time and where the answer
leaves the obstacle: their level is `sampled`. Energy norms have no bounds here; ‖v‖ follows from
the largest error.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.certificates.obstacle.points import too_narrow
from cordes.certificates.obstacle.potential import certify_potential, potential_of
from cordes.certificates.parabolic.operators import CoverageInTime, LookedInTime, OperatorsInTime
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate, not_finite
from cordes.certificates.residual.hypotheses import boundary_gap, refusal
from cordes.certificates.residual.measured import pilot_points_of
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.stopping import (
    ComparisonSide,
    Stopped,
    in_time,
    with_barrier,
    with_reaction,
)
from cordes.domains.constants import circumscribed
from cordes.formulas.regularity import jump
from cordes.problems.coefficients import sample
from cordes.problems.controls.controlled import played
from cordes.problems.obstacle import Obstacle
from cordes.runtime.plain import show

POINTS, SEED = 1 << 15, 5_550_011
# Times t = T u^p for the points, and stretches of time, whose lengths grow likewise.
EARLY, STRETCHES = 3.0, 96
# Points for each one that is moved to where stopping begins.
NEAR = 4
# Farther from an obstacle than any answer is.
FAR = 1e300


def certify_obstacle(
    problem: Obstacle, candidate: AbstractCandidate, singular: np.ndarray, confidence: float = 0.99
) -> Certificate:
    """O1 with the best η."""
    if reason := too_narrow(problem, candidate.formulas):
        return Certificate(reasons=(reason,))
    if (network := potential_of(candidate)) is not None:
        return certify_potential(problem, network)
    if reason := refusal(problem, candidate):
        return Certificate(reasons=(reason,))
    if reason := _discontinuous(problem):
        return Certificate(reasons=(reason,))
    base = problem.base_problem
    operators = OperatorsInTime(base)
    pilot = pilot_points_of(problem.domain)
    looked = LookedInTime(operators, candidate, pilot)
    coverage = CoverageInTime(operators, pilot)
    points = _points(problem)
    points = np.concatenate([points, _near_the_rim(problem, candidate, points)])
    seen = _seen(problem, looked, candidate, points)
    bad = not_finite(*seen)
    if len(bad):
        sentence = f"the equation or the residual is not a finite number at {show(points[bad[0]])}"
        return Certificate(reasons=(Reason(Why.not_finite, sentence),))
    gap = boundary_gap(problem, candidate)
    rate, _ = coverage.smallest_reaction()
    found = _compared(problem, operators, _sides(seen, gap.addition), points, rate)
    if isinstance(found, Reason):
        return Certificate(reasons=(found,), points=len(points))
    return _certificate(problem, found, gap.rounding, len(points))


def _certificate(problem: Obstacle, found: Stopped, rounding: float, points: int) -> Certificate:
    largest = float(found.bounds.largest) + rounding
    if not math.isfinite(largest):
        why = Reason(Why.no_theorem, "O1 gives no finite bound")
        return Certificate(reasons=(why,), points=points)
    by = Citation(Theorem.O1, "class V")
    words = "no bounds of derivatives: comparison speaks of values alone"
    return Certificate(
        L2=largest * math.sqrt(problem.domain.volume),
        rms=largest,
        Linf=largest,
        citation=by,
        maximum_citation=by,
        level="sampled",
        reasons=(Reason(Why.no_theorem, words),),
        points=points,
        citations={"L2": by, "Linf": by},
        alternatives={f"{by}, η = {found.eta[1]:.3g}": largest},
        classes={"V": "u is the continuous viscosity solution"},
    )


def _discontinuous(problem: Obstacle) -> Reason | None:
    """Comparison of viscosity solutions needs continuous coefficients and obstacles."""
    functions = dict(problem.data())
    functions |= {
        name: function
        for name, function in (("below", problem.lower), ("above", problem.upper))
        if function is not None
    }
    for name, function in functions.items():
        found = jump(function, problem.domain)
        if found is not None:
            sentence = f"O1 needs continuous coefficients and obstacles; {name}: {found}"
            return Reason(Why.jump, sentence)
    return None


def _points(problem: Obstacle) -> np.ndarray:
    domain = problem.domain
    points = domain.interior_points(POINTS, SEED, "sobol")
    if problem.clock is not None:
        start, length = domain.start, domain.length  # pyright: ignore
        share = (points[:, -1] - start) / length
        points[:, -1] = start + length * np.maximum(share, 1e-4) ** EARLY
    return points


def _near_the_rim(
    problem: Obstacle, candidate: AbstractCandidate, points: np.ndarray
) -> np.ndarray:
    """Points on both sides of where stopping begins, between neighbours that disagree about it; at
    one time where there is time."""
    d = problem.space.dimension
    half = len(points) // NEAR
    starts, ends = points[:half].copy(), points[half : 2 * half].copy()
    if problem.clock is not None:
        ends[:, -1] = starts[:, -1]

    def stops(x: np.ndarray) -> np.ndarray:
        return problem.stops(x, candidate.jet(x))

    one, other = stops(starts), stops(ends)
    differ = one != other
    low, high, first = starts[differ], ends[differ], one[differ]
    if not len(low):
        return np.zeros((0, points.shape[1]))
    for _ in range(40):
        middle = (low + high) / 2
        same = stops(middle) == first
        low = np.where(same[:, None], middle, low)
        high = np.where(same[:, None], high, middle)
    generator = np.random.default_rng(SEED)
    lower, upper = problem.space.bounding_box
    spread = np.zeros_like(low)
    size = 10.0 ** generator.uniform(-9, -1, (len(low), 1)) * (upper - lower)
    spread[:, :d] = size * generator.choice([-1.0, 1.0], (len(low), d))
    moved = (low + high) / 2 + spread
    return moved[problem.domain.contains(moved)]


class SeenStopping(NamedTuple):
    """At points: limits of F[w], w - ψ and Ψ - w with the rounding taken off; infinite where there
    is no such obstacle."""

    low: np.ndarray
    high: np.ndarray
    over: np.ndarray
    under: np.ndarray


def _seen(
    problem: Obstacle, looked: LookedInTime, candidate: AbstractCandidate, x: np.ndarray
) -> SeenStopping:
    seen = looked.at(x)
    low = played(seen.defect - seen.rounding, problem.rivals)
    high = played(seen.defect + seen.rounding, problem.rivals)
    if problem.sign < 0:
        # The operators were turned round with the infimum.
        low, high = -high, -low
    value, rounding = candidate.value(x)
    over = under = np.full(len(x), FAR)
    if problem.lower is not None:
        over = value - rounding - sample(problem.lower, x)
    if problem.upper is not None:
        under = sample(problem.upper, x) - value - rounding
    return SeenStopping(low, high, over, under)


def _sides(seen: SeenStopping, boundary: float) -> tuple[ComparisonSide, ComparisonSide]:
    """Above, u - w, the residual counts where w is below Ψ, and w may be below ψ; below, w - u, it
    is the other way round."""
    above, below = np.maximum(seen.high, 0.0), np.maximum(-seen.low, 0.0)
    short, excess = float(np.max(-seen.over)), float(np.max(-seen.under))
    return (
        ComparisonSide(above, seen.under, max(short, boundary)),
        ComparisonSide(below, seen.over, max(excess, boundary)),
    )


def _compared(
    problem: Obstacle,
    operators: OperatorsInTime,
    sides: tuple[ComparisonSide, ComparisonSide],
    points: np.ndarray,
    rate: float,
) -> Stopped | Reason:
    domain: Any = problem.domain
    if problem.clock is not None:
        share = (np.arange(STRETCHES + 1) / STRETCHES) ** EARLY
        edges = domain.start + domain.length * share
        return in_time(*sides, points[:, -1], edges, rate)
    if rate > 0:
        return with_reaction(*sides, rate)
    if rate < 0 or problem.has_drift:
        sentence = "no bound: O1 without time needs c > 0, or c ≥ 0 and no drift"
        return Reason(Why.negative_reaction, sentence, {"smallest": rate})
    traces = [
        np.trace(operators.of_control(points, k).A, axis1=1, axis2=2)
        for k in range(operators.count)
    ]
    return with_barrier(*sides, np.min(traces, axis=0), circumscribed(domain)[1])
