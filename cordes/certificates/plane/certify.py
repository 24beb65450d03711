"""Certificates of linear equations on domains of the plane that need not be convex.

Theorem N1. Let Ω be bounded and open in the plane, λI ≤ A ≤ ΛI measurable, b bounded, c ≥ 0, u ∈
W^{2,2}_loc ∩ C(Ω̄) the solution with u = g on ∂Ω, w ∈ W^{2,2}_loc ∩ C(Ω̄), r = f − Lw. With b = 0

    u(x) − w(x) ≤ max_∂Ω (g − w)⁺ + C(x) ‖r⁻/√det A‖,   C(x) = ½ |(conv Ω − x)°|^{−1/2},

and the same with other signs: v − M, M the maximum, is not positive on the boundary, and has an
interior contact point with an affine function of slope p for all p in a multiple of −(conv Ω − x)°;
the area formula on the contact set gives the rest. The positive part is there for c > 0. With drift
and with barriers it is the estimate of `theorems/maximum.py`, which uses nothing of the domain but
a ball, a box or the convex hull around it. N3: for constant A and b = 0 Talenti's rearrangement.
N4: for constant A the energy ∫A∇v·∇v.

Checked: the sign of c and a bounded drift, over the convex hull; jumps of the data by their
formulas; that poles and cuts of the answer are outside (`singularities.py`). Residual and boundary
values are known at points (levels `quadrature`, `sampled`). There is no bound of D²v or ∇v: on
domains that are not convex D²u is not square integrable, and the boundary values are not exact.
"""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from cordes.ansatz.plane.network import Expansion
from cordes.certificates.assemble import Bound
from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.linear import densities, limits
from cordes.certificates.plane.fluxes import comparison, corners_without_bound, torsion
from cordes.certificates.plane.mismatch import Mismatch, largest_mismatch
from cordes.certificates.plane.singularities import singular_inside
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import EPSILON, AbstractCandidate, AnswerCandidate
from cordes.certificates.residual.hypotheses import (
    ROUNDING_OF_DATA,
    SINGLE_PRECISION,
    degenerate_side,
    not_seen,
    roughness,
    undeclared_jump,
)
from cordes.certificates.residual.measured import (
    Sampling,
    Watched,
    measured_closely,
    pilot_points_of,
    refusal_of,
)
from cordes.certificates.residual.norms import Quadrature
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.maximum import (
    Maximum,
    MaximumPrinciple,
    best_of,
    maxima,
    negative_reaction,
    unbounded_drift,
)
from cordes.certificates.theorems.pointwise import green_constant
from cordes.domains.constants import first_eigenvalue
from cordes.domains.plane.region import Region
from cordes.domains.plane.sides import SideConditions, SideData, SidePoints, fluxes
from cordes.domains.polar import polar_factor
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem

NO_DERIVATIVES = (
    "no bounds of ∇v and D²v: on a domain that is not convex the boundary values are met by rows, "
    "and D²u need not be square integrable"
)
BY_ROWS = (
    "no bounds of ∇v and D²v: on this domain normal derivatives are met by rows, and not exactly"
)
NOT_SAMPLED = Sampling(seed=5_550_002, norms=4, confidence=0.99)


def singular_places(problem: AbstractProblem) -> list[np.ndarray]:
    """Corners of the domain and kinks of g: around them the residual may be large."""
    kinks = [kink.location for kink in problem.boundary_shape.kinks]
    domain: Any = problem.domain
    return [*(corner.point for corner in domain.corners), *kinks]


def certify_on_plane(
    problem: Linear, candidate: AbstractCandidate, singular: np.ndarray
) -> Certificate:
    """The best bound of the largest error; `singular` (K, 2) are points around which the residual
    may be large."""
    domain: Any = problem.domain
    assert isinstance(domain, Region)
    if reason := _refusal(problem, candidate, domain):
        return Certificate(reasons=(reason,))
    pilot = pilot_points_of(domain)
    coverage = _coverage(problem, pilot)
    signed, known = coverage.nonnegative_reaction()
    if not signed:
        smallest = float(np.min(coverage.local.c))
        return Certificate(reasons=(negative_reaction("somewhere", smallest),))
    if reason := unbounded_drift(problem, coverage):
        return Certificate(reasons=(reason,))
    if reason := corners_without_bound(domain):
        return Certificate(reasons=(reason,))
    watched = Watched(candidate.evaluate, densities, candidate.formulas, candidate.exact)
    measure, evaluated, layers = measured_closely(problem, watched, NOT_SAMPLED, singular, limits)
    assert isinstance(measure, Quadrature)
    if reason := not_seen(problem, candidate, measure.points) or refusal_of(layers):
        return Certificate(reasons=(reason,))
    principle = MaximumPrinciple(domain, measure, evaluated, problem.has_drift)
    if fluxes(domain):
        return _with_fluxes(problem, candidate, principle, known)
    found = [*maxima(principle), *_rearranged(problem, principle)]
    mismatch = _mismatch(problem, candidate, domain)
    # On thin domains, where more than the boundary values is missed.
    if len(domain.holes) and best_of(found).bound > mismatch.bound:
        found += torsion(principle, domain)
    best = best_of(found)
    if not (best.converged and np.isfinite(best.bound)):
        sentence = "no bound of the largest error: n and 2n points disagree on the residual"
        return Certificate(reasons=(Reason(Why.not_converged, sentence),))
    if not np.isfinite(mismatch.bound):
        sentence = "no bound: the boundary values of the answer are not finite"
        return Certificate(reasons=(Reason(Why.boundary_values, sentence),))
    level = measure.level if mismatch.resolved and known != "sampled" else "sampled"
    inside = float(np.max(candidate.value(pilot)[1]))
    mismatch = mismatch._replace(bound=mismatch.bound + inside)
    certificate = _assembled(problem, principle, found, best, mismatch)
    return replace(certificate, level=level, picture=_picture(problem, candidate, principle, found))


def _refusal(problem: Linear, candidate: AbstractCandidate, domain: Region) -> Reason | None:
    """The first hypothesis that fails."""
    if not jax.config.read("jax_enable_x64"):
        return SINGLE_PRECISION
    rough = problem.boundary_shape.rough
    if rough is not None:
        return Reason(Why.kink, rough)
    if reason := degenerate_side(problem) or undeclared_jump(problem):
        return reason
    if not isinstance(candidate, AnswerCandidate):
        return roughness(problem, candidate)
    network = candidate.solution.network
    if not isinstance(network, Expansion):
        return Reason(Why.kink, "the answer is none for a domain that is not convex")
    return singular_inside(domain, network)


def _coverage(problem: Linear, points: np.ndarray) -> Coverage:
    return Coverage(
        problem.domain,
        lambda x: problem.linearise(x)[:3],
        lambda x: Local(*problem.coefficients(x)[:3]),
        points,
        Local(*problem.coefficients(points)[:3]),
        problem.constant_coefficients,
        None,
    )


def _rearranged(problem: Linear, principle: MaximumPrinciple) -> list[Maximum]:
    """N3: ‖v‖_∞ ≤ √|Ω| / (2√2π √det A) ‖r‖; with c ≥ c₀ > 0 Green's function of the plane too."""
    if not problem.constant_A or problem.has_drift:
        return []
    A, _, c = principle.evaluated.local
    factor = green_constant(2, problem.domain.volume, A[0], max(float(np.min(c)), 0.0))
    assert factor is not None
    size = principle.evaluated.size
    norm = principle.measure.norm(size)
    bound = factor * norm.upper
    everywhere = np.full(len(size), bound)
    return [Maximum(bound, Citation(Theorem.rearrangement), everywhere, (norm,))]


def _mismatch(
    problem: Linear, candidate: AbstractCandidate, domain: Region, flux: bool = False
) -> Mismatch:
    data: Any = problem.g
    g = jax.jit(jax.vmap(problem.g))
    kappa = SideConditions.of(domain).value

    def difference(points: SidePoints) -> tuple[np.ndarray, np.ndarray]:
        x, known = points.x, isinstance(data, SideData)
        wanted = data.on(points) if known else np.asarray(g(x), dtype=np.float64)
        if flux:
            none = np.zeros((len(x), 2, 2))
            values, rounding = candidate.applied(x, none, points.normal, -kappa[points.number])
        else:
            values, rounding = candidate.value(x)
        return values - wanted, rounding + ROUNDING_OF_DATA * EPSILON * np.abs(wanted)

    return largest_mismatch(domain, difference, flux)


def _with_fluxes(
    problem: Linear, candidate: AbstractCandidate, principle: MaximumPrinciple, known: str
) -> Certificate:
    """The bound of `fluxes.py`; `known` is how the sign of c is."""
    domain: Any = problem.domain
    values, flux = (_mismatch(problem, candidate, domain, each) for each in (False, True))
    found = comparison(principle, flux.bound, domain)
    top, reason = found.bound + values.bound, found.reason
    if reason is None and not np.isfinite(top):
        reason = Reason(Why.not_finite, "no bound: the answer is not finite on the boundary")
    if reason is not None:
        return Certificate(reasons=(reason,))
    resolved = found.resolved and values.resolved and flux.resolved and known != "sampled"
    by = Citation(Theorem.barrier, "growing outwards")
    gap = Reason(Why.boundary_gap, BY_ROWS, {"gap": max(values.bound, flux.bound)})
    points = principle.measure.points
    return Certificate(
        L2=top * float(np.sqrt(domain.volume)),
        rms=top,
        Linf=top,
        citation=by,
        maximum_citation=by,
        level="quadrature" if resolved else "sampled",
        reasons=(gap,),
        points=len(points) + values.points + flux.points,
        citations={"L2": by, "Linf": by},
        picture=Picture(problem, lambda x: candidate.evaluate(x).residual, None, points),
    )


def _assembled(
    problem: Linear,
    principle: MaximumPrinciple,
    found: list[Maximum],
    best: Maximum,
    mismatch: Mismatch,
) -> Certificate:
    domain, points = problem.domain, principle.measure.points
    more = mismatch.bound
    top, root = best.bound + more, float(np.sqrt(domain.volume))
    squares = [Bound(top * root, best.theorem, False, 1.0)]
    energy = _energy(problem, principle)
    if energy is not None:
        squares.append(Bound(energy + more * root, Citation(Theorem.energy_anywhere), False, 1))
    square = min(squares, key=Bound.preference)
    return Certificate(
        L2=square.value,
        rms=square.value / root,
        Linf=top,
        citation=square.by,
        maximum_citation=best.theorem,
        level="quadrature",
        reasons=(Reason(Why.boundary_gap, NO_DERIVATIVES, {"gap": mismatch.bound}),),
        points=len(points) + mismatch.points,
        spread=max((norm.spread for norm in best.norms), default=None),
        citations={"L2": square.by, "Linf": best.theorem},
        alternatives={str(each.theorem): each.bound + more for each in found},
    )


def _energy(problem: Linear, principle: MaximumPrinciple) -> float | None:
    """N4(b): for constant A and b, ‖v₀‖ ≤ ‖r‖/(Λ₁ + c₁), c ≥ c₁ ≥ 0, of v₀ with zero boundary
    values; the rest of v is at most the mismatch."""
    if not problem.constant_A or (problem.has_drift and not problem.constant_coefficients):
        return None
    A, _, c = principle.evaluated.local
    norm = principle.measure.norm(principle.evaluated.size)
    eigenvalue = first_eigenvalue(problem.domain, A[0]) + max(float(np.min(c)), 0.0)
    return norm.upper / eigenvalue if norm.converged else None


def _picture(
    problem: Linear, candidate: AbstractCandidate, principle: MaximumPrinciple, found: list[Maximum]
) -> Picture:
    best, domain = best_of(found).bound, problem.domain
    norm = found[0].norms[0].upper if found[0].norms and not problem.has_drift else None

    def bound(x: np.ndarray) -> np.ndarray:
        assert norm is not None
        return np.minimum(polar_factor(domain, x) * norm, best)

    def residual(x: np.ndarray) -> np.ndarray:
        return candidate.evaluate(x).residual

    points = principle.measure.points
    return Picture(problem, residual, None if norm is None else bound, points)
