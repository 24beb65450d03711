"""What refinement asks of something that is integrated over cells, and the parts that all of these
are made of."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.enclosed.answers.features import AbstractFeatures
from cordes.certificates.enclosed.charts import AbstractAtlas, ChartCells, Identity
from cordes.certificates.theorems.energy import Local
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# Ellipses around the sides of a cell: small ones for formulas with poles nearby, large ones for
# small cells.
RHO = np.array([1.4, 2.0, 3.2, 6.0, 15.0, 60.0])
# What is left out at the rim of a cell when branches are chosen.
RIM = 1e-12


class Equation(NamedTuple):
    """Place and coefficients on all neighbourhoods of cells, with axes (C, d·R, …), or over the
    cells themselves: all that weights are made of."""

    x: Rectangle
    A: Rectangle
    b: Rectangle
    c: Rectangle

    def take(self, cells: Array) -> "Equation":
        return Equation(*(part[cells] for part in self))


class Weight(NamedTuple):
    """`at(x, local)` are the weights at points, `squared(equation)` encloses their squares."""

    at: Callable[[Array, Local], Array]
    squared: Callable[[Equation], Rectangle]


class Around(NamedTuple):
    """What is known around C cells: bounds of |r| and of the Jacobian, (C, d, R), the equation on
    all neighbourhoods, and over the cells the Jacobian and the equation. Of several residuals the
    bounds are (C, d·R, K)."""

    residual: Array
    jacobian: Array
    equation: Any
    largest_jacobian: Array
    over_cells: Any

    def take(self, cells: Array) -> "Around":
        residual, jacobian, equation, largest, over = self
        parts = residual[cells], jacobian[cells], equation.take(cells), largest[cells]
        return Around(*parts, over.take(cells))


class Smooth(NamedTuple):
    """K cells with Gauss rules of the given orders (K, d): the cells, their volume in the
    coordinates of the chart and, at most, in the domain, bounds of |r| and of the Jacobian on
    ellipses (K, d, R), and the equation there."""

    cells: ChartCells
    volume: Array
    size: Array
    orders: Array
    residual: Array
    jacobian: Array
    equation: Any

    def take(self, cells: Array) -> "Smooth":
        boxes, volume, size, orders, residual, jacobian, equation = self
        known = residual[cells], jacobian[cells], equation.take(cells)
        return Smooth(boxes.take(cells), volume[cells], size[cells], orders[cells], *known)


class Undecided(NamedTuple):
    """Cells on which nothing but bounds of |r| are known, (K, J) for all outcomes of what is
    undecided there with the equation (K, J, …) of each, and their volumes in the domain."""

    cells: ChartCells
    volume: Array
    residual: Array
    equation: Any


class Nodes(NamedTuple):
    """Points of Gauss rules with their weights in the domain, the number of the cell of each, and
    what is evaluated there, a tree of arrays."""

    x: Array
    weights: Array
    cell: Array
    evaluated: Any


class AbstractIntegrand(abc.ABC):
    """Something that is bounded on ellipses around cells, over cells, and evaluated at points.
    `features` are the sines or polynomials in it, `cost` the numbers that one cell takes, `volume`
    is that of the domain."""

    features: AbstractFeatures | None
    atlas: AbstractAtlas
    volume: float
    cost: int

    @abc.abstractmethod
    def around(self, cells: ChartCells) -> Around:
        """Bounds on ellipses."""

    @abc.abstractmethod
    def outcomes(self, cells: ChartCells) -> tuple[Array, Any]:
        """Bounds over cells (C, J, …), for each outcome of what is undecided there, with the
        equation (C, J, …) that belongs to it: A, f and the answer jump together."""

    @abc.abstractmethod
    def evaluate(self, x: Array) -> Any:
        """What is known at points, a tree of arrays."""

    @abc.abstractmethod
    def squares_around(self, around: Around, weight: Weight) -> Array:
        """Bounds of (weight · r)² times the Jacobian on ellipses, (C, d, R)."""

    @abc.abstractmethod
    def squares_over(self, equation: Any, residual: Array, weight: Weight) -> Array:
        """Bounds of (weight · r)² over cells (C, J), for each outcome."""

    @abc.abstractmethod
    def squares(self, x: Array, evaluated: Any, weight: Weight) -> Array:
        """(weight · r)² at points."""

    @property
    def has_boxes(self) -> bool:
        """Whether the answer has formulas of their own in boxes of the domain."""
        own = None if self.features is None else self.features.boxes
        return own is not None and isinstance(self.atlas, Identity)

    def start(self) -> ChartCells:
        """A first grid: where the answer has boxes of its own these."""
        if not self.has_boxes or self.features is None or self.features.boxes is None:
            return self.atlas.start()
        lower, upper = self.features.boxes
        return ChartCells(np.zeros(len(lower), int), lower, upper)

    def sharp(self, cells: Smooth, nodes: Nodes, weight: Weight, allowed: Array) -> Array:
        """Which cells with Gauss rules need not be cut; all of them where the rule is all that
        counts."""
        return np.ones(len(cells.volume), bool)

    def unknown(self, cells: int) -> Array:
        """Bounds over cells of which nothing is asked."""
        return np.full((cells, 1), np.inf)

    def nodes(self, chart: Array, y: Array) -> tuple[Array, Array]:
        """Points of the domain, and the Jacobian there."""
        return self.atlas.place(chart, y), self.atlas.jacobian(chart, y)


def stacked(parts: list[Rectangle]) -> Rectangle:
    """Rectangles (C, …) of several outcomes as (C, J, …)."""
    names = ("lower", "upper", "below", "above")
    return Rectangle(*(np.stack([getattr(z, name) for z in parts], axis=1) for name in names))
