"""Activation functions with their first two derivatives, written by hand: the jets of a network need all three at once."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from cordes.errors import unknown


def _silu(s: Array) -> tuple[Array, Array, Array]:
    sigmoid = jax.nn.sigmoid(s)
    slope = sigmoid * (1 - sigmoid)
    return s * sigmoid, sigmoid + s * slope, slope * (2 + s * (1 - 2 * sigmoid))


def _tanh(s: Array) -> tuple[Array, Array, Array]:
    value = jnp.tanh(s)
    slope = 1 - value**2
    return value, slope, -2 * value * slope


def _sine(s: Array) -> tuple[Array, Array, Array]:
    value = jnp.sin(s)
    return value, jnp.cos(s), -value


ACTIVATIONS: dict[str, Callable[[Array], tuple[Array, Array, Array]]] = {"silu": _silu, "tanh": _tanh, "sine": _sine}


def activation_jet(name: str) -> Callable[[Array], tuple[Array, Array, Array]]:
    """The function s ↦ (σ, σ', σ'')."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
