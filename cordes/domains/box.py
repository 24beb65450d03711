"""The axis-parallel box."""

import itertools
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
    real_vector,
)
from cordes.domains.domain import AbstractDomain, Fit, Lift, PointFunction, Scalar, constant_lift
from cordes.domains.unit_cube import cube_points, gauss_rule, tensor_rule
from cordes.errors import DomainError

LARGEST_LIFT_DIMENSION = 8
BOUNDARY_SAMPLES = 2000
# What the faces along the first axes are called.
FACES = (("left", "right"), ("bottom", "top"), ("back", "front"))


@final
class Box(AbstractDomain):
    """The box of all x with lower < x < upper, in any dimension; its distance function is Π (uᵢ −
    xᵢ)(xᵢ − lᵢ)."""

    _lower: Frozen = eqx.field(static=True)
    _upper: Frozen = eqx.field(static=True)

    def __init__(self, lower: Any, upper: Any):
        lower = real_vector("The lower corner of the box", lower)
        upper = real_vector("The upper corner of the box", upper)
        if lower.shape != upper.shape:
            raise DomainError(
                f"The corners of the box have {len(lower)} and {len(upper)} coordinates. Give "
                "the same number for both."
            )
        if np.any(lower >= upper):
            axis = int(np.argmax(lower >= upper))
            pairs = len(lower) == 2 and lower[0] < lower[1] and upper[0] < upper[1]
            corners = " Box(lower, upper) takes two corners, not a pair for each axis."
            raise DomainError(
                f"The box is empty along axis {axis}: lower is {lower[axis]}, upper is "
                f"{upper[axis]}. Give lower < upper.{corners if pairs else ''}"
            )
        check_size("The box", lower, upper)
        self._lower = freeze(lower)
        self._upper = freeze(upper)

    def __repr__(self) -> str:
        return f"Box(lower={list(self._lower)}, upper={list(self._upper)})"

    @property
    def lower(self) -> np.ndarray:
        return np.array(self._lower)

    @property
    def upper(self) -> np.ndarray:
        return np.array(self._upper)

    @property
    def widths(self) -> np.ndarray:
        return self.upper - self.lower

    @property
    def dimension(self) -> int:
        return len(self._lower)

    @property
    def volume(self) -> float:
        return float(np.prod(self.widths))

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        return self.lower, self.upper

    @property
    def center(self) -> np.ndarray:
        return (self.lower + self.upper) / 2

    @property
    def vertices(self) -> np.ndarray | None:
        if self.dimension != 2:
            return None
        (left, bottom), (right, top) = self._lower, self._upper
        return np.array([[left, bottom], [right, bottom], [right, top], [left, top]])

    @property
    def pieces(self) -> tuple[str, ...]:
        names = [*FACES, *((f"x{k}-", f"x{k}+") for k in range(4, self.dimension + 1))]
        return tuple(name for pair in names[: self.dimension] for name in pair)

    @property
    def circumradius(self) -> float:
        """Radius of a ball around `center` that contains the domain."""
        return float(np.linalg.norm(self.widths)) / 2

    @property
    def inradius(self) -> float:
        """Radius of the largest ball in the domain."""
        return float(np.min(self.widths)) / 2

    def distance(self, x: Array) -> Scalar:
        lower, upper = (jnp.asarray(corner, x.dtype) for corner in (self._lower, self._upper))
        return jnp.prod((upper - x) * (x - lower))

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        lower, upper = self.lower - tolerance, self.upper + tolerance
        return np.all((points >= lower) & (points <= upper), axis=-1)

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        return self.lower + self.widths * cube_points(count, self.dimension, seed, kind)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The product of Gauss rules, exact where the degree in each coordinate is at most 2·count
        − 1."""
        points, weights = tensor_rule([gauss_rule(check_count(count))] * self.dimension)
        return self.lower + self.widths * points, self.volume * weights

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        """The boundary points hit by rays from the centre; the coordinates of the faces hit are
        those of the box, without rounding."""
        directions = check_directions(directions, self.dimension)
        with np.errstate(divide="ignore"):
            reach = self.widths / 2 / np.abs(directions)
        nearest = np.min(reach, axis=-1, keepdims=True)
        inside = np.clip(self.center + nearest * directions, self.lower, self.upper)
        faces = np.where(directions > 0, self.upper, self.lower)
        return np.where(reach <= nearest * (1 + 4 * np.finfo(float).eps), faces, inside)

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(seed)
        count = check_count(count)
        # The face normal to axis i has the area volume/widthᵢ.
        share = 1 / self.widths
        axes = generator.choice(self.dimension, size=count, p=share / np.sum(share))
        sides = generator.integers(0, 2, size=count)
        points = self.lower + self.widths * generator.random((count, self.dimension))
        rows = np.arange(count)
        points[rows, axes] = np.where(sides == 1, self.upper[axes], self.lower[axes])
        normals = np.zeros_like(points)
        normals[rows, axes] = 2.0 * sides - 1
        return points, normals

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """Transfinite interpolation of g (`face_blend`), which is as smooth as g on the faces.

        A kink of g on a face is carried inwards along the normal of the face, which is right for an
        interface xᵢ = const and wrong for an oblique one. In two and three dimensions g is
        therefore fitted first where an oblique interface is given, and only the remainder is
        interpolated.
        """
        if (constant := constant_lift(g, self.lower)) is not None:
            return constant
        if self.dimension > LARGEST_LIFT_DIMENSION:
            raise DomainError(
                f"Boundary values that vary cannot be extended into a box in {self.dimension} "
                f"dimensions: each point takes 3^{self.dimension} − 1 values of g, and "
                f"{LARGEST_LIFT_DIMENSION} dimensions are the limit. Subtract an extension of g "
                "from u, so that g is constant."
            )
        blend = face_blend(self.lower, self.upper)
        oblique = [
            interface
            for interface in interfaces
            if not self._parallel_to_face(interface) and self._meets_boundary(interface)
        ]
        fitted = self._fit(g, oblique, fit)

        def lift(x: Array) -> Array:
            on_faces, weights = blend(x)
            if fitted is None:
                return weights @ jax.vmap(g)(on_faces)
            fits = jax.vmap(fitted)(jnp.concatenate([x[None], on_faces]))
            return fits[0] + weights @ (jax.vmap(g)(on_faces) - fits[1:])

        return Lift(lift, None if fitted is None else fitted.fit)

    def _fit(self, g: PointFunction, oblique: list[PointFunction], fit: Fit | None) -> Lift | None:
        """The fit of g for oblique interfaces; None where there are none, or too many dimensions
        for a fit to be of use."""
        if not oblique or self.dimension > 3:
            return None
        count = sample_count(self.dimension, len(oblique))
        if self.vertices is None:
            points, _ = self.boundary_points(count)
        else:
            points = polygon_points(self.vertices, count, oblique)
        to_cube = lambda x: (x - self.center) * (2 / self.widths)  # noqa: E731
        return fit_boundary(g, points, to_cube, oblique, fit)

    def _meets_boundary(self, interface: PointFunction) -> bool:
        """Whether an interface function has zeros on the boundary, judged by sample points."""
        points, _ = self.boundary_points(BOUNDARY_SAMPLES)
        points = np.concatenate([points, *([] if self.vertices is None else [self.vertices])])
        values = np.asarray(jax.jit(jax.vmap(interface))(jnp.asarray(points)))
        return not (np.all(values > 0) or np.all(values < 0))

    def _parallel_to_face(self, interface: PointFunction) -> bool:
        """Whether an interface function depends on one coordinate only, judged by its slopes at
        sample points."""
        points = jnp.asarray(self.interior_points(32, kind="sobol"))
        slopes = np.abs(np.asarray(jax.jit(jax.vmap(jax.grad(interface)))(points)))
        return int(np.sum(np.max(slopes, axis=0) > 1e-12 * np.max(slopes))) <= 1


def face_blend(lower: np.ndarray, upper: np.ndarray) -> Callable[[Array], tuple[Array, Array]]:
    """The boolean sum I − Π(I − Pᵢ), where Pᵢ interpolates linearly between the two faces normal to
    axis i, as a function of one point that gives its projections on the faces and their weights.

    Multiplied out, it is a sum over the 3ᵈ − 1 faces of every dimension, from facets to corners: g
    at the projection of x on the face, times the linear weights of the fixed coordinates, with sign
    + for an odd number of them and − for an even one. On a facet all other terms cancel in pairs,
    so the sum is g there; inside, it is as smooth as g on the faces.
    """
    dimension = len(lower)
    # For each face and coordinate: 0 free, 1 on the lower bound, 2 on the upper bound.
    codes = np.array([code for code in itertools.product(range(3), repeat=dimension) if any(code)])
    signs = np.where(np.sum(codes > 0, axis=1) % 2 == 1, 1.0, -1.0)
    bounds = np.where(codes == 1, lower, upper)

    def blend(x: Array) -> tuple[Array, Array]:
        rise = (x - lower) / (upper - lower)
        choices = jnp.stack([jnp.ones_like(rise), (upper - x) / (upper - lower), rise], axis=-1)
        weights = jnp.asarray(signs)
        for axis in range(dimension):
            weights = weights * choices[axis, codes[:, axis]]
        return jnp.where(codes == 0, x, bounds), weights

    return blend
