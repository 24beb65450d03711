"""Compiled functions on many points: blocks of one size, so that each function is compiled once."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from cordes.runtime.clock import check_deadline
from cordes.runtime.threads import refuse_forks

BLOCK = 1024
# Numbers of matrices at points that are held at once: 128 MB, of which there are a few copies.
HELD = 1 << 24
# What is made of them on the way is so many times as large.
COPIES = 4


def with_matrices(count: int, dimension: int) -> int:
    """So many points, or in many dimensions fewer, that a matrix at each of them can be held."""
    return max(1, min(count, HELD // dimension**2))


def slices_with_matrices(count: int, dimension: int) -> list[slice]:
    """Points in parts of which each can hold a few matrices at every point."""
    part = _part(count, dimension**2)
    return [slice(first, first + part) for first in range(0, max(count, 1), part)]


def is_traced(value: Any) -> bool:
    """Whether something consists, also in part, of numbers that JAX does not know yet."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def in_blocks(function: Callable[..., Any], arrays: tuple[Any, ...], block: int = BLOCK):
    """Apply a compiled function to blocks of a fixed number of points: each shape is compiled once
    and memory stays bounded. Inside of a trace there is one block, which whoever compiles it has
    chosen.

    Cutting and joining is done by NumPy, since every new shape of an eager JAX operation would be
    compiled as well.
    """
    if is_traced(arrays):
        return function(*arrays)
    refuse_forks()
    arrays = tuple(np.asarray(array) for array in arrays)
    count = len(arrays[0])
    if count == 0:
        raise ValueError("no points")
    row = max(math.prod(array.shape[1:]) for array in arrays)
    block = _part(block, row)
    parts = []
    for first in range(0, count, block):
        # All long work goes through here, certificates among it.
        check_deadline()
        found = function(*(_padded(array[first : first + block], block) for array in arrays))
        # Waits for it: blocks that are under way at once would fill the memory.
        parts.append(jax.tree.map(np.asarray, found))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def _part(count: int, row: int) -> int:
    """So many points at most, each with so many numbers, of which there are copies."""
    return max(1, min(count, HELD // COPIES // max(row, 1)))


def _padded(part: np.ndarray, length: int) -> np.ndarray:
    """The last point again and again behind the others."""
    missing = length - len(part)
    if missing == 0:
        return part
    return np.concatenate([part, np.repeat(part[-1:], missing, axis=0)])
