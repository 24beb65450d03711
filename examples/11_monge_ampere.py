"""Monge-Ampère

det D²u = f has one convex solution for f > 0 on a disk. It is written down like the others and
solved by Newton's method; each step is a linear equation whose matrix holds the cofactors of D²u.
The certificate compares determinants and bounds the largest error, provided that the answer is
convex: `convexity` is the smallest eigenvalue of D²u that was found. The source is a peak on a
plain, in the middle, so that two integrals give the truth.
"""

import sys

import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad

import cordes

problem = cordes.MongeAmpere(
    domain=cordes.Ball([0, 0], 1),
    f=lambda x: 1 + 10 * jnp.exp(-5 * jnp.dot(x, x)),
    name="peak on a plain",
)
solution = cordes.solve(problem, tol=1e-7)  # of the largest error
for step in solution.history:
    print(f"residual {step['residual']:.1e} with {step['size']} features")
print("smallest eigenvalue of D²u:", solution.convexity.smallest)
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "11_monge_ampere.png")

# A radial solution has u'u''/r = f(r), so that u'² = r² + 2(1 - exp(-5r²)).
exact = -quad(lambda r: np.sqrt(r**2 + 2 * (1 - np.exp(-5 * r**2))), 0, 1)[0]
error = abs(solution([0, 0]) - exact)
print(f"u(0) = {solution([0, 0]):.10f}, error {error:.1e}")
assert error <= solution.certificate.Linf <= 1e-7, "the certified largest error"
