"""The exponents of a singular point: homogeneous solutions of the equation with A frozen in each
sector.

In a sector with matrix A the functions of homogeneity β that solve A:D²u = 0 are combinations of (x
+ p y)^β and its mirror image (x + p̄ y)^β, where a11 + 2 a12 p + a22 p² = 0. A solution in H² has
no jump of u or ∇u across a ray and vanishes on the edges: two equations for each ray and one for
each edge, as many as unknowns. They have a solution where their determinant, holomorphic in β, is
zero. Only Re β > 1 belongs to H².
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage

from cordes.ansatz.singular.points import SingularPoint

SMALLEST, STEP, LARGEST = 1.02, 0.02, 6.05
IMAGINARY = np.arange(0.0, 1.6, 0.1)


class Eigenfunction(NamedTuple):
    """r^β Θ(θ) with Θ = c1 (w/m)^β + c2 (w̄/m̄)^β in each sector, w = cos θ + p sin θ and m its
    value on the middle ray; the real part is meant."""

    exponent: complex
    coefficients: np.ndarray
    roots: np.ndarray
    middles: np.ndarray


def complex_roots(matrices: np.ndarray) -> np.ndarray:
    a11, a12, a22 = matrices[:, 0, 0], matrices[:, 0, 1], matrices[:, 1, 1]
    return (-a12 + 1j * np.sqrt(a11 * a22 - a12**2)) / a22


def _turned(root: Any, middle: Any, angle: Any) -> tuple[Any, Any]:
    """w/m at an angle and its derivative: w = cos θ + p sin θ for a root p, m on the middle ray."""
    scale = np.cos(middle) + root * np.sin(middle)
    return (
        (np.cos(angle) + root * np.sin(angle)) / scale,
        (-np.sin(angle) + root * np.cos(angle)) / scale,
    )


def _matching(point: SingularPoint, exponent: np.ndarray) -> np.ndarray:
    """The matching matrices (..., 2S, 2S) for exponents (...)."""
    roots = complex_roots(point.matrices)
    middles = (point.rays[1:] + point.rays[:-1]) / 2
    exponent = np.asarray(exponent, dtype=complex)

    def entries(sector: int, angle: float) -> tuple[np.ndarray, np.ndarray]:
        """Values and angular derivatives of the two solutions of a sector on a ray, each (...,
        2)."""
        values, slopes = [], []
        for root in (roots[sector], np.conj(roots[sector])):
            ratio, turn = _turned(root, middles[sector], angle)
            power = ratio ** (exponent - 1)
            values.append(power * ratio)
            slopes.append(exponent * power * turn)
        return np.stack(values, axis=-1), np.stack(slopes, axis=-1)

    S = point.sectors
    matrix = np.zeros((*exponent.shape, 2 * S, 2 * S), dtype=complex)
    row = 0
    pairs = [(s, s + 1, point.rays[s + 1]) for s in range(S - 1)]
    if point.on_boundary:
        matrix[..., 0, 0:2] = entries(0, point.rays[0])[0]
        matrix[..., 1, 2 * S - 2 : 2 * S] = entries(S - 1, point.rays[-1])[0]
        row = 2
    else:
        pairs.append((S - 1, 0, point.rays[0]))
    for left, right, angle in pairs:
        # The last ray is the first one after a full turn.
        for before, after in zip(
            entries(left, point.rays[left + 1]), entries(right, angle), strict=True
        ):
            matrix[..., row, 2 * left : 2 * left + 2] += before
            matrix[..., row, 2 * right : 2 * right + 2] -= after
            row += 1
    return matrix


def _refine(point: SingularPoint, start: complex) -> complex | None:
    """Newton's method for the determinant with a difference quotient; None when it leaves the
    neighbourhood."""
    exponent = start
    for _ in range(40):
        centre, right, left = np.linalg.det(
            _matching(point, np.array([exponent, exponent + 1e-5, exponent - 1e-5]))
        )
        slope, bend = (right - left) / 2e-5, (right - 2 * centre + left) / 1e-10
        # Halley's form converges at double zeros (two families with one exponent) as well.
        denominator = 2 * slope**2 - centre * bend
        if abs(denominator) < 1e-290:
            break
        step = 2 * centre * slope / denominator
        exponent -= step
        if abs(exponent - start) > 0.3:
            return None
        if abs(step) < 1e-13:
            break
    return exponent


def eigenfunctions(point: SingularPoint, largest: float) -> list[Eigenfunction]:
    """All homogeneous solutions with 1 < Re β <= largest, computed once for each local geometry."""
    rays, matrices = point.rays.tobytes(), np.ascontiguousarray(point.matrices).tobytes()
    found = _cached(rays, matrices, point.on_boundary, max(largest, LARGEST))
    return [function for function in found if function.exponent.real <= largest + 1e-6]


@functools.lru_cache(maxsize=256)
def _cached(rays: bytes, matrices: bytes, on_boundary: bool, largest: float) -> list[Eigenfunction]:
    frozen = np.frombuffer(matrices).reshape(-1, 2, 2)
    point = SingularPoint(np.zeros(2), np.frombuffer(rays), frozen, on_boundary)
    return _find_eigenfunctions(point, largest)


def _find_eigenfunctions(point: SingularPoint, largest: float) -> list[Eigenfunction]:
    real = np.arange(SMALLEST, largest + STEP, STEP)
    grid = real[:, None] + 1j * IMAGINARY[None, :]
    smallest = np.linalg.svd(_scaled(_matching(point, grid)), compute_uv=False)[..., -1]
    padded = np.pad(smallest, 1, constant_values=np.inf)
    # The determinant is symmetric under conjugation, so the row below the real axis mirrors the one
    # above.
    padded[1:-1, 0] = smallest[:, 1]
    around = scipy.ndimage.minimum_filter(padded, size=3)[1:-1, 1:-1]
    candidates = grid[(smallest <= around) & (smallest < 0.3)]
    roots: list[complex] = []
    found: list[Eigenfunction] = []
    for start in candidates:
        exponent = _refine(point, complex(start))
        if exponent is None or not (1.001 < exponent.real <= largest + 1e-6):
            continue
        if exponent.imag < -1e-6:
            continue
        if abs(exponent.imag) < 1e-5:
            exponent = complex(exponent.real, 0.0)
        if any(abs(exponent - other) < 1e-4 for other in roots):
            continue
        solutions = _null_functions(point, exponent)
        if solutions:
            roots.append(exponent)
            found += solutions
    return sorted(found, key=lambda function: function.exponent.real)


def _scaled(matrices: np.ndarray) -> np.ndarray:
    """With rows of length one."""
    return matrices / np.linalg.norm(matrices, axis=-1, keepdims=True)


def _null_functions(point: SingularPoint, exponent: complex) -> list[Eigenfunction]:
    """A basis of the real functions with this exponent (the real and imaginary parts of the null
    vectors)."""
    _, values, vectors = np.linalg.svd(_scaled(_matching(point, np.array(exponent))))
    null = [np.conj(vector) for value, vector in zip(values, vectors, strict=True) if value < 1e-6]
    roots, middles = complex_roots(point.matrices), (point.rays[1:] + point.rays[:-1]) / 2
    candidates = [
        Eigenfunction(exponent, factor * vector.reshape(-1, 2), roots, middles)
        for vector in null
        for factor in (1.0, -1j)
    ]
    if exponent.imag != 0:
        return candidates
    # For a real exponent Re and Im of one null vector may be multiples of each other: keep an
    # independent set.
    angles = np.concatenate(
        [np.linspace(a, b, 9)[1:-1] for a, b in zip(point.rays[:-1], point.rays[1:], strict=True)]
    )
    sectors = np.repeat(np.arange(point.sectors), 7)
    kept: list[Eigenfunction] = []
    basis = np.zeros((0, len(angles)))
    for candidate in candidates:
        profile = angular_jet(candidate, angles, sectors)[0][:, 0]
        rest = profile - basis.T @ (basis @ profile)
        size = np.linalg.norm(profile)
        if np.linalg.norm(rest) > 1e-3 * max(size, 1e-12) and size > 1e-3:
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            kept.append(
                candidate._replace(coefficients=candidate.coefficients / np.max(np.abs(profile)))
            )
    return kept


def angular_jet(function: Eigenfunction, angles: np.ndarray, sectors: np.ndarray) -> np.ndarray:
    """Θ, Θ', Θ'' at angles whose sectors are known, (3, N, 1); real where the exponent is."""
    beta = function.exponent
    total = np.zeros((3, len(angles)), dtype=complex)
    for k, root in enumerate((function.roots[sectors], np.conj(function.roots[sectors]))):
        ratio, turn = _turned(root, function.middles[sectors], angles)
        power = function.coefficients[sectors, k] * ratio ** (beta - 2)
        # d/dθ w^β = β w^(β-1) w', and w'' = -w.
        total += [
            power * ratio**2,
            beta * power * ratio * turn,
            beta * (beta - 1) * power * turn**2 - beta * power * ratio**2,
        ]
    return (total if beta.imag else np.real(total))[:, :, None]
