"""Singular functions with their jets: S(x) = B(x) · r^β (log r)^l · Φ(θ) around each singular point.

B is the product of the distances to the edges that do not touch the point, so S vanishes on the whole boundary and no cut-off is needed: S is smooth
away from its point. The leading terms use the exact angular eigenfunctions; the terms above them, r^(β+j), use generic angular functions, with a
logarithm where an exponent is resonant (A = I on a box: β = 2).

Written with NumPy on purpose: the columns are computed once for a set of points, and compiling them would take longer than a whole solve.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, jet_of
from cordes.singular.angular import angular_tables
from cordes.singular.exponents import Eigenfunction, angular_jet, eigenfunctions
from cordes.singular.points import SingularPoint

TINY = 1e-30
RESONANCE = 0.05


class Radial(NamedTuple):
    """r^exponent (log r)^logs."""

    exponent: float
    logs: int


class Family(NamedTuple):
    """All functions of one singular point: exact leading terms, and generic ones for each radial factor."""

    point: SingularPoint
    leading: tuple[Eigenfunction, ...]
    radials: tuple[Radial, ...]
    degree: int


def radial_factors(point: SingularPoint, leading: Sequence[Eigenfunction], largest: float) -> tuple[Radial, ...]:
    """Which r^β (log r)^l follow the leading terms.

    Each term of the expansion begets others `step` powers of r higher; f forces the integers 2, 3, … (with one sector and no resonance those are
    polynomials, which the network has). A forced exponent that is an eigenvalue gets one more logarithm. At the tip of a cone everything is an integer
    from 3 on.
    """
    homogeneous = sorted({round(function.exponent.real, 9) for function in leading})
    tip = point.sectors == 1 and not point.on_boundary

    def resonant(exponent: float) -> bool:
        return any(abs(exponent - other) < RESONANCE for other in homogeneous)

    highest: dict[float, int] = {}
    queue = [(exponent + point.step, 0) for exponent in homogeneous]
    if tip:
        queue += [(float(n), 1) for n in range(3, int(largest) + 1)]
    else:
        queue += [(float(n), 0) for n in range(2, int(largest) + 1) if point.sectors > 1 or resonant(n)]
    while queue:
        queue.sort()
        exponent, logs = queue.pop(0)
        if exponent > largest + 1e-9:
            continue
        logs = min(logs + resonant(exponent), 2)
        near = next((known for known in highest if abs(known - exponent) < 1e-6), None)
        if near is not None and highest[near] >= logs:
            continue
        highest[exponent if near is None else near] = logs
        queue.append((exponent + point.step, logs))
    return tuple(Radial(exponent, l) for exponent, logs in sorted(highest.items()) for l in range(logs + 1))


class Term(NamedTuple):
    """R(r) Φ(θ) for one radial factor and k angular functions: R, R', R'' (N, 1) and Φ, Φ', Φ'' (N, k); complex ones stand for their real part."""

    radial: tuple[np.ndarray, np.ndarray, np.ndarray]
    angular: tuple[np.ndarray, np.ndarray, np.ndarray]


class Frame(NamedTuple):
    """Polar coordinates around a singular point: radius (N,) in domain units, angle (N,), and the unit vectors (N, 2)."""

    r: np.ndarray
    angle: np.ndarray
    radial: np.ndarray
    tangent: np.ndarray


class SingularFunctions:
    """The singular functions of a two-dimensional problem; `count` may be zero."""

    def __init__(self, domain: AbstractDomain, points: Sequence[SingularPoint] = (), largest: float = 5.0, degree: int = 8):
        lower, upper = domain.bounding_box
        self.scale = float(np.max(upper - lower)) / 2
        self.families = tuple(_family(point, largest, degree) for point in points)
        self._factors = tuple(BoundaryFactor(domain, point) for point in points)
        here = np.asarray(domain.center)[None]
        self.counts = tuple(self._columns(here, family, factor).shape[1] for family, factor in zip(self.families, self._factors, strict=True))
        self.count = sum(self.counts)

    def rows(self, x: np.ndarray, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """zeroth·S + first·∇S + second:D²S for all functions, (N, count)."""
        x, zeroth, first, second = (np.asarray(array, dtype=np.float64) for array in (x, zeroth, first, second))
        columns = [np.zeros((len(x), 0))]
        for family, factor in zip(self.families, self._factors, strict=True):
            B = factor.jet(x)
            # The expression for B·F, sorted by derivatives of F.
            of_value = zeroth * B.value + np.sum(first * B.gradient, axis=1) + np.sum(second * B.hessian, axis=(1, 2))
            of_gradient = B.value[:, None] * first + 2 * np.einsum("nij,nj->ni", second, B.gradient)
            columns += self._polar_rows(x, family, of_value, of_gradient, B.value[:, None, None] * second)
        return np.concatenate(columns, axis=1)

    def _polar_rows(self, x: np.ndarray, family: Family, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray) -> Iterator[np.ndarray]:
        """The same for F(r, θ): in polar coordinates only Φ, Φ' and Φ'' are multiplied, by vectors that the radial factor makes."""
        frame = self._frame(x, family.point)
        r, s = frame.r[:, None], self.scale
        rr, rt, tt = (np.einsum("ni,nij,nj->n", a, second, b)[:, None] / s**2 for a, b in _pairs(frame))
        fr, ft = (np.sum(first * direction, axis=1)[:, None] / s for direction in (frame.radial, frame.tangent))
        for (R, R1, R2), (T, T1, T2) in _terms(family, frame):
            of_T = zeroth[:, None] * R + (fr + tt / r) * R1 + rr * R2
            of_T1 = (ft / r - 2 * rt / r**2) * R + 2 * rt / r * R1
            yield np.real(of_T * T + of_T1 * T1 + (tt / r**2 * R) * T2)

    def values(self, x: np.ndarray) -> np.ndarray:
        """S at points (N, 2), shape (N, count)."""
        columns = [self._columns(x, family, factor) for family, factor in zip(self.families, self._factors, strict=True)]
        return np.concatenate([np.zeros((len(x), 0)), *columns], axis=1)

    def _columns(self, x: np.ndarray, family: Family, factor: "BoundaryFactor") -> np.ndarray:
        B = factor.jet(x).value[:, None]
        return np.concatenate([np.real(B * R * T) for (R, _, _), (T, _, _) in _terms(family, self._frame(x, family.point))], axis=1)

    def combined_jet(self, x: np.ndarray, amplitudes: np.ndarray) -> Jet:
        """The jet of Σ amplitude·S: value (N,), gradient (N, 2), Hessian (N, 2, 2), one row expression for each component."""
        n, zero, none = len(x), np.zeros(len(x)), np.zeros((len(x), 2))
        empty = np.zeros((n, 2, 2))

        def direction(i: int) -> np.ndarray:
            return np.tile(np.eye(2)[i], (n, 1))

        def pair(i: int, j: int) -> np.ndarray:
            unit = (np.outer(np.eye(2)[i], np.eye(2)[j]) + np.outer(np.eye(2)[j], np.eye(2)[i])) / 2
            return np.tile(unit, (n, 1, 1))

        gradient = [self.rows(x, zero, direction(i), empty) @ amplitudes for i in range(2)]
        xx, xy, yy = (self.rows(x, zero, none, pair(i, j)) @ amplitudes for i, j in ((0, 0), (0, 1), (1, 1)))
        hessian = np.stack([np.stack([xx, xy], axis=1), np.stack([xy, yy], axis=1)], axis=1)
        return Jet(self.values(x) @ amplitudes, np.stack(gradient, axis=1), hessian)  # pyright: ignore[reportArgumentType]

    def _frame(self, x: np.ndarray, point: SingularPoint) -> Frame:
        offset = np.where(np.all(x == point.location, axis=1, keepdims=True), TINY, x - point.location)
        length = np.maximum(np.linalg.norm(offset, axis=1), TINY)
        radial = offset / length[:, None]
        tangent = np.stack([-radial[:, 1], radial[:, 0]], axis=1)
        # Angles are measured around the middle ray, so that rounding at an edge cannot wrap them around.
        middle = (point.rays[0] + point.rays[-1]) / 2
        cosine, sine = np.cos(middle), np.sin(middle)
        angle = middle + np.arctan2(cosine * radial[:, 1] - sine * radial[:, 0], cosine * radial[:, 0] + sine * radial[:, 1])
        return Frame(length / self.scale, angle, radial, tangent)


def _family(point: SingularPoint, largest: float, degree: int) -> Family:
    # The tip of a cone has no rays: its homogeneous solutions are polynomials.
    leading = tuple(eigenfunctions(point, largest)) if point.on_boundary or point.sectors > 1 else ()
    return Family(point, leading, radial_factors(point, leading, largest), degree)


def _pairs(frame: Frame) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    return (frame.radial, frame.radial), (frame.radial, frame.tangent), (frame.tangent, frame.tangent)


def _terms(family: Family, frame: Frame) -> Iterator[Term]:
    """The exact leading terms, then each generic radial factor with all angular functions."""
    point, r = family.point, frame.r[:, None]
    sector = np.clip(np.searchsorted(point.rays[1:-1], frame.angle, side="right"), 0, point.sectors - 1)
    for function in family.leading:
        beta = function.exponent if function.exponent.imag else function.exponent.real
        R = r**beta
        yield Term((R, beta * R / r, beta * (beta - 1) * R / r**2), angular_jet(function, frame.angle, sector))
    if family.radials:
        tables = angular_tables(point, frame.angle, family.degree)
        L = np.log(r)
        for beta, logs in family.radials:
            # Derivatives of r^β L^l, written with l L^(l-1) so that l = 0 needs no division by L.
            first = beta * L**logs + (logs * L ** (logs - 1) if logs else 0.0)
            second = beta * (beta - 1) * L**logs + ((2 * beta - 1) * logs * L ** (logs - 1) if logs else 0.0) + (2.0 if logs == 2 else 0.0)
            yield Term((r**beta * L**logs, r ** (beta - 1) * first, r ** (beta - 2) * second), tables)


class BoundaryFactor:
    """B: one at the point, zero on the parts of the boundary that do not touch it; a product of distances to edges, or D where edges are curved."""

    def __init__(self, domain: AbstractDomain, point: SingularPoint):
        self.curved = None
        if domain.vertices is None:
            at_point = float(domain.distance(jnp.asarray(point.location)))
            self.curved = jax.jit(jax.vmap(jet_of(lambda x: domain.distance(x) / at_point)))
            return
        vertices = domain.vertices
        edges = np.roll(vertices, -1, axis=0) - vertices
        normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1) / np.linalg.norm(edges, axis=1, keepdims=True)
        heights = np.sum((point.location - vertices) * normals, axis=1)
        away = heights > 1e-9 * np.max(np.abs(edges))
        self.slopes = normals[away] / heights[away, None]
        self.starts = vertices[away]

    def jet(self, x: np.ndarray) -> Jet:
        if self.curved is not None:
            return Jet(*(np.asarray(part) for part in self.curved(x)))  # pyright: ignore[reportArgumentType]
        value, gradient, hessian = np.ones(len(x)), np.zeros((len(x), 2)), np.zeros((len(x), 2, 2))
        for slope, start in zip(self.slopes, self.starts, strict=True):
            height = (x - start) @ slope
            cross = gradient[:, :, None] * slope
            hessian = hessian * height[:, None, None] + cross + np.swapaxes(cross, 1, 2)
            gradient = gradient * height[:, None] + value[:, None] * slope
            value = value * height
        return Jet(value, gradient, hessian)  # pyright: ignore[reportArgumentType]
