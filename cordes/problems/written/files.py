"""Problems from files: FILE.toml holds data and expressions and can do no harm; FILE.py is the
user's own program and is run as such."""

import contextlib
import runpy
import sys
import traceback
from pathlib import Path

from cordes.errors import FileError, shown
from cordes.problems.problem import AbstractProblem
from cordes.problems.written.toml_file import problem_from_toml
from cordes.readers.toml_text import MAX_TEXT, too_long


def load_problem(path: str | Path) -> AbstractProblem:
    """The problem that FILE.toml describes or that FILE.py defines under the name `problem`.

    FILE.py is executed: load only files that you trust. Checked: the file can be read and defines a
    problem.
    """
    path = Path(path)
    if path.suffix not in (".py", ".toml"):
        raise FileError(f"{path}: a problem file ends in .toml or .py.")
    if not path.is_file():
        raise FileError(f"{path}: there is no such file.")
    if path.suffix == ".py":
        return _problem_from_python(path)
    try:
        if (size := path.stat().st_size) > 4 * MAX_TEXT:
            raise too_long(path.name, size)
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: the file cannot be read as UTF-8 text: {error}.") from error
    return problem_from_toml(text, path.name)


def _problem_from_python(path: Path) -> AbstractProblem:
    # Files beside the problem can be imported, as they can when Python runs it.
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        variables = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise FileError(f"{path}{_line(error, path)}: {type(error).__name__}: {reason}") from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    if "problem" not in variables:
        raise FileError(
            f"{path}: the file defines no variable named problem. Write, for instance, "
            "problem = cordes.Linear(...)."
        )
    problem = variables["problem"]
    if not isinstance(problem, AbstractProblem):
        raise FileError(
            f"{path}: problem is {shown(problem)}, which is no problem of cordes. Write, for "
            "instance, problem = cordes.Linear(...)."
        )
    return problem


def _line(error: BaseException, path: Path) -> str:
    """The last line of the user's own file that the error came through."""
    if isinstance(error, SyntaxError) and error.filename == str(path) and error.lineno:
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f", line {lines[-1]}" if lines else ""
