"""Points outside of the domain, where an answer means nothing."""

import warnings

import jax
import numpy as np

from cordes.jet import Jet
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

# A point that misses the closed domain by less than this share of its size is taken for one of its
# boundary, seen through rounding.
ROUNDING = 1e-6
# Of more points than this only so many, evenly spread, and the outermost in each direction are
# looked at: a look must cost nothing beside the values.
LOOKED_AT = 2048


class OutsideDomainWarning(UserWarning):
    """An answer was asked for its values outside of the domain, where there is no equation."""


class Kept:
    """What is done once for a solution and all that `replace` makes of it: the residual is
    compiled, and points outside of the domain, where values mean nothing, are warned about."""

    def __init__(self, problem: AbstractProblem):
        self.residual = jax.jit(lambda x, *jet: jax.vmap(problem.residual)(x, Jet(*jet)))
        self.domain = problem.domain
        self.warned = False

    def look(self, points: np.ndarray) -> None:
        """A second table of the same points needs no second warning."""
        if self.warned:
            return
        domain = self.domain
        lower, upper = domain.bounding_box
        slack = ROUNDING * float(np.max(upper - lower))
        if np.all(domain.contains(_few(points), tolerance=slack)):
            return
        outside = ~domain.contains(points, tolerance=slack)
        self.warned = True
        warnings.warn(
            f"{int(np.sum(outside))} of {len(points)} points lie outside of {domain!r}, first x = "
            f"{show(points[int(np.argmax(outside))])}: there is no equation, and no bound holds "
            "for the values there. Leave such points out (domain.contains(points) finds them), "
            "or solve on a larger domain.",
            OutsideDomainWarning,
            # Where the solution was called.
            stacklevel=4,
        )


def _few(points: np.ndarray) -> np.ndarray:
    if len(points) <= LOOKED_AT:
        return points
    spread = np.arange(0, len(points), -(-len(points) // LOOKED_AT))
    return points[np.concatenate([spread, points.argmin(axis=0), points.argmax(axis=0)])]
