"""Where the data of a problem have features that points may miss: solvers put points there, and
certificates cells."""

import weakref
from collections.abc import Callable, Sequence

import numpy as np

from cordes.formulas.resolution import Boxes, resolved_boxes
from cordes.problems.problem import AbstractProblem

# Beyond three dimensions boxes are too many.
LARGEST_DIMENSION = 3
_KNOWN: weakref.WeakKeyDictionary[AbstractProblem, Boxes] = weakref.WeakKeyDictionary()


def features_of(problem: AbstractProblem, formulas: Sequence[Callable] = ()) -> Boxes:
    """Small boxes in which the data of a problem, and other formulas beside them, have features of
    about their size; none where everything is resolved by a coarse grid."""
    d = problem.domain.dimension
    if d > LARGEST_DIMENSION:
        return Boxes(*np.zeros((2, 0, d)), *np.zeros((2, 0), bool))
    if problem not in _KNOWN:
        data = list(problem.data().values())
        _KNOWN[problem] = resolved_boxes(data, problem.domain).features()
    if not formulas:
        return _KNOWN[problem]
    more = resolved_boxes(formulas, problem.domain).features()
    return Boxes(*map(np.concatenate, zip(_KNOWN[problem], more, strict=True)))
