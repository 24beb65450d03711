"""The report of an answer: one page, from the equation to the command that makes it again."""

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cordes.certificates.condition import Condition, check
from cordes.reports.facts import certificate_of, solution_facts
from cordes.reports.kit.charts import Series
from cordes.reports.kit.page import (
    Section,
    columns,
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
from cordes.reports.pages.bounds import answer_sentence, bounds_table, everywhere, measured_sentence
from cordes.reports.pages.claims import claims, claims_list
from cordes.reports.pages.equation import equation
from cordes.reports.pages.figures import Drawn, answer_figures, residual_charts
from cordes.results import Result
from cordes.solutions.solution import Solution

COUNTERS = {"outer": "outer step", "step": "step", "epoch": "epoch", "features": "features"}
# What the steps of an outer loop say of themselves, and what that is called.
STEPS = {
    "residual": "residual",
    "changed": "controls changed",
    "convexity": "smallest eigenvalue of D²u",
    "epsilon": "ε",
    "size": "parameters",
    "seconds": "seconds",
}


def write_report(
    path: str | Path,
    solution: Solution,
    facts: Mapping[str, Any] | None = None,
    condition: Condition | None = None,
    command: Sequence[str] = (),
) -> Path:
    """The page of an answer. `facts` are those of result.json and `condition` what `cordes.check`
    found, both made here if left out; `command` are the words that made the answer."""
    condition = condition if condition is not None else check(solution)
    facts = facts if facts is not None else solution_facts(solution, condition)
    problem = solution.problem
    shown, drawn = equation(problem), Drawn()
    bounded = facts["certificate"]["level"] is not None
    fields = answer_figures(solution, condition, drawn)
    doubt = fields.get("doubt", "")
    if doubt:
        doubt = _without_bound(doubt, facts, problem.domain.dimension)
    holds = condition_sentence(facts["condition"], "condition.", bounded)
    sections = [
        Section("Equation", shown.parts, "equation"),
        Section("Certificate", _certificate(solution, facts), "certificate"),
        Section("Solution", fields.get("answer", ""), "solution"),
        Section("Where it can be wrong", doubt, "error"),
        Section("The Cordès condition", f"<p>{holds}</p>{fields.get('equation', '')}", "condition"),
        Section("Convergence", _convergence(solution, facts, drawn), "convergence"),
        Section("How it was made", _run(solution, facts) + remade(command), "run"),
    ]
    answer = answer_sentence(certificate_of(solution), problem.domain.dimension)
    summary = f'{shown.headline}<p class="answer">{answer}</p>{_remarks(facts)}'
    data = {
        "kind": "solve",
        "facts": facts,
        "history": _history(solution.history),
        "command": list(command),
        **drawn.data,
    }
    return write_page(path, problem.name, summary, sections, data)


def _remarks(facts: Mapping[str, Any]) -> str:
    """What was measured, and what to do if the solve did not end as it should."""
    measured, result = measured_sentence(facts), Result(facts["result"])
    lines = f"<p>{measured}</p>" if measured else ""
    said = f"{result.value}: {facts['verdict']}"
    if result is Result.converged:
        return f"{lines}<p>{text(said)}</p>"
    return f'{lines}<p class="warn">{text(f"{said} {result.remedy}")}</p>'


def _certificate(solution: Solution, facts: Mapping[str, Any]) -> str:
    certificate = certificate_of(solution)
    made = claims(certificate, solution.problem, facts)
    intro = "v is the exact solution minus the computed one."
    if facts["certificate"]["map_L2"] is not None:
        intro = "The error is that of the map, T − T*."
    return note(intro) + bounds_table(certificate) + proof_part(facts) + claims_list(made)


def proof_part(facts: Mapping[str, Any]) -> str:
    """The theorem and the command that checks it, or why there is none; nothing where no proof was
    asked for."""
    proof = facts.get("proof")
    if proof is None:
        why = facts.get("not_proved")
        return "" if why is None else f'<p class="warn">Not proved: {text(why)}.</p>'
    about = ""
    if facts["certificate"]["level"] != "proved":
        largest = digits_of(proof["Linf"], 2, up=True)
        about = (
            f"Another answer, answer-proved.cordes, is proved to be wrong by at most {largest}. "
        )
    theorem = (
        f"<details><summary>The theorem</summary><pre>{text(proof['theorem'])}</pre></details>"
    )
    return f"<p>{about}Proved; check it yourself:</p>{command_box(proof['command'])}{theorem}"


def _without_bound(body: str, facts: Mapping[str, Any], dimension: int) -> str:
    """What bounds the error where there is no bound point by point."""
    if 'data-map="bound' in body or 'data-chart="bound' in body:
        return body
    largest = facts["certificate"]["Linf"]
    known = "see the certificate."
    if largest is not None:
        known = f"the error is at most {digits_of(largest, 2, up=True)} {everywhere(dimension)}."
    return f'<p class="note">There is no bound point by point; {known}</p>{body}'


def condition_sentence(condition: Mapping[str, Any], place: str = "", bounded: bool = False) -> str:
    """Whether the condition holds, as safe HTML; a certificate (`bounded`) does without it."""
    if condition["epsilon"] is None or not math.isfinite(condition["epsilon"]):
        return (
            '<strong class="warn">The Cordès condition is not known</strong>: ε is not a finite '
            "number at some point."
        )
    epsilon = number(condition["epsilon"], 4, place + "epsilon")
    found = f"ε = {epsilon} ({text(condition['source'])})"
    if condition["lambda"] is not None:
        best = f"with the best λ = {number(condition['lambda'], 4, place + 'lambda')}"
        found += f", {best if condition['satisfied'] else 'whatever λ'}"
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


def _history(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a solve, thinned out where there are very many."""
    if len(history) <= 400:
        return list(history)
    return [
        history[k] for k in np.unique(np.linspace(0, len(history) - 1, 400).round().astype(int))
    ]


def _convergence(solution: Solution, facts: Mapping[str, Any], drawn: Drawn) -> str:
    steps = [
        step for step in _history(solution.history) if isinstance(step.get("residual"), int | float)
    ]
    residual = (
        f"<p>Residual on fresh points, root mean square: "
        f"{number(facts['relative_residual'], 3, 'relative_residual')} relative to the data, "
        f"{number(facts['residual'], 3, 'residual')} scaled.</p>"
    )
    if len(steps) < 2:
        return residual + note("The solve ended in one stage: there is no curve to draw.")
    counter = next((key for key in COUNTERS if all(key in step for step in steps)), None)
    places = {
        "convergence": [step[counter] if counter else k for k, step in enumerate(steps)],
        "convergence seconds": [step.get("seconds", float("nan")) for step in steps],
    }
    labels = (COUNTERS.get(counter or "", "stage"), "seconds")
    values = [step["residual"] for step in steps]
    shown = [
        (key, label, [Series("residual", xs, values)])
        for label, (key, xs) in zip(labels, places.items(), strict=True)
    ]
    return residual + residual_charts(shown, drawn) + _steps(facts)


def _steps(facts: Mapping[str, Any]) -> str:
    """The steps of the outer loop as a table."""
    outer = facts.get("outer")
    if not outer:
        return ""
    known = [key for key in STEPS if any(key in step for step in outer)]
    rows = [
        [
            text(step["outer"]),
            *(number(step.get(key), 3, f"outer.{k}.{key}" if key in step else "") for key in known),
        ]
        for k, step in enumerate(outer)
    ]
    table = grid_table(["step", *(STEPS[key] for key in known)], rows)
    return f"<details><summary>The steps of the outer loop</summary>{table}</details>"


def made_with() -> list[tuple[str, str]]:
    """What the numbers depend on."""
    device = jax.devices()[0]
    precision = "float64" if jax.config.jax_enable_x64 else "float32"  # pyright: ignore
    return [
        *version_rows(),
        ("device", text(f"{device.platform} ({device.device_kind})")),
        ("precision", precision),
    ]


def _run(solution: Solution, facts: Mapping[str, Any]) -> str:
    """How it was made."""
    parts = []
    if facts.get("convexity"):
        smallest, place = facts["convexity"]["smallest_eigenvalue"], facts["convexity"]["point"]
        rows = [
            (STEPS["convexity"], number(smallest, 4, "convexity.smallest_eigenvalue")),
            ("at", shown_point(place)),
        ]
        parts.append(("Convexity", rows))
    if facts.get("transport"):
        parts.append(("Transport", _transport_rows(facts["transport"])))
    settings = [
        ("method", text(facts["method"])),
        ("result", text(facts["result"])),
        *((name, number(facts[name], fact=name)) for name in ("parameters", "points")),
        *(
            (key.replace("_", " "), _setting(value))
            for key, value in solution.facts.items()
            if key != "method" and (value is None or isinstance(value, bool | int | float | str))
        ),
    ]
    seconds = [
        (name, number(value, 3, f"seconds.{name}"))
        for name, value in facts["seconds"].items()
        if value is not None
    ]
    parts += [("Settings", settings), ("Seconds", seconds), ("Versions", made_with())]
    return columns(*(f"<div><h3>{title}</h3>{table(rows)}</div>" for title, rows in parts))


def remade(command: Sequence[str]) -> str:
    """The command that makes a page again, if there was one."""
    if not command:
        return ""
    return f"<h3>The command that makes it again</h3>{command_box(command_line(command))}"


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return (
        number(value) if isinstance(value, int | float) else text("—" if value is None else value)
    )


def shown_point(point: Sequence[float]) -> str:
    few = ", ".join(f"{value:.4g}" for value in point[:6])
    return text(f"({few}{', …' if len(point) > 6 else ''})")


def _transport_rows(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    def shown(digits: int, *place: str) -> str:
        value: Any = functools.reduce(lambda group, key: group[key], place, found)
        return number(value, digits, ".".join(("transport", *place)))

    low, high = (
        number(value, 4, f"transport.eigenvalues.{k}")
        for k, value in enumerate(found["eigenvalues"])
    )
    return [
        ("W₂ of the map", shown(7, "W2")),
        ("density, root mean square", shown(3, "density_error", "rms")),
        ("density, largest", shown(3, "density_error", "largest")),
        ("eigenvalues of D²u", f"{low} to {high}"),
        ("boundary missed by", shown(3, "rim")),
        ("mass defect", shown(3, "mass_defect")),
    ]
