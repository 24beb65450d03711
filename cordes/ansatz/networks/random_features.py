"""One hidden layer with random frozen weights: a linear equation becomes one least-squares problem
for the coefficients."""

import equinox as eqx
import numpy as np

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractNetwork


class RandomFeatures(AbstractNetwork):
    """Σ_j coefficients_j σ(w_j·z + b_j), w_j normal with deviation `frequency`; inputs that are not
    `active` get no weight."""

    inputs: Inputs
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: Inputs,
        width: int,
        frequency: float,
        seed: int = 0,
        active: np.ndarray | None = None,
        activation: str = "sine",
    ):
        generator = np.random.default_rng([seed, width])
        weight = frequency * generator.standard_normal((inputs.count, width))
        if active is not None:
            weight = weight * np.asarray(active)[:, None]
        # A sine needs a phase over a whole period; the others need their bend somewhere inside the
        # domain.
        inside = -np.sum(weight * generator.uniform(-1, 1, weight.shape), axis=0)
        bias = 2 * np.pi * generator.random(width) if activation == "sine" else inside
        self.inputs = inputs
        # NumPy arrays: cutting them into parts compiles nothing.
        self.layers = ((weight, bias),)
        self.coefficients = np.zeros(width)
        self.activation = activation

    def parts(self, width: int) -> list[AbstractNetwork]:
        weight, bias = self.layers[0]
        cuts = [slice(k, k + width) for k in range(0, weight.shape[1], width)]
        pieces = [(((weight[:, cut], bias[cut]),), self.coefficients[cut]) for cut in cuts]
        return [
            eqx.tree_at(lambda network: (network.layers, network.coefficients), self, piece)
            for piece in pieces
        ]

    @property
    def parameters(self):
        return self.coefficients
