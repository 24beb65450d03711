"""Numbers as Python has them: what a user passes in, or what a program hands out, may come from
NumPy, and JSON knows nothing of that."""

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's, its arrays as lists, also inside of dictionaries, lists and
    tuples; everything else as it is."""
    if isinstance(value, dict):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.item() if value.ndim == 0 else value.tolist())
    if type(value) in (list, tuple):
        return type(value)(plain(entry) for entry in value)
    return value


def plain_number(value: Any) -> Any:
    """An option: NumPy's scalars, and arrays without axes, as Python's numbers; everything else as
    it is."""
    return (
        value.item()
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0)
        else value
    )


def show(value: Any) -> str:
    """A value as it appears in a message."""
    return np.array2string(np.asarray(value), precision=6, separator=", ").replace("\n", "")
