"""Singular functions inside of a trace of JAX, with two derivatives.

They are written with NumPy, and are called back from the compiled program. What JAX itself has to
compute for them, the jets of curves, is computed in the trace and handed over: a call that waits
for JAX inside of JAX could wait forever.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.singular.functions import SingularFunctions
from cordes.ansatz.singular.similarity import SimilarityFunctions
from cordes.errors import OptionError
from cordes.jet import Jet


class Combination(NamedTuple):
    """Σ amplitude·S as functions of points (N, 2): value (N,), gradient (N, 2), Hessian
    (N, 2, 2)."""

    value: Callable[[Any], Array]
    gradient: Callable[[Any], Array]
    hessian: Callable[[Any], Array]

    def jet(self, x: Any) -> Jet:
        return Jet(self.value(x), self.gradient(x), self.hessian(x))


def combination(functions: SingularFunctions | SimilarityFunctions, amplitudes: Any) -> Combination:
    """The value has the gradient as its derivative, that has the Hessian, and this has none. Those
    of kinks in initial values are functions of JAX."""
    if isinstance(functions, SimilarityFunctions):
        return Combination(
            lambda x: functions.value(x, amplitudes),
            lambda x: functions.jet(x, amplitudes).gradient,
            lambda x: functions.jet(x, amplitudes).hessian,
        )
    weights = np.asarray(amplitudes)

    def differentiable(host: Callable, shape: tuple[int, ...], derivative: Callable) -> Callable:
        """A function of points, called back, whose derivative along dx is known."""
        function = jax.custom_jvp(lambda x: _called(functions, host, x, shape))

        @function.defjvp
        def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
            return function(*primals), derivative(*primals, *tangents)

        return function

    def third(x: Array, dx: Array) -> Array:
        raise OptionError(
            "The singular functions of the answer have two derivatives, and a third one was asked "
            "for: use at most the Hessian, or solve with singular=False."
        )

    hessian = differentiable(
        lambda x, seen: functions.combined_jet(x, weights, seen).hessian, (2, 2), third
    )
    gradient = differentiable(
        lambda x, seen: functions.combined_jet(x, weights, seen).gradient,
        (2,),
        lambda x, dx: jnp.einsum("nij,nj->ni", hessian(x), dx),
    )
    value = differentiable(
        lambda x, seen: functions.values(x, seen) @ weights,
        (),
        lambda x, dx: jnp.sum(gradient(x) * dx, axis=-1),
    )
    return Combination(value, gradient, hessian)


def _called(
    functions: SingularFunctions, host: Callable, x: Array, shape: tuple[int, ...]
) -> Array:
    """A function of points and what JAX sees there, computed by NumPy, of this shape at a point."""

    def at_points(x: Any, seen: Any) -> np.ndarray:
        x, axes = np.asarray(x), np.ndim(x) - 1
        batch = x.shape[:-1]
        flat = jax.tree.map(lambda part: np.asarray(part).reshape(-1, *part.shape[axes:]), seen)
        return np.asarray(host(x.reshape(-1, 2), flat)).reshape(*batch, *shape)

    kind = jax.ShapeDtypeStruct((*x.shape[:-1], *shape), x.dtype)
    seen = functions.seen(x)  # pyright: ignore
    return jax.pure_callback(  # pyright: ignore
        at_points, kind, x, seen, vmap_method="broadcast_all"
    )
