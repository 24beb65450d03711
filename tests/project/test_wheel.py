"""The package as people get it: sdist and wheel are built, and the wheel is installed into an empty
environment and used from another folder. Nothing is downloaded: the other packages are those that
are here."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import cordes

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
DATA = (".css", ".js", ".toml", ".typed")


def run(*words, cwd):
    """A program that knows nothing of this checkout."""
    hidden = ("PYTHONPATH", "PYTHONHOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the sdist and the wheel, which is made from the sdist."""
    pytest.importorskip("build", reason="python -m pip install build")
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    source.mkdir()
    for name in ("cordes", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=skipped)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, source)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=source)
    return folder / "dist"


def only(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """An environment in which cordes comes from the wheel and all else from where the tests run."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    wheel = only(built, "*.whl")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    run(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=folder)
    packages = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
        ).strip()
    )
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(only(built, "*.whl")) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    here = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cordes").rglob("*")
        if path.suffix in (".py", *DATA)
    }
    assert set(names) == here
    assert "cordes/py.typed" in names
    assert "cordes/commands/templates/linear.toml" in names
    assert {PurePosixPath(name).suffix for name in names} == {".py", *DATA}


def test_the_sdist_holds_what_a_packager_needs(built):
    with tarfile.open(only(built, "*.tar.gz")) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}
    assert wanted <= names
    assert "cordes/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "docs/"))]


def test_the_wheel_is_used_from_another_folder(installed, tmp_path):
    command = installed / "bin" / "cordes"
    assert run(command, "--version", cwd=tmp_path) == f"cordes {cordes.__version__}\n"
    made = json.loads(run(command, "new", "plate", "--json", cwd=tmp_path))
    assert (tmp_path / made["file"]).is_file()
    words = ("solve", made["file"], "--features", 300, "--out", "answer", "--json")
    solved = json.loads(run(command, *words, cwd=tmp_path))
    assert solved["result"] == "converged"
    assert 0 < solved["certificate"]["rms"] < 1e-2
    assert "<html" in (tmp_path / "answer" / "report.html").read_text(encoding="utf-8")


def test_the_wheel_is_what_is_imported(installed, tmp_path):
    script = "import cordes, json; print(json.dumps([cordes.__file__, dir(cordes)]))"
    file, names = json.loads(run(installed / "bin" / "python", "-c", script, cwd=tmp_path))
    assert Path(file).is_relative_to(installed)
    assert names == sorted(cordes.__all__)


CLIENT = """
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cordes
import jax.numpy as jnp
import numpy as np
from jax import Array


def source(x: Array) -> Array:
    return jnp.sin(x[0])


square = cordes.Box([0.0, 0.0], [1.0, 1.0])
problem = cordes.Linear(square, 1.0, source, interfaces=[source], exact=source)
coefficient: Callable[..., Array] = problem.f
drift: Callable[..., Array] = problem.b
known: Callable[[Array], Array] | None = problem.exact
where: Mapping[str, Any] | None = problem.source
other: cordes.Linear = problem.replace(f=2.0)
condition: cordes.Condition = cordes.check(problem)
epsilon: float = condition.epsilon
solver = cordes.LeastSquares(features=100)
options: Mapping[str, Any] = solver.data()
solution = cordes.solve(problem, method=solver, tol=1e-4)
values: np.ndarray = solution([0.5, 0.5])
slopes: np.ndarray = solution.gradient([[0.5, 0.5]])
bound: float | None = solution.certificate.rms if solution.certificate else None
certificate: cordes.Certificate = solution.certify(norm="Linf")
certified: cordes.Certificate = cordes.certify(problem, source)
reasons = [reason.kind for reason in certificate.reasons]
history: Sequence[Mapping[str, Any]] = solution.history
seconds: Mapping[str, float] = solution.seconds
kept: cordes.Solution = cordes.load("answer.cordes", problem)
named: cordes.AbstractProblem = cordes.gallery["ex4.1-smooth"]
found: cordes.AbstractProblem = cordes.problem("plate.toml")
table = cordes.interpolate(np.zeros((3, 3)), square)
density = cordes.density(np.zeros((3, 2)), square)
estimate: Callable[[Array], Array] = lambda x: table(x) * density(x)
control = cordes.HJB(square, [0.0, 1.0], 1.0, source)
sense: float = control.sign
monge = cordes.MongeAmpere(square, source, 0.0)
transport = cordes.Transport(square, source)
mass: float = max(transport.masses)
text: str = cordes.citation()
end: str = cordes.Result.converged.value
"""


def test_a_strict_type_check_of_a_users_file_passes_and_knows_wrong_names(installed, tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    (tmp_path / "right.py").write_text(CLIENT)
    (tmp_path / "wrong.py").write_text("import cordes\nprint(cordes.Boxx)\n")
    words = (sys.executable, "-m", "basedpyright", "--pythonpath", installed / "bin" / "python")
    run(*words, "right.py", cwd=tmp_path)
    with pytest.raises(AssertionError, match="Boxx"):
        run(*words, "wrong.py", cwd=tmp_path)
