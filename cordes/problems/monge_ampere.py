"""The Monge–Ampère equation det D²u = f ≥ 0 with u convex and u = g on the boundary, in any
dimension.

Frozen at a state with Hessian H, Newton's method gives the linear equation cof(H):D²u = f + (d-1)
det H. It is elliptic where H is positive definite; where it is not, H is replaced by the nearest
matrix H₊ whose eigenvalues are at least a small positive number, and det(H₊) + cof(H₊):(D²u - H₊) =
f is solved: as long as one eigenvalue alone is raised, its fixed points are still solutions of det
D²u = f, but now every step is elliptic.

In two dimensions `form="convex"` freezes inf_A (A:D²u - 2√(f det A)) = 0 over A ≥ 0 with tr A = 1
instead: the equation as one of Hamilton, Jacobi and Bellman, which only convex functions solve, and
whose steps are elliptic from any state. `form="plain"` is Newton's method as it is in textbooks,
for comparison.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError, OptionError, unknown
from cordes.jet import Jet
from cordes.problems.checks import CHECK_POINTS, warn_about_jumps
from cordes.problems.coefficients import (
    Coefficients,
    as_function,
    at_points,
    at_states,
    checked_sample,
    sample,
)
from cordes.problems.kinks.boundary_curvature import Rough, rough_point
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

FORMS = ("determinant", "convex", "plain")
# Eigenvalues are raised to this share of f^(1/d), or of its mean over the domain times SMALL where
# f vanishes.
FLOOR, SMALL = 1e-2, 1e-2


class ConvexityWarning(UserWarning):
    """No convex function takes the boundary values."""


class UnboundedHessianWarning(ConvexityWarning):
    """No convex function with bounded second derivatives takes the boundary values."""


class MongeAmpere(AbstractProblem):
    """det D²u = f in `domain`, u convex, u = g on its boundary.

    Checked when made, at sampled points: shapes, traceability, NaN, f ≥ 0, continuity of g.
    Assumed: f is integrable, and there is a convex function with these boundary values; a solve
    that ends without convexity says so (`convexity_lost`). A solve warns where f and g leave no
    room for bounded second derivatives (`UnboundedHessianWarning`).
    """

    convex = True
    residual_name, frozen_name = "det D²u − f", "the cofactors of D²u"
    tolerance_norm = "Linf"
    outer_options = frozenset({"outer", "outer_steps", "form", "damping"})
    paper_options: ClassVar = {"warm_up": 1000}

    def __init__(
        self,
        domain: AbstractDomain,
        f: Any,
        g: Any = 0.0,
        interfaces: Sequence[Callable[[Array], Array]] = (),
        exact: Callable[[Array], Array] | None = None,
        *,
        name: str | None = None,
    ):
        self._place(domain, g, interfaces, exact, name or "monge-ampere")
        self.f, _ = as_function("f", f, ())
        self.source_density = at_points(lambda x: jnp.asarray(self.f(x), float))
        self._compiled = {
            form: at_states(lambda x, jet, t, form=form: self.linearise(x, jet, form, t))
            for form in FORMS
        }
        self._check()

    def _check(self) -> None:
        points = self.domain.interior_points(CHECK_POINTS, seed=11)
        values = checked_sample("f", self.f, (), points)
        if np.min(values) < 0:
            i = int(np.argmin(values))
            raise CoefficientError(
                f"f is negative: f({show(points[i])}) = {values[i]:.6g}. The determinant of D²u "
                "is never negative for a convex u: check the sign and the formula of f, or use "
                "jnp.maximum(f, 0) if rounding is the cause."
            )
        self._check_place()
        self.impossible = self._dented_edge()
        mean = float(np.mean(values ** (1 / self.domain.dimension)))
        self.curvature = mean or self._size_of_curvature()
        self._find_interfaces()
        warn_about_jumps(self.data(), self.domain, self.interfaces)

    @property
    def has_convex_form(self) -> bool:
        return self.domain.dimension == 2

    def _dented_edge(self) -> bool:
        """Along a straight edge or in a flat face g must be convex, or no convex function has these
        values; a warning says where it is not."""
        starts, ends = _chords_of_the_boundary(self.domain)
        if not len(starts):
            return False
        middle = (starts + ends) / 2
        low, high, at_middle = (sample(self.g, points) for points in (starts, ends, middle))
        excess = at_middle - (low + high) / 2
        i = int(np.argmax(excess))
        if excess[i] <= 1e-9 * max(float(np.max(np.abs(np.concatenate([low, high])))), 1e-300):
            return False
        warnings.warn(
            f"g is not convex along the boundary: g = {at_middle[i]:.6g} at {show(middle[i])}, "
            f"but {low[i]:.6g} and {high[i]:.6g} at {show(starts[i])} and {show(ends[i])} on the "
            "same edge. No convex function takes these values: replace g by a function that is "
            "convex along each edge.",
            ConvexityWarning,
            stacklevel=4,
        )
        return True

    @functools.cached_property
    def rough(self) -> Rough | None:
        return None if self.impossible else rough_point(self.domain, self.f, self.g)

    def warn(self) -> None:
        if self.rough is not None:
            warnings.warn(self.rough.sentence, UnboundedHessianWarning, stacklevel=3)

    def _size_of_curvature(self) -> float:
        """A size for D²u where f vanishes everywhere: that of the boundary values over the square
        of the domain's diameter."""
        points, _ = self.domain.boundary_points(200, seed=18)
        lower, upper = self.domain.bounding_box
        return float(np.ptp(sample(self.g, points))) / float(np.sum((upper - lower) ** 2)) or 1.0

    def data(self) -> dict[str, Callable[[Array], Array]]:
        return {"f": self.f}

    def linearise(
        self, x: Array, jet: Jet, form: str = "determinant", damping: float | Array = 1.0
    ) -> Coefficients:
        """The equation frozen at one point. `damping` t < 1 aims at det H + t (f - det H) instead
        of f."""
        f = jnp.maximum(jnp.asarray(self.f(x), float), 0.0)
        d = self.domain.dimension
        if form == "convex":
            A, right = self._convex(f, jet.hessian, damping)
        else:
            floor = FLOOR * jnp.maximum(f ** (1 / d), SMALL * self.curvature)
            tangent = tangent_of_determinant(jet.hessian, -jnp.inf if form == "plain" else floor)
            A, determinant, now = tangent
            right = (d - 1) * determinant + now + damping * (f - now)
        return Coefficients(A, jnp.zeros(d), jnp.zeros(()), right)

    def _convex(self, f: Array, hessian: Array, damping: float | Array) -> tuple[Array, Array]:
        deviation = hessian - 0.5 * jnp.trace(hessian) * jnp.eye(2)
        square = 2 * jnp.sum(deviation**2) + 4 * f
        root = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        A = 0.5 * jnp.eye(2) - jnp.where(square > 0, deviation / root, 0.0)
        right = jnp.where(square > 0, 2 * f / root, 0.0)
        now = jnp.sum(A * hessian)
        return A, now + damping * (right - now)

    def residual(self, x: Array, jet: Jet) -> Array:
        """det D²u - f at one point."""
        return jnp.linalg.det(jet.hessian) - self.f(x)

    def coefficients(
        self,
        points: np.ndarray,
        jet: Jet | None = None,
        form: str = "determinant",
        damping: float = 1.0,
    ) -> Coefficients:
        """The equation frozen at points (N, d); without a state, Δu = d f^(1/d), which every
        solution with a round Hessian satisfies."""
        if form not in FORMS:
            raise unknown("form", form, FORMS)
        if form == "convex" and self.domain.dimension != 2:
            raise OptionError(
                "form = 'convex' exists in two dimensions, this problem has "
                f"{self.domain.dimension}: use form='determinant'."
            )
        n, d = points.shape
        if jet is None:
            f = np.maximum(self.source_density(points), 0.0)
            identity = np.tile(np.eye(d), (n, 1, 1))
            return Coefficients(identity, np.zeros((n, d)), np.zeros(n), d * f ** (1 / d))
        return self._compiled[form](points, jet, np.full(n, damping))


def tangent_of_determinant(
    hessian: Array, floor: float | Array, factor: float | Array = 1.0
) -> tuple[Array, Array, Array]:
    """The tangent det(H₊) + cof(H₊):(D²u - H₊) at H₊, which is H with eigenvalues of at least
    `floor`: `factor` times cof(H₊), det(H₊), and the value of the tangent at H itself, from where a
    step goes towards f."""
    eigenvalues, vectors = jnp.linalg.eigh(hessian)
    raised = jnp.maximum(eigenvalues, floor)
    one = jnp.eye(len(raised), dtype=bool)
    others = jnp.prod(jnp.where(one, 1.0, raised), axis=1)
    determinant = jnp.prod(raised)
    now = determinant + jnp.sum(others * (eigenvalues - raised))
    return (factor * (vectors * others)) @ vectors.T, determinant, now


def _chords_of_the_boundary(
    domain: AbstractDomain, count: int = 64
) -> tuple[np.ndarray, np.ndarray]:
    """Random chords that lie in the boundary: in the edges of a polygon, in the faces of a box;
    none where the boundary is curved."""
    generator = np.random.default_rng(19)
    if domain.vertices is not None:
        first, second = domain.vertices, np.roll(domain.vertices, -1, axis=0)
        shares = np.sort(generator.uniform(size=(2, count, 1, 1)), axis=0)
        starts, ends = (first + share * (second - first) for share in shares)
        return starts.reshape(-1, 2), ends.reshape(-1, 2)
    if not isinstance(domain, Box) or domain.dimension == 1:
        return np.zeros((0, domain.dimension)), np.zeros((0, domain.dimension))
    d = domain.dimension
    lower, upper = domain.bounding_box
    face = generator.integers(2 * d, size=4 * count)
    chords = lower + (upper - lower) * generator.uniform(size=(2, 4 * count, d))
    chords[:, np.arange(4 * count), face % d] = np.where(face < d, lower[face % d], upper[face % d])
    return chords[0], chords[1]
