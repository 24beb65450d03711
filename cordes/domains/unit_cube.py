"""Points of the unit cube and Gauss rules on the unit interval: what the points and rules of every
domain are mapped from."""

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special
from scipy.stats import qmc

from cordes.domains.checks import check_count
from cordes.errors import DomainError, unknown

LARGEST_RULE = 5_000_000
SOBOL_BITS = 30
# SciPy renamed the argument in 1.15; both names are in use among the versions supported.
SOBOL_SEED = "rng" if "rng" in inspect.signature(qmc.Sobol.__init__).parameters else "seed"


def cube_points(count: int, dimension: int, seed: int, kind: str) -> np.ndarray:
    """`count` points of the open unit cube, independent (`uniform`) or scrambled Sobol (`sobol`).

    Sobol points are drawn to the next power of two, where they are balanced, and cut; they are
    moved to the middle of their dyadic cells, so that neither 0 nor 1 occurs and quantile functions
    stay finite.
    """
    count = check_count(count)
    if kind == "uniform":
        return np.maximum(np.random.default_rng(seed).random((count, dimension)), 2.0**-54)
    if kind == "sobol":
        options: dict[str, Any] = {SOBOL_SEED: np.random.default_rng(seed)}
        sampler = qmc.Sobol(dimension, scramble=True, bits=SOBOL_BITS, **options)
        return sampler.random_base2((count - 1).bit_length())[:count] + 2.0 ** -(SOBOL_BITS + 1)
    raise unknown("kind of points", kind, ("uniform", "sobol"))


@functools.lru_cache(maxsize=64)
def gauss_rule(count: int, power: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights for ∫₀¹ f(t) tᵖ dt, exact for polynomials f of degree 2·count − 1.
    Treat the arrays as read-only."""
    points, weights = scipy.special.roots_jacobi(count, 0, power)
    points, weights = (1 + points) / 2, weights / 2.0 ** (power + 1)
    points.setflags(write=False)
    weights.setflags(write=False)
    return points, weights


def tensor_rule(rules: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The product of one-dimensional rules: points (n, d) and weights (n,)."""
    total = math.prod(len(points) for points, _ in rules)
    if total > LARGEST_RULE:
        raise DomainError(
            f"A product rule in {len(rules)} dimensions would have {total:.3g} points, more than "
            f"{LARGEST_RULE:.0e}. "
            'Take fewer in each direction, or average over interior_points(count, kind="sobol").'
        )
    grid = np.meshgrid(*[points for points, _ in rules], indexing="ij")
    weights = functools.reduce(np.multiply.outer, [weights for _, weights in rules])
    return np.stack(grid, axis=-1).reshape(total, len(rules)), np.asarray(weights).reshape(total)
