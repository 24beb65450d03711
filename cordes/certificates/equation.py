"""An equation whose residual is known on a measure, the trials of energy theorems that it asks for,
and the bounds that come of them."""

import abc
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.enclosed.blended.measure import BlendedMeasure
from cordes.certificates.enclosed.controls import ControlMeasure
from cordes.certificates.enclosed.measure import EnclosedMeasure
from cordes.certificates.enclosed.refinement import CellBudget
from cordes.certificates.enclosed.residual import enclosed_measure
from cordes.certificates.enclosed.weights import Weight, multiplier
from cordes.certificates.reason import Reason, contraction_too_large
from cordes.certificates.residual.candidate import AbstractCandidate, Evaluated
from cordes.certificates.residual.norms import Measure, Norm, Quadrature
from cordes.certificates.theorem import Citation, Modifier
from cordes.certificates.theorems.contraction import AbstractCoverage, Contraction
from cordes.certificates.theorems.energy import (
    Local,
    Pilot,
    Scheme,
    TraceSplit,
    choose_weighted,
    gradient_factor,
    is_identity,
)
from cordes.certificates.theorems.exponential import Transform, find_transform
from cordes.certificates.theorems.free_constant import FreeConstant
from cordes.certificates.theorems.pointwise import green_constant
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import Walled
from cordes.domains.walls.constants import modes_constant
from cordes.formulas.intervals import UnsupportedOperation
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem

# A norm that is enclosed is given unless it is so many times what the points say.
WORTH = 100.0


# Points that show less than this share of a norm have missed something.
SEEN = 0.99


# Cells and points for one theorem alone.
FEW = CellBudget(800, 40_000)


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
        return self.transform is None and is_identity(self.matrix)


class AbstractEquation(abc.ABC):
    """An equation whose residual is known on a measure, and on pilot points, which serve to choose
    parameters and for nothing else. `residual_bound` is what the user vouches for, if anything."""

    problem: AbstractProblem
    measure: Measure
    pilot_points: np.ndarray
    residual_bound: float | None
    # Cells from which nothing can hide, where there are any.
    enclosed: EnclosedMeasure | BlendedMeasure | ControlMeasure | None = None

    @property
    def domain(self) -> AbstractDomain:
        return self.problem.domain

    @abc.abstractmethod
    def residual_at(self, points: np.ndarray) -> np.ndarray:
        """The residual at any points, for pictures."""

    def transform(self) -> Transform | None:
        """An exponential transform that takes drift away, where there is one."""
        return None

    @abc.abstractmethod
    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        """The coefficients for which parameters are chosen."""

    @abc.abstractmethod
    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        """The same in the coordinates of M, with the residual."""

    def schemes(self, pilot: Pilot) -> Sequence[Scheme]:
        """The theorems that may apply."""
        return choose_weighted(pilot) if pilot.drift or pilot.reaction else [TraceSplit()]

    @abc.abstractmethod
    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        """|g r| at the points of the measure, rounded up and rounded down."""

    def proved(self, energies: list["EnergyBound"]) -> list["EnergyBound"]:
        """The same with norms that are enclosed, where that is possible."""
        return energies

    def failure(self, scheme: Scheme, matrix: np.ndarray, found: Contraction) -> Reason:
        """Why a theorem does not apply."""
        return contraction_too_large(scheme.theorem, matrix, found.value, found.point)


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
    enclosed: EnclosedMeasure | BlendedMeasure | None = None

    def residual_at(self, points: np.ndarray) -> np.ndarray:
        return self.candidate.evaluate(points).residual

    def transform(self) -> Transform | None:
        if not self.problem.has_drift:
            return None
        return find_transform(self.problem, self.pilot_points, self.pilot.local)

    def pilot_local(self, coverage: AbstractCoverage) -> Local:
        return coverage.local.take(slice(len(self.pilot_points)))

    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        size, terms = self.pilot.size, (self.problem.has_drift, self.problem.has_reaction)
        if transform is not None:
            size, terms = size * transform.growth(self.pilot_points), (True, True)
        return Pilot.of(local, matrix, size, eigenvalue, *terms)

    def scaled(self, trial: Trial) -> tuple[np.ndarray, np.ndarray]:
        measured = trial.coverage.local.take(slice(len(self.pilot_points), None))
        at = measured.invariants(trial.matrix)
        multiplier, transform = trial.scheme.multiplier(at), trial.transform
        growth = 1.0 if transform is None else transform.growth(self.measure.points)
        return multiplier * (self.evaluated.size * growth), multiplier * self.evaluated.least

    def enclosed_norm(
        self, weight: Weight, power: int, estimate: Norm, again: bool = False
    ) -> Norm | None:
        """The norm of weight · r, unless cells ran out long before it is as small as the points
        say; `again` makes new cells where those for another weight do not serve."""
        if self.enclosed is None:
            return None
        norm = self.enclosed.norm_of(weight, power)
        if not norm.enclosed and again:
            norm = self._enclosed_anew(weight) or norm
        good = norm.enclosed and norm.upper <= WORTH * max(estimate.upper, norm.lower)
        return norm if good else None

    def _enclosed_anew(self, weight: Weight) -> Norm | None:
        try:
            return enclosed_measure(self.problem, self.candidate, [weight], FEW).norm_of(weight)
        except UnsupportedOperation:
            return None

    def proved(self, energies: list["EnergyBound"]) -> list["EnergyBound"]:
        best = min((energy.L2 for energy in energies), default=0.0)

        def norm(energy: EnergyBound) -> Norm:
            weight = multiplier(energy.scheme, energy.matrix, energy.transform)
            return self.enclosed_norm(weight, 2, energy.norm, best == energy.L2) or energy.norm

        found = [energy._replace(norm=norm(energy)) for energy in energies]
        return [energy for energy in found if energy.norm.enclosed or not self.missed]

    @functools.cached_property
    def missed(self) -> bool:
        """Whether the points of the norms show less of the residual than is proved to be there:
        then no theorem may rest on them."""
        if self.enclosed is None or not isinstance(self.measure, Quadrature):
            return False
        A, d = self.evaluated.local.A, self.problem.domain.dimension
        seen = self.measure.norm(d / np.trace(A, axis1=1, axis2=2) * self.evaluated.size).upper
        return seen < SEEN * self.enclosed.norm_of(multiplier(TraceSplit(), np.eye(d))).lower


class EnergyBound(NamedTuple):
    """One energy theorem applied: limits of E = ‖M:D²v - λv‖ and what follows from them."""

    scheme: Scheme
    matrix: np.ndarray
    contraction: Contraction
    norm: Norm
    eigenvalue: float
    transform: Transform | None = None

    @property
    def upper(self) -> float:
        return self.norm.upper / (1 - self.contraction.value)

    @property
    def lower(self) -> float:
        if isinstance(self.scheme, FreeConstant):
            # The residual may contain any constant.
            return 0.0
        return self.norm.lower / (1 + self.contraction.value)

    @property
    def theorem(self) -> Citation:
        cited = self.scheme.theorem
        if not is_identity(self.matrix):
            cited = cited.with_(Modifier.preconditioned)
        return cited if self.transform is None else cited.with_(Modifier.transformed)

    @property
    def enclosed(self) -> bool:
        """Whether nothing can hide: neither from the norm nor from the contraction."""
        return self.norm.enclosed and self.contraction.source != "sampled"

    @property
    def about_laplacian(self) -> bool:
        return self.transform is None and is_identity(self.matrix)

    @property
    def constant(self) -> float:
        """L2 = constant · ‖g r‖."""
        factor = 1 / (1 - self.contraction.value) / (self.eigenvalue + self.scheme.lambda_)
        return factor if self.transform is None else factor * self.transform.largest

    @property
    def L2(self) -> float:
        return self.constant * self.norm.upper

    @property
    def H1(self) -> float:
        """‖M^{1/2}∇v‖ ≤ k E, and M ≥ λ_min(M)."""
        lambda_, smallest = self.scheme.lambda_, np.linalg.eigvalsh(self.matrix)[0]
        slope = gradient_factor(self.eigenvalue, lambda_) * self.upper / math.sqrt(smallest)
        if self.transform is None:
            return slope
        change = 0.5 * self.transform.slope * self.upper / (self.eigenvalue + lambda_)
        return self.transform.largest * (slope + change)

    @property
    def H2(self) -> float | None:
        """‖D²v‖ ≤ ‖M:D²v‖/λ_min(M), Miranda–Talenti in the whitened variables; for the transformed
        function it says nothing."""
        return self.upper / np.linalg.eigvalsh(self.matrix)[0] if self.transform is None else None

    def _largest(self, domain: AbstractDomain) -> float | None:
        """C with sup |v| ≤ C E."""
        matrix, lambda_ = self.matrix, self.scheme.lambda_
        if self.transform is not None and self.transform.domain is not None:
            domain = self.transform.domain
        if isinstance(domain, Walled):
            return modes_constant(domain, matrix, lambda_, isinstance(self.scheme, FreeConstant))
        return green_constant(domain.dimension, domain.volume, matrix, lambda_)

    def Linf(self, domain: AbstractDomain) -> float | None:
        constant = self._largest(domain)
        if constant is None:
            return None
        return constant * self.upper * (1.0 if self.transform is None else self.transform.largest)
