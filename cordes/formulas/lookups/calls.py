"""Functions of JAX that look up tables, recognised in a trace and replaced by the same function
written for it.

A call is recognised by its name and by its whole body, which is compared with what JAX makes of
the function now: another function of that name stays what it is.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.scipy.ndimage import map_coordinates

from cordes.formulas.lookups.primitives import search, smooth

Array = np.ndarray
MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def replacement(equation: Any, constants: list[Array | None]) -> Any:
    """The jaxpr of a function that equals the called one, or None."""
    known = {
        "searchsorted": _searched,
        "_interp": _interpolated,
        "_map_coordinates": _linear_map,
    }.get(equation.params.get("name", ""))
    function = None if known is None else known(equation, constants)
    if function is None:
        return None
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
    return jax.make_jaxpr(function)(*shapes)


def _same(equation: Any, function: Callable) -> bool:
    """Whether a call is that of a function of the same arguments, or what differentiation has made
    of that part of it which does not depend on tangents."""
    shapes = tuple((tuple(v.aval.shape), str(v.aval.dtype)) for v in equation.invars)
    return str(equation.params["jaxpr"]) in _texts(function, equation.params["name"], shapes)


@functools.cache
def _texts(function: Callable, name: str, shapes: tuple) -> set[str]:
    arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    found: set[str] = set()

    def collect(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            if equation.params.get("name") == name:
                found.add(str(equation.params["jaxpr"]))

    collect(jax.make_jaxpr(function)(*arguments))
    axes = {"searchsorted": (None, 0), "_interp": (0, None, None)}.get(name)
    if axes and all(shape for axis, (shape, _) in zip(axes, shapes, strict=True) if axis == 0):
        collect(jax.make_jaxpr(jax.vmap(function, axes))(*arguments))
    if name == "searchsorted":

        def product(knots: Any, query: Any) -> Any:
            return jnp.sum(query * function(knots, query))

        for made in (jax.grad(product, 1), jax.hessian(product, 1)):
            collect(jax.make_jaxpr(made)(*arguments))
    return found


def _ascending(knots: Array | None) -> bool:
    if knots is None or knots.ndim != 1 or knots.dtype != np.float64:
        return False
    return bool(np.all(np.diff(knots) > 0))


def _searched(equation: Any, constants: list[Array | None]) -> Callable | None:
    if len(constants) != 2 or not _ascending(constants[0]):
        return None
    kind = equation.outvars[0].aval.dtype
    for side in ("left", "right"):
        if any(_same(equation, _search_call(side, m)) for m in ("scan", "compare_all")):
            return lambda knots, query: search(knots, query, side).astype(kind)
    return None


@functools.cache
def _search_call(side: str, method: str) -> Callable:
    return lambda knots, query: jnp.searchsorted(knots, query, side=side, method=method)


def _interpolated(equation: Any, constants: list[Array | None]) -> Callable | None:
    """jnp.interp, with slopes in place of quotients of two entries that are looked up."""
    if len(constants) != 3 or not (_ascending(constants[1]) and _same(equation, jnp.interp)):
        return None
    if constants[2] is None:
        return None
    knots, values = (np.asarray(each, np.float64) for each in constants[1:])
    if len(knots) < 2:
        return None
    # Before the first knot and after the last one the function is constant.
    rows = np.stack(
        [
            np.concatenate([values[:1], values]),
            np.concatenate([values, values[-1:]]),
            np.concatenate([knots[:1] - 1, knots]),
            np.concatenate([[1.0], np.diff(knots), [1.0]]),
        ],
        axis=1,
    )

    def piecewise(x: Any, *_: Any) -> Any:
        place = search(jnp.asarray(knots), x)
        row = jnp.asarray(rows).at[place].get(mode="promise_in_bounds")
        first, last, start, width = jnp.moveaxis(row, -1, 0)
        value = first + (last - first) * ((x - start) / width)
        return smooth(value, x, order=0, window=jnp.stack([first, last]))

    return piecewise


def _linear_map(equation: Any, constants: list[Array | None]) -> Callable | None:
    """Linear interpolation is continuous, whatever its mode says of what lies outside; the place
    among the pixels is what it was."""
    if constants[0] is None or constants[0].dtype != np.float64:
        return None
    for mode in MODES:
        if _same(equation, _map_call(mode)):
            plain = equation.params["jaxpr"]

            def marked(table: Any, *coordinates: Any, plain: Any = plain) -> Any:
                (value,) = jaxpr_as_fun(plain)(table, *coordinates)
                return smooth(value, *coordinates, order=0)

            return marked
    return None


@functools.cache
def _map_call(mode: str) -> Callable:
    return lambda table, *coordinates: map_coordinates(table, list(coordinates), 1, mode=mode)
