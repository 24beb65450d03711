"""Optimal transport

Carry one density to another by the map T = ∇u that moves mass the least. `Transport` takes the
source density, and the uniform one on the same domain as target if nothing else is said;
`normalise=True` scales both masses to one. The solution has the `map`, its `inverse`, and its
`cost`, and the certificate bounds the error of the map and the Wasserstein distance W₂ from both
sides. The picture shows a grid and where it is carried.
"""

import sys

import jax.numpy as jnp
import numpy as np

import cordes


def hill(x, top, steepness):
    return jnp.exp(-steepness * jnp.sum((x - jnp.array(top)) ** 2))


def hills(x):
    return 1 + 4 * hill(x, [0.3, 0.4], 12) + 3 * hill(x, [0.75, 0.7], 15)


problem = cordes.Transport(
    cordes.Box([0, 0], [1, 1]), source=hills, normalise=True, name="two hills"
)
solution = cordes.solve(problem, tol=1e-3)  # of the certified error of the map
print("the top of a hill goes to", solution.map([0.3, 0.4]))
print("and came from            ", solution.inverse(solution.map([0.3, 0.4])))
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "12_transport.png")

# What arrives is spread evenly: the mean of |y|² over the square is 2/3. The slope of |y|² is at
# most 2√2, which turns the bound of the map into one of this mean.
nodes, weights = np.polynomial.legendre.leggauss(60)
points = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2) / 2 + 0.5
mass = np.outer(weights, weights).ravel() * problem.source_density(points)
mean = np.sum(mass * np.sum(solution.map(points) ** 2, axis=1)) / np.sum(mass)
print(f"mean of |y|² over the image: {mean:.6f}")
assert abs(mean - 2 / 3) <= 2 * np.sqrt(2) * solution.certificate.map_L2 < 3e-3, (
    "the mean of |y|² over what arrives"
)
