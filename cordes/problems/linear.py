"""A linear elliptic equation in non-divergence form, A:D²u + b·∇u - cu = f with u = g on the
boundary."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, contract
from cordes.problems.checks import (
    CHECK_POINTS,
    CHECKED_NUMBERS,
    check_boundary_data,
    check_domain,
    check_epsilon,
    check_interfaces,
    warn_about_jumps,
)
from cordes.problems.coefficients import (
    as_function,
    check_elliptic,
    check_exact,
    check_finite,
    check_shape,
    sample,
)
from cordes.problems.problem import AbstractProblem, Coefficients
from cordes.runtime.blocks import in_blocks


class Linear(AbstractProblem):
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
    ):
        check_domain(domain)
        d = domain.dimension
        self.domain = domain
        self.name = name or "linear"
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

    def at(self, x: Array, *control: Array) -> Coefficients:
        return self.linearise(x)

    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, **choices: Any
    ) -> Coefficients:
        """The equation at points (N, d), as NumPy arrays."""
        return in_blocks(self._compiled, (points,))

    def family(self, points: np.ndarray) -> Coefficients:
        """All linear equations that the problem is made of: one."""
        return self.coefficients(points)

    def residual(self, x: Array, jet: Jet) -> Array:
        """Lu - f at one point, without the multiplier."""
        A, b, c, f = self.linearise(x)
        return contract(A, jet.hessian) + jnp.dot(b, jet.gradient) - c * jet.value - f

    def __repr__(self) -> str:
        return f"Linear({self.name!r}, {self.domain!r})"
