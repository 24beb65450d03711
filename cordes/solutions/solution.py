"""The answer: a function with derivatives that knows how it was found and can be measured, drawn,
exported and kept."""

import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from cordes.errors import OptionError
from cordes.jet import Jet
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.runtime.plain import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cordes.certificates.certificate import Certificate
    from cordes.certificates.residual.convexity import Convexity
    from cordes.solvers.answer import Answer
    from cordes.solvers.system import System

# Errors in three and more dimensions are measured at points of this seed, which no solver uses.
ERROR_POINTS, ERROR_SEED = 50_000, 987_654_321
GRID = 200
# A point that misses the closed domain by less than this share of its size is taken for one of its
# boundary, seen through rounding.
ROUNDING = 1e-6
# Of more points than this only so many, evenly spread, and the outermost in each direction are
# looked at: a look must cost nothing beside the values.
LOOKED_AT = 2048


class OutsideDomainWarning(UserWarning):
    """An answer was asked for its values outside of the domain, where there is no equation."""


class Error(NamedTuple):
    """Root mean square and maximum of the error, and the root mean square over that of the
    reference."""

    l2: float
    linf: float
    relative: float


def error_points(domain: Any) -> np.ndarray:
    """Where errors are measured: the 200×200 grid over the bounding box clipped to the closed
    domain; in d ≥ 3 fixed random points; in 1-D a grid."""
    d = domain.dimension
    if d >= 3:
        return domain.interior_points(ERROR_POINTS, ERROR_SEED)
    lower, upper = domain.bounding_box
    axes = np.meshgrid(
        *(np.linspace(a, b, GRID) for a, b in zip(lower, upper, strict=True)), indexing="ij"
    )
    points = np.stack(axes, axis=-1).reshape(-1, d)
    return points[domain.contains(points, tolerance=1e-12 * float(np.max(upper - lower)))]


class Solution:
    """Callable on arrays (..., d). `result` says how the solve ended, `residual_rms` how large the
    scaled residual is on fresh points."""

    def __init__(
        self,
        problem: AbstractProblem,
        system: "System",
        answer: "Answer",
        seconds: dict[str, float],
        facts: dict[str, Any],
    ):
        self.problem = problem
        self.network, self.amplitudes = answer.network, np.asarray(answer.amplitudes)
        self.result: Result = answer.result
        self.residual_rms = answer.residual
        self.history = answer.history
        self.parameters, self.points = answer.parameters, answer.points
        self.seconds = seconds
        self.facts = facts
        self._certificate: Certificate | None = None
        self._ansatz = system.ansatz
        self._residual = jax.jit(jax.vmap(problem.residual))
        self._asked_outside = False

    @property
    def method(self) -> str:
        return self.facts["method"]

    def __call__(self, x: Any) -> np.ndarray:
        """u at points (..., d) of the closed domain; the first call with points outside warns
        (`OutsideDomainWarning`): values there mean nothing."""
        flat, shape = self._flatten(x)
        self._look(flat)
        return self._ansatz.value(self.network, self.amplitudes, flat).reshape(shape)

    def jet(self, x: Any) -> Jet:
        """u, ∇u and D²u at points (..., d) in one pass, without a look at where the points are."""
        flat, shape = self._flatten(x)
        jet = self._ansatz.jet(self.network, self.amplitudes, flat)
        return Jet(*(np.asarray(part).reshape((*shape, *part.shape[1:])) for part in jet))  # pyright: ignore

    def gradient(self, x: Any) -> np.ndarray:
        """∇u, shape (..., d)."""
        flat, shape = self._flatten(x)
        self._look(flat)
        return np.asarray(self.jet(flat).gradient).reshape((*shape, flat.shape[1]))

    def hessian(self, x: Any) -> np.ndarray:
        """D²u, shape (..., d, d)."""
        flat, shape = self._flatten(x)
        self._look(flat)
        return np.asarray(self.jet(flat).hessian).reshape((*shape, flat.shape[1], flat.shape[1]))

    def residual(self, x: Any) -> np.ndarray:
        """Lu - f at points (..., d), without the multiplier."""
        flat, shape = self._flatten(x)
        self._look(flat)
        return np.asarray(self._residual(flat, self.jet(flat))).reshape(shape)

    def policy(self, x: Any) -> np.ndarray:
        """The best control at points (..., d), shape (..., *control): for Hamilton–Jacobi–Bellman
        problems."""
        if not hasattr(self.problem, "policy"):
            raise OptionError(
                f"A {type(self.problem).__name__} problem has no controls: policies exist for "
                "HJB problems."
            )
        flat, shape = self._flatten(x)
        self._look(flat)
        controls = self.problem.policy(flat, self.jet(flat))
        return controls.reshape((*shape, *controls.shape[1:]))

    @functools.cached_property
    def convexity(self) -> "Convexity | None":
        """The smallest eigenvalue of D²u over the domain and where it is, as far as sampled points
        and a local search find it: for Monge–Ampère problems, whose solutions are convex; None for
        others."""
        if self.problem.linear or not self.problem.convex:
            return None
        from cordes.certificates.residual.convexity import smallest_eigenvalue

        domain = self.problem.domain
        return smallest_eigenvalue(
            domain, lambda x: np.asarray(self.jet(x).hessian), error_points(domain)[::4]
        )

    def error(self, reference: Callable | None = None) -> Error | None:
        """The error against the exact solution, or against any function of points (n, d) -> (n,);
        None where there is nothing to compare with."""
        points = error_points(self.problem.domain)
        truth = self._truth(reference, points)
        if truth is None:
            return None
        difference = self(points) - truth
        size = float(np.sqrt(np.mean(truth**2)))
        l2 = float(np.sqrt(np.mean(difference**2)))
        return Error(l2, float(np.max(np.abs(difference))), l2 / size if size > 0 else float("inf"))

    def _truth(self, reference: Callable | None, points: np.ndarray) -> np.ndarray | None:
        """What the answer is compared with: a function of points, else the exact solution, if it is
        known."""
        if reference is not None:
            return np.asarray(reference(points))
        return (
            None
            if self.problem.exact is None
            else np.asarray(jax.jit(jax.vmap(self.problem.exact))(points))
        )

    @property
    def certificate(self) -> "Certificate":
        """How wrong the answer can be: computed when first asked for, from points that served
        neither to fit nor to choose."""
        if self._certificate is None:
            self._certificate = self.certify()
        return self._certificate

    def certify(
        self,
        norm: str | None = None,
        barrier: bool = False,
        confidence: float = 0.99,
        residual_bound: float | None = None,
    ) -> "Certificate":
        """A certificate with other settings, which is kept as `certificate`. `barrier=True` with
        `norm="Linf"` trains a barrier network for a sharper bound of the largest error. See
        `cordes.certify`."""
        from cordes.certificates.certify import certify

        start = time.perf_counter()
        self._certificate = certify(
            self.problem,
            self,
            norm=norm,
            barrier=barrier,
            confidence=confidence,
            residual_bound=residual_bound,
        )
        self.seconds["certify"] = time.perf_counter() - start
        return self._certificate

    @property
    def exact_boundary(self) -> bool:
        """Whether the boundary values are exact by construction."""
        return self._ansatz.hard

    @property
    def lift(self) -> Callable:
        """The extension of the boundary values, a function of one point."""
        return self._ansatz.lift

    @property
    def singular_functions(self) -> tuple[Any, np.ndarray]:
        """The singular functions and their amplitudes."""
        return self._ansatz.singular, self.amplitudes

    @property
    def fits(self) -> list[Any]:
        """The fits to boundary values in the lift."""
        return self._ansatz.fits

    @property
    def singular_points(self) -> list[Any]:
        """The points that have singular functions, with their rays and matrices."""
        return [family.point for family in self._ansatz.singular.families]

    @property
    def singular_locations(self) -> np.ndarray:
        """The points that have singular functions, shape (K, d)."""
        locations = [point.location for point in self.singular_points]
        return np.array(locations).reshape(-1, self.problem.domain.dimension)

    def apply_operator(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D²u + b·∇u - cu at points (N, d), and the sum of the sizes of its terms."""
        return self._ansatz.apply(self.network, self.amplitudes, x, A, b, c)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Three panels (exact, computed, error) where an exact solution is known, else computed and
        residual; slices in three and more dimensions."""
        from cordes.reports.plots import plot_solution

        return plot_solution(self, path)

    def plot_policy(self, path: str | Path | None = None) -> "Figure":
        """Which control is best where, for Hamilton–Jacobi–Bellman problems."""
        if not hasattr(self.problem, "policy"):
            raise OptionError(
                f"A {type(self.problem).__name__} problem has no controls: policies exist for "
                "HJB problems."
            )
        from cordes.reports.plots import plot_policy

        return plot_policy(self, path)

    def to_vtk(self, path: str | Path) -> Path:
        """u, ∇u and the residual on a grid, as a .vtu file for ParaView; up to three dimensions."""
        from cordes.reports.export import export_vtu

        return export_vtu(self, path)

    def save(self, path: str | Path) -> Path:
        """Weights and facts as data; `cordes.load` brings them back."""
        from cordes.solutions.storage import save

        return save(self, path)

    def _flatten(self, x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        points = np.asarray(x, dtype=np.float64)
        d = self.problem.domain.dimension
        if points.ndim == 0 or points.shape[-1] != d:
            raise OptionError(
                f"Points have shape {points.shape}, but the last axis must have length {d}, "
                "the dimension of the domain."
            )
        return points.reshape(-1, d), points.shape[:-1]

    def _look(self, points: np.ndarray) -> None:
        """Warn about points outside of the domain, once for each solution: a second table of the
        same points needs no second warning."""
        if self._asked_outside:
            return
        domain = self.problem.domain
        lower, upper = domain.bounding_box
        slack, few = ROUNDING * float(np.max(upper - lower)), points
        if len(points) > LOOKED_AT:
            few = points[
                np.concatenate(
                    [
                        np.arange(0, len(points), -(-len(points) // LOOKED_AT)),
                        points.argmin(axis=0),
                        points.argmax(axis=0),
                    ]
                )
            ]
        if np.all(domain.contains(few, tolerance=slack)):
            return
        outside = ~domain.contains(points, tolerance=slack)
        self._asked_outside = True
        warnings.warn(
            f"{int(np.sum(outside))} of {len(points)} points lie outside of {domain!r}, first x = "
            f"{show(points[int(np.argmax(outside))])}: there is no equation, and no bound holds "
            "for the values there. Leave such points out (domain.contains(points) finds them), "
            "or solve on a larger domain.",
            OutsideDomainWarning,
            stacklevel=3,
        )

    def __repr__(self) -> str:
        error = self.error() if self.problem.exact is not None else None
        measured = f", l2 error {error.l2:.2e}" if error else ""
        return (
            f"<Solution of {self.problem.name} by {self.method}: {self.result.value}, residual "
            f"{self.residual_rms:.2e}{measured}>"
        )
