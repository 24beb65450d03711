"""What every solver is: a method with its options as fields, and one way to run it."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import equinox as eqx

from cordes.arguments import Rule, check_fields
from cordes.problems.problem import AbstractProblem
from cordes.solutions.answer import Answer
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import Budget, Weights


class AbstractSolver(eqx.Module):
    """A way to find weights. Its fields are its options with their defaults, None where the method
    chooses by the dimension of the problem; they are checked when it is made."""

    # The name in `solve(problem, method=…)`.
    method: eqx.AbstractClassVar[str]
    # Whether hidden weights are trained, from where others left them.
    trains: ClassVar[bool] = True
    # What the ansatz has where the user says nothing.
    singular: ClassVar[bool] = True
    inputs: ClassVar[str] = "interfaces"
    # Outer steps of a nonlinear problem, None where they follow from the options, and the residual
    # relative to the right-hand side that counts as a success.
    outer_steps: eqx.AbstractClassVar[int | None]
    small: eqx.AbstractClassVar[float]
    # Named sets of options, for `preset=…`.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # What each option may be.
    rules: ClassVar[Mapping[str, Rule]] = {}

    def __check_init__(self) -> None:
        check_fields(self.rules, self)

    @abc.abstractmethod
    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        """Solve a linear equation, or one that is frozen, from a start if there is one."""

    def refuse(self, problem: AbstractProblem, others: frozenset[str]) -> None:
        """Refuse what makes no sense for the problem, or beside other options of `solve`."""
        return None

    def confined(self, dimension: int, start: Weights | None) -> Self:
        """The solver within its usual size; itself where it is, or the start is not."""
        return self

    @classmethod
    def names(cls) -> frozenset[str]:
        """The options that `solve` takes for this method."""
        fields = {field.name for field in dataclasses.fields(cls)}
        return frozenset(fields | ({"preset"} if cls.presets else set()))

    def data(self) -> dict[str, Any]:
        """The options as data, defaults included."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.data().items())
        return f"{type(self).__name__}({fields})"
