"""Tables for people, from the same facts that programs get as JSON. Cells are `Text`, because
messages may contain square brackets."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from cordes.certificates.certificate import directed
from cordes.reports.advice import bounded, remedy, verdict
from cordes.results import Result


def gallery_table(problems: Iterable[Mapping[str, str]]) -> Table:
    """Names and descriptions."""
    table = Table(title="Built-in problems: cordes solve NAME", title_justify="left")
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("description")
    for problem in problems:
        table.add_row(problem["name"], Text(problem["description"]))
    return table


def condition_table(facts: Mapping[str, Any]) -> Table:
    """What `check` found."""
    table = _two_columns(facts["problem"])
    low, high = facts["multiplier_range"]
    table.add_row("Cordès condition", condition_line(facts))
    if facts.get("negative_c"):
        table.add_row("reaction", Text(facts["negative_c"]["meaning"], style="bold yellow"))
    table.add_row("domain", Text(facts["domain"]))
    table.add_row(
        "worst point", Text(f"({', '.join(_short(value) for value in facts['worst_point'])})")
    )
    table.add_row(
        "multiplier", f"{_short(low)}" if low == high else f"from {_short(low)} to {_short(high)}"
    )
    return table


def condition_line(condition: Mapping[str, Any]) -> Text:
    """One line; a violation is no failure, but nobody should miss it."""
    best = f", λ = {_short(condition['lambda'])}" if condition["lambda"] is not None else ""
    found = f"ε = {_short(condition['epsilon'])} ({condition['source']}){best}"
    if condition["satisfied"]:
        return Text(f"satisfied: {found}")
    return Text(
        (
            f"VIOLATED: {found}. The problem can be solved all the same, but the paper's theory "
            "promises nothing."
        ),
        style="bold yellow",
    )


def solution_table(facts: Mapping[str, Any], certificate: Iterable[tuple[str, str]] = ()) -> Table:
    """How a solve went, from the facts of `solve --json`, and the lines of its certificate."""
    table = _two_columns(facts["problem"])
    table.add_row("Cordès condition", condition_line(facts["condition"]))
    table.add_row("method", f"{facts['method']}, seed {facts['seed']}")
    result = Result(facts["result"])
    good = result is Result.converged and bounded(facts)
    table.add_row(
        "result", Text(f"{result.value}{verdict(facts)}", style="green" if good else "bold yellow")
    )
    if not good:
        table.add_row("what to do", Text(remedy(facts)))
    if facts.get("tolerance"):
        table.add_row("tolerance", _tolerance_line(facts["tolerance"]))
    if facts["error"] is not None:
        exact = "map" if facts.get("transport") else "solution"
        table.add_row(
            "error",
            (
                f"l2 {_number(facts['error']['l2'])}, maximum {_number(facts['error']['linf'])} "
                f"(against the exact {exact})"
            ),
        )
    elif facts["reference"] is not None:
        table.add_row(
            "difference",
            (
                f"maximum {_number(facts['reference']['linf'])} (against a "
                f"{facts['reference']['name']} reference)"
            ),
        )
    for k, (name, line) in enumerate(certificate):
        table.add_row(
            "certificate" if k == 0 else "", Text(f"{name}: {line}", style="bold" if k == 0 else "")
        )
    if facts.get("outer"):
        table.add_row("outer steps", Text("\n".join(_outer_line(step) for step in facts["outer"])))
    if facts.get("transport"):
        table.add_row("transport", Text(_transport_lines(facts["transport"])))
    if facts.get("convexity"):
        place = ", ".join(_short(value) for value in facts["convexity"]["point"])
        table.add_row(
            "convexity",
            Text(
                "smallest eigenvalue of D²u: "
                f"{_short(facts['convexity']['smallest_eigenvalue'])} at ({place})"
            ),
        )
    table.add_row(
        "residual", f"{_number(facts['residual'])} (scaled, root mean square on fresh points)"
    )
    table.add_row("size", f"{facts['parameters']} parameters, {facts['points']} points")
    seconds = [
        (name, facts["seconds"][name])
        for name in ("import", "prepare", "compile", "solve", "certify", "files", "total")
        if facts["seconds"].get(name) is not None
    ]
    rows = [f"{name} {value:.1f}" for name, value in seconds]
    table.add_row("seconds", ",\n".join(filter(None, map(", ".join, (rows[:3], rows[3:])))))
    if facts.get("files"):
        table.add_row("files", Text("\n".join(facts["files"])))
    return table


def _tolerance_line(facts: Mapping[str, Any]) -> str:
    """What was asked for beside what was reached."""
    name = {"rms": "root mean square error", "Linf": "largest error", "map_L2": "error of the map"}[
        facts["norm"]
    ]
    reached = (
        "no bound"
        if facts["certified"] is None
        else f"{directed(facts['certified'], 3, up=True):.3g}"
    )
    return f"asked {_short(facts['asked'])}, certified {reached} ({name})"


def _outer_line(step: Mapping[str, Any]) -> str:
    """One step of the outer loop: its residual, the share of the points whose control changed, the
    size of the network."""
    changed = (
        f", {100 * step['changed']:.3g} % of the controls changed" if "changed" in step else ""
    )
    size = f", {step['size']} parameters" if "size" in step else ""
    kind = ", fixed point" if step.get("contracting") else ""
    return f"{step['outer']}: residual {_number(step['residual'])}{changed}{size}{kind}"


def _transport_lines(facts: Mapping[str, Any]) -> str:
    low, high = facts["eigenvalues"]
    error = facts["density_error"]
    return "\n".join(
        [
            f"distance W₂ {facts['W2']:.7g} (of the map)",
            (
                f"pushed-forward density: relative error {_number(error['rms'])} (root mean "
                f"square), {_number(error['largest'])} (largest)"
            ),
            (
                f"eigenvalues of D²u from {_short(low)} to {_short(high)}; boundary missed by "
                f"{_number(facts['rim'])}; mass defect {_number(facts['mass_defect'])}"
            ),
        ]
    )


def surface_table(facts: Mapping[str, Any]) -> Table:
    """The distortion of each flat map, side by side: standard deviation of the log area ratio, mean
    angle error, mean |μ|. The JSON has more."""
    title = (
        f"{facts['mesh']}: {facts['vertices']} vertices, {facts['faces']} faces, rectangle "
        f"{_short(facts['rectangle'][0])} × {_short(facts['rectangle'][1])}"
    )
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        caption=_surface_caption(facts),
        caption_justify="left",
    )
    for column in ("map", "SD faces", "SD stars", "angles", "|μ|", "flipped", "seconds"):
        table.add_column(column, no_wrap=True)
    for name, report in facts["maps"].items():
        table.add_row(
            Text(name, style="bold" if name == facts["best"] else ""),
            f"{report['area_faces']['deviation']:.4f}",
            f"{report['area_stars']['deviation']:.4f}",
            f"{report['angle_mean']:.1f}°",
            f"{report['beltrami_mean']:.3f}",
            f"{report['flipped']}",
            f"{report['seconds']:.1f}",
        )
    return table


def _surface_caption(facts: Mapping[str, Any]) -> Text:
    lines = [
        f"best: {facts['best']}; corners {', '.join(str(corner) for corner in facts['corners'])}"
    ]
    lines += [f"repaired: {repair}" for repair in facts["repairs"]]
    lines += facts["files"]
    return Text("\n".join(lines))


def bench_table(facts: Mapping[str, Any]) -> Table:
    """The cost of a solve beside the paper's."""
    table = _two_columns(facts["problem"])
    table.add_row(
        "one epoch",
        f"{facts['epoch_s']:.3f} s (a plain network of the paper's kind on this machine)",
    )
    table.add_row(
        "one solve",
        (
            f"{facts['solve_s']:.3f} s without compilation ({facts['method']}, {facts['result']}, "
            f"repeats: {facts['repeats']})"
        ),
    )
    table.add_row("cost", f"{facts['epochs_equivalent']:.1f} epochs")
    if facts["l2"] is not None:
        table.add_row("error", f"l2 {_number(facts['l2'])}, maximum {_number(facts['linf'])}")
    if facts["paper"] is not None:
        paper = facts["paper"]
        table.add_row(
            "the paper",
            (
                f"l2 {_number(paper['l2'])} after {paper['epochs']} epochs, {paper['seconds']} s "
                "on an RTX 4090"
            ),
        )
    return table


def _two_columns(title: str) -> Table:
    table = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table


def _number(value: float) -> str:
    return f"{value:.2e}"


def _short(value: float) -> str:
    return f"{value:.4g}"
