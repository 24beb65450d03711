"""The contraction of a scheme: a supremum over the whole domain, with the way in which it is known.

`analytic`: the coefficients are constant, or the user vouches for ε. `interval`: interval
arithmetic on the user's formulas, refined by branch and bound, covers the domain; this also finds
violations that hide between sampled points. `sampled`: the largest value at points, where neither
is possible.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, final

import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.certificates.theorems.cell_bounds import (
    SLACK,
    UNBOUNDED,
    CoefficientBall,
    ball_of,
    cell_bound,
)
from cordes.certificates.theorems.energy import Local, Scheme, TraceSplit, is_identity
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose, supremum
from cordes.formulas.intervals.program import Enclosure
from cordes.formulas.intervals.suprema import Supremum
from cordes.runtime.plain import show

# A supremum is known well enough when it is this close to a value that is attained, relative to the
# distance from one.
TOLERANCE = 0.02
SIGN_BUDGET = 8000
# Ways to know a supremum, the weakest first.
SOURCES = ("sampled", "interval", "analytic")
BUDGETS = {1: 4000, 2: 12_000, 3: 12_000}
# Beyond this dimension no number of cells covers a domain, and suprema are sampled.
LARGEST_COVERED = 12


class Contraction(NamedTuple):
    """An upper bound of the contraction, how it is known, and the point where it is (nearly)
    attained."""

    value: float
    source: str
    point: np.ndarray


class AbstractCoverage:
    """The coefficients of one equation, or of several at each point, over the whole domain:
    formulas for intervals, and values at sampled points."""

    # What is said of several equations: for which of them.
    always = ""

    def __init__(
        self,
        domain: AbstractDomain,
        linearise: Callable | Sequence[Callable] | None,
        values: Callable[[np.ndarray], Local] | None,
        points: np.ndarray,
        local: Local,
        constant: bool,
        epsilon: float | None = None,
    ):
        """`linearise` maps one point to (A, b, c), one function or one for each equation, `values`
        many; both None where nothing but samples is known. `epsilon` is a lower bound that the user
        vouches for, of the case b = c = 0."""
        self.domain, self.points, self.local, self.values = domain, points, local, values
        self.constant, self.epsilon = constant, epsilon
        # The searches may bound this share of the usual number of cells: less where a cell means
        # many equations.
        self.share = 1.0
        self._enclosures: list[Enclosure] = []
        if not constant and domain.dimension <= LARGEST_COVERED:
            functions = [linearise] if callable(linearise) else linearise or ()
            try:
                self._enclosures = [enclose(function) for function in functions]
                for enclosure in self._enclosures:
                    enclosure(points[:1], points[:1])
            except UnsupportedOperation:
                self._enclosures = []

    @property
    def enclosed(self) -> bool:
        """Whether intervals of the coefficients are known."""
        return bool(self._enclosures)

    def balls(self, lower: np.ndarray, upper: np.ndarray) -> list[CoefficientBall]:
        """The coefficients in cells, one entry for each equation and combination of sides of a
        jump: a cell is as bad as the worst of them."""
        pieces = itertools.chain(*(each(lower, upper) for each in self._enclosures))
        return [ball_of(*piece[:3]) for piece in pieces]

    def seen_elsewhere(self, found: Contraction, scheme: Scheme, matrix: np.ndarray) -> Contraction:
        """A contraction that is known at points only, with what other points show of it."""
        return found

    def drift_bounded_without_cells(self) -> bool:
        """Whether b is taken to be bounded where the formulas have no enclosure."""
        return True

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
            total = float(np.sum(np.max(defects, axis=0)))
            return Contraction(total * (1 + SLACK), "analytic", where)
        parts = [
            self._column(scheme, matrix, column, defects[:, column], tolerance)
            for column in range(defects.shape[1])
        ]
        source = min((part.source for part in parts), key=SOURCES.index)
        largest = max(parts, key=lambda part: part.value)
        return Contraction(sum(part.value for part in parts), source, largest.point)

    def _column(
        self, scheme: Scheme, matrix: np.ndarray, column: int, values: np.ndarray, tolerance: float
    ) -> Contraction:
        worst = int(np.argmax(values))
        attained, point = float(values[worst]), self.points[worst]
        d = self.domain.dimension
        plain = isinstance(scheme, TraceSplit) and is_identity(matrix)
        if plain and self.epsilon is not None:
            claimed = math.sqrt((d - 1) * (1 - self.epsilon) / (d - 1 + self.epsilon))
            return Contraction(max(claimed, attained), "analytic", point)
        if not self._enclosures or not np.isfinite(attained):
            return Contraction(attained, "sampled", point)

        found = self._supremum(
            lambda ball: cell_bound(scheme, ball.whitened(matrix), column) * (1 + SLACK),
            lambda local: scheme.defects(local.invariants(matrix))[:, column],
            (attained, point),
            tolerance * max(1 - attained, 0.05),
            BUDGETS.get(d, 4000),
        )
        if found.decided or 1 - found.upper >= 0.5 * (1 - found.attained) > 0:
            return Contraction(found.upper, "interval", found.point)
        return Contraction(found.attained, "sampled", found.point)

    def _supremum(
        self,
        of_ball: Callable[[CoefficientBall], np.ndarray],
        of_local: Callable[[Local], np.ndarray],
        attained: tuple[float, np.ndarray],
        tolerance: float,
        budget: int,
    ) -> Supremum:
        """The supremum of `of_local`, which `of_ball` bounds in each cell; it is `attained` at a
        point. Where `values` gives several equations at each point, one after the other, the
        largest of theirs counts."""
        values = self.values
        assert values is not None

        def bound(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore", invalid="ignore"):
                # What overflows is unbounded, and NaN counts as infinity.
                return np.max([of_ball(ball) for ball in self.balls(lower, upper)], axis=0)

        def largest(points: np.ndarray) -> np.ndarray:
            return np.max(of_local(values(points)).reshape(-1, len(points)), axis=0)

        return supremum(bound, largest, self.domain, *attained, tolerance, int(self.share * budget))

    def largest_multiplier(self, matrix: np.ndarray) -> Contraction:
        """The supremum of d/tr A with M, the multiplier of T1b and of the triangle inequality."""
        d, trace, *_ = self.local.invariants(matrix)
        worst = int(np.argmin(trace))
        attained, point = d / float(trace[worst]), self.points[worst]
        if self.constant:
            return Contraction(attained * (1 + SLACK), "analytic", point)
        if not self._enclosures:
            return Contraction(attained, "sampled", point)

        def bound(ball: CoefficientBall) -> np.ndarray:
            middle, reach = ball.whitened(matrix).traces
            low = middle - reach
            return np.where(low > 0, d / np.where(low > 0, low, 1.0), np.inf) * (1 + SLACK)

        found = self._supremum(
            bound,
            lambda local: d / local.invariants(matrix).trace,
            (attained, point),
            0.05 * attained,
            4000,
        )
        if np.isfinite(found.upper):
            return Contraction(found.upper, "interval", found.point)
        return Contraction(found.attained, "sampled", found.point)

    def largest_trace(self, matrix: np.ndarray) -> Contraction:
        """The supremum of tr A with M."""
        trace = self.local.invariants(matrix).trace
        worst = int(np.argmax(trace))
        attained, point = float(trace[worst]), self.points[worst]
        if self.constant:
            return Contraction(attained * (1 + SLACK), "analytic", point)
        if not self._enclosures:
            return Contraction(attained, "sampled", point)

        def bound(ball: CoefficientBall) -> np.ndarray:
            return np.sum(ball.whitened(matrix).traces, axis=0) * (1 + SLACK)

        def at(local: Local) -> np.ndarray:
            return local.invariants(matrix).trace

        found = self._supremum(bound, at, (attained, point), 0.05 * attained, 4000)
        return Contraction(found.upper, "interval", found.point)

    def bounded_drift(self) -> bool:
        """Whether b is bounded over the whole domain, as the maximum principle needs."""
        if self.constant:
            return True
        if not self._enclosures:
            return self.drift_bounded_without_cells()
        sizes = np.linalg.norm(self.local.b, axis=1)
        worst = int(np.argmax(sizes))
        found = self._supremum(
            lambda ball: ball.largest_drift,
            lambda local: np.linalg.norm(local.b, axis=1),
            (sizes[worst], self.points[worst]),
            sizes[worst] + 1e-300,
            SIGN_BUDGET,
        )
        return found.upper < math.sqrt(UNBOUNDED)

    def degenerate_point(self) -> np.ndarray | None:
        """A point where A is not positive definite, looked for over the whole domain; None where
        there is none, or none was found."""
        eigenvalues = np.linalg.eigvalsh(self.local.A)[:, 0]
        worst = int(np.argmin(eigenvalues))
        smallest, point = float(eigenvalues[worst]), self.points[worst]
        if smallest <= 0 or self.constant or not self._enclosures:
            return point if smallest <= 0 else None

        def minus_smallest(local: Local) -> np.ndarray:
            return -np.linalg.eigvalsh(local.A)[:, 0]

        # Weyl: eigenvalues move by at most the size of the change. Started at zero and with no
        # tolerance the search asks for the sign alone.
        found = self._supremum(
            lambda ball: np.linalg.norm(ball.radius.A, axis=(1, 2)) + minus_smallest(ball.middle),
            minus_smallest,
            (0.0, point),
            0.0,
            SIGN_BUDGET,
        )
        return found.point if found.attained > 0 else None

    def not_elliptic(self) -> Reason | None:
        """Why no theorem applies: A degenerates somewhere."""
        point = self.degenerate_point()
        if point is None:
            return None
        sentence = f"A is not positive definite{self.always} near x = {show(point)}"
        sentence += ": the equation is not elliptic there"
        return Reason(Why.not_elliptic, sentence, {"point": point})

    def positive_reaction(self) -> bool:
        """Whether c ≥ c₀ > 0 over the whole domain; by the points where nothing else is known."""
        worst = int(np.argmin(self.local.c))
        smallest = float(self.local.c[worst])
        if smallest <= 0 or self.constant or not self._enclosures:
            return smallest > 0
        found = self._supremum(
            lambda ball: ball.radius.c - ball.middle.c,
            lambda local: -local.c,
            (-smallest, self.points[worst]),
            0.5 * smallest,
            SIGN_BUDGET,
        )
        return found.upper < 0

    def nonnegative_reaction(self) -> tuple[bool, str]:
        """Whether c ≥ 0, and how that is known."""
        smallest = float(np.min(self.local.c))
        if smallest < 0 or self.constant:
            return smallest >= 0, "analytic" if self.constant else "sampled"
        if not self._enclosures:
            return True, "sampled"
        # Rounding may turn a zero of c into a tiny negative number.
        least = 1e-12 * float(np.max(self.local.c))
        found = self._supremum(
            lambda ball: ball.radius.c - ball.middle.c,
            lambda local: -local.c,
            (least, self.points[int(np.argmin(self.local.c))]),
            0.0,
            SIGN_BUDGET,
        )
        decided = found.decided or found.attained > least
        return found.attained <= least, "interval" if decided else "sampled"


@final
class Coverage(AbstractCoverage):
    """One equation. Where its formulas have no enclosure a bounded drift is taken for granted."""
