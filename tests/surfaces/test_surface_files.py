"""Surfaces: files in all formats, and broken ones."""

import sys

import numpy as np
import pytest
import scipy.io
import scipy.spatial
import trimesh
from surface_meshes import TETRAHEDRON, cap

from cordes.errors import FileError, MemoryLimitError
from cordes.surfaces import (
    Mesh,
    SurfaceError,
    matlab,
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
    if suffix == "obj":
        lines = [line.split()[1:] for line in path.read_text().splitlines() if line[:2] == "vt"]
        stored = np.array(lines, dtype=np.float64)
    else:
        data = trimesh.load(path, process=False).metadata["_ply_raw"]["vertex"]["data"]
        stored = np.stack([data["s"], data["t"]], axis=1)
    assert np.array_equal(stored, uv)
    if suffix == "obj":
        a, b, c = mesh.faces[0] + 1
        assert f"f {a}/{a} {b}/{b} {c}/{c}" in path.read_text()


def test_other_formats_are_read(tmp_path):
    mesh = cap(4, 1.0)
    numbers = (mesh.faces + 1).astype(np.uint16)
    scipy.io.savemat(tmp_path / "cap.mat", {"v": mesh.vertices, "f": numbers})
    rows = [f"{x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    rows += [f"3 {a} {b} {c}" for a, b, c in mesh.faces.tolist()]
    counts = f"{len(mesh.vertices)} {len(mesh.faces)} 0"
    (tmp_path / "cap.off").write_text("\n".join(["OFF", "# a comment", "", counts, *rows]))
    for name in ("cap.mat", "cap.off"):
        again = read_mesh(tmp_path / name)
        assert np.array_equal(again.faces, mesh.faces)
        assert np.allclose(again.vertices, mesh.vertices, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("binary", [True, False])
def test_stl_vertices_are_merged(tmp_path, binary):
    mesh = cap(4, 1.0)
    path = tmp_path / "cap.stl"
    made = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    made.export(path, file_type="stl" if binary else "stl_ascii")
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
        ("a.obj", "v 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "cannot be read as OBJ"),
        ("a.off", "OFX\n1 2 3\n", "cannot be read as OFF"),
        ("a.off", "OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "OFF: it ends after 4 of 3"),
        ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1\n", "OFF: a face of 3 vertices"),
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
    with pytest.raises(FileError, match=r"not read from \.xyz\. Known: \.mat, \.obj"):
        read_mesh(tmp_path / "cloud.xyz")
    scipy.io.savemat(tmp_path / "other.mat", {"v": np.zeros((3, 3))})
    with pytest.raises(FileError, match="no f"):
        read_mesh(tmp_path / "other.mat")
    with pytest.raises(FileError, match=r"written as \.obj or \.ply"):
        write_mesh(tmp_path / "a.stl", TETRAHEDRON)
    with pytest.raises(SurfaceError, match="4 vertices"):
        write_mesh(tmp_path / "a.obj", TETRAHEDRON, np.zeros((5, 2)))


def test_vertices_keep_their_numbers(tmp_path):
    """Also those that no face uses, those at one place, and those on the seam of a texture."""
    vertices = np.array([[5, 5, 5], [0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0.0]])
    faces = np.array([[3, 1, 2], [4, 1, 3]])
    obj, ply, text = tmp_path / "a.obj", tmp_path / "a.ply", tmp_path / "text.ply"
    lines = [f"v {x} {y} {z}" for x, y, z in vertices.tolist()] + ["vt 0 0", "vt 1 1"]
    obj.write_text("\n".join([*lines, "vn 0 0 1", "f 4/1/1 2/2/1 3/1/1", "f 5/2/1 2/1/1 4/2/1"]))
    write_mesh(ply, Mesh(vertices, faces), np.arange(12.0).reshape(6, 2))
    rows = [f"{x} {y} {z}" for x, y, z in vertices.tolist()] + ["3 3 1 2", "3 4 1 3"]
    head = "ply\nformat ascii 1.0\nelement vertex 6\nproperty float x\nproperty float y\n"
    head += "property float z\nelement face 2\nproperty list uchar int vertex_indices\nend_header\n"
    text.write_text(head + "\n".join(rows) + "\n")
    for path in (obj, ply, text):
        again = read_mesh(path)
        assert np.array_equal(again.vertices, vertices)
        assert np.array_equal(again.faces, faces)


def test_polygons_of_every_format_become_fans(tmp_path):
    vertices = "0 0 0\n2 0 0\n3 1 0\n2 2 0\n0 2 0\n"
    (tmp_path / "a.off").write_text(f"OFF\n5 1 0\n{vertices}5 0 1 2 3 4\n")
    head = "ply\nformat ascii 1.0\nelement vertex 5\nproperty double x\nproperty double y\n"
    head += "property double z\nelement face 1\nproperty list uchar int vertex_index\nend_header\n"
    (tmp_path / "a.ply").write_text(f"{head}{vertices}5 0 1 2 3 4\n")
    for name in ("a.off", "a.ply"):
        mesh = read_mesh(tmp_path / name)
        assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 4]]
        assert np.sum(mesh.areas) == pytest.approx(5.0)


def test_a_missing_package_is_named_before_the_work(tmp_path, monkeypatch):
    path = write_mesh(tmp_path / "cap.ply", cap(3, 1.0))
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(FileError, match=r'pip install "cordes\[surface\]"'):
        read_mesh(path)
    # The other formats do without it.
    assert len(read_mesh(write_mesh(tmp_path / "cap.obj", cap(3, 1.0))).faces) == 54


# Guards -------------------------------------------------------------------------------------------

TRIANGLE = "0 0 0\n1 0 0\n0 1 0\n"
PLY = (
    "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
    "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.off", "OFF\n", "ends before it says how many"),
        ("a.off", "OFF", "ends before it says how many"),
        ("a.off", f"OFF\n-3 1 0\n{TRIANGLE}3 0 1 2\n", "-3 vertices and 1 faces cannot be"),
        ("a.off", f"OFF\n3 {10**12} 0\n{TRIANGLE}3 0 1 2\n", "it ends after 4 of 3 vertices"),
        ("a.off", f"OFF\n3 1 0\n{TRIANGLE}4 0 1 2\n", "a face of 4 vertices names 3"),
        ("a.ply", PLY[:60], "header has no beginning or no end"),
        ("a.ply", PLY.replace("face 1", f"face {10**9}"), "it declares 1000000003 lines or items"),
        ("a.ply", PLY + TRIANGLE, "it ends after 3 of 4 lines"),
    ],
)
def test_counts_are_compared_with_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=message):
        read_mesh(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.off", f"OFF 3 1 0\n{TRIANGLE}3 0 1 2\n"),
        (
            "a.off",
            "COFF\n3 1 0\n0 0 0 9 9 9 9\n1 0 0 9 9 9 9\n0 1 0 9 9 9 9\n3 0 1 2 0.5 0.5\n",
        ),
        ("a.obj", "v 0 0 0 1 1 1\nv 1 0 0 1 1 1\nv 0 1 0 1 1 1\nf 1 2 3\n"),
        ("a.ply", PLY.replace("indices", "index") + TRIANGLE + "3 0 1 2\n"),
    ],
)
def test_what_other_programs_write_is_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    mesh = read_mesh(tmp_path / name)
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert mesh.faces.tolist() == [[0, 1, 2]]


V, F = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[1.0, 2, 3]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"v": V, "f": F + 0.5}, "f has the entry 1.5; whole numbers are needed"),
        ({"v": V, "f": F * np.nan}, "f has the entry nan; whole numbers are needed"),
        ({"v": V, "f": F * np.inf}, "f has the entry inf"),
        ({"v": V * 1j, "f": F}, "v is complex of shape"),
        ({"v": "abc", "f": F}, "v is char of shape .* not a table of real numbers"),
        ({"v": V, "f": np.array([F, 1], dtype=object)}, "f is cell of shape"),
    ],
)
def test_tables_of_matlab_are_whole_numbers(tmp_path, content, message):
    scipy.io.savemat(tmp_path / "a.mat", content)
    with pytest.raises(FileError, match=message):
        read_mesh(tmp_path / "a.mat")


def test_a_matlab_file_that_expands_is_not_read(tmp_path, monkeypatch):
    scipy.io.savemat(
        tmp_path / "a.mat", {"v": V, "f": F, "other": np.zeros(10**6)}, do_compression=True
    )
    assert read_mesh(tmp_path / "a.mat").faces.tolist() == [[0, 1, 2]]
    monkeypatch.setattr(matlab, "MOST_BYTES", 10**6)
    with pytest.raises(FileError, match="unpacked it has more than 1 MB"):
        read_mesh(tmp_path / "a.mat")


@pytest.mark.parametrize("scale", [1e-200, 1e-80, 1e155, 1e300])
def test_surfaces_of_absurd_widths_are_refused_for_what_they_are(scale):
    with pytest.raises(SurfaceError, match="scale it, so that it is about 1 wide"):
        prepare(Mesh(V * scale, F.astype(int) - 1))


def test_a_mesh_that_would_fill_the_memory_is_refused(tmp_path):
    with open(tmp_path / "a.obj", "wb") as file:
        file.truncate(10**13)
    with pytest.raises(MemoryLimitError, match="a mesh of 10 TB, would need about 250 TB"):
        read_mesh(tmp_path / "a.obj")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_tables_of_matlab_are_those_of_scipy(tmp_path, kind, packed):
    given = {"text": "abc", "v": V.astype(kind), "f": np.asfortranarray(F), "cells": {"a": 1}}
    scipy.io.savemat(tmp_path / "a.mat", given, do_compression=packed)
    found = matlab.read_tables(tmp_path / "a.mat", ("v", "f"))
    expected = scipy.io.loadmat(tmp_path / "a.mat")
    assert set(found) == {"v", "f"}
    for name, table in found.items():
        np.testing.assert_array_equal(table, expected[name])


def test_a_damaged_matlab_file_is_refused_wherever_the_damage_is(tmp_path):
    """SciPy's reader ended the process for one in a thousand of these."""
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"v": V, "f": F})
    data = path.read_bytes()
    for k in range(len(data)):
        for damaged in (data[:k], data[:k] + bytes([data[k] ^ 0xFF]) + data[k + 1 :]):
            path.write_bytes(damaged)
            try:
                mesh = read_mesh(path)
            except FileError:
                continue
            # Text of the header, or another finite coordinate.
            assert mesh.faces.tolist() == [[0, 1, 2]]
