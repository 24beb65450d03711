"""Certificates of equations in time: bounds of v = u - u_θ over all of space and time, and at each
time, from the residual alone.

The energy theorem TP gives norms over Ω × (0, T) and at a time, and in one dimension the largest
error; comparison (M1) and the maximum principle of Krylov and Tso (KT) give the largest error in
any dimension (`energy_in_time`, `comparison`). Which class of solutions M1 and KT rest on is said
in the certificate.
"""

import math
from collections.abc import Sequence

import numpy as np

from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.parabolic.bounds import BoundsInTime, bounds_of
from cordes.certificates.parabolic.slab import Slab, looked_at
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.hypotheses import Gap, boundary_gap, refusal
from cordes.problems.problem import AbstractProblem


def certify_in_time(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    singular: np.ndarray,
    confidence: float = 0.99,
) -> Certificate:
    """The best bounds that the theorems give."""
    if reason := refusal(problem, candidate):
        return Certificate(reasons=(reason,))
    found = looked_at(problem, candidate, singular, confidence)
    if isinstance(found, Reason):
        return Certificate(reasons=(found,))
    gap = boundary_gap(problem, candidate)
    return assembled(problem, candidate, [found], gap)


def assembled(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    slabs: Sequence[Slab],
    gap: Gap,
) -> Certificate:
    """One certificate of all slabs."""
    bounds = bounds_of(problem, slabs, gap)
    reasons = [reason for slab in slabs for reason in slab.failures]
    reasons += bounds.reasons
    if bounds.L2 is None and bounds.Linf is None:
        why = tuple(reasons) or (Reason(Why.no_theorem, "no theorem applies"),)
        return Certificate(reasons=why, points=_points(slabs))
    return certificate_of(problem, candidate, slabs, bounds, tuple(reasons))


def certificate_of(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    slabs: Sequence[Slab],
    bounds: BoundsInTime,
    reasons: tuple[Reason, ...],
) -> Certificate:
    L2, Linf = bounds.L2, bounds.Linf
    volume = math.sqrt(problem.domain.volume)
    energy = slabs[0].energy
    measure = slabs[0].measure

    def residual(points: np.ndarray) -> np.ndarray:
        return candidate.evaluate(points).residual if problem.linear else np.zeros(len(points))

    return Certificate(
        H2=bounds.H2,
        H1=bounds.H1,
        L2=L2 and L2.value,
        rms=L2 and L2.value / volume,
        Linf=Linf and Linf.value,
        energy=bounds.energy,
        lambda_=bounds.lambda_,
        citation=L2 and L2.by,
        maximum_citation=Linf and Linf.by,
        contraction=None if energy is None else energy.contraction.value,
        constant=None,
        level=bounds.level,
        known=bounds.known,
        confidence=measure.confidence,
        epsilon_source=None if energy is None else energy.contraction.source,
        reasons=reasons,
        points=_points(slabs),
        spread=None if energy is None else energy.norm.spread,
        citations=bounds.citations,
        alternatives=bounds.alternatives,
        picture=Picture(problem, residual, None, measure.points),
        in_time=bounds.in_time,
        classes=bounds.classes,
    )


def _points(slabs: Sequence[Slab]) -> int:
    return sum(len(slab.measure.points) for slab in slabs)
