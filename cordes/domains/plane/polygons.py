"""Polygons that are not convex, or have holes."""

import numpy as np

from cordes.domains.checks import check_size
from cordes.domains.plane.arcs import Arc, segment
from cordes.domains.plane.loops import area_of, check_sides
from cordes.domains.plane.region import Region
from cordes.domains.plane.slabs import graphs_of, inside
from cordes.domains.polygon import check_vertices
from cordes.errors import DomainError
from cordes.runtime.plain import show


def plane_polygon(vertices: np.ndarray, holes: list[np.ndarray]) -> Region:
    """The polygon, of which the sides are `side 1`, `side 2`, … in the order of the vertices as
    given, and the boundaries of holes `hole 1`, `hole 2`, …"""
    check_sides(sum(map(len, (vertices, *holes))))
    for ring in (vertices, *holes):
        check_size("The polygon", np.min(ring, axis=0), np.max(ring, axis=0))
        check_vertices(ring)
    outer = _ring(vertices, [f"side {k + 1}" for k in range(len(vertices))])
    inner = [_ring(ring, [f"hole {k + 1}"] * len(ring)) for k, ring in enumerate(holes)]
    graphs = graphs_of((tuple(outer),))
    for k, ring in enumerate(holes):
        outside = ~inside(graphs, ring)
        if np.any(outside):
            raise DomainError(
                f"holes[{k}] has its vertex {show(ring[outside][0])} outside of the polygon, or on "
                "its boundary: take the difference of both, a - b, where it cuts the boundary."
            )
    for k, one in enumerate(inner):
        for j in range(len(inner)):
            if j != k and np.any(inside(graphs_of((tuple(one),)), holes[j])):
                raise DomainError(f"holes[{j}] overlaps with holes[{k}]: give their union.")
    said = f"Polygon(vertices={vertices.tolist()}"
    said += f", holes={[ring.tolist() for ring in holes]})" if holes else ")"
    return Region([tuple(ring) for ring in (outer, *inner)], said)


def _ring(vertices: np.ndarray, pieces: list[str]) -> list[Arc]:
    ring = list(map(segment, vertices, np.roll(vertices, -1, axis=0), pieces))
    if abs(area_of(tuple(ring))) <= 1e-12 * float(np.prod(np.ptp(vertices, axis=0))):
        raise DomainError(
            f"The polygon {vertices.tolist()} has no area: its edges cross, or lie on a line. List "
            "the vertices in order along the boundary."
        )
    return ring
