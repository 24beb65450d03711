"""Chebyshev collocation on a graded grid of rectangles: the classical solution that answers without
a closed form are compared with.

On each rectangle u is a polynomial of degree p in each variable, given by its values at tensor
Chebyshev nodes; neighbours share the values on their common edge. The equations are

- A:D²u + b·∇u - cu = f at the (p-1)² Gauss points of each rectangle, which lie strictly inside:
  coefficients are never asked for on an interface;
- the normal derivative has no jump at the p-1 Gauss points of each inner edge;
- at each inner vertex the jumps of the normal derivatives over its four edges sum to zero;
- u = g at the nodes on the boundary.

For g = 0 these are the equations of orthogonal spline collocation, written with fewer unknowns. The
C¹ tensor splines of degree p that vanish on the boundary have as many parameters as there are Gauss
points; the spline that satisfies the equation at all of them has no jumps at all, so it solves the
square system above and, where that is regular, is its solution. Interior values are eliminated
rectangle by rectangle; what is left is one sparse system for the values on edges.

Convergence in p is exponential for solutions that are analytic away from corners, crossings of
interfaces, ends of interfaces and the extra points, as the grid is graded towards all of these. In
the last layer a singular function r^α keeps an error of order h^α, h the size of that layer.
Rounding grows like 1/h, as a slope is a difference of values over h: on ex4.4-discontinuous it
leaves 1e-11 with four layers and 1e-10 with five.
"""

import time
from typing import Any, final

import jax
import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from cordes.domains import Box
from cordes.errors import CoefficientError, DomainError, OptionError
from cordes.problems.coefficients import check_finite, sample
from cordes.problems.problem import AbstractProblem
from cordes.references.chebyshev_grid import Grid, evaluate, find_breaks, interpolation, make_grid

EVALUATION_CHUNK = 8192
SINGULAR_MESSAGE = (
    "The collocation system is singular. With c < 0 the equation may have no unique solution: "
    "change c a little. Otherwise check A at the interfaces."
)


@final
class ChebyshevSolution:
    """A piecewise polynomial; call it on points (..., 2) of the closed box.

    `error_estimate` is the largest difference to the solution with one layer and two degrees less,
    on a fixed grid that is refined towards the singular coordinates. It measures the coarser of the
    two, so it is an overestimate where the method converges; it is no bound. `elements` is the
    number of rectangles, `seconds` the time for both solutions.
    """

    def __init__(self, grid: "Grid", values: np.ndarray, error_estimate: float, seconds: float):
        self._grid, self._values, self.degree = grid, values, grid.degree
        self.elements = (len(grid.lines[0]) - 1) * (len(grid.lines[1]) - 1)
        self.error_estimate, self.seconds = error_estimate, seconds

    def __call__(self, points: Any) -> np.ndarray:
        points = np.asarray(points, dtype=np.float64)
        if points.ndim == 0 or points.shape[-1] != 2:
            raise OptionError(
                f"The points have shape {points.shape}: the last axis must have length 2."
            )
        flat = points.reshape(-1, 2)
        self._check_inside(flat)
        pieces = [
            evaluate(self._grid, self._values, flat[k : k + EVALUATION_CHUNK])
            for k in range(0, len(flat), EVALUATION_CHUNK)
        ]
        return np.concatenate([np.zeros(0), *pieces]).reshape(points.shape[:-1])

    def _check_inside(self, points: np.ndarray) -> None:
        for axis, lines in enumerate(self._grid.lines):
            # Rounding of a grid's last point is forgiven; NaN is not.
            slack, x = 1e-12 * (lines[-1] - lines[0]), points[:, axis]
            outside = ~((x >= lines[0] - slack) & (x <= lines[-1] + slack))
            if np.any(outside):
                point = points[np.argmax(outside)].tolist()
                raise DomainError(
                    f"The point {point} is outside the box: coordinate {axis} must lie in "
                    f"[{lines[0]}, {lines[-1]}]."
                )

    def __repr__(self) -> str:
        return (
            f"ChebyshevSolution(degree={self.degree}, elements={self.elements}, "
            f"error_estimate={self.error_estimate:.1e})"
        )


def solve_chebyshev(
    problem: AbstractProblem,
    degree: int = 14,
    layers: int = 4,
    extra_points: Any = (),
    ratio: float = 0.2,
) -> ChebyshevSolution:
    """Solve a linear problem on a two-dimensional box and estimate the error by a second, coarser
    solution.

    `layers` lines in geometric progression with `ratio` run towards every face, every interface and
    the coordinates of every extra point. Extra points are those where A, b, c or f is continuous
    but not smooth. `layers=0` is right for solutions that are smooth between interfaces.

    Checked: the domain is a box in two dimensions, interfaces are lines parallel to the axes,
    coefficients are finite at the Gauss points. Assumed: they are smooth within the rectangles, and
    A is elliptic.
    """
    start = time.perf_counter()
    if not isinstance(problem.domain, Box) or problem.domain.dimension != 2:
        raise OptionError(
            f"The Chebyshev solver needs a box in two dimensions, not {problem.domain!r}. Use "
            "cordes.solve."
        )
    whole = int(degree) == degree and int(layers) == layers
    if not whole or degree < 4 or layers < 0 or not 0 < ratio < 1:
        raise OptionError(
            f"degree = {degree}, layers = {layers}, ratio = {ratio}: give integers degree >= 4 "
            "and layers >= 0, and 0 < ratio < 1."
        )
    lower, upper = problem.domain.bounding_box
    breaks = find_breaks(lower, upper, problem.interfaces, extra_points)
    grids = [
        make_grid(breaks, degree, layers, ratio),
        make_grid(breaks, degree - 2, max(layers - 1, 0), ratio),
    ]
    tables, boundaries = _collocate(problem, grids), _boundary_values(problem, grids)
    answers = [_solve_once(*each) for each in zip(grids, tables, boundaries, strict=True)]
    points, pairs = _comparison_points(breaks), zip(grids, answers, strict=True)
    fine, coarse = (evaluate(grid, values, points) for grid, values in pairs)
    estimate = float(np.max(np.abs(fine - coarse)))
    return ChebyshevSolution(grids[0], answers[0], estimate, time.perf_counter() - start)


def _comparison_points(breaks: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """A tensor grid, uniform, with five more decades towards both sides of each break."""
    axes = []
    for values in breaks:
        gaps = np.diff(values)[:, None]
        decades = gaps * 10.0 ** -np.arange(1, 6)
        near = np.ravel([values[:-1, None] + decades, values[1:, None] - decades])
        axes.append(np.concatenate([np.linspace(values[0], values[-1], 41), near]))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def _solve_once(grid: Grid, table: dict[str, np.ndarray], boundary: np.ndarray) -> np.ndarray:
    """The values at the global nodes of one grid."""
    try:
        matrix, rhs, interiors = _assemble(grid, table)
        values = _solve_edges(grid, matrix, rhs, boundary)
    except np.linalg.LinAlgError:
        raise CoefficientError(SINGULAR_MESSAGE) from None
    inner, rim = _inner_and_rim(grid.degree)
    for column, interior in enumerate(interiors):
        nodes = grid.element_nodes(column).reshape(len(interior), -1)
        linear = np.einsum("eib,eb->ei", interior[:, :, :-1], values[nodes[:, rim]])
        values[nodes[:, inner]] = linear + interior[:, :, -1]
    return values.reshape(grid.shape())


def _inner_and_rim(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Flat local numbers of the nodes inside a rectangle and of those on its edges."""
    on_rim = _on_rim((degree + 1, degree + 1))
    return np.flatnonzero(~on_rim), np.flatnonzero(on_rim)


def _on_rim(shape: tuple[int, int]) -> np.ndarray:
    inside = np.zeros((shape[0] - 2, shape[1] - 2), dtype=bool)
    return np.pad(inside, 1, constant_values=True)


def _gauss_points(degree: int) -> np.ndarray:
    return np.polynomial.legendre.leggauss(degree - 1)[0]


def _collocate(problem: AbstractProblem, grids: list[Grid]) -> list[dict[str, np.ndarray]]:
    """A, b, c, f at the Gauss points of every rectangle, shape (columns, rows, (p-1)², ...), for
    each grid."""
    points, shapes = [], []
    for grid in grids:
        gauss = _gauss_points(grid.degree)
        x, y = (
            lines[:-1, None] + np.diff(lines)[:, None] * (1 + gauss) / 2 for lines in grid.lines
        )
        pairs = np.broadcast_arrays(x[:, None, :, None], y[None, :, None, :])
        points.append(np.stack(pairs, axis=-1).reshape(-1, 2))
        shapes.append((len(x), len(y), len(gauss) ** 2))
    # All grids in one call, because every new number of points is compiled anew.
    flat, names = np.concatenate(points), ("A", "b", "c", "f")
    all_of_them = jax.jit(jax.vmap(lambda x: list(problem.at(x))))
    tables: list[dict[str, np.ndarray]] = [{} for _ in grids]
    for name, values in zip(names, all_of_them(flat), strict=True):
        values = np.asarray(values, dtype=np.float64)
        check_finite(name, values, flat)
        for table, part, shape in zip(tables, _parted(values, points), shapes, strict=True):
            table[name] = part.reshape(*shape, *part.shape[1:])
    return tables


def _parted(values: np.ndarray, points: list[np.ndarray]) -> list[np.ndarray]:
    """What was evaluated for all grids at once, grid by grid."""
    return np.split(values, np.cumsum([len(each) for each in points])[:-1])


def _assemble(
    grid: Grid, table: dict[str, np.ndarray]
) -> tuple[scipy.sparse.csr_array, np.ndarray, list[np.ndarray]]:
    """Rows for the jumps of normal derivatives, and how interior values follow from those on the
    rims, for each column of rectangles.

    An edge has one row for each of its nodes: the Gauss points take the numbers of the inner nodes,
    the vertices keep theirs, where the rows of four edges add up. Rows on the boundary of the box
    are made too; they are left out when the system is solved.
    """
    total = grid.shape()[0] * grid.shape()[1]
    _, rim = _inner_and_rim(grid.degree)
    widths = [np.diff(lines) for lines in grid.lines]
    # A row is scaled by the smaller width at its line, so that small rectangles count as much as
    # large ones.
    padded = [np.pad(width, 1, constant_values=np.inf) for width in widths]
    weights = [np.minimum(width[1:], width[:-1]) for width in padded]
    rows, columns, entries, rhs, interiors = [], [], [], np.zeros(total), []
    for column, width in enumerate(widths[0]):
        data = {name: values[column] for name, values in table.items()}
        interior, derivatives = _element(grid, width, widths[1], data)
        interiors.append(interior)
        nodes = grid.element_nodes(column)
        left, right = weights[0][column], weights[0][column + 1]
        below, above = weights[1][:-1, None, None], weights[1][1:, None, None]
        sides = (
            (nodes[:, 0], left),
            (nodes[:, -1], -right),
            (nodes[:, :, 0], below),
            (nodes[:, :, -1], -above),
        )
        for (numbers, weight), derivative in zip(sides, derivatives, strict=True):
            jump = weight * derivative
            around = nodes.reshape(len(nodes), 1, -1)[:, :, rim]
            parts = np.broadcast_arrays(numbers[:, :, None], around, jump[:, :, :-1])
            for gathered, part in zip((rows, columns, entries), parts, strict=True):
                gathered.append(part.ravel())
            np.subtract.at(rhs, numbers, jump[:, :, -1])
    row, column, entry = (np.concatenate(parts) for parts in (rows, columns, entries))
    matrix = scipy.sparse.csr_array((entry, (row, column)), shape=(total, total))
    return matrix, rhs, interiors


def _element(
    grid: Grid, width: float, heights: np.ndarray, table: dict[str, np.ndarray]
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Interior values and normal derivatives of the rectangles of one column, as affine functions
    of the 4p values on the rim.

    The last axis of every array holds the 4p coefficients and the constant. Derivatives are those
    in the direction of the axis on the left, right, lower and upper edge, at its first vertex, its
    Gauss points and its last vertex.
    """
    count, derivative = grid.degree + 1, grid.nodes.derivative
    zeroth = interpolation(grid.nodes, _gauss_points(grid.degree))
    first = zeroth @ derivative
    second = first @ derivative
    sx, sy = 2 / width, 2 / heights[:, None]
    A, b = table["A"], table["b"]
    terms = (
        (second, zeroth, A[..., 0, 0] * sx**2),
        (first, first, (A[..., 0, 1] + A[..., 1, 0]) * sx * sy),
        (zeroth, second, A[..., 1, 1] * sy**2),
        (first, zeroth, b[..., 0] * sx),
        (zeroth, first, b[..., 1] * sy),
        (zeroth, zeroth, -table["c"]),
    )
    scale = 1 / (terms[0][2] + terms[2][2])
    operator = np.zeros((*scale.shape, count**2))
    for along, across, factor in terms:
        operator += (factor * scale)[..., None] * np.kron(along, across)
    inner, rim = _inner_and_rim(grid.degree)
    right_sides = np.concatenate([-operator[:, :, rim], (table["f"] * scale)[..., None]], axis=2)
    interior = np.linalg.solve(operator[:, :, inner], right_sides)
    full = np.zeros((len(heights), count**2, len(rim) + 1))
    full[:, inner] = interior
    full[:, rim, np.arange(len(rim))] = 1
    full = full.reshape(len(heights), count, count, -1)
    edge = np.vstack([np.eye(count)[0], zeroth, np.eye(count)[-1]])
    ends = (derivative[0], derivative[-1])
    vertical = [sx * (edge @ np.einsum("i,eijk->ejk", row, full)) for row in ends]
    horizontal = [sy[:, :, None] * (edge @ np.einsum("j,eijk->eik", row, full)) for row in ends]
    return interior, (*vertical, *horizontal)


def _boundary_values(problem: AbstractProblem, grids: list[Grid]) -> list[np.ndarray]:
    """For each grid g at the nodes on the boundary of the box and NaN at all others; shape
    (nodes,)."""
    points, masks = [], []
    for grid in grids:
        on_boundary = _on_rim(grid.shape())
        axes = np.meshgrid(grid.coordinates(0), grid.coordinates(1), indexing="ij")
        points.append(np.stack(axes, axis=-1)[on_boundary])
        masks.append(on_boundary)
    flat = np.concatenate(points)
    g = sample(problem.g, flat)
    check_finite("g", g, flat, " of the boundary")
    results = []
    for on_boundary, values in zip(masks, _parted(g, points), strict=True):
        table = np.full(on_boundary.shape, np.nan)
        table[on_boundary] = values
        results.append(table.ravel())
    return results


def _solve_edges(
    grid: Grid, matrix: scipy.sparse.csr_array, rhs: np.ndarray, boundary: np.ndarray
) -> np.ndarray:
    """Values on the boundary and on all edges; interior values are left zero."""
    along, across = (np.arange(count) % grid.degree == 0 for count in grid.shape())
    on_edge = (along[:, None] | across[None, :]).ravel()
    known = np.isfinite(boundary)
    free = np.flatnonzero(on_edge & ~known)
    values = np.where(known, boundary, 0.0)
    if len(free) == 0:
        return values
    rhs = (rhs - matrix @ values)[free]
    system = matrix[free][:, free].tocsc()
    try:
        # The pattern is symmetric: an ordering that keeps it so, with little pivoting, fills half
        # as much.
        symmetric = {"SymmetricMode": True}
        factors = splu(system, "MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options=symmetric)
    except RuntimeError:
        raise np.linalg.LinAlgError from None
    # Two steps of refinement: stretched rectangles and little pivoting cost the factors a few
    # digits.
    for _ in range(3):
        values[free] += factors.solve(rhs - system @ values[free])
    return values
