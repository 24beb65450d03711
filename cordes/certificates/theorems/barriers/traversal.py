"""The maximum principle where the drift is large: functions ψ ≥ 0 with Lψ ≤ -1 over the whole
domain, for which the largest value of ψ is about the time in which the drift leaves the domain, and
the estimate of Aleksandrov, Bakelman and Pucci on balls so small that the drift is none.

ψ is a function of one coordinate s(x), linear or ½|x - center|². With g = -ψ',

    -Lψ = α g' + β g + cψ,    α = ∇s·A∇s,    β = A:D²s + b·∇s,

and g ≥ 0 on one side of a turning point, g ≤ 0 on the other. The domain is cut into bands of s. In
each, intervals of the coefficients over cells that cover the domain give α₋ ≤ α ≤ α₊ and β ≥ β₋,
and α g' + β₋ g = 1 is solved with α₋ where g grows and α₊ where it falls: then -Lψ ≥ 1 at every
point of the band, and not at sampled ones only.

The estimate on small balls. Let Lv ≥ -e, v ≤ 0 on the boundary, c ≥ 0, and ψ as above. With K > 0
let m be the maximum of h = v - Kψ, attained at x₀ if m > 0, and ς = κ(ρ² - |x - x₀|²) with κ =
1/(2 sup(tr A + ρ|b|)), so that A:D²ς + b·∇ς ≥ -1 in the ball of radius ρ around x₀. If m ≥ Kκρ²,
then w = h - m + Kς is not positive on the boundary of the part D of the ball in the domain (h ≤ m
and ς = 0 on the sphere, h ≤ 0 and Kς ≤ m on the boundary of the domain), and where w > 0 also h >
0, so that A:D²w + b·∇w ≥ -e + K - K. The estimate with drift on D gives Kκρ² = w(x₀) ≤ C_ρ ‖e/det
A^{1/d}‖, in L^d. A larger K contradicts it: with K = C_ρ ‖e/det A^{1/d}‖/κρ² it is

    v ≤ K (ψ + κρ²) ≤ C_ρ (1 + sup ψ/κρ²) ‖e/det A^{1/d}‖ .

C_ρ grows exponentially with ρ|b| and not with the size of the domain; with ρ about 1/|b| all of it
grows like |b|² sup ψ, no more than the length of the way in such balls.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cordes.certificates.theorems.cell_bounds import CoefficientBall, ball_of
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.pointwise import drift_factor
from cordes.domains.constants import circumscribed
from cordes.domains.domain import AbstractDomain
from cordes.domains.unit_ball import ball_volume
from cordes.formulas.intervals import Interval
from cordes.formulas.intervals.suprema import outside_of

# Cells along each side of the bounding box, by dimension, and bands of a coordinate.
CELLS, BANDS = {1: 512, 2: 96, 3: 20}, 128
# Against the rounding of sums and exponentials.
SLACK = 1e-9
# Radii of the small balls: shares of the radius of the domain.
RADII = np.geomspace(1e-4, 1.0, 33)


class Field(NamedTuple):
    """Cells that cover the domain, with the coefficients in each; a cell with a jump comes once for
    each side."""

    lower: np.ndarray
    upper: np.ndarray
    ball: CoefficientBall

    @property
    def largest(self) -> tuple[float, float, float]:
        """Suprema of tr A, |b| and |b|/det A^{1/d}. By Weyl the eigenvalues differ from those of
        the middle by the size of the radius at most."""
        trace, reach = self.ball.traces
        radius = np.linalg.norm(self.ball.radius.A, axis=(1, 2))
        least = np.linalg.eigvalsh(self.ball.middle.A) - radius[:, None]
        root = np.exp(np.mean(np.log(np.maximum(least, 1e-300)), axis=1))
        drift = self.ball.largest_drift
        return float(np.max(trace + reach)), float(np.max(drift)), float(np.max(drift / root))


class Coordinate(NamedTuple):
    """s(x) = p·y + ½σ|y|², y = x - center, σ ≥ 0."""

    name: str
    center: np.ndarray
    direction: np.ndarray
    curvature: float

    def value(self, x: np.ndarray) -> np.ndarray:
        y = x - self.center
        return y @ self.direction + self.curvature / 2 * np.sum(y**2, axis=1)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.direction + self.curvature * (x - self.center)


class Bands(NamedTuple):
    """Bands of equal `width` of a coordinate: α₋, α₊ and β₋ in each."""

    width: float
    low: np.ndarray
    high: np.ndarray
    drift: np.ndarray


class Climb(NamedTuple):
    """g at the edges of bands, one more than there are bands, and its integral up to each."""

    slope: np.ndarray
    height: np.ndarray


class Traversal(NamedTuple):
    """ψ with -Lψ ≥ 1: it falls from the edge number `turn` to both sides, by a climb to the right
    and one to the left."""

    coordinate: Coordinate
    start: float
    turn: int
    sides: tuple[tuple[Bands, Climb], tuple[Bands, Climb]]
    peak: float

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ψ, ∇ψ and D²ψ at points."""
        s, slope = self.coordinate.value(x), self.coordinate.slope(x)
        middle = self.start + self.turn * self.sides[0][0].width
        fall, g, growth = (
            np.where(s >= middle, *pair)
            for pair in zip(
                _along(*self.sides[0], s - middle), _along(*self.sides[1], middle - s), strict=True
            )
        )
        first, second = np.where(s >= middle, -g, g), -growth
        hessian = second[:, None, None] * slope[:, :, None] * slope[:, None, :]
        hessian += (self.coordinate.curvature * first)[:, None, None] * np.eye(x.shape[1])
        return np.maximum(self.peak - fall, 0.0), first[:, None] * slope, hessian


def traversals(coverage: AbstractCoverage) -> tuple[list[Traversal], Field | None]:
    """The functions ψ of several coordinates, the smallest first, and the coefficients over cells;
    nothing where intervals cannot cover them."""
    field = field_of(coverage)
    if field is None:
        return [], None
    mean = np.mean(coverage.local.b, axis=0)
    found = [
        each
        for coordinate in _coordinates(coverage.domain, mean)
        if (each := _traversal(coordinate, field)) is not None
    ]
    return sorted(found, key=lambda each: each.peak), field


def local_factor(domain: AbstractDomain, field: Field, peak: float) -> float:
    """C with sup v ≤ C ‖e/det A^{1/d}‖ in L^d, from balls that are small where the drift is large;
    `peak` is the maximum of a ψ with Lψ ≤ -1."""
    d, (trace, drift, ratio) = domain.dimension, field.largest
    if not (math.isfinite(trace) and math.isfinite(ratio)):
        return math.inf
    radii = RADII * circumscribed(domain)[1]
    with np.errstate(over="ignore"):
        stages = 1 + peak * 2 * (trace + radii * drift) / radii**2
    constants = [
        radius * drift_factor(d, ball_volume(d) ** (1 / d) * radius * ratio) for radius in radii
    ]
    return float(np.min(stages * constants)) * (1 + SLACK)


# The coefficients over the domain ----------------------------------------------------------------


def cells_of(domain: AbstractDomain) -> tuple[np.ndarray, np.ndarray] | None:
    """Equal cells that cover the domain; None in too many dimensions."""
    low, high = domain.bounding_box
    count = CELLS.get(len(low))
    if count is None:
        return None
    sides = [np.linspace(a, b, count + 1) for a, b in zip(low, high, strict=True)]
    lower, upper = (
        np.stack(np.meshgrid(*(side[part] for side in sides), indexing="ij"), -1).reshape(
            -1, len(low)
        )
        for part in (slice(None, -1), slice(1, None))
    )
    inside = ~outside_of(domain)(lower, upper)
    return lower[inside], upper[inside]


def field_of(coverage: AbstractCoverage) -> Field | None:
    """None where the formulas have no enclosure."""
    cells = cells_of(coverage.domain)
    if cells is None or not (coverage.constant or coverage.enclosed):
        return None
    lower, upper = cells
    if coverage.constant:
        # Several equations, one after the other, where there are controls: their hull.
        hull = ball_of(*(Interval(part.min(0), part.max(0)) for part in coverage.local))
        balls = [
            CoefficientBall(
                *(
                    Local(*(np.broadcast_to(part, (len(lower), *part.shape)) for part in local))
                    for local in hull
                )
            )
        ]
    else:
        balls = coverage.balls(lower, upper)
    ball = CoefficientBall(
        *(
            Local(*(np.concatenate(parts) for parts in zip(*locals_, strict=True)))
            for locals_ in zip(*balls, strict=True)
        )
    )
    return Field(np.tile(lower, (len(balls), 1)), np.tile(upper, (len(balls), 1)), ball)


def _coordinates(domain: AbstractDomain, mean: np.ndarray) -> Iterator[Coordinate]:
    center, d = np.asarray(domain.center), domain.dimension
    for i in range(d):
        yield Coordinate(f"traversal x{i + 1}", center, np.eye(d)[i], 0.0)
    size = float(np.linalg.norm(mean))
    if d > 1:
        if size > 0 and np.max(np.abs(mean)) < (1 - 1e-9) * size:
            yield Coordinate("traversal along b", center, mean / size, 0.0)
        yield Coordinate("traversal of radii", center, np.zeros(d), 1.0)


def _bands(coordinate: Coordinate, field: Field) -> tuple[float, Bands, Bands] | None:
    """Where the bands begin, and the bands from the left and from the right."""
    middle, half = (field.lower + field.upper) / 2, (field.upper - field.lower) / 2
    (A, b, _), (A_radius, b_radius, _) = field.ball
    curvature, slope = coordinate.curvature, coordinate.slope(middle)
    reach = curvature * half
    s = coordinate.value(middle)
    # Taylor's formula, which is exact for a quadratic.
    s_radius = np.sum(np.abs(slope) * half, axis=1) + curvature / 2 * np.sum(half**2, axis=1)
    (trace, trace_radius), total = field.ball.traces, np.abs(slope) + reach
    image = np.einsum("nij,nj->ni", A, slope)
    alpha = np.sum(slope * image, axis=1)
    alpha_radius = (
        2 * np.sum(np.abs(image) * reach, axis=1)
        + np.einsum("ni,nij,nj->n", reach, np.abs(A), reach)
        + np.einsum("ni,nij,nj->n", total, A_radius, total)
    ) * (1 + SLACK) + SLACK * np.abs(alpha)
    beta = curvature * trace + np.sum(b * slope, axis=1)
    beta_radius = curvature * trace_radius + np.sum(np.abs(b) * reach + b_radius * total, axis=1)
    beta_radius += SLACK * (beta_radius + curvature * trace + np.sum(np.abs(b * slope), axis=1))
    start, end = float(np.min(s - s_radius)), float(np.max(s + s_radius))
    width = (end - start) / BANDS
    first, last = (
        np.clip(np.floor((edge - start) / width + shift), 0, BANDS - 1).astype(int)
        for edge, shift in ((s - s_radius, -SLACK), (s + s_radius, SLACK))
    )
    low, rise, fall = (np.full(BANDS, np.inf) for _ in range(3))
    high = np.zeros(BANDS)
    for k in range(int(np.max(last - first)) + 1):
        here = np.minimum(first + k, last)
        np.minimum.at(low, here, np.maximum(alpha - alpha_radius, 0.0))
        np.maximum.at(high, here, alpha + alpha_radius)
        np.minimum.at(rise, here, beta - beta_radius)
        np.minimum.at(fall, here, -beta - beta_radius)
    if not np.all(np.isfinite([low, high, rise, fall])):
        return None
    return start, Bands(width, low, high, rise), Bands(width, low[::-1], high[::-1], fall[::-1])


# The function of one coordinate ------------------------------------------------------------------


def _traversal(coordinate: Coordinate, field: Field) -> Traversal | None:
    """The smallest ψ over all turning points; radii turn at their centre."""
    found = _bands(coordinate, field)
    if found is None:
        return None
    start, right, left = found
    if coordinate.curvature > 0:
        turn, first = 0, _starts(right)
    else:
        heights = np.maximum(_all_heights(right), _all_heights(left)[::-1])
        turn, first = int(np.argmin(heights)), np.zeros(1)
    sides = []
    for bands, count in ((right, turn), (left, BANDS - turn)):
        rest = Bands(bands.width, *(part[count:] for part in bands[1:]))
        climbs = [_climb(rest, g) for g in first]
        sides.append((rest, min(climbs, key=lambda climb: float(climb.height[-1]))))
    peak = max(float(climb.height[-1]) for _, climb in sides) * (1 + SLACK)
    if not math.isfinite(peak):
        return None
    return Traversal(coordinate, start, turn, (sides[0], sides[1]), peak)


def _starts(bands: Bands) -> np.ndarray:
    """Values of g at the centre, where α = 0, so that βg ≥ 1 is needed."""
    inverse = 1 / bands.drift[bands.drift > 0]
    if bands.drift[0] <= 0:
        return np.full(1, np.inf)
    return np.unique((1 + SLACK) * np.maximum.accumulate(inverse))


def _step(
    bands: Bands, i: int | np.ndarray, g: np.ndarray, t: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """g and its integral after a way of t in band i, and its derivative there: αg' + βg = 1, with
    α₊ where βg > 1."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        beta = bands.drift[i]
        falls = beta * g >= 1
        alpha = np.where(falls, bands.high[i], bands.low[i])
        z = beta * t / alpha
        decay, first, second = np.exp(-z), _first(z), _second(z)
        after = g * decay + t / alpha * first
        height = g * t * first + t**2 / alpha * second
        return after, height, (1 - beta * g) / alpha * decay


def _first(z: np.ndarray) -> np.ndarray:
    """(1 - e^{-z})/z."""
    safe = np.where(z == 0, 1.0, z)
    return np.where(z == 0, 1.0, -np.expm1(-safe) / safe)


def _second(z: np.ndarray) -> np.ndarray:
    """(z - 1 + e^{-z})/z², by its series where that cancels."""
    small = np.abs(z) < 1e-2
    x, safe = np.where(small, z, 0.0), np.where(small, 1.0, z)
    series = 1 / 2 - x / 6 + x**2 / 24 - x**3 / 120 + x**4 / 720 - x**5 / 5040
    return np.where(small, series, (safe + np.expm1(-safe)) / safe**2)


def _climb(bands: Bands, start: float) -> Climb:
    """g and its integral from the first edge on; infinite where there is none."""
    slope, height = [float(start)], [0.0]
    for i in range(len(bands.low)):
        after, more, _ = _step(bands, i, np.array(slope[-1]), bands.width)
        broken = np.isnan(after) or np.isnan(more)
        slope.append(math.inf if broken else float(after))
        height.append(math.inf if broken else height[-1] + float(more))
    return Climb(np.array(slope), np.array(height))


def _all_heights(bands: Bands) -> np.ndarray:
    """The integral of g from each edge to the last one, with g = 0 at that edge."""
    g, height = np.zeros(BANDS + 1), np.zeros(BANDS + 1)
    for i in range(BANDS):
        after, more, _ = _step(bands, i, g[: i + 1], bands.width)
        g[: i + 1], height[: i + 1] = after, height[: i + 1] + more
    return np.where(np.isnan(height), np.inf, height)


def _along(bands: Bands, climb: Climb, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The integral of g up to t ≥ 0, g and g'; zero for t < 0."""
    if len(bands.low) == 0:
        return np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    band = np.clip(np.floor(t / bands.width).astype(int), 0, len(bands.low) - 1)
    way = np.maximum(t - band * bands.width, 0.0)
    g, more, growth = _step(bands, band, climb.slope[band], way)
    return climb.height[band] + more, g, growth
