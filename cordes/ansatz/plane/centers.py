"""Which functions the corners and the holes of a domain get."""

import math
from typing import NamedTuple

import numpy as np

from cordes.ansatz.plane.powers import LOG, LOG_MODULUS, PLAIN, Center, Powers
from cordes.domains.plane.arcs import meetings, segment, turned
from cordes.domains.plane.loops import Corner
from cordes.domains.plane.region import Region

# Exponents nearer than this are one.
NEAR = 1e-9
# Directions of a cut that are tried.
DIRECTIONS = 33


class Smoothness(NamedTuple):
    """What makes the singular functions of a frozen operator need corrections: a matrix that
    changes, or a drift; a reaction; bent sides."""

    varying: bool
    reaction: bool
    bent: bool

    def shifts(self, j: int) -> range:
        """The powers q of the conjugate in the corrections that are j degrees higher."""
        if self.varying:
            return range(2 * j + 1)
        if self.reaction:
            return range(j + 1)
        return range(1 if j == 0 or self.bent else 0)


def inverse_root(A: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(A)
    return (vectors / np.sqrt(values)) @ vectors.T


class Exponents(NamedTuple):
    """The angle of a corner in its coordinates, and the exponents first + kπ/angle of the functions
    there that fulfil what holds on its two sides.

    On a side that carries d·∇u, d the tangent where u is given and the normal where a flux is, let
    β be the angle of A^{−1/2}d. Then α = 1 + (kπ + β₁ − β₂)/angle. Where second derivatives are
    square integrable, exponents below one are not in the solution.
    """

    angle: float
    first: float

    def up_to(self, degree: float) -> list[float]:
        step = math.pi / self.angle
        count = int((degree - self.first) / step + 1 + NEAR)
        return [self.first + k * step for k in range(count)]

    @staticmethod
    def of(corner: Corner, root: np.ndarray, angle: float) -> "Exponents":
        step = math.pi / angle
        if all(corner.given):
            return Exponents(angle, step)
        # Outer normals: to the right of the boundary, which arrives against `back`.
        sides = (corner.ahead, turned(corner.ahead)), (corner.back, -turned(corner.back))
        first, last = (
            root @ pair[0 if given else 1] for pair, given in zip(sides, corner.given, strict=True)
        )
        beta = math.atan2(first[1], first[0]) - math.atan2(last[1], last[0])
        least = 1 - NEAR if corner.straightens else NEAR
        alpha = 1 + beta / angle
        return Exponents(angle, alpha + math.ceil((least - alpha) / step) * step)


def corner_center(
    domain: Region, corner: Corner, A: np.ndarray, size: float
) -> tuple[Center, Exponents]:
    """The coordinates of a corner and its exponents in them."""
    root = inverse_root(A)
    ahead, back = root @ corner.ahead, root @ corner.back
    first = math.atan2(ahead[1], ahead[0])
    angle = (math.atan2(back[1], back[0]) - first) % (2 * math.pi)
    # From the bisector to both sides: the first direction of a cut that never comes back, or else
    # the one that does so last.
    half = math.pi - angle / 2
    offsets = sorted(half * np.linspace(-0.94, 0.94, DIRECTIONS), key=abs)
    best: Center | None = None
    for offset in offsets:
        turn = first + angle / 2 + offset
        turning = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        frame = turning @ root / size
        outward = -np.linalg.solve(frame, np.array([1.0, 0.0]))
        inverse = _inverse_reach(domain, corner.point, outward)
        if best is None or inverse < best.inverse:
            best = Center(corner.point, frame, inverse, A)
        if inverse == 0:
            break
    assert best is not None
    return best, Exponents.of(corner, root, angle)


def _inverse_reach(domain: Region, point: np.ndarray, outward: np.ndarray) -> float:
    """1/h for a cut that ends half way to where the ray from a corner comes back to the domain, in
    units of the ray; 0 where it does not."""
    lower, upper = domain.bounding_box
    far = 4 * float(np.linalg.norm(upper - lower)) / float(np.linalg.norm(outward))
    ray, hits = segment(point, point + far * outward), []
    for arc in domain.arcs:
        for place in meetings(arc, ray):
            (share,), (gap,) = arc.share_of(place[None])
            (along,), (off,) = ray.share_of(place[None])
            near = 1e-9 * float(np.max(upper - lower))
            if max(gap, off) <= near and along > 1e-7 and -1e-9 <= share <= 1 + 1e-9:
                hits.append(along * far)
    return 2 / min(hits) if hits else 0.0


def corner_powers(center: Center, known: Exponents, degree: float, smooth: Smoothness) -> Powers:
    """t^{α+j−q} conj(t)^q for all exponents α up to the degree, with their corrections; with
    a logarithm where α is an integer, or an exponent and a correction of another one agree. What is
    a polynomial is left out, unless the cut makes it another function."""
    found: dict[tuple[int, int, int], tuple[float, int, int]] = {}

    def add(p: float, q: int, factor: int) -> None:
        whole = abs(p - round(p)) < NEAR and p > -NEAR
        if factor == LOG or not whole:
            found.setdefault((round(p / NEAR), q, factor), (p, q, factor))

    exponents = known.up_to(degree)
    for alpha in exponents:
        for j in range(int(degree - alpha + NEAR) + 1):
            high = alpha + j
            whole = abs(alpha - round(alpha)) < NEAR
            resonant = j > 0 and any(abs(high - other) < NEAR for other in exponents)
            for q in smooth.shifts(j):
                add(high - q, q, PLAIN)
                if whole or (resonant and any((smooth.varying, smooth.reaction, smooth.bent))):
                    add(high - q, q, LOG)
    if not found:
        found[(0, 0, LOG)] = (2.0, 0, LOG)
    return _powers(center, list(found.values()))


def hole_powers(center: Center, degree: int, smooth: Smoothness) -> Powers:
    """Logarithms and poles in a hole, in coordinates in which its boundary is near |ζ| = 1."""
    found: list[tuple[float, int, int]] = [(0.0, 0, LOG_MODULUS)]
    mixed = 4 if smooth.varying else 3 if smooth.reaction else 0
    for k in range(1, degree + 1):
        found.append((-float(k), 0, PLAIN))
        for q in range(1, mixed + 1):
            found.append((-float(k) if smooth.varying else q - float(k), q, PLAIN))
    for i in range(mixed + 1):
        for q in range(mixed + 1 - i):
            if i + q > 0:
                found.append((float(i), q, LOG_MODULUS))
    plain = [each for each in found if each[2] != PLAIN or each[0] < 0]
    return _powers(center, list(dict.fromkeys(plain)))


def _powers(center: Center, found: list[tuple[float, int, int]]) -> Powers:
    p, q, factor = np.array(found, float).T
    return Powers(center, p, q, factor.astype(int))
