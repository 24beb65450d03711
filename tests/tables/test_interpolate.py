"""Arrays as functions of one point, against SciPy's splines, and as data of problems."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator, make_interp_spline

import cordes
from cordes.certificates import linear
from cordes.domains import Ball, Box
from cordes.errors import CoefficientError, CordesError
from cordes.formulas.intervals import enclose
from cordes.formulas.lookups.lines import grid_lines
from cordes.formulas.rectangles.program import Neighbourhoods, RectangleProgram
from cordes.formulas.regularity import jump, kink
from cordes.problems.written.toml_file import problem_from_toml
from cordes.tables.interpolate import PIECES

SQUARE, STRIP = Box([0, 0], [1, 1]), Box([-1, 0.5], [2, 1])


def at(function, points):
    return jax.jit(jax.vmap(function))(jnp.asarray(points))


def spline(values, domain, derivatives=None):
    """SciPy's spline along one axis after the other."""
    lower, upper = domain.bounding_box
    knots = [np.linspace(*ends) for ends in zip(lower, upper, values.shape, strict=False)]
    derivatives = derivatives or [0] * len(knots)

    def at(x):
        table = values
        for t, nodes, order in zip(x, knots, derivatives, strict=True):
            table = make_interp_spline(nodes, table, k=3, axis=0)(t, order)
        return table

    return at


@pytest.mark.parametrize("shape", [(7,), (13, 9), (5, 4, 6), (4, 5, 2, 2)])
def test_the_cubic_spline_is_that_of_scipy(shape):
    d = min(len(shape), 3) if len(shape) != 4 else 2
    draw, domain = np.random.default_rng(2), Box([-1, 0.5, 0][:d], [2, 1, 4][:d])
    values = draw.standard_normal(shape)
    function, wanted = cordes.interpolate(values, domain), spline(values, domain)
    points = domain.interior_points(20, seed=4)
    found = at(function, points)
    np.testing.assert_allclose(found, [wanted(x) for x in points], atol=1e-12)
    if shape == (13, 9):
        mixed = spline(values, domain, [1, 1])
        found = at(jax.hessian(function), points)[:, 0, 1]
        np.testing.assert_allclose(found, [mixed(x) for x in points], atol=1e-9)


def test_linear_tables():
    values = np.random.default_rng(3).standard_normal((6, 5))
    knots = np.linspace(-1, 2, 6), np.linspace(0.5, 1, 5)
    points = STRIP.interior_points(50, seed=4)
    found = at(cordes.interpolate(values, STRIP, order=1), points)
    np.testing.assert_allclose(found, RegularGridInterpolator(knots, values)(points), atol=1e-13)


@pytest.mark.parametrize(("order", "rate"), [(1, 2.0), (3, 4.0)])
def test_order_of_convergence(order, rate):
    def wave(x):
        return np.sin(9 * x[..., 0] + 1) * np.exp(x[..., 1])

    errors, points = [], SQUARE.interior_points(300, seed=7)
    for n in (17, 33):
        grid = np.stack(np.meshgrid(*[np.linspace(0, 1, n)] * 2, indexing="ij"), axis=-1)
        found = at(cordes.interpolate(wave(grid), SQUARE, order), points)
        errors.append(np.sqrt(np.mean((found - wave(points)) ** 2)))
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(rates > rate - 0.35)


def test_few_nodes_reproduce_polynomials():
    line, t = Box([0], [2]), jnp.linspace(0, 2, 11)[:, None]
    for n in (2, 3, 4, 5):
        degree = min(n - 1, 3)
        function = cordes.interpolate(np.linspace(0, 2, n) ** degree, line)
        np.testing.assert_allclose(at(function, t), t[:, 0] ** degree, atol=1e-13)


def test_images_outside_points_and_values():
    picture = np.arange(12.0).reshape(3, 4)
    function = cordes.interpolate(picture, SQUARE, order=1, image=True)
    # The first row is at the top, the first column on the left.
    assert float(function(jnp.array([0.0, 1.0]))) == picture[0, 0]
    assert float(function(jnp.array([1.0, 0.0]))) == picture[2, 3]
    assert float(function(jnp.array([9.0, 1.5]))) == picture[0, 3]
    picture[:] = 7.0
    assert float(function(jnp.array([0.0, 1.0]))) == 0.0


def test_enclosures_of_tables():
    draw = np.random.default_rng(5)
    values = draw.standard_normal((9, 12))
    for order in PIECES:
        function = cordes.interpolate(values, SQUARE, order)
        both = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(function))))
        enclosure = enclose(jax.value_and_grad(function))
        for size in (1.0, 0.2, 0.02, 1e-5):
            lower = draw.random((30, 2)) * (1 - size)
            x = lower[:, None] + size * draw.random((30, 40, 2))
            wanted = both(jnp.asarray(x))
            pieces = enclosure(lower, np.minimum(lower + size, 1.0))
            assert len(pieces) == 1
            for interval, value in zip(pieces[0], wanted, strict=True):
                slack = 1e-11 * (1 + np.abs(value))
                assert np.all(interval.lower[:, None] <= value + slack)
                assert np.all(value - slack <= interval.upper[:, None])


def test_a_cell_of_the_grid_has_the_values_at_its_corners_as_bounds():
    values = np.random.default_rng(6).standard_normal((8, 6))
    function = cordes.interpolate(values, SQUARE, order=1)
    first, second = (np.linspace(0, 1, n) for n in values.shape)
    lower, upper = np.array([[first[2], second[4]]]), np.array([[first[3], second[5]]])
    (found,) = enclose(function)(lower, upper)
    corners = values[2:4, 4:6]
    np.testing.assert_allclose(
        [found.lower[0], found.upper[0]], [corners.min(), corners.max()], rtol=1e-13
    )
    # Four cells: between the least and the largest of nine values.
    (found,) = enclose(function)(lower - np.array([[0.0, 0.2]]), upper + np.array([[1 / 7, 0.0]]))
    corners = values[2:5, 3:6]
    assert found.upper[0] <= corners.max() + 1e-12
    assert found.lower[0] >= corners.min() - 1e-12


def test_a_piece_continues_to_complex_numbers():
    function = cordes.interpolate(np.random.default_rng(7).random((5, 9)), SQUARE)
    lower, upper = np.array([[0.25, 0.125]]), np.array([[0.5, 0.25]])
    program = RectangleProgram(function, 2)
    rho = np.array([4.0])
    assert np.all(np.isfinite(program.run(Neighbourhoods(lower, upper, rho)).complex[0].above))
    crossed = program.run(Neighbourhoods(lower, upper + np.array([[1e-9, 0.0]]), rho)).complex[0]
    # Along the axis whose piece is decided as well, the other coordinate is known as an interval.
    assert np.isinf(crossed.above[0])


def test_smoothness_is_known():
    values = np.random.default_rng(8).random((5, 5))
    smooth, rough = (cordes.interpolate(values, SQUARE, order) for order in (3, 1))
    assert kink(smooth, SQUARE) is None
    assert "grid lines" in kink(rough, SQUARE)
    assert jump(rough, SQUARE) is None
    assert jump(lambda x: smooth(jnp.sign(x - 0.5)), SQUARE) is not None
    # Beyond the box of the table it is constant, with a kink on its sides.
    assert kink(smooth, Box([0, 0], [1, 2])) is not None


def test_grid_lines_are_found():
    table = cordes.interpolate(np.zeros((5, 3)), SQUARE)
    lines = grid_lines([lambda x: jnp.exp(2 * table(x))], np.zeros(2), np.ones(2))
    np.testing.assert_array_equal(lines[0], [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(lines[1], [0.5])
    # Where a floor changes there is one on each side, so that neither cell contains the change.
    (lines,) = grid_lines([lambda x: jnp.floor(3 - 7 * x[0])], np.array([0.01]), np.array([0.99]))
    assert len(lines) == 12
    cells = np.stack([lines[1:-1:2], lines[2::2]], axis=1)
    (found,) = enclose(lambda x: jnp.floor(3 - 7 * x[0]))(cells[:, :1], cells[:, 1:])
    np.testing.assert_array_equal(found.lower, found.upper)
    assert grid_lines([lambda x: x[0]], np.zeros(1), np.ones(1))[0].size == 0


def test_problems_with_tables():
    values = 1 + np.random.default_rng(9).random((6, 7))
    matrices = np.eye(2) * values[..., None, None]
    drift = np.stack([values, -values], axis=-1)
    problem = cordes.Linear(
        SQUARE,
        cordes.interpolate(matrices, SQUARE),
        cordes.interpolate(values, SQUARE, order=1),
        b=cordes.interpolate(drift, SQUARE),
    )
    again = pickle.loads(pickle.dumps(problem))
    point = np.array([[0.3, 0.4]])
    for one, other in zip(problem.coefficients(point), again.coefficients(point), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_mass_of_a_table_is_exact():
    values = 1 + np.random.default_rng(10).random((64, 33))
    weights = [np.r_[0.5, np.ones(n - 2), 0.5] / (n - 1) for n in values.shape]
    trapezoids = weights[0] @ values @ weights[1]
    table = cordes.interpolate(values, SQUARE, order=1)
    masses = cordes.Transport(SQUARE, lambda x: 2 * table(x)).masses
    np.testing.assert_allclose(masses, 2 * trapezoids, rtol=1e-13)


def test_arrays_in_the_place_of_functions_are_answered():
    picture = np.ones((64, 64))
    for make in (
        lambda: cordes.Transport(SQUARE, picture),
        lambda: cordes.Linear(SQUARE, np.eye(2), picture),
        lambda: cordes.Linear(SQUARE, np.eye(2), lambda x: jnp.asarray(picture)),
    ):
        with pytest.raises(CoefficientError, match=r"64, 64.*cordes\.interpolate\(values, domain"):
            make()


REFUSED = {
    "too few axes": (np.ones(3), {}, r"shape \(3,\), but a table over 2 dimensions"),
    "one node": (np.ones((1, 3)), {}, "at least two nodes"),
    "holes": ([[1.0, np.nan], [0.0, 0.0]], {}, r"values\[0, 1\] = nan is not finite \(1 of 4"),
    "no numbers": ([["a"]], {}, "rectangular array of real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], {}, "rectangular array of real numbers"),
    "order": (np.ones((3, 3)), {"order": 2}, "order = 2: 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    values, options, message = REFUSED[name]
    with pytest.raises(CoefficientError, match=message):
        cordes.interpolate(values, SQUARE, **options)


def test_other_refusals():
    with pytest.raises(CoefficientError, match="4 dimensions"):
        cordes.interpolate(np.ones((2, 2, 2, 2)), Box([0] * 4, [1] * 4))
    with pytest.raises(CoefficientError, match="takes the domain"):
        cordes.interpolate(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(CoefficientError, match="two dimensions"):
        cordes.interpolate(np.ones(4), Box([0], [1]), image=True)
    with pytest.raises(CoefficientError, match=r"x has shape \(3, 2\)"):
        cordes.interpolate(np.ones((2, 2)), Ball([0, 0], 1))(jnp.ones((3, 2)))


@pytest.mark.long
def test_a_source_term_from_a_table():
    """-Δu of sin πx sin πy as a table: the answer is as good as the table."""
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 65)] * 2, indexing="ij"))
    wave = np.prod(np.sin(np.pi * grid), axis=0)
    problem = cordes.Linear(
        SQUARE,
        np.eye(2),
        cordes.interpolate(-2 * np.pi**2 * wave, SQUARE),
        exact=lambda x: jnp.prod(jnp.sin(jnp.pi * x)),
    )
    solution = cordes.solve(problem)
    points = SQUARE.interior_points(500, seed=3)
    wanted = np.prod(np.sin(np.pi * points), axis=1)
    assert np.max(np.abs(solution(points) - wanted)) < 1e-6


@pytest.mark.parametrize(("level", "surplus"), [("quadrature", 1e-6), ("enclosed", 1e-2)])
def test_the_norm_of_a_linear_table_is_exact(level, surplus, monkeypatch):
    """Δu = f, a table of noise, and the answer 0: ‖D²(u - 0)‖ ≤ ‖f‖, which is a quadratic form of
    the values. Cells end at the grid lines, which nobody declared; where norms are enclosed, one
    per cent may stay unproved."""
    if level == "quadrature":
        monkeypatch.setattr(linear, "_enclosed", lambda *_: None)
    n = 24
    values = np.random.default_rng(11).standard_normal((n, n))
    hats = np.diag(np.r_[2, 4 * np.ones(n - 2), 2]) + np.eye(n, k=1) + np.eye(n, k=-1)
    norm = np.sqrt(np.sum(hats * (values @ hats @ values.T))) / (6 * (n - 1))
    problem = cordes.Linear(SQUARE, np.eye(2), cordes.interpolate(values, SQUARE, order=1))
    certificate = cordes.certify(problem, lambda x: 0.0 * x[0])
    assert certificate.level == level
    assert norm * (1 - 1e-12) <= certificate.H2 <= norm * (1 + surplus)


FILE = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[definitions]
k = {values = [[1, 2, 3], [2, 3, 5]], order = 1}
[equation]
A = "1 + k"
f = "2*k"
"""


def test_tables_in_files():
    problem = problem_from_toml(FILE)
    A, _, _, f = problem.coefficients(np.array([[1.0, 1.0], [0.5, 0.25]]))
    np.testing.assert_allclose(f, 2 * np.array([5.0, 2.0]))
    np.testing.assert_allclose(A[0], 6 * np.eye(2))
    for wrong, message in (
        ("k = {values = [1, 2]}", r"definitions\.k: values has shape \(2,\)"),
        ("k = {value = [1, 2]}", "no key 'value'|value"),
        ("k = {values = [[[1], [2]], [[1], [2]]]}", r"has shape \(.*1,?\), but shape"),
        ('k = {values = [["x1", 2], [1, 2]]}', "real numbers"),
    ):
        with pytest.raises(CordesError, match=message):
            problem_from_toml(
                FILE.replace("k = {values = [[1, 2, 3], [2, 3, 5]], order = 1}", wrong)
            )
