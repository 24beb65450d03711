"""Matrices with a structure that saves work in many dimensions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import Array


@dataclass(frozen=True)
class DiagonalPlusRank:
    """A(x) = diag(diagonal(x)) + V(x)V(x)ᵀ, to be passed as the matrix of a problem: `diagonal`
    gives (d,), `columns` gives V of shape (d, r).

    Solvers in many dimensions then multiply with A for the price of 1 + 2r vectors instead of d.
    With controls both are functions of (x, a).
    """

    diagonal: Callable[..., Array]
    columns: Callable[..., Array]

    def parts(self, *arguments: Any) -> tuple[Array, Array]:
        return self.diagonal(*arguments), self.columns(*arguments)

    def __call__(self, *arguments: Any) -> Array:
        diagonal, columns = self.parts(*arguments)
        return jnp.diag(diagonal) + columns @ columns.T
