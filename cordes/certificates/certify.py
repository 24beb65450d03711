"""`certify`: how wrong an answer can be, ours or any function that a user brings."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cordes.ansatz.singular import find_singular_points
from cordes.certificates.certificate import Certificate
from cordes.certificates.hjb.certify import certify_hjb
from cordes.certificates.linear import certify_linear
from cordes.certificates.monge_ampere import certify_monge_ampere
from cordes.certificates.residual.candidate import AnswerCandidate, Candidate, FunctionCandidate
from cordes.certificates.residual.hypotheses import kink_across_rays
from cordes.certificates.transport.certify import certify_transport
from cordes.errors import OptionError, unknown
from cordes.problems.coefficients import check_shape
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.solutions.solution import Solution

# A jump of the gradient may change the error by this share of the bound.
KINK = 0.1
NORMS = ("H2", "H1", "L2", "rms", "Linf", "map_L2")


def certify(
    problem: AbstractProblem,
    answer: "Solution | Callable",
    *,
    norm: str | None = None,
    barrier: bool = False,
    confidence: float = 0.99,
    residual_bound: float | None = None,
) -> Certificate:
    """Bounds of u - u_θ for an answer u_θ: a `Solution`, or any function of one point written with
    jax.numpy that equals g on the boundary.

    In up to three dimensions the norms come from quadrature, beyond from independent points, with
    the given `confidence`. `residual_bound` is a bound of |f - Lu_θ| over the whole domain that you
    vouch for: with it independent points are used in any dimension and the statistical bounds are
    guaranteed (empirical Bernstein), without it they are asymptotic. `barrier=True` (with
    `norm="Linf"` or no norm) trains a barrier network, which gives the sharpest bound of the
    largest error.
    """
    if norm is not None and norm not in NORMS:
        raise unknown("norm", norm, NORMS)
    if not 0.5 <= confidence < 1:
        raise OptionError(
            f"confidence = {confidence!r}: it must lie between 0.5 and 1, for example 0.99."
        )
    if residual_bound is not None and not 0 < residual_bound < np.inf:
        raise OptionError(f"residual_bound = {residual_bound!r}: it must be a positive number.")
    if barrier and norm not in (None, "Linf"):
        raise OptionError(f"barrier=True bounds the largest error: pass norm='Linf', not {norm!r}.")
    if barrier and (problem.domain.dimension > 3 or residual_bound is not None):
        raise OptionError(
            "barrier=True needs quadrature, which there is in up to three dimensions and "
            "without residual_bound: leave it out here."
        )
    if not problem.linear and (barrier or residual_bound is not None):
        name = "barrier=True" if barrier else "residual_bound"
        raise OptionError(
            f"{name} is for linear problems, not for {type(problem).__name__}: leave it out."
        )
    candidate, singular = _candidate(problem, answer)
    if isinstance(problem, Transport):
        return certify_transport(problem, candidate, confidence)
    if isinstance(problem, HJB):
        certificate = certify_hjb(problem, candidate, singular, confidence)
    elif isinstance(problem, MongeAmpere):
        certificate = certify_monge_ampere(problem, candidate, singular, confidence)
    else:
        certificate = certify_linear(
            problem, candidate, singular, confidence, residual_bound, barrier
        )
    return (
        _without_kinks(answer, certificate)
        if isinstance(answer, Solution) and certificate.rms is not None
        else certificate
    )


def _without_kinks(solution: Solution, certificate: Certificate) -> Certificate:
    """A jump of the gradient that could move the error by a share of the bound makes it void."""
    lower, upper = solution.problem.domain.bounding_box
    jump = kink_across_rays(solution)
    assert certificate.rms is not None
    if jump * float(np.max(upper - lower)) <= KINK * certificate.rms:
        return certificate
    return Certificate(
        reason=(
            f"the gradient of the answer jumps by {jump:.2g} across a ray of the singular "
            "functions; solve with singular=False"
        )
    )


def _candidate(problem: AbstractProblem, answer: Any) -> tuple[Candidate, np.ndarray]:
    if isinstance(answer, Solution):
        return AnswerCandidate(problem, answer), answer.singular_locations
    if not callable(answer):
        raise OptionError(
            f"answer is {answer!r}: pass a Solution, or a function of one point written with "
            "jax.numpy."
        )
    domain = problem.domain
    check_shape("answer", answer, (), np.asarray(domain.center))  # pyright: ignore
    if isinstance(problem, Transport):
        return FunctionCandidate(problem, answer), np.zeros((0, domain.dimension))
    points = find_singular_points(domain, problem.interfaces, problem.coefficients)
    return FunctionCandidate(problem, answer), np.array(
        [point.location for point in points]
    ).reshape(-1, domain.dimension)
