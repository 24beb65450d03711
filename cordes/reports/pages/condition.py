"""The report of `cordes check`: the equation, whether the Cordès condition holds, and maps of ε and
of the multiplier; and the same maps as a figure."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cordes.problems.problem import AbstractProblem
from cordes.reports.kit.page import Section, number, table, text, write_page
from cordes.reports.pages.answer import (
    condition_sentence,
    made_with,
    remade,
    shown_point,
)
from cordes.reports.pages.equation import equation
from cordes.reports.pages.fields import condition_quantities, line_points, maps_of, planes_of
from cordes.reports.pages.figures import figures, grouped, quantity_chart
from cordes.reports.plots import Panel, draw_panels, where_cut

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cordes.certificates.condition import Condition
    from cordes.solutions.solution import Solution


def write_check_report(
    path: str | Path,
    problem: AbstractProblem,
    facts: Mapping[str, Any],
    condition: "Condition",
    command: Sequence[str] = (),
    solution: "Solution | None" = None,
) -> Path:
    """The page of `cordes check`; `solution` is the answer at which a nonlinear equation was
    frozen."""
    shown = equation(problem)
    maps: dict[str, Any] = {}
    charts: dict[str, Any] = {}
    body = _pictures(problem, condition, solution, maps, charts)
    low, high = facts["multiplier_range"]
    rows = [
        ("ε", number(facts["epsilon"], 6, "epsilon")),
        ("known from", text(facts["source"])),
        (
            "λ",
            number(facts["lambda"], 6, "lambda")
            if facts["lambda"] is not None
            else "not needed: there are no lower-order terms",
        ),
        ("worst point", shown_point(facts["worst_point"])),
        (
            "multiplier γ",
            f"{number(low, 4, 'multiplier_range.0')} to {number(high, 4, 'multiplier_range.1')}",
        ),
        ("domain", text(facts["domain"])),
    ]
    sections = [
        Section("Equation", shown.parts, "equation"),
        Section("The condition", table(rows) + body, "condition"),
    ]
    sections.append(
        Section(
            "How it was made",
            f"<details><summary>Versions</summary>{table(made_with())}</details>{remade(command)}",
            "run",
        )
    )
    summary = f'{shown.headline}<p class="answer">{condition_sentence(facts)}</p>'
    data = {
        "kind": "check",
        "facts": facts,
        "command": list(command),
        "maps": maps,
        "charts": charts,
    }
    return write_page(path, problem.name, summary, sections, data)


def _pictures(
    problem: AbstractProblem,
    condition: "Condition",
    solution: "Solution | None",
    maps: dict[str, Any],
    charts: dict[str, Any],
) -> str:
    domain = problem.domain
    planes = planes_of(domain) if domain.dimension > 1 else []
    points = (
        np.concatenate([plane.points[plane.inside] for plane in planes])
        if planes
        else line_points(domain)
    )
    quantities = condition_quantities(problem, points, condition, solution)
    if not planes:
        return grouped({each.key: quantity_chart(each, points, charts) for each in quantities})[
            "equation"
        ]
    return grouped({key: figures(each, maps) for key, each in maps_of(quantities, planes).items()})[
        "equation"
    ]


def plot_condition(
    problem: AbstractProblem,
    condition: "Condition",
    path: str | Path | None = None,
    solution: "Solution | None" = None,
) -> "Figure":
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
    return draw_panels(
        problem.domain,
        panels,
        lambda: " — ".join(
            [problem.name, *where_cut(problem.domain), f"ε = {condition.epsilon:.4g}"]
        ),
        path,
    )
