"""The figure of a surface laid flat: a checkerboard on the surface, the flat map, and the area
distortion, one row for each map; and what the turning view of a page needs: positions, normals,
flat coordinates and area ratios as whole numbers of two bytes at most, in base64.

The surface is drawn by its own small renderer (points of the faces, the nearest to the viewer
wins): the checkerboard is then sharp on coarse meshes too, and a hundred thousand faces take
seconds.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure

from cordes.reports.kit.pictures import saved
from cordes.runtime.files import check_writable
from cordes.surfaces.conformal import cotangent_laplacian, flat_areas, plane_cross
from cordes.surfaces.density import subdivision
from cordes.surfaces.distortion import log_area_ratio, measure, star_sums
from cordes.surfaces.mesh import Mesh, SurfaceError, face_normals
from cordes.surfaces.topology import Disk

# Pixels along the longer side of a picture, how far apart the points of a face are at most, in
# pixels, and how many are made at once.
PIXELS = 1000
SPACING = 0.75
BLOCK = 500_000
# Squares of the checkerboard along the longer side of the flat map, and their colours; the back of
# the surface is drawn darker.
CHECKS = 16
LIGHT, DARK = np.array(to_rgb("#f4efe6")), np.array(to_rgb("#2c5f8a"))
BACK = 0.55
# A surface counts as a sheet if the area of its shadow is at least this share of its area.
SHEET = 0.5
# The cosine of the angle up to which a surface that is no sheet is seen along the z axis.
CUSTOM = 0.5
# More vertices than this are thinned out: the page stays below six megabytes, and the numbers of
# the vertices below 2¹⁶ need two bytes each.
MOST_VERTICES = 60_000
# Logarithms of area ratios are sent in thousandths.
RATIO_UNIT = 1e-3
SHORT = 2**15 - 1


def plot_surface(
    disk: Disk,
    maps: Mapping[str, np.ndarray],
    size: np.ndarray | None,
    path: str | Path | None = None,
    toward: np.ndarray | None = None,
    up: np.ndarray | None = None,
    title: str = "",
) -> Figure:
    """One row for each named flat map, of shape (n, 2), on the rectangle from (0, 0) to `size` or
    on the unit disk.

    `toward` is the direction from the surface to the viewer (by default where the surface as a
    whole looks), `up` what is up in the picture. All rows share the colours of the area distortion,
    log(flat area / area) with both normalised. Checked: shapes, and that the path can be written,
    before anything is drawn.
    """
    if path is not None:
        path = check_writable(path)
    if not maps:
        raise SurfaceError("There is no flat map to draw.")
    reports = {name: measure(disk, uv, size) for name, uv in maps.items()}
    ratios = {name: face_ratios(disk.mesh, uv) for name, uv in maps.items()}
    limit = colour_limit(next(iter(ratios.values())))
    screen, depth = project(disk.mesh, toward, up)
    normals = vertex_normals(disk.mesh, np.column_stack([screen, depth]))
    relief = relief_of(disk.mesh)
    surface = _rasterise(screen, depth, disk.mesh)
    lower, upper = -np.ones(2), np.ones(2)
    if size is not None:
        lower, upper = np.zeros(2), np.asarray(size)
    # The columns are as wide as what they show, all of one height.
    shapes = [_aspect(screen), *[_aspect(np.stack([lower, upper]))] * 2]
    height = 3.3
    extent = height * sum(shapes) + 1.6, (height + 0.35) * len(maps) + (0.5 if title else 0.1)
    figure = Figure(figsize=extent, layout="constrained")
    if title:
        figure.suptitle(title)
    grid = figure.subplots(len(maps), 3, squeeze=False, width_ratios=shapes)
    colours = ScalarMappable(Normalize(-limit, limit), "RdBu_r")
    light = _light(surface.interpolate(disk.mesh, normals))
    for row, (name, uv) in zip(grid, maps.items(), strict=True):
        report = reports[name]
        board = uv / np.max(upper - lower) * CHECKS
        flat = _rasterise(uv, np.zeros(len(uv)), disk.mesh)
        shade = flat.interpolate(disk.mesh, relief[:, None])[:, 0]
        _show(row[0], surface, _checkerboard(surface.interpolate(disk.mesh, board), light))
        _show(row[1], flat, _checkerboard(flat.interpolate(disk.mesh, board), shade))
        _show(row[2], flat, colours.to_rgba(ratios[name][flat.faces])[:, :3])
        spread = f"SD {report.area_faces.deviation:.3f}, flipped {report.flipped}"
        row[0].set_title(f"{name}: checkerboard on the surface", fontsize=10)
        row[1].set_title(f"flat map, angle error {report.angle_mean:.1f}°", fontsize=10)
        row[2].set_title(f"log area ratio, {spread}", fontsize=10)
        figure.colorbar(colours, cax=row[2].inset_axes((1.04, 0.0, 0.04, 1.0)), extend="both")
    return saved(figure, path, 180)


def _aspect(points: np.ndarray) -> float:
    extent = np.max(points, axis=0) - np.min(points, axis=0)
    return float(np.clip(extent[0] / extent[1], 0.5, 2.5))


def face_ratios(mesh: Mesh, uv: np.ndarray) -> np.ndarray:
    """`log_area_ratio` of each face."""
    return log_area_ratio(np.abs(flat_areas(uv, mesh.faces)), mesh.areas)


def colour_limit(ratios: np.ndarray) -> float:
    """Where the colours of the area ratio end: the same for all maps, from the map before."""
    return max(float(np.percentile(np.abs(ratios), 98)), 0.1)


def project(
    mesh: Mesh, toward: np.ndarray | None, up: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Screen coordinates (n, 2) and the nearness to the viewer (n,)."""
    normals = face_normals(mesh.vertices[mesh.faces])
    centered = mesh.vertices - np.mean(mesh.vertices, axis=0)
    axes = np.linalg.svd(centered, full_matrices=False)[2]
    facing = np.sum(normals, axis=0)
    sheet = float(np.linalg.norm(facing) / np.sum(np.linalg.norm(normals, axis=1)))
    looks = facing if sheet > 1e-6 else axes[2]
    front = np.asarray(looks if toward is None else toward, dtype=np.float64)
    front = front / np.linalg.norm(front)
    # The coordinate axis nearest to the second longest direction: pictures are broad, and what
    # stands upright in the file does so here.
    stands = np.eye(3)[np.argmax(np.abs(axes[1]))]
    upright = np.asarray(stands if up is None else up, dtype=np.float64)
    if up is None and np.linalg.norm(np.cross(upright, front)) < 0.1:
        upright = np.eye(3)[np.argmin(np.abs(front))]
    if toward is None and up is None and sheet <= SHEET and front[2] >= CUSTOM:
        # Models look along z and stand upright in y by custom; this is followed if the surface does
        # look that way.
        front, upright = np.eye(3)[2], np.eye(3)[1]
    if toward is None and sheet > SHEET:
        # A sheet is seen from 35 degrees below its normal, because folds are not seen from straight
        # above; a head or a brain from the front.
        side = upright - front * (upright @ front)
        side = side / np.linalg.norm(side)
        front = np.cos(np.radians(35)) * front - np.sin(np.radians(35)) * side
    right = np.cross(upright, front)
    if np.linalg.norm(right) < 1e-9:
        raise SurfaceError(
            f"The directions toward {front.tolist()} and up {upright.tolist()} are parallel: "
            "give two different ones."
        )
    right = right / np.linalg.norm(right)
    return np.stack([centered @ right, centered @ np.cross(front, right)], axis=1), centered @ front


def vertex_normals(mesh: Mesh, position: np.ndarray) -> np.ndarray:
    """Unit normals at the vertices, from the faces around them with their areas as weights."""
    normals = face_normals(position[mesh.faces])
    vertex = np.stack([star_sums(mesh, normals[:, k]) for k in range(3)], axis=1)
    return vertex / np.maximum(np.linalg.norm(vertex, axis=1, keepdims=True), 1e-300)


def _light(normals: np.ndarray) -> np.ndarray:
    """Brightness for a light over the viewer's left shoulder; the back of the surface is darker."""
    front = np.where(normals[:, 2] >= 0, 1.0, -1.0)
    direction = np.array([-0.45, 0.55, 0.7]) / np.linalg.norm([-0.45, 0.55, 0.7])
    length = np.maximum(np.linalg.norm(normals, axis=1), 1e-300)
    seen = 0.45 + 0.55 * np.clip(front * (normals @ direction) / length, 0, 1)
    return seen * np.where(front < 0, BACK, 1.0)


def relief_of(mesh: Mesh) -> np.ndarray:
    """Brightness for the flat map, which has no light: folds inward are dark and ridges bright, by
    the mean curvature."""
    bent = (cotangent_laplacian(mesh) @ mesh.vertices) * vertex_normals(mesh, mesh.vertices)
    curvature = np.sum(bent, axis=1) / (star_sums(mesh, mesh.areas) / 3)
    # Averaged over the stars: the curvature of a single vertex shows the triangulation more than
    # the shape.
    counts = star_sums(mesh, np.ones(len(mesh.faces)))
    curvature = star_sums(mesh, np.mean(curvature[mesh.faces], axis=1)) / counts
    scale = np.percentile(np.abs(curvature), 80)
    return 0.76 + 0.24 * np.tanh(curvature / scale) if scale > 0 else np.ones(len(curvature))


def _checkerboard(board: np.ndarray, brightness: np.ndarray) -> np.ndarray:
    """Colours from positions on the board and the brightness."""
    dark = (np.floor(board[:, 0]) + np.floor(board[:, 1])) % 2 == 1
    return np.where(dark[:, None], DARK, LIGHT) * brightness[:, None]


class Raster(NamedTuple):
    """Which face is seen in each filled pixel, and where in it: barycentric coordinates. `extent`
    is left, right, bottom, top."""

    shape: tuple[int, int]
    extent: tuple[float, float, float, float]
    pixels: np.ndarray
    faces: np.ndarray
    weights: np.ndarray

    def interpolate(self, mesh: Mesh, values: np.ndarray) -> np.ndarray:
        """Values at the vertices, (n, c), in the filled pixels."""
        return np.einsum("pk,pkc->pc", self.weights, values[mesh.faces[self.faces]])


def _rasterise(plane: np.ndarray, depth: np.ndarray, mesh: Mesh) -> Raster:
    """Points of the faces, less than a pixel apart; the nearest to the viewer wins each pixel."""
    lower, upper = np.min(plane, axis=0), np.max(plane, axis=0)
    scale = PIXELS / np.max(upper - lower)
    size = np.maximum(np.ceil((upper - lower) * scale).astype(int), 1)
    nearest = np.full(size[0] * size[1], -np.inf)
    faces, weights = np.full(len(nearest), -1), np.zeros((len(nearest), 3))
    corner = (plane[mesh.faces] - lower) * scale
    extent = np.max(np.max(corner, axis=1) - np.min(corner, axis=1), axis=1)
    parts = np.ceil(np.maximum(extent / SPACING, 1)).astype(int)
    # Beyond 16 parts only powers of two to a quarter, so that there are few different subdivisions.
    step = 2 ** np.maximum(np.ceil(np.log2(parts)).astype(int) - 3, 0)
    parts = -(-parts // step) * step
    for count in np.unique(parts):
        inner = subdivision(int(count))
        members = np.flatnonzero(parts == count)
        for block in np.array_split(members, -(-len(members) * len(inner) // BLOCK)):
            first, second = (
                np.minimum((corner[block, :, k] @ inner.T).ravel().astype(np.int64), size[k] - 1)
                for k in (0, 1)
            )
            pixel = first * size[1] + second
            near = (depth[mesh.faces[block]] @ inner.T).ravel()
            np.maximum.at(nearest, pixel, near)
            seen = np.flatnonzero(near >= nearest[pixel])
            face, sample = np.divmod(seen, len(inner))
            faces[pixel[seen]], weights[pixel[seen]] = block[face], inner[sample]
    filled = np.flatnonzero(faces >= 0)
    faces, centers = faces[filled], np.stack(np.divmod(filled, size[1]), axis=1) + 0.5
    weights = _at_centers(corner[faces], centers, weights[filled])
    shape, extent = (int(size[0]), int(size[1])), (lower[0], upper[0], lower[1], upper[1])
    return Raster(shape, extent, filled, faces, weights)


def _at_centers(corner: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Barycentric coordinates of the centres of the pixels, which makes straight lines straight;
    kept as they are in faces seen from the edge."""
    a, b, c = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0], centers - corner[:, 0]
    area = plane_cross(a, b)
    safe = np.where(np.abs(area) > 1e-9, area, np.inf)
    second, third = plane_cross(c, b) / safe, plane_cross(a, c) / safe
    exact = np.stack([1 - second - third, second, third], axis=1)
    usable = np.isfinite(safe) & np.all(np.abs(exact - weights) < 1, axis=1)
    return np.where(usable[:, None], exact, weights)


def _show(axes: Axes, raster: Raster, colours: np.ndarray) -> None:
    image = np.ones((raster.shape[0] * raster.shape[1], 3))
    image[raster.pixels] = np.clip(colours, 0, 1)
    show_picture(axes, image.reshape(*raster.shape, 3).transpose(1, 0, 2), raster.extent)


def show_picture(axes: Axes, picture: np.ndarray, extent: tuple[Any, ...]) -> None:
    """A picture (rows, columns, 3) with its lowest row first, without axes around it."""
    look: dict[str, Any] = {"interpolation": "antialiased", "aspect": "equal"}
    axes.imshow(picture, origin="lower", extent=extent, **look)
    axes.set_axis_off()


# The turning view ---------------------------------------------------------------------------------


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
