"""The temperature u(x) of a room: it is given on the left, heat leaves through a window on the
right, and floor and ceiling are insulated; a wind carries it along, and something in the middle
heats.

    A(x):D²u + b(x)·∇u - c(x)u = f(x) in the box, and a condition on each of its sides

@usage
"""

import cordes
import jax.numpy as jnp
import numpy as np


def source(x):
    return -jnp.exp(-4 * jnp.sum((x - jnp.array([1.0, 0.5])) ** 2))


problem = cordes.Linear(
    # A box, with as many coordinates as you like; in the plane also other domains, with Neumann and
    # Robin on their sides.
    domain=cordes.Box([0, 0], [2, 1]),
    A=np.eye(2),  # symmetric and positive definite
    b=[-2.0, 0.0],  # drift; zero if left out
    c=0.0,  # c ≥ 0 is the good case; 0 if left out
    f=source,
    # Sides: left and right (x1), bottom and top (x2), back and front (x3), x4- and x4+, …; "outer"
    # for all that are not named. Where two meet, their data must fit. n is the outer normal.
    boundary={
        "left": cordes.Dirichlet(1.0),  # u = g
        "right": cordes.Robin(0.5, 0.0),  # ∂ₙu + κu = h, κ ≥ 0 a number
        "outer": cordes.Neumann(0.0),  # ∂ₙu = h; both opposite sides may be cordes.Periodic()
    },
    # g=0.0,  # what u is on the boundary, for problems without boundary=…
    # interfaces=[lambda x: x[0] - 1],  # A, b, c, f and D²u may jump where these are zero
    # epsilon=0.3,  # a lower bound of the Cordès ε that you vouch for; found from A if left out
    # The exact solution, if you know it (this is not it): errors are measured with it, no more.
    # exact=lambda x: 1 - x[0] * (1 - x[0]),
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-4 works until the certified error is that small
    print(solution(problem.domain.center), solution.gradient(problem.domain.center))
    print(solution.certificate)
