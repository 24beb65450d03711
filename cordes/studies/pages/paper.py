"""The figures of the paper: exact, computed and errors side by side; the ellipsoid cut open; curves
against a classical solution; grids before and after a map.

Nothing is solved here. Answers come as functions with a label and their measured errors, and
figures go back, to be saved with `save_figure`.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from PIL import Image

from cordes.domains import Ellipsoid
from cordes.reports.plots import (
    Panel,
    draw_panels,
    draw_row,
    grid_lines,
    linear_scale,
    logarithmic_scale,
    slice_of,
)
from cordes.runtime.files import write_file
from cordes.solutions.errors import Error
from cordes.surfaces.pages.plots import show_picture

# Dots per inch, and the largest file in bytes: errors at rounding level and folded surfaces are
# noise to PNG, which it cannot press.
DPI, LARGEST_FILE, ATTEMPTS = 120, 390_000, 5
# Inches of one panel with its colour bar.
PANEL_WIDTH = 3.5
# Lines of the grids that a map deforms, in each direction, and points along each.
GRID_LINES, POINTS_PER_LINE = 33, 300
CURVE_POINTS = 801
# The cutaway: where the viewer stands (every coordinate positive, so that the missing octant is
# seen), and pixels along the longer side.
VIEWER = np.array([1.0, 1.35, 0.85])
PIXELS = 700
# The corner of the cut, in semi-axes from the centre: on planes through the centre an answer may be
# far better than elsewhere, or far simpler.
CORNER = -0.2
# Where the light comes from, and how much of it the curved surface shows: the flat faces have the
# plain colours of the bar.
LIGHT, GLOSS = np.array([0.35, 0.5, 0.8]), 0.6
# Curves of the answers; the last one always has the last colour.
COLOURS = ("tab:green", "tab:orange", "tab:blue")

Values = Callable[[np.ndarray], np.ndarray]


class Contender(NamedTuple):
    """A name, a function of points (n, d) -> (n,) or, for maps, (n, d), and its error."""

    label: str
    values: Values
    error: Error

    @property
    def numbers(self) -> str:
        return f"l2 {self.error.l2:.1e}, max {self.error.linf:.1e}"


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG of limited size: a palette of 256 colours where it would be too large,
    then fewer dots."""
    content, dpi = _png(figure, DPI), float(DPI)
    for _ in range(ATTEMPTS):
        if len(content) <= LARGEST_FILE:
            break
        content = _reduced(_png(figure, dpi))
        # The size goes with the number of pixels, and a little slower.
        dpi *= min(1.0, 0.97 * (LARGEST_FILE / len(content)) ** 0.5)
    return write_file(path, content)


def _png(figure: Figure, dpi: float) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=dpi, format="png")
    return buffer.getvalue()


def _reduced(png: bytes) -> bytes:
    reduced, plain = io.BytesIO(), Image.Dither.NONE
    with Image.open(io.BytesIO(png)) as picture:
        colours = picture.convert("RGB")
        fewer = colours.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=plain)
        fewer.save(reduced, format="png", optimize=True)
    return reduced.getvalue()


def resized(figure: Figure, width: float) -> Figure:
    """The figure with another width in inches and the same shape; letters keep their size."""
    before, height = figure.get_size_inches()
    figure.set_size_inches(width, height * width / before)
    return figure


def plot_comparison(
    domain: Any, exact: Values, answers: Sequence[Contender], headline: str
) -> Figure:
    """The exact solution, the first answer, and the size of the error of every answer on its own
    logarithmic scale."""
    panels = [Panel("exact", exact, False), Panel(answers[0].label, answers[0].values, False)]
    panels += [_error_panel(answer, exact) for answer in answers]
    return resized(draw_panels(domain, panels, lambda: headline, None), PANEL_WIDTH * len(panels))


def _error_panel(answer: Contender, truth: Values, name: str = "|error| of {}") -> Panel:
    def size(points: np.ndarray) -> np.ndarray:
        difference = answer.values(points) - truth(points)
        return np.linalg.norm(difference, axis=1) if difference.ndim == 2 else difference

    return Panel(f"{name.format(answer.label)}\n{answer.numbers}", size, True)


def plot_deformed_grid(
    domain: Any,
    densities: tuple[Values, Values],
    exact: Values,
    answers: Sequence[Contender],
    headline: str,
) -> Figure:
    """A grid over the source density, its image under the map of the last answer over the target
    density, and the error of every map. The target is the domain itself, a rectangle."""
    titles = ("source density, uniform grid", f"target density, grid moved\nby {answers[-1].label}")
    panels = [
        Panel(title, density, False, shared=False)
        for title, density in zip(titles, densities, strict=True)
    ]
    panels += [_error_panel(answer, exact, "|map error| of {}") for answer in answers]
    figure = draw_panels(domain, panels, lambda: headline, None)
    lines = grid_lines(domain, GRID_LINES, POINTS_PER_LINE)
    moved = [answers[-1].values(line) for line in lines]
    for axes, shown in zip(figure.axes[:2], (lines, moved), strict=True):
        axes.add_collection(LineCollection(shown, colors="white", linewidths=0.5, alpha=0.8))
    return resized(figure, PANEL_WIDTH * len(panels))


def plot_against_reference(
    domain: Any, reference: Contender, answers: Sequence[Contender], headline: str
) -> Figure:
    """Where no exact solution is known: the last answer, how far every answer is from the
    reference, and a cross-section through the centre with all of them.

    The error of an answer is its difference to the reference; that of the reference is its own
    estimate of the largest error.
    """
    panels = [Panel(answers[-1].label, answers[-1].values, False)]
    panels += [
        _error_panel(answer, reference.values, f"|{{}} − {reference.label}|") for answer in answers
    ]
    columns, widths = len(panels) + 1, [1.0] * len(panels) + [1.15]
    figure = _figure(PANEL_WIDTH * columns + 0.6, 3.9, headline)
    grid = figure.add_gridspec(2, columns, width_ratios=widths, height_ratios=(3, 2))
    maps = np.array([figure.add_subplot(grid[:, k]) for k in range(len(panels))])
    draw_row(figure, maps, panels, slice_of(domain, (0, 1)))
    above = figure.add_subplot(grid[0, -1])
    _cross_section(above, figure.add_subplot(grid[1, -1], sharex=above), domain, reference, answers)
    return figure


def _figure(width: float, height: float, headline: str) -> Figure:
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1))
    FigureCanvasAgg(figure)
    figure.suptitle(headline)
    return figure


def _cross_section(
    above: Axes, below: Axes, domain: Any, reference: Contender, answers: Sequence[Contender]
) -> None:
    """Curves over x1 at the middle of x2, and below their differences to the reference."""
    lower, upper = domain.bounding_box
    middle = float(domain.center[1])
    points = np.full((CURVE_POINTS, 2), middle)
    x = points[:, 0] = np.linspace(lower[0], upper[0], CURVE_POINTS)
    truth, own = reference.values(points), reference.error.linf
    typical, largest = [own], [own]
    for answer, colour in zip(answers, COLOURS[-len(answers) :], strict=True):
        values = answer.values(points)
        above.plot(x, values, color=colour, linewidth=2.5, label=answer.label)
        size = np.abs(values - truth)
        below.semilogy(x, np.where(size > 0, size, np.nan), color=colour, linewidth=1.0)
        typical.append(float(np.median(size)))
        largest.append(float(np.max(size)))
    # Dashed and on top, so that all are seen where they agree.
    above.plot(x, truth, color="black", linestyle="--", linewidth=1.2, label=reference.label)
    above.set_title(f"cross-section $x_2$ = {middle:g}")
    above.tick_params(labelbottom=False)
    below.axhline(own, color="black", linestyle=":", linewidth=1.0)
    words, place = f"{reference.label}'s own estimate", below.get_yaxis_transform()
    below.text(0.5, 1.4 * own, words, ha="center", fontsize=7, transform=place)
    above.legend(fontsize=8, loc="upper center")
    # At the ends all agree, and in a few points by chance: the scale is that of the rest.
    scale = max(0.02 * min(typical), 1e-18), 10 * max(largest)
    below.set(xlabel="$x_1$", ylabel="|difference|", ylim=scale)
    for axes in (above, below):
        axes.grid(alpha=0.3)


def plot_cutaway(
    domain: Ellipsoid, answers: Sequence[Contender], exact: Values, headline: str
) -> Figure:
    """An ellipsoid in three dimensions without the octant beyond a point near its centre: the first
    answer, and the size of the error of every answer.

    The picture is made ray by ray, so that no face is ever drawn over one that is nearer to the
    viewer.
    """
    view = _look(domain)
    panels = [Panel(answers[0].label, answers[0].values, False)]
    panels += [_error_panel(answer, exact) for answer in answers]
    left, right, bottom, top = view.extent
    width = 1.25 * PANEL_WIDTH
    height = width * 0.85 * (top - bottom) / (right - left) + 0.6
    figure = _figure(width * len(panels), height, headline)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        values = panel.values(view.points)
        if panel.logarithmic:
            values = np.abs(values)
        # The surface, where boundary values may be exact and errors zero, has no say in the colours
        # of errors.
        norm = logarithmic_scale(values[view.flat]) if panel.logarithmic else linear_scale(values)
        colours = ScalarMappable(norm, "magma" if panel.logarithmic else "viridis")
        _show(axes, view, colours.to_rgba(np.clip(values, norm.vmin, norm.vmax))[:, :3])
        _draw_edges(axes, domain, view)
        axes.set_title(panel.title, pad=10)
        figure.colorbar(colours, cax=axes.inset_axes((1.02, 0.1, 0.045, 0.8)))
    return figure


def cut_corner(domain: Ellipsoid) -> np.ndarray:
    """The point beyond which, in all coordinates, the octant is missing."""
    return domain.center + CORNER * np.linalg.norm(domain.matrix, axis=1)


class View(NamedTuple):
    """What is seen of a body: the filled pixels, their points (n, 3), which of these lie on the
    flat faces, and the brightness of the others. `axes` holds the directions right, up and toward
    the viewer as rows; `extent` is left, right, bottom, top."""

    shape: tuple[int, int]
    extent: tuple[float, float, float, float]
    axes: np.ndarray
    filled: np.ndarray
    points: np.ndarray
    flat: np.ndarray
    light: np.ndarray


def _look(domain: Ellipsoid) -> View:
    """Parallel rays toward the viewer. Each meets the ellipsoid first at the larger root of a
    quadratic equation; where this point belongs to the missing octant the ray goes on to the first
    of the planes of the cut, as long as it is in the ellipsoid."""
    front = VIEWER / np.linalg.norm(VIEWER)
    right = np.cross([0.0, 0.0, 1.0], front)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(front, right), front])
    half = np.linalg.norm(axes[:2] @ domain.matrix, axis=1)
    shape = np.ceil(PIXELS * half / np.max(half)).astype(int)
    across, along = ((2 * np.arange(n) + 1) / n - 1 for n in shape)
    pixels = np.meshgrid(across * half[0], along * half[1], indexing="xy")
    screen = np.stack(pixels, axis=-1).reshape(-1, 2) @ axes[:2]
    # In the coordinates of the unit ball: |start + t direction|² = 1.
    inverse = np.linalg.inv(domain.matrix)
    start, direction = screen @ inverse.T, inverse @ front
    slope, square = start @ direction, direction @ direction
    discriminant = slope**2 - square * (np.sum(start**2, axis=1) - 1)
    filled = np.flatnonzero(discriminant > 0)
    root = np.sqrt(discriminant[filled])
    offset = screen[filled] + ((root - slope[filled]) / square)[:, None] * front
    beyond = offset - cut_corner(domain) + domain.center
    flat = np.all(beyond > 0, axis=1)
    depth = np.where(flat, np.min(beyond / front, axis=1), 0.0)
    normals = offset @ inverse.T @ inverse
    lengths = np.linalg.norm(normals, axis=1) * np.linalg.norm(LIGHT)
    light = np.clip(normals @ LIGHT / lengths, 0, 1)
    seen = depth <= 2 * root / square
    points = domain.center + offset - depth[:, None] * front
    extent = (-half[0], half[0], -half[1], half[1])
    parts = (part[seen] for part in (filled, points, flat, light))
    return View((int(shape[1]), int(shape[0])), extent, axes, *parts)


def _show(axes: Axes, view: View, colours: np.ndarray) -> None:
    gloss = np.where(view.flat, 0.0, GLOSS * view.light**2)[:, None]
    picture = np.ones((view.shape[0] * view.shape[1], 3))
    picture[view.filled] = colours + (1 - colours) * gloss
    show_picture(axes, picture.reshape(*view.shape, 3), view.extent)


def _draw_edges(axes: Axes, domain: Ellipsoid, view: View) -> None:
    """The outline, the edges of the cut, and the directions of the coordinates."""
    basis = np.linalg.svd(np.linalg.solve(domain.matrix, view.axes[2])[None])[2][1:]
    angles = np.linspace(0, 2 * np.pi, 361)[:, None]
    curves = [(np.cos(angles) * basis[0] + np.sin(angles) * basis[1]) @ domain.matrix.T]
    unit, corner = np.eye(3), cut_corner(domain) - domain.center
    tips = _surface_from(domain, corner, unit)
    for i in range(3):
        quarter = angles[:91]
        around = np.cos(quarter) * unit[i] + np.sin(quarter) * unit[(i + 1) % 3]
        curves += [_surface_from(domain, corner, around), np.stack([corner, tips[i]])]
    flat = [curve @ view.axes[:2].T for curve in curves]
    axes.add_collection(LineCollection(flat, colors="black", linewidths=0.7))
    # The shadow of the ellipsoid is where pᵀ(BBᵀ)⁻¹p ≤ 1; the arrows end outside it, where their
    # labels are read.
    shadow = view.axes[:2] @ domain.matrix
    look: dict[str, Any] = {
        "arrowstyle": "->",
        "mutation_scale": 10,
        "linewidth": 0.9,
        "shrinkA": 0,
        "shrinkB": 0,
        "path_effects": [withStroke(linewidth=2.5, foreground="white")],
    }
    steps = np.linspace(0, 2, 201)[:, None] * np.linalg.norm(shadow, 2)
    for i, tip in enumerate(tips @ view.axes[:2].T):
        way = steps * (view.axes[:2] @ unit[i]) + tip
        lengths = np.sum(way * np.linalg.solve(shadow @ shadow.T, way.T).T, axis=1)
        end = way[np.argmax(lengths > 1.3)]
        axes.add_patch(FancyArrowPatch(tuple(tip), tuple(end), **look))
        side = "center" if abs(end[0]) < abs(end[1]) else "left" if end[0] > 0 else "right"
        height = "bottom" if end[1] > 0 else "top"
        axes.text(end[0], end[1], f" $x_{i + 1}$ ", ha=side, va=height, fontsize=10)
    margin = 0.2 * np.min(np.abs(view.extent))
    axes.set_xlim(view.extent[0] - margin, view.extent[1] + margin)
    axes.set_ylim(view.extent[2] - 0.2 * margin, view.extent[3] + margin)


def _surface_from(domain: Ellipsoid, point: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Where rays from a point of the ellipsoid leave it; both are relative to its centre."""
    inverse = np.linalg.inv(domain.matrix)
    start, along = inverse @ point, directions @ inverse.T
    slope, square = along @ start, np.sum(along**2, axis=1)
    length = (np.sqrt(slope**2 + square * (1 - start @ start)) - slope) / square
    return point + length[:, None] * directions
