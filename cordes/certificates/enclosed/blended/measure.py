"""Norms of the residual of an answer by cells from which nothing can hide.

The answer is u = Σ ψ_J p_J / S with S = Σ ψ_J. In a cell K it is p_K + Σ w_J (p_J - p_K), w_J =
ψ_J/S, so that with r for residuals and e = L Σ w_J (p_J - p_K)

    | ‖g r(u)‖ - ‖g r(p)‖ | ≤ ‖g e‖,

where p is p_K in each cell. The first norm is that of polynomials, by Gauss rules with proved
remainders. The other one is small: polynomials that meet nearly agree. In a region in which no
window begins or ends, N = Σ ψ_J (p_J - p_K) is a polynomial, and Gauss rules integrate the squares
of its derivatives; those of N/S follow with suprema of 1/S and of the derivatives of S, by Legendre
coefficients. S is at least 2^-d, since ψ_K is in its own cell; where all windows that meet are
alike it is 1, and its derivatives vanish. The rounding of the terms is added in units of their
sizes.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.jets import all_orders, second_orders, times
from cordes.ansatz.cells.network import CellPolynomials
from cordes.ansatz.cells.reference import gauss, projection, tables
from cordes.ansatz.cells.windows import Steps, along
from cordes.certificates.enclosed.abstract import Equation, Weight
from cordes.certificates.enclosed.blended.boxes import derived
from cordes.certificates.enclosed.blended.regions import Regions, regions_of
from cordes.certificates.enclosed.charts import ChartCells
from cordes.certificates.enclosed.integrand import Integrand
from cordes.certificates.enclosed.measure import EnclosedMeasure
from cordes.certificates.residual.candidate import EPSILON, ROUNDING_OF_SUMS, AnswerCandidate
from cordes.certificates.residual.norms import Norm
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray
# The degree of a step.
STEP = 5
# How near to 1 the sum of all windows is where it is 1.
NEARLY = 1e-12
# Numbers that are held at once.
NUMBERS = 4_000_000


class BlendedMeasure(NamedTuple):
    """What is known of the polynomials by themselves; of each region (R,) its volume, the L² norms
    (R, rows) over it of what blending adds and its derivatives, their suprema, and the equation
    there, (R, J, …) for all outcomes of what is undecided."""

    own: EnclosedMeasure
    volume: Array
    norms: Array
    suprema: Array
    equation: Equation

    def norm_of(self, weight: Weight, power: int = 2, residual: bool = True) -> Norm:
        """Limits of the Lᵖ norm of weight · r (or of the weight alone)."""
        found = self.own.norm_of(weight, power, residual)
        if not residual:
            return found
        more = self.added(weight, power)
        upper = found.upper + more
        return Norm(max(found.lower - more, 0.0), upper, enclosed=math.isfinite(upper))

    def excess(self, weight: Weight) -> float:
        """How many times what the points show the norm of weight · r may be."""
        own = self.own.norm_of(weight).upper
        if own == 0:
            return math.inf
        return self.own.excess(weight) * self.norm_of(weight).upper / own

    @np.errstate(all="ignore")
    def added(self, weight: Weight, power: int) -> float:
        """A bound of the Lᵖ norm of weight · e: ∫|e|ᵖ ≤ sup|e|ᵖ⁻² ∫e², and ∫|e| ≤ √V ‖e‖."""
        if not len(self.volume):
            return 0.0
        factor = np.sqrt(weight.squared(self.equation).size())
        squares = np.max(factor * self._applied(self.norms), axis=1) ** 2
        if power == 1:
            return float(np.sqrt(np.sum(squares) * np.sum(self.volume)))
        largest = float(np.max(factor * self._applied(self.suprema)[...]))
        total = float(np.sum(squares))
        if total == 0:
            return 0.0
        found = (largest ** (power - 2) * total) ** (1 / power)
        return found if math.isfinite(found) else math.inf

    def _applied(self, sizes: Array) -> Array:
        """The operator's size for values and derivatives of these sizes, (R, J)."""
        A, b, c = (part.size() for part in self.equation[1:])
        d = b.shape[-1]
        total = c * sizes[:, None, 0]
        for i in range(d):
            total = total + b[..., i] * sizes[:, None, 1 + i]
        for row, (i, j) in enumerate(second_orders(d), start=1 + d):
            both = A[..., i, j] + (A[..., j, i] if i != j else 0.0)
            total = total + both * sizes[:, None, row]
        return total


def alone(candidate: AnswerCandidate) -> AnswerCandidate:
    """The polynomials of the cells by themselves, in place of the answer."""
    solution = candidate.solution
    broken = dataclasses.replace(solution, network=solution.network.alone())
    return AnswerCandidate(candidate.problem, broken)


def blended_measure(
    integrand: Integrand, own: EnclosedMeasure, network: CellPolynomials
) -> BlendedMeasure:
    """`integrand` is that of the polynomials by themselves, and `own` what is known of it."""
    regions = regions_of(network)
    volume = np.prod(regions.upper - regions.lower, axis=1)
    norms, suprema = added(network, regions)
    if not len(volume):
        nothing = Rectangle(*np.zeros((4, 0, 1)))
        return BlendedMeasure(own, volume, norms, suprema, Equation(*(nothing,) * 4))
    cells = ChartCells(np.zeros(len(volume), int), regions.lower, regions.upper)
    _, equation = integrand.outcomes(cells)
    return BlendedMeasure(own, volume, norms, suprema, equation)


@np.errstate(all="ignore")
def added(network: CellPolynomials, regions: Regions) -> tuple[Array, Array]:
    """Bounds (R, rows) of the L² norms and the suprema of Σ w_J (p_J - p_K) and its derivatives
    over regions."""
    d, count = network.tree.dimension, network.degree + STEP + 1
    step = max(NUMBERS // (16 * count**d), 1)
    parts = [
        _added(network, Regions(*(part[k : k + step] for part in regions)), count)
        for k in range(0, len(regions.cell), step)
    ]
    none = np.zeros((2, 0, len(all_orders(d))))
    return tuple(np.concatenate(each) for each in zip(none, *parts, strict=True))  # pyright: ignore


def _added(network: CellPolynomials, regions: Regions, count: int) -> tuple[Array, Array]:
    """Those of some regions, by so many Gauss points along each axis: products of polynomials, and
    their squares, are integrated without error."""
    d = network.tree.dimension
    rows = len(all_orders(d))
    total, S = np.zeros((2, rows, len(regions.cell), count**d))
    rounding = np.zeros((len(regions.cell), rows))
    x = (regions.lower + regions.upper) / 2 + (
        (regions.upper - regions.lower) / 2 * gauss(count)[0][:, None, None]
    )
    # Along each axis, (R, count).
    x = [np.swapaxes(x[..., k], 0, 1) for k in range(d)]
    mine, sizes = _values(network, x, regions.cell), _sizes(network)
    for column in range(regions.members.shape[1]):
        here = np.flatnonzero(regions.members[:, column] >= 0)
        if not len(here):
            continue
        cell, places = regions.members[here, column], [each[here] for each in x]
        window = _on_grid(_steps(network, places, cell), d)
        S[:, here] += window
        total[:, here] += times(window, _values(network, places, cell) - mine[:, here])
        both = sizes[cell] + sizes[regions.cell[here]]
        largest = np.max(np.abs(window), axis=2)
        rounding[here] += times(largest, both.T).T
    norms, largest = _norms(total, count, d), _largest(total, count, d)
    more, sums = EPSILON * ROUNDING_OF_SUMS * rounding, _sums(S, count, d)
    both = [quotients(each + more, sums, d) for each in (norms, largest)]
    volume = np.prod(regions.upper - regions.lower, axis=1)
    return both[0] * np.sqrt(volume)[:, None], both[1]


def _values(network: CellPolynomials, x: list[Array], cell: Array) -> Array:
    """The polynomial of a cell with its derivatives at a grid of points, (rows, B, points)."""
    lower, upper = (corner[cell] for corner in network.tree.boxes)
    each, found = [], []
    for axis, own in enumerate(x):
        scale = 2 / (upper - lower)[:, axis, None]
        middle = (lower + upper)[:, axis, None] / 2
        flat = tables((scale * (own - middle)).ravel(), network.degree)
        each.append(
            [part.reshape(*own.shape, -1) * scale[..., None] ** n for n, part in enumerate(flat)]
        )
    for orders in all_orders(len(x)):
        part = network.squares[cell]
        for axis, order in enumerate(orders):
            last = np.moveaxis(part, 1 + axis, -1)
            flat = last.reshape(len(cell), -1, last.shape[-1])
            moved = flat @ np.swapaxes(each[axis][order], 1, 2)
            part = np.moveaxis(moved.reshape(*last.shape[:-1], -1), -1, 1 + axis)
        found.append(part.reshape(len(cell), -1))
    return np.stack(found)


def _steps(network: CellPolynomials, x: list[Array], cell: Array) -> list[Steps]:
    """The window of a cell along each axis, (B, count)."""
    lower, upper = (corner[cell][..., None] for corner in network.tree.boxes)
    reach = network.windows.reach[cell][..., None]
    return [
        along(own, lower[:, k], upper[:, k], reach[:, 2 * k], reach[:, 2 * k + 1])
        for k, own in enumerate(x)
    ]


def _on_grid(steps: list[Steps], d: int) -> Array:
    """The products with their derivatives on the grid, (rows, B, points)."""
    found = []
    for orders in all_orders(d):
        total = np.ones((len(steps[0].value), 1))
        for step, order in zip(steps, orders, strict=True):
            total = (total[:, :, None] * step[order][:, None]).reshape(len(total), -1)
        found.append(total)
    return np.stack(found)


def _sizes(network: CellPolynomials) -> Array:
    """Sums of the sizes of the terms of polynomials and their derivatives in their cells, (n,
    rows); a little beyond them neighbours are alike."""
    lower, upper = network.tree.boxes
    each = [
        derived(np.abs(network.squares), (upper - lower) / 2, orders)
        for orders in all_orders(network.tree.dimension)
    ]
    return np.stack([np.sum(np.abs(part.reshape(len(part), -1)), axis=1) for part in each], axis=1)


def _norms(values: Array, count: int, d: int) -> Array:
    """Roots of mean squares (R, rows) of polynomials by their values at Gauss points."""
    weights = gauss(count)[1] / 2
    share = functools.reduce(np.kron, [weights] * d)
    return np.sqrt(np.sum(values**2 * share, axis=2)).T


def _coefficients(values: Array, count: int, d: int) -> Array:
    back = functools.reduce(np.kron, [projection(count - 1)] * d)
    return values @ back.T


def _largest(values: Array, count: int, d: int) -> Array:
    """Bounds of the suprema (R, rows) of polynomials by their values at Gauss points."""
    return np.sum(np.abs(_coefficients(values, count, d)), axis=2).T


def _sums(S: Array, count: int, d: int) -> Array:
    """Bounds (R, rows) of 1/S and of the derivatives of S."""
    found = _largest(S, count, d)
    constant = _coefficients(S[0], count, d)[:, 0]
    least = np.maximum(2 * constant - found[:, 0], 2.0**-d) * (1 - NEARLY)
    even = np.abs(found[:, 0] - 1) + np.abs(constant - 1) < NEARLY
    found[:, 0] = 1 / least
    found[even] = np.array([1 + NEARLY, *np.zeros(found.shape[1] - 1)])
    return found


def quotients(above: Array, sums: Array, d: int) -> Array:
    """Sizes of N/S and its derivatives from those of N, and of 1/S and the derivatives of S."""
    rest = sums[:, 1:] * sums[:, :1]
    found = above * sums[:, :1]
    for i in range(d):
        found[:, 1 + i] += found[:, 0] * rest[:, i]
    for row, (i, j) in enumerate(second_orders(d), start=1 + d):
        found[:, row] += found[:, 1 + i] * rest[:, j] + found[:, 1 + j] * rest[:, i]
        found[:, row] += found[:, 0] * rest[:, row - 1]
    return found
