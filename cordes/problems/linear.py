"""A linear elliptic equation in non-divergence form, A:D²u + b·∇u - cu = f with u = g on the
boundary."""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import Walled
from cordes.errors import CoefficientError, shown
from cordes.jet import Jet
from cordes.problems.boundary_conditions import refuse_unknown_constant
from cordes.problems.checks import CHECK_POINTS, CHECKED_NUMBERS, warn_about_jumps
from cordes.problems.coefficients import (
    Coefficients,
    at_points,
    check_elliptic,
    checked_sample,
    coefficient_functions,
)
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import with_matrices

# Of which the eigenvalues are looked at, however many dimensions there are.
FEWEST_MATRICES = 16


class Linear(AbstractProblem):
    """A:D²u + b·∇u - cu = f in `domain`, u = g on its boundary, or what `boundary` says: one of
    `cordes.Dirichlet(g)`, `Neumann(h)`, `Robin(kappa, h)` and `Periodic()`, or a dict from the
    names of its pieces (`domain.pieces`) to these.

    Coefficients are constants or functions of one point written with jax.numpy. `interfaces` are
    functions whose zero sets are where D²u may jump. `epsilon` is a lower bound of the Cordès ε
    that you vouch for. `exact`, if known, is used to measure errors and for nothing else.

    Checked when made, at sampled points: shapes, traceability, NaN, symmetry and ellipticity of A,
    continuity of g on the boundary. Jumps of A, b, c, f away from the interfaces are looked for and
    warned about. Assumed: the coefficients are bounded and measurable, g is the trace of an H²
    function.
    """

    linear = True
    needs_convex = False
    follows_kinks = True
    b: Callable[..., Array]
    c: Callable[..., Array]
    f: Callable[..., Array]

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
        boundary: Any = None,
        *,
        name: str | None = None,
    ):
        self._place(domain, g, interfaces, exact, name or "linear", boundary)
        (self.A, self.constant_A), (self.b, constant_b), (self.c, constant_c), (self.f, _) = (
            coefficient_functions(domain.dimension, A, b, c, f)
        )
        self.has_drift = not constant_b or bool(np.any(self.b() != 0))
        self.has_reaction = not constant_c or bool(self.c() != 0)
        self.constant_coefficients = self.constant_A and constant_b and constant_c
        refuse_unknown_constant(self.domain, self.has_reaction)
        self.free_constant = isinstance(self.domain, Walled) and (
            self.domain.free and not self.has_reaction
        )
        known = isinstance(epsilon, Real) and 0 < epsilon <= 1
        if epsilon is not None and not known:
            raise CoefficientError(
                f"epsilon = {shown(epsilon)}: a lower bound of the Cordès ε lies in (0, 1]."
            )
        self.epsilon = None if epsilon is None else float(epsilon)
        self._compiled = at_points(self.linearise)
        self._check()

    def _check(self) -> None:
        d = self.domain.dimension
        count = int(np.clip(CHECKED_NUMBERS // d**2, 100, CHECK_POINTS))
        points = self.domain.interior_points(count, seed=11)
        # One matrix is like the other where they are constant, and eigenvalues of large ones take
        # seconds.
        looked = points[: 1 if self.constant_A else max(FEWEST_MATRICES, CHECKED_NUMBERS // d**2)]
        for part in np.array_split(looked, -(-len(looked) // with_matrices(len(looked), d))):
            check_elliptic("A", checked_sample("A", self.A, (d, d), part), part)
        for name, shape in (("b", (d,)), ("c", ()), ("f", ())):
            checked_sample(name, getattr(self, name), shape, points)
        self._check_place()
        self._find_interfaces()
        warn_about_jumps(self.data(), self.domain, self.interfaces)

    def data(self) -> dict[str, Callable[[Array], Array]]:
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
        return self._compiled(points)

    def residual(self, x: Array, jet: Jet) -> Array:
        """Lu - f at one point, without the multiplier."""
        return self.linearise(x).defect(jet)
