"""What a command has to say, and how: to people, to programs, and about what is wrong.

Exit status: 0 done, 1 solved but not as asked, 2 bad input, 70 a fault of the program, 129, 130 and
143 interrupted by SIGHUP, SIGINT and SIGTERM, 141 nobody reads standard output any more.
"""

import contextlib
import json
import os
import platform
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from rich.text import Text

import cordes
from cordes.runtime.files import standard_output_kept
from cordes.runtime.signals import received

DONE, NOT_AS_ASKED, BAD_INPUT, FAULT, CLOSED_PIPE = 0, 1, 2, 70, 141
# Of a signal, its number is added to this.
SIGNALLED = 128
# The most of a message that is worth reading.
LONGEST = 400


class Screen(Console):
    """A console whose reader may be gone: rich would end the program, with a status of its own."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Report(NamedTuple):
    """Facts for programs, the same as a table for people (text is printed as it is), and the exit
    status."""

    facts: dict[str, Any]
    table: RenderableType
    status: int = DONE


class Refusal(NamedTuple):
    """Why there is no report: a short stable word for programs, and a sentence."""

    kind: str
    message: str
    status: int = BAD_INPUT


def deliver(outcome: Report | Refusal | int, as_json: bool, own_process: bool) -> int:
    """Print what became of a command, and say with which status it ends. What standard output does
    not take is kept in a file."""
    status = outcome if isinstance(outcome, int) else outcome.status
    if isinstance(outcome, Report):
        status = noted(outcome.facts, status)
    if own_process:
        # What the terminal has no character for becomes a question mark.
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(errors="replace")  # pyright: ignore
    try:
        if not isinstance(outcome, int):
            show(outcome, as_json)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_standard_output()
        return CLOSED_PIPE
    except (OSError, UnicodeError) as error:
        _forget_standard_output()
        if isinstance(outcome, Report):
            complain(f"Warning: {_rescued(outcome.facts, error)}", "yellow")
        return status or NOT_AS_ASKED
    return status


def noted(facts: dict[str, Any], status: int) -> int:
    """The status of a command that ends with a report; a signal is noted in its facts, whether or
    not anything was cut short."""
    came = received()
    if came is None:
        return status
    facts["interrupted"] = came.name
    return SIGNALLED + came


def show(outcome: Report | Refusal, as_json: bool) -> None:
    if isinstance(outcome, Refusal):
        if not as_json:
            complain(f"Error: {outcome.message}", "red")
            return
        error = {"kind": outcome.kind, "message": outcome.message}
        print(as_json_text({"error": error}), flush=True)
    elif as_json:
        print(as_json_text(outcome.facts), flush=True)
    elif isinstance(outcome.table, str):
        print(outcome.table, end="")
    else:
        Screen().print(outcome.table)


def interruption() -> Refusal:
    came = received() or signal.SIGINT
    sentence = "Interrupted before there was an answer."
    return Refusal("interrupted", sentence, SIGNALLED + came)


def fault(error: BaseException, words: Sequence[str]) -> Refusal:
    """Something that should not have happened: where it did goes to a file."""
    lines = [
        f"cordes {cordes.__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {list(words)}",
        *traceback.format_exception(error),
    ]
    text = str(error)
    what = f"{type(error).__name__}: {text[:LONGEST]}{'…' * (len(text) > LONGEST)}"
    try:
        place = _new_file("cordes-fault-", ".txt", "\n".join(lines))
        where = f"Where it happened is in {place}: please report it with this file."
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            print("\n".join(lines), file=sys.stderr)
        where = "Where it happened is above: please report it."
    whose = "This is a fault of cordes, or of a function in the problem file."
    return Refusal("internal", f"{what}. {whose} {where}", FAULT)


def _rescued(facts: Any, error: Exception) -> str:
    why = getattr(error, "strerror", None) or type(error).__name__
    refused = f"Standard output does not take the result ({why})"
    try:
        place = _new_file("cordes-result-", ".json", as_json_text(facts))
    except OSError:
        return f"{refused}. It is: {as_json_text(facts)}"
    return f"{refused}: it is in {place}."


def _new_file(prefix: str, suffix: str, text: str) -> str:
    descriptor, place = tempfile.mkstemp(suffix, prefix)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text + "\n")
    return place


def _forget_standard_output() -> None:
    """What is still to be written goes nowhere: Python would try again at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def only_messages(own_process: bool) -> Iterator[None]:
    """Within this context all that is printed goes to standard error, in a process of its own also
    what libraries and the problem file write without Python."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if own_process:
            # Some streams may be closed; there is then nothing to mix with.
            with contextlib.suppress(OSError, AttributeError):
                stack.enter_context(standard_output_kept())
        yield


def complain(message: str, style: str) -> None:
    """One line on standard error, neither read as markup nor broken: it may hold brackets. Where
    nobody can read it, the work goes on."""
    with contextlib.suppress(OSError, ValueError):
        Screen(stderr=True, highlight=False).print(Text(message, style=style), soft_wrap=True)


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
        # The run goes on, and cordes doctor tells of it.
        warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
        warnings.showwarning = lambda message, *_, **__: complain(f"Warning: {message}", "yellow")
        yield
