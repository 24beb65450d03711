"""The two sides of theorem T4: what f_w^{1/d} - f^{1/d} is at points, rounded up, and what its
norms say about u - w; and whether f has a finite integral, as the theorem needs."""

from typing import NamedTuple

import numpy as np

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.convexity import descend, inside
from cordes.certificates.residual.norms import Measure, Norm
from cordes.domains.domain import AbstractDomain
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.problems.monge_ampere import MongeAmpere
from cordes.runtime.plain import show

EPSILON = float(np.finfo(np.float64).eps)
# The lower limit of a determinant's root is trusted up to this relative rounding; beyond it is
# zero.
TRUSTED = 0.25
SEARCH_SEED = 5_550_203
# A pole of f is suspected where f exceeds its mean so much; of an integrable one the largest values
# have less than this share of those before.
SUSPECT, POLE_SHARE, POLE_ROUNDS = 1e3, 0.5, 120
# The sets of the largest values: points in each, their number, each a tenth of the last one, random
# steps, and how far apart those compared are.
TAIL_POINTS, TAIL_LEVELS, TAIL_MOVES, TAIL_SPAN = 2048, 12, 12, 5


class Densities(NamedTuple):
    """At points: f, D²w, and a bound of the rounding error of det(D²w + δI) for the shift δ in
    use."""

    f: np.ndarray
    hessian: np.ndarray
    rounding: np.ndarray


class DeterminantSides(NamedTuple):
    """Norms of the two sides; `shift` is δ, and `center` and `radius` belong to a ball around the
    domain."""

    upper: Norm
    lower: Norm
    shift: float
    center: np.ndarray
    radius: float
    gap: float

    def pointwise(self, domain: AbstractDomain, x: np.ndarray) -> np.ndarray:
        """The bound of |u - w| at points."""
        factor = domain.dimension * polar_factor(domain, x)
        square = np.sum((x - self.center) ** 2, axis=1)
        rest, half = np.maximum(self.radius**2 - square, 0.0), self.shift / 2
        above = half * square + factor * self.upper.upper
        below = half * rest + factor * self.lower.upper
        return np.maximum(above, below) * (1 + 4 * EPSILON) + self.gap

    def largest(self, domain: AbstractDomain) -> float:
        """The bound of the largest error."""
        factor = domain.dimension * largest_polar_factor(domain)
        theorem = factor * max(self.upper.upper, self.lower.upper)
        return float((self.raised + theorem) * (1 + 4 * EPSILON) + self.gap)

    @property
    def raised(self) -> float:
        """What the shift costs."""
        return self.shift * self.radius**2 / 2


def root_differences(local: Densities, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """(f_w^{1/d} - f^{1/d})⁺ and (f^{1/d} - f_w^{1/d})⁺ at points, rounded up.

    The root of the determinant is a concave function of positive matrices: its tangent bounds it
    from above, so that a rounding error ρ of the determinant raises the root by ρ/(d root^{d-1}) at
    most. From below the tangent is taken twice, which holds for relative errors up to 1/4. A
    determinant is never clipped: the shift makes all eigenvalues non-negative, and those below zero
    by rounding alone belong to the lower limit zero.
    """
    d = local.hessian.shape[1]
    if d == 1:
        high, low = local.hessian[:, 0, 0] + local.rounding, local.hessian[:, 0, 0] - local.rounding
    else:
        # Before the last word on the shift is spoken a point may show a negative eigenvalue: it
        # counts as far from any solution.
        values = np.abs(np.linalg.eigvalsh(local.hessian) + shift)
        mean = np.mean(np.log(np.maximum(values, 1e-300)), axis=1)
        root = np.exp(mean) * np.all(values > 0, axis=1)
        relative = local.rounding / np.maximum(root**d, 1e-300)
        # |a^{1/d} - b^{1/d}| ≤ |a - b|^{1/d} where there is no tangent.
        high = np.where(root > 0, root * (1 + relative / d), local.rounding ** (1 / d))
        low = np.where(relative <= TRUSTED, root * (1 - 2 * relative / d), 0.0)
    source = local.f ** (1 / d)
    above, below = high - source * (1 - 4 * EPSILON), source * (1 + 4 * EPSILON) - low
    return np.maximum(above, 0.0), np.maximum(below, 0.0)


def check_density(problem: MongeAmpere, measure: Measure, f: np.ndarray) -> None:
    """f must have a finite integral: looked at through n and 2n points, and through its largest
    values, since a logarithm grows too slowly for them."""
    domain, norm = problem.domain, measure.norm(f, 1.0)
    if not norm.converged:
        sentence = "f may not be a density: n and 2n points per direction give integrals of f that"
        sentence += f" differ by {100 * norm.spread:.2g} %; declare the interface if f jumps."
        sentence += " A pole whose integral is infinite has no bound."
        raise NoBoundError(Why.not_a_density, sentence, spread=norm.spread)
    mean = norm.upper / domain.volume
    top, (start, end) = np.argsort(-f)[:4], domain.bounding_box

    def negative(x: np.ndarray) -> np.ndarray:
        return -np.nan_to_num(problem.source_density(x), nan=0.0, posinf=np.inf)

    radius = 0.1 * float(np.max(end - start))
    pole, value = descend(domain, negative, measure.points[top], -f[top], radius, POLE_ROUNDS)
    point = pole[int(np.argmin(value))]
    if -np.min(value) > SUSPECT * mean and _infinite_tail(problem, mean):
        sentence = f"f is not a density: its integral over any neighbourhood of x = {show(point)}"
        sentence += " is infinite, as far as its largest values show; the theorem needs an"
        raise NoBoundError(Why.not_a_density, f"{sentence} integrable f", point=point)


def _infinite_tail(problem: MongeAmpere, mean: float) -> bool:
    """Whether the largest values of f keep their share of the integral: around poles, lines and
    surfaces alike.

    Points are moved into the sets f > t whose volumes are a tenth of one another, t being the
    quantile: those above it are copied and walk at random within the set, in steps of all
    lengths and along differences of two of them, which have the shape of the set. t times the
    volume is the share of values near t in the integral, which falls with the volume where the
    integral is finite.
    """
    domain, rng = problem.domain, np.random.default_rng(SEARCH_SEED)
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))

    def density(points: np.ndarray) -> np.ndarray:
        return np.nan_to_num(problem.source_density(points), nan=0.0)

    x = domain.interior_points(TAIL_POINTS, SEARCH_SEED)
    f, levels = density(x), []
    for _ in range(TAIL_LEVELS):
        order = np.argsort(-f, kind="stable")[: len(x) // 10]
        levels.append(float(f[order[-1]]))
        x, f = np.tile(x[order], (10, 1)), np.tile(f[order], 10)
        for move in range(TAIL_MOVES):
            if move % 2:
                length = 10.0 ** rng.uniform(-2.0, 0.0, (len(x), 1))
                tries = x + length * (x[rng.permutation(len(x))] - x[rng.permutation(len(x))])
            else:
                length = size * 10.0 ** rng.uniform(-1.0 - TAIL_LEVELS, 0.0, (len(x), 1))
                tries = x + length * rng.standard_normal(x.shape)
            f_tries = np.where(domain.contains(tries), density(inside(domain, tries)), -1.0)
            better = f_tries >= levels[-1]
            x, f = np.where(better[:, None], tries, x), np.where(better, f_tries, f)
    shares = np.array(levels) * 10.0 ** -np.arange(1.0, TAIL_LEVELS + 1)
    return levels[-1] > SUSPECT * mean and shares[-1] > POLE_SHARE * shares[-1 - TAIL_SPAN]
