"""`tol`: work until the certified error is small enough, or nothing helps any more."""

import math
from collections.abc import Callable

import numpy as np

from cordes.certificates.parabolic.promise import promised_rms
from cordes.certificates.theorems.energy import Local, Pilot, TraceSplit, choose_weighted
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.constants import first_eigenvalue
from cordes.domains.polar import largest_polar_factor
from cordes.domains.walls import Walled
from cordes.domains.walls.constants import second_eigenvalue
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.solution import Solution

SAMPLES, SEED = 256, 5_550_005
# The residual is asked to be this much smaller than the certificate is expected to need, since it
# is measured on few points.
SAFETY = 0.5
ATTEMPTS = 5


def residual_target(problem: AbstractProblem, multiplier: bool, tol: float) -> float:
    """The scaled residual, root mean square, that should certify `tol`; a guess made from sampled
    coefficients for a residual of even size."""
    if problem.clock is not None:
        return SAFETY * tol / promised_rms(problem, multiplier)
    domain, d = problem.domain, problem.domain.dimension
    local = Local(*problem.family(domain.interior_points(SAMPLES, SEED, "sobol"))[:3])
    unscaled = 1 / cordes_multiplier(local.A) if multiplier else np.ones(len(local.c))
    size, lower_order = math.inf, (problem.has_drift, problem.has_reaction)
    for matrix in preconditioners(local, domain):
        local_parts = local.whitened(matrix), local.invariants(matrix)
        eigenvalue = _eigenvalue(problem, matrix)
        if not eigenvalue > 0 and np.min(local.c) <= 0:
            continue
        pilot = Pilot(*local_parts, unscaled, eigenvalue, *lower_order)
        schemes = choose_weighted(pilot, evaluations=120) if any(lower_order) else [TraceSplit()]
        size = min([size, *(pilot.size(scheme) for scheme in schemes)])
    density = (unscaled / np.linalg.det(local.A) ** (1 / d)) ** d
    maximum = largest_polar_factor(domain) * (domain.volume * float(np.mean(density))) ** (1 / d)
    size = min(size, maximum) if np.min(local.c) >= 0 else size
    return SAFETY * tol / size if math.isfinite(size) else SAFETY * tol


def _eigenvalue(problem: AbstractProblem, matrix: np.ndarray) -> float:
    """The first one, above zero where the answer is known up to a constant."""
    if problem.free_constant and isinstance(problem.domain, Walled):
        return second_eigenvalue(problem.domain, matrix)
    return first_eigenvalue(problem.domain, matrix)


def reach(
    tol: float,
    target: float,
    run: Callable[[float, Weights | None], Answer],
    finish: Callable[[Answer], Solution],
    start: Weights | None,
    extend: Callable[[], bool] = lambda: False,
    switch: Callable[[], bool] = lambda: False,
) -> Solution:
    """Solve, certify, and ask for a smaller residual while the certificate is too large and the
    solver still gets what it is asked for.

    `extend` lets the solver be larger than usual and says whether that is any use: it is asked once
    the usual size has missed the residual, and after a look at the certificate, which may be small
    enough all the same. `switch` goes on to another method, where there is one: it is asked where
    an answer that missed the residual has no bound at all. The answer with the smallest bound is
    kept: a smaller residual need not have it. `finish` certifies; a solution without a certificate
    says that it was cut short.
    """
    weights, best, smallest = start, None, math.inf
    for attempt in range(ATTEMPTS):
        try:
            answer = run(target, weights)
        except KeyboardInterrupt:
            if best is None:
                raise
            return best.replace(result=Result.interrupted)
        solution = finish(answer)
        if solution.certificate is None:
            return (best or solution).replace(result=solution.result)
        bound = getattr(solution.certificate, solution.problem.tolerance_norm)
        if bound is not None and bound <= tol:
            return solution.replace(result=Result.converged)
        if best is None or (bound is not None and bound < smallest):
            best, smallest = solution, math.inf if bound is None else bound
        missed = answer.result is not Result.converged
        # Whether a theorem covers a linear equation does not depend on the answer; a nonlinear
        # answer that is not good enough may still become so, but not where the data leave no room
        # for a smooth one.
        hopeless = bound is None and (
            solution.problem.linear or not missed or solution.problem.rough is not None
        )
        if (
            (hopeless and not (missed and switch()))
            or attempt + 1 == ATTEMPTS
            or answer.result in ENDS
            or (missed and not hopeless and not extend())
        ):
            break
        if not missed:
            assert bound is not None
            target *= min(0.5, SAFETY * tol / bound)
        weights = answer.weights
    assert best is not None
    return best.replace(result=_result(answer.result, smallest))


def _result(last: Result, smallest: float) -> Result:
    """How it ended: what stopped the solver goes before what the certificate says."""
    if last in (*ENDS, Result.convexity_lost):
        return last
    return Result.not_certifiable if smallest == math.inf else Result.tolerance_not_reached


ENDS = (Result.interrupted, Result.time_out, Result.nonfinite)
