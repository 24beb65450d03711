"""From a problem to rows: the part of a solve that every method shares."""

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.ansatz import Ansatz, Rows
from cordes.ansatz.points import Points, collocation_points
from cordes.ansatz.singular import SingularFunctions, SingularPoint, curves, find_singular_points
from cordes.domains.boundary_fit import Fit
from cordes.jet import Jet
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem, Coefficients
from cordes.runtime import distribution
from cordes.solvers.answer import Answer

# Generic powers of |φ| for solutions that are rougher at an interface than a jump of D²u; chosen
# once, without looking at any exact solution.
POWERS = (2.25, 2.5, 3.0, 3.5)
# Largest exponent and angular degree of the singular functions, by richness.
RICHNESS = ((4.0, 5), (5.0, 6), (6.0, 8))
AFFORDABLE = 300
FRESH = 2048


class System:
    """A problem, its ansatz and the choice of the multiplier. `rows` freezes the equation at
    points.

    A nonlinear problem is frozen again after every outer step (`freeze`); its singular points
    depend on the answer and are found late (`find_singular`). `inputs` says what networks may see
    of the interfaces: nothing (`coordinates`), φ|φ| (`interfaces`), or φ|φ| and generic powers
    (`powers`).
    """

    def __init__(
        self,
        problem: AbstractProblem,
        multiplier: bool = True,
        delta: float = 0.0,
        hard: bool = True,
        singular: bool = True,
        inputs: str = "powers",
        richness: int | None = None,
        singular_points: list[SingularPoint] | None = None,
        fits: Sequence[Fit] = (),
    ):
        self.problem = problem
        self.domain = problem.domain
        self.multiplier = multiplier
        self.delta = delta
        self.hard = hard
        # A nonlinear problem is first frozen without a state: its start.
        self.coefficients: Callable[[np.ndarray], Coefficients] = problem.coefficients
        self.singular_points: list[SingularPoint] = []
        if singular_points is not None:
            self.singular_points = singular_points
        elif singular and hard and problem.linear:
            self.singular_points = _kept(
                problem,
                "singular",
                lambda: find_singular_points(self.domain, problem.interfaces, self.coefficients),
            )
        self.inputs = inputs
        self.richness = self._affordable_richness() if richness is None else richness
        made = self._ansatz(fits) if fits else _kept(problem, (hard, inputs), self._ansatz)
        self.ansatz = made.with_singular(self._singular_functions()) if hard else made

    def _ansatz(self, fits: Sequence[Fit] = ()) -> Ansatz:
        problem = self.problem
        g = None if problem.zero_g else problem.g
        shown = problem.interfaces if self.inputs != "coordinates" else ()
        powers = POWERS if shown and self.inputs == "powers" else ()
        return Ansatz(
            self.domain, g, problem.interfaces, shown, powers=powers, hard=self.hard, fits=fits
        )

    def _affordable_richness(self) -> int:
        """The richest singular functions that do not dominate the cost; `enrich` can go on from
        there."""
        for level in reversed(range(1, len(RICHNESS))):
            if self._singular_functions(level).count <= AFFORDABLE:
                return level
        return 0

    def _singular_functions(self, level: int | None = None) -> SingularFunctions:
        largest, degree = RICHNESS[self.richness if level is None else level]
        curved = _kept(self.problem, "curves", lambda: curves(self.domain, self.problem.interfaces))
        return SingularFunctions(self.domain, self.singular_points, largest, degree, curved)

    def freeze(self, jet: Callable[[np.ndarray], Jet] | None, **choices: Any) -> None:
        """Freeze a nonlinear problem at a state, given by its jet at points; `choices` go to the
        problem."""
        if jet is None:
            self.coefficients = self.problem.coefficients
        else:
            self.coefficients = lambda x: self.problem.coefficients(x, jet(x), **choices)

    def find_singular(self) -> bool:
        """Singular points of the equation as it is frozen now; False where there are none."""
        found = find_singular_points(self.domain, self.problem.interfaces, self.coefficients)
        # A frozen matrix that is not elliptic at a corner has no exponents.
        points = [
            point
            for point in found
            if np.all(np.isfinite(point.matrices))
            and np.min(np.linalg.eigvalsh(point.matrices)) > 0
        ]
        if not points:
            return False
        self.singular_points = points
        self.richness = self._affordable_richness()
        self.ansatz = self.ansatz.with_singular(self._singular_functions())
        return True

    @property
    def place(self) -> tuple:
        """The ansatz with its singular functions as they are now; can be set again later."""
        return self.ansatz, self.singular_points, self.richness

    @place.setter
    def place(self, place: tuple) -> None:
        self.ansatz, self.singular_points, self.richness = place

    def enrich(self) -> bool:
        """More singular functions; False when there is nothing to add."""
        if not self.singular_points or self.richness + 1 >= len(RICHNESS):
            return False
        self.richness += 1
        self.ansatz = self.ansatz.with_singular(self._singular_functions())
        return True

    @property
    def jump_meets_boundary(self) -> bool:
        """Whether a coefficient jumps across an interface that meets a smooth boundary."""
        return any(point.interface is not None for point in self.singular_points)

    @property
    def columns(self) -> int:
        """How many amplitudes there are beside the network."""
        return self.ansatz.singular.count

    def points(self, uniform: int, seed: int, per_function: float = 2.5) -> Points:
        """Points that determine `uniform / oversampling` features and all singular functions."""
        counts = [int(per_function * count) + 8 for count in self.ansatz.singular.counts]
        return collocation_points(self.domain, uniform, seed, self.singular_points, counts)

    def fresh_points(self, seed: int, count: int = FRESH) -> Points:
        """Points that serve to judge and never to fit."""
        return self.points(count, seed + 1_000_003, per_function=1.0)

    def factors(self, coefficients: Coefficients) -> np.ndarray:
        """The Cordès multiplier, or one."""
        if not self.multiplier:
            return np.ones(len(coefficients.f))
        return cordes_multiplier(np.asarray(coefficients.A), self.delta)

    def rows(self, points: Points) -> Rows:
        coefficients = self.coefficients(points.x)
        return self.ansatz.freeze(
            points.x, *coefficients, factor=self.factors(coefficients) * points.weight
        )  # pyright: ignore[reportArgumentType]

    def measure(
        self, points: Points, jet: Callable[[np.ndarray], Jet], at: Jet, choices: dict[str, Any]
    ) -> tuple[float, float]:
        """The residual of a nonlinear equation at a state, scaled as the rows are, and the size of
        the right-hand side; `at` is the jet at the points."""
        coefficients = self.problem.coefficients(points.x, at, **choices)
        A, b, c, f = (np.asarray(part) for part in coefficients)
        factor = self.factors(coefficients) * points.weight
        defect = (
            np.sum(A * at.hessian, axis=(1, 2)) + np.sum(b * at.gradient, axis=1) - c * at.value - f
        )
        return float(np.linalg.norm(factor * defect)), float(np.linalg.norm(factor * f))

    def finished(self, answer: Answer) -> Answer:
        """The answer without what only the solve needed."""
        return answer

    def boundary_rows(self, count: int, seed: int, weight: float) -> Rows:
        """√weight · (u - g) at boundary points, for the paper's composite loss."""
        x, _ = self.domain.boundary_points(count, seed)
        d = self.domain.dimension
        size = (weight / count) ** 0.5
        g = np.asarray(jax.vmap(self.problem.g)(jnp.asarray(x)))
        return self.ansatz.freeze(
            x,
            np.zeros((count, d, d)),
            np.zeros((count, d)),
            -np.ones(count),
            g,
            np.full(count, size),
        )


# What follows from a problem alone and serves all its solves, with what is compiled for it: other
# seeds or sizes do not prepare it again.
_PREPARED: weakref.WeakKeyDictionary[AbstractProblem, dict] = weakref.WeakKeyDictionary()


def _kept(problem: AbstractProblem, key: Any, make: Callable[[], Any]) -> Any:
    prepared = _PREPARED.setdefault(problem, {})
    if key not in prepared:
        prepared[key] = make()
    return prepared[key]


class Clock:
    """Seconds since the start, and whether the time is up, which process 0 says for all."""

    def __init__(self, limit: float | None = None):
        self.start = time.perf_counter()
        self.limit = limit

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        return self.limit is not None and distribution.agreed(self.seconds > self.limit)
