"""Several linear operators applied to one answer: the residuals of all controls, or the entries of
D²u. One trace serves all of them, so that what is undecided in a cell is undecided for all
together."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.enclosed.abstract import RHO
from cordes.certificates.enclosed.answers.features import Operator
from cordes.certificates.enclosed.charts import ChartCells, atlas
from cordes.certificates.enclosed.integrand import decided, factors, larger_by, sines_of
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    FunctionCandidate,
)
from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose
from cordes.formulas.rectangles import Neighbourhoods, Rectangle, RectangleProgram
from cordes.jet import contract, jet_of
from cordes.problems.coefficients import Coefficients
from cordes.problems.problem import AbstractProblem

Array = np.ndarray
# Coefficients with an axis of K operators in front, and what else belongs to them.
Operators = Callable[[jax.Array], tuple[Coefficients, dict[str, Any]]]


class OnEllipses(NamedTuple):
    """Bounds of the residuals f_k - L_k u on all neighbourhoods of cells (C, d·R, K), of the
    Jacobian (C, d, R) and over the cells (C,), and what else belongs to the operators: on the
    neighbourhoods (C, d·R, …), and over the cells."""

    residuals: Array
    jacobian: Array
    largest_jacobian: Array
    known: dict[str, Rectangle]
    known_over: dict[str, Rectangle]


class Components:
    """K operators, applied to an answer on the charts of a domain."""

    def __init__(
        self, problem: AbstractProblem, candidate: AbstractCandidate, operators: Operators
    ):
        self.features, data = _parts(candidate, operators)
        self.atlas, self.volume = atlas(problem.domain), problem.domain.volume
        self.program = RectangleProgram(data, problem.domain.dimension)
        self.pieces = enclose(data)
        structure = jax.eval_shape(data, jnp.asarray(problem.domain.center, float))
        self.count, self.extra = len(structure["target"]), sorted(structure["known"])
        elements = sum(step.numbers.size for step in self.program.trace.steps)
        features = 0 if self.features is None else 8 * self.count * self.features.size
        self.cost = max((elements + features) * problem.domain.dimension * len(RHO), 1)

    def around(self, cells: ChartCells) -> OnEllipses:
        near = Neighbourhoods(cells.lower, cells.upper, RHO)
        chart, y = near.repeated(cells.chart), near.rectangles()
        over = Rectangle(cells.lower, cells.upper)
        x, place = self.atlas.place(chart, y), decided(self.atlas, cells)
        jacobian = self.atlas.jacobian(chart, y).size()
        found = self.program.run(near, placed=(Interval(place.lower, place.upper), x))
        structure = self.program.trace.structure
        real: Any = jax.tree.unflatten(structure, found.real)
        turned: Any = jax.tree.unflatten(structure, found.complex)
        own = None
        if self.features is not None:
            own = Rectangle(*(near.repeated(end) for end in (real["z"].lower, real["z"].upper)))
        each = [self._on_ellipses(turned, own, k) for k in range(self.count)]
        return OnEllipses(
            near.by_cell(np.stack(each, axis=1)),
            near.sorted(jacobian),
            np.maximum(self.atlas.jacobian(cells.chart, over).upper, 0.0),
            {name: turned["known"][name].map(near.by_cell) for name in self.extra}
            | {"x": x.map(near.by_cell)},
            {name: _rectangle(real["known"][name]) for name in self.extra} | {"x": place},
        )

    def _on_ellipses(self, turned: dict[str, Rectangle], own: Any, k: int) -> Array:
        """`own`: the inputs over the cells."""
        size = turned["target"][:, k].size()
        if self.features is not None:
            zeroth, first, second = (turned[name][:, k].size() for name in Operator._fields[:3])
            shared = turned["slope"].size(), turned["bend"].size()
            sizes = Operator(zeroth, first, second, *shared)
            size = size + self.features.on_ellipses(sizes, turned["z"], own)
        return np.where(np.isnan(size), np.inf, size)

    def over(self, cells: ChartCells) -> tuple[Array, Array, list[dict[str, Rectangle]]]:
        """Lower and upper bounds of the residuals over cells (C, J, K), for each of J outcomes of
        what is undecided there, and what belongs to each."""
        place = self.atlas.place(cells.chart, Rectangle(cells.lower, cells.upper))
        lower, upper, known = [], [], []
        for piece in self.pieces(place.lower, place.upper):
            low, high = self._over(piece)
            lower.append(low)
            upper.append(high)
            each = {name: _rectangle(piece["known"][name]) for name in self.extra}
            known.append(each | {"x": place})
        return np.stack(lower, axis=1), np.stack(upper, axis=1), known

    @np.errstate(all="ignore")
    def _over(self, piece: dict[str, Interval]) -> tuple[Array, Array]:
        target, jets = piece["target"], None
        if self.features is not None:
            jets = self.features.over(piece["z"].lower, piece["z"].upper)
        lower, upper = [], []
        for k in range(self.count):
            center = (target.lower[:, k] + target.upper[:, k]) / 2
            reach = (target.upper[:, k] - target.lower[:, k]) / 2
            if jets is not None:
                own = {name: _element(piece[name], k) for name in Operator._fields[:3]}
                # The residual is the target less the operator: signs are turned twice.
                center, reach = larger_by(-center, reach, factors(piece | own), jets)
                center = -center
            reach = reach + 1e-12 * (np.abs(center) + reach)
            wrong = np.isnan(center) | np.isnan(reach)
            lower.append(np.where(wrong, -np.inf, center - reach))
            upper.append(np.where(wrong, np.inf, center + reach))
        return np.stack(lower, axis=1), np.stack(upper, axis=1)


def _element(interval: Interval, k: int) -> Interval:
    return Interval(interval.lower[:, k], interval.upper[:, k])


def _rectangle(interval: Interval) -> Rectangle:
    return Rectangle(interval.lower, interval.upper)


def _parts(candidate: AbstractCandidate, operators: Operators) -> tuple:
    """The sines of an answer, and a function of one point that gives what they are multiplied with,
    the rest of the residuals, and what else belongs to the operators."""
    if isinstance(candidate, FunctionCandidate):
        return None, functools.partial(_formula, operators, candidate.plain)
    if not isinstance(candidate, AnswerCandidate):
        raise UnsupportedOperation("an answer of another kind")
    features, used = sines_of(candidate.solution)
    ansatz = candidate.solution.ansatz
    if features is None:
        return None, functools.partial(_formula, operators, ansatz.lift)
    return features, functools.partial(_frozen, operators, ansatz, used)


def _applied(equation: Coefficients, jet: Any) -> Any:
    first = equation.b @ jet.gradient - equation.c * jet.value
    return contract(equation.A, jet.hessian) + first


def _formula(operators: Operators, function: Callable, x: jax.Array) -> dict[str, Any]:
    equation, known = operators(x)
    return {"target": equation.f - _applied(equation, jet_of(function)(x)), "known": known}


def _frozen(operators: Operators, ansatz: Any, used: Array, x: jax.Array) -> dict[str, Any]:
    """`Ansatz.freeze_block` at one point for all operators."""
    equation, known = operators(x)
    D, z = jet_of(ansatz.distance)(x), ansatz.inputs.jet(x)
    return {
        "target": equation.f - _applied(equation, jet_of(ansatz.lift)(x)),
        "known": known,
        "zeroth": _applied(equation, D),
        "first": 2 * equation.A @ D.gradient + D.value * equation.b,
        "second": D.value * equation.A,
        "z": z.value[used],
        "slope": z.gradient[used],
        "bend": z.hessian[used],
    }
