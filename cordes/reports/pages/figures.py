"""The pictures of a page: maps in the plane and on slices, lines in one dimension, grouped by the
sections that show them; and the curves of residuals."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cordes.certificates.condition import Condition
from cordes.domains.cylinder import Cylinder
from cordes.reports.kit.charts import Series, line_chart
from cordes.reports.kit.maps import Map, map_figure
from cordes.reports.kit.page import columns, note, plain_title, slides
from cordes.reports.pages.fields import (
    Quantity,
    answer_quantities,
    line_points,
    maps_of,
    planes_of,
    with_overlays,
)
from cordes.runtime.packages import load_kinds
from cordes.solutions.solution import Solution

# The sections of maps, and the quantities in each.
ANSWER, DOUBT, EQUATION = (
    ("source", "target", "u", "error", "moved", "potential"),
    ("bound", "residual"),
    ("epsilon", "multiplier"),
)


class Drawn:
    """What the script of a page reads of its pictures: they enter it as they are drawn."""

    def __init__(self) -> None:
        self.maps: dict[str, Any] = {}
        self.charts: dict[str, Any] = {}

    @property
    def data(self) -> dict[str, Any]:
        return {"maps": self.maps, "charts": self.charts}

    def chart(self, key: str, series: list[Series], x: str, y: str, **settings: Any) -> str:
        """The HTML of `line_chart`."""
        made = line_chart(key, series, x, y, **settings)
        self.charts[key] = made.data
        return made.body

    def map(self, shown: Map) -> str:
        body, self.maps[shown.key] = map_figure(shown)
        return body


def answer_figures(solution: Solution, condition: Condition, drawn: Drawn) -> dict[str, str]:
    """The pictures; that they cannot be made for a user's own kind must not cost the page."""
    try:
        return _answer(solution, condition, drawn)
    except Exception as error:
        warnings.warn(f"The report has no maps: {type(error).__name__}: {error}", stacklevel=3)
        return {"answer": note(f"The maps could not be drawn: {type(error).__name__}: {error}")}


def _answer(solution: Solution, condition: Condition, drawn: Drawn) -> dict[str, str]:
    """The HTML of each group of pictures."""
    domain = solution.problem.domain
    fields = grouped_figures(
        domain,
        lambda points: answer_quantities(solution, points, condition),
        drawn,
        lambda made: with_overlays(solution.problem, solution, made),
    )
    if domain.dimension > 2 and not isinstance(domain, Cylinder):
        where = "the centre, in the first two coordinates"
        if domain.dimension <= 6:
            where = f"({', '.join(f'{value:.3g}' for value in domain.center)})"
        cut = "Slices" if domain.dimension == 3 else "A slice"
        fields["answer"] = note(f"{cut} through {where}.") + fields["answer"]
    return fields


def grouped_figures(
    domain: Any,
    quantities_at: Callable[[np.ndarray], list[Quantity]],
    drawn: Drawn,
    overlaid: Callable[[dict[str, list[Map]]], dict[str, list[Map]]] = lambda made: made,
) -> dict[str, str]:
    """The figures of quantities by section, side by side; in the plane with what lies on top."""
    if domain.dimension == 1:
        points = line_points(domain)
        return _grouped({each.key: _chart(each, points, drawn) for each in quantities_at(points)})
    planes = planes_of(domain)
    points = np.concatenate([plane.points[plane.inside] for plane in planes])
    made = maps_of(quantities_at(points), planes)
    made = overlaid(made) if domain.dimension == 2 else made
    bodies = {key: [drawn.map(each) for each in shown] for key, shown in made.items()}
    labels = [plane.label for plane in planes]
    several = functools.partial(slides, labels) if all(labels) else lambda each: columns(*each)
    return _grouped(
        {key: several(each) if len(each) > 1 else each[0] for key, each in bodies.items()}
    )


def _grouped(bodies: dict[str, str]) -> dict[str, str]:
    policy = tuple(key for key in bodies if key.startswith("policy"))
    groups = {"answer": (*ANSWER[:3], *policy, *ANSWER[3:]), "doubt": DOUBT, "equation": EQUATION}
    made = {}
    for name, keys in groups.items():
        chosen = [bodies[key] for key in keys if key in bodies]
        several = any('class="columns"' in body for body in chosen)
        made[name] = "".join(chosen) if several or not chosen else columns(*chosen)
    return made


def _chart(quantity: Quantity, points: np.ndarray, drawn: Drawn) -> str:
    """A function of one variable."""
    values = np.abs(quantity.values) if quantity.logarithmic else quantity.values
    plain = plain_title(quantity.title)
    return drawn.chart(
        quantity.key,
        [Series(plain, points[:, 0], values)],
        "x₁",
        plain,
        logarithmic=quantity.logarithmic and bool(np.any(values > 0)),
        caption=quantity.caption,
    )


def residual_charts(shown: Sequence[tuple[str, str, Sequence[Series]]], drawn: Drawn) -> str:
    """Residuals against what counts the steps, and against time: a key, a label and curves for
    each; a curve whose places are not all known is left out."""
    bodies = []
    for key, label, series in shown:
        known = [each for each in series if np.all(np.isfinite(np.asarray(each.x, dtype=float)))]
        if known:
            markers = max(len(each.x) for each in known) <= 40
            bodies.append(
                drawn.chart(key, known, label, "residual", logarithmic=True, markers=markers)
            )
    return columns(*bodies)


# Kinds with words and pictures of their own.
load_kinds("cordes.reports.pages.kinds")
