"""Figures and VTK files: every panel shows something, the domain is cut out, numbers are those of
the solution."""

import matplotlib.image
import numpy as np
import pytest
from vtu_file import read_vtu

import cordes
from cordes.errors import FileError, OptionError


def polynomial_problem(dimension, known=True, name="ball"):
    """u = (1 - |x|²) x1 in the unit ball, -Δu = (4 + 2d) x1."""
    return cordes.Linear(
        cordes.Ball([0.0] * dimension, 1.0),
        1.0,
        lambda x: -(4 + 2 * dimension) * x[0],
        exact=(lambda x: (1 - x @ x) * x[0]) if known else None,
        name=name,
    )


@pytest.fixture(scope="module")
def solutions():
    """One cheap answer for each kind of figure."""
    small = {"method": "least-squares", "features": 30}
    return {
        "line": cordes.solve(
            cordes.Linear(cordes.Box([0.0], [2.0]), 1.0, 2.0, exact=lambda x: x[0] ** 2 - 2 * x[0]),
            **small,
        ),
        "line-unknown": cordes.solve(cordes.Linear(cordes.Box([0.0], [2.0]), 1.0, 2.0), **small),
        "disk": cordes.solve(polynomial_problem(2), **small),
        "disk-unknown": cordes.solve(polynomial_problem(2, known=False), **small),
        "ball": cordes.solve(polynomial_problem(3), **small),
        "ball-4": cordes.solve(polynomial_problem(4, known=False), **small),
        "strip": cordes.solve(
            cordes.Linear(cordes.Polygon([[0, 0], [6, 0], [6, 1], [0, 1]]), 1.0, 2.0),
            singular=False,
            **small,
        ),
    }


TITLES = {
    "line": ["u", "|error|"],
    "line-unknown": ["u", "|residual|"],
    "disk": ["exact", "computed", "|error|"],
    "disk-unknown": ["computed", "|residual|"],
    "ball": ["exact", "computed", "|error|"] * 3,
    "ball-4": ["computed", "|residual|"],
    "strip": ["computed", "|residual|"],
}


@pytest.mark.parametrize("name", TITLES)
def test_figure(solutions, name, tmp_path):
    path = tmp_path / "figure.png"
    figure = solutions[name].plot(path)
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == TITLES[name]
    dimension = solutions[name].problem.domain.dimension
    where = {
        3: "slices through the centre (0, 0, 0) ",
        4: "slice through the centre (0, 0, 0, 0) ",
    }.get(dimension, "")
    assert where in figure.get_suptitle()
    image = matplotlib.image.imread(path)[..., :3]
    columns = 2 if len(TITLES[name]) == 2 else 3
    for panel in np.array_split(image, columns, axis=1):
        assert panel.std() > 0.05
    # Nothing is cut off: the outermost pixels are empty.
    assert all(np.all(edge == 1) for edge in (image[0], image[-1], image[:, 0], image[:, -1]))


def test_map_is_cut_out_and_true(solutions):
    exact, computed, error = solutions["disk"].plot().axes[:3]
    values = computed.collections[0].get_array()
    shown = ~np.ma.getmaskarray(values) & np.isfinite(values.filled(np.nan))
    assert shown.mean() == pytest.approx(np.pi / 4, abs=0.01)
    assert values[shown].max() == pytest.approx(2 / 27**0.5, abs=1e-3)
    # Exact and computed have the same colours, or they could not be compared.
    assert exact.collections[0].norm.vmax == computed.collections[0].norm.vmax
    assert error.collections[0].norm.vmax == pytest.approx(solutions["disk"].error().linf, rel=0.3)


@pytest.mark.parametrize("name", ["line", "disk", "ball", "disk-unknown"])
def test_vtu(solutions, name, tmp_path):
    solution = solutions[name]
    d = solution.problem.domain.dimension
    mesh = read_vtu(solution.to_vtk(tmp_path / "answer.vtu"))
    points = mesh.points[:, :d]
    assert np.all(solution.problem.domain.contains(points, tolerance=1e-9))
    assert np.allclose(mesh.point_data["u"], solution(points), atol=1e-14)
    assert np.allclose(mesh.point_data["residual"], solution.residual(points), atol=1e-10)
    assert np.allclose(
        mesh.point_data["gradient"].reshape(len(points), -1)[:, :d],
        solution.gradient(points),
        atol=1e-12,
    )
    assert ("exact" in mesh.point_data) == (solution.problem.exact is not None)
    if d > 1:
        assert mesh.cells[0].type == {2: "quad", 3: "hexahedron"}[d]


def test_refusals(solutions, tmp_path):
    with pytest.raises(OptionError, match="4 dimensions"):
        solutions["ball-4"].to_vtk(tmp_path / "answer.vtu")
    with pytest.raises(FileError, match="does not exist"):
        solutions["disk"].plot(tmp_path / "missing" / "figure.png")
    with pytest.raises(FileError, match="folder"):
        solutions["disk"].to_vtk(tmp_path)
