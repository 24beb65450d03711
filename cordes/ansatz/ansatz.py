"""The ansatz u = G + D·N + Σ amplitude·S: lift, distance times network, singular functions.
Boundary values are exact by construction.

`freeze` turns a linear equation at given points into rows: linear expressions in the network's jet,
in the singular amplitudes, and a target. This is all that a solver sees. With `hard=False` (the
paper's composite loss) G = 0 and D = 1, and boundary rows are added by whoever wants them.
"""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork, AbstractNetwork, Frozen
from cordes.ansatz.singular.functions import SingularFunctions
from cordes.ansatz.singular.similarity import SimilarityFunctions
from cordes.ansatz.singular.traced import combination
from cordes.domains.domain import AbstractDomain, Fit, Lift
from cordes.jet import Jet, contract, jet_of, product
from cordes.runtime.blocks import in_blocks, is_traced

# Features are evaluated in groups of this size: one compilation serves all widths.
COLUMNS = 250


class Rows(NamedTuple):
    """Frozen linear equations: network expression + singular·amplitudes = target, one for each
    point, weights included; NumPy arrays."""

    frozen: Frozen
    singular: np.ndarray
    target: np.ndarray

    @property
    def count(self) -> int:
        return self.target.shape[0]


class Ansatz:
    """Everything that is fixed while a problem is solved; the state is a network and the amplitudes
    of the singular functions."""

    def __init__(
        self,
        domain: AbstractDomain,
        g: Callable | None,
        interfaces: Sequence[Callable] = (),
        inputs: Inputs | None = None,
        hard: bool = True,
        base: Callable | None = None,
        fit: Fit | None = None,
        kinks: Callable | None = None,
    ):
        """`interfaces` shape the lift, `inputs` are what the network sees, by default coordinates
        alone; g = None means zero boundary values. `base` takes the place of the lift where
        boundary values are not exact (`hard=False`). `fit` is that of the lift of an earlier
        ansatz. `kinks` is a function with the kinks of g: what is left of it is smooth along the
        boundary."""
        self.domain = domain
        self.hard = hard
        plain = Inputs(domain, coordinates=domain.coordinates if hard else None)
        self.inputs = plain if inputs is None else inputs
        self.singular = SingularFunctions(domain)
        self._lift = base if not hard else _lift(domain, g, interfaces, fit, kinks)
        # Whether networks vanish on the boundary by themselves, and have all singular functions.
        self._vanishing = self._alone = False
        # What is taken off the answer, where it is known up to a constant.
        self._mean = 0.0
        # What is compiled, with the distance and without: it serves all copies.
        self._programs: dict[bool, tuple] = {}
        self._compile()

    def _compile(self) -> None:
        if self._vanishing not in self._programs:
            blocks = self.freeze_block, self._value_block, self._sum_block, self._jet_block
            network_jet = jax.jit(lambda network, x: network.jet(x))
            self._programs[self._vanishing] = (*map(jax.jit, blocks), network_jet)
        programs = self._programs[self._vanishing]
        self._freeze, self._value, self._sum, self._jet, self._network_jet = programs

    def with_singular(self, singular: SingularFunctions | SimilarityFunctions) -> "Ansatz":
        """The same ansatz with other singular functions; what is compiled stays compiled."""
        other = copy.copy(self)
        other.singular = singular
        return other

    def lowered(self, mean: float) -> "Ansatz":
        """The same ansatz for answers that are less by a number."""
        other = copy.copy(self)
        other._mean, other._programs = mean, {}
        other._compile()
        return other

    def without_distance(self, alone: bool = True) -> "Ansatz":
        """The same ansatz for networks that fulfil what holds on the boundary by themselves;
        `alone`: they have singular functions of their own."""
        if self._vanishing and self._alone == alone:
            return self
        other = copy.copy(self)
        other._vanishing, other._alone = True, alone
        if self.inputs.coordinates is not None:
            other.inputs = Inputs(self.domain, self.inputs.interfaces, self.inputs.powers)
        other._compile()
        return other

    def distance(self, x: Array) -> Array:
        plain = self.hard and not self._vanishing
        return self.domain.distance(x) if plain else jnp.ones(())

    def lift(self, x: Array) -> Array:
        lift = self._lift(x) if self._lift is not None else jnp.zeros(())
        return lift - self._mean if self._mean else lift

    @property
    def fits(self) -> list[Fit]:
        """The fit in the lift, if there is one: who saves an answer must save it too."""
        fit = self._lift.fit if isinstance(self._lift, Lift) else None
        return [] if fit is None else [fit]

    # Rows -----------------------------------------------------------------------------------------

    def freeze(
        self,
        x: np.ndarray,
        A: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        f: np.ndarray,
        factor: np.ndarray,
    ) -> Rows:
        """Rows factor·(A:D²u + b·∇u - cu - f) at points (N, d); `factor` (N,) holds the multiplier
        and the weight of each row."""
        A, b, c, f = factor[:, None, None] * A, factor[:, None] * b, factor * c, factor * f
        frozen, target = in_blocks(self._freeze, (x, A, b, c, f))
        singular = np.zeros((len(x), 0)) if self._alone else self.singular.rows(x, -c, b, A)
        return Rows(frozen, singular, target)

    def freeze_block(
        self, x: Array, A: Array, b: Array, c: Array, f: Array
    ) -> tuple[Frozen, Array]:

        def applied(jet: Jet) -> Array:
            return contract(A, jet.hessian) + jnp.sum(b * jet.gradient, axis=1) - c * jet.value

        D = jax.vmap(jet_of(self.distance))(x)
        target = f if self._lift is None else f - applied(jax.vmap(jet_of(self.lift))(x))
        # A:D²(DN) + b·∇(DN) - cDN, sorted by derivatives of N.
        first = 2 * jnp.einsum("nij,nj->ni", A, D.gradient) + D.value[:, None] * b
        frozen = Frozen(jax.vmap(self.inputs.jet)(x), applied(D), first, D.value[:, None, None] * A)
        return frozen, target

    # Values ---------------------------------------------------------------------------------------

    def value(self, network: AbstractNetwork, amplitudes: ArrayLike, x: Any) -> Any:
        if not isinstance(network, AbstractHostNetwork):
            total = in_blocks(lambda block: self._value(network, block), (x,))
        elif is_traced(x):
            total = self._value_block(network, x)
        else:
            total = in_blocks(self._sum, (x, network.value_at(x)))
        if self._alone or not self.singular.count:
            return total
        if is_traced(x):
            return total + combination(self.singular, amplitudes).value(x)
        return total + self.singular.values(x) @ np.asarray(amplitudes)

    def gradient(
        self, network: AbstractNetwork, amplitudes: ArrayLike, x: np.ndarray
    ) -> np.ndarray:
        if not is_traced(x):
            return self.jet(network, amplitudes, x).gradient
        if isinstance(network, AbstractHostNetwork):
            value = jax.grad(lambda point: self._value_block(network, point[None])[0])
            total = jax.vmap(value)(x)
        else:
            total = self._smooth_jet(network, x).gradient
        if self._alone or not self.singular.count:
            return total
        # Without the Hessian of singular functions, which JAX could not differentiate.
        return total + combination(self.singular, amplitudes).gradient(x)

    def jet(self, network: AbstractNetwork, amplitudes: ArrayLike, x: Any) -> Jet:
        if isinstance(network, AbstractHostNetwork):
            own = network.jet(x) if is_traced(x) else network.jet_at(x)
            total = in_blocks(self._jet, (x, *own))
        else:
            total = self._smooth_jet(network, x)
        if self._alone or not self.singular.count:
            return total
        if is_traced(x):
            return jax.tree.map(jnp.add, total, combination(self.singular, amplitudes).jet(x))
        return jax.tree.map(np.add, total, self.singular.combined_jet(x, np.asarray(amplitudes)))

    def _smooth_jet(self, network: AbstractNetwork, x: np.ndarray) -> Jet:
        # Wide networks are cut into parts of one size: one compilation serves all widths.
        parts = [
            in_blocks(lambda block, part=part: self._network_jet(part, block), (x,))
            for part in network.parts(COLUMNS)
        ]
        return in_blocks(self._jet, (x, *jax.tree.map(lambda *leaves: sum(leaves), *parts)))

    def apply(
        self,
        network: AbstractNetwork,
        amplitudes: ArrayLike,
        x: np.ndarray,
        A: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D²u + b·∇u - cu at points without the Hessian, and the sum of the sizes of its terms,
        to which its rounding is proportional."""
        rows = self.freeze(x, A, b, c, np.zeros(len(x)), np.ones(len(x)))
        if isinstance(network, AbstractHostNetwork):
            zeroth, first, second = (np.asarray(part) for part in rows.frozen[1:])
            applied, sizes = network.applied(x, second, first, -zeroth)
            if rows.singular.shape[1]:
                applied = applied + rows.singular @ np.asarray(amplitudes)
                sizes = sizes + np.abs(rows.singular) @ np.abs(np.asarray(amplitudes))
            return applied - rows.target, sizes + np.abs(rows.target)
        matrix = feature_matrix(network, rows)
        coefficients = np.concatenate([np.asarray(network.coefficients), np.asarray(amplitudes)])
        sizes = np.abs(matrix) @ np.abs(coefficients) + np.abs(rows.target)
        # The target is minus the part of the lift.
        return matrix @ coefficients - rows.target, sizes

    def _sum_block(self, x: Array, value: Array) -> Array:
        return jax.vmap(self.lift)(x) + jax.vmap(self.distance)(x) * value

    def _value_block(self, network: AbstractNetwork, x: Array) -> Array:
        return self._sum_block(x, network.value(x))

    def _jet_block(self, x: Array, value: Array, gradient: Array, hessian: Array) -> Jet:
        G, D = jax.vmap(jet_of(self.lift))(x), jax.vmap(jet_of(self.distance))(x)
        return self.combine(G, D, Jet(value, gradient, hessian))

    @staticmethod
    def combine(G: Jet, D: Jet, N: Jet) -> Jet:
        """The jet of G + D·N at many points."""
        return product(D, N, plus=G)


def _lift(
    domain: AbstractDomain,
    g: Callable | None,
    interfaces: Sequence[Callable],
    fit: Fit | None,
    kinks: Callable | None = None,
) -> Callable | None:
    if g is None:
        return None
    if kinks is not None:
        rest = _lift(domain, lambda x: g(x) - kinks(x, on_boundary=True), interfaces, fit)
        assert isinstance(rest, Lift)
        return Lift(lambda x: rest(x) + kinks(x), rest.fit)
    # Domains of a user's own may know nothing of fits.
    return domain.lift(g, interfaces) if fit is None else domain.lift(g, interfaces, fit)


@jax.jit
def _row_features(network: AbstractNetwork, frozen: Frozen) -> Array:
    return network.row_features(frozen)


def feature_matrix(network: AbstractNetwork, rows: Rows) -> np.ndarray:
    """The least-squares matrix: features of the network, then singular functions."""
    leaves, structure = jax.tree.flatten(rows.frozen)

    def features(part: AbstractNetwork) -> np.ndarray:
        block_of = partial(jax.tree.unflatten, structure)
        return in_blocks(lambda *block: _row_features(part, block_of(block)), tuple(leaves))

    return np.concatenate([*map(features, network.parts(COLUMNS)), rows.singular], axis=1)
