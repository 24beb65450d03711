"""The pages of studies: sentences that follow from the numbers whichever way they fall, the paper's
rows beside ours, and the committed results."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from cordes.cli import run
from cordes.gallery.paper_tables import TABLES
from cordes.reports.kit.drawings import PlotCurve, curves
from cordes.studies.command import compare
from cordes.studies.pages.study import milestone_grid, spread, write_all_report, write_study_report
from cordes.studies.pages.words import (
    correlation_sentences,
    overall_sentence,
    speed_sentence,
    verdicts,
)

RESULTS = Path(__file__).parents[2] / "docs" / "reproduction"


def plain(markup):
    return re.sub(r"<[^>]+>", "", markup).replace("\u202f", "")


@pytest.fixture(scope="module")
def studies():
    return {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in TABLES
    }


def ratio(ratios, median):
    return {"rival": "PINN", "target": 1e-3, "ratios": ratios, "median": median}


@pytest.mark.parametrize(
    ("ratios", "median", "said"),
    [
        (
            [1.5, 2.0, 3.0],
            2.0,
            "C-PINN is faster than PINN: PINN takes 2 times the epochs of C-PINN",
        ),
        ([0.5, 2.0, 3.0], 2.0, "C-PINN is faster than PINN, though not in every seed"),
        ([0.4, 0.5, 0.6], 0.5, "C-PINN is slower than PINN: PINN takes 0.5 times"),
        ([0.9, 1.05, 2.0], 1.05, "C-PINN and PINN are equally fast"),
        (
            [None, None, 3.0],
            None,
            (
                "most seeds of PINN never come to an l2 error of 0.001; C-PINN is ahead in 3 of 3 "
                "seeds"
            ),
        ),
        ([None, 2.0, 0.5], 2.0, "0.5 to 2, or never"),
    ],
)
def test_who_is_faster(ratios, median, said):
    assert said in plain(speed_sentence(ratio(ratios, median)))


def test_all_problems_in_one_sentence():
    rows = [ratio([], median) for median in (None, 2.0, 1.05, 0.95, 0.5)] + [
        ratio([], 9.0) | {"rival": "PINN-Newton"}
    ]
    assert plain(overall_sentence(rows)) == (
        "C-PINN takes fewer epochs than PINN on 2 of 5 problems, as many on 2 (within 10 %) "
        "and more on 1."
    )


def test_verdicts_about_the_paper_are_counted(studies):
    """Four rows: one with fewer epochs than the paper, one with more, one that only the paper
    meets, one that only we meet."""
    facts = dict(studies["ex4.2-continuous"])
    rows = [
        (100, [90, 80, 95]),
        (100, [200, 210, 90]),
        (100, [50, None, None]),
        (None, [10, 10, 10]),
    ]
    facts["milestones"] = [
        {
            "target": 1e-3,
            "method": "C-PINN",
            "paper": {"epochs": paper, "seconds": 1.0, "l2": 1e-3, "linf": 1e-2, "newton": None},
            "epochs": ours,
        }
        for paper, ours in rows
    ]
    said = plain(verdicts(facts)[1])
    assert said.startswith(
        "Of 4 rows of the paper's table our median takes no more epochs in 1 and more in 1;"
    )
    assert (
        "1 that the paper meets our median does not; 1 that the paper does not meet our median does"
        in said
    )


def test_verdicts_turn_with_the_numbers(studies):
    facts = json.loads(json.dumps(studies["ex4.2-continuous"]))
    assert "held in all" in plain(" ".join(verdicts(facts)))
    facts["contraction"]["PINN"]["exceeded"] = 3
    facts["conditioning"]["end"]["PINN"]["kappa_10"] = (
        10 * facts["conditioning"]["end"]["C-PINN"]["kappa_10"]
    )
    facts["speed_up"] = []
    said = plain(" ".join(verdicts(facts)))
    assert "in 3 of" in said
    assert "improves the conditioning" in said
    assert "No target was met by half of the seeds" in said


def test_correlations_are_judged():
    found = {
        "all": {"problems": 8, "variation": 0.7, "gain": 0.2},
        "rest": {"problems": 6, "variation": None, "gain": -0.9},
    }
    said = [plain(sentence) for sentence in correlation_sentences(found)]
    assert [
        re.findall("goes with|goes against|does not follow", sentence)[0] for sentence in said
    ] == [
        "goes with",
        "does not follow",
        "goes against",
    ]


def test_a_spread_is_median_and_range():
    assert plain(spread([30, 10, 20])) == "2010–30"
    assert plain(spread([30, None, 20])) == "3020–30, 2 of 3"
    assert plain(spread([None, None, 20])) == "not reached20–20, 1 of 3"
    assert plain(spread([None, None])) == "not reached"
    assert 'data-value="0.25"' in spread([0.25, 0.25])


def test_the_table_has_a_row_for_each_of_the_paper(studies):
    facts = studies["ex4.5-hjb"]
    rows = re.findall(r"<tr>(.*?)</tr>", milestone_grid(facts))[1:]
    assert len(rows) == len(facts["milestones"])
    cells = [plain(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", rows[0])]
    assert cells[:4] == ["0.001", "C-PINN", "1010", "44203880–7420"]
    assert cells[4:6] == ["2", "5"]


def test_curves_are_drawn_where_they_are():
    """A decade is as long as the next one: 10 lies in the middle between 1 and 100, up and
    across."""
    drawn = curves([PlotCurve("one", [1, 10, 100], [1.0, 10.0, 100.0])], "x", "y")
    points = [
        [float(part) for part in pair.split(",")]
        for pair in re.findall(r'points="([^"]*)"', drawn)[0].split()
    ]
    assert points[1][0] == pytest.approx((points[0][0] + points[2][0]) / 2, abs=0.1)
    assert points[1][1] == pytest.approx((points[0][1] + points[2][1]) / 2, abs=0.1)
    assert points[0][1] > points[2][1]
    tips = re.findall(r'data-tip="([^"]*)"', drawn)
    assert tips == ["x 1\none 1.00e+00", "x 10\none 1.00e+01", "x 100\none 1.00e+02"]


def test_pages_of_the_committed_results(studies, tmp_path):
    """Every number of the tables is one of the file, and every page is small."""
    for name, facts in studies.items():
        folder = tmp_path / name
        folder.mkdir()
        for figure in ("error", "dynamics"):
            shutil.copy(RESULTS / f"{name}-{figure}.png", folder / f"{figure}.png")
        page = write_study_report(folder / "report.html", facts, folder, ["study", name])
        content = page.read_text(encoding="utf-8")
        assert page.stat().st_size < 3e6
        assert content.count("data:image/png;base64,") == 2
        shown = {
            float(value)
            for value in re.findall(r'data-value="([^"]*)"', content)
            if value != "null"
        }
        assert shown <= numbers(facts) | {len(facts["seeds"])}
        assert {facts["auto"]["l2"], facts["multiplier"]["max"]} <= shown
    start = time.process_time()
    together = {**compare(studies), "studies": list(studies.values()), "files": []}
    page = write_all_report(tmp_path / "report.html", together, tmp_path, ["study", "--all"])
    assert time.process_time() - start < 3
    content = page.read_text(encoding="utf-8")
    assert all(
        f'href="#{name.replace(".", "-")}"' in content and f'href="{name}/report.html"' in content
        for name in studies
    )


def numbers(value):
    """All numbers in nested facts."""
    if isinstance(value, dict):
        return set().union(*(numbers(entry) for entry in value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*(numbers(entry) for entry in value)) if value else set()
    return (
        {float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else set()
    )


def test_a_finished_study_gets_its_page(studies, tmp_path, capsys):
    """The command writes the page of a study that was judged before."""
    folder = tmp_path / "ex4.2-continuous"
    folder.mkdir()
    (folder / "study.json").write_text(json.dumps(studies["ex4.2-continuous"]), encoding="utf-8")
    assert run(["study", "ex4.2-continuous", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "ex4.2-continuous"
    content = (folder / "report.html").read_text(encoding="utf-8")
    assert f"cordes study ex4.2-continuous --seeds 5 --epochs 40000 --out {tmp_path}" in content
