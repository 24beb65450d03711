"""The coefficients of an equation as they are typeset: which are given, what a problem file names,
and what the gallery made from a known solution."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.written.mathml import words
from cordes.formulas.written.toml import parse
from cordes.problems.problem import AbstractProblem
from cordes.reports.pages.coefficients import (
    LETTERS,
    LISTED,
    Coefficient,
    FormulaReader,
    Names,
    coefficient,
)

# Source terms that the gallery makes from a known solution.
MANUFACTURED = {
    ("cordes.gallery.paper_linear", "manufactured.<locals>.f"),
    ("cordes.gallery.transport_problems", "manufactured.<locals>.source"),
}

Parts = Mapping[str, Coefficient]


class EquationShape(NamedTuple):
    """What an equation is made of: its coefficients in the order in which they are read, its
    domains by their letters, and how it is written with its coefficients: several formulas, so that
    a narrow page can break between them. `elsewhere` are the domains of coefficients that do not
    live in the first; `notes` are the lines of those that need no formula."""

    given: dict[str, Any]
    sets: dict[str, AbstractDomain]
    headline: Callable[[Parts], list[str]]
    controls: np.ndarray | None = None
    continuum: bool = False
    rivals: int = 1
    elsewhere: Mapping[str, AbstractDomain] = {}
    notes: Mapping[str, str] = {}


def reader_of(problem: AbstractProblem, shape: EquationShape) -> FormulaReader:
    controls, in_file = shape.controls, toml_of(problem) is not None
    few = controls is not None and len(controls) <= LISTED and controls.ndim == 1
    listed = few and not (in_file or shape.continuum)
    definitions = _definitions(problem, controls)
    timed = problem.clock is not None
    given = problem.domain, shape.elsewhere, controls, listed, definitions, Names(), timed
    return FormulaReader(*given)


def _definitions(
    problem: AbstractProblem, controls: np.ndarray | None
) -> dict[str, Callable[..., Any]]:
    """The formulas that a problem file gives names to."""
    names: list[str] = []
    if problem.clock is not None:
        return {}
    if controls is not None:
        size = int(np.prod(controls.shape[1:]))
        names = ["a"] if controls.ndim == 1 else [f"a{i + 1}" for i in range(size)]
    found: dict[str, Any] = {}
    for key, given in (toml_of(problem) or {}).get("definitions", {}).items():
        found[key] = parse(str(given), problem.domain.dimension, found, key, names)
    return {key: each for key, each in found.items() if callable(each)}


def parts_of(
    problem: AbstractProblem, shape: EquationShape, reader: FormulaReader
) -> dict[str, Coefficient]:
    """The coefficients that are given."""
    made: dict[str, Coefficient] = {}
    for name, function in shape.given.items():
        if name in shape.notes:
            made[name] = Coefficient(name, None, (shape.notes[name],))
        elif function is not None and _is_manufactured(problem, function):
            made[name] = Coefficient(name, None, (_manufactured(reader, name),))
        elif function is not None:
            made[name] = coefficient(reader, name, function)
    if problem.interfaces:
        made["interfaces"] = reader.interfaces(list(problem.interfaces))
    return made


def _is_manufactured(problem: AbstractProblem, function: Any) -> bool:
    """Whether the gallery made this from the solution that the problem knows."""
    place = (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
    if problem.exact is None or place not in MANUFACTURED:
        return False
    known = (problem.exact, getattr(problem.exact, "__wrapped__", problem.exact))
    closed = inspect.getclosurevars(function).nonlocals
    return any(closed.get(name) in known for name in ("exact", "potential"))


def _manufactured(reader: FormulaReader, name: str) -> str:
    """f is made so that a known function solves the equation."""
    if name == "source":
        carried = f"{words(' is what ')}{LETTERS['map']}{words(' carries to ')}{LETTERS['target']}"
        return f"{LETTERS['source']}{carried}"
    return f"{reader.of(name)}{words(' makes ')}{LETTERS['exact']}{words(' the solution')}"


def toml_of(problem: AbstractProblem) -> dict[str, Any] | None:
    text = (problem.source or {}).get("toml")
    return tomllib.loads(text) if text is not None else None
