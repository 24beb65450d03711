"""The loss around a trained network, along two random directions (Li, Xu, Taylor, Studer,
Goldstein: Visualizing the loss landscape of neural nets, 2018).

A constant multiplier γ makes the surface γ² times as high and changes nothing else: neither Adam
nor Gauss–Newton sees it. Heights of two losses can therefore not be compared, shapes can, and all
measures here are the same for L and for any multiple of L. Two random directions out of thousands
are a picture and no proof: look at several seeds before believing a difference, and at the same
network through both losses (`multiplier` is an argument and no property of the network) to tell
what the loss does from what the weights do.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.ansatz import Rows
from cordes.ansatz.networks.mlp import MLP
from cordes.errors import OptionError, unknown
from cordes.jet import jet_of
from cordes.problems.problem import AbstractProblem
from cordes.solutions.answer import Weights
from cordes.solutions.solution import Solution
from cordes.solvers.adam import nonlinear_loss
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import cast, residual
from cordes.studies.trained import rows_at, state_of, system_at

FORMS = ("frozen", "direct")
# The quadratic fit sees this share of the square in each direction.
NEAR = 0.25
# Four times the relative rounding of a loss in float32, measured as 7·10⁻⁷ at most: second
# differences below it say nothing.
ROUNDING = 4e-6
SMALLEST_RESOLUTION = 9
BLOCK = 250


class Measures(NamedTuple):
    """Numbers that do not change when the loss is multiplied with a constant. h is the step of the
    grid, L₀ the loss at the centre.

    `curvature_ratio`: λ_max/λ_min of the quadratic that fits L best, in the sense of least squares,
    on the middle quarter of each axis; infinite where λ_min ≤ 0. One is a round bowl. `sharpness`:
    the mean rise from the centre to the rim of the square that this quadratic promises, over the
    mean rise that is seen. One for every quadratic; above one where the middle is sharper than the
    whole, below one where walls rise behind a flat floor, negative where the network is no minimum
    of this loss. `nonconvex`: the share of inner grid points at which the Hessian by central
    differences has a negative eigenvalue, beyond what rounding explains (4·10⁻⁶ L/h²). `decades`:
    log₁₀ of the largest loss over L₀. A network that is trained longer has more of them: compare it
    between equally good ones only.
    """

    curvature_ratio: float
    sharpness: float
    nonconvex: float
    decades: float


@dataclass(frozen=True)
class Landscape:
    """Losses (n, n): entry [i, j] belongs to coordinates[i] along the first direction and
    coordinates[j] along the second."""

    coordinates: np.ndarray
    losses: np.ndarray

    @property
    def centre(self) -> float:
        """The loss of the network itself."""
        middle = len(self.coordinates) // 2
        return float(self.losses[middle, middle])

    @functools.cached_property
    def measures(self) -> Measures:
        return _measures(self.coordinates, self.losses)

    def as_data(self) -> dict[str, Any]:
        """Plain numbers without the grid; None where a measure is not finite."""
        facts = {
            "centre": self.centre,
            "lowest": float(np.min(self.losses)),
            "highest": float(np.max(self.losses)),
            **self.measures._asdict(),
        }
        data = {name: value if np.isfinite(value) else None for name, value in facts.items()}
        return {"radius": float(self.coordinates[-1]), "resolution": len(self.coordinates), **data}


class LossSquare(NamedTuple):
    """So many points along each side of the square of side 2·radius."""

    resolution: int = 41
    radius: float = 1.0


WHOLE = LossSquare()


def landscape(
    problem: AbstractProblem,
    solution: Solution,
    multiplier: bool,
    seed: int = 0,
    window: LossSquare = WHOLE,
    points: int = 10_000,
    form: str = "frozen",
    choices: dict[str, Any] | None = None,
) -> Landscape:
    """The mean square of the residual on a square around the network; one pass
    of `points` collocation points for each loss, in float32.

    `seed` draws the directions and the points: solutions with networks of the same shape get the
    same ones, before normalisation. A nonlinear problem is frozen at the solution itself
    (`form="frozen"`, the loss of the Newton loop), or its own residual is taken, with the
    multiplier of the perturbed network (`form="direct"`). `choices` go to the problem when it is
    frozen.
    """
    resolution, radius = window
    _check(resolution, radius, points, form)
    state = state_of(solution)
    system = system_at(problem, solution, multiplier, choices)
    made = _frozen if form == "frozen" else _direct
    loss, blocks = made(system, solution, points, seed, choices or {})
    directions = tuple(filter_normalised(state, seed, which) for which in (0, 1))
    state, directions = cast((state, directions), jnp.float32)
    coordinates = radius * np.linspace(-1, 1, resolution)
    line = jax.jit(functools.partial(_line, loss))
    along = jnp.asarray(coordinates, jnp.float32)
    # One compiled call for each line of the grid: Ctrl-C is heard in between.
    lines = [
        np.asarray(line(state, directions, blocks, first, along))
        for first in coordinates.astype(np.float32)
    ]
    return Landscape(coordinates, np.stack(lines).astype(np.float64))


def _check(resolution: int, radius: float, points: int, form: str) -> None:
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    if resolution < SMALLEST_RESOLUTION or resolution % 2 == 0:
        raise OptionError(
            f"resolution = {resolution}: an odd number from {SMALLEST_RESOLUTION} on is "
            "needed, so that the network itself is a grid point."
        )
    if not (radius > 0 and np.isfinite(radius)):
        raise OptionError(
            f"radius = {radius}: it must be positive; 1 perturbs each neuron by weights as "
            "large as its own."
        )
    if points < 1:
        raise OptionError(f"points = {points}: at least one collocation point is needed.")


def filter_normalised(state: Weights, seed: int, which: int) -> Any:
    """A random direction in the space of parameters, normal numbers of a seed, scaled filter by
    filter: the weights into each neuron have the length that the network's own have, and the last
    layer, which feeds one output, is one filter. Biases stay as they are, which is what the program
    of Li et al. does unless told otherwise, and so do amplitudes of singular functions."""
    network = state.network
    assert isinstance(network, MLP)
    generator = np.random.default_rng([seed, which, 7919])

    def scaled(weights: Array) -> np.ndarray:
        own = np.asarray(weights, np.float64)
        random = generator.standard_normal(own.shape)
        return random * np.linalg.norm(own, axis=0) / np.linalg.norm(random, axis=0)

    layers = tuple((scaled(weight), np.zeros(bias.shape)) for weight, bias in network.layers)
    return (layers, scaled(network.coefficients)), np.zeros(np.shape(state.amplitudes))


def _line(
    loss: Callable[..., Any],
    state: Weights,
    directions: tuple[Any, ...],
    blocks: Any,
    first: Array,
    along: Array,
) -> Array:
    """The losses on one line of the grid."""

    def at(second: Array) -> Array:
        moved = state.with_parameters(
            jax.tree.map(lambda p, u, v: p + first * u + second * v, state.parameters, *directions)
        )

        def add(total: Array, block: Any) -> tuple[Array, None]:
            return total + loss(moved, block), None

        # Blocks of points that stay in a core's own memory: twice to six times as fast on a CPU as
        # all points at once.
        return jax.lax.scan(add, jnp.float32(0), blocks)[0]

    return jax.lax.map(at, along)


def _cut(tree: Any, fill: float) -> Any:
    """Leaves (N, …) as (blocks, BLOCK, …) in float32; what is missing in the last block is the last
    entry times `fill`."""

    def cut(leaf: Any) -> Array:
        leaf = np.asarray(leaf, np.float32)
        blocks = -(-len(leaf) // BLOCK)
        rest = np.repeat(np.float32(fill) * leaf[-1:], blocks * BLOCK - len(leaf), axis=0)
        return jnp.asarray(np.concatenate([leaf, rest]).reshape(blocks, BLOCK, *leaf.shape[1:]))

    return jax.tree.map(cut, tree)


def _frozen(
    system: AbstractSystem, solution: Solution, points: int, seed: int, choices: dict[str, Any]
) -> tuple[Callable[..., Any], Rows]:
    """The loss of frozen rows, which do not move with the network; rows of zeros fill the last
    block."""

    def loss(state: Weights, rows: Rows) -> Array:
        return jnp.sum(residual(state, rows) ** 2)

    return loss, _cut(rows_at(system, points, seed), 0.0)


def _direct(
    system: AbstractSystem, solution: Solution, points: int, seed: int, choices: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The loss of the nonlinear residual, as the direct solver has it; points without weight fill
    the last block."""
    if not system.hard or len(solution.amplitudes):
        raise OptionError(
            "form = 'direct' needs exact boundary values and no singular functions: use "
            "form='frozen', or train with the paper preset."
        )
    x, weight = system.points(points, seed)
    parts = (system.ansatz.lift, system.ansatz.distance)
    lift, distance = jax.jit(lambda x: [jax.vmap(jet_of(part))(x) for part in parts])(x)

    def loss(state: Weights, data: tuple[Any, ...]) -> Array:
        value = nonlinear_loss(state.parameters, data, system, state, choices)
        return jnp.asarray(value, jnp.float32)

    return loss, (_cut(x, 1.0), _cut(weight, 0.0), _cut(lift, 1.0), _cut(distance, 1.0))


# Measures -----------------------------------------------------------------------------------------


def _measures(coordinates: np.ndarray, losses: np.ndarray) -> Measures:
    """See `Measures`. Coordinates are counted in radii: no measure depends on their unit."""
    t = coordinates / coordinates[-1]
    middle = len(t) // 2
    reach = max(2, round(NEAR * middle))
    near = slice(middle - reach, middle + reach + 1), slice(middle - reach, middle + reach + 1)
    x, y = np.meshgrid(t, t, indexing="ij")
    centre, highest = losses[middle, middle], np.max(losses)
    known = centre > 0 and np.isfinite(highest)
    decades = float(np.log10(highest / centre)) if known else float("nan")
    nonconvex = _nonconvex_share(t, losses)
    if not np.all(np.isfinite(losses[near])):
        return Measures(float("nan"), float("nan"), nonconvex, decades)
    # In units of the fitted losses, so that neither tiny nor huge ones lose digits.
    unit = float(np.max(np.abs(losses[near]))) or 1.0
    fitted = np.linalg.lstsq(_monomials(x[near], y[near]), losses[near].ravel() / unit, rcond=None)
    constant, slope, other, xx, xy, yy = fitted[0]
    least, most = np.linalg.eigvalsh([[xx, xy], [xy, yy]])
    rim = np.maximum(np.abs(x), np.abs(y)) == 1
    promised = np.mean(_monomials(x[rim], y[rim]) @ np.array([0.0, slope, other, xx, xy, yy]))
    seen = np.mean(losses[rim]) / unit - constant
    sharpness = float(promised / seen) if np.isfinite(seen) and seen != 0 else float("nan")
    ratio = float(most / least) if least > 0 else float("inf")
    return Measures(ratio, sharpness, nonconvex, decades)


def _monomials(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1, x, y, x²/2, xy, y²/2: the coefficients of the last three are the Hessian."""
    x, y = np.ravel(x), np.ravel(y)
    return np.stack([np.ones_like(x), x, y, x**2 / 2, x * y, y**2 / 2], axis=1)


def _nonconvex_share(t: np.ndarray, losses: np.ndarray) -> float:
    """The share of inner grid points where central differences see a negative eigenvalue."""
    step = t[1] - t[0]
    inner = losses[1:-1, 1:-1]
    with np.errstate(invalid="ignore"):
        xx = (losses[2:, 1:-1] - 2 * inner + losses[:-2, 1:-1]) / step**2
        yy = (losses[1:-1, 2:] - 2 * inner + losses[1:-1, :-2]) / step**2
        xy = (losses[2:, 2:] - losses[2:, :-2] - losses[:-2, 2:] + losses[:-2, :-2]) / (4 * step**2)
        least = (xx + yy) / 2 - np.hypot((xx - yy) / 2, xy)
    return float(np.mean(least < -ROUNDING * np.abs(inner) / step**2))
