"""Surfaces: topology that is refused, counted, or repaired."""

import numpy as np
import pytest
from surface_meshes import TETRAHEDRON, sheet

from cordes.surfaces import (
    Mesh,
    SurfaceError,
    check_topology,
    folded_surface,
    measure,
    prepare,
    rectangle_map,
)
from cordes.surfaces.conformal import flat_areas


def band(twisted):
    """A strip of six squares with its ends joined: a cylinder, or a Möbius band."""
    turn = 2 * np.pi * np.arange(6) / 6
    vertices = np.concatenate(
        [np.stack([np.cos(turn), np.sin(turn), np.full(6, z)], axis=1) for z in (0.0, 1.0)]
    )
    faces = []
    for k in range(6):
        a, b, c, d = k, (k + 1) % 6, 6 + (k + 1) % 6, 6 + k
        if twisted and k == 5:
            b, c = c, b
        faces += [[a, b, c], [a, c, d]]
    return Mesh(vertices, np.array(faces))


def two_pieces():
    mesh = sheet()
    return Mesh(
        np.concatenate([mesh.vertices, mesh.vertices + np.array([5, 0, 0])]),
        np.concatenate([mesh.faces, mesh.faces + len(mesh.vertices)]),
    )


def torus_with_a_hole():
    i, j = np.meshgrid(np.arange(8), np.arange(8), indexing="ij")
    u, v = 2 * np.pi * i.ravel() / 8, 2 * np.pi * j.ravel() / 8
    vertices = np.stack(
        [(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=1
    )
    number = (8 * (i % 8) + j % 8).ravel()
    right, up, both = (8 * ((i + a) % 8) + (j + b) % 8 for a, b in ((1, 0), (0, 1), (1, 1)))
    faces = np.concatenate(
        [
            np.stack([number, right.ravel(), both.ravel()], axis=1),
            np.stack([number, both.ravel(), up.ravel()], axis=1),
        ]
    )
    # All faces around one vertex are taken away.
    return Mesh(vertices, faces[~np.any(faces == 0, axis=1)])


FAILURES = {
    "closed": (TETRAHEDRON, "must be cut"),
    "two loops": (band(False), "2 boundary loops"),
    "one side": (band(True), "Möbius"),
    "two pieces": (two_pieces(), "2 separate pieces"),
    "handle": (torus_with_a_hole(), "1 handle "),
    "three faces at an edge": (
        Mesh(
            np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1.0]]),
            np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]]),
        ),
        "between the vertices 0 and 1",
    ),
    "no area": (
        Mesh(
            np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0.0]]),
            np.array([[0, 1, 2], [0, 2, 3]]),
        ),
        r"1 of 2 faces have no area .*\[0",
    ),
    "pinched": (
        Mesh(
            np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0.0]]),
            np.array([[0, 1, 2], [0, 3, 4]]),
        ),
        "vertex 0 only",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_refused_topologies(name):
    mesh, message = FAILURES[name]
    with pytest.raises(SurfaceError, match=message) as caught:
        prepare(mesh)
    assert caught.value.kind == "surface"


def test_what_topology_counts():
    report = check_topology(TETRAHEDRON)
    assert (report.components, len(report.loops), report.euler) == (1, 0, 2)
    assert check_topology(two_pieces()).components == 2
    assert [len(loop) for loop in check_topology(band(False)).loops] == [6, 6]
    assert check_topology(band(False)).euler == 0
    needle = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0.5, 0.001, 0]]), np.array([[0, 1, 2]]))
    assert check_topology(needle).slivers.tolist() == [0]
    assert check_topology(sheet()).as_data()["boundary_loops"] == [2 * (13 + 9) - 4]


def test_loop_runs_around_the_surface():
    mesh = sheet()
    loop = prepare(mesh).loop
    x, y = mesh.vertices[loop, 0], mesh.vertices[loop, 1]
    assert np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2 == pytest.approx(2.0)


def test_repairs_are_made_and_reported():
    mesh = sheet(move=0.2)
    count = len(mesh.vertices)
    # An ear on a boundary edge, two vertices that no face uses, and a third of the faces turned
    # over.
    ear = np.array([[6, 5, count + 2]])
    vertices = np.concatenate([mesh.vertices, [[9, 9, 9], [8, 8, 8], [0.9, -0.3, 0]]])
    turned = mesh.faces.copy()
    turned[::3] = turned[::3, ::-1]
    broken = Mesh(vertices, np.concatenate([turned, ear]))
    assert len(check_topology(broken).inconsistent_edges) > 0
    disk = prepare(broken)
    assert sorted(text.split(" ", 1)[0] for text in disk.repairs) == ["1", "2", "faces"]
    assert len(disk.mesh.vertices) == count
    assert np.array_equal(disk.original, np.arange(count))
    signed = flat_areas(disk.mesh.vertices[:, :2], disk.mesh.faces)
    assert np.all(signed > 0) or np.all(signed < 0)
    assert disk.numbers([5, count, count + 2]).tolist() == [5, -1, -1]


def test_dividing_edges_are_divided():
    # Two rows of vertices: each inner edge joins boundary vertices, and everything would be laid
    # onto the sides.
    strip = folded_surface(1, 0.0, columns=9, rows=4)
    strip = Mesh(strip.vertices[:18], strip.faces[np.all(strip.faces < 18, axis=1)])
    before = check_topology(strip)
    # All eight diagonals and the seven lines between the cells.
    assert len(before.dividing_edges) == 15
    disk = prepare(strip)
    assert disk.repairs == ("15 inner edges between boundary vertices divided at their middle",)
    assert np.sum(disk.original < 0) == 15
    topology = check_topology(disk.mesh)
    assert len(topology.dividing_edges) == 0
    assert topology.euler == 1
    assert np.sum(disk.mesh.areas) == pytest.approx(np.sum(strip.areas))
    # The strip is flat, 2 long and 1/3 wide, so it is kept.
    flat = rectangle_map(disk)
    assert flat.size[1] == pytest.approx(1 / 6)
    assert measure(disk, flat.uv, flat.size).angle_mean < 1e-8


def test_ears_at_corners_stay():
    """With all diagonals alike a rectangle has ears at two of its corners."""
    number = np.arange(9 * 5).reshape(5, 9)
    a, b, c, d = (
        part.ravel()
        for part in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
    )
    mesh = Mesh(
        sheet(9, 5).vertices,
        np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]),
    )
    assert len(check_topology(mesh).ears) == 2
    disk = prepare(mesh)
    flat = rectangle_map(disk)
    assert disk.original[flat.corners].tolist() == [0, 8, 44, 36]
    assert np.max(np.abs(flat.uv - disk.mesh.vertices[:, :2] / 2)) < 1e-12
    # Without its sharp corners the boundary keeps only the ears that are asked for.
    bent = mesh.vertices.copy()
    bent[8] = [1.9, 0.1, 0.0]
    bent[0] = [0.1, 0.1, 0.0]
    bent[1] = [0.2, -0.1, 0.0]
    ragged = Mesh(bent, mesh.faces)
    assert len(prepare(ragged).repairs) >= 1
    assert prepare(ragged, keep=[8, 36]).numbers([8, 36]).tolist() == [8, 36]
