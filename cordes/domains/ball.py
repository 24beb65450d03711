"""The ball."""

from collections.abc import Sequence
from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.checks import (
    Frozen,
    check_count,
    check_directions,
    freeze,
    real_array,
    real_vector,
)
from cordes.domains.domain import AbstractDomain, PointFunction, Scalar
from cordes.domains.lift import Fit, Lift
from cordes.domains.unit_ball import (
    ball_points,
    ball_quadrature,
    ball_volume,
    radial_lift,
    sphere_points,
)
from cordes.errors import DomainError


@final
class Ball(AbstractDomain):
    """The ball |x − c| < R in two or more dimensions; its distance function is R² − |x − c|²."""

    _center: Frozen = eqx.field(static=True)
    _radius: float = eqx.field(static=True)

    def __init__(self, center: Any, radius: Any):
        center = real_vector("The center of the ball", center)
        radius = real_array("The radius of the ball", radius, "a number")
        if radius.ndim != 0:
            raise DomainError(
                f"The radius of the ball must be one number, not {radius.tolist()}. Ellipsoid "
                "takes several semi-axes."
            )
        if radius <= 0:
            raise DomainError(f"The radius of the ball is {float(radius)}. It must be positive.")
        if len(center) == 1:
            raise DomainError("A ball needs two or more dimensions. In one dimension use Box.")
        self._center = freeze(center)
        self._radius = float(radius)

    def __repr__(self) -> str:
        return f"Ball(center={list(self._center)}, radius={self._radius})"

    @property
    def radius(self) -> float:
        return self._radius

    @property
    def dimension(self) -> int:
        return len(self._center)

    @property
    def volume(self) -> float:
        return ball_volume(self.dimension) * self._radius**self.dimension

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        return self.center - self._radius, self.center + self._radius

    @property
    def center(self) -> np.ndarray:
        return np.array(self._center)

    @property
    def circumradius(self) -> float:
        """Radius of a ball around `center` that contains the domain."""
        return self._radius

    @property
    def inradius(self) -> float:
        """Radius of the largest ball in the domain."""
        return self._radius

    def distance(self, x: Array) -> Scalar:
        offset = x - jnp.asarray(self._center, x.dtype)
        return self._radius**2 - offset @ offset

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        return np.linalg.norm(np.asarray(points) - self.center, axis=-1) <= self._radius + tolerance

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        return self.center + self._radius * ball_points(count, self.dimension, seed, kind)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Polar or spherical product rule, exact for polynomials of degree 2·count − 1, with
        2·count angles; d ≥ 4 is refused."""
        points, weights = ball_quadrature(count, self.dimension)
        return self.center + self._radius * points, self._radius**self.dimension * weights

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        directions = check_directions(directions, self.dimension)
        return self.center + self._radius * directions / np.linalg.norm(
            directions, axis=-1, keepdims=True
        )

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        normals = sphere_points(check_count(count), self.dimension, np.random.default_rng(seed))
        return self.center + self._radius * normals, normals

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """See `radial_lift`: a fit of g by polynomials and interface powers, and the radial
        extension of what is left."""
        return radial_lift(self.center, self._radius * np.eye(self.dimension), g, interfaces, fit)
