"""From the bounds that theorems give to a certificate: the smallest of each norm, what they do not
cover, and what boundary values that are not exact cost."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.equation import AbstractEquation, EnergyBound
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.hypotheses import Gap
from cordes.certificates.residual.norms import (
    UNENCLOSED,
    UNRESOLVED_REMEDY,
    Measure,
    Quadrature,
    bounded,
    unresolved,
)
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy_bounds import energy_bounds
from cordes.certificates.theorems.maximum import ABP, LIKE_A_POLE, Maximum
from cordes.domains.domain import AbstractDomain
from cordes.domains.polar import polar_factor

# A bound whose contraction is only sampled must be this much smaller to be preferred.
PREFERENCE = 1.5


class Maxima(NamedTuple):
    """The best bound of the largest error by the maximum principle, all of them, and why there is
    none."""

    best: Maximum | None
    others: list[Maximum]
    why: Reason | None = None


def no_maxima(kind: Why, sentence: str, **values: float) -> Maxima:
    return Maxima(None, [], Reason(kind, sentence, values))


def chosen(
    equation: AbstractEquation, best: Maximum, others: list[Maximum], size: np.ndarray
) -> Maxima:
    """The best of them where its norms converged and it is finite; `size` is the residual behind
    it."""
    if not best.converged:
        spread = max(norm.spread for norm in best.norms)
        sentence = f"the ABP norm did not converge: {unresolved(equation.measure, spread)}"
        return no_maxima(Why.not_converged, sentence, spread=spread)
    if math.isfinite(best.bound):
        return Maxima(best, others)
    if bounded(size, LIKE_A_POLE) and not equation.problem.has_drift:
        return no_maxima(Why.no_theorem, "the maximum principle gives no bound")
    if bounded(size, LIKE_A_POLE):
        return no_maxima(Why.large_drift, "the drift is too large for the ABP bound")
    largest = float(np.max(size))
    sentence = "no bound of the largest error: the residual has a pole, it reaches"
    return no_maxima(Why.pole, f"{sentence} {largest:.3g} at the points of the norms", size=largest)


def best_bounds(
    equation: AbstractEquation,
    coverage: AbstractCoverage,
    maximum: Callable[[list[EnergyBound]], Maxima],
) -> Certificate:
    """All theorems applied to one equation whose residual is known on a measure. `maximum` gives
    what the maximum principle says, once the energy bounds are known."""
    if reason := coverage.not_elliptic():
        return Certificate(reasons=(reason,))
    energies, failures = energy_bounds(equation, coverage)
    energies = equation.proved(energies)
    disagreement = disagreement_of(equation.measure, energies)
    energies = [energy for energy in energies if energy.norm.converged]
    found = maximum(energies)
    reasons = [*failures, *disagreement, *([found.why] if found.why is not None else [])]
    return assemble(equation, energies, found, reasons)


def disagreement_of(measure: Measure, energies: list[EnergyBound]) -> list[Reason]:
    """Why the energy bounds are not given, where their norms did not converge."""
    spreads = [energy.norm.spread for energy in energies]
    if not energies or min(spreads) <= 0.01:
        return []
    sentence = f"the norm of the residual did not converge: {unresolved(measure, min(spreads))}"
    if min(spreads) < math.inf:
        sentence += f"; {UNRESOLVED_REMEDY}"
    return [Reason(Why.not_converged, sentence, {"spread": min(spreads)})]


def assemble(
    equation: AbstractEquation,
    energies: list[EnergyBound],
    found: Maxima,
    reasons: Sequence[Reason],
) -> Certificate:
    """The smallest bound of each norm."""
    domain, measure, maximum = equation.domain, equation.measure, found.best
    best = min(energies, key=_preference, default=None)
    if best is not None and best.contraction.source != "sampled":
        # One word says how the contraction is known: it must hold for all bounds.
        energies = [energy for energy in energies if energy.contraction.source != "sampled"]
    if best is not None and best.enclosed:
        energies = [energy for energy in energies if energy.enclosed]
    tops = _tops(domain, energies, maximum)
    top = min(tops, key=Bound.preference, default=None)
    square = min(_squares(equation, best, maximum, top), key=Bound.preference, default=None)
    points = len(measure.points)
    if square is None:
        why = tuple(reasons) or (Reason(Why.no_theorem, "no theorem applies"),)
        return Certificate(reasons=why, points=points, picture=_picture(equation, [], None))
    curved = [energy for energy in energies if energy.H2 is not None]
    curvature = min(curved, key=lambda energy: energy.H2 or 0.0, default=None)
    slope = min(energies, key=lambda energy: energy.H1, default=None)
    energy, lambda_ = _energy(energies)
    cited = {
        "energy": best and best.theorem,
        "L2": square.by,
        "H1": slope and slope.theorem,
        "H2": curvature and curvature.theorem,
        "Linf": top and top.by,
    }
    known = _known({"H2": curvature, "H1": slope, "Linf": top, "L2": square, "rms": square})
    if energy is not None and all(each.enclosed for each in energies):
        known["energy"] = "enclosed"
    sure = all(norm in known for norm, by in (*cited.items(), ("energy", energy)) if by is not None)
    return Certificate(
        H2=curvature and curvature.H2,
        H1=slope and slope.H1,
        L2=square.value,
        rms=square.value / math.sqrt(domain.volume),
        Linf=top and top.value,
        energy=energy,
        lambda_=lambda_,
        citation=square.by,
        maximum_citation=top and top.by,
        contraction=best and best.contraction.value,
        constant=best and best.constant,
        level="enclosed" if sure else measure.level,
        known=known,
        confidence=measure.confidence,
        epsilon_source=best and best.contraction.source,
        reasons=tuple(reasons),
        points=points,
        spread=_spread(best, maximum),
        citations={name: by for name, by in cited.items() if by},
        alternatives={str(each.by): each.value for each in tops}
        | {str(each.theorem): each.bound for each in found.others},
        picture=_picture(equation, found.others, top and top.value),
    )


def _known(found: dict[str, "EnergyBound | Bound | None"]) -> dict[str, str]:
    """The level of the norms from which nothing can hide."""
    return {norm: "enclosed" for norm, by in found.items() if by is not None and by.enclosed}


class Bound(NamedTuple):
    """A bound, by which theorem, whether its norms are enclosed, and the factor by which it must be
    smaller than others."""

    value: float
    by: Citation
    enclosed: bool
    handicap: float

    @staticmethod
    def of(value: float, energy: EnergyBound, by: Citation | None = None) -> "Bound":
        handicap = 1.0 if energy.enclosed else UNENCLOSED
        return Bound(value, by or energy.theorem, energy.enclosed, handicap)

    def preference(self) -> tuple[float, str]:
        """Of two bounds that are equal, the one whose name is first."""
        return self.value * self.handicap, str(self.by)


def _tops(
    domain: AbstractDomain, energies: list[EnergyBound], maximum: Maximum | None
) -> list[Bound]:
    """Bounds of the largest error: by Green's function, and by the maximum principle."""
    greens = [
        Bound.of(value, energy, Citation(Theorem.green, behind=energy.theorem))
        for energy in energies
        if (value := energy.Linf(domain)) is not None
    ]
    if maximum is None:
        return greens
    return [*greens, Bound(maximum.bound, maximum.theorem, maximum.enclosed, maximum.handicap)]


def _squares(
    equation: AbstractEquation,
    best: EnergyBound | None,
    maximum: Maximum | None,
    top: Bound | None,
) -> list[Bound]:
    """Bounds of ‖v‖: by the energy, and from bounds of |v| at every point."""
    found = [Bound.of(best.L2, best)] if best is not None else []
    if top is not None:
        found.append(top._replace(value=top.value * math.sqrt(equation.domain.volume)))
    if maximum is not None and isinstance(equation.measure, Quadrature):
        pointwise = equation.measure.norm(maximum.pointwise)
        if pointwise.converged:
            found.append(Bound(pointwise.upper, maximum.theorem, False, UNENCLOSED))
    return found


def _spread(best: EnergyBound | None, maximum: Maximum | None) -> float | None:
    """What n and 2n points make of the norm behind the bounds."""
    if best is not None:
        return best.norm.spread
    return max((norm.spread for norm in maximum.norms), default=None) if maximum else None


def _preference(energy: EnergyBound) -> float:
    sampled = PREFERENCE if energy.contraction.source == "sampled" else 1.0
    return energy.L2 * sampled * (1.0 if energy.enclosed else UNENCLOSED)


def _energy(energies: list[EnergyBound]) -> tuple[tuple[float, float] | None, float | None]:
    """The bracket of ‖Δv - λv‖: from M = I where such a theorem holds, else from ‖M:D²v‖ ≤ |M| ‖Δv‖
    and ‖Δv‖ ≤ √d ‖D²v‖ with λ = 0."""
    plain = [energy for energy in energies if energy.transform is None]
    identity = [energy for energy in plain if energy.about_laplacian]
    if identity:
        best = min(identity, key=lambda energy: energy.upper / max(energy.lower, 1e-300))
        lambda_ = best.scheme.lambda_
        same = [energy for energy in identity if energy.scheme.lambda_ == lambda_]
        lower, upper = max(energy.lower for energy in same), min(energy.upper for energy in same)
        return (lower, upper), lambda_
    free = [energy for energy in plain if energy.scheme.lambda_ == 0]
    if not free:
        return None, None
    lower = max(energy.lower / float(np.linalg.norm(energy.matrix)) for energy in free)
    root = math.sqrt(len(free[0].matrix))
    upper = min(root * each.upper / np.linalg.eigvalsh(each.matrix)[0] for each in free)
    return (lower, float(upper)), 0.0


def _picture(equation: AbstractEquation, others: list[Maximum], largest: float | None) -> Picture:
    """The pointwise bound is that of ABP, cut at the best bound of the maximum."""
    sizes = [each.norms[0].upper for each in others if each.theorem == ABP and each.converged]
    cut = math.inf if largest is None else largest

    def bound(points: np.ndarray) -> np.ndarray:
        return np.minimum(polar_factor(equation.domain, points) * sizes[0], cut)

    points = equation.measure.points
    return Picture(equation.problem, equation.residual_at, bound if sizes else None, points)


def with_gap(
    gap: Gap, certificate: Certificate, no_maximum_principle: Callable[[], Reason | None]
) -> Certificate:
    """The bounds of u minus the values that a computer gives for the answer, whose boundary values
    differ from g by a little.

    Let u₁ solve the equation with the boundary values of the answer: the theorems bound u₁ - u_θ,
    and |u - u₁| is no more than the gap by the maximum principle. It says nothing about
    derivatives: their bounds stay where the difference is rounding, and the exact answer has the
    right boundary values.
    """
    if certificate.rms is None or certificate.L2 is None:
        return certificate
    why = None if gap.exact else no_maximum_principle()
    missed = f"the boundary values miss g by {gap.size:.2g}"
    if why is not None:
        sentence = f"{missed}, and what follows from it is not known: {why}"
        return Certificate(reasons=(Reason(Why.boundary_gap, sentence, {"gap": gap.size}),))
    more, picture, shape = gap.addition, certificate.picture, 1.0
    if certificate.rms > 0:
        shape = certificate.L2 / certificate.rms
    elif picture is not None:
        shape = math.sqrt(picture.problem.domain.volume)
    certificate = replace(
        certificate,
        L2=certificate.L2 + more * shape,
        rms=certificate.rms + more,
        Linf=None if certificate.Linf is None else certificate.Linf + more,
        alternatives={name: value + more for name, value in certificate.alternatives.items()},
        picture=None if picture is None else picture._replace(bound=_raised(picture.bound, more)),
    )
    if gap.exact:
        return certificate
    reason = Reason(Why.boundary_gap, f"no bounds of ∇v and D²v: {missed}", {"gap": gap.size})
    reasons = (*certificate.reasons, reason)
    return replace(certificate, H2=None, H1=None, energy=None, lambda_=None, reasons=reasons)


def _raised(
    bound: Callable[[np.ndarray], np.ndarray] | None, more: float
) -> Callable[[np.ndarray], np.ndarray] | None:
    return None if bound is None else lambda points: bound(points) + more
