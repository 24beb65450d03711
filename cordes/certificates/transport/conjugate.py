"""What a transport certificate is made of: bounds of D²φ, on which the smoothness of the conjugate
rests, how the image of the boundary lies to the target, the Poincaré constant of the target
density, and what duality says about the cost.

The gauge of the target Y around its centre y₀ is 1 on ∂Y, less inside. Let T = ∇φ with D²φ ≥ αI > 0
on a convex X, which makes T injective. If the gauge is at most 1 on T(∂X), then T(X) ⊂ Y: a bounded
open set whose boundary lies in a convex set lies in it. If the gauge is at least 1 - ζ on T(∂X),
and less at one point of T(X), then T(X) covers y₀ + (1 - ζ)(Y - y₀): this open set is connected,
and T(X) is open and closed in it.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

from cordes.certificates.residual.candidate import Candidate
from cordes.certificates.residual.convexity import (
    Convexity,
    Hessians,
    eigenvalue_bound,
    eigenvalues,
    inside,
    polished,
    proved,
    smallest_eigenvalue,
    worst_places,
)
from cordes.certificates.residual.norms import Measure
from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose, infimum, supremum
from cordes.formulas.regularity import kink
from cordes.jet import jet_of
from cordes.problems.transport import Transport
from cordes.runtime.blocks import in_blocks

BOUNDARY_SEED, TARGET_SEED = 5_550_301, 5_550_302
BOUNDARY_POINTS, TARGET_POINTS = {1: 8, 2: 2048, 3: 4096}, 2048
# The search on the boundary: directions tried around each place where it starts, rounds, and how
# fast the radius shrinks.
TRIES, ROUNDS, SHRINK, NEAREST = 12, 14, 0.5, 0.03
# The boundary is looked at in points: what they and the search have found counts so much.
BOUNDARY_SAFETY = 1.2
# Rounding of a gauge, in units of the machine's, beside that of the map.
GAUGE_ROUNDING, EPSILON = 64.0, float(np.finfo(np.float64).eps)
# Interval bounds may be so much away from what is attained, those of D²φ are used up to the second
# share; cells spent on them; extrema that are only sampled are moved by the last share.
TOLERANCE, USED, CELLS, BUDGET, SAMPLED = 0.02, 0.15, {1: 4000, 2: 12_000, 3: 12_000}, 6000, 0.05
SLACK = 1e-12


class Curvature(NamedTuple):
    """αI ≤ D²φ ≤ βI, the point of the smallest eigenvalue seen, and how they are known."""

    alpha: float
    beta: float
    point: np.ndarray
    source: str


def curvature_of(
    domain: AbstractDomain, hessian_at: Hessians, function: Callable | None, points: np.ndarray
) -> Curvature:
    """Bounds of D²φ: proved for a function where interval arithmetic comes close to what is
    attained, else searched."""

    def negative(x: np.ndarray) -> np.ndarray:
        return -hessian_at(x)

    low, high = (
        smallest_eigenvalue(domain, hessian_at, points),
        smallest_eigenvalue(domain, negative, points),
    )
    if not (low.smallest > 0 and np.isfinite(high.smallest)):
        return Curvature(low.smallest, -high.smallest, low.point, "sampled")
    alpha = _proved(domain, hessian_at, function, low, 1.0)
    beta = _proved(domain, negative, function, high, -1.0)
    source = "sampled" if alpha is None or beta is None else "interval"
    return Curvature(
        low.lower if alpha is None else alpha,
        -high.lower if beta is None else -beta,
        low.point,
        source,
    )


def _proved(
    domain: AbstractDomain,
    hessian_at: Hessians,
    function: Callable | None,
    known: Convexity,
    sign: float,
) -> float | None:
    """A lower bound of the smallest eigenvalue of ±D²φ by interval arithmetic, None where it is too
    far from what is attained."""
    if function is None or domain.dimension not in CELLS:
        return None
    bound = eigenvalue_bound(lambda x: sign * jet_of(function)(x).hessian)

    def values(x: np.ndarray) -> np.ndarray:
        return eigenvalues(hessian_at(x))[:, 0]

    try:
        found = infimum(
            bound,
            values,
            domain,
            known.smallest,
            known.point,
            TOLERANCE * abs(known.smallest),
            CELLS[domain.dimension],
        )
    except UnsupportedOperation:
        return None
    return found.lower if found.lower >= known.smallest - USED * abs(known.smallest) else None


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
    center = np.asarray(domain.center)
    offset = points - center
    length = np.linalg.norm(offset, axis=1)
    direction = np.where(length[:, None] > 0, offset, np.eye(1, domain.dimension))
    return length / np.linalg.norm(domain.boundary_at(direction) - center, axis=1)


def image_of_boundary(problem: Transport, candidate: Candidate) -> Image:
    """The largest and the smallest gauge of T on the boundary, at many points and by a local search
    from the worst of them."""
    domain, target = problem.domain, problem.target_domain
    start = domain.boundary_points(BOUNDARY_POINTS.get(domain.dimension, 8192), BOUNDARY_SEED)[0]
    if isinstance(domain, Box) and domain.dimension <= 8:
        start = np.concatenate(
            [
                start,
                np.array(list(itertools.product(*zip(domain.lower, domain.upper, strict=True)))),
            ]
        )
    elif domain.vertices is not None:
        start = np.concatenate([start, domain.vertices])

    def gauges(x: np.ndarray) -> np.ndarray:
        image = np.asarray(candidate.jet(x).gradient)
        return np.where(
            np.all(np.isfinite(image), axis=1), gauge(target, np.nan_to_num(image)), np.inf
        )

    at_start = gauges(start)
    far, largest = _search(domain, lambda x: -gauges(x), start, -at_start)
    near, smallest = _search(domain, gauges, start, at_start)
    largest = -largest
    ends = np.stack([far, near])
    image = np.asarray(candidate.jet(ends).gradient)
    offset = image - np.asarray(target.center)
    direction = offset / np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-300)
    _, rounding = candidate.applied(
        ends, np.zeros((2, domain.dimension, domain.dimension)), direction, np.zeros(2)
    )
    reach = np.min(
        np.linalg.norm(
            target.boundary_points(TARGET_POINTS, TARGET_SEED)[0] - np.asarray(target.center),
            axis=1,
        )
    )
    tolerance = GAUGE_ROUNDING * EPSILON + 4 * float(np.max(rounding)) / float(reach)
    boundary = np.linalg.norm(target.boundary_at(direction[:1]) - np.asarray(target.center))
    outside = max(float(boundary) * (largest - 1), 0.0)
    if max(largest - 1, 1 - smallest) <= tolerance:
        return Image(0.0, 0.0, True, outside, far, tolerance)
    excess = BOUNDARY_SAFETY * max(largest - 1, 0.0) + (
        tolerance if largest > 1 - tolerance else 0.0
    )
    shrink = excess / (1 + excess)
    covered = (1 - shrink) * (1 - BOUNDARY_SAFETY * max(1 - smallest, 0.0) - tolerance)
    return Image(shrink, 1 - max(covered, 0.0), False, outside, far, tolerance)


def _search(
    domain: AbstractDomain, values: Any, points: np.ndarray, at_points: np.ndarray
) -> tuple[np.ndarray, float]:
    """The smallest value on the boundary: random directions around those of the smallest values so
    far."""
    center, rng = np.asarray(domain.center), np.random.default_rng(BOUNDARY_SEED)
    if domain.dimension == 1:
        return points[int(np.argmin(at_points))], float(np.min(at_points))
    x, found = worst_places(domain, points, at_points)
    radius = np.full(
        len(x),
        4
        * float(np.max(np.linalg.norm(points - center, axis=1)))
        / len(points) ** (1 / (domain.dimension - 1)),
    )
    for _ in range(ROUNDS):
        step = rng.standard_normal((len(x), TRIES, domain.dimension))
        step *= (
            radius[:, None, None]
            * NEAREST ** rng.uniform(0.0, 1.0, (len(x), TRIES, 1))
            / np.linalg.norm(step, axis=2, keepdims=True)
        )
        tries = domain.boundary_at((x[:, None] + step - center).reshape(-1, domain.dimension))
        results = values(tries).reshape(len(x), TRIES)
        best = np.argmin(results, axis=1)
        rows = np.arange(len(x))
        better = results[rows, best] < found
        x = np.where(better[:, None], tries.reshape(len(x), TRIES, -1)[rows, best], x)
        found = np.where(better, results[rows, best], found)
        radius = np.where(better, radius, SHRINK * radius)
    return x[int(np.argmin(found))], float(np.min(found))


# The target density


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
    nu = getattr(problem, "nu", None)
    if nu is not None and kink(nu, domain) is None:
        curvature = _curvature(domain, lambda y: -jnp.log(nu(y)), points)
        missing = max(-curvature.lower, 0.0)
        by_curvature = (
            (1 + SLACK)
            * diameter(domain)
            / math.pi
            * math.exp(min(missing * radius(domain) ** 2 / 4, 700.0))
        )
        if by_curvature < by_ratio:
            return Target(
                by_curvature,
                smallest,
                largest,
                "interval" if source == curvature.source == "interval" else "sampled",
            )
    return Target(by_ratio, smallest, largest, source)


def _curvature(domain: AbstractDomain, potential: Any, points: np.ndarray) -> Convexity:
    """The smallest eigenvalue of D²(-log ν)."""
    compiled = jax.jit(jax.vmap(jax.hessian(potential)))

    def hessians(y: np.ndarray) -> np.ndarray:
        return np.asarray(in_blocks(compiled, (y,)))

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
    if (nu := getattr(problem, "nu", None)) is not None and domain.dimension <= 3:
        enclosure = enclose(lambda y: sign * nu(y))

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            return np.max([piece.upper for piece in enclosure(lower, upper)], axis=0)

        try:
            top = supremum(
                bound, values, domain, attained, found.point, TOLERANCE * abs(attained), BUDGET
            )
            if top.decided:
                return sign * top.upper, "interval"
        except UnsupportedOperation:
            pass
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
    return float(
        np.linalg.norm(np.maximum(upper - domain.center, np.asarray(domain.center) - lower))
    )


# Flux


def integral(measure: Measure, values: np.ndarray, volume: float) -> tuple[float, float]:
    """Limits of the integral of values of any sign. A constant is integrated exactly, so the values
    are raised until none is negative."""
    least = float(np.min(values))
    norm = measure.norm(values - least, 1.0)
    return norm.lower + least * volume, norm.upper + least * volume


class Slice(NamedTuple):
    """The part of the target that the map does not reach: its mass at most, its thickness at most,
    and half the largest |x - y|² at most."""

    mass: float
    thickness: float
    half_square: float


def dual_value(
    measure: Measure,
    volume: float,
    half_cost: np.ndarray,
    potential: np.ndarray,
    excess: np.ndarray,
    density: np.ndarray,
    alpha: float,
    rest: Slice,
) -> tuple[float, float]:
    """Limits of the dual value D = ½∫|x|²μ + ½∫|y|²ν - ∫φμ - ∫φ*ν, which is at most ½W₂², for T(X)
    ⊂ Y. `half_cost` is ½|x - T|², `potential` is p = ½|x|² - φ, `excess` μ - G and `density` G =
    ν(T) det D²φ at the points.

    Where y = T(x) the conjugate is x·y - φ(x); so the part of ∫(½|y|² - φ*)ν over T(X) is ∫(½|x -
    T|² - p)G, and with ∫pμ

        D = ∫½|x - T|²G + ∫p(μ - G) + ∫_{Y∖T(X)} (½|y|² - φ*)ν.

    In the last part take x with T(x) within the thickness θ of y: p(x) + ½|y|² - φ*(y) lies between
    ½|y - x|² - θ²/2α and ½|y - x|², by strong convexity and by the definition of φ*. With a
    constant c ≥ p this makes D ≥ ∫½|x - T|²G + ∫(p - c)(μ - G) - mass θ²/2α, since ∫(μ - G) is the
    mass of the last part; and D is at most the same with c ≤ p and mass ½ sup|x - y|² in place of
    the last term.
    """
    reach = float(np.ptp(potential))
    if rest.mass == 0:
        middle = (float(np.max(potential)) + float(np.min(potential))) / 2
        low, high = integral(measure, half_cost * density + (potential - middle) * excess, volume)
        return low, high
    # Between the points p may be a little larger or smaller than at them.
    above, below = float(np.max(potential)) + 0.05 * reach, float(np.min(potential)) - 0.05 * reach
    low, _ = integral(measure, half_cost * density + (potential - above) * excess, volume)
    _, high = integral(measure, half_cost * density + (potential - below) * excess, volume)
    return low - rest.mass * rest.thickness**2 / (2 * alpha), high + rest.mass * rest.half_square
