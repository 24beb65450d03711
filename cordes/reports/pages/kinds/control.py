"""What a report draws of control problems: the policy, and ε over all controls."""

from typing import TYPE_CHECKING

import numpy as np

from cordes.jet import Jet
from cordes.problems.condition import cordes_multiplier, epsilon_at
from cordes.problems.hjb import HJB
from cordes.problems.problem import Coefficients
from cordes.reports.pages.fields import (
    DERIVATIVES,
    Quantity,
    answer_and_bound,
    answer_and_error,
    condition_of,
    condition_pair,
    quantities_of,
    residual_quantity,
)

if TYPE_CHECKING:
    from cordes.solutions.solution import Solution

# Controls whose ε is looked at one by one, and that have names on a map.
CONTROLS, NAMED_CONTROLS = 8, 12


@quantities_of.register(HJB)
def _control(
    problem: HJB, solution: "Solution", points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    if problem.domain.dimension > DERIVATIVES:
        return answer_and_error(solution, solution(points), points)
    jet = solution.jet(points)
    local = problem.coefficients(points, jet)
    multiplier = cordes_multiplier(local.A)
    residual = residual_quantity(
        multiplier * local.defect(jet),
        "|scaled residual|",
        "γ(Lu − f) of the best control: how well the equation itself is satisfied.",
    )
    return [
        *answer_and_bound(solution, np.asarray(jet.value), points),
        residual,
        *_policy(problem, points, jet),
        *_controlled(problem, points, local, lambda_, multiplier),
    ]


def _controlled(
    problem: HJB,
    points: np.ndarray,
    best: Coefficients,
    lambda_: float | None,
    multiplier: np.ndarray,
) -> list[Quantity]:
    """ε: the smallest over all controls where there are few, else that of the best one."""
    if len(problem.controls) > CONTROLS:
        epsilon = epsilon_at(*best[:3], lambda_)
        return condition_pair(epsilon, multiplier, lambda_, " of the best control")
    epsilon, _ = _smallest(problem, problem.controls, points, lambda_)
    return _with_captions(
        condition_pair(epsilon, multiplier, lambda_), "over all controls", " of the best control"
    )


def _smallest(
    problem: HJB, controls: np.ndarray, points: np.ndarray, lambda_: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest ε and γ over controls."""
    epsilon, multiplier = np.full(len(points), np.inf), np.full(len(points), np.inf)
    for a in controls:
        A, b, c, _ = problem.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
        epsilon = np.minimum(epsilon, epsilon_at(A, b, c, lambda_))
        multiplier = np.minimum(multiplier, cordes_multiplier(A))
    return epsilon, multiplier


def _with_captions(pair: list[Quantity], whose: str, multiplier: str) -> list[Quantity]:
    first = f"The Cordès ε, the smallest {whose}; the condition fails where it is not positive."
    second = f"The Cordès multiplier tr A/|A|²{multiplier}."
    return [pair[0]._replace(caption=first), pair[1]._replace(caption=second)]


def _policy(problem: HJB, points: np.ndarray, jet: Jet) -> list[Quantity | None]:
    """Which control is best where: its number where there are few, else each of its components."""
    chosen = np.asarray(problem.policy(points, jet)).reshape(len(points), -1)
    controls = problem.controls.reshape(len(problem.controls), -1)
    caption = (
        "The control that is best at each point; where several are equally good, the choice means "
        "nothing."
    )
    # Over a line the numbers of controls would say nothing: there the controls themselves are
    # drawn.
    if len(controls) <= NAMED_CONTROLS and problem.maximiser is None and points.shape[1] > 1:
        numbers = np.argmin(np.sum((chosen[:, None, :] - controls) ** 2, axis=2), axis=1).astype(
            float
        )
        names = tuple(
            "a = "
            + (f"({', '.join(f'{value:.3g}' for value in a)})" if len(a) > 1 else f"{a[0]:.3g}")
            for a in controls
        )
        return [Quantity("policy", "best control", caption, numbers, categories=names)]
    return [
        Quantity(
            f"policy a{i + 1}",
            f"best control, a<sub>{i + 1}</sub>" if chosen.shape[1] > 1 else "best control",
            caption if i == 0 else "",
            chosen[:, i],
        )
        for i in range(chosen.shape[1])
    ]


@condition_of.register(HJB)
def _(problem: HJB, points: np.ndarray, lambda_: float | None) -> list[Quantity]:
    """The smallest values over (a sample of) all controls."""
    chosen, count = problem.sampled_controls(CONTROLS), len(problem.controls)
    pair = condition_pair(*_smallest(problem, chosen, points, lambda_), lambda_)
    whose = "over all controls" if count <= CONTROLS else f"over {CONTROLS} of {count} controls"
    return _with_captions(pair, whose, f", the smallest {whose}")
