"""The temperature u(x, t) of a bar that starts warm in the middle; its ends are kept at 0, its
right half conducts better.

    u_t  =  A(x, t):D²u + b(x, t)·∇u - c(x, t)u - f(x, t)  for 0 < t < horizon,
    u = initial(x) at t = 0,     u = g(x, t) on the boundary of the domain

With `terminal` in place of `initial` the equation runs backwards from the horizon, u_t + A:D²u +
b·∇u - cu = f.

@usage In time they are functions of x and t.
"""

import cordes
import jax.numpy as jnp
import numpy as np

problem = cordes.Parabolic(
    domain=cordes.Box([0], [1]),
    # @domains
    horizon=0.5,  # the time ends here
    A=lambda x, t: jnp.array([[1 + 0.5 * jnp.tanh(4 * x[0] - 2)]]),  # symmetric, positive definite
    b=None,  # drift; zero if left out
    c=0.0,  # 0 if left out
    f=lambda x, t: -t * jnp.exp(-t),  # mind the sign: minus what is heated
    g=0.0,  # on the boundary at all times; 0 if left out
    initial=lambda x: jnp.sin(jnp.pi * x[0]),  # at t = 0; equal to g on the boundary
    # interfaces=[lambda x, t: x[0] - 0.5],  # the data and D²u may jump where these are zero
    # The exact solution, if you know it (this is not it): errors are measured with it, no more.
    # exact=lambda x, t: jnp.exp(-t) * jnp.sin(jnp.pi * x[0]),
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem, certify=True)  # tol=1e-6 asks for a certified error
    print(solution.table(np.array([[0.25], [0.5], [0.75]]), t=0.5))
    print(solution.certificate)
