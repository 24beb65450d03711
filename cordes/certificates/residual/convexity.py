"""How convex a function is: the smallest eigenvalue of its Hessian over a domain, with the way in
which it is known.

`interval`: interval arithmetic on the formula of a function covers the domain, so that no dip hides
between points. `sampled`: the smallest value at many points, and at those that a local search
reaches from the worst of them.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose, infimum, supremum
from cordes.formulas.intervals.suprema import Infimum, Supremum
from cordes.jet import jet_of

EPSILON = float(np.finfo(np.float64).eps)
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
    values = np.linalg.eigvalsh(np.where(finite[:, None, None], hessians, 0.0))
    return np.where(finite[:, None], values, -np.inf)


def cofactors_of(matrices: np.ndarray) -> np.ndarray:
    """Matrices of cofactors of symmetric matrices (N, d, d): the same eigenvectors, and products of
    the other eigenvalues."""
    values, vectors = np.linalg.eigh(matrices)
    number = range(values.shape[1])
    others = np.stack([np.prod(np.delete(values, i, axis=1), axis=1) for i in number], axis=1)
    return (vectors * others[:, None]) @ np.swapaxes(vectors, 1, 2)


def cofactor_rounding(matrices: np.ndarray, cofactors: np.ndarray) -> np.ndarray:
    """The part of a determinant's rounding that comes from eigenvalues and cofactors."""
    sizes = (np.linalg.norm(each, axis=(1, 2)) for each in (matrices, cofactors))
    return 8 * matrices.shape[1] * EPSILON * math.prod(sizes)


def corners_of(domain: AbstractDomain) -> np.ndarray:
    """The corners of a box in up to eight dimensions, or of a polygon."""
    if isinstance(domain, Box) and domain.dimension <= 8:
        return np.array(list(itertools.product(*zip(domain.lower, domain.upper, strict=True))))
    return np.zeros((0, domain.dimension)) if domain.vertices is None else domain.vertices


def edge_points(domain: AbstractDomain) -> np.ndarray:
    """Points a hair inside the boundary and the corners, where Hessians are often worst."""
    center, boundary = domain.center, domain.boundary_points(BOUNDARY_POINTS, SEARCH_SEED)[0]
    return center + (1 - HAIR) * (np.concatenate([boundary, corners_of(domain)]) - center)


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
    count = len(halves[0][0])
    start, at_start = (np.concatenate(parts) for parts in zip(*halves, strict=True))
    # Twice the distance of neighbours among the points.
    radius = 2 * (domain.volume / max(len(points), 1)) ** (1 / domain.dimension)
    x, found = descend(domain, values, start, at_start, radius)
    point, smallest = x[int(np.argmin(found))], float(np.min(found))
    if not np.isfinite(smallest):
        return Convexity(smallest, point, "sampled", smallest)
    doubt = abs(float(np.min(found[:count])) - float(np.min(found[count:])))
    return Convexity(smallest, point, "sampled", smallest - min(doubt, abs(smallest) / 2))


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
    """The smallest values that a local search finds in the domain from each of several points."""
    search = LocalSearch(SEARCH_SEED, TRIES, rounds, SHRINK)
    return search.descend(values, lambda tries: inside(domain, tries), x, found, radius)


class LocalSearch(NamedTuple):
    """A search for smaller values from each of several points at once: random tries within a
    radius, which shrinks where none is better."""

    seed: int
    tries: int
    rounds: int
    shrink: float

    def descend(
        self, values: Values, projected: Values, x: np.ndarray, found: np.ndarray, radius: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """From points x where the values are `found`; `projected` moves the tries to where values
        are looked for."""
        rng, (count, d), rows = np.random.default_rng(self.seed), x.shape, np.arange(len(x))
        radii = np.full(count, radius)
        for _ in range(self.rounds):
            direction = rng.standard_normal((count, self.tries, d))
            direction /= np.linalg.norm(direction, axis=2, keepdims=True)
            length = radii[:, None, None] * NEAREST ** rng.uniform(0.0, 1.0, (count, self.tries, 1))
            tries = projected((x[:, None] + length * direction).reshape(-1, d))
            results = values(tries).reshape(count, self.tries)
            best = np.argmin(results, axis=1)
            better = results[rows, best] < found
            x = np.where(better[:, None], tries.reshape(count, self.tries, d)[rows, best], x)
            found = np.where(better, results[rows, best], found)
            radii = np.where(better, radii, self.shrink * radii)
        return x, found


def inside(domain: AbstractDomain, points: np.ndarray) -> np.ndarray:
    """Points outside the domain drawn towards its centre until they are a hair inside."""
    length, reach = reaches(domain, points)
    shrink = np.where(
        length > (1 - HAIR) * reach, (1 - HAIR) * reach / np.maximum(length, 1e-300), 1.0
    )
    return domain.center + (points - domain.center) * shrink[:, None]


def reaches(domain: AbstractDomain, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far points are from the centre, and how far the boundary is in their direction."""
    offset = points - domain.center
    length = np.linalg.norm(offset, axis=1)
    direction = np.where(length[:, None] > 0, offset, np.eye(1, domain.dimension))
    return length, np.linalg.norm(domain.boundary_at(direction) - domain.center, axis=1)


# Proofs


def proved(
    domain: AbstractDomain, function: Callable, values: Values, known: Convexity
) -> Convexity:
    """What interval arithmetic on the formula of a function of one point makes of what samples have
    shown: a proved bound where it gets close to them."""
    if domain.dimension not in CELLS or not np.isfinite(known.smallest):
        return known
    share = 1 - POSITIVE if known.smallest > 0 else -NEGATIVE
    found = least_eigenvalue(domain, function, values, known, share * known.smallest)
    if found is None:
        return known
    if found.decided:
        return Convexity(found.attained, found.point, "interval", found.lower)
    if found.attained < known.smallest:
        return Convexity(found.attained, found.point, "sampled", min(found.attained, known.lower))
    return known


def largest_value(
    function: Callable,
    values: Values,
    domain: AbstractDomain,
    attained: tuple[float, np.ndarray],
    tolerance: float,
    budget: int,
) -> Supremum | None:
    """The supremum over a domain of a function of one point by interval arithmetic on its formula;
    None where that is not possible. `values` are those at points, one is `attained` at a point."""
    enclosure = enclose(function)

    def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.max([piece.upper for piece in enclosure(lower, upper)], axis=0)

    try:
        return supremum(bound, values, domain, *attained, tolerance, budget)
    except UnsupportedOperation:
        return None


def least_eigenvalue(
    domain: AbstractDomain,
    function: Callable,
    values: Values,
    known: Convexity,
    tolerance: float,
    sign: float = 1.0,
) -> Infimum | None:
    """The smallest eigenvalue of ±D² of a function over a domain by interval arithmetic on its
    formula; None where that is not possible. `values` are those at points."""
    enclosure = enclose(lambda x: sign * jet_of(function)(x).hessian)

    def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.min([least_of_matrices(piece) for piece in enclosure(lower, upper)], axis=0)

    cells = CELLS[domain.dimension]
    try:
        return infimum(bound, values, domain, known.smallest, known.point, tolerance, cells)
    except UnsupportedOperation:
        return None


def least_of_matrices(hessian: Interval) -> np.ndarray:
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
    matrices = [middle - np.outer(sign, sign) * radius for sign in signs]
    least = np.min([np.linalg.eigvalsh(matrix)[:, 0] for matrix in matrices], axis=0)
    slack = SLACK * np.linalg.norm(np.abs(middle) + radius, axis=(1, 2))
    return np.where(finite, least - slack, -np.inf)
