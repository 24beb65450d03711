"""Planes through a domain, as grids of cells, and the values of a function there."""

from typing import Any, NamedTuple

import numpy as np

from cordes.domains.cylinder import Cylinder
from cordes.domains.plane.region import Region

# A logarithmic scale spans at least two decades, so that its bar has numbers, and at most six.
DECADES = (2, 6)
# Points of a curved arc of a boundary that are drawn.
ARC_POINTS = 181


class Plane(NamedTuple):
    """Cell centres of a grid in a coordinate plane through the domain, shape (n, m, d), which of
    them lie inside, the corners of the grid, the outline of the domain."""

    points: np.ndarray
    inside: np.ndarray
    axes: tuple[int, int]
    lower: np.ndarray
    upper: np.ndarray
    outline: np.ndarray
    # The names of the coordinates; without, x₁, x₂, …
    names: tuple[str, str] | None = None
    # Where the plane is, in words.
    label: str = ""
    # The closed lines that are drawn, where these are several; the outline joins them.
    loops: tuple[np.ndarray, ...] = ()

    @property
    def boundary(self) -> tuple[np.ndarray, ...]:
        """The closed lines around the domain and its holes."""
        return self.loops or (self.outline,)

    @property
    def edges(self) -> list[np.ndarray]:
        """Where cells begin and end, along both axes."""
        return [
            np.linspace(low, high, count + 1)
            for low, high, count in zip(self.lower, self.upper, self.inside.shape, strict=True)
        ]

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values at the points inside, as an image with NaN elsewhere."""
        image = np.full(self.inside.shape, np.nan)
        image[self.inside] = values
        return image


class Cut(NamedTuple):
    """A coordinate plane, and the share of the last coordinate at which it lies, where that is the
    time."""

    axes: tuple[int, int]
    share: float | None = None


# When planes in space are drawn, as shares of the time.
MOMENTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def planes_through(domain: Any) -> list[Cut]:
    """The coordinate planes that are drawn: all in three dimensions, else the first; in space and
    time the first one in space at several times."""
    if isinstance(domain, Cylinder) and domain.dimension > 2:
        return [Cut((0, 1), share) for share in MOMENTS]
    return [Cut(axes) for axes in ([(0, 1), (0, 2), (1, 2)] if domain.dimension == 3 else [(0, 1)])]


def axis_names(domain: Any, axes: tuple[int, int]) -> tuple[str, str] | None:
    """In time the last coordinate is not called x."""
    if not isinstance(domain, Cylinder):
        return None
    last = domain.dimension - 1
    first, second = (domain.time if k == last else f"x{'₁₂₃'[k]}" for k in axes)
    return first, second


def square_cells(domain: Any, cut: Cut | tuple[int, int], resolution: int) -> Plane:
    """Cells that are about square, but some across a long and thin domain too."""
    axes = cut.axes if isinstance(cut, Cut) else cut
    lower, upper = domain.bounding_box
    size = np.asarray(upper - lower, dtype=float)[list(axes)]
    if axis_names(domain, axes) is not None and domain.dimension == 2:
        # Space and time have no common unit.
        size = np.ones(2)
    counts = [round(resolution * side / max(size)) for side in size]
    first, second = (int(np.clip(count, resolution // 3, resolution)) for count in counts)
    return make_plane(domain, cut, (first, second))


def make_plane(domain: Any, cut: Cut | tuple[int, int], counts: tuple[int, int]) -> Plane:
    """So many cells over the bounding box in the plane of two coordinates through the centre: a
    hair beside it, since interfaces often run through it, and on them a coefficient that jumps has
    neither of its values."""
    axes, share = cut if isinstance(cut, Cut) else (cut, None)
    lower, upper = (np.asarray(corner, dtype=float) for corner in domain.bounding_box)
    size, chosen = upper - lower, list(axes)
    middles = [
        lower[k] + (np.arange(n) + 0.5) / n * size[k] for k, n in zip(axes, counts, strict=True)
    ]
    points = np.empty((*counts, domain.dimension))
    points[:] = np.asarray(domain.center) + 1e-6 * size
    points[..., axes[0]], points[..., axes[1]] = np.meshgrid(*middles, indexing="ij")
    label = ""
    if share is not None:
        # The very start is that of the data.
        time = lower[-1] + max(share, 1e-9) * size[-1]
        points[..., -1], label = time, f"{domain.time} = {time:.4g}"
    inside = np.asarray(domain.contains(points))
    names, ends = axis_names(domain, axes), (lower[chosen], upper[chosen])
    loops = _loops(domain) if isinstance(domain, Region) else ()
    return Plane(points, inside, axes, *ends, _outline(domain, chosen), names, label, loops)


def _outline(domain: Any, plane: list[int]) -> np.ndarray:
    """A closed polyline around the domain in the plane through its centre, shape (n, 2)."""
    if isinstance(domain, Cylinder):
        if domain.dimension > 2:
            return _outline(domain.base, plane)
        (left, first), (right, last) = (corner[plane] for corner in domain.bounding_box)
        return np.array([[left, first], [right, first], [right, last], [left, last], [left, first]])
    if domain.vertices is not None:
        return np.concatenate([domain.vertices, domain.vertices[:1]])
    if isinstance(domain, Region):
        return _around_holes(domain)
    corners = (np.asarray(domain.bounding_box) - np.asarray(domain.center))[:, plane]
    # The directions of the corners of the bounding box make the outline of a box exact.
    toward = [np.arctan2(y, x) % (2 * np.pi) for x in corners[:, 0] for y in corners[:, 1]]
    angles = np.sort(np.concatenate([np.linspace(0, 2 * np.pi, 721), toward]))
    directions = np.zeros((len(angles), domain.dimension))
    directions[:, plane] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(domain.boundary_at(directions))[:, plane]


def _loops(domain: Region) -> tuple[np.ndarray, ...]:
    """A closed line along each boundary."""
    loops = []
    for loop in domain.loops:
        shares = [np.linspace(0, 1, 2 if arc.straight else ARC_POINTS) for arc in loop]
        line = np.concatenate([arc.at(s)[:-1] for arc, s in zip(loop, shares, strict=True)])
        loops.append(np.concatenate([line, line[:1]]))
    return tuple(loops)


def _around_holes(domain: Region) -> np.ndarray:
    """One line around the domain: along its outer boundary, from there to each hole, around that
    and back the same way."""
    loops = _loops(domain)
    return np.concatenate([part for loop in loops for part in (loop, loops[0][:1])])


def logarithmic_limits(values: np.ndarray) -> tuple[float, float] | None:
    """From the second percentile of what is positive to the largest; None where nothing is."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return None
    high = float(positive.max())
    least, most = (high * 10.0**-decades for decades in DECADES)
    return float(np.clip(np.percentile(positive, 2), most, least)), high


def linear_limits(values: np.ndarray, empty: tuple[float, float]) -> tuple[float, float]:
    """The smallest and the largest finite value."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else empty
