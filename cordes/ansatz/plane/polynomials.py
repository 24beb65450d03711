"""Products of Chebyshev polynomials over a box, up to a total degree."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array


class PlanePolynomials(NamedTuple):
    """See the module."""

    lower: np.ndarray
    upper: np.ndarray
    degree: int

    @property
    def ranks(self) -> np.ndarray:
        """The degrees in both coordinates, (count, 2)."""
        return np.array([(i, n - i) for n in range(self.degree + 1) for i in range(n + 1)])

    @property
    def count(self) -> int:
        return (self.degree + 1) * (self.degree + 2) // 2

    def jets(self, x: np.ndarray) -> np.ndarray:
        """(7, N, count), as `Powers.jets`; of the matrix zero."""
        s = (2 * x - self.lower - self.upper) / (self.upper - self.lower)
        i, j = self.ranks.T
        scale = 2 / (self.upper - self.lower)
        (f, f1, f2), (g, g1, g2) = (
            [part * scale[k] ** order for order, part in enumerate(_tables(s[:, k], self.degree))]
            for k in (0, 1)
        )
        pairs = ((f, g), (f1, g), (f, g1), (f2, g), (f1, g1), (f, g2))
        jets = [one[:, i] * two[:, j] for one, two in pairs]
        return np.stack([*jets, np.zeros_like(jets[0])])

    @property
    def matrix(self) -> np.ndarray:
        return np.zeros((2, 2))

    def values(self, x: np.ndarray) -> np.ndarray:
        s = (2 * x - self.lower - self.upper) / (self.upper - self.lower)
        i, j = self.ranks.T
        return _tables(s[:, 0], self.degree)[0][:, i] * _tables(s[:, 1], self.degree)[0][:, j]

    def traced(self, x: Array) -> Array:
        s = (2 * x - self.lower - self.upper) / (self.upper - self.lower)
        one, two = (_recurrence(s[k], self.degree) for k in (0, 1))
        i, j = self.ranks.T
        return one[i] * two[j]


def _tables(s: np.ndarray, degree: int) -> list[np.ndarray]:
    """T_n and two derivatives at points of [-1, 1], (N, degree + 1) each."""
    value, first, second = (np.zeros((degree + 1, len(s))) for _ in range(3))
    value[0] = 1.0
    if degree > 0:
        value[1], first[1] = s, 1.0
    for n in range(1, degree):
        value[n + 1] = 2 * s * value[n] - value[n - 1]
        first[n + 1] = 2 * value[n] + 2 * s * first[n] - first[n - 1]
        second[n + 1] = 4 * first[n] + 2 * s * second[n] - second[n - 1]
    return [value.T, first.T, second.T]


def _recurrence(s: Array, degree: int) -> Array:
    rows = [jnp.ones_like(s), s]
    for _ in range(1, degree):
        rows.append(2 * s * rows[-1] - rows[-2])
    return jnp.stack(rows[: degree + 1])
