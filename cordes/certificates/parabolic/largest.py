"""The largest error in time: comparison, the one-dimensional energy and Krylov and Tso."""

import math
from collections.abc import Sequence

from cordes.certificates.parabolic.parts import (
    BoundInTime,
    SlabPart,
    citation,
    contraction_level,
    energy_level,
    rank,
    width_of,
)
from cordes.certificates.parabolic.slab import Slab
from cordes.certificates.reason import Reason, Why
from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.comparison import (
    krylov_tso_constant,
)
from cordes.domains.walls import walled_part
from cordes.formulas.regularity import jump
from cordes.problems.problem import AbstractProblem


def reaction_of(slabs: Sequence[Slab]) -> tuple[float, str]:
    found = [slab.coverage.smallest_reaction() for slab in slabs]
    sampled = any(source == "sampled" for _, source in found)
    return min(value for value, _ in found), "sampled" if sampled else "enclosed"


def class_of(problem: AbstractProblem, slabs: Sequence[Slab]) -> tuple[str | None, Reason | None]:
    """In which class of solutions comparison holds: with TP strong solutions, else viscosity
    solutions, which need continuous coefficients; where a flux is given neither is shown."""
    if walled_part(problem.domain) is not None:
        sentence = "no bound of the largest error: comparison is not shown where a flux is given"
        return None, Reason(Why.no_theorem, sentence)
    if all(slab.energy is not None for slab in slabs):
        return ("S" if problem.space.dimension == 1 else "C"), None
    for name, function in problem.data().items():
        found = jump(function, problem.domain)
        if found is not None:
            sentence = (
                "no bound of the largest error: TP does not hold, and comparison of viscosity"
            )
            sentence += f" solutions needs continuous coefficients; {name}: {found}"
            return None, Reason(Why.jump, sentence)
    return "V", None


def largest_errors(
    problem: AbstractProblem,
    parts: Sequence[SlabPart],
    class_: str | None,
    reaction: tuple[float, str],
) -> tuple[list[BoundInTime], list[Reason]]:
    """All bounds of the largest error."""
    found: list[BoundInTime] = []
    d = problem.space.dimension
    energies = [part for part in parts if part.consequences is not None]
    if class_ is not None:
        levels = [part.slab.profile_level for part in parts] + [reaction[1]]
        if class_ in "SC":
            levels.append(contraction_level(energies))
        value = max(part.course.largest for part in parts if part.course is not None)
        by = Citation(Theorem.M1, f"class {class_}")
        found.append(BoundInTime(value, by, min(levels, key=rank)))
    if len(energies) == len(parts) and d == 1 and walled_part(problem.domain) is None:
        width = width_of(problem)
        each = [(part.consequences, part.norm) for part in energies if part.consequences]
        value = max(found.largest(found.highest(norm), width) for found, norm in each)
        first = energies[0].slab.energy
        assert first is not None
        found.append(BoundInTime(value, citation(first), energy_level(energies)))
    reasons = []
    if class_ is not None and class_ in "SC":
        kt = _krylov_tso(problem, parts, energies, class_, reaction)
        if isinstance(kt, BoundInTime):
            found.append(kt)
        elif kt is not None:
            reasons.append(kt)
    return [bound for bound in found if math.isfinite(bound.value)], reasons


def _krylov_tso(
    problem: AbstractProblem,
    parts: Sequence[SlabPart],
    energies: Sequence[SlabPart],
    class_: str,
    reaction: tuple[float, str],
) -> BoundInTime | Reason | None:
    if reaction[0] < 0:
        sentence = f"KT needs c ≥ 0, and c may be {reaction[0]:.4g}"
        return Reason(Why.negative_reaction, sentence, {"smallest": reaction[0]})
    determinants = [part.slab.coverage.smallest_determinant() for part in parts]
    least = min(value for value, _ in determinants)
    if not least > 0:
        return None
    norms = [part.slab.power for part in parts]
    if not all(norm.converged for norm in norms):
        return None
    p = problem.domain.dimension
    total = sum(norm.upper**p for norm in norms) ** (1 / p)
    value = krylov_tso_constant(problem.space) * total / least ** (1 / p) * (1 + 1e-12)
    value += sum(part.slab.step for part in parts)
    levels = ["enclosed" if part.slab.power.enclosed else part.slab.measure.level for part in parts]
    levels += [reaction[1], contraction_level(energies)]
    levels += ["sampled" for _, source in determinants if source == "sampled"]
    return BoundInTime(value, Citation(Theorem.KT, f"class {class_}"), min(levels, key=rank))
