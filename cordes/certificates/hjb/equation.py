"""Hamilton–Jacobi–Bellman equations as the energy theorems see them: an answer to which all
controls are applied, those of a finite set, each with its own multiplier, or of a continuum with a
multiplier common to all."""

import abc
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.enclosed.abstract import Weight
from cordes.certificates.enclosed.controls import ControlMeasure, controlled_measure
from cordes.certificates.enclosed.refinement import CHEAP
from cordes.certificates.enclosed.weights import multiplier
from cordes.certificates.equation import FEW, SEEN, AbstractEquation, EnergyBound, Trial
from cordes.certificates.hjb.coverage import (
    ENCLOSED,
    ContinuumCoverage,
    ControlCoverage,
    choose_common,
    local_of,
)
from cordes.certificates.hjb.energy import (
    ROUNDING_OF_EQUATIONS,
    Best,
    Pairs,
    SeenControls,
    rounding_of,
)
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import (
    CHUNK,
    EPSILON,
    AbstractCandidate,
    FunctionCandidate,
    not_finite,
    operator_terms,
)
from cordes.certificates.residual.norms import UNENCLOSED, Measure, Norm, Quadrature
from cordes.certificates.theorems.contraction import AbstractCoverage, Contraction
from cordes.certificates.theorems.energy import Local, Pilot, Scheme, TraceSplit
from cordes.certificates.theorems.exponential import Transform
from cordes.formulas.intervals import UnsupportedOperation
from cordes.jet import Jet
from cordes.problems.controls.controlled import AbstractControlled
from cordes.runtime.plain import show

# Up to this number of controls each is applied to the answer on its own; its derivatives cost about
# as much as three of them.
DIRECT = 3
# A sampled control that beats the maximiser by more than this, relative to the terms of the
# equation, refutes it.
BEATEN = 1e-9
# A norm that is enclosed with cells for another multiplier may be so many times what points say;
# else it gets cells of its own.
CLOSE = 1.05
# Numbers in the matrices of all pairs of pilot points and controls.
PILOT_NUMBERS = 2_000_000


class ControlState(NamedTuple):
    """At points: what is known of the answer; limits of ±F[u_θ], and of the same with the
    multiplier d/tr A^a inside; the best control of the first; the smallest det(A^a)^{1/d}; by how
    much a sampled control beats the maximiser, relative to the terms of the equation."""

    seen: SeenControls
    plain: Best
    scaled: Best
    control: np.ndarray
    root: np.ndarray
    beaten: np.ndarray


class ComparedControls:
    """An answer to which all controls are applied: few of them one by one, many by its derivatives,
    whose rounding is measured at the pilot points."""

    def __init__(
        self, problem: AbstractControlled, candidate: AbstractCandidate, pilot_points: np.ndarray
    ):
        self.problem, self.candidate, self.pairs = problem, candidate, Pairs(problem)
        direct = problem.maximiser is None and len(problem.controls) <= DIRECT
        self.rounding = None if direct else rounding_of(candidate, pilot_points)

    def see(self, x: np.ndarray) -> SeenControls:
        if self.rounding is None:
            parts = [
                [self._applied(x[k : k + CHUNK], a) for k in range(0, len(x), CHUNK)]
                for a in self.problem.controls
            ]
            return SeenControls(None, None, *np.stack([np.hstack(part) for part in parts], axis=2))
        jet = Jet(*(np.asarray(part) for part in self.candidate.jet(x)))  # pyright: ignore
        return SeenControls(jet, self.rounding.at(jet))

    def _applied(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """±(L^a u - f^a) and its rounding for one control, (2, N)."""
        everywhere = np.broadcast_to(a, (len(x), *a.shape))
        A, b, c, f = (np.asarray(part) for part in self.problem.pairs(x, everywhere))
        value, rounding = self.candidate.applied(x, A, b, c)
        return np.stack([self.problem.sign * (value - f), rounding + 4 * EPSILON * np.abs(f)])

    def evaluate(self, x: np.ndarray) -> ControlState:
        seen = self.see(x)
        multipliers = [lambda at: np.ones(len(at.trace)), TraceSplit().multiplier]
        plain, scaled = self.pairs.best(x, seen, multipliers)
        root = self.pairs.extremes(x).root
        control = self.problem.controls[plain.index]
        beaten = np.zeros(len(x))
        if self.problem.maximiser is not None and seen.jet is not None:
            control = self.problem.policy(x, seen.jet, scaled=False)
            plain, scaled, beaten = self._by_maximiser(x, seen, control, plain)
        return ControlState(seen, plain, scaled, control, root, beaten)

    def _by_maximiser(
        self, x: np.ndarray, seen: SeenControls, control: np.ndarray, sampled: Best
    ) -> tuple[Best, Best, np.ndarray]:
        """The supremum over the continuum. At another state, the true one, another control may be
        best: the rounding is that of the worst control."""
        jet, error = seen.jet, seen.error
        assert jet is not None
        assert error is not None
        A, b, c, f = (np.asarray(part) for part in self.problem.pairs(x, control))
        terms = np.column_stack([operator_terms(jet, A, b, c), -f])
        size = np.sum(np.abs(terms), axis=1)
        inherited = np.sum(np.abs(A) * error.hessian, axis=(1, 2))
        inherited += np.sum(np.abs(b) * error.gradient, axis=1) + np.abs(c) * error.value
        rounding = inherited + ROUNDING_OF_EQUATIONS * EPSILON * size
        value = self.problem.sign * np.sum(terms, axis=1)
        largest = 2 * np.maximum(rounding, self.pairs.largest_rounding(x, seen))
        plain = Best(value - rounding, np.maximum(value + largest, sampled.upper), sampled.index)
        multiplier = x.shape[1] / np.trace(A, axis1=1, axis2=2)
        scaled = Best(multiplier * plain.lower, multiplier * plain.upper, plain.index)
        return plain, scaled, (sampled.lower - value - largest) / np.maximum(size, 1e-300)

    def densities(self, state: ControlState) -> np.ndarray:
        """What the cells are refined for: the energy norm and the ABP norm."""
        d = self.problem.domain.dimension
        with np.errstate(over="ignore"):
            return np.stack([state.scaled.size**2, (state.plain.size / state.root) ** d], axis=1)


def unusable(problem: AbstractControlled, state: ControlState, points: np.ndarray) -> Reason | None:
    """What is not a number, and a maximiser that is none."""

    def reason(kind: Why, k: int, sentence: str) -> Reason:
        point, control = points[k], state.control[k]
        said = sentence.format(x=show(point), a=show(control))
        return Reason(kind, said, {"point": point, "control": control})

    bad = not_finite(*state.plain[:2], *state.scaled[:2], state.root)
    if len(bad):
        sentence = "the equation or the residual is not a finite number at x = {x}, a = {a}"
        return reason(Why.not_finite, bad[0], sentence)
    outside = problem.outside(state.control)
    if np.any(outside):
        sentence = "maximiser leaves the control set: at x = {x} it gives a = {a}, beyond the box"
        sentence += " of the controls; include the ends of the set in controls"
        return reason(Why.maximiser, int(np.argmax(outside)), sentence)
    worst = int(np.argmax(state.beaten))
    if state.beaten[worst] > BEATEN:
        sentence = "maximiser is not the best at x = {x}: it gives a = {a}, but control"
        sentence += f" {state.plain.index[worst]} is better; it must give the {problem.sense} of"
        return reason(Why.maximiser, worst, f"{sentence} L^a u - f^a over all controls")
    return None


@dataclass(frozen=True)
class AbstractControlEquation(AbstractEquation):
    """An answer compared with all controls, at the points of a measure and at pilot points."""

    problem: AbstractControlled
    compared: ComparedControls
    measure: Measure
    evaluated: ControlState
    pilot: ControlState
    pilot_points: np.ndarray
    residual_bound: float | None = None
    enclosed: ControlMeasure | None = None

    @property
    def pairs(self) -> Pairs:
        return self.compared.pairs

    @abc.abstractmethod
    def coverage(self) -> ControlCoverage | ContinuumCoverage:
        """All controls over the whole domain; the pairs are those of the best controls at the pilot
        points first, then others."""

    def proved(self, energies: list[EnergyBound]) -> list[EnergyBound]:
        if self.enclosed is None:
            return energies
        weights = [multiplier(energy.scheme, energy.matrix) for energy in energies]
        norms = [self.enclosed.norm_of(weight) for weight in weights]
        # New cells where those for another multiplier do not serve.
        far = [
            k
            for k, (norm, energy) in enumerate(zip(norms, energies, strict=True))
            if not norm.upper <= CLOSE * energy.norm.upper
        ]
        for k, norm in zip(far, self._anew([weights[k] for k in far]), strict=True):
            norms[k] = min(norms[k], norm, key=lambda each: each.upper)
        pairs = zip(energies, norms, strict=True)
        found = [energy._replace(norm=self._sooner(norm, energy.norm)) for energy, norm in pairs]
        return [energy for energy in found if energy.norm.enclosed or not self.missed]

    def _sooner(self, norm: Norm, seen: Norm) -> Norm:
        """The norm that is enclosed, unless points show much less and miss nothing."""
        good = self.missed or norm.upper <= UNENCLOSED * seen.upper
        return norm if norm.enclosed and good else seen

    def _anew(self, weights: list[Weight]) -> list[Norm]:
        """By cells for these multipliers, all at once."""
        if not weights:
            return []
        try:
            formula = isinstance(self.compared.candidate, FunctionCandidate)
            limits = CHEAP if formula else FEW
            measure = controlled_measure(self.problem, self.compared.candidate, weights, limits)
            return [measure.norm_of(weight) for weight in weights]
        except UnsupportedOperation:
            return [Norm(0.0, np.inf)] * len(weights)

    @functools.cached_property
    def missed(self) -> bool:
        """Whether the points of the norms show less of the residual than is proved to be there:
        then no theorem may rest on them."""
        if self.enclosed is None or not isinstance(self.measure, Quadrature):
            return False
        plain = multiplier(TraceSplit(), np.eye(self.problem.domain.dimension))
        seen = self.measure.norm(self.evaluated.scaled.size).upper
        return seen < SEEN * self.enclosed.norm_of(plain).lower

    def residual_at(self, points: np.ndarray) -> np.ndarray:
        best = self.compared.evaluate(points).plain
        return self.problem.sign * (best.lower + best.upper) / 2

    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        return coverage.local

    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        count = len(self.pilot_points)
        traces = np.trace(local.A[:count], axis1=1, axis2=2)
        active = self.pilot.scaled.size * traces / local.A.shape[-1]
        residual = np.concatenate([active, np.zeros(len(local.c) - count)])
        terms = self.problem.has_drift, self.problem.has_reaction
        return Pilot.of(local, matrix, residual, eigenvalue, *terms, active=count)

    def fewer_points(self) -> np.ndarray:
        """The numbers of the pilot points that are paired with all controls."""
        count, d = self.pilot_points.shape
        most = PILOT_NUMBERS // (len(self.problem.controls) * d * d)
        even = np.linspace(0, count - 1, int(np.clip(most, 32, count)))
        return np.unique(even.astype(int))


@final
class ControlledEquation(AbstractControlEquation):
    """A finite set of controls."""

    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        x, seen = self.measure.points, self.evaluated.seen
        best = self.pairs.best(x, seen, [trial.scheme.multiplier], trial.matrix)[0]
        return best.size, best.least

    def failure(self, scheme: Scheme, matrix: np.ndarray, found: Contraction) -> Reason:
        worst = int(self.pairs.defects(scheme, found.point[None], matrix)[1][0])
        a = self.problem.controls[worst]
        reason = super().failure(scheme, matrix, found)
        return reason.and_(f", control {worst}, a = {show(a)}", control=a)

    def coverage(self, enclosed: int = ENCLOSED) -> ControlCoverage:
        """`enclosed` is the largest number of controls that get enclosures."""
        problem, x, fewer = self.problem, self.pilot_points, self.fewer_points()
        count, index = len(problem.controls), self.pilot.scaled.index
        number, place = np.repeat(np.arange(count), len(fewer)), np.tile(fewer, count)
        others = index[place] != number
        points = np.concatenate([x, x[place[others]]])
        controls = problem.controls[np.concatenate([index, number[others]])]
        local = local_of(problem, points, controls)
        return ControlCoverage(problem, points, local, self.pairs, self.measure.points, enclosed)


@final
class ContinuumEquation(AbstractControlEquation):
    """A continuum of controls with a maximiser: the closed form is that of the supremum without
    multipliers, so that one for all controls is needed."""

    def schemes(self, pilot: Pilot) -> Sequence[Scheme]:
        return choose_common(pilot)

    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(trial.coverage, ContinuumCoverage)
        best, local = self.evaluated.plain, trial.coverage.local.take(np.zeros(1, int))
        common = trial.scheme.multiplier(local.invariants(trial.matrix))[0]
        g = common * trial.coverage.scale(self.measure.points)
        return g * best.size, g * best.least

    def failure(self, scheme: Scheme, matrix: np.ndarray, found: Contraction) -> Reason:
        x, a = ContinuumCoverage.split(self.problem, found.point)
        reason = super().failure(scheme, matrix, found._replace(point=x))
        return reason.and_(f", a = {show(a)}", control=a)

    def coverage(self) -> ContinuumCoverage:
        problem, x, fewer = self.problem, self.pilot_points, self.fewer_points()
        points = np.concatenate([x, x[np.tile(fewer, len(problem.controls))]])
        others = np.repeat(problem.controls, len(fewer), axis=0)
        controls = np.concatenate([self.pilot.control, others])
        measured = self.measure.points, self.evaluated.control
        return ContinuumCoverage(problem, points, controls, self.pairs, *measured)
