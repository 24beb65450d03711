"""What a lift is: a function with given boundary values, and the fit in it."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.errors import CoefficientError

PointFunction = Callable[[Array], Array]


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
    """g at boundary points (n, d); CoefficientError where it is not finite."""
    values = np.asarray(jax.jit(jax.vmap(g))(jnp.asarray(points)), dtype=np.float64)
    bad = ~np.isfinite(values)
    if np.any(bad):
        raise CoefficientError(
            f"g is {values[bad][0]} at the boundary point {points[bad][0].tolist()}. Boundary "
            "values must be finite."
        )
    return values
