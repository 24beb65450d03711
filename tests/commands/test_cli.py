"""The command line: exit status, one JSON object on standard output, messages for people on
standard error."""

import functools
import json
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import cordes
import cordes.commands.solve
import cordes.solvers.certified
import cordes.studies.bench
from cordes.gallery.paper_tables import TABLES, tightest
from cordes.problems.written.files import load_problem
from cordes.references import chebyshev

KEYS = {
    "verdict",
    "relative_residual",
    "problem",
    "method",
    "result",
    "parameters",
    "points",
    "seconds",
    "error",
    "reference",
    "condition",
    "certificate",
    "proof",
    "residual",
    "seed",
}
DISK = """
schema = 1
kind = "linear"
name = "disk [1]"
[domain]
type = "ball"
center = [0, 0]
radius = 1
[equation]
A = [[1, 0], [0, 1]]
f = "-8 * x1"
exact = "(1 - x1**2 - x2**2) * x1"
"""
VIOLATING = """
import cordes, jax.numpy as jnp
print("a problem file may print")
ball, A = cordes.Ball([0, 0, 0], 1.0), jnp.diag(jnp.array([10.0, 1.0, 1.0]))
problem = cordes.Linear(ball, A, lambda x: 2.0 - jnp.maximum(jnp.floor(x[0] + 0.7), 0.0))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problems")
    (folder / "disk.toml").write_text(DISK)
    (folder / "violating.py").write_text(VIOLATING)
    return folder


@pytest.fixture
def no_solve(monkeypatch):
    """What is refused must be refused before the solve."""
    monkeypatch.setattr(cordes, "solve", lambda *_, **__: pytest.fail("the solve was started"))


@pytest.fixture
def stations(monkeypatch):
    """The way of the data: which of its stations a command calls, in order."""
    called = []

    def noted(name, function):
        return lambda *given, **options: (called.append(name), function(*given, **options))[1]

    for place, name in (
        (cordes, "problem"),
        (cordes, "check"),
        (cordes, "solve"),
        (cordes.solvers.certified, "certify"),
        (cordes.certificates.certify, "certify"),
        (cordes.commands.solve, "write_files"),
        (cordes.commands.files, "write_report"),
    ):
        monkeypatch.setattr(place, name, noted(name, getattr(place, name)))
    return called


def test_solve_writes_json_and_files(invoke, folder, tmp_path, stations):
    out = tmp_path / "made" / "here"
    status, stdout, _ = invoke(
        "solve", folder / "disk.toml", "--features", 60, "--seed", 3, "--out", out, "--json"
    )
    facts = json.loads(stdout)
    assert status == 0
    assert stations == ["problem", "check", "solve", "certify", "write_files", "write_report"]
    assert facts.keys() == KEYS | {"files", "command"}
    assert (facts["problem"], facts["method"], facts["result"], facts["seed"]) == (
        "disk [1]",
        "least-squares",
        "converged",
        3,
    )
    rows = dict(facts["seconds"])
    assert rows.pop("total") == pytest.approx(sum(rows.values()), abs=1e-9)
    assert list(rows) == ["import", "prepare", "compile", "solve", "certify", "files"]
    assert all(value > 0 for name, value in rows.items() if name not in ("import", "compile"))
    assert json.loads((out / "result.json").read_text())["seconds"] == facts["seconds"]
    assert facts["error"]["l2"] <= facts["error"]["linf"] < 1e-6
    assert facts["reference"] is None
    certificate = facts["certificate"]
    assert certificate.keys() >= {
        "theorem",
        "level",
        "H2",
        "H1",
        "L2",
        "rms",
        "Linf",
        "energy",
        "map_L2",
        "W2",
        "reason",
    }
    assert certificate["energy"].keys() == {"lower", "upper", "lambda"}
    assert facts["error"]["l2"] <= certificate["rms"] < 1e-3
    assert facts["error"]["linf"] <= certificate["Linf"]
    assert certificate["level"] == "enclosed"
    assert facts["seconds"]["certify"] > 0
    assert facts["condition"] == {
        "epsilon": 1.0,
        "satisfied": True,
        "lambda": None,
        "source": "analytic",
    }
    assert json.loads((out / "result.json").read_text()) == facts
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "result.json",
        "solution.png",
        "certificate.png",
        "answer.cordes",
        "solution.vtu",
    }
    assert cordes.load(out / "answer.cordes").error().linf == pytest.approx(
        facts["error"]["linf"], rel=1e-3
    )


def test_solve_prints_a_table(invoke, folder):
    status, stdout, stderr = invoke("solve", folder / "disk.toml", "--features", 60)
    assert status == 0
    assert stderr == ""
    for word in (
        "disk [1]",
        "satisfied",
        "least-squares",
        "converged",
        "parameters",
        "compile",
        "solve",
        "certificate",
        "root mean square error: ≤",
        "enclosed",
    ):
        assert word in stdout


def test_tolerance_not_reached(invoke, folder):
    status, stdout, _ = invoke("solve", folder / "disk.toml", "--features", 20, "--tol", 1e-15)
    assert status == 1
    assert "tolerance_not_reached" in stdout
    assert "what to do" in stdout


def test_paper_preset_ends_in_time(invoke, folder):
    status, stdout, _ = invoke(
        "solve",
        folder / "disk.toml",
        "--preset",
        "paper",
        "--max-seconds",
        0.001,
        "--no-multiplier",
        "--boundary",
        "soft",
        "--json",
    )
    facts = json.loads(stdout)
    assert status == 1
    assert (facts["result"], facts["method"], facts["points"]) == ("time_out", "adam", 11_000)


def test_violated_condition_is_solved(invoke, folder):
    status, stdout, stderr = invoke("solve", folder / "violating.py", "--features", 60, "--json")
    facts = json.loads(stdout)
    assert status in (0, 1)
    assert facts["problem"] == "violating"
    assert facts["condition"]["satisfied"] is False
    assert facts["condition"]["epsilon"] == pytest.approx(144 / 102 - 2)
    assert facts["error"] is None
    # One clean line for the jump that was not declared; what the file printed went to standard
    # error as well.
    assert "a problem file may print" in stderr
    warning = next(line for line in stderr.splitlines() if "jumps near" in line)
    assert warning.startswith("Warning: f jumps")
    assert ".py" not in warning


def test_check(invoke, folder):
    status, stdout, _ = invoke("check", folder / "violating.py", "--json")
    facts = json.loads(stdout)
    assert status == 0
    assert facts["satisfied"] is False
    assert facts["multiplier_range"] == pytest.approx([12 / 102, 12 / 102])
    assert np.shape(facts["worst_point"]) == (3,)
    status, stdout, _ = invoke("check", folder / "violating.py")
    assert status == 0
    assert "VIOLATED" in stdout


def test_reference_where_no_solution_is_known(invoke, monkeypatch):
    monkeypatch.setattr(
        chebyshev,
        "solve_chebyshev",
        functools.partial(chebyshev.solve_chebyshev, degree=8, layers=1),
    )
    _, stdout, _ = invoke("solve", "ex4.4-continuous", "--features", 100, "--json")
    facts = json.loads(stdout)
    assert facts["error"] is None
    assert facts["reference"]["name"] == "chebyshev"
    assert 0 < facts["reference"]["linf"] < 1e-4


def test_gallery(invoke):
    status, stdout, _ = invoke("gallery", "--json")
    assert status == 0
    assert [problem["name"] for problem in json.loads(stdout)["problems"]] == list(cordes.gallery)
    status, stdout, _ = invoke("gallery")
    assert status == 0
    assert "ex4.4-discontinuous" in stdout


@pytest.mark.usefixtures("no_solve")
@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["solve", "ex4.2-contnuous"], "option", "ex4.2-continuous"),
        (["solve", "missing.toml"], "file", "missing.toml"),
        (["solve", "missing.py"], "file", "missing.py"),
        (["solve", "/"], "file", ".toml or .py"),
        (["solve", "ex4.2-continuous", "--metod", "adam"], "option", "--method"),
        (["solve", "ex4.2-continuous", "--tol", "small"], "option", "--tol"),
        (["solve", "ex4.2-continuous", "--epochs", "0"], "option", "--epochs"),
        (["solve", "ex4.2-continuous", "--seed", "-1"], "option", "--seed"),
        (["solve"], "option", "NAME"),
        (["solv", "ex4.2-continuous"], "option", "solve"),
        (["check", "ex4.2-contnuous"], "option", "ex4.2-continuous"),
        (["bench", "ex4.2-contnuous"], "option", "ex4.2-continuous"),
    ],
)
def test_bad_input(invoke, arguments, kind, words):
    status, stdout, _ = invoke(*arguments, "--json")
    error = json.loads(stdout)["error"]
    assert status == 2
    assert error["kind"] == kind
    assert words in error["message"]
    status, stdout, stderr = invoke(*arguments)
    assert status == 2
    assert stdout == ""
    assert stderr.startswith("Error: ")
    assert words in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "adm"], "adam"),
        (["--preset", "papr"], "paper"),
        (["--epochs", "5"], "adam"),
        (["--method", "gauss-newton", "--features", "5"], "least-squares"),
        (["--tol", "-1"], "tol = -1.0"),
        (["--max-seconds", "0"], "max_seconds"),
        (["--boundary", "neumann"], "Neumann"),
    ],
)
def test_bad_options(invoke, folder, options, words):
    status, stdout, _ = invoke("solve", folder / "disk.toml", *options, "--json")
    error = json.loads(stdout)["error"]
    assert status == 2
    assert error["kind"] == "option"
    assert words in error["message"]


@pytest.mark.usefixtures("no_solve")
def test_bad_expression_is_shown_as_written(invoke, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(DISK.replace('"-8 * x1"', '"x[1]"'))
    status, _, stderr = invoke("solve", path)
    assert status == 2
    # Square brackets are markup to rich: they must survive.
    assert "x[1]" in stderr
    status, stdout, _ = invoke("solve", path, "--json")
    assert status == 2
    assert json.loads(stdout)["error"]["kind"] == "file"


@pytest.mark.usefixtures("no_solve")
def test_unwritable_output_is_refused_before_the_solve(invoke, folder, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / "result.json").mkdir(parents=True)
    for out in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "taken", "/proc/cannot"):
        status, stdout, _ = invoke("solve", folder / "disk.toml", "--out", out, "--json")
        error = json.loads(stdout)["error"]
        assert status == 2
        assert error["kind"] == "file"
        assert str(out) in error["message"]


def test_interrupt_and_fault(invoke, folder, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def raise_error(error):
        raise error

    monkeypatch.setattr(cordes, "solve", lambda *_, **__: raise_error(KeyboardInterrupt()))
    status, stdout, _ = invoke("solve", folder / "disk.toml", "--json")
    assert status == 130
    assert json.loads(stdout)["error"]["kind"] == "interrupted"
    monkeypatch.setattr(cordes, "solve", lambda *_, **__: raise_error(ZeroDivisionError("nought")))
    status, stdout, stderr = invoke("solve", folder / "disk.toml", "--json")
    error = json.loads(stdout)["error"]
    assert (status, error["kind"], stderr) == (70, "internal", "")
    told = next(tmp_path.glob("cordes-fault-*.txt"))
    assert str(told) in error["message"]
    assert "Traceback" in told.read_text()


def test_json_has_no_nan(invoke, monkeypatch):
    monkeypatch.setattr(
        cordes.studies.bench,
        "bench",
        lambda *_: {
            "result": "nonfinite",
            "l2": float("nan"),
            "list": [np.inf, np.float64(1.5), 2],
        },
    )
    monkeypatch.setattr("cordes.reports.tables.bench_table", lambda _: "")
    status, stdout, _ = invoke("bench", "ex4.2-continuous", "--json")
    assert status == 1
    assert json.loads(stdout, parse_constant=pytest.fail) == {
        "result": "nonfinite",
        "l2": None,
        "list": [None, 1.5, 2],
    }


def test_bench(invoke, folder, monkeypatch):
    monkeypatch.setattr(
        cordes.studies.bench, "epoch_seconds", lambda dimension, steps, repeats: 0.25 * dimension
    )
    monkeypatch.setattr(cordes.studies.bench, "solve", functools.partial(cordes.solve, features=60))
    # A cheap problem under the name of one that the paper has a table for.
    problem = load_problem(folder / "disk.toml").labelled(source={"gallery": "ex4.2-continuous"})
    monkeypatch.setattr(cordes, "problem", lambda _: problem)
    status, stdout, _ = invoke("bench", "ex4.2-continuous", "--json")
    facts = json.loads(stdout)
    assert status == 0
    assert facts.keys() >= {"problem", "epoch_s", "solve_s", "epochs_equivalent", "l2", "paper"}
    assert facts["repeats"] == 3
    assert facts["epoch_s"] == 0.5
    assert facts["epochs_equivalent"] == pytest.approx(facts["solve_s"] / 0.5)
    assert facts["paper"] == {"l2": 4.96e-4, "epochs": 4970, "seconds": 72.33}
    status, stdout, _ = invoke("bench", "ex4.2-continuous")
    assert status == 0
    assert "4970 epochs" in stdout


def test_paper_tables():
    assert tightest("ex4.3-cube5").epochs == 7980
    assert tightest("ex4.6-monge-ampere").newton == 28
    assert tightest("ex4.4-continuous") is None
    for rows in TABLES.values():
        for row in rows:
            # A target counts as reached exactly where epochs are given.
            assert (row.l2 <= row.target) == (row.epochs is not None)
            assert (row.epochs is None) == (row.seconds is None)


def test_module_in_a_process_of_its_own():
    """As a user starts it; nothing but the object on standard output."""
    failed = subprocess.run(
        [sys.executable, "-m", "cordes", "solve", "nothing", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["error"]["kind"] == "option"


def test_version_and_help(invoke):
    assert invoke("--version") == (0, f"cordes {cordes.__version__}\n", "")
    status, stdout, _ = invoke()
    assert status == 0
    assert "gallery" in stdout
    status, stdout, _ = invoke("solve", "--help")
    assert status == 0
    assert "program" in stdout


def test_a_file_named_without_its_ending_is_pointed_out(invoke, folder, monkeypatch):
    monkeypatch.chdir(folder)
    status, stdout, _ = invoke("check", "disk", "--json")
    assert status == 2
    assert "Did you mean the file disk.toml?" in json.loads(stdout)["error"]["message"]
