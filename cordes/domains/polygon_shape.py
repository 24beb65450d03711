"""Shapes of polygons, from their vertices (K, 2) in counter-clockwise order: what the constants of
the bounds are made of."""

import numpy as np
import scipy.optimize

from cordes.domains.unit_ball import normalised

EPS = float(np.finfo(float).eps)


def smallest_circle(points: np.ndarray) -> tuple[np.ndarray, float]:
    """The smallest circle around points: minₓ maxₚ |p − x|² is the quadratic programme of min |x|²
    + t with |p|² − 2p·x ≤ t. The radius returned is the largest distance from the centre found,
    whatever the programme did."""
    middle, size = np.mean(points, axis=0), float(np.max(np.ptp(points, axis=0)))
    scaled = (points - middle) / size
    squares = np.sum(scaled**2, axis=1)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        return z[:2] @ z[:2] + z[2], np.r_[2 * z[:2], 1]

    constraint = {
        "type": "ineq",
        "fun": lambda z: z[2] + 2 * scaled @ z[:2] - squares,
        "jac": lambda z: np.c_[2 * scaled, np.ones(len(scaled))],
    }
    start = np.r_[0, 0, np.max(squares)]
    found = scipy.optimize.minimize(
        objective, start, jac=True, constraints=constraint, method="SLSQP", options={"ftol": 1e-15}
    )
    center = middle + size * found.x[:2]
    return center, float(np.max(np.linalg.norm(points - center, axis=1)))


def edge_lines(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outward unit normals of the edges and the largest n·x over the vertices: half-planes that
    hold the polygon even if a normal is rounded."""
    edges = np.roll(vertices, -1, axis=0) - vertices
    normals = normalised(np.stack([edges[:, 1], -edges[:, 0]], axis=1))
    return normals, np.max(vertices @ normals.T, axis=0)


def sines_between(normals: np.ndarray) -> np.ndarray:
    """Sines of the angles between successive normals, rounded down."""
    after = np.roll(normals, -1, axis=0)
    return np.maximum(cross(normals, after) - 4 * EPS, 0)


def polygon_inradius(vertices: np.ndarray, normals: np.ndarray, heights: np.ndarray) -> float:
    """An upper bound of the inradius, the largest r with nₖ·x + r ≤ hₖ for all k, by the
    multipliers y of the linear programme.

    For all y ≥ 0 the sum of the constraints is r Σy ≤ y·h − x·Σyₖnₖ, and |x| is at most the largest
    distance of a vertex from the origin: the bound is right whatever the tolerance of the
    programme.
    """
    size = float(np.max(np.linalg.norm(vertices, axis=1)))
    constraints = np.concatenate([normals, np.ones((len(normals), 1))], axis=1)
    found = scipy.optimize.linprog(
        [0, 0, -1],
        A_ub=constraints,
        b_ub=heights / size,
        bounds=[(None, None), (None, None), (0, None)],
    )
    multipliers = np.maximum(-found.ineqlin.marginals, 0)
    return float(
        (multipliers @ heights + size * np.linalg.norm(multipliers @ normals)) / np.sum(multipliers)
    )


def cross(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Vector products of vectors (n, 2)."""
    return one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]


def fan_areas(vertices: np.ndarray, apex: np.ndarray) -> np.ndarray:
    """Signed areas of the triangles between an apex and the edges."""
    return cross(vertices - apex, np.roll(vertices, -1, axis=0) - apex) / 2


def polygon_area(vertices: np.ndarray) -> float:
    return float(np.sum(fan_areas(vertices, vertices[0])))


def second_moment_axes(vertices: np.ndarray) -> np.ndarray:
    """Semi-axes, shortest first, of an ellipse around the vertices that has the shape of the second
    moments of the polygon."""
    here, ahead = vertices, np.roll(vertices, -1, axis=0)
    areas = cross(here, ahead)
    here, ahead = (
        points - areas @ (here + ahead) / (3 * np.sum(areas)) for points in (here, ahead)
    )
    areas = cross(here, ahead)
    moments = sum((areas[:, None] * points).T @ points for points in (here, ahead, here + ahead))
    lengths, directions = np.linalg.eigh(np.asarray(moments))
    lengths = np.maximum(lengths, EPS * lengths[-1])
    return np.sqrt(lengths * np.max(np.sum((here @ directions) ** 2 / lengths, axis=1)))
