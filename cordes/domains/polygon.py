"""The convex polygon."""

from collections.abc import Callable, Sequence
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.boundary_fit import fit_boundary, polygon_points, sample_count
from cordes.domains.checks import (
    Frozen,
    check_count,
    check_directions,
    check_size,
    freeze,
    real_array,
)
from cordes.domains.domain import (
    AbstractDomain,
    Fit,
    Lift,
    PointFunction,
    Scalar,
    boundary_values,
    constant_lift,
)
from cordes.domains.polygon_shape import (
    cross,
    edge_lines,
    fan_areas,
    polygon_area,
    polygon_inradius,
)
from cordes.domains.unit_cube import cube_points, gauss_rule, tensor_rule
from cordes.errors import DomainError

# Sine of an angle below which a vertex counts as straight, and relative distance below which two
# vertices count as one.
STRAIGHT = 1e-10
# Constants of the bounds look at all pairs of corners.
MOST_CORNERS = 1000


class _Maker(type(AbstractDomain)):
    """`Polygon(…)` is a domain of another class where the polygon is not convex or has holes."""

    def __call__(cls, vertices: Any, holes: Any = ()) -> Any:
        array = _vertex_array("The vertices of the polygon", vertices)
        if len(holes) or _is_concave(array):
            from cordes.domains.plane.polygons import plane_polygon

            rings = [_vertex_array(f"holes[{k}]", hole) for k, hole in enumerate(holes)]
            return plane_polygon(array, rings)
        return super().__call__(vertices)


@final
class Polygon(AbstractDomain, metaclass=_Maker):
    """The polygon with the given vertices, in either orientation. `holes` are lists of vertices.

    This class is the convex one: its distance function is the product of the distances to the
    edges, scaled to one at the centroid. What is not convex or has holes is made as a `Region`.

    Checked when made: at least three vertices, none repeated, none with an angle of 180°, no edge
    that touches or crosses another one.
    """

    _vertices: tuple[Frozen, ...] = eqx.field(static=True)

    def __init__(self, vertices: Any, holes: Any = ()):
        array = _vertex_array("The vertices of the polygon", vertices)
        if len(array) > MOST_CORNERS:
            raise DomainError(
                f"The polygon has {len(array)} vertices, {MOST_CORNERS} are allowed. Leave "
                "vertices out where the boundary is nearly straight, or take an Ellipsoid."
            )
        lower, upper = np.min(array, axis=0, initial=np.inf), np.max(array, axis=0, initial=-np.inf)
        if np.all(lower < upper):
            check_size("The polygon", lower, upper)
        self._vertices = tuple(freeze(vertex) for vertex in _counter_clockwise(array))

    @staticmethod
    def from_geojson(geometry: Any) -> AbstractDomain:
        """The polygon of a GeoJSON geometry or feature, or of its coordinates alone: the outline,
        then holes."""
        from cordes.domains.plane.drawn import from_geojson

        return from_geojson(geometry)

    @staticmethod
    def from_svg(path: str) -> AbstractDomain:
        """The domain inside of a path of SVG (its attribute d) made of lines and arcs of ellipses;
        what is drawn inside of it is a hole."""
        from cordes.domains.plane.drawn import from_svg

        return from_svg(path)

    def __repr__(self) -> str:
        return f"Polygon(vertices={[list(vertex) for vertex in self._vertices]})"

    @property
    def vertices(self) -> np.ndarray:
        return np.array(self._vertices)

    @property
    def pieces(self) -> tuple[str, ...]:
        return tuple(f"side {k + 1}" for k in range(len(self.vertices)))

    @property
    def edges(self) -> np.ndarray:
        """The vectors from each vertex to the next, shape (n, 2)."""
        return np.roll(self.vertices, -1, axis=0) - self.vertices

    @property
    def normals(self) -> np.ndarray:
        """Outward unit normals of the edges, shape (n, 2)."""
        return edge_lines(self.vertices)[0]

    @property
    def dimension(self) -> int:
        return 2

    @property
    def volume(self) -> float:
        return polygon_area(self.vertices)

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        return np.min(self.vertices, axis=0), np.max(self.vertices, axis=0)

    @property
    def center(self) -> np.ndarray:
        """The centroid."""
        vertices = self.vertices
        areas = fan_areas(vertices, vertices[0])
        middles = (vertices[0] + vertices + np.roll(vertices, -1, axis=0)) / 3
        return areas @ middles / np.sum(areas)

    @property
    def circumradius(self) -> float:
        """Radius of a ball around `center` that contains the domain."""
        return float(np.max(np.linalg.norm(self.vertices - self.center, axis=1)))

    @property
    def inradius(self) -> float:
        """Radius of the largest ball in the domain."""
        offsets = self.vertices - self.center
        return polygon_inradius(offsets, *edge_lines(offsets))

    def distance(self, x: Array) -> Scalar:
        scale = float(np.exp(np.mean(np.log(self._heights(self.center)))))
        normals, vertices = (jnp.asarray(part, x.dtype) for part in (self.normals, self.vertices))
        return jnp.prod(jnp.sum(normals * (vertices - x), axis=1) / scale)

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        return np.all(self._heights(np.asarray(points)) >= -tolerance, axis=-1)

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        """Points of the unit square carried over by a map that preserves area: the first coordinate
        runs around the centroid through the fan of triangles, the square root of the second is the
        relative distance from the centroid."""
        square = cube_points(count, 2, seed, kind)
        center, vertices = self.center, self.vertices
        shares = np.cumsum(fan_areas(vertices, center)) / self.volume
        found = np.searchsorted(shares, square[:, 0], side="right")
        triangle = np.minimum(found, len(vertices) - 1)
        start = np.concatenate([[0.0], shares])[triangle]
        along = np.clip((square[:, 0] - start) / (shares[triangle] - start), 0, 1)
        outer = vertices[triangle] + along[:, None] * self.edges[triangle]
        return center + np.sqrt(square[:, 1:]) * (outer - center)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Collapsed Gauss rules, count × count points on each triangle of the fan around the
        centroid, exact up to degree 2·count − 1."""
        points, weights = tensor_rule([gauss_rule(check_count(count), 1), gauss_rule(count)])
        center = self.center
        outer = self.vertices[:, None] + points[:, 1:] * self.edges[:, None]
        areas = 2 * fan_areas(self.vertices, center)
        inside = center + points[:, :1] * (outer - center)
        return inside.reshape(-1, 2), np.outer(areas, weights).ravel()

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        directions = check_directions(directions, 2)
        speeds = directions @ self.normals.T
        with np.errstate(divide="ignore"):
            reach = np.where(speeds > 0, self._heights(self.center) / np.maximum(speeds, 0), np.inf)
        edge = np.argmin(reach, axis=-1)
        points = self.center + np.min(reach, axis=-1)[..., None] * directions
        # Back on the edge, from which rounding has moved the point.
        start, ahead = self.vertices[edge], self.edges[edge]
        along = np.sum((points - start) * ahead, axis=-1) / np.sum(ahead**2, axis=-1)
        return start + np.clip(along, 0, 1)[..., None] * ahead

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(seed)
        lengths = np.linalg.norm(self.edges, axis=1)
        edge = generator.choice(len(lengths), size=check_count(count), p=lengths / np.sum(lengths))
        points = self.vertices[edge] + generator.random((len(edge), 1)) * self.edges[edge]
        return points, self.normals[edge]

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """A fit of g by polynomials and interface powers, and the blend of corners (`corner_blend`)
        of what is left."""
        vertices = self.vertices
        if (constant := constant_lift(g, vertices[0])) is not None:
            return constant
        points = polygon_points(vertices, sample_count(2, len(interfaces)), interfaces)
        lower, upper = self.bounding_box
        fitted = fit_boundary(
            g, points, lambda x: (2 * x - lower - upper) / (upper - lower), interfaces, fit
        )
        blend = corner_blend(vertices, self.normals)
        at_vertices = boundary_values(lambda x: g(x) - fitted(x), vertices)

        def lift(x: Array) -> Array:
            on_edges, edge_weights, vertex_weights = blend(x)
            fits = jax.vmap(fitted)(jnp.concatenate([x[None], on_edges]))
            remainder = edge_weights @ (jax.vmap(g)(on_edges) - fits[1:])
            return fits[0] + remainder - vertex_weights @ at_vertices

        return Lift(lift, fitted.fit)

    def _heights(self, points: np.ndarray) -> np.ndarray:
        """Distances to the lines through the edges, positive inside, shape (..., n)."""
        return np.sum((self.vertices - points[..., None, :]) * self.normals, axis=-1)


def _vertex_array(name: str, vertices: Any) -> np.ndarray:
    array = real_array(name, vertices, "a list of points of the plane")
    if array.ndim != 2 or array.shape[1] != 2:
        raise DomainError(f"{name} must have shape (n, 2), not {array.shape}.")
    return array


def corner_blend(
    vertices: np.ndarray, normals: np.ndarray
) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The extension of boundary values h into a convex polygon as a function of one point, which
    gives a point on each edge, the weights of h at these points and the weights of h at the
    vertices, to be subtracted.

    At each vertex vᵢ the two adjacent edges, with smooth parameters sᵢ₋₁ and sᵢ of their own, give
    h(eᵢ₋₁(sᵢ₋₁)) + h(eᵢ(sᵢ)) − h(vᵢ), which is exact on both edges. These corner functions are
    blended by κᵢ, the normalised product of the distances to all edges but those two, so that on an
    edge only its two ends count and both give h. With Wachspress weights κ the parameter is sᵢ =
    κᵢ₊₁/(κᵢ + κᵢ₊₁): on its edge the relative arc length, on the edges before and after it 0 and 1,
    inside between. No denominator vanishes in the closed polygon, so the extension is as smooth as
    h on each edge, vertices included, whatever the slopes of h on the two sides of a vertex, and
    linear functions are reproduced. Only in a triangle the edges before and after an edge meet, in
    the vertex opposite, where its parameter has no limit; there the weights κ are cubed, which
    keeps the second derivatives continuous.
    """
    count = len(vertices)
    ahead = np.roll(vertices, -1, axis=0) - vertices
    before = np.roll(normals, 1, axis=0)
    sines = cross(before, normals)
    scale = np.max(np.linalg.norm(ahead, axis=1))
    index = np.arange(count)
    adjacent = (index[None] == index[:, None]) | (index[None] == (index[:, None] - 1) % count)
    power = 3 if count == 3 else 1

    def blend(x: Array) -> tuple[Array, Array, Array]:
        heights = jnp.sum(jnp.asarray(normals) * (vertices - x), axis=1) / scale
        before_edge = jnp.roll(heights, 1) / sines
        after_edge = jnp.roll(heights, -1) / np.roll(sines, -1)
        total = before_edge + after_edge
        meeting = total <= 1e-100
        parameter = jnp.where(meeting, 0.5, before_edge / jnp.where(meeting, 1.0, total))
        weights = (jnp.prod(jnp.where(adjacent, 1.0, heights), axis=1) * sines) ** power
        weights = weights / jnp.sum(weights)
        on_edges = jnp.asarray(vertices) + parameter[:, None] * ahead
        return on_edges, weights + jnp.roll(weights, -1), weights

    return blend


def check_vertices(vertices: np.ndarray) -> None:
    """At least three, and none twice."""
    if len(vertices) < 3:
        raise DomainError(
            f"A polygon needs at least three vertices; {len(vertices)} given: {vertices.tolist()}."
        )
    size = np.max(np.ptp(vertices, axis=0))
    for k, vertex in enumerate(vertices):
        near = np.flatnonzero(np.max(np.abs(vertices[:k] - vertex), axis=1) <= STRAIGHT * size)
        if len(near):
            raise DomainError(
                f"Vertices {near[0]} and {k} of the polygon are the same point "
                f"{vertex.tolist()}. Leave one out."
            )


def _is_concave(vertices: np.ndarray) -> bool:
    """Whether the boundary turns both ways."""
    if len(vertices) < 4:
        return False
    # Scaled first: squares of very large and very small numbers are none.
    ahead = np.roll(vertices, -1, axis=0) / 2 - vertices / 2
    ahead = ahead / max(float(np.max(np.abs(ahead))), 1e-300)
    lengths = np.linalg.norm(ahead, axis=1, keepdims=True)
    if np.any(lengths == 0):
        return False
    sines = cross(np.roll(ahead / lengths, 1, axis=0), ahead / lengths)
    return bool(np.min(sines) < -STRAIGHT and np.max(sines) > STRAIGHT)


def _counter_clockwise(vertices: np.ndarray) -> np.ndarray:
    """The vertices in counter-clockwise order, starting with the same one; DomainError where they
    are not those of a convex polygon."""
    check_vertices(vertices)
    ahead = np.roll(vertices, -1, axis=0) - vertices
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    behind = np.roll(ahead, 1, axis=0)
    sines = cross(behind, ahead)
    if np.max(np.abs(sines)) <= STRAIGHT:
        raise DomainError(
            f"The vertices of the polygon {vertices.tolist()} lie on a line, so that it has no "
            "area."
        )
    turns = np.arctan2(sines, np.sum(behind * ahead, axis=1))
    orientation = 1.0 if np.sum(turns) > 0 else -1.0
    for k, sine in enumerate(orientation * sines):
        name = f"vertex {k} at {vertices[k].tolist()}"
        if abs(sine) <= STRAIGHT:
            angle = (
                "180°: leave it out"
                if np.abs(turns[k]) < 1
                else "0°: the edges run back along each other"
            )
            raise DomainError(f"The polygon has at {name} an angle of {angle}.")
        if sine < 0:
            raise DomainError(f"The polygon turns both ways at {name}: its edges cross.")
    if abs(np.sum(turns)) > 3 * np.pi:
        raise DomainError(
            f"The polygon winds around {abs(np.sum(turns)) / (2 * np.pi):.0f} times: its edges "
            "cross. List the vertices in order along the boundary."
        )
    return vertices if orientation > 0 else np.concatenate([vertices[:1], vertices[:0:-1]])
