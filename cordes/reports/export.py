"""An answer on a grid, as a file for ParaView."""

from pathlib import Path

import jax
import numpy as np

from cordes.errors import OptionError
from cordes.reports.kit.vtk import structured_cells, write_vtu
from cordes.runtime.files import check_writable
from cordes.solutions.solution import Solution

# Grid points along each axis, by dimension.
RESOLUTION = {1: 201, 2: 101, 3: 41}


def export_vtu(solution: Solution, path: str | Path) -> Path:
    """Write u, its gradient and the residual, with the exact solution and the error where it is
    known, on a grid over the bounding box.

    Cells that are not wholly in the closed domain are left out. Checked: the dimension is at most
    three, and the file can be written.
    """
    domain = solution.problem.domain
    d = domain.dimension
    if d not in RESOLUTION:
        raise OptionError(
            f"The problem has {d} dimensions, but VTK files hold at most three: evaluate the "
            "solution at points of your own."
        )
    path = check_writable(path)
    lower, upper = domain.bounding_box
    shape = (RESOLUTION[d],) * d
    axes = np.meshgrid(
        *(np.linspace(a, b, n) for a, b, n in zip(lower, upper, shape, strict=True)), indexing="ij"
    )
    grid = np.stack(axes, axis=-1)
    inside = domain.contains(grid, tolerance=1e-12 * float(np.max(upper - lower)))
    used, cells, cell_type = structured_cells(shape, inside)
    if not len(cells):
        raise OptionError(
            f"No cell of the {RESOLUTION[d]}-point grid over the bounding box fits into "
            f"{domain!r}: rotate the coordinates."
        )
    points = grid.reshape(-1, d)[used]
    jet = solution.jet(points)
    # One jet serves all: `solution.residual` would make another.
    residual = np.asarray(jax.jit(jax.vmap(solution.problem.residual))(points, jet))
    data = {"u": np.asarray(jet.value), "gradient": np.asarray(jet.gradient), "residual": residual}
    if solution.problem.exact is not None:
        data["exact"] = np.asarray(jax.jit(jax.vmap(solution.problem.exact))(points))
        # The exact solution of a transport problem is the map, the gradient of u.
        data["error"] = (data["gradient"] if data["exact"].ndim > 1 else data["u"]) - data["exact"]
    write_vtu(path, points, cells, cell_type, data)
    return path
