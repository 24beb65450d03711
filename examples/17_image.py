"""An image as data

The grey values of a picture are a density: carry them to an even grey. `cordes.interpolate` turns
an array over a domain into a function of one point, here a cubic spline through 64 × 64 pixels;
with `image=True` the first row is at the top. Its pieces are known to the program, so that masses
and enclosures are those of the pixels and not of points. The bounds refer to the spline, not to
what the picture was taken of.
"""

import sys

import numpy as np

import cordes

# Any array of positive numbers will do: numpy.asarray(PIL.Image.open("face.png").convert("L")).
rows, columns = np.mgrid[:64, :64] / 63
disk = np.exp(-((rows - 0.35) ** 2 + (columns - 0.6) ** 2) / 0.03)
ring = np.exp(-((np.hypot(rows - 0.6, columns - 0.35) - 0.2) ** 2) / 0.01)
picture = 0.5 + disk + 0.4 * ring

square = cordes.Box([0, 0], [1, 1])
density = cordes.interpolate(picture, square, image=True)
problem = cordes.Transport(square, density, name="a picture")
solution = cordes.solve(problem, tol=1e-2)  # of the certified error of the map
print(density)
print("the middle of the disk goes to", solution.map([0.6, 0.65]))
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "17_image.png")

# The mass of the spline, against a sum of the pixels.
weights = np.r_[0.5, np.ones(62), 0.5] / 63
trapezoids = weights @ picture @ weights
print(f"mass {problem.masses[0]:.6f}, by trapezoids {trapezoids:.6f}")
assert abs(problem.masses[0] - trapezoids) < 1e-4 * trapezoids, "the mass of the picture"
