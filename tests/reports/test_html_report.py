"""Pages of solves, checks and comparisons: self-contained, safe, and with the numbers of the JSON
beside them."""

import json

import numpy as np
import pytest
from report_page import DISK, HOSTILE, Page

from cordes import cli


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs of one problem, made by the command line."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    for name, features in (("small", 30), ("large", 60)):
        assert cli.run(
            [
                "solve",
                str(folder / "disk.toml"),
                "--features",
                str(features),
                "--out",
                str(folder / name),
            ]
        ) in (0, 1)
    return folder


def test_report_of_a_solve(runs):
    page, facts = (
        Page(runs / "large" / "report.html"),
        json.loads((runs / "large" / "result.json").read_text()),
    )
    page.check(facts)
    # The page is one of the files: it cannot know what they took.
    seconds = {k: v for k, v in facts["seconds"].items() if k not in ("files", "total")}
    assert page.data["facts"] == facts | {"seconds": seconds}
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
        "level: enclosed",
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
    np.testing.assert_allclose(
        page.values("epsilon")[0][inside], (trace**2 / square - 1)[inside], rtol=1e-6
    )
    np.testing.assert_allclose(
        page.values("multiplier")[0][inside], (trace / square)[inside], rtol=1e-6
    )
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
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.html",
        "check.json",
        "condition.png",
    }
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
    assert [series["name"] for series in page.data["charts"]["convergence seconds"]["series"]] == [
        "small",
        "large",
    ]
    assert (
        page.data["charts"]["convergence seconds"]["series"][1]["y"][-1]
        == facts["runs"]["large"]["residual"]
    )
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
    assert (
        "is not the result of a solve"
        in invoke("report", tmp_path, tmp_path, "--out", tmp_path / "page.html")[2]
    )
    assert not (tmp_path / "page.html").exists()


RESULT = {
    "problem": "p",
    "method": "m",
    "result": "converged",
    "parameters": 3,
    "seconds": {"solve": 1.0},
    "error": {"l2": 1e-3, "linf": 1e-2},
    "certificate": {
        "rms": 1e-2,
        "Linf": None,
        "map_L2": None,
        "level": "quadrature",
        "reason": None,
    },
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
    good, lost = (
        kept(tmp_path / "good"),
        kept(tmp_path / "lost", error={"l2": None, "linf": None}, seconds={"solve": 0.0}),
    )
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
    folders = [
        kept(tmp_path / name) for name in ("javascript:alert(1)", "a#b 100%", "x/same", "y/same")
    ]
    status, stdout, _ = invoke("report", *folders, "--out", tmp_path / "page.html", "--json")
    assert status == 0
    assert list(json.loads(stdout)["runs"]) == [
        "javascript:alert(1)",
        "a#b 100%",
        str(tmp_path / "x/same"),
        str(tmp_path / "y/same"),
    ]
    assert Page(tmp_path / "page.html").outside[:2] == [
        "./javascript%3Aalert%281%29/report.html",
        "./a%23b%20100%25/report.html",
    ]


def test_comparison_overwrites_no_page_of_others(invoke, tmp_path):
    good, page = kept(tmp_path / "good"), tmp_path / "page.html"
    page.write_text("<html>mine</html>")
    status, _, stderr = invoke("report", good, good, "--out", page)
    assert (status, page.read_text()) == (2, "<html>mine</html>")
    assert "not written by cordes" in stderr
    page.unlink()
    for _ in range(2):
        assert invoke("report", good, good, "--out", page)[0] == 0


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
    earlier_run(out, "policy.png")
    (out / "notes.txt").write_text("mine")
    for module in ("answer", "condition"):
        monkeypatch.setattr(f"cordes.reports.pages.{module}.write_page", fail)
    status, stdout, stderr = invoke(
        "solve", tmp_path / "disk.toml", "--features", 30, "--out", out, "--overwrite", "--json"
    )
    facts = json.loads(stdout)
    assert status == 1
    assert facts["certificate"]["rms"] is not None
    assert "report.html could not be written" in stderr
    assert {path.name for path in out.iterdir()} == {
        "answer.cordes",
        "certificate.png",
        "result.json",
        "solution.png",
        "solution.vtu",
        "notes.txt",
    }
    assert json.loads((out / "result.json").read_text()) == facts
    assert str(out / "report.html") not in facts["files"]
    status, stdout, stderr = invoke(
        "check", tmp_path / "disk.toml", "--out", tmp_path / "check", "--json"
    )
    assert status == 1
    assert json.loads((tmp_path / "check" / "check.json").read_text()) == json.loads(stdout)
    assert "Traceback" not in stderr


def earlier_run(folder, picture):
    """A picture of an earlier run would be taken for one of the next."""
    (folder / picture).write_text("old")
    (folder / "result.json").write_text(json.dumps({"files": [str(folder / picture)]}))


def test_files_of_an_earlier_run_do_not_stay(invoke, tmp_path):
    (tmp_path / "disk.toml").write_text(DISK.replace("NAME", "disk"))
    out = tmp_path / "out"
    out.mkdir()
    earlier_run(out, "certificate.png")
    # Penalised boundary values have no certificate, and no picture of one.
    status, stdout, _ = invoke(
        "solve",
        tmp_path / "disk.toml",
        "--features",
        30,
        "--boundary",
        "soft",
        "--out",
        out,
        "--overwrite",
        "--json",
    )
    assert status in (0, 1)
    assert sorted(json.loads(stdout)["files"]) == sorted(str(path) for path in out.iterdir())
    assert not (out / "certificate.png").exists()
