"""Norms of the residual of a linear equation from which nothing can hide."""

from collections.abc import Sequence

import numpy as np

from cordes.ansatz.cells.network import CellPolynomials
from cordes.certificates.enclosed.abstract import Weight
from cordes.certificates.enclosed.blended.measure import BlendedMeasure, alone, blended_measure
from cordes.certificates.enclosed.integrand import Integrand
from cordes.certificates.enclosed.measure import EnclosedMeasure
from cordes.certificates.enclosed.refinement import CellBudget, Refinement, refined
from cordes.certificates.residual.candidate import AbstractCandidate, AnswerCandidate
from cordes.problems.kinks.lines import lines_of
from cordes.problems.linear import Linear


@np.errstate(all="ignore")
def enclosed_measure(
    problem: Linear,
    candidate: AbstractCandidate,
    weights: Sequence[Weight],
    limits: CellBudget | None = None,
) -> EnclosedMeasure | BlendedMeasure:
    """The cells of a domain, refined until all but a share of the squared norms of weight · r is
    proved. An operation without enclosure raises `UnsupportedOperation`, a domain without charts
    `DomainError`."""
    limits = limits or CellBudget()
    cells = _cells_of(candidate)
    if cells is not None:
        assert isinstance(candidate, AnswerCandidate)
        candidate = alone(candidate)
    integrand = Integrand(problem, candidate)
    work = Refinement(integrand, weights, lines_of(problem), limits)
    nodes, smooth, rough = refined(work)
    found = EnclosedMeasure(nodes.x, nodes.weights, nodes.evaluated, smooth, rough)
    return found if cells is None else blended_measure(integrand, found, cells)


def _cells_of(candidate: AbstractCandidate) -> CellPolynomials | None:
    """Cells that are blended."""
    if not isinstance(candidate, AnswerCandidate):
        return None
    network = candidate.solution.network
    return network if isinstance(network, CellPolynomials) and not network.is_alone else None
