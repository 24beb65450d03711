"""What a report draws of transport: the map, both densities, and a grid with its image."""

import numpy as np

from cordes.problems.transport import Transport
from cordes.reports.kit.maps import Map
from cordes.reports.kit.planes import square_cells
from cordes.reports.pages.fields import (
    Quantity,
    exact_values,
    frozen_condition,
    quantities_of,
    residual_quantity,
    with_overlays,
)
from cordes.reports.plots import grid_lines
from cordes.solutions.transport import TransportSolution

# Lines of the grid that a transport map deforms, and points on each.
GRID_LINES, GRID_POINTS = 25, 97


@quantities_of.register(Transport)
def _transport(
    problem: Transport, solution: TransportSolution, points: np.ndarray, lambda_: float | None
) -> list[Quantity | None]:
    jet = solution.jet(points)
    gradient, hessian = np.asarray(jet.gradient), np.asarray(jet.hessian)
    source = problem.source_density(points)
    reached = problem.target_density(gradient) * np.linalg.det(hessian)
    moved = np.linalg.norm(gradient - points, axis=1)
    found: list[Quantity | None] = [
        Quantity("source", "μ", "The source density, of mass one.", source),
        Quantity("moved", "|T(x) − x|", "How far the map moves each point.", moved),
    ]
    exact = exact_values(problem, points)
    if exact is not None:
        miss = np.linalg.norm(gradient - exact, axis=1)
        caption = "How far the map is from the exact one, which is used for nothing else."
        found.append(Quantity("error", "|T − T<sup>∗</sup>|", caption, miss, True))
    carried = "How well the map carries one density to the other."
    potential = "The convex potential whose gradient is the map."
    return [
        *found,
        residual_quantity(reached - source, "|ν(∇u) det D²u − μ|", carried),
        Quantity("potential", "u", potential, np.asarray(jet.value)),
        *frozen_condition(problem, points, jet, lambda_, " of the frozen equation"),
    ]


@with_overlays.register(Transport)
def _with_grids(
    problem: Transport, solution: TransportSolution, made: dict[str, list[Map]]
) -> dict[str, list[Map]]:
    """The source density with a grid, and the target density with the image of that grid."""
    lines = grid_lines(problem.domain, GRID_LINES, GRID_POINTS)
    lengths = np.cumsum([len(line) for line in lines])[:-1]
    images = np.split(solution.map(np.concatenate(lines)), lengths)
    plane = square_cells(problem.target_domain, (0, 1), made["source"][0].values.shape[0])
    density = plane.spread(problem.target_density(plane.points[plane.inside]))
    caption = "The target density, with the image of the grid."
    target = Map("target", "ν", plane, density, caption=caption, letter="y", lines=tuple(images))
    source = made["source"][0]._replace(
        caption="The source density, with a grid.", lines=tuple(lines)
    )
    return {**made, "source": [source], "target": [target]}
