"""Inner solvers of the outer loop: what each method does with one frozen linear equation after the
other."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cordes.ansatz.ansatz import Rows
from cordes.results import Result
from cordes.runtime.progress import Progress
from cordes.solvers.answer import Answer
from cordes.solvers.least_squares import (
    GROWTH,
    OVERSAMPLING,
    Search,
    first_candidates,
    stage_widths,
    usual_size,
)
from cordes.solvers.system import Clock, System
from cordes.solvers.training import State, initial_state

# Features of a higher frequency than this share of their number per direction are not resolved; a
# frequency is raised further if that helps so much.
RESOLVED, HELPS = 0.8, 0.7


class FeatureSteps:
    """Least squares. One kind of random features serves all steps of one size; the network grows
    when it, and not the linearisation, limits the residual: most steps are taken with small
    networks. When it cannot grow any more, singular functions are tried (two dimensions).
    `confined` forbids to grow."""

    def __init__(
        self,
        system: System,
        seed: int,
        clock: Clock,
        extra_rows: Rows | None,
        singular: bool,
        features: int | None = None,
        frequency: float | None = None,
        activation: str = "sine",
        oversampling: float = OVERSAMPLING,
        demanding: bool = False,
        inputs: list[str] | None = None,
        staged: bool = False,
    ):
        """`inputs` are those that compete at the start; `staged` keeps sizes beyond the usual one
        back until `extend` is called."""
        self.search = Search(system, None, seed, activation, extra_rows, oversampling)
        self.clock, self.given = clock, frequency
        self.widths = stage_widths(system.domain.dimension, features, None, demanding)
        self.width = self.widths.pop(0)
        usual = usual_size(system.domain.dimension)
        self.reserve = [width for width in self.widths if staged and width > usual]
        self.widths = [width for width in self.widths if width not in self.reserve]
        self.kind: tuple[float, str] | None = None
        self.grown, self.stages = False, 0
        self.singular = singular
        self.inputs = inputs
        self.confined = False

    def solve(self, system: System, start: State | None) -> Answer:
        search = self.search
        search.best = None
        search.renew()
        rows = search.rows(self.width)
        self._largest = 0.0
        for choice in self._choices():
            search.attempt(rows, self.width, *choice)
            self._largest = max(self._largest, choice[0])
            if search.done or self.clock.over:
                break
        best = search.best
        assert best is not None
        self.kind, self.grown = (best.frequency, best.inputs), False
        return Answer(
            best.network, best.amplitudes, Result.converged, best.residual, search.points, []
        )

    def _choices(self) -> Iterator[tuple[float, str]]:
        """Frequencies and inputs that compete now; each choice sees what the last one gave."""
        if self.kind is None:
            yield from first_candidates(self.search, self.given, self.inputs)
        elif self.grown and self.given is None:
            frequency, inputs = self.kind
            yield frequency * GROWTH, inputs
            yield self.kind
            if self.stages == 1 and self._best() == frequency:
                # The start may have been rougher than the solution, so that the frequency may fall
                # once; later it can only rise.
                yield frequency / GROWTH, inputs
        else:
            yield self.kind
            return
        # Oscillating solutions need more than one stage can guess: on as long as it helps, up to
        # what so many features can resolve.
        limit, residual = RESOLVED * self.width ** (1 / self.search.system.domain.dimension), np.inf
        while (
            self.given is None
            and self._best() >= self._largest
            and self.search.residual < HELPS * residual
        ):
            assert self.search.best is not None
            frequency, residual = self._best() * GROWTH, self.search.residual
            if frequency > limit:
                break
            yield frequency, self.search.best.inputs

    def _best(self) -> float:
        assert self.search.best is not None
        return self.search.best.frequency

    def refine(self, system: System) -> bool:
        if self.confined:
            return False
        if self.widths:
            self.width, self.grown, self.stages = self.widths.pop(0), True, self.stages + 1
            return True
        if self.singular and system.find_singular():
            self.singular = False
            return True
        return False

    def extend(self, system: System) -> bool:
        """On to the sizes that were kept back, if there are any."""
        self.widths, self.reserve = [*self.widths, *self.reserve], []
        return bool(self.widths) and self.refine(system)


class TrainedSteps:
    """Gauss–Newton or Adam: the network that one step leaves is where the next one starts. There is
    always more to train."""

    def __init__(
        self,
        solver: Callable[..., Answer],
        seed: int,
        clock: Clock,
        progress: Progress,
        first: dict[str, Any],
        later: dict[str, Any],
    ):
        self.solver, self.seed, self.clock, self.progress = solver, seed, clock, progress
        self.first, self.later = first, later

    def solve(self, system: System, start: State | None) -> Answer:
        options = self.first if start is None else self.later
        if options.get("epochs") == 0:
            return untrained(system, self.seed, options)
        return self.solver(system, None, self.seed, self.clock, self.progress, start, **options)

    def refine(self, system: System) -> bool:
        return True


def untrained(system: System, seed: int, options: dict[str, Any]) -> Answer:
    """A fresh network as it is: the start without a warm-up."""
    width, depth, activation = (
        options.get("width", 64),
        options.get("depth", 4),
        options.get("activation", "silu"),
    )
    state = initial_state(system, None, width, depth, activation, seed, "uniform")
    return Answer(state.network, state.amplitudes, Result.converged, math.inf, 0, [])
