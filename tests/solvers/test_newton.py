"""The outer loop: policy iteration and Newton's method over every inner solver, damping, fallbacks,
and how it ends."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes import HJB, Box, Linear, MongeAmpere, Result
from cordes.errors import OptionError
from cordes.jet import jet_of
from cordes.solvers.least_squares import LeastSquares
from cordes.solvers.outer.newton import NewtonLoop

SQUARE = Box([0, 0], [1, 1])
TINY = {"epochs": 60, "inner_epochs": 30, "points": 300, "width": 16, "depth": 2}


def residuals(solution):
    return [step["residual"] for step in solution.history]


def bowl(x):
    return jnp.exp(x @ x / 2)


def determinant_of(function):
    return lambda x: jnp.linalg.det(jet_of(function)(x).hessian)


# The problems of the paper and of the literature --------------------------------------------------


def test_monge_ampere_of_the_paper(solved):
    """Rounding level after four quadratic steps with a small network; the start knows nothing of
    the solution."""
    solution = solved.certified("ex4.6-monge-ampere", method="least-squares")
    assert solution.result is Result.converged
    assert solution.error().l2 <= 1e-12
    r = residuals(solution)
    assert r[0] > 0.1
    assert len(r) <= 7
    # Quadratic until rounding: each residual is at most a constant times the square of the last
    # one.
    assert all(after <= 2 * before**1.7 + 1e-9 for before, after in itertools.pairwise(r))
    assert solution.convexity.smallest == pytest.approx(1.0, abs=1e-3)
    certificate = solution.certificate
    assert solution.error().linf <= certificate.Linf <= 1e-11


def test_two_controls_of_the_paper(solved):
    solution = solved.certified("ex4.5-hjb")
    assert solution.error().l2 <= 1e-10
    assert solution.error().l2 <= solution.certificate.rms <= 1e-8


def test_policy_iteration_is_superlinear(solved):
    """The share of changed controls and the residual fall faster than geometrically, and the policy
    is that of the known switching curve."""
    solution = solved("switching-control", method="least-squares")
    assert solution.error().l2 <= 1e-12
    changed = [step["changed"] for step in solution.history[1:]]
    assert changed[0] > 0.1
    assert changed[-1] == 0
    r = residuals(solution)
    factors = [after / before for before, after in itertools.pairwise(r)]
    assert all(later < 0.5 * earlier for earlier, later in itertools.pairwise(factors))


def test_continuous_controls(solved):
    """Smears and Süli 2014, experiment 1, with its closed-form maximiser."""
    solution = solved.certified("smears-suli-2014", method="least-squares")
    assert solution.error().l2 <= 1e-6
    r = residuals(solution)
    assert r[-1] <= 1e-4 * r[-2] <= 1e-6 * r[-3]
    assert solution.error().l2 <= solution.certificate.rms


def test_jump_of_second_derivatives(solved):
    """Froese and Oberman, C¹: f vanishes in a disk and D²u jumps on its circle, which is declared;
    the corners are smooth."""
    solution = solved("froese-oberman-c1", form="convex", features=250, singular=False)
    assert solution.error().linf <= 1e-4


def test_three_dimensions(solved):
    """The cofactors violate the Cordès condition, the start is not convex, and Newton converges all
    the same."""
    solution = solved.certified("monge-ampere-3d", features=700)
    assert solution.history[0]["convexity"] < 0
    assert solution.error().l2 <= 1e-10
    assert solution.convexity.smallest > 0
    assert solution.error().linf <= solution.certificate.Linf <= 1e-8


# Inner solvers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ex4.6-monge-ampere", "switching-control"])
def test_gauss_newton_runs_through_the_same_loop(solved, name):
    solution = solved(name, method="gauss-newton", width=60, points=200, steps=10)
    r = residuals(solution)
    assert [step["outer"] for step in solution.history] == list(range(len(r)))
    assert min(r) <= 1e-2 * r[0]
    assert solution.error().l2 <= 1e-4


@pytest.mark.parametrize("multiplier", [True, False])
@pytest.mark.parametrize("name", ["ex4.6-monge-ampere", "switching-control"])
def test_adam_runs_through_the_same_loop(name, multiplier):
    """Warm-up, then outer steps of `inner_epochs` each, with and without the multiplier."""
    solution = cordes.solve(
        cordes.gallery[name],
        method="adam",
        warm_up=30,
        multiplier=multiplier,
        learning_rate=3e-3,
        **TINY,
        certify=False,
    )
    assert len(solution.history) == 2
    assert residuals(solution)[-1] < residuals(solution)[0]


def test_the_paper_has_no_warm_up_for_controls():
    solution = cordes.solve(
        cordes.gallery["switching-control"],
        method="adam",
        preset="paper",
        epochs=40,
        inner_epochs=20,
        points=200,
        width=8,
        certify=False,
    )
    assert len(solution.history) == 3
    assert np.isinf(solution.history[0]["linear"])


@pytest.mark.parametrize("name", ["ex4.6-monge-ampere", "switching-control"])
def test_direct_rival(name):
    """Adam on the nonlinear residual itself gets better, and its residual is that of the
    problem."""
    options = {
        "epochs": 300,
        "points": 300,
        "width": 16,
        "depth": 2,
        "learning_rate": 3e-3,
        "multiplier": False,
    }
    solution = cordes.solve(
        cordes.gallery[name], method="adam", outer="direct", **options, certify=False
    )
    assert solution.residual_rms < 0.5 * residuals(solution)[0]
    points = solution.problem.domain.interior_points(4000, 99)
    assert np.sqrt(np.mean(solution.residual(points) ** 2)) == pytest.approx(
        solution.residual_rms, rel=0.1
    )


def test_without_multiplier(solved):
    assert solved("switching-control", multiplier=False).error().l2 <= 1e-12


def test_unscaled_argmax(solved):
    assert solved("switching-control", argmax="unscaled").error().l2 <= 1e-12


# Robustness ---------------------------------------------------------------------------------------


def test_a_start_that_defeats_plain_newton():
    """From a concave function the textbook method ends far away without convexity; the damped one
    with its rival finds the solution."""
    problem = cordes.gallery["ex4.6-monge-ampere"]
    start = cordes.solve(Linear(SQUARE, np.eye(2), -20.0, g=problem.g), features=250, certify=False)
    assert np.max(np.linalg.eigvalsh(start.hessian(SQUARE.interior_points(200, 1)))[:, 0]) < 0
    plain = cordes.solve(
        problem, start=start, form="plain", damping=False, features=250, certify=False
    )
    assert plain.result is Result.convexity_lost
    assert plain.error().l2 > 1e-2
    ours = cordes.solve(problem, start=start, features=250, certify=False)
    assert ours.result is Result.converged_uncertified
    assert ours.error().l2 <= 1e-10


def test_fixed_point_contracts():
    """The contracting fixed point converges by at least its factor, from the same start, without
    Newton."""
    problem = cordes.gallery["switching-control"]
    solution = cordes.solve(
        problem, outer="fixed-point", outer_steps=12, features=250, certify=False
    )
    r = residuals(solution)
    assert all(step["contracting"] for step in solution.history)
    assert all(
        after <= 1.02 * problem.contraction() * before
        for before, after in itertools.pairwise(r[2:])
    )
    assert r[-1] < 1e-2 * r[0]


def test_fixed_point_takes_over_where_newton_stalls(monkeypatch):
    """A Newton step that returns its own start stalls; the loop notices and goes on by the fixed
    point."""
    problem = cordes.gallery["switching-control"]
    freeze = NewtonLoop._freeze

    def stuck(self, jet, length=1.0):
        if self.contracting:
            freeze(self, jet, length)
        else:
            self.system.freeze(None)

    monkeypatch.setattr(NewtonLoop, "_freeze", stuck)
    solution = cordes.solve(problem, features=250, outer_steps=30, certify=False)
    assert any(step.get("contracting") for step in solution.history)
    assert residuals(solution)[-1] < 1e-2 * residuals(solution)[0]


def test_convex_form_from_the_start(solved):
    """The residual that selects the convex branch solves the same problem."""
    assert solved("ex4.6-monge-ampere", form="convex").error().l2 <= 1e-12


def test_impossible_boundary_values():
    """Concave along every edge: warned about when the problem is made, and a short solve ends as
    convexity_lost with a remedy."""
    with pytest.warns(cordes.ConvexityWarning, match="No convex function takes these values"):
        problem = MongeAmpere(SQUARE, 1.0, g=lambda x: -(x @ x))
    solution = cordes.solve(problem)
    assert solution.result is Result.convexity_lost
    assert "convex along straight edges" in solution.result.remedy
    assert solution.certificate.Linf is None
    assert "convexity lost" in solution.certificate.reason


def test_boundary_values_in_faces():
    with pytest.warns(cordes.ConvexityWarning):
        MongeAmpere(
            Box([0, 0, 0], [1, 1, 1]), 1.0, g=lambda x: x[0] ** 2 - 3 * x[1] * x[2] + x[1] ** 2
        )


def test_tolerance():
    """`tol` bounds the certified maximum of a Monge–Ampère equation and the certified root mean
    square of a control problem."""
    loose = cordes.solve("ex4.6-monge-ampere", tol=1e-3, progress=False)
    assert loose.result is Result.converged
    assert loose.error().linf <= loose.certificate.Linf <= 1e-3
    control = cordes.solve("switching-control", tol=1e-4, progress=False)
    assert control.error().l2 <= control.certificate.rms <= 1e-4


def test_time_out_and_interrupt(monkeypatch):
    problem = cordes.gallery["ex4.6-monge-ampere"]
    assert cordes.solve(problem, max_seconds=1e-3, certify=False).result is Result.time_out
    calls = []

    def interrupting(self, current):
        calls.append(current)
        raise KeyboardInterrupt

    monkeypatch.setattr(NewtonLoop, "_step", interrupting)
    solution = cordes.solve(problem, certify=False)
    assert calls
    assert solution.result is Result.interrupted
    assert np.all(np.isfinite(solution(SQUARE.interior_points(10, 1))))


def test_start_from_another_problem():
    """A solution for a nearby f is a good start: fewer steps. Its domain must be the same."""
    near = cordes.solve(MongeAmpere(SQUARE, lambda x: 1.1 * determinant_of(bowl)(x), g=bowl))
    problem = cordes.gallery["ex4.6-monge-ampere"]
    solution = cordes.solve(problem, start=near)
    assert solution.error().l2 <= 1e-12
    assert residuals(solution)[0] < 0.3
    with pytest.raises(OptionError, match="same domain"):
        cordes.solve(cordes.gallery["monge-ampere-3d"], start=near)


def test_singular_functions_of_a_nonlinear_problem(tmp_path):
    """Without an exact solution the corners are singular: found from the policy there, kept in the
    file, and the two ways to solve agree. One control is the best everywhere, so that nothing but
    the corners is rough."""
    matrices = jnp.array([[[1.0, 0.3], [0.3, 2.0]], [[2.0, -0.4], [-0.4, 1.0]]])
    problem = HJB(
        SQUARE,
        [0.0, 1.0],
        lambda x, a: jnp.where(a == 0, matrices[0], matrices[1]),
        lambda x, a: 1.0 + 20 * a,
    )
    solution = cordes.solve(problem)
    assert len(solution.singular_points) == 4
    smooth = cordes.solve(problem, singular=False)
    assert solution.residual_rms < 1e-3 * smooth.residual_rms
    points = SQUARE.interior_points(200, 5)
    bound = solution.certificate.Linf + smooth.certificate.Linf
    assert np.max(np.abs(solution(points) - smooth(points))) <= bound <= 0.01
    again = cordes.load(solution.save(tmp_path / "answer.cordes"), problem=problem)
    np.testing.assert_array_equal(again(points), solution(points))
    np.testing.assert_array_equal(again.policy(points), solution.policy(points))


# Policies and options -----------------------------------------------------------------------------


def test_policy(solved, tmp_path):
    solution = solved("switching-control")
    points = solution.problem.domain.interior_points(60, 3).reshape(6, 10, 2)
    policy = solution.policy(points)
    assert policy.shape == (6, 10)
    # It is the brute-force choice.
    jet = solution.jet(points.reshape(-1, 2))
    values = []
    for a in solution.problem.controls:
        A, b, c, f = solution.problem.pairs(points.reshape(-1, 2), np.full(60, a))
        gamma = np.trace(A, axis1=1, axis2=2) / np.sum(A**2, axis=(1, 2))
        values.append(
            gamma
            * (
                np.sum(A * jet.hessian, axis=(1, 2))
                + np.sum(b * jet.gradient, axis=1)
                - c * jet.value
                - f
            )
        )
    np.testing.assert_array_equal(
        policy.ravel(), solution.problem.controls[np.argmin(values, axis=0)]
    )
    solution.plot_policy(tmp_path / "policy.png")
    assert (tmp_path / "policy.png").stat().st_size > 5000
    with pytest.raises(OptionError, match="no controls"):
        solved("ex4.6-monge-ampere").policy(points)


def test_vector_controls(solved, tmp_path):
    solution = solved("smears-suli-2014")
    assert solution.policy(solution.problem.domain.interior_points(7, 1)).shape == (7, 2)
    figure = solution.plot_policy(tmp_path / "policy.png")
    assert len([axes for axes in figure.axes if "best control" in axes.get_title()]) == 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ex4.6-monge-ampere", {"form": "round"}, "no form 'round'"),
        ("monge-ampere-3d", {"form": "convex"}, "two dimensions"),
        ("ex4.6-monge-ampere", {"outer": "picard"}, "no outer loop 'picard'"),
        ("ex4.6-monge-ampere", {"outer": "fixed-point"}, "exists for HJB problems"),
        ("ex4.6-monge-ampere", {"outer": "direct"}, "method='adam'"),
        (
            "ex4.6-monge-ampere",
            {"argmax": "unscaled"},
            "option for HJB and Isaacs, not for MongeAmpere",
        ),
        ("switching-control", {"form": "convex"}, "option for MongeAmpere, not for HJB"),
        ("switching-control", {"argmax": "other"}, "no argmax 'other'. Known: scaled, unscaled"),
        ("smears-suli-2014", {"argmax": "scaled"}, "maximiser"),
        ("switching-control", {"inner_epochs": 10}, "dual loop of Adam"),
        ("switching-control", {"outer_steps": 0}, "outer_steps = 0"),
        ("ex4.2-continuous", {"outer": "newton"}, "not for Linear"),
    ],
)
def test_wrong_options(name, options, message):
    class Derived(cordes.MongeAmpere):
        """What a person derives is not named."""

    with pytest.raises(OptionError, match=message):
        cordes.solve(cordes.gallery[name], **options)


def test_condition_of_an_answer(solved):
    """The cofactors of ex4.6 are cof(D²u) with D²u = e^(|x|²/2)(I + xxᵀ): ε = 2λΛ/(λ² + Λ²) with
    Λ/λ = 1 + |x|² ≤ 3."""
    condition = cordes.check(solved("ex4.6-monge-ampere"))
    assert condition.epsilon == pytest.approx(0.6, abs=1e-6)
    with pytest.raises(OptionError, match=r"cordes.check\(solution\)"):
        cordes.check(cordes.gallery["ex4.6-monge-ampere"])
    control = cordes.check(cordes.gallery["ex4.5-hjb"])
    assert control.satisfied
    assert control.source == "interval"


def test_a_rival_is_kept_only_if_better(monkeypatch):
    """Where both forms fail, the better answer stays and belongs to the ansatz that is kept."""
    monkeypatch.setattr(LeastSquares, "outer_steps", 2)
    problem = MongeAmpere(SQUARE, 1.0, g=lambda x: 2 * x @ x)
    solution = cordes.solve(problem, features=250, certify=False)
    assert solution.residual_rms == pytest.approx(min(residuals(solution)), rel=1e-12)
    assert np.all(np.isfinite(solution(SQUARE.interior_points(10, 1))))
