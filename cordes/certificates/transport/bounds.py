"""The numbers of theorem T5 (see `transport`) for a computed map: how far its image is from the
target density, what it does not reach, and its cost."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.norms import AGREEMENT, Measure, Norm, Quadrature
from cordes.certificates.transport.conjugate import Curvature, Unreached, dual_value, integral
from cordes.certificates.transport.flux import Flux
from cordes.certificates.transport.image import Image
from cordes.certificates.transport.map import EPSILON, ComputedMap, MapValues, excess, mass_doubt
from cordes.certificates.transport.target import Target, radius
from cordes.formulas.intervals import UnsupportedOperation, enclose, supremum
from cordes.jet import jet_of
from cordes.runtime.blocks import in_blocks

# The interval bound of q may be so much away from what is attained; cells spent on it.
TOLERANCE, CELLS = 0.02, {1: 4000, 2: 12_000, 3: 12_000}
MASS_SLACK = 1e-8
# The share of the flux's bound that n and 2n points may leave in doubt: their limits contain it.
FLUX_AGREEMENT = 0.05


class Bounds(NamedTuple):
    """Everything that is bounded, for T_η; `moved` is ‖T - T_η‖ and `cost` ‖x - T_η‖."""

    chi: Norm
    delta: float
    factor: float
    slice: Unreached
    reached: tuple[float, float]
    moved: Norm
    cost: tuple[float, float]
    dual: tuple[float, float]


def bounds_of(
    computed: ComputedMap,
    curvature: Curvature,
    image: Image,
    target: Target,
    measure: Measure,
    local: MapValues,
) -> Bounds:
    """Everything that the theorem needs, from the map at the points of a measure."""
    doubt = mass_doubt(computed.problem.source_density, computed.domain)
    doubt += (
        0.0
        if computed.problem.uniform
        else mass_doubt(computed.problem.target_density, computed.target)
    )
    chi = measure.norm(excess(local) / np.sqrt(np.maximum(local.G - local.rounding, 0.5 * local.G)))
    check_convergence(chi)
    # Masses 1 ± e change μ/√G and √G, of norms about 1 + χ and 1, by these shares.
    chi = Norm(max(chi.lower - 2 * doubt, 0.0), chi.upper + 2 * doubt * (1 + chi.upper), chi.spread)
    rules = [(measure, local), *computed.smooth_rule(image.shrink)]
    reached = _sharpest(
        [(norm.lower, norm.upper) for norm in (rule.norm(values.G, 1.0) for rule, values in rules)]
    )
    _check_mass(reached, image, doubt)
    R = radius(computed.target)
    slice_ = _unreached(computed, image, target, reached, doubt, R)
    factor = flow_factor(computed, measure, local, doubt) if image.onto else 2.0
    C = target.poincare
    dual_norm, image_part = C * math.hypot(chi.upper, math.sqrt(slice_.mass)), C * chi.upper
    if len(rules) > 1:
        image_part = min(
            image_part, flux_norm(computed.domain, rules, C) + 2 * C * doubt * (1 + chi.upper)
        )
    if image.gap < 1:
        tau = -target.ratio * math.log1p(-image.gap) * (computed.dimension * C**2 + 2 * R * C)
        dual_norm = min(dual_norm, image_part + math.sqrt(slice_.mass * min(tau, C**2)))
    delta = factor * dual_norm * (1 + 16 * EPSILON)
    # A map that is onto up to rounding stands for one that is onto, which is as near as that.
    moved = Norm(0.0, image.rounding * R if image.onto else 0.0)
    if image.shrink > 0:
        step = image.shrink / (1 - image.shrink) * np.linalg.norm(local.T - computed.center, axis=1)
        moved = measure.norm(step * np.sqrt(local.mu) * (1 + doubt))
    alpha = (1 - image.shrink) * curvature.alpha
    costs, duals = zip(
        *(_costs(computed, *rule, alpha, slice_, doubt) for rule in rules), strict=True
    )
    return Bounds(chi, delta, factor, slice_, reached, moved, _sharpest(costs), _sharpest(duals))


def _costs(
    computed: ComputedMap,
    measure: Measure,
    local: MapValues,
    alpha: float,
    slice_: Unreached,
    doubt: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of ‖x - T‖ and of the dual value."""
    x, root, volume = measure.points, np.sqrt(local.mu), computed.domain.volume
    length = np.linalg.norm(x - local.T, axis=1)
    low = measure.norm(np.maximum(length - local.small, 0.0) * root).lower * (1 - doubt)
    high = measure.norm((length + local.small) * root).upper * (1 + doubt)
    potential = np.sum(x**2, axis=1) / 2 - local.value
    reach = 1.1 * float(np.ptp(potential))
    # Rounding of ½|x - T|²G + (p - c)(μ - G), with |p - c| at most 1.1 times the range of p; the
    # masses change both terms by a share.
    slack = local.small * (length * local.G + np.abs(local.mu - local.G)) + reach * local.rounding
    blur = integral(measure, slack, volume)[1] + 2 * doubt * (high**2 + reach)
    least, largest = dual_value(
        measure, volume, length**2 / 2, potential, local.mu - local.G, local.G, alpha, slice_
    )
    return (low, high), (least - blur, largest + blur)


def flux_norm(domain: Any, rules: Sequence[tuple[Measure, MapValues]], poincare: float) -> float:
    """The dual norm of the difference of the densities on the image, by a flux that carries most of
    it; infinity where the points cannot resolve it."""
    (measure, local), (smooth, fitted) = rules
    assert isinstance(smooth, Quadrature)
    coarse = smooth.nodes.coarse > 0
    flux = Flux(domain)
    flux.fit(
        smooth.points[coarse],
        smooth.nodes.coarse[coarse],
        fitted.hessian[coarse],
        (fitted.mu - fitted.G)[coarse],
        fitted.G[coarse],
        poincare,
    )
    F, divergence, rounding = flux(measure.points)
    root = np.sqrt(np.maximum(local.G - local.rounding, 0.5 * local.G))
    carried = measure.norm(np.linalg.norm(np.einsum("nij,nj->ni", local.hessian, F), axis=1) / root)
    rest = measure.norm(
        (np.abs(local.mu - local.G - divergence) + rounding + local.rounding) / root
    )
    total = carried.upper + poincare * rest.upper
    unresolved = carried.upper * min(carried.spread, 1.0) + poincare * rest.upper * min(
        rest.spread, 1.0
    )
    return total if unresolved <= FLUX_AGREEMENT * total else math.inf


def _unreached(
    computed: ComputedMap,
    image: Image,
    target: Target,
    reached: tuple[float, float],
    doubt: float,
    R: float,
) -> Unreached:
    """The part of the target that is not reached. Its mass is 1 - ∫G, and at most that of the slice
    in which it lies."""
    if image.onto:
        return Unreached(0.0, 0.0, 0.0)
    thin = (
        target.largest
        * computed.target.volume
        * -math.expm1(computed.dimension * math.log1p(-min(image.gap, 1 - EPSILON)))
    )
    mass = min(max(1 - reached[0] + doubt, 0.0), thin, 1.0)
    far = (
        radius(computed.domain)
        + R
        + float(np.linalg.norm(np.asarray(computed.domain.center) - computed.center))
    )
    return Unreached(mass, min(image.gap * R, 2 * R), far**2 / 2)


def flow_factor(computed: ComputedMap, measure: Measure, local: MapValues, doubt: float) -> float:
    """2/(1 + √s) with s ≤ 1/q for all q = G/μ, where interval arithmetic proves such an s; else
    2."""
    if computed.function is None or computed.dimension not in CELLS:
        return 2.0
    function, problem = computed.function, computed.problem

    def quotient(x: Any) -> Any:
        _, gradient, hessian = jet_of(function)(x)
        return problem.nu(gradient) * _determinant(hessian) / problem.mu(x)

    enclosure, compiled = enclose(quotient), jax.jit(jax.vmap(quotient))

    def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.max([piece.upper for piece in enclosure(lower, upper)], axis=0)

    q = local.G / local.mu
    worst = int(np.argmax(q))
    try:
        found = supremum(
            bound,
            lambda x: in_blocks(compiled, (x,)),
            computed.domain,
            float(q[worst]),
            measure.points[worst],
            TOLERANCE,
            CELLS[computed.dimension],
        )
    except UnsupportedOperation:
        return 2.0
    largest = found.upper * (1 + 4 * doubt) + 1e-12
    return 2 / (1 + math.sqrt(1 / largest)) if math.isfinite(largest) else 2.0


def check_convergence(chi: Norm) -> None:
    """A norm of which n and 2n points tell different things is no norm."""
    if not chi.spread <= AGREEMENT:
        raise NoBoundError(
            Why.not_converged,
            "the norm of the difference of the densities did not converge: n and 2n points per "
            f"direction differ by {100 * chi.spread:.2g} %; a peak may be unresolved: use "
            "smoother densities, or solve more accurately",
            spread=chi.spread,
        )


def _check_mass(reached: tuple[float, float], image: Image, doubt: float) -> None:
    """The image of an injective map has at most the mass of the target, and all of it if it is the
    target."""
    slack = MASS_SLACK + doubt + 3 * (reached[1] - reached[0])
    if reached[0] > 1 + slack or (image.onto and reached[1] < 1 - slack):
        raise NoBoundError(
            Why.mass_balance,
            f"the mass balance fails: the image of the map has the mass {reached[0]:.9g} to "
            f"{reached[1]:.9g} of the target's 1, though it "
            f"{'covers' if image.onto else 'lies in'} the target as far as its boundary shows. "
            "The second derivatives are not those of the map, or a density is not normalised.",
            mass=reached,
        )


def _sharpest(limits: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """What several pairs of limits have in common; the hull of all where they contradict each
    other."""
    low, high = max(pair[0] for pair in limits), min(pair[1] for pair in limits)
    return (
        (low, high)
        if low <= high
        else (min(pair[0] for pair in limits), max(pair[1] for pair in limits))
    )


def _determinant(matrix: Any) -> Any:
    """Written out for interval arithmetic, in up to three dimensions."""
    if matrix.shape[0] == 1:
        return matrix[0, 0]
    if matrix.shape[0] == 2:
        return matrix[0, 0] * matrix[1, 1] - matrix[0, 1] ** 2
    a = matrix[0, 0]
    b = matrix[0, 1]
    c = matrix[0, 2]
    d = matrix[1, 1]
    e = matrix[1, 2]
    f = matrix[2, 2]
    return a * (d * f - e**2) - b * (b * f - c * e) + c * (b * e - c * d)
