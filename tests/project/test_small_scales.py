"""The benchmark of small scales against elements, as far as it goes without them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "rivals"


@pytest.fixture(scope="module")
def program():
    sys.path.insert(0, str(FOLDER))
    try:
        import small_scales
    finally:
        sys.path.remove(str(FOLDER))
    return small_scales


def test_points_are_in_the_domain_and_near_what_is_small(program):
    for name in program.ELEMENTS:
        x = program.points_of(name)
        low = -1 if name.startswith("circle") else 0
        assert np.all((low < x) & (x < 1))
        assert len(x) > 2000
    layer = program.points_of("layer-1e-3")
    assert np.mean(layer[:, 0] < 5e-3) > 0.4
    circle = np.linalg.norm(program.points_of("circle-undeclared"), axis=1)
    assert np.mean(np.abs(circle - 0.5) < 0.1) > 0.4


def test_elements_solve_the_problems_of_cordes(program):
    """The same names, and the peak that both know."""
    sys.path.insert(0, str(FOLDER.parent / "scales"))
    try:
        from problems import HARDER
    finally:
        sys.path.pop(0)
    assert set(program.ELEMENTS) <= set(HARDER)
    problem, (a, b) = HARDER["peak"](), program.PEAK
    x = np.array([a + program.WIDTH, b])
    assert float(problem.exact(x)) == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize("wrong", [["no-such-problem"], ["peak", "--repeats", "0"]])
def test_what_is_wrong_is_refused(wrong):
    command = [sys.executable, str(FOLDER / "small_scales.py"), *wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "layer-1e-3" in done.stderr
