"""Cells: parallelograms and triangles of the plane, boxes of the space, and that they tile."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

from flint import acb, arb, arb_mat, fmpq

from cordes_check.balls import between, largest, need, rational

MOST_CELLS, MOST_PIECES, MOST_CUTS = 20_000, 200_000, 5


class Place:
    """A point, or a ball of points: coordinates x; on a cell parameters s, the first step p1, its
    logarithm where it has one, and a Jacobian."""

    def __init__(self, x: list, s: Sequence = (), p1=None, log_p1=None, jacobian=None):
        self.x, self.s, self.p1, self.log_p1, self.jacobian = x, s, p1, log_p1, jacobian
        self._kept: dict = {}

    def once(self, key: object, function: Callable[["Place"], object]) -> object:
        """A value that many formulas use."""
        if key not in self._kept:
            self._kept[key] = function(self)
        return self._kept[key]


class Region:
    """The convex hull of points."""

    def __init__(self, vertices: list[tuple], name: str):
        self.vertices, self.name = vertices, name

    def whole(self) -> Place:
        return Place([between(min(side), max(side)) for side in zip(*self.vertices, strict=True)])

    def rest_at_apex(self, affine: Sequence[fmpq] | None) -> Callable[[Place], object] | None:
        return None

    def projected(self, fixed: dict[int, fmpq]) -> "Region":
        """Its image on a face of a box, where these coordinates have these values."""
        flat = [tuple(fixed.get(i, c) for i, c in enumerate(v)) for v in self.vertices]
        return Region(flat, self.name)


def along(affine: Sequence[fmpq], v: Sequence[fmpq]) -> fmpq:
    """The slope of an affine function in a direction."""
    return sum((c * w for c, w in zip(affine[1:], v, strict=True)), fmpq(0))


class Cell(Region):
    """origin + Σ p_k d_k, 0 < p_k < 1, a "box"; or origin + p1 (d1 + s2 d2), 0 < s2 < 1, with
    0 < p1 < 1 in a "triangle" and in its "tip", a triangle of which no function is integrated by a
    rule, and low < p1 = low^(1 - s1) < 1 in a "trapezoid". In the frame there are coordinates
    |X_k| < 1: x = middle + Σ X_k d_k/2, X_k = 2 p_k - 1, p2 = p1 s2."""

    def __init__(self, kind: str, rows: list[list[fmpq]], name: str):
        self.low = rows.pop()[0] if kind == "trapezoid" else fmpq(0)
        self.d, self.kind, self.origin, self.directions = len(rows) - 1, kind, rows[0], rows[1:]
        known = kind == "box" or (kind in ("triangle", "tip", "trapezoid") and self.d == 2)
        known = known and all(len(row) == self.d for row in rows)
        need(known and (0 < self.low < 1 or kind != "trapezoid"), f"{name} is no cell")
        self.balls = [[arb(c) for c in row] for row in rows]
        matrix = arb_mat(self.balls[1:]).transpose()
        self.determinant = abs(matrix.det())
        need(self.determinant > 0, f"{name} has no volume")
        corners = (
            [(0, 0), (1, 0), (1, 1), (0, 1)] if self.d == 2 else [*product((0, 1), repeat=self.d)]
        )
        if kind != "box":
            corners = [(self.low, 0), (1, 0), (1, 1), (self.low, self.low)][: 4 if self.low else 3]
        vertices = [tuple(self.point(corner)) for corner in corners]
        # In the plane they run counter-clockwise.
        super().__init__(vertices if matrix.det() > 0 else vertices[::-1], name)
        self.middle, self.inverse = self.point([fmpq(1, 2)] * self.d), (2 * matrix.inv()).tolist()
        self.volume = self.determinant * (1 if kind == "box" else arb(1 - self.low**2) / 2)
        self.unit, self.log_low = (
            [between(0, 1)] * self.d,
            arb(self.low).log() if self.low else None,
        )

    def point(self, p: Sequence) -> list[fmpq]:
        """origin + Σ p_k d_k, exactly."""
        columns = zip(self.origin, *self.directions, strict=True)
        return [o + sum(a * c for a, c in zip(p, move, strict=True)) for o, *move in columns]

    def steps(self, s: Sequence) -> list:
        """The p_k."""
        if self.kind == "box":
            return [*s]
        p1 = ((1 - s[0]) * self.log_low).exp() if self.log_low else s[0]
        return [p1, p1 * s[1]]

    def frame(self, s: Sequence) -> list:
        return [2 * p - 1 for p in self.steps(s)]

    def place(self, s: Sequence) -> Place:
        p, (x, *directions), jacobian, log_p1 = self.steps(s), self.balls, self.determinant, None
        for a, v in zip(p, directions, strict=True):
            x = [c + a * w for c, w in zip(x, v, strict=True)]
        if self.log_low:
            jacobian, log_p1 = -jacobian * p[0] * self.log_low, (1 - s[0]) * self.log_low
        return Place(x, s, p[0], log_p1, jacobian * (1 if self.kind == "box" else p[0]))

    def whole(self) -> Place:
        return self.place(self.unit)

    def rest_at_apex(self, affine: Sequence[fmpq] | None) -> Callable[[Place], object] | None:
        """An affine function that vanishes in the apex, over p1."""
        if self.kind == "box" or not affine or affine[0] + along(affine, self.origin) != 0:
            return None
        a, b = (arb(along(affine, v)) for v in self.directions)
        return lambda place: a + b * place.s[1]


def read_cells(data: list, lower: list[fmpq], upper: list[fmpq]) -> list[Cell]:
    """Cells that tile a box: the sum of their indicator functions is that of the box."""
    need(0 < len(data) <= MOST_CELLS, "there are no cells, or too many")
    cells = []
    for k, (kind, *rows) in enumerate(data):
        cells.append(Cell(kind, [[rational(c) for c in row] for row in rows], f"cell {k}"))
    need(all(cell.d == len(lower) for cell in cells), "a cell of another dimension")
    rest = _edges(cells, lower, upper) if len(lower) == 2 else _corners(cells, lower, upper)
    need(not any(rest.values()), "the cells do not tile the domain")
    return cells


def _edges(cells: list[Cell], lower: list[fmpq], upper: list[fmpq]) -> Counter:
    """In the plane: the oriented boundaries of the cells minus that of the box. Where it is zero,
    the sum of their indicator functions minus that of the box has no boundary, and is zero. (On a
    line a sum of oriented segments is zero if that of their ends is.)"""
    ends, (l, m), (u, v) = Counter(), lower, upper
    outline = [(l, m), (u, m), (u, v), (l, v)]
    for sign, corners in [(-1, outline), *((1, cell.vertices) for cell in cells)]:
        for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
            # The line through both, the same for all pairs on it, and an axis along which it runs.
            n = b[1] - a[1], a[0] - b[0]
            scale, axis = n[0] or n[1], 0 if n[1] else 1
            line = n[0] / scale, n[1] / scale, (n[0] * a[0] + n[1] * a[1]) / scale
            ends[line, a[axis]] += sign
            ends[line, b[axis]] -= sign
    return ends


def _corners(cells: list[Cell], lower: list[fmpq], upper: list[fmpq]) -> Counter:
    """In space, for boxes along the axes: ∂1∂2∂3 of an indicator function is the sum of its
    corners with signs, and determines it."""
    corners = Counter()
    for cell in cells:
        straight = all(
            bool(c) == (i == k) for k, v in enumerate(cell.directions) for i, c in enumerate(v)
        )
        need(straight, f"{cell.name}: boxes along the axes alone, in space")
    boxes = [
        (
            [*map(min, zip(*cell.vertices, strict=True))],
            [*map(max, zip(*cell.vertices, strict=True))],
        )
        for cell in cells
    ]
    for sign, sides in [(-1, (lower, upper)), *((1, box) for box in boxes)]:
        for code in product((0, 1), repeat=3):
            corners[tuple(sides[c][i] for i, c in enumerate(code))] += sign * (-1) ** sum(code)
    return corners


def halves(s: list) -> list[list]:
    """A product of real or complex balls, cut in two across its longest side."""
    sides = [(z.real, z.imag) if isinstance(z, acb) else (z,) for z in s]
    places = [(k, part) for k, side in enumerate(sides) for part in range(len(side))]
    k, part = max(places, key=lambda at: float(sides[at[0]][at[1]].rad()))
    centre, reach, found = sides[k][part].mid(), sides[k][part].rad(), []
    for ball in (between(centre - reach, centre), between(centre, centre + reach)):
        parts = [*sides[k][:part], ball, *sides[k][part + 1 :]]
        found.append([*s[:k], acb(*parts) if len(parts) == 2 else ball, *s[k + 1 :]])
    return found


def sup(function: Callable, s: list, least: int = 0, most: int = MOST_CUTS) -> list[arb]:
    """Upper bounds of |values| on a product of balls, which is cut a few times at least, and where
    they are no numbers; infinite where this does not help."""
    values = [largest(v) for v in function(s)] if least <= 0 else [arb("inf")]
    if most == 0 or all(v.is_finite() for v in values):
        return values
    found = [sup(function, part, least - 1, most - 1) for part in halves(s)]
    return [max(pair) for pair in zip(*found, strict=True)]


def everywhere(cells: list[Cell], test_on: Callable, what: str) -> int:
    """Shows something on all cells, which are cut where it is not seen; the number of pieces."""
    count = 0
    for cell in cells:
        test, todo = test_on(cell), [cell.unit]
        while todo:
            s, count = todo.pop(), count + 1
            if not test(cell.place(s)):
                small = all(z.rad() < 1e-9 for z in s)
                need(not small and count < MOST_PIECES, f"{what} is not seen on {cell.name}")
                todo += halves(s)
    return count
