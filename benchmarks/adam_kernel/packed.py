"""The sum of squares of a network's rows in two dimensions, with its gradient written by hand: few,
long operations for a GPU.

The parameters are one matrix of rows as wide as a layer (`matrix_of`): the first weights, their
bias, then weights and bias of every further layer, and the coefficients. What a row needs of its
point is one column of a table (`table_of`). In each layer the four columns (value, second:D², ∂₁,
∂₂) of all points lie below each other, so that a layer is one product and one pass over the numbers
in each direction. `fused.py` does the same for a block of points at a time.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from cordes.ansatz.networks.activations import activation_jet
from cordes.ansatz.networks.network import AbstractNetwork, Frozen

# Value, contraction of the second derivatives, two first derivatives.
COLUMNS = 4
# What a point has besides its inputs: zeroth, two first, three second coefficients, target.
COEFFICIENTS = 7

Columns = tuple[Array, ...]


class Shape(NamedTuple):
    """What the rows of a parameter matrix mean."""

    inputs: int
    width: int
    depth: int
    activation: str

    @property
    def rows(self) -> int:
        return self.inputs + 1 + (self.depth - 1) * (self.width + 1) + 1

    def weight(self, layer: Any) -> Any:
        """The first row of a layer's weights, `layer` ≥ 1; its bias follows them."""
        return self.inputs + 1 + (layer - 1) * (self.width + 1)


class Points(NamedTuple):
    """What the rows need at some points: the four columns of each input, and the linear expression
    with its target, each (points, 1)."""

    inputs: tuple[Columns, ...]
    zeroth: Array
    first: Columns
    second: Columns
    target: Array


def shape_of(network: AbstractNetwork) -> Shape:
    inputs, width = network.layers[0][0].shape
    return Shape(inputs, width, len(network.layers), network.activation)


def matrix_of(network: AbstractNetwork) -> Array:
    """All parameters as one matrix, in the order in which they are raveled: a compiler sees that
    nothing is moved."""
    parts = [
        part.reshape(-1, network.coefficients.shape[0])
        for layer in network.layers
        for part in layer
    ]
    return jnp.concatenate([*parts, network.coefficients[None]])


def table_of(frozen: Frozen, target: Array, dtype: Any, multiple: int = 1) -> Array:
    """The rows' data as columns of a table: one line for each number that a point has; zeros fill
    the points up to a multiple, and add nothing to a loss."""
    value, gradient, hessian = (jnp.asarray(part, dtype) for part in frozen.inputs)
    zeroth, first, second, target = (
        jnp.asarray(part, dtype) for part in (frozen.zeroth, frozen.first, frozen.second, target)
    )
    contraction = jnp.sum(second[:, None] * hessian, axis=(2, 3))
    inputs = jnp.stack([value, contraction, gradient[:, :, 0], gradient[:, :, 1]], axis=2).reshape(
        len(value), -1
    )
    expression = jnp.stack(
        [
            zeroth,
            first[:, 0],
            first[:, 1],
            second[:, 0, 0],
            2 * second[:, 1, 0],
            second[:, 1, 1],
            target,
        ],
        axis=1,
    )
    table = jnp.concatenate([inputs, expression], axis=1).T
    return jnp.pad(table, ((0, 0), (0, -len(value) % multiple)))


def points_of(line: Callable[[int], Array], inputs: int) -> Points:
    """The table sorted; `line` gives the k-th number of all points as (points, 1)."""
    columns = tuple(
        tuple(line(COLUMNS * k + column) for column in range(COLUMNS)) for k in range(inputs)
    )
    zeroth, *first, a, b, c, target = (line(COLUMNS * inputs + k) for k in range(COEFFICIENTS))
    return Points(columns, zeroth, tuple(first), (a, b, c), target)


# One layer ----------------------------------------------------------------------------------------


def _third(activation: str, s: Array, function: Array, first: Array, curvature: Array) -> Array:
    """σ''' from what is known already."""
    if activation == "silu":
        sigmoid = jax.nn.sigmoid(s)
        slope, odd = sigmoid * (1 - sigmoid), 1 - 2 * sigmoid
        return slope * (odd * (3 + s * odd) - 2 * s * slope)
    if activation == "tanh":
        return first * (6 * function * function - 2)
    return -first


# Activations whose third derivative is written out.
ACTIVATIONS = ("silu", "tanh", "sine")


def outputs(activation: str, columns: Columns, second: Columns) -> Columns:
    """The columns behind the activation from those before it."""
    s, bend, left, right = columns
    function, first, curvature = activation_jet(activation)(s)
    a, b, c = second
    return (
        function,
        first * bend + curvature * (left * (a * left + b * right) + c * right * right),
        first * left,
        first * right,
    )


def pulled(activation: str, columns: Columns, second: Columns, bars: Columns) -> Columns:
    """The derivatives of a loss by the columns before the activation, from those by the columns
    behind it."""
    s, bend, left, right = columns
    bar, bend_bar, left_bar, right_bar = bars
    function, first, curvature = activation_jet(activation)(s)
    third = _third(activation, s, function, first, curvature)
    a, b, c = second
    toward_left, toward_right = 2 * a * left + b * right, b * left + 2 * c * right
    bent = curvature * bend_bar
    # Half of q·∇q is the quadratic form q itself.
    form = 0.5 * (left * toward_left + right * toward_right)
    s_bar = (
        first * bar
        + bent * bend
        + curvature * (left * left_bar + right * right_bar)
        + third * form * bend_bar
    )
    return (
        s_bar,
        first * bend_bar,
        first * left_bar + bent * toward_left,
        first * right_bar + bent * toward_right,
    )


def first_columns(points: Points, weights: list[Array], bias: Array) -> Columns:
    """The columns before the first activation: sums over the few inputs, no product of matrices."""
    columns = [
        sum(inputs[column] * weight for inputs, weight in zip(points.inputs, weights, strict=True))
        for column in range(COLUMNS)
    ]
    return (columns[0] + bias, *columns[1:])  # pyright: ignore[reportReturnType]


def first_gradient(points: Points, bars: Columns) -> list[Array]:
    """The gradient by the first weights, one row for each input."""
    return [
        jnp.sum(sum(inputs[column] * bars[column] for column in range(COLUMNS)), axis=0)
        for inputs in points.inputs
    ]  # pyright: ignore[reportArgumentType]


def residual_of(
    points: Points, columns: Columns, coefficients: Array
) -> tuple[Array, Array, Columns]:
    """Features (N, width), residual (N, 1) and the derivatives of its square by the last
    columns."""
    value, bend, left, right = columns
    features = points.zeroth * value + bend + points.first[0] * left + points.first[1] * right
    residual = jnp.sum(features * coefficients, axis=1)[:, None] - points.target
    bar = 2 * residual * coefficients
    return (
        features,
        residual,
        (points.zeroth * bar, bar, points.first[0] * bar, points.first[1] * bar),
    )


# All points at once -------------------------------------------------------------------------------


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def packed_loss(matrix: Array, table: Array, shape: Shape, precision: Any = None) -> Array:
    """Σ (row - target)² by the parameters `matrix`; the table counts as constant. `precision` is
    that of the products."""
    return _loss_and_gradient(matrix, table, shape, precision)[0]


def _forward(matrix: Array, table: Array, shape: Shape, precision: Any) -> tuple[Array, Array]:
    return _loss_and_gradient(matrix, table, shape, precision)


def _backward(shape: Shape, precision: Any, gradient: Array, bar: Array) -> tuple[Array, None]:
    return bar * gradient, None


packed_loss.defvjp(_forward, _backward)


def _loss_and_gradient(
    matrix: Array, table: Array, shape: Shape, precision: Any
) -> tuple[Array, Array]:
    multiply = functools.partial(
        jax.lax.dot_general, precision=precision, preferred_element_type=matrix.dtype
    )
    points = points_of(lambda k: table[k][:, None], shape.inputs)
    sigma, start = shape.activation, shape.inputs
    weights = [
        matrix[shape.weight(layer) : shape.weight(layer) + shape.width]
        for layer in range(1, shape.depth)
    ]
    biases = [matrix[start]] + [
        matrix[shape.weight(layer) + shape.width] for layer in range(1, shape.depth)
    ]
    before = [first_columns(points, list(matrix[:start]), biases[0])]
    packs = []
    for weight, bias in zip(weights, biases[1:], strict=True):
        packs.append(jnp.concatenate(outputs(sigma, before[-1], points.second)))
        s, *others = jnp.split(multiply(packs[-1], weight, (((1,), (0,)), ((), ()))), COLUMNS)
        before.append((s + bias, *others))
    features, residual, bars = residual_of(
        points, outputs(sigma, before[-1], points.second), matrix[-1]
    )
    parts = [jnp.sum(2 * residual * features, axis=0)[None]]
    for layer in range(shape.depth - 1, 0, -1):
        bars = pulled(sigma, before[layer], points.second, bars)
        pack = jnp.concatenate(bars)
        parts += [
            jnp.sum(bars[0], axis=0)[None],
            multiply(packs[layer - 1], pack, (((0,), (0,)), ((), ()))),
        ]
        bars = tuple(
            jnp.split(multiply(pack, weights[layer - 1], (((1,), (1,)), ((), ()))), COLUMNS)
        )
    bars = pulled(sigma, before[0], points.second, bars)
    parts += [jnp.sum(bars[0], axis=0)[None], jnp.stack(first_gradient(points, bars))]
    return jnp.sum(residual**2), jnp.concatenate(parts[::-1])
