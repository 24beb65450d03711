"""Constants of a box with conditions on its faces: what the bounds of errors rest on there.

They hold for errors v ∈ H² that fulfil the homogeneous conditions. -∂ᵢᵢ with the conditions of
direction i are commuting operators with complete orthonormal eigenfunctions, products of functions
of one variable; M is diagonal throughout (a full one would turn ∂ₙ into an oblique derivative).
"""

import functools
import itertools
import math

import numpy as np

from cordes.domains.constants import SLACK, circumscribed, first_eigenvalue, positive_definite
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.domains.walls.direction import Direction
from cordes.domains.walls.walled import Walled

# Eigenvalues along each axis that are summed up one by one, by dimension.
MODES = {1: 4000, 2: 700, 3: 130}


def diagonal_of(domain: Walled, matrix: np.ndarray | None) -> np.ndarray | None:
    """The diagonal of M; None where M is not diagonal."""
    matrix = positive_definite(matrix, domain.dimension)
    diagonal = np.diag(matrix)
    return diagonal if np.count_nonzero(matrix) == np.count_nonzero(diagonal) else None


@first_eigenvalue.register
def _(domain: Walled, matrix: np.ndarray | None = None) -> float:
    """Σ Mᵢᵢ μᵢ, μᵢ the first eigenvalue of direction i; zero, which is no bound at all, for a full
    matrix."""
    diagonal = diagonal_of(domain, matrix)
    if diagonal is None:
        return 0.0
    own = [each.first_eigenvalue for each in domain.directions]
    return float(diagonal @ own) * (1 - SLACK)


def second_eigenvalue(domain: Walled, matrix: np.ndarray | None = None) -> float:
    """The first one above zero, where constants fulfil the conditions."""
    diagonal = diagonal_of(domain, matrix)
    if diagonal is None or not domain.free:
        return 0.0
    own = [each.second_eigenvalue for each in domain.directions]
    return float(np.min(diagonal * own)) * (1 - SLACK)


def modes_constant(
    domain: Walled, matrix: np.ndarray | None, lambda_: float, without_mean: bool = False
) -> float | None:
    """C with sup |v| ≤ C ‖M:D²v - λv‖; None in four and more dimensions, and where there is none.

    With v = Σ v_k φ_k it is Σ |v_k||φ_k| ≤ ‖M:D²v - λv‖ (Σ sup φ_k²/(μ_k + λ)²)^{1/2}. Up to K
    along each axis the terms are summed; of those beyond (2n + 1, 3n² + 3n + 1 with the largest
    index n) the k-th root is at least kπ/ℓ, and n^{-4} sums to no more than 1/3(K - 1)³, 3n·n^{-4}
    to 3/2(K - 1)², 7n²·n^{-4} to 7/(K - 1). `without_mean` leaves out constants, for v of mean
    zero.
    """
    diagonal, d = diagonal_of(domain, matrix), domain.dimension
    if diagonal is None or d > 3:
        return None
    if not without_mean and first_eigenvalue(domain, matrix) + lambda_ <= 0:
        return None
    total, least = _summed(domain.directions, tuple(diagonal.tolist()), lambda_, without_mean)
    K = MODES[d]
    tail = {1: 1 / (3 * (K - 1) ** 3), 2: 3 / (2 * (K - 1) ** 2), 3: 7 / (K - 1)}[d]
    return math.sqrt(total + 2**d / domain.volume * tail / least**2) * (1 + 1e-10)


@functools.lru_cache(maxsize=64)
def _summed(
    directions: tuple[Direction, ...],
    diagonal: tuple[float, ...],
    lambda_: float,
    without_mean: bool,
) -> tuple[float, float]:
    """The sum of the first terms, and m with μ_k ≥ m|k|²."""
    d = len(directions)
    modes = [each.modes(MODES[d]) for each in directions]
    values = [m * own[0] for m, own in zip(diagonal, modes, strict=True)]
    total = 0.0
    # One slice along the first axis at a time.
    rest = functools.reduce(np.add.outer, values[1:], np.array(0.0))
    peaks = functools.reduce(np.multiply.outer, [own[1] for own in modes[1:]], np.array(1.0))
    for k, (value, peak) in enumerate(zip(values[0], modes[0][1], strict=True)):
        square = (rest + (value + lambda_)) ** 2
        terms = np.divide(peak * peaks, square, where=square > 0, out=np.full_like(square, np.inf))
        if without_mean and k == 0:
            terms = np.asarray(terms)
            terms[(0,) * (d - 1)] = 0.0
        total += float(np.sum(terms))
    each = zip(diagonal, directions, strict=True)
    return total, min(m * (math.pi / own.width) ** 2 for m, own in each)


# The maximum principle ----------------------------------------------------------------------------


def reflects(domain: Walled) -> bool:
    """Whether u is given at one end of each direction at least, and there is no κ > 0: mirror
    images turn the conditions into given values on the whole boundary of the doubled box."""
    ends = itertools.chain(*((each.first, each.last) for each in domain.directions))
    return all(each.given for each in domain.directions) and not any(ends)


def _doubling(domain: Walled) -> float:
    """What the norm in L^d over the doubled box is, of a mirrored residual."""
    return 2 ** (domain.mirrored / domain.dimension)


@polar_factor.register
def _(domain: Walled, points: np.ndarray) -> np.ndarray:
    """The doubled box's, with the norm over it; infinite where there is none."""
    if not reflects(domain):
        return np.full(len(points), np.inf)
    return _doubling(domain) * polar_factor(domain.doubled, points)


@largest_polar_factor.register
def _(domain: Walled) -> float:
    return _doubling(domain) * largest_polar_factor(domain.doubled) if reflects(domain) else np.inf


@circumscribed.register
def _(domain: Walled) -> tuple[np.ndarray, float]:
    return circumscribed(domain.box)
