"""The singular functions of an answer as a proof has them: for each point and each radial factor
r^β (log r)^l one angular function, between two rays a polynomial of the angle."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from cordes.ansatz.singular.functions import Family, Frame, _terms
from cordes.domains import Box
from cordes.solutions.solution import Solution

# Chebyshev's polynomials between two rays: enough for functions of the angle that are analytic
# well beyond them.
DEGREE = 24
# Coefficients that are smaller, beside the largest, are rounding.
NOISE = 1e-15
RIGHT = math.pi / 2
# How far a ray may lie from a multiple of the right angle.
STRAIGHT = 1e-9
VECTORS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def writable(solution: Solution) -> bool:
    """Whether all singular functions can be written so: straight rays along the axes of a box, and
    real exponents."""
    singular = solution.ansatz.singular
    plain = isinstance(solution.problem.domain, Box) or not singular.families
    return plain and all(_plain(family) for family in singular.families)


def _plain(family: Family) -> bool:
    turns = np.asarray(family.point.rays) / RIGHT
    straight = bool(np.all(np.abs(turns - np.round(turns)) < STRAIGHT))
    real = all(leading.function.exponent.imag == 0 for leading in family.leading)
    return straight and real and family.point.interface is None and not family.point.kink


def corners(solution: Solution) -> list[dict[str, Any]]:
    """What a proof keeps of them."""
    singular, start, found = solution.ansatz.singular, 0, []
    for family, count in zip(singular.families, singular.counts, strict=True):
        amplitudes = np.asarray(solution.amplitudes)[start : start + count]
        start += count
        if np.any(amplitudes):
            found.append(_corner(family, amplitudes, singular.scale))
    return found


def _corner(family: Family, amplitudes: np.ndarray, scale: float) -> dict[str, Any]:
    first, last = (round(float(family.point.rays[k]) / RIGHT) for k in (0, -1))
    angles = RIGHT * np.arange(first, last + 1)
    exponents = [(each.function.exponent.real, each.logs) for each in family.leading]
    exponents += list(family.radials)
    nodes = np.cos(math.pi * (2 * np.arange(DEGREE + 1) + 1) / (2 * DEGREE + 2))
    inside = [low + (nodes + 1) / 2 * (high - low) for low, high in pairwise(angles)]
    at_rays, between = (
        _angular(family, angles, amplitudes),
        [_angular(family, each, amplitudes) for each in inside],
    )
    factors: dict[tuple[float, int], int] = {}
    for pair in exponents:
        factors.setdefault((round(pair[0], 12), pair[1]), len(factors))
    terms = []
    for beta, logs in factors:
        same = [
            k for k, pair in enumerate(exponents) if (round(pair[0], 12), pair[1]) == (beta, logs)
        ]
        values, slopes = (np.sum([at_rays[k][n] for k in same], axis=0) for n in (0, 1))
        if family.point.on_boundary:
            values[[0, -1]] = 0.0
        else:
            values[-1], slopes[-1] = values[0], slopes[0]
        rows = []
        for k in range(len(angles) - 1):
            wanted = np.sum([between[k][j][0] for j in same], axis=0)
            rows.append(_inner(wanted, nodes, values[k : k + 2], slopes[k : k + 2]))
        hexadecimal = [[float(v).hex() for v in row] for row in (values, slopes)]
        terms.append(
            [repr(beta), logs, *hexadecimal, [[float(c).hex() for c in row] for row in rows]]
        )
    return {
        "at": [repr(float(c)) for c in family.point.location],
        "scale": repr(float(scale)),
        "rays": [[str(c) for c in VECTORS[k % 4]] for k in range(first, last + 1)],
        "terms": terms,
    }


def _angular(family: Family, angles: np.ndarray, amplitudes: np.ndarray) -> list[np.ndarray]:
    """Σ amplitude Φ and Σ amplitude Φ' at angles, for each radial factor, (2, N)."""
    nothing = np.zeros((len(angles), 2))
    frame = Frame(np.ones(len(angles)), angles, nothing, nothing)
    start, found = 0, []
    for (R, _, _), (T, T1, _) in _terms(family, frame):
        count = np.broadcast_shapes(R.shape, T.shape)[1]
        part = amplitudes[start : start + count]
        start += count
        found.append(np.real(np.stack([T @ part, T1 @ part])))
    return found


def _inner(wanted: np.ndarray, t: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The coefficients of (Φ - Hermite's cubic)/(1 - t²)² at Chebyshev's points."""
    (v, w), (m, n) = values, slopes * RIGHT / 2
    cubic = (1 - t) ** 2 * ((2 + t) * v + (1 + t) * m) / 4
    cubic += (1 + t) ** 2 * ((2 - t) * w - (1 - t) * n) / 4
    found = chebyshev.chebfit(t, (wanted - cubic) / (1 - t**2) ** 2, DEGREE)
    size = float(np.max(np.abs(found), initial=0.0))
    return chebyshev.chebtrim(found, NOISE * size) if size > 0 else found[:1]
