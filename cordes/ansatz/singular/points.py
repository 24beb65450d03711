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

from cordes.ansatz.singular.cones import find_cones
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
    are the other points (K, 2) where it meets the boundary.
    """

    location: np.ndarray
    rays: np.ndarray
    matrices: np.ndarray
    on_boundary: bool
    step: int = 1
    interface: int | None = None
    others: np.ndarray = np.zeros((0, 2))

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
        location, rays, matrices = (
            np.asarray(data[name]) for name in ("location", "rays", "matrices")
        )
        others = np.asarray(data.get("others", []), dtype=np.float64).reshape(-1, 2)
        return cls(
            location,
            rays,
            matrices,
            data["on_boundary"],
            data["step"],
            data.get("interface"),
            others,
        )


def find_singular_points(
    domain: AbstractDomain, interfaces: Sequence[Callable], coefficients: Callable
) -> list[SingularPoint]:
    """All singular points of a two-dimensional problem; none in other dimensions.

    `coefficients` maps points (n, 2) to the NumPy arrays A (n, 2, 2), b (n, 2), c (n,), f (n,).
    """
    if domain.dimension != 2:
        return []
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    lines = [_Interface(phi, size) for phi in interfaces]
    found: list[SingularPoint] = []
    if domain.vertices is not None:
        found += _on_boundary(domain.vertices, lines, coefficients, size)
    else:
        found += _on_smooth_boundary(domain, lines, coefficients, size)
    for location in _crossings(domain, lines, size):
        rays = np.sort(
            np.concatenate([line.directions(location) for line in lines if line.passes(location)])
            % (2 * np.pi)
        )
        if all(line.straight_at(location) for line in lines if line.passes(location)):
            point = _with_matrices(
                location,
                np.append(rays, rays[0] + 2 * np.pi),
                coefficients,
                size,
                on_boundary=False,
            )
            found += [point] if _jumps(point, coefficients, size) else []

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
    found += [
        _with_matrices(tip, turn, coefficients, size, on_boundary=False)
        for tip in find_cones(domain, flat, near_interface)
    ]
    return found


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
        angles = self.directions(point)
        steps = self.size * np.array([0.01, 0.03])
        nearby = np.array(
            [point + step * np.array([np.cos(a), np.sin(a)]) for a in angles for step in steps]
        )
        return bool(
            np.all(
                np.abs(self.values(nearby)) <= 1e-7 * self.size * np.linalg.norm(self.slope(point))
            )
        )


def _with_matrices(
    location: np.ndarray, rays: np.ndarray, coefficients: Callable, size: float, on_boundary: bool
) -> SingularPoint:
    """Freeze A in each sector, seen from the sector's middle at a tiny distance, and see whether it
    varies from there on."""
    middle = (rays[1:] + rays[:-1]) / 2
    directions = np.stack([np.cos(middle), np.sin(middle)], axis=1)
    matrices, drift, _, _ = coefficients(location + 1e-7 * size * directions)
    farther = [coefficients(location + reach * size * directions)[0] for reach in (0.01, 0.05)]
    varies = any(
        np.max(np.abs(other - matrices)) > 1e-9 * np.max(np.abs(matrices)) for other in farther
    )
    return SingularPoint(
        location, rays, matrices, on_boundary, 1 if varies or np.max(np.abs(drift)) > 1e-5 else 2
    )


def _jumps(point: SingularPoint, coefficients: Callable, size: float) -> bool:
    """Whether any coefficient has different limits in the sectors: an interface of a jump in a
    coefficient that does not jump here is no matter."""
    middle = (point.rays[1:] + point.rays[:-1]) / 2
    nearby = point.location + 1e-7 * size * np.stack([np.cos(middle), np.sin(middle)], axis=1)
    for values in coefficients(nearby):
        flat = values.reshape(len(middle), -1)
        if np.max(np.abs(flat - flat[0])) > 1e-4 * max(np.max(np.abs(flat)), 1e-300):
            return True
    return False


def _on_boundary(
    vertices: np.ndarray, lines: list[_Interface], coefficients: Callable, size: float
) -> list[SingularPoint]:
    """Corners, and points inside an edge where an interface arrives."""
    candidates: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for k, corner in enumerate(vertices):
        following, previous = vertices[(k + 1) % len(vertices)], vertices[k - 1]
        candidates.append((corner, following - corner, previous - corner))
        for line in lines:
            for point in _zeros_on_curve(
                line, lambda s, start=corner, end=following: start + s[:, None] * (end - start)
            ):
                ends = min(np.linalg.norm(point - corner), np.linalg.norm(point - following))
                known = any(
                    np.linalg.norm(point - other) < 1e-7 * size for other, _, _ in candidates
                )
                if ends > 1e-7 * size and not known:
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
        point = _with_matrices(
            location,
            start + np.concatenate([[0.0], offsets, [width]]),
            coefficients,
            size,
            on_boundary=True,
        )
        if not _jumps(point, coefficients, size):
            if width > np.pi - 1e-6:
                continue
            # A corner where nothing jumps is an ordinary corner, whatever was declared.
            point = _with_matrices(
                location, start + np.array([0.0, width]), coefficients, size, on_boundary=True
            )
        found.append(point)
    return found


def _on_smooth_boundary(
    domain: AbstractDomain, lines: list[_Interface], coefficients: Callable, size: float
) -> list[SingularPoint]:
    """Points where one interface crosses a smooth boundary and a coefficient jumps there."""

    def boundary(s: np.ndarray) -> np.ndarray:
        angles = 2 * np.pi * (s + FIRST_ANGLE)
        return domain.boundary_at(np.stack([np.cos(angles), np.sin(angles)], axis=1))

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
            point = _with_matrices(
                location,
                start + np.array([0.0, offset, np.pi]),
                coefficients,
                size,
                on_boundary=True,
            )
            if _jumps(point, coefficients, size):
                mean = np.mean(point.matrices, axis=0)
                if np.max(np.abs(point.matrices - mean)) <= 1e-4 * np.max(np.abs(mean)):
                    # A varies without a jump.
                    point = point._replace(matrices=np.stack([mean, mean]))
                found.append(
                    point._replace(
                        step=1, interface=number, others=np.delete(np.array(zeros), k, axis=0)
                    )
                )
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
