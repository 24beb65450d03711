"""Constants of a domain on which the error bounds rest: first eigenvalue, polar factor of
Aleksandrov, Bakelman and Pucci, enclosing ball.

Every value is a bound that holds for certain, rounded to the safe side by a relative 1e-12, and by
more where the matrix or the shape is so ill-conditioned that float64 needs it. Taken for granted,
because it cannot be checked: `bounding_box`, `volume` and `vertices` of a domain of the user's own
are right, and that it is convex. A `Region` need not be: its constants are those of its convex
hull.
"""

import functools
import math
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special

from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.domains.polygon_shape import (
    EPS,
    edge_lines,
    polygon_area,
    polygon_inradius,
    second_moment_axes,
    smallest_circle,
)
from cordes.domains.round import AbstractRound
from cordes.domains.unit_ball import log_ball_volume
from cordes.errors import OptionError

SLACK = 1e-12


# The first eigenvalue


@functools.singledispatch
def first_eigenvalue(domain: AbstractDomain, matrix: np.ndarray | None = None) -> float:
    """A lower bound of ∫ M∇v·∇v / ∫ v² over all v in H¹₀, for a symmetric positive definite M; None
    stands for the identity.

    The largest of several bounds, each a theorem. They rest on three facts: the eigenvalue falls
    when the domain grows; it is a concave and homogeneous function of M, so that a sum of matrices
    has at least the sum of the eigenvalues; and x = Fy with M = FFᵀ turns M into the identity.
    Here: the inequality of Faber and Krahn, and the bounding box.
    """
    if domain.vertices is not None:
        return _polygon_eigenvalue(domain.vertices, positive_definite(matrix, 2))
    matrix = positive_definite(matrix, domain.dimension)
    volume = domain.volume
    by_volume = _faber_krahn(matrix, math.log(volume)) if 1e-300 < volume < 1e300 else 0.0
    return max(by_volume, first_eigenvalue(Box(*domain.bounding_box), matrix))


@first_eigenvalue.register
def _(domain: Box, matrix: np.ndarray | None = None) -> float:
    """π² Σ Mᵢᵢ/ℓᵢ² for diagonal M, which is exact; else the largest of Faber-Krahn, λmin(M) π² Σ
    1/ℓᵢ², the slabs π² Mᵢᵢ/ℓᵢ², and the chords."""
    matrix = positive_definite(matrix, domain.dimension)
    widths = domain.widths
    scaled = matrix / np.outer(widths, widths)
    if np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix)):
        return _down(math.pi**2 * np.sum(np.diag(scaled)))
    if domain.vertices is not None:
        chords = _polygon_eigenvalue(domain.vertices, matrix)
    else:
        chords = max(_chord_eigenvalue(scaled), _faber_krahn(matrix, float(np.sum(np.log(widths)))))
    smallest = np.linalg.eigvalsh(matrix)[0] - _rounding(matrix)
    return max(
        chords,
        _down(math.pi**2 * np.max(np.diag(scaled))),
        _down(smallest * math.pi**2 * np.sum(widths**-2.0)),
    )


@first_eigenvalue.register
def _(domain: AbstractRound, matrix: np.ndarray | None = None) -> float:
    """x = Sy carries the domain to the unit ball and M to S⁻¹MS⁻ᵀ, whose eigenvalues are the
    squared singular values of S⁻¹F, M = FFᵀ."""
    matrix, axes = positive_definite(matrix, domain.dimension), domain.matrix
    carried = np.linalg.svd(np.linalg.solve(axes, np.linalg.cholesky(matrix)), compute_uv=False)
    conditions = np.linalg.cond(axes), np.linalg.cond(matrix), carried[0] / carried[-1]
    return _down(_unit_ball_eigenvalue(carried**2), len(axes), *conditions)


@first_eigenvalue.register
def _(domain: Region, matrix: np.ndarray | None = None) -> float:
    """Faber and Krahn, and the convex hull."""
    matrix = positive_definite(matrix, 2)
    by_volume = _faber_krahn(matrix, math.log(domain.volume))
    return max(_down(by_volume), first_eigenvalue(domain.hull, matrix))


def _unit_ball_eigenvalue(weights: np.ndarray) -> float:
    """A lower bound of Σ mₖ ∫ (∂ₖv)² / ∫ v² on the unit ball, for m₁ ≥ … ≥ m_d > 0.

    Slices: with m_{d+1} = 0 the form is Σₖ (mₖ − mₖ₊₁) Σ_{i≤k} ∫ (∂ᵢv)², and slices along the first
    k axes are balls of dimension k and radius at most 1, hence Σₖ (mₖ − mₖ₊₁) j²_{k/2−1,1}.
    Faber-Krahn: j²_{d/2−1,1} (Π m)^{1/d}. The first is good for long ellipsoids, the second near
    the ball. The sum of the second for min(m, s) and the first for (m − s)⁺ is a bound for every s;
    s = m_d gives the first alone, s = m₁ the second.
    """
    squares = np.array([_bessel_square(k) for k in range(1, len(weights) + 1)])
    levels = np.clip(
        np.concatenate([weights, np.geomspace(weights[-1], weights[0], 65)]),
        weights[-1],
        weights[0],
    )[:, None]
    excess = np.maximum(weights - levels, 0)
    slices = (excess - np.concatenate([excess[:, 1:], np.zeros_like(levels)], axis=1)) @ squares
    volumes = squares[-1] * np.exp(np.mean(np.log(np.minimum(weights, levels)), axis=1))
    return float(np.max(slices + volumes))


def chord_factor(scaled: np.ndarray) -> np.ndarray:
    """V with VVᵀ nearly M, M positive definite, for which the sum of `_chord_eigenvalue` is large.

    All decompositions are V = M^{1/2}Q with Q orthogonal. Σ Vₖₖ² is convex in Q, so that replacing
    Q by the polar factor of its gradient never lowers it.
    """
    values, vectors = np.linalg.eigh(scaled)
    root = best = (vectors * np.sqrt(values)) @ vectors.T
    for _ in range(100):
        left, _, right = np.linalg.svd(root * np.diag(best))
        better = root @ (left @ right)
        if np.sum(np.diag(better) ** 2) <= (1 + 1e-7) * np.sum(np.diag(best) ** 2):
            break
        best = better
    return best


def _chord_eigenvalue(scaled: np.ndarray) -> float:
    """A lower bound for the box of unit widths from a sum of rank-one matrices M = Σ vₖvₖᵀ.

    The form (vₖ·∇v)² sees one direction only; a chord of the box along vₖ is x + tvₖ with t in an
    interval of length at most 1/maxᵢ |vᵢₖ|, on which the one-dimensional inequality holds. Hence π²
    Σₖ maxᵢ vᵢₖ², exact for diagonal M and for rank one; a diagonal D with M − D ≥ 0 is a special
    case. That M ≥ (1 − η)VVᵀ is verified by the eigenvalues afterwards, whatever the search did.
    """
    values = np.linalg.eigvalsh(scaled)
    if values[0] <= _rounding(scaled):
        return 0.0
    best = chord_factor(scaled)
    defect = np.linalg.norm(scaled - best @ best.T, 2) + _rounding(scaled)
    share = max(0.0, 1 - defect / (values[0] - _rounding(scaled)))
    return _down(share * math.pi**2 * np.sum(np.max(best**2, axis=0)))


def _polygon_eigenvalue(vertices: np.ndarray, matrix: np.ndarray) -> float:
    """The largest bound for the polygon carried over by y = F⁻¹x, M = FFᵀ, which has M = I.

    Area: λ|Ω| is smallest for the equilateral triangle among triangles, the square among
    quadrilaterals (Pólya and Szegő), the disk among all. Inradius: λ ≥ π²/4r² (Hersch, Protter).
    Chords: as in `_chord_eigenvalue`, with the longest chord along u of length minₖ wₖ/|nₖ·u|, wₖ
    the width normal to edge k; with a = nₖ/wₖ, b = nₗ/wₗ the best orthonormal frame gives (|a|² +
    |b|²)/2 + √((|a|² − |b|²)²/4 + (a×b)²). Ellipse: that of the second moments, widened until it
    holds all vertices. Widths and distances of edges are those of the vertices along the computed
    normals, so that a rounded normal does no harm.
    """
    factor = np.linalg.cholesky(matrix)
    carried = np.linalg.solve(factor, (vertices - np.mean(vertices, axis=0)).T).T
    normals, heights = edge_lines(carried)
    area = polygon_area(carried)
    least = {3: 4 * math.pi**2 / math.sqrt(3), 4: 2 * math.pi**2}.get(
        len(vertices), math.pi * _bessel_square(2)
    )
    inradius = polygon_inradius(carried, normals, heights)
    slopes = normals / np.ptp(carried @ normals.T, axis=0)[:, None]
    squares = np.sum(slopes**2, axis=1)
    crosses = np.outer(slopes[:, 0], slopes[:, 1])
    chords = np.add.outer(squares, squares) / 2 + np.hypot(
        np.subtract.outer(squares, squares) / 2, crosses - crosses.T
    )
    ellipse = 1 / second_moment_axes(carried) ** 2
    bounds = (
        least / area,
        math.pi**2 / (4 * inradius**2),
        math.pi**2 * np.max(chords),
        _unit_ball_eigenvalue(ellipse),
    )
    return _down(
        max(bounds), 2, np.linalg.cond(factor) * np.max(np.linalg.norm(carried, axis=1)) / inradius
    )


def _faber_krahn(matrix: np.ndarray, log_volume: float) -> float:
    """j²_{d/2−1,1} det(M)^{1/d} (ω_d/|Ω|)^{2/d}: no domain of this volume has a smaller eigenvalue
    than the ellipsoid that M carries to a ball."""
    d = len(matrix)
    logarithm = np.linalg.slogdet(matrix)[1] / d + 2 / d * (log_ball_volume(d) - log_volume)
    return _down(_bessel_square(d) * math.exp(logarithm), d, np.linalg.cond(matrix))


@functools.cache
def _bessel_square(dimension: int) -> float:
    """The first eigenvalue j²_{d/2−1,1} of the unit ball, rounded down.

    With a = 2.338107… the first zero of the Airy function, ν + a(ν/2)^{1/3} < j_{ν,1} < ν +
    a(ν/2)^{1/3} + (3/20)a²(2/ν)^{1/3} for all ν > 0 (Qu and Wong 1999), and from ν = 1 on the
    bracket holds no other zero. Below, the zeros are π/2, 2.4048… and π.
    """
    order = dimension / 2 - 1
    if dimension <= 3:
        zero = (math.pi / 2, 2.404825557695773, math.pi)[dimension - 1]
    else:
        airy = 2.338107410459767
        lower = order + airy * (order / 2) ** (1 / 3)
        upper = lower + 0.15 * airy**2 * (2 / order) ** (1 / 3)
        zero: Any = scipy.optimize.brentq(
            lambda z: scipy.special.jv(order, z), lower, upper, xtol=1e-14
        )
    return _down(zero**2)


# The polar factor


# The enclosing ball


@functools.singledispatch
def circumscribed(domain: AbstractDomain) -> tuple[np.ndarray, float]:
    """Centre and radius of a ball that contains the domain: the smallest one, but around the
    bounding box for a domain of the user's own."""
    if domain.vertices is not None:
        center, radius = smallest_circle(domain.vertices)
        return center, up(radius)
    return circumscribed(Box(*domain.bounding_box))


@circumscribed.register
def _(domain: Box) -> tuple[np.ndarray, float]:
    center = domain.center
    return center, up(np.linalg.norm(np.maximum(domain.upper - center, center - domain.lower)))


@circumscribed.register
def _(domain: AbstractRound) -> tuple[np.ndarray, float]:
    return domain.center, up(np.linalg.norm(domain.matrix, 2))


@circumscribed.register
def _(domain: Region) -> tuple[np.ndarray, float]:
    return circumscribed(domain.hull)


# Matrices and rounding


def positive_definite(matrix: np.ndarray | None, dimension: int) -> np.ndarray:
    """The matrix of a form, checked; None is the identity."""
    if matrix is None:
        return np.eye(dimension)
    array = np.asarray(matrix, dtype=np.float64)
    if array.shape != (dimension, dimension) or not np.all(np.isfinite(array)):
        raise OptionError(
            f"The matrix must consist of {dimension} x {dimension} finite numbers, not "
            f"{array.tolist()}."
        )
    if (
        np.any(np.abs(array - array.T) > SLACK * np.max(np.abs(array)))
        or np.linalg.eigvalsh(array)[0] <= 0
    ):
        raise OptionError(
            f"The matrix must be symmetric and positive definite; it is {array.tolist()}."
        )
    return (array + array.T) / 2


def _rounding(matrix: np.ndarray) -> float:
    """More than the error of an eigenvalue of a symmetric matrix in float64."""
    return 4 * len(matrix) * EPS * float(np.linalg.norm(matrix))


def _down(value: float, dimension: int = 1, *conditions: float) -> float:
    """A positive value rounded down, by the more the larger the condition numbers of what went into
    it."""
    return max(0.0, float(value) * (1 - SLACK - 8 * dimension * EPS * float(sum(conditions))))


def up(value: Any) -> Any:
    """Rounded up."""
    return value * (1 + SLACK)
