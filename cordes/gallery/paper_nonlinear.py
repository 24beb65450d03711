"""The nonlinear examples of the paper, 4.5 and 4.6."""

from typing import Any

import jax.numpy as jnp

from cordes.domains import Box
from cordes.gallery.paper_linear import AXES, UNIT, manufactured
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere


def two_controls() -> HJB:
    """two controls, A jumps on the axes, smooth u; both controls fit u

    Both source terms fit the same u, so the linear equation of any policy has the solution u,
    and where x1x2 < 0 both matrices are the identity.
    """
    constant = jnp.array([[[2.0, 0.5], [0.5, 1.5]], [[1.5, 0.5], [0.5, 2.0]]])
    signed = jnp.array([[[1.0, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 1.0]]])

    def A(x, a):
        first, second = constant + jnp.sign(x[0]) * jnp.sign(x[1]) * signed
        return (2 - a) * first + (a - 1) * second

    def b(x, a):
        return jnp.array([1.0, 0.0])

    def exact(x):
        return jnp.sin(x[0]) * jnp.sin(x[1])

    square, f = Box([-jnp.pi, -jnp.pi], [jnp.pi, jnp.pi]), manufactured(A, exact, b, 1.0)
    known: dict[str, Any] = {"interfaces": AXES, "exact": exact}
    return HJB(square, [1, 2], A, f, [1.0, 0.0], 1.0, **known, name="ex4.5-hjb")


def smooth_determinant() -> MongeAmpere:
    """u = exp(|x|²/2), boundary values not zero

    Also the C² example of Froese and Oberman. D²u = e^(|x|²/2) (I + xxᵀ).
    """

    def f(x):
        square = jnp.dot(x, x)
        return (1 + square) * jnp.exp(square)

    def exact(x):
        return jnp.exp(jnp.dot(x, x) / 2)

    return MongeAmpere(UNIT, f, g=exact, exact=exact, name="ex4.6-monge-ampere")
