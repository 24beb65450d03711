"""Several runs on one page: their numbers side by side, their convergence in one chart, their
pictures."""

import contextlib
import html
import json
import os
import re
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cordes.errors import FileError, OptionError
from cordes.reports.kit.charts import Series, line_chart
from cordes.reports.kit.page import Section, grid_table, note, number, text, write_page
from cordes.reports.kit.stills import photograph

MOST_RUNS = 24
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
# The numbers of a result that are shown, by the table in which they are.
NUMBERS = {
    "": ("residual", "parameters"),
    "seconds": ("solve",),
    "error": ("l2", "linf"),
    "certificate": ("rms", "Linf", "map_L2"),
}
# What every result.json of a solve has.
NEEDED = ("problem", "method", "result", "seconds", "certificate")


class FinishedRun(NamedTuple):
    """A folder that `cordes solve --out` wrote: a name for it, what result.json says, and the steps
    from its report."""

    name: str
    folder: Path
    facts: dict[str, Any]
    history: list[dict[str, Any]]


def read_run(folder: str | Path) -> FinishedRun:
    """Read what a solve left in a folder. Checked: that it has the result of a solve; its report
    and its picture may be missing."""
    folder = Path(folder)
    remedy = "make one with `cordes solve NAME --out DIR`."
    if not folder.is_dir():
        raise FileError(f"{folder} is no folder: {remedy}")
    path = folder / "result.json"
    if not path.is_file():
        raise FileError(f"{folder} has no result.json: {remedy}")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise FileError(f"{path} cannot be read: it is nested too deeply; {remedy}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    if not isinstance(facts, dict) or any(key not in facts for key in NEEDED):
        raise FileError(f"{path} is not the result of a solve: {remedy}")
    wrong = _wrong_fact(facts)
    if wrong is not None:
        raise FileError(f"{path} is not the result of a solve, {wrong}: {remedy}")
    return FinishedRun(folder.resolve().name, folder, facts, _history(folder, facts))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong_fact(facts: dict[str, Any]) -> str | None:
    """The first fact that is not what a solve writes, in words; None where all are. Numbers may be
    null: that is how JSON writes what is not finite."""
    for key in ("problem", "method", "result"):
        if not isinstance(facts[key], str):
            return f"{key} is no text"
    for key, entries in NUMBERS.items():
        group = facts.get(key) if key else facts
        if group is None and key != "seconds":
            continue
        if not isinstance(group, dict):
            return f"{key} is no table"
        for entry in entries:
            if group.get(entry) is not None and not _is_number(group[entry]):
                return f"{f'{key}.' if key else ''}{entry} is no number"
    return None


def _history(folder: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of the solve, which its report holds; those of an outer loop are in the result too.
    A report of something else has none."""
    try:
        found = DATA.search((folder / "report.html").read_text(encoding="utf-8"))
        data = json.loads(found[1]) if found else {}
    except (OSError, ValueError, RecursionError):
        data = {}
    history = (data.get("history") if isinstance(data, dict) else None) or facts.get("outer")
    steps = (
        [step for step in history if isinstance(step, dict)] if isinstance(history, list) else []
    )
    return [
        step
        for step in steps
        if _is_number(step.get("residual"))
        and (step.get("seconds") is None or _is_number(step["seconds"]))
    ]


def write_comparison(
    path: str | Path, folders: Sequence[str | Path], command: Sequence[str] = ()
) -> list[FinishedRun]:
    """The page of several runs. Gives the runs back, in their order."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise OptionError(
            f"--out {path} is no page: give a name that ends in .html, so that no other file "
            "is overwritten."
        )
    if len(folders) < 2:
        raise OptionError(
            f"A comparison needs two runs or more, and {len(folders)} was given: each solve "
            "writes its own report.html."
        )
    if len(folders) > MOST_RUNS:
        raise OptionError(
            f"{len(folders)} runs are too many for one page: give at most {MOST_RUNS}."
        )
    runs = _distinct([read_run(folder) for folder in folders])
    charts: dict[str, Any] = {}
    sections = [
        Section("Results", _table(runs, Path(path)), "results"),
        Section("Convergence", _convergence(runs, charts), "convergence"),
        Section("Pictures", _pictures(runs), "pictures"),
    ]
    problems = list(dict.fromkeys(run.facts["problem"] for run in runs))
    title = f"{len(runs)} runs of {problems[0]}" if len(problems) == 1 else f"{len(runs)} runs"
    data = {
        "kind": "comparison",
        "runs": {run.name: run.facts for run in runs},
        "command": list(command),
        "charts": charts,
    }
    summary = f'<p class="answer">{_summary(runs, len(problems) == 1)}</p>'
    try:
        write_page(path, title, summary, [section for section in sections if section.body], data)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
    return runs


def _distinct(runs: list[FinishedRun]) -> list[FinishedRun]:
    """Folders of the same name, and only these, are told apart by their paths, and then by
    numbers."""
    names = [run.name for run in runs]
    names = [
        str(run.folder) if names.count(name) > 1 else name
        for run, name in zip(runs, names, strict=True)
    ]
    names = [
        f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]
    return [run._replace(name=name) for run, name in zip(runs, names, strict=True)]


def _summary(runs: list[FinishedRun], same: bool) -> str:
    """Which run is the most accurate, and which the fastest; errors of different problems are not
    compared."""
    timed = [
        (seconds, k)
        for k, seconds in enumerate(_seconds(run) for run in runs)
        if seconds is not None
    ]
    parts = (
        [f"{text(runs[min(timed)[1]].name)} was the fastest, {number(min(timed)[0], 2)} s"]
        if timed
        else []
    )
    # An error that is no number is none that could be ranked.
    measured = [run for run in runs if (run.facts.get("error") or {}).get("l2") is not None]
    certified = [run for run in runs if (run.facts["certificate"] or {}).get("rms") is not None]
    compared = [run for run in runs if run.facts.get("error")]
    if same and measured and len(compared) == len(runs):
        best = min(measured, key=lambda run: run.facts["error"]["l2"])
        parts.insert(
            0,
            (
                f"{text(best.name)} has the smallest error, "
                f"{number(best.facts['error']['l2'], 2)} in the root mean square"
            ),
        )
    elif same and certified:
        best = min(certified, key=lambda run: run.facts["certificate"]["rms"])
        parts.insert(
            0,
            (
                f"{text(best.name)} has the smallest bound of the error, "
                f"{number(best.facts['certificate']['rms'], 2, up=True)} in the root mean square"
            ),
        )
    return "; ".join(parts) + "." if parts else "Neither errors nor times are known."


def _seconds(run: FinishedRun) -> float | None:
    return run.facts["seconds"].get("solve")


def _table(runs: list[FinishedRun], page: Path) -> str:
    head = [
        "run",
        "problem",
        "method",
        "result",
        "error, RMS",
        "error, largest",
        "bound, RMS",
        "bound, largest",
        "residual",
        "parameters",
        "seconds",
    ]
    rows = []
    for run in runs:
        error, certificate = run.facts.get("error") or {}, run.facts["certificate"] or {}
        place = f"runs.{run.name}"
        rms = "map_L2" if certificate.get("map_L2") is not None else "rms"
        numbers = [
            number(error.get("l2"), 2, f"{place}.error.l2"),
            number(error.get("linf"), 2, f"{place}.error.linf"),
            number(certificate.get(rms), 2, f"{place}.certificate.{rms}", up=True),
            number(certificate.get("Linf"), 2, f"{place}.certificate.Linf", up=True),
            number(run.facts.get("residual"), 2, f"{place}.residual"),
            number(run.facts.get("parameters"), fact=f"{place}.parameters"),
            number(_seconds(run), 3, f"{place}.seconds.solve"),
        ]
        rows.append(
            [
                _link(run, page),
                *(
                    f'<span class="word">{text(run.facts[key])}</span>'
                    for key in ("problem", "method", "result")
                ),
                *numbers,
            ]
        )
    reasons = [
        (run.name, run.facts["certificate"])
        for run in runs
        if run.facts["certificate"] and run.facts["certificate"].get("level") is None
    ]
    notes = "".join(
        note(f"{name} has no bound: {certificate.get('reason')}.") for name, certificate in reasons
    )
    return (
        grid_table(
            head,
            rows,
            (
                "Seconds are those of the solve, without compilation and certificate. A dash: not "
                "known."
            ),
        )
        + notes
    )


def _link(run: FinishedRun, page: Path) -> str:
    """The name of a run, and the way to its own report."""
    target = run.folder / "report.html"
    if not target.is_file():
        return text(run.name)
    try:
        way = os.path.relpath(target.resolve(), page.resolve().parent)
    except ValueError:
        # Another drive: there is no relative way.
        return text(run.name)
    address = "./" + urllib.parse.quote(Path(way).as_posix(), errors="surrogateescape")
    return f'<a href="{html.escape(address)}">{text(run.name)}</a>'


def _convergence(runs: list[FinishedRun], charts: dict[str, Any]) -> str:
    curves = [
        Series(
            run.name,
            [np.nan if step.get("seconds") is None else step["seconds"] for step in run.history],
            [step["residual"] for step in run.history],
        )
        for run in runs
        if run.history
    ]
    if not curves:
        return note("None of the runs kept its steps.")
    bodies = []
    timed = [curve for curve in curves if np.all(np.isfinite(np.asarray(curve.x, dtype=float)))]
    for key, label, series in (
        ("convergence seconds", "seconds, compilation included", timed),
        (
            "convergence",
            "step",
            [Series(curve.name, list(range(len(curve.y))), curve.y) for curve in curves],
        ),
    ):
        if series:
            chart = line_chart(
                key,
                series,
                label,
                "residual",
                logarithmic=True,
                markers=max(len(each.x) for each in series) <= 40,
            )
            charts[key] = chart.data
            bodies.append(chart.body)
    return f'<div class="columns">{"".join(bodies)}</div>' + note(
        "The scaled residual on fresh points, root mean square. Residuals of different methods "
        "are measured alike."
    )


def _pictures(runs: list[FinishedRun]) -> str:
    """The figures that the solves left; a missing or broken one is left out."""
    shown = []
    for run in runs:
        with contextlib.suppress(OSError, SyntaxError, ValueError):
            shown.append(
                photograph(
                    run.folder / "solution.png",
                    f"{run.name}: {run.facts['problem']}, {run.facts['method']}",
                )
            )
    return "".join(shown)
