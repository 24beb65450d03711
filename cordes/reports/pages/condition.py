"""The report of `cordes check`: the equation, whether the Cordès condition holds, and maps of ε and
of the multiplier; and the same maps as a figure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cordes.certificates.condition import Condition
from cordes.problems.problem import AbstractProblem
from cordes.reports.kit.page import Section, number, table, text, write_page
from cordes.reports.pages.answer import condition_sentence, made_with, remade, shown_point
from cordes.reports.pages.equation import equation
from cordes.reports.pages.fields import condition_quantities
from cordes.reports.pages.figures import Drawn, grouped_figures
from cordes.reports.plots import Panel, draw_panels, where_cut
from cordes.solutions.solution import Solution


def write_check_report(
    path: str | Path,
    problem: AbstractProblem,
    facts: Mapping[str, Any],
    condition: Condition,
    command: Sequence[str] = (),
    solution: Solution | None = None,
) -> Path:
    """The page of `cordes check`; a nonlinear equation was frozen at the answer `solution`."""
    shown = equation(problem)
    drawn = Drawn()
    body = grouped_figures(
        problem.domain,
        lambda points: condition_quantities(problem, points, condition, solution),
        drawn,
    )["equation"]
    lambda_, shown_lambda = facts["lambda"], number(facts["lambda"], 6, "lambda")
    low, high = (
        number(end, 4, f"multiplier_range.{k}") for k, end in enumerate(facts["multiplier_range"])
    )
    rows = [
        ("ε", number(facts["epsilon"], 6, "epsilon")),
        ("known from", text(facts["source"])),
        ("λ", "not needed: there are no lower-order terms" if lambda_ is None else shown_lambda),
        ("worst point", shown_point(facts["worst_point"])),
        ("multiplier γ", f"{low} to {high}"),
        ("domain", text(facts["domain"])),
    ]
    sections = [
        Section("Equation", shown.parts, "equation"),
        Section("The condition", table(rows) + body, "condition"),
        Section(
            "How it was made",
            f"<details><summary>Versions</summary>{table(made_with())}</details>{remade(command)}",
            "run",
        ),
    ]
    summary = f'{shown.headline}<p class="answer">{condition_sentence(facts)}</p>'
    data = {"kind": "check", "facts": facts, "command": list(command), **drawn.data}
    return write_page(path, problem.name, summary, sections, data)


def plot_condition(
    problem: AbstractProblem,
    condition: Condition,
    path: str | Path | None = None,
    solution: Solution | None = None,
) -> Figure:
    """ε and the multiplier over the domain, as a figure."""

    def values(key: str) -> Callable[[np.ndarray], np.ndarray]:
        return lambda points: next(
            each.values
            for each in condition_quantities(problem, points, condition, solution)
            if each.key == key
        )

    panels = [
        Panel("ε", values("epsilon"), False, shared=False),
        Panel("multiplier γ", values("multiplier"), False, shared=False),
    ]
    parts = [problem.name, *where_cut(problem.domain), f"ε = {condition.epsilon:.4g}"]
    return draw_panels(problem.domain, panels, lambda: " — ".join(parts), path)
