"""From a surface to flat coordinates that keep areas, with networks and with cosine transforms side
by side."""

import json

import numpy as np
import pytest

import cordes
from cordes.cli import run
from cordes.surfaces import flatten as module
from cordes.surfaces.files import read_mesh
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.mesh import Mesh

FEW = (module.TransportPass(32, 1.5, 250, 4),)


@pytest.fixture(scope="module")
def small():
    return folded_surface(folds=2, depth=0.8, columns=30, rows=20)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "PASSES", FEW)
    monkeypatch.setattr(module, "CORRECTION", FEW)


def test_areas_get_even(small, quick):
    """The network alone evens out the areas, and the best map is no worse than any other."""
    said = []
    found = module.flatten(small, say=said.append)
    deviations = {name: flat.distortion.area_faces.deviation for name, flat in found.maps.items()}
    assert set(deviations) == {"conformal", "dct", "network", "dct + network"}
    assert deviations["network"] < 0.4 * deviations["conformal"]
    assert deviations[found.best] == min(deviations.values())
    assert deviations["dct + network"] <= deviations["dct"]
    for flat in found.maps.values():
        assert flat.distortion.flipped == 0
        assert flat.distortion.rim <= 1e-12
        assert np.all((flat.uv >= 0) & (flat.uv <= found.size + 1e-12))
    assert any("network" in line for line in said)


def test_a_pass_that_makes_it_worse_is_not_kept(small, quick, monkeypatch):
    """A map that squeezes everything to one side is thrown away."""
    monkeypatch.setattr(
        cordes.solutions.transport.TransportSolution, "map", lambda self, x: np.asarray(x) ** 6
    )
    found = module.flatten(small)
    assert found.maps["network"].distortion == found.maps["conformal"].distortion
    assert not found.maps["network"].passes[0]["kept"]


def test_command(small, quick, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("cordes.commands.surface.folded_surface", lambda: small)
    assert run(["surface", "folded", "--network", "--out", str(tmp_path / "flat"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (
        facts["maps"]["network"]["area_faces"]["deviation"]
        < facts["maps"]["conformal"]["area_faces"]["deviation"]
    )
    assert facts["faces"] == len(small.faces)
    assert (tmp_path / "flat" / "surface.png").stat().st_size > 20_000
    again = read_mesh(tmp_path / "flat" / "surface.obj")
    np.testing.assert_allclose(again.vertices, small.vertices, atol=1e-12)
    assert json.loads((tmp_path / "flat" / "report.json").read_text())["best"] == facts["best"]
    assert run(["surface", "folded"]) == 0
    assert "SD faces" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["surface", "no-such-file.obj"], "no-such-file.obj"),
        (["surface", "folded", "--corners", "1", "2", "3", "999999"], "999999"),
        (["surface", "folded", "--corners", "1", "1", "2", "3"], "corner"),
    ],
)
def test_bad_input(arguments, message, capsys):
    assert run([*arguments, "--json"]) == 2
    assert message in json.loads(capsys.readouterr().out)["error"]["message"]


def test_a_closed_surface_is_refused(tmp_path, capsys):
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    from cordes.surfaces.files import write_mesh

    write_mesh(tmp_path / "closed.ply", Mesh(corners, faces))
    assert run(["surface", str(tmp_path / "closed.ply"), "--json"]) == 2
    assert "cut" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_the_surface_of_the_gallery():
    problem = cordes.gallery["ex5.2-surface"]
    solution = cordes.solve(problem, features=500)
    assert solution.pushforward.rms < 0.1
    assert solution.pushforward.eigenvalues[0] > 0
