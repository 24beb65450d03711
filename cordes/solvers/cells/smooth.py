"""Polynomials first: where data are smooth, one on the whole domain, or on a box one on each piece
between lines, whose degree rises as long as the residual falls as it should. A few hundred numbers
and one dense least squares; nothing is as cheap."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from cordes.ansatz.build import BuiltAnsatz
from cordes.ansatz.cells.axis import Axis, axes_of
from cordes.ansatz.cells.pieces import Pieces, boxes_of, products_of
from cordes.ansatz.networks.network import Frozen
from cordes.ansatz.points import Points
from cordes.ansatz.singular import SingularFunctions
from cordes.domains import Box
from cordes.domains.unit_cube import gauss_rule, tensor_rule
from cordes.domains.walls import Walled, directions_of
from cordes.problems.kinks.lines import lines_of
from cordes.problems.problem import AbstractProblem
from cordes.solvers.rows.rank_revealing import solve_well_posed
from cordes.solvers.rows.system import AbstractSystem

# Degrees by dimension, each a third more than the last one, and numbers beyond which a dense least
# squares takes longer than cells would.
DEGREES = {1: (8, 16, 32, 48), 2: (7, 10, 14, 19, 25, 32), 3: (5, 8, 11, 14, 17, 20)}
MOST_NUMBERS = {1: 4000, 2: 1300, 3: 1800}
# Along the time those of long horizons go on, and are looked at more often before anything is said:
# data that come and go many times are not seen by the first degrees. A horizon is long that is more
# than so many times ℓ²/a, in which diffusion crosses the domain.
MORE_IN_TIME, LONG, LOOKS_OF_LONG, SHARE_OF_LONG = (42, 56, 75, 100, 133), 1.0, 12, 0.2
# Points along each axis of a piece, more than there are functions; on other domains so many points
# for each number.
MORE_POINTS, OVERSAMPLING = 1, 2.5
# An axis gets a larger degree if so much of what polynomials leave comes from it; it shows in the
# last ranks.
SHARE_OF_TAIL, LAST_RANKS = 0.05, 2
# Points that judge, and graded ones for each singular function.
FRESH, GRADED = 1024, 2.5
# A lift that leaves less than this share of f has solved the equation, but for rounding.
LEAST_SHARE = 1e-5
# Fits before anything is said; shares of the right-hand side that polynomials must be expected to
# reach, that are good enough, and that are nothing but rounding; a larger degree must leave so much
# less.
LOOKS, HOPED, GOOD, ROUNDING, FALLS = 3, 1e-7, 1e-8, 1e-12, 0.3


class FittedPolynomials(NamedTuple):
    """A fitted function with its residual on fresh points, and the share of each axis in what the
    last ranks have."""

    network: Pieces
    amplitudes: np.ndarray
    residual: float
    points: int
    tails: np.ndarray


def plain_place(system: AbstractSystem) -> BuiltAnsatz:
    """The ansatz for polynomials: without singular functions, and on a box without the factor that
    they have themselves."""
    place, none = system.place, SingularFunctions(system.domain)
    ansatz = place.ansatz.with_singular(none)
    if vanishes(system.problem):
        ansatz = ansatz.without_distance(alone=False)
    return BuiltAnsatz(ansatz, [], place.richness)


def vanishes(problem: AbstractProblem) -> bool:
    """Whether functions vanish on the boundary, or fulfil what holds there, by themselves: on
    boxes."""
    return isinstance(problem.domain, Box | Walled)


def is_long(problem: AbstractProblem) -> bool:
    """Whether diffusion crosses the domain many times before the time ends."""
    if problem.clock is None:
        return False
    lower, upper = problem.space.bounding_box
    return problem.clock.domain.length * problem.rate > LONG * float(np.min(upper - lower)) ** 2


def lines_and_ends(problem: AbstractProblem) -> list[list[float]]:
    """Lines along each axis with the ends of the box around the domain."""
    lower, upper = problem.domain.bounding_box
    inside = lines_of(problem) if vanishes(problem) else [np.zeros(0)] * len(lower)
    return [
        [float(low), *sorted({float(line) for line in own if low < line < high}), float(high)]
        for low, high, own in zip(lower, upper, inside, strict=True)
    ]


class Ladder:
    """Larger and larger degrees for one problem. `fresh` are the rows that judge."""

    def __init__(self, system: AbstractSystem, seed: int):
        self.system, self.seed = system, seed
        self.lines = lines_and_ends(system.problem)
        long = is_long(system.problem)
        self.degrees = [DEGREES[len(self.lines)]] * len(self.lines)
        if long:
            self.degrees[-1] = self.degrees[-1] + MORE_IN_TIME
        self.looks, self.share = LOOKS, SHARE_OF_TAIL
        self.most = MOST_NUMBERS[len(self.lines)]
        if long:
            self.looks, self.share, self.most = LOOKS_OF_LONG, SHARE_OF_LONG, 2 * self.most
        self.steps = [0] * len(self.lines)
        self.best: FittedPolynomials | None = None
        self.last: FittedPolynomials | None = None
        # What was left by each size, in numbers along an axis.
        self.trail: dict[float, float] = {}
        self.renew()

    def renew(self) -> None:
        """Fresh rows: at the start, and for another frozen equation."""
        self.fresh_points = self.system.fresh_points(self.seed, FRESH)
        self.fresh = self.system.rows(self.fresh_points)
        # Where the lift leaves nothing there is nothing but rounding to compare with.
        size = self.system.size(self.fresh_points)
        self.scale = max(float(np.linalg.norm(self.fresh.target)), LEAST_SHARE * size, 1e-300)

    @property
    def axes(self) -> tuple[Axis, ...]:
        degrees = [own[step] for own, step in zip(self.degrees, self.steps, strict=True)]
        problem = self.system.problem
        return axes_of(self.lines, vanishes(problem), degrees, directions_of(problem.domain))

    @property
    def count(self) -> int:
        return len(products_of(self.axes)[0]) + self.system.ansatz.singular.count

    def fits(self) -> bool:
        """Whether the numbers are few enough."""
        return self.count <= self.most

    @property
    def good(self) -> bool:
        return self.best is not None and self.best.residual <= GOOD * self.scale

    def promising(self, target: float) -> bool:
        """Whether a larger degree is worth its time: not where the residual is at the target, and
        neither where it has stopped falling, nor where it falls so slowly that it will not get
        anywhere."""
        (smaller, before), (size, now) = [(0.0, math.inf), *self.trail.items()][-2:]
        if not np.isfinite(now) or now <= max(target, ROUNDING * self.scale):
            return False
        if len(self.trail) < self.looks:
            return True
        if now > FALLS * before:
            return False
        rate = math.log(now / before) / (size - smaller)
        largest = self.most ** (1 / len(self.lines))
        return now * math.exp(rate * (largest - size)) <= max(HOPED * self.scale, target)

    def go_on_from(self, network: Pieces) -> None:
        """Begin with the degrees of an earlier answer."""
        self.steps = [
            min(int(np.searchsorted(own, degree)), len(own) - 1)
            for own, degree in zip(self.degrees, network.degrees, strict=True)
        ]

    def rise(self) -> bool:
        """The next degrees, along the axes that ask for it; False where there are none."""
        assert self.last is not None
        asks = self.last.tails > self.share * np.max(self.last.tails)
        before = list(self.steps)
        self.steps = [step + int(more) for step, more in zip(before, asks, strict=True)]
        room = all(step < len(own) for own, step in zip(self.degrees, self.steps, strict=True))
        if room and self.fits():
            return True
        self.steps = before
        return False

    def fit(self) -> FittedPolynomials:
        axes = self.axes
        points = self._points(axes)
        rows = self.system.rows(points)
        matrix = np.concatenate([matrix_of(axes, points.x, rows.frozen), rows.singular], axis=1)
        solution = solve_well_posed(matrix, rows.target, damped=rows.singular.shape[1])
        count = matrix.shape[1] - rows.singular.shape[1]
        network = Pieces(self.system.ansatz.inputs, axes, solution[:count])
        left = matrix_of(axes, self.fresh_points.x, self.fresh.frozen) @ solution[:count]
        left = left + self.fresh.singular @ solution[count:] - self.fresh.target
        weights = np.abs(solution[:count]) * np.linalg.norm(matrix[:, :count], axis=0)
        residual, tails = float(np.linalg.norm(left)), _tails(axes, weights)
        fitted = FittedPolynomials(network, solution[count:], residual, len(points.x), tails)
        self.last = fitted
        self.trail[self.count ** (1 / len(axes))] = residual
        if self.best is None or not residual >= self.best.residual:
            self.best = fitted
        return fitted

    def _points(self, axes: tuple[Axis, ...]) -> Points:
        count = self.system.ansatz.singular.count
        if not vanishes(self.system.problem):
            return self.system.points(int(OVERSAMPLING * self.count), self.seed)
        points = _gauss_points(axes)
        if not count:
            return points
        more = self.system.points(int(GRADED * count), self.seed)
        both = [points.weight, more.weight]
        return Points(np.concatenate([points.x, more.x]), np.concatenate(both) / math.sqrt(2))


def _gauss_points(axes: tuple[Axis, ...]) -> Points:
    """Those of each piece, and weights that make sums means."""
    rules = [gauss_rule(axis.degree + MORE_POINTS) for axis in axes]
    y, weight = tensor_rule(rules)
    lower, upper = boxes_of(axes)
    x = lower[:, None] + (upper - lower)[:, None] * y
    share = np.prod(upper - lower, axis=1)
    share = share / np.sum(share)
    return Points(x.reshape(-1, len(axes)), np.sqrt(np.outer(share, weight)).ravel())


def matrix_of(axes: tuple[Axis, ...], x: np.ndarray, frozen: Frozen) -> np.ndarray:
    """The frozen expression applied to all products of functions, (N, count)."""
    zeroth, first, second = (np.asarray(part) for part in frozen[1:])
    tables = [axis.tables(x[:, k]) for k, axis in enumerate(axes)]
    factors = _factors(zeroth, first, second)
    chosen = products_of(axes)
    whole = math.prod(len(axis.ranks) for axis in axes) == len(chosen[0])
    total = np.zeros((len(x), len(chosen[0])))
    # All derivatives with the same orders but along the last axis are one product.
    for orders in sorted({each[:-1] for each in factors}):
        last = sum(
            factors[each][:, None] * tables[-1][each[-1]] for each in factors if each[:-1] == orders
        )
        parts = [*(tables[k][n] for k, n in enumerate(orders)), last]
        if whole:
            total += _outer(parts).reshape(len(x), -1)
        else:
            product = parts[0][:, chosen[0]]
            for part, index in zip(parts[1:], chosen[1:], strict=True):
                product *= part[:, index]
            total += product
    return total


def _factors(zeroth: np.ndarray, first: np.ndarray, second: np.ndarray) -> dict:
    """What each derivative is multiplied with, by its orders; those that are nowhere left out."""
    d = first.shape[1]
    unit = [tuple(int(i == k) for k in range(d)) for i in range(d)]
    found = {(0,) * d: zeroth, **{unit[i]: first[:, i] for i in range(d)}}
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        orders = tuple(a + b for a, b in zip(unit[i], unit[j], strict=True))
        found[orders] = second[:, i, j] + (second[:, j, i] if i != j else 0.0)
    return {orders: part for orders, part in found.items() if np.any(part)}


def _outer(parts: list[np.ndarray]) -> np.ndarray:
    total = parts[0]
    for part in parts[1:]:
        total = total[..., None] * part.reshape(len(part), *(1,) * (total.ndim - 1), -1)
    return total


def _tails(axes: tuple[Axis, ...], weights: np.ndarray) -> np.ndarray:
    """How much the last ranks along each axis weigh."""
    found = []
    for axis, chosen in zip(axes, products_of(axes), strict=True):
        ranks = axis.ranks[chosen]
        last = ranks > np.max(axis.ranks) - LAST_RANKS
        found.append(float(np.linalg.norm(weights[last])))
    return np.maximum(found, 1e-300)
