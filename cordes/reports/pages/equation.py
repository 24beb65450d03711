"""The equation of a problem, typeset with the coefficients as they were written; what cannot be
typeset is shown as source text."""

import html
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cordes.problems.coefficients import as_function
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.problems.structured import DiagonalPlusRank
from cordes.problems.transport import Transport
from cordes.reports.kit.page import code_box
from cordes.reports.pages.domains import WRITTEN_OUT, domain_formula
from cordes.reports.pages.functions import is_point
from cordes.reports.pages.mathml import (
    ROUNDED,
    Untypeset,
    array,
    brackets,
    components,
    constant,
    formula,
    relation,
    row,
    symbol,
    typeset,
    words,
)
from cordes.reports.pages.reading import SAMPLES, verify
from cordes.reports.pages.sources import source_text
from cordes.reports.pages.toml_formulas import from_toml, read_toml, toml_of
from cordes.reports.pages.written import Names, Written, checked, from_function

# Controls that get a formula each.
LISTED = 4
UNKNOWN, HESSIAN, GRADIENT = (
    "<mi>u</mi>",
    "<mrow><msup><mi>D</mi><mn>2</mn></msup><mi>u</mi></mrow>",
    "<mrow><mo>∇</mo><mi>u</mi></mrow>",
)
EQUALS, COLON, DOT = "<mo>=</mo>", '<mo rspace="0.2em" lspace="0.2em">:</mo>', "<mo>·</mo>"
# What goes wrong while a source is read as a formula: none of it is an error of the problem, which
# was solved.
UNREADABLE = (
    Untypeset,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    KeyError,
    SyntaxError,
    RecursionError,
    ArithmeticError,
)
WHERE = words("where ")
# Source terms that the gallery makes from a known solution.
MANUFACTURED = {
    ("cordes.gallery.paper_linear", "manufactured.<locals>.f"),
    ("cordes.gallery.paper_nonlinear", "operator.<locals>.value"),
    ("cordes.gallery.transport_problems", "manufactured.<locals>.source"),
}


class Coefficient(NamedTuple):
    """A name, what it depends on, its value if it is a constant number, and its formulas or, where
    there are none, its source."""

    name: str
    value: float | None = None
    lines: tuple[str, ...] = ()
    source: str | None = None

    @property
    def zero(self) -> bool:
        return self.value == 0


class Equation(NamedTuple):
    """The equation as one formula, and the lines of its parts, both as HTML."""

    headline: str
    parts: str


def equation(problem: AbstractProblem) -> Equation:
    """The equation of a problem. Never fails: what is not understood is left out of the formulas
    and shown as it was written."""
    try:
        parts = _parts(problem)
        headline = (
            '<div class="equation '
            f'main">{" ".join(formula(line) for line in _headline(problem, parts))}</div>'
        )
        return Equation(headline, _details(problem, list(parts.values())))
    except Exception:
        # A report must not be lost because a formula is: the text of the problem remains.
        return Equation(f"<p>{html.escape(repr(problem))}</p>", _toml_source(problem))


def _details(problem: AbstractProblem, parts: list[Coefficient]) -> str:
    # Two coefficients may share a definition, which is given once.
    lines = dict.fromkeys([*_domains(problem), *(line for part in parts for line in part.lines)])
    shown = [
        "".join(
            (
                "<div "
                f'class="equation{" where" if line.startswith(WHERE) else ""}">{formula(line)}</div>'
            )
            for line in lines
        )
    ]
    for part in parts:
        if part.source is not None and not part.lines:
            name = "Interfaces" if part.name == "interfaces" else formula(_of(part.name, problem))
            shown.append(f'<p class="note">{name} as written:</p>{code_box(part.source)}')
    written = [part.source for part in parts if part.source is not None and part.lines]
    if toml_of(problem) is not None:
        shown.append(_toml_source(problem))
    elif written:
        boxes = "".join(code_box(source) for source in dict.fromkeys(written))
        shown.append(f"<details><summary>As it was written in Python</summary>{boxes}</details>")
    return "\n".join(shown)


# The equation in symbols --------------------------------------------------------------------------


def _headline(problem: AbstractProblem, parts: dict[str, Coefficient]) -> list[str]:
    """The equation, and what holds beside it: several formulas, so that a narrow page can break
    between them."""
    inside = f"<mspace width='0.8em'/>{words('in ')}<mi>Ω</mi><mo>,</mo>"
    on_boundary = (
        f"{UNKNOWN}{EQUALS}{_short('g', parts)}<mspace "
        f"width='0.5em'/>{words('on ')}<mo>∂</mo><mi>Ω</mi>"
    )
    if isinstance(problem, HJB):
        operator = row(f"<mo>(</mo>{_operator(problem, parts)}{_minus_source(parts)}<mo>)</mo>")
        set_ = row("<mi>a</mi><mo>∈</mo><mi>𝒜</mi>")
        return [
            f"<munder><mi>{problem.sense}</mi>{set_}</munder>{operator}{EQUALS}<mn>0</mn>{inside}",
            on_boundary,
        ]
    if isinstance(problem, MongeAmpere):
        return [
            f"<mi>det</mi><mspace width='0.2em'/>{HESSIAN}{EQUALS}{_short('f', parts)}{inside}",
            f"<mi>u</mi>{words(' convex,')}",
            on_boundary,
        ]
    if isinstance(problem, Transport):
        left = (
            f"<mi>ν</mi>{brackets(GRADIENT)}<mspace width='0.2em'/><mi>det</mi><mspace "
            f"width='0.2em'/>{HESSIAN}"
        )
        within = f"<mspace width='0.8em'/>{words('in ')}<mi>X</mi><mo>,</mo>"
        return [
            f"{left}{EQUALS}<mi>μ</mi>{within}",
            f"{GRADIENT}{brackets('<mi>X</mi>')}{EQUALS}<mi>Y</mi>",
        ]
    return [f"{_operator(problem, parts)}{EQUALS}{_short('f', parts)}{inside}", on_boundary]


def _operator(problem: AbstractProblem, parts: dict[str, Coefficient]) -> str:
    identity = (
        problem.linear
        and problem.constant_A
        and np.array_equal(np.asarray(problem.A()), np.eye(problem.domain.dimension))
    )
    left = f"<mi>Δ</mi>{UNKNOWN}" if identity else f"<mi>A</mi>{COLON}{HESSIAN}"
    if problem.has_drift:
        left += f"<mo>+</mo><mi>b</mi>{DOT}{GRADIENT}"
    if problem.has_reaction:
        value = parts["c"].value if "c" in parts else None
        sign = "+" if value is not None and value < 0 else "−"
        factor = (
            "<mi>c</mi><mspace width='0.1em'/>"
            if value is None
            else ""
            if abs(value) == 1
            else constant(abs(value)).mathml + "<mo>&#x2062;</mo>"
        )
        left += f"<mo>{sign}</mo>{factor}{UNKNOWN}"
    return left


def _short(name: str, parts: dict[str, Coefficient]) -> str:
    """The number of a constant, else its letter."""
    value = parts[name].value if name in parts else None
    return f"<mi>{name}</mi>" if value is None else constant(value).mathml


def _minus_source(parts: dict[str, Coefficient]) -> str:
    """− f inside the supremum, where a number keeps one sign."""
    value = parts["f"].value if "f" in parts else None
    if value is None:
        return "<mo>−</mo><mi>f</mi>"
    return (
        "" if value == 0 else f"<mo>{'−' if value > 0 else '+'}</mo>{constant(abs(value)).mathml}"
    )


def _of(name: str, problem: AbstractProblem, control: str | None = None) -> str:
    """A(x), or A(x, a) where there is a control."""
    arguments = "<mi>x</mi>"
    if control is not None:
        arguments += f"<mo>,</mo>{control}"
    elif hasattr(problem, "controls") and name in ("A", "b", "c", "f"):
        arguments += "<mo>,</mo><mi>a</mi>"
    return LETTERS.get(name, f"<mi>{html.escape(name)}</mi>") + brackets(arguments)


LETTERS = {
    "source": "<mi>μ</mi>",
    "target": "<mi>ν</mi>",
    "exact": "<msup><mi>u</mi><mo>∗</mo></msup>",
    "map": "<msup><mi>T</mi><mo>∗</mo></msup>",
}


# The parts ----------------------------------------------------------------------------------------


def _parts(problem: AbstractProblem) -> dict[str, Coefficient]:
    """The coefficients in the order in which they are read; those that are absent are left out."""
    if isinstance(problem, Transport):
        given = {
            "source": _closed(problem.mu, "given"),
            "target": _closed(problem.nu, "wanted"),
            "map": problem.exact,
        }
    else:
        given = {name: getattr(problem, name, None) for name in ("A", "b", "c", "f", "g", "exact")}
        if not getattr(problem, "has_drift", False):
            given.pop("b")
        if not getattr(problem, "has_reaction", False):
            given.pop("c")
    names = Names()
    made = {
        name: _coefficient(problem, name, function, names)
        for name, function in given.items()
        if function is not None
    }
    if problem.interfaces:
        made["interfaces"] = _interfaces(problem, names)
    return made


def _closed(function: Callable, name: str) -> Any:
    return inspect.getclosurevars(function).nonlocals.get(name)


def _coefficient(problem: AbstractProblem, name: str, function: Any, names: Names) -> Coefficient:
    fixed = _constant(function)
    if name in ("source", "target") and (
        (fixed is not None and fixed.ndim == 0) or (name == "target" and problem.uniform)
    ):
        # Densities are scaled to the mass one: of a constant nothing else is left.
        return Coefficient(name, None, (f"{LETTERS[name]}{words(' uniform')}",))
    if fixed is not None:
        return _fixed(name, fixed)
    if _is_manufactured(problem, function):
        return Coefficient(name, None, (_manufactured(problem, name),))
    try:
        return Coefficient(name, None, _lines(problem, name, function, names), _source(function))
    except UNREADABLE:
        return Coefficient(name, None, (), _source(function) or repr(function)[:300])


def _fixed(name: str, value: np.ndarray) -> Coefficient:
    """A number stands in the equation itself, unless digits of it are left out; an array gets a
    line."""
    if value.ndim == 0 and name in ("f", "g", "c") and ROUNDED not in constant(float(value)).mathml:
        return Coefficient(name, float(value))
    if value.size > 36 and not (
        value.ndim == 2 and np.array_equal(value, value[0, 0] * np.eye(len(value)))
    ):
        return Coefficient(
            name,
            None,
            (
                f"{_letter(name)}{words(' constant, with ' + '×'.join(map(str, value.shape)) + ' entries')}",
            ),
        )
    shown = typeset(array(value))
    return Coefficient(name, None, (f"{_letter(name)}{relation(shown)}{shown}",))


def _is_manufactured(problem: AbstractProblem, function: Any) -> bool:
    """Whether the gallery made this from the solution that the problem knows."""
    if (
        problem.exact is None
        or (getattr(function, "__module__", ""), plain_name(function)) not in MANUFACTURED
    ):
        return False
    if isinstance(problem, Transport):
        return _closed(function, "potential") is getattr(problem.exact, "__wrapped__", problem)
    return _closed(function, "exact") is problem.exact


def _letter(name: str) -> str:
    return LETTERS.get(name, f"<mi>{html.escape(name)}</mi>")


def plain_name(function: Any) -> str:
    return getattr(function, "__qualname__", "")


def _constant(function: Any) -> np.ndarray | None:
    """The value of a coefficient that was given as a number or an array."""
    made_here = (
        getattr(function, "__module__", "") == as_function.__module__
        and plain_name(function) == "as_function.<locals>.<lambda>"
    )
    return np.asarray(function()) if made_here else None


def _source(function: Any) -> str | None:
    if isinstance(function, DiagonalPlusRank):
        parts = [source_text(function.diagonal), source_text(function.columns)]
        return None if None in parts else f"DiagonalPlusRank(\n    {parts[0]},\n    {parts[1]},\n)"
    return source_text(function)


def _lines(problem: AbstractProblem, name: str, function: Any, names: Names) -> tuple[str, ...]:
    """The formulas of a coefficient: one, or one for each control where there are few."""
    controlled = hasattr(problem, "controls") and name in ("A", "b", "c", "f")
    if not controlled:
        return _set(_of(name, problem), name, _written(problem, name, function, None, names))
    controls = problem.controls
    if (
        len(controls) <= LISTED
        and controls.ndim == 1
        and toml_of(problem) is None
        and problem.maximiser is None
    ):
        numbers = [constant(float(a)) for a in controls]
        lines = [
            _set(_of(name, problem, a.mathml), name, _written(problem, name, function, a, names))
            for a in numbers
        ]
        return tuple(dict.fromkeys(line for part in lines for line in part))
    control = symbol("a") if controls.ndim == 1 else components("a", controls[0].size)
    return _set(_of(name, problem), name, _written(problem, name, function, control, names))


def _set(left: str, name: str, written: Written) -> tuple[str, ...]:
    value = "<mi>x</mi>" if is_point(written.value) else typeset(written.value)
    sign = relation(value)
    if name in ("source", "target"):
        value, sign = value + (words(", rounded") if ROUNDED in value else ""), "<mo>∝</mo>"
    return (f"{left}{sign}{value}", *_where(written))


def _where(written: Written) -> list[str]:
    return [
        f"{WHERE}{left}{relation(each.mathml)}{each.mathml}"
        for left, each in written.definitions.items()
    ]


def _written(
    problem: AbstractProblem, name: str, function: Any, control: Any, names: Names
) -> Written:
    """What a coefficient is for symbols, compared with its values in the domain."""
    d = problem.domain.dimension
    if toml_of(problem) is None and d > WRITTEN_OUT:
        raise Untypeset("many dimensions")
    arguments, samples = [components("x", d)], [_points(problem, name)]
    if control is not None:
        arguments.append(control)
        samples.append(_sampled_controls(problem, control))
    if toml_of(problem) is not None:
        written = from_toml(problem, name)
    elif isinstance(function, DiagonalPlusRank):
        diagonal, columns = (
            from_function(each, *arguments, samples=samples, names=names)
            for each in (function.diagonal, function.columns)
        )
        written = checked(
            array(np.eye(d)) * diagonal.value + columns.value @ columns.value.T,
            diagonal.definitions | columns.definitions,
        )
    else:
        return from_function(function, *arguments, samples=samples, names=names)
    verify(*written, arguments, samples, function)
    return written


def _points(problem: AbstractProblem, name: str) -> np.ndarray:
    domain = problem.target_domain if name == "target" else problem.domain
    return np.asarray(domain.interior_points(SAMPLES, seed=23))


def _sampled_controls(problem: AbstractProblem, control: Any) -> np.ndarray:
    """The control itself, or some of all."""
    if getattr(control, "number", None) is not None:
        return np.full(SAMPLES, control.number)
    return np.asarray(problem.controls)[
        np.random.default_rng(23).integers(len(problem.controls), size=SAMPLES)
    ]


def _interfaces(problem: AbstractProblem, names: Names) -> Coefficient:
    """The lines across which second derivatives may jump."""
    table = toml_of(problem)
    x, samples = components("x", problem.domain.dimension), [_points(problem, "interfaces")]
    try:
        if table is not None:
            written = [read_toml(problem, text) for text in table["equation"]["interfaces"]]
            for each, phi in zip(written, problem.interfaces, strict=True):
                verify(*each, [x], samples, phi)
        else:
            written = [
                from_function(phi, x, samples=samples, names=names) for phi in problem.interfaces
            ]
        shown = "<mo>,</mo><mspace width='0.5em'/>".join(
            f"{typeset(each.value)}{EQUALS}<mn>0</mn>" for each in written
        )
        where = dict.fromkeys(line for each in written for line in _where(each))
        return Coefficient(
            "interfaces",
            None,
            (f"{words('interfaces ' if len(written) > 1 else 'interface ')}{shown}", *where),
        )
    except UNREADABLE:
        sources = [source_text(phi) or repr(phi)[:300] for phi in problem.interfaces]
        return Coefficient("interfaces", None, (), "\n".join(sources))


def _manufactured(problem: AbstractProblem, name: str) -> str:
    """f is made so that a known function solves the equation."""
    exact = LETTERS["exact"]
    if name == "source":
        return f"{LETTERS['source']}{words(' is what ')}{LETTERS['map']}{words(' carries to ')}{LETTERS['target']}"
    return f"{_of(name, problem)}{words(' makes ')}{exact}{words(' the solution')}"


def _toml_source(problem: AbstractProblem) -> str:
    text = (problem.source or {}).get("toml")
    return (
        f"<details><summary>The problem file</summary>{code_box(text)}</details>"
        if text is not None
        else ""
    )


# Sets ---------------------------------------------------------------------------------------------


def _domains(problem: AbstractProblem) -> list[str]:
    sets = (
        {"X": problem.domain, "Y": problem.target_domain}
        if isinstance(problem, Transport)
        else {"Ω": problem.domain}
    )
    shown = {letter: domain_formula(domain) for letter, domain in sets.items()}
    lines = [f"<mi>{letter}</mi>{relation(each)}{each}" for letter, each in shown.items()]
    if hasattr(problem, "controls"):
        lines.append(_controls(problem))
    return lines


def _controls(problem: AbstractProblem) -> str:
    controls, letter = problem.controls, "<mi>𝒜</mi>"
    if problem.maximiser is not None:
        return f"{letter}{words(f' is a continuum of controls; the best is given in closed form. {len(controls)} of them stand for it in checks')}"
    if controls.ndim == 1 and len(controls) <= 8:
        shown = (
            "<mo>{</mo>"
            + "<mo>,</mo>".join(constant(float(a)).mathml for a in controls)
            + "<mo>}</mo>"
        )
        return f"{letter}{relation(shown)}{shown}"
    count = int(np.prod(controls.shape[1:]))
    return letter + words(
        f" has {len(controls)} controls with {count} component{'' if count == 1 else 's'} each"
    )
