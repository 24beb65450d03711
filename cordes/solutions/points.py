"""Points where an answer is asked for its values."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cordes.errors import OptionError, shown
from cordes.runtime.blocks import is_traced


def flattened(x: Any, dimension: int) -> tuple[Any, tuple[int, ...]]:
    """Points (..., d) below each other, and the shape that their values get."""
    try:
        points = (jnp if is_traced(x) else np).asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wanted = f"points of shape (..., {dimension}) are needed"
        raise OptionError(f"x = {shown(x)}: {wanted}.") from error
    if points.ndim == 0 or points.shape[-1] != dimension or points.size == 0:
        raise OptionError(
            f"Points have shape {points.shape}, but there must be one at least, and the last axis "
            f"must have length {dimension}, the dimension of the domain."
        )
    return points.reshape(-1, dimension), points.shape[:-1]
