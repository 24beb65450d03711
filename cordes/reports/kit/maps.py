"""Coloured maps of functions: a picture that needs no script, and values for the pointer."""

import base64
import html
import io
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from PIL import Image

from cordes.formulas.written.mathml import formula, letter
from cordes.reports.kit.charts import short
from cordes.reports.kit.page import embedded, figcaption, plain_title
from cordes.reports.kit.planes import Plane, linear_limits, logarithmic_limits

CLEAR = 255
# Points of an outline.
OUTLINE = 180
# Height over width where one axis is the time.
IN_TIME = 0.7


class Map(NamedTuple):
    """A function on a plane: values (n, m), NaN outside. With `categories` the values are the
    numbers of these names; `lines` are drawn over it; `scale` are the values that the colours span,
    where several maps share them."""

    key: str
    title: str
    plane: Plane
    values: np.ndarray
    logarithmic: bool = False
    caption: str = ""
    categories: tuple[str, ...] = ()
    letter: str = "x"
    lines: tuple[np.ndarray, ...] = ()
    scale: np.ndarray | None = None

    @property
    def sizes(self) -> np.ndarray:
        """What is coloured: on a logarithmic scale the size of the values."""
        return np.abs(self.values) if self.logarithmic else self.values

    @property
    def is_bound(self) -> bool:
        """Bounds are rounded up."""
        return self.key.split()[0] == "bound"


def map_figure(shown: Map) -> tuple[str, dict[str, Any]]:
    """The figure as HTML, and what its script reads."""
    indices, low, high = _indices(shown)
    colours = _colours(shown)
    plane = shown.plane
    # A curved or slanted boundary is cut out by the browser, sharper than cells can be.
    cut = ""
    if np.any(indices == CLEAR):
        cut = f"clip-path:polygon({_percent(plane, _clip(plane), '%')})"
    picture = _png(_widened(indices) if cut else indices, colours)
    width, height = plane.upper - plane.lower
    in_time = plane.names is not None and not plane.label
    ratio = IN_TIME if in_time else float(np.clip(height / width, 0.3, 1.6))
    names = [formula(letter(shown.letter, k + 1)) for k in plane.axes]
    if plane.names is not None:
        names = [html.escape(name) for name in plane.names]
    (left, right), (bottom, top) = (
        [html.escape(short(float(f"{end:.4g}"))) for end in ends]
        for ends in zip(plane.lower, plane.upper, strict=True)
    )
    style = ' class="sharp"' if shown.categories else ""
    image = (
        f'<img{style} style="{cut}" src="{picture}" '
        f'alt="{html.escape(_alternative(shown, low, high))}">'
    )
    label = html.escape(f"{plain_title(shown.title)}: arrow keys read values")
    across = "".join(f"<span>{part}</span>" for part in (left, names[0], right))
    body = f"""<figure class="map" data-map="{html.escape(shown.key)}">
<div class="head">{shown.title}{f", {html.escape(plane.label)}" if plane.label else ""}</div>
<div class="frame" style="--ratio:{ratio:.4f}">
<div class="axis up"><span>{top}</span><span>{names[1]}</span><span>{bottom}</span></div>
<div class="plot" tabindex="0" role="group" aria-label="{label}">{image}{_overlay(shown)}
<i class="dot"></i></div>
<div class="axis across">{across}</div>
</div>
{_scale(shown, colours, low, high)}
<output class="reading" aria-live="polite">&#160;</output>{figcaption(shown.caption)}
</figure>"""
    values = np.ascontiguousarray(shown.sizes, dtype="<f4")
    if shown.is_bound:
        # A bound in single precision must still be one.
        above = np.nextafter(values, np.float32(np.inf))
        values = np.where(values < shown.values, above, values).astype("<f4")
    data = {
        "shape": list(values.shape),
        "lower": plane.lower.tolist(),
        "upper": plane.upper.tolist(),
        "names": plane.names
        or [f"{shown.letter}{'₁₂₃₄₅₆₇₈₉'[k] if k < 9 else k + 1}" for k in plane.axes],
        "values": base64.b64encode(values.tobytes()).decode("ascii"),
    }
    if shown.is_bound:
        data["up"] = True
    if shown.categories:
        data["categories"] = list(shown.categories)
    return body, data


def _alternative(shown: Map, low: float, high: float) -> str:
    """For who cannot see the picture: the function, the plane, its values and their largest."""
    plane, values = shown.plane, shown.sizes
    axes = " and ".join(plane.names or [f"{shown.letter}{k + 1}" for k in plane.axes])
    what = f"Map of {plain_title(shown.title)} over {axes}"
    if shown.categories:
        kept = values[np.isfinite(values)]
        names = shown.categories if kept.size else ()
        shares = [f"{name}: {100 * np.mean(kept == k):.0f} %" for k, name in enumerate(names)]
        return f"{what}, share of the area of each value: {'; '.join(shares)}"
    if _flat(low, high) or not np.any(np.isfinite(values)):
        return f"{what}, {high:.3g} everywhere"
    i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
    where = ", ".join(f"{value:.2g}" for value in plane.points[i, j][list(plane.axes)])
    return f"{what}, colours from {low:.3g} to {high:.3g}, largest at ({where})"


def _indices(shown: Map) -> tuple[np.ndarray, float, float]:
    """Numbers of colours, and the ends of the scale; what is not finite is clear."""
    values = shown.sizes
    spanned = values if shown.scale is None else shown._replace(values=shown.scale).sizes
    limits = logarithmic_limits(spanned) if shown.logarithmic else None
    if shown.categories:
        low, high = -0.5, len(shown.categories) - 0.5
        share = values / max(len(shown.categories) - 1, 1)
    elif limits is not None:
        low, high = limits
        share = np.log(np.maximum(values, low) / low) / np.log(high / low)
    else:
        low, high = linear_limits(spanned, (0.0, 0.0))
        share = np.full(values.shape, 0.5) if _flat(low, high) else (values - low) / (high - low)
    kept = np.isfinite(values)
    indices = np.full(values.shape, CLEAR, dtype=np.uint8)
    indices[kept] = np.clip(np.round(share[kept] * (CLEAR - 1)), 0, CLEAR - 1)
    return indices, low, high


def _flat(low: float, high: float) -> bool:
    """Constant but for what nobody would see in the numbers of the scale: one colour."""
    return high - low <= 1e-6 * max(abs(low), abs(high))


def _colours(shown: Map) -> np.ndarray:
    """The palette, (255, 3)."""
    if shown.categories:
        count = len(shown.categories)
        chosen = np.round(np.linspace(0, count - 1, CLEAR)).astype(int)
        table = colormaps["tab10" if count <= 10 else "tab20"](chosen)
    else:
        table = colormaps["magma" if shown.logarithmic else "viridis"](np.linspace(0, 1, CLEAR))
    return (255 * table[:, :3]).astype(np.uint8)


def _png(indices: np.ndarray, colours: np.ndarray) -> str:
    """A small picture with a palette; the second coordinate points upwards."""
    image = Image.fromarray(np.ascontiguousarray(indices.T[::-1]))
    image.putpalette([*colours.ravel().tolist(), 0, 0, 0])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", transparency=CLEAR, optimize=False)
    return embedded("png", buffer.getvalue())


def _percent(plane: Plane, points: np.ndarray, unit: str = "") -> str:
    """Points in percent of the picture: separated by spaces for SVG, by commas for a style."""
    share = 100 * (points - plane.lower) / (plane.upper - plane.lower)
    return ("," if unit else " ").join(
        f"{x:.2f}{unit}{' ' if unit else ','}{100 - y:.2f}{unit}" for x, y in share
    )


def _thinned(outline: np.ndarray) -> np.ndarray:
    """Corners stay, also the four of a box, whose outline has as many points as a circle's."""
    if len(outline) <= OUTLINE:
        return outline
    turns = np.diff(outline, axis=0)
    directions = np.unwrap(np.arctan2(turns[:, 1], turns[:, 0]))
    sharp = np.flatnonzero(np.abs(np.diff(directions)) > 0.1) + 1
    even = np.arange(0, len(outline), -(-len(outline) // OUTLINE))
    return outline[np.unique(np.concatenate([even, sharp, [len(outline) - 1]]))]


def _widened(indices: np.ndarray) -> np.ndarray:
    """The picture carried on over two cells outside."""
    for _ in range(2):
        for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
            moved = np.roll(indices, step, axis=axis)
            # What comes in from the other side of the picture is not a neighbour.
            np.moveaxis(moved, axis, 0)[0 if step == 1 else -1] = CLEAR
            indices = np.where(indices == CLEAR, moved, indices)
    return indices


def _clip(plane: Plane) -> np.ndarray:
    """What the picture is cut to; a line that joins several keeps all its corners."""
    return plane.outline if plane.loops else _thinned(plane.outline)


def _overlay(shown: Map) -> str:
    """The outline of the domain and the lines, in percent of the picture."""
    plane = shown.plane
    lines = "".join(f'<polyline points="{_percent(plane, line)}"/>' for line in shown.lines)
    outline = "".join(
        f'<polygon points="{_percent(plane, _thinned(line))}"/>' for line in plane.boundary
    )
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" '
        f'aria-hidden="true">{lines}{outline}</svg>'
    )


def _scale(shown: Map, colours: np.ndarray, low: float, high: float) -> str:
    if shown.categories:
        count = len(shown.categories)
        hues = [colours[round(k / max(count - 1, 1) * (CLEAR - 1))] for k in range(count)]
        keys = "".join(
            f'<li><i style="background:rgb({r},{g},{b})"></i>{html.escape(name)}</li>'
            for (r, g, b), name in zip(hues, shown.categories, strict=True)
        )
        return f'<ul class="keys">{keys}</ul>'
    if _flat(low, high):
        return (
            f'<div class="scale"><span class="ends"><span>{short(float(f"{high:.4g}"))} '
            "everywhere</span></span></div>"
        )
    stops = ",".join(
        "#{:02x}{:02x}{:02x}".format(*colours[k]) for k in np.linspace(0, CLEAR - 1, 17).astype(int)
    )
    middle = float(np.sqrt(low * high)) if shown.logarithmic and low > 0 else (low + high) / 2
    middle = 0.0 if abs(middle) < 1e-9 * (high - low) else middle
    ticks = "".join(f"<span>{short(float(f'{value:.3g}'))}</span>" for value in (low, middle, high))
    return (
        '<div class="scale"><span class="bar" style="background:linear-gradient(to '
        f'right,{stops})"></span><span class="ends">{ticks}</span></div>'
    )
