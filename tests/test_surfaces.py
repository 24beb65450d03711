"""Surfaces: files, topology, conformal maps in closed form, distortion, densities, area correction and the figure."""

from pathlib import Path

import jax
import matplotlib.image
import meshio
import numpy as np
import pytest
import scipy.io
import scipy.spatial

from cordes.errors import CoefficientError, FileError, OptionError
from cordes.references.dct_transport import solve_dct
from cordes.reports.surface_plots import plot_surface
from cordes.surfaces import (
    Mesh,
    SurfaceError,
    check_topology,
    disk_map,
    equalise_areas,
    folded_surface,
    grid_density,
    map_vertices,
    measure,
    prepare,
    read_mesh,
    rectangle_map,
    surface_density,
    unfold,
    write_mesh,
)
from cordes.surfaces.conformal import choose_corners, flat_areas

DATA = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
CORNERS_OF_THE_LION = [7012, 6581, 12651, 5715]


def sheet(columns=13, rows=9, width=2.0, height=1.0, move=0.0, seed=3):
    """A flat rectangle with inner vertices moved at random, its corners without ears."""
    x, y = np.meshgrid(np.linspace(0, width, columns), np.linspace(0, height, rows))
    shift = np.random.default_rng(seed).uniform(-move, move, (rows, columns, 2)) * [width / columns, height / rows]
    shift[[0, -1]] = 0
    shift[:, [0, -1]] = 0
    flat = (np.stack([x, y], axis=-1) + shift).reshape(-1, 2)
    return Mesh(np.column_stack([flat, np.zeros(len(flat))]), folded_surface(1, 0.0, columns=columns, rows=rows).faces)


def cap(rings, angle):
    """A cap of the unit sphere up to the given polar angle, in rings of six more vertices each."""
    flat = [np.zeros((1, 2))]
    for k in range(1, rings + 1):
        turn = 2 * np.pi * np.arange(6 * k) / (6 * k)
        flat.append(k / rings * np.stack([np.cos(turn), np.sin(turn)], axis=1))
    flat = np.concatenate(flat)
    faces = scipy.spatial.Delaunay(flat).simplices
    faces = np.where(flat_areas(flat, faces)[:, None] < 0, faces[:, ::-1], faces)
    # The rim is convex up to rounding: needles on it are not wanted.
    faces = faces[flat_areas(flat, faces) > 1e-6]
    theta, turn = angle * np.linalg.norm(flat, axis=1), np.arctan2(flat[:, 1], flat[:, 0])
    return Mesh(np.stack([np.sin(theta) * np.cos(turn), np.sin(theta) * np.sin(turn), np.cos(theta)], axis=1), faces)


TETRAHEDRON = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]))


# Files


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
    meshio.stl.write(str(path), meshio.Mesh(mesh.vertices, [("triangle", mesh.faces)]), binary=binary)
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
        ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 7\n", r"Face 0 refers to the vertices \[0, 1, 6\]"),
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


# Topology


def band(twisted):
    """A strip of six squares with its ends joined: a cylinder, or a Möbius band."""
    turn = 2 * np.pi * np.arange(6) / 6
    vertices = np.concatenate([np.stack([np.cos(turn), np.sin(turn), np.full(6, z)], axis=1) for z in (0.0, 1.0)])
    faces = []
    for k in range(6):
        a, b, c, d = k, (k + 1) % 6, 6 + (k + 1) % 6, 6 + k
        if twisted and k == 5:
            b, c = c, b
        faces += [[a, b, c], [a, c, d]]
    return Mesh(vertices, np.array(faces))


def two_pieces():
    mesh = sheet()
    return Mesh(np.concatenate([mesh.vertices, mesh.vertices + np.array([5, 0, 0])]), np.concatenate([mesh.faces, mesh.faces + len(mesh.vertices)]))


def torus_with_a_hole():
    i, j = np.meshgrid(np.arange(8), np.arange(8), indexing="ij")
    u, v = 2 * np.pi * i.ravel() / 8, 2 * np.pi * j.ravel() / 8
    vertices = np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=1)
    number = (8 * (i % 8) + j % 8).ravel()
    right, up, both = (8 * ((i + a) % 8) + (j + b) % 8 for a, b in ((1, 0), (0, 1), (1, 1)))
    faces = np.concatenate([np.stack([number, right.ravel(), both.ravel()], axis=1), np.stack([number, both.ravel(), up.ravel()], axis=1)])
    # All faces around one vertex are taken away.
    return Mesh(vertices, faces[~np.any(faces == 0, axis=1)])


FAILURES = {
    "closed": (TETRAHEDRON, "must be cut"),
    "two loops": (band(False), "2 boundary loops"),
    "one side": (band(True), "Möbius"),
    "two pieces": (two_pieces(), "2 separate pieces"),
    "handle": (torus_with_a_hole(), "1 handle "),
    "three faces at an edge": (
        Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1.0]]), np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])),
        "between the vertices 0 and 1",
    ),
    "no area": (Mesh(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])), r"1 of 2 faces have no area .*\[0"),
    "pinched": (
        Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0.0]]), np.array([[0, 1, 2], [0, 3, 4]])),
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
    # An ear on a boundary edge, two vertices that no face uses, and a third of the faces turned over.
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
    # Two rows of vertices: each inner edge joins boundary vertices, and everything would be laid onto the sides.
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
    a, b, c, d = (part.ravel() for part in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]))
    mesh = Mesh(sheet(9, 5).vertices, np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]))
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


# Conformal maps


@pytest.mark.parametrize("seed", range(3))
def test_flat_rectangle_is_kept(seed):
    mesh = sheet(move=0.35, seed=seed)
    disk = prepare(mesh)
    flat = rectangle_map(disk)
    assert flat.size == pytest.approx([1.0, 0.5], abs=1e-12)
    # Any corner may come first: the map is the identity up to a turn by a multiple of 180 degrees, or of 90 with the sides exchanged.
    assert flat.corners[0] == 0
    assert np.max(np.abs(flat.uv - mesh.vertices[:, :2] / 2)) < 1e-12
    report = measure(disk, flat.uv, flat.size)
    assert report.area_faces.deviation < 1e-10
    assert report.angle_mean < 1e-8
    assert report.beltrami_max < 1e-10
    assert (report.flipped, report.rim) == (0, 0.0)


def test_cylinder_patch_is_unrolled():
    """A prism is unrolled without distortion: the rectangle has the length of the chords."""
    mesh = sheet(41, 15)
    turn = mesh.vertices[:, 0] * 1.2
    rolled = Mesh(np.stack([np.sin(turn), mesh.vertices[:, 1], np.cos(turn)], axis=1), mesh.faces)
    disk = prepare(rolled)
    flat = rectangle_map(disk)
    chords = 40 * 2 * np.sin(1.2 * 2.0 / 40 / 2)
    assert flat.size[1] == pytest.approx(1.0 / chords, rel=1e-10)
    report = measure(disk, flat.uv, flat.size)
    assert report.area_faces.deviation < 1e-9
    assert report.angle_mean < 1e-7


def test_spherical_cap_is_projected():
    """The conformal map of a cap to the disk is the stereographic projection, tan(θ/2)/tan(α/2), and its factor is known."""
    angle, errors = 2.0, []
    for rings in (10, 20, 40):
        mesh = cap(rings, angle)
        disk = prepare(mesh)
        flat = disk_map(disk)
        assert flat.flipped == 0
        radius = np.tan(np.arccos(np.clip(mesh.vertices[:, 2], -1, 1)) / 2) / np.tan(angle / 2)
        turn = np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0])
        exact = radius * np.exp(1j * turn)
        found = flat.uv @ np.array([1, 1j])
        # The map is unique up to a turn.
        rotation = np.vdot(found, exact)
        errors.append(np.max(np.abs(found * rotation / abs(rotation) - exact)))
        assert measure(disk, flat.uv, None).rim < 1e-12
    assert errors[2] < 3e-3
    assert np.log2(errors[0] / errors[2]) / 2 > 1.5
    # log(flat area / area) = −2 log(1 + cos θ) + const on the exact map.
    middle = np.mean(mesh.vertices[mesh.faces], axis=1)
    theta = np.arccos(middle[:, 2] / np.linalg.norm(middle, axis=1))
    ratio = np.log(flat_areas(flat.uv, disk.mesh.faces) / disk.mesh.areas) + 2 * np.log(1 + np.cos(theta))
    assert np.std(ratio) < 0.02


def test_corners():
    mesh = sheet(move=0.2)
    disk = prepare(mesh)
    assert choose_corners(disk).tolist() == [0, 12, 116, 104]
    # The first corner goes to the origin, whatever the order of the others; here the rectangle is turned, so its height is 2.
    flat = rectangle_map(disk, [12, 0, 104, 116])
    assert flat.corners.tolist() == [12, 116, 104, 0]
    assert flat.size[1] == pytest.approx(2.0)
    assert np.all(flat.uv[12] == 0)
    assert np.all(flat_areas(flat.uv, mesh.faces) > 0)
    with pytest.raises(SurfaceError, match=r"Vertex 20 .* is not on the boundary.*nearest boundary vertex is 7"):
        rectangle_map(disk, [0, 12, 20, 104])
    with pytest.raises(SurfaceError, match=r"Vertex 21 .*nearest boundary vertex is 8"):
        rectangle_map(disk, [1, 13, 21, 105], count_from=1)
    assert np.array_equal(rectangle_map(disk, [13, 1, 105, 117], count_from=1).uv, flat.uv)
    with pytest.raises(SurfaceError, match="no vertex 0: they are numbered from 1 to 117"):
        rectangle_map(disk, [0, 12, 20, 104], count_from=1)
    with pytest.raises(SurfaceError, match="no vertex 500"):
        rectangle_map(disk, [0, 12, 500, 104])
    with pytest.raises(SurfaceError, match="four different"):
        rectangle_map(disk, [0, 12, 12, 104])
    assert len(set(choose_corners(prepare(cap(4, 1.0))).tolist())) == 4


def test_flips_are_repaired():
    mesh = sheet(move=0.3)
    disk = prepare(mesh)
    uv = mesh.vertices[:, :2].copy()
    inner = 4 * 13 + 6
    uv[inner] += [0.35, 0.2]
    uv[2 * 13 + 3] -= [0.3, 0.0]
    assert np.sum(flat_areas(uv, mesh.faces) <= 0) >= 4
    repaired = unfold(disk, uv)
    assert np.all(flat_areas(repaired, mesh.faces) > 0)
    assert np.array_equal(repaired[disk.loop], uv[disk.loop])
    moved = np.any(repaired != uv, axis=1)
    assert 2 <= np.sum(moved) <= 20
    assert measure(disk, uv, np.array([2.0, 1.0])).flipped >= 4


@pytest.mark.parametrize("seed", range(3))
def test_needles_do_not_flip(seed):
    """A sheet drawn out tenfold has wide angles and negative weights everywhere; the flat maps must not be turned over all the same."""
    mesh = sheet(31, 21, move=0.45, seed=seed)
    x, y = mesh.vertices[:, 0], mesh.vertices[:, 1]
    bumpy = prepare(Mesh(np.stack([10 * x, y, 0.3 * np.sin(9 * x) * np.cos(7 * y)], axis=1), mesh.faces))
    assert np.mean(bumpy.mesh.angles > np.pi / 2) > 0.2
    for flat in (rectangle_map(bumpy), disk_map(bumpy)):
        assert flat.flipped == 0
        assert measure(bumpy, flat.uv, flat.size).flipped == 0


# Distortion


def test_distortion_of_known_maps():
    disk = prepare(sheet(21, 11, move=0.2))
    plane = disk.mesh.vertices[:, :2]
    stretched = measure(disk, plane * [3.0, 1.0], np.array([6.0, 1.0]))
    assert stretched.beltrami_mean == pytest.approx(0.5, abs=1e-12)
    assert stretched.beltrami_max == pytest.approx(0.5, abs=1e-12)
    assert stretched.area_faces.deviation < 1e-12
    assert stretched.angle_mean > 10
    assert stretched.rim == 0
    mirrored = measure(disk, plane * [-1.0, 1.0] + [2.0, 0.0], np.array([2.0, 1.0]))
    assert mirrored.flipped == len(disk.mesh.faces)
    shifted = measure(disk, plane + np.array([0.0, 0.1]), np.array([2.0, 1.0]))
    assert shifted.rim == pytest.approx(0.05)
    # The right half is twice as wide as the left: shares 1/3 and 2/3 in place of 1/2 each.
    bent = prepare(sheet(21, 11))
    plane = bent.mesh.vertices[:, :2]
    wide = np.stack([np.where(plane[:, 0] > 1, 2 * plane[:, 0] - 1, plane[:, 0]), plane[:, 1]], axis=1)
    spread = measure(bent, wide, np.array([3.0, 1.0])).area_faces
    assert spread.deviation == pytest.approx(np.log(2) / 2, abs=1e-12)
    assert spread.mean == pytest.approx((np.log(1.5) + np.log(4 / 3)) / 2, abs=1e-12)
    assert spread.weighted_deviation == pytest.approx(spread.deviation, abs=1e-12)


# Densities


def test_density_of_a_known_map():
    """With u = (x + x²)/2 the density of a flat sheet is 2/(1 + 2x) = 2/√(1 + 8u)."""
    disk = prepare(sheet(81, 41, 1.0, 1.0))
    plane = disk.mesh.vertices[:, :2]
    uv = np.stack([(plane[:, 0] + plane[:, 0] ** 2) / 2, plane[:, 1]], axis=1)
    density = surface_density(disk, uv, np.ones(2), 64, smoothing=1.0)
    assert density.shape == (64, 64)
    assert np.mean(density) == pytest.approx(1.0, abs=1e-12)
    u = (np.arange(64) + 0.5) / 64
    assert np.max(np.abs(density / (2 / np.sqrt(1 + 8 * u))[:, None] - 1)) < 0.05
    # Nothing is lost, whatever the smoothing: the left half holds x from 0 to (√5 − 1)/2.
    assert np.mean(density[:32]) / 2 == pytest.approx((np.sqrt(5) - 1) / 2, abs=2e-3)


def test_smooth_density():
    rng = np.random.default_rng(5)
    values = np.exp(2 * rng.normal(size=(12, 20)))
    density = grid_density(values, np.array([-1.0, 0.0]), np.array([1.0, 3.0]))
    many = jax.jit(jax.vmap(density))
    fine = np.stack(np.meshgrid(-1 + 2 * (np.arange(240) + 0.5) / 240, 3 * (np.arange(400) + 0.5) / 400, indexing="ij"), axis=-1).reshape(-1, 2)
    found = np.asarray(many(fine))
    assert values.min() <= found.min()
    assert found.max() <= values.max()
    assert np.mean(found) == pytest.approx(np.mean(values), rel=1e-3)
    # Second derivatives agree from both sides of the knots, the cell centres; third ones do not.
    hessian = jax.jit(jax.hessian(density))
    third = jax.jit(jax.jacfwd(jax.hessian(density)))
    knot = np.array([-1 + 2 * 4.5 / 12, 1.234])
    step = np.array([1e-9, 0.0])
    size = np.max(np.abs(hessian(knot + step)))
    assert np.max(np.abs(hessian(knot + step) - hessian(knot - step))) < 1e-5 * size
    assert np.max(np.abs(third(knot + step) - third(knot - step))) > 0.1 * size
    # Derivatives normal to the sides vanish, as reflection asks.
    assert abs(jax.grad(density)(np.array([-1.0, 1.0]))[0]) < 1e-12
    # Linear data are reproduced inside.
    slope = grid_density(np.add.outer(1.0 + np.arange(12), np.arange(20)), np.zeros(2), np.array([12.0, 20.0]))
    assert slope(np.array([5.3, 7.9])) == pytest.approx(1 + 4.8 + 7.4)
    with pytest.raises(CoefficientError, match="cell"):
        grid_density(np.zeros((8, 8)), np.zeros(2), np.ones(2))


# Area correction


@pytest.fixture(scope="module")
def folded():
    disk = prepare(folded_surface())
    flat = rectangle_map(disk)
    return disk, flat, equalise_areas(disk, flat, resolution=256)


def test_folded_surface(folded):
    disk, flat, result = folded
    assert disk.repairs == ()
    assert disk.original[flat.corners].tolist() == [0, 79, 3839, 3760]
    before, after = result.distortions
    assert before.angle_mean < 1.0
    assert before.area_faces.deviation > 0.4
    assert after.area_faces.deviation < 0.03
    assert after.area_stars.deviation < 0.015
    assert (after.flipped, after.rim) == (0, 0.0)
    assert result.transports[0].converged
    again = map_vertices(result.transports[0], disk, flat.uv)
    assert np.array_equal(again, result.uv)
    # The threads are bent, not stretched; the folds overhang where the depth is above a right angle.
    steep = folded_surface(depth=1.9)
    assert len(prepare(steep).repairs) == 0
    threads = steep.vertices.reshape(48, 80, 3)
    assert np.any(np.diff(threads[24, :, 0]) < 0)
    with pytest.raises(OptionError, match="depth"):
        folded_surface(depth=3.0)


def test_second_pass_sharpens_the_stars(folded):
    disk, flat, _ = folded
    result = equalise_areas(disk, flat, resolution=128, passes=2)
    _, first, second = result.distortions
    assert second.area_stars.deviation < 0.8 * first.area_stars.deviation
    assert second.flipped == 0


def test_wrong_density_is_noticed(folded):
    disk, flat, result = folded
    wrong = solve_dct(1 / result.density, np.zeros(2), flat.size, tolerance=1e-4)
    assert measure(disk, wrong.map(flat.uv), flat.size).area_faces.deviation > result.distortions[0].area_faces.deviation


def test_disk_is_refused_for_area_correction(folded):
    disk = folded[0]
    with pytest.raises(SurfaceError, match="rectangle_map"):
        equalise_areas(disk, disk_map(disk))


@pytest.mark.parametrize(
    ("name", "corners", "resolution", "before", "after"),
    [("chinese_lion", CORNERS_OF_THE_LION, 512, 1.107, 0.058), ("human_brain", None, 768, 1.588, 0.100)],
)
def test_published_meshes(name, corners, resolution, before, after):
    path = DATA / f"{name}.mat"
    if not path.is_file():
        pytest.skip(f"{name}.mat is not beside this checkout (third-party data)")
    disk = prepare(read_mesh(path))
    assert disk.repairs == ()
    flat = rectangle_map(disk, corners)
    assert flat.flipped_before == 0
    result = equalise_areas(disk, flat, resolution)
    assert result.distortions[0].area_faces.deviation == pytest.approx(before, abs=1e-3)
    assert result.distortions[0].angle_mean < 2
    assert result.distortions[1].area_faces.deviation <= after
    # What the transport map itself flips is repaired.
    assert result.flipped_before <= 20
    assert result.distortions[1].flipped == 0
    assert result.distortions[1].rim == 0


# Figure


def test_figure(folded, tmp_path):
    disk, flat, result = folded
    path = tmp_path / "surface.png"
    figure = plot_surface(disk, {"conformal": flat.uv, "transport": result.uv}, flat.size, path, title="folded")
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 6
    assert titles[5] == f"log area ratio, SD {result.distortions[1].area_faces.deviation:.3f}, flipped 0"
    image = matplotlib.image.imread(path)[..., :3]
    left, middle, right = np.array_split(image, 3, axis=1)
    assert min(left.std(), middle.std()) > 0.1
    # The lower right panel shows small ratios on the scale of the upper one: nearly white.
    upper, lower = np.array_split(right, 2, axis=0)
    assert np.mean(lower[40:-40, 40:-200]) > np.mean(upper[40:-40, 40:-200]) + 0.02
    with pytest.raises(FileError, match="does not exist"):
        plot_surface(disk, {"conformal": flat.uv}, flat.size, tmp_path / "nowhere" / "surface.png")
    with pytest.raises(SurfaceError, match="parallel"):
        plot_surface(disk, {"conformal": flat.uv}, flat.size, toward=np.array([0, 0, 1.0]), up=np.array([0, 0, 1.0]))
