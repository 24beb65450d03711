"""Sums of sines: bounds on complex neighbourhoods and over small boxes.

|sin(s)| ≤ cosh(Im s), so on an ellipse a sum is bounded in closed form; coefficients that cancel
cost only the logarithm of their size in Gauss points. On a real box feature by feature bounds would
be useless for the same reason: there the sum is interpolated, with the remainder from the ellipse.
"""

import abc
import itertools
import math
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.jets import second_orders
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# Rows of a block: so many numbers are held at once.
NUMBERS = 4_000_000
# Chebyshev points per direction by the number of inputs, and the ellipses of the remainder.
POINTS = {1: 7, 2: 6, 3: 5}
ELLIPSES = np.array([1.5, 2.5, 5.0, 12.0, 40.0, 200.0, 2000.0])
# Points of interpolation over a box beyond which it would take longer than all else.
MOST_NODES = 256


class Operator(NamedTuple):
    """zeroth N + first·∇N + second:D²N for N(z(x)), with the derivatives of z: arrays with rows."""

    zeroth: Array
    first: Array
    second: Array
    slope: Array
    bend: Array


def under(sizes: Operator, values: Array) -> Array:
    """The size of the operator's value for values and derivatives by z of these sizes, (N, 1 + m +
    m(m+1)/2)."""
    m = sizes.slope.shape[1]
    total = sizes.zeroth * values[:, 0]
    total = total + np.einsum("ni,nmi,nm->n", sizes.first, sizes.slope, values[:, 1 : m + 1])
    total = total + np.einsum("nik,nmik,nm->n", sizes.second, sizes.bend, values[:, 1 : m + 1])
    turned = np.einsum("nik,nmi,nlk->nml", sizes.second, sizes.slope, sizes.slope)
    for (i, j), value in zip(second_orders(m), values[:, m + 1 :].T, strict=True):
        both = turned[:, i, j] + (turned[:, j, i] if i != j else 0.0)
        total = total + both * value
    return total


class AbstractFeatures(abc.ABC):
    """A function of inputs z. `size` is how many numbers it is made of, `nodes` how often it is
    evaluated for the bounds over one box; `boxes` are those of the domain, lower and upper corners,
    in which one formula holds each, where there are several."""

    size: int
    nodes: int
    boxes: tuple[Array, Array] | None = None

    @abc.abstractmethod
    def on_ellipses(self, sizes: Operator, z: Rectangle, over: Rectangle) -> Array:
        """Bounds of the operator's value on neighbourhoods of boxes (N, …) from the sizes of its
        parts: z there, and over the boxes themselves."""

    @abc.abstractmethod
    def over(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Middle and radius (C, 1 + m + m²) of value and derivatives over boxes of z."""


class Features(AbstractFeatures):
    """Σ coefficients sin(weight·z + bias), weight (m, P)."""

    def __init__(self, weight: Array, bias: Array, coefficients: Array):
        self.weight, self.bias, self.coefficients = weight, bias, coefficients
        self.size, self.nodes = len(bias), POINTS.get(len(weight), 4) ** len(weight)

    @property
    def inputs(self) -> int:
        return len(self.weight)

    def on_ellipses(self, sizes: Operator, z: Rectangle, over: Rectangle) -> Array:
        height = np.maximum(np.abs(z.below), np.abs(z.above))
        rows = max(NUMBERS // (len(self.bias) * (2 + sizes.first.shape[1])), 1)
        parts = [
            self._on_ellipses(
                Operator(*(part[k : k + rows] for part in sizes)), height[k : k + rows]
            )
            for k in range(0, len(height), rows)
        ]
        return np.concatenate(parts)

    @np.errstate(all="ignore")
    def _on_ellipses(self, sizes: Operator, height: Array) -> Array:
        weight = np.abs(self.weight)
        exponent = _product(height, weight)
        slopes = np.einsum("nmi,mj->nij", sizes.slope, weight)
        total = sizes.zeroth[:, None] + _product(
            np.einsum("nik,nmik->nm", sizes.second, sizes.bend), weight
        )
        total = total + np.einsum("ni,nij->nj", sizes.first, slopes)
        for i, k in itertools.product(range(slopes.shape[1]), repeat=2):
            total = total + sizes.second[:, i, k, None] * slopes[:, i] * slopes[:, k]
        bound = (np.cosh(exponent) * total) @ np.abs(self.coefficients)
        return np.where(np.isnan(bound), np.inf, bound * (1 + 1e-12))

    def columns(self) -> Array:
        """Coefficients of the value, the first and the second derivatives by z: (P, 1 + m + m²);
        the middle ones belong to cosines, the others to sines."""
        m = self.inputs
        pairs = (self.weight[:, None] * self.weight[None]).reshape(m * m, -1)
        return (
            np.concatenate([np.ones((1, len(self.bias))), self.weight, -pairs]).T
            * (self.coefficients[:, None])
        )

    def over(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        if self.nodes > MOST_NODES:
            raise UnsupportedOperation(f"interpolation of a network of {self.inputs} inputs")
        rows = max(NUMBERS // (len(self.bias) * self.nodes), 1)
        parts = [
            self._over(lower[k : k + rows], upper[k : k + rows]) for k in range(0, len(lower), rows)
        ]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))  # pyright: ignore

    @np.errstate(all="ignore")
    def _over(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        m, n = self.inputs, POINTS.get(self.inputs, 4)
        nodes = np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n))
        grid = np.array(list(itertools.product(nodes, repeat=m)))
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        angle = (middle[:, None] + half[:, None] * grid) @ self.weight + self.bias
        sine, cosine, columns = np.sin(angle), np.cos(angle), self.columns()
        values = np.concatenate(
            [sine @ columns[:, :1], cosine @ columns[:, 1 : m + 1], sine @ columns[:, m + 1 :]],
            axis=2,
        )
        high, low = np.max(values, axis=1), np.min(values, axis=1)
        constant = 1 + 2 / math.pi * math.log(n)
        radius = constant**m * (high - low) / 2
        for axis in range(m):
            radius = radius + constant**axis * self._remainder(half[:, axis], axis, n)
        # Points are computed with errors of a few units in the last place of the terms.
        return (high + low) / 2, np.where(np.isnan(radius), np.inf, radius)

    def _remainder(self, half: Array, axis: int, n: int) -> Array:
        """What interpolation at n points leaves out: 4 M ρ^(1-n)/(ρ - 1), the best ρ."""
        columns, found = np.abs(self.columns()), np.full(1, np.inf)
        for rho in ELLIPSES:
            exponent = np.outer(half * (rho - 1 / rho) / 2, np.abs(self.weight[axis]))
            found = np.minimum(
                found, 4 * (np.cosh(exponent) @ columns) * rho ** (1.0 - n) / (rho - 1)
            )
        return found


def _product(rows: Array, weight: Array) -> Array:
    """rows @ weight, where an infinite entry of a row counts only if it has a weight."""
    if np.all(np.isfinite(rows)):
        return rows @ weight
    return np.where(
        (np.where(np.isfinite(rows), 0.0, 1.0) @ weight) > 0,
        np.inf,
        np.where(np.isfinite(rows), rows, 0.0) @ weight,
    )
