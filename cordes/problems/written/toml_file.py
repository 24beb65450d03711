"""Problems from TOML: data and expressions that can do no harm.

The TOML schema is described in docs/toml.md. Every message names the file and the key, and shows
what is allowed there.
"""

import contextlib
import dataclasses
import functools
import keyword
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.domain import AbstractDomain
from cordes.errors import CordesError, FileError, shown, unknown
from cordes.formulas.written.toml import Expression, is_reserved, parse
from cordes.natural_names import missing
from cordes.problems.hjb import HJB
from cordes.problems.isaacs import Isaacs
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.written.toml_boundary import boundary_of
from cordes.problems.written.toml_time import (
    OBSTACLES,
    TIME,
    TIMES,
    check_times,
    timed,
    with_opponent,
    with_time,
)
from cordes.readers.toml_text import check_operations, read_toml
from cordes.tables.interpolate import interpolate

# The one that is written; files of older ones are read.
SCHEMA, OLDEST = 2, 1
_TABLES = ("schema", "kind", "name", "domain", "boundary", "equation", "definitions")
_COMMON = ("b", "c", "g", "interfaces", "exact")


def stopped(domain: AbstractDomain, name: str, below: Any = None, above: Any = None, **given: Any):
    """A problem with obstacles: the equation without stopping has controls, a horizon, both or
    none."""
    kind = HJB if "controls" in given else Parabolic if "horizon" in given else Linear
    return Obstacle(kind(domain, **given, name=name), below, above, name=name)


# For each kind: the class, the required and the optional keys of [equation].
_EQUATIONS: dict[str, tuple[Callable[..., AbstractProblem], tuple[str, ...], tuple[str, ...]]] = {
    "linear": (Linear, ("A", "f"), ("b", "c", "g", "interfaces", "epsilon", "exact")),
    "hjb": (HJB, ("controls", "A", "f"), (*_COMMON, "sense", *TIMES)),
    "isaacs": (Isaacs, ("controls", "opponents", "A", "f"), (*_COMMON, *TIMES)),
    "monge-ampere": (MongeAmpere, ("f",), ("g", "interfaces", "exact")),
    "parabolic": (Parabolic, ("horizon", "A", "f"), (*_COMMON, "initial", "terminal")),
    "obstacle": (stopped, ("A", "f"), (*_COMMON, "controls", "sense", *TIMES, *OBSTACLES)),
}
KINDS = tuple(_EQUATIONS)
NOT_IN_FILES = "Write it in Python: cordes.Transport(…)."
_EQUATION = {key for _, required, optional in _EQUATIONS.values() for key in (*required, *optional)}
MAX_CONTROLS = 100_000
# Domains made of several others, and how many these may be.
COMBINED = {"union": operator.or_, "intersection": operator.and_, "difference": operator.sub}
MOST_PARTS = 50
# What one file may ask for: a line of it must not fill the memory, or compile for an hour.
MAX_NAME, MAX_DIMENSION, MAX_INTERFACES = 200, 200, 100


def problem_from_toml(text: str, name: str = "problem") -> AbstractProblem:
    """The problem that a TOML text describes. `name` stands in messages and names the problem if
    the text does not.

    Checked: every key and expression, all dimensions; the domain and the problem make their own
    checks. The text is kept in the problem, so that a saved answer can bring its problem back.
    """
    table = read_toml(text, name)
    _check_kind(table.get("kind", KINDS[0]), name)
    _check_keys(table, name, _TABLES, ("schema",))
    # The version comes first: a file of another version may well have other keys.
    if type(table["schema"]) is not int or not OLDEST <= table["schema"] <= SCHEMA:
        read = f"this version of cordes reads schema = {OLDEST} to {SCHEMA}"
        raise FileError(f"{name}: schema = {shown(table['schema'])}, but {read}.")
    _check_keys(table, name, _TABLES, ("kind", "domain", "equation"))
    title = table.get("name", "")
    if not isinstance(title, str) or len(title) > MAX_NAME:
        most = f"a text in quotes of at most {MAX_NAME} characters"
        raise FileError(f"{name}: name must be {most}, not {shown(title)}.")
    for key in ("domain", "equation", "definitions"):
        if not isinstance(table.get(key, {}), dict):
            raise FileError(f"{name}: {key} must be a table [{key}], not {shown(table[key])}.")
    domain = _domain(table["domain"], f"{name}: domain")
    make, required, optional = _EQUATIONS[table["kind"]]
    label, equation = f"{name}: equation", table["equation"]
    _check_keys(equation, label, (*required, *optional), required)
    check_operations(table, domain.dimension, name)
    reader, arguments = _Reader(domain.dimension), {}
    if "controls" in equation:
        arguments["controls"], names = _controls(equation["controls"], f"{label}.controls")
        if "opponents" in equation:
            given = equation["opponents"], f"{label}.opponents", "o"
            arguments["opponents"], others = _controls(*given)
            names = (*names, *others)
        reader = dataclasses.replace(reader, controls=names)
    check_times(equation, label)
    if timed(equation):
        reader = dataclasses.replace(reader, controls=(TIME, *reader.controls))
    definitions = _definitions(table.get("definitions", {}), reader, domain, f"{name}: definitions")
    reader = dataclasses.replace(reader, definitions=definitions)
    arguments |= _equation(equation, reader, label)
    if "boundary" in table:
        scalar = dataclasses.replace(reader, fixed=True).scalar
        if timed(equation):
            sides = dataclasses.replace(reader, controls=(TIME,)).scalar
            scalar = lambda value, at: with_time(sides(value, at))  # noqa: E731
        given = table["boundary"], table["kind"], domain, scalar, reader.constant
        with _located(name):
            arguments["boundary"] = boundary_of(*given, f"{name}: boundary")
    with _located(label):
        made = make(domain, **arguments, name=table.get("name") or name.removesuffix(".toml"))
    return made.labelled(source={"toml": text})


def _check_kind(kind: Any, label: str) -> None:
    """Before all else: other kinds have other keys."""
    if not isinstance(kind, str) or kind not in KINDS:
        what = (
            NOT_IN_FILES if kind == "transport" else missing(kind if isinstance(kind, str) else "")
        )
        known = ", ".join(map(repr, KINDS))
        raise FileError(f"{label}: kind = {shown(kind)} is not for files. {what} Allowed: {known}.")


def _check_keys(
    table: dict[str, Any], label: str, known: Iterable[str], required: Iterable[str]
) -> None:
    known = tuple(known)
    for key in table:
        if key in known:
            continue
        if known == _TABLES and key in _EQUATION:
            raise FileError(f"{label}: {key} belongs into the table [equation].")
        hint = missing(key) or str(unknown("key", key, known)).partition(" Known:")[0]
        raise FileError(f"{label}.{key}: {hint} Allowed: {', '.join(known)}.")
    absent = [key for key in required if key not in table]
    if absent:
        are = "is" if len(absent) == 1 else "are"
        raise FileError(f"{label}: {', '.join(absent)} {are} missing. Allowed: {', '.join(known)}.")


@contextlib.contextmanager
def _located(label: str) -> Iterator[None]:
    """Names the file in errors that a domain or a problem raises; they stay what they are."""
    try:
        yield
    except CordesError as error:
        raise type(error)(f"{label}: {error}") from error


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Reads numbers and expressions in `dimension` coordinates with the given definitions; without
    coordinates only constants pass.

    `controls` are the names of the control's components, `fixed` says that what is read may not
    depend on them.
    """

    dimension: int = 0
    definitions: dict[str, float | Expression] = dataclasses.field(default_factory=dict)
    controls: tuple[str, ...] = ()
    fixed: bool = False

    def scalar(self, value: Any, label: str) -> float | Expression:
        if isinstance(value, str):
            return parse(value, self.dimension, self.definitions, label, self.controls, self.fixed)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(
                f"{label} must be a number or an expression in quotes, not {shown(value)}."
            )
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise FileError(f"{label} = {shown(value)} is not a finite number.")
        return number

    def constant(self, value: Any, label: str) -> float:
        number = _Reader(
            0, {key: entry for key, entry in self.definitions.items() if isinstance(entry, float)}
        ).scalar(value, label)
        assert isinstance(number, float)
        return number

    def vector(self, value: Any, label: str, length: int | None = None) -> list[float | Expression]:
        if not isinstance(value, list) or not value:
            raise FileError(
                f"{label} must be a list of "
                f"numbers{' or expressions' if self.dimension else ''}, not {shown(value)}."
            )
        if length is not None and len(value) != length:
            raise FileError(f"{label} has {len(value)} entries, but {length} are needed.")
        return [self.scalar(entry, f"{label}[{i + 1}]") for i, entry in enumerate(value)]

    def matrix(self, value: Any, label: str, width: int) -> list[list[float | Expression]]:
        if not isinstance(value, list) or not value:
            raise FileError(f"{label} must be a list of rows, not {shown(value)}.")
        return [self.vector(row, f"{label}, row {i + 1}", width) for i, row in enumerate(value)]


def _domain(table: dict[str, Any], label: str) -> AbstractDomain:
    """The domain; its numbers may be constant expressions such as "sqrt(2)"."""
    makers: dict[str, tuple[Callable[..., AbstractDomain], tuple[str, ...], tuple[str, ...]]] = {
        "box": (Box, ("lower", "upper"), ()),
        "ball": (Ball, ("center", "radius"), ()),
        "ellipsoid": (Ellipsoid, ("center", "axes"), ()),
        "polygon": (Polygon, ("vertices",), ("holes",)),
        "regular-polygon": (_regular_polygon, ("sides", "radius"), ("center", "angle")),
    }
    kind = table.get("type")
    if isinstance(kind, str) and kind in COMBINED:
        return _combined(table, kind, label)
    if kind is None:
        raise FileError(f"{label}: type is missing. Allowed: {', '.join([*makers, *COMBINED])}.")
    if not isinstance(kind, str) or kind not in makers:
        raise FileError(
            f"{label}: {unknown('type of domain', kind, [*makers, *COMBINED])} Allowed: "
            f"{', '.join([*makers, *COMBINED])}."
        )
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
        elif key == "holes":
            values[key] = _holes(table[key], reader, place)
        elif key == "vertices" or (
            key == "axes"
            and isinstance(table[key], list)
            and any(isinstance(row, list) for row in table[key])
        ):
            assert dimension is not None
            values[key] = np.array(reader.matrix(table[key], place, dimension))
            if key == "axes" and len(table[key]) != dimension:
                raise FileError(f"{place} has {len(table[key])} rows, but {dimension} are needed.")
        else:
            if isinstance(table[key], list) and len(table[key]) > MAX_DIMENSION:
                raise FileError(
                    f"{place} has {len(table[key])} entries: files are for up to {MAX_DIMENSION} "
                    "dimensions. Write the problem in Python, where A may have a structure."
                )
            values[key] = np.array(reader.vector(table[key], place, dimension))
            dimension = len(values[key])
    with _located(label):
        return maker(**values)


def _combined(table: dict[str, Any], kind: str, label: str) -> AbstractDomain:
    """The union or the intersection of several domains, or the first one without the others."""
    _check_keys(table, label, ("type", "of"), ("of",))
    parts = table["of"]
    if not isinstance(parts, list) or not 2 <= len(parts) <= MOST_PARTS:
        raise FileError(f"{label}.of must be a list of 2 to {MOST_PARTS} domains.")
    made = []
    for k, part in enumerate(parts):
        place = f"{label}.of[{k + 1}]"
        if not isinstance(part, dict) or part.get("type") in tuple(COMBINED):
            raise FileError(f"{place} must be a table with the type of a single domain.")
        made.append(_domain(part, place))
    with _located(label):
        return functools.reduce(COMBINED[kind], made)


def _holes(value: Any, reader: _Reader, label: str) -> list[np.ndarray]:
    """Lists of vertices."""
    if not isinstance(value, list):
        raise FileError(f"{label} must be a list of lists of vertices, not {shown(value)}.")
    return [np.array(reader.matrix(hole, f"{label}[{k + 1}]", 2)) for k, hole in enumerate(value)]


def _regular_polygon(
    sides: float, radius: float, center: np.ndarray | None = None, angle: float = math.pi / 2
) -> Polygon:
    """The polygon with equal sides whose corners have distance `radius` from the center, the first
    of them in the direction `angle`."""
    if not (sides.is_integer() and 3 <= sides <= 1000):
        raise FileError(f"sides = {sides:g} must be a whole number from 3 to 1000.")
    if radius <= 0:
        raise FileError(f"radius = {radius:g} must be positive.")
    angles = angle + 2 * math.pi * np.arange(int(sides)) / sides
    corners = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return Polygon(corners if center is None else corners + center)


def _definitions(
    table: dict[str, Any], reader: _Reader, domain: AbstractDomain, label: str
) -> dict[str, float | Expression]:
    """Named expressions; each may use those above it. A table of values is interpolated."""
    definitions: dict[str, float | Expression] = {}
    for key, value in table.items():
        if not (key.isascii() and key.isidentifier()) or keyword.iskeyword(key):
            raise FileError(
                f"{label}: {key!r} cannot be a name. Use letters, digits and _, beginning "
                "with a letter."
            )
        if is_reserved(key, controlled=bool(reader.controls)) or key in reader.controls:
            raise FileError(
                f"{label}: {key} already has a meaning in expressions. Choose another name."
            )
        above = dataclasses.replace(reader, definitions=definitions)
        place = f"{label}.{key}"
        if isinstance(value, dict):
            definitions[key] = _interpolated(value, domain, place)
        else:
            definitions[key] = above.scalar(value, place)
    return definitions


def _interpolated(table: dict[str, Any], domain: AbstractDomain, label: str) -> Expression:
    """A table of numbers over the domain as a function of the point."""
    _check_keys(table, label, ("values", "order", "image"), ("values",))
    with _located(label):
        made = interpolate(**table, domain=domain)
    return Expression(repr(made), {}, lambda scope: made(scope.x))


def _equation(table: dict[str, Any], reader: _Reader, label: str) -> dict[str, Any]:
    """The arguments of the problem but for its controls. What is constant stays a constant, so that
    the problem knows it."""
    d, arguments = reader.dimension, {}
    fixed = dataclasses.replace(reader, fixed=True)
    # What holds for all controls, in time too.
    sides = dataclasses.replace(reader, controls=(TIME,)) if timed(table) else fixed
    if "A" in table:
        arguments["A"] = _leading(table["A"], reader, f"{label}.A")
    for key, read in (("f", reader), ("c", reader), ("g", sides)):
        if key in table:
            arguments[key] = read.scalar(table[key], f"{label}.{key}")
    for key, read in (("initial", fixed), ("terminal", fixed)):
        if key in table:
            arguments[key] = read.scalar(table[key], f"{label}.{key}")
    for key in OBSTACLES:
        if key in table:
            arguments[key] = sides.scalar(table[key], f"{label}.{key}")
    if "horizon" in table:
        arguments["horizon"] = reader.constant(table["horizon"], f"{label}.horizon")
    if "b" in table:
        arguments["b"] = _stacked(reader.vector(table["b"], f"{label}.b", d), (d,))
    if "epsilon" in table:
        arguments["epsilon"] = reader.constant(table["epsilon"], f"{label}.epsilon")
    if "sense" in table:
        arguments["sense"] = table["sense"]
    if "exact" in table:
        exact = sides.scalar(table["exact"], f"{label}.exact")
        arguments["exact"] = (
            exact if isinstance(exact, Expression) else _stacked([exact], (), always=True)
        )
    if table.get("interfaces", []) != []:
        interfaces = sides.vector(table["interfaces"], f"{label}.interfaces")
        if len(interfaces) > MAX_INTERFACES:
            most = f"{MAX_INTERFACES} are allowed. One function may have many zero sets."
            raise FileError(f"{label}.interfaces has {len(interfaces)} entries, {most}")
        for i, phi in enumerate(interfaces):
            if not isinstance(phi, Expression):
                raise FileError(
                    f"{label}.interfaces[{i + 1}] = {phi:g} is constant; it must be an "
                    "expression that is zero on the interface."
                )
        arguments["interfaces"] = interfaces
    if timed(table):
        count = len(reader.controls) - 1
        single = ("g", "exact", *OBSTACLES)
        for key in ("A", "b", "c", "f", *single):
            if key in arguments:
                own = count if key in single else 0
                arguments[key] = with_time(arguments[key], own)
        if "interfaces" in arguments:
            arguments["interfaces"] = [with_time(phi, count) for phi in arguments["interfaces"]]
    elif "opponents" in table:
        arguments |= {key: with_opponent(arguments[key]) for key in "Abcf" if key in arguments}
    return arguments


def _controls(value: Any, label: str, letter: str = "a") -> tuple[np.ndarray, tuple[str, ...]]:
    """The controls, one in each row, and the names of their components: a for numbers, a1, a2, …
    for lists of numbers; o, o1, … for opponents.

    A table stands for an axis of equally spaced numbers, and a list of tables for all combinations
    of such axes.
    """
    entries = value if isinstance(value, list) else [value]
    kinds = {
        dict if isinstance(entry, dict) else list if isinstance(entry, list) else float
        for entry in entries
    }
    if len(kinds) != 1 or (kinds == {float} and not isinstance(value, list)):
        raise FileError(
            f"{label} must be a list of numbers, a list of lists of numbers, a table {{from, "
            f"to, count}} or a list of such tables, not {shown(value)}."
        )
    reader = _Reader()
    if len(entries) > MAX_CONTROLS:
        raise FileError(f"{label} has {len(entries)} entries, {MAX_CONTROLS} are allowed.")
    if kinds == {list}:
        rows = reader.matrix(value, label, max(1, len(value[0])))
        return np.array(rows, dtype=float), _components(len(rows[0]), letter)
    if kinds == {float}:
        return np.array(reader.vector(value, label), dtype=float), (letter,)
    if isinstance(value, dict):
        return _axis(value, label), (letter,)
    axes = [_axis(entry, f"{label}[{i + 1}]") for i, entry in enumerate(value)]
    count = math.prod(len(axis) for axis in axes)
    if count > MAX_CONTROLS:
        most = f"at most {MAX_CONTROLS} are allowed. Lower the counts."
        raise FileError(f"{label} are {count} combinations; {most}")
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    return grid.reshape(count, len(axes)), _components(len(axes), letter)


def _components(count: int, letter: str) -> tuple[str, ...]:
    return tuple(f"{letter}{i + 1}" for i in range(count))


def _axis(table: dict[str, Any], label: str) -> np.ndarray:
    """`count` equally spaced numbers, both ends included."""
    _check_keys(table, label, ("from", "to", "count"), ("from", "to", "count"))
    count = table["count"]
    if type(count) is not int or not 2 <= count <= MAX_CONTROLS:
        raise FileError(
            f"{label}.count = {shown(count)} must be a whole number from 2 to {MAX_CONTROLS}."
        )
    start, end = (_Reader().constant(table[key], f"{label}.{key}") for key in ("from", "to"))
    if start == end:
        raise FileError(f"{label}: from and to are both {start:g}; they must differ.")
    return np.linspace(start, end, count)


def _leading(value: Any, reader: _Reader, label: str) -> Any:
    """A: d rows of d entries, or one expression for a multiple of the identity."""
    d = reader.dimension
    if not isinstance(value, list):
        factor = reader.scalar(value, label)
        return (
            (lambda x, *a: factor(x, *a) * jnp.eye(d, dtype=x.dtype))
            if isinstance(factor, Expression)
            else factor * np.eye(d)
        )
    if len(value) != d or any(not isinstance(row, list) or len(row) != d for row in value):
        raise FileError(
            f"{label} must have {d} rows of {d} entries each, because the domain has dimension "
            f"{d}; it is {shown(value)}."
        )
    return _stacked([entry for row in reader.matrix(value, label, d) for entry in row], (d, d))


def _stacked(
    entries: list[float | Expression], shape: tuple[int, ...], always: bool = False
) -> np.ndarray | Callable[..., Array]:
    """An array if all entries are constant and a function is not asked for, otherwise a function of
    one point (and a control)."""
    constants = [entry for entry in entries if isinstance(entry, float)]
    if len(constants) == len(entries) and not always:
        return np.array(constants).reshape(shape)

    def stacked(x: Array, *a: Array) -> Array:
        x = jnp.asarray(x)
        return jnp.stack(
            [
                entry(x, *a) if isinstance(entry, Expression) else jnp.asarray(entry, x.dtype)
                for entry in entries
            ]
        ).reshape(shape)

    return stacked
