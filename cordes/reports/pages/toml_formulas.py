"""The formulas of problem files in TOML: their expressions, and the definitions that these use."""

import tomllib
from typing import Any

import numpy as np

from cordes.problems.problem import AbstractProblem
from cordes.reports.pages.mathml import Untypeset, array, constant, node, symbol
from cordes.reports.pages.written import Names, Written, checked, from_text


def toml_of(problem: AbstractProblem) -> dict[str, Any] | None:
    text = (problem.source or {}).get("toml")
    return tomllib.loads(text) if text is not None else None


def _names(problem: AbstractProblem) -> dict[str, Any]:
    """What names mean in the expressions of a problem file, and how they look: no two alike."""
    table = toml_of(problem) or {}
    controls = getattr(problem, "controls", None)
    axes = (
        []
        if controls is None
        else ["a"]
        if controls.ndim == 1
        else [f"a{i + 1}" for i in range(controls.shape[1])]
    )
    known = {
        name: symbol(name)
        for name in (*(f"x{i + 1}" for i in range(problem.domain.dimension)), *axes, "pi", "e")
    }
    looks = Names(each.mathml for each in known.values())
    for name in table.get("definitions", {}):
        made = looks.give(name, name)
        if made is None:
            raise Untypeset(f"no letter for {name}")
        known[name] = made
    return known | {"r": abs(symbol("x"))}


def from_toml(problem: AbstractProblem, name: str) -> Written:
    """A coefficient of a problem file; one number or formula is a multiple of the identity where a
    matrix is meant."""
    given = (toml_of(problem) or {})["equation"][name]
    written = read_toml(problem, given)
    if name == "A" and not isinstance(given, list):
        return Written(written.value * array(np.eye(problem.domain.dimension)), written.definitions)
    return written


def read_toml(problem: AbstractProblem, given: Any) -> Written:
    """What a problem file gives, with the definitions that it uses."""
    names = _names(problem)

    def read(entry: Any) -> Any:
        if isinstance(entry, list):
            return array([read(part) for part in entry])
        return from_text(entry, names) if isinstance(entry, str) else constant(float(entry))

    texts = {
        key: str(text) for key, text in (toml_of(problem) or {}).get("definitions", {}).items()
    }
    used, found = _mentioned(given), {}
    for key in reversed(texts):
        if key in used:
            used |= _mentioned(texts[key])
            found[key] = node(from_text(texts[key], names))
    return checked(read(given), {names[key].mathml: found[key] for key in texts if key in found})


def _mentioned(given: Any) -> set[str]:
    """The words in an expression, or in a list of them."""
    if isinstance(given, list):
        return set().union(*(_mentioned(part) for part in given))
    return {"".join(word) for word in _words(str(given))}


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split()
