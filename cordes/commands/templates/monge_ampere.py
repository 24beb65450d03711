"""A convex function with a given determinant of its second derivatives.

    det D²u = f(x) in the domain,  u convex,     u = g(x) on its boundary

@usage
"""

import cordes
import jax.numpy as jnp

problem = cordes.MongeAmpere(
    domain=cordes.Ball([0, 0], 1),
    # @domains
    f=lambda x: 1 + 2 * jnp.exp(-jnp.sum((x - jnp.array([0.3, 0.0])) ** 2)),  # never negative
    g=0.0,  # boundary values; convex along straight edges
    # f and D²u may jump where these are zero: declare every such line.
    # interfaces=[lambda x: x[0]],
    # The exact solution, if you know it (this is not it): errors are measured with it, no more.
    # exact=lambda x: (jnp.sum(x**2) - 1) / 2,
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution(problem.domain.center), solution.gradient(problem.domain.center))
    print(solution.certificate)
