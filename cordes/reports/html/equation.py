"""The equation of a problem, typeset with the coefficients as they were written; what cannot be typeset is shown as source text."""

import html
import inspect
import tomllib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cordes.problems.structured import DiagonalPlusRank
from cordes.reports.html.domains import WRITTEN_OUT, domain_formula
from cordes.reports.html.functions import is_point
from cordes.reports.html.mathml import Node, Untypeset, array, brackets, components, constant, formula, row, symbol, typeset, words
from cordes.reports.html.page import code_box
from cordes.reports.html.written import Written, from_function, from_text, source_text

# Controls that get a formula each.
LISTED = 4
UNKNOWN, HESSIAN, GRADIENT = "<mi>u</mi>", "<mrow><msup><mi>D</mi><mn>2</mn></msup><mi>u</mi></mrow>", "<mrow><mo>∇</mo><mi>u</mi></mrow>"
EQUALS, COLON, DOT = "<mo>=</mo>", '<mo rspace="0.2em" lspace="0.2em">:</mo>', "<mo>·</mo>"
# What goes wrong while a source is read as a formula: none of it is an error of the problem, which was solved.
UNREADABLE = (Untypeset, ValueError, TypeError, AttributeError, IndexError, KeyError, SyntaxError, RecursionError)
WHERE = words("where ")
# Source terms that the gallery makes from a known solution.
MANUFACTURED = ("manufactured.<locals>.f", "operator.<locals>.value", "manufactured.<locals>.source")


class Coefficient(NamedTuple):
    """A name, what it depends on, its value if it is a constant number, and its formulas or, where there are none, its source."""

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


def equation(problem: Any) -> Equation:
    """The equation of a problem. Never fails: what is not understood is left out of the formulas and shown as it was written."""
    try:
        parts = _parts(problem)
        headline = f'<div class="equation main">{" ".join(formula(line) for line in _headline(problem, parts))}</div>'
        return Equation(headline, _details(problem, list(parts.values())))
    except Exception:
        # A report must not be lost because a formula is: the text of the problem remains.
        return Equation(f"<p>{html.escape(repr(problem))}</p>", _toml_source(problem))


def _details(problem: Any, parts: list[Coefficient]) -> str:
    # Two coefficients may share a definition, which is given once.
    lines = dict.fromkeys([*_domains(problem), *(line for part in parts for line in part.lines)])
    shown = ["".join(f'<div class="equation{" where" if line.startswith(WHERE) else ""}">{formula(line)}</div>' for line in lines)]
    for part in parts:
        if part.source is not None and not part.lines:
            name = "Interfaces" if part.name == "interfaces" else formula(_of(part.name, problem))
            shown.append(f'<p class="note">{name} as written:</p>{code_box(part.source)}')
    written = [part.source for part in parts if part.source is not None and part.lines]
    if _toml(problem) is not None:
        shown.append(_toml_source(problem))
    elif written:
        boxes = "".join(code_box(source) for source in dict.fromkeys(written))
        shown.append(f"<details><summary>As it was written in Python</summary>{boxes}</details>")
    return "\n".join(shown)


# The equation in symbols ---------------------------------------------------------------------------------------------------------------------------


def _headline(problem: Any, parts: dict[str, Coefficient]) -> list[str]:
    """The equation, and what holds beside it: several formulas, so that a narrow page can break between them."""
    kind = type(problem).__name__
    inside = f"<mspace width='0.8em'/>{words('in ')}<mi>Ω</mi><mo>,</mo>"
    on_boundary = f"{UNKNOWN}{EQUALS}{_short('g', parts)}<mspace width='0.5em'/>{words('on ')}<mo>∂</mo><mi>Ω</mi>"
    if kind == "HJB":
        operator = row(f"<mo>(</mo>{_operator(problem, parts)}<mo>−</mo>{_short('f', parts)}<mo>)</mo>")
        set_ = row("<mi>a</mi><mo>∈</mo><mi>𝒜</mi>")
        return [f"<munder><mi>{problem.sense}</mi>{set_}</munder>{operator}{EQUALS}<mn>0</mn>{inside}", on_boundary]
    if kind == "MongeAmpere":
        return [f"<mi>det</mi><mspace width='0.2em'/>{HESSIAN}{EQUALS}{_short('f', parts)}{inside}", f"<mi>u</mi>{words(' convex,')}", on_boundary]
    if kind == "Transport":
        left = f"<mi>ν</mi>{brackets(GRADIENT)}<mspace width='0.2em'/><mi>det</mi><mspace width='0.2em'/>{HESSIAN}"
        within = f"<mspace width='0.8em'/>{words('in ')}<mi>X</mi><mo>,</mo>"
        return [f"{left}{EQUALS}<mi>μ</mi>{within}", f"{GRADIENT}{brackets('<mi>X</mi>')}{EQUALS}<mi>Y</mi>"]
    return [f"{_operator(problem, parts)}{EQUALS}{_short('f', parts)}{inside}", on_boundary]


def _operator(problem: Any, parts: dict[str, Coefficient]) -> str:
    identity = problem.linear and problem.constant_A and np.array_equal(np.asarray(problem.A()), np.eye(problem.domain.dimension))
    left = f"<mi>Δ</mi>{UNKNOWN}" if identity else f"<mi>A</mi>{COLON}{HESSIAN}"
    if problem.has_drift:
        left += f"<mo>+</mo><mi>b</mi>{DOT}{GRADIENT}"
    if problem.has_reaction:
        value = parts["c"].value if "c" in parts else None
        sign = "+" if value is not None and value < 0 else "−"
        factor = (
            "<mi>c</mi><mspace width='0.1em'/>" if value is None else "" if abs(value) == 1 else constant(abs(value)).mathml + "<mo>&#x2062;</mo>"
        )
        left += f"<mo>{sign}</mo>{factor}{UNKNOWN}"
    return left


def _short(name: str, parts: dict[str, Coefficient]) -> str:
    """The number of a constant, else its letter."""
    value = parts[name].value if name in parts else None
    return f"<mi>{name}</mi>" if value is None else constant(value).mathml


def _of(name: str, problem: Any, control: str | None = None) -> str:
    """A(x), or A(x, a) where there is a control."""
    arguments = "<mi>x</mi>"
    if control is not None:
        arguments += f"<mo>,</mo>{control}"
    elif hasattr(problem, "controls") and name in ("A", "b", "c", "f"):
        arguments += "<mo>,</mo><mi>a</mi>"
    return LETTERS.get(name, f"<mi>{html.escape(name)}</mi>") + brackets(arguments)


LETTERS = {"source": "<mi>μ</mi>", "target": "<mi>ν</mi>", "exact": "<msup><mi>u</mi><mo>∗</mo></msup>", "map": "<msup><mi>T</mi><mo>∗</mo></msup>"}


# The parts ------------------------------------------------------------------------------------------------------------------------------------------


def _parts(problem: Any) -> dict[str, Coefficient]:
    """The coefficients in the order in which they are read; those that are absent are left out."""
    kind = type(problem).__name__
    if kind == "Transport":
        names = {"source": _closed(problem.mu, "given"), "target": _closed(problem.nu, "wanted"), "map": problem.exact}
    else:
        names = {name: getattr(problem, name, None) for name in ("A", "b", "c", "f", "g", "exact")}
        if not getattr(problem, "has_drift", False):
            names.pop("b")
        if not getattr(problem, "has_reaction", False):
            names.pop("c")
    made = {name: _coefficient(problem, name, function) for name, function in names.items() if function is not None}
    if problem.interfaces:
        made["interfaces"] = _interfaces(problem)
    return made


def _closed(function: Callable, name: str) -> Any:
    return inspect.getclosurevars(function).nonlocals.get(name)


def _coefficient(problem: Any, name: str, function: Any) -> Coefficient:
    fixed = _constant(function)
    if name == "target" and problem.uniform and (fixed is None or fixed.ndim == 0):
        return Coefficient(name, None, (f"{LETTERS['target']}{words(' uniform')}",))
    if fixed is not None and fixed.ndim == 0:
        value = float(fixed)
        # Numbers stand in the equation itself; a zero boundary value needs no further line.
        return Coefficient(name, value, () if name in ("f", "g", "c") else (f"{_letter(name)}{EQUALS}{constant(value).mathml}",))
    if fixed is not None:
        try:
            return Coefficient(name, None, (f"{_letter(name)}{EQUALS}{typeset(array(fixed))}",) if fixed.size <= 36 else ())
        except Untypeset:
            return Coefficient(name)
    if plain_name(function).endswith(MANUFACTURED):
        return Coefficient(name, None, (_manufactured(problem, name),))
    try:
        return Coefficient(name, None, _lines(problem, name, function), _source(function))
    except UNREADABLE:
        return Coefficient(name, None, (), _source(function) or repr(function)[:300])


def _letter(name: str) -> str:
    return LETTERS.get(name, f"<mi>{html.escape(name)}</mi>")


def plain_name(function: Any) -> str:
    return getattr(function, "__qualname__", "")


def _constant(function: Any) -> np.ndarray | None:
    """The value of a coefficient that was given as a number or an array."""
    return np.asarray(function()) if plain_name(function) == "as_function.<locals>.<lambda>" else None


def _source(function: Any) -> str | None:
    if isinstance(function, DiagonalPlusRank):
        parts = [source_text(function.diagonal), source_text(function.columns)]
        return None if None in parts else f"DiagonalPlusRank(\n    {parts[0]},\n    {parts[1]},\n)"
    return source_text(function)


def _lines(problem: Any, name: str, function: Any) -> tuple[str, ...]:
    """The formulas of a coefficient: one, or one for each control where there are few."""
    controlled = hasattr(problem, "controls") and name in ("A", "b", "c", "f")
    if not controlled:
        return _set(_of(name, problem), name, _written(problem, name, function, None))
    controls = problem.controls
    if len(controls) <= LISTED and controls.ndim == 1 and _toml(problem) is None:
        lines = [_set(_of(name, problem, constant(float(a)).mathml), name, _written(problem, name, function, constant(float(a)))) for a in controls]
        return tuple(dict.fromkeys(line for part in lines for line in part))
    return _set(_of(name, problem), name, _written(problem, name, function, symbol("a") if controls.ndim == 1 else components("a", controls[0].size)))


def _set(left: str, name: str, written: Written) -> tuple[str, ...]:
    value = "<mi>x</mi>" if is_point(written.value) else typeset(written.value)
    where = [f"{WHERE}{key if key.startswith('<') else symbol(key).mathml}{EQUALS}{each.mathml}" for key, each in written.definitions.items()]
    relation = "<mo>∝</mo>" if name in ("source", "target") else EQUALS
    return (f"{left}{relation}{value}", *where)


def _written(problem: Any, name: str, function: Any, control: Any) -> Written:
    d = problem.domain.dimension
    if _toml(problem) is not None:
        return _from_toml(problem, name)
    if d > WRITTEN_OUT:
        raise Untypeset("many dimensions")
    arguments = [components("x", d)] + ([control] if control is not None else [])
    if isinstance(function, DiagonalPlusRank):
        diagonal, columns = (from_function(each, *arguments) for each in (function.diagonal, function.columns))
        identity = array(np.eye(d))
        return Written(identity * diagonal.value + columns.value @ columns.value.T, diagonal.definitions | columns.definitions)
    return from_function(function, *arguments)


def _interfaces(problem: Any) -> Coefficient:
    """The lines across which second derivatives may jump."""
    table = _toml(problem)
    try:
        if table is not None:
            written = [from_text(text, _names(problem)) for text in table["equation"]["interfaces"]]
        else:
            written = [from_function(phi, components("x", problem.domain.dimension)) for phi in problem.interfaces]
        shown = "<mo>,</mo><mspace width='0.5em'/>".join(f"{typeset(each.value)}{EQUALS}<mn>0</mn>" for each in written)
        return Coefficient("interfaces", None, (f"{words('interfaces ' if len(written) > 1 else 'interface ')}{shown}",))
    except UNREADABLE:
        sources = [source_text(phi) or repr(phi)[:300] for phi in problem.interfaces]
        return Coefficient("interfaces", None, (), "\n".join(sources))


def _manufactured(problem: Any, name: str) -> str:
    """f is made so that a known function solves the equation."""
    exact = LETTERS["exact"]
    if name == "source":
        return f"{LETTERS['source']}{words(' is what ')}{LETTERS['map']}{words(' carries to ')}{LETTERS['target']}"
    return f"{_of(name, problem)}{words(' makes ')}{exact}{words(' the solution')}"


# Problem files --------------------------------------------------------------------------------------------------------------------------------------


def _toml(problem: Any) -> dict[str, Any] | None:
    text = (problem.source or {}).get("toml")
    return tomllib.loads(text) if text is not None else None


def _toml_source(problem: Any) -> str:
    text = (problem.source or {}).get("toml")
    return f"<details><summary>The problem file</summary>{code_box(text)}</details>" if text is not None else ""


def _names(problem: Any) -> dict[str, Any]:
    """What names mean in the expressions of a problem file."""
    table = _toml(problem) or {}
    controls = getattr(problem, "controls", None)
    axes = [] if controls is None else ["a"] if controls.ndim == 1 else [f"a{i + 1}" for i in range(controls.shape[1])]
    names = [*(f"x{i + 1}" for i in range(problem.domain.dimension)), *axes, *table.get("definitions", {})]
    return {name: symbol(name) for name in names} | {"pi": symbol("pi"), "e": symbol("e")}


def _from_toml(problem: Any, name: str) -> Written:
    """A coefficient of a problem file, with the definitions that it uses."""
    table, names = _toml(problem) or {}, _names(problem)
    given = table["equation"][name]

    def read(entry: Any) -> Any:
        if isinstance(entry, list):
            return array([read(part) for part in entry])
        return from_text(entry, names).value if isinstance(entry, str) else constant(float(entry))

    value = read(given)
    if name == "A" and not isinstance(given, list):
        value = value * array(np.eye(problem.domain.dimension))
    texts = {key: str(text) for key, text in table.get("definitions", {}).items()}
    used, found = _mentioned(given), {}
    for key in reversed(texts):
        if key in used:
            used |= _mentioned(texts[key])
            found[key] = from_text(texts[key], names).value
    return Written(value, {key: _node(found[key]) for key in texts if key in found})


def _node(value: Any) -> Node:
    return value if isinstance(value, Node) else constant(float(value))


def _mentioned(given: Any) -> set[str]:
    """The words in an expression, or in a list of them."""
    if isinstance(given, list):
        return set().union(*(_mentioned(part) for part in given))
    return {"".join(word) for word in _words(str(given))}


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()


# Sets --------------------------------------------------------------------------------------------------------------------------------------------


def _domains(problem: Any) -> list[str]:
    if type(problem).__name__ != "Transport":
        lines = [f"<mi>Ω</mi>{EQUALS}{domain_formula(problem.domain)}"]
    else:
        lines = [f"<mi>X</mi>{EQUALS}{domain_formula(problem.domain)}", f"<mi>Y</mi>{EQUALS}{domain_formula(problem.target_domain)}"]
    if hasattr(problem, "controls"):
        lines.append(f"<mi>𝒜</mi>{EQUALS}{_controls(problem.controls)}")
    return lines


def _controls(controls: np.ndarray) -> str:
    if controls.ndim == 1 and len(controls) <= 8:
        return "<mo>{</mo>" + "<mo>,</mo>".join(constant(float(a)).mathml for a in controls) + "<mo>}</mo>"
    return f"<mtext>{len(controls)} controls with {int(np.prod(controls.shape[1:]))} component(s) each</mtext>"
