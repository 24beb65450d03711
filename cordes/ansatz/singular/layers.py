"""Layers that spread from a face of the domain where the values on it do not move as the equation
moves the initial values: beside a straight face at the distance y (in the metric of A⁻¹), with ξ =
y/√(2t), the answer has the form

    N₀ + t erf(ξ/√2) N₁ + y √t φ(ξ) N₂ + y erfc(ξ/√2) N₃,      N₀, …, N₃ smooth in x and t,

for a constant mismatch t(1 - 4 i²erfc(ξ/√2)) = t erf - y² erfc + …, times the distances from the
other faces.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.singular.similarity import (
    ALONG,
    FIRST,
    Modulation,
    normal_density,
    normal_share,
)
from cordes.domains.box import Box
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.unit_cube import gauss_rule
from cordes.problems.compatibility import Face


class Layer(NamedTuple):
    """A face with the matrix that carries what happens there inside, a function of x."""

    face: Face
    matrix: Callable[[Array], Array]

    def distance(self, x: Array) -> Array:
        """y."""
        normal, offset, _ = self.face
        gap = normal @ x - offset
        points, weights = (np.asarray(part) for part in gauss_rule(ALONG))
        foot = x - gap * normal
        along = foot + points[:, None] * (x - foot)
        sizes = jnp.sqrt(jax.vmap(lambda z: normal @ self.matrix(z) @ normal)(along))
        return gap * jnp.sum(weights / sizes)


def other_faces(domain: AbstractDomain, face: Face, x: Array) -> Array:
    """The product of the distances from all faces but this one."""
    if isinstance(domain, Box):
        lower, upper = domain.lower, domain.upper
        factors = jnp.concatenate([x - lower, upper - x])
        normals = np.concatenate([np.eye(len(lower)), -np.eye(len(lower))])
    else:
        vertices, outward = domain.vertices, domain.normals  # pyright: ignore
        factors = jnp.sum((vertices - x) * outward, axis=1)
        normals = -outward
    own = int(np.argmax(normals @ face.normal))
    offsets = np.flatnonzero(np.arange(len(normals)) != own)
    return jnp.prod(factors[offsets])


def layered(domain: Cylinder, layer: Layer) -> tuple[Modulation, ...]:
    """The three factors of the networks."""
    base = domain.base

    def parts(z: Array) -> tuple[Array, Array, Array]:
        x, since = z[:-1], jnp.maximum(z[-1] - domain.start, FIRST)
        return base.distance(x), since / domain.length, layer.distance(x) / jnp.sqrt(2 * since)

    def rising(_: Any, z: Array) -> Array:
        _, time, xi = parts(z)
        return time * other_faces(base, layer.face, z[:-1]) * (2 * normal_share(xi) - 1)

    def density(_: Any, z: Array) -> Array:
        distance, time, xi = parts(z)
        return distance * jnp.sqrt(time) * normal_density(xi)

    def falling(_: Any, z: Array) -> Array:
        distance, _, xi = parts(z)
        return distance * 2 * normal_share(-xi)

    return rising, density, falling
