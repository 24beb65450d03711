"""Generic angular functions between the rays of a singular point.

Where A varies or lower-order terms and f act, the terms after the leading one are r^(β+j) Φ(θ) with
Φ smooth in each sector, C¹ across the rays and zero on the edges. This file spans such Φ: a few
global functions carry the values and slopes on the rays, bubbles fill each sector.

Where an interface meets a smooth boundary (`adapted_tables`) sectors may have any width, and all
terms but the first are generic. There the functions are made for the matrix A of each sector. With
ρ and ψ the length and the angle of A^(-1/2) (cos θ, sin θ), solutions of the frozen equation are
r^β ρ^β cos(βψ + …), so Φ is ρ^β times a function of ψ that polynomials follow quickly, which they
do not follow as a function of θ.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cordes.ansatz.singular.points import SingularPoint, directions

# A function of angles with two derivatives: an array (3, N).
Table = np.ndarray
# Bubbles in a sector, however narrow it is.
FEWEST = 3


def _chebyshev(t: np.ndarray, count: int) -> list[Table]:
    """T_0 … T_{count-1} with two derivatives at t, by the recurrence."""
    one, zero = np.ones_like(t), np.zeros_like(t)
    rows = [np.stack([one, zero, zero]), np.stack([t, one, zero])]
    while len(rows) < count:
        (a, da, dda), (b, db, ddb) = rows[-2], rows[-1]
        row = [2 * t * b - a, 2 * b + 2 * t * db - da, 4 * db + 2 * t * ddb - dda]
        rows.append(np.stack(row))
    return rows[:count]


def _product(left: Table, right: Table) -> Table:
    a, da, dda = left
    b, db, ddb = right
    return np.stack([a * b, da * b + a * db, dda * b + 2 * da * db + a * ddb])


def _bubbles(t: np.ndarray, count: int) -> list[Table]:
    """Functions of t that vanish to second order at ±1: extended by zero they are C¹."""
    bubble = np.stack([(1 - t**2) ** 2, -4 * t * (1 - t**2), 12 * t**2 - 4])
    return [_product(bubble, row) for row in _chebyshev(t, count)]


def angular_tables(point: SingularPoint, angle: np.ndarray, degree: int) -> np.ndarray:
    """Φ, Φ', Φ'' of all generic functions, (3, N, count); angles in the range of the point's
    rays."""
    rays, S = np.asarray(point.rays), point.sectors
    tables: list[Table] = []

    def between(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        """Angles as t from -1 to 1, and the factors of the chain rule."""
        half = (high - low) / 2
        return (angle - low) / half - 1, np.array([[1.0], [1 / half], [(1 / half) ** 2]])

    if point.on_boundary:
        t, chain = between(rays[0], rays[-1])
        edge = np.stack([1 - t**2, -2 * t, -2 * np.ones_like(t)])
        rows = _chebyshev(t, degree if S == 1 else max(degree // 2, 2 * S))
        tables += [chain * _product(edge, row) for row in rows]
    else:
        tables.append(np.stack([np.ones_like(angle), *np.zeros((2, len(angle)))]))
        for k in range(1, max(degree // 2, S) + 1):
            cosine, sine = np.cos(k * angle), np.sin(k * angle)
            tables.append(np.stack([cosine, -k * sine, -k * k * cosine]))
            tables.append(np.stack([sine, k * cosine, -k * k * sine]))
    if S > 1:
        for low, high in pairwise(rays):
            t, chain = between(low, high)
            inside = (angle >= low) & (angle <= high)
            tables += [np.where(inside, chain * table, 0.0) for table in _bubbles(t, degree)]
    return np.stack(tables, axis=-1)


class Sector(NamedTuple):
    """A sector at angles: s runs from -1 to 1 with ψ, `weight` is ρ^exponent; both with two
    derivatives by θ."""

    s: Table
    weight: Table
    width: float

    def times(self, q: Table) -> Table:
        """The function weight · q(s), for q with two derivatives by s."""
        _, first, second = self.s
        inner = np.stack([q[0], q[1] * first, q[2] * first**2 + q[1] * second])
        return _product(self.weight, inner)


def _sector(
    matrix: np.ndarray, low: float, high: float, angle: np.ndarray, exponent: float
) -> Sector:
    inverse = np.linalg.inv(matrix)
    root = np.linalg.cholesky(inverse).T
    middle = root @ directions((low + high) / 2)

    def turned(angles: np.ndarray) -> np.ndarray:
        """ψ, measured from the middle."""
        x, y = root @ directions(angles).T
        return np.arctan2(middle[0] * y - middle[1] * x, middle[0] * x + middle[1] * y)

    start, end = turned(np.array([low, high]))
    half = (end - start) / 2
    along, across = directions(angle).T, directions(angle + np.pi / 2).T
    # Q = ρ², and dψ/dθ = √det A⁻¹ / Q: linear maps keep areas but for their determinant.
    Q, slope, cross = (
        np.sum(left * (inverse @ right), axis=0)
        for left, right in ((along, along), (along, across), (across, across))
    )
    Q1, Q2, speed = 2 * slope, 2 * (cross - Q), np.sqrt(np.linalg.det(inverse)) / half
    s = np.stack([(turned(angle) - start) / half - 1, speed / Q, -speed * Q1 / Q**2])
    p, unit = exponent / 2, middle @ middle
    weight = (Q / unit) ** p
    bend = p * weight * ((p - 1) * (Q1 / Q) ** 2 + Q2 / Q)
    return Sector(s, np.stack([weight, p * weight * Q1 / Q, bend]), 2 * half)


def adapted_tables(
    point: SingularPoint, angle: np.ndarray, sector: np.ndarray, degree: int, exponent: float
) -> np.ndarray:
    """Φ, Φ', Φ'' of all generic functions for r^exponent, (3, N, count), at angles whose sectors
    are known: for each ray between two sectors one with value one and slope zero and one with value
    zero and slope one, one with slope one for each edge, and bubbles in each sector, `degree` and
    two more of them in a right angle."""
    tables: list[Table] = []
    carriers = np.zeros((len(point.rays), 2, 3, len(angle)))
    for k, (low, high) in enumerate(pairwise(point.rays)):
        here = sector == k
        inside = _sector(point.matrices[k], low, high, angle, exponent)
        ends = _sector(point.matrices[k], low, high, np.array([low, high]), exponent)
        t = inside.s[0]
        for side, carrier in ((0, carriers[k]), (1, carriers[k + 1])):
            sign = 2 * side - 1
            square = (t + sign) ** 2
            value = [square * (2 - sign * t) / 4, 3 * sign * (1 - t**2) / 4, -1.5 * sign * t]
            slope = [square * (t - sign) / 4, (t + sign) * (3 * t - sign) / 4, (3 * t + sign) / 2]
            W, W1, speed = ends.weight[0][side], ends.weight[1][side], ends.s[1][side]
            for number, (wanted, wanted_slope) in enumerate(((1.0, 0.0), (0.0, 1.0))):
                q, q1 = wanted / W, (wanted_slope - W1 * wanted / W) / (W * speed)
                both = q * np.array(value) + q1 * np.array(slope)
                carrier[number] += np.where(here, inside.times(both), 0.0)
        count = max(round(2 * inside.width * (degree + 2) / np.pi), FEWEST)
        tables += [np.where(here, inside.times(table), 0.0) for table in _bubbles(t, count)]
    between = carriers[1:-1].reshape(-1, 3, len(angle))
    return np.stack([carriers[0, 1], carriers[-1, 1], *between, *tables], axis=-1)


def kinked_table(angle: np.ndarray, exponent: float, logs: int) -> np.ndarray:
    """Φ, Φ', Φ'' of the functions r^n Φ(θ), n = `exponent`, that follow a kink where A is the
    identity and smooth, each (N, count), zero at the angles 0 and π.

    The terms of the expansion are ζᵃ ζ̄ᵇ log ζ with a + b = n, and ζ^(n-l) ζ̄^l with l ≤ 2n - 2:
    the frozen Laplacian gains ζ̄² ζ^(-1)… from D²(ζ log ζ) = 1/ζ with each order of A - A(p). So
    log r has trigonometric polynomials of degree n beside it, and so has θ; those without them have
    degree 3n - 4.
    """
    n = round(exponent)
    plain = _trigonometric(angle, n, n if logs else max(n, 3 * n - 4))
    if logs:
        return plain
    value, first, second = _trigonometric(angle, n, n)
    t = angle[:, None]
    turned = np.stack([t * value, value + t * first, 2 * first + t * second])
    return np.concatenate([plain, turned], axis=2)


def _trigonometric(angle: np.ndarray, n: int, highest: int) -> np.ndarray:
    """sin kθ and cos kθ - cos k₀θ for all k ≤ highest of the parity of n, with two derivatives."""
    frequencies = np.arange(n % 2, highest + 1, 2)
    positive = frequencies[frequencies > 0]
    sines, cosines = angle[:, None] * positive, angle[:, None] * frequencies
    value = np.cos(cosines)
    first, second = -frequencies * np.sin(cosines), -(frequencies**2) * value
    sine, cosine = np.sin(sines), np.cos(sines)
    odd = np.stack([sine, positive * cosine, -(positive**2) * sine])
    even = np.stack([value, first, second])
    return np.concatenate([odd, even[:, :, 1:] - even[:, :, :1]], axis=2)
