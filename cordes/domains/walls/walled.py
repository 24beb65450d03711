"""A box with a condition on each of its faces. What the rest of the program asks a domain for is
here what the conditions ask: `distance` is a factor whose products with functions of `coordinates`
fulfil the homogeneous conditions, `lift` has the data of all faces."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain, Fit, Lift, PointFunction, Scalar
from cordes.domains.walls.direction import Direction
from cordes.errors import DomainError

# Edges between two faces along which data are compared, and so many points of each.
EDGE_POINTS, EDGE_SEED = 200, 20_411


class FaceData(NamedTuple):
    """What is given on each face, (axis, end) ↦ a function of one point. Called with a point of the
    boundary, what holds on its face."""

    domain: "Walled"
    functions: dict[tuple[int, int], Callable[..., Array]]
    # Whether all of them are zero.
    zero: bool = False

    def __call__(self, x: Array) -> Array:
        total = jnp.zeros(())
        for (axis, end), function in self.functions.items():
            place = (self.domain.lower, self.domain.upper)[end][axis]
            total = jnp.where(x[axis] == place, function(x), total)
        return total

    def on(self, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """At many points of faces."""
        found = np.zeros(len(points))
        for (axis, end), function in self.functions.items():
            here = normals[:, axis] == (1.0 if end else -1.0)
            if np.any(here):
                found[here] = np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(points[here])))
        return found


class FaceDataInTime(NamedTuple):
    """The same, of functions of (x, t)."""

    domain: "Walled"
    functions: dict[tuple[int, int], Callable[..., Array]]

    def __call__(self, x: Array, t: Array) -> Array:
        return self.at(t)(x)

    def at(self, t: Any) -> FaceData:
        functions = {
            face: lambda x, own=own: own(x, jnp.asarray(t)) for face, own in self.functions.items()
        }
        return FaceData(self.domain, functions)


class Coordinates(NamedTuple):
    """Those of all directions, one after the other."""

    directions: tuple[Direction, ...]

    def __call__(self, x: Array) -> Array:
        parts = [each.coordinates(x[k]) for k, each in enumerate(self.directions)]
        return jnp.stack([part for own in parts for part in own])


@final
class Walled(AbstractDomain):
    """The box of all x with lower < x < upper, with what holds at the ends of each direction."""

    box: Box
    directions: tuple[Direction, ...] = eqx.field(static=True)

    def __init__(self, box: Box, directions: Sequence[Direction]):
        self.box, self.directions = box, tuple(directions)

    def __repr__(self) -> str:
        return f"Walled({self.box!r}, {', '.join(map(_in_words, self.directions))})"

    @property
    def lower(self) -> np.ndarray:
        return self.box.lower

    @property
    def upper(self) -> np.ndarray:
        return self.box.upper

    @property
    def widths(self) -> np.ndarray:
        return self.box.widths

    @property
    def dimension(self) -> int:
        return self.box.dimension

    @property
    def volume(self) -> float:
        return self.box.volume

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        return self.box.bounding_box

    @property
    def center(self) -> np.ndarray:
        return self.box.center

    @property
    def pieces(self) -> tuple[str, ...]:
        return self.box.pieces

    @property
    def free(self) -> bool:
        """Whether constants fulfil the homogeneous conditions."""
        return all(each.free for each in self.directions)

    @property
    def faces(self) -> list[tuple[int, int]]:
        """Those on which something is given, as (axis, end)."""
        own = [k for k, each in enumerate(self.directions) if not each.periodic]
        return [(axis, end) for axis in own for end in (0, 1)]

    @property
    def doubled(self) -> Box:
        """The box with its mirror image across each face opposite to one where u is given."""
        lower, upper = self.lower, self.upper
        for axis, each in enumerate(self.directions):
            if each.given == 1 and each.first is None:
                upper[axis] += each.width
            elif each.given == 1:
                lower[axis] -= each.width
        return Box(lower, upper)

    @property
    def mirrored(self) -> int:
        """How many directions are doubled there."""
        return sum(each.given == 1 for each in self.directions)

    # The space of the homogeneous conditions

    def distance(self, x: Array) -> Scalar:
        parts = [each.factor(x[k]) for k, each in enumerate(self.directions)]
        return functools.reduce(jnp.multiply, parts)

    @property
    def coordinates(self) -> Callable[[Array], Array]:
        return Coordinates(self.directions)

    # Points

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        return self.box.contains(points, tolerance)

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        return self.box.interior_points(count, seed, kind)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        return self.box.quadrature(count)

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        return self.box.boundary_at(directions)

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        return self.box.boundary_points(count, seed)

    def condition_at(self, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether anything is given at points with these outer normals, and the weights of ∂ₙu and
        u in it."""
        known, slope, value = (np.zeros(len(normals)) for _ in range(3))
        for axis, end in self.faces:
            here = normals[:, axis] == (1.0 if end else -1.0)
            kappa = self.directions[axis].kappa(end)
            known[here], slope[here] = 1.0, 0.0 if kappa is None else 1.0
            value[here] = 1.0 if kappa is None else kappa
        return known.astype(bool), slope, value

    # Data

    def boundary_operator(
        self, function: PointFunction, axis: int, end: int
    ) -> Callable[[Array], Array]:
        """What is given on a face, of a function, at the projection of a point on the face."""
        kappa = self.directions[axis].kappa(end)
        place, sign = (self.lower, self.upper)[end][axis], 1.0 if end else -1.0

        def applied(x: Array) -> Array:
            x = jnp.asarray(x).at[axis].set(place)
            if kappa is None:
                return function(x)
            along = jnp.zeros_like(x).at[axis].set(1.0)
            value, slope = jax.jvp(function, (x,), (along,))
            return sign * slope + kappa * value

        return applied

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """The boolean sum I - Π(I - Pᵢ), Pᵢ the interpolation of the data of direction i by its
        cardinal functions. Multiplied out it is a sum over faces, edges and corners, with sign +
        for an odd number of directions and - for an even one; what is given on one face says there
        what the others ask of it, if the data fit together. Corners of the plane are numbers."""
        if not isinstance(g, FaceData):
            raise DomainError("A box with conditions on its faces has data for each of them.")
        parts: list[tuple[tuple[tuple[int, int], ...], float, Callable[..., Any]]] = []
        for chosen in self._corners():
            function = g.functions[chosen[0]]
            axis, end = chosen[0]
            place = (self.lower, self.upper)[end][axis]
            part = lambda x, f=function, k=axis, p=place: f(x.at[k].set(p))  # noqa: E731
            for face in chosen[1:]:
                part = self.boundary_operator(part, *face)
            if len(chosen) == self.dimension:
                number = part(jnp.asarray(self.center))
                part = lambda x, number=number: number  # noqa: E731
            parts.append((chosen, 1.0 if len(chosen) % 2 else -1.0, part))

        def lift(x: Array) -> Array:
            x, total = jnp.asarray(x), jnp.zeros(())
            shapes = [
                (0.0, 0.0) if each.periodic else each.cardinal(x[k])
                for k, each in enumerate(self.directions)
            ]
            for chosen, sign, part in parts:
                product = sign * part(x)
                for axis, end in chosen:
                    product = product * shapes[axis][end]
                total = total + product
            return total

        return Lift(lift)

    def _corners(self) -> list[tuple[tuple[int, int], ...]]:
        """All faces, edges and corners, by the faces in which they lie."""
        ends = [(None,) if each.periodic else (None, 0, 1) for each in self.directions]
        found = []
        for code in itertools.product(*ends):
            chosen = tuple((axis, end) for axis, end in enumerate(code) if end is not None)
            if chosen:
                found.append(chosen)
        return found

    def mismatch(self, g: FaceData) -> tuple[float, np.ndarray, tuple[str, str]] | None:
        """Where two faces meet, what is given on one implies something for the other: the largest
        difference relative to the data, its place, and the two faces; None without edges."""
        # Slopes of data that vanish at an edge are rounding of the data elsewhere.
        whole = g.on(*self.boundary_points(4 * EDGE_POINTS, EDGE_SEED))
        worst, scale = None, max(float(np.max(np.abs(whole))), 1e-300)
        for one in self.faces:
            for other in self.faces:
                if one[0] >= other[0]:
                    continue
                points = self._edge(one, other)
                values = [
                    np.asarray(jax.jit(jax.vmap(each))(jnp.asarray(points)))
                    for each in (
                        self.boundary_operator(g.functions[one], *other),
                        self.boundary_operator(g.functions[other], *one),
                    )
                ]
                gap = np.abs(values[0] - values[1])
                scale = max(scale, *(float(np.max(np.abs(each))) for each in values))
                n = int(np.argmax(gap))
                if worst is None or gap[n] > worst[0]:
                    worst = float(gap[n]), points[n], (self._name(one), self._name(other))
        return None if worst is None else (worst[0] / scale, *worst[1:])

    def _edge(self, *faces: tuple[int, int]) -> np.ndarray:
        """Points of the edge between two faces, its corners among them."""
        count = 1 if self.dimension == 2 else EDGE_POINTS
        points = self.box.interior_points(count, EDGE_SEED)
        corners = np.random.default_rng(EDGE_SEED).integers(0, 2, points.shape)
        ends = np.stack([self.lower, self.upper])
        points[::4] = ends[corners[::4], np.arange(self.dimension)]
        for axis, end in faces:
            points[:, axis] = ends[end, axis]
        return points

    def _name(self, face: tuple[int, int]) -> str:
        return self.pieces[2 * face[0] + face[1]]


def _in_words(direction: Direction) -> str:
    if direction.periodic:
        return "periodic"
    return "-".join(_end_in_words(direction.kappa(end)) for end in (0, 1))


def _end_in_words(kappa: float | None) -> str:
    if kappa is None:
        return "D"
    return "N" if kappa == 0 else f"R({kappa:.17g})"


def directions_of(domain: Any) -> tuple[Direction, ...] | None:
    """What holds at the ends of each direction; None where values are given all over."""
    return domain.directions if isinstance(domain, Walled) else None


def walled_part(domain: Any) -> Walled | None:
    """The box with conditions that a domain is, or that the base of a cylinder is."""
    base = getattr(domain, "base", domain)
    return base if isinstance(base, Walled) else None
