"""The pages of `cordes study`: what was found in sentences made from the numbers, the paper's rows
beside ours, curves to read, and the figures."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cordes.reports.kit.drawings import PlotCurve, curves
from cordes.reports.kit.page import (
    Section,
    grid_table,
    note,
    number,
    picture,
    resource,
    table,
    text,
    write_page,
)
from cordes.reports.kit.provenance import closing_sections
from cordes.reports.kit.stills import photograph
from cordes.studies.pages.words import correlation_sentences, overall_sentence, verdicts
from cordes.studies.time_to_accuracy import Summary, paper_epochs

# A multiplier that varies by less is constant up to rounding.
CONSTANT = 1e-9
SERIES = {"C-PINN": 1, "PINN": 2, "PINN-Newton": 3}
FIGURES = {
    "error.png": (
        "The best error so far, which is what a target asks for, and thinner the error itself; "
        "dotted: the targets of the table."
    ),
    "dynamics.png": "Gradient norm, the paper's curvature proxy and the contraction along the run.",
    "landscape.png": (
        "The loss around the minimum that each method found, in two random directions: logarithms "
        "over its value at the centre."
    ),
    "spectra.png": (
        "The largest eigenvalues of the Gauss–Newton matrix, with the multiplier and without it."
    ),
}
# Columns: facts and what they are called.
CONTRACTION = {
    "first": "at first",
    "last": "at last",
    "largest": "largest",
    "bound": "√(1 − ε)",
    "exceeded": "times above",
    "records": "records",
}
SPECTRUM = {
    "lambda_1": "largest eigenvalue",
    "kappa_10": "κ₁₀",
    "kappa_30": "κ₃₀",
    "effective_rank": "effective rank",
}
CONTRACTED = (
    "Contraction: ‖Δw − γA:D²w‖ / ‖Δw‖ along the run, which the theorem bounds by √(1 − ε)."
)
CONDITIONED = (
    "Conditioning of the Gauss–Newton matrix: its largest eigenvalue over the 10th (κ₁₀) and over "
    "the 30th (κ₃₀)."
)
SPEED_HEAD = (
    "problem",
    "rival",
    "at target",
    "epochs of the rival / C-PINN",
    "deviation over mean of γ",
    "κ₁₀ without / with γ",
    "seeds at the end",
)
MEDIANS = (
    "Medians over the seeds, below them the range, and how many seeds arrived where not all did. "
    "A seed that never arrives counts as worse than any number."
)


def write_study_report(
    path: str | Path, facts: Mapping[str, Any], folder: Path, words: Sequence[str]
) -> Path:
    """The page of one problem. `facts` are those of study.json, the figures lie in `folder`,
    `words` is what the command was called with."""
    said = verdicts(facts)
    sections = [
        Section("What was found", _claims(said[1:]), "found"),
        Section("Along the run", _curves(facts), "curves"),
        Section("Epochs to each target", milestone_grid(facts) + note(MEDIANS), "milestones"),
        Section("Where the runs ended", _final_grid(facts), "ends"),
        Section("What the multiplier changes", _multiplier_body(facts), "multiplier"),
        Section("Figures", _figures(folder), "figures"),
        *closing_sections(_setting_rows(facts), words),
    ]
    summary = (
        f'<p class="answer">{said[0]}</p><p>C-PINN multiplies the residual by the Cordès '
        "multiplier γ = tr A / |A|², PINN does not.</p>"
    )
    return _write(path, f"Study of {facts['problem']}", summary, sections, facts)


def write_all_report(
    path: str | Path, facts: Mapping[str, Any], folder: Path, words: Sequence[str]
) -> Path:
    """The page of `cordes study --all`: one table of all problems, then each with its rows, then
    the figures of the paper."""
    studies = facts["studies"]
    correlated = _claims(correlation_sentences(facts["correlation"]))
    sections = [
        Section("Speed-up", _speed_grid(facts) + correlated, "speed"),
        *(
            Section(each["problem"], _brief(each, folder), each["problem"].replace(".", "-"))
            for each in studies
        ),
        Section("Figures of the paper", _paper_figures(folder), "figures"),
        *closing_sections(_setting_rows(studies[0])[1:], words),
    ]
    summary = f'<p class="answer">{overall_sentence(facts["speed_up"])}</p>'
    return _write(path, "Study of all problems of the paper", summary, sections, facts)


def _write(
    path: str | Path, title: str, summary: str, sections: list[Section], facts: Mapping[str, Any]
) -> Path:
    summary = f"<style>{resource('drawings.css')}</style>{summary}"
    return write_page(path, title, summary, sections, {"facts": facts}, [resource("drawings.js")])


def _claims(sentences: Sequence[str]) -> str:
    return f'<ul class="claims">{"".join(f"<li>{sentence}</li>" for sentence in sentences)}</ul>'


def _brief(facts: Mapping[str, Any], folder: Path) -> str:
    page = f"{facts['problem']}/report.html"
    link = f'<p><a href="{html.escape(page)}">The page of this study</a></p>'
    link = link if (folder / page).exists() else ""
    said, curve = _claims(verdicts(facts)), _curve(facts, "l2", "l2 error")
    columns = f'<div class="columns"><div>{said}{link}</div><div>{curve}</div></div>'
    return columns + milestone_grid(facts)


# Tables -------------------------------------------------------------------------------------------


def milestone_grid(facts: Mapping[str, Any]) -> str:
    """The paper's rows beside ours."""
    nonlinear = any("newton" in row for row in facts["milestones"])
    columns = ["epochs", *(["Newton"] if nonlinear else []), "seconds", "l2", "l∞"]
    pairs = [name for column in columns for name in (f"{column}: paper", "ours")]
    rows = []
    for row in facts["milestones"]:
        paper = row["paper"] or {}
        cells = [number(row["target"], 1), text(row["method"])]
        cells += [paper_epochs(row["paper"], "—", number), spread(row["epochs"])]
        if nonlinear:
            newton = Summary(row.get("newton", ())).median
            cells += [number(paper.get("newton")), number(None if newton is None else int(newton))]
        cells += [number(paper.get("seconds")), spread(row["seconds"], missing="—")]
        for key in ("l2", "linf"):
            # By its making an error at a milestone is just below the target: its range says
            # nothing.
            cells += [number(paper.get(key)), number(Summary(row[key]).median)]
        rows.append(cells)
    return f'<div class="dense">{grid_table(["target l2", "method", *pairs], rows)}</div>'


def spread(values: Sequence[float | None], digits: int = 3, missing: str = "not reached") -> str:
    """Median (range), and how many seeds got there."""
    summary = Summary(values)
    if not summary.numbers:
        return text(missing)
    whole = all(isinstance(value, int) for value in values if value is not None)
    shown = [
        None if one is None else int(one) if whole else one
        for one in (summary.median, summary.numbers[0], summary.numbers[-1])
    ]
    count = f", {len(summary.numbers)} of {summary.count}" if summary.missing else ""
    between = f"<small>{number(shown[1], digits)}–{number(shown[2], digits)}{count}</small>"
    median = text(missing) if shown[0] is None else number(shown[0], digits)
    told = between if shown[1] != shown[2] or count else ""
    return f'<span class="spread">{median}{told}</span>'


def _final_grid(facts: Mapping[str, Any]) -> str:
    ends = {"epochs": "epochs", "l2": "l2", "linf": "l∞", "best_l2": "best l2 on the way"}
    costs = {
        "ms_per_epoch_and_seed": "ms per epoch and seed",
        "compile_seconds": "compile, seconds",
    }
    rows = [
        [
            text(name),
            *(spread(final[key]) for key in ends),
            *(number(facts["cost"][name][key]) for key in costs),
        ]
        for name, final in facts["final"].items()
    ]
    words = f"Times are those of {', '.join(facts['devices'])}; all seeds train at once."
    return grid_table(["method", *ends.values(), *costs.values()], rows) + note(words)


def _multiplier_body(facts: Mapping[str, Any]) -> str:
    spreads = facts["multiplier"]
    rows = [
        ("γ", f"from {number(spreads['min'])} to {number(spreads['max'])}"),
        ("deviation over mean of γ", _variation(spreads["variation"])),
    ]
    contraction = [
        [text(name), *(number(found[key]) for key in CONTRACTION)]
        for name, found in facts["contraction"].items()
        if found["records"]
    ]
    spectra = [
        [text(f"{when}, {name}"), *(number(one[key]) for key in SPECTRUM)]
        for when, three in facts["conditioning"].items()
        for name, one in three.items()
    ]
    parts = [table(rows)]
    if contraction:
        parts += [note(CONTRACTED), grid_table(["trained as", *CONTRACTION.values()], contraction)]
    parts += [note(CONDITIONED), grid_table(["weights, rows", *SPECTRUM.values()], spectra)]
    return "".join(parts)


def _variation(value: float) -> str:
    return number(value) if value > CONSTANT else "0, up to rounding"


def _speed_grid(facts: Mapping[str, Any]) -> str:
    rows = []
    for row in sorted(facts["speed_up"], key=lambda row: -row["variation"]):
        ratios = [ratio for ratio in row["ratios"] if ratio is not None]
        median = "never arrives" if row["median"] is None else number(row["median"])
        between = f" ({number(min(ratios))}–{number(max(ratios))})" if ratios else ""
        arrived, last = "none", row["last"]
        if last:
            who = f"{last['ours']} of C-PINN, {last['theirs']} of the rival"
            arrived = f"{who} at {number(last['target'], 1)}"
        name = text(row["problem"])
        cells = [f'<a href="#{name.replace(".", "-")}">{name}</a>', text(row["rival"])]
        cells += [number(row["target"], 1), median + between, _variation(row["variation"])]
        rows.append([*cells, number(row["gain"]), arrived])
    return grid_table(SPEED_HEAD, rows)


def _setting_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    preset = {key: value for key, value in facts["preset"].items() if key != "epochs"}
    training = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in preset.items())
    known = facts["reference"] == "exact solution"
    return [
        ("problem", text(facts["problem"])),
        ("compared with", text("the exact solution" if known else "the answer of `auto`")),
        ("seeds", number(len(facts["seeds"]))),
        ("largest number of epochs", number(facts["epochs"])),
        ("network and training", text(training)),
        ("trained on", text(", ".join(facts["devices"]))),
        ("analysed on", text(facts["auto"].get("machine", "—"))),
        ("trained with", text(f"cordes {facts['version']}")),
    ]


# Curves and figures -------------------------------------------------------------------------------


def _curves(facts: Mapping[str, Any]) -> str:
    """The error, and beside it the gradient of the loss, which is what the multiplier acts on."""
    error = _curve(facts, "l2", "l2 error")
    gradient = _curve(facts, "gradient", "norm of the gradient")
    words = (
        "Medians over the seeds; bands: the range over the seeds; dotted: the targets. The error "
        "oscillates: a target counts as met when it is first met."
    )
    return (
        f'<div class="columns"><div><h3>l2 error</h3>{error}</div><div><h3>Norm of the gradient '
        f"of the loss</h3>{gradient}</div></div>{note(words)}"
    )


def _curve(facts: Mapping[str, Any], key: str, upward: str) -> str:
    lines = []
    for name, found in facts["curves"].items():
        low, high = found.get(f"{key}_range", ((), ()))
        lines.append(PlotCurve(name, found["epochs"], found[key], low, high, SERIES[name]))
    targets = sorted({row["target"] for row in facts["milestones"]}) if key == "l2" else ()
    return curves(lines, "epoch", upward, targets)


def _figures(folder: Path) -> str:
    drawn = {folder / name: words for name, words in FIGURES.items()}
    return "".join(picture(path, words, words) for path, words in drawn.items() if path.exists())


def _paper_figures(folder: Path) -> str:
    paths = [folder / "speed_up.png", *sorted((folder / "figures").glob("*.png"))]
    return "".join(photograph(path, path.stem) for path in paths if path.exists())
