"""What a solver hands back, whatever its method."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from cordes.ansatz.networks.network import AbstractNetwork
from cordes.results import Result


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
    history: list[dict]
    facts: dict[str, Any] = {}  # noqa: RUF012

    @property
    def parameters(self) -> int:
        return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(self.network.parameters)) + int(
            np.size(self.amplitudes)
        )
