"""The page on the reproduction: its tables are those of its result files, and its figures are there
and can be looked at."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cordes.errors import CordesError
from cordes.gallery.paper_tables import TABLES

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import reproduction_tables as reproduction  # noqa: E402
from reproduction_tables import milestone_table, refresh, shrink  # noqa: E402

DOCUMENT, RESULTS = ROOT / reproduction.DOCUMENT, ROOT / reproduction.RESULTS


@pytest.fixture(scope="module")
def facts():
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in TABLES}


def test_every_number_of_the_tables_comes_from_the_results():
    text = DOCUMENT.read_text()
    assert refresh(DOCUMENT, RESULTS) == text
    marks = set(re.findall(r"<!-- table (\S+) -->", text))
    assert (
        set(TABLES)
        | {"speed", "control", "conditioning", "contraction", "dynamics", "landscape", "lift"}
        == marks
    )


def test_a_table_has_a_row_for_each_target_and_method(facts):
    lines = milestone_table(facts["ex4.6-monge-ampere"]).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + 4 * 3
    assert "Newton steps" in rows[0]
    assert "| 5e-05 | C-PINN | 28590 |" in rows[-3]
    assert "| 5e-05 | PINN | not reached |" in rows[-2]
    assert [line.split()[1] for line in lines if line.startswith("- ")] == [
        "C-PINN",
        "PINN",
        "PINN-Newton",
    ]


def test_runs_are_long_enough_and_on_enough_seeds(facts):
    for name, study in facts.items():
        assert len(study["seeds"]) >= (3 if name.startswith("ex4.3") else 5)
        last = study["milestones"][-1]["target"]
        for final in study["final"].values():
            ended = [
                epochs == 40_000 or l2 <= last
                for epochs, l2 in zip(final["epochs"], final["l2"], strict=True)
            ]
            assert all(ended), name
        assert all("H200" in device for device in study["devices"])
        assert all(
            cost["ms_per_epoch_and_seed"] < (0.7 if name == "ex4.3-cube5" else 0.5)
            for cost in study["cost"].values()
        )


def test_the_verdicts_rest_on_the_results(facts):
    """The statements of the page that a new run could overturn."""
    ratio = {name: study["speed_up"][0]["median"] for name, study in facts.items()}
    assert min(ratio["ex4.1-smooth"], ratio["ex4.1-singular"]) > 2
    for name in ("ex4.2-discontinuous", "ex4.3-cube5"):
        assert facts[name]["multiplier"]["variation"] < 1e-9
        assert ratio[name] == pytest.approx(1, abs=0.1)
    assert all(
        found["exceeded"] == 0
        for study in facts.values()
        for found in study["contraction"].values()
    )
    direct = [row for row in facts["ex4.6-monge-ampere"]["milestones"] if row["method"] == "PINN"][
        -1
    ]
    assert None not in direct["epochs"]
    inside = facts["ex4.6-monge-ampere"]["speed_up"][1]
    assert inside["rival"] == "PINN-Newton"
    assert min(inside["ratios"]) > 1.2
    start = {
        key: facts["ex4.2-discontinuous"]["curves"][key]["sharpness"][0]
        for key in ("C-PINN", "PINN")
    }
    assert start["C-PINN"] / start["PINN"] == pytest.approx(0.16, rel=0.02)
    kappa = {key: one["kappa_10"] for key, one in facts["ex4.5-hjb"]["conditioning"]["end"].items()}
    assert kappa["C-PINN"] > kappa["PINN"]
    # Landscapes of ex4.5: no measure separates C-PINN from both rivals.
    over = {
        method: found["directions"] for method, found in facts["ex4.5-hjb"]["landscape"].items()
    }
    for measure in ("curvature_ratio", "sharpness", "nonconvex", "decades"):
        _, low, high = over["C-PINN"][measure]
        assert any(
            low <= over[rival][measure][2] and over[rival][measure][1] <= high
            for rival in ("PINN", "PINN-Newton")
        )
    met = {
        name: all(None not in row["epochs"] for row in study["milestones"][-len(study["final"]) :])
        for name, study in facts.items()
    }
    assert sorted(name for name, everyone in met.items() if everyone) == [
        "ex4.2-continuous",
        "ex4.3-ellipsoid",
        "ex4.6-monge-ampere",
    ]
    beyond = {
        name: study["milestones"][-1]["target"] / study["auto"]["l2"]
        for name, study in facts.items()
    }
    assert min(ratio for name, ratio in beyond.items() if name != "ex4.3-cube5") > 1e4
    assert beyond["ex4.3-cube5"] > 2


def test_figures_are_there_and_not_blank():
    names = re.findall(r"\]\((reproduction/[^)]+\.png)\)", DOCUMENT.read_text())
    assert len(names) > 20
    for name in names:
        path = DOCUMENT.parent / name
        assert path.stat().st_size < 400_000
        with Image.open(path) as picture:
            assert len(picture.convert("RGB").getcolors(picture.width * picture.height) or ()) > 20


def test_an_unknown_mark_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- table ex4.2-continuos -->\n<!-- end -->\n")
    with pytest.raises(CordesError, match=r"Did you mean ex4\.2-continuous"):
        refresh(page, RESULTS)


def test_shrinking_keeps_the_picture(tmp_path):
    ramp = np.tile(np.linspace(0, 255, 3000).astype(np.uint8)[None, :, None], (40, 1, 3))
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    shrink(tmp_path / "ramp.png", tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as picture:
        assert picture.width == reproduction.WIDTH
        small = np.asarray(picture.convert("RGB"), float)
    assert np.max(np.abs(small[10, :, 0] - np.linspace(0, 255, reproduction.WIDTH))) < 6
