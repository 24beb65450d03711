"""Optimal transport with quadratic cost between densities on convex domains: the map is ∇u of a
convex u with ν(∇u) det D²u = μ and ∇u(X) = Y.

Frozen at a state with p = ∇u, H = D²u, Newton's method gives a linear equation for the new
potential w: ν(p) cof(H):D²w + det H ∇ν(p)·∇w = right-hand side, with a convection term where the
target density varies. The boundary condition H_Y(∇u) = 0, H_Y a defining function of the target,
becomes an oblique one, n·∇w = h with the normal n of the target at p. From box to box it is linear:
each face goes to its own face.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.arguments import flag
from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.polygon_shape import edge_lines
from cordes.domains.unit_cube import gauss_rule, tensor_rule
from cordes.errors import CoefficientError, CordesError
from cordes.formulas.lookups.lines import grid_lines
from cordes.jet import Jet, jet_of
from cordes.problems.checks import CHECK_POINTS, check_domain, warn_about_jumps
from cordes.problems.coefficients import (
    Coefficients,
    as_function,
    at_points,
    at_states,
    check_shape,
    checked_sample,
)
from cordes.problems.monge_ampere import tangent_of_determinant
from cordes.problems.problem import AbstractProblem
from cordes.runtime.plain import show

# Gauss points per direction for the masses.
MASS_POINTS = {1: 200, 2: 120, 3: 48}
# Masses may differ by this share, which their quadrature explains.
MASS_TOLERANCE = 1e-6
# Eigenvalues of D²u are raised to this share of the mean stretch.
FLOOR = 1e-3


class MassError(CordesError):
    """The two masses differ."""

    kind = "masses_differ"


class Transport(AbstractProblem):
    """The optimal map from the density `source` on `domain` to the density `target` on
    `target_domain`.

    The target domain is `domain` and the target uniform, with the mass of the source, when they are
    omitted. Masses that differ are refused, unless `normalise=True`. `exact`, if known, is the map,
    a function of one point with values of shape (d,); it serves to measure errors and for nothing
    else.

    Checked when made: densities are finite and positive at sampled points, masses agree. Assumed:
    both domains are convex.
    """

    convex = True
    takes_boundary_values = False
    # The condition of the paper looks at the principal part alone: no drift, no reaction.
    tolerance_norm = "map_L2"
    outer_options = frozenset({"outer_steps", "damping", "continuation"})

    def __init__(
        self,
        domain: AbstractDomain,
        source: Any,
        target_domain: AbstractDomain | None = None,
        target: Any = None,
        normalise: bool = False,
        exact: Callable[[Array], Array] | None = None,
        *,
        name: str | None = None,
    ):
        check_domain(domain)
        self.domain, self.target_domain = domain, domain if target_domain is None else target_domain
        check_domain(self.target_domain)
        if self.target_domain.dimension != domain.dimension:
            raise CoefficientError(
                f"The domain has {domain.dimension} dimensions, the target domain "
                f"{self.target_domain.dimension}: they must be the same."
            )
        flag("normalise", normalise)
        self.name = name or "transport"
        self.exact = exact
        given, _ = as_function("source", source, ())
        self._check_density("source", given, domain)
        source_mass = mass(given, domain)
        if target is None:
            uniform = source_mass / self.target_domain.volume
            wanted, self.uniform = (lambda y: jnp.asarray(uniform)), True
            target_mass = source_mass
        else:
            wanted, self.uniform = as_function("target", target, ())
            self._check_density("target", wanted, self.target_domain)
            target_mass = mass(wanted, self.target_domain)
        self.masses = (source_mass, target_mass)
        apart = abs(source_mass - target_mass) > MASS_TOLERANCE * max(self.masses)
        if apart and not normalise:
            raise MassError(
                f"The masses differ: the source has {source_mass:.9g}, the target "
                f"{target_mass:.9g}. Pass normalise=True to scale both to one, or correct a "
                "density."
            )
        # Both are probabilities from here on.
        self.mu: Callable[[Array], Array] = lambda x: jnp.asarray(given(x), float) / source_mass
        self.nu: Callable[[Array], Array] = lambda y: jnp.asarray(wanted(y), float) / target_mass
        self.stretch = (self.target_domain.volume / domain.volume) ** (1 / domain.dimension)
        self.curvature = self.stretch
        if exact is not None:
            check_shape("exact", exact, (domain.dimension,), jnp.asarray(domain.center))
        warn_about_jumps({"source": given}, domain, ())
        self._frozen = at_states(self.linearise)
        self.base_jet = at_points(jet_of(self.base))
        # μ and ν at points (N, d), of mass one.
        self.source_density, self.target_density = at_points(self.mu), at_points(self.nu)
        self._slopes = at_points(jax.value_and_grad(self.target_domain.distance))

    def blended(self, share: float) -> "Transport":
        """The problem whose source is μ^share, normalised: a step on the way to a density that
        spans many orders."""
        return Transport(
            self.domain,
            lambda x: self.mu(x) ** share,
            self.target_domain,
            self.nu,
            normalise=True,
            name=f"{self.name} ({share:g})",
        )

    @functools.cached_property
    def spread(self) -> float:
        """The largest over the smallest source density at sampled points."""
        values = self.source_density(self.domain.interior_points(CHECK_POINTS, seed=22))
        return float(np.max(values) / np.min(values))

    def _check_density(
        self, name: str, density: Callable[..., Any], domain: AbstractDomain
    ) -> None:
        points = domain.interior_points(CHECK_POINTS, seed=11)
        values = checked_sample(name, density, (), points)
        i = int(np.argmin(values))
        if values[i] <= 0:
            raise CoefficientError(
                f"{name} is not positive: {name}({show(points[i])}) = {values[i]:.6g}. A density "
                "must be positive on its whole domain: add a small constant, or restrict the "
                "domain to where there is mass."
            )

    def data(self) -> dict[str, Callable[[Array], Array]]:
        return {"source": self.mu}

    # The base: a map with the right stretch -------------------------------------------------------

    def base(self, x: Array) -> Array:
        """A quadratic potential whose gradient takes the centre to the centre; from box to box,
        each face to its own face."""
        offset = x - self.domain.center
        if self.box_to_box:
            from_width, to_width = (
                np.ptp(domain.bounding_box, axis=0) for domain in (self.domain, self.target_domain)
            )
            scale = to_width / from_width
        else:
            scale = np.full(self.domain.dimension, 0.9 * self.stretch)
        return jnp.dot(jnp.asarray(self.target_domain.center), x) + 0.5 * jnp.sum(scale * offset**2)

    @property
    def box_to_box(self) -> bool:
        return isinstance(self.domain, Box) and isinstance(self.target_domain, Box)

    # The equation ---------------------------------------------------------------------------------

    def linearise(self, x: Array, jet: Jet, damping: float | Array = 1.0) -> Coefficients:
        """The equation frozen at one point. `damping` t < 1 aims at a part of the way from ν(∇u)
        det D²u to μ."""
        mu, nu, slope = self.mu(x), self.nu(jet.gradient), jax.grad(self.nu)(jet.gradient)
        A, determinant, now = tangent_of_determinant(jet.hessian, FLOOR * self.stretch, nu)
        b = determinant * slope
        applied = jnp.sum(A * jet.hessian) + jnp.dot(b, jet.gradient)
        return Coefficients(A, b, jnp.zeros(()), applied + damping * (mu - nu * now))

    def residual(self, x: Array, jet: Jet) -> Array:
        """ν(∇u) det D²u - μ at one point."""
        return self.nu(jet.gradient) * jnp.linalg.det(jet.hessian) - self.mu(x)

    def coefficients(
        self, points: np.ndarray, jet: Jet | None = None, damping: float = 1.0
    ) -> Coefficients:
        """The equation frozen at points (N, d); without a state, at the base."""
        jet = self.base_jet(points) if jet is None else jet
        return self._frozen(points, jet, np.full(len(points), damping))

    # The boundary ---------------------------------------------------------------------------------

    def boundary_condition(
        self, normals: np.ndarray, gradient: np.ndarray, damping: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """n (N, d) and h (N,) of the conditions n·∇w = h, from the normals of the domain and ∇u at
        boundary points."""
        if self.box_to_box:
            low, high = self.target_domain.bounding_box
            faces = np.where(normals > 0, high, low)
            directions, heights = normals, np.sum(faces * normals, axis=1)
        elif (facets := self._facets()) is not None:
            directions, heights = _active_facets(*facets, normals, gradient)
        else:
            value, slope = (np.asarray(part) for part in self._slopes(gradient))
            size = np.maximum(np.linalg.norm(slope, axis=1), 1e-300)
            directions = -slope / size[:, None]
            heights = np.sum(directions * gradient, axis=1) + value / size
        now = np.sum(directions * gradient, axis=1)
        return directions, now + damping * (heights - now)

    def _facets(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Outward normals (K, d) and heights (K,) of the facets of a polytope; None where the
        target is curved."""
        target = self.target_domain
        if isinstance(target, Box):
            low, high = target.bounding_box
            identity = np.eye(target.dimension)
            return np.concatenate([identity, -identity]), np.concatenate([high, -low])
        if target.vertices is None:
            return None
        return edge_lines(target.vertices)

    def __repr__(self) -> str:
        return f"Transport({self.name!r}, {self.domain!r} to {self.target_domain!r})"


def _active_facets(
    normals: np.ndarray, heights: np.ndarray, outward: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The facet that each boundary point meets or violates most, among those that look the same way
    as the boundary there: the gradient of a convex function is monotone, so that a point cannot
    land on the far side."""
    excess = gradient @ normals.T - heights
    excess = np.where(outward @ normals.T > 1e-9, excess, -np.inf)
    active = np.argmax(excess, axis=1)
    return normals[active], heights[active]


def mass(density: Callable[..., Any], domain: AbstractDomain) -> float:
    """The integral, by Gauss rules; beyond three dimensions by 2¹⁶ Sobol points."""
    values = at_points(lambda x: jnp.asarray(density(x), float))
    if domain.dimension > 3:
        points = domain.interior_points(1 << 16, seed=21, kind="sobol")
        return domain.volume * float(np.mean(values(points)))
    points, weights = _mass_rule(density, domain)
    return float(np.sum(weights * values(points)))


def _mass_rule(
    density: Callable[..., Any], domain: AbstractDomain
) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points; on a box, those of each cell of a table."""
    count, (lower, upper) = MASS_POINTS[domain.dimension], domain.bounding_box
    lines = grid_lines([density], lower, upper) if isinstance(domain, Box) else ()
    if not any(len(each) for each in lines):
        return domain.quadrature(count)
    rules = []
    for low, high, inner in zip(lower, upper, lines, strict=True):
        ends = np.concatenate([[low], inner, [high]])
        nodes, weights = gauss_rule(max(2, count // (len(ends) - 1)))
        steps = np.diff(ends)[:, None]
        rules.append(((ends[:-1, None] + steps * nodes).ravel(), (steps * weights).ravel()))
    return tensor_rule(rules)
