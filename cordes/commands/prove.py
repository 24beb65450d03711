"""`cordes prove`: an answer, or a problem that is solved first, with a proof that a checker
confirms."""

from pathlib import Path
from typing import Any

import cordes
from cordes.commands.arguments import ProveArguments
from cordes.commands.output import DONE, NOT_AS_ASKED, Report
from cordes.commands.process import Call
from cordes.errors import FileError
from cordes.proofs.needed import NotProvedError, check_installed
from cordes.reports.facts import proof_facts
from cordes.reports.tables import proof_table
from cordes.runtime.clock import Clock
from cordes.runtime.files import check_writable, write_file
from cordes.solutions.solution import Solution
from cordes.storage import to_bytes

ANSWER, PROOF = ".cordes", ".proof"
# What ends like this is a file; names of the gallery have dots of their own.
FILES = (ANSWER, ".toml", ".py")


def make_report(given: ProveArguments, call: Call) -> Report:
    check_installed()
    # Only now: it imports the checker.
    from cordes.proofs.prove import proven

    clock = Clock(given.max_seconds)
    source = Path(given.source)
    path = proof_path(given)
    solution, content = answer_of(source, clock)
    facts: dict[str, Any] = {"problem": solution.problem.name, "proved": False, "reason": None}
    facts |= {"level": solution.certificate and solution.certificate.level}
    files = (
        {}
        if source.suffix == ANSWER
        else {path.with_name(f"{path.name.removesuffix(PROOF)}{ANSWER}"): content}
    )
    try:
        found = proven(solution, path.name, clock, None, content)
        files |= {path.with_name(name): data for name, data in found.files.items()}
        proof = proof_facts(found.solution.certificate)
        facts |= {"proved": True, "level": "proved", "proof": proof}
    except NotProvedError as error:
        facts["reason"] = str(error)
    for file, data in files.items():
        write_file(file, data)
    facts["files"] = [str(file) for file in files]
    return Report(facts, proof_table(facts), DONE if facts["proved"] else NOT_AS_ASKED)


def proof_path(given: ProveArguments) -> Path:
    """Beside the answer, or in the folder that is asked for."""
    source = Path(given.source)
    folder = given.out or (source.parent if source.suffix == ANSWER else Path())
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
    stem = source.stem if source.suffix in FILES else source.name
    path = check_writable(folder / f"{stem}{PROOF}")
    if given.out is None and path.exists() and not given.overwrite:
        raise FileError(f"{path} exists: --overwrite replaces it, and --out has it elsewhere.")
    return path


def answer_of(source: Path, clock: Clock) -> tuple[Solution, bytes]:
    """The answer in a file, or that of a problem, with the contents of its file."""
    if source.suffix == ANSWER:
        return cordes.load(source), source.read_bytes()
    solution = cordes.solve(str(source), max_seconds=clock.left)
    return solution, to_bytes(solution)
