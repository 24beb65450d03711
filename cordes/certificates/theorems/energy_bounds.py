"""The energy theorems applied to one equation: what they ask of it, which of them hold, with which
preconditioner and transform, and the bounds that follow."""

import itertools

import numpy as np

from cordes.certificates.equation import AbstractEquation, EnergyBound, Trial
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.norms import Sample
from cordes.certificates.theorems.contraction import AbstractCoverage, Contraction
from cordes.certificates.theorems.energy import (
    Scheme,
    TraceSplit,
    Triangle,
    choose_tightened,
)
from cordes.certificates.theorems.exponential import Transform
from cordes.certificates.theorems.free_constant import free_constant
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.constants import first_eigenvalue
from cordes.domains.walls import Walled
from cordes.domains.walls.constants import second_eigenvalue

# Energy theorems that get a certified contraction.
ACCEPTED = 2


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
    if trial.transform is not None or not isinstance(trial.scheme, TraceSplit | Triangle):
        return False
    return trial.coverage.largest_multiplier(trial.matrix).source != "sampled"


def _leave_out(kind: Why, sentence: str) -> Reason:
    return Reason(kind, f"{sentence}: leave residual_bound out for an asymptotic bound")


def _attempted(
    equation: AbstractEquation, trials: list[Trial], wanted: int, failures: list[Reason]
) -> list[EnergyBound]:
    """The bounds of the first trials, so many as are wanted, whose contraction holds over the whole
    domain; why others do not goes to the failures."""
    found: list[list[EnergyBound]] = []
    for trial in trials:
        if len(found) == wanted:
            break
        contraction = trial.coverage.contraction(trial.scheme, trial.matrix)
        if not contraction.value < 1:
            failures.append(equation.failure(trial.scheme, trial.matrix, contraction))
        elif equation.residual_bound is not None and contraction.source == "sampled":
            sentence = f"the contraction of {trial.scheme.theorem} is known at points only"
            failures.append(_leave_out(Why.contraction_sampled, sentence))
        else:
            found.append(_applied(equation, trial, contraction))
    return list(itertools.chain(*found))


def _trials(
    equation: AbstractEquation, coverage: AbstractCoverage, transform: Transform | None
) -> tuple[list[Trial], list[Reason]]:
    """All theorems that hold at the pilot points, and sentences about those that do not."""
    local = equation.pilot_local(coverage)
    trials, failures = [], []
    for matrix in preconditioners(local, equation.domain):
        eigenvalue, schemes = _schemes(equation, coverage, matrix, transform)
        if not (eigenvalue > 0 or coverage.positive_reaction()):
            failures.append(_nothing_holds_constants(float(np.min(local.c))))
            continue
        pilot = equation.pilot_for(local, matrix, eigenvalue, transform)
        for scheme in equation.schemes(pilot) if schemes is None else schemes:
            contraction = pilot.contraction(scheme)
            if contraction < 1:
                trials.append(Trial(scheme, matrix, eigenvalue, pilot, transform, coverage))
                continue
            worst = coverage.points[int(np.argmax(np.sum(scheme.defects(pilot.at), axis=1)))]
            found = Contraction(contraction, "sampled", worst)
            failures.append(equation.failure(scheme, matrix, found))
    return trials, failures


def _schemes(
    equation: AbstractEquation,
    coverage: AbstractCoverage,
    matrix: np.ndarray,
    transform: Transform | None,
) -> tuple[float, list[Scheme] | None]:
    """The eigenvalue on which all rests, and the only theorems that apply; None for all."""
    domain, problem = equation.domain, equation.problem
    if transform is not None:
        return first_eigenvalue(transform.domain or domain, matrix), None
    if not (problem.free_constant and isinstance(domain, Walled)):
        return first_eigenvalue(domain, matrix), None
    eigenvalue = second_eigenvalue(domain, matrix)
    scheme = free_constant(coverage, matrix, eigenvalue)
    return eigenvalue, [] if scheme is None else [scheme]


def _nothing_holds_constants(smallest: float) -> Reason:
    sentence = (
        "no value of u is given anywhere, so that only c holds constants: the energy theorems need "
        f"c ≥ c₀ > 0 over the whole domain, and c is {smallest:.4g} at a point, or less elsewhere"
    )
    return Reason(Why.no_theorem, sentence, {"smallest": smallest})


def _applied(
    equation: AbstractEquation, trial: Trial, contraction: Contraction
) -> list[EnergyBound]:
    """The bounds of one trial, with the tightening T1c where it applies."""
    known: list[tuple[Scheme, Contraction]] = [(trial.scheme, contraction)]
    if isinstance(trial.scheme, TraceSplit):
        tightened = choose_tightened(trial.pilot, contraction.value, equation.enclosed is not None)
        if tightened is not None:
            known.append((tightened, contraction._replace(value=tightened.contraction)))
    if isinstance(equation.measure, Sample):
        # A sample supports few norms: the choice is made on the pilot points.
        known = [min(known, key=lambda pair: trial.pilot.size(pair[0], pair[1].value))]
    bound = equation.residual_bound
    if bound is not None:
        # |g r| over the whole domain: what the user vouches for, and the supremum of d/tr A.
        bound *= trial.coverage.largest_multiplier(trial.matrix).value
    found = []
    for scheme, each in known:
        size, least = equation.scaled(trial._replace(scheme=scheme))
        # The upper limit for the residual rounded up, the lower one for the residual rounded down.
        lower = equation.measure.norm(least, 2.0, bound).lower
        norm = equation.measure.norm(size, 2.0, bound)._replace(lower=lower)
        found.append(
            EnergyBound(scheme, trial.matrix, each, norm, trial.eigenvalue, trial.transform)
        )
    return found
