"""A new kind of equation is three files: a problem, its certificate, its words in a report. The toy
of CONTRIBUTING.md lives in tests/support/semilinear, and goes the whole way of the data."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from semilinear import certificate, page  # noqa: F401
from semilinear.problem import Semilinear

import cordes
from cordes.reports.pages.answer import write_report

FOLDER = Path(__file__).parents[1] / "support" / "semilinear"


def exact(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])


def source(x):
    return -2 * jnp.pi**2 * exact(x) - exact(x) ** 3


@pytest.fixture(scope="module")
def solution():
    square = cordes.Box([0, 0], [1, 1])
    problem = Semilinear(square, 1.0, source, lambda u: u**3, exact=exact)
    return cordes.solve(problem, features=200, progress=False)


def test_the_toy_is_solved_and_its_bound_holds(solution):
    error, bound = solution.error(), solution.certificate.Linf
    assert error.linf < 1e-6
    assert error.linf <= bound <= 1e4 * error.linf
    assert str(solution.certificate.theorem) == "ABP"
    assert cordes.check(solution.problem).satisfied
    # A bound that holds for any function: one that is far from the solution.
    far = cordes.certify(solution.problem, lambda x: 0.9 * exact(x))
    grid = np.linspace(0, 1, 101)
    assert far.Linf >= 0.1 * float(np.max(np.sin(np.pi * grid))) ** 2


def test_its_page_is_written(solution, tmp_path):
    text = write_report(tmp_path / "report.html", solution).read_text()
    assert "φ(u)" in text
    assert "φ increases." in text
    assert "could not be drawn" not in text


def test_three_files_are_all():
    files = [path.name for path in FOLDER.glob("*.py") if path.name != "__init__.py"]
    assert sorted(files) == ["certificate.py", "page.py", "problem.py"]
    lines = [len((FOLDER / name).read_text().splitlines()) for name in files]
    guide = (FOLDER.parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = guide.partition("## Adding an equation")[2].partition("## ")[0]
    told = re.findall(r"^\| one in `.+?` \| (\d+) \|", table, re.MULTILINE)
    assert sorted(map(int, told)) == sorted(lines)
