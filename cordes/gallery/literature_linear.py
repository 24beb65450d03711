"""Linear problems of the literature, and four in three dimensions that show what a constant
preconditioner can and cannot do.

Constants are quoted as (ε, ρ', smallest eigenvalue, largest eigenvalue) of A over the domain, ρ' =
√((d - 1)(d|A|²/(tr A)² - 1)); the Cordès condition is ρ' < 1. Source terms are made from the exact
solution by automatic differentiation. Only u is differentiated, never A, which may have cusps.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from cordes.domains import Ball, Box
from cordes.gallery.paper_linear import discontinuous_lower_order, manufactured
from cordes.problems.linear import Linear

LAYER_SLOPE = 5000.0


def smears_suli() -> Linear:
    """Smears and Süli 2013, experiment 1: (.6, .5, 1, 3). Example 4.2 of the paper with a jump,
    without its lower-order terms."""
    paper = discontinuous_lower_order()
    exact = paper.exact
    assert exact is not None
    return Linear(
        paper.domain,
        paper.A,
        manufactured(paper.A, exact),
        interfaces=paper.interfaces,
        exact=exact,
        name="smears-suli-2013",
    )


def feng_neilan_schnake() -> Linear:
    """Feng, Neilan and Schnake, test 5.1: (.557, .534, 1, 5.4). A has a cusp at the origin, u is
    smooth."""

    def A(x):
        z = jnp.dot(x, x) ** 0.25
        return jnp.array([[z + 1, -z], [-z, 5 * z + 1]])

    def exact(x):
        return (
            jnp.sin(2 * jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1]) * jnp.exp(x[0] * jnp.cos(x[1]))
        )

    return Linear(
        Box([-0.5, -0.5], [0.5, 0.5]),
        A,
        manufactured(A, exact),
        exact=exact,
        name="feng-neilan-schnake-5.1",
    )


def lakkis_pryer_cusp() -> Linear:
    """Lakkis and Pryer, test 4.1: (.8, 1/3, 1, 2). A has cusps on the axes; u is smooth, so no
    interface is declared."""

    def A(x):
        return jnp.array([[1.0, 0.0], [0.0, 1 + jnp.cbrt(jnp.square(x[0] * x[1]))]])

    def exact(x):
        return jnp.exp(-10 * jnp.dot(x, x))

    return Linear(
        Box([-1, -1], [1, 1]),
        A,
        manufactured(A, exact),
        g=exact,
        exact=exact,
        name="lakkis-pryer-4.1",
    )


def lakkis_pryer_layer() -> Linear:
    """Lakkis and Pryer, test 4.2: (.519, .562, .43, 3.57). A changes by π over a width of 1/5000 at
    |x| = 1; u is smooth, so no interface is declared."""

    def A(x):
        return jnp.array([[1.0, 0.0], [0.0, 2 + jnp.arctan(LAYER_SLOPE * (jnp.dot(x, x) - 1))]])

    def exact(x):
        return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    return Linear(
        Box([-1, -1], [1, 1]), A, manufactured(A, exact), exact=exact, name="lakkis-pryer-4.2"
    )


def weak_ellipticity() -> Linear:
    """No exact solution, (.020, .980): nearly degenerate, with a jump across the curve x2 = x1³.
    Every bound is at least fifty times its residual."""

    def curve(x):
        return x[0] ** 3 - x[1]

    def A(x):
        return jnp.array([[0.02, 0.01], [0.01, jnp.where(curve(x) > 0, 2.0, 1.0)]])

    return Linear(Box([-1, -1], [1, 1]), A, -1.0, interfaces=[curve], name="weak-ellipticity")


def _stretched(axis: Array) -> Array:
    """I + 9 nnᵀ: eigenvalue 10 along the unit vector n, 1 across. In three dimensions ε = 144/102 -
    2 < 0: not Cordès."""
    return jnp.eye(3) + 9 * jnp.outer(axis, axis)


def _bubble(x: Array) -> Array:
    """A smooth function that vanishes on the boundary of the cube (-1, 1)³."""
    return jnp.prod(jnp.cos(jnp.pi * x / 2)) * jnp.exp(x[0] * x[1] - x[2] / 2)


def _in_the_cube(A: Callable[[Array], Array], name: str) -> Linear:
    return Linear(Box([-1] * 3, [1] * 3), A, manufactured(A, _bubble), exact=_bubble, name=name)


def constant_axis() -> Linear:
    """diag(10, 1, 1) is not Cordès; with the preconditioner M = A it becomes the identity."""
    A = jnp.diag(jnp.array([10.0, 1.0, 1.0]))
    return Linear(
        Box([-1] * 3, [1] * 3),
        A,
        manufactured(lambda x: A, _bubble),
        exact=_bubble,
        name="constant-3d",
    )


def rotating_axis() -> Linear:
    """The same matrix rotating about e3, by half a turn from bottom to top; M = diag(1, 1, 11/101)
    gives ε = 222/101 - 2 = .198.

    With that M the eigenvalues are 10, 1, 101/11 at every angle.
    """

    def A(x):
        angle = jnp.pi * x[2] / 2
        return _stretched(jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0]))

    return _in_the_cube(A, "rotating-3d")


def turning_axis() -> Linear:
    """The same matrix with an axis that takes every direction (n and -n are one): no constant M
    helps.

    Let μ1 ≥ μ2 ≥ μ3 be the eigenvalues of M⁻¹. Where the axis is the first eigenvector, M^(-1/2) A
    M^(-1/2) has the eigenvalues 10μ1, μ2, μ3, and (10μ1 + μ2 + μ3)²/(100μ1² + μ2² + μ3²) is largest
    for μ1 = μ2 = μ3. So ε ≤ 144/102 - 2 and ρ' ≥ 1.5, with equality for M = I.
    """

    def A(x):
        polar, azimuth = jnp.pi * (x[0] + 1) / 4, jnp.pi * (x[1] + 1)
        return _stretched(
            jnp.array(
                [
                    jnp.sin(polar) * jnp.cos(azimuth),
                    jnp.sin(polar) * jnp.sin(azimuth),
                    jnp.cos(polar),
                ]
            )
        )

    return _in_the_cube(A, "turning-3d")


def discontinuous_axis() -> Linear:
    """The same matrix with the radial axis, which has no limit at the origin: u = |x|² - 1 solves
    it, and so does u + t(|x|^0.8 - 1) for every t.

    All of these are in H² with zero boundary values: 10(|x|^0.8)'' + 2(|x|^0.8)'/|x| = 0. So a
    residual of zero says nothing about the error, no bound may be given, and no solution is called
    exact.
    """

    def A(x):
        square = jnp.dot(x, x)
        # At the origin itself any elliptic value will do; the inner choice keeps the quotient
        # finite there.
        return jnp.eye(3) + 9 * jnp.where(
            square > 0, jnp.outer(x, x) / jnp.where(square > 0, square, 1.0), 0.0
        )

    return Linear(Ball([0, 0, 0], 1), A, 24.0, name="discontinuous-3d")


PROBLEMS: dict[str, tuple[Callable[[], Linear], str]] = {
    "smears-suli-2013": (
        smears_suli,
        "ex4.2-discontinuous without lower-order terms (Smears, Süli 2013, experiment 1)",
    ),
    "feng-neilan-schnake-5.1": (
        feng_neilan_schnake,
        "A with a cusp |x|^(1/2), smooth u (Feng, Neilan, Schnake, test 5.1)",
    ),
    "lakkis-pryer-4.1": (
        lakkis_pryer_cusp,
        "A with cusps on the axes, u = exp(-10|x|²) (Lakkis, Pryer, test 4.1)",
    ),
    "lakkis-pryer-4.2": (
        lakkis_pryer_layer,
        "A with a steep layer on the unit circle, smooth u (Lakkis, Pryer, test 4.2)",
    ),
    "weak-ellipticity": (
        weak_ellipticity,
        "f = -1, no exact solution: nearly degenerate A that jumps across x2 = x1³",
    ),
    "constant-3d": (
        constant_axis,
        "diag(10, 1, 1): not Cordès, but with a constant preconditioner",
    ),
    "rotating-3d": (
        rotating_axis,
        "the same matrix rotating about e3: Cordès with a constant preconditioner",
    ),
    "turning-3d": (
        turning_axis,
        "the same matrix with an axis in every direction: Cordès with no preconditioner",
    ),
    "discontinuous-3d": (
        discontinuous_axis,
        "the same matrix with a radial axis: solutions in H² are not unique",
    ),
}
