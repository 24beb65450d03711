"""The target of a transport problem: limits of its density, its Poincaré constant, its size, and
how the image of the boundary lies to it.

The gauge of the target Y around its centre y₀ is 1 on ∂Y, less inside. Let T = ∇φ with D²φ ≥ αI > 0
on a convex X, which makes T injective. If the gauge is at most 1 on T(∂X), then T(X) ⊂ Y: a bounded
open set whose boundary lies in a convex set lies in it. If the gauge is at least 1 - ζ on T(∂X),
and less at one point of T(X), then T(X) covers y₀ + (1 - ζ)(Y - y₀): this open set is connected,
and T(X) is open and closed in it.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.convexity import (
    Convexity,
    LocalSearch,
    corners_of,
    eigenvalues,
    inside,
    largest_value,
    polished,
    proved,
    reaches,
    smallest_eigenvalue,
    worst_places,
)
from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.formulas.regularity import kink
from cordes.problems.coefficients import at_points
from cordes.problems.transport import Transport

TARGET_SEED, TARGET_POINTS = 5_550_302, 2048
# Interval bounds may be so much away from what is attained; cells spent on them; extrema that are
# only sampled are moved by the last share.
TOLERANCE, BUDGET, SAMPLED = 0.02, 6000, 0.05
SLACK = 1e-12
BOUNDARY_SEED, BOUNDARY_POINTS = 5_550_301, {1: 8, 2: 2048, 3: 4096}
# The search on the boundary: directions tried around each place where it starts, rounds, and how
# fast the radius shrinks.
TRIES, ROUNDS, SHRINK = 12, 14, 0.5
# The boundary is looked at in points: what they and the search have found counts so much.
BOUNDARY_SAFETY = 1.2
# Rounding of a gauge, in units of the machine's, beside that of the map.
GAUGE_ROUNDING, EPSILON = 64.0, float(np.finfo(np.float64).eps)


class Target(NamedTuple):
    """√C_P of the target density, limits of the density over the target, and how they are known."""

    poincare: float
    smallest: float
    largest: float
    source: str

    @property
    def ratio(self) -> float:
        return self.largest / self.smallest


def describe_target(problem: Transport) -> Target:
    """The Poincaré constant C_P: ∫ψ²ν ≤ C_P ∫|∇ψ|²ν for all ψ with ∫ψν = 0.

    Uniform densities: `uniform_poincare`. Others: that times √(ν_max/ν_min) (compare the integrals
    with those of the uniform density), or, where D²(-log ν) ≥ -κI, diam/π times exp(κR²/4), R the
    radius of Y around its centre: the density ν exp(-κ|y - y₀|²/2) is log-concave, for which diam/π
    holds (Payne and Weinberger), and the exponential lies between 1 and exp(κR²/2).
    """
    domain = problem.target_domain
    uniform = uniform_poincare(domain)
    if problem.uniform:
        return Target(uniform, 1 / domain.volume, 1 / domain.volume, "analytic")
    points = domain.interior_points(TARGET_POINTS, TARGET_SEED, "sobol")
    smallest, low = _extreme(problem, points, -1.0)
    largest, high = _extreme(problem, points, 1.0)
    by_ratio = uniform * math.sqrt(largest / smallest)
    source = "interval" if low == high == "interval" else "sampled"
    nu = problem.nu
    if kink(nu, domain) is None:
        curvature = _curvature(domain, lambda y: -jnp.log(nu(y)), points)
        exponent = min(max(-curvature.lower, 0.0) * radius(domain) ** 2 / 4, 700.0)
        by_curvature = (1 + SLACK) * diameter(domain) / math.pi * math.exp(exponent)
        if by_curvature < by_ratio:
            source = "interval" if source == curvature.source == "interval" else "sampled"
            return Target(by_curvature, smallest, largest, source)
    return Target(by_ratio, smallest, largest, source)


def _curvature(domain: AbstractDomain, potential: Any, points: np.ndarray) -> Convexity:
    """The smallest eigenvalue of D²(-log ν)."""
    hessians = at_points(jax.hessian(potential))
    found = smallest_eigenvalue(domain, hessians, points)
    return proved(domain, potential, lambda y: eigenvalues(hessians(y))[:, 0], found)


def _extreme(problem: Transport, points: np.ndarray, sign: float) -> tuple[float, str]:
    """A bound of the largest (sign 1) or smallest (sign -1) value of ν over the target, and how it
    is known."""
    domain = problem.target_domain

    def values(y: np.ndarray) -> np.ndarray:
        return sign * problem.target_density(y)

    edge = inside(domain, domain.boundary_points(256, TARGET_SEED)[0])
    points = np.concatenate([points, edge])
    found = polished(domain, lambda y: -values(y), points, -values(points))
    attained = -found.smallest
    if domain.dimension <= 3:
        tolerance, seen = TOLERANCE * abs(attained), (attained, found.point)
        top = largest_value(lambda y: sign * problem.nu(y), values, domain, seen, tolerance, BUDGET)
        if top is not None and top.decided:
            return sign * top.upper, "interval"
    return sign * -found.lower * (1 + sign * SAMPLED), "sampled"


def uniform_poincare(domain: AbstractDomain) -> float:
    """√C_P of the uniform density, rounded up: longest side/π on a box, R/p on a ball (p the first
    zero of the derivative of r^{1-d/2}J_{d/2}), longest semi-axis/p on an ellipsoid (carry it to
    the unit ball), and diameter/π on any convex domain."""
    if isinstance(domain, Box):
        value = float(np.max(domain.widths)) / math.pi
    elif isinstance(domain, Ball | Ellipsoid):
        value = domain.circumradius / ball_zero(domain.dimension)
    else:
        value = diameter(domain) / math.pi
    return value * (1 + SLACK)


@functools.cache
def ball_zero(dimension: int) -> float:
    """The root p of the first positive Neumann eigenvalue p² of the unit ball: 1.8412 in the plane,
    2.0816 in space."""
    order = dimension / 2

    def slope(r: float) -> float:
        return (1 - order) * scipy.special.jv(order, r) + r * scipy.special.jvp(order, r)

    # The function rises from zero, and falls from before the first zero of J_{d/2} to beyond that
    # of a Bessel function of an order at most one higher.
    beyond = float(scipy.special.jn_zeros(dimension // 2 + 1, 1)[0])
    return scipy.optimize.root_scalar(slope, bracket=(0.5, beyond), xtol=1e-14).root * (1 - SLACK)


def diameter(domain: AbstractDomain) -> float:
    """At least the diameter."""
    if isinstance(domain, Ball | Ellipsoid):
        return 2 * domain.circumradius
    if domain.vertices is not None:
        vertices = domain.vertices
        return float(np.max(np.linalg.norm(vertices[:, None] - vertices, axis=2)))
    lower, upper = domain.bounding_box
    return float(np.linalg.norm(upper - lower))


def radius(domain: AbstractDomain) -> float:
    """The radius of a ball around the centre that holds the domain."""
    known = getattr(domain, "circumradius", None)
    if known is not None:
        return float(known)
    lower, upper = domain.bounding_box
    return float(np.linalg.norm(np.maximum(upper - domain.center, domain.center - lower)))


class Image(NamedTuple):
    """How T(∂X) lies to Y. `shrink` is the η for which y₀ + (1 - η)(T - y₀) stays in Y, `gap` the ζ
    for which that map covers y₀ + (1 - ζ)(Y - y₀), as far as its boundary is concerned. Both are
    zero where `onto`: T maps the boundary on the boundary up to `rounding`. `outside` is the
    largest length by which T leaves Y, at the point `worst` of ∂X."""

    shrink: float
    gap: float
    onto: bool
    outside: float
    worst: np.ndarray
    rounding: float


def gauge(domain: AbstractDomain, points: np.ndarray) -> np.ndarray:
    """How far points are from the centre in units of the distance of the boundary in their
    direction."""
    length, reach = reaches(domain, points)
    return length / reach


def image_of_boundary(problem: Transport, candidate: AbstractCandidate) -> Image:
    """The largest and the smallest gauge of T on the boundary, at many points and by a local search
    from the worst of them."""
    domain, target = problem.domain, problem.target_domain
    start = domain.boundary_points(BOUNDARY_POINTS.get(domain.dimension, 8192), BOUNDARY_SEED)[0]
    start = np.concatenate([start, corners_of(domain)])

    def gauges(x: np.ndarray) -> np.ndarray:
        image = candidate.jet(x).gradient
        finite = np.all(np.isfinite(image), axis=1)
        return np.where(finite, gauge(target, np.nan_to_num(image)), np.inf)

    at_start = gauges(start)
    far, largest = _search(domain, lambda x: -gauges(x), start, -at_start)
    near, smallest = _search(domain, gauges, start, at_start)
    largest = -largest
    ends, d = np.stack([far, near]), domain.dimension
    offset = candidate.jet(ends).gradient - target.center
    direction = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
    _, rounding = candidate.applied(ends, np.zeros((2, d, d)), direction, np.zeros(2))
    edge = target.boundary_points(TARGET_POINTS, TARGET_SEED)[0]
    reach = float(np.min(np.linalg.norm(edge - target.center, axis=1)))
    tolerance = GAUGE_ROUNDING * EPSILON + 4 * float(np.max(rounding)) / reach
    boundary = np.linalg.norm(target.boundary_at(direction[:1]) - target.center)
    outside = max(float(boundary) * (largest - 1), 0.0)
    if max(largest - 1, 1 - smallest) <= tolerance:
        return Image(0.0, 0.0, True, outside, far, tolerance)
    excess = BOUNDARY_SAFETY * max(largest - 1, 0.0)
    if largest > 1 - tolerance:
        excess += tolerance
    shrink = excess / (1 + excess)
    covered = (1 - shrink) * (1 - BOUNDARY_SAFETY * max(1 - smallest, 0.0) - tolerance)
    return Image(shrink, 1 - max(covered, 0.0), False, outside, far, tolerance)


def _search(
    domain: AbstractDomain,
    values: Callable[[np.ndarray], np.ndarray],
    points: np.ndarray,
    at_points: np.ndarray,
) -> tuple[np.ndarray, float]:
    """The smallest value on the boundary: random directions around those of the smallest values so
    far."""
    center, d = domain.center, domain.dimension
    if d > 1:
        size = float(np.max(np.linalg.norm(points - center, axis=1)))
        radius = 4 * size / len(points) ** (1 / (d - 1))
        places = worst_places(domain, points, at_points)
        points, at_points = LocalSearch(BOUNDARY_SEED, TRIES, ROUNDS, SHRINK).descend(
            values, lambda x: domain.boundary_at(x - center), *places, radius
        )
    return points[int(np.argmin(at_points))], float(np.min(at_points))
