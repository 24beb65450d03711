"""Bounds of D²φ, on which the smoothness of the conjugate rests, and what duality says about the
cost of a map."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.certificates.residual.convexity import (
    Convexity,
    Hessians,
    eigenvalue_bound,
    eigenvalues,
    smallest_eigenvalue,
)
from cordes.certificates.residual.norms import Measure
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, infimum
from cordes.jet import jet_of

# Interval bounds may be so much away from what is attained, and are used up to the second share;
# cells spent on them.
TOLERANCE, USED, CELLS = 0.02, 0.15, {1: 4000, 2: 12_000, 3: 12_000}


class Curvature(NamedTuple):
    """αI ≤ D²φ ≤ βI, the point of the smallest eigenvalue seen, and how they are known."""

    alpha: float
    beta: float
    point: np.ndarray
    source: str


def curvature_of(
    domain: AbstractDomain, hessian_at: Hessians, function: Callable | None, points: np.ndarray
) -> Curvature:
    """Bounds of D²φ: proved for a function where interval arithmetic comes close to what is
    attained, else searched."""

    def negative(x: np.ndarray) -> np.ndarray:
        return -hessian_at(x)

    low = smallest_eigenvalue(domain, hessian_at, points)
    high = smallest_eigenvalue(domain, negative, points)
    if not (low.smallest > 0 and np.isfinite(high.smallest)):
        return Curvature(low.smallest, -high.smallest, low.point, "sampled")
    alpha = _proved(domain, hessian_at, function, low, 1.0)
    beta = _proved(domain, negative, function, high, -1.0)
    source = "sampled" if alpha is None or beta is None else "interval"
    return Curvature(
        low.lower if alpha is None else alpha,
        -high.lower if beta is None else -beta,
        low.point,
        source,
    )


def _proved(
    domain: AbstractDomain,
    hessian_at: Hessians,
    function: Callable | None,
    known: Convexity,
    sign: float,
) -> float | None:
    """A lower bound of the smallest eigenvalue of ±D²φ by interval arithmetic, None where it is too
    far from what is attained."""
    if function is None or domain.dimension not in CELLS:
        return None
    bound = eigenvalue_bound(lambda x: sign * jet_of(function)(x).hessian)

    def values(x: np.ndarray) -> np.ndarray:
        return eigenvalues(hessian_at(x))[:, 0]

    try:
        found = infimum(
            bound,
            values,
            domain,
            known.smallest,
            known.point,
            TOLERANCE * abs(known.smallest),
            CELLS[domain.dimension],
        )
    except UnsupportedOperation:
        return None
    return found.lower if found.lower >= known.smallest - USED * abs(known.smallest) else None


def integral(measure: Measure, values: np.ndarray, volume: float) -> tuple[float, float]:
    """Limits of the integral of values of any sign. A constant is integrated exactly, so the values
    are raised until none is negative."""
    least = float(np.min(values))
    norm = measure.norm(values - least, 1.0)
    return norm.lower + least * volume, norm.upper + least * volume


class Unreached(NamedTuple):
    """The part of the target that the map does not reach: its mass at most, its thickness at most,
    and half the largest |x - y|² at most."""

    mass: float
    thickness: float
    half_square: float


def dual_value(
    measure: Measure,
    volume: float,
    half_cost: np.ndarray,
    potential: np.ndarray,
    excess: np.ndarray,
    density: np.ndarray,
    alpha: float,
    rest: Unreached,
) -> tuple[float, float]:
    """Limits of the dual value D = ½∫|x|²μ + ½∫|y|²ν - ∫φμ - ∫φ*ν, which is at most ½W₂², for T(X)
    ⊂ Y. `half_cost` is ½|x - T|², `potential` is p = ½|x|² - φ, `excess` μ - G and `density` G =
    ν(T) det D²φ at the points.

    Where y = T(x) the conjugate is x·y - φ(x); so the part of ∫(½|y|² - φ*)ν over T(X) is ∫(½|x -
    T|² - p)G, and with ∫pμ

        D = ∫½|x - T|²G + ∫p(μ - G) + ∫_{Y∖T(X)} (½|y|² - φ*)ν.

    In the last part take x with T(x) within the thickness θ of y: p(x) + ½|y|² - φ*(y) lies between
    ½|y - x|² - θ²/2α and ½|y - x|², by strong convexity and by the definition of φ*. With a
    constant c ≥ p this makes D ≥ ∫½|x - T|²G + ∫(p - c)(μ - G) - mass θ²/2α, since ∫(μ - G) is the
    mass of the last part; and D is at most the same with c ≤ p and mass ½ sup|x - y|² in place of
    the last term.
    """
    reach = float(np.ptp(potential))
    if rest.mass == 0:
        middle = (float(np.max(potential)) + float(np.min(potential))) / 2
        low, high = integral(measure, half_cost * density + (potential - middle) * excess, volume)
        return low, high
    # Between the points p may be a little larger or smaller than at them.
    above, below = float(np.max(potential)) + 0.05 * reach, float(np.min(potential)) - 0.05 * reach
    low, _ = integral(measure, half_cost * density + (potential - above) * excess, volume)
    _, high = integral(measure, half_cost * density + (potential - below) * excess, volume)
    return low - rest.mass * rest.thickness**2 / (2 * alpha), high + rest.mass * rest.half_square
