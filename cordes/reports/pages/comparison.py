"""Several runs on one page: numbers side by side, convergence in one chart, pictures."""

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
from cordes.readers.archive import MOST_JSON, read_json
from cordes.reports.kit.charts import Series
from cordes.reports.kit.page import Section, grid_table, note, number, text, write_page
from cordes.reports.kit.stills import photograph
from cordes.reports.pages.figures import Drawn, residual_charts

MOST_RUNS = 24
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
# The numbers of a result that are shown: their titles and their places.
COLUMNS = {
    "error, RMS": ("error", "l2"),
    "error, largest": ("error", "linf"),
    "bound, RMS": ("certificate", "rms"),
    "bound, largest": ("certificate", "Linf"),
    "residual": ("residual",),
    "parameters": ("parameters",),
    "seconds": ("seconds", "solve"),
}
# Where the bound of a transport map stands, instead of that of the root mean square.
MAP_BOUND = ("certificate", "map_L2")
# What every result.json of a solve has.
NEEDED = ("problem", "method", "result", "seconds", "certificate")


class FinishedRun(NamedTuple):
    """What `cordes solve --out` wrote: folder, facts of result.json, and steps from its report."""

    name: str
    folder: Path
    facts: dict[str, Any]
    history: list[dict[str, Any]]


def read_run(folder: str | Path) -> FinishedRun:
    """Checked: that the folder has the result of a solve; report and picture may be missing."""
    folder = Path(folder)
    remedy = "make one with `cordes solve NAME --out DIR`."
    if not folder.is_dir():
        raise FileError(f"{folder} is no folder: {remedy}")
    path = folder / "result.json"
    if not path.is_file():
        raise FileError(f"{folder} has no result.json: {remedy}")
    facts = read_json(path, str(path), f" It is not the result of a solve: {remedy}")
    if any(key not in facts for key in NEEDED):
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
    for *group, name in (*COLUMNS.values(), MAP_BOUND):
        table = facts.get(group[0]) if group else facts
        if table is None and group != ["seconds"]:
            continue
        if not isinstance(table, dict):
            return f"{group[0]} is no table"
        if table.get(name) is not None and not _is_number(table[name]):
            return f"{'.'.join((*group, name))} is no number"
    return None


def _history(folder: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of the solve, which its report holds; those of an outer loop are in the result too.
    A report of something else has none."""
    try:
        page = folder / "report.html"
        small = page.stat().st_size <= MOST_JSON
        found = DATA.search(page.read_text(encoding="utf-8")) if small else None
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
    drawn = Drawn()
    sections = [
        Section("Results", _table(runs, Path(path)), "results"),
        Section("Convergence", _convergence(runs, drawn), "convergence"),
        Section("Pictures", _pictures(runs), "pictures"),
    ]
    problems = list(dict.fromkeys(run.facts["problem"] for run in runs))
    title = f"{len(runs)} runs of {problems[0]}" if len(problems) == 1 else f"{len(runs)} runs"
    data = {
        "kind": "comparison",
        "runs": {run.name: run.facts for run in runs},
        "command": list(command),
        "charts": drawn.charts,
    }
    summary = f'<p class="answer">{_summary(runs, len(problems) == 1)}</p>'
    try:
        write_page(path, title, summary, sections, data)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
    return runs


def _distinct(runs: list[FinishedRun]) -> list[FinishedRun]:
    """Folders of one name, and only these, are told apart by their paths, then by numbers."""
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
    """Which run is the most accurate, if all have one problem, and which the fastest."""
    ranked = []
    if same and all(run.facts.get("error") for run in runs) and _best(runs, "error", "l2"):
        ranked.append(("has the smallest error, {} in the root mean square", ("error", "l2"), None))
    elif same:
        words = "has the smallest bound of the error, {} in the root mean square"
        ranked.append((words, ("certificate", "rms"), True))
    ranked.append(("was the fastest, {} s", ("seconds", "solve"), None))
    parts = []
    for words, place, up in ranked:
        best = _best(runs, *place)
        if best is not None:
            parts.append(f"{text(best.name)} {words.format(number(_at(best, *place), 2, up=up))}")
    return "; ".join(parts) + "." if parts else "Neither errors nor times are known."


def _best(runs: list[FinishedRun], *place: str) -> FinishedRun | None:
    """The run with the smallest number there; what is no number is none that could be ranked."""
    known = [(found, k) for k, run in enumerate(runs) if (found := _at(run, *place)) is not None]
    return runs[min(known)[1]] if known else None


def _table(runs: list[FinishedRun], page: Path) -> str:
    rows = []
    for run in runs:
        of_map = _at(run, *MAP_BOUND) is not None
        columns = COLUMNS | ({"bound, RMS": MAP_BOUND} if of_map else {})
        words = (text(run.facts[key]) for key in ("problem", "method", "result"))
        rows.append(
            [
                _link(run, page),
                *(f'<span class="word">{word}</span>' for word in words),
                *(_shown(run, place) for place in columns.values()),
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
    head = ["run", "problem", "method", "result", *COLUMNS]
    caption = (
        "Seconds are those of the solve, without compilation and certificate. A dash: not known."
    )
    return grid_table(head, rows, caption) + notes


def _at(run: FinishedRun, *place: str) -> float | None:
    """A number of a result by its place there."""
    *group, name = place
    return ((run.facts.get(group[0]) or {}) if group else run.facts).get(name)


def _shown(run: FinishedRun, place: tuple[str, ...]) -> str:
    """Bounds are rounded up."""
    digits = 3 if place[-1] in ("parameters", "solve") else 2
    up = True if place[0] == "certificate" else None
    return number(_at(run, *place), digits, ".".join(("runs", run.name, *place)), up)


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


def _convergence(runs: list[FinishedRun], drawn: Drawn) -> str:
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
    steps = [Series(curve.name, list(range(len(curve.y))), curve.y) for curve in curves]
    shown = [
        ("convergence seconds", "seconds, compilation included", curves),
        ("convergence", "step", steps),
    ]
    return residual_charts(shown, drawn) + note(
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
