"""Cells that follow the solution: solve on a tree, look at fresh points how large the residual is,
split the cells where it matters, and solve again. What a cell was reduced to is kept as long as the
cell and its equation are."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre

from cordes.ansatz.cells.columns import Place
from cordes.ansatz.cells.network import CellPolynomials, Rich, columns_of
from cordes.ansatz.cells.reference import of_degree
from cordes.ansatz.cells.tree import Tree, start_tree
from cordes.ansatz.cells.windows import REACH
from cordes.problems.features import features_of
from cordes.runtime.blocks import in_blocks
from cordes.runtime.clock import check_deadline
from cordes.solvers.cells.equation import Equation, equation_of, in_cells
from cordes.solvers.cells.joined import Joined, Parts, join
from cordes.solvers.cells.plain import Eliminated, eliminate
from cordes.solvers.cells.rich import KeptCell, keep
from cordes.solvers.cells.skeleton import skeleton_of
from cordes.solvers.rows.system import AbstractSystem

# Samples along each axis in which an interface is looked for in a cell.
LATTICE = 17
# Fresh points along each axis, more than there are points of the fit.
MORE_POINTS = 3
# A cell is split along an axis if so much of what polynomials leave comes from it.
SHARE_OF_TAIL = 0.1
TAIL = 3
# Cells are split whose indicator is this share of the largest.
FRACTION = 0.02
# A cell may be this many times longer than a box in which the data have a feature.
LONGER = 4.0
# A cell has singular functions once it is so small a share of the box along an axis: where the
# solution is smooth at the point, polynomials do.
SINGULAR_FROM = 1 / 16
# Cells that features may ask for at the start.
MOST_AT_START = 2000


class Looked(NamedTuple):
    """What fresh points say of each cell: the integral of the squared residual, the indicator of
    the error, the tail of its polynomial along both axes (n, 2), its mean and area (n, 2). `scale`
    is the root mean square of the target, `residual` that of the residual, `largest` the largest
    value."""

    squares: np.ndarray
    indicator: np.ndarray
    tails: np.ndarray
    means: np.ndarray
    residual: float
    scale: float
    largest: float


Cell = tuple[int, ...]


@dataclasses.dataclass
class Growth:
    """The cells of one solve. `network` is the last answer."""

    system: AbstractSystem
    degree: int
    tree: Tree
    network: CellPolynomials | None = None
    joined: Joined | None = None
    plain: dict[Cell, Eliminated] = dataclasses.field(default_factory=dict)
    kept: dict[Cell, KeptCell] = dataclasses.field(default_factory=dict)
    cut: dict[Cell, tuple[np.ndarray, np.ndarray]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parents = np.arange(self.tree.count)
        self.use(self.system)

    def use(self, system: AbstractSystem) -> None:
        """The singular functions that a system has now."""
        self.system, ansatz = system, system.ansatz
        self.columns = columns_of(ansatz.inputs, ansatz.singular, self.degree)
        families = ansatz.singular.families
        self.locations = np.array([each.point.location for each in families]).reshape(-1, 2)
        self.cut.clear()

    def at_corners(self) -> bool:
        """Whether some cell in a corner is so small that singular functions may help."""
        lower, upper = self.tree.boxes
        corner = np.sum(self.tree.outer, axis=1) >= 2
        return bool(np.any(corner & self._small(lower, upper)))

    def _small(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        size = self.tree.upper - self.tree.lower
        return np.any(upper - lower <= SINGULAR_FROM * size, axis=1)

    @property
    def equation(self) -> Equation:
        return equation_of(self.system)

    @property
    def area(self) -> float:
        return float(np.prod(self.tree.upper - self.tree.lower))

    def raise_degree(self, degree: int) -> None:
        self.degree = degree
        self.columns = columns_of(self.system.ansatz.inputs, self.system.ansatz.singular, degree)
        self.forget()

    def forget(self) -> None:
        """The equation has changed."""
        self.plain.clear()
        self.kept.clear()

    def solve(self) -> CellPolynomials:
        tree, equation = self.tree, self.equation
        keys = [tuple(cell) for cell in tree.cells.reshape(-1, 4).tolist()]
        self._find_rich(keys)
        places = self._places(keys)
        self._reduce(keys, places, equation)
        plain = {n: self.plain[key] for n, key in enumerate(keys) if n not in places}
        kept = {n: self.kept[keys[n]] for n in places}
        rich = np.array([n in places for n in range(tree.count)])
        parts = Parts(tree, plain, kept, places, self.columns)
        check_deadline()
        self.joined = join(parts, skeleton_of(tree, rich), of_degree(self.degree))
        self.network = self._network(places)
        return self.network

    def _reduce(self, keys: list[Cell], places: dict[int, Place], equation: Equation) -> None:
        """What is new, and nothing that is gone."""
        lower, upper = self.tree.boxes
        new = [n for n, key in enumerate(keys) if n not in places and key not in self.plain]
        found = eliminate(equation, lower[new], upper[new], self.degree) if new else []
        old = self.plain
        self.plain = {key: old[key] for key in keys if key in old}
        self.plain |= {keys[n]: each for n, each in zip(new, found, strict=True)}
        known = self.kept
        self.kept = {}
        for n, place in places.items():
            check_deadline()
            key = keys[n]
            self.kept[key] = known.get(key) or keep(equation, self.columns, place)

    def _find_rich(self, keys: list[Cell]) -> None:
        new = [n for n, key in enumerate(keys) if key not in self.cut]
        if not new:
            return
        lower, upper = (corner[new] for corner in self.tree.boxes)
        reach = REACH * (upper - lower)
        low, high = lower - reach, upper + reach
        lattice = in_cells(low, high, np.linspace(-1, 1, LATTICE))
        crossed = _crossed(self.columns.heights, lattice)
        near = np.all((low[:, None] <= self.locations) & (self.locations <= high[:, None]), axis=2)
        near &= self._small(lower, upper)[:, None]
        for row, n in enumerate(new):
            self.cut[keys[n]] = crossed[row], near[row]

    def _places(self, keys: list[Cell]) -> dict[int, Place]:
        lower, upper = self.tree.boxes
        outer = self.tree.outer
        found = {}
        for n, key in enumerate(keys):
            interfaces, points = self.cut[key]
            if np.any(interfaces) or np.any(points):
                found[n] = Place(lower[n], upper[n], outer[n], interfaces, points)
        return found

    def _network(self, places: dict[int, Place]) -> CellPolynomials:
        assert self.joined is not None
        k, numbers = self.degree + 1, np.array(sorted(places), int)
        coefficients = [self.joined.rich[n] for n in numbers]
        padded = np.zeros((len(numbers), max(map(len, coefficients), default=0)))
        for row, each in zip(padded, coefficients, strict=True):
            row[: len(each)] = each

        def flags(rows: list[np.ndarray], count: int) -> np.ndarray:
            return np.array(rows, bool).reshape(len(numbers), count)

        rich = Rich(
            numbers,
            flags([places[n].interfaces for n in numbers], len(self.columns.interfaces)),
            flags([places[n].points for n in numbers], len(self.locations)),
            padded,
        )
        ansatz = self.system.ansatz
        squares = self.joined.squares.reshape(-1, k, k)
        return CellPolynomials(ansatz.inputs, ansatz.singular, self.tree, squares, rich)

    # Where to split -------------------------------------------------------------------------------

    def look(self) -> Looked:
        assert self.network is not None
        assert self.joined is not None
        lower, upper = self.tree.boxes
        t, weights = legendre.leggauss(self.degree + 1 + MORE_POINTS)
        x = in_cells(lower, upper, t)
        flat = x.reshape(-1, 2)
        jet = self.network.jet_at(flat)
        rows = self.equation(flat)
        found = np.column_stack(
            [
                jet.hessian[:, 0, 0],
                jet.hessian[:, 0, 1],
                jet.hessian[:, 1, 1],
                jet.gradient,
                jet.value,
            ]
        )
        residual = (np.sum(rows.factors * found, axis=1) - rows.target).reshape(x.shape[:2])
        area, share = np.prod(upper - lower, axis=1), np.kron(weights, weights) / 4
        squares = area * (residual**2 @ share)
        target = area * (rows.target.reshape(x.shape[:2]) ** 2 @ share)
        h = np.min(upper - lower, axis=1)
        indicator = np.maximum(
            h**2 * np.max(np.abs(residual), axis=1) / 4, h * self.joined.jumps / 2
        )
        volume = float(np.sum(area))
        tails = self.network.squares[:, -TAIL:, :], self.network.squares[:, :, -TAIL:]
        return Looked(
            squares,
            indicator,
            np.stack([np.sum(np.abs(tail), axis=(1, 2)) for tail in tails], axis=1),
            np.column_stack([jet.value.reshape(x.shape[:2]) @ share, area]),
            float(np.sqrt(np.sum(squares) / volume)),
            float(np.sqrt(np.sum(target) / volume)),
            float(np.max(np.abs(jet.value), initial=0.0)),
        )

    def split(self, marked: np.ndarray, tails: np.ndarray) -> None:
        both = np.sum(tails, axis=1, keepdims=True)
        axes = tails > SHARE_OF_TAIL * both
        axes[~np.any(axes, axis=1)] = True
        self.tree, self.parents = self.tree.split(axes & marked[:, None])


def first_tree(system: AbstractSystem, halvings: int) -> Tree:
    """Equal cells, and small ones where the data have something small: not along an interface, of
    which it is enough that each cell sees that it is cut."""
    lower, upper = (np.asarray(each, float) for each in system.domain.bounding_box)
    tree = start_tree(lower, upper, halvings)
    boxes = features_of(system.problem)
    ansatz = system.ansatz
    heights = columns_of(ansatz.inputs, ansatz.singular, 0).heights
    corners = in_cells(boxes.lower, boxes.upper, np.array([-1.0, 1.0]))
    cut = np.any(_crossed(heights, corners), axis=1)
    sides = boxes.upper - boxes.lower
    while len(sides):
        low, high = tree.boxes
        meets = np.all((low[:, None] < boxes.upper) & (boxes.lower < high[:, None]), axis=2)
        smallest = np.min(np.where((meets & ~cut)[..., None], sides, np.inf), axis=1)
        long = high - low > LONGER * smallest
        unaware = np.flatnonzero(np.any(meets & cut, axis=1))
        if len(unaware):
            lattice = in_cells(low[unaware], high[unaware], np.linspace(-1, 1, LATTICE))
            long[unaware] |= ~np.any(_crossed(heights, lattice), axis=1)[:, None]
        if not np.any(long) or tree.count > MOST_AT_START:
            break
        tree, _ = tree.split(long)
    return tree


def _crossed(heights: Sequence[Callable], x: np.ndarray) -> np.ndarray:
    """Which functions (n, count) change their sign over the points (n, m, 2) of each cell."""
    found = np.zeros((len(x), len(heights)), bool)
    for k, height in enumerate(heights if len(x) else ()):
        values = np.asarray(in_blocks(height, (x.reshape(-1, 2),)).value).reshape(x.shape[:2])
        found[:, k] = (np.min(values, axis=1) < 0) & (np.max(values, axis=1) > 0)
    return found
