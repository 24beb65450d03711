"""Cells that follow the solution: solve on a tree, look at fresh points how large the residual is,
split the cells where it matters, and solve again. What a cell was reduced to is kept as long as the
cell and its equation are."""

import dataclasses

import numpy as np

from cordes.ansatz.cells.columns import Place, RichColumns
from cordes.ansatz.cells.levels import levels_of
from cordes.ansatz.cells.network import CellPolynomials, Rich, columns_of
from cordes.ansatz.cells.reference import differentiation
from cordes.ansatz.cells.tree import UNITS, Tree, start_tree
from cordes.problems.features import features_of
from cordes.runtime.clock import check_deadline
from cordes.solvers.cells.element import Element, element_of
from cordes.solvers.cells.equation import Equation, equation_of, in_cells
from cordes.solvers.cells.kinds import LATTICE, SINGULAR_FROM, CellKind, Kinds, crossings
from cordes.solvers.cells.look import LookedCells, look
from cordes.solvers.cells.merge import CellFace, MergedPart, Merging
from cordes.solvers.cells.plain import Reduced, reduce_plain
from cordes.solvers.cells.rich import RichCell, reduce_rich
from cordes.solvers.cells.sides import CellSides
from cordes.solvers.cells.smooth import lines_and_ends
from cordes.solvers.rows.system import AbstractSystem

# A cell is split along an axis if so much of what polynomials leave comes from it.
SHARE_OF_TAIL = 0.1
# A cell may be this many times longer than a box in which the data have a feature.
LONGER = 4.0
# Cells that features may ask for at the start.
MOST_AT_START = 2000


@dataclasses.dataclass
class Growth:
    """The cells of one solve. `network` is the last answer."""

    system: AbstractSystem
    degree: int
    tree: Tree
    network: CellPolynomials | None = None

    def __post_init__(self) -> None:
        self.levels = levels_of(self.system.domain)
        self.plain: dict[bytes, Reduced] = {}
        self.rich: dict[bytes, tuple[tuple, Reduced]] = {}
        self.parts: dict[bytes, tuple[int, tuple, MergedPart]] = {}
        self.unknowns = 0
        self.use(self.system)

    def use(self, system: AbstractSystem) -> None:
        """The singular functions that a system has now; points that have been active stay so."""
        self.system = system
        before = getattr(self, "kinds", None)
        self._renew(fresh=True)
        if before is not None and len(before.locations) and len(self.kinds.locations):
            gaps = self.kinds.locations[:, None] - before.locations
            same = np.max(np.abs(gaps), axis=2) < 1e-9 * np.max(self.tree.upper - self.tree.lower)
            self.kinds.active = np.any(same & before.active, axis=1)

    def raise_degree(self, degree: int) -> None:
        self.degree = degree
        self.plain.clear()
        self._renew()

    def _renew(self, fresh: bool = False) -> None:
        system, d = self.system, self.tree.dimension
        ansatz = system.ansatz
        self.columns: RichColumns = columns_of(
            self.levels, ansatz.inputs, ansatz.singular, self.degree
        )
        before = None if fresh else self.kinds.active
        self.kinds = Kinds(system.domain, self.columns, before)
        self.element: Element = element_of(self.degree, d)
        self.sides = CellSides(system.domain, self.columns, self.element)
        self.merging = Merging(self.element)
        self.rich.clear()
        self.parts.clear()

    @property
    def equation(self) -> Equation:
        return equation_of(self.system)

    @property
    def volume(self) -> float:
        return float(np.prod(self.tree.upper - self.tree.lower))

    def at_corners(self) -> bool:
        """Whether some cell in a corner is so small that singular functions may help."""
        lower, upper = self.tree.boxes
        size = self.tree.upper - self.tree.lower
        corner = np.sum(self.tree.outer, axis=1) >= 2
        small = np.any(upper - lower <= SINGULAR_FROM * size * (1 + 1e-12), axis=1)
        return bool(np.any(corner & small))

    # Solve ----------------------------------------------------------------------------------------

    def solve(self) -> CellPolynomials:
        tree, equation = self.tree, self.equation
        keys = [cell.tobytes() for cell in tree.cells]
        kinds = self.kinds.of(tree)
        places = self.kinds.places(tree, kinds)
        outside = [kind.outside for kind in kinds]
        self._reduce_plain(keys, [n in places or outside[n] for n in range(tree.count)], equation)
        faces = self.sides.of(tree, kinds, list(places)) if places else {}
        self._reduce_rich(keys, places, faces, equation)
        leaves = self._parts(keys, kinds, faces)
        root = self.merging.joined(tree.whole, tree.cells, leaves)
        values: dict[bytes, np.ndarray] = {}
        root.values(np.zeros(len(root.part.slopes)), values)
        self.unknowns = sum(len(each) for each in values.values()) // 2
        self.network = self._network(keys, kinds, places, values)
        return self.network

    def _reduce_plain(self, keys: list[bytes], others: list[bool], equation: Equation) -> None:
        """What is new, and nothing that is gone."""
        lower, upper = self.tree.boxes
        wanted = [n for n, other in enumerate(others) if not other]
        if self.system.problem.linear:
            wanted = [n for n in wanted if keys[n] not in self.plain]
        known = [self.plain.get(keys[n]) for n in wanted]
        found = reduce_plain(equation, lower[wanted], upper[wanted], self.element, known)
        self.plain |= {keys[n]: each for n, each in zip(wanted, found, strict=True)}
        present = {keys[n] for n, other in enumerate(others) if not other}
        self.plain = {key: each for key, each in self.plain.items() if key in present}

    def _reduce_rich(
        self, keys: list[bytes], places: dict[int, Place], faces: dict, equation: Equation
    ) -> None:
        """What is new; of an equation that changes, all that has changed."""
        check_deadline()
        linear, before = self.system.problem.linear, self.rich
        contains = None if self.sides.box else self.system.domain.contains
        self.rich, cells, known, wanted = {}, [], [], []
        for n, place in places.items():
            # Singular functions may have come since the last time.
            what = faces[n][1], place.points.tobytes()
            old = before.get(keys[n])
            same = old[1] if old is not None and old[0] == what else None
            if same is not None and linear:
                self.rich[keys[n]] = what, same
                continue
            cells.append(RichCell(place, faces[n][1], contains))
            known.append(same)
            wanted.append(n)
        found = reduce_rich(equation, self.columns, cells, known)
        for n, cell, each in zip(wanted, cells, found, strict=True):
            self.rich[keys[n]] = (cell.sides, cell.place.points.tobytes()), each

    def _parts(
        self, keys: list[bytes], kinds: list[CellKind], faces: dict
    ) -> list[MergedPart | None]:
        """What is joined; a part is the same object as long as it is the same."""
        known, self.parts = self.parts, {}
        found: list[MergedPart | None] = []
        outer = self.tree.outer
        for n, key in enumerate(keys):
            if kinds[n].outside:
                found.append(None)
                continue
            own = faces[n][0] if n in faces else None
            reduced = self.rich[key][1] if n in faces else self.plain[key]
            before = known.get(key)
            if before is None or before[0] != id(reduced) or before[1] != (own or ()):
                part = self._plain_part(n, outer[n], reduced) if own is None else None
                before = (
                    id(reduced),
                    own or (),
                    part or MergedPart(own or (), reduced.slopes, reduced.more),
                )
            self.parts[key] = before
            found.append(before[2])
        return found

    def _plain_part(self, n: int, outer: np.ndarray, reduced: Reduced) -> MergedPart:
        """Without its faces on the boundary, where values are zero."""
        cell, modes, more = self.tree.cells[n], self.element.modes, self.element.extra
        faces, numbers, extra = [], [], []
        for face in np.flatnonzero(~outer).tolist():
            axis = face // 2
            rest = np.delete(cell, axis, axis=0).ravel()
            place = int(cell[axis, face % 2])
            faces.append(CellFace(axis, place, tuple(int(end) for end in rest), modes))
            numbers.append(np.arange(face * modes, (face + 1) * modes))
            extra.append(np.arange(face * more, (face + 1) * more))
        rows, others = (np.concatenate([*each, np.zeros(0, int)]) for each in (numbers, extra))
        columns = np.concatenate([[0], 1 + rows])
        slopes, values = (
            reduced.slopes[np.ix_(rows, columns)],
            reduced.more[np.ix_(others, columns)],
        )
        return MergedPart(tuple(faces), slopes, values)

    # The answer -----------------------------------------------------------------------------------

    def _network(
        self,
        keys: list[bytes],
        kinds: list[CellKind],
        places: dict[int, Place],
        values: dict[bytes, np.ndarray],
    ) -> CellPolynomials:
        tree, k, d = self.tree, self.degree + 1, self.tree.dimension
        squares = np.zeros((tree.count, k**d))
        outer, modes = tree.outer, self.element.modes
        for n, key in enumerate(keys):
            if key in self.plain:
                traces = np.zeros((self.element.faces, modes))
                traces[~outer[n]] = values[key].reshape(-1, modes)
                response = self.plain[key].response
                squares[n] = response[:, 0] + response[:, 1:] @ traces.ravel()
        squares = squares.reshape(tree.count, *(k,) * d)
        _end_at_zero(squares, outer)
        if d == 1:
            _join_at_lines(squares, tree)
        numbers = np.array(sorted(places), int)
        coefficients = []
        for n in numbers:
            response = self.rich[keys[n]][1].response
            coefficients.append(response[:, 0] + response[:, 1:] @ values[keys[n]])
        padded = np.zeros((len(numbers), max(map(len, coefficients), default=0)))
        for row, each in zip(padded, coefficients, strict=True):
            row[: len(each)] = each

        def flags(rows: list[np.ndarray], count: int) -> np.ndarray:
            return np.array(rows, bool).reshape(len(numbers), count)

        rich = Rich(
            numbers,
            flags([places[n].outer for n in numbers], len(self.levels)),
            flags([places[n].interfaces for n in numbers], len(self.columns.interfaces)),
            flags([places[n].points for n in numbers], len(self.kinds.locations)),
            padded,
        )
        ansatz = self.system.ansatz
        hidden = np.array([kind.outside for kind in kinds])
        return CellPolynomials(
            ansatz.inputs, ansatz.singular, self.levels, tree, squares, rich, hidden
        )

    # Where to split -------------------------------------------------------------------------------

    def look(self) -> LookedCells:
        assert self.network is not None
        return look(self.network, self.equation, self.element, self.system.domain)

    def split(self, marked: np.ndarray, tails: np.ndarray) -> None:
        both = np.sum(tails, axis=1, keepdims=True)
        axes = tails > SHARE_OF_TAIL * both
        axes[~np.any(axes, axis=1)] = True
        self.tree, _ = self.tree.split(axes & marked[:, None])


def _end_at_zero(squares: np.ndarray, outer: np.ndarray) -> None:
    """Polynomials on the boundary are zero there, as they are up to what is not asked for: then
    boundary values are exact."""
    d = squares.ndim - 1
    degree = squares.shape[1] - 1
    for face in range(2 * d):
        axis, sign = face // 2, (-1.0, 1.0)[face % 2]
        here = np.flatnonzero(outer[:, face])
        ends = sign ** np.arange(degree + 1)
        moved = np.moveaxis(squares[here], 1 + axis, -1)
        trace = moved @ ends
        moved[..., 0] -= trace / 2
        moved[..., 1] -= sign * trace / 2
        squares[here] = np.moveaxis(moved, -1, 1 + axis)


def _join_at_lines(squares: np.ndarray, tree: Tree) -> None:
    """Of one variable: where data jump second derivatives do as well, so that nothing is blended
    there; value and slope agree by cubics with the half of what they differ by."""
    order = np.argsort(tree.cells[:, 0, 0])
    below, above = order[:-1], order[1:]
    inner = tree.cells[above, 0, 0] % UNITS == 0
    lower, upper = tree.boxes
    ends = []
    for cells, end in ((below[inner], 1.0), (above[inner], -1.0)):
        half = (upper - lower)[cells, 0] / 2
        signs = end ** np.arange(squares.shape[1])
        slopes = differentiation(squares.shape[1] - 1).T @ signs
        ends.append((cells, end, half, squares[cells] @ signs, squares[cells] @ slopes / half))
    value, slope = (ends[1][k] - ends[0][k] for k in (3, 4))
    for cells, end, half, _, _ in ends:
        # The cubics with value or slope 1 at this end, and nothing at the other one.
        rises = np.array([0.5, 0.6, 0.0, -0.1]) * end ** np.arange(4)
        turns = np.array([-1 / 6, -0.1, 1 / 6, 0.1]) * end ** np.arange(1, 5)
        squares[cells, :4] += end / 2 * (np.outer(value, rises) + np.outer(slope * half, turns))


def first_tree(system: AbstractSystem, halvings: int) -> Tree:
    """Equal cells, and small ones where the data have something small: not along an interface, of
    which it is enough that each cell sees that it is cut."""
    lines = [np.array(each) for each in lines_and_ends(system.problem)]
    if len(lines) == 2:
        # There cells that an interface cuts have columns for it.
        lines = [each[[0, -1]] for each in lines]
    tree = start_tree(lines, halvings)
    boxes = features_of(system.problem)
    ansatz = system.ansatz
    levels = levels_of(system.domain)
    heights = columns_of(levels, ansatz.inputs, ansatz.singular, 0).heights
    corners = in_cells(boxes.lower, boxes.upper, np.array([-1.0, 1.0]))
    cut = np.any(crossings(heights, corners), axis=1)
    sides = boxes.upper - boxes.lower
    while len(sides):
        low, high = tree.boxes
        meets = np.all((low[:, None] < boxes.upper) & (boxes.lower < high[:, None]), axis=2)
        smallest = np.min(np.where((meets & ~cut)[..., None], sides, np.inf), axis=1)
        long = high - low > LONGER * smallest
        unaware = np.flatnonzero(np.any(meets & cut, axis=1))
        if len(unaware):
            lattice = in_cells(low[unaware], high[unaware], np.linspace(-1, 1, LATTICE))
            long[unaware] |= ~np.any(crossings(heights, lattice), axis=1)[:, None]
        if not np.any(long) or tree.count > MOST_AT_START:
            break
        tree, _ = tree.split(long)
    return tree
