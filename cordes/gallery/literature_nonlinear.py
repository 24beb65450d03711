"""Nonlinear problems of the literature, a control problem whose policy switches along a curve, and
a Monge–Ampère equation in three dimensions."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Box
from cordes.gallery.paper_linear import SQUARE, UNIT, manufactured
from cordes.jet import Jet, jet_of
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere

ANGLES, ROTATIONS = 9, 24
# Smears and Süli: running cost of sin²θ, and the largest sin θ.
COST, LARGEST = 3**0.5 / np.pi**2, 3**0.5 / 2
RADIUS = 0.2


def _deviation(hessian: Array) -> tuple[Array, Array, Array]:
    """(p, q, Δ₀) with D²u = ½Δu I + ½[[p, q], [q, -p]] and Δ₀ = √(p² + q²), the difference of the
    eigenvalues; its derivative is 0 where it vanishes."""
    p, q = hessian[0, 0] - hessian[1, 1], 2 * hessian[0, 1]
    square = p**2 + q**2
    return p, q, jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def rotated_diffusions() -> HJB:
    """rotated diffusions, two control angles, smooth u (Smears, Süli 2014, experiment 1)

    A = ½RᵀσσᵀR, σ = [[1, sin θ], [0, cos θ]], R the rotation by φ; ε = 1/7. With s = sin θ this is
    A = ½(I + s[[cos ω, sin ω], [sin ω, -cos ω]]), ω = π/2 - θ - 2φ. In the notation of `_deviation`
    A:D²u = ½Δu + ½s(p cos ω + q sin ω), which is largest, ½Δu + ½sΔ₀, where (cos ω, sin ω) has the
    direction of (p, q). It remains to maximise ½sΔ₀ - √3s²/π² over 0 ≤ s ≤ √3/2: the derivative
    vanishes at s = π²Δ₀/(4√3).
    """

    def A(x, a):
        s, omega = jnp.sin(a[0]), jnp.pi / 2 - a[0] - 2 * a[1]
        cosine, sine = s * jnp.cos(omega), s * jnp.sin(omega)
        return 0.5 * jnp.array([[1 + cosine, sine], [sine, 1 - cosine]])

    def exact(x):
        return jnp.exp(x[0] * x[1]) * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    def best(difference):
        return jnp.minimum(LARGEST, difference / (4 * COST))

    def maximiser(x: Array, jet: Jet) -> Array:
        p, q, difference = _deviation(jet.hessian)
        theta = jnp.arcsin(best(difference))
        # Where the eigenvalues are equal θ is 0 and every rotation is as good as any other.
        omega = jnp.arctan2(q, jnp.where(difference > 0, p, 1.0))
        return jnp.array([theta, jnp.mod((jnp.pi / 2 - theta - omega) / 2, jnp.pi)])

    def f(x, a):
        value, _, hessian = jet_of(exact)(x)
        difference = _deviation(hessian)[2]
        s = best(difference)
        largest = 0.5 * jnp.trace(hessian) + 0.5 * s * difference - COST * s**2 - jnp.pi**2 * value
        return COST * jnp.sin(a[0]) ** 2 + largest

    thetas, rotations = np.linspace(0, np.pi / 3, ANGLES), np.linspace(0, np.pi, ROTATIONS + 1)
    controls = np.stack(np.meshgrid(thetas, rotations, indexing="ij"), axis=-1).reshape(-1, 2)
    known: dict[str, Any] = {"maximiser": maximiser, "exact": exact}
    return HJB(UNIT, controls, A, f, c=np.pi**2, **known, name="smears-suli-2014")


def switching_control() -> HJB:
    """cheapest exit with two regimes; the policy switches along an unknown parabola

    There are two ways to move: noise mainly along x2 and a drift upwards, or noise mainly along x1
    and a drift downwards. u = inf E∫e^(-t) ℓ^a dt solves inf_a (L^a u + ℓ^a) = 0. The running costs
    ℓ^a = s_a - L^a u are made so that the excess s_a ≥ 0 of the first control vanishes below the
    parabola ψ = 0 and that of the second above it: exactly one control is right at each point off
    the curve, u solves neither control's own linear equation, and the curve, where no datum jumps,
    has to be found. The first choice is eight times as costly where it is wrong, so that the policy
    of the averaged equation's solution is wrong on a sixth of the square.
    """
    tall, wide = jnp.diag(jnp.array([1.0, 3.0])), jnp.diag(jnp.array([3.0, 1.0]))
    upwards = jnp.array([0.0, 1.0])

    def A(x, a):
        return (1 - a) * tall + a * wide

    def b(x, a):
        return (1 - 2 * a) * upwards

    def exact(x):
        return (1 - x[0] ** 2) * (1 - x[1] ** 2) * jnp.exp(x[0] / 2)

    def excess(x, a):
        psi = 2 * (x[1] + x[0] ** 2) - 0.5
        return 8 * (1 - a) * jnp.maximum(psi, 0.0) + a * jnp.maximum(-psi, 0.0)

    def f(x, a):
        return known(x, a) - excess(x, a)

    known = manufactured(A, exact, b, 1.0)
    return HJB(SQUARE, [0, 1], A, f, b, 1.0, sense="inf", exact=exact, name="switching-control")


def degenerate_disk() -> MongeAmpere:
    """f = 0 in a disk, D²u jumps on its boundary (Froese, Oberman, C¹ example)

    The radial second derivative goes from 0 to 1 there.
    """
    center = jnp.array([0.5, 0.5])

    def square(x):
        return jnp.dot(x - center, x - center)

    def distance(x):
        # Positive at the centre too, where all that is needed is that it is below the radius.
        return jnp.sqrt(jnp.maximum(square(x), RADIUS**2 / 4))

    def f(x):
        return jnp.maximum(1 - RADIUS / distance(x), 0.0)

    def exact(x):
        return 0.5 * jnp.maximum(distance(x) - RADIUS, 0.0) ** 2

    rim = [lambda x: square(x) - RADIUS**2]
    return MongeAmpere(UNIT, f, g=exact, interfaces=rim, exact=exact, name="froese-oberman-c1")


def logarithm_of_exponentials() -> MongeAmpere:
    """three dimensions, u = log(1 + Σ exp(xi)): the cofactors are not Cordès

    With the shares p_i = e^xi/(1 + Σe^xk), p_0 = 1/(1 + Σe^xk)
    D²u = diag(p) - ppᵀ and det D²u = p_0p_1p_2p_3.

    On the diagonal x1 = x2 = x3 = t D²u has the eigenvalues p, p and p/(1 + 3eᵗ), so one eigenvalue
    of the cofactor matrix is 1 + 3eᵗ times the two others. Four times is the limit of the Cordès
    condition. It is reached at the origin and exceeded at all other points: the theory of the
    linear equation does not cover Newton's steps here.
    """

    def f(x):
        return jnp.exp(jnp.sum(x)) / (1 + jnp.sum(jnp.exp(x))) ** 4

    def exact(x):
        return jnp.log(1 + jnp.sum(jnp.exp(x)))

    return MongeAmpere(Box([0] * 3, [1] * 3), f, g=exact, exact=exact, name="monge-ampere-3d")
