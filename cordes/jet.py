"""Jets: a function's value, gradient and second derivatives at many points.

Two shapes are used everywhere. `Jet` holds the full Hessian. `OperatorJet` holds A:D²u instead,
which is all that a linear equation needs and costs d + 2 columns through a network where the
Hessian costs 1 + d + d(d+1)/2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array


class Jet(NamedTuple):
    """Value (...), gradient (..., d) and Hessian (..., d, d): of JAX in a trace, else of NumPy."""

    value: Any
    gradient: Any
    hessian: Any


class OperatorJet(NamedTuple):
    """Value (...), gradient (..., d) and A:D²u (...)."""

    value: Array
    gradient: Array
    second: Array


def jet_of(function: Callable[[Array], Array]) -> Callable[[Array], Jet]:
    """The jet of a function of one point, by forward over reverse differentiation."""

    def jet(x: Array) -> Jet:
        def value_and_gradient(x):
            value, gradient = jax.value_and_grad(function)(x)
            return gradient, (value, gradient)

        hessian, (value, gradient) = jax.jacfwd(value_and_gradient, has_aux=True)(x)
        return Jet(value, gradient, hessian)

    return jet


def jets_of(functions: Callable[[Array], Array]) -> Callable[[Array], Jet]:
    """The jets of several functions of one point, (m,), at once."""
    slopes = jax.jacfwd(functions)
    return lambda x: Jet(functions(x), slopes(x), jax.jacfwd(slopes)(x))


def contract(A: Any, hessian: Any) -> Any:
    """A:D²u over leading axes."""
    return (A * hessian).sum(axis=(-2, -1))


NOTHING = Jet(0.0, 0.0, 0.0)


def product(left: Jet, right: Jet, plus: Jet = NOTHING) -> Jet:
    """The jet of a product of two functions, `plus` a third one."""
    a, b = left.value, right.value
    cross = left.gradient[..., :, None] * right.gradient[..., None, :]
    return Jet(
        plus.value + a * b,
        plus.gradient + a[..., None] * right.gradient + b[..., None] * left.gradient,
        plus.hessian
        + a[..., None, None] * right.hessian
        + b[..., None, None] * left.hessian
        + cross
        + cross.swapaxes(-1, -2),
    )


def composed(outer: tuple[Any, Any, Any], inner: Jet) -> Jet:
    """The jet of a function of another one: `outer` are its value and two derivatives there."""
    value, first, second = outer
    square = inner.gradient[..., :, None] * inner.gradient[..., None, :]
    hessian = first[..., None, None] * inner.hessian + second[..., None, None] * square
    return Jet(value, first[..., None] * inner.gradient, hessian)
