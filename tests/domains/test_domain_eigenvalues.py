"""First eigenvalues of domains against those that are known or computed by Rayleigh and Ritz."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from polygons import PENTAGON, regular_polygon
from scipy.spatial import ConvexHull

from cordes.domains import AbstractDomain, Ball, Box, Ellipsoid, Polygon
from cordes.domains.constants import circumscribed, first_eigenvalue
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.domains.polygon_shape import second_moment_axes
from cordes.errors import OptionError

DIGITS = [
    5.783186,
    9.869604,
    14.681971,
    20.190729,
    26.374616,
    33.217462,
    40.706466,
    48.831194,
    57.582941,
]


class Anonymous(AbstractDomain):
    """A domain of a user's own: only what the abstract class asks for, taken from another domain
    whose class and vertices it hides."""

    inner: AbstractDomain
    shows_vertices: bool = False

    dimension = property(lambda self: self.inner.dimension)
    volume = property(lambda self: self.inner.volume)
    bounding_box = property(lambda self: self.inner.bounding_box)
    center = property(lambda self: self.inner.center)
    vertices = property(lambda self: self.inner.vertices if self.shows_vertices else None)

    def distance(self, x): ...
    def contains(self, points, tolerance=0.0): ...
    def interior_points(self, count, seed=0, kind="uniform"): ...
    def quadrature(self, count): ...
    def boundary_at(self, directions): ...
    def boundary_points(self, count, seed=0): ...
    def lift(self, g, interfaces=()): ...


def random_matrix(generator, dimension, spread=1.0):
    rotation = np.linalg.qr(generator.standard_normal((dimension, dimension)))[0]
    matrix = (rotation * np.exp(spread * generator.standard_normal(dimension))) @ rotation.T
    return (matrix + matrix.T) / 2


def sine_eigenvalue(widths, matrix, count):
    """Rayleigh and Ritz on a box with products of sines: above the truth, and near it for a large
    count."""
    modes = np.arange(1, count + 1)
    m, n = np.meshgrid(modes, modes, indexing="ij")
    odd = (m + n) % 2 == 1
    # 2 ∫ mπ cos(mπx) sin(nπx) dx over the unit interval.
    mixed = np.where(odd, 4 * m * n / np.where(odd, n**2 - m**2, 1), 0.0)
    stiffness = np.diag((np.pi * modes) ** 2)
    form = np.zeros((count ** len(widths),) * 2)
    for i, j in itertools.product(range(len(widths)), repeat=2):
        parts = [np.eye(count)] * len(widths)
        if i == j:
            parts[i] = stiffness
        else:
            parts[i], parts[j] = mixed, mixed.T
        product = parts[0]
        for part in parts[1:]:
            product = np.kron(product, part)
        form = form + matrix[i, j] / (widths[i] * widths[j]) * product
    return scipy.linalg.eigh((form + form.T) / 2, eigvals_only=True, subset_by_index=(0, 0))[0]


def polynomial_eigenvalue(points, weights, distance, slope, matrix, degree):
    """Rayleigh and Ritz with D times polynomials: above the truth up to the error of the rule,
    which is exact here."""
    exponents = [
        e for e in itertools.product(range(degree + 1), repeat=points.shape[1]) if sum(e) <= degree
    ]
    values = np.stack([np.prod(points**e, axis=1) for e in exponents])
    slopes = np.zeros((len(exponents), *points.shape))
    for k, e in enumerate(exponents):
        for i in range(points.shape[1]):
            lowered = np.array(e) - np.eye(points.shape[1], dtype=int)[i]
            slopes[k, :, i] = e[i] * np.prod(points ** np.maximum(lowered, 0), axis=1)
    slopes = slopes * distance[:, None] + values[:, :, None] * slope
    values = values * distance
    form = np.einsum("kni,ij,lnj,n->kl", slopes, matrix, slopes, weights, optimize=True)
    mass = (values * weights) @ values.T
    # Nearly dependent polynomials are left out by the eigenvectors of the mass matrix.
    scale, vectors = np.linalg.eigh(mass)
    kept = vectors[:, scale > 1e-11 * scale[-1]] / np.sqrt(scale[scale > 1e-11 * scale[-1]])
    return np.linalg.eigvalsh(kept.T @ form @ kept)[0]


def ellipsoid_eigenvalue(axes, matrix, degree=8):
    """The eigenvalue of an ellipsoid, by Rayleigh and Ritz on the unit ball."""
    points, weights = Ball([0.0] * len(axes), 1).quadrature(degree + 4)
    inverse = np.linalg.inv(axes)
    return polynomial_eigenvalue(
        points,
        weights,
        1 - np.sum(points**2, axis=1),
        -2 * points,
        inverse @ matrix @ inverse.T,
        degree,
    )


def polygon_eigenvalue(polygon, matrix, degree=8):
    """The eigenvalue of a polygon from above, by Rayleigh and Ritz with the product of the
    distances to the edges."""
    points, weights = polygon.quadrature(degree + len(polygon.vertices) + 2)
    heights = np.sum((polygon.vertices - points[:, None]) * polygon.normals, axis=2)
    distance = np.prod(heights, axis=1)
    slope = -distance[:, None] * ((1 / heights) @ polygon.normals)
    lower, upper = polygon.bounding_box
    half = (upper - lower) / 2
    return polynomial_eigenvalue(
        (points - lower) / half - 1,
        weights,
        distance,
        slope * half,
        matrix / np.outer(half, half),
        degree,
    )


@pytest.mark.parametrize("dimension", range(2, 11))
def test_unit_ball(dimension):
    assert first_eigenvalue(Ball([0.0] * dimension, 1)) == pytest.approx(
        DIGITS[dimension - 2], abs=6e-7
    )


def test_unit_ball_in_high_dimension():
    assert first_eigenvalue(Ball([0.0] * 20, 1)) == pytest.approx(178.337341, abs=6e-7)
    for dimension in (3, 4, 15, 50, 200, 201):
        zero = math.sqrt(first_eigenvalue(Ball([1.0] * dimension, 0.5)) / 4)
        # The Bessel function is positive up to the bound and changes sign right after it, so that
        # the bound is below the first zero.
        order = dimension / 2 - 1
        assert np.all(scipy.special.jv(order, np.linspace(1e-3, 1 - 1e-12, 2000) * zero) >= 0)
        assert scipy.special.jv(order, zero * (1 + 1e-10)) < 0


def test_box_with_diagonal_matrix_is_exact():
    box = Box([0, -1, 2], [1, 1, 5])
    assert first_eigenvalue(box) == pytest.approx(np.pi**2 * (1 + 1 / 4 + 1 / 9), rel=3e-12)
    assert first_eigenvalue(box) < np.pi**2 * (1 + 1 / 4 + 1 / 9)
    assert first_eigenvalue(box, np.diag([1e-8, 2, 3])) == pytest.approx(
        np.pi**2 * (1e-8 + 2 / 4 + 3 / 9), rel=3e-12
    )
    assert first_eigenvalue(Box([1], [3]), np.array([[5.0]])) == pytest.approx(
        5 * np.pi**2 / 4, rel=3e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_box_with_full_matrix_is_below_the_truth(seed):
    generator = np.random.default_rng(seed)
    widths = np.exp(0.5 * generator.standard_normal(2))
    matrix = random_matrix(generator, 2)
    coarse, truth = sine_eigenvalue(widths, matrix, 12), sine_eigenvalue(widths, matrix, 24)
    # The error falls with a power of the count; what is left is less than the last gain.
    bound = first_eigenvalue(Box([0, 0], widths), matrix)
    assert 0.75 * truth < bound <= truth - (coarse - truth)


def test_box_with_full_matrix_in_three_dimensions():
    generator = np.random.default_rng(7)
    for _ in range(3):
        widths = np.exp(0.3 * generator.standard_normal(3))
        matrix = random_matrix(generator, 3, 0.8)
        coarse, truth = sine_eigenvalue(widths, matrix, 6), sine_eigenvalue(widths, matrix, 9)
        assert (
            0.6 * truth < first_eigenvalue(Box([0] * 3, widths), matrix) <= truth - (coarse - truth)
        )


@pytest.mark.parametrize("dimension", [2, 3, 6, 60])
def test_box_with_full_matrix_is_above_the_simple_bounds(dimension):
    generator = np.random.default_rng(dimension)
    widths = np.exp(0.3 * generator.standard_normal(dimension))
    matrix = random_matrix(generator, dimension, 0.5)
    bound = first_eigenvalue(Box(np.zeros(dimension), widths), matrix) * (1 + 1e-10)
    assert bound >= np.pi**2 * np.max(np.diag(matrix) / widths**2)
    assert bound >= np.linalg.eigvalsh(matrix)[0] * np.pi**2 * np.sum(1 / widths**2)
    # Diagonal D with M − D ≥ 0 by Gershgorin.
    diagonal = 2 * np.diag(matrix) - np.sum(np.abs(matrix), axis=1)
    assert bound >= np.pi**2 * np.sum(diagonal / widths**2)
    # Σ Mᵢᵢ/ℓᵢ² is the quotient of the product of sines, an upper bound.
    assert bound <= np.pi**2 * np.sum(np.diag(matrix) / widths**2)


def test_box_of_one_direction():
    """M → (1, 1)(1, 1)ᵀ on the unit square: the longest chord has length √2 and the limit is π²."""
    nearly = np.array([[1, 1 - 1e-9], [1 - 1e-9, 1]])
    assert first_eigenvalue(Box([0, 0], [1, 1]), nearly) == pytest.approx(np.pi**2, rel=1e-4)


def test_ellipse_of_the_theory():
    bound = first_eigenvalue(Ellipsoid([3, 4], [1, 2]))
    truth = ellipsoid_eigenvalue(np.diag([1.0, 2.0]), np.eye(2), 10)
    assert truth == pytest.approx(3.567, abs=1e-3)
    assert 3.296 < bound < truth


@pytest.mark.parametrize("dimension", [2, 3])
def test_ellipsoids_with_matrix_are_below_the_truth(dimension):
    generator = np.random.default_rng(dimension)
    for spread in (0.1, 0.4, 0.8):
        axes = generator.standard_normal((dimension, dimension)) * 0.3 + np.eye(dimension)
        matrix = random_matrix(generator, dimension, spread)
        degree = 8 if dimension == 2 else 6
        truth, coarse = (
            ellipsoid_eigenvalue(axes, matrix, degree),
            ellipsoid_eigenvalue(axes, matrix, degree - 2),
        )
        assert (
            0.8 * truth
            < first_eigenvalue(Ellipsoid([0] * dimension, axes), matrix)
            <= truth - (coarse - truth)
        )
        assert first_eigenvalue(Ball([0] * dimension, 2), matrix) <= ellipsoid_eigenvalue(
            2 * np.eye(dimension), matrix, degree
        )


def test_ellipsoid_does_not_depend_on_the_way_it_is_written():
    generator = np.random.default_rng(0)
    matrix = random_matrix(generator, 4)
    map_ = generator.standard_normal((4, 4))
    straight = first_eigenvalue(Ellipsoid([0] * 4, [1, 2, 3, 4]), matrix)
    turned = first_eigenvalue(
        Ellipsoid([0] * 4, map_ @ np.diag([1, 2, 3, 4])), map_ @ matrix @ map_.T
    )
    assert turned == pytest.approx(straight, rel=1e-10)
    assert first_eigenvalue(
        Ellipsoid([0] * 4, np.linalg.cholesky(matrix)), matrix
    ) == pytest.approx(DIGITS[2], abs=1e-6)


EXACT = [
    (Polygon([[0, 0], [1, 0], [0, 1]]), 5 * np.pi**2),
    (Polygon([[0, 0], [2, 0], [1, np.sqrt(3)]]), 4 * np.pi**2 / 3),
    (Polygon([[0, 0], [0.5, 0], [0, np.sqrt(3) / 2]]), 112 * np.pi**2 / 9),
    (Polygon([[0, 0], [1, 0], [1, 1], [0, 1]]), 2 * np.pi**2),
    (Polygon([[0, 0], [3, 0], [3, 0.5], [0, 0.5]]), np.pi**2 * (4 + 1 / 9)),
]


@pytest.mark.parametrize(("polygon", "truth"), EXACT)
def test_polygons_of_known_eigenvalue(polygon, truth):
    """Carried over by a linear map F with M = FFᵀ, the eigenvalue stays the same."""
    generator = np.random.default_rng(5)
    assert polygon_eigenvalue(polygon, np.eye(2), 10) == pytest.approx(truth, rel=2e-3)
    bound = first_eigenvalue(polygon)
    assert 0.75 * truth < bound <= truth
    for spread in (0.3, 1.0, 3.0):
        map_ = generator.standard_normal((2, 2)) @ np.diag([1, np.exp(spread)])
        carried = Polygon(polygon.vertices @ map_.T + [7, -3])
        assert bound * (1 - 1e-9) <= first_eigenvalue(carried, map_ @ map_.T) <= truth


def test_equilateral_triangle_and_rectangle_are_exact():
    assert first_eigenvalue(EXACT[1][0]) == pytest.approx(4 * np.pi**2 / 3, rel=3e-12)
    assert first_eigenvalue(EXACT[4][0]) == pytest.approx(np.pi**2 * (4 + 1 / 9), rel=3e-12)


def test_polygons_with_matrix_are_below_the_truth():
    generator = np.random.default_rng(2)
    shapes = [Polygon(PENTAGON), regular_polygon(7), Polygon([[0, 0], [3, 0], [2, 1], [1, 1]])]
    shapes.append(Polygon(regular_polygon(6).vertices * [1, 3]))
    for polygon in shapes:
        for matrix in (np.eye(2), random_matrix(generator, 2), random_matrix(generator, 2)):
            truth = polygon_eigenvalue(polygon, matrix)
            assert 0.7 * truth < first_eigenvalue(polygon, matrix) < truth


def test_long_polygon_with_many_vertices_uses_the_ellipse():
    bound = first_eigenvalue(Polygon(regular_polygon(200).vertices * [1, 2]))
    assert first_eigenvalue(Ellipsoid([0, 0], [1, 2])) <= bound <= 3.5675


def test_ellipse_around_a_polygon():
    """Symmetric about both axes, with two tips that stand out of an ellipse, so that the semi-axes
    lie along the coordinates."""
    outline = np.concatenate([regular_polygon(40).vertices * [1, 2], [[0, 2.5], [0, -2.5]]])
    polygon = Polygon(outline[ConvexHull(outline).vertices])
    short, long = second_moment_axes(polygon.vertices + np.array([0.3, 0.1]))
    gauges = (polygon.vertices[:, 0] / short) ** 2 + (polygon.vertices[:, 1] / long) ** 2
    assert np.max(gauges) == pytest.approx(1, abs=1e-12)
    assert 1.9 < long / short < 2.3
    assert first_eigenvalue(polygon) < polygon_eigenvalue(
        Polygon(regular_polygon(6).vertices * [1, 2]), np.eye(2)
    )


def test_eigenvalue_falls_when_the_domain_grows():
    assert first_eigenvalue(Box([0, 0], [1, 1.1])) < first_eigenvalue(Box([0, 0], [1, 1]))
    assert first_eigenvalue(Ellipsoid([0, 0, 0], [1, 2, 3])) < first_eigenvalue(
        Ellipsoid([0, 0, 0], [1, 2, 2.9])
    )
    matrix = np.array([[2, 0.7], [0.7, 1]])
    for domain, smaller in [
        (Polygon(PENTAGON), Polygon(0.9 * np.array(PENTAGON))),
        (Ball([0, 0], 1), Ball([0, 0], 0.9)),
    ]:
        assert first_eigenvalue(smaller, matrix) * 0.81 == pytest.approx(
            first_eigenvalue(domain, matrix), rel=1e-11
        )
    disk = DIGITS[0]
    for count in (3, 4, 5, 8, 50):
        # The regular polygon around the unit disk has a smaller eigenvalue than the disk.
        assert (
            first_eigenvalue(Polygon(regular_polygon(count).vertices / np.cos(np.pi / count)))
            < disk
        )


def test_domain_of_the_users_own():
    disk = Anonymous(Ball([1, 2], 1))
    matrix = np.array([[2, 0.7], [0.7, 1]])
    assert first_eigenvalue(disk) == pytest.approx(DIGITS[0], abs=1e-6)
    assert first_eigenvalue(Anonymous(Ball([1, 2, 3], 2))) == pytest.approx(DIGITS[1] / 4, abs=1e-6)
    assert first_eigenvalue(
        Anonymous(Ellipsoid([0, 0, 0], [1, 2, 3])), np.diag([1, 4, 9])
    ) == pytest.approx(DIGITS[1], abs=1e-6)
    assert first_eigenvalue(disk, matrix) <= ellipsoid_eigenvalue(np.eye(2), matrix)
    pentagon = Polygon(PENTAGON)
    assert first_eigenvalue(Anonymous(pentagon), matrix) <= polygon_eigenvalue(pentagon, matrix)
    assert first_eigenvalue(Anonymous(Box([0] * 3, [1, 1, 9]))) == pytest.approx(
        first_eigenvalue(Box([0] * 3, [1, 1, 9])), rel=1e-14
    )
    points = pentagon.interior_points(100)
    assert np.all(polar_factor(Anonymous(pentagon), points) >= polar_factor(pentagon, points))
    assert largest_polar_factor(Anonymous(pentagon)) >= largest_polar_factor(pentagon)
    assert largest_polar_factor(Anonymous(pentagon)) <= math.sqrt(pentagon.volume / 27) * (
        1 + 2e-12
    )
    center, radius = circumscribed(Anonymous(pentagon))
    assert np.all(np.linalg.norm(pentagon.vertices - center, axis=1) < radius)
    shown = Anonymous(pentagon, shows_vertices=True)
    assert first_eigenvalue(shown, matrix) == first_eigenvalue(pentagon, matrix)
    assert np.array_equal(polar_factor(shown, points), polar_factor(pentagon, points))
    assert largest_polar_factor(shown) == largest_polar_factor(pentagon)
    assert circumscribed(shown)[1] == circumscribed(pentagon)[1]


@pytest.mark.parametrize(
    "matrix", [[[1, 2], [2, 1]], [[1, 0.5], [0.4, 1]], [[1, 0], [0, np.nan]], [1, 2], np.eye(3)]
)
def test_bad_matrices_are_refused(matrix):
    for domain in (
        Box([0, 0], [1, 1]),
        Ball([0, 0], 1),
        Polygon(PENTAGON),
        Anonymous(Ball([0, 0], 1)),
    ):
        with pytest.raises(OptionError, match="matrix must"):
            first_eigenvalue(domain, np.array(matrix))
