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


@pytest.fixture(scope="module")
def harder():
    """The problems as cordes solves them."""
    sys.path.insert(0, str(FOLDER.parent / "scales"))
    try:
        from problems import HARDER
    finally:
        sys.path.pop(0)
    return HARDER


def test_points_are_in_the_domain_and_near_what_is_small(program, harder):
    for name in program.ELEMENTS:
        x = program.points_of(name)
        if name in ("free-boundary", "polygon12", "box3d"):
            assert np.all(harder[name]().domain.contains(x)), name
        else:
            low = -1 if name.startswith("circle") else 0
            assert np.all((low < x) & (x < 1))
        assert len(x) > 2000
    layer = program.points_of("layer-1e-3")
    assert np.mean(layer[:, 0] < 5e-3) > 0.4
    circle = np.linalg.norm(program.points_of("circle-undeclared"), axis=1)
    assert np.mean(np.abs(circle - 0.5) < 0.1) > 0.4


def test_elements_solve_the_problems_of_cordes(program, harder):
    """The same names, the peak that both know, and the same polygon."""
    assert set(program.ELEMENTS) | {"dean-glowinski"} == set(harder)
    corners = harder["polygon12"]().domain.vertices
    np.testing.assert_allclose(program.corners_of_polygon(), corners, atol=1e-15)
    problem, (a, b) = harder["peak"](), program.PEAK
    x = np.array([a + program.WIDTH, b])
    assert float(problem.exact(x)) == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize("wrong", [["no-such-problem"], ["peak", "--repeats", "0"]])
def test_what_is_wrong_is_refused(wrong):
    command = [sys.executable, str(FOLDER / "small_scales.py"), *wrong]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "layer-1e-3" in done.stderr


@pytest.fixture(scope="module")
def truths():
    sys.path.insert(0, str(FOLDER.parent / "scales"))
    try:
        import truths
    finally:
        sys.path.pop(0)
    return truths


def test_layers_by_another_method_fulfil_their_equation(truths):
    """By differences, inside of the layer too."""
    epsilon, right, step = 0.05, -2.0, 1e-3
    x = np.array([[0.02, 0.3], [0.3, 0.04], [0.5, 0.5], [0.9, 0.95]])
    stencil = step * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    values = truths.layer(epsilon, right, (x[:, None] + stencil).reshape(-1, 2), 12).reshape(-1, 5)
    middle, east, west, north, south = values.T
    bent = (east + west + north + south - 4 * middle) / step**2
    slopes = (east - west) / (2 * step), (north - south) / (2 * step)
    left = epsilon * bent + truths.DRIFT[0] * slopes[0] + truths.DRIFT[1] * slopes[1]
    np.testing.assert_allclose(left, right, rtol=2e-3)
    rim = np.array([[0.0, 0.3], [1.0, 0.3], [0.3, 0.0], [0.3, 1.0]])
    np.testing.assert_allclose(truths.layer(epsilon, right, rim, 12), 0, atol=1e-12)


def test_layers_by_another_method_are_those_of_cordes(truths, harder):
    for name, (epsilon, right) in truths.LAYERS.items():
        if name in harder:
            problem, x = harder[name](), np.array([0.3, 0.6])
            np.testing.assert_allclose(problem.A(x), epsilon * np.eye(2))
            np.testing.assert_allclose(problem.b(x), truths.DRIFT)
            assert float(problem.f(x)) == right
