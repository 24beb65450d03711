"""Whether the residual of an answer has a pole at a kink of the boundary values."""

import numpy as np

from cordes.solutions.solution import Solution

# Distances from a kink, in units of the domain, at which the residual is compared, and its rounding
# relative to A:D²u.
POLE_SHARES, POLE_ROUNDING = (1e-5, 1e-9), 1e-13


def pole_at_kinks(solution: Solution) -> np.ndarray | None:
    """A kink of g at which the residual grows like 1/r, which is not square integrable, and which
    no points see: the part of the lift that has the kink has D²u ~ 1/r, and solves the equation at
    the kink only if the best of all controls is known there. Between two distances r times the
    residual must fall, beyond rounding."""
    problem = solution.problem
    lower, upper = problem.domain.bounding_box
    size, angles = float(np.max(upper - lower)), np.linspace(0, np.pi, 34)[1:-1]
    for kink in problem.boundary_shape.kinks:
        t = kink.tangent
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ np.array([t, [-t[1], t[0]]])
        sizes = []
        for share in POLE_SHARES:
            x = kink.location + share * size * circle
            x = x[problem.domain.contains(x)]
            scale = np.max(np.abs(problem.family(x).A)) * np.max(np.abs(solution.jet(x).hessian))
            found = share * np.max(np.abs(solution.residual_at(x)))
            sizes.append(max(float(found), POLE_ROUNDING * share * float(scale)))
        if sizes[1] > 0.5 * sizes[0] and sizes[1] > 2 * POLE_ROUNDING * share * float(scale):
            return kink.location
    return None
