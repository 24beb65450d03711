"""The exponential transform for drifts that are nearly gradients: v = e^{-φ/2} z turns (A, b, c)
into

    b̃ = b - A∇φ,    c̃ = c + ½ b·∇φ - ¼ A∇φ·∇φ + ½ A:D²φ,    r̃ = e^{φ/2} r.

With ∇φ = A⁻¹b the drift is gone, however large it was. φ may be any smooth function, and is taken
here as the quadratic polynomial whose gradient is nearest to A⁻¹b: what is left of the drift stays
in the equation and goes through the same theorems. The certificate is for z, and is carried back by
sup e^{-φ/2} and sup|∇φ|.

Where ∂ₙv + κv = 0 on a face of a box, ∂ₙz + (κ - ½∂ₙφ)z = 0: the theorems hold for z where this is
again a number that is not negative, which it is at walls through which the drift carries out.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cordes.certificates.theorems.contraction import AbstractCoverage, Coverage
from cordes.certificates.theorems.energy import Local
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import Walled
from cordes.formulas.intervals import supremum
from cordes.problems.problem import AbstractProblem

LARGEST_DIMENSION = 10
# Beyond e^20 the factor that carries the bound back leaves nothing of it.
LARGEST_EXPONENT = 20.0


class Transform(NamedTuple):
    """φ(x) = p·y + ½ y·Sy + constant with y = x - center; the constant makes φ ≥ 0, so that sup
    e^{-φ/2} = `largest` is one up to rounding."""

    problem: AbstractProblem
    center: np.ndarray
    p: np.ndarray
    S: np.ndarray
    constant: float
    largest: float
    slope: float
    # With the conditions that z fulfils.
    domain: AbstractDomain | None = None

    def phi(self, x: np.ndarray) -> np.ndarray:
        y = x - self.center
        return self.constant + y @ self.p + np.einsum("ni,ij,nj->n", y, self.S, y) / 2

    def growth(self, x: np.ndarray) -> np.ndarray:
        """e^{φ/2}, rounded up."""
        return np.exp(self.phi(x) / 2) * (1 + 1e-12)

    def linearise(self, x: Any) -> tuple[Any, Any, Any]:
        """The transformed coefficients at one point."""
        A, b, c, _ = self.problem.at(x)
        gradient = self.p + (x - self.center) @ self.S if np.any(self.S) else jnp.asarray(self.p)
        image = A @ gradient
        c = c + jnp.dot(b, gradient) / 2 - jnp.dot(image, gradient) / 4 + jnp.sum(A * self.S) / 2
        return A, b - image, c

    def local(self, x: np.ndarray, local: Local) -> Local:
        """The transformed coefficients at points."""
        gradient = self.p + (x - self.center) @ self.S
        image = np.einsum("nij,nj->ni", local.A, gradient)
        c = local.c + np.sum(local.b * gradient, axis=1) / 2 - np.sum(image * gradient, axis=1) / 4
        c += np.sum(local.A * self.S, axis=(1, 2)) / 2
        return Local(local.A, local.b - image, c)

    def coverage(self, plain: AbstractCoverage) -> Coverage:
        constant = plain.constant and not np.any(self.S)
        given, local = plain.values, self.local(plain.points, plain.local)
        if given is None:
            return Coverage(plain.domain, None, None, plain.points, local, constant)

        def values(x: np.ndarray) -> Local:
            return self.local(x, given(x))

        return Coverage(plain.domain, self.linearise, values, plain.points, local, constant)


def find_transform(problem: AbstractProblem, points: np.ndarray, local: Local) -> Transform | None:
    """The quadratic φ nearest to the drift; None where it would not help or cannot be bounded."""
    domain, center = problem.domain, np.asarray(problem.domain.center)
    if domain.dimension > LARGEST_DIMENSION:
        return None
    target = np.linalg.solve(local.A, local.b[..., None])[..., 0]
    p, S = _fit(points - center, target)
    walled = _turned(domain, center, p, S) if isinstance(domain, Walled) else None
    if isinstance(domain, Walled) and walled is None:
        return None
    size = float(np.sqrt(np.mean(target**2)))
    rest = target - p - (points - center) @ S
    if size == 0 or np.sqrt(np.mean(rest**2)) > 0.7 * size:
        return None
    shallow = Transform(problem, center, p, S, 0.0, 1.0, 0.0)
    lowest = _largest_of_minus_phi(domain, shallow)
    if not math.isfinite(lowest):
        return None
    # |∇φ| is convex: its maximum over the bounding box is at a corner.
    slope = float(np.max(np.linalg.norm(p + _corners(domain) @ S, axis=1))) * (1 + 1e-12)
    transform = shallow._replace(
        constant=lowest, largest=1 + 1e-12, slope=slope, domain=walled or domain
    )
    return None if np.max(transform.phi(points)) > 2 * LARGEST_EXPONENT else transform


def _turned(domain: Walled, center: np.ndarray, p: np.ndarray, S: np.ndarray) -> Walled | None:
    """The conditions that z fulfils; None where a κ would change along a face or be negative, or
    where a periodic direction has a slope."""
    found = []
    for axis, each in enumerate(domain.directions):
        across, kappas = np.any(np.delete(S[axis], axis) != 0), []
        if each.periodic and (p[axis] != 0 or np.any(S[axis] != 0)):
            return None
        for end in (0, 1):
            kappa = each.kappa(end)
            place = (domain.lower, domain.upper)[end][axis] - center[axis]
            outer = (1.0 if end else -1.0) * float(p[axis] + place * S[axis, axis])
            if kappa is not None:
                # Rounded down: a smaller κ has smaller eigenvalues.
                kappa = (kappa - outer / 2) * (1 - 1e-12) if outer != 0 else kappa
                if across or kappa < 0:
                    return None
            kappas.append(kappa)
        found.append(each._replace(first=kappas[0], last=kappas[1]))
    return Walled(domain.box, found)


def _corners(domain: AbstractDomain) -> np.ndarray:
    """The corners of the bounding box, seen from the centre."""
    corners = itertools.product(*zip(*domain.bounding_box, strict=True))
    return np.array(list(corners)) - domain.center


def _fit(y: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p and symmetric S with p + Sy nearest to the target in the mean square."""
    n, d = y.shape
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    matrix = np.zeros((n, d, d + len(pairs)))
    matrix[:, np.arange(d), np.arange(d)] = 1.0
    for column, (i, j) in enumerate(pairs):
        matrix[:, i, d + column] += y[:, j]
        if i != j:
            matrix[:, j, d + column] += y[:, i]
    solution = np.linalg.lstsq(matrix.reshape(n * d, -1), target.ravel(), rcond=None)[0]
    size = float(np.max(np.abs(solution), initial=0.0))
    solution = np.where(np.abs(solution) < 1e-12 * size, 0.0, solution)
    S = np.zeros((d, d))
    for value, (i, j) in zip(solution[d:], pairs, strict=True):
        S[i, j] = S[j, i] = value
    return solution[:d], S


def _largest_of_minus_phi(domain: AbstractDomain, transform: Transform) -> float:
    """An upper bound of -φ over the domain."""
    center, p, S = transform.center, transform.p, transform.S
    if not np.any(S):
        return float(np.max(-_corners(domain) @ p)) * (1 + 1e-12) + 1e-12

    def bound(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Taylor's formula at the middle of each cell, which is exact for a quadratic."""
        middle, half = (low + high) / 2, (high - low) / 2
        slope = np.sum(np.abs(p + (middle - center) @ S) * half, axis=1)
        curvature = np.einsum("ni,ij,nj->n", half, np.abs(S), half) / 2
        return -transform.phi(middle) + slope + curvature + 1e-12

    def evaluate(x: np.ndarray) -> np.ndarray:
        return -transform.phi(x)

    start = np.asarray(domain.center)
    attained = float(evaluate(start[None])[0])
    return supremum(bound, evaluate, domain, attained, start, 0.02, 8000).upper
