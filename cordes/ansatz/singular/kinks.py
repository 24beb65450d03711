"""The part of a lift that has the kinks of g: smooth inside, with the jumps of the derivatives of g
at each kink, so that what is left of g can be extended by any smooth formula.

At a kink inside of an edge let X be the coordinate along the boundary, Y ≥ 0 that into the domain
(the height above the edge, D/|∇D| on a smooth boundary), and w = X + pY with a₁₁ + 2a₁₂p + a₂₂p² =
0 for A frozen there. Im(wᵐ log w)/π solves the frozen equation and equals Xᵐ on the boundary before
the kink and zero after it. With the Taylor coefficients of g on both sides these functions take
away the jumps of all derivatives up to the order ORDER. The first one has D² ~ 1/r, as u has, which
is not square integrable: what is left of u is in H², because A - A(p) vanishes at the kink.

Where A has several limits at the kink, in sectors between rays, the first function is k Im(w log w)
+ aX + bY in each of them, with its own w: kIm w = cY has to be common to all, and a, b make it C¹.
For sup_a (L^a u - f^a) = 0 the sectors are those of the best controls: with D²u = M(θ)/r the
equation at the kink is sup_a A^a:M = 0, where M = q ττᵀ + cK(θ), K = r D²(Y log r) is known and τ
is the unit tangent of the circle. It increases with q, so that q = min_a -cA^a:K/τ·A^aτ, and the
sign of c is that of the jump.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial import Chebyshev

from cordes.ansatz.singular.charts import GUARD, Curves, curves_of
from cordes.ansatz.singular.exponents import complex_roots
from cordes.ansatz.singular.points import SingularPoint
from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError
from cordes.problems.kinks.boundary_kinks import BoundaryKink
from cordes.problems.kinks.panels import one_sided
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

# Derivatives whose jumps are taken away, as far as rounding lets them be seen.
ORDER, VISIBLE = 6, 1e-3
# Angles at which the best control is looked for, bisections between two of them, and the difference
# of matrices, relative to their traces, that makes two.
ANGLES, BISECTIONS, SAME = 721, 60, 1e-9
# How far from a kink, in units of the domain, A is compared with its value there, and the largest
# change that is no jump.
NEARBY, CONTINUOUS = 1e-9, 1e-3
# Heights above an edge, in units of the domain, that are only rounding.
ON_EDGE = 1e-13
EPSILON = float(np.finfo(np.float64).eps)


class Sectors(NamedTuple):
    """Angles between the tangent at a kink and the rays, from 0 to π, and A in each sector, in the
    coordinates X and Y."""

    rays: np.ndarray
    matrices: np.ndarray


class KinkPart:
    """One kink: its coordinates X and Y, A around it, and the coefficients cₘ of the functions.
    `others` are the points of a smooth boundary, beside the kink, where X and Y vanish too."""

    def __init__(self, domain: AbstractDomain, kink: BoundaryKink):
        self.location, (t1, t2) = kink.location, kink.tangent
        self.frame = np.array([[t1, t2], [-t2, t1]])
        self.flat = domain.vertices is not None
        self.others = np.zeros((0, 2)) if self.flat else _opposite(domain, kink, self.frame[1])
        self.distance, self.slope = domain.distance, 1.0
        if not self.flat:
            gradient = jax.grad(domain.distance)(jnp.asarray(self.location))
            self.slope = float(np.linalg.norm(np.asarray(gradient)))
        self.left = 0.0
        self.coefficients, self.sectors = np.zeros(0), Sectors(np.zeros(0), np.zeros((0, 2, 2)))

    def along(self, x: Array) -> Array:
        """X at one point."""
        return jnp.dot(self.frame[0], x - self.location)

    def height(self, x: Array) -> Array:
        """Y at one point."""
        return (
            jnp.dot(self.frame[1], x - self.location)
            if self.flat
            else self.distance(x) / self.slope
        )

    def fit(self, g: Callable, kink: BoundaryKink, size: float) -> None:
        """The coefficients cₘ: differences of the Taylor coefficients of g (over the guard) in X
        before and after the kink."""

        def ratio(x: Array) -> Array:
            return jnp.stack([self.along(x), g(x) / _guard(x, self.location, self.others)])

        taylor, order, self.left = np.zeros((2, ORDER)), ORDER, 0.0
        for side, points in enumerate(kink.sides):
            X, values = np.asarray(jax.jit(jax.vmap(ratio))(points), dtype=np.float64).T
            series, growth, error = _steadiest(X, values)
            self.left += error * growth
            for m in range(1, ORDER + 1):
                # Rounding of the m-th derivative at an end, seen from the far side of the domain.
                noise = EPSILON * (growth * size) ** m / math.factorial(m)
                order = min(order, m - 1 if noise > VISIBLE and m > 1 else ORDER)
                if m <= series.degree():
                    taylor[side, m - 1] = series.deriv(m)(0.0) / math.factorial(m)
        self.coefficients = taylor[0] - taylor[1]
        self.coefficients[order:] = 0.0

    def curves(self) -> Curves:
        """The jets of Y and X."""
        return curves_of(self.height, self.along)

    def point(self, number: int) -> SingularPoint:
        """Where singular functions with D² in L² follow the first one."""
        start = np.arctan2(self.frame[0, 1], self.frame[0, 0])
        return SingularPoint(
            self.location,
            start + self.sectors.rays,
            self.frame.T @ self.sectors.matrices @ self.frame,
            on_boundary=True,
            interface=number,
            others=self.others,
            kink=True,
        )


def kinked(parts: Sequence[KinkPart], size: float) -> Callable[..., Array]:
    """The functions of all kinks, as one function of one point. With `on_boundary` the point is on
    the boundary, and heights that are only rounding are zero: near a kink they would be seen in the
    second derivatives."""
    most = max(len(part.sectors.matrices) for part in parts)
    order = max(int(np.max(np.flatnonzero(part.coefficients), initial=0)) for part in parts) + 1

    def stacked(rows: Callable[[KinkPart], np.ndarray]) -> np.ndarray:
        return np.stack([rows(part) for part in parts])

    def padded(array: np.ndarray, fill: float = 0.0) -> np.ndarray:
        short = most - len(array)
        return np.concatenate([array, np.full((short, *array.shape[1:]), fill)])

    table = Table(
        stacked(lambda part: part.coefficients[:order]),
        stacked(lambda part: complex_roots(np.mean(part.sectors.matrices, axis=0)[None])[0]),
        stacked(lambda part: padded(part.sectors.rays[1:-1], np.inf)),
        stacked(lambda part: padded(complex_roots(part.sectors.matrices))),
        stacked(lambda part: padded(_first_function(part.sectors))),
    )
    locations, frames = stacked(lambda part: part.location), stacked(lambda part: part.frame)
    others, slopes = stacked(lambda part: part.others), np.array([part.slope for part in parts])
    flat, distance = parts[0].flat, parts[0].distance

    def total(x: Array, on_boundary: bool = False) -> Array:
        z = jnp.einsum("kij,kj->ki", frames, x - locations)
        if not flat:
            z = jnp.stack([z[:, 0], distance(x) / slopes], axis=1)
        if on_boundary:
            z = jnp.where(jnp.array([False, True]) & (jnp.abs(z) < ON_EDGE * size), 0.0, z)
        values = jax.vmap(_value)(jax.tree.map(jnp.asarray, table), z)
        if flat:
            return jnp.sum(values)
        return jnp.dot(jax.vmap(_guard, (None, 0, 0))(x, locations, others), values)

    return total


class Table(NamedTuple):
    """What the functions of a kink are made of: cₘ, the root p for the mean of A; the rays between
    sectors, and the roots p and the numbers k, a, b of the first function in each of them."""

    coefficients: Any
    root: Any
    rays: Any
    roots: Any
    first: Any


def _jet(table: Table, z: Array) -> tuple[Array, Array, Array]:
    """Value, gradient and Hessian of Σ cₘ fₘ at X, Y = z, in closed form: automatic derivatives of
    the lift would take longer to compile than the solve takes."""
    X, Y = z
    sector = jnp.sum(_logarithm(X, Y).imag >= table.rays)
    root, (k, a, b) = table.roots[sector], table.first[sector]
    first, w = table.coefficients[0], X + root * Y
    logarithm, safe = _logarithm(w.real, w.imag), jnp.where(w == 0, 1.0, w)
    value = first * (k * (w * logarithm).imag + a * X + b * Y)
    slopes, bends = (
        jnp.stack([jnp.ones_like(root), root]),
        jnp.stack([jnp.ones_like(root), root, root**2]),
    )
    gradient = first * (k * ((logarithm + 1) * slopes).imag + jnp.stack([a, b]))
    hessian = first * k * (bends / safe).imag
    w = X + table.root * Y
    logarithm = _logarithm(w.real, w.imag)
    slopes = jnp.stack([jnp.ones_like(w), table.root])
    bends = jnp.stack([slopes[0], slopes[1], table.root**2])
    before, power = jnp.ones_like(w), w
    for m, coefficient in enumerate(table.coefficients[1:] / np.pi, start=2):
        # Here w^(m-2) and w^(m-1).
        value += coefficient * (power * w * logarithm).imag
        gradient += coefficient * (power * (m * logarithm + 1) * slopes).imag
        hessian += coefficient * (before * (m * (m - 1) * logarithm + 2 * m - 1) * bends).imag
        before, power = power, power * w
    return value, gradient, jnp.stack([hessian[:2], hessian[1:]])


@jax.custom_jvp
def _gradient(table: Table, z: Array) -> Array:
    return _jet(table, z)[1]


@_gradient.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    _, gradient, hessian = _jet(*primals)
    return gradient, hessian @ tangents[1]


@jax.custom_jvp
def _value(table: Table, z: Array) -> Array:
    return _jet(table, z)[0]


@_value.defjvp
def _(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    return _value(*primals), _gradient(*primals) @ tangents[1]


def _guard(x: Array, location: Any, others: Any) -> Array:
    """Zero in the other points, one at the kink."""
    far, near = jnp.sum((x - others) ** 2, axis=-1), jnp.sum((x - location) ** 2)
    return jnp.prod((far / (far + near)) ** GUARD)


def _logarithm(real: Array, imaginary: Array) -> Array:
    """log w in the closed upper half plane. The argument is measured from the imaginary axis, so
    that rounding on the boundary does not make π out of zero."""
    square = real**2 + imaginary**2
    zero = square == 0
    angle = np.pi / 2 - jnp.arctan2(jnp.where(zero, 1.0, real), imaginary)
    return 0.5 * jnp.log(jnp.where(zero, 1.0, square)) + 1j * angle


class KinkSide(NamedTuple):
    """Values on one side of a kink as a polynomial, how much larger a derivative at its end can be
    than itself, and its error."""

    series: Chebyshev
    growth: float
    error: float


def _steadiest(X: np.ndarray, values: np.ndarray) -> KinkSide:
    """Over a shorter part a lower degree may do: of the polynomials that follow the values to
    rounding the one with the smallest derivatives."""
    scale = float(np.max(np.abs(values)))
    found = []
    for share in (1.0, 0.5, 0.25, 0.125):
        part = np.abs(X) <= share * np.max(np.abs(X))
        series = one_sided(X[part], values[part], scale)
        error = float(np.max(np.abs(series(X[part]) - values[part])))
        growth = max(series.degree(), 1) ** 2 / float(np.ptp(X[part]))
        found.append(KinkSide(series, growth, max(error, 4 * EPSILON * scale)))
    best = max(min(side.error for side in found), 64 * EPSILON * scale)
    return min((side for side in found if side.error <= best), key=lambda side: side.growth)


def _opposite(domain: AbstractDomain, kink: BoundaryKink, inwards: np.ndarray) -> np.ndarray:
    """The other point of a smooth boundary on the normal at a kink."""
    lower, upper = domain.bounding_box
    low, high = 1e-6 * np.max(upper - lower), 2 * np.linalg.norm(upper - lower)
    distance = jax.jit(domain.distance)
    for _ in range(80):
        middle = (low + high) / 2
        inside = float(distance(jnp.asarray(kink.location + middle * inwards))) > 0
        low, high = (middle, high) if inside else (low, middle)
    return (kink.location + low * inwards)[None]


def _first_function(sectors: Sectors) -> np.ndarray:
    """k, a, b of the first function in each sector, scaled to equal X on the boundary before the
    kink and zero after it."""
    roots = complex_roots(sectors.matrices)

    def jet(k: int, angle: float) -> np.ndarray:
        """Im(w log w)/Im p and its derivative on the unit circle, at an angle."""
        w = np.cos(angle) + roots[k] * np.sin(angle)
        turn = -np.sin(angle) + roots[k] * np.cos(angle)
        real, imaginary = w.real, max(w.imag, 0.0)
        logarithm = np.log(abs(w)) + 1j * np.arctan2(imaginary, real)
        return np.array([(w * logarithm).imag, (turn * (logarithm + 1)).imag]) / roots[k].imag

    linear = [np.zeros(2)]
    for k, angle in enumerate(sectors.rays[1:-1]):
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        linear.append(linear[-1] + turn.T @ (jet(k, angle) - jet(k + 1, angle)))
    end = jet(len(roots) - 1, np.pi)[0] - linear[-1][0]
    rows = np.column_stack([1 / np.imag(roots), np.array(linear)])
    return -rows / end


def best_sectors(matrices: np.ndarray, sense: float, sign: float) -> Sectors:
    """The sectors of the best of several matrices (m, 2, 2) around a kink, see the module; `sign`
    is that of c."""
    traces = np.trace(matrices, axis1=1, axis2=2)
    _, kept = np.unique(
        np.round((matrices / traces[:, None, None]).reshape(-1, 4) / SAME),
        axis=0,
        return_index=True,
    )
    matrices = matrices[np.sort(kept)]

    def best(angle: np.ndarray) -> np.ndarray:
        e = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        t = np.stack([-e[:, 1], e[:, 0]], axis=1)
        up = np.array([0.0, 1.0])
        K = (
            up[:, None] * e[:, None, :]
            + e[:, :, None] * up
            + e[:, 1, None, None] * (np.eye(2) - 2 * e[:, :, None] * e[:, None, :])
        )
        q = -sign * np.einsum("aij,nij->na", matrices, K)
        return np.argmin(sense * q / np.einsum("ni,aij,nj->na", t, matrices, t), axis=1)

    if len(matrices) == 1:
        return Sectors(np.array([0.0, np.pi]), matrices)
    grid = np.linspace(0, np.pi, ANGLES + 1)
    found = best((grid[1:] + grid[:-1]) / 2)
    rays, active = [0.0], [matrices[found[0]]]
    middles = (grid[1:] + grid[:-1]) / 2
    for k in np.flatnonzero(found[1:] != found[:-1]):
        low, high = middles[k], middles[k + 1]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            before = best(np.array([middle]))[0] == found[k]
            low, high = (middle, high) if before else (low, middle)
        rays.append((low + high) / 2)
        active.append(matrices[found[k + 1]])
    return Sectors(np.array([*rays, np.pi]), np.array(active))


def kink_parts(problem: AbstractProblem, points: Sequence[SingularPoint]) -> list[KinkPart]:
    """The parts for the kinks of a problem's boundary values; `points` are its singular points, as
    far as they are known: an interface may arrive at a kink."""
    domain, parts = problem.domain, []
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    for kink in problem.boundary_shape.kinks:
        part = KinkPart(domain, kink)
        part.fit(problem.g, kink, size)
        met = [
            point
            for point in points
            if np.linalg.norm(point.location - kink.location) < 1e-7 * size
        ]
        part.sectors = _met(part, met[0]) if met else _frozen(problem, part, size)
        parts.append(part)
    return parts


def _met(part: KinkPart, point: SingularPoint) -> Sectors:
    """The sectors between interfaces that arrive at a kink."""
    start = np.arctan2(part.frame[0, 1], part.frame[0, 0])
    rays = (point.rays - start + 1e-3) % (2 * np.pi) - 1e-3
    rays[0], rays[-1] = 0.0, np.pi
    return Sectors(rays, part.frame @ point.matrices @ part.frame.T)


def _frozen(problem: AbstractProblem, part: KinkPart, size: float) -> Sectors:
    """A at the kink, of the best control where there are several."""
    matrices = part.frame @ problem.family(part.location[None]).A @ part.frame.T
    for angle in np.linspace(0.1, np.pi - 0.1, 8):
        direction = part.frame.T @ np.array([np.cos(angle), np.sin(angle)])
        nearby = problem.family((part.location + NEARBY * size * direction)[None]).A
        change = np.abs(part.frame @ nearby @ part.frame.T - matrices)
        if not np.max(change) <= CONTINUOUS * np.max(np.abs(matrices)):
            raise CoefficientError(
                f"A jumps at x = {show(part.location)}, where g has a kink: declare a straight "
                "interface there, or smooth one of them."
            )
    return best_sectors(matrices, problem.sign, float(np.sign(part.coefficients[0])))
