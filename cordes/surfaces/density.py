"""The density that a flat map leaves to optimal transport, and the map that the classical baseline
makes of it.

Where a flat map shrinks the surface, much of its area lies on little of the rectangle: area of the
surface over flat area is the source density. Transport to the uniform density then gives every part
of the surface its share of the rectangle.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.ndimage
from jax import Array

from cordes.errors import CoefficientError, OptionError
from cordes.formulas.lookups.primitives import smooth
from cordes.references.dct_transport import DctTransport, solve_dct
from cordes.surfaces.conformal import FlatMap, count_flipped, unfold
from cordes.surfaces.distortion import Distortion, measure
from cordes.surfaces.mesh import SurfaceError
from cordes.surfaces.topology import Disk

# Each face is sampled at points closer together than this many cells, but with no more than MOST²
# points; points are made in blocks of this many.
SPACING = 1.0
MOST = 256
BLOCK = 1_000_000
# The density is nowhere below this share of its mean: rounding can leave a cell of the rectangle
# without a face.
LEAST_DENSITY = 1e-8


def grid_shape(size: np.ndarray, resolution: int) -> tuple[int, int]:
    """Cells for a rectangle, nearly square, `resolution` along the longer side. Multiples of eight
    can be halved by coarser grids."""
    if resolution < 32:
        raise OptionError(
            f"The resolution is {resolution}; at least 32 cells along the longer side are needed."
        )
    wide, high = (max(32, 8 * round(resolution * side / max(size) / 8)) for side in size)
    return wide, high


def surface_density(
    disk: Disk, uv: np.ndarray, size: np.ndarray, resolution: int = 512, smoothing: float = 0.7
) -> np.ndarray:
    """The area of the surface that lies over each cell of a grid on the rectangle from (0, 0) to
    `size`, divided by its mean.

    Every face spreads its area over the cells it covers: it is divided into equal small triangles,
    and each gives its share to the four nearest cell centres, linearly. Nothing is lost.
    `smoothing` is the width of a Gaussian, in cells, that is reflected at the sides and keeps the
    total as well.
    """
    if smoothing < 0:
        raise OptionError(f"smoothing is {smoothing}: give a width in cells, zero or more.")
    shape = grid_shape(size, resolution)
    positions = uv[disk.mesh.faces] / size * shape
    extent = np.max(np.max(positions, axis=1) - np.min(positions, axis=1), axis=1)
    # Powers of two, so that there are few different subdivisions.
    parts = np.minimum(2 ** np.ceil(np.log2(np.maximum(extent / SPACING, 1))).astype(int), MOST)
    mass, areas = np.zeros((shape[0] + 2) * (shape[1] + 2)), disk.mesh.areas
    for count in np.unique(parts):
        weights = subdivision(int(count))
        members = np.flatnonzero(parts == count)
        for block in np.array_split(members, -(-len(members) * len(weights) // BLOCK)):
            places = [(positions[block, :, axis] @ weights.T).ravel() for axis in (0, 1)]
            shares = np.repeat(areas[block] / len(weights), len(weights))
            _spread(mass, np.stack(places, axis=1), shares, shape)
    grid = _fold(_fold(mass.reshape(shape[0] + 2, shape[1] + 2)).T).T
    grid = grid / np.mean(grid)
    if smoothing:
        grid = scipy.ndimage.gaussian_filter(grid, smoothing, mode="reflect")
    grid = np.maximum(grid, LEAST_DENSITY)
    return grid / np.mean(grid)


def subdivision(count: int) -> np.ndarray:
    """Barycentric coordinates of the centroids of count² equal small triangles."""
    i, j = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    upright, turned = i + j < count, i + j < count - 1
    second = np.concatenate([i[upright] + 1 / 3, i[turned] + 2 / 3]) / count
    third = np.concatenate([j[upright] + 1 / 3, j[turned] + 2 / 3]) / count
    return np.stack([1 - second - third, second, third], axis=1)


def _spread(
    mass: np.ndarray, points: np.ndarray, shares: np.ndarray, shape: tuple[int, int]
) -> None:
    """Give the shares of points, in units of cells, to the four nearest centres of a grid with one
    more cell on every side."""
    points = np.clip(points, 0, shape) + 0.5
    lower = np.minimum(points.astype(np.int64), shape)
    rest = points - lower
    for corner in itertools.product((0, 1), (0, 1)):
        along, across = np.where(corner, rest, 1 - rest).T
        weight = shares * along * across
        row, column = (lower + corner).T
        mass += np.bincount(row * (shape[1] + 2) + column, weight, len(mass))


def _fold(grid: np.ndarray) -> np.ndarray:
    """What fell into the additional first and last row is reflected into the grid."""
    inner = grid[1:-1].copy()
    inner[0] += grid[0]
    inner[-1] += grid[-1]
    return inner


def grid_density(
    values: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> Callable[[Array], Array]:
    """A positive density of one point, two times continuously differentiable, from its values at
    the cell centres of a grid on a rectangle.

    The values are the coefficients of cubic B-splines, reflected at the sides. This keeps the
    density between its smallest and its largest value and its mean as it was, and smooths it by
    half a cell (a standard deviation of 1/√3); interpolation would overshoot and could become
    negative.
    """
    values, lower, upper = (np.asarray(given, dtype=np.float64) for given in (values, lower, upper))
    size = upper - lower
    if values.ndim != 2 or min(values.shape) < 4 or not np.all(size > 0):
        raise OptionError(
            f"The values have shape {values.shape} on a rectangle of size {size.tolist()}; a "
            "grid of at least 4 by 4 cells is needed."
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if np.any(bad):
        i, j = np.argwhere(bad)[0]
        raise CoefficientError(
            f"The density is {values[i, j]} in cell ({i}, {j}): it must be positive and finite."
        )
    padded = jnp.asarray(np.pad(values, 2, mode="symmetric"))
    cells = np.array(values.shape)

    def density(point: Array) -> Array:
        position = jnp.clip((point - lower) / size, 0.0, 1.0) * cells + 1.5
        # Whole numbers carry no derivative; the clipping keeps the last cell closed.
        first = jnp.clip(jnp.floor(position).astype(int), 1, cells + 1)
        rest = position - first
        rows, columns = _cubic(rest[0]), _cubic(rest[1])
        block = padded[first[0] - 1 + jnp.arange(4)[:, None], first[1] - 1 + jnp.arange(4)[None, :]]
        # What the formula does not tell: a mean of the block, and as smooth as its splines.
        return smooth(rows @ block @ columns, *point, order=2, window=block.ravel())

    return density


def _cubic(t: Array) -> Array:
    """The four cubic B-splines that are not zero at the distance t from a knot."""
    middle = 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3
    return jnp.stack([(1 - t) ** 3, *middle, t**3]) / 6


def map_vertices(
    transport: DctTransport, disk: Disk, uv: np.ndarray, repair: bool = True
) -> np.ndarray:
    """New flat coordinates: the transport map at the old ones, with flipped faces turned back
    (`repair`) by moving single vertices."""
    moved = transport.map(uv)
    return unfold(disk, moved) if repair else moved


@dataclass(frozen=True)
class AreaMap:
    """Flat coordinates after transport. `flipped_before` faces were flipped by the transport map
    before the repair, summed over the passes.

    `density` is the source density of the first pass, `transports` are the solutions of all passes,
    `distortions` the reports before and after each.
    """

    uv: np.ndarray
    size: np.ndarray
    density: np.ndarray
    transports: tuple[DctTransport, ...]
    distortions: tuple[Distortion, ...]
    flipped_before: int
    seconds: float


def equalise_areas(
    disk: Disk,
    flat: FlatMap,
    resolution: int = 1024,
    smoothing: float = 0.5,
    passes: int = 1,
    steps: int = 150,
    tolerance: float = 1e-4,
    repair: bool = True,
) -> AreaMap:
    """Correct the areas of a map to a rectangle by transport, with cosine transforms.

    Further passes start from the vertices where they are now, on the density measured anew: regions
    that were crowded into few cells are spread by then, and seen sharply. The product of such maps
    corrects areas but is no longer the optimal map.
    """
    if flat.size is None:
        raise SurfaceError(
            "Areas are corrected on a rectangle, but this is a map to the disk. Use rectangle_map."
        )
    if passes < 1:
        raise OptionError(f"passes is {passes}: at least one is needed.")
    started = time.perf_counter()
    uv, size, densities, transports, flipped = flat.uv, flat.size, [], [], 0
    distortions = [measure(disk, uv, size)]
    for _ in range(passes):
        densities.append(surface_density(disk, uv, size, resolution, smoothing))
        transports.append(solve_dct(densities[-1], np.zeros(2), size, steps, tolerance))
        uv = transports[-1].map(uv)
        flipped += count_flipped(uv, disk.mesh.faces)
        uv = unfold(disk, uv) if repair else uv
        distortions.append(measure(disk, uv, size))
    reports, seconds = tuple(distortions), time.perf_counter() - started
    return AreaMap(uv, size, densities[0], tuple(transports), reports, flipped, seconds)
