"""What a certificate in time is expected to say of an answer whose residual is even."""

import math

import numpy as np

from cordes.certificates.parabolic.choice import PilotInTime
from cordes.certificates.parabolic.operators import OperatorsInTime, SeenInTime
from cordes.certificates.theorems.energy import Local
from cordes.domains.constants import first_eigenvalue
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem

SAMPLES, SEED = 128, 5_550_007
# Controls of which the equation is looked at.
CONTROLS = 16


def promised_rms(problem: AbstractProblem, multiplier: bool) -> float:
    """The bound of the root mean square error for a scaled residual of size one everywhere, seen
    at sampled points; comparison with a function of time where TP does not hold."""
    domain, space = problem.domain, problem.space
    points = domain.interior_points(SAMPLES, SEED, "sobol")
    operators = OperatorsInTime(problem)
    chosen = np.unique(np.linspace(0, operators.count - 1, CONTROLS).round().astype(int))
    parts = [operators.of_control(points, k) for k in chosen]
    unscaled = np.stack(
        [
            1 / cordes_multiplier(problem.measured_matrix(part.A))
            if multiplier
            else np.ones(SAMPLES)
            for part in parts
        ],
        axis=1,
    )
    in_space = [operators.in_space(part) for part in parts]
    local = Local(*(np.stack(each, axis=1) for each in zip(*in_space, strict=True)))
    length = domain.length  # pyright: ignore[reportAttributeAccessIssue]
    seen = SeenInTime(local, unscaled, np.zeros_like(unscaled))
    times = points[:, -1] - domain.start  # pyright: ignore[reportAttributeAccessIssue]
    identity = np.eye(space.dimension)
    eigenvalue = first_eigenvalue(space, identity)
    trials = PilotInTime(seen, times, identity, eigenvalue, length, True).trials()
    best = min((trial.promise for trial in trials), default=math.inf)
    if math.isfinite(best):
        return best
    growth = math.exp(max(-float(np.min(local.c)), 0.0) * length)
    return length * growth * float(np.max(unscaled))
