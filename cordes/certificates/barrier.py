"""The barrier network: a function w, made for one residual, whose maximum bounds the largest error.

Let w vanish on the boundary and e = (|r| + Lw)⁺ be what -Lw lacks to dominate the residual r = f - Lu_θ. Then L(±v - w) ≥ -e for the error v, and by
the maximum principle |v| ≤ w + C ‖e/det A^{1/d}‖ in L^d with the constant C of Alexandrov, Bakelman and Pucci. This is true of any such w, also of one
that is negative somewhere, so that the training has nothing to guarantee. What it minimises is this bound itself.

w = Σ_k c_k D exp(-E_k) sin(ω_k·z + β_k): the distance function D times frozen random features of the inputs z of all networks here (coordinates, and φ|φ| for
each interface, so that D²w jumps where A does), in windows exp(-E_k) around the boundary, the interfaces and the singular points, where residuals are
largest. w is linear in c: the bound is a convex function of c, and a damped Newton method finds its minimum in a few dozen steps.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial import KDTree

from cordes.blocks import in_blocks
from cordes.certificates.candidate import BUILT_IN, EPSILON, ROUNDING_OF_SUMS, Candidate
from cordes.certificates.maximum import Barrier, MaximumPrinciple
from cordes.certificates.norms import Quadrature
from cordes.certificates.regularity import kink
from cordes.domains.domain import AbstractDomain
from cordes.errors import OptionError
from cordes.jet import contract, jet_of
from cordes.networks import Frozen, Inputs, RandomFeatures
from cordes.solvers.progress import Progress
from cordes.threads import share_cores

# Features come in tiles that share a window; tiles without a window, by dimension, and the deviation of their frequencies.
TILE = 20
OPEN_TILES, FREQUENCY = {1: 3, 2: 10, 3: 20}, {1: 4.0, 2: 3.0, 3: 2.0}
# Widths of the windows: shares of the largest D (boundary), of the largest |φ| (interface), of the size of the domain (point). Tiles in each.
LAYERS, LAYER_TILES = (0.1, 0.02), 2
STRIPS, STRIP_TILES = (0.1, 0.01), 2
SPOTS, MOST_SPOTS = (0.3, 0.1, 0.03, 0.01), 12
WINDOW_FREQUENCY = 2.0
# Training points beside the points of the measure, and graded towards the boundary (gap u^GRADING); points where the maximum of w is felt.
NEAR, GRADED, GRADING, FELT = 16000, 8000, 6.0, 1000
TEMPER, RESOLVED, CAUTION = 1.0, 300, 1.0
# Directions in which the rows are smaller than this share of the largest are left out: they would need huge coefficients.
RANK_TOLERANCE = 3e-7
# The maximum is replaced by a soft one, first with this sharpness, then with the other. A Newton step must gain this share.
SHARPNESS, GAIN = (30.0, 200.0), 1e-3
# The training does not see a larger constant of the ABP estimate than this many diameters: it would have no room left to move.
LARGEST_FACTOR = 100.0
# Relative margin of the maximum of w, and how it is refined.
PEAK_MARGIN, PEAK_POINTS, PEAK_STARTS, PEAK_ROUNDS = 1e-3, 4096, 8, 6


def network_barrier(
    problem: Any,
    candidate: Candidate,
    principle: MaximumPrinciple,
    singular: np.ndarray | None = None,
    seed: int = 0,
    steps: int = 40,
    progress: Progress | None = None,
) -> Barrier:
    """A barrier for the residual of `candidate`, of the right size: the multiple 1 is (nearly) the best one.

    `singular` (K, d) are points around which the residual may be large, `steps` bounds the Newton steps at each sharpness. The values are those at the points
    of the measure of `principle`, none of which served the training, with their rounding taken to the safe side. The peak is the largest value found
    on many points and by a local search, plus a margin of 1e-3: numerically converged, not proved, like the norms of the level `quadrature`.
    """
    if not isinstance(principle.measure, Quadrature):
        raise OptionError("barrier=True needs quadrature, which there is in up to three dimensions, without residual_bound: leave it out here.")
    features = Features(problem, np.zeros((0, principle.dimension)) if singular is None else np.asarray(singular, float), principle.measure.points, seed)
    points = principle.measure.points
    with share_cores():
        coefficients = _trained(features, candidate, principle, seed, steps, progress)
        if coefficients is None:
            return Barrier("network", np.zeros(len(points)), np.zeros(len(points)), 0.0)
        minus_operator, rounding = features.applied(points, *principle.evaluated.local, coefficients)
        value, error = features.value(points, coefficients)
        peak = _peak(features, coefficients, points[int(np.argmax(value))], float(np.max(value)), seed)
    return Barrier("network", value + error, minus_operator - rounding, peak)


class Tile(NamedTuple):
    """Features (m, TILE) with one window exp(-layer·D - Σ strip_k φ_k² - spot |x - center|²); or many, with one more axis in front."""

    layer: np.ndarray
    strip: np.ndarray
    spot: np.ndarray
    center: np.ndarray
    weight: np.ndarray
    bias: np.ndarray


class Features:
    """The terms of w, and what -L makes of them. All tiles go through one compiled function."""

    def __init__(self, problem: Any, singular: np.ndarray, points: np.ndarray, seed: int):
        self.domain: AbstractDomain = problem.domain
        if not isinstance(self.domain, BUILT_IN):
            found = kink(self.domain.distance, self.domain)
            if found is not None:
                raise OptionError(f"The barrier network needs a smooth distance function, and that of the domain may have a kink ({found}).")
        # Functions that may have a kink themselves would give one to w.
        interfaces = [phi for phi in problem.interfaces if kink(phi, self.domain) is None]
        self.inputs = Inputs(self.domain, interfaces)
        centers = jnp.asarray(np.concatenate([np.asarray(self.domain.center)[None], self.domain.interior_points(255, seed, "sobol")]))
        self.height = float(jnp.max(jax.vmap(self.domain.distance)(centers)))
        self.tiles = self._tiles(singular[:MOST_SPOTS], points, seed)
        self._rows = jax.jit(self._rows_block)

    @property
    def count(self) -> int:
        return self.tiles.bias.size

    def _tiles(self, singular: np.ndarray, points: np.ndarray, seed: int) -> Tile:
        d, interfaces = self.domain.dimension, len(self.inputs.interfaces)
        none, anywhere = np.zeros(interfaces), np.asarray(self.domain.center, float)
        windows = [(0.0, none, 0.0, anywhere)] * OPEN_TILES[d]
        windows += [(1 / width, none, 0.0, anywhere) for width in LAYERS for _ in range(LAYER_TILES)]
        for strip in np.eye(interfaces):
            windows += [(0.0, strip / (width * self.inputs.interface_scale) ** 2, 0.0, anywhere) for width in STRIPS for _ in range(STRIP_TILES)]
        size = float(np.max(self.inputs.scale))
        windows += [(0.0, none, 1 / (width * size) ** 2, point) for point in singular for width in SPOTS]
        D = np.asarray(jax.jit(jax.vmap(self.domain.distance))(points)) / self.height
        phi = np.stack([np.asarray(jax.jit(jax.vmap(g))(points)) for g in self.inputs.interfaces], 1) if interfaces else np.zeros((len(points), 0))
        def seen(wd):
            layer, strip, spot, center = wd
            return np.sum(layer * D + phi**2 @ strip + spot * np.sum((points - center)**2, axis=1) < 1)
        windows = [wd for wd in windows if seen(wd) >= RESOLVED]
        tiles = []
        for k, (layer, strip, spot, center) in enumerate(windows):
            network = RandomFeatures(self.inputs, TILE, FREQUENCY[d] if k < OPEN_TILES[d] else WINDOW_FREQUENCY, seed + 7919 * k)
            weight, bias = network.layers[0]
            if spot > 0:
                # Around a point the features are as narrow as the window: sin(ω·(x - center)/width + β).
                zoom = math.sqrt(spot) * self.inputs.scale
                weight = np.concatenate([weight[:d] * zoom[:, None], weight[d:]])
                bias = bias - ((center - self.inputs.center) / self.inputs.scale) @ weight[:d]
            tiles.append(Tile(np.asarray(layer), strip, np.asarray(spot), center, weight, bias))
        return Tile(*(np.stack(parts) for parts in zip(*tiles, strict=True)))

    def _rows_block(self, x: Array, A: Array, b: Array, c: Array) -> Array:
        """-L of each feature at points, (N, count), sorted by derivatives of the feature as in `cordes.ansatz`."""
        inputs, template = jax.vmap(self.inputs.jet)(x), RandomFeatures(self.inputs, TILE, 1.0)

        def rows(tile: Tile) -> Array:
            def window(y: Array) -> Array:
                D = self.domain.distance(y) / self.height
                exponent = tile.layer * D + tile.spot * jnp.sum((y - tile.center) ** 2)
                for k, phi in enumerate(self.inputs.interfaces):
                    exponent += tile.strip[k] * phi(y) ** 2
                return D * jnp.exp(-exponent)

            D = jax.vmap(jet_of(window))(x)
            zeroth = contract(A, D.hessian) + jnp.sum(b * D.gradient, axis=1) - c * D.value
            first = 2 * jnp.einsum("nij,nj->ni", A, D.gradient) + D.value[:, None] * b
            network = eqx.tree_at(lambda network: network.layers, template, ((tile.weight, tile.bias),))
            return -network.row_features(Frozen(inputs, zeroth, first, D.value[:, None, None] * A))

        parts = jax.lax.map(rows, Tile(*(jnp.asarray(part) for part in self.tiles)))
        return jnp.moveaxis(parts, 0, 1).reshape(len(x), self.count)

    def rows(self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return in_blocks(self._rows, (x, A, b, c))

    def value_rows(self, x: np.ndarray) -> np.ndarray:
        """The features themselves: -L with A = 0, b = 0, c = 1."""
        d = x.shape[1]
        return self.rows(x, np.zeros((len(x), d, d)), np.zeros((len(x), d)), np.ones(len(x)))

    def applied(self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """-Lw at points, with a bound of its rounding."""
        sums = []
        for k in range(0, len(x), NEAR):
            here = slice(k, k + NEAR)
            rows = self.rows(x[here], A[here], b[here], c[here])
            sums.append(np.stack([rows @ coefficients, np.abs(rows) @ np.abs(coefficients)]))
        total, size = np.concatenate(sums, axis=1)
        return total, ROUNDING_OF_SUMS * EPSILON * size

    def value(self, x: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """w at points, with a bound of its rounding."""
        d = x.shape[1]
        return self.applied(x, np.zeros((len(x), d, d)), np.zeros((len(x), d)), np.ones(len(x)), coefficients)


# Training -----------------------------------------------------------------------------------------------------------------------------------------------


def training_points(principle: MaximumPrinciple, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, d) and weights that sum to the volume, none of them a point of the measure.

    One half of the weight lies beside points of the measure, which are dense where the residual is large: a step towards or away from a neighbour. The other
    half is graded towards the boundary, on chords from the centre, so that the narrow windows there cannot run wild between the points of large cells.
    """
    domain, nodes, generator = principle.domain, principle.measure.nodes, np.random.default_rng([seed, 15485863])
    chosen = generator.permutation(len(nodes.x))[:NEAR]
    x, neighbours = nodes.x[chosen], 2 * principle.dimension
    _, near = KDTree(nodes.x).query(x, k=neighbours + 1)
    step = nodes.x[near[np.arange(len(x)), generator.integers(1, neighbours + 1, len(x))]] - x
    length = generator.uniform(0.1, 0.6, len(x)) * generator.choice([-1.0, 1.0], len(x))
    beside = x + length[:, None] * step
    # A neighbour lies in the convex domain, and so does every step towards it.
    outside = ~domain.contains(beside)
    beside[outside] = (x + np.abs(length)[:, None] * step)[outside]
    weight = (nodes.coarse + nodes.fine)[chosen]
    boundary, normal = domain.boundary_points(GRADED, seed + 1)
    center, u = np.asarray(domain.center), (generator.permutation(GRADED) + 0.5) / GRADED
    ray, share = boundary - center, 1 - u**GRADING
    # The volume element of center + s·ray is s^{d-1} (normal·ray) ds on each piece of the boundary.
    density = share ** (principle.dimension - 1) * np.sum(normal * ray, axis=1) * u ** (GRADING - 1)
    density = density**TEMPER
    weights = [0.5 * domain.volume * part / np.sum(part) for part in (weight, density)]
    return np.concatenate([beside, center + share[:, None] * ray]), np.concatenate(weights)


def _trained(
    features: Features, candidate: Candidate, principle: MaximumPrinciple, seed: int, steps: int, progress: Progress | None
) -> np.ndarray | None:
    """Coefficients of a barrier; None where there is nothing to dominate, or nothing that could be."""
    domain, d = principle.domain, principle.dimension
    x, weight = training_points(principle, seed)
    evaluated = candidate.evaluate(x)
    root = np.linalg.det(evaluated.local.A) ** (1 / d)
    scale = math.sqrt(float(weight @ evaluated.size**2) / domain.volume)
    if not (0 < scale < math.inf):
        return None
    rows = features.rows(x, *evaluated.local) / root[:, None]
    basis = _orthonormal(rows * np.sqrt(weight)[:, None])
    felt = np.concatenate([domain.interior_points(FELT, seed + 2, "sobol"), np.asarray(domain.center)[None]])
    lower, upper = domain.bounding_box
    factor = min(principle.factor, LARGEST_FACTOR * float(np.linalg.norm(upper - lower)))
    # For d = 1 the square of the norm would not be smooth: ‖e‖₁ ≤ |Ω|^{1/2} ‖e‖₂.
    power = max(d, 2)
    task = Task(
        rows @ basis, evaluated.size / root / scale, weight, _with_boundary(features.value_rows(felt) @ basis), CAUTION * factor * domain.volume ** (1 / d - 1 / power), power
    )
    return scale * (basis @ minimise(task, steps, progress))


def _with_boundary(rows):
    return np.concatenate([rows, np.zeros((1, rows.shape[1]))])


def _orthonormal(rows: np.ndarray) -> np.ndarray:
    """A basis of coefficients in which the rows are orthonormal, without the directions that the rows hardly see."""
    square, directions = np.linalg.eigh(rows.T @ rows)
    kept = square > RANK_TOLERANCE**2 * square[-1]
    return directions[:, kept] / np.sqrt(square[kept])


class Derivatives(NamedTuple):
    value: float
    gradient: np.ndarray
    hessian: np.ndarray


class Task(NamedTuple):
    """The bound as a function of the coefficients c: max(heights c) + factor (Σ weight ((right - rows c)⁺)^power)^{1/power}, both convex."""

    rows: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    heights: np.ndarray
    factor: float
    power: int

    def value(self, c: np.ndarray, sharpness: float) -> float:
        """With the soft maximum log(Σ exp(sharpness·w))/sharpness."""
        lack = np.maximum(self.right - self.rows @ c, 0.0)
        w = self.heights @ c
        top = float(np.max(w))
        soft = top + math.log(float(np.sum(np.exp(sharpness * (w - top))))) / sharpness
        return soft + self.factor * float(self.weight @ lack**self.power) ** (1 / self.power)

    def derivatives(self, c: np.ndarray, sharpness: float) -> Derivatives:
        """With T = Σ weight lackᵖ and q = Σ weight lackᵖ⁻¹ row: ∇T^{1/p} = -T^{1/p-1} q, D²T^{1/p} = (p - 1) T^{1/p-1} (Σ weight lackᵖ⁻² row rowᵀ - q qᵀ/T)."""
        p, lack = self.power, self.right - self.rows @ c
        active = lack > 0
        rows, lack, weight = self.rows[active], lack[active], self.weight[active]
        w = self.heights @ c
        share = np.exp(sharpness * (w - np.max(w)))
        share /= np.sum(share)
        gradient = self.heights.T @ share
        hessian = sharpness * ((self.heights.T * share) @ self.heights - np.outer(gradient, gradient))
        total = float(weight @ lack**p)
        if total > 0:
            q, slope = rows.T @ (weight * lack ** (p - 1)), self.factor * total ** (1 / p - 1)
            gradient = gradient - slope * q
            hessian += (p - 1) * slope * ((rows.T * (weight * lack ** (p - 2))) @ rows - np.outer(q, q) / total)
        return Derivatives(self.value(c, sharpness), gradient, hessian)


def minimise(task: Task, steps: int, progress: Progress | None = None) -> np.ndarray:
    """Newton's method with Levenberg's damping, from the best multiple of the least-squares solution of rows c = right (the rows are orthonormal)."""
    start = (task.rows.T * task.weight) @ task.right
    top = max(float(np.max(task.heights @ start)), 1e-300)
    c = start * min((0.0, 0.5, 1.0, 1.5, 2.0, 3.0), key=lambda multiple: task.value(multiple * start, SHARPNESS[0] / top))
    for sharpness in SHARPNESS:
        top = max(float(np.max(task.heights @ c)), 1e-3 * top)
        c = _newton(task, c, sharpness / top, steps, progress)
    return c


def _newton(task: Task, c: np.ndarray, sharpness: float, steps: int, progress: Progress | None) -> np.ndarray:
    damping = 1e-3
    for step in range(steps):
        value, gradient, hessian = task.derivatives(c, sharpness)
        size = float(np.trace(hessian)) / len(c)
        if not size > 0:
            return c
        while damping < 1e6:
            shift = np.linalg.solve(hessian + damping * size * np.eye(len(c)), -gradient)
            after = task.value(c + shift, sharpness)
            if after < value:
                break
            damping *= 8
        else:
            return c
        c, damping = c + shift, max(damping / 4, 1e-9)
        if progress is not None:
            progress.update(step=step, bound=after)
        if value - after < GAIN * value:
            break
    return c


# The maximum ----------------------------------------------------------------------------------------------------------------------------------------------


def _peak(features: Features, coefficients: np.ndarray, start: np.ndarray, largest: float, seed: int) -> float:
    """The supremum of w over the domain: the best of many points, then of ever smaller clouds around the best ones, and a margin."""
    domain, generator = features.domain, np.random.default_rng([seed, 32452843])

    def raised(x: np.ndarray) -> np.ndarray:
        value, rounding = features.value(x, coefficients)
        return value + rounding

    x = np.concatenate([start[None], domain.interior_points(PEAK_POINTS, seed + 3, "sobol")])
    value = np.concatenate([[largest], raised(x[1:])])
    radius = float(np.max(features.inputs.scale)) * PEAK_POINTS ** (-1 / domain.dimension)
    for _ in range(PEAK_ROUNDS):
        best = np.argsort(-value)[:PEAK_STARTS]
        cloud = np.repeat(x[best], 1024 // PEAK_STARTS, axis=0)
        cloud += radius * generator.uniform(-2, 2, cloud.shape)
        cloud = cloud[domain.contains(cloud)]
        x, value = np.concatenate([x[best], cloud]), np.concatenate([value[best], raised(cloud)])
        radius /= 3
    # w vanishes on the boundary, so that its supremum is not negative.
    return max(float(np.max(value)), 0.0) * (1 + PEAK_MARGIN)


__all__ = ["Callable", "network_barrier"]
