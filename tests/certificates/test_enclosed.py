"""Norms from which nothing can hide: against norms on fine grids around what is hidden, against
closed forms, and on the boundary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.enclosed import measure
from cordes.certificates.enclosed.measure import left_out
from cordes.certificates.enclosed.refinement import FEW, CellBudget
from cordes.certificates.enclosed.residual import enclosed_measure
from cordes.certificates.enclosed.supremum import largest_on_boundary
from cordes.certificates.enclosed.weights import UNIT, multiplier
from cordes.certificates.residual.candidate import AnswerCandidate, FunctionCandidate
from cordes.certificates.theorems.energy import TraceSplit
from cordes.domains.unit_cube import gauss_rule

SQUARE = cordes.Box([0, 0], [1, 1])
DISK = cordes.Ball([0, 0], 1.0)
CORNERS = [[0, 0], [2, 0], [3, 1], [0, 2]]
PLAIN = multiplier(TraceSplit(), np.eye(2))


def zero(x):
    return 0.0 * x[0]


def bump(place, width):
    def height(x):
        return jnp.maximum(1 - jnp.sum((x - jnp.asarray(place)) ** 2) / width**2, 0.0) ** 4

    return height


def norm_around(f, place, half, n=600):
    """‖f‖ over a square by the midpoint rule."""
    axes = [np.asarray(p) + half * ((2 * np.arange(n) + 1) / n - 1) for p in place]
    x = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    return float(np.sqrt(np.sum(np.asarray(jax.vmap(f)(x)) ** 2)) * 2 * half / n)


def enclosed(problem, answer, **limits):
    make = AnswerCandidate if isinstance(answer, cordes.Solution) else FunctionCandidate
    found = enclosed_measure(problem, make(problem, answer), [PLAIN], CellBudget(**limits))
    return found.norm_of(PLAIN)


@pytest.mark.parametrize("width", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("domain", [SQUARE, DISK, cordes.Polygon(CORNERS)])
def test_a_source_that_no_point_has_seen(domain, width):
    place = [0.3712, 0.2913]
    problem = cordes.Linear(domain, np.eye(2), bump(place, width))
    norm = enclosed(problem, zero)
    truth = norm_around(bump(place, width), place, width)
    assert norm.enclosed
    assert norm.lower * (1 - 1e-4) <= truth <= norm.upper * (1 + 1e-4)
    assert norm.upper <= 1.02 * truth


@pytest.mark.parametrize("radius", [0.2, 0.01])
def test_an_inclusion(radius):
    """A and f jump together: nothing is counted twice."""
    place = np.array([0.3713, 0.2127])

    def circle(x):
        return jnp.sum((x - place) ** 2) - radius**2

    def A(x):
        return jnp.where(circle(x) < 0, 3.0, 1.0) * jnp.eye(2)

    problem = cordes.Linear(DISK, A, -4.0, interfaces=[circle])
    norm = enclosed(problem, lambda x: 1 - jnp.dot(x, x))
    # A/3 : D²u + 4/3 = -8/3 in the inclusion.
    truth = 8 / 3 * radius * np.sqrt(np.pi)
    assert truth <= norm.upper <= 1.02 * truth
    assert norm.lower <= truth


def test_a_sum_of_sines_against_a_fine_rule():
    """Coefficients that cancel cost points, and nothing else."""
    problem = cordes.Linear(DISK, np.eye(2), lambda x: jnp.exp(x[0]))
    solution = cordes.solve(problem, certify=False, features=60)
    norm = enclosed(problem, solution)
    x, weight = DISK.quadrature(80)
    truth = float(np.sqrt(weight @ AnswerCandidate(problem, solution).evaluate(x).residual ** 2))
    assert truth * (1 - 1e-6) <= norm.upper <= 1.03 * truth


def test_cells_that_run_out_leave_a_bound_that_is_large_and_true():
    problem = cordes.Linear(SQUARE, np.eye(2), bump([0.3712, 0.2913], 1e-3))
    truth = norm_around(bump([0.3712, 0.2913], 1e-3), [0.3712, 0.2913], 1e-3)
    few, many = (enclosed(problem, zero, cells=count).upper for count in (4, 2000))
    assert few > 2 * many > 2 * truth


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("a", [1.05, 1.5, 4.0])
def test_what_gauss_rules_leave_out(n, a):
    """1/(a - y) on (-1, 1), whose ellipses end at a: a rule on a cell of volume 2."""
    y, weight = gauss_rule(n)
    y = np.ravel(y) * 2 - 1
    missed = abs(np.log((a + 1) / (a - 1)) - 2 * weight @ (1 / (a - y)))
    axis = (measure.RHO + 1 / measure.RHO) / 2
    bound = np.where(axis < a, 1 / np.maximum(a - axis, 1e-300), np.inf)
    proved = float(left_out(bound[None, None], np.array([[n]]), np.array([2.0]))[0])
    assert missed <= proved


def test_a_fault_in_the_remainder_is_noticed(monkeypatch):
    """With a remainder of nothing some cell is accepted whose rule misses what it holds."""
    problem = cordes.Linear(SQUARE, np.eye(2), lambda x: jnp.exp(-(((x[0] - 0.37) / 2e-3) ** 2)))
    truth = np.sqrt(2e-3 * np.sqrt(np.pi / 2))
    assert enclosed(problem, zero).upper >= truth * (1 - 1e-9)
    from cordes.certificates.enclosed import refinement

    plain = refinement._orders
    monkeypatch.setattr(
        refinement, "_orders", lambda bound, *rest: np.minimum(plain(bound, *rest), 4)
    )
    monkeypatch.setattr(measure, "left_out", lambda bound, *_: np.zeros(len(bound)))
    assert enclosed(problem, zero).upper < 0.9 * truth


@pytest.mark.parametrize(
    ("domain", "place"),
    [
        (SQUARE, [1.0, 0.37123]),
        (DISK, [np.cos(0.7), np.sin(0.7)]),
        (cordes.Polygon(CORNERS), [2.5, 0.5]),
        (cordes.Box([0, 0, 0], [1, 1, 1]), [1.0, 0.3, 0.4]),
        (cordes.Box([0.0], [2.0]), [2.0]),
    ],
)
@pytest.mark.parametrize("width", [0.1, 2e-4])
def test_a_bump_on_the_boundary(domain, place, width):
    assert 1 <= largest_on_boundary(domain, bump(place, width), 1e-13).bound <= 1 + 1e-9


def test_a_function_that_vanishes_on_the_boundary():
    assert largest_on_boundary(DISK, lambda x: 1 - jnp.dot(x, x), 1e-14).bound <= 1e-14
    wave = largest_on_boundary(SQUARE, lambda x: jnp.sin(30 * x[0]) * jnp.exp(x[1]), 1e-14)
    assert 0.99 * np.e <= wave.seen <= np.e <= wave.bound <= 3 * np.e


def test_the_certificate_says_so():
    problem = cordes.Linear(SQUARE, np.eye(2), lambda x: -2 * jnp.pi**2 * wave(x))
    certificate = cordes.certify(problem, wave)
    assert certificate.level == "enclosed"
    assert set(certificate.levels.values()) == {"enclosed"}
    assert "nothing can hide" in str(certificate)
    hidden = cordes.certify(problem, lambda x: wave(x) + bump([1.0, 0.37123], 2e-4)(x))
    assert hidden.L2 is None
    assert "between the points" in hidden.reason


def wave(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def test_a_weight_of_one():
    problem = cordes.Linear(SQUARE, 2 * np.eye(2), 1.0, b=np.array([3.0, 1.0]))
    found = enclosed_measure(problem, FunctionCandidate(problem, zero), [UNIT])
    assert pytest.approx(1.0, rel=1e-9) == found.norm_of(UNIT).upper
    assert pytest.approx(0.5, rel=1e-9) == found.norm_of(PLAIN).upper


@pytest.mark.long
def test_coefficients_with_a_root_at_a_point_are_enclosed():
    """Where no more than the cells around a point wait, they are cut down to it."""
    solution = cordes.solve("feng-neilan-schnake-5.1", certify=False, progress=False)
    certificate = cordes.certify(solution.problem, solution)
    assert set(certificate.levels.values()) == {"enclosed"}
    x = solution.problem.domain.interior_points(4000, 3)
    exact = np.array([float(solution.problem.exact(point)) for point in jnp.asarray(x[:200])])
    error = float(np.max(np.abs(solution(x[:200]) - exact)))
    assert certificate.Linf is not None
    assert error <= certificate.Linf < 1e-10


def test_only_where_few_cells_wait_they_run_out_later():
    budget = CellBudget()
    assert budget.longer(FEW + 1) is budget
    assert budget.longer(FEW).numbers > 5 * budget.numbers
