"""Line charts as SVG inside a page: drawn here, so that they are seen without scripts and in print;
the page's script lets the pointer read values."""

import html
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cordes.reports.kit.drawings import PlotAxis
from cordes.reports.kit.page import figcaption

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 44
COLOURS = 6
# Points of a line that are kept: more cannot be told apart.
MOST = 400
# With larger values, or smaller ones on a logarithmic axis, no axis can be computed: gaps.
LARGEST, SMALLEST = 1e300, 1e-300
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Series(NamedTuple):
    """A named line, with gaps where values are not finite, or not positive on such an axis."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray


class LineChart(NamedTuple):
    """The figure as HTML, and what its script reads."""

    body: str
    data: dict[str, Any]


def line_chart(
    key: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
    caption: str = "",
    markers: bool = False,
) -> LineChart:
    """A chart of lines over a common axis. Labels are plain text."""
    kept = [_thinned(each, logarithmic) for each in series]
    xs = np.concatenate([each.x for each in kept])
    ys = np.concatenate([each.y for each in kept])
    ys = ys[np.isfinite(ys)]
    x_low, x_high = _limits(xs)
    y_low, y_high, ticks = _logarithmic_axis(ys) if logarithmic else _linear_axis(*_limits(ys))

    across = PlotAxis(x_low, x_high, LEFT, WIDTH - RIGHT)
    up = PlotAxis(y_low, y_high, HEIGHT - BOTTOM, TOP, logarithmic)
    parts = [_grid(across, _linear_axis(x_low, x_high)[2], up, ticks)]
    lines = []
    for k, each in enumerate(kept):
        points = [
            (across(x), up(y)) if math.isfinite(x) and math.isfinite(y) else None
            for x, y in zip(each.x, each.y, strict=True)
        ]
        parts.append(_line(points, k, markers or sum(point is not None for point in points) == 1))
        lines.append(
            {
                "name": each.name,
                "x": list(each.x),
                "y": list(each.y),
                "at": [None if p is None else [round(p[0], 2), round(p[1], 2)] for p in points],
            }
        )
    parts.append(
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" '
        f'text-anchor="middle">{html.escape(x_label)}</text>'
    )
    keys = "".join(
        f'<li class="series-{k % COLOURS + 1}">{html.escape(each.name)}</li>'
        for k, each in enumerate(kept)
    )
    title = html.escape(f"{y_label} against {x_label}: {_described(kept)}. Arrow keys read values.")
    body = f"""<figure class="chart" data-chart="{html.escape(key)}">
<div class="head">{html.escape(y_label)}</div>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{title}">
{"".join(parts)}<g class="marker"></g></svg>
<output class="reading" aria-live="polite">&#160;</output>
{f'<ul class="legend">{keys}</ul>' if len(kept) > 1 else ""}{figcaption(caption)}
</figure>"""
    # Bounds are read rounded up.
    rounding = {"up": True} if key == "bound" else {}
    return LineChart(body, {"x": x_label, "series": lines} | rounding)


def _described(series: Sequence[Series]) -> str:
    """What a line shows, in words: where it begins and ends."""
    parts = []
    for each in series[:COLOURS]:
        seen = [y for y in each.y if math.isfinite(y)]
        parts.append(
            (f"{each.name} " if len(series) > 1 else "")
            + (f"from {seen[0]:.3g} to {seen[-1]:.3g}" if seen else "no values")
        )
    return "; ".join(parts)


def _thinned(series: Series, logarithmic: bool) -> Series:
    x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
    if len(x) > MOST:
        chosen = np.unique(np.linspace(0, len(x) - 1, MOST).round().astype(int))
        x, y = x[chosen], y[chosen]
    x, y = (np.where(np.abs(values) <= LARGEST, values, np.nan) for values in (x, y))
    y = np.where(y >= SMALLEST, y, np.nan) if logarithmic else y
    return Series(series.name, x.tolist(), y.tolist())


def _limits(values: np.ndarray) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    size = max(abs(low), abs(high))
    if high - low > max(1e-12 * size, SMALLEST):
        return low, high
    # One value, but for rounding: half a unit around it, or what can be told from it.
    half = max(0.5, 1e-3 * size)
    return low - half, high + half


def _linear_axis(low: float, high: float) -> tuple[float, float, list[float]]:
    """Round numbers, four to eight of them."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.floor(low / step + 1e-9)
    ticks = [k * step for k in range(first, math.ceil(high / step - 1e-9) + 1)]
    return ticks[0], ticks[-1], ticks


def _logarithmic_axis(values: np.ndarray) -> tuple[float, float, list[float]]:
    positive = values[values > 0]
    low, high = (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
    bottom, top = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    top = max(top, bottom + 1)
    stride = -(-(top - bottom) // 6)
    return 10.0**bottom, 10.0**top, [10.0**k for k in range(bottom, top + 1, stride)]


def _grid(across: PlotAxis, x_ticks: list[float], up: PlotAxis, y_ticks: list[float]) -> str:
    parts = []
    for tick in y_ticks:
        y = round(up(tick), 2)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        shown = short(tick)
        if up.logarithmic:
            shown = f"10{str(round(math.log10(tick))).translate(SUPERSCRIPTS)}"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{shown}</text>')
    hair = 1e-6 * (across.upper - across.lower)
    for tick in x_ticks:
        if across.lower - hair <= tick <= across.upper + hair:
            parts.append(
                f'<text x="{round(across(tick), 2)}" y="{HEIGHT - BOTTOM + 18}" '
                f'text-anchor="middle">{short(tick)}</text>'
            )
    return "".join(parts)


def short(value: float) -> str:
    """A tick: few digits, powers of ten as text."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}".replace("-", "−")
    mantissa, exponent = (f"{value:.2g}" if "e" in f"{value:.2g}" else f"{value:.1e}").split("e")
    return f"{mantissa.replace('-', '−')}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def _line(points: list[tuple[float, float] | None], k: int, markers: bool) -> str:
    # After a gap the pen moves without drawing.
    pieces = [
        f"{'M' if before is None else 'L'}{point[0]:.1f} {point[1]:.1f}"
        for before, point in pairwise([None, *points])
        if point is not None
    ]
    marked = [point for point in points if point is not None and markers]
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6"/>' for x, y in marked)
    return f'<g class="series-{k % COLOURS + 1}"><path d="{" ".join(pieces)}"/>{dots}</g>'
