"""How much a flat map distorts a surface: areas, angles, flipped faces, and whether the boundary
lies where it should."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cordes.surfaces.conformal import flat_areas
from cordes.surfaces.mesh import Mesh, SurfaceError, corner_angles
from cordes.surfaces.topology import Disk

# Areas below this share of the mean count as this share, so that a face squeezed to a line does not
# make every mean infinite.
LEAST_AREA = 1e-12


@dataclass(frozen=True)
class Spread:
    """The mean absolute value and the standard deviation of the logarithm of an area ratio; each
    face or star counts once, or with its area."""

    mean: float
    deviation: float
    weighted_mean: float
    weighted_deviation: float


@dataclass(frozen=True)
class Distortion:
    """The report of one flat map.

    `area_faces` and `area_stars` are about log(flat area / area), both normalised to total 1, of
    the faces and of the stars of faces around the vertices. Angles are in degrees, errors taken
    over all corners of all faces. |μ| is Beltrami's coefficient, (σ₁ − σ₂)/(σ₁ + σ₂) of the
    singular values of the map of each face, over faces that are not flipped. `rim` is the largest
    distance of a boundary vertex from the rim of the rectangle or disk, relative to its width.
    """

    area_faces: Spread
    area_stars: Spread
    angle_mean: float
    angle_deviation: float
    beltrami_mean: float
    beltrami_max: float
    flipped: int
    rim: float

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def measure(disk: Disk, uv: np.ndarray, size: np.ndarray | None) -> Distortion:
    """The distortion of flat coordinates on the rectangle from (0, 0) to `size`, or on the unit
    disk where `size` is None."""
    mesh, uv = disk.mesh, np.asarray(uv, dtype=np.float64)
    if uv.shape != (len(mesh.vertices), 2) or not np.all(np.isfinite(uv)):
        raise SurfaceError(
            f"The flat coordinates have shape {uv.shape} or are not finite; two numbers for "
            f"each of {len(mesh.vertices)} vertices are needed."
        )
    flat, areas = flat_areas(uv, mesh.faces), mesh.areas
    difference = np.degrees(corner_angles(uv[mesh.faces]) - mesh.angles)
    stretched = beltrami(mesh, uv)
    upright = stretched < 1
    return Distortion(
        area_faces=_spread(np.abs(flat), areas),
        area_stars=_spread(np.abs(star_sums(mesh, flat)), star_sums(mesh, areas)),
        angle_mean=float(np.mean(np.abs(difference))),
        angle_deviation=float(np.std(difference)),
        beltrami_mean=float(np.mean(stretched[upright])) if np.any(upright) else float("nan"),
        beltrami_max=float(np.max(stretched[upright])) if np.any(upright) else float("nan"),
        flipped=int(np.sum(flat <= 0)),
        rim=rim_error(uv[disk.loop], size),
    )


def star_sums(mesh: Mesh, values: np.ndarray) -> np.ndarray:
    """The sums of face values over the faces around each vertex."""
    return np.bincount(mesh.faces.ravel(), np.repeat(values, 3), len(mesh.vertices))


def _spread(flat: np.ndarray, areas: np.ndarray) -> Spread:
    ratio, weight = log_area_ratio(flat, areas), areas / np.sum(areas)
    mean, weighted_mean = np.mean(np.abs(ratio)), np.sum(weight * np.abs(ratio))
    variance = np.sum(weight * (ratio - np.sum(weight * ratio)) ** 2)
    numbers = (mean, np.std(ratio), weighted_mean, np.sqrt(variance))
    return Spread(*(float(value) for value in numbers))


def log_area_ratio(flat: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """log(flat area / area), both normalised to total 1."""
    share = np.maximum(flat / np.sum(flat), LEAST_AREA / len(flat))
    return np.log(share / (areas / np.sum(areas)))


def beltrami(mesh: Mesh, uv: np.ndarray) -> np.ndarray:
    """|μ| of each face: 0 for a similarity, below 1 for faces that are not flipped, above 1 for
    flipped ones.

    With z and w the complex coordinates of a face in its own plane and in the flat map, w is αz +
    βz̄ + const on the face, and μ = β/α.
    """
    corner = mesh.vertices[mesh.faces]
    first, second = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    length = np.linalg.norm(first, axis=1)
    along = np.sum(first * second, axis=1) / length
    z = along + 1j * np.linalg.norm(np.cross(first, second), axis=1) / length
    flat = uv[mesh.faces] @ np.array([1.0, 1.0j])
    p, q = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
    # αl + βl = p and αz + βz̄ = q.
    alpha = (p * np.conj(z) / length - q) / (np.conj(z) - z)
    beta = p / length - alpha
    return np.abs(beta) / np.maximum(np.abs(alpha), 1e-300)


def rim_error(points: np.ndarray, size: np.ndarray | None) -> float:
    """The largest distance of points from the rim of the rectangle from (0, 0) to `size`, or of the
    unit disk, relative to its width."""
    if size is None:
        return float(np.max(np.abs(np.linalg.norm(points, axis=1) - 1))) / 2
    outside = np.linalg.norm(np.maximum(np.maximum(-points, points - size), 0), axis=1)
    inside = np.min(np.minimum(points, size - points), axis=1)
    return float(np.max(np.where(outside > 0, outside, np.abs(inside)))) / float(size[0])
