"""Conformal maps of a disk-like surface to a rectangle and to the unit disk, by sparse Laplace
solves.

Angles are kept, areas are not: the area distortion of these maps is what optimal transport corrects
afterwards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy.sparse.linalg import splu

from cordes.surfaces.mesh import Mesh, SurfaceError
from cordes.surfaces.topology import Disk, natural_corners

# Rounds of repairs of flipped faces, after how many of them one more ring of neighbours joins in,
# and how many may pass without progress.
ROUNDS, RING, PATIENCE = 40, 8, 12
# Above this share of flipped faces, repairs one by one are hopeless. The least weight of an edge
# where all must be positive, relative to the mean.
MANY = 0.02
LEAST_WEIGHT = 1e-3


@dataclass(frozen=True)
class FlatMap:
    """Flat coordinates (n, 2) of the vertices. A rectangle reaches from (0, 0) to `size` = (1,
    height); a disk has radius 1 and no size.

    `corners` are vertex numbers, counterclockwise from (0, 0). `flipped_before` faces were turned
    over by the Laplace solves; `flipped` still are.
    """

    uv: np.ndarray
    size: np.ndarray | None
    corners: np.ndarray | None
    flipped_before: int
    flipped: int


def flat_areas(uv: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Signed areas of flat faces: negative where a face is turned over."""
    return plane_cross(uv[faces[:, 1]] - uv[faces[:, 0]], uv[faces[:, 2]] - uv[faces[:, 0]]) / 2


def count_flipped(uv: np.ndarray, faces: np.ndarray) -> int:
    return int(np.sum(flat_areas(uv, faces) <= 0))


def plane_cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Signed areas of the parallelograms between plane vectors (n, 2)."""
    return a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]


def cotangent_laplacian(mesh: Mesh, positive: bool = False) -> Any:
    """The matrix of the Dirichlet energy: uᵀLu = ∫|∇u|² for the piecewise linear u.

    `positive` raises the weights of edges opposite to wide angles to a small positive number. Every
    vertex is then a convex combination of its neighbours, which rules out flipped faces, at the
    price of some conformality.
    """
    faces, count = mesh.faces, len(mesh.vertices)
    halves = 0.5 / np.tan(mesh.angles)
    start = np.concatenate([faces[:, (k + 1) % 3] for k in range(3)])
    end = np.concatenate([faces[:, (k + 2) % 3] for k in range(3)])
    weights = scipy.sparse.coo_matrix((halves.T.ravel(), (start, end)), shape=(count, count))
    weights = (weights + weights.T).tocsr()
    if positive:
        weights.data = np.maximum(weights.data, LEAST_WEIGHT * np.mean(np.abs(weights.data)))
    return (scipy.sparse.diags(np.asarray(weights.sum(axis=1)).ravel()) - weights).tocsr()


class DirichletSolver:
    """Harmonic functions with given values at the vertices `fixed`; natural conditions on the rest
    of the boundary. Factorised once."""

    def __init__(self, laplacian: Any, fixed: np.ndarray):
        self.laplacian, self.fixed = laplacian, fixed
        self.free = np.setdiff1d(np.arange(laplacian.shape[0]), fixed)
        # The symmetric ordering is what makes this a matter of a second: the default one takes
        # minutes on a hundred thousand faces.
        inner, symmetric = laplacian[self.free][:, self.free].tocsc(), {"SymmetricMode": True}
        self.factors = splu(inner, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)

    def solve(self, values: np.ndarray, load: np.ndarray | None = None) -> np.ndarray:
        """u with Lu = load (zero if not given) at the free vertices and the given values at the
        others."""
        result = np.zeros(self.laplacian.shape[0])
        result[self.fixed] = values
        right = -(self.laplacian @ result)[self.free]
        result[self.free] = self.factors.solve(right if load is None else right + load[self.free])
        return result


def choose_corners(disk: Disk) -> np.ndarray:
    """Four vertices of the boundary: the four sharp ones if the boundary has exactly four, else
    every ⌈n/4⌉-th vertex of the loop."""
    sharp = natural_corners(disk.mesh, disk.loop)
    if sharp is not None:
        return sharp
    if len(disk.loop) < 4:
        raise SurfaceError(
            f"The boundary has {len(disk.loop)} vertices; a map to a rectangle needs four. "
            "Refine the mesh, or map to the disk."
        )
    # Spread evenly: every ⌈n/4⌉-th vertex would leave no fourth one on the shortest loops (5 or 9
    # vertices).
    count = len(disk.loop)
    step = -(-count // 4)
    return disk.loop[step * np.arange(4) if 3 * step < count else np.arange(4) * count // 4]


def rectangle_map(disk: Disk, corners: Sequence[int] | None = None, count_from: int = 0) -> FlatMap:
    """The conformal map to the rectangle (0, 1) × (0, height): x and y are harmonic, given on two
    opposite sides, natural on the other two.

    `corners` are four vertex numbers of the file on the boundary, counted from `count_from`; they
    are sorted along it, and the first one given goes to (0, 0). The height is the conformal
    modulus: ∫|∇x|² = height and ∫|∇(y/height)|² = 1/height on the exact map. Both discrete energies
    are too large, so that the root of their quotient is better than either.
    """
    chosen = choose_corners(disk) if corners is None else _check_corners(disk, corners, count_from)
    positions = [int(np.flatnonzero(disk.loop == corner)[0]) for corner in chosen]
    turn = positions[0]
    loop = np.roll(disk.loop, -turn)
    breaks = [*sorted((position - turn) % len(loop) for position in positions), len(loop)]
    around = np.append(loop, loop[0])
    bottom, right, top, left = (around[breaks[k] : breaks[k + 1] + 1] for k in range(4))

    def flatten(positive: bool) -> np.ndarray:
        laplacian = cotangent_laplacian(disk.mesh, positive)
        x, y = (_between(laplacian, low, high) for low, high in ((left, right), (bottom, top)))
        height = np.sqrt((x @ (laplacian @ x)) / (y @ (laplacian @ y)))
        return np.stack([x, height * y], axis=1)

    uv, before, after = _without_flips(disk, flatten)
    return FlatMap(uv, np.array([1.0, np.max(uv[:, 1])]), loop[breaks[:4]], before, after)


def _between(laplacian: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The harmonic function that is 0 on one side and 1 on the opposite one."""
    values = np.repeat([0.0, 1.0], [len(low), len(high)])
    return DirichletSolver(laplacian, np.concatenate([low, high])).solve(values)


def _check_corners(disk: Disk, corners: Sequence[int], count_from: int) -> np.ndarray:
    """The numbers the corners have in the prepared mesh. Messages use the numbers as the user
    counts them."""
    counted = f"counted from {count_from}"
    if len(corners) != 4 or len(set(corners)) != 4:
        raise SurfaceError(
            f"The corners {list(corners)} are not four different vertices: give four vertex "
            f"numbers on the boundary, {counted}."
        )
    largest = int(np.max(disk.original)) + count_from
    numbers = disk.numbers([int(corner) - count_from for corner in corners])
    for corner, number in zip(corners, numbers, strict=True):
        if not count_from <= corner <= largest:
            raise SurfaceError(
                f"There is no vertex {corner}: they are numbered from {count_from} to {largest}."
            )
        if number < 0:
            raise SurfaceError(
                f"Vertex {corner} cannot be a corner: no face uses it, or it is the tip of an "
                "ear that was cut off. Take a neighbour."
            )
        if number not in disk.loop:
            position = disk.mesh.vertices[number]
            candidates = disk.loop[disk.original[disk.loop] >= 0]
            distances = np.linalg.norm(disk.mesh.vertices[candidates] - position, axis=1)
            nearest = candidates[np.argmin(distances)]
            raise SurfaceError(
                f"Vertex {corner} ({counted}) at {np.round(position, 4).tolist()} is not on the "
                f"boundary. The nearest boundary vertex is {disk.original[nearest] + count_from}."
            )
    return numbers


def disk_map(disk: Disk) -> FlatMap:
    """The conformal map to the unit disk that takes a vertex in the middle of the surface to the
    centre.

    If f is the conformal map, log|f| is the Green's function g of the vertex taken to the centre,
    and the boundary turns by the angle dθ = ∂ₙg ds. So the flux of the discrete Green's function
    out of each boundary vertex tells where the vertex lies on the circle, and the inside is
    harmonic.
    """
    count, loop = len(disk.mesh.vertices), disk.loop
    masses = np.bincount(disk.mesh.faces.ravel(), np.repeat(disk.mesh.areas / 3, 3), count)

    def flatten(positive: bool) -> np.ndarray:
        laplacian = cotangent_laplacian(disk.mesh, positive)
        solver = DirichletSolver(laplacian, loop)
        if len(solver.free) == 0:
            raise SurfaceError(
                "Every vertex lies on the boundary: refine the mesh, so that there is a vertex "
                "inside."
            )
        # The middle is where the torsion function, −Δt = 1, is largest: far from the boundary in a
        # way that does not depend on the mesh.
        center = int(np.argmax(solver.solve(np.zeros(len(loop)), masses)))
        load = np.zeros(count)
        load[center] = 1.0
        green = solver.solve(np.zeros(len(loop)), load)
        # Obtuse faces at the boundary can make a flux negative: such vertices share the place of
        # their neighbours up to a hair.
        flux = np.maximum(-(laplacian @ green)[loop], 1e-3 / len(loop))
        share = flux / np.sum(flux)
        angle = 2 * np.pi * (np.cumsum(share) - share / 2)
        return np.stack([solver.solve(np.cos(angle)), solver.solve(np.sin(angle))], axis=1)

    uv, before, after = _without_flips(disk, flatten)
    return FlatMap(uv, None, None, before, after)


def _without_flips(
    disk: Disk, flatten: Callable[[bool], np.ndarray]
) -> tuple[np.ndarray, int, int]:
    """The flat map with cotangent weights; flipped faces are repaired in place, and where that
    fails all weights are made positive."""
    uv, faces = flatten(False), disk.mesh.faces
    before = count_flipped(uv, faces)
    if before:
        uv = unfold(disk, uv) if before <= MANY * len(faces) else uv
        if count_flipped(uv, faces):
            uv = unfold(disk, flatten(True))
    return uv, before, count_flipped(uv, faces)


def unfold(disk: Disk, uv: np.ndarray, rounds: int = ROUNDS) -> np.ndarray:
    """Turn flipped faces back by moving single inner vertices; the boundary and everything farther
    away stay as they are.

    The signed areas of the faces around a vertex are linear in its position. A vertex of a flipped
    face goes where the smallest of them, each relative to the area of the face on the surface, is
    largest: a linear programme in three unknowns. Neighbours join in when a flip does not yield at
    once.
    """
    faces, uv = disk.mesh.faces, np.array(uv)
    inner = np.ones(len(uv), dtype=bool)
    inner[disk.loop] = False
    shares = disk.mesh.areas / np.sum(disk.mesh.areas)
    total = float(np.abs(np.sum(flat_areas(uv, faces))))
    order = np.argsort(faces.ravel(), kind="stable")
    starts = np.searchsorted(faces.ravel()[order], np.arange(len(uv) + 1))

    def star(vertex: int) -> np.ndarray:
        return order[starts[vertex] : starts[vertex + 1]] // 3

    best, fewest, since = uv.copy(), len(faces) + 1, 0
    for attempt in range(rounds + 1):
        flipped = np.flatnonzero(flat_areas(uv, faces) <= 0)
        if len(flipped) < fewest:
            best, fewest, since = uv.copy(), len(flipped), 0
        if fewest == 0 or since > PATIENCE:
            break
        since += 1
        moving = np.unique(faces[flipped])
        for _ in range(attempt // RING):
            moving = np.unique(np.concatenate([faces[star(v)].ravel() for v in moving]))
        for vertex in moving[inner[moving]]:
            around = star(vertex)
            uv[vertex] = _best_position(vertex, faces[around], uv, shares[around] * total)
    return best


def _best_position(vertex: int, star: np.ndarray, uv: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The position that maximises the smallest ratio of flat area to wanted area in the star of a
    vertex."""
    turns, rows = np.argmax(star == vertex, axis=1), np.arange(len(star))
    a, b = uv[star[rows, (turns + 1) % 3]], uv[star[rows, (turns + 2) % 3]]
    # In units of the star: areas are otherwise too small for the solver's tolerances.
    origin, scale = uv[vertex], np.sqrt(np.sum(wanted))
    a, b = (a - origin) / scale, (b - origin) / scale
    constant = plane_cross(a, b) / 2
    slope = np.stack([a[:, 1] - b[:, 1], b[:, 0] - a[:, 0]], axis=1) / 2
    sides = np.column_stack([-slope, wanted / scale**2])
    free = [(None, None)] * 3
    answer = scipy.optimize.linprog([0.0, 0.0, -1.0], A_ub=sides, b_ub=constant, bounds=free)
    return origin + scale * answer.x[:2] if answer.status == 0 else origin
