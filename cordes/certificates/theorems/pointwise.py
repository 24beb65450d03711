"""Formulas behind the bounds of the error at a point: constants of Green's function, of the maximum
principle with drift, and a barrier.

v is the error: zero on the boundary of a bounded convex Ω, with A:D²v + b·∇v − cv = r. All
constants are rounded up by a relative 1e-12. None of the hypotheses on A, b, c is checked here;
that is the task of the caller.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import i0e, k0e

from cordes.certificates.theorems.energy import inverse_root
from cordes.domains.constants import EPS, SLACK, circumscribed, positive_definite
from cordes.domains.domain import AbstractDomain
from cordes.domains.unit_ball import ball_volume
from cordes.errors import OptionError

Barrier = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

# Beyond this exponent a bound is worth nothing, and soon after exp overflows.
LARGEST_EXPONENT = 700.0
SERIES_TERMS = 1000


def green_constant(
    dimension: int, volume: float, matrix: np.ndarray | None = None, lambda_: float = 0.0
) -> float | None:
    """C with sup |v| ≤ C ‖M:D²v − λv‖ in L² for all v in H² that vanish on the boundary, λ ≥ 0;
    None for d ≥ 4, where there is no such C.

    C² bounds ∫ G(x, ·)², with Green's function G of −M:D² + λ. Carried over by y = M^{−1/2}x, M
    becomes the identity, the volume shrinks by √det M and the square of the L² norm too, so that C
    is (det M)^{−1/4} times the constant of the carried domain. d = 1: G is known; the worst x is
    the midpoint, because ∫ G² = −∂λ G(x, x) falls with the distance from it: with the length ℓ and
    z = √λ ℓ/2, C² = (ℓ³/48) · 3(tanh z − z/cosh²z)/2z³. d = 2, 3: by Talenti's comparison G is
    largest for the ball of the same volume seen from its centre, λ = 0: C² = |Ω|/8π² and R/12π. By
    the maximum principle G is below Green's function of the whole space too: C² = 1/4πλ and 1/8π√λ.
    The smaller one is taken.
    """
    if dimension >= 4:
        return None
    if not (volume > 0 and lambda_ >= 0 and math.isfinite(volume) and math.isfinite(lambda_)):
        needed = "Green's function needs a volume > 0 and λ ≥ 0, both finite"
        raise OptionError(f"{needed}; they are {volume} and {lambda_}.")
    matrix = positive_definite(matrix, dimension)
    stretch = math.exp(-np.linalg.slogdet(matrix)[1] / 4)
    carried = volume * stretch**2
    if dimension == 1:
        square = carried**3 / 48 * _interval_reduction(math.sqrt(lambda_) * carried / 2)
    elif dimension == 2:
        whole_space = 1 / (4 * math.pi * lambda_) if lambda_ > 0 else math.inf
        square = min(carried / (8 * math.pi**2), whole_space)
    else:
        radius = (carried / ball_volume(3)) ** (1 / 3)
        whole_space = 1 / (8 * math.pi * math.sqrt(lambda_)) if lambda_ > 0 else math.inf
        square = min(radius / (12 * math.pi), whole_space)
    return stretch * math.sqrt(square) * (1 + SLACK + 32 * EPS * float(np.linalg.cond(matrix)))


def _interval_reduction(z: float) -> float:
    """3(tanh z − z/cosh²z)/2z³ ≤ 1. Its series alternates, so that it is rounded up where it is cut
    off after a positive term."""
    if z < 0.1:
        return 1 - 4 / 5 * z**2 + 17 / 35 * z**4 - 248 / 945 * z**6 + 1382 / 10395 * z**8
    return 1.5 * (math.tanh(z) - z / math.cosh(min(z, 300)) ** 2) / z**3


def drifting_green_constant(
    domain: AbstractDomain, matrix: np.ndarray, drift: np.ndarray, lambda_: float = 0.0
) -> float:
    """C with sup |v| ≤ C ‖M:D²v + b·∇v − λv‖ in L² for all v that vanish on the boundary, for d ≤
    3, constant M and b and λ ≥ 0; infinite where b and λ are zero.

    C² bounds ∫ Γ(z)² over all z = y − x with x, y in Ω, where Γ is Green's function of the whole
    space, which by the maximum principle is above that of Ω. Carried over by y = M^{−1/2}x as in
    `green_constant`, with β = |M^{−1/2}b|, k² = β²/4 + λ and ρ = |z| it is e^{b·z/2} times
    e^{−kρ}/2k, K₀(kρ)/2π or e^{−kρ}/4πρ for d = 1, 2, 3. Over spheres the mean of e^{b·z} is cosh
    βρ, I₀(βρ) or sinh(βρ)/βρ; what is left is an integral over ρ up to the diameter, which grows
    only as its root: C falls like β^{−3/4} in the plane. The integrands are analytic on intervals
    (ρ, 2ρ), where Gauss's rule has all digits.
    """
    d, root = domain.dimension, inverse_root(positive_definite(matrix, domain.dimension))
    beta = float(np.linalg.norm(root @ drift))
    k = math.sqrt(beta**2 / 4 + lambda_)
    if k == 0:
        return math.inf
    low, high = domain.bounding_box
    signs = np.array(list(itertools.product((-1, 1), repeat=d)))
    diameter = min(
        float(np.max(np.linalg.norm(signs * (high - low) @ root, axis=1))),
        2 * circumscribed(domain)[1] * float(np.linalg.norm(root, 2)),
    )
    node, weight = np.polynomial.legendre.leggauss(24)
    edges = diameter * 2.0 ** np.arange(-60, 1)
    half = np.diff(edges)[:, None] / 2
    rho = half * node + (edges[1:] + edges[:-1])[:, None] / 2
    # All exponentials together: e^{(β − 2k)ρ}, 2k − β = 4λ/(β + 2k).
    growth = np.exp(-4 * lambda_ / (beta + 2 * k) * rho)
    twice = 2 * beta * rho
    if d == 1:
        density = growth * (1 + np.exp(-twice)) / (4 * k**2)
    elif d == 2:
        density = growth * i0e(beta * rho) * k0e(k * rho) ** 2 * rho / (2 * math.pi)
    else:
        mean = np.where(twice > 0, -np.expm1(-twice) / np.maximum(twice, 1e-300), 1.0)
        density = growth * mean / (4 * math.pi)
    square = float(np.sum(half * weight * density))
    condition = float(np.linalg.cond(matrix))
    return math.sqrt(square * np.linalg.det(root)) * (1 + 1e-9 + 32 * EPS * condition)


def drift_factor(dimension: int, drift_norm: float) -> float:
    """F with sup v ≤ R F ‖r⁻/det A^{1/d}‖ in L^d, where Ω lies in a ball of radius R, c ≥ 0, and
    `drift_norm` is B = ‖b/det A^{1/d}‖ in L^d.

    The maximum principle of Aleksandrov, Bakelman and Pucci with a parameter ν: F ≤ T/ν, where I(T)
    = (νᵈ + Bᵈ)/(d^{d+1}ω_d) and I(T) = ∫₀ᵀ t^{d−1}/(1 + t^{d'})^{d−1} dt, d' = d/(d − 1). With W =
    T^{d'}/(1 + T^{d'}) the integral is (d − 1)/d · Σ_{k≥d−1} Wᵏ/k, and the minimum over ν is where
    Σ_{k≥d} Wᵏ/k = Bᵈ/(dᵈ(d − 1)ω_d) =: β; there F = (1 − W)^{−(d−1)/d} / (d ω_d^{1/d}). For d = 2
    this is q − ln q = 1 + B²/4π with q = 1 − W. For d = 1, where (1 + t^{d'})^{d−1} becomes max(1,
    t), the minimum is at ν = 2 and F = e^{B/2}/2. Infinite where F is beyond e^700.
    """
    if not drift_norm >= 0:
        raise OptionError(f"The norm of the drift must be zero or positive, not {drift_norm}.")
    d = dimension
    without_drift = ball_volume(d) ** (-1 / d) / d
    exponent = drift_norm / 2 if d == 1 else 0.0
    if d > 1 and drift_norm > 0:
        log_beta = d * math.log(drift_norm / d) - math.log((d - 1) * ball_volume(d))
        exponent = (d - 1) / d * _logarithm_of_drift(d, log_beta)
    if not exponent < LARGEST_EXPONENT:
        return math.inf
    return without_drift * math.exp(exponent) * (1 + SLACK)


def _logarithm_of_drift(dimension: int, log_beta: float) -> float:
    """p = −ln(1 − W) for the root W of S(W) = Σ_{k≥d} Wᵏ/k = β, rounded up.

    Bisection on a lower bound of S: any partial sum, or p − Σ_{k<d} Wᵏ/k less its rounding error.
    It starts at the smaller one of the p of Wᵈ/d = β and β + Σ_{k<d} 1/k, both too large for
    certain, and every later upper end has been compared with β.
    """
    if log_beta > math.log(4 * LARGEST_EXPONENT):
        return math.inf
    d, beta = dimension, math.exp(log_beta) * (1 + SLACK)
    below, above = np.arange(1, d), np.arange(d, d + SERIES_TERMS)

    def at_least(p: float) -> float:
        W = -math.expm1(-p)
        return max(
            float(np.sum(W**above / above)) * (1 - SLACK),
            p - float(np.sum(W**below / below)) - 8 * d * EPS * p,
        )

    single = math.exp((log_beta + math.log(d)) / d) * (1 + SLACK)
    by_first = -math.log1p(-single) if single < 1 else math.inf
    lower, upper = 0.0, min(beta + float(np.sum(1 / below)), by_first) * (1 + SLACK)
    while upper - lower > 1e-13 * upper:
        middle = (lower + upper) / 2
        if at_least(middle) >= beta > 0:
            upper = middle
        else:
            lower = middle
    return upper


def exponential_barrier(width: float, smallest: float, drift: float) -> Barrier:
    """The even w(s) with λw'' + B|w'| = −1 and w(±ℓ/2) = 0 as a function s -> (w, w', w''), ℓ =
    `width`, λ = `smallest`, B = `drift`.

    With n·An ≥ λ > 0, |b·n| ≤ B, c ≥ 0 and Ω in the slab |n·(x − m)| ≤ ℓ/2, w(n·(x − m)) has −Lw ≥
    1, so that |v| ≤ w sup |r|, or ≤ w sup |r|/(−Lw). For s ≥ 0 the slope solves λg' = Bg + 1 with g
    = −w', g(0) = 0: g = (e^z − 1)/B, z = Bs/λ. Integrated once more, with φ(z) = (e^z − 1 − z)/z²,
    w = [(ℓ²/4) φ(Bℓ/2λ) − s² φ(z)]/λ. w'' = −e^z/λ is continuous at 0. w is raised by 1e-12 w(0)
    against rounding, which leaves it a barrier. Where e^{Bℓ/2λ} is beyond e^700, w is infinite and
    w' = 0, w'' = −1/λ.
    """
    top = exponential_barrier_constant(width, smallest, drift)

    def barrier(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = np.asarray(s, dtype=np.float64)
        if math.isinf(top):
            return np.full_like(s, math.inf), np.zeros_like(s), np.full_like(s, -1 / smallest)
        z = drift * np.abs(s) / smallest
        slope = np.where(z > 0, np.expm1(z) / np.maximum(z, 1e-300), 1.0)
        w = top - s**2 * _second_remainder(z) / smallest
        return w, -s * slope / smallest, -np.exp(z) / smallest

    return barrier


def exponential_barrier_constant(width: float, smallest: float, drift: float) -> float:
    """The largest value (ℓ²/4λ) φ(Bℓ/2λ) of the barrier, |v| ≤ value · sup |r|; ℓ²/8λ without
    drift, infinite where it overflows."""
    if not (width > 0 and smallest > 0 and drift >= 0):
        needed = "A barrier needs a width > 0, an ellipticity > 0 and a drift ≥ 0"
        raise OptionError(f"{needed}; they are {width}, {smallest} and {drift}.")
    kappa = drift * width / (2 * smallest)
    if not kappa < LARGEST_EXPONENT:
        return math.inf
    return width**2 / (4 * smallest) * float(_second_remainder(np.asarray(kappa))) * (1 + SLACK)


def _second_remainder(z: np.ndarray) -> np.ndarray:
    """φ(z) = (e^z − 1 − z)/z² for z ≥ 0, below 1 by its series Σ zᵏ/(k + 2)!, which does not
    cancel."""
    small = np.minimum(z, 1.0)
    series = np.zeros_like(small)
    for k in range(19, -1, -1):
        series = series * small + 1 / math.factorial(k + 2)
    large = np.maximum(z, 1.0)
    return np.where(z < 1, series, (np.expm1(large) - large) / large**2)
