"""The part of a surface's page that measures: a table of all maps, and histograms before and
after."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from cordes.reports.kit.drawings import histogram
from cordes.reports.kit.page import grid_table, note, number, text
from cordes.surfaces.distortion import star_sums
from cordes.surfaces.flatten import FlatSurface
from cordes.surfaces.mesh import corner_angles
from cordes.surfaces.pages.view import star_ratios

# Bars of a histogram; the largest angle error that has its own bar, in degrees.
BARS, ANGLES = 49, 90
WORDS = {
    "conformal": "Keeps angles; areas are what they are.",
    "dct": "Optimal transport by cosine transforms, the classical way.",
    "network": "Optimal transport by networks, pass by pass.",
    "dct + network": "Cosine transforms, corrected by a network.",
}

MEASURES = (
    "Areas: the logarithm of flat area over area, both normalised, of single faces and of the "
    "stars of faces around vertices. Angles in degrees, over all corners. |μ| is Beltrami's "
    "coefficient, 0 where angles are kept and 1 where a face is squeezed to a line. All faces are "
    "counted, none sampled."
)


def distortion_body(found: FlatSurface, facts: Mapping[str, Any]) -> str:
    head = [
        "map",
        "areas: SD, faces",
        "SD, stars",
        "mean |log|",
        "angles: mean",
        "SD",
        "mean |μ|",
        "largest |μ|",
        "flipped",
        "seconds",
    ]
    rows = []
    for name, report in facts["maps"].items():
        faces, stars = report["area_faces"], report["area_stars"]
        values = [
            faces["deviation"],
            stars["deviation"],
            faces["mean"],
            report["angle_mean"],
            report["angle_deviation"],
        ]
        values += [
            report["beltrami_mean"],
            report["beltrami_max"],
            report["flipped"],
            report["seconds"],
        ]
        label = f"<strong>{text(name)}</strong> (best)" if name == facts["best"] else text(name)
        rows.append([label, *(number(value) for value in values)])
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
    stars, ratios = star_sums(mesh, mesh.areas), star_ratios(mesh, uv)
    reach = max(
        math.log(2), float(np.percentile(np.abs(star_ratios(mesh, found.maps["conformal"].uv)), 99))
    )
    edges = np.linspace(-reach, reach, BARS + 1)
    said = [f"{math.exp(a):.3g} to {math.exp(b):.3g} times its area" for a, b in pairwise(edges)]
    said[0], said[-1] = (
        f"below {math.exp(edges[1]):.3g} times its area",
        f"above {math.exp(edges[-2]):.3g} times its area",
    )
    doublings = [
        (k * math.log(2), f"×{2**k}" if k > 0 else f"÷{2**-k}" if k < 0 else "1")
        for k in range(-12, 13)
    ]
    kept = [tick for tick in doublings if abs(tick[0]) <= reach]
    areas = histogram(
        ratios,
        stars,
        edges,
        kept[:: max(1, -(-len(kept) // 9))],
        f"{name}: flat area over area",
        said,
        series,
    )
    errors = np.abs(np.degrees(corner_angles(uv[mesh.faces]) - mesh.angles))
    angle_edges = np.linspace(0, ANGLES, ANGLES // 2 + 1)
    angle_said = [f"{a:g}° to {b:g}°" for a, b in pairwise(angle_edges[:-1])] + [
        f"{angle_edges[-2]:g}° or more"
    ]
    weights = np.repeat(mesh.areas[:, None], 3, axis=1)
    ticks = [(float(k), f"{k}°") for k in range(0, ANGLES + 1, 15)]
    title = f"{name}: angle error"
    angles = histogram(
        errors.ravel(), weights.ravel(), angle_edges, ticks, title, angle_said, series
    )
    return f"<div>{areas}{angles}</div>"
