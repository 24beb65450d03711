"""What a command has to say, and how it is said: a table for people, one object for programs, one
line for what is wrong."""

import contextlib
import json
import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from rich.text import Text

DONE, NOT_AS_ASKED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Report(NamedTuple):
    """What a command has to say: facts for programs, the same as a table for people, and the exit
    status."""

    facts: dict[str, Any]
    table: RenderableType
    status: int = DONE


def show(report: Report, as_json: bool) -> None:
    if as_json:
        print(as_json_text(report.facts), flush=True)
    else:
        Console().print(report.table)


def refuse(as_json: bool, kind: str, message: str, status: int = BAD_INPUT) -> int:
    if as_json:
        print(as_json_text({"error": {"kind": kind, "message": message}}), flush=True)
    else:
        complain(f"Error: {message}", "red")
    return status


def complain(message: str, style: str) -> None:
    """One line on standard error; a message is never read as markup nor broken, since it may hold
    brackets and code."""
    Console(stderr=True, highlight=False).print(Text(message, style=style), soft_wrap=True)


def usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f" Try '{context.command_path} --help'." if context is not None else ""
    message = error.format_message()
    return message + ("" if message.endswith((".", "?", "!")) else ".") + hint


def as_json_text(facts: Any) -> str:
    """One object for programs; numbers of NumPy are written as Python's."""
    # Imported here: a shell that completes a word waits for no NumPy.
    from cordes.runtime.plain import plain

    return json.dumps(without_nonfinite(plain(facts)), allow_nan=False)


def without_nonfinite(value: Any) -> Any:
    """JSON has no NaN and no infinity: both become null."""
    if isinstance(value, dict):
        return {key: without_nonfinite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [without_nonfinite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line for people, without file names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = lambda message, *_, **__: complain(f"Warning: {message}", "yellow")
        yield
