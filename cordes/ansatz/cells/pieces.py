"""Global polynomials: one on the whole domain, or on a box one on each piece between lines, joined
to a C¹ function by construction. Where solutions are smooth, nothing needs fewer numbers."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.cells.axis import Axis, axes_of
from cordes.ansatz.cells.jets import all_orders, as_jet, second_orders
from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork
from cordes.errors import OptionError
from cordes.jet import Jet, contract, jet_of

PIECES = "pieces"
# Numbers of a table of all functions at points that are held at once.
HELD = 1 << 22
# What a file keeps, with its axes; and the largest degree that it may have.
ARRAYS = {"lines": 2, "degrees": 1}
LARGEST = 64
# Products and lines of which a file may tell; answers have some thousands.
MOST_PRODUCTS, MOST_LINES = 1_000_000, 10_000
# The products of functions of one variable that are taken: ranks of at most the degree in this
# norm. In three dimensions a ball has a sixth of the products of a cube, and is as good.
NORM = {1: math.inf, 2: math.inf, 3: 2.0}


class Pieces(AbstractHostNetwork):
    """Σ coefficients · products of the functions of each axis. `vanishing`: they are zero on the
    boundary of their box; else they are plain polynomials for a factor that is."""

    inputs: Inputs
    axes: tuple[Axis, ...] = eqx.field(static=True)
    vanishing: bool = eqx.field(static=True)
    layers: tuple
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)

    def __init__(self, inputs: Inputs, axes: tuple[Axis, ...], coefficients: np.ndarray | None):
        self.inputs, self.axes, self.vanishing = inputs, axes, axes[0].vanishing
        self.layers, self.activation = (), PIECES
        count = len(products_of(axes)[0])
        self.coefficients = np.zeros(count) if coefficients is None else coefficients

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        return boxes_of(self.axes)

    @property
    def parameters(self) -> Any:
        return self.coefficients

    @property
    def degrees(self) -> tuple[int, ...]:
        return tuple(axis.degree for axis in self.axes)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file keeps."""
        longest = max(len(axis.lines) for axis in self.axes)
        # The last line stands for those that there are not.
        lines = np.array([(axis.lines + axis.lines[-1:] * longest)[:longest] for axis in self.axes])
        return {"lines": lines, "degrees": np.array(self.degrees, float)}

    @functools.cached_property
    def tensor(self) -> np.ndarray:
        """The coefficients by the functions of each axis."""
        return tensor_of(self.axes, self.coefficients)

    def jet_at(self, x: np.ndarray) -> Jet:
        return as_jet(np.stack(self._summed(np.asarray(x, float), self.tensor, False)))

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, gradient, hessian = self.jet_at(x)
        total = contract(A, hessian) + np.sum(b * gradient, axis=1) - c * value
        parts = self._summed(np.asarray(x, float), np.abs(self.tensor), True)
        d, sizes = len(self.axes), np.abs(c) * parts[0]
        for axis in range(d):
            sizes = sizes + np.abs(b[:, axis]) * parts[1 + axis]
        for (i, j), part in zip(second_orders(d), parts[1 + d :], strict=True):
            both = np.abs(A[:, i, j]) + (np.abs(A[:, j, i]) if i != j else 0.0)
            sizes = sizes + both * part
        return total, sizes

    def _summed(self, x: np.ndarray, tensor: np.ndarray, sizes: bool) -> list[np.ndarray]:
        """The value, the first and the second derivatives at points (N, d)."""
        step = max(HELD // tensor.size, 64)
        parts = [self._chunk(x[k : k + step], tensor, sizes) for k in range(0, len(x), step)]
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _chunk(self, x: np.ndarray, tensor: np.ndarray, sizes: bool) -> list[np.ndarray]:
        tables = [axis.tables(x[:, k]) for k, axis in enumerate(self.axes)]
        if sizes:
            tables = [[np.abs(part) for part in each] for each in tables]
        # One axis after the other, the last first: partial sums serve several derivatives.
        known: dict[tuple[int, ...], np.ndarray] = {}

        def contracted(orders: tuple[int, ...]) -> np.ndarray:
            axis = len(self.axes) - len(orders)
            if not orders:
                return tensor
            if orders not in known:
                rest, table = contracted(orders[1:]), tables[axis][orders[0]]
                if len(orders) == 1:
                    known[orders] = np.moveaxis(tensor @ table.T, -1, 0)
                else:
                    flat = rest.reshape(len(x), -1, rest.shape[-1])
                    known[orders] = np.matmul(flat, table[:, :, None]).reshape(rest.shape[:-1])
            return known[orders]

        return [contracted(orders) for orders in all_orders(len(self.axes))]

    # Traces ---------------------------------------------------------------------------------------

    def value(self, x: Array) -> Array:
        """N at points (N, d) of JAX."""
        return jax.vmap(self._traced)(x)

    def jet(self, x: Array) -> Jet:
        return jax.vmap(jet_of(self._traced))(x)

    def _traced(self, x: Array) -> Array:
        total = jnp.asarray(self.tensor)
        for k in reversed(range(len(self.axes))):
            total = total @ self.axes[k].values(x[k], jnp)
        return total


@functools.lru_cache(maxsize=64)
def products_of(axes: tuple[Axis, ...]) -> list[np.ndarray]:
    """Which function of each axis each product has."""
    ranks = [axis.ranks / max(axis.degree, 1) for axis in axes]
    grid = np.meshgrid(*ranks, indexing="ij")
    norm = NORM[len(axes)] if axes[0].vanishing else 1.0
    size = np.linalg.norm(np.stack([each.ravel() for each in grid]), ord=norm, axis=0)
    chosen = np.flatnonzero(size <= 1 + 1e-9)
    return list(np.unravel_index(chosen, grid[0].shape))


def tensor_of(axes: tuple[Axis, ...], coefficients: np.ndarray) -> np.ndarray:
    tensor = np.zeros([len(axis.ranks) for axis in axes])
    tensor[tuple(products_of(axes))] = coefficients
    return tensor


def boxes_of(axes: tuple[Axis, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners of the pieces."""
    ends = [
        list(itertools.product(*(axis.lines[k : len(axis.lines) - 1 + k] for axis in axes)))
        for k in (0, 1)
    ]
    return np.array(ends[0], float), np.array(ends[1], float)


def from_pieces(
    arrays: dict[str, np.ndarray],
    inputs: Inputs,
    vanishing: bool,
    directions: Sequence[Any] | None = None,
) -> Pieces:
    """The answer that a file keeps; what does not fit together is refused."""
    rows, degrees, box = arrays["lines"], arrays["degrees"], inputs.center
    lines = [np.unique(row) for row in rows]
    ends = [box - inputs.scale, box + inputs.scale]
    fits = (
        len(rows) == len(degrees) == len(box)
        and rows.shape[1] <= MOST_LINES
        and all(np.all(np.diff(each) > 0) and len(each) > 1 for each in lines)
        and np.allclose([each[0] for each in lines], ends[0])
        and np.allclose([each[-1] for each in lines], ends[1])
        and np.all((degrees == np.round(degrees)) & (degrees >= 1) & (degrees <= LARGEST))
    )
    if fits:
        numbers = degrees.astype(int).tolist()
        axes = axes_of([each.tolist() for each in lines], vanishing, numbers, directions)
        # A few hundred lines along each axis have more products than there is memory for.
        few = math.prod(len(axis.ranks) for axis in axes) <= MOST_PRODUCTS
        fits = few and len(products_of(axes)[0]) == len(arrays["coefficients"])
    if not fits:
        raise OptionError("its pieces and their polynomials do not belong together")
    return Pieces(inputs, axes, np.asarray(arrays["coefficients"]))
