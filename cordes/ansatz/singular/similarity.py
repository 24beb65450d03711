"""What diffusion makes of kinks in initial values: functions of ξ = y/√(2t), the distance from a
kink in its own units over the length that has been smoothed.

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
from cordes.ansatz.singular.curves_in_time import Curve
from cordes.domains.cylinder import Cylinder
from cordes.domains.unit_cube import gauss_rule
from cordes.jet import Jet, contract, jet_of, product
from cordes.problems.kinks.initial_kinks import InitialKink, Start
from cordes.problems.kinks.initial_pieces import ComparedPieces, differences, smoothed
from cordes.runtime.blocks import in_blocks

# The first moment, as a share of the time: before it nothing has been smoothed.
FIRST = 1e-30
# Points at which a metric that changes along the way is looked at.
ALONG = 12
# Features of each of the two networks of a kink, by richness, and the deviation of their weights.
WIDTHS, FREQUENCY, SEED = (80, 160, 250), 2.0, 1000
# All of them together, and those of one at least.
MOST, LEAST = 1200, 40

Matrix = Callable[[Array], Array]


def normal_share(z: Any) -> Any:
    """Φ."""
    return 0.5 * jax.scipy.special.erfc(-z / np.sqrt(2.0))


def normal_density(z: Any) -> Any:
    """φ."""
    return jnp.exp(-z * z / 2) / np.sqrt(2 * np.pi)


class Front(NamedTuple):
    """A kink with the matrix that smooths it, a function of x."""

    kink: InitialKink
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
        gap = jnp.dot(normal, x) - self.kink.offset
        foot = x - gap * self._direction
        points, weights = (jnp.asarray(part) for part in gauss_rule(ALONG))
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
        with jax.ensure_compile_time_eval():
            # A number, also where whoever asks is being compiled.
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

        def compare(number: int, p: Any, q: Any) -> ComparedPieces:
            if number not in known:
                return ComparedPieces(1.0 if self.start.first[number] else 0.0, 0.0)
            y, m = known[number]
            return ComparedPieces(normal_share(y / root), m * root * normal_density(y / root))

        return jnp.asarray(smoothed(self.initial, x, compare), float)


Modulation = Callable[[Any, Array], Array]


def modulations(domain: Cylinder, front: Front) -> tuple[Modulation, Modulation]:
    """t Φ(ξ) D and √t φ(ξ) D, functions of nothing else and one point of the cylinder."""

    def parts(z: Array) -> tuple[Array, Array, Array]:
        since = jnp.maximum(z[-1] - domain.start, FIRST)
        y, _ = front.distance(z[:-1])
        return domain.base.distance(z[:-1]), since / domain.length, y / jnp.sqrt(2 * since)

    def share(_: Any, z: Array) -> Array:
        distance, time, xi = parts(z)
        return distance * time * normal_share(xi)

    def density(_: Any, z: Array) -> Array:
        distance, time, xi = parts(z)
        return distance * jnp.sqrt(time) * normal_density(xi)

    return share, density


class Compiled(NamedTuple):
    """What is asked of the features with one modulation, compiled for all its parameters."""

    rows: Callable[..., Array]
    values: Callable[..., Array]
    jet: Callable[..., Jet]


@functools.lru_cache(maxsize=256)
def compiled(modulation: Modulation) -> Compiled:
    def jet(parameters: Any, network: RandomFeatures, x: Array) -> Jet:
        own = network.jet(x)
        return product(jax.vmap(jet_of(functools.partial(modulation, parameters)))(x), own)

    def rows(parameters: Any, network: RandomFeatures, x: Array, *expression: Array) -> Array:
        zeroth, first, second = expression
        D = jax.vmap(jet_of(functools.partial(modulation, parameters)))(x)
        of_value = contract(second, D.hessian) + jnp.sum(first * D.gradient, axis=1)
        of_value = of_value + zeroth * D.value
        of_slope = 2 * jnp.einsum("nij,nj->ni", second, D.gradient) + D.value[:, None] * first
        inputs = jax.vmap(network.inputs.jet)(x)
        frozen = Frozen(inputs, of_value, of_slope, D.value[:, None, None] * second)
        return network.row_features(frozen)

    def values(parameters: Any, network: RandomFeatures, x: Array) -> Array:
        hidden = jax.vmap(lambda point: network.inputs.jet(point).value)(x)
        weight, bias = network.layers[0]
        factor = jax.vmap(functools.partial(modulation, parameters))(x)
        return factor[:, None] * jnp.sin(hidden @ weight + bias)

    return Compiled(jax.jit(rows), jax.jit(values), jax.jit(jet))


class SimilarityPart(NamedTuple):
    """One modulation with its parameters and its network, whose coefficients are amplitudes."""

    modulation: Modulation
    parameters: Any
    network: RandomFeatures

    @property
    def compiled(self) -> Compiled:
        return compiled(self.modulation)


class SimilarityFunctions:
    """The features of all kinks, and of curves at which an answer bends; the same questions are
    answered as by singular functions of the plane."""

    # Their amplitudes may be large.
    damped = False

    def __init__(
        self,
        domain: Cylinder,
        fronts: Sequence[Front] = (),
        layers: Sequence[Any] = (),
        modulated: Sequence[Modulation] = (),
        richness: int = 0,
        curves: Sequence[Curve] = (),
        bending: Modulation | None = None,
    ):
        """`modulated` are the modulations of the fronts and of layers at faces, `bending` is that
        of curves, whose parameters are a curve."""
        self.domain, self.fronts, self.curves = domain, tuple(fronts), tuple(curves)
        self.layers = tuple(layers)
        parts = max(len(modulated) + len(curves), 1)
        width = min(WIDTHS[min(richness, len(WIDTHS) - 1)], max(MOST // parts, LEAST))
        inputs = Inputs(domain)
        self.families: tuple[Any, ...] = ()
        found: list[tuple[Any, Any]] = [(each, ()) for each in modulated]
        found += [(bending, curve.parameters) for curve in curves]
        self.parts = [
            SimilarityPart(
                modulation, parameters, RandomFeatures(inputs, width, FREQUENCY, SEED + k)
            )
            for k, (modulation, parameters) in enumerate(found)
        ]
        self.counts = tuple(width for _ in self.parts)
        self.count = sum(self.counts)

    def rows(
        self, x: np.ndarray, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """zeroth·S + first·∇S + second:D²S for all functions, (N, count)."""
        found = [
            in_blocks(
                functools.partial(part.compiled.rows, part.parameters, part.network),
                (x, zeroth, first, second),
            )
            for part in self.parts
        ]
        return np.concatenate([np.zeros((len(x), 0)), *found], axis=1)

    def values(self, x: np.ndarray) -> np.ndarray:
        found = [
            in_blocks(functools.partial(part.compiled.values, part.parameters, part.network), (x,))
            for part in self.parts
        ]
        return np.concatenate([np.zeros((len(x), 0)), *found], axis=1)

    def combined_jet(self, x: np.ndarray, amplitudes: np.ndarray) -> Jet:
        jets = [
            in_blocks(functools.partial(part.compiled.jet, part.parameters, network), (x,))
            for part, network in self._weighted(amplitudes)
        ]
        return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *jets)

    def jet(self, x: Array, amplitudes: Any) -> Jet:
        """The jet of Σ amplitude·S, for traces of JAX."""
        n, d = x.shape
        total = Jet(jnp.zeros(n), jnp.zeros((n, d)), jnp.zeros((n, d, d)))
        for part, network in self._weighted(amplitudes):
            own = part.compiled.jet(part.parameters, network, x)
            total = jax.tree.map(jnp.add, total, own)
        return total

    def value(self, x: Array, amplitudes: Any) -> Array:
        total = jnp.zeros(len(x))
        for part, network in self._weighted(amplitudes):
            factor = jax.vmap(functools.partial(part.modulation, part.parameters))(x)
            total = total + factor * network.value(x)
        return total

    def _weighted(self, amplitudes: Any) -> list[tuple[SimilarityPart, Any]]:
        """The parts with their networks, whose coefficients are now the amplitudes."""
        ends = np.cumsum((0, *self.counts))
        return [
            (part, part.network.with_coefficients(amplitudes[first:last]))
            for part, first, last in zip(self.parts, ends[:-1], ends[1:], strict=True)
        ]
