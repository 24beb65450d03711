"""Whether the values on the sides of a cylinder move as the equation moves the initial values.

Where g_t is not Lu₀ - f on a face at the start, D²u and u_t jump there from one to the other, and
smooth functions follow slowly: a layer of the width √t spreads from the face
(`cordes.ansatz.singular.layers`). Sources that do not vanish at the boundary are of this kind.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.polygon import Polygon
from cordes.jet import Jet, jet_of
from cordes.problems.problem import AbstractProblem

# Points of each face, how far inside of its ends they lie, and a mismatch that is none, relative
# to the sizes of the terms.
POINTS, INSIDE, SAME, SEED = 60, 0.02, 1e-7, 47


class BoundaryFace(NamedTuple):
    """A straight part of the boundary, n·x = offset with n pointing inwards, and points of it."""

    normal: np.ndarray
    offset: float
    points: np.ndarray


def faces_of(domain: AbstractDomain) -> list[BoundaryFace]:
    """Those of boxes and polygons; none of domains with a bent boundary."""
    generator = np.random.default_rng(SEED)
    if isinstance(domain, Box):
        return [
            _of_box(domain, axis, end, generator)
            for axis in range(domain.dimension)
            for end in (0, 1)
        ]
    if isinstance(domain, Polygon):
        share = generator.uniform(INSIDE, 1 - INSIDE, POINTS)[:, None]
        return [
            BoundaryFace(-outward, float(-outward @ start), start + share * edge)
            for start, edge, outward in zip(
                domain.vertices, domain.edges, domain.normals, strict=True
            )
        ]
    return []


def _of_box(domain: Box, axis: int, end: int, generator: np.random.Generator) -> BoundaryFace:
    share = generator.uniform(INSIDE, 1 - INSIDE, (POINTS, domain.dimension))
    points = domain.lower + share * domain.widths
    points[:, axis] = (domain.lower, domain.upper)[end][axis]
    normal = (1.0 - 2.0 * end) * np.eye(domain.dimension)[axis]
    return BoundaryFace(normal, float(points[0] @ normal), points)


def incompatible_faces(problem: AbstractProblem) -> list[BoundaryFace]:
    """The faces on which the equation does not hold at the start."""
    if problem.clock is None:
        return []
    return [face for face in faces_of(problem.space) if mismatch(problem, face) > SAME]


def mismatch(problem: AbstractProblem, face: BoundaryFace) -> float:
    """The largest residual on a face at the start, relative to the sizes of its terms; zero where
    it cannot be looked at."""
    initial, lateral, start, _ = problem.values

    def at(x: Any) -> tuple[Any, Any]:
        value, gradient, hessian = jet_of(lambda y: jnp.asarray(initial(y), float) + 0.0 * y[0])(x)
        rate = jax.grad(lambda t: jnp.asarray(lateral(x, t), float) + 0.0 * t)(jnp.asarray(start))
        d = len(x)
        whole = jnp.zeros((d + 1, d + 1)).at[:d, :d].set(hessian)
        z, jet = jnp.append(x, start), Jet(value, jnp.append(gradient, rate), whole)
        equation = problem.linearise(z, jet)
        sizes = jnp.sum(jnp.abs(equation.A * whole)) + jnp.sum(jnp.abs(equation.b * jet.gradient))
        sizes = sizes + jnp.abs(equation.c * value) + jnp.abs(equation.f)
        return equation.defect(jet), sizes

    # A hair inside, where a function may be defined on one side only.
    center = problem.space.center
    points = face.points + 1e-9 * (center - face.points)
    defect, sizes = (np.asarray(part) for part in jax.jit(jax.vmap(at))(jnp.asarray(points)))
    if not np.all(np.isfinite(defect)):
        return 0.0
    return float(np.max(np.abs(defect)) / max(float(np.max(sizes)), 1e-300))
