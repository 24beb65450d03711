"""The mean life u(x) of a particle that starts at x. It dies when it leaves a square, or by itself
at the rate c; it jitters more on the right.

    A(x):D²u + b(x)·∇u - c(x)u = f(x) in the domain,     u = g(x) on its boundary

@usage
"""

import cordes
import jax.numpy as jnp


def diffusion(x):
    return jnp.array([[1.5 + 0.5 * jnp.sign(x[0]), 0.3], [0.3, 1.0]])


problem = cordes.Linear(
    domain=cordes.Box([-1, -1], [1, 1]),
    # @domains
    A=diffusion,  # symmetric and positive definite
    b=lambda x: -x / 2,  # drift, here towards the centre; zero if left out
    c=1.0,  # mind the sign: c ≥ 0 is the good case; 0 if left out
    f=-1.0,
    g=0.0,  # boundary values; 0 if left out
    # Or conditions, by the names of pieces; fluxes too: cordes new --kind insulated-box.
    # boundary=cordes.Dirichlet(0.0),
    # A, b, c, f and D²u may jump where these are zero: declare every such line.
    interfaces=[lambda x: x[0]],
    # epsilon=0.3,  # a lower bound of the Cordès ε that you vouch for; found from A if left out
    # The exact solution, if you know it (this is not it): errors are measured with it, no more.
    # exact=lambda x: (1 - x[0] ** 2) * (1 - x[1] ** 2),
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution(problem.domain.center), solution.gradient(problem.domain.center))
    print(solution.certificate)
