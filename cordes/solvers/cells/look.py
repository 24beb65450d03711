"""What fresh points say of an answer by cells: how large the residual is, and where; by how much
values and slopes jump between cells, and what is made of that by the windows."""

from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.jets import all_orders
from cordes.ansatz.cells.network import CellPolynomials, LocalPolynomials
from cordes.ansatz.cells.reference import gauss
from cordes.ansatz.cells.tree import locate
from cordes.ansatz.cells.windows import REACH
from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.solvers.cells.element import Element
from cordes.solvers.cells.equation import CellRows, Equation, in_cells, scales

# Fresh points along each axis, more than the equation is fulfilled in; points of a face.
MORE_POINTS, ON_FACES = 1, 5
# What shows how a polynomial ends.
TAIL = 3
# Where two functions are blended over a width w, which differ by v in value and by s in slope, the
# mean square of second derivatives over the band is made larger by these times (v/w²)² and (s/w)²:
# integrals of the squares of the derivatives of a smoothstep.
OF_VALUES, OF_SLOPES = 120 / 7, 10 / 7 * 4
# How far beyond a side another cell is looked for, as a share of the cell.
BEYOND = 1e-9


class LookedCells(NamedTuple):
    """What fresh points say of each cell: the integral of the squared residual, the indicator of
    the error, the tail of its polynomial along each axis (n, d), its volume in the domain.
    `scale` is the root mean square of the target, `residual` that of the residual, `largest` the
    largest value."""

    squares: np.ndarray
    indicator: np.ndarray
    tails: np.ndarray
    volumes: np.ndarray
    residual: float
    scale: float
    largest: float


def look(
    network: CellPolynomials, equation: Equation, element: Element, domain: AbstractDomain
) -> LookedCells:
    lower, upper = network.tree.boxes
    d, degree = network.tree.dimension, network.degree
    t, weights = gauss(degree + MORE_POINTS)
    x = in_cells(lower, upper, t)
    flat = x.reshape(-1, d)
    inside = np.ones(len(flat), bool) if isinstance(domain, Box) else domain.contains(flat)
    inside &= ~np.repeat(network.hidden, x.shape[1])
    rows = _rows(equation, flat, inside)
    values, derivatives = _own(network, element, x, t)
    factors = rows.factors.reshape(*x.shape[:2], -1)
    residual = np.einsum("nqj,nqj->nq", factors, derivatives) - rows.target.reshape(x.shape[:2])
    share = weights
    for _ in range(d - 1):
        share = np.kron(share, weights)
    share = share / 2**d * inside.reshape(x.shape[:2])
    cells = np.prod(upper - lower, axis=1)
    volume = cells * np.sum(share, axis=1)
    squares = cells * np.sum(residual**2 * share, axis=1)
    target = cells * np.sum(rows.target.reshape(x.shape[:2]) ** 2 * share, axis=1)
    value, slope, blended = _jumps(network, domain, factors)
    h = np.min(upper - lower, axis=1)
    indicator = h**2 * np.max(np.abs(residual) * (share > 0), axis=1) / 4
    indicator = np.maximum(indicator, np.maximum(h * slope / 2, value))
    whole = float(np.sum(volume))
    return LookedCells(
        squares + blended,
        indicator,
        _tails(network.squares),
        volume,
        float(np.sqrt(np.sum(squares + blended) / whole)),
        float(np.sqrt(np.sum(target) / whole)),
        float(np.max(np.abs(values) * (share > 0), initial=0.0)),
    )


def _rows(equation: Equation, x: np.ndarray, inside: np.ndarray) -> CellRows:
    """The equation at points inside of the domain, nothing elsewhere."""
    if np.all(inside):
        return equation(x)
    found = equation(x[inside])
    factors = np.zeros((len(x), found.factors.shape[1]))
    target = np.zeros(len(x))
    factors[inside], target[inside] = found.factors, found.target
    return CellRows(factors, target)


def _own(
    network: CellPolynomials, element: Element, x: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, q) and derivatives (n, q, rows) of the function of each cell in its own points."""
    lower, upper = network.tree.boxes
    flat = network.squares.reshape(network.tree.count, -1)
    table = element.over(t)
    found = np.einsum("jqk,nk->nqj", table, flat, optimize=True)
    found *= scales(lower, upper)[:, None]
    rich = network.rich.numbers
    if len(rich):
        local = LocalPolynomials(network)
        own = local.at(x[rich].reshape(-1, x.shape[2]), np.repeat(rich, x.shape[1]))
        found[rich] = own.T.reshape(len(rich), x.shape[1], -1)
    return found[:, :, 0], found


def _jumps(
    network: CellPolynomials, domain: AbstractDomain, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest jumps of values and of slopes at the sides of each cell, and the integral of the
    squares that blending adds to the residual."""
    tree, d = network.tree, network.tree.dimension
    lower, upper = tree.boxes
    t, weights = gauss(ON_FACES)
    local, path = LocalPolynomials(network), network.path
    largest = np.zeros((2, tree.count))
    blended = np.zeros(tree.count)
    pure = [all_orders(d).index(tuple(2 * int(k == axis) for k in range(d))) for axis in range(d)]
    share = weights / 2 if d > 1 else np.ones(1)
    for _ in range(d - 2):
        share = np.kron(share, weights / 2)
    for face in range(2 * d):
        axis, side = face // 2, face % 2
        cells = np.flatnonzero(~tree.outer[:, face] & ~network.hidden)
        if not len(cells):
            continue
        x = _on_face(lower[cells], upper[cells], axis, side, t)
        flat = x.reshape(-1, d)
        beyond = flat.copy()
        width = (upper - lower)[cells, axis]
        beyond[:, axis] += np.repeat((-1.0, 1.0)[side] * BEYOND * width, x.shape[1])
        other = locate(path, beyond)
        used = ~network.hidden[other]
        if not isinstance(domain, Box):
            used &= domain.contains(flat)
        own = np.repeat(cells, x.shape[1])
        difference = local.at(flat, own) - local.at(flat, other)
        value = np.where(used, np.abs(difference[0]), 0.0).reshape(x.shape[:2])
        slope = np.where(used, np.abs(difference[1 + axis]), 0.0).reshape(x.shape[:2])
        for row, part in enumerate((value, slope)):
            largest[row, cells] = np.maximum(largest[row, cells], np.max(part, axis=1))
        thin = np.minimum(width[:, None], (upper - lower)[other, axis].reshape(x.shape[:2]))
        band = 2 * REACH * thin
        # Each of the two cells counts its own half.
        size = np.max(np.abs(factors[cells][:, :, pure[axis]]), axis=1)
        added = OF_VALUES * (value / band**2) ** 2 + OF_SLOPES * (slope / band) ** 2
        area = np.prod((upper - lower)[cells], axis=1) / width
        blended[cells] += area * size**2 * np.sum(share * band / 2 * added, axis=1)
    return largest[0], largest[1], blended


def _on_face(
    lower: np.ndarray, upper: np.ndarray, axis: int, side: int, t: np.ndarray
) -> np.ndarray:
    """Points of one face of each cell, (n, q^(d-1), d)."""
    d = lower.shape[1]
    others = [k for k in range(d) if k != axis]
    count = len(t) ** len(others)
    x = np.empty((len(lower), count, d))
    x[:, :, axis] = (lower, upper)[side][:, axis, None]
    if others:
        x[:, :, others] = in_cells(lower[:, others], upper[:, others], t)
    return x


def _tails(squares: np.ndarray) -> np.ndarray:
    """The last coefficients along each axis."""
    found = []
    for axis in range(squares.ndim - 1):
        last = np.abs(np.moveaxis(squares, 1 + axis, 1)[:, -TAIL:])
        found.append(np.sum(last, axis=tuple(range(1, squares.ndim))))
    return np.stack(found, axis=1)
