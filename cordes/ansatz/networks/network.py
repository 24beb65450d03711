"""Networks as features times coefficients, and their hand-written jets.

Every network here is a stack of hidden layers whose last output, the features, is combined
linearly. A linear differential expression

    zeroth·N + first·∇N + second:D²N        (`Frozen`: one row for each point)

is all that a solver needs of it, so it is computed in one pass through the layers. The columns (h,
∂₁h, …, ∂_dh, second:D²h) are kept as separate (points, width) arrays: one batched product over a
stacked axis was several times slower on a CPU. Under differentiation by the weights each is
multiplied by itself (`apart`); where jets are only evaluated, one long product is twice as fast
(`together`).
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from cordes.ansatz.networks.activations import activation_jet
from cordes.ansatz.networks.inputs import Inputs
from cordes.jet import Jet, OperatorJet, jet_of

# From this dimension on derivatives are kept in one array, not column by column.
MANY = 6
# Beyond this dimension Hessians come from automatic differentiation: written out, their d(d+1)/2
# columns take minutes to compile.
LARGEST_HESSIAN = 12


class Frozen(NamedTuple):
    """A linear second-order expression at N points: zeroth (N,), first (N, d), symmetric second (N,
    d, d), and the jet of the network's inputs."""

    inputs: Jet
    zeroth: Array
    first: Array
    second: Array


class Columns(NamedTuple):
    """Hidden values, their partial derivatives, and one second-order contraction, each (N,
    width)."""

    value: Array
    partial: tuple[Array, ...]
    second: Array


def quadratic(matrix: Array, partial: tuple[Array, ...]) -> Array:
    """Σ_ij matrix_ij s_i s_j for a symmetric matrix (N, d, d), without the (N, width, d, d)
    array."""
    if len(partial) >= MANY:
        # Written out for each pair, d² products take longer to compile than to compute.
        stacked = jnp.stack(partial, axis=1)
        return jnp.sum(stacked * (matrix @ stacked), axis=1)
    total = jnp.zeros_like(partial[0])
    for i, left in enumerate(partial):
        total += matrix[:, i, i, None] * left**2
        for j in range(i):
            total += 2 * matrix[:, i, j, None] * left * partial[j]
    return total


def apart(columns: list[Array], weight: Array) -> list[Array]:
    """Each column (N, m) times the weights."""
    return [column @ weight for column in columns]


def together(columns: list[Array], weight: Array) -> list[Array]:
    """The same by one product with all columns below each other."""
    return jnp.split(jnp.concatenate(columns) @ weight, len(columns))


class AbstractNetwork(eqx.Module):
    """N(x) = features(x) · coefficients."""

    inputs: eqx.AbstractVar[Inputs]
    layers: eqx.AbstractVar[Any]
    coefficients: eqx.AbstractVar[Any]
    activation: eqx.AbstractVar[str]

    @property
    @abc.abstractmethod
    def parameters(self) -> PyTree:
        """What a training solver may change."""

    def with_parameters(self, parameters: PyTree) -> "AbstractNetwork":
        return eqx.tree_at(lambda network: network.parameters, self, parameters)

    def parts(self, width: int) -> "list[AbstractNetwork]":
        """Networks with a share of the features each; a network that cannot be cut is its only
        part."""
        return [self]

    def with_coefficients(self, coefficients: Array) -> "AbstractNetwork":
        return eqx.tree_at(lambda network: network.coefficients, self, coefficients)

    def _hidden(
        self,
        inputs: Jet,
        second: Array,
        multiply: Callable[[list[Array], Array], list[Array]] = apart,
    ) -> Columns:
        """The features' columns at N points, `second` (N, d, d) contracted with their Hessians."""
        sigma = activation_jet(self.activation)
        dtype = self.coefficients.dtype
        value = inputs.value.astype(dtype)
        gradient = inputs.gradient.astype(dtype)
        second = second.astype(dtype)
        partial = tuple(gradient[:, :, i] for i in range(gradient.shape[2]))
        multiply = together if len(partial) >= MANY else multiply
        contraction = jnp.sum(second[:, None] * inputs.hessian.astype(dtype), axis=(2, 3))
        for weight, bias in self.layers:
            s, bend, *slopes = multiply([value, contraction, *partial], weight)
            function, first, curvature = sigma(s + bias)
            contraction = first * bend + curvature * quadratic(second, tuple(slopes))
            value, partial = function, tuple(first * slope for slope in slopes)
        return Columns(value, partial, contraction)

    def row_features(
        self, frozen: Frozen, multiply: Callable[[list[Array], Array], list[Array]] = apart
    ) -> Array:
        """The linear expression applied to each feature: the least-squares matrix (N, width)."""
        columns = self._hidden(frozen.inputs, frozen.second, multiply)
        dtype = columns.value.dtype
        total = frozen.zeroth.astype(dtype)[:, None] * columns.value + columns.second
        for i, partial in enumerate(columns.partial):
            total += frozen.first.astype(dtype)[:, i, None] * partial
        return total

    def rows(self, frozen: Frozen) -> Array:
        """The linear expression applied to the network, (N,). On a CPU the last layer is applied
        before the columns are combined: d + 2 narrow products."""
        if jax.default_backend() != "cpu":
            # Few long products: there each operation costs a launch and a way through the memory.
            return self.row_features(frozen, together) @ self.coefficients
        columns = self._hidden(frozen.inputs, frozen.second)
        dtype = columns.value.dtype
        total = (
            frozen.zeroth.astype(dtype) * (columns.value @ self.coefficients)
            + columns.second @ self.coefficients
        )
        for i, partial in enumerate(columns.partial):
            total += frozen.first.astype(dtype)[:, i] * (partial @ self.coefficients)
        return total

    def value(self, x: Array) -> Array:
        """N at points (N, d)."""
        sigma = activation_jet(self.activation)
        hidden = jax.vmap(lambda point: self.inputs.jet(point).value)(x)
        for weight, bias in self.layers:
            hidden = sigma(hidden @ weight + bias)[0]
        return hidden @ self.coefficients

    def operator_jet(self, x: Array, A: Array) -> OperatorJet:
        """(N, ∇N, A:D²N) at points (N, d) with matrices (N, d, d), in one pass."""
        columns = self._hidden(jax.vmap(self.inputs.jet)(x), A, together)
        gradient = jnp.stack([partial @ self.coefficients for partial in columns.partial], axis=-1)
        return OperatorJet(
            columns.value @ self.coefficients, gradient, columns.second @ self.coefficients
        )

    def jet(self, x: Array) -> Jet:
        """(N, ∇N, D²N) at points (N, d), in one pass: 1 + d + d(d+1)/2 columns."""
        if x.shape[1] > LARGEST_HESSIAN:
            return jax.vmap(jet_of(lambda point: self.value(point[None])[0]))(x)
        sigma = activation_jet(self.activation)
        # Inputs are computed in double precision; the network decides in which precision it works.
        inputs = jax.tree.map(
            lambda part: part.astype(self.coefficients.dtype), jax.vmap(self.inputs.jet)(x)
        )
        d = x.shape[1]
        pairs = [(i, j) for i in range(d) for j in range(i + 1)]
        value = inputs.value
        partial = [inputs.gradient[:, :, i] for i in range(d)]
        mixed = [inputs.hessian[:, :, i, j] for i, j in pairs]
        for weight, bias in self.layers:
            products = together([value, *partial, *mixed], weight)
            s, slopes, bends = products[0], products[1 : d + 1], products[d + 1 :]
            function, first, curvature = sigma(s + bias)
            mixed = [
                first * bend + curvature * slopes[i] * slopes[j]
                for bend, (i, j) in zip(bends, pairs, strict=True)
            ]
            value, partial = function, [first * slope for slope in slopes]
        gradient = jnp.stack([column @ self.coefficients for column in partial], axis=-1)
        hessian = jnp.zeros((len(x), d, d), gradient.dtype)
        for column, (i, j) in zip(mixed, pairs, strict=True):
            entry = column @ self.coefficients
            hessian = hessian.at[:, i, j].set(entry).at[:, j, i].set(entry)
        return Jet(value @ self.coefficients, gradient, hessian)


class AbstractHostNetwork(AbstractNetwork):
    """A network whose numbers NumPy evaluates, each point by the few parameters that it needs;
    `value` and `jet` are for traces of JAX."""

    @property
    @abc.abstractmethod
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corners of the boxes that have parameters of their own."""

    @abc.abstractmethod
    def jet_at(self, x: np.ndarray) -> Jet:
        """N, ∇N, D²N at points (N, d)."""

    def value_at(self, x: np.ndarray) -> np.ndarray:
        """N at points (N, d)."""
        return self.jet_at(x).value

    @abc.abstractmethod
    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D²N + b·∇N - cN at points, and the sum of the sizes of its terms, to which its rounding
        is proportional."""
