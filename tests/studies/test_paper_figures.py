"""Figures of the paper: what is drawn is what the answers say, what hides what in the cutaway, and
bad input is refused before anything is solved."""

import matplotlib.image
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import cordes
from cordes.errors import CordesError, FileError, OptionError, UnknownNameError
from cordes.solutions.errors import Error
from cordes.studies import paper_figures as studied
from cordes.studies.pages import paper as paper_plots
from cordes.studies.pages.paper import (
    Contender,
    plot_against_reference,
    plot_cutaway,
    plot_deformed_grid,
    save_figure,
)
from cordes.studies.paper_figures import EXAMPLES, paper_figures
from cordes.surfaces.files import write_mesh
from cordes.surfaces.flatten import flatten
from cordes.surfaces.folded import folded_surface

NAME = "ex4.2-continuous"


@pytest.fixture
def answers(solved, monkeypatch):
    """A cheap auto, a hardly trained C-PINN, and the figures as they are saved."""
    auto = solved(NAME, method="least-squares", features=80)
    trained = solved(NAME, method="adam", preset="paper", epochs=20, points=400, width=16, depth=2)
    figures = []
    monkeypatch.setattr(cordes, "solve", lambda problem, **_: auto)
    monkeypatch.setattr(
        studied,
        "save_figure",
        lambda figure, path: (figures.append(figure), save_figure(figure, path))[1],
    )
    return auto, trained, figures


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def shown(axes):
    return np.ma.filled(axes.collections[0].get_array(), np.nan)


def check_picture(path, panels):
    """Every panel has many colours, nothing is cut off at the rim, and the file is small."""
    image = matplotlib.image.imread(path)[..., :3]
    for panel in np.array_split(image, panels, axis=1):
        assert panel.std() > 0.05
        assert len(np.unique((panel.reshape(-1, 3) * 255).astype(int), axis=0)) > 100
    assert all(np.all(edge == 1) for edge in (image[0], image[-1], image[:, 0], image[:, -1]))
    assert path.stat().st_size < 400_000


@pytest.mark.parametrize("with_trained", [False, True])
def test_comparison_shows_the_answers_with_their_errors(answers, with_trained, tmp_path):
    auto, trained, figures = answers
    lines = []
    paths = paper_figures(
        tmp_path / "new" / "folder",
        {NAME: trained} if with_trained else {},
        [NAME],
        report=lines.append,
    )
    assert paths == [tmp_path / "new" / "folder" / f"{NAME}.png"]
    assert any(str(paths[0]) in line for line in lines)
    errors = ({"C-PINN": trained.error()} if with_trained else {}) | {"auto": auto.error()}
    expected = [
        f"|error| of {label}\nl2 {error.l2:.1e}, max {error.linf:.1e}"
        for label, error in errors.items()
    ]
    assert titles(figures[0]) == ["exact", next(iter(errors)), *expected]
    check_picture(paths[0], len(expected) + 2)
    middles = np.linspace(-1, 1, 161)[:-1] + 1 / 160
    x, y = np.meshgrid(middles, middles)
    exact = np.sin(2 * np.pi * x) * np.sin(np.pi * y) * np.exp(x * np.cos(y))
    assert shown(figures[0].axes[0]) == pytest.approx(exact, abs=1e-12)
    for axes, error in zip(figures[0].axes[2:], errors.values(), strict=True):
        assert shown(axes).max() == pytest.approx(error.linf, rel=0.1)


def stand_in(label, function):
    return Contender(label, function, Error(1.2e-3, 4.5e-2, 1e-3))


def test_cutaway_hides_what_is_behind():
    """Oracle: steps along every ray. From a point that is seen to the viewer there is nothing of
    the body, and just behind it there is."""
    domain = cordes.Ellipsoid([0.5, 0.0, -1.0], [1.5, 1.0, 0.8])
    view = paper_plots._look(domain)
    corner = paper_plots.cut_corner(domain)

    def body(points):
        return domain.contains(points) & ~np.all(points > corner, axis=-1)

    toward = paper_plots.VIEWER / np.linalg.norm(paper_plots.VIEWER)
    points = view.points[:: len(view.points) // 3000]
    ahead = points[:, None] + np.geomspace(1e-6, 4, 200)[:, None] * toward
    assert not np.any(body(ahead))
    assert np.mean(body(points - 1e-3 * toward)) > 0.99
    on_plane = np.min(np.abs(view.points - corner), axis=1) < 1e-12
    assert np.array_equal(on_plane, view.flat)
    assert 0.3 < view.flat.mean() < 0.7
    # The shadow of the ellipsoid is an ellipse.
    shadow = view.axes[:2] @ domain.matrix
    box = (view.extent[1] - view.extent[0]) * (view.extent[3] - view.extent[2])
    share = len(view.filled) / (view.shape[0] * view.shape[1])
    assert share * box == pytest.approx(np.pi * np.sqrt(np.linalg.det(shadow @ shadow.T)), rel=2e-3)


def test_cutaway_picture(tmp_path):
    domain = cordes.Ellipsoid([0, 0, 0], [1.5, 1.0, 0.8])

    def exact(points):
        return 1 - np.sum((points / [1.5, 1.0, 0.8]) ** 2, axis=1)

    figure = plot_cutaway(
        domain,
        [stand_in("tiny", lambda points: exact(points) * (1 + 1e-3 * points[:, 0]))],
        exact,
        "headline",
    )
    assert titles(figure) == ["tiny", "|error| of tiny\nl2 1.2e-03, max 4.5e-02"]
    check_picture(save_figure(figure, tmp_path / "cutaway.png"), 2)
    # At the corner of the cut, a fifth of each semi-axis from the centre, u = 1 - 3/25; nothing
    # shades the flat faces.
    image = figure.axes[0].images[0]
    view = paper_plots._look(domain)
    nearest = np.argmin(np.linalg.norm(view.points - paper_plots.cut_corner(domain), axis=1))
    colour = np.asarray(image.get_array()).reshape(-1, 3)[view.filled[nearest]]
    scale = paper_plots.linear_scale(exact(view.points))
    assert colour == pytest.approx(matplotlib.colormaps["viridis"](scale(1 - 3 / 25))[:3], abs=0.03)


def test_cross_section_and_maps_against_a_reference(tmp_path):
    domain = cordes.Box([-1, -1], [1, 1])

    def bowl(points):
        return -(1 - points[:, 0] ** 2) * (1 - points[:, 1] ** 2)

    reference = Contender("Chebyshev", bowl, Error(float("nan"), 3e-9, float("nan")))
    found = [
        stand_in("C-PINN", lambda points: 0.9 * bowl(points)),
        stand_in("auto", lambda points: (1 + 1e-8) * bowl(points)),
    ]
    figure = plot_against_reference(domain, reference, found, "headline")
    numbers = "\nl2 1.2e-03, max 4.5e-02"
    assert titles(figure) == [
        "auto",
        "|C-PINN − Chebyshev|" + numbers,
        "|auto − Chebyshev|" + numbers,
        "cross-section $x_2$ = 0",
    ]
    above, below = figure.axes[3:]
    x = np.linspace(-1, 1, 801)
    curves = {line.get_label(): line.get_ydata() for line in above.lines}
    assert curves["Chebyshev"] == pytest.approx(x**2 - 1)
    assert curves["C-PINN"] == pytest.approx(0.9 * (x**2 - 1))
    assert np.nanmax(below.lines[0].get_ydata()) == pytest.approx(0.1)
    assert np.nanmax(below.lines[1].get_ydata()) == pytest.approx(1e-8, rel=1e-5)
    check_picture(save_figure(figure, tmp_path / "figure.png"), 4)


def test_grid_is_moved_by_the_map():
    domain = cordes.Box([0, 0], [1, 2])

    def move(points):
        return points + 0.05 * np.sin(2 * np.pi * points)

    def density(points):
        return 1 + 0.1 * points[:, 0]

    figure = plot_deformed_grid(
        domain, (density, density), lambda points: points, [stand_in("auto", move)], "headline"
    )
    before, after = (
        next(item for item in axes.collections if isinstance(item, LineCollection)).get_segments()
        for axes in figure.axes[:2]
    )
    assert len(before) == 66
    assert np.concatenate(after) == pytest.approx(move(np.concatenate(before)))
    assert np.concatenate(before).max(axis=0) == pytest.approx([1, 2])
    # The length of the displacement, and not one of its components.
    assert shown(figure.axes[2]).max() == pytest.approx(0.05 * np.sqrt(2), rel=1e-3)


def test_surfaces_are_those_that_are_given(monkeypatch, tmp_path):
    """The drawing itself is that of `cordes surface` and has its own tests."""
    drawn = {}

    def draw(disk, maps, size, title):
        drawn[title] = (len(disk.mesh.vertices), list(maps))
        return Figure(figsize=(30, 2))

    monkeypatch.setattr(studied, "flatten", lambda mesh, say: flatten(mesh, network=False, say=say))
    monkeypatch.setattr(studied, "plot_surface", draw)
    write_mesh(tmp_path / "sheet.obj", folded_surface(columns=40, rows=20))
    lines = []
    paths = paper_figures(
        tmp_path, names=["ex5.2-surface"], meshes=[tmp_path / "sheet.obj"], report=lines.append
    )
    assert [path.name for path in paths] == ["ex5.2-surface-sheet.png"]
    assert drawn == {"ex5.2-surface — sheet": (800, ["conformal", "dct"])}
    assert any("sheet: conformal: SD of log area" in line for line in lines)
    # A figure of thirty inches is drawn smaller.
    assert matplotlib.image.imread(paths[0]).shape[:2] == (88, 11 * paper_plots.DPI)


def test_noise_does_not_make_a_large_file(tmp_path):
    figure = Figure(figsize=(9, 5))
    figure.figimage(np.random.default_rng(0).random((600, 1080)), cmap="gray")
    path = save_figure(figure, tmp_path / "noise.png")
    assert path.stat().st_size <= paper_plots.LARGEST_FILE
    assert 500 < matplotlib.image.imread(path).shape[1] < 9 * paper_plots.DPI


def test_bad_input_is_refused_before_anything_is_solved(answers, monkeypatch, tmp_path):
    _, trained, _ = answers
    monkeypatch.setattr(cordes, "solve", lambda *_, **__: pytest.fail("solved"))
    with pytest.raises(UnknownNameError, match=r"'ex4.2-continous'. Did you mean ex4.2-continuous"):
        paper_figures(tmp_path, names=[NAME, "ex4.2-continous"])
    with pytest.raises(UnknownNameError, match="transport-box"):
        paper_figures(tmp_path, {"transport-box": trained})
    with pytest.raises(OptionError, match=f"answer for ex4.5-hjb solves {NAME}"):
        paper_figures(tmp_path, {"ex4.5-hjb": trained}, [NAME])
    write_mesh(tmp_path / "sheet.obj", folded_surface(columns=40, rows=20))
    with pytest.raises(OptionError, match="Two meshes are named sheet"):
        paper_figures(tmp_path, meshes=[tmp_path / "sheet.obj", tmp_path / "sheet.obj"])
    with pytest.raises(CordesError, match="missing"):
        paper_figures(tmp_path, meshes=[tmp_path / "missing.obj"])
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file cannot be written"):
        paper_figures(tmp_path / "file")
    assert paper_figures(tmp_path, names=[]) == []


def test_every_example_of_the_paper_has_a_figure():
    assert set(EXAMPLES) == {name for name in cordes.gallery if name.startswith("ex")}
