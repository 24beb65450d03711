"""Figures of an answer: exact, computed and error where an exact solution is known, else computed
and residual.

Figures are made without pyplot: nothing opens, and no global state is touched.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import BoundaryNorm, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from cordes.runtime.files import check_writable

if TYPE_CHECKING:
    from cordes.solutions.kinds import PolicySolution
    from cordes.solutions.solution import Solution

RESOLUTION = 160
LINE_RESOLUTION = 1000
# Colours of a logarithmic scale span at least two decades, so that its bar has numbers, and at most
# six.
DECADES = (2, 6)
PANEL_WIDTH = 3.6
# Finite control sets up to this size are drawn with one colour for each control.
CATEGORIES = 12


class Panel(NamedTuple):
    """A title, a function of points (n, d) -> (n,), and whether its size is shown on a logarithmic
    scale. Panels that are not `shared` have colours of their own; with `categories` the values are
    the numbers of these names."""

    title: str
    values: Callable[[np.ndarray], np.ndarray]
    logarithmic: bool
    shared: bool = True
    categories: tuple[str, ...] = ()


class PlaneSlice(NamedTuple):
    """Cell centres of a plane grid, shape (n, n, d), which of them lie in the domain, the cell
    edges and the outline of the domain."""

    points: np.ndarray
    inside: np.ndarray
    edges: tuple[np.ndarray, np.ndarray]
    outline: np.ndarray


def plot_solution(solution: "Solution", path: str | Path | None = None) -> Figure:
    """One row of panels in two dimensions; lines in one; slices through the centre in three (all
    coordinate planes) and more (the first two).

    The figure is saved if `path` is given; checked: that it can be written, before anything is
    drawn.
    """
    return draw_panels(
        solution.problem.domain, _panels(solution), lambda: _headline(solution), path
    )


def draw_panels(
    domain: Any, panels: list[Panel], headline: Callable[[], str], path: str | Path | None
) -> Figure:
    """The figure of any panels over a domain."""
    if path is not None:
        path = check_writable(path)
    figure = (_lines if domain.dimension == 1 else _maps)(domain, panels, headline())
    FigureCanvasAgg(figure)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _panels(solution: "Solution") -> list[Panel]:
    exact = solution.problem.exact
    computed = Panel("computed", solution, False)
    if exact is None:
        return [computed, Panel("|residual|", solution.residual, True)]
    truth = jax.jit(jax.vmap(exact))
    return [
        Panel("exact", lambda points: np.asarray(truth(points)), False),
        computed,
        Panel("|error|", lambda points: solution(points) - np.asarray(truth(points)), True),
    ]


def plot_policy(solution: "PolicySolution", path: str | Path | None = None) -> Figure:
    """Which control is best where: one map for a finite set of up to CATEGORIES controls, else one
    for each component of the control."""
    controls = solution.problem.controls
    if len(controls) <= CATEGORIES and solution.problem.maximiser is None:
        flat = controls.reshape(len(controls), -1)

        def number(points: np.ndarray) -> np.ndarray:
            chosen = solution.policy(points).reshape(len(points), 1, -1)
            return np.argmin(np.sum((chosen - flat) ** 2, axis=2), axis=1).astype(float)

        names = tuple(
            "(" + ", ".join(f"{value:.3g}" for value in a) + ")" if len(a) > 1 else f"{a[0]:.3g}"
            for a in flat
        )
        panels = [Panel("best control", number, False, shared=False, categories=names)]
    else:
        size = int(np.prod(controls.shape[1:]))

        def component(i: int) -> Callable[[np.ndarray], np.ndarray]:
            return lambda points: solution.policy(points).reshape(len(points), -1)[:, i]

        panels = [
            Panel(
                f"best control, $a_{{{i + 1}}}$" if size > 1 else "best control",
                component(i),
                False,
                shared=False,
            )
            for i in range(size)
        ]
    name, domain = solution.problem.name, solution.problem.domain
    return draw_panels(domain, panels, lambda: " — ".join([name, *where_cut(domain)]), path)


def _headline(solution: "Solution") -> str:
    """The problem, where it is cut, and the numbers for the whole domain."""
    name, domain, error = solution.problem.name, solution.problem.domain, solution.error()
    parts = [name, *where_cut(domain)]
    parts.append(
        f"l2 error {error.l2:.1e}, maximum {error.linf:.1e}"
        if error
        else f"scaled residual {solution.residual_rms:.1e} (root mean square)"
    )
    return " — ".join(parts)


def where_cut(domain: Any) -> list[str]:
    """The words for slices, in three and more dimensions."""
    if domain.dimension < 3:
        return []
    center = ", ".join(f"{value:.3g}" for value in domain.center)
    return [f"{'slices' if domain.dimension == 3 else 'slice'} through the centre ({center})"]


def _maps(domain: Any, panels: list[Panel], headline: str) -> Figure:
    """Coloured maps, one row for each plane."""
    planes = [(0, 1), (0, 2), (1, 2)] if domain.dimension == 3 else [(0, 1)]
    lower, upper = domain.bounding_box
    heights = [_panel_height(upper - lower, plane) for plane in planes]
    figure = Figure(
        figsize=((PANEL_WIDTH + 1.2) * len(panels), sum(heights) + 0.6 * len(planes) + 0.4),
        layout=ConstrainedLayoutEngine(w_pad=0.1),
    )
    # A line of the headline is no wider than the panels below it, of which there may be one.
    columns = 20 * len(panels) + 22
    figure.suptitle(
        "\n".join(
            textwrap.fill(line, columns, break_long_words=False) for line in headline.splitlines()
        )
    )
    grid = figure.subplots(len(planes), len(panels), squeeze=False, height_ratios=heights)
    for plane, row in zip(planes, grid, strict=True):
        draw_row(figure, row, panels, slice_of(domain, plane), plane)
    return figure


def _panel_height(size: np.ndarray, plane: tuple[int, int]) -> float:
    return float(
        np.clip(PANEL_WIDTH * size[plane[1]] / size[plane[0]], 0.25 * PANEL_WIDTH, 2 * PANEL_WIDTH)
    )


def slice_of(domain: Any, plane: tuple[int, int]) -> PlaneSlice:
    """The plane of two coordinates through the centre."""
    lower, upper = domain.bounding_box
    i, j = plane
    edges = (
        np.linspace(lower[i], upper[i], RESOLUTION + 1),
        np.linspace(lower[j], upper[j], RESOLUTION + 1),
    )
    middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    points = np.empty((RESOLUTION, RESOLUTION, domain.dimension))
    # A hair off the centre: interfaces often run through it, and on them a coefficient that jumps
    # has neither of its values.
    points[:] = domain.center + 1e-6 * (upper - lower)
    points[..., i], points[..., j] = np.meshgrid(*middles, indexing="ij")
    return PlaneSlice(points, domain.contains(points), edges, outline_of(domain, plane))


def outline_of(domain: Any, plane: tuple[int, int]) -> np.ndarray:
    """A closed polyline around the part of the plane through the centre that lies in the domain,
    shape (n, 2)."""
    if domain.vertices is not None:
        return np.concatenate([domain.vertices, domain.vertices[:1]])
    center = np.asarray(domain.center)
    lower, upper = domain.bounding_box
    # The directions of the corners of the bounding box make the outline of a box exact.
    toward = [
        (x - center[plane[0]], y - center[plane[1]])
        for x in (lower[plane[0]], upper[plane[0]])
        for y in (lower[plane[1]], upper[plane[1]])
    ]
    angles = np.sort(
        np.concatenate(
            [np.linspace(0, 2 * np.pi, 721), [np.arctan2(y, x) % (2 * np.pi) for x, y in toward]]
        )
    )
    directions = np.zeros((len(angles), domain.dimension))
    directions[:, plane[0]], directions[:, plane[1]] = np.cos(angles), np.sin(angles)
    return np.asarray(domain.boundary_at(directions))[:, list(plane)]


def draw_row(
    figure: Figure, row: np.ndarray, panels: list[Panel], part: PlaneSlice, plane: tuple[int, int]
) -> None:
    """Coloured maps of all panels on one slice, each in its axes and with its colour bar."""
    images = []
    for panel in panels:
        image = np.full(part.inside.shape, np.nan)
        image[part.inside] = panel.values(part.points[part.inside])
        images.append(np.abs(image) if panel.logarithmic else image)
    # The first and the second panel, exact and computed, share their colours.
    linear = [
        image
        for image, panel in zip(images, panels, strict=True)
        if not panel.logarithmic and panel.shared
    ]
    shared = linear_scale(np.stack(linear)) if linear else None
    for axes, panel, image in zip(row, panels, images, strict=True):
        norm, colours = _colours(panel, image, shared)
        mesh = axes.pcolormesh(*part.edges, image.T, norm=norm, cmap=colours, rasterized=True)
        axes.plot(*part.outline.T, color="black", linewidth=0.8)
        axes.set(
            title=panel.title, xlabel=f"$x_{{{plane[0] + 1}}}$", ylabel=f"$x_{{{plane[1] + 1}}}$"
        )
        _frame(axes, part.edges)
        bar = figure.colorbar(mesh, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)))
        if panel.categories:
            bar.set_ticks(list(range(len(panel.categories))), labels=list(panel.categories))


def _colours(
    panel: Panel, image: np.ndarray, shared: Normalize | None
) -> tuple[Normalize | None, Any]:
    if panel.categories:
        count = len(panel.categories)
        return BoundaryNorm(np.arange(count + 1) - 0.5, count), colormaps[
            "tab10" if count <= 10 else "tab20"
        ].resampled(count)
    if panel.logarithmic:
        return logarithmic_scale(image), "magma"
    return (shared, "viridis") if panel.shared else (linear_scale(image), "viridis")


def _frame(axes: Axes, edges: tuple[np.ndarray, np.ndarray]) -> None:
    """Equal lengths on both axes, unless the domain is so long and thin that nothing would be
    seen."""
    widths = [float(edge[-1] - edge[0]) for edge in edges]
    axes.set_aspect("equal" if 0.25 <= widths[1] / widths[0] <= 2 else "auto")
    axes.set_xlim(edges[0][0] - 0.02 * widths[0], edges[0][-1] + 0.02 * widths[0])
    axes.set_ylim(edges[1][0] - 0.02 * widths[1], edges[1][-1] + 0.02 * widths[1])


def linear_scale(values: np.ndarray) -> Normalize:
    """From the smallest finite value to the largest."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return Normalize(low, high) if high > low else Normalize(low - 0.5, high + 0.5)


def logarithmic_scale(values: np.ndarray) -> Normalize:
    """From the second percentile to the maximum; linear where everything is zero."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return Normalize(0.0, 1.0)
    top = float(positive.max())
    bottom = float(
        np.clip(np.percentile(positive, 2), top * 10.0 ** -DECADES[1], top * 10.0 ** -DECADES[0])
    )
    return LogNorm(bottom, top, clip=True) if bottom > 0 else Normalize(0.0, top)


def _lines(domain: Any, panels: list[Panel], headline: str) -> Figure:
    """Graphs over an interval: the functions, then the size of what is wrong."""
    lower, upper = domain.bounding_box
    edges = np.linspace(lower[0], upper[0], LINE_RESOLUTION + 1)
    x = (edges[1:] + edges[:-1]) / 2
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    figure.suptitle(headline)
    left, right = figure.subplots(1, 2)
    for panel in panels:
        values = panel.values(x[:, None])
        if panel.logarithmic:
            size = np.abs(values)
            right.plot(
                x, np.where(size > 0, size, np.nan) if np.any(size > 0) else size, color="tab:red"
            )
            right.set(
                title=panel.title, xlabel="$x_1$", yscale="log" if np.any(size > 0) else "linear"
            )
        else:
            # The exact curve is dashed and lies on top, so that both are seen where they agree.
            style = (
                {"linestyle": "--", "color": "black", "zorder": 3}
                if panel.title == "exact"
                else {"color": "tab:orange", "linewidth": 2.5}
            )
            left.plot(x, values, label=panel.title, **style)
    shown = [panel.title for panel in panels if not panel.logarithmic]
    left.set(title="u" if "computed" in shown else ", ".join(shown), xlabel="$x_1$")
    if "computed" in shown:
        left.legend()
    return figure
