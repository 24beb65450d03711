"""What holds on the faces of a box, typeset."""

from numbers import Real
from typing import Any

from cordes.formulas.written.mathml import constant, words
from cordes.problems.boundary_conditions import Condition, Dirichlet, Neumann, Robin, by_piece
from cordes.problems.problem import AbstractProblem

SLOPE = "<msub><mo>∂</mo><mi>n</mi></msub><mi>u</mi>"


def conditions(problem: AbstractProblem) -> str:
    """Each condition with the pieces on which it holds, in the order of the pieces."""
    given = by_piece(problem.arguments["domain"], problem.arguments["boundary"])
    places: dict[str, list[str]] = {}
    for name, condition in given.items():
        places.setdefault(_equation(condition), []).append(name)
    rows = [f"{left}{words(f' on {_joined(names)}')}" for left, names in places.items()]
    return "<mo>,</mo><mspace width='0.8em'/>".join(rows)


def _equation(condition: Condition) -> str:
    if isinstance(condition, Dirichlet):
        return f"<mi>u</mi><mo>=</mo>{_value(condition.g, 'g')}"
    if isinstance(condition, Neumann):
        return f"{SLOPE}<mo>=</mo>{_value(condition.h, 'h')}"
    if isinstance(condition, Robin):
        factor = constant(float(condition.kappa)).mathml
        left = f"{SLOPE}<mo>+</mo>{factor}<mo>&#x2062;</mo><mi>u</mi>"
        return f"{left}<mo>=</mo>{_value(condition.h, 'h')}"
    return f"<mi>u</mi>{words(' periodic')}"


def _value(given: Any, letter: str) -> str:
    """A number, or the letter of a function."""
    return constant(float(given)).mathml if isinstance(given, Real) else f"<mi>{letter}</mi>"


def _joined(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
