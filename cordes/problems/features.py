"""Where the data of a problem have features that points may miss: solvers put points there, and
certificates cells."""

import collections
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from cordes.formulas.resolution import Boxes, resolved_boxes
from cordes.problems.problem import AbstractProblem

# Beyond three dimensions boxes are too many.
LARGEST_DIMENSION = 3
# A feature whose boxes have so few points is as good as hidden: they reach to where it is 1e-10.
FEW = 64
# The last problems that were asked about: solver and certificate ask for the same one.
_RECENT: collections.deque[tuple[AbstractProblem, Boxes]] = collections.deque(maxlen=4)


def features_of(problem: AbstractProblem) -> Boxes:
    """Small boxes in which the data of a problem have features of about their size; none where
    everything is resolved by a coarse grid."""
    d = problem.domain.dimension
    if d > LARGEST_DIMENSION:
        return Boxes(*np.zeros((2, 0, d)), *np.zeros((2, 0), bool))
    for known, boxes in _RECENT:
        if known is problem:
            return boxes
    functions = list(problem.data().values())
    boxes = resolved_boxes(functions, problem.domain)
    found = boxes.features()
    if not np.all(boxes.resolved):
        # The search has ended early: alone, each function gets as many boxes, and to its end.
        alone = [resolved_boxes([each], problem.domain, True).features() for each in functions]
        found = Boxes(*(np.concatenate(parts) for parts in zip(found, *alone, strict=True)))
    _RECENT.append((problem, found))
    return found


def hidden_features(
    problem: AbstractProblem, points: int, seen: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners (N, d) of boxes around features that so many uniform points would
    hardly see: their own boxes have less than one point each, and with all that they touch only a
    few. Around the places `seen` there are points anyway."""
    boxes = features_of(problem)
    low, high = (np.asarray(corner, float) for corner in problem.domain.bounding_box)
    expected = points * np.prod((boxes.upper - boxes.lower) / (high - low), axis=1)
    small = expected < 1
    lower, upper, expected = boxes.lower[small], boxes.upper[small], expected[small]
    if not len(lower):
        return lower, upper
    slack = 1e-9 * (high - low)
    touching = np.ones((len(lower), len(lower)), bool)
    for one, other in zip((lower - slack).T, upper.T, strict=True):
        touching &= (one[:, None] <= other) & (one <= other[:, None])
    number = connected_components(csr_array(touching))[1]
    for place in seen:
        expected[np.all((lower - slack <= place) & (place <= upper + slack), axis=1)] = np.inf
    hidden = np.bincount(number, expected)[number] < FEW
    lower, upper = lower[hidden], upper[hidden]
    # Boxes are marked where a formula bends, around the middle of what they surround.
    return lower - (upper - lower), upper + (upper - lower)
