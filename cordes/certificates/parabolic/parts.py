"""Bounds in time, what is known of a slab, and how it is known."""

from collections.abc import Sequence
from typing import NamedTuple

from cordes.certificates.level import LEVELS, enough
from cordes.certificates.parabolic.slab import Energy, Slab
from cordes.certificates.theorem import Citation, Modifier
from cordes.certificates.theorems.comparison import (
    CourseInTime,
)
from cordes.certificates.theorems.energy import is_identity
from cordes.certificates.theorems.energy_in_time import Consequences
from cordes.problems.problem import AbstractProblem

# A bound whose level is not enough must be so many times smaller to be preferred.
HANDICAP = 10.0


class BoundInTime(NamedTuple):
    """A bound, by which theorem, and how it is known."""

    value: float
    by: Citation
    level: str

    def weighed(self, dimension: int) -> float:
        return self.value * (1.0 if enough(self.level, dimension) else HANDICAP)


class SlabPart(NamedTuple):
    """A slab with the theorems that are applied to it."""

    slab: Slab
    consequences: Consequences | None
    course: CourseInTime | None

    @property
    def norm(self) -> float:
        assert self.slab.energy is not None
        return self.slab.energy.norm.upper


def energy_level(energies: Sequence[SlabPart]) -> str:
    return min((_level_of(part.slab) for part in energies), key=rank)


def _level_of(slab: Slab) -> str:
    assert slab.energy is not None
    if slab.energy.contraction.source == "sampled":
        return "sampled"
    return slab.level


def rank(level: str) -> int:
    return LEVELS.index(level.partition(" ")[0])


def citation(energy: Energy) -> Citation:
    cited = energy.scheme.theorem
    if not is_identity(energy.trial.matrix):
        cited = cited.with_(Modifier.preconditioned)
    return cited if energy.scheme.shift == 0 else cited.with_(Modifier.growing)


def width_of(problem: AbstractProblem) -> float:
    lower, upper = problem.space.bounding_box
    return float(upper[0] - lower[0])


def contraction_level(energies: Sequence[SlabPart]) -> str:
    sources = [part.slab.energy.contraction.source for part in energies]  # pyright: ignore
    return "sampled" if "sampled" in sources else "enclosed"
