"""`cordes prove`: an answer, or a problem that is solved first, with a proof that a checker
confirms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cordes
from cordes.arguments import check_arguments
from cordes.commands.arguments import ProveArguments
from cordes.commands.output import DONE, NOT_AS_ASKED, Report
from cordes.commands.process import Call
from cordes.errors import FileError
from cordes.proofs.needed import INTERRUPTED, NotProvedError, check_installed
from cordes.reports.facts import proof_facts
from cordes.reports.tables import proof_table
from cordes.results import Result
from cordes.runtime.clock import Clock
from cordes.runtime.files import check_writable, is_special, write_file
from cordes.runtime.folders import prepare_folder
from cordes.runtime.signals import held
from cordes.solutions.solution import Solution
from cordes.solvers.options import OPTIONAL, SOLVE_RULES
from cordes.storage import to_bytes

ANSWER, PROOF = ".cordes", ".proof"
# What ends like this is a file; names of the gallery have dots of their own.
FILES = (ANSWER, ".toml", ".py")
# How files begin that may be replaced: archives and proofs.
BEGINNINGS = {ANSWER: b"PK", PROOF: b"cordes-proof "}


def make_report(given: ProveArguments, call: Call) -> Report:
    check_installed()
    # Only now: it imports the checker.
    from cordes.proofs.prove import proven

    check_arguments(SOLVE_RULES, {"max_seconds": given.max_seconds}, OPTIONAL)
    clock, source = Clock(given.max_seconds), Path(given.source)
    path = proof_path(given)
    solution, content = answer_of(source, clock)
    files = {} if source.suffix == ANSWER else {path.with_suffix(ANSWER): content}
    facts: dict[str, Any] = {"problem": solution.problem.name, "proved": False, "reason": None}
    facts |= {"level": solution.certificate and solution.certificate.level}
    try:
        # From here on there is an answer, which neither a signal nor a fault may cost.
        _write(path, files)
        if solution.result is Result.interrupted:
            raise NotProvedError(INTERRUPTED)
        found = proven(solution, path.name, clock, None, content)
        made = {path.with_name(name): data for name, data in found.files.items()}
        _write(path, {file: data for file, data in made.items() if file not in (*files, source)})
        files |= made
        proof = proof_facts(found.solution.certificate)
        facts |= {"proved": True, "level": "proved", "proof": proof}
    except (NotProvedError, FileError) as error:
        # Of a disk that is full by now: what is wrong with the words was seen before.
        facts["reason"] = str(error).rstrip(".")
    except KeyboardInterrupt:
        facts["reason"] = INTERRUPTED
    facts["files"] = [str(file) for file in files if file.exists()]
    return Report(facts, proof_table(facts), DONE if facts["proved"] else NOT_AS_ASKED)


def _write(proof: Path, files: Mapping[Path, bytes]) -> None:
    """Whatever signals come; the proof last. One of an answer that is replaced goes with it."""
    answers = {file: data for file, data in files.items() if file != proof}
    with held():
        for file, data in answers.items():
            write_file(file, data)
        if proof in files:
            write_file(proof, files[proof])
        elif answers:
            proof.unlink(missing_ok=True)


def proof_path(given: ProveArguments) -> Path:
    """Beside the answer, or in the folder that is asked for. What is there is refused before any
    long work, unless it may be replaced."""
    source = Path(given.source)
    folder = given.out or (source.parent if source.suffix == ANSWER else Path())
    stem = source.stem if source.suffix in FILES else source.name
    if given.out is not None:
        prepare_folder(given.out)
    answers = (f"{stem}-proved{ANSWER}", f"{stem}{ANSWER}")
    for name in (f"{stem}{PROOF}", *answers):
        file = check_writable(folder / name)
        if not file.exists() or (file.samefile(source) if source.exists() else False):
            continue
        if not given.overwrite:
            raise FileError(f"{file} exists: --overwrite replaces it, and --out has it elsewhere.")
        if is_special(file) or not _begins(file):
            raise FileError(f"{file} was not written by cordes, and would be lost: move it.")
    return folder / f"{stem}{PROOF}"


def _begins(file: Path) -> bool:
    """Whether a file begins as one of its kind, or is empty."""
    with file.open("rb") as opened:
        found = opened.read(20)
    return not found or found.startswith(BEGINNINGS[file.suffix])


def answer_of(source: Path, clock: Clock) -> tuple[Solution, bytes]:
    """The answer in a file, or that of a problem, with the contents of its file."""
    if source.suffix == ANSWER:
        return cordes.load(source), source.read_bytes()
    solution = cordes.solve(str(source), max_seconds=clock.left)
    with held():
        return solution, to_bytes(solution)
