"""First solve

The Poisson equation Δu = f on the unit square, with u = 0 on the boundary. A problem is a domain, a
matrix A and a right-hand side f, and stands for A:D²u = f; the number 1 stands for the identity.
`solve` returns a function: it takes arrays of points and has exact derivatives. Every solution has
a certificate, which bounds its error without knowing the true solution. Here the true one is known,
and one can look.
"""

import sys

import jax.numpy as jnp
import numpy as np

import cordes

problem = cordes.Linear(
    domain=cordes.Box([0, 0], [1, 1]),
    A=1.0,
    # A function of one point, written with jax.numpy.
    f=lambda x: jnp.sin(jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1]),
    name="Poisson equation",
)
solution = cordes.solve(problem)

print(solution)
print("values at two points:  ", solution([[0.5, 0.25], [0.5, 0.75]]))
print("gradient at the centre:", solution.gradient([0.5, 0.5]))
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "01_first_solve.png")

# By hand: u = -sin(πx₁) sin(2πx₂)/(5π²).
error = abs(solution([0.5, 0.25]) + 1 / (5 * np.pi**2))
print(f"true error at the first point: {error:.1e}")
assert error <= solution.certificate.Linf < 1e-8, (
    "the error of u(1/2, 1/4), which the certificate bounds"
)
