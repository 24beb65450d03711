"""Boxes in which no window of a cell begins or ends: there an answer by cells is one formula."""

from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.network import CellPolynomials

Array = np.ndarray
# What is nearer to a line than this share of its cell lies at it.
SLACK = 1e-9
MOST_ROUNDS = 64


class Regions(NamedTuple):
    """The boxes (R, d), the cells in which they lie, and the cells (R, m) whose windows are not
    zero there, -1 for none."""

    lower: Array
    upper: Array
    cell: Array
    members: Array


def regions_of(network: CellPolynomials) -> Regions:
    """Each cell is cut where a window that is not zero there begins or ends: at first at the ends
    of its own. Those in which nothing is blended are left out."""
    lower, upper = network.tree.boxes
    cell = np.arange(len(lower))
    low, high, done = lower.copy(), upper.copy(), []
    for _ in range(MOST_ROUNDS):
        slack = SLACK * (upper - lower)[cell]
        members, ends = _ends(network, cell)
        inside = (low + slack)[:, None] < ends[..., 3]
        inside &= (high - slack)[:, None] > ends[..., 0]
        reached = (members >= 0) & np.all(inside, axis=2)
        place, axis, cut = _first_line(low + slack, high - slack, ends, reached)
        blended = ~cut & (np.sum(reached, axis=1) > 1)
        here = np.where(reached, members, -1)[blended]
        done.append(Regions(low[blended], high[blended], cell[blended], here))
        if not np.any(cut):
            break
        rows = np.arange(int(np.sum(cut)))
        low, high, cell = low[cut], high[cut], cell[cut]
        first, second = high.copy(), low.copy()
        first[rows, axis[cut]] = second[rows, axis[cut]] = place[cut]
        low, high = np.concatenate([low, second]), np.concatenate([first, high])
        cell = np.concatenate([cell, cell])
    else:
        raise AssertionError("windows that begin and end everywhere")
    return Regions(*(np.concatenate(parts) for parts in zip(*done, strict=True)))


def _ends(network: CellPolynomials, cell: Array) -> tuple[Array, Array]:
    """The members of cells (B, m), and where the windows of these begin to rise and have risen,
    begin to fall and have fallen, (B, m, d, 4), infinite where there is no end."""
    members = network.windows.members[cell]
    lower, upper = (corner[members] for corner in network.tree.boxes)
    below, above = network.windows.reach[members, ::2], network.windows.reach[members, 1::2]
    # A window that has no end does not rise, but is there from the start.
    risen = np.where(np.isinf(below), -np.inf, lower + below)
    falls = np.where(np.isinf(above), np.inf, upper - above)
    return members, np.stack([lower - below, risen, falls, upper + above], axis=-1)


def _first_line(low: Array, high: Array, ends: Array, reached: Array) -> tuple[Array, Array, Array]:
    """The place and the axis of a line inside of each box, and whether there is one."""
    inside = (ends > low[:, None, :, None]) & (ends < high[:, None, :, None])
    flat = (inside & reached[:, :, None, None]).reshape(len(low), -1)
    first = np.argmax(flat, axis=1)
    place = ends.reshape(len(low), -1)[np.arange(len(low)), first]
    return place, first // 4 % low.shape[1], np.any(flat, axis=1)
