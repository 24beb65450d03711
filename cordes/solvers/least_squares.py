"""Least squares: with frozen hidden weights a linear equation is one rank-revealing solve.

At each size a few candidates compete on fresh points: the frequency reached so far, a higher one,
and (first stage) which inputs the features see.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from cordes.ansatz.ansatz import COLUMNS, Rows, feature_matrix
from cordes.ansatz.networks.activations import activation_jet
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.ansatz.points import Points
from cordes.errors import OptionError
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.clock import Clock
from cordes.solutions.answer import Answer
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights, late_end

# Without a tolerance a fresh residual below this share of the target's size is good enough: the
# error is then near rounding level.
ROUNDING = 1e-10
OVERSAMPLING, LEAST_OVERSAMPLING = 2.5, 1.2
# Inputs that leave a smaller share than this at the first size need no rival.
PROMISING = 1e-4
# The same where an interface of a jump meets a smooth boundary. Away from there the solution is
# smooth on both sides of it, for which φ|φ| is right however few features are; other inputs win by
# chance at first and get no better.
PROMISING_JUMP = 0.1
FIRST_FREQUENCIES = (1.0, 2.0, 4.0)
GROWTH = 1.6
# Features that serve where no tolerance is asked for; with one there may be twice as many.
USUAL = {1: 500, 2: 1000, 3: 1500}


class Fitted(NamedTuple):
    """One fitted network with its residual on fresh points."""

    network: AbstractNetwork
    amplitudes: np.ndarray
    residual: float
    frequency: float
    inputs: str


def usual_size(dimension: int) -> int:
    """The largest number of features where the user says nothing."""
    return USUAL.get(dimension, 4000)


def stage_widths(
    dimension: int, features: int | None, start: int | None, demanding: bool = False
) -> list[int]:
    """Sizes of the stages, each twice the last, up to `features`; a tolerance (`demanding`) may
    take twice as many. A continued solve begins beyond where it was."""
    largest = features or (2 * start if start else (1 + demanding) * usual_size(dimension))
    widths = [min(2 * start, largest) if start else min(COLUMNS, largest)]
    while widths[-1] < largest:
        widths.append(min(2 * widths[-1], largest))
    return widths


# A stage helps if it leaves at most this share of the residual.
HELPS = 0.5


def still_helps(history: Sequence[dict]) -> bool:
    """Whether the last stage helped so much that a larger one is worth its time."""
    residuals = [stage["residual"] for stage in history if "residual" in stage]
    return len(residuals) < 2 or residuals[-1] <= HELPS * residuals[-2]


@dataclasses.dataclass
class Search:
    """Random networks compete on fresh points; the best one so far is kept. `highest` is the
    highest frequency that was tried."""

    solver: "LeastSquares"
    system: AbstractSystem
    tol: float | None
    seed: int
    best: Fitted | None = None
    highest: float = 0.0
    points: int = 0

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Fresh rows, at the start and after the singular functions changed."""
        self.fresh = self.shared(self.system.fresh_points(self.seed))
        self.scale = max(distribution.norm(self.fresh.target), 1e-300)

    @property
    def residual(self) -> float:
        return self.best.residual if self.best else np.inf

    @property
    def frequency(self) -> float:
        """That of the best network so far."""
        assert self.best is not None
        return self.best.frequency

    @property
    def done(self) -> bool:
        return self.residual <= (ROUNDING * self.scale if self.tol is None else self.tol)

    def judge(
        self,
        network: RandomFeatures,
        solution: np.ndarray,
        frequency: float,
        inputs: str,
        fresh: np.ndarray | None = None,
    ) -> Fitted:
        fresh = feature_matrix(network, self.fresh) if fresh is None else fresh
        residual = distribution.norm(fresh @ solution - np.asarray(self.fresh.target))
        width = network.coefficients.shape[0]
        fitted = network.with_parameters(solution[:width])
        return Fitted(fitted, solution[width:], residual, frequency, inputs)

    def answer(self, result: Result, history: list[dict]) -> Answer:
        """The best network so far."""
        best = self.best
        assert best is not None
        return Answer(best.network, best.amplitudes, result, best.residual, self.points, history)

    def rows(self, width: int) -> Rows:
        collocation = self.system.points(int(self.solver.oversampling * width), self.seed)
        self.points = len(collocation.x)
        return self.shared(collocation)

    def shared(self, points: Points) -> Rows:
        """The rows of the loss, of which each process has a part."""
        return distribution.share(self.system.loss_rows(points, self.seed))

    def attempt(self, rows: Rows, width: int, frequency: float, inputs: str) -> None:
        """Fit one random network and keep it if it is the best."""
        self.highest = max(self.highest, frequency)
        seen = self.system.ansatz.inputs
        network = RandomFeatures(
            seen, width, frequency, self.seed, seen.active(inputs), self.solver.activation
        )
        fresh = feature_matrix(network, self.fresh)
        matrix, target = distribution.reduced(
            feature_matrix(network, rows), np.asarray(rows.target)
        )
        for used in self.shares(width):
            columns = np.r_[:used, width : matrix.shape[1]]
            solution, damped = np.zeros(matrix.shape[1]), rows.singular.shape[1]
            found = solve_rank_revealing(matrix[:, columns], target, damped=damped)
            solution[columns] = distribution.agreed(found)
            candidate = self.judge(network, solution, frequency, inputs, fresh)
            if self.best is None or not candidate.residual >= self.best.residual:
                self.best = candidate
            if self.done:
                break

    def shares(self, width: int) -> list[int]:
        """How many of the features are tried: a loose tolerance is met by few, which leave a
        smoother residual that is cheaper to certify."""
        few = self.tol is not None and width <= COLUMNS
        return [width // 8, width // 3, width] if few else [width]


class LeastSquares(AbstractSolver):
    """Random features, whose number grows until the residual on fresh points is at most the
    tolerance, at rounding level, or stops falling. `features` is the largest number of them,
    `frequency` the scale of the hidden weights (None: both grow as long as it helps),
    `oversampling` the collocation points for each feature: more where data are rough."""

    features: int | None = None
    frequency: float | None = None
    activation: str = "sine"
    oversampling: float = OVERSAMPLING

    method: ClassVar[str] = "least-squares"
    trains: ClassVar[bool] = False
    inputs: ClassVar[str] = "powers"
    outer_steps: ClassVar[int | None] = 40
    small: ClassVar[float] = 1e-3

    def __check_init__(self) -> None:
        activation_jet(self.activation)
        points = self.oversampling
        if not (isinstance(points, (int, float)) and points >= LEAST_OVERSAMPLING):
            raise OptionError(
                f"oversampling = {points!r}: at least {LEAST_OVERSAMPLING} collocation points for "
                "each feature are needed."
            )

    def confined(self, dimension: int, start: Weights | None) -> Self:
        usual = usual_size(dimension)
        reached = start is not None and start.network.coefficients.shape[0] >= usual
        if reached or (self.features or 2 * usual) <= usual:
            return self
        return dataclasses.replace(self, features=usual)

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        search = Search(self, system, budget.tol, budget.seed)
        if start is not None:
            search.best = search.judge(*_continued(start))
        reached = start.network.coefficients.shape[0] if start else None
        dimension, demanding = system.domain.dimension, budget.tol is not None
        widths = stage_widths(dimension, self.features, reached, demanding)
        history: list[dict] = []
        interrupted = False
        try:
            self._grow(search, widths, budget, history)
        except KeyboardInterrupt:
            if search.best is None:
                raise
            interrupted = True
        return search.answer(self._verdict(search, budget.clock, interrupted), history)

    def _grow(
        self, search: "Search", widths: list[int], budget: Budget, history: list[dict]
    ) -> None:
        """Stage after stage, as long as it helps; the history grows with them."""
        clock = budget.clock
        while widths and not search.done and not (clock.over and search.best):
            width, before = widths.pop(0), search.residual
            rows = search.rows(width)
            for choice in _candidates(search, self.frequency):
                search.attempt(rows, width, *choice)
                budget.progress.update(features=width, residual=search.residual)
                if search.done or clock.over or search.residual < 0.1 * before < np.inf:
                    break
            history.append(_facts(search, width, clock))
            if search.residual > HELPS * before and not search.done and not clock.over:
                if budget.tol is None or not search.system.enrich():
                    break
                # More features of this kind do not help any more; more singular functions may. The
                # same size is tried again with them.
                assert search.best is not None
                search.renew()
                search.best = search.best._replace(residual=np.inf)
                widths.insert(0, width)

    def _verdict(self, search: "Search", clock: Clock, interrupted: bool) -> Result:
        if interrupted:
            return Result.interrupted
        if not np.isfinite(search.residual):
            return Result.nonfinite
        if clock.over and not search.done:
            return Result.time_out
        return late_end(search.residual, search.tol, self.small * search.scale)


def _continued(start: Weights) -> tuple[RandomFeatures, np.ndarray, float, str]:
    """An earlier answer as a candidate: its frequency and inputs are read off its weights."""
    network = start.network
    assert isinstance(network, RandomFeatures)
    weight = np.asarray(network.layers[0][0])
    used = np.any(weight != 0, axis=1)
    d = len(network.inputs.center)
    inputs = (
        "coordinates"
        if not np.any(used[d:])
        else "powers"
        if np.all(used) and network.inputs.powers
        else "interfaces"
    )
    solution = np.concatenate([network.coefficients, start.amplitudes])
    return network, solution, float(np.std(weight[used])), inputs


def _facts(search: Search, width: int, clock: Clock) -> dict:
    assert search.best is not None
    best = search.best
    return {
        "features": width,
        "singular": search.system.ansatz.singular.count,
        "frequency": best.frequency,
        "inputs": best.inputs,
        "residual": best.residual,
        "seconds": clock.seconds,
    }


def _candidates(search: Search, frequency: float | None) -> Iterator[tuple[float, str]]:
    """Frequencies and inputs that compete at one size: at first both are open, one after the other;
    then the frequency may only rise."""
    best = search.best
    if best is None:
        yield from first_candidates(search, frequency)
    elif frequency:
        yield frequency, best.inputs
    else:
        yield best.frequency * GROWTH, best.inputs
        yield best.frequency, best.inputs


def input_choices(system: AbstractSystem) -> list[str]:
    """The inputs that may compete, given the most that a network may see."""
    most = system.options.inputs if system.ansatz.inputs.interfaces else "coordinates"
    return {
        "coordinates": ["coordinates"],
        "interfaces": ["interfaces", "coordinates"],
        "powers": ["interfaces", "powers", "coordinates"],
    }[most]


def first_candidates(
    search: Search, frequency: float | None, choices: list[str] | None = None
) -> Iterator[tuple[float, str]]:
    """At the first size, inputs compete with the middle frequency, then frequencies with the best
    inputs; each choice sees what the last one gave."""
    low, middle, high = FIRST_FREQUENCIES
    system = search.system
    promising = PROMISING_JUMP if system.jump_meets_boundary else PROMISING
    for inputs in choices or input_choices(system):
        yield frequency or middle, inputs
        if search.residual < promising * search.scale:
            break
    if frequency is None:
        assert search.best is not None
        inputs, before = search.best.inputs, search.residual
        yield high, inputs
        if search.residual == before:
            yield low, inputs
