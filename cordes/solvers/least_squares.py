"""Least squares: with frozen hidden weights a linear equation is one rank-revealing solve.

At each size a few candidates compete on fresh points: the frequency reached so far, a higher one,
and (first stage) which inputs the features see; see candidates.py.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from cordes.ansatz.ansatz import COLUMNS, Rows, feature_matrix
from cordes.ansatz.networks.activations import ACTIVATIONS
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.ansatz.points import Points
from cordes.arguments import Rule, number, one_of, positive, whole
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.clock import Clock
from cordes.runtime.compilation import CompileTimer
from cordes.runtime.memory import (
    MemoryLimitWarning,
    in_words,
    largest_that_fits,
    require_memory,
)
from cordes.solutions.answer import Answer
from cordes.solvers.candidates import (
    BLIND,
    CandidateKind,
    first_candidates,
    later_candidates,
    waves,
)
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights, late_end

# Without a tolerance a fresh residual below this share of the target's size is good enough: the
# error is then near rounding level.
ROUNDING = 1e-10
# A lift that leaves less than this share of f has solved the equation, but for rounding.
LEAST_SHARE = 1e-5
OVERSAMPLING, LEAST_OVERSAMPLING = 2.5, 1.2
# Arrays of the size of the matrix that a stage holds.
MATRICES = 5
# Features that serve where no tolerance is asked for; with one there may be twice as many.
USUAL = {1: 500, 2: 1000, 3: 1500}
# The most that waves of the data may get by themselves.
LARGEST, HOPELESS = 4000, 2
# Random weights of one deviation do not differ by more than this from axis to axis.
EVEN = 0.75


class FittedFeatures(NamedTuple):
    """One fitted network with its residual on fresh points."""

    network: AbstractNetwork
    amplitudes: np.ndarray
    residual: float
    kind: CandidateKind


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
    highest frequency that was tried, `needed` how many features the waves of the data need by each
    guess at them."""

    solver: "LeastSquares"
    system: AbstractSystem
    tol: float | None
    seed: int
    best: FittedFeatures | None = None
    highest: float = 0.0
    needed: set[float] = dataclasses.field(default_factory=set)
    points: int = 0
    # Seconds of the last attempt for each entry of its matrix, and whether the next one was not
    # begun for lack of time.
    cost: float = 0.0
    late: bool = False

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Fresh rows, at the start and after the singular functions changed."""
        points = self.system.fresh_points(self.seed)
        self.fresh = self.shared(points)
        size = distribution.norm(self.fresh.target)
        self.scale = max(size, LEAST_SHARE * self.system.size(points), 1e-300)

    @property
    def residual(self) -> float:
        return self.best.residual if self.best else np.inf

    @property
    def kind(self) -> CandidateKind:
        """That of the best network so far."""
        assert self.best is not None
        return self.best.kind

    @property
    def blind(self) -> bool:
        """Whether the residual is of the size of the data: nothing has been found yet."""
        return self.residual > BLIND * self.scale

    @property
    def hopeless(self) -> bool:
        """Whether the data have something so small, or vary so fast, that more features of the
        whole domain would not do."""
        small = len(self.system.hidden[0]) > 0
        return small or min(self.needed, default=0.0) > HOPELESS * LARGEST

    @property
    def finite(self) -> bool:
        """Whether the data and the residual are numbers: if not, no more features would help."""
        return bool(np.isfinite(self.scale) and (self.best is None or np.isfinite(self.residual)))

    def has_time(self, width: int, clock: Clock) -> bool:
        """Whether a stage may begin and may help; the first one always does, since without it there
        is no answer."""
        if self.best is not None and not self.finite:
            return False
        self.late = self.best is not None and (clock.over or not clock.allows(self.cost * width**2))
        return not self.late

    @property
    def done(self) -> bool:
        # Without a candidate nothing is, even for data whose norm is infinite.
        return self.best is not None and self.residual <= (
            ROUNDING * self.scale if self.tol is None else self.tol
        )

    def judge(
        self,
        network: RandomFeatures,
        solution: np.ndarray,
        kind: CandidateKind,
        fresh: np.ndarray | None = None,
    ) -> FittedFeatures:
        fresh = feature_matrix(network, self.fresh) if fresh is None else fresh
        residual = distribution.norm(fresh @ solution - np.asarray(self.fresh.target))
        width = network.coefficients.shape[0]
        fitted = network.with_parameters(solution[:width])
        return FittedFeatures(fitted, solution[width:], residual, kind)

    def answer(self, result: Result, history: list[dict]) -> Answer:
        """The best network so far."""
        best = self.best
        assert best is not None
        return Answer(best.network, best.amplitudes, result, best.residual, self.points, history)

    def memory(self, width: int) -> float:
        """Bytes that a stage takes, by what was measured: the matrix and four of its size, and the
        equation at its points."""
        points = self.solver.oversampling * width
        numbers = MATRICES * (width + self.system.columns) + self.system.domain.dimension**2
        return 8.0 * points * numbers

    def fits(self, width: int) -> bool:
        """Whether there is memory for a stage. The first one is refused without it; a later one is
        left out, since there is an answer already."""
        most = largest_that_fits(self.memory, width)
        if most == width:
            return True
        if self.best is None:
            given = f"oversampling = {self.solver.oversampling:g} with {width} features"
            require_memory(self.memory(width), given, f"{most} features would fit.")
        warnings.warn(
            f"The solve ends with fewer than {width} features, which would need about "
            f"{in_words(self.memory(width))} of memory: {most} would fit.",
            MemoryLimitWarning,
            stacklevel=2,
        )
        return False

    def rows(self, width: int) -> Rows:
        collocation = self.system.points(int(self.solver.oversampling * width), self.seed)
        self.points = len(collocation.x)
        return self.shared(collocation)

    def shared(self, points: Points) -> Rows:
        """The rows of the loss, of which each process has a part."""
        return distribution.share(self.system.loss_rows(points, self.seed))

    def attempt(self, rows: Rows, width: int, kind: CandidateKind) -> None:
        """Fit one random network and keep it if it is the best."""
        self.highest = max(self.highest, kind.frequency)
        if kind.axes:
            self.needed.add(kind.features_needed)
        seen, active = self.system.ansatz.inputs, kind.active(self.system)
        network = RandomFeatures(
            seen, width, kind.frequency, self.seed, active, self.solver.activation
        )
        fresh = feature_matrix(network, self.fresh)
        matrix, target = distribution.reduced(
            feature_matrix(network, rows), np.asarray(rows.target)
        )
        for used in self.shares(width):
            columns = np.r_[:used, width : matrix.shape[1]]
            solution = np.zeros(matrix.shape[1])
            functions = self.system.ansatz.singular
            damped = rows.singular.shape[1] if functions.damped else 0
            found = solve_rank_revealing(matrix[:, columns], target, damped=damped)
            solution[columns] = distribution.agreed(found)
            candidate = self.judge(network, solution, kind, fresh)
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
    tolerance, at rounding level, or stops falling below the size of the data. `features` is the
    largest number of them, reached without a tolerance unless the residual is at rounding level;
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
    rules: ClassVar[Mapping[str, Rule]] = {
        "features": whole(1),
        "frequency": positive,
        "activation": one_of("activation", ACTIVATIONS),
        "oversampling": number(LEAST_OVERSAMPLING),
    }

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
        while widths and not search.done and search.has_time(widths[0], clock):
            width, before = widths.pop(0), search.residual
            if not search.fits(width):
                break
            rows = search.rows(width)
            usual = later_candidates if search.best else first_candidates
            choices = usual(search, self.frequency), waves(search, self.frequency)
            for tried, kind in enumerate(itertools.chain(*choices)):
                if tried and not search.has_time(width, clock):
                    break
                began = clock.seconds
                with CompileTimer() as compiling:
                    search.attempt(rows, width, kind)
                # What is compiled serves the next one as well.
                search.cost = (clock.seconds - began - compiling.seconds) / width**2
                budget.progress.update(features=width, residual=search.residual)
                if search.done or search.residual < 0.1 * before < np.inf:
                    break
            history.append(_facts(search, width, clock))
            helps = search.residual <= HELPS * before
            if not widths and self._waves_go_on(search, width, helps):
                widths.append(min(2 * width, LARGEST))
            asked = self.features if budget.tol is None else None
            asked = asked or (search.blind and not search.hopeless)
            if not (helps or asked or search.done or search.late or clock.over):
                if budget.tol is None or not search.has_time(width, clock):
                    break
                if not search.system.enrich():
                    break
                # More features of this kind do not help any more; more singular functions may. The
                # same size is tried again with them.
                assert search.best is not None
                search.renew()
                search.best = search.best._replace(residual=np.inf)
                widths.insert(0, width)

    def _waves_go_on(self, search: "Search", width: int, helps: bool) -> bool:
        """Whether the frequencies of the data get more features than usual: as long as that helps,
        and once where so many should resolve them."""
        if self.features or search.residual <= self.small * search.scale or width >= LARGEST:
            return False
        if helps:
            return bool(search.kind.axes)
        usual = width <= usual_size(search.system.domain.dimension) and not search.hopeless
        return usual and any(width < needed <= LARGEST for needed in search.needed)

    def _verdict(self, search: "Search", clock: Clock, interrupted: bool) -> Result:
        if interrupted:
            return Result.interrupted
        if not search.finite:
            return Result.nonfinite
        if (search.late or clock.over) and not search.done:
            return Result.time_out
        return late_end(search.residual, search.tol, self.small * search.scale)


def _continued(start: Weights) -> tuple[RandomFeatures, np.ndarray, CandidateKind]:
    """An earlier answer as a candidate: its kind is read off its weights."""
    network = start.network
    assert isinstance(network, RandomFeatures)
    weight = np.asarray(network.layers[0][0])
    used = np.any(weight != 0, axis=1)
    d = network.inputs.places
    inputs = (
        "coordinates"
        if not np.any(used[d:])
        else "powers"
        if np.all(used) and network.inputs.powers
        else "interfaces"
    )
    solution = np.concatenate([network.coefficients, start.amplitudes])
    spread = np.std(weight[:d], axis=1)
    axes = spread / np.max(spread) if np.min(spread) < EVEN * np.max(spread) else ()
    frequency = np.max(spread) if len(axes) else np.std(weight[used])
    return network, solution, CandidateKind(float(frequency), inputs, tuple(axes))


def _facts(search: Search, width: int, clock: Clock) -> dict:
    assert search.best is not None
    best = search.best
    return {
        "features": width,
        "singular": search.system.ansatz.singular.count,
        "frequency": best.kind.frequency,
        "inputs": best.kind.inputs,
        "residual": best.residual,
        "seconds": clock.seconds,
    }
