"""The files around a command: the problem it is given, and what it writes to a folder."""

import contextlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cordes.commands.output import as_json_text, complain
from cordes.errors import FileError

if TYPE_CHECKING:
    from cordes.condition import Condition
    from cordes.solution import Solution


def load_argument(argument: str) -> Any:
    """A gallery problem, or one from a file; an unknown name is answered with the nearest ones."""
    from cordes.gallery import gallery
    from cordes.problems.files import load_problem

    path = Path(argument)
    if argument in gallery or not (path.suffix in (".py", ".toml") or path.exists()):
        return gallery[argument]
    problem = load_problem(path)
    if problem.name in ("linear", "hjb", "monge-ampere", "transport"):
        # The name of a problem that was given none.
        problem.name = path.stem
    return problem


def needs_answer(problem: Any) -> bool:
    """Whether the Cordès condition of a problem is one of its answer."""
    return not problem.linear and problem.convex


def files_for(problem: Any) -> list[str]:
    dimension = problem.domain.dimension
    policy = ["policy.png"] if hasattr(problem, "policy") else []
    return ["solution.png", *policy, "certificate.png", "answer.cordes", *(["solution.vtu"] if dimension <= 3 else []), "report.html", "result.json"]


def prepare_folder(folder: Path, names: Sequence[str]) -> Path:
    """Make the folder and try to write there: an output that cannot be written is refused before the solve, not after."""
    from cordes.storage import check_writable

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise FileError(f"--out {folder} is a file: give the name of a folder.") from None
    except OSError as error:
        raise FileError(f"--out {folder} cannot be written: {error.strerror or error}. Choose another folder.") from error
    for name in names:
        check_writable(folder / name)
    return folder


def write_files(folder: Path, solution: "Solution", facts: dict[str, Any], condition: "Condition", words: list[str]) -> bool:
    """Whether all could be written. A disk that is full by now must not cost the answer: the facts are printed in any case."""
    from cordes.reports.html.answer import write_report

    names = files_for(solution.problem)
    if solution.certificate.picture is None:
        names.remove("certificate.png")
    facts["files"] = [str(folder / name) for name in names]
    try:
        solution.plot(folder / "solution.png")
        if "policy.png" in names:
            solution.plot_policy(folder / "policy.png")
        if "certificate.png" in names:
            solution.certificate.plot(folder / "certificate.png")
        solution.save(folder / "answer.cordes")
        if "solution.vtu" in names:
            solution.to_vtk(folder / "solution.vtu")
        write_report(folder / "report.html", solution, facts, condition, words)
        (folder / "result.json").write_text(as_json_text(facts) + "\n", encoding="utf-8")
    except (OSError, FileError) as error:
        complain(f"Warning: not everything could be written to {folder}: {error}", "yellow")
        facts["files"] = [str(folder / name) for name in names if (folder / name).exists()]
        return False
    return True


def process_seconds() -> float:
    """Seconds since this process began, which is what a user waits for the imports; its processor time where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        age = float(Path("/proc/uptime").read_text().split()[0]) - began
        if 0 < age < 600:
            return age
    return time.process_time()
