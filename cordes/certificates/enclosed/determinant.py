"""det D²w - f of a function w over whole cells, and whether w is convex.

The theorem of Monge–Ampère asks for the norm of |det^{1/d} - f^{1/d}|. Where det ≥ q f with 0 < q
≤ 1 this is |det - f| over the sum of det^{(d-1-k)/d} f^{k/d}, k < d, and so at most

    |det - f| f^{-(d-1)/d} / (1 + q^{1/d} + … + q^{(d-1)/d}),

which is analytic but for the absolute value: Gauss rules have a proved remainder for its square.

Convexity (`proved_convex`): on a cell on which w is analytic sup |det D²w - f| < inf f shows that
det D²w > 0; an eigenvalue of D²w cannot change its sign there without a zero of the determinant, so
that D²w is positive definite on the whole cell if it is at one point of it. On cells without
ellipses the smallest eigenvalue is bounded by intervals. A function that is C¹ with D²w > 0 on all
cells is convex on a convex domain. Nothing is asked from one cell to the next: across their sides
D²w may jump.
"""

import itertools
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.enclosed.abstract import (
    AbstractIntegrand,
    Around,
    Nodes,
    Smooth,
    Undecided,
    Weight,
    stacked,
)
from cordes.certificates.enclosed.answers.interpolation import limits_between
from cordes.certificates.enclosed.charts import ChartCells
from cordes.certificates.enclosed.components import Components
from cordes.certificates.enclosed.measure import EnclosedMeasure
from cordes.certificates.enclosed.refinement import CellBudget, Refinement, of_cells, refined
from cordes.certificates.enclosed.weights import determinant
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.certificates.residual.convexity import (
    cofactor_rounding,
    cofactors_of,
    eigenvalues,
    least_of_matrices,
)
from cordes.certificates.residual.norms import Norm
from cordes.formulas.intervals import Interval
from cordes.formulas.rectangles import Rectangle
from cordes.problems.coefficients import Coefficients, at_points
from cordes.problems.kinks.lines import lines_of
from cordes.problems.monge_ampere import MongeAmpere

Array = np.ndarray
# An eigenvalue at a point is positive beyond doubt if it is this share of the largest one.
CERTAIN = 1e-6
# Cells on which det - f changes its sign are cut until they are this share of the domain, or hold
# so many times what may stay unproved.
SMALL, MIXED = 1 / 2000, 20.0


class Density(NamedTuple):
    """Place and f on neighbourhoods of cells or over cells."""

    x: Rectangle
    f: Rectangle

    def take(self, cells: Array) -> "Density":
        return Density(*(part[cells] for part in self))


class Determined(NamedTuple):
    """At points: f, det D²w - f with a bound of its rounding, and the smallest eigenvalue of D²w as
    a share of the largest."""

    local: Any
    residual: Array
    rounding: Array
    smallest: Array

    @property
    def size(self) -> Array:
        """|r|, rounded up."""
        return np.abs(self.residual) + self.rounding

    @property
    def least(self) -> Array:
        """|r|, rounded down."""
        return np.maximum(np.abs(self.residual) - self.rounding, 0.0)


def density_weight(dimension: int) -> Weight:
    """f^{-(d-1)/d}, made of f in the place of coefficients."""
    power = (dimension - 1) / dimension

    def squared(density: Any) -> Rectangle:
        return density.f.power(-2 * power) if dimension > 1 else density.f * 0.0 + 1.0

    return Weight(lambda x, f: np.asarray(f) ** -power, squared)


def _matrix(entries: list, d: int) -> list[list]:
    """The rows of a symmetric matrix from its upper triangle."""
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    place = {pair: k for k, pair in enumerate(pairs)}
    return [[entries[place[min(i, j), max(i, j)]] for j in range(d)] for i in range(d)]


@final
class DeterminantIntegrand(AbstractIntegrand):
    """det D²w - f; its components are the entries of -D²w."""

    def __init__(self, problem: MongeAmpere, candidate: AbstractCandidate):
        self.candidate, d = candidate, problem.domain.dimension
        self.dimension, self.density = d, at_points(problem.f)
        units = np.zeros((d * (d + 1) // 2, d, d))
        for k, (i, j) in enumerate(itertools.combinations_with_replacement(range(d), 2)):
            units[k, i, j] += 0.5
            units[k, j, i] += 0.5
        zero = jnp.zeros((len(units), d)), jnp.zeros(len(units)), jnp.zeros(len(units))

        def operators(x):
            return Coefficients(jnp.asarray(units), *zero), {"f": jnp.asarray(problem.f(x), float)}

        self.components = Components(problem, candidate, operators)
        self.features, self.cost = self.components.features, self.components.cost
        self.atlas, self.volume = self.components.atlas, self.components.volume

    @np.errstate(all="ignore")
    def around(self, cells: ChartCells) -> Around:
        sizes, jacobian, largest, known, over = self.components.around(cells)
        rows = _matrix([sizes[:, :, k] for k in range(sizes.shape[2])], self.dimension)
        # Without signs: what is added has the size of what is taken off.
        total = known["f"].size() + sum(
            np.prod([rows[i][j] for i, j in enumerate(order)], axis=0)
            for order in itertools.permutations(range(self.dimension))
        )
        total = np.where(np.isnan(total), np.inf, total).reshape(jacobian.shape)
        return Around(total, jacobian, Density(**known), largest, Density(**over))

    def outcomes(self, cells: ChartCells) -> tuple[Array, Density]:
        """|det - f| from above and the smallest eigenvalue from below, (C, J, 2)."""
        lower, upper, known = self.components.over(cells)
        equation = Density(*(stacked([piece[name] for piece in known]) for name in ("x", "f")))
        # The components are those of -D²w.
        low, high = (
            np.stack([np.stack(row, axis=-1) for row in self._rows(part)], axis=-2)
            for part in (-upper, -lower)
        )
        bound = (determinant(Rectangle(low, high)) - equation.f).size()
        bound = np.where(np.isnan(bound), np.inf, bound)
        flat = [part.reshape(-1, *part.shape[2:]) for part in (low, high)]
        least = least_of_matrices(Interval(*flat)).reshape(bound.shape)
        return np.stack([bound, least], axis=2), equation

    def _rows(self, entries: Array) -> list[list]:
        return _matrix([entries[..., k] for k in range(entries.shape[-1])], self.dimension)

    def unknown(self, cells: int) -> Array:
        return np.broadcast_to([np.inf, -np.inf], (cells, 1, 2))

    def evaluate(self, x: Array) -> Determined:
        f, hessian = np.asarray(self.density(x), float), np.asarray(self.candidate.jet(x).hessian)
        cofactors = cofactors_of(np.where(np.isfinite(hessian), hessian, 0.0))
        zero = np.zeros_like(x)
        _, rounding = self.candidate.applied(x, cofactors, zero, zero[:, 0])
        values = eigenvalues(hessian)
        share = values[:, 0] / np.maximum(np.abs(values[:, -1]), 1e-300)
        rounding = rounding + cofactor_rounding(hessian, cofactors)
        return Determined(f, np.linalg.det(hessian) - f, rounding, share)

    @np.errstate(all="ignore")
    def squares_around(self, around: Around, weight: Weight) -> Array:
        size = weight.squared(around.equation).size().reshape(around.residual.shape)
        return size * (around.residual**2 * around.jacobian)

    @np.errstate(all="ignore")
    def squares_over(self, equation: Density, residual: Array, weight: Weight) -> Array:
        known: Any = equation
        return weight.squared(known).size() * residual[..., 0] ** 2

    @np.errstate(all="ignore")
    def squares(self, x: Array, evaluated: Determined, weight: Weight) -> Array:
        return (weight.at(x, evaluated.local) * evaluated.size) ** 2

    @np.errstate(all="ignore")
    def sharp(self, cells: Smooth, nodes: Nodes, weight: Weight, allowed: Array) -> Array:
        """Of a formula cells are cut where det - f changes its sign: they count for both sides of
        the theorem."""
        if self.features is not None:
            return super().sharp(cells, nodes, weight, allowed)
        low, high = compared(nodes, cells)
        squares = nodes.weights * self.squares(nodes.x, nodes.evaluated, weight)
        shown = np.bincount(nodes.cell, squares, len(cells.volume))
        small = cells.size < SMALL * self.volume
        return ~((low < 0) & (high > 0)) | small | (shown <= MIXED * allowed)


class ConvexMeasure(NamedTuple):
    """The cells of a domain on which a function is proved to be convex, with det D²w ≥ `share` f,
    and of these the ones on which det D²w may be larger than f, or smaller."""

    cells: EnclosedMeasure
    larger: EnclosedMeasure
    smaller: EnclosedMeasure
    share: float
    dimension: int

    def norms(self) -> tuple[Norm, Norm]:
        """Limits of the norms of (det^{1/d} - f^{1/d})⁺ and (f^{1/d} - det^{1/d})⁺ in L^d, from
        above; `norm` has both together, and a limit from below."""
        d = self.dimension
        found = (part.norm_of(density_weight(d), d) for part in (self.larger, self.smaller))
        # Where det ≥ f the share is one.
        shares = (1.0, self.share)
        return tuple(  # pyright: ignore
            each._replace(lower=0.0, upper=each.upper / _factor(q, d))
            for each, q in zip(found, shares, strict=True)
        )

    def norm(self) -> Norm:
        """Limits of the norm of |det^{1/d} - f^{1/d}| in L^d, the lower one for det ≤ (2 - share)
        f."""
        d = self.dimension
        found = self.cells.norm_of(density_weight(d), d)
        lower, upper = (
            found.lower / _factor(2 - self.share, d),
            found.upper / _factor(self.share, d),
        )
        return found._replace(lower=lower, upper=upper)

    def excess(self) -> float:
        return self.cells.excess(density_weight(self.dimension))


def _factor(q: float, d: int) -> float:
    return sum(q ** (k / d) for k in range(d))


@np.errstate(all="ignore")
def convex_measure(
    problem: MongeAmpere, candidate: AbstractCandidate, limits: CellBudget
) -> ConvexMeasure | None:
    """The cells of a domain, refined until all but a share of the squared norm of (det - f)
    f^{-(d-1)/d} is proved; None where w is not proved to be convex. An operation without enclosure
    raises `UnsupportedOperation`, a domain without charts `DomainError`."""
    integrand, d = DeterminantIntegrand(problem, candidate), problem.domain.dimension
    work = Refinement(integrand, [density_weight(d)], lines_of(problem), limits)
    nodes, smooth, rough = refined(work)
    off = compared(nodes, smooth)
    share = proved_convex(off, nodes, smooth, rough)
    if share is None:
        return None
    plain = None if rough is None else rough._replace(residual=rough.residual[..., 0])

    def measure(kept: Array) -> EnclosedMeasure:
        part = of_cells(nodes, kept)
        return EnclosedMeasure(part.x, part.weights, part.evaluated, smooth.take(kept), plain)

    every = measure(np.ones(len(smooth.volume), bool))
    return ConvexMeasure(every, measure(off[1] > 0), measure(off[0] < 0), share, d)


@np.errstate(all="ignore")
def compared(nodes: Nodes, smooth: Smooth) -> tuple[Array, Array]:
    """Limits of det D²w - f over the cells, as shares of the smallest f."""
    order = np.argsort(nodes.cell, kind="stable")
    starts = np.searchsorted(nodes.cell[order], np.arange(len(smooth.volume)))
    evaluated: Determined = jax.tree.map(lambda leaf: leaf[order], nodes.evaluated)
    rounding = np.maximum.reduceat(evaluated.rounding, starts)
    known = smooth.orders, smooth.residual, rounding
    low, high = limits_between(evaluated.residual, starts, *known)
    # Every neighbourhood holds the cell.
    smallest = np.max(smooth.equation.f.lower, axis=1)
    low, high = (np.where(smallest > 0, each / smallest, np.nan) for each in (low, high))
    return low, high


@np.errstate(all="ignore")
def proved_convex(
    off: tuple[Array, Array], nodes: Nodes, smooth: Smooth, rough: Undecided | None
) -> float | None:
    """The q with det D²w ≥ q f > 0 over all cells if D²w is positive definite on all of them, see
    the module."""
    largest = np.full(len(smooth.volume), -np.inf)
    np.maximum.at(largest, nodes.cell, nodes.evaluated.smallest)
    worst = np.maximum(-off[0], off[1])
    good = np.all((largest > CERTAIN) & (worst < 1))
    shares = [1 - float(np.max(worst))]
    if rough is not None and len(rough.volume):
        bound, least = rough.residual[..., 0], rough.residual[..., 1]
        good = good and np.all((least > 0) & (rough.equation.f.lower > 0))
        shares.append(1 - float(np.max(bound / rough.equation.f.lower)))
    return min(shares) if good and min(shares) > 0 else None
