"""From a problem to rows: the part of a solve that every method shares."""

import abc
import copy
import functools
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.ansatz import Ansatz, Rows
from cordes.ansatz.build import (
    NOTHING,
    RICHNESS,
    AnsatzOptions,
    BuiltAnsatz,
    Earlier,
    affordable_richness,
    make_place,
    with_curves,
    with_kinks,
)
from cordes.ansatz.points import Boxes, Points, collocation_points
from cordes.ansatz.points_in_time import points_in_time
from cordes.ansatz.singular import SingularPoint, find_singular_points
from cordes.ansatz.singular.curves_in_time import moved, switches
from cordes.ansatz.singular.similarity import SimilarityFunctions
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import FaceData, walled_part
from cordes.errors import OptionError
from cordes.jet import Jet
from cordes.problems.coefficients import Coefficients
from cordes.problems.condition import cordes_multiplier
from cordes.problems.features import hidden_features
from cordes.problems.problem import AbstractProblem
from cordes.solutions.answer import Answer, Weights

JetAt = Callable[[np.ndarray], Jet]
FRESH = 2048
# Points of the boundary rows of the paper's composite loss.
BOUNDARY_POINTS = 1000
# Gauss points along each axis for the mean of an answer that is known up to a constant.
MEAN_POINTS = 32
# Curves that move by less than this share of the width are where they should be.
FOLLOWED = 1e-5


def stack(*parts: Rows) -> Rows:
    """Rows one after the other."""
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


class AbstractSystem(abc.ABC):
    """A problem, its ansatz and the choice of the multiplier. `rows` freezes the equation at
    points.

    A nonlinear problem is frozen again after every outer step (`freeze`); its singular points
    depend on the answer and are found late (`find_singular`). `place` is the ansatz with its
    singular functions as they are now; it can be set again later.
    """

    problem: AbstractProblem
    multiplier: bool
    options: AnsatzOptions
    place: BuiltAnsatz
    # A nonlinear problem is first frozen without a state: its start.
    coefficients: Callable[[np.ndarray], Coefficients]
    # What it is frozen at.
    state: JetAt | None = None

    @property
    def domain(self) -> AbstractDomain:
        return self.problem.domain

    @property
    def ansatz(self) -> Ansatz:
        return self.place.ansatz

    @property
    def hard(self) -> bool:
        return self.ansatz.hard

    @property
    def singular_points(self) -> list[SingularPoint]:
        return self.place.singular_points

    @property
    def richness(self) -> int:
        return self.place.richness

    @property
    def jump_meets_boundary(self) -> bool:
        """Whether a coefficient jumps across an interface that meets a smooth boundary."""
        return any(point.interface is not None and not point.kink for point in self.singular_points)

    @functools.cached_property
    def hidden(self) -> Boxes:
        """Small boxes in which the data have something that the usual points may miss."""
        places = [point.location for point in self.singular_points]
        return hidden_features(self.problem, FRESH, places)

    @property
    @abc.abstractmethod
    def columns(self) -> int:
        """How many amplitudes there are beside the network."""

    def freeze(self, jet: JetAt | None, **choices: Any) -> None:
        """Freeze a nonlinear problem at a state, given by its jet at points; `choices` go to the
        problem."""
        self.state = jet
        self.coefficients = (
            self.problem.coefficients
            if jet is None
            else lambda x: self.problem.coefficients(x, jet(x), **choices)
        )

    def follow(self) -> bool:
        """Curves at which the equation changes as it is frozen now; False where there is nothing
        new."""
        return False

    def find_singular(self) -> bool:
        """Singular points of the equation as it is frozen now; False where there are none."""
        return False

    def enrich(self) -> bool:
        """More singular functions; False when there is nothing to add."""
        return False

    @abc.abstractmethod
    def points(self, uniform: int, seed: int, per_function: float = 2.5) -> Points:
        """Points that determine `uniform / oversampling` features and all singular functions."""

    @abc.abstractmethod
    def rows(self, points: Points) -> Rows: ...

    def extra_rows(self, seed: int) -> Rows | None:
        """Rows that belong to the loss and to no points inside, if there are any."""
        return None

    def loss_rows(self, points: Points, seed: int) -> Rows:
        """The rows at points inside, followed by the extra ones of a seed."""
        rows, extra = self.rows(points), self.extra_rows(seed)
        return rows if extra is None else stack(rows, extra)

    def measure(
        self, points: Points, jet: JetAt, at: Jet, choices: dict[str, Any]
    ) -> tuple[float, float]:
        """The residual of a nonlinear equation at a state, scaled as the rows are, and the size of
        the right-hand side; `at` is the jet at the points."""
        coefficients = self.problem.coefficients(points.x, at, **choices)
        factor = self.factors(coefficients) * points.weight
        sizes = (factor * part for part in (coefficients.defect(at), coefficients.f))
        residual, scale = (float(np.linalg.norm(size)) for size in sizes)
        return residual, scale

    def size(self, points: Points) -> float:
        """That of the right-hand side, scaled as the rows are."""
        coefficients = self.coefficients(points.x)
        return float(np.linalg.norm(self.factors(coefficients) * points.weight * coefficients.f))

    def finished(self, answer: Answer) -> Answer:
        """The answer without what only the solve needed."""
        return answer

    def jet_of(self, weights: Weights | Answer) -> JetAt:
        """The jet of an answer in the ansatz as it is now."""
        ansatz = self.ansatz
        return lambda x: ansatz.jet(weights.network, weights.amplitudes, x)

    def with_problem(self, problem: AbstractProblem) -> Self:
        """The rows of another problem of the same kind in the same ansatz."""
        other = copy.copy(self)
        other.problem = problem
        other.freeze(None)
        return other

    def fresh_points(self, seed: int, count: int = FRESH) -> Points:
        """Points that serve to judge and never to fit."""
        return self.points(count, seed + 1_000_003, per_function=1.0)

    def factors(self, coefficients: Coefficients) -> np.ndarray:
        """The Cordès multiplier, or one."""
        if not self.multiplier:
            return np.ones(len(coefficients.f))
        A = self.problem.measured_matrix(np.asarray(coefficients.A))
        return cordes_multiplier(A, self.options.delta)


class System(AbstractSystem):
    """A problem whose boundary values are given: exact by construction, or as extra rows."""

    def __init__(
        self,
        problem: AbstractProblem,
        multiplier: bool = True,
        earlier: Earlier = NOTHING,
        **options: Any,
    ):
        """`options` are those of `AnsatzOptions`; `earlier` is what an ansatz of the same problem
        had."""
        self.problem, self.multiplier = problem, multiplier
        self.options = AnsatzOptions(**options)
        self.coefficients = problem.coefficients
        self._refuse_rows()
        self.place = make_place(problem, self.options, earlier)
        self._extra: dict[int, Rows] = {}

    def _refuse_rows(self) -> None:
        """Conditions for which there are no rows."""
        walled = walled_part(self.problem.domain)
        if self.options.hard or walled is None:
            return
        if self.problem.clock is not None or any(each.periodic for each in walled.directions):
            raise OptionError(
                "boundary_rows = 'soft' knows neither periodic directions nor fluxes in time: "
                "leave it out, the conditions are fulfilled by construction."
            )

    @property
    def columns(self) -> int:
        return self.ansatz.singular.count + int(self.problem.free_constant)

    def follow(self) -> bool:
        """Curves in time at which the frozen equation changes; False where there are none, or where
        they have hardly moved."""
        domain, functions, state = self.domain, self.ansatz.singular, self.state
        if (
            not isinstance(functions, SimilarityFunctions)
            or not isinstance(domain, Cylinder)
            or domain.base.dimension > 1
            or state is None
        ):
            return False

        def gap(x: np.ndarray) -> np.ndarray:
            return self.problem.margin(x, state(x))

        found = switches(domain, self.coefficients, gap, self.problem.bending)
        if moved(found, functions.curves, domain) < FOLLOWED:
            return False
        self.place = with_curves(self.problem, self.place, found)
        return True

    def find_singular(self) -> bool:
        found = find_singular_points(self.domain, self.problem.interfaces, self.coefficients)
        found = with_kinks(self.problem, found)
        # A frozen matrix that is not elliptic at a corner has no exponents.
        points = [
            point
            for point in found
            if np.all(np.isfinite(point.matrices))
            and np.min(np.linalg.eigvalsh(point.matrices)) > 0
        ]
        if not points:
            return False
        richness = affordable_richness(self.problem, points)
        self.place = self.place.at(self.problem, points, richness)
        return True

    def enrich(self) -> bool:
        nothing = not (self.singular_points or self.ansatz.singular.count)
        if nothing or self.richness + 1 >= len(RICHNESS):
            return False
        self.place = self.place.at(self.problem, self.singular_points, self.richness + 1)
        return True

    def points(self, uniform: int, seed: int, per_function: float = 2.5) -> Points:
        functions = self.ansatz.singular
        if isinstance(functions, SimilarityFunctions) and functions.count:
            around = int(per_function * functions.count) + 8
            return points_in_time(functions, uniform, around, seed)
        counts = [int(per_function * count) + 8 for count in functions.counts]
        return collocation_points(
            self.domain, uniform, seed, self.singular_points, counts, hidden=self.hidden
        )

    def rows(self, points: Points) -> Rows:
        coefficients = self.coefficients(points.x)
        factor = self.factors(coefficients) * points.weight
        rows = self.ansatz.freeze(points.x, *coefficients, factor=factor)  # pyright: ignore
        if not self.problem.free_constant:
            return rows
        # Lu - C = f, with C as the last amplitude.
        return rows._replace(singular=np.column_stack([rows.singular, -factor]))

    def finished(self, answer: Answer) -> Answer:
        """A free constant leaves the amplitudes and becomes a fact, and the answer gets mean
        zero."""
        if not self.problem.free_constant:
            return answer
        x, weight = self.domain.quadrature(MEAN_POINTS)
        values = self.ansatz.value(answer.network, np.zeros(0), x)
        mean = float(weight @ np.asarray(values)) / self.domain.volume
        constant = float(np.asarray(answer.amplitudes)[0])
        facts = {**answer.facts, "constant": constant, "mean": mean}
        return answer._replace(amplitudes=np.zeros(0), facts=facts)

    def extra_rows(self, seed: int) -> Rows | None:
        """√weight · (u - g) at boundary points, or what else is given there, for the paper's
        composite loss."""
        if self.hard or seed in self._extra:
            return self._extra.get(seed)
        x, normals = self.domain.boundary_points(BOUNDARY_POINTS, seed)
        count, d = x.shape
        size = (self.options.boundary_weight / count) ** 0.5
        if isinstance(self.problem.g, FaceData):
            _, slope, value = self.problem.g.domain.condition_at(normals)
            g = self.problem.g.on(x, normals)
        else:
            slope, value = np.zeros(count), np.ones(count)
            g = np.asarray(jax.vmap(self.problem.g)(jnp.asarray(x)))
        first = slope[:, None] * normals
        rows = self.ansatz.freeze(
            x, np.zeros((count, d, d)), first, -value, g, np.full(count, size)
        )
        if self.problem.free_constant:
            rows = rows._replace(singular=np.zeros((count, self.columns)))
        return self._extra.setdefault(seed, rows)
