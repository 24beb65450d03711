"""What a lift is: a function with given boundary values, and the fit in it."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jax import Array

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
