"""Arrays over a domain as functions of one point.

On each cell of the grid the function is a polynomial: the window of spline coefficients that the
cell sees is looked up and turned into coefficients of powers of the distances from the middle of
the cell. So a trace that knows the cell knows the polynomial, and one that does not knows that the
value lies between the coefficients of the windows that are possible.
"""

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from jax import Array

from cordes.arguments import flag, is_number
from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError, shown
from cordes.formulas.lookups.primitives import search, smooth
from cordes.runtime.plain import show

LARGEST_DIMENSION = 3
# Coefficients of 1, s, s², … on a cell, s from -1/2 to 1/2, from those of the B-splines that are
# not zero on it.
PIECES = {
    1: np.array([[1, 1], [-2, 2]]) / 2,
    3: np.array([[1, 23, 23, 1], [-6, -30, 30, 6], [12, -12, -12, 12], [-8, 24, -24, 8]]) / 48,
}


@final
class Interpolant:
    """A function of one point x made of an array; see `interpolate`. `knots` are the grid lines of
    each axis, `shape` is that of a value. Arrays are NumPy's and do not change."""

    def __init__(self, values: np.ndarray, lower: np.ndarray, upper: np.ndarray, order: int):
        d = len(lower)
        self.values, self.order, self.shape = values, order, values.shape[d:]
        self.knots = tuple(map(np.linspace, lower, upper, values.shape[:d]))
        coefficients = values
        for axis in range(d if order == 3 else 0):
            coefficients = _prefiltered(coefficients, axis)
        self.coefficients = coefficients

    def __call__(self, x: Array) -> Array:
        x, d, degree = jnp.asarray(x, float), len(self.knots), self.order
        if x.shape != (d,):
            raise CoefficientError(
                f"x has shape {x.shape}: a table over {d} dimensions takes one point of shape "
                f"({d},); many at a time with jax.vmap."
            )
        places, steps = zip(*(_place(k, x[axis]) for axis, k in enumerate(self.knots)), strict=True)
        sizes = (degree + 1,) * d
        window = jax.lax.dynamic_slice(
            jnp.asarray(self.coefficients),
            (*places, *(jnp.int32(0),) * len(self.shape)),
            (*sizes, *self.shape),
        )
        powers = window
        for axis in range(d):
            powers = jnp.moveaxis(jnp.tensordot(PIECES[degree], powers, (1, axis)), 0, axis)
        for step in steps:
            value = powers[degree]
            for k in range(degree - 1, -1, -1):
                value = powers[k] + step * value
            powers = value
        # B-splines are not negative and add up to one. Outside of the box there is a kink.
        inside = jnp.clip(x, *(jnp.array([k[end] for k in self.knots]) for end in (0, -1)))
        between = window.reshape((degree + 1) ** d, *self.shape)
        return smooth(powers, inside, order=degree - 1, window=between)

    def __repr__(self) -> str:
        size = " × ".join(str(len(each)) for each in self.knots)
        box = f"{show(np.array([k[0] for k in self.knots]))} to "
        box += show(np.array([k[-1] for k in self.knots]))
        return f"<table of {size} values from {box}, order {self.order}>"


def interpolate(
    values: Any, domain: AbstractDomain, order: int = 3, image: bool = False
) -> Interpolant:
    """A function of one point through the numbers of an array over the bounding box of `domain`,
    in one to three dimensions.

    `values[i1, i2, …]` belongs to node i1 along x1, i2 along x2, …; the first and the last node of
    each axis lie on the sides of the box. Further axes are those of the value: (n1, n2, 2) is a
    table of vectors, (n1, n2, 2, 2) one of matrices. With `image` the first axis counts rows from
    the top and the second one columns, as pictures are stored. Outside of the box the function
    keeps the value of the nearest point of it.

    `order` 3 is the cubic spline, twice continuously differentiable; between steep values it
    overshoots. `order` 1 is linear between nodes: it stays between the values, and has kinks on the
    grid lines.

    A bound of an error then refers to the equation with this function as data: that the table
    itself is a sample of something else is no part of it.
    """
    if not isinstance(domain, AbstractDomain):
        raise CoefficientError(
            f"domain is {domain!r}: interpolate(values, domain) takes the domain over whose "
            "bounding box the values lie, a Box for example."
        )
    if not is_number(order) or order not in PIECES:
        raise CoefficientError(f"order = {shown(order)}: 3 (a smooth spline) or 1 (linear).")
    flag("image", image)
    d = domain.dimension
    if d > LARGEST_DIMENSION:
        raise CoefficientError(f"The domain has {d} dimensions: tables have one to three.")
    table = _checked(values, d)
    if image:
        if d != 2:
            raise CoefficientError(f"image=True is for two dimensions, the domain has {d}.")
        table = np.swapaxes(table[::-1], 0, 1)
    lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
    return Interpolant(np.ascontiguousarray(table), lower, upper, int(order))


def _checked(values: Any, d: int) -> np.ndarray:
    """A copy of the array in float64."""
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CoefficientError(
            f"values is {type(values).__name__}: a rectangular array of real numbers is needed."
        ) from error
    if table.ndim < d or min(table.shape, default=0) < 1 or min(table.shape[:d]) < 2:
        raise CoefficientError(
            f"values has shape {table.shape}, but a table over {d} dimension"
            f"{'s' * (d > 1)} has at least two nodes along each of its first {d} ax"
            f"{'es' if d > 1 else 'is'}."
        )
    bad = ~np.isfinite(table)
    if np.any(bad):
        place = np.argwhere(bad)[0].tolist()
        raise CoefficientError(
            f"values{place} = {table[tuple(place)]} is not finite ({np.sum(bad)} of {table.size} "
            "are not): fill the gaps first."
        )
    return table


def _place(knots: np.ndarray, x: Array) -> tuple[Array, Array]:
    """The cell of a number, and its distance from the middle of the cell in units of the cell."""
    inner = knots[1:-1]
    place = search(jnp.asarray(inner), x, even=len(inner) > 1)
    # Comparisons, which a trace decides on cells that touch the ends; derivatives of max ask for
    # more.
    x = jnp.where(x < knots[0], knots[0], jnp.where(x > knots[-1], knots[-1], x))
    middle = jnp.asarray((knots[:-1] + knots[1:]) / 2)
    step = (x - jax.lax.dynamic_slice(middle, (place,), (1,))[0]) * (
        (len(knots) - 1) / (knots[-1] - knots[0])
    )
    return place, step


def _prefiltered(values: np.ndarray, axis: int) -> np.ndarray:
    """Coefficients of cubic B-splines that interpolate along an axis, one more at each end. Where
    there are four nodes or more the third derivative does not jump at the second and at the last
    but one ("not a knot"): cubic polynomials are reproduced. Three nodes make a parabola, two a
    line."""
    n = values.shape[axis]
    matrix = scipy.sparse.lil_matrix((n + 2, n + 2))
    for row in range(n):
        matrix[row + 1, row : row + 3] = [1 / 6, 4 / 6, 1 / 6]
    condition = {2: [1, -2, 1], 3: [-1, 3, -3, 1]}.get(n, [1, -4, 6, -4, 1])
    matrix[0, : len(condition)] = condition
    matrix[n + 1, n + 2 - len(condition) :] = condition
    right = np.moveaxis(values, axis, 0)
    right = np.pad(right, [(1, 1)] + [(0, 0)] * (values.ndim - 1))
    solved = scipy.sparse.linalg.splu(matrix.tocsc()).solve(right.reshape(n + 2, -1))
    return np.moveaxis(solved.reshape(right.shape), 0, axis)
