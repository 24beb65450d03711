"""Analytic maps of boxes that together cover a domain: cells are boxes of these coordinates, and a
formula on a cell is the formula after the map. All maps of a domain are of one kind, with numbers
of their own, so that cells of all of them are treated at once; they are written for arrays of
points and for rectangles alike.

Around a singular point V the coordinates are t and s with x = V + eᵗ(P + s(Q - P)), in triangles
with the corner V: there r^β is an entire function of t, and a dozen cells reach down to any radius.
"""

import abc
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from cordes.domains import Ball, Ellipsoid, Polygon
from cordes.domains.cylinder import Cylinder, is_box
from cordes.domains.domain import AbstractDomain
from cordes.errors import DomainError
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# Cells per direction of the first grid.
START = {1: 8, 2: 4, 3: 2}


class ChartCells(NamedTuple):
    """Boxes of coordinates, (C, d) each, and the numbers of their charts."""

    chart: Array
    lower: Array
    upper: Array

    def take(self, index: Any) -> "ChartCells":
        return ChartCells(*(part[index] for part in self))


class AbstractAtlas(abc.ABC):
    """The charts of a domain."""

    @abc.abstractmethod
    def start(self) -> ChartCells:
        """A first grid."""

    @abc.abstractmethod
    def place(self, chart: Array, y: Any) -> Any:
        """Points of the domain."""

    @abc.abstractmethod
    def jacobian(self, chart: Array, y: Any) -> Any:
        """The volume of the domain in terms of that of the coordinates."""


def _grid(lines: Sequence[Array], chart: int = 0) -> ChartCells:
    ends = [
        list(itertools.product(*(line[k : len(line) - 1 + k] for line in lines))) for k in (0, 1)
    ]
    lower, upper = (np.array(each, float) for each in ends)
    return ChartCells(np.full(len(lower), chart), lower, upper)


def _even(lower: Array, upper: Array) -> list[Array]:
    return [np.linspace(a, b, START[len(lower)] + 1) for a, b in zip(lower, upper, strict=True)]


def _stacked(parts: Sequence[Any]) -> Any:
    """Coordinates (N,) as points (N, d)."""
    if not any(isinstance(part, Rectangle) for part in parts):
        return np.stack(parts, axis=-1)
    names = ("lower", "upper", "below", "above")
    return Rectangle(*(np.stack([getattr(z, name) for z in parts], axis=-1) for name in names))


@final
class Identity(AbstractAtlas):
    """Boxes are their own coordinates."""

    def __init__(self, domain: AbstractDomain):
        self.corners = tuple(np.asarray(corner, float) for corner in domain.bounding_box)

    def start(self) -> ChartCells:
        return _grid(_even(*self.corners))

    def place(self, chart: Array, y: Any) -> Any:
        return y

    def jacobian(self, chart: Array, y: Any) -> Any:
        return y[:, 0] * 0.0 + 1.0


@final
class Round(AbstractAtlas):
    """Radius and angles, which are analytic up to their ends."""

    def __init__(self, center: Array, matrix: Array):
        self.center, self.matrix, self.dimension = center, matrix, len(center)
        self.stretch = abs(float(np.linalg.det(matrix)))

    def start(self) -> ChartCells:
        turns = {1: [1.0], 2: [1.0, 2 * np.pi], 3: [1.0, np.pi, 2 * np.pi]}[self.dimension]
        lower = -np.ones(1) if self.dimension == 1 else np.zeros(self.dimension)
        return _grid(_even(lower, np.array(turns)))

    def place(self, chart: Array, y: Any) -> Any:
        angles = [y[:, k] for k in range(1, self.dimension)]
        parts = [y[:, 0] * each for each in self._direction(angles)]
        return _stacked(
            [
                sum((part * entry for part, entry in zip(parts, row, strict=True)), middle + 0.0)
                for middle, row in zip(self.center, self.matrix, strict=True)
            ]
        )

    def _direction(self, angles: list) -> list:
        if not angles:
            return [1.0]
        flat = [np.cos(angles[-1]), np.sin(angles[-1])]
        if len(angles) == 1:
            return flat
        height, width = np.cos(angles[0]), np.sin(angles[0])
        return [width * flat[0], width * flat[1], height]

    def jacobian(self, chart: Array, y: Any) -> Any:
        if self.dimension == 1:
            return y[:, 0] * 0.0 + self.stretch
        radial = y[:, 0] if self.dimension == 2 else y[:, 0] * y[:, 0] * np.sin(y[:, 1])
        return radial * self.stretch


@final
class Triangles(AbstractAtlas):
    """The triangles between the center of a polygon and its sides, collapsed to the center."""

    def __init__(self, vertices: Array):
        self.center = np.mean(vertices, axis=0)
        self.first, self.edge = vertices - self.center, np.roll(vertices, -1, axis=0) - vertices
        first, edge = self.first, self.edge
        self.twice = np.abs(first[:, 0] * edge[:, 1] - first[:, 1] * edge[:, 0])

    def start(self) -> ChartCells:
        ends = np.array([0.0, 1.0])
        parts = [_grid([ends, ends], k) for k in range(len(self.first))]
        return ChartCells(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def place(self, chart: Array, y: Any) -> Any:
        first, edge = self.first[chart], self.edge[chart]
        rays = [first[:, k] + y[:, 1] * edge[:, k] for k in range(2)]
        return _stacked([self.center[k] + y[:, 0] * rays[k] for k in range(2)])

    def jacobian(self, chart: Array, y: Any) -> Any:
        return y[:, 0] * self.twice[chart]


@final
class AtlasInTime(AbstractAtlas):
    """The charts of a domain, and the time."""

    def __init__(self, base: AbstractAtlas, start: float, end: float):
        self.base, self.start_at, self.end_at = base, start, end

    def start(self) -> ChartCells:
        cells = self.base.start()
        times = np.linspace(self.start_at, self.end_at, START[cells.lower.shape[1] + 1] + 1)
        parts = [
            ChartCells(
                cells.chart,
                np.column_stack([cells.lower, np.full(len(cells.chart), first)]),
                np.column_stack([cells.upper, np.full(len(cells.chart), last)]),
            )
            for first, last in itertools.pairwise(times)
        ]
        return ChartCells(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def place(self, chart: Array, y: Any) -> Any:
        x = self.base.place(chart, y[:, :-1])
        return _stacked([*(x[:, k] for k in range(x.shape[1])), y[:, -1]])

    def jacobian(self, chart: Array, y: Any) -> Any:
        return self.base.jacobian(chart, y[:, :-1])


def atlas(domain: AbstractDomain) -> AbstractAtlas:
    """The charts of a domain in up to three dimensions."""
    match domain:
        case _ if is_box(domain) and domain.dimension in START:
            return Identity(domain)
        case Cylinder() if domain.dimension in START:
            return AtlasInTime(atlas(domain.base), domain.start, domain.end)
        case Ball() if domain.dimension in START:
            return Round(np.asarray(domain.center), domain.radius * np.eye(domain.dimension))
        case Ellipsoid() if domain.dimension in START:
            return Round(np.asarray(domain.center), np.asarray(domain.matrix))
        case Polygon():
            return Triangles(np.asarray(domain.vertices, float))
    raise DomainError(f"{domain!r} has no charts.")
