"""Lines and nodes for the Chebyshev solver: where a box is cut, and polynomials on one piece.

The box is cut along straight lines x_i = const, so that the pieces form a tensor grid: at
interfaces, and in geometric progression towards every coordinate at which the solution may be
singular.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.errors import OptionError

# Interfaces are looked for along this many lines in each direction, with this many samples on each.
SCAN_LINES, SCAN_SAMPLES = 33, 257
# Two coordinates nearer than this share of the box's width are one.
SAME = 1e-10


class ChebyshevNodes(NamedTuple):
    """Chebyshev points of the second kind on [-1, 1], ascending, their barycentric weights and the
    differentiation matrix."""

    points: np.ndarray
    weights: np.ndarray
    derivative: np.ndarray


def chebyshev_nodes(degree: int) -> ChebyshevNodes:
    """The degree + 1 nodes that carry a polynomial of this degree; rows of the matrix sum to zero,
    which keeps rounding small."""
    # The sine is exactly odd in its argument, so the nodes are exactly symmetric.
    points = np.sin(np.pi * np.arange(-degree, degree + 1, 2) / (2 * degree))
    weights = (-1.0) ** np.arange(degree + 1)
    weights[[0, -1]] /= 2
    differences = points[:, None] - points[None, :] + np.eye(degree + 1)
    derivative = weights[None, :] / weights[:, None] / differences
    np.fill_diagonal(derivative, 0.0)
    np.fill_diagonal(derivative, -np.sum(derivative, axis=1))
    return ChebyshevNodes(points, weights, derivative)


def interpolation(nodes: ChebyshevNodes, targets: np.ndarray) -> np.ndarray:
    """The matrix (targets, nodes) that takes values at the nodes to values at the targets, by the
    barycentric formula."""
    differences = targets[:, None] - nodes.points[None, :]
    hits = differences == 0
    matrix = nodes.weights / np.where(hits, 1.0, differences)
    matrix = np.where(np.any(hits, axis=1, keepdims=True), hits, matrix)
    return matrix / np.sum(matrix, axis=1, keepdims=True)


def graded_lines(breaks: np.ndarray, layers: int, ratio: float) -> np.ndarray:
    """Lines between neighbouring breaks, `layers` in geometric progression towards each of the two.

    On [σt, t] a function with a singularity at 0 is analytic in the Bernstein ellipse of radius (1
    + √σ)/(1 - √σ), whatever t is. The first line lies σ/(1 + σ) of the gap away from its break:
    that gives the middle piece the same radius.
    """
    steps = ratio / (1 + ratio) * ratio ** np.arange(layers)
    lines = [breaks]
    for left, right in itertools.pairwise(breaks):
        lines += [left + (right - left) * steps, right - (right - left) * steps]
    return np.sort(np.concatenate(lines))


def find_breaks(
    lower: np.ndarray,
    upper: np.ndarray,
    interfaces: Sequence[Callable[..., Any]],
    extra_points: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """For each axis the ascending coordinates of the faces, of the interfaces normal to it and of
    the extra points."""
    coordinates = [[lower[0], upper[0]], [lower[1], upper[1]]]
    for k, interface in enumerate(interfaces):
        evaluate = jax.jit(jax.vmap(interface))
        for axis in range(2):
            found = _interface_lines(evaluate, f"interfaces[{k}]", axis, lower, upper)
            coordinates[axis] += list(found)
    extra = np.asarray(extra_points, dtype=np.float64)
    extra = extra.reshape(0, 2) if extra.size == 0 else extra
    if extra.ndim != 2 or extra.shape[1] != 2:
        raise OptionError(
            f"extra_points has shape {extra.shape}: give a list of points with two coordinates "
            "each, [(0.0, 0.0)]."
        )
    for point in extra:
        if not np.all((point >= lower) & (point <= upper)):
            raise OptionError(
                f"The extra point {point.tolist()} is not in the box from {lower.tolist()} to "
                f"{upper.tolist()}. Leave it out."
            )
        for axis in range(2):
            coordinates[axis].append(point[axis])
    first, second = map(_distinct, coordinates, lower, upper)
    return first, second


def _distinct(coordinates: list[float], low: float, high: float) -> np.ndarray:
    """Ascending, without repetitions up to rounding, the faces kept as they are."""
    kept = [low]
    for value in sorted(coordinates):
        if value - kept[-1] > SAME * (high - low) and high - value > SAME * (high - low):
            kept.append(value)
    return np.array([*kept, high])


def _interface_lines(
    evaluate: Callable[..., Any], name: str, axis: int, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Coordinates c in the box such that the interface contains the line x_axis = c.

    The interface is scanned along lines parallel to the axis. Its zeros must be the same on all of
    them (none, if it lies across the other axis only), or it is refused. Assumed: it changes its
    sign at its zeros, and they are farther apart than the samples.
    """

    def positive(along: np.ndarray, across: np.ndarray) -> np.ndarray:
        points = np.stack([along, across] if axis == 0 else [across, along], axis=-1)
        return np.asarray(evaluate(points.reshape(-1, 2))).reshape(along.shape) > 0

    width = upper - lower
    along = lower[axis] + width[axis] * np.linspace(0, 1, SCAN_SAMPLES)
    across = (
        lower[1 - axis] + width[1 - axis] * (np.arange(SCAN_LINES) + 1 / np.sqrt(2)) / SCAN_LINES
    )
    signs = positive(*np.broadcast_arrays(along[None, :], across[:, None]))
    line, left = np.nonzero(signs[:, 1:] != signs[:, :-1])
    if len(line) == 0:
        return np.zeros(0)
    low, high = along[left], along[left + 1]
    for _ in range(60):
        middle = (low + high) / 2
        below = positive(middle, across[line]) == signs[line, left]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    # Rounded to 13 digits of the width, so that an interface through 0.3 lies at 0.3.
    zeros = np.round(high / width[axis], 13) * width[axis]
    inside = (zeros - lower[axis] > SAME * width[axis]) & (upper[axis] - zeros > SAME * width[axis])
    line, zeros = line[inside], zeros[inside]
    counts = np.bincount(line, minlength=SCAN_LINES)
    if np.any(counts != counts[0]):
        other = int(np.argmax(counts != counts[0]))
        there = (
            f"{counts[0]} zeros on x_{2 - axis} = {across[0]:.6g} and {counts[other]} on "
            f"x_{2 - axis} = {across[other]:.6g}"
        )
        raise _not_parallel(name, there)
    table = zeros.reshape(SCAN_LINES, -1)
    drift = np.abs(table - table[:1])
    if table.size and np.max(drift) > 1e-9 * width[axis]:
        other, k = np.unravel_index(np.argmax(drift), drift.shape)
        first, second = np.full(2, table[0, k]), np.full(2, table[other, k])
        first[1 - axis], second[1 - axis] = across[0], across[other]
        places = [f"({point[0]:.6g}, {point[1]:.6g})" for point in (first, second)]
        raise _not_parallel(name, f"it is zero at {places[0]} and at {places[1]}")
    return np.median(table, axis=0)


def _not_parallel(name: str, evidence: str) -> OptionError:
    return OptionError(
        f"{name} is not a set of lines parallel to the axes: {evidence}. The Chebyshev solver "
        "cuts boxes along x_i = const only; use cordes.solve for other interfaces."
    )


class Grid(NamedTuple):
    """Rectangles between the lines of each axis, with polynomials of one degree."""

    lines: tuple[np.ndarray, np.ndarray]
    degree: int
    nodes: ChebyshevNodes

    def shape(self) -> tuple[int, int]:
        """Numbers of global nodes along the axes; neighbours share those on their common edge."""
        wide, high = ((len(lines) - 1) * self.degree + 1 for lines in self.lines)
        return wide, high

    def coordinates(self, axis: int) -> np.ndarray:
        """Coordinates of the global nodes; those on a line are exactly the line's."""
        lines = self.lines[axis]
        inner = lines[:-1, None] + np.diff(lines)[:, None] * (1 + self.nodes.points[:-1]) / 2
        return np.append(inner.ravel(), lines[-1])

    def element_nodes(self, column: int) -> np.ndarray:
        """Flat global numbers, shape (rows, p+1, p+1), of the nodes of the rectangles in one
        column."""
        local = np.arange(self.degree + 1)
        along = column * self.degree + local
        across = self.degree * np.arange(len(self.lines[1]) - 1)[:, None] + local
        return along[None, :, None] * self.shape()[1] + across[:, None, :]


def make_grid(
    breaks: tuple[np.ndarray, np.ndarray], degree: int, layers: int, ratio: float
) -> Grid:
    first, second = (graded_lines(values, layers, ratio) for values in breaks)
    return Grid((first, second), degree, chebyshev_nodes(degree))


def evaluate(grid: Grid, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The piecewise polynomial at points (n, 2); on an edge either side gives the same value."""
    indices, weights = [], []
    for axis, lines in enumerate(grid.lines):
        element = np.searchsorted(lines, points[:, axis], side="right") - 1
        element = np.clip(element, 0, len(lines) - 2)
        left, right = lines[element], lines[element + 1]
        position = np.clip((2 * points[:, axis] - left - right) / (right - left), -1.0, 1.0)
        weights.append(interpolation(grid.nodes, position))
        indices.append(grid.degree * element[:, None] + np.arange(grid.degree + 1))
    local = values[indices[0][:, :, None], indices[1][:, None, :]]
    return np.einsum("ni,nij,nj->n", weights[0], local, weights[1], optimize=True)
