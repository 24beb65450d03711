"""The factor by which singular functions vanish on the edges that do not touch their point."""

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.singular.charts import Chart
from cordes.ansatz.singular.points import SingularPoint
from cordes.domains.domain import AbstractDomain
from cordes.jet import Jet, jet_of


class BoundaryFactor:
    """B = 1 - (1 - P)^4 with P the product of the distances to the edges that do not touch the
    point (D where edges are curved), P = 1 at the point.

    B vanishes where P does and is 1 up to fourth order at the point, so that B·r^β Θ is still the
    leading term and spoils none of the next ones. On a smooth boundary r^β Θ itself vanishes
    everywhere on it, and B is the guard of the chart.
    """

    def __init__(self, domain: AbstractDomain, point: SingularPoint, chart: Chart | None = None):
        self.curved, self.chart = None, chart
        if chart is not None:
            return
        if domain.vertices is None:
            at_point = float(domain.distance(jnp.asarray(point.location)))
            self.curved = jax.jit(jax.vmap(jet_of(lambda x: domain.distance(x) / at_point)))
            return
        vertices = domain.vertices
        edges = np.roll(vertices, -1, axis=0) - vertices
        normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1) / np.linalg.norm(
            edges, axis=1, keepdims=True
        )
        heights = np.sum((point.location - vertices) * normals, axis=1)
        away = heights > 1e-9 * np.max(np.abs(edges))
        self.slopes = normals[away] / heights[away, None]
        self.starts = vertices[away]

    def seen(self, x: np.ndarray) -> tuple[Jet, ...]:
        """The jets of curves at points, as far as there are any."""
        if self.chart is not None:
            return self.chart.seen(x)
        return () if self.curved is None else (self.curved(x),)

    def jet(self, x: np.ndarray, seen: tuple[Jet, ...]) -> Jet:
        if self.chart is not None:
            return self.chart.guard(x)
        value, gradient, hessian = self._product(x, seen)
        rest = 1 - value
        outer = gradient[:, :, None] * gradient[:, None, :]
        first, second = 4 * rest**3, -12 * rest**2
        return Jet(
            1 - rest**4,
            first[:, None] * gradient,
            first[:, None, None] * hessian + second[:, None, None] * outer,
        )  # pyright: ignore[reportArgumentType]

    def _product(
        self, x: np.ndarray, seen: tuple[Jet, ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P with its derivatives."""
        if self.curved is not None:
            value, gradient, hessian = (np.asarray(part) for part in seen[0])
            return value, gradient, hessian
        value, gradient, hessian = np.ones(len(x)), np.zeros((len(x), 2)), np.zeros((len(x), 2, 2))
        for slope, start in zip(self.slopes, self.starts, strict=True):
            height = (x - start) @ slope
            cross = gradient[:, :, None] * slope
            hessian = hessian * height[:, None, None] + cross + np.swapaxes(cross, 1, 2)
            gradient = gradient * height[:, None] + value[:, None] * slope
            value = value * height
        return value, gradient, hessian
