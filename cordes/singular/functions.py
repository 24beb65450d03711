"""Singular functions with their jets: S(x) = B(x) · r^β (log r)^l · Φ(θ) around each singular point.

B is the product of the distances to the edges that do not touch the point, so S vanishes on the whole boundary and no cut-off is needed: S is smooth
away from its point. The leading terms use the exact angular eigenfunctions; the terms above them, r^(β+j), use generic angular functions, with a
logarithm where an exponent is resonant (A = I on a box: β = 2).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, jet_of
from cordes.singular.angular import angular_tables
from cordes.singular.exponents import Eigenfunction, eigenfunctions
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


def radial_factors(leading: Sequence[Eigenfunction], sectors: int, largest: float) -> tuple[Radial, ...]:
    """Which r^β (log r)^l follow the leading terms.

    Each term of the expansion begets the next power of r; f forces the integers 2, 3, … (with one sector and no resonance those are polynomials,
    which the network has). A forced exponent that is an eigenvalue gets one more logarithm.
    """
    homogeneous = sorted({round(function.exponent.real, 9) for function in leading})

    def resonant(exponent: float) -> bool:
        return any(abs(exponent - other) < RESONANCE for other in homogeneous)

    highest: dict[float, int] = {}
    sources = [(exponent + 1, 0) for exponent in homogeneous]
    sources += [(float(n), 0) for n in range(2, int(largest) + 1) if sectors > 1 or resonant(n)]
    queue = sorted(sources)
    while queue:
        exponent, logs = queue.pop(0)
        if exponent > largest + 1e-9:
            continue
        logs = min(logs + resonant(exponent), 2)
        near = next((known for known in highest if abs(known - exponent) < 1e-6), None)
        if near is not None and highest[near] >= logs:
            continue
        highest[exponent if near is None else near] = logs
        queue = sorted([*queue, (exponent + 1, logs)])
    return tuple(Radial(exponent, l) for exponent, logs in sorted(highest.items()) for l in range(logs + 1))


class SingularFunctions:
    """The singular functions of a two-dimensional problem; `count` may be zero."""

    def __init__(self, domain: AbstractDomain, points: Sequence[SingularPoint] = (), largest: float = 5.0, degree: int = 8):
        families, factors = [], []
        for point in points:
            leading = tuple(eigenfunctions(point, largest))
            families.append(Family(point, leading, radial_factors(leading, point.sectors, largest), degree))
            factors.append(boundary_factor(domain, point))
        lower, upper = domain.bounding_box
        self.families, self.factors = tuple(families), tuple(factors)
        self.scale = float(np.max(upper - lower)) / 2

    @property
    def count(self) -> int:
        if not self.families:
            return 0
        return jax.eval_shape(lambda x: self.jets(x).value, jax.ShapeDtypeStruct((1, 2), jnp.float64)).shape[1]

    def jets(self, x: Array) -> Jet:
        """Jets of all functions at points (N, 2): value (N, S), gradient (N, S, 2), Hessian (N, S, 2, 2)."""
        parts = [self._family_jets(x, family, factor) for family, factor in zip(self.families, self.factors, strict=True)]
        return jax.tree.map(lambda *columns: jnp.concatenate(columns, axis=1), *parts)

    def rows(self, x: Array, zeroth: Array, first: Array, second: Array) -> Array:
        """zeroth·S + first·∇S + second:D²S for all functions, (N, S), without their Hessians."""
        if not self.families:
            return jnp.zeros((len(x), 0))
        parts = []
        for family, factor in zip(self.families, self.factors, strict=True):
            value, gradient, hessian = jax.vmap(jet_of(factor))(x)
            slope = jnp.einsum("nij,nj->ni", second, gradient)
            zeroth_polar = zeroth * value + jnp.sum(first * gradient, axis=1) + jnp.sum(second * hessian, axis=(1, 2))
            parts.append(self._polar_rows(x, family, zeroth_polar, value[:, None] * first + 2 * slope, value[:, None, None] * second))
        return jnp.concatenate(parts, axis=1)

    def _polar_rows(self, x: Array, family: Family, zeroth: Array, first: Array, second: Array) -> Array:
        r, radial, tangent, F = self._polar(x, family)
        rr, rt, tt = (jnp.einsum("ni,nij,nj->n", a, second, b)[:, None] for a, b in ((radial, radial), (radial, tangent), (tangent, tangent)))
        fr, ft = (jnp.sum(first * direction, axis=1)[:, None] for direction in (radial, tangent))
        r = r[:, None]
        return (
            zeroth[:, None] * F.value
            + fr * F.r
            + ft * F.t / r
            + rr * F.rr
            + 2 * rt * (F.rt / r - F.t / r**2)
            + tt * (F.r / r + F.tt / r**2)
        )

    def _family_jets(self, x: Array, family: Family, factor: Callable) -> Jet:
        b, db, ddb = jax.vmap(jet_of(factor))(x)
        r, radial, tangent, F = self._polar(x, family)
        r = r[:, None]
        e, t = radial[:, None, :], tangent[:, None, :]
        gradient = F.r[..., None] * e + (F.t / r)[..., None] * t
        ee, et, tt = (a[..., :, None] * c[..., None, :] for a, c in ((e, e), (e, t), (t, t)))
        mixed = (F.rt / r - F.t / r**2)[..., None, None] * (et + jnp.swapaxes(et, -1, -2))
        hessian = F.rr[..., None, None] * ee + mixed + (F.r / r + F.tt / r**2)[..., None, None] * tt
        cross = db[:, None, :, None] * gradient[..., None, :]
        return Jet(
            b[:, None] * F.value,
            b[:, None, None] * gradient + F.value[..., None] * db[:, None, :],
            b[:, None, None, None] * hessian + cross + jnp.swapaxes(cross, -1, -2) + F.value[..., None, None] * ddb[:, None],
        )

    def _polar(self, x: Array, family: Family) -> tuple[Array, Array, Array, "Polar"]:
        """Radius, unit vectors and polar derivatives; lengths are in units of the domain so that r^β stays of order one."""
        point = family.point
        offset = x - point.location
        length = jnp.maximum(jnp.linalg.norm(jnp.where(jnp.all(offset == 0, axis=1, keepdims=True), TINY, offset), axis=1), TINY)
        radial = offset / length[:, None]
        tangent = jnp.stack([-radial[:, 1], radial[:, 0]], axis=1)
        middle = (point.rays[0] + point.rays[-1]) / 2
        # Angles are measured around the middle ray, so that rounding at an edge cannot wrap them around.
        cosine, sine = np.cos(middle), np.sin(middle)
        angle = middle + jnp.arctan2(cosine * radial[:, 1] - sine * radial[:, 0], cosine * radial[:, 0] + sine * radial[:, 1])
        columns = [_leading(family, length / self.scale, angle), *_generic(family, length / self.scale, angle)]
        merged = Polar(*(jnp.concatenate(parts, axis=1) for parts in zip(*columns, strict=True)))
        s = self.scale
        return length, radial, tangent, merged._replace(r=merged.r / s, rr=merged.rr / s**2, rt=merged.rt / s)


class Polar(NamedTuple):
    """F(r, θ) and its partial derivatives, each (N, functions)."""

    value: Array
    r: Array
    t: Array
    rr: Array
    rt: Array
    tt: Array


def _leading(family: Family, r: Array, angle: Array) -> Polar:
    """The exact eigenfunctions Re(r^β Θ(θ))."""
    point = family.point
    sector = jnp.clip(jnp.sum(angle[:, None] >= np.asarray(point.rays)[None, 1:-1], axis=1), 0, point.sectors - 1)
    columns = []
    for function in family.leading:
        beta = function.exponent
        theta = [jnp.zeros(len(r), complex)] * 3
        for k, roots in enumerate((function.roots, np.conj(function.roots))):
            weight = jnp.asarray(function.coefficients[:, k])[sector]
            root = jnp.asarray(roots)[sector]
            middle = (np.cos(function.middles) + roots * np.sin(function.middles))[sector]
            ratio = (jnp.cos(angle) + root * jnp.sin(angle)) / middle
            turn = (-jnp.sin(angle) + root * jnp.cos(angle)) / middle
            power = weight * ratio ** (beta - 2)
            # d/dθ w^β = β w^(β-1) w', and w'' = -w.
            terms = power * ratio**2, beta * power * ratio * turn, beta * (beta - 1) * power * turn**2 - beta * power * ratio**2
            theta = [total + term for total, term in zip(theta, terms, strict=True)]
        R = r**beta
        R1, R2 = beta * R / r, beta * (beta - 1) * R / r**2
        table = R * theta[0], R1 * theta[0], R * theta[1], R2 * theta[0], R1 * theta[1], R * theta[2]
        columns.append([jnp.real(entry)[:, None] for entry in table])
    if not columns:
        return Polar(*([jnp.zeros((len(r), 0))] * 6))
    return Polar(*(jnp.concatenate(parts, axis=1) for parts in zip(*columns, strict=True)))


def _generic(family: Family, r: Array, angle: Array) -> list[Polar]:
    """r^β (log r)^l times every generic angular function."""
    if not family.radials:
        return []
    T, T1, T2 = angular_tables(family.point, angle, family.degree)
    parts = []
    for beta, logs in family.radials:
        L = jnp.log(r)
        R = r**beta * L**logs
        # Derivatives of r^β L^l, written with l L^(l-1) so that l = 0 needs no division by L.
        first = beta * L**logs + (logs * L ** (logs - 1) if logs else 0.0)
        second = beta * (beta - 1) * L**logs + ((2 * beta - 1) * logs * L ** (logs - 1) if logs else 0.0) + (2.0 if logs == 2 else 0.0)
        R1, R2 = r ** (beta - 1) * first, r ** (beta - 2) * second
        R, R1, R2 = R[:, None], R1[:, None], R2[:, None]
        parts.append(Polar(R * T, R1 * T, R * T1, R2 * T, R1 * T1, R * T2))
    return parts


def boundary_factor(domain: AbstractDomain, point: SingularPoint) -> Callable[[Array], Array]:
    """B: one at the point, zero on the parts of the boundary that do not touch it."""
    if domain.vertices is None or not point.on_boundary:
        at_point = float(domain.distance(jnp.asarray(point.location)))
        return lambda x: domain.distance(x) / at_point
    vertices = domain.vertices
    edges = np.roll(vertices, -1, axis=0) - vertices
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1) / np.linalg.norm(edges, axis=1, keepdims=True)
    heights = np.sum((point.location - vertices) * normals, axis=1)
    away = heights > 1e-9 * np.max(np.abs(edges))
    normals, starts, heights = normals[away], vertices[away], heights[away]

    def factor(x: Array) -> Array:
        return jnp.prod(jnp.sum((x - starts) * normals, axis=1) / heights)

    return factor
