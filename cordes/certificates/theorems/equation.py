"""What the energy theorems ask of an equation with an answer, and the linear one that answers."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.reason import Reason, contraction_too_large
from cordes.certificates.residual.candidate import AbstractCandidate, Evaluated
from cordes.certificates.residual.norms import Measure
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Local, Pilot, Scheme, TraceSplit, choose_weighted
from cordes.certificates.theorems.exponential import Transform, find_transform
from cordes.domains.domain import AbstractDomain
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem


class Trial(NamedTuple):
    """A theorem that holds at the pilot points, and the bound that it promises there."""

    scheme: Scheme
    matrix: np.ndarray
    eigenvalue: float
    pilot: Pilot
    transform: Transform | None
    coverage: AbstractCoverage

    @property
    def size(self) -> float:
        return self.pilot.size(self.scheme)

    @property
    def energy(self) -> float:
        """The bound of ‖L_λ v‖ that it promises."""
        return self.size * (self.eigenvalue + self.scheme.lambda_)

    @property
    def plain(self) -> bool:
        """Whether it says something about Δv itself."""
        return self.transform is None and np.array_equal(self.matrix, np.eye(len(self.matrix)))


class AbstractEquation(abc.ABC):
    """An equation whose residual is known on a measure, and on pilot points, which serve to choose
    parameters and for nothing else. `residual_bound` is what the user vouches for, if anything."""

    problem: AbstractProblem
    measure: Measure
    pilot_points: np.ndarray
    residual_bound: float | None

    @property
    def domain(self) -> AbstractDomain:
        return self.problem.domain

    @abc.abstractmethod
    def residual_at(self, points: np.ndarray) -> np.ndarray:
        """The residual at any points, for pictures."""

    @abc.abstractmethod
    def transform(self) -> Transform | None:
        """An exponential transform that takes drift away, where there is one."""

    @abc.abstractmethod
    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        """The coefficients for which parameters are chosen."""

    @abc.abstractmethod
    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        """The same in the coordinates of M, with the residual."""

    @abc.abstractmethod
    def schemes(self, pilot: Pilot) -> Sequence[Scheme]:
        """The theorems that may apply."""

    @abc.abstractmethod
    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        """|g r| at the points of the measure, rounded up and rounded down."""

    @abc.abstractmethod
    def failure(
        self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray
    ) -> Reason:
        """Why a theorem does not apply."""


@final
@dataclass(frozen=True)
class LinearEquation(AbstractEquation):
    """A linear problem with the equation and the residual at the points."""

    problem: Linear
    candidate: AbstractCandidate
    measure: Measure
    evaluated: Evaluated
    pilot: Evaluated
    pilot_points: np.ndarray
    residual_bound: float | None = None

    def residual_at(self, points: np.ndarray) -> np.ndarray:
        return self.candidate.evaluate(points).residual

    def transform(self) -> Transform | None:
        return (
            find_transform(self.problem, self.pilot_points, self.pilot.local)
            if self.problem.has_drift
            else None
        )

    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        return coverage.local.take(np.arange(len(self.pilot_points)))

    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        plain = transform is None
        size = self.pilot.size if plain else self.pilot.size * transform.growth(self.pilot_points)
        return Pilot(
            local.whitened(matrix),
            local.invariants(matrix),
            size,
            eigenvalue,
            self.problem.has_drift if plain else True,
            self.problem.has_reaction if plain else True,
        )

    def schemes(self, pilot: Pilot) -> Sequence[Scheme]:
        return choose_weighted(pilot) if pilot.drift or pilot.reaction else [TraceSplit()]

    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        measured = np.arange(len(self.pilot_points), len(trial.coverage.points))
        at = trial.coverage.local.take(measured).invariants(trial.matrix)
        multiplier, transform = trial.scheme.multiplier(at), trial.transform
        growth = 1.0 if transform is None else transform.growth(self.measure.points)
        return multiplier * (self.evaluated.size * growth), multiplier * self.evaluated.least

    def failure(
        self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray
    ) -> Reason:
        return contraction_too_large(scheme.theorem, matrix, value, point)
