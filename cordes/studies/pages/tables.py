"""Tables of studies for the terminal: the paper's rows beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cordes.studies.time_to_accuracy import Summary, paper_epochs

# Lines about the facts of a study.
MULTIPLIER = "γ from {min:.3g} to {max:.3g}, deviation / mean {variation:.2g}"
CONTRACTION = "{first} at first, {last} at last, largest {largest}"
BOUND = "at most {bound:.3g} by the theorem, exceeded {exceeded} of {records} times"
LOST = ", the condition fails at {without_condition}"
AUTO = "l2 {l2:.1e}, linf {linf:.1e}; {solve_s:.2g} s, {epochs_equivalent:.3g} plain epochs"


def study_table(facts: Mapping[str, Any]) -> RenderableType:
    """Milestones, then where the runs ended and what the multiplier changed."""
    if "trained" in facts:
        return _trained_table(facts)
    nonlinear = any("newton" in row for row in facts["milestones"])
    title = f"{facts['problem']}: {len(facts['seeds'])} seeds, median (range)"
    newton = ["paper: Newton", "ours: Newton"] if nonlinear else []
    head = ["target", "method", "paper: epochs", "ours: epochs", *newton]
    table = _table(title, [*head, "paper: s", "ours: s", "l2", "linf"])
    for row in facts["milestones"]:
        paper = row["paper"] or {}
        cells = [f"{row['target']:.0e}", row["method"], paper_epochs(row["paper"], "–", str)]
        cells.append(Summary(row["epochs"]).text(".0f"))
        if nonlinear:
            ours = Summary(row.get("newton", ())).text(".0f", missing="–")
            cells += [_plain(paper.get("newton")), ours]
        cells.append(_plain(paper.get("seconds")))
        for key, form in (("seconds", ".3g"), ("l2", ".2e"), ("linf", ".2e")):
            cells.append(Summary(row[key]).text(form, missing="–"))
        table.add_row(*cells, end_section=row["method"] == list(facts["final"])[-1])
    return Group(table, _lines(facts))


def _table(title: str, head: Sequence[str]) -> Table:
    """An empty table; all columns but that of the method hold numbers."""
    table = Table(title=title, title_justify="left")
    for name in head:
        table.add_column(name, justify="left" if name == "method" else "right")
    return table


def _lines(facts: Mapping[str, Any]) -> Table:
    table = Table(show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, final in facts["final"].items():
        cost = facts["cost"][name]
        table.add_row(
            name,
            f"ends after {Summary(final['epochs']).text('.0f')} epochs with l2 "
            f"{Summary(final['l2']).text('.2e')}, linf {Summary(final['linf']).text('.2e')}; "
            f"{cost['ms_per_epoch_and_seed']:.3g} ms for each epoch and seed, compile "
            f"{cost['compile_seconds']:.1f} s",
        )
    for ratio in facts["speed_up"]:
        table.add_row(
            "speed-up",
            f"{ratio['rival']} takes {_times(ratio['median'])} times the epochs of C-PINN to "
            f"{ratio['target']:.0e} ({len(ratio['ratios'])} seeds)",
        )
    table.add_row("multiplier", MULTIPLIER.format(**facts["multiplier"]))
    for name, found in facts["contraction"].items():
        if found["records"]:
            bound = "no bound" if found["bound"] is None else BOUND.format(**found)
            lost = LOST.format(**found) if found["without_condition"] else ""
            shown = {key: _number(found[key]) for key in ("first", "last", "largest")}
            table.add_row("contraction", f"{name}: {CONTRACTION.format(**shown)}; {bound}{lost}")
    for when, spectra in facts["conditioning"].items():
        kappas = ", ".join(f"{name} {_short(one['kappa_10'])}" for name, one in spectra.items())
        table.add_row("conditioning", f"κ₁₀ at the {when}: {kappas}")
    auto = facts["auto"]
    if auto["l2"] is not None:
        table.add_row("auto", AUTO.format(**auto))
    if facts.get("files"):
        table.add_row("files", Text("\n".join(facts["files"])))
    return table


def all_table(facts: Mapping[str, Any]) -> RenderableType:
    """All studies below each other."""
    tables = [study_table(study) for study in facts["studies"]]
    if "correlation" not in facts:
        return Group(*tables)
    lines = Table(show_header=False, box=None)
    explanations = {"variation": "the variation of γ", "gain": "the gain in conditioning"}
    for which, found in facts["correlation"].items():
        for key, words in explanations.items():
            if found[key] is not None:
                without = "" if which == "all" else ", without the two widest multipliers"
                lines.add_row(
                    "speed-up",
                    f"rank correlation with {words}: {found[key]:.2f} over {found['problems']} "
                    f"problems{without}",
                )
    lines.add_row("files", Text("\n".join(facts["files"])))
    return Group(*tables, lines)


def _trained_table(facts: Mapping[str, Any]) -> Table:
    title = f"{facts['problem']}: trained, {len(facts['seeds'])} seeds"
    table = _table(title, ("method", "epochs", "ms per epoch and seed"))
    for name, cost in facts["trained"].items():
        table.add_row(name, str(cost["epochs"]), f"{cost['ms_per_epoch_and_seed']:.3g}")
    return table


def _times(ratio: float | None) -> str:
    return "infinitely many" if ratio is None else f"{ratio:.2f}"


def _plain(value: Any) -> str:
    return "–" if value is None else f"{value:g}"


def _number(value: float | None) -> str:
    return "not a number" if value is None else f"{value:.3g}"


def _short(value: float | None) -> str:
    return "not resolved" if value is None else f"{value:.2g}"
