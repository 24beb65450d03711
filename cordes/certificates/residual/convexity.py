"""How convex a function is: the smallest eigenvalue of its Hessian over a domain, with the way in
which it is known.

`interval`: interval arithmetic on the formula of a function covers the domain, so that no dip hides
between points. `sampled`: the smallest value at many points, and at those that a local search
reaches from the worst of them.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose, infimum
from cordes.formulas.intervals.suprema import CellBound
from cordes.jet import jet_of

SEARCH_SEED = 5_550_201
# Points on the boundary are looked at from this share of the domain inside: formulas may divide by
# zero on it.
HAIR = 1e-9
BOUNDARY_POINTS = 256
# The local search: places where it starts, points tried around each at a time, rounds, and how far
# apart the places are in units of the domain. Few rounds of many tries: a block of points costs a
# network hardly more than a single one.
STARTS, TRIES, ROUNDS, APART = 8, 16, 12, 0.05
# Tries lie at distances between this share of the radius and all of it, evenly on a logarithmic
# scale; the radius shrinks so much where none is better.
NEAREST, SHRINK = 0.03, 0.4
# Cells of the interval search by dimension, and the relative rounding of eigenvalues of interval
# ends.
CELLS = {1: 4000, 2: 12_000, 3: 12_000}
SLACK = 1e-12
# The interval search may stop at this share of a positive eigenvalue (its sign is all that
# matters), or this close to a negative one.
POSITIVE, NEGATIVE = 0.1, 0.02

Hessians = Callable[[np.ndarray], np.ndarray]
Values = Callable[[np.ndarray], np.ndarray]


class Convexity(NamedTuple):
    """`smallest` eigenvalue seen, at `point`. `lower` is what the smallest one over the domain can
    be: a proved bound where the source is `interval`; where it is `sampled`, the smallest one seen
    less the disagreement between two halves of the points."""

    smallest: float
    point: np.ndarray
    source: str
    lower: float


def smallest_eigenvalue(
    domain: AbstractDomain, hessian_at: Hessians, points: np.ndarray
) -> Convexity:
    """The smallest eigenvalue of a Hessian field (N, d) → (N, d, d) at the points, a hair inside
    the boundary and its corners, and around the worst of all these by a local search. NaN and
    infinity count as minus infinity: where there is no Hessian there is no convexity."""

    def values(x: np.ndarray) -> np.ndarray:
        return eigenvalues(hessian_at(x))[:, 0]

    x = np.concatenate([points, edge_points(domain)])
    return polished(domain, values, x, values(x))


def eigenvalues(hessians: np.ndarray) -> np.ndarray:
    """Eigenvalues (N, d) in ascending order, minus infinity where the matrix has an entry that is
    no number."""
    finite = np.all(np.isfinite(hessians), axis=(1, 2))
    return np.where(
        finite[:, None], np.linalg.eigvalsh(np.where(finite[:, None, None], hessians, 0.0)), -np.inf
    )


def cofactors_of(matrices: np.ndarray) -> np.ndarray:
    """Matrices of cofactors of symmetric matrices (N, d, d): the same eigenvectors, and products of
    the other eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    others = np.stack(
        [np.prod(np.delete(values, i, axis=1), axis=1) for i in range(values.shape[1])], axis=1
    )
    return (vectors * others[:, None]) @ np.swapaxes(vectors, 1, 2)


def edge_points(domain: AbstractDomain) -> np.ndarray:
    """Points a hair inside the boundary and the corners, where Hessians are often worst."""
    center, d = np.asarray(domain.center), domain.dimension
    parts = [domain.boundary_points(BOUNDARY_POINTS, SEARCH_SEED)[0]]
    if isinstance(domain, Box) and d <= 8:
        parts.append(
            np.array(list(itertools.product(*zip(domain.lower, domain.upper, strict=True))))
        )
    elif domain.vertices is not None:
        parts.append(domain.vertices)
    return center + (1 - HAIR) * (np.concatenate(parts) - center)


def polished(
    domain: AbstractDomain, values: Values, points: np.ndarray, at_points: np.ndarray
) -> Convexity:
    """The smallest value of a function near those of its values that are smallest already.

    Every second point starts one half of the searches, the others the other half. If both halves
    end at the same value, it is the smallest one as far as points of this density can tell; if not,
    the difference shows what a third half might have found, and is taken off (at most half of the
    value).
    """
    halves = [worst_places(domain, points[k::2], at_points[k::2]) for k in (0, 1)]
    count, start, at_start = (
        len(halves[0][0]),
        *(np.concatenate(parts) for parts in zip(*halves, strict=True)),
    )
    x, found = descend(domain, values, start, at_start, _spacing(domain, len(points)))
    worst = int(np.argmin(found))
    doubt = abs(float(np.min(found[:count])) - float(np.min(found[count:])))
    smallest = float(found[worst])
    return Convexity(
        smallest,
        x[worst],
        "sampled",
        smallest - min(doubt, abs(smallest) / 2) if np.isfinite(smallest) else smallest,
    )


def _spacing(domain: AbstractDomain, count: int) -> float:
    """Twice the distance of neighbours among so many points."""
    return 2 * (domain.volume / max(count, 1)) ** (1 / domain.dimension)


def worst_places(
    domain: AbstractDomain, points: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The worst points that are not all in one place."""
    lower, upper = domain.bounding_box
    reach, left, chosen = APART * float(np.max(upper - lower)), np.ones(len(points), bool), []
    for index in np.argsort(values):
        if left[index]:
            chosen.append(index)
            left &= np.linalg.norm(points - points[index], axis=1) > reach
        if len(chosen) == STARTS // 2:
            break
    return points[chosen], values[chosen]


def descend(
    domain: AbstractDomain,
    values: Values,
    x: np.ndarray,
    found: np.ndarray,
    radius: float,
    rounds: int = ROUNDS,
) -> tuple[np.ndarray, np.ndarray]:
    """A search for smaller values from each of several points at once: random tries within a
    radius, which shrinks where none is better."""
    rng, (count, d) = np.random.default_rng(SEARCH_SEED), x.shape
    radii = np.full(count, radius)
    for _ in range(rounds):
        direction = rng.standard_normal((count, TRIES, d))
        direction /= np.linalg.norm(direction, axis=2, keepdims=True)
        length = radii[:, None, None] * NEAREST ** rng.uniform(0.0, 1.0, (count, TRIES, 1))
        tries = inside(domain, (x[:, None] + length * direction).reshape(-1, d))
        results = values(tries).reshape(count, TRIES)
        best = np.argmin(results, axis=1)
        better = results[np.arange(count), best] < found
        x = np.where(better[:, None], tries.reshape(count, TRIES, d)[np.arange(count), best], x)
        found = np.where(better, results[np.arange(count), best], found)
        radii = np.where(better, radii, SHRINK * radii)
    return x, found


def inside(domain: AbstractDomain, points: np.ndarray) -> np.ndarray:
    """Points outside the domain drawn towards its centre until they are a hair inside."""
    center = np.asarray(domain.center)
    offset = points - center
    length = np.linalg.norm(offset, axis=1)
    direction = np.where(length[:, None] > 0, offset, np.eye(1, domain.dimension))
    reach = (1 - HAIR) * np.linalg.norm(domain.boundary_at(direction) - center, axis=1)
    return (
        center + offset * np.where(length > reach, reach / np.maximum(length, 1e-300), 1.0)[:, None]
    )


# Proofs


def proved(
    domain: AbstractDomain, function: Callable, values: Values, known: Convexity
) -> Convexity:
    """What interval arithmetic on the formula of a function of one point makes of what samples have
    shown: a proved bound where it gets close to them."""
    if domain.dimension not in CELLS or not np.isfinite(known.smallest):
        return known
    bound = eigenvalue_bound(lambda x: jet_of(function)(x).hessian)
    tolerance = (
        (1 - POSITIVE) * known.smallest if known.smallest > 0 else -NEGATIVE * known.smallest
    )
    try:
        found = infimum(
            bound, values, domain, known.smallest, known.point, tolerance, CELLS[domain.dimension]
        )
    except UnsupportedOperation:
        return known
    if found.decided:
        return Convexity(found.attained, found.point, "interval", found.lower)
    if found.attained < known.smallest:
        return Convexity(found.attained, found.point, "sampled", min(found.attained, known.lower))
    return known


def eigenvalue_bound(hessian: Callable) -> CellBound:
    """A lower bound on each cell of the smallest eigenvalue of the symmetric matrices that
    `hessian` gives at points."""
    enclosure = enclose(hessian)

    def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.min([_least_eigenvalue(piece) for piece in enclosure(lower, upper)], axis=0)

    return bound


def _least_eigenvalue(hessian: Interval) -> np.ndarray:
    """The smallest eigenvalue of symmetric matrices whose entries lie in intervals M ± R, rounded
    down.

    min x·Ax over A is x·Mx - |x|·R|x|. With the signs S of x this is x·(M - SRS)x: the smallest
    eigenvalue of one of 2ᵈ⁻¹ matrices.
    """
    lower, upper = hessian.lower, hessian.upper
    # Both orders of differentiation enclose the same number.
    lower = np.maximum(lower, np.swapaxes(lower, 1, 2))
    upper = np.minimum(upper, np.swapaxes(upper, 1, 2))
    finite = np.all(np.isfinite(lower) & np.isfinite(upper), axis=(1, 2))
    lower, upper = (np.where(finite[:, None, None], end, 0.0) for end in (lower, upper))
    middle, d = lower / 2 + upper / 2, lower.shape[1]
    radius = np.maximum(upper - middle, middle - lower)
    signs = [np.array([1.0, *rest]) for rest in itertools.product((1.0, -1.0), repeat=d - 1)]
    least = np.min(
        [np.linalg.eigvalsh(middle - np.outer(sign, sign) * radius)[:, 0] for sign in signs], axis=0
    )
    return np.where(
        finite, least - SLACK * np.linalg.norm(np.abs(middle) + radius, axis=(1, 2)), -np.inf
    )
