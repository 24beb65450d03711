"""The unit ball, of which balls and ellipsoids are affine images: points, Gauss rules and the lift
of boundary values."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import Array

from cordes.domains.boundary_fit import curve_points, fit_boundary, sample_count
from cordes.domains.checks import check_count
from cordes.domains.domain import Fit, Lift, PointFunction, constant_lift
from cordes.domains.unit_cube import cube_points, gauss_rule, tensor_rule
from cordes.errors import DomainError


def log_ball_volume(dimension: int) -> float:
    """The logarithm of the volume: the gamma function itself overflows in high dimension."""
    return dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)


def ball_volume(dimension: int) -> float:
    return math.exp(log_ball_volume(dimension))


def ball_points(count: int, dimension: int, seed: int, kind: str) -> np.ndarray:
    """Uniform points of the unit ball as images of points of a cube, so that Sobol points stay well
    spread.

    In two and three dimensions the map takes d coordinates and preserves volume; above, the
    direction comes from d normal quantiles and the radius from one coordinate more.
    """
    cube = cube_points(count, dimension if dimension <= 3 else dimension + 1, seed, kind)
    radius = np.minimum(cube[:, :1] ** (1 / dimension), 1 - 2.0**-52)
    if dimension == 2:
        directions = circle(2 * np.pi * cube[:, 1])
    elif dimension == 3:
        directions = sphere(1 - 2 * cube[:, 1], 2 * np.pi * cube[:, 2])
    else:
        directions = normalised(scipy.special.ndtri(cube[:, 1:]))
    return radius * directions


def sphere_points(count: int, dimension: int, generator: np.random.Generator) -> np.ndarray:
    """Independent uniform points of the unit sphere."""
    return normalised(generator.standard_normal((count, dimension)))


def ball_quadrature(count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Product rule of the unit disk or ball in polar coordinates, exact for polynomials of degree
    2·count − 1.

    Radius by Gauss points for the weight rᵈ⁻¹, height on the sphere by Gauss points, angle by the
    trapezoidal rule, which needs 2·count points for the same degree.
    """
    count = check_count(count)
    if dimension > 3:
        raise DomainError(
            f"There is no product rule for a ball in {dimension} dimensions: it would need about "
            f"{2 * count**dimension:.2g} points. "
            'Average over interior_points(count, kind="sobol") instead.'
        )
    turns = (np.arange(2 * count) + 0.5) / (2 * count), np.full(2 * count, 1 / (2 * count))
    if dimension == 2:
        points, weights = tensor_rule([gauss_rule(count, 1), turns])
        return points[:, :1] * circle(2 * np.pi * points[:, 1]), 2 * np.pi * weights
    points, weights = tensor_rule([gauss_rule(count, 2), gauss_rule(count), turns])
    directions = sphere(1 - 2 * points[:, 1], 2 * np.pi * points[:, 2])
    return points[:, :1] * directions, 4 * np.pi * weights


def radial_lift(
    center: np.ndarray,
    matrix: np.ndarray,
    g: PointFunction,
    interfaces: Sequence[PointFunction],
    fit: Fit | None = None,
) -> Lift:
    """The lift on {c + My: |y| < 1}: G(x) = P(x) + |y|⁴ (g − P)(c + M y/|y|), with P fitted to the
    boundary values of g.

    Where P already is g to rounding, G is as smooth as P; else the factor |y|⁴ keeps the second
    derivatives of the remainder bounded, and zero at the centre, however g turns along the
    boundary.
    """
    dimension = len(center)
    if (constant := constant_lift(g, center + matrix[:, 0])) is not None:
        return constant
    inverse = np.linalg.inv(matrix)
    count = sample_count(dimension, len(interfaces))
    if dimension == 2:
        points = curve_points(
            lambda turn: center + circle(2 * np.pi * turn) @ matrix.T,
            (np.arange(count) + 0.5) / count,
            1.0,
            interfaces,
        )
    else:
        points = center + sphere_points(count, dimension, np.random.default_rng(0)) @ matrix.T
    fitted = fit_boundary(g, points, lambda x: (x - center) @ inverse.T, interfaces, fit)

    def lift(x: Array) -> Array:
        y = jnp.asarray((x - center) @ inverse.T)
        square = y @ y
        # Below this the remainder and its first two derivatives are under 1e-30, and y/|y| would
        # lose its meaning.
        at_center = square < 1e-30
        y = jnp.where(at_center, jnp.eye(dimension)[0], y)
        square = jnp.where(at_center, 1.0, square)
        boundary_point = jnp.asarray(center) + jnp.asarray(matrix) @ (y / jnp.sqrt(square))
        # One batch of two points, because compiling the fit twice costs seconds.
        inside, outside = jax.vmap(fitted)(jnp.stack([x, boundary_point]))
        return inside + jnp.where(at_center, 0.0, square**2 * (g(boundary_point) - outside))

    return Lift(lift, fitted.fit)


def normalised(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def circle(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def sphere(height: np.ndarray, angle: np.ndarray) -> np.ndarray:
    height = height[:, None]
    return np.concatenate([np.sqrt(1 - height**2) * circle(angle), height], axis=-1)
