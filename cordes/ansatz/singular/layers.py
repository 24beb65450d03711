"""Layers that spread from a face of the domain where the values on it do not move as the equation
moves the initial values: beside a straight face at the distance y (in the metric of A⁻¹), with ξ =
y/√(2t), the answer has the form

    N₀ + t erf(ξ/√2) N₁ + y √t φ(ξ) N₂ + y erfc(ξ/√2) N₃,      N₀, …, N₃ smooth in x and t,

for a constant mismatch t(1 - 4 i²erfc(ξ/√2)) = t erf - y² erfc + …
"""

from collections.abc import Callable, Sequence
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
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.unit_cube import gauss_rule
from cordes.problems.kinks.compatibility import BoundaryFace, faces_of


class FaceLayer(NamedTuple):
    """A face with the matrix that carries what happens there inside, a function of x."""

    face: BoundaryFace
    matrix: Callable[[Array], Array]

    def distance(self, x: Array) -> Array:
        """y."""
        normal, offset, _ = self.face
        gap = jnp.dot(normal, x) - offset
        points, weights = (jnp.asarray(part) for part in gauss_rule(ALONG))
        foot = x - gap * normal
        along = foot + points[:, None] * (x - foot)
        sizes = jnp.sqrt(jax.vmap(lambda z: normal @ self.matrix(z) @ normal)(along))
        return gap * jnp.sum(weights / sizes)


def layered(domain: Cylinder, layers: Sequence[FaceLayer]) -> list[Modulation]:
    """The factors of the networks. At a corner of two such faces each has the layer of the other as
    a factor."""
    if not layers:
        return []
    base = domain.base
    faces = faces_of(base)
    scale = np.array([_depth(base, face) for face in faces])
    own = [int(np.argmax([_same(face, layer.face) for face in faces])) for layer in layers]

    def parts(z: Array) -> tuple[Array, Array, Array, Array]:
        """The gaps to all faces in units of the domain, the time, ξ, and what vanishes on each
        face: its gap, or erf where there is a layer."""
        x, since = z[:-1], jnp.maximum(z[-1] - domain.start, FIRST)
        gaps = jnp.stack([face.normal @ x - face.offset for face in faces]) / scale
        xi = jnp.stack([layer.distance(x) for layer in layers]) / jnp.sqrt(2 * since)
        vanishing = gaps.at[np.array(own)].set(2 * normal_share(xi) - 1)
        return gaps, since / domain.length, xi, vanishing

    def rising(_: Any, z: Array) -> Array:
        _, time, _, vanishing = parts(z)
        return time * jnp.prod(vanishing)

    def beside(number: int) -> tuple[Modulation, Modulation]:
        face = own[number]
        others = np.flatnonzero(np.arange(len(faces)) != face)

        def density(_: Any, z: Array) -> Array:
            gaps, time, xi, vanishing = parts(z)
            rest = gaps[face] * jnp.prod(vanishing[others])
            return rest * jnp.sqrt(time) * normal_density(xi[number])

        def falling(_: Any, z: Array) -> Array:
            gaps, _, xi, vanishing = parts(z)
            return gaps[face] * jnp.prod(vanishing[others]) * 2 * normal_share(-xi[number])

        return density, falling

    return [rising, *(each for k in range(len(layers)) for each in beside(k))]


def _depth(base: AbstractDomain, face: BoundaryFace) -> float:
    """How deep the domain is behind a face."""
    low, high = base.bounding_box
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(len(low), -1).T
    return float(np.max(corners @ face.normal) - face.offset)


def _same(one: BoundaryFace, other: BoundaryFace) -> float:
    """How nearly two faces are one."""
    return float(one.normal @ other.normal) - abs(one.offset - other.offset)
