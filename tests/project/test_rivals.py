"""The benchmark against rivals: same equations, honest clock and errors, missing packages, and the
ratios of its table."""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import cordes
from cordes.references.chebyshev import solve_chebyshev

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "rivals"


@pytest.fixture
def module(monkeypatch):
    """`module(name)`: a file of the benchmark, which is a folder of programs and no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("common", "equations", "tables", "tensor_chebyshev", "run"):
        sys.modules.pop(name, None)


def run(out: Path, *arguments: str, **environment: str) -> dict:
    """The whole program, as a user starts it; returns its JSON."""
    command = [sys.executable, str(FOLDER / "run.py"), "--out", str(out), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return {"text": done.stdout, **json.loads((out / "rivals.json").read_text())}


@pytest.mark.parametrize(
    "name", ["ex4.2-continuous", "ex4.2-discontinuous", "ex4.6-monge-ampere", "ex4.3-cube5"]
)
def test_the_rivals_solve_the_same_problems(module, name):
    equation, problem = module("equations").EQUATIONS[name], cordes.gallery[name]
    inside = problem.domain.interior_points(200, seed=3)
    np.testing.assert_allclose(
        equation.right_side(np, inside), jax.vmap(problem.f)(inside), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        equation.exact(np, inside).value, jax.vmap(problem.exact)(inside), atol=1e-13
    )
    if problem.linear:
        A = np.asarray(jax.vmap(problem.A)(inside))
        for (i, j), entry in equation.matrix(np, inside).items():
            np.testing.assert_allclose(A[:, i, j], np.broadcast_to(entry, len(inside)))
    rim, _ = problem.domain.boundary_points(100, seed=1)
    np.testing.assert_allclose(equation.distance(rim), 0, atol=1e-15)
    np.testing.assert_allclose(
        np.broadcast_to(equation.lift(np, rim), len(rim)), jax.vmap(problem.g)(rim), atol=1e-13
    )


def test_cordes_and_chebyshev_fall_to_rounding_level(tmp_path):
    facts = run(
        tmp_path,
        "--seconds",
        "60",
        "--problems",
        "ex4.2-continuous",
        "--solvers",
        "cordes",
        "chebyshev",
    )
    results = facts["results"]["ex4.2-continuous"]
    for name in ("cordes", "chebyshev"):
        seconds, solve, l2 = np.array(results[name]["curve"]).T
        assert results[name]["status"] == "ran"
        assert np.all(np.diff(seconds) >= 0)
        # Import and compile are in the first and not in the second; a curve that began at zero
        # would have forgotten them.
        assert np.all(seconds > solve + results[name]["import"] - 0.01)
        assert l2[-1] < 1e-11
    assert results["cordes"]["compile"] > 0.2, "compiled programs of earlier runs were used"
    # The first error of Chebyshev's curve, measured here again with the formula of the exact
    # solution.
    s, t = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200), indexing="ij")
    exact = np.sin(2 * np.pi * s) * np.sin(np.pi * t) * np.exp(s * np.cos(t))
    answer = solve_chebyshev(cordes.gallery["ex4.2-continuous"], degree=8, layers=0)
    error = np.sqrt(np.mean((answer(np.stack([s, t], axis=-1)) - exact) ** 2))
    assert results["chebyshev"]["curve"][0][2] == pytest.approx(error, rel=1e-3)
    assert (tmp_path / "rivals.png").stat().st_size > 10_000


def test_a_missing_rival_is_reported_and_the_rest_runs(tmp_path):
    for name in ("deepxde", "jinns"):
        package = tmp_path / "fake" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"raise ModuleNotFoundError('gone', name='{name}')\n")
    arguments = (
        "--seconds",
        "60",
        "--problems",
        "ex4.6-monge-ampere",
        "--solvers",
        "deepxde",
        "jinns",
        "chebyshev",
    )
    facts = run(tmp_path / "out", *arguments, PYTHONPATH=str(tmp_path / "fake"))
    results = facts["results"]["ex4.6-monge-ampere"]
    assert results["deepxde"]["status"].startswith(
        "not installed: deepxde. pip install deepxde torch==2.13.0"
    )
    assert results["jinns"]["status"].startswith("not installed: jinns. pip install jinns")
    assert min(point[2] for point in results["chebyshev"]["curve"]) < 1e-10
    assert "not installed: deepxde" in facts["text"]


def test_ratios_of_made_up_curves(module):
    tables = module("tables")
    rival = [
        tables.Point(5.0, 1.0, 1e-1),
        tables.Point(50.0, 46.0, 1e-3),
        tables.Point(200.0, 196.0, 6e-4),
        tables.Point(240.0, 236.0, 2e-3),
    ]
    fast = [tables.Point(2.0, 0.5, 1e-2), tables.Point(4.0, 2.0, 1e-5)]
    slow = [tables.Point(3.0, 1.0, 1e-2)]
    curves = {"rival": rival, "fast": fast, "slow": slow}
    rows = {row.solver: row for row in tables.compare(curves, ["rival", "absent"])}
    # The rival is best after 200 s and worse afterwards; the fast solver is below that after 4 s.
    assert rows["fast"].target == 6e-4
    assert rows["fast"].ratio == pytest.approx(200 / 4)
    assert rows["fast"].solve_ratio == pytest.approx(196 / 2)
    assert rows["slow"].ratio is None
    assert rows["rival"].ratio == 1
    relaxed = {row.solver: row for row in tables.compare(curves, ["rival"], slack=2.0)}
    assert relaxed["fast"].ratio == pytest.approx(50 / 4)
    text = "\n".join(tables.comparison_table("p", list(rows.values()), {}, "at the best error of"))
    assert "which takes it 200.0 s" in text
    assert text.splitlines()[-1].split() == ["slow", "-", "-", "-", "-"]


def test_pauses_are_not_on_the_clock(module, tmp_path):
    x = np.zeros((4, 2))
    np.savez(tmp_path / "points.npz", x=x, truth=np.ones(4))
    arguments = (
        f"--problem p --points {tmp_path}/points.npz --curve {tmp_path}/c.jsonl "
        f"--seconds 9 --began {time.time() - 7}"
    ).split()
    race = module("common").Race(arguments)
    race.imported("recipe", {})
    before = race.mark()
    with race.paused():
        time.sleep(0.3)
        l2 = race.record(np.array([1.0, 1.0, 1.0, 3.0]), before)
    assert 7 <= before.seconds <= race.mark().seconds < before.seconds + 0.2
    assert l2 == pytest.approx(1.0)
    assert not race.over
    race.end()
    lines = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert lines[1]["linf"] == 2.0
    assert lines[1]["solve"] < 0.2 < lines[0]["import"]


def test_the_tensor_solvers_converge(module):
    tensor = module("tensor_chebyshev")
    cube, bowl = cordes.gallery["ex4.3-cube5"], cordes.gallery["ex4.6-monge-ampere"]
    f, g = jax.jit(jax.vmap(cube.f)), jax.vmap(bowl.g)
    x = np.random.default_rng(1).uniform(-1, 1, (300, 5))
    exact = np.prod(np.cos(np.pi * x / 2), axis=1) + np.prod(np.sin(np.pi * x), axis=1)
    errors = [
        float(np.max(np.abs(tensor.evaluate_cube(tensor.solve_cube(f, degree), x) - exact)))
        for degree in (5, 7)
    ]
    assert errors[1] < 0.1 * errors[0] < 0.02
    y = np.random.default_rng(2).uniform(0, 1, (300, 2))
    values = tensor.solve_monge_ampere(jax.vmap(bowl.f), g, 10)
    np.testing.assert_allclose(
        tensor.evaluate_square(values, y), np.exp(np.sum(y**2, axis=1) / 2), atol=1e-8
    )
