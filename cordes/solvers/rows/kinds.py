"""Which rows belong to which kind of problem."""

import dataclasses
import functools

from cordes.ansatz.build import NOTHING, AnsatzOptions, Earlier
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import Transport
from cordes.solvers.rows.system import AbstractSystem, System
from cordes.solvers.rows.transport import TransportSystem


@functools.singledispatch
def make_system(
    problem: AbstractProblem, multiplier: bool, options: AnsatzOptions, earlier: Earlier = NOTHING
) -> AbstractSystem:
    """The rows of a problem. A kind whose boundary condition is not u = g registers its own."""
    return System(problem, multiplier, earlier, **dataclasses.asdict(options))


@make_system.register
def _(
    problem: Transport, multiplier: bool, options: AnsatzOptions, earlier: Earlier = NOTHING
) -> AbstractSystem:
    return TransportSystem(problem, multiplier, options.delta)
