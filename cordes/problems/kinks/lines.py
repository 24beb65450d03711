"""Lines along the axes at which data may change their formula: cells end there."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from cordes.domains.cylinder import is_box
from cordes.domains.domain import AbstractDomain
from cordes.formulas.lookups.lines import grid_lines
from cordes.problems.problem import AbstractProblem

Array = np.ndarray
# Nodes of a line between which an interface is looked for.
LATTICE = 513


def lines_of(problem: AbstractProblem) -> list[Array]:
    """For each axis of a box the coordinates of straight interfaces along the axes and of lines of
    tables; none of other domains."""
    domain, found = problem.domain, [[] for _ in range(problem.domain.dimension)]
    if is_box(domain):
        lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
        lines = grid_lines(list(problem.data().values()), lower, upper)
        found = [each.tolist() for each in lines]
    for phi in problem.interfaces if is_box(domain) else ():
        if domain.dimension == 1:
            found[0] += _places(phi, domain)
        elif (line := straight(phi, domain)) is not None:
            found[line[0]].append(line[1])
    return [np.array(each) for each in found]


def _places(phi: object, domain: AbstractDomain) -> list[float]:
    """Where an interface on a line changes its sign, which may be in several places."""
    values: Any = jax.vmap(lambda x: jnp.asarray(phi(x[None]), float))  # pyright: ignore
    lower, upper = np.ravel(np.asarray(domain.bounding_box, float))
    # No sensible place is a node of this lattice.
    nodes = np.linspace(lower, upper, LATTICE) + 1e-7 * (upper - lower) / np.pi
    signs = np.sign(np.asarray(values(nodes)))
    changes = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    ends = [(nodes[k], nodes[k + 1]) for k in changes]
    found: list[Any] = [
        brentq(lambda y: float(values(np.array([y]))[0]), *each, xtol=1e-15) for each in ends
    ]
    return [float(np.round(each, 14)) for each in found]


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
