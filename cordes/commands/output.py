"""What a command has to say, and how: to people, to programs, and about what is wrong."""

import contextlib
import json
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from rich.text import Text

DONE, NOT_AS_ASKED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Report(NamedTuple):
    """Facts for programs, the same as a table for people, and the exit status."""

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
    """One line on standard error, neither read as markup nor broken: it may hold brackets."""
    Console(stderr=True, highlight=False).print(Text(message, style=style), soft_wrap=True)


def usage_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    hint = f" Try '{context.command_path} --help'." if context is not None else ""
    message = error.format_message()
    return message + ("" if message.endswith((".", "?", "!")) else ".") + hint


def as_json_text(facts: Any) -> str:
    """One object for programs."""
    # Imported here: a shell that completes a word waits for no NumPy.
    from cordes.runtime.plain import as_json

    return json.dumps(as_json(facts), allow_nan=False)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line for people, without file names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = lambda message, *_, **__: complain(f"Warning: {message}", "yellow")
        yield
