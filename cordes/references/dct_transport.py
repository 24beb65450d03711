"""The classical baseline for optimal transport between rectangles: a fixed point of Poisson
equations, each solved by cosine transforms.

With the target density uniform, the potential u solves det D²u = f with ∂ₙu given by the sides of
the target. In the plane (Δu)² = (u_xx − u_yy)² + 4u_xy² + 4 det D²u, so that the solution is a
fixed point of Δu ← √((u_xx − u_yy)² + 4u_xy² + 4f) (Benamou, Froese, Oberman 2010). The right-hand
side is positive whatever u is, and one step costs four fast transforms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.fft
import scipy.ndimage

from cordes.errors import CoefficientError, OptionError

# Residuals that are mixed into one accelerated step (Anderson), and the size from which a grid is
# first solved at half its resolution.
DEPTH = 5
COARSEST = 128
# Cells by which a field is continued beyond the rectangle before its spline is fitted: the spline
# forgets its end after that many.
MARGIN = 16


@dataclass(frozen=True)
class DctTransport:
    """The potential u = ½ xᵀDx + p·x + ψ on the cell centres of a grid, ψ a cosine series with the
    given coefficients.

    `residual` is the root mean square of det D²u − m f relative to the mean of f, where the
    multiplier m (1 up to the error of the grid) balances the masses on the grid.
    `smallest_determinant` is that of D²u on the grid: negative values say that u is not convex
    there.
    """

    coefficients: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    target_lower: np.ndarray
    target_upper: np.ndarray
    residual: float
    iterations: int
    multiplier: float
    smallest_determinant: float
    converged: bool

    @property
    def stretch(self) -> np.ndarray:
        """The diagonal of D: how much longer the sides of the target are."""
        return (self.target_upper - self.target_lower) / (self.upper - self.lower)

    @cached_property
    def centers(self) -> np.ndarray:
        """Cell centres, shape (n, m, 2)."""
        axes = [
            low + (np.arange(n) + 0.5) * (high - low) / n
            for low, high, n in zip(self.lower, self.upper, self.coefficients.shape, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    @cached_property
    def potential(self) -> np.ndarray:
        """u at the cell centres; its mean is that of the quadratic part."""
        straight = self.target_lower - self.stretch * self.lower
        quadratic = np.sum((self.stretch / 2 * self.centers + straight) * self.centers, axis=-1)
        return quadratic + scipy.fft.idctn(self.coefficients, norm="forward")

    @cached_property
    def _splines(self) -> list[np.ndarray]:
        """Spline coefficients of ∇ψ, continued oddly across the sides at which it vanishes and
        evenly across the others."""
        frequencies = _frequencies(self.coefficients.shape, self.upper - self.lower)
        splines = []
        for axis in (0, 1):
            slopes = np.moveaxis(-self.coefficients * frequencies[axis], axis, 0)
            shifted = np.roll(slopes, -1, axis=0)
            shifted[-1] = 0.0
            sines = scipy.fft.idst(shifted, axis=0, norm="forward")
            field = np.asarray(scipy.fft.idct(sines, axis=1, norm="forward"))
            field = np.concatenate([-field[MARGIN - 1 :: -1], field, -field[: -MARGIN - 1 : -1]])
            field = np.pad(field, ((0, 0), (MARGIN, MARGIN)), mode="symmetric")
            splines.append(scipy.ndimage.spline_filter(np.moveaxis(field, 0, axis), order=3))
        return splines

    def map(self, points: np.ndarray) -> np.ndarray:
        """∇u at any points (n, 2) of the rectangle, by cubic splines. Sides go to sides exactly."""
        points = np.asarray(points, dtype=np.float64)
        size = self.upper - self.lower
        low, high = self.lower - 1e-9 * size, self.upper + 1e-9 * size
        outside = np.any((points < low) | (points > high), axis=-1)
        if np.any(outside):
            raise OptionError(
                f"The point {points[outside][0].tolist()} lies outside the rectangle from "
                f"{self.lower.tolist()} to {self.upper.tolist()}."
            )
        positions = ((points - self.lower) / size * self.coefficients.shape - 0.5 + MARGIN).T
        moves = [
            scipy.ndimage.map_coordinates(spline, positions, order=3, prefilter=False)
            for spline in self._splines
        ]
        images = self.target_lower + self.stretch * (points - self.lower) + np.stack(moves, axis=-1)
        images = np.clip(images, self.target_lower, self.target_upper)
        images = np.where(points <= self.lower, self.target_lower, images)
        return np.where(points >= self.upper, self.target_upper, images)


def solve_dct(
    density: np.ndarray,
    lower: Sequence[float] | np.ndarray,
    upper: Sequence[float] | np.ndarray,
    steps: int = 300,
    tolerance: float = 1e-9,
    target: tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray] | None = None,
) -> DctTransport:
    """Optimal transport of a density, given at the cell centres of a grid, to the uniform density
    of the same mass on a rectangle.

    `target` is its lower and upper corner, by default those of the source. The density is divided
    by its mean. Grids of even sizes are solved at half the resolution first: that is the
    continuation for densities that span orders of magnitude, because averages over larger cells
    span fewer. Checked: shape, size and sign. The steps end at a residual of `tolerance`, or after
    `steps` of them, with `converged` false.
    """
    given = (lower, upper, *((lower, upper) if target is None else target))
    corners = [np.asarray(corner, dtype=np.float64) for corner in given]
    lower, upper, target_lower, target_upper = corners
    density = _check(density, *corners)
    coefficients = np.zeros((1, 1))
    shapes = [density.shape]
    while all(n % 2 == 0 and n > COARSEST for n in shapes[-1]):
        shapes.append((shapes[-1][0] // 2, shapes[-1][1] // 2))
    stretch = (target_upper - target_lower) / (upper - lower)
    outcome = (np.inf, 0, 1.0, np.nan)
    for shape in reversed(shapes):
        start = np.zeros(shape)
        start[: coefficients.shape[0], : coefficients.shape[1]] = coefficients
        high, wide = (fine // coarse for fine, coarse in zip(density.shape, shape, strict=True))
        blocks = density.reshape(shape[0], high, shape[1], wide).mean(axis=(1, 3))
        # Coarse solutions only start the next grid, so their residual need not be smaller than the
        # change between grids.
        enough = tolerance if shape == density.shape else max(tolerance, 1e-3)
        coefficients, outcome = _iterate(blocks, start, upper - lower, stretch, steps, enough)
    box = (lower, upper, target_lower, target_upper)
    return DctTransport(coefficients, *box, *outcome, converged=outcome[0] <= tolerance)


def _check(density: np.ndarray, *corners: np.ndarray) -> np.ndarray:
    density = np.asarray(density, dtype=np.float64)
    if density.ndim != 2 or min(density.shape) < MARGIN:
        raise OptionError(
            f"The density has shape {density.shape}; give values at the cell centres of a "
            f"plane grid of at least {MARGIN} by {MARGIN}."
        )
    for low, high in (corners[:2], corners[2:]):
        if low.shape != (2,) or high.shape != (2,) or not np.all(low < high):
            raise OptionError(
                f"The rectangle from {low.tolist()} to {high.tolist()} is empty or not plane: "
                "give lower < upper, two numbers each."
            )
    bad = ~(np.isfinite(density) & (density > 0))
    if np.any(bad):
        i, j = np.argwhere(bad)[0]
        place = corners[0] + (np.array([i, j]) + 0.5) / density.shape * (corners[1] - corners[0])
        raise CoefficientError(
            f"The density is {density[i, j]} at ({place[0]:.6g}, {place[1]:.6g}): it must be "
            "positive and finite. Add a small constant, or restrict the problem to where there "
            "is mass."
        )
    return density / np.mean(density)


def _frequencies(shape: tuple[int, ...], size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k, l = (np.pi * np.arange(n) / side for n, side in zip(shape, size, strict=True))
    return k[:, None], l[None, :]


def _iterate(
    density: np.ndarray,
    coefficients: np.ndarray,
    size: np.ndarray,
    stretch: np.ndarray,
    steps: int,
    tolerance: float,
) -> tuple[np.ndarray, tuple[float, int, float, float]]:
    """The accelerated fixed point on one grid, for the coefficients of ψ; also residual,
    iterations, multiplier and the smallest determinant."""
    k, l = _frequencies(density.shape, size)
    symbol = -(k**2 + l**2)
    symbol[0, 0] = 1.0
    mean, trace = float(np.prod(stretch)), float(np.sum(stretch))
    f, multiplier, history = mean * density, 1.0, []
    for iteration in range(steps + 1):
        laplacian = trace + np.asarray(scipy.fft.idctn(coefficients * symbol, norm="forward"))
        waves = np.asarray(scipy.fft.idctn(coefficients * (l**2 - k**2), norm="forward"))
        difference = stretch[0] - stretch[1] + waves
        # ∂x∂y of a cosine series is a series of sines, whose first frequency is stored first.
        mixed = np.zeros_like(f)
        mixed[:-1, :-1] = (coefficients * k * l)[1:, 1:]
        spread = difference**2 + 4 * np.asarray(scipy.fft.idstn(mixed, norm="forward")) ** 2
        proposal = np.sqrt(spread + 4 * multiplier * f)
        # One Newton step for the multiplier: the mean of the Laplacian is what flows through the
        # sides. It is 1 up to the error of the grid.
        newton = multiplier + (trace - np.mean(proposal)) / np.mean(2 * f / proposal)
        multiplier = float(np.clip(newton, 0.9, 1.1))
        proposal = np.sqrt(spread + 4 * multiplier * f)
        determinant = (laplacian**2 - spread) / 4
        residual = float(np.sqrt(np.mean((determinant - multiplier * f) ** 2))) / mean
        if residual <= tolerance or iteration == steps:
            break
        mixture = _accelerate(history, proposal, proposal - laplacian)
        coefficients = scipy.fft.dctn(mixture, norm="forward") / symbol
        coefficients[0, 0] = 0.0
    return coefficients, (residual, iteration, multiplier, float(np.min(determinant)))


def _accelerate(
    history: list[tuple[np.ndarray, np.ndarray]], proposal: np.ndarray, change: np.ndarray
) -> np.ndarray:
    """Anderson's mixture of the last proposals: the one whose changes, mixed alike, are smallest.
    Plain steps where it would not be positive."""
    history.append((proposal, change))
    del history[: -DEPTH - 1]
    if len(history) == 1:
        return proposal
    differences = [change - other for _, other in history[:-1]]
    gram = np.array([[np.vdot(a, b) for b in differences] for a in differences])
    right = np.array([np.vdot(a, change) for a in differences])
    mixed = zip(np.linalg.lstsq(gram, right, rcond=1e-12)[0], history[:-1], strict=True)
    mixture = proposal - sum(weight * (proposal - other) for weight, (other, _) in mixed)
    if np.min(mixture) > 0:
        return mixture
    del history[:-1]
    return proposal
