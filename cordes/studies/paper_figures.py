"""The figures of the paper, example by example: what is drawn for which problem, and what must be
solved for it."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import cordes
from cordes.domains import Box
from cordes.errors import FileError, OptionError, unknown
from cordes.problems.coefficients import at_points
from cordes.problems.problem import AbstractProblem
from cordes.reports.facts import REFERENCES
from cordes.reports.plots import where_cut
from cordes.runtime.files import check_writable
from cordes.solutions.errors import Error
from cordes.solutions.solution import Solution
from cordes.studies.pages.paper import (
    Contender,
    Values,
    cut_corner,
    plot_against_reference,
    plot_comparison,
    plot_cutaway,
    plot_deformed_grid,
    resized,
    save_figure,
)
from cordes.surfaces.files import read_mesh
from cordes.surfaces.flatten import flatten
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.mesh import Mesh
from cordes.surfaces.pages.plots import plot_surface

# The other coordinates of the slice through the cube of five dimensions: on the coordinate planes
# half of the solution is zero.
LEVEL = 0.3
# The surfaces, and how wide their figures are in inches.
SURFACE, SURFACE_WIDTH = "ex5.2-surface", 11.0

Say = Callable[[str], None]
Figures = Iterator[tuple[str, Figure]]


def paper_figures(
    folder: Path,
    trained: Mapping[str, Solution] = MappingProxyType({}),
    names: Sequence[str] | None = None,
    meshes: Sequence[Path] = (),
    report: Say = lambda _: None,
) -> list[Path]:
    """Draw examples of the paper (all without `names`, in its order) into a folder, which is made;
    the paths of the figures.

    `trained` holds answers of C-PINN by the names of their problems. Their errors are shown beside
    those of `cordes.solve(problem)`, which is "auto" in the figures. `meshes` are the surfaces of
    ex5.2-surface, which takes no trained answer; without any it is the folded surface made in code.
    `report` gets a line for each solve and each figure.

    Checked before anything is solved: the names, that the answers are those of their problems, that
    meshes can be read and the folder be written.
    """
    for name in [*(names or ()), *trained]:
        if name not in EXAMPLES:
            raise unknown("figure of the paper for", name, EXAMPLES)
    for name, solution in trained.items():
        if solution.problem.name != name:
            raise OptionError(
                f"The trained answer for {name} solves {solution.problem.name}: give each "
                "under the name of its problem."
            )
    if SURFACE in trained:
        report(f"{SURFACE}: the figure shows meshes and their maps, not the trained answer")
    surfaces = read_surfaces(meshes)
    folder = _writable_folder(folder)
    paths = []
    for name, draw in EXAMPLES.items():
        if names is not None and name not in names:
            continue
        if draw is None:
            drawn = _draw_surfaces(surfaces, report)
        else:
            drawn = draw(name, _answers(name, trained.get(name), report))
        for stem, figure in drawn:
            paths.append(save_figure(figure, check_writable(folder / f"{stem}.png")))
            report(f"{name}: {paths[-1]}")
    return paths


def read_surfaces(meshes: Sequence[Path]) -> dict[str, Mesh]:
    """Meshes by the names of their files; two files of one name would overwrite each other's
    figure."""
    if not meshes:
        return {"folded": folded_surface()}
    surfaces: dict[str, Mesh] = {}
    for path in map(Path, meshes):
        if path.stem in surfaces:
            raise OptionError(
                f"Two meshes are named {path.stem}: rename {path}, so that each has a figure "
                "of its own."
            )
        surfaces[path.stem] = read_mesh(path)
    return surfaces


def _writable_folder(folder: Path) -> Path:
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(
            f"The folder {folder} cannot be written: {error.strerror or error}. Choose another."
        ) from error
    return folder


def _answers(name: str, trained: Solution | None, report: Say) -> dict[str, Solution]:
    """C-PINN first, as in the paper, and our own answer last."""
    problem = cordes.gallery[name]
    auto = cordes.solve(problem, certify=False)
    report(f"{name}: solved by {auto.method} in {auto.seconds['total']:.1f} s, {auto.result.value}")
    return ({"C-PINN": trained} if trained is not None else {}) | {"auto": auto}


def _exact(problem: AbstractProblem) -> Values:
    assert problem.exact is not None
    return at_points(problem.exact)


def _measured(
    solutions: Mapping[str, Solution],
    values: Callable[[Any], Values] = lambda solution: solution,
    reference: Callable[..., Any] | None = None,
) -> list[Contender]:
    """Every answer with its error; `values` says what of a solution is drawn."""
    answers = []
    for label, solution in solutions.items():
        error = solution.error(reference)
        assert error is not None
        answers.append(Contender(label, values(solution), error))
    return answers


def _headline(name: str, solutions: Mapping[str, Solution], *parts: str) -> str:
    return " — ".join([name, *parts, f"auto: {solutions['auto'].method}"])


def _draw_comparison(name: str, solutions: dict[str, Solution]) -> Figures:
    problem, answers = solutions["auto"].problem, _measured(solutions)
    where = [f"{words}, errors of the whole domain" for words in where_cut(problem.domain)]
    headline = _headline(name, solutions, *where)
    yield name, plot_comparison(problem.domain, _exact(problem), answers, headline)


def _draw_ellipsoid(name: str, solutions: dict[str, Solution]) -> Figures:
    yield from _draw_comparison(name, solutions)
    problem: Any = solutions["auto"].problem
    corner = cut_corner(problem.domain)
    cut = ", ".join(f"$x_{i}$ > {value:.2g}" for i, value in enumerate(corner, 1))
    headline = _headline(name, solutions, f"without {cut}")
    figure = plot_cutaway(problem.domain, _measured(solutions), _exact(problem), headline)
    yield f"{name}-cutaway", figure


def _draw_cube(name: str, solutions: dict[str, Solution]) -> Figures:
    """A slice along the first two coordinates; the errors in the titles are those of the whole
    cube."""
    problem = solutions["auto"].problem
    lower, upper = problem.domain.bounding_box

    def lifted(function: Values) -> Values:
        beyond = ((0, 0), (0, len(lower) - 2))
        return lambda points: function(np.pad(points, beyond, constant_values=LEVEL))

    where = " = ".join(f"$x_{k}$" for k in range(3, len(lower) + 1))
    headline = _headline(name, solutions, f"slice {where} = {LEVEL}, errors of the whole domain")
    answers, plane = _measured(solutions, lifted), Box(lower[:2], upper[:2])
    yield name, plot_comparison(plane, lifted(_exact(problem)), answers, headline)


def _draw_unknown(name: str, solutions: dict[str, Solution]) -> Figures:
    from cordes.references.chebyshev import solve_chebyshev

    problem = solutions["auto"].problem
    found = solve_chebyshev(problem, extra_points=REFERENCES[name])
    nothing = float("nan")
    reference = Contender("Chebyshev", found, Error(nothing, found.error_estimate, nothing))
    what = (
        f"Chebyshev: {found.elements} rectangles of degree {found.degree}, own estimate "
        f"{found.error_estimate:.0e}"
    )
    answers, headline = _measured(solutions, reference=found), _headline(name, solutions, what)
    yield name, plot_against_reference(problem.domain, reference, answers, headline)


def _draw_transport(name: str, solutions: dict[str, Solution]) -> Figures:
    problem: Any = solutions["auto"].problem
    answers = _measured(solutions, lambda solution: solution.map)
    densities, headline = (
        (problem.source_density, problem.target_density),
        _headline(name, solutions),
    )
    yield name, plot_deformed_grid(problem.domain, densities, _exact(problem), answers, headline)


def _draw_surfaces(surfaces: Mapping[str, Mesh], report: Say) -> Figures:
    """The conformal map, transport by networks alone, and the best map, as `cordes surface` draws
    them."""
    for stem, mesh in surfaces.items():
        found = flatten(mesh, say=lambda line, stem=stem: report(f"{SURFACE}: {stem}: {line}"))
        title = f"{SURFACE} — {stem}"
        figure = plot_surface(found.disk, found.shown, found.size, title=title)
        yield f"{SURFACE}-{stem}", resized(figure, SURFACE_WIDTH)


# The examples in the order of the paper and how each is drawn; the surfaces have meshes instead of
# one problem.
EXAMPLES: dict[str, Callable[[str, dict[str, Solution]], Figures] | None] = {
    "ex4.1-smooth": _draw_comparison,
    "ex4.1-singular": _draw_comparison,
    "ex4.2-continuous": _draw_comparison,
    "ex4.2-discontinuous": _draw_comparison,
    "ex4.3-ellipsoid": _draw_ellipsoid,
    "ex4.3-cube5": _draw_cube,
    "ex4.4-continuous": _draw_unknown,
    "ex4.4-discontinuous": _draw_unknown,
    "ex4.5-hjb": _draw_comparison,
    "ex4.6-monge-ampere": _draw_comparison,
    "ex5.1-square": _draw_transport,
    SURFACE: None,
}
