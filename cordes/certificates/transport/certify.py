"""Certificates of optimal transport: from a problem and a computed potential φ to bounds of ‖∇φ -
∇u‖ in L²(μ) and of the distance W₂(μ, ν).

The theorem (T5). Let αI ≤ D²φ ≤ βI on the convex X with α > 0, T = ∇φ, T(X) ⊂ Y, and δ ≥ W₂(T_#μ,
ν). Let φ* be the conjugate over X, whose gradient is 1/α-Lipschitz, and x̃ = ∇φ*(∇u(x)). The dual
gap lies between α/2 ∫|x - x̃|²μ and δ²/2α, so ‖x - x̃‖ ≤ δ/α.

Where ∇u(x) = T(x̃) this gives |T - ∇u| ≤ β|x - x̃|. If T(X) covers y₀ + (1 - ζ)(Y - y₀), any y in Y
is within ζR of a point T(x') (R the radius of Y around y₀), |x' - ∇φ*(y)| ≤ ζR/α, and |y -
T(∇φ*(y))| ≤ (1 + β/α)ζR, which happens on a set of mass m = 1 - ∫G only, G = ν(T) det D²φ. So

    ‖T - ∇u‖ ≤ (β/α) δ + (1 + β/α) ζ R √m        and in any case        ‖T - ∇u‖ ≤ (1 + 2β/α) δ.

The second: |y - T(∇φ*(y))| depends on y alone, so that ∇u may be exchanged for the map x ↦ S(T(x)),
S optimal from T_#μ to ν, which is δ from T. In one dimension S(T) increases, so that it is ∇u, and
‖T - ∇u‖ ≤ δ.

δ comes from densities: δ ≤ κ ‖T_#μ - ν‖ in the norm dual to ‖∇ψ‖_{L²(ν)}, by following the flow
along (1 - t)ν + tT_#μ; κ = 2/(1 + √s), s the smallest T_#μ/ν, where T(X) = Y, else 2. With the
Poincaré constant C of ν and χ² = ∫(μ - G)²/G the dual norm is at most √C χ + √(m τ): the second
term is for the slice Y∖T(X), on which ∫ψ²ν ≤ τ ‖∇ψ‖², τ = (ν_max/ν_min) log(1/(1 - ζ)) (dC + 2R√C)
(integrate div((y - y₀)ψ²) over the dilations of Y). It is at most √C √(χ² + m) as well. In place of
√C χ a flux that carries most of μ - G gives less (`bounds.Flux`).

Where T leaves Y, all this is applied to T_η = y₀ + (1 - η)(T - y₀), the gradient of another convex
potential, and ‖T - T_η‖ is added to the bound of the map at the end. W₂: ‖x - T‖ ± δ, and by
duality D ≤ ½W₂² ≤ D + δ²/2α (`map.dual_value`), which is sharper where δ is small.

What is searched and not proved: α and β where `epsilon_source` says `sampled`, and always T on the
boundary (excesses count twice).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from cordes.certificates.certificate import Certificate, Picture
from cordes.certificates.reason import NoBoundError, Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.hypotheses import SINGLE_PRECISION, roughness
from cordes.certificates.residual.jumps import jumps_along_chords
from cordes.certificates.residual.norms import Measure
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.certificates.transport.bounds import MapBounds, bounds_of
from cordes.certificates.transport.map import EPSILON, ComputedMap, Curvature, MapValues
from cordes.certificates.transport.target import (
    Image,
    Target,
    describe_target,
    gauge,
    image_of_boundary,
)
from cordes.domains.domain import AbstractDomain
from cordes.formulas.regularity import jump
from cordes.formulas.regularity.search import suspected
from cordes.problems.transport import Transport
from cordes.runtime.plain import show

CHORDS, CHORD_SEED = 256, 5_550_313
# A map that must be shrunk by more than this share has little to do with the target.
LARGEST_SHRINK = 0.5
NO_POINTWISE = Reason(
    Why.not_covered, "no bound at single points: the theorem is about mean squares of the map"
)
T5 = Citation(Theorem.T5)


def certify_transport(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> Certificate:
    """The bounds that the theorem gives, or the reason why there are none."""
    if reason := refusal(problem, candidate):
        return Certificate(reasons=(reason,))
    return bounds(problem, candidate, confidence)


def bounds(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> Certificate:
    """The theorem applied to a potential that is known to be smooth, and to densities that are
    known not to jump."""
    try:
        return _certificate(examined(problem, candidate, confidence))
    except NoBoundError as why:
        return Certificate(reasons=(why.reason,))


def refusal(problem: Transport, candidate: AbstractCandidate) -> Reason | None:
    """The first hypothesis that fails, or None: double precision, a potential without kinks,
    densities without jumps."""
    if not jax.config.read("jax_enable_x64"):
        return SINGLE_PRECISION
    return (
        roughness(problem, candidate)
        or _jump("source", problem.mu, problem.domain)
        or _jump("target", problem.nu, problem.target_domain)
    )


def _jump(name: str, density: Callable, domain: AbstractDomain) -> Reason | None:
    """A jump of a density: n and 2n points would disagree, or agree by accident. What its formula
    does not exclude stays."""
    why = jump(density, domain)
    if why is None:
        return None
    points = domain.interior_points(2 * CHORDS, CHORD_SEED, "sobol")
    for found in jumps_along_chords(density, points):
        return Reason(
            Why.jump,
            f"the density {name} jumps near x = {show(found.point)}: the norms cannot be trusted "
            "across it, n and 2n points need not agree. Replace the jump by a steep smooth "
            "function, or restrict the domain to one side of it.",
            {"point": found.point},
        )
    if not suspected(why):
        return None
    sentence = f"the density {name} may jump ({why}): its formula does not exclude it"
    return Reason(Why.jump, f"{sentence}, and points may miss it")


class Examined(NamedTuple):
    """A map with all that was found out about it."""

    map: ComputedMap
    curvature: Curvature
    image: Image
    target: Target
    measure: Measure
    local: MapValues
    found: MapBounds


def examined(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> Examined:
    """The way from a map to its bounds; raises `NoBoundError` where there are none."""
    computed = ComputedMap(problem, candidate, confidence)
    curvature = computed.curvature()
    image = image_of_boundary(problem, candidate)
    if not image.shrink <= LARGEST_SHRINK:
        outside, point = image.outside, image.worst
        sentence = f"the map leaves the target by {outside:.3g} at the boundary point x ="
        sentence += f" {show(point)}: T(∂X) must lie in the target, up to a small excess. Impose"
        sentence += " the boundary condition more strictly, or start from a map into the target."
        raise NoBoundError(Why.outside_target, sentence, outside=outside, point=point)
    target = describe_target(problem)
    measure, local = computed.measured(image.shrink)
    known = _seen_again(curvature, local), _covering(computed, image, local), target, measure, local
    return Examined(computed, *known, bounds_of(computed, *known))


def _seen_again(curvature: Curvature, local: MapValues) -> Curvature:
    """The points of the norms may show more extreme eigenvalues than a search has found."""
    if curvature.source == "interval":
        return curvature
    alpha = min(curvature.alpha, float(np.min(local.least)))
    return curvature._replace(alpha=alpha, beta=max(curvature.beta, float(np.max(local.greatest))))


def _covering(computed: ComputedMap, image: Image, local: MapValues) -> Image:
    """The argument for covering needs one point of T(X) well inside."""
    if image.onto or float(np.min(gauge(computed.target, local.T))) < 1 - image.gap:
        return image
    return image._replace(gap=1.0)


def _certificate(known: Examined) -> Certificate:
    """The theorem, and what its bounds rest on."""
    computed, curvature, image, target, measure, _, found = known
    ratio, delta, moved = curvature.beta / curvature.alpha, found.delta, found.moved.upper
    slice_ = found.slice.thickness * math.sqrt(found.slice.mass)
    variants = {
        "ii": ratio * delta + (1 + ratio) * slice_ + moved,
        "ii'": (1 + 2 * ratio) * delta + moved,
    }
    if computed.dimension == 1:
        variants["increasing"] = delta + moved
    best = min(variants, key=lambda variant: variants[variant])
    reasons = [NO_POINTWISE]
    if image.shrink > 0 and image.outside > 0:
        sentence = f"the map leaves the target by {image.outside:.2g} at x = {show(image.worst)}"
        sentence += f"; shrinking it costs {moved:.2g} of the bound"
        values = {"outside": image.outside, "point": image.worst}
        reasons.append(Reason(Why.outside_target, sentence, values))

    def residual(x: np.ndarray) -> np.ndarray:
        _, gradient, hessian = computed.candidate.jet(x)
        density = computed.problem.target_density(gradient)
        return density * np.linalg.det(hessian) - computed.problem.source_density(x)

    return Certificate(
        map_L2=variants[best] * (1 + 16 * EPSILON),
        W2=_distance(curvature, image, found),
        citation=T5 if image.shrink == 0 else T5.with_(Modifier.shrunk),
        level=measure.level,
        confidence=measure.confidence,
        epsilon_source="sampled" if "sampled" in (curvature.source, target.source) else "interval",
        reasons=tuple(reasons),
        points=len(measure.points),
        spread=found.chi.spread,
        citations={"map_L2": T5._replace(variant=best), "W2": T5},
        alternatives={str(T5._replace(variant=name)): value for name, value in variants.items()},
        picture=Picture(computed.problem, residual, None, measure.points),
    )


def _distance(curvature: Curvature, image: Image, found: MapBounds) -> tuple[float, float]:
    """W₂ from the cost of the map and from the dual value, whichever is sharper."""
    alpha = (1 - image.shrink) * curvature.alpha
    low, high = found.dual
    lower = max(found.cost[0] - found.delta, math.sqrt(max(2 * low, 0.0)), 0.0)
    upper = min(found.cost[1] + found.delta, math.sqrt(max(2 * high, 0.0) + found.delta**2 / alpha))
    slack = found.moved.upper if image.onto else 0.0
    return max(lower * (1 - 16 * EPSILON) - slack, 0.0), upper * (1 + 16 * EPSILON) + slack
