"""Domains, features at places of them, smooth functions and the truth about errors, for
`hidden_cases`."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import beta

import cordes

Array = np.ndarray
Domain = cordes.Box | cordes.Ball | cordes.Ellipsoid | cordes.Polygon
CONVEX = ("monge-ampere", "transport")
BOUNDARY = ("bump of g", "bump at g")
# Points of grids in each direction; poles are those of r^(-POLE d).
GRID, POLE = {2: 300, 3: 60}, 0.45


class Place(NamedTuple):
    """Where the feature is: its middle, its width, a rotation, and for each turned axis how many
    widths it is long and how many the grid around it reaches."""

    middle: Array
    width: float
    turned: Array
    stretch: Array
    reach: Array

    def local(self, x: Any) -> Any:
        return (x - self.middle) @ self.turned / (self.width * self.stretch)

    def grid(self, domain: Domain) -> tuple[Array, float]:
        """Points of a midpoint rule around the feature that lie in the domain, and their weight:
        what is summed over them is less than the integral over the domain."""
        d = len(self.middle)
        n, half = GRID[d], self.reach * self.stretch * self.width
        unit = (2 * np.arange(n) + 1) / n - 1
        y = np.array(list(itertools.product(unit, repeat=d))) * half
        x = self.middle + y @ self.turned.T
        return x[domain.contains(x)], float(np.prod(2 * half / n))


class Truth(NamedTuple):
    """The planted error at the points of a grid: its jet where it is known, else its Laplacian and
    lower bounds of its norms."""

    weight: float
    value: Array
    gradient: Array
    hessian: Array
    known: dict[str, float]

    def norms(self, lambda_: float, volume: float) -> dict[str, float]:
        """Numbers below which no bound may lie."""

        def norm(values: Array) -> float:
            return float(np.sqrt(self.weight * np.sum(values**2)))

        if self.known:
            return self.known
        L2, laplacian = norm(self.value), np.trace(self.hessian, axis1=1, axis2=2)
        found = {"L2": L2, "rms": L2 / volume**0.5, "Linf": float(np.max(np.abs(self.value)))}
        found |= {"H1": norm(self.gradient), "H2": norm(self.hessian)}
        return found | {"energy": norm(laplacian - lambda_ * self.value)}


def draw_domain(rng: np.random.Generator, d: int, family: str) -> Domain:
    size, longest = 10 ** rng.uniform(-3, 3), 1 if family in CONVEX else 3
    center, kind = size * rng.normal(size=d), rng.integers(4)
    if family == "transport" or kind == 0 or (d == 3 and kind < 2):
        sides = size * np.ones(d)
        sides[rng.integers(d)] *= 10 ** rng.uniform(0, longest)
        return cordes.Box(center - sides / 2, center + sides / 2)
    if kind == 1 or d == 3:
        return cordes.Ball(center, size)
    turn = rotation(rng, 2)
    axes = turn * size * np.array([1.0, 10 ** rng.uniform(0, longest / 2)])
    if kind == 2:
        return cordes.Ellipsoid(center, axes)
    corners = rng.integers(3, 7)
    angles = 2 * np.pi * (np.arange(corners) + rng.uniform(-0.3, 0.3, corners)) / corners
    return cordes.Polygon(center + np.stack([np.cos(angles), np.sin(angles)], axis=1) @ axes.T)


def rotation(rng: np.random.Generator, d: int) -> Array:
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def draw_place(rng: np.random.Generator, kind: str, domain: Domain, share: float) -> Place:
    d, width = domain.dimension, 2 * share * domain.inradius
    inside = domain.interior_points(1, int(rng.integers(1 << 30)))[0]
    if kind in BOUNDARY:
        middle = domain.boundary_points(1, int(rng.integers(1 << 30)))[0][0]
    else:
        near = min(0.85, 1 - 1.02 * width / domain.inradius)
        middle = domain.center + near * (inside - domain.center)
    turned, stretch, reach = np.eye(d), np.ones(d), np.full(d, 1.02)
    if kind in ("needle", "ridge"):
        turned = rotation(rng, d)
        stretch[0] = 10.0
    if kind == "ridge":
        # The grid looks at a part of it.
        stretch[1:], reach = domain.inradius / width, np.ones(d)
        stretch[0], reach[0] = 1.0, 4.0
    if kind == "gaussian":
        reach = 4 * reach
    if kind == "shell":
        reach = 1.85 * reach
    return Place(middle, width, turned, stretch, reach)


def feature(kind: str, place: Place) -> Callable:
    """A function of height one."""

    def square(x: Any) -> Any:
        return jnp.sum(place.local(x) ** 2)

    if kind == "shell":
        return lambda x: jnp.maximum(1 - (square(x) - 2.25) ** 2, 0.0) ** 4
    if kind == "ridge":
        return lambda x: jnp.exp(-(place.local(x)[0] ** 2))
    if kind == "gaussian":
        return lambda x: jnp.exp(-square(x))
    return lambda x: jnp.maximum(1 - square(x), 0.0) ** 4


def smooth_solution(rng: np.random.Generator, domain: Domain, convex: bool) -> Callable:
    """A quadratic function with values of about one, and a wave where it need not be convex."""
    d = domain.dimension
    low, high = (np.asarray(corner) for corner in domain.bounding_box)
    scale, waves = (high - low) / 2, 0.0 if convex else 0.3
    turn = rotation(rng, d)
    Q, k = turn @ np.diag(rng.uniform(0.5, 1.5, d)) @ turn.T, rng.normal(size=d)

    def u(x: Any) -> Any:
        y = (x - domain.center) / scale
        return 0.5 * y @ Q @ y + waves * jnp.sin(k @ y)

    return u


def jets(function: Callable, x: Array) -> tuple[Array, Array, Array]:
    """Values, gradients and Hessians at points."""
    at = jax.jit(jax.vmap(lambda x: (function(x), jax.grad(function)(x), jax.hessian(function)(x))))
    parts = [at(part) for part in np.array_split(x, max(1, len(x) // 30_000))]
    value, gradient, hessian = (np.concatenate(each) for each in zip(*parts, strict=True))
    return value, gradient, hessian


def matrix(turn: Array, values: Array) -> Array:
    found = turn @ np.diag(values) @ turn.T
    return (found + found.T) / 2


def pole_norm(place: Place, d: int) -> float:
    """‖(1 - s²)⁴ s^(-a)‖ over a ball of the width, a = POLE · d: a Beta function."""
    sphere = {2: 2 * np.pi, 3: 4 * np.pi}[d]
    return float(np.sqrt(sphere * place.width**d * beta(d / 2 - POLE * d, 9) / 2))


def by_duality(
    domain: Domain, x: Array, weight: float, laplacian: Array, background: float
) -> dict[str, float]:
    """Lower bounds of v from Δv, which vanishes away from x: ∫vΔφ = ∫φΔv for φ = 0 on the
    boundary. What the answer has besides is taken off."""
    zero = jax.jit(jax.vmap(domain.distance))
    bent = jax.jit(jax.vmap(lambda x: jnp.trace(jax.hessian(domain.distance)(x))))
    y, w = domain.quadrature(24)
    test, height = np.asarray(bent(y)), np.asarray(zero(y)) / float(zero(domain.center[None])[0])
    moment = abs(weight * float(np.asarray(zero(x)) @ laplacian))
    rest = background * float(np.sqrt(w @ height**2))
    L2 = max(0.0, moment / float(np.sqrt(w @ test**2)) - rest)
    Linf = max(0.0, moment / float(w @ np.abs(test)) - 2 * background * np.max(height))
    bent_rest = background * float(np.max(np.abs(test))) / float(zero(domain.center[None])[0])
    energy = np.sqrt(weight * np.sum(np.maximum(np.abs(laplacian) - bent_rest, 0.0) ** 2))
    return {"L2": L2, "rms": L2 / domain.volume**0.5, "Linf": Linf, "energy": float(energy)}
