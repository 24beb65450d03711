"""A linear elliptic equation in non-divergence form, A:D²u + b·∇u - cu = f with u = g on the
boundary."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError
from cordes.jet import Jet, contract
from cordes.problems.coefficients import (
    as_function,
    check_elliptic,
    check_exact,
    check_finite,
    check_shape,
    sample,
    show,
)
from cordes.problems.jumps import find_jumps, straight
from cordes.runtime.blocks import in_blocks

CHECK_POINTS = 2000
# Entries of matrices that are looked at, and that are kept for each step along a chord: in many
# dimensions there are fewer points and chords.
CHECKED_NUMBERS, CHORD_NUMBERS = 2_000_000, 200_000


class UndeclaredJumpWarning(UserWarning):
    """A coefficient jumps where no interface was declared."""


class Coefficients(NamedTuple):
    """A linear equation at one point (or, with leading axes, at many)."""

    A: Array
    b: Array
    c: Array
    f: Array


def cordes_multiplier(A: np.ndarray, delta: float = 0.0) -> np.ndarray:
    """γ = tr A / |A|² of matrices (..., d, d): it brings γA as near to the identity as a scalar
    can. The paper adds a small δ to the denominator."""
    return np.trace(A, axis1=-2, axis2=-1) / (np.sum(A**2, axis=(-2, -1)) + delta)


class Linear:
    """A:D²u + b·∇u - cu = f in `domain`, u = g on its boundary.

    Coefficients are constants or functions of one point written with jax.numpy. `interfaces` are
    functions whose zero sets are where D²u may jump. `epsilon` is a lower bound of the Cordès ε
    that you vouch for. `exact`, if known, is used to measure errors and for nothing else.

    Checked when made, at sampled points: shapes, traceability, NaN, symmetry and ellipticity of A,
    continuity of g on the boundary. Jumps of A, b, c, f away from the interfaces are looked for and
    warned about. Assumed: the coefficients are bounded and measurable, g is the trace of an H²
    function.
    """

    linear = True
    # The norm that `tol` bounds.
    tolerance_norm = "rms"

    def __init__(
        self,
        domain: AbstractDomain,
        A: Any,
        f: Any,
        b: Any = None,
        c: Any = None,
        g: Any = 0.0,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        epsilon: float | None = None,
        exact: Callable[[Array], Array] | None = None,
        *,
        name: str | None = None,
        source: dict | None = None,
    ):
        check_domain(domain)
        d = domain.dimension
        self.domain = domain
        self.name = name or "linear"
        self.source = source
        if isinstance(A, (int, float)):
            A = A * np.eye(d)
        self.A, self.constant_A = as_function("A", A, (d, d))
        self.b, constant_b = as_function("b", np.zeros(d) if b is None else b, (d,))
        self.c, constant_c = as_function("c", 0.0 if c is None else c, ())
        self.f, _ = as_function("f", f, ())
        self.g, constant_g = as_function("g", g, ())
        self.zero_g = constant_g and bool(self.g() == 0)
        self.has_drift = not constant_b or bool(np.any(self.b() != 0))
        self.has_reaction = not constant_c or bool(self.c() != 0)
        self.constant_coefficients = self.constant_A and constant_b and constant_c
        self.interfaces = check_interfaces(interfaces, domain)
        self.epsilon = check_epsilon(epsilon)
        self.exact = exact
        self._compiled = jax.jit(jax.vmap(self.linearise))
        self._check()

    def _check(self) -> None:
        d = self.domain.dimension
        points = self.domain.interior_points(
            int(np.clip(CHECKED_NUMBERS // d**2, 100, CHECK_POINTS)), seed=11
        )
        for name, shape in (("A", (d, d)), ("b", (d,)), ("c", ()), ("f", ())):
            function = getattr(self, name)
            check_shape(name, function, shape, jnp.asarray(points[0]))
            check_finite(name, sample(function, points), points)
        check_elliptic("A", sample(self.A, points), points)
        check_boundary_data(self.g, self.domain)
        check_exact(self.exact, jnp.asarray(points[0]))
        warn_about_jumps(self.data(), self.domain, self.interfaces)

    def data(self) -> dict[str, Callable[[Array], Array]]:
        """Everything the user gave about the interior, as functions of one point: where these jump,
        an interface is needed."""
        return {"A": self.A, "b": self.b, "c": self.c, "f": self.f}

    def linearise(self, x: Array, jet: Jet | None = None) -> Coefficients:
        """The equation frozen at one point; a linear one does not depend on the state."""
        return Coefficients(self.A(x), self.b(x), self.c(x), self.f(x))

    def coefficients(self, points: np.ndarray) -> Coefficients:
        """The equation at points (N, d), as NumPy arrays."""
        return in_blocks(self._compiled, (points,))

    def family(self, points: np.ndarray) -> Coefficients:
        """All linear equations that the problem is made of: one."""
        return self.coefficients(points)

    def residual(self, x: Array, jet: Jet) -> Array:
        """Lu - f at one point, without the multiplier."""
        A, b, c, f = self.linearise(x)
        return contract(A, jet.hessian) + jnp.dot(b, jet.gradient) - c * jet.value - f

    def check_claimed_epsilon(self, sampled: float, point: np.ndarray) -> None:
        """Refuse a claimed lower bound of ε that a sampled point contradicts."""
        if self.epsilon is not None and sampled < self.epsilon - 1e-9:
            raise CoefficientError(
                f"epsilon = {self.epsilon} is claimed, but ε = {sampled:.6g} at x = "
                f"{show(point)}: correct it or leave it out."
            )

    def __repr__(self) -> str:
        return f"Linear({self.name!r}, {self.domain!r})"


def check_domain(domain: Any) -> None:
    if not isinstance(domain, AbstractDomain):
        raise CoefficientError(
            f"domain is {domain!r}: pass a Box, Ball, Ellipsoid, Polygon or a subclass of the "
            "abstract domain."
        )


def check_epsilon(epsilon: float | None) -> float | None:
    if epsilon is not None and not 0 < float(epsilon) <= 1:
        raise CoefficientError(
            f"epsilon = {epsilon!r}: a lower bound of the Cordès ε lies in (0, 1]."
        )
    return None if epsilon is None else float(epsilon)


def check_interfaces(
    interfaces: Sequence[Callable], domain: AbstractDomain
) -> tuple[Callable[[Array], Array], ...]:
    """Each interface is a scalar function of one point with a finite jet that changes sign in the
    domain."""
    if callable(interfaces):
        raise CoefficientError("interfaces is a function: pass a list of functions, [phi].")
    points = domain.interior_points(CHECK_POINTS, seed=12)
    for k, phi in enumerate(interfaces):
        name = f"interfaces[{k}]"
        if not callable(phi):
            raise CoefficientError(
                f"{name} is {phi!r}: an interface is a function of one point whose zero set is "
                "where D²u may jump."
            )
        check_shape(name, phi, (), jnp.asarray(points[0]))
        values = sample(phi, points)
        check_finite(name, values, points)
        check_finite(
            f"the gradient of {name}",
            sample(jax.grad(lambda x, phi=phi: jnp.asarray(phi(x), float)), points),
            points,
        )
        if np.all(values > 0) or np.all(values < 0):
            raise CoefficientError(
                f"{name} does not change sign in the domain: its values lie in "
                f"[{values.min():.6g}, {values.max():.6g}] at {CHECK_POINTS} points. Leave it "
                "out."
            )
    return tuple(interfaces)


def check_boundary_data(g: Callable, domain: AbstractDomain) -> None:
    """g is finite and continuous on the boundary; paths run along it, across corners and edges."""
    points, _ = domain.boundary_points(500, seed=13)
    check_shape("g", g, (), jnp.asarray(points[0]))
    check_finite("g", sample(g, points), points, " of the boundary")
    if domain.dimension == 1:
        return  # Two points: nothing runs along them.
    generator = np.random.default_rng(14)
    directions = generator.standard_normal((64, domain.dimension))
    starts, ends = directions, np.roll(directions, 1, axis=0)
    if domain.vertices is not None:
        # Every corner is the start of a path along each of its two edges, so that a value at the
        # corner alone is seen too.
        corners = domain.vertices - domain.center
        following = np.roll(corners, -1, axis=0)
        starts = np.concatenate([starts, corners, following])
        ends = np.concatenate([ends, (corners + following) / 2, (corners + following) / 2])
    evaluate = jax.jit(jax.vmap(g))

    def values_at(directions: np.ndarray) -> np.ndarray:
        return np.asarray(evaluate(domain.boundary_at(directions)), dtype=np.float64)

    for jump in find_jumps(values_at, starts, ends, straight):
        raise CoefficientError(
            f"g is not continuous on the boundary: near {show(domain.boundary_at(jump.point))} it "
            f"jumps from {show(jump.before[0])} to {show(jump.after[0])}. No function in H² has "
            "such boundary values: smooth g there, or split the problem."
        )


def warn_about_jumps(
    functions: dict[str, Callable], domain: AbstractDomain, interfaces: Sequence[Callable]
) -> None:
    """Bisect along random chords; a jump that no declared interface explains is reported once for
    each coefficient."""
    chords = max(12, min(96, CHORD_NUMBERS // domain.dimension**2))
    points = domain.interior_points(2 * chords, seed=15)
    # Chords join points on the same side of every interface: each path shows one jump at most, and
    # a declared one must not hide another.
    sides = np.stack([np.zeros(len(points)), *(sample(phi, points) > 0 for phi in interfaces)])
    points = points[np.lexsort(sides)]
    starts, ends = points[0::2], points[1::2]
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))
    for name, function in functions.items():
        evaluate = jax.jit(jax.vmap(function))
        for jump in find_jumps(
            lambda points, evaluate=evaluate: np.asarray(evaluate(points)), starts, ends, straight
        ):
            if any(
                abs(float(phi(jump.point)))
                <= 1e-6 * size * (1e-9 + float(jnp.linalg.norm(jax.grad(phi)(jump.point))))
                for phi in interfaces
            ):
                continue
            change = np.flatnonzero(
                np.abs(jump.after - jump.before) > 0.5 * np.max(np.abs(jump.after - jump.before))
            )[0]
            warnings.warn(
                f"{name} jumps near x = {show(jump.point)} from {jump.before[change]:.6g} to "
                f"{jump.after[change]:.6g} and no interface is declared there. Smooth features "
                "converge slowly across a jump: pass interfaces=[phi] with phi = 0 on it.",
                UndeclaredJumpWarning,
                stacklevel=4,
            )
            break
