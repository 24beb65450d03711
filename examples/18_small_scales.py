"""Small scales

A heat source of radius 0.005 in the unit square, somewhere. A network of the whole domain does not
see it; the enclosure of its formula does, so that nothing is called converged, and the default
goes on with cells: local polynomials on boxes that follow the solution, joined by least squares of
the same equation and blended to one C² function, for which the certificate holds.
"""

import sys

import jax.numpy as jnp
import numpy as np

import cordes

place, radius = np.array([0.313, 0.271]), 0.005


def f(x):
    return -jnp.exp(-jnp.sum((x - place) ** 2) / radius**2) / (jnp.pi * radius**2)


problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), 1.0, f, name="a small source")
solution = cordes.solve(problem)
print(solution.history[1], solution.history[-1], sep="\n")
print(solution.method, "at the source:", solution(place), "in the middle:", solution([0.5, 0.5]))
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "18_small_scales.png")

# In the middle, by the series of sines of a Gaussian source.
k = np.arange(1, 400)
square = np.pi**2 * np.add.outer(k**2, k**2)
wave = np.sin(np.pi * np.outer(place, k)) * np.sin(np.pi * k / 2)
series = float(np.sum(4 * np.exp(-square * radius**2 / 4) / square * np.outer(*wave)))
print(f"in the middle by a series {series:.10f}")
assert abs(solution([0.5, 0.5]) - series) < 1e-6, "the value in the middle"
