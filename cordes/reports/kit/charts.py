"""Line charts as SVG inside a page: drawn here, so that they are seen without scripts and in print;
the page's script lets the pointer read values."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

WIDTH, HEIGHT = 460, 290
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 44
COLOURS = 6
# Points of a line that are kept: more cannot be told apart.
MOST = 400
# Larger values, and on a logarithmic axis smaller ones, leave the range in which axes can be
# computed: they are gaps.
LARGEST, SMALLEST = 1e300, 1e-300
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Series(NamedTuple):
    """A named line. Values that are not finite, or not positive on a logarithmic axis, leave a
    gap."""

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

    def across(x: float) -> float:
        return LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        share = (
            (math.log10(y) - math.log10(y_low)) / (math.log10(y_high) - math.log10(y_low))
            if logarithmic
            else (y - y_low) / (y_high - y_low)
        )
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_grid(ticks, _linear_axis(x_low, x_high)[2], (x_low, x_high), across, up, logarithmic)]
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
    legend = (
        "".join(
            f'<li class="series-{k % COLOURS + 1}">{html.escape(each.name)}</li>'
            for k, each in enumerate(kept)
        )
        if len(kept) > 1
        else ""
    )
    title = html.escape(f"{y_label} against {x_label}: {_described(kept)}. Arrow keys read values.")
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    body = f"""<figure class="chart" data-chart="{html.escape(key)}">
<div class="head">{html.escape(y_label)}</div>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" aria-label="{title}">
{"".join(parts)}<g class="marker"></g></svg>
<output class="reading" aria-live="polite">&#160;</output>
{f'<ul class="legend">{legend}</ul>' if legend else ""}{below}
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
    return Series(
        series.name,
        x.tolist(),
        np.where(y >= SMALLEST, y, np.nan).tolist() if logarithmic else y.tolist(),
    )


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


def _grid(
    y_ticks: list[float],
    x_ticks: list[float],
    x_limits: tuple[float, float],
    across: Any,
    up: Any,
    logarithmic: bool,
) -> str:
    parts = []
    for tick in y_ticks:
        y = round(up(tick), 2)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        shown = (
            f"10{str(round(math.log10(tick))).translate(SUPERSCRIPTS)}"
            if logarithmic
            else short(tick)
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{shown}</text>')
    span = x_limits[1] - x_limits[0]
    for tick in x_ticks:
        if x_limits[0] - 1e-6 * span <= tick <= x_limits[1] + 1e-6 * span:
            parts.append(
                f'<text x="{round(across(tick), 2)}" y="{HEIGHT - BOTTOM + 18}" '
                f'text-anchor="middle">{short(tick)}</text>'
            )
    return "".join(parts)


def short(value: float) -> str:
    """A tick: few digits, powers of ten as text."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}".replace("-", "−")
    mantissa, exponent = (
        f"{value:.2g}".split("e") if "e" in f"{value:.2g}" else f"{value:.1e}".split("e")
    )
    return f"{mantissa.replace('-', '−')}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def _line(points: list[tuple[float, float] | None], k: int, markers: bool) -> str:
    pieces, open_ = [], False
    for point in points:
        if point is None:
            open_ = False
            continue
        pieces.append(f"{'L' if open_ else 'M'}{point[0]:.1f} {point[1]:.1f}")
        open_ = True
    dots = (
        "".join(
            f'<circle cx="{p[0]:.1f}" cy="{p[1]:.1f}" r="2.6"/>' for p in points if p is not None
        )
        if markers
        else ""
    )
    return f'<g class="series-{k % COLOURS + 1}"><path d="{" ".join(pieces)}"/>{dots}</g>'
