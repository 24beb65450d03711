"""The answer of a transport problem: a map with its inverse, its cost, and how well it carries."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from cordes.errors import OptionError
from cordes.problems.transport import Transport
from cordes.runtime.blocks import is_traced
from cordes.solutions.errors import apart, error_points
from cordes.solutions.solution import EVERY, AbstractSolution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Steps of Newton's method for the inverse, and the relative accuracy at which it stops.
INVERSE_STEPS, INVERSE_TOLERANCE = 60, 1e-13
# Gauss points per direction for the cost.
COST_POINTS = {1: 200, 2: 100, 3: 32}
PUSH_SEED, PUSH_POINTS = 5_550_301, 8192


class Pushforward(NamedTuple):
    """The map measured at fresh points: ν(T) det D²u/μ - 1, root mean square and largest;
    eigenvalues of D²u; how far T(∂X) is from ∂Y, largest."""

    rms: float
    largest: float
    eigenvalues: tuple[float, float]
    rim: float


@final
class TransportSolution(AbstractSolution):
    """A solution with `map(x)` = ∇u, `inverse(y)` and `cost`; `error` is that of the map."""

    problem: Transport

    def map(self, x: Any) -> Any:
        """Where points (..., d) go."""
        return self.gradient(x)

    def inverse(self, y: Any) -> np.ndarray:
        """Where points (..., d) of the target come from: ∇u(x) = y by Newton's method, which is
        that of a convex function: x·y - u(x) is largest there."""
        if is_traced(y):
            raise OptionError(
                "The inverse of the map is found step by step, which JAX cannot trace: call it "
                "outside of jax.jit, jax.vmap and jax.grad."
            )
        flat, shape = self._flatten(y)
        domain = self.problem.domain
        lower, upper = domain.bounding_box
        low, high = self.problem.target_domain.bounding_box
        x = _inside(domain, lower + (flat - low) / (high - low) * (upper - lower))
        size = float(np.max(high - low))
        jet = self.jet(x)
        miss = np.linalg.norm(jet.gradient - flat, axis=1)
        for _ in range(INVERSE_STEPS):
            open_ = miss > INVERSE_TOLERANCE * size
            if not np.any(open_):
                break
            missing = (flat - jet.gradient)[..., None]
            step = np.linalg.solve(np.asarray(jet.hessian), missing)[..., 0]
            length = np.where(open_, 1.0, 0.0)
            for _ in range(8):
                trial = _inside(domain, x + length[:, None] * step)
                at = self.jet(trial)
                missed = np.linalg.norm(at.gradient - flat, axis=1)
                worse = open_ & ~(missed < miss) & (length > 0)
                if not np.any(worse):
                    break
                length = np.where(worse, length / 2, length)
            better = missed < miss
            if not np.any(better & open_):
                break
            x = np.where(better[:, None], trial, x)
            jet, miss = self.jet(x), np.where(better, missed, miss)
        if np.max(miss) > 1e-6 * size:
            i = int(np.argmax(miss))
            raise OptionError(
                f"The point {np.array2string(flat[i], precision=6)} is not in the image of the "
                f"map (nearest miss {miss[i]:.2g}): points of the target domain have an inverse."
            )
        return x.reshape((*shape, flat.shape[1]))

    @functools.cached_property
    def size(self) -> float:
        """The largest distance of an image from the mean of all."""
        image = self.map(error_points(self.problem.domain)[::EVERY])
        return float(np.max(np.linalg.norm(image - np.mean(image, axis=0), axis=1)))

    @functools.cached_property
    def cost(self) -> float:
        """‖x - T(x)‖ in L²(μ): the distance W₂ between the two densities as far as the map is the
        optimal one; `certificate.W2` brackets it."""
        problem, d = self.problem, self.problem.domain.dimension
        if d > 3:
            points = problem.domain.interior_points(1 << 16, PUSH_SEED, "sobol")
            weights = np.full(len(points), problem.domain.volume / len(points))
        else:
            points, weights = problem.domain.quadrature(COST_POINTS[d])
        moved = np.sum((points - self.map(points)) ** 2, axis=1)
        return float(np.sqrt(np.sum(weights * problem.source_density(points) * moved)))

    @functools.cached_property
    def pushforward(self) -> Pushforward:
        problem = self.problem
        points = problem.domain.interior_points(PUSH_POINTS, PUSH_SEED, "sobol")
        jet = self.jet(points)
        hessian = np.asarray(jet.hessian)
        reached = problem.target_density(np.asarray(jet.gradient)) * np.linalg.det(hessian)
        ratio = reached / problem.source_density(points) - 1
        values = np.linalg.eigvalsh(hessian)
        x, normals = problem.domain.boundary_points(4000, PUSH_SEED)
        gradient = self.map(x)
        directions, heights = problem.boundary_condition(normals, gradient)
        rim = float(np.max(np.abs(np.sum(directions * gradient, axis=1) - heights)))
        return Pushforward(
            float(np.sqrt(np.mean(ratio**2))),
            float(np.max(np.abs(ratio))),
            (float(values[:, 0].min()), float(values[:, -1].max())),
            rim,
        )

    def _difference(self, points: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The error of the map (exact, or a function of points (n, d) -> (n, d)), relative to how
        far the map moves."""
        error, moved = apart(self.map(points), truth), truth - points
        return np.linalg.norm(error, axis=1), np.linalg.norm(moved, axis=1)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """In two dimensions densities and a grid before and after; else potential and residual."""
        if self.problem.domain.dimension != 2:
            return super().plot(path)
        from cordes.reports.plots import plot_transport

        return plot_transport(self, path)


def _inside(domain: Any, points: np.ndarray) -> np.ndarray:
    """Points outside are drawn to the centre until they are inside."""
    center = np.asarray(domain.center)
    for _ in range(40):
        out = ~domain.contains(points, tolerance=1e-12)
        if not np.any(out):
            break
        points = np.where(out[:, None], center + 0.9 * (points - center), points)
    return points
