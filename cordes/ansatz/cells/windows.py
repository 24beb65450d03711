"""From polynomials on cells to one function: u = Σ ψ_K p_K / Σ ψ_K, where the window ψ_K is a
product of C² steps that reach a little beyond each side of its cell.

So an answer that was broken while it was sought is C², and its residual is one that theorems may
use. Where only one window is not zero the function is the polynomial of the cell.
"""

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from cordes.ansatz.cells.tree import Tree

# How far a window reaches beyond a side, over the shorter of the two cells that meet there.
REACH = 0.05
# Rows of cells that are compared with all others at once.
ROWS = 512


class Windows(eqx.Module):
    """For each cell how far its window reaches beyond each side (n, 2d), infinite where the side
    lies on the boundary, or of one variable at a line, where polynomials are joined; the cells (n,
    m) whose windows reach into it, itself first, -1 for none."""

    reach: np.ndarray
    members: np.ndarray


class Steps(NamedTuple):
    """A window along one axis with two derivatives."""

    value: Any
    first: Any
    second: Any


def smoothstep(t: Any, numbers: Any = np) -> Steps:
    """From 0 at 0 to 1 at 1 with two continuous derivatives."""
    s = numbers.clip(t, 0.0, 1.0)
    return Steps(
        s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2, 60 * s * (1 - s) * (1 - 2 * s)
    )


def along(x: Any, low: Any, high: Any, below: Any, above: Any, numbers: Any = np) -> Steps:
    """The factor of a window along one axis; beyond a reach that is infinite there is nothing."""
    free = numbers.isinf(below), numbers.isinf(above)
    below, above = (numbers.where(numbers.isinf(each), 1.0, each) for each in (below, above))
    rise, fall = 1 / (2 * below), -1 / (2 * above)
    up = smoothstep((x - low + below) * rise, numbers)
    down = smoothstep((x - high - above) * fall, numbers)
    up, up1, up2 = _or_one(free[0], up, rise, numbers)
    down, down1, down2 = _or_one(free[1], down, fall, numbers)
    return Steps(up * down, up1 * down + up * down1, up2 * down + 2 * up1 * down1 + up * down2)


def _or_one(free: Any, step: Steps, slope: Any, numbers: Any) -> Steps:
    value, first, second = step
    return Steps(
        numbers.where(free, 1.0, value),
        numbers.where(free, 0.0, first * slope),
        numbers.where(free, 0.0, second * slope**2),
    )


def make_windows(tree: Tree, hidden: np.ndarray) -> Windows:
    """`hidden` cells have no window: those of their neighbours reach as far as there is something
    of the domain."""
    lower, upper = tree.boxes
    d = tree.dimension
    sides = np.repeat(upper - lower, 2, axis=1)
    outer = tree.outer | tree.at_lines if d == 1 else tree.outer
    reach, alone = sides.copy(), ~outer
    for one, other in _touching(tree.cells[:, :, 0], tree.cells[:, :, 1]):
        shown = ~hidden[one] & ~hidden[other]
        one, other = one[shown], other[shown]
        for axis in range(d):
            meets = tree.cells[one, axis, 1] == tree.cells[other, axis, 0]
            for across in range(d):
                if across != axis:
                    meets &= _overlap(tree.cells, one, other, across) > 0
            left, right = one[meets], other[meets]
            for cells, side, others in ((left, 2 * axis + 1, right), (right, 2 * axis, left)):
                np.minimum.at(reach[:, side], cells, sides[others, 2 * axis])
                alone[cells, side] = False
    reach = np.where(alone | outer, np.inf, REACH * reach)
    # As far as a window is looked for.
    finite = np.where(outer, 0.0, np.where(alone, sides, reach))
    finite[hidden] = -np.inf
    pairs = list(_touching(lower - finite[:, ::2], upper + finite[:, 1::2], lower, upper))
    windows, cells = (np.concatenate(each) for each in zip(*pairs, strict=True))
    windows, cells = windows[windows != cells], cells[windows != cells]
    order = np.argsort(cells, kind="stable")
    windows, cells = windows[order], cells[order]
    counts = np.bincount(cells, minlength=tree.count)
    members = np.full((tree.count, 1 + int(np.max(counts, initial=0))), -1)
    members[:, 0] = np.arange(tree.count)
    place = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
    members[cells, 1 + place] = windows
    # In the place of a hidden cell the next one.
    members[hidden, :-1] = members[hidden, 1:]
    members[hidden, -1] = -1
    return Windows(reach, members)


def _overlap(cells: np.ndarray, one: np.ndarray, other: np.ndarray, axis: int) -> np.ndarray:
    low = np.maximum(cells[one, axis, 0], cells[other, axis, 0])
    return np.minimum(cells[one, axis, 1], cells[other, axis, 1]) - low


def _touching(
    lower: np.ndarray,
    upper: np.ndarray,
    others_lower: np.ndarray | None = None,
    others_upper: np.ndarray | None = None,
) -> Any:
    """Pairs of boxes that have a point in common, in parts; with others inner points count."""
    strict = others_lower is not None
    low = lower if others_lower is None else others_lower
    high = upper if others_upper is None else others_upper
    for k in range(0, len(lower), ROWS):
        part = slice(k, k + ROWS)
        meets = np.ones((len(lower[part]), len(low)), bool)
        for axis in range(lower.shape[1]):
            from_below = lower[part, axis, None], high[None, :, axis]
            from_above = low[None, :, axis], upper[part, axis, None]
            for small, large in (from_below, from_above):
                meets &= small < large if strict else small <= large
        one, other = np.nonzero(meets)
        yield one + k, other
