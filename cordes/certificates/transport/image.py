"""How the image of the boundary lies to the target.

The gauge of the target Y around its centre y₀ is 1 on ∂Y, less inside. Let T = ∇φ with D²φ ≥ αI > 0
on a convex X, which makes T injective. If the gauge is at most 1 on T(∂X), then T(X) ⊂ Y: a bounded
open set whose boundary lies in a convex set lies in it. If the gauge is at least 1 - ζ on T(∂X),
and less at one point of T(X), then T(X) covers y₀ + (1 - ζ)(Y - y₀): this open set is connected,
and T(X) is open and closed in it.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.convexity import worst_places
from cordes.certificates.transport.target import TARGET_POINTS, TARGET_SEED
from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.problems.transport import Transport

BOUNDARY_SEED, BOUNDARY_POINTS = 5_550_301, {1: 8, 2: 2048, 3: 4096}
# The search on the boundary: directions tried around each place where it starts, rounds, and how
# fast the radius shrinks.
TRIES, ROUNDS, SHRINK, NEAREST = 12, 14, 0.5, 0.03
# The boundary is looked at in points: what they and the search have found counts so much.
BOUNDARY_SAFETY = 1.2
# Rounding of a gauge, in units of the machine's, beside that of the map.
GAUGE_ROUNDING, EPSILON = 64.0, float(np.finfo(np.float64).eps)


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


def image_of_boundary(problem: Transport, candidate: AbstractCandidate) -> Image:
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
    domain: AbstractDomain,
    values: Callable[[np.ndarray], np.ndarray],
    points: np.ndarray,
    at_points: np.ndarray,
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
