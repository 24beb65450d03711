"""Bounds of the largest error of an equation in time: by comparison with a function of time alone
(M1), and by the maximum principle of Krylov and Tso with its best constant (KT).

With ϱ = F[w] = sup_a (L^a w - f^a) - w_t, R^±(τ) = sup_x ϱ^±(x, τ) and c ≥ c₀, any real number, M1
says

    -(K(t) + ∫₀ᵗ e^{-c₀(t-τ)} R⁻ dτ)  ≤  u - w  ≤  K(t) + ∫₀ᵗ e^{-c₀(t-τ)} R⁺ dτ,

K(t) the largest of e^{-c₀t} sup|u - w|(0) and e^{-c₀(t-τ)} sup_∂Ω |g - w|(τ), τ ≤ t: w plus the
right-hand side is a supersolution. It needs no convexity, no Cordès condition and no ellipticity,
but one of these, and a certificate says which one it rests on:

  V  u is the continuous viscosity solution, the coefficients are continuous, and w is C² but for
     interfaces, across which it is C¹;
  S  u is a strong solution, u_t and D²u in L^{d+1}: in one dimension, where TP holds;
  C  d ≥ 2, and TP holds; then for almost every x.

KT: for c ≥ 0 and ϱ in L^{d+1}, in classes S and C,

    sup (u - w) ≤ K + (d+1)^{-d/(d+1)} |(Ω-x₀)°|^{-1/(d+1)} ‖ϱ⁺/min_a det(A^a)^{1/(d+1)}‖,

and with det A of the control that is best for w and ϱ⁻ for sup (w - u). Proof: all planes h + p·(y
- x₀) with 0 < h < M and -p in h(Ω - x₀)° touch v from above, the volume of these (p, h) is
|(Ω-x₀)°|M^{d+1}/(d+1), the Jacobian is v_t det(-D²v), and the inequality of the means does the
rest.
"""

from typing import Any, NamedTuple

import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.domains.polar import largest_polar_factor

SLACK = 1e-12


class ProfileInTime(NamedTuple):
    """R⁺ and R⁻ between times: `times` (n + 1,) since the start, bounds (n,) on each stretch."""

    times: np.ndarray
    above: np.ndarray
    below: np.ndarray

    @property
    def largest(self) -> float:
        return max(float(np.max(self.above)), float(np.max(self.below)))


class Comparison(NamedTuple):
    """u - w lies between -`below` and `above`: numbers, or arrays over times."""

    above: Any
    below: Any

    @property
    def largest(self) -> Any:
        return np.maximum(self.above, self.below)

    def plus(self, more: float) -> "Comparison":
        return Comparison(self.above + more, self.below + more)


class CourseInTime(NamedTuple):
    """M1 from the first time of a profile on: what it says at the times of the profile. Between two
    of them the bound is monotone, since R does not change there."""

    profile: ProfileInTime
    rate: float
    at_times: Comparison

    @property
    def end(self) -> Comparison:
        return Comparison(float(self.at_times.above[-1]), float(self.at_times.below[-1]))

    @property
    def largest(self) -> float:
        return float(np.max(self.at_times.largest))

    def at(self, t: float) -> Comparison:
        """At a time between the first and the last."""
        times = self.profile.times
        k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2))
        decay, weight = step_of(self.rate, max(t - times[k], 0.0))
        sides = zip(self.at_times, (self.profile.above, self.profile.below), strict=True)
        return Comparison(*(float(decay * z[k] + weight * r[k]) * (1 + SLACK) for z, r in sides))


def step_of(rate: float, length: Any) -> tuple[Any, Any]:
    """e^{-c₀h} and ∫₀ʰ e^{-c₀s} ds, rounded up."""
    decay = np.exp(-rate * length)
    weight = length if rate == 0 else -np.expm1(-rate * length) / rate
    return decay * (1 + SLACK), weight * (1 + SLACK)


def course(profile: ProfileInTime, rate: float, initial: Comparison) -> CourseInTime:
    """M1 from what is known of u - w at the first time."""
    decay, weight = step_of(rate, np.diff(profile.times))
    sides = []
    for first, bounds in zip(initial, (profile.above, profile.below), strict=True):
        found = [float(first)]
        for shrink, gain, bound in zip(decay, weight, bounds, strict=True):
            found.append(float(shrink * found[-1] + gain * bound))
        sides.append(np.array(found))
    return CourseInTime(profile, rate, Comparison(*sides))


def krylov_tso_constant(domain: AbstractDomain) -> float:
    """(d+1)^{-d/(d+1)} |(Ω-x₀)°|^{-1/(d+1)} at the worst x₀: with the polar factor p = 1/(d
    |(Ω-x₀)°|^{1/d}) of an elliptic equation it is (d p/(d + 1))^{d/(d+1)}."""
    d = domain.dimension
    factor = d * largest_polar_factor(domain) / (d + 1)
    return factor ** (d / (d + 1)) * (1 + SLACK)
