"""Kinks of initial values: where their slope jumps, along which plane, and which matrix smooths
them first.

The pairs of numbers that max, min and |·| compare (`initial_pieces`) are equal on a set that is
looked for along chords. Where it is a plane, a point in one dimension, everything is known of what
diffusion does there; where it bends, its tangent planes have to do.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.problems.kinks.initial_pieces import (
    ComparedPieces,
    UnknownPiecesError,
    differences,
    pieces_of,
    smoothed,
)

CHORDS, SEED, STEPS, HALVINGS = 256, 20_261, 33, 60
# A set of zeros is a plane if its points miss one by no more than this share of the domain; slopes
# that differ by less than this share of the largest one do not.
FLAT, SAME_SLOPE = 1e-9, 1e-7
# How far from a kink slopes are compared, as a share of the domain.
BESIDE = 1e-5


class InitialKink(NamedTuple):
    """A pair that is equal on a set which the domain has points of. `normal` and `offset` are those
    of the plane n·x = offset, None where the set is bent; p > q on the side of the normal.
    `places` (N, d) are points of it where the slope jumps, none where other pieces hold there;
    `convex` says whether it grows."""

    number: int
    normal: np.ndarray | None
    offset: float
    places: np.ndarray
    convex: bool

    @property
    def active(self) -> bool:
        return len(self.places) > 0


class Start(NamedTuple):
    """The kinks of initial values; for pairs without a kink whether p > q everywhere (N,)."""

    kinks: tuple[InitialKink, ...]
    first: np.ndarray
    # Why nothing is known, if so.
    rough: str | None = None

    @property
    def active(self) -> tuple[InitialKink, ...]:
        return tuple(kink for kink in self.kinks if kink.active)


SMOOTH = Start((), np.zeros(0, bool))


def start_of(initial: Callable[..., Array], domain: AbstractDomain) -> Start:
    """What is known of initial values, read from their operations and looked at in the domain."""
    try:
        count = pieces_of(initial, domain.dimension)
    except UnknownPiecesError as error:
        return SMOOTH._replace(rough=_jumps(initial, domain, str(error)))
    if not count:
        return SMOOTH
    levels = jax.jit(jax.vmap(lambda x: differences(initial, x)))
    points = domain.interior_points(2 * CHORDS, SEED)
    along = np.linspace(0, 1, STEPS)
    path = points[:CHORDS, None] + along[:, None] * (points[CHORDS:] - points[:CHORDS])[:, None]
    values = np.asarray(levels(path.reshape(-1, domain.dimension))).reshape(CHORDS, STEPS, count)
    kinks = []
    for number in range(count):
        found = _zeros(levels, path, values[:, :, number], number)
        if len(found):
            kinks.append(_kink(initial, levels, domain, found, number))
    return Start(tuple(kinks), np.mean(values, axis=(0, 1)) > 0)


def _zeros(levels: Callable, path: np.ndarray, values: np.ndarray, number: int) -> np.ndarray:
    """Points at which p = q, by bisection between neighbours of different signs."""
    before, after = np.nonzero((values[:, :-1] > 0) != (values[:, 1:] > 0))
    low, high = path[before, after], path[before, after + 1]
    if not len(low):
        return low
    positive = values[before, after] > 0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = (np.asarray(levels(middle))[:, number] > 0) == positive
        low, high = np.where(same[:, None], middle, low), np.where(same[:, None], high, middle)
    return (low + high) / 2


def _kink(
    initial: Callable, levels: Callable, domain: AbstractDomain, found: np.ndarray, number: int
) -> InitialKink:
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    slopes = np.asarray(jax.vmap(jax.jacfwd(lambda x: differences(initial, x)[number]))(found))
    center = np.mean(found, axis=0)
    if domain.dimension == 1:
        flat = float(np.ptp(found)) <= FLAT * size
        normal = np.sign(np.mean(slopes, axis=0))
    else:
        _, singular, axes = np.linalg.svd(found - center, full_matrices=True)
        smallest = singular[-1] if len(singular) == domain.dimension else 0.0
        flat = smallest <= FLAT * size * np.sqrt(len(found))
        normal = axes[-1] * np.sign(np.mean(slopes @ axes[-1]))
    jumps = _slope_jumps(initial, found, slopes, BESIDE * size)
    steep = np.abs(jumps) > SAME_SLOPE * np.max(np.linalg.norm(slopes, axis=1))
    active = _decides(initial, found, slopes, BESIDE * size, number)
    offset = float(np.mean(found @ normal))
    # A pair that changes no slope bends the values one way or the other.
    convex = bool(np.sum(jumps[steep & active]) > 0) if np.any(steep & active) else True
    return InitialKink(number, normal if flat else None, offset, found[active], convex)


def _decides(
    initial: Callable, found: np.ndarray, slopes: np.ndarray, step: float, number: int
) -> np.ndarray:
    """Where the values would be others if the pair compared the other way."""
    directions = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)

    def other(k: int, p: Any, q: Any) -> ComparedPieces:
        first = jnp.where((p >= q) == (k != number), 1.0, 0.0)
        return ComparedPieces(first, 0.0)

    swapped = jax.jit(jax.vmap(lambda x: jnp.asarray(smoothed(initial, x, other), float)))
    plain = jax.jit(jax.vmap(lambda x: jnp.asarray(initial(x), float)))
    changes = []
    for x in (found + step * directions, found - step * directions):
        value = np.asarray(plain(x))
        changes.append(np.abs(np.asarray(swapped(x)) - value))
    scale = max(float(np.max(np.abs(value))), 1e-300)
    return np.maximum(*changes) > 1e-14 * scale


def _slope_jumps(
    initial: Callable, found: np.ndarray, slopes: np.ndarray, step: float
) -> np.ndarray:
    """By how much the slope along the normal grows there, without what smooth bending makes of
    it."""
    directions = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), 1e-300)
    at = jax.jit(jax.vmap(lambda x: jnp.asarray(initial(x), float)))

    def bend(h: float) -> np.ndarray:
        middle = np.asarray(at(found))
        sides = np.asarray(at(found + h * directions)) + np.asarray(at(found - h * directions))
        return (sides - 2 * middle) / h

    # Of a smooth function the bend falls with h, that of a kink stays.
    return 2 * bend(step / 2) - bend(step)


def _jumps(initial: Callable, domain: AbstractDomain, operation: str) -> str | None:
    """Whether a choice that is not followed makes a kink: looked at along chords."""
    points = domain.interior_points(2 * CHORDS, SEED)
    along = np.linspace(0, 1, 2001)
    slope = jax.jit(jax.vmap(jax.grad(lambda x: jnp.asarray(initial(x), float))))
    worst = 0.0
    for start, end in zip(points[:32], points[CHORDS : CHORDS + 32], strict=True):
        path = start + along[:, None] * (end - start)
        found = np.asarray(slope(path))
        change = np.linalg.norm(np.diff(found, axis=0), axis=1)
        typical = np.median(change) + 1e-12 * np.max(np.abs(found)) + 1e-300
        worst = max(worst, float(np.max(change) / typical))
    if worst < JUMP:
        return None
    return (
        f"the initial values have a kink or a jump that is not followed (the operation "
        f"{operation}): write it with max, min or abs"
    )


# A change of the slope between neighbours that is so many times the usual one is a kink.
JUMP = 200.0


def sharpened(kink: InitialKink, matrices: Any, sign: float) -> int:
    """Which of several equations smooths a kink first: a supremum takes the largest n·An where the
    slope grows, the smallest where it falls."""
    normal = kink.normal
    assert normal is not None
    sizes = np.mean(np.einsum("i,nkij,j->nk", normal, np.asarray(matrices), normal), axis=0)
    return int(np.argmax(sizes) if kink.convex == (sign > 0) else np.argmin(sizes))
