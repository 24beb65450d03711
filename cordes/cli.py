"""The command line. What each command takes stands in `commands/arguments.py`; what it does, in the
file of its name beside it, as one function that makes one `Report`. A report is printed as a table
for people or, with --json, as one object for programs.

This is the boundary of the program: whatever happens in a command leaves it as a report, printed,
and an exit status (`commands/output.py`). A command is imported once its options are read, so that
help, completion and wrong options wait for nothing numerical.
"""

import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import cordes
from cordes.citation import citation
from cordes.commands import output
from cordes.commands.arguments import COMMANDS
from cordes.commands.output import DONE, Refusal, Report
from cordes.commands.process import Call, load_names
from cordes.errors import CordesError
from cordes.runtime.memory import require_addresses
from cordes.runtime.signals import heeded_by_commands, pause

# Commands that compute nothing.
LIGHT = ("new",)
# Options that only print something.
INFORMING = {"--help", "--version", "--citation", "--show-completion"}


def main() -> None:
    """The entry point of the `cordes` command."""
    sys.exit(run(sys.argv[1:], own_process=True))


def run(arguments: Sequence[str], own_process: bool = False) -> int:
    """Run one command and return its exit status. `own_process` says that nothing ran before, so
    that the time of the imports is known."""
    as_json = "--json" in arguments
    words = [word for word in arguments if word != "--json"]
    with heeded_by_commands(), contextlib.ExitStack() as holds:
        call = Call(words, own_process, holds)
        # Whatever a problem file prints must not mix with the object on standard output.
        only = output.only_messages(own_process) if as_json else contextlib.nullcontext()
        with only, output.plain_warnings():
            outcome = _outcome(lambda: _perform(list(arguments), call, as_json), words)
        return output.deliver(outcome, as_json, own_process)


def _outcome(work: Callable[[], Any], words: Sequence[str]) -> Report | Refusal | int:
    """What became of a command."""
    try:
        outcome = work()
    except CordesError as error:
        return Refusal(error.kind, str(error))
    except (KeyboardInterrupt, typer.Abort):
        return output.interruption()
    except BrokenPipeError:
        return output.CLOSED_PIPE
    except Exception as error:
        # Usage errors belong to typer or, in some versions, to click; both format themselves.
        if hasattr(error, "format_message"):
            return Refusal("option", output.usage_message(error))
        return output.fault(error, words)
    return outcome if isinstance(outcome, Report | Refusal | int) else DONE


def _perform(arguments: list[str], call: Call, as_json: bool) -> Any:
    """What typer makes of the words: options that only inform are no command."""
    informing = not call.words or INFORMING.intersection(call.words)
    # People at a terminal get it in colours, as it is made; shells complete words so.
    direct = "_CORDES_COMPLETE" in os.environ or (sys.stdout and sys.stdout.isatty())
    if informing and (as_json or not direct):
        return _captured(call)
    return app(arguments, prog_name="cordes", standalone_mode=False, obj=call)


def _captured(call: Call) -> Report:
    """Help and the like, which are no report, as an object."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        app(call.words, prog_name="cordes", standalone_mode=False, obj=call)
    return Report({"text": printed.getvalue()}, printed.getvalue())


def _command(name: str, arguments: type[Any]) -> Callable[..., Any]:
    """A function for typer, with the signature of the object that keeps the options."""

    def make(given: Any, call: Call) -> Report | int:
        pause()
        if name not in LIGHT:
            require_addresses()
            load_names()
        pause()
        module = importlib.import_module(f"cordes.commands.{name}")
        try:
            return module.make_report(given, call)
        except SystemExit as error:
            raise RuntimeError(f"something called exit({error.code})") from error

    def perform(context: typer.Context, **given: Any) -> Report | Refusal | int:
        # Here already, since typer has its own way with interrupts and closed pipes.
        return _outcome(lambda: make(arguments(**given), context.obj), context.obj.words)

    signature, about = inspect.signature(perform), dataclasses.fields(arguments)
    wanted = inspect.signature(arguments).parameters.values()
    parameters = [
        each.replace(annotation=Annotated[each.annotation, field.metadata["typer"]])
        for each, field in zip(wanted, about, strict=True)
    ]
    context = signature.parameters["context"]
    vars(perform)["__signature__"] = signature.replace(parameters=[context, *parameters])
    return perform


def _printing(name: str, text: Callable[[], str], what: str) -> Any:
    """An option that prints something and ends."""

    def callback(wanted: bool) -> None:
        if wanted:
            print(text())
            raise typer.Exit

    return typer.Option(name, callback=callback, is_eager=True, help=f"Show {what}")


_VERSION = _printing("--version", lambda: f"cordes {cordes.__version__}", "the version and exit.")
_CITATION = _printing("--citation", citation, "how to cite cordes, and exit.")
app = typer.Typer(
    name="cordes",
    pretty_exceptions_enable=False,
    help="Solve elliptic equations in non-divergence form, Hamilton–Jacobi–Bellman and "
    "Monge–Ampère equations with neural networks, and certify how wrong the answers can be.",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, _VERSION] = False,
    citation: Annotated[bool, _CITATION] = False,
) -> None:
    if context.invoked_subcommand is None:
        # Depending on its version typer returns the help, or prints it and returns nothing.
        text = context.get_help()
        if text:
            print(text)


for _name, _arguments in COMMANDS.items():
    # Lines of a docstring are lines of a file, not of a terminal.
    _help = " ".join((inspect.getdoc(_arguments) or "").split())
    app.command(_name, help=_help)(_command(_name, _arguments))
