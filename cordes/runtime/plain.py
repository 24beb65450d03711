"""Numbers as Python has them: users and programs pass on NumPy's, which JSON does not know."""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """NumPy's scalars as Python's, its arrays as lists, also inside of dict, list and tuple."""
    if isinstance(value, dict):
        return {plain(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.item() if value.ndim == 0 else value.tolist())
    if type(value) in (list, tuple):
        return type(value)(plain(entry) for entry in value)
    return value


def plain_number(value: Any) -> Any:
    """An option: NumPy's scalars, and arrays without axes, as Python's numbers."""
    scalar = isinstance(value, np.generic | np.ndarray) and value.ndim == 0
    return value.item() if scalar else value


def as_json(value: Any) -> Any:
    """What JSON can write: text for keys, and null for NaN and infinity, which it does not have."""
    if isinstance(value, Mapping):
        return {str(key): as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(value: Any) -> str:
    """A value as it appears in a message."""
    return np.array2string(np.asarray(value), precision=6, separator=", ").replace("\n", "")


def has_a_name(function: Callable[..., Any]) -> bool:
    """Whether a module has the function under its own name."""
    found: Any = sys.modules.get(function.__module__)
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is function
