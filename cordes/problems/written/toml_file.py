"""Problems from TOML: data and expressions that can do no harm.

The TOML schema is described in docs/toml.md. Every message names the file and the key, and shows
what is allowed there.
"""

import dataclasses
import keyword
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import FileError, shown
from cordes.formulas.written.toml import Expression, is_reserved
from cordes.natural_names import missing
from cordes.problems.hjb import HJB
from cordes.problems.isaacs import Isaacs
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.written.toml_boundary import boundary_of
from cordes.problems.written.toml_domain import domain_of
from cordes.problems.written.toml_time import (
    OBSTACLES,
    TIME,
    TIMES,
    check_times,
    timed,
    with_opponent,
    with_time,
)
from cordes.problems.written.toml_values import (
    MAX_INTERFACES,
    MAX_NAME,
    TomlReader,
    check_keys,
    located,
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


def problem_from_toml(text: str, name: str = "problem") -> AbstractProblem:
    """The problem that a TOML text describes. `name` stands in messages and names the problem if
    the text does not.

    Checked: every key and expression, all dimensions; the domain and the problem make their own
    checks. The text is kept in the problem, so that a saved answer can bring its problem back.
    """
    table = read_toml(text, name)
    _check_kind(table.get("kind", KINDS[0]), name)
    check_keys(table, name, _TABLES, ("schema",), _EQUATION)
    # The version comes first: a file of another version may well have other keys.
    if type(table["schema"]) is not int or not OLDEST <= table["schema"] <= SCHEMA:
        read = f"this version of cordes reads schema = {OLDEST} to {SCHEMA}"
        raise FileError(f"{name}: schema = {shown(table['schema'])}, but {read}.")
    check_keys(table, name, _TABLES, ("kind", "domain", "equation"), _EQUATION)
    title = table.get("name", "")
    if not isinstance(title, str) or len(title) > MAX_NAME:
        most = f"a text in quotes of at most {MAX_NAME} characters"
        raise FileError(f"{name}: name must be {most}, not {shown(title)}.")
    for key in ("domain", "equation", "definitions"):
        if not isinstance(table.get(key, {}), dict):
            raise FileError(f"{name}: {key} must be a table [{key}], not {shown(table[key])}.")
    domain = domain_of(table["domain"], f"{name}: domain")
    make, required, optional = _EQUATIONS[table["kind"]]
    label, equation = f"{name}: equation", table["equation"]
    check_keys(equation, label, (*required, *optional), required)
    check_operations(table, domain.dimension, name)
    reader, arguments = TomlReader(domain.dimension), {}
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
        with located(name):
            arguments["boundary"] = boundary_of(*given, f"{name}: boundary")
    with located(label):
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


def _definitions(
    table: dict[str, Any], reader: TomlReader, domain: AbstractDomain, label: str
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
    check_keys(table, label, ("values", "order", "image"), ("values",))
    with located(label):
        made = interpolate(**table, domain=domain)
    return Expression(repr(made), {}, lambda scope: made(scope.x))


def _equation(table: dict[str, Any], reader: TomlReader, label: str) -> dict[str, Any]:
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
    reader = TomlReader()
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
    check_keys(table, label, ("from", "to", "count"), ("from", "to", "count"))
    count = table["count"]
    if type(count) is not int or not 2 <= count <= MAX_CONTROLS:
        raise FileError(
            f"{label}.count = {shown(count)} must be a whole number from 2 to {MAX_CONTROLS}."
        )
    start, end = (TomlReader().constant(table[key], f"{label}.{key}") for key in ("from", "to"))
    if start == end:
        raise FileError(f"{label}: from and to are both {start:g}; they must differ.")
    return np.linspace(start, end, count)


def _leading(value: Any, reader: TomlReader, label: str) -> Any:
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
