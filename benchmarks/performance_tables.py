"""Writes the tables of docs/performance.md anew from benchmarks/results/: `python
benchmarks/performance_tables.py`.

Each table stands between the marks `<!-- table NAME -->` and `<!-- end -->`. The results are what
the benchmark programs wrote with `--json`:

    high_dimension_h200.json   benchmarks/high_dimension.py            adam_kernel_h200.json
    benchmarks/adam_kernel/run.py
    paper_tables_*.json        benchmarks/paper_tables.py              roofline_*.json
    benchmarks/roofline.py
    jets_*.json                benchmarks/jets.py                      cost_cpu.json
    benchmarks/cost.py --quick
    linear_algebra_*.json      benchmarks/linear_algebra.py            rivals.json
    benchmarks/rivals/run.py
"""

import json
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "performance.md"
COLUMNS = 100
MARK = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Variants of the Adam step that the page shows; the others are in the file.
STEPS = {
    "separate operations": "a study's step, separate operations (what the library runs)",
    "packed operations": "a study's step, packed operations",
    "bare step, separate operations": "bare step, separate operations",
    "bare step, packed operations": "bare step, packed operations",
    "bare step, packed operations tf32x3": "bare step, packed, products as three TF32 products",
    "bare step, packed operations bf16x9": "bare step, packed, products as nine BF16 products "
    "(**not float32**: see its error)",
    "bare step, kernel": "bare step, one kernel",
}


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + "\n"


def short(value: float | None, digits: int = 2) -> str:
    """A number for the page."""
    if value is None:
        return "–"
    return (
        f"{value:.{digits - 1}e}"
        if value and not 1e-3 <= abs(value) < 1e5
        else f"{value:.{digits}g}"
        if abs(value) < 10**digits
        else f"{value:,.0f}"
    )


def high_dimension() -> str:
    rows = []
    for run in read("high_dimension_h200"):
        reached = ", ".join(
            f"{float(error):.0e}: {seconds:.2f}" for error, seconds in run["reached"].items()
        )
        found = run["certificate"]
        bound = (
            f"{found['rms']:.1e} ({found['theorem']}, contraction {found['contraction']:.3f} "
            f"{found['epsilon_source']})"
        )
        kind = "absolute" if run["measure"].startswith("absolute") else "relative"
        cells = [
            run["name"],
            kind,
            run["network"],
            f"{run['points']:,}",
            reached,
            str(run["steps"]),
            short(run["compile"], 3),
            bound,
            short(found["seconds"]),
        ]
        rows.append(cells)
    head = [
        "problem",
        "l2",
        "network",
        "points a step",
        "error: seconds",
        "steps",
        "compile s",
        "certified root mean square error",
        "certify s",
    ]
    return grid(head, rows)


def paper_tables(name: str) -> Callable[[], str]:
    return lambda: _paper_tables(read(name)["results"])


def _paper_tables(runs: Sequence[dict[str, Any]]) -> str:
    # A repeated solve of a prepared problem is in the results of newer runs.
    prepared, rows = all("again" in run["until"] for run in runs), []
    for run in runs:
        until = run["until"]
        again = (
            [short(until["again"], 3), short(run["paper_seconds"] / until["again"], 3)]
            if prepared
            else []
        )
        full = (
            [short(run["default"], 3), short(run["l2"])]
            if run.get("default") is not None
            else ["–", "–"]
        )
        rows.append(
            [
                run["name"],
                f"{run['target']:g}",
                short(run["paper_seconds"], 3),
                short(until["seconds"], 3),
                short(run["ratio"], 3),
                *again,
                short(until["l2"]),
                *full,
                short(run["compile"]),
                str(run["parameters"]),
                str(run["points"]),
            ]
        )
    head = [
        "problem",
        "milestone",
        "paper s",
        "until then s",
        "ratio",
        *(["again s", "ratio"] if prepared else []),
        "l2 then",
        "default s",
        "l2 of the default",
        "compile s",
        "parameters",
        "points",
    ]
    return grid(head, rows)


def adam_step() -> str:
    found = {line["name"]: line for line in read("adam_kernel_h200") if "ms" in line}
    rows = [
        [
            text,
            f"{found[name]['ms']:.3f}",
            short(found[name]["gradient_error"]),
            short(found[name]["compile"]),
        ]
        for name, text in STEPS.items()
    ]
    return grid(
        [
            "one network, 10,000 points, 4×64 SiLU",
            "ms",
            "largest error of the gradient",
            "compile s",
        ],
        rows,
    )


def roofline(name: str) -> Callable[[], str]:
    def made() -> str:
        facts = read(name)
        peaks = ", ".join(
            f"{kind} {p['operations'] / 1e9:,.0f} Gop/s and {p['bytes'] / 1e9:,.0f} GB/s"
            for kind, p in facts["peaks"].items()
        )
        rows = [
            [
                r["step"],
                r["part"],
                short(r["operations"] / 1000000.0, 3),
                short(r["bytes"] / 1000000.0, 3),
                short(1000.0 * r["floor"]),
                r["bound"],
                short(1000.0 * r["seconds"], 3),
                short(r["ratio"]),
            ]
            for r in facts["results"]
        ]
        table = grid(["step", "part", "Mop", "MB", "floor ms", "by", "measured ms", "ratio"], rows)
        words = f"Peaks measured in the same run ({facts['machine']['device']}): {peaks}."
        return textwrap.fill(words, COLUMNS, break_on_hyphens=False) + "\n\n" + table

    return made


def jets(name: str) -> Callable[[], str]:
    def made() -> str:
        facts = read(name)
        rows = [
            [
                r["task"],
                r["mode"],
                str(r["dimension"]),
                r["way"],
                short(1e3 * r["seconds"], 3),
                short(r["ratio"], 3),
                short(r["compile"]),
            ]
            for r in facts["results"]
            if "seconds" in r
        ]
        device = (
            f"{facts['machine']['device']}, {facts['points']:,} points, {facts['depth']} layers "
            f"of {facts['width']}"
        )
        return f"{device}:\n\n" + grid(
            ["what", "mode", "d", "way", "ms", "over cordes", "compile s"], rows
        )

    return made


def cost() -> str:
    rows = []
    for series in read("cost_cpu")["results"]:
        for part, fit in series["exponents"].items():
            rows.append(
                [
                    series["axis"],
                    series["kept"],
                    part,
                    f"{fit['lower']:g} to {fit['upper']:g}",
                    f"{fit['power']:.2f}",
                    f"{fit['spread']:.2f}",
                ]
            )
    return grid(
        ["seconds against", "kept", "part", "range", "exponent", "departs by a factor of"], rows
    )


def rivals() -> str:
    facts = read("rivals")
    names = {
        "cordes": "cordes, nothing compiled",
        "chebyshev": "Chebyshev",
        "deepxde": "DeepXDE",
        "jinns": "jinns",
        "paper": "paper preset",
    }
    rows = []
    for problem, solvers in facts["results"].items():
        cells = [problem]
        for name in names:
            curve = solvers.get(name, {}).get("curve")
            best = min(curve, key=lambda point: point[2]) if curve else None
            cells.append(f"{best[2]:.1e} ({best[0]:.1f} s)" if best else "–")
        rows.append(cells)
    return grid(["best l2 and when", *names.values()], rows)


def ratios() -> str:
    rows = []
    for problem, comparisons in read("rivals")["comparisons"].items():
        for row in comparisons["at 1 times the best"]:
            if row["solver"] in ("cordes", "cordes-cached"):
                rows.append(
                    [
                        problem,
                        row["rival"],
                        f"{row['target']:.1e}",
                        row["solver"],
                        short(row["ratio"], 3),
                        short(row["solve_ratio"], 3),
                    ]
                )
    return grid(
        [
            "problem",
            "at the best error of",
            "l2",
            "solver",
            "times faster, all included",
            "solve alone",
        ],
        rows,
    )


TABLES: dict[str, Callable[[], str]] = {
    "high-dimension": high_dimension,
    "paper-tables": paper_tables("paper_tables_h200"),
    "paper-tables-cpu": paper_tables("paper_tables_cpu"),
    "adam-step": adam_step,
    "roofline-h200": roofline("roofline_h200"),
    "roofline-cpu": roofline("roofline_cpu"),
    "jets-h200": jets("jets_h200"),
    "jets-cpu": jets("jets_cpu"),
    "cost": cost,
    "rivals": rivals,
    "ratios": ratios,
}


def page(text: str) -> str:
    """The page with its tables as the results give them."""
    return MARK.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
