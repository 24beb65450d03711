"""From what is known of the slabs of time to bounds of the error: norms over space and time, and at
each time."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.parabolic.largest import class_of, largest_errors, reaction_of
from cordes.certificates.parabolic.parts import (
    BoundInTime,
    SlabPart,
    citation,
    energy_level,
    rank,
    width_of,
)
from cordes.certificates.parabolic.slab import Energy, Slab
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.hypotheses import Gap
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.comparison import (
    Comparison,
    course,
)
from cordes.certificates.theorems.energy_in_time import Consequences
from cordes.domains.walls import walled_part
from cordes.problems.problem import AbstractProblem

GLOSSES = {
    "V": "u is the continuous viscosity solution",
    "S": "u is a strong solution (one dimension, and TP holds)",
    "C": "TP holds; for almost every x",
}


class AtTime(NamedTuple):
    """Bounds at a time: of ‖v(t)‖, ‖∇v(t)‖ and sup |v(·, t)|; None where there is none."""

    t: float
    L2: float | None
    H1: float | None
    Linf: float | None


@dataclass(frozen=True)
class InTimeBounds:
    """What is known at each time."""

    problem: AbstractProblem
    parts: tuple[SlabPart, ...]
    more: float
    krylov_tso: float | None
    levels: dict[str, str]
    # Whether the boundary values are exact, without which nothing is known of derivatives.
    exact: bool = True

    def at(self, t: float) -> AtTime:
        """Bounds at a time of the user."""
        clock = self.problem.clock
        assert clock is not None
        since = float(clock.time(t))
        part = next(
            (each for each in self.parts if since <= each.slab.start + each.slab.length),
            self.parts[-1],
        )
        largest = [] if self.krylov_tso is None else [self.krylov_tso]
        if part.course is not None:
            largest.append(float(part.course.at(since).largest))
        square = slope = None
        if part.consequences is not None:
            known = _until(part, since)
            norm = part.slab.norm_until(since)
            square = known.L2_at_end(norm)
            slope = known.H1_at_end(norm) if self.exact else None
            values = walled_part(self.problem.domain) is None
            if self.problem.space.dimension == 1 and values:
                largest.append(known.largest(known.at_end(norm), width_of(self.problem)))
        volume = math.sqrt(self.problem.space.volume)
        top = min(largest, default=None)
        squares = [value for value in (square, top and top * volume) if value is not None]
        smallest = min(squares, default=None)
        return AtTime(
            t,
            None if smallest is None else smallest + self.more * volume,
            slope,
            None if top is None else top + self.more,
        )


def _until(part: SlabPart, since: float) -> Consequences:
    """The theorem on the first part of its slab."""
    known = part.consequences
    assert known is not None
    length = max(since - part.slab.start, 1e-12 * part.slab.length)
    fields = known.scheme, known.contraction, known.eigenvalue, length, known.smallest, known.start
    return Consequences(*fields)


class BoundsInTime(NamedTuple):
    """All of them."""

    L2: BoundInTime | None
    H1: float | None
    H2: float | None
    Linf: BoundInTime | None
    energy: tuple[float, float] | None
    lambda_: float | None
    level: str
    known: dict[str, str]
    citations: dict[str, Citation]
    alternatives: dict[str, float]
    classes: dict[str, str]
    in_time: InTimeBounds
    reasons: tuple[Reason, ...]


def bounds_of(problem: AbstractProblem, slabs: Sequence[Slab], gap: Gap) -> BoundsInTime:
    """The smallest bound of each norm."""
    reaction, reaction_level = reaction_of(slabs)
    class_, why = class_of(problem, slabs)
    parts = _parts(slabs, None if class_ is None else reaction)
    more = gap.addition * math.exp(max(-reaction, 0.0) * problem.domain.length)  # pyright: ignore
    tops, reasons = largest_errors(problem, parts, class_, (reaction, reaction_level))
    if why is not None:
        reasons.append(why)
    dimension = problem.domain.dimension
    top = min(tops, key=lambda bound: bound.weighed(dimension), default=None)
    energies = [part for part in parts if part.consequences is not None]
    whole = len(energies) == len(parts) and gap.exact
    squares = [_square(energies)] if whole else []
    if top is not None:
        volume = math.sqrt(problem.domain.volume)
        squares.append(top._replace(value=top.value * volume))
    square = min(squares, key=lambda bound: bound.weighed(dimension), default=None)
    if not whole and energies:
        missed = f"no bounds of ∇v and D²v: the boundary values miss g by {gap.size:.2g}"
        reasons.append(Reason(Why.boundary_gap, missed, {"gap": gap.size}))
    slope = curved = None
    if whole:
        slope = _sum([part.consequences.H1(part.norm) for part in energies])  # pyright: ignore
        curved = _sum([part.consequences.H2(part.norm) for part in energies])  # pyright: ignore
    bracket = _bracket(parts) if whole else None
    first = slabs[0].energy
    levels = _levels(energies, square, top, whole, gap.proved)
    cited = {"L2": square and square.by, "Linf": top and top.by}
    if whole and first is not None:
        cited |= {"H1": citation(first), "H2": citation(first), "energy": citation(first)}
    kt = next((each.value for each in tops if each.by.theorem is Theorem.KT), None)
    return BoundsInTime(
        _raised(square, more * math.sqrt(problem.domain.volume)),
        slope,
        curved,
        _raised(top, more),
        bracket,
        None if bracket is None or first is None else first.scheme.lambda_,
        min(levels.values(), key=rank, default=slabs[0].measure.level),
        levels,
        {name: by for name, by in cited.items() if by is not None},
        {str(each.by): each.value + more for each in tops},
        {} if class_ is None else {class_: GLOSSES[class_]},
        InTimeBounds(problem, tuple(parts), more, kt, levels, gap.exact),
        tuple(reasons),
    )


def _parts(slabs: Sequence[Slab], rate: float | None) -> list[SlabPart]:
    """The slabs one after the other: each begins with the error that the one before it ends
    with."""
    parts: list[SlabPart] = []
    error, start = Comparison(0.0, 0.0), 0.0
    before: Energy | None = None
    for slab in slabs:
        known = None
        energy = slab.energy
        if energy is not None and (before is not None or not parts):
            start = _handed_on(before, energy, start, parts[-1] if parts else None)
            known = Consequences(
                energy.scheme,
                energy.contraction.value,
                energy.trial.eigenvalue,
                slab.length,
                energy.smallest,
                start + slab.jump,
            )
            start = known.at_end(energy.norm.upper)
        before = None if known is None else energy
        path = None if rate is None else course(slab.profile, rate, error.plus(slab.step))
        error = error if path is None else path.end
        parts.append(SlabPart(slab, known, path))
    return parts


def _handed_on(before: Energy | None, after: Energy, start: float, last: SlabPart | None) -> float:
    """N of the next slab from that of the last one: with other M and λ, by ‖∇v‖ and ‖v‖."""
    if before is None or last is None or last.consequences is None:
        return 0.0
    same = np.array_equal(before.trial.matrix, after.trial.matrix)
    if same and before.scheme.lambda_ == after.scheme.lambda_:
        return start
    slope = start / math.sqrt(before.smallest)
    value = last.consequences.L2_at_end(last.norm)
    most = float(np.linalg.eigvalsh(after.trial.matrix)[-1])
    return math.hypot(math.sqrt(most) * slope, math.sqrt(after.scheme.lambda_) * value) * (
        1 + 1e-12
    )


def _sum(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values)) * (1 + 1e-12)


def _square(energies: Sequence[SlabPart]) -> BoundInTime:
    first = energies[0].slab.energy
    assert first is not None
    value = _sum([part.consequences.L2(part.norm) for part in energies])  # pyright: ignore
    return BoundInTime(value, citation(first), energy_level(energies))


def _bracket(parts: Sequence[SlabPart]) -> tuple[float, float] | None:
    """Of ‖ωv_t - Δv + λv‖, where it is the same expression all the time."""
    if len(parts) > 1:
        return None
    energy = parts[0].slab.energy
    if energy is None or not energy.plain:
        return None
    s = energy.contraction.value
    return energy.norm.lower / (1 + s), energy.norm.upper / (1 - s)


def _raised(bound: BoundInTime | None, more: float) -> BoundInTime | None:
    return None if bound is None else bound._replace(value=bound.value + more)


# The largest error --------------------------------------------------------------------------------


def _levels(
    energies: Sequence[SlabPart],
    square: BoundInTime | None,
    top: BoundInTime | None,
    whole: bool,
    proved: bool,
) -> dict[str, str]:
    """How each norm is known; boundary values that were only looked at leave no more than
    quadrature."""
    found: dict[str, Any] = {}
    if square is not None:
        found |= {"L2": square.level, "rms": square.level}
    if top is not None:
        found["Linf"] = top.level
    if whole:
        level = energy_level(energies)
        found |= {"H1": level, "H2": level, "energy": level}
    if proved:
        return found
    least = functools.partial(min, "quadrature", key=rank)
    return {name: least(level) for name, level in found.items()}
