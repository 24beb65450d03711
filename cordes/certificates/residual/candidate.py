"""What is certified: an answer of ours, or any function that a user brings. A certificate needs its
residual with a bound of the rounding in it, its values on the boundary, and to know that it is C¹
with bounded second derivatives."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.networks.directional import apply_operator
from cordes.ansatz.networks.network import MANY, AbstractHostNetwork
from cordes.certificates.theorems.energy import Local
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import Walled
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.formulas.regularity import kink
from cordes.jet import Jet, jet_of
from cordes.problems.coefficients import at_points
from cordes.problems.problem import AbstractProblem

BUILT_IN = (Box, Ball, Ellipsoid, Polygon)
CHUNK = 8192
# In space a lift carries small features of g through the domain, where no point may see them.
CARRIED = 3
# Operations that only call others.
CALLS = ("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint")
EPSILON = float(np.finfo(np.float64).eps)
# Rounding of a sum Σ cₖφₖ in units of ε Σ|cₖφₖ|: measured against extended precision it stays below
# 2 (tests/test_certificates.py).
ROUNDING_OF_SUMS = 8.0
# Rounding of a residual whose terms were formed by automatic differentiation, in units of their
# sizes (THEORY: 1e-12).
ROUNDING_OF_TERMS = 1e-12


class Evaluated(NamedTuple):
    """The equation and the residual r = f - Lu_θ at points, with a bound of the rounding error in
    r."""

    local: Local
    residual: np.ndarray
    rounding: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """|r|, rounded up."""
        return np.abs(self.residual) + self.rounding

    @property
    def least(self) -> np.ndarray:
        """|r|, rounded down."""
        return np.maximum(np.abs(self.residual) - self.rounding, 0.0)


def not_finite(*parts: np.ndarray) -> np.ndarray:
    """The numbers of the points, along the first axis, at which something is not a finite
    number."""
    flat = [part.reshape(len(part), -1) for part in parts]
    return np.flatnonzero(~np.all(np.isfinite(np.concatenate(flat, axis=1)), axis=1))


def operator_terms(jet: Jet, A: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The terms of A:D²u + b·∇u - cu at points, (N, d² + d + 1)."""
    second = (A * jet.hessian).reshape(len(c), -1)
    return np.column_stack([second, b * jet.gradient, -(c * jet.value)])


class AbstractCandidate(abc.ABC):
    """See the module. `answer` is what the user has: a solution, or a function of one point."""

    answer: Any
    problem: AbstractProblem
    # Of a formula of the user's own: the residual of a linear equation, else second derivatives.
    formulas: tuple[Callable[..., Any], ...] = ()
    # Boxes, lower and upper corners, on whose scale the answer is made, where it has such.
    scales: tuple[np.ndarray, np.ndarray] | None = None

    @abc.abstractmethod
    def evaluate(self, x: np.ndarray) -> Evaluated:
        """The equation and the residual at points, for problems that are linear."""

    @abc.abstractmethod
    def value(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u_θ at points, and a bound of its rounding error."""

    @abc.abstractmethod
    def jet(self, x: np.ndarray) -> Jet:
        """Value, gradient and Hessian at points."""

    @abc.abstractmethod
    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D²u + b·∇u - cu for coefficients at points, and a bound of its rounding error."""

    @abc.abstractmethod
    def kink(self) -> str | None:
        """Where the gradient may jump; None where it cannot."""

    @abc.abstractmethod
    def written(self) -> Callable | None:
        """The answer as a function of one point, if an enclosure may read it."""

    def exact(self) -> bool:
        """Whether the residual is zero over the whole domain, by its enclosure."""
        function, residual = self.written(), self.problem.residual
        if function is None:
            return False
        lower, upper = (np.asarray(corner)[None] for corner in self.problem.domain.bounding_box)
        try:
            pieces = enclose(lambda x: residual(x, jet_of(function)(x)))(lower, upper)
        except UnsupportedOperation:
            return False
        return all(np.all(part.lower == 0) and np.all(part.upper == 0) for part in pieces)


def is_lifted(problem: AbstractProblem) -> bool:
    """Whether boundary values are carried into the domain by a lift."""
    return problem.takes_boundary_values and not problem.zero_g


@final
class AnswerCandidate(AbstractCandidate):
    """An answer found by `solve`: its residual is a linear expression in features, so that its
    rounding is known."""

    def __init__(self, problem: AbstractProblem, solution: Any):
        """`problem` is the one for which the answer is certified, which need not be the one that it
        was found for."""
        self.problem, self.solution, self.answer = problem, solution, solution
        network = solution.network
        self.scales = network.boxes if isinstance(network, AbstractHostNetwork) else None
        if isinstance(problem.domain, Walled) and is_lifted(problem):
            # What is given on a face is carried through the domain, and bends there.
            self.formulas = (lambda x: jet_of(solution.ansatz.lift)(x).hessian,)
        elif problem.domain.dimension == CARRIED and is_lifted(problem):
            self.formulas = (lambda x: jet_of(problem.g)(x).hessian,)

    def jet(self, x: np.ndarray) -> Jet:
        return self.solution.jet(x)

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        solution = self.solution
        if x.shape[1] < MANY or len(solution.amplitudes):
            value, size = solution.apply_operator(x, A, b, c)
        else:
            # In many dimensions the derivatives are kept in one array.
            value, size = apply_operator(solution.ansatz, solution.network, x, A, b, c)
        return value, EPSILON * ROUNDING_OF_SUMS * size

    def evaluate(self, x: np.ndarray) -> Evaluated:
        parts = [self._chunk(x[k : k + CHUNK]) for k in range(0, len(x), CHUNK)]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def _chunk(self, x: np.ndarray) -> Evaluated:
        A, b, c, f = self.problem.coefficients(x)
        applied, rounding = self.applied(x, A, b, c)
        residual = f + self.solution.constant - applied
        return Evaluated(Local(A, b, c), residual, rounding + 4 * EPSILON * np.abs(f))

    def value(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n, d = x.shape
        nothing = np.broadcast_to(0.0, (n, d, d)), np.broadcast_to(0.0, (n, d))
        value, rounding = self.applied(x, *nothing, -np.ones(n))
        # Singular functions vanish on the edges by cancellation: there the size of their values
        # says nothing about their rounding.
        amplitudes = float(np.sum(np.abs(self.solution.amplitudes)))
        amplitudes = amplitudes if self.solution.ansatz.singular.damped else 0.0
        return value, rounding + EPSILON * ROUNDING_OF_SUMS * amplitudes

    def kink(self) -> str | None:
        """The parts of the ansatz one by one: those of the problem that the answer was found for,
        over the domain for which it is certified. The networks have smooth activations; the
        singular functions are C¹ across their rays by construction."""
        made, domain = self.solution.problem, self.problem.domain
        parts: list[tuple[str, Callable]] = []
        base = made.domain.base if isinstance(made.domain, Cylinder) else made.domain
        if not isinstance(base, BUILT_IN) or not _same(made.domain, domain):
            parts.append(("the distance function of the domain", made.domain.distance))
            if not made.zero_g:
                parts.append(("the lift of the domain", self.solution.lift))
        elif made.clock is not None:
            found = None if made.zero_g else _kink_in_time(made)
            if found is not None:
                return found
        elif not made.zero_g and (
            not made.boundary_shape.stretches or kink(made.g, domain) is not None
        ):
            # The lifts of our own domains are as smooth as the boundary values that they extend.
            if not made.boundary_shape.stretches:
                parts.append(("g", made.g))
            found = self._kink_between_kinks()
            if found is not None:
                return found
        elif made.boundary_shape.kinks:
            found = self._kink_between_kinks()
            if found is not None:
                return found
        parts += [(f"interfaces[{k}]", phi) for k, phi in enumerate(made.interfaces)]
        for name, function in parts:
            found = kink(function, domain)
            if found is not None:
                return f"{name}: {found}"
        return None

    def written(self) -> Callable | None:
        """Of a network that is zero, the lift."""
        solution = self.solution
        network = solution.network
        own = isinstance(network, AbstractHostNetwork)
        numbers = jax.tree.leaves(network.parameters) if own else [network.coefficients]
        zero = not any(np.any(each) for each in [*numbers, solution.amplitudes])
        return solution.lift if zero and solution.exact_boundary else None

    def _kink_between_kinks(self) -> str | None:
        """A kink of g that its lift does not know: each stretch of the boundary between two kinks
        is looked at by itself."""
        made = self.solution.problem
        for stretch in made.boundary_shape.stretches:
            found = kink(lambda s, stretch=stretch: made.g(stretch(s)), Box([0.0], [1.0]))
            if found is not None:
                return f"g along the boundary: {found}"
        return None


def _kink_in_time(made: AbstractProblem) -> str | None:
    """A kink of the initial values that was not found before, or of the values on the sides, in
    one dimension at each end by itself."""
    (initial, lateral, start, _), base, end = made.values, made.space, made.domain
    found = None if made.start.kinks else kink(initial, base)
    if found is not None:
        return f"the initial values: {found}"
    if base.dimension > 1:
        found = kink(lambda z: lateral(z[:-1], z[-1]), end)
        return None if found is None else f"g: {found}"
    times = Box([start], [float(end.bounding_box[1][-1])])
    for side in base.bounding_box:
        found = kink(lambda t, side=side: lateral(jnp.asarray(side), t[0]), times)
        if found is not None:
            return f"g at x = {float(side[0]):.6g}: {found}"
    return None


def _same(one: AbstractDomain, other: AbstractDomain) -> bool:
    """Whether two domains are the same set."""
    if one is other or type(one) is not type(other):
        return one is other
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        for field in dataclasses.fields(one)
    )


def _is_rule(equation: Any) -> bool:
    """Whether an operation has derivatives that its operations do not say."""
    name = equation.primitive.name
    return name == "stop_gradient" or name.startswith("custom_")


def bodies(equation: Any) -> list[Any]:
    """The bodies of calls, loops and choices."""
    entries = equation.params.values()
    lists = [entry if isinstance(entry, (tuple, list)) else (entry,) for entry in entries]
    plain = [getattr(value, "jaxpr", value) for values in lists for value in values]
    return [value for value in plain if hasattr(value, "eqns")]


def operations(jaxpr: Any) -> Iterator[Any]:
    """All operations of a function, those in the bodies of its loops too."""
    for equation in jaxpr.eqns:
        yield equation
        for body in bodies(equation):
            yield from operations(body)


def has_rules(function: Callable, x: Any) -> bool:
    """Whether a function contains stop_gradient or derivative rules given by hand."""
    return any(_is_rule(equation) for equation in operations(jax.make_jaxpr(function)(x).jaxpr))


def formula(function: Callable) -> Callable:
    """The function with its own operations only: stop_gradient and derivative rules given by hand
    are taken out, in the bodies of loops and choices too."""

    def run(jaxpr: Any, constants: Any, *arguments: Any) -> list:
        names = (*jaxpr.constvars, *jaxpr.invars)
        values = dict(zip(names, (*constants, *arguments), strict=True))

        def read(variable: Any) -> Any:
            return variable.val if hasattr(variable, "val") else values[variable]

        for equation in jaxpr.eqns:
            inputs = [read(variable) for variable in equation.invars]
            params, name = equation.params, equation.primitive.name
            inner = [params[key] for key in ("call_jaxpr", "fun_jaxpr", "jaxpr") if key in params]
            if name == "stop_gradient":
                outputs = inputs
            elif inner and (name.startswith("custom_") or name in CALLS):
                closed = hasattr(inner[0], "consts")
                body, held = (inner[0].jaxpr, inner[0].consts) if closed else (inner[0], ())
                outputs = run(body, held, *inputs)
            else:
                plain = {key: stripped(value) for key, value in params.items()}
                outputs = equation.primitive.bind(*inputs, **plain)
                outputs = outputs if equation.primitive.multiple_results else [outputs]
            values.update(zip(equation.outvars, outputs, strict=True))
        return [read(variable) for variable in jaxpr.outvars]

    def stripped(value: Any) -> Any:
        """A parameter of an operation; bodies (with their constants) are made plain."""
        if isinstance(value, tuple):
            closed = any(hasattr(entry, "consts") for entry in value)
            return tuple(stripped(entry) for entry in value) if closed else value
        if not (hasattr(value, "consts") and hasattr(value, "jaxpr")):
            return value
        return jax.make_jaxpr(lambda *arguments: run(value.jaxpr, value.consts, *arguments))(
            *value.in_avals
        )

    def plain(x: Any) -> Any:
        closed = jax.make_jaxpr(function)(x)
        return run(closed.jaxpr, closed.consts, x)[0]

    return plain


@final
class FunctionCandidate(AbstractCandidate):
    """Any function of one point written with jax.numpy."""

    def __init__(self, problem: AbstractProblem, function: Callable):
        self.problem, self.function = problem, function
        self.answer = function

        def parts(x):
            A, b, c, f = problem.at(x)
            value, gradient, hessian = jet_of(function)(x)
            terms = jnp.stack([jnp.sum(A * hessian), jnp.dot(b, gradient), -c * value])
            size = jnp.sum(jnp.abs(A * hessian)) + jnp.sum(jnp.abs(b * gradient))
            return A, b, c, f - jnp.sum(terms), size + jnp.abs(c * value) + jnp.abs(f)

        second = (
            (lambda x: parts(x)[3]) if problem.linear else lambda x: jet_of(function)(x).hessian
        )
        self.formulas = (second,)
        self._parts = at_points(parts)
        self._values = at_points(function)
        self._jets = at_points(jet_of(function))
        self.has_rules = has_rules(function, jnp.asarray(problem.domain.center))

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The function without derivative rules of its own."""
        return formula(self.function) if self.has_rules else self.function

    @functools.cached_property
    def plain_jet(self) -> Callable[[np.ndarray], Jet]:
        """The derivatives of the formula itself."""
        return at_points(jet_of(self.plain))

    def jet(self, x: np.ndarray) -> Jet:
        return self._jets(x)

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        terms = operator_terms(self.jet(x), A, b, c)
        return np.sum(terms, axis=1), ROUNDING_OF_TERMS * np.sum(np.abs(terms), axis=1)

    def evaluate(self, x: np.ndarray) -> Evaluated:
        A, b, c, residual, size = self._parts(x)
        return Evaluated(Local(A, b, c), residual, ROUNDING_OF_TERMS * size)

    def value(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value = self._values(x)
        return value, ROUNDING_OF_TERMS * np.abs(value)

    def kink(self) -> str | None:
        return kink(self.function, self.problem.domain)

    def written(self) -> Callable | None:
        return self.plain
