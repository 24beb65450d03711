"""Polar bodies by integration and brute force, and enclosing balls."""

import itertools
import math

import numpy as np
import pytest
from polygons import PENTAGON, regular_polygon
from scipy.spatial import ConvexHull

from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.constants import circumscribed
from cordes.domains.polar import largest_polar_factor, polar_factor


def test_polar_factor_of_the_unit_cube():
    for dimension, digits in ((2, 0.1768), (3, 0.1514), (5, 0.1303), (10, 0.1132), (20, 0.1038)):
        cube = Box([0] * dimension, [1] * dimension)
        assert largest_polar_factor(cube) == pytest.approx(digits, abs=6e-5)
        assert polar_factor(cube, cube.center[None])[0] == pytest.approx(
            largest_polar_factor(cube), rel=1e-13
        )
        assert np.all(polar_factor(cube, cube.interior_points(50)) < largest_polar_factor(cube))


def test_polar_factor_of_a_box_by_its_convex_hull():
    box = Box([0, -1, 2], [1, 1, 5])
    for point in box.interior_points(5):
        corners = np.concatenate(
            [np.diag(1 / (box.upper - point)), -np.diag(1 / (point - box.lower))]
        )
        expected = 1 / (3 * ConvexHull(corners).volume ** (1 / 3))
        assert polar_factor(box, point[None])[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    "domain",
    [
        Ball([1, 2], 0.7),
        Ball([1, 2, 0], 0.7),
        Ellipsoid([0, 1], [[1, 0.5], [0.2, -0.7]]),
        Ellipsoid([0, 0, 0], [1.5, 1, 0.8]),
    ],
)
def test_polar_factor_of_ellipsoids_by_integration(domain):
    """|K°| = ∫ h(u)^{−d} du / d over the unit sphere, with the support function h."""
    d = domain.dimension
    axes = domain.matrix if isinstance(domain, Ellipsoid) else domain.radius * np.eye(d)
    if d == 2:
        angles = 2 * np.pi * np.arange(400) / 400
        directions, weights = (
            np.stack([np.cos(angles), np.sin(angles)], axis=1),
            np.full(400, 2 * np.pi / 400),
        )
    else:
        nodes, gauss = np.polynomial.legendre.leggauss(60)
        height, angle = (
            grid.ravel()
            for grid in np.meshgrid(nodes, 2 * np.pi * np.arange(120) / 120, indexing="ij")
        )
        radius = np.sqrt(1 - height**2)
        directions, weights = (
            np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1),
            np.repeat(gauss, 120) * 2 * np.pi / 120,
        )
    for point in domain.center + 0.7 * (domain.interior_points(6) - domain.center):
        support = np.linalg.norm(directions @ axes, axis=1) - directions @ (point - domain.center)
        expected = 1 / (d * (weights @ support ** (-float(d)) / d) ** (1 / d))
        assert polar_factor(domain, point[None])[0] == pytest.approx(expected, rel=1e-8)
    assert largest_polar_factor(domain) == pytest.approx(
        polar_factor(domain, domain.center[None])[0], rel=1e-11
    )


def test_polar_factor_of_polygons():
    box = Box([1, -2], [2, 0.5])
    points = np.concatenate([box.interior_points(200), box.center[None]])
    rectangle = Polygon(box.vertices)
    assert np.allclose(
        polar_factor(rectangle, points), polar_factor(box, points), rtol=1e-11, atol=0
    )
    assert largest_polar_factor(rectangle) == pytest.approx(largest_polar_factor(box), rel=1e-11)
    pentagon = Polygon(PENTAGON)
    for point in pentagon.interior_points(5):
        heights = np.sum((pentagon.vertices - point) * pentagon.normals, axis=1)
        expected = 1 / (2 * math.sqrt(ConvexHull(pentagon.normals / heights[:, None]).volume))
        assert polar_factor(pentagon, point[None])[0] == pytest.approx(expected, rel=1e-11)
    gaps = []
    for count in (10, 20, 40):
        around, disk = (
            Polygon(regular_polygon(count).vertices / np.cos(np.pi / count)),
            Ball([0, 0], 1),
        )
        points = disk.interior_points(50)
        assert np.all(polar_factor(around, points) >= polar_factor(disk, points) * (1 - 1e-11))
        gaps.append(largest_polar_factor(around) / largest_polar_factor(disk) - 1)
    assert gaps[1] / gaps[0] == pytest.approx(1 / 4, abs=0.02)
    assert gaps[2] / gaps[1] == pytest.approx(1 / 4, abs=0.02)


def test_largest_polar_factor_of_polygons():
    generator = np.random.default_rng(0)
    triangle = Polygon([[0, 0], [5, 0.3], [1, 0.4]])
    assert largest_polar_factor(triangle) == pytest.approx(
        math.sqrt(triangle.volume / 27), rel=1e-11
    )
    assert math.sqrt(1 / 27) == pytest.approx(0.19245, abs=1e-5)
    shapes = [
        Polygon(PENTAGON),
        regular_polygon(9, (100.0, 50.0)),
        Polygon([[0, 0], [10, 0], [10, 1e-3], [0, 2e-3]]),
    ]
    hull = generator.standard_normal((40, 2))
    shapes.append(Polygon(hull[ConvexHull(hull).vertices]))
    for polygon in shapes:
        largest = largest_polar_factor(polygon)
        sampled = polar_factor(polygon, polygon.interior_points(20000, kind="sobol"))
        assert np.max(sampled) <= largest <= np.max(sampled) * (1 + 1e-3)
        assert largest <= math.sqrt(polygon.volume / 27) * (1 + 2e-12)


@pytest.mark.parametrize(
    "domain", [Box([0, 0], [1, 2]), Ball([0, 0], 1), Ellipsoid([0, 0], [1, 2]), Polygon(PENTAGON)]
)
def test_polar_factor_vanishes_on_the_boundary(domain):
    boundary, _ = domain.boundary_points(50)
    assert np.all(polar_factor(domain, boundary) >= 0)
    assert np.all(polar_factor(domain, boundary) < 1e-6 * largest_polar_factor(domain))


# The enclosing ball


def test_circumscribed():
    for domain in (
        Box([0, -1, 2], [1, 1, 5]),
        Ball([1, 2], 0.7),
        Ellipsoid([0, 1], [[1, 0.5], [0.2, -0.7]]),
    ):
        center, radius = circumscribed(domain)
        assert np.allclose(center, domain.center)
        assert domain.circumradius <= radius <= domain.circumradius * (1 + 1e-11)


def test_circumscribed_circle_of_polygons_is_the_smallest():
    generator = np.random.default_rng(1)
    shapes = [
        Polygon([[0, 0], [4, 0], [2, 0.1]]),
        Polygon([[0, 0], [1, 0], [0, 1]]),
        regular_polygon(5, (30.0, 4.0)),
    ]
    for count in (5, 12, 30):
        points = generator.standard_normal((count, 2)) * [3, 1]
        shapes.append(Polygon(points[ConvexHull(points).vertices]))
    for polygon in shapes:
        center, radius = circumscribed(polygon)
        assert np.all(np.linalg.norm(polygon.vertices - center, axis=1) < radius)
        # No circle around all vertices is smaller than that around three of them, the largest of
        # which is the smallest circle.
        best = max(
            smallest_circle_of_three(polygon.vertices[list(chosen)])
            for chosen in itertools.combinations(range(len(polygon.vertices)), 3)
        )
        assert radius == pytest.approx(best, rel=1e-7)


def smallest_circle_of_three(points):
    sides = np.sort([np.linalg.norm(points[i] - points[j]) for i, j in ((0, 1), (1, 2), (0, 2))])
    if sides[2] ** 2 >= sides[0] ** 2 + sides[1] ** 2:
        return sides[2] / 2
    (ax, ay), (bx, by) = points[1] - points[0], points[2] - points[0]
    return np.prod(sides) / (2 * abs(ax * by - ay * bx))
