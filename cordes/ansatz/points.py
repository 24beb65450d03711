"""Collocation points: quasi-random over the domain, denser towards singular points, with the
weights that keep sums of squares an L² norm."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from cordes.ansatz.singular.points import SingularPoint, directions, edges_away
from cordes.domains.domain import AbstractDomain

# r = ρ u^GRADING puts points into each scale around a singular point.
GRADING = 3.0


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
) -> Points:
    """Points for fitting or judging: `uniform` ones and counts[k] around the k-th singular point;
    another seed gives fresh ones."""
    if not singular:
        return Points(domain.interior_points(uniform, seed, kind), np.full(uniform, uniform**-0.5))
    count = uniform + sum(counts)
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
    return Points(x, np.sqrt(1 / (domain.volume * density * count)))


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
