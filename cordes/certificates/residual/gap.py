"""How far an answer is from what is given on the boundary, where that is more than values."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate
from cordes.domains.walls import walled_part
from cordes.problems.coefficients import at_points
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

POINTS, INSIDE, SEED = 2000, 500, 5_550_003
# The boundary values are seen at points only: what they add to bounds counts twice.
SAFETY = 2.0
# Largest difference that rounding explains, relative to the size of the answer.
MISMATCH = 1e-12


class Gap(NamedTuple):
    """How far an answer is from its formula and from g. `size` is the largest difference to g on
    the boundary with all rounding, `rounding` the largest rounding of a value, inside and on the
    boundary. `exact` says that the difference is no more than rounding: by construction, or a few
    units in the last place; `proved` that it was not only seen at points; `reason` what is wrong if
    it is much more."""

    size: float
    rounding: float
    exact: bool
    proved: bool
    reason: Reason | None

    @property
    def addition(self) -> float:
        """What the bounds of |u - u_θ| must grow by where the maximum principle holds: the boundary
        values are seen at points only and count twice."""
        return SAFETY * self.size + self.rounding


def conditions_gap(problem: AbstractProblem, candidate: AbstractCandidate, made: bool) -> Gap:
    """The conditions on the faces of a box, which an answer of ours (`made`) fulfils by
    construction, up to rounding and to data that do not quite fit together at edges; of any other
    function it is seen at points."""
    domain = problem.domain
    points, normals = domain.boundary_points(POINTS, SEED)
    difference, rounding, size = _differences(problem, candidate, points, normals)
    _, inside_rounding = candidate.value(domain.interior_points(INSIDE, SEED))
    worst = int(np.argmax(np.where(np.isfinite(difference), difference, np.inf)))
    reason = None
    if not difference[worst] <= MISMATCH * size:
        reason = Reason(
            Why.boundary_values,
            f"the conditions on the boundary are not fulfilled exactly: near x = "
            f"{show(points[worst])} the answer misses them by {difference[worst]:.3g}; the bounds "
            "hold for answers that fulfil them on the whole boundary.",
            {"difference": float(difference[worst]), "point": points[worst]},
        )
    # A difference of the normal derivative weighs at most as a width of the box.
    lower, upper = domain.bounding_box
    weight = max(1.0, float(np.max(upper - lower)))
    largest = max(float(np.max(rounding)), float(np.max(inside_rounding)))
    return Gap(weight * float(np.max(difference)), largest, reason is None, made, reason)


def _differences(
    problem: AbstractProblem,
    candidate: AbstractCandidate,
    points: np.ndarray,
    normals: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """What an answer misses at points of the faces, with the rounding of its values there, and the
    size of all that is compared."""
    n, d = points.shape
    known, slope, value, wanted = _given(problem, points, normals)
    none = np.zeros((n, d, d))
    applied, rounding = candidate.applied(points, none, slope[:, None] * normals, -value)
    difference = np.where(known, np.abs(applied - wanted), 0.0)
    values = candidate.value(points)[0]
    scale = max(*(float(np.max(np.abs(each))) for each in (values, applied, wanted)), 1e-300)
    around = points[~known]
    if len(around):
        other, across = around.copy(), normals[~known]
        axis, rows = np.argmax(np.abs(across), axis=1), np.arange(len(around))
        other[rows, axis] = np.sum(problem.domain.bounding_box, axis=0)[axis] - around[rows, axis]
        none = np.zeros((len(around), d, d))
        for b, c in ((0.0 * across, -1.0), (across, 0.0)):
            here, there = (
                candidate.applied(x, none, b, np.full(len(x), c))[0] for x in (around, other)
            )
            scale = max(scale, float(np.max(np.abs(here))))
            difference[~known] += np.abs(here - there)
    return difference, rounding, scale


def _given(
    problem: AbstractProblem, points: np.ndarray, normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Whether anything is given at points of the boundary, the weights of ∂ₙu and u in it, and what
    it is; in time also at the start."""
    domain = walled_part(problem.domain)
    assert domain is not None
    if problem.clock is None:
        wanted = problem.g.on(points, normals)  # pyright: ignore[reportFunctionMemberAccess]
        return *domain.condition_at(normals), wanted
    start, lateral = normals[:, -1] < 0, problem.values.lateral
    known, slope, value = domain.condition_at(normals[:, :-1])
    known, value = known | start, np.where(start, 1.0, value)
    wanted = np.zeros(len(points))
    for (axis, end), function in lateral.functions.items():  # pyright: ignore
        here = normals[:, axis] == (1.0 if end else -1.0)
        wanted[here] = np.asarray(jax.vmap(function)(points[here, :-1], points[here, -1]))
    initial = at_points(lambda x: jnp.asarray(problem.values.initial(x), float))
    wanted[start] = np.asarray(initial(points[start, :-1]))
    return known, slope, value, wanted
