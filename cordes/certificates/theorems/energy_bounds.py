"""The energy theorems applied to one equation: which of them hold, with which preconditioner and
transform, and the bounds that follow.

Parameters are chosen on pilot points. Suprema over the domain are costly: only the most promising
choices get them.
"""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.norms import Norm, Sample
from cordes.certificates.theorem import Citation, Modifier
from cordes.certificates.theorems.contraction import AbstractCoverage, Contraction
from cordes.certificates.theorems.energy import (
    Scheme,
    TraceSplit,
    Triangle,
    choose_tightened,
    gradient_factor,
)
from cordes.certificates.theorems.equation import AbstractEquation, Trial
from cordes.certificates.theorems.exponential import Transform
from cordes.certificates.theorems.pointwise import green_constant
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.constants import first_eigenvalue
from cordes.domains.domain import AbstractDomain

# Energy theorems that get a certified contraction.
ACCEPTED = 2


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
        return self.norm.lower / (1 + self.contraction.value)

    @property
    def theorem(self) -> Citation:
        plain = np.array_equal(self.matrix, np.eye(len(self.matrix)))
        cited = self.scheme.theorem if plain else self.scheme.theorem.with_(Modifier.preconditioned)
        return cited if self.transform is None else cited.with_(Modifier.transformed)

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
        slope = (
            gradient_factor(self.eigenvalue, self.scheme.lambda_)
            * self.upper
            / math.sqrt(np.linalg.eigvalsh(self.matrix)[0])
        )
        if self.transform is None:
            return slope
        return self.transform.largest * (
            slope
            + 0.5 * self.transform.slope * self.upper / (self.eigenvalue + self.scheme.lambda_)
        )

    @property
    def H2(self) -> float | None:
        """‖D²v‖ ≤ ‖M:D²v‖/λ_min(M), Miranda–Talenti in the whitened variables; for the transformed
        function it says nothing."""
        return self.upper / np.linalg.eigvalsh(self.matrix)[0] if self.transform is None else None

    def Linf(self, domain: AbstractDomain) -> float | None:
        constant = green_constant(domain.dimension, domain.volume, self.matrix, self.scheme.lambda_)
        if constant is None:
            return None
        return constant * self.upper * (1.0 if self.transform is None else self.transform.largest)


def energy_bounds(
    equation: AbstractEquation, coverage: AbstractCoverage
) -> tuple[list[EnergyBound], list[Reason]]:
    """The most promising energy theorems, over all preconditioners and the exponential transform,
    and why there is none.

    Suprema over the domain are costly: only the trials that promise the smallest L² bound get them,
    and the one with the smallest bound of Δv itself.
    """
    trials, failures = _trials(equation, coverage, None)
    transform = equation.transform()
    if transform is not None:
        trials += _trials(equation, transform.coverage(coverage), transform)[0]
    if equation.residual_bound is not None:
        trials = [trial for trial in trials if _has_bounded_multiplier(trial)]
        if not trials:
            sentence = "no theorem holds whose multiplier is bounded for certain"
            failures.append(_leave_out(Why.unknown_constants, sentence))
    trials.sort(key=lambda trial: trial.size)
    if isinstance(equation.measure, Sample):
        found = _attempted(equation, trials, 1, failures)
    else:
        plain = [trial for trial in trials[ACCEPTED:] if trial.plain]
        plain.sort(key=lambda trial: trial.energy)
        found = _attempted(equation, trials, ACCEPTED, failures)
        found += _attempted(equation, plain, 1, failures)
    # Several trials may fail in the same words.
    return found, [] if found else list({str(failure): failure for failure in failures}.values())


def _has_bounded_multiplier(trial: Trial) -> bool:
    """The empirical Bernstein inequality needs a bound of the multiplier too, which d/tr A has."""
    return (
        trial.transform is None
        and isinstance(trial.scheme, TraceSplit | Triangle)
        and trial.coverage.largest_multiplier(trial.matrix).source != "sampled"
    )


def _leave_out(kind: Why, sentence: str) -> Reason:
    return Reason(kind, f"{sentence}: leave residual_bound out for an asymptotic bound")


def _attempted(
    equation: AbstractEquation, trials: list[Trial], wanted: int, failures: list[Reason]
) -> list[EnergyBound]:
    """The bounds of the first trials, so many as are wanted, whose contraction holds over the whole
    domain; why others do not goes to the failures."""
    found: list[EnergyBound] = []
    accepted = 0
    for trial in trials:
        if accepted == wanted:
            break
        value, source, point = trial.coverage.contraction(trial.scheme, trial.matrix)
        if not value < 1:
            failures.append(equation.failure(trial.scheme, trial.matrix, value, point))
        elif equation.residual_bound is not None and source == "sampled":
            sentence = f"the contraction of {trial.scheme.theorem} is known at points only"
            failures.append(_leave_out(Why.contraction_sampled, sentence))
        else:
            accepted += 1
            found += _applied(equation, trial, Contraction(value, source, point))
    return found


def about_laplacian(bound: EnergyBound) -> bool:
    return bound.transform is None and np.array_equal(bound.matrix, np.eye(len(bound.matrix)))


def _trials(
    equation: AbstractEquation, coverage: AbstractCoverage, transform: Transform | None
) -> tuple[list[Trial], list[Reason]]:
    """All theorems that hold at the pilot points, and sentences about those that do not."""
    local = equation.pilot_local(coverage)
    trials, failures = [], []
    for matrix in preconditioners(local):
        eigenvalue = first_eigenvalue(equation.domain, matrix)
        if not eigenvalue > 0:
            continue
        pilot = equation.pilot_for(local, matrix, eigenvalue, transform)
        for scheme in equation.schemes(pilot):
            contraction = pilot.contraction(scheme)
            if contraction < 1:
                trials.append(Trial(scheme, matrix, eigenvalue, pilot, transform, coverage))
            else:
                worst = int(np.argmax(np.sum(scheme.defects(pilot.at), axis=1)))
                failures.append(
                    equation.failure(scheme, matrix, contraction, coverage.points[worst])
                )
    return trials, failures


def _applied(
    equation: AbstractEquation, trial: Trial, contraction: Contraction
) -> list[EnergyBound]:
    """The bounds of one trial, with the tightening T1c where it applies."""
    known: list[tuple[Scheme, Contraction]] = [(trial.scheme, contraction)]
    if isinstance(trial.scheme, TraceSplit):
        tightened = choose_tightened(trial.pilot, contraction.value)
        if tightened is not None:
            known.append((tightened, contraction._replace(value=tightened.contraction)))
    if isinstance(equation.measure, Sample):
        # A sample supports few norms: the choice is made on the pilot points.
        known = [min(known, key=lambda pair: trial.pilot.size(pair[0], pair[1].value))]
    bound = _proved_bound(equation, trial)

    def norm(scheme: Scheme) -> Norm:
        """The upper limit for the residual rounded up, the lower one for the residual rounded
        down."""
        size, least = equation.scaled(trial._replace(scheme=scheme))
        return equation.measure.norm(size, 2.0, bound)._replace(
            lower=equation.measure.norm(least, 2.0, bound).lower
        )

    return [
        EnergyBound(scheme, trial.matrix, each, norm(scheme), trial.eigenvalue, trial.transform)
        for scheme, each in known
    ]


def _proved_bound(equation: AbstractEquation, trial: Trial) -> float | None:
    """A bound of |g r| over the whole domain, from the user's bound of |r| and the supremum of d/tr
    A."""
    if equation.residual_bound is None:
        return None
    return equation.residual_bound * trial.coverage.largest_multiplier(trial.matrix).value
