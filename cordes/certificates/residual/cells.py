"""Composite Gauss quadrature on cells that are split at interfaces and graded at singular points.

A cell is a box in the unit cube of a patch. It is integrated along lines: Gauss points in all
directions but one, and in that direction, which is chosen across the interface, Gauss points on
each piece between the zeros of the interface functions. So a jump of the integrand at a declared
interface costs no accuracy. A jump that nobody declared keeps n and 2n points apart, whatever the
refinement does within its budget.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cordes.domains.cylinder import is_box
from cordes.domains.domain import AbstractDomain
from cordes.domains.patches import Patch, patches
from cordes.domains.unit_cube import gauss_rule, tensor_rule
from cordes.problems.coefficients import at_points

# Points per direction in the coarse and in the fine rule, by dimension: the fine one has twice as
# many.
ORDERS = {1: (4, 8), 2: (3, 6), 3: (2, 4)}
# Next to an interface a line is cut once more at these shares of its length: answers are often
# worst there.
NEAR_INTERFACE = (1e-4, 1e-2, 0.15)
# Halvings of the cells at a singular point, and at a corner around which too little was seen: 2⁻⁴⁰
# is about 1e-12.
GRADED_LEVELS, CORNER_LEVELS = 2, 40
# An interface function that is smaller than this share of its size in a cell is zero there.
ON_INTERFACE = 1e-9
# Samples along a line in which sign changes of the interface functions are looked for.
LINE_SAMPLES = 9
ITERATIONS = 40
# The side of a cell over that of a box with a feature; how many cells are made for features.
LONGER = 2.5
LARGEST_START = {1: 1_000, 2: 1_500, 3: 1_500}
# A cell may be this much larger than a heavy one, and than the distance between the two.
GRADATION = 4.0


class UnitCells(NamedTuple):
    """Boxes lower < y < upper in the unit cubes of the patches."""

    patch: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def take(self, index: np.ndarray) -> "UnitCells":
        return UnitCells(*(part[index] for part in self))

    def children(self) -> "UnitCells":
        """Each cell cut in the middle of every axis."""
        d = self.lower.shape[1]
        middle = (self.lower + self.upper) / 2
        corners = np.array(list(itertools.product((False, True), repeat=d)))
        lower = np.where(corners, middle[:, None], self.lower[:, None]).reshape(-1, d)
        upper = np.where(corners, self.upper[:, None], middle[:, None]).reshape(-1, d)
        return UnitCells(np.repeat(self.patch, 2**d), lower, upper)

    def halves(self, axis: np.ndarray) -> "UnitCells":
        """Each cell cut in the middle of one axis."""
        rows = np.arange(len(self.patch))
        middle = (self.lower[rows, axis] + self.upper[rows, axis]) / 2
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[rows, axis], upper[rows, axis] = middle, middle
        return UnitCells(
            np.tile(self.patch, 2),
            np.concatenate([self.lower, lower]),
            np.concatenate([upper, self.upper]),
        )


class CellNodes(NamedTuple):
    """Points (N, d) with weights for the coarse and for the fine rule (a point belongs to one of
    them), the cell of each, and weights (N, d) whose sums with the integrand show in which
    direction the fine rule is least sure of itself."""

    x: np.ndarray
    coarse: np.ndarray
    fine: np.ndarray
    cell: np.ndarray
    doubt: np.ndarray


class CellMesh:
    """The cells of a domain and the interfaces that cut them."""

    def __init__(
        self,
        domain: AbstractDomain,
        interfaces: Sequence[Callable] = (),
        singular: np.ndarray | None = None,
    ):
        self.patches: list[Patch] = patches(domain)
        self._straight, self._convex = is_box(domain), domain.convex
        self.dimension = domain.dimension
        self._heights = None
        if interfaces:
            self._heights = at_points(
                lambda x: jnp.stack([jnp.asarray(phi(x), float) for phi in interfaces])
            )
        self.cells = self._start()
        for location in np.zeros((0, self.dimension)) if singular is None else singular:
            self.grade(location)

    def _start(self) -> UnitCells:
        parts = []
        for k, patch in enumerate(self.patches):
            lower = np.array(list(itertools.product(*(cuts[:-1] for cuts in patch.cuts))))
            upper = np.array(list(itertools.product(*(cuts[1:] for cuts in patch.cuts))))
            parts.append(UnitCells(np.full(len(lower), k), lower, upper))
        return joined_cells(parts)

    def cut(self, lines: Sequence[np.ndarray]) -> None:
        """Cut all cells at lines along the axes of the unit cubes."""
        for axis, places in enumerate(lines):
            for place in places:
                lower, upper = self.cells.lower[:, axis], self.cells.upper[:, axis]
                crossed = self.cells.take((lower < place) & (place < upper))
                below, above = (UnitCells(*(part.copy() for part in crossed)) for _ in range(2))
                below.upper[:, axis] = above.lower[:, axis] = place
                whole = self.cells.take((upper <= place) | (place <= lower))
                self.cells = joined_cells([whole, below, above])

    def grade(self, location: np.ndarray, levels: int = GRADED_LEVELS) -> None:
        """Cut the cells that touch a point, again and again; those of strips, which may end in a
        point, along their longer side."""
        for _ in range(levels if self._convex else 2 * levels):
            lattice = self._lattice_points(self.cells)
            gap = np.min(np.linalg.norm(lattice - location, axis=2), axis=1)
            size = np.max(np.linalg.norm(lattice - lattice[:, :1], axis=2), axis=1)
            touching = gap <= 0.25 * size
            parts = self.cells.take(touching)
            longest = np.argmax(_lengths(lattice[touching]), axis=1)
            parts = parts.children() if self._convex else parts.halves(longest)
            self.cells = joined_cells([self.cells.take(~touching), parts])

    def follow(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Cut cells until none is much longer, along any axis, than a box that it meets: something
        happens in these boxes on their scale. The smallest boxes come first, so that what is all
        over the domain does not use up the cells; how many times too long cells stay then."""
        sides, excess = upper - lower, np.zeros((0, self.dimension))
        while len(lower):
            lattice = self._lattice_points(self.cells)
            low, high = np.min(lattice, axis=1), np.max(lattice, axis=1)
            meets = np.all((low[:, None] < upper) & (lower < high[:, None]), axis=2)
            smallest = np.min(np.where(meets[..., None], sides, np.inf), axis=1)
            excess = (high - low) / (LONGER * smallest)
            coarse = excess > max(1.0, np.max(excess) / 2)
            parts = self._cut(coarse)
            if not np.any(coarse) or len(parts.patch) > LARGEST_START[self.dimension]:
                break
            self.cells = parts
        return float(np.max(excess, initial=0.0))

    def _cut(self, coarse: np.ndarray) -> UnitCells:
        """The cells cut along the axes marked; in patches that turn axes along all of them."""
        if not self._straight:
            some = np.any(coarse, axis=1)
            return joined_cells([self.cells.take(~some), self.cells.take(some).children()])
        cells = self.cells
        for axis in range(self.dimension):
            here = coarse[:, axis]
            halves = cells.take(here).halves(np.full(int(np.sum(here)), axis))
            cells = joined_cells([cells.take(~here), halves])
            coarse = np.concatenate([coarse[~here], coarse[here], coarse[here]])
        return cells

    def _lattice_points(self, cells: UnitCells) -> np.ndarray:
        """Images of the 3ᵈ corners, middles of edges and centres of each cell, (K, 3ᵈ, d)."""
        lattice = np.array(list(itertools.product((0.0, 0.5, 1.0), repeat=self.dimension)))
        y = cells.lower[:, None] + lattice * (cells.upper - cells.lower)[:, None]
        x, _ = self._map(np.repeat(cells.patch, len(lattice)), y.reshape(-1, self.dimension))
        return x.reshape(y.shape)

    def too_large(self, cells: UnitCells, heavy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which cells are much larger than a heavy one nearby, and the axis along which each cell
        is longest.

        A peak on the edge of a small cell reaches into its neighbour: a large one may miss it with
        all its points, where both rules then agree on nothing.
        """
        lattice = self._lattice_points(cells)
        lengths = _lengths(lattice)
        center = lattice[:, lattice.shape[1] // 2]
        size = np.max(lengths, axis=1)
        steep = np.zeros(len(size), bool)
        for k in np.flatnonzero(heavy) if self.dimension <= 2 else ():
            gap = np.maximum(np.linalg.norm(center - center[k], axis=1) - size / 2, 0.0)
            steep |= size > GRADATION * (size[k] + gap)
        return steep, np.argmax(lengths, axis=1)

    def _map(self, patch: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, jacobian = np.empty_like(y), np.empty(len(y))
        for k, each in enumerate(self.patches):
            here = patch == k
            if np.any(here):
                x[here], jacobian[here] = each.map(y[here])
        return x, jacobian

    def _transversal(self, cells: UnitCells) -> tuple[np.ndarray, np.ndarray]:
        """For each cell the axis along which an interface that cuts it changes most (the last one
        if none does), and whether it is cut."""
        axis, cut = np.full(len(cells.patch), self.dimension - 1), np.zeros(len(cells.patch), bool)
        if self._heights is None:
            return axis, cut
        lattice = self._lattice_points(cells)
        heights = self._heights(lattice.reshape(-1, self.dimension)).reshape(*lattice.shape[:2], -1)
        cube, axes = (
            heights.reshape(len(heights), *(3,) * self.dimension, -1),
            range(self.dimension),
        )
        inner = tuple(1 + k for k in axes)
        slopes = [np.mean(np.abs(np.diff(cube, axis=1 + k)), axis=inner) for k in axes]
        # A cell that an interface bounds counts as cut: what happens next to it must not be missed.
        slack = ON_INTERFACE * np.max(np.abs(heights), axis=1)
        changes = (np.min(heights, axis=1) < slack) & (np.max(heights, axis=1) > -slack)
        for k in range(heights.shape[2]):
            here = changes[:, k] & ~cut
            axis[here] = np.argmax(np.stack([slope[here, k] for slope in slopes], axis=1), axis=1)
            cut |= changes[:, k]
        return axis, cut

    def nodes(self, cells: UnitCells) -> CellNodes:
        """The points of the coarse and the fine rule on each cell."""
        axis, cut = self._transversal(cells)
        coarse, fine = (self._rule(cells, axis, cut, order) for order in ORDERS[self.dimension])
        coarse = coarse._replace(fine=np.zeros_like(coarse.fine), doubt=np.zeros_like(coarse.doubt))
        fine = fine._replace(coarse=np.zeros_like(fine.coarse))
        return CellNodes(*(np.concatenate(pair) for pair in zip(coarse, fine, strict=True)))

    def _rule(self, cells: UnitCells, axis: np.ndarray, cut: np.ndarray, order: int) -> CellNodes:
        """The points of one rule, whose weights stand for both."""
        d, count = self.dimension, len(cells.patch)
        nodes, weights = gauss_rule(order)
        change = _embedded_change(order)
        across, across_weight = np.zeros((1, 0)), np.ones(1)
        if d > 1:
            across, across_weight = tensor_rule([(nodes, weights)] * (d - 1))
        lines = len(across)
        number = np.indices([order] * (d - 1)).reshape(d - 1, lines).T
        # Unit coordinates with the line direction last, brought to its place by exchanging it with
        # the last axis.
        start = np.zeros((count, lines, d))
        start[:, :, :-1] = across
        here = np.arange(count)
        start[here, :, -1] = start[here, :, axis]
        start[here, :, axis] = 0.0
        cell = np.repeat(here, lines)
        line = _Lines(start.reshape(-1, d), axis[cell], cell)
        pieces, low, high = self._pieces(cells, line, cut)
        along = low[:, None] + (high - low)[:, None] * nodes
        y = np.repeat(line.start[pieces][:, None], order, axis=1)
        y[np.arange(len(pieces))[:, None], np.arange(order), line.axis[pieces][:, None]] = along
        owner = np.repeat(line.cell[pieces], order)
        size = cells.upper - cells.lower
        x, jacobian = self._map(
            cells.patch[owner], cells.lower[owner] + y.reshape(-1, d) * size[owner]
        )
        unit = np.tile(across_weight, count)[pieces][:, None] * (high - low)[:, None]
        weight = (unit * weights).ravel() * np.prod(size, axis=1)[owner] * jacobian
        # Relative change of the weight if the rule in one direction is replaced by its embedded
        # one.
        relative = np.empty((len(pieces), order, d))
        relative[:, :, -1] = change
        relative[:, :, :-1] = change[np.tile(number, (count, 1))[pieces]][:, None]
        place = line.axis[pieces]
        rows = np.arange(len(pieces))
        last, own = relative[rows, :, -1].copy(), relative[rows, :, place].copy()
        relative[rows, :, -1] = own
        relative[rows, :, place] = last
        return CellNodes(x, weight, weight, owner, weight[:, None] * relative.reshape(-1, d))

    def _pieces(
        self, cells: UnitCells, line: "_Lines", cut: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each line cut at the zeros of the interface functions: number of the line, start and end
        of each piece in (0, 1)."""
        everything = np.arange(len(line.cell))
        wanted = np.flatnonzero(cut[line.cell])
        if not len(wanted):
            return everything, np.zeros(len(everything)), np.ones(len(everything))
        assert self._heights is not None
        heights_at = self._heights

        def heights(index: np.ndarray, s: np.ndarray) -> np.ndarray:
            y = line.start[index].copy()
            y[np.arange(len(index)), line.axis[index]] = s
            owner = line.cell[index]
            size = cells.upper - cells.lower
            x, _ = self._map(cells.patch[owner], cells.lower[owner] + y * size[owner])
            return heights_at(x)

        samples = np.linspace(0, 1, LINE_SAMPLES)
        table = np.stack([heights(wanted, np.full(len(wanted), s)) for s in samples])
        step, which, phi = np.nonzero((table[:-1] > 0) != (table[1:] > 0))
        number, rows = wanted[which], np.arange(len(which))
        ends = (samples[step], samples[step + 1])
        values = (table[step, which, phi], table[step + 1, which, phi])
        zero = np.zeros(0)
        if len(which):
            zero = _zeros(lambda s: heights(wanted[which], s)[rows, phi], *ends, *values)
        slack = ON_INTERFACE * np.max(np.abs(table), axis=0)
        for end in (0, -1):
            bounded = wanted[np.any(np.abs(table[end]) <= slack, axis=1)]
            number = np.concatenate([number, bounded])
            zero = np.concatenate([zero, np.full(len(bounded), samples[end])])
        shares = [share * side for share in NEAR_INTERFACE for side in (-1.0, 1.0)]
        near = [(zero + share).clip(0, 1) for share in shares]
        owner = np.concatenate([everything, number, *[number] * len(near), everything])
        place = np.concatenate([np.zeros(len(everything)), zero, *near, np.ones(len(everything))])
        order = np.lexsort([place, owner])
        owner, place = owner[order], place[order]
        inside = (owner[1:] == owner[:-1]) & (place[1:] > place[:-1] + 1e-13)
        return owner[:-1][inside], place[:-1][inside], place[1:][inside]


def _lengths(lattice: np.ndarray) -> np.ndarray:
    """How long cells are along each axis, from their lattice points (K, 3ᵈ, d)."""
    # The numbers of the lattice points next to the first one, and next to the last.
    steps = 2 * 3 ** np.arange(lattice.shape[2])[::-1]
    near, far = lattice[:, steps] - lattice[:, :1], lattice[:, -1:] - lattice[:, -1 - steps]
    # Opposite edges differ in a patch of triangles or rays: the longer one counts.
    return np.maximum(np.linalg.norm(near, axis=2), np.linalg.norm(far, axis=2))


def _zeros(
    function: Callable[[np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    at_low: np.ndarray,
    at_high: np.ndarray,
) -> np.ndarray:
    """Zeros between ends of opposite sign by regula falsi with the Illinois modification: two steps
    where an interface is straight, few otherwise."""
    last = np.zeros(len(low))
    zero = (low + high) / 2
    for _ in range(ITERATIONS):
        before, gap = zero, at_high - at_low
        secant = (low * at_high - high * at_low) / np.where(gap != 0, gap, 1.0)
        zero = np.clip(np.where(gap != 0, secant, (low + high) / 2), low, high)
        if np.max(np.abs(zero - before)) <= 1e-14:
            break
        value = function(zero)
        left = (value > 0) == (at_low > 0)
        # An end that stays twice in a row gets half its value, so that it moves at last.
        at_high = np.where(left & (last > 0), at_high / 2, at_high)
        at_low = np.where(~left & (last < 0), at_low / 2, at_low)
        low, at_low = np.where(left, zero, low), np.where(left, value, at_low)
        high, at_high = np.where(left, high, zero), np.where(left, at_high, value)
        last = np.where(left, 1.0, -1.0)
    return zero


@functools.cache
def _embedded_change(order: int) -> np.ndarray:
    """Relative change of the Gauss weights when every second node is left out and the others
    integrate what they can: a cheap second opinion."""
    nodes, weights = gauss_rule(order)
    kept = np.arange(0, order, 2)
    if order % 2 == 0:
        half = np.arange(0, order // 2, 2)
        kept = np.union1d(half, order - 1 - half)
    powers = np.arange(len(kept))
    embedded = np.zeros(order)
    embedded[kept] = np.linalg.solve(nodes[kept][None] ** powers[:, None], 1 / (powers + 1))
    return embedded / weights - 1


class _Lines(NamedTuple):
    start: np.ndarray
    axis: np.ndarray
    cell: np.ndarray


def joined_cells(parts: Sequence[UnitCells]) -> UnitCells:
    return UnitCells(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
