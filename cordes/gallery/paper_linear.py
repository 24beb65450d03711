"""The linear examples of the paper, 4.1 to 4.4. Source terms are made from the exact solution by
automatic differentiation."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.jet import contract, jet_of
from cordes.problems.linear import Linear


def manufactured(
    A: Callable[..., Any],
    exact: Callable[..., Any],
    b: Callable[..., Any] | None = None,
    c: float = 0.0,
) -> Callable[..., Array]:
    """f = A:D²u + b·∇u - cu for a known u; where A and b have controls, so has f."""

    def f(x: Array, *control: Array) -> Array:
        value, gradient, hessian = jet_of(exact)(x)
        drift = jnp.dot(b(x, *control), gradient) if b is not None else 0.0
        return contract(A(x, *control), hessian) + drift - c * value

    return f


def known(
    domain: AbstractDomain,
    A: Any,
    exact: Callable[..., Any],
    b: Any = None,
    c: float = 0.0,
    **others: Any,
) -> Linear:
    """The linear problem that a known u solves."""
    f = manufactured(A, exact, b, c)
    return Linear(domain, A, f, b, c, exact=exact, **others)


def _identity(x: Array) -> Array:
    return x


def _coordinate(i: int) -> Callable[[Array], Array]:
    return lambda x: x[i]


def _heterogeneous(x: Array) -> Array:
    """A of example 4.1: rough and strongly varying, with a cube root of a signed argument."""
    off = 0.5 * jnp.sin(10 * x[0] * x[1]) - 0.5 * jnp.sqrt(jnp.maximum(x[0] + 2, 0.0))
    return jnp.array(
        [
            [jnp.cbrt(2 * x[0] - x[1]) + 4 * jnp.exp(2 - x[0]), off],
            [off, jnp.abs(x[1] - 2 * x[0]) ** 0.25 + 3],
        ]
    )


def _radial(x: Array, base: float, slope: float) -> Array:
    """[[r + base, -r], [-r, slope·r + base]] with r = |x|, the continuous matrix of examples 4.2
    and 4.4."""
    r = jnp.linalg.norm(x)
    return jnp.array([[r + base, -r], [-r, slope * r + base]])


def _checkerboard(x: Array) -> Array:
    """[[2, s], [s, 2]], s = sign(x1 x2), the discontinuous matrix of examples 4.2 and 4.4."""
    s = jnp.sign(x[0]) * jnp.sign(x[1])
    return jnp.array([[2.0, s], [s, 2.0]])


UNIT, SQUARE = Box([0, 0], [1, 1]), Box([-1, -1], [1, 1])
AXES = (_coordinate(0), _coordinate(1))


def smooth_diffusion() -> Linear:
    """rough A, u = |x1|³cos(x2)/6, boundary values not zero"""

    def exact(x):
        return jnp.abs(x[0]) ** 3 * jnp.cos(x[1]) / 6

    square, sides = Box([-2, -2], [2, 2]), [_coordinate(0)]
    return known(square, _heterogeneous, exact, g=exact, interfaces=sides, name="ex4.1-smooth")


def singular_diffusion() -> Linear:
    """rough A on a disk, u = |x1-x2|^(8/3)"""

    def exact(x):
        return jnp.abs(x[0] - x[1]) ** (8 / 3)

    def f(x):
        # Second derivative of |t|^(8/3) written out: automatic differentiation of the power is not
        # finite at t = 0.
        A = _heterogeneous(x)
        return (40 / 9) * jnp.cbrt(x[0] - x[1]) ** 2 * (A[0, 0] - 2 * A[0, 1] + A[1, 1])

    disk, line = Ball([0, 0], 2), [lambda x: x[0] - x[1]]
    known: dict[str, Any] = {"g": exact, "interfaces": line, "exact": exact}
    return Linear(disk, _heterogeneous, f, **known, name="ex4.1-singular")


def continuous_lower_order() -> Linear:
    """continuous A, drift and reaction, smooth u"""

    def A(x):
        return _radial(x, 1.0, 5.0)

    def exact(x):
        return jnp.sin(2 * jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]) * jnp.exp(x[0] * jnp.cos(x[1]))

    return known(SQUARE, A, exact, _identity, 3.0, name="ex4.2-continuous")


def discontinuous_lower_order() -> Linear:
    """A jumps on the axes, and so does D²u"""

    def factor(t):
        return t * jnp.exp(1 - jnp.abs(t)) - t

    def exact(x):
        return factor(x[0]) * factor(x[1])

    return known(
        SQUARE, _checkerboard, exact, _identity, 3.0, interfaces=AXES, name="ex4.2-discontinuous"
    )


def ellipsoid() -> Linear:
    """three dimensions, curved boundary"""
    axes = jnp.array([1.5, 1.0, 0.8])

    def A(x):
        return 3 * jnp.eye(3) + jnp.outer(x, x)

    def exact(x):
        return (1 - jnp.sum((x / axes) ** 2)) * jnp.exp(jnp.prod(x))

    return known(Ellipsoid([0, 0, 0], [1.5, 1.0, 0.8]), A, exact, name="ex4.3-ellipsoid")


def cube() -> Linear:
    """five dimensions, A jumps on all coordinate planes"""

    def A(x):
        signs = jnp.sign(x)
        return jnp.outer(signs, signs) * (1 - jnp.eye(5)) + 5 * jnp.eye(5)

    def exact(x):
        return jnp.prod(jnp.cos(jnp.pi * x / 2)) + jnp.prod(jnp.sin(jnp.pi * x))

    planes = [_coordinate(i) for i in range(5)]
    return known(Box([-1] * 5, [1] * 5), A, exact, interfaces=planes, name="ex4.3-cube5")


def continuous_unknown() -> Linear:
    """f = 2, no exact solution: singular at the corners"""
    square = Box([-0.5, -0.5], [0.5, 0.5])
    return Linear(
        square, lambda x: _radial(x, 2.0, 3.0), 2.0, _identity, 4.0, name="ex4.4-continuous"
    )


def discontinuous_unknown() -> Linear:
    """f = 2, no exact solution: singular at corners, edges and the origin"""
    return Linear(
        SQUARE, _checkerboard, 2.0, _identity, 3.0, interfaces=AXES, name="ex4.4-discontinuous"
    )
