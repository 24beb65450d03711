"""`cordes prove` and `solution.prove()`: what is proved of answers whose error is known, what is
written, and how it ends where there is no proof."""

import hashlib
import json
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flint import ctx

import cordes
from cordes.proofs import prove
from cordes_check.proofs import check

SQUARE = cordes.Box([0, 0], [1, 1])
TEXT = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[equation]
A = [[2, "x1*x2/3"], ["x1*x2/3", 1]]
b = ["x2", 1]
c = 1
f = "sin(3*x1)*x2"
"""


@pytest.fixture(scope="module")
def wave():
    """A mixed equation whose solution is known, and an answer."""

    def exact(x):
        return jnp.sin(2 * x[0]) * jnp.exp(x[1])

    def A(x):
        return jnp.array([[2 + x[0], 0.3], [0.3, 2.0]])

    def f(x):
        # ∂2 u and -c u cancel.
        mixed = 2 * jnp.cos(2 * x[0]) * jnp.exp(x[1])
        return -4 * (2 + x[0]) * exact(x) + 0.6 * mixed + 2 * exact(x)

    problem = cordes.Linear(SQUARE, A, f, g=exact, b=[0.0, 1.0], c=1.0, exact=exact)
    return problem, cordes.solve(problem, features=60, singular=False)


def test_bounds_are_above_the_error_and_those_of_the_certificate(wave, tmp_path):
    problem, solution = wave
    proved = solution.prove(tmp_path / "wave.proof")
    certificate, before = proved.certificate, solution.certificate
    assert certificate.level == "proved"
    x = problem.domain.interior_points(600, seed=3, kind="sobol")
    error = np.asarray(proved(x)) - np.array([problem.exact(each) for each in x])
    assert np.max(np.abs(error)) <= certificate.Linf
    assert np.sqrt(np.mean(error**2)) <= certificate.L2
    assert certificate.L2 <= 1.1 * before.L2
    assert certificate.Linf <= 1.1 * before.Linf
    text, facts = check(tmp_path / "wave.proof")
    assert text == certificate.proof.theorem.rstrip()
    # What is read as a double is not below what was proved.
    assert certificate.Linf >= float(facts["bounds"]["Linf"])
    assert "checked by" in str(certificate) or "proved" in str(certificate)


def test_a_proof_is_bound_to_the_answer(wave, tmp_path):
    solution = wave[1]
    solution.prove(tmp_path / "wave.proof")
    data = json.loads((tmp_path / "wave.proof").read_bytes().partition(b"\n")[2])
    answer = tmp_path / data["answer"]["file"]
    assert hashlib.sha256(answer.read_bytes()).hexdigest() == data["answer"]["sha256"]
    assert "which was compared" in check(tmp_path / "wave.proof")[0]
    loaded = cordes.load(answer, wave[0])
    x = np.array([[0.3, 0.7], [0.2, 0.1]])
    np.testing.assert_array_equal(loaded(x), solution(x))
    answer.write_bytes(answer.read_bytes() + b"\0")
    with pytest.raises(Exception, match="is another answer"):
        check(tmp_path / "wave.proof")
    answer.unlink()
    assert "was not beside it" in check(tmp_path / "wave.proof")[0]


def test_the_precision_of_flint_is_as_it_was(wave, tmp_path):
    kept = ctx.prec, ctx.cap
    wave[1].prove(tmp_path / "wave.proof")
    assert (ctx.prec, ctx.cap) == kept


def test_the_command_says_how_it_ended(invoke, tmp_path):
    (tmp_path / "mine.toml").write_text(TEXT, encoding="utf-8")
    answer = tmp_path / "mine.cordes"
    problem = cordes.problem(tmp_path / "mine.toml")
    cordes.solve(problem, features=40, singular=False).save(answer)
    status, printed, _ = invoke("prove", answer, "--json")
    facts = json.loads(printed)
    assert (status, facts["proved"], facts["level"]) == (0, True, "proved")
    assert {Path(file).name for file in facts["files"]} == {"mine.proof", "mine.cordes"}
    assert facts["proof"]["theorem"].startswith("THEOREM")
    # A proof that exists is kept.
    status, _, told = invoke("prove", answer)
    assert status == 2
    assert "--overwrite" in told
    status, printed, _ = invoke("prove", answer, "--overwrite", "--max-seconds", "0.01", "--json")
    facts = json.loads(printed)
    assert (status, facts["proved"], facts["reason"]) == (1, False, "the time was up")
    assert facts["level"] != "proved"
    assert invoke("prove", tmp_path / "nothing.cordes")[0] == 2


def test_a_box_in_space(tmp_path):
    cube = cordes.Box([0, 0, 0], [1, 1, 2])

    def exact(x):
        return jnp.prod(jnp.sin(jnp.pi * x))

    def f(x):
        return -9 * jnp.pi**2 * exact(x)

    problem = cordes.Linear(cube, jnp.diag(jnp.array([2.0, 3.0, 4.0])), f, exact=exact)
    options = {"features": 30, "singular": False, "certify": False}
    proved = cordes.solve(problem, "least-squares", **options).prove(tmp_path / "cube.proof")
    assert "(0.0, 1.0) × (0.0, 1.0) × (0.0, 2.0)" in proved.certificate.proof.theorem
    x = cube.interior_points(500, seed=3, kind="sobol")
    error = np.asarray(proved(x)) - np.array([exact(each) for each in x])
    assert 0 < np.max(np.abs(error)) <= proved.certificate.Linf < 10
    assert np.sqrt(2 * np.mean(error**2)) <= proved.certificate.L2


def test_a_text_with_other_values_is_noticed(monkeypatch, wave, tmp_path):
    """Texts are compared with the functions that were solved, also boundary values."""
    made = prove.problem_text(wave[0])
    for old, new in (("exp(", "1.0001*exp("), ('g = "', 'g = "1e-6 + ')):
        assert old in made.toml
        other = made._replace(toml=made.toml.replace(old, new))
        monkeypatch.setattr(prove, "problem_text", lambda _, other=other: other)
        with pytest.raises(cordes.NotProvedError, match="other values than its functions"):
            wave[1].prove(tmp_path / "a.proof")


def disk():
    return cordes.Linear(cordes.Ball([0.0, 0.0], 1.0), 1.0, f=1.0)


def oblique():
    return cordes.Linear(
        SQUARE,
        lambda x: jnp.eye(2) * jnp.where(x[0] + x[1] > 1, 2.0, 1.0),
        f=1.0,
        interfaces=[lambda x: x[0] + x[1] - 1],
    )


def interval():
    return cordes.Linear(cordes.Box([0], [1]), 1.0, f=1.0)


@pytest.mark.parametrize(
    ("problem", "reason"),
    [(disk, "boxes"), (oblique, "not parallel"), (interval, "dimensions")],
)
def test_what_the_checker_does_not_know_is_refused_with_the_reason(problem, reason, tmp_path):
    solution = cordes.solve(problem(), "least-squares", features=30, certify=False)
    with pytest.raises(cordes.NotProvedError, match=reason):
        solution.prove(tmp_path / "a.proof")
    assert list(tmp_path.iterdir()) == []


def test_conditions_that_are_no_values_are_refused(tmp_path):
    """A theorem about u = g would be one about another problem."""
    (tmp_path / "a.toml").write_text(f"{TEXT}[boundary]\nouter = {{type = 'neumann'}}\n")
    neumann = cordes.Linear(SQUARE, 1.0, f=1.0, c=1.0, boundary=cordes.Neumann(0.0))
    for problem in (cordes.problem(tmp_path / "a.toml"), neumann):
        with pytest.raises(cordes.NotProvedError, match="all of the boundary"):
            prove.problem_text(problem)


def test_an_equation_beyond_all_theorems_is_not_proved(tmp_path):
    """c far below the first eigenvalue: no choice of parameters contracts."""
    problem = cordes.Linear(SQUARE, 1.0, f=1.0, c=-40.0)
    with pytest.warns(cordes.CordesConditionWarning):
        solution = cordes.solve(problem, "least-squares", features=60, singular=False)
    with pytest.raises(cordes.NotProvedError, match="contracts for no choice"):
        solution.prove(tmp_path / "a.proof")


@pytest.mark.skipif(sys.platform == "win32", reason="one platform is enough")
def test_without_the_extra_the_message_says_what_to_install(wave, monkeypatch, tmp_path):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "cordes_check" else find(name)
    )
    with pytest.raises(cordes.NotInstalledError, match=r"cordes\[proof\]"):
        wave[1].prove(tmp_path / "a.proof")
