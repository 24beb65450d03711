"""A domain of the plane in vertical strips: between two neighbouring abscissas at which anything
happens it lies between graphs, two and two of them. This says what is inside, and gives
quadrature over exactly the domain."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cordes.domains.plane.arcs import Arc
from cordes.domains.plane.loops import Loop


class Graph(NamedTuple):
    """An arc as a function of x; `round_left` and `round_right` say that its slope is infinite
    there."""

    arc: Arc
    left: float
    right: float

    def height(self, x: np.ndarray) -> np.ndarray:
        """y at abscissas between both ends."""
        arc = self.arc
        (x0, y0), (x1, y1) = arc.start, arc.end
        if arc.v is None:
            share = (x - x0) / (x1 - x0)
            return np.where(
                np.abs(share) <= 0.5, y0 + share * (y1 - y0), y1 - (1 - share) * (y1 - y0)
            )
        amplitude = np.hypot(arc.u[0], arc.v[0])
        top = np.arctan2(arc.v[0], arc.u[0])
        opening = np.arccos(np.clip((x - arc.a[0]) / amplitude, -1, 1))
        middle = (arc.first + arc.last) / 2
        # Of t = top ± opening, the one on the arc.
        both = np.stack([top + opening, top - opening])
        both = middle + np.remainder(both - middle + np.pi, 2 * np.pi) - np.pi
        low, high = min(arc.first, arc.last), max(arc.first, arc.last)
        outside = np.maximum(low - both, both - high)
        t = np.where(outside[0] <= outside[1], both[0], both[1])
        y = arc.a[1] + np.cos(t) * arc.u[1] + np.sin(t) * arc.v[1]
        return np.where(x == x0, y0, np.where(x == x1, y1, y))

    def steep(self, right: bool) -> bool:
        """Whether the slope is infinite at an end."""
        if self.arc.v is None:
            return False
        at_end = (self.arc.end[0] == self.right) == right
        direction = self.arc.direction(np.array(1.0 if at_end else 0.0))
        return bool(abs(direction[0]) <= 1e-6 * np.linalg.norm(direction))


class Strip(NamedTuple):
    """The points between two graphs over an interval. Its own coordinates run over the unit square;
    x is a smooth function of the first with a zero slope at round ends, so that circles are smooth
    in these coordinates."""

    left: float
    right: float
    below: Graph
    above: Graph
    round: tuple[bool, bool]

    def at(self, s: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, 2) and the Jacobian."""
        share, slope = _graded(s, self.round)
        width = self.right - self.left
        x = np.where(share <= 0.5, self.left + share * width, self.right - (1 - share) * width)
        low, high = self.below.height(x), self.above.height(x)
        y = np.where(t <= 0.5, low + t * (high - low), high - (1 - t) * (high - low))
        return np.stack([x, y], axis=1), width * slope * np.maximum(high - low, 0.0)


def _graded(s: np.ndarray, round_: tuple[bool, bool]) -> tuple[np.ndarray, np.ndarray]:
    match round_:
        case (True, True):
            return np.sin(np.pi * s / 2) ** 2, np.pi / 2 * np.sin(np.pi * s)
        case (True, False):
            return s**2, 2 * s
        case (False, True):
            return s * (2 - s), 2 * (1 - s)
    return s, np.ones_like(s)


def graphs_of(loops: tuple[Loop, ...]) -> list[Graph]:
    """The arcs cut where x has an extreme; those along which x does not change are left out."""
    parts = [part for loop in loops for arc in loop for part in arc.cut(arc.turns(0))]
    found = []
    for part in parts:
        left, right = sorted((part.start[0], part.end[0]))
        if left < right:
            found.append(Graph(part, left, right))
    return found


def strips_of(graphs: list[Graph]) -> list[Strip]:
    """The domain as strips that do not overlap."""
    ends = np.unique([end for graph in graphs for end in (graph.left, graph.right)])
    size = ends[-1] - ends[0]
    found = []
    for left, right in pairwise(ends):
        if right - left <= 1e-13 * size:
            continue
        middle = np.array([(left + right) / 2])
        here = [graph for graph in graphs if graph.left < middle[0] < graph.right]
        here.sort(key=lambda graph: float(graph.height(middle)[0]))
        for below, above in zip(here[::2], here[1::2], strict=True):
            both = below, above
            steep = (
                any(graph.left == left and graph.steep(False) for graph in both),
                any(graph.right == right and graph.steep(True) for graph in both),
            )
            found.append(Strip(float(left), float(right), below, above, steep))
    return found


def inside(graphs: list[Graph], points: np.ndarray) -> np.ndarray:
    """Whether points (n, 2) lie in the domain: an odd number of graphs is below them. Ends count
    for one of two neighbours, so that vertices are no exception."""
    x, y = points.T
    odd = np.zeros(len(points), bool)
    for graph in graphs:
        over = (graph.left <= x) & (x < graph.right)
        if np.any(over):
            odd[over] ^= graph.height(x[over]) < y[over]
    return odd
