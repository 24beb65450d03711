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
√C χ a flux that carries most of μ - G gives less (`flux.Flux`).

Where T leaves Y, all this is applied to T_η = y₀ + (1 - η)(T - y₀), the gradient of another convex
potential, and ‖T - T_η‖ is added to the bound of the map at the end. W₂: ‖x - T‖ ± δ, and by
duality D ≤ ½W₂² ≤ D + δ²/2α (`conjugate.dual_value`), which is sharper where δ is small.

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
from cordes.certificates.transport.bounds import Bounds, bounds_of
from cordes.certificates.transport.conjugate import Curvature, integral
from cordes.certificates.transport.image import Image, gauge, image_of_boundary
from cordes.certificates.transport.map import EPSILON, ComputedMap, MapValues
from cordes.certificates.transport.target import Target, describe_target
from cordes.domains.domain import AbstractDomain
from cordes.formulas.regularity import jump
from cordes.problems.transport import Transport
from cordes.runtime.plain import show

CHORDS, CHORD_SEED = 256, 5_550_313
# A map that must be shrunk by more than this share has little to do with the target.
LARGEST_SHRINK = 0.5
NO_POINTWISE = Reason(
    Why.not_covered, "no bound at single points: the theorem is about mean squares of the map"
)
T5 = Citation(Theorem.T5)


class TransportFacts(NamedTuple):
    """What is known of a computed map T = ∇φ. `alpha` and `beta` bound D²φ, `chi` is the distance
    of the densities in χ², `delta` ≥ W₂(T_#μ, ν), `mass` = ∫qμ with q = ν(T) det D²φ/μ, the mass of
    ν that T reaches, `total_variation` that between T_#μ and ν, `density_L2` and `density_max` the
    mean square and the largest |q - 1|, `outside` how far T(∂X) leaves the target, `shrink` the η
    of the module, `uncovered` its ζ, `onto` whether T(X) = Y."""

    alpha: float
    beta: float
    chi: float
    delta: float
    mass: float
    total_variation: float
    largest_q: float
    smallest_q: float
    density_L2: float
    density_max: float
    outside: float
    shrink: float
    uncovered: float
    onto: bool
    poincare: float
    flow_factor: float


def certify_transport(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> Certificate:
    """The bounds that the theorem gives, or the reason why there are none."""
    reason = refusal(problem, candidate)
    return (
        Certificate(reasons=(reason,))
        if reason is not None
        else bounds(problem, candidate, confidence)
    )


def bounds(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> Certificate:
    """The theorem applied to a potential that is known to be smooth, and to densities that are
    known not to jump."""
    try:
        return _certificate(_examined(ComputedMap(problem, candidate, confidence)))
    except NoBoundError as why:
        return Certificate(reasons=(why.reason,))


def transport_facts(
    problem: Transport, candidate: AbstractCandidate, confidence: float = 0.99
) -> TransportFacts:
    """The facts behind the certificate of a map; raises `NoBoundError` where there is none."""
    reason = refusal(problem, candidate)
    if reason is not None:
        raise NoBoundError(reason.kind, reason.sentence, **reason.values)
    return _facts(_examined(ComputedMap(problem, candidate, confidence)))


def refusal(problem: Transport, candidate: AbstractCandidate) -> Reason | None:
    """The first hypothesis that fails, or None: double precision, a potential without kinks,
    densities without jumps."""
    if not jax.config.read("jax_enable_x64"):
        return SINGLE_PRECISION
    found = roughness(problem, candidate)
    if found is not None:
        return found
    for name, density, domain in (
        ("source", problem.mu, problem.domain),
        ("target", problem.nu, problem.target_domain),
    ):
        found = _jump(name, density, domain)
        if found is not None:
            return found
    return None


def _jump(name: str, density: Callable, domain: AbstractDomain) -> Reason | None:
    """A jump of a density: n and 2n points would disagree, or agree by accident."""
    if jump(density, domain) is None:
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
    return None


class Examined(NamedTuple):
    """A map with all that was found out about it."""

    map: ComputedMap
    curvature: Curvature
    image: Image
    target: Target
    measure: Measure
    local: MapValues
    found: Bounds


def _examined(computed: ComputedMap) -> Examined:
    """The way from a map to its bounds; raises `NoBoundError` where there are none."""
    curvature = computed.curvature()
    image = image_of_boundary(computed.problem, computed.candidate)
    if not image.shrink <= LARGEST_SHRINK:
        raise NoBoundError(
            Why.outside_target,
            f"the map leaves the target by {image.outside:.3g} at the boundary point x = "
            f"{show(image.worst)}: T(∂X) must lie in the target, up to a small excess. Impose the "
            "boundary condition more strictly, or start from a map into the target.",
            outside=image.outside,
            point=image.worst,
        )
    target = describe_target(computed.problem)
    measure, local = computed.measured(image.shrink)
    curvature = _seen_again(curvature, local)
    image = _covering(computed, image, local)
    return Examined(
        computed,
        curvature,
        image,
        target,
        measure,
        local,
        bounds_of(computed, curvature, image, target, measure, local),
    )


def _seen_again(curvature: Curvature, local: MapValues) -> Curvature:
    """The points of the norms may show more extreme eigenvalues than a search has found."""
    least = int(np.argmin(local.least))
    if curvature.source == "interval":
        return curvature
    return curvature._replace(
        alpha=min(curvature.alpha, float(local.least[least])),
        beta=max(curvature.beta, float(np.max(local.greatest))),
    )


def _covering(computed: ComputedMap, image: Image, local: MapValues) -> Image:
    """The argument for covering needs one point of T(X) well inside."""
    if image.onto or float(np.min(gauge(computed.target, local.T))) < 1 - image.gap:
        return image
    return image._replace(gap=1.0)


def _certificate(examined: Examined) -> Certificate:
    """The theorem, and what its bounds rest on."""
    computed, curvature, image, target, measure, _, found = examined
    ratio = curvature.beta / curvature.alpha
    covered = ratio * found.delta + (1 + ratio) * found.slice.thickness * math.sqrt(
        found.slice.mass
    )
    variants = {
        "ii": covered + found.moved.upper,
        "ii'": (1 + 2 * ratio) * found.delta + found.moved.upper,
    }
    if computed.dimension == 1:
        variants["increasing"] = found.delta + found.moved.upper
    best = min(variants, key=lambda variant: variants[variant])
    proved_by = {curvature.source, target.source}
    reasons = [NO_POINTWISE]
    if image.shrink > 0 and image.outside > 0:
        reasons.append(
            Reason(
                Why.outside_target,
                f"the map leaves the target by {image.outside:.2g} at x = {show(image.worst)}; "
                f"shrinking it costs {found.moved.upper:.2g} of the bound",
                {"outside": image.outside, "point": image.worst},
            )
        )

    def residual(x: np.ndarray) -> np.ndarray:
        jet = computed.candidate.jet(x)
        return computed.problem.target_density(np.asarray(jet.gradient)) * np.linalg.det(
            np.asarray(jet.hessian)
        ) - computed.problem.source_density(x)

    return Certificate(
        map_L2=variants[best] * (1 + 16 * EPSILON),
        W2=_distance(curvature, image, found),
        citation=T5 if image.shrink == 0 else T5.with_(Modifier.shrunk),
        level=measure.level,
        confidence=measure.confidence,
        epsilon_source="sampled" if "sampled" in proved_by else "interval",
        reasons=tuple(reasons),
        points=len(measure.points),
        spread=found.chi.spread,
        citations={"map_L2": T5._replace(variant=best), "W2": T5},
        alternatives={str(T5._replace(variant=name)): value for name, value in variants.items()},
        picture=Picture(computed.problem, residual, None, measure.points),
    )


def _distance(curvature: Curvature, image: Image, found: Bounds) -> tuple[float, float]:
    """W₂ from the cost of the map and from the dual value, whichever is sharper."""
    alpha = (1 - image.shrink) * curvature.alpha
    low, high = found.dual
    lower = max(found.cost[0] - found.delta, math.sqrt(max(2 * low, 0.0)), 0.0)
    upper = min(found.cost[1] + found.delta, math.sqrt(max(2 * high, 0.0) + found.delta**2 / alpha))
    slack = found.moved.upper if image.onto else 0.0
    return max(lower * (1 - 16 * EPSILON) - slack, 0.0), upper * (1 + 16 * EPSILON) + slack


def _facts(examined: Examined) -> TransportFacts:
    computed, curvature, image, target, measure, local, found = examined
    raw = local if image.shrink == 0 else computed.evaluate(measure.points, 0.0)
    q = raw.G / raw.mu
    mass = found.reached if image.shrink == 0 else integral(measure, raw.G, computed.domain.volume)
    variation = integral(measure, np.abs(raw.mu - raw.G) / 2, computed.domain.volume)
    return TransportFacts(
        curvature.alpha,
        curvature.beta,
        found.chi.upper,
        found.delta + found.moved.upper,
        sum(mass) / 2,
        variation[1] + max(1 - mass[0], 0.0) / 2,
        float(np.max(q)),
        float(np.min(q)),
        measure.norm((q - 1) * np.sqrt(raw.mu)).upper,
        float(np.max(np.abs(q - 1))),
        image.outside,
        image.shrink,
        image.gap,
        image.onto,
        target.poincare,
        found.factor,
    )
