"""Domains from GeoJSON and from paths of SVG: areas done by hand, and what is refused."""

import numpy as np
import pytest

import cordes
from cordes.errors import DomainError

from_geojson, from_svg = cordes.Polygon.from_geojson, cordes.Polygon.from_svg
SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
HOLE = [[1, 1, 7.0], [1, 2, 7.0], [2, 1, 7.0], [1, 1, 7.0]]
POLYGON = {"type": "Polygon", "coordinates": [SQUARE, HOLE]}


@pytest.mark.parametrize(
    "given",
    [
        POLYGON,
        {"type": "Feature", "properties": {}, "geometry": POLYGON},
        {"type": "MultiPolygon", "coordinates": [POLYGON["coordinates"]]},
        [SQUARE[:-1], HOLE],
    ],
)
def test_geojson(given):
    domain = from_geojson(given)
    assert domain.volume == pytest.approx(15.5, rel=1e-14)
    assert domain.pieces[-1] == "hole 1"


def test_geojson_that_is_convex_stays_a_polygon():
    domain = from_geojson([SQUARE])
    assert domain.convex
    assert len(domain.vertices) == 4


CIRCLE = "M 1 0 A 1 1 0 0 1 -1 0 A 1 1 0 0 1 1 0 Z"


@pytest.mark.parametrize(
    ("path", "area"),
    [
        ("M0,0 L4,0 4,4 0,4 Z", 16.0),
        ("m0 0h4v4h-4z", 16.0),
        ("M0,0H2V1H1V2H0Z", 3.0),
        ("M0,0H4V4H0Z M1,1 L1,2 2,1 Z", 15.5),
        (CIRCLE, np.pi),
        # An arc of three quarters of a circle and its chord, the other way round.
        ("M1 0A1 1 0 1 0 0 -1z", 0.75 * np.pi + 0.5),
        ("M1 0A1 1 0 0 1 0 1z", 0.25 * np.pi - 0.5),
        # A slanted ellipse; a path in relative coordinates with a round hole; radii too small.
        ("M2,0 A2,1 30 0 1 -2,0 A2,1 30 0 1 2,0 Z", None),
        ("m-3-3h6v6h-6z m2 3 a1 1 0 1 1 2 0 a1 1 0 1 1 -2 0", 36 - np.pi),
        ("M0 0 A.1 .1 0 0 1 2 0 Z", np.pi / 2),
    ],
)
def test_paths_of_svg(path, area):
    domain = from_svg(path)
    points, weights = domain.quadrature(24)
    assert np.all(domain.contains(points))
    assert np.sum(weights) == pytest.approx(domain.volume, rel=1e-9)
    if area is not None:
        assert domain.volume == pytest.approx(area, rel=1e-13)


def test_an_arc_lies_on_its_ellipse():
    """Radii 3 and 1, slanted by 30°: the points fulfil the equation of the ellipse around the
    center that is found for both ends."""
    domain = from_svg("M2,0 A3,1 30 0 1 -2,-1 L -1,-3 Z")
    (arc,) = (each for each in domain.arcs if not each.straight)
    points = arc.at(np.linspace(0, 1, 7))
    turn = np.radians(30)
    frame = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    local = (points - arc.a) @ frame.T / [3, 1]
    assert np.allclose(np.linalg.norm(local, axis=1), 1, atol=1e-12)
    assert {tuple(points[0]), tuple(points[-1])} == {(2.0, 0.0), (-2.0, -1.0)}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: from_geojson({"type": "Point", "coordinates": [0, 0]}), "'Point'"),
        (lambda: from_geojson([[0, 1], [2]]), "lists of"),
        (lambda: from_geojson([]), "no outline"),
        (lambda: from_svg("M0 0 C 1 1 2 2 3 0 Z"), "Bézier"),
        (lambda: from_svg("M0 0 L 1"), "too few"),
        (lambda: from_svg("0 0 L 1 1"), "in it"),
        (lambda: from_svg("M0 0 L 1 % 1"), "'%'"),
        (lambda: from_svg(""), "draws nothing"),
        (lambda: from_svg("M0,0 L2,2 L2,0 L0,1.5 Z"), "cross"),
    ],
)
def test_refused(make, words):
    with pytest.raises(DomainError, match=words):
        make()
