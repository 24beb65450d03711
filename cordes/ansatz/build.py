"""The ansatz of a problem: which lift, inputs and singular functions it has, from a few options.

What follows from a problem alone is made once and serves all its solves, with what is compiled for
it: other seeds or sizes do not prepare it again.
"""

import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.singular import SingularFunctions, SingularPoint, curves, find_singular_points
from cordes.ansatz.singular.curves_in_time import Curve, bent
from cordes.ansatz.singular.kinks import KinkPart, kink_parts, kinked
from cordes.ansatz.singular.layers import FaceLayer, layered
from cordes.ansatz.singular.similarity import (
    Front,
    Fronts,
    SimilarityFunctions,
    modulations,
)
from cordes.arguments import check_fields, flag, number, one_of, positive
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import Fit
from cordes.errors import OptionError, shown
from cordes.problems.kinks.compatibility import incompatible_faces
from cordes.problems.problem import AbstractProblem

INPUTS = ("coordinates", "interfaces", "powers")
# Generic powers of |φ| for solutions that are rougher at an interface than a jump of D²u; chosen
# once, without looking at any exact solution.
POWERS = (2.25, 2.5, 3.0, 3.5)
# Largest exponent and angular degree of the singular functions, by richness.
RICHNESS = ((4.0, 5), (5.0, 6), (6.0, 8))
AFFORDABLE = 300
RULES = {
    "boundary_weight": positive,
    "singular": flag,
    "inputs": one_of("inputs", INPUTS),
    "delta": number(0.0),
}


@dataclasses.dataclass(frozen=True)
class AnsatzOptions:
    """How the boundary values are met (`hard`: by construction; `soft`: the paper's composite loss
    with a weight), whether there are singular functions, what networks see of the interfaces
    (nothing, φ|φ|, or φ|φ| and generic powers), and δ in the multiplier."""

    boundary: str = "hard"
    boundary_weight: float = 100.0
    singular: bool = True
    inputs: str = "powers"
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.boundary, str) or self.boundary not in ("hard", "soft"):
            raise OptionError(
                f"boundary_rows = {shown(self.boundary)}: 'hard' (exact by construction) or 'soft' "
                "(the paper's composite loss). What holds on the boundary is said by the problem: "
                "cordes.Linear(…, boundary=cordes.Neumann(h))."
            )
        check_fields(RULES, self)

    @property
    def hard(self) -> bool:
        return self.boundary == "hard"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(cls))

    @classmethod
    def kept_in(cls, facts: dict[str, Any]) -> "AnsatzOptions":
        """Those that the facts of a solution hold; the paper's, which has plain inputs and no
        singular functions, where they hold none."""
        return cls(
            **{"singular": False, "inputs": "coordinates"}
            | {name: facts[name] for name in cls.names() if name in facts}
        )


class Earlier(NamedTuple):
    """What an earlier ansatz of the same problem had, and another one takes as it is."""

    richness: int | None = None
    singular_points: list[SingularPoint] | None = None
    fit: Fit | None = None


NOTHING = Earlier()


def plain_ansatz(
    problem: AbstractProblem, hard: bool, inputs: str, fit: Fit | None = None
) -> Ansatz:
    """Without singular functions."""
    make = functools.partial(_made, problem, hard, inputs, fit)
    return prepared(problem, (hard, inputs), make) if fit is None else make()


def _made(problem: AbstractProblem, hard: bool, inputs: str, fit: Fit | None) -> Ansatz:
    if problem.base is not None:
        return Ansatz(problem.domain, None, hard=False, base=problem.base)
    shown = problem.interfaces if inputs != "coordinates" else ()
    return Ansatz(
        problem.domain,
        _boundary_values(problem),
        problem.interfaces,
        Inputs(
            problem.domain,
            shown,
            POWERS if shown and inputs == "powers" else (),
            problem.domain.coordinates if hard else None,
        ),
        hard=hard,
        fit=fit,
        kinks=kinked(parts, _size(problem)) if hard and (parts := kinks_of(problem)) else None,
    )


def singular_functions(
    problem: AbstractProblem, points: list[SingularPoint], richness: int
) -> SingularFunctions | SimilarityFunctions:
    """Those of the singular points, the more of them the richer; in time, those of the kinks of
    the initial values."""
    if isinstance(problem.domain, Cylinder):
        return _similar(problem, richness)
    largest, degree = RICHNESS[richness]
    curved = prepared(
        problem,
        "curves",
        lambda: [
            *curves(problem.domain, problem.interfaces),
            *(part.curves() for part in kinks_of(problem)),
        ],
    )
    return SingularFunctions(problem.domain, points, largest, degree, curved)


def _fronts(problem: AbstractProblem) -> Fronts:
    """The kinks of the initial values, with the matrices that smooth them."""

    def made() -> Fronts:
        values, kinks = problem.values, problem.start.kinks
        fronts = tuple(Front(kink, problem.smoothing(kink), values.initial) for kink in kinks)
        return Fronts(problem.start, fronts, values.initial, values.start)

    return prepared(problem, "fronts", made)


def _layers(problem: AbstractProblem) -> tuple[FaceLayer, ...]:
    """Those of faces on which the equation does not hold at the start."""

    def made() -> tuple[FaceLayer, ...]:
        return tuple(
            FaceLayer(face, problem.matrix_at_start(face)) for face in incompatible_faces(problem)
        )

    return prepared(problem, "layers", made)


def _boundary_values(problem: AbstractProblem) -> Callable[..., Any] | None:
    """What the lift is made of."""
    if problem.zero_g:
        return None
    if not problem.start.kinks:
        return problem.g
    return problem.values._replace(carried=_fronts(problem).carried)


def affordable_richness(problem: AbstractProblem, points: list[SingularPoint]) -> int:
    """The richest singular functions that do not dominate the cost; a solve can go on from
    there."""
    if problem.clock is not None:
        return 1
    for level in reversed(range(1, len(RICHNESS))):
        if singular_functions(problem, points, level).count <= AFFORDABLE:
            return level
    return 0


def _similar(
    problem: AbstractProblem, richness: int, curves: Sequence[Curve] = ()
) -> SimilarityFunctions:
    """What is compiled for the kinks of a problem serves all its solves."""
    domain: Any = problem.domain
    fronts = _fronts(problem).active
    layers = _layers(problem)
    modulated = prepared(
        problem,
        "modulations",
        lambda: [
            *(each for front in fronts for each in modulations(domain, front)),
            *layered(domain, layers),
        ],
    )
    power = curves[0].power if curves else 0
    bending = prepared(problem, ("bent", power), lambda: bent(domain, power))
    return SimilarityFunctions(domain, fronts, layers, modulated, richness, curves, bending)


def bare_ansatz(problem: AbstractProblem) -> Ansatz:
    """For networks that are the whole answer."""
    make = functools.partial(Ansatz, problem.domain, None)
    return prepared(problem, "bare", lambda: make().without_distance())


def with_curves(
    problem: AbstractProblem, place: "BuiltAnsatz", curves: Sequence[Curve]
) -> "BuiltAnsatz":
    """The ansatz of a problem in time with functions that bend at curves."""
    functions = _similar(problem, max(place.richness, 0), curves)
    return place._replace(ansatz=place.ansatz.with_singular(functions))


class BuiltAnsatz(NamedTuple):
    """An ansatz with the singular points whose functions it has, and their richness."""

    ansatz: Ansatz
    singular_points: list[SingularPoint]
    richness: int

    def at(
        self, problem: AbstractProblem, points: list[SingularPoint], richness: int
    ) -> "BuiltAnsatz":
        """The same ansatz with other singular functions."""
        functions = singular_functions(problem, points, richness)
        return BuiltAnsatz(self.ansatz.with_singular(functions), points, richness)


def make_place(
    problem: AbstractProblem, options: AnsatzOptions, earlier: Earlier = NOTHING
) -> BuiltAnsatz:
    """The ansatz of a problem. Singular points of a nonlinear one depend on the answer, and are
    found later."""
    if not problem.domain.convex:
        return BuiltAnsatz(bare_ansatz(problem), [], 0)
    ansatz = plain_ansatz(problem, options.hard, options.inputs, earlier.fit)
    points = earlier.singular_points
    if points is None:
        wanted = options.singular and options.hard and problem.linear
        points = singular_points_of(problem) if wanted else []
    richness = earlier.richness
    if richness is None:
        richness = affordable_richness(problem, points)
    place = BuiltAnsatz(ansatz, points, richness)
    if problem.clock is not None and not options.singular:
        return place
    return place.at(problem, points, richness) if ansatz.hard else place


def singular_points_of(problem: AbstractProblem) -> list[SingularPoint]:
    """Those of a linear problem."""
    return with_kinks(problem, _plain_points(problem))


def _plain_points(problem: AbstractProblem) -> list[SingularPoint]:
    """Without the kinks of g."""
    given = problem.domain, problem.interfaces, problem.coefficients
    return prepared(problem, "singular", lambda: find_singular_points(*given))


def with_kinks(problem: AbstractProblem, points: list[SingularPoint]) -> list[SingularPoint]:
    """Singular points, and the kinks of g in the place of those that are the same."""
    kinks = [part.point(len(problem.interfaces) + k) for k, part in enumerate(kinks_of(problem))]
    near = 1e-7 * _size(problem)
    return kinks + [
        point
        for point in points
        if all(np.linalg.norm(point.location - kink.location) > near for kink in kinks)
    ]


def slope_left(problem: AbstractProblem) -> float:
    """A kink that the lift may still have, because the slopes of g were not seen exactly."""
    return max((part.left for part in kinks_of(problem)), default=0.0)


def _size(problem: AbstractProblem) -> float:
    lower, upper = problem.domain.bounding_box
    return float(np.max(upper - lower))


def kinks_of(problem: AbstractProblem) -> list[KinkPart]:
    """The parts of the lift at the kinks of g."""
    if not problem.boundary_shape.kinks:
        return []
    return prepared(
        problem,
        "kinks",
        lambda: kink_parts(problem, _plain_points(problem) if problem.linear else []),
    )


_PREPARED: weakref.WeakKeyDictionary[AbstractProblem, dict] = weakref.WeakKeyDictionary()


def prepared(problem: AbstractProblem, key: Hashable, make: Callable[[], Any]) -> Any:
    """What `make` gives, made once for a problem."""
    kept = _PREPARED.setdefault(problem, {})
    if key not in kept:
        kept[key] = make()
    return kept[key]
