"""Bounds of the error that say nothing: those above the size that the solution has for other
reasons."""

import itertools
from dataclasses import replace

import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.measured import pilot_points_of
from cordes.certificates.theorems.barriers.traversal import traversals
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.maximum import Operators, Profile, profiles
from cordes.problems.features import features_of
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem

# A bound may be this many times the largest value of the answer, or twice the size that the maximum
# principle gives, whichever is more.
TIMES, TWICE = 10.0, 2.0
MOST_FEATURES = 4096
SAID = {"Linf": "the largest error", "rms": "the root mean square error"}


def without_useless(
    problem: AbstractProblem, candidate: AbstractCandidate, certificate: Certificate
) -> Certificate:
    """The certificate without bounds of |v| above the size of the solution, which stand in its
    reasons instead. An answer that is zero has no size of its own, and keeps what it has."""
    given = {name: getattr(certificate, name) for name in SAID}
    largest = max((bound for bound in given.values() if bound is not None), default=0.0)
    if largest == 0:
        return certificate
    x = _points_of(problem)
    top = float(np.max(np.abs(candidate.value(x)[0])))
    if not 0 < TIMES * top < largest:
        return certificate
    size = TIMES * top
    if isinstance(problem, Linear):
        size = max(size, TWICE * (top + _by_the_data(problem, x)))
    useless = {name: bound for name, bound in given.items() if bound is not None and bound > size}
    reasons = [
        Reason(
            Why.useless,
            f"no useful bound of {SAID[name]} (the best one, {bound:.3g}, is above the size of the "
            f"solution, {size:.3g})",
            {"bound": bound, "size": size},
        )
        for name, bound in useless.items()
    ]
    certificate = replace(certificate, reasons=(*reasons, *certificate.reasons))
    if "Linf" in useless:
        certificate = replace(certificate, Linf=None, maximum_citation=None)
    if "rms" in useless:
        # What bounds derivatives is the same number, or is made of it.
        certificate = replace(certificate, rms=None, L2=None, H1=None, H2=None, citation=None)
    gone = {*useless, *(("L2", "H1", "H2") if "rms" in useless else ())}
    kept = {name: cited for name, cited in certificate.citations.items() if name not in gone}
    return replace(certificate, citations=kept)


def _points_of(problem: AbstractProblem) -> np.ndarray:
    """Points everywhere, and in features of the data: the solution may be large only there."""
    lower, upper, *_ = features_of(problem)
    middle = (lower + upper) / 2
    inside = middle[problem.domain.contains(middle)]
    return np.concatenate([pilot_points_of(problem.domain), inside[:MOST_FEATURES]])


def _by_the_data(problem: Linear, x: np.ndarray) -> float:
    """sup|f| times the smallest barrier at points; 0 where the maximum principle does not hold or
    no barrier is one."""
    A, b, c, f = problem.coefficients(x)
    if np.min(c) < 0:
        return 0.0
    local = Local(A, b, c)
    operators = Operators.of(local)
    # One at a time: each holds a matrix at every point.
    ready = profiles(problem.domain, x, operators.limits, problem.has_drift)
    if problem.has_drift:
        constant = problem.constant_coefficients
        coverage = Coverage(
            problem.domain, lambda x: problem.linearise(x)[:3], None, x, local, constant
        )
        moving = (
            Profile(each.coordinate.name, *each.at(x), each.peak)
            for each in traversals(coverage)[0]
        )
        ready = itertools.chain(ready, moving)
    heights = [
        each.peak * float(np.max(np.abs(f) / minus))
        for each in ready
        if np.all((minus := operators.minus_operator(each)) > 0)
    ]
    return min(heights, default=0.0)
