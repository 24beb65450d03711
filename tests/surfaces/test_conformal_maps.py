"""Surfaces: conformal maps in closed form, distortion and densities."""

import jax
import numpy as np
import pytest
from surface_meshes import cap, sheet

from cordes.errors import CoefficientError
from cordes.surfaces import (
    Mesh,
    SurfaceError,
    disk_map,
    grid_density,
    measure,
    prepare,
    rectangle_map,
    surface_density,
    unfold,
)
from cordes.surfaces.conformal import choose_corners, flat_areas

# Conformal maps


@pytest.mark.parametrize("seed", range(3))
def test_flat_rectangle_is_kept(seed):
    mesh = sheet(move=0.35, seed=seed)
    disk = prepare(mesh)
    flat = rectangle_map(disk)
    assert flat.size == pytest.approx([1.0, 0.5], abs=1e-12)
    # Any corner may come first: the map is the identity up to a turn by a multiple of 180 degrees,
    # or of 90 with the sides exchanged.
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
    """The conformal map of a cap to the disk is the stereographic projection, tan(θ/2)/tan(α/2),
    and its factor is known."""
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
    ratio = np.log(flat_areas(flat.uv, disk.mesh.faces) / disk.mesh.areas) + 2 * np.log(
        1 + np.cos(theta)
    )
    assert np.std(ratio) < 0.02


def test_corners():
    mesh = sheet(move=0.2)
    disk = prepare(mesh)
    assert choose_corners(disk).tolist() == [0, 12, 116, 104]
    # The first corner goes to the origin, whatever the order of the others; here the rectangle is
    # turned, so its height is 2.
    flat = rectangle_map(disk, [12, 0, 104, 116])
    assert flat.corners.tolist() == [12, 116, 104, 0]
    assert flat.size[1] == pytest.approx(2.0)
    assert np.all(flat.uv[12] == 0)
    assert np.all(flat_areas(flat.uv, mesh.faces) > 0)
    with pytest.raises(
        SurfaceError, match=r"Vertex 20 .* is not on the boundary.*nearest boundary vertex is 7"
    ):
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
    """A sheet drawn out tenfold has wide angles and negative weights everywhere; the flat maps must
    not be turned over all the same."""
    mesh = sheet(31, 21, move=0.45, seed=seed)
    x, y = mesh.vertices[:, 0], mesh.vertices[:, 1]
    bumpy = prepare(
        Mesh(np.stack([10 * x, y, 0.3 * np.sin(9 * x) * np.cos(7 * y)], axis=1), mesh.faces)
    )
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
    wide = np.stack(
        [np.where(plane[:, 0] > 1, 2 * plane[:, 0] - 1, plane[:, 0]), plane[:, 1]], axis=1
    )
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
    fine = np.stack(
        np.meshgrid(
            -1 + 2 * (np.arange(240) + 0.5) / 240, 3 * (np.arange(400) + 0.5) / 400, indexing="ij"
        ),
        axis=-1,
    ).reshape(-1, 2)
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
    slope = grid_density(
        np.add.outer(1.0 + np.arange(12), np.arange(20)), np.zeros(2), np.array([12.0, 20.0])
    )
    assert slope(np.array([5.3, 7.9])) == pytest.approx(1 + 4.8 + 7.4)
    with pytest.raises(CoefficientError, match="cell"):
        grid_density(np.zeros((8, 8)), np.zeros(2), np.ones(2))
