"""Operations and bytes of what the solvers do, by formulas; the floor that a machine with given
peaks cannot go below.

An operation is one addition, multiplication or elementary function. Bytes are those that must move
if every large array is written once and read once by whoever needs it: columns of a layer are
written by one layer and read by the next, everything between two products happens on the way.
Programs that read an array twice move more. A gradient by reverse differentiation is counted as
three times the evaluation: each product W becomes one with Wᵀ for the cotangents and one for the
derivative by W, and the columns are read again while cotangents of the same size are written and
read.
"""

from typing import NamedTuple

from cordes.ansatz.networks.network import MANY

# Bias, SiLU (or another function) with two derivatives, and their combination with the products of
# a layer.
ACTIVATION, COMBINATION = 12, 3


class Work(NamedTuple):
    """Operations, and bytes that have to move."""

    operations: float
    bytes: float


class Peaks(NamedTuple):
    """What a machine reached: operations each second in a large matrix product, bytes each second
    in a + s·b of long vectors."""

    operations: float
    bytes: float


class Shape(NamedTuple):
    """A network and the expression that is taken of it: `columns` go through the layers (`first`
    through the first of them), and each neuron needs `extra` operations beside the products."""

    inputs: int
    width: int
    depth: int
    columns: int
    first: int
    extra: int

    @property
    def parameters(self) -> int:
        return (self.inputs + 2) * self.width + (self.depth - 1) * self.width * (self.width + 1)


def together(*parts: Work) -> Work:
    return Work(sum(part.operations for part in parts), sum(part.bytes for part in parts))


def times(count: float, part: Work) -> Work:
    return Work(count * part.operations, count * part.bytes)


def floor_seconds(work: Work, peaks: Peaks) -> float:
    """The time below which no program on this machine can be: that of the operations or that of the
    bytes, whichever is longer."""
    return max(work.operations / peaks.operations, work.bytes / peaks.bytes)


# Networks -----------------------------------------------------------------------------------------


def quadratic_operations(d: int, rank: int | None = None) -> int:
    """Σ A_ij s_i s_j for one neuron: pair by pair in few dimensions, as a product with A in many,
    with `rank` where A is diagonal plus that."""
    if rank is not None:
        return 2 * d * (1 + 2 * rank) + 2 * d
    return 2 * d * d + 2 * d if d >= MANY else 3 * d + 2 * d * (d - 1)


def operator_shape(d: int, inputs: int, width: int, depth: int) -> Shape:
    """(u, ∇u, A:D²u): d + 2 columns."""
    return Shape(
        inputs, width, depth, d + 2, d + 2, ACTIVATION + COMBINATION + d + quadratic_operations(d)
    )


def hessian_shape(d: int, inputs: int, width: int, depth: int) -> Shape:
    """(u, ∇u, D²u): 1 + d + d(d+1)/2 columns."""
    pairs = d * (d + 1) // 2
    return Shape(inputs, width, depth, 1 + d + pairs, 1 + d + pairs, ACTIVATION + d + 4 * pairs)


def directional_shape(
    d: int, inputs: int, width: int, depth: int, interfaces: bool, rank: int | None
) -> Shape:
    """One linear expression in many dimensions; without interfaces the derivatives of the first
    layer are its weights, and cost no product."""
    return Shape(
        inputs,
        width,
        depth,
        d + 2,
        d + 2 if interfaces else 2,
        ACTIVATION + COMBINATION + d + quadratic_operations(d, rank),
    )


def evaluation(points: int, shape: Shape, size: int, data: int = 0, results: int = 0) -> Work:
    """One pass through the layers; `data` numbers for each point come in, `results` go out, `size`
    bytes each."""
    sizes = (
        shape.first * shape.inputs * shape.width
        + (shape.depth - 1) * shape.columns * shape.width**2
        + shape.columns * shape.width
    )
    operations = points * (2 * sizes + shape.depth * shape.width * shape.extra)
    columns = 2 * points * shape.columns * shape.width * shape.depth
    return Work(operations, size * (columns + points * (data + results) + shape.parameters))


def gradient(points: int, shape: Shape, size: int, data: int = 0) -> Work:
    """An evaluation with the gradient of a sum of squares by the weights."""
    return times(3, evaluation(points, shape, size, data))


def jacobian(points: int, shape: Shape, size: int, data: int = 0) -> Work:
    """The same with one gradient for each point, which are written down: points × parameters
    numbers."""
    work = gradient(points, shape, size, data)
    return Work(work.operations, work.bytes + size * points * shape.parameters)


# Linear algebra -----------------------------------------------------------------------------------


def product(m: int, k: int, n: int, size: int) -> Work:
    return Work(2 * m * k * n, size * (m * k + k * n + m * n))


def gram(n: int, inner: int, size: int) -> Work:
    """JJᵀ of an n × inner matrix: half of a product, because it is symmetric."""
    return Work(n * n * inner, size * (n * inner + n * n))


def cholesky(n: int, size: int) -> Work:
    return Work(n**3 / 3, size * 2 * n * n)


def qr_triangle(m: int, n: int, size: int) -> Work:
    """R of an m × n matrix by reflections, without Q."""
    return Work(2 * n * n * (m - n / 3), size * 2 * m * n)


def pivoted_qr(n: int, size: int) -> Work:
    """Q and R of a square matrix with column pivoting. Half of the first term are products of the
    whole remaining matrix with a vector, one for each column: where the matrix does not fit into
    the cache they are bound by the memory, which is not counted here."""
    return Work(4 / 3 * n**3 + 4 / 3 * n**3, size * 4 * n * n)
