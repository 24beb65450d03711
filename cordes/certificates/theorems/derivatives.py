"""Bounds of derivatives of the error from one of the error itself, where the drift is too large for
the energy theorems.

Let V ≥ ‖v‖, M as in T1d, τ = d/tr(M⁻¹A), ρ < 1 the contraction of T1b, B ≥ τ|M^{-1/2}b| and Γ ≥
τ|c|. Then E = ‖M:D²v‖ has (1 - ρ)E ≤ ‖τr‖ + B‖M^{1/2}∇v‖ + ΓV by T1b, and ‖M^{1/2}∇v‖² = -∫ v M:D²v
≤ VE. So √E is at most the positive root of a quadratic equation. Where A, b and c ≥ 0 are constant,
∫ v b·∇v = 0, and ‖M^{1/2}∇v‖² ≤ V(‖τr‖ + ρE) by the equation itself.
"""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.enclosed.weights import multiplier as energy_weight
from cordes.certificates.equation import LinearEquation
from cordes.certificates.theorems.barriers.traversal import field_of
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import TraceSplit
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.walls import walled_part


class Derivatives(NamedTuple):
    """Bounds of ‖∇v‖ and ‖D²v‖, and whether the norm of the residual behind them is enclosed."""

    H1: float
    H2: float
    enclosed: bool


def derivatives(
    equation: LinearEquation, coverage: AbstractCoverage, L2: float
) -> Derivatives | None:
    """The smallest over the preconditioners; None where A has no contraction that is known over the
    whole domain, or the norm of the residual did not converge."""
    field, found = field_of(coverage), []
    if field is None or walled_part(equation.domain) is not None:
        return None
    for matrix in preconditioners(equation.pilot.local, equation.domain):
        contraction = coverage.contraction(TraceSplit(), matrix)
        multiplier = coverage.largest_multiplier(matrix)
        if contraction.source == "sampled" or not contraction.value < 1:
            continue
        at = equation.evaluated.local.invariants(matrix)
        seen = equation.measure.norm(at.dimension / at.trace * equation.evaluated.size)
        norm = equation.enclosed_norm(energy_weight(TraceSplit(), matrix), 2, seen) or seen
        ball = field.ball.whitened(matrix)
        drift = multiplier.value * float(np.max(ball.largest_drift))
        reaction = multiplier.value * float(np.max(np.abs(ball.middle.c) + ball.radius.c))
        if multiplier.source == "sampled" or not (norm.converged and drift < math.inf):
            continue
        room, right = 1 - contraction.value, norm.upper + reaction * L2
        root = drift * math.sqrt(L2) + math.sqrt(drift**2 * L2 + 4 * room * right)
        energy = (root / (2 * room)) ** 2
        slope = math.sqrt(L2 * energy)
        if coverage.constant and float(np.min(at.reaction)) >= 0:
            slope = min(slope, math.sqrt(L2 * (norm.upper + contraction.value * energy)))
            energy = min(energy, (right + drift * slope) / room)
        least = float(np.linalg.eigvalsh(matrix)[0])
        found.append(Derivatives(slope / math.sqrt(least), energy / least, norm.enclosed))
    return min(found, key=lambda each: each.H2, default=None)
