"""Surfaces: files in all formats, and broken ones."""

import meshio
import numpy as np
import pytest
import scipy.io
import scipy.spatial
from surface_meshes import TETRAHEDRON, cap

from cordes.errors import FileError, OptionError
from cordes.surfaces import (
    SurfaceError,
    prepare,
    read_mesh,
    write_mesh,
)


@pytest.mark.parametrize("suffix", ["obj", "ply"])
def test_written_and_read(tmp_path, suffix):
    mesh = cap(5, 1.0)
    uv = np.random.default_rng(0).uniform(size=(len(mesh.vertices), 2))
    path = write_mesh(tmp_path / f"cap.{suffix}", mesh, uv)
    again = read_mesh(path)
    assert np.array_equal(again.vertices, mesh.vertices)
    assert np.array_equal(again.faces, mesh.faces)
    data = meshio.read(path).point_data
    stored = data["obj:vt"] if suffix == "obj" else np.stack([data["s"], data["t"]], axis=1)
    assert np.array_equal(stored, uv)
    if suffix == "obj":
        a, b, c = mesh.faces[0] + 1
        assert f"f {a}/{a} {b}/{b} {c}/{c}" in path.read_text()


def test_other_formats_are_read(tmp_path):
    mesh = cap(4, 1.0)
    numbers = (mesh.faces + 1).astype(np.uint16)
    scipy.io.savemat(tmp_path / "cap.mat", {"v": mesh.vertices, "f": numbers})
    meshio.Mesh(mesh.vertices, [("triangle", mesh.faces)]).write(tmp_path / "cap.off")
    for name in ("cap.mat", "cap.off"):
        again = read_mesh(tmp_path / name)
        assert np.array_equal(again.faces, mesh.faces)
        assert np.allclose(again.vertices, mesh.vertices, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("binary", [True, False])
def test_stl_vertices_are_merged(tmp_path, binary):
    mesh = cap(4, 1.0)
    path = tmp_path / "cap.stl"
    meshio.stl.write(
        str(path), meshio.Mesh(mesh.vertices, [("triangle", mesh.faces)]), binary=binary
    )
    again = read_mesh(path)
    assert len(again.vertices) == len(mesh.vertices)
    assert np.sum(again.areas) == pytest.approx(np.sum(mesh.areas), rel=1e-6)
    assert len(prepare(again).loop) == len(prepare(mesh).loop) == 24


def test_quads_become_triangles(tmp_path):
    path = tmp_path / "square.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1 4/1\n")
    mesh = read_mesh(path)
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert np.sum(mesh.areas) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.obj",
            "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 7\n",
            r"Face 0 refers to the vertices \[0, 1, 6\]",
        ),
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\n", "negative"),
        ("a.obj", "v 0 0 0\nv 1 0 0\n", "no faces"),
        ("a.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "finite"),
        ("a.off", "OFX\n1 2 3\n", "cannot be read as OFF"),
        ("a.ply", "nonsense", "cannot be read as PLY"),
        ("a.stl", "nonsense", "STL|no faces"),
        ("a.mat", "nonsense", "cannot be read as MAT"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(FileError, match=message):
        read_mesh(path)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileError, match="no file"):
        read_mesh(tmp_path / "missing.obj")
    with pytest.raises(OptionError, match=r"no mesh format '\.xyz'"):
        read_mesh(tmp_path / "cloud.xyz")
    scipy.io.savemat(tmp_path / "other.mat", {"v": np.zeros((3, 3))})
    with pytest.raises(FileError, match="no f"):
        read_mesh(tmp_path / "other.mat")
    with pytest.raises(OptionError, match="format"):
        write_mesh(tmp_path / "a.stl", TETRAHEDRON)
    with pytest.raises(SurfaceError, match="4 vertices"):
        write_mesh(tmp_path / "a.obj", TETRAHEDRON, np.zeros((5, 2)))
