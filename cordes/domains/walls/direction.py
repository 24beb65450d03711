"""One direction of a box with what holds at its two ends: a value is given (D), the outer
derivative (N), or ∂ₙu + κu (R); or the two ends are the same place (periodic).

Functions that fulfil the homogeneous conditions are made by construction, as a factor times a
function of coordinates that stand still at the ends where a derivative is given. In s = (x -
l)/(u - l) the two coordinates s² and s³ have no slope at s = 0, and every smooth function without
slope there is a smooth function of them, since 2 and 3 generate all numbers from 2 on; one of them
alone would lose every odd power. With both ends at rest they are 3s² - 2s³ and s²(1 - s)².
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

# Bisections of a root, after which only rounding is left of the interval.
HALVINGS, SLACK = 80, 1e-12


class Direction(NamedTuple):
    """Ends along one axis; `first` and `last` are κ ≥ 0 where ∂ₙu + κu is given (zero: Neumann),
    None where u is."""

    lower: float
    upper: float
    first: float | None = None
    last: float | None = None
    periodic: bool = False

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def given(self) -> int:
        """At how many ends the value is given."""
        return 0 if self.periodic else (self.first is None) + (self.last is None)

    @property
    def free(self) -> bool:
        """Whether constants fulfil the homogeneous conditions."""
        return self.periodic or (self.first == 0 and self.last == 0)

    def kappa(self, end: int) -> float | None:
        return self.last if end else self.first

    @property
    def inputs(self) -> int:
        """How many coordinates there are."""
        return 1 if self.given == 2 else 2

    def _scaled(self, end: int) -> float:
        """κ in units of the width, zero where u is given."""
        return (self.kappa(end) or 0.0) * self.width

    def share(self, x: Any) -> tuple[Any, Any]:
        """s and 1 - s, exact at the ends."""
        return (x - self.lower) / self.width, (self.upper - x) / self.width

    # The space of the homogeneous conditions

    def coordinates(self, x: Any) -> list[Any]:
        """Functions of x between -1 and 1 of which smooth functions keep the conditions."""
        s, t = self.share(x)
        if self.periodic:
            return [jnp.cos(2 * math.pi * s), jnp.sin(2 * math.pi * s)]
        if self.given == 2:
            return [s - t]
        if self.given == 0:
            return [2 * s**2 * (3 - 2 * s) - 1, 32 * (s * t) ** 2 - 1]
        rest = t if self.first is None else s
        return [2 * rest**2 - 1, 2 * rest**3 - 1]

    def factor(self, x: Any) -> Any:
        """A function that fulfils the homogeneous conditions and vanishes only where u is given;
        its slope is not zero there."""
        s, t = self.share(x)
        if self.periodic:
            return jnp.ones_like(s)
        if self.given == 2:
            return 4 * s * t
        if self.given == 0:
            return 1 + self._scaled(0) * s * t**2 + self._scaled(1) * s**2 * t
        given, natural = (s, t) if self.first is None else (t, s)
        return given * (1 + (1 + self._scaled(0) + self._scaled(1)) * natural)

    def cardinal(self, x: Any) -> tuple[Any, Any]:
        """Two functions for the data at the two ends: of each, one where its data are and zero at
        the other end."""
        s, t = self.share(x)
        if self.given == 2:
            return t, s
        if self.given == 0:
            return -self.width * s * t**2, -self.width * s**2 * t
        kappa = self._scaled(0) + self._scaled(1)
        if self.first is None:
            return 1 - kappa / (1 + kappa) * s, self.width / (1 + kappa) * s
        return self.width / (1 + kappa) * t, 1 - kappa / (1 + kappa) * t

    # Eigenvalues of -d²/dx²

    @property
    def first_eigenvalue(self) -> float:
        """From below: (π/ℓ)², (π/2ℓ)², zero, or the square of the root of Robin's equation."""
        return (self._root() / self.width) ** 2 * (1 - SLACK)

    @property
    def second_eigenvalue(self) -> float:
        """From below, where constants are the first eigenfunction."""
        return (math.pi * (2 if self.periodic else 1) / self.width) ** 2 * (1 - SLACK)

    def _root(self) -> float:
        a, b = self._scaled(0), self._scaled(1)
        if self.periodic or self.given == 2:
            return 0.0 if self.periodic else math.pi
        if self.given == 1:
            kappa = a + b
            if kappa == 0:
                return math.pi / 2
            return _bisected(lambda z: kappa * math.sin(z) + z * math.cos(z), math.pi / 2)
        if a + b == 0:
            return 0.0
        return _bisected(lambda z: z * (a + b) * math.cos(z) - (z * z - a * b) * math.sin(z), 0.0)

    def modes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Lower bounds of the eigenvalues, at least (kπ/ℓ)² of the k-th from zero on, and the
        largest squares of the eigenfunctions of norm one.

        ∫ cos²(μx - θ) ≥ ℓ/2 where κ ≥ 0 at both ends, and Robin's eigenvalues are above Neumann's,
        those with a given value at one end above those of N there.
        """
        k = np.arange(count)
        shift = {2: 1.0, 1: 0.5, 0: 0.0}[self.given]
        root = (k + shift) * math.pi * (2 if self.periodic else 1)
        peaks = np.full(count, 2 / self.width)
        if self.free:
            peaks[0] = 1 / self.width
        values = (root / self.width) ** 2 * (1 - SLACK)
        values[0] = max(values[0], self.first_eigenvalue)
        return values, peaks * (1 + SLACK)


def _bisected(function: Any, low: float) -> float:
    """A lower bound of the root in (low, π) of a function that is positive before it."""
    high = math.pi
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low
