"""What a report draws of control problems: the policy, and ε over all controls."""

import numpy as np

from cordes.jet import Jet
from cordes.problems.condition import cordes_multiplier, epsilon_at
from cordes.problems.controls.controlled import AbstractControlled
from cordes.reports.pages.fields import (
    DERIVATIVES,
    Quantity,
    answer_and_error,
    bound_quantity,
    condition_of,
    condition_pair,
    quantities_of,
    residual_quantity,
)
from cordes.reports.plots import control_names, control_numbers
from cordes.solutions.solution import Solution

# Controls whose ε is looked at one by one.
CONTROLS = 8


@quantities_of.register(AbstractControlled)
def _control(
    problem: AbstractControlled, solution: Solution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    if problem.domain.dimension > DERIVATIVES:
        return answer_and_error(solution, solution.values(points), points)
    jet = solution.jet(points)
    local = problem.coefficients(points, jet)
    multiplier = cordes_multiplier(problem.measured_matrix(local.A))
    # Of few controls the smallest ε, of many that of the best one.
    if len(problem.controls) <= CONTROLS:
        condition = _smallest_pair(problem, points, lambda_, "over all controls", multiplier)
    else:
        epsilon = epsilon_at(*problem.measured(local)[:3], lambda_)
        condition = condition_pair(epsilon, multiplier, lambda_, " of the best control")
    residual = residual_quantity(
        multiplier * local.defect(jet),
        "|scaled residual|",
        "γ(Lu − f) of the best control: how well the equation itself is satisfied.",
    )
    return [
        *answer_and_error(solution, np.asarray(jet.value), points),
        bound_quantity(solution, points),
        residual,
        *_policy(problem, points, jet),
        *condition,
    ]


def _smallest_pair(
    problem: AbstractControlled,
    points: np.ndarray,
    lambda_: float | None,
    whose: str,
    multiplier: np.ndarray | None = None,
) -> list[Quantity]:
    """The smallest ε over (a sample of) all controls, and the smallest γ unless it is given."""
    smallest = np.full((2, len(points)), np.inf)
    for a in problem.sampled_controls(CONTROLS):
        A, b, c, _ = problem.measured(
            problem.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
        )
        smallest = np.minimum(smallest, [epsilon_at(A, b, c, lambda_), cordes_multiplier(A)])
    scaled = f", the smallest {whose}" if multiplier is None else " of the best control"
    chosen = smallest[1] if multiplier is None else multiplier
    first, second = condition_pair(smallest[0], chosen, lambda_)
    meaning = f"The Cordès ε, the smallest {whose}; the condition fails where it is not positive."
    scaling = f"The Cordès multiplier tr A/|A|²{scaled}."
    return [first._replace(caption=meaning), second._replace(caption=scaling)]


def _policy(problem: AbstractControlled, points: np.ndarray, jet: Jet) -> list[Quantity | None]:
    """Which control is best where: its number where there are few, else each of its components."""
    chosen = np.asarray(problem.policy(points, jet)).reshape(len(points), -1)
    caption = (
        "The control that is best at each point; where several are equally good, the choice means "
        "nothing."
    )
    # Over a line the numbers of controls would say nothing: there controls themselves are drawn.
    names = tuple(f"a = {name}" for name in control_names(problem))
    if names and points.shape[1] > 1:
        numbers = control_numbers(problem, chosen)
        return [Quantity("policy", "best control", caption, numbers, categories=names)]
    return [
        Quantity(
            f"policy a{i + 1}",
            f"best control, a<sub>{i + 1}</sub>" if chosen.shape[1] > 1 else "best control",
            caption if i == 0 else "",
            values,
        )
        for i, values in enumerate(chosen.T)
    ]


@condition_of.register(AbstractControlled)
def _(problem: AbstractControlled, points: np.ndarray, lambda_: float | None) -> list[Quantity]:
    count = len(problem.controls)
    whose = "over all controls" if count <= CONTROLS else f"over {CONTROLS} of {count} controls"
    return _smallest_pair(problem, points, lambda_, whose)
