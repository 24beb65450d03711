"""The page on the reproduction of the paper: its tables are made from the results, so that no number is typed by hand.

    python -m cordes.studies.reproduction [STUDY_FOLDER]

gathers the small files of a finished `cordes study --all` (results without their figures' data, figures with few colours) into docs/reproduction, and writes the
tables of docs/reproduction.md anew, between the marks `<!-- table NAME -->` and `<!-- end -->`. Without a folder it only does the latter.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from cordes.errors import FileError, unknown
from cordes.gallery.paper_tables import TABLES
from cordes.studies.command import compare
from cordes.studies.time_to_accuracy import Summary

DOCUMENT, RESULTS = Path("docs/reproduction.md"), Path("docs/reproduction")
COLOURS, WIDTH = 96, 1500
# Problems whose landscape and spectra are shown: the one of the paper, and the one with the widest multiplier.
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
        (results / f"{name}.json").write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))) + "\n", encoding="utf-8")
        for figure in ("error", "dynamics", *(("landscape", "spectra") if name in SHOWN else ())):
            shrink(study / name / f"{figure}.png", results / f"{name}-{figure}.png")
    for path in [study / "speed_up.png", *sorted((study / "figures").glob("*.png"))]:
        shrink(path, results / path.name)


def shrink(source: Path, target: Path) -> None:
    """A figure of few colours and of a width that a page can show."""
    with Image.open(source) as picture:
        picture = picture.convert("RGB")
        if picture.width > WIDTH:
            picture = picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)
        picture.quantize(COLOURS).save(target, optimize=True)


def refresh(document: Path = DOCUMENT, results: Path = RESULTS) -> str:
    """The text of the page with its tables made from the results."""
    facts = {name: json.loads((results / f"{name}.json").read_text(encoding="utf-8")) for name in TABLES}
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
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]])


def milestone_table(facts: Mapping[str, Any]) -> str:
    """The paper's rows, ours, and what `auto` does instead."""
    nonlinear = any("newton" in row for row in facts["milestones"])
    auto = facts["auto"]
    cost = f"l2 {auto['l2']:.1e} for {auto['epochs_equivalent']:.3g} epochs"
    rows = []
    for row in facts["milestones"]:
        paper = row["paper"]
        epochs = "–" if paper is None else "not reached" if paper["epochs"] is None else str(paper["epochs"])
        seconds = "–" if paper is None or paper["seconds"] is None else f"{paper['seconds']:g}"
        newton = []
        if nonlinear:
            theirs = "–" if paper is None or paper["newton"] is None else str(paper["newton"])
            newton = [f"{theirs} / {Summary(row['newton']).text('.0f', '–') if 'newton' in row else '–'}"]
        ours = [Summary(row["epochs"]).text(".0f"), *newton, seconds, Summary(row["seconds"]).text(".3g", "–"), Summary(row["linf"]).text(".1e", "–")]
        rows.append([f"{row['target']:.0e}", row["method"], epochs, *ours, cost])
    steps = ["Newton steps, paper / here"] if nonlinear else []
    return table(["target l2", "method", "epochs, paper", "epochs, here", *steps, "s, paper", "s, here", "l∞ there", "`auto`"], rows)


def speed_table(facts: Facts) -> str:
    """Speed-up against the spread of the multiplier, widest first, and the rank correlations."""
    rows, together = [], compare(facts)
    for row in sorted(together["speed_up"], key=lambda row: -row["variation"]):
        spread, ratios = facts[row["problem"]]["multiplier"], row["ratios"]
        gamma = f"{spread['min']:.3g} to {spread['max']:.3g}" if row["variation"] > CONSTANT else f"{spread['min']:.3g} everywhere"
        ratio = f"{row['median']:.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
        rows.append([row["problem"], gamma, f"{row['variation']:.2f}", f"{row['gain']:.2f}", row["rival"], f"{row['target']:.0e}", ratio])
    head = ["problem", "γ", "deviation / mean of γ", "κ₁₀ without / with γ, end", "rival", "at target", "epochs of the rival / epochs of C-PINN"]
    found = together["correlation"]["PINN"]
    words = f"Rank correlation of the speed-up against PINN over {found['problems']} problems: {found['variation']:.2f} with the variation of γ, "
    return table(head, rows) + f"\n\n{words}{found['gain']:.2f} with the gain in conditioning."


def control_table(facts: Facts) -> str:
    """The problems with a constant multiplier, seed by seed."""
    rows = []
    for name, study in facts.items():
        if study["multiplier"]["variation"] > CONSTANT:
            continue
        for row, other in zip(study["milestones"][0::2], study["milestones"][1::2], strict=True):
            pairs = [f"{a or '–'} / {b or '–'}" for a, b in zip(row["epochs"], other["epochs"], strict=True)]
            paper = f"{row['paper']['epochs']} / {other['paper']['epochs']}"
            rows.append([name, f"{row['target']:.0e}", paper, ", ".join(pairs)])
    return table(["problem", "target", "paper: C-PINN / PINN", "here, seed by seed: C-PINN / PINN"], rows)


def conditioning_table(facts: Facts) -> str:
    rows = []
    for name, study in facts.items():
        for when, found in study["conditioning"].items():
            plain, scaled, ideal = (found[key]["kappa_10"] for key in ("PINN", "C-PINN", "Laplacian"))
            rows.append([name, when, f"{plain:.2g}", f"{scaled:.2g}", f"{ideal:.2g}", f"{plain / scaled:.2f}"])
    return table(["problem", "weights", "κ₁₀ without γ", "κ₁₀ with γ", "κ₁₀ of the Laplacian", "without / with"], rows)


def contraction_table(facts: Facts) -> str:
    rows = []
    for name, study in facts.items():
        for method, found in study["contraction"].items():
            bound = "–" if found["bound"] is None else f"{found['bound']:.3f}"
            lost = str(found["without_condition"]) if found["without_condition"] else "0"
            rows.append(
                [
                    name,
                    method,
                    f"{found['first']:.3f}",
                    f"{found['last']:.3f}",
                    f"{found['largest']:.3f}",
                    bound,
                    f"{found['exceeded']} of {found['records']}",
                    lost,
                ]
            )
    return table(["problem", "trained as", "at first", "at last", "largest", "√(1-ε)", "exceeded", "A without the condition"], rows)


def dynamics_table(facts: Facts) -> str:
    """Ratios of the diagnostics, C-PINN over PINN, in the first record, where the weights nearly agree, and in the second half of the runs."""
    rows = []
    for name, study in facts.items():
        ours, theirs = study["curves"]["C-PINN"], study["curves"]["PINN"]
        first = {key: ours[key][0] / theirs[key][0] for key in ("loss", "gradient", "sharpness")}
        late = [ours["late"][key] / theirs["late"][key] for key in ("gradient", "sharpness")]
        free = first["sharpness"] / first["loss"]
        rows.append([name, *(f"{value:.2g}" for value in (study["multiplier"]["mean_square"], *first.values(), free, *late))])
    head = ["problem", "mean of γ²", "loss", "gradient norm", "σ proxy", "σ proxy / loss", "gradient norm, second half", "σ proxy, second half"]
    return table(head, rows)


def landscape_table(facts: Facts) -> str:
    rows = []
    for name, study in facts.items():
        for method, found in study["landscape"].items():
            medians = found["directions"]
            ratio = "not a minimum" if medians["curvature_ratio"] is None else f"{medians['curvature_ratio']:.3g}"
            rows.append([name, method, ratio, f"{medians['sharpness']:.2f}", f"{100 * medians['nonconvex']:.0f} %", f"{medians['decades']:.1f}"])
    return table(["problem", "method", "curvature ratio", "sharpness", "not convex", "decades"], rows)


def lift_table(lifted: Mapping[str, Any]) -> str:
    rows = []
    for row in lifted["rows"]:
        paper = "not reached" if row["paper"] is None else str(row["paper"])
        rows.append([row["problem"], f"{row['target']:.0e}", row["method"], paper, Summary(row["epochs"]).text(".0f")])
    return table(["problem", "target", "method", "epochs, paper", "epochs with the solution as lift"], rows)


def main(arguments: Sequence[str]) -> None:
    if arguments:
        gather(Path(arguments[0]))
    DOCUMENT.write_text(refresh(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
