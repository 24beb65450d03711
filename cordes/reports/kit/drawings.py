"""Drawings inside a page: histograms and curves as SVG in the colours of the theme. What the
pointer reads stands in the attribute data-tip."""

import html
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

# Units of a drawing; text of 11 units is readable on a phone, where a drawing is 340 pixels wide,
# and not loud on a desk.
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 400, 44, 10, 10, 34


class PlotCurve(NamedTuple):
    """One line of `curves`, with the range around it, if any, in one of the theme's six colours."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    series: int = 1


class PlotAxis(NamedTuple):
    """From numbers to units of the drawing."""

    lower: float
    upper: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        inner = [
            math.log10(one) if self.logarithmic else one for one in (value, self.lower, self.upper)
        ]
        return self.start + (self.end - self.start) * (inner[0] - inner[1]) / (inner[2] - inner[1])


def histogram(
    values: np.ndarray,
    weights: np.ndarray,
    edges: np.ndarray,
    ticks: Sequence[tuple[float, str]],
    label: str,
    words: Sequence[str],
    series: int = 1,
    height: int = 150,
) -> str:
    """Shares of the total weight between the edges; values beyond them count in the outermost bars.
    `words` says for each bar what its values are."""
    counted, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges, weights=weights)
    shares = counted / np.sum(weights)
    highest = float(np.max(shares))
    along = PlotAxis(float(edges[0]), float(edges[-1]), LEFT, WIDTH - RIGHT)
    up = PlotAxis(0.0, highest, height - BOTTOM, TOP)
    bars = []
    for k, share in enumerate(shares):
        left, right, top = along(edges[k]), along(edges[k + 1]), up(share)
        bars.append(
            f'<rect class="column series-{series}" x="{left + 0.3:.1f}" y="{top:.1f}" '
            f'width="{right - left - 0.6:.1f}" height="{up(0) - top:.1f}"/>'
        )
        bars.append(_reach(left, right, height, f"{words[k]}: {percent(share)} of the surface"))
    seen = [(place, name) for place, name in ticks if edges[0] <= place <= edges[-1]]
    frame = _bottom(along, seen, label, height)
    frame += _left(up, [(share, percent(share)) for share in (0.0, highest / 2, highest)])
    return _drawing(f"Histogram: {label}", height, frame + "".join(bars))


def percent(share: float) -> str:
    """A share as a person says it."""
    if 0 < share < 1e-3:
        return "below 0.1 %"
    return f"{100 * share:.{1 if 0 < share < 0.0995 else 0}f} %"


def curves(
    lines: Sequence[PlotCurve],
    across: str,
    upward: str,
    marks: Sequence[float] = (),
    height: int = 250,
) -> str:
    """Positive numbers against positive numbers, both on logarithmic scales; `marks` are dotted
    levels. The pointer reads all curves at one place."""
    x_values = sorted({float(x) for line in lines for x in line.x})
    given = [y for line in lines for y in (*line.y, *line.low, *line.high)]
    y_values = [float(y) for y in given if y is not None and y > 0]
    if len(x_values) < 2 or not y_values:
        return ""
    low, high = min([*y_values, *marks]) / 1.3, max([*y_values, *marks]) * 1.3
    along = PlotAxis(x_values[0], x_values[-1], LEFT, WIDTH - RIGHT, logarithmic=True)
    up = PlotAxis(low, high, height - BOTTOM, TOP, logarithmic=True)
    frame = _bottom(along, _decades(along), across, height) + _left(up, _decades(up))
    frame += "".join(_across("mark", f"{up(mark):.1f}") for mark in marks)
    drawn = "".join(draw(line, along, up) for draw in (_band, _path) for line in lines)
    reading = _reading(lines, x_values, along, height, across)
    key = " ".join(
        f'<span class="curve-key series-{line.series}">{html.escape(line.name)}</span>'
        for line in lines
    )
    drawing = _drawing(f"{upward} against {across}", height, frame + drawn + reading)
    return f'{drawing}<p class="curve-keys">{key}</p>'


def _decades(axis: PlotAxis) -> list[tuple[float, str]]:
    first = math.ceil(math.log10(axis.lower) - 1e-9)
    last = math.floor(math.log10(axis.upper) + 1e-9)
    step = max(1, -(-(last - first) // 6))
    return [(10.0**power, _power(power)) for power in range(first, last + 1, step)]


def _power(power: int) -> str:
    if 0 <= power <= 3:
        return f"{10**power:g}"
    return f'10<tspan dy="-4" font-size="8">{str(power).replace("-", "−")}</tspan>'


def _across(kind: str, y: str | int) -> str:
    return f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'


def _bottom(axis: PlotAxis, ticks: Sequence[tuple[float, str]], label: str, height: int) -> str:
    base = height - BOTTOM
    parts = [_across("axis", base)]
    parts += [
        f'<text x="{axis(place):.1f}" y="{base + 14}" text-anchor="middle">{name}</text>'
        for place, name in ticks
    ]
    parts.append(
        f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 5}" '
        f'text-anchor="middle">{html.escape(label)}</text>'
    )
    return "".join(parts)


def _left(axis: PlotAxis, ticks: Sequence[tuple[float, str]]) -> str:
    return "".join(_across("rule", f"{axis(place):.1f}") for place, _ in ticks) + "".join(
        f'<text x="{LEFT - 5}" y="{axis(place) + 4:.1f}" text-anchor="end">{name}</text>'
        for place, name in ticks
    )


def _points(
    x: Sequence[float], y: Sequence[float | None], along: PlotAxis, up: PlotAxis
) -> list[str]:
    return [
        f"{along(a):.1f},{up(b):.1f}" for a, b in zip(x, y, strict=True) if b is not None and b > 0
    ]


def _path(line: PlotCurve, along: PlotAxis, up: PlotAxis) -> str:
    points = " ".join(_points(line.x, line.y, along, up))
    return f'<polyline class="line series-{line.series}" points="{points}"/>'


def _band(line: PlotCurve, along: PlotAxis, up: PlotAxis) -> str:
    if not line.low:
        return ""
    outline = _points(line.x, line.high, along, up) + _points(line.x, line.low, along, up)[::-1]
    return f'<polygon class="band series-{line.series}" points="{" ".join(outline)}"/>'


def _reading(
    lines: Sequence[PlotCurve], places: Sequence[float], along: PlotAxis, height: int, across: str
) -> str:
    """A column around each place: wherever the pointer is, it is in one of them."""
    middles = [along(place) for place in places]
    edges = [along.start, *((a + b) / 2 for a, b in pairwise(middles)), along.end]
    columns = []
    for place, (left, right) in zip(places, pairwise(edges), strict=True):
        found = [(line.name, dict(zip(line.x, line.y, strict=True)).get(place)) for line in lines]
        said = [f"{name} {value:.2e}" for name, value in found if value is not None]
        columns.append(_reach(left, right, height, "\n".join([f"{across} {place:g}", *said])))
    return "".join(columns)


def _reach(left: float, right: float, height: int, said: str) -> str:
    """Where the pointer reads something."""
    return (
        f'<rect class="reach" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" '
        f'height="{height - BOTTOM - TOP}" data-tip="{html.escape(said)}"/>'
    )


def _drawing(label: str, height: int, inner: str) -> str:
    return (
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(label)}">{inner}</svg>'
    )
