"""The page of a surface: what the turning view is sent, what is moved, and what stands on the
page."""

import base64
import json
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from cordes.cli import run
from cordes.reports.kit.drawings import histogram, percent
from cordes.surfaces.conformal import flat_areas
from cordes.surfaces.distortion import measure
from cordes.surfaces.files import read_mesh
from cordes.surfaces.flatten import FlatSurface, Flattened, flatten
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.pages import plots as surface_plots
from cordes.surfaces.pages.plots import plot_surface, star_ratios, thinned, view_data
from cordes.surfaces.pages.surface import (
    map_labels,
    moved,
    off_by,
    write_surface_report,
)
from cordes.surfaces.topology import prepare

MESHES = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def found():
    """A small folded sheet, without networks."""
    return flatten(folded_surface(folds=2, depth=1.2, columns=30, rows=20), network=False)


@pytest.fixture
def coarse(monkeypatch):
    """Pictures of few pixels: they are tested elsewhere."""
    monkeypatch.setattr(surface_plots, "PIXELS", 200)


def facts_of(found, mesh="folded"):
    return {"mesh": mesh, **found.as_data(), "moved": moved(found), "seed": 0, "files": []}


def written(found, path, mesh="folded"):
    figure = plot_surface(found.disk, found.shown, found.size)
    return write_surface_report(path, found, facts_of(found, mesh), figure, ["surface", mesh])


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def test_the_view_is_sent_the_surface(found):
    """Positions, flat coordinates and area ratios come back to within the rounding of two bytes,
    distances being those of the mesh."""
    mesh = found.disk.mesh
    maps = found.shown
    view = view_data(found.disk, maps, map_labels(list(maps), found.best), found.size)
    positions = unpacked(view["positions"], "<i2").reshape(-1, 3) / 32767
    assert np.max(np.linalg.norm(positions, axis=1)) == pytest.approx(1, abs=1e-4)
    pairs = np.random.default_rng(0).integers(0, len(mesh.vertices), (500, 2))
    there, here = (
        np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
        for points in (mesh.vertices, positions)
    )
    scale = np.sum(there * here) / np.sum(here**2)
    np.testing.assert_allclose(here * scale, there, atol=2e-4)
    normals = unpacked(view["normals"], "i1").reshape(-1, 3) / 127
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=0.02)
    np.testing.assert_array_equal(unpacked(view["faces"], "<u2").reshape(-1, 3), mesh.faces)
    for sent in view["maps"]:
        uv = unpacked(sent["uv"], "<u2").reshape(-1, 2) / 65535 * found.size
        np.testing.assert_allclose(uv, found.maps[sent["name"]].uv, atol=1e-5)
        # The ratio of one vertex by hand: the areas of the faces that have it as a corner.
        around = np.any(mesh.faces == 100, axis=1)
        flat, areas = flat_areas(found.maps[sent["name"]].uv, mesh.faces), mesh.areas
        ratio = np.log(
            np.sum(flat[around]) / np.sum(flat) / (np.sum(areas[around]) / np.sum(areas))
        )
        assert unpacked(sent["ratio"], "<i2")[100] / 1000 == pytest.approx(ratio, abs=1e-3)
    assert [sent["label"] for sent in view["maps"]] == ["conformal", "area-preserving (dct)"]


def test_a_large_surface_is_thinned_without_holes():
    """The kept faces cover the square once: their signed areas add up to it, and few of them are
    turned over."""
    mesh = folded_surface(folds=1, depth=0.1, columns=120, rows=100)
    square = (mesh.vertices[:, :2] - np.min(mesh.vertices[:, :2], axis=0)) / np.ptp(
        mesh.vertices[:, :2], axis=0
    )
    kept, faces = thinned(mesh, square, 3000)
    assert 2000 < len(kept) <= 3000
    assert np.max(faces) < len(kept)
    areas = flat_areas(square[kept], faces)
    assert np.sum(areas) == pytest.approx(np.sum(flat_areas(square, mesh.faces)), rel=0.06)
    assert np.mean(areas <= 0) < 0.02
    everything, same = thinned(mesh, square, 10**6)
    assert len(everything) == len(mesh.vertices)
    assert same is mesh.faces


def test_what_is_moved_is_a_distance():
    """A map that is the conformal one shifted by (0.3, 0.4) moves everything by one half."""
    disk = prepare(folded_surface(folds=1, depth=0.5, columns=12, rows=8))
    uv = np.random.default_rng(1).random((len(disk.mesh.vertices), 2))
    maps = {
        name: Flattened(name, uv + shift, measure(disk, uv, np.ones(2)), 0.0)
        for name, shift in (("conformal", 0.0), ("dct", [0.3, 0.4]))
    }
    assert moved(FlatSurface(disk, np.ones(2), np.arange(4), maps, "dct")) == {
        "dct": pytest.approx(0.5)
    }


def test_words_for_ratios():
    assert off_by(np.log(1.04)) == "4 %"
    assert off_by(np.log(2.8)) == "a factor of 2.8"
    assert [percent(share) for share in (0, 5e-4, 0.034, 0.7)] == [
        "0 %",
        "below 0.1 %",
        "3.4 %",
        "70 %",
    ]


def test_a_histogram_counts_everything():
    """Weights, and values beyond the edges."""
    drawn = histogram(
        np.array([-5.0, 0.5, 1.5, 9.0]),
        np.array([1.0, 1.0, 1.0, 5.0]),
        np.array([0.0, 1.0, 2.0]),
        [(1.0, "1")],
        "x",
        ["low", "high"],
    )
    assert re.findall(r'data-tip="([^"]*)"', drawn) == [
        "low: 25 % of the surface",
        "high: 75 % of the surface",
    ]


def test_labels_follow_the_best_map():
    assert map_labels(["conformal", "network", "dct"], "dct") == {
        "conformal": "conformal",
        "network": "network",
        "dct": "area-preserving (dct)",
    }
    assert map_labels(["conformal", "network"], "conformal") == {
        "conformal": "conformal",
        "network": "network",
    }


def test_the_page_holds_the_numbers(found, coarse, tmp_path):
    page = written(found, tmp_path / "report.html", mesh="<script>alert(1)</script>.obj").read_text(
        encoding="utf-8"
    )
    assert "<script>alert" not in page
    facts = facts_of(found)
    shown = {float(value) for value in re.findall(r'data-value="([^"]*)"', page) if value != "null"}
    for name in ("conformal", "dct"):
        report = facts["maps"][name]
        assert {
            report["area_faces"]["deviation"],
            report["angle_mean"],
            report["beltrami_max"],
            report["seconds"],
        } <= shown
    assert facts["moved"]["dct"] in shown
    assert "No face is turned over" in page
    assert page.count("data:image/webp;base64,") == 6
    weighted = facts["maps"]["dct"]["area_faces"]["weighted_mean"]
    assert f"to within {100 * np.expm1(weighted):.2g} %" in page


def test_the_command_writes_the_page(coarse, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "cordes.surfaces.folded.folded_surface",
        lambda: folded_surface(folds=2, depth=0.8, columns=30, rows=20),
    )
    assert run(["surface", "folded", "--seed", "3", "--out", str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    path = tmp_path / "report.html"
    assert str(path) in facts["files"]
    assert f"cordes surface folded --seed 3 --out {tmp_path}" in path.read_text(encoding="utf-8")
    embedded = re.search(
        r'<script type="application/json" id="data">(.*?)</script>',
        path.read_text(encoding="utf-8"),
    )
    assert embedded is not None
    assert (
        json.loads(embedded[1])["facts"]
        == json.loads((tmp_path / "report.json").read_text())
        == facts
    )


@pytest.mark.parametrize("name", ["chinese_lion", "human_brain"])
def test_pages_of_real_surfaces_are_small_and_quick(name, coarse, tmp_path):
    """The flat maps are shadows here, made in no time: what the page weighs and how long it takes
    depends on the mesh alone."""
    path = MESHES / f"{name}.mat"
    if not path.exists():
        pytest.skip(f"{path} is not there: the page of this surface was not tried")
    disk = prepare(read_mesh(path))
    shadow = disk.mesh.vertices[:, :2]
    uv = (shadow - np.min(shadow, axis=0)) / np.ptp(shadow, axis=0)
    maps = {
        each: Flattened(each, uv, measure(disk, uv, np.ones(2)), 1.0)
        for each in ("conformal", "network", "dct")
    }
    made = FlatSurface(disk, np.ones(2), disk.loop[:4], maps, "dct")
    figure = plot_surface(disk, {each: flat.uv for each, flat in maps.items()}, made.size)
    start = time.process_time()
    page = write_surface_report(
        tmp_path / "report.html", made, facts_of(made), figure, ["surface", str(path)]
    )
    assert time.process_time() - start < 3 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert page.stat().st_size < 6e6


def test_ratios_average_to_one(found):
    """exp of the log ratios, weighted with the stars' areas, is the total of the flat areas: 1."""
    mesh = found.disk.mesh
    stars = np.bincount(mesh.faces.ravel(), np.repeat(mesh.areas, 3), len(mesh.vertices))
    assert np.sum(np.exp(star_ratios(mesh, found.maps["dct"].uv)) * stars) / np.sum(
        stars
    ) == pytest.approx(1)
