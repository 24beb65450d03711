"""The energy theorem of equations in time (TP), its hypotheses and what follows from it.

With w_t inside of the supremum and a multiplier g^a(x, t) > 0 for each control,

    F_g[w] = sup_a g^a (L^a w - f^a - w_t),        Pv = ωv_t - M:D²v + λv,        v = u - w,

the theorem says ‖F_g[w]‖/(1 + s) ≤ ‖Pv‖ ≤ ‖F_g[w]‖/(1 - s) in L²(Ω × (0, T)), if Ω is convex, w has
the initial and boundary values of u exactly, and

    Q^a = (g-ω)²/α_t + (g t_A/d - 1)²/β + g²|A₀|²/α₂ + g²|b|²/α₁ + (gc-λ)²/α₀ ≤ s² < 1

everywhere, for weights that are small enough: with κ = β + α₂(1 - 1/d) and τ = (ω² - α_t)(π/2T)²

    (1-κ)μ² + (2λ-α₁)μ + (λ²+τ-α₀) ≥ 0   for all μ ≥ λ₁.                                      (W)

Proof. Every v in L²(H² ∩ H¹₀) ∩ H¹(L²) has ‖Pv‖² = Y² + ω(N(T)² - N(0)²), where Y² = ω²‖v_t‖² +
‖M:D²v - λv‖² and N(t)² = ∫ M∇v·∇v + λv² at the time t, since -2(v_t, M:D²v) is the derivative of
∫ M∇v·∇v. By Cauchy–Schwarz |F_g[u] - F_g[w] + Pv| ≤ s (α_t v_t² + β(Δv)² + α₂|H₀|² + α₁|∇v|² +
α₀v²)^½ with H₀ = D²v - (Δv/d)I; integrate, use Miranda–Talenti at almost every time and expand in
eigenfunctions: with v(0) = 0 and ∫q² ≤ (2T/π)² ∫q'² for q(0) = 0, (W) makes this at most s²Y². A
fixed point gives existence. Where v(0) ≠ 0 (a later slab of time) τ = 0.

The weights are searched for and then made small enough exactly (`normalised_in_time`), so that the
search need not be trusted. `shift` μ is the exponential transform v = e^{μt}z: c grows by μ, and
the residual is weighted with e^{-μt}.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.cell_bounds import CoefficientBall, cell_bound
from cordes.certificates.theorems.energy import Invariants, gradient_factor

SLACK = 1e-12


class SchemeInTime(NamedTuple):
    """TP with its parameters: ω, λ, α_t, the weights β, α₂, α₁, α₀ and the shift μ. With α_t = 0
    the multiplier is the constant ω."""

    omega: float
    lambda_: float
    alpha: float
    weights: tuple[float, float, float, float]
    shift: float = 0.0
    theorem: Citation = Citation(Theorem.TP)

    def _over(self) -> tuple[float, ...]:
        given = (self.alpha, *self.weights)
        return tuple(1 / weight if weight > 0 else 0.0 for weight in given)

    def multiplier(self, at: Any) -> Any:
        """g with the smallest Q, of numbers and of rectangles alike."""
        if self.alpha == 0:
            return at.trace * 0.0 + self.omega
        t, c, over = at.trace / at.dimension, at.reaction + self.shift, self._over()
        numerator = t * over[1] + c * (self.lambda_ * over[4]) + self.omega * over[0]
        squares = (
            t**2 * over[1]
            + at.squared_deviation * over[2]
            + at.squared_drift * over[3]
            + c**2 * over[4]
            + over[0]
        )
        # Where no multiplier is positive the tiny one makes Q at least one, and the theorem fails.
        return np.maximum(numerator / squares, 1e-300)

    def defects(self, at: Invariants) -> np.ndarray:
        """√Q, (N, 1)."""
        g, t = self.multiplier(at), at.trace / at.dimension
        parts = (g - self.omega, g * t - 1, g * at.deviation, g * at.drift)
        return self.root(*parts, g * (at.reaction + self.shift) - self.lambda_)[:, None]

    def root(self, *parts: np.ndarray) -> np.ndarray:
        """√Q from g - ω, g t/d - 1, g|A₀|, g|b| and gc - λ; a weight of zero needs a zero."""
        terms = [
            (part / math.sqrt(weight)) ** 2 if weight > 0 else np.where(part == 0, 0.0, np.inf)
            for part, weight in zip(parts, (self.alpha, *self.weights), strict=True)
        ]
        return np.sqrt(sum(terms))


@cell_bound.register
def _in_time_cells(scheme: SchemeInTime, ball: CoefficientBall, column: int) -> np.ndarray:
    """√Q with the multiplier of the middle everywhere in the cell: that of the theorem is at least
    as good at each point."""
    d, (trace, reach) = ball.middle.A.shape[-1], ball.traces
    g = scheme.multiplier(ball.middle.invariants())
    reaction = g * (ball.middle.c + scheme.shift) - scheme.lambda_
    return scheme.root(
        g - scheme.omega,
        np.abs(g * trace / d - 1) + g * reach / d,
        g * ball.largest_deviation,
        g * ball.largest_drift,
        np.abs(reaction) + g * ball.radius.c,
    )


def time_root(length: float, still: bool) -> float:
    """(π/2T)², the square of what a function of time that starts at zero gains by integration; zero
    where it does not start there."""
    return (math.pi / (2 * length)) ** 2 * (1 - SLACK) if still else 0.0


def normalised_in_time(
    weights: Sequence[float],
    omega: float,
    lambda_: float,
    alpha: float,
    eigenvalue: float,
    dimension: int,
    gain: float,
) -> tuple[float, float, float, float]:
    """β, α₂, α₁, α₀ divided by the exact supremum of (κμ² + α₁μ + α₀)/((μ + λ)² + τ) over μ ≥ λ₁,
    τ = (ω² - α_t) `gain`: its value at infinity, at λ₁, or at a root of the derivative's
    numerator beyond λ₁."""
    beta, second, first, zeroth = weights
    kappa = beta + second * (1 - 1 / dimension)
    tau = max(omega**2 - alpha, 0.0) * gain
    whole = lambda_**2 + tau

    def ratio(mu: float) -> float:
        return (kappa * mu**2 + first * mu + zeroth) / ((mu + lambda_) ** 2 + tau)

    candidates = [kappa, ratio(eigenvalue)]
    derivative = (
        2 * kappa * lambda_ - first,
        2 * (kappa * whole - zeroth),
        first * whole - 2 * zeroth * lambda_,
    )
    scale = max(abs(entry) for entry in derivative)
    if scale > 0:
        for root in np.roots(np.array(derivative) / scale):
            if abs(root.imag) <= 1e-9 * abs(root) and root.real > eigenvalue:
                candidates.append(ratio(float(root.real)))
    largest = max(candidates) * (1 + SLACK)
    found = tuple(weight / largest for weight in weights)
    while not allowed(found, omega, lambda_, alpha, eigenvalue, dimension, gain):
        found = tuple(weight * (1 - 1e-9) for weight in found)
    return found  # pyright: ignore[reportReturnType]


def allowed(
    weights: Sequence[float],
    omega: float,
    lambda_: float,
    alpha: float,
    eigenvalue: float,
    dimension: int,
    gain: float,
) -> bool:
    """(W): a quadratic in μ is not negative from λ₁ on; rounded outwards."""
    beta, second, first, zeroth = weights
    kappa = beta + second * (1 - 1 / dimension)
    tau = max(omega**2 - alpha, 0.0) * gain
    square, slope, rest = 1 - kappa, 2 * lambda_ - first, lambda_**2 + tau - zeroth
    if min(alpha, *weights) < 0 or alpha > omega**2 or square < 0:
        return False

    def positive(mu: float) -> bool:
        terms = (square * mu**2, slope * mu, rest)
        sizes = (1 + kappa) * mu**2, (2 * lambda_ + first) * mu, lambda_**2 + tau + zeroth
        return bool(sum(terms) >= 4 * np.finfo(float).eps * sum(sizes))

    places = [eigenvalue]
    if square > 0 and -slope / (2 * square) > eigenvalue:
        places.append(-slope / (2 * square))
    if square == 0 and slope < 0:
        return False
    return all(positive(mu) for mu in places)


@dataclass(frozen=True)
class Consequences:
    """What the theorem says of v on a slab of the given length that begins with v = 0 (`still`), or
    with N(0) ≤ `start`: factors are of 𝓕, the norm of the residual. `smallest` is the smallest
    eigenvalue of M."""

    scheme: SchemeInTime
    contraction: float
    eigenvalue: float
    length: float
    smallest: float
    start: float = 0.0

    @property
    def still(self) -> bool:
        return self.start == 0.0

    @property
    def _mass(self) -> float:
        return self.eigenvalue + self.scheme.lambda_

    @property
    def _growth(self) -> float:
        """From bounds of z to those of v = e^{μt}z over the slab."""
        return math.exp(max(self.scheme.shift, 0.0) * self.length) * (1 + SLACK)

    def energy(self, norm: float) -> float:
        """Y, which bounds ‖ωv_t‖ and ‖M:D²v - λv‖: 𝓕/(1 - s), or with a start of its own."""
        s, omega = self.contraction, self.scheme.omega
        if self.still:
            return norm / (1 - s) * (1 + SLACK)
        root = math.hypot(norm, math.sqrt((1 - s**2) * omega) * self.start)
        return (s * norm + root) / (1 - s**2) * (1 + SLACK)

    def L2(self, norm: float) -> float:
        """‖v‖ over the slab."""
        over = 1 / self._mass if self._mass > 0 else math.inf
        if self.still:
            k = smallest_frequency(self.scheme.omega, self._mass, self.length)
            over = 1 / math.hypot(self._mass, self.scheme.omega * k)
        return self._growth * self.energy(norm) * over * (1 + SLACK)

    def H1(self, norm: float) -> float:
        """‖∇v‖ over the slab."""
        lambda_, factor = self.scheme.lambda_, math.inf
        if self._mass > 0:
            factor = gradient_factor(self.eigenvalue, lambda_)
        if self.still:
            inner = self.scheme.omega * math.pi / (2 * self.length)
            most = max(self.eigenvalue, math.hypot(lambda_, inner))
            factor = math.sqrt(most) / math.hypot(most + lambda_, inner)
        bound = self._growth * self.energy(norm) * factor
        return bound / math.sqrt(self.smallest) * (1 + SLACK)

    def H2(self, norm: float) -> float:
        """‖D²v‖ over the slab."""
        return self._growth * self.energy(norm) / self.smallest * (1 + SLACK)

    def at_end(self, norm: float) -> float:
        """N of v at the end of the slab, `norm` over all of it: for v(0) = 0 ν_s 𝓕/√ω with ν_s =
        1/(√2 - s), or 1/√(1 - s²) for s > 1/√2; else N(0)² + 𝓕²/(ω(1 - s²)) bounds its square."""
        s, omega = self.contraction, self.scheme.omega
        growth = math.exp(self.scheme.shift * self.length) * (1 + SLACK)
        plain = math.hypot(self.start, norm / math.sqrt(omega * (1 - s**2)))
        if self.still and s <= math.sqrt(0.5):
            plain = norm / (math.sqrt(2) - s) / math.sqrt(omega)
        return growth * plain * (1 + SLACK)

    def highest(self, norm: float) -> float:
        """N of v at any time of the slab."""
        shift = self.scheme.shift
        return self.at_end(norm) * math.exp(max(-shift, 0.0) * self.length) * (1 + SLACK)

    def L2_at_end(self, norm: float) -> float:
        """‖v‖ at the end of the slab."""
        by_energy = self.at_end(norm) / math.sqrt(self._mass) if self._mass > 0 else math.inf
        if not self.still:
            return by_energy * (1 + SLACK)
        s, omega, mass = self.contraction, self.scheme.omega, self._mass
        rate = 2 * mass / omega
        mean = -math.expm1(-rate * self.length) / rate if rate > 0 else self.length
        factor = math.sqrt(mean) / omega
        eta = math.sqrt((1 + math.exp(-rate * self.length)) / 2)
        bound = factor * norm / (1 - s * eta)
        if eta < s:
            bound = norm / math.sqrt((1 - s**2) * omega * mass)
        growth = math.exp(self.scheme.shift * self.length)
        return min(growth * bound * (1 + 4 * SLACK), by_energy)

    def H1_at_end(self, norm: float) -> float:
        return self.at_end(norm) / math.sqrt(self.smallest) * (1 + SLACK)

    def largest(self, highest: float, width: float) -> float:
        """sup |v| on an interval of this width, from a bound of N."""
        return math.sqrt(largest_green(width, self.scheme.lambda_)) * highest * (1 + SLACK)


def smallest_frequency(omega: float, mass: float, length: float) -> float:
    """The root k of ωk cos kT + m sin kT = 0 in (π/2T, π/T), from below."""
    low, high = math.pi / (2 * length), math.pi / length
    for _ in range(60):
        middle = (low + high) / 2
        value = omega * middle * math.cos(middle * length) + mass * math.sin(middle * length)
        low, high = (middle, high) if value > 0 else (low, middle)
    return max(low * (1 - 1e-10), math.pi / (2 * length) * (1 - SLACK))


def largest_green(width: float, lambda_: float) -> float:
    """The largest value of Green's function of -∂² + λ on an interval: in the middle."""
    root = math.sqrt(lambda_)
    if root * width < 1e-6:
        return width / 4
    return min(math.tanh(root * width / 2) / (2 * root), width / 4)
