"""Hamilton–Jacobi–Bellman equations as the energy theorems see them: a finite set of controls, each
with its own multiplier, or a continuum with a multiplier common to all."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from cordes.certificates.hjb.compared import Compared, ControlState
from cordes.certificates.hjb.coverage import (
    ENCLOSED,
    ContinuumCoverage,
    ControlCoverage,
    choose_common,
)
from cordes.certificates.hjb.energy import Pairs
from cordes.certificates.reason import Reason, contraction_too_large
from cordes.certificates.residual.norms import Measure
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import (
    Local,
    Pilot,
    Scheme,
    TraceSplit,
    choose_weighted,
)
from cordes.certificates.theorems.equation import AbstractEquation, Trial
from cordes.certificates.theorems.exponential import Transform
from cordes.problems.hjb import HJB
from cordes.runtime.plain import show

# Numbers in the matrices of all pairs of pilot points and controls.
PILOT_NUMBERS = 2_000_000


@dataclass(frozen=True)
class AbstractControlEquation(AbstractEquation):
    """An answer compared with all controls, at the points of a measure and at pilot points."""

    problem: HJB
    compared: Compared
    measure: Measure
    evaluated: ControlState
    pilot: ControlState
    pilot_points: np.ndarray
    residual_bound: float | None = None

    @property
    def pairs(self) -> Pairs:
        return self.compared.pairs

    @abc.abstractmethod
    def coverage(self) -> ControlCoverage | ContinuumCoverage:
        """All controls over the whole domain; the pairs are those of the best controls at the pilot
        points first, then others."""

    def residual_at(self, points: np.ndarray) -> np.ndarray:
        best = self.compared.evaluate(points).plain
        return self.problem.sign * (best.lower + best.upper) / 2

    def transform(self) -> Transform | None:
        return None

    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        return coverage.local

    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        count = len(self.pilot_points)
        traces = np.trace(local.A[:count], axis1=1, axis2=2)
        active = self.pilot.scaled.size * traces / local.A.shape[-1]
        return Pilot(
            local.whitened(matrix),
            local.invariants(matrix),
            np.concatenate([active, np.zeros(len(local.c) - count)]),
            eigenvalue,
            self.problem.has_drift,
            self.problem.has_reaction,
            active=count,
        )

    def fewer_points(self) -> np.ndarray:
        """The numbers of the pilot points that are paired with all controls."""
        count, d = self.pilot_points.shape
        most = PILOT_NUMBERS // (len(self.problem.controls) * d * d)
        even = np.linspace(0, count - 1, int(np.clip(most, 32, count)))
        return np.unique(even.astype(int))


@final
class ControlledEquation(AbstractControlEquation):
    """A finite set of controls."""

    def schemes(self, pilot: Pilot) -> Sequence[Scheme]:
        return choose_weighted(pilot) if pilot.drift or pilot.reaction else [TraceSplit()]

    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        x, seen = self.measure.points, self.evaluated.seen
        best = self.pairs.best(x, seen, [trial.scheme.multiplier], trial.matrix)[0]
        return best.size, best.least

    def failure(
        self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray
    ) -> Reason:
        worst = int(self.pairs.defects(scheme, point[None], matrix)[1][0])
        control = self.problem.controls[worst]
        return contraction_too_large(scheme.theorem, matrix, value, point).and_(
            f", control {worst}, a = {show(control)}", control=control
        )

    def coverage(self, enclosed: int = ENCLOSED) -> ControlCoverage:
        """`enclosed` is the largest number of controls that get enclosures."""
        problem, x, fewer = self.problem, self.pilot_points, self.fewer_points()
        count, index = len(problem.controls), self.pilot.scaled.index
        number, place = np.repeat(np.arange(count), len(fewer)), np.tile(fewer, count)
        others = index[place] != number
        points = np.concatenate([x, x[place[others]]])
        controls = problem.controls[np.concatenate([index, number[others]])]
        return ControlCoverage(
            problem,
            points,
            local_of(problem, points, controls),
            self.pairs,
            self.measure.points,
            enclosed,
        )


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

    def failure(
        self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray
    ) -> Reason:
        x, a = ContinuumCoverage.split(self.problem, point)
        return contraction_too_large(scheme.theorem, matrix, value, x).and_(
            f", a = {show(a)}", control=a
        )

    def coverage(self) -> ContinuumCoverage:
        problem, x, fewer = self.problem, self.pilot_points, self.fewer_points()
        points = np.concatenate([x, x[np.tile(fewer, len(problem.controls))]])
        controls = np.concatenate(
            [self.pilot.control, np.repeat(problem.controls, len(fewer), axis=0)]
        )
        return ContinuumCoverage(
            problem,
            points,
            controls,
            local_of(problem, points, controls),
            self.pairs,
            self.measure.points,
            self.evaluated.control,
        )


def local_of(problem: HJB, points: np.ndarray, controls: np.ndarray) -> Local:
    return Local(*(np.asarray(part) for part in problem.pairs(points, controls)[:3]))
