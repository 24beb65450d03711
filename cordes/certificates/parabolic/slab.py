"""One slab of time: an answer on a cylinder, looked at with all theorems that hold there."""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.enclosed.abstract import Equation, Weight
from cordes.certificates.enclosed.controls import ControlMeasure, controlled_measure
from cordes.certificates.enclosed.refinement import CHEAP, CellBudget
from cordes.certificates.enclosed.suprema_in_time import limits_on_cells, profile_of
from cordes.certificates.enclosed.weights import UNIT, invariants
from cordes.certificates.parabolic.choice import PilotInTime, TrialInTime
from cordes.certificates.parabolic.operators import CoverageInTime, LookedInTime, OperatorsInTime
from cordes.certificates.reason import Reason, Why, contraction_too_large
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    not_finite,
)
from cordes.certificates.residual.hypotheses import not_seen
from cordes.certificates.residual.measured import (
    MeasuredLayer,
    Sampling,
    Watched,
    measured_closely,
    pilot_points_of,
    refusal_of,
)
from cordes.certificates.residual.norms import Measure, Norm
from cordes.certificates.theorems.comparison import ProfileInTime
from cordes.certificates.theorems.contraction import Contraction
from cordes.certificates.theorems.energy import Local, is_identity
from cordes.certificates.theorems.energy_in_time import SchemeInTime
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.constants import first_eigenvalue
from cordes.domains.cylinder import Cylinder
from cordes.domains.walls import walled_part
from cordes.errors import DomainError
from cordes.formulas.intervals import UnsupportedOperation
from cordes.problems.controls.controlled import played
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

# Norms for which one sample serves at most: energy, KT.
SAMPLE_SEED, NORMS_OF_A_SAMPLE = 5_550_006, 3
# Theorems whose contraction is looked for over all of space and time.
TRIED = 3
# Stretches of time in which the largest residual at points is taken.
STRETCHES = 64
# A norm that is enclosed may be so many times what its points show.
WIDEST = 20.0


class State(NamedTuple):
    """At points: limits of F_g and of F, and the times since the start of the slab."""

    scaled_low: np.ndarray
    scaled_high: np.ndarray
    low: np.ndarray
    high: np.ndarray
    time: np.ndarray

    @property
    def scaled(self) -> np.ndarray:
        """|F_g|, rounded up."""
        return np.maximum(np.abs(self.scaled_low), np.abs(self.scaled_high))

    @property
    def least(self) -> np.ndarray:
        """|F_g|, rounded down."""
        return np.maximum(np.maximum(self.scaled_low, -self.scaled_high), 0.0)

    @property
    def size(self) -> np.ndarray:
        """|F|, rounded up."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


class Energy(NamedTuple):
    """TP as it was applied: with which scheme, the contraction over the whole slab, and the norm of
    the residual."""

    trial: TrialInTime
    contraction: Contraction
    norm: Norm

    @property
    def scheme(self) -> SchemeInTime:
        return self.trial.scheme

    @property
    def enclosed(self) -> bool:
        return self.norm.enclosed and self.contraction.source != "sampled"

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue of M."""
        return float(np.linalg.eigvalsh(self.trial.matrix)[0]) * (1 - 1e-12)

    @property
    def plain(self) -> bool:
        """Whether it speaks of Δv itself."""
        return is_identity(self.trial.matrix) and self.scheme.shift == 0


@dataclass(frozen=True)
class Slab:
    """What is known of the residual on a slab. `energy` is None where TP does not hold, and
    `failures` say why; `profile` are the suprema, `profile_level` says how they are known; `power`
    is the norm of F in L^{d+1}."""

    problem: AbstractProblem
    operators: OperatorsInTime
    coverage: CoverageInTime
    measure: Measure
    state: State
    energy: Energy | None
    failures: tuple[Reason, ...]
    profile: ProfileInTime
    profile_level: str
    power: Norm
    enclosed: ControlMeasure | None
    # By how much the answer jumps at the start: in the norm N, and at most.
    jump: float = 0.0
    step: float = 0.0

    @property
    def start(self) -> float:
        return self.problem.domain.start  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def length(self) -> float:
        return self.problem.domain.length  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def level(self) -> str:
        """That of the norm of the residual."""
        if self.energy is not None and self.energy.norm.enclosed:
            return "enclosed"
        return self.measure.level

    def norm_until(self, t: float) -> float:
        """‖F_g‖ from the start to a time of the slab, from above: all cells that begin before it
        count as a whole."""
        assert self.energy is not None
        whole = self.energy.norm.upper
        if t >= self.start + self.length:
            return whole
        if self.enclosed is None or not self.energy.norm.enclosed:
            return whole
        return min(whole, math.sqrt(_squares_until(self.enclosed, self.weight, t)))

    @functools.cached_property
    def weight(self) -> Weight:
        assert self.energy is not None
        return weight_of(self.energy.scheme, self.energy.trial.matrix, self.start)


def looked_at(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float,
    still: bool = True,
) -> Slab | Reason:
    """A slab and an answer on it; `still`: the answer starts with the values of the solution."""
    domain = problem.domain
    assert isinstance(domain, Cylinder)
    operators = OperatorsInTime(problem)
    pilot_points = pilot_points_of(domain)
    looked = LookedInTime(operators, candidate, pilot_points)
    seen = looked.at(pilot_points)
    bad = not_finite(seen.defect, seen.local.A.reshape(len(pilot_points), -1))
    if len(bad):
        return _not_finite(pilot_points[bad[0]])
    coverage = CoverageInTime(operators, pilot_points)
    if reason := coverage.not_elliptic():
        return reason
    trial, contraction, failures = _chosen(problem, coverage, seen, pilot_points, still)
    weights = [UNIT] if trial is None else [weight_of(trial.scheme, trial.matrix, domain.start)]
    enclosed = _enclosed(operators, candidate, [*weights, UNIT][:2])
    evaluate = functools.partial(_state, looked, trial, domain.start)
    own = (() if enclosed is not None else candidate.formulas), candidate.exact, candidate.scales
    watched = Watched(evaluate, lambda state: _densities(state, domain.dimension), *own)
    sampling = Sampling(SAMPLE_SEED, NORMS_OF_A_SAMPLE, confidence)
    measure, state, layers = measured_closely(problem, watched, sampling, singular, _limits)
    if reason := _unusable(problem, candidate, measure, state, layers, enclosed is not None):
        return reason
    energy = None
    if trial is not None and contraction is not None:
        norm = _norm(measure, state, enclosed, weights[0])
        energy = Energy(trial, contraction, norm) if norm.converged else None
        if energy is None:
            failures = (*failures, _not_converged(norm))
    profile, level = _profile(domain, measure, state, enclosed)
    power = _power(domain.dimension, measure, state, enclosed, profile, level)
    return Slab(
        problem,
        operators,
        coverage,
        measure,
        state,
        energy,
        failures,
        profile,
        level,
        power,
        enclosed,
    )


def weight_of(scheme: SchemeInTime, matrix: np.ndarray, start: float) -> Weight:
    """g e^{-μ(t - t₀)}, of coefficients that know the time."""

    def at(x: np.ndarray, local: Local) -> np.ndarray:
        d = x.shape[1] - 1
        in_space = Local(local.A[:, :d, :d], local.b[:, :d], local.c)
        return scheme.multiplier(in_space.invariants(matrix)) * np.exp(
            -scheme.shift * (x[:, -1] - start)
        )

    def squared(equation: Equation) -> Any:
        x, A, b, c = equation
        d = A.shape[-1] - 1
        in_space = Equation(x, A[..., :d, :d], b[..., :d], c)
        g: Any = scheme.multiplier(invariants(in_space, matrix))  # pyright: ignore
        if scheme.shift == 0:
            return g.square()
        since = x[..., -1] - start
        # One time for all controls.
        since = since.map(lambda part: part.reshape(part.shape + (1,) * (g.lower.ndim - part.ndim)))
        return g.square() * np.exp(since * (-2 * scheme.shift))

    return Weight(at, squared)


def _chosen(
    problem: AbstractProblem,
    coverage: CoverageInTime,
    seen: Any,
    points: np.ndarray,
    still: bool,
) -> tuple[TrialInTime | None, Contraction | None, tuple[Reason, ...]]:
    """The theorem with the best promise whose contraction holds everywhere."""
    if problem.maximiser is not None:
        sentence = "no energy theorem is known for a continuum of controls in time"
        return None, None, (Reason(Why.no_theorem, sentence),)
    domain, space = problem.domain, problem.space
    times, trials = points[:, -1] - domain.start, []  # pyright: ignore
    for matrix in preconditioners(coverage.local, space):
        matrix = matrix * len(matrix) / np.trace(matrix)
        eigenvalue = first_eigenvalue(space, matrix)
        if eigenvalue > 0 or walled_part(space) is not None:
            length = domain.length  # pyright: ignore
            trials += PilotInTime(seen, times, matrix, eigenvalue, length, still).trials()
    trials.sort(key=lambda trial: (trial.promise, trial.contraction))
    failures, sampled = [], None
    for trial in trials[:TRIED]:
        found = coverage.contraction(trial.scheme, trial.matrix)
        if found.value < 1 and found.source != "sampled":
            return trial, found, ()
        if found.value < 1:
            sampled = sampled or (trial, found)
            continue
        failures.append(
            contraction_too_large(trial.scheme.theorem, trial.matrix, found.value, found.point)
        )
    if sampled is not None:
        return *sampled, ()
    return None, None, tuple({str(failure): failure for failure in failures}.values())


def _state(looked: LookedInTime, trial: TrialInTime | None, start: float, x: np.ndarray) -> State:
    seen = looked.at(x)
    count = seen.defect.shape[1]
    g, time = np.ones_like(seen.defect), x[:, -1] - start
    if trial is not None:
        flat = Local(*(part.reshape(-1, *part.shape[2:]) for part in seen.local))
        g = trial.scheme.multiplier(flat.invariants(trial.matrix)).reshape(-1, count)
        g = g * np.exp(-trial.scheme.shift * time)[:, None]
    low, high = seen.defect - seen.rounding, seen.defect + seen.rounding
    rivals = looked.operators.rivals
    return State(
        played(g * low, rivals),
        played(g * high, rivals),
        played(low, rivals),
        played(high, rivals),
        time,
    )


def _densities(state: State, power: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.stack([state.scaled**2, state.size**power], axis=1)


def _limits(state: State) -> tuple[np.ndarray, np.ndarray]:
    return state.least, state.scaled


def _enclosed(
    operators: OperatorsInTime, candidate: AbstractCandidate, weights: list[Weight]
) -> ControlMeasure | None:
    """Cells from which nothing can hide, in up to three dimensions of space and time together."""
    if operators.domain.dimension > 3 or _polynomial(candidate):
        return None
    budget = CellBudget() if isinstance(candidate, AnswerCandidate) else CHEAP
    try:
        found = controlled_measure(operators, candidate, weights, budget)  # pyright: ignore
    except (UnsupportedOperation, DomainError):
        return None
    return found if found.excess(weights[0]) <= WIDEST else None


def _polynomial(candidate: AbstractCandidate) -> bool:
    """Whether there are polynomials of high degree in the lift, which rectangles cannot follow."""
    return isinstance(candidate, AnswerCandidate) and bool(candidate.solution.fits)


def _norm(measure: Measure, state: State, enclosed: ControlMeasure | None, weight: Weight) -> Norm:
    if enclosed is not None:
        norm = enclosed.norm_of(weight)
        if norm.enclosed:
            return norm
    lower = measure.norm(state.least).lower
    return measure.norm(state.scaled)._replace(lower=lower)


def _profile(
    domain: Any, measure: Measure, state: State, enclosed: ControlMeasure | None
) -> tuple[ProfileInTime, str]:
    """R^± in time: enclosed, or what points show in stretches of equal length."""
    edges = np.linspace(0.0, domain.length, STRETCHES + 1)
    place = np.clip(np.searchsorted(edges, state.time) - 1, 0, STRETCHES - 1)
    above, below = np.zeros(STRETCHES), np.zeros(STRETCHES)
    np.maximum.at(above, place, state.high)
    np.maximum.at(below, place, -state.low)
    shown = ProfileInTime(domain.start + edges, above, below)
    if enclosed is not None:
        found = profile_of(*limits_on_cells(enclosed))
        if np.all(np.isfinite(found.above)) and np.all(np.isfinite(found.below)):
            return found, "enclosed"
    return shown, "sampled"


def _power(
    dimension: int,
    measure: Measure,
    state: State,
    enclosed: ControlMeasure | None,
    profile: ProfileInTime,
    level: str,
) -> Norm:
    """‖F‖ in L^{d+1}: with ‖F‖^p ≤ sup|F|^{p-2} ‖F‖₂² where only the square is enclosed."""
    if enclosed is not None and level == "enclosed":
        square = enclosed.norm_of(UNIT)
        if square.enclosed:
            most = max(float(np.max(profile.above)), float(np.max(profile.below)))
            upper = (most ** (dimension - 2) * square.upper**2) ** (1 / dimension)
            return Norm(0.0, upper * (1 + 1e-12), enclosed=True)
    return measure.norm(state.size, float(dimension))


def _squares_until(enclosed: ControlMeasure, weight: Weight, t: float) -> float:
    squares, begins = enclosed.squares_of(weight)
    return float(np.sum(squares[begins < t])) * (1 + 1e-12)


def _unusable(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    measure: Measure,
    state: State,
    layers: list[MeasuredLayer],
    enclosed: bool,
) -> Reason | None:
    bad = not_finite(*state[:4])
    if len(bad):
        return _not_finite(measure.points[bad[0]])
    return not_seen(problem, candidate, measure.points, enclosed) or refusal_of(layers)


def _not_finite(point: np.ndarray) -> Reason:
    sentence = f"the equation or the residual is not a finite number at (x, t) = {show(point)}"
    return Reason(Why.not_finite, sentence, {"point": point})


def _not_converged(norm: Norm) -> Reason:
    sentence = "the norm of the residual did not converge: n and 2n points per direction differ by"
    return Reason(
        Why.not_converged, f"{sentence} {100 * norm.spread:.2g} %", {"spread": norm.spread}
    )
