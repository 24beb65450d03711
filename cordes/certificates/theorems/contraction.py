"""The contraction of a scheme: a supremum over the whole domain, with the way in which it is known.

`analytic`: the coefficients are constant, or the user vouches for ε. `interval`: interval
arithmetic on the user's formulas, refined by branch and bound, covers the domain; this also finds
violations that hide between sampled points. `sampled`: the largest value at points, where neither
is possible.
"""

import math
from collections.abc import Callable
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
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose, supremum

# A supremum is known well enough when it is this close to a value that is attained, relative to the
# distance from one.
TOLERANCE = 0.02
SIGN_BUDGET = 8000
BUDGETS = {1: 4000, 2: 12_000, 3: 12_000}
# Beyond this dimension no number of cells covers a domain, and suprema are sampled.
LARGEST_COVERED = 12
SLACK = 1e-12
# Stands for infinity in radii: products with zero stay zero.
UNBOUNDED = 1e150


class Contraction(NamedTuple):
    """An upper bound of the contraction, how it is known, and the point where it is (nearly)
    attained."""

    value: float
    source: str
    point: np.ndarray


class Ball(NamedTuple):
    """Coefficients in a cell: |A - middle.A| ≤ radius.A entry by entry, and so on."""

    middle: Local
    radius: Local

    def whitened(self, matrix: np.ndarray) -> "Ball":
        root = inverse_root(matrix)
        size = np.abs(root)
        return Ball(
            self.middle.whitened(matrix),
            Local(size @ self.radius.A @ size, self.radius.b @ size, self.radius.c),
        )

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


def _trace_split_bound(ball: Ball) -> np.ndarray:
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
    total = (
        d
        * (
            np.sum((np.abs(ball.middle.A) + ball.radius.A) ** 2, axis=(1, 2))
            - np.sum((np.abs(diagonal) + radius) ** 2, axis=1)
        )
        / safe**2
    )
    monotone = low > 0
    for i in range(d):
        for k in range(i):
            rest = [np.sum(np.delete(side, [i, k], axis=1), axis=1) for side in (lower, upper)]
            monotone &= (2 * lower[:, i] + rest[0] > 0) & (2 * lower[:, k] + rest[0] > 0)
            ends = []
            for first, second in ((i, k), (k, i)):
                gap, both = upper[:, first] - lower[:, second], upper[:, first] + lower[:, second]
                ends.append(
                    np.maximum(gap, 0.0) / np.where(both + rest[0] > 0, both + rest[0], 1.0)
                )
                monotone &= both + rest[0] > 0
            total = total + np.maximum(*ends) ** 2
    sharp = np.sqrt((d - 1) * total)
    return np.where(low > 0, np.where(monotone, np.minimum(plain, sharp), plain), np.inf)


def _weighted_bound(scheme: Weighted, ball: Ball) -> np.ndarray:
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
    ratio = _trace_split_bound(ball) * math.sqrt(d / (d - 1)) if d > 1 else np.zeros(len(trace))
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


def _triangle_bound(scheme: Triangle, ball: Ball, column: int) -> np.ndarray:
    if column == 0:
        return _trace_split_bound(ball)
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


class Coverage:
    """The coefficients of one equation over its whole domain: formulas for intervals, and values at
    sampled points."""

    def __init__(
        self,
        domain: AbstractDomain,
        linearise: Callable | None,
        values: Callable[[np.ndarray], Local] | None,
        points: np.ndarray,
        local: Local,
        constant: bool,
        epsilon: float | None = None,
    ):
        """`linearise` maps one point to (A, b, c), `values` many; both None where nothing but
        samples is known. `epsilon` is a lower bound that the user vouches for, of the case b = c =
        0."""
        self.domain, self.points, self.local, self.values = domain, points, local, values
        self.constant, self.epsilon, self.linearise = constant, epsilon, linearise
        # The searches may bound this share of the usual number of cells: less where a cell means
        # many equations.
        self.share = 1.0
        self._enclosure = None
        self.unsupported = f"{domain.dimension} dimensions are too many for cells"
        if not constant and linearise is not None and domain.dimension <= LARGEST_COVERED:
            try:
                self._enclosure = enclose(linearise)
                self._enclosure(points[:1], points[:1])
            except UnsupportedOperation as error:
                self.unsupported = str(error)
                self._enclosure = None

    def balls(self, lower: np.ndarray, upper: np.ndarray) -> list[Ball]:
        """The coefficients in cells, one entry for each combination of sides of a jump."""
        assert self._enclosure is not None
        return [_ball(*piece[:3]) for piece in self._enclosure(lower, upper)]

    def contraction(
        self, scheme: Scheme, matrix: np.ndarray, tolerance: float = TOLERANCE
    ) -> Contraction:
        """The sum of the suprema of the scheme's defects."""
        defects = scheme.defects(self.local.invariants(matrix))
        where = self.points[int(np.argmax(np.sum(defects, axis=1)))]
        if self.constant:
            return Contraction(
                float(np.sum(np.max(defects, axis=0))) * (1 + SLACK), "analytic", where
            )
        parts = [
            self._column(scheme, matrix, column, defects[:, column], tolerance)
            for column in range(defects.shape[1])
        ]
        order = ("sampled", "interval", "analytic")
        source = min((part.source for part in parts), key=order.index)
        return Contraction(
            sum(part.value for part in parts), source, max(parts, key=lambda part: part.value).point
        )

    def _column(
        self, scheme: Scheme, matrix: np.ndarray, column: int, values: np.ndarray, tolerance: float
    ) -> Contraction:
        worst = int(np.argmax(values))
        attained, point = float(values[worst]), self.points[worst]
        d = self.domain.dimension
        if (
            isinstance(scheme, TraceSplit)
            and self.epsilon is not None
            and np.array_equal(matrix, np.eye(d))
        ):
            claimed = math.sqrt((d - 1) * (1 - self.epsilon) / (d - 1 + self.epsilon))
            return Contraction(max(claimed, attained), "analytic", point)
        if self._enclosure is None or not np.isfinite(attained):
            return Contraction(attained, "sampled", point)

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):
                # What overflows is unbounded, and NaN counts as infinity.
                return np.max(
                    [
                        self._bound(scheme, ball.whitened(matrix), column)
                        for ball in self.balls(lower, upper)
                    ],
                    axis=0,
                ) * (1 + SLACK)

        evaluate = self._worst(lambda local: scheme.defects(local.invariants(matrix))[:, column])
        found = supremum(
            bound,
            evaluate,
            self.domain,
            attained,
            point,
            tolerance * max(1 - attained, 0.05),
            int(self.share * BUDGETS.get(d, 4000)),
        )
        if found.decided or 1 - found.upper >= 0.5 * (1 - found.attained) > 0:
            return Contraction(found.upper, "interval", found.point)
        return Contraction(found.attained, "sampled", found.point)

    def _worst(self, quantity: Callable[[Local], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """The quantity at points; where `values` gives several equations at each point, one after
        the other, the largest of theirs."""
        values = self.values
        assert values is not None
        return lambda points: np.max(quantity(values(points)).reshape(-1, len(points)), axis=0)

    @staticmethod
    def _bound(scheme: Any, ball: Ball, column: int) -> np.ndarray:
        if hasattr(scheme, "cell_bound"):
            return scheme.cell_bound(ball, column)
        if isinstance(scheme, Weighted):
            return _weighted_bound(scheme, ball)
        if isinstance(scheme, Triangle):
            return _triangle_bound(scheme, ball, column)
        return _trace_split_bound(ball)

    def largest_multiplier(self, matrix: np.ndarray) -> Contraction:
        """The supremum of d/tr A with M, the multiplier of T1b and of the triangle inequality."""
        at = self.local.invariants(matrix)
        worst = int(np.argmin(at.trace))
        attained, point = at.dimension / float(at.trace[worst]), self.points[worst]
        if self.constant:
            return Contraction(attained * (1 + SLACK), "analytic", point)
        if self._enclosure is None:
            return Contraction(attained, "sampled", point)

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            traces = [ball.whitened(matrix).traces for ball in self.balls(lower, upper)]
            low = np.min([middle - reach for middle, reach in traces], axis=0)
            return np.where(low > 0, at.dimension / np.where(low > 0, low, 1.0), np.inf) * (
                1 + SLACK
            )

        evaluate = self._worst(lambda local: at.dimension / local.invariants(matrix).trace)
        found = supremum(
            bound, evaluate, self.domain, attained, point, 0.05 * attained, int(self.share * 4000)
        )
        return (
            Contraction(found.upper, "interval", found.point)
            if np.isfinite(found.upper)
            else Contraction(found.attained, "sampled", found.point)
        )

    def bounded_drift(self) -> bool:
        """Whether b is bounded over the whole domain, as the maximum principle needs; taken for
        granted where the formulas have no enclosure."""
        if self.constant or self._enclosure is None:
            return True

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            return np.max([ball.largest_drift for ball in self.balls(lower, upper)], axis=0)

        sizes = np.linalg.norm(self.local.b, axis=1)
        worst = int(np.argmax(sizes))
        evaluate = self._worst(lambda local: np.linalg.norm(local.b, axis=1))
        found = supremum(
            bound,
            evaluate,
            self.domain,
            sizes[worst],
            self.points[worst],
            sizes[worst] + 1e-300,
            int(self.share * SIGN_BUDGET),
        )
        return found.upper < math.sqrt(UNBOUNDED)

    def degenerate_point(self) -> np.ndarray | None:
        """A point where A is not positive definite, looked for over the whole domain; None where
        there is none, or none was found."""
        eigenvalues = np.linalg.eigvalsh(self.local.A)[:, 0]
        worst = int(np.argmin(eigenvalues))
        smallest, point = float(eigenvalues[worst]), self.points[worst]
        if smallest <= 0 or self.constant or self._enclosure is None:
            return point if smallest <= 0 else None

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            """Weyl: eigenvalues move by at most the size of the change."""
            balls = self.balls(lower, upper)
            return np.max(
                [
                    np.linalg.norm(ball.radius.A, axis=(1, 2))
                    - np.linalg.eigvalsh(ball.middle.A)[:, 0]
                    for ball in balls
                ],
                axis=0,
            )

        evaluate = self._worst(lambda local: -np.linalg.eigvalsh(local.A)[:, 0])
        # Started at zero and with no tolerance the search asks for the sign alone.
        found = supremum(
            bound, evaluate, self.domain, 0.0, point, 0.0, int(self.share * SIGN_BUDGET)
        )
        return found.point if found.attained > 0 else None

    def nonnegative_reaction(self) -> tuple[bool, str]:
        """Whether c ≥ 0, and how that is known."""
        smallest = float(np.min(self.local.c))
        if smallest < 0 or self.constant:
            return smallest >= 0, "analytic" if self.constant else "sampled"
        if self._enclosure is None:
            return True, "sampled"

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            return np.max(
                [ball.radius.c - ball.middle.c for ball in self.balls(lower, upper)], axis=0
            )

        where = self.points[int(np.argmin(self.local.c))]
        # Rounding may turn a zero of c into a tiny negative number.
        least = 1e-12 * float(np.max(self.local.c))
        found = supremum(
            bound,
            self._worst(lambda local: -local.c),
            self.domain,
            least,
            where,
            0.0,
            int(self.share * SIGN_BUDGET),
        )
        return (
            found.attained <= least,
            "interval" if found.decided or found.attained > least else "sampled",
        )


def _ball(*intervals: Any) -> Ball:
    """From the intervals of A, b and c in each cell."""
    middle, radius = [], []
    for interval in intervals:
        low, high = np.asarray(interval.lower, float), np.asarray(interval.upper, float)
        finite = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(finite, low, 0.0), np.where(finite, high, 0.0)
        center = low / 2 + high / 2
        middle.append(center)
        radius.append(
            np.where(finite, np.maximum(high - center, center - low) * (1 + SLACK), UNBOUNDED)
        )
    return Ball(Local(*middle), Local(*radius))
