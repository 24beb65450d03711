"""Lines along which the cells of a box are cut from the start: those of linear tables."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from cordes.formulas.lookups.lines import grid_lines
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import in_blocks

Array = np.ndarray
# Cells of a table of data at whose lines cells are cut, and points at which tables with more lines
# are looked at.
LARGEST_GRID, LOOKED_AT = 4400, 200_000
# How far from a line, as a share of what lies between two lines, slopes are compared; and which
# share of the largest difference is a bend.
BESIDE, BEND = 1e-7, 1e-3


def unit_lines(problem: AbstractProblem) -> list[Array]:
    """Where linear tables among the data have kinks, in units of the box: interfaces that nobody
    has to declare. Of too many lines those stay at which something bends; too many of these make
    no cells."""
    lower, upper = (np.asarray(corner, float) for corner in problem.domain.bounding_box)
    lines = grid_lines(list(problem.data().values()), lower, upper, kinks=True)
    if _cells(lines) > LARGEST_GRID:
        lines = _bending(problem, lines, lower, upper)
    if _cells(lines) > LARGEST_GRID:
        return []
    return [(x - low) / (high - low) for x, low, high in zip(lines, lower, upper, strict=True)]


def _cells(lines: Sequence[Array]) -> float:
    return float(np.prod([len(each) + 1.0 for each in lines]))


def _bending(
    problem: AbstractProblem, lines: list[Array], lower: Array, upper: Array
) -> list[Array]:
    """The lines on whose sides the slopes of the data differ, in the middles of cells: an empty
    part of a table needs none."""
    if _cells(lines) > LOOKED_AT:
        return lines
    functions = list(problem.data().values())
    slopes = jax.jit(
        jax.vmap(jax.jacfwd(lambda x: jnp.concatenate([jnp.ravel(each(x)) for each in functions])))
    )
    ends = [np.array([low, *x, high]) for x, low, high in zip(lines, lower, upper, strict=True)]
    middles, found = [(each[1:] + each[:-1]) / 2 for each in ends], []
    for axis, places in enumerate(lines):
        step = np.zeros(len(lower))
        step[axis] = BESIDE * float(np.min(np.diff(ends[axis])))
        grid = [places if k == axis else middles[k] for k in range(len(lines))]
        x = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
        flat = x.reshape(-1, len(lower))
        sides = [np.asarray(in_blocks(slopes, (flat + sign * step,))) for sign in (1.0, -1.0)]
        jumps = np.max(np.abs(sides[0] - sides[1]), axis=(1, 2)).reshape(x.shape[:-1])
        others = tuple(k for k in range(len(lines)) if k != axis)
        largest = np.max(jumps, axis=others) if len(places) else np.zeros(0)
        found.append(places[largest > BEND * np.max(largest, initial=0.0)])
    return found
