"""The points at which a residual is looked at: those of the norms, with quadrature where the domain
has a mesh and a sample where it has none, pilot points, which serve to choose parameters, and
layers that the points of the norms do not see."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.reason import NoBoundError, Reason, Why
from cordes.certificates.residual.cells import (
    CORNER_LEVELS,
    CellMesh,
)
from cordes.certificates.residual.lines import unit_lines
from cordes.certificates.residual.norms import Measure, Quadrature, Sample
from cordes.certificates.residual.refined import adaptive_nodes
from cordes.domains.cylinder import is_box
from cordes.domains.domain import AbstractDomain
from cordes.errors import DomainError
from cordes.formulas.resolution import Boxes, resolved_boxes
from cordes.problems.features import features_of
from cordes.problems.problem import AbstractProblem
from cordes.runtime.memory import require_memory
from cordes.runtime.plain import show

# Points after which refinement ends, by dimension; most answers need a quarter of them.
BUDGETS = {1: 20_000, 2: 120_000, 3: 200_000}
SAMPLE_POINTS = 1 << 15
# Numbers in the matrices of all points of a sample, and the least number of its points: in many
# dimensions fewer points are used.
SAMPLE_NUMBERS, LEAST_SAMPLE = 1 << 25, 512
PILOT_SEED, PILOT_POINTS = 5_550_001, 512
# Matrices at all points that are held at once.
COPIES = 5.0
LAYER_SEED, LAYER_POINTS, DIRECTIONS = 5_550_003, 64, 8
# How close is looked, in half sizes of the domain. Closer, coordinates themselves are rounded.
SHARES = 10.0 ** -np.arange(3.0, 13.0)
TOO_LONG = 2.0  # Cells so many times too long for features of a function do not follow them.


class Sampling(NamedTuple):
    """Independent points, for domains without a mesh. `norms` of them hold together with the
    `confidence`; `proved` asks for the sample in any dimension, and for limits that are proved."""

    seed: int
    norms: int
    confidence: float
    points: int = SAMPLE_POINTS
    proved: bool = False

    def with_matrices(self, dimension: int) -> "Sampling":
        """Fewer points where each of them has large matrices; refused where so few would not fit
        into memory."""
        most = int(np.clip(SAMPLE_NUMBERS // dimension**2, LEAST_SAMPLE, SAMPLE_POINTS))
        require_memory(
            8.0 * COPIES * (most + PILOT_POINTS) * dimension**2,
            f"A certificate in {dimension} dimensions, with matrices at {most} points,",
            "it needs a larger machine.",
        )
        return self._replace(points=most)


class TooFineError(Exception):
    """A function that somebody brings has features on a scale that cells cannot follow."""

    def __init__(self, features: Boxes):
        smallest = int(np.argmin(np.min(features.upper - features.lower, axis=1)))
        box = features.lower[smallest], features.upper[smallest]
        self.point, self.size = (box[0] + box[1]) / 2, float(np.min(box[1] - box[0]))
        super().__init__(
            f"the answer or the data have features of size {self.size:.2g} near x = "
            f"{show(self.point)} and in many other places: more than the points of the norms can "
            "follow, a ridge or a layer lies between them"
        )


class Watched(NamedTuple):
    """What is looked at: `evaluate` at points gives a tree of arrays, `densities` of it what the
    cells are refined for; `formulas` are functions of one point whose small features the cells must
    not miss; `exact` asks whether a residual that is zero at all points is zero between them."""

    evaluate: Callable[[np.ndarray], Any]
    densities: Callable[[Any], np.ndarray]
    formulas: tuple[Callable[..., Any], ...] = ()
    exact: Callable[[], bool] = lambda: False
    # Boxes on whose scale an answer is made.
    scales: tuple[np.ndarray, np.ndarray] | None = None


class MeasuredLayer(NamedTuple):
    """A residual `size` at the point `x` that stands for more than the whole norm; the corner or
    singular point that it surrounds, None along a side."""

    size: float
    x: np.ndarray
    corner: np.ndarray | None


def measured(
    problem: AbstractProblem,
    watched: Watched,
    sampling: Sampling,
    singular: np.ndarray | None = None,
    corners: Sequence[np.ndarray] = (),
) -> tuple[Measure, Any]:
    """The points of the norms and what `evaluate` gives there: quadrature in up to three
    dimensions, with small cells at the singular points and, from the start, around `corners`; else
    a sample. A residual that is zero at all points, without any rounding, is refused unless it is
    known to be zero between them too."""
    measure, evaluated = _measured(problem, watched, sampling, singular, corners)
    if np.all(watched.densities(evaluated)[:, 0] == 0) and not watched.exact():
        raise NoBoundError(
            Why.unseen,
            f"the residual is zero at all {len(measure.points):,} points of the norms, which is no "
            "proof that it is zero between them: f may be other than zero there",
        )
    return measure, evaluated


def _measured(
    problem: AbstractProblem,
    watched: Watched,
    sampling: Sampling,
    singular: np.ndarray | None,
    corners: Sequence[np.ndarray],
) -> tuple[Measure, Any]:
    domain = problem.domain
    mesh = None if sampling.proved else _mesh(problem, singular, corners)
    if mesh is not None:
        features = resolved_boxes(watched.formulas, domain).features()
        if mesh.follow(features.lower, features.upper) > TOO_LONG:
            raise TooFineError(features)
        if watched.scales is not None:
            mesh.follow(*watched.scales)
        mesh.follow(*features_of(problem)[:2])  # As far as cells reach: a pole has every scale.
        nodes, evaluated = adaptive_nodes(mesh, *watched[:2], BUDGETS[domain.dimension])
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
    if is_box(problem.domain):
        mesh.cut(unit_lines(problem))
    for corner in corners:
        mesh.grade(corner, CORNER_LEVELS)
    return mesh


def measured_closely(
    problem: AbstractProblem,
    watched: Watched,
    sampling: Sampling,
    singular: np.ndarray,
    limits: Callable[[Any], tuple[np.ndarray, np.ndarray]],
) -> tuple[Measure, Any, list[MeasuredLayer]]:
    """`measured`, and once more with small cells at the corners and singular points around which it
    sees too little; the layers that stay unseen. `limits` of the residual, from below and from
    above, come from what is evaluated."""

    def looked_at(measure: Measure, evaluated: Any) -> tuple[Measure, Any, list[MeasuredLayer]]:
        upper, layers = limits(evaluated)[1], []
        if np.all(np.isfinite(upper)):
            norm = measure.norm(upper).upper
            layers = unseen_layers(problem.domain, singular, least, norm)
        return measure, evaluated, layers

    def least(x: np.ndarray) -> np.ndarray:
        return limits(watched.evaluate(x))[0]

    how = (problem, watched, sampling, singular)
    if sampling.proved:
        # What the user vouches for is no pole.
        return *measured(*how), []
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
    edges = [boundary] if domain.vertices is None else [boundary, domain.vertices]
    return np.concatenate([interior, *(moved_inside(domain, edge, 1e-9) for edge in edges)])


def moved_inside(domain: AbstractDomain, boundary: np.ndarray, share: float) -> np.ndarray:
    """Points of the boundary moved by a share of the way to the center; of a domain that is not
    convex, by that share of its size in the first of a few directions that leads inside, and left
    out where none does."""
    if domain.convex:
        center = np.asarray(domain.center)
        return center + (1 - share) * (boundary - center)
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS + 0.1
    size = float(np.max(np.ptp(domain.bounding_box, axis=0)))
    steps = share * size * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    moved = boundary[:, None] + steps
    inside = domain.contains(moved)
    return moved[np.arange(len(boundary)), np.argmax(inside, axis=1)][np.any(inside, axis=1)]


def unseen_layers(
    domain: AbstractDomain,
    singular: np.ndarray,
    least: Callable[[np.ndarray], np.ndarray],
    norm: float,
) -> list[MeasuredLayer]:
    """Where the residual is so large next to the boundary, a corner or a singular point that what
    lies between holds more than the whole norm: a pole along a side, or a peak at a corner that
    begins where the cells end. Both rules agree there on a number that is not the norm. An answer
    with singular functions can be accurate to a distance of 10⁻⁵ from a corner and wrong by its
    whole size closer to it, where D²u grows without bound and another control becomes the best.

    `least` bounds the residual from below, `norm` is its L² norm from above. A residual that grows
    towards a point is at least as large in the box between; along a side, the mean square over
    points of the boundary is that of the layer. So an integrable one is not refused, however steep
    it is.
    """
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    corners = [] if domain.vertices is None else list(domain.vertices)
    far = [all(np.linalg.norm(x - corner) > 1e-9 * size for corner in corners) for x in singular]
    found = []
    for corner in (*corners, *singular[far]):
        x, share = _around(domain, corner, size / 2)
        worst = _worst(x, domain.volume * (share / 2) ** domain.dimension, least, norm)
        found += [worst._replace(corner=corner)] if worst is not None else []
    return found + _along_the_boundary(domain, least, norm)


def _around(
    domain: AbstractDomain, corner: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Points inside of the domain at each share of its size from a point, in several directions,
    and these shares."""
    # Never straight inwards: interfaces like to run there, and on an interface itself the residual
    # is anything.
    noise = np.random.default_rng(LAYER_SEED).standard_normal((2, DIRECTIONS, domain.dimension))
    inwards = np.asarray(domain.center) - corner
    directions = np.concatenate(
        [noise[0], inwards / max(float(np.linalg.norm(inwards)), 1e-9 * size) + 0.3 * noise[1]]
    )
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    x = (corner + size * SHARES[:, None, None] * directions).reshape(-1, domain.dimension)
    share, inside = np.repeat(SHARES, len(directions)), domain.contains(x)
    return x[inside], share[inside]


def _worst(x: np.ndarray, volume: np.ndarray, least: Callable, norm: float) -> MeasuredLayer | None:
    if not len(x):
        return None
    size = np.nan_to_num(least(x), nan=np.inf)
    layer = size * np.sqrt(volume)
    k = int(np.argmax(layer))
    return MeasuredLayer(float(size[k]), x[k], None) if layer[k] > norm else None


def _along_the_boundary(
    domain: AbstractDomain, least: Callable, norm: float
) -> list[MeasuredLayer]:
    boundary, _ = domain.boundary_points(LAYER_POINTS, LAYER_SEED)
    for share in SHARES:
        x = moved_inside(domain, boundary, share)
        x = x[domain.contains(x)]
        if not len(x):
            continue
        size = np.nan_to_num(least(x), nan=np.inf)
        with np.errstate(over="ignore"):
            layer = np.sqrt(domain.volume * share / 2 * np.mean(size**2))
        if layer > norm:
            k = int(np.argmax(size))
            return [MeasuredLayer(float(size[k]), x[k], None)]
    return []


def refusal_of(layers: Sequence[MeasuredLayer]) -> Reason | None:
    """Why there is no bound."""
    if not layers:
        return None
    size, x, _ = max(layers, key=lambda layer: layer.size)
    sentence = "the residual has a pole, or a layer between the points of the norms: it is"
    sentence += f" {size:.3g} at x = {show(x)}; f must be square integrable"
    return Reason(Why.unseen, sentence, {"size": size, "point": x})
