"""`cordes new`: write a problem file that solves as it is, to be changed into one's own."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cordes.commands.arguments import NewArguments
from cordes.commands.output import Report
from cordes.commands.process import Call
from cordes.commands.templates import KINDS, TEMPLATES, fill_in
from cordes.errors import FileError, OptionError, unknown
from cordes.runtime.packages import required_names


def make_report(given: NewArguments, call: Call) -> Report:
    if given.as_python and given.as_toml:
        raise OptionError("--python and --toml were both given: leave one of them out.")
    form = ".py" if given.as_python else ".toml" if given.as_toml else None
    facts = new_problem(given.target, given.kind, form, given.force)
    return Report(facts, new_message(facts))


def new_problem(
    target: str, kind: str = "linear", form: str | None = None, force: bool = False
) -> dict[str, Any]:
    """Write a problem file and say what was written. `form` is `.toml`, `.py`, or None: what the
    name of the file says, TOML where it says nothing.

    Refused, before anything is written: unknown kinds, names that make no file name, an ending that
    contradicts `form`, a file that exists (unless `force`), a folder that does not.
    """
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    path, note = _path(target, kind, form)
    _write(path, fill_in(kind, path.suffix, path.stem), force)
    return {
        "file": str(path),
        "kind": kind,
        "format": path.suffix[1:],
        "name": path.stem,
        "next": [f"cordes {verb} {shlex.quote(str(path))}" for verb in ("solve", "check")],
        "note": note,
    }


def new_message(facts: dict[str, Any]) -> RenderableType:
    """The same for people."""
    lines = [
        Text(f"Wrote {facts['file']}, a problem of kind {facts['kind']} that solves as it is.")
    ]
    if facts["note"]:
        lines.append(Text(facts["note"], style="yellow"))
    lines += [
        Text("Next:"),
        Text(f"  {facts['next'][0]}", style="bold"),
        Text("Then change it into yours: the comments say what each line means."),
    ]
    return Group(*lines)


def _path(target: str, kind: str, form: str | None) -> tuple[Path, str | None]:
    """Where to write, and what to say about it if it is not what was asked for."""
    path, note = Path(target), None
    ending = path.suffix if path.suffix in (".toml", ".py") else None
    name = path.name.removesuffix(ending or "")
    if target.endswith(("/", "\\")) or not re.fullmatch(r"[^\W\d_][\w-]*", name):
        raise OptionError(
            f"'{target}' is no name for a problem: write letters, digits, - and _, a letter "
            "first, and .toml or .py at the end if you like. For instance: cordes new my-problem"
        )
    if ending and form and ending != form:
        raise OptionError(
            f"'{target}' ends in {ending}, but --{'toml' if form == '.toml' else 'python'} was "
            "given: leave one of them out."
        )
    if (kind, ending or form or ".py") not in TEMPLATES:
        if ending:
            raise OptionError(
                f"A problem of kind {kind} cannot be written in TOML: cordes new "
                f"{shlex.quote(str(path.with_suffix('.py')))} --kind {kind}"
            )
        note = f"A problem of kind {kind} cannot be written in TOML: this is a Python file."
        form = ".py"
    if ending is None:
        ending = form or (".toml" if (kind, ".toml") in TEMPLATES else ".py")
        path = path.with_name(name + ending)
    # A problem file may import its neighbours: one named like a module would stand in its way.
    if ending == ".py" and name in {"cordes", *required_names(), *sys.stdlib_module_names}:
        raise OptionError(
            f"'{path.name}' would stand in the way of Python's module {name}: choose another "
            f"name, for instance my-{name}.py."
        )
    return path, note


def _write(path: Path, text: str, force: bool) -> None:
    if not path.parent.is_dir():
        raise FileError(
            f"There is no folder {path.parent}: make it first, with mkdir -p "
            f"{shlex.quote(str(path.parent))}"
        )
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise FileError(
            f"{path} exists already: choose another name, or give --force to replace it."
        ) from None
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}. Choose another place."
        ) from error
