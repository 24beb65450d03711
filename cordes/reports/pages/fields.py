"""What a report draws: the answer, its error, residual and bound, the Cordès ε and the multiplier,
the policy, over planes through the domain.

Everything is evaluated at the same points and with functions that the solve and its certificate
have compiled already, since a report must be ready in seconds. Matrices are reduced to ε and γ
block by block: in many dimensions they would not fit into memory.
"""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from cordes.certificates.condition import Condition
from cordes.certificates.residual.candidate import AnswerCandidate
from cordes.certificates.theorem import Theorem
from cordes.jet import Jet
from cordes.problems.condition import cordes_multiplier, epsilon_at
from cordes.problems.linear import Linear
from cordes.problems.problem import AbstractProblem
from cordes.reports.facts import certificate_of
from cordes.reports.kit.maps import Map
from cordes.reports.kit.planes import Plane, planes_through, square_cells
from cordes.runtime.blocks import in_blocks
from cordes.solutions.solution import Solution

# Cells along the longer side of a map, and points of a line in one dimension.
RESOLUTION = {2: 120, 3: 64, 4: 80, 5: 80}
COARSE, LINE = 48, 601
# Beyond this dimension second derivatives of a nonlinear problem's answer are left out.
DERIVATIVES = 10
# Points at a time, so that matrices fit into memory; a multiple of the blocks that are compiled.
CHUNK = 4096


class Quantity(NamedTuple):
    """A function that is drawn: a key, a title in safe HTML, and how its values are coloured."""

    key: str
    title: str
    caption: str
    values: np.ndarray
    logarithmic: bool = False
    categories: tuple[str, ...] = ()


def planes_of(domain: Any) -> list[Plane]:
    resolution = RESOLUTION.get(domain.dimension, COARSE)
    return [square_cells(domain, axes, resolution) for axes in planes_through(domain)]


def line_points(domain: Any) -> np.ndarray:
    """The points of a line chart in one dimension, a hair inside."""
    lower, upper = (float(corner[0]) for corner in domain.bounding_box)
    hair = 1e-9 * (upper - lower)
    return np.linspace(lower + hair, upper - hair, LINE)[:, None]


def maps_of(quantities: list[Quantity], planes: list[Plane]) -> dict[str, list[Map]]:
    """The maps of each quantity, one for each plane; values come one plane after the other."""
    ends = np.cumsum([int(plane.inside.sum()) for plane in planes])[:-1]
    made: dict[str, list[Map]] = {}
    for each in quantities:
        made[each.key] = []
        for k, (plane, values) in enumerate(zip(planes, np.split(each.values, ends), strict=True)):
            shown = Map(
                each.key if len(planes) == 1 else f"{each.key} {k + 1}",
                each.title,
                plane,
                plane.spread(values),
                each.logarithmic,
                each.caption if k == 0 else "",
                each.categories,
                scale=each.values,
            )
            made[each.key].append(shown)
    return made


# The fields of an answer --------------------------------------------------------------------------


@functools.singledispatch
def quantities_of(
    problem: AbstractProblem, solution: Solution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    """What is drawn of an answer at points (N, d), in the order of the page; `lambda_` is that of
    the Cordès condition. For an equation of which no more is known: frozen at the answer."""
    if problem.domain.dimension > DERIVATIVES:
        return answer_and_error(solution, solution.values(points), points)
    jet = solution.jet(points)
    return [
        *answer_and_error(solution, np.asarray(jet.value), points),
        bound_quantity(solution, points),
        residual_quantity(solution.residual_at(points), f"|{problem.residual_name}|"),
        *frozen_condition(problem, points, jet, lambda_, f" of {problem.frozen_name}"),
    ]


@functools.singledispatch
def with_overlays(
    problem: AbstractProblem, solution: Solution, made: dict[str, list[Map]]
) -> dict[str, list[Map]]:
    """The maps of an answer in the plane, with what belongs on top of them."""
    return made


def answer_quantities(
    solution: Solution, points: np.ndarray, condition: Condition | None
) -> list[Quantity]:
    """All quantities of an answer at points (N, d), in the order of the page."""
    lambda_ = condition.lambda_ if condition is not None else None
    made = quantities_of(solution.problem, solution, points, lambda_)
    return [each for each in made if each is not None and np.any(np.isfinite(each.values))]


def answer_and_error(
    solution: Solution, values: np.ndarray, points: np.ndarray
) -> list[Quantity | None]:
    """u, and its error where the exact solution is known."""
    found: list[Quantity | None] = [Quantity("u", "u", "The computed solution.", values)]
    exact = exact_values(solution.problem, points)
    if exact is not None:
        caption = "How far the answer is from the exact solution, which is used for nothing else."
        found.append(Quantity("error", "|u − u<sup>∗</sup>|", caption, values - exact, True))
    return found


def exact_values(problem: AbstractProblem, points: np.ndarray) -> np.ndarray | None:
    if problem.exact is None:
        return None
    return in_blocks(jax.jit(jax.vmap(problem.exact)), (points,))


def bound_quantity(solution: Solution, points: np.ndarray) -> Quantity | None:
    certificate = certificate_of(solution)
    picture = certificate.picture
    if picture is None or picture.bound is None:
        return None
    place = "almost every point" if points.shape[1] > 3 else "each point"
    cited = certificate.maximum_citation
    green = cited is not None and cited.theorem is Theorem.green
    cut = ", cut at the bound of the largest error, which Green's function gives" if green else ""
    caption = f"The error at {place} is at most this, by the maximum principle{cut}."
    return Quantity("bound", "bound of |error|", caption, np.asarray(picture.bound(points)))


def residual_quantity(
    values: np.ndarray,
    title: str = "|residual|",
    caption: str = "How well the equation itself is satisfied.",
) -> Quantity:
    return Quantity("residual", title, caption, values, True)


@quantities_of.register(Linear)
def _linear(
    problem: Linear, solution: Solution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    few = points.shape[1] <= 3
    parts = [
        (_from_jet if few else _from_operator)(solution, points[start : start + CHUNK], lambda_)
        for start in range(0, len(points), CHUNK)
    ]
    values, residual, epsilon, multiplier = map(np.concatenate, zip(*parts, strict=True))
    return [
        *answer_and_error(solution, values, points),
        bound_quantity(solution, points),
        residual_quantity(residual),
        *condition_pair(epsilon, multiplier, lambda_),
    ]


def _from_jet(
    solution: Solution, points: np.ndarray, lambda_: float | None
) -> tuple[np.ndarray, ...]:
    """u, residual, ε and γ from one jet."""
    jet, local = solution.jet(points), solution.problem.coefficients(points)
    epsilon = epsilon_at(*local[:3], lambda_)
    return np.asarray(jet.value), local.defect(jet), epsilon, cordes_multiplier(local.A)


def _from_operator(
    solution: Solution, points: np.ndarray, lambda_: float | None
) -> tuple[np.ndarray, ...]:
    """The same without the Hessian, as the certificate does it in many dimensions."""
    evaluated = AnswerCandidate(solution.problem, solution).evaluate(points)
    return (
        solution.values(points),
        evaluated.residual,
        epsilon_at(*evaluated.local, lambda_),
        cordes_multiplier(evaluated.local.A),
    )


def condition_pair(
    epsilon: np.ndarray, multiplier: np.ndarray, lambda_: float | None, whose: str = ""
) -> list[Quantity]:
    """ε and γ; `lambda_` belongs to lower-order terms, which make ε smaller."""
    largest = ": 1 where A is a multiple of the identity"
    if lambda_ is not None:
        largest = f", with drift and reaction, for λ = {lambda_:.4g}"
    first = f"The Cordès ε{whose}{largest}; the condition fails where it is not positive."
    second = f"The Cordès multiplier tr A/|A|²{whose}, with which the residual is scaled."
    return [
        Quantity("epsilon", "ε(x)", first, epsilon),
        Quantity("multiplier", "γ(x)", second, multiplier),
    ]


def frozen_condition(
    problem: AbstractProblem,
    points: np.ndarray,
    jet: Jet | None,
    lambda_: float | None,
    whose: str = "",
) -> list[Quantity]:
    """ε and γ of the equation frozen at an answer; of a linear one, which needs none."""
    A, b, c, _ = problem.coefficients(points, jet)
    return condition_pair(epsilon_at(A, b, c, lambda_), cordes_multiplier(A), lambda_, whose)


# The fields of a check ----------------------------------------------------------------------------


@functools.singledispatch
def condition_of(
    problem: AbstractProblem, points: np.ndarray, lambda_: float | None
) -> list[Quantity]:
    """ε and γ of a problem before it is solved."""
    raise NotImplementedError(
        f"The condition of {type(problem).__name__} problems is that of an answer."
    )


@condition_of.register(Linear)
def _(problem: Linear, points: np.ndarray, lambda_: float | None) -> list[Quantity]:
    return frozen_condition(problem, points, None, lambda_)


def condition_quantities(
    problem: AbstractProblem,
    points: np.ndarray,
    condition: Condition,
    solution: Solution | None = None,
) -> list[Quantity]:
    """ε and γ of a problem before it is solved, or frozen at an answer."""
    if solution is None:
        return condition_of(problem, points, condition.lambda_)
    whose = " of the equation frozen at the answer"
    return frozen_condition(problem, points, solution.jet(points), condition.lambda_, whose)
