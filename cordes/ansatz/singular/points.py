"""Where singular functions are needed: corners, crossings of interfaces, points where an interface
meets the boundary.

At such a point the plane (or the corner) falls into sectors between rays; in each sector the
coefficient matrix is frozen at its limit. Crossings and corners where an interface is not straight
are left alone: the rays would not be where the coefficients jump. On a smooth boundary both may
bend (`charts`); the edges are the tangent there. Tips of cones in the coefficients (A contains |x|)
are found too.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain

# Samples of φ along a smooth boundary, and the share of a turn where they begin: not on an axis,
# where interfaces like to be.
BOUNDARY_SAMPLES, FIRST_ANGLE = 1601, 0.0917
# An interface that meets a smooth boundary at a smaller angle than this touches it rather than
# crosses it.
SMALLEST_ANGLE = 0.05


class SingularPoint(NamedTuple):
    """A point, the angles of its rays, and A in each sector between two neighbouring rays.

    On the boundary the first and last ray are the two edges; inside, the last ray is the first one
    after a full turn. `step` is the gain of one term of the expansion over the one that caused it:
    1 in general, 2 where A is constant in each sector, there is no drift at the point and nothing
    is curved. On a smooth boundary `interface` is the number of the one that arrives, and `others`
    are the other points (K, 2) where it meets the boundary. At a `kink` of g (`kinks`) `interface`
    is the number of the coordinates there, after those of the interfaces.
    """

    location: np.ndarray
    rays: np.ndarray
    matrices: np.ndarray
    on_boundary: bool
    step: int = 1
    interface: int | None = None
    others: np.ndarray = np.zeros((0, 2))
    kink: bool = False

    @property
    def sectors(self) -> int:
        return len(self.matrices)

    def as_data(self) -> dict[str, Any]:
        """For a file."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._asdict().items()
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> "SingularPoint":
        kept = {name: data[name] for name in cls._fields if name in data}
        kept |= {name: np.asarray(data[name]) for name in ("location", "rays", "matrices")}
        kept["others"] = np.asarray(data.get("others", []), dtype=np.float64).reshape(-1, 2)
        return cls(**kept)


def directions(angles: Any) -> np.ndarray:
    """Unit vectors (n, 2)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


FOUR_DIRECTIONS = directions(np.arange(4) * np.pi / 4)


def edges_away(
    vertices: np.ndarray, location: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, inward unit normals and distances of the edges that do not touch a point."""
    edges = np.roll(vertices, -1, axis=0) - vertices
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1)
    normals = normals / np.linalg.norm(edges, axis=1, keepdims=True)
    heights = np.sum((location - vertices) * normals, axis=1)
    away = heights > 1e-9 * np.max(np.abs(edges))
    return vertices[away], normals[away], heights[away]


def find_singular_points(
    domain: AbstractDomain, interfaces: Sequence[Callable], coefficients: Callable
) -> list[SingularPoint]:
    """All singular points of a two-dimensional problem; none in other dimensions.

    `coefficients` maps points (n, 2) to the NumPy arrays A (n, 2, 2), b (n, 2), c (n,), f (n,).
    """
    if domain.dimension != 2 or isinstance(domain, Cylinder):
        return []
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    lines = [_Interface(phi, size) for phi in interfaces]
    near = _Neighbourhood(coefficients, size)
    if domain.vertices is not None:
        found = _on_boundary(domain.vertices, lines, near)
    else:
        found = _on_smooth_boundary(domain, lines, near)
    for location in _crossings(domain, lines, size):
        here = [line for line in lines if line.passes(location)]
        rays = np.sort(np.concatenate([line.directions(location) for line in here]) % (2 * np.pi))
        if all(line.straight_at(location) for line in here):
            point = near.frozen(location, np.append(rays, rays[0] + 2 * np.pi), False)
            found += [point] if near.jumps(point) else []

    def flat(points: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [part.reshape(len(points), -1) for part in coefficients(points)], axis=1
        )

    def near_interface(points: np.ndarray) -> np.ndarray:
        return np.any(
            [line.near(points, 0.05 * size) for line in lines] or [np.zeros(len(points), bool)],
            axis=0,
        )

    turn = np.array([0.0, 2 * np.pi])
    tips = find_cones(domain, flat, near_interface)
    return found + [near.frozen(tip, turn, False) for tip in tips]


class _Interface:
    """The zero set of φ, with φ scaled to be a length near it."""

    def __init__(self, phi: Callable, size: float):
        self.values = jax.jit(jax.vmap(phi))
        self.slope = jax.jit(jax.grad(lambda x: jnp.asarray(phi(x), float)))
        self.size = size

    def passes(self, point: np.ndarray) -> bool:
        gradient = np.linalg.norm(self.slope(point))
        return bool(
            abs(self.values(point[None])[0]) <= 1e-9 * self.size * gradient and gradient > 0
        )

    def near(self, points: np.ndarray, reach: float) -> np.ndarray:
        slopes = np.linalg.norm(np.asarray(jax.vmap(self.slope)(points)), axis=1)
        return np.abs(np.asarray(self.values(points))) <= reach * slopes

    def directions(self, point: np.ndarray) -> np.ndarray:
        """Angles of the two directions along the interface."""
        normal = np.asarray(self.slope(point))
        angle = np.arctan2(normal[1], normal[0]) + np.pi / 2
        return np.array([angle, angle + np.pi])

    def straight_at(self, point: np.ndarray) -> bool:
        offsets = self.size * np.array([[[0.01]], [[0.03]]]) * directions(self.directions(point))
        values = self.values(point + offsets.reshape(-1, 2))
        return bool(np.all(np.abs(values) <= 1e-7 * self.size * np.linalg.norm(self.slope(point))))


class _Neighbourhood(NamedTuple):
    """The coefficients around points of a domain of this size."""

    coefficients: Callable
    size: float

    def at(self, location: np.ndarray, rays: np.ndarray, reach: float) -> Any:
        """The coefficients in the middles of sectors at a distance, relative to the domain."""
        middles = directions((rays[1:] + rays[:-1]) / 2)
        return self.coefficients(location + reach * self.size * middles)

    def frozen(self, location: np.ndarray, rays: np.ndarray, on_boundary: bool) -> SingularPoint:
        """Freeze A in each sector, seen from the sector's middle at a tiny distance, and see
        whether it varies from there on."""
        matrices, drift, _, _ = self.at(location, rays, 1e-7)
        farther = [self.at(location, rays, reach)[0] for reach in (0.01, 0.05)]
        varies = np.max(np.abs(farther - matrices)) > 1e-9 * np.max(np.abs(matrices))
        step = 1 if varies or np.max(np.abs(drift)) > 1e-5 else 2
        return SingularPoint(location, rays, matrices, on_boundary, step)

    def jumps(self, point: SingularPoint) -> bool:
        """Whether any coefficient has different limits in the sectors: an interface of a jump in a
        coefficient that does not jump here is no matter."""
        limits = [
            values.reshape(point.sectors, -1)
            for values in self.at(point.location, point.rays, 1e-7)
        ]
        return any(
            np.max(np.abs(flat - flat[0])) > 1e-4 * max(np.max(np.abs(flat)), 1e-300)
            for flat in limits
        )


def _on_boundary(
    vertices: np.ndarray, lines: list[_Interface], near: _Neighbourhood
) -> list[SingularPoint]:
    """Corners, and points inside an edge where an interface arrives."""
    tiny = 1e-7 * near.size
    candidates: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for k, corner in enumerate(vertices):
        following, previous = vertices[(k + 1) % len(vertices)], vertices[k - 1]
        candidates.append((corner, following - corner, previous - corner))
        for line in lines:
            for point in _zeros_on_curve(
                line, lambda s, start=corner, end=following: start + s[:, None] * (end - start)
            ):
                ends = min(np.linalg.norm(point - corner), np.linalg.norm(point - following))
                known = any(np.linalg.norm(point - other) < tiny for other, _, _ in candidates)
                if ends > tiny and not known:
                    candidates.append((point, following - corner, corner - following))
    found = []
    for location, forward, backward in candidates:
        start = np.arctan2(forward[1], forward[0])
        width = (np.arctan2(backward[1], backward[0]) - start) % (2 * np.pi)
        here = [line for line in lines if line.passes(location)]
        offsets = np.concatenate(
            [(line.directions(location) - start) % (2 * np.pi) for line in here] or [np.zeros(0)]
        )
        offsets = np.sort(offsets[(offsets > 1e-6) & (offsets < width - 1e-6)])
        # Two interfaces may run along one ray. The angles themselves must stay exact: a ray that is
        # off by 1e-10 is a kink that large amplitudes magnify.
        offsets = offsets[np.diff(offsets, prepend=-1.0) > 1e-6]
        if not all(line.straight_at(location) for line in here):
            continue
        point = near.frozen(location, start + np.concatenate([[0.0], offsets, [width]]), True)
        if not near.jumps(point):
            if width > np.pi - 1e-6:
                continue
            # A corner where nothing jumps is an ordinary corner, whatever was declared.
            point = near.frozen(location, start + np.array([0.0, width]), True)
        found.append(point)
    return found


def _on_smooth_boundary(
    domain: AbstractDomain, lines: list[_Interface], near: _Neighbourhood
) -> list[SingularPoint]:
    """Points where one interface crosses a smooth boundary and a coefficient jumps there."""

    def boundary(s: np.ndarray) -> np.ndarray:
        return domain.boundary_at(directions(2 * np.pi * (s + FIRST_ANGLE)))

    found = []
    for number, line in enumerate(lines):
        zeros = _zeros_on_curve(line, boundary, BOUNDARY_SAMPLES)
        for k, location in enumerate(zeros):
            inward = np.asarray(jax.grad(domain.distance)(location))
            start = np.arctan2(-inward[0], inward[1])
            offset = np.min((line.directions(location) - start) % (2 * np.pi))
            crosses = (
                np.linalg.norm(inward) > 0 and SMALLEST_ANGLE < offset < np.pi - SMALLEST_ANGLE
            )
            # Coordinates can make one interface straight, not two.
            if not crosses or [other for other in lines if other.passes(location)] != [line]:
                continue
            point = near.frozen(location, start + np.array([0.0, offset, np.pi]), True)
            if near.jumps(point):
                mean = np.mean(point.matrices, axis=0)
                if np.max(np.abs(point.matrices - mean)) <= 1e-4 * np.max(np.abs(mean)):
                    # A varies without a jump.
                    point = point._replace(matrices=np.stack([mean, mean]))
                others = np.delete(np.array(zeros), k, axis=0)
                found.append(point._replace(step=1, interface=number, others=others))
    return found


def _zeros_on_curve(
    line: _Interface, curve: Callable[[np.ndarray], np.ndarray], samples: int = 401
) -> list[np.ndarray]:
    """Sign changes of φ along a curve with a parameter between 0 and 1, by bisection."""
    s = np.linspace(0, 1, samples)
    values = np.asarray(line.values(curve(s)))
    if np.max(np.abs(values)) == 0:
        return []
    zeros = [s[i] for i in range(1, samples - 1) if values[i] == 0]
    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        low, high, sign = s[i], s[i + 1], np.sign(values[i])
        for _ in range(60):
            middle = (low + high) / 2
            same = np.sign(np.asarray(line.values(curve(np.array([middle]))))[0]) == sign
            low, high = (middle, high) if same else (low, middle)
        zeros.append((low + high) / 2)
    return list(curve(np.array(zeros))) if zeros else []


def _crossings(domain: AbstractDomain, lines: list[_Interface], size: float) -> list[np.ndarray]:
    """Common zeros of two interfaces inside the domain, by Newton's method from sampled starts."""
    found: list[np.ndarray] = []
    starts = domain.interior_points(64, seed=21, kind="sobol")
    for first, second in combinations(lines, 2):
        for point in starts:
            for _ in range(30):
                values = np.array([line.values(point[None])[0] for line in (first, second)])
                slopes = np.array([line.slope(point) for line in (first, second)])
                if abs(np.linalg.det(slopes)) <= 1e-12 * np.prod(
                    np.linalg.norm(slopes, axis=1)
                ) or not np.all(np.isfinite(slopes)):
                    break
                step = np.linalg.solve(slopes, values)
                point = point - step
                if (
                    np.linalg.norm(step) < 1e-14 * size
                    or np.linalg.norm(point - domain.center) > 10 * size
                ):
                    break
            inside = bool(domain.contains(point[None], tolerance=-1e-6 * size)[0])
            if (
                inside
                and first.passes(point)
                and second.passes(point)
                and all(np.linalg.norm(point - q) > 1e-6 * size for q in found)
            ):
                found.append(point)
    return found


def _bend(values: Callable, points: np.ndarray, step: float) -> np.ndarray:
    """Largest second difference over the step: of the order of the step where the coefficients are
    smooth, of order one across a kink."""
    n = len(points)
    around = np.concatenate(
        [points] + [points + sign * step * e for e in FOUR_DIRECTIONS for sign in (-1, 1)]
    )
    table = np.nan_to_num(values(around)).reshape(1 + 2 * len(FOUR_DIRECTIONS), n, -1)
    second = table[1::2] + table[2::2] - 2 * table[0]
    return np.max(np.abs(second), axis=(0, 2)) / step


def find_cones(
    domain: AbstractDomain,
    values: Callable[[np.ndarray], np.ndarray],
    avoid: Callable[[np.ndarray], np.ndarray],
) -> list[np.ndarray]:
    """Isolated points where a coefficient has the tip of a cone, such as |x| in A: u is then rough
    there (r³Φ(θ)) although nothing jumps. `values` (n, 2) -> (n, k) are the coefficients; points
    where `avoid` is true (interfaces) are left out."""
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    ticks = [np.linspace(a, b, 34)[1:-1] for a, b in zip(lower, upper, strict=True)]
    step = size / 66
    grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
    grid = grid[domain.contains(grid, tolerance=-2 * step) & ~avoid(grid)]
    if not len(grid):
        return []
    points = grid[np.argsort(-_bend(values, grid, step))[:8]]
    offsets = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1]), axis=-1).reshape(-1, 2)
    bends = []
    for _ in range(26):
        candidates = points[:, None] + 0.75 * step * offsets
        table = _bend(values, candidates.reshape(-1, 2), step).reshape(len(points), -1)
        points = candidates[np.arange(len(points)), np.argmax(table, axis=1)]
        bends.append(np.max(table, axis=1))
        step /= 2
    reach = 1e-2 * size
    ring = reach * directions(np.arange(256) * np.pi / 128 + 0.1)
    tips: list[np.ndarray] = []
    for point, before, after in zip(points, bends[0], bends[-1], strict=True):
        if (
            after <= 0.3 * before
            or after <= 1e-6
            or any(np.linalg.norm(point - tip) <= 1e-3 * size for tip in tips)
        ):
            continue
        # A kink along a curve persists on the ring too; a tip does not. Steps longer than the
        # ring's gaps, so that no curve slips through.
        at_point, around = (
            _bend(values, where, 0.03 * reach) for where in (point[None], point + ring)
        )
        if np.max(around) < 0.1 * at_point[0]:
            tips.append(point)
    return tips
