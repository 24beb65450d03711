"""Domains of the plane that are not convex, with values that others have published."""

import jax.numpy as jnp
import numpy as np

from cordes.domains import Ball, Box, Polygon
from cordes.problems.linear import Linear

L_SHAPE = Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]])


def l_shape() -> Linear:
    """Δu = 0 on an L-shape, u = x₁² on its boundary (Gopal, Trefethen 2019)

    u(.99, .99) = 1.0267919261.
    """
    return Linear(L_SHAPE, np.eye(2), 0.0, g=lambda x: x[0] ** 2, name="l-shape")


def l_shape_varying() -> Linear:
    """the same with a matrix that changes: the corner has the exponent .711 and not 2/3

    u(.99, .99) = 1.01714996002 by least squares with 1744 functions, and by finite differences to
    seven digits.
    """

    def A(x):
        return jnp.array([[1 + 0.5 * jnp.sin(3 * x[0]), 0.3], [0.3, 1.0]])

    return Linear(L_SHAPE, A, 0.0, g=lambda x: x[0] ** 2, name="l-shape-varying")


def plate_with_holes() -> Linear:
    """Δu = 0 on a square with four round holes, u = 1 outside and 0 on the circles

    u(0, 0) = .2335849223108, u(.4, 0) = .6351273586249.
    """
    plate = Box([-0.5, -0.5], [0.5, 0.5])
    for x in (-0.3, 0.3):
        for y in (-0.3, 0.3):
            plate = plate - Ball([x, y], 0.1)

    def g(x):
        return jnp.where(jnp.max(jnp.abs(x)) > 0.45, 1.0, 0.0)

    return Linear(plate, np.eye(2), 0.0, g=g, name="plate-with-holes")


def slot() -> Linear:
    """Δu = 1 on a square with a slot, u = 0 on its boundary"""
    return Linear(Box([0, 0], [3, 3]) - Box([1, 1], [2, 4]), np.eye(2), 1.0, name="slot")


def star() -> Linear:
    """Δu = 1 on a five-pointed star, u = 0 on its boundary"""
    k = np.arange(10)
    angle, radius = np.pi * k / 5 + np.pi / 2, np.where(k % 2 == 0, 1.0, 0.4)
    corners = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Linear(Polygon(corners), np.eye(2), 1.0, name="star")
