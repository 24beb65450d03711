"""Samples as a density: what is known of an unknown density when points were drawn from it."""

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import erf

from cordes.domains import Box
from cordes.domains.domain import AbstractDomain
from cordes.errors import CoefficientError
from cordes.runtime.plain import show
from cordes.tables.interpolate import LARGEST_DIMENSION, Interpolant

# The table of a density has this many nodes in each bandwidth, and at most so many along an axis.
NODES_PER_BANDWIDTH, MOST_NODES = 4.0, {1: 4096, 2: 512, 3: 64}
FEWEST_NODES = 16
# Where there are few samples the density is this share of the mean, so that it is positive.
BACKGROUND = 1e-3
# Samples that are added at a time, and Gauss points along an axis for the integral.
BLOCK, GAUSS_POINTS = 1024, {1: 2000, 2: 400, 3: 48}


@final
class SampledDensity:
    """A density that was estimated from samples; see `density`. `bandwidth` is that of each axis,
    `table` the function that stands for the estimate."""

    refers_to = (
        "A bound refers to the estimated density, as if it were the true one. How far the estimate "
        "is from the density that the samples were drawn from is no part of it: that depends on "
        "their number and on the bandwidth."
    )

    def __init__(self, table: Interpolant, bandwidth: np.ndarray, count: int):
        self.table, self.bandwidth, self.count = table, bandwidth, count

    def __call__(self, x: Array) -> Array:
        # The exponential of a spline is positive and as smooth as the spline.
        return jnp.exp(self.table(x))

    def __repr__(self) -> str:
        return (
            f"<density estimated from {self.count} samples, bandwidth {show(self.bandwidth)}: "
            "bounds refer to the estimate>"
        )


def density(samples: Any, domain: AbstractDomain, bandwidth: Any = None) -> SampledDensity:
    """A smooth density on `domain`, estimated from `samples` (n, d) in it, as a function of one
    point; its integral over the domain is one up to 1e-6.

    Each sample becomes a Gaussian of the given `bandwidth` (a number or one for each axis; by
    default Scott's rule, n^(-1/(d + 4)) standard deviations). On a Box what it loses across the
    sides is reflected, so that the estimate does not fall off there. A thousandth of the mean is
    spread evenly: the density is positive everywhere. The logarithm of the estimate is kept as a
    cubic spline, with four nodes for each bandwidth.

    A bound of an error then refers to the estimated density, not to the unknown one that the
    samples come from (`refers_to` says it in the same words).
    """
    if not isinstance(domain, AbstractDomain):
        raise CoefficientError(
            f"domain is {domain!r}: density(samples, domain) takes the domain of the samples."
        )
    d = domain.dimension
    if d > LARGEST_DIMENSION:
        raise CoefficientError(f"The domain has {d} dimensions: densities have one to three.")
    points = _checked(samples, domain)
    width = _bandwidth(bandwidth, points)
    lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
    counts = np.ceil((upper - lower) / width * NODES_PER_BANDWIDTH).astype(int) + 1
    if np.any(counts > MOST_NODES[d]):
        finest = (upper - lower) * NODES_PER_BANDWIDTH / (MOST_NODES[d] - 1)
        raise CoefficientError(
            f"bandwidth = {show(width)} is too narrow for a table of {MOST_NODES[d]} nodes along "
            f"an axis: it must be at least {show(finest)}. Pass bandwidth=…"
        )
    nodes = list(map(np.linspace, lower, upper, np.maximum(counts, FEWEST_NODES)))
    estimate = _estimate(points, width, nodes, isinstance(domain, Box))
    estimate += BACKGROUND * np.mean(estimate)
    made = Interpolant(np.log(estimate), lower, upper, 3)
    # A first function, to be scaled by its own integral.
    mass = _integral(SampledDensity(made, width, len(points)), domain)
    return SampledDensity(Interpolant(np.log(estimate / mass), lower, upper, 3), width, len(points))


def _checked(samples: Any, domain: AbstractDomain) -> np.ndarray:
    d = domain.dimension
    try:
        points = np.array(samples, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CoefficientError(f"samples must be points of shape (n, {d}).") from error
    points = points[:, None] if d == 1 and points.ndim == 1 else points
    if points.ndim != 2 or points.shape[1] != d or len(points) < 2:
        raise CoefficientError(
            f"samples has shape {points.shape}, but at least two points of shape (n, {d}) are "
            "needed."
        )
    bad = ~np.all(np.isfinite(points), axis=1)
    bad = bad | ~domain.contains(np.where(bad[:, None], np.asarray(domain.center), points))
    if np.any(bad):
        first = int(np.argmax(bad))
        raise CoefficientError(
            f"samples[{first}] = {show(points[first])} is no point of the domain ({np.sum(bad)} of "
            f"{len(points)} are not): leave them out, or take a larger domain."
        )
    return points


def _bandwidth(given: Any, points: np.ndarray) -> np.ndarray:
    n, d = points.shape
    spread = np.std(points, axis=0, ddof=1)
    width = np.broadcast_to(
        spread * n ** (-1 / (d + 4)) if given is None else np.asarray(given, dtype=np.float64), d
    )
    if not np.all(np.isfinite(width) & (width > 0)):
        reason = (
            "the samples do not spread along all axes" if given is None else "it must be positive"
        )
        raise CoefficientError(
            f"bandwidth = {show(np.asarray(width))}: {reason}. Pass bandwidth=… in units of x."
        )
    return np.array(width)


def _estimate(
    points: np.ndarray, width: np.ndarray, nodes: list[np.ndarray], reflected: bool
) -> np.ndarray:
    """The sum of the Gaussians at the nodes, each a product over the axes."""
    letters = "abc"[: len(nodes)]
    formula = ",".join("n" + letter for letter in letters) + "->" + letters
    total = np.zeros([len(each) for each in nodes])
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK].T
        factors = [_gaussians(*each, reflected) for each in zip(block, width, nodes, strict=True)]
        total += np.einsum(formula, *factors, optimize=True)
    return total


def _gaussians(centers: np.ndarray, width: float, nodes: np.ndarray, reflected: bool) -> np.ndarray:
    """(samples, nodes), of integral one between the first and the last node where what lies beyond
    is reflected."""
    images = [centers, 2 * nodes[0] - centers, 2 * nodes[-1] - centers] if reflected else [centers]
    distances = [np.minimum(np.abs(nodes - c[:, None]) / width, 38.0) for c in images]
    values = np.sum([np.exp(-0.5 * each**2) for each in distances], axis=0)
    low, high = ((end - centers) / (width * np.sqrt(2)) for end in (nodes[0], nodes[-1]))
    share = 1.0 if reflected else np.maximum((erf(high) - erf(low)) / 2, 1e-300)
    return values / (width * np.sqrt(2 * np.pi)) / np.reshape(share, (-1, 1))


def _integral(estimate: SampledDensity, domain: AbstractDomain) -> float:
    """By Gauss points, more than one for each node of the table."""
    points, weights = domain.quadrature(GAUSS_POINTS[domain.dimension])
    return float(np.sum(weights * np.asarray(jax.jit(jax.vmap(estimate))(jnp.asarray(points)))))
