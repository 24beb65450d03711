"""Files for ParaView are read back by Python's XML parser, which shares no code with the
writer."""

import numpy as np
import pytest
from vtu_file import read_vtu

from cordes.errors import FileError, OptionError
from cordes.reports.kit.vtk import structured_cells, write_vtu


def grid(shape):
    axes = [np.linspace(0, 1 + axis, count) for axis, count in enumerate(shape)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))


@pytest.mark.parametrize(
    ("cell_type", "cells", "dimension"),
    [
        ("triangle", [[0, 1, 2], [1, 3, 2]], 2),
        ("quad", [[0, 1, 3, 2]], 2),
        ("tetra", [[0, 1, 2, 3]], 3),
        ("quad", [[0, 1, 3, 2]], 3),
    ],
)
def test_points_cells_and_data_come_back_exactly(tmp_path, cell_type, cells, dimension):
    generator = np.random.default_rng(3)
    points = generator.standard_normal((4, dimension))
    values = generator.standard_normal(4)
    write_vtu(
        tmp_path / "mesh.vtu",
        points,
        np.array(cells),
        cell_type,
        {"u": values, 'a "quoted" <name> & λ': values > 0},
    )
    mesh = read_vtu(tmp_path / "mesh.vtu")
    np.testing.assert_array_equal(mesh.points[:, :dimension], points)
    np.testing.assert_array_equal(mesh.points[:, dimension:], 0)
    assert [block.type for block in mesh.cells] == [cell_type]
    np.testing.assert_array_equal(mesh.cells[0].data, cells)
    np.testing.assert_array_equal(mesh.point_data["u"], values)
    np.testing.assert_array_equal(
        mesh.point_data['a "quoted" <name> & λ'], (values > 0).astype(float)
    )


def test_plane_vectors_and_matrices_are_embedded_in_space(tmp_path):
    points = grid((3, 4))
    used, cells, cell_type = structured_cells((3, 4))
    gradient = np.arange(24.0).reshape(12, 2)
    hessian = np.arange(48.0).reshape(12, 2, 2)
    write_vtu(
        tmp_path / "mesh.vtu",
        points[used],
        cells,
        cell_type,
        {"gradient": gradient, "hessian": hessian},
    )
    mesh = read_vtu(tmp_path / "mesh.vtu")
    np.testing.assert_array_equal(mesh.point_data["gradient"], np.pad(gradient, [(0, 0), (0, 1)]))
    np.testing.assert_array_equal(
        mesh.point_data["hessian"].reshape(12, 3, 3), np.pad(hessian, [(0, 0), (0, 1), (0, 1)])
    )


def signed_volumes(points, cells):
    """Volume of each cell from its first corner and the neighbours that VTK's numbering gives it;
    negative if the orientation is wrong."""
    neighbours = [1] if points.shape[1] == 1 else [1, 3] if points.shape[1] == 2 else [1, 3, 4]
    return np.linalg.det(
        np.stack([points[cells[:, k]] - points[cells[:, 0]] for k in neighbours], axis=1)
    )


@pytest.mark.parametrize("shape", [(5,), (3, 4), (4, 3, 5)])
def test_cells_of_a_grid_fill_it_once(shape):
    points = grid(shape)
    used, cells, _ = structured_cells(shape)
    np.testing.assert_array_equal(used, np.arange(len(points)))
    assert len(cells) == np.prod([count - 1 for count in shape])
    volumes = signed_volumes(points, cells)
    assert np.all(volumes > 0)
    assert np.sum(volumes) == pytest.approx(np.prod(np.arange(1, len(shape) + 1)))


def test_hexahedron_numbering_is_that_of_vtk():
    points = grid((2, 2, 2)) / [1, 2, 3]
    _, cells, cell_type = structured_cells((2, 2, 2))
    assert cell_type == "hexahedron"
    expected = [
        [0, 0, 0],
        [1, 0, 0],
        [1, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [1, 0, 1],
        [1, 1, 1],
        [0, 1, 1],
    ]
    np.testing.assert_array_equal(points[cells[0]], expected)


def test_mask_keeps_the_cells_inside_and_drops_loose_points(tmp_path):
    shape = (41, 41)
    points = 2 * np.stack(
        np.meshgrid(np.linspace(-1, 1, 41), np.linspace(-1, 1, 41), indexing="ij"), axis=-1
    ).reshape(-1, 2)
    inside = np.sum(points**2, axis=1) <= 1.0
    used, cells, cell_type = structured_cells(shape, inside.reshape(shape))
    assert np.all(inside[used])
    np.testing.assert_array_equal(np.unique(cells), np.arange(len(used)))
    area = np.sum(signed_volumes(points[used], cells))
    assert np.pi - 0.5 < area < np.pi
    write_vtu(tmp_path / "disk.vtu", points[used], cells, cell_type, {"u": points[used, 0]})
    mesh = read_vtu(tmp_path / "disk.vtu")
    np.testing.assert_array_equal(mesh.point_data["u"], mesh.points[:, 0])


def test_bad_grids_are_refused(tmp_path):
    points, triangle = np.zeros((3, 2)), np.array([[0, 1, 2]])
    path = tmp_path / "mesh.vtu"
    with pytest.raises(OptionError, match="no cell type 'trangle'"):
        write_vtu(path, points, triangle, "trangle")
    with pytest.raises(FileError, match=r"cells have shape \(1, 3\)"):
        write_vtu(path, points, triangle, "quad")
    with pytest.raises(FileError, match="dtype float64"):
        write_vtu(path, points, triangle.astype(float), "triangle")
    with pytest.raises(FileError, match="points 0 to 3"):
        write_vtu(path, points, np.array([[0, 1, 3]]), "triangle")
    with pytest.raises(FileError, match="d from 3 to 3"):
        write_vtu(path, np.zeros((4, 2)), np.array([[0, 1, 2, 3]]), "tetra")
    with pytest.raises(FileError, match=r"data 'u' have shape \(2,\)"):
        write_vtu(path, points, triangle, "triangle", {"u": np.zeros(2)})
    with pytest.raises(FileError, match=r"shape \(1, 4\)"):
        structured_cells((1, 4))
    with pytest.raises(FileError, match=r"keep has shape \(4,\)"):
        structured_cells((2, 2), np.ones(4))
    assert not path.exists()
    with pytest.raises(FileError, match="cannot be written"):
        write_vtu(tmp_path / "missing" / "mesh.vtu", points, triangle, "triangle")
