"""The residual of a Hamilton–Jacobi–Bellman equation with finitely many controls, m = max_a p_a
with p_a = g_a (L^a u - f^a), as something whose norm is bounded over whole cells (an infimum is the
supremum of what has the other sign).

The maximum of analytic functions is not analytic, so that no Gauss rule has a proved remainder for
it. On a cell on which all p_a are analytic each of these holds, with norms over the cell and its
volume V:

  one control    m = p_a + max_b (p_b - p_a)⁺, so ‖m‖ ≤ ‖p_a‖ + √V D_a and ‖m‖ ≥ ‖p_a‖ - √V D_a
                 with D_a = max_b sup (p_b - p_a)⁺; where a is proved to be the best, D_a = 0 and
                 nothing is lost;
  several        m² ≤ Σ p_b² over the controls b that are the best anywhere on the cell: all but
                 those with sup (p_b - p_a) < 0 for some a;
  two            |m| ≤ max(|p_a|, |p_b|) = |p_a + p_b|/2 + |p_a - p_b|/2, so ‖m‖ is at most the sum
                 of the norms of both.

‖p‖² is the value of a Gauss rule and what it leaves out; sup (p_b - p_a) comes from interpolation
at the Gauss points (`interpolation`). The smallest of the bounds counts. In a game m = min_o max_a
p_{ao}, and for a pair k = (a, o)

  m - p_k ≤ max_b sup (p_{bo} - p_k) and p_k - m ≤ max_q min_b sup (p_k - p_{bq}),

the larger one of which takes the place of D_a; those that are the best anywhere are the pairs which
no other control beats everywhere against their opponent, and than which no opponent leaves less
everywhere. Cells on which it is much
more than the points show are cut; on cells without ellipses m lies between max inf p_a and max sup
p_a.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, final

import jax.numpy as jnp
import numpy as np

from cordes.certificates.enclosed.abstract import (
    AbstractIntegrand,
    Around,
    Equation,
    Nodes,
    Smooth,
    Undecided,
    Weight,
    stacked,
)
from cordes.certificates.enclosed.answers.interpolation import limits_between
from cordes.certificates.enclosed.charts import ChartCells
from cordes.certificates.enclosed.components import Components
from cordes.certificates.enclosed.measure import left_out
from cordes.certificates.enclosed.refinement import SHARE, CellBudget, Refinement, refined
from cordes.certificates.residual.candidate import CHUNK, EPSILON, AbstractCandidate
from cordes.certificates.residual.norms import Norm
from cordes.certificates.theorems.energy import Local
from cordes.formulas.intervals import UnsupportedOperation
from cordes.problems.coefficients import Coefficients
from cordes.problems.controls.controlled import AbstractControlled, played
from cordes.problems.kinks.lines import lines_of

Array = np.ndarray
# More controls cost more than their bounds are worth.
MOST_CONTROLS = 8
# A cell is cut where the bound of its square is more than what points show by this share of it, and
# by more than what is allowed. Of two controls whose residuals oscillate in one another no cell is
# small enough: those below a share of the domain may have this multiple, and as much again as the
# whole norm has for their volume.
SHARP, SMALL, SMALL_OF_FORMULAS, BLURRED = 0.02, 1 / 60, 1 / 20_000, 2.0


class Controlled(NamedTuple):
    """At points: the equations of all controls, with axes (N, K, …), and ±(L^a u - f^a) with a
    bound of its rounding, (N, K)."""

    local: Local
    defect: Array
    rounding: Array


@final
class ControlIntegrand(AbstractIntegrand):
    """The residuals of all controls."""

    def played(self, values: Array) -> Array:
        """The residual of the equation, of those of all controls on the last axis."""
        return played(values, self.problem.rivals)

    def __init__(self, problem: AbstractControlled, candidate: AbstractCandidate):
        if problem.maximiser is not None or len(problem.controls) > MOST_CONTROLS:
            raise UnsupportedOperation("so many controls")
        self.problem, self.candidate = problem, candidate

        def operators(x):
            each = [problem.at(x, a) for a in map(jnp.asarray, problem.controls)]
            found = Coefficients(*(jnp.stack(part) for part in zip(*each, strict=True)))
            return found, {"A": found.A, "b": found.b, "c": found.c}

        self.components = Components(problem, candidate, operators)
        self.features, self.cost = self.components.features, self.components.cost
        self.atlas, self.volume = self.components.atlas, self.components.volume

    def around(self, cells: ChartCells) -> Around:
        sizes, jacobian, largest, known, over = self.components.around(cells)
        return Around(sizes, jacobian, Equation(**known), largest, Equation(**over))

    def outcomes(self, cells: ChartCells) -> tuple[Array, Equation]:
        """±(L^a u - f^a) from below and from above, (C, J, K, 2)."""
        lower, upper, known = self.components.over(cells)
        # What the components call residual is f - Lu.
        ends = (-upper, -lower) if self.problem.sign > 0 else (lower, upper)
        names = Equation._fields
        equation = Equation(*(stacked([piece[name] for piece in known]) for name in names))
        return np.stack(ends, axis=3), equation

    def unknown(self, cells: int) -> Array:
        return np.broadcast_to([-np.inf, np.inf], (cells, 1, self.components.count, 2))

    def evaluate(self, x: Array) -> Controlled:
        parts = [self._chunk(x[k : k + CHUNK]) for k in range(0, len(x), CHUNK)]
        local = Local(
            *(np.concatenate(each) for each in zip(*(p.local for p in parts), strict=True))
        )
        return Controlled(local, *(np.concatenate([p[k] for p in parts]) for k in (1, 2)))

    def _chunk(self, x: Array) -> Controlled:
        found = []
        for a in self.problem.controls:
            pairs = self.problem.pairs(x, np.broadcast_to(a, (len(x), *a.shape)))
            A, b, c, f = (np.asarray(part) for part in pairs)
            value, rounding = self.candidate.applied(x, A, b, c)
            defect = self.problem.sign * (value - f)
            found.append((A, b, c, defect, rounding + 4 * EPSILON * np.abs(f)))
        A, b, c, defect, rounding = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return Controlled(Local(A, b, c), defect, rounding)

    @np.errstate(all="ignore")
    def squares_around(self, around: Around, weight: Weight) -> Array:
        largest = np.max(_on_ellipses(around.equation, around.residual, weight) ** 2, axis=2)
        return largest.reshape(around.jacobian.shape) * around.jacobian

    @np.errstate(all="ignore")
    def squares_over(self, equation: Equation, residual: Array, weight: Weight) -> Array:
        square = weight.squared(equation)
        least, most = np.sqrt(np.maximum(square.lower, 0.0)), np.sqrt(square.upper)
        low, high = residual[..., 0], residual[..., 1]
        lower = self.played(low * np.where(low < 0, most, least))
        upper = self.played(high * np.where(high < 0, least, most))
        found = np.maximum(np.abs(lower), np.abs(upper)) ** 2 * (1 + 1e-12)
        return np.where(np.isnan(found), np.inf, found)

    @np.errstate(over="ignore", invalid="ignore")
    def squares(self, x: Array, evaluated: Controlled, weight: Weight) -> Array:
        value, rounding = self.weighted(x, evaluated, weight)
        lower, upper = self.played(value - rounding), self.played(value + rounding)
        return np.maximum(np.abs(lower), np.abs(upper)) ** 2

    def weighted(self, x: Array, evaluated: Controlled, weight: Weight) -> tuple[Array, Array]:
        """p_a at points, and bounds of the rounding (N, K)."""
        count = evaluated.defect.shape[1]
        flat = Local(*(part.reshape(-1, *part.shape[2:]) for part in evaluated.local))
        g = weight.at(np.repeat(x, count, axis=0), flat).reshape(-1, count)
        return g * evaluated.defect, np.abs(g) * evaluated.rounding

    def sharp(self, cells: Smooth, nodes: Nodes, weight: Weight, allowed: Array) -> Array:
        shown = self.squares(nodes.x, nodes.evaluated, weight)
        shown = np.bincount(nodes.cell, nodes.weights * shown, len(cells.volume))
        known = self.weighted(nodes.x, nodes.evaluated, weight)
        surplus = OnCells(cells, nodes, *known, weight, self.problem.rivals).upper - shown
        few = np.maximum(SHARP * shown, allowed)
        blurred = BLURRED * shown + allowed * (4 / SHARE)
        small = self.volume * (SMALL if self.features is not None else SMALL_OF_FORMULAS)
        return surplus <= np.where(cells.size < small, blurred, few)


@np.errstate(all="ignore")
def _on_ellipses(equation: Equation, residual: Array, weight: Weight) -> Array:
    """Bounds of |p_a|."""
    return np.sqrt(weight.squared(equation).size()) * residual


class OnCells:
    """Squares of the norm of m over C cells from `below` and from above, see the module. `value`
    and `rounding` are those of all p_a at the points."""

    def __init__(
        self,
        cells: Smooth,
        nodes: Nodes,
        value: Array,
        rounding: Array,
        weight: Weight,
        rivals: int = 1,
    ):
        self.cells, self.nodes, self.value, self.rounding = cells, nodes, value, rounding
        self.rivals = rivals
        sizes = _on_ellipses(cells.equation, cells.residual, weight)
        shape = cells.jacobian.shape
        self.count = value.shape[1]
        self.sizes = [sizes[:, :, k].reshape(shape) for k in range(self.count)]
        self.order = np.argsort(nodes.cell, kind="stable")
        self.starts = np.searchsorted(nodes.cell[self.order], np.arange(len(cells.volume)))

    def _square(self, value: Array, sizes: Array) -> tuple[Array, Array]:
        """∫ value² by the rules, and what they leave out."""
        found = np.bincount(self.nodes.cell, self.nodes.weights * value**2, len(self.cells.volume))
        bound = sizes**2 * self.cells.jacobian
        return found, left_out(bound, self.cells.orders, self.cells.volume)

    @functools.cached_property
    def norms(self) -> tuple[Array, Array]:
        """Limits of ‖p_a‖ over each cell, (K, C)."""
        lower, upper = [], []
        for k, sizes in enumerate(self.sizes):
            size, rounding = np.abs(self.value[:, k]), self.rounding[:, k]
            low, rest = self._square(np.maximum(size - rounding, 0.0), sizes)
            high, _ = self._square(size + rounding, sizes)
            lower.append(np.sqrt(np.maximum(low - rest, 0.0)))
            upper.append(np.sqrt(high + rest))
        return np.array(lower), np.array(upper)

    @functools.cached_property
    def ahead(self) -> Array:
        """sup (p_b - p_a) over each cell, (K, K, C) by b and a."""
        found = np.zeros((self.count, self.count, len(self.cells.volume)))
        rounding = np.maximum.reduceat(np.sum(self.rounding, axis=1)[self.order], self.starts)
        for b, a in itertools.combinations(range(self.count), 2):
            difference = (self.value[:, b] - self.value[:, a])[self.order]
            bound = self.sizes[a] + self.sizes[b]
            low, high = limits_between(difference, self.starts, self.cells.orders, bound, rounding)
            found[b, a], found[a, b] = high, -low
        return np.where(np.isnan(found), np.inf, found)

    @functools.cached_property
    def surplus(self) -> Array:
        """√V D_a, (K, C)."""
        return np.sqrt(self.cells.size) * np.maximum(self._apart, 0.0)

    @property
    def _apart(self) -> Array:
        """The most by which m and p_a differ, (K, C)."""
        best = np.max(self.by_opponent, axis=1)
        gained = np.stack([best[a // self.against, a] for a in range(self.count)])
        if self.rivals == 1:
            return gained
        return np.maximum(gained, np.max(np.min(self.over_opponent, axis=2), axis=1))

    @property
    def against(self) -> int:
        """How many controls play against each opponent."""
        return self.count // self.rivals

    @property
    def by_opponent(self) -> Array:
        """sup (p_b - p_a) by the opponent and the control of b, and by a."""
        return self.ahead.reshape(self.rivals, self.against, *self.ahead.shape[1:])

    @property
    def over_opponent(self) -> Array:
        """sup (p_b - p_a) by b, and by the opponent and the control of a."""
        cells = self.ahead.shape[2]
        return self.ahead.reshape(self.count, self.rivals, self.against, cells)

    @property
    def played_somewhere(self) -> Array:
        """Whether m may be p_a anywhere on a cell, (K, C): no control is better everywhere against
        the same opponent, and against no opponent all controls are worse everywhere."""
        worse = np.any(np.all(self.by_opponent < 0, axis=1), axis=0)
        own = np.stack([self.over_opponent[a, a // self.against] for a in range(self.count)])
        return ~(np.any(own < 0, axis=1) | worse)

    @property
    def lower(self) -> Array:
        return np.max(np.maximum(self.norms[0] - self.surplus, 0.0), axis=0) ** 2

    @property
    @np.errstate(all="ignore")
    def upper(self) -> Array:
        upper = self.norms[1]
        one = np.min(upper + self.surplus, axis=0) ** 2
        best = self.played_somewhere
        several = np.sum(np.where(best, upper**2, 0.0), axis=0)
        bounds = np.fmin(np.where(np.isnan(one), np.inf, one), several)
        pairs = np.flatnonzero(np.sum(best, axis=0) == 2)
        if len(pairs):
            bounds[pairs] = np.fmin(bounds, self._two(best))[pairs]
        return bounds

    def _two(self, best: Array) -> Array:
        """(‖p_a + p_b‖/2 + ‖p_a - p_b‖/2)² for the first and the last of the best controls."""
        first = np.argmax(best, axis=0)
        last = self.count - 1 - np.argmax(best[::-1], axis=0)
        cell, rows = self.nodes.cell, np.arange(len(self.nodes.cell))
        one, other = self.value[rows, first[cell]], self.value[rows, last[cell]]
        rounding = (self.rounding[rows, first[cell]] + self.rounding[rows, last[cell]]) / 2
        all_sizes, each = np.array(self.sizes), np.arange(len(first))
        sizes = (all_sizes[first, each] + all_sizes[last, each]) / 2
        halves = [np.abs(one + other) / 2 + rounding, np.abs(one - other) / 2 + rounding]
        norms = [np.sqrt(np.add(*self._square(half, sizes))) for half in halves]
        return (norms[0] + norms[1]) ** 2


class ControlMeasure(NamedTuple):
    """The cells of a domain with what is known of the residuals of all controls."""

    integrand: ControlIntegrand
    points: Nodes
    smooth: Smooth
    rough: Undecided | None

    @np.errstate(all="ignore")
    def norm_of(self, weight: Weight) -> Norm:
        """Limits of ‖max_a g_a (L^a u - f^a)‖."""
        cells = self._on_cells(weight)
        total = float(np.sum(self._squares(cells, weight)[0]))
        lower, upper = math.sqrt(float(np.sum(cells.lower))), math.sqrt(total)
        return Norm(lower, upper, enclosed=math.isfinite(upper))

    @np.errstate(all="ignore")
    def squares_of(self, weight: Weight) -> tuple[Array, Array]:
        """Upper limits of the squared norm over each cell, and the last coordinate at which the
        cell begins."""
        return self._squares(self._on_cells(weight), weight)

    def _squares(self, cells: OnCells, weight: Weight) -> tuple[Array, Array]:
        squares = [cells.upper]
        begins = [self.smooth.cells.lower[:, -1]]
        if self.rough is not None:
            each = self.integrand.squares_over(self.rough.equation, self.rough.residual, weight)
            squares.append(self.rough.volume * np.max(each, axis=1))
            begins.append(self.rough.cells.lower[:, -1])
        return np.concatenate(squares), np.concatenate(begins)

    def _on_cells(self, weight: Weight) -> OnCells:
        known = self.integrand.weighted(self.points.x, self.points.evaluated, weight)
        rivals = self.integrand.problem.rivals
        return OnCells(self.smooth, self.points, *known, weight, rivals)

    def excess(self, weight: Weight) -> float:
        """How many times what the points show the norm may be."""
        squares = self.integrand.squares(self.points.x, self.points.evaluated, weight)
        shown = math.sqrt(float(self.points.weights @ squares))
        return self.norm_of(weight).upper / shown if shown > 0 else math.inf


def controlled_measure(
    problem: AbstractControlled,
    candidate: AbstractCandidate,
    weights: Sequence[Weight],
    limits: CellBudget,
) -> ControlMeasure:
    """The cells of a domain, refined until all but a share of the squared norms of max_a weight ·
    (L^a u - f^a) is proved. An operation without enclosure, or too many controls, raise
    `UnsupportedOperation`, a domain without charts `DomainError`."""
    integrand = ControlIntegrand(problem, candidate)
    work = Refinement(integrand, weights, lines_of(problem), limits)
    return ControlMeasure(integrand, *refined(work))
