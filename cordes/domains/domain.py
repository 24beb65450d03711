"""The abstract domain: a bounded set, convex but for those of `cordes.domains.plane`, and what the
rest of the program needs to know of it, and the lift of boundary values that it gives."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cordes.errors import CoefficientError

PointFunction = Callable[[Array], Array]
Scalar = Float[Array, ""]


# With larger data nothing is a number.
LARGEST_VALUE = 1e250


class Basis(NamedTuple):
    """Polynomials of total degree at most `degree`, and those of degree at most `multiplier` times
    each of the `powers` of each interface."""

    degree: int
    powers: tuple[tuple[float, bool], ...] = ()
    multiplier: int = 0


class Fit(NamedTuple):
    """A basis and the coefficients of its functions."""

    basis: Basis
    coefficients: np.ndarray


@dataclasses.dataclass(frozen=True)
class Lift:
    """A function of one point with given boundary values, and the fit in it, if there is one. Many
    fits are equal to rounding on the boundary and differ inside: another machine rounds otherwise
    and finds another lift, so that who saves an answer must save the fit with it."""

    function: PointFunction
    fit: Fit | None = None

    def __call__(self, x: Array) -> Array:
        return self.function(x)


class AbstractDomain(eqx.Module):
    """A bounded set. Subclass it to solve on a convex domain of your own.

    In the plane `a | b`, `a & b` and `a - b` are the union, the intersection and the difference.

    Points are float64. Functions of one point (`distance`, a lift) take shape (d,) and are written
    with jax.numpy; functions that make or test many points take and give NumPy arrays.
    """

    @property
    @abc.abstractmethod
    def dimension(self) -> int: ...

    @property
    @abc.abstractmethod
    def volume(self) -> float: ...

    @property
    @abc.abstractmethod
    def bounding_box(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the smallest axis-parallel box around the domain."""

    @property
    @abc.abstractmethod
    def center(self) -> np.ndarray:
        """A point well inside the domain."""

    @property
    def convex(self) -> bool:
        """Whether it is; what is not has neither a distance function nor a lift."""
        return True

    def __or__(self, other: "AbstractDomain") -> "AbstractDomain":
        from cordes.domains.plane.boolean import union

        return union(self, other)

    def __and__(self, other: "AbstractDomain") -> "AbstractDomain":
        from cordes.domains.plane.boolean import intersection

        return intersection(self, other)

    def __sub__(self, other: "AbstractDomain") -> "AbstractDomain":
        from cordes.domains.plane.boolean import difference

        return difference(self, other)

    @property
    def vertices(self) -> np.ndarray | None:
        """Corners of a convex polygonal domain in counter-clockwise order, shape (n, 2);
        None where the boundary is smooth or d != 2."""
        return None

    @property
    def pieces(self) -> tuple[str, ...]:
        """The names of the parts of the boundary, for conditions that differ."""
        return ("boundary",)

    @property
    def coordinates(self) -> Callable[[Array], Array] | None:
        """Functions of a point between -1 and 1 that take the place of its scaled coordinates, so
        that smooth functions of them times `distance` fulfil what holds on the boundary; None where
        the coordinates themselves do."""
        return None

    @abc.abstractmethod
    def distance(self, x: Float[Array, " d"]) -> Scalar:
        """A smooth function, positive inside and zero on the boundary with non-zero slope there
        except at corners (the paper's D)."""

    @abc.abstractmethod
    def contains(self, points: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """Whether points (..., d) lie in the closed domain; `tolerance` is a length by which they
        may miss it."""

    @abc.abstractmethod
    def interior_points(self, count: int, seed: int = 0, kind: str = "uniform") -> np.ndarray:
        """`count` points, uniformly distributed: independent (`uniform`) or scrambled Sobol
        (`sobol`). Shape (count, d)."""

    @abc.abstractmethod
    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gauss points and weights, `count` in each direction; the weights sum to the volume."""

    @abc.abstractmethod
    def boundary_at(self, directions: np.ndarray) -> np.ndarray:
        """The boundary point that each ray from `center` along a direction (..., d) hits."""

    @abc.abstractmethod
    def boundary_points(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Points distributed uniformly over the boundary, with outward unit normals."""

    @abc.abstractmethod
    def lift(
        self, g: PointFunction, interfaces: Sequence[PointFunction] = (), fit: Fit | None = None
    ) -> Lift:
        """A function of one point that equals g on the boundary to rounding and is smooth inside,
        made from the boundary values of g alone. A `fit` that an earlier lift had is taken as it
        is."""


def constant_lift(g: PointFunction, point: np.ndarray) -> Lift | None:
    """The lift of boundary values that are the same everywhere; None where g depends on the point
    (read from its jaxpr, not from samples)."""
    jaxpr = jax.make_jaxpr(g)(jnp.asarray(point)).jaxpr
    dependent = {id(variable) for variable in jaxpr.invars}
    for equation in jaxpr.eqns:
        if any(id(variable) in dependent for variable in equation.invars):
            dependent.update(id(variable) for variable in equation.outvars)
    if any(id(variable) in dependent for variable in jaxpr.outvars):
        return None
    value = float(boundary_values(g, point[None])[0])
    return Lift(lambda x: jnp.asarray(value))


def boundary_values(g: PointFunction, points: np.ndarray) -> np.ndarray:
    """g at boundary points (n, d); CoefficientError where it is not finite, or nearly not."""
    values = np.asarray(jax.jit(jax.vmap(g))(jnp.asarray(points)), dtype=np.float64)
    bad = ~np.isfinite(values)
    if np.any(bad):
        raise CoefficientError(
            f"g is {values[bad][0]} at the boundary point {points[bad][0].tolist()}. Boundary "
            "values must be finite."
        )
    large = np.abs(values) > LARGEST_VALUE
    if np.any(large):
        raise CoefficientError(
            f"g is {values[large][0]:.3g} at the boundary point {points[large][0].tolist()}: "
            f"numbers up to {LARGEST_VALUE:g} are computed with. Choose another unit."
        )
    return values
