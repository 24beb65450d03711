"""How large the defects of a scheme can be in cells of a domain, from intervals of the
coefficients."""

import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.theorems.energy import (
    Local,
    Scheme,
    TraceSplit,
    Triangle,
    Weighted,
    gradient_factor,
    inverse_root,
)

SLACK = 1e-12
# Stands for infinity in radii: products with zero stay zero.
UNBOUNDED = 1e150


class CoefficientBall(NamedTuple):
    """Coefficients in a cell: |A - middle.A| ≤ radius.A entry by entry, and so on."""

    middle: Local
    radius: Local

    def whitened(self, matrix: np.ndarray) -> "CoefficientBall":
        size = np.abs(inverse_root(matrix))
        radius = Local(size @ self.radius.A @ size, self.radius.b @ size, self.radius.c)
        return CoefficientBall(self.middle.whitened(matrix), radius)

    @property
    def traces(self) -> tuple[np.ndarray, np.ndarray]:
        """Middle and radius of tr A."""
        return np.einsum("nii->n", self.middle.A), np.einsum("nii->n", self.radius.A)

    @property
    def largest_deviation(self) -> np.ndarray:
        """|A₀| at most. The diagonal of A₀ is (1 - 1/d) a_ii less the mean share of the others, a
        linear map whose radii add up."""
        d = self.middle.A.shape[-1]
        (trace, reach), diagonal = self.traces, np.einsum("nii->ni", self.radius.A)
        radius = self.radius.A.copy()
        index = np.arange(d)
        radius[:, index, index] = (1 - 1 / d) * diagonal + (reach[:, None] - diagonal) / d
        middle = self.middle.A - trace[:, None, None] / d * np.eye(d)
        return np.sqrt(np.sum((np.abs(middle) + radius) ** 2, axis=(1, 2)))

    @property
    def largest_drift(self) -> np.ndarray:
        return np.linalg.norm(np.abs(self.middle.b) + self.radius.b, axis=1)


@functools.singledispatch
def cell_bound(scheme: Scheme, ball: CoefficientBall, column: int) -> np.ndarray:
    """At least the largest of one column of the defects in each cell."""
    raise NotImplementedError(f"{type(scheme).__name__} has no bound in cells.")


@cell_bound.register
def _trace_split_cells(scheme: TraceSplit, ball: CoefficientBall, column: int = 0) -> np.ndarray:
    """ρ' at most: the smaller of two bounds.

    The plain one is the largest |A₀| over the smallest trace. The other writes ρ'² = (d-1) (Σ_{i<k}
    ((a_ii - a_kk)/t)² + d Σ_{i≠j} (a_ij/t)²), where (p - q)/(p + q + rest) grows with p and falls
    with q as long as the sums are positive: at the ends of the intervals it is exact.
    """
    d = ball.middle.A.shape[-1]
    trace, reach = ball.traces
    low = trace - reach
    safe = np.where(low > 0, low, 1.0)
    plain = math.sqrt(d * (d - 1)) * ball.largest_deviation / safe
    diagonal, radius = np.einsum("nii->ni", ball.middle.A), np.einsum("nii->ni", ball.radius.A)
    lower, upper = diagonal - radius, diagonal + radius
    squares = np.sum((np.abs(ball.middle.A) + ball.radius.A) ** 2, axis=(1, 2))
    total = d * (squares - np.sum((np.abs(diagonal) + radius) ** 2, axis=1)) / safe**2
    monotone = low > 0
    for i, k in itertools.combinations(range(d), 2):
        rest = np.sum(np.delete(lower, [i, k], axis=1), axis=1)
        monotone &= (2 * lower[:, i] + rest > 0) & (2 * lower[:, k] + rest > 0)
        ends = []
        for first, second in ((i, k), (k, i)):
            gap, whole = (
                upper[:, first] - lower[:, second],
                upper[:, first] + lower[:, second] + rest,
            )
            ends.append(np.maximum(gap, 0.0) / np.where(whole > 0, whole, 1.0))
            monotone &= whole > 0
        total = total + np.maximum(*ends) ** 2
    sharp = np.sqrt((d - 1) * total)
    return np.where(low > 0, np.where(monotone, np.minimum(plain, sharp), plain), np.inf)


@cell_bound.register
def _weighted_cells(scheme: Weighted, ball: CoefficientBall, column: int) -> np.ndarray:
    """√Q with a multiplier that is not optimal but easy to follow through a cell: any multiplier
    gives a bound.

    g = θ d/tr A with one θ for the cell makes the first term of Q constant, g = θ λ/c the last one.
    The better of the two is taken, θ from the middle.
    """
    d = ball.middle.A.shape[-1]
    over, (trace, reach) = scheme.inverse_weights(), ball.traces
    best = scheme.multiplier(ball.middle.invariants())
    t_low, t_high = (trace - reach) / d, (trace + reach) / d
    deviation, drift = ball.largest_deviation, ball.largest_drift
    c_low, c_high = ball.middle.c - ball.radius.c, ball.middle.c + ball.radius.c
    positive = np.maximum(t_low, 1e-300)
    theta = best * trace / d
    reaction = np.maximum(
        theta * np.maximum(c_high / positive, c_high / t_high) - scheme.lambda_,
        scheme.lambda_ - theta * np.minimum(c_low / positive, c_low / t_high),
    )
    # |A₀|/(t/d) = ρ' √(d/(d-1)), for which there is a sharper bound than the quotient of bounds.
    split = _trace_split_cells(TraceSplit(), ball)
    ratio = split * math.sqrt(d / (d - 1)) if d > 1 else np.zeros(len(trace))
    inner = theta**2 * (ratio**2 * over[1] + (drift / positive) ** 2 * over[2])
    by_trace = (theta - 1) ** 2 * over[0] + inner + np.maximum(reaction, 0.0) ** 2 * over[3]
    square = np.where(t_low > 0, by_trace, np.inf)
    if scheme.lambda_ > 0 and np.any(c_low > 0):
        safe, theta = np.where(c_low > 0, c_low, 1.0), best * ball.middle.c / scheme.lambda_
        g = theta * scheme.lambda_ / safe
        first = np.maximum(g * t_high - 1, 1 - theta * scheme.lambda_ * t_low / c_high)
        by_reaction = (
            np.maximum(first, 0.0) ** 2 * over[0]
            + g**2 * (deviation**2 * over[1] + drift**2 * over[2])
            + ((theta - 1) * scheme.lambda_) ** 2 * over[3]
        )
        square = np.minimum(square, np.where((c_low > 0) & (t_low > 0), by_reaction, np.inf))
    return np.sqrt(square)


@cell_bound.register
def _triangle_cells(scheme: Triangle, ball: CoefficientBall, column: int) -> np.ndarray:
    if column == 0:
        return _trace_split_cells(TraceSplit(), ball)
    d, (trace, reach) = ball.middle.A.shape[-1], ball.traces
    low, high = trace - reach, trace + reach
    safe = np.where(low > 0, low, 1.0)
    if column == 1:
        bound = gradient_factor(scheme.eigenvalue, scheme.lambda_) * d * ball.largest_drift / safe
    else:
        c_low, c_high = ball.middle.c - ball.radius.c, ball.middle.c + ball.radius.c
        largest = np.maximum(d * c_high / safe, d * c_high / high) - scheme.lambda_
        smallest = np.minimum(d * c_low / safe, d * c_low / high) - scheme.lambda_
        bound = np.maximum(np.abs(largest), np.abs(smallest)) / (scheme.eigenvalue + scheme.lambda_)
    return np.where(low > 0, bound, np.inf)


def ball_of(*intervals: Any) -> CoefficientBall:
    """From the intervals of A, b and c in each cell."""
    middle, radius = [], []
    for interval in intervals:
        low, high = np.asarray(interval.lower, float), np.asarray(interval.upper, float)
        finite = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(finite, low, 0.0), np.where(finite, high, 0.0)
        center = low / 2 + high / 2
        reach = np.maximum(high - center, center - low) * (1 + SLACK)
        middle.append(center)
        radius.append(np.where(finite, reach, UNBOUNDED))
    return CoefficientBall(Local(*middle), Local(*radius))
