"""A steady temperature in an L-shaped room, whose walls are kept at x1².

    A(x):D²u + b(x)·∇u - c(x)u = f(x) in the domain,     u = g(x) on its boundary

@usage
"""

import cordes
import numpy as np

problem = cordes.Linear(
    # Of any simple shape, in either orientation; the largest error is bounded on each.
    domain=cordes.Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]),
    A=np.eye(2),  # symmetric and positive definite; may be a function of x
    f=0.0,
    g=lambda x: x[0] ** 2,  # boundary values
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem)  # tol=1e-8 works until the certified error is that small
    print(solution([0.99, 0.99]), solution.gradient([0.99, 0.99]))
    print(solution.certificate)
