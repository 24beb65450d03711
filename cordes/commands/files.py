"""What a command writes to a folder: first what it was asked for, then what is drawn from it."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cordes.certificates.condition import Condition
from cordes.commands.output import DONE, as_json_text, complain, noted
from cordes.commands.process import Call
from cordes.errors import FileError
from cordes.problems.problem import AbstractProblem
from cordes.reports.facts import certificate_of
from cordes.reports.pages.answer import write_report
from cordes.runtime.clock import Clock, OutOfTimeError, deadline
from cordes.runtime.files import part_of, write_file
from cordes.runtime.folders import Contents, Folder, claimed
from cordes.runtime.signals import held
from cordes.solutions.kinds import PolicySolution
from cordes.solutions.solution import Solution

# Records of a run, by which a later one knows whose the files are.
RECORDS = ("result.json", "check.json", "report.json")
# All files of all commands, in the order in which they are told.
KNOWN = (
    "solution.png",
    "policy.png",
    "certificate.png",
    "condition.png",
    "answer.cordes",
    "answer.proof",
    "answer-proved.cordes",
    "solution.vtu",
    "surface.obj",
    "surface.ply",
    "surface.png",
    "report.html",
    *RECORDS,
)
# A proof, and the answer that it is about where that is another one.
PROOF_FILES = ("answer.proof", "answer-proved.cordes")
# Seconds of the first picture, which loads what draws; the others take about as long as the last.
FIRST_PICTURE = 1.0
# How a run is made again is no part of which run it is.
HOW = ("--overwrite",)
Writers = Mapping[str, Callable[[Path], Any]]


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


def claim_folder(call: Call, path: Path, names: Sequence[str], overwrite: bool = False) -> Folder:
    """The folder for this command alone, until it ends."""
    command = [word for word in call.words if word not in HOW]
    contents = Contents(names, KNOWN, RECORDS)
    return call.holds.enter_context(claimed(path, contents, command, overwrite))


def write_files(
    folder: Folder,
    solution: Solution,
    facts: dict[str, Any],
    condition: Condition,
    clock: Clock,
    timed: Callable[[], None],
    proof: Mapping[str, bytes],
) -> bool:
    """Whether all files of a solve could be written; `timed` puts the seconds into the facts, of
    which the page shows those that are known before there are files. `proof` are files that are
    made already; the answer may be one of them."""
    certificate, known = certificate_of(solution), facts["seconds"]
    words = folder.command

    def write_page(path: Path) -> None:
        write_report(path, solution, facts | {"seconds": known}, condition, words)

    drawn: dict[str, Callable[[Path], Any]] = {
        "solution.png": solution.plot,
        "certificate.png": certificate.plot,
        "solution.vtu": solution.to_vtk,
        "report.html": write_page,
    }
    if isinstance(solution, PolicySolution):
        drawn["policy.png"] = solution.plot_policy
    names = files_for(solution.problem)
    if certificate.picture is None:
        names.remove("certificate.png")
    drawn = {name: write for name, write in drawn.items() if name in names}
    made = {name: functools.partial(write_file, content=content) for name, content in proof.items()}
    kept = {"answer.cordes": solution.save} | made
    return write_all(folder, "result.json", facts, kept, drawn, timed, clock)


def write_all(
    folder: Folder,
    record: str,
    facts: dict[str, Any],
    kept: Writers,
    drawn: Writers,
    timed: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
) -> bool:
    """Write what must be `kept`, and with it the facts to the file `record`, whatever signals come;
    then what is `drawn`, each on its own, as long as the clock allows: neither a disk that is full
    by now nor a fault in a picture or a page may cost the answer. The record is written again at
    the end, and always names what is there. Whether all could be written."""
    facts["command"] = folder.command
    with held():
        timed()
        if not _keep(folder, record, facts, kept):
            return False
    safe = {Path(file).name for file in facts["files"]}
    # A page tells of the files that are to be beside it.
    facts["files"] = _told(folder, safe | drawn.keys())
    failed = _draw(folder, drawn, clock.alone if clock is not None else Clock())
    with held():
        facts["files"] = _told(folder, safe | drawn.keys() - set(failed))
        timed()
        noted(facts, DONE)
        rewritten = _written(folder.path / record, lambda path: _write_facts(path, facts))
        if not rewritten:
            # The record that is there names none of what was drawn.
            _remove(folder.path / name for name in drawn)
            facts["files"] = _told(folder, safe)
    return rewritten and not failed and len(facts["files"]) == len(kept) + len(drawn) + 1


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _told(folder: Folder, names: set[str]) -> list[str]:
    return [str(folder.path / name) for name in KNOWN if name in names]


def _write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    write_file(path, as_json_text(facts) + "\n")


def _keep(folder: Folder, record: str, facts: dict[str, Any], kept: Writers) -> bool:
    """Write the answer and its record beside whatever is there, and put them in its place once they
    are whole. Where they do not all become so, an earlier run stays as it is."""
    with contextlib.suppress(OSError):
        # Somebody may have removed it while the solve took its time.
        folder.path.mkdir(parents=True, exist_ok=True)
    parts = {name: part_of(folder.path / name) for name in (*kept, record)}
    written = [name for name in kept if _written(folder.path / name, kept[name], parts[name])]
    facts["files"] = [str(folder.path / name) for name in (*written, record)]
    noted(facts, DONE)

    def write_record(path: Path) -> None:
        _write_facts(path, facts)

    if _written(folder.path / record, write_record, parts[record]):
        written.append(record)
    try:
        if len(written) == len(parts) or (written and not folder.replaced):
            folder.put({name: parts[name] for name in written}, record)
            facts["files"] = [str(folder.path / name) for name in written]
            return record in written
        complain(f"Warning: {folder.path} is left as it was.", "yellow")
    except OSError as error:
        complain(f"Warning: {folder.path} could not be written: {error}", "yellow")
    finally:
        _remove(parts.values())
    facts["files"] = []
    return False


def _draw(folder: Folder, drawn: Writers, clock: Clock) -> list[str]:
    """What could not be drawn; what would take longer than there is time is not begun."""
    failed, expected = [], FIRST_PICTURE
    for name, write in drawn.items():
        began = clock.seconds
        try:
            if not clock.allows(expected):
                raise OutOfTimeError
            with deadline(clock):
                if not _written(folder.path / name, write):
                    failed.append(name)
            expected = clock.seconds - began
        except (KeyboardInterrupt, OutOfTimeError) as error:
            late = isinstance(error, OutOfTimeError)
            rest = [each for each in drawn if not os.path.lexists(folder.path / each)]
            why = "--max-seconds passed" if late else "interrupted"
            complain(f"Warning: {why} before {', '.join(rest)} could be made.", "yellow")
            return rest
    return failed


def _written(path: Path, write: Callable[[Path], Any], part: Path | None = None) -> bool:
    """Whether a file could be written, under the name `part` if there is one; if not, this is
    said."""
    try:
        write(path if part is None else part)
    except Exception as error:
        plain = isinstance(error, OSError | FileError)
        why = str(error) if plain else f"{type(error).__name__}: {error}"
        complain(f"Warning: {path} could not be written: {why}", "yellow")
        return False
    return True
