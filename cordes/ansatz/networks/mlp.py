"""A multi-layer perceptron: all weights are trained."""

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractNetwork

FREQUENCY = 4.0


class MLP(AbstractNetwork):
    """`depth` hidden layers of `width` neurons.

    Weights and biases start uniform in ±1/√fan_in, as PyTorch's linear layers do
    (`initial="uniform"`, what the paper used), or with Glorot's variance (`initial="glorot"`,
    better for tanh with second-order training), or like random Fourier features
    (`initial="fourier"`, for one layer of sines). The last layer has no constant.
    """

    inputs: Inputs
    layers: tuple[tuple[Array, Array], ...]
    coefficients: Array
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: Inputs,
        width: int,
        depth: int,
        activation: str = "silu",
        seed: int = 0,
        initial: str = "uniform",
        dtype: Any = jnp.float64,
    ):
        generator = np.random.default_rng([seed, 104729])
        sizes = [inputs.count] + [width] * depth
        layers = []
        for fan_in, fan_out in pairwise(sizes):
            bound = fan_in**-0.5 if initial == "uniform" else (6 / (fan_in + fan_out)) ** 0.5
            weight = generator.uniform(-bound, bound, (fan_in, fan_out))
            if initial == "uniform":
                bias = generator.uniform(-bound, bound, fan_out)
            else:
                bias = 0.1 * generator.standard_normal(fan_out)
            if initial == "fourier":
                weight = FREQUENCY * generator.standard_normal((fan_in, fan_out))
                bias = 2 * np.pi * generator.random(fan_out)
            layers.append((jnp.asarray(weight, dtype), jnp.asarray(bias, dtype)))
        if initial == "glorot":
            # The inputs that belong to interfaces start without weight: a solution that is smooth
            # there is not made rough, another one turns them on.
            layers[0] = (layers[0][0].at[inputs.places :].set(0.0), layers[0][1])
        self.inputs = inputs
        self.layers = tuple(layers)
        last = generator.uniform(-(width**-0.5), width**-0.5, width)
        self.coefficients = jnp.asarray(last, dtype)
        self.activation = activation

    @property
    def parameters(self):
        return self.layers, self.coefficients
