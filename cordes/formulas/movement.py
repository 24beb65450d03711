"""Operations that move elements about and do not compute: the same code moves lower bounds, upper
bounds, constants and the identities of elements.

A move takes arrays with a leading axis (cells), one for each operand, and gives the list of moved
arrays. Indices must be constants.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray
Move = Callable[..., list[Array]]


class UnsupportedOperation(NotImplementedError):  # noqa: N818
    """A function contains an operation that has no enclosure; `name` says which."""

    def __init__(self, name: str):
        super().__init__(f"No interval enclosure is known for '{name}'.")
        self.name = name


def _same(equation: Any, constants: Sequence[Array | None]) -> Move:
    return lambda *arrays: list(arrays)


def _reshape(equation: Any, constants: Sequence[Array | None]) -> Move:
    if equation.primitive.name == "reshape" and equation.params.get("dimensions") is not None:
        raise UnsupportedOperation("reshape with transposition")
    shape = equation.outvars[0].aval.shape
    return lambda a: [a.reshape((len(a), *shape))]


def _broadcast(equation: Any, constants: Sequence[Array | None]) -> Move:
    shape, dimensions = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]

    def move(a: Array, *_: Array) -> list[Array]:
        spread = [1] * len(shape)
        for axis, dimension in enumerate(dimensions):
            spread[dimension] = a.shape[axis + 1]
        return [np.broadcast_to(a.reshape((len(a), *spread)), (len(a), *shape))]

    return move


def _slice(equation: Any, constants: Sequence[Array | None]) -> Move:
    starts, limits = equation.params["start_indices"], equation.params["limit_indices"]
    strides = equation.params["strides"] or (1,) * len(starts)
    index = (slice(None), *(slice(*three) for three in zip(starts, limits, strides, strict=True)))
    return lambda a: [a[index]]


def _concatenate(equation: Any, constants: Sequence[Array | None]) -> Move:
    axis = equation.params["dimension"] + 1
    return lambda *arrays: [np.concatenate(arrays, axis=axis)]


def _stack(equation: Any, constants: Sequence[Array | None]) -> Move:
    axis = equation.params["axis"] + 1
    return lambda *arrays: [np.stack(arrays, axis=axis)]


def _transpose(equation: Any, constants: Sequence[Array | None]) -> Move:
    axes = (0, *(axis + 1 for axis in equation.params["permutation"]))
    return lambda a: [a.transpose(axes)]


def _reverse(equation: Any, constants: Sequence[Array | None]) -> Move:
    axes = tuple(axis + 1 for axis in equation.params["dimensions"])
    return lambda a: [np.flip(a, axes)]


def _tile(equation: Any, constants: Sequence[Array | None]) -> Move:
    return lambda a: [np.tile(a, (1, *equation.params["reps"]))]


def _split(equation: Any, constants: Sequence[Array | None]) -> Move:
    ends, axis = np.cumsum(equation.params["sizes"])[:-1], equation.params["axis"] + 1
    return lambda a: np.split(a, ends, axis=axis)


def _pad(equation: Any, constants: Sequence[Array | None]) -> Move:
    shape = equation.outvars[0].aval.shape
    sources, targets = [], []
    for (low, _, interior), size, length in zip(
        equation.params["padding_config"], equation.invars[0].aval.shape, shape, strict=True
    ):
        target = low + np.arange(size) * (interior + 1)
        inside = (target >= 0) & (target < length)
        sources.append(np.flatnonzero(inside))
        targets.append(target[inside])

    def move(a: Array, value: Array) -> list[Array]:
        padded = np.array(
            np.broadcast_to(value.reshape((-1,) + (1,) * len(shape)), (len(a), *shape))
        )
        cells = np.arange(len(a))
        padded[np.ix_(cells, *targets)] = a[np.ix_(cells, *sources)]
        return [padded]

    return move


def _select(equation: Any, constants: Sequence[Array | None]) -> Move | None:
    """A selection by a constant mask."""
    which = constants[0]
    if which is None:
        return None

    def move(_: Array, *cases: Array) -> list[Array]:
        result = np.array(np.broadcast_arrays(*cases)[0])
        for number, case in enumerate(cases):
            result = np.where(which == number, case, result)
        return [result]

    return move


def _indexed(*data: int) -> Callable[[Any, Sequence[Array | None]], Move]:
    """Gathering and scattering: the operation itself, done once on the positions of the elements of
    its `data` operands, says where each goes."""

    def rule(equation: Any, constants: Sequence[Array | None]) -> Move:
        name = equation.primitive.name
        operands, start = [], 0
        for number, (variable, constant) in enumerate(zip(equation.invars, constants, strict=True)):
            if number in data:
                shape = variable.aval.shape
                size = int(np.prod(shape))
                operands.append(np.arange(start, start + size).reshape(shape))
                start += size
            elif constant is None:
                raise UnsupportedOperation(f"{name} with an index that depends on x")
            else:
                operands.append(constant)
        places = np.asarray(equation.primitive.bind(*operands, **equation.params))
        if np.any((places < 0) | (places >= start)):
            raise UnsupportedOperation(f"{name} with an index out of bounds")

        def move(*arrays: Array) -> list[Array]:
            flat = np.concatenate(
                [arrays[number].reshape(len(arrays[number]), -1) for number in data], axis=1
            )
            return [flat[:, places.ravel()].reshape((len(flat), *places.shape))]

        return move

    return rule


MOVES: dict[str, Callable[[Any, Sequence[Array | None]], Move | None]] = {
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "name", "optimization_barrier"), _same),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _reshape),
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "concatenate": _concatenate,
    "stack": _stack,
    "transpose": _transpose,
    "rev": _reverse,
    "tile": _tile,
    "split": _split,
    "pad": _pad,
    "select_n": _select,
    "gather": _indexed(0),
    "dynamic_slice": _indexed(0),
    "dynamic_update_slice": _indexed(0, 1),
    "scatter": _indexed(0, 2),
}


def contraction(
    dimension_numbers: Any, rank_left: int, rank_right: int
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """dot_general as a product that broadcasts, then a sum over the last axes: how the two operands
    (with the axis of the cells) are laid out."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    left_free = [a for a in range(rank_left) if a not in (*left_sum, *left_batch)]
    right_free = [a for a in range(rank_right) if a not in (*right_sum, *right_batch)]

    def layout(
        batch: Any, before: int, free: list[int], after: int, summed: Any
    ) -> Callable[[Array], Array]:
        axes = tuple(axis + 1 for axis in (*batch, *free, *summed))

        def move(a: Array) -> Array:
            shape = [a.shape[axis] for axis in axes]
            middle, end = len(batch), len(batch) + len(free)
            spread = (
                *shape[:middle],
                *[1] * before,
                *shape[middle:end],
                *[1] * after,
                *shape[end:],
            )
            return a.transpose((0, *axes)).reshape((len(a), *spread))

        return move

    left = layout(left_batch, 0, left_free, len(right_free), left_sum)
    return left, layout(right_batch, len(left_free), right_free, 0, right_sum)
