"""Arcs of boundaries in the plane: segments, and arcs of ellipses.

A segment is a + t·u, an arc of an ellipse a + cos(t)·u + sin(t)·v, `first` ≤ t ≤ `last` or the
other way round; the domain lies on the left of the direction in which t runs from `first` to
`last`.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Pair = tuple[float, float]
# Angles and parameters that are one.
CLOSE = 1e-12


def _cross(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]


def turned(vector: np.ndarray) -> np.ndarray:
    """A vector turned to the right by 90 degrees: outwards, for a direction of a boundary."""
    return np.stack([vector[..., 1], -vector[..., 0]], axis=-1)


class Arc(NamedTuple):
    """See the module; `start` and `end` are kept as they are given, so that arcs meet exactly, and
    `piece` is the name of the part of the boundary to which it belongs. `kappa` is None where u is
    given, and κ where ∂ₙu + κu is."""

    a: Pair
    u: Pair
    v: Pair | None
    first: float
    last: float
    start: Pair
    end: Pair
    piece: str = "boundary"
    kappa: float | None = None

    @property
    def straight(self) -> bool:
        return self.v is None

    def at(self, share: np.ndarray) -> np.ndarray:
        """Points (n, 2) at shares of the parameter."""
        share = np.asarray(share, float)[..., None]
        if self.v is None:
            start, end = np.array(self.start), np.array(self.end)
            # From the nearer end: what is close to a corner keeps its digits.
            near, far = start + share * (end - start), end - (1 - share) * (end - start)
            return np.where(share <= 0.5, near, far)
        t = self.first + share * (self.last - self.first)
        points = np.array(self.a) + np.cos(t) * np.array(self.u) + np.sin(t) * np.array(self.v)
        points = np.where(share == 0, np.array(self.start), points)
        return np.where(share == 1, np.array(self.end), points)

    def traced(self, share: object, jnp: object) -> object:
        """The point at a share, in a trace of JAX."""
        if self.v is None:
            start, end = np.array(self.start), np.array(self.end)
            return start + share * (end - start)  # pyright: ignore
        t = self.first + share * (self.last - self.first)  # pyright: ignore
        cos, sin = jnp.cos(t), jnp.sin(t)  # pyright: ignore
        return np.array(self.a) + cos * np.array(self.u) + sin * np.array(self.v)

    def direction(self, share: np.ndarray) -> np.ndarray:
        """Derivatives by the share, (n, 2)."""
        share = np.asarray(share, float)[..., None]
        if self.v is None:
            return np.array(self.end) - np.array(self.start) + 0.0 * share
        t, turn = self.first + share * (self.last - self.first), self.last - self.first
        return turn * (np.cos(t) * np.array(self.v) - np.sin(t) * np.array(self.u))

    def reversed(self) -> "Arc":
        return self._replace(first=self.last, last=self.first, start=self.end, end=self.start)

    def cut(self, shares: list[float]) -> "list[Arc]":
        """The parts between shares of the parameter."""
        ends = [0.0, *sorted(shares), 1.0]
        points = [tuple(map(float, point)) for point in self.at(np.array(ends))]
        t = [self.first + share * (self.last - self.first) for share in ends]
        return [
            self._replace(first=t[k], last=t[k + 1], start=points[k], end=points[k + 1])
            for k in range(len(ends) - 1)
        ]

    @property
    def length(self) -> float:
        x, w = np.polynomial.legendre.leggauss(64)
        speed = np.linalg.norm(self.direction((x + 1) / 2), axis=-1)
        return float(np.sum(w * speed) / 2)

    @property
    def swept(self) -> float:
        """∫ (x dy − y dx)/2 along the arc."""
        start, end = np.array(self.start), np.array(self.end)
        if self.v is None:
            return float(_cross(start, end - start)) / 2
        a, u, v = (np.array(part) for part in (self.a, self.u, self.v))
        return float(_cross(a, end - start) + _cross(u, v) * (self.last - self.first)) / 2

    def share_of(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share at which each point lies, and about how far it is from the arc."""
        points = np.asarray(points, float)
        if self.v is None:
            along = np.array(self.end) - np.array(self.start)
            share = (points - np.array(self.start)) @ along / float(along @ along)
        else:
            local = np.linalg.solve(np.array([self.u, self.v]).T, (points - self.a).T).T
            t = np.arctan2(local[..., 1], local[..., 0])
            low, high = min(self.first, self.last), max(self.first, self.last)
            middle = (low + high) / 2
            t = middle + np.remainder(t - middle + math.pi, 2 * math.pi) - math.pi
            share = (t - self.first) / (self.last - self.first)
        nearest = self.at(np.clip(share, 0, 1))
        return share, np.linalg.norm(points - nearest, axis=-1)

    def turns(self, axis: int) -> list[float]:
        """Shares inside at which a coordinate has an extreme."""
        if self.v is None:
            return []
        top = math.atan2(self.v[axis], self.u[axis])
        low, high = min(self.first, self.last), max(self.first, self.last)
        found = []
        k = math.ceil((low - top) / math.pi)
        while top + k * math.pi <= high:
            share = (top + k * math.pi - self.first) / (self.last - self.first)
            if 1e-9 < share < 1 - 1e-9:
                found.append(share)
            k += 1
        return found


def boxes_of(arcs: Sequence[Arc]) -> np.ndarray:
    """The lower and the upper corner of a box around each arc, (n, 2, 2)."""
    found = np.zeros((len(arcs), 2, 2))
    for box, arc in zip(found, arcs, strict=True):
        shares = [0.0, 1.0, *arc.turns(0), *arc.turns(1)]
        points = arc.at(np.array(shares))
        box[:] = np.min(points, axis=0), np.max(points, axis=0)
    return found


def near_boxes(one: np.ndarray, two: np.ndarray, distance: float) -> np.ndarray:
    """Which of the first boxes (n, 2, 2) are nearer than that to which of the others, (n, m): only
    their arcs can meet."""
    gaps = np.maximum(two[None, :, 0] - one[:, None, 1], one[:, None, 0] - two[None, :, 1])
    return np.all(gaps <= distance, axis=2)


def segment(start: np.ndarray, end: np.ndarray, piece: str = "boundary") -> Arc:
    first, last = (tuple(map(float, point)) for point in (start, end))
    step = (last[0] - first[0], last[1] - first[1])
    return Arc(first, step, None, 0.0, 1.0, first, last, piece)  # pyright: ignore


def full_ellipse(center: np.ndarray, axes: np.ndarray, piece: str = "boundary") -> list[Arc]:
    """An ellipse as two arcs, counter-clockwise; the columns of `axes` are its semi-axes."""
    axes = axes if np.linalg.det(axes) > 0 else axes[:, ::-1]
    a, u, v = (tuple(map(float, part)) for part in (center, axes[:, 0], axes[:, 1]))
    left, right = (tuple(map(float, center + sign * axes[:, 0])) for sign in (-1, 1))
    ends = ((0.0, math.pi, right, left), (math.pi, 2 * math.pi, left, right))
    return [Arc(a, u, v, *each, piece) for each in ends]  # pyright: ignore


def meetings(one: Arc, two: Arc) -> np.ndarray:
    """Points (n, 2) that lie on both lines or ellipses, of which the arcs are parts; none where
    these are the same."""
    if one.v is None and two.v is None:
        denominator = float(_cross(np.array(one.u), np.array(two.u)))
        if abs(denominator) <= CLOSE * float(np.linalg.norm(one.u) * np.linalg.norm(two.u)):
            return np.zeros((0, 2))
        offset = np.array(two.start) - np.array(one.start)
        along = np.array(one.end) - np.array(one.start)
        other = np.array(two.end) - np.array(two.start)
        t = float(_cross(offset, other)) / float(_cross(along, other))
        return (np.array(one.start) + t * along)[None]
    if one.v is None:
        one, two = two, one
    return _on_ellipse(one, two)


def _on_ellipse(one: Arc, two: Arc) -> np.ndarray:
    """`one` is an ellipse: in its own coordinates the unit circle."""
    assert one.v is not None
    frame = np.array([one.u, one.v]).T

    def local(vector: object) -> np.ndarray:
        return np.linalg.solve(frame, np.asarray(vector, float))

    a, u = local(np.array(two.a) - np.array(one.a)), local(two.u)
    if two.v is None:
        a = local(np.array(two.start) - np.array(one.a))
        u = local(np.array(two.end) - np.array(two.start))
        A, B, C = u @ u, a @ u, a @ a - 1
        root = B * B - A * C
        if root < -CLOSE * max(B * B, A):
            return np.zeros((0, 2))
        roots = (-B + np.array([-1.0, 1.0]) * math.sqrt(max(root, 0.0))) / A
        return np.array(one.a) + (a + roots[:, None] * u) @ frame.T
    v = local(two.v)
    # |a + u cos t + v sin t|² = 1 as a polynomial of z = e^{it}, times z².
    w = (u - 1j * v) / 2
    c2, c1, c0 = w @ w, 2 * (a @ w), a @ a - 1 + 2 * (w @ np.conj(w)).real
    coefficients = np.array([c2, c1, c0, np.conj(c1), np.conj(c2)])
    size = float(np.max(np.abs(coefficients)))
    if size <= 1e-10:
        return np.zeros((0, 2))
    z = np.roots(np.where(np.abs(coefficients) < 1e-14 * size, 0, coefficients))
    t = np.angle(z[np.abs(np.abs(z) - 1) < 1e-6])
    for _ in range(4):
        point = a + np.cos(t)[:, None] * u + np.sin(t)[:, None] * v
        slope = 2 * np.sum(point * (np.cos(t)[:, None] * v - np.sin(t)[:, None] * u), axis=1)
        step = (np.sum(point**2, axis=1) - 1) / np.where(slope == 0, np.inf, slope)
        t = t - np.clip(step, -1e-3, 1e-3)
    point = a + np.cos(t)[:, None] * u + np.sin(t)[:, None] * v
    good = np.abs(np.sum(point**2, axis=1) - 1) < 1e-9
    return np.array(one.a) + point[good] @ frame.T
