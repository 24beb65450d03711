"""Collocation points: quasi-random over the domain, denser towards singular points and where the
data have something small, with the weights that keep sums of squares an L² norm."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from cordes.ansatz.singular.points import SingularPoint, directions, edges_away
from cordes.domains.domain import AbstractDomain

# Lower and upper corners (N, d).
Boxes = tuple[np.ndarray, np.ndarray]
NOWHERE: Boxes = np.zeros((0, 0)), np.zeros((0, 0))
# r = ρ u^GRADING puts points into each scale around a singular point.
GRADING = 3.0
# Points in hidden boxes for each uniform one; the power of their volume that all boxes of one size
# get.
HIDDEN_SHARE, LEVELS = 0.25, 0.25


class Points(NamedTuple):
    """Points (N, d) and row weights (N,): Σ (weight · residual)² is an estimate of the mean square
    of the residual."""

    x: np.ndarray
    weight: np.ndarray


def collocation_points(
    domain: AbstractDomain,
    uniform: int,
    seed: int,
    singular: Sequence[SingularPoint] = (),
    counts: Sequence[int] = (),
    kind: str = "sobol",
    hidden: Boxes = NOWHERE,
) -> Points:
    """Points for fitting or judging: `uniform` ones, counts[k] around the k-th singular point, and
    some in the small boxes that these may miss (lower and upper corners `hidden`); another seed
    gives fresh ones."""
    small = len(hidden[0]) > 0
    if not (singular or small):
        return Points(domain.interior_points(uniform, seed, kind), np.full(uniform, uniform**-0.5))
    inside_boxes = int(np.ceil(HIDDEN_SHARE * uniform)) if small else 0
    count = uniform + sum(counts) + inside_boxes
    radii = [_reach(domain, point, singular) for point in singular]
    parts = [domain.interior_points(uniform, seed, kind)]
    for k, (point, reach, graded) in enumerate(zip(singular, radii, counts, strict=True)):
        u = qmc.Sobol(2, rng=np.random.default_rng([seed, k])).random_base2(
            int(np.ceil(np.log2(max(graded, 2))))
        )[:graded]
        r = reach * np.maximum(u[:, 0], 1e-12) ** GRADING
        around = point.location + r[:, None] * directions(_angles(point, u[:, 1]))
        # A smooth boundary bends away from its tangent. The density of those inside is not changed
        # by leaving out the others.
        parts.append(around if point.interface is None else around[domain.contains(around)])
    if small:
        parts.append(_inside(domain, hidden, inside_boxes, seed))
    x = np.concatenate(parts)
    density = np.full(len(x), uniform / count / domain.volume)
    for point, reach, graded in zip(singular, radii, counts, strict=True):
        r = np.maximum(np.linalg.norm(x - point.location, axis=1), 1e-300)
        inside = r <= reach
        width = _spread(point, x)
        # Density of r is r^(1/G-1)/(G ρ^(1/G)); in the plane it spreads over an arc of length
        # r·width.
        density += np.where(
            inside, graded / count * (r / reach) ** (1 / GRADING) / (GRADING * width * r**2), 0.0
        )
    if small:
        density += inside_boxes / count * _box_density(hidden, x)
    return Points(x, np.sqrt(1 / (domain.volume * density * count)))


def _inside(domain: AbstractDomain, boxes: Boxes, count: int, seed: int) -> np.ndarray:
    """Points of the boxes; those outside of the domain are left out, which does not change the
    density of the others."""
    (lower, upper), generator = boxes, np.random.default_rng([seed, count])
    ladder = (np.arange(count) + generator.random(count)) / count
    chosen = np.searchsorted(np.cumsum(_chances(boxes))[:-1], ladder)
    x = lower[chosen] + generator.random((count, lower.shape[1])) * (upper - lower)[chosen]
    return x[domain.contains(x)]


def _chances(boxes: Boxes) -> np.ndarray:
    """How likely a point lies in each box: boxes of one size evenly, and small sizes together
    nearly as likely as large ones."""
    volume = np.prod(boxes[1] - boxes[0], axis=1)
    level = np.unique(np.round(np.log2(volume)), return_inverse=True)[1]
    chance = volume * np.bincount(level, volume)[level] ** (LEVELS - 1)
    return chance / np.sum(chance)


def _box_density(boxes: Boxes, x: np.ndarray) -> np.ndarray:
    """The density of such a point."""
    lower, upper = boxes
    inside = np.ones((len(x), len(lower)), bool)
    for here, low, high in zip(x.T, lower.T, upper.T, strict=True):
        inside &= (low <= here[:, None]) & (here[:, None] < high)
    return inside @ (_chances(boxes) / np.prod(upper - lower, axis=1))


def _angles(point: SingularPoint, u: np.ndarray) -> np.ndarray:
    """Angles between the first and the last ray. Where an interface meets a smooth boundary each
    sector has the same number, however narrow it is."""
    if point.interface is None:
        return point.rays[0] + (point.rays[-1] - point.rays[0]) * u
    return np.interp(u, np.linspace(0, 1, len(point.rays)), point.rays)


def _spread(point: SingularPoint, x: np.ndarray) -> np.ndarray | float:
    """One over the density of these angles, at points."""
    if point.interface is None:
        return point.rays[-1] - point.rays[0]
    offset = x - point.location
    angle = (np.arctan2(offset[:, 1], offset[:, 0]) - point.rays[0]) % (2 * np.pi)
    sector = np.clip(np.searchsorted(point.rays[1:-1] - point.rays[0], angle), 0, point.sectors - 1)
    return point.sectors * np.diff(point.rays)[sector]


def _reach(domain: AbstractDomain, point: SingularPoint, others: Sequence[SingularPoint]) -> float:
    """A radius within which the point's sectors stay inside the domain, but for the bend of a
    smooth boundary, and away from the other singular points."""
    gaps = [
        np.linalg.norm(point.location - other.location) for other in others if other is not point
    ]
    if domain.vertices is not None:
        gaps += list(edges_away(domain.vertices, point.location)[2])
    elif point.on_boundary:
        gaps.append(np.linalg.norm(point.location - domain.center))
    else:
        boundary = domain.boundary_at(np.random.default_rng(0).standard_normal((256, 2)))
        gaps.append(np.min(np.linalg.norm(boundary - point.location, axis=1)))
    return 0.95 * float(min(gaps))
