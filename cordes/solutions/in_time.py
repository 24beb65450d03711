"""The answer of an equation in time: a function of x and t."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import jax.numpy as jnp
import numpy as np

from cordes.errors import OptionError, shown
from cordes.runtime.blocks import is_traced
from cordes.solutions.points import flattened
from cordes.solutions.solution import AbstractSolution
from cordes.solutions.table import ValueTable, limits_of, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
class SolutionInTime(AbstractSolution):
    """Called as solution(x, t), x (..., d) and t a number or (...): the time of the problem as it
    was written. `at(t)` is a function of x."""

    def __call__(self, x: Any, t: Any = None) -> Any:
        """u at points (..., d) and times; the first call with points outside of space or time
        warns (`OutsideDomainWarning`)."""
        points, shape = self._placed(x, t)
        return self.values(points).reshape(shape)

    def at(self, t: float) -> Callable[[Any], Any]:
        """u at a time, as a function of points (..., d)."""
        return lambda x: self(x, t)

    def gradient(self, x: Any, t: Any = None) -> Any:
        """∇u in space, shape (..., d)."""
        points, shape = self._placed(x, t)
        gradient = self.ansatz.gradient(self.network, self.amplitudes, points)[:, :-1]
        return gradient.reshape((*shape, gradient.shape[1]))

    def hessian(self, x: Any, t: Any = None) -> Any:
        """D²u in space, shape (..., d, d)."""
        points, shape = self._placed(x, t)
        hessian = self.jet(points).hessian[:, :-1, :-1]
        return hessian.reshape((*shape, *hessian.shape[1:]))

    def time_derivative(self, x: Any, t: Any = None) -> Any:
        """∂u/∂t, shape (...)."""
        points, shape = self._placed(x, t)
        slope = self.ansatz.gradient(self.network, self.amplitudes, points)[:, -1]
        return (-slope if self._clock.backwards else slope).reshape(shape)

    def residual(self, x: Any, t: Any = None) -> Any:
        """How far u is from solving the equation at points and times, without the multiplier."""
        points, shape = self._placed(x, t)
        return self.residual_at(points).reshape(shape)

    def policy(self, x: Any, t: Any = None) -> Any:
        """The best control at points and times, shape (..., *control)."""
        points, shape = self._placed(x, t)
        return self.player_at(points, shape, 0)

    def opponent(self, x: Any, t: Any = None) -> Any:
        """The best opponent at points and times, shape (..., *opponent), of a game."""
        points, shape = self._placed(x, t)
        return self.player_at(points, shape, 1)

    def exercise(self, x: Any, t: Any = None) -> Any:
        """Whether stopping is best at points and times, for problems with obstacles."""
        points, shape = self._placed(x, t)
        return self.stops_at(points).reshape(shape)

    def interval(self, x: Any, t: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Between which values u is certified to lie at points and times, shape (...) each."""
        points, shape = self._placed(x, t)
        _, lower, upper = limits_of(self, np.asarray(points))
        return lower.reshape(shape), upper.reshape(shape)

    def table(self, x: Any, t: Any = None, *, scale: float = 1.0, labels: Any = None) -> ValueTable:
        """Values at points with the intervals in which they are certified to lie, times
        `scale`; `labels` name the rows in place of x."""
        points, _ = self._placed(x, t)
        values, lower, upper = (scale * part for part in limits_of(self, np.asarray(points)))
        level = getattr(self.certificate, "levels", {}).get("Linf", "sampled")
        names = rows_of(labels, np.asarray(points)[:, :-1])
        return ValueTable(names, values, lower, upper, level)

    def plot_policy(self, path: str | Path | None = None) -> "Figure":
        """Which control is best where."""
        from cordes.reports.plots import plot_policy

        return plot_policy(self, path)  # pyright: ignore[reportArgumentType]

    def _truth(self, reference: Callable[..., Any] | None, points: np.ndarray) -> np.ndarray | None:
        """A reference is a function of points (n, d) and times (n,)."""
        if not callable(reference):
            return super()._truth(reference, points)
        return np.asarray(reference(points[:, :-1], self._clock.time(points[:, -1])))

    @property
    def _clock(self) -> Any:
        return self.problem.clock

    def points_of(self, x: Any, t: Any) -> tuple[Any, tuple[int, ...]]:
        """Points (N, d + 1) of the cylinder from points and times of the user, and the shape that
        values get."""
        d = self.problem.space.dimension
        if t is None:
            raise OptionError(
                "The time is missing: call the answer of a problem in time as solution(x, t)."
            )
        traced = is_traced(x) or is_traced(t)
        module = jnp if traced else np
        try:
            times = module.asarray(t, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"t = {shown(t)}: a number or an array of times is needed."
            ) from error
        points, shape = flattened(x, d)
        if times.ndim and times.shape != shape:
            try:
                whole = np.broadcast_shapes(shape, times.shape)
            except ValueError:
                raise OptionError(
                    f"x has shape {(*shape, d)} and t {times.shape}: there is one time for all "
                    "points, or one for each."
                ) from None
            points = module.broadcast_to(points.reshape(*shape, d), (*whole, d)).reshape(-1, d)
            shape = whole
        times = self._clock.time(module.broadcast_to(times, shape).reshape(-1))
        return module.concatenate([points, times[:, None]], axis=1), shape

    def _placed(self, x: Any, t: Any) -> tuple[Any, tuple[int, ...]]:
        points, shape = self.points_of(x, t)
        if not is_traced(points):
            self._kept.look(points)
        return points, shape
