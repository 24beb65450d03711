"""Cells refined where most is not proved: each contributes the value of its Gauss rule and what
the rule leaves out, or its volume times the square of a supremum. A feature that no point has seen
makes the bounds wide, so that its cell is cut until it is resolved or proved to be small. When the
budget ends the bound is large but true."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.certificates.enclosed.abstract import (
    RHO,
    AbstractIntegrand,
    Around,
    Nodes,
    Smooth,
    Undecided,
    Weight,
)
from cordes.certificates.enclosed.charts import ChartCells, Identity
from cordes.certificates.enclosed.measure import left_out
from cordes.domains.unit_cube import gauss_rule, tensor_rule
from cordes.formulas.intervals import UnsupportedOperation
from cordes.formulas.rectangles import Rectangle
from cordes.formulas.resolution import more_halvings
from cordes.runtime.clock import check_deadline

Array = np.ndarray
# Share of the squared norm that may stay unproved: one per cent of the norm.
SHARE = 0.02
ORDERS = np.array([2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32])
LARGEST_ORDER = {1: 32, 2: 24, 3: 24}
GENEROUS = 8
# Cells that are few, and how many times the budget they have.
FEW, LONGER = 24, 10
# Numbers of all cells of a batch.
NUMBERS = 5_000_000
# Pending cells that hold more than this multiple of what is allowed are all cut at once.
FAR = 1e3
# Cells narrower than this share of the chart are not cut.
NARROWEST = 1e-13
TINY = 1e-300


# Cells, points and numbers for each box in which an answer has a formula of its own.
OF_EACH_BOX = (4, 200, 40_000)


class CellBudget(NamedTuple):
    """When refinement ends at the latest: cells, points at which the answer is evaluated, and
    numbers that are calculated on ellipses. They are counted and not timed, so that every machine
    finds the same bounds."""

    cells: int = 12_000
    points: int = 120_000
    numbers: int = 15_000_000

    def more(self, boxes: int) -> "CellBudget":
        """Where the answer has a formula of its own in each of so many boxes."""
        each = (most + boxes * own for most, own in zip(self, OF_EACH_BOX, strict=True))
        return CellBudget(*each)

    def longer(self, waiting: int) -> "CellBudget":
        """Where no more than a few cells wait, as around a point at which coefficients have a
        root, cells run out later: each further level costs as little as the last one, while the
        cells along a curve double."""
        return self if waiting > FEW else CellBudget(*(LONGER * each for each in self))


# Points of a formula cost a thousandth of those of a network.
CHEAP = CellBudget(points=1_000_000, numbers=40_000_000)
# A norm that is enclosed may be so many times what its points show; where cells ran out before,
# it is not used.
TIGHT = 20.0


class Pending(NamedTuple):
    """Cells that may be cut: their boxes, what they count of each squared norm, (C, W), a guess of
    what they really hold, and along which axes they are cut."""

    cells: ChartCells
    value: Array
    guess: Array
    axes: Array
    volume: Array
    residual: Array
    equation: Any

    def take(self, index: Array) -> "Pending":
        value, guess, axes, volume, residual = (part[index] for part in self[1:-1])
        known = value, guess, axes, volume, residual
        return Pending(self.cells.take(index), *known, self.equation.take(index))


def together(parts: Sequence[Pending]) -> Pending:
    """Pending cells one after another, with as many outcomes as the most undecided one."""
    most = max(part.residual.shape[1] for part in parts)

    def padded(part: Pending) -> Pending:
        index = np.minimum(np.arange(most), part.residual.shape[1] - 1)
        equation = type(part.equation)(*(each[:, index] for each in part.equation))
        return part._replace(residual=part.residual[:, index], equation=equation)

    return joined([padded(part) for part in parts])


def joined(parts: Sequence[Any]) -> Any:
    """NamedTuples of arrays, rectangles and further tuples, one after another."""
    first = parts[0]
    if isinstance(first, Rectangle):
        names = ("lower", "upper", "below", "above")
        return Rectangle(*(np.concatenate([getattr(z, name) for z in parts]) for name in names))
    if isinstance(first, tuple):
        return type(first)(*(joined(each) for each in zip(*parts, strict=True)))
    return np.concatenate(parts)


class Refinement:
    """The pending cells, the accepted ones and their points."""

    def __init__(
        self,
        integrand: AbstractIntegrand,
        weights: Sequence[Weight],
        cuts: list[Array],
        limits: CellBudget,
    ):
        self.integrand, self.weights = integrand, weights
        self.pending: list[Pending] = []
        self.smooth: list[Smooth] = []
        self.nodes: list[Nodes] = []
        self.total, self.remainder = np.zeros(len(weights)), np.zeros(len(weights))
        self.new, self.cuts = integrand.start(), cuts
        self.own_boxes = len(self.new.chart) if integrand.has_boxes else 0
        self.limits = limits.more(self.own_boxes)
        # Cells that were looked at, and points of rules that were not accepted.
        self.looked_at = self.wasted = 0
        # Cells that were pending after the last round.
        self.waiting = len(self.new.chart)
        self.whole = integrand.volume
        self.extent = np.max(self.new.upper - self.new.lower, axis=0)
        if isinstance(integrand.atlas, Identity):
            self.extent = self.extent / 2 ** more_halvings(self.extent)
        self.largest_order = LARGEST_ORDER[self.new.lower.shape[1]]

    def work(self, target: Array) -> None:
        """Look at the new cells: accept them, or keep them pending."""
        rows = max(NUMBERS // self.integrand.cost, 1)
        for k in range(0, len(self.new.chart), rows):
            check_deadline()
            self._batch(self.new.take(slice(k, k + rows)), target)
        self.new = self.new.take(slice(0))
        self.waiting = sum(len(part.volume) for part in self.pending)

    def _batch(self, cells: ChartCells, target: Array) -> None:
        self.looked_at += len(cells.chart)
        around = self.integrand.around(cells)
        flat = np.prod(cells.upper - cells.lower, axis=1)
        volume = flat * around.largest_jacobian
        bounds, orders = [], np.zeros(cells.lower.shape)
        for k, weight in enumerate(self.weights):
            bounds.append(self.integrand.squares_around(around, weight))
            pool = max(target[k] / 4 - self.remainder[k], 0.0) / (4 * len(flat))
            allowed = np.maximum(target[k] / 4 * volume / self.whole, pool)
            orders = np.maximum(orders, _orders(bounds[-1], allowed, flat))
        if not self.smooth:
            # Large cells are few: what their rules leave out is made negligible.
            orders = np.maximum(orders, GENEROUS)
        good = np.all(orders <= self.largest_order, axis=1)
        if np.any(good):
            kept = [bound[good] for bound in bounds]
            share = target / 4 * volume[good, None] / self.whole
            self._accept(cells.take(good), orders[good].astype(int), around.take(good), kept, share)
        if not np.all(good):
            bad = ~good
            self._wait(cells.take(bad), orders[bad], volume[bad], around.over_cells.take(bad))

    def _accept(
        self,
        cells: ChartCells,
        orders: Array,
        around: Around,
        bounds: Sequence[Array],
        allowed: Array,
    ) -> None:
        most = self.limits.longer(self.waiting).points
        if self._points + int(np.sum(np.prod(orders, axis=1))) > most:
            raise UnsupportedOperation(f"more than {most:,} points")
        cell, chart, y, weights = _rules(cells, orders)
        x, jacobian = self.integrand.nodes(chart, y)
        nodes = Nodes(x, weights * jacobian, cell, self.integrand.evaluate(x))
        volume = np.prod(cells.upper - cells.lower, axis=1)
        known = around.residual, around.jacobian, around.equation
        smooth = Smooth(cells, volume, volume * around.largest_jacobian, orders, *known)
        sharp = [
            self.integrand.sharp(smooth, nodes, weight, share)
            for weight, share in zip(self.weights, allowed.T, strict=True)
        ]
        kept = np.all(sharp, axis=0)
        if not np.all(kept):
            self.wasted += len(x)
            infinite = np.full((int(np.sum(~kept)), cells.lower.shape[1]), np.inf)
            rest = cells.take(~kept)
            self._wait(rest, infinite, smooth.size[~kept], around.over_cells.take(~kept))
            smooth, nodes = smooth.take(kept), of_cells(nodes, kept)
            bounds = [bound[kept] for bound in bounds]
        self.total += nodes.weights @ self._squares(nodes.x, nodes.evaluated)
        self.remainder += [np.sum(left_out(each, smooth.orders, smooth.volume)) for each in bounds]
        number = sum(len(part.volume) for part in self.smooth)
        self.nodes.append(nodes._replace(cell=nodes.cell + number))
        self.smooth.append(smooth)

    def _wait(self, cells: ChartCells, orders: Array, volume: Array, over: Any) -> None:
        """Cells without ellipses count with their suprema; of those that need many points nothing
        more is asked, they are cut."""
        analytic = np.all(np.isfinite(orders), axis=1)
        size = (cells.upper - cells.lower) / self.extent
        long = size > 0.51 * np.max(size, axis=1, keepdims=True)
        axes = np.where(analytic[:, None], orders > self.largest_order, long)
        axes = axes & (size > NARROWEST)
        if np.any(analytic):
            one = type(over)(*(part[:, None] for part in over.take(analytic)))
            unknown = self.integrand.unknown(int(np.sum(analytic)))
            self._keep(cells.take(analytic), axes[analytic], volume[analytic], unknown, one)
        rough = ~analytic
        if np.any(rough):
            part = cells.take(rough)
            self._keep(part, axes[rough], volume[rough], *self.integrand.outcomes(part))

    def _keep(
        self, cells: ChartCells, axes: Array, volume: Array, residual: Array, equation: Any
    ) -> None:
        each = [self.integrand.squares_over(equation, residual, weight) for weight in self.weights]
        largest = [np.max(np.where(np.isnan(part), np.inf, part), axis=1) for part in each]
        value = volume[:, None] * np.stack(largest, axis=1)
        x, _ = self.integrand.nodes(cells.chart, (cells.lower + cells.upper) / 2)
        guess = volume[:, None] * self._squares(x, self.integrand.evaluate(x))
        guess = np.where(np.isfinite(guess), guess, 0.0)
        self.pending.append(Pending(cells, value, guess, axes, volume, residual, equation))

    def _squares(self, x: Array, evaluated: Any) -> Array:
        """(weight · r)² at points, (N, W)."""
        each = [self.integrand.squares(x, evaluated, weight) for weight in self.weights]
        return np.stack(each, axis=1)

    def cut(self, chosen: Array) -> None:
        """Cut the chosen pending cells."""
        waiting = together(self.pending)
        self.pending = [waiting.take(~chosen)]
        (chart, lower, upper), axes = waiting.cells.take(chosen), waiting.axes[chosen]
        for axis, cuts in enumerate(self.cuts):
            place = _places(lower[:, axis], upper[:, axis], cuts)
            here = axes[:, axis]
            second, first = lower[here].copy(), upper.copy()
            second[:, axis] = place[here]
            first[here, axis] = place[here]
            chart = np.concatenate([chart, chart[here]])
            lower = np.concatenate([lower, second])
            upper, axes = np.concatenate([first, upper[here]]), np.concatenate([axes, axes[here]])
        self.new = ChartCells(chart, lower, upper)

    @property
    def values(self) -> Array:
        empty = np.zeros((0, len(self.weights)))
        return np.concatenate([part.value for part in self.pending] or [empty])

    @property
    def target(self) -> Array:
        """What may stay unproved of each squared norm."""
        guess = sum((np.sum(part.guess, axis=0) for part in self.pending), np.zeros(1))
        return np.maximum(SHARE * (self.total + guess), TINY)

    @property
    def spent(self) -> bool:
        waiting, limits = self.waiting, self.limits.longer(self.waiting)
        cells = waiting + sum(len(part.volume) for part in self.smooth)
        features = self.integrand.features
        # Over a cell without ellipses the sum of the features is interpolated.
        each = 0 if features is None else features.nodes
        numbers = self.looked_at * self.integrand.cost
        points = each * waiting + self._points
        return cells > limits.cells or points > limits.points or numbers > limits.numbers

    @property
    def _points(self) -> int:
        return self.wasted + sum(len(part.x) for part in self.nodes)


def _places(lower: Array, upper: Array, cuts: Array) -> Array:
    """Where to cut: at the line nearest to the middle, if one is inside, else in the middle."""
    middle = (lower + upper) / 2
    for cut in cuts:
        inside = (cut > lower) & (cut < upper)
        nearer = np.abs(cut - (lower + upper) / 2) < np.abs(middle - (lower + upper) / 2)
        at_middle = middle == (lower + upper) / 2
        middle = np.where(inside & (nearer | at_middle), cut, middle)
    return middle


def _orders(bound: Array, allowed: Array, volume: Array) -> Array:
    """Gauss points per direction (K, d) after which each axis leaves out its share of what is
    allowed, infinite where there is no ellipse."""
    d = bound.shape[1]
    with np.errstate(all="ignore"):
        ratio = 64 / 15 * bound / (1 - RHO**-2) * (volume * d / (2 * allowed))[:, None, None]
        need = np.log(np.maximum(ratio, 1e-300)) / (2 * np.log(RHO))
    need = np.min(np.where(np.isfinite(ratio), need, np.inf), axis=2)
    index = np.searchsorted(ORDERS, np.minimum(need, 1e9))
    found = np.append(ORDERS.astype(float), 1e9)[index]
    return np.where(np.isfinite(need), found, np.inf)


def of_cells(nodes: Nodes, kept: Array) -> Nodes:
    """The points of some cells, which are numbered anew."""
    number, stays = np.cumsum(kept) - 1, kept[nodes.cell]
    evaluated = jax.tree.map(lambda leaf: leaf[stays], nodes.evaluated)
    return Nodes(nodes.x[stays], nodes.weights[stays], number[nodes.cell[stays]], evaluated)


def _rules(cells: ChartCells, orders: Array) -> tuple[Array, Array, Array, Array]:
    """Cells, charts, points and weights of tensor rules, in the coordinates of the charts."""
    numbers, charts, points, weights = [], [], [], []
    for key in {tuple(row) for row in orders.tolist()}:
        here = np.all(orders == key, axis=1)
        y, w = tensor_rule([gauss_rule(n) for n in key])
        lower, widths = cells.lower[here], (cells.upper - cells.lower)[here]
        numbers.append(np.repeat(np.flatnonzero(here), len(w)))
        charts.append(np.repeat(cells.chart[here], len(w)))
        points.append((lower[:, None] + widths[:, None] * y).reshape(-1, len(key)))
        weights.append((np.prod(widths, axis=1)[:, None] * w).ravel())
    parts = (np.concatenate(each) for each in (numbers, charts, points, weights))
    return tuple(parts)  # pyright: ignore


@np.errstate(all="ignore")
def refined(work: "Refinement") -> tuple[Nodes, Smooth, Undecided | None]:
    """Cells cut until all but a share of the squared norms is proved, or until they run out."""
    target = _first_target(work)
    while True:
        work.work(target)
        target = work.target
        shares = np.max(work.values / target, axis=1)
        if np.sum(shares) <= 0.5 or work.spent:
            return _collected(work)
        cuttable = np.concatenate([np.any(part.axes, axis=1) for part in work.pending])
        chosen = _marked(shares) & cuttable
        if not np.any(chosen):
            return _collected(work)
        work.cut(chosen)


def _first_target(work: Refinement) -> Array:
    """From ∫(weight · r)² by a few points: sets the goal and nothing else."""
    few = 2 if work.own_boxes else 4
    _, chart, y, weights = _rules(work.new, np.full(work.new.lower.shape, few))
    x, jacobian = work.integrand.nodes(chart, y)
    squares = work._squares(x, work.integrand.evaluate(x))
    found = np.nansum((weights * jacobian)[:, None] * squares, axis=0)
    return np.maximum(SHARE * found, TINY)


def _marked(shares: Array) -> Array:
    """The cells that hold all but a part of what is not proved, in units of what may stay so;
    infinite ones first."""
    infinite = ~np.isfinite(shares)
    if np.any(infinite):
        return infinite
    order = np.argsort(shares)
    running = np.cumsum(shares[order])
    chosen = np.zeros(len(shares), bool)
    chosen[order[running > max(0.5, 0.2 * running[-1])]] = True
    return chosen | (shares > FAR)


def _collected(work: Refinement) -> tuple[Nodes, Smooth, Undecided | None]:
    if not work.smooth:
        raise UnsupportedOperation("a residual that is analytic nowhere")
    nodes = jax.tree.map(lambda *leaves: np.concatenate(leaves), *work.nodes)
    waiting = [together(work.pending)] if work.pending else []
    rough = [Undecided(each.cells, each.volume, each.residual, each.equation) for each in waiting]
    return nodes, joined(work.smooth), rough[0] if rough else None
