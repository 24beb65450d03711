"""The points at which a residual is looked at: those of the norms, with quadrature where the domain
has a mesh and a sample where it has none, and pilot points, which serve to choose parameters."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.residual.cells import CORNER_LEVELS, CellMesh
from cordes.certificates.residual.layers import Layer, unseen_layers
from cordes.certificates.residual.norms import Measure, Quadrature, Sample
from cordes.certificates.residual.refinement import adaptive_nodes
from cordes.domains.domain import AbstractDomain
from cordes.errors import DomainError
from cordes.problems.problem import AbstractProblem

# Points after which refinement ends, by dimension; most answers need a quarter of them.
BUDGETS = {1: 20_000, 2: 120_000, 3: 200_000}
SAMPLE_POINTS = 1 << 15
# Numbers in the matrices of all points of a sample, and the least number of its points: in many
# dimensions fewer points are used.
SAMPLE_NUMBERS, LEAST_SAMPLE = 1 << 25, 2048
PILOT_SEED, PILOT_POINTS = 5_550_001, 512


class Sampling(NamedTuple):
    """Independent points, for domains without a mesh. `norms` of them hold together with the
    `confidence`; `proved` asks for the sample in any dimension, and for limits that are proved."""

    seed: int
    norms: int
    confidence: float
    points: int = SAMPLE_POINTS
    proved: bool = False

    def with_matrices(self, dimension: int) -> "Sampling":
        """Fewer points where each of them has large matrices."""
        most = int(np.clip(SAMPLE_NUMBERS // dimension**2, LEAST_SAMPLE, SAMPLE_POINTS))
        return self._replace(points=most)


class Watched(NamedTuple):
    """What is looked at: `evaluate` at points gives a tree of arrays, `densities` of it what the
    cells are refined for."""

    evaluate: Callable[[np.ndarray], Any]
    densities: Callable[[Any], np.ndarray]


def measured(
    problem: AbstractProblem,
    watched: Watched,
    sampling: Sampling,
    singular: np.ndarray | None = None,
    corners: Sequence[np.ndarray] = (),
) -> tuple[Measure, Any]:
    """The points of the norms and what `evaluate` gives there: quadrature in up to three
    dimensions, with small cells at the singular points and, from the start, around `corners`; else
    a sample."""
    domain = problem.domain
    mesh = None if sampling.proved else _mesh(problem, singular, corners)
    if mesh is not None:
        nodes, evaluated = adaptive_nodes(mesh, *watched, BUDGETS[domain.dimension])
        return Quadrature(nodes), evaluated
    points = domain.interior_points(sampling.points, sampling.seed)
    sample = Sample(points, domain.volume, sampling.confidence, sampling.norms, sampling.proved)
    return sample, watched.evaluate(points)


def _mesh(
    problem: AbstractProblem, singular: np.ndarray | None, corners: Sequence[np.ndarray]
) -> CellMesh | None:
    if problem.domain.dimension not in BUDGETS:
        return None
    try:
        mesh = CellMesh(problem.domain, problem.interfaces, singular)
    except DomainError:
        return None
    for corner in corners:
        mesh.grade(corner, CORNER_LEVELS)
    return mesh


def measured_closely(
    problem: AbstractProblem,
    watched: Watched,
    sampling: Sampling,
    singular: np.ndarray,
    limits: Callable[[Any], tuple[np.ndarray, np.ndarray]],
) -> tuple[Measure, Any, list[Layer]]:
    """`measured`, and once more with small cells at the corners and singular points around which it
    sees too little; the layers that stay unseen. `limits` of the residual, from below and from
    above, come from what is evaluated."""

    def looked_at(measure: Measure, evaluated: Any) -> tuple[Measure, Any, list[Layer]]:
        upper = limits(evaluated)[1]
        layers = (
            unseen_layers(
                problem.domain,
                singular,
                lambda x: limits(watched.evaluate(x))[0],
                measure.norm(upper).upper,
            )
            if np.all(np.isfinite(upper))
            else []
        )
        return measure, evaluated, layers

    how = (problem, watched, sampling, singular)
    measure, evaluated, layers = looked_at(*measured(*how))
    corners = [layer.corner for layer in layers if layer.corner is not None]
    if not corners or len(corners) < len(layers) or isinstance(measure, Sample):
        return measure, evaluated, layers
    return looked_at(*measured(*how, corners=corners))


def pilot_points_of(domain: AbstractDomain) -> np.ndarray:
    """Interior points, and points a hair inside the boundary and the corners, where coefficients
    are often worst."""
    interior = domain.interior_points(PILOT_POINTS, PILOT_SEED, "sobol")
    boundary, _ = domain.boundary_points(PILOT_POINTS // 4, PILOT_SEED)
    return with_edge(domain, interior, boundary)


def with_edge(domain: AbstractDomain, interior: np.ndarray, boundary: np.ndarray) -> np.ndarray:
    """Points of the interior, and those of the boundary and the corners moved a hair inside, so
    that a coefficient need not be defined on the boundary itself."""
    center = np.asarray(domain.center)
    edges = [boundary] if domain.vertices is None else [boundary, domain.vertices]
    return np.concatenate([interior, *(center + (1 - 1e-9) * (edge - center) for edge in edges)])
