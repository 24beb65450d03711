"""What diffusion makes of kinks in initial values: functions of ξ = y/√(2t), the distance from a kink
in its own units over the length that has been smoothed.

With y the distance in the metric of A⁻¹ the equation is u_t = u_yy to first order, and max(p, q)
becomes q + (p - q)Φ(ξ) + m√(2t)φ(ξ), m the slope of p - q along y. Whatever follows, with variable
coefficients, drift and reaction, has the form

    N₀ + t Φ(ξ) N₁ + √t φ(ξ) N₂,      N₀, N₁, N₂ smooth in x and t

(the heat kernel is φ(ξ) times a smooth function), so that two networks with the distance function t
Φ(ξ) D or √t φ(ξ) D for each kink make the answer as accurate as if there were none.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import Frozen
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.domains.cylinder import Cylinder
from cordes.domains.unit_cube import gauss_rule
from cordes.jet import Jet, contract, jet_of, product
from cordes.problems.initial_kinks import Kink, Start
from cordes.problems.initial_pieces import Compared, differences, smoothed
from cordes.runtime.blocks import in_blocks

# The first moment, as a share of the time: before it nothing has been smoothed.
FIRST = 1e-30
# Points at which a metric that changes along the way is looked at.
ALONG = 12
# Features of each of the two networks of a kink, by richness, and the deviation of their weights.
WIDTHS, FREQUENCY = (80, 160, 250), 2.0

Matrix = Callable[[Array], Array]


def normal_share(z: Any) -> Any:
    """Φ."""
    return 0.5 * jax.scipy.special.erfc(-z / np.sqrt(2.0))


def normal_density(z: Any) -> Any:
    """φ."""
    return jnp.exp(-z * z / 2) / np.sqrt(2 * np.pi)


class Front(NamedTuple):
    """A kink with the matrix that smooths it, a function of x."""

    kink: Kink
    matrix: Matrix
    initial: Callable[..., Array]

    def level(self, x: Array) -> Array:
        return differences(self.initial, x)[self.kink.number]

    def distance(self, x: Array) -> tuple[Array, Array]:
        """y, and m = ∂(p - q)/∂y at the kink."""
        normal = self.kink.normal
        if normal is None:
            slope = jax.grad(self.level)(x)
            size = jnp.sqrt(slope @ self.matrix(x) @ slope)
            return self.level(x) / size, size
        gap = normal @ x - self.kink.offset
        foot = x - gap * self._direction
        points, weights = (np.asarray(part) for part in gauss_rule(ALONG))
        along = foot + points[:, None] * (x - foot)
        sizes = jnp.sqrt(jax.vmap(lambda z: normal @ self.matrix(z) @ normal)(along))
        at_foot = jnp.sqrt(normal @ self.matrix(foot) @ normal)
        _, steep = jax.jvp(self.level, (foot,), (jnp.asarray(self._direction),))
        return gap * jnp.sum(weights / sizes), steep * at_foot

    @property
    def _direction(self) -> np.ndarray:
        """The way from a point to its foot on the plane: one step changes n·x by one."""
        normal = self.kink.normal
        assert normal is not None
        middle = np.mean(self.kink.places, axis=0) if self.kink.active else None
        if middle is None or len(normal) == 1:
            return normal / (normal @ normal)
        along = np.asarray(self.matrix(jnp.asarray(middle))) @ normal
        return along / (normal @ along)


class Fronts(NamedTuple):
    """All kinks of the initial values of a cylinder."""

    start: Start
    fronts: tuple[Front, ...]
    initial: Callable[..., Array]
    time: float

    @property
    def active(self) -> tuple[Front, ...]:
        return tuple(front for front in self.fronts if front.kink.active)

    def carried(self, x: Array, t: Array) -> Array:
        """The initial values with smoothed comparisons; at the start these values themselves."""
        root = jnp.sqrt(2 * jnp.maximum(t - self.time, FIRST))
        known = {front.kink.number: front.distance(x) for front in self.fronts}

        def compare(number: int, p: Any, q: Any) -> Compared:
            if number not in known:
                return Compared(1.0 if self.start.first[number] else 0.0, 0.0)
            y, m = known[number]
            return Compared(normal_share(y / root), m * root * normal_density(y / root))

        return jnp.asarray(smoothed(self.initial, x, compare), float)


def modulations(domain: Cylinder, front: Front) -> tuple[Callable, Callable]:
    """t Φ(ξ) D and √t φ(ξ) D, functions of one point of the cylinder."""

    def parts(z: Array) -> tuple[Array, Array, Array]:
        since = jnp.maximum(z[-1] - domain.start, FIRST)
        y, _ = front.distance(z[:-1])
        return domain.base.distance(z[:-1]), since / domain.length, y / jnp.sqrt(2 * since)

    def share(z: Array) -> Array:
        distance, time, xi = parts(z)
        return distance * time * normal_share(xi)

    def density(z: Array) -> Array:
        distance, time, xi = parts(z)
        return distance * jnp.sqrt(time) * normal_density(xi)

    return share, density


class Part(NamedTuple):
    """One modulation with its network, whose coefficients are amplitudes."""

    modulation: Callable[[Array], Array]
    network: RandomFeatures


class SimilarityFunctions:
    """The features of all kinks; the same questions are answered as by singular functions of the
    plane."""

    # Their amplitudes may be large.
    damped = False

    def __init__(
        self, domain: Cylinder, fronts: Sequence[Front] = (), richness: int = 0, seed: int = 0
    ):
        self.domain, self.fronts = domain, tuple(fronts)
        width = WIDTHS[min(richness, len(WIDTHS) - 1)]
        inputs = Inputs(domain)
        self.families: tuple[Any, ...] = ()
        self.parts = [
            Part(modulation, RandomFeatures(inputs, width, FREQUENCY, seed + 1000 + 2 * k + j))
            for k, front in enumerate(fronts)
            for j, modulation in enumerate(modulations(domain, front))
        ]
        self.counts = tuple(width for _ in self.parts)
        self.count = sum(self.counts)
        self._rows = [jax.jit(functools.partial(_rows, part)) for part in self.parts]
        self._values = [jax.jit(functools.partial(_values, part)) for part in self.parts]
        self._jet = jax.jit(self.jet)

    def rows(
        self, x: np.ndarray, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """zeroth·S + first·∇S + second:D²S for all functions, (N, count)."""
        found = [in_blocks(rows, (x, zeroth, first, second)) for rows in self._rows]
        return np.concatenate([np.zeros((len(x), 0)), *found], axis=1)

    def values(self, x: np.ndarray) -> np.ndarray:
        found = [in_blocks(values, (x,)) for values in self._values]
        return np.concatenate([np.zeros((len(x), 0)), *found], axis=1)

    def combined_jet(self, x: np.ndarray, amplitudes: np.ndarray) -> Jet:
        return in_blocks(lambda block: self._jet(block, amplitudes), (x,))

    def jet(self, x: Array, amplitudes: Any) -> Jet:
        """The jet of Σ amplitude·S, for traces of JAX too."""
        n, d = x.shape
        total, start = Jet(jnp.zeros(n), jnp.zeros((n, d)), jnp.zeros((n, d, d))), 0
        for part, count in zip(self.parts, self.counts, strict=True):
            weights = jnp.asarray(amplitudes)[start : start + count]
            start += count
            own = part.network.with_coefficients(weights).jet(x)
            total = product(jax.vmap(jet_of(part.modulation))(x), own, plus=total)
        return total

    def value(self, x: Array, amplitudes: Any) -> Array:
        total, start = jnp.zeros(len(x)), 0
        for part, count in zip(self.parts, self.counts, strict=True):
            weights = jnp.asarray(amplitudes)[start : start + count]
            start += count
            own = part.network.with_coefficients(weights).value(x)
            total = total + jax.vmap(part.modulation)(x) * own
        return total


def _rows(part: Part, x: Array, zeroth: Array, first: Array, second: Array) -> Array:
    D = jax.vmap(jet_of(part.modulation))(x)
    of_value = contract(second, D.hessian) + jnp.sum(first * D.gradient, axis=1) + zeroth * D.value
    of_slope = 2 * jnp.einsum("nij,nj->ni", second, D.gradient) + D.value[:, None] * first
    inputs = jax.vmap(part.network.inputs.jet)(x)
    frozen = Frozen(inputs, of_value, of_slope, D.value[:, None, None] * second)
    return part.network.row_features(frozen)


def _values(part: Part, x: Array) -> Array:
    network = part.network
    hidden = jax.vmap(lambda point: network.inputs.jet(point).value)(x)
    weight, bias = network.layers[0]
    return jax.vmap(part.modulation)(x)[:, None] * jnp.sin(hidden @ weight + bias)
