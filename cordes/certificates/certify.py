"""`certify`: how wrong an answer can be, ours or any function that a user brings."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cordes.ansatz.build import slope_left
from cordes.ansatz.singular import find_singular_points
from cordes.arguments import check_arguments, flag, number, one_of, positive
from cordes.certificates.certificate import Certificate
from cordes.certificates.hjb.certify import certify_hjb
from cordes.certificates.linear import certify_linear
from cordes.certificates.monge_ampere.certify import certify_monge_ampere
from cordes.certificates.obstacle.certify import certify_obstacle
from cordes.certificates.opaque import with_opaque_formulas
from cordes.certificates.parabolic.certify import certify_in_time
from cordes.certificates.plane.certify import certify_on_plane, singular_places
from cordes.certificates.reason import NoBoundError, Reason, Why
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    FunctionCandidate,
)
from cordes.certificates.residual.jumps import kink_across_rays
from cordes.certificates.residual.kinks import pole_at_kinks
from cordes.certificates.residual.measured import TooFineError
from cordes.certificates.theorems.barriers.barrier import NO_QUADRATURE
from cordes.certificates.transport.certify import certify_transport
from cordes.certificates.useful import without_useless
from cordes.errors import OptionError, shown
from cordes.gallery.names import as_problem
from cordes.problems.checks import check_unchanged
from cordes.problems.coefficients import check_shape
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.runtime.packages import load_kinds
from cordes.runtime.plain import plain_number, show
from cordes.solutions.solution import Solution

# A jump of the gradient may change the error by this share of the bound.
KINK = 0.1
NORMS = ("H2", "H1", "L2", "rms", "Linf", "map_L2")


class Request(NamedTuple):
    """What is certified, and how: `singular` (K, d) are points around which the residual may be
    large, the others are options of `certify`."""

    candidate: AbstractCandidate
    singular: np.ndarray
    confidence: float
    residual_bound: float | None
    barrier: bool


@functools.singledispatch
def certified(problem: AbstractProblem, request: Request) -> Certificate:
    """The certificate of one kind of problem; each kind has its theorems."""
    raise OptionError(
        f"No theorem is known for problems of type {type(problem).__name__}: nothing can be "
        "certified. Register one: cordes.certificates.certify.certified.register."
    )


@certified.register
def _linear(problem: Linear, request: Request) -> Certificate:
    if problem.domain.convex:
        return certify_linear(problem, *request)
    return certify_on_plane(problem, request.candidate, request.singular)


certified.register(Parabolic, lambda problem, how: certify_in_time(problem, *how[:3]))


@certified.register
def _controls(problem: AbstractControlled, request: Request) -> Certificate:
    certify_it = certify_hjb if problem.clock is None else certify_in_time
    return certify_it(problem, *request[:3])


certified.register(Obstacle, lambda problem, how: certify_obstacle(problem, *how[:3]))
certified.register(MongeAmpere, lambda problem, how: certify_monge_ampere(problem, *how[:3]))
certified.register(
    Transport, lambda problem, how: certify_transport(problem, how.candidate, how.confidence)
)


RULES = {
    "norm": one_of("norm", NORMS),
    "barrier": flag,
    "confidence": number(0.5, below=1.0),
    "residual_bound": positive,
}
OPTIONAL = ("norm", "residual_bound")


def certify(
    problem: AbstractProblem | str | Path,
    answer: Solution | Callable[..., Any],
    *,
    norm: str | None = None,
    barrier: bool = False,
    confidence: float = 0.99,
    residual_bound: float | None = None,
) -> Certificate:
    """Bounds of u - u_θ for an answer u_θ: a `Solution`, or any function of one point (in time of x
    and t) written with jax.numpy that equals g on the boundary, and the initial values at their
    time. The problem may be a name of the gallery or a path.

    In up to three dimensions the norms come from quadrature, beyond from independent points, with
    the given `confidence`. `residual_bound` is a bound of |f - Lu_θ| over the whole domain that you
    vouch for: with it independent points are used in any dimension and the statistical bounds are
    guaranteed (empirical Bernstein), without it they are asymptotic. `barrier=True` (with
    `norm="Linf"` or no norm) trains a barrier network, which gives the sharpest bound of the
    largest error.
    """
    problem = as_problem(problem)
    if not callable(answer):
        wanted = "a solution, or a function of one point, is needed"
        raise OptionError(f"answer = {shown(answer)}: {wanted}.")
    numbers = {"confidence": confidence, "residual_bound": residual_bound}
    numbers = {name: plain_number(value) for name, value in numbers.items()}
    check_arguments(RULES, {"norm": norm, "barrier": barrier, **numbers}, OPTIONAL)
    if barrier and norm not in (None, "Linf"):
        raise OptionError(f"barrier=True bounds the largest error: pass norm='Linf', not {norm!r}.")
    if barrier and (problem.domain.dimension > 3 or residual_bound is not None):
        raise OptionError(NO_QUADRATURE)
    if not problem.linear and (barrier or residual_bound is not None):
        name, kind = "barrier=True" if barrier else "residual_bound", type(problem).__name__
        raise OptionError(f"{name} is for linear problems, not for {kind}: leave it out.")
    check_unchanged(problem)
    if not problem.domain.convex and (barrier or residual_bound is not None):
        name = "barrier=True" if barrier else "residual_bound"
        raise OptionError(
            f"{name} is for convex domains, not for {problem.domain!r}: leave it out."
        )
    candidate, singular = _candidate(problem, answer)
    request = Request(candidate, singular, confidence, residual_bound, barrier)
    try:
        certificate = without_useless(problem, candidate, certified(problem, request))
        certificate = with_opaque_formulas(problem, candidate, certificate)
    except TooFineError as error:
        reason = Reason(Why.unseen, str(error), {"point": error.point, "size": error.size})
        certificate = Certificate(reasons=(reason,))
    except NoBoundError as error:
        certificate = Certificate(reasons=(error.reason,))
    except MemoryError as error:
        # An answer has been found, or was brought: it is not lost.
        certificate = Certificate(reasons=(Reason(Why.memory, f"no memory is left: {error}"),))
    if not isinstance(answer, Solution) or not problem.domain.convex:
        return certificate
    return _without_kinks(answer, certificate)


def _without_kinks(solution: Solution, certificate: Certificate) -> Certificate:
    """A jump of the gradient that could move the error by a share of the bound makes it void."""
    if certificate.rms is None:
        return certificate
    pole = pole_at_kinks(solution)
    if pole is not None:
        sentence = (
            f"the residual grows like 1/r at the kink of g at x = {show(pole)}, and is not square "
            "integrable"
        )
        return Certificate(reasons=(Reason(Why.kink, sentence, {"point": pole}),))
    lower, upper = solution.problem.domain.bounding_box
    jump = max(kink_across_rays(solution), slope_left(solution.problem))
    if jump * float(np.max(upper - lower)) <= KINK * certificate.rms:
        return certificate
    sentence = f"the gradient of the answer jumps by {jump:.2g} across a ray of the singular"
    sentence += " functions, or behind a kink of g; solve with singular=False"
    return Certificate(reasons=(Reason(Why.kink, sentence, {"jump": jump}),))


def _candidate(
    problem: AbstractProblem, answer: Solution | Callable
) -> tuple[AbstractCandidate, np.ndarray]:
    if isinstance(answer, Solution):
        candidate = AnswerCandidate(problem, answer)
        if not problem.domain.convex:
            return candidate, np.array(singular_places(problem)).reshape(-1, 2)
        return candidate, answer.singular_locations
    if not callable(answer):
        raise OptionError(
            f"answer is {answer!r}: pass a Solution, or a function of one point written with "
            "jax.numpy."
        )
    domain = problem.domain
    if problem.clock is not None:
        answer = problem.clock.turned(answer)
    check_shape("answer", answer, (), np.asarray(domain.center))  # pyright: ignore
    # Singular functions belong to boundary values that are given.
    points = []
    if problem.takes_boundary_values and domain.convex:
        points = find_singular_points(domain, problem.interfaces, problem.coefficients)
    places = [point.location for point in points] if domain.convex else singular_places(problem)
    locations = np.array(places).reshape(-1, domain.dimension)
    return FunctionCandidate(problem, answer), locations


# Kinds whose certificates are files of their own beside this one.
load_kinds("cordes.certificates")
