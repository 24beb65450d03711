"""Lines along the axes at which data may change their formula: cells end there."""

import jax
import jax.numpy as jnp
import numpy as np

from cordes.domains.cylinder import is_box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.lookups.lines import grid_lines
from cordes.problems.problem import AbstractProblem

Array = np.ndarray


def lines_of(problem: AbstractProblem) -> list[Array]:
    """For each axis of a box the coordinates of straight interfaces along the axes and of lines of
    tables; none of other domains."""
    domain, found = problem.domain, [[] for _ in range(problem.domain.dimension)]
    if is_box(domain):
        lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
        lines = grid_lines(list(problem.data().values()), lower, upper)
        found = [each.tolist() for each in lines]
    for phi in problem.interfaces if is_box(domain) else ():
        line = straight(phi, domain)
        if line is not None:
            found[line[0]].append(line[1])
    return [np.array(each) for each in found]


def straight(phi: object, domain: AbstractDomain) -> tuple[int, float] | None:
    """The axis and the place of an interface that is affine in one coordinate alone."""
    points = domain.interior_points(3, 0)
    jet = jax.vmap(jax.value_and_grad(lambda x: jnp.asarray(phi(x), float)))  # pyright: ignore
    values, slopes = (np.asarray(each) for each in jet(points))
    axes = np.flatnonzero(np.any(slopes != 0, axis=0))
    if len(axes) != 1 or np.ptp(slopes[:, axes[0]]) != 0:
        return None
    place = points[:, axes[0]] - values / slopes[:, axes[0]]
    return int(axes[0]), float(np.round(np.mean(place), 14))
