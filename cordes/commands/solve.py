"""`cordes solve`: condition, answer, certificate, files."""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import cordes
from cordes.arguments import check_arguments
from cordes.commands.arguments import SolveArguments
from cordes.commands.files import (
    PROOF_FILES,
    claim_folder,
    files_for,
    needs_answer,
    write_files,
)
from cordes.commands.output import DONE, NOT_AS_ASKED, Report, fault
from cordes.commands.process import Call, process_seconds
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.proofs.needed import INTERRUPTED, NotProvedError, check_installed
from cordes.reports.facts import certificate_of, proof_facts, solution_facts
from cordes.reports.tables import solution_table
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.clock import Clock, OutOfTimeError, deadline
from cordes.runtime.compilation import Laps
from cordes.runtime.signals import held
from cordes.solutions.solution import Solution
from cordes.solvers.certified import cut_short
from cordes.solvers.options import OPTIONAL, SOLVE_RULES

# Options of a method: passed on where they are given.
PASSED_ON = (
    "preset",
    "epochs",
    "steps",
    "features",
    "cells",
    "levels",
    "degree",
    "boundary",
    "outer",
    "form",
    "argmax",
)
# What a user waits for, from the start of the process until result.json is written. Looking at an
# answer (its condition, its error) belongs to certifying it.
PARTS = ("import", "prepare", "compile", "solve", "certify", "files")
# What processes that share the work need not have in common.
OWN = ("process_id", "out", "overwrite", "as_json", "verbose")


def make_report(given: SolveArguments, call: Call) -> Report | int:
    laps = Laps()
    laps.add({"import": process_seconds() if call.own_process else 0.0})
    values = dataclasses.asdict(given)
    same = {name: value for name, value in values.items() if name not in OWN}
    same |= {"version": cordes.__version__, "jax": jax.__version__, "numpy": np.__version__}
    same["contents"] = contents_of(given.problem) if given.coordinator else None
    # Before the problem is made, since that already uses a device.
    session = distribution.session(given.coordinator, given.processes, given.process_id, same)
    check_arguments(SOLVE_RULES, values, OPTIONAL)
    if given.prove:
        refuse_proof(given)
    clock = Clock(given.max_seconds)
    with laps, session:
        problem = cordes.problem(given.problem)
        condition = None if needs_answer(problem) else cordes.check(problem)
        folder = None
        if given.out is not None and distribution.is_first():
            names = [*files_for(problem), *(PROOF_FILES if given.prove else ())]
            folder = claim_folder(call, given.out, names, given.overwrite)
        if given.barrier:
            refuse_barrier(problem)
        laps.lap("prepare")
        solution = cordes.solve(
            problem,
            "adam" if given.preset is not None and given.method == "auto" else given.method,
            given.tol,
            given.seed,
            not given.no_multiplier,
            max_seconds=clock.left,
            certify=given.tol is not None or not given.barrier,
            **{name: values[name] for name in PASSED_ON if values[name] is not None},
        )
        laps.lap_of("solve", solution.seconds)
        if given.barrier:
            solution = with_barrier(solution, clock)
        proof = proof_of(solution, clock, call) if given.prove else Attempt(solution)
        solution = proof.solution
        # From here on there is an answer, which no signal may cost.
        with held():
            condition = condition if condition is not None else cordes.check(solution)
            facts = solution_facts(solution, condition) | distribution.facts() | proof.facts
        laps.lap("certify")
        # The page shows the rows that are known when it is made: neither files nor the total.
        facts["seconds"] = {name: laps.seconds(*PARTS)[name] for name in PARTS[:-1]}

        def timed() -> None:
            laps.lap_of("files", {})
            facts["seconds"] = laps.seconds(*PARTS)

        complete = True
        if folder is None:
            timed()
        else:
            complete = write_files(folder, solution, facts, condition, clock, timed, proof.files)
        done = solution.result.as_asked(given.tol) and complete and "not_proved" not in facts
        status = DONE if done else NOT_AS_ASKED
        if not distribution.is_first():
            return status
        rows = certificate_of(solution).rows(given.verbose)
        return Report(facts, solution_table(facts, rows), status)


class Attempt(NamedTuple):
    """An answer, with a certificate of the level `proved` where it could be read as it is; facts
    and files of its proof, or why there is none."""

    solution: Solution
    facts: dict[str, Any] = {}  # noqa: RUF012
    files: dict[str, bytes] = {}  # noqa: RUF012


def proof_of(solution: Solution, clock: Clock, call: Call) -> Attempt:
    """Neither an interrupt nor a fault of the proof may cost the answer."""
    # Only now: it imports the checker.
    from cordes.proofs.prove import proven

    try:
        if solution.result is Result.interrupted:
            raise KeyboardInterrupt
        found = proven(solution, PROOF_FILES[0], clock)
    except KeyboardInterrupt:
        return Attempt(solution, {"not_proved": INTERRUPTED})
    except NotProvedError as error:
        return Attempt(solution, {"not_proved": str(error)})
    except Exception as error:
        return Attempt(solution, {"not_proved": fault(error, call.words).message})
    facts = {"proof": proof_facts(found.solution.certificate)}
    own = PROOF_FILES[1] not in found.files
    return Attempt(found.solution if own else solution, facts, found.files)


def refuse_proof(given: SolveArguments) -> None:
    """A proof is a file, and needs the checker."""
    check_installed()
    if given.out is None:
        raise OptionError("--prove writes a proof: say where with --out DIR.")
    if given.coordinator is not None:
        raise OptionError("--prove is for one process: prove the answer afterwards, cordes prove.")


def with_barrier(solution: Solution, clock: Clock) -> Solution:
    """With a sharper bound of the largest error; as it is where that is cut short."""
    try:
        with deadline(clock):
            return solution.certified(norm="Linf", barrier=True)
    except (KeyboardInterrupt, OutOfTimeError) as error:
        late = isinstance(error, OutOfTimeError)
        return cut_short(solution, Result.time_out if late else Result.interrupted)


def contents_of(problem: str) -> str | None:
    """What stands for the contents of a problem file: processes that read different ones would work
    on a mixture."""
    path = Path(problem)
    return hashlib.sha256(path.read_bytes()).hexdigest() if os.path.isfile(path) else None


def refuse_barrier(problem: AbstractProblem) -> None:
    """A barrier network is trained for linear problems, over quadrature nodes."""
    if not problem.linear:
        raise OptionError(
            f"--barrier is for linear problems; {problem.name} is not one: leave it out."
        )
    if problem.domain.dimension > 3:
        raise OptionError(
            "--barrier needs quadrature, which there is in up to three dimensions; "
            f"{problem.name} has {problem.domain.dimension}."
        )
