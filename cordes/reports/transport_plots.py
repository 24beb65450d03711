"""Figures of transport maps: a grid over the source with its density, and where the map takes
it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from cordes.runtime.files import check_writable

if TYPE_CHECKING:
    from cordes.solutions.transport import TransportSolution

LINES, POINTS_PER_LINE = 33, 400
RESOLUTION = 240


def plot_transport(solution: "TransportSolution", path: str | Path | None = None) -> Figure:
    """Source density and grid on the left; on the right the same grid after the map, over the
    target density."""
    if path is not None:
        path = check_writable(path)
    problem = solution.problem
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    lines = grid_lines(problem.domain, LINES, POINTS_PER_LINE)
    _density(figure, left, problem.domain, problem.source_density, "source density")
    left.add_collection(LineCollection(lines, colors="white", linewidths=0.5, alpha=0.8))
    _density(figure, right, problem.target_domain, problem.target_density, "target density")
    right.add_collection(
        LineCollection(
            [solution.map(line) for line in lines], colors="white", linewidths=0.5, alpha=0.8
        )
    )
    left.set_title("source, with a grid")
    right.set_title("target, with the image of the grid")
    error = solution.error()
    measured = (
        f"map error: l2 {error.l2:.1e}, maximum {error.linf:.1e}"
        if error
        else f"density error {solution.pushforward.rms:.1e} (root mean square)"
    )
    figure.suptitle(f"{problem.name} — {measured}")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _density(figure: Figure, axes: Any, domain: Any, density: Any, label: str) -> None:
    lower, upper = domain.bounding_box
    edges = [np.linspace(a, b, RESOLUTION + 1) for a, b in zip(lower, upper, strict=True)]
    middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    points = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1)
    inside = domain.contains(points)
    image = np.full(inside.shape, np.nan)
    image[inside] = density(points[inside])
    spread = float(np.nanmax(image) - np.nanmin(image))
    flat = spread <= 1e-9 * float(np.nanmax(image))
    limits = {"vmin": 0.0, "vmax": 1.5 * float(np.nanmax(image))} if flat else {}
    mesh = axes.pcolormesh(*edges, image.T, cmap="viridis", rasterized=True, **limits)
    axes.set_aspect("equal")
    axes.set(xlabel="$x_1$", ylabel="$x_2$")
    margin = 0.03 * (upper - lower)
    axes.set_xlim(lower[0] - margin[0], upper[0] + margin[0])
    axes.set_ylim(lower[1] - margin[1], upper[1] + margin[1])
    figure.colorbar(mesh, ax=axes, label=label, shrink=0.85)


def grid_lines(domain: Any, lines: int, points: int) -> list[np.ndarray]:
    """Vertical and horizontal lines, so many each with so many points, cut to the domain; each an
    array (n, 2)."""
    lower, upper = domain.bounding_box
    found = []
    for axis in (0, 1):
        along = np.linspace(lower[1 - axis], upper[1 - axis], points)
        for position in np.linspace(lower[axis], upper[axis], lines):
            line = np.empty((points, 2))
            line[:, axis], line[:, 1 - axis] = position, along
            inside = line[domain.contains(line, tolerance=1e-12)]
            if len(inside) > 1:
                found.append(inside)
    return found
