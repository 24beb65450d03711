"""Whether the boundary values of a Monge–Ampère problem leave room for a solution with bounded
second derivatives, seen before anything is solved.

On a straight piece of the boundary the boundary values fix the second derivatives along it. Let a =
u_tt and b = u_ss along the two edges that meet in a corner with the angle ω. Whatever m = u_ts is,
det D²u = (ab - m²)/sin²ω ≤ ab/sin²ω there: with ab < f sin²ω no function that is C² up to the
corner solves the equation. In the corner of a box in d dimensions the product of the u_ii takes the
place of ab (Hadamard's inequality). Along an edge u_tt u_nn - u_tn² = f, so that u_tt = 0 where f >
0 makes u_nn infinite. Aleksandrov's solution exists all the same, but smooth functions follow it
slowly, and lose convexity there.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cordes.domains import Box
from cordes.problems.coefficients import at_points
from cordes.runtime.plain import show

Values = Callable[[np.ndarray], np.ndarray]

# Steps of the second differences, as shares of an edge; two of them must agree to this share, or g
# is not smooth and nothing is said.
STEPS, AGREEMENT = (2e-3, 1e-3), 0.1
# A corner is named where the product is below this share of what f asks for: if little is missing,
# D²u grows like a small multiple of a logarithm only, and solves end well.
ENOUGH = 0.75
# Along an edge g counts as straight where its second derivative is below this share of f^(1/d).
STRAIGHT = 1e-5
# Points of an edge, chords in the faces of a box, corners that are looked at, and how far inside of
# the domain f is read (it may have no value on the edge).
EDGE_POINTS, CHORDS, CORNERS, INSIDE = 15, 64, 256, 1e-6
ONE_SIDED = np.array([2.0, -5.0, 4.0, -1.0])


class Rough(NamedTuple):
    """A point of the boundary where D²u cannot be bounded, and why, as a clause."""

    point: np.ndarray
    why: str

    @property
    def sentence(self) -> str:
        """What to expect, and what to do about it."""
        return (
            f"No convex function with bounded second derivatives fits these data: {self.why}. "
            "There is a convex solution (Aleksandrov's), but its D²u is not bounded there: "
            "expect a longer solve, and an answer that loses convexity there and has no bound. "
            "Change g (a multiple of |x|² makes it more convex along the edges), make f smaller "
            "there, or take a domain with a curved boundary (Ball, Ellipsoid)."
        )


def rough_point(domain: Any, f: Callable[..., Any], g: Callable[..., Any]) -> Rough | None:
    """The first point that is found; None where nothing speaks against bounded second derivatives,
    or the boundary is curved."""
    if domain.dimension == 1 or (domain.vertices is None and not isinstance(domain, Box)):
        return None
    values = [at_points(lambda x, of=of: jnp.asarray(of(x), float)) for of in (f, g)]
    return _corner(domain, *values) or _edge(domain, *values)


def _corner(domain: Any, f: Values, g: Values) -> Rough | None:
    """The corner where the second derivatives along its edges fall short of f by most."""
    corners, edges = zip(*itertools.islice(_corners(domain), CORNERS), strict=True)
    corners, edges = np.array(corners), np.array(edges)
    curvatures, known = _second(g, corners, edges)
    lengths = np.linalg.norm(edges, axis=-1, keepdims=True)
    # The square of the volume between the unit vectors of the edges: sin²ω in the plane, 1 in a
    # box.
    source = _source(f, domain, corners)
    wanted = source * np.linalg.det(edges / lengths) ** 2
    product = np.prod(np.maximum(curvatures, 0.0), axis=1)
    short = np.all(known, axis=1) & np.isfinite(wanted) & (product < ENOUGH * wanted)
    if not np.any(short):
        return None
    worst = int(np.argmax(np.where(short, wanted - product, -math.inf)))
    size = source[worst] ** (1 / domain.dimension)
    values = " and ".join(_number(value, size) for value in curvatures[worst])
    right = abs(wanted[worst] - source[worst]) <= 1e-9 * wanted[worst]
    needed = (
        f"f = {wanted[worst]:.4g}"
        if right
        else f"f sin²ω = {wanted[worst]:.4g}, f = {source[worst]:.4g} and ω the angle there"
    )
    why = (
        f"at the corner x = {show(corners[worst])} the boundary values fix the second derivatives "
        f"of u along the edges, {values}, whose product {_number(product[worst], source[worst])} "
        f"must be at least {needed}"
    )
    return Rough(corners[worst], why)


def _edge(domain: Any, f: Values, g: Values) -> Rough | None:
    """A point of an edge along which g is straight while f is positive."""
    starts, ends = _chords(domain)
    shares = np.linspace(0.05, 0.95, EDGE_POINTS)[:, None, None]
    points = (starts + shares * (ends - starts)).reshape(-1, domain.dimension)
    along = np.tile(ends - starts, (EDGE_POINTS, 1))
    curvature = _central(g, points, along)
    source = _source(f, domain, points)
    straight = np.isfinite(source) & (
        np.abs(curvature) < STRAIGHT * np.maximum(source, 0.0) ** (1 / domain.dimension)
    )
    if not np.any(straight):
        return None
    first = int(np.argmax(straight))
    direction = along[first] / np.linalg.norm(along[first])
    why = (
        f"along the boundary g is straight at x = {show(points[first])} in the direction "
        f"{show(direction)} (its second derivative is "
        f"{_number(curvature[first], source[first] ** (1 / domain.dimension))}), but f = "
        f"{source[first]:.4g} there: det D²u = f > 0 needs a positive one"
    )
    return Rough(points[first], why)


def _corners(domain: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each corner with the vectors of the edges that leave it."""
    if domain.vertices is not None:
        vertices = domain.vertices
        for before, corner, after in zip(
            np.roll(vertices, 1, axis=0), vertices, np.roll(vertices, -1, axis=0), strict=True
        ):
            yield corner, np.stack([before - corner, after - corner])
        return
    lower, upper = domain.bounding_box
    for code in itertools.product((0, 1), repeat=domain.dimension):
        corner = np.where(code, upper, lower)
        yield corner, np.diag(np.where(code, lower, upper) - corner)


def _chords(domain: Any) -> tuple[np.ndarray, np.ndarray]:
    """Whole edges of a polygon; chords in the faces of a box, parallel to its edges."""
    if domain.vertices is not None:
        return domain.vertices, np.roll(domain.vertices, -1, axis=0)
    d, generator = domain.dimension, np.random.default_rng(20)
    lower, upper = domain.bounding_box
    starts = lower + (upper - lower) * generator.uniform(size=(CHORDS, d))
    rows, face = np.arange(CHORDS), generator.integers(d, size=CHORDS)
    axis = (face + generator.integers(1, d, size=CHORDS)) % d
    starts[rows, face] = np.where(generator.integers(2, size=CHORDS) == 0, lower[face], upper[face])
    starts[rows, axis] = lower[axis]
    ends = starts.copy()
    ends[rows, axis] = upper[axis]
    return starts, ends


def _second(g: Values, corners: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Second derivatives of g in the corners along their edges (N, k, d), one-sided, and whether
    two steps agree about them."""
    found = []
    for step in STEPS:
        places = corners[:, None, None] + step * np.arange(4.0)[:, None] * edges[:, :, None]
        values = g(places.reshape(-1, corners.shape[1])).reshape(places.shape[:3])
        found.append(values @ ONE_SIDED / (step * np.linalg.norm(edges, axis=-1)) ** 2)
    coarse, fine = found
    size = np.maximum(np.maximum(np.abs(coarse), np.abs(fine)), _noise(g, corners, edges))
    return fine, np.abs(coarse - fine) <= AGREEMENT * size


def _central(g: Values, points: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Second derivatives of g along chords at points inside of them."""
    left, middle, right = (g(points + shift * STEPS[0] * along) for shift in (-1.0, 0.0, 1.0))
    return (left - 2 * middle + right) / (STEPS[0] * np.linalg.norm(along, axis=-1)) ** 2


def _noise(g: Values, corners: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """What rounding leaves of a second difference."""
    size = np.abs(g(corners))[:, None]
    return 1e-12 * size / (STEPS[-1] * np.linalg.norm(edges, axis=-1)) ** 2


def _source(f: Values, domain: Any, points: np.ndarray) -> np.ndarray:
    center = np.asarray(domain.center)
    return f(center + (1 - INSIDE) * (points - center))


def _number(value: float, size: float) -> str:
    """A second difference as text; what is zero but for rounding, as zero."""
    return f"{0.0 if abs(value) < STRAIGHT * size else value:.4g}"
