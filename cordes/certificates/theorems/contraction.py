"""The contraction of a scheme: a supremum over the whole domain, with the way in which it is known.

`analytic`: the coefficients are constant, or the user vouches for ε. `interval`: interval
arithmetic on the user's formulas, refined by branch and bound, covers the domain; this also finds
violations that hide between sampled points. `sampled`: the largest value at points, where neither
is possible.
"""

import abc
import math
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.theorems.cell_bounds import (
    SLACK,
    UNBOUNDED,
    CoefficientBall,
    ball_of,
    cell_bound,
)
from cordes.certificates.theorems.energy import Local, Scheme, TraceSplit
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose, supremum

# A supremum is known well enough when it is this close to a value that is attained, relative to the
# distance from one.
TOLERANCE = 0.02
SIGN_BUDGET = 8000
BUDGETS = {1: 4000, 2: 12_000, 3: 12_000}
# Beyond this dimension no number of cells covers a domain, and suprema are sampled.
LARGEST_COVERED = 12


class Contraction(NamedTuple):
    """An upper bound of the contraction, how it is known, and the point where it is (nearly)
    attained."""

    value: float
    source: str
    point: np.ndarray


class AbstractCoverage(abc.ABC):
    """The coefficients of one equation, or of several at each point, over the whole domain:
    formulas for intervals, and values at sampled points."""

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

    def balls(self, lower: np.ndarray, upper: np.ndarray) -> list[CoefficientBall]:
        """The coefficients in cells, one entry for each combination of sides of a jump."""
        assert self._enclosure is not None
        return [ball_of(*piece[:3]) for piece in self._enclosure(lower, upper)]

    @abc.abstractmethod
    def seen_elsewhere(self, found: Contraction, scheme: Scheme, matrix: np.ndarray) -> Contraction:
        """A contraction that is known at points only, with what other points show of it."""

    @abc.abstractmethod
    def drift_bounded_without_cells(self) -> bool:
        """Whether b is taken to be bounded where the formulas have no enclosure."""

    def contraction(
        self, scheme: Scheme, matrix: np.ndarray, tolerance: float = TOLERANCE
    ) -> Contraction:
        """The sum of the suprema of the scheme's defects."""
        found = self.over_domain(scheme, matrix, tolerance)
        return found if found.source != "sampled" else self.seen_elsewhere(found, scheme, matrix)

    def over_domain(
        self, scheme: Scheme, matrix: np.ndarray, tolerance: float = TOLERANCE
    ) -> Contraction:
        """The same by the formulas and by the points of the coverage alone."""
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
                        cell_bound(scheme, ball.whitened(matrix), column)
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
        """Whether b is bounded over the whole domain, as the maximum principle needs."""
        if self.constant:
            return True
        if self._enclosure is None:
            return self.drift_bounded_without_cells()

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


@final
class Coverage(AbstractCoverage):
    """One equation. Where its formulas have no enclosure a bounded drift is taken for granted."""

    def seen_elsewhere(self, found: Contraction, scheme: Scheme, matrix: np.ndarray) -> Contraction:
        return found

    def drift_bounded_without_cells(self) -> bool:
        return True
