"""Files of triangle meshes. Vertices keep the numbers that they have in the file.

OBJ and OFF are read here: trimesh would split vertices along the seams of a texture, and does not
count the faces of an OFF file. So are MATLAB files (`matlab`). PLY and STL, which are often binary,
are read by trimesh, which is optional. OBJ and PLY are written.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cordes.arguments import as_path
from cordes.errors import CordesError, FileError
from cordes.runtime.files import check_writable, write_file
from cordes.surfaces.guards import check_ply, check_size
from cordes.surfaces.matlab import read_tables
from cordes.surfaces.mesh import Mesh, SurfaceError, merge_duplicates

# Its tracebacks of broken files, which are said in a sentence here, would be printed.
logging.getLogger("trimesh").addHandler(logging.NullHandler())
Parts = tuple[np.ndarray, np.ndarray]
# First words of OFF files: with colours, normals, or both, behind the coordinates.
OFF = ("OFF", "COFF", "NOFF", "CNOFF", "STOFF")


def read_mesh(path: str | Path) -> Mesh:
    """A mesh from an OBJ, OFF, PLY or STL file, or from a MATLAB file with `v` (n, 3) and `f` (m,
    3), numbered from one. Polygons are cut into fans."""
    path = as_path(path, "mesh")
    suffix = path.suffix.lower()
    if suffix not in READERS:
        known = ", ".join(sorted(READERS))
        raise FileError(f"{path.name}: meshes are not read from {suffix or 'it'}. Known: {known}.")
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    try:
        check_size(path)
        vertices, faces = READERS[suffix](path)
    except CordesError:
        raise
    # Readers fail in many ways on broken files; each of them means the same to the user.
    except Exception as error:
        why = str(error) or type(error).__name__
        raise FileError(f"{path} cannot be read as {suffix[1:].upper()}: {why}.") from error
    if len(faces) == 0 or len(vertices) == 0:
        raise FileError(
            f"{path} holds no faces. A triangle mesh is needed: point clouds and curves "
            "cannot be laid flat."
        )
    try:
        mesh = Mesh(vertices, faces)
    except SurfaceError as error:
        raise FileError(f"{path}: {error}") from error
    return merge_duplicates(mesh) if suffix == ".stl" else mesh


def _read_obj(path: Path) -> Parts:
    """Vertices and faces alone: what stands after a slash, and every other line, is not needed
    here."""
    vertices, polygons = [], []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        word, *rest = line.split("#")[0].split() or [""]
        if word == "v":
            vertices.append([float(number) for number in rest[:3]])
        elif word == "f":
            polygons.append([int(corner.split("/")[0]) - 1 for corner in rest])
    faces = _fans(polygons)
    if np.any(faces < -1):
        raise FileError(
            f"{path} counts vertices backwards (negative numbers in its faces). Export it "
            "again with absolute numbers."
        )
    return np.array(vertices, dtype=np.float64), faces


def _read_off(path: Path) -> Parts:
    """The word OFF, how many vertices, faces and edges there are, and that many lines of each of
    the first two."""
    text = path.read_text(encoding="utf-8")
    lines = [words for line in text.splitlines() if (words := line.split("#")[0].split())]
    if not lines or lines[0][0] not in OFF:
        raise ValueError("the first line is not OFF")
    # Some programs write the counts into the first line.
    lines = [lines[0][1:], *lines[1:]] if len(lines[0]) > 1 else lines[1:]
    if not lines or len(lines[0]) < 2:
        raise ValueError("it ends before it says how many vertices and faces there are")
    vertex_count, face_count = (int(number) for number in lines[0][:2])
    if min(vertex_count, face_count) < 0:
        raise ValueError(f"{vertex_count} vertices and {face_count} faces cannot be")
    rows = lines[1 : 1 + vertex_count + face_count]
    if len(rows) < vertex_count + face_count:
        raise ValueError(
            f"it ends after {len(rows)} of {vertex_count} vertices and {face_count} faces"
        )
    vertices = np.array([row[:3] for row in rows[:vertex_count]], dtype=np.float64)
    # Colours, which may have fractions, stand behind the corners.
    polygons = [[int(word) for word in row[: 1 + int(row[0])]] for row in rows[vertex_count:]]
    for size, *corners in polygons:
        if not 0 <= size <= len(corners):
            raise ValueError(f"a face of {size} vertices names {len(corners)}")
    return vertices, _fans([row[1 : 1 + row[0]] for row in polygons])


def _fans(polygons: Sequence[Sequence[int]]) -> np.ndarray:
    """Polygons cut into triangles at their first corners."""
    triangles = [(first, *edge) for first, *rest in polygons for edge in pairwise(rest)]
    return np.array(triangles, dtype=np.int64).reshape(-1, 3)


def _read_ply(path: Path) -> Parts:
    check_ply(path)
    return _read_with_trimesh(path)


def _read_with_trimesh(path: Path) -> Parts:
    """Nothing is merged, split or put in another order."""
    try:
        import trimesh
    except ImportError:
        raise FileError(
            f"{path.suffix[1:].upper()} files are read with trimesh, which is not installed: "
            'python -m pip install "cordes[surface]"'
        ) from None
    # The reader of STL files overflows, harmlessly, while it finds out whether they are text.
    with np.errstate(over="ignore"):
        loaded: Any = trimesh.load(
            str(path), process=False, maintain_order=True, fix_texture=False, skip_materials=True
        )
    parts = loaded.geometry.values() if hasattr(loaded, "geometry") else [loaded]
    vertices = [np.asarray(part.vertices, dtype=np.float64) for part in parts]
    faces = [np.asarray(getattr(part, "faces", np.zeros((0, 3), np.int64))) for part in parts]
    starts = np.cumsum([0, *map(len, vertices)])[:-1]
    moved = [block.reshape(-1, 3) + start for block, start in zip(faces, starts, strict=True)]
    empty = np.zeros((0, 3))
    return np.concatenate([empty, *vertices]), np.concatenate([empty.astype(int), *moved])


def _read_mat(path: Path) -> Parts:
    content = read_tables(path, ("v", "f"))
    missing = [key for key in ("v", "f") if key not in content]
    if missing:
        raise FileError(
            f"{path} holds no {' and no '.join(missing)}: vertices `v` (n, 3) and faces `f` "
            "(m, 3), numbered from one, are needed."
        )
    vertices, given = (np.asarray(content[key], dtype=np.float64) for key in ("v", "f"))
    faces = given.astype(np.int64, casting="unsafe") if np.all(np.abs(given) < 2**53) else None
    if faces is None or np.any(faces != given):
        wrong = given[(given != np.round(given)) | ~(np.abs(given) < 2**53)][0]
        raise FileError(f"{path}: f has the entry {wrong:g}; whole numbers are needed.")
    return vertices, faces - 1


READERS: dict[str, Callable[[Path], Parts]] = {
    ".obj": _read_obj,
    ".off": _read_off,
    ".ply": _read_ply,
    ".stl": _read_with_trimesh,
    ".mat": _read_mat,
}


def write_mesh(path: str | Path, mesh: Mesh, uv: np.ndarray | None = None) -> Path:
    """Write an OBJ or a PLY file, with the flat coordinates `uv` (n, 2) as texture coordinates
    (`vt`, or the properties `s` and `t`)."""
    path = check_writable(path)
    if uv is not None and np.shape(uv) != (len(mesh.vertices), 2):
        raise SurfaceError(
            f"The flat coordinates have shape {np.shape(uv)}, but the mesh has "
            f"{len(mesh.vertices)} vertices: (n, 2) is needed."
        )
    suffix = path.suffix.lower()
    if suffix == ".ply":
        write_file(path, _ply_bytes(mesh, uv))
    elif suffix == ".obj":
        write_file(path, _obj_text(mesh, uv))
    else:
        raise FileError(f"{path}: a mesh with flat coordinates is written as .obj or .ply.")
    return path


def _obj_text(mesh: Mesh, uv: np.ndarray | None) -> str:
    """Faces must name their texture coordinates, or other programs ignore them."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    corner = "{0}"
    if uv is not None:
        lines += [f"vt {u!r} {v!r}" for u, v in np.asarray(uv, dtype=np.float64).tolist()]
        corner = "{0}/{0}"
    for face in (mesh.faces + 1).tolist():
        lines.append(" ".join(["f", *(corner.format(vertex) for vertex in face)]))
    return "\n".join(lines) + "\n"


def _ply_bytes(mesh: Mesh, uv: np.ndarray | None) -> bytes:
    """A binary PLY file, in doubles."""
    columns = mesh.vertices if uv is None else np.column_stack([mesh.vertices, uv])
    names = ("x", "y", "z", "s", "t")[: columns.shape[1]]
    header = [
        "ply",
        "format binary_little_endian 1.0",
        "comment written by cordes",
        f"element vertex {len(mesh.vertices)}",
        *(f"property double {name}" for name in names),
        f"element face {len(mesh.faces)}",
        "property list uint8 int32 vertex_indices",
        "end_header\n",
    ]
    faces = np.zeros(len(mesh.faces), dtype=[("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, mesh.faces
    return "\n".join(header).encode() + columns.astype("<f8").tobytes() + faces.tobytes()
