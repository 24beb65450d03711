"""The four problems as the rivals see them, written with the array module of each: `xp` is torch or
jax.numpy, points have shape (..., d).

The library has its own definitions; that both are the same is tested. Derivatives of the exact
solutions are written out, so that no rival pays for automatic differentiation of the right-hand
side. Nothing else of the exact solution is used but its values on the boundary.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

PI = math.pi


class Jet(NamedTuple):
    """A value, the gradient as a list, and the second derivatives on and above the diagonal."""

    value: Any
    gradient: list[Any]
    hessian: dict[tuple[int, int], Any]


class Equation(NamedTuple):
    """A:D²u + b·∇u - cu = f with b = x or 0, or det D²u = f, on a box (lower, 1)^d. `matrix` gives
    the entries of A on and above the diagonal."""

    dimension: int
    lower: float
    exact: Callable[[Any, Any], Jet]
    matrix: Callable[[Any, Any], dict[tuple[int, int], Any]] | None
    drift: bool = False
    c: float = 0.0
    jumps: bool = False
    zero_boundary: bool = True

    def distance(self, x: Any) -> Any:
        """Zero on the boundary and positive inside."""
        product = 1.0
        for i in range(self.dimension):
            product = product * (1 - x[..., i]) * (x[..., i] - self.lower)
        return product

    def lift(self, xp: Any, x: Any) -> Any:
        """Boundary values carried inside. The Coons patch of exp(|x|²/2) on the unit square, from
        its values on the four edges alone: with E(t) = exp(t²/2) these are E(t) and √e·E(t), so
        that the patch is L(s)E(t) + L(t)E(s) - L(s)L(t), L linear from 1 to √e."""
        if self.zero_boundary:
            return 0.0
        s, t = x[..., 0], x[..., 1]
        slope = math.exp(0.5) - 1
        first, second = 1 + slope * s, 1 + slope * t
        return first * xp.exp(t**2 / 2) + second * xp.exp(s**2 / 2) - first * second

    def inputs(self, xp: Any, x: Any) -> Any:
        """What the network sees: coordinates scaled to (-1, 1), and φ|φ| for every interface across
        which D²u may jump."""
        scaled = (x - (1 + self.lower) / 2) / ((1 - self.lower) / 2)
        return xp.concatenate([scaled, x * xp.abs(x)], -1) if self.jumps else scaled

    @property
    def input_count(self) -> int:
        return (1 + self.jumps) * self.dimension

    def operator(self, xp: Any, x: Any, u: Jet) -> Any:
        """The left-hand side."""
        if self.matrix is None:
            return u.hessian[0, 0] * u.hessian[1, 1] - u.hessian[0, 1] ** 2
        total = -self.c * u.value
        for (i, j), entry in self.matrix(xp, x).items():
            total = total + (1 if i == j else 2) * entry * u.hessian[i, j]
        for i in range(self.dimension if self.drift else 0):
            total = total + x[..., i] * u.gradient[i]
        return total

    def right_side(self, xp: Any, x: Any) -> Any:
        return self.operator(xp, x, self.exact(xp, x))


def _continuous(xp: Any, x: Any) -> dict[tuple[int, int], Any]:
    r = xp.sqrt(x[..., 0] ** 2 + x[..., 1] ** 2)
    return {(0, 0): r + 1, (0, 1): -r, (1, 1): 5 * r + 1}


def _checkerboard(xp: Any, x: Any) -> dict[tuple[int, int], Any]:
    return {(0, 0): 2.0, (0, 1): xp.sign(x[..., 0]) * xp.sign(x[..., 1]), (1, 1): 2.0}


def _cube(xp: Any, x: Any) -> dict[tuple[int, int], Any]:
    return {
        (i, j): 5.0 if i == j else xp.sign(x[..., i]) * xp.sign(x[..., j])
        for i in range(5)
        for j in range(i, 5)
    }


def _wave(xp: Any, x: Any) -> Jet:
    """sin(2πx₁) sin(πx₂) exp(x₁ cos x₂)."""
    s, t = x[..., 0], x[..., 1]
    E, cos, sin = xp.exp(s * xp.cos(t)), xp.cos(t), xp.sin(t)
    S, S1 = xp.sin(2 * PI * s), 2 * PI * xp.cos(2 * PI * s)
    T, T1 = xp.sin(PI * t), PI * xp.cos(PI * t)
    first, second = S1 + S * cos, T1 - T * s * sin
    hessian = {
        (0, 0): T * E * (-4 * PI**2 * S + 2 * S1 * cos + S * cos**2),
        (0, 1): E * (first * second - S * T * sin),
        (1, 1): S * E * (-(PI**2) * T - 2 * T1 * s * sin + T * (s**2 * sin**2 - s * cos)),
    }
    return Jet(S * T * E, [T * E * first, S * E * second], hessian)


def _kinked(xp: Any, x: Any) -> Jet:
    """h(x₁) h(x₂) with h(t) = t exp(1 - |t|) - t."""
    size = xp.abs(x)
    E = xp.exp(1 - size)
    h, h1, h2 = x * E - x, (1 - size) * E - 1, xp.sign(x) * (size - 2) * E
    (a, b), (a1, b1), (a2, b2) = ((part[..., 0], part[..., 1]) for part in (h, h1, h2))
    return Jet(a * b, [a1 * b, a * b1], {(0, 0): a2 * b, (0, 1): a1 * b1, (1, 1): a * b2})


def _products(xp: Any, x: Any) -> Jet:
    """Π cos(πxᵢ/2) + Π sin(πxᵢ)."""
    both = []
    for values, slopes, square in (
        (xp.cos(PI * x / 2), -PI / 2 * xp.sin(PI * x / 2), PI**2 / 4),
        (xp.sin(PI * x), PI * xp.cos(PI * x), PI**2),
    ):

        def product(*derived: int, values: Any = values, slopes: Any = slopes) -> Any:
            return math.prod((slopes if k in derived else values)[..., k] for k in range(5))

        hessian = {
            (i, j): -square * product() if i == j else product(i, j)
            for i in range(5)
            for j in range(i, 5)
        }
        both.append(Jet(product(), [product(i) for i in range(5)], hessian))
    one, two = both
    gradient = [a + b for a, b in zip(one.gradient, two.gradient, strict=True)]
    return Jet(
        one.value + two.value,
        gradient,
        {key: one.hessian[key] + two.hessian[key] for key in one.hessian},
    )


def _bowl(xp: Any, x: Any) -> Jet:
    """exp(|x|²/2)."""
    s, t = x[..., 0], x[..., 1]
    u = xp.exp((s**2 + t**2) / 2)
    return Jet(
        u, [s * u, t * u], {(0, 0): (1 + s**2) * u, (0, 1): s * t * u, (1, 1): (1 + t**2) * u}
    )


EQUATIONS = {
    "ex4.2-continuous": Equation(2, -1.0, _wave, _continuous, drift=True, c=3.0),
    "ex4.2-discontinuous": Equation(2, -1.0, _kinked, _checkerboard, drift=True, c=3.0, jumps=True),
    "ex4.6-monge-ampere": Equation(2, 0.0, _bowl, None, zero_boundary=False),
    # A and f jump on the coordinate planes, u does not: networks do better without further inputs.
    "ex4.3-cube5": Equation(5, -1.0, _products, _cube),
}
