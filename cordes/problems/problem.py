"""What every problem is: an equation on a domain that can be frozen at a state, with facts about
itself that the rest of the program asks for instead of asking which kind it is.

A new kind of equation is a final class here, its certificate (`cordes.certificates.certify`) and
its words in a report (`cordes.reports.pages.equation`), each registered for its type.
"""

import abc
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import (
    CoefficientError,
    shown,
)
from cordes.immutable import Immutable
from cordes.jet import Jet
from cordes.problems.boundary_conditions import check_data, placed
from cordes.problems.checks import (
    check_boundary_data,
    check_domain,
    check_interfaces,
    fingerprints,
)
from cordes.problems.coefficients import (
    Coefficients,
    DiagonalPlusRank,
    as_function,
    check_exact,
)
from cordes.problems.evolution import Clockwork, Values, best_rate, clockwork, values_of
from cordes.problems.kinks.boundary_kinks import BoundaryShape, KinkWarning
from cordes.problems.kinks.found_interfaces import found_interfaces
from cordes.problems.kinks.initial_kinks import SMOOTH, InitialKink, Start, start_of
from cordes.runtime.memory import largest_that_fits, require_memory
from cordes.runtime.plain import show
from cordes.runtime.threads import refuse_forks

# Points from which the weight of the derivative by time is chosen.
RATE_POINTS = 256
# Matrices that are held at once while a problem is checked.
MATRICES = 64


def _check_matrices(dimension: int) -> None:
    most = largest_that_fits(lambda d: 8.0 * MATRICES * d**2, dimension)
    require_memory(
        8.0 * MATRICES * dimension**2,
        f"An equation in {dimension} dimensions, with matrices of {dimension}² numbers,",
        f"{most} dimensions would fit.",
    )


class AbstractProblem(Immutable):
    """An equation for u on `domain`. Fields are facts; what is not said here is said by the kind.

    `exact`, if known, serves to measure errors and for nothing else. `source` says where the
    problem can be had again (`{"gallery": name}`, `{"toml": text}`); None for one written in
    Python. Checked when made: whatever the kind checks. A problem cannot be changed: `replace`
    makes another one.
    """

    # What the kind of equation decides. Whether it is linear; whether solutions are convex; whether
    # u takes given values on the boundary; whether freezing is a policy, and contracts.
    linear: ClassVar[bool] = False
    # Whether it is posed on convex domains alone.
    needs_convex: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    takes_boundary_values: ClassVar[bool] = True
    contracting: ClassVar[bool] = False
    # Whether what u does at a kink of g is known: from the linear equations of `family`, of which
    # the best one holds.
    follows_kinks: ClassVar[bool] = False
    # What a report calls the residual, and the linear equation that is frozen at an answer.
    residual_name: ClassVar[str] = "residual"
    frozen_name: ClassVar[str] = "the frozen equation"
    # The derivative of an answer that jumps where the frozen equation does: the third one where
    # another control becomes the best.
    bending: ClassVar[int] = 3
    # The norm that `tol` bounds.
    tolerance_norm: ClassVar[str] = "rms"
    # Options of the outer loop that the kind understands, and its warm-up in the paper's recipe.
    outer_options: ClassVar[frozenset[str]] = frozenset()
    paper_options: ClassVar[Mapping[str, Any]] = {}

    domain: AbstractDomain
    name: str
    source: dict[str, Any] | None = None
    exact: Callable[[Array], Array] | None = None
    A: Callable[..., Array] | DiagonalPlusRank
    g: Callable[..., Array]
    zero_g: bool = True
    # Those that were declared, then those that were found in the formulas, and how many these are.
    interfaces: tuple[Callable[[Array], Array], ...] = ()
    found_interfaces: int = 0
    # The kinks of g along the boundary of a plane domain, and what is rough in it.
    boundary_shape: BoundaryShape = BoundaryShape()
    # Whether only a constant on the right, which is part of the answer, makes a solution possible.
    free_constant: bool = False
    # A lower bound of the Cordès ε that the user vouches for.
    epsilon: float | None = None
    # Fingerprints of the data as they were when the problem was made.
    marks: Mapping[str, str | None] = MappingProxyType({})
    has_drift: bool = False
    has_reaction: bool = False
    constant_A: bool = False
    constant_coefficients: bool = False
    # Controls (m, …) and the best one in closed form; for equations that have them.
    controls: np.ndarray | None = None
    maximiser: Callable[[Array, Jet], Array] | None = None
    # Against how many opponents the controls play; they are pairs then, which `split` takes apart.
    rivals: int = 1
    split: Callable[[Any], tuple[Any, ...]] = staticmethod(lambda control: (control,))
    # Of the supremum over the controls; -1 for an infimum.
    sign: float = 1.0
    # A size of D²u, for equations whose solutions are convex; where data leave no room for a
    # bounded one; and whether they leave room for any.
    curvature: float = 0.0
    has_convex_form: bool = False
    impossible: bool = False
    # The clock of an equation in time, whose domain is a cylinder with the time as last coordinate;
    # and how the derivative by time counts beside second derivatives (`measured`).
    clock: Clockwork | None = None
    # Where its initial values have kinks.
    start: Start = SMOOTH
    rate: float = 0.0
    # A potential that takes the place of the lift, where u has no given values on the boundary.
    base: Callable[[Array], Array] | None = None
    # How far the data span, where a solve may have to approach them in stages.
    spread: float = 1.0

    def _place(
        self,
        domain: AbstractDomain,
        g: Any,
        interfaces: Sequence[Any],
        exact: Any,
        name: str,
        boundary: Any = None,
    ) -> None:
        """Where the equation holds, what u is on the boundary, and what is known of it."""
        refuse_forks()
        check_domain(domain, self.needs_convex)
        _check_matrices(domain.dimension)
        if not isinstance(name, str):
            raise CoefficientError(f"name = {shown(name)}: a text is needed.")
        self.domain, given = placed(domain, g, boundary, rows=not self.needs_convex)
        self.exact, self.name = exact, name
        self.g, constant = as_function("g", given, ())
        self.zero_g = bool(self.g() == 0) if constant else getattr(given, "zero", False)
        self.interfaces = check_interfaces(interfaces, domain)

    def _place_in_time(
        self,
        domain: AbstractDomain,
        horizon: Any,
        given: tuple[Any, Any, Any],
        interfaces: Sequence[Any],
        exact: Any,
        name: str,
        boundary: Any = None,
    ) -> Clockwork:
        """The same for an equation in time; `given` are g and the initial or terminal values."""
        refuse_forks()
        check_domain(domain)
        _check_matrices(domain.dimension + 1)
        if not isinstance(name, str):
            raise CoefficientError(f"name = {shown(name)}: a text is needed.")
        g, initial, terminal = given
        domain, g = placed(domain, g, boundary, "(x, t)")
        clock, first = clockwork(domain, horizon, initial, terminal)
        self.clock, self.domain, self.name = clock, clock.domain, name
        values, self.zero_g = values_of(clock, g, first)
        self.g, self.start = values, start_of(values.initial, domain)
        if self.start.rough is not None:
            self.boundary_shape = BoundaryShape(rough=self.start.rough)
            warnings.warn(
                f"{self.start.rough}. The answer will be wrong around it, and is not called "
                "converged.",
                KinkWarning,
                stacklevel=4,
            )
        several = interfaces if callable(interfaces) else list(interfaces)
        if not callable(several):
            several = [clock.turned(phi) if callable(phi) else phi for phi in several]
        self.interfaces = check_interfaces(several, self.domain)
        self.exact = clock.turned(exact) if callable(exact) else exact
        check_exact(self.exact, jnp.asarray(self.domain.center))
        return clock

    def _check_place(self) -> None:
        """Whether the boundary values and the exact solution are what they must be."""
        if not check_data(self.g):
            self.boundary_shape = check_boundary_data(self.g, self.domain, self.follows_kinks)
        check_exact(self.exact, jnp.asarray(self.domain.center))

    # Space and time

    @property
    def space(self) -> AbstractDomain:
        """The domain without the time."""
        return self.domain if self.clock is None else self.clock.domain.base

    def of_space(self, A: Any) -> Any:
        """The part of matrices, or of vectors (…, d + 1), without the time."""
        if self.clock is None:
            return A
        d = self.space.dimension
        return A[..., :d, :d] if A.shape[-2:] == (d + 1, d + 1) else A[..., :d]

    def measured(self, equation: Coefficients) -> Coefficients:
        """The equation whose Cordès condition and multiplier are meant. In time u_t counts as k
        u_tt would, k = `rate`: (tr A + k)² over |A|² + k² is what the condition of Smears and Süli
        (2016) asks of A and k = 1/ω, and their multiplier that of this matrix. Drift and reaction
        do not count: they may grow or decay in time."""
        if self.clock is None:
            return equation
        A = self.measured_matrix(equation.A)
        return equation._replace(A=A, b=0.0 * equation.b, c=0.0 * equation.c)

    @property
    def measures_lower_order(self) -> bool:
        """Whether drift and reaction count in the Cordès condition."""
        return self.clock is None and (self.has_drift or self.has_reaction)

    def measured_matrix(self, A: Any) -> Any:
        """The matrix of `measured`."""
        if self.clock is None:
            return A
        return A + self.rate * np.outer(self._last, self._last)

    @property
    def _last(self) -> np.ndarray:
        """The direction of time."""
        return np.eye(self.domain.dimension)[-1]

    @property
    def values(self) -> Values:
        """What is given on the boundary of the cylinder."""
        values: Any = self.g
        return values

    def smoothing(self, kink: InitialKink) -> Callable[[Array], Array]:
        """The matrix A(x) that smooths a kink of the initial values first."""
        return self.matrix_at_start(kink)

    def matrix_at_start(self, face: Any) -> Callable[[Array], Array]:
        """The matrix A(x) that carries inside what happens on a face at the start."""
        start = self.values.start
        return lambda x: self.of_space(self.A(jnp.append(x, start)))

    def _set_rate(self) -> None:
        """The best one for the equations of the problem at sampled points."""
        points = self.domain.interior_points(RATE_POINTS, seed=18)
        self.rate = best_rate(np.asarray(self.of_space(self.family(points).A)))

    def _find_interfaces(self) -> None:
        """Those that nobody declared, as far as the formulas of the data show them."""
        found = found_interfaces(list(self.data().values()), self.domain, self.interfaces)
        self.found_interfaces = len(found)
        self.interfaces = (*self.interfaces, *check_interfaces(found, self.domain))

    # One point

    @abc.abstractmethod
    def linearise(self, x: Array, jet: Jet) -> Coefficients:
        """The equation frozen at one point and a state there."""

    def at(self, x: Array, *control: Array) -> Coefficients:
        """The linear equation of one control at one point, for kinds with controls; that of a
        linear problem."""
        raise NotImplementedError(f"{type(self).__name__} is not made of equations with controls.")

    @abc.abstractmethod
    def residual(self, x: Array, jet: Jet) -> Array:
        """How far the state is from solving the equation, at one point, without the multiplier."""

    # Many points

    @abc.abstractmethod
    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, **choices: Any
    ) -> Coefficients:
        """The equation frozen at points (N, d); without a state, at a start of the kind's own."""

    def family(self, points: np.ndarray) -> Coefficients:
        """(A sample of) all linear equations that the problem is made of, one after the other: one,
        or the start where they depend on the answer."""
        return self.coefficients(points)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.domain!r})"

    @abc.abstractmethod
    def data(self) -> dict[str, Callable[[Array], Array]]:
        """Everything the user gave about the interior, as functions of one point: where these jump,
        an interface is needed."""

    def policy(self, points: np.ndarray, jet: Jet, scaled: bool = True) -> np.ndarray | None:
        """The best controls (N, …) at points (N, d) and a state there; None for kinds without."""
        return None

    def stops(self, points: np.ndarray, jet: Jet) -> np.ndarray | None:
        """Where stopping is best, at points and a state there; None for kinds without."""
        return None

    def answered(self, points: Any, values: Any) -> Any:
        """What is answered for the values of an ansatz at points."""
        return values

    def margin(self, points: np.ndarray, jet: Jet) -> np.ndarray:
        """How much the best control is better than the worst one at points; zero for kinds
        without."""
        return np.zeros(len(points))

    def contraction(self) -> float:
        """The factor of a fixed point that `coefficients(…, contracting=True)` freezes, for kinds
        that say they have one; it converges from anywhere where it is less than one."""
        return math.inf

    def blended(self, share: float) -> Self:
        """A problem on the way to data that span far, for kinds with a `spread`."""
        raise NotImplementedError(f"{type(self).__name__} is not approached in stages.")

    @property
    def rough(self) -> Any:
        """Where the data leave no room for bounded second derivatives, and why; None where nothing
        speaks against them."""
        return None

    def warn(self) -> None:
        """What is better known before a long solve."""
        return None

    def check_claimed_epsilon(self, sampled: float, point: np.ndarray) -> None:
        """Refuse a claimed lower bound of ε that a sampled point contradicts."""
        if self.epsilon is not None and sampled < self.epsilon - 1e-9:
            raise CoefficientError(
                f"epsilon = {self.epsilon} is claimed, but ε = {sampled:.6g} at x = {show(point)}: "
                "correct it or leave it out."
            )

    # A value that does not change: an answer, its certificate and what is compiled for them speak
    # of the data as they were.

    def _closed(self) -> None:
        self.marks = fingerprints(self)

    def labelled(self, name: str | None = None, source: dict[str, Any] | None = None) -> Self:
        """The same problem under another name, or one that says where it can be had again."""
        other = self.__copy__()
        vars(other).update({"name": name or self.name, "source": source or self.source})
        return other

    def _repr_html_(self) -> str:
        # Pages are made of these.
        from cordes.reports.pages.notebook import notebook_html

        return notebook_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """A problem of the gallery or of TOML goes by its source, any other by its arguments."""
        # Files and galleries are made of problems.
        from cordes.gallery.names import from_source

        if self.source is not None:
            return from_source, (self.source, self.name)
        return super().__reduce__()
