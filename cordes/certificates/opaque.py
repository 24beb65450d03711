"""Formulas that no enclosure reads: between the points of the norms they may hide anything, so that
bounds which rest on these points are known there only."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cordes.certificates.certificate import Certificate
from cordes.certificates.level import ENOUGH
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.formulas.resolution import why_opaque
from cordes.problems.problem import AbstractProblem


def with_opaque_formulas(
    problem: AbstractProblem, candidate: AbstractCandidate, certificate: Certificate
) -> Certificate:
    """The certificate with the level `sampled` in place of `quadrature`, and the reason, where the
    cells of the norms could not look for small features of a formula."""
    if ENOUGH not in certificate.levels.values():
        return certificate
    found = _opaque(problem, candidate)
    reasons = [
        Reason(
            Why.unseen,
            f"{name} has no enclosure ({why}): what it does between the {certificate.points:,} "
            "points of the norms is not known",
        )
        for name, why in found.items()
    ]
    if not reasons:
        return certificate
    known = {norm: "sampled" for norm, level in certificate.levels.items() if level == ENOUGH}
    level = "sampled" if certificate.level == ENOUGH else certificate.level
    return replace(
        certificate,
        level=level,
        known=certificate.known | known,
        reasons=(*certificate.reasons, *reasons),
    )


def _opaque(problem: AbstractProblem, candidate: AbstractCandidate) -> dict[str, str]:
    """By their names, formulas that the residual is made of and why they can hide something.
    Features of answers of ours cannot, nor long formulas of answers: they are networks."""
    data: dict[str, Callable[..., Any]] = dict(problem.data())
    if problem.takes_boundary_values:
        data["g"] = problem.g
    found = {name: why_opaque(each, problem.domain) for name, each in data.items()}
    for each in candidate.formulas:
        found["the answer"] = why_opaque(each, problem.domain, most=math.inf)
    return {name: why for name, why in found.items() if why is not None}
