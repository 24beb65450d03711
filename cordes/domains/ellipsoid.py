"""The ellipsoid, an affine image of the unit ball."""

import math
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

SMALLEST_RATIO = 1e-12


@final
class Ellipsoid(AbstractDomain):
    """The set {c + My: |y| < 1} in two or more dimensions; its distance function is 1 − |M⁻¹(x −
    c)|².

    `axes` holds the semi-axis lengths, or is the matrix M whose columns are the semi-axis vectors.
    The columns need not be orthogonal: any invertible matrix describes an ellipsoid.
    """

    _center: Frozen = eqx.field(static=True)
    _axes: Frozen | tuple[Frozen, ...] = eqx.field(static=True)

    def __init__(self, center: Any, axes: Any):
        center = real_vector("The center of the ellipsoid", center)
        axes = real_array(
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
        """The matrix M that maps the unit ball to the ellipsoid."""
        axes = self.axes
        return np.diag(axes) if axes.ndim == 1 else axes

    @property
    def dimension(self) -> int:
        return len(self._center)

    @property
    def volume(self) -> float:
        return ball_volume(self.dimension) * math.exp(np.linalg.slogdet(self.matrix)[1])

    @property
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        half = np.linalg.norm(self.matrix, axis=1)
        return self.center - half, self.center + half

    @property
    def center(self) -> np.ndarray:
        return np.array(self._center)

    @property
    def circumradius(self) -> float:
        """Radius of a ball around `center` that contains the domain: the longest semi-axis."""
        return float(np.linalg.norm(self.matrix, 2))

    @property
    def inradius(self) -> float:
        """Radius of the largest ball in the domain: the shortest semi-axis."""
        return float(np.linalg.norm(self.matrix, -2))

    def distance(self, x: Array) -> Scalar:
        y = jnp.asarray(np.linalg.inv(self.matrix), x.dtype) @ (
            x - jnp.asarray(self._center, x.dtype)
        )
        return 1 - y @ y

    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """Whether points lie in the closed ellipsoid; the length by which a point misses it is
        measured to first order."""
        y = (np.asarray(points) - self.center) @ np.linalg.inv(self.matrix).T
        gauge = np.linalg.norm(y, axis=-1)
        slope = np.linalg.norm(y @ np.linalg.inv(self.matrix), axis=-1) / np.maximum(gauge, 1e-300)
        return gauge <= 1 + tolerance * slope

    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        return self.center + ball_points(count, self.dimension, seed, kind) @ self.matrix.T

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The rule of the unit ball carried over, exact for polynomials of degree 2·count − 1; d ≥
        4 is refused."""
        points, weights = ball_quadrature(count, self.dimension)
        return self.center + points @ self.matrix.T, weights * abs(np.linalg.det(self.matrix))

    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        y = check_directions(directions, self.dimension) @ np.linalg.inv(self.matrix).T
        return self.center + (y / np.linalg.norm(y, axis=-1, keepdims=True)) @ self.matrix.T

    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Uniform on the surface by rejection: the map M stretches the surface of the sphere at y
        by |det M| |M⁻ᵀy|, so a uniform y is kept with a probability proportional to |M⁻ᵀy|, whose
        maximum over the sphere is 1/inradius."""
        count = check_count(count)
        generator = np.random.default_rng(seed)
        inverse, inradius = np.linalg.inv(self.matrix), self.inradius
        kept, total = [], 0
        while total < count:
            candidates = sphere_points(2 * count + 16, self.dimension, generator)
            stretch = np.linalg.norm(candidates @ inverse, axis=1)
            kept.append(candidates[generator.random(len(candidates)) < stretch * inradius])
            total += len(kept[-1])
        y = np.concatenate(kept)[:count]
        normals = y @ inverse
        return self.center + y @ self.matrix.T, normals / np.linalg.norm(
            normals, axis=1, keepdims=True
        )

    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """See `radial_lift`: a fit of g by polynomials and interface powers, and the radial
        extension of what is left."""
        return radial_lift(self.center, self.matrix, g, interfaces, fit)
