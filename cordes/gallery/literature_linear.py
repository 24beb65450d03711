"""Linear problems of the literature, and four in three dimensions that show what a constant
preconditioner can and cannot do.

Constants are quoted as (ε, ρ', smallest eigenvalue, largest eigenvalue) of A over the domain, ρ' =
√((d - 1)(d|A|²/(tr A)² - 1)); the Cordès condition is ρ' < 1. Source terms are made from the exact
solution by automatic differentiation. Only u is differentiated, never A, which may have cusps.
"""

import jax.numpy as jnp
from jax import Array

from cordes.domains import Ball, Box
from cordes.gallery.paper_linear import SQUARE, discontinuous_lower_order, known, manufactured
from cordes.problems.linear import Linear

LAYER_SLOPE = 5000.0


def smears_suli() -> Linear:
    """ex4.2-discontinuous without lower-order terms (Smears, Süli 2013, experiment 1)

    (.6, .5, 1, 3).
    """
    paper = discontinuous_lower_order()
    assert paper.exact is not None
    return known(SQUARE, paper.A, paper.exact, interfaces=paper.interfaces, name="smears-suli-2013")


def feng_neilan_schnake() -> Linear:
    """A with a cusp |x|^(1/2), smooth u (Feng, Neilan, Schnake, test 5.1)

    (.557, .534, 1, 5.4).
    """

    def A(x):
        z = jnp.dot(x, x) ** 0.25
        return jnp.array([[z + 1, -z], [-z, 5 * z + 1]])

    def exact(x):
        waves = jnp.sin(2 * jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1])
        return waves * jnp.exp(x[0] * jnp.cos(x[1]))

    return known(Box([-0.5, -0.5], [0.5, 0.5]), A, exact, name="feng-neilan-schnake-5.1")


def lakkis_pryer_cusp() -> Linear:
    """A with cusps on the axes, u = exp(-10|x|²) (Lakkis, Pryer, test 4.1)

    (.8, 1/3, 1, 2). u is smooth, so no interface is declared.
    """

    def A(x):
        return jnp.array([[1.0, 0.0], [0.0, 1 + jnp.cbrt(jnp.square(x[0] * x[1]))]])

    def exact(x):
        return jnp.exp(-10 * jnp.dot(x, x))

    return known(SQUARE, A, exact, g=exact, name="lakkis-pryer-4.1")


def lakkis_pryer_layer() -> Linear:
    """A with a steep layer on the unit circle, smooth u (Lakkis, Pryer, test 4.2)

    (.519, .562, .43, 3.57). A changes by π over a width of 1/5000; no interface is declared.
    """

    def A(x):
        return jnp.array([[1.0, 0.0], [0.0, 2 + jnp.arctan(LAYER_SLOPE * (jnp.dot(x, x) - 1))]])

    def exact(x):
        return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    return known(SQUARE, A, exact, name="lakkis-pryer-4.2")


def weak_ellipticity() -> Linear:
    """f = -1, no exact solution: nearly degenerate A that jumps across x2 = x1³

    (.020, .980). Every bound is at least fifty times its residual.
    """

    def curve(x):
        return x[0] ** 3 - x[1]

    def A(x):
        return jnp.array([[0.02, 0.01], [0.01, jnp.where(curve(x) > 0, 2.0, 1.0)]])

    return Linear(SQUARE, A, -1.0, interfaces=[curve], name="weak-ellipticity")


def _stretched(axis: Array) -> Array:
    """I + 9 nnᵀ: eigenvalue 10 along the unit vector n, 1 across. In three dimensions ε = 144/102 -
    2 < 0: not Cordès."""
    return jnp.eye(3) + 9 * jnp.outer(axis, axis)


CUBE = Box([-1] * 3, [1] * 3)


def _bubble(x: Array) -> Array:
    """A smooth function that vanishes on the boundary of the cube."""
    return jnp.prod(jnp.cos(jnp.pi * x / 2)) * jnp.exp(x[0] * x[1] - x[2] / 2)


def constant_axis() -> Linear:
    """diag(10, 1, 1): not Cordès, but with a constant preconditioner

    M = A makes it the identity.
    """
    A = jnp.diag(jnp.array([10.0, 1.0, 1.0]))
    f = manufactured(lambda x: A, _bubble)
    return Linear(CUBE, A, f, exact=_bubble, name="constant-3d")


def rotating_axis() -> Linear:
    """the same matrix rotating about e3: Cordès with a constant preconditioner

    It makes half a turn from bottom to top. M = diag(1, 1, 11/101) gives the eigenvalues 10, 1,
    101/11 at every angle, and ε = 222/101 - 2 = .198.
    """

    def A(x):
        angle = jnp.pi * x[2] / 2
        return _stretched(jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0]))

    return known(CUBE, A, _bubble, name="rotating-3d")


def turning_axis() -> Linear:
    """the same matrix with an axis in every direction: Cordès with no preconditioner

    n and -n are one axis. Let μ1 ≥ μ2 ≥ μ3 be the eigenvalues of M⁻¹. Where the axis is the first
    eigenvector, M^(-1/2) A M^(-1/2) has the eigenvalues 10μ1, μ2, μ3, and (10μ1 + μ2 + μ3)²/(100μ1²
    + μ2² + μ3²) is largest for μ1 = μ2 = μ3. So ε ≤ 144/102 - 2 and ρ' ≥ 1.5, with equality for M =
    I.
    """

    def A(x):
        polar, azimuth = jnp.pi * (x[0] + 1) / 4, jnp.pi * (x[1] + 1)
        across = jnp.sin(polar)
        axis = [across * jnp.cos(azimuth), across * jnp.sin(azimuth), jnp.cos(polar)]
        return _stretched(jnp.array(axis))

    return known(CUBE, A, _bubble, name="turning-3d")


def discontinuous_axis() -> Linear:
    """the same matrix with a radial axis: solutions in H² are not unique

    The axis has no limit at the origin: u = |x|² - 1 solves it, and so does u + t(|x|^0.8 - 1) for
    every t. All of these are in H² with zero boundary values: 10(|x|^0.8)'' + 2(|x|^0.8)'/|x| = 0.
    So a residual of zero says nothing about the error, no bound may be given, and no solution is
    called exact.
    """

    def A(x):
        square = jnp.dot(x, x)
        # At the origin itself any elliptic value will do; the inner choice keeps the quotient
        # finite there.
        axes = jnp.outer(x, x) / jnp.where(square > 0, square, 1.0)
        return jnp.eye(3) + 9 * jnp.where(square > 0, axes, 0.0)

    return Linear(Ball([0, 0, 0], 1), A, 24.0, name="discontinuous-3d")
