"""What a proof states about an answer: which theorem, with which parameters, and how large what is
integrated will be. Everything here is seen at points, and believed by nobody."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.residual.candidate import AnswerCandidate
from cordes.certificates.theorems.energy import Local
from cordes.problems.hjb import HJB
from cordes.problems.isaacs import Isaacs
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.proofs.needed import NotProvedError
from cordes.proofs.parameters import SeenEquation, contraction
from cordes.solutions.solution import Solution

# Points inside and on the boundary, where suprema are often attained.
INSIDE, ON_BOUNDARY = 1200, 400
# f is claimed to be at least this share of its smallest value at the points.
SHARE = 0.99


class Statement(NamedTuple):
    """The claims of a theorem, and the root mean square of what is integrated for it."""

    theorem: dict[str, Any]
    size: float


@functools.singledispatch
def statement(problem: AbstractProblem, solution: Solution) -> Statement:
    raise NotProvedError(f"no theorem of the checker is about {type(problem).__name__} problems")


def points_of(problem: AbstractProblem) -> tuple[np.ndarray, np.ndarray]:
    """Points inside, and on the boundary, where the residual may be singular."""
    domain = problem.domain
    parts = [domain.boundary_points(ON_BOUNDARY, seed=32)[0]]
    if domain.vertices is not None:
        parts.append(domain.vertices)
    return domain.interior_points(INSIDE, seed=31, kind="sobol"), np.concatenate(parts)


@statement.register
def _(problem: Linear, solution: Solution) -> Statement:
    inside, outside = points_of(problem)
    found, x = (
        AnswerCandidate(problem, solution).evaluate(inside),
        np.concatenate([inside, outside]),
    )
    residual = np.concatenate([np.abs(found.residual), np.zeros(len(outside))])
    local = Local(*(np.asarray(part) for part in problem.coefficients(x)[:3]))
    return _contracting(problem, SeenEquation(local, residual, x, len(inside)))


@statement.register
def _(problem: HJB, solution: Solution) -> Statement:
    if problem.maximiser is not None:
        raise NotProvedError("the controls are a continuum; the checker knows finitely many")
    x, candidate = np.concatenate(points_of(problem)), AnswerCandidate(problem, solution)
    locals_, sizes = [], []
    for a in problem.controls:
        A, b, c, f = (
            np.asarray(part) for part in problem.pairs(x, np.broadcast_to(a, (len(x), *a.shape)))
        )
        locals_.append(Local(A, b, c))
        trace = np.trace(A, axis1=1, axis2=2)
        sizes.append(problem.sign * (candidate.applied(x, A, b, c)[0] - f) * x.shape[1] / trace)
    best = np.argmax(sizes, axis=0)
    rows = np.arange(len(x))
    stacked = [np.stack([getattr(each, part) for each in locals_]) for part in Local._fields]
    chosen = [part[best, rows] for part in stacked]
    together = Local(
        *(np.concatenate([one, *part]) for one, part in zip(chosen, stacked, strict=True))
    )
    trace = np.trace(chosen[0], axis1=1, axis2=2)
    residual = np.abs(np.max(sizes, axis=0)) * trace / x.shape[1]
    zeros = np.zeros(len(x) * len(locals_))
    points = np.concatenate([x] * (1 + len(locals_)))
    return _contracting(
        problem, SeenEquation(together, np.concatenate([residual, zeros]), points, len(x))
    )


def _contracting(problem: AbstractProblem, seen: SeenEquation) -> Statement:
    claims = contraction(problem, seen)
    if claims is None:
        raise NotProvedError(
            "the equation contracts for no choice of M, λ and weights that was tried (T2)"
        )
    trace = np.trace(seen.local.A, axis1=1, axis2=2)
    scaled = (seen.residual * seen.local.A.shape[-1] / trace)[: seen.active]
    return Statement(claims, float(np.sqrt(np.mean(scaled**2))))


@statement.register
def _(problem: MongeAmpere, solution: Solution) -> Statement:
    x = np.concatenate(points_of(problem))
    f = np.asarray(jax.jit(jax.vmap(problem.f))(jnp.asarray(x)))
    least = float(np.min(f))
    if not least > 0:
        raise NotProvedError(f"f vanishes, or nearly does ({least:.3g}): the checker wants f > 0")
    digits = 10.0 ** (2 - math.floor(math.log10(least)))
    least = math.floor(SHARE * least * digits) / digits
    defect = (np.linalg.det(solution.hessian(x)) - f) / np.sqrt(f)
    return Statement({"name": "T4", "least": repr(least)}, float(np.sqrt(np.mean(defect**2))))


@statement.register(Transport)
@statement.register(Parabolic)
@statement.register(Obstacle)
@statement.register(Isaacs)
def _(problem: AbstractProblem, solution: Solution) -> Statement:
    kind = type(problem).__name__
    raise NotProvedError(
        f"the checker has theorems for equations without time, stopping, games and maps, "
        f"not for {kind} problems"
    )
