"""The loss of a network as it is: the rows of its equation, with or without the multiplier, at
points of one's choice.

Both analyses of the multiplier, the landscape and the spectrum, look at one network through several
losses. So the loss is an argument here and not a property of the solution: a network that was
trained with the multiplier can be looked at without it.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from cordes.ansatz.ansatz import Rows
from cordes.ansatz.build import AnsatzOptions, Earlier
from cordes.ansatz.networks.mlp import MLP
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.solutions.answer import Answer, Weights
from cordes.solutions.kinds import make_solution
from cordes.solutions.solution import Solution
from cordes.solvers.adam import PAPER
from cordes.solvers.rows.kinds import make_system
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import cast, initial_weights

# The ansatz of the paper preset.
PLAIN = AnsatzOptions(singular=False, inputs="coordinates")


def initial_solution(problem: AbstractProblem, seed: int = 0) -> Solution:
    """The untrained network of the paper preset, with the very weights (rounded to its precision)
    from which `solve(…, preset="paper", seed=seed)` starts."""
    _check_problem(problem)
    system = make_system(problem, True, PLAIN)
    dtype = jnp.dtype(PAPER["precision"])
    state = initial_weights(
        system, None, PAPER["width"], PAPER["depth"], PAPER["activation"], seed, "uniform", dtype
    )
    state = cast(state, jnp.float64)
    answer = Answer(state.network, state.amplitudes, Result.finished, float("inf"), 0, [])
    facts = facts_of(system, seed, True)
    return make_solution(problem, system.ansatz, answer, {"certify": 0.0}, facts)


def facts_of(system: AbstractSystem, seed: int, multiplier: bool) -> dict[str, Any]:
    """What an answer of the paper's training says of itself."""
    options = dataclasses.asdict(system.options)
    told = {"method": "adam", "seed": seed, "multiplier": multiplier, **options}
    return {**told, "richness": system.richness}


def state_of(solution: Solution) -> Weights:
    """The network and the amplitudes of a solution, in double precision."""
    if not isinstance(solution.network, MLP):
        raise OptionError(
            f"The solution has a network of kind {type(solution.network).__name__}, but its "
            "hidden weights must have been trained: use a solution of method='adam' or "
            "'gauss-newton'."
        )
    return cast(Weights(solution.network, jnp.asarray(solution.amplitudes)), jnp.float64)


def system_at(
    problem: AbstractProblem,
    solution: Solution,
    multiplier: bool,
    choices: dict[str, Any] | None = None,
) -> AbstractSystem:
    """The linear equation with the solution's own ansatz; a nonlinear one is frozen at the solution
    itself. `choices` are what the problem is told when it is frozen (`scaled` for HJB, `form` for
    Monge–Ampère)."""
    _check_problem(problem)
    if repr(problem.domain) != repr(solution.problem.domain):
        raise OptionError(
            f"The solution lives on {solution.problem.domain!r}, the problem on "
            f"{problem.domain!r}: pass the problem that was solved."
        )
    if choices and problem.linear:
        raise OptionError(
            f"choices = {choices!r}: a linear problem is not frozen and has no choices. Leave "
            "them out."
        )
    earlier = Earlier(solution.facts.get("richness"), solution.singular_points)
    options = AnsatzOptions.kept_in(solution.facts)
    system = make_system(problem, multiplier, options, earlier)
    system.place = system.place._replace(ansatz=solution.ansatz)
    if not problem.linear:
        system.freeze(solution.jet, **(choices or {}))
    return system


def rows_at(system: AbstractSystem, points: int, seed: int) -> Rows:
    """The rows of the loss at the collocation points of a seed, followed by those of soft boundary
    values, if the solution has them."""
    return system.loss_rows(system.points(points, seed), seed)


def _check_problem(problem: AbstractProblem) -> None:
    if not problem.takes_boundary_values:
        raise OptionError(
            f"{problem.name} is a transport problem, whose boundary condition is part of the "
            "loss: use a Linear, HJB or MongeAmpere problem."
        )
