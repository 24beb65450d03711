"""The equation of a problem, typeset with its coefficients; what cannot be typeset is shown as
source text.

Each kind of problem says once, in `shape_of`, what its equation looks like and what it is made of.
"""

import html
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from cordes.domains.plane.sides import SideData
from cordes.domains.walls import walled_part
from cordes.formulas.written.mathml import brackets, constant, formula, relation, row, words
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle, arguments
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.reports.kit.page import code_box
from cordes.reports.pages.coefficients import (
    LETTERS,
    WHERE,
    Coefficient,
    FormulaReader,
)
from cordes.reports.pages.conditions import conditions
from cordes.reports.pages.domains import domain_formula
from cordes.reports.pages.parts import EquationShape, Parts, parts_of, reader_of, toml_of

UNKNOWN, GRADIENT = "<mi>u</mi>", "<mrow><mo>∇</mo><mi>u</mi></mrow>"
HESSIAN = "<mrow><msup><mi>D</mi><mn>2</mn></msup><mi>u</mi></mrow>"
EQUALS, COLON, DOT = "<mo>=</mo>", '<mo rspace="0.2em" lspace="0.2em">:</mo>', "<mo>·</mo>"
DETERMINANT = f"<mi>det</mi><mspace width='0.2em'/>{HESSIAN}"


class EquationHtml(NamedTuple):
    """The equation as one formula, and the lines of its parts, both as HTML."""

    headline: str
    parts: str


def equation(problem: AbstractProblem) -> EquationHtml:
    """Never fails: what is not understood is not in the formulas, but shown as it was written."""
    try:
        shape = shape_of(problem)
        reader = reader_of(problem, shape)
        parts = parts_of(problem, shape, reader)
        headline = " ".join(formula(line) for line in shape.headline(parts))
        return EquationHtml(
            f'<div class="equation main">{headline}</div>',
            _details(problem, shape, reader, list(parts.values())),
        )
    except Exception:
        # A report must not be lost because a formula is: the text of the problem remains.
        return EquationHtml(f"<p>{html.escape(repr(problem))}</p>", _toml_source(problem))


# The kinds of problems ----------------------------------------------------------------------------


@singledispatch
def shape_of(problem: AbstractProblem) -> EquationShape:
    """What the equation of a problem looks like."""
    raise NotImplementedError(
        f"Nothing says how the equation of {type(problem).__name__} is shown."
    )


@shape_of.register
def _(problem: Linear) -> EquationShape:
    laplacian = problem.constant_A and np.array_equal(
        np.asarray(problem.A()), np.eye(problem.domain.dimension)
    )

    def headline(parts: Parts) -> list[str]:
        left = _operator(problem, parts, f"<mi>Δ</mi>{UNKNOWN}" if laplacian else _SECOND_ORDER)
        right = _short("f", parts) + ("<mo>+</mo><mi>C</mi>" if problem.free_constant else "")
        return [f"{left}{EQUALS}{right}{_inside('Ω')}", _on_faces(problem, parts)]

    return EquationShape(_second_order(problem), {"Ω": problem.domain}, headline)


@shape_of.register
def _(problem: AbstractControlled) -> EquationShape:
    def headline(parts: Parts) -> list[str]:
        inner = f"{_operator(problem, parts, _SECOND_ORDER)}{_minus_source(parts)}"
        extreme = _extreme(problem.sense.split())
        whole = f"{extreme}{row(f'<mo>(</mo>{inner}<mo>)</mo>')}"
        if problem.clock is not None:
            return in_time(problem, whole, "0", parts)
        return [f"{whole}{EQUALS}<mn>0</mn>{_inside('Ω')}", _on_faces(problem, parts)]

    return EquationShape(
        _second_order(problem),
        {"Ω": problem.space},
        headline,
        np.asarray(problem.controls),
        problem.maximiser is not None,
        problem.rivals,
    )


def _extreme(words_of: list[str]) -> str:
    """The supremum over the controls; in a game the infimum over the opponents before it."""
    players = [("o", "𝒪"), ("a", "𝒜")][-len(words_of) :]
    unders = [row(f"<mi>{one}</mi><mo>∈</mo><mi>{all_}</mi>") for one, all_ in players]
    return "".join(
        f"<munder><mi>{word}</mi>{below}</munder>"
        for word, below in zip(words_of, unders, strict=True)
    )


@shape_of.register
def _(problem: Parabolic) -> EquationShape:
    def headline(parts: Parts) -> list[str]:
        whole = _operator(problem, parts, _SECOND_ORDER)
        source = _short("f", parts)
        if problem.clock is not None and not problem.clock.backwards:
            whole, source = whole + _minus_source(parts), "0"
        return in_time(problem, whole, source, parts)

    return EquationShape(_second_order(problem), {"Ω": problem.space}, headline)


@shape_of.register
def _(problem: Obstacle) -> EquationShape:
    """The equation where the solution is away from the obstacles, and these."""
    shape = shape_of(problem.base_problem)

    def headline(parts: Parts) -> list[str]:
        sides = [
            f"<mi>{name}</mi>{sign}{UNKNOWN}"
            for name, sign in (("ψ", "<mo>≤</mo>"), ("Ψ", "<mo>≥</mo>"))
            if name in parts
        ]
        away = f"{words('where ')}{'<mo>,</mo>'.join(sides)}{words(' leaves room:')}"
        return [away, *shape.headline(parts)]

    obstacles = {"ψ": problem.lower, "Ψ": problem.upper}
    given = {name: each for name, each in obstacles.items() if each is not None}
    return shape._replace(given={**_obstacles(problem, given), **shape.given}, headline=headline)


@shape_of.register
def _(problem: MongeAmpere) -> EquationShape:
    def headline(parts: Parts) -> list[str]:
        return [
            f"{DETERMINANT}{EQUALS}{_short('f', parts)}{_inside('Ω')}",
            f"{UNKNOWN}{words(' convex,')}",
            _on_boundary(parts),
        ]

    return EquationShape(_given(problem, "f", "g", "exact"), {"Ω": problem.domain}, headline)


@shape_of.register
def _(problem: Transport) -> EquationShape:
    def headline(parts: Parts) -> list[str]:
        left = f"<mi>ν</mi>{brackets(GRADIENT)}<mspace width='0.2em'/>{DETERMINANT}"
        onto = f"{GRADIENT}{brackets('<mi>X</mi>')}{EQUALS}<mi>Y</mi>"
        return [f"{left}{EQUALS}<mi>μ</mi>{_inside('X')}", onto]

    densities = {name: problem.arguments.get(name) for name in ("source", "target")}
    # Densities are scaled to the mass one: of a constant nothing else is left.
    uniform = [name for name, density in densities.items() if not callable(density)]
    return EquationShape(
        {**densities, "map": problem.exact},
        {"X": problem.domain, "Y": problem.target_domain},
        headline,
        elsewhere={"target": problem.target_domain},
        notes={name: f"{LETTERS[name]}{words(' uniform')}" for name in uniform},
    )


def _obstacles(problem: Obstacle, given: dict[str, Any]) -> dict[str, Any]:
    """As functions of the user's time."""
    names = {"ψ": "below", "Ψ": "above"}
    found: dict[str, Any] = {}
    for name, function in given.items():
        written = problem.arguments[names[name]]
        found[name] = function if callable(written) else np.asarray(written, float)
        if callable(written) and problem.clock is not None:
            found[name] = _of_both(written, arguments(written) == 1)
    return found


def _of_both(function: Callable[..., Any], of_place: bool = False) -> Callable[..., Any]:
    """A user's function of (x, t, …), or of x alone, as one of a point of both."""
    if of_place:
        return lambda z, *more: function(z[:-1], *more)
    return lambda z, *more: function(z[:-1], z[-1], *more)


def _given(problem: AbstractProblem, *names: str) -> dict[str, Any]:
    """Coefficients by name: functions, and the values of those given as numbers or arrays."""
    found: dict[str, Any] = {}
    if problem.clock is not None:
        whole = problem.arguments
        for name in (*names, "initial", "terminal"):
            value = whole.get(name, 0.0 if name == "g" else None)
            if value is not None:
                of_place = name in ("initial", "terminal")
                found[name] = _of_both(value, of_place) if callable(value) else np.asarray(value)
        return found
    for name in names:
        function = getattr(problem, name)
        fixed = name in ("A", "b", "c", "f", "g") and not callable(problem.arguments.get(name))
        found[name] = np.asarray(function()) if fixed else function
    return found


def _second_order(problem: AbstractProblem) -> dict[str, Any]:
    absent = {"b": not problem.has_drift, "c": not problem.has_reaction}
    # Data of faces and sides stand with their conditions.
    absent["g"] = _by_piece(problem)
    names = ("A", "b", "c", "f", "g", "exact")
    return _given(problem, *(name for name in names if not absent.get(name)))


# The equation in symbols --------------------------------------------------------------------------

_SECOND_ORDER = f"<mi>A</mi>{COLON}{HESSIAN}"


def _inside(letter: str) -> str:
    return f"<mspace width='0.8em'/>{words('in ')}<mi>{letter}</mi><mo>,</mo>"


def in_time(problem: AbstractProblem, whole: str, right: str, parts: Parts) -> list[str]:
    """u_t = … with initial values, or u_t + … with those at the end."""
    clock = problem.clock
    assert clock is not None
    horizon = constant(clock.domain.end).mathml
    during = f"{words('for ')}<mn>0</mn><mo>&lt;</mo><mi>t</mi><mo>&lt;</mo>{horizon}<mo>,</mo>"
    rate = "<msub><mi>u</mi><mi>t</mi></msub>"
    if clock.backwards:
        end = "<mn>0</mn>" if right == "0" else right
        first = f"{rate}<mo>+</mo>{whole}{EQUALS}{end}"
        name, at = "terminal", horizon
    else:
        first, name, at = f"{rate}{EQUALS}{whole}", "initial", "<mn>0</mn>"
    when = f"{words(' at ')}<mi>t</mi>{EQUALS}{at}<mo>,</mo>"
    space = "<mspace width='0.8em'/>"
    return [
        f"{first}{_inside('Ω')}{space}{during}",
        f"{UNKNOWN}{EQUALS}{_short(name, parts)}{when}",
        _on_faces(problem, parts),
    ]


def _on_faces(problem: AbstractProblem, parts: Parts) -> str:
    """What holds on the boundary, where it may be more than values."""
    return conditions(problem) if _by_piece(problem) else _on_boundary(parts)


def _by_piece(problem: AbstractProblem) -> bool:
    return walled_part(problem.domain) is not None or isinstance(problem.g, SideData)


def _on_boundary(parts: Parts) -> str:
    on = f"<mspace width='0.5em'/>{words('on ')}<mo>∂</mo><mi>Ω</mi>"
    return f"{UNKNOWN}{EQUALS}{_short('g', parts)}{on}"


def _operator(problem: AbstractProblem, parts: Parts, left: str) -> str:
    if problem.has_drift:
        left += f"<mo>+</mo><mi>b</mi>{DOT}{GRADIENT}"
    if problem.has_reaction:
        value = _value(parts, "c")
        sign = "+" if value is not None and value < 0 else "−"
        factor = "<mi>c</mi><mspace width='0.1em'/>"
        if value is not None:
            factor = "" if abs(value) == 1 else f"{constant(abs(value)).mathml}<mo>&#x2062;</mo>"
        left += f"<mo>{sign}</mo>{factor}{UNKNOWN}"
    return left


def _value(parts: Parts, name: str) -> float | None:
    return parts[name].value if name in parts else None


def _short(name: str, parts: Parts) -> str:
    """The number of a constant, else its letter."""
    value = _value(parts, name)
    return f"<mi>{name}</mi>" if value is None else constant(value).mathml


def _minus_source(parts: Parts) -> str:
    """− f inside the supremum, where a number keeps one sign."""
    value = _value(parts, "f")
    if value is None or value == 0:
        return "" if value == 0 else "<mo>−</mo><mi>f</mi>"
    return f"<mo>{'−' if value > 0 else '+'}</mo>{constant(abs(value)).mathml}"


# The parts ----------------------------------------------------------------------------------------


def _details(
    problem: AbstractProblem, shape: EquationShape, reader: FormulaReader, parts: list[Coefficient]
) -> str:
    # Two coefficients may share a definition, which is given once.
    lines = dict.fromkeys([*_domains(shape), *(line for part in parts for line in part.lines)])
    shown = ["".join(_line(line) for line in lines)]
    for part in parts:
        if part.source is not None and not part.lines:
            name = "Interfaces" if part.name == "interfaces" else formula(reader.of(part.name))
            shown.append(f'<p class="note">{name} as written:</p>{code_box(part.source)}')
    written = [part.source for part in parts if part.source is not None and part.lines]
    if toml_of(problem) is not None:
        shown.append(_toml_source(problem))
    elif written:
        boxes = "".join(code_box(source) for source in dict.fromkeys(written))
        shown.append(f"<details><summary>As it was written in Python</summary>{boxes}</details>")
    return "\n".join(shown)


def _line(line: str) -> str:
    kind = "equation where" if line.startswith(WHERE) else "equation"
    return f'<div class="{kind}">{formula(line)}</div>'


def _toml_source(problem: AbstractProblem) -> str:
    text = (problem.source or {}).get("toml")
    if text is None:
        return ""
    return f"<details><summary>The problem file</summary>{code_box(text)}</details>"


# Sets ---------------------------------------------------------------------------------------------


def _domains(shape: EquationShape) -> list[str]:
    shown = {letter: domain_formula(domain) for letter, domain in shape.sets.items()}
    lines = [f"<mi>{letter}</mi>{relation(each)}{each}" for letter, each in shown.items()]
    if shape.controls is not None:
        lines.append(_controls(shape.controls, shape.continuum, shape.rivals))
    return lines


def _controls(controls: np.ndarray, continuum: bool, rivals: int) -> str:
    letter, count = "<mi>𝒜</mi>", len(controls)
    if rivals > 1:
        many = f"{count // rivals} controls play against {rivals} opponents; below, a is the pair "
        return words(f"{many}of both, the control before the opponent")
    if continuum:
        return letter + words(
            " is a continuum of controls; the best is given in closed form. "
            f"{count} of them stand for it in checks"
        )
    if controls.ndim == 1 and count <= 8:
        values = "<mo>,</mo>".join(constant(float(a)).mathml for a in controls)
        shown = f"<mo>{{</mo>{values}<mo>}}</mo>"
        return f"{letter}{relation(shown)}{shown}"
    size = int(np.prod(controls.shape[1:]))
    plural = "" if size == 1 else "s"
    return letter + words(f" has {count} controls with {size} component{plural} each")
