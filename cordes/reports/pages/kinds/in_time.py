"""What a report says and draws of problems in time, and of stopping."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.problems.condition import cordes_multiplier, epsilon_at
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.reports.pages.claims import Claims, in_time_claims, rests_on, shared_claims
from cordes.reports.pages.fields import (
    Quantity,
    answer_and_error,
    condition_of,
    condition_pair,
    quantities_of,
    residual_quantity,
)
from cordes.solutions.solution import Solution

STOPS = "Where stopping is best: there the answer is the obstacle."


@rests_on.register
def _parabolic(
    problem: Parabolic, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    in_time_claims(problem, certificate, made)


@rests_on.register
def _obstacle(
    problem: Obstacle, certificate: Certificate, made: Claims, facts: Mapping[str, Any]
) -> None:
    for meaning in certificate.classes.values():
        made.say(assumed=f"The solution is the one that comparison speaks of: {meaning}.")
    made.say(
        checked=f"The residual where it counts, and the answer beside the obstacles, at "
        f"{certificate.points:,} points.",
        assumed="Between these points neither is much worse.",
    )
    shared_claims(made, certificate, problem)


@quantities_of.register(Parabolic)
def _in_time(
    problem: Parabolic, solution: Solution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    jet = solution.jet(points)
    local = problem.coefficients(points)
    return [
        *answer_and_error(solution, np.asarray(jet.value), points),
        residual_quantity(local.defect(jet)),
        *_condition(problem, local, lambda_),
    ]


@condition_of.register(Parabolic)
def _condition_in_time(
    problem: Parabolic, points: np.ndarray, lambda_: float | None
) -> list[Quantity]:
    return _condition(problem, problem.coefficients(points), lambda_)


@condition_of.register(Obstacle)
def _condition_of_base(
    problem: Obstacle, points: np.ndarray, lambda_: float | None
) -> list[Quantity]:
    return condition_of(problem.base_problem, points, lambda_)


def _condition(problem: AbstractProblem, local: Any, lambda_: float | None) -> list[Quantity]:
    measured = problem.measured(local)
    epsilon = epsilon_at(*measured[:3], lambda_)
    return condition_pair(epsilon, cordes_multiplier(measured.A), lambda_)


@quantities_of.register(Obstacle)
def _stopped(
    problem: Obstacle, solution: Solution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    jet = solution.jet(points)
    stops = problem.stops(points, jet)
    residual = problem.coefficients(points, jet).defect(jet)
    return [
        *answer_and_error(solution, solution.values(points), points),
        Quantity(
            "policy", "stop or go on", STOPS, stops.astype(float), categories=("go on", "stop")
        ),
        residual_quantity(
            residual,
            "|residual|",
            "How well the equation is satisfied where one goes on, and u = ψ where one stops.",
        ),
    ]
