"""Equations in time as equations on a cylinder, where everything becomes one linear equation again:
u_t = A:D²u + b·∇u - cu - f is A:D²u + (b, -1)·(∇u, u_t) - cu = f in the coordinates z = (x, t),
with a matrix that has no row for the time.

A problem that runs backwards from terminal values is turned round here, once, when it is made: from
then on t is the time since the start, T - t of the user. What the user wrote as functions of (x, t)
are functions of z for all others.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import minimize_scalar

from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import FaceData, FaceDataInTime
from cordes.errors import CoefficientError, shown
from cordes.jet import Jet
from cordes.problems.boundary_conditions import check_data
from cordes.problems.coefficients import as_function, check_finite, check_shape, sample
from cordes.runtime.plain import show

# Points at which values are compared where the bottom meets the sides, and the difference that
# rounding explains, relative to the values.
MEETING, MEETING_SEED, MISMATCH = 400, 41, 1e-9
# Times at which data of faces are compared where the faces meet.
TIMES = 3


class Values(NamedTuple):
    """What is given on the boundary of a cylinder that starts at `start`: `initial(x)` on its
    bottom, `lateral(x, t)` on its sides. Called with a point of the cylinder's boundary, the one of
    the two that holds there. `carried(x, t)` takes the initial values through time, None where
    they stay as they are."""

    initial: Callable[..., Array]
    lateral: Callable[..., Array]
    start: float
    carried: Callable[[Array, Array], Array] | None = None

    def __call__(self, z: Array) -> Array:
        x, t = z[:-1], z[-1]
        return jnp.where(t <= self.start, self.initial(x), self.lateral(x, t))


class Clockwork(NamedTuple):
    """The cylinder of a problem, and whether the user's time runs the other way."""

    domain: Cylinder
    backwards: bool

    def time(self, t: Any) -> Any:
        """The user's time, from the time since the start and the other way round."""
        return self.domain.end - t if self.backwards else t

    def turned(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the user's (x, t, …) as one of (z, …)."""
        return lambda z, *more: function(z[:-1], self.time(z[-1]), *more)

    def turned_maximiser(self, maximiser: Callable[..., Any]) -> Callable[[Array, Jet], Any]:
        """A user's function of (x, t, jet), the jet in space, as one of (z, jet)."""

        def turned(z: Array, jet: Jet) -> Any:
            in_space = Jet(jet.value, jet.gradient[:-1], jet.hessian[:-1, :-1])
            return maximiser(z[:-1], self.time(z[-1]), in_space)

        return turned

    def function(
        self, name: str, given: Any, shape: tuple[int, ...], signature: str = "(x, t)"
    ) -> tuple[Callable[..., Array], bool]:
        """What a user gave, as a function of (z, …), and whether it is constant."""
        found, constant = as_function(name, given, shape, signature)
        return (found if constant else self.turned(found)), constant

    def operator(
        self, A: Any, b: Any, c: Any, f: Any, signature: str = "(x, t)"
    ) -> list[tuple[Callable[..., Array], bool]]:
        """A, b, c, f on the cylinder: the matrix with a row of zeros, the drift with -1."""
        d = self.domain.base.dimension
        if isinstance(A, (int, float)):
            A = A * np.eye(d)
        b, c = (np.zeros(d) if b is None else b), (0.0 if c is None else c)
        matrix, drift, reaction, source = (
            self.function(name, given, shape, signature)
            for name, given, shape in (("A", A, (d, d)), ("b", b, (d,)), ("c", c, ()), ("f", f, ()))
        )

        def padded(z: Array, *more: Any) -> Array:
            return with_row(matrix[0](z, *more))

        def with_time(z: Array, *more: Any) -> Array:
            return jnp.append(drift[0](z, *more), -1.0)

        for name, (function, constant), shape in (
            ("A", matrix, (d, d)),
            ("b", drift, (d,)),
        ):
            if not constant:
                self._check(name, function, shape, signature)
        return [(padded, matrix[1]), (with_time, drift[1]), reaction, source]

    def _check(self, name: str, function: Callable, shape: tuple[int, ...], signature: str) -> None:
        """Its own shape, before it is padded."""
        if "a" not in signature.strip("()").replace(" ", "").split(","):
            check_shape(name, function, shape, jnp.asarray(self.domain.center))


def clockwork(
    domain: AbstractDomain, horizon: Any, initial: Any, terminal: Any
) -> tuple[Clockwork, Any]:
    """The cylinder, and the initial values; what was given of the two times is checked."""
    number = isinstance(horizon, Real) and not isinstance(horizon, bool)
    if not (number and 0 < float(horizon) < math.inf):
        raise CoefficientError(
            f"horizon = {shown(horizon)}: the time at which the problem ends is a positive number."
        )
    if (initial is None) == (terminal is None):
        both = "both are" if initial is not None else "neither is"
        raise CoefficientError(
            f"initial and terminal: {both} given. Pass initial=… for u_t = A:D²u + b·∇u - cu - f, "
            "or terminal=… for u_t + A:D²u + b·∇u - cu = f, which runs backwards."
        )
    backwards = terminal is not None
    time = f"{float(horizon):.4g} − t" if backwards else "t"
    cylinder = Cylinder(domain, float(horizon), time=time)
    return Clockwork(cylinder, backwards), (terminal if backwards else initial)


def refuse_times(initial: Any, terminal: Any) -> None:
    """Values at a time say nothing where there is no time."""
    given = [
        name for name, value in (("initial", initial), ("terminal", terminal)) if value is not None
    ]
    if given:
        raise CoefficientError(
            f"{given[0]} is given, but no horizon: pass horizon=T for a problem in time."
        )


def values_of(clock: Clockwork, g: Any, first: Any) -> tuple[Values, bool]:
    """The values on the boundary of the cylinder, checked; and whether all of them are zero."""
    word = "terminal" if clock.backwards else "initial"
    base, start = clock.domain.base, clock.domain.start
    initial, constant = as_function(word, first, ())
    if isinstance(g, FaceData):
        nothing = constant and g.zero and bool(initial() == 0)
        return _with_conditions(clock, g, initial, word), nothing
    side, fixed = as_function("g", g, (), "(x, t)")
    lateral = side if fixed else (lambda x, t: side(x, clock.time(t)))
    points = base.interior_points(1000, seed=12)
    check_shape(word, initial, (), jnp.asarray(points[0]))
    check_finite(word, sample(initial, points), points)
    check_shape("g", lateral, (), jnp.asarray(points[0]), jnp.asarray(start))
    values = Values(initial, lateral, start)
    _check_sides(clock.domain, values)
    _check_meeting(base, values, word)
    zero = constant and fixed and bool(initial() == 0) and bool(side() == 0)
    return values, zero


def _with_conditions(
    clock: Clockwork, g: FaceData, initial: Callable[..., Array], word: str
) -> Values:
    """The same where more than values is given on the sides of a box, at each time what fits
    together; the initial values fulfil it at the start."""
    domain = g.domain
    functions = {
        face: lambda x, t, own=own: own(x, clock.time(t)) for face, own in g.functions.items()
    }
    lateral, cylinder = FaceDataInTime(domain, functions), clock.domain
    points = domain.interior_points(1000, seed=12)
    check_shape(word, initial, (), jnp.asarray(points[0]))
    check_finite(word, sample(initial, points), points)
    for t in np.linspace(cylinder.start, cylinder.end, TIMES):
        check_data(lateral.at(t))
    on_faces, normals = domain.boundary_points(MEETING, MEETING_SEED)
    known, slope, value = domain.condition_at(normals)

    def both(x: Any) -> Any:
        return jax.value_and_grad(lambda y: jnp.asarray(initial(y), float) + 0.0 * y[0])(x)

    values, slopes = (np.asarray(part) for part in jax.jit(jax.vmap(both))(jnp.asarray(on_faces)))
    one = slope * np.sum(slopes * normals, axis=1) + value * values
    other = lateral.at(cylinder.start).on(on_faces, normals)
    scale = max(float(np.max(np.abs(part))) for part in (values, slopes, other))
    gap = np.where(known, np.abs(one - other), 0.0)
    worst = int(np.argmax(gap))
    if gap[worst] > MISMATCH * scale:
        raise CoefficientError(
            f"{word} does not fulfil the conditions on the boundary: at x = "
            f"{show(on_faces[worst])} it gives {one[worst]:.6g} and {other[worst]:.6g} is wanted. "
            f"Take data equal to those of {word} at that time, and let them change from there."
        )
    return Values(initial, lateral, cylinder.start)


def _check_sides(domain: Cylinder, values: Values) -> None:
    points, _ = domain.boundary_points(1000, seed=13)
    found = np.asarray(jax.jit(jax.vmap(values))(jnp.asarray(points)), float)
    check_finite("g", found, points, " of the boundary")


def _check_meeting(base: AbstractDomain, values: Values, word: str) -> None:
    """Initial values and those on the sides must meet: else u jumps, and no theorem of energy nor
    any continuous function has such values."""
    x, _ = base.boundary_points(MEETING, MEETING_SEED)
    if base.vertices is not None:
        x = np.concatenate([x, base.vertices])
    at = jnp.asarray(x)
    one = np.asarray(jax.jit(jax.vmap(lambda y: values.initial(y) + 0.0 * y[0]))(at), float)
    other = np.asarray(
        jax.jit(jax.vmap(lambda y: values.lateral(y, values.start) + 0.0 * y[0]))(at), float
    )
    inside = np.asarray(
        jax.jit(jax.vmap(lambda y: values.initial(y) + 0.0 * y[0]))(
            jnp.asarray(base.interior_points(MEETING, MEETING_SEED))
        )
    )
    scale = max(float(np.max(np.abs(part))) for part in (one, other, inside))
    worst = int(np.argmax(np.abs(one - other)))
    if abs(one[worst] - other[worst]) > MISMATCH * scale:
        raise CoefficientError(
            f"{word} and g do not meet: at x = {show(x[worst])} of the boundary {word} is "
            f"{one[worst]:.6g} and g is {other[worst]:.6g}. u would jump there, and no bound of "
            f"its error exists: take g equal to {word} at that time, and let it change from there."
        )


def with_row(matrix: Array) -> Array:
    """A row and a column of zeros for the time."""
    d = matrix.shape[-1]
    wide = jnp.concatenate([matrix, jnp.zeros((d, 1), matrix.dtype)], axis=1)
    return jnp.concatenate([wide, jnp.zeros((1, d + 1), matrix.dtype)], axis=0)


def best_rate(A: np.ndarray) -> float:
    """k for which the matrices diag(A, k), one dimension larger, are nearest to a multiple of the
    identity: the largest smallest (tr A + k)²/(|A|² + k²). It weighs the derivative by time against
    the second derivatives, 1/ω in the theorems."""
    trace, square = np.trace(A, axis1=1, axis2=2), np.sum(A**2, axis=(1, 2))
    scale = float(np.median(np.sqrt(square)))
    size = trace / scale, square / scale**2

    def worst(logarithm: float) -> float:
        k = math.exp(logarithm)
        return -float(np.min((size[0] + k) ** 2 / (size[1] + k**2)))

    grid = np.linspace(-12, 12, 97)
    near = grid[int(np.argmin([worst(value) for value in grid]))]
    found = minimize_scalar(
        worst, bounds=(near - 0.3, near + 0.3), method="bounded", options={"xatol": 1e-10}
    )
    return scale * math.exp(found.x if found.fun <= worst(near) else near)
