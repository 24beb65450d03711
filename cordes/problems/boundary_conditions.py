"""What is given on the boundary: `Dirichlet`, `Neumann`, `Robin` and `Periodic`, one for all or by
the names of pieces, turned into a domain that knows its conditions and the data on it."""

import dataclasses
import functools
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from jax import Array

import cordes.domains.walls.constants  # noqa: F401
from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.domains.plane.sides import (
    SideData,
    SidePoints,
    has_sides,
    sides_of,
    with_conditions,
)
from cordes.domains.walls import Direction, FaceData, Walled
from cordes.errors import CoefficientError, shown, unknown
from cordes.problems.coefficients import as_function, checked_sample
from cordes.runtime.plain import show

# Data of two faces that differ by more than this share do not fit together where they meet.
FITS = 1e-9
POINTS, SEED = 500, 20_412


@dataclasses.dataclass(frozen=True)
class Dirichlet:
    """u = g on a piece of the boundary."""

    g: Any = 0.0


@dataclasses.dataclass(frozen=True)
class Neumann:
    """∂ₙu = h on a piece of the boundary, with the outer normal."""

    h: Any = 0.0


@dataclasses.dataclass(frozen=True)
class Robin:
    """∂ₙu + κu = h on a piece of the boundary, with a number κ ≥ 0."""

    kappa: float
    h: Any = 0.0

    def __post_init__(self) -> None:
        kappa = self.kappa
        if callable(kappa):
            raise CoefficientError(
                "kappa of a Robin condition is a function: the theorems are for one number on each "
                "piece (a kappa that changes along a side needs its second derivative to be of one "
                "sign, and is not built)."
            )
        number = isinstance(kappa, Real) and not isinstance(kappa, bool)
        if not (number and 0 <= float(kappa) < math.inf):
            raise CoefficientError(
                f"kappa = {shown(kappa)}: a number κ ≥ 0 is needed. With κ < 0 the boundary gives "
                "energy, and no bound holds."
            )


@dataclasses.dataclass(frozen=True)
class Periodic:
    """u goes on at the opposite face."""


Condition = Dirichlet | Neumann | Robin | Periodic


def placed(
    domain: AbstractDomain, g: Any, boundary: Any, signature: str = "x", rows: bool = False
) -> tuple[AbstractDomain, Any]:
    """The domain with its conditions and what is given on it, functions of the `signature`: the
    domain itself and g where values are given everywhere. Where `rows` can meet conditions they may
    be given on any domain of the plane."""
    if boundary is None:
        return domain, g
    if not (isinstance(g, Real) and float(g) == 0.0):
        raise CoefficientError("g and boundary both say what holds on the boundary: pass one.")
    if isinstance(boundary, Dirichlet):
        return domain, boundary.g
    conditions = by_piece(domain, boundary)
    if not isinstance(domain, Box):
        if not rows or not has_sides(domain):
            raise CoefficientError(_only_boxes(domain))
        return _on_sides(domain, conditions)
    walled = Walled(domain, _directions(domain, conditions))
    functions: dict[tuple[int, int], Callable[..., Array]] = {}
    zero = True
    for axis, end in walled.faces:
        name = domain.pieces[2 * axis + end]
        condition = conditions[name]
        given = condition.g if isinstance(condition, Dirichlet) else getattr(condition, "h", None)
        letter = "g" if isinstance(condition, Dirichlet) else "h"
        function, constant = as_function(f"{letter} of {name!r}", given, (), signature)
        functions[axis, end] = function
        zero = zero and constant and bool(function() == 0)
    return walled, FaceData(walled, functions, zero)


def by_piece(domain: AbstractDomain, boundary: Any) -> dict[str, Condition]:
    """The condition of each piece, all of them named."""
    if isinstance(boundary, Condition):
        return dict.fromkeys(domain.pieces, boundary)
    pieces = ", ".join(map(repr, domain.pieces))
    if not isinstance(boundary, dict):
        raise CoefficientError(
            f"boundary = {shown(boundary)}: cordes.Dirichlet(g), Neumann(h), Robin(kappa, h) or "
            f"Periodic(), or a dict from the names of pieces to these. Here they are {pieces}."
        )
    given = dict(boundary)
    # Of plates with holes `outer` is a piece, and holes are named.
    rest = None if "outer" in domain.pieces else given.pop("outer", None)
    known = piece_names(domain)
    for name, condition in boundary.items():
        if name != "outer" and name not in known:
            raise unknown("piece of the boundary", name, known)
        if not isinstance(condition, Condition):
            raise CoefficientError(
                f"boundary[{name!r}] = {shown(condition)}: cordes.Dirichlet(g), Neumann(h), "
                "Robin(kappa, h) or Periodic() is needed."
            )
    names = {name: piece for piece, name in _finest(domain, given)}
    found: dict[str, Any] = {
        name: given.get(name, given.get(piece, rest)) for name, piece in names.items()
    }
    missing = [name for name, condition in found.items() if condition is None]
    if missing:
        raise CoefficientError(
            f"boundary says nothing about {', '.join(map(repr, missing))}: name all pieces "
            f"({pieces}), or give 'outer' for the rest."
        )
    return found


def piece_names(domain: AbstractDomain) -> list[str]:
    """Those of `domain.pieces`, and of their parts where they have several sides."""
    if isinstance(domain, Box) or not has_sides(domain):
        return list(domain.pieces)
    sides = sides_of(domain)
    several = [name for piece, name in sides if sum(piece == one for one, _ in sides) > 1]
    return [*domain.pieces, *several]


def _finest(domain: AbstractDomain, given: dict[str, Any]) -> list[tuple[str, str]]:
    """The pieces, each with its name, and in place of one of which a part is named its parts."""
    plain = isinstance(domain, Box) or not has_sides(domain)
    if plain or set(given) <= set(domain.pieces):
        return [(piece, piece) for piece in domain.pieces]
    sides = sides_of(domain)
    split = {piece for piece, name in sides if name in given}
    return list(dict.fromkeys((piece, name if piece in split else piece) for piece, name in sides))


def _on_sides(domain: AbstractDomain, conditions: dict[str, Condition]) -> tuple[Region, SideData]:
    """Any domain of the plane, with a condition on each arc of its boundary."""
    kappas, functions, zero, names = [], [], True, []
    for piece, name in sides_of(domain):
        label = name if name in conditions else piece
        condition = conditions[label]
        if isinstance(condition, Periodic):
            raise CoefficientError(f"boundary[{label!r}] is Periodic(), which is for boxes.")
        value = isinstance(condition, Dirichlet)
        given = condition.g if value else condition.h
        function, constant = as_function(f"{'g' if value else 'h'} of {label!r}", given, ())
        functions.append(function)
        kappas.append(_kappa(condition))
        names.append(label)
        zero = zero and constant and bool(function() == 0)
    region = with_conditions(domain, kappas, names)
    return region, SideData(region, tuple(functions), zero)


def _only_boxes(domain: AbstractDomain) -> str:
    return (
        f"boundary: on {type(domain).__name__} domains values are given, boundary=Dirichlet(g) on "
        "the whole boundary; Neumann, Robin and Periodic conditions are for boxes, and in the "
        "plane, for Linear problems, on any domain. Elsewhere no function fulfils them by "
        "construction, and at obtuse corners ‖D²v‖ ≤ ‖Δv‖ fails for Robin conditions (by 5 % on a "
        "pentagon with κ = 0 beside 5), at D–N angles above 90° u has no square integrable second "
        "derivatives."
    )


def _directions(box: Box, conditions: dict[str, Condition]) -> list[Direction]:
    found = []
    for axis, (low, high) in enumerate(zip(box.lower, box.upper, strict=True)):
        names = box.pieces[2 * axis : 2 * axis + 2]
        both = [conditions[name] for name in names]
        periodic = [isinstance(each, Periodic) for each in both]
        if periodic[0] != periodic[1]:
            raise CoefficientError(
                f"boundary: {names[periodic.index(True)]!r} is Periodic() and the opposite face is "
                "not; a periodic direction needs both."
            )
        first, last = map(_kappa, both)
        found.append(Direction(float(low), float(high), first, last, periodic[0]))
    return found


def _kappa(condition: Condition) -> float | None:
    if isinstance(condition, Robin):
        return float(condition.kappa)
    return 0.0 if isinstance(condition, Neumann) else None


@functools.singledispatch
def check_data(data: Any) -> bool:
    """Refuse data that are no numbers, or that do not fit together where two faces meet; False
    where there is one function for the whole boundary, which is not looked at here."""
    return False


@check_data.register
def _(data: FaceData) -> bool:
    """Where data do not fit u is not in H², and a function that is cannot fulfil both."""
    domain = data.domain
    points, normals = domain.boundary_points(POINTS, SEED)
    for axis, end in domain.faces:
        here = points[normals[:, axis] == (1.0 if end else -1.0)]
        name = domain.pieces[2 * axis + end]
        if len(here):
            label = f"what is given on {name!r}"
            checked_sample(label, data.functions[axis, end], (), here, " of the boundary")
    found = domain.mismatch(data)
    if found is None or found[0] <= FITS:
        return True
    size, place, (one, other) = found
    raise CoefficientError(
        f"The data of {one!r} and {other!r} do not fit together where the two meet, near x = "
        f"{show(place)}: what one says there of the other differs by {size:.2g} of its size. Then "
        "second derivatives of u are not square integrable (values that jump, or a slope along a "
        "face that is not the normal derivative given on the next one, r log r), and nothing is "
        "solved or bounded. Change the data near that place so that they fit."
    )


@check_data.register
def _(data: SideData) -> bool:
    """Values that jump are refused: then u is not continuous."""
    arcs, corners, size = data.domain.arcs, {}, 0.0
    for k, arc in enumerate(arcs):
        points = SidePoints.on(arcs[k : k + 1], [np.linspace(0, 1, POINTS)]).x
        label = f"what is given on {arc.piece!r}"
        values = checked_sample(label, data.functions[k], (), points, " of the boundary")
        if arc.kappa is None:
            size = max(size, float(np.max(np.abs(values))))
            for point, value in ((arc.start, values[0]), (arc.end, values[-1])):
                corners.setdefault(point, []).append(float(value))
    for point, values in corners.items():
        if np.ptp(values) > FITS * max(size, 1e-300):
            raise CoefficientError(
                f"The values given on two sides jump at x = {show(np.array(point))}, from "
                f"{values[0]:.6g} to {values[-1]:.6g}: u is not continuous there, and no theorem "
                "holds. Change them near that place so that they agree."
            )
    return True


def refuse_unknown_constant(domain: AbstractDomain, has_reaction: bool) -> None:
    """Equations on domains with sides whose answers are known up to a constant at most."""
    if not isinstance(domain, Region) or has_reaction:
        return
    if all(arc.kappa == 0 for arc in domain.arcs):
        raise CoefficientError(
            "boundary: no value of u is given anywhere and c = 0, so that u is known up to a "
            "constant at most, and there is a solution for one constant on the right only. It is "
            "found on boxes. Give u on a side, Robin(kappa, h) on one, or c > 0."
        )


def refuse_free(domain: AbstractDomain, has_reaction: bool) -> None:
    """Equations with controls whose answers are known up to a constant at most."""
    if isinstance(domain, Walled) and domain.free and not has_reaction:
        raise CoefficientError(
            "boundary: no value of u is given anywhere and c = 0, so that u is known up to a "
            "constant at most and the equation has a solution for one constant on the right only, "
            "which is found for linear problems alone. Give u on a face, or c > 0."
        )
