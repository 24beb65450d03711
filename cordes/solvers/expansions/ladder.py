"""Larger and larger bases, each fitted by least squares: rows of the residual, weighted as in the
maximum principle, and rows of the boundary values."""

from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg

from cordes.ansatz.plane.network import Expansion, Functions
from cordes.certificates.residual.cells import CellMesh
from cordes.domains.plane.region import Region
from cordes.domains.plane.sides import SideConditions, SideData, SidePoints, graded_sides
from cordes.domains.polar import largest_polar_factor
from cordes.results import Result
from cordes.runtime.memory import require_memory
from cordes.solutions.answer import Answer
from cordes.solvers.expansions.basis import PlaneBasis
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget

# Halvings of the cells at corners; rows of the residual for each function; points of a side.
GRADED, ROWS, SIDE = 5, 2.5, 40
# Cells of a fit share no points with those of certificates.
FIRST_CUTS = (np.array([0.29]), np.array([0.37]))
OTHER_CUTS = (np.array([0.41]), np.array([0.59]))
# The largest difference on the boundary counts about so many times the root of the mean square.
BOUNDARY = 3.0
# Coefficients are kept below the residual over this.
DAMPING = 1e-14
MOST_COLUMNS = 2600
# An error below this share of the answer is rounding.
ROUNDING = 3e-12


class FitRows(NamedTuple):
    """Points of the residual with weights, and of the boundary."""

    x: np.ndarray
    weight: np.ndarray
    boundary: SidePoints


class FittedExpansion(NamedTuple):
    """An expansion, and what it leaves: the largest difference on the boundary, and the bound of
    the maximum principle for its residual, both as points see them."""

    network: Expansion
    mismatch: float
    inner: float
    residual: float
    rows: int

    @property
    def error(self) -> float:
        return self.mismatch + self.inner


class ExpansionLadder:
    """See the module; `best` is the fit with the smallest error."""

    def __init__(self, system: AbstractSystem, budget: Budget):
        domain: Any = system.domain
        assert isinstance(domain, Region)
        self.system, self.budget, self.domain = system, budget, domain
        x = domain.interior_points(256, seed=budget.seed, kind="sobol")
        self.right = float(np.max(np.abs(system.coefficients(x).f)))
        self.place = PlaneBasis.of(system, domain, self.right == 0)
        self.factor = largest_polar_factor(domain)
        self.best: FittedExpansion | None = None
        # Seconds of the last step.
        self.lasted = 0.0
        self.history: list[dict[str, Any]] = []
        self.data: Any = system.problem.g
        self.conditions = SideConditions.of(domain)
        # A flux changes u by at most about half a width as much.
        self.reach = float(np.max(np.ptp(domain.bounding_box, axis=0))) / 2
        self._g = jax.jit(jax.vmap(system.problem.g))
        points = graded_sides(domain, SIDE)
        values = np.abs(self.weights(points) * self.given(points))
        self.scale = float(np.max(values)) + self.factor * np.sqrt(domain.volume) * self.right

    def given(self, points: SidePoints) -> np.ndarray:
        """Values and fluxes on the boundary."""
        if isinstance(self.data, SideData):
            return self.data.on(points)
        return np.asarray(self._g(points.x), dtype=float)

    def weights(self, points: SidePoints) -> np.ndarray:
        """What a difference on the boundary changes u by, at most about."""
        weights = np.ones(len(points.x))
        flux = self.conditions.slope[points.number] > 0
        weights[flux] = self.reach * self.place.flux_weights(points.x[flux])
        return weights

    def operator(self, points: SidePoints) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is given on the boundary as A:D² + b·∇ − c, weighted."""
        weight, (slope, value) = self.weights(points), self.conditions
        b = (weight * slope[points.number])[:, None] * points.normal
        return np.zeros((len(points.x), 2, 2)), b, -weight * value[points.number]

    @property
    def error(self) -> float:
        return np.inf if self.best is None else self.best.error

    @property
    def relative(self) -> float:
        return self.error / self.scale if self.scale > 0 else 0.0

    @property
    def good(self) -> bool:
        """Whether the error is what is asked for, or rounding."""
        if self.best is None:
            return False
        asked = self.budget.tol is not None and self.best.residual <= self.budget.tol
        return asked or self.error <= ROUNDING * self.scale

    def full(self, level: int) -> bool:
        """Whether the basis of a level would be too large."""
        return self.place.functions(level).count > MOST_COLUMNS

    def expected(self, level: int) -> float:
        """Seconds of the step of a level, by those of the one before: least squares grow with the
        cube of the columns."""
        if not self.history:
            return 0.0
        growth = self.place.functions(level).count / self.history[-1]["columns"]
        return self.lasted * growth**3

    def step(self, level: int) -> None:
        start = self.budget.clock.seconds
        functions = self.place.functions(level)
        fitted = self.fit(functions)
        if fitted.error < self.error or self.best is None:
            self.best = fitted
        facts = {"columns": functions.count, "level": level, "rows": fitted.rows}
        facts |= {"residual": fitted.residual, "mismatch": fitted.mismatch}
        self.history.append(facts | {"seconds": self.budget.clock.seconds})
        self.lasted = self.budget.clock.seconds - start
        self.budget.progress.update(columns=functions.count, residual=fitted.residual)

    def rows(self, functions: Functions) -> tuple[FitRows, FitRows]:
        """Those of a fit, and others that judge it."""
        per = max(SIDE, int(2 * functions.count / len(self.domain.arcs)))
        fit, other = (self._nodes(cuts, functions.count) for cuts in (FIRST_CUTS, OTHER_CUTS))
        boundary = (graded_sides(self.domain, count) for count in (per, 2 * per + 1))
        return FitRows(*fit, next(boundary)), FitRows(*other, next(boundary))

    def _nodes(self, cuts: tuple, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gauss points of cells that are smaller towards corners, and their weights."""
        mesh = CellMesh(self.domain)
        mesh.cut(cuts)
        for corner in self.place.corners:
            mesh.grade(corner.point, GRADED)
        nodes = mesh.nodes(mesh.cells)
        while np.sum(nodes.fine > 0) < ROWS * count:
            mesh.cells = mesh.cells.children()
            nodes = mesh.nodes(mesh.cells)
        fine = nodes.fine > 0
        return nodes.x[fine], nodes.fine[fine]

    def fit(self, functions: Functions) -> FittedExpansion:
        fit, fine = self.rows(functions)
        require_memory(
            24.0 * (len(fit.x) + len(fit.boundary.x)) * functions.count,
            f"A basis of {functions.count} functions",
            "Ask for fewer levels.",
        )
        matrix, right, _ = self._inner(functions, fit)
        size = BOUNDARY / np.sqrt(len(fit.boundary.x))
        outer = size * self._outer(functions, fit.boundary)
        wanted = size * self.weights(fit.boundary) * self.given(fit.boundary)
        coefficients = damped_least_squares(
            np.concatenate([matrix, outer]),
            np.concatenate([right, wanted]),
        )
        network = Expansion(self.system.ansatz.inputs, functions, coefficients)
        return self._judged(network, fine, len(matrix) + len(outer))

    def _outer(self, functions: Functions, points: SidePoints) -> np.ndarray:
        """Rows of the boundary."""
        rows = functions.values(points.x)
        flux = self.conditions.slope[points.number] > 0
        if np.any(flux):
            some = points.take(flux)
            rows[flux] = functions.columns(some.x, *self.operator(some))
        return rows

    def _missed(self, network: Expansion, points: SidePoints) -> np.ndarray:
        """The weighted differences on the boundary; derivatives at corners are not asked for."""
        taken = network.value_at(points.x)
        flux = self.conditions.slope[points.number] > 0
        if np.any(flux):
            some = points.take(flux)
            taken[flux] = network.applied(some.x, *self.operator(some))[0]
        return taken - self.weights(points) * self.given(points)

    def _judged(self, network: Expansion, fine: FitRows, rows: int) -> FittedExpansion:
        mismatch = self._missed(network, fine.boundary)
        equation = self.system.coefficients(fine.x)
        applied = network.applied(fine.x, *map(np.asarray, equation[:3]))[0]
        left = np.asarray(equation.f) - applied
        root = np.sqrt(np.linalg.det(np.asarray(equation.A)))
        inner = self.factor * float(np.sqrt(np.sum(fine.weight * (left / root) ** 2)))
        scaled = self.system.factors(equation) * left
        mean = np.sum(fine.weight * scaled**2) / np.sum(fine.weight)
        largest = float(np.max(np.abs(mismatch)))
        # Boundary values in the units of the residual.
        residual = float(np.sqrt(mean)) + largest / (self.factor * np.sqrt(self.domain.volume))
        return FittedExpansion(network, largest, inner, residual, rows)

    def _inner(
        self, functions: Functions, rows: FitRows
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """FitRows of the residual: its norm is what the maximum principle makes of it."""
        A, b, c, f = map(np.asarray, self.system.coefficients(rows.x))
        weight = self.factor * np.sqrt(rows.weight / np.linalg.det(A))
        scaled = weight[:, None, None] * A, weight[:, None] * b, weight * c
        return functions.columns(rows.x, *scaled), weight * f, weight

    def answer(self, result: Result) -> Answer:
        assert self.best is not None
        best = self.best
        return Answer(best.network, np.zeros(0), result, best.residual, best.rows, self.history)


def damped_least_squares(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Least squares with columns of length one and a tiny penalty on all coefficients: the
    functions are nearly dependent, and of all combinations that fit small ones are wanted."""
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    count = matrix.shape[1]
    system = np.concatenate([matrix / size, right[:, None]], axis=1)
    triangle = np.asarray(
        scipy.linalg.qr(system, mode="r", overwrite_a=True, check_finite=False)[0]
    )
    penalty = np.zeros((count, count + 1))
    penalty[:, :count] = DAMPING * np.eye(count)
    rows = np.concatenate([triangle[:count], penalty])
    damped = np.asarray(scipy.linalg.qr(rows, mode="r", check_finite=False)[0])
    solution = scipy.linalg.solve_triangular(
        damped[:count, :count], damped[:count, count], check_finite=False
    )
    return solution / size
