"""The map that carries one density to another at the least total squared distance: ∇u of a convex
u.

    target(∇u(x)) det D²u = source(x) in the domain,     ∇u takes the domain onto the target domain

@usage
"""

import cordes
import jax.numpy as jnp

problem = cordes.Transport(
    domain=cordes.Ball([0, 0], 1),
    # @domains
    source=lambda x: jnp.exp(-x[0]),  # a positive density
    # Another convex domain; left out, the domain itself.
    target_domain=cordes.Ellipsoid([0, 0], [2, 1]),
    # target=lambda y: 2 + y[0] / 2,  # another positive density; left out, the uniform one
    normalise=True,  # scale both to one; without it, masses that differ are refused
    # The exact map, if you know it (this is not it): errors are measured with it, nothing else.
    # exact=lambda x: x,
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution.map(problem.domain.center), solution.cost)
    print(solution.certificate)
