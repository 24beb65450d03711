"""What a solver hands back, whatever its method."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from cordes.ansatz.networks.network import AbstractNetwork
from cordes.results import Result


class Weights(NamedTuple):
    """A network and the amplitudes of the singular functions."""

    network: AbstractNetwork
    amplitudes: Array

    def with_parameters(self, parameters: PyTree) -> "Weights":
        return Weights(self.network.with_parameters(parameters[0]), parameters[1])

    @property
    def parameters(self) -> PyTree:
        return self.network.parameters, self.amplitudes


class Answer(NamedTuple):
    """The state of the ansatz, how the solve ended, and how it went.

    `residual` is the root mean square of the (scaled) residual on fresh points. `history` holds one
    dictionary for each stage or step.
    """

    network: AbstractNetwork
    amplitudes: ArrayLike
    result: Result
    residual: float
    points: int
    history: list[dict[str, Any]]
    facts: dict[str, Any] = {}  # noqa: RUF012

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        leaves = jax.tree.leaves((self.network.parameters, self.amplitudes))
        return sum(int(np.size(leaf)) for leaf in leaves)

    @property
    def weights(self) -> Weights:
        """Where another run can go on."""
        return Weights(self.network, jnp.asarray(self.amplitudes))
