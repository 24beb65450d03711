"""A folded surface made in code, for everyone to try: a sheet gathered into deep folds in its
middle and smooth at its rim."""

import numpy as np

from cordes.errors import OptionError
from cordes.surfaces.mesh import Mesh

# Steps of the quadrature along a thread between two columns of vertices.
FINE = 32


def folded_surface(
    folds: int = 4, depth: float = 1.5, width: float = 1.0, columns: int = 80, rows: int = 48
) -> Mesh:
    """A sheet of threads of length 2 that run in x, side by side in y from 0 to `width`; each is
    bent into waves without being stretched.

    The tangent of a thread makes the angle A cos(2π · folds · s) with the plane at the length s, A
    growing from 0 at two rims to `depth` radians in the middle. From π/2 on the folds overhang.
    Above about 2 they would touch, so 2 is the limit. The middle is shorter than the rims, so the
    sheet is curved in both directions, and no flat map keeps its areas and angles. There are 2 ·
    (columns − 1) · (rows − 1) faces; corners are natural.
    """
    if folds < 1 or not 0 <= depth <= 2 or width <= 0:
        raise OptionError(
            f"folds={folds}, depth={depth}, width={width}: give at least one fold, a depth "
            "from 0 to 2 radians and a positive width."
        )
    if columns < max(4, 8 * folds) or rows < 4:
        raise OptionError(
            f"{columns} columns and {rows} rows are too few: at least {max(4, 8 * folds)} "
            "columns (8 for each fold) and 4 rows are needed."
        )
    lengths = np.linspace(-1, 1, FINE * (columns - 1) + 1)
    across = np.linspace(0, 1, rows)
    bend = depth * np.sin(np.pi * across) ** 2
    angle = bend[:, None] * np.cos(np.pi * folds * (lengths[1:] + lengths[:-1]) / 2)[None, :]
    step = lengths[1] - lengths[0]
    along, height = (
        np.concatenate([np.zeros((rows, 1)), np.cumsum(step * part, axis=1)], axis=1)[:, ::FINE]
        for part in (np.cos(angle), np.sin(angle))
    )
    along = along - along[:, -1:] / 2
    y = np.broadcast_to((width * across)[:, None], along.shape)
    vertices = np.stack([along, y, height], axis=-1).reshape(-1, 3)
    number = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (
        part.ravel()
        for part in (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
    )
    # Diagonals alternate, so that no direction is preferred; the corners get the diagonal that
    # leaves no ear.
    i, j = np.divmod(np.arange(len(a)), columns - 1)
    rising = (i + j) % 2 == 0
    rising[(i == 0) & (j == 0) | (i == rows - 2) & (j == columns - 2)] = True
    rising[(i == 0) & (j == columns - 2) | (i == rows - 2) & (j == 0)] = False
    first = np.where(rising[:, None], np.stack([a, b, c], axis=1), np.stack([a, b, d], axis=1))
    second = np.where(rising[:, None], np.stack([a, c, d], axis=1), np.stack([b, c, d], axis=1))
    return Mesh(vertices, np.concatenate([first, second]))
