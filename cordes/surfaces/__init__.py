"""Surfaces laid flat: meshes, conformal maps, the density that a conformal map leaves to optimal
transport, and what is distorted."""

from cordes.surfaces.conformal import FlatMap, disk_map, rectangle_map, unfold
from cordes.surfaces.density import (
    AreaMap,
    equalise_areas,
    grid_density,
    map_vertices,
    surface_density,
)
from cordes.surfaces.distortion import Distortion, measure
from cordes.surfaces.files import read_mesh, write_mesh
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.mesh import Mesh, SurfaceError
from cordes.surfaces.topology import Disk, Topology, check_topology, prepare

__all__ = [
    "AreaMap",
    "Disk",
    "Distortion",
    "FlatMap",
    "Mesh",
    "SurfaceError",
    "Topology",
    "check_topology",
    "disk_map",
    "equalise_areas",
    "folded_surface",
    "grid_density",
    "map_vertices",
    "measure",
    "prepare",
    "read_mesh",
    "rectangle_map",
    "surface_density",
    "unfold",
    "write_mesh",
]
