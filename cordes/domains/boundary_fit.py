"""A smooth function close to given boundary values: the first part of every lift that needs one.

A lift must equal g on the boundary and may use nothing but the boundary values of g. Formulas that are exact for any g (radial extension,
blending of edges) leave their own mark on the second derivatives inside. So g is first fitted by functions that a solver likes, polynomials
and, across interfaces, generic powers of the interface function; the exact formula then carries only the remainder.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import PointFunction
from cordes.errors import CoefficientError

# Kinks of piecewise smooth data: φ|φ| times polynomials also contains |φ|³, φ³|φ|, … when φ is linear.
PIECEWISE_POWERS = ((2.0, True),)
# Data of other smoothness. Measured on |x1 − x2|^(8/3), circle of radius 2: relative remainder 1e-3 with polynomials alone, 3e-9 with the powers 2,
# 2.5, 3, 3.5, 1e-11 with these. True stands for the odd power φ|φ|^(p−1); the pairs left out are polynomials in φ.
GENERIC_POWERS = tuple((power, odd) for power in (2.0, 2.25, 2.5, 2.75, 3.0, 3.5) for odd in (False, True) if (power, odd) not in ((2.0, False), (3.0, True)))
LARGEST_BASIS = 150
ROUNDING = 1e-13
# A richer fit is taken only if it is better by this factor: what does not help much oscillates inside for nothing.
WORTHWHILE = 10.0


def constant_value(g: PointFunction, point: np.ndarray) -> float | None:
    """The value of g if its result does not depend on the point (read from its jaxpr, not from samples), else None."""
    jaxpr = jax.make_jaxpr(g)(jnp.asarray(point)).jaxpr
    dependent = {id(variable) for variable in jaxpr.invars}
    for equation in jaxpr.eqns:
        if any(id(variable) in dependent for variable in equation.invars):
            dependent.update(id(variable) for variable in equation.outvars)
    if any(id(variable) in dependent for variable in jaxpr.outvars):
        return None
    return float(_boundary_values(g, point[None])[0])


def sample_count(dimension: int, interfaces: int) -> int:
    """How many boundary points a fit needs: four for each function of its richest basis."""
    polynomials = math.comb(dimension + _degree(dimension, LARGEST_BASIS), dimension)
    return 4 * (polynomials + interfaces * _multipliers(dimension, interfaces) * len(GENERIC_POWERS)) + 64


def edge_points(vertices: np.ndarray, count: int) -> np.ndarray:
    """About `count` points on the edges of a polygon, denser towards the vertices as polynomial fits need; the vertices are among them."""
    each = max(8, -(-count // len(vertices)))
    parameter = (1 - np.cos(np.pi * np.arange(each) / each)) / 2
    ahead = np.roll(vertices, -1, axis=0) - vertices
    return (vertices[:, None] + parameter[:, None] * ahead[:, None]).reshape(-1, 2)


def fit_boundary(g: PointFunction, points: np.ndarray, normalise: PointFunction, interfaces: Sequence[PointFunction]) -> PointFunction:
    """A function of one point close to g at the boundary `points`, smooth away from the interfaces and of class C^{1,1} across them.

    `normalise` is the affine map that takes the domain into the cube [-1, 1]ᵈ. Interfaces that do not meet the boundary are left out. Bases are
    tried from the poorest to the richest; the first that reaches rounding is taken, else the first that is about as good as the best.
    """
    values = _boundary_values(g, points)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0:
        return lambda x: jnp.zeros(())
    dimension = points.shape[1]
    fits: list[tuple[float, PointFunction]] = []
    for basis in _bases(dimension, normalise, _crossing(interfaces, points)):
        fits.append(_least_squares(basis, points, values))
        if fits[-1][0] <= ROUNDING * scale:
            return fits[-1][1]
    best = min(remainder for remainder, _ in fits)
    return next(function for remainder, function in fits if remainder <= WORTHWHILE * best)


def _bases(dimension: int, normalise: PointFunction, interfaces: list[tuple[PointFunction, float]]) -> list[PointFunction]:
    """Functions of one point that give the values of all members of a basis, from the poorest basis to the richest."""
    highest = _degree(dimension, LARGEST_BASIS)
    degrees = [degree for degree in (0, 1, 2, 3, 4, 6, 8, 10) if degree < highest] + [highest]

    def of_polynomials(degree: int) -> PointFunction:
        polynomials = _polynomials(degree, dimension)
        return lambda x: polynomials(normalise(x))

    def with_interfaces(powers: Sequence[tuple[float, bool]], multipliers: int) -> PointFunction:
        polynomials, factors = _polynomials(highest, dimension), _polynomials(_degree(dimension, multipliers), dimension)

        def basis(x: Array) -> Array:
            y = normalise(x)
            heights = [interface(x) / size for interface, size in interfaces]
            kinks = jnp.stack([_power(height, power, odd) for height in heights for power, odd in powers])
            return jnp.concatenate([polynomials(y), jnp.outer(kinks, factors(y)).ravel()])

        return basis

    bases = [of_polynomials(degree) for degree in degrees]
    if interfaces:
        few = _multipliers(dimension, len(interfaces))
        bases.append(with_interfaces(PIECEWISE_POWERS, few * (len(GENERIC_POWERS) // 2)))
        bases.append(with_interfaces(GENERIC_POWERS, few))
    return bases


def _least_squares(basis: PointFunction, points: np.ndarray, values: np.ndarray) -> tuple[float, PointFunction]:
    """The shortest least-squares solution in columns of equal length, and the largest error at the points."""
    columns = np.asarray(jax.jit(jax.vmap(basis))(jnp.asarray(points)))
    lengths = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    coefficients = np.linalg.lstsq(columns / lengths, values, rcond=1e-12)[0] / lengths
    return float(np.max(np.abs(columns @ coefficients - values))), lambda x: basis(x) @ coefficients


def _polynomials(degree: int, dimension: int) -> Callable[[Array], Array]:
    """Products of Chebyshev polynomials of total degree at most `degree`, in order of their degree."""
    exponents = [Counter(chosen) for total in range(degree + 1) for chosen in itertools.combinations_with_replacement(range(dimension), total)]
    # A product has at most `degree` factors other than T₀ = 1, which keeps high dimensions cheap.
    width = max(1, min(degree, dimension))
    factors = np.zeros((len(exponents), width, 2), dtype=int)
    for row, exponent in enumerate(exponents):
        factors[row, : len(exponent)] = sorted(exponent.items())

    def polynomials(y: Array) -> Array:
        table = [jnp.ones_like(y), y]
        for _ in range(degree - 1):
            table.append(2 * y * table[-1] - table[-2])
        chebyshev = jnp.stack(table[: degree + 1], axis=-1)
        product = chebyshev[factors[:, 0, 0], factors[:, 0, 1]]
        for column in range(1, width):
            product = product * chebyshev[factors[:, column, 0], factors[:, column, 1]]
        return product

    return polynomials


def _power(height: Array, power: float, odd: bool) -> Array:
    """|φ|ᵖ or φ|φ|ᵖ⁻¹ with the derivatives at φ = 0 that the limit has (zero), where differentiating the power itself would give NaN."""
    if power == 2.0 and odd:
        return height * jnp.abs(height)
    on_interface = height == 0
    safe = jnp.where(on_interface, 1.0, height)
    value = jnp.abs(safe) ** power * (jnp.sign(safe) if odd else 1.0)
    return jnp.where(on_interface, 0.0, value)


def _crossing(interfaces: Sequence[PointFunction], points: np.ndarray) -> list[tuple[PointFunction, float]]:
    """The interfaces that meet the boundary, each with its largest value there."""
    found = []
    for interface in interfaces:
        heights = np.asarray(jax.vmap(interface)(jnp.asarray(points)))
        if np.all(np.isfinite(heights)) and np.min(heights) < 0 < np.max(heights):
            found.append((interface, float(np.max(np.abs(heights)))))
    return found


def _boundary_values(g: PointFunction, points: np.ndarray) -> np.ndarray:
    values = np.asarray(jax.jit(jax.vmap(g))(jnp.asarray(points)), dtype=np.float64)
    bad = ~np.isfinite(values)
    if np.any(bad):
        raise CoefficientError(f"g is {values[bad][0]} at the boundary point {points[bad][0].tolist()}. Boundary values must be finite.")
    return values


def _degree(dimension: int, largest: int) -> int:
    """The highest total degree with at most `largest` polynomials, and no more than 12, beyond which fits gain nothing on smooth data."""
    degree = 0
    while degree < 12 and math.comb(dimension + degree + 1, dimension) <= largest:
        degree += 1
    return degree


def _multipliers(dimension: int, interfaces: int) -> int:
    """How many polynomials multiply each power of an interface: ten, or what keeps the whole basis near 300 functions."""
    return math.comb(dimension + _degree(dimension, max(1, min(10, 200 // (len(GENERIC_POWERS) * max(1, interfaces))))), dimension)
