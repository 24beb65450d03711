"""The text of a problem file, read with limits: what a reader makes of a few bytes must not fill
the memory. Every limit names itself and what to do instead."""

import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from cordes.errors import FileError, shown

# Characters of a file, of an expression and of a key, and parts of a key.
MAX_TEXT, MAX_LENGTH, MAX_KEY, MAX_PARTS = 1_000_000, 2000, 100, 20
# Characters of a faulty line that are shown.
_EXCERPT = 100
MAX_DEFINITIONS, MAX_OPERATIONS = 500, 20_000
# Operations of one value of a table.
LOOKUP = 100
# A quoted text or a comment, which may hold what it likes, and a key of many parts. Both are read
# in one pass: nothing that was matched is tried again.
_QUOTED = re.compile(r"""\"(?:[^"\\\n]|\\.)*+\"?|'[^'\n]*+'?|#[^\n]*+""")
# What is traced and compiled for an expression: its operations and calls. A length has one for each
# coordinate.
_OPERATION = re.compile(r"\*\*|[-+*/<>=(,]")
_LENGTH = re.compile(r"\br\b|\bnorm\b")
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}")


def read_toml(text: str, name: str) -> dict[str, Any]:
    """The tables of a text. Checked: its length, keys, numbers and texts; `name` begins every
    message."""
    if len(text) > MAX_TEXT:
        raise too_long(name, len(text))
    # Python's reader needs memory that grows with the square of the parts of a key.
    if _DOTTED.search(_QUOTED.sub("q", text)):
        raise FileError(
            f"{name}: a key has more than {MAX_PARTS} parts joined by dots. The tables of a "
            "problem file are [domain], [equation] and [definitions]."
        )
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{name}: this is not TOML: {error}.{_place(error, text)}") from error
    except ValueError as error:
        # The only other one: Python reads no integers of so many digits.
        most = sys.get_int_max_str_digits()
        raise FileError(f"{name}: a number has more than {most} digits.") from error
    except RecursionError:
        raise FileError(f"{name}: lists are nested too deeply.") from None
    for label, value in _entries(table, name):
        _check_entry(label, value)
    return table


def too_long(name: str, size: int) -> FileError:
    return FileError(
        f"{name}: the file has {size} characters, and problem files have at most {MAX_TEXT}. Large "
        "tables are read in Python: cordes.interpolate(numpy.load(…), domain)."
    )


def _place(error: tomllib.TOMLDecodeError, text: str) -> str:
    """The faulty line, or the part of it around the fault, with a mark."""
    place, lines = re.search(r"at line (\d+), column (\d+)", str(error)), text.splitlines()
    if place is None or int(place[1]) > len(lines):
        return ""
    line, column = lines[int(place[1]) - 1], int(place[2]) - 1
    start = max(0, column - _EXCERPT // 2) if len(line) > _EXCERPT else 0
    excerpt, mark = line[start : start + _EXCERPT], " " * (column - start)
    return f"\n    {excerpt}\n    {mark}^\nExpressions and texts stand in quotes."


def _entries(table: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """All entries with their places, tables and lists among them."""
    waiting: list[tuple[str, Any]] = [(name, table)]
    while waiting:
        label, value = waiting.pop()
        yield label, value
        if isinstance(value, dict):
            joined = ": " if label == name else "."
            waiting += [(f"{label}{joined}{key}", part) for key, part in value.items()]
        elif isinstance(value, list):
            waiting += [(label, part) for part in value]


def _check_entry(label: str, value: Any) -> None:
    if isinstance(value, dict):
        for key in value:
            if len(key) > MAX_KEY:
                raise FileError(
                    f"{label}: the key {shown(key)} has more than {MAX_KEY} characters."
                )
    elif isinstance(value, int) and value.bit_length() > 1023:
        raise FileError(f"{label} = {shown(value)} is not a finite number.")
    elif isinstance(value, str) and len(value) > MAX_LENGTH:
        raise FileError(
            f"{label}: the text has {len(value)} characters, {MAX_LENGTH} are allowed. Split an "
            "expression with [definitions]."
        )


def check_operations(table: dict[str, Any], dimension: int, name: str) -> None:
    """Refuse what would be compiled for minutes: too many definitions, or operations in all
    expressions together."""
    definitions = table.get("definitions", {})
    if len(definitions) > MAX_DEFINITIONS:
        raise FileError(
            f"{name}: there are {len(definitions)} definitions, {MAX_DEFINITIONS} are allowed. "
            "Write the problem in Python, where functions have loops and tables."
        )
    parts = [*definitions.values(), *table["equation"].values(), table.get("boundary")]
    count = sum(_operations(part, dimension) for part in parts)
    if count > MAX_OPERATIONS:
        raise FileError(
            f"{name}: the expressions have about {count} operations in all, {MAX_OPERATIONS} are "
            "allowed. Write the problem in Python, with jax.numpy on whole vectors."
        )


def _operations(value: Any, dimension: int) -> int:
    """Of an expression, or of a list or a table in which there is one: what is constant costs
    nothing, but for a table of values, which is looked up."""
    if isinstance(value, str):
        lengths = dimension * len(_LENGTH.findall(value))
        return 1 + len(_OPERATION.findall(value)) + lengths
    if isinstance(value, dict):
        looked_up = LOOKUP if "values" in value else 0
        return looked_up + sum(_operations(part, dimension) for part in value.values())
    if not isinstance(value, list):
        return 0
    found = sum(_operations(part, dimension) for part in value)
    return found + len(value) if found else 0
