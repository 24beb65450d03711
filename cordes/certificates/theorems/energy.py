"""Energy bounds: the norm of the residual, times a multiplier g(x), bounds ‖M:D²v - λv‖ from both
sides.

Every theorem here has the same shape. With a multiplier g > 0, a constant matrix M and λ ≥ 0 the
operator gL is near L_λ v = M:D²v - λv: ‖(gL - L_λ)v‖ ≤ s ‖L_λ v‖ with a contraction s < 1, for all
v in H² that vanish on the boundary of a convex domain. Hence, for Lv = r,

    ‖g r‖ / (1 + s)  ≤  ‖L_λ v‖  ≤  ‖g r‖ / (1 - s).

T1b (trace split; b = c = 0): g = d/tr A, λ = 0, s = sup ρ', ρ' = √(d(d-1)) |A₀|/tr A with A₀ the
trace-free part: since tr A₀ = 0 only the trace-free part H₀ of D²v meets it, and ‖H₀‖² ≤ (1 -
1/d)‖Δv‖² by Miranda–Talenti.

T1c: with 0 < p < 1 the multiplier may also shrink where A is nearly isotropic, see `Tightened`. p =
1/d is the classical bound of Smears and Süli 2013.

T2 (drift and reaction): Cauchy–Schwarz with weights, see `Weighted`. The weights of Smears and Süli
2014 are one choice; unlike theirs the condition can hold where c = 0. `Triangle` applies the
triangle inequality to the same terms.

T1d: y = M^{-1/2}x turns A into M^{-1/2} A M^{-1/2}, keeps the domain convex, and the Jacobians
cancel. `Local.whitened` does this for every theorem at once.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.optimize import minimize

from cordes.certificates.theorem import Citation, Theorem
from cordes.problems.condition import best_lambda
from cordes.runtime.blocks import slices_with_matrices


class Local(NamedTuple):
    """Coefficients at points: A (N, d, d), b (N, d), c (N,)."""

    A: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def whitened(self, matrix: np.ndarray) -> "Local":
        """In the coordinates y = M^{-1/2} x."""
        if is_identity(matrix):
            return self
        root = inverse_root(matrix)
        return Local(root @ self.A @ root, self.b @ root, self.c)

    def take(self, index: np.ndarray | slice) -> "Local":
        return Local(self.A[index], self.b[index], self.c[index])

    def invariants(self, matrix: np.ndarray | None = None) -> "Invariants":
        """All that the theorems see of the coefficients, in the coordinates of M."""
        d = self.A.shape[-1]
        parts = [self.take(part) for part in slices_with_matrices(len(self.c), d)]
        found = [part._invariants(matrix)[1:] for part in parts]
        return Invariants(d, *map(np.concatenate, zip(*found, strict=True)))

    def _invariants(self, matrix: np.ndarray | None) -> "Invariants":
        A, b, c = self if matrix is None else self.whitened(matrix)
        d = A.shape[-1]
        trace = np.trace(A, axis1=-2, axis2=-1)
        # |A₀| is formed directly, because |A|² - (tr A)²/d cancels.
        rest = A - trace[:, None, None] / d * np.eye(d)
        # Scaled first: the squares of tiny and huge entries leave the range of numbers.
        size = np.maximum(np.max(np.abs(A), axis=(1, 2)), 1e-300)
        deviation = size * np.sqrt(np.sum((rest / size[:, None, None]) ** 2, axis=(1, 2)))
        return Invariants(d, trace, deviation, np.linalg.norm(b, axis=1), c)


class Invariants(NamedTuple):
    """tr A, |A₀| (A₀ the trace-free part), |b| and c at points, each (N,)."""

    dimension: int
    trace: np.ndarray
    deviation: np.ndarray
    drift: np.ndarray
    reaction: np.ndarray

    @property
    def squared_deviation(self) -> np.ndarray:
        return self.deviation**2

    @property
    def squared_drift(self) -> np.ndarray:
        return self.drift**2

    @property
    def anisotropy(self) -> np.ndarray:
        """(|A₀|/tr A)²."""
        return (self.deviation / self.trace) ** 2


def is_identity(matrix: np.ndarray) -> bool:
    return np.array_equal(matrix, np.eye(len(matrix)))


def inverse_root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.sqrt(values)) @ vectors.T


class Scheme(Protocol):
    """A theorem with its parameters. `defects` (N, m) are pointwise; the contraction is the sum of
    the suprema of the columns."""

    @property
    def theorem(self) -> Citation: ...
    @property
    def lambda_(self) -> float: ...
    def multiplier(self, at: Invariants) -> np.ndarray: ...
    def defects(self, at: Invariants) -> np.ndarray: ...


AnyScheme = TypeVar("AnyScheme", bound=Scheme)


class TraceSplit(NamedTuple):
    """T1b."""

    theorem: Citation = Citation(Theorem.T1b)
    lambda_: float = 0.0

    def multiplier(self, at: Invariants) -> np.ndarray:
        return at.dimension / at.trace

    def defects(self, at: Invariants) -> np.ndarray:
        return (math.sqrt(at.dimension * (at.dimension - 1)) * at.deviation / at.trace)[:, None]


class Tightened(NamedTuple):
    """T1c: g = τ d/tr A, 0 < τ ≤ 1. `contraction` is at least the supremum of R/(1 + pR), R =
    ρ'²/(1 - p), which it replaces."""

    p: float
    contraction: float
    theorem: Citation = Citation(Theorem.T1c)
    lambda_: float = 0.0

    def multiplier(self, at: Invariants) -> np.ndarray:
        d = at.dimension
        R = (d * (d - 1) / (1 - self.p)) * at.anisotropy
        square = self.contraction**2
        # The root of the quadratic in a form that does not cancel.
        discriminant = (square * (1 + self.p * R) - R) / self.p
        tau = (1 / self.p - square) / (1 / self.p + np.sqrt(np.maximum(discriminant, 0.0)))
        return tau * TraceSplit().multiplier(at)

    def defects(self, at: Invariants) -> np.ndarray:
        return np.full((len(at.trace), 1), self.contraction)


class Weighted(NamedTuple):
    """T2. The weights satisfy (β + α₂(1 - 1/d)) μ² + α₁ μ + α₀ ≤ (μ + λ)² for all μ ≥ λ₁, and g
    makes

    Q = (g t/d - 1)²/β + g²|A₀|²/α₂ + g²|b|²/α₁ + (gc - λ)²/α₀

    smallest at each point; the defect is √Q. A weight may be zero where its numerator is.
    """

    lambda_: float
    weights: tuple[float, float, float, float]
    theorem: Citation = Citation(Theorem.T2)

    def multiplier(self, at: Invariants) -> np.ndarray:
        t, over = at.trace / at.dimension, self.inverse_weights()
        numerator = t * over[0] + at.reaction * (self.lambda_ * over[3])
        squares = (
            t**2 * over[0]
            + at.squared_deviation * over[1]
            + at.squared_drift * over[2]
            + at.reaction**2 * over[3]
        )
        # A non-positive optimum (c < 0) leaves no multiplier: the tiny one makes Q at least one,
        # and the theorem fails as it should.
        return np.maximum(numerator / squares, 1e-300)

    def defects(self, at: Invariants) -> np.ndarray:
        # Q itself: the difference that is left after inserting the optimal g cancels and would fake
        # a contraction of zero.
        g, over = self.multiplier(at), self.inverse_weights()
        inner = at.deviation**2 * over[1] + at.drift**2 * over[2]
        square = (
            (g * at.trace / at.dimension - 1) ** 2 * over[0]
            + g**2 * inner
            + (g * at.reaction - self.lambda_) ** 2 * over[3]
        )
        return np.sqrt(square)[:, None]

    def inverse_weights(self) -> tuple[float, ...]:
        return tuple(1 / weight if weight > 0 else 0.0 for weight in self.weights)


class Triangle(NamedTuple):
    """T2 by the triangle inequality: g = d/t and s = sup ρ' + k sup(d|b|/t) + sup|dc/t - λ|/(λ₁ +
    λ), ‖∇v‖ ≤ k ‖L_λ v‖."""

    lambda_: float
    eigenvalue: float
    theorem: Citation = Citation(Theorem.T2, "triangle")

    def multiplier(self, at: Invariants) -> np.ndarray:
        return TraceSplit().multiplier(at)

    def defects(self, at: Invariants) -> np.ndarray:
        g = self.multiplier(at)
        drift = gradient_factor(self.eigenvalue, self.lambda_) * g * at.drift
        reaction = np.abs(g * at.reaction - self.lambda_) / (self.eigenvalue + self.lambda_)
        return np.stack([TraceSplit().defects(at)[:, 0], drift, reaction], axis=1)


def gradient_factor(eigenvalue: float, lambda_: float) -> float:
    """k with ‖∇v‖ ≤ k ‖Δv - λv‖: the largest √μ/(μ + λ) over μ ≥ λ₁."""
    if lambda_ > eigenvalue:
        return 1 / (2 * math.sqrt(lambda_))
    return math.sqrt(eigenvalue) / (eigenvalue + lambda_)


def normalised(
    weights: Sequence[float], lambda_: float, eigenvalue: float, dimension: int
) -> tuple[float, float, float, float]:
    """The weights of T2 divided by the exact supremum of (κμ² + α₁μ + α₀)/(μ + λ)² over μ ≥ λ₁, κ =
    β + α₂(1 - 1/d).

    In y = 1/(μ + λ), 0 < y ≤ 1/(λ₁ + λ), it is the quadratic κ + q₁y + q₂y²: largest at an end, or
    at its vertex. A grid in μ would break the guarantee.
    """
    beta, second, first, zeroth = weights
    kappa = beta + second * (1 - 1 / dimension)
    q1, q2 = first - 2 * kappa * lambda_, kappa * lambda_**2 - first * lambda_ + zeroth
    end = 1 / (eigenvalue + lambda_)
    largest = max(kappa, kappa + q1 * end + q2 * end**2)
    if q2 < 0 and 0 < -q1 / (2 * q2) < end:
        largest = max(largest, kappa - q1**2 / (4 * q2))
    return tuple(weight / (largest * (1 + 1e-14)) for weight in weights)  # pyright: ignore


def bounded_exponential(value: float) -> float:
    """exp, cut off where a search has lost its way."""
    return math.exp(min(max(value, -60.0), 60.0))


class Pilot(NamedTuple):
    """The whitened equation and the residual at points that serve to choose parameters and for
    nothing else; λ₁ of the whitened domain; which terms exist.

    With controls these are pairs of points and controls. The first `active` of them are the best
    controls, and only they have a residual: the others, whose residual counts as zero, bound the
    contraction. None where all have one.
    """

    local: Local
    at: Invariants
    residual: np.ndarray
    eigenvalue: float
    drift: bool
    reaction: bool
    active: int | None = None

    @staticmethod
    def of(local: Local, matrix: np.ndarray, *others: Any, active: int | None = None) -> "Pilot":
        """An equation that is not whitened yet."""
        return Pilot(local.whitened(matrix), local.invariants(matrix), *others, active=active)

    def contraction(self, scheme: Scheme) -> float:
        return float(np.sum(np.max(scheme.defects(self.at), axis=0)))

    def weights_of(self, theta: np.ndarray) -> tuple[float, tuple[float, float, float, float]]:
        """λ and the weights from the logarithms of the weights and of λ, which searches run over;
        zero for terms that do not exist."""
        beta, second, first, zeroth, lambda_ = (bounded_exponential(value) for value in theta)
        if not self.reaction:
            lambda_ = zeroth = 0.0
        weights = (beta, second, first if self.drift else 0.0, zeroth)
        return lambda_, normalised(weights, lambda_, self.eigenvalue, self.at.dimension)

    def thinned(self, count: int = 200) -> "Pilot":
        """Fewer points for searches: an even selection of those that have a residual, and the
        extreme ones, which decide about suprema."""
        at, active = self.at, len(self.at.trace) if self.active is None else max(self.active, 1)
        ratios = [part / at.trace for part in (at.deviation, at.drift, at.reaction, -at.reaction)]
        extreme = [np.argsort(-ratio)[:10] for ratio in (*ratios, at.trace, -at.trace)]
        index = np.unique(np.concatenate([np.arange(0, active, max(active // count, 1)), *extreme]))
        return self._replace(
            local=self.local.take(index),
            at=Invariants(at.dimension, *(part[index] for part in at[1:])),
            residual=self.residual[index],
            active=None if self.active is None else int(np.count_nonzero(index < self.active)),
        )

    def size(self, scheme: Scheme, contraction: float | None = None) -> float:
        """An estimate of the L² bound that a scheme gives, up to the volume; infinite where the
        theorem fails."""
        s = self.contraction(scheme) if contraction is None else contraction
        if not s < 1:
            return math.inf
        norm = math.sqrt(float(np.mean((scheme.multiplier(self.at) * self.residual) ** 2)))
        return norm / (1 - s) / (self.eigenvalue + scheme.lambda_)

    def neutral_start(self, guess: float) -> np.ndarray:
        """Logarithms of weights and of λ near the guess, for a search over `weights_of`."""
        guess = max(guess, 1e-3 * self.eigenvalue)
        zeroth = 0.1 * (self.eigenvalue + guess) ** 2
        first = 0.3 * (self.eigenvalue or guess)
        return np.log([0.1, 1.0, first, zeroth, guess])

    def searched(
        self,
        scheme_of: Callable[[np.ndarray], AnyScheme],
        start: np.ndarray,
        step: float,
        evaluations: int,
        largest: float = math.inf,
    ) -> AnyScheme:
        """The scheme with the smallest bound near the start. Where the condition fails the search
        first lowers the contraction, cut at `largest`."""

        def objective(theta: np.ndarray) -> float:
            scheme = scheme_of(theta)
            s = self.contraction(scheme)
            # A residual of zero makes all schemes equal.
            size = max(self.size(scheme, s), 1e-300)
            return math.log(size) if s < 0.999 else 1e3 + min(s, largest)

        return scheme_of(nelder_mead(objective, start, step, evaluations, 1e-3))


def nelder_mead(
    objective: Callable[[np.ndarray], float],
    start: np.ndarray,
    step: float,
    evaluations: int,
    tolerance: float,
) -> np.ndarray:
    """A minimum, from a simplex with the given step along every axis."""
    options = {
        "maxfev": evaluations,
        "initial_simplex": np.concatenate([start[None], start + step * np.eye(len(start))]),
        "fatol": tolerance,
        "xatol": tolerance,
    }
    return minimize(objective, start, method="Nelder-Mead", options=options).x


def choose_tightened(pilot: Pilot, largest: float, smooth: bool = False) -> Tightened | None:
    """The best p and contraction for T1c, given a certified supremum of ρ'; with the smallest
    contraction the root in g vanishes where R is largest, and g is not `smooth`."""
    best, best_size = None, pilot.size(TraceSplit(), largest)
    for p in np.linspace(0.05, 0.9, 18):
        R = largest**2 / (1 - p)
        smallest = math.sqrt(R / (1 + p * R)) * (1 + 1e-14)
        for stretch in (1.0, 1.02, 1.04, 1.07, 1.1, 1.15, 1.2)[int(smooth) :]:
            contraction = stretch * smallest
            if not 0 < contraction < 1:
                continue
            scheme = Tightened(float(p), contraction)
            size = pilot.size(scheme, contraction)
            if size < best_size:
                best, best_size = scheme, size
    return best


def choose_weighted(pilot: Pilot, evaluations: int = 300) -> list[Scheme]:
    """Candidates for T2: the weights of Smears and Süli with the best λ, weights found by
    Nelder–Mead from there and from a neutral start, and the triangle inequality with the best λ.
    Where no start satisfies the condition the search first lowers the contraction."""
    full, pilot = pilot, pilot.thinned()
    at, d = pilot.at, pilot.at.dimension
    scale = float(np.median(d * np.abs(at.reaction) / at.trace)) if pilot.reaction else 0.0
    found: list[Scheme] = []

    def scheme_of(theta: np.ndarray, theorem: Theorem = Theorem.T2) -> Weighted:
        return Weighted(*pilot.weights_of(theta), Citation(theorem))

    starts = []
    if pilot.reaction and np.min(at.reaction) > 0:
        lambda_ = best_lambda(*pilot.local)
        starts.append(np.log([1 / d, 1.0, 2 * lambda_, lambda_**2, lambda_]))
        found.append(scheme_of(starts[0], Theorem.smears_sueli))
    starts.append(pilot.neutral_start(scale))
    found += [pilot.searched(scheme_of, start, 0.7, evaluations) for start in starts]
    trials = [0.0] if pilot.eigenvalue > 0 else []
    trials += list(scale * np.geomspace(0.2, 5, 25)) if pilot.reaction else []
    triangles = [Triangle(float(value), pilot.eigenvalue) for value in trials]
    found.append(min(triangles, key=pilot.contraction))
    return sorted(found, key=full.size)
