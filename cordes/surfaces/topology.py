"""What a mesh is made of, and what is wrong with it.

A surface can be laid flat onto a rectangle or a disk if it is one piece with one boundary loop and
no handles. `prepare` repairs what can be repaired without changing the shape, reports it, and
refuses the rest with a remedy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order, connected_components

from cordes.surfaces.mesh import Mesh, SurfaceError

# A face is flat to nothing if its area is below this share of its longest edge squared; a sliver
# has an angle below this many degrees.
NO_AREA = 1e-12
SLIVER = 1.0
# A boundary vertex is a natural corner if the surface's angle there is below this many degrees (a
# straight boundary has 180).
SHARP = 125.0
# Widths of surfaces.
SMALLEST, LARGEST = 1e-75, 1e75


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
        found = vars(self)
        sizes = [len(loop) for loop in self.loops]
        numbers = {"components": self.components, "boundary_loops": sizes, "euler": self.euler}
        lists = found.keys() - {"components", "loops", "euler"}
        return numbers | {name: len(found[name]) for name in found if name in lists}


def check_topology(mesh: Mesh) -> Topology:
    """Look at everything; change nothing. Loops are followed only where edges are manifold and
    directions agree."""
    faces, count = mesh.faces, len(mesh.vertices)
    directed = _directed_edges(faces)
    edges, number, uses = np.unique(
        np.sort(directed, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    number = number.ravel()
    forward = np.bincount(number[directed[:, 0] < directed[:, 1]], minlength=len(edges))
    used = np.unique(faces)
    pieces = connected_components(_graph(edges[:, 0], edges[:, 1], count), directed=False)[0]
    rim = np.zeros(count, dtype=bool)
    rim[edges[uses == 1]] = True
    free_edges = (uses == 1)[number].reshape(3, -1).sum(axis=0)
    corner = mesh.vertices[faces]
    longest = np.max(np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2), axis=1)
    zero = mesh.areas <= NO_AREA * longest**2
    inconsistent = (uses == 2) & (forward != 1)
    manifold = not np.any(uses > 2) and not np.any(inconsistent)
    loops, pinched = _loops(directed[(uses == 1)[number]] if manifold else directed[:0])
    return Topology(
        components=pieces - (count - len(used)),
        loops=loops,
        euler=len(used) - len(edges) + len(faces),
        nonmanifold_edges=edges[uses > 2],
        inconsistent_edges=edges[inconsistent],
        dividing_edges=edges[(uses == 2) & np.all(rim[edges], axis=1)],
        pinched=pinched,
        ears=np.flatnonzero(free_edges == 2),
        slivers=np.flatnonzero((np.min(mesh.angles, axis=1) < np.radians(SLIVER)) & ~zero),
        zero_area=np.flatnonzero(zero),
        unreferenced=np.setdiff1d(np.arange(count), used),
    )


def _directed_edges(faces: np.ndarray) -> np.ndarray:
    """(3m, 2): the first edges of all faces, then the second and the third."""
    return np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])


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


def _graph(start: np.ndarray, end: np.ndarray, count: int) -> Any:
    return scipy.sparse.coo_matrix((np.ones(len(start)), (start, end)), shape=(count, count))


def orient(mesh: Mesh) -> Mesh:
    """The mesh with faces turned so that neighbours run through their edge in opposite directions.
    Refused where that is impossible (a Möbius band)."""
    faces, count = mesh.faces, len(mesh.faces)
    directed = _directed_edges(faces)
    key = np.sort(directed, axis=1) @ np.array([len(mesh.vertices), 1])
    order = np.argsort(key, kind="stable")
    pairs = np.flatnonzero(key[order][1:] == key[order][:-1])
    first, second = order[pairs], order[pairs + 1]
    # Two faces disagree if they run through their edge in the same direction. Who is to be turned
    # follows along the breadth-first tree.
    disagree = directed[first, 0] == directed[second, 0]
    one, other = first % count, second % count
    graph = _graph(one, other, count).tocsr()
    turns = dict(zip(zip(one, other, strict=True), disagree, strict=True))
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


def _refuse_scale(mesh: Mesh) -> None:
    """The fourth power of a length must neither vanish nor overflow: it would look like a face
    without area."""
    size = float(np.max(np.ptp(mesh.vertices[mesh.faces].reshape(-1, 3) / 2, axis=0))) * 2
    if 0 < size < SMALLEST or size > LARGEST:
        raise SurfaceError(
            f"The surface is {size:.3g} wide, and areas on it cannot be computed: scale it, so "
            "that it is about 1 wide."
        )


def prepare(mesh: Mesh, keep: Sequence[int] = ()) -> Disk:
    """Check the topology, repair what is safe to repair, refuse the rest. `topology` is that of the
    mesh as it was given.

    Repaired and reported: vertices that no face uses are dropped, faces are turned to agree, ears
    are cut off (they would be laid onto a line, and blunting their tips distorts much), and inner
    edges that join two boundary vertices are divided at their middle, because all that lies behind
    such an edge could end on a line too. Ears whose tip is one of the vertices `keep`, or a natural
    corner, stay and are divided.
    """
    _refuse_scale(mesh)
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
    topology, kept = check_topology(mesh), list(keep)
    if len(topology.loops) == 1:
        corners = natural_corners(mesh, topology.loops[0])
        kept += [] if corners is None else list(corners)
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
    if count := len(topology.zero_area):
        which = topology.zero_area[:5].tolist()
        raise SurfaceError(
            f"{count} of {len(mesh.faces)} faces have no area (face numbers "
            f"{which}{' …' if count > 5 else ''}, vertices {mesh.faces[which[0]].tolist()}). Merge "
            "vertices at the same place and collapse the shortest edges in a mesh editor."
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
        merge = f" {twins} vertices lie at the place of another one: merge them first"
        raise SurfaceError(
            f"The mesh has {topology.components} separate pieces. Keep one of them, or lay "
            f"each flat by itself.{f'{merge} (merge_duplicates).' if twins else ''}"
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
