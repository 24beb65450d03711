"""Problems with small scales by cells, against exact solutions, finer runs and values by other
programs; what `auto` makes of them."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.results import Result
from cordes.solutions.answer import Answer
from cordes.solvers.contest import Contest
from cordes.solvers.options import choose

SQUARE = cordes.Box([-1, -1], [1, 1])
UNIT = cordes.Box([0, 0], [1, 1])


def A(x):
    return jnp.array([[2.0, x[0] / 2], [x[0] / 2, 1.0]])


def manufactured(u, matrix=A, domain=SQUARE, **more):
    def f(x):
        return jnp.sum(matrix(x) * jax.hessian(u)(x))

    return cordes.Linear(domain, matrix, f, g=u, exact=u, **more)


def waves(x):
    return jnp.sin(40 * x[0]) * jnp.cos(30 * x[1])


def peak(x):
    return jnp.exp(-((x[0] - 0.313) ** 2 + (x[1] + 0.271) ** 2) / 0.02**2)


def by_cells(problem, **options):
    return cordes.solve(problem, method="cells", progress=False, **options)


def assert_certified(solution):
    error, certificate = solution.error(), solution.certificate
    assert error.linf <= certificate.Linf
    assert error.l2 <= certificate.rms


def test_waves_to_nine_digits():
    solution = by_cells(manufactured(waves))
    assert solution.error().linf < 1e-9
    assert solution.converged
    assert solution.certificate.Linf < 1e-4
    assert_certified(solution)


def test_a_peak_that_features_do_not_find():
    """`auto` sees that polynomials get nowhere, and goes on with cells."""
    solution = cordes.solve(manufactured(peak))
    assert solution.method == "cells"
    assert solution.facts["solver"] == cordes.Cells().data()
    assert solution.error().linf < 1e-7
    assert solution.converged
    assert solution.certificate.Linf < 1e-3
    assert_certified(solution)
    tried = [(each["cells"], each["degree"]) for each in solution.history]
    assert tried[0][0] == 1 < tried[-1][0]


def test_a_tolerance_that_features_do_not_meet():
    problem = manufactured(peak)
    solution = cordes.solve(problem, tol=1e-4)
    assert (solution.method, solution.converged) == ("cells", True)
    assert solution.error().l2 <= solution.certificate.rms <= 1e-4


def test_polynomials_come_first_where_all_is_smooth():
    """One piece of a high degree on a box; no cell and no feature is tried."""
    solution = cordes.solve(manufactured(lambda x: jnp.exp(x[0]) * jnp.sin(x[1])))
    assert solution.method == "cells"
    assert {each["cells"] for each in solution.history} == {1}
    assert solution.error().linf < 1e-12


def test_a_kink_of_the_boundary_values():
    """0.8250738 is by finite elements and by cells of degree 13."""
    problem = cordes.Linear(SQUARE, A, 0.0, g=lambda x: jnp.abs(x[0]))
    solution = by_cells(problem, degree=8)
    assert abs(solution([0.0, 0.0]) - 0.82507381) < 2e-8
    finer = by_cells(problem, degree=12, certify=False)
    x = SQUARE.interior_points(500, seed=3)
    assert np.max(np.abs(solution(x) - finer(x))) <= solution.certificate.Linf < 1e-5


@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
@pytest.mark.parametrize("scale", [1e-2, 1e-3])
def test_a_boundary_layer(scale):
    """Where the layer is thin it is resolved across and not along; the finer run has a higher
    degree and other points."""
    problem = cordes.Linear(UNIT, scale * np.eye(2), 1.0, b=np.array([1.0, 0.5]))
    solution = by_cells(problem)
    finer = by_cells(problem, degree=16, certify=False)
    generator = np.random.default_rng(0)
    x = np.concatenate(
        [generator.uniform(size=(500, 2)), 1 - scale * generator.uniform(size=(500, 2))]
    )
    gap = np.max(np.abs(solution(x) - finer(x)))
    assert gap < 1e-7
    assert gap <= solution.certificate.Linf < 1e-3
    lower, upper = solution.network.boxes
    sides = upper - lower
    assert np.max(sides.max(axis=1) / sides.min(axis=1)) >= 4


def test_a_jump_across_a_circle():
    """u and its slope are continuous, u'' is not."""

    def u(x):
        r = jnp.sqrt(x @ x)
        return r**2 - 0.25 + jnp.where(r > 0.5, 2 * (r - 0.5) ** 2 * r, 0.0)

    def matrix(x):
        return jnp.where(x @ x > 0.25, jnp.eye(2), jnp.array([[2.0, 0.5], [0.5, 1.0]]))

    away = cordes.Box([0.1, 0.1], [1, 1])
    problem = manufactured(u, matrix, away, interfaces=[lambda x: x @ x - 0.25])
    solution = by_cells(problem, cells=40)
    assert solution.error().linf < 1e-7
    assert np.any(solution.network.rich.interfaces)
    assert_certified(solution)


def test_a_source_of_radius_a_thousandth():
    """Against a run with another degree, and the value at the source by Green's function: the
    equation is Poisson's, and -log r / 2π is what the source sees of itself."""
    size = 1e-3
    place = jnp.array([0.313, 0.271])

    def f(x):
        return -jnp.exp(-jnp.sum((x - place) ** 2) / size**2) / (np.pi * size**2)

    problem = cordes.Linear(UNIT, 1.0, f)
    solution = by_cells(problem)
    finer = by_cells(problem, degree=14, certify=False)
    x = np.concatenate([UNIT.interior_points(300, seed=1), np.asarray(place)[None]])
    assert np.max(np.abs(solution(x) - finer(x))) < 1e-7
    # Far away it is a point source, by images a double series in sines.
    k = np.arange(1, 400)
    sines = np.sin(np.pi * np.outer(k, place)).T, np.sin(np.pi * k * 0.5)
    square = np.add.outer(k**2, k**2) * np.pi**2
    damped = np.exp(-(np.pi**2) * size**2 * np.add.outer(k**2, k**2) / 4)
    terms = 4 * damped / square * np.outer(sines[0][0] * sines[1], sines[0][1] * sines[1])
    assert abs(solution([0.5, 0.5]) - np.sum(terms)) < 1e-6


def test_errors_fall_exponentially_with_the_degree():
    """On the same cells: the logarithm of the error is nearly a line."""
    problem = manufactured(lambda x: jnp.sin(6 * x[0]) * jnp.cos(5 * x[1] + 1))
    degrees = np.array([5, 7, 9, 11, 13])
    errors = [
        by_cells(problem, degree=int(degree), cells=16, certify=False).error().linf
        for degree in degrees
    ]
    slope, _ = np.polyfit(degrees, np.log10(errors), 1)
    assert slope < -0.7
    assert errors[-1] < 1e-8


def test_errors_at_corners_need_singular_functions():
    """Δu = 1 on a square: r² log r in the corners; the value in the middle is a double series."""
    solution = by_cells(cordes.Linear(UNIT, 1.0, -1.0))
    k = np.arange(1, 2000, 2)
    signs = (-1.0) ** ((k - 1) // 2)
    middle = 0.125 - np.sum(4 * signs / (np.pi * k) ** 3 / np.cosh(np.pi * k.clip(max=200) / 2))
    assert abs(solution([0.5, 0.5]) - middle) < 1e-9
    assert np.any(solution.network.rich.points)
    assert solution.certificate.Linf < 1e-6


def test_two_controls_with_a_free_curve():
    """Against a finer run; the second matrix has a cross term, so that corners are singular."""

    def matrix(x, a):
        return jnp.where(a > 0.5, jnp.array([[2.0, 0.5], [0.5, 0.7]]), jnp.eye(2))

    def f(x, a):
        return jnp.where(a > 0.5, -1.3 + x[0], -1.0)

    problem = cordes.HJB(UNIT, np.array([0.0, 1.0]), matrix, f)
    solution = by_cells(problem, cells=120)
    finer = by_cells(problem, cells=260, certify=False)
    x = UNIT.interior_points(500, seed=2)
    gap = np.max(np.abs(solution(x) - finer(x)))
    assert gap < 1e-5
    assert gap <= solution.certificate.Linf < 1e-3
    assert len(np.unique(np.asarray(solution.policy(x)))) == 2


def test_a_determinant_with_boundary_values_of_zero():
    """det D²u = 1, u = 0 on the unit square: D²u is not bounded. -0.18561 is extrapolated from
    nine-point differences. The answer says that it is not certified."""
    problem = cordes.MongeAmpere(UNIT, 1.0)
    with pytest.warns(cordes.UnboundedHessianWarning):
        solution = by_cells(problem, cells=300, certify=False)
    assert abs(solution([0.5, 0.5]) + 0.18561) < 2e-3
    assert not solution.converged


def test_auto_takes_cells_where_second_derivatives_are_not_bounded():
    chosen = choose(cordes.MongeAmpere(UNIT, 1.0), "auto", None, {})
    assert (chosen.solver.method, chosen.rival) == ("cells", None)
    chosen = choose(cordes.MongeAmpere(UNIT, 1.0), "auto", None, {"features": 100})
    assert (chosen.solver.method, chosen.rival) == ("least-squares", None)
    smooth = cordes.MongeAmpere(UNIT, 1.0, lambda x: x @ x / 2)
    chosen = choose(smooth, "auto", None, {})
    assert (chosen.solver.method, chosen.rival) == ("least-squares", cordes.Cells())


def contest(answers):
    """A nonlinear run whose methods end with the given answers; each begins on the ansatz that it
    finds, and leaves another one."""
    system = SimpleNamespace(place="at first", problem=SimpleNamespace(linear=False, domain=UNIT))
    begun = []

    def make(solver):
        def run(tol, start):
            begun.append((solver.method, system.place))
            system.place = f"that of {solver.method}"
            return answers[solver.method]

        return run

    return Contest(system, None, cordes.Cells(), cordes.LeastSquares(), make), begun


def ended(result, residual):
    return Answer(None, None, result, residual, 0, [])


def test_features_begin_where_cells_have_begun():
    """Singular functions that one method has found at its answer, which was no good, made the
    other end with a residual of 0.38 instead of 8.6e-4 for det D²u = 1 on a square."""
    found = {
        "cells": ended(Result.convexity_lost, 0.5),
        "least-squares": ended(Result.converged, 0.1),
    }
    run, begun = contest(found)
    answer = run(None, None)
    assert (answer.residual, answer.facts["method"]) == (0.1, "least-squares")
    assert begun == [("cells", "at first"), ("least-squares", "at first")]


def test_the_better_of_two_answers_is_kept_with_its_ansatz():
    found = {
        "cells": ended(Result.stagnated, 0.1),
        "least-squares": ended(Result.stagnated, 0.5),
    }
    run, _ = contest(found)
    answer = run(None, None)
    assert (answer.residual, answer.facts["method"]) == (0.1, "cells")
    assert run.system.place == "that of cells"


def test_a_saved_answer_is_the_same(tmp_path):
    problem = manufactured(peak)
    solution = by_cells(problem, cells=80)
    loaded = cordes.load(solution.save(tmp_path / "peak.cordes"), problem)
    x = SQUARE.interior_points(100, seed=4)
    assert np.array_equal(loaded(x), solution(x))
    assert np.array_equal(loaded.hessian(x), solution.hessian(x))
    assert (loaded.method, loaded.result) == ("cells", solution.result)


def test_a_solve_goes_on_from_its_cells():
    problem = manufactured(peak)
    first = by_cells(problem, cells=60, certify=False)
    second = by_cells(problem, start=first, certify=False)
    assert second.error().linf < 1e-3 * first.error().linf
    assert second.history[0]["cells"] == first.network.tree.count


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (cordes.Linear(cordes.Box([0] * 4, [1] * 4), 1.0, 1.0), {}, "up to three dimensions"),
        (cordes.Linear(UNIT, 1.0, 1.0), {"boundary": "soft"}, "exact boundary values"),
        (cordes.Linear(UNIT, 1.0, 1.0), {"features": 100}, "pass method='least-squares'"),
        (cordes.Linear(UNIT, 1.0, 1.0), {"degree": 99}, "from 4 to 24"),
    ],
)
def test_what_is_refused(problem, options, message):
    with pytest.raises(cordes.OptionError, match=message):
        by_cells(problem, **options)


def test_a_solve_that_is_out_of_time_has_an_answer():
    solution = by_cells(manufactured(waves), max_seconds=1.5)
    assert solution.result in ("time_out", "converged", "converged_uncertified")
    assert np.all(np.isfinite(solution(SQUARE.interior_points(10, seed=0))))
