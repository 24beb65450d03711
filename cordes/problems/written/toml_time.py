"""Problem files in time: expressions may use t, and what they make are functions of (x, t) or of
(x, t, a).

To the reader of expressions t is one more number that comes with the point, as a control is: the
first of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
from jax import Array

from cordes.errors import FileError

TIME = "t"
# Keys of [equation] that only problems in time have, and those of stopping.
TIMES = ("horizon", "initial", "terminal")
OBSTACLES = ("below", "above")


def timed(equation: Mapping[str, Any]) -> bool:
    return "horizon" in equation


def with_time(function: Any, components: int = 0) -> Any:
    """What was read with t as the first control, as a function of (x, t) or (x, t, a); what does
    not depend on controls has none of the `components` that others have."""
    if not callable(function):
        return function
    read: Callable[..., Any] = function

    def called(x: Array, t: Array, *a: Array) -> Array:
        own = [jnp.ravel(jnp.asarray(each, float)) for each in (t, *a)]
        if not a and components:
            # Nothing here may depend on the control: what does is not a number, and refused.
            own.append(jnp.full(components, jnp.nan))
        return read(x, jnp.concatenate(own))

    return called


def with_opponent(function: Any) -> Any:
    """What was read with the opponent behind the control, as a function of (x, a, o)."""
    if not callable(function):
        return function
    read: Callable[..., Any] = function
    return lambda x, a, o: read(x, jnp.concatenate([jnp.ravel(a), jnp.ravel(o)]))


def check_times(equation: Mapping[str, Any], label: str) -> None:
    """Values at a time need a horizon."""
    for key in TIMES[1:]:
        if key in equation and not timed(equation):
            raise FileError(f"{label}.{key}: without a horizon there is no time. Add horizon = ….")
