"""Domains: what is refused, points, normals, Gauss rules and constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes  # noqa: F401
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.errors import DomainError, OptionError

DOMAINS = [
    Box([-1], [2]),
    Box([-2, -2], [2, 2]),
    Box([0, -1, 0], [1, 2, 0.5]),
    Box([-1] * 5, [1, 1, 1, 1, 2]),
    Ball([0.5, -1], 2),
    Ball([0.1, 0.2, 0.3], 1.5),
    Ball([0.0] * 6, 0.7),
    Ellipsoid([0, 0, 0], [1.5, 1, 0.8]),
    Ellipsoid([0, 1], [[1, 0.5], [0.2, -0.7]]),
    Polygon([[0, 0], [0.3, 1.2], [2, 0]]),
    Polygon([[0, 0], [2, -0.2], [2.5, 1], [1, 1.6], [-0.2, 0.9]]),
]
each = pytest.mark.parametrize(
    "domain", DOMAINS, ids=lambda domain: f"{type(domain).__name__}{domain.dimension}"
)
WITH_RULE = [domain for domain in DOMAINS if isinstance(domain, Box) or domain.dimension <= 3]


def distances(domain, points):
    return np.asarray(jax.jit(jax.vmap(domain.distance))(jnp.asarray(points)))


@each
def test_distance_is_positive_inside_and_zero_on_the_boundary(domain):
    assert np.all(distances(domain, domain.interior_points(200)) > 0)
    points, normals = domain.boundary_points(200)
    assert np.max(np.abs(distances(domain, points))) < 1e-12 * np.max(
        distances(domain, domain.center[None])
    )
    slope = np.asarray(jax.jit(jax.vmap(jax.grad(domain.distance)))(jnp.asarray(points)))
    inward = -np.sum(slope * normals, axis=1)
    assert np.all(inward > 0)
    # The distance falls along the normal and along nothing else.
    assert np.allclose(slope, -inward[:, None] * normals, atol=1e-10 * np.max(inward))


def test_distance_is_that_of_the_paper():
    x = jnp.array([0.3, -1.1])
    assert Box([-2, -2], [2, 2]).distance(x) == pytest.approx(
        (4 - 0.3**2) * (4 - 1.1**2), rel=1e-14
    )
    assert Ball([0, 0], 2).distance(x) == pytest.approx(4 - 0.3**2 - 1.1**2, rel=1e-14)
    y = jnp.array([0.3, -0.1, 0.4])
    assert Ellipsoid([0, 0, 0], [1.5, 1, 0.8]).distance(y) == pytest.approx(
        1 - 0.04 - 0.01 - 0.25, rel=1e-14
    )


@each
def test_boundary_points_and_normals(domain):
    points, normals = domain.boundary_points(300, seed=2)
    assert points.shape == normals.shape == (300, domain.dimension)
    assert np.allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-14)
    assert np.all(domain.contains(points, tolerance=1e-12))
    assert not np.any(domain.contains(points + 1e-6 * normals))
    assert np.all(domain.contains(points - 1e-6 * normals, tolerance=1e-12))
    assert np.all(domain.contains(points + 1e-6 * normals, tolerance=1.01e-6))
    # A convex set lies behind each of its tangent planes.
    inside = domain.interior_points(100)
    assert np.all(np.einsum("bd,bid->bi", normals, inside - points[:, None]) <= 1e-12)


@each
def test_rays_from_the_center_hit_the_boundary(domain):
    directions = np.random.default_rng(0).standard_normal((4, 50, domain.dimension)) * 1e-5
    points = domain.boundary_at(directions)
    assert points.shape == directions.shape
    assert np.max(np.abs(distances(domain, points.reshape(-1, domain.dimension)))) < 1e-12 * np.max(
        distances(domain, domain.center[None])
    )
    offsets = points - domain.center
    lengths = np.linalg.norm(offsets, axis=-1) * np.linalg.norm(directions, axis=-1)
    assert np.allclose(np.sum(offsets * directions, axis=-1), lengths, rtol=1e-12)
    with pytest.raises(DomainError, match="points nowhere"):
        domain.boundary_at(np.zeros(domain.dimension))


def test_rays_hit_the_faces_of_a_box_without_rounding():
    box = Box([0.1, 0.2], [0.7, 1.3])
    points = box.boundary_at(np.random.default_rng(1).standard_normal((500, 2)))
    on_face = (points == box.lower) | (points == box.upper)
    assert np.all(np.any(on_face, axis=1))
    assert np.array_equal(box.boundary_at(box.upper - box.center), box.upper)
    assert np.array_equal(box.boundary_at([0, -3]), [box.center[0], 0.2])


@pytest.mark.parametrize(
    "domain", WITH_RULE, ids=lambda domain: f"{type(domain).__name__}{domain.dimension}"
)
def test_gauss_rules_are_exact_for_their_degree(domain):
    points, weights = domain.quadrature(4)
    assert np.all(weights > 0)
    assert np.all(domain.contains(points))
    assert np.sum(weights) == pytest.approx(domain.volume, rel=1e-13)
    assert weights @ points == pytest.approx(domain.center * domain.volume, rel=1e-12, abs=1e-12)
    finer, finer_weights = domain.quadrature(7)
    direction = np.linspace(0.3, 1, domain.dimension)
    exact = finer_weights @ (finer @ direction + 0.2) ** 7
    assert weights @ (points @ direction + 0.2) ** 7 == pytest.approx(exact, rel=1e-11)
    beyond = finer_weights @ (finer @ direction + 0.2) ** 8
    assert weights @ (points @ direction + 0.2) ** 8 != pytest.approx(beyond, rel=1e-11)


def test_rules_that_cannot_be_given_are_refused():
    with pytest.raises(DomainError, match=r"6 dimensions.*sobol"):
        Ball([0.0] * 6, 1).quadrature(3)
    with pytest.raises(DomainError, match=r"fewer in each direction"):
        Box([0] * 5, [1] * 5).quadrature(30)
    with pytest.raises(OptionError, match="positive integer, not 0"):
        Box([0, 0], [1, 1]).quadrature(0)


@pytest.mark.parametrize("kind", ["uniform", "sobol"])
@each
def test_interior_points_are_uniform(domain, kind):
    points = domain.interior_points(3000, seed=5, kind=kind)
    assert points.shape == (3000, domain.dimension)
    assert np.all(domain.contains(points))
    assert np.array_equal(points, domain.interior_points(3000, seed=5, kind=kind))
    assert not np.array_equal(points, domain.interior_points(3000, seed=6, kind=kind))
    if domain in WITH_RULE:
        nodes, weights = domain.quadrature(4)
    else:
        nodes, weights = (
            domain.interior_points(200_000, seed=11),
            np.full(200_000, domain.volume / 200_000),
        )
    offsets, node_offsets = points - domain.center, nodes - domain.center
    spread = np.sqrt(weights @ node_offsets**2 / domain.volume)
    tolerance = 0.08 if kind == "uniform" else 0.02
    assert np.allclose(np.mean(offsets, axis=0) / spread, 0, atol=tolerance)
    moments = np.einsum("n,ni,nj->ij", weights, node_offsets, node_offsets) / domain.volume
    assert np.allclose(
        (offsets.T @ offsets / 3000 - moments) / np.outer(spread, spread), 0, atol=tolerance
    )


def test_points_of_a_ball_in_four_and_more_dimensions_are_uniform():
    # For uniform points |x|ᵈ is uniform on (0, 1), and each squared coordinate has the mean 1/(d +
    # 2).
    for kind, tolerance in (("uniform", 0.02), ("sobol", 0.005)):
        points = Ball([0.0] * 6, 1).interior_points(4000, kind=kind)
        powers = np.sort(np.linalg.norm(points, axis=1) ** 6)
        assert np.max(np.abs(powers - (np.arange(4000) + 0.5) / 4000)) < 1.5 * tolerance
        assert np.allclose(np.mean(points**2, axis=0), 1 / 8, atol=tolerance)


@each
def test_boundary_points_are_uniform(domain):
    # The divergence theorem: ∫ n = 0 and ∫ xᵢ nⱼ = δᵢⱼ |Ω| over the boundary.
    points, normals = domain.boundary_points(40_000, seed=1)
    assert np.allclose(np.mean(normals, axis=0), 0, atol=0.02)
    second = np.mean(np.einsum("ni,nj->nij", points - domain.center, normals), axis=0)
    assert np.allclose(
        second,
        np.trace(second) / domain.dimension * np.eye(domain.dimension),
        atol=0.02 * np.max(np.abs(second)) + 0.01,
    )


def test_ellipse_points_are_uniform_in_arc_length():
    ellipse = Ellipsoid([0, 0], [3, 0.5])
    points, _ = ellipse.boundary_points(40_000)
    angles = np.linspace(0, np.pi / 2, 20_001)
    steps = np.hypot(np.diff(3 * np.cos(angles)), np.diff(0.5 * np.sin(angles)))
    beyond = np.sum(steps[3 * np.cos(angles[1:]) > 2]) / np.sum(steps)
    assert np.mean(np.abs(points[:, 0]) > 2) == pytest.approx(beyond, abs=0.01)


@each
def test_radii_volume_and_bounding_box(domain):
    points, _ = domain.boundary_points(4000)
    lower, upper = domain.bounding_box
    assert np.all(points >= lower - 1e-12)
    assert np.all(points <= upper + 1e-12)
    reach = np.max(np.linalg.norm(points - domain.center, axis=1))
    assert reach <= domain.circumradius * (1 + 1e-12)
    assert domain.inradius <= domain.circumradius
    assert domain.inradius <= np.min(upper - lower) / 2 + 1e-12
    if domain.dimension == 2:
        assert reach > 0.98 * domain.circumradius


def test_known_constants():
    triangle = Polygon([[0, 0], [4, 0], [0, 3]])
    assert triangle.inradius == pytest.approx(1, abs=1e-9)
    assert triangle.volume == pytest.approx(6)
    assert triangle.center == pytest.approx([4 / 3, 1])
    assert Ball([0, 0, 0], 2).volume == pytest.approx(32 * np.pi / 3, rel=1e-14)
    assert Ball([0.0] * 4, 1).volume == pytest.approx(np.pi**2 / 2, rel=1e-14)
    skew = Ellipsoid([0, 0], [[2, 1], [0, 1]])
    assert skew.volume == pytest.approx(2 * np.pi)
    assert skew.circumradius * skew.inradius == pytest.approx(2)
    assert Box([0, 0], [2, 6]).inradius == 1
    assert np.array_equal(Box([0, 1], [2, 6]).vertices, [[0, 1], [2, 1], [2, 6], [0, 6]])
    assert Box([0, 0, 0], [1, 1, 1]).vertices is None


@each
def test_repr_reads_back_and_domains_are_hashable(domain):
    again = eval(repr(domain), {type(domain).__name__: type(domain)})
    assert again == domain
    assert hash(again) == hash(domain)
    assert jax.tree.leaves(domain) == []
    with pytest.raises(AttributeError):
        domain._center = (0.0,)


def test_polygons_are_stored_counter_clockwise():
    clockwise = Polygon([[0, 0], [0, 1], [1, 1], [1, 0]])
    assert np.array_equal(clockwise.vertices, [[0, 0], [1, 0], [1, 1], [0, 1]])
    assert clockwise.volume == 1
    # The distance is one at the centroid whatever the size.
    long = Polygon([[0, 0], [100, 0], [100, 1], [0, 1]])
    assert long.distance(jnp.asarray(long.center)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box([0, 1], [1, 1]), r"axis 1: lower is 1.0, upper is 1.0"),
        (lambda: Box([0, 0], [1, 1, 1]), r"2 and 3 coordinates"),
        (lambda: Box([0, -np.inf], [1, 1]), r"\[1\] is -inf.*bounded"),
        (lambda: Box(0, 1), r"lower corner.*shape \(\)"),
        (lambda: Box([0, "a"], [1, 1]), r"list of numbers, not \[0, 'a'\]"),
        (lambda: Ball([0, 0], 0), r"radius of the ball is 0.0"),
        (lambda: Ball([0, 0], np.nan), r"radius of the ball is nan"),
        (lambda: Ball([0, 0], [1, 2]), r"one number.*Ellipsoid"),
        (lambda: Ball([0], 1), r"use Box"),
        (lambda: Ellipsoid([0, 0], [1, -2]), r"\[1.0, -2.0\].*positive"),
        (lambda: Ellipsoid([0, 0], [[1, 2], [2, 4]]), r"singular"),
        (lambda: Ellipsoid([0, 0], [1, 2, 3]), r"shape \(2,\) or \(2, 2\), not \(3,\)"),
        (lambda: Polygon([[0, 0], [1, 0]]), r"at least three vertices; 2 given"),
        (lambda: Polygon([0, 1, 2]), r"shape \(n, 2\)"),
        (lambda: Polygon([[0, 0], [1, 0], [1, 1], [1, 0]]), r"Vertices 1 and 3 .* \[1.0, 0.0\]"),
        (lambda: Polygon([[0, 0], [1, 1], [2, 2]]), r"lie on a line"),
        (
            lambda: Polygon([[0, 0], [1, 0], [2, 0], [1, 1]]),
            r"vertex 1 at \[1.0, 0.0\] an angle of 180°",
        ),
        (lambda: Polygon([[0, 0], [1, 1], [1, 0], [0, 1]]), r"edges cross"),
        (
            lambda: Polygon([[np.cos(0.8 * np.pi * k), np.sin(0.8 * np.pi * k)] for k in range(5)]),
            r"winds around 2 times",
        ),
        (lambda: Box([0, 0], [1, 5e-324]), r"The box is 4.94e-324 wide along axis 1"),
        (lambda: Box([0], [1e40]), r"1e\+40 wide along axis 0. Choose another unit"),
        (lambda: Box([1e16], [1e16 + 4]), r"4 wide along axis 0, and 1e\+16 away"),
        (lambda: Ball([0, 0], 1e-200), r"The ball is 2e-200 wide"),
        (lambda: Ball([0, 1e17], 1), r"The ball is 0 wide|away from 0"),
        (lambda: Ellipsoid([0, 0], [1, 1e200]), r"singular|2e\+200 wide"),
        (lambda: Ellipsoid([0, 0], [[0, 1e200], [-1e200, 0]]), r"2e\+200 wide"),
        (lambda: Polygon([[0, 0], [1e300, 0], [0, 1e300]]), r"The polygon is 1e\+300 wide"),
        (lambda: Polygon([[0, 0], [1, np.nan], [1, 1]]), r"vertices of the polygon\[1, 1\] is nan"),
    ],
)
def test_bad_domains_are_refused_with_the_values(make, message):
    with pytest.raises(DomainError, match=message):
        make()


def test_unknown_kind_of_points_is_refused():
    with pytest.raises(OptionError, match=r"'sobel'.*sobol"):
        Ball([0, 0], 1).interior_points(10, kind="sobel")
