"""Two operations of our own, which a trace understands better than what they are made of."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# The place of a number among ascending knots, and a value of which more is known than its formula
# says.
search_p, smooth_p = Primitive("search"), Primitive("smooth")


def search(knots: Array, query: Array, side: str = "right", even: bool = False) -> Array:
    """As `jnp.searchsorted`; `even` knots have one distance up to rounding, which makes it
    cheaper (on the right side)."""
    return search_p.bind(knots, query, side=side, even=even)


def smooth(value: Array, *arguments: Array, order: int, window: Array | None = None) -> Array:
    """The value, known to be a function of the arguments (and constants) that is `order` times
    continuously differentiable, its last derivative Lipschitz; and, where there is a `window`, to
    lie between the least and the largest of the numbers along its first axis."""
    between = () if window is None else (window,)
    return smooth_p.bind(value, *between, *arguments, order=order, between=window is not None)


def _search(knots: Array, query: Array, side: str, even: bool) -> Array:
    if not even:
        return jnp.searchsorted(knots, query, side=side).astype(jnp.int32)
    last = knots.shape[0] - 1
    guess = jnp.floor((query - knots[0]) * (last / (knots[-1] - knots[0])))
    guess = jnp.clip(jnp.nan_to_num(guess), 0, last - 1).astype(jnp.int32)
    # Rounding may have moved the guess by one.
    above = jnp.where(query >= knots[guess + 1], 2, 1)
    return guess + jnp.where(query >= knots[guess], above, 0).astype(jnp.int32)


def _batch_search(values: Any, axes: Any, **parameters: Any) -> Any:
    if isinstance(axes[0], int):
        raise NotImplementedError("knots that differ from point to point")
    return search_p.bind(*values, **parameters), axes[1]


def _no_slope(primals: Any, tangents: Any, **parameters: Any) -> Any:
    place = search_p.bind(*primals, **parameters)
    return place, ad.Zero(jax.typeof(place).to_tangent_aval())


search_p.def_impl(jax.jit(_search, static_argnames=("side", "even")))
search_p.def_abstract_eval(lambda knots, query, **_: ShapedArray(query.shape, np.dtype(np.int32)))
ad.primitive_jvps[search_p] = _no_slope
batching.primitive_batchers[search_p] = _batch_search
mlir.register_lowering(search_p, mlir.lower_fun(_search, multiple_results=False))


def _differentiate(primals: Any, tangents: Any, **parameters: Any) -> Any:
    """Of the derivative nothing is said."""
    return smooth_p.bind(*primals, **parameters), tangents[0]


smooth_p.def_impl(lambda value, *_, **__: value)
smooth_p.def_abstract_eval(lambda value, *_, **__: value)
ad.primitive_jvps[smooth_p] = _differentiate
batching.primitive_batchers[smooth_p] = lambda values, axes, **parameters: (
    smooth_p.bind(*values, **parameters),
    axes[0],
)
mlir.register_lowering(smooth_p, lambda context, value, *_, **__: [value])
