"""Singular points are found where they are and nowhere else; their exponents and functions are
those of the theory."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import sqrtm

import cordes
from cordes.ansatz.singular import SingularFunctions, SingularPoint, find_singular_points
from cordes.ansatz.singular.exponents import angular_jet, eigenfunctions
from cordes.solvers.rows.system import System

QUARTER = np.pi / 2
PENTAGON = cordes.Polygon([[1, 0], [0.4, 0.9], [-0.7, 0.7], [-0.9, -0.5], [0.3, -1]])


def corner(matrix, start=0.0, width=QUARTER):
    return SingularPoint(
        np.zeros(2), np.array([start, start + width]), np.array([matrix], dtype=float), True
    )


def checker(s):
    return np.array([[2.0, s], [s, 2.0]])


def crossing(*signs):
    return SingularPoint(
        np.zeros(2), np.arange(5) * QUARTER, np.array([checker(s) for s in signs]), False
    )


def random_spd(generator):
    factor = generator.standard_normal((2, 2))
    return factor @ factor.T + 0.3 * np.eye(2)


def exponents(point, largest=5.0):
    return np.array([function.exponent for function in eigenfunctions(point, largest)])


# Exponents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "expected"), [(np.eye(2), [2, 4]), (checker(1), [1.5, 3, 4.5]), (checker(-1), [3])]
)
def test_exponents_of_right_angles(matrix, expected):
    np.testing.assert_allclose(exponents(corner(matrix)), expected, atol=1e-10)


def test_exponents_of_right_angles_follow_the_formula():
    generator = np.random.default_rng(1)
    for _ in range(15):
        A = random_spd(generator)
        omega = np.arccos(-A[0, 1] / np.sqrt(A[0, 0] * A[1, 1]))
        multiples = np.arange(1, 12) * np.pi / omega
        np.testing.assert_allclose(exponents(corner(A)), multiples[multiples <= 5], atol=1e-8)


def test_exponents_of_all_angles_are_those_of_the_transformed_angle():
    """x ↦ A^(-1/2) x turns A:D² into the Laplacian, whose exponents are kπ/ω."""
    generator = np.random.default_rng(2)
    for _ in range(30):
        A, start, width = (
            random_spd(generator),
            generator.uniform(0, 6),
            generator.uniform(0.5, 3.0),
        )
        transform = np.linalg.inv(np.real(sqrtm(A)))
        first, last = (transform @ [np.cos(a), np.sin(a)] for a in (start, start + width))
        omega = np.arctan2(first[0] * last[1] - first[1] * last[0], first @ last)
        multiples = np.arange(1, 20) * np.pi / omega
        expected = multiples[(multiples <= 5) & (multiples > 1.02)]
        np.testing.assert_allclose(exponents(corner(A, start, width)), expected, atol=1e-8)


def test_exponents_of_the_crossing():
    found = exponents(crossing(1, -1, 1, -1))
    for expected in (1.5, 2.5, 3.5):
        assert np.min(np.abs(found - expected)) < 1e-8


def test_a_crossing_without_a_jump_has_polynomials_only():
    found = exponents(crossing(1, 1, 1, 1))
    np.testing.assert_allclose(found.imag, 0, atol=1e-8)
    np.testing.assert_allclose(found.real, np.repeat([2, 3, 4, 5], 2), atol=1e-5)


def rough_points():
    generator = np.random.default_rng(3)
    edge = SingularPoint(
        np.zeros(2),
        np.array([0.2, 1.3, 0.2 + np.pi]),
        np.array([checker(1.7), checker(-0.5)]),
        True,
    )
    wild = SingularPoint(
        np.zeros(2),
        np.append(np.sort(generator.uniform(0, 6, 4)), 0.0),
        np.array([random_spd(generator) for _ in range(4)]),
        False,
    )
    wild.rays[-1] = wild.rays[0] + 2 * np.pi
    return {
        "corner": corner(checker(1)),
        "crossing": crossing(1, -1, 1, -1),
        "edge": edge,
        "wild": wild,
    }


@pytest.mark.parametrize("name", ["corner", "crossing", "edge", "wild"])
def test_eigenfunctions_solve_the_frozen_equation_and_fit_across_rays(name):
    point = rough_points()[name]
    functions = eigenfunctions(point, 4.0)
    assert functions
    for function in functions:
        beta = function.exponent
        for sector, (low, high) in enumerate(zip(point.rays[:-1], point.rays[1:], strict=True)):
            angles = np.linspace(low, high, 11)
            where = np.full(11, sector)
            value, first, second = (part[:, 0] for part in angular_jet(function, angles, where))
            step = 1e-5
            ahead, behind = (angular_jet(function, angles + k * step, where) for k in (1, -1))
            np.testing.assert_allclose((ahead[0] - behind[0])[:, 0] / (2 * step), first, atol=1e-7)
            np.testing.assert_allclose((ahead[1] - behind[1])[:, 0] / (2 * step), second, atol=1e-6)
            radial, tangent = (
                np.stack([np.cos(angles), np.sin(angles)]),
                np.stack([-np.sin(angles), np.cos(angles)]),
            )
            rr, rt, tt = (
                np.einsum("in,ij,jn->n", a, point.matrices[sector], b)
                for a, b in ((radial, radial), (radial, tangent), (tangent, tangent))
            )
            equation = (
                rr * beta * (beta - 1) * value
                + 2 * rt * (beta - 1) * first
                + tt * (second + beta * value)
            )
            np.testing.assert_allclose(equation, 0, atol=1e-8 * np.max(np.abs(second)))
        fits(point, function)


def fits(point, function):
    """Value and slope have no jump across a ray; an edge is zero."""

    def at(angle, sector):
        return [part[0, 0] for part in angular_jet(function, np.array([angle]), np.array([sector]))]

    size = np.max(np.abs(at((point.rays[0] + point.rays[1]) / 2, 0)[:2])) + 1
    for sector in range(1, point.sectors):
        before, after = at(point.rays[sector], sector - 1), at(point.rays[sector], sector)
        np.testing.assert_allclose(before[:2], after[:2], atol=1e-7 * size)
    first, last = at(point.rays[0], 0), at(point.rays[-1], point.sectors - 1)
    if point.on_boundary:
        np.testing.assert_allclose([first[0], last[0]], 0, atol=1e-7 * size)
    else:
        np.testing.assert_allclose(at(point.rays[0], 0)[:2], last[:2], atol=1e-7 * size)


# Singular functions -------------------------------------------------------------------------------


def problem_on(domain, A=None, f=1.0, **data):
    return cordes.Linear(domain, checker(1) if A is None else A, f, **data)


@pytest.mark.parametrize("name", ["ex4.4-discontinuous", "ex4.4-continuous", "pentagon"])
def test_singular_functions_vanish_on_the_whole_boundary(name):
    problem = problem_on(PENTAGON) if name == "pentagon" else cordes.gallery[name]
    functions = System(problem).ansatz.singular
    points, _ = problem.domain.boundary_points(300, seed=4)
    points = np.concatenate([points, problem.domain.vertices])
    inside = np.max(np.abs(functions.values(problem.domain.interior_points(300, seed=5))), axis=0)
    assert np.all(inside > 1e-6)
    assert np.max(np.abs(functions.values(points))) < 1e-12


def test_singular_functions_are_finite_at_their_own_points():
    problem = cordes.gallery["ex4.4-discontinuous"]
    functions = System(problem).ansatz.singular
    at = np.array([point.location for point in System(problem).singular_points])
    assert np.all(np.isfinite(functions.values(at)))


def test_no_points_no_functions():
    functions = SingularFunctions(cordes.Ball([0, 0], 1))
    assert functions.count == 0
    assert functions.values(np.zeros((3, 2))).shape == (3, 0)


# Where --------------------------------------------------------------------------------------------


def locations(problem):
    return np.array([point.location for point in System(problem).singular_points]).reshape(-1, 2)


def same(found, expected, tolerance=1e-9):
    expected = np.array(expected, dtype=float)
    assert len(found) == len(expected)
    gaps = np.linalg.norm(found[:, None] - expected[None], axis=2)
    assert np.max(np.min(gaps, axis=0)) <= tolerance
    assert np.max(np.min(gaps, axis=1)) <= tolerance


CORNERS = [[-1, -1], [1, -1], [1, 1], [-1, 1]]


def test_discontinuous_example_has_corners_meets_and_a_crossing():
    same(
        locations(cordes.gallery["ex4.4-discontinuous"]),
        [*CORNERS, [0, -1], [1, 0], [0, 1], [-1, 0], [0, 0]],
    )
    points = System(cordes.gallery["ex4.4-discontinuous"]).singular_points
    assert sorted((point.sectors, point.on_boundary) for point in points) == [(1, True)] * 4 + [
        (2, True)
    ] * 4 + [(4, False)]


def test_continuous_example_has_corners_and_the_tip_of_a_cone():
    same(
        locations(cordes.gallery["ex4.4-continuous"]),
        [*(np.array(CORNERS) / 2), [0, 0]],
        tolerance=1e-6,
    )


def test_a_cone_away_from_the_centre_is_found():
    tip = np.array([0.31, -0.27])
    problem = problem_on(
        cordes.Ball([0, 0], 1), A=lambda x: (2 + jnp.linalg.norm(x - tip)) * jnp.eye(2)
    )
    same(locations(problem), [tip], tolerance=1e-6)


def test_a_kink_along_a_line_is_no_cone():
    assert (
        len(
            locations(
                problem_on(
                    cordes.Ball([0, 0], 1), A=lambda x: (2 + jnp.abs(x[0] - 0.2)) * jnp.eye(2)
                )
            )
        )
        == 0
    )


def test_singular_points_of_a_disk():
    """The crossing, and the points where the interfaces meet the circle."""
    disk = cordes.Ball([0, 0], 1)
    assert len(locations(problem_on(disk))) == 0

    def A(x):
        s = jnp.sign(x[0] - 0.2) * jnp.sign(x[1] + 0.1)
        return jnp.array([[2.0, s], [s, 2.0]])

    across, along = np.sqrt(1 - 0.2**2), np.sqrt(1 - 0.1**2)
    expected = [[0.2, -0.1], [0.2, -across], [0.2, across], [-along, -0.1], [along, -0.1]]
    same(
        locations(problem_on(disk, A, interfaces=[lambda x: x[0] - 0.2, lambda x: x[1] + 0.1])),
        expected,
    )


@pytest.mark.parametrize("radius", [0.5, 1.2])
def test_curved_interfaces_are_left_alone(radius):
    """Inside the box, or through its edges."""

    def phi(x):
        return x[0] ** 2 + x[1] ** 2 - radius**2

    same(
        locations(
            problem_on(
                cordes.Box([-1, -1], [1, 1]),
                lambda x: jnp.where(phi(x) > 0, 2.0, 1.0) * jnp.eye(2),
                interfaces=[phi],
            )
        ),
        CORNERS,
    )


def test_an_interface_where_nothing_jumps_adds_no_points():
    same(locations(cordes.gallery["ex4.1-smooth"]), 2 * np.array(CORNERS))
    interfaces = [lambda x: x[0], lambda x: x[1]]
    same(locations(problem_on(cordes.Box([-1, -1], [1, 1]), interfaces=interfaces)), CORNERS)


def test_an_interface_into_a_corner_divides_it():
    def A(x):
        return jnp.where(x[0] > x[1], 2.0, 1.0) * jnp.eye(2) + jnp.diag(jnp.array([0.5, 0.0]))

    points = System(
        problem_on(cordes.Box([-1, -1], [1, 1]), A, interfaces=[lambda x: x[0] - x[1]])
    ).singular_points
    divided = {tuple(point.location): point.sectors for point in points}
    assert divided == {(-1.0, -1.0): 2, (1.0, -1.0): 1, (1.0, 1.0): 2, (-1.0, 1.0): 1}


def test_corners_of_a_polygon():
    same(locations(problem_on(PENTAGON)), PENTAGON.vertices)


def test_other_dimensions_have_no_singular_points():
    assert find_singular_points(cordes.Box([0] * 3, [1] * 3), (), lambda x: None) == []
