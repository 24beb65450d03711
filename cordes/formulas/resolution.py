"""Where formulas have small features: boxes in each of which all of them are close to polynomials
of moderate degree, so that what happens inside cannot hide between a few points.

On a box a formula is resolved if it continues to an ellipse on which a bound of it makes the
remainder of interpolation small, branch by branch where comparisons are undecided; or if it hardly
varies. Other boxes are cut, down to a smallest size, and the more the larger the variation that is
possible in them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.intervals.suprema import outside_of
from cordes.formulas.rectangles import Neighbourhoods, RectangleProgram
from cordes.runtime.blocks import in_blocks
from cordes.runtime.clock import check_deadline

Array = np.ndarray
RHO = np.array([1.4, 2.0, 3.2, 6.0, 15.0])
# Points of interpolation, and what it may leave out, as a share of the largest value.
DEGREE, ACCURACY = {1: 24, 2: 24, 3: 14}, 1e-10
START = {1: 8, 2: 4, 3: 2}
# Branches of one box that are tried one by one.
BRANCHES = 8
# How often a box is halved in each direction: always if something in it is not resolved, and
# further if it may vary by this share of the largest value.
DEPTH, VARIATION, DEEPEST = {1: 12, 2: 4, 3: 3}, 0.5, {1: 30, 2: 14, 3: 14}
LARGEST_COUNT, BATCH = {1: 4_000, 2: 8_000, 3: 8_000}, 1024
# Points per direction at which choices are looked at.
LATTICE = {1: 9, 2: 5, 3: 3}
DECIDED, TWO_SIDES, ONE_SIDE, ISLAND = range(4)
# A side that fewer of the points take is as good as not seen.
SCARCE = 0.2
# A side of a box that is so many times as long as the shortest one is cut into pieces first.
ELONGATED = 4.0
# Numbers that are held at once; and numbers in a formula beyond which it is no formula that a
# person wrote, but a network: it has no small features, and rectangles would take long.
NUMBERS, LARGEST_FORMULA = 10_000_000, 5_000


class Boxes(NamedTuple):
    """Boxes (N, d) that cover a domain; whether all formulas are resolved in each, and whether it
    was made for a feature: what was cut along a kink alone has none."""

    lower: Array
    upper: Array
    resolved: Array
    feature: Array

    def features(self) -> "Boxes":
        return Boxes(*(part[self.feature] for part in self))


class Formula:
    """One function of a point, looked at over boxes. `scale` is the largest value seen so far."""

    def __init__(self, function: Callable, domain: AbstractDomain):
        def flat(x: jax.Array) -> jax.Array:
            return jnp.ravel(jnp.asarray(function(x), float))

        self.program = RectangleProgram(flat, domain.dimension)
        compiled = jax.jit(jax.vmap(flat))
        self._values = lambda x: in_blocks(compiled, (x,))
        self.constant = all(value.constant is not None for value in self.program.trace.outputs)
        self.size = 1 + sum(step.numbers.size for step in self.program.trace.steps)
        self.scale = 0.0

    def look(self, x: Array) -> None:
        values = np.abs(self._values(x))
        self.scale = max(self.scale, float(np.max(values, initial=0.0, where=np.isfinite(values))))

    def remainders(self, lower: Array, upper: Array) -> tuple[Array, ...]:
        """`_remainders`, for so many boxes at a time as memory allows."""
        rows = max(NUMBERS // (self.size * len(RHO) * lower.shape[1]), 1)
        parts = [
            self._remainders(lower[k : k + rows], upper[k : k + rows])
            for k in range(0, len(lower), rows)
        ]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))

    def _remainders(self, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
        """What interpolation leaves out along each axis (C, d), infinite where there is no ellipse;
        how much the formula may vary over each box (C,); and how choices inside look at the points
        of a lattice: DECIDED, ONE_SIDE, TWO_SIDES, or ISLAND, there and back along a line."""
        near = Neighbourhoods(lower, upper, RHO)
        found = self.program.run(near)
        size = np.max(found.complex[0].size(), axis=1)
        bound = np.array(near.sorted(np.where(np.isnan(size), np.inf, size)))
        width = np.max(found.real[0].upper - found.real[0].lower, axis=1)
        width = np.where(np.isnan(width), np.inf, width)
        sides = np.full(len(lower), DECIDED)
        rows = np.flatnonzero(np.any(found.undecided, axis=1) & (width > ACCURACY * self.scale))
        if len(rows):
            bound[rows] = self._branches(lower[rows], upper[rows], found.undecided[rows])
            sides[rows] = self._sides(lower[rows], upper[rows], found.undecided[rows])
        with np.errstate(all="ignore"):
            rest = 4 * bound * RHO ** (1.0 - DEGREE[lower.shape[1]]) / (RHO - 1)
        return np.min(np.where(np.isnan(rest), np.inf, rest), axis=2), width, sides

    def _sides(self, lower: Array, upper: Array, undecided: Array) -> Array:
        """How undecided choices look at a lattice of points, see `remainders`."""
        d, n = lower.shape[1], LATTICE[lower.shape[1]]
        ticks = (np.arange(n) + 0.5) / n
        grid = np.array(list(itertools.product(ticks, repeat=d)))
        x = (lower[:, None] + grid * (upper - lower)[:, None]).reshape(-1, d)
        rows = max(NUMBERS // (self.size * d), 1)
        parts = [x[k : k + rows] for k in range(0, len(x), rows)]
        outcomes = np.concatenate(
            [self.program.run(Neighbourhoods(y, y, RHO[:1])).outcomes for y in parts]
        )
        cube = outcomes.reshape(len(lower), *(n,) * d, -1)
        turns = [np.sum(np.diff(cube, axis=k + 1) != 0, axis=k + 1) for k in range(d)]
        most = np.max(
            [np.max(t.reshape(len(lower), -1, t.shape[-1]), axis=1) for t in turns], axis=0
        )
        flat = outcomes.reshape(len(lower), len(grid), -1)
        share = np.mean(flat != flat[:, :1], axis=1)
        scarce = np.minimum(share, 1 - share) < SCARCE
        found = np.where(most > 1, ISLAND, np.where(scarce, ONE_SIDE, TWO_SIDES))
        return np.max(np.where(undecided, found, DECIDED), axis=1)

    def _branches(self, lower: Array, upper: Array, undecided: Array) -> Array:
        """Bounds on ellipses of the worst branch of each box."""
        outcomes = self.program.intervals.switchboard.outcomes
        bound = np.full((len(lower), lower.shape[1], len(RHO)), np.inf)
        for pattern in np.unique(undecided, axis=0):
            rows = np.flatnonzero(np.all(undecided == pattern, axis=1))
            switches = np.flatnonzero(pattern)
            if math.prod(len(outcomes[k]) for k in switches) > BRANCHES:
                continue
            choices = itertools.product(*(outcomes[k] for k in switches))
            near = Neighbourhoods(lower[rows], upper[rows], RHO)
            worst = np.zeros((len(rows), lower.shape[1], len(RHO)))
            for choice in choices:
                forced = np.full((len(rows), len(outcomes)), np.nan)
                forced[:, switches] = choice
                size = np.max(self.program.run(near, forced).complex[0].size(), axis=1)
                worst = np.maximum(worst, near.sorted(np.where(np.isnan(size), np.inf, size)))
            bound[rows] = worst
        return bound


def resolved_boxes(
    functions: Sequence[Callable], domain: AbstractDomain, to_the_end: bool = False
) -> Boxes:
    """Boxes that cover the domain, cut where a formula is not resolved. Formulas with an operation
    that has no enclosure, and very long ones, are left out: they can hide what they want.

    Where there are more boxes than can be looked at, the search ends with all of them; or, if it is
    to go `to_the_end`, it goes on in those that may vary most."""
    d = domain.dimension
    formulas = [each for each in map(lambda f: _formula(f, domain), functions) if each is not None]
    low, high = (np.asarray(corner, float) for corner in domain.bounding_box)
    index = np.array(list(itertools.product(range(START[d]), repeat=d)))
    lower, upper = (low + (index + k) / START[d] * (high - low) for k in (0, 1))
    boxes = Open(lower, upper, np.zeros(lower.shape, int), *np.zeros((2, len(lower)), bool))
    outside, done, count = outside_of(domain), [], 0
    for formula in formulas:
        formula.look(domain.interior_points(256, seed=0, kind="sobol"))
    while len(boxes.lower):
        check_deadline()
        boxes = boxes.take(~outside(boxes.lower, boxes.upper))
        count += len(boxes.lower)
        verdict = _cut(formulas, boxes, high - low)
        cut = np.any(verdict.axes, axis=1)
        stays = ~(cut & _affordable(verdict, LARGEST_COUNT[d] - count, to_the_end))
        feature = boxes.feature | (boxes.searched & verdict.two_sides)
        parts = (boxes.lower, boxes.upper, ~cut, feature)
        done.append(tuple(part[stays] for part in parts))
        boxes = _halves(boxes, verdict, ~stays)
    return Boxes(*(np.concatenate(parts) for parts in zip(*done, strict=True)))


def _affordable(verdict: "Verdict", room: int, some: bool) -> Array:
    """Which boxes are cut where so many more can be looked at: all of them, or none, or `some`,
    those that may vary most in half of the room, so that the search goes on where something may
    hide and does not end in front of many kinks."""
    children = np.where(np.any(verdict.axes, axis=1), 2 ** np.sum(verdict.axes, axis=1), 0)
    if np.sum(children) <= room:
        return np.ones(len(children), bool)
    chosen = np.zeros(len(children), bool)
    if some:
        order = np.argsort(-verdict.variation, kind="stable")
        chosen[order[np.cumsum(children[order]) <= room / 2]] = True
    return chosen


def more_halvings(widths: Array) -> Array:
    """How often the sides of a long box are halved before they are as short as the others: features
    know nothing of the shape of a domain."""
    ratio = widths / np.min(widths)
    return np.where(ratio >= ELONGATED, np.floor(np.log2(ratio)), 0.0)


def why_opaque(
    function: Callable, domain: AbstractDomain, most: float = LARGEST_FORMULA
) -> str | None:
    """Why a function can hide what it wants from `resolved_boxes`: an operation without enclosure,
    or more numbers than `most`; None where it cannot."""
    try:
        formula = Formula(function, domain)
    except UnsupportedOperation as error:
        return str(error).rstrip(".")
    if formula.constant or formula.size <= most:
        return None
    return f"its formula has {formula.size:,} numbers"


def _formula(function: Callable, domain: AbstractDomain) -> Formula | None:
    try:
        formula = Formula(function, domain)
    except UnsupportedOperation:
        return None
    return None if formula.constant or formula.size > LARGEST_FORMULA else formula


class Open(NamedTuple):
    """Boxes that are looked at: how often each was halved along each axis, whether its parent was
    cut for a feature, and whether because one side alone of a choice was seen in it."""

    lower: Array
    upper: Array
    depth: Array
    feature: Array
    searched: Array

    def take(self, index: Array) -> "Open":
        return Open(*(part[index] for part in self))


class Verdict(NamedTuple):
    """Along which axes boxes are cut (C, d), which of them for a feature, which because points see
    one side alone, in which ones both sides of a choice are seen; and how much a formula may vary
    in each, as a share of its largest value."""

    axes: Array
    feature: Array
    searched: Array
    two_sides: Array
    variation: Array


def _cut(formulas: Sequence[Formula], boxes: Open, widths: Array) -> Verdict:
    lower, upper, depth = boxes[:3]
    d = lower.shape[1]
    feature, searched, two_sides = np.zeros((3, len(lower)), bool)
    axes, variation = np.zeros(lower.shape, bool), np.zeros(len(lower))
    verdict = Verdict(axes, feature, searched, two_sides, variation)
    more = more_halvings(widths)
    for k in range(0, len(lower), BATCH):
        rows = slice(k, k + BATCH)
        share = (upper[rows] - lower[rows]) / widths * 2**more
        long = share > 0.51 * np.max(share, axis=1, keepdims=True)
        for formula in formulas:
            formula.look((lower[rows] + upper[rows]) / 2)
            rest, width, sides = formula.remainders(lower[rows], upper[rows])
            unclear, one_side = ~np.all(np.isfinite(rest), axis=1), sides == ONE_SIDE
            shallow = unclear & ~(width > VARIATION * formula.scale)
            rough = unclear | (sides >= ONE_SIDE)
            reached = np.max(depth[rows] - more, axis=1) >= np.where(shallow, DEPTH[d], DEEPEST[d])
            wanted = np.where(rough[:, None], long, rest > ACCURACY * formula.scale)
            wanted = wanted & ((width > ACCURACY * formula.scale) & ~reached)[:, None]
            cut = np.any(wanted, axis=1)
            verdict.axes[rows] |= wanted
            verdict.feature[rows] |= cut & ~(shallow | one_side)
            verdict.searched[rows] |= cut & one_side
            verdict.two_sides[rows] |= (sides == TWO_SIDES) & (width > ACCURACY * formula.scale)
            possible = np.where(cut, width / (formula.scale or 1.0), 0.0)
            verdict.variation[rows] = np.maximum(verdict.variation[rows], possible)
    return verdict


def _halves(boxes: Open, verdict: Verdict, chosen: Array) -> Open:
    """The chosen boxes, cut along their axes."""
    lower, upper, depth = (part[chosen] for part in boxes[:3])
    axes = verdict.axes[chosen]
    marks = np.stack([verdict.feature[chosen], verdict.searched[chosen]])
    for axis in range(lower.shape[1]):
        here = axes[:, axis]
        middle = (lower[here, axis] + upper[here, axis]) / 2
        second, first = lower[here].copy(), upper.copy()
        second[:, axis], first[here, axis] = middle, middle
        deeper = depth.copy()
        deeper[here, axis] += 1
        lower, upper = np.concatenate([lower, second]), np.concatenate([first, upper[here]])
        depth, axes = np.concatenate([deeper, deeper[here]]), np.concatenate([axes, axes[here]])
        marks = np.concatenate([marks, marks[:, here]], axis=1)
    return Open(lower, upper, depth, *marks)
