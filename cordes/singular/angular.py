"""Generic angular functions between the rays of a singular point.

Where A varies or lower-order terms and f act, the terms after the leading one are r^(β+j) Φ(θ) with Φ smooth in each sector, C¹ across the rays and
zero on the edges. This file spans such Φ: a few global functions carry the values and slopes on the rays, bubbles fill each sector.
"""

from itertools import pairwise

import numpy as np

from cordes.singular.points import SingularPoint

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def _chebyshev(t: np.ndarray, count: int) -> list[Table]:
    """T_0 … T_{count-1} with two derivatives at t, by the recurrence."""
    one, zero = np.ones_like(t), np.zeros_like(t)
    rows = [(one, zero, zero), (t, one, zero)]
    while len(rows) < count:
        (a, da, dda), (b, db, ddb) = rows[-2], rows[-1]
        rows.append((2 * t * b - a, 2 * b + 2 * t * db - da, 4 * db + 2 * t * ddb - dda))
    return rows[:count]


def _product(left: Table, right: Table) -> Table:
    a, da, dda = left
    b, db, ddb = right
    return a * b, da * b + a * db, dda * b + 2 * da * db + a * ddb


def _scaled(table: Table, factor: float) -> Table:
    """Chain rule for an argument multiplied by `factor`."""
    return table[0], factor * table[1], factor**2 * table[2]


def _inside(low: float, high: float, angle: np.ndarray, table: Table) -> Table:
    """Extension by zero; C¹ where the function vanishes to second order at both ends."""
    keep = (angle >= low) & (angle <= high)
    zero = np.zeros_like(angle)
    return np.where(keep, table[0], zero), np.where(keep, table[1], zero), np.where(keep, table[2], zero)


def angular_tables(point: SingularPoint, angle: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Φ, Φ', Φ'' of all generic functions, each (N, count); angles in the range of the point's rays."""
    rays, S = np.asarray(point.rays), point.sectors
    tables: list[Table] = []
    if point.on_boundary:
        half = (rays[-1] - rays[0]) / 2
        t = (angle - rays[0]) / half - 1
        edge = (1 - t**2, -2 * t, -2 * np.ones_like(t))
        tables += [_scaled(_product(edge, row), 1 / half) for row in _chebyshev(t, degree if S == 1 else max(degree // 2, 2 * S))]
    else:
        tables += [(np.ones_like(angle), np.zeros_like(angle), np.zeros_like(angle))]
        for k in range(1, max(degree // 2, S) + 1):
            cosine, sine = np.cos(k * angle), np.sin(k * angle)
            tables += [(cosine, -k * sine, -k * k * cosine), (sine, k * cosine, -k * k * sine)]
    if S > 1:
        for low, high in pairwise(rays):
            half = (high - low) / 2
            t = (angle - low) / half - 1
            bubble = ((1 - t**2) ** 2, -4 * t * (1 - t**2), 12 * t**2 - 4)
            tables += [_inside(low, high, angle, _scaled(_product(bubble, row), 1 / half)) for row in _chebyshev(t, degree)]
    return tuple(np.stack([table[k] for table in tables], axis=1) for k in range(3))  # pyright: ignore[reportReturnType]
