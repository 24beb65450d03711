"""Looking for discontinuities: along a path, bisect towards the largest difference and see whether
it survives.

A jump keeps its size when the interval shrinks; a steep or Hölder function does not: over eight
more decades even |t|^(1/4) loses a factor of 100. Rounding keeps its size too, so a jump must also
be large against the values on all paths: a function that is zero on one path up to rounding is no
jump.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.regularity import kink
from cordes.runtime.plain import show

# Below this share of the largest value on any path, or below this size, a difference is rounding.
ROUNDING, FLOOR = 1e-9, 1e-12
# Paths in each face on which kinks are looked for in three and more dimensions.
PATHS, SEED = 48, 17


class Jump(NamedTuple):
    """Where a function jumps and its values on the two sides."""

    point: np.ndarray
    before: np.ndarray
    after: np.ndarray


def find_jumps(
    values_at: Callable[[np.ndarray], ArrayLike],
    starts: np.ndarray,
    ends: np.ndarray,
    samples: int = 65,
) -> list[Jump]:
    """At most one jump for each straight path from starts[i] to ends[i]; `values_at` maps points
    (n, d) to (n, ...)."""
    paths = len(starts)

    def path(s: np.ndarray) -> np.ndarray:
        return starts + s[:, None] * (ends - starts)

    def evaluate(s: np.ndarray) -> np.ndarray:
        return np.asarray(values_at(path(s)), dtype=np.float64).reshape(paths, -1)

    # Step by step: a matrix at every step of every path would fill the memory in many dimensions.
    first = before = at_low = at_high = evaluate(np.zeros(paths))
    change, rise, worst = np.zeros(paths), np.full(paths, -np.inf), np.zeros(paths)
    largest = np.max(np.abs(first))
    for k, s in enumerate(np.linspace(0, 1, samples)[1:]):
        after = evaluate(np.full(paths, s))
        change = np.maximum(change, _size(after - first))
        largest = np.maximum(largest, np.max(np.abs(after)))
        step = _size(after - before)
        larger = step > rise
        rise, worst = np.where(larger, step, rise), np.where(larger, k, worst)
        at_low = np.where(larger[:, None], before, at_low)
        at_high = np.where(larger[:, None], after, at_high)
        before = after
    scale = np.maximum(change, 1e-300)
    low, high = worst / (samples - 1), (worst + 1) / (samples - 1)
    sizes = []
    for halvings in (13, 27):
        for _ in range(halvings):
            middle = (low + high) / 2
            at_middle = evaluate(middle)
            left = _size(at_middle - at_low) >= _size(at_high - at_middle)
            high, low = np.where(left, middle, high), np.where(left, low, middle)
            at_high = np.where(left[:, None], at_middle, at_high)
            at_low = np.where(left[:, None], at_low, at_middle)
        sizes.append(_size(at_high - at_low))
    coarse, fine = sizes
    survives = (fine > 0.5 * coarse) & (fine > 1e-6 * scale) & (fine > ROUNDING * largest + FLOOR)
    where = path((low + high) / 2)
    return [Jump(where[i], at_low[i], at_high[i]) for i in np.flatnonzero(survives)]


def _size(differences: np.ndarray) -> np.ndarray:
    return np.max(np.abs(differences), axis=1)


# Kinks in three and more dimensions ---------------------------------------------------------------


def kink_in_space(g: Callable[..., Any], domain: AbstractDomain) -> str | None:
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
) -> Iterator[tuple[np.ndarray, np.ndarray, Callable[..., Any]]]:
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
