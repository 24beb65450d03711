"""Suprema over points say nothing of what is narrower than the points are dense: where a formula of
the data has a feature like that, there is no bound."""

from collections.abc import Callable, Sequence

import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.domains.domain import AbstractDomain
from cordes.formulas.resolution import Boxes, resolved_boxes
from cordes.problems.coefficients import at_points
from cordes.problems.obstacle import Obstacle
from cordes.runtime.plain import show

# The share of the domain's width below which a feature is too narrow, by dimension: a few times
# the distance of the points.
NARROW = {1: 1 / 2000, 2: 1 / 100, 3: 1 / 32}
# Points along each side of a box; what changes so many times its size across the domain is steep.
LATTICE, STEEP = 5, 50.0


def too_narrow(problem: Obstacle, more: Sequence[Callable]) -> Reason | None:
    """Of the equation, the obstacles and `more` functions of one point, and of the initial
    values."""
    obstacles = [each for each in (problem.lower, problem.upper) if each is not None]
    functions = [*problem.data().values(), *obstacles, *more]
    found = _narrow_in(problem.domain, functions)
    if found is None and problem.clock is not None:
        found = _narrow_in(problem.space, [problem.values.initial])
    return found


def _steepness(domain: AbstractDomain, function: Callable, boxes: Boxes) -> np.ndarray:
    """By how much the values change in each box, as a share of the largest one: little where a kink
    touches a corner, which asks for small boxes too."""
    d, count = domain.dimension, len(boxes.lower)
    if not count:
        return np.zeros(0)
    at, nodes = at_points(function), np.linspace(0, 1, LATTICE)
    share = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    x = boxes.lower[:, None] + (boxes.upper - boxes.lower)[:, None] * share
    values = np.asarray(at(x.reshape(-1, d)), float).reshape(count, len(share), -1)
    usual = np.max(np.abs(np.asarray(at(domain.interior_points(1000, seed=5)), float)))
    spread = np.max(np.ptp(values, axis=1), axis=1)
    return spread / max(float(np.max(np.abs(values))), float(usual), 1e-300)


def _narrow_in(domain: AbstractDomain, functions: Sequence[Callable]) -> Reason | None:
    narrow = NARROW.get(domain.dimension)
    if narrow is None:
        return None
    lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
    for function in functions:
        boxes = resolved_boxes([function], domain).features()
        shares = np.min((boxes.upper - boxes.lower) / (upper - lower), axis=1)
        boxes = Boxes(*(part[shares < narrow] for part in boxes))
        steep = _steepness(domain, function, boxes) / shares[shares < narrow]
        steep = np.where(boxes.resolved, steep, np.inf)
        if np.max(steep, initial=0.0) > STEEP:
            k = int(np.argmax(steep))
            place = (boxes.lower[k] + boxes.upper[k]) / 2
            sentence = f"the data have a feature near {show(place)} that is narrower than"
            sentence += f" {narrow:.2g} of the domain, and suprema over points may miss it"
            return Reason(Why.unseen, sentence, {"point": place})
    return None
