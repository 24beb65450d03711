"""Problems from files: FILE.toml holds data and expressions and can do no harm; FILE.py is the user's own program and is run as such.

The TOML schema is described in docs/toml.md. Every message names the file and the key, and shows what is allowed there.
"""

import contextlib
import dataclasses
import keyword
import math
import re
import runpy
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.ball import Ball
from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.ellipsoid import Ellipsoid
from cordes.domains.polygon import Polygon
from cordes.errors import CordesError, FileError, unknown
from cordes.problems.expressions import Expression, is_reserved, parse
from cordes.problems.linear import Linear

SCHEMA = 1
KINDS = ("linear",)
_TABLES = ("schema", "kind", "name", "domain", "equation", "definitions")
_EQUATION = ("A", "f", "b", "c", "g", "interfaces", "epsilon", "exact")


def load_problem(path: str | Path) -> Any:
    """The problem that FILE.toml describes or that FILE.py defines under the name `problem`.

    FILE.py is executed: load only files that you trust. Checked: the file can be read and defines a problem.
    """
    path = Path(path)
    if path.suffix not in (".py", ".toml"):
        raise FileError(f"{path}: a problem file ends in .toml or .py.")
    if not path.is_file():
        raise FileError(f"{path}: there is no such file.")
    if path.suffix == ".py":
        return _problem_from_python(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: the file cannot be read as UTF-8 text: {error}.") from error
    return problem_from_toml(text, path.name)


def problem_from_toml(text: str, name: str = "problem") -> Linear:
    """The problem that a TOML text describes. `name` stands in messages and names the problem if the text does not.

    Checked: every key and expression, all dimensions; the domain and the problem make their own checks. The text is kept in the problem, so that
    a saved answer can bring its problem back.
    """
    table = _read_toml(text, name)
    _check_keys(table, name, _TABLES, ("schema",))
    # The version comes first: a file of another version may well have other keys.
    if type(table["schema"]) is not int or table["schema"] != SCHEMA:
        raise FileError(f"{name}: schema = {table['schema']!r}, but this version of cordes reads schema = {SCHEMA}.")
    _check_keys(table, name, _TABLES, ("kind", "domain", "equation"))
    if table["kind"] not in KINDS:
        raise FileError(
            f"{name}: kind = {table['kind']!r} is not supported in files. Supported: {', '.join(map(repr, KINDS))}; write others in Python."
        )
    if not isinstance(table.get("name", ""), str):
        raise FileError(f"{name}: name must be a text in quotes, not {_shown(table['name'])}.")
    for key in ("domain", "equation", "definitions"):
        if not isinstance(table.get(key, {}), dict):
            raise FileError(f"{name}: {key} must be a table [{key}], not {_shown(table[key])}.")
    domain = _domain(table["domain"], f"{name}: domain")
    reader = _Reader(domain.dimension, _definitions(table.get("definitions", {}), domain.dimension, f"{name}: definitions"))
    arguments = _equation(table["equation"], reader, f"{name}: equation")
    with _located(f"{name}: equation"):
        return Linear(domain, **arguments, name=table.get("name") or name.removesuffix(".toml"), source={"toml": text})


def _read_toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{name}: this is not TOML: {error}."
        place = re.search(r"at line (\d+), column (\d+)", str(error))
        lines = text.splitlines()
        if place and int(place[1]) <= len(lines):
            message += f"\n    {lines[int(place[1]) - 1]}\n    {' ' * (int(place[2]) - 1)}^\nExpressions and texts stand in quotes."
        raise FileError(message) from error
    except RecursionError:
        raise FileError(f"{name}: lists are nested too deeply.") from None


def _check_keys(table: dict[str, Any], label: str, known: Iterable[str], required: Iterable[str]) -> None:
    known = tuple(known)
    for key in table:
        if key in known:
            continue
        if known == _TABLES and key in _EQUATION:
            raise FileError(f"{label}: {key} belongs into the table [equation].")
        raise FileError(f"{label}: {unknown('key', key, known)} Allowed: {', '.join(known)}.")
    missing = [key for key in required if key not in table]
    if missing:
        raise FileError(f"{label}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Allowed: {', '.join(known)}.")


@contextlib.contextmanager
def _located(label: str) -> Iterator[None]:
    """Names the file in errors that a domain or a problem raises; they stay what they are."""
    try:
        yield
    except CordesError as error:
        raise type(error)(f"{label}: {error}") from error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Reads numbers and expressions in `dimension` coordinates with the given definitions; without coordinates only constants pass."""

    dimension: int = 0
    definitions: dict[str, float | Expression] = dataclasses.field(default_factory=dict)

    def scalar(self, value: Any, label: str) -> float | Expression:
        if isinstance(value, str):
            return parse(value, self.dimension, self.definitions, label)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{label} must be a number or an expression in quotes, not {_shown(value)}.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise FileError(f"{label} = {_shown(value)} is not a finite number.")
        return number

    def constant(self, value: Any, label: str) -> float:
        number = _Reader(0, {key: entry for key, entry in self.definitions.items() if isinstance(entry, float)}).scalar(value, label)
        assert isinstance(number, float)
        return number

    def vector(self, value: Any, label: str, length: int | None = None) -> list[float | Expression]:
        if not isinstance(value, list) or not value:
            raise FileError(f"{label} must be a list of numbers{' or expressions' if self.dimension else ''}, not {_shown(value)}.")
        if length is not None and len(value) != length:
            raise FileError(f"{label} has {len(value)} entries, but {length} are needed.")
        return [self.scalar(entry, f"{label}[{i + 1}]") for i, entry in enumerate(value)]

    def matrix(self, value: Any, label: str, width: int) -> list[list[float | Expression]]:
        if not isinstance(value, list) or not value:
            raise FileError(f"{label} must be a list of rows, not {_shown(value)}.")
        return [self.vector(row, f"{label}, row {i + 1}", width) for i, row in enumerate(value)]


def _domain(table: dict[str, Any], label: str) -> AbstractDomain:
    """The domain; its numbers may be constant expressions such as "sqrt(2)"."""
    makers: dict[str, tuple[Callable[..., AbstractDomain], tuple[str, ...], tuple[str, ...]]] = {
        "box": (Box, ("lower", "upper"), ()),
        "ball": (Ball, ("center", "radius"), ()),
        "ellipsoid": (Ellipsoid, ("center", "axes"), ()),
        "polygon": (Polygon, ("vertices",), ()),
        "regular-polygon": (_regular_polygon, ("sides", "radius"), ("center", "angle")),
    }
    kind = table.get("type")
    if kind is None:
        raise FileError(f"{label}: type is missing. Allowed: {', '.join(makers)}.")
    if not isinstance(kind, str) or kind not in makers:
        raise FileError(f"{label}: {unknown('type of domain', str(kind), makers)} Allowed: {', '.join(makers)}.")
    maker, required, optional = makers[kind]
    _check_keys(table, label, ("type", *required, *optional), required)
    reader = _Reader()
    values: dict[str, Any] = {}
    # The first list of a box, a ball or an ellipsoid sets the dimension of the others.
    dimension = 2 if "polygon" in kind else None
    for key in (*required, *optional):
        if key not in table:
            continue
        place = f"{label}.{key}"
        if key in ("radius", "sides", "angle"):
            values[key] = reader.scalar(table[key], place)
        elif key == "vertices" or (key == "axes" and isinstance(table[key], list) and any(isinstance(row, list) for row in table[key])):
            assert dimension is not None
            values[key] = np.array(reader.matrix(table[key], place, dimension))
            if key == "axes" and len(table[key]) != dimension:
                raise FileError(f"{place} has {len(table[key])} rows, but {dimension} are needed.")
        else:
            values[key] = np.array(reader.vector(table[key], place, dimension))
            dimension = len(values[key])
    with _located(label):
        return maker(**values)


def _regular_polygon(sides: float, radius: float, center: np.ndarray | None = None, angle: float = math.pi / 2) -> Polygon:
    """The polygon with equal sides whose corners have distance `radius` from the center, the first of them in the direction `angle`."""
    if not (sides.is_integer() and 3 <= sides <= 1000):
        raise FileError(f"sides = {sides:g} must be a whole number from 3 to 1000.")
    if radius <= 0:
        raise FileError(f"radius = {radius:g} must be positive.")
    angles = angle + 2 * math.pi * np.arange(int(sides)) / sides
    corners = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Polygon(corners if center is None else corners + center)


def _definitions(table: dict[str, Any], dimension: int, label: str) -> dict[str, float | Expression]:
    """Named expressions; each may use those above it."""
    definitions: dict[str, float | Expression] = {}
    for key, value in table.items():
        if not (key.isascii() and key.isidentifier()) or keyword.iskeyword(key):
            raise FileError(f"{label}: {key!r} cannot be a name. Use letters, digits and _, beginning with a letter.")
        if is_reserved(key):
            raise FileError(f"{label}: {key} already has a meaning in expressions. Choose another name.")
        definitions[key] = _Reader(dimension, definitions).scalar(value, f"{label}.{key}")
    return definitions


def _equation(table: dict[str, Any], reader: _Reader, label: str) -> dict[str, Any]:
    """The arguments of `Linear`. What is constant stays a constant, so that the problem knows it."""
    _check_keys(table, label, _EQUATION, ("A", "f"))
    d = reader.dimension
    arguments: dict[str, Any] = {"A": _leading(table["A"], reader, f"{label}.A")}
    for key in ("f", "c", "g"):
        if key in table:
            arguments[key] = reader.scalar(table[key], f"{label}.{key}")
    if "b" in table:
        arguments["b"] = _stacked(reader.vector(table["b"], f"{label}.b", d), (d,))
    if "epsilon" in table:
        arguments["epsilon"] = reader.constant(table["epsilon"], f"{label}.epsilon")
    if "exact" in table:
        exact = reader.scalar(table["exact"], f"{label}.exact")
        arguments["exact"] = exact if isinstance(exact, Expression) else _stacked([exact], (), always=True)
    if table.get("interfaces", []) != []:
        interfaces = reader.vector(table["interfaces"], f"{label}.interfaces")
        for i, phi in enumerate(interfaces):
            if not isinstance(phi, Expression):
                raise FileError(f"{label}.interfaces[{i + 1}] = {phi:g} is constant; it must be an expression that is zero on the interface.")
        arguments["interfaces"] = interfaces
    return arguments


def _leading(value: Any, reader: _Reader, label: str) -> Any:
    """A: d rows of d entries, or one expression for a multiple of the identity."""
    d = reader.dimension
    if not isinstance(value, list):
        factor = reader.scalar(value, label)
        return (lambda x: factor(x) * jnp.eye(d, dtype=x.dtype)) if isinstance(factor, Expression) else factor * np.eye(d)
    if len(value) != d or any(not isinstance(row, list) or len(row) != d for row in value):
        raise FileError(f"{label} must have {d} rows of {d} entries each, because the domain has dimension {d}; it is {_shown(value)}.")
    return _stacked([entry for row in reader.matrix(value, label, d) for entry in row], (d, d))


def _stacked(entries: list[float | Expression], shape: tuple[int, ...], always: bool = False) -> np.ndarray | Callable[[Array], Array]:
    """An array if all entries are constant and a function is not asked for, otherwise a function of one point."""
    constants = [entry for entry in entries if isinstance(entry, float)]
    if len(constants) == len(entries) and not always:
        return np.array(constants).reshape(shape)

    def stacked(x: Array) -> Array:
        x = jnp.asarray(x)
        return jnp.stack([entry(x) if isinstance(entry, Expression) else jnp.asarray(entry, x.dtype) for entry in entries]).reshape(shape)

    return stacked


def _problem_from_python(path: Path) -> Any:
    # Files beside the problem can be imported, as they can when Python runs it.
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        variables = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FileError(f"{path}{_line(error, path)}: {type(error).__name__}: {reason}") from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    if "problem" not in variables:
        raise FileError(f"{path}: the file defines no variable named problem. Write, for instance, problem = cordes.Linear(...).")
    problem = variables["problem"]
    if not (hasattr(problem, "domain") and hasattr(problem, "linearise")) or isinstance(problem, type):
        raise FileError(f"{path}: problem is {_shown(problem)}, which is no problem of cordes. Write, for instance, problem = cordes.Linear(...).")
    return problem


def _line(error: BaseException, path: Path) -> str:
    """The last line of the user's own file that the error came through."""
    if isinstance(error, SyntaxError) and error.filename == str(path) and error.lineno:
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""
