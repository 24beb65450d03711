"""A linear parabolic equation in non-divergence form, u_t = A:D²u + b·∇u - cu - f with initial
values and u = g on the boundary of the domain at all times."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import Array

from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet
from cordes.problems.checks import CHECK_POINTS, warn_about_jumps
from cordes.problems.coefficients import Coefficients, at_points, check_elliptic, checked_sample
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import with_matrices


class Parabolic(AbstractProblem):
    """u_t = A:D²u + b·∇u - cu - f in `domain` for 0 < t < `horizon`, u = `initial` at t = 0 and u =
    g on the boundary; with `terminal` in place of `initial` u_t + A:D²u + b·∇u - cu = f, which runs
    backwards from t = `horizon`.

    Coefficients, g, interfaces and exact are functions of (x, t), `initial` and `terminal` of x,
    written with jax.numpy; constants are allowed everywhere. `interfaces` are functions whose zero
    sets are where D²u may jump.

    Checked when made, at sampled points and times: shapes, traceability, NaN, symmetry and
    ellipticity of A, and that the initial values and g meet on the boundary. Jumps of A, b, c, f
    away from the interfaces are looked for and warned about. Assumed: the coefficients are bounded
    and measurable, the initial values are in H¹.
    """

    linear = True
    b: Callable[..., Array]
    c: Callable[..., Array]
    f: Callable[..., Array]

    def __init__(
        self,
        domain: AbstractDomain,
        horizon: float,
        A: Any,
        f: Any,
        b: Any = None,
        c: Any = None,
        g: Any = 0.0,
        initial: Any = None,
        terminal: Any = None,
        interfaces: Sequence[Callable[..., Array]] = (),
        boundary: Any = None,
        exact: Callable[..., Array] | None = None,
        *,
        name: str | None = None,
    ):
        given = g, initial, terminal
        place = interfaces, exact, name or "parabolic"
        clock = self._place_in_time(domain, horizon, given, *place, boundary)
        (self.A, self.constant_A), (self.b, constant_b), (self.c, constant_c), (self.f, _) = (
            clock.operator(A, b, c, f)
        )
        center = np.asarray(self.domain.center)
        self.has_drift = not constant_b or bool(np.any(self.b(center)[:-1] != 0))
        self.has_reaction = not constant_c or bool(self.c(center) != 0)
        self.constant_coefficients = self.constant_A and constant_b and constant_c
        self._compiled = at_points(self.linearise)
        self._check()

    def _check(self) -> None:
        d = self.domain.dimension
        count = with_matrices(CHECK_POINTS, d)
        points = self.domain.interior_points(count, seed=11)
        for name, shape in (("A", (d, d)), ("b", (d,)), ("c", ()), ("f", ())):
            found = checked_sample(name, getattr(self, name), shape, points)
            if name == "A":
                check_elliptic("A", self.of_space(found), points)
        self._set_rate()
        warn_about_jumps(self.data(), self.domain, self.interfaces)

    def data(self) -> dict[str, Callable[[Array], Array]]:
        return {"A": self.A, "b": self.b, "c": self.c, "f": self.f}

    def linearise(self, x: Array, jet: Jet | None = None) -> Coefficients:
        """The equation frozen at one point of space and time."""
        return Coefficients(self.A(x), self.b(x), self.c(x), self.f(x))

    def at(self, x: Array, *control: Array) -> Coefficients:
        return self.linearise(x)

    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, **choices: Any
    ) -> Coefficients:
        """The equation at points (N, d + 1), as NumPy arrays."""
        return self._compiled(points)

    def residual(self, x: Array, jet: Jet) -> Array:
        """Lu - f - u_t at one point, without the multiplier."""
        return self.linearise(x).defect(jet)
