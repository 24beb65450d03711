"""Numbers, vectors and expressions of a TOML file, and what its tables may hold."""

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

from cordes.errors import CordesError, FileError, shown, unknown
from cordes.formulas.written.toml import Expression, parse
from cordes.natural_names import missing

# What one file may ask for: a line of it must not fill the memory, or compile for an hour.
MAX_NAME, MAX_DIMENSION, MAX_INTERFACES = 200, 200, 100


def check_keys(
    table: dict[str, Any],
    label: str,
    known: Iterable[str],
    required: Iterable[str],
    below: Iterable[str] = (),
) -> None:
    """`below` are keys that belong into the table [equation]."""
    known = tuple(known)
    for key in table:
        if key in known:
            continue
        if key in below:
            raise FileError(f"{label}: {key} belongs into the table [equation].")
        hint = missing(key) or str(unknown("key", key, known)).partition(" Known:")[0]
        raise FileError(f"{label}.{key}: {hint} Allowed: {', '.join(known)}.")
    absent = [key for key in required if key not in table]
    if absent:
        are = "is" if len(absent) == 1 else "are"
        raise FileError(f"{label}: {', '.join(absent)} {are} missing. Allowed: {', '.join(known)}.")


@contextlib.contextmanager
def located(label: str) -> Iterator[None]:
    """Names the file in errors that a domain or a problem raises; they stay what they are."""
    try:
        yield
    except CordesError as error:
        raise type(error)(f"{label}: {error}") from error


@dataclasses.dataclass(frozen=True)
class TomlReader:
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
        number = TomlReader(
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
