"""Figures of a study: error against epochs, the paper's diagnostics along the run, and speed-up
against the spread of the multiplier."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cordes.runtime.files import check_writable

if TYPE_CHECKING:
    from cordes.studies.runs import Run

COLOURS = {"C-PINN": "#1f6fb4", "PINN": "#c8501e", "PINN-Newton": "#3a8f4d"}
DPI = 130
# Curves are drawn through medians of so many records at most: single records of a run of 40,000
# epochs are a grey band.
SMOOTH = 200


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
    _save(figure, path)


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
    _save(figure, path)


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
    _save(figure, path)


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
    x: np.ndarray, values: np.ndarray, over_seeds: Callable
) -> tuple[list[float], list[float]]:
    """Records in groups that are even over the logarithm of the epoch: the middle of each group,
    and there a statistic of the medians of the seeds."""
    edges = np.unique(np.round(np.geomspace(1, len(x) + 1, SMOOTH)).astype(int)) - 1
    groups = [slice(start, stop) for start, stop in pairwise(edges)]
    return [float(np.median(x[group])) for group in groups], [
        float(over_seeds(np.median(values[group], axis=0))) for group in groups
    ]


def _save(figure: Figure, path: Path) -> None:
    path = check_writable(path)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=DPI)
