"""Files for ParaView: unstructured grids in VTK's XML format (.vtu), numbers in base64."""

import base64
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from cordes.errors import FileError, unknown
from cordes.runtime.files import write_file

# Name of the cell: its number in VTK, its corners and the least dimension of its points.
CELL_TYPES = {
    "vertex": (1, 1, 1),
    "line": (3, 2, 1),
    "triangle": (5, 3, 2),
    "quad": (9, 4, 2),
    "tetra": (10, 4, 3),
    "hexahedron": (12, 8, 3),
}
_GRID_CELLS = {1: "line", 2: "quad", 3: "hexahedron"}
_TYPE_NAMES = {np.dtype("<f8"): "Float64", np.dtype("<i8"): "Int64", np.dtype("u1"): "UInt8"}


def write_vtu(
    path: str | Path,
    points: np.ndarray,
    cells: np.ndarray,
    cell_type: str,
    point_data: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write points (n, d), d ≤ 3, cells (m, k) of corner numbers and data at the points, each of
    shape (n,), (n, components) or (n, i, j).

    `cell_type` is one of `CELL_TYPES`: four corners may be a quad or a tetra. Vectors of two
    components get a third, zero, and 2 × 2 matrices a third row and column, because ParaView knows
    vectors and tensors only in space. Checked: shapes, corner numbers, and that the file can be
    written. NaN is written as it is.
    """
    points, cells = _check_grid(points, cells, cell_type)
    count = len(points)
    arrays = {name: _spatial(name, values, count) for name, values in (point_data or {}).items()}
    kind, corners, _ = CELL_TYPES[cell_type]
    flat = np.zeros((count, 3))
    flat[:, : points.shape[1]] = points
    text = f"""<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<UnstructuredGrid><Piece NumberOfPoints="{count}" NumberOfCells="{len(cells)}">
<Points>
{_data_array("Points", flat)}
</Points>
<Cells>
{_data_array("connectivity", cells.ravel())}
{_data_array("offsets", corners * np.arange(1, len(cells) + 1, dtype="<i8"))}
{_data_array("types", np.full(len(cells), kind, dtype="u1"))}
</Cells>
<PointData>
{"".join(_data_array(name, values) + chr(10) for name, values in arrays.items())}</PointData>
</Piece></UnstructuredGrid>
</VTKFile>
"""
    write_file(path, text)


def structured_cells(
    shape: tuple[int, ...], keep: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, str]:
    """The cells of a regular grid of `shape` points, numbered as `np.ravel` numbers them: lines,
    quads or hexahedra in 1, 2 or 3 dimensions.

    `keep`, of the grid's shape, tells which points lie in the domain; a cell stays if all its
    corners do. Returns the numbers of the points that are left, in order, the cells in the
    numbering among these, and the cell type: `write_vtu(path, points[used], cells, cell_type,
    ...)`.
    """
    dimension = len(shape)
    if dimension not in _GRID_CELLS or min(shape) < 2:
        raise FileError(
            f"The grid has shape {tuple(shape)}; one to three axes of at least two points are "
            "needed."
        )
    number = np.arange(np.prod(shape)).reshape(shape)
    # The corners of a quad run around it; those of a hexahedron around its bottom, then its top.
    around = [(0,), (1,)] if dimension == 1 else [(0, 0), (1, 0), (1, 1), (0, 1)]
    offsets = (
        around if dimension < 3 else [(*corner, level) for level in (0, 1) for corner in around]
    )
    corners = [
        number[tuple(slice(i, i + size - 1) for i, size in zip(offset, shape, strict=True))].ravel()
        for offset in offsets
    ]
    cells = np.stack(corners, axis=1)
    if keep is not None:
        keep = np.asarray(keep, dtype=bool)
        if keep.shape != tuple(shape):
            raise FileError(f"keep has shape {keep.shape}, but the grid has shape {tuple(shape)}.")
        cells = cells[np.all(keep.ravel()[cells], axis=1)]
    used = np.unique(cells)
    return used, np.searchsorted(used, cells), _GRID_CELLS[dimension]


def _check_grid(
    points: np.ndarray, cells: np.ndarray, cell_type: str
) -> tuple[np.ndarray, np.ndarray]:
    points, cells = np.asarray(points, dtype="<f8"), np.asarray(cells)
    if cell_type not in CELL_TYPES:
        raise unknown("cell type", cell_type, CELL_TYPES)
    _, corners, least = CELL_TYPES[cell_type]
    if points.ndim != 2 or not least <= points.shape[1] <= 3:
        raise FileError(
            f"points have shape {points.shape}; (n, d) with d from {least} to 3 is needed for "
            f"cells of type {cell_type}."
        )
    if cells.ndim != 2 or cells.shape[1] != corners or not np.issubdtype(cells.dtype, np.integer):
        raise FileError(
            f"cells have shape {cells.shape} and dtype {cells.dtype}; whole numbers of shape "
            f"(m, {corners}) are needed for {cell_type}."
        )
    if cells.size and not (cells.min() >= 0 and cells.max() < len(points)):
        raise FileError(
            f"cells refer to points {cells.min()} to {cells.max()}, but the points are "
            f"numbered from 0 to {len(points) - 1}."
        )
    return points, cells.astype("<i8")


def _spatial(name: str, values: np.ndarray, count: int) -> np.ndarray:
    """A row of components for each point; plane vectors and matrices are embedded in space."""
    values = np.asarray(values, dtype="<f8")
    if values.ndim not in (1, 2, 3) or len(values) != count:
        raise FileError(
            f"The data {name!r} have shape {values.shape}; ({count},), ({count}, components) "
            f"or ({count}, rows, columns) is needed."
        )
    padding = [(0, 0)] + [(0, 1 if size == 2 else 0) for size in values.shape[1:]]
    values = np.pad(values, padding)
    return values if values.ndim == 1 else values.reshape(count, -1)


def _data_array(name: str, values: np.ndarray) -> str:
    """One array in base64. Its number of bytes stands before it, encoded together with it."""
    raw = np.ascontiguousarray(values).tobytes()
    text = base64.b64encode(len(raw).to_bytes(8, "little") + raw).decode("ascii")
    components = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    return (
        f'<DataArray type="{_TYPE_NAMES[values.dtype]}" Name={quoteattr(name)}{components} '
        f'format="binary">{text}</DataArray>'
    )
