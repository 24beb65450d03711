"""Smooth maps of the unit cube that together cover a domain: what composite quadrature is built
on."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cordes.domains.box import Box
from cordes.domains.cylinder import Cylinder
from cordes.domains.domain import AbstractDomain
from cordes.domains.plane.region import Region
from cordes.domains.plane.slabs import Strip
from cordes.domains.polygon import Polygon
from cordes.domains.round import AbstractRound
from cordes.domains.unit_ball import circle, sphere
from cordes.domains.walls import Walled
from cordes.errors import DomainError

# Cuts of the unit interval whose ends lie on the boundary, of one whose end 1 does, and even ones.
BOTH_ENDS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
ONE_END = (0.0, 0.6, 0.9, 1.0)
EVEN = {count: tuple(np.linspace(0, 1, count + 1)) for count in (2, 4, 6)}


class Patch(NamedTuple):
    """A map from points y (N, d) of the unit cube to points (N, d) of the domain with the Jacobian
    determinant (N,), and where each axis is cut at first: closer together towards the boundary,
    where residuals live."""

    map: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    cuts: tuple[tuple[float, ...], ...]


@functools.singledispatch
def patches(domain: AbstractDomain) -> list[Patch]:
    """Patches of the domain; balls and ellipsoids have them in up to three dimensions, domains of
    your own have none."""
    raise DomainError(
        f"{type(domain).__name__} has no patches: its integrals come from its own `quadrature`."
    )


@patches.register
def _box(domain: Box) -> list[Patch]:
    lower, widths, volume = domain.lower, domain.widths, domain.volume
    cuts = (BOTH_ENDS,) * domain.dimension
    return [Patch(lambda y: (lower + widths * y, np.full(len(y), volume)), cuts)]


@patches.register
def _walled(domain: Walled) -> list[Patch]:
    return patches(domain.box)


@patches.register
def _polygon(domain: Polygon) -> list[Patch]:
    """The triangles of the fan around the centroid, collapsed to it."""

    def triangle(start: np.ndarray, edge: np.ndarray) -> Patch:
        center = domain.center
        area = abs((start[0] - center[0]) * edge[1] - (start[1] - center[1]) * edge[0])

        def to_domain(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return center + y[:, :1] * (start + y[:, 1:] * edge - center), area * y[:, 0]

        return Patch(to_domain, (ONE_END, EVEN[2]))

    return [
        triangle(start, edge) for start, edge in zip(domain.vertices, domain.edges, strict=True)
    ]


@patches.register
def _plane(domain: Region) -> list[Patch]:
    """Its strips."""

    def strip(each: Strip) -> Patch:
        return Patch(lambda y: each.at(*y.T), (EVEN[2], EVEN[2]))

    return [strip(each) for each in domain.strips]


@patches.register
def _round(domain: AbstractRound) -> list[Patch]:
    """Polar coordinates: radius and angle; in three dimensions radius, height on the sphere and
    angle."""
    center, matrix, dimension = domain.center, domain.matrix, domain.dimension
    if dimension > 3:
        raise DomainError(f"A ball in {dimension} dimensions has no patches.")
    plane = dimension == 2
    whole = (2 if plane else 4) * np.pi * abs(np.linalg.det(matrix))

    def to_domain(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius, angle = y[:, 0], 2 * np.pi * y[:, -1]
        directions = circle(angle) if plane else sphere(2 * y[:, 1] - 1, angle)
        return center + (radius[:, None] * directions) @ matrix.T, whole * radius ** (dimension - 1)

    return [Patch(to_domain, (ONE_END, EVEN[6]) if plane else (ONE_END, EVEN[2], EVEN[4]))]


@patches.register
def _cylinder(domain: Cylinder) -> list[Patch]:
    """Those of the base at all times, in coordinates √t: what begins with a kink spreads with
    them."""
    if domain.dimension > 3:
        raise DomainError(f"A cylinder in {domain.dimension} dimensions has no patches.")

    def in_time(base: Patch) -> Patch:
        def to_domain(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x, jacobian = base.map(y[:, :-1])
            root = y[:, -1]
            t = domain.start + domain.length * root**2
            return np.column_stack([x, t]), 2 * root * domain.length * jacobian

        return Patch(to_domain, (*base.cuts, BOTH_ENDS))

    return [in_time(patch) for patch in patches(domain.base)]
