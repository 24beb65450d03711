"""Comparison for obstacles (O1): max(F[u], ψ - u) = 0, u = g ≥ ψ on the (parabolic) boundary.

With ϱ = F[w], δ = sup (ψ - w)⁺, e_b = sup |g - w| on the boundary and any η ≥ 0, in time for c ≥
c₀,

    u - w ≤ max(δ, e_b) + ∫₀ᵗ e^{-c₀(t-τ)} sup_x ϱ⁺ dτ,
    w - u ≤ max(η, e_b) + ∫₀ᵗ e^{-c₀(t-τ)} sup_{x: w > ψ+η} ϱ⁻ dτ,

and without time for c ≥ c₀ > 0

    u - w ≤ max(δ, e_b, sup ϱ⁺/c₀),   w - u ≤ κ for every κ ≥ max(e_b, sup_{w > ψ+κ} ϱ⁻/c₀),

for c ≥ 0 and b = 0 max(δ, e_b) + (R²/2) sup (ϱ⁺/min_a tr A^a), and likewise below. Proof: w + κ is
a supersolution if w + κ ≥ ψ and F[w + κ] ≤ 0, and F[w + κ] ≤ F[w] - c₀κ; w - κ is a subsolution if
F[w - κ] ≥ 0 where w - κ > ψ. Nothing else is used, so that it holds for control problems and games
too. (For c₀ < 0 in time: transform by e^{-c₀t}, which also scales ψ, δ and η.)

η is free: where stopping is best F[ψ] < 0 is of order one, and an answer that lies a hair above ψ
there would cost that much with η = 0. No energy bound exists for obstacles.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.certificates.theorems.comparison import Comparison, ProfileInTime, course

SLACK = 1e-12
# Values of η that are tried, between rounding and the largest w - ψ.
TRIED = 60
# Without an obstacle.
FAR = 1e299


class ComparisonSide(NamedTuple):
    """One side of the error at points: bounds of the residual that counts there, how far the answer
    is from the obstacle at which it does not count, infinite without one, and the largest of how
    far the answer is beyond the other obstacle and of the mismatch on the boundary."""

    residual: np.ndarray
    distance: np.ndarray
    floor: float

    def best(self, bound: Callable[[float, np.ndarray], float]) -> tuple[float, float]:
        """The smallest bound(max(η, floor), residual where the distance is more than η) and its
        η."""
        finite = self.distance[(self.distance > 0) & (self.distance < FAR)]
        levels = np.zeros(1)
        if len(finite):
            most = float(np.max(finite))
            levels = np.append(0.0, np.geomspace(1e-16 * most, most, TRIED))
        found = [
            bound(max(eta, self.floor), np.where(self.distance > eta, self.residual, 0.0))
            for eta in levels.tolist()
        ]
        chosen = int(np.argmin(found))
        return found[chosen] * (1 + SLACK), float(levels[chosen])


class Stopped(NamedTuple):
    """Bounds of u - w and of w - u, and the η behind each."""

    bounds: Comparison
    eta: tuple[float, float]


def _both(
    above: ComparisonSide, below: ComparisonSide, bound: Callable[[float, np.ndarray], float]
) -> Stopped:
    (high, one), (low, other) = above.best(bound), below.best(bound)
    return Stopped(Comparison(high, low), (one, other))


def in_time(
    above: ComparisonSide, below: ComparisonSide, time: np.ndarray, edges: np.ndarray, rate: float
) -> Stopped:
    """Over all times, from suprema over the stretches between `edges`."""
    growth = float(np.exp(max(-rate, 0.0) * (edges[-1] - edges[0])))
    place = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)

    def bound(first: float, residual: np.ndarray) -> float:
        suprema = np.zeros(len(edges) - 1)
        np.maximum.at(suprema, place, residual)
        profile = ProfileInTime(edges, suprema, suprema)
        return growth * first + course(profile, rate, Comparison(0.0, 0.0)).largest

    return _both(above, below, bound)


def with_reaction(above: ComparisonSide, below: ComparisonSide, rate: float) -> Stopped:
    """Without time, c ≥ `rate` > 0."""
    return _both(above, below, lambda first, residual: max(first, float(np.max(residual)) / rate))


def with_barrier(
    above: ComparisonSide, below: ComparisonSide, trace: np.ndarray, radius: float
) -> Stopped:
    """Without time, c ≥ 0 and b = 0: `trace` is the smallest tr A^a at each point."""
    return _both(
        above,
        below,
        lambda first, residual: first + radius**2 / 2 * float(np.max(residual / trace)),
    )
