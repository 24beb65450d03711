"""The cells on which a search for singularities looks at a domain."""

import itertools
from typing import NamedTuple

import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Enclosure, UnsupportedOperation

# Cells along each axis at the start, by dimension; in higher dimensions the first axes are halved.
START = {1: 64, 2: 12, 3: 6, 4: 4, 5: 3}
HALVED_AXES = 6


class SearchCells(NamedTuple):
    lower: np.ndarray
    upper: np.ndarray

    def children(self) -> "SearchCells":
        """Each cell cut in the middle of every axis."""
        middle = (self.lower + self.upper) / 2
        corners = np.array(list(itertools.product((False, True), repeat=self.lower.shape[1])))
        lower = np.where(corners, middle[:, None], self.lower[:, None])
        upper = np.where(corners, self.upper[:, None], middle[:, None])
        return SearchCells(lower.reshape(-1, corners.shape[1]), upper.reshape(-1, corners.shape[1]))


def first_cells(domain: AbstractDomain) -> SearchCells:
    """Cells that cover the bounding box of a domain."""
    lower, upper = (np.asarray(corner, float) for corner in domain.bounding_box)
    d = len(lower)
    counts = [START[d]] * d if d in START else [2 if axis < HALVED_AXES else 1 for axis in range(d)]
    index = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, d)
    edges = (
        lower + index / np.array(counts) * (upper - lower),
        lower + (index + 1) / np.array(counts) * (upper - lower),
    )
    return SearchCells(edges[0], np.where(index + 1 == counts, upper, edges[1]))


def cells_inside(cells: SearchCells, domain: AbstractDomain, distance: Enclosure) -> SearchCells:
    """The cells that may meet the domain. Edges cut better than the distance function of a polygon,
    a product that is positive beyond two edges."""
    vertices = domain.vertices
    if vertices is not None:
        edges = np.roll(vertices, -1, axis=0) - vertices
        normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1)
        nearest = np.where(normals > 0, cells.lower[:, None], cells.upper[:, None])
        outside = np.any(
            np.sum((nearest - vertices) * normals, axis=2) > 1e-9 * np.max(np.abs(edges)) ** 2,
            axis=1,
        )
    else:
        try:
            (found,) = distance(cells.lower, cells.upper)
            outside = found.upper < 0
        except UnsupportedOperation:
            outside = np.zeros(len(cells.lower), bool)
    return SearchCells(cells.lower[~outside], cells.upper[~outside])
