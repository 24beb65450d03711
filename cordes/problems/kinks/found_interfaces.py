"""Interfaces that nobody declared: where comparisons, signs, |·|, max and min in the formulas of
the data change in the domain, and the data or their slopes jump.

Zeros are found from a lattice by Newton's method along the gradient; beyond a zero the data are
compared with those on the other side. A slope that is not finite there, such as that of |φ|^(1/4),
is none that one-sided powers of φ could follow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.formulas.switches import switches

# Lattice points along each axis; zeros that are looked at, and steps of Newton's method to them.
LATTICE = {1: 129, 2: 33, 3: 13}
ZEROS, STEPS = 24, 12
# Zeros are as near to this, in units of the domain; the distances on both sides at which data are
# compared; a jump or a change of the slope has this share of the largest value.
NEAR, STEP, JUMP, BEND = 1e-9, (1e-4, 1e-6), 1e-3, 1e-2
# More than so many are a table, and no interfaces.
MOST = 6


def found_interfaces(
    functions: Sequence[Callable], domain: AbstractDomain, declared: Sequence[Callable]
) -> list[Callable]:
    """Those that are no zero sets of the `declared` ones."""
    d = domain.dimension
    if d not in LATTICE:
        return []
    kept: list[Callable] = []
    for function in functions:
        try:
            kept += _of_one(function, domain, [*declared, *kept])
        except UnsupportedOperation:
            continue
        if len(kept) > MOST:
            return []
    return kept


def _of_one(
    function: Callable, domain: AbstractDomain, known: Sequence[Callable]
) -> list[Callable]:
    candidates, kept = switches(function, domain.dimension), []
    if not candidates:
        return []
    lattice = _lattice(domain)
    data = _values(lambda x: jnp.ravel(jnp.asarray(function(x), float)))
    for phi in candidates:
        zeros, normals = _zeros(phi, lattice, domain)
        if not len(zeros):
            continue
        if any(_same(other, zeros, domain) for other in [*known, *kept]):
            continue
        if _changes(data, zeros, normals, domain):
            kept.append(phi)
    return kept


def _lattice(domain: AbstractDomain) -> np.ndarray:
    lower, upper = domain.bounding_box
    # No lattice of its own: interfaces like to run through the middle.
    each = (np.arange(LATTICE[len(lower)]) + 0.5 + 0.1 / np.e) / LATTICE[len(lower)]
    axes = [low + (high - low) * each for low, high in zip(lower, upper, strict=True)]
    grid = np.meshgrid(*axes, indexing="ij")
    x = np.stack([part.ravel() for part in grid], axis=1)
    return x[domain.contains(x)]


def _values(function: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """At points, by intervals without width: nothing is compiled."""
    enclosure = enclose(function)

    def at(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = enclosure(x, x)[0]
        return (found.lower + found.upper) / 2

    return at


def _jet(phi: Callable) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    def both(x: Any) -> Any:
        value, slope = jax.value_and_grad(lambda y: jnp.asarray(phi(y), float))(x)
        return jnp.concatenate([value[None], slope])

    values = _values(both)

    def at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = values(x)
        return found[:, 0], found[:, 1:]

    return at


def _zeros(
    phi: Callable, lattice: np.ndarray, domain: AbstractDomain
) -> tuple[np.ndarray, np.ndarray]:
    """Zeros inside of the domain, and the directions of the slope there."""
    jet, size = _jet(phi), _size(domain)
    value, slope = jet(lattice)
    steep = np.linalg.norm(slope, axis=1)
    with np.errstate(all="ignore"):
        distance = np.abs(value) / steep
    usable = np.isfinite(distance)
    order = np.argsort(np.where(usable, distance, np.inf))[: int(np.sum(usable))]
    near = order[distance[order] < 2 * size / LATTICE[domain.dimension]]
    few = near[:: max(len(near) // ZEROS, 1)][:ZEROS] if len(near) else order[:4]
    x = lattice[few]
    for _ in range(STEPS):
        value, slope = jet(x)
        with np.errstate(all="ignore"):
            step = (value / np.sum(slope**2, axis=1))[:, None] * slope
        x = x - np.where(np.isfinite(step), np.clip(step, -size / 8, size / 8), 0.0)
    value, slope = jet(x)
    steep = np.linalg.norm(slope, axis=1)
    good = (steep > 0) & (np.abs(value) <= NEAR * size * steep) & np.all(np.isfinite(x), axis=1)
    good &= domain.contains(x, tolerance=-2 * STEP[0] * size)
    return x[good], slope[good] / steep[good][:, None]


def _size(domain: AbstractDomain) -> float:
    lower, upper = domain.bounding_box
    return float(np.max(upper - lower))


def _same(other: Callable, zeros: np.ndarray, domain: AbstractDomain) -> bool:
    """Whether another function vanishes at all these points."""
    try:
        value, slope = _jet(other)(zeros)
    except UnsupportedOperation:
        return False
    steep = np.linalg.norm(slope, axis=1)
    return bool(np.all(np.abs(value) <= 1e-6 * _size(domain) * (1e-9 + steep)))


def _changes(
    data: Callable, zeros: np.ndarray, normals: np.ndarray, domain: AbstractDomain
) -> bool:
    """Whether data jump, or have another slope, beyond some of the zeros."""
    size = _size(domain)
    jumps, bends = [], []
    for step in STEP:
        sides = [data(zeros + k * step * size * normals) for k in (-2, -1, 1, 2)]
        far_below, below, above, far_above = sides
        slopes = (below - far_below) / step, (far_above - above) / step
        jumps.append(np.max(np.abs(above - below), axis=1))
        bends.append(np.max(np.abs(slopes[1] - slopes[0]), axis=1))
    largest = max(float(np.nanmax(np.abs(sides))), 1e-300)
    jump = (jumps[1] > JUMP * largest) & (jumps[1] > 0.5 * jumps[0])
    # A kink has the same slopes at all distances, a root has steeper ones.
    kink = (bends[1] > BEND * largest) & (bends[1] < 2 * bends[0]) & (bends[0] < 2 * bends[1])
    return bool(np.any(jump | kink))
