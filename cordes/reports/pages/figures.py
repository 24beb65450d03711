"""The pictures of a page: maps in the plane and on slices, lines in one dimension, grouped by the
sections that show them."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from cordes.reports.kit.charts import Series, line_chart
from cordes.reports.kit.maps import Map, map_grid
from cordes.reports.kit.page import note, plain_title
from cordes.reports.pages.fields import (
    Quantity,
    answer_quantities,
    line_points,
    maps_of,
    planes_of,
    with_overlays,
)
from cordes.runtime.kinds import load_kinds

if TYPE_CHECKING:
    from cordes.certificates.condition import Condition
    from cordes.solutions.solution import Solution

# The sections of maps, and the quantities in each.
ANSWER, DOUBT, EQUATION = (
    ("source", "target", "u", "error", "moved", "potential"),
    ("bound", "residual"),
    ("epsilon", "multiplier"),
)


def answer_figures(
    solution: "Solution", condition: "Condition", maps: dict[str, Any], charts: dict[str, Any]
) -> dict[str, str]:
    """The pictures; a problem of the user's own kind for which they cannot be made must not cost
    the page."""
    try:
        return _fields(solution, condition, maps, charts)
    except Exception as error:
        warnings.warn(f"The report has no maps: {type(error).__name__}: {error}", stacklevel=3)
        return {"answer": note(f"The maps could not be drawn: {type(error).__name__}: {error}")}


def _fields(
    solution: "Solution",
    condition: "Condition | None",
    maps: dict[str, Any],
    charts: dict[str, Any],
) -> dict[str, str]:
    """The HTML of each group of pictures."""
    domain = solution.problem.domain
    if domain.dimension == 1:
        points = line_points(domain)
        return grouped(
            {
                each.key: quantity_chart(each, points, charts)
                for each in answer_quantities(solution, points, condition)
            }
        )
    planes = planes_of(domain)
    points = np.concatenate([plane.points[plane.inside] for plane in planes])
    made = maps_of(answer_quantities(solution, points, condition), planes)
    if domain.dimension == 2:
        made = with_overlays(solution.problem, solution, made)
    fields = grouped({key: figures(each, maps) for key, each in made.items()})
    if domain.dimension > 2:
        where = (
            ", ".join(f"{value:.3g}" for value in domain.center)
            if domain.dimension <= 6
            else "the centre"
        )
        cut = "Slices" if domain.dimension == 3 else "A slice"
        fields["answer"] = (
            note(
                f"{cut} through ({where})."
                if domain.dimension <= 6
                else f"{cut} through the centre, in the first two coordinates."
            )
            + fields["answer"]
        )
    return fields


def figures(shown: list[Map], maps: dict[str, Any]) -> str:
    return (
        map_grid(shown, maps)
        if len(shown) > 1
        else map_grid(shown, maps).removeprefix('<div class="columns">').removesuffix("</div>")
    )


def grouped(bodies: dict[str, str]) -> dict[str, str]:
    """Figures by section, side by side."""
    policy = tuple(key for key in bodies if key.startswith("policy"))
    groups = {"answer": (*ANSWER[:3], *policy, *ANSWER[3:]), "doubt": DOUBT, "equation": EQUATION}
    made = {}
    for name, keys in groups.items():
        chosen = [bodies[key] for key in keys if key in bodies]
        several = any('class="columns"' in body for body in chosen)
        made[name] = (
            "".join(chosen)
            if several
            else f'<div class="columns">{"".join(chosen)}</div>'
            if chosen
            else ""
        )
    return made


def quantity_chart(quantity: Quantity, points: np.ndarray, charts: dict[str, Any]) -> str:
    """A function of one variable."""
    values = np.abs(quantity.values) if quantity.logarithmic else quantity.values
    logarithmic = quantity.logarithmic and bool(np.any(values > 0))
    plain = plain_title(quantity.title)
    chart = line_chart(
        quantity.key,
        [Series(plain, points[:, 0], values)],
        "x₁",
        plain,
        logarithmic,
        quantity.caption,
    )
    charts[quantity.key] = chart.data
    return chart.body


# Kinds with words and pictures of their own.
load_kinds("cordes.reports.pages.kinds")
