"""`cordes study`: C-PINN against PINN, one problem or the whole paper."""

import re

import cordes
from cordes.commands.arguments import StudyArguments
from cordes.commands.files import claim_folder
from cordes.commands.output import Report, complain
from cordes.commands.process import Call
from cordes.errors import OptionError
from cordes.runtime.folders import prepare_folder
from cordes.runtime.signals import pause
from cordes.studies.command import STUDIED, study_all, study_problem
from cordes.studies.pages.tables import all_table, study_table


def make_report(given: StudyArguments, call: Call) -> Report:
    refuse_contradictions(given)
    problem = None if given.problem is None else cordes.problem(given.problem)
    folder = prepare_folder(given.out)
    names = list(STUDIED) if problem is None else [folder_name(problem.name)]
    for name in names:
        # What is there is looked at when it is read: a study goes on from its own states.
        claim_folder(call, folder / name, [])

    def say(line: str) -> None:
        pause()
        complain(line, "dim")

    try:
        if problem is None:
            facts = study_all(
                folder, given.seeds, given.epochs, given.train_only, given.mesh or (), say
            )
            return Report(facts, all_table(facts))
        facts = study_problem(
            problem,
            folder / names[0],
            given.seeds,
            given.epochs,
            given.train_only,
            say,
            given.problem,
        )
    except KeyboardInterrupt:
        complain(
            f"Stopped. What was trained is kept in {folder}: the same command goes on from there.",
            "yellow",
        )
        raise
    return Report(facts, study_table(facts))


def folder_name(problem: str) -> str:
    return re.sub(r"[^\w.-]+", "-", problem).strip(".")


def refuse_contradictions(given: StudyArguments) -> None:
    """One problem or all of the paper; surfaces belong to the paper."""
    if given.everything == (given.problem is not None):
        raise OptionError(
            "Name one problem, or give --all: `cordes study ex4.2-continuous`, `cordes study "
            "--all`."
        )
    if given.mesh and not given.everything:
        raise OptionError("--mesh is for --all, whose last figure shows surfaces: leave it out.")
