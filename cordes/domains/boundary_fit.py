"""A smooth function close to given boundary values: the first part of every lift that needs one.

A lift must equal g on the boundary and may use nothing but the boundary values of g. Formulas that
are exact for any g (radial extension, blending of edges) leave their own mark on the second
derivatives inside. So g is first fitted by functions that a solver likes, polynomials and, across
interfaces, generic powers of the interface function; the exact formula then carries only the
remainder.
"""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import Basis, Fit, Lift, PointFunction, boundary_values

# Kinks of piecewise smooth data: φ|φ| times polynomials also contains |φ|³, φ³|φ|, … when φ is
# linear. True stands for the odd power φ|φ|ᵖ⁻¹.
PIECEWISE_POWERS = ((2.0, True),)
# Data of other smoothness; the pairs left out are polynomials in φ. Measured on |x1 − x2|^(8/3) on
# the circle of radius 2: relative remainder 2e-3 with polynomials alone, 4e-9 with the powers 2,
# 2.5, 3, 3.5 and 8e-13 with these.
GENERIC_POWERS = tuple(
    (power, odd)
    for power in (2.0, 2.25, 2.5, 2.75, 3.0, 3.5)
    for odd in (False, True)
    if (power, odd) not in ((2.0, False), (3.0, True))
)
HIGHEST_DEGREE = 24
LARGEST_BASIS, LARGEST_WITH_KINKS = 455, 153
# Many polynomials are small or zero on the whole boundary and large inside. Dividing those of
# degree k by this number to the k makes the shortest solution prefer low degrees: second
# derivatives inside stay near those of the data, where without it they come out up to a thousand
# times larger.
DEGREE_PENALTY = 3.0
CUTOFFS = (1e-8, 1e-10, 1e-12, 1e-14)
ROUNDING = 1e-13
# A richer fit is taken only if it is better by this factor: what does not help much oscillates
# inside for nothing.
WORTHWHILE = 10.0


Curve = Callable[[np.ndarray], np.ndarray]


def sample_count(dimension: int, interfaces: int) -> int:
    """How many boundary points a fit needs: four for each function of its richest basis."""
    richest = (family[-1] for family in _families(dimension, interfaces))
    return 4 * max(len(_degrees(basis, dimension, interfaces)) for basis in richest) + 64


def polygon_points(
    vertices: np.ndarray, count: int, interfaces: Sequence[PointFunction]
) -> np.ndarray:
    """About `count` points on the edges of a polygon, denser towards the vertices, as polynomial
    fits need, and the vertices among them; and those at crossings (`curve_points`). Edge k runs
    between the parameters k and k + 1."""
    edges, ahead = len(vertices), np.roll(vertices, -1, axis=0) - vertices
    each = max(8, -(-count // edges))
    parameters = np.arange(edges)[:, None] + (1 - np.cos(np.pi * np.arange(each) / each)) / 2

    def curve(parameters: np.ndarray) -> np.ndarray:
        along, edge = np.modf(parameters)
        edge = edge.astype(int) % edges
        return vertices[edge] + along[:, None] * ahead[edge]

    return curve_points(curve, parameters.ravel(), edges, interfaces)


def curve_points(
    curve: Curve, parameters: np.ndarray, period: float, interfaces: Sequence[PointFunction]
) -> np.ndarray:
    """Points of a boundary curve at the parameters, and more of them graded towards each crossing
    with an interface.

    Without these the fit has at the crossing whatever kink goes unseen between two points, small in
    value but not in its second derivative.
    """
    ahead = np.append(parameters[1:], parameters[0] + period)
    found = [parameters]
    for interface in interfaces:
        heights = jax.jit(jax.vmap(interface))

        def positive(parameters: np.ndarray, heights: Any = heights) -> np.ndarray:
            return np.asarray(heights(jnp.asarray(curve(parameters)))) >= 0

        at_start = positive(parameters)
        crossed = at_start != np.roll(at_start, -1)
        before, after, start = parameters[crossed], ahead[crossed], at_start[crossed]
        for _ in range(50 if np.any(crossed) else 0):
            middle = (before + after) / 2
            same = positive(middle) == start
            before, after = np.where(same, middle, before), np.where(same, after, middle)
        steps = np.geomspace(1e-8, 1, 24) * (ahead - parameters)[crossed][:, None]
        found += [(before[:, None] - steps).ravel(), (before[:, None] + steps).ravel()]
    return curve(np.mod(np.concatenate(found), period))


def fit_boundary(
    g: PointFunction,
    points: np.ndarray,
    normalise: Any,
    interfaces: Sequence[PointFunction],
    fit: Fit | None = None,
) -> Lift:
    """A function of one point close to g at the boundary `points`, smooth away from the interfaces
    and of class C^{1,1} across them.

    `normalise` is the affine map that takes the domain into the cube [-1, 1]ᵈ, for NumPy and jax
    arrays (..., d). Interfaces that do not meet the boundary are left out. Bases are tried from the
    poorest to the richest, and cutoffs of small singular values from the coarsest to the finest;
    the first fit that reaches rounding is taken, else the first that is about as good as the best.
    A `fit` that was found earlier is taken as it is.
    """
    values = boundary_values(g, points)
    scale = float(np.max(np.abs(values)))
    if scale == 0.0:
        return Lift(lambda x: jnp.zeros(()))
    crossing, heights = _crossing(interfaces, points)
    fit = fit if fit is not None else best_fit(normalise(points), heights, values)
    return Lift(_function(fit, normalise, crossing), fit)


def best_fit(y: np.ndarray, heights: list[np.ndarray], values: np.ndarray) -> Fit:
    """The poorest fit that is about as good as the best one."""
    scale = float(np.max(np.abs(values)))
    fits: list[tuple[float, Basis, np.ndarray]] = []
    for family in _families(y.shape[1], len(heights)):
        fits += _fit_family(family, y, heights, values)
        if fits[-1][0] <= ROUNDING * scale:
            break
    bound = max(ROUNDING * scale, WORTHWHILE * min(error for error, _, _ in fits))
    _, basis, coefficients = next(fit for fit in fits if fit[0] <= bound)
    return Fit(basis, coefficients)


def _fit_family(
    family: list[Basis], y: np.ndarray, heights: list[np.ndarray], values: np.ndarray
) -> list[tuple[float, Basis, np.ndarray]]:
    """The shortest least-squares solutions in each basis of a family for each cutoff, with the
    largest error at the points; not beyond a basis that reaches rounding.

    The functions of each basis come first in the next, so that one QR decomposition serves the
    whole family and the singular value decompositions are those of small triangles.
    """
    penalties = DEGREE_PENALTY ** _degrees(family[-1], y.shape[-1], len(heights))
    columns = _evaluate(family[-1], y, heights, np) / penalties
    orthogonal, triangle = np.linalg.qr(columns)
    targets = orthogonal.T @ values
    fits = []
    for basis in family:
        count = len(_degrees(basis, y.shape[-1], len(heights)))
        left, singular, right = np.linalg.svd(triangle[:count, :count])
        projections = left.T @ targets[:count]
        for cutoff in CUTOFFS:
            rank = int(np.sum(singular > cutoff * singular[0]))
            coefficients = right[:rank].T @ (projections[:rank] / singular[:rank])
            error = float(np.max(np.abs(columns[:, :count] @ coefficients - values)))
            fits.append((error, basis, coefficients / penalties[:count]))
        if fits[-1][0] <= ROUNDING * np.max(np.abs(values)):
            break
    return fits


def _families(dimension: int, interfaces: int) -> list[list[Basis]]:
    """The bases to try, from the poorest to the richest, in families where each basis begins with
    the one before it."""
    highest = _degree(dimension, LARGEST_BASIS)
    families = [
        [Basis(degree) for degree in (0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20) if degree < highest]
        + [Basis(highest)]
    ]
    if interfaces:
        # Kinks limit what more polynomials can do.
        highest = _degree(dimension, LARGEST_WITH_KINKS)
        # The factors of generic powers are few, so that the whole basis stays near 300 functions.
        few = max(1, min(10, 200 // (len(GENERIC_POWERS) * interfaces)))
        families.append(
            [Basis(highest, PIECEWISE_POWERS, _degree(dimension, few * len(GENERIC_POWERS) // 2))]
        )
        families.append([Basis(highest, GENERIC_POWERS, _degree(dimension, few))])
    return families


def _degree(dimension: int, largest: int) -> int:
    """The highest total degree with at most `largest` polynomials."""
    degree = 0
    while degree < HIGHEST_DEGREE and math.comb(dimension + degree + 1, dimension) <= largest:
        degree += 1
    return degree


def _function(
    fit: Fit, normalise: Any, interfaces: list[tuple[PointFunction, float]]
) -> PointFunction:
    """The linear combination of a basis as a function of one point; interface functions come with
    their sizes.

    In up to three dimensions the coefficients are kept as a tensor and contracted with the table of
    one coordinate after the other, which is many times cheaper, with its derivatives, than all
    products of the basis.
    """
    basis, coefficients = fit
    used = interfaces if basis.powers else []

    def fitted(x: Array) -> Array:
        heights = [interface(x) / size for interface, size in used]
        y = normalise(x)
        if y.shape[-1] > 3:
            return _evaluate(basis, y, heights, jnp) @ coefficients
        count = math.comb(y.shape[-1] + basis.degree, basis.degree)
        table = chebyshev(y, basis.degree)
        total = contracted(
            table, coefficient_tensor(coefficients[:count], basis.degree, y.shape[-1])
        )
        rows = coefficients[count:].reshape(len(heights), len(basis.powers), -1) if heights else ()
        for height, row in zip(heights, rows, strict=True):
            factors = contracted(
                table[:, : basis.multiplier + 1],
                np.stack([coefficient_tensor(each, basis.multiplier, y.shape[-1]) for each in row]),
            )
            total = total + jnp.dot(_kinks(height, basis.powers, jnp), factors)
        return total

    return fitted


def coefficient_tensor(coefficients: np.ndarray, degree: int, dimension: int) -> np.ndarray:
    """Coefficients of products of Chebyshev polynomials by the degrees of their factors, shape
    (degree + 1, …)."""
    tensor = np.zeros((degree + 1,) * dimension)
    for exponent, value in zip(_exponents(degree, dimension), coefficients, strict=True):
        tensor[tuple(exponent[k] for k in range(dimension))] = value
    return tensor


def contracted(table: Array, tensor: np.ndarray) -> Array:
    """Σ tensor[…, i, j, …] T_i(y₁) T_j(y₂) … for the tables (d, degree + 1) of one point; leading
    axes of the tensor stay."""
    total = jnp.asarray(tensor)
    for row in table[::-1]:
        total = total @ row
    return total


def _evaluate(basis: Basis, y: Any, heights: Sequence[Any], numpy: Any) -> Any:
    """All functions of a basis at points y (..., d), with `numpy` or `jax.numpy`: shape (...,
    count)."""
    polynomials = _polynomials(basis.degree, y, numpy)
    if not basis.powers:
        return polynomials
    factors = polynomials[..., None, : math.comb(y.shape[-1] + basis.multiplier, basis.multiplier)]
    kinks = [_kinks(height, basis.powers, numpy)[..., None] * factors for height in heights]
    return numpy.concatenate(
        [polynomials, *[kink.reshape(*y.shape[:-1], -1) for kink in kinks]], axis=-1
    )


def _degrees(basis: Basis, dimension: int, interfaces: int) -> np.ndarray:
    """The degree of each function of a basis, in the order of `_evaluate`; a power of an interface
    counts as its exponent."""
    degrees = [
        np.array([sum(exponent.values()) for exponent in _exponents(degree, dimension)])
        for degree in (basis.degree, basis.multiplier)
    ]
    return np.concatenate(
        [degrees[0], *[degrees[1] + power for _ in range(interfaces) for power, _ in basis.powers]]
    )


def _exponents(degree: int, dimension: int) -> list[Counter[int]]:
    """For each product of total degree at most `degree`, in order of the degree: the coordinates in
    it and their degrees."""
    return [
        Counter(chosen)
        for total in range(degree + 1)
        for chosen in itertools.combinations_with_replacement(range(dimension), total)
    ]


def _polynomials(degree: int, y: Any, numpy: Any) -> Any:
    """Products of Chebyshev polynomials of total degree at most `degree` at points y (..., d), in
    order of the degree."""
    table = chebyshev(y, degree) if numpy is jnp else _chebyshev_table(y, degree, np)
    table = table.reshape(*y.shape[:-1], -1)
    product = 1.0
    for selection in _selections(degree, y.shape[-1]):
        product = product * (table @ selection)
    return product


def _chebyshev_table(y: Any, degree: int, numpy: Any) -> Any:
    """T₀ … T_degree of each coordinate, by T(m+j) = 2 T(m) T(j) − T(m−j), which doubles the table
    in each step."""
    table = numpy.stack([numpy.ones_like(y), y], axis=-1)
    while table.shape[-1] <= degree:
        table = numpy.concatenate(
            [table, 2 * table[..., -1:] * table[..., 1:] - table[..., -2::-1]], axis=-1
        )
    return table[..., : degree + 1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def chebyshev(y: Array, degree: int) -> Array:
    return _chebyshev_table(y, degree, jnp)


@chebyshev.defjvp
def _chebyshev_derivative(
    degree: int, point: tuple[Array], direction: tuple[Array]
) -> tuple[Array, Array]:
    """The derivatives are combinations of the same polynomials. One product with a matrix compiles
    in half the time that a lift takes when the recurrence itself is differentiated twice."""
    table = chebyshev(point[0], degree)
    derivative = np.zeros((degree + 1, degree + 1))
    for k in range(1, degree + 1):
        derivative[:k, k] = np.polynomial.chebyshev.chebder(np.eye(degree + 1)[k])[:k]
    return table, (table @ derivative) * direction[0][..., None]


@functools.lru_cache(maxsize=64)
def _selections(degree: int, dimension: int) -> tuple[np.ndarray, ...]:
    """Matrices of zeros and ones that pick the first, second, … factors of all products from the
    table of Chebyshev polynomials.

    A product has at most `degree` factors other than T₀ = 1, which keeps high dimensions cheap.
    Matrices, because the derivatives of an indexing operation take several times longer to compile.
    """
    exponents, width = _exponents(degree, dimension), max(1, min(degree, dimension))
    selections = np.zeros((width, dimension, degree + 1, len(exponents)))
    for row, exponent in enumerate(exponents):
        factors = [*exponent.items(), *[(0, 0)] * (width - len(exponent))]
        for column, (coordinate, power) in enumerate(factors):
            selections[column, coordinate, power, row] = 1.0
    return tuple(selections.reshape(width, dimension * (degree + 1), len(exponents)))


def _kinks(height: Any, powers: Sequence[tuple[float, bool]], numpy: Any) -> Any:
    """|φ|ᵖ or φ|φ|ᵖ⁻¹ for each power, with the derivatives at φ = 0 that the limit has (zero),
    where differentiating the power would give NaN."""
    exponents, odd = np.array([power for power, _ in powers]), np.array([odd for _, odd in powers])
    on_interface = height == 0
    safe = numpy.where(on_interface, 1.0, height)[..., None]
    values = numpy.abs(safe) ** exponents * numpy.where(odd, numpy.sign(safe), 1.0)
    return numpy.where(on_interface[..., None], 0.0, values)


def _crossing(
    interfaces: Sequence[PointFunction], points: np.ndarray
) -> tuple[list[tuple[PointFunction, float]], list[np.ndarray]]:
    """The interfaces that meet the boundary, each with its largest value there, and their values
    divided by it."""
    found, values = [], []
    for interface in interfaces:
        heights = np.asarray(jax.jit(jax.vmap(interface))(jnp.asarray(points)))
        if np.all(np.isfinite(heights)) and np.min(heights) < 0 < np.max(heights):
            size = float(np.max(np.abs(heights)))
            found.append((interface, size))
            values.append(heights / size)
    return found, values
