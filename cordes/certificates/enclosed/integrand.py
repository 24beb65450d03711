"""The residual of an answer as something that can be bounded over whole cells: a formula, or sums
of sines with coefficients that are formulas."""

import functools
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.cells.network import CellPolynomials
from cordes.ansatz.cells.pieces import Pieces
from cordes.certificates.enclosed.abstract import (
    RHO,
    RIM,
    AbstractIntegrand,
    Around,
    Equation,
    Weight,
    stacked,
)
from cordes.certificates.enclosed.answers.features import AbstractFeatures, Features, Operator
from cordes.certificates.enclosed.answers.polynomials import EnclosedPolynomials
from cordes.certificates.enclosed.blended.boxes import CellBoxes
from cordes.certificates.enclosed.charts import AbstractAtlas, ChartCells, Identity, atlas
from cordes.certificates.residual.candidate import (
    AbstractCandidate,
    AnswerCandidate,
    Evaluated,
    FunctionCandidate,
)
from cordes.formulas.intervals import Interval, UnsupportedOperation, enclose
from cordes.formulas.rectangles import Neighbourhoods, Rectangle, RectangleProgram
from cordes.jet import Jet, contract, jet_of
from cordes.problems.linear import Linear

Array = np.ndarray


@final
class Integrand(AbstractIntegrand):
    """The residual of a candidate on the charts of a domain."""

    def __init__(self, problem: Linear, candidate: AbstractCandidate):
        self.features, data = parts_of(problem, candidate)
        self.candidate = candidate
        self.atlas, self.volume = atlas(problem.domain), problem.domain.volume
        self.program = RectangleProgram(data, problem.domain.dimension)
        self.pieces = enclose(data)
        elements = sum(step.numbers.size for step in self.program.trace.steps)
        # Numbers that one cell takes.
        features = 0 if self.features is None else 8 * self.features.size
        self.cost = max((elements + features) * problem.domain.dimension * len(RHO), 1)

    def around(self, cells: ChartCells) -> Around:
        near = Neighbourhoods(cells.lower, cells.upper, RHO)
        chart, y = np.tile(cells.chart, near.count), near.rectangles()
        over = Rectangle(cells.lower, cells.upper)
        x, place = self.atlas.place(chart, y), decided(self.atlas, cells)
        jacobian = self.atlas.jacobian(chart, y).size()
        found = self.program.run(near, placed=(Interval(place.lower, place.upper), x))
        structure = self.program.trace.structure
        real: dict[str, Interval] = jax.tree.unflatten(structure, found.real)
        turned: dict[str, Rectangle] = jax.tree.unflatten(structure, found.complex)
        residual = turned["target"].size()
        if self.features is not None:
            sizes = Operator(*(turned[name].size() for name in Operator._fields))
            own = Rectangle(*(near.repeated(end) for end in (real["z"].lower, real["z"].upper)))
            residual = residual + self.features.on_ellipses(sizes, turned["z"], own)
        complexes = {name: each.map(near.by_cell) for name, each in (turned | {"x": x}).items()}
        reals = {name: Rectangle(each.lower, each.upper) for name, each in real.items()}
        return Around(
            near.sorted(np.where(np.isnan(residual), np.inf, residual)),
            near.sorted(jacobian),
            _equation(complexes),
            np.maximum(self.atlas.jacobian(cells.chart, over).upper, 0.0),
            _equation(reals | {"x": place}),
        )

    def outcomes(self, cells: ChartCells) -> tuple[Array, Equation]:
        place = self.atlas.place(cells.chart, Rectangle(cells.lower, cells.upper))
        x = Interval(place.lower, place.upper)
        pieces = [piece | {"x": x} for piece in self.pieces(place.lower, place.upper)]
        equations = [
            _equation({name: Rectangle(each.lower, each.upper) for name, each in piece.items()})
            for piece in pieces
        ]
        bounds = np.stack([self._largest(piece) for piece in pieces], axis=1)
        return bounds, Equation(*(stacked(list(parts)) for parts in zip(*equations, strict=True)))

    @np.errstate(all="ignore")
    def _largest(self, piece: dict[str, Interval]) -> Array:
        middle, radius = _ball(piece["target"])
        center, reach = -middle, radius
        if self.features is not None:
            jets = self.features.over(piece["z"].lower, piece["z"].upper)
            center, reach = larger_by(center, reach, factors(piece), jets)
        bound = (np.abs(center) + reach) * (1 + 1e-12)
        return np.where(np.isnan(bound), np.inf, bound)

    def evaluate(self, x: Array) -> Evaluated:
        return self.candidate.evaluate(x)

    @np.errstate(all="ignore")
    def squares_around(self, around: Around, weight: Weight) -> Array:
        size = weight.squared(around.equation).size().reshape(around.residual.shape)
        return size * (around.residual**2 * around.jacobian)

    @np.errstate(all="ignore")
    def squares_over(self, equation: Equation, residual: Array, weight: Weight) -> Array:
        return weight.squared(equation).size() * residual**2

    @np.errstate(over="ignore", invalid="ignore")
    def squares(self, x: Array, evaluated: Evaluated, weight: Weight) -> Array:
        return (weight.at(x, evaluated.local) * evaluated.size) ** 2


def decided(charts: AbstractAtlas, cells: ChartCells) -> Rectangle:
    """The places of cells without a rim of the width of rounding: cells that end at an interface do
    not reach across it."""
    if isinstance(charts, Identity):
        return Rectangle(cells.lower, cells.upper)
    rim = RIM * (cells.upper - cells.lower)
    return charts.place(cells.chart, Rectangle(cells.lower + rim, cells.upper - rim))


def _equation(parts: dict[str, Rectangle]) -> Equation:
    return Equation(*(parts[name] for name in Equation._fields))


def factors(piece: dict[str, Interval]) -> tuple[Array, Array]:
    """Middle and radius of what the value, the first and the second derivatives by z are multiplied
    with: zeroth, first·z' + second:z'' and z'ᵀ second z'."""
    zeroth, first, second, slope, bend = (_ball(piece[name]) for name in Operator._fields)
    cells = len(zeroth[0])

    def product(formula: str, *balls: tuple[Array, Array]) -> tuple[Array, Array]:
        centers, sizes = [ball[0] for ball in balls], [np.abs(ball[0]) for ball in balls]
        outer = [size + ball[1] for size, ball in zip(sizes, balls, strict=True)]
        radius = np.einsum(formula, *outer) - np.einsum(formula, *sizes)
        return np.einsum(formula, *centers), radius + 1e-14 * np.einsum(formula, *sizes)

    once = product("pi,pmi->pm", first, slope)
    bent = product("pik,pmik->pm", second, bend)
    twice = product("pmi,pik,plk->pml", slope, second, slope)
    flat = [each.reshape(cells, -1) for each in twice]
    middle = np.concatenate([zeroth[0][:, None], once[0] + bent[0], flat[0]], axis=1)
    return middle, np.concatenate([zeroth[1][:, None], once[1] + bent[1], flat[1]], axis=1)


def larger_by(
    center: Array, reach: Array, factors: tuple[Array, Array], jets: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Middle and radius with factor · jet added, for factors and jets with middles and radii."""
    (middle, radius), (value, spread) = factors, jets
    more = np.abs(middle) * spread + radius * (np.abs(value) + spread)
    return center + np.sum(middle * value, axis=1), reach + np.sum(more, axis=1)


def _ball(interval: Interval) -> tuple[Array, Array]:
    return (interval.lower + interval.upper) / 2, (interval.upper - interval.lower) / 2


def parts_of(
    problem: Linear, candidate: AbstractCandidate
) -> tuple[AbstractFeatures | None, Callable[[jax.Array], dict[str, Any]]]:
    """The sines of an answer, and a function of one point that gives the equation, what the sines
    are multiplied with and the rest of the residual."""
    if isinstance(candidate, FunctionCandidate):
        return None, functools.partial(_formula, problem, candidate.plain)
    assert isinstance(candidate, AnswerCandidate)
    features, used = sines_of(candidate.solution)
    ansatz, constant = candidate.solution.ansatz, candidate.solution.constant
    if features is None:
        return None, functools.partial(_formula, problem, ansatz.lift, constant=constant)
    return features, functools.partial(_frozen, problem, ansatz, used, constant)


def sines_of(solution: Any) -> tuple[AbstractFeatures | None, Array]:
    """The sines or polynomials of an answer, none where all coefficients are zero, and which of
    the inputs they use."""
    network = solution.network
    if np.any(solution.amplitudes):
        raise UnsupportedOperation("singular functions")
    if isinstance(network, Pieces):
        return EnclosedPolynomials(network), np.arange(len(network.axes))
    if isinstance(network, CellPolynomials):
        if not network.is_alone:
            raise UnsupportedOperation("cells that are blended")
        return CellBoxes(network), np.arange(len(network.inputs.center))
    if len(network.layers) > 1 or network.activation != "sine":
        raise UnsupportedOperation("networks of several layers, or of other functions than sines")
    weight, bias = (np.asarray(part, float) for part in network.layers[0])
    used = np.flatnonzero(np.any(weight != 0, axis=1))
    features = Features(weight[used], bias, np.asarray(network.coefficients, float))
    return features if np.any(features.coefficients) else None, used


def _formula(
    problem: Linear, function: Callable, x: jax.Array, constant: float = 0.0
) -> dict[str, Any]:
    A, b, c, f = problem.linearise(x)
    target = f + constant - _applied(A, b, c, jet_of(function)(x))
    return {"A": A, "b": b, "c": c, "target": target}


def _applied(A: Any, b: Any, c: Any, jet: Jet) -> Any:
    return contract(A, jet.hessian) + jnp.dot(b, jet.gradient) - c * jet.value


def _frozen(
    problem: Linear, ansatz: Any, used: Array, constant: float, x: jax.Array
) -> dict[str, Any]:
    """`Ansatz.freeze_block` at one point."""
    A, b, c, f = problem.linearise(x)
    D, z = jet_of(ansatz.distance)(x), ansatz.inputs.jet(x)
    return {
        **{"A": A, "b": b, "c": c},
        "target": f + constant - _applied(A, b, c, jet_of(ansatz.lift)(x)),
        "zeroth": _applied(A, b, c, D),
        "first": 2 * A @ D.gradient + D.value * b,
        "second": D.value * A,
        "z": z.value[used],
        "slope": z.gradient[used],
        "bend": z.hessian[used],
    }
