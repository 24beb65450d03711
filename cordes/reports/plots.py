"""Figures of answers and certificates: exact, computed and error where an exact solution is known,
else computed and residual; policies; transport maps; bounds.

Figures are made without pyplot: nothing opens, and no global state is touched.
"""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from cordes.certificates.certificate import Certificate, Picture, directed
from cordes.domains.cylinder import Cylinder
from cordes.errors import FileError
from cordes.problems.controls.controlled import AbstractControlled
from cordes.problems.obstacle import Obstacle
from cordes.reports.kit.pictures import saved
from cordes.reports.kit.planes import (
    Cut,
    Plane,
    axis_names,
    linear_limits,
    logarithmic_limits,
    make_plane,
    planes_through,
)
from cordes.runtime.files import check_writable
from cordes.solutions.kinds import PolicySolution
from cordes.solutions.solution import Solution
from cordes.solutions.transport import TransportSolution

RESOLUTION, LINE_RESOLUTION, DENSITY_RESOLUTION = 160, 1000, 240
PANEL_WIDTH = 3.6
# Finite control sets up to this size are drawn with one colour for each control.
CATEGORIES = 12
# Lines of the grid that a transport map deforms, and points on each.
LINES, POINTS_PER_LINE = 33, 400


class Panel(NamedTuple):
    """A title, a function of points (n, d) -> (n,), and whether its size is shown on a logarithmic
    scale. Panels that are not `shared` have colours of their own; with `categories` the values are
    the numbers of these names. The edge of the set where `inside` holds is drawn as a line."""

    title: str
    values: Callable[[np.ndarray], np.ndarray]
    logarithmic: bool
    shared: bool = True
    categories: tuple[str, ...] = ()
    inside: Callable[[np.ndarray], np.ndarray] | None = None


def plot_solution(solution: Solution, path: str | Path | None = None) -> Figure:
    """One row of panels in two dimensions; lines in one; slices through the centre in three (all
    coordinate planes) and more (the first two).

    The figure is saved if `path` is given; checked: that it can be written, before anything is
    drawn.
    """
    problem = solution.problem
    # Where one stops, the free boundary belongs to the answer.
    stops = solution.stops_at if isinstance(problem, Obstacle) else None
    computed = Panel("computed", solution.values, False, inside=stops)
    panels = [computed, Panel("|residual|", solution.residual_at, True)]
    if problem.exact is not None:
        truth = jax.jit(jax.vmap(problem.exact))
        panels = [
            Panel("exact", lambda points: np.asarray(truth(points)), False),
            computed,
            Panel(
                "|error|", lambda points: solution.values(points) - np.asarray(truth(points)), True
            ),
        ]

    def headline() -> str:
        error = solution.error()
        measured = f"relative residual {solution.relative_residual:.1e} (root mean square)"
        if error:
            measured = f"l2 error {error.l2:.1e}, maximum {error.linf:.1e}"
        return " — ".join([problem.name, *where_cut(problem.domain), measured])

    return draw_panels(problem.domain, panels, headline, path)


def plot_certificate(
    certificate: Certificate, picture: Picture, path: str | Path | None = None
) -> Figure:
    """Where the residual lives, and the pointwise bound of |u - u_θ| where there is one."""
    panels = [Panel("|residual|", picture.residual, True)]
    if picture.bound is not None:
        panels.insert(0, Panel("bound of |error|", picture.bound, False))

    def headline() -> str:
        first = " — ".join([picture.problem.name, *where_cut(picture.problem.domain)])
        if certificate.rms is None:
            return f"{first}\nno bound"
        largest = ""
        if certificate.Linf is not None:
            largest = f", everywhere at most {directed(certificate.Linf, 2, up=True):.1e}"
        return (
            f"{first}\nerror at most {directed(certificate.rms, 2, up=True):.1e} (root mean "
            f"square){largest}; level: {certificate.level}"
        )

    return draw_panels(picture.problem.domain, panels, headline, path)


def plot_policy(solution: PolicySolution, path: str | Path | None = None) -> Figure:
    """Which control is best where: one map for few controls, else one for each component."""
    problem = solution.problem
    names = control_names(problem)
    if names:
        values = [lambda points: control_numbers(problem, solution.policy_at(points))]
    else:
        values = [
            lambda points, i=i: solution.policy_at(points).reshape(len(points), -1)[:, i]
            for i in range(int(np.prod(problem.controls.shape[1:])))
        ]
    panels = [
        Panel(
            f"best control, $a_{{{i + 1}}}$" if len(values) > 1 else "best control",
            each,
            False,
            shared=False,
            categories=names,
        )
        for i, each in enumerate(values)
    ]
    headline = " — ".join([problem.name, *where_cut(problem.domain)])
    return draw_panels(problem.domain, panels, lambda: headline, path)


def control_names(problem: AbstractControlled) -> tuple[str, ...]:
    """The values of the controls as names, where there are few and no others between them."""
    if len(problem.controls) > CATEGORIES or problem.maximiser is not None:
        return ()
    return tuple(
        "(" + ", ".join(f"{value:.3g}" for value in a) + ")" if len(a) > 1 else f"{a[0]:.3g}"
        for a in problem.controls.reshape(len(problem.controls), -1)
    )


def control_numbers(problem: AbstractControlled, chosen: np.ndarray) -> np.ndarray:
    """Which of the controls were chosen."""
    controls = problem.controls.reshape(len(problem.controls), -1)
    differences = chosen.reshape(len(chosen), 1, -1) - controls
    return np.argmin(np.sum(differences**2, axis=2), axis=1).astype(float)


def where_cut(domain: Any) -> list[str]:
    """The words for slices, in three and more dimensions."""
    if domain.dimension < 3 or isinstance(domain, Cylinder):
        return []
    center = ", ".join(f"{value:.3g}" for value in domain.center)
    return [f"{'slices' if domain.dimension == 3 else 'slice'} through the centre ({center})"]


# Panels -------------------------------------------------------------------------------------------


def draw_panels(
    domain: Any, panels: list[Panel], headline: Callable[[], str], path: str | Path | None
) -> Figure:
    """The figure of any panels over a domain."""
    draw = _lines if domain.dimension == 1 else _maps
    return _finished(lambda: draw(domain, panels, headline()), path)


def _finished(draw: Callable[[], Figure], path: str | Path | None) -> Figure:
    if path is not None:
        path = check_writable(path)
        formats = FigureCanvasAgg.get_supported_filetypes()
        if path.suffix and path.suffix[1:].lower() not in formats:
            known = ", ".join(sorted(formats))
            raise FileError(f"{path}: figures are not written as {path.suffix}. Known: {known}.")
    return saved(draw(), path, 150)


def _maps(domain: Any, panels: list[Panel], headline: str) -> Figure:
    """Coloured maps, one row for each plane."""
    planes = planes_through(domain)
    lower, upper = domain.bounding_box
    widths = np.ones(2) if axis_names(domain, (0, 1)) and domain.dimension == 2 else upper - lower
    ratios = [widths[cut.axes[1]] / widths[cut.axes[0]] for cut in planes]
    heights = [float(PANEL_WIDTH * np.clip(ratio, 0.25, 2)) for ratio in ratios]
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
        draw_row(figure, row, panels, slice_of(domain, plane))
    return figure


def slice_of(domain: Any, plane: Cut | tuple[int, int]) -> Plane:
    return make_plane(domain, plane, (RESOLUTION, RESOLUTION))


def draw_row(figure: Figure, row: np.ndarray, panels: list[Panel], plane: Plane) -> None:
    """Coloured maps of all panels on one slice, each in its axes and with its colour bar."""
    images = []
    for panel in panels:
        image = plane.spread(panel.values(plane.points[plane.inside]))
        images.append(np.abs(image) if panel.logarithmic else image)
    # The first and the second panel, exact and computed, share their colours.
    linear = [
        image
        for image, panel in zip(images, panels, strict=True)
        if not panel.logarithmic and panel.shared
    ]
    shared = linear_scale(np.stack(linear)) if linear else None
    first, second = plane.names or (f"$x_{{{k + 1}}}$" for k in plane.axes)
    for axes, panel, image in zip(row, panels, images, strict=True):
        norm, colours = _colours(panel, image, shared)
        mesh = axes.pcolormesh(*plane.edges, image.T, norm=norm, cmap=colours, rasterized=True)
        for line in plane.boundary:
            axes.plot(*line.T, color="black", linewidth=0.8)
        if panel.inside is not None:
            _draw_edge(axes, plane, panel.inside)
        title = f"{panel.title}, {plane.label}" if plane.label else panel.title
        axes.set(title=title, xlabel=first, ylabel=second)
        _frame(axes, plane, 0.02)
        bar = figure.colorbar(mesh, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)))
        if panel.categories:
            bar.set_ticks(list(range(len(panel.categories))), labels=list(panel.categories))


def _draw_edge(axes: Axes, plane: Plane, inside: Callable[[np.ndarray], np.ndarray]) -> None:
    shares = plane.spread(np.asarray(inside(plane.points[plane.inside]), float))
    if np.nanmin(shares) < np.nanmax(shares):
        middles = [(edges[1:] + edges[:-1]) / 2 for edges in plane.edges]
        axes.contour(*middles, shares.T, levels=[0.5], colors="white", linewidths=1.2)


def _colours(
    panel: Panel, image: np.ndarray, shared: Normalize | None
) -> tuple[Normalize | None, Any]:
    if panel.categories:
        count = len(panel.categories)
        names = colormaps["tab10" if count <= 10 else "tab20"]
        return BoundaryNorm(np.arange(count + 1) - 0.5, count), names.resampled(count)
    if panel.logarithmic:
        return logarithmic_scale(image), "magma"
    return (shared if panel.shared else linear_scale(image)), "viridis"


def _frame(axes: Axes, plane: Plane, margin: float) -> None:
    """Equal lengths on both axes, unless a long and thin domain would not be seen."""
    widths = plane.upper - plane.lower
    in_time = plane.names is not None and not plane.label
    square = 0.25 <= widths[1] / widths[0] <= 2 and not in_time
    axes.set_aspect("equal" if square else "auto")
    ends = zip(plane.lower - margin * widths, plane.upper + margin * widths, strict=True)
    axes.set(**dict(zip(("xlim", "ylim"), ends, strict=True)))


def linear_scale(values: np.ndarray) -> Normalize:
    """From the smallest finite value to the largest."""
    low, high = linear_limits(values, (0.0, 1.0))
    return Normalize(low, high) if high > low else Normalize(low - 0.5, high + 0.5)


def logarithmic_scale(values: np.ndarray) -> Normalize:
    """From the second percentile to the maximum; linear where everything is zero."""
    bottom, top = logarithmic_limits(values) or (0.0, 1.0)
    return LogNorm(bottom, top, clip=True) if bottom > 0 else Normalize(0.0, top)


def _lines(domain: Any, panels: list[Panel], headline: str) -> Figure:
    """Graphs over an interval: the functions, then the size of what is wrong."""
    lower, upper = domain.bounding_box
    edges = np.linspace(lower[0], upper[0], LINE_RESOLUTION + 1)
    x = (edges[1:] + edges[:-1]) / 2
    wrong = any(panel.logarithmic for panel in panels)
    figure = Figure(figsize=(10 if wrong else 5.6, 3.8), layout="constrained")
    figure.suptitle(headline)
    left, *others = figure.subplots(1, 2 if wrong else 1, squeeze=False)[0]
    right = others[0] if others else left
    for panel in panels:
        values = panel.values(x[:, None])
        if panel.logarithmic:
            size = np.abs(values)
            positive = bool(np.any(size > 0))
            right.plot(x, np.where(size > 0, size, np.nan) if positive else size, color="tab:red")
            right.set(title=panel.title, xlabel="$x_1$", yscale="log" if positive else "linear")
        else:
            # The exact curve is dashed and lies on top, so that both are seen where they agree.
            style: dict[str, Any] = {"color": "tab:orange", "linewidth": 2.5}
            if panel.title == "exact":
                style = {"linestyle": "--", "color": "black", "zorder": 3}
            left.plot(x, values, label=panel.title, **style)
            if panel.categories:
                left.set_yticks(range(len(panel.categories)), panel.categories)
                left.set_ylim(-0.5, len(panel.categories) - 0.5)
    shown = [panel.title for panel in panels if not panel.logarithmic]
    left.set(title="u" if "computed" in shown else ", ".join(shown), xlabel="$x_1$")
    if "computed" in shown:
        left.legend()
    return figure


# Transport ----------------------------------------------------------------------------------------


def plot_transport(solution: TransportSolution, path: str | Path | None = None) -> Figure:
    """Source density and grid on the left; target density and the grid's image on the right."""
    return _finished(lambda: _transport(solution), path)


def _transport(solution: TransportSolution) -> Figure:
    problem = solution.problem
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    lines = grid_lines(problem.domain, LINES, POINTS_PER_LINE)
    _density(figure, left, problem.domain, problem.source_density, "source density")
    _density(figure, right, problem.target_domain, problem.target_density, "target density")
    for axes, drawn in ((left, lines), (right, [solution.map(line) for line in lines])):
        axes.add_collection(LineCollection(drawn, colors="white", linewidths=0.5, alpha=0.8))
    right.set(xlabel="$y_1$", ylabel="$y_2$")
    left.set_title("source, with a grid")
    right.set_title("target, with the image of the grid")
    error = solution.error()
    measured = (
        f"map error: l2 {error.l2:.1e}, maximum {error.linf:.1e}"
        if error
        else f"density error {solution.pushforward.rms:.1e} (root mean square)"
    )
    figure.suptitle(f"{problem.name} — {measured}")
    return figure


def _density(figure: Figure, axes: Axes, domain: Any, density: Any, label: str) -> None:
    plane = make_plane(domain, (0, 1), (DENSITY_RESOLUTION, DENSITY_RESOLUTION))
    image = plane.spread(density(plane.points[plane.inside]))
    highest = float(np.nanmax(image))
    flat = highest - float(np.nanmin(image)) <= 1e-9 * highest
    limits: dict[str, Any] = {"vmin": 0.0, "vmax": 1.5 * highest} if flat else {}
    mesh = axes.pcolormesh(*plane.edges, image.T, cmap="viridis", rasterized=True, **limits)
    axes.set(xlabel="$x_1$", ylabel="$x_2$")
    _frame(axes, plane, 0.03)
    axes.set_aspect("equal")
    figure.colorbar(mesh, ax=axes, label=label, shrink=0.85)


def grid_lines(domain: Any, lines: int, points: int) -> list[np.ndarray]:
    """Vertical and horizontal lines cut to the domain, so many of so many points: (n, 2) each."""
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
