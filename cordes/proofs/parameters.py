"""The parameters of the theorem that a proof uses: found in floats, where they promise the smallest
bound, and claimed. The checker believes none of them."""

import math
from typing import Any, NamedTuple

import numpy as np

from cordes.certificates.theorem import Citation, Theorem
from cordes.certificates.theorems.energy import (
    Invariants,
    Local,
    Pilot,
    TraceSplit,
    Weighted,
    normalised,
)
from cordes.certificates.theorems.exponential import Transform, find_transform
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.domains.constants import chord_factor
from cordes.problems.problem import AbstractProblem

# The part of 1 - s that the claim gives away, so that it is seen on pieces of some size.
MARGIN = 0.004
# What must be strictly less is taken so much less.
SHY = 1 - 1e-9
EVALUATIONS = 400
# Another multiplier must promise a bound that is this share of the other, and β be no less.
WORTH, LEAST_BETA = 0.9, 0.02


class TraceWeighted(NamedTuple):
    """T2 with the multiplier d/tr A, so that β = 0 and the enclosure of Q does not depend on how
    that of g and A are joined: the weights α₂, α₁, α₀."""

    lambda_: float
    weights: tuple[float, float, float, float]
    theorem: Citation = Citation(Theorem.T2)

    def multiplier(self, at: Invariants) -> np.ndarray:
        return TraceSplit().multiplier(at)

    def defects(self, at: Invariants) -> np.ndarray:
        g, over = self.multiplier(at), [1 / w if w > 0 else 0.0 for w in self.weights]
        square = g**2 * (at.squared_deviation * over[1] + at.squared_drift * over[2])
        return np.sqrt(square + (g * at.reaction - self.lambda_) ** 2 * over[3])[:, None]


class SeenEquation(NamedTuple):
    """The equation at points, those of all controls one after the other, and the size of the
    residual: of the best control at the first `active` of them, zero at the others."""

    local: Local
    residual: np.ndarray
    points: np.ndarray
    active: int


def contraction(problem: AbstractProblem, seen: SeenEquation) -> dict[str, Any] | None:
    """The claims of T2: the best of all preconditioners, with and without the exponential
    transform; None where no choice gives a contraction at the points."""
    transforms: list[Transform | None] = [None]
    if problem.linear and problem.has_drift:
        transforms.append(find_transform(problem, seen.points, seen.local))
    best, claims = math.inf, None
    for transform in transforms[: 1 + (transforms[-1] is not None)]:
        local, growth = seen.local, 1.0
        if transform is not None:
            local, growth = transform.local(seen.points, local), transform.growth(seen.points)
        for matrix in preconditioners(local, problem.domain):
            found = _claimed(problem, local, matrix, seen._replace(residual=seen.residual * growth))
            if found is not None and found[0] < best:
                best, claims = found[0], found[1] | {"transform": _transform(transform)}
    return claims


def _claimed(
    problem: AbstractProblem, local: Local, matrix: np.ndarray, seen: SeenEquation
) -> tuple[float, dict[str, Any]] | None:
    matrix = (matrix + matrix.T) / 2
    widths = problem.domain.bounding_box[1] - problem.domain.bounding_box[0]
    V = SHY * widths[:, None] * chord_factor(matrix / np.outer(widths, widths))
    eigenvalue = math.pi**2 * float(np.sum(np.max((V / widths[:, None]) ** 2, axis=0)))
    drift, reaction = np.any(local.b), np.any(local.c)
    pilot = Pilot.of(local, matrix, seen.residual, eigenvalue, drift, reaction, active=seen.active)

    def scheme_of(theta: np.ndarray, trace: bool = True) -> Weighted | TraceWeighted:
        lambda_, weights = pilot.weights_of(theta)
        if not trace:
            return Weighted(lambda_, weights)
        rest = (0.0, *weights[1:])
        return TraceWeighted(lambda_, normalised(rest, lambda_, eigenvalue, pilot.at.dimension))

    scale = float(np.median(pilot.at.dimension * np.abs(local.c) / pilot.at.trace))
    thinned, start = pilot.thinned(), pilot.neutral_start(scale)
    schemes = [thinned.searched(scheme_of, start, 0.7, EVALUATIONS)]
    # A positive β costs the checker smaller pieces: only where it is worth something.
    other = thinned.searched(lambda theta: scheme_of(theta, False), start, 0.7, EVALUATIONS)
    if pilot.size(other) < WORTH * pilot.size(schemes[0]) and other.weights[0] > LEAST_BETA:
        schemes.append(other)
    scheme = min(schemes, key=pilot.size)
    s = pilot.contraction(scheme)
    s += MARGIN * (1 - s)
    if not s < 1:
        return None
    return pilot.size(scheme, s), {
        "name": "T2",
        "M": _decimals(matrix),
        "V": _decimals(V),
        "least": repr(float(SHY * np.linalg.eigvalsh(matrix)[0])),
        "lambda": repr(float(scheme.lambda_)),
        "weights": _decimals(np.array(scheme.weights)),
        "s": repr(float(s)),
    }


def _transform(found: Transform | None) -> dict[str, Any] | None:
    if found is None:
        return None
    parts = {"center": found.center, "p": found.p, "S": (found.S + found.S.T) / 2}
    return {name: _decimals(part) for name, part in parts.items()} | {
        "constant": repr(found.constant)
    }


def _decimals(array: np.ndarray) -> list:
    return [_decimals(part) if np.ndim(part) else repr(float(part)) for part in array]
