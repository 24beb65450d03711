"""Optimal stopping with constant coefficients in one dimension, by the curve at which one stops.

Where the obstacle is the initial value, with one convex kink, sums of 1, x and e^{±x} on both sides
of it (puts and calls in the logarithm of the price), stopping is best on one side of a curve that
begins at the kink, or beside it. The answer is a potential of the curve (`ExercisePotential`), and
the curve is where its slope is that of the obstacle: a Volterra equation, solved by Newton's method
on one panel of time after the other, from the start on.
"""

import functools
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from cordes.ansatz.build import BuiltAnsatz, bare_ansatz
from cordes.ansatz.networks.exercise_potential import (
    ExercisePotential,
    Kernel,
    Panels,
    PotentialPiece,
    Stopping,
    gauss_points,
    integral,
)
from cordes.ansatz.networks.inputs import Inputs
from cordes.problems.coefficients import sample
from cordes.problems.obstacle import Obstacle
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.solutions.answer import Answer, Weights
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget

# Panels grow by this factor; nodes of each, and Gauss points.
RATIO, NODES, GAUSS = 3.0, 12, 40
# What stopping gains before the first panel that is solved, as a share of the values.
NEGLIGIBLE = 1e-12
STEPS, CLOSE, EQUAL, MATCHED = 12, 1e-11, 1e-11, 1e-10


class NotThisWayError(Exception):
    """The problem is none of these, or the curve was not found."""


@functools.singledispatch
def stopping_of(problem: AbstractProblem) -> tuple[Stopping, float] | None:
    """The pieces of a problem that can be solved this way, and on which side one stops: 1 for below
    the curve. None for others."""
    return None


@stopping_of.register
def _stopping(problem: Obstacle) -> tuple[Stopping, float] | None:
    base: Any = problem.base_problem
    if not (
        base.clock is not None
        and base.linear
        and base.constant_coefficients
        and problem.space.dimension == 1
        and problem.upper is None
        and problem.lower is not None
        and len(problem.start.kinks) == 1
    ):
        return None
    (kink,) = problem.start.kinks
    domain: Any = problem.domain
    points = domain.interior_points(400, seed=3)
    at_start = points.copy()
    at_start[:, -1] = domain.start
    psi, later = sample(problem.lower, at_start), sample(problem.lower, points)
    initial = np.asarray(jax.vmap(problem.values.initial)(jnp.asarray(points[:, :1])), float)
    scale = float(np.max(np.abs(psi)))
    same = np.max(np.abs(psi - later)) <= EQUAL * scale
    same = same and np.max(np.abs(psi - initial)) <= EQUAL * scale
    source = sample(base.f, points)
    if not (same and kink.active and kink.convex and np.max(np.abs(source)) == 0):
        return None
    center = np.asarray(domain.center)
    kernel = Kernel(float(base.A(center)[0, 0]), float(base.b(center)[0]), float(base.c(center)))
    place = float(np.mean(kink.places))
    x = points[:, 0]
    pieces = [_piece(x[side], psi[side], scale) for side in (x < place, x > place)]
    if kernel.c < 0 or pieces[0] is None or pieces[1] is None:
        return None
    low, high = (float(corner[0]) for corner in domain.base.bounding_box)
    below = pieces[0].minus_operator(*kernel).at(np.linspace(low, place, 200)) > 0
    above = pieces[1].minus_operator(*kernel).at(np.linspace(place, high, 200)) > 0
    if np.any(below) and not np.any(above):
        return Stopping(kernel, pieces[0], pieces[1], place), 1.0
    if np.any(above) and not np.any(below):
        mirrored = kernel._replace(b=-kernel.b)
        return Stopping(mirrored, pieces[1].mirrored(), pieces[0].mirrored(), -place), -1.0
    return None


def _piece(x: np.ndarray, values: np.ndarray, scale: float) -> PotentialPiece | None:
    """Values as a sum of 1, x, e^x and e^{-x}, with as few of them as do."""
    if len(x) < 8:
        return None
    columns = np.stack([np.ones_like(x), x, np.exp(x), np.exp(-x)], axis=1)
    for chosen in ((0,), (0, 2), (0, 1), (0, 3), (0, 1, 2), (0, 1, 2, 3)):
        some = columns[:, chosen]
        sizes = np.max(np.abs(some), axis=0)
        found = np.linalg.lstsq(some / sizes, values, rcond=None)[0] / sizes
        if np.max(np.abs(some @ found - values)) <= EQUAL * scale:
            coefficients = np.zeros(4)
            coefficients[list(chosen)] = found
            small = np.abs(coefficients) * np.max(np.abs(columns), axis=0) <= EQUAL * scale
            return PotentialPiece(tuple(_rounded(np.where(small, 0.0, coefficients)).tolist()))
    return None


def _rounded(values: np.ndarray) -> np.ndarray:
    """Numbers that are a short decimal but for rounding, as such."""
    with np.errstate(all="ignore"):
        return np.array(
            [
                float(f"{value:.10g}")
                if abs(float(f"{value:.10g}") - value) <= 1e-11 * abs(value)
                else value
                for value in values
            ]
        )


class ExerciseCurve:
    """The panels, found one after the other."""

    def __init__(self, stopping: Stopping, length: float):
        self.stopping, self.length = stopping, length
        self.first = _beginning(stopping)
        scale = abs(stopping.stopped.at(stopping.kink - 1.0)) + abs(
            stopping.stopped.at(stopping.kink + 1.0)
        )
        self.scale = float(scale)
        spread = np.sqrt(2 * stopping.kernel.a)
        count = 2

        def gained(t: float) -> float:
            place = self.first - 3 * spread * np.sqrt(t)
            return abs(float(stopping.gain.at(place))) * t

        while gained(length * RATIO**-count) > NEGLIGIBLE * scale and count < 60:
            count += 1
        self.edges = np.append(0.0, length * RATIO ** -np.arange(count, -1.0, -1.0))
        self.angles = (np.arange(NODES) + 0.5) * np.pi / NODES
        turn = 2 / NODES * np.cos(np.outer(np.arange(NODES), self.angles))
        turn[0] /= 2
        self.turn = turn
        self.values = np.zeros((count + 1, NODES))
        self.coefficients = np.zeros((count + 1, NODES))

    @property
    def panels(self) -> Panels:
        return Panels(self.edges, self.coefficients)

    def times(self, k: int) -> np.ndarray:
        low, high = np.sqrt(self.edges[k]), np.sqrt(self.edges[k + 1])
        return (low + (high - low) * (1 + np.cos(self.angles)) / 2) ** 2

    def put(self, k: int, values: np.ndarray) -> None:
        self.values[k], self.coefficients[k] = values, self.turn @ values

    def slope_gap(self, x: np.ndarray, t: np.ndarray, upto: int) -> np.ndarray:
        """w_x - p' with the panels up to a number."""
        stopping = self.stopping
        mirrored = stopping.kernel._replace(b=-stopping.kernel.b)
        total = stopping.kernel.slope_below(stopping.stopped, x, t, stopping.kink)
        total = total - mirrored.slope_below(stopping.other.mirrored(), -x, t, -stopping.kink)
        nodes, weights = gauss_points(GAUSS)
        for k in range(upto + 1):
            begun = t > self.edges[k]
            later = np.minimum(self.edges[k + 1], t)
            low = np.sqrt(np.maximum(t - later, 0.0))
            high = np.sqrt(np.maximum(t - self.edges[k], 0.0))
            v = low[:, None] + (high - low)[:, None] * nodes
            since = np.maximum(v * v, 1e-300)
            time = np.clip(t[:, None] - since, self.edges[k], self.edges[k + 1])
            s = self.panels.place(np.full(v.shape, k), time)
            inner = stopping.kernel.slope_below(stopping.gain, x[:, None], since, s)
            total = total + np.where(begun, (high - low) * (2 * v * inner @ weights), 0.0)
        return total - stopping.stopped.slope(x)

    def find(self) -> Panels:
        spread = np.sqrt(2 * self.stopping.kernel.a)
        ratio = self._self_similar(spread)
        for k in range(len(self.edges) - 1):
            t = self.times(k)
            if k > 1:
                before = self.times(k - 1)[0]
                ratio = (self.first - self.values[k - 1][0]) / (spread * np.sqrt(before))
            self.put(k, self.first - ratio * spread * np.sqrt(t))
            if k > 0:
                self._newton(k, t, spread)
        return self.panels

    def _self_similar(self, spread: float) -> float:
        """The multiple of √(2at) by which the curve has moved at the end of the first panels, if it
        always moved by the same."""
        t = np.array([self.edges[2]])

        def gap(ratio: float) -> float:
            for k in (0, 1):
                self.put(k, self.first - ratio * spread * np.sqrt(self.times(k)))
            return float(self.slope_gap(self.first - ratio * spread * np.sqrt(t), t, 1)[0])

        grid = np.linspace(0.05, 12.0, 120)
        values = [gap(ratio) for ratio in grid]
        for k in range(len(grid) - 1):
            if values[k] * values[k + 1] < 0:
                found: Any = brentq(gap, grid[k], grid[k + 1])
                return float(found)
        raise NotThisWayError("no beginning of the curve")

    def _newton(self, k: int, t: np.ndarray, spread: float) -> None:
        scale = spread * np.sqrt(t)
        values = self.values[k].copy()

        def gap(values: np.ndarray) -> np.ndarray:
            self.put(k, values)
            return self.slope_gap(values, t, k)

        found = gap(values)
        for _ in range(STEPS):
            matrix = np.zeros((NODES, NODES))
            for j in range(NODES):
                moved = values.copy()
                moved[j] += 1e-6 * scale[j]
                matrix[:, j] = (gap(moved) - found) / (1e-6 * scale[j])
            step = np.linalg.solve(matrix, -found)
            if not np.all(np.isfinite(step)):
                raise NotThisWayError("Newton's method lost its way")
            step = np.clip(step, -0.3 * scale, 0.3 * scale)
            values = values + step
            found = gap(values)
            if np.max(np.abs(step) / scale) < CLOSE:
                break
        # Early on rounding hides where the curve is, and hardly anything depends on it.
        w = self.stopping.without_stopping(values, t) + integral(
            self.stopping, self.panels, values, t
        )
        if np.max(np.abs(w - self.stopping.stopped.at(values))) > MATCHED * self.scale:
            raise NotThisWayError("Newton's method did not converge")


def _beginning(stopping: Stopping) -> float:
    """Where the curve begins: at the kink, or where stopping begins to gain below it."""
    gain, kink = stopping.gain, stopping.kink
    if gain.at(kink) > 0:
        return kink
    grid = kink - np.geomspace(1e-6, 20.0, 400)
    values = gain.at(grid)
    positive = np.flatnonzero(values > 0)
    if not len(positive):
        raise NotThisWayError("stopping never gains")
    k = int(positive[0])
    if k == 0:
        return kink
    found: Any = brentq(gain.at, grid[k], grid[k - 1], xtol=1e-15)
    return float(found)


def exercise_potential(problem: AbstractProblem) -> ExercisePotential | None:
    """The answer, for problems that can be solved this way."""
    known = stopping_of(problem)
    if known is None:
        return None
    domain: Any = problem.domain
    stopping, side = known
    try:
        panels = ExerciseCurve(stopping, domain.length).find()
    except (NotThisWayError, np.linalg.LinAlgError):
        return None
    return ExercisePotential(Inputs(domain), panels, stopping, side, domain.start)


class PotentialRun:
    """The whole solve, without a network that is fitted."""

    def __init__(self, system: AbstractSystem, network: ExercisePotential, budget: Budget):
        self.system, self.network, self.budget = system, network, budget

    def __call__(self, tol: float | None, start: Weights | None) -> Answer:
        self.system.place = BuiltAnsatz(bare_ansatz(self.system.problem), [], 0)
        edges = self.network.edges
        t = np.concatenate([np.linspace(*ends, 6)[1:] for ends in pairwise(edges)])
        side, stopping = self.network.side, self.network.stopping
        start_of_time = self.network.start
        place = self.network.boundary(start_of_time + t)
        missed = self.network.at(place, start_of_time + t) - stopping.stopped.at(side * place)
        residual = float(np.max(np.abs(missed)))
        facts = {"panels": len(edges) - 1, "residual": residual}
        facts["seconds"] = self.budget.clock.seconds
        points = self.network.coefficients.size
        return Answer(self.network, np.zeros(0), Result.converged, residual, points, [facts])

    def extend(self) -> bool:
        return False


def potential_run(system: AbstractSystem, budget: Budget) -> PotentialRun | None:
    """The run for problems that can be solved this way."""
    network = exercise_potential(system.problem) if system.hard else None
    return None if network is None else PotentialRun(system, network, budget)
