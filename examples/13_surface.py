"""A surface laid flat

A conformal map to a rectangle keeps angles and spoils areas: a hill becomes a small spot. How much
it spoils them is a density on the rectangle, and the optimal transport of this density to the
uniform one spreads the spot until areas are even. `cordes.surfaces` has the steps, here for a mesh
that is made on the spot; `cordes surface FILE` does all this for a file. The picture has a
checkerboard of the flat map drawn back on the surface.
"""

import sys

import numpy as np

import cordes
from cordes.surfaces import Mesh, grid_density, measure, prepare, rectangle_map, surface_density
from cordes.surfaces.pages.plots import plot_surface

n = 41
x, y = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
vertices = np.stack([x, y, 0.9 * np.exp(-5 * (x**2 + y**2))], axis=-1).reshape(-1, 3)
number = np.arange(n * n).reshape(n, n)
corners = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
a, b, c, d = (corner.ravel() for corner in corners)
faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
hill = prepare(Mesh(vertices, faces))

flat = rectangle_map(hill)
uv = flat.uv
for _ in range(2):  # again from where the vertices are now, with their density measured anew
    cells = surface_density(hill, uv, flat.size, resolution=64, smoothing=1.0)
    density = grid_density(cells, np.zeros(2), flat.size)
    problem = cordes.Transport(cordes.Box([0, 0], flat.size), density, normalise=True)
    uv = np.clip(cordes.solve(problem, features=500, oversampling=6).map(uv), 0, flat.size)

maps = {"conformal": flat.uv, "after transport": uv}
for name, uv in maps.items():
    report = measure(hill, uv, flat.size)
    areas, angles = report.area_faces.deviation, report.angle_mean
    print(f"{name:<16} log area ratio ± {areas:.3f}, mean angle error {angles:.1f}°,", end=" ")
    print(f"{report.flipped} faces flipped")
picture = sys.argv[1] if len(sys.argv) > 1 else "13_surface.png"
plot_surface(hill, maps, flat.size, picture, toward=np.array([0.0, -1.0, 0.8]))

assert areas < 0.05, "the standard deviation of the log area ratio after transport"
