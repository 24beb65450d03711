"""Kinks of boundary values in three and more dimensions, which no answer can follow."""

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.regularity import kink
from cordes.problems.jumps import find_jumps
from cordes.runtime.plain import show

# Paths in each face.
PATHS, SEED = 48, 17


def kink_in_space(g: Callable, domain: AbstractDomain) -> str | None:
    """A jump of the tangential gradient of g along paths in the boundary, where the formula leaves
    room for one: there is no singular function for an edge of kinks."""
    if kink(g, domain) is None:
        return None
    slope = jax.jit(jax.vmap(jax.grad(lambda x: jnp.asarray(g(x), float))))
    normal = jax.jit(jax.vmap(jax.grad(domain.distance)))
    generator = np.random.default_rng(SEED)

    def along(points: np.ndarray) -> np.ndarray:
        slopes, n = np.asarray(slope(points)), np.asarray(normal(points))
        n = n / np.linalg.norm(n, axis=1, keepdims=True)
        return np.nan_to_num(slopes - np.sum(slopes * n, axis=1, keepdims=True) * n)

    for starts, ends, place in _paths(domain, generator):
        for jump in find_jumps(lambda s, place=place: along(place(s)), starts, ends):
            return (
                f"g has a kink at x = {show(place(jump.point[None])[0])}, and in "
                f"{domain.dimension} dimensions there are no singular functions for it"
            )
    return None


def _paths(
    domain: AbstractDomain, generator: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, Callable]]:
    """Starts and ends of paths, and the map from points on them to the boundary: in each face of a
    box by itself, since its edges are no kinks."""
    d = domain.dimension
    if not isinstance(domain, Box):
        directions = generator.standard_normal((4 * PATHS, d))
        yield directions[::2], directions[1::2], domain.boundary_at
        return
    for axis in range(d):
        for bound in (domain.lower[axis], domain.upper[axis]):
            points = domain.lower + domain.widths * generator.random((2 * PATHS, d))
            points[:, axis] = bound
            yield points[::2], points[1::2], np.asarray
