"""The factors of the maximum principle of Alexandrov, Bakelman and Pucci: volumes of polar bodies,
at a point and at most over the domain, rounded up."""

import functools
import math

import numpy as np

from cordes.domains.box import Box
from cordes.domains.constants import up
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.domains.polygon_shape import (
    EPS,
    edge_lines,
    polygon_area,
    sines_between,
)
from cordes.domains.round import AbstractRound
from cordes.domains.unit_ball import log_ball_volume


@functools.singledispatch
def polar_factor(domain: AbstractDomain, points: np.ndarray) -> np.ndarray:
    """1 / (d |(Ω − x)°|^{1/d}) at points (n, d) of the domain, rounded up: |v(x)| ≤ factor · ‖r/det
    A^{1/d}‖ in L^d, where A:D²v − cv = r, c ≥ 0.

    K° is the polar body {p: p·z ≤ 1 for all z in K}. The factor grows with the domain. Here: that
    of the bounding box and, in the plane, Mahler's inequality |Ω| |(Ω − x)°| ≥ 27/4. Points are
    taken to lie in the domain; one that misses it by rounding counts as on the boundary.
    """
    if domain.vertices is not None:
        return _polygon_polar_factor(domain.vertices, points)
    factors = polar_factor(Box(*domain.bounding_box), points)
    return np.minimum(factors, up(_mahler(domain.volume))) if domain.dimension == 2 else factors


@polar_factor.register
def _(domain: Box, points: np.ndarray) -> np.ndarray:
    """The polar body is the convex hull of eᵢ/bᵢ and −eᵢ/aᵢ, with aᵢ, bᵢ the distances to the
    faces: volume Π (1/aᵢ + 1/bᵢ) / d!."""
    d = domain.dimension
    below, above = np.maximum(points - domain.lower, 0), np.maximum(domain.upper - points, 0)
    with np.errstate(divide="ignore"):
        logarithms = np.log(below) + np.log(above) - np.log(domain.widths)
    return up(np.exp((math.lgamma(d + 1) + np.sum(logarithms, axis=-1)) / d) / d)


@polar_factor.register
def _(domain: AbstractRound, points: np.ndarray) -> np.ndarray:
    """The largest factor times (1 − |y|²)^{(d+1)/2d}, y = S⁻¹(x − c): the polar body of the unit
    ball seen from y is an ellipsoid."""
    d, axes = domain.dimension, domain.matrix
    carried = np.linalg.solve(axes, (points - domain.center).T).T
    # Rounding of y turns into an absolute error of 1 − |y|², which matters at the boundary.
    depth = np.maximum(1 - np.sum(carried**2, axis=-1), 0) + 8 * d * EPS * np.linalg.cond(axes)
    return up(largest_polar_factor(domain) * np.minimum(depth, 1) ** ((d + 1) / (2 * d)))


@functools.singledispatch
def largest_polar_factor(domain: AbstractDomain) -> float:
    """The largest `polar_factor` over the domain, rounded up; for a domain of the user's own that
    of its bounding box, or Mahler's inequality."""
    if domain.vertices is not None:
        return _largest_polygon_polar_factor(domain.vertices)
    largest = largest_polar_factor(Box(*domain.bounding_box))
    return min(largest, up(_mahler(domain.volume))) if domain.dimension == 2 else largest


@largest_polar_factor.register
def _(domain: Box) -> float:
    """At the centre: (d! |Ω|)^{1/d} / 4d."""
    d = domain.dimension
    return up(math.exp((math.lgamma(d + 1) + np.sum(np.log(domain.widths))) / d) / (4 * d))


@largest_polar_factor.register
def _(domain: AbstractRound) -> float:
    """At the centre: (Π aᵢ)^{1/d} / (d ω_d^{1/d})."""
    d, axes = domain.dimension, domain.matrix
    # The determinant carries the rounding of the axes, amplified by their condition number.
    rounding = 8 * d * EPS * float(np.linalg.cond(axes))
    logarithm = (np.linalg.slogdet(axes)[1] - log_ball_volume(d)) / d
    return up(math.exp(logarithm) / d) * (1 + rounding)


@polar_factor.register
def _(domain: Region, points: np.ndarray) -> np.ndarray:
    """That of the convex hull: for −p/m in the polar body of the hull an affine function touches
    from above inside of the domain, whatever its shape (theorem N1)."""
    return polar_factor(domain.hull, points)


@largest_polar_factor.register
def _(domain: Region) -> float:
    return largest_polar_factor(domain.hull)


def _polygon_polar_factor(vertices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The polar body at x is the polygon with vertices nₖ/hₖ(x). Heights rounded up belong to a
    larger polygon, so that the factor is rounded up too."""
    middle = np.mean(vertices, axis=0)
    normals, heights = edge_lines(vertices - middle)
    slack = 16 * EPS * np.max(np.ptp(vertices, axis=0))
    distances = np.maximum(heights - (points - middle) @ normals.T, 0) + slack
    products = distances * np.roll(distances, -1, axis=-1)
    areas = np.sum(sines_between(normals) / products, axis=-1) / 2
    return up(np.minimum(1 / (2 * np.sqrt(areas)), _mahler(polygon_area(vertices))))


def _largest_polygon_polar_factor(vertices: np.ndarray) -> float:
    """The area ½ Σ sin(nₖ, nₖ₊₁) / (hₖhₖ₊₁) of the polar body is convex in x. Newton's method finds
    a point x near its minimum, and at all others the area is at least its tangent plane at x, whose
    smallest value over the polygon is taken at a vertex."""
    size = float(np.max(np.ptp(vertices, axis=0)))
    scaled = (vertices - np.mean(vertices, axis=0)) / size
    normals, heights = edge_lines(scaled)
    heights = heights + 16 * EPS
    sines, after = sines_between(normals), np.roll(normals, -1, axis=0)

    def area(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        distances = heights - normals @ x
        if np.min(distances) <= 0:
            return math.inf, np.zeros(2), np.eye(2)
        here, ahead = normals / distances[:, None], after / np.roll(distances, -1)[:, None]
        terms, both = sines / (2 * distances * np.roll(distances, -1)), here + ahead
        curvature = sum((terms[:, None] * vectors).T @ vectors for vectors in (both, here, ahead))
        return float(np.sum(terms)), terms @ both, np.asarray(curvature)

    x, smallest = np.zeros(2), 0.0
    for _ in range(50):
        value, slope, curvature = area(x)
        smallest = max(smallest, value + float(np.min((scaled - x) @ slope)))
        if smallest >= (1 - 1e-14) * value:
            break
        step = np.linalg.solve(curvature, slope)
        while area(x - step)[0] > (1 + 8 * EPS) * value:
            step = step / 2
        x = x - step
    return up(min(_mahler(polygon_area(vertices)), size / (2 * math.sqrt(max(smallest, 1e-300)))))


def _mahler(area: float) -> float:
    """The factor √(|Ω|/27) of Mahler's inequality |Ω| |(Ω − x)°| ≥ 27/4 for convex sets of the
    plane, attained by triangles."""
    return math.sqrt(area / 27)
