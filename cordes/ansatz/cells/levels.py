"""Functions that vanish on the pieces of a boundary and are positive inside: what polynomials of
cells at the boundary are multiplied with."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.cells.jets import as_rows
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.domain import AbstractDomain
from cordes.jet import jet_of
from cordes.runtime.blocks import in_blocks


@dataclasses.dataclass(frozen=True, eq=False)
class Level:
    """offset + slope·x + x·bend·x/2, or any function of one point."""

    offset: float
    slope: np.ndarray
    bend: np.ndarray | None = None
    function: Callable | None = None

    def __call__(self, x: Any) -> Any:
        """At one point of JAX."""
        if self.function is not None:
            return self.function(x)
        total = self.offset + jnp.asarray(self.slope) @ x
        return total if self.bend is None else total + x @ jnp.asarray(self.bend) @ x / 2

    def bounds(self, place: Any) -> bool:
        """Whether something of a box lies outside, beyond rounding."""
        corners = np.array(np.meshgrid(*zip(place.lower, place.upper, strict=True))).reshape(
            len(place.lower), -1
        )
        values = self.rows(corners.T)[0]
        return bool(np.min(values) < -1e-9 * max(float(np.max(np.abs(values))), 1e-300))

    def rows(self, x: np.ndarray) -> np.ndarray:
        """The value and the derivatives at points (N, d)."""
        if self.function is not None:
            return as_rows(in_blocks(_compiled(self.function), (x,)))
        d = x.shape[1]
        found = np.zeros((1 + d + d * (d + 1) // 2, len(x)))
        found[0], found[1 : 1 + d] = self.offset + x @ self.slope, self.slope[:, None]
        if self.bend is not None:
            turned = x @ self.bend
            found[0] += np.sum(turned * x, axis=1) / 2
            found[1 : 1 + d] += turned.T
            upper = np.triu_indices(d)
            found[1 + d :] = self.bend[upper][:, None]
        return found


@functools.lru_cache(maxsize=64)
def _compiled(function: Callable) -> Callable:
    return jax.jit(jax.vmap(jet_of(lambda x: jnp.asarray(function(x), float))))


def levels_of(domain: AbstractDomain) -> tuple[Level, ...]:
    """One for each smooth piece of the boundary: of a box its lower and upper sides by turns."""
    match domain:
        case Box():
            ends = zip(domain.lower, domain.upper, strict=True)
            unit = np.eye(domain.dimension)
            return tuple(
                Level(-sign * float(end), sign * unit[axis])
                for axis, pair in enumerate(ends)
                for sign, end in zip((1.0, -1.0), pair, strict=True)
            )
        case Polygon():
            sides = zip(domain.vertices, domain.normals, strict=True)
            return tuple(Level(float(normal @ start), -normal) for start, normal in sides)
        case Ball() | Ellipsoid():
            inverse = np.linalg.inv(domain.matrix)
            square, center = inverse.T @ inverse, domain.center
            offset = 1.0 - float(center @ square @ center)
            return (Level(offset, 2 * square @ center, -2 * square),)
    return (Level(0.0, np.zeros(domain.dimension), None, domain.distance),)
