"""Surfaces: area correction by transport, published meshes, and the figure."""

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from cordes.errors import FileError, OptionError
from cordes.references.dct_transport import solve_dct
from cordes.surfaces import (
    SurfaceError,
    disk_map,
    equalise_areas,
    folded_surface,
    map_vertices,
    measure,
    prepare,
    read_mesh,
    rectangle_map,
)
from cordes.surfaces.pages.plots import plot_surface

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
CORNERS_OF_THE_LION = [7012, 6581, 12651, 5715]


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
    # The threads are bent, not stretched; the folds overhang where the depth is above a right
    # angle.
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
    assert (
        measure(disk, wrong.map(flat.uv), flat.size).area_faces.deviation
        > result.distortions[0].area_faces.deviation
    )


def test_disk_is_refused_for_area_correction(folded):
    disk = folded[0]
    with pytest.raises(SurfaceError, match="rectangle_map"):
        equalise_areas(disk, disk_map(disk))


@pytest.mark.parametrize(
    ("name", "corners", "resolution", "before", "after"),
    [
        ("chinese_lion", CORNERS_OF_THE_LION, 512, 1.107, 0.058),
        ("human_brain", None, 768, 1.588, 0.100),
    ],
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
    figure = plot_surface(
        disk, {"conformal": flat.uv, "transport": result.uv}, flat.size, path, title="folded"
    )
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert len(titles) == 6
    assert (
        titles[5]
        == f"log area ratio, SD {result.distortions[1].area_faces.deviation:.3f}, flipped 0"
    )
    image = matplotlib.image.imread(path)[..., :3]
    left, middle, right = np.array_split(image, 3, axis=1)
    assert min(left.std(), middle.std()) > 0.1
    # The lower right panel shows small ratios on the scale of the upper one: nearly white.
    upper, lower = np.array_split(right, 2, axis=0)
    assert np.mean(lower[40:-40, 40:-200]) > np.mean(upper[40:-40, 40:-200]) + 0.02
    with pytest.raises(FileError, match="does not exist"):
        plot_surface(disk, {"conformal": flat.uv}, flat.size, tmp_path / "nowhere" / "surface.png")
    with pytest.raises(SurfaceError, match="parallel"):
        plot_surface(
            disk,
            {"conformal": flat.uv},
            flat.size,
            toward=np.array([0, 0, 1.0]),
            up=np.array([0, 0, 1.0]),
        )
