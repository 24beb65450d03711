"""A square plate with two round holes: u = 1 on the outer boundary, 0 on the circles.

    A(x):D²u + b(x)·∇u - c(x)u = f(x) in the domain,     u = g(x) on its boundary

@usage
"""

import cordes
import jax.numpy as jnp
import numpy as np

plate = cordes.Box([-1, -1], [1, 1])
for center in ([-0.5, 0.0], [0.5, 0.25]):
    # Also a | b and a & b, for boxes, balls, ellipsoids and polygons.
    plate = plate - cordes.Ball(center, 0.25)

problem = cordes.Linear(
    domain=plate,
    A=np.eye(2),  # symmetric and positive definite; may be a function of x
    f=0.0,
    g=lambda x: jnp.where(jnp.max(jnp.abs(x)) > 0.99, 1.0, 0.0),  # on all boundaries
    # In place of g, for plates that insulate or cool:
    # boundary={"outer": cordes.Dirichlet(1.0), "hole 1": cordes.Neumann(),
    #     "hole 2": cordes.Robin(5.0, 0.0)},
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-8 works until the certified error is that small
    print(solution([0.0, 0.0]), solution.gradient([0.0, 0.0]))
    print(solution.certificate)
