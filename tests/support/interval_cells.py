"""Random cells, points in them, and whether the values of a function there lie in its enclosure."""

import jax
import numpy as np


def random_cells(count, dimension, width, seed=0, lower=-2.0, upper=2.0):
    generator = np.random.default_rng(seed)
    low = generator.uniform(lower, upper - width, (count, dimension))
    return low, low + width * generator.random((count, dimension))


def points_in(lower, upper, seed=1):
    return lower + (upper - lower) * np.random.default_rng(seed).random(lower.shape)


def contained(pieces, values):
    """For each cell, whether all values lie in one and the same piece. Where a function is not a
    number it claims nothing."""
    found = np.zeros(len(jax.tree.leaves(values)[0]), dtype=bool)
    for piece in pieces:
        good = [
            interval.contains(value) | np.isnan(value)
            for interval, value in zip(
                jax.tree.leaves(piece), map(np.asarray, jax.tree.leaves(values)), strict=True
            )
        ]
        found |= np.all([each.reshape(len(each), -1).all(axis=1) for each in good], axis=0)
    return found


def sampled(function, points):
    return jax.tree.map(
        lambda value: np.asarray(value, dtype=float), jax.jit(jax.vmap(function))(points)
    )
