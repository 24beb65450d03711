"""The command line. What each command takes stands in `commands/arguments.py`; what it does, in the
file of its name beside it, as one function that makes one `Report`. A report is printed as a table
for people or, with --json, as one object for programs.

Exit status: 0 done, 1 solved but not as asked, 2 bad input, 130 interrupted before there was an
answer. A command is imported once its options are read, so that help, completion and wrong options
wait for nothing numerical.
"""

import contextlib
import dataclasses
import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import cordes
from cordes.citation import citation
from cordes.commands import output
from cordes.commands.arguments import COMMANDS
from cordes.commands.output import DONE, INTERRUPTED, Report, refuse
from cordes.commands.process import Call, load_names
from cordes.errors import CordesError

# Commands that compute nothing.
LIGHT = ("new",)


def main() -> None:
    """The entry point of the `cordes` command."""
    sys.exit(run(sys.argv[1:], own_process=True))


def run(arguments: Sequence[str], own_process: bool = False) -> int:
    """Run one command and return its exit status. `own_process` says that nothing ran before, so
    that the time of the imports is known."""
    as_json = "--json" in arguments
    # Whatever a problem file prints must not mix with the object on standard output.
    guard = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    call = Call([word for word in arguments if word != "--json"], own_process)
    try:
        with guard, output.plain_warnings():
            report = app(list(arguments), prog_name="cordes", standalone_mode=False, obj=call)
    except CordesError as error:
        return refuse(as_json, error.kind, str(error))
    except (KeyboardInterrupt, typer.Abort):
        report = INTERRUPTED
    except Exception as error:
        # Usage errors belong to typer or, in some versions, to click; both format themselves.
        if hasattr(error, "format_message"):
            return refuse(as_json, "option", output.usage_message(error))
        traceback.print_exc()
        fault = "This is a fault of cordes, or of a function in the problem file."
        return refuse(as_json, "internal", f"{type(error).__name__}: {error}. {fault}")
    if report == INTERRUPTED:
        sentence = "Interrupted before there was an answer."
        return refuse(as_json, "interrupted", sentence, INTERRUPTED)
    if isinstance(report, Report):
        output.show(report, as_json)
        return report.status
    return report if isinstance(report, int) else DONE


def _command(name: str, arguments: type[Any]) -> Callable[..., Any]:
    """A function for typer, with the signature of the object that keeps the options."""

    def perform(context: typer.Context, **given: Any) -> Report | int:
        if name not in LIGHT:
            load_names()
        module = importlib.import_module(f"cordes.commands.{name}")
        return module.make_report(arguments(**given), context.obj)

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
