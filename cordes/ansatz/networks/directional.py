"""Linear expressions of a network in many dimensions: one array for all derivatives, and no d×d
work where A is diagonal plus low rank.

Beside the values h of a layer, d derivatives s_k along the coordinates and one second-order column
z = A:D²h + p·∇h are carried through the layers; the first-order part of z costs nothing more,
because it obeys the chain rule as the rest does:

    h ↦ σ(hW + β):    s_k ↦ σ' s_kW,    z ↦ σ' zW + σ'' Σ_kl A_kl (s_kW)(s_lW).

Every layer is one product over all d + 2 columns, and the first one needs none for the s_k, which
are the rows of its weights. As is then formed once for each layer: at d² products for a full A, at
d(1 + 2r) for a diagonal one plus r columns, and it serves the derivatives by the weights too.
Random directions v with E vvᵀ = A in place of the coordinates, and Σ (v·∇)² in place of A:D², give
Hutchinson's estimator, for which nothing of A is left inside.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks.activations import activation_jet
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.jet import Jet, contract, jet_of
from cordes.runtime.blocks import in_blocks

BLOCK = 512


class Factored(NamedTuple):
    """The matrix diag(diagonal) + columns·columnsᵀ."""

    diagonal: Array
    columns: Array


Metric = Array | Factored | None


class Directional(NamedTuple):
    """A linear expression zeroth·N + p·∇N + A:D²N at one point (or, with leading axes, at many):
    the inputs of the network (m,), p·∇ + A:D² of them (m,), their derivatives (r, m) along r
    directions, and A in these directions. `slopes` is None for scaled coordinates, `metric` is None
    for the identity."""

    value: Array
    second: Array
    slopes: Array | None
    metric: Metric
    zeroth: Array


def times(metric: Metric, s: Array) -> Array:
    """A s for columns s (r, width)."""
    if metric is None:
        return s
    if isinstance(metric, Factored):
        return metric.diagonal[:, None] * s + metric.columns @ (metric.columns.T @ s)
    return metric @ s


@jax.custom_vjp
def quadratic(metric: Metric, s: Array) -> Array:
    """Σ_kl A_kl s_k s_l for each column of s (r, width). Its derivative 2As is known already: A is
    symmetric, and never differentiated."""
    return jnp.sum(s * times(metric, s), axis=0)


def _forward(metric: Metric, s: Array) -> tuple[Array, tuple[Metric, Array]]:
    product = times(metric, s)
    return jnp.sum(s * product, axis=0), (metric, product)


def _backward(kept: tuple[Metric, Array], cotangent: Array) -> tuple[Metric, Array]:
    metric, product = kept
    return jax.tree.map(jnp.zeros_like, metric), 2 * cotangent * product


quadratic.defvjp(_forward, _backward)


def expression(
    ansatz: Any,
    x: Array,
    A: Array,
    b: Array,
    c: Array,
    f: Array,
    parts: Factored | None = None,
    directions: Array | None = None,
) -> tuple[Directional, Array]:
    """A:D²u + b·∇u - cu = f at one point for u = G + D·N, as columns for N and a target. `parts` is
    A in factors, where these are known; `directions` (d, r) are random ones with E vvᵀ = A in each
    column, over √r."""

    def applied(jet: Jet) -> Array:
        return contract(A, jet.hessian) + jnp.dot(b, jet.gradient) - c * jet.value

    D, slope, bend = jet_of(ansatz.distance)(x)
    zeroth, target = applied(Jet(D, slope, bend)), f - applied(jet_of(ansatz.lift)(x))
    first, inputs = 2 * A @ slope + D * b, ansatz.inputs
    root = jnp.sqrt(jnp.maximum(D, 0.0))
    slopes, metric = None, D * A
    if directions is not None:
        slopes, metric = root * directions.T, None
    elif parts is not None:
        metric = Factored(D * parts.diagonal, root * parts.columns)
    if not inputs.interfaces and inputs.coordinates is None:
        # Scaled coordinates have no second derivatives, whose zeros alone would be d³ numbers.
        scale = jnp.asarray(inputs.scale)
        value, second = (x - inputs.center) / scale, first / scale
        slopes = None if slopes is None else slopes / scale
    else:
        value, gradient, hessian = inputs.jet(x)
        second = gradient @ first + D * jnp.einsum("ij,mij->m", A, hessian)
        slopes = gradient.T if slopes is None else slopes @ gradient.T
    return Directional(value, second, slopes, metric, zeroth), target


def hidden_columns(network: AbstractNetwork, columns: Directional) -> Array:
    """The expression of each feature at one point, (width,)."""
    sigma = activation_jet(network.activation)
    dtype = network.coefficients.dtype
    columns = jax.tree.map(lambda part: part.astype(dtype), columns)
    low, slopes = jnp.stack([columns.value, columns.second]), columns.slopes
    for k, (weight, bias) in enumerate(network.layers):
        low = low @ weight
        slopes = (
            weight / jnp.asarray(network.inputs.scale, dtype)[:, None]
            if k == 0 and slopes is None
            else slopes @ weight
        )
        function, first, curvature = sigma(low[0] + bias)
        low = jnp.stack([function, first * low[1] + curvature * quadratic(columns.metric, slopes)])
        slopes = first * slopes
    return columns.zeroth * low[0] + low[1]


def directional_features(network: AbstractNetwork, columns: Directional) -> Array:
    """The least-squares matrix (N, width) at N points."""
    return jax.vmap(lambda one: hidden_columns(network, one))(columns)


def directional_rows(network: AbstractNetwork, columns: Directional) -> Array:
    """The expression of the network at N points."""
    return directional_features(network, columns) @ network.coefficients


@functools.lru_cache(maxsize=8)
def _compiled(ansatz: Any) -> Callable:
    """A compiled function of a network and blocks of points, one for each ansatz."""

    def operator(network: AbstractNetwork, *block: Array) -> tuple[Array, Array]:
        columns, target = jax.vmap(lambda *one: expression(ansatz, *one, f=jnp.zeros(())))(*block)
        terms = directional_features(network, columns) * network.coefficients
        # The target is minus the part of the lift.
        return jnp.sum(terms, axis=1) - target, jnp.sum(jnp.abs(terms), axis=1) + jnp.abs(target)

    return jax.jit(operator)


def apply_operator(
    ansatz: Any,
    network: AbstractNetwork,
    x: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """A:D²u + b·∇u - cu at points (N, d) for matrices (N, d, d), and the sum of the sizes of its
    terms."""
    operator = _compiled(ansatz)
    return in_blocks(lambda *block: operator(network, *block), (x, A, b, c), BLOCK)
