"""From a surface to flat coordinates that keep areas: conformal map, then optimal transport of what
it did to the areas.

Three maps are made and reported side by side: the conformal one; transport by cosine transforms
(the classical baseline); transport by networks. The best map is the baseline followed by a network
correction, or the baseline alone where that is no better.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cordes.domains import Box
from cordes.problems.transport import Transport
from cordes.results import Result
from cordes.solvers.solve import solve
from cordes.surfaces.conformal import rectangle_map, unfold
from cordes.surfaces.density import equalise_areas, grid_density, surface_density
from cordes.surfaces.distortion import Distortion, measure
from cordes.surfaces.mesh import Mesh
from cordes.surfaces.topology import Disk, prepare

Say = Callable[[str], None]


class TransportPass(NamedTuple):
    """One transport by a network: cells along the longer side of the density's grid, its smoothing
    in cells, the largest number of features, and collocation points for each: a rough density
    between too few points makes the map oscillate and turns faces over."""

    resolution: int
    smoothing: float
    features: int
    oversampling: float


# Coarse first: after each pass what was crowded is spread, and the next one sees it sharply.
PASSES = (
    TransportPass(96, 2.0, 1500, 6),
    TransportPass(96, 1.5, 1000, 8),
    TransportPass(96, 1.2, 1500, 8),
    TransportPass(128, 1.2, 1500, 8),
    TransportPass(128, 1.0, 2000, 7),
)
CORRECTION = (TransportPass(128, 1.5, 1000, 8),)
SOLVING: dict[str, Any] = {"outer_steps": 12, "progress": False, "certify": False}
ATTEMPTS, SMOOTHER = 3, 1.6


@dataclass(frozen=True)
class Flattened:
    """Flat coordinates of one kind with their report. `flipped_before` faces were flipped before
    vertices were moved to turn them back."""

    name: str
    uv: np.ndarray
    distortion: Distortion
    seconds: float
    flipped_before: int = 0
    passes: list[dict[str, Any]] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "flipped_before": self.flipped_before,
            "passes": self.passes,
            **self.distortion.as_data(),
        }


@dataclass(frozen=True)
class FlatSurface:
    """All maps of one surface, by name, and which is the best."""

    disk: Disk
    size: np.ndarray
    corners: np.ndarray
    maps: dict[str, Flattened]
    best: str

    @property
    def shown(self) -> dict[str, np.ndarray]:
        """What is drawn: the map before, that of the networks, and the best one."""
        names = dict.fromkeys(["conformal", "network", self.best])
        return {name: self.maps[name].uv for name in names if name in self.maps}

    def as_data(self) -> dict[str, Any]:
        mesh = self.disk.mesh
        return {
            "vertices": len(mesh.vertices),
            "faces": len(mesh.faces),
            "boundary": len(self.disk.loop),
            "repairs": list(self.disk.repairs),
            "rectangle": self.size.tolist(),
            "corners": [int(self.disk.original[corner]) for corner in self.corners],
            "best": self.best,
            "maps": {name: flat.as_data() for name, flat in self.maps.items()},
        }


def flatten(
    mesh: Mesh,
    corners: Sequence[int] | None = None,
    network: bool = True,
    seed: int = 0,
    say: Say = lambda _: None,
    count_from: int = 0,
) -> FlatSurface:
    """Lay a disk-like surface flat on a rectangle. `corners` are four vertex numbers of its
    boundary; chosen where they are left out."""
    start = time.perf_counter()
    disk = prepare(mesh, keep=[corner - count_from for corner in corners or ()])
    flat = rectangle_map(disk, corners, count_from)
    size = flat.size
    assert size is not None
    assert flat.corners is not None
    maps: dict[str, Flattened] = {}

    def add(made: Flattened) -> None:
        maps[made.name] = made
        say(_line(made))

    spent = time.perf_counter() - start
    add(_reported("conformal", disk, flat.uv, size, spent, flat.flipped_before))
    even = equalise_areas(disk, flat)
    add(_reported("dct", disk, even.uv, size, even.seconds, even.flipped_before))
    best = "dct"
    if network:
        add(by_networks("network", disk, flat.uv, size, PASSES, seed, say))
        add(by_networks("dct + network", disk, even.uv, size, CORRECTION, seed, say))
        best = min(maps, key=lambda name: _quality(maps[name]))
    return FlatSurface(disk, size, flat.corners, maps, best)


def by_networks(
    name: str,
    disk: Disk,
    uv: np.ndarray,
    size: np.ndarray,
    passes: Sequence[TransportPass],
    seed: int,
    say: Say,
) -> Flattened:
    """Transport by networks from flat coordinates, pass by pass. A pass that makes the areas worse,
    or turns faces over, is not kept."""
    start = time.perf_counter()
    best = _reported(name, disk, uv, size, 0.0)
    flipped, history = 0, []
    for number, (resolution, smoothing, features, oversampling) in enumerate(passes, 1):
        title, began = f"{name}, pass {number}", time.perf_counter()
        options = {"seed": seed, "features": features, "oversampling": oversampling, **SOLVING}
        for _ in range(ATTEMPTS):
            grid = surface_density(disk, best.uv, size, resolution, smoothing)
            density = grid_density(grid, np.zeros(2), size)
            problem = Transport(Box(np.zeros(2), size), density, normalise=True, name=title)
            solution: Any = solve(problem, **options)
            moved = on_the_rim(disk, solution.map(best.uv), best.uv, size)
            turned = measure(disk, moved, size).flipped
            if turned:
                moved = unfold(disk, moved)
            found = _reported(name, disk, moved, size, 0.0)
            kept = _quality(found) < _quality(best)
            if kept or solution.result is not Result.convexity_lost:
                break
            # A density that is too rough for the network: the next pass sees what is smoothed away
            # now.
            smoothing *= SMOOTHER
        seconds, report = time.perf_counter() - began, found.distortion
        history.append(
            {
                "resolution": resolution,
                "smoothing": smoothing,
                "features": features,
                "residual": solution.residual_rms,
                "result": solution.result.value,
                "spread": problem.spread,
                "deviation": report.area_faces.deviation,
                "flipped_before": turned,
                "flipped": report.flipped,
                "kept": kept,
                "seconds": seconds,
            }
        )
        say(
            f"{title}: SD of log area {report.area_faces.deviation:.4f}, {report.flipped} flipped, "
            f"{seconds:.0f} s"
        )
        if kept:
            best, flipped = found, flipped + turned
    return Flattened(name, best.uv, best.distortion, time.perf_counter() - start, flipped, history)


def on_the_rim(disk: Disk, moved: np.ndarray, before: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Boundary vertices stay on their side of the rectangle: the transport condition holds to the
    accuracy of the network only."""
    moved = np.clip(moved, 0.0, size)
    for axis in (0, 1):
        for side in (0.0, float(size[axis])):
            on_side = disk.loop[np.abs(before[disk.loop, axis] - side) <= 1e-9 * float(size[axis])]
            moved[on_side, axis] = side
    return moved


def _reported(
    name: str, disk: Disk, uv: np.ndarray, size: np.ndarray, seconds: float, flipped_before: int = 0
) -> Flattened:
    return Flattened(name, uv, measure(disk, uv, size), seconds, flipped_before)


def _quality(flat: Flattened) -> tuple[int, float]:
    """Fewer flipped faces first, then evener areas."""
    return flat.distortion.flipped, flat.distortion.area_faces.deviation


def _line(flat: Flattened) -> str:
    report = flat.distortion
    return (
        f"{flat.name}: SD of log area {report.area_faces.deviation:.4f} (faces), "
        f"{report.area_stars.deviation:.4f} (stars), {report.flipped} flipped"
    )
