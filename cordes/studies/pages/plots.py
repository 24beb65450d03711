"""Figures of a study: error against epochs, the paper's diagnostics along the run, speed-up against
the spread of the multiplier; and what the multiplier changes, the loss around a network and the
spectrum of its Gauss–Newton matrix."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from cordes.errors import OptionError
from cordes.reports.kit.pictures import saved
from cordes.runtime.files import check_writable

if TYPE_CHECKING:
    from cordes.studies.conditioning import Spectrum
    from cordes.studies.landscape import Landscape
    from cordes.studies.runs import Run

COLOURS = {"C-PINN": "#1f6fb4", "PINN": "#c8501e", "PINN-Newton": "#3a8f4d"}
DPI = 130
# Curves are drawn through medians of so many records at most: single records of a run of 40,000
# epochs are a grey band.
SMOOTH = 200
# Of the landscape: inches of one column, and levels of its map; of the spectra: decades, and the
# colours of the lines.
COLUMN_WIDTH, LEVELS, DECADES = 4.2, 14, 16
LINES = ("tab:orange", "tab:blue", "black", "tab:green", "tab:red", "tab:purple")


def plot_errors(facts: Mapping[str, Any], runs: Mapping[str, "Run"], path: Path) -> None:
    """The best l2 error so far, which is what a target asks for, and thinner the error itself; with
    the targets of the table."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for name, run in runs.items():
        _median(axes, run.epochs, np.minimum.accumulate(run.measured.l2), name)
        thin = _gathered(run.epochs, run.measured.l2, np.median)
        axes.plot(*thin, color=COLOURS[name], alpha=0.6, linewidth=0.7)
    low, high = axes.get_ylim()
    for target in sorted({row["target"] for row in facts["milestones"]}):
        axes.axhline(target, color="0.6", linewidth=0.7, linestyle=":")
    auto = facts["auto"]["l2"]
    title = (
        f"{facts['problem']}: best error so far, median and range over {len(facts['seeds'])} "
        "seeds\nthin: the error itself, dotted: targets"
    )
    if auto is not None:
        spent = facts["auto"]["epochs_equivalent"]
        title += f"; auto reaches {auto:.0e} for {spent:.3g} plain epochs"
    low = min(low, 0.7 * facts["milestones"][-1]["target"])
    axes.set(xlabel="epoch", ylabel="l2 error", ylim=(low, high))
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=9)
    saved(figure, check_writable(path), DPI)


def plot_dynamics(facts: Mapping[str, Any], runs: Mapping[str, "Run"], path: Path) -> None:
    """Gradient norm, curvature proxy and contraction along the run. The dashed line is C-PINN in
    the units of PINN: divided by the mean of γ²."""
    figure = Figure(figsize=(12.6, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    scale = facts["multiplier"]["mean_square"]
    for name, run in runs.items():
        for axes, values in ((left, run.measured.gradient), (middle, run.measured.sharpness)):
            _median(axes, run.epochs, values, name)
            if name == "C-PINN":
                scaled = _gathered(run.epochs, values / scale, np.median)
                axes.plot(*scaled, "--", label="C-PINN / mean γ²", **_line(name))
        _median(right, run.contraction_epochs, run.contraction, name)
    found = [facts["contraction"][name].get("bound") for name in runs]
    bounds = [bound for bound in found if bound is not None]
    if bounds:
        label = r"$\sqrt{1-\varepsilon}$" + f" = {max(bounds):.3g}"
        right.axhline(max(bounds), color="0.3", linestyle=":", label=label)
    left.set(yscale="log", title="gradient norm")
    middle.set(yscale="log", title=r"$\sigma_{\max}$ proxy")
    right.set(title=r"$\|\Delta w-\gamma A:D^2w\|\,/\,\|\Delta w\|$", ylim=(0, None))
    for axes in (left, middle, right):
        axes.set(xscale="log", xlabel="epoch")
        axes.legend(fontsize=8)
    right.set_xlim(left.get_xlim())
    title = f"{facts['problem']}: medians and ranges over {len(facts['seeds'])} seeds"
    figure.suptitle(title, fontsize=11)
    saved(figure, check_writable(path), DPI)


def plot_speed_ups(together: Mapping[str, Any], path: Path) -> None:
    """Each problem: how many times fewer epochs C-PINN took, in the order of how much γ varies."""
    rows = [row for row in together["speed_up"] if row["median"] is not None]
    rows.sort(key=lambda row: (row["variation"], row["rival"]))
    figure = Figure(figsize=(7.6, 0.42 * len(rows) + 1.4), layout="constrained")
    axes = figure.add_subplot(xscale="log")
    for k, row in enumerate(rows):
        ratios = [ratio for ratio in row["ratios"] if ratio]
        spread = [[max(row["median"] - min(ratios), 0)], [max(max(ratios) - row["median"], 0)]]
        look = {"fmt": "o", "color": COLOURS[row["rival"]], "capsize": 3, "markersize": 6}
        axes.errorbar(row["median"], k, xerr=spread, **look)
    labels = [
        f"{row['problem']}, against {row['rival']}\nvariation of γ {row['variation']:.2f}"
        for row in rows
    ]
    axes.set_yticks(range(len(rows)), labels, fontsize=8)
    axes.axvline(1.0, color="0.5", linewidth=0.8)
    ticks = [0.5, 1, 2, 4]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    words = "epochs of the rival / epochs of C-PINN (median and range over seeds)"
    axes.set_xlabel(words, fontsize=9)
    saved(figure, check_writable(path), DPI)


def _line(name: str) -> dict[str, Any]:
    return {"color": COLOURS[name], "linewidth": 1.8}


def _median(axes: Axes, x: np.ndarray, values: np.ndarray, name: str) -> None:
    """The median over the seeds and, as a band, their range."""
    if not len(x):
        return
    axes.plot(*_gathered(x, values, np.median), label=name, **_line(name))
    centre, lowest = _gathered(x, values, np.min)
    highest = _gathered(x, values, np.max)[1]
    axes.fill_between(centre, lowest, highest, color=COLOURS[name], alpha=0.18, linewidth=0)


def _gathered(
    x: np.ndarray, values: np.ndarray, over_seeds: Callable[..., Any]
) -> tuple[list[float], list[float]]:
    """Records in groups that are even over the logarithm of the epoch: the middle of each group,
    and there a statistic of the medians of the seeds."""
    edges = np.unique(np.round(np.geomspace(1, len(x) + 1, SMOOTH)).astype(int)) - 1
    groups = [slice(start, stop) for start, stop in pairwise(edges)]
    middles = [float(np.median(x[group])) for group in groups]
    return middles, [float(over_seeds(np.median(values[group], axis=0))) for group in groups]


# What the multiplier changes ----------------------------------------------------------------------


def plot_landscape(
    surfaces: Mapping[str, "Landscape"],
    path: str | Path | None = None,
    relative: bool = True,
    title: str = "",
) -> Figure:
    """One column for each named loss: the surface, the contour map, and the measures of its shape;
    all on one scale.

    Heights are log₁₀ of the loss over that of the network itself, since a constant multiplier would
    move a whole surface without changing it; `relative=False` shows log₁₀ of the loss. Checked:
    that the path can be written, before anything is drawn.
    """
    if path is not None:
        path = check_writable(path)
    if not surfaces:
        raise OptionError("surfaces is empty: pass at least one landscape.")
    heights = {name: _heights(surface, relative) for name, surface in surfaces.items()}
    levels = MaxNLocator(LEVELS).tick_values(*_limits(list(heights.values())))
    colours: dict[str, Any] = {"norm": Normalize(levels[0], levels[-1]), "cmap": "viridis"}
    count = len(surfaces)
    # The layout forgets the label of the first axis where these have a fixed aspect: a margin keeps
    # it on the page.
    layout = ConstrainedLayoutEngine(rect=(0.02, 0.0, 0.98, 1.0))
    figure = _figure(COLUMN_WIDTH * count + 1.6, 9.0 + (0.4 if title else 0), title, layout)
    grid = figure.add_gridspec(3, count, height_ratios=(1.0, 0.95, 0.24))
    maps: list[Axes] = []
    for k, (name, surface) in enumerate(surfaces.items()):
        t, height = surface.coordinates, heights[name]
        relief: Any = figure.add_subplot(grid[0, k], projection="3d")
        plane = np.meshgrid(t, t, indexing="ij")
        relief.plot_surface(*plane, height, rcount=len(t), ccount=len(t), linewidth=0, **colours)
        # Few ticks: in perspective more of them run into each other.
        ends = [float(t[0]), 0.0, float(t[-1])]
        relief.set(zlim=(levels[0], levels[-1]), xticks=ends, yticks=ends)
        relief.set(xlabel="1st direction", ylabel="2nd direction")
        relief.set_title(name, y=1.02)
        relief.zaxis.set_major_locator(MaxNLocator(5))
        relief.tick_params(labelsize=8)
        relief.set_box_aspect((1, 1, 0.8), zoom=1.0)
        axes = figure.add_subplot(grid[1, k])
        image = axes.contourf(t, t, height.T, levels=levels, **colours)
        lines: dict[str, Any] = {"colors": "white", "linewidths": 0.5, "linestyles": "solid"}
        axes.contour(t, t, height.T, levels=levels, **lines)
        axes.plot(0, 0, marker="+", color="tab:red", markersize=10)
        halves = np.linspace(t[0], t[-1], 5)
        axes.set(aspect="equal", xticks=halves, yticks=halves)
        axes.set(xlabel="1st direction", ylabel="2nd direction" if k == 0 else "")
        maps.append(axes)
        text = figure.add_subplot(grid[2, k])
        text.axis("off")
        place: dict[str, Any] = {"ha": "center", "va": "top", "transform": text.transAxes}
        text.text(0.5, 1.0, _words(surface), fontsize=9, family="monospace", **place)
    label = r"$\log_{10}(L/L_0)$" if relative else r"$\log_{10} L$"
    bar = figure.colorbar(image, ax=maps, shrink=0.9, label=label)
    bar.ax.locator_params(nbins=8)
    return saved(figure, path, 150)


def _figure(width: float, height: float, title: str, layout: Any) -> Figure:
    figure = Figure(figsize=(width, height), layout=layout)
    if title:
        figure.suptitle(title)
    return figure


def _heights(surface: "Landscape", relative: bool) -> np.ndarray:
    """Logarithms; what is not positive or not finite is left blank."""
    losses = np.where(np.isfinite(surface.losses) & (surface.losses > 0), surface.losses, np.nan)
    return np.log10(losses / surface.centre if relative else losses)


def _limits(heights: list[np.ndarray]) -> tuple[float, float]:
    values = np.concatenate([height[np.isfinite(height)] for height in heights])
    if not values.size:
        raise OptionError(
            "None of the losses is positive and finite: there is nothing to draw. Try a "
            "smaller radius."
        )
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _words(surface: "Landscape") -> str:
    ratio, sharpness, nonconvex, decades = surface.measures
    rows = (
        ("loss at the centre", f"{surface.centre:.3g}"),
        ("curvature ratio", f"{ratio:.3g}" if np.isfinite(ratio) else "indefinite"),
        ("sharpness", f"{sharpness:.3g}"),
        ("not convex", f"{100 * nonconvex:.0f} %"),
        ("decades", f"{decades:.2f}"),
    )
    return "\n".join(f"{name:<19}{value:>11}" for name, value in rows)


def plot_spectra(
    spectra: Mapping[str, Mapping[str, "Spectrum"]], path: str | Path | None = None, title: str = ""
) -> Figure:
    """One panel for each named network (at the start, at the end), one line for each loss:
    eigenvalues over the largest against their number.

    A line that falls later is better conditioned. Shown are sixteen decades: what lies below no
    descent will ever see. Checked: that the path can be written, before anything is drawn.
    """
    if path is not None:
        path = check_writable(path)
    if not spectra or not all(spectra.values()):
        raise OptionError(
            "spectra has no entry, or an empty one: pass at least one spectrum for each network."
        )
    width, height = 4.6 * len(spectra) + 0.6, 5.2 + (0.3 if title else 0)
    figure = _figure(width, height, title, "constrained")
    row = figure.subplots(1, len(spectra), squeeze=False, sharex=True, sharey=True)[0]
    names = list(dict.fromkeys(name for group in spectra.values() for name in group))
    for axes, (where, group) in zip(row, spectra.items(), strict=True):
        for name, spectrum in group.items():
            kept = spectrum.eigenvalues[: spectrum.resolved] / spectrum.largest
            kept = kept[kept > 10.0**-DECADES]
            k = names.index(name)
            look = {
                "linestyle": "--" if name == "Laplacian" else "-",
                "color": LINES[k % len(LINES)],
                # The first line is broad, so that it is seen below another that agrees with it.
                "linewidth": 4.0 if k == 0 else 1.6,
                "label": f"{name}: {_steps(spectrum)}rank {spectrum.effective_rank:.1f}",
            }
            axes.loglog(np.arange(1, len(kept) + 1), kept, **look)
        axes.set(title=where, xlabel="number k of the eigenvalue", ylim=(10.0**-DECADES, 3.0))
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(loc="lower left", fontsize=8.5)
    row[0].set_ylabel(r"$\lambda_k/\lambda_1$ of the Gauss–Newton matrix")
    return saved(figure, path, 150)


def _steps(spectrum: "Spectrum") -> str:
    """κ₁₀ in words of the legend, where there are so many eigenvalues."""
    return rf"$\kappa_{{10}}$ {spectrum.kappa(10):.1e}, " if spectrum.resolved >= 10 else ""
