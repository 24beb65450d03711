"""Collocation points in space and time where initial values have kinks: over the whole cylinder
denser towards the start, and around each kink on the scale √t of what has been smoothed."""

import jax
import numpy as np
from scipy.stats import qmc

from cordes.ansatz.points import Points
from cordes.ansatz.singular.similarity import Front, SimilarityFunctions
from cordes.domains.cylinder import Cylinder

# t = T u^p for the points of the cylinder, and for those around a kink.
EARLY, EARLIER = 2.0, 3.0
# How far from a kink points lie, in standard deviations of what has been smoothed.
REACH = 6.0


def points_in_time(functions: SimilarityFunctions, uniform: int, around: int, seed: int) -> Points:
    """`uniform` points of the cylinder and `around` of the kinks together; the weights are those of
    a mean square over the cylinder as far as the density of the points is known."""
    domain, fronts = functions.domain, functions.fronts
    x = domain.interior_points(uniform, seed, "sobol")
    x[:, -1] = domain.start + domain.length * _share(x, domain) ** EARLY
    each = -(-around // len(fronts))
    parts = [_around(domain, front, each, seed + 17 * k) for k, front in enumerate(fronts)]
    points = np.concatenate([x, *parts])
    return Points(points, np.sqrt(1 / (domain.volume * _density(functions, points, uniform, each))))


def _share(x: np.ndarray, domain: Cylinder) -> np.ndarray:
    return np.clip((x[:, -1] - domain.start) / domain.length, 1e-14, 1.0)


def _around(domain: Cylinder, front: Front, count: int, seed: int) -> np.ndarray:
    """Points whose ξ is even, at times T u^p, above places of the kink."""
    u = qmc.Sobol(3, rng=np.random.default_rng(seed)).random_base2(
        int(np.ceil(np.log2(max(count, 2))))
    )[:count]
    share = np.maximum(u[:, 0], 1e-6) ** EARLIER
    since = domain.length * share
    places = front.kink.places[(u[:, 1] * len(front.kink.places)).astype(int)]
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(front.level)))(places))
    A = np.asarray(jax.jit(jax.vmap(front.matrix))(places))
    along = np.einsum("nij,nj->ni", A, slopes)
    # One unit of y along A times the slope of the level.
    step = along / np.sqrt(np.einsum("ni,ni->n", along, slopes))[:, None]
    xi = REACH * (2 * u[:, 2] - 1)
    x = places + (xi * np.sqrt(2 * since))[:, None] * step
    inside = domain.base.contains(x)
    x[~inside] = places[~inside]
    return np.column_stack([x, domain.start + since])


def _density(
    functions: SimilarityFunctions, points: np.ndarray, uniform: int, each: int
) -> np.ndarray:
    """Points for each unit of space and time; along a kink they count as even."""
    domain = functions.domain
    share = _share(points, domain)
    density = uniform / domain.volume * share ** (1 / EARLY - 1) / EARLY
    base = domain.base
    lower, upper = base.bounding_box
    width = float(np.max(upper - lower))
    for front in functions.fronts:
        y, steep = (
            np.asarray(part)
            for part in jax.jit(jax.vmap(lambda x, f=front: f.distance(x)))(points[:, :-1])
        )
        root = np.sqrt(2 * domain.length * share)
        in_time = share ** (1 / EARLIER - 1) / EARLIER / domain.length
        # dx/dy across the kink is a length; along it the places fill about the width of the domain.
        slopes = np.asarray(jax.jit(jax.vmap(jax.grad(front.level)))(points[:, :-1]))
        unit = np.abs(steep) / np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
        across = 1 / (2 * REACH * root * unit)
        along = (width / base.volume) if base.dimension > 1 else 1.0
        here = np.abs(y) < REACH * root
        density = density + np.where(here, each * in_time * across * along, 0.0)
    return density
