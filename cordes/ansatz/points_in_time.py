"""Collocation points in space and time where initial values have kinks, or where layers spread from
the sides: over the whole cylinder denser towards the ends of time, and around each kink and face on
the scale √t of what has been smoothed."""

from typing import Any

import jax
import numpy as np
from scipy.stats import qmc

from cordes.ansatz.points import Points
from cordes.ansatz.singular.layers import FaceLayer
from cordes.ansatz.singular.similarity import Front, SimilarityFunctions
from cordes.domains.cylinder import Cylinder

# t = T u^p for points around a kink.
EARLIER = 3.0
# How far from a kink points lie, in standard deviations of what has been smoothed.
REACH = 6.0


def points_in_time(functions: SimilarityFunctions, uniform: int, around: int, seed: int) -> Points:
    """`uniform` points of the cylinder and `around` of the kinks and layers together; the weights
    are those of a mean square over the cylinder as far as the density of the points is known."""
    domain, fronts, layers = functions.domain, functions.fronts, functions.layers
    x = domain.interior_points(uniform, seed, "sobol")
    # Denser at both ends of time: at the start things happen, at the end nothing holds features.
    x[:, -1] = domain.start + domain.length * (1 - np.cos(np.pi * _share(x, domain))) / 2
    each = -(-around // max(len(fronts) + len(layers), 1))
    parts = [_around(domain, front, each, seed + 17 * k) for k, front in enumerate(fronts)]
    parts += [_beside(domain, layer, each, seed + 1000 + 17 * k) for k, layer in enumerate(layers)]
    points = np.concatenate([x, *parts])
    return Points(points, np.sqrt(1 / (domain.volume * _density(functions, points, uniform, each))))


def _share(x: np.ndarray, domain: Cylinder) -> np.ndarray:
    return np.clip((x[:, -1] - domain.start) / domain.length, 1e-14, 1.0)


def _sobol(count: int, dimension: int, seed: int) -> np.ndarray:
    sampler = qmc.Sobol(dimension, rng=np.random.default_rng(seed))
    return sampler.random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]


def _around(domain: Cylinder, front: Front, count: int, seed: int) -> np.ndarray:
    """Points whose ξ is even, at times T u^p, above places of the kink."""
    u = _sobol(count, 3, seed)
    since = domain.length * np.maximum(u[:, 0], 1e-6) ** EARLIER
    places = front.kink.places[(u[:, 1] * len(front.kink.places)).astype(int)]
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(front.level)))(places))
    xi = REACH * (2 * u[:, 2] - 1)
    return _moved(domain, front.matrix, places, slopes, xi, since)


def _beside(domain: Cylinder, layer: FaceLayer, count: int, seed: int) -> np.ndarray:
    """The same inside of a face."""
    d = domain.base.dimension
    u = _sobol(count, d + 2, seed)
    since = domain.length * np.maximum(u[:, 0], 1e-6) ** EARLIER
    normal, offset, _ = layer.face
    x = domain.base.interior_points(count, seed, "sobol")
    places = x - (x @ normal - offset)[:, None] * normal
    slopes = np.broadcast_to(normal, places.shape)
    return _moved(domain, layer.matrix, places, slopes, REACH * u[:, 1], since)


def _moved(
    domain: Cylinder,
    matrix: Any,
    places: np.ndarray,
    slopes: np.ndarray,
    xi: np.ndarray,
    since: np.ndarray,
) -> np.ndarray:
    """Points at ξ from places, across a set with these slopes; those that leave the domain stay."""
    A = np.asarray(jax.jit(jax.vmap(matrix))(places))
    along = np.einsum("nij,nj->ni", A, slopes)
    # One unit of y along A times the slope of the level.
    step = along / np.sqrt(np.einsum("ni,ni->n", along, slopes))[:, None]
    x = places + (xi * np.sqrt(2 * since))[:, None] * step
    inside = domain.base.contains(x)
    x[~inside] = places[~inside] + 1e-6 * (domain.base.center - places[~inside])
    return np.column_stack([x, domain.start + since])


def _density(
    functions: SimilarityFunctions, points: np.ndarray, uniform: int, each: int
) -> np.ndarray:
    """Points for each unit of space and time; along a kink or a face they count as even."""
    domain = functions.domain
    share = _share(points, domain)
    ends = np.sqrt(np.maximum(share * (1 - share), 1e-14))
    density = uniform / domain.volume / (np.pi * ends)
    base = domain.base
    lower, upper = base.bounding_box
    width = float(np.max(upper - lower))
    root = np.sqrt(2 * domain.length * share)
    in_time = share ** (1 / EARLIER - 1) / EARLIER / domain.length
    along = (width / base.volume) if base.dimension > 1 else 1.0

    def add(y: np.ndarray, unit: np.ndarray, reach: float) -> np.ndarray:
        # dx/dy across is a length; along it the places fill about the width of the domain.
        across = 1 / (reach * root * unit)
        return np.where(np.abs(y) < REACH * root, each * in_time * across * along, 0.0)

    for front in functions.fronts:
        y, steep = (
            np.asarray(part)
            for part in jax.jit(jax.vmap(lambda x, f=front: f.distance(x)))(points[:, :-1])
        )
        slopes = np.asarray(jax.jit(jax.vmap(jax.grad(front.level)))(points[:, :-1]))
        unit = np.abs(steep) / np.maximum(np.linalg.norm(slopes, axis=1), 1e-300)
        density = density + add(y, unit, 2 * REACH)
    for layer in functions.layers:
        normal = layer.face.normal
        y = np.asarray(jax.jit(jax.vmap(layer.distance))(points[:, :-1]))
        A = np.asarray(jax.jit(jax.vmap(layer.matrix))(points[:, :-1]))
        unit = np.sqrt(np.einsum("i,nij,j->n", normal, A, normal))
        density = density + add(y, unit, REACH)
    return density
