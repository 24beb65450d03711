"""Compiled functions on many points: blocks of one size, so that each function is compiled once."""

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


def with_matrices(count: int, dimension: int) -> int:
    """So many points, or in many dimensions fewer, that a matrix at each of them can be held."""
    return max(1, min(count, HELD // dimension**2))


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
    count = len(arrays[0])
    if count == 0:
        raise ValueError("no points")
    blocks = -(-count // block)
    rest = blocks * block - count
    padded = [np.asarray(array) for array in arrays]
    if rest:
        padded = [np.concatenate([array, np.repeat(array[-1:], rest, axis=0)]) for array in padded]
    parts = []
    for k in range(blocks):
        # All long work goes through here, certificates among it.
        check_deadline()
        parts.append(function(*(array[k * block : (k + 1) * block] for array in padded)))
    return jax.tree.map(
        lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *parts
    )
