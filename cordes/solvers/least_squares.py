"""Least squares: with frozen hidden weights a linear equation is one rank-revealing solve.

The number and the frequency of the features grow until the residual on fresh points meets the
tolerance, reaches rounding level, or stops falling. At each size a few candidates compete on fresh
points: the frequency reached so far, a higher one, and (first stage) which inputs the features see.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cordes.ansatz.ansatz import COLUMNS, Rows, feature_matrix
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.progress import Progress
from cordes.solvers.answer import Answer
from cordes.solvers.rank_revealing import solve_rank_revealing
from cordes.solvers.system import Clock, System
from cordes.solvers.training import State, stack

# Without a tolerance a fresh residual below this share of the target's size is good enough: the
# error is then near rounding level.
ROUNDING = 1e-10
OVERSAMPLING = 2.5
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


class Candidate(NamedTuple):
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


class Search:
    """Random networks compete on fresh points; the best one so far is kept."""

    def __init__(
        self,
        system: System,
        tol: float | None,
        seed: int,
        activation: str,
        extra_rows: Rows | None,
        oversampling: float = OVERSAMPLING,
    ):
        self.oversampling = oversampling
        self.system, self.tol, self.seed, self.activation, self.extra_rows = (
            system,
            tol,
            seed,
            activation,
            extra_rows,
        )
        self.best: Candidate | None = None
        self.points = 0
        self.renew()

    def renew(self) -> None:
        """Fresh rows, at the start and after the singular functions changed."""
        self.fresh = distribution.share(
            stack(self.system.rows(self.system.fresh_points(self.seed)), self.extra_rows)
        )
        self.scale = max(distribution.norm(self.fresh.target), 1e-300)

    @property
    def residual(self) -> float:
        return self.best.residual if self.best else np.inf

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
    ) -> Candidate:
        fresh = feature_matrix(network, self.fresh) if fresh is None else fresh
        residual = distribution.norm(fresh @ solution - np.asarray(self.fresh.target))
        width = network.coefficients.shape[0]
        return Candidate(
            network.with_parameters(solution[:width]), solution[width:], residual, frequency, inputs
        )

    def rows(self, width: int) -> Rows:
        collocation = self.system.points(int(self.oversampling * width), self.seed)
        self.points = len(collocation.x)
        return distribution.share(stack(self.system.rows(collocation), self.extra_rows))

    def attempt(self, rows: Rows, width: int, frequency: float, inputs: str) -> None:
        """Fit one random network and keep it if it is the best."""
        ansatz = self.system.ansatz
        network = RandomFeatures(
            ansatz.inputs,
            width,
            frequency,
            self.seed,
            ansatz.inputs.active(inputs),
            self.activation,
        )
        fresh = feature_matrix(network, self.fresh)
        matrix, target = distribution.reduced(
            feature_matrix(network, rows), np.asarray(rows.target)
        )
        for used in self.shares(width):
            columns = np.r_[:used, width : matrix.shape[1]]
            solution = np.zeros(matrix.shape[1])
            solution[columns] = distribution.agreed(
                solve_rank_revealing(matrix[:, columns], target, damped=rows.singular.shape[1])
            )
            candidate = self.judge(network, solution, frequency, inputs, fresh)
            if self.best is None or not candidate.residual >= self.best.residual:
                self.best = candidate
            if self.done:
                break

    def shares(self, width: int) -> list[int]:
        """How many of the features are tried: a loose tolerance is met by few, which leave a
        smoother residual that is cheaper to certify."""
        return (
            [width // 8, width // 3, width]
            if self.tol is not None and width <= COLUMNS
            else [width]
        )


def solve_least_squares(
    system: System,
    tol: float | None,
    seed: int,
    clock: Clock,
    progress: Progress,
    start: State | None = None,
    extra_rows: Rows | None = None,
    features: int | None = None,
    frequency: float | None = None,
    activation: str = "sine",
    oversampling: float = OVERSAMPLING,
) -> Answer:
    """Grow until the residual on fresh points is at most `tol`, or stops falling."""
    search = Search(system, tol, seed, activation, extra_rows, oversampling)
    history: list[dict] = []
    interrupted = False
    if start is not None:
        search.best = search.judge(*_continued(start))
    widths = stage_widths(
        system.domain.dimension,
        features,
        start.network.coefficients.shape[0] if start else None,
        tol is not None,
    )
    try:
        while widths and not search.done and not (clock.over and search.best):
            width, before = widths.pop(0), search.residual
            rows = search.rows(width)
            for choice in _candidates(search, frequency):
                search.attempt(rows, width, *choice)
                progress.update(features=width, residual=search.residual)
                if search.done or clock.over or search.residual < 0.1 * before < np.inf:
                    break
            history.append(_facts(search, width, clock))
            if search.residual > HELPS * before and not search.done and not clock.over:
                if tol is None or not system.enrich():
                    break
                # More features of this kind do not help any more; more singular functions may. The
                # same size is tried again with them.
                assert search.best is not None
                search.renew()
                search.best = search.best._replace(residual=np.inf)
                widths.insert(0, width)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        interrupted = True
    best = search.best
    assert best is not None
    return Answer(
        best.network,
        best.amplitudes,
        _verdict(search, clock, interrupted),
        best.residual,
        search.points,
        history,
    )


def _continued(start: State) -> tuple[RandomFeatures, np.ndarray, float, str]:
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
    return (
        network,
        np.concatenate([network.coefficients, start.amplitudes]),
        float(np.std(weight[used])),
        inputs,
    )


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
    if best is not None:
        yield from (
            [(frequency, best.inputs)]
            if frequency
            else [(best.frequency * GROWTH, best.inputs), (best.frequency, best.inputs)]
        )
    else:
        yield from first_candidates(search, frequency)


def input_choices(system: System) -> list[str]:
    """The inputs that may compete, given the most that a network may see."""
    most = system.inputs if system.ansatz.inputs.interfaces else "coordinates"
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
    for inputs in choices or input_choices(system):
        yield frequency or middle, inputs
        if (
            search.residual
            < (PROMISING_JUMP if system.jump_meets_boundary else PROMISING) * search.scale
        ):
            break
    if frequency is None:
        assert search.best is not None
        inputs, before = search.best.inputs, search.residual
        yield high, inputs
        if search.residual == before:
            yield low, inputs


def _verdict(search: Search, clock: Clock, interrupted: bool) -> Result:
    if interrupted:
        return Result.interrupted
    if not np.isfinite(search.residual):
        return Result.nonfinite
    if search.done:
        return Result.converged
    if clock.over:
        return Result.time_out
    if search.tol is not None:
        return Result.tolerance_not_reached
    return Result.converged if search.residual <= 1e-3 * search.scale else Result.stagnated
