"""Tolerance

`tol` means what it means in an ODE solver: how wrong the answer may be. But it bounds the certified
error, not an estimate: the network grows until the bound of the root mean square error is below
`tol`, or the result says that this was not possible. A small network is found and evaluated faster.
"""

import sys

import jax
import jax.numpy as jnp
from matplotlib.figure import Figure

import cordes

A = jnp.array([[2.0, 0.5], [0.5, 1.0]])


def exact(x):
    return jnp.sin(4 * x[0]) * jnp.cos(2 * x[1] * (1 + x[0]))


problem = cordes.Linear(
    cordes.Ball([0, 0], 1), A, lambda x: jnp.sum(A * jax.hessian(exact)(x)), g=exact, exact=exact
)
tolerances, bounds, errors = [1e-1, 1e-3, 1e-5, 1e-7], [], []
for tol in tolerances:
    solution = cordes.solve(problem, tol=tol)
    bounds.append(solution.certificate.rms)
    errors.append(solution.error().l2)
    print(f"tol {tol:.0e}: {solution.result.value} with {solution.parameters} features,", end=" ")
    print(f"certified {bounds[-1]:.1e}, true {errors[-1]:.1e}")

axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
axes.loglog(tolerances, tolerances, "--", color="grey", label="tol")
axes.loglog(tolerances, bounds, "o-", label="certified bound")
axes.loglog(tolerances, errors, "s-", label="true error")
axes.set_title("what is asked for, what is certified, what is true")
axes.set(xlabel="tol", ylabel="root mean square error")
axes.invert_xaxis()
axes.legend()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "05_tolerance.png", dpi=120)

met = sum(e <= b <= tol for e, b, tol in zip(errors, bounds, tolerances, strict=True))
assert met == len(tolerances), "how often true error ≤ certified error ≤ tolerance"
