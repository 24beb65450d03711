"""The benchmark programs: formulas against the compiler, derivatives and factorisations against
each other, exponents of known laws, and the programs' help."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PROGRAMS = ("jets", "roofline", "linear_algebra", "cost", "paper_tables")


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    """The programs import each other as neighbours in their folder, which is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))


def module(name: str):
    return importlib.import_module(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_help(name, monkeypatch, capsys):
    program = module(name)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    shown = capsys.readouterr().out
    assert ended.value.code == 0
    assert "--json" in shown
    assert str(program.__doc__).strip().splitlines()[0] in shown


def test_a_program_as_it_is_started(tmp_path):
    command = [
        sys.executable,
        "benchmarks/jets.py",
        "--dimensions",
        "2",
        "--points",
        "5",
        "--tasks",
        "hessian",
        "--rounds",
        "1",
        "--json",
    ]
    command += [str(tmp_path / "jets.json"), "--precision", "float64"]
    environment = {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=200, cwd=FOLDER.parent, env=environment
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "jets.json").read_text())
    assert facts["machine"]["jax"] == jax.__version__
    ran = [result for result in facts["results"] if "seconds" in result]
    assert {"cordes", "hessian"} <= {result["way"] for result in ran}
    for result in ran:
        assert result["deviation"] < 1e-12
        assert result["compile"] > 0.02, "compiled programs of an earlier run were used"
    own = next(
        result for result in ran if result["way"] == "cordes" and result["mode"] == "gradient"
    )
    assert own["ratio"] == 1


# Derivatives --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["operator", "expression", "hessian"])
def test_all_ways_agree(task):
    jets = module("jets")
    network, data = (
        jets.make_network(3, "float64", width=8, depth=2),
        jets.make_data(3, 5, "float64"),
    )
    # Central differences of the network know no rule of differentiation.
    x, step, unit = np.asarray(data.x), 1e-4, np.eye(3)

    def value(x):
        values = jax.vmap(lambda point: jets.plain_value(network.parameters, point))
        return np.asarray(values(jnp.asarray(x)))

    gradient = np.stack(
        [(value(x + step * e) - value(x - step * e)) / (2 * step) for e in unit], axis=1
    )

    def corner(a, b):
        even = value(x + step * (a + b)) + value(x - step * (a + b))
        return even - value(x + step * (a - b)) - value(x - step * (a - b))

    hessian = np.stack(
        [np.stack([corner(a, b) / (4 * step**2) for b in unit], axis=1) for a in unit], axis=1
    )
    second = np.sum(np.asarray(data.A) * hessian, axis=(1, 2))
    expected = {
        "operator": (value(x), gradient, second),
        "expression": second + np.sum(np.asarray(data.b) * gradient, axis=1) - 3 * value(x),
        "hessian": (value(x), gradient, hessian),
    }[task]
    ways = {
        name: way for name, way in jets.ways(task, network).items() if jets.missing(name) is None
    }
    if task == "expression":
        # The others make it from the operator, which is compared above.
        ways = {name: ways[name] for name in ("cordes", "directional", "hessian")}
    exact = jax.jit(ways["hessian"])(network.parameters, data)
    for way in ways.values():
        found = jax.jit(way)(network.parameters, data)
        assert jets.deviation(found, expected) < 1e-5
        assert jets.deviation(found, exact) < 1e-12


def test_a_deviation_is_seen():
    jets = module("jets")
    assert jets.deviation(
        (np.ones(3), np.array([2.0, 4.0])), (np.ones(3), np.array([2.0, 4.4]))
    ) == pytest.approx(0.4 / 4.4)


# Counts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 7])
def test_operations_are_those_that_the_compiler_counts(d):
    """Within a fifth: the compiler counts elementary functions apart, and simplifies a little. d =
    7 is beyond where matrices are multiplied pair by pair."""
    jets, counts, measuring = module("jets"), module("counts"), module("measuring")
    network, data = (
        jets.make_network(d, "float64", width=16, depth=3),
        jets.make_data(d, 20, "float64"),
    )
    operator = lambda p, data: tuple(network.with_parameters(p).operator_jet(data.x, data.A))  # noqa: E731
    full = lambda p, data: tuple(network.with_parameters(p).jet(data.x))  # noqa: E731
    cases = [(counts.evaluation(20, counts.operator_shape(d, d, 16, 3), 8), operator)]
    if d == 2:
        cases += [(counts.evaluation(20, counts.hessian_shape(d, d, 16, 3), 8), full)]
        cases += [
            (
                counts.gradient(20, counts.operator_shape(d, d, 16, 3), 8),
                jets.with_gradient(operator),
            )
        ]
    for work, function in cases:
        counted = measuring.compiled(function, network.parameters, data).operations
        if counted is None:
            pytest.skip("this compiler does not count")
        assert work.operations == pytest.approx(counted, rel=0.2)


def test_parameters_and_linear_algebra_counts():
    counts, jets = module("counts"), module("jets")
    network = jets.make_network(5, "float64", width=16, depth=3)
    assert counts.operator_shape(5, 5, 16, 3).parameters == sum(
        leaf.size for leaf in jax.tree.leaves(network.parameters)
    )
    assert counts.product(3, 4, 5, 8) == (120, 8 * (12 + 20 + 15))
    # Loops written out: for each column of a Cholesky factor the rest of the lower triangle is
    # updated, one product and one difference each.
    n = 60
    updates = sum(2 * (n - k) * (n - k + 1) / 2 for k in range(1, n + 1))
    assert counts.cholesky(n, 8).operations == pytest.approx(updates, rel=0.05)
    # Each reflection of a QR factorisation: 4 operations for each entry of the rest of the matrix.
    m = 150
    reflections = sum(4 * (m - k) * (n - k) for k in range(n))
    assert counts.qr_triangle(m, n, 8).operations == pytest.approx(reflections, rel=0.05)


def test_the_floor_is_the_slower_of_two():
    counts = module("counts")
    peaks = counts.Peaks(operations=1e9, bytes=1e8)
    assert counts.floor_seconds(counts.Work(2e9, 1e7), peaks) == 2
    assert counts.floor_seconds(counts.Work(2e9, 1e9), peaks) == 10
    assert counts.together(counts.Work(1, 2), counts.times(3, counts.Work(4, 5))) == (13, 17)


# Exponents and factorisations ---------------------------------------------------------------------


def test_exponents_of_known_laws():
    cost = module("cost")
    found = cost.fit_exponent([8, 1, 2, 4], [3 * 8**2.5, 3, 3 * 2**2.5, 3 * 4**2.5])
    assert found.power == pytest.approx(2.5)
    assert found.factor == pytest.approx(3)
    assert (found.spread, found.last) == (pytest.approx(1), pytest.approx(2.5))
    assert (found.lower, found.upper) == (1, 8)
    # A fixed cost of one beside n³: the fit over a range is between 0 and 3, the local exponent at
    # its end is near 3.
    sizes = np.array([1, 2, 4, 8, 16])
    mixed = cost.fit_exponent(sizes, 1 + sizes.astype(float) ** 3)
    assert 2.2 < mixed.power < 2.9 < mixed.last < 3
    assert mixed.spread > 1.1
    with pytest.raises(ValueError, match="two different sizes"):
        cost.fit_exponent([4, 4], [1.0, 2.0])


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_every_factorisation_gives_the_damped_step(shape):
    algebra = module("linear_algebra")
    rng = np.random.default_rng(5)
    J, r, dampings = (
        rng.standard_normal(shape),
        rng.standard_normal(shape[0]),
        np.array([1e-3, 0.5]),
    )
    for function in algebra.STEPS.values():
        steps = np.asarray(jax.jit(function)(jnp.asarray(J), jnp.asarray(r), jnp.asarray(dampings)))
        for step, damping, expected in zip(
            steps, dampings, algebra.reference_steps(J, r, dampings), strict=True
        ):
            np.testing.assert_allclose(J.T @ (J @ step) + damping * step, -J.T @ r, atol=1e-10)
            np.testing.assert_allclose(step, expected, atol=1e-10)


def test_least_squares_by_every_factorisation():
    algebra = module("linear_algebra")
    rng = np.random.default_rng(6)
    matrix, target = rng.standard_normal((40, 10)), rng.standard_normal(40)
    expected = np.linalg.lstsq(matrix, target)[0]
    triangle_of = lambda system: jnp.linalg.qr(system, mode="r")  # noqa: E731
    found = [
        algebra.host_qr(matrix, target),
        algebra.hybrid(matrix, target, triangle_of),
        algebra.refined_cholesky(matrix, target, 3, np),
    ]
    placed = jnp.asarray(matrix), jnp.asarray(target)
    found += [
        algebra.device_qr(*placed),
        algebra.device_svd(*placed),
        algebra.refined_cholesky(*placed, 3, jnp),
    ]
    for solution in found:
        np.testing.assert_allclose(np.asarray(solution), expected, rtol=1e-9, atol=1e-11)


# The paper's tables -------------------------------------------------------------------------------


def test_milestones_are_the_tightest_of_the_paper():
    tables = module("paper_tables")
    found = {
        name: (row.target, row.seconds)
        for name, row in ((name, tables.milestone_of(name)) for name in tables.TABLES)
    }
    assert len(found) == 8
    assert found["ex4.1-singular"] == (1e-5, 9.05)
    assert found["ex4.2-continuous"] == (5e-4, 72.33)
    assert found["ex4.3-cube5"] == (1e-3, 631.44)
    assert found["ex4.6-monge-ampere"] == (5e-5, 301.35)
    assert tables.stages(1000) == [250, 500, 1000]
    assert tables.stages(250) == [250]


def test_one_of_the_papers_tables():
    tables = module("paper_tables")
    facts = tables.by_features("ex4.2-continuous", 5e-4, 0, 0, certify=False)
    assert facts["l2"] < 1e-9
    assert facts["until"]["l2"] <= 5e-4
    assert facts["until"]["features"] <= facts["parameters"]
    assert 0 < facts["until"]["seconds"] <= facts["default"]
    line = tables.summary(
        [
            {
                "name": "ex4.2-continuous",
                "target": 5e-4,
                "paper_seconds": 72.33,
                "ratio": 9.0,
                "default_ratio": 4.0,
                **facts,
            }
        ]
    )
    assert "ex4.2-continuous" in line.splitlines()[1]


def test_the_performance_page_shows_the_results():
    """`python benchmarks/performance_tables.py` writes its tables anew."""
    import performance_tables

    text = performance_tables.PAGE.read_text(encoding="utf-8")
    assert performance_tables.page(text) == text
    assert {name for _, name, _ in performance_tables.MARK.findall(text)} == set(
        performance_tables.TABLES
    )
