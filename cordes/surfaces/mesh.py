"""Triangle meshes: reading, writing, and what is wrong with their topology.

A surface can be laid flat onto a rectangle or a disk if it is one piece with one boundary loop and
no handles. `prepare` repairs what can be repaired without changing the shape, reports it, and
refuses the rest with a remedy.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from cordes.errors import CordesError, FileError, unknown
from cordes.solutions.storage import check_writable

# Formats that meshio reads; it is imported where it is needed, so that surfaces made in code do
# without it.
FORMATS = (".obj", ".off", ".ply", ".stl")
# A face is flat to nothing if its area is below this share of its longest edge squared; a sliver
# has an angle below this many degrees.
NO_AREA = 1e-12
SLIVER = 1.0
# A boundary vertex is a natural corner if the surface's angle there is below this many degrees (a
# straight boundary has 180).
SHARP = 125.0


class SurfaceError(CordesError):
    """A mesh that cannot be laid flat."""

    kind = "surface"


@dataclass(frozen=True)
class Mesh:
    """Vertices (n, 3) and the vertex numbers of the faces (m, 3), from zero. Checked: shapes,
    finite coordinates, numbers in range."""

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices, dtype=np.float64), np.asarray(self.faces)
        if vertices.ndim == 2 and vertices.shape[1] == 2:
            vertices = np.column_stack([vertices, np.zeros(len(vertices))])
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise SurfaceError(f"The vertices have shape {vertices.shape}; (n, 3) is needed.")
        if (
            faces.ndim != 2
            or faces.shape[1] != 3
            or not np.issubdtype(faces.dtype, np.integer)
            or len(faces) == 0
        ):
            raise SurfaceError(
                f"The faces have shape {faces.shape} and type {faces.dtype}; whole numbers of "
                "shape (m, 3), m ≥ 1, are needed."
            )
        # Unsigned numbers would wrap around in every difference.
        faces = faces.astype(np.int64)
        wrong = np.any((faces < 0) | (faces >= len(vertices)), axis=1)
        if np.any(wrong):
            first = int(np.argmax(wrong))
            raise SurfaceError(
                f"Face {first} refers to the vertices {faces[first].tolist()}, but they are "
                f"numbered from 0 to {len(vertices) - 1}."
            )
        if not np.all(np.isfinite(vertices)):
            first = int(np.argmin(np.all(np.isfinite(vertices), axis=1)))
            raise SurfaceError(
                f"Vertex {first} has the coordinates {vertices[first].tolist()}: all must be "
                "finite."
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    @property
    def areas(self) -> np.ndarray:
        """The areas of the faces."""
        corner = self.vertices[self.faces]
        return (
            np.linalg.norm(
                np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1
            )
            / 2
        )

    @property
    def angles(self) -> np.ndarray:
        """The angle at each corner of each face in radians, shape (m, 3)."""
        return corner_angles(self.vertices[self.faces])


def corner_angles(corner: np.ndarray) -> np.ndarray:
    """Angles of triangles with the corners (m, 3, d). The half-angle form of the arctangent stays
    accurate for needles."""
    angles = []
    for k in range(3):
        a, b = corner[:, (k + 1) % 3] - corner[:, k], corner[:, (k + 2) % 3] - corner[:, k]
        a, b = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300) for v in (a, b))
        angles.append(2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1)))
    return np.stack(angles, axis=1)


def read_mesh(path: str | Path) -> Mesh:
    """A mesh from an OBJ, OFF, PLY or STL file, or from a MATLAB file with `v` (n, 3) and `f` (m,
    3), numbered from one. Polygons are cut into fans."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (*FORMATS, ".mat"):
        raise unknown("mesh format", suffix or path.name, [*FORMATS, ".mat"])
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    try:
        vertices, faces = _read_mat(path) if suffix == ".mat" else _read_with_meshio(path, suffix)
    except CordesError:
        raise
    except Exception as error:  # The readers fail in many ways on broken files; each of them means the same to the user.
        raise FileError(
            f"{path} cannot be read as {suffix[1:].upper()}: {str(error) or type(error).__name__}."
        ) from error
    try:
        mesh = Mesh(vertices, faces)
    except SurfaceError as error:
        raise FileError(f"{path}: {error}") from error
    return merge_duplicates(mesh) if suffix == ".stl" else mesh


def _read_with_meshio(path: Path, suffix: str) -> tuple[np.ndarray, np.ndarray]:
    import meshio

    source: Any = str(path)
    if suffix == ".obj":
        # meshio wants one texture coordinate for each vertex, but along a seam a vertex has
        # several. They are not needed here.
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        source = io.StringIO(
            "".join(line for line in lines if not line.lstrip().startswith(("vt", "vn")))
        )
    # The reader of STL files overflows, harmlessly, while it finds out whether they are text.
    with np.errstate(over="ignore"):
        content = getattr(meshio, suffix[1:]).read(source)
    faces = []
    for block in content.cells:
        if block.type not in ("triangle", "quad", "polygon"):
            continue
        for k in range(1, np.shape(block.data)[1] - 1):
            faces.append(np.asarray(block.data)[:, [0, k, k + 1]])
    if not faces or len(content.points) == 0:
        raise FileError(
            f"{path} holds no faces. A triangle mesh is needed: point clouds and curves "
            "cannot be laid flat."
        )
    faces = np.concatenate(faces).astype(np.int64)
    if suffix == ".obj" and np.any(faces < -1):
        raise FileError(
            f"{path} counts vertices backwards (negative numbers in its faces). Export it "
            "again with absolute numbers."
        )
    return np.asarray(content.points, dtype=np.float64), faces


def _read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    content = scipy.io.loadmat(path)
    missing = [key for key in ("v", "f") if key not in content]
    if missing:
        raise FileError(
            f"{path} holds no {' and no '.join(missing)}: vertices `v` (n, 3) and faces `f` "
            "(m, 3), numbered from one, are needed."
        )
    # Cast before subtracting: the numbers are often unsigned, or doubles.
    return np.asarray(content["v"], dtype=np.float64), np.asarray(content["f"]).astype(np.int64) - 1


def merge_duplicates(mesh: Mesh) -> Mesh:
    """The mesh with vertices at the same place made one, in the order of their first appearance.
    STL files repeat each vertex for each face."""
    _, first, inverse = np.unique(mesh.vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Mesh(mesh.vertices[first[order]], rank[inverse.ravel()][mesh.faces])


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
        data = {} if uv is None else {"s": np.asarray(uv)[:, 0], "t": np.asarray(uv)[:, 1]}
        import meshio

        meshio.ply.write(
            str(path),
            meshio.Mesh(
                mesh.vertices, [("triangle", mesh.faces.astype(np.int32))], point_data=data
            ),
        )  # pyright: ignore[reportArgumentType]
    elif suffix == ".obj":
        # Written here: the faces must name their texture coordinates, or other programs ignore
        # them.
        lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
        if uv is None:
            lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
        else:
            lines += [f"vt {u!r} {v!r}" for u, v in np.asarray(uv, dtype=np.float64).tolist()]
            lines += [f"f {a}/{a} {b}/{b} {c}/{c}" for a, b, c in (mesh.faces + 1).tolist()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        raise unknown(
            "format for a mesh with flat coordinates", suffix or path.name, [".obj", ".ply"]
        )
    return path


@dataclass(frozen=True)
class Topology:
    """What a mesh is made of. Edges are pairs of vertex numbers, faces are given by number; `loops`
    run with the surface on their left.

    `ears` are faces that hang on one edge, `dividing_edges` inner edges between two boundary
    vertices, `slivers` faces with an angle below one degree, `inconsistent_edges` those that both
    faces run through in the same direction, `pinched` vertices at which two fans of faces meet.
    """

    components: int
    loops: tuple[np.ndarray, ...]
    euler: int
    nonmanifold_edges: np.ndarray
    inconsistent_edges: np.ndarray
    dividing_edges: np.ndarray
    pinched: np.ndarray
    ears: np.ndarray
    slivers: np.ndarray
    zero_area: np.ndarray
    unreferenced: np.ndarray

    def as_data(self) -> dict[str, Any]:
        """Counts, for reports."""
        lists = {
            name: len(getattr(self, name))
            for name in self.__dataclass_fields__
            if name not in ("components", "loops", "euler")
        }
        return {
            "components": self.components,
            "boundary_loops": [len(loop) for loop in self.loops],
            "euler": self.euler,
            **lists,
        }


def check_topology(mesh: Mesh) -> Topology:
    """Look at everything; change nothing. Loops are followed only where edges are manifold and
    directions agree."""
    faces, count = mesh.faces, len(mesh.vertices)
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges, number, uses = np.unique(
        np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    number = number.ravel()
    forward = np.bincount(number[directed[:, 0] < directed[:, 1]], minlength=len(edges))
    used = np.unique(faces)
    graph = scipy.sparse.coo_matrix(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(count, count)
    )
    pieces = connected_components(graph, directed=False)[0] - (count - len(used))
    rim = np.zeros(count, dtype=bool)
    rim[edges[uses == 1]] = True
    free_edges = (uses == 1)[number].reshape(3, -1).sum(axis=0)
    ears = np.flatnonzero(free_edges == 2)
    dividing = (uses == 2) & np.all(rim[edges], axis=1)
    corner = mesh.vertices[faces]
    longest = np.max(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2), axis=1)
    zero = mesh.areas <= NO_AREA * longest**2
    inconsistent = (uses == 2) & (forward != 1)
    manifold = not np.any(uses > 2) and not np.any(inconsistent)
    loops, pinched = (
        _loops(directed[(uses == 1)[number]]) if manifold else ((), np.zeros(0, dtype=np.int64))
    )
    return Topology(
        components=pieces,
        loops=loops,
        euler=len(used) - len(edges) + len(faces),
        nonmanifold_edges=edges[uses > 2],
        inconsistent_edges=edges[inconsistent],
        dividing_edges=edges[dividing],
        pinched=pinched,
        ears=ears,
        slivers=np.flatnonzero((np.min(mesh.angles, axis=1) < np.radians(SLIVER)) & ~zero),
        zero_area=np.flatnonzero(zero),
        unreferenced=np.setdiff1d(np.arange(count), used),
    )


def _loops(boundary: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Closed chains of boundary edges, each from its smallest vertex number on, and the vertices
    that two chains share."""
    starts, uses = np.unique(boundary[:, 0], return_counts=True)
    if np.any(uses > 1):
        return (), starts[uses > 1]
    following = dict(boundary.tolist())
    loops = []
    while following:
        chain = [min(following)]
        while (step := following.pop(chain[-1])) != chain[0]:
            chain.append(step)
        loops.append(np.array(chain))
    return tuple(loops), np.zeros(0, dtype=np.int64)


def orient(mesh: Mesh) -> Mesh:
    """The mesh with faces turned so that neighbours run through their edge in opposite directions.
    Refused where that is impossible (a Möbius band)."""
    faces, count = mesh.faces, len(mesh.faces)
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    key = np.sort(directed, axis=1) @ np.array([len(mesh.vertices), 1])
    order = np.argsort(key, kind="stable")
    pairs = np.flatnonzero(key[order][1:] == key[order][:-1])
    first, second = order[pairs], order[pairs + 1]
    # Two faces disagree if they run through their edge in the same direction. Who is to be turned
    # follows along the breadth-first tree.
    disagree = directed[first, 0] == directed[second, 0]
    graph = scipy.sparse.coo_matrix(
        (np.ones(len(pairs)), (first % count, second % count)), shape=(count, count)
    ).tocsr()
    turns = dict(zip(zip(first % count, second % count, strict=True), disagree, strict=True))
    turned = np.zeros(count, dtype=bool)
    labels = connected_components(graph, directed=False)[1]
    for start in np.unique(labels, return_index=True)[1]:
        visited, parents = breadth_first_order(graph, start, directed=False)
        for face in visited[1:]:
            parent = parents[face]
            edge = turns[(face, parent)] if (face, parent) in turns else turns[(parent, face)]
            turned[face] = turned[parent] ^ edge
    result = Mesh(mesh.vertices, np.where(turned[:, None], faces[:, ::-1], faces))
    left = check_topology(result).inconsistent_edges
    if len(left):
        raise SurfaceError(
            "The surface has one side only (a Möbius band), seen at the edge "
            f"{left[0].tolist()}. Cut it along a line across the band."
        )
    return result


@dataclass(frozen=True)
class Disk:
    """A mesh that is ready to be laid flat: one piece, one boundary loop. `original[i]` is the
    number vertex i had in the file, −1 for an added one."""

    mesh: Mesh
    loop: np.ndarray
    original: np.ndarray
    topology: Topology
    repairs: tuple[str, ...]

    def numbers(self, original: Sequence[int]) -> np.ndarray:
        """The numbers that vertices of the file have now; −1 for those that were removed."""
        where = {int(old): new for new, old in enumerate(self.original) if old >= 0}
        return np.array([where.get(int(old), -1) for old in original])


def natural_corners(mesh: Mesh, loop: np.ndarray) -> np.ndarray | None:
    """The sharp vertices of the boundary if it has exactly four."""
    totals = np.bincount(mesh.faces.ravel(), mesh.angles.ravel(), len(mesh.vertices))
    sharp = loop[totals[loop] < np.radians(SHARP)]
    return sharp if len(sharp) == 4 else None


def prepare(mesh: Mesh, keep: Sequence[int] = ()) -> Disk:
    """Check the topology, repair what is safe to repair, refuse the rest. `topology` is that of the
    mesh as it was given.

    Repaired and reported: vertices that no face uses are dropped, faces are turned to agree, ears
    are cut off (they would be laid onto a line, and blunting their tips distorts much), and inner
    edges that join two boundary vertices are divided at their middle, because all that lies behind
    such an edge could end on a line too. Ears whose tip is one of the vertices `keep`, or a natural
    corner, stay and are divided.
    """
    topology = check_topology(mesh)
    _refuse_broken(mesh, topology)
    original, repairs = np.arange(len(mesh.vertices)), []
    if len(topology.inconsistent_edges):
        mesh = orient(mesh)
        repairs.append(
            f"faces turned so that they agree across {len(topology.inconsistent_edges)} edges"
        )
    ears = _ears_to_cut(mesh, keep)
    if len(ears):
        mesh = Mesh(mesh.vertices, np.delete(mesh.faces, ears, axis=0))
        repairs.append(f"{len(ears)} ear triangles cut off")
    used = np.unique(mesh.faces)
    if len(topology.unreferenced):
        repairs.append(f"{len(topology.unreferenced)} vertices that no face uses dropped")
    mesh, original = Mesh(mesh.vertices[used], np.searchsorted(used, mesh.faces)), original[used]
    current = check_topology(mesh)
    _refuse_topology(mesh, current)
    divided = len(current.dividing_edges)
    if divided:
        mesh = _divide(mesh, current.dividing_edges)
        original = np.concatenate([original, np.full(divided, -1)])
        repairs.append(f"{divided} inner edges between boundary vertices divided at their middle")
        current = check_topology(mesh)
    return Disk(mesh, current.loops[0], original, topology, tuple(repairs))


def _ears_to_cut(mesh: Mesh, keep: Sequence[int]) -> np.ndarray:
    """Ears once, not again and again: a strip one face wide would be eaten up from its ends. None
    if nothing else would be left."""
    topology = check_topology(mesh)
    kept = np.asarray(keep, dtype=np.int64)
    if (
        len(topology.loops) == 1
        and (corners := natural_corners(mesh, topology.loops[0])) is not None
    ):
        kept = np.concatenate([kept, corners])
    faces = mesh.faces[topology.ears]
    tip = np.bincount(mesh.faces.ravel(), minlength=len(mesh.vertices))[faces] == 1
    ears = topology.ears[~np.any(tip & np.isin(faces, kept), axis=1)]
    return ears if len(ears) < len(mesh.faces) else ears[:0]


def _divide(mesh: Mesh, edges: np.ndarray) -> Mesh:
    """Each edge gets a vertex at its middle, and its two faces become four. One edge after another,
    because a face may have several."""
    vertices, faces = mesh.vertices, mesh.faces
    for a, b in edges:
        touching = np.flatnonzero(np.any(faces == a, axis=1) & np.any(faces == b, axis=1))
        middle = len(vertices)
        vertices = np.concatenate([vertices, (vertices[a] + vertices[b])[None] / 2])
        halves = [np.where(faces[touching] == end, middle, faces[touching]) for end in (a, b)]
        faces = np.concatenate([np.delete(faces, touching, axis=0), *halves])
    return Mesh(vertices, faces)


def _refuse_broken(mesh: Mesh, topology: Topology) -> None:
    if len(topology.zero_area):
        which = topology.zero_area[:5].tolist()
        raise SurfaceError(
            f"{len(topology.zero_area)} of {len(mesh.faces)} faces have no area (face numbers "
            f"{which}{' …' if len(topology.zero_area) > 5 else ''}, vertices "
            f"{mesh.faces[which[0]].tolist()}). Merge vertices at the same place and collapse the "
            "shortest edges in a mesh editor."
        )
    if len(topology.nonmanifold_edges):
        a, b = topology.nonmanifold_edges[0].tolist()
        raise SurfaceError(
            f"{len(topology.nonmanifold_edges)} edges have more than two faces, the first between "
            f"the vertices {a} and {b}. Delete the extra faces there: a surface has at most two "
            "faces at an edge."
        )


def _refuse_topology(mesh: Mesh, topology: Topology) -> None:
    if topology.components > 1:
        twins = len(mesh.vertices) - len(np.unique(mesh.vertices, axis=0))
        merge = (
            (
                f" {twins} vertices lie at the place of another one: merge them first "
                "(merge_duplicates)."
            )
            if twins
            else ""
        )
        raise SurfaceError(
            f"The mesh has {topology.components} separate pieces. Keep one of them, or lay "
            f"each flat by itself.{merge}"
        )
    if len(topology.pinched):
        raise SurfaceError(
            f"Two fans of faces meet at vertex {int(topology.pinched[0])} only. Split that "
            "vertex in two, or delete one of the fans."
        )
    if len(topology.loops) == 0:
        raise SurfaceError(
            "The surface is closed: it has no boundary and must be cut before it can be laid "
            "flat. Mark a path of edges as a seam in a mesh editor and split it, or delete a "
            "patch of faces (of a cortex: the medial wall)."
        )
    if len(topology.loops) > 1:
        sizes = sorted((len(loop) for loop in topology.loops), reverse=True)
        raise SurfaceError(
            f"The surface has {len(sizes)} boundary loops (of {', '.join(map(str, sizes[:6]))} "
            "vertices); one is needed. Fill the holes, or cut from one loop to the other along a "
            "path of edges."
        )
    if topology.euler != 1:
        handles = (1 - topology.euler) // 2
        raise SurfaceError(
            f"The surface has {handles} handle{'s' if handles != 1 else ''} (Euler number "
            f"{topology.euler}): cut or fill each of them."
        )
