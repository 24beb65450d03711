"""What a barrier network is made of: frozen random features in windows, times the distance
function.

w = Σ_k c_k D exp(-E_k) sin(ω_k·z + β_k) with the distance function D and the inputs z of all
networks here (coordinates, and φ|φ| for each interface, so that D²w jumps where A does). The
windows exp(-E_k) lie around the boundary, the interfaces and singular points, where residuals are
largest. All parts are C^{1,1}, and so is w, if D and the φ are; interface functions for which that
cannot be read from their operations are left out.
"""

import itertools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks import Frozen, Inputs, RandomFeatures
from cordes.certificates.residual.candidate import BUILT_IN, EPSILON, ROUNDING_OF_SUMS
from cordes.certificates.theorems.energy import Local
from cordes.domains.domain import AbstractDomain
from cordes.errors import OptionError
from cordes.formulas.regularity import kink
from cordes.jet import contract, jet_of
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import in_blocks

# Features come in tiles that share a window; tiles without a window, by dimension, and the least
# and the largest deviation of their frequencies.
TILE = 20
OPEN_TILES, FREQUENCIES = {1: 3, 2: 14, 3: 20}, {1: (4.0, 12.0), 2: (3.0, 9.0), 3: (2.0, 6.0)}
# Widths of the windows: shares of the largest D (boundary), of the largest |φ| (interface), of the
# size of the domain (point). Tiles in each.
LAYERS, LAYER_TILES = (0.1, 0.02), 2
STRIPS, STRIP_TILES = (0.1, 0.01), 2
SPOTS, FEW_SPOTS, MOST_SPOTS = (0.3, 0.1, 0.03, 0.01), 5, 12
# Deviation of the frequencies in windows; around points they are relative to the width of the
# window.
WINDOW_FREQUENCY, SPOT_FREQUENCY = 2.0, 1.0
# A window with fewer points of the measure in it is left out: what it does there would hardly be
# seen.
RESOLVED = 30
CHUNK = 8192


class Window(NamedTuple):
    """exp(-layer·D - Σ strip_k φ_k² - spot |x - center|²), D relative to its largest value."""

    layer: np.ndarray
    strip: np.ndarray
    spot: np.ndarray
    center: np.ndarray


class Tile(NamedTuple):
    """Features with the weights (m, TILE) and phases (TILE,) in one window; or many tiles, with one
    more axis in front."""

    window: Window
    weight: np.ndarray
    bias: np.ndarray


class BarrierFeatures:
    """The terms of w and what -L makes of them. All tiles go through one compiled function."""

    def __init__(
        self, problem: AbstractProblem, singular: np.ndarray, points: np.ndarray, seed: int
    ):
        """`points` are those of the measure: they decide which windows are worth their place."""
        self.domain: AbstractDomain = problem.domain
        built_in = isinstance(self.domain, BUILT_IN)
        if found := None if built_in else kink(self.domain.distance, self.domain):
            sentence = "barrier=True needs a smooth distance function, and that of the domain may"
            raise OptionError(f"{sentence} have a kink ({found}).")
        smooth = [phi for phi in problem.interfaces if kink(phi, self.domain) is None]
        self.inputs = Inputs(self.domain, smooth)
        self._rows, self._values = jax.jit(self._rows_block), jax.jit(self._values_block)
        self._quantities = jax.jit(jax.vmap(self._quantities_at))
        self.height = float(np.max(in_blocks(self._quantities, (points,))[:, 0]))
        self.tiles = self._make_tiles(singular[:MOST_SPOTS], points, seed)

    @property
    def count(self) -> int:
        return self.tiles.bias.size

    def _quantities_at(self, x: Array) -> Array:
        """D and the squares of the interface functions at one point."""
        squares = [jnp.asarray(phi(x), float) ** 2 for phi in self.inputs.interfaces]
        return jnp.stack([self.domain.distance(x), *squares])

    def _exponent(self, window: Window, quantities: Any, x: Any) -> Any:
        """E at points (..., d)."""
        return (
            window.layer / self.height * quantities[..., 0]
            + quantities[..., 1:] @ window.strip
            + window.spot * ((x - window.center) ** 2).sum(-1)
        )

    def _make_tiles(self, singular: np.ndarray, points: np.ndarray, seed: int) -> Tile:
        d = self.domain.dimension
        size = float(np.max(self.inputs.scale))
        quantities = in_blocks(self._quantities, (points,))
        tiles = []
        for k, (window, count) in enumerate(self._windows(singular, size)):
            if k > 0 and np.sum(self._exponent(window, quantities, points) < 1) < RESOLVED:
                continue
            narrow = [SPOT_FREQUENCY if window.spot > 0 else WINDOW_FREQUENCY] * count
            for j, frequency in enumerate(narrow if k > 0 else np.linspace(*FREQUENCIES[d], count)):
                network = RandomFeatures(self.inputs, TILE, frequency, seed + 7919 * k + 104729 * j)
                weight, bias = network.layers[0]
                if window.spot > 0:
                    # Around a point the features are as narrow as the window: sin(ω·(x -
                    # center)/width + β).
                    zoom = math.sqrt(window.spot) * self.inputs.scale
                    weight = np.concatenate([weight[:d] * zoom[:, None], weight[d:]])
                    shift = (window.center - self.inputs.center) / self.inputs.scale
                    bias = bias - shift @ weight[:d]
                tiles.append(Tile(window, weight, bias))
        return jax.tree.map(lambda *leaves: np.stack(leaves), *tiles)

    def _windows(self, singular: np.ndarray, size: float) -> list[tuple[Window, int]]:
        """Windows with the number of tiles in each; the first one is open."""
        zero, interfaces = np.zeros(()), len(self.inputs.interfaces)
        open_ = Window(zero, np.zeros(interfaces), zero, np.asarray(self.domain.center, float))
        windows = [(open_, OPEN_TILES[self.domain.dimension])]
        windows += [(open_._replace(layer=np.asarray(1 / width)), LAYER_TILES) for width in LAYERS]
        for strip, width in itertools.product(np.eye(interfaces), STRIPS):
            scaled = strip / (width * self.inputs.interface_scale) ** 2
            windows.append((open_._replace(strip=scaled), STRIP_TILES))
        widths = SPOTS if len(singular) <= FEW_SPOTS else SPOTS[1:3]
        for point, width in itertools.product(singular, widths):
            spot = np.asarray((width * size) ** -2.0)
            windows.append((open_._replace(spot=spot, center=point), 1))
        return windows

    def _window_at(self, window: Window, x: Array) -> Array:
        """D exp(-E) at one point."""
        quantities = self._quantities_at(x)
        return quantities[0] / self.height * jnp.exp(-self._exponent(window, quantities, x))

    def _rows_block(self, x: Array, A: Array, b: Array, c: Array) -> Array:
        """-L of each feature at points, (N, count): L(hN) sorted by derivatives of the network N,
        as in `cordes.ansatz.ansatz`, with h = D exp(-E)."""
        inputs, template = jax.vmap(self.inputs.jet)(x), RandomFeatures(self.inputs, TILE, 1.0)

        def rows(tile: Tile) -> Array:
            h = jax.vmap(jet_of(lambda y: self._window_at(tile.window, y)))(x)
            zeroth = contract(A, h.hessian) + jnp.sum(b * h.gradient, axis=1) - c * h.value
            first = 2 * jnp.einsum("nij,nj->ni", A, h.gradient) + h.value[:, None] * b
            layers = ((tile.weight, tile.bias),)
            network = eqx.tree_at(lambda network: network.layers, template, layers)
            return -network.row_features(Frozen(inputs, zeroth, first, h.value[:, None, None] * A))

        return self._joined(jax.lax.map(rows, jax.tree.map(jnp.asarray, self.tiles)))

    def _values_block(self, x: Array) -> Array:
        """The features themselves, (N, count)."""
        inputs = jax.vmap(lambda y: self.inputs.jet(y).value)(x)

        def values(tile: Tile) -> Array:
            window = jax.vmap(lambda y: self._window_at(tile.window, y))(x)
            return window[:, None] * jnp.sin(inputs @ tile.weight + tile.bias)

        return self._joined(jax.lax.map(values, jax.tree.map(jnp.asarray, self.tiles)))

    def _joined(self, tiles: Array) -> Array:
        return jnp.moveaxis(tiles, 0, 1).reshape(tiles.shape[1], self.count)

    def rows(self, x: np.ndarray, local: Local) -> np.ndarray:
        """-L of each feature at points, (N, count)."""
        return in_blocks(self._rows, (x, *local))

    def values(self, x: np.ndarray) -> np.ndarray:
        """The features themselves at points, (N, count)."""
        return in_blocks(self._values, (x,))

    def applied(self, x: np.ndarray, local: Local, coefficients: np.ndarray) -> np.ndarray:
        """-Lw at points, rounded down; `coefficients` (count,) or (count, k) for k functions at
        once."""
        chunks = [slice(k, k + CHUNK) for k in range(0, len(x), CHUNK)]
        rows = (self.rows(x[here], Local(*(part[here] for part in local))) for here in chunks)
        return np.concatenate([_sums(each, coefficients, -1.0) for each in rows])

    def value(self, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """w at points, rounded up."""
        rows = (self.values(x[k : k + CHUNK]) for k in range(0, len(x), CHUNK))
        return np.concatenate([_sums(each, coefficients, 1.0) for each in rows])


def _sums(rows: np.ndarray, coefficients: np.ndarray, direction: float) -> np.ndarray:
    """rows @ coefficients, rounded up or down."""
    size = np.abs(rows) @ np.abs(coefficients)
    return rows @ coefficients + direction * ROUNDING_OF_SUMS * EPSILON * size
