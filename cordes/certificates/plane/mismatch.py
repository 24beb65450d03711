"""How far an answer is from g on the boundary, as points see it: panels along each side, which are
halved until a polynomial through some of their points predicts the others."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.domains.plane.arcs import Arc
from cordes.domains.plane.region import Region
from cordes.domains.plane.sides import SidePoints

# Nodes of the polynomial, and points at which it is compared.
NODES, COMPARED = 9, 16
# Panels of each side at the start, and halvings towards corners.
PANELS, CLOSEST = 8, 44
# A panel is resolved when it is predicted to this share of the largest difference; how often panels
# are halved.
RESOLVED, ROUNDS = 0.1, 12
Difference = Callable[[SidePoints], tuple[np.ndarray, np.ndarray]]


class Mismatch(NamedTuple):
    """A bound of |u_θ − g|, rounding included, and whether all panels are resolved."""

    bound: float
    resolved: bool
    points: int


def _chebyshev(count: int) -> np.ndarray:
    return (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) / 2


def _prediction() -> np.ndarray:
    """From values at the nodes to those of their polynomial at the other points."""
    nodes, others = _chebyshev(NODES), np.linspace(0, 1, COMPARED)
    powers = np.arange(NODES)

    def table(s: np.ndarray) -> np.ndarray:
        return np.cos(powers * np.arccos(np.clip(2 * s[:, None] - 1, -1, 1)))

    return table(others) @ np.linalg.inv(table(nodes))


PREDICTION = _prediction()


def largest_mismatch(domain: Region, difference: Difference, flux: bool = False) -> Mismatch:
    """`difference` gives u_θ − g at points of the boundary, and a bound of the rounding in it: on
    the sides on which u is given, or on those with a flux."""
    arcs, sharp = domain.arcs, {tuple(corner.point.tolist()) for corner in domain.corners}
    own = [(k, arc) for k, arc in enumerate(arcs) if (arc.kappa is not None) == flux]
    if not own:
        return Mismatch(0.0, True, 0)
    panels = np.concatenate([_panels(k, arc, sharp) for k, arc in own])
    largest, kept, doubt, count = 0.0, 0.0, np.zeros(0), 0
    for _ in range(ROUNDS):
        shares = np.concatenate([_chebyshev(NODES), np.linspace(0, 1, COMPARED)])
        s = panels[:, 1:2] + shares * (panels[:, 2:] - panels[:, 1:2])
        numbers = panels[:, 0].astype(int)
        points = SidePoints.on([arcs[k] for k in numbers], list(s))
        points = points._replace(number=numbers[points.number])
        values, rounding = (part.reshape(s.shape) for part in difference(points))
        count += s.size
        size = np.max(np.abs(values) + rounding, axis=1)
        error = np.max(np.abs(values[:, NODES:] - values[:, :NODES] @ PREDICTION.T), axis=1)
        noise = 4 * np.max(rounding, axis=1)
        # Between the points the polynomial is as far off as at those where it is compared.
        doubt = size + 2 * np.where(error > noise, error, 0.0)
        largest = max(largest, float(np.max(size)))
        open_ = (error > RESOLVED * largest) & (error > noise)
        kept = max(kept, float(np.max(doubt[~open_], initial=0.0)))
        if not np.any(open_):
            return Mismatch(max(kept, largest), True, count)
        panels = _halved(panels[open_])
    return Mismatch(max(kept, largest, float(np.max(doubt))), False, count)


def _panels(number: int, arc: Arc, sharp: set) -> np.ndarray:
    """Rows of a side's number, and the ends of a panel; small ones next to corners. A side with a
    flux has no normal at its ends."""
    ends = np.linspace(0, 1, PANELS + 1)
    near = 2.0 ** -np.arange(4.0, CLOSEST, 2)
    if arc.start in sharp:
        ends = np.union1d(ends, near)
        ends = ends if arc.kappa is None else ends[1:]
    if arc.end in sharp:
        ends = np.union1d(ends, 1 - near)
        ends = ends if arc.kappa is None else ends[:-1]
    return np.column_stack([np.full(len(ends) - 1, number), ends[:-1], ends[1:]])


def _halved(panels: np.ndarray) -> np.ndarray:
    middle = (panels[:, 1] + panels[:, 2]) / 2
    first, second = panels.copy(), panels.copy()
    first[:, 2] = second[:, 1] = middle
    return np.concatenate([first, second])
