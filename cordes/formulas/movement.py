"""Operations that move elements about and do not compute: the same code moves lower bounds, upper
bounds, constants and the identities of elements.

A move takes arrays with a leading axis (cells), one for each operand, and gives the list of moved
arrays. Indices must be constants.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import jax
import numpy as np

Array = np.ndarray
Move = Callable[..., list[Array]]


class UnsupportedOperation(NotImplementedError):  # noqa: N818
    """A function contains an operation that has no enclosure; `name` says which."""

    def __init__(self, name: str):
        super().__init__(f"No interval enclosure is known for '{name}'.")
        self.name = name


def _plain(move: Callable[..., list[Array]]) -> Callable[[Any, Sequence[Array | None]], Move]:
    """A rule that needs nothing but the parameters of the equation."""
    return lambda equation, constants: partial(move, equation.params)


def _reshape(equation: Any, constants: Sequence[Array | None]) -> Move:
    shape = equation.outvars[0].aval.shape
    dimensions = equation.params.get("dimensions") if equation.primitive.name == "reshape" else None
    if dimensions is None:
        return lambda a: [a.reshape((len(a), *shape))]
    order = (0, *(axis + 1 for axis in dimensions))
    return lambda a: [np.transpose(a, order).reshape((len(a), *shape))]


def _broadcast(equation: Any, constants: Sequence[Array | None]) -> Move:
    shape, dimensions = equation.outvars[0].aval.shape, equation.params["broadcast_dimensions"]

    def move(a: Array, *_: Array) -> list[Array]:
        spread = [1] * len(shape)
        for axis, dimension in enumerate(dimensions):
            spread[dimension] = a.shape[axis + 1]
        return [np.broadcast_to(a.reshape((len(a), *spread)), (len(a), *shape))]

    return move


def _slice(parameters: dict[str, Any], a: Array) -> list[Array]:
    edges = (parameters[name] for name in ("start_indices", "limit_indices"))
    return [a[(slice(None), *map(slice, *edges, parameters["strides"] or repeat(None)))]]


def _indexed(*data: int) -> Callable[[Any, Sequence[Array | None]], Move]:
    """Gathering, scattering, padding: the operation itself, done once on the positions of the
    elements of its `data` operands, says where each goes."""

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


def _select(equation: Any, constants: Sequence[Array | None]) -> Move | None:
    """A selection by a constant mask."""
    if constants[0] is None:
        return None
    return _indexed(*range(1, len(constants)))(equation, constants)


MOVES: dict[str, Callable[[Any, Sequence[Array | None]], Move | None]] = {
    **dict.fromkeys(
        ("copy", "copy_p", "stop_gradient", "name", "optimization_barrier"),
        _plain(lambda p, *arrays: list(arrays)),
    ),
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _reshape),
    "broadcast_in_dim": _broadcast,
    "slice": _plain(_slice),
    "concatenate": _plain(lambda p, *arrays: [np.concatenate(arrays, axis=p["dimension"] + 1)]),
    "stack": _plain(lambda p, *arrays: [np.stack(arrays, axis=p["axis"] + 1)]),
    "unstack": _plain(lambda p, a: list(np.moveaxis(a, p["axis"] + 1, 0))),
    "transpose": _plain(lambda p, a: [a.transpose((0, *(k + 1 for k in p["permutation"])))]),
    "rev": _plain(lambda p, a: [np.flip(a, tuple(k + 1 for k in p["dimensions"]))]),
    "tile": _plain(lambda p, a: [np.tile(a, (1, *p["reps"]))]),
    "split": _plain(lambda p, a: np.split(a, np.cumsum(p["sizes"])[:-1], axis=p["axis"] + 1)),
    "pad": _indexed(0, 1),
    "select_n": _select,
    "gather": _indexed(0),
    "dynamic_slice": _indexed(0),
    "dynamic_update_slice": _indexed(0, 1),
    "scatter": _indexed(0, 2),
}


def scattered(equation: Any, index: Array) -> list[Move]:
    """scatter-add as a sum: moves of a zero and the updates, each of which puts at most one update
    in each place and zero elsewhere."""
    shape, updates = equation.outvars[0].aval.shape, equation.invars[2].aval.shape
    names = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")
    parameters = {name: equation.params[name] for name in names}
    size = int(np.prod(updates))
    hit = [
        jax.lax.scatter_add(np.zeros(shape), index, unit.reshape(updates), **parameters)
        for unit in np.eye(size)
    ]
    target = np.stack([np.asarray(each).ravel() != 0 for each in hit])
    layer = np.where(target, np.cumsum(target, axis=0), 0)

    def put(places: Array) -> Move:
        def move(*arrays: Array) -> list[Array]:
            flat = np.concatenate([a.reshape(len(a), -1) for a in arrays], axis=1)
            return [flat[:, places].reshape((len(flat), *shape))]

        return move

    numbers = np.arange(1, size + 1)
    return [put(numbers @ (layer == k)) for k in range(1, int(np.max(layer)) + 1)]


def contraction(
    dimension_numbers: Any, rank_left: int, rank_right: int
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """dot_general as a product that broadcasts, then a sum over the last axes: how the two operands
    (with the axis of the cells) are laid out."""
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    left_free = [a for a in range(rank_left) if a not in (*left_sum, *left_batch)]
    right_free = [a for a in range(rank_right) if a not in (*right_sum, *right_batch)]

    def layout(axes: Sequence[int], place: int, count: int) -> Callable[[Array], Array]:
        """The order of the axes, with `count` new ones at a place."""
        order, new = (0, *(axis + 1 for axis in axes)), tuple(range(place, place + count))
        return lambda a: np.expand_dims(a.transpose(order), new)

    kept = (*left_batch, *left_free)
    left = layout((*kept, *left_sum), 1 + len(kept), len(right_free))
    return left, layout(
        (*right_batch, *right_free, *right_sum), 1 + len(right_batch), len(left_free)
    )
