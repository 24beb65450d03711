"""The report of an answer: one page, from the equation to the command that makes it again."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from cordes.certificates.condition import check
from cordes.reports.facts import certificate_of, solution_facts
from cordes.reports.kit.charts import Series, line_chart
from cordes.reports.kit.page import (
    Section,
    command_box,
    digits_of,
    grid_table,
    note,
    number,
    table,
    text,
    write_page,
)
from cordes.reports.kit.provenance import command_line, version_rows
from cordes.reports.pages.bounds import (
    answer_sentence,
    bounds_table,
    everywhere,
    measured_sentence,
)
from cordes.reports.pages.claims import claims, claims_list
from cordes.reports.pages.equation import equation
from cordes.reports.pages.figures import answer_figures
from cordes.results import Result

if TYPE_CHECKING:
    from cordes.certificates.condition import Condition
    from cordes.solutions.solution import Solution

COUNTERS = {"outer": "outer step", "step": "step", "epoch": "epoch", "features": "features"}


def write_report(
    path: str | Path,
    solution: "Solution",
    facts: Mapping[str, Any] | None = None,
    condition: "Condition | None" = None,
    command: Sequence[str] = (),
) -> Path:
    """The page of an answer. `facts` are those of result.json and `condition` what `cordes.check`
    found, both made here if they are left out; `command` are the words of the command that made the
    answer."""
    condition = condition if condition is not None else check(solution)
    facts = facts if facts is not None else solution_facts(solution, condition)
    problem = solution.problem
    shown = equation(problem)
    maps: dict[str, Any] = {}
    charts: dict[str, Any] = {}
    bounded = facts["certificate"]["level"] is not None
    fields = answer_figures(solution, condition, maps, charts)
    holds = condition_sentence(facts["condition"], "condition.", bounded)
    sections = [
        Section("Equation", shown.parts, "equation"),
        _certificate(solution, facts),
        Section("Solution", fields.get("answer", ""), "solution"),
        Section(
            "Where it can be wrong",
            _without_bound(fields["doubt"], facts, problem.domain.dimension)
            if fields.get("doubt")
            else "",
            "error",
        ),
        Section(
            "The Cordès condition",
            f"<p>{holds}</p>{fields.get('equation', '')}",
            "condition",
        ),
        _convergence(solution, facts, charts),
        _run(solution, facts, command),
    ]
    answer = answer_sentence(certificate_of(solution), problem.domain.dimension)
    summary = f'{shown.headline}<p class="answer">{answer}</p>{_remarks(facts)}'
    data = {
        "kind": "solve",
        "facts": facts,
        "history": _history(solution.history),
        "command": list(command),
        "maps": maps,
        "charts": charts,
    }
    return write_page(
        path, problem.name, summary, [section for section in sections if section.body], data
    )


def _remarks(facts: Mapping[str, Any]) -> str:
    """What was measured, and what to do if the solve did not end as it should."""
    lines = []
    measured = measured_sentence(facts)
    if measured:
        lines.append(f"<p>{measured}</p>")
    result = Result(facts["result"])
    if result is not Result.converged:
        lines.append(
            f'<p class="warn">{text(result.value)}: {text(result.sentence)} '
            f"{text(result.remedy)}</p>"
        )
    return "".join(lines)


def _certificate(solution: "Solution", facts: Mapping[str, Any]) -> Section:
    certificate = certificate_of(solution)
    made = claims(certificate, solution.problem, facts)
    intro = (
        "v is the exact solution minus the computed one."
        if facts["certificate"]["map_L2"] is None
        else "The error is that of the map, T − T*."
    )
    body = note(intro) + bounds_table(certificate) + claims_list(made)
    return Section("Certificate", body, "certificate")


# The condition, convergence, settings -------------------------------------------------------------


def _without_bound(body: str, facts: Mapping[str, Any], dimension: int) -> str:
    """What bounds the error where there is no bound point by point."""
    if 'data-map="bound' in body or 'data-chart="bound' in body:
        return body
    largest = facts["certificate"]["Linf"]
    known = (
        f"the error is at most {digits_of(largest, 2, up=True)} {everywhere(dimension)}."
        if largest is not None
        else "see the certificate."
    )
    return f'<p class="note">There is no bound point by point; {known}</p>{body}'


def condition_sentence(condition: Mapping[str, Any], place: str = "", bounded: bool = False) -> str:
    """Whether the condition holds, as safe HTML; `bounded` says that there is a certificate, which
    then does without it."""
    if condition["epsilon"] is None or not math.isfinite(condition["epsilon"]):
        return (
            '<strong class="warn">The Cordès condition is not known</strong>: ε is not a finite '
            "number at some point."
        )
    best = (
        f", with the best λ = {number(condition['lambda'], 4, place + 'lambda')}"
        if condition["lambda"] is not None
        else ""
    )
    found = (
        f"ε = {number(condition['epsilon'], 4, place + 'epsilon')} "
        f"({text(condition['source'])}){best}"
    )
    if condition["satisfied"]:
        where = "" if condition["source"] in ("analytic", "interval") else " at all sampled points"
        return f'<strong class="good">The Cordès condition holds{where}</strong>: {found}.'
    hope = "The equation can be solved all the same, but the theory of the paper promises nothing."
    if bounded:
        hope = (
            "The theory of the paper promises nothing here; the certificate on this page rests on "
            "other theorems and does not need the condition."
        )
    return f'<strong class="warn">The Cordès condition is violated</strong>: {found}. {hope}'


def _history(history: Sequence[dict]) -> list[dict]:
    """The steps of a solve, thinned out where there are very many."""
    if len(history) <= 400:
        return list(history)
    return [
        history[k] for k in np.unique(np.linspace(0, len(history) - 1, 400).round().astype(int))
    ]


def _convergence(solution: "Solution", facts: Mapping[str, Any], charts: dict[str, Any]) -> Section:
    steps = [
        step for step in _history(solution.history) if isinstance(step.get("residual"), int | float)
    ]
    residual = (
        f"<p>Residual on fresh points: {number(facts['residual'], 3, 'residual')} (scaled, root "
        "mean square).</p>"
    )
    if len(steps) < 2:
        return Section(
            "Convergence",
            residual + note("The solve ended in one stage: there is no curve to draw."),
            "convergence",
        )
    counter = next((key for key in COUNTERS if all(key in step for step in steps)), None)
    values = [step["residual"] for step in steps]
    bodies = []
    for key, label, xs in (
        (
            "convergence",
            COUNTERS.get(counter or "", "stage"),
            [step[counter] if counter else k for k, step in enumerate(steps)],
        ),
        ("convergence seconds", "seconds", [step.get("seconds", float("nan")) for step in steps]),
    ):
        if np.all(np.isfinite(np.asarray(xs, dtype=float))):
            chart = line_chart(
                key,
                [Series("residual", xs, values)],
                label,
                "residual",
                logarithmic=True,
                markers=len(steps) <= 40,
            )
            charts[key] = chart.data
            bodies.append(chart.body)
    return Section(
        "Convergence",
        residual + f'<div class="columns">{"".join(bodies)}</div>' + _steps(facts),
        "convergence",
    )


def _steps(facts: Mapping[str, Any]) -> str:
    """The steps of the outer loop as a table."""
    outer = facts.get("outer")
    if not outer:
        return ""
    columns = [
        (name, key)
        for name, key in (
            ("residual", "residual"),
            ("controls changed", "changed"),
            ("smallest eigenvalue of D²u", "convexity"),
            ("ε", "epsilon"),
            ("parameters", "size"),
            ("seconds", "seconds"),
        )
        if any(key in step for step in outer)
    ]
    rows = [
        [
            text(step["outer"]),
            *(
                number(step.get(key), 3, f"outer.{k}.{key}" if key in step else "")
                for _, key in columns
            ),
        ]
        for k, step in enumerate(outer)
    ]
    return (
        "<details><summary>The steps of the outer "
        f"loop</summary>{grid_table(['step', *(name for name, _ in columns)], rows)}</details>"
    )


def made_with() -> list[tuple[str, str]]:
    """What the numbers depend on."""
    device = jax.devices()[0]
    precision = "float64" if jax.config.jax_enable_x64 else "float32"  # pyright: ignore
    return [
        *version_rows(),
        ("device", text(f"{device.platform} ({device.device_kind})")),
        ("precision", precision),
    ]


def _run(solution: "Solution", facts: Mapping[str, Any], command: Sequence[str]) -> Section:
    """How it was made, and the command that makes it again."""
    settings = [
        ("method", text(facts["method"])),
        ("result", text(facts["result"])),
        ("parameters", number(facts["parameters"], fact="parameters")),
    ]
    settings.append(("points", number(facts["points"], fact="points")))
    settings += [
        (key.replace("_", " "), _setting(value))
        for key, value in solution.facts.items()
        if key not in ("method",) and _plain(value)
    ]
    seconds = [
        (name, number(value, 3, f"seconds.{name}"))
        for name, value in facts["seconds"].items()
        if value is not None
    ]
    parts = [("Settings", settings), ("Seconds", seconds), ("Versions", made_with())]
    if facts.get("transport"):
        parts.insert(0, ("Transport", _transport_rows(facts["transport"])))
    if facts.get("convexity"):
        smallest = number(
            facts["convexity"]["smallest_eigenvalue"], 4, "convexity.smallest_eigenvalue"
        )
        parts.insert(
            0,
            (
                "Convexity",
                [
                    ("smallest eigenvalue of D²u", smallest),
                    ("at", shown_point(facts["convexity"]["point"])),
                ],
            ),
        )
    body = "".join(f"<div><h3>{title}</h3>{table(rows)}</div>" for title, rows in parts)
    return Section("How it was made", f'<div class="columns">{body}</div>{remade(command)}', "run")


def remade(command: Sequence[str]) -> str:
    """The command that makes a page again, if there was one."""
    if not command:
        return ""
    return f"<h3>The command that makes it again</h3>{command_box(command_line(command))}"


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        number(value) if isinstance(value, int | float) else text("—" if value is None else value)
    )


def shown_point(point: Sequence[float]) -> str:
    return text(
        "("
        + ", ".join(f"{value:.4g}" for value in point[:6])
        + (", …" if len(point) > 6 else "")
        + ")"
    )


def _transport_rows(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    error, (low, high) = found["density_error"], found["eigenvalues"]
    return [
        ("W₂ of the map", number(found["W2"], 7, "transport.W2")),
        ("density, root mean square", number(error["rms"], 3, "transport.density_error.rms")),
        ("density, largest", number(error["largest"], 3, "transport.density_error.largest")),
        (
            "eigenvalues of D²u",
            (
                f"{number(low, 4, 'transport.eigenvalues.0')} to "
                f"{number(high, 4, 'transport.eigenvalues.1')}"
            ),
        ),
        ("boundary missed by", number(found["rim"], 3, "transport.rim")),
        ("mass defect", number(found["mass_defect"], 3, "transport.mass_defect")),
    ]
