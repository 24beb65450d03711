"""Which random networks compete at one size: frequencies, and what the features see.

A few usual frequencies serve most problems. Where they leave a residual of the size of the data,
nothing has been found yet, and the frequencies of the data themselves compete: an equation with
smooth coefficients turns a wave of u into the same wave of its right-hand side.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from cordes.ansatz.points import Points
from cordes.solvers.rows.system import AbstractSystem

FIRST_FREQUENCIES = (1.0, 2.0, 4.0)
GROWTH = 1.6
# Inputs that leave a smaller share than this at the first size need no rival.
PROMISING = 1e-4
# The same where an interface of a jump meets a smooth boundary. Away from there the solution is
# smooth on both sides of it, for which φ|φ| is right however few features are; other inputs win by
# chance at first and get no better.
PROMISING_JUMP = 0.1
# Of a larger share than this of the data a fit has found nothing.
BLIND = 0.1
# The frequencies of the data: points at which they are looked at, and the distance of the second
# point of each pair, as a share of the width of the domain.
PAIRS, PAIRS_SEED, APART = 2048, 7_770_007, 1e-3
# Features for each product of frequencies: half as many leave a residual of 1e-2, so many one of
# 1e-8.
RESOLVING = 3.3


class CandidateKind(NamedTuple):
    """A kind of random features: the deviation of the hidden weights, which inputs have some, and
    the share of the deviation that each coordinate gets (none: all the same)."""

    frequency: float
    inputs: str
    axes: tuple[float, ...] = ()

    @property
    def features_needed(self) -> float:
        """About how many features resolve waves of these frequencies."""
        return RESOLVING * float(np.prod(self.frequency * np.array(self.axes)))

    def raised(self, factor: float = GROWTH) -> "CandidateKind":
        return self._replace(frequency=factor * self.frequency)

    def active(self, system: AbstractSystem) -> np.ndarray:
        """The share of each input."""
        seen = system.ansatz.inputs
        shares = np.full(seen.count, min(1.0, FIRST_FREQUENCIES[1] / self.frequency))
        shares[: len(self.axes)] = self.axes
        return seen.active(self.inputs) * (shares if self.axes else 1.0)


class Contestants(Protocol):
    """What candidates see of a search for the best network."""

    system: AbstractSystem
    scale: float

    @property
    def kind(self) -> CandidateKind: ...
    @property
    def residual(self) -> float: ...
    @property
    def blind(self) -> bool: ...


def input_choices(system: AbstractSystem) -> list[str]:
    """The inputs that may compete, given the most that a network may see."""
    most = system.options.inputs if system.ansatz.inputs.interfaces else "coordinates"
    return {
        "coordinates": ["coordinates"],
        "interfaces": ["interfaces", "coordinates"],
        "powers": ["interfaces", "powers", "coordinates"],
    }[most]


def first_candidates(
    search: Contestants, frequency: float | None, choices: list[str] | None = None
) -> Iterator[CandidateKind]:
    """At the first size, inputs compete with the middle frequency, then frequencies with the best
    inputs; each choice sees what the last one gave."""
    low, middle, high = FIRST_FREQUENCIES
    system = search.system
    promising = PROMISING_JUMP if system.jump_meets_boundary else PROMISING
    for inputs in choices or input_choices(system):
        yield CandidateKind(frequency or middle, inputs)
        if search.residual < promising * search.scale:
            break
    if frequency is None:
        inputs, before = search.kind.inputs, search.residual
        yield CandidateKind(high, inputs)
        if search.residual == before:
            yield CandidateKind(low, inputs)


def later_candidates(search: Contestants, frequency: float | None) -> Iterator[CandidateKind]:
    """At a larger size the frequency may only rise; where it is that of the data it need not."""
    best = search.kind
    if not (frequency or best.axes):
        yield best.raised()
    yield best


def waves(search: Contestants, frequency: float | None) -> Iterator[CandidateKind]:
    """The frequencies of the data along each axis, where all others have found nothing; then half
    the highest along all axes, since a boundary that bends turns waves."""
    seen = search.system.ansatz.inputs
    if frequency is None and search.blind and seen.coordinates is None:
        found = data_frequencies(search.system)
        highest, inputs, before = float(np.max(found)), search.kind.inputs, search.kind
        for frequency, axes in ((highest, found / highest), (highest / 2, np.ones(len(found)))):
            kind = CandidateKind(frequency, inputs, tuple(axes))
            if search.blind and kind != before:
                yield kind


def data_frequencies(system: AbstractSystem) -> np.ndarray:
    """Mean size of the derivative of the right-hand side (the lift's part included) along each
    scaled coordinate, over its own: k for sin(kx). Means of absolute values, to which a jump gives
    no more than its height; differences of values, since a frozen equation has nothing else."""
    domain, scale = system.domain, system.ansatz.inputs.scale
    x, weight = system.fresh_points(PAIRS_SEED, PAIRS)

    def target(x: np.ndarray) -> np.ndarray:
        return np.asarray(system.rows(Points(x, np.ones(len(x)))).target)[: len(x)]

    here, found = target(x), []
    for step in np.diag(2 * APART * scale):
        near = x + step
        change = np.where(domain.contains(near), np.abs(target(near) - here), 0.0)
        found.append(weight**2 @ change / (2 * APART))
    size = max(float(weight**2 @ np.abs(here)), 1e-300)
    return np.maximum(np.array(found) / size, FIRST_FREQUENCIES[1])
