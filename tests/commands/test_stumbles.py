"""What somebody new to the program stumbles over: silence where a word is needed, and words that
help nobody."""

import dataclasses
import json
import warnings
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why, joined, short
from cordes.cli import run
from cordes.commands.output import as_json_text
from cordes.natural_names import NAMES
from cordes.reports.advice import remedy, stages
from cordes.results import Result
from cordes.solvers.least_squares import still_helps
from cordes.solvers.tolerance import ATTEMPTS, reach

SQUARE = cordes.Box([0, 0], [1, 1])
TRIANGLE = cordes.Polygon([[0, 0], [2, 0.3], [0.4, 1]])
NEGATIVE = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [3, 2]
[equation]
A = [["1", "0.3"], ["0.3", "0.5"]]
b = ["0.5", "-0.3*x2"]
c = "-5 + 0.001*x1"
f = -1
g = 0
"""


def bowl(x):
    return (x @ x) / 2


# Monge–Ampère: boundary values that leave no room -------------------------------------------------


def critical_sources(domain, matrix):
    """For g = xᵀMx/2 the largest f that each corner of a polygon allows, det M + (tᵀMs)²/sin²ω: the
    best choice of the free entry is zero, not that of M."""
    vertices = domain.vertices
    found = []
    for before, corner, after in zip(
        np.roll(vertices, 1, axis=0), vertices, np.roll(vertices, -1, axis=0), strict=True
    ):
        t, s = ((end - corner) / np.linalg.norm(end - corner) for end in (before, after))
        found.append(np.linalg.det(matrix) + (t @ matrix @ s) ** 2 / (1 - (t @ s) ** 2))
    return np.array(found)


@pytest.mark.parametrize(
    "domain", [SQUARE, TRIANGLE, cordes.Polygon([[0, 0], [3, 0], [2, 1], [0.5, 1.2]])]
)
def test_a_corner_that_f_is_too_large_for_is_named(domain):
    matrix = np.array([[2.0, 0.4], [0.4, 1.0]])
    limits = critical_sources(domain, matrix)
    g = lambda x: x @ jnp.asarray(matrix) @ x / 2  # noqa: E731
    # A quarter may be missing before anything is said.
    assert cordes.MongeAmpere(domain, 1.3 * limits.min(), g).rough is None
    rough = cordes.MongeAmpere(domain, 1.37 * limits.min(), g).rough
    named = next(
        limit
        for corner, limit in zip(domain.vertices, limits, strict=True)
        if np.array_equal(corner, rough.point)
    )
    assert named < 1.37 * limits.min()


@pytest.mark.parametrize(
    ("f", "g", "words"),
    [
        (
            1.0,
            0.0,
            (
                "at the corner x = [0., 0.] the boundary values fix the second derivatives of u "
                "along the edges, 0 and 0, whose product 0"
            ),
        ),
        (2.0, bowl, "1 and 1, whose product 1 must be at least f = 2"),
        # In the corners there is room, in the middle of the lower edge there is none.
        (
            lambda x: jnp.sin(jnp.pi * x[0]) ** 2 * 0.01,
            lambda x: jnp.maximum(jnp.abs(x[0] - 0.5) - 0.2, 0.0) ** 2 + 4 * x[1] ** 2,
            "in the direction [1., 0.] (its second derivative is 0), but f = 0.00",
        ),
    ],
)
def test_no_room_for_bounded_second_derivatives(f, g, words):
    assert words in cordes.MongeAmpere(SQUARE, f, g).rough.why


def test_smooth_data_are_not_suspected():
    exponential = lambda x: jnp.exp(bowl(x))  # noqa: E731
    source = lambda x: (1 + x @ x) * jnp.exp(x @ x)  # noqa: E731
    cube = cordes.Box([0] * 3, [1] * 3)
    # Rough in the corner, where g is a root, and warned about; not for want of room.
    with pytest.warns(cordes.KinkWarning, match="a root"):
        root = cordes.MongeAmpere(
            SQUARE, lambda x: 2 / (2 - x @ x) ** 2, lambda x: -jnp.sqrt(jnp.maximum(2 - x @ x, 0.0))
        )
    problems = [
        root,
        cordes.MongeAmpere(SQUARE, 1.0, bowl),
        cordes.MongeAmpere(SQUARE, 0.0),
        cordes.MongeAmpere(TRIANGLE, source, exponential),
        cordes.MongeAmpere(SQUARE, 1e-12, lambda x: 1e-6 * bowl(x)),
        cordes.MongeAmpere(SQUARE, 1e12, lambda x: 1e6 * bowl(x) + 1e9),
        cordes.MongeAmpere(cube, 1.0, bowl),
        cordes.MongeAmpere(cordes.Ball([0, 0], 1), 1.0),
        *(
            cordes.gallery[name]
            for name in ("ex4.6-monge-ampere", "froese-oberman-c1", "monge-ampere-3d")
        ),
    ]
    assert [problem.rough for problem in problems] == [None] * len(problems)
    assert "corner" in cordes.MongeAmpere(cube, 1.0).rough.why


def test_a_solve_without_room_warns_first_and_says_that_convexity_was_lost():
    problem = cordes.MongeAmpere(SQUARE, 1.0)
    with pytest.warns(
        cordes.UnboundedHessianWarning, match=r"at the corner x = \[0., 0.\].*Change g"
    ) as caught:
        solution = cordes.solve(problem, tol=1e-3, features=120, outer_steps=3)
    assert caught[0].filename == __file__
    # Not `not_certifiable`: a theorem there is, and a convex answer is missing.
    assert solution.result is Result.convexity_lost
    reason = solution.certificate.reason
    assert reason.startswith("convexity lost: D²w has the eigenvalue -")
    assert "at the corner x = [0., 0.] the boundary values fix" in reason
    assert issubclass(cordes.UnboundedHessianWarning, cordes.ConvexityWarning)


# A negative c -------------------------------------------------------------------------------------


def invoke(capsys, *words: Any) -> tuple[int, str, str]:
    status = run([str(word) for word in words])
    return status, *capsys.readouterr()


def test_check_names_a_negative_c(capsys, tmp_path):
    file = tmp_path / "negative.toml"
    file.write_text(NEGATIVE)
    _, shown, _ = invoke(capsys, "check", file)
    words = " ".join(shown.replace("│", " ").split())
    assert "c is negative: c = -5 at x = [" in words
    assert "A:D²u + b·∇u - cu = f" in words
    # π²(1/9 + 1/4).
    assert "first eigenvalue of the domain, which is at least 3.564" in words
    _, shown, _ = invoke(capsys, "check", file, "--json")
    found = json.loads(shown)["negative_c"]
    assert found["value"] == pytest.approx(-5, abs=3e-3)
    assert found["value"] == pytest.approx(-5 + 0.001 * found["point"][0], abs=1e-12)


def test_an_answer_without_a_bound_does_not_look_well(capsys, tmp_path):
    file = tmp_path / "negative.toml"
    file.write_text(NEGATIVE)
    status, shown, told = invoke(capsys, "solve", file, "--features", 60)
    words = " ".join(shown.replace("│", " ").split())
    assert status in (0, 1)
    assert "Nothing to do" not in words
    assert "what to do" in words
    assert "converged_uncertified: The residual is small, but nothing bounds the error." in words
    assert "reason: c is negative somewhere (-5)" in words
    assert "c is negative: c = -" in told
    facts = {"result": "converged_uncertified", "method": "least-squares", "parameters": 60}
    assert "--features 120" in remedy(facts)


def test_a_positive_c_is_not_mentioned(capsys):
    assert cordes.check(cordes.Linear(SQUARE, 1.0, 1.0, c=1.0)).negative is None
    assert "reaction" not in invoke(capsys, "check", "ex4.2-continuous")[1]


# Reasons ------------------------------------------------------------------------------------------

FAILURES = [
    "Smears–Süli needs a contraction below 1 and has 1.204 near x = (0.138, 2)",
    "T2 needs a contraction below 1 and has 1 near x = (1.778, 1.143)",
    (
        "T2 (triangle) needs a contraction below 1 and has 1.171 near x = (0.138, 2) with the best "
        "constant preconditioner, control 3, a = [1., 2.]"
    ),
]


def test_the_nearest_theorem_stands_for_those_that_fail_alike():
    failures = [
        Reason(Why.contraction, sentence, {"contraction": value})
        for sentence, value in zip(FAILURES, (1.20394, 1.00000001, 1.171), strict=True)
    ]
    negative = Reason(
        Why.negative_reaction,
        "c is negative somewhere (-5): the maximum principle does not apply",
    )
    reasons = (*failures, negative)
    assert short(reasons) == (
        f"c is negative somewhere (-5): the maximum principle does not apply; {FAILURES[2]}, the "
        "nearest of 3 ways that were tried"
    )
    for kept in (
        [failures[0]],
        [Reason(Why.not_a_density, "f is negative; use another")],
        [Reason(Why.boundary_gap, "no bounds of ∇v"), failures[1]],
    ):
        assert short(kept) == joined(kept)
    certificate, reason = Certificate(reasons=reasons), joined(reasons)
    assert reason == "; ".join([*FAILURES, negative.sentence])
    assert certificate.rows()[-1] == ("reason", short(reasons))
    assert certificate.rows(verbose=True)[-1] == ("reason", reason)
    assert certificate.facts()["reason"] == reason
    assert FAILURES[0] not in str(certificate)


# Tolerances ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Finished:
    problem: SimpleNamespace
    certificate: SimpleNamespace
    number: int
    result: Result | None = None
    replace = dataclasses.replace


class FakeRun:
    """Answers with the bounds and results of a list, and what it was asked for."""

    def __init__(self, bounds: list[float | None], results: list[Result]):
        self.bounds, self.results, self.targets, self.states = bounds, results, [], []

    def __call__(self, target, state):
        self.targets.append(target)
        self.states.append(state)
        k = len(self.targets) - 1
        weights = SimpleNamespace(network=k)
        return SimpleNamespace(network=k, weights=weights, result=self.results[k])

    def finish(self, answer):
        problem = SimpleNamespace(tolerance_norm="rms", linear=True)
        certificate = SimpleNamespace(rms=self.bounds[answer.network])
        return Finished(problem, certificate, answer.network)

    def reach(self, tol=1e-6, **more):
        return reach(tol, 1e-3, self, self.finish, None, **more)


def test_the_smallest_bound_among_the_attempts_is_kept():
    fake = FakeRun(
        [5e-3, 2e-3, 3e-3], [Result.converged, Result.converged, Result.tolerance_not_reached]
    )
    solution = fake.reach()
    assert (solution.number, solution.result) == (1, Result.tolerance_not_reached)
    assert len(fake.targets) == 3
    assert fake.targets[0] > fake.targets[1] > fake.targets[2]
    assert [None if state is None else state.network for state in fake.states] == [None, 0, 1]
    fake = FakeRun([5.0, 4.0, 6.0, 3.0, 7.0, 1.0], [Result.converged] * 6)
    assert fake.reach().number == 3
    assert len(fake.targets) == ATTEMPTS


def test_the_first_bound_below_the_tolerance_is_enough():
    fake = FakeRun([1e-2, 1e-7], [Result.converged, Result.tolerance_not_reached])
    solution = fake.reach()
    assert (solution.number, solution.result) == (1, Result.converged)


def test_a_larger_size_than_usual_waits_for_the_certificate():
    missed = Result.tolerance_not_reached
    asked = []
    fake = FakeRun([1e-7], [missed])
    assert fake.reach(extend=lambda: asked.append(1) or True).result is Result.converged
    assert not asked
    fake = FakeRun([2e-3, 3e-3], [missed, missed])
    solution = fake.reach(extend=lambda: asked.append(1) or len(asked) == 1)
    assert (solution.number, solution.result, len(asked)) == (0, missed, 2)
    # The target stays where it is: it was missed, not too large.
    assert fake.targets == [1e-3, 1e-3]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Result.converged, Result.not_certifiable),
        (Result.time_out, Result.time_out),
        (Result.convexity_lost, Result.convexity_lost),
    ],
)
def test_without_a_bound_the_result_says_what_stopped_the_solve(last, expected):
    fake = FakeRun([None], [last])
    assert fake.reach().result is expected
    assert len(fake.targets) == 1


def test_advice_about_features_follows_what_they_did(capsys):
    history = [
        {"features": 250, "residual": 1e-2},
        {"features": 500, "residual": 1e-3},
        {"features": 500, "residual": 8e-4},
    ]
    assert stages(history) == [(250, 1e-2), (500, 8e-4)]
    assert still_helps(history[:2])
    assert not still_helps(history)
    facts = {"result": "tolerance_not_reached", "method": "least-squares", "parameters": 500}

    def told(residuals):
        sizes = [{"size": 250 * 2**k, "residual": residual} for k, residual in enumerate(residuals)]
        return remedy(
            {
                **facts,
                "tolerance": {"asked": 1e-6, "norm": "rms", "certified": 5.52e-5, "stages": sizes},
            }
        )

    assert "--features 1000" in told([1e-2, 1e-3])
    hardly = told([1e-2, 9e-3])
    assert "hardly help: from 250 to 500 of them the residual fell from 0.01 to 0.009" in hardly
    assert "--features" not in hardly
    assert "--tol 5.6e-05 is met" in hardly
    for result in Result:
        words = remedy({**facts, "method": "adam", "result": result.value})
        assert words
        assert "=…" not in words
        assert "method='" not in words


def test_the_tolerance_is_shown_beside_what_was_reached(capsys, tmp_path):
    file = tmp_path / "rough.toml"
    file.write_text(NEGATIVE.replace("-5 + 0.001*x1", "1"))
    status, shown, _ = invoke(capsys, "solve", file, "--features", 60, "--tol", "1e-12")
    words = " ".join(shown.replace("│", " ").split())
    assert status == 1
    assert "tolerance asked 1e-12, certified " in words
    assert "features=" not in words


def test_outer_steps_are_counted_in_all():
    A = lambda x, a: jnp.array([[1 + 0.3 * a, 0.2 * a], [0.2 * a, 1 - 0.3 * a]])  # noqa: E731
    problem = cordes.HJB(SQUARE, jnp.array([-1.0, 1.0]), A, f=lambda x, a: -1 - 0.3 * a * x[0])
    solution = cordes.solve(problem, tol=1e-9, features=100, outer_steps=3)
    assert [step["outer"] for step in solution.history] == list(range(len(solution.history)))
    # The first entry is the start.
    assert len(solution.history) <= 4
    assert solution.result is Result.tolerance_not_reached


# Numbers of NumPy ---------------------------------------------------------------------------------


def test_numbers_of_numpy_become_json():
    facts = {
        "count": np.int64(3),
        "yes": np.bool_(True),
        "size": np.float32(0.5),
        "list": [np.float64(np.nan), (np.int32(1),)],
        "array": np.eye(2),
    }
    assert json.loads(as_json_text(facts)) == {
        "count": 3,
        "yes": True,
        "size": 0.5,
        "list": [None, [1]],
        "array": [[1, 0], [0, 1]],
    }
    assert json.loads(as_json_text({np.int64(2): np.array(4)})) == {"2": 4}


def test_numbers_of_numpy_are_options_like_others(tmp_path):
    problem = cordes.Linear(SQUARE, 1.0, -1.0)
    numbers = {
        "features": np.int64(40),
        "seed": np.int64(2),
        "multiplier": np.bool_(True),
        "delta": np.float32(0.0),
        "singular": np.bool_(False),
    }
    solution = cordes.solve(problem, tol=np.float32(0.5), max_seconds=np.int64(100), **numbers)
    assert solution.result is Result.converged
    assert json.loads(json.dumps(solution.facts)) == solution.facts
    solution = solution.replace(history=[*solution.history, {"features": np.int64(40)}])
    kept = cordes.load(solution.save(tmp_path / "kept.cordes"), problem)
    assert kept.facts == solution.facts
    assert kept.history == solution.history


# Points outside -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ball():
    return cordes.solve(cordes.Linear(cordes.Ball([1, 0], 2), 1.0, -1.0), features=30)


@pytest.mark.parametrize("method", ["__call__", "gradient", "hessian", "residual"])
def test_points_outside_are_warned_about_once(ball, method):
    ball = ball.replace(problem=ball.problem.labelled())
    points = np.array([[1.0, 0.0], [2.0, 0.5], [3.0, 1.9], [9.0, 9.0]])
    with pytest.warns(
        cordes.OutsideDomainWarning, match=r"2 of 4 points.*first x = \[3. , 1.9\]"
    ) as caught:
        values = getattr(ball, method)(points)
    assert caught[0].filename == __file__
    assert len(values) == 4
    # Warnings are errors here: a second one would fail.
    getattr(ball, method)(points)


def test_a_few_points_outside_of_many_are_found(ball):
    ball = ball.replace(problem=ball.problem.labelled())
    points = np.tile([1.0, 0.3], (40_001, 1))
    points[12_345] = [1.0, -2.5]
    with pytest.warns(cordes.OutsideDomainWarning, match="1 of 40001 points"):
        ball(points)


def test_the_boundary_and_the_program_itself_are_not_outside(ball, tmp_path):
    rim, _ = ball.problem.domain.boundary_points(500, seed=1)
    center = np.array([1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ball(center + (1 + 1e-9) * (rim - center))
        assert ball.certificate.rms is not None
        ball.plot(tmp_path / "u.png")
        ball.certificate.plot(tmp_path / "certificate.png")
        ball.to_vtk(tmp_path / "u.vtu")
        cordes.load(ball.save(tmp_path / "kept.cordes"), ball.problem)


# Names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Ellipse", "cordes.Ellipsoid("),
        ("Disk", "cordes.Ball("),
        ("Poisson", "cordes.Linear("),
        ("square", "cordes.Box("),
    ],
)
def test_natural_names_are_answered_with_ours(name, words):
    with pytest.raises(AttributeError, match=f"There is no cordes.{name}: use ") as caught:
        getattr(cordes, name)
    assert words in str(caught.value)


def test_hints_name_what_there_is():
    for text in NAMES.values():
        assert hasattr(cordes, text.replace(",", " ").replace("(", " ").split()[0])
    with pytest.raises(AttributeError, match="module 'cordes' has no attribute 'nothing'"):
        cordes.nothing  # noqa: B018
