"""Domains of the plane that are not convex: areas done by hand, membership by other means, names of
pieces, and what is refused."""

import functools
import operator
import time

import numpy as np
import pytest

import cordes
from cordes.domains.plane.arcs import boxes_of, full_ellipse, near_boxes, segment
from cordes.domains.plane.region import Region
from cordes.errors import DomainError, FileError
from cordes.problems.written.toml_file import problem_from_toml
from cordes.reports.kit.planes import make_plane

L_SHAPE = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
SQUARE = cordes.Box([-1, -1], [1, 1])
LENS = 2 * np.pi / 3 - np.sqrt(3) / 2


def region(domain) -> Region:
    assert isinstance(domain, Region)
    return domain


def winding(vertices, points):
    """The number of turns of the boundary around each point."""
    ahead = np.roll(vertices, -1, axis=0)
    one, two = vertices[None] - points[:, None], ahead[None] - points[:, None]
    cross = one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]
    return np.sum(np.arctan2(cross, np.sum(one * two, axis=-1)), axis=1) / (2 * np.pi)


def random_polygon(generator, count):
    """A polygon around the origin, hardly ever convex."""
    angles = np.sort(generator.uniform(0, 2 * np.pi, count))
    while np.min(np.diff(np.append(angles, angles[0] + 2 * np.pi))) < 0.1:
        angles = np.sort(generator.uniform(0, 2 * np.pi, count))
    radii = generator.uniform(0.3, 1.0, count)
    return radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize(
    ("domain", "area"),
    [
        (cordes.Polygon(L_SHAPE), 3.0),
        (cordes.Polygon(L_SHAPE[::-1]), 3.0),
        (SQUARE - cordes.Ball([0.2, 0.1], 0.5), 4 - np.pi / 4),
        (SQUARE - cordes.Ellipsoid([0.2, 0.1], [0.5, 0.3]), 4 - 0.15 * np.pi),
        (cordes.Ball([0, 0], 1) | cordes.Ball([1, 0], 1), 2 * np.pi - LENS),
        (cordes.Ball([0, 0], 1) & cordes.Ball([1, 0], 1), LENS),
        (cordes.Ball([0, 0], 1) - cordes.Ball([1, 0], 1), np.pi - LENS),
        (SQUARE - cordes.Box([0, 0], [1, 1]), 3.0),
        (cordes.Box([0, 0], [1, 1]) | cordes.Box([1, 0], [2, 1]), 2.0),
        (cordes.Polygon([[0, 0], [4, 0], [4, 4], [0, 4]], holes=[[[1, 1], [2, 1], [1, 2]]]), 15.5),
        (cordes.Ball([0, 0], 1) - cordes.Ball([0, 0], 0.5), 0.75 * np.pi),
    ],
)
def test_areas(domain, area):
    domain = region(domain)
    assert domain.volume == pytest.approx(area, rel=1e-13)
    points, weights = domain.quadrature(24)
    assert np.sum(weights) == pytest.approx(area, rel=1e-10)
    assert np.all(domain.contains(points))
    assert np.all(domain.contains(domain.interior_points(500)))
    edge, normals = domain.boundary_points(500)
    assert np.all(domain.contains(edge, tolerance=1e-12))
    # The normal of a piece leads outside.
    assert not np.any(domain.contains(edge + 1e-6 * normals))
    assert np.all(domain.hull.contains(points))


def test_quadrature_integrates_a_moment_by_hand():
    """∫x² over a square without a disc: that of the square less r⁴π/4 + πr²a²."""
    domain = region(SQUARE - cordes.Ball([0.3, -0.2], 0.4))
    points, weights = domain.quadrature(24)
    by_hand = 4 / 3 - np.pi * 0.4**4 / 4 - np.pi * 0.4**2 * 0.3**2
    assert np.sum(weights * points[:, 0] ** 2) == pytest.approx(by_hand, rel=1e-11)


def test_membership_of_random_polygons_is_their_winding_number():
    generator = np.random.default_rng(4)
    for _ in range(30):
        vertices = random_polygon(generator, 9)
        domain = cordes.Polygon(vertices)
        points = generator.uniform(-1, 1, (400, 2))
        expected = np.round(winding(vertices, points)) == 1
        assert np.array_equal(domain.contains(points), expected)


def test_combinations_contain_what_their_parts_say():
    generator = np.random.default_rng(5)
    for _ in range(20):
        one = cordes.Ellipsoid(generator.uniform(-0.5, 0.5, 2), generator.uniform(0.3, 1, 2))
        two = cordes.Polygon(random_polygon(generator, 7))
        points = generator.uniform(-1.5, 1.5, (400, 2))
        a, b = one.contains(points), two.contains(points)
        for combine, expected in (
            (lambda p, q: p | q, a | b),
            (lambda p, q: p & q, a & b),
            (lambda p, q: p - q, a & ~b),
            (lambda p, q: q - p, b & ~a),
        ):
            assert np.array_equal(combine(one, two).contains(points), expected)


def test_corners_of_an_l_shape_and_of_two_discs():
    angles = [corner.angle / np.pi for corner in region(cordes.Polygon(L_SHAPE)).corners]
    assert np.allclose(angles, [0.5, 0.5, 0.5, 1.5, 0.5, 0.5])
    union = region(cordes.Ball([0, 0], 1) | cordes.Ball([1, 0], 1))
    assert np.allclose([corner.angle for corner in union.corners], 4 * np.pi / 3)


def test_pieces_have_names():
    assert cordes.Polygon(L_SHAPE).pieces == tuple(f"side {k}" for k in range(1, 7))
    plate = SQUARE - cordes.Ball([0.5, 0], 0.1) - cordes.Ball([-0.5, 0], 0.1)
    assert plate.pieces == ("outer", "hole 1", "hole 2")
    assert cordes.Ball([0, 0], 1).pieces == ("boundary",)
    assert np.allclose(np.sort(region(plate).holes[:, 0]), [-0.5, 0.5], atol=0.02)


def test_a_convex_polygon_stays_one():
    square = cordes.Polygon([(0, 0), (1, 0), (1, 1), (0, 1)])
    assert isinstance(square, cordes.Polygon)
    assert square.convex
    assert not cordes.Polygon(L_SHAPE).convex


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cordes.Ball([0, 0], 1) | cordes.Ball([2, 0], 1), "cusp"),
        (lambda: SQUARE - cordes.Ball([0, 0], 0.2) - cordes.Ball([0.4, 0], 0.2), "cusp"),
        (lambda: SQUARE - cordes.Ball([0, 0], 1), "touch"),
        (lambda: SQUARE - SQUARE, "empty"),
        (lambda: SQUARE - cordes.Box([-2, -2], [2, 2]), "empty"),
        (lambda: cordes.Box([0, 0], [1, 1]) | cordes.Box([1, 1], [2, 2]), "touch"),
        (
            lambda: cordes.Polygon([(0, 0), (2, 0), (2, 2), (1, 2), (1, 1), (1 - 1e-7, 2), (0, 2)]),
            "slit",
        ),
        (lambda: cordes.Polygon([(0, 0), (2, 2), (2, 0), (0, 1.5)]), "cross"),
        (lambda: cordes.Polygon([(0, 0), (1, 0), (1, 1), (1, 0), (0, 1)]), "same point"),
        (lambda: cordes.Polygon(L_SHAPE, holes=[[(1.2, 1.2), (1.5, 1.2), (1.2, 1.5)]]), "outside"),
        (
            lambda: cordes.Polygon(
                L_SHAPE,
                holes=[
                    [(0.2, 0.2), (0.8, 0.2), (0.2, 0.8)],
                    [(0.25, 0.25), (0.4, 0.25), (0.3, 0.4)],
                ],
            ),
            "overlaps",
        ),
        (lambda: cordes.Box([0, 0, 0], [1, 1, 1]) - cordes.Box([0, 0, 0], [0.5, 1, 1]), "plane"),
        (lambda: SQUARE - 3, "combined"),
    ],
)
def test_refused_with_the_place_or_the_reason(make, words):
    with pytest.raises(DomainError, match=words):
        make()


def test_other_kinds_of_problems_ask_for_convex_domains():
    domain = cordes.Polygon(L_SHAPE)
    with pytest.raises(DomainError, match="not convex"):
        cordes.MongeAmpere(domain, 1.0)
    with pytest.raises(DomainError, match="not convex"):
        cordes.Transport(domain, lambda x: 1.0 + 0 * x[0])
    with pytest.raises(DomainError, match="not convex"):
        cordes.Parabolic(domain, 1.0, np.eye(2), 0.0, initial=0.0)


def test_outlines_go_around_holes():
    """The line that figures are clipped to encloses the area of the domain."""
    domain = region(SQUARE - cordes.Ball([0.3, 0.1], 0.4))
    line = make_plane(domain, (0, 1), (8, 8)).outline
    ahead = np.roll(line, -1, axis=0)
    area = np.sum(line[:, 0] * ahead[:, 1] - line[:, 1] * ahead[:, 0]) / 2
    assert area == pytest.approx(domain.volume, rel=1e-4)


FILE = """
schema = 2
kind = "linear"
[domain]
{domain}
[equation]
A = [[1, 0], [0, 1]]
f = 1
"""
PARTS = 'of = [{type = "box", lower = [-1, -1], upper = [1, 1]}, {type = "ball", center = [0, 0], '
PARTS += "radius = 0.5}]"


@pytest.mark.parametrize(
    ("domain", "area"),
    [
        (f'type = "difference"\n{PARTS}', 4 - np.pi / 4),
        (
            'type = "polygon"\nvertices = [[0, 0], [4, 0], [4, 4], [0, 4]]\n'
            "holes = [[[1, 1], [2, 1], [1, 2]]]",
            15.5,
        ),
        ('type = "polygon"\nvertices = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]', 3.0),
    ],
)
def test_files_have_them(domain, area):
    problem = problem_from_toml(FILE.format(domain=domain), "plate")
    assert problem.domain.volume == pytest.approx(area, rel=1e-13)


@pytest.mark.parametrize(
    "domain",
    [
        'type = "difference"',
        'type = "difference"\nof = 3',
        'type = "difference"\nof = [1, 2]',
        'type = "polygon"\nvertices = [[0, 0], [4, 0], [4, 4]]\nholes = 3',
    ],
)
def test_files_with_other_parts_are_refused(domain):
    with pytest.raises(FileError, match="domain"):
        problem_from_toml(FILE.format(domain=domain), "plate")


def ring(count, radius=1.0, center=(0.0, 0.0), depth=0.5):
    """A star with so many vertices."""
    angle = 2 * np.pi * np.arange(count) / count
    size = radius * (1 - depth * (np.arange(count) % 2))
    return np.array(center) + size[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_boundaries_with_too_many_sides_are_refused_at_once():
    """Pairs of sides are looked at: a thousand would take minutes and gigabytes."""
    domains = [
        lambda: cordes.Polygon(ring(1000)),
        lambda: cordes.Polygon(ring(4, 9.0, depth=0), holes=[ring(200, depth=0)]),
        lambda: cordes.Polygon(ring(500, depth=0)) - cordes.Ball([1, 0], 0.5),
    ]
    for make in domains:
        with pytest.raises(DomainError, match="sides"):
            make()
    assert cordes.Polygon(ring(40)).volume == pytest.approx(20 * np.sin(np.pi / 20) * 0.5)


def test_only_boxes_that_are_apart_are_left_out():
    """Whatever arcs come near each other, their boxes do."""
    generator = np.random.default_rng(7)
    ellipses = [
        arc
        for _ in range(12)
        for arc in full_ellipse(generator.uniform(-1, 1, 2), generator.uniform(-0.5, 0.5, (2, 2)))
    ]
    arcs = [*ellipses, *(part for arc in ellipses for part in arc.cut([0.2, 0.7]))]
    arcs += [segment(*generator.uniform(-1, 1, (2, 2))) for _ in range(12)]
    boxes = boxes_of(arcs)
    points = np.stack([arc.at(np.linspace(0, 1, 300)) for arc in arcs])
    assert np.all((boxes[:, None, 0] <= points + 1e-12) & (points <= boxes[:, None, 1] + 1e-12))
    found = near_boxes(boxes, boxes, 0.01)
    for one, row in zip(points, found, strict=True):
        apart = points[~row][:, None, ::10] - one[::10, None]
        assert np.min(np.max(np.abs(apart), axis=-1), initial=1.0) > 0.01
    assert 0.05 < np.mean(found) < 0.8


def test_a_chain_of_balls_takes_no_minutes():
    """All pairs of sides were looked at for every part, far ones too: 36 seconds for 50 balls."""
    balls = [cordes.Ball([k, 0.0], 0.6) for k in range(25)]
    start = time.process_time()
    chain = region(functools.reduce(operator.or_, balls))
    assert time.process_time() - start < 4
    half = np.arccos(0.5 / 0.6)
    lens = 2 * (0.36 * half - 0.5 * np.sqrt(0.36 - 0.25))
    assert chain.volume == pytest.approx(25 * np.pi * 0.36 - 24 * lens, rel=1e-12)
    assert len(chain.arcs) == 50
