"""Figures of a study: error against epochs, the paper's diagnostics along the run, and speed-up against the spread of the multiplier."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cordes.storage import check_writable

if TYPE_CHECKING:
    from cordes.studies.runs import Run

COLOURS = {"C-PINN": "#1f6fb4", "PINN": "#c8501e", "PINN-Newton": "#3a8f4d"}
DPI = 130
# Curves are drawn through medians of so many records at most: single records of a run of 40,000 epochs are a grey band.
SMOOTH = 200


def plot_errors(facts: Mapping[str, Any], runs: Mapping[str, "Run"], path: Path) -> None:
    """l2 error of every seed and its median, with the targets of the table."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, run in runs.items():
        axes.plot(run.epochs, run.measured.l2, color=COLOURS[name], alpha=0.25, linewidth=0.6)
        _median(axes, run.epochs, run.measured.l2, COLOURS[name], name, band=False)
    low, high = axes.get_ylim()
    for target in sorted({row["target"] for row in facts["milestones"]}):
        axes.axhline(target, color="0.6", linewidth=0.7, linestyle=":")
    auto = facts["auto"]["l2"]
    title = f"{facts['problem']}: {len(facts['seeds'])} seeds, medians bold; dotted: targets"
    if auto is not None:
        title += f"\nauto reaches {auto:.0e} at the cost of {facts['auto']['epochs_equivalent']:.3g} plain epochs"
    axes.set(xscale="log", yscale="log", xlabel="epoch", ylabel="l2 error", ylim=(min(low, 0.7 * facts["milestones"][-1]["target"]), high))
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=9)
    _save(figure, path)


def plot_dynamics(facts: Mapping[str, Any], runs: Mapping[str, "Run"], path: Path) -> None:
    """Gradient norm, curvature proxy and contraction along the run. The dashed line is C-PINN in the units of PINN: divided by the mean of γ²."""
    figure = Figure(figsize=(12.6, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    scale = facts["multiplier"]["mean_square"]
    for name, run in runs.items():
        for axes, values in ((left, run.measured.gradient), (middle, run.measured.sharpness)):
            _median(axes, run.epochs, values, COLOURS[name], name)
            if name == "C-PINN":
                _median(axes, run.epochs, values / scale, COLOURS[name], "C-PINN / mean γ²", band=False, linestyle="--")
        _median(right, run.contraction_epochs, run.contraction, COLOURS[name], name)
    bounds = [facts["contraction"][name].get("bound") for name in runs]
    if any(bound is not None for bound in bounds):
        highest = max(bound for bound in bounds if bound is not None)
        right.axhline(highest, color="0.3", linestyle=":", label=r"$\sqrt{1-\varepsilon}$" + f" = {highest:.3g}")
    left.set(xscale="log", yscale="log", xlabel="epoch", title="gradient norm")
    middle.set(xscale="log", yscale="log", xlabel="epoch", title=r"$\sigma_{\max}$ proxy")
    right.set(xscale="log", xlabel="epoch", title=r"$\|\Delta w-\gamma A:D^2w\|\,/\,\|\Delta w\|$", ylim=(0, None))
    for axes in (left, middle, right):
        axes.legend(fontsize=8)
    figure.suptitle(f"{facts['problem']}: medians and ranges over {len(facts['seeds'])} seeds", fontsize=11)
    _save(figure, path)


def plot_speed_ups(together: Mapping[str, Any], path: Path) -> None:
    """Each problem: how many times fewer epochs C-PINN took, against how much γ varies."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for row in together["speed_up"]:
        x, y = row["variation"], row["median"]
        inside = row["rival"] == "PINN-Newton"
        label = row["problem"].removeprefix("ex") + (" (Newton)" if inside else "")
        axes.errorbar(
            x,
            y,
            [[y - min(row["ratios"])], [max(row["ratios"]) - y]],
            fmt="s" if inside else "o",
            color=COLOURS[row["rival"]],
            capsize=3,
            markersize=5,
        )
        axes.annotate(label, (x, y), xytext=(6, 5), textcoords="offset points", fontsize=8)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set(yscale="log", xlabel="variation of γ over the domain (standard deviation / mean)", ylabel="epochs of PINN / epochs of C-PINN")
    axes.margins(x=0.18)
    axes.set_title("Speed-up at the tightest target that both reach: median and range over seeds", fontsize=10)
    _save(figure, path)


def _median(axes: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str, band: bool = True, linestyle: str = "-") -> None:
    """The median over the seeds and, as a band, their range; records are gathered evenly over the logarithm of the epoch."""
    if not len(x):
        return
    edges = np.unique(np.round(np.geomspace(1, len(x), SMOOTH)).astype(int)) - 1
    groups = [slice(start, max(stop, start + 1)) for start, stop in zip(edges, [*edges[1:], len(x)], strict=True)]
    centre = [float(np.median(x[group])) for group in groups]
    axes.plot(centre, [np.median(values[group]) for group in groups], color=colour, linewidth=1.8, label=label, linestyle=linestyle)
    if band:
        lowest, highest = ([edge(np.median(values[group], axis=0)) for group in groups] for edge in (np.min, np.max))
        axes.fill_between(centre, lowest, highest, color=colour, alpha=0.18, linewidth=0)


def _save(figure: Figure, path: Path) -> None:
    path = check_writable(path)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=DPI)
