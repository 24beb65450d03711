"""Where cells are cut first: at what is known to lie along the axes."""

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.cylinder import is_box
from cordes.formulas.lookups.lines import grid_lines
from cordes.problems.problem import AbstractProblem

Array = np.ndarray


def cuts_of(problem: AbstractProblem) -> list[Array]:
    """Where boxes are cut first: at straight interfaces along the axes and lines of tables."""
    domain, found = problem.domain, [[] for _ in range(problem.domain.dimension)]
    if is_box(domain):
        lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
        lines = grid_lines(list(problem.data().values()), lower, upper)
        found = [each.tolist() for each in lines]
    points = domain.interior_points(3, 0)
    for phi in problem.interfaces if is_box(domain) else ():
        jet = jax.vmap(jax.value_and_grad(lambda x, phi=phi: jnp.asarray(phi(x), float)))
        values, slopes = (np.asarray(each) for each in jet(points))
        axes = np.flatnonzero(np.any(slopes != 0, axis=0))
        if len(axes) == 1 and np.ptp(slopes[:, axes[0]]) == 0:
            place = points[:, axes[0]] - values / slopes[:, axes[0]]
            found[axes[0]].append(float(np.round(np.mean(place), 14)))
    return [np.array(each) for each in found]
