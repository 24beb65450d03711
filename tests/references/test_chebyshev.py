"""The Chebyshev solver against closed forms, series and itself."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordes.domains import Ball, Box
from cordes.errors import DomainError, OptionError
from cordes.gallery import gallery
from cordes.jet import contract, jet_of
from cordes.problems.linear import Linear
from cordes.references.chebyshev import solve_chebyshev
from cordes.references.chebyshev_grid import find_breaks, graded_lines

UNIT = Box([0, 0], [1, 1])


def tensor_points(lower, upper, count=37):
    axes = [np.linspace(low, high, count) for low, high in zip(lower, upper, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def exact_values(exact, points):
    return np.asarray(jax.vmap(exact)(jnp.asarray(points.reshape(-1, 2)))).reshape(
        points.shape[:-1]
    )


def manufactured(domain, A, b, c, exact, interfaces=()):
    def f(x):
        value, gradient, hessian = jet_of(exact)(x)
        return contract(A(x), hessian) + jnp.dot(b(x), gradient) - c(x) * value

    return Linear(domain, A, f, b=b, c=c, g=exact, interfaces=interfaces, exact=exact)


@functools.cache
def smooth_problem():
    """Every coefficient varies, none is symmetric, the box is not square and g is not zero."""
    return manufactured(
        Box([-0.5, 0.25], [1, 1.25]),
        lambda x: jnp.array(
            [
                [2 + x[0] * x[1], 0.3 + 0.4 * jnp.sin(x[1])],
                [0.3 + 0.4 * jnp.sin(x[1]), 1 + x[0] ** 2],
            ]
        ),
        lambda x: jnp.array([jnp.cos(x[1]), x[0] - 2 * x[1]]),
        lambda x: 1 + x[0] ** 2,
        lambda x: jnp.exp(x[0]) * jnp.cos(3 * x[1] - x[0]) + x[0] * x[1],
    )


def checkerboard(x):
    s = jnp.sign(x[0] * x[1])
    return jnp.array([[2.0, s], [s, 2.0]])


@pytest.mark.parametrize(("degree", "layers"), [(20, 0), (14, 1), (14, 2)])
def test_smooth_solution_to_eleven_digits(degree, layers):
    problem = smooth_problem()
    points = tensor_points(*problem.domain.bounding_box)
    solution = solve_chebyshev(problem, degree, layers)
    assert solution(points).shape == points.shape[:-1]
    assert np.max(np.abs(solution(points) - exact_values(problem.exact, points))) < 1e-11
    assert solution.elements == (2 * layers + 1) ** 2
    assert solution.degree == degree
    assert 0 < solution.seconds < 60


def test_convergence_is_exponential_in_the_degree():
    problem = smooth_problem()
    points = tensor_points(*problem.domain.bounding_box)
    exact = exact_values(problem.exact, points)
    degrees = np.array([6, 8, 10, 12, 14])
    errors, estimates = [], []
    for degree in degrees:
        solution = solve_chebyshev(problem, int(degree), layers=0)
        errors.append(np.max(np.abs(solution(points) - exact)))
        estimates.append(solution.error_estimate)
    slope, offset = np.polyfit(degrees, np.log10(errors), 1)
    assert slope < -0.8
    # A straight line in this plot: algebraic convergence would flatten by far more.
    assert np.max(np.abs(slope * degrees + offset - np.log10(errors))) < 0.7
    assert np.all(np.array(estimates) > errors)


def poisson_on_unit_square(x, y):
    """u with Δu = 1 and u = 0 on the boundary, by separation of variables; good to rounding for y
    well inside."""
    n = np.arange(1, 400, 2)[:, None] * np.pi
    # cosh(n(y - 1/2))/cosh(n/2) written without overflow.
    ratio = (np.exp(-n * (1 - y)) + np.exp(-n * y)) / (1 + np.exp(-n))
    return -x * (1 - x) / 2 + np.sum(4 * np.sin(n * x) * ratio / n**3, axis=0)


def test_poisson_on_the_unit_square():
    solution = solve_chebyshev(Linear(UNIT, np.eye(2), 1.0), degree=14, layers=3)
    assert solution([0.5, 0.5]) == pytest.approx(-0.0736713533, abs=1e-9)
    x, y = np.meshgrid([1e-3, 0.02, 0.3, 0.5, 0.99], [0.05, 0.4, 0.5, 0.93])
    expected = poisson_on_unit_square(x.ravel(), y.ravel())
    assert np.max(np.abs(solution(np.stack([x.ravel(), y.ravel()], axis=-1)) - expected)) < 1e-9


@functools.cache
def discontinuous_problem():
    def exact(x):
        return (x[0] * jnp.exp(1 - jnp.abs(x[0])) - x[0]) * (
            x[1] * jnp.exp(1 - jnp.abs(x[1])) - x[1]
        )

    interfaces = [lambda x: x[0], lambda x: x[1]]
    return manufactured(
        Box([-1, -1], [1, 1]), checkerboard, lambda x: x, lambda x: 3.0, exact, interfaces
    )


@pytest.mark.parametrize(("degree", "layers"), [(14, 0), (12, 1)])
def test_discontinuous_matrix_with_known_solution(degree, layers):
    problem = discontinuous_problem()
    points = tensor_points([-1, -1], [1, 1], 41)
    solution = solve_chebyshev(problem, degree, layers)
    assert solution.elements == (4 * layers + 2) ** 2
    assert np.max(np.abs(solution(points) - exact_values(problem.exact, points))) < 1e-10


def test_singular_corner_converges_with_the_layers():
    """A corner function r^1.5 of a constant matrix, the exponent of ex4.4-discontinuous: each layer
    gains the factor ratio^1.5."""
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    # In the coordinates (x1 - x2/2, x2·√3/2) the operator is a multiple of Δ and the quarter plane
    # a sector of 120 degrees.
    transform = jnp.array([[1.0, -0.5], [0.0, np.sqrt(3) / 2]])

    def exact(x):
        y = transform @ x
        # Exactly zero on the two edges, not up to rounding.
        return jnp.where(
            jnp.min(x) > 0, jnp.sum(y**2) ** 0.75 * jnp.sin(1.5 * jnp.arctan2(y[1], y[0])), 0.0
        )

    problem = Linear(UNIT, A, 0.0, g=exact)
    near = 10.0 ** -np.linspace(0, 5, 31)
    points = np.stack(np.meshgrid(near, near, indexing="ij"), axis=-1)
    expected = exact_values(exact, points)
    layers = np.array([1, 2, 3])
    solutions = [solve_chebyshev(problem, 12, int(k)) for k in layers]
    errors = np.array([np.max(np.abs(solution(points) - expected)) for solution in solutions])
    # A layer less is several times worse, and the estimate shows it.
    assert np.all(np.array([solution.error_estimate for solution in solutions]) > 3 * errors)
    rate = np.polyfit(layers, np.log(errors) / np.log(0.2), 1)[0]
    assert rate == pytest.approx(1.5, abs=0.2)
    assert errors[-1] < 2e-7


# Values of degree 18 with five layers of ratio 0.3. Degree 18 or 20 with four layers of ratio 0.25
# or 0.3 agrees with them to 1e-11.
REFERENCE = {
    "ex4.4-continuous": (
        [(0, 0), (0.25, 0.25), (-0.25, 0.25), (0.125, 0.375), (0.495, -0.495)],
        [-0.054308043894, -0.030738849505, -0.032998964028, -0.022331183447, -0.000086928691],
    ),
    "ex4.4-discontinuous": (
        [(0, 0), (0.5, 0.5), (-0.5, 0.5), (0.25, 0.75), (0.99, 0.99)],
        [-0.229951724298, -0.154650201153, -0.154650201152, -0.110084489534, -0.000933699853],
    ),
}


@pytest.mark.parametrize(
    ("name", "tolerance", "extra"),
    [("ex4.4-continuous", 1e-8, [(0.0, 0.0)]), ("ex4.4-discontinuous", 1e-7, [])],
)
def test_examples_without_closed_form(name, tolerance, extra):
    solution = solve_chebyshev(gallery[name], extra_points=extra)
    points, values = REFERENCE[name]
    assert solution.error_estimate < tolerance
    assert solution.elements == 18**2
    # What the estimate claims is true of the finer solution.
    assert np.max(np.abs(solution(points) - values)) < min(solution.error_estimate, 1e-9)
    assert solution.seconds < 60


def test_the_estimate_sees_a_missing_extra_point():
    problem = gallery["ex4.4-continuous"]
    with_point = solve_chebyshev(problem, 12, 2, [(0.0, 0.0)]).error_estimate
    without = solve_chebyshev(problem, 12, 2).error_estimate
    assert without > 5 * with_point


def test_edges_belong_to_both_sides_and_the_boundary_to_g():
    problem = smooth_problem()
    solution = solve_chebyshev(problem, 10, 1)
    lower, upper = problem.domain.bounding_box
    lines = graded_lines(np.array([lower[0], upper[0]]), 1, 0.2)
    heights = np.linspace(lower[1], upper[1], 23)
    for line in lines[1:-1]:
        step = 1e-6
        left, here, right = (
            solution(np.stack([np.full(23, line + shift), heights], axis=-1))
            for shift in (-step, 0.0, step)
        )
        assert np.max(np.abs(left - here)) < 1e-4
        # The slope has no jump: a second difference is of order step², not of order step.
        assert np.max(np.abs(left + right - 2 * here)) < 1e-10
    edge = np.stack([np.full(23, upper[0]), heights], axis=-1)
    assert np.max(np.abs(solution(edge) - exact_values(problem.exact, edge))) < 1e-6


@pytest.mark.parametrize(
    ("interfaces", "expected"),
    [
        ([lambda x: x[0] - 0.3], ([0, 0.3, 1], [0, 1])),
        ([lambda x: (x[0] - 0.25) * (x[1] - 0.75)], ([0, 0.25, 1], [0, 0.75, 1])),
        ([lambda x: jnp.tanh(5 * (x[1] - 1 / 3)), lambda x: x[1] - 1 / 3], ([0, 1], [0, 1 / 3, 1])),
        ([lambda x: jnp.sin(3 * jnp.pi * x[0])], ([0, 1 / 3, 2 / 3, 1], [0, 1])),
        ([lambda x: x[0]], ([0, 1], [0, 1])),
    ],
)
def test_interfaces_parallel_to_the_axes_are_found(interfaces, expected):
    breaks = find_breaks(np.zeros(2), np.ones(2), interfaces, ())
    for found, wanted in zip(breaks, expected, strict=True):
        assert found == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.parametrize(
    "interface",
    [
        lambda x: x[0] - x[1],
        lambda x: jnp.sum((x - 0.5) ** 2) - 0.04,
        lambda x: x[0] - 0.5 - 1e-6 * x[1],
        lambda x: jnp.maximum(x[0], x[1]) - 0.5,
    ],
)
def test_other_interfaces_are_refused(interface):
    with pytest.raises(
        OptionError, match=r"interfaces\[0\] is not a set of lines parallel to the axes"
    ):
        find_breaks(np.zeros(2), np.ones(2), [interface], ())


def test_what_it_cannot_do_is_refused():
    with pytest.raises(OptionError, match="box in two dimensions"):
        solve_chebyshev(Linear(Ball([0, 0], 1), np.eye(2), 1.0))
    with pytest.raises(OptionError, match="box in two dimensions"):
        solve_chebyshev(Linear(Box([0, 0, 0], [1, 1, 1]), np.eye(3), 1.0))
    with pytest.raises(OptionError, match="parallel to the axes"):
        solve_chebyshev(Linear(UNIT, np.eye(2), 1.0, interfaces=[lambda x: x[0] - x[1]]))
    poisson = Linear(UNIT, np.eye(2), 1.0)
    with pytest.raises(OptionError, match="degree = 3"):
        solve_chebyshev(poisson, degree=3)
    with pytest.raises(OptionError, match=r"extra point \[2\.0, 0\.0\]"):
        solve_chebyshev(poisson, extra_points=[(2, 0)])
    with pytest.raises(OptionError, match=r"extra_points has shape \(2,\)"):
        solve_chebyshev(poisson, extra_points=(0.5, 0.5))
    solution = solve_chebyshev(poisson, 4, 0)
    with pytest.raises(DomainError, match=r"\[0\.5, 1\.1\] is outside"):
        solution([[0.5, 0.5], [0.5, 1.1]])
    with pytest.raises(DomainError, match="outside"):
        solution([np.nan, 0.5])
    with pytest.raises(OptionError, match="last axis"):
        solution(np.zeros(3))
