"""Cells that are halved where two rules disagree, until they agree on all integrals that matter."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cordes.certificates.residual.cells import CellMesh, CellNodes, UnitCells, joined_cells
from cordes.certificates.residual.norms import AGREEMENT

# In the plane a cell with more than this share of all differences is cut into eight slices at once,
# others into two.
OUTSTANDING = 0.03
# A cell with more than this share of an integral is heavy.
HEAVY = 0.03
# Refinement stops when n and 2n points agree on the integral, the last refinement has changed it no
# more than that, and the differences in single cells, which partly cancel, sum to this share (in
# three dimensions the coarse rule has eight points per cell, and says less).
LOCAL_AGREEMENT = {1: 0.2, 2: 0.2, 3: 0.4}


def adaptive_nodes(
    mesh: CellMesh,
    evaluate: Callable[[np.ndarray], Any],
    indicator: Callable[[Any], np.ndarray],
    budget: int,
) -> tuple[CellNodes, Any]:
    """Points and what `evaluate` gives at them (a tree of arrays with the points along the first
    axis), refined where n and 2n points disagree.

    `indicator` maps that tree to non-negative densities (N, J), J integrals that matter. Cells are
    halved, in the direction of the greatest doubt, until n and 2n points agree, or `budget` points
    have been evaluated. Whether the totals agree is for the caller to judge.
    """
    cells, used, previous = mesh.cells, 0, None
    kept: list[tuple[CellNodes, Any, UnitCells]] = []
    while True:
        nodes = mesh.nodes(cells)
        used += len(nodes.x)
        kept.append((nodes, evaluate(nodes.x), cells))
        sums = [_cell_sums(nodes, indicator(seen), len(each.patch)) for nodes, seen, each in kept]
        coarse, fine, doubt = (np.concatenate(parts) for parts in zip(*sums, strict=True))
        total = np.maximum(np.sum(fine, axis=0), 1e-300)
        if not np.all(np.isfinite(total)):
            # A pole: halves of cells would be taken without end.
            break
        error = np.max(np.abs(fine - coarse) / total, axis=1)
        apart = np.max(np.abs(np.sum(fine - coarse, axis=0)) / total)
        change = np.inf if previous is None else np.max(np.abs(total - previous) / total)
        heavy = np.max(fine / total, axis=1) > HEAVY
        steep, longest = mesh.too_large(joined_cells([entry[2] for entry in kept]), heavy)
        agreed = np.sum(error) <= LOCAL_AGREEMENT[mesh.dimension] and apart <= AGREEMENT
        if agreed and change <= AGREEMENT and not np.any(steep):
            break
        previous = total
        order = np.argsort(-error)
        worst = order[: 1 + int(np.searchsorted(np.cumsum(error[order]), 0.7 * np.sum(error)))]
        allowed = int((budget - used) / (2 * len(nodes.x) / len(cells.patch)))
        if allowed < 1:
            break
        refined = np.zeros(len(error), int)
        refined[worst[:allowed]] = 1
        if mesh.dimension <= 2:
            refined[(refined > 0) & (error > OUTSTANDING * np.sum(error))] = 3
        doubted = np.argmax(np.max(np.abs(doubt) / total[None, :, None], axis=1), axis=1)
        axis = np.where(refined > 0, doubted, longest)
        refined[np.flatnonzero(steep & (refined == 0))[: max(allowed - len(worst), 0)]] = 1
        kept, cells = _remove(kept, refined, axis)
    return _collected(kept)


def _collected(kept: list[tuple[CellNodes, Any, UnitCells]]) -> tuple[CellNodes, Any]:
    """All points with what is known at them, the cells numbered through."""
    start = np.cumsum([0, *(len(cells.patch) for _, _, cells in kept)])
    numbered = [
        nodes._replace(cell=nodes.cell + first)
        for (nodes, _, _), first in zip(kept, start, strict=False)
    ]
    nodes = CellNodes(*(np.concatenate(parts) for parts in zip(*numbered, strict=True)))
    values = [seen for _, seen, _ in kept]
    return nodes, jax.tree.map(lambda *leaves: np.concatenate(leaves), *values)


def _cell_sums(
    nodes: CellNodes, density: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrals over each cell by the coarse and the fine rule, (count, J), and the doubt about
    each direction, (count, J, d)."""

    def sums(weight: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            found = [np.bincount(nodes.cell, weight * column, count) for column in density.T]
        return np.stack(found, axis=1)

    doubt = np.stack([sums(column) for column in nodes.doubt.T], axis=2)
    return sums(nodes.coarse), sums(nodes.fine), doubt


def _remove(kept: list, refined: np.ndarray, axis: np.ndarray) -> tuple[list, UnitCells]:
    """Take the cells to be refined out of what is kept, and return their slices, halved `refined`
    times along the given axes."""
    left, halves, start = [], [], 0
    for nodes, values, cells in kept:
        count = len(cells.patch)
        times, along = refined[start : start + count], axis[start : start + count]
        gone = times > 0
        start += count
        for time in np.unique(times[gone]):
            slices, direction = cells.take(times == time), along[times == time]
            for _ in range(time):
                slices, direction = slices.halves(direction), np.tile(direction, 2)
            halves.append(slices)
        if np.all(gone):
            continue
        stays = ~gone[nodes.cell]
        number = np.cumsum(~gone) - 1
        rest = CellNodes(*(part[stays] for part in nodes))._replace(cell=number[nodes.cell[stays]])
        seen = jax.tree.map(lambda leaf, stays=stays: leaf[stays], values)
        left.append((rest, seen, cells.take(~gone)))
    return left, joined_cells(halves)
