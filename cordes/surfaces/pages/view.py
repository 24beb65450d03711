"""What the turning view of a surface needs: positions, normals, flat coordinates and area ratios as
whole numbers of two bytes at most, in base64."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from cordes.surfaces.conformal import flat_areas
from cordes.surfaces.distortion import log_area_ratio, star_sums
from cordes.surfaces.mesh import Mesh
from cordes.surfaces.pages.plots import (
    CHECKS,
    DARK,
    LIGHT,
    colour_limit,
    project,
    relief_of,
    vertex_normals,
)
from cordes.surfaces.topology import Disk

# More vertices than this are thinned out: the page stays below six megabytes, and the numbers of
# the vertices below 2¹⁶ need two bytes each.
MOST_VERTICES = 60_000
# Logarithms of area ratios are sent in thousandths.
RATIO_UNIT = 1e-3
SHORT = 2**15 - 1


def view_data(
    disk: Disk, maps: Mapping[str, np.ndarray], labels: Mapping[str, str], size: np.ndarray
) -> dict[str, Any]:
    """The first map is the one before, the last the one after. Positions are in the frame of the
    picture: right, up, toward the viewer."""
    mesh = disk.mesh
    screen, depth = project(mesh, None, None)
    frame = np.column_stack([screen, depth])
    ratios = {name: star_ratios(mesh, uv) for name, uv in maps.items()}
    kept, faces = thinned(mesh, list(maps.values())[-1] / size, MOST_VERTICES)
    middle = (np.min(frame, axis=0) + np.max(frame, axis=0)) / 2
    radius = np.max(np.linalg.norm(frame - middle, axis=1))
    wide = len(kept) > 2**16
    return {
        "positions": _packed((frame - middle)[kept] / radius * SHORT, "<i2"),
        "normals": _packed(vertex_normals(mesh, frame)[kept] * 127, "i1"),
        "relief": _packed(relief_of(mesh)[kept] * 255, "u1"),
        "faces": _packed(faces, "<u4" if wide else "<u2"),
        "wide": wide,
        "vertices": len(kept),
        "thinned": len(kept) < len(mesh.vertices),
        "size": [float(side) for side in size],
        "squares": CHECKS,
        "bright": LIGHT.tolist(),
        "dark": DARK.tolist(),
        # Height over width of the view: broad sheets need less of it, and some is left for turning.
        "tall": float(np.clip(1.2 * np.ptp(screen[:, 1]) / np.ptp(screen[:, 0]), 0.7, 1.0)),
        "limit": colour_limit(next(iter(ratios.values()))),
        "maps": [
            {
                "name": name,
                "label": labels[name],
                "uv": _packed(uv[kept] / size * (2**16 - 1), "<u2"),
                "ratio": _packed(ratios[name][kept] / RATIO_UNIT, "<i2"),
            }
            for name, uv in maps.items()
        ],
    }


def star_ratios(mesh: Mesh, uv: np.ndarray) -> np.ndarray:
    """`log_area_ratio` of the faces around each vertex."""
    flat = np.abs(star_sums(mesh, flat_areas(uv, mesh.faces)))
    return log_area_ratio(flat, star_sums(mesh, mesh.areas))


def thinned(mesh: Mesh, square: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the vertices to keep, at most `most`, and the faces between them.

    One vertex stays for each cell of a grid on the unit square, where `square` has its flat
    coordinates: cells of a flat map join no two sides of a fold, as cells in space would. The map
    after the transport is used, since it shares the square out by area.
    """
    count = len(mesh.vertices)
    if count <= most:
        return np.arange(count), mesh.faces
    cells = int(np.sqrt(most))
    column, row = np.minimum((square * cells).astype(np.int64), cells - 1).T
    _, kept, group = np.unique(column * cells + row, return_index=True, return_inverse=True)
    faces = group.reshape(-1)[mesh.faces]
    whole = np.all(faces != np.roll(faces, 1, axis=1), axis=1)
    _, first = np.unique(np.sort(faces[whole], axis=1), axis=0, return_index=True)
    return kept, faces[whole][first]


def _packed(values: np.ndarray, kind: str) -> str:
    limits = np.iinfo(kind)
    whole = np.clip(np.rint(values), limits.min, limits.max).astype(kind)
    return base64.b64encode(whole.tobytes()).decode("ascii")
