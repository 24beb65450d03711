"""The sum of squares of a network's rows and its gradient in one GPU kernel.

One Adam step of a small network on many points spends its time on launches and on ways through the
memory, not on arithmetic. Here a program takes a block of points through all layers and back, and
adds its share of the gradient to a matrix of its own; the sum over programs is the gradient.
Nothing of size points × width leaves the caches. Products are full float32 products unless a plan
says otherwise.

The kernel is written in Pallas for its Triton backend. Shapes must be powers of two there, arrays
in registers can be joined but not cut at will, and memory shared by the threads cannot be asked
for: columns before the activations are kept for the way back in a scratch array that stays in the
second-level cache.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from packed import (
    ACTIVATIONS,
    COLUMNS,
    Columns,
    Shape,
    first_columns,
    first_gradient,
    matrix_of,
    outputs,
    points_of,
    pulled,
    residual_of,
    shape_of,
    table_of,
)

from cordes.ansatz.networks.network import AbstractNetwork, Frozen

# The smallest product of the backend, and widths from there to what fits the registers of a
# program.
SMALLEST = 16
WIDTHS = (16, 32, 64, 128)
PRECISIONS = {
    "float32": jax.lax.Precision.HIGHEST,
    "tf32x3": jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3,
    "bf16x6": jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X6,
    "bf16x9": jax.lax.DotAlgorithmPreset.BF16_BF16_F32_X9,
}

Add = Callable[[Any, Array], None]


class Plan(NamedTuple):
    """How the work is cut: points in a block, programs, warps in each; whether the four columns are
    joined to one product, and the piece of the width over which a product is summed at once (0: all
    of it; a program holds both factors of a piece in registers). The hidden layers are a loop of
    the kernel (`rolled`, less code) or written out; then gradients may be carried from block to
    block in registers (`carried`). Last, the products' precision."""

    block: int = 16
    programs: int = 132
    warps: int = 8
    stages: int = 1
    joined: bool = True
    piece: int = 32
    rolled: bool = True
    carried: bool = False
    precision: str = "float32"


DEFAULT = Plan()


def available(network: AbstractNetwork, frozen: Frozen) -> bool:
    """Whether `fused_loss` can be used: a GPU, float32, two dimensions, at least two hidden layers
    of one width that is a power of two."""
    return jax.default_backend() == "gpu" and _fits(network, frozen)


def _fits(network: AbstractNetwork, frozen: Frozen) -> bool:
    width = network.coefficients.shape[0]
    widths = [weight.shape[1] for weight, _ in network.layers]
    return (
        network.coefficients.dtype == jnp.float32
        and frozen.first.shape[-1] == 2
        and network.activation in ACTIVATIONS
        and len(widths) > 1
        and width in WIDTHS
        and all(other == width for other in widths)
    )


def fused_loss(
    network: AbstractNetwork,
    frozen: Frozen,
    target: Array,
    interpret: bool = False,
    plan: Plan = DEFAULT,
) -> Array:
    """Σ (network.rows(frozen) - target)², differentiable by the network's parameters alone. In a
    loop over steps, call `table_of` before it and `kernel_loss` inside. `interpret` runs the kernel
    without a GPU."""
    if not _fits(network, frozen):
        raise ValueError(
            "The fused loss needs float32, two dimensions and two or more layers of one "
            "width, a power of two from 16 to 128. Use network.rows."
        )
    table = table_of(frozen, target, network.coefficients.dtype, plan.block)
    return kernel_loss(matrix_of(network), table, shape_of(network), plan, interpret)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3, 4))
def kernel_loss(
    matrix: Array, table: Array, shape: Shape, plan: Plan = DEFAULT, interpret: bool = False
) -> Array:
    """The same from the matrix of all parameters and the rows' table, whose points are a multiple
    of `plan.block`."""
    return _run(matrix, table, shape, plan, interpret)[0]


def _forward(
    matrix: Array, table: Array, shape: Shape, plan: Plan, interpret: bool
) -> tuple[Array, Array]:
    return _run(matrix, table, shape, plan, interpret)


def _backward(
    shape: Shape, plan: Plan, interpret: bool, gradient: Array, bar: Array
) -> tuple[Array, None]:
    return bar * gradient, None


kernel_loss.defvjp(_forward, _backward)


def _run(
    matrix: Array, table: Array, shape: Shape, plan: Plan, interpret: bool
) -> tuple[Array, Array]:
    """Loss and gradient: one run of the kernel, one sum over its programs."""
    blocks = table.shape[1] // plan.block
    programs = min(plan.programs, blocks)
    settings: dict[str, Any] = {"interpret": interpret}
    if not interpret:
        from jax.experimental.pallas import triton  # not there on every platform

        settings = {
            "compiler_params": triton.CompilerParams(num_warps=plan.warps, num_stages=plan.stages)
        }
    shares, _ = pl.pallas_call(
        functools.partial(
            _kernel, shape=shape, plan=plan, blocks=blocks, programs=programs, interpret=interpret
        ),
        grid=(programs,),
        out_shape=(
            jax.ShapeDtypeStruct((programs, shape.rows + 1, shape.width), matrix.dtype),
            jax.ShapeDtypeStruct(
                (programs, shape.depth, COLUMNS * plan.block, shape.width), matrix.dtype
            ),
        ),
        **settings,
    )(matrix, table)
    total = jnp.sum(shares, axis=0)
    return total[shape.rows, 0], total[: shape.rows]


# The kernel ---------------------------------------------------------------------------------------


def _kernel(
    matrix: Any,
    table: Any,
    shares: Any,
    scratch: Any,
    *,
    shape: Shape,
    plan: Plan,
    blocks: int,
    programs: int,
    interpret: bool,
) -> None:
    """One program: blocks program, program + programs, …; its share of the gradient goes to
    `shares`, with the loss in the row behind it."""
    program = pl.program_id(0)
    width, rows = shape.width, shape.rows
    single = [
        *range(shape.inputs + 1),
        *(shape.weight(layer) + width for layer in range(1, shape.depth)),
        rows - 1,
        rows,
    ]
    square = [shape.weight(layer) for layer in range(1, shape.depth)]
    zeros = {k: jnp.zeros(width, matrix.dtype) for k in single} | {
        k: jnp.zeros((width, width), matrix.dtype) for k in square
    }

    def place(start: Any, value: Array) -> tuple[Any, ...]:
        return (
            (program, pl.ds(start, width), slice(None))
            if value.ndim == 2
            else (program, start, slice(None))
        )

    def one_block(step: Array, gradient: dict[int, Array]) -> dict[int, Array]:
        gradient = dict(gradient)

        def add(start: Any, value: Array) -> None:
            """Add a matrix, or a vector, to the gradient's rows from `start` on."""
            if plan.carried:
                gradient[start] = gradient[start] + value
            else:
                shares[place(start, value)] = shares[place(start, value)] + value

        _one_block(
            program,
            (program + step * programs) * plan.block,
            matrix,
            table,
            scratch,
            add,
            shape,
            plan,
            interpret,
        )
        return gradient

    def write(gradient: dict[int, Array]) -> None:
        for start, value in gradient.items():
            shares[place(start, value)] = value

    if not plan.carried:
        write(zeros)
        _barrier(interpret)
    # The programs' loops differ by one block at most; a fixed length would make all of them as long
    # as the longest.
    count = (blocks - program + programs - 1) // programs
    write(
        jax.lax.fori_loop(
            jnp.int32(0), count.astype(jnp.int32), one_block, zeros if plan.carried else {}
        )
    )


def _one_block(
    program: Array,
    start: Array,
    matrix: Any,
    table: Any,
    scratch: Any,
    add: Add,
    shape: Shape,
    plan: Plan,
    interpret: bool,
) -> None:
    """A block of points through all layers, to the residual, and back; gradients are handed to
    `add`."""
    sigma, width = shape.activation, shape.width

    def row(k: Any) -> Array:
        return matrix[k, :][None, :]

    def weights(layer: Any, axis: int) -> list[Array]:
        """The pieces of a layer's weights along an axis."""
        size = min(plan.piece, width) or width
        first, all_rows = shape.weight(layer), pl.ds(shape.weight(layer), width)
        return [
            matrix[pl.ds(first + k, size), :] if axis == 0 else matrix[all_rows, pl.ds(k, size)]
            for k in range(0, width, size)
        ]

    def keep(layer: Any, columns: Columns) -> None:
        for k, column in enumerate(columns):
            scratch[program, layer, pl.ds(k * plan.block, plan.block), :] = column

    def kept(layer: Any) -> Columns:
        return tuple(
            scratch[program, layer, pl.ds(k * plan.block, plan.block), :] for k in range(COLUMNS)
        )

    points = points_of(lambda k: table[k, pl.ds(start, plan.block)][:, None], shape.inputs)

    def up(layer: Any, columns: Columns) -> Columns:
        s, *others = _times(
            outputs(sigma, columns, points.second), weights(layer, 0), 0, plan, interpret
        )
        columns = (s + row(shape.weight(layer) + width), *others)
        keep(layer, columns)
        return columns

    def down(count: Any, bars: Columns) -> Columns:
        layer = shape.depth - count
        bars = pulled(sigma, kept(layer), points.second, bars)
        add(shape.weight(layer) + width, jnp.sum(bars[0], axis=0))
        add(
            shape.weight(layer),
            _gradient(outputs(sigma, kept(layer - 1), points.second), bars, plan, interpret),
        )
        return _times(bars, weights(layer, 1), 1, plan, interpret)

    columns = first_columns(points, [row(k) for k in range(shape.inputs)], row(shape.inputs))
    keep(0, columns)
    columns = _repeat(up, 1, shape.depth, columns, plan.rolled)
    features, residual, bars = residual_of(
        points, outputs(sigma, columns, points.second), row(shape.rows - 1)
    )
    add(shape.rows - 1, jnp.sum(2 * residual * features, axis=0))
    add(shape.rows, jnp.zeros(width, residual.dtype) + jnp.sum(residual * residual))
    _barrier(interpret)
    bars = _repeat(down, 1, shape.depth, bars, plan.rolled)
    bars = pulled(sigma, kept(0), points.second, bars)
    add(shape.inputs, jnp.sum(bars[0], axis=0))
    for k, gradient in enumerate(first_gradient(points, bars)):
        add(k, gradient)
    _barrier(interpret)


def _repeat(
    body: Callable[[Any, Columns], Columns], lower: int, upper: int, start: Columns, rolled: bool
) -> Columns:
    if rolled:
        return jax.lax.fori_loop(jnp.int32(lower), jnp.int32(upper), body, start)
    for k in range(lower, upper):
        start = body(k, start)
    return start


def _barrier(interpret: bool) -> None:
    """What threads of a program have written is seen by its other threads."""
    if not interpret:
        from jax.experimental.pallas import triton

        triton.debug_barrier()


def _joined(columns: Columns) -> Array:
    """Four (B, width) arrays below each other; the backend can join two along a new last axis
    only."""
    pairs = [jnp.stack(columns[k : k + 2], axis=-1) for k in (0, 2)]
    return jnp.transpose(jnp.stack(pairs, axis=-1), (3, 2, 0, 1)).reshape(-1, columns[0].shape[1])


def _product(
    left: Array, right: Array, contracted: tuple[int, int], plan: Plan, interpret: bool
) -> Array:
    precision = PRECISIONS["float32" if interpret else plan.precision]
    numbers = (((contracted[0],), (contracted[1],)), ((), ()))
    return jax.lax.dot_general(
        left, right, numbers, precision=precision, preferred_element_type=left.dtype
    )


def _times(
    columns: Columns, weights: list[Array], axis: int, plan: Plan, interpret: bool
) -> Columns:
    """Each column times the weights (axis 0) or their transpose (axis 1), which come in pieces
    along that axis."""

    def product(left: Array) -> Array:
        pieces = jax.lax.split(left, [weight.shape[axis] for weight in weights], axis=1)
        return _sum(
            [
                _product(piece, weight, (1, axis), plan, interpret)
                for piece, weight in zip(pieces, weights, strict=True)
            ]
        )

    if plan.joined:
        return tuple(jax.lax.split(product(_joined(columns)), [plan.block] * COLUMNS, axis=0))
    return tuple(product(column) for column in columns)


def _gradient(after: Columns, bars: Columns, plan: Plan, interpret: bool) -> Array:
    """The gradient by a layer's weights: columns in front of them against derivatives behind them,
    summed over points and columns."""
    if plan.block < SMALLEST:
        return _product(_joined(after), _joined(bars), (0, 0), plan, interpret)
    return _sum(
        [
            _product(column, bar, (0, 0), plan, interpret)
            for column, bar in zip(after, bars, strict=True)
        ]
    )


def _sum(terms: list[Array]) -> Array:
    return functools.reduce(jnp.add, terms)
