"""What a cell can have beside a polynomial: products of one-sided powers of interfaces with
polynomials, across which D²u may jump, and the singular functions of a point near by. Columns that
are no singular functions, which know the boundary, are multiplied with what vanishes on the pieces
of the boundary near by.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.cells.jets import as_rows, composed, tensor, times
from cordes.ansatz.cells.levels import Level
from cordes.ansatz.cells.reference import tables
from cordes.ansatz.cells.windows import REACH
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.ansatz.singular.traced import combination
from cordes.jet import jet_of
from cordes.runtime.blocks import in_blocks

# Across an interface second derivatives jump.
POWER = 2
# Modes fall by about this factor each.
FALL = 10.0
# Points along each axis that show where a part of a cell is.
LATTICE = 33


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


class ColumnFrame(NamedTuple):
    """The box to which polynomials are scaled, their degree, and the side of an interface that they
    are on."""

    lower: np.ndarray
    upper: np.ndarray
    degree: int
    sign: float = 1.0


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
        self.heights = [height_of(phi) for phi in self.interfaces]
        self._near: dict[tuple[bool, ...], SingularFunctions] = {}
        self._sizes: dict[tuple, float] = {}
        self._frames: dict[tuple, ColumnFrame] = {}

    def count(self, place: Place) -> int:
        frames = [self.frame(place, k) for k in np.flatnonzero(place.interfaces).tolist()]
        beside = sum(int(np.sum(low_products(frame.degree))) for frame in frames)
        return (self.frame(place).degree + 1) ** 2 + beside + self.near(place).count

    def near(self, place: Place) -> SingularFunctions:
        """The singular functions of the points near a cell."""
        key = tuple(bool(each) for each in place.points)
        if key not in self._near:
            self._near[key] = self.singular.only(key)
        return self._near[key]

    def heights_at(self, x: np.ndarray, wanted: np.ndarray) -> dict[int, np.ndarray]:
        """The derivatives of interfaces at points, for `at`: many points cost little more than
        few."""
        numbers = np.flatnonzero(wanted).tolist()
        return {k: as_rows(in_blocks(self.heights[k], (x,))) for k in numbers}

    def at(
        self, place: Place, x: np.ndarray, heights: dict[int, np.ndarray] | None = None
    ) -> np.ndarray:
        """All columns at points (N, 2) with their derivatives, (6, N, columns)."""
        if heights is None:
            heights = self.heights_at(x, place.interfaces)
        factor = self._factor(place, x)
        parts = [self._polynomials(self.frame(place), x, factor)]
        for k in np.flatnonzero(place.interfaces).tolist():
            frame = self.frame(place, k)
            few = self._polynomials(frame, x, factor)[:, :, low_products(frame.degree)]
            parts.append(times(self._step(place, k, heights[k]), few))
        if np.any(place.points):
            parts.append(_derivatives(self.near(place), x))
        return np.concatenate(parts, axis=2)

    def frame(self, place: Place, interface: int | None = None) -> ColumnFrame:
        """Where polynomials are: in the part of the cell that lies in the domain; or, beside an
        interface, on its smaller side, so that what is small there is no difference of what is
        large."""
        key = (interface, *_key(place))
        if key not in self._frames:
            with jax.ensure_compile_time_eval():
                self._frames[key] = self._frame(place, interface)
        return self._frames[key]

    def _frame(self, place: Place, interface: int | None) -> ColumnFrame:
        cut = [k for k in np.flatnonzero(place.outer).tolist() if self.levels[k].bounds(place)]
        degree = self.degree if interface is None else self.extra
        whole = ColumnFrame(place.lower, place.upper, degree)
        if interface is None and not cut:
            return whole
        reach = REACH * (place.upper - place.lower)
        axes = np.linspace(place.lower - reach, place.upper + reach, LATTICE).T
        x = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
        for k in cut:
            x = x[self.levels[k].rows(x)[0] >= 0]
        sign = 1.0
        if interface is not None:
            phi = np.asarray(self.interfaces_at(interface, x))
            sign = 1.0 if np.sum(phi > 0) <= np.sum(phi < 0) else -1.0
            x = x[sign * phi >= 0]
        if not len(x):
            return whole._replace(sign=sign)
        # As much more as there may be between points.
        step = (place.upper - place.lower) / (LATTICE - 1)
        lower = np.maximum(np.min(x, axis=0) - step, place.lower - reach)
        upper = np.minimum(np.max(x, axis=0) + step, place.upper + reach)
        share = min(float(np.max((upper - lower) / (place.upper - place.lower))), 1.0)
        return ColumnFrame(lower, upper, fewer(degree, share), sign)

    def interfaces_at(self, interface: int, x: np.ndarray) -> np.ndarray:
        return np.asarray(in_blocks(self.heights[interface], (x,)).value)

    def _polynomials(
        self, frame: ColumnFrame, x: np.ndarray, factor: np.ndarray | None
    ) -> np.ndarray:
        axes, degree = [], frame.degree
        for low, high, own in zip(frame.lower, frame.upper, x.T, strict=True):
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

    def _step(self, place: Place, k: int, height: np.ndarray) -> np.ndarray:
        """max(±φ, 0)² with its derivatives."""
        phi = self.frame(place, k).sign / self._size(place, ("interface", k)) * height
        on = phi[0] > 0
        positive = np.where(on, phi[0], 0.0)
        return composed((positive**POWER, POWER * positive, POWER * on), phi)

    def _size(self, place: Place, what: tuple[str, int]) -> float:
        """What a function is divided by, once for the cell: by the points at hand, digits would be
        lost."""
        key = (*what, *_key(place))
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
        factor = 1.0
        for number in np.flatnonzero(place.outer).tolist():
            factor = factor * self.levels[number](x) / self._size(place, ("level", number))
        k = self.frame(place).degree + 1
        used, s = k * k, _scaled(x, self.frame(place))
        total = polynomial(s, coefficients[:used].reshape(k, k)) * factor
        for number in np.flatnonzero(place.interfaces).tolist():
            frame = self.frame(place, number)
            low = low_products(frame.degree)
            square, few = np.zeros(len(low)), int(np.sum(low))
            square[low] = coefficients[used : used + few]
            square, used = square.reshape(frame.degree + 1, -1), used + few
            phi = self.interfaces[number](x) / self._size(place, ("interface", number))
            step = jnp.maximum(frame.sign * phi, 0.0) ** POWER
            total = total + step * polynomial(_scaled(x, frame), square) * factor
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


@functools.lru_cache(maxsize=64)
def low_products(degree: int) -> np.ndarray:
    """Of all products of polynomials those of this total degree at most."""
    i, j = np.divmod(np.arange((degree + 1) ** 2), degree + 1)
    return i + j <= degree


def fewer(count: int, share: float) -> int:
    """How many modes of so many a part of a cell needs: they fall by a factor of ten each, and the
    faster on a part."""
    needed = math.ceil(count * (math.log(FALL) / (math.log(FALL) - math.log(share))))
    return min(max(needed, 1), count)


def _key(place: Place) -> tuple:
    return (*place.lower.tolist(), *place.upper.tolist())


def _scaled(x: Any, frame: ColumnFrame) -> list[Any]:
    ends = zip(frame.lower, frame.upper, strict=True)
    return [(2 * x[k] - low - high) / (high - low) for k, (low, high) in enumerate(ends)]


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
