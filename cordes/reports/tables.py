"""Tables for people, from the same facts that programs get as JSON. Cells are `Text`, because
messages may contain square brackets."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from cordes.certificates.certificate import directed
from cordes.reports.advice import remedy
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
    low, high = facts["multiplier_range"]
    negative = facts.get("negative_c")
    return _two_columns(
        facts["problem"],
        {
            "Cordès condition": condition_line(facts),
            "reaction": negative and Text(negative["meaning"], style="bold yellow"),
            "domain": Text(facts["domain"]),
            "worst point": Text(_point(facts["worst_point"])),
            "multiplier": _short(low) if low == high else f"from {_short(low)} to {_short(high)}",
        },
    )


def condition_line(condition: Mapping[str, Any]) -> Text:
    """One line; a violation is no failure, but nobody should miss it."""
    best = f", λ = {_short(condition['lambda'])}" if condition["lambda"] is not None else ""
    found = f"ε = {_short(condition['epsilon'])} ({condition['source']}){best}"
    if condition["satisfied"]:
        return Text(f"satisfied: {found}")
    return Text(
        f"VIOLATED: {found}. The problem can be solved all the same, but the paper's theory "
        "promises nothing.",
        style="bold yellow",
    )


def solution_table(facts: Mapping[str, Any], certificate: Iterable[tuple[str, str]] = ()) -> Table:
    """How a solve went, from the facts of `solve --json`, and the lines of its certificate."""
    result = Result(facts["result"])
    good = result is Result.converged
    style = {Result.converged: "green", Result.finished: ""}.get(result, "bold yellow")
    table = _two_columns(
        facts["problem"],
        {
            "Cordès condition": condition_line(facts["condition"]),
            "method": f"{facts['method']}, seed {facts['seed']}",
            "result": Text(f"{result.value}: {facts['verdict']}", style=style),
            "what to do": None if good else Text(remedy(facts)),
            "tolerance": facts.get("tolerance") and _tolerance_line(facts["tolerance"]),
            **_measured(facts),
        },
    )
    for k, (name, line) in enumerate(certificate):
        style = "bold" if k == 0 else ""
        table.add_row("certificate" if k == 0 else "", Text(f"{name}: {line}", style=style))
    outer, transport, convexity = map(facts.get, ("outer", "transport", "convexity"))
    parts = [
        f"{name} {facts['seconds'][name]:.1f}"
        for name in ("import", "prepare", "compile", "solve", "certify", "files", "total")
        if facts["seconds"].get(name) is not None
    ]
    return _with_rows(
        table,
        {
            "constant": f"Lu = f + C with C = {facts['constant']:.7g}; u has mean zero"
            if "constant" in facts
            else None,
            "outer steps": outer and Text("\n".join(_outer_line(step) for step in outer)),
            "transport": transport and Text(_transport_lines(transport)),
            "proof": _proof_line(facts),
            "convexity": convexity
            and Text(
                "smallest eigenvalue of D²u: "
                f"{_short(convexity['smallest_eigenvalue'])} at {_point(convexity['point'])}"
            ),
            "residual": f"{_number(facts['relative_residual'])} relative to the data, "
            f"{_number(facts['residual'])} scaled (root mean square on fresh points)",
            "size": f"{facts['parameters']} parameters, {facts['points']} points",
            "seconds": ",\n".join(filter(None, map(", ".join, (parts[:3], parts[3:])))),
            "files": facts.get("files") and Text("\n".join(facts["files"])),
        },
    )


def _proof_line(facts: Mapping[str, Any]) -> Text | None:
    proof, why = facts.get("proof"), facts.get("not_proved")
    if proof is None:
        return None if why is None else Text(f"not proved: {why}", style="bold yellow")
    bounds = ", ".join(
        f"{name} ≤ {directed(proof[name], 3, up=True):.3g}"
        for name in ("L2", "Linf")
        if proof[name] is not None
    )
    return Text(f"{bounds}; {proof['command']}")


def proof_table(facts: Mapping[str, Any]) -> str:
    """The theorem in words, or why there is none."""
    if not facts["proved"]:
        level = f" The level of the bounds is {facts['level']}." if facts["level"] else ""
        return f"Not proved: {facts['reason']}.{level}\n"
    proof = facts["proof"]
    told = f"Found in {proof['seconds']:.1f} s, checked in {proof['checked']:.1f} s; again by"
    lines = [proof["theorem"].rstrip(), "", f"{told} {proof['command']}", *facts["files"], ""]
    return "\n".join(lines)


def _measured(facts: Mapping[str, Any]) -> dict[str, str]:
    """What a comparison with the exact solution, or with a classical one, gave."""
    error, reference = facts["error"], facts["reference"]
    if error is not None:
        exact = "map" if facts.get("transport") else "solution"
        sizes = f"l2 {_number(error['l2'])}, maximum {_number(error['linf'])}"
        return {"error": f"{sizes} (against the exact {exact})"}
    if reference is not None:
        largest, name = _number(reference["linf"]), reference["name"]
        return {"difference": f"maximum {largest} (against a {name} reference)"}
    return {}


def _tolerance_line(facts: Mapping[str, Any]) -> str:
    """What was asked for beside what was reached."""
    names = {"rms": "root mean square error", "Linf": "largest error", "map_L2": "error of the map"}
    reached = "no bound"
    if facts["certified"] is not None:
        reached = f"{directed(facts['certified'], 3, up=True):.3g}"
    return f"asked {_short(facts['asked'])}, certified {reached} ({names[facts['norm']]})"


def _outer_line(step: Mapping[str, Any]) -> str:
    """One step of the outer loop: residual, changed controls, size of the network."""
    changed = ""
    if "changed" in step:
        changed = f", {100 * step['changed']:.3g} % of the controls changed"
    size = f", {step['size']} parameters" if "size" in step else ""
    kind = ", fixed point" if step.get("contracting") else ""
    return f"{step['outer']}: residual {_number(step['residual'])}{changed}{size}{kind}"


def _transport_lines(facts: Mapping[str, Any]) -> str:
    low, high = facts["eigenvalues"]
    error = facts["density_error"]
    return (
        f"distance W₂ {facts['W2']:.7g} (of the map)\n"
        f"pushed-forward density: relative error {_number(error['rms'])} (root mean square), "
        f"{_number(error['largest'])} (largest)\n"
        f"eigenvalues of D²u from {_short(low)} to {_short(high)}; boundary missed by "
        f"{_number(facts['rim'])}; mass defect {_number(facts['mass_defect'])}"
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
    best = f"best: {facts['best']}; corners {', '.join(map(str, facts['corners']))}"
    repaired = (f"repaired: {repair}" for repair in facts["repairs"])
    return Text("\n".join([best, *repaired, *facts["files"]]))


def bench_table(facts: Mapping[str, Any]) -> Table:
    """The cost of a solve beside the paper's."""
    words = {
        "one epoch": "{epoch_s:.3f} s (a plain network of the paper's kind on this machine)",
        "one solve": "{solve_s:.3f} s without compilation ({method}, {result}, repeats: {repeats})",
        "cost": "{epochs_equivalent:.1f} epochs",
    }
    rows = {name: sentence.format(**facts) for name, sentence in words.items()}
    if facts["l2"] is not None:
        rows["error"] = "l2 {l2:.2e}, maximum {linf:.2e}".format(**facts)
    if facts["paper"] is not None:
        paper = "l2 {l2:.2e} after {epochs} epochs, {seconds} s on an RTX 4090"
        rows["the paper"] = paper.format(**facts["paper"])
    return _two_columns(facts["problem"], rows)


def _two_columns(title: str, rows: Mapping[str, RenderableType | None]) -> Table:
    table = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return _with_rows(table, rows)


def _with_rows(table: Table, rows: Mapping[str, RenderableType | None]) -> Table:
    """What there is nothing to say about is left out."""
    for name, value in rows.items():
        if value:
            table.add_row(name, value)
    return table


def _point(values: Iterable[float]) -> str:
    return f"({', '.join(_short(value) for value in values)})"


def _number(value: float) -> str:
    return f"{value:.2e}"


def _short(value: float) -> str:
    return f"{value:.4g}"
