"""Your own coefficients

The full linear equation is A(x):D²u + b(x)·∇u - c(x)u = f(x) with u = g(x) on the boundary; each of
A, b, c, f, g is a function of one point or a constant. To test a set of coefficients, choose a
solution and let JAX work out the right-hand side that belongs to it. The solver never sees the
chosen solution: `exact` serves to measure the error, and g is evaluated on the boundary only.
`check` measures the Cordès condition, on which the method and most of its error bounds rest: ε must
be positive, and is 1 where A is a multiple of the identity.
"""

import sys

import jax
import jax.numpy as jnp

import cordes


def A(x):
    return jnp.array([[3 + x[0], jnp.sin(x[1])], [jnp.sin(x[1]), 2 + x[1] ** 2]])


def b(x):
    return jnp.array([-x[1], x[0]])


def exact(x):
    return jnp.exp(x[0]) * jnp.cos(3 * x[1])


def f(x):
    return jnp.sum(A(x) * jax.hessian(exact)(x)) + b(x) @ jax.grad(exact)(x) - 2 * exact(x)


problem = cordes.Linear(
    cordes.Box([-1, -1], [1, 1]), A, f, b=b, c=2.0, g=exact, exact=exact, name="chosen solution"
)
print(cordes.check(problem))

solution = cordes.solve(problem)
error, bound = solution.error().l2, solution.certificate.rms
print(f"true error {error:.1e}, certified {bound:.1e} (root mean square)")
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "02_your_own_coefficients.png")

assert error <= bound < 1e-8, "the certified root mean square error"
