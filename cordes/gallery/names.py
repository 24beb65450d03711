"""A problem by its name, its file, or where an answer says that it came from."""

import os
from pathlib import Path
from typing import Any

from cordes.arguments import as_path
from cordes.errors import FileError, OptionError, shown
from cordes.gallery import gallery
from cordes.problems.problem import AbstractProblem
from cordes.problems.written.files import load_problem
from cordes.problems.written.toml_file import problem_from_toml

# Names that kinds of problems have until somebody gives them one.
UNNAMED = ("linear", "hjb", "monge-ampere", "transport")


def problem(name: str | Path) -> AbstractProblem:
    """A gallery problem, or the one of a FILE.toml or FILE.py (which is run: trust it first); an
    unknown name is answered with the nearest ones."""
    path = as_path(name, "problem")
    if str(name) in gallery:
        return gallery[str(name)]
    beside = [Path(f"{name}{suffix}") for suffix in (".toml", ".py")]
    if not path.exists() and (found := [str(file) for file in beside if os.path.exists(file)]):
        raise FileError(
            f"There is no problem '{name}'. Did you mean the file {' or '.join(found)}?"
        )
    if not (path.suffix in (".py", ".toml") or path.exists()):
        return gallery[str(name)]
    made = load_problem(path)
    return made.labelled(path.stem) if made.name in UNNAMED else made


def as_problem(given: AbstractProblem | str | Path) -> AbstractProblem:
    """What `solve`, `check` and `certify` take: a problem, a name of the gallery, or a path."""
    if isinstance(given, AbstractProblem):
        return given
    if isinstance(given, (str, Path)):
        return problem(given)
    raise OptionError(
        f"problem is {shown(given)}: pass a problem (cordes.Linear, HJB, MongeAmpere, Transport), "
        "a name from cordes.gallery, or the path of a problem file."
    )


def from_source(source: dict[str, Any], name: str) -> AbstractProblem:
    """The problem that says `source` of itself."""
    if "gallery" in source:
        return gallery[source["gallery"]]
    return problem_from_toml(source["toml"], name)
