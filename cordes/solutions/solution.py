"""The answer: a function that knows how it was found, and can be measured, drawn and kept."""

import abc
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import numpy as np

from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.networks.network import AbstractNetwork
from cordes.errors import FrozenError, OptionError, shown
from cordes.jet import Jet
from cordes.problems.problem import AbstractProblem
from cordes.results import Result
from cordes.runtime.blocks import in_blocks, is_traced
from cordes.solutions.errors import Error, apart, error_points
from cordes.solutions.outside import Kept
from cordes.solutions.points import flattened
from cordes.solutions.sizes import data_size
from cordes.solutions.verdict import judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cordes.certificates.certificate import Certificate
    from cordes.certificates.residual.convexity import Convexity

# Of the points of errors, those that show how large an answer is: no divisor of a side of the grid.
EVERY = 7
NO_OBSTACLE = "A {kind} problem has no obstacle: stopping is for Obstacle problems."
NO_CONTROLS = "A {kind} problem has no controls: policies exist for HJB and Isaacs problems."
NO_OPPONENT = "{kind} problems have no opponents: games are Isaacs problems."


class NotThisKindError(OptionError, AttributeError):
    """Something that answers of another kind of problem have."""


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class AbstractSolution(abc.ABC):
    """Callable on arrays (..., d), also inside of `jax.jit`, `jax.vmap` and `jax.grad`. `result`
    says how the solve ended (`verdict` why), `residual_rms` how large the scaled residual is on
    fresh points and `relative_residual` how large beside the data, `certificate` how wrong the
    answer can be, if it was asked for. A solution does not change: `replace` makes another one."""

    problem: AbstractProblem
    ansatz: Ansatz
    network: AbstractNetwork
    amplitudes: np.ndarray
    result: Result
    residual_rms: float
    points: int
    history: Sequence[dict[str, Any]]
    seconds: dict[str, float]
    facts: dict[str, Any]
    certificate: "Certificate | None" = None
    _kept: Kept = dataclasses.field(init=False)
    _made: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.amplitudes = np.array(self.amplitudes)
        self.amplitudes.setflags(write=False)
        self.history = tuple(self.history)
        vars(self).update({"_kept": Kept(self.problem), "_made": True})

    def __setattr__(self, name: str, value: Any) -> None:
        if self._made:
            raise FrozenError(
                f"{name} of {self!r} cannot be changed: a solution says what was computed. Make "
                f"another one: solution.replace({name}=…)."
            )
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise FrozenError(f"{name} of {self!r} cannot be deleted: a solution does not change.")

    def replace(self, **changes: Any) -> Self:
        """The same solution with other fields."""
        other = dataclasses.replace(self, **changes)
        if other.problem is self.problem:
            vars(other)["_kept"] = self._kept
        return other

    @property
    def method(self) -> str:
        return self.facts["method"]

    @property
    def converged(self) -> bool:
        """Whether a bound shows that the error is as small as asked; see `Result`."""
        return self.result is Result.converged

    @property
    def verdict(self) -> str:
        """One sentence about the result."""
        found = judge(self)
        return found.sentence if found.result is self.result else self.result.sentence

    def judged(self) -> Self:
        """With the result that the certificate allows."""
        return self.replace(result=judge(self).result)

    @functools.cached_property
    def size(self) -> float:
        """The largest |u| at points; of a transport problem, see there."""
        return float(np.max(np.abs(self.values(error_points(self.problem.domain)[::EVERY]))))

    @property
    def relative_residual(self) -> float:
        """`residual_rms` over the size of the data (`cordes.solutions.sizes`): a number without
        units, the same for the same problem in other ones."""
        if self.residual_rms == 0:
            return 0.0
        size = data_size(self)
        return self.residual_rms / size if size > 0 else math.inf

    @property
    def parameters(self) -> int:
        """How many numbers were fitted."""
        weights = jax.tree.leaves(self.network.parameters)
        return sum(int(np.size(leaf)) for leaf in weights) + self.amplitudes.size

    def __call__(self, x: Any) -> Any:
        """u at points (..., d) of the closed domain; the first call with points outside warns
        (`OutsideDomainWarning`): values there mean nothing. Arrays of NumPy, but inside of a trace
        of JAX, where nothing is looked at."""
        flat, shape = self._asked(x)
        return self.values(flat).reshape(shape)

    def values(self, points: Any) -> Any:
        """u at points (N, d) of `problem.domain`, without a look at where they are."""
        found = self.ansatz.value(self.network, self.amplitudes, points)
        return self.problem.answered(points, found)

    def jet(self, x: Any) -> Jet:
        """u, ∇u and D²u at points (..., d) in one pass, without a look at where the points are."""
        flat, shape = self._flatten(x)
        jet = self.ansatz.jet(self.network, self.amplitudes, flat)
        return Jet(*(part.reshape((*shape, *part.shape[1:])) for part in jet))

    def gradient(self, x: Any) -> Any:
        """∇u, shape (..., d)."""
        flat, shape = self._asked(x)
        gradient = self.ansatz.gradient(self.network, self.amplitudes, flat)
        return gradient.reshape((*shape, flat.shape[1]))

    def hessian(self, x: Any) -> Any:
        """D²u, shape (..., d, d)."""
        flat, shape = self._asked(x)
        return self.jet(flat).hessian.reshape((*shape, flat.shape[1], flat.shape[1]))

    def residual(self, x: Any) -> Any:
        """Lu - f at points (..., d), without the multiplier."""
        flat, shape = self._asked(x)
        return self.residual_at(flat).reshape(shape)

    def policy_at(self, points: Any) -> Any:
        """The best controls at points (N, d) of `problem.domain`, for problems with controls."""
        controls = self.problem.policy(points, self.jet(points))
        if controls is None:
            raise NotThisKindError(NO_CONTROLS.format(kind=type(self.problem).__name__))
        return controls

    def player_at(self, points: Any, shape: tuple[int, ...], which: int) -> Any:
        """The best controls (0) or opponents (1) at points (N, d), in the shape of the points."""
        players = self.problem.split(self.policy_at(points))
        if which >= len(players):
            raise NotThisKindError(NO_OPPONENT.format(kind=type(self.problem).__name__))
        return players[which].reshape((*shape, *players[which].shape[1:]))

    def stops_at(self, points: Any) -> np.ndarray:
        """Where stopping is best at points (N, d) of `problem.domain`, for problems with
        obstacles."""
        stops = self.problem.stops(points, self.jet(points))
        if stops is None:
            raise NotThisKindError(NO_OBSTACLE.format(kind=type(self.problem).__name__))
        return stops

    def exercise(self, x: Any) -> Any:
        """Whether stopping is best at points (..., d), for problems with obstacles."""
        flat, shape = self._asked(x)
        return self.stops_at(flat).reshape(shape)

    def residual_at(self, points: Any) -> Any:
        """The same at points (N, d) of `problem.domain`."""
        return in_blocks(self._kept.residual, (points, *self.jet(points))) - self.constant

    @property
    def constant(self) -> float:
        """C in Lu = f + C, where no value is given on the boundary and c = 0: an answer exists for
        one C alone, which is part of it. Zero everywhere else."""
        return float(self.facts.get("constant", 0.0))

    @functools.cached_property
    def convexity(self) -> "Convexity | None":
        """The smallest eigenvalue of D²u over the domain and where it is, as far as sampled points
        and a local search find it: for problems whose solutions are convex, else None."""
        if self.problem.linear or not self.problem.convex:
            return None
        from cordes.certificates.residual.convexity import smallest_eigenvalue

        domain = self.problem.domain
        return smallest_eigenvalue(
            domain, lambda x: np.asarray(self.jet(x).hessian), error_points(domain)[::4]
        )

    def error(self, reference: Callable[..., Any] | None = None) -> Error | None:
        """The error against the exact solution, or against any function of points (n, d) -> (n,);
        None where there is nothing to compare with."""
        points = error_points(self.problem.domain)
        truth = self._truth(reference, points)
        if truth is None:
            return None
        difference, whole = self._difference(points, truth)
        l2, size = (float(np.sqrt(np.mean(part**2))) for part in (difference, whole))
        return Error(l2, float(np.max(np.abs(difference))), l2 / size if size > 0 else float("inf"))

    def _difference(self, points: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The error at points, and what it is relative to."""
        return apart(self.values(points), truth), truth

    def _truth(self, reference: Callable[..., Any] | None, points: np.ndarray) -> np.ndarray | None:
        """What the answer is compared with: a function of points, else the exact solution."""
        if reference is not None and not callable(reference):
            raise OptionError(f"reference = {shown(reference)}: a function of points is needed.")
        if reference is not None:
            return np.asarray(reference(points))
        exact = self.problem.exact
        return None if exact is None else np.asarray(jax.jit(jax.vmap(exact))(points))

    def certify(
        self,
        norm: str | None = None,
        barrier: bool = False,
        confidence: float = 0.99,
        residual_bound: float | None = None,
    ) -> "Certificate":
        """How wrong the answer can be, from points that served neither to fit nor to choose; see
        `cordes.certify`. `barrier=True` with `norm="Linf"` trains a barrier network for a sharper
        bound of the largest error. Nothing is kept: `certified` makes a solution that carries its
        certificate."""
        from cordes.certificates.certify import certify

        return certify(
            self.problem,
            self,
            norm=norm,
            barrier=barrier,
            confidence=confidence,
            residual_bound=residual_bound,
        )

    def certified(self, **settings: Any) -> Self:
        """The same solution with the certificate that `certify` makes with these settings, and the
        result that this allows."""
        start = time.perf_counter()
        certificate = self.certify(**settings)
        seconds = self.seconds | {"certify": time.perf_counter() - start}
        return self.replace(certificate=certificate, seconds=seconds).judged()

    def prove(
        self,
        path: str | Path = "answer.proof",
        max_seconds: float | None = None,
        progress: bool | None = None,
    ) -> "AbstractSolution":
        """The answer with bounds that are a theorem: a proof is written to `path`, which
        `python -m cordes_check FILE` confirms without cordes, and the answer that it is about
        beside it. That is this one, or, where the checker could not read this one (singular
        functions, cells, several layers), another of sines alone, which is then what is handed
        back, and NAME-proved.cordes. `NotProvedError` says why there is no proof.

        Needs the extra `proof`: `pip install cordes[proof]`."""
        from cordes.proofs.needed import check_installed

        check_installed()
        # Only now: it imports the checker.
        from cordes.proofs.prove import prove

        return prove(self, path, max_seconds, progress)

    @property
    def exact_boundary(self) -> bool:
        """Whether the boundary values are exact by construction."""
        return self.ansatz.hard

    @property
    def lift(self) -> Callable[..., Any]:
        """The extension of the boundary values, a function of one point."""
        return self.ansatz.lift

    @property
    def singular_functions(self) -> tuple[Any, np.ndarray]:
        """The singular functions and their amplitudes."""
        return self.ansatz.singular, self.amplitudes

    @property
    def fits(self) -> list[Any]:
        """The fits to boundary values in the lift."""
        return self.ansatz.fits

    @property
    def singular_points(self) -> list[Any]:
        """The points that have singular functions, with their rays and matrices."""
        return [family.point for family in self.ansatz.singular.families]

    @property
    def singular_locations(self) -> np.ndarray:
        """The points that have singular functions, and the kinks of g, shape (K, d)."""
        points = self.singular_points
        locations = [point.location for point in points]
        if not any(point.kink for point in points):
            locations += [kink.location for kink in self.problem.boundary_shape.kinks]
        return np.array(locations).reshape(-1, self.problem.domain.dimension)

    def apply_operator(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D²u + b·∇u - cu at points (N, d), and the sum of the sizes of its terms."""
        return self.ansatz.apply(self.network, self.amplitudes, x, A, b, c)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Three panels (exact, computed, error) where an exact solution is known, else computed and
        residual; slices in three and more dimensions."""
        from cordes.reports.plots import plot_solution

        return plot_solution(self, path)

    def to_vtk(self, path: str | Path) -> Path:
        """u, ∇u and the residual on a grid, as a .vtu file for ParaView; up to three dimensions."""
        from cordes.reports.export import export_vtu

        return export_vtu(self, path)

    def save(self, path: str | Path) -> Path:
        """Weights and facts as data; `cordes.load` brings them back."""
        from cordes.storage import save

        return save(self, path)

    def _repr_html_(self) -> str:
        # Pages are made of these.
        from cordes.reports.pages.notebook import notebook_html

        return notebook_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """For Python's own pickle: the data of a saved answer, the problem and the certificate."""
        from cordes.storage import to_bytes, unpickled

        return unpickled, (to_bytes(self), self.problem, self.certificate)

    def _flatten(self, x: Any) -> tuple[Any, tuple[int, ...]]:
        return flattened(x, self.problem.domain.dimension)

    def _asked(self, x: Any) -> tuple[Any, tuple[int, ...]]:
        flat, shape = self._flatten(x)
        if not is_traced(flat):
            self._kept.look(flat)
        return flat, shape

    def __repr__(self) -> str:
        error = self.error() if self.problem.exact is not None else None
        measured = f", l2 error {error.l2:.2e}" if error else ""
        return (
            f"<Solution of {self.problem.name} by {self.method}: {self.result.value}, relative "
            f"residual {self.relative_residual:.2e}{measured}>"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is asked of the wrong kind of answer says where it exists."""
            if name in ("policy", "opponent", "plot_policy"):
                raise NotThisKindError(NO_CONTROLS.format(kind=type(self.problem).__name__))
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


Solution = AbstractSolution
