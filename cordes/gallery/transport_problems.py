"""Optimal transport: the square of the paper (5.1, from Benamou, Froese, Oberman 2014) and maps
that are known or have a known difficulty."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.jet import jet_of
from cordes.problems.transport import Transport


def manufactured(
    potential: Callable[[Array], Array], target: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """μ = ν(∇u) det D²u for a known u: the source that ∇u carries to ν."""

    def source(x: Array) -> Array:
        _, gradient, hessian = jet_of(potential)(x)
        return target(gradient) * jnp.linalg.det(hessian)

    return source


def _wave(z: Array) -> Array:
    """q of the paper; q' = (z² - 1/4) sin 8πz vanishes at the ends."""
    cosine = -(z**2) / (8 * jnp.pi) + 1 / (256 * jnp.pi**3) + 1 / (32 * jnp.pi)
    return cosine * jnp.cos(8 * jnp.pi * z) + z / (32 * jnp.pi**2) * jnp.sin(8 * jnp.pi * z)


def square() -> Transport:
    """square to itself, uniform target (paper, 5.1; Benamou, Froese, Oberman 2014)

    f has its minimum at the centre and lies between 0.56 and 1.53; the map moves points by at
    most 0.0099.
    """
    first = jax.grad(_wave)
    second = jax.grad(first)

    def source(x):
        (q, r), (q1, r1), (q2, r2) = (
            (function(x[0]), function(x[1])) for function in (_wave, first, second)
        )
        return 1 + 4 * (q2 * r + q * r2) + 16 * (q * r * q2 * r2 - q1**2 * r1**2)

    def exact(x):
        return jnp.stack(
            [x[0] + 4 * first(x[0]) * _wave(x[1]), x[1] + 4 * _wave(x[0]) * first(x[1])]
        )

    return Transport(Box([-0.5, -0.5], [0.5, 0.5]), source, exact=exact, name="ex5.1-square")


def _ellipses() -> tuple[Ellipsoid, Ellipsoid, np.ndarray]:
    """Two ellipses that are turned against each other, and the linear map between them: symmetric
    and positive definite."""

    def turned(angle: float, axes: list[float]) -> np.ndarray:
        cosine, sine = np.cos(angle), np.sin(angle)
        return np.array([[cosine, -sine], [sine, cosine]]) @ np.diag(axes)

    def root(matrix: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * np.sqrt(values)) @ vectors.T

    first, second = turned(0.4, [1.5, 0.8]), turned(-0.3, [1.0, 1.6])
    half = root(first @ first.T)
    back = np.linalg.inv(half)
    matrix = back @ root(half @ second @ second.T @ half) @ back
    return Ellipsoid([0, 0], first), Ellipsoid([0.5, -0.2], second), matrix


def ellipses() -> Transport:
    """between two turned ellipses, both uniform: a linear map"""
    source, target, matrix = _ellipses()
    shift = jnp.asarray(target.center)

    def exact(x):
        return jnp.asarray(matrix) @ x + shift

    return Transport(source, 1.0, target, exact=exact, name="transport-ellipses")


def nonuniform_ellipses() -> Transport:
    """the same with a Gaussian bell as target

    The same linear map carries μ(x) = ν(Mx + m) det M to ν, the bell off the centre.
    """
    domain, target, matrix = _ellipses()
    shift, size = jnp.asarray(target.center), float(np.linalg.det(matrix))

    def exact(x):
        return matrix @ x + shift

    def bell(y):
        return jnp.exp(-0.5 * jnp.sum((y - jnp.array([0.3, 0.1])) ** 2))

    def source(x):
        return size * bell(exact(x))

    name = "transport-ellipses-nonuniform"
    return Transport(domain, source, target, bell, exact=exact, name=name)


def disk_to_pentagon() -> Transport:
    """from a disk to a pentagon, both uniform; no closed form

    D²u is bounded but not continuous at the five points that go to the corners.
    """
    pentagon = Polygon([[1.0, 0.0], [0.3, 0.95], [-0.8, 0.6], [-0.8, -0.6], [0.3, -0.95]])
    return Transport(Ball([0, 0], 1), 1.0, pentagon, name="transport-disk-to-pentagon")


def _with_potential(
    potential: Callable[..., Any], source: Box, target: Box, density: Callable[..., Any], name: str
) -> Transport:
    f = manufactured(potential, density)
    return Transport(source, f, target, density, exact=jax.grad(potential), name=name)


def box() -> Transport:
    """from a box to a wider one, wavy target, known potential"""

    def potential(x):
        waves = 0.03 * jnp.cos(jnp.pi * x[0]) * jnp.cos(jnp.pi * x[1] / 2)
        return x[0] ** 2 - x[0] + x[1] ** 2 / 4 + waves

    def wavy(y):
        return 1 + 0.5 * jnp.sin(2 * y[0] + y[1])

    source, target = Box([0, 0], [1, 2]), Box([-1, 0], [1, 1])
    return _with_potential(potential, source, target, wavy, "transport-box")


def box_3d() -> Transport:
    """the unit cube in three dimensions, wavy target, known potential"""

    def potential(x):
        waves = jnp.cos(jnp.pi * x)
        high = 0.02 * jnp.cos(2 * jnp.pi * x[0]) * waves[1]
        return jnp.sum(x**2) / 2 + 0.02 * jnp.prod(waves) + high

    def wavy(y):
        return 1 + 0.3 * jnp.sin(2 * y[0] + y[1] - y[2])

    cube = Box([0, 0, 0], [1, 1, 1])
    return _with_potential(potential, cube, cube, wavy, "transport-box-3d")


def folded_surface_density() -> Transport:
    """conformal factor of a folded surface to the uniform density (as in the paper, 5.2)

    What `cordes surface folded` does in its first pass; the surface is made in code.
    """
    from cordes.surfaces.conformal import rectangle_map
    from cordes.surfaces.density import grid_density, surface_density
    from cordes.surfaces.folded import folded_surface
    from cordes.surfaces.topology import prepare

    disk = prepare(folded_surface())
    flat = rectangle_map(disk)
    assert flat.size is not None
    values = surface_density(disk, flat.uv, flat.size, 64, 1.5)
    density = grid_density(values, np.zeros(2), flat.size)
    return Transport(Box(np.zeros(2), flat.size), density, normalise=True, name="ex5.2-surface")
