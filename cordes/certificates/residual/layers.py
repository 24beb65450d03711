"""Layers that the points of the norms do not see: a pole along a side, or a peak at a corner that
begins where the cells end. Both rules agree there on a number that is not the norm. An answer with
singular functions can be accurate to a distance of 10⁻⁵ from a corner and wrong by its whole size
closer to it, where D²u grows without bound and another control becomes the best."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.domains.domain import AbstractDomain
from cordes.runtime.plain import show

SEED = 5_550_003
BOUNDARY_POINTS, DIRECTIONS = 64, 8
# How close is looked, in half sizes of the domain. Closer, coordinates themselves are rounded.
SHARES = 10.0 ** -np.arange(3.0, 13.0)


class Layer(NamedTuple):
    """A residual `size` at the point `x` that stands for more than the whole norm; the corner or
    singular point that it surrounds, None along a side."""

    size: float
    x: np.ndarray
    corner: np.ndarray | None


def unseen_layers(
    domain: AbstractDomain,
    singular: np.ndarray,
    least: Callable[[np.ndarray], np.ndarray],
    norm: float,
) -> list[Layer]:
    """Where the residual is so large next to the boundary, a corner or a singular point that what
    lies between holds more than the whole norm.

    `least` bounds the residual from below, `norm` is its L² norm from above. A residual that grows
    towards a point is at least as large in the box between; along a side, the mean square over
    points of the boundary is that of the layer. So an integrable one is not refused, however steep
    it is.
    """
    lower, upper = (np.asarray(corner) for corner in domain.bounding_box)
    corners = (
        [] if domain.vertices is None or domain.dimension > 3 else list(np.asarray(domain.vertices))
    )
    corners += [
        point
        for point in singular
        if all(np.linalg.norm(point - other) > 1e-9 * np.max(upper - lower) for other in corners)
    ]
    found = []
    for corner in corners:
        x, share = _around(domain, corner, float(np.max(upper - lower)) / 2)
        worst = _worst(x, domain.volume * (share / 2) ** domain.dimension, least, norm)
        found += [worst._replace(corner=corner)] if worst is not None else []
    return found + _along_the_boundary(domain, least, norm)


def _around(
    domain: AbstractDomain, corner: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Points inside of the domain at each share of its size from a point, in several directions,
    and these shares."""
    # Never straight inwards: interfaces like to run there, and on an interface itself the residual
    # is anything.
    noise = np.random.default_rng(SEED).standard_normal((2, DIRECTIONS, domain.dimension))
    inwards = np.asarray(domain.center) - corner
    directions = np.concatenate(
        [noise[0], inwards / max(float(np.linalg.norm(inwards)), 1e-9 * size) + 0.3 * noise[1]]
    )
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    x = (corner + size * SHARES[:, None, None] * directions).reshape(-1, domain.dimension)
    share, inside = np.repeat(SHARES, len(directions)), domain.contains(x)
    return x[inside], share[inside]


def _worst(x: np.ndarray, volume: np.ndarray, least: Callable, norm: float) -> Layer | None:
    if not len(x):
        return None
    size = np.nan_to_num(least(x), nan=np.inf)
    layer = size * np.sqrt(volume)
    k = int(np.argmax(layer))
    return Layer(float(size[k]), x[k], None) if layer[k] > norm else None


def _along_the_boundary(domain: AbstractDomain, least: Callable, norm: float) -> list[Layer]:
    center = np.asarray(domain.center)
    boundary, _ = domain.boundary_points(BOUNDARY_POINTS, SEED)
    for share in SHARES:
        x = center + (1 - share) * (boundary - center)
        x = x[domain.contains(x)]
        if not len(x):
            continue
        size = np.nan_to_num(least(x), nan=np.inf)
        with np.errstate(over="ignore"):
            layer = np.sqrt(domain.volume * share / 2 * np.mean(size**2))
        if layer > norm:
            k = int(np.argmax(size))
            return [Layer(float(size[k]), x[k], None)]
    return []


def refusal_of(layers: Sequence[Layer]) -> Reason | None:
    """Why there is no bound."""
    if not layers:
        return None
    size, x, _ = max(layers, key=lambda layer: layer.size)
    return Reason(
        Why.unseen,
        f"the residual has a pole, or a layer between the points of the norms: it is {size:.3g} "
        f"at x = {show(x)}; f must be square integrable",
        {"size": size, "point": x},
    )
