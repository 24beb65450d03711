"""A control problem and its policy

Leave a square as soon as possible, when the only thing one can choose is along which axis the noise
is strong. The least mean time u solves the Hamilton-Jacobi-Bellman equation inf_a (A(a):D²u + 1) =
0. `HJB` takes coefficients of (x, a) and a finite set of controls; `solve` iterates: best control
for the current answer, linear equation for this control, and so on. `policy(x)` is the control to
use at x. By symmetry one should make for the nearest side: the strong axis is the first where |x₁|
> |x₂|, and the second elsewhere.
"""

import sys

import jax.numpy as jnp
import numpy as np

import cordes


def A(x, a):
    return jnp.where(a < 1.5, jnp.diag(jnp.array([1.0, 0.2])), jnp.diag(jnp.array([0.2, 1.0])))


problem = cordes.HJB(
    domain=cordes.Box([-1, -1], [1, 1]),
    controls=np.array([1.0, 2.0]),  # the number of the strong axis
    A=A,
    f=-1.0,  # each unit of time costs one
    sense="inf",
    name="leaving a square",
    # Where the control switches D²u may jump.
    interfaces=[lambda x: x[0] - x[1], lambda x: x[0] + x[1]],
)
solution = cordes.solve(problem, features=300)
for step in solution.history:  # changed: the share of points that got another control
    print({name: float(f"{step[name]:.1e}") for name in ("residual", "changed") if name in step})
print(solution.certificate)
solution.plot_policy(sys.argv[1] if len(sys.argv) > 1 else "09_hjb.png")

points = np.random.default_rng(0).uniform(-1, 1, (10_000, 2))
nearest = np.where(np.abs(points[:, 0]) > np.abs(points[:, 1]), 1.0, 2.0)
share = np.mean(solution.policy(points) == nearest)
print(f"the policy makes for the nearest side at {share:.1%} of the points")
assert share > 0.99, "the share of points where the policy is the one that symmetry demands"
