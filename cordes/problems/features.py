"""Where the data of a problem have features that points may miss: solvers put points there, and
certificates cells."""

import collections

import numpy as np

from cordes.formulas.resolution import Boxes, resolved_boxes
from cordes.problems.problem import AbstractProblem

# Beyond three dimensions boxes are too many.
LARGEST_DIMENSION = 3
# Boxes of the features of a problem with interfaces are at least this share of its domain.
SMALLEST_BESIDE = 260
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
    found = resolved_boxes(list(problem.data().values()), problem.domain).features()
    if problem.interfaces:
        # Where an interface touches the side of a box, boxes see it there and back on every scale;
        # cells are cut along it anyway.
        low, high = (np.asarray(corner, float) for corner in problem.domain.bounding_box)
        large = np.all(found.upper - found.lower >= (high - low) / SMALLEST_BESIDE, axis=1)
        found = Boxes(*(part[large] for part in found))
    _RECENT.append((problem, found))
    return found
