"""What a report draws: the answer, its error, residual and bound, the Cordès ε and the multiplier,
the policy, over planes through the domain.

Everything is evaluated at the same points and with functions that the solve and its certificate
have compiled already, since a report must be ready in seconds. Matrices are reduced to ε and γ
block by block: in many dimensions they would not fit into memory.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from cordes.certificates.residual.candidate import AnswerCandidate
from cordes.jet import Jet
from cordes.problems.condition import cordes_multiplier, epsilon_at
from cordes.problems.hjb import HJB
from cordes.problems.monge_ampere import MongeAmpere
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.reports.kit.maps import Map, Plane, make_plane, spread
from cordes.runtime.blocks import in_blocks

if TYPE_CHECKING:
    from cordes.certificates.condition import Condition
    from cordes.solutions.solution import Solution

# Cells along the longer side of a map, and points of a line in one dimension.
RESOLUTION = {2: 120, 3: 64, 4: 80, 5: 80}
COARSE, LINE = 48, 601
# Beyond this dimension second derivatives of a nonlinear problem's answer are left out.
DERIVATIVES = 10
# Points at a time, so that matrices fit into memory; a multiple of the blocks that are compiled.
CHUNK = 4096
# Controls whose ε is looked at one by one.
CONTROLS, NAMED_CONTROLS = 8, 12


class Quantity(NamedTuple):
    """A function that is drawn: a key, the title (safe HTML), a caption, values at the points, and
    how they are coloured."""

    key: str
    title: str
    caption: str
    values: np.ndarray
    logarithmic: bool = False
    categories: tuple[str, ...] = ()


def planes_of(domain: Any) -> list[Plane]:
    """One plane in two dimensions, the three coordinate planes through the centre in three, the
    first in more."""
    d = domain.dimension
    axes = [(0, 1), (0, 2), (1, 2)] if d == 3 else [(0, 1)]
    return [make_plane(domain, pair, RESOLUTION.get(d, COARSE)) for pair in axes]


def line_points(domain: Any) -> np.ndarray:
    """The points of a line chart in one dimension, a hair inside."""
    lower, upper = (float(corner[0]) for corner in domain.bounding_box)
    return np.linspace(lower + 1e-9 * (upper - lower), upper - 1e-9 * (upper - lower), LINE)[
        :, None
    ]


def maps_of(quantities: list[Quantity], planes: list[Plane]) -> dict[str, list[Map]]:
    """The maps of each quantity, one for each plane; values come one plane after the other."""
    ends = np.cumsum([int(plane.inside.sum()) for plane in planes])[:-1]
    made: dict[str, list[Map]] = {}
    for each in quantities:
        made[each.key] = []
        for k, (plane, values) in enumerate(zip(planes, np.split(each.values, ends), strict=True)):
            key = each.key if len(planes) == 1 else f"{each.key} {k + 1}"
            caption = each.caption if k == 0 else ""
            made[each.key].append(
                Map(
                    key,
                    each.title,
                    plane,
                    spread(plane, values),
                    each.logarithmic,
                    caption,
                    each.categories,
                    scale=each.values,
                )
            )
    return made


# The fields of an answer --------------------------------------------------------------------------


def answer_quantities(
    solution: "Solution", points: np.ndarray, condition: "Condition | None"
) -> list[Quantity]:
    """All quantities of an answer at points (N, d), in the order of the page."""
    problem = solution.problem
    if problem.linear:
        made = _linear(solution, points, condition)
    elif isinstance(problem, Transport):
        made = _transport(solution, points, condition)
    else:
        made = _nonlinear(solution, points, condition)
    return [each for each in made if each is not None and np.any(np.isfinite(each.values))]


def _answer(solution: "Solution", values: np.ndarray, points: np.ndarray) -> list[Quantity | None]:
    """u, and its error where the exact solution is known."""
    found: list[Quantity | None] = [Quantity("u", "u", "The computed solution.", values)]
    if solution.problem.exact is not None:
        exact = in_blocks(_compiled(solution.problem.exact), (points,))
        found.append(
            Quantity(
                "error",
                "|u − u<sup>∗</sup>|",
                "How far the answer is from the exact solution, which is used for nothing else.",
                values - exact,
                True,
            )
        )
    return found


def _compiled(function: Any) -> Any:
    return jax.jit(jax.vmap(function))


def _bound(solution: "Solution", points: np.ndarray) -> Quantity | None:
    picture = solution.certificate.picture
    if picture is None or picture.bound is None:
        return None
    place = "almost every point" if points.shape[1] > 3 else "each point"
    green = (solution.certificate.maximum_theorem or "").startswith("Green")
    cut = ", cut at the bound of the largest error, which Green's function gives" if green else ""
    caption = f"The error at {place} is at most this, by the maximum principle{cut}."
    return Quantity("bound", "bound of |error|", caption, np.asarray(picture.bound(points)))


def _residual(
    values: np.ndarray,
    title: str = "|residual|",
    caption: str = "How well the equation itself is satisfied.",
) -> Quantity:
    return Quantity("residual", title, caption, values, True)


def _linear(
    solution: "Solution", points: np.ndarray, condition: "Condition | None"
) -> list[Quantity | None]:
    lambda_ = condition.lambda_ if condition is not None else None
    few = points.shape[1] <= 3
    parts = [
        (_from_jet if few else _from_operator)(solution, points[start : start + CHUNK], lambda_)
        for start in range(0, len(points), CHUNK)
    ]
    values, residual, epsilon, multiplier = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    return [
        *_answer(solution, values, points),
        _bound(solution, points),
        _residual(residual),
        *condition_pair(epsilon, multiplier, lambda_),
    ]


def _from_jet(
    solution: "Solution", points: np.ndarray, lambda_: float | None
) -> tuple[np.ndarray, ...]:
    """u, residual, ε and γ from one jet."""
    jet = solution.jet(points)
    A, b, c, f = solution.problem.coefficients(points)
    residual = (
        np.einsum("nij,nij->n", A, jet.hessian)
        + np.sum(b * jet.gradient, axis=1)
        - c * jet.value
        - f
    )
    return np.asarray(jet.value), residual, epsilon_at(A, b, c, lambda_), cordes_multiplier(A)


def _from_operator(
    solution: "Solution", points: np.ndarray, lambda_: float | None
) -> tuple[np.ndarray, ...]:
    """The same without the Hessian, as the certificate does it in many dimensions."""
    evaluated = AnswerCandidate(solution.problem, solution).evaluate(points)
    return (
        solution(points),
        evaluated.residual,
        epsilon_at(*evaluated.local, lambda_),
        cordes_multiplier(evaluated.local.A),
    )


def condition_pair(
    epsilon: np.ndarray, multiplier: np.ndarray, lambda_: float | None, whose: str = ""
) -> list[Quantity]:
    """ε and γ; `lambda_` belongs to equations with lower-order terms, which make ε smaller than A
    alone would."""
    largest = (
        ": 1 where A is a multiple of the identity"
        if lambda_ is None
        else f", with drift and reaction, for λ = {lambda_:.4g}"
    )
    return [
        Quantity(
            "epsilon",
            "ε(x)",
            f"The Cordès ε{whose}{largest}; the condition fails where it is not positive.",
            epsilon,
        ),
        Quantity(
            "multiplier",
            "γ(x)",
            f"The Cordès multiplier tr A/|A|²{whose}, with which the residual is scaled.",
            multiplier,
        ),
    ]


def _nonlinear(
    solution: "Solution", points: np.ndarray, condition: "Condition | None"
) -> list[Quantity | None]:
    """Control problems and Monge–Ampère: the equation is frozen at the answer."""
    problem: AbstractProblem = solution.problem
    if problem.domain.dimension > DERIVATIVES:
        return _answer(solution, solution(points), points)
    jet = solution.jet(points)
    answer, bound = _answer(solution, np.asarray(jet.value), points), _bound(solution, points)
    lambda_ = condition.lambda_ if condition is not None else None
    A, b, c, f = problem.coefficients(points, jet)
    if isinstance(problem, MongeAmpere):
        residual = _residual(
            np.linalg.det(np.asarray(jet.hessian)) - problem.source_density(points), "|det D²u − f|"
        )
        return [
            *answer,
            bound,
            residual,
            *condition_pair(
                epsilon_at(A, b, c, lambda_),
                cordes_multiplier(A),
                lambda_,
                " of the cofactors of D²u",
            ),
        ]
    multiplier = cordes_multiplier(A)
    applied = (
        np.einsum("nij,nij->n", A, jet.hessian)
        + np.sum(b * jet.gradient, axis=1)
        - c * jet.value
        - f
    )
    residual = _residual(
        multiplier * applied,
        "|scaled residual|",
        "γ(Lu − f) of the best control: how well the equation itself is satisfied.",
    )
    return [
        *answer,
        bound,
        residual,
        *_policy(problem, points, jet),
        *_controlled(problem, points, (A, b, c), lambda_, multiplier),
    ]


def _controlled(
    problem: AbstractProblem,
    points: np.ndarray,
    best: tuple[Any, Any, Any],
    lambda_: float | None,
    multiplier: np.ndarray,
) -> list[Quantity]:
    """ε: the smallest over all controls where there are few, else that of the best one."""
    if len(problem.controls) > CONTROLS:
        return condition_pair(
            epsilon_at(best[0], best[1], best[2], lambda_),
            multiplier,
            lambda_,
            " of the best control",
        )
    epsilon = np.full(len(points), np.inf)
    for a in problem.controls:
        A, b, c, _ = problem.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
        epsilon = np.minimum(epsilon, epsilon_at(A, b, c, lambda_))
    first, second = condition_pair(epsilon, multiplier, lambda_)
    return [
        first._replace(
            caption=(
                "The Cordès ε, the smallest over all controls; the condition fails where it is "
                "not positive."
            )
        ),
        second._replace(caption="The Cordès multiplier tr A/|A|² of the best control."),
    ]


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


# Transport ----------------------------------------------------------------------------------------


def _transport(
    solution: Any, points: np.ndarray, condition: "Condition | None"
) -> list[Quantity | None]:
    problem = solution.problem
    jet = solution.jet(points)
    gradient, hessian = np.asarray(jet.gradient), np.asarray(jet.hessian)
    source = problem.source_density(points)
    reached = problem.target_density(gradient) * np.linalg.det(hessian)
    found: list[Quantity | None] = [
        Quantity("source", "μ", "The source density, of mass one.", source),
        Quantity(
            "moved",
            "|T(x) − x|",
            "How far the map moves each point.",
            np.linalg.norm(gradient - points, axis=1),
        ),
    ]
    if problem.exact is not None:
        exact = in_blocks(_compiled(problem.exact), (points,))
        miss = np.linalg.norm(gradient - exact, axis=1)
        found.append(
            Quantity(
                "error",
                "|T − T<sup>∗</sup>|",
                "How far the map is from the exact one, which is used for nothing else.",
                miss,
                True,
            )
        )
    found.append(
        _residual(
            reached - source,
            "|ν(∇u) det D²u − μ|",
            "How well the map carries one density to the other.",
        )
    )
    found.append(
        Quantity(
            "potential",
            "u",
            "The convex potential whose gradient is the map.",
            np.asarray(jet.value),
        )
    )
    A, b, c, _ = problem.coefficients(points, jet)
    lambda_ = condition.lambda_ if condition is not None else None
    return [
        *found,
        *condition_pair(
            epsilon_at(A, b, c, lambda_), cordes_multiplier(A), lambda_, " of the frozen equation"
        ),
    ]


def target_quantity(problem: AbstractProblem, points: np.ndarray) -> Quantity:
    """The density that the source is carried to."""
    return Quantity(
        "target", "ν", "The target density, of mass one.", problem.target_density(points)
    )


# The fields of a check ----------------------------------------------------------------------------


def condition_quantities(
    problem: AbstractProblem,
    points: np.ndarray,
    condition: "Condition",
    solution: "Solution | None" = None,
) -> list[Quantity]:
    """ε and γ of a problem before it is solved, or frozen at an answer; for control problems the
    smallest values over (a sample of) all controls."""
    if solution is not None:
        A, b, c, _ = problem.coefficients(points, solution.jet(points))
        return condition_pair(
            epsilon_at(A, b, c, condition.lambda_),
            cordes_multiplier(A),
            condition.lambda_,
            " of the equation frozen at the answer",
        )
    if problem.linear:
        A, b, c, _ = problem.coefficients(points)
        return condition_pair(
            epsilon_at(A, b, c, condition.lambda_), cordes_multiplier(A), condition.lambda_
        )
    epsilon, multiplier = np.full(len(points), np.inf), np.full(len(points), np.inf)
    for a in problem.sampled_controls(CONTROLS):
        A, b, c, _ = problem.pairs(points, np.broadcast_to(a, (len(points), *a.shape)))
        epsilon, multiplier = (
            np.minimum(epsilon, epsilon_at(A, b, c, condition.lambda_)),
            np.minimum(multiplier, cordes_multiplier(A)),
        )
    whose = (
        "over all controls"
        if len(problem.controls) <= CONTROLS
        else f"over {CONTROLS} of {len(problem.controls)} controls"
    )
    first, second = condition_pair(epsilon, multiplier, condition.lambda_)
    return [
        first._replace(
            caption=(
                f"The Cordès ε, the smallest {whose}; the condition fails where it is not positive."
            )
        ),
        second._replace(caption=f"The Cordès multiplier tr A/|A|², the smallest {whose}."),
    ]
