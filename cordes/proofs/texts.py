"""The equation of a problem as a problem file, which is what a proof is about: decimals are exact,
pi is π.

Problems of the gallery have a text that was written by hand (`cordes_check/named.toml`), files are
quoted, and the functions of a problem written in Python are read by their trace. Whatever the text
is, it is compared with the functions that were solved.
"""

import functools
import json
import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import Walled
from cordes.formulas.terms import Unwritable
from cordes.formulas.written.text import as_text
from cordes.formulas.written.writing import write
from cordes.problems.hjb import HJB
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.proofs.needed import NotProvedError
from cordes.runtime.plain import show
from cordes_check.balls import PAIRS, rational
from cordes_check.cells import Cell, Place
from cordes_check.equations import Equation

# More controls than this are no finite problem for a proof.
MOST_CONTROLS = 8
# How far values of the text may lie from those of the functions, relative to the largest.
SAME = 1e-9
KINDS: dict[type, str] = {Linear: "linear", HJB: "hjb", MongeAmpere: "monge-ampere"}


class Text(NamedTuple):
    """A problem file, and the name in the gallery if it has one."""

    toml: str
    name: str | None = None


def problem_text(problem: AbstractProblem) -> Text:
    """The text of a problem; NotProvedError where there is none."""
    source = problem.source or {}
    name = source.get("gallery")
    known = tomllib.loads(files("cordes_check").joinpath("named.toml").read_text("utf-8"))
    if name in known:
        return Text(known[name], name)
    if type(problem) not in KINDS:
        raise NotProvedError(
            f"no theorem of the checker is about {type(problem).__name__} problems"
        )
    domain_text(problem.domain)  # Says why not, if the checker does not know it.
    if "toml" in source and _quotable(source["toml"]):
        return Text(source["toml"])
    try:
        return Text(_written(problem))
    except Unwritable as error:
        raise NotProvedError(f"the equation has no text: {error}") from None


def _quotable(text: str) -> bool:
    """Whether the checker reads a file as it is: it wants plain numbers for the domain and lists of
    numbers for controls."""
    table = tomllib.loads(text)
    domain, equation = table["domain"], table["equation"]
    plain = all(
        isinstance(v, int | float) for key in ("lower", "upper") for v in domain.get(key, [])
    )
    controls = equation.get("controls", [])
    listed = isinstance(controls, list) and not any(isinstance(each, dict) for each in controls)
    tables = any(isinstance(each, dict) for each in table.get("definitions", {}).values())
    return plain and listed and not tables


@functools.singledispatch
def domain_text(domain: AbstractDomain) -> str:
    raise NotProvedError(f"the checker knows boxes, not {type(domain).__name__}: {domain!r}")


@domain_text.register
def _(domain: Walled) -> str:
    raise NotProvedError("the theorems of the checker want u = g on all of the boundary")


@domain_text.register
def _(domain: Box) -> str:
    corners = (
        f"{name} = {side.tolist()}"
        for name, side in (("lower", domain.lower), ("upper", domain.upper))
    )
    return "\n".join(['type = "box"', *corners])


def _written(problem: AbstractProblem) -> str:
    """The text of a problem that was written in Python."""
    d, kind = problem.domain.dimension, KINDS[type(problem)]
    names, controls = [f"x{i + 1}" for i in range(d)], problem.controls
    lines = []
    parts: dict[str, tuple[int, ...]] = {"f": ()}
    if kind != "monge-ampere":
        parts = {"A": (d, d), "b": (d,), "c": (), "f": ()}
    if controls is not None:
        names += [f"a{i + 1}" for i in range(controls[0].size)] if controls.ndim > 1 else ["a"]
        lines += [
            f"controls = {controls.tolist()}",
            f'sense = "{"sup" if problem.sign > 0 else "inf"}"',
        ]
    shape = () if controls is None else controls.shape[1:]

    def everything(z: Any) -> Any:
        more = () if controls is None else (z[d:].reshape(shape),)
        values = [getattr(problem, name)(z[:d], *more) for name in parts]
        return jnp.concatenate([jnp.ravel(jnp.asarray(value, dtype=float)) for value in values])

    found = as_text(write(everything, names, d))
    entries, definitions = list(found.value), found.definitions
    for name, shape in parts.items():
        count = int(np.prod(shape, dtype=int))
        used, entries = entries[:count], entries[count:]
        nested = np.array(used, dtype=object).reshape(shape).tolist() if shape else used[0]
        lines.append(f"{name} = {json.dumps(nested)}")
    outer = (problem.g, *problem.interfaces)
    found = as_text(
        write(lambda x: jnp.stack([jnp.asarray(each(x), float) for each in outer]), names[:d])
    )
    if found.definitions:
        raise Unwritable("boundary values or interfaces that are too long")
    lines += [f"g = {json.dumps(found.value[0])}", f"interfaces = {json.dumps(found.value[1:])}"]
    head = f'schema = 1\nkind = "{kind}"\n\n[domain]\n{domain_text(problem.domain)}\n'
    middle = "".join(f"{name} = {json.dumps(text)}\n" for name, text in definitions.items())
    return f"{head}\n[definitions]\n{middle}\n[equation]\n" + "\n".join(lines) + "\n"


def check_same(equation: Equation, problem: AbstractProblem, points: np.ndarray) -> None:
    """NotProvedError unless the checker reads in the text the coefficients that were solved, and
    the boundary values."""
    source: Any = problem
    coefficients = jax.jit(source.f if problem.convex else problem.at)
    g, outside = jax.jit(problem.g), problem.domain.boundary_points(len(points), seed=78)[0]
    for x in points:
        for found, expected in zip(
            _read(equation, x), _solved(problem, coefficients, x), strict=True
        ):
            _need_same(found, expected, x)
    for x in outside:
        cell, place = _at(x)
        value = float(equation.formulas.on(equation.g, cell)(place))
        _need_same([value], [float(g(jnp.asarray(x)))], x)


def _need_same(found: list[float], expected: list[float], x: np.ndarray) -> None:
    size = np.maximum(1.0, np.max(np.abs(expected)))
    if not np.allclose(found, expected, rtol=0, atol=SAME * size):
        raise NotProvedError(
            f"the text of the equation has other values than its functions, at x = {show(x)}"
        )


def _at(x: np.ndarray) -> tuple[Cell, Place]:
    """A small cell around a point, and the point in it."""
    side = 2.0**-30
    rows = [x - side / 2, *(side * np.eye(len(x)))]
    cell = Cell("box", [[rational(repr(float(c))) for c in row] for row in rows], "a point")
    return cell, cell.place([arb(0.5)] * len(x))


def _read(equation: Equation, x: np.ndarray) -> list[list[float]]:
    """In the order of the checker: for each control the parts of the operator and f."""
    cell, place = _at(x)
    if equation.f is not None:
        return [[float(equation.formulas.on(equation.f, cell)(place))]]
    found = []
    for k, operator in enumerate(equation.on(cell)):
        parts, count = operator.at(place), 1 + len(x) + len(PAIRS[len(x)])
        f = operator.source(place, parts) + _loss(equation, cell, place, k)
        found.append([*(float(parts.get(i, 0)) for i in range(count)), float(f)])
    return found


def _loss(equation: Equation, cell: Cell, place: Place, control: int) -> float:
    """What f has beside it in the text of a problem with a loss."""
    if "switch" not in equation.table:
        return 0.0
    formulas = equation.formulas
    switch = float(formulas.on(formulas.read(equation.table["switch"]), cell)(place))
    above, below = (equation.table[key][control] for key in ("above", "below"))
    loss = above * max(switch, 0.0) + below * max(-switch, 0.0)
    return loss if equation.sense == "sup" else -loss


def _solved(problem: AbstractProblem, coefficients: Callable, x: np.ndarray) -> list[list[float]]:
    d = len(x)
    if problem.convex:
        return [[float(coefficients(jnp.asarray(x)))]]
    found = []
    for a in [()] if problem.controls is None else [(jnp.asarray(a),) for a in problem.controls]:
        A, b, c, f = (np.asarray(part) for part in coefficients(jnp.asarray(x), *a))
        second = [A[i, i] if i == j else A[i, j] + A[j, i] for i in range(d) for j in range(i, d)]
        found.append([-c, *b, *second, f])
    return found
