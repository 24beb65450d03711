"""What an error is, and where it is measured."""

from typing import Any, NamedTuple

import numpy as np

from cordes.domains.cylinder import Cylinder
from cordes.errors import OptionError

# Errors in three and more dimensions are measured at points of this seed, which no solver uses.
ERROR_POINTS, ERROR_SEED = 50_000, 987_654_321
GRID = 200
# In space and time, by the dimension of both.
TIME_GRIDS = {2: (200, 101), 3: (100, 100, 21)}


class Error(NamedTuple):
    """Root mean square and maximum, and the first over that of the reference."""

    l2: float
    linf: float
    relative: float


def error_points(domain: Any) -> np.ndarray:
    """Where errors are measured: the 200×200 grid over the bounding box clipped to the closed
    domain; in d ≥ 3 fixed random points; in 1-D a grid; in time a grid of fewer points at each of
    several times."""
    d = domain.dimension
    sides = TIME_GRIDS.get(d) if isinstance(domain, Cylinder) else (GRID,) * d if d < 3 else None
    if sides is None:
        return domain.interior_points(ERROR_POINTS, ERROR_SEED)
    lower, upper = domain.bounding_box
    lines = (np.linspace(*ends) for ends in zip(lower, upper, sides, strict=True))
    axes = np.meshgrid(*lines, indexing="ij")
    points = np.stack(axes, axis=-1).reshape(-1, d)
    return points[domain.contains(points, tolerance=1e-12 * float(np.max(upper - lower)))]


def apart(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Values minus those of a reference, which may be a function of somebody."""
    if truth.shape != values.shape or truth.dtype.kind not in "fiub":
        raise OptionError(
            f"reference gives {truth.dtype} of shape {truth.shape}, but numbers of shape "
            f"{values.shape} are needed."
        )
    return values - truth
