"""The pieces of pages: numbers, charts, maps and style, safe whatever the text is."""

import base64
import re

import numpy as np
import pytest
from report_page import HOSTILE, Page

import cordes
from cordes.reports.kit.charts import Series, line_chart
from cordes.reports.kit.maps import Map, map_figure
from cordes.reports.kit.page import (
    Section,
    command_box,
    digits_of,
    number,
    picture,
    resource,
    table,
    write_page,
)
from cordes.reports.kit.planes import square_cells


def test_numbers_are_readable_and_exact():
    assert number(3.1e-9) == '<span class="number" data-value="3.1e-09">3.1·10<sup>−9</sup></span>'
    assert [digits_of(value) for value in (0.25, -2.0, 1234.6, 7, 12345678, 0.0, float("nan"))] == [
        "0.25",
        "−2",
        "1\u202f235",
        "7",
        "12\u202f345\u202f678",
        "0",
        "not a number",
    ]
    assert 'data-value="0.1"' in number(0.1)
    assert "1·10<sup>−9</sup>" in number(9.9999e-10, 2)
    assert [digits_of(value, 2) for value in (99.96, 999.6, -99.96, 9.96)] == [
        "100",
        "1\u202f000",
        "−100",
        "10",
    ]
    assert 'data-value="null"' in number(None)
    assert 'data-value="null"' in number(float("inf"))
    assert 'data-fact="certificate.rms"' in number(1.0, fact="certificate.rms")


def test_everything_from_outside_is_escaped(tmp_path):
    path = write_page(
        tmp_path / "page.html",
        HOSTILE,
        "",
        [
            Section(
                HOSTILE,
                table([(HOSTILE, "1")])
                + command_box(HOSTILE)
                + picture(b"\x89PNG", HOSTILE, HOSTILE),
                'x"><script>',
            )
        ],
        {"name": HOSTILE, "nan": float("nan")},
    )
    page, found = path.read_text(encoding="utf-8"), Page(path)
    assert "<script>alert" not in page
    assert found.data == {"name": HOSTILE, "nan": None}
    # The data and the page's own program, and no third one.
    assert len(found.scripts) == 2
    assert found.words().count(HOSTILE) >= 3


def test_chart_shows_its_numbers():
    chart = line_chart(
        "k",
        [Series("a <b>", [0, 1, 2], [1.0, 1e-3, 0.0]), Series("c", [0, 2], [0.5, 0.25])],
        "step",
        "residual",
        logarithmic=True,
    )
    assert "a &lt;b&gt;" in chart.body
    first = chart.data["series"][0]
    # Zero has no place on a logarithmic axis; the decades are evenly spaced.
    assert first["at"][2] is None
    assert [first["at"][0][1] < chart.data["series"][1]["at"][0][1] < first["at"][1][1]] == [True]
    assert chart.body.count("<path") == 2
    assert "10⁻³" in chart.body


@pytest.mark.parametrize("logarithmic", [True, False])
@pytest.mark.parametrize(
    "values",
    [
        [1e308, 1.5e308, 1.0],
        [5e-324, 1.0],
        [1e308, -1e308],
        [1e-320, 2e-320],
        [1e20, 1e20],
        [np.inf, np.nan],
        [],
    ],
)
def test_chart_of_any_numbers(values, logarithmic):
    chart = line_chart("k", [Series("a", range(len(values)), values)], "x", "y", logarithmic)
    assert "nan" not in chart.body
    assert "inf" not in chart.body
    places = [at for at in chart.data["series"][0]["at"] if at is not None]
    assert all(0 <= x <= 460 and 0 <= y <= 290 for x, y in places)


def test_figures_are_read_by_keyboard_and_aloud():
    chart = line_chart("k", [Series("a", [0, 1], [1.0, 0.25])], "step", "residual")
    assert re.search(
        r'<svg [^>]*role="img" tabindex="0" aria-label="residual against step: from 1 to 0.25',
        chart.body,
    )
    plane = square_cells(cordes.Box([0, 0], [1, 1]), (0, 1), 20)
    body, data = map_figure(Map("bound", "|u − u<sup>∗</sup>|", plane, plane.points[..., 0] + 1e-9))
    assert re.search(
        r'class="plot" tabindex="0" role="group" aria-label="\|u − u\*\|: arrow keys read values"',
        body,
    )
    assert re.search(
        r'alt="Map of \|u − u\*\| over x1 and x2, colours from 0.025 to 0.975, '
        r'largest at \(0.97, 0.025\)"',
        body,
    )
    # A bound stays one in single precision, and is read rounded up.
    values = (
        np.frombuffer(base64.b64decode(data["values"]), dtype="<f4")
        .reshape(data["shape"])
        .astype(float)
    )
    assert np.all(values >= plane.points[..., 0] + 1e-9)
    assert data["up"]
    assert "up" not in map_figure(Map("u", "u", plane, plane.points[..., 0]))[1]
    names, _ = map_figure(
        Map(
            "policy",
            "best control",
            plane,
            (plane.points[..., 0] > 0.75).astype(float),
            categories=("a = 0", "a = 1"),
        )
    )
    assert "a = 0: 75 %; a = 1: 25 %" in names


def contrast(first, second):
    """The ratio of luminances as in the guidelines for accessible pages."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        return np.dot(
            [0.2126, 0.7152, 0.0722],
            [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts],
        )

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_style_is_legible():
    style = resource("style.css")
    themes = [
        dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root[^{]*\{([^}]*)\}", style)
    ]
    assert len(themes) == 4
    light, *dark, printed = themes
    for theme in (light, *dark):
        assert contrast(theme["soft"], theme["card"]) >= 4.5
        assert min(contrast(theme[f"series-{k}"], theme["card"]) for k in range(1, 7)) >= 3
    # The words of a legend have the colour of text, whatever that of their line is; on paper all
    # colours are those of the light theme.
    assert ".chart ul.legend li { color: var(--soft) !important; }" in style
    assert {key: printed.get(key) for key in light if key.startswith("series-")} == {
        key: light[key] for key in light if key.startswith("series-")
    }
    assert "prefers-reduced-motion: reduce" in style


def test_pages_bear_odd_data(tmp_path):
    path = write_page(
        tmp_path / "page.html",
        "bad\udcff",
        "",
        [],
        {"a\udcff": [np.int64(3), np.float32(0.5), np.array([1.0, np.nan]), np.bool_(True)]},
    )
    assert Page(path).data == {"a\udcff": [3, 0.5, [1.0, None], True]}


def test_map_keeps_values_and_colours():
    domain = cordes.Ball([0, 0], 1)
    plane = square_cells(domain, (0, 1), 40)
    inside = plane.points[plane.inside]
    body, data = map_figure(Map("u", "u", plane, plane.spread(inside[:, 0] + 2 * inside[:, 1])))
    values = np.frombuffer(base64.b64decode(data["values"]), dtype="<f4").reshape(data["shape"])
    np.testing.assert_allclose(values[plane.inside], inside @ [1, 2], rtol=1e-6)
    assert np.all(np.isnan(values[~plane.inside]))
    # The picture stands upright: the second coordinate grows upwards, and viridis runs from dark
    # blue to yellow.
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", body)[1]))) as image:
        pixels = np.asarray(image.convert("RGBA")).astype(int)
    assert pixels.shape[:2] == (40, 40)
    top, bottom = pixels[3, 20], pixels[36, 20]
    assert top[:3].sum() > bottom[:3].sum() + 100
    assert pixels[0, 0, 3] == 0
    assert "clip-path" in body
    constant, _ = map_figure(Map("u", "u", plane, plane.spread(2 + 1e-9 * inside[:, 0])))
    assert "2 everywhere" in constant
