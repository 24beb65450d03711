"""The page of a surface laid flat: the surface to turn with a checkerboard of each map, the flat
maps, what is distorted, and how long it took."""

import html
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cordes.reports.kit.drawings import histogram
from cordes.reports.kit.page import (
    Section,
    grid_table,
    note,
    number,
    resource,
    table,
    text,
    write_page,
)
from cordes.reports.kit.provenance import closing_sections
from cordes.reports.kit.stills import address, still
from cordes.surfaces.distortion import star_sums
from cordes.surfaces.flatten import FlatSurface
from cordes.surfaces.mesh import corner_angles
from cordes.surfaces.pages.plots import colour_limit, face_ratios, star_ratios, view_data

TURNING = (
    "Two fingers zoom, or the wheel after a click; arrow keys turn, + and − zoom, Home goes back. "
    "The slider unrolls the surface onto its flat map."
)
SQUARES = (
    "The squares of the checkerboard are all of one size on the flat map. On the surface a "
    "conformal map keeps their right angles and lets their size go; the area-preserving map gives "
    "each the same area."
)
FLAT = (
    "Folds inward are dark, ridges bright. Red is what the flat map makes too large, blue what it "
    "makes too small, with one scale for all maps."
)
MOVED = (
    "How far the area of the surface travels from where the conformal map puts it: root mean "
    "square, in widths of the rectangle. It is the cost of one plan, and so an upper bound of the "
    "distance W₂ between the density that the conformal map leaves and the one that is reached."
)
BOUNDS = (
    "There is no error bound for the single transports: their densities come from the mesh, on a "
    "grid. What counts is measured above, on every face of the mesh and after the last of them."
)
# Bars of a histogram; the largest angle error that has its own bar, in degrees.
BARS, ANGLES = 49, 90
WORDS = {
    "conformal": "Keeps angles; areas are what they are.",
    "dct": "Optimal transport by cosine transforms, the classical way.",
    "network": "Optimal transport by networks, pass by pass.",
    "dct + network": "Cosine transforms, corrected by a network.",
}
# Columns after those of the areas: facts and what they are called.
COLUMNS = {
    "angle_mean": "angles: mean",
    "angle_deviation": "SD",
    "beltrami_mean": "mean |μ|",
    "beltrami_max": "largest |μ|",
    "flipped": "flipped",
    "seconds": "seconds",
}
MEASURES = (
    "Areas: the logarithm of flat area over area, both normalised, of single faces and of the "
    "stars of faces around vertices. Angles in degrees, over all corners. |μ| is Beltrami's "
    "coefficient, 0 where angles are kept and 1 where a face is squeezed to a line. All faces are "
    "counted, none sampled."
)
# Columns of the passes: facts and what they are called.
PASS_COLUMNS = {
    "resolution": "grid",
    "smoothing": "smoothing",
    "features": "features",
    "spread": "density: largest / smallest",
    "residual": "residual",
    "deviation": "areas: SD after",
    "flipped": "flipped",
}


def write_surface_report(
    path: str | Path,
    found: FlatSurface,
    facts: Mapping[str, Any],
    figure: Figure,
    words: Sequence[str],
) -> Path:
    """`facts` are those of report.json, `figure` is the one of `plot_surface` for the maps of
    `found.shown`, and `words` what the command was called with."""
    names = list(found.shown)
    labels = map_labels(names, found.best)
    view = view_data(found.disk, found.shown, labels, found.size)
    stills = _stills(figure, names)
    limit = colour_limit(face_ratios(found.disk.mesh, found.maps[names[0]].uv))
    sections = [
        Section("The surface", _surface_body(view, stills, labels), "surface"),
        Section("Laid flat", _flat_body(stills, labels, facts, limit), "flat"),
        Section("Distortion", _distortion_body(found, facts), "distortion"),
        Section("Transport", _transport_body(facts), "transport"),
        *closing_sections(_setting_rows(facts), words),
    ]
    title = f"{Path(str(facts['mesh'])).stem}, laid flat"
    scripts = [resource("view.js", __file__), resource("drawings.js")]
    return write_page(path, title, answer(facts), sections, {"facts": facts, "view": view}, scripts)


def map_labels(names: Sequence[str], best: str) -> dict[str, str]:
    """Names for people."""
    return {
        name: f"area-preserving ({name})" if name == best and name != "conformal" else name
        for name in names
    }


def moved(found: FlatSurface) -> dict[str, float]:
    """How far each map moves the surface from where the conformal one puts it: the root mean square
    over its area, in units of the rectangle's width.

    Both maps carry the surface's area to the rectangle, so that this is the cost of one plan
    between the two densities, and not below their distance W₂.
    """
    start, areas = found.maps["conformal"].uv, star_sums(found.disk.mesh, found.disk.mesh.areas)
    weights = areas / np.sum(areas)
    return {
        name: float(np.sqrt(weights @ np.sum((flat.uv - start) ** 2, axis=1)))
        for name, flat in found.maps.items()
        if name != "conformal"
    }


def answer(facts: Mapping[str, Any]) -> str:
    """What was reached, for everyone."""
    before, after = facts["maps"]["conformal"], facts["maps"][facts["best"]]
    flipped = int(after["flipped"])
    turned = "No face is turned over" if flipped == 0 else f"{flipped} faces are turned over"
    first = (
        "On the flat map a piece of the surface keeps its share of the area to within "
        f"{off_by(after['area_faces']['weighted_mean'])} on average; with the conformal map alone "
        f"it is off by {off_by(before['area_faces']['weighted_mean'])}."
    )
    price = (
        f"Angles pay for it: they are wrong by {number(after['angle_mean'])}° on average instead "
        f"of {number(before['angle_mean'])}°. {turned}."
    )
    return f'<p class="answer">{html.escape(first)}</p><p>{price}</p>'


def off_by(logarithm: float) -> str:
    """A mean |log ratio| in words: per cent as long as that is what one would say, then a
    factor."""
    excess = math.expm1(logarithm)
    return f"{100 * excess:.2g} %" if excess < 0.5 else f"a factor of {1 + excess:.2g}"


# The surface --------------------------------------------------------------------------------------


def _surface_body(
    view: Mapping[str, Any], stills: Mapping[str, Sequence[str]], labels: Mapping[str, str]
) -> str:
    buttons = [_button("map", "both", "side by side")]
    buttons += [_button("map", str(k), labels[each["name"]]) for k, each in enumerate(view["maps"])]
    fewer = f" The view shows {view['vertices']} of its vertices;"
    thinned = f"{fewer} all numbers are those of the whole mesh." if view["thinned"] else ""
    described = (
        "The surface with a checkerboard, which can be turned with the arrow keys and enlarged "
        "with plus and minus"
    )
    pictures = "".join(
        still(stills[name][0], f"{label}: checkerboard on the surface")
        for name, label in labels.items()
    )
    paints = _button("paint", "checks", "checkerboard") + _button("paint", "areas", "areas")
    return f"""<style>{resource("view.css", __file__)}{resource("drawings.css")}</style>
<div id="surface-view" hidden>
<div class="tools"><div class="group" role="group" aria-label="Map">{"".join(buttons)}</div>
<div class="group" role="group" aria-label="Colours">{paints}</div>
<label>on the surface <input type="range" min="0" max="1" step="0.01" value="0"
aria-label="From the surface to the flat map"> flat</label>
<button type="button" data-reset>front</button></div>
<div class="stage"><canvas tabindex="0" role="img" aria-label="{described}"></canvas>
<div class="labels"></div></div>
{_scale(view["limit"], " hidden")}
<output>Drag to turn. Point at a place to read it.</output>
{note(TURNING + thinned)}
</div>
<div id="surface-stills" class="stills columns">{pictures}</div>
{note(SQUARES)}"""


def _button(group: str, value: str, words: str) -> str:
    return (
        f'<button type="button" data-{group}="{value}" aria-pressed="false">{text(words)}</button>'
    )


def _stills(figure: Figure, names: Sequence[str]) -> dict[str, list[str]]:
    """The pictures of the figure, three for each map (surface, flat map, area ratio), as
    addresses."""
    drawn = [axes.images[0] for axes in figure.axes if axes.images and axes.get_title()]
    addresses = [address(np.asarray(image.get_array())) for image in drawn]
    return {name: addresses[3 * k : 3 * k + 3] for k, name in enumerate(names)}


def _scale(limit: float, hidden: str = "") -> str:
    """The colours of the area ratio, which end at ± `limit` of its logarithm."""
    factor = math.exp(limit)
    return (
        f'<div class="ratios"{hidden}><span>÷{factor:.2g}</span><i></i><span>×{factor:.2g}</span>'
        "<span>flat area over area</span></div>"
    )


def _flat_body(
    stills: Mapping[str, Sequence[str]],
    labels: Mapping[str, str],
    facts: Mapping[str, Any],
    limit: float,
) -> str:
    width, height = facts["rectangle"]
    parts = [note(f"The flat maps fill a rectangle of {width:.4g} × {height:.4g}. {FLAT}")]
    for name, label in labels.items():
        report = facts["maps"][name]
        deviation = report["area_faces"]["deviation"]
        said = (
            f"angles are wrong by {report['angle_mean']:.2g}° on average.",
            f"flat area over area; its logarithm has the deviation {deviation:.3g}.",
        )
        both = zip(stills[name][1:], said, strict=True)
        pictures = "".join(still(source, f"{label}: {words}") for source, words in both)
        parts.append(f'<div class="stills sheets columns">{pictures}</div>')
    return "".join([*parts, _scale(limit)])


# Numbers ------------------------------------------------------------------------------------------


def _distortion_body(found: FlatSurface, facts: Mapping[str, Any]) -> str:
    rows = []
    for name, report in facts["maps"].items():
        faces, stars = report["area_faces"], report["area_stars"]
        values = [faces["deviation"], stars["deviation"], faces["mean"]]
        values += [report[key] for key in COLUMNS]
        label = f"<strong>{text(name)}</strong> (best)" if name == facts["best"] else text(name)
        rows.append([label, *(number(value) for value in values)])
    head = ["map", "areas: SD, faces", "SD, stars", "mean |log|", *COLUMNS.values()]
    described = "".join(f"<li>{text(name)}: {text(WORDS[name])}</li>" for name in facts["maps"])
    histograms = "".join(
        _histograms(found, name, 2 if name == "conformal" else 1)
        for name in ("conformal", facts["best"])
    )
    return (
        f'{grid_table(head, rows)}<ul class="claims">{described}</ul>{note(MEASURES)}<div '
        f'class="columns">{histograms}</div>'
    )


def _histograms(found: FlatSurface, name: str, series: int) -> str:
    """Areas and angles of one map; the area axis is that of the conformal map, so that before and
    after can be compared."""
    mesh, uv = found.disk.mesh, found.maps[name].uv
    before = np.abs(star_ratios(mesh, found.maps["conformal"].uv))
    reach = max(math.log(2), float(np.percentile(before, 99)))
    edges = np.linspace(-reach, reach, BARS + 1)
    said = [f"{math.exp(a):.3g} to {math.exp(b):.3g} times its area" for a, b in pairwise(edges)]
    said[0] = f"below {math.exp(edges[1]):.3g} times its area"
    said[-1] = f"above {math.exp(edges[-2]):.3g} times its area"
    doublings = [
        (k * math.log(2), f"×{2**k}" if k > 0 else f"÷{2**-k}" if k < 0 else "1")
        for k in range(-12, 13)
        if abs(k * math.log(2)) <= reach
    ]
    ticks = doublings[:: max(1, -(-len(doublings) // 9))]
    ratios, stars = star_ratios(mesh, uv), star_sums(mesh, mesh.areas)
    title = f"{name}: flat area over area"
    areas = histogram(ratios, stars, edges, ticks, title, said, series)
    errors = np.abs(np.degrees(corner_angles(uv[mesh.faces]) - mesh.angles)).ravel()
    edges = np.linspace(0, ANGLES, ANGLES // 2 + 1)
    said = [f"{a:g}° to {b:g}°" for a, b in pairwise(edges[:-1])] + [f"{edges[-2]:g}° or more"]
    ticks = [(float(k), f"{k}°") for k in range(0, ANGLES + 1, 15)]
    weights, title = np.repeat(mesh.areas, 3), f"{name}: angle error"
    angles = histogram(errors, weights, edges, ticks, title, said, series)
    return f"<div>{areas}{angles}</div>"


def _transport_body(facts: Mapping[str, Any]) -> str:
    rows = [(f"moved by {name}", number(value)) for name, value in facts["moved"].items()]
    made = {name: report["passes"] for name, report in facts["maps"].items() if report["passes"]}
    tables = [_passes(name, passes) for name, passes in made.items()]
    return "".join([table(rows), note(MOVED), *tables, note(BOUNDS)])


def _passes(name: str, passes: Sequence[Mapping[str, Any]]) -> str:
    head = ["pass", *PASS_COLUMNS.values(), "result", "kept", "seconds"]
    rows = []
    for k, one in enumerate(passes, 1):
        kept = "yes" if one["kept"] else "no"
        numbers = [number(one[key]) for key in PASS_COLUMNS]
        rows.append([str(k), *numbers, text(one["result"]), kept, number(one["seconds"])])
    words = "a pass that makes the areas worse, or turns faces over, is not kept."
    return grid_table(head, rows, f"Passes of {name}: {words}")


def _setting_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    width, height = facts["rectangle"]
    seconds = {name: number(report["seconds"]) for name, report in facts["maps"].items()}
    return [
        ("mesh", text(facts["mesh"])),
        ("vertices", number(facts["vertices"])),
        ("faces", number(facts["faces"])),
        ("vertices of the boundary", number(facts["boundary"])),
        ("rectangle", f"{number(width, 4)} × {number(height, 4)}"),
        ("corners (vertices, from 1)", text(", ".join(str(corner) for corner in facts["corners"]))),
        ("repairs", text("; ".join(facts["repairs"]) or "none")),
        ("best map", text(facts["best"])),
        ("seed", number(facts["seed"])),
        ("seconds", ", ".join(f"{text(name)} {spent}" for name, spent in seconds.items())),
    ]
