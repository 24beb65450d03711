"""What a cell can have beside a polynomial: products of one-sided powers of interfaces with
polynomials, across which D²u may jump, and the singular functions of a point near by. Columns that
are no singular functions, which know the boundary, are multiplied with what vanishes on the pieces
of the boundary near by.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.cells.jets import as_rows, composed, tensor, times
from cordes.ansatz.cells.levels import Level
from cordes.ansatz.cells.reference import tables
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.ansatz.singular.traced import combination
from cordes.jet import jet_of
from cordes.runtime.blocks import in_blocks

# Across an interface second derivatives jump.
POWER = 2


class Place(NamedTuple):
    """A cell: its corners, which pieces of the boundary are near, which interfaces cut it, and the
    singular points near by."""

    lower: np.ndarray
    upper: np.ndarray
    outer: np.ndarray
    interfaces: np.ndarray
    points: np.ndarray

    @property
    def center(self) -> np.ndarray:
        return (self.lower + self.upper) / 2


class RichColumns:
    """The columns of rich cells of a problem; `degree` is that of polynomials, `extra` that of
    those beside an interface."""

    def __init__(
        self,
        levels: Sequence[Level],
        interfaces: Sequence[Any],
        singular: SingularFunctions,
        degree: int,
        extra: int,
        box: tuple[np.ndarray, np.ndarray],
    ):
        """`box` is the one around the domain."""
        self.box = box
        self.levels, self.interfaces, self.singular = levels, tuple(interfaces), singular
        self.degree, self.extra = degree, extra
        i, j = np.divmod(np.arange((extra + 1) ** 2), extra + 1)
        self.low = i + j <= extra
        self.heights = [height_of(phi) for phi in self.interfaces]
        self._near: dict[tuple[bool, ...], SingularFunctions] = {}
        self._sizes: dict[tuple, float] = {}

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
        factor = self._factor(place, x)
        parts = [self._polynomials(place, x, self.degree, factor)]
        if np.any(place.interfaces):
            few = self._polynomials(place, x, self.extra, factor)[:, :, self.low]
            for k in np.flatnonzero(place.interfaces).tolist():
                parts.append(times(self._step(place, k, x), few))
        if np.any(place.points):
            parts.append(_derivatives(self.near(place), x))
        return np.concatenate(parts, axis=2)

    def _polynomials(
        self, place: Place, x: np.ndarray, degree: int, factor: np.ndarray | None
    ) -> np.ndarray:
        axes = []
        for low, high, own in zip(place.lower, place.upper, x.T, strict=True):
            s, scale = (2 * own - low - high) / (high - low), 2 / (high - low)
            axes.append([part * scale**n for n, part in enumerate(tables(s, degree))])
        flat = [[part[:, :, None] for part in axes[0]], [part[:, None] for part in axes[1]]]
        found = tensor(flat).reshape(-1, len(x), (degree + 1) ** 2)
        return found if factor is None else times(factor, found)

    def _factor(self, place: Place, x: np.ndarray) -> np.ndarray | None:
        """What vanishes on the pieces of the boundary near by, of size one in the cell."""
        total = None
        for k in np.flatnonzero(place.outer).tolist():
            own = self.levels[k].rows(x) / self._size(place, ("level", k))
            total = own if total is None else times(total, own)
        return total

    def _step(self, place: Place, k: int, x: np.ndarray) -> np.ndarray:
        """max(φ, 0)² with its derivatives."""
        phi = as_rows(in_blocks(self.heights[k], (x,))) / self._size(place, ("interface", k))
        on = phi[0] > 0
        positive = np.where(on, phi[0], 0.0)
        return composed((positive**POWER, POWER * positive, POWER * on), phi)

    def _size(self, place: Place, what: tuple[str, int]) -> float:
        """What a function is divided by, once for the cell: by the points at hand, digits would be
        lost."""
        key = (*what, *place.lower.tolist(), *place.upper.tolist())
        if key not in self._sizes:
            corners = np.array([place.lower, place.upper, place.center])
            kind, k = what
            # Numbers also inside of a trace.
            with jax.ensure_compile_time_eval():
                if kind == "level":
                    slopes = self.levels[k].rows(corners)[1:3].T
                else:
                    slopes = np.asarray(self.heights[k](corners).gradient)
            steepest = float(np.max(np.linalg.norm(slopes, axis=1)))
            self._sizes[key] = steepest * float(np.max(place.upper - place.lower)) / 2 or 1.0
        return self._sizes[key]

    def traced(self, place: Place, coefficients: Any, x: Any) -> Any:
        """The value of a combination of columns at one point, inside of a trace of JAX."""
        s = [_scaled(x[axis], place.lower[axis], place.upper[axis]) for axis in range(2)]
        factor = 1.0
        for number in np.flatnonzero(place.outer).tolist():
            factor = factor * self.levels[number](x) / self._size(place, ("level", number))
        k, few = self.degree + 1, int(np.sum(self.low))
        used = k * k
        total = polynomial(s, coefficients[:used].reshape(k, k)) * factor
        for number in np.flatnonzero(place.interfaces).tolist():
            square = np.zeros((self.extra + 1) ** 2)
            square[self.low] = coefficients[used : used + few]
            square, used = square.reshape(self.extra + 1, -1), used + few
            phi = self.interfaces[number](x) / self._size(place, ("interface", number))
            step = jnp.maximum(phi, 0.0) ** POWER
            total = total + step * polynomial(s, square) * factor
        if np.any(place.points):
            total = total + combination(self.near(place), coefficients[used:]).value(x[None])[0]
        return total


def _derivatives(singular: SingularFunctions, x: np.ndarray) -> np.ndarray:
    """Singular functions with their derivatives, (6, N, count)."""
    n = len(x)
    zero, none, nothing = np.zeros(n), np.zeros((n, 2)), np.zeros((n, 2, 2))
    asked = [(zero + 1, none, nothing)]
    for i in range(2):
        direction = none.copy()
        direction[:, i] = 1.0
        asked.append((zero, direction, nothing))
    for i, j in ((0, 0), (0, 1), (1, 1)):
        matrix = nothing.copy()
        matrix[:, i, j] += 0.5
        matrix[:, j, i] += 0.5
        asked.append((zero, none, matrix))
    return np.stack(singular.all_rows(x, asked))


@functools.lru_cache(maxsize=64)
def height_of(phi: Callable) -> Callable:
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
    """Σ U_ij… P_i(X) P_j(Y) … in JAX, of one polynomial or of as many as there are points."""
    total = jnp.asarray(coefficients)
    for own in reversed(s):
        values = jnp.stack(legendre_values(own, total.shape[-1]), axis=-1)
        between = (1,) * (total.ndim - values.ndim)
        values = values.reshape(*values.shape[:-1], *between, values.shape[-1])
        total = jnp.sum(total * values, axis=-1)
    return total
