"""Tables of the documentation that are read off the code: results, errors, options, the gallery,
the public names."""

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cordes
from cordes import errors
from cordes.gallery import gallery
from cordes.problems.transport import MassError
from cordes.solvers.options import SOLVERS

DOCS = Path(__file__).resolve().parent
MEANINGS = {
    "activation": "of the network: `sine`, `tanh`, `silu`",
    "depth": "hidden layers",
    "epochs": "passes over the points, at most",
    "estimator": (
        "`exact`, or `stochastic`: A:D²u from random directions, for hundreds of dimensions"
    ),
    "features": "the largest number of features",
    "frequency": "the scale of the hidden weights",
    "learning_rate": "of Adam",
    "momentum": "of the Gauss–Newton direction",
    "cells": "the largest number of cells",
    "levels": "how many sizes of the basis are tried",
    "degree": "of the polynomials: 10, or 14 where all cells ask for more",
    "oversampling": "collocation points for each feature",
    "points": "collocation points (in a step, where they are drawn anew)",
    "precision": "`float32` or `float64` in training; certificates are always computed in float64",
    "preset": "`paper`: network, points and epochs of the paper",
    "probes": "random directions of the stochastic estimator",
    "resample": "fresh points in every step",
    "steps": "Gauss–Newton steps, at most",
    "width": "units of a hidden layer",
}
# Options whose default depends on another one.
UNSET = {
    "preset": "none",
    "probes": f"`{cordes.Adam(estimator='stochastic').probes!r}`",
}


def tables() -> dict[str, str]:
    """Names of tables with their texts."""
    return {
        "results": _results(),
        "errors": _errors(),
        "options": _options(),
        "gallery": _gallery(),
        "names": _names(),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def _first_sentence(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _results() -> str:
    return _table(
        ["result", "what it means", "what to do"],
        [(f"`{result.value}`", result.sentence, result.remedy) for result in cordes.Result],
    )


def _errors() -> str:
    kinds = (
        errors.DomainError,
        errors.CoefficientError,
        errors.FileError,
        errors.OptionError,
        MassError,
        errors.SurfaceError,
        errors.MemoryLimitError,
    )
    return _table(
        ["`kind`", "exception", "what it is"],
        [(f"`{kind.kind}`", f"`{kind.__name__}`", _first_sentence(kind)) for kind in kinds],
    )


def _options() -> str:
    """The options of each method, the fields of its solver, with their defaults; `None` there means
    that the method chooses."""
    rows = []
    for method, kind in SOLVERS.items():
        defaults = kind().data()
        for name in sorted(kind.names()):
            default = defaults.get(name)
            shown = UNSET.get(name, "chosen by the method") if default is None else f"`{default!r}`"
            rows.append((f"`{method}`", f"`{name}`", MEANINGS[name], shown))
    return _table(["method", "option", "what it is", "default"], rows)


def _gallery() -> str:
    return _table(["name", "problem"], [(f"`{name}`", gallery.describe(name)) for name in gallery])


def _names() -> str:
    """Every public name with the first sentence of its documentation, and a link to the page that
    has all of it."""
    pages = {
        name: path.name
        for path in sorted((DOCS / "api").glob("*.md"))
        for name in re.findall(
            r"^::: cordes\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    rows = []
    for name in sorted(cordes.__all__, key=str.lower):
        sentence = _first_sentence(getattr(cordes, name)).split(". ")[0].rstrip(".") + "."
        rows.append((f"[`cordes.{name}`]({pages[name]}#cordes.{name})", sentence))
    return _table(["name", "what it is"], rows)
