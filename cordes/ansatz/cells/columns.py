"""What a cell can have beside a polynomial: products of one-sided powers of interfaces with
polynomials, across which D²u may jump, and the singular functions of a point near by.

Such a rich cell keeps all its columns. Those that are not singular functions, which know the
boundary, vanish on the sides of the cell that lie there.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.cells.reference import ORDERS, tables
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.ansatz.singular.traced import combination
from cordes.jet import jet_of
from cordes.runtime.blocks import in_blocks

# Across an interface second derivatives jump.
POWER = 2


class Place(NamedTuple):
    """A cell: its corners, which of its sides lie on the boundary, the interfaces that cut it and
    the singular points near by."""

    lower: np.ndarray
    upper: np.ndarray
    outer: np.ndarray
    interfaces: np.ndarray
    points: np.ndarray


class RichColumns:
    """The columns of rich cells of a problem; `degree` is that of polynomials, `extra` that of
    those beside an interface."""

    def __init__(
        self,
        interfaces: Sequence[Any],
        singular: SingularFunctions,
        degree: int,
        extra: int,
    ):
        self.interfaces, self.singular = tuple(interfaces), singular
        self.degree, self.extra = degree, extra
        i, j = np.divmod(np.arange((extra + 1) ** 2), extra + 1)
        self.low = i + j <= extra
        self.heights = [_height(phi) for phi in self.interfaces]
        self._near: dict[tuple[bool, ...], SingularFunctions] = {}

    def count(self, place: Place) -> int:
        beside = int(np.sum(place.interfaces)) * int(np.sum(self.low))
        return (self.degree + 1) ** 2 + beside + self.near(place).count

    def near(self, place: Place) -> SingularFunctions:
        """The singular functions of the points near a cell."""
        key = tuple(bool(each) for each in place.points)
        if key not in self._near:
            self._near[key] = self.singular.only(key)
        return self._near[key]

    def at(self, place: Place, x: np.ndarray) -> np.ndarray:
        """All columns at points (N, 2) with their derivatives, (6, N, columns)."""
        parts = [self._polynomials(place, x, self.degree)]
        if np.any(place.interfaces):
            few = self._polynomials(place, x, self.extra)[:, :, self.low]
            for k in np.flatnonzero(place.interfaces).tolist():
                parts.append(times(self._step(place, k, x), few))
        if np.any(place.points):
            parts.append(_derivatives(self.near(place), x))
        return np.concatenate(parts, axis=2)

    def _polynomials(self, place: Place, x: np.ndarray, degree: int) -> np.ndarray:
        axes = []
        for axis in range(2):
            low, high = place.lower[axis], place.upper[axis]
            s, scale = (2 * x[:, axis] - low - high) / (high - low), 2 / (high - low)
            column = [part * scale**n for n, part in enumerate(tables(s, degree))]
            for end, outer in zip((-1.0, 1.0), place.outer[2 * axis : 2 * axis + 2], strict=True):
                if outer:
                    factor, slope = ((1 - end * s) / 2)[:, None], -end * scale / 2
                    value, first, second = column
                    column = [
                        factor * value,
                        factor * first + slope * value,
                        factor * second + 2 * slope * first,
                    ]
            axes.append(column)
        pairs = [(axes[0][i], axes[1][j]) for i, j in ORDERS]
        return np.stack([(a[:, :, None] * b[:, None]).reshape(len(x), -1) for a, b in pairs])

    def _step(self, place: Place, k: int, x: np.ndarray) -> np.ndarray:
        """max(φ, 0)² with its derivatives."""
        size = self._size(place, k)
        phi, slope, bend = (np.asarray(part) / size for part in in_blocks(self.heights[k], (x,)))
        on = phi > 0
        value, first = np.where(on, phi, 0.0) ** POWER, POWER * np.where(on, phi, 0.0)
        second = POWER * on
        hessian = second[:, None, None] * slope[:, :, None] * slope[:, None] + (
            first[:, None, None] * bend
        )
        return np.stack(
            [
                hessian[:, 0, 0],
                hessian[:, 0, 1],
                hessian[:, 1, 1],
                first * slope[:, 0],
                first * slope[:, 1],
                value,
            ]
        )

    def _size(self, place: Place, k: int) -> float:
        """What φ is divided by, once for the cell: by the points at hand, digits would be lost."""
        corners = np.array([place.lower, place.upper, (place.lower + place.upper) / 2])
        # Numbers also inside of a trace.
        with jax.ensure_compile_time_eval():
            slopes = np.asarray(self.heights[k](corners).gradient)
        size = np.max(np.linalg.norm(slopes, axis=1)) * np.max(place.upper - place.lower) / 2
        return float(size) or 1.0

    def traced(self, place: Place, coefficients: Any, x: Any) -> Any:
        """The value of a combination of columns at one point, inside of a trace of JAX."""
        s = [_scaled(x[axis], place.lower[axis], place.upper[axis]) for axis in range(2)]
        factor = 1.0
        for axis in range(2):
            for end, outer in zip((-1.0, 1.0), place.outer[2 * axis : 2 * axis + 2], strict=True):
                factor = factor * ((1 - end * s[axis]) / 2) if outer else factor
        k, few = self.degree + 1, int(np.sum(self.low))
        used = k * k
        total = polynomial(s, coefficients[:used].reshape(k, k)) * factor
        for number in np.flatnonzero(place.interfaces).tolist():
            square = np.zeros((self.extra + 1) ** 2)
            square[self.low] = coefficients[used : used + few]
            square, used = square.reshape(self.extra + 1, -1), used + few
            phi = self.interfaces[number](x) / self._size(place, number)
            step = jnp.maximum(phi, 0.0) ** POWER
            total = total + step * polynomial(s, square) * factor
        if np.any(place.points):
            total = total + combination(self.near(place), coefficients[used:]).value(x[None])[0]
        return total


def _derivatives(singular: SingularFunctions, x: np.ndarray) -> np.ndarray:
    """Singular functions with their derivatives, (6, N, count)."""
    n = len(x)
    zero, none, nothing = np.zeros(n), np.zeros((n, 2)), np.zeros((n, 2, 2))
    found = []
    for i, j in ((0, 0), (0, 1), (1, 1)):
        matrix = nothing.copy()
        matrix[:, i, j] += 0.5
        matrix[:, j, i] += 0.5
        found.append(singular.rows(x, zero, none, matrix))
    for i in range(2):
        direction = none.copy()
        direction[:, i] = 1.0
        found.append(singular.rows(x, zero, direction, nothing))
    found.append(singular.rows(x, zero + 1, none, nothing))
    return np.stack(found)


@functools.lru_cache(maxsize=64)
def _height(phi: Callable) -> Callable:
    """The jets of an interface at points, compiled once."""
    return jax.jit(jax.vmap(jet_of(lambda x: jnp.asarray(phi(x), float))))


def _scaled(x: Any, low: float, high: float) -> Any:
    return (2 * x - low - high) / (high - low)


def legendre_values(s: Any, count: int) -> list:
    """P_0, …, P_{count-1} by their recurrence, of JAX as well."""
    values = [jnp.ones_like(s), s]
    for n in range(1, count - 1):
        values.append(((2 * n + 1) * s * values[n] - n * values[n - 1]) / (n + 1))
    return values[:count]


def polynomial(s: Sequence[Any], coefficients: Any) -> Any:
    """Σ U_ij P_i(X) P_j(Y) at one point of JAX."""
    count = coefficients.shape[-1]
    across = jnp.stack(legendre_values(s[0], count), axis=-1)
    along = jnp.stack(legendre_values(s[1], count), axis=-1)
    return jnp.einsum("...i,...ij,...j->...", across, jnp.asarray(coefficients), along)


def times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The derivatives of a product: `left` (6, N) of a function, `right` (6, N, m) of many."""
    a = left[:, :, None]
    xx, xy, yy, x, y, v = a
    return np.stack(
        [
            v * right[0] + 2 * x * right[3] + xx * right[5],
            v * right[1] + x * right[4] + y * right[3] + xy * right[5],
            v * right[2] + 2 * y * right[4] + yy * right[5],
            v * right[3] + x * right[5],
            v * right[4] + y * right[5],
            v * right[5],
        ]
    )
