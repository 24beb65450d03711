"""Pages: self-contained, safe, and with the numbers of the JSON beside them."""

import base64
import html
import json
import re
import time
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes import cli
from cordes.certificates.certificate import Certificate
from cordes.commands.output import as_json_text
from cordes.reports.facts import solution_facts
from cordes.reports.html.answer import write_report
from cordes.reports.html.charts import Series, line_chart
from cordes.reports.html.maps import Map, make_plane, map_figure, spread
from cordes.reports.html.page import Section, command_box, digits_of, number, picture, plain_title, render, resource, table, write_page

LARGEST = 3_000_000
HOSTILE = "<script>alert('x')</script> & \"co\""
DISK = """
schema = 1
kind = "linear"
name = '''NAME'''
[domain]
type = "ball"
center = [0, 0]
radius = 1
[definitions]
k = "1 + x1**2"
[equation]
A = [["2 + k", "0.5"], ["0.5", "2"]]
f = "2*(2 + k) + 2*2"
exact = "x1**2 + x2**2 - 1"
"""


class Page(HTMLParser):
    """The tags of a page, the numbers that name a fact, the embedded data, and whatever refers to something outside."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.facts, self.outside, self.tags, self.scripts = {}, [], [], []
        self._script = None
        self.feed(self.text)
        self.data = json.loads(next(body for kind, body in self.scripts if kind == "application/json"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        if "data-fact" in found:
            self.facts.setdefault(found["data-fact"], []).append(json.loads(found["data-value"]))
        self.outside += [
            value for name, value in attributes if name in ("src", "href", "action", "xlink:href") and not value.startswith(("#", "data:"))
        ]
        if tag == "script":
            self._script = [found.get("type"), ""]

    def handle_data(self, data):
        if self._script is not None:
            self._script[1] += data

    def handle_endtag(self, tag):
        if tag == "script":
            self.scripts.append(tuple(self._script))
            self._script = None

    def words(self):
        """What a person reads."""
        body = re.sub(r"<(script|style)\b.*?</\1>", "", self.text, flags=re.DOTALL)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", body)))

    def check(self, facts):
        """Every number on the page that names a fact is that fact, and nothing is asked of the network."""
        assert self.facts
        for place, values in self.facts.items():
            expected = facts
            for key in place.split("."):
                expected = expected[int(key)] if isinstance(expected, list) else expected[key]
            assert all(value == expected for value in values), place
        assert self.outside == []
        assert "default-src 'none'" in self.text
        assert not re.search(r"https?://|@import|url\((?!data:)", self.text)
        assert len(self.text.encode()) < LARGEST

    def values(self, key):
        """The values of a map, and its points."""
        kept = self.data["maps"][key]
        values = np.frombuffer(base64.b64decode(kept["values"]), dtype="<f4").reshape(kept["shape"])
        axes = [a + (np.arange(n) + 0.5) / n * (b - a) for a, b, n in zip(kept["lower"], kept["upper"], kept["shape"], strict=True)]
        return values, np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


@pytest.fixture
def invoke(capsys):
    def invoke(*arguments):
        capsys.readouterr()
        status = cli.run([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return invoke


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of one problem, made by the command line."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    for name, features in (("small", 30), ("large", 60)):
        assert cli.run(["solve", str(folder / "disk.toml"), "--features", str(features), "--out", str(folder / name)]) in (0, 1)
    return folder


# The pieces ---------------------------------------------------------------------------------------------------------------------------------------------


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
    assert [digits_of(value, 2) for value in (99.96, 999.6, -99.96, 9.96)] == ["100", "1\u202f000", "−100", "10"]
    assert 'data-value="null"' in number(None)
    assert 'data-value="null"' in number(float("inf"))
    assert 'data-fact="certificate.rms"' in number(1.0, fact="certificate.rms")


def test_everything_from_outside_is_escaped(tmp_path):
    page = render(
        HOSTILE,
        "",
        [Section(HOSTILE, table([(HOSTILE, "1")]) + command_box(HOSTILE) + picture(b"\x89PNG", HOSTILE, HOSTILE), 'x"><script>')],
        {"name": HOSTILE, "nan": float("nan")},
    )
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    found = Page(tmp_path / "page.html")
    assert "<script>alert" not in page
    assert found.data == {"name": HOSTILE, "nan": None}
    # The data and the page's own program, and no third one.
    assert len(found.scripts) == 2
    assert found.words().count(HOSTILE) >= 3


def test_chart_shows_its_numbers():
    chart = line_chart("k", [Series("a <b>", [0, 1, 2], [1.0, 1e-3, 0.0]), Series("c", [0, 2], [0.5, 0.25])], "step", "residual", logarithmic=True)
    assert "a &lt;b&gt;" in chart.body
    first = chart.data["series"][0]
    # Zero has no place on a logarithmic axis; the decades are evenly spaced.
    assert first["at"][2] is None
    assert [first["at"][0][1] < chart.data["series"][1]["at"][0][1] < first["at"][1][1]] == [True]
    assert chart.body.count("<path") == 2
    assert "10⁻³" in chart.body


@pytest.mark.parametrize("logarithmic", [True, False])
@pytest.mark.parametrize("values", [[1e308, 1.5e308, 1.0], [5e-324, 1.0], [1e308, -1e308], [1e-320, 2e-320], [1e20, 1e20], [np.inf, np.nan], []])
def test_chart_of_any_numbers(values, logarithmic):
    chart = line_chart("k", [Series("a", range(len(values)), values)], "x", "y", logarithmic)
    assert "nan" not in chart.body
    assert "inf" not in chart.body
    places = [at for at in chart.data["series"][0]["at"] if at is not None]
    assert all(0 <= x <= 460 and 0 <= y <= 290 for x, y in places)


def test_figures_are_read_by_keyboard_and_aloud():
    chart = line_chart("k", [Series("a", [0, 1], [1.0, 0.25])], "step", "residual")
    assert re.search(r'<svg [^>]*role="img" tabindex="0" aria-label="residual against step: from 1 to 0.25', chart.body)
    plane = make_plane(cordes.Box([0, 0], [1, 1]), (0, 1), 20)
    body, data = map_figure(Map("bound", "|u − u<sup>∗</sup>|", plane, plane.points[..., 0] + 1e-9))
    assert re.search(r'class="plot" tabindex="0" role="group" aria-label="\|u − u\*\|: arrow keys read values"', body)
    assert re.search(r'alt="Map of \|u − u\*\| over x1 and x2, colours from 0.025 to 0.975, largest at \(0.97, 0.025\)"', body)
    # A bound stays one in single precision, and is read rounded up.
    values = np.frombuffer(base64.b64decode(data["values"]), dtype="<f4").reshape(data["shape"]).astype(float)
    assert np.all(values >= plane.points[..., 0] + 1e-9)
    assert data["up"]
    assert "up" not in map_figure(Map("u", "u", plane, plane.points[..., 0]))[1]
    names, _ = map_figure(Map("policy", "best control", plane, (plane.points[..., 0] > 0.75).astype(float), categories=("a = 0", "a = 1")))
    assert "a = 0: 75 %; a = 1: 25 %" in names


def contrast(first, second):
    """The ratio of luminances as in the guidelines for accessible pages."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        return np.dot([0.2126, 0.7152, 0.0722], [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts])

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_style_is_legible():
    style = resource("style.css")
    themes = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", style)]
    assert len(themes) == 4
    light, *dark, printed = themes
    for theme in (light, *dark):
        assert contrast(theme["soft"], theme["card"]) >= 4.5
        assert min(contrast(theme[f"series-{k}"], theme["card"]) for k in range(1, 7)) >= 3
    # The words of a legend have the colour of text, whatever that of their line is; on paper all colours are those of the light theme.
    assert ".chart ul.legend li { color: var(--soft) !important; }" in style
    assert {key: printed.get(key) for key in light if key.startswith("series-")} == {key: light[key] for key in light if key.startswith("series-")}
    assert "prefers-reduced-motion: reduce" in style


def test_pages_bear_odd_data(tmp_path):
    path = write_page(
        tmp_path / "page.html", "bad\udcff", "", [], {"a\udcff": [np.int64(3), np.float32(0.5), np.array([1.0, np.nan]), np.bool_(True)]}
    )
    assert Page(path).data == {"a\udcff": [3, 0.5, [1.0, None], True]}


def test_map_keeps_values_and_colours():
    domain = cordes.Ball([0, 0], 1)
    plane = make_plane(domain, (0, 1), 40)
    inside = plane.points[plane.inside]
    body, data = map_figure(Map("u", "u", plane, spread(plane, inside[:, 0] + 2 * inside[:, 1])))
    values = np.frombuffer(base64.b64decode(data["values"]), dtype="<f4").reshape(data["shape"])
    np.testing.assert_allclose(values[plane.inside], inside @ [1, 2], rtol=1e-6)
    assert np.all(np.isnan(values[~plane.inside]))
    # The picture stands upright: the second coordinate grows upwards, and viridis runs from dark blue to yellow.
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(base64.b64decode(re.search(r"base64,([^\"]+)", body)[1]))) as image:
        pixels = np.asarray(image.convert("RGBA")).astype(int)
    assert pixels.shape[:2] == (40, 40)
    top, bottom = pixels[3, 20], pixels[36, 20]
    assert top[:3].sum() > bottom[:3].sum() + 100
    assert pixels[0, 0, 3] == 0
    assert "clip-path" in body
    constant, _ = map_figure(Map("u", "u", plane, spread(plane, 2 + 1e-9 * inside[:, 0])))
    assert "2 everywhere" in constant


# Solve, check, report -----------------------------------------------------------------------------------------------------------------------------------


def test_report_of_a_solve(runs):
    page, facts = Page(runs / "large" / "report.html"), json.loads((runs / "large" / "result.json").read_text())
    page.check(facts)
    assert page.data["facts"] == facts
    assert str(runs / "large" / "report.html") in facts["files"]
    for place in (
        "certificate.rms",
        "certificate.Linf",
        "certificate.H2",
        "certificate.energy.upper",
        "error.linf",
        "condition.epsilon",
        "seconds.solve",
        "residual",
    ):
        assert place in page.facts
    words = page.words()
    for phrase in (
        "The error is at most",
        "level: quadrature",
        "Proved",
        "Checked",
        "Assumed",
        "Measured against the exact solution",
        "jax",
        "float64",
    ):
        assert phrase in words
    assert f"cordes solve {runs / 'disk.toml'} --features 60 --out {runs / 'large'}" in words
    assert page.tags.count("math") > 4
    assert len(page.data["history"]) >= 1
    # Independent of the report: u, ε and γ from their formulas.
    values, points = page.values("u")
    inside = np.isfinite(values)
    np.testing.assert_allclose(values[inside], (np.sum(points**2, axis=-1) - 1)[inside], atol=1e-6)
    assert 0.7 < inside.mean() < 0.85
    A = np.array([[2, 0.5], [0.5, 2]]) + np.zeros((*points.shape[:2], 2, 2))
    A[..., 0, 0] += 1 + points[..., 0] ** 2
    trace, square = np.trace(A, axis1=-2, axis2=-1), np.sum(A**2, axis=(-2, -1))
    np.testing.assert_allclose(page.values("epsilon")[0][inside], (trace**2 / square - 1)[inside], rtol=1e-6)
    np.testing.assert_allclose(page.values("multiplier")[0][inside], (trace / square)[inside], rtol=1e-6)
    bound, error = page.values("bound")[0], page.values("error")[0]
    assert np.all((error[inside] >= 0) & (error[inside] <= bound[inside]))


def test_hostile_name_is_only_text(invoke, tmp_path):
    (tmp_path / "hostile.toml").write_text(DISK.replace("NAME", HOSTILE.replace("'", "")))
    status, _, _ = invoke("check", tmp_path / "hostile.toml", "--out", tmp_path / "out", "--json")
    assert status == 0
    page = Page(tmp_path / "out" / "report.html")
    assert "<script>alert" not in page.text
    assert HOSTILE.replace("'", "") in page.words()
    assert len(page.scripts) == 2


def test_report_of_a_check(invoke, tmp_path):
    (tmp_path / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    status, stdout, _ = invoke("check", tmp_path / "disk.toml", "--out", tmp_path / "out", "--json")
    facts = json.loads(stdout)
    assert status == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "check.json", "condition.png"}
    assert json.loads((tmp_path / "out" / "check.json").read_text()) == facts
    page = Page(tmp_path / "out" / "report.html")
    page.check(facts)
    assert "The Cordès condition holds" in page.words()
    # The largest trace and off-diagonal entry are those at x1 = ±1: A = [[4, .5], [.5, 2]].
    worst = 36 / 20.5 - 1
    assert page.facts["epsilon"][0] == pytest.approx(worst, rel=1e-4)
    assert float(np.nanmin(page.values("epsilon")[0])) == pytest.approx(worst, rel=0.02)


def test_comparison_of_runs(runs, invoke, tmp_path):
    out = tmp_path / "both.html"
    status, stdout, _ = invoke("report", runs / "small", runs / "large", "--out", out, "--json")
    facts = json.loads(stdout)
    assert status == 0
    assert list(facts["runs"]) == ["small", "large"]
    assert facts["runs"]["large"] == json.loads((runs / "large" / "result.json").read_text())
    page = Page(out)
    # The only references are those to the runs' own reports.
    assert len(page.outside) == 2
    assert all((out.parent / way).resolve().name == "report.html" for way in page.outside)
    page.outside = []
    page.check(facts)
    better = min(facts["runs"], key=lambda name: facts["runs"][name]["error"]["l2"])
    assert f"{better} has the smallest error" in page.words()
    assert [series["name"] for series in page.data["charts"]["convergence seconds"]["series"]] == ["small", "large"]
    assert page.data["charts"]["convergence seconds"]["series"][1]["y"][-1] == facts["runs"]["large"]["residual"]
    assert page.text.count('<figure class="picture">') == 2


def test_comparison_refuses_what_is_no_run(runs, invoke, tmp_path):
    for folders, words in (
        ([runs / "small"], "two runs or more"),
        ([runs / "small", tmp_path / "nowhere"], "nowhere is no folder"),
        ([runs / "small", tmp_path], "has no result.json"),
    ):
        status, _, stderr = invoke("report", *folders, "--out", tmp_path / "page.html")
        assert status == 2
        assert words in stderr.replace("\n", " ")
    (tmp_path / "result.json").write_text("[1]")
    assert "is not the result of a solve" in invoke("report", tmp_path, tmp_path, "--out", tmp_path / "page.html")[2]
    assert not (tmp_path / "page.html").exists()


RESULT = {
    "problem": "p",
    "method": "m",
    "result": "converged",
    "parameters": 3,
    "seconds": {"solve": 1.0},
    "error": {"l2": 1e-3, "linf": 1e-2},
    "certificate": {"rms": 1e-2, "Linf": None, "map_L2": None, "level": "quadrature", "reason": None},
    "residual": 1e-4,
}


def kept(folder, **changes):
    """A folder with a result, and a report of something else beside it."""
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(RESULT | changes))
    (folder / "report.html").write_text('<script type="application/json" id="data">[1]</script>')
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seconds": None}, "seconds is no table"),
        ({"seconds": {"solve": "1"}}, "seconds.solve is no number"),
        ({"certificate": "x"}, "certificate is no table"),
        ({"certificate": {"rms": "1"}}, "certificate.rms is no number"),
        ({"residual": "x"}, "residual is no number"),
        ({"problem": ["<b>"]}, "problem is no text"),
        ({"error": [1]}, "error is no table"),
    ],
)
def test_comparison_names_the_file_with_wrong_facts(invoke, tmp_path, changes, words):
    good, bad = kept(tmp_path / "good"), kept(tmp_path / "bad", **changes)
    status, _, stderr = invoke("report", good, bad, "--out", tmp_path / "page.html")
    assert status == 2
    assert words in stderr
    assert str(bad / "result.json") in stderr
    assert "Traceback" not in stderr


def test_comparison_leaves_out_what_is_not_known(invoke, tmp_path):
    good, lost = kept(tmp_path / "good"), kept(tmp_path / "lost", error={"l2": None, "linf": None}, seconds={"solve": 0.0})
    status, _, _ = invoke("report", lost, good, "--out", tmp_path / "page.html")
    assert status == 0
    words = Page(tmp_path / "page.html").words()
    assert "good has the smallest error" in words
    assert "lost was the fastest" in words
    (lost / "result.json").write_text("[" * 100_000)
    status, _, stderr = invoke("report", lost, good, "--out", tmp_path / "page.html")
    assert status == 2
    assert "nested too deeply" in stderr


def test_comparison_links_and_names(invoke, tmp_path):
    folders = [kept(tmp_path / name) for name in ("javascript:alert(1)", "a#b 100%", "x/same", "y/same")]
    status, stdout, _ = invoke("report", *folders, "--out", tmp_path / "page.html", "--json")
    assert status == 0
    assert list(json.loads(stdout)["runs"]) == ["javascript:alert(1)", "a#b 100%", str(tmp_path / "x/same"), str(tmp_path / "y/same")]
    assert Page(tmp_path / "page.html").outside[:2] == ["./javascript%3Aalert%281%29/report.html", "./a%23b%20100%25/report.html"]


def test_comparison_overwrites_no_result(invoke, tmp_path):
    good = kept(tmp_path / "good")
    status, _, stderr = invoke("report", good, good, "--out", good / "result.json")
    assert status == 2
    assert "ends in .html" in stderr
    assert json.loads((good / "result.json").read_text()) == RESULT


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("boom")])
def test_a_fault_in_the_page_does_not_cost_the_answer(invoke, tmp_path, monkeypatch, fault):
    def fail(*_, **__):
        raise fault

    (tmp_path / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    out = tmp_path / "out"
    out.mkdir()
    # A picture of an earlier run would be taken for one of this.
    (out / "policy.png").write_text("old")
    (out / "notes.txt").write_text("mine")
    for module in ("answer", "condition"):
        monkeypatch.setattr(f"cordes.reports.html.{module}.write_page", fail)
    status, stdout, stderr = invoke("solve", tmp_path / "disk.toml", "--features", 30, "--out", out, "--json")
    facts = json.loads(stdout)
    assert status == 1
    assert facts["certificate"]["rms"] is not None
    assert "report.html could not be written" in stderr
    assert {path.name for path in out.iterdir()} == {"answer.cordes", "certificate.png", "result.json", "solution.png", "solution.vtu", "notes.txt"}
    assert json.loads((out / "result.json").read_text()) == facts
    assert str(out / "report.html") not in facts["files"]
    status, stdout, stderr = invoke("check", tmp_path / "disk.toml", "--out", tmp_path / "check", "--json")
    assert status == 1
    assert json.loads((tmp_path / "check" / "check.json").read_text()) == json.loads(stdout)
    assert "Traceback" not in stderr


def test_files_of_an_earlier_run_do_not_stay(invoke, tmp_path):
    (tmp_path / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    out = tmp_path / "out"
    out.mkdir()
    (out / "certificate.png").write_text("old")
    # Penalised boundary values have no certificate, and no picture of one.
    status, stdout, _ = invoke("solve", tmp_path / "disk.toml", "--features", 30, "--boundary", "soft", "--out", out, "--json")
    assert status in (0, 1)
    assert sorted(json.loads(stdout)["files"]) == sorted(str(path) for path in out.iterdir())
    assert not (out / "certificate.png").exists()


# Other equations ----------------------------------------------------------------------------------------------------------------------------------------


def reported(solution, path, condition=None):
    """The page of a solution, and the processor seconds that it took."""
    condition = condition or cordes.check(solution)
    facts = json.loads(as_json_text(solution_facts(solution, condition, {})))
    start = time.process_time()
    write_report(path, solution, facts, condition, ["solve", "it"])
    seconds = time.process_time() - start
    page = Page(path)
    page.check(facts)
    return page, facts, seconds


def test_missing_certificate_says_its_reason(tmp_path):
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, -1.0, name="soft")
    solution = cordes.solve(problem, method="least-squares", features=40, boundary="soft", progress=False)
    page, facts, _ = reported(solution, tmp_path / "page.html")
    assert facts["certificate"]["rms"] is None
    assert f"No bound of the error can be given: {facts['certificate']['reason']}" in page.words()
    assert "Proved" not in page.words()


def test_a_page_without_maps_is_better_than_none(tmp_path, monkeypatch):
    problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, -1.0, name="bare")
    solution = cordes.solve(problem, method="least-squares", features=40, progress=False)
    solution._certificate = Certificate(reason="not asked for")
    monkeypatch.setattr("cordes.reports.html.answer.planes_of", lambda domain: 1 / 0)
    with pytest.warns(UserWarning, match="The report has no maps: ZeroDivisionError"):
        page = Page(write_report(tmp_path / "page.html", solution))
    assert page.data["facts"]["problem"] == "bare"
    assert "The maps could not be drawn: ZeroDivisionError" in page.words()
    assert "The Cordès condition holds: ε = 1 (analytic)" in page.words()


def test_one_dimension_has_curves(tmp_path):
    problem = cordes.Linear(cordes.Box([0], [2]), lambda x: jnp.array([[1 + x[0]]]), 1.0, name="line")
    page, _, _ = reported(cordes.solve(problem, method="least-squares", features=40, progress=False), tmp_path / "page.html")
    assert page.data["maps"] == {}
    line = page.data["charts"]["u"]["series"][0]
    # (1 + x) u'' = 1, u(0) = u(2) = 0: u = (1 + x)(log(1 + x) - 1) + a + bx.
    x = np.array(line["x"])
    curve = (1 + x) * (np.log(1 + x) - 1)
    start, end = -1.0, 3 * (np.log(3) - 1)
    np.testing.assert_allclose(line["y"], curve - start - (end - start) * x / 2, atol=1e-6)
    assert "γ(x)" in page.words()


def test_line_charts_name_what_they_show(tmp_path):
    problem = cordes.HJB(cordes.Box([-1], [1]), [-1.0, 3.0], 1.0, lambda x, a: -1 + a * x[0], name="line control")
    solution = cordes.solve(problem, method="least-squares", features=30, progress=False)
    solution._certificate = Certificate(reason="not asked for")
    page, _, _ = reported(solution, tmp_path / "page.html")
    # The controls themselves, not their numbers.
    assert set(page.data["charts"]["policy a1"]["series"][0]["y"]) == {-1.0, 3.0}
    assert plain_title("best control, a<sub>12</sub>") == "best control, a₁₂"
    map_ = cordes.Transport(cordes.Box([0], [1]), 1.0, cordes.Box([0], [2]), 0.5, exact=lambda x: 2 * x, name="line map")
    solution = cordes.solve(map_, method="least-squares", features=20, progress=False)
    solution._certificate = Certificate(reason="not asked for")
    page, _, _ = reported(solution, tmp_path / "page.html")
    assert page.data["charts"]["error"]["series"][0]["name"] == "|T − T*|"
    assert "&lt;su" not in page.text


def test_control_problem_has_its_policy(tmp_path):
    problem = cordes.HJB(cordes.Ball([0, 0], 1), [-1.0, 1.0], 1.0, lambda x, a: -1 + a * x[0], name="steered")
    solution = cordes.solve(problem, method="least-squares", features=60, progress=False)
    # What is drawn is what is tested; the certificate of control problems has tests of its own.
    solution._certificate = Certificate(reason="not asked for")
    page, _, _ = reported(solution, tmp_path / "page.html")
    # The largest of Δu + 1 - a x1 over a = ±1 is that of a = -sign(x1).
    values, points = page.values("policy")
    inside = np.isfinite(values) & (np.abs(points[..., 0]) > 1e-3)
    assert page.data["maps"]["policy"]["categories"] == ["a = -1", "a = 1"]
    np.testing.assert_array_equal(values[inside], np.where(points[..., 0] > 0, 0, 1)[inside])
    assert "sup" in page.words()


def test_transport_has_its_grid(tmp_path):
    problem = cordes.Transport(
        cordes.Box([0, 0], [1, 1]), 1.0, cordes.Box([0, 0], [2, 1]), 0.5, exact=lambda x: jnp.array([2.0, 1.0]) * x, name="stretch"
    )
    solution = cordes.solve(problem, method="least-squares", features=40, progress=False)
    solution._certificate = Certificate(reason="not asked for")
    page, facts, _ = reported(solution, tmp_path / "page.html")
    assert page.text.count("<polyline") == 100
    values, points = page.values("moved")
    np.testing.assert_allclose(values, points[..., 0], atol=1e-5)
    np.testing.assert_allclose(page.values("target")[0], 0.5, rtol=1e-5)
    assert page.facts["transport.W2"] == [facts["transport"]["W2"]]
    assert facts["transport"]["W2"] == pytest.approx(3**-0.5, rel=1e-6)
    # The exact solution of a transport problem is a map, in the file for ParaView too.
    assert solution.to_vtk(tmp_path / "map.vtu").is_file()


def test_three_dimensions_have_slices_in_time(tmp_path):
    problem = cordes.Linear(cordes.Ball([0, 0, 0], 1), 1.0, 6.0, exact=lambda x: jnp.dot(x, x) - 1, name="ball")
    solution = cordes.solve(problem, method="least-squares", features=60, progress=False)
    solution._certificate = Certificate(reason="not asked for")
    page, _, seconds = reported(solution, tmp_path / "page.html")
    assert {"u 1", "u 2", "u 3", "epsilon 1"} <= page.data["maps"].keys()
    assert page.data["maps"]["u 3"]["names"] == ["x₂", "x₃"]
    values, points = page.values("u 3")
    inside = np.isfinite(values)
    np.testing.assert_allclose(values[inside], (np.sum(points**2, axis=-1) - 1)[inside], atol=1e-4)
    # Nothing but the jet was compiled for it.
    assert seconds < 6
