"""The target density of a transport problem: its limits, its Poincaré constant, and the size of its
domain."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

from cordes.certificates.residual.convexity import (
    Convexity,
    eigenvalues,
    inside,
    polished,
    proved,
    smallest_eigenvalue,
)
from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose, supremum
from cordes.formulas.regularity import kink
from cordes.problems.transport import Transport
from cordes.runtime.blocks import in_blocks

TARGET_SEED, TARGET_POINTS = 5_550_302, 2048
# Interval bounds may be so much away from what is attained; cells spent on them; extrema that are
# only sampled are moved by the last share.
TOLERANCE, BUDGET, SAMPLED = 0.02, 6000, 0.05
SLACK = 1e-12


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
    if domain.dimension <= 3:
        enclosure = enclose(lambda y: sign * problem.nu(y))

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
