"""What a command writes to a folder."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cordes.certificates.condition import Condition
from cordes.commands.output import as_json_text, complain
from cordes.errors import FileError
from cordes.problems.problem import AbstractProblem
from cordes.reports.facts import certificate_of
from cordes.reports.pages.answer import write_report
from cordes.runtime.files import check_writable
from cordes.solutions.kinds import PolicySolution
from cordes.solutions.solution import Solution


def needs_answer(problem: AbstractProblem) -> bool:
    """Whether the Cordès condition of a problem is one of its answer."""
    return not problem.linear and problem.convex


def files_for(problem: AbstractProblem) -> list[str]:
    dimension = problem.domain.dimension
    policy = ["policy.png"] if problem.controls is not None else []
    return [
        "solution.png",
        *policy,
        "certificate.png",
        "answer.cordes",
        *(["solution.vtu"] if dimension <= 3 else []),
        "report.html",
        "result.json",
    ]


def prepare_folder(folder: Path, names: Sequence[str]) -> Path:
    """Make the folder and try to write there: what cannot be written is refused before a solve."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise FileError(f"--out {folder} is a file: give the name of a folder.") from None
    except OSError as error:
        raise FileError(
            f"--out {folder} cannot be written: {error.strerror or error}. Choose another folder."
        ) from error
    for name in names:
        check_writable(folder / name)
    return folder


def write_files(
    folder: Path,
    solution: Solution,
    facts: dict[str, Any],
    condition: Condition,
    words: list[str],
    timed: Callable[[], None],
) -> bool:
    """Whether all files of a solve could be written; `timed` puts the seconds into the facts."""
    certificate = certificate_of(solution)
    writers: dict[str, Callable[[Path], Any]] = {
        "solution.png": solution.plot,
        "certificate.png": certificate.plot,
        "answer.cordes": solution.save,
        "solution.vtu": solution.to_vtk,
        "report.html": lambda path: write_report(path, solution, facts, condition, words),
    }
    if isinstance(solution, PolicySolution):
        writers["policy.png"] = solution.plot_policy
    names = files_for(solution.problem)
    if certificate.picture is None:
        names.remove("certificate.png")
    wanted = {name: write for name, write in writers.items() if name in names}
    stale = [*writers, "policy.png"]
    return write_all(folder, "result.json", facts, wanted, stale, timed)


def write_all(
    folder: Path,
    data: str,
    facts: dict[str, Any],
    writers: Mapping[str, Callable[[Path], Any]],
    stale: Iterable[str] = (),
    last: Callable[[], None] = lambda: None,
) -> bool:
    """Write the facts to the file `data` first, then the other files, each on its own: neither a
    disk that is full by now nor a fault in a picture or a page may cost the answer. Files of an
    earlier run, these and the `stale` ones, go before. At the end the facts are written again: they
    name what is there, and `last` may add to them. Whether all could be written."""
    facts["files"] = [str(folder / name) for name in (*writers, data)]
    for name in {*writers, *stale, data}:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)

    def write_facts(path: Path) -> None:
        path.write_text(as_json_text(facts) + "\n", encoding="utf-8")

    failed = [
        name
        for name, write in {data: write_facts, **writers}.items()
        if not _written(folder / name, write)
    ]
    facts["files"] = [str(folder / name) for name in (*writers, data) if name not in failed]
    last()
    if data not in failed:
        with contextlib.suppress(OSError):
            write_facts(folder / data)
    return not failed


def _written(path: Path, write: Callable[[Path], Any]) -> bool:
    try:
        write(path)
    except Exception as error:
        plain = isinstance(error, OSError | FileError)
        why = str(error) if plain else f"{type(error).__name__}: {error}"
        complain(f"Warning: {path} could not be written: {why}", "yellow")
        # Half a file would be taken for a whole one.
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        return False
    return True
