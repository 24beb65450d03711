"""The ball and the ellipsoid: affine images of the unit ball."""

import abc
import math
from collections.abc import Sequence
from typing import Any, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import checks, unit_ball
from cordes.domains.checks import Frozen, freeze
from cordes.domains.domain import AbstractDomain, Fit, Lift, PointFunction, Scalar
from cordes.errors import DomainError

SMALLEST_RATIO = 1e-12


class AbstractRound(AbstractDomain):
    """The set {c + My: |y| < 1} in two or more dimensions."""

    _center: eqx.AbstractVar[Frozen]

    @property
    @abc.abstractmethod
    def matrix(self) -> np.ndarray:
        """The matrix M that maps the unit ball to the domain."""

    @abc.abstractmethod
    def _carried(self, y: np.ndarray) -> np.ndarray:
        """My for points (..., d)."""

    @abc.abstractmethod
    def _carried_back(self, offsets: np.ndarray) -> np.ndarray:
        """M⁻¹z for vectors (..., d)."""

    @property
    def dimension(self) -> int:
        return len(self._center)

    @property
    def center(self) -> np.ndarray:
        return np.array(self._center)

    @property
    def stretch(self) -> float:
        """|det M|."""
        return math.exp(np.linalg.slogdet(self.matrix)[1])

    @property
    def volume(self) -> float:
        return unit_ball.ball_volume(self.dimension) * self.stretch

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        half = np.linalg.norm(self.matrix, axis=1)
        return self.center - half, self.center + half

    @property
    def circumradius(self) -> float:
        """Radius of a ball around `center` that contains the domain: the longest semi-axis."""
        return float(np.linalg.norm(self.matrix, 2))

    @property
    def inradius(self) -> float:
        """Radius of the largest ball in the domain: the shortest semi-axis."""
        return float(np.linalg.norm(self.matrix, -2))

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        return self.center + self._carried(unit_ball.ball_points(count, self.dimension, seed, kind))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Polar or spherical product rule, exact for polynomials of degree 2·count − 1, with
        2·count angles; d ≥ 4 is refused."""
        points, weights = unit_ball.ball_quadrature(count, self.dimension)
        return self.center + self._carried(points), self.stretch * weights

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        y = self._carried_back(checks.check_directions(directions, self.dimension))
        return self.center + self._carried(unit_ball.normalised(y))

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """See `radial_lift`: a fit of g by polynomials and interface powers, and the radial
        extension of what is left."""
        return unit_ball.radial_lift(self.center, self.matrix, g, interfaces, fit)


@final
class Ball(AbstractRound):
    """The ball |x − c| < R in two or more dimensions; its distance function is R² − |x − c|²."""

    _center: Frozen = eqx.field(static=True)
    _radius: float = eqx.field(static=True)

    def __init__(self, center: Any, radius: Any):
        center = checks.real_vector("The center of the ball", center)
        radius = checks.real_array("The radius of the ball", radius, "a number")
        if radius.ndim != 0:
            raise DomainError(
                f"The radius of the ball must be one number, not {radius.tolist()}. Ellipsoid "
                "takes several semi-axes."
            )
        if radius <= 0:
            raise DomainError(f"The radius of the ball is {float(radius)}. It must be positive.")
        if len(center) == 1:
            raise DomainError("A ball needs two or more dimensions. In one dimension use Box.")
        checks.check_size("The ball", center - radius, center + radius)
        self._center = freeze(center)
        self._radius = float(radius)

    def __repr__(self) -> str:
        return f"Ball(center={list(self._center)}, radius={self._radius})"

    @property
    def radius(self) -> float:
        return self._radius

    @property
    def matrix(self) -> np.ndarray:
        return self._radius * np.eye(self.dimension)

    # No products with matrices: there are balls in hundreds of dimensions.

    @property
    def stretch(self) -> float:
        return self._radius**self.dimension

    def _carried(self, y: np.ndarray) -> np.ndarray:
        return self._radius * y

    def _carried_back(self, offsets: np.ndarray) -> np.ndarray:
        return offsets / self._radius

    def distance(self, x: Array) -> Scalar:
        offset = x - jnp.asarray(self._center, x.dtype)
        return self._radius**2 - offset @ offset

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        return np.linalg.norm(np.asarray(points) - self.center, axis=-1) <= self._radius + tolerance

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(seed)
        normals = unit_ball.sphere_points(checks.check_count(count), self.dimension, generator)
        return self.center + self._radius * normals, normals


@final
class Ellipsoid(AbstractRound):
    """The set {c + My: |y| < 1} in two or more dimensions; its distance function is 1 − |M⁻¹(x −
    c)|².

    `axes` holds the semi-axis lengths, or is the matrix M whose columns are the semi-axis vectors.
    The columns need not be orthogonal: any invertible matrix describes an ellipsoid.
    """

    _center: Frozen = eqx.field(static=True)
    _axes: Frozen | tuple[Frozen, ...] = eqx.field(static=True)

    def __init__(self, center: Any, axes: Any):
        center = checks.real_vector("The center of the ellipsoid", center)
        axes = checks.real_array(
            "The axes of the ellipsoid", axes, "a list of semi-axis lengths or a square matrix"
        )
        dimension = len(center)
        if dimension == 1:
            raise DomainError(
                "An ellipsoid needs two or more dimensions. In one dimension use Box."
            )
        if axes.shape not in ((dimension,), (dimension, dimension)):
            raise DomainError(
                f"The axes of an ellipsoid in {dimension} dimensions must have shape "
                f"({dimension},) or ({dimension}, {dimension}), not {axes.shape}."
            )
        if axes.ndim == 1 and np.any(axes <= 0):
            raise DomainError(
                f"The semi-axes of the ellipsoid are {axes.tolist()}. Each must be positive."
            )
        stretches = np.linalg.svd(np.diag(axes) if axes.ndim == 1 else axes, compute_uv=False)
        if stretches[-1] <= SMALLEST_RATIO * stretches[0]:
            raise DomainError(
                f"The axes {axes.tolist()} of the ellipsoid are singular: its widths range from "
                f"{stretches[-1]:.3g} to {stretches[0]:.3g}. Give linearly independent semi-axis "
                "vectors."
            )
        reach = axes if axes.ndim == 1 else stretches[0] * np.ones(dimension)
        checks.check_size("The ellipsoid", center - reach, center + reach)
        self._center = freeze(center)
        self._axes = freeze(axes) if axes.ndim == 1 else tuple(freeze(row) for row in axes)

    def __repr__(self) -> str:
        return f"Ellipsoid(center={list(self._center)}, axes={self.axes.tolist()})"

    @property
    def axes(self) -> np.ndarray:
        """The axes as they were given: lengths (d,) or a matrix (d, d)."""
        return np.array(self._axes)

    @property
    def matrix(self) -> np.ndarray:
        axes = self.axes
        return np.diag(axes) if axes.ndim == 1 else axes

    def _carried(self, y: np.ndarray) -> np.ndarray:
        return y @ self.matrix.T

    def _carried_back(self, offsets: np.ndarray) -> np.ndarray:
        return offsets @ np.linalg.inv(self.matrix).T

    def distance(self, x: Array) -> Scalar:
        inverse = jnp.asarray(np.linalg.inv(self.matrix), x.dtype)
        y = inverse @ (x - jnp.asarray(self._center, x.dtype))
        return 1 - y @ y

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """Whether points lie in the closed ellipsoid; the length by which a point misses it is
        measured to first order."""
        y = self._carried_back(np.asarray(points) - self.center)
        gauge = np.linalg.norm(y, axis=-1)
        slope = np.linalg.norm(y @ np.linalg.inv(self.matrix), axis=-1) / np.maximum(gauge, 1e-300)
        return gauge <= 1 + tolerance * slope

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Uniform on the surface by rejection: the map M stretches the surface of the sphere at y
        by |det M| |M⁻ᵀy|, so a uniform y is kept with a probability proportional to |M⁻ᵀy|, whose
        maximum over the sphere is 1/inradius."""
        count = checks.check_count(count)
        generator = np.random.default_rng(seed)
        inverse, inradius = np.linalg.inv(self.matrix), self.inradius
        kept, total = [], 0
        while total < count:
            candidates = unit_ball.sphere_points(2 * count + 16, self.dimension, generator)
            stretch = np.linalg.norm(candidates @ inverse, axis=1)
            kept.append(candidates[generator.random(len(candidates)) < stretch * inradius])
            total += len(kept[-1])
        y = np.concatenate(kept)[:count]
        return self.center + self._carried(y), unit_ball.normalised(y @ inverse)
