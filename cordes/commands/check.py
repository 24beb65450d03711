"""`cordes check`: the Cordès condition."""

from typing import Any

import cordes
from cordes.commands.arguments import CheckArguments
from cordes.commands.files import claim_folder, needs_answer, write_all
from cordes.commands.output import DONE, NOT_AS_ASKED, Report, complain
from cordes.commands.process import Call
from cordes.reports.facts import condition_facts, negative_facts
from cordes.reports.pages.condition import plot_condition, write_check_report
from cordes.reports.tables import condition_table


def make_report(given: CheckArguments, call: Call) -> Report:
    problem, solution = cordes.problem(given.problem), None
    # There is no picture of an interval's condition.
    pictures = ["condition.png"] if problem.domain.dimension > 1 else []
    names = [*pictures, "report.html", "check.json"]
    folder = None
    if given.out is not None:
        folder = claim_folder(call, given.out, names, given.overwrite)
    if needs_answer(problem):
        complain("The condition depends on the answer: solving first.", "dim")
        solution = cordes.solve(problem, certify=False)
    condition = cordes.check(problem if solution is None else solution)
    facts: dict[str, Any] = {
        "problem": problem.name,
        "domain": repr(problem.domain),
        **condition_facts(condition),
        "worst_point": condition.worst_point.tolist(),
        "multiplier_range": list(condition.multiplier_range),
        "negative_c": negative_facts(condition),
    }
    complete = True
    if folder is not None:
        writers = {
            "condition.png": lambda path: plot_condition(problem, condition, path, solution),
            "report.html": lambda path: write_check_report(
                path, problem, facts, condition, folder.command, solution
            ),
        }
        wanted = {name: write for name, write in writers.items() if name in names}
        complete = write_all(folder, "check.json", facts, {}, wanted)
    return Report(facts, condition_table(facts), DONE if complete else NOT_AS_ASKED)
