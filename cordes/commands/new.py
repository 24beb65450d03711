"""`cordes new`: write a problem file that solves as it is, to be changed into one's own."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cordes.commands.templates import KINDS, TEMPLATES
from cordes.errors import FileError, OptionError, unknown

# A problem file may import its neighbours, so one with such a name would stand in the way of the
# module itself.
_TAKEN = {
    "cordes",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "equinox",
    "optax",
    "jaxtyping",
    "typer",
    "rich",
    "matplotlib",
    "meshio",
}


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
    title = f'name = "{path.stem}"'
    text = (
        TEMPLATES[kind, path.suffix]
        .replace("@title", f"{title:<31} ")
        .replace("@name", path.stem)
        .replace("@file", shlex.quote(path.name))
    )
    _write(path, text, force)
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
    if ending == ".py" and (name in _TAKEN or name in sys.stdlib_module_names):
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
