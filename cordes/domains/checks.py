"""Checks of what a user writes into a domain, so that every class refuses the same things in the
same words."""

from typing import Any

import numpy as np

from cordes.errors import DomainError, OptionError

Frozen = tuple[float, ...]

# Between these, widths have fourth powers that are numbers, and so have products of those.
SMALLEST, LARGEST = 1e-35, 1e35
# A domain far away has few numbers in it: of this share of its distance, points have six digits.
NARROWEST = 1e-10


def real_array(name: str, value: Any, shape: str) -> np.ndarray:
    """`value` as a float64 array of finite numbers. `shape` says in words what was expected, for
    the message."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biuf":
            raise TypeError
        array = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise DomainError(f"{name} must be {shape}, not {value!r}.") from None
    if not np.all(np.isfinite(array)):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        label = f"{name}[{', '.join(map(str, where))}]" if where else name
        raise DomainError(
            f"{label} is {array[where]}. A domain must be bounded: give finite numbers."
        )
    return array


def real_vector(name: str, value: Any) -> np.ndarray:
    """`value` as a finite vector with at least one entry."""
    array = real_array(name, value, "a list of numbers")
    if array.ndim != 1 or array.size == 0:
        raise DomainError(
            f"{name} must be a list of numbers, one for each dimension; it has shape {array.shape}."
        )
    return array


def check_size(name: str, lower: np.ndarray, upper: np.ndarray) -> None:
    """Refuse a bounding box in which numbers overflow, vanish, or lie too far apart."""
    with np.errstate(over="ignore"):
        widths = upper - lower
    for axis, width in enumerate(widths):
        if not SMALLEST <= width <= LARGEST:
            raise DomainError(
                f"{name} is {width:.3g} wide along axis {axis}. Choose another unit of length: "
                f"widths from {SMALLEST:g} to {LARGEST:g} are computed with."
            )
        far = max(abs(lower[axis]), abs(upper[axis]))
        if width < NARROWEST * far:
            raise DomainError(
                f"{name} is {width:.3g} wide along axis {axis}, and {far:.3g} away from 0, where "
                "numbers lie too far apart for it. Shift the coordinates, so that it is near 0."
            )


def freeze(array: np.ndarray) -> Frozen:
    """The entries of a vector as a tuple: hashable, so that a domain is static data for jit."""
    return tuple(float(entry) for entry in array)


def check_count(count: int) -> int:
    """A number of points as a plain positive integer."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise OptionError(f"The number of points must be a positive integer, not {count!r}.")
    return int(count)


def check_directions(directions: Any, dimension: int) -> np.ndarray:
    """Directions (..., d), scaled so that the largest entry of each is one; a zero or non-finite
    direction is refused."""
    directions = np.asarray(directions, dtype=np.float64)
    if directions.ndim == 0 or directions.shape[-1] != dimension:
        raise DomainError(f"Directions must have shape (..., {dimension}), not {directions.shape}.")
    length = np.max(np.abs(directions), axis=-1, keepdims=True)
    bad = ~(np.isfinite(length) & (length > 0))[..., 0]
    if np.any(bad):
        raise DomainError(
            f"The direction {directions[bad][0].tolist()} points nowhere. Give finite "
            "directions other than zero."
        )
    return directions / length
