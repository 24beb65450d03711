"""The page on the reproduction of the paper: its tables are made from the results, so that no
number is typed by hand.

    python docs/reproduction_tables.py [STUDY_FOLDER]

gathers the small files of a finished `cordes study --all` (results without their figures' data,
figures with few colours) into docs/reproduction, and writes the tables of docs/reproduction.md
anew, between the marks `<!-- table NAME -->` and `<!-- end -->`. Without a folder it only does the
latter.
"""

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from cordes.errors import FileError, unknown
from cordes.gallery.paper_tables import TABLES
from cordes.studies.command import compare
from cordes.studies.time_to_accuracy import Summary

DOCUMENT, RESULTS = Path("docs/reproduction.md"), Path("docs/reproduction")
COLOURS, WIDTH, COLUMNS = 256, 1500, 100
# Problems whose landscape and spectra are shown: the one of the paper, and the one with the widest
# multiplier.
SHOWN = ("ex4.5-hjb", "ex4.1-smooth")
# A multiplier that varies by less is constant up to rounding.
CONSTANT = 1e-9
MARK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
Facts = Mapping[str, Mapping[str, Any]]


def gather(study: Path, results: Path = RESULTS) -> None:
    """Copy what the page needs."""
    results.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        path = study / name / "study.json"
        if not path.exists():
            raise FileError(f"There is no {path}: run `cordes study {name}` first.")
        (results / f"{name}.json").write_text(
            json.dumps(json.loads(path.read_text(encoding="utf-8"))) + "\n", encoding="utf-8"
        )
        for figure in ("error", "dynamics", *(("landscape", "spectra") if name in SHOWN else ())):
            shrink(study / name / f"{figure}.png", results / f"{name}-{figure}.png")
    for path in [study / "speed_up.png", *sorted((study / "figures").glob("*.png"))]:
        shrink(path, results / path.name)


def shrink(source: Path, target: Path) -> None:
    """A figure of few colours and of a width that a page can show."""
    with Image.open(source) as picture:
        picture = picture.convert("RGB")
        if picture.width > WIDTH:
            picture = picture.resize(
                (WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS
            )
        picture.quantize(COLOURS).save(target, optimize=True)


def refresh(document: Path = DOCUMENT, results: Path = RESULTS) -> str:
    """The text of the page with its tables made from the results."""
    facts = {
        name: json.loads((results / f"{name}.json").read_text(encoding="utf-8")) for name in TABLES
    }
    lifted = json.loads((results / "exact_lift.json").read_text(encoding="utf-8"))
    blocks: dict[str, Callable[[], str]] = {
        **{name: lambda name=name: milestone_table(facts[name]) for name in TABLES},
        "speed": lambda: speed_table(facts),
        "control": lambda: control_table(facts),
        "conditioning": lambda: conditioning_table(facts),
        "contraction": lambda: contraction_table(facts),
        "dynamics": lambda: dynamics_table(facts),
        "landscape": lambda: landscape_table(facts),
        "lift": lambda: lift_table(lifted),
    }

    def block(match: re.Match) -> str:
        if match[2] not in blocks:
            raise unknown("table", match[2], blocks)
        return f"{match[1]}{blocks[match[2]]()}\n{match[3]}"

    return MARK.sub(block, document.read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(
        ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    )


def milestone_table(facts: Mapping[str, Any]) -> str:
    """The paper's rows, ours, what `auto` does instead, and where the runs ended."""
    nonlinear = any("newton" in row for row in facts["milestones"])
    auto = facts["auto"]
    cost = f"l2 {auto['l2']:.1e} for {auto['epochs_equivalent']:.3g} epochs"
    rows = []
    for row in facts["milestones"]:
        paper = row["paper"] or {
            "epochs": "–",
            "seconds": None,
            "l2": None,
            "linf": None,
            "newton": None,
        }
        newton = (
            [
                (
                    f"{paper['newton'] or '–'} / "
                    f"{Summary(row['newton']).text('.0f', '–') if 'newton' in row else '–'}"
                )
            ]
            if nonlinear
            else []
        )
        errors = [_both(paper[key], row[key]) for key in ("l2", "linf")]
        seconds = [
            "–" if paper["seconds"] is None else f"{paper['seconds']:g}",
            Summary(row["seconds"]).text(".3g", "–"),
        ]
        epochs = "not reached" if paper["epochs"] is None else str(paper["epochs"])
        rows.append(
            [
                f"{row['target']:.0e}",
                row["method"],
                epochs,
                Summary(row["epochs"]).text(".0f"),
                *newton,
                *seconds,
                *errors,
                cost,
            ]
        )
    steps = ["Newton steps, paper / here"] if nonlinear else []
    head = [
        "target l2",
        "method",
        "epochs, paper",
        "epochs, here",
        *steps,
        "s, paper",
        "s, here",
        "l2, paper / here",
        "l∞, paper / here",
        "`auto`",
    ]
    return (
        table(head, rows)
        + "\n\n"
        + "\n".join(_end(name, final) for name, final in facts["final"].items())
    )


def _both(paper: float | None, ours: Sequence[float | None]) -> str:
    median = Summary(ours).median
    return (
        f"{'–' if paper is None else f'{paper:.1e}'} / {'–' if median is None else f'{median:.1e}'}"
    )


def _end(name: str, final: Mapping[str, Any]) -> str:
    epochs, l2, linf, best = (
        Summary(final[key]).text(form)
        for key, form in (("epochs", ".0f"), ("l2", ".1e"), ("linf", ".1e"), ("best_l2", ".1e"))
    )
    sentence = (
        f"- {name} ends after {epochs} epochs with l2 {l2} and l∞ {linf}; the best l2 on the way "
        f"was {best}."
    )
    return _wrapped(sentence, indent="  ")


def speed_table(facts: Facts) -> str:
    """Speed-up against the spread of the multiplier, widest first, and the rank correlations."""
    rows, together = [], compare(facts)
    for row in sorted(together["speed_up"], key=lambda row: -row["variation"]):
        spread, last = facts[row["problem"]]["multiplier"], row["last"]
        gamma = (
            f"{spread['min']:.3g} to {spread['max']:.3g}"
            if row["variation"] > CONSTANT
            else f"{spread['min']:.3g} everywhere"
        )
        ratios = [math.inf if ratio is None else ratio for ratio in row["ratios"]]
        ratio = f"{_number(row['median'])} ({min(ratios):.2f}–{max(ratios):.2f})"
        arrived = f"{last['ours']} / {last['theirs']} at {last['target']:.0e}"
        rows.append(
            [
                row["problem"],
                gamma,
                f"{row['variation']:.2f}",
                _number(row["gain"]),
                row["rival"],
                f"{row['target']:.0e}",
                ratio,
                arrived,
            ]
        )
    head = [
        "problem",
        "γ",
        "deviation / mean of γ",
        "κ₁₀ without / with γ, end",
        "rival",
        "at target",
        "epochs of the rival / epochs of C-PINN",
    ]
    return (
        table([*head, "seeds that met the tightest target: C-PINN / rival"], rows)
        + "\n\n"
        + _wrapped(_correlation_words(together["correlation"]))
    )


def _wrapped(sentence: str, indent: str = "") -> str:
    """A sentence in lines that are as wide as those of the page."""
    return textwrap.fill(sentence, COLUMNS, subsequent_indent=indent, break_on_hyphens=False)


def _correlation_words(found: Mapping[str, Any]) -> str:
    every, rest = (
        {key: _number(value) for key, value in found[which].items()} for which in ("all", "rest")
    )
    words = (
        "Rank correlation of the speed-up, against the rival that differs in the multiplier "
        "alone, over all problems: "
    )
    words += (
        f"{every['variation']} with the variation of γ, {every['gain']} with the gain in "
        "conditioning. "
    )
    return (
        words + f"Without the two problems of example 4.1: {rest['variation']} and {rest['gain']}."
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def control_table(facts: Facts) -> str:
    """The problems with a constant multiplier, seed by seed."""
    rows = []
    for name, study in facts.items():
        if study["multiplier"]["variation"] > CONSTANT:
            continue
        for row, other in zip(study["milestones"][0::2], study["milestones"][1::2], strict=True):
            pairs = [
                f"{a or '–'} / {b or '–'}"
                for a, b in zip(row["epochs"], other["epochs"], strict=True)
            ]
            paper = f"{row['paper']['epochs']} / {other['paper']['epochs']}"
            rows.append([name, f"{row['target']:.0e}", paper, ", ".join(pairs)])
    return table(
        ["problem", "target", "paper: C-PINN / PINN", "here, seed by seed: C-PINN / PINN"], rows
    )


def conditioning_table(facts: Facts) -> str:
    rows = []
    for name, study in facts.items():
        for when, found in study["conditioning"].items():
            kappas = [found[key]["kappa_10"] for key in ("PINN", "C-PINN", "Laplacian")]
            ratio = None if None in kappas[:2] else kappas[0] / kappas[1]
            rows.append(
                [
                    name,
                    when,
                    *("not resolved" if kappa is None else f"{kappa:.2g}" for kappa in kappas),
                    _number(ratio),
                ]
            )
    return table(
        [
            "problem",
            "weights",
            "κ₁₀ without γ",
            "κ₁₀ with γ",
            "κ₁₀ of the Laplacian",
            "without / with",
        ],
        rows,
    )


def contraction_table(facts: Facts) -> str:
    rows = []
    for name, study in facts.items():
        for method, found in study["contraction"].items():
            bound = "–" if found["bound"] is None else f"{found['bound']:.3f}"
            values = [f"{found[key]:.3f}" for key in ("first", "last", "largest")]
            rows.append(
                [
                    name,
                    method,
                    *values,
                    bound,
                    f"{found['exceeded']} of {found['records']}",
                    str(found["without_condition"]),
                ]
            )
    return table(
        [
            "problem",
            "trained as",
            "at first",
            "at last",
            "largest",
            "√(1-ε)",
            "exceeded",
            "A without the condition",
        ],
        rows,
    )


def dynamics_table(facts: Facts) -> str:
    """Ratios of the diagnostics, C-PINN over the rival that differs in the multiplier alone, in the
    first record, where the weights nearly agree, and in the second half of the runs."""
    rows = []
    for name, study in facts.items():
        rival = "PINN-Newton" if "PINN-Newton" in study["curves"] else "PINN"
        ours, theirs = study["curves"]["C-PINN"], study["curves"][rival]
        first = {
            key: _ratio(ours[key][0], theirs[key][0]) for key in ("loss", "gradient", "sharpness")
        }
        late = {
            key: _ratio(ours["late"][key], theirs["late"][key])
            for key in ("loss", "gradient", "sharpness")
        }
        shown = [
            *first.values(),
            _ratio(first["sharpness"], first["loss"]),
            late["gradient"],
            late["sharpness"],
            _ratio(late["sharpness"], late["loss"]),
        ]
        rows.append(
            [
                name,
                rival,
                f"{study['multiplier']['mean_square']:.2g}",
                *("–" if value is None else f"{value:.2g}" for value in shown),
            ]
        )
    start = ["loss", "gradient norm", "σ proxy", "σ proxy / loss"]
    return table(
        [
            "problem",
            "rival",
            "mean of γ²",
            *start,
            *(f"{words}, second half" for words in ("gradient norm", "σ proxy", "σ proxy / loss")),
        ],
        rows,
    )


def _ratio(one: float | None, two: float | None) -> float | None:
    return None if one is None or not two else one / two


def landscape_table(facts: Facts) -> str:
    """Medians over pairs of directions, with their range."""
    rows = []
    for name, study in facts.items():
        for method, found in study["landscape"].items():
            over = found["directions"]
            shown = [
                _spread(over[key], form)
                for key, form in (
                    ("curvature_ratio", ".3g"),
                    ("sharpness", ".2f"),
                    ("nonconvex", ".0%"),
                    ("decades", ".1f"),
                )
            ]
            rows.append([name, method, found["form"], f"{found['picture']['centre']:.1e}", *shown])
    return table(
        [
            "problem",
            "method",
            "loss",
            "at the centre",
            "curvature ratio",
            "sharpness",
            "not convex",
            "decades",
        ],
        rows,
    )


def _spread(values: Sequence[float | None], form: str) -> str:
    median, low, high = ("∞" if value is None else format(value, form) for value in values)
    return f"{median} ({low}–{high})"


def lift_table(lifted: Mapping[str, Any]) -> str:
    rows = []
    for row in lifted["rows"]:
        paper = "not reached" if row["paper"] is None else str(row["paper"])
        rows.append(
            [
                row["problem"],
                f"{row['target']:.0e}",
                row["method"],
                paper,
                Summary(row["epochs"]).text(".0f"),
            ]
        )
    return table(
        ["problem", "target", "method", "epochs, paper", "epochs with the solution as lift"], rows
    )


def main(arguments: Sequence[str]) -> None:
    if arguments:
        gather(Path(arguments[0]))
    DOCUMENT.write_text(refresh(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
