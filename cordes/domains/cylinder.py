"""The space-time cylinder Ω × (t₀, t₁), whose last coordinate is the time since the start: where
equations in time hold, as any other equation holds on its domain.

Its boundary is the parabolic one, the bottom t = t₀ and the sides ∂Ω × (t₀, t₁): there values are
given. Nothing is given on the top.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.boundary_fit import best_fit, chebyshev, coefficient_tensor, contracted
from cordes.domains.box import Box, face_blend
from cordes.domains.checks import check_count
from cordes.domains.domain import AbstractDomain, Basis, Fit, Lift, PointFunction, Scalar
from cordes.domains.polygon import Polygon, corner_blend
from cordes.domains.round import AbstractRound
from cordes.domains.unit_cube import cube_points, gauss_rule, tensor_rule
from cordes.domains.walls import FaceData, FaceDataInTime, Walled
from cordes.errors import DomainError

# Points of the boundary to which values are fitted at each of so many times less one, and a share
# that is rounding.
FITTED, FIT_SEED = 2000, 20_260
IN_TIME, NEGLIGIBLE = 24, 1e-15
# Points of the boundary on the bottom, of all.
BOTTOM = 0.4

# An extension of values on the boundary of Ω: for a point of Ω, points of the boundary and the
# weights with which the values there count.
Extension = Callable[[Array], tuple[Array, Array]]


class WithTime(NamedTuple):
    """Coordinates of space, and the time from -1 to 1."""

    inside: Callable[[Array], Array]
    start: float
    length: float

    def __call__(self, z: Array) -> Array:
        return jnp.append(self.inside(z[:-1]), 2 * (z[-1] - self.start) / self.length - 1)


@final
class Cylinder(AbstractDomain):
    """All (x, t) with x in the domain `base` and start < t < end; its distance function is that of
    the base times the share of the time that has passed."""

    base: AbstractDomain
    start: float = eqx.field(static=True)
    end: float = eqx.field(static=True)
    # What the last coordinate is called.
    time: str = eqx.field(static=True)

    def __init__(self, base: AbstractDomain, end: float, start: float = 0.0, time: str = "t"):
        if not start < end:
            raise DomainError(f"The time ends at {end}, which is not after its start at {start}.")
        self.base, self.start, self.end, self.time = base, float(start), float(end), time

    def __repr__(self) -> str:
        return f"Cylinder({self.base!r}, {self.start:.17g} < {self.time} < {self.end:.17g})"

    @property
    def length(self) -> float:
        """Of time."""
        return self.end - self.start

    @property
    def dimension(self) -> int:
        return self.base.dimension + 1

    @property
    def volume(self) -> float:
        return self.base.volume * self.length

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self.base.bounding_box
        return np.append(lower, self.start), np.append(upper, self.end)

    @property
    def center(self) -> np.ndarray:
        return np.append(self.base.center, (self.start + self.end) / 2)

    @property
    def coordinates(self) -> Callable[[Array], Array] | None:
        inside = self.base.coordinates
        return None if inside is None else WithTime(inside, self.start, self.length)

    def between(self, start: float, end: float) -> "Cylinder":
        """A slab of it."""
        return Cylinder(self.base, end, start, self.time)

    def distance(self, x: Array) -> Scalar:
        return (x[-1] - self.start) / self.length * self.base.distance(x[:-1])

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        t = points[..., -1]
        during = (t >= self.start - tolerance) & (t <= self.end + tolerance)
        return during & self.base.contains(points[..., :-1], tolerance)

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        """Of a box the points of a longer box, which are balanced in space and time together."""
        if isinstance(self.base, Box):
            lower, upper = self.bounding_box
            return lower + (upper - lower) * cube_points(count, self.dimension, seed, kind)
        x = self.base.interior_points(count, seed, kind)
        # Points of the base may follow any sequence: the times are shuffled against it.
        order = np.random.default_rng([seed, count]).permutation(count)
        t = cube_points(count, 1, seed + 1, kind)[order, 0]
        return np.column_stack([x, self.start + self.length * t])

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        x, weights = self.base.quadrature(count)
        t, in_time = gauss_rule(check_count(count))
        index, together = tensor_rule([(np.arange(len(x)), weights), (t, in_time)])
        place = x[index[:, 0].astype(int)]
        return np.column_stack(
            [place, self.start + self.length * index[:, 1]]
        ), self.length * together

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        """Rays that would leave through the top end on the sides at the last time."""
        middle, half = self.center[-1], self.length / 2
        x = self.base.boundary_at(directions[..., :-1])
        reach = np.linalg.norm(x - self.base.center, axis=-1)
        across = np.linalg.norm(directions[..., :-1], axis=-1)
        along = reach / np.maximum(across, 1e-300) * directions[..., -1]
        down = along < -half
        share = np.where(down, half / np.maximum(-along, 1e-300), 1.0)[..., None]
        inside = self.base.center + share * (x - self.base.center)
        t = np.where(down, self.start, middle + np.clip(along, -half, half))
        return np.concatenate([inside, t[..., None]], axis=-1)

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Of the bottom and of the sides, each uniformly."""
        below = max(1, min(count - 1, round(BOTTOM * count)))
        generator = np.random.default_rng([seed, 1])
        on_sides, outward = self.base.boundary_points(max(count - below, 1), seed)
        t = self.start + self.length * generator.random(len(on_sides))
        bottom = self.base.interior_points(below, seed)
        points = np.concatenate(
            [
                np.column_stack([bottom, np.full(below, self.start)]),
                np.column_stack([on_sides, t]),
            ]
        )
        normals = np.zeros_like(points)
        normals[:below, -1], normals[below:, :-1] = -1.0, outward
        return points, normals

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """Values on the bottom and on the sides, `g.initial(x)` and `g.lateral(x, t)`, and a way to
        carry the former through time, `g.carried(x, t)`: see `lift_in_time`."""
        initial = getattr(g, "initial", None)
        lateral = getattr(g, "lateral", None)
        if initial is None or lateral is None:
            raise DomainError("A cylinder has values on its bottom and others on its sides.")
        carried = getattr(g, "carried", None) or (lambda x, t: initial(x))
        return lift_in_time(self, carried, lateral, fit)


def lift_in_time(
    domain: Cylinder,
    carried: Callable[[Array, Array], Array],
    lateral: Callable[[Array, Array], Array],
    fit: Fit | None = None,
) -> Lift:
    """G(x, t) = U(x, t) + P(x, t) - P(x, t₀) + E[(g - U - P + P(·, t₀))(·, t)](x), where U carries
    the initial values through time, P is a fit to g - U on the sides, smooth in space and time, and
    E extends boundary values into Ω.

    On the sides G is g; at t₀ it is U(x, t₀), because g and U agree there on the boundary of Ω.
    Boxes need no fit: their E is as smooth as the values on the faces.
    """
    start, base = domain.start, domain.base
    if isinstance(base, Walled) and isinstance(lateral, FaceDataInTime):
        return _lift_of_faces(base, carried, lateral)

    def left(z: Array) -> Array:
        return lateral(z[:-1], z[-1]) - carried(z[:-1], z[-1])

    found = _side_values(domain, left)
    if found is None:
        return Lift(lambda z: carried(z[:-1], z[-1]))
    extend = extension(base)
    fitted = None if isinstance(base, Box) else _fitted(domain, left, found, fit)

    def polynomial(x: Array, t: Array) -> Array:
        assert fitted is not None
        now, first = jnp.append(x, t), jnp.append(x, start)
        both = jax.vmap(fitted)(jnp.stack([now, first]))
        return both[0] - both[1]

    def remainder(x: Array, t: Array) -> Array:
        value = left(jnp.append(x, t))
        return value if fitted is None else value - polynomial(x, t)

    def lift(z: Array) -> Array:
        x, t = z[:-1], z[-1]
        on_boundary, weights = extend(x)
        sides = weights @ jax.vmap(lambda y: remainder(y, t))(on_boundary)
        total = carried(x, t) + sides
        return total if fitted is None else total + polynomial(x, t)

    return Lift(lift, None if fitted is None else fitted.fit)


def _lift_of_faces(
    base: Walled, carried: Callable[[Array, Array], Array], lateral: FaceDataInTime
) -> Lift:
    """U(x, t) and the lift of what it misses on the faces, which is nothing at the start."""

    def lift(z: Array) -> Array:
        x, t = z[:-1], z[-1]
        now, wanted = (lambda y: carried(y, t)), lateral.at(t)
        missed = {
            face: lambda y, face=face, own=own: own(y) - base.boundary_operator(now, *face)(y)
            for face, own in wanted.functions.items()
        }
        return now(x) + base.lift(FaceData(base, missed))(x)

    return Lift(lift)


def _side_values(domain: Cylinder, left: PointFunction) -> np.ndarray | None:
    """What is left to lift at points of the sides; None where it is zero all over them by its
    formula."""
    x, _ = domain.base.boundary_points(FITTED, FIT_SEED)
    if domain.base.vertices is not None:
        x = np.concatenate([x, domain.base.vertices])
    generator = np.random.default_rng(FIT_SEED)
    t = domain.start + domain.length * generator.random(len(x))
    points = np.column_stack([x, t])
    values = np.asarray(jax.jit(jax.vmap(left))(jnp.asarray(points)), float)
    if not np.any(values) and _constant(left, points[0]):
        return None
    return values


def _constant(function: PointFunction, point: np.ndarray) -> bool:
    """Whether the value of a function depends on no coordinate, read from its jaxpr."""
    jaxpr = jax.make_jaxpr(function)(jnp.asarray(point)).jaxpr
    dependent = {id(variable) for variable in jaxpr.invars}
    for equation in jaxpr.eqns:
        if any(id(variable) in dependent for variable in equation.invars):
            dependent.update(id(variable) for variable in equation.outvars)
    return not any(id(variable) in dependent for variable in jaxpr.outvars)


def _fitted(
    domain: Cylinder, left: PointFunction, values: np.ndarray, fit: Fit | None
) -> Lift | None:
    """Polynomials in x whose coefficients are polynomials in t: fits of the boundary values at
    Chebyshev's times. Basis.multiplier is the degree in t."""
    if float(np.max(np.abs(values))) == 0.0:
        return None
    found = fit if fit is not None else _fit_in_time(domain, left, float(np.max(np.abs(values))))
    (lower, upper), d = domain.bounding_box, domain.base.dimension
    degree, times = found.basis.degree, found.basis.multiplier
    rows = found.coefficients.reshape(times + 1, -1)
    tensor = np.stack([coefficient_tensor(row, degree, d) for row in rows])

    def fitted(z: Array) -> Array:
        table = chebyshev(2 * (z - lower) / (upper - lower) - 1, max(degree, times))
        in_time = contracted(table[:d, : degree + 1], tensor)
        return table[d, : times + 1] @ in_time

    return Lift(fitted, found)


def _fit_in_time(domain: Cylinder, left: PointFunction, scale: float) -> Fit:
    x, _ = domain.base.boundary_points(FITTED, FIT_SEED)
    if domain.base.vertices is not None:
        x = np.concatenate([x, domain.base.vertices])
    lower, upper = domain.base.bounding_box
    angles = (np.arange(IN_TIME + 1) + 0.5) * np.pi / (IN_TIME + 1)
    at = jax.jit(jax.vmap(left))
    fits = []
    for share in (1 + np.cos(angles)) / 2:
        points = np.column_stack([x, np.full(len(x), domain.start + domain.length * share)])
        values = np.asarray(at(jnp.asarray(points)), float)
        if np.max(np.abs(values)) <= NEGLIGIBLE * scale:
            fits.append(Fit(Basis(0), np.zeros(1)))
        else:
            fits.append(best_fit((2 * x - lower - upper) / (upper - lower), [], values))
    degree = max(fit.basis.degree for fit in fits)
    count = max(len(fit.coefficients) for fit in fits)
    # The functions of a basis come first in the next.
    rows = np.stack([np.pad(fit.coefficients, (0, count - len(fit.coefficients))) for fit in fits])
    # From values at Chebyshev's times to coefficients of Chebyshev's polynomials.
    turn = 2 / (IN_TIME + 1) * np.cos(np.outer(np.arange(IN_TIME + 1), angles))
    turn[0] /= 2
    coefficients = turn @ rows
    large = np.max(np.abs(coefficients), axis=1) > NEGLIGIBLE * np.max(np.abs(coefficients))
    times = int(np.flatnonzero(large)[-1])
    return Fit(Basis(degree, (), times), coefficients[: times + 1].ravel())


@functools.singledispatch
def extension(domain: AbstractDomain) -> Extension:
    """How values on the boundary of a domain reach inside: linear in the values, and smooth."""
    raise DomainError(
        f"{type(domain).__name__} does not say how boundary values that change in time reach "
        "inside. Subtract an extension of g from u, so that g and the initial values on the "
        "boundary are the same constant."
    )


@extension.register
def _box(domain: Box) -> Extension:
    return face_blend(domain.lower, domain.upper)


@extension.register
def _polygon(domain: Polygon) -> Extension:
    vertices = domain.vertices
    blend = corner_blend(vertices, domain.normals)

    def extend(x: Array) -> tuple[Array, Array]:
        on_edges, of_edges, of_vertices = blend(x)
        points = jnp.concatenate([on_edges, jnp.asarray(vertices)])
        return points, jnp.concatenate([of_edges, -of_vertices])

    return extend


@extension.register
def _round(domain: AbstractRound) -> Extension:
    """As in `radial_lift`: |y|⁴ times the value at y/|y|."""
    center, matrix, dimension = domain.center, domain.matrix, domain.dimension
    inverse = np.linalg.inv(matrix)

    def extend(x: Array) -> tuple[Array, Array]:
        y = jnp.asarray((x - center) @ inverse.T)
        square = y @ y
        at_center = square < 1e-30
        y = jnp.where(at_center, jnp.eye(dimension)[0], y)
        square = jnp.where(at_center, 1.0, square)
        on_boundary = jnp.asarray(center) + jnp.asarray(matrix) @ (y / jnp.sqrt(square))
        return on_boundary[None], jnp.where(at_center, 0.0, square**2)[None]

    return extend


def is_box(domain: AbstractDomain) -> bool:
    """Whether a domain is its own bounding box, in space or in space and time."""
    base = domain.base if isinstance(domain, Cylinder) else domain
    return isinstance(base, Box | Walled)
